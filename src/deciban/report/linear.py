"""Linear models: coefficients with their intervals, how they were found, and boundaries over two columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deciban.charts.figures import Figures, counted, plain, table
from deciban.errors import DecibanError, hearing
from deciban.evaluation.boundary import Row, boundary_of
from deciban.late import late
from deciban.linear.inference import Inference
from deciban.linear.objective import Objective
from deciban.report.rows import Given, given, gives_numbers, inner, labels_of
from deciban.table import numbered
from deciban.types import FloatArray

special = late("scipy.special")

LEVEL = 0.95
FIELDS = ("name", "estimate", "error", "low", "high", "p")
MOST = 1000  # coefficients whose errors are found
SHOWN = 1000  # coefficients of a table
POINTS = 1000  # of a boundary's picture


def linear(model: Any, of: Given) -> Figures | None:
    """Coefficients of a linear model; None of others."""
    own = inner(model)
    if not hasattr(own, "predictor_") or not hasattr(own, "coef_"):
        return None
    titles, estimates = _estimates(own)
    intervals, said, notes = _intervals(own, of)
    names = ["(intercept)", *own.predictor_.design.names]
    kept = np.arange(len(names))
    if len(names) > SHOWN:
        size = np.abs(estimates[:, 1:]).max(axis=0)
        kept = np.sort(np.append(0, 1 + np.argsort(-size, kind="stable")[: SHOWN - 1]))
        notes.append(f"of {len(names):,} coefficients the {SHOWN:,} largest are listed")
    tables = []
    for k, title in enumerate(titles):
        columns = [estimates[k], *([np.full(len(names), np.nan)] * 4 if intervals is None else intervals[k])]
        rows = [(names[i], *(_or_none(column[i]) for column in columns)) for i in kept.tolist()]
        tables.append({"title": title, "rows": table(FIELDS, rows)})
    status = getattr(own, "status_", "ok")
    return {
        "sentence": said,
        "unit": f"{own.response_.link} link" if gives_numbers(own) else "nats of log-odds",
        "coefficients": tables,
        "path": path(own),
        "notes": notes if status == "ok" else [*notes, status],
    }


def path(model: Any) -> Figures | None:
    """How the solver came to its end: (iteration, objective, gradient, step)."""
    found = getattr(model, "path_", None)
    fields = ["iteration", "objective", "gradient", "step"]
    return None if found is None else {"fields": fields, "rows": plain(found.rows)}  # all digits: differences count


def _or_none(value: float) -> float | None:
    """A number; what is not determined has none."""
    return float(value) if np.isfinite(value) else None


def _estimates(model: Any) -> tuple[list[str], FloatArray]:
    """What each table is called, and (m, 1 + p) its coefficients, the intercept first."""
    if hasattr(model, "inference_"):
        estimates = model.inference_.estimates
        if gives_numbers(model):
            return ["coefficients"], estimates
        names = numbered(model.classes_.tolist())
        return [f"log-odds of {name} against {names[0]}" for name in names[1:]], estimates
    estimates = np.column_stack([model.intercept_, model.coef_])
    names = numbered(model.classes_.tolist())
    if len(estimates) == 1:
        return [f"log-odds of {names[1]} against {names[0]}"], estimates
    return [f"score of {name}" for name in names], estimates


def _intervals(model: Any, of: Given) -> tuple[list[list[FloatArray]] | None, str, list[str]]:
    """Of each table (1 + p) errors, ends of 95% intervals and p-values, if there are any; and what to say of them."""
    l2 = float(getattr(model, "l2", 0.0))
    if l2:
        return None, f"Coefficients are penalised by l2 = {l2:g}, so they have no standard errors.", []
    if hasattr(model, "inference_"):
        found = model.inference_
        said = f"Intervals of 95% (Wald), from the fit to {counted(found.n, 'row')} that were learned."
        ends = np.moveaxis(found.intervals(LEVEL), 2, 0)
        of_tables = zip(found.standard_errors, *ends, found.p_values, strict=True)
        return [list(columns) for columns in of_tables], said, []
    plainly = "Coefficients without standard errors"
    if model.predictor_.design.of_twin:
        return None, f"{plainly}: they come from a generative model's parameters.", []
    if model.predictor_.coefficients.size > MOST:
        return None, f"{plainly}: they are too many for it.", []
    if of.whole is None:
        return None, f"{plainly}: these need the rows in memory.", []
    try:
        errors = _errors(model, of)
    except DecibanError as reason:
        return None, f"{plainly}.", [f"no standard errors: {reason}"]
    _, estimates = _estimates(model)
    z = float(special.ndtri(0.5 + LEVEL / 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2.0 * special.ndtr(-np.abs(estimates / errors))
    said = (
        f"Intervals of 95% (Wald), by the information in the {counted(of.rows, 'row')} of this report: they are those "
        "of a fit to these rows."
    )
    return (
        [[errors[k], estimates[k] - z * errors[k], estimates[k] + z * errors[k], p[k]] for k in range(len(errors))],
        said,
        [],
    )


def _errors(model: Any, of: Given) -> FloatArray:
    """(m, 1 + p) √ of the diagonal of I⁻¹, I = Σ w a″(η) x xᵀ over the rows, at the model's coefficients.

    Of more than two classes every one has a vector, and these sum to 0: each is d_k − mean d, with d_k the differences
    from the first, whose covariance is I⁻¹.
    """
    objective = model._criterion_again(of.X, of.y, of.sample_weight)
    if not isinstance(objective, Objective):
        raise DecibanError("the rows are not in memory")
    theta = model.predictor_.theta(objective.rows)
    found = Inference.of(objective, theta[1:] - theta[0])
    if len(model.coef_) == len(found.estimates):
        return found.standard_errors
    classes, width = len(theta), found.estimates.shape[1]
    centre = (np.eye(classes) - 1.0 / classes)[:, 1:]
    covariance = found.covariance.reshape(classes - 1, width, classes - 1, width)
    variance = np.einsum("ka,aibi,kb->ki", centre, covariance, centre)
    errors: FloatArray = np.sqrt(np.maximum(variance, 0.0))
    errors[:, list(found.undetermined)] = np.inf
    return errors


# Boundaries ----------------------------------------------------------------------------------------------------------


def boundary(model: Any, of: Given, seed: int, rows: int = 1) -> tuple[Figures | None, list[str]]:
    """Where a model of two columns of numbers changes its mind, with notes on why there is none.

    Where no rows are to be shown, there are no points.
    """
    if gives_numbers(model) or len(model.classes_) < 2 or of.schema.kinds != ("number", "number"):
        return None, []
    sample = of.sample
    X, y, weights = of.X, of.y, of.sample_weight
    if of.whole is None:
        X, y, weights = given(sample.frame), labels_of(sample), sample.weights
    try:
        with hearing() as heard:  # what is said of the twin is no matter of the model
            found = boundary_of(model, X, y, weights, POINTS, seed)
    except DecibanError as reason:
        return None, [f"no picture of the boundary: {reason}"]
    return {
        "names": found.names,
        "low": plain(found.low),
        "high": plain(found.high),
        "classes": found.classes,
        "models": found.models,
        "points": _table(("class", "x", "y"), found.points if rows else []),
        "densities": _table(("class", "line", "order", "x", "y"), found.densities),
        "ties": _table(("model", "line", "order", "x", "y"), found.ties),
        "notes": [*found.notes, *(f"of the refined twin: {message}" for message in heard.messages)],
    }, []


def _table(fields: Sequence[str], rows: list[Row]) -> Figures:
    return table(fields, [[row[field] for field in fields] for row in rows])
