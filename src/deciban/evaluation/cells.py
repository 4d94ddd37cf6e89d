"""Cells: how much weight each score has, among the positives and among the negatives. Every curve starts here."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban.statistics.histogram import Histogram
from deciban.types import FloatArray

Floats = NDArray[np.floating[Any]]
APART = 1 << 16  # rows from which a second thread is worth its start


@dataclass(frozen=True, eq=False)
class Cells:
    """N(s) and P(s): Σ w of the negatives and of the positives whose score is s.

    >>> import numpy as np
    >>> cells = Cells.of(np.array([0.8, 0.1, 0.8]), np.array([True, False, False]), np.array([1.0, 1.0, 2.0]))
    >>> cells.values, cells.negative, cells.positive
    (array([0.1, 0.8]), array([1., 2.]), array([0., 1.]))
    """

    values: FloatArray  # (m) ascending, all different
    negative: FloatArray  # (m) Σ w
    positive: FloatArray  # (m) Σ w
    upper: FloatArray | None = None  # (m) the largest score of each cell, where bits were dropped

    @property
    def middle(self) -> FloatArray:
        """(m) what stands for the scores of a cell in a mean."""
        return self.values if self.upper is None else 0.5 * (self.values + self.upper)

    @classmethod
    def of(cls, scores: Floats, member: NDArray[np.bool_], weights: FloatArray) -> Cells:
        """`member` says which rows are positive. Scores may be infinite, but not NaN."""
        order = np.argsort(scores)
        scores, member, weights = scores[order], member[order], weights[order]
        starts = _starts(scores)
        positive = np.where(member, weights, 0.0)
        sums = [np.add.reduceat(w, starts) if len(starts) else w for w in (weights - positive, positive)]
        return cls(scores[starts].astype(np.float64) + 0.0, *sums)

    @classmethod
    def from_histogram(cls, histogram: Histogram) -> Cells:
        """Of one column, classes (negative, positive). Where bits were dropped, a score is the least of its cell."""
        negative, positive = histogram.table(0).value
        upper = histogram.upper(0) if histogram.levels.any() else None
        return cls(histogram.lower(0), negative, positive, upper)


def sorted_apart(scores: Floats, member: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
    """The scores of the negatives and of the positives, each ascending; numpy selects and sorts without the lock."""

    def ascending(chosen: NDArray[np.bool_]) -> FloatArray:
        part = scores[chosen]
        part.sort()
        return part.astype(np.float64, copy=False)

    if len(scores) < APART:
        return ascending(~member), ascending(member)
    with ThreadPoolExecutor(2) as pool:
        negatives, positives = pool.map(ascending, (~member, member))
    return negatives, positives


def _starts(ascending: Floats) -> NDArray[np.intp]:
    """Where a new value begins."""
    new = np.ones(len(ascending), np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=new[1:])
    return np.flatnonzero(new)
