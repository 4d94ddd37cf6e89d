"""Evidence from the leaves of a forest."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.families.base import padded_table
from deciban.families.forest import Forest
from deciban.families.mixed import Codes
from deciban.late import late
from deciban.statistics.cells import Cells
from deciban.types import FloatArray, IntArray
from deciban.weighing.reader import Adder, Piece, Reader, Rows, ShareAdder, centred
from deciban.weighing.tables import less_rows

if TYPE_CHECKING:
    from deciban.families.formulas import Formula

formulas = late("deciban.families.formulas")  # only a report asks for them

POOLED = 1 << 22  # numbers that are made at a time, of rows that have several leaves in a tree


class ForestLeaves(Reader):
    """The mean over trees of log (N_c(leaf) + sπ_c) − log π_c, with s = ½.

    Where a tree asks for a cell that is unknown, the row goes both ways, and N_c counts all leaves that it may be in:
    the rows that agree with it in what is known. A row that is left out is judged by the trees that were not grown
    from it. What a tree says is the sum of what each step down changes, and a step belongs to the column that it asks
    for; where a row goes several ways, the columns of a level share what it changes by the rows that they rule out.
    """

    virtual = 0.5

    def __init__(self, columns: Sequence[int], family: Forest, statistic: Cells, rows: FloatArray) -> None:
        self.columns, self.family, self.rows, self.prior = tuple(columns), family, rows, rows / rows.sum()
        self.counts = np.ascontiguousarray(statistic.sum_x.value.T)
        self.pieces = (Piece("forest", self.columns),)

    @property
    def _trees(self) -> int:
        return len(self.family.starts) - 1

    @cached_property
    def _sums(self) -> FloatArray:
        """(nodes, K) the counts of all nodes."""
        return self.family.sums(self.counts)

    def evidence(self, rows: Rows) -> FloatArray:
        out = np.empty((len(rows.values), len(self.prior)))
        for some, unknown in self._by_knowledge(rows.values, rows.hides(self.columns)):
            part = rows.take(some)
            skip = None if part.labels is None else self.family.seen(part.values)  # left to the trees that never saw it
            if unknown is None:
                cells, offsets, counts = self.family.cells(part.values), self.family.offsets, self.counts
            else:  # each row has a cell of its own in every tree
                n = len(some)
                counts = self.family.pooled(part.values, unknown, self._sums, skip).reshape(-1, len(self.prior))
                cells = np.repeat(np.arange(n, dtype=np.int32)[:, np.newaxis], self._trees, axis=1)
                offsets = np.arange(self._trees + 1, dtype=np.int64) * n
            said = np.empty((len(some), len(self.prior)))
            _kernels.mean_cell_evidence(
                cells, offsets, counts, self.rows, self.virtual, part.labels, part.weights, skip, said
            )
            out[some] = said
        return out[:, np.newaxis]

    def _by_knowledge(
        self, codes: Codes, hidden: NDArray[np.bool_] | None = None
    ) -> list[tuple[IntArray, NDArray[np.bool_] | None]]:
        """Rows of which all is known, without a mask, and others, a part at a time, with what is unknown (m, d)."""
        unknown = self.family.reading.unknown(codes)
        if hidden is not None:
            unknown |= hidden
        partly = unknown.any(axis=1)
        step = max(1, POOLED // (self._trees * len(self.prior)))
        places = np.flatnonzero(partly)
        parts = [places[at : at + step] for at in range(0, len(places), step)]
        found: list[tuple[IntArray, NDArray[np.bool_] | None]] = [(some, unknown[some]) for some in parts]
        return [(np.flatnonzero(~partly), None), *found] if len(places) < len(codes) else found

    def without(self, rows: Rows, kept: IntArray) -> Self:
        left, codes = copy(self), self.family.cells(rows.values)
        left.__dict__.pop("_sums", None)
        left.counts, left.rows = less_rows(self.counts, self.rows, codes, self.family.offsets, rows, kept)
        left.prior = left.rows / left.rows.sum()
        return left

    @property
    def n_parameters(self) -> int:
        return (len(self.counts) - self._trees) * len(self.prior)

    def _logs(self, counts: FloatArray) -> FloatArray:
        """(nodes, K) the evidence of each, divided by the number of trees."""
        logs = centred(np.log(counts + self.virtual * self.prior) - np.log(self.prior))
        return logs / self._trees

    @property
    def width(self) -> int:
        return len(self.family.starts)

    def adder(self, weights: FloatArray) -> Adder:
        table = padded_table((self._logs(self.counts) * weights[0]).T)

        def add(values: Codes, out: FloatArray) -> None:
            for some, unknown in self._by_knowledge(values):
                if unknown is not None:
                    out[some] += self.evidence(Rows(values[some]))[:, 0] * weights[0]
                    continue
                everything = len(some) == len(values)
                codes = self.family.cells(values if everything else np.asfortranarray(values[some]))
                part = out if everything else out[some]
                _kernels.add_table(codes, self.family.offsets, table, out.shape[1], part)
                if not everything:
                    out[some] = part

        return add

    def formulas(self) -> list[tuple[int, Formula]]:
        """The trees, and the counts of their leaves."""
        reading, order = self.family.reading, self.family.by_level()
        column, code = self.family.column[order], self.family.code[order]
        leaf = np.cumsum(self.family.column < 0) - 1  # (nodes) the place of each in the counts
        counts = self.counts[leaf[order[column < 0]]]
        trees = self._trees, column + 1, code, counts, self.prior, self.virtual
        return [(0, formulas.Trees(tuple(range(len(self.columns))), reading.formula(), reading.ordered, *trees))]

    def share_adder(self) -> ShareAdder:
        """What each step down to a leaf changes belongs to the column that it asks for."""
        nodes, columns, two = self._logs(self._sums), np.array(self.columns), len(self.prior) == 2
        nodes = np.ascontiguousarray(nodes[:, 1:] if two else nodes)  # of two classes, one is the other's opposite

        def add(values: Codes, weights: FloatArray, out: FloatArray) -> None:
            for some, unknown in self._by_knowledge(values):
                everything = len(some) == len(values)
                part = values if everything else values[some]
                if unknown is None:
                    shares = self.family.shares(part, nodes)
                    shares = shares * [-1.0, 1.0] if two else shares
                else:
                    shares = self.family.pooled_shares(part, unknown, self._sums, self.prior, self.virtual)
                    shares /= self._trees
                weight = weights[..., 0, :]
                shares *= weight if weight.ndim == 1 else weight[some, np.newaxis]
                if everything:
                    out[:, columns] += shares
                else:
                    out[np.ix_(some, columns)] += shares

        return add
