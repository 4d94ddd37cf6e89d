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
from deciban.families.cuts import bins_of, cut_values, equal_frequency, supervised_cuts
from deciban.families.forest import Forest
from deciban.families.mixed import Codes
from deciban.late import late
from deciban.statistics import Counts, Histogram
from deciban.statistics.cells import Cells
from deciban.statistics.moments import Moments
from deciban.types import FloatArray, IntArray
from deciban.weighing.reader import Adder, Piece, Reader, Rows, Share, centred

if TYPE_CHECKING:
    from deciban.families.formulas import Code, Formula

formulas = late("deciban.families.formulas")  # only a report asks for them

VIRTUAL = 2.0  # rows that every cell has more, spread over the classes as all rows are
RARE = 5.0  # rows: values with fewer are one
SCALES = (5, 20)  # bins of equal frequency
Cuts = FloatArray


class Tables(Reader):
    """log (N_c(v) + sπ_c) − log π_c, with π_c the share of a class: each cell has s virtual rows, of all classes alike.

    So a value that was never seen, or in the one row only that is left out, tells nothing. A missing cell of a table
    that does not count them tells nothing either.
    """

    virtual = VIRTUAL

    def __init__(self, pieces: Sequence[Piece], tables: Sequence[FloatArray], prior: FloatArray) -> None:
        """tables: (values, K) counts, one for each piece."""
        self.pieces, self.prior = tuple(pieces), prior
        self.offsets = np.cumsum([0, *map(len, tables)], dtype=np.int64)
        self.counts = np.ascontiguousarray(np.concatenate([np.zeros((0, len(prior))), *tables]))

    def codes(self, values: Any) -> NDArray[np.int32]:
        """(n, pieces) places in the tables; −1 is missing."""
        raise NotImplementedError

    def coding(self, piece: int) -> tuple[Code, ...]:
        """How a piece's codes are made of cells: `codes`, for one row elsewhere."""
        raise NotImplementedError

    def formula(self, weights: FloatArray) -> list[Formula]:
        """The table of each piece, weighed."""
        found: list[Formula] = []
        logs = self.logs()
        for p in range(len(self.pieces)):
            codes, table = self.coding(p), logs[self.offsets[p] : self.offsets[p + 1]] * weights[p]
            owner = tuple(code.column for code in codes)
            counts = bool(weights[p].any())
            found.append(formulas.Lookup(owner, codes, table) if counts else formulas.Always(owner, weights[p]))
        return found

    def evidence(self, rows: Rows) -> FloatArray:
        codes = self.codes(rows.values)
        out = np.empty((len(codes), len(self.pieces), len(self.prior)))
        _kernels.cell_evidence(
            codes, self.offsets, self.counts, self.prior, self.virtual, rows.labels, rows.weights, out
        )
        return out

    def adder(self, weights: FloatArray) -> Adder:
        owner = np.repeat(np.arange(len(self.pieces)), np.diff(self.offsets))
        table = padded_table((self.logs() * weights[owner]).T)

        def add(values: Any, out: FloatArray) -> None:
            _kernels.add_table(self.codes(values), self.offsets, table, out.shape[1], out)

        return add

    @property
    def n_parameters(self) -> int:
        return (len(self.counts) - len(self.pieces)) * len(self.prior)

    def logs(self) -> FloatArray:
        """(cells, K) the evidence of each cell."""
        return centred(np.log(self.counts + self.virtual * self.prior) - np.log(self.prior))


class Values(Tables):
    """The values of columns of categories; a missing cell is a value, and so are all rare ones together."""

    def __init__(self, columns: Sequence[int], statistic: Counts, prior: FloatArray) -> None:
        self.places, self.levels, tables = [], statistic.levels, []
        for j in range(len(columns)):
            counts = statistic.table.value[:, statistic.offsets[j] : statistic.offsets[j + 1]].T
            place = _without_rare(counts, statistic.levels[j])
            table = np.zeros((int(place.max(initial=-1)) + 1, len(prior)))
            np.add.at(table, place[:-2], counts)
            self.places.append(place)
            tables.append(table)
        super().__init__([Piece("value", (column,)) for column in columns], tables, prior)

    def codes(self, values: Coded) -> NDArray[np.int32]:
        found = [place[column] for place, column in zip(self.places, values.codes.T, strict=True)]
        return np.stack(found, axis=1).astype(np.int32)

    def coding(self, piece: int) -> tuple[Code, ...]:
        place = self.places[piece]
        size, unseen = int(place.max(initial=-1)) + 1, int(place[UNSEEN])
        return (formulas.Code(piece, size, levels=self.levels[piece], places=place[:-2], unseen=unseen),)


