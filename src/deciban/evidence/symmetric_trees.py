"""SymmetricTrees: boosted ensembles of symmetric trees, whose leaves each add a little to the log-odds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.errors import require
from deciban.evidence.mixed_columns import MOST_CODES, Codes, Coding
from deciban.evidence.partition_counts import PartitionCounts
from deciban.types import BoolArray, FloatArray, Labels, Levels

MOST_ROWS = 100_000  # that trees are grown from, about
VALUES = 1 << 22  # of all trees, leaves and classes, at most
DEPTH, MOST_DEPTH = 6, 8
ENSEMBLES = 10
ROUNDS = 500  # of an ensemble, at most
RATE = 0.07  # of learning; up to twice as much if fewer rounds are allowed
L2 = 1.0
ROWS, COLUMNS = 0.8, 0.5  # of which a tree is grown


@dataclass(frozen=True, eq=False)
class SymmetricTrees(PartitionCounts):
    """Trees and the values of their leaves, both fixed before rows are counted; nothing else is counted.

    All nodes of a level of a tree have the same split, so a tree of depth 6 is 6 splits and 64 values: a step of
    gradient boosting (Friedman 2001, with Newton's values). There are ten ensembles. The rows are in ten folds, by
    their codes alone, and each ensemble is grown without one of them, so a training row is scored by the one that
    never saw it, and a new row by the mean of all. How long an ensemble grows is chosen by the rows that the others
    have not seen.
    """

    classes: Levels  # of the values; for two classes there is one, of the second
    starts: NDArray[np.int64]  # (ensembles + 1) the first tree of each
    column: NDArray[np.int32]  # (trees, depth) the feature of each split; −1 for none
    code: NDArray[np.int32]  # (trees, depth) codes that go left: up to this one, or for a category this one
    value: NDArray[np.float32]  # (trees, leaves, K or 1) the first split is the highest bit of a leaf
    rows: NDArray[np.float32]  # (trees, leaves) the weight of the rows that it was grown from, and of a virtual row
    seed: int

    def check_fields(self) -> None:
        starts, column, code = self.starts, self.column, self.code
        ensembles = len(starts) - 1 if starts.ndim == 1 else 0
        require(ensembles > 0 and starts[0] == 0 and (np.diff(starts) > 0).all(), "ensembles without trees")
        require(column.ndim == 2 and 0 < column.shape[1] <= MOST_DEPTH, "the depth of trees is out of range")
        trees, depth = column.shape
        outputs = 1 if len(self.classes) == 2 else len(self.classes)
        require(len(set(self.classes)) == len(self.classes) > 1, "a class is repeated, or there is only one")
        require(starts[-1] == trees and code.shape == column.shape, "trees are missing")
        require(self.value.shape == (trees, 1 << depth, outputs), "values of leaves are missing")
        require(self.rows.shape == (trees, 1 << depth), "rows of leaves are missing")
        require(column.min() >= -1 and column.max() < len(self.reading.cuts), "a tree splits an unknown column")
        require((code >= 0).all() and (code < MOST_CODES).all(), "a tree splits at an unknown code")
        require(bool(np.isfinite(self.value).all()), "a value of a leaf is not finite")
        require(bool((column[:, :-1] >= 0)[column[:, 1:] >= 0].all()), "a level without a split has splits below it")
        apart = 1 << (depth - (column >= 0).sum(axis=1, keepdims=True))  # of leaves that rows can reach
        reached = np.arange(1 << depth) % apart == 0
        require(bool(np.isfinite(self.rows).all() and ((self.rows > 0) == reached).all()), "a leaf has no rows")
        require(0 <= self.seed < 1 << 63, f"the seed {self.seed} is out of range")

    @classmethod
    def grown(
        cls,
        reading: Coding,
        codes: Codes,
        labels: Labels,
        weights: FloatArray | None,
        classes: Levels,
        seed: int,
        ensembles: int = ENSEMBLES,
        most_rounds: int = ROUNDS,
    ) -> SymmetricTrees:
        """Ensembles grown from coded rows; from some of them, drawn by their codes, if they are very many."""
        if len(codes) > MOST_ROWS:
            drawn = _kernels.find_ensembles(codes, len(codes), seed + 1) < MOST_ROWS
            codes, labels = np.asfortranarray(codes[drawn]), labels[drawn]
            weights = None if weights is None else weights[drawn]
        outputs = 1 if len(classes) == 2 else len(classes)
        rounds = max(1, min(most_rounds, VALUES // (ensembles * outputs << DEPTH)))
        rate = RATE * min(2.0, ROUNDS / rounds)
        settings = len(classes), ensembles, rounds, DEPTH, rate, L2, ROWS, COLUMNS, seed
        grown = _kernels.boost(codes, reading.sizes, reading.ordered, labels, weights, *settings)
        starts, column, code, value, rows = grown
        return cls(reading, classes, starts, column, code, value.astype(np.float32), rows.astype(np.float32), seed)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, SymmetricTrees) or self._key != other._key:
            return False
        return all(np.array_equal(a, b) for a, b in zip(self._arrays, other._arrays, strict=True))

    def __hash__(self) -> int:
        return hash((self._key, len(self.column)))

    @property
    def _key(self) -> tuple[Any, ...]:
        return self.reading, self.classes, self.seed

    @property
    def _arrays(self) -> tuple[NDArray[Any], ...]:
        return self.starts, self.column, self.code, self.value, self.rows

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        return np.zeros(1, np.int64)

    def cells(self, codes: Codes) -> NDArray[np.int32]:
        return np.zeros((len(codes), 0), np.int32)

    @cached_property
    def ensemble(self) -> NDArray[np.int32]:
        """(trees) the ensemble of each tree."""
        sizes = np.diff(self.starts)
        return np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)

    @cached_property
    def nodes(self) -> tuple[FloatArray, FloatArray]:
        """The means (trees, nodes, outputs) and the rows (trees, nodes) of all nodes, numbered as in a heap from 1."""
        trees, depth = self.column.shape
        mean, rows = np.zeros((trees, 2 << depth, self.value.shape[2])), np.zeros((trees, 2 << depth))
        mean[:, 1 << depth :], rows[:, 1 << depth :] = self.value, self.rows
        for level in reversed(range(depth)):
            nodes, children = slice(1 << level, 2 << level), slice(2 << level, 4 << level)
            pairs = rows[:, children].reshape(trees, -1, 2)
            rows[:, nodes] = pairs.sum(axis=2)
            sums = (pairs[..., np.newaxis] * mean[:, children].reshape(trees, 1 << level, 2, -1)).sum(axis=2)
            np.divide(sums, rows[:, nodes, np.newaxis], out=mean[:, nodes], where=rows[:, nodes, np.newaxis] > 0)
        return mean, rows

    def held_out_from(self, codes: Codes) -> NDArray[np.int32]:
        """(n) the ensemble that never saw rows with these codes."""
        return _kernels.find_ensembles(codes, len(self.starts) - 1, self.seed)

    def values(
        self, codes: Codes, unknown: BoolArray | None, part: NDArray[np.int32], of: NDArray[np.int32] | None
    ) -> FloatArray:
        """(n, parts, outputs) sums over the trees of each part: of one ensemble for each row, or of all of them."""
        trees = self.column, self.code, self.reading.ordered, *self.nodes
        return _kernels.leaf_values(codes, unknown, *trees, part, int(part.max()) + 1, of, self.ensemble)

    def contributions(self, codes: Codes, unknown: BoolArray | None, trees: BoolArray) -> FloatArray:
        """(n, features, outputs) how much the splits of each feature add to the values of some of the trees."""
        mean, rows = (array[trees] for array in self.nodes)
        splits = self.column[trees], self.code[trees]
        return _kernels.symmetric_contributions(codes, unknown, *splits, self.reading.ordered, mean, rows)
