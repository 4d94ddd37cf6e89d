"""Totals: Σwx of each class and column, for columns that hold counts themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from deciban.statistics.base import Arrays, Statistic, require_not_negative
from deciban.statistics.sums import Sum
from deciban.types import Index


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

    def __add__(self, other: Self) -> Self:
        return type(self)(self.sum_x + other.sum_x)

    def __sub__(self, other: Self) -> Self:
        rest = self.sum_x - other.sum_x
        require_not_negative(rest)
        return type(self)(rest)

    def align(self, index: Index, classes: int) -> Self:
        return type(self)(self.sum_x.place(index, classes))

    def take(self, index: Index) -> Self:
        return type(self)(self.sum_x.take(index))

    def to_arrays(self) -> Arrays:
        return {"sum_x": self.sum_x.words}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> Self:
        return cls(Sum(np.asarray(arrays["sum_x"], np.float64)))
