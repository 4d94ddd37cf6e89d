"""Counts: how often each value of a column occurs in each class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Self

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.errors import require
from deciban.statistics.statistic import Statistic, require_not_negative, require_weights
from deciban.statistics.sums import Sum
from deciban.types import FloatArray, Index, IntArray, Level, Levels, is_sorted, sorted_levels


@dataclass(frozen=True, eq=False)
class Counts(Statistic):
    """N_c(j, v) = Σ w over rows of class c whose column j has value v; missing values are not counted.

    Only observed values are listed, in a fixed order, so the statistic is a function of the rows alone.

    >>> import numpy as np
    >>> c = Counts.of(np.array([[0], [1], [1]], np.int32), [("a", "b")], np.array([0, 0, 1], np.int32), None, 2)
    >>> (c + c).table.value
    array([[2., 2.],
           [0., 2.]])
    """

    levels: tuple[Levels, ...]  # the values of each column
    table: Sum  # (K, Σ values) columns side by side

    @classmethod
    def of(
        cls,
        codes: NDArray[np.int32],
        levels: Sequence[Sequence[Level]],
        labels: NDArray[np.int32],
        weights: FloatArray | None,
        classes: int,
    ) -> Counts:
        """codes (n, d): the position of each value in the levels of its column, or −1 if it is missing."""
        sizes = np.array([len(column) for column in levels], dtype=np.int64)
        words = _kernels.count_codes(codes, _offsets(sizes), labels, weights, classes)
        return cls(tuple(map(tuple, levels)), Sum(words))._without_unseen()._sorted()

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """(d + 1) where each column begins in the table, and the end."""
        return _offsets(np.array([len(column) for column in self.levels], dtype=np.int64))

    @cached_property
    def owner(self) -> IntArray:
        """(Σ values) the column of each entry of the table."""
        return np.repeat(np.arange(len(self.levels)), np.diff(self.offsets))

    @cached_property
    def present(self) -> FloatArray:
        """(K, d) Σ w of the cells present."""
        return self.table.group(self.owner, len(self.levels)).value

    def __add__(self, other: Self) -> Self:
        a, b = self._with_common_levels(other)
        return type(self)(a.levels, a.table + b.table)

    def __sub__(self, other: Self) -> Self:
        a, b = self._with_common_levels(other)
        table = a.table - b.table
        require_not_negative(table)
        return type(self)(a.levels, table)._without_unseen()

    def reindex_classes(self, index: Index, classes: int) -> Self:
        return type(self)(self.levels, self.table.scatter(index, classes))

    def take(self, index: Index) -> Self:
        return type(self)(self.levels, self.table.take(index))._without_unseen()

    def columns(self, index: Index) -> Self:
        parts = [np.arange(self.offsets[j], self.offsets[j + 1]) for j in index]
        positions = np.concatenate([np.zeros(0, np.intp), *parts])
        return type(self)(tuple(self.levels[j] for j in index), self.table.take(positions, axis=1))

    @classmethod
    def concat_columns(cls, parts: Sequence[Self]) -> Self:
        levels = tuple(column for part in parts for column in part.levels)
        return cls(levels, Sum.concat_columns([part.table for part in parts], axis=1))

    def check(self, classes: int, columns: int) -> None:
        require(len(self.levels) == columns, f"levels of {len(self.levels)} columns instead of {columns}")
        for column in self.levels:
            require(is_sorted(column), "values of a column are not in order, or occur twice")
        require_weights("table", self.table, (classes, sum(map(len, self.levels))))
        require(self.table.value.any(axis=0).all(), "a value that was never seen is listed")

    def _without_unseen(self) -> Self:
        """Without values whose count is 0 in all classes."""
        seen = self.table.value.any(axis=0)
        if seen.all():
            return self
        by_column = zip(self.levels, np.split(seen, self.offsets[1:-1]), strict=True)
        return type(self)(tuple(tuple(compress(*pair)) for pair in by_column), self.table.take(np.flatnonzero(seen), 1))

    def _sorted(self) -> Self:
        wanted = tuple(sorted_levels(column) for column in self.levels)
        return self if wanted == self.levels else self._with_levels(wanted)

    def _with_levels(self, wanted: tuple[Levels, ...]) -> Self:
        """The same counts over more values, or in another order."""
        offsets = _offsets(np.array([len(column) for column in wanted], dtype=np.int64))
        index: list[int] = []
        for column, levels, start in zip(self.levels, wanted, offsets, strict=False):
            position = {value: i for i, value in enumerate(levels)}
            index += [int(start) + position[value] for value in column]
        return type(self)(wanted, self.table.scatter(index, int(offsets[-1]), axis=1))

    def _with_common_levels(self, other: Self) -> tuple[Self, Self]:
        if self.levels == other.levels:
            return self, other
        wanted = tuple(a if a == b else _union(a, b) for a, b in zip(self.levels, other.levels, strict=True))
        return self._with_levels(wanted), other._with_levels(wanted)


def _union(a: Levels, b: Levels) -> Levels:
    """The values of both, each of them sorted. (Sorting two sorted runs is a merge; a set would lose that.)"""
    return sorted_levels(dict.fromkeys(a + b))


def _offsets(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])
