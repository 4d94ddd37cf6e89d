"""An evaluation as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deciban.display.summary import Summary, counted_word
from deciban.evaluation.threshold_rates import Rates
from deciban.table import Table

if TYPE_CHECKING:
    from deciban.evaluation.evaluation import Evaluation

BY_CLASS = ("class", "rows", "sensitivity", "specificity", "precision", "npv", "f1", "auc")


def summary(evaluation: Evaluation) -> Summary:
    """Metrics, confusion matrix, rates by class, and folds if there are any."""
    title = f"evaluation: {counted_word(evaluation.rows, 'row')}, {counted_word(len(evaluation.classes), 'class')}"
    tables = [metrics(evaluation), confusion(evaluation), by_class(evaluation)]
    if evaluation.parts:
        tables.append(folds(evaluation))
    return Summary(title, tuple(tables), tuple(_notes(evaluation)))


def metrics(evaluation: Evaluation) -> Table:
    """(metric, value); the second of two classes is the positive one."""
    values = {
        "rows": evaluation.rows,
        "accuracy": evaluation.accuracy,
        "error": evaluation.error,
        "log_loss": evaluation.log_loss,
        "brier": evaluation.brier,
    }
    if len(evaluation.classes) == 2:
        roc = evaluation.roc()
        low, high = roc.interval()
        values |= {"auc": roc.area, "auc_low": low, "auc_high": high, "average_precision": roc.precision_area}
    else:
        values["mean_auc"] = mean_auc(evaluation)
    if len(evaluation.classes) > 1:
        values["ece"] = evaluation.ece()
    return Table("metrics", ("metric", "value"), tuple(values.items()))


def confusion(evaluation: Evaluation) -> Table:
    names = [str(level) for level in evaluation.classes]
    rows = ((name, *counts) for name, counts in zip(names, evaluation.confusion.tolist(), strict=True))
    return Table("confusion: rows are true, columns predicted", ("true", *names), tuple(rows))


def by_class(evaluation: Evaluation) -> Table:
    """Each class against all others."""
    matrix = evaluation.confusion
    total, right = float(matrix.sum()), np.diag(matrix)
    predicted, count = matrix.sum(axis=0), matrix.sum(axis=1)
    table = []
    for k, level in enumerate(evaluation.classes):
        tp, fp, fn = float(right[k]), float(predicted[k] - right[k]), float(count[k] - right[k])
        rates = Rates(float("nan"), tp, fp, total - tp - fp - fn, fn)
        quotients = (rates.sensitivity, rates.specificity, rates.precision, rates.negative_predictive_value, rates.f1)
        table.append((level, float(count[k]), *quotients, evaluation.areas[k]))
    return Table("by class: each against all others", BY_CLASS, tuple(table))


def mean_auc(evaluation: Evaluation) -> float:
    """The unweighted mean of the AUC of each class against all others; NaN where a class has none.

    Classes that the model does not know are left out: there is no score for them, so their AUC is always 0.5.
    """
    areas = np.array(evaluation.areas)[evaluation._known_classes]
    return float(areas.mean()) if areas.size else float("nan")


def unknown_rows(evaluation: Evaluation) -> str:
    """How many rows have a class that the model does not know, and what they count as; "" if there are none."""
    rows = evaluation.unknown
    if not rows:
        return ""
    counted = "counts as an error" if rows == 1 else "count as errors"
    return f"{counted_word(rows, 'row')} of a class that the model does not know {counted}: its probability is 0"


def folds(evaluation: Evaluation) -> Table:
    """Metrics of each fold, then their mean and standard deviation."""
    auc = "auc" if len(evaluation.classes) == 2 else "mean_auc"
    parts = [dict(metrics(part).rows) for part in evaluation.parts]
    header = ("accuracy", "log_loss", auc)
    table = np.array([[part.get(name, np.nan) for name in header] for part in parts])
    spread = table.std(axis=0, ddof=1) if len(table) > 1 else np.full(len(header), np.nan)
    named = [*((str(i), row) for i, row in enumerate(table)), ("mean", table.mean(axis=0)), ("sd", spread)]
    return Table("folds", ("fold", *header), tuple((name, *row.tolist()) for name, row in named))


def _notes(evaluation: Evaluation) -> list[str]:
    notes = []
    if len(evaluation.classes) == 2:
        notes.append(f"auc (with its 95% interval), average_precision and ece are for {evaluation.classes[1]!r}")
    elif len(evaluation.classes) > 2:
        classes = "classes that the model knows" if evaluation.unknown else "classes"
        notes.append(
            f"mean_auc is the mean over {classes}, each against all others; ece is for the largest probability"
        )
    if evaluation.unknown:
        notes.append(unknown_rows(evaluation))
    error = max((evaluation.auc_error(level) for level in evaluation.classes), default=0.0)
    if error > 0:
        notes.append(
            f"more than {evaluation.cap} distinct scores: their last bits were dropped, so auc is exact within "
            f"{error:.2g}, and in calibration and average_precision scores less than {evaluation.widest:.2g} apart may "
            "count as one"
        )
    return notes