def _without_rare(counts: FloatArray, levels: Sequence[Any]) -> NDArray[np.int32]:
    """(V + 2) the place of each value; then of one never seen, which is a rare one, and of none."""
    rare = (counts.sum(axis=1) < RARE) & np.array([level is not None for level in levels], np.bool_)
    if rare.sum() < 2:  # one value is what it is
        rare[:] = False
    place = np.empty(len(counts) + 2, np.int32)
    place[:-2] = np.where(rare, 0, np.cumsum(~rare) - (0 if rare.any() else 1))
    place[UNSEEN], place[-1] = 0 if rare.any() else -1, -1
    return place


class Present(Tables):
    """Whether the cells of columns of numbers are there."""

    def __init__(self, columns: Sequence[int], statistic: Moments, prior: FloatArray) -> None:
        count, missing = statistic.count.value, statistic.sum_x.value  # (K, d)
        holed = (missing.sum(axis=0) > 0) & (missing.sum(axis=0) < count.sum(axis=0))
        self.kept = np.flatnonzero(holed)
        tables = [np.stack([count[:, j] - missing[:, j], missing[:, j]]) for j in self.kept]
        super().__init__([Piece("present", (columns[j],)) for j in self.kept.tolist()], tables, prior)

    def codes(self, values: FloatArray) -> NDArray[np.int32]:
        return np.ascontiguousarray(values[:, self.kept].astype(np.int32))

    def coding(self, piece: int) -> tuple[Code, ...]:
        return (formulas.Code(int(self.kept[piece]), 2, cuts=np.zeros(0), missing=1),)


class Scales(Tables):
    """Columns of numbers in 5 and in 20 bins of equal frequency, and in bins that are cut where the classes differ.

    The last are chosen by the labels. So of rows that are left out, those of each half are judged by cuts that were
    found in the other one; what is counted are all rows but the one.
    """

    def __init__(self, columns: Sequence[int], statistic: Histogram, prior: FloatArray) -> None:
        self.statistic = statistic
        self.halves: dict[int, tuple[IntArray, IntArray]] = {}  # of each such piece: the cuts that each half makes
        self.cuts: list[tuple[int, Cuts]] = []  # of each piece: the column of the block, and where it is cut
        self.supervised: list[int] = []  # the pieces whose cuts the labels chose
        pieces: list[Piece] = []
        tables = []
        for j, column in enumerate(columns):
            counts = statistic.table(j).value
            known: list[bytes] = []
            for scale in (*SCALES, 0):
                after = self._after(counts, scale)
                if not len(after) or after.tobytes() in known:
                    continue
                known.append(after.tobytes())
                if not scale:
                    self.supervised.append(len(pieces))
                self.cuts.append((j, cut_values(statistic.lower(j), statistic.upper(j), after)))
                pieces.append(Piece(f"{scale} bins" if scale else "supervised bins", (column,)))
                tables.append(self._table(j, after))
        super().__init__(pieces, tables, prior)

    @staticmethod
    def _after(counts: FloatArray, scale: int) -> IntArray:
        """The cells of a histogram behind which to cut."""
        if counts.shape[1] < 2:
            return np.zeros(0, np.intp)
        if scale:
            return equal_frequency(counts.sum(axis=0), scale)
        return np.array(sorted(supervised_cuts(counts)), np.intp)

    def _table(self, j: int, after: IntArray) -> FloatArray:
        """(bins, K) all that was counted."""
        counts = self.statistic.table(j)
        return counts.group(bins_of(after, counts.shape[1]), len(after) + 1).value.T

    def codes(self, values: NDArray[Any]) -> NDArray[np.int32]:
        out = np.empty((len(values), len(self.cuts)), np.int32)
        for p, (j, cuts) in enumerate(self.cuts):
            out[:, p] = _binned(values[:, j], cuts)
        return out

    def coding(self, piece: int) -> tuple[Code, ...]:
        j, cuts = self.cuts[piece]
        return (formulas.Code(j, len(cuts) + 1, cuts=cuts),)

    def evidence(self, rows: Rows) -> FloatArray:
        out = super().evidence(rows)
        if rows.half is None or rows.labels is None:
            return out
        for p, halves in self.halves.items():
            for after, judged in zip(halves, (np.flatnonzero(~rows.half), np.flatnonzero(rows.half)), strict=True):
                out[judged, p] = self._by_cuts(rows, self.cuts[p][0], after, judged)
        return out

    def prepared(self, rows: Rows) -> Self:
        if rows.half is None or rows.labels is None:
            return self
        halves: dict[int, tuple[IntArray, IntArray]] = {}
        for p in self.supervised:
            j = self.cuts[p][0]
            place, (classes, cells) = self._places(rows.values[:, j], j), self.statistic.table(j).shape
            ends, found = np.array([0, cells], np.int64), []
            for half in (rows.half, ~rows.half):
                chosen = np.flatnonzero(half)
                weights = None if rows.weights is None else rows.weights[chosen]
                words = _kernels.count_codes(place[chosen, np.newaxis], ends, rows.labels[chosen], weights, classes)
                counts = words.sum(axis=0)
                seen = np.flatnonzero(counts.sum(axis=0))
                found.append(seen[self._after(counts[:, seen], 0)])
            halves[p] = found[0], found[1]
        other = copy(self)
        other.halves = halves
        return other

    def _places(self, x: NDArray[Any], j: int) -> NDArray[np.int32]:
        """The cells of the histogram that numbers are in; −1 where there is none."""
        place = np.full(len(x), -1, np.int32)
        there = np.flatnonzero(~np.isnan(x))
        place[there] = self.statistic.place(j, x[there].astype(np.float64))[0]
        return place

    def _by_cuts(self, rows: Rows, j: int, after: IntArray, judged: IntArray) -> FloatArray:
        """(m, K) the evidence of some rows that are left out, by a column that is cut behind some cells."""
        assert rows.labels is not None
        out = np.zeros((len(judged), 1, len(self.prior)))
        if len(after) and len(judged):
            bins = np.append(bins_of(after, self.statistic.table(j).shape[1]), -1).astype(np.int32)
            codes = bins[self._places(rows.values[judged, j], j)]
            table = np.ascontiguousarray(self._table(j, after))
            weights = None if rows.weights is None else rows.weights[judged]
            ends = np.array([0, len(table)], np.int64)
            _kernels.cell_evidence(
                codes[:, np.newaxis], ends, table, self.prior, self.virtual, rows.labels[judged], weights, out
            )
        return out[:, 0]


