"""Evidence from counts: the values of a column, whether it is there, bins at several scales, and pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.batch import MISSING, UNSEEN, Coded
from deciban.families.base import padded_table
from deciban.families.celled import Pairs
from deciban.families.cuts import bins_of, cut_values, equal_frequency
from deciban.families.mixed import Codes, Coding
from deciban.late import late
from deciban.statistics import Counts, Histogram
from deciban.statistics.cells import Cells
from deciban.statistics.moments import Moments
from deciban.types import FloatArray, IntArray, Labels
from deciban.weighing.reader import Adder, Piece, Reader, Rows, Share, ShareAdder, Unknown, centred

if TYPE_CHECKING:
    from deciban.families.formulas import Code, Formula

formulas = late("deciban.families.formulas")  # only a report asks for them

VIRTUAL = 2.0  # rows that every cell has more, spread over the classes as all rows are
RARE = 5.0  # rows: values with fewer are one, where there are rows enough to learn from
FEWEST = 2.0  # rows that a value of its own has at least
SHARE = 0.05  # of the rows: values with a larger one are never rare
SCALES = (5, 20, 100)  # bins: the last half by rows and half by values, the others of equal frequency
ROWS_PER_BIN = 10.0  # at least, or there are no such bins
MOST_PAIRS = 20
GAIN = 0.005  # nats a row that a pair must say more than its two columns
Cuts = FloatArray


class Tables(Reader):
    """log (N_c(v) + sπ_c) − log π_c, with π_c the share of a class: each cell has s virtual rows, of all classes alike.

    So a value that was seen only in the one row that is left out says nothing. A value that was never seen says
    nothing either, nor does a missing cell where none was missing.
    """

    virtual = VIRTUAL

    def __init__(self, pieces: Sequence[Piece], tables: Sequence[FloatArray], rows: FloatArray) -> None:
        """tables: (values, K) counts, one for each piece; rows: (K) of each class."""
        self.pieces, self.rows, self.prior = tuple(pieces), rows, rows / rows.sum()
        self.offsets = np.cumsum([0, *map(len, tables)], dtype=np.int64)
        self.counts = np.ascontiguousarray(np.concatenate([np.zeros((0, len(rows))), *tables]))

    def codes(self, values: Any) -> NDArray[np.int32]:
        """(n, pieces) places in the tables; −1 is missing."""
        raise NotImplementedError

    def codes_of(self, rows: Rows) -> NDArray[np.int32]:
        """The same, of rows in which some columns may be hidden: of a single one, nobody asks then."""
        return self.codes(rows.values)

    def coding(self, piece: int) -> Code:
        """How the codes of a piece are made of cells: `codes`, for one row elsewhere."""
        raise NotImplementedError

    def formulas(self) -> list[tuple[int, Formula]]:
        logs, ends = self.logs(), self.offsets
        codes = [self.coding(p) for p in range(len(self.pieces))]
        return [
            (p, formulas.Lookup((code.column,), (code,), logs[ends[p] : ends[p + 1]])) for p, code in enumerate(codes)
        ]

    def evidence(self, rows: Rows) -> FloatArray:
        codes = self.codes_of(rows)
        out = np.empty((len(codes), len(self.pieces), len(self.prior)))
        _kernels.cell_evidence(
            codes, self.offsets, self.counts, self.rows, self.virtual, rows.labels, rows.weights, out
        )
        return out

    def without(self, rows: Rows, kept: IntArray) -> Self:
        left = copy(self)
        left.counts, left.rows = less_rows(self.counts, self.rows, self.codes(rows.values), self.offsets, rows, kept)
        left.prior = left.rows / left.rows.sum()
        return left

    def adder(self, weights: FloatArray) -> Adder:
        owner = np.repeat(np.arange(len(self.pieces)), np.diff(self.offsets))
        table = padded_table((self.logs() * weights[owner]).T)

        def add(values: Any, out: FloatArray) -> None:
            _kernels.add_table(self.codes(values), self.offsets, table, out.shape[1], out)

        return add

    def share_adder(self) -> ShareAdder:
        none = np.zeros((1, len(self.prior)))  # for a missing cell
        tables = [np.concatenate([logs, none]) for logs in self.shares()]

        def add(values: Any, weights: FloatArray, out: FloatArray) -> None:
            codes = self.codes(values)
            place = np.where(codes < 0, len(self.counts), codes + self.offsets[:-1])
            for of, table in enumerate(tables):
                shares = table[place] * weights
                for p, piece in enumerate(self.pieces):
                    out[:, piece.columns[of]] += shares[:, p]

        return add

    def shares(self) -> tuple[FloatArray, ...]:
        """(cells, K) for each column of a piece its share of what cells say: all of it, where there is one column."""
        return (self.logs(),)

    @property
    def n_parameters(self) -> int:
        return (len(self.counts) - len(self.pieces)) * len(self.prior)

    def logs(self) -> FloatArray:
        """(cells, K) the evidence of each cell."""
        return self._evidence_of(self.counts)

    def _evidence_of(self, counts: FloatArray) -> FloatArray:
        """(…, K) the evidence of cells with so many rows of each class."""
        return centred(np.log(counts + self.virtual * self.prior) - np.log(self.prior))


def less_rows(
    counts: FloatArray,
    class_rows: FloatArray,
    codes: NDArray[np.int32],
    offsets: NDArray[np.int64],
    rows: Rows,
    kept: IntArray,
) -> tuple[FloatArray, FloatArray]:
    """Counts (cells, K) and rows of classes (K) without some rows, of the classes that are left."""
    assert rows.labels is not None
    classes = len(class_rows)
    gone = _kernels.count_codes(codes, offsets, rows.labels, rows.weights, classes).sum(axis=0).T
    less = np.bincount(rows.labels, rows.weights, minlength=classes)
    return np.ascontiguousarray(np.maximum(counts - gone, 0.0)[:, kept]), (class_rows - less)[kept]


class Values(Tables):
    """The values of columns of categories; a missing cell is a value, and so are all rare ones together.

    A value that was never seen is none of them.
    """

    def __init__(self, columns: Sequence[int], statistic: Counts, rows: FloatArray) -> None:
        self.columns, self.places, self.levels, tables = tuple(columns), [], statistic.levels, []
        for j in range(len(columns)):
            counts = statistic.table.value[:, statistic.offsets[j] : statistic.offsets[j + 1]].T
            place = _without_rare(counts, statistic.levels[j])
            table = np.zeros((int(place.max(initial=-1)) + 1, len(rows)))
            np.add.at(table, place[:-2], counts)
            self.places.append(place)
            tables.append(table)
        super().__init__([Piece("value", (column,)) for column in columns], tables, rows)

    def codes(self, values: Coded) -> NDArray[np.int32]:
        found = [place[column] for place, column in zip(self.places, values.codes.T, strict=True)]
        return np.stack(found, axis=1).astype(np.int32)

    def coding(self, piece: int) -> Code:
        place = self.places[piece]
        size = int(place.max(initial=-1)) + 1
        code: Code = formulas.Code(piece, size, levels=self.levels[piece], places=place[:-2])
        return code

    def unknown(self, values: Coded) -> Unknown:
        none = np.array([levels.index(None) if None in levels else MISSING for levels in self.levels])
        return Unknown(self.columns, values.codes == none, values.codes == UNSEEN)


def rare_below(rows: float) -> float:
    """The number of rows below which a value is rare: 5, but no more than a twentieth of few rows, and at least 2."""
    return min(RARE, max(FEWEST, SHARE * rows))


def _without_rare(counts: FloatArray, levels: Sequence[Any]) -> NDArray[np.int32]:
    """(V + 2) the place of each value; then −1 for one never seen, and for none."""
    sizes = counts.sum(axis=1)
    rare = (sizes < rare_below(float(sizes.sum()))) & np.array([level is not None for level in levels], np.bool_)
    if rare.sum() < 2:  # one value is what it is
        rare[:] = False
    place = np.empty(len(counts) + 2, np.int32)
    place[:-2] = np.where(rare, 0, np.cumsum(~rare) - (0 if rare.any() else 1))
    place[-2:] = MISSING
    return place


class Present(Tables):
    """Whether the cells of columns of numbers are there."""

    def __init__(self, columns: Sequence[int], statistic: Moments, rows: FloatArray) -> None:
        count, missing = statistic.count.value, statistic.sum_x.value  # (K, d)
        holed = (missing.sum(axis=0) > 0) & (missing.sum(axis=0) < count.sum(axis=0))
        self.kept = np.flatnonzero(holed)
        tables = [np.stack([count[:, j] - missing[:, j], missing[:, j]]) for j in self.kept]
        super().__init__([Piece("present", (columns[j],)) for j in self.kept.tolist()], tables, rows)

    def codes(self, values: FloatArray) -> NDArray[np.int32]:
        return np.ascontiguousarray(values[:, self.kept].astype(np.int32))

    def coding(self, piece: int) -> Code:
        code: Code = formulas.Code(int(self.kept[piece]), 2, cuts=np.zeros(0), missing=1)
        return code


class Scales(Tables):
    """Columns of numbers in 5 and in 20 bins of equal frequency: the cuts do not look at the labels."""

    def __init__(self, columns: Sequence[int], statistic: Histogram, rows: FloatArray) -> None:
        self.cuts: list[tuple[int, Cuts]] = []  # of each piece: the column of the block, and where it is cut
        pieces: list[Piece] = []
        tables = []
        for j, column in enumerate(columns):
            counts = statistic.table(j)
            if counts.shape[1] < 2:
                continue
            known: list[bytes] = []
            sizes = counts.value.sum(axis=0)
            for scale in SCALES:
                if scale > SCALES[0] and sizes.sum() < ROWS_PER_BIN * scale:
                    continue
                after = equal_frequency(by_rows_and_values(sizes) if scale == SCALES[-1] else sizes, scale)
                if not len(after) or after.tobytes() in known:
                    continue
                known.append(after.tobytes())
                self.cuts.append((j, cut_values(statistic.lower(j), statistic.upper(j), after)))
                pieces.append(Piece(f"{scale} bins", (column,)))
                tables.append(counts.group(bins_of(after, counts.shape[1]), len(after) + 1).value.T)
        super().__init__(pieces, tables, rows)

    def codes(self, values: NDArray[Any]) -> NDArray[np.int32]:
        out = np.empty((len(values), len(self.cuts)), np.int32)
        for p, (j, cuts) in enumerate(self.cuts):
            out[:, p] = _binned(values[:, j], cuts)
        return out

    def coding(self, piece: int) -> Code:
        j, cuts = self.cuts[piece]
        code: Code = formulas.Code(j, len(cuts) + 1, cuts=cuts)
        return code


def by_rows_and_values(sizes: FloatArray) -> FloatArray:
    """Half by rows, half by values: few rows far out, or all that are not 0, may be what matters."""
    mixed: FloatArray = sizes / sizes.sum() + 1.0 / len(sizes)
    return mixed


def _binned(x: NDArray[Any], cuts: Cuts) -> NDArray[np.int32]:
    """The bin of each number; −1 where there is none."""
    bins = np.searchsorted(cuts, x.astype(np.float64), side="right")
    return np.where(np.isnan(x), -1, bins).astype(np.int32)


class Paired(Tables):
    """Tables of two columns, which share what a cell says by Shapley's values: ½[e(u) + e(u, v) − e(v)] is u's share.

    e(u) is the evidence of the rows of u in this table, with the same virtual rows: what u says without v, which is all
    that is said where v is unknown. So the cells of a pair are followed by the sums of its columns and of its rows.
    Which pairs have tables is chosen by the labels.
    """

    has_pairs = True

    chosen = True

    def __init__(self, columns: Sequence[int], family: Pairs, statistic: Cells, rows: FloatArray) -> None:
        self.columns, self.family = np.array(columns), family
        pieces = [Piece("pair", (columns[a], columns[b])) for a, b in family.pairs]
        super().__init__(pieces, self._with_sums(statistic.sum_x.value.T), rows)

    def _with_sums(self, counts: FloatArray) -> list[FloatArray]:
        """Tables (cells, K) of the pairs, each followed by its sums over the first column, and over the second."""
        return [
            np.concatenate(
                [table.reshape(len(table) * table.shape[1], table.shape[2]), table.sum(axis=0), table.sum(axis=1)]
            )
            for table in self._squares(np.split(counts, self.family.offsets[1:-1]))
        ]

    def _squares(self, tables: Sequence[FloatArray]) -> Iterator[FloatArray]:
        """(size of a, size of b, K) the tables of the pairs."""
        sizes = self.family.reading.sizes
        for (a, b), table in zip(self.family.pairs, tables, strict=True):
            yield table[: sizes[a] * sizes[b]].reshape(sizes[a], sizes[b], table.shape[-1])

    def tables(self, of_cells: FloatArray) -> list[FloatArray]:
        """(size of a, size of b, K) what is known of the cells of each pair, without the sums."""
        return list(self._squares(np.split(of_cells, self.offsets[1:-1])))

    def codes(self, values: Codes) -> NDArray[np.int32]:
        return self._cells(values, self.family.reading.unknown(values))

    def codes_of(self, rows: Rows) -> NDArray[np.int32]:
        return self._cells(rows.values, self.family.reading.unknown(rows.values) | rows.hides(self.columns))

    def _cells(self, values: Codes, unknown: NDArray[np.bool_]) -> NDArray[np.int32]:
        cells, sizes = self.family.cells(values), self.family.reading.sizes
        for p, (a, b) in enumerate(self.family.pairs):
            for one, other, first in ((a, b, sizes[a] * sizes[b]), (b, a, sizes[a] * sizes[b] + sizes[b])):
                alone = unknown[:, one] & ~unknown[:, other]
                cells[alone, p] = first + values[alone, other]
            cells[unknown[:, a] & unknown[:, b], p] = MISSING
        return cells

    def without(self, rows: Rows, kept: IntArray) -> Self:
        left, cells = copy(self), self.family.cells(rows.values)
        counts = np.concatenate(
            [table.reshape(len(table) * table.shape[1], table.shape[2]) for table in self.tables(self.counts)]
        )
        counts, left.rows = less_rows(counts, self.rows, cells, self.family.offsets, rows, kept)
        left.counts = np.ascontiguousarray(np.concatenate(self._with_sums(counts)))
        left.prior = left.rows / left.rows.sum()
        return left

    @property
    def n_parameters(self) -> int:
        return (int(self.family.offsets[-1]) - len(self.pieces)) * len(self.prior)

    def admitted(self, rows: Rows) -> NDArray[np.bool_]:
        assert rows.labels is not None
        pairs = np.array(self.family.pairs, np.int32)
        gains = pair_gains(self.family.reading, rows.values, rows.labels, rows.weights, len(self.prior), pairs)
        weight = len(rows.labels) if rows.weights is None else float(rows.weights.sum())
        admitted, most = np.zeros(len(pairs), np.bool_), MOST_PAIRS if self.family.least else len(pairs)
        admitted[best_pairs(gains, weight, self.family.least, most)] = True
        return admitted

    def formulas(self) -> list[tuple[int, Formula]]:
        formula: list[tuple[int, Formula]] = []
        codes = self.family.reading.formula()
        for of, logs in enumerate(self.shares()):
            for p, pair in enumerate(self.family.pairs):
                both = tuple(codes[j] for j in pair)
                cells, of_b, of_a = np.split(
                    logs[self.offsets[p] : self.offsets[p + 1]], np.cumsum([both[0].size * both[1].size, both[1].size])
                )
                formula.append((p, formulas.Lookup((pair[of],), both, cells, (of_a, of_b))))
        return formula

    def shares(self) -> tuple[FloatArray, FloatArray]:
        logs, first = self.logs(), np.empty_like(self.counts)
        for p, (counts, said) in enumerate(zip(self.tables(self.counts), self.tables(logs), strict=True)):
            of_a, of_b = self._evidence_of(counts.sum(axis=1)), self._evidence_of(counts.sum(axis=0))
            both = 0.5 * (said + of_a[:, np.newaxis] - of_b)
            first[self.offsets[p] : self.offsets[p + 1]] = np.concatenate([_flat(both), np.zeros_like(of_b), of_a])
        return first, logs - first

    def pairs(self, values: Codes, weights: FloatArray) -> Iterator[Share]:
        found = self.evidence(Rows(values)) * weights
        return ((piece.columns, found[:, p]) for p, piece in enumerate(self.pieces))


def _flat(table: FloatArray) -> FloatArray:
    """(cells, K) of (size of a, size of b, K)."""
    return table.reshape(len(table) * table.shape[1], table.shape[2])


def pair_gains(
    coding: Coding, codes: Codes, labels: Labels, weights: FloatArray | None, classes: int, pairs: NDArray[np.int32]
) -> FloatArray:
    """(m) what each pair says more than its two columns one by one, each row left out: nats over all rows."""
    rows = len(labels) if weights is None else float(weights.sum())
    codes = np.asfortranarray(codes)
    gains: FloatArray = _kernels.pair_gains(codes, coding.sizes, labels, weights, classes, VIRTUAL, pairs)
    return gains * rows


def best_pairs(gains: FloatArray, rows: float, least: float, most: int) -> list[int]:
    """The places of the best pairs, those that say most first; unless any will do, at least 0.005 nats a row."""
    bar = max(least, GAIN * rows) if least else 0.0
    return [int(i) for i in np.argsort(-gains, kind="stable") if gains[i] > bar][:most]
