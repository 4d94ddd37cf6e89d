"""The interface of sufficient statistics: arrays with a leading class axis that add and, mostly, subtract."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from deciban.errors import NegativeEvidence, require
from deciban.statistics.sums import Sum
from deciban.types import FloatArray, Index

Arrays = dict[str, NDArray[np.generic]]


class Statistic(ABC):
    """zero + a = a; a + b = b + a; (a + b) + c = a + (b + c); (a + b) − b = a.

    A statistic is immutable and holds arrays only. It is a function of its rows, not of their order or
    batches.
    """

    @abstractmethod
    def __add__(self, other: Self) -> Self: ...

    @abstractmethod
    def __sub__(self, other: Self) -> Self:
        """Raises NotInvertible, or NegativeEvidence if the rows of `other` are not among those of `self`."""

    def subtract_row(self, row: Self) -> Self:
        """Without one training row. The result can be estimated from; it is defined even where − is not."""
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
        raise TypeError(f"{cls.__name__} holds what its columns have to do with each other: columns cannot be added")

    @abstractmethod
    def to_arrays(self) -> Arrays: ...

    @classmethod
    @abstractmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> Self: ...

    @abstractmethod
    def check(self, classes: int, columns: int) -> None:
        """Raises DecibanError unless the arrays are consistent, for so many classes and columns.

        For statistics read from a file; a collected one always passes.
        """


def require_not_negative(*sums: Sum) -> None:
    for s in sums:
        if (s.value < 0).any():
            raise NegativeEvidence(
                "these rows were never learned (a count would fall below zero); the model is unchanged"
            )


def require_weights(name: str, weights: Sum, shape: tuple[int, ...]) -> None:
    """Requires a sum of weights of that shape, finite and 0 or more."""
    weights.check(name, shape)
    require((weights.value >= 0).all(), f"{name} falls below 0")


def require_numbers(name: str, numbers: FloatArray, shape: tuple[int, ...]) -> None:
    """Requires finite numbers of that shape."""
    require(numbers.shape == shape, f"{name} has shape {numbers.shape} instead of {shape}")
    require(np.isfinite(numbers).all(), f"{name} is not finite")


def drop_zero_weights(
    x: NDArray[Any], codes: NDArray[np.int32], weights: FloatArray | None
) -> tuple[NDArray[Any], NDArray[np.int32], FloatArray | None]:
    """Without rows of weight 0, which set no extreme and add no value."""
    if weights is None or weights.all():
        return x, codes, weights
    used = weights != 0
    return x[used], codes[used], weights[used]
