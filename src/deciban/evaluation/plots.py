"""Figures of an Evaluation, and of a model of two columns, for the charts that draw them.

Every chart holds its data (`chart.to_dict()`), a few thousand rows at most, however many rows were judged.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deciban.charts import boundary as planes
from deciban.charts import quality
from deciban.errors import DecibanError
from deciban.evaluation.boundary import Row, boundary_of
from deciban.evaluation.lines import LEVEL, calibration_bins, precision_line, roc_line
from deciban.sources.sampling import seed_of
from deciban.table import numbered
from deciban.types import level_of

Figure = dict[str, Any]

# Judgements ----------------------------------------------------------------------------------------------------------


def roc(evaluation: Any, pos_label: Any = None) -> Any:
    """Sensitivity = tp/(tp + fn) against the false positive rate = fp/(fp + tn), for every threshold.

    The title holds the area below it (AUC) with its 95% interval. `pos_label` is the class to find, by default the
    second of two; of more than two classes, each has a line of its own.

    >>> import deciban as db
    >>> judged = db.Evaluation.of([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.85])
    >>> roc(judged).to_dict()["title"]["text"]
    'ROC of 1: AUC 0.750 (95% interval 0.057 to 1.000)'
    """
    names, curves, each = _curves(evaluation, pos_label)
    areas = [_area(curve, "" if each else "95% interval ") for curve in curves]
    figures = [
        {"line": f"{name}: {area}", "roc": roc_line(curve)}
        for name, area, curve in zip(names, areas, curves, strict=True)
    ]
    heading = "ROC of each class against the others" if each else f"ROC of {names[0]}: AUC {areas[0]}"
    return quality.roc(figures, heading)


def precision_recall(evaluation: Any, pos_label: Any = None) -> Any:
    """Precision = tp/(tp + fp) against recall = tp/(tp + fn), for every threshold.

    The title holds the average precision Σ (recallᵢ − recallᵢ₋₁)·precisionᵢ. `pos_label` is as for `roc`.

    >>> import deciban as db
    >>> judged = db.Evaluation.of([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.85])
    >>> precision_recall(judged).to_dict()["title"]["text"]
    'Precision and recall of 1: average precision 0.833'
    """
    names, curves, each = _curves(evaluation, pos_label)
    means = [_mean_precision(curve) for curve in curves]
    figures = [
        {
            "line": f"{name}: {mean}",
            "precision_recall": precision_line(curve),
            "positives": curve.positives,
            "negatives": curve.negatives,
        }
        for name, mean, curve in zip(names, means, curves, strict=True)
    ]
    one = f"Precision and recall of {names[0]}: average precision {means[0]}"
    return quality.precision_recall(figures, "Precision and recall of each class" if each else one)


def calibration(evaluation: Any, pos_label: Any = None, bins: int = 10) -> Any:
    """Share of rows that are of the class, against the probability the model gave them, in bins; below, the rows.

    A calibrated model lies on the diagonal; bars are 95% intervals (Wilson's). The title holds the expected calibration
    error Σ_bins rows/n·|observed − predicted|. `pos_label` is by default the second of two classes; of more, the class
    that the model gave the most to.

    >>> import deciban as db
    >>> judged = db.Evaluation.of([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.85])
    >>> calibration(judged).to_dict()["vconcat"][0]["title"]["text"]
    'Calibration of 1: ECE 0.125'
    """
    found = calibration_bins(evaluation.calibration(pos_label, bins), bins)
    classes = evaluation.classes
    top = pos_label is None and len(classes) > 2
    name = "the predicted class" if top else str(classes[-1] if pos_label is None else pos_label)
    heading = f"Calibration of {name}: ECE {evaluation.ece(pos_label, bins):.3f}"
    up = "share that was right" if top else f"share of {name}"
    return quality.calibration({"bins": found}, heading, f"probability given to {name}", up)


def confusion(evaluation: Any) -> Any:
    """How many rows of each true class were given which class; the colour is their share of the true class.

    >>> import deciban as db
    >>> judged = db.Evaluation.of([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.85])
    >>> confusion(judged).to_dict()["title"]["text"]
    'Confusion: accuracy 0.750'
    """
    _require_rows(evaluation)
    counts = np.asarray(evaluation.confusion).tolist()
    return quality.confusion(numbered(evaluation.classes), counts, f"Confusion: accuracy {evaluation.accuracy:.3f}")


def _curves(evaluation: Any, pos_label: Any) -> tuple[list[str], list[Any], bool]:
    """The names of the classes that are drawn, their curves, and whether that is each class."""
    _require_rows(evaluation)
    classes = evaluation.classes
    each = pos_label is None and len(classes) > 2
    wanted = classes if each else (classes[-1] if pos_label is None else level_of(pos_label),)
    return numbered(wanted), [evaluation.roc(label) for label in wanted], each


def _area(curve: Any, word: str) -> str:
    """AUC and its interval, which there is none of with one row of a class."""
    auc = curve.auc
    if np.isnan(auc):
        return "not defined (one class only)"
    low, high = curve.interval(LEVEL)
    return f"{auc:.3f}" + ("" if np.isnan(low) else f" ({word}{low:.3f} to {high:.3f})")


def _mean_precision(curve: Any) -> str:
    mean = curve.average_precision
    return "not defined (no row of the class)" if np.isnan(mean) else f"{mean:.3f}"


def _require_rows(evaluation: Any) -> None:
    if not evaluation.rows:
        raise DecibanError("there are no rows to draw")


# Boundary ------------------------------------------------------------------------------------------------------------


def boundary(
    model: Any, X: Any, y: Any, *, sample_weight: Any = None, points: int = 2000, random_state: int | None = 0
) -> Any:
    """Where the most probable class of a model of two columns of numbers changes: s_j(x) = s_k(x) ≥ all other scores.

    - A generative model is drawn with the density of each class, at e^−½, e^−2 and e^−4½ of its peak (1, 2 and 3
      standard deviations of a normal one), and with the boundary of its twin after `refine(X, y)`: the discriminative
      fit of the same form. Before refining, the twin's boundary is the model's own.
    - Any other classifier is drawn with its boundary alone.
    - `X`, `y`: rows as for `fit`. At most `points` of them are drawn, a random sample that `random_state` gives again.

    >>> import deciban as db
    >>> X = [[0.0, 0.0], [1.0, 1.0], [1.0, 0.0], [3.0, 0.5], [2.0, 1.0], [1.5, 2.0], [0.5, 0.5]]
    >>> y = ["a", "a", "a", "b", "b", "b", "b"]
    >>> chart = boundary(db.GaussianDiscriminant().fit(X, y), X, y)
    >>> chart.to_dict()["title"]["text"]
    'Decision boundary of GaussianDiscriminant'
    """
    found = boundary_of(model, X, y, sample_weight, points, seed_of(random_state))
    tables = {name: _table(getattr(found, name)) for name in ("points", "densities", "ties")}
    sides = {"low": found.low.tolist(), "high": found.high.tolist(), "names": found.names}
    named = {"classes": found.classes, "models": found.models, "notes": found.notes}
    return planes.boundary({**tables, **sides, **named}, f"Decision boundary of {type(model).__name__}")


def _table(rows: list[Row]) -> Figure:
    return {"fields": list(rows[0]) if rows else [], "rows": [list(row.values()) for row in rows]}
