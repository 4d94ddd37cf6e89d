"""Extrema: the smallest and largest x of each class and column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from deciban.errors import NotInvertible, require
from deciban.statistics.moments import Moments
from deciban.statistics.statistic import SumStatistic, drop_zero_weights, require_not_negative, require_weights
from deciban.statistics.sums import Sum
from deciban.types import BoolArray, FloatArray, Index, Labels


@dataclass(frozen=True, eq=False)
class Least:
    """min x, the weight of the rows at it, and the smallest x above it: enough to leave one row out.

    >>> least = Least.of(np.array([[4.0], [1.0], [1.0]]), np.zeros(3, np.int32), None, 1)
    >>> least.value.item(), least.weight.value.item(), least.second.item()
    (1.0, 2.0, 4.0)
    """

    value: FloatArray  # (K, d) +inf where there are no rows
    weight: Sum  # (K, d) Σ w where x is that value
    second: FloatArray  # (K, d) +inf where all x are equal

    @classmethod
    def of(cls, x: NDArray[Any], codes: Labels, weights: FloatArray | None, classes: int) -> Least:
        value = _minima(x, codes, classes)
        minimum = value[codes]  # of each row's class
        weight = _weight(x == minimum, codes, weights, classes)
        return cls(value, weight, _minima(np.where(x > minimum, x, np.nan), codes, classes))

    def __add__(self, other: Self) -> Self:
        value = np.minimum(self.value, other.value)
        second = np.minimum(self.second, other.second)
        weight = Sum.zeros(value.shape)
        for part in (self, other):
            is_minimum = part.value == value
            weight = weight + Sum(np.where(is_minimum, part.weight.words, 0.0))
            second = np.minimum(second, np.where(is_minimum, np.inf, part.value))
        return type(self)(value, weight, second)

    def subtract_row(self, row: Self) -> Self:
        """Without one row. If it was the only one at the minimum, only the new minimum is known."""
        weight = self.weight - Sum(np.where(row.value == self.value, row.weight.words, 0.0))
        require_not_negative(weight)
        lost = (self.weight.value > 0) & (weight.value == 0)
        unknown = Sum(np.where(lost, np.nan, weight.words))
        return type(self)(np.where(lost, self.second, self.value), unknown, np.where(lost, np.nan, self.second))

    def scatter(self, index: Index, classes: int) -> Self:
        """Class i becomes class index[i] of `classes`; the others have no rows."""
        value, second = np.full((2, classes, self.value.shape[1]), np.inf)
        rows = np.asarray(index, dtype=np.intp)
        value[rows], second[rows] = self.value, self.second
        return type(self)(value, self.weight.scatter(index, classes), second)

    def take(self, index: Index, axis: int = 0) -> Self:
        value, second = (np.take(array, np.asarray(index, np.intp), axis) for array in (self.value, self.second))
        return type(self)(value, self.weight.take(index, axis), second)

    @classmethod
    def concat_columns(cls, parts: Sequence[Self], axis: int) -> Self:
        value, second = (np.concatenate([getattr(p, name) for p in parts], axis) for name in ("value", "second"))
        return cls(value, Sum.concat_columns([part.weight for part in parts], axis), second)

    def check(self, count: FloatArray) -> None:
        """Raises DecibanError unless this fits the weight (K, d) of the values."""
        for x in (self.value, self.second):
            require(x.shape == count.shape, f"extremes of shape {x.shape} instead of {count.shape}")
            require((x > -np.inf).all(), "an extreme is not a number")
        require((np.isfinite(self.value) == (count > 0)).all(), "an extreme without values, or values without one")
        require(((self.second > self.value) | (count == 0)).all(), "a second value is not beyond the extreme")
        require_weights("weight", self.weight, count.shape)
        require(((self.weight.value > 0) == (count > 0)).all(), "an extreme has no weight")


@dataclass(frozen=True, eq=False)
class Extrema(SumStatistic):
    """min x and max x over the values present; + takes the smaller and the larger. It does not subtract.

    >>> e = Extrema.of(np.array([[1.0], [4.0]]), np.zeros(2, np.int32), None, 1)
    >>> e.low.item(), e.high.item()
    (1.0, 4.0)
    """

    count: Sum  # (K, d) Σ w
    least: Least  # of x
    most: Least  # of −x

    @classmethod
    def of(cls, x: NDArray[Any], codes: NDArray[np.int32], weights: FloatArray | None, classes: int) -> Extrema:
        x, codes, weights = drop_zero_weights(x, codes, weights)
        count = _weight(~np.isnan(x), codes, weights, classes)
        return cls(count, Least.of(x, codes, weights, classes), Least.of(-x, codes, weights, classes))

    @property
    def low(self) -> FloatArray:
        """(K, d) min x; +inf where there are no rows."""
        return self.least.value

    @property
    def high(self) -> FloatArray:
        """(K, d) max x; −inf where there are no rows."""
        return 0.0 - self.most.value  # never −0

    def __sub__(self, other: Self) -> Self:
        raise NotInvertible("minima and maxima cannot forget rows: fit again without these rows, or use another family")

    def subtract_row(self, row: Self) -> Self:
        """Without one row; no other row can be subtracted from the result.

        >>> x, labels = np.array([[1.0], [4.0], [9.0]]), np.zeros(3, np.int32)
        >>> rest = Extrema.of(x, labels, None, 1).subtract_row(Extrema.of(x[:1], labels[:1], None, 1))
        >>> rest.low.item(), rest.high.item()
        (4.0, 9.0)
        """
        count = self.count - row.count
        require_not_negative(count)
        return type(self)(count, self.least.subtract_row(row.least), self.most.subtract_row(row.most))

    def check(self, classes: int, columns: int) -> None:
        require_weights("count", self.count, (classes, columns))
        self.least.check(self.count.value)
        self.most.check(self.count.value)
        require(((self.low <= self.high) | (self.count.value == 0)).all(), "a smallest value is above the largest")


def _minima(x: NDArray[Any], codes: Labels, classes: int) -> FloatArray:
    """(K, d) the smallest value present in each class; −0 is 0, whichever came first."""
    least = np.empty((classes, x.shape[1]))
    for c in range(classes):
        least[c] = np.fmin.reduce(x[codes == c], axis=0, initial=np.inf)
    return least + 0.0


def _weight(selected: BoolArray, codes: Labels, weights: FloatArray | None, classes: int) -> Sum:
    """(K, d) Σ w of the selected cells."""
    return Moments.of(np.where(selected, 1.0, np.nan), codes, weights, classes).count
