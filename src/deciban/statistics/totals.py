"""Totals: Σwx of each class and column, for columns that hold counts themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from deciban import _kernels
from deciban.errors import TOO_LARGE, forbid, forbid_stored
from deciban.lazy import issparse
from deciban.statistics.moments import Moments
from deciban.statistics.statistic import SumStatistic, require_not_negative, require_weights
from deciban.statistics.sums import Sum
from deciban.types import FloatArray, Labels

NOT_A_COUNT = "is not a count: it must be finite, 0 or more"


@dataclass(frozen=True, eq=False)
class Totals(SumStatistic):
    """N_c(j) = Σ w·x_j over rows of class c: how often word j was used in class c.

    >>> t = Totals(Sum.of([[2.0, 0.0], [1.0, 3.0]]))
    >>> (t + t - t).sum_x.value
    array([[2., 0.],
           [1., 3.]])
    """

    sum_x: Sum  # (K, d) Σ w·x

    @classmethod
    def of(cls, x: Any, labels: Labels, weights: FloatArray | None, classes: int) -> Totals:
        """Collects a float matrix or sparse rows; NaN is missing. A negative or infinite cell raises BadCell."""
        if not issparse(x):
            forbid((x < 0) | np.isinf(x), NOT_A_COUNT)
            return cls(Moments.of(x, labels, weights, classes).sum_x)
        words = _kernels.sum_sparse(x.data, x.indices, x.indptr, x.shape[1], labels, weights, classes)
        if words is None:  # some value is not a count; a missing one adds nothing
            data = np.where(np.isnan(x.data), 0.0, x.data)
            forbid_stored(x, (data < 0) | np.isinf(data), NOT_A_COUNT)
            forbid_stored(x, data >= 2.0**500, TOO_LARGE)
            words = _kernels.sum_sparse(data, x.indices, x.indptr, x.shape[1], labels, weights, classes)
        assert words is not None
        return cls(Sum(words))

    def __sub__(self, other: Self) -> Self:
        rest = self.sum_x - other.sum_x
        require_not_negative(rest)
        return type(self)(rest)

    def check(self, classes: int, columns: int) -> None:
        require_weights("sum_x", self.sum_x, (classes, columns))
