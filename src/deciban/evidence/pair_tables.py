"""Evidence from pairs of features: which pairs have tables, and the evidence of their cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.data.batch import MISSING
from deciban.data.sampling import row_keys
from deciban.evidence.block_evidence import EvidencePiece, Rows
from deciban.evidence.codings import COARSE, make_coding
from deciban.evidence.folds import FOLDS, MOST_ROWS, assign_folds
from deciban.evidence.mixed_columns import Codes, Coding
from deciban.evidence.partition_counts import Pairs
from deciban.evidence.tables import VIRTUAL_ROWS, Tables, subtract_counts
from deciban.families.family import formulas
from deciban.generative.plan import Plan
from deciban.statistics.cell_counts import Cells
from deciban.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from deciban.data import Sample
    from deciban.data.batch import ColumnRef
    from deciban.evidence.structure import JointPlanning, JointSettings
    from deciban.export.formulas import Formula
    from deciban.families.labelled_values import LabelledValues
    from deciban.generative.block import Block
    from deciban.generative.model import Generative
    from deciban.types import Labels

MOST_PAIRS = 20
PAIRED = 64  # features whose pairs are all tried
GAIN = 0.005  # nats per row that a pair must gain over its two features
CHANCE = 3.0  # nats that the best of m pairs must gain beyond log m: less may be chance


class PairTables(Tables):
    """Tables of two features, which share the evidence of a cell by Shapley values: ½[e(u) + e(u, v) − e(v)] is u's.

    e(u) is the evidence of u summed over v, with the same virtual rows; where v is unknown, it is the evidence of the
    pair. So the cells of a pair are followed by the sums of its columns and of its rows.
    """

    families = (Pairs,)
    explains_pairs = True
    selected_by_labels = True

    def __init__(self, columns: Sequence[int], family: Pairs, statistic: Cells, class_rows: FloatArray) -> None:
        self.columns, self.family = np.array(columns), family
        pieces = [EvidencePiece("pair", (columns[a], columns[b])) for a, b in family.pairs]
        super().__init__(pieces, self._with_sums(statistic.sum_x.value.T), class_rows)

    @classmethod
    def from_block(cls, block: Block, model: Generative) -> Self:
        return cls(block.columns, block.family, block.statistic, model.counts.value)  # type: ignore[arg-type]

    @classmethod
    def joint_plans(cls, planning: JointPlanning) -> list[Plan]:
        if planning.fine is None or planning.settings.pairs == 0:
            return []
        columns, coding = make_coding(planning.single, COARSE)
        kept = [i for i, j in enumerate(columns) if j in planning.fine.columns]
        columns, coding = tuple(columns[i] for i in kept), coding.take(kept)
        sample, places = planning.sample, planning.places
        codes = coding.of(sample.frame, [places[j] for j in columns])
        pairs, least = select_pairs(coding, codes, sample, places, planning.settings)
        if not pairs:
            return []
        used = sorted({i for pair in pairs for i in pair})
        family = Pairs(coding.take(used), tuple((used.index(a), used.index(b)) for a, b in pairs), least)
        return [Plan(family, tuple(columns[i] for i in used))]

    def _with_sums(self, counts: FloatArray) -> list[FloatArray]:
        """Tables (cells, K) of the pairs, each followed by its sums over the first feature, and over the second."""
        return [
            np.concatenate([_flat(table), table.sum(axis=0), table.sum(axis=1)])
            for table in self._squares(np.split(counts, self.family.offsets[1:-1]))
        ]

    def _squares(self, tables: Sequence[FloatArray]) -> Iterator[FloatArray]:
        """(size of a, size of b, K) the tables of the pairs."""
        sizes = self.family.reading.sizes
        for (a, b), table in zip(self.family.pairs, tables, strict=True):
            yield table[: sizes[a] * sizes[b]].reshape(sizes[a], sizes[b], table.shape[-1])

    def tables(self, by_cell: FloatArray) -> list[FloatArray]:
        """(size of a, size of b, K) values (cells, K) of the cells of each pair, without the sums."""
        return list(self._squares(np.split(by_cell, self.offsets[1:-1])))

    def codes(self, values: Codes) -> NDArray[np.int32]:
        return self._cells(values, self.family.reading.unknown(values))

    def codes_with_hidden(self, rows: Rows) -> NDArray[np.int32]:
        return self._cells(rows.values, self.family.reading.unknown(rows.values) | rows.hides(self.columns))

    def _cells(self, values: Codes, unknown: BoolArray) -> NDArray[np.int32]:
        cells, sizes = self.family.cells(values), self.family.reading.sizes
        for p, (a, b) in enumerate(self.family.pairs):
            for one, other, first in ((a, b, sizes[a] * sizes[b]), (b, a, sizes[a] * sizes[b] + sizes[b])):
                alone = unknown[:, one] & ~unknown[:, other]
                cells[alone, p] = first + values[alone, other]
            cells[unknown[:, a] & unknown[:, b], p] = MISSING
        return cells

    def subtract(self, rows: LabelledValues, kept: IntArray) -> Self:
        counts = np.concatenate([_flat(table) for table in self.tables(self.counts)])
        cells, offsets = self.family.cells(rows.values), self.family.offsets
        counts, class_rows = subtract_counts(counts, self.rows, cells, offsets, rows, kept)
        return self.with_counts(np.concatenate(self._with_sums(np.ascontiguousarray(counts))), class_rows)

    @property
    def n_parameters(self) -> int:
        return (int(self.family.offsets[-1]) - len(self.pieces)) * len(self.prior)

    def selected(self, rows: LabelledValues) -> BoolArray:
        pairs = np.array(self.family.pairs, np.int32)
        gains = pair_gains(self.family.reading, rows.values, rows.labels, rows.weights, len(self.prior), pairs)
        weight = len(rows.labels) if rows.weights is None else float(rows.weights.sum())
        selected, most = np.zeros(len(pairs), np.bool_), MOST_PAIRS if self.family.least else len(pairs)
        selected[best_pairs(gains, weight, self.family.least, most)] = True
        return selected

    def formulas(self) -> list[tuple[int, Formula]]:
        formula: list[tuple[int, Formula]] = []
        codes = self.family.reading.formula()
        for side, logs in enumerate(self.shares()):
            for p, pair in enumerate(self.family.pairs):
                both = tuple(codes[j] for j in pair)
                cells, of_b, of_a = np.split(
                    logs[self.offsets[p] : self.offsets[p + 1]], np.cumsum([both[0].size * both[1].size, both[1].size])
                )
                formula.append((p, formulas.Lookup((pair[side],), both, cells, (of_a, of_b))))
        return formula

    def shares(self) -> tuple[FloatArray, FloatArray]:
        logs, first = self.logs(), np.empty_like(self.counts)
        for p, (counts, evidence) in enumerate(zip(self.tables(self.counts), self.tables(logs), strict=True)):
            of_a, of_b = self.log_ratio(counts.sum(axis=1)), self.log_ratio(counts.sum(axis=0))
            both = 0.5 * (evidence + of_a[:, np.newaxis] - of_b)
            first[self.offsets[p] : self.offsets[p + 1]] = np.concatenate([_flat(both), np.zeros_like(of_b), of_a])
        return first, logs - first

    def pair_evidence(self, values: Codes, weights: FloatArray) -> Iterator[tuple[tuple[int, ...], FloatArray]]:
        weighted = self.evidence(Rows(values)) * weights
        return ((piece.columns, weighted[:, p]) for p, piece in enumerate(self.pieces))


def _flat(table: FloatArray) -> FloatArray:
    """(cells, K) from (size of a, size of b, K)."""
    return table.reshape(len(table) * table.shape[1], table.shape[2])


def pair_gains(
    coding: Coding, codes: Codes, labels: Labels, weights: FloatArray | None, classes: int, pairs: NDArray[np.int32]
) -> FloatArray:
    """(m) the leave-one-out gain of each pair over its two features one by one: nats over all rows."""
    rows = len(labels) if weights is None else float(weights.sum())
    codes = np.asfortranarray(codes)
    gains: FloatArray = _kernels.pair_gains(codes, coding.sizes, labels, weights, classes, VIRTUAL_ROWS, pairs)
    return gains * rows


def best_pairs(gains: FloatArray, rows: float, least: float, most: int) -> list[int]:
    """The indices of the best pairs, best first; unless least is 0, each gains at least 0.005 nats per row."""
    threshold = max(least, GAIN * rows) if least else 0.0
    return [int(i) for i in np.argsort(-gains, kind="stable") if gains[i] > threshold][:most]


def select_pairs(
    coding: Coding, codes: Codes, sample: Sample, places: Sequence[ColumnRef], settings: JointSettings
) -> tuple[list[tuple[int, int]], float]:
    """The pairs that gain most over their single features, and the least gain required.

    Labels select them, so rows may not evaluate pairs that they helped to select: if rows are few, the pairs that the
    other rows of each fold would select are counted too, for the rows of that fold.
    """
    pairs = settings.pairs
    selected, least = _select_by(coding, codes, sample, pairs)
    if pairs is not None or len(codes) > MOST_ROWS:
        return selected, least
    keys = row_keys(sample.frame, places, settings.seed)
    rows, folds, weights = assign_folds(keys, sample.labels.codes, sample.weights)
    for fold in range(FOLDS):
        outside = folds != fold
        if not outside.all():
            others = sample.take(rows[outside])
            others = replace(others, weights=None if weights is None else weights[outside])
            selected += _select_by(coding, codes[rows[outside]], others, pairs)[0]
    return list(dict.fromkeys(selected)), least


def _select_by(coding: Coding, codes: Codes, sample: Sample, pairs: int | None) -> tuple[list[tuple[int, int]], float]:
    classes = len(sample.labels.classes)
    columns = _by_information(coding, codes, sample)[:PAIRED]
    sizes = coding.sizes.astype(np.int64)
    most_cells = 0.5 * (len(codes) if sample.weights is None else sample.weights.sum())
    small = [(a, b) for a, b in combinations(sorted(columns), 2) if sizes[a] * sizes[b] <= most_cells]
    if not small or classes < 2:
        return [], 0.0
    gains = pair_gains(coding, codes, sample.labels.codes, sample.weights, classes, np.array(small, np.int32))
    # the best of m pairs of noise may gain about log m nats
    least, most = (float(np.log(len(small))) + CHANCE, MOST_PAIRS) if pairs is None else (0.0, pairs)
    return [small[i] for i in best_pairs(gains, 2.0 * most_cells, least, most)], least


def _by_information(coding: Coding, codes: Codes, sample: Sample) -> list[int]:
    """The features by their mutual information with the class, minus its bias, the most informative first."""
    if codes.shape[1] <= PAIRED:
        return list(range(codes.shape[1]))
    information = []
    for j, size in enumerate(coding.sizes.tolist()):
        table = np.zeros((len(sample.labels.classes), size))
        np.add.at(table, (sample.labels.codes, codes[:, j]), 1.0 if sample.weights is None else sample.weights)
        expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
        positive = table > 0
        nats = (table[positive] * np.log(table[positive] / expected[positive])).sum()
        information.append(nats - 0.5 * (len(table) - 1) * ((table.sum(axis=0) > 0).sum() - 1))
    return [int(j) for j in np.argsort(-np.array(information), kind="stable")]
