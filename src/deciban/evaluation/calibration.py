"""Calibration: does what is predicted with probability 0.7 happen in 70% of cases?"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from deciban.errors import DecibanError
from deciban.evaluation.score_counts import ScoreCounts
from deciban.table import Table
from deciban.types import FloatArray

HEADER = ("predicted", "observed", "rows")


def calibration_table(counts: ScoreCounts, bins: int, strategy: str) -> Table:
    """Mean score, share of positives and Σ w of each bin that has rows.

    Bin i holds edgeᵢ < score ≤ edgeᵢ₊₁, the first its lower edge too, as in scikit-learn's `calibration_curve`.

    >>> counts = ScoreCounts(np.array([0.2, 0.3, 0.9]), np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 1.0]))
    >>> calibration_table(counts, 2, "uniform")
    calibration
      predicted  observed  rows
      0.25            0.5     2
      0.9               1     1
    """
    if not isinstance(bins, (int, np.integer)) or bins < 1:
        raise DecibanError(f"bins is {bins!r}: it must be a whole number, 1 or more")
    edges = np.linspace(0.0, 1.0, int(bins) + 1)
    if strategy not in ("uniform", "quantile"):
        raise DecibanError(f'strategy is {strategy!r}: use "uniform" or "quantile"')
    if strategy == "quantile":
        edges = quantiles(counts, edges)
    ends = [0, *np.searchsorted(counts.values, edges[1:-1], side="right"), len(counts.values)]
    weights = counts.negative + counts.positive
    weighted = weights * counts.middle
    table = []
    for start, end in pairwise(ends):
        if start < end:
            rows = float(weights[start:end].sum())
            positive = float(counts.positive[start:end].sum())
            table.append((float(weighted[start:end].sum()) / rows, positive / rows, rows))
    return Table("calibration", HEADER, tuple(table))


def calibration_error(table: Table) -> float:
    """Σ rows·|observed − predicted| / Σ rows; NaN without rows."""
    if not table.rows:
        return float("nan")
    predicted, observed, rows = np.array(table.rows).T
    return float((rows * np.abs(observed - predicted)).sum() / rows.sum())


def quantiles(counts: ScoreCounts, shares: FloatArray) -> FloatArray:
    """np.percentile of the scores, each repeated by its weight."""
    if not len(counts.values):
        return shares
    running = np.cumsum(counts.negative + counts.positive)
    position = np.maximum(shares * 100 / 100 * (running[-1] - 1), 0.0)
    lower = np.floor(position)
    t = position - lower
    last = len(counts.values) - 1
    a, b = (counts.values[np.minimum(np.searchsorted(running, p, side="right"), last)] for p in (lower, lower + 1))
    # rounded as numpy does, so that a score that is an edge stays on it
    return np.asarray(np.where(t >= 0.5, b - (b - a) * (1 - t), a + (b - a) * t), np.float64)
