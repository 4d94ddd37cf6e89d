"""LevelPairs: combinations of the levels of two categories, of which only those that occur have a cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban.data.batch import ColumnRef, Frame
from deciban.errors import require
from deciban.evidence.partition_counts import PartitionCounts
from deciban.types import IntArray, Levels

MOST_CODES = 1 << 31  # of a column


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

    def of(self, frame: Frame, columns: Sequence[ColumnRef]) -> NDArray[np.int32]:
        """(n, d) the codes of these columns of a frame."""
        return np.maximum(frame.codes(columns, self.levels) + 1, 0)


@dataclass(frozen=True, eq=False)
class LevelPairs(PartitionCounts):
    """Partitions by each feature, then by each pair of them: p(x_a|c), …, p(x_a, x_b|c), ….

    The first cell of each partition is that of unknown values, or of combinations that are not listed.

    >>> reading = LevelCodes((("u", "v"), ("x", "y", "z")))
    >>> family = LevelPairs(reading, ((0, 1),), np.array([0, 2]), np.array([5, 10]))  # u with x, v with y
    >>> family.cells(np.array([[1, 1], [2, 2], [2, 3]], np.int32)).tolist(), family.offsets.tolist()
    ([[1, 1, 1], [2, 2, 2], [2, 3, 0]], [0, 3, 7, 10])
    """

    reading: LevelCodes  # type: ignore[assignment]  # codes of any number of levels
    pairs: tuple[tuple[int, int], ...]
    starts: NDArray[np.int64]  # (pairs + 1) the first combination of each
    keys: NDArray[np.int64]  # (combinations) code of a · (codes of b) + code of b, ascending within each pair
    least: float = 0.0  # nats over all rows that a pair had to gain over its two features, to be selected

    def check_fields(self) -> None:
        starts, keys, d = self.starts, self.keys, len(self.reading.levels)
        require(0 <= self.least < np.inf, f"the least gain is {self.least}")
        known = all(0 <= a < d and 0 <= b < d and a != b for a, b in self.pairs)
        require(bool(self.pairs) and known, "pairs of unknown columns")
        require(starts.shape == (len(self.pairs) + 1,) and starts[0] == 0, "combinations do not begin at 0")
        require(keys.ndim == 1 and bool((np.diff(starts) > 0).all()) and starts[-1] == len(keys), "a pair has no cells")
        sizes = [1 + len(levels) for levels in self.reading.levels]
        for (a, b), own in zip(self.pairs, np.split(keys, starts[1:-1]), strict=True):
            require(bool((np.diff(own) > 0).all()), "combinations do not ascend")
            codes = np.divmod(own, sizes[b])
            require(min(code.min() for code in codes) > 0 and codes[0].max() < sizes[a], "a combination of no levels")

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, LevelPairs) or self._key != other._key:
            return False
        return np.array_equal(self.starts, other.starts) and np.array_equal(self.keys, other.keys)

    def __hash__(self) -> int:
        return hash((self.pairs, self.least, len(self.keys)))

    @property
    def _key(self) -> tuple[Any, ...]:
        return self.reading, self.pairs, self.least

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        return np.cumsum([0, *self.reading.sizes, *(np.diff(self.starts) + 1)], dtype=np.int64)

    @cached_property
    def combinations(self) -> tuple[NDArray[np.int64], ...]:
        """The keys of each pair."""
        return tuple(np.split(self.keys, self.starts[1:-1]))

    def parts(self, pair: int) -> tuple[IntArray, IntArray]:
        """(combinations) the codes of both features in each combination of a pair."""
        return np.divmod(self.combinations[pair], self.reading.sizes[self.pairs[pair][1]])

    def cells(self, codes: NDArray[Any]) -> NDArray[np.int32]:
        out = np.zeros((len(codes), len(self.offsets) - 1), np.int32)
        d = codes.shape[1]
        out[:, :d] = codes
        for p, ((a, b), keys) in enumerate(zip(self.pairs, self.combinations, strict=True)):
            own = pair_keys(codes[:, a], codes[:, b], int(self.reading.sizes[b]))
            at = np.minimum(np.searchsorted(keys, own), len(keys) - 1)
            out[:, d + p] = np.where(keys[at] == own, at + 1, 0)
        return out


def pair_keys(a: NDArray[Any], b: NDArray[Any], size: int) -> NDArray[np.int64]:
    """(n) a·size + b of two codes, where both are known; else −1, which is no key."""
    keys: NDArray[np.int64] = np.where((a > 0) & (b > 0), a.astype(np.int64) * size + b, -1)
    return keys
