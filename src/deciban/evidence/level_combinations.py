"""LevelCombinations: combinations of levels of categories, of which only those that occur have a cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban.data.batch import ColumnRef, Frame
from deciban.errors import require
from deciban.evidence.back_off import Features, codes_of, find_keys, keys_of, parts_of
from deciban.evidence.partition_counts import PartitionCounts
from deciban.types import IntArray, Levels

MOST_FEATURES = 3  # in a combination
LARGEST = 1 << 62  # product of the numbers of codes of these


@dataclass(frozen=True)
class LevelCodes:
    """1 + the index of a level in a list; 0 for a missing or an unlisted value, which is unknown.

    >>> from deciban.data import frame_of
    >>> LevelCodes((("red", "blue"),)).of(frame_of([["blue"], ["green"], [None]]), [0]).tolist()
    [[2], [0], [0]]
    """

    levels: tuple[Levels, ...]

    def check_fields(self) -> None:
        for values in self.levels:
            require(len(set(values)) == len(values) > 0, "a value is repeated, or there is none")

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """(d) the number of codes of each feature."""
        return np.array([1 + len(levels) for levels in self.levels], np.int64)

    def take(self, columns: Sequence[int]) -> LevelCodes:
        return LevelCodes(tuple(self.levels[j] for j in columns))

    def of(self, frame: Frame, columns: Sequence[ColumnRef]) -> NDArray[np.int32]:
        """(n, d) the codes of these columns of a frame."""
        return np.asfortranarray(np.maximum(frame.codes(columns, self.levels) + 1, 0))


@dataclass(frozen=True, eq=False)
class LevelCombinations(PartitionCounts):
    """Partitions of the rows by each feature, then by combinations of two and of three of them.

    The first cell of each partition is that of unknown values, or of combinations that are not listed.

    >>> reading = LevelCodes((("u", "v"), ("x", "y", "z")))
    >>> family = LevelCombinations(reading, ((0, 1),), (True,), np.array([0, 2]), np.array([5, 10]))  # u and x, v and y
    >>> family.cells(np.array([[1, 1], [2, 2], [2, 3]], np.int32)).tolist(), family.offsets.tolist()
    ([[1, 1, 1], [2, 2, 2], [2, 3, 0]], [0, 3, 7, 10])
    """

    reading: LevelCodes  # type: ignore[assignment]  # codes of any number of levels
    combined: tuple[tuple[int, ...], ...]  # the features of each combination, in ascending order; parts come first
    selected: tuple[bool, ...]  # whether it is evidence, and not only a part of others
    starts: NDArray[np.int64]  # (combinations + 1) the first key of each
    keys: NDArray[np.int64]  # codes as one number (see `keys_of`), ascending within each combination
    least: float = 0.0  # nats over all rows that a combination had to gain over its parts, to be selected

    def check_fields(self) -> None:
        starts, keys, sizes = self.starts, self.keys, [1 + len(levels) for levels in self.reading.levels]
        require(0 <= self.least < np.inf, f"the least gain is {self.least}")
        require(len(self.selected) == len(self.combined) > 0, "combinations are missing")
        require(starts.shape == (len(self.combined) + 1,) and starts[0] == 0, "combinations do not begin at 0")
        require(keys.ndim == 1 and bool((np.diff(starts) > 0).all()) and starts[-1] == len(keys), "keys are missing")
        known: set[Features] = {(j,) for j in range(len(sizes))}
        for features, own in zip(self.combined, np.split(keys, starts[1:-1]), strict=True):
            require(2 <= len(features) <= MOST_FEATURES and list(features) == sorted({*features}), "unordered columns")
            require(known.issuperset(parts_of(features)), "a combination of unknown columns")
            product = 1
            for j in features:
                product *= sizes[j]
            require(product < LARGEST, "combinations are too many")
            require(bool((np.diff(own) > 0).all()) and own[0] > 0 and own[-1] < product, "keys do not ascend")
            codes = codes_of(own, np.array([sizes[j] for j in features], np.int64))
            require(bool((codes > 0).all()), "a combination of no levels")
            known.add(features)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, LevelCombinations) or self._key != other._key:
            return False
        return np.array_equal(self.starts, other.starts) and np.array_equal(self.keys, other.keys)

    def __hash__(self) -> int:
        return hash((self.combined, self.selected, self.least, len(self.keys)))

    @property
    def _key(self) -> tuple[Any, ...]:
        return self.reading, self.combined, self.selected, self.least

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        return np.cumsum([0, *self.reading.sizes, *(np.diff(self.starts) + 1)], dtype=np.int64)

    @cached_property
    def partitions(self) -> tuple[Features, ...]:
        """The features of each partition."""
        return (*((j,) for j in range(len(self.reading.levels))), *self.combined)

    @cached_property
    def _keys_of(self) -> dict[Features, NDArray[np.int64]]:
        return dict(zip(self.combined, np.split(self.keys, self.starts[1:-1]), strict=True))

    def cells(self, codes: NDArray[Any]) -> NDArray[np.int32]:
        return np.stack([self.cells_of(features, codes[:, features]) for features in self.partitions], axis=1)

    def cells_of(self, features: Features, codes: NDArray[Any]) -> NDArray[np.int32]:
        """(n) the cell of each row in one partition, by the codes (n, k) of its features."""
        if len(features) == 1:
            return codes[:, 0].astype(np.int32)
        return find_keys(self._keys_of[features], keys_of(codes, self.reading.sizes[list(features)]))

    @cached_property
    def part_cells(self) -> tuple[dict[Features, IntArray], ...]:
        """For each partition, the cell of each of its cells in all smaller partitions of its features."""
        found: list[dict[Features, IntArray]] = []
        for features in self.partitions:
            smaller = [part for part in self.partitions if {*part} < {*features}]
            codes = np.zeros((1, len(features)), np.int64)
            if smaller:
                listed = codes_of(self._keys_of[features], self.reading.sizes[list(features)])
                codes = np.concatenate([codes, listed])
            places = ([features.index(j) for j in part] for part in smaller)
            cells = (self.cells_of(part, codes[:, at]) for part, at in zip(smaller, places, strict=True))
            found.append({part: of_part.astype(np.intp) for part, of_part in zip(smaller, cells, strict=True)})
        return tuple(found)
