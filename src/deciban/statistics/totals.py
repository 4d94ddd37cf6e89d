"""Totals: Σwx of each class and column, for columns that hold counts themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.errors import TOO_LARGE, forbid, forbid_stored
from deciban.lazy import issparse
from deciban.statistics.moments import Moments
from deciban.statistics.statistic import Arrays, Statistic, require_not_negative, require_weights
from deciban.statistics.sums import Sum
from deciban.types import FloatArray, Index, Labels

NOT_A_COUNT = "is not a count: it must be finite, 0 or more"


@dataclass(frozen=True, eq=False)
class Totals(Statistic):
    """N_c(j) = Σ w·x_j over rows of class c: how often word j was used in class c.

    >>> t = Totals(Sum.of([[2.0, 0.0], [1.0, 3.0]]))
    >>> (t + t - t).sum_x.value
    array([[2., 0.],
           [1., 3.]])
    """

    sum_x: Sum  # (K, d) Σ w·x

    @classmethod
    def zero(cls, classes: int, columns: int) -> Totals:
        return cls(Sum.zeros((classes, columns)))

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

    def __add__(self, other: Self) -> Self:
        return type(self)(self.sum_x + other.sum_x)

    def __sub__(self, other: Self) -> Self:
        rest = self.sum_x - other.sum_x
        require_not_negative(rest)
        return type(self)(rest)

    def reindex_classes(self, index: Index, classes: int) -> Self:
        return type(self)(self.sum_x.scatter(index, classes))

    def take(self, index: Index) -> Self:
        return type(self)(self.sum_x.take(index))

    def columns(self, index: Index) -> Self:
        return type(self)(self.sum_x.take(index, axis=1))

    @classmethod
    def concat_columns(cls, parts: Sequence[Self]) -> Self:
        return cls(Sum.concat_columns([part.sum_x for part in parts], axis=1))

    def to_arrays(self) -> Arrays:
        return {"sum_x": self.sum_x.words}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> Self:
        return cls(Sum(np.asarray(arrays["sum_x"], np.float64)))

    def check(self, classes: int, columns: int) -> None:
        require_weights("sum_x", self.sum_x, (classes, columns))
