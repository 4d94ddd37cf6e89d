"""Sum: an array of exact sums, which all statistics are made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deciban import _kernels
from deciban.errors import DecibanError
from deciban.types import FloatArray, Index

MAX_WORDS = 41  # each begins below the last bit of the one before, and doubles span 2,098 bits
BLOCK = 1 << 15  # cells added at a time, so that temporaries stay in the cache


@dataclass(frozen=True, eq=False)
class Sum:
    """S = Σ of doubles, exactly: S = w₀ + w₁ + …, where w₀ = round(S), w₁ = round(S − w₀), ….

    The words are a function of S alone. So + and − are associative and commutative to the last bit, and (a + b) − b
    is a: no order of rows, batches, threads or merges can change a sum, and subtraction leaves no trace.

    >>> a, b = Sum.of([1e16, 0.1]), Sum.of([1.0, 0.2])
    >>> ((a + b) - a).value
    array([1. , 0.2])
    """

    words: FloatArray  # (words, *shape)

    @classmethod
    def zeros(cls, shape: tuple[int, ...]) -> Sum:
        return cls(np.zeros((1, *shape)))

    @classmethod
    def of(cls, values: ArrayLike) -> Sum:
        return cls(np.array(values, dtype=np.float64)[np.newaxis])

    @property
    def value(self) -> FloatArray:
        """The sums, each rounded once to the nearest double."""
        first: FloatArray = self.words[0]
        return first

    @property
    def shape(self) -> tuple[int, ...]:
        return self.words.shape[1:]

    @property
    def flat_words(self) -> FloatArray:
        """(words, size), contiguous: as the kernels read them."""
        return np.ascontiguousarray(self.words.reshape(len(self.words), -1))

    def __add__(self, other: Sum) -> Sum:
        return self._combine(other, 1.0)

    def __sub__(self, other: Sum) -> Sum:
        return self._combine(other, -1.0)

    def subtract(self, amount: ArrayLike, *index: Any) -> FloatArray:
        """S[index] − amount as a double, by all words of S: exact also where they nearly cancel.

        >>> (Sum.of([1e16]) + Sum.of([1.0])).subtract(1e16, [0, 0])
        array([1., 1.])
        """
        a = np.asarray(amount, dtype=np.float64)
        first = self.words[0][index]
        high: FloatArray = first - a
        part = high - first
        low = (first - (high - part)) - (a + part)
        for word in self.words[1:]:
            low = low + word[index]
        result: FloatArray = high + low
        return result

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sum) and np.array_equal(self.words, other.words)

    def _combine(self, other: Sum, sign: float) -> Sum:
        if self.shape != other.shape:
            raise ValueError(f"sums of shape {self.shape} and {other.shape} do not add")
        if len(self.words) == len(other.words) == 1:
            words = _exact_sums(self.words, other.words, sign)
            if words is not None:
                return Sum(words)
        with summing():
            words = _kernels.add_sums(self.flat_words, other.flat_words, sign)
        return Sum(words.reshape(len(words), *self.shape))

    def total(self) -> Sum:
        """Summed over the first axis, exactly."""
        rest = self.shape[1:]
        with summing():
            words = _kernels.total_sums(self.words.reshape(len(self.words), self.shape[0], prod(rest)))
        return Sum(words.reshape(len(words), *rest))

    def scatter(self, index: Index, size: int, axis: int = 0) -> Sum:
        """Slot i goes to slot index[i] of `size` along an axis; the rest is zero."""
        shape = list(self.words.shape)
        shape[axis + 1] = size
        words = np.zeros(shape)
        target: list[Any] = [slice(None)] * len(shape)
        target[axis + 1] = np.asarray(index, dtype=np.intp)
        words[tuple(target)] = self.words
        return Sum(words)

    def take(self, index: Index, axis: int = 0) -> Sum:
        """The slots of `index` along an axis, canonical again (fewer cells may need fewer words)."""
        words = np.take(self.words, np.asarray(index, dtype=np.intp), axis=axis + 1)
        used = max(1, max((i + 1 for i in range(len(words)) if words[i].any()), default=1))
        return Sum(np.ascontiguousarray(words[:used]))

    @classmethod
    def concat_columns(cls, parts: Sequence[Sum], axis: int) -> Sum:
        """The slots of all parts along an axis, one after the other.

        >>> Sum.concat_columns([Sum.of([1.0]), Sum.of([2.0, 3.0])], axis=0).value
        array([1., 2., 3.])
        """
        words = max(len(part.words) for part in parts)
        padded = [np.pad(part.words, [(0, words - len(part.words)), *[(0, 0)] * len(part.shape)]) for part in parts]
        return cls(np.ascontiguousarray(np.concatenate(padded, axis=axis + 1)))

    def group(self, index: Index, size: int) -> Sum:
        """Slots of the last axis with equal index added up: a coarser table."""
        index = np.asarray(index, dtype=np.intp)
        if len(self.words) == 1 and _adds_exactly(self.value):
            rows = self.value.reshape(prod(self.shape[:-1]), len(index))
            table = np.array([np.bincount(index, row, size) for row in rows])
            return Sum(table.reshape(1, *self.shape[:-1], size))
        order = np.argsort(index, kind="stable")
        sizes = np.bincount(index, minlength=size)
        rank = np.arange(len(index)) - np.repeat(np.cumsum(sizes) - sizes, sizes)  # within its group
        slots = np.zeros((len(self.words), sizes.max(initial=1), *self.shape[:-1], size))
        slots[:, rank, ..., index[order]] = np.moveaxis(self.words[..., order], -1, 0)
        return Sum(slots).total()

    def check(self, name: str, shape: tuple[int, ...]) -> None:
        """Raises DecibanError unless this is a sum of that shape, of finite numbers."""
        if self.words.ndim == 0 or self.shape != shape or not 1 <= len(self.words) <= MAX_WORDS:
            raise DecibanError(f"{name} has words of shape {self.words.shape} instead of (1 to {MAX_WORDS}, *{shape})")
        if not np.isfinite(self.words).all():
            raise DecibanError(f"{name} is not finite")
        if len(self.words) > 1 and self != self + Sum.zeros(shape):
            raise DecibanError(f"{name} is not written as sums are")


@contextmanager
def summing() -> Iterator[None]:
    """Turns the error of a kernel for sums beyond the range of doubles into one of ours."""
    try:
        yield
    except OverflowError:
        raise DecibanError("the numbers are too large to sum: rescale the column, or the weights") from None


def _exact_sums(a: FloatArray, b: FloatArray, sign: float) -> FloatArray | None:
    """a ± b if a double holds every sum exactly, as it does for counts; else None."""
    sums = np.empty(a.shape)
    first, second, out = a.reshape(-1), b.reshape(-1), sums.reshape(-1)
    for start in range(0, len(out), BLOCK):
        block = slice(start, start + BLOCK)
        x, y = first[block], sign * second[block]
        high = np.add(x, y, out=out[block])
        part = high - x
        if ((x - (high - part)) + (y - part)).any():
            return None
    return sums


def _adds_exactly(a: FloatArray) -> bool:
    """Whether these are whole numbers whose sum a double holds, as counts are."""
    return bool((a == np.rint(a)).all() and np.abs(a).sum() < 2.0**53)
