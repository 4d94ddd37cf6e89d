"""Evidence from counts of single features: levels, missing values, and bins at several scales."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.data.batch import MISSING, UNSEEN, Coded
from deciban.evidence.back_off import fit_single, log_ratio
from deciban.evidence.block_evidence import (
    AddScores,
    AddShares,
    BlockEvidence,
    EvidencePiece,
    Rows,
    UnknownCells,
    centred,
)
from deciban.families.binned import Binned
from deciban.families.categorical import Categorical
from deciban.families.cuts import bins_of, cut_values, equal_frequency
from deciban.families.family import formulas, padded_table
from deciban.generative.plan import Plan
from deciban.statistics import Counts, Histogram
from deciban.statistics.moments import Moments
from deciban.types import FloatArray, IntArray

if TYPE_CHECKING:
    from deciban.evidence.structure import SingleFeatures
    from deciban.export.formulas import Code, Formula
    from deciban.families.labelled_values import LabelledValues
    from deciban.generative.block import Block
    from deciban.generative.model import Generative

VIRTUAL_ROWS = 2.0  # added to every cell, spread over the classes as all rows are
RARE = 5.0  # rows: values with fewer are pooled, if there are enough rows
FEWEST = 2.0  # rows: values with fewer are always rare
SHARE = 0.05  # of the rows: values with a larger share are never rare
MANY_LEVELS, MANY_ROWS = 50, 1_000  # from here on, rare levels are not pooled, and virtual rows are chosen
DISTINCT = 0.5  # of the rows: a category with more levels than this is an identifier of rows
SCALES = (5, 20, 100)  # bins: the last half by rows and half by values, the others of equal frequency
ROWS_PER_BIN = 10.0  # at least, or there are no such bins
MOST_BITS = 5 << 23  # of the values of all numbers: 5 MB
LEAST_BITS = 1 << 10  # of one feature; up to 320 features take as many as they need
Cuts = FloatArray


class CountEvidence(BlockEvidence):
    """log (N_c(v) + sπ_c) − log π_c, with π_c the share of a class: each cell has s virtual rows, sπ_c of each class.

    So a value that only the left-out row has is no evidence.
    """

    virtual_rows = VIRTUAL_ROWS

    def set_counts(self, counts: FloatArray, class_rows: FloatArray) -> None:
        """counts: (cells, K); class_rows: (K)."""
        self.counts, self.rows, self.prior = np.ascontiguousarray(counts), class_rows, class_rows / class_rows.sum()

    def with_counts(self, counts: FloatArray, class_rows: FloatArray) -> Self:
        changed = copy(self)
        changed.set_counts(counts, class_rows)
        return changed

    def log_ratio(self, counts: FloatArray) -> FloatArray:
        """(…, K) the evidence of cells with these counts of each class."""
        return centred(np.log(counts + self.virtual_rows * self.prior) - np.log(self.prior))


class Tables(CountEvidence):
    """Tables of counts, one for each piece.

    An unseen value is no evidence, nor is a missing one if none was missing in training.
    """

    def __init__(self, pieces: Sequence[EvidencePiece], tables: Sequence[FloatArray], class_rows: FloatArray) -> None:
        """tables: (values, K) counts, one for each piece; class_rows: (K)."""
        self.pieces, self.offsets = tuple(pieces), np.cumsum([0, *map(len, tables)], dtype=np.int64)
        self.set_counts(np.concatenate([np.zeros((0, len(class_rows))), *tables]), class_rows)

    @classmethod
    def from_block(cls, block: Block, model: Generative) -> Self:
        return cls(block.columns, block.statistic, model.counts.value)  # type: ignore[arg-type]

    def codes(self, values: Any) -> NDArray[np.int32]:
        """(n, pieces) indices in the tables; −1 is missing."""
        raise NotImplementedError

    def codes_with_hidden(self, rows: Rows) -> NDArray[np.int32]:
        """`codes` of rows that may hide features; pieces of a hidden feature alone are not used."""
        return self.codes(rows.values)

    def code_formula(self, piece: int) -> Code:
        """`codes` of a piece, as a formula."""
        raise NotImplementedError

    def formulas(self) -> list[tuple[int, Formula]]:
        codes = [self.code_formula(p) for p in range(len(self.pieces))]
        tables = zip(codes, np.split(self.logs(), self.offsets[1:-1]), strict=False)
        return [(p, formulas.Lookup((code.column,), (code,), logs)) for p, (code, logs) in enumerate(tables)]

    def evidence(self, rows: Rows) -> FloatArray:
        codes = self.codes_with_hidden(rows)
        out = np.empty((len(codes), len(self.pieces), len(self.prior)))
        cells = codes, self.offsets, self.counts
        _kernels.cell_evidence(*cells, self.rows, self.virtual_rows, rows.labels, rows.weights, out)
        return out

    def subtract(self, rows: LabelledValues, kept: IntArray) -> Self:
        codes = self.codes(rows.values)
        return self.with_counts(*subtract_counts(self.counts, self.rows, codes, self.offsets, rows, kept))

    def scorer(self, weights: FloatArray) -> AddScores:
        owner = np.repeat(np.arange(len(self.pieces)), np.diff(self.offsets))
        table = padded_table((self.logs() * weights[owner]).T)

        def add(values: Any, out: FloatArray) -> None:
            _kernels.add_table(self.codes(values), self.offsets, table, out.shape[1], out)

        return add

    def share_scorer(self) -> AddShares:
        missing = np.zeros((1, len(self.prior)))
        tables = [np.concatenate([logs, missing]) for logs in self.shares()]

        def add(values: Any, weights: FloatArray, out: FloatArray) -> None:
            codes = self.codes(values)
            cells = np.where(codes < 0, len(self.counts), codes + self.offsets[:-1])
            for side, table in enumerate(tables):
                shares = table[cells] * weights
                for p, piece in enumerate(self.pieces):
                    out[:, piece.columns[side]] += shares[:, p]

        return add

    def shares(self) -> tuple[FloatArray, ...]:
        """(cells, K) for each feature of a piece, its share of the evidence: all, if it is the only one."""
        return (self.logs(),)

    @property
    def n_parameters(self) -> int:
        return (len(self.counts) - len(self.pieces)) * len(self.prior)

    def logs(self) -> FloatArray:
        """(cells, K) the evidence of each cell."""
        return self.log_ratio(self.counts)


def subtract_counts(
    counts: FloatArray,
    class_rows: FloatArray,
    codes: NDArray[np.int32],
    offsets: NDArray[np.int64],
    rows: LabelledValues,
    kept: IntArray,
) -> tuple[FloatArray, FloatArray]:
    """Counts (cells, K) and rows of classes (K) without some rows, for the classes that are kept."""
    classes = len(class_rows)
    removed = _kernels.count_codes(codes, offsets, rows.labels, rows.weights, classes).sum(axis=0).T
    removed_rows = np.bincount(rows.labels, rows.weights, minlength=classes)
    return np.maximum(counts - removed, 0.0)[:, kept], (class_rows - removed_rows)[kept]


class LevelTables(Tables):
    """The levels of categories; a missing value is a level, and so are all rare ones together.

    A value that was never seen is no level. If a category has many levels, rare ones are not pooled, and the number s
    of its virtual rows is chosen by the rows that are left out: see `BackOff`.
    """

    families = (Categorical,)
    description = "a probability for each value"

    def __init__(self, columns: Sequence[int], statistic: Counts, class_rows: FloatArray) -> None:
        self.columns, self.cell_of_level, self.levels, tables = tuple(columns), [], statistic.levels, []
        most = DISTINCT * class_rows.sum() if class_rows.sum() >= MANY_ROWS else 0.0
        self._wide = np.array([MANY_LEVELS < len(levels) <= most for levels in self.levels], np.bool_)
        for j in range(len(columns)):
            counts = statistic.table.value[:, statistic.offsets[j] : statistic.offsets[j + 1]].T
            cells = _each(len(counts)) if self._wide[j] else _pool_rare(counts, statistic.levels[j])
            table = np.zeros((int(cells.max(initial=-1)) + 1, len(class_rows)))
            np.add.at(table, cells[:-2], counts)
            self.cell_of_level.append(cells)
            tables.append(table)
        super().__init__([EvidencePiece("value", (column,), naive=True) for column in columns], tables, class_rows)

    @classmethod
    def plans(cls, features: SingleFeatures) -> list[Plan]:
        return [Plan(Categorical(), features.categories)] if features.categories else []

    def set_counts(self, counts: FloatArray, class_rows: FloatArray) -> None:
        super().set_counts(counts, class_rows)
        self._chosen = {
            int(j): fit_single(self.counts[self.offsets[j] : self.offsets[j + 1]], class_rows).virtual
            for j in np.flatnonzero(self._wide)
        }

    @property
    def smoothing(self) -> FloatArray:
        """(pieces) the virtual rows in each cell."""
        return np.array([self._chosen.get(j, self.virtual_rows) for j in range(len(self.pieces))])

    def evidence(self, rows: Rows) -> FloatArray:
        if not self._chosen:
            return super().evidence(rows)
        codes, smoothing = self.codes(rows.values), self.smoothing
        out = np.empty((len(codes), len(self.pieces), len(self.prior)))
        tables = np.split(self.counts, self.offsets[1:-1])
        for virtual in np.unique(smoothing):
            alike = np.flatnonzero(smoothing == virtual)
            offsets = np.cumsum([0, *(len(tables[j]) for j in alike)], dtype=np.int64)
            counts, part = np.concatenate([tables[j] for j in alike]), np.empty((len(codes), len(alike), out.shape[2]))
            cells = np.ascontiguousarray(codes[:, alike]), offsets, counts
            _kernels.cell_evidence(*cells, self.rows, float(virtual), rows.labels, rows.weights, part)
            out[:, alike] = part
        return out

    def logs(self) -> FloatArray:
        virtual = np.repeat(self.smoothing, np.diff(self.offsets))[:, np.newaxis]
        return log_ratio(self.counts, virtual, self.prior, self.prior)

    def codes(self, values: Coded) -> NDArray[np.int32]:
        cells = [cells[codes] for cells, codes in zip(self.cell_of_level, values.codes.T, strict=True)]
        return np.stack(cells, axis=1).astype(np.int32)

    def code_formula(self, piece: int) -> Code:
        cells = self.cell_of_level[piece]
        size = int(cells.max(initial=-1)) + 1
        code: Code = formulas.Code(piece, size, levels=self.levels[piece], places=cells[:-2])
        return code

    def unknown_cells(self, values: Coded) -> UnknownCells:
        missing = np.array([levels.index(None) if None in levels else MISSING for levels in self.levels])
        return UnknownCells(self.columns, values.codes == missing, values.codes == UNSEEN)


def rare_below(rows: float) -> float:
    """The number of rows below which a value is rare: 5, or 5 % of all rows if that is less, but at least 2."""
    return min(RARE, max(FEWEST, SHARE * rows))


def _each(levels: int) -> NDArray[np.int32]:
    """(V + 2) a cell for each level; then −1 for an unseen and for a missing one."""
    return np.array([*range(levels), MISSING, MISSING], np.int32)


def _pool_rare(counts: FloatArray, levels: Sequence[Any]) -> NDArray[np.int32]:
    """(V + 2) the cell of each level, with all rare ones in the first; then −1 for an unseen and for a missing one."""
    sizes = counts.sum(axis=1)
    rare = (sizes < rare_below(float(sizes.sum()))) & np.array([level is not None for level in levels], np.bool_)
    if rare.sum() < 2:  # nothing to pool
        rare[:] = False
    cells = np.empty(len(counts) + 2, np.int32)
    cells[:-2] = np.where(rare, 0, np.cumsum(~rare) - (0 if rare.any() else 1))
    cells[-2:] = MISSING
    return cells


class MissingnessTable(Tables):
    """Whether the values of numbers and documents are missing."""

    of_missingness = True
    description = "whether it is missing"

    def __init__(self, columns: Sequence[int], statistic: Moments, class_rows: FloatArray) -> None:
        count, missing = statistic.count.value, statistic.sum_x.value  # (K, d)
        sometimes = (missing.sum(axis=0) > 0) & (missing.sum(axis=0) < count.sum(axis=0))
        self.kept = np.flatnonzero(sometimes)
        tables = [np.stack([count[:, j] - missing[:, j], missing[:, j]]) for j in self.kept]
        pieces = [EvidencePiece("present", (columns[j],), naive=True) for j in self.kept.tolist()]
        super().__init__(pieces, tables, class_rows)

    @classmethod
    def accepts(cls, plan: Plan) -> bool:
        return plan.presence

    def codes(self, values: FloatArray) -> NDArray[np.int32]:
        return np.ascontiguousarray(values[:, self.kept].astype(np.int32))

    def code_formula(self, piece: int) -> Code:
        code: Code = formulas.Code(int(self.kept[piece]), 2, cuts=np.zeros(0), missing=1)
        return code


class BinTables(Tables):
    """Numbers in 5, 20 and 100 bins of about equal frequency, whose cuts do not depend on the labels."""

    families = (Binned,)
    description = "bins at several scales"

    def __init__(self, columns: Sequence[int], statistic: Histogram, class_rows: FloatArray) -> None:
        self.cuts: list[tuple[int, Cuts]] = []  # of each piece: the feature of the block, and where it is cut
        pieces: list[EvidencePiece] = []
        tables = []
        for j, column in enumerate(columns):
            counts = statistic.table(j)
            if counts.shape[1] < 2:
                continue
            known: list[bytes] = []  # cuts of other scales
            sizes = counts.value.sum(axis=0)
            for scale in SCALES:
                if scale > SCALES[0] and sizes.sum() < ROWS_PER_BIN * scale:
                    continue
                after = equal_frequency(by_rows_and_values(sizes) if scale == SCALES[-1] else sizes, scale)
                if not len(after) or after.tobytes() in known:
                    continue
                known.append(after.tobytes())
                self.cuts.append((j, cut_values(statistic.lower(j), statistic.upper(j), after)))
                pieces.append(EvidencePiece(f"{scale} bins", (column,)))
                tables.append(counts.group(bins_of(after, counts.shape[1]), len(after) + 1).value.T)
        super().__init__(pieces, tables, class_rows)

    @classmethod
    def plans(cls, features: SingleFeatures) -> list[Plan]:
        """In wide tables numbers are counted with fewer bits, to keep models small."""
        bits = max(LEAST_BITS, MOST_BITS // max(features.width, 1))
        family = Binned() if bits >= 64 * Binned().cap else Binned(bits=bits)
        return [Plan(family, features.numbers)] if features.numbers else []

    def codes(self, values: NDArray[Any]) -> NDArray[np.int32]:
        out = np.empty((len(values), len(self.cuts)), np.int32)
        for j, (cuts, pieces) in self._all_cuts.items():
            fine = np.searchsorted(cuts, values[:, j].astype(np.float64), side="right")
            fine[np.isnan(values[:, j])] = len(cuts) + 1
            for p, bins in pieces:
                out[:, p] = bins[fine]
        return out

    @cached_property
    def _all_cuts(self) -> dict[int, tuple[Cuts, list[tuple[int, IntArray]]]]:
        """For each feature its cuts at all scales; and its pieces, with their bins between these cuts."""
        merged: dict[int, tuple[Cuts, list[tuple[int, IntArray]]]] = {}
        for j in {j: None for j, _ in self.cuts}:
            pieces = [(p, cuts) for p, (owner, cuts) in enumerate(self.cuts) if owner == j]
            all_cuts = np.unique(np.concatenate([cuts for _, cuts in pieces]))
            inside = np.concatenate([[-np.inf], all_cuts])  # a number in each interval
            bins = [(p, np.append(np.searchsorted(cuts, inside, side="right"), MISSING)) for p, cuts in pieces]
            merged[j] = all_cuts, [(p, of_piece.astype(np.int32)) for p, of_piece in bins]
        return merged

    def code_formula(self, piece: int) -> Code:
        j, cuts = self.cuts[piece]
        code: Code = formulas.Code(j, len(cuts) + 1, cuts=cuts)
        return code


def by_rows_and_values(sizes: FloatArray) -> FloatArray:
    """Sizes half by rows, half by values: the few rows in a tail, or all that are not 0, may be informative."""
    mixed: FloatArray = sizes / sizes.sum() + 1.0 / len(sizes)
    return mixed
