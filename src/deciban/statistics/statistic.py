"""The interface of sufficient statistics: arrays with a leading class axis that add and, mostly, subtract."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from operator import add
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from deciban.errors import NegativeEvidence, require
from deciban.statistics.sums import Sum
from deciban.types import FloatArray, Index

Arrays = dict[str, NDArray[np.generic]]


class Statistic(ABC):
    """zero + a = a; a + b = b + a; (a + b) + c = a + (b + c); (a + b) − b = a.

    A statistic is immutable and holds arrays only. It is a function of its rows, not of their order or batches. The
    statistic of no rows is zero.
    """

    @abstractmethod
    def __add__(self, other: Self) -> Self: ...

    @abstractmethod
    def __sub__(self, other: Self) -> Self:
        """Raises NotInvertible, or NegativeEvidence if the rows of `other` are not among those of `self`."""

    def subtract_row(self, row: Self) -> Self:
        """Without one training row; only for estimation, and also for statistics without −."""
        return self - row

    @abstractmethod
    def reindex_classes(self, index: Index, classes: int) -> Self:
        """Class i becomes class index[i] of `classes`; the others have no rows."""

    @abstractmethod
    def take(self, index: Index) -> Self:
        """Only the classes of `index`, in that order."""

    @abstractmethod
    def columns(self, index: Index) -> Self:
        """Only the columns of `index`, in that order."""

    @classmethod
    def concat_columns(cls, parts: Sequence[Self]) -> Self:
        """The columns of all parts, which have the same classes; a joint statistic raises TypeError."""
        raise TypeError(f"{cls.__name__} is a joint statistic of its columns: columns cannot be added to it")

    @abstractmethod
    def check(self, classes: int, columns: int) -> None:
        """Raises DecibanError unless the arrays, which may come from a file, fit these classes and columns."""


@dataclass(frozen=True, eq=False)
class SumStatistic(Statistic):
    """A statistic whose fields are sums (K, d), or have their operations: it applies them field by field."""

    def __add__(self, other: Self) -> Self:
        return type(self)(*map(add, self._fields, other._fields))

    def reindex_classes(self, index: Index, classes: int) -> Self:
        return self._map(lambda value: value.scatter(index, classes))

    def take(self, index: Index) -> Self:
        return self._map(lambda value: value.take(index))

    def columns(self, index: Index) -> Self:
        return self._map(lambda value: value.take(index, axis=1))

    @classmethod
    def concat_columns(cls, parts: Sequence[Self]) -> Self:
        by_field = zip(*(part._fields for part in parts), strict=True)
        return cls(*(type(values[0]).concat_columns(values, axis=1) for values in by_field))

    @property
    def _fields(self) -> list[Any]:
        return [getattr(self, field.name) for field in fields(self)]

    def _map(self, change: Callable[[Any], Any]) -> Self:
        return type(self)(*map(change, self._fields))


def require_not_negative(*sums: Sum) -> None:
    if any((s.value < 0).any() for s in sums):
        raise never_learned("a count would fall below zero")


def never_learned(reason: str) -> NegativeEvidence:
    return NegativeEvidence(f"these rows were never learned ({reason}); the model is unchanged")


def require_weights(name: str, weights: Sum, shape: tuple[int, ...]) -> None:
    """Raises DecibanError unless this is a sum of that shape, finite and 0 or more."""
    weights.check(name, shape)
    require((weights.value >= 0).all(), f"{name} is below 0")
    with np.errstate(over="ignore"):
        require(np.isfinite(weights.value.sum()), f"{name} is too large to sum")


def require_numbers(name: str, numbers: FloatArray, shape: tuple[int, ...]) -> None:
    require(numbers.shape == shape, f"{name} has shape {numbers.shape} instead of {shape}")
    require(np.isfinite(numbers).all(), f"{name} is not finite")


def drop_zero_weights(
    x: NDArray[Any], codes: NDArray[np.int32], weights: FloatArray | None
) -> tuple[NDArray[Any], NDArray[np.int32], FloatArray | None]:
    """Without rows of weight 0, whose values do not count."""
    if weights is None or weights.all():
        return x, codes, weights
    used = weights != 0
    return x[used], codes[used], weights[used]
