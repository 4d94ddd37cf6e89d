"""Evidence from the leaves of a forest."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from deciban import _kernels
from deciban.evidence.block_evidence import AddScores, AddShares, EvidencePiece, Rows
from deciban.evidence.forest import Forest
from deciban.evidence.mixed_columns import Codes
from deciban.evidence.tables import CountEvidence, subtract_counts
from deciban.families.family import formulas, padded_table
from deciban.generative.plan import Plan
from deciban.statistics.cell_counts import Cells
from deciban.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from deciban.evidence.structure import JointPlanning
    from deciban.export.formulas import Formula
    from deciban.families.labelled_values import LabelledValues
    from deciban.generative.block import Block
    from deciban.generative.model import Generative

POOLED = 1 << 22  # numbers allocated at a time, for rows that may be in several leaves of a tree


class ForestLeaves(CountEvidence):
    """The mean over trees of log (N_c(leaf) + sπ_c) − log π_c, with s = ½.

    Where a tree splits on a feature that is unknown, the row goes both ways, and N_c counts all leaves that it may be
    in: the rows that agree with it in what is known. A training row is scored by the trees that were not grown from
    it. The evidence of a tree is the sum of the changes at each split, and a change belongs to the feature of its
    split; where a row goes both ways, the features of a level share its change by the rows that they rule out.
    """

    families = (Forest,)
    description = "trees that split on it and on others"
    virtual_rows = 0.5

    def __init__(self, columns: Sequence[int], family: Forest, statistic: Cells, class_rows: FloatArray) -> None:
        self.columns, self.family = tuple(columns), family
        self.set_counts(statistic.sum_x.value.T, class_rows)
        self.pieces = (EvidencePiece("forest", self.columns),)

    @classmethod
    def from_block(cls, block: Block, model: Generative) -> Self:
        return cls(block.columns, block.family, block.statistic, model.counts.value)  # type: ignore[arg-type]

    @classmethod
    def joint_plans(cls, planning: JointPlanning) -> list[Plan]:
        settings = planning.settings
        if planning.fine is None or not settings.trees:
            return []
        columns, coding, codes = planning.fine
        labels, weights = planning.sample.labels, planning.sample.weights
        forest = Forest.grown(coding, codes, labels.codes, weights, len(labels.classes), settings.trees, settings.seed)
        return [Plan(forest, columns)]

    @property
    def _trees(self) -> int:
        return len(self.family.starts) - 1

    @cached_property
    def _sums(self) -> FloatArray:
        """(nodes, K) the counts of all nodes."""
        return self.family.sums(self.counts)

    def evidence(self, rows: Rows) -> FloatArray:
        out = np.empty((len(rows.values), len(self.prior)))
        for indices, unknown in self._batches(rows.values, rows.hides(self.columns)):
            batch = rows if len(indices) == len(rows.values) else rows.take(indices)
            skip = None if batch.labels is None else self.family.seen(batch.values)  # trees grown from the row
            if unknown is None:
                cells, offsets, counts = self.family.cells(batch.values), self.family.offsets, self.counts
            else:  # each row has a cell of its own in every tree
                n = len(indices)
                counts = self.family.pooled(batch.values, unknown, self._sums, skip).reshape(-1, len(self.prior))
                cells = np.repeat(np.arange(n, dtype=np.int32)[:, np.newaxis], self._trees, axis=1)
                offsets = np.arange(self._trees + 1, dtype=np.int64) * n
            evidence = np.empty((len(indices), len(self.prior)))
            _kernels.mean_cell_evidence(
                cells, offsets, counts, self.rows, self.virtual_rows, batch.labels, batch.weights, skip, evidence
            )
            out[indices] = evidence
        return out[:, np.newaxis]

    def _batches(self, codes: Codes, hidden: BoolArray | None = None) -> list[tuple[IntArray, BoolArray | None]]:
        """Indices of rows, with the mask (m, d) of their unknown features; None for those without any."""
        unknown = self.family.reading.unknown(codes)
        if hidden is not None:
            unknown |= hidden
        incomplete = unknown.any(axis=1)
        step = max(1, POOLED // (self._trees * len(self.prior)))
        indices = np.flatnonzero(incomplete)
        steps = [indices[at : at + step] for at in range(0, len(indices), step)]
        batches: list[tuple[IntArray, BoolArray | None]] = [(rows, unknown[rows]) for rows in steps]
        return [(np.flatnonzero(~incomplete), None), *batches] if len(indices) < len(codes) else batches

    def subtract(self, rows: LabelledValues, kept: IntArray) -> Self:
        cells, offsets = self.family.cells(rows.values), self.family.offsets
        rest = self.with_counts(*subtract_counts(self.counts, self.rows, cells, offsets, rows, kept))
        rest.__dict__.pop("_sums", None)
        return rest

    @property
    def n_parameters(self) -> int:
        return (len(self.counts) - self._trees) * len(self.prior)

    def _logs(self, counts: FloatArray) -> FloatArray:
        """(nodes, K) the evidence of each node, divided by the number of trees."""
        return self.log_ratio(counts) / self._trees

    @property
    def numbers_per_row(self) -> int:
        return len(self.family.starts)

    def scorer(self, weights: FloatArray) -> AddScores:
        table = padded_table((self._logs(self.counts) * weights[0]).T)

        def add(values: Codes, out: FloatArray) -> None:
            for rows, unknown in self._batches(values):
                if unknown is not None:
                    out[rows] += self.evidence(Rows(values[rows]))[:, 0] * weights[0]
                    continue
                everything = len(rows) == len(values)
                codes = self.family.cells(values if everything else np.asfortranarray(values[rows]))
                scores = out if everything else out[rows]
                _kernels.add_table(codes, self.family.offsets, table, out.shape[1], scores)
                if not everything:
                    out[rows] = scores

        return add

    def formulas(self) -> list[tuple[int, Formula]]:
        reading, order = self.family.reading, self.family.by_level()
        column, code = self.family.column[order], self.family.code[order]
        leaf = np.cumsum(self.family.column < 0) - 1  # (nodes) the index of each in the counts
        counts = self.counts[leaf[order[column < 0]]]
        trees = self._trees, column + 1, code, counts, self.prior, self.virtual_rows
        return [(0, formulas.Trees(tuple(range(len(self.columns))), reading.formula(), reading.ordered, *trees))]

    def share_scorer(self) -> AddShares:
        """The change at each split belongs to its feature."""
        nodes, columns, two = self._logs(self._sums), np.array(self.columns), len(self.prior) == 2
        nodes = np.ascontiguousarray(nodes[:, 1:] if two else nodes)  # two classes are opposite

        def add(values: Codes, weights: FloatArray, out: FloatArray) -> None:
            for rows, unknown in self._batches(values):
                everything = len(rows) == len(values)
                codes = values if everything else values[rows]
                if unknown is None:
                    shares = self.family.shares(codes, nodes)
                    shares = shares * [-1.0, 1.0] if two else shares
                else:
                    shares = self.family.pooled_shares(codes, unknown, self._sums, self.prior, self.virtual_rows)
                    shares /= self._trees
                weight = weights[..., 0, :]
                shares *= weight if weight.ndim == 1 else weight[rows, np.newaxis]
                if everything:
                    out[:, columns] += shares
                else:
                    out[np.ix_(rows, columns)] += shares

        return add