def _binned(x: NDArray[Any], cuts: Cuts) -> NDArray[np.int32]:
    """The bin of each number; −1 where there is none."""
    bins = np.searchsorted(cuts, x.astype(np.float64), side="right")
    return np.where(np.isnan(x), -1, bins).astype(np.int32)


class Paired(Tables):
    """Tables of two columns."""

    def __init__(self, columns: Sequence[int], family: Pairs, statistic: Cells, prior: FloatArray) -> None:
        self.family = family
        pieces = [Piece("pair", (columns[a], columns[b])) for a, b in family.pairs]
        tables = np.split(statistic.sum_x.value.T, family.offsets[1:-1])
        super().__init__(pieces, tables, prior)

    def codes(self, values: Codes) -> NDArray[np.int32]:
        return self.family.cells(values)

    def coding(self, piece: int) -> tuple[Code, ...]:
        codes = self.family.reading.formula()
        return tuple(codes[j] for j in self.family.pairs[piece])


class Leaves(Reader):
    """The mean over trees of log (N_c(leaf) + sπ_c) − log π_c, with s = ½.

    A row that is left out is judged by the trees that were not grown from it. What a tree says is the sum of what each
    step down to the leaf changes, and a step belongs to the column that it asks for.
    """

    virtual = 0.5

    def __init__(self, columns: Sequence[int], family: Forest, statistic: Cells, prior: FloatArray) -> None:
        self.columns, self.family, self.prior = tuple(columns), family, prior
        self.counts = np.ascontiguousarray(statistic.sum_x.value.T)
        self.pieces = (Piece("forest", self.columns),)

    def evidence(self, rows: Rows) -> FloatArray:
        codes = self.family.cells(rows.values)
        skip = None if rows.labels is None else self.family.seen(rows.values)
        out = np.empty((len(codes), len(self.prior)))
        _kernels.mean_cell_evidence(
            codes, self.family.offsets, self.counts, self.prior, self.virtual, rows.labels, rows.weights, skip, out
        )
        return out[:, np.newaxis]

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

    def split(self, values: Codes, weights: FloatArray) -> Iterator[Share]:
        logs = self._logs(self.family.sums(self.counts)) * weights[0]
        shares = np.zeros((len(self.columns), len(values), len(self.prior)))
        for row, node, child, asked in self.family.steps(values):
            np.add.at(shares, (asked, row), logs[child] - logs[node])
        for column, share in zip(self.columns, shares, strict=True):
            yield (column,), share
