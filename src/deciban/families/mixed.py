"""Mixed columns, numbers and categories side by side, read together: as small codes, or as a matrix of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from deciban.batch import MISSING, UNSEEN, Frame, Place
from deciban.late import late
from deciban.types import FloatArray, IntArray, Levels

if TYPE_CHECKING:
    from deciban.families.formulas import Code, Listed, Scaled

formulas = late("deciban.families.formulas")  # only a report asks for them

Codes = NDArray[np.uint8]
MOST_CODES = 256  # of a column, with those of missing cells and of what is in no list
FARTHEST = 8.0  # spreads from the middle: no cell counts for more


@dataclass(frozen=True)
class Coding:
    """0 for a missing cell; 1 + the number of cuts at or below a number; 1 + the place of a value in a list.

    A value that is in no list has the last code of its column. So rows are known by small numbers, which tables of
    several columns and trees are made of. Every code is counted, but a missing cell and a value in no list are unknown
    when rows are scored: see `unknown`.

    >>> from deciban.sources import frame_of
    >>> coding = Coding((None, (1.5, 4.0)), (("red", "blue"), None))
    >>> coding.of(frame_of([["blue", 1.0], ["green", 4.0], [None, None]]), [0, 1]).tolist()
    [[2, 1], [3, 3], [0, 0]]
    """

    cuts: tuple[tuple[float, ...] | None, ...]  # of each column of numbers, ascending
    levels: tuple[Levels | None, ...]  # of each other column

    @cached_property
    def sizes(self) -> NDArray[np.int32]:
        """(d) how many codes each column has."""
        pairs = zip(self.cuts, self.levels, strict=True)
        return np.array([2 + len(levels if cuts is None else cuts) for cuts, levels in pairs], np.int32)  # type: ignore[arg-type]

    @cached_property
    def ordered(self) -> NDArray[np.bool_]:
        """(d) whether codes stand in an order: those of numbers."""
        return np.array([cuts is not None for cuts in self.cuts], np.bool_)

    def unknown(self, codes: Codes) -> NDArray[np.bool_]:
        """(n, d) the codes that say nothing of other rows: missing cells, and values in no list."""
        unlisted = np.where(self.ordered, 0, self.sizes - 1)  # no number is unlisted
        result: NDArray[np.bool_] = (codes == 0) | (codes == unlisted)
        return result

    def formula(self) -> tuple[Code, ...]:
        """The codes of each column, as formulas; those that are unknown are MISSING."""
        found = []
        for j, (cuts, levels, size) in enumerate(zip(self.cuts, self.levels, self.sizes.tolist(), strict=True)):
            places = None if levels is None else np.arange(1, len(levels) + 1)
            at = None if cuts is None else np.array(cuts)
            found.append(formulas.Code(j, size, at, levels, places, int(cuts is not None)))
        return tuple(found)

    def some(self, columns: Sequence[int]) -> Coding:
        """That of some of the columns."""
        return Coding(tuple(self.cuts[j] for j in columns), tuple(self.levels[j] for j in columns))

    def of(self, frame: Frame, columns: Sequence[Place]) -> Codes:
        """(n, d) the codes of some columns of a frame."""
        out = np.empty((frame.rows, len(columns)), np.uint8, order="F")
        numbers, others = np.flatnonzero(self.ordered), np.flatnonzero(~self.ordered)
        if len(numbers):
            x = frame.numbers([columns[j] for j in numbers.tolist()])
            for i, j in enumerate(numbers.tolist()):
                cuts = np.array(self.cuts[j])
                place = np.searchsorted(cuts, x[:, i].astype(np.float64), side="right")
                out[:, j] = np.where(np.isnan(x[:, i]), 0, place + 1)
        if len(others):
            codes = _places(frame, columns, others, self.levels)
            unlisted = self.sizes[others].astype(np.int32) - 1
            out[:, others] = np.where(codes == UNSEEN, unlisted, np.where(codes == MISSING, 0, codes + 1))
        return out


@dataclass(frozen=True)
class Encoding:
    """(x − middle)/spread of a number, at most 8 either way; 1 for the listed value that a cell holds, 0 for others.

    Where the first value of a list is its baseline, it has no entry: it is 0 in those of the others. Entries of a
    missing cell, or of a value in no list, are NaN: nothing is known of them. A number outside of the range of those
    that the encoding was made from counts as the nearest of them.

    >>> from deciban.sources import frame_of
    >>> encoding = Encoding((None, 2.0), (None, 0.5), (None, (0.0, 3.0)), (("red", "blue"), None))
    >>> encoding.of(frame_of([["blue", 1.0], ["green", None], ["red", 9.0]]), [0, 1]).tolist()
    [[0.0, 1.0, -2.0], [nan, nan, nan], [1.0, 0.0, 2.0]]
    """

    middle: tuple[float | None, ...]  # of each column of numbers
    spread: tuple[float | None, ...]
    range: tuple[tuple[float, float] | None, ...]
    levels: tuple[Levels | None, ...]  # of each other column
    baseline: tuple[bool, ...] = ()  # whether the first value is the baseline; (): in no column

    @cached_property
    def _first(self) -> tuple[int, ...]:
        """(d) the place of the first value that has an entry."""
        return tuple(map(int, self.baseline)) if self.baseline else (0,) * len(self.levels)

    @cached_property
    def owner(self) -> IntArray:
        """(m) the column that each entry belongs to."""
        pairs = zip(self.levels, self._first, strict=True)
        widths = [1 if levels is None else len(levels) - first for levels, first in pairs]
        return np.repeat(np.arange(len(widths)), widths)

    def formula(self) -> tuple[Scaled | Listed, ...]:
        """The entries of each column, as formulas."""
        found: list[Scaled | Listed] = []
        for j, levels in enumerate(self.levels):
            entry = int(np.searchsorted(self.owner, j))
            if levels is None:
                low, high = self.range[j] or (-np.inf, np.inf)
                found.append(formulas.Scaled(j, entry, self.middle[j], self.spread[j], low, high, FARTHEST))
            else:
                code = formulas.Code(j, len(levels), levels=levels)
                found.append(formulas.Listed(code, entry - self._first[j], len(levels) - self._first[j]))
        return tuple(found)

    def some(self, columns: Sequence[int]) -> Encoding:
        """That of some of the columns."""
        parts = (self.middle, self.spread, self.range, self.levels, self.baseline)
        return Encoding(*(tuple(part[j] for j in columns) if part else () for part in parts))  # type: ignore[arg-type]

    def of(self, frame: Frame, columns: Sequence[Place]) -> FloatArray:
        """(n, m) the entries of some columns of a frame."""
        out = np.zeros((frame.rows, len(self.owner)))
        numbers = np.array([j for j, levels in enumerate(self.levels) if levels is None], np.intp)
        others = np.array([j for j, levels in enumerate(self.levels) if levels is not None], np.intp)
        if len(numbers):
            x = frame.numbers([columns[j] for j in numbers]).astype(np.float64)
            middle, spread = (np.array([of[j] for j in numbers], np.float64) for of in (self.middle, self.spread))
            low, high = np.array([self.range[j] for j in numbers], np.float64).T
            z = np.clip((np.clip(x, low, high) - middle) / spread, -FARTHEST, FARTHEST)
            out[:, np.searchsorted(self.owner, numbers)] = z
        if len(others):
            codes = _places(frame, columns, others, self.levels)
            entry = codes - np.array([self._first[j] for j in others])
            first = np.searchsorted(self.owner, others)
            rows, at = np.nonzero(entry >= 0)
            out[rows, first[at] + entry[rows, at]] = 1.0
            for i, j in enumerate(others.tolist()):
                out[np.ix_(codes[:, i] < 0, self.owner == j)] = np.nan
        return out


def _places(
    frame: Frame, columns: Sequence[Place], others: IntArray, levels: tuple[Levels | None, ...]
) -> NDArray[np.int32]:
    """(n, m) the places of cells in lists of values."""
    lists = tuple(levels[j] or () for j in others)
    return frame.codes([columns[j] for j in others], lists)
