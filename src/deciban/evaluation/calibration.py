"""Calibration: do things that are given 70% happen in 70% of cases?"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from deciban.errors import DecibanError
from deciban.evaluation.cells import Cells
from deciban.table import Table
from deciban.types import FloatArray

HEADER = ("predicted", "observed", "rows")


def calibration_table(cells: Cells, bins: int, strategy: str) -> Table:
    """Of each bin that has rows: mean score, share of positives, Σ w.

    Bin i holds edgeᵢ < score ≤ edgeᵢ₊₁, the first its lower edge too, as in scikit-learn's `calibration_curve`.

    >>> cells = Cells(np.array([0.2, 0.3, 0.9]), np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 1.0]))
    >>> calibration_table(cells, 2, "uniform")
    calibration
      predicted  observed  rows
      0.25            0.5     2
      0.9               1     1
    """
    if not isinstance(bins, (int, np.integer)) or bins < 1:
        raise DecibanError(f"bins is {bins!r}: it must be a whole number, 1 or more")
    edges = _edges(cells, int(bins), strategy)
    ends = [0, *np.searchsorted(cells.values, edges[1:-1], side="right"), len(cells.values)]
    weights = cells.negative + cells.positive
    weighted = weights * cells.middle
    found = []
    for start, end in pairwise(ends):
        if start < end:
            rows = float(weights[start:end].sum())
            positive = float(cells.positive[start:end].sum())
            found.append((float(weighted[start:end].sum()) / rows, positive / rows, rows))
    return Table("calibration", HEADER, tuple(found))


def calibration_error(table: Table) -> float:
    """Σ rows·|observed − predicted| / Σ rows; NaN without rows."""
    if not table.rows:
        return float("nan")
    predicted, observed, rows = np.array(table.rows).T
    return float((rows * np.abs(observed - predicted)).sum() / rows.sum())


def _edges(cells: Cells, bins: int, strategy: str) -> FloatArray:
    if strategy == "uniform":
        return np.linspace(0.0, 1.0, bins + 1)
    if strategy == "quantile":
        return quantiles(cells, np.linspace(0.0, 1.0, bins + 1))
    raise DecibanError(f'strategy is {strategy!r}: use "uniform" or "quantile"')


def quantiles(cells: Cells, shares: FloatArray) -> FloatArray:
    """np.percentile of the scores, each repeated by its weight."""
    if not len(cells.values):
        return shares
    running = np.cumsum(cells.negative + cells.positive)
    place = np.maximum(shares * 100 / 100 * (running[-1] - 1), 0.0)
    lower = np.floor(place)
    t = place - lower
    last = len(cells.values) - 1
    a, b = (cells.values[np.minimum(np.searchsorted(running, p, side="right"), last)] for p in (lower, lower + 1))
    # rounded as numpy does, since a score that is an edge must not come to lie beside it
    return np.asarray(np.where(t >= 0.5, b - (b - a) * (1 - t), a + (b - a) * t), np.float64)
