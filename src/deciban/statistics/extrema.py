"""Extrema: the smallest and largest x of each class and column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from deciban.errors import NotInvertible
from deciban.statistics.base import Arrays, Statistic, with_weight
from deciban.statistics.sums import Sum
from deciban.types import FloatArray, Index


@dataclass(frozen=True, eq=False)
class Extrema(Statistic):
    """min x and max x over the cells present; + takes the smaller and the larger. It cannot forget.

    >>> import numpy as np
    >>> e = Extrema.of(np.array([[1.0], [4.0]]), np.zeros(2, np.int32), None, 1)
    >>> e.low.item(), e.high.item()
    (1.0, 4.0)
    """

    count: Sum  # (K, d) Σ w
    low: FloatArray  # (K, d) +inf where there are no rows
    high: FloatArray  # (K, d) −inf where there are no rows

    @classmethod
    def zero(cls, classes: int, columns: int) -> Extrema:
        shape = (classes, columns)
        return cls(Sum.zeros(shape), np.full(shape, np.inf), np.full(shape, -np.inf))

    @classmethod
    def of(cls, x: NDArray[Any], codes: NDArray[np.int32], weights: FloatArray | None, classes: int) -> Extrema:
        x, codes, weights = with_weight(x, codes, weights)
        present = ~np.isnan(x)
        count = Sum.zeros((classes, x.shape[1]))
        low = np.full((classes, x.shape[1]), np.inf)
        high = -low
        for c in range(classes):
            rows = codes == c
            cells = x[rows]
            low[c] = np.fmin.reduce(cells, axis=0, initial=np.inf)
            high[c] = np.fmax.reduce(cells, axis=0, initial=-np.inf)
        if weights is None:
            table = np.stack([present[codes == c].sum(axis=0) for c in range(classes)])
            count = Sum.of(table.astype(np.float64))
        else:
            from deciban.statistics.moments import Moments

            count = Moments.of(np.where(present, 1.0, np.nan), codes, weights, classes).count
        return cls(count, low + 0.0, high + 0.0)  # −0 is 0, whichever came first

    def __add__(self, other: Self) -> Self:
        return type(self)(self.count + other.count, np.minimum(self.low, other.low), np.maximum(self.high, other.high))

    def __sub__(self, other: Self) -> Self:
        raise NotInvertible(
            "a smallest and a largest value cannot be forgotten: fit again without these rows, or use another family"
        )

    def align(self, index: Index, classes: int) -> Self:
        zero = self.zero(classes, self.low.shape[1])
        low, high = zero.low, zero.high
        place = np.asarray(index, dtype=np.intp)
        low[place], high[place] = self.low, self.high
        return type(self)(self.count.place(index, classes), low, high)

    def take(self, index: Index) -> Self:
        place = np.asarray(index, dtype=np.intp)
        return type(self)(self.count.take(index), self.low[place], self.high[place])

    def columns(self, index: Index) -> Self:
        place = np.asarray(index, dtype=np.intp)
        return type(self)(self.count.take(index, axis=1), self.low[:, place], self.high[:, place])

    def to_arrays(self) -> Arrays:
        return {"count": self.count.words, "low": self.low, "high": self.high}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> Self:
        return cls(
            Sum(np.asarray(arrays["count"], np.float64)),
            np.asarray(arrays["low"], np.float64),
            np.asarray(arrays["high"], np.float64),
        )
