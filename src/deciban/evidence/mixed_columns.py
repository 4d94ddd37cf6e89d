"""Mixed features, numbers and categories side by side: as small codes, or as a matrix of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deciban.data.batch import MISSING, UNSEEN, ColumnRef, Frame
from deciban.errors import require
from deciban.families.family import formulas
from deciban.types import BoolArray, FloatArray, IntArray, Levels

if TYPE_CHECKING:
    from deciban.export.formulas import Code, Listed, Scaled

Codes = NDArray[np.uint8]
MOST_CODES = 256  # of a feature, with those of missing and of unlisted values
FARTHEST = 8.0  # spreads from the middle, at which numbers are clipped


@dataclass(frozen=True)
class Coding:
    """0 for a missing value; 1 + the number of cuts at or below a number; 1 + the index of a level in a list.

    An unlisted value has the last code of its feature. Pairs and trees are made of these codes. Every code is counted,
    but missing and unlisted values are unknown when rows are scored: see `unknown`.

    >>> from deciban.data import frame_of
    >>> coding = Coding((None, (1.5, 4.0)), (("red", "blue"), None))
    >>> coding.of(frame_of([["blue", 1.0], ["green", 4.0], [None, None]]), [0, 1]).tolist()
    [[2, 1], [3, 3], [0, 0]]
    """

    cuts: tuple[tuple[float, ...] | None, ...]  # of each number, ascending
    levels: tuple[Levels | None, ...]  # of each category

    def check_fields(self) -> None:
        cuts, levels = self.cuts, self.levels
        require(len(cuts) == len(levels) > 0, f"cuts of {len(cuts)} columns, values of {len(levels)}")
        for cut, values in zip(cuts, levels, strict=True):
            require((cut is None) != (values is None), "a column has both cuts and values, or neither")
            size = 2 + len(cut or values or ())
            require(size <= MOST_CODES, f"a column has {size} codes")
            if cut is not None:
                require(np.isfinite(cut).all() and (np.diff(cut) > 0).all(), "cuts do not ascend")
            elif values is not None:
                require(len(set(values)) == len(values), "a value is repeated")

    @cached_property
    def sizes(self) -> NDArray[np.int32]:
        """(d) the number of codes of each feature."""
        pairs = zip(self.cuts, self.levels, strict=True)
        return np.array([2 + len(levels if cuts is None else cuts) for cuts, levels in pairs], np.int32)  # type: ignore[arg-type]

    @cached_property
    def ordered(self) -> BoolArray:
        """(d) whether codes are ordered, as those of numbers are."""
        return np.array([cuts is not None for cuts in self.cuts], np.bool_)

    def unknown(self, codes: Codes) -> BoolArray:
        """(n, d) whether values are missing or unlisted."""
        unlisted = np.where(self.ordered, 0, self.sizes - 1)  # no number is unlisted
        result: BoolArray = (codes == 0) | (codes == unlisted)
        return result

    def formula(self) -> tuple[Code, ...]:
        """The codes of each feature, as formulas; unknown ones are MISSING."""
        codes = []
        for j, (cuts, levels, size) in enumerate(zip(self.cuts, self.levels, self.sizes.tolist(), strict=True)):
            of_levels = None if levels is None else np.arange(1, len(levels) + 1)
            values = None if cuts is None else np.array(cuts)
            codes.append(formulas.Code(j, size, values, levels, of_levels, int(cuts is not None)))
        return tuple(codes)

    def take(self, columns: Sequence[int]) -> Coding:
        return Coding(tuple(self.cuts[j] for j in columns), tuple(self.levels[j] for j in columns))

    def of(self, frame: Frame, columns: Sequence[ColumnRef]) -> Codes:
        """(n, d) the codes of these columns of a frame."""
        out = np.empty((frame.rows, len(columns)), np.uint8, order="F")
        numbers, categories = np.flatnonzero(self.ordered), np.flatnonzero(~self.ordered)
        if len(numbers):
            x = frame.numbers([columns[j] for j in numbers.tolist()])
            for i, j in enumerate(numbers.tolist()):
                cuts = np.array(self.cuts[j])
                bins = np.searchsorted(cuts, x[:, i].astype(np.float64), side="right")
                out[:, j] = np.where(np.isnan(x[:, i]), 0, bins + 1)
        if len(categories):
            codes = _level_codes(frame, columns, categories, self.levels)
            unlisted = self.sizes[categories].astype(np.int32) - 1
            out[:, categories] = np.where(codes == UNSEEN, unlisted, np.where(codes == MISSING, 0, codes + 1))
        return out


@dataclass(frozen=True)
class Encoding:
    """(x − middle)/spread of a number, clipped to ±8; one-hot indicators of the listed levels of a category.

    A baseline, the first of a list, has no indicator: all others are 0. Entries of a missing or an unlisted
    value are NaN: they are unknown. Numbers are clipped to their range in training.

    >>> from deciban.data import frame_of
    >>> encoding = Encoding((None, 2.0), (None, 0.5), (None, (0.0, 3.0)), (("red", "blue"), None))
    >>> encoding.of(frame_of([["blue", 1.0], ["green", None], ["red", 9.0]]), [0, 1]).tolist()
    [[0.0, 1.0, -2.0], [nan, nan, nan], [1.0, 0.0, 2.0]]
    """

    middle: tuple[float | None, ...]  # of each number
    spread: tuple[float | None, ...]
    range: tuple[tuple[float, float] | None, ...]
    levels: tuple[Levels | None, ...]  # of each category
    baseline: tuple[bool, ...] = ()  # whether the first level is the baseline; (): for no feature

    def check_fields(self) -> None:
        columns: Any = (self.middle, self.spread, self.range, self.levels)
        require(len(self.baseline) in (0, len(self.levels)), f"baselines of {len(self.baseline)} columns")
        require(len({*map(len, columns)}) == 1 and self.levels, "numbers and levels of different columns")
        for middle, spread, ends, values in zip(*columns, strict=True):
            consistent = (middle is None) == (spread is None) == (ends is None) != (values is None)
            require(consistent, "a column is both a number and a category, or neither")
            if values is None:
                finite = np.isfinite([middle, spread, *ends]).all()
                require(finite and spread > 0 and ends[0] <= ends[1], "a spread is not above 0")
            else:
                require(len(set(values)) == len(values) > 0, "a value is repeated, or there is none")
        for values, first in zip(self.levels, self.baseline, strict=bool(self.baseline)):
            require(not first or (values is not None and len(values) > 1), "a baseline is the only value")

    @cached_property
    def _first(self) -> tuple[int, ...]:
        """(d) the index of the first level that has an entry."""
        return tuple(map(int, self.baseline)) if self.baseline else (0,) * len(self.levels)

    @cached_property
    def owner(self) -> IntArray:
        """(m) the feature that each entry belongs to."""
        pairs = zip(self.levels, self._first, strict=True)
        widths = [1 if levels is None else len(levels) - first for levels, first in pairs]
        return np.repeat(np.arange(len(widths)), widths)

    def formula(self) -> tuple[Scaled | Listed, ...]:
        """The entries of each feature, as formulas."""
        entries: list[Scaled | Listed] = []
        for j, levels in enumerate(self.levels):
            entry = int(np.searchsorted(self.owner, j))
            if levels is None:
                low, high = self.range[j] or (-np.inf, np.inf)
                entries.append(formulas.Scaled(j, entry, self.middle[j], self.spread[j], low, high, FARTHEST))
            else:
                code = formulas.Code(j, len(levels), levels=levels)
                entries.append(formulas.Listed(code, entry - self._first[j], len(levels) - self._first[j]))
        return tuple(entries)

    def take(self, columns: Sequence[int]) -> Encoding:
        fields = (self.middle, self.spread, self.range, self.levels, self.baseline)
        return Encoding(*(tuple(field[j] for j in columns) if field else () for field in fields))  # type: ignore[arg-type]

    def of(self, frame: Frame, columns: Sequence[ColumnRef]) -> FloatArray:
        """(n, m) the entries of these columns of a frame."""
        out = np.zeros((frame.rows, len(self.owner)))
        numbers = np.array([j for j, levels in enumerate(self.levels) if levels is None], np.intp)
        categories = np.array([j for j, levels in enumerate(self.levels) if levels is not None], np.intp)
        if len(numbers):
            x = frame.numbers([columns[j] for j in numbers]).astype(np.float64)
            middle, spread = (np.array([field[j] for j in numbers], np.float64) for field in (self.middle, self.spread))
            low, high = np.array([self.range[j] for j in numbers], np.float64).T
            z = np.clip((np.clip(x, low, high) - middle) / spread, -FARTHEST, FARTHEST)
            out[:, np.searchsorted(self.owner, numbers)] = z
        if len(categories):
            codes = _level_codes(frame, columns, categories, self.levels)
            entry = codes - np.array([self._first[j] for j in categories])
            first = np.searchsorted(self.owner, categories)
            rows, which = np.nonzero(entry >= 0)
            out[rows, first[which] + entry[rows, which]] = 1.0
            for i, j in enumerate(categories.tolist()):
                out[np.ix_(codes[:, i] < 0, self.owner == j)] = np.nan
        return out


def _level_codes(
    frame: Frame, columns: Sequence[ColumnRef], categories: IntArray, levels: tuple[Levels | None, ...]
) -> NDArray[np.int32]:
    """(n, c) the index of each value among the levels of its category."""
    lists = tuple(levels[j] or () for j in categories)
    return frame.codes([columns[j] for j in categories], lists)
