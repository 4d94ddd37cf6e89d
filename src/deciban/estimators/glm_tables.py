"""The tables and notes of a generalized linear model's summary."""

from __future__ import annotations

from collections.abc import Sequence

from deciban.linear.inference import Inference
from deciban.table import Table
from deciban.types import FloatArray, Levels


def owners_of(classes: Levels) -> list[str]:
    """What each vector of coefficients is about: "" for a number or two classes, else a class against the first."""
    if len(classes) < 3:
        return [""]
    return [f" of {label} against {classes[0]}" for label in classes[1:]]


def coefficient_table(
    inference: Inference, k: int, owner: str, names: Sequence[str], level: float, *, penalised: bool
) -> Table:
    """Coefficients of one vector; with standard errors, tests and intervals unless the fit is penalised."""
    columns: dict[str, FloatArray] = {"estimate": inference.estimates[k]}
    if not penalised:  # a penalised fit has no such errors
        columns["std. error"] = inference.standard_errors[k]
        columns["t" if inference.by_t else "z"] = inference.statistics[k]
        columns["p"] = inference.p_values[k]
        columns[f"{50 * (1 - level):g} %"], columns[f"{50 * (1 + level):g} %"] = inference.intervals(level)[k].T
    rows = zip(("(intercept)", *names), *(column.tolist() for column in columns.values()), strict=True)
    return Table(f"coefficients{owner}", ("", *columns), tuple(rows))


def inference_notes(inference: Inference, l2: float) -> list[str]:
    """The deviance and other statistics of the fit."""
    freedom = f"{inference.residual_df:.15g} degrees of freedom"
    notes = [f"deviance {inference.deviance:.6g} on {freedom}, null deviance {inference.null_deviance:.6g}"]
    if l2:
        notes.append(f"penalised by l2 = {l2:g}: no standard errors")
    else:
        notes.append(f"log-likelihood {inference.log_likelihood:.6g}, AIC {inference.aic:.6g}")
    if inference.by_t and inference.residual_df > 0:
        notes.append(f"dispersion {inference.dispersion:.6g}, the residual variance")
    elif inference.by_t:
        notes.append("as many coefficients as rows: the residual variance is unknown")
    return notes
