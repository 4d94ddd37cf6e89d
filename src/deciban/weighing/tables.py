"""Evidence from counts: the values of a column, whether it is there, bins at several scales, pairs, and leaves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.batch import UNSEEN, Coded
from deciban.families.base import padded_table
from deciban.families.celled import Pairs
from deciban.families.cuts import bins_of, cut_values, equal_frequency
from deciban.families.forest import Forest
from deciban.families.mixed import Codes, Coding
from deciban.late import late
from deciban.statistics import Counts, Histogram
from deciban.statistics.cells import Cells
from deciban.statistics.moments import Moments
from deciban.types import FloatArray, IntArray, Labels
from deciban.weighing.reader import Adder, Piece, Reader, Rows, Share, centred

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

    So a value that was never seen, or in the one row only that is left out, tells nothing. A missing cell of a table
    that does not count them tells nothing either.
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

    def coding(self, piece: int) -> tuple[Code, ...]:
        """How a piece's codes are made of cells: `codes`, for one row elsewhere."""
        raise NotImplementedError

    def formula(self, weights: FloatArray) -> list[Formula]:
        """The tables of each piece, weighted: one for each of its columns."""
        found: list[Formula] = []
        for of, logs in enumerate(self.shares()):
            for p in range(len(self.pieces)):
                codes, table = self.coding(p), logs[self.offsets[p] : self.offsets[p + 1]] * weights[p]
                owner, counts = (codes[of].column,), bool(weights[p].any())
                found.append(formulas.Lookup(owner, codes, table) if counts else formulas.Always(owner, weights[p]))
        return found

    def evidence(self, rows: Rows) -> FloatArray:
        codes = self.codes(rows.values)
        out = np.empty((len(codes), len(self.pieces), len(self.prior)))
        _kernels.cell_evidence(
            codes, self.offsets, self.counts, self.rows, self.virtual, rows.labels, rows.weights, out
        )
        return out

    def without(self, rows: Rows, kept: IntArray) -> Self:
        left = copy(self)
        left.counts, left.rows = _less(self.counts, self.rows, self.codes(rows.values), self.offsets, rows, kept)
        left.prior = left.rows / left.rows.sum()
        return left

    def adder(self, weights: FloatArray) -> Adder:
        owner = np.repeat(np.arange(len(self.pieces)), np.diff(self.offsets))
        table = padded_table((self.logs() * weights[owner]).T)

        def add(values: Any, out: FloatArray) -> None:
            _kernels.add_table(self.codes(values), self.offsets, table, out.shape[1], out)

        return add

    def share_adder(self, weights: FloatArray) -> Adder:
        owner = np.repeat(np.arange(len(self.pieces)), np.diff(self.offsets))
        none = np.zeros((1, len(self.prior)))  # for a missing cell
        tables = [np.concatenate([logs * weights[owner], none]) for logs in self.shares()]

        def add(values: Any, out: FloatArray) -> None:
            codes = self.codes(values)
            place = np.where(codes < 0, len(self.counts), codes + self.offsets[:-1])
            for of, table in enumerate(tables):
                found = table[place]
                for p, piece in enumerate(self.pieces):
                    out[:, piece.columns[of]] += found[:, p]

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


