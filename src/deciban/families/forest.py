"""Forest: partitions of the rows by decision trees, whose leaves are counted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.families.celled import Celled
from deciban.families.mixed import Codes, Coding
from deciban.types import FloatArray, IntArray, Labels

SHARE = 0.8  # of the rows, that a tree is grown from; the others tell how good it is
LEAVES = 4096  # of a tree, about, at most
COUNTS = 1 << 24  # of all leaves and classes, about, at most
DEPTH = 30


@dataclass(frozen=True, eq=False)
class Forest(Celled):
    """Trees that are fixed before rows are counted: every leaf is a cell, which only its counts tell about.

    A tree is grown from some of the rows, by Gini's criterion, and may ask for √d of d columns (drawn anew) at a node.
    Which rows those are depends on what they hold alone, so of a row of the fit it is known which trees never saw it:
    they judge it as they would a new row, once it is left out of their counts.
    """

    starts: NDArray[np.int64]  # (trees + 1) the first node of each tree
    column: NDArray[np.int32]  # (nodes) −1 of a leaf
    code: NDArray[np.int32]  # (nodes) what goes left: up to this code, or of a category this one
    left: NDArray[np.int32]  # (nodes) the left child within the tree, which the right one follows; of a leaf its number
    seed: int

    @classmethod
    def grown(
        cls,
        reading: Coding,
        codes: Codes,
        labels: Labels,
        weights: FloatArray | None,
        classes: int,
        trees: int,
        seed: int,
    ) -> Forest:
        """From rows whose codes are known."""
        rows = float(len(labels) if weights is None else weights.sum())
        tries = max(1, round(np.sqrt(codes.shape[1])))
        least = max(1.0, float(int(SHARE * rows / min(LEAVES, max(1, COUNTS // (trees * classes))))))
        arrays = _kernels.grow_forest(
            codes, reading.sizes, reading.ordered, labels, weights, classes, trees, SHARE, tries, least, DEPTH, seed
        )
        return cls(reading, *arrays, seed)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Forest) or self.reading != other.reading or self.seed != other.seed:
            return False
        return all(np.array_equal(a, b) for a, b in zip(self._arrays, other._arrays, strict=True))

    def __hash__(self) -> int:
        return hash((self.reading, self.seed, len(self.column)))

    @property
    def _arrays(self) -> tuple[NDArray[Any], ...]:
        return self.starts, self.column, self.code, self.left

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        leaves = np.concatenate([[0], np.cumsum(self.column < 0)])
        return leaves[self.starts].astype(np.int64)

    def cells(self, codes: Codes) -> NDArray[np.int32]:
        return _kernels.find_leaves(codes, *self._nodes)

    def seen(self, codes: Codes) -> NDArray[np.bool_]:
        """(n, trees) whether each tree was grown from rows like these."""
        return _kernels.in_bag(codes, len(self.starts) - 1, SHARE, self.seed)

    def sums(self, counts: FloatArray) -> FloatArray:
        """(nodes, K) the counts of all nodes, from those (leaves, K) of the leaves."""
        found = np.zeros((len(self.column), counts.shape[1]))
        found[self.column < 0] = counts
        first = np.repeat(self.starts[:-1], np.diff(self.starts))
        levels, nodes = [], self.starts[:-1]
        while len(nodes := nodes[self.column[nodes] >= 0]):
            children = first[nodes] + self.left[nodes]
            levels.append((nodes, children))
            nodes = np.concatenate([children, children + 1])
        for nodes, children in reversed(levels):
            found[nodes] = found[children] + found[children + 1]
        return found

    def by_level(self) -> IntArray:
        """(nodes) all trees at once, level by level: the roots, then the two children of each inner node, and so on.

        In this order the children of the i-th inner node (from 0) are the nodes trees + 2i and trees + 2i + 1.
        """
        first = np.repeat(self.starts[:-1], np.diff(self.starts))
        found, nodes = list[IntArray](), self.starts[:-1]
        while len(nodes):
            found.append(nodes)
            inner = nodes[self.column[nodes] >= 0]
            children = first[inner] + self.left[inner]
            nodes = np.stack([children, children + 1], axis=1).reshape(-1)
        return np.concatenate([np.zeros(0, np.intp), *found])

    @property
    def _nodes(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
        return self.starts, self.column, self.code, self.left, self.reading.ordered

    def shares(self, codes: Codes, said: FloatArray) -> FloatArray:
        """(n, columns, K) for each row, what the steps that ask for a column change of what nodes say (nodes, K)."""
        return _kernels.tree_shares(codes, *self._nodes, said)

    def pooled(
        self, codes: Codes, unknown: NDArray[np.bool_], sums: FloatArray, skip: NDArray[np.bool_] | None = None
    ) -> FloatArray:
        """(trees, n, K) the counts of all leaves that a row may be in, as far as its columns are known.

        sums (nodes, K) are the counts of all nodes; trees that are skipped (n, trees) have the counts of the root.
        """
        return _kernels.pooled_leaves(codes, unknown, *self._nodes, sums, skip)

    def pooled_shares(
        self, codes: Codes, unknown: NDArray[np.bool_], sums: FloatArray, prior: FloatArray, virtual: float
    ) -> FloatArray:
        """(n, columns, K) what columns change of log (N_c + sπ_c) − log π_c, centred, on the way to these leaves.

        At each level of a tree, columns share by the rows that they rule out: where all is known, a step is its
        column's.
        """
        return _kernels.pooled_shares(codes, unknown, *self._nodes, sums, prior, virtual)
