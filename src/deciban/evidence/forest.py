"""Forest: decision trees as partitions of the rows, whose leaves are counted."""

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
from deciban.types import BoolArray, FloatArray, IntArray, Labels

SHARE = 0.8  # of the rows that a tree is grown from; the others are out of bag
LEAVES = 4096  # of a tree, about, at most
COUNTS = 1 << 24  # of all leaves and classes, about, at most
DEPTH = 30


@dataclass(frozen=True, eq=False)
class Forest(PartitionCounts):
    """Trees that are fixed before rows are counted: every leaf is a cell with counts.

    A tree is grown from some of the rows, by Gini's criterion, from √d of d features that are drawn at each node. Which
    rows those are depends on their values alone, so the trees that never saw a training row are known: they score it as
    they would a new row, once it is subtracted from their counts.
    """

    starts: NDArray[np.int64]  # (trees + 1) the first node of each tree
    column: NDArray[np.int32]  # (nodes) the feature of the split; −1 for a leaf
    code: NDArray[np.int32]  # (nodes) codes that go left: up to this one, or for a category this one
    left: NDArray[np.int32]  # (nodes) the left child within the tree, before the right one; for a leaf its number
    seed: int

    def check_fields(self) -> None:
        starts, column, left = self.starts, self.column, self.left.astype(np.int64)
        require(starts.ndim == 1 and len(starts) > 1 and starts[0] == 0, "trees do not begin at 0")
        sizes = np.diff(starts)
        same_length = column.shape == self.code.shape == left.shape == (starts[-1],)
        require((sizes > 0).all() and same_length, "nodes are missing")
        require(column.min() >= -1 and column.max() < len(self.reading.cuts), "a node splits an unknown column")
        require((self.code >= 0).all() and (self.code < MOST_CODES).all(), "a node splits at an unknown code")
        require(0 <= self.seed < 1 << 63, f"the seed {self.seed} is out of range")
        tree = np.repeat(np.arange(len(sizes)), sizes)
        node, inner = np.arange(starts[-1]) - starts[tree], column >= 0
        later = (left[inner] > node[inner]).all() and (left[inner] + 1 < sizes[tree[inner]]).all()
        require(later, "the children of a node do not follow it in its tree")
        leaves = np.cumsum(~inner) - 1
        before = np.concatenate([[0], np.cumsum(~inner)])[starts[:-1]]
        require((left[~inner] == (leaves - before[tree])[~inner]).all(), "leaves are not numbered in order")

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
        """Trees grown from coded rows."""
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

    def seen(self, codes: Codes) -> BoolArray:
        """(n, trees) whether each tree was grown from a row with these codes."""
        return _kernels.in_bag(codes, len(self.starts) - 1, SHARE, self.seed)

    def sums(self, counts: FloatArray) -> FloatArray:
        """(nodes, K) the counts of all nodes, from those (leaves, K) of the leaves."""
        sums = np.zeros((len(self.column), counts.shape[1]))
        sums[self.column < 0] = counts
        first = np.repeat(self.starts[:-1], np.diff(self.starts))
        levels, nodes = [], self.starts[:-1]
        while len(nodes := nodes[self.column[nodes] >= 0]):
            children = first[nodes] + self.left[nodes]
            levels.append((nodes, children))
            nodes = np.concatenate([children, children + 1])
        for nodes, children in reversed(levels):
            sums[nodes] = sums[children] + sums[children + 1]
        return sums

    def by_level(self) -> IntArray:
        """(nodes) the nodes of all trees by level: the roots, then the two children of each inner node, and so on.

        In this order the children of the i-th inner node (from 0) are the nodes trees + 2i and trees + 2i + 1.
        """
        first = np.repeat(self.starts[:-1], np.diff(self.starts))
        levels, nodes = list[IntArray](), self.starts[:-1]
        while len(nodes):
            levels.append(nodes)
            inner = nodes[self.column[nodes] >= 0]
            children = first[inner] + self.left[inner]
            nodes = np.stack([children, children + 1], axis=1).reshape(-1)
        return np.concatenate([np.zeros(0, np.intp), *levels])

    @property
    def _nodes(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], BoolArray]:
        return self.starts, self.column, self.code, self.left, self.reading.ordered

    def shares(self, codes: Codes, node_scores: FloatArray) -> FloatArray:
        """(n, features, K) how much node scores (nodes, K) change at the splits of each feature."""
        return _kernels.tree_contributions(codes, *self._nodes, node_scores)

    def pooled(self, codes: Codes, unknown: BoolArray, sums: FloatArray, skip: BoolArray | None = None) -> FloatArray:
        """(trees, n, K) the counts of all leaves that a row may be in, given its known features.

        sums (nodes, K) are the counts of all nodes; trees to skip (n, trees) have the counts of the root.
        """
        return _kernels.pooled_leaf_counts(codes, unknown, *self._nodes, sums, skip)

    def pooled_shares(
        self, codes: Codes, unknown: BoolArray, sums: FloatArray, prior: FloatArray, virtual: float
    ) -> FloatArray:
        """(n, features, K) how much each feature changes log (N_c + sπ_c) − log π_c, centred, down to these leaves.

        At each level of a tree, features share the change by the rows that they rule out; if all are known, a split
        belongs to its feature.
        """
        return _kernels.pooled_contributions(codes, unknown, *self._nodes, sums, prior, virtual)
