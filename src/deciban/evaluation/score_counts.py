"""The weight of each distinct score among positives and negatives, from which all curves are made."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban.statistics.histogram import Histogram
from deciban.types import FloatArray

Floats = NDArray[np.floating[Any]]
TWO_THREADS = 1 << 16  # rows from which on a second thread is faster


@dataclass(frozen=True, eq=False)
class ScoreCounts:
    """N(s) and P(s): Σ w of the negatives and of the positives whose score is s.

    >>> import numpy as np
    >>> counts = ScoreCounts.of(np.array([0.8, 0.1, 0.8]), np.array([True, False, False]), np.array([1.0, 1.0, 2.0]))
    >>> counts.values, counts.negative, counts.positive
    (array([0.1, 0.8]), array([1., 2.]), array([0., 1.]))
    """

    values: FloatArray  # (m) ascending, distinct
    negative: FloatArray  # (m) Σ w
    positive: FloatArray  # (m) Σ w
    upper: FloatArray | None = None  # (m) the largest score that each value stands for, where bits were dropped

    @property
    def middle(self) -> FloatArray:
        """(m) the score that each value stands for in a mean."""
        return self.values if self.upper is None else 0.5 * (self.values + self.upper)

    @classmethod
    def of(cls, scores: Floats, is_positive: NDArray[np.bool_], weights: FloatArray) -> ScoreCounts:
        """`is_positive` (n) says which rows are positive. Scores may be infinite, but not NaN."""
        order = np.argsort(scores)
        scores, is_positive, weights = scores[order], is_positive[order], weights[order]
        starts = _starts(scores)
        positive = np.where(is_positive, weights, 0.0)
        sums = [np.add.reduceat(w, starts) if len(starts) else w for w in (weights - positive, positive)]
        return cls(scores[starts].astype(np.float64) + 0.0, *sums)

    @classmethod
    def from_histogram(cls, histogram: Histogram) -> ScoreCounts:
        """From one column and the classes (negative, positive); where bits were dropped, a value is the least score."""
        negative, positive = histogram.table(0).value
        upper = histogram.upper(0) if histogram.levels.any() else None
        return cls(histogram.lower(0), negative, positive, upper)


def sort_by_class(scores: Floats, is_positive: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
    """The scores of the negatives and of the positives, each ascending; in two threads if there are many."""

    def ascending(rows: NDArray[np.bool_]) -> FloatArray:
        sorted_scores = scores[rows]
        sorted_scores.sort()
        return sorted_scores.astype(np.float64, copy=False)

    if len(scores) < TWO_THREADS:
        return ascending(~is_positive), ascending(is_positive)
    with ThreadPoolExecutor(2) as pool:
        negatives, positives = pool.map(ascending, (~is_positive, is_positive))
    return negatives, positives


def _starts(ascending: Floats) -> NDArray[np.intp]:
    """The positions at which a new value begins."""
    new = np.ones(len(ascending), np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=new[1:])
    return np.flatnonzero(new)