def _less(
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
    """The values of columns of categories; a missing cell is a value, and so are all rare ones together."""

    def __init__(self, columns: Sequence[int], statistic: Counts, rows: FloatArray) -> None:
        self.places, self.levels, tables = [], statistic.levels, []
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

    def coding(self, piece: int) -> tuple[Code, ...]:
        place = self.places[piece]
        size, unseen = int(place.max(initial=-1)) + 1, int(place[UNSEEN])
        return (formulas.Code(piece, size, levels=self.levels[piece], places=place[:-2], unseen=unseen),)


def rare_below(rows: float) -> float:
    """The number of rows below which a value is rare: 5, but no more than a twentieth of few rows, and at least 2."""
    return min(RARE, max(FEWEST, SHARE * rows))


def _without_rare(counts: FloatArray, levels: Sequence[Any]) -> NDArray[np.int32]:
    """(V + 2) the place of each value; then of one never seen, which is a rare one, and of none."""
    sizes = counts.sum(axis=1)
    rare = (sizes < rare_below(float(sizes.sum()))) & np.array([level is not None for level in levels], np.bool_)
    if rare.sum() < 2:  # one value is what it is
        rare[:] = False
    place = np.empty(len(counts) + 2, np.int32)
    place[:-2] = np.where(rare, 0, np.cumsum(~rare) - (0 if rare.any() else 1))
    place[UNSEEN], place[-1] = 0 if rare.any() else -1, -1
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

    def coding(self, piece: int) -> tuple[Code, ...]:
        return (formulas.Code(int(self.kept[piece]), 2, cuts=np.zeros(0), missing=1),)


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

    def coding(self, piece: int) -> tuple[Code, ...]:
        j, cuts = self.cuts[piece]
        return (formulas.Code(j, len(cuts) + 1, cuts=cuts),)


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

    e(u) is the evidence of the rows of u in this table, with the same virtual rows: what u says without v. Which pairs
    have tables is chosen by the labels.
    """

    has_pairs = True

    chosen = True

    def __init__(self, columns: Sequence[int], family: Pairs, statistic: Cells, rows: FloatArray) -> None:
        self.family = family
        pieces = [Piece("pair", (columns[a], columns[b])) for a, b in family.pairs]
        tables = np.split(statistic.sum_x.value.T, family.offsets[1:-1])
        super().__init__(pieces, tables, rows)

    def codes(self, values: Codes) -> NDArray[np.int32]:
        return self.family.cells(values)

    def admitted(self, rows: Rows) -> NDArray[np.bool_]:
        assert rows.labels is not None
        pairs = np.array(self.family.pairs, np.int32)
        gains = pair_gains(self.family.reading, rows.values, rows.labels, rows.weights, len(self.prior), pairs)
        weight = len(rows.labels) if rows.weights is None else float(rows.weights.sum())
        admitted, most = np.zeros(len(pairs), np.bool_), MOST_PAIRS if self.family.least else len(pairs)
        admitted[best_pairs(gains, weight, self.family.least, most)] = True
        return admitted

    def coding(self, piece: int) -> tuple[Code, ...]:
        codes = self.family.reading.formula()
        return tuple(codes[j] for j in self.family.pairs[piece])

    def shares(self) -> tuple[FloatArray, FloatArray]:
        logs, sizes = self.logs(), self.family.reading.sizes
        first = np.empty_like(logs)
        for p, (a, b) in enumerate(self.family.pairs):
            cells = slice(self.offsets[p], self.offsets[p + 1])
            counts = self.counts[cells].reshape(sizes[a], sizes[b], -1)
            of_a, of_b = self._evidence_of(counts.sum(axis=1)), self._evidence_of(counts.sum(axis=0))
            apart = of_a[:, np.newaxis] - of_b
            first[cells] = 0.5 * (logs[cells] + apart.reshape(-1, apart.shape[-1]))
        return first, logs - first

    def pairs(self, values: Codes, weights: FloatArray) -> Iterator[Share]:
        found = self.evidence(Rows(values)) * weights
        return ((piece.columns, found[:, p]) for p, piece in enumerate(self.pieces))


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


class Leaves(Reader):
    """The mean over trees of log (N_c(leaf) + sπ_c) − log π_c, with s = ½.

    A row that is left out is judged by the trees that were not grown from it. What a tree says is the sum of what each
    step down to the leaf changes, and a step belongs to the column that it asks for.
    """

    virtual = 0.5

    def __init__(self, columns: Sequence[int], family: Forest, statistic: Cells, rows: FloatArray) -> None:
        self.columns, self.family, self.rows, self.prior = tuple(columns), family, rows, rows / rows.sum()
        self.counts = np.ascontiguousarray(statistic.sum_x.value.T)
        self.pieces = (Piece("forest", self.columns),)

    def evidence(self, rows: Rows) -> FloatArray:
        codes = self.family.cells(rows.values)
        skip = None if rows.labels is None else self.family.seen(rows.values)
        out = np.empty((len(codes), len(self.prior)))
        _kernels.mean_cell_evidence(
            codes, self.family.offsets, self.counts, self.rows, self.virtual, rows.labels, rows.weights, skip, out
        )
        return out[:, np.newaxis]

    def without(self, rows: Rows, kept: IntArray) -> Self:
        left, codes = copy(self), self.family.cells(rows.values)
        left.counts, left.rows = _less(self.counts, self.rows, codes, self.family.offsets, rows, kept)
        left.prior = left.rows / left.rows.sum()
        return left

    @property
    def n_parameters(self) -> int:
        return (len(self.counts) - len(self.family.starts) + 1) * len(self.prior)

    def _logs(self, counts: FloatArray) -> FloatArray:
        """(nodes, K) the evidence of each, divided by the number of trees."""
        logs = centred(np.log(counts + self.virtual * self.prior) - np.log(self.prior))
        return logs / (len(self.family.starts) - 1)

    @property
    def width(self) -> int:
        return len(self.family.starts)

    def adder(self, weights: FloatArray) -> Adder:
        table = padded_table((self._logs(self.counts) * weights[0]).T)

        def add(values: Codes, out: FloatArray) -> None:
            _kernels.add_table(self.family.cells(values), self.family.offsets, table, out.shape[1], out)

        return add

    def formula(self, weights: FloatArray) -> list[Formula]:
        """The trees, and the counts of their leaves."""
        reading, order = self.family.reading, self.family.by_level()
        column, code = self.family.column[order], self.family.code[order]
        leaf = np.cumsum(self.family.column < 0) - 1  # (nodes) the place of each in the counts
        counts = self.counts[leaf[order[column < 0]]]
        trees = len(self.family.starts) - 1, column + 1, code, counts, self.prior, self.virtual, weights[0]
        return [formulas.Trees(tuple(range(len(self.columns))), reading.formula(), reading.ordered, *trees)]

    def share_adder(self, weights: FloatArray) -> Adder:
        """What each step down to a leaf changes belongs to the column that it asks for."""
        nodes = self._logs(self.family.sums(self.counts)) * weights[0]
        columns, opposite = list(self.columns), len(self.prior) == 2 and weights[0, 0] == weights[0, 1]
        nodes = np.ascontiguousarray(nodes[:, 1:] if opposite else nodes)  # half as much to read

        def add(values: Codes, out: FloatArray) -> None:
            shares = self.family.shares(values, nodes)
            out[:, columns] += shares * [-1.0, 1.0] if opposite else shares

        return add
