"""The figures of an evaluation's charts: a few thousand points at most, for any number of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deciban.errors import DecibanError
from deciban.evaluation.curves import LEVEL, calibration_bins, precision_line, roc_line
from deciban.plots.figures import Figures
from deciban.table import numbered
from deciban.types import Level, level_of

if TYPE_CHECKING:
    from deciban.evaluation.evaluation import Evaluation
    from deciban.evaluation.roc import Roc


def roc_figures(evaluation: Evaluation, pos_label: Level = None) -> Figures:
    """Sensitivity = tp/(tp + fn) against the false positive rate = fp/(fp + tn), for every threshold."""
    curves, each = _rocs(evaluation, pos_label)
    areas = [_area(roc, "" if each else "95% interval ") for roc in curves.values()]
    lines = [
        {"line": f"{name}: {area}", "roc": roc_line(roc)}
        for (name, roc), area in zip(curves.items(), areas, strict=True)
    ]
    heading = "ROC of each class against the others" if each else f"ROC of {next(iter(curves))}: AUC {areas[0]}"
    return {"curves": lines, "heading": heading}


def precision_recall_figures(evaluation: Evaluation, pos_label: Level = None) -> Figures:
    """Precision = tp/(tp + fp) against recall = tp/(tp + fn), for every threshold.

    >>> import deciban as db
    >>> evaluation = db.Evaluation.of([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.85])
    >>> precision_recall_figures(evaluation)["heading"]
    'Precision and recall of 1: average precision 0.833'
    """
    curves, each = _rocs(evaluation, pos_label)
    means = [_average_precision(roc) for roc in curves.values()]
    lines = [
        {"line": f"{name}: {mean}", "precision_recall": precision_line(roc)}
        | {"positives": roc.positives, "negatives": roc.negatives}
        for (name, roc), mean in zip(curves.items(), means, strict=True)
    ]
    single = f"Precision and recall of {next(iter(curves))}: average precision {means[0]}"
    return {"curves": lines, "heading": "Precision and recall of each class" if each else single}


def calibration_figures(evaluation: Evaluation, pos_label: Level = None, bins: int = 10) -> Figures:
    """Bins of the predicted probability, each with the observed share and its 95% interval (Wilson's)."""
    table = calibration_bins(evaluation.calibration(pos_label, bins), bins)
    top = pos_label is None and len(evaluation.classes) > 2
    name = "the predicted class" if top else str(evaluation.classes[-1] if pos_label is None else pos_label)
    return {
        "bins": table,
        "heading": f"Calibration of {name}: ECE {evaluation.ece(pos_label, bins):.3f}",
        "x_title": f"predicted probability of {name}",
        "y_title": "accuracy" if top else f"observed share of {name}",
    }


def confusion_figures(evaluation: Evaluation) -> Figures:
    """Σ w by true and predicted class."""
    _require_rows(evaluation)
    return {
        "names": numbered(evaluation.classes),
        "counts": np.asarray(evaluation.confusion).tolist(),
        "heading": f"Confusion: accuracy {evaluation.accuracy:.3f}",
    }


def _rocs(evaluation: Evaluation, pos_label: Level) -> tuple[dict[str, Roc], bool]:
    """The ROC curves to draw, by class; and whether these are all of three classes or more."""
    _require_rows(evaluation)
    classes = evaluation.classes
    each = pos_label is None and len(classes) > 2
    drawn = classes if each else (classes[-1] if pos_label is None else level_of(pos_label),)
    return dict(zip(numbered(drawn), map(evaluation.roc, drawn), strict=True)), each


def _area(roc: Roc, prefix: str) -> str:
    """AUC as text, with its interval if both classes have two rows."""
    auc = roc.auc
    if np.isnan(auc):
        return "not defined (one class only)"
    low, high = roc.interval(LEVEL)
    return f"{auc:.3f}" + ("" if np.isnan(low) else f" ({prefix}{low:.3f} to {high:.3f})")


def _average_precision(roc: Roc) -> str:
    mean = roc.average_precision
    return "not defined (no row of the class)" if np.isnan(mean) else f"{mean:.3f}"


def _require_rows(evaluation: Evaluation) -> None:
    if not evaluation.rows:
        raise DecibanError("there are no rows to draw")
