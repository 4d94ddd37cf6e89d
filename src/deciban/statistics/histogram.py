"""Histogram: counts of a float column at the finest resolution that fits, from which bins can be selected later."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import add, sub
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.errors import require
from deciban.statistics.statistic import Arrays, Statistic, drop_zero_weights, require_not_negative, require_weights
from deciban.statistics.sums import Sum
from deciban.types import BoolArray, FloatArray, Index, Labels

Keys = NDArray[np.int64]


def keys_of(x: FloatArray) -> Keys:
    """Integers in the order of the doubles: the bits, inverted for negative numbers."""
    bits = (x + 0.0).view(np.int64)
    return bits ^ ((bits >> 63) & np.int64(0x7FFFFFFFFFFFFFFF))


def values_of(keys: Keys) -> FloatArray:
    bits: Keys = keys ^ ((keys >> 63) & np.int64(0x7FFFFFFFFFFFFFFF))
    return bits.view(np.float64)


def level_within(keys: Keys, cap: int, bits: int | None = None, level: int = 0) -> int:
    """How many bits to drop from ascending keys, at a level, so that at most `cap` differ and they fit into `bits`.

    A key takes the bits from its first one to the last that is set in any key.
    """
    if len(keys) <= cap and (bits is None or len(keys) * (64 - level) <= bits):
        return 0
    differing = keys[1:] ^ keys[:-1]  # keys are equal at a level above the highest bit in which they differ
    union = int(np.bitwise_or.reduce(keys ^ (keys >> 63)))

    def fits(more: int) -> bool:
        count = int(np.count_nonzero(differing >> more)) + 1
        rest = union >> more
        zeros = (rest & -rest).bit_length() - 1 if rest else 63
        return count <= cap and (bits is None or count * max(1, 64 - level - more - zeros) <= bits)

    return bisect_left(range(64), True, key=fits)


def _is_new(ascending: Keys) -> BoolArray:
    """Whether each key differs from the one before. (np.unique hashes integers: minutes for millions of keys.)"""
    new = np.ones(len(ascending), np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=new[1:])
    return new


def _distinct(ascending: Keys) -> tuple[Keys, NDArray[np.intp]]:
    """The distinct ones among ascending keys, and the index of each key among them."""
    new = _is_new(ascending)
    return ascending[new], np.cumsum(new) - 1


LEAST, MOST = keys_of(np.array([-np.inf, np.inf])) + np.array([1, -1])  # of finite numbers


@dataclass(frozen=True, eq=False)
class Histogram(Statistic):
    """N_c(k) = Σ w over rows of class c whose x has the key k = key(x) >> level.

    key(x) is the double's bits as an integer that orders as x does. The level of a column is the smallest at which no
    more than `cap` different keys remain, in no more than `bits` bits altogether; at level 0 every value is counted
    exactly. The level is a function of the set of values, so merging is associative whatever the batches were.
    Subtraction does not refine the level again.

    >>> import numpy as np
    >>> x = np.array([[3.0], [1.0], [3.0]])
    >>> h = Histogram.of(x, np.zeros(3, np.int32), None, 1, cap=10)
    >>> h.lower(0), h.table(0).value
    (array([1., 3.]), array([[1., 2.]]))
    """

    cap: int
    levels: NDArray[np.int64]  # (d) bits dropped
    keys: tuple[Keys, ...]  # the occupied keys of each column, ascending
    counts: tuple[Sum, ...]  # (K, keys) of each column
    bits: int | None = None  # of the keys of a column, at most; None is unlimited

    @classmethod
    def zero(cls, classes: int, columns: int, cap: int = 2048, bits: int | None = None) -> Histogram:
        no_keys, no_counts = np.zeros(0, np.int64), Sum.zeros((classes, 0))
        return cls(cap, np.zeros(columns, np.int64), (no_keys,) * columns, (no_counts,) * columns, bits)

    @classmethod
    def of(
        cls,
        x: NDArray[Any],
        codes: Labels,
        weights: FloatArray | None,
        classes: int,
        cap: int = 2048,
        bits: int | None = None,
    ) -> Histogram:
        x, codes, weights = drop_zero_weights(x, codes, weights)
        levels, keys, counts = [], [], []
        for j in range(x.shape[1]):
            level, distinct, key_codes = _kernels.histogram_column(x, j, cap)
            more = level_within(distinct, cap, bits, level)
            if more:
                level, distinct, merged = level + more, *_distinct(distinct >> more)
                key_codes = np.append(merged, -1).astype(np.int32)[key_codes]  # missing values stay −1
            ends = np.array([0, len(distinct)], dtype=np.int64)
            levels.append(level)
            keys.append(distinct)
            counts.append(Sum(_kernels.count_codes(key_codes[:, np.newaxis], ends, codes, weights, classes)))
        return cls(cap, np.array(levels, dtype=np.int64), tuple(keys), tuple(counts), bits)

    def table(self, j: int) -> Sum:
        """(K, keys) of column j."""
        return self.counts[j]

    def lower(self, j: int) -> FloatArray:
        """The smallest double of each occupied cell of column j."""
        return values_of(np.maximum(self.keys[j] << self.levels[j], LEAST))

    def upper(self, j: int) -> FloatArray:
        """The largest double of each occupied cell of column j."""
        last = np.minimum((self.keys[j] << self.levels[j]) | ~(np.int64(-1) << self.levels[j]), MOST)
        return values_of(np.where(last == -1, -2, last))  # −1 is the key of −0.0, which is counted as 0.0

    def cells_of(self, j: int, x: FloatArray) -> tuple[NDArray[np.intp], BoolArray]:
        """The cells of values in column j, and whether each value has one; without one the cell is arbitrary."""
        keys, known = keys_of(x) >> self.levels[j], self.keys[j]
        cells = np.minimum(np.searchsorted(known, keys), max(len(known) - 1, 0))
        return cells, known[cells] == keys if len(known) else np.zeros(len(x), np.bool_)

    def occupied(self, j: int) -> tuple[FloatArray, Labels, FloatArray]:
        """Column j as rows: a value, a class and Σ w, for every class that has rows in a cell."""
        counts = self.counts[j].value
        classes, cells = np.nonzero(counts)
        return self.lower(j)[cells], classes.astype(np.int32), counts[classes, cells]

    def coarsened(self, levels: NDArray[np.int64]) -> Self:
        """The same counts at other levels, one for each column and not below its own."""
        keys, counts = [], []
        for j, level in enumerate(levels):
            fine = self.keys[j] >> (level - self.levels[j])
            coarse, index = _distinct(fine)
            keys.append(coarse)
            counts.append(self.counts[j] if len(coarse) == len(fine) else self.counts[j].group(index, len(coarse)))
        return replace(self, levels=np.asarray(levels, np.int64), keys=tuple(keys), counts=tuple(counts))

    def __add__(self, other: Self) -> Self:
        return self._combine(other, add)._within_cap()

    def __sub__(self, other: Self) -> Self:
        rest = self._combine(other, sub)
        require_not_negative(*rest.counts)
        return rest._without_empty()

    def _combine(self, other: Self, combine: Callable[[Sum, Sum], Sum]) -> Self:
        levels = np.maximum(self.levels, other.levels)
        a, b = self.coarsened(levels), other.coarsened(levels)
        keys, counts = [], []
        for j in range(len(levels)):
            both = np.sort(np.concatenate([a.keys[j], b.keys[j]]), kind="stable")  # merges the two
            both = both[_is_new(both)]
            left = a.counts[j].scatter(np.searchsorted(both, a.keys[j]), len(both), axis=1)
            right = b.counts[j].scatter(np.searchsorted(both, b.keys[j]), len(both), axis=1)
            keys.append(both)
            counts.append(combine(left, right))
        return replace(self, levels=levels, keys=tuple(keys), counts=tuple(counts))

    def _without_empty(self) -> Self:
        """Without keys whose count is 0 in all classes."""
        kept = [np.flatnonzero(count.value.any(axis=0)) for count in self.counts]
        keys = tuple(k[index] for k, index in zip(self.keys, kept, strict=True))
        counts = tuple(c.take(index, axis=1) for c, index in zip(self.counts, kept, strict=True))
        return replace(self, keys=keys, counts=counts)

    def _within_cap(self) -> Self:
        columns = zip(self.keys, self.levels.tolist(), strict=True)
        more = [level_within(keys, self.cap, self.bits, level) for keys, level in columns]
        levels = self.levels + np.array(more, np.int64)
        return self if np.array_equal(levels, self.levels) else self.coarsened(levels)

    def reindex_classes(self, index: Index, classes: int) -> Self:
        return replace(self, counts=tuple(c.scatter(index, classes) for c in self.counts))

    def take(self, index: Index) -> Self:
        return replace(self, counts=tuple(c.take(index) for c in self.counts))._without_empty()

    def columns(self, index: Index) -> Self:
        levels = self.levels[np.asarray(index, dtype=np.intp)]
        keys = tuple(self.keys[j] for j in index)
        return replace(self, levels=levels, keys=keys, counts=tuple(self.counts[j] for j in index))

    @classmethod
    def concat_columns(cls, parts: Sequence[Self]) -> Self:
        levels = np.concatenate([part.levels for part in parts])
        keys, counts = (tuple(x for part in parts for x in getattr(part, name)) for name in ("keys", "counts"))
        return cls(parts[0].cap, levels, keys, counts, parts[0].bits)

    def to_arrays(self) -> Arrays:
        arrays: Arrays = {"cap": np.array([self.cap]), "levels": self.levels}
        if self.bits is not None:
            arrays["bits"] = np.array([self.bits])
        for j, (keys, count) in enumerate(zip(self.keys, self.counts, strict=True)):
            arrays[f"keys.{j}"], arrays[f"counts.{j}"] = keys, count.words
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> Self:
        levels = np.asarray(arrays["levels"], np.int64)
        columns = range(len(levels))
        return cls(
            int(np.asarray(arrays["cap"], np.int64)[0]),
            levels,
            tuple(np.asarray(arrays[f"keys.{j}"], np.int64) for j in columns),
            tuple(Sum(np.asarray(arrays[f"counts.{j}"], np.float64)) for j in columns),
            int(np.asarray(arrays["bits"], np.int64)[0]) if "bits" in arrays else None,
        )

    def check(self, classes: int, columns: int) -> None:
        require(self.cap >= 2, f"cap must be 2 or more, not {self.cap}")
        require(self.bits is None or self.bits >= 2, f"bits must be 2 or more, not {self.bits}")
        require(self.levels.shape == (columns,), f"levels of shape {self.levels.shape} instead of {(columns,)}")
        require(((self.levels >= 0) & (self.levels < 64)).all(), "a level is not from 0 to 63")
        require(len(self.keys) == len(self.counts) == columns, f"keys or counts are not of {columns} columns")
        for keys, level, counts in zip(self.keys, self.levels, self.counts, strict=True):
            require(keys.ndim == 1 and len(keys) <= self.cap, f"keys of shape {keys.shape}, with a cap of {self.cap}")
            require((keys[1:] > keys[:-1]).all(), "keys do not ascend")
            require(((keys >= LEAST >> level) & (keys <= MOST >> level)).all(), "a key is not that of a finite number")
            require_weights("counts", counts, (classes, len(keys)))
            require(counts.value.any(axis=0).all(), "a key that was never seen is listed")
