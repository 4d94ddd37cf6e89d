"""ROC and precision-recall curves and calibration bins, as tables for charts and reports."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtri

from deciban.evaluation.roc import Roc
from deciban.plots.contours import thinned
from deciban.plots.figures import Figures, plain
from deciban.table import Table
from deciban.types import FloatArray

LEVEL = 0.95  # of intervals


def at_thresholds(roc: Roc, thresholds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(m) Σ w of positives and of negatives with a score at each threshold or above: `Roc.at` for many thresholds.

    >>> roc = Roc.of([0, 1, 0, 1], [0.1, 0.35, 0.4, 0.8])
    >>> at_thresholds(roc, np.array([0.0, 0.4, 0.41, 1.0]))
    (array([2., 1., 1., 0.]), array([2., 1., 0., 0.]))
    """
    index = len(roc.thresholds) - 1 - np.searchsorted(roc.thresholds[:0:-1], thresholds)
    return roc.tp[index], roc.fp[index]


def roc_line(roc: Roc) -> Figures:
    """The points that draw a ROC curve, by descending thresholds; the first, above all scores, has no threshold.

    >>> roc_line(Roc.of([0, 1], [0.1, 0.8]))["rows"]
    [[0.0, 0.0, None], [0.0, 1.0, 0.8], [1.0, 1.0, 0.1]]
    """
    return _line(("false_positive_rate", "sensitivity"), roc.false_positive_rate, roc.sensitivity, roc)


def precision_line(roc: Roc) -> Figures:
    """The same for the precision-recall curve."""
    return _line(("recall", "precision"), roc.sensitivity, roc.precision, roc)


def _line(fields: tuple[str, str], x: FloatArray, y: FloatArray, roc: Roc) -> Figures:
    """Points, thinned where the chart stays the same; none if a rate is 0/0 throughout."""
    points = np.column_stack([x, y])
    known = np.isfinite(points).all(axis=1)
    points, thresholds = points[known], np.asarray(roc.thresholds)[known]
    drawn = thinned(points) if len(points) > 1 else np.zeros(0, np.intp)
    shown = np.where(np.isfinite(thresholds[drawn]), thresholds[drawn], np.nan)
    return {"fields": [*fields, "threshold"], "rows": plain(np.column_stack([points[drawn], shown]))}


def calibration_bins(calibration: Table, bins: int, share: float = 1.0) -> Figures:
    """The bins of equal width that have rows, with their edges and Wilson's interval of the observed share.

    A mean on an edge belongs to the bin below. `share` is the number of rows that one unit of weight stands for.
    """
    edges = np.linspace(0.0, 1.0, bins + 1)
    predicted, observed, rows = np.array(calibration.rows, np.float64).reshape(-1, 3).T
    bin_ = np.searchsorted(edges[1:-1], predicted)
    low, high = wilson(observed, rows * share)
    fields = ["low", "high", "predicted", "observed", "observed_low", "observed_high", "rows"]
    columns = (edges[bin_], edges[bin_ + 1], predicted, observed, low, high, rows)
    return {"fields": fields, "rows": plain(np.column_stack(columns))}


def wilson(share: Any, rows: Any, level: float = LEVEL) -> tuple[Any, Any]:
    """(p + z²/2n ± z √(p(1 − p)/n + z²/4n²)) / (1 + z²/n): Wilson's interval (1927) of a share of n rows.

    >>> [round(float(end), 4) for end in wilson(0.5, 100)]
    [0.4038, 0.5962]
    """
    p, n = np.asarray(share, np.float64), np.asarray(rows, np.float64)
    z = float(ndtri(0.5 + level / 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        centre, margin = p + z**2 / (2 * n), z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
        low, high = (centre - margin) / (1 + z**2 / n), (centre + margin) / (1 + z**2 / n)
    return np.clip(low, 0.0, 1.0)[()], np.clip(high, 0.0, 1.0)[()]
