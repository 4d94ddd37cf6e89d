"""What every statistic is: raw evidence with a leading class axis, that adds and, mostly, subtracts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from deciban.errors import DecibanError, NegativeEvidence
from deciban.statistics.sums import Sum
from deciban.types import FloatArray, Index

Arrays = dict[str, NDArray[np.generic]]


class Statistic(ABC):
    """zero + a = a; a + b = b + a; (a + b) + c = a + (b + c); (a + b) − b = a.

    A statistic is immutable and holds arrays only. It is a function of the rows it has seen, not of the order or
    the batches they came in.
    """

    @abstractmethod
    def __add__(self, other: Self) -> Self: ...

    @abstractmethod
    def __sub__(self, other: Self) -> Self:
        """Raises NotInvertible, or NegativeEvidence when more is taken away than is there."""

    def without(self, row: Self) -> Self:
        """Less one row that was learned: enough to estimate from, where − is not defined too."""
        return self - row

    @abstractmethod
    def align(self, index: Index, classes: int) -> Self:
        """Class i becomes class index[i] of `classes`; the others have seen nothing."""

    @abstractmethod
    def take(self, index: Index) -> Self:
        """Only the classes of `index`, in that order."""

    @abstractmethod
    def columns(self, index: Index) -> Self:
        """Only the columns of `index`, in that order."""

    @classmethod
    def beside(cls, parts: Sequence[Self]) -> Self:
        """The columns of all parts, which have the same classes, one after the other: not of a joint statistic."""
        raise TypeError(f"{cls.__name__} holds what its columns have to do with each other: columns cannot be added")

    @abstractmethod
    def to_arrays(self) -> Arrays: ...

    @classmethod
    @abstractmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> Self: ...

    @abstractmethod
    def check(self, classes: int, columns: int) -> None:
        """Raises DecibanError unless the arrays go together, as evidence of so many classes and columns.

        For what comes from a file: nothing that was collected can fail.
        """


def require_not_negative(*sums: Sum) -> None:
    for s in sums:
        if (s.value < 0).any():
            raise NegativeEvidence(
                "these rows were never learned (a count would fall below zero); the model is unchanged"
            )


def require(holds: Any, problem: str) -> None:
    if not holds:
        raise DecibanError(problem)


def require_weights(name: str, weights: Sum, shape: tuple[int, ...]) -> None:
    """A sum of weights of that shape: finite, and 0 or more."""
    weights.check(name, shape)
    require((weights.value >= 0).all(), f"{name} falls below 0")


def require_numbers(name: str, numbers: FloatArray, shape: tuple[int, ...]) -> None:
    """Finite numbers of that shape."""
    require(numbers.shape == shape, f"{name} has shape {numbers.shape} instead of {shape}")
    require(np.isfinite(numbers).all(), f"{name} is not finite")


def with_weight(
    x: NDArray[Any], codes: NDArray[np.int32], weights: FloatArray | None
) -> tuple[NDArray[Any], NDArray[np.int32], FloatArray | None]:
    """The rows that weigh something: one of weight 0 is no row, so it sets no extreme and brings no new value."""
    if weights is None or weights.all():
        return x, codes, weights
    kept = weights != 0
    return x[kept], codes[kept], weights[kept]
