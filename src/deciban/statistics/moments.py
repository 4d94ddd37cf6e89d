"""Moments: Σw, Σwx and Σwx² of each class and column, exactly."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.errors import INFINITE, TOO_LARGE, BadCell, require
from deciban.statistics.statistic import SumStatistic, never_learned, require_not_negative, require_weights
from deciban.statistics.sums import Sum, summing
from deciban.types import FloatArray


@dataclass(frozen=True, eq=False)
class Moments(SumStatistic):
    """n = Σw, Σwx, Σwx² over the values present, per class and column; mean = Σwx/n, squares = Σw(x − mean)².

    The three sums are exact (see Sum), so mean and squares are as good as a double can hold however far the data
    lie from zero, and squares are never negative.

    >>> import numpy as np
    >>> m = Moments.of(np.array([[1e8 + 1], [1e8 + 3], [np.nan]]), np.zeros(3, np.int32), None, 1)
    >>> m.count.value.item(), m.mean.item(), m.squares.item()
    (2.0, 100000002.0, 2.0)
    """

    count: Sum  # (K, d) Σ w
    sum_x: Sum  # (K, d) Σ w·x
    sum_xx: Sum  # (K, d) Σ w·x²

    @classmethod
    def of(cls, x: NDArray[Any], codes: NDArray[np.int32], weights: FloatArray | None, classes: int) -> Moments:
        """Collects a float matrix, NaN missing. A cell that is infinite or too large to be squared raises BadCell."""
        count, sum_x, sum_xx, bad = _kernels.moments(x, codes, weights, classes)
        if bad is not None:
            raise BadCell(*bad, INFINITE if np.isinf(x[bad]) else TOO_LARGE)
        return cls(Sum(count), Sum(sum_x), Sum(sum_xx))

    @cached_property
    def _centred(self) -> tuple[FloatArray, FloatArray]:
        with summing():
            mean, squares = _kernels.centre(self.count.flat_words, self.sum_x.flat_words, self.sum_xx.flat_words)
        return mean.reshape(self.count.shape), squares.reshape(self.count.shape)

    @property
    def mean(self) -> FloatArray:
        """(K, d); 0 where there are no rows."""
        return self._centred[0]

    @property
    def squares(self) -> FloatArray:
        """(K, d) Σ w·(x − mean)²."""
        return self._centred[1]

    def pooled(self) -> Moments:
        """(1, d) all classes as one."""
        return Moments(*(Sum(s.total().words[:, np.newaxis]) for s in (self.count, self.sum_x, self.sum_xx)))

    def __sub__(self, other: Self) -> Self:
        rest = type(self)(self.count - other.count, self.sum_x - other.sum_x, self.sum_xx - other.sum_xx)
        require_not_negative(rest.count, rest.sum_xx)
        if not rest._possible(self.count.value):
            raise never_learned("no rows have the sums that would remain")
        return rest

    def _possible(self, count: FloatArray) -> bool:
        """Whether there are rows with such sums; `count` (K, d) is of the rows whose squares were summed."""
        empty = self.count.value == 0
        underflow = 2.0**-1060 * count  # of squares of numbers below 1e-154, at most
        left_over = self.sum_x.value[empty].any() or self.sum_xx.value[empty].any()
        return not left_over and not (self.squares < -underflow).any()

    def check(self, classes: int, columns: int) -> None:
        shape = (classes, columns)
        require_weights("count", self.count, shape)
        self.sum_x.check("sum_x", shape)
        require_weights("sum_xx", self.sum_xx, shape)
        require(self._possible(self.count.value), "no rows have these sums")
