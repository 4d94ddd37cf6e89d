"""Figures of linear models: coefficients, the path of the solver; and the decision boundary of any model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deciban.errors import DecibanError, capture_warnings
from deciban.evaluation.boundary import Row, boundary_of
from deciban.evaluation.fitted_model import FittedModel, LinearFit
from deciban.lazy import lazy
from deciban.linear.inference import Inference
from deciban.linear.objective import Objective
from deciban.plots.figures import Figures, counted, plain, table
from deciban.report.report_input import ReportInput, as_input, labels_of
from deciban.table import numbered
from deciban.types import FloatArray

special = lazy("scipy.special")

LEVEL = 0.95
FIELDS = ("name", "estimate", "error", "low", "high", "p")
MOST = 1000  # coefficients for which standard errors are computed
SHOWN = 1000  # coefficients in a table
POINTS = 1000  # in the chart of a boundary


def linear(model: FittedModel, data: ReportInput) -> Figures | None:
    """Coefficients of a linear model; None for others."""
    model = model.base_model_
    fit = model.linear_fit_
    if fit is None:
        return None
    titles, estimates = _titles(model, fit), fit.estimates
    intervals, text, notes = _intervals(fit, data)
    names = ["(intercept)", *fit.predictor.design.names]
    listed = np.arange(len(names))
    if len(names) > SHOWN:
        size = np.abs(estimates[:, 1:]).max(axis=0)
        listed = np.sort(np.append(0, 1 + np.argsort(-size, kind="stable")[: SHOWN - 1]))
        notes.append(f"the {SHOWN:,} largest of {len(names):,} coefficients are listed")
    tables = []
    for k, title in enumerate(titles):
        columns = [estimates[k], *([np.full(len(names), np.nan)] * 4 if intervals is None else intervals[k])]
        cells = np.column_stack(columns)[listed]
        rows = [(names[i], *row) for i, row in zip(listed, np.where(np.isfinite(cells), cells, np.nan), strict=True)]
        tables.append({"title": title, "rows": table(FIELDS, rows)})
    link = "" if model.response_ is None else f"{model.response_.link} link"
    return {
        "sentence": text,
        "unit": link if model.task == "regression" else "nats of log-odds",
        "coefficients": tables,
        "path": _path(fit),
        "notes": notes if fit.status == "ok" else [*notes, fit.status],
    }


def _path(fit: LinearFit) -> Figures | None:
    """The iterations of the solver, with all digits, since objectives differ in the last ones."""
    fields = ["iteration", "objective", "gradient", "step"]
    return None if fit.path is None else {"fields": fields, "rows": plain(fit.path.rows)}


def _titles(model: FittedModel, fit: LinearFit) -> list[str]:
    """The title of each table of coefficients."""
    if model.task == "regression":
        return ["coefficients"]
    names = numbered(model.classes_.tolist())
    if len(fit.estimates) < len(names):
        return [f"log-odds of {name} against {names[0]}" for name in names[1:]]
    return [f"score of {name}" for name in names]


def _intervals(fit: LinearFit, data: ReportInput) -> tuple[list[list[FloatArray]] | None, str, list[str]]:
    """Standard errors, ends of 95% intervals and p-values (1 + p) for each table, or None; a sentence; and notes."""
    if fit.l2:
        return None, f"Coefficients are penalised by l2 = {fit.l2:g}, so they have no standard errors.", []
    if fit.inference is not None:
        text = f"95% Wald intervals, from the fit to {counted(fit.inference.n, 'training row')}."
        ends = np.moveaxis(fit.inference.intervals(LEVEL), 2, 0)
        tables = zip(fit.inference.standard_errors, *ends, fit.inference.p_values, strict=True)
        return [list(columns) for columns in tables], text, []
    without = "Coefficients without standard errors"
    if fit.predictor.design.has_sufficient_statistics:
        return None, f"{without}: they come from a generative model's parameters.", []
    if fit.predictor.coefficients.size > MOST:
        return None, f"{without}: there are too many.", []
    if data.whole is None:
        return None, f"{without}: these need the rows in memory.", []
    try:
        errors = _errors(fit, data)
    except DecibanError as reason:
        return None, f"{without}.", [f"no standard errors: {reason}"]
    estimates, z = fit.estimates, float(special.ndtri(0.5 + LEVEL / 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2.0 * special.ndtr(-np.abs(estimates / errors))
    text = f"95% Wald intervals, by the information in the {counted(data.rows, 'row')} of this report."
    columns = errors, estimates - z * errors, estimates + z * errors, p
    return [list(row) for row in zip(*columns, strict=True)], text, []


def _errors(fit: LinearFit, data: ReportInput) -> FloatArray:
    """(m, 1 + p) √ of the diagonal of I⁻¹, I = Σ w a″(η) x xᵀ over the rows, at the model's coefficients.

    With three classes or more every one has a vector, and these sum to 0: each is d_k − mean d, with d_k the
    differences from the first, whose covariance is I⁻¹.
    """
    objective = None if fit.objective is None else fit.objective(data.X, data.y, data.sample_weight)
    if not isinstance(objective, Objective):
        raise DecibanError("the rows are not in memory")
    theta = fit.predictor.theta(objective.rows)
    inference = Inference.of(objective, theta[1:] - theta[0])
    if len(fit.estimates) == len(inference.estimates):
        return inference.standard_errors
    classes, width = len(theta), inference.estimates.shape[1]
    centre = (np.eye(classes) - 1.0 / classes)[:, 1:]
    covariance = inference.covariance.reshape(classes - 1, width, classes - 1, width)
    variance = np.einsum("ka,aibi,kb->ki", centre, covariance, centre)
    errors: FloatArray = np.sqrt(np.maximum(variance, 0.0))
    errors[:, list(inference.undetermined)] = np.inf
    return errors


def boundary(model: FittedModel, data: ReportInput, seed: int, rows: int = 1) -> tuple[Figures | None, list[str]]:
    """The decision boundary of a model of two numeric features, or notes on why there is none.

    With rows=0 there are no points.
    """
    if model.task == "regression" or len(model.classes_) < 2 or data.schema.kinds != ("number", "number"):
        return None, []
    X, y, weights = data.X, data.y, data.sample_weight
    if data.whole is None:
        X, y, weights = as_input(data.sample.frame), labels_of(data.sample), data.sample.weights
    try:
        with capture_warnings() as captured:  # warnings about the refined linear form are not about the model
            plane = boundary_of(model, X, y, weights, POINTS, seed)
    except DecibanError as reason:
        return None, [f"no decision boundary: {reason}"]
    return {
        "names": plane.names,
        "low": plain(plane.low),
        "high": plain(plane.high),
        "classes": plane.classes,
        "models": plane.models,
        "points": _table(("class", "x", "y"), plane.points if rows else []),
        "densities": _table(("class", "line", "order", "x", "y"), plane.densities),
        "ties": _table(("model", "line", "order", "x", "y"), plane.ties),
        "notes": [*plane.notes, *(f"refined linear form: {message}" for message in captured.messages)],
    }, []


def _table(fields: Sequence[str], rows: list[Row]) -> Figures:
    return table(fields, [[row[field] for field in fields] for row in rows])
