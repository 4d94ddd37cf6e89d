"""Evidence from combinations of the levels of two categories, which backs off to the evidence of both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.data.sampling import row_keys
from deciban.evidence.block_evidence import AddScores, AddShares, BlockEvidence, EvidencePiece, Rows
from deciban.evidence.folds import FOLDS, MOST_ROWS, assign_folds
from deciban.evidence.level_pairs import LevelCodes, LevelPairs, pair_keys
from deciban.evidence.smoothing import CountedRows, choose_smoothing, log_ratio, smoothing_of, without_row
from deciban.evidence.tables import MANY_LEVELS, subtract_counts
from deciban.families.categorical import Categorical
from deciban.families.family import formulas, padded_table
from deciban.generative.plan import Plan
from deciban.statistics import Counts
from deciban.types import BoolArray, FloatArray, IntArray, Labels

if TYPE_CHECKING:
    from deciban.evidence.structure import JointPlanning
    from deciban.export.formulas import Formula
    from deciban.families.labelled_values import LabelledValues
    from deciban.generative.block import Block
    from deciban.generative.model import Generative

FEWEST_ROWS = 1_000  # that combinations are counted in
MOST_COLUMNS = 16  # whose pairs are all tried: those that gain most by themselves
MOST_PAIRS = 20
CHANCE = 3.0  # nats that the best of m pairs must gain beyond log m: less may be chance
SHARE = 0.5  # of the evidence of each feature, where a combination says nothing: the mean of both


class LevelPairTables(BlockEvidence):
    """log (N_c(u, v) + s·q_c) − log π_c, centred, with q_c ∝ π_c·exp(½e_c(u) + ½e_c(v)).

    So a combination of few rows says what its two levels say, and one never seen says no more. The evidence of a level
    is e_c(u) = log (N_c(u) + s_u·π_c) − log π_c, centred. The number s of virtual rows is chosen for each feature and
    each pair, from 2 to 64, by the rows that are left out. Where a value is unknown, the evidence is half of the
    other's.

    By Shapley values the share of u is ½e(u) + ½(e(u, v) − ½e(u) − ½e(v)).
    """

    families = (LevelPairs,)
    explains_pairs = True
    selected_by_labels = True

    def __init__(self, columns: Sequence[int], family: LevelPairs, counts: FloatArray, class_rows: FloatArray) -> None:
        """counts: (cells, K); class_rows: (K)."""
        self.columns, self.family = np.array(columns), family
        self.pieces = tuple(EvidencePiece("level pair", (columns[a], columns[b])) for a, b in family.pairs)
        self._set_counts(counts, class_rows)

    @classmethod
    def from_block(cls, block: Block, model: Generative) -> Self:
        return cls(block.columns, block.family, block.statistic.sum_x.value.T, model.counts.value)  # type: ignore[arg-type, attr-defined]

    @classmethod
    def joint_plans(cls, planning: JointPlanning) -> list[Plan]:
        if planning.pairs == 0:
            return []
        candidates = Candidates.of(planning)
        return [] if candidates is None else candidates.plans(planning)

    def _set_counts(self, counts: FloatArray, class_rows: FloatArray) -> None:
        self.rows, self.prior = class_rows, class_rows / class_rows.sum()
        tables = np.split(counts, self.family.offsets[1:-1])
        singles = len(self.family.reading.levels)
        for table in tables:
            table[0] = 0.0  # unknown values, and combinations that are not listed, are no evidence
        self.singles, self.tables = tables[:singles], tables[singles:]
        self.smoothing = [smoothing_of(table, class_rows)[0] for table in self.singles]
        fits = [self._fit(p) for p in range(len(self.tables))]
        self.pair_smoothing, self.gains = [fit.virtual for fit in fits], np.array([fit.gain for fit in fits])

    def _fit(self, pair: int) -> PairFit:
        a, b = self.family.pairs[pair]
        sides = [(self.singles[j], self.smoothing[j]) for j in (a, b)]
        return fit_pair(self.tables[pair][1:], self.family.parts(pair), sides, self.rows)

    def evidence(self, rows: Rows) -> FloatArray:
        codes = np.where(rows.hides(self.columns), 0, rows.values)
        cells, singles = self.family.cells(codes), len(self.singles)
        halves = [
            SHARE * self._log_ratio(table, cells[:, j], virtual, self.prior, rows)
            for j, (table, virtual) in enumerate(zip(self.singles, self.smoothing, strict=True))
        ]
        out = np.empty((len(cells), len(self.pieces), len(self.prior)))
        for p, (a, b) in enumerate(self.family.pairs):
            backing = back_off(halves[a] + halves[b], self.prior)
            out[:, p] = self._log_ratio(self.tables[p], cells[:, singles + p], self.pair_smoothing[p], backing, rows)
        return out

    def _log_ratio(
        self, table: FloatArray, cells: NDArray[np.int32], virtual: float, backing: FloatArray, rows: Rows
    ) -> FloatArray:
        """(n, K) the evidence of cells of a table; rows with labels are left out of it."""
        counts = table[cells]
        if rows.labels is not None:
            counts = without_row(counts, self.rows, rows.labels, rows.weights)
        return log_ratio(counts, virtual, backing, self.prior)

    def selected(self, rows: LabelledValues) -> BoolArray:
        """By the counts: those of other rows select, where some are subtracted."""
        selected = np.zeros(len(self.pieces), np.bool_)
        best = np.argsort(-self.gains, kind="stable")
        selected[best[self.gains[best] > self.family.least][: MOST_PAIRS if self.family.least else None]] = True
        return selected

    def subtract(self, rows: LabelledValues, kept: IntArray) -> Self:
        cells, offsets = self.family.cells(rows.values), self.family.offsets
        rest = copy(self)
        counts = np.concatenate([*self.singles, *self.tables])
        rest._set_counts(*subtract_counts(counts, self.rows, cells, offsets, rows, kept))
        return rest

    @property
    def n_parameters(self) -> int:
        return len(self.family.keys) * len(self.prior)

    @property
    def numbers_per_row(self) -> int:
        return 1 + 4 * (len(self.pieces) + len(self.singles))

    def _halves(self) -> list[FloatArray]:
        """(codes, K) half of the evidence of each level of a feature; 0 for an unknown one."""
        pairs = zip(self.singles, self.smoothing, strict=True)
        return [SHARE * log_ratio(table, virtual, self.prior, self.prior) for table, virtual in pairs]

    def _differences(self, halves: Sequence[FloatArray]) -> Iterator[FloatArray]:
        """(1 + combinations, K) what each combination of a pair says beyond the mean of its parts."""
        for p, (a, b) in enumerate(self.family.pairs):
            own, other = self.family.parts(p)
            mean = halves[a][own] + halves[b][other]
            backing = back_off(mean, self.prior)
            whole = log_ratio(self.tables[p][1:], self.pair_smoothing[p], backing, self.prior)
            yield np.concatenate([np.zeros((1, len(self.prior))), whole - mean])

    def scorer(self, weights: FloatArray) -> AddScores:
        halves = self._halves()
        pairs = list(zip(self.family.pairs, weights, strict=True))
        singles = [half * sum(w for pair, w in pairs if j in pair) for j, half in enumerate(halves)]
        differences = [table * w for table, w in zip(self._differences(halves), weights, strict=True)]
        table = padded_table(np.concatenate([*singles, *differences]).T)

        def add(values: NDArray[np.int32], out: FloatArray) -> None:
            _kernels.add_table(self.family.cells(values), self.family.offsets, table, out.shape[1], out)

        return add

    def share_scorer(self) -> AddShares:
        halves = self._halves()
        differences, singles = list(self._differences(halves)), len(halves)

        def add(values: NDArray[np.int32], weights: FloatArray, out: FloatArray) -> None:
            cells = self.family.cells(values)
            for p, pair in enumerate(self.family.pairs):
                beyond = 0.5 * differences[p][cells[:, singles + p]]
                for j in pair:
                    out[:, self.columns[j]] += (halves[j][cells[:, j]] + beyond) * weights[..., p, :]

        return add

    def pair_evidence(self, values: Any, weights: FloatArray) -> Iterator[tuple[tuple[int, ...], FloatArray]]:
        weighted = self.evidence(Rows(values)) * weights
        return ((piece.columns, weighted[:, p]) for p, piece in enumerate(self.pieces))

    def formulas(self) -> list[tuple[int, Formula]]:
        """Half of the evidence of each level, and what their combination says beyond, of which each has half."""
        halves, found = self._halves(), list[tuple[int, Formula]]()
        codes = [formulas.Code(j, len(levels), levels=levels) for j, levels in enumerate(self.family.reading.levels)]
        for p, (pair, difference) in enumerate(zip(self.family.pairs, self._differences(halves), strict=True)):
            both = tuple(codes[j] for j in pair)
            own, other = (part - 1 for part in self.family.parts(p))
            keys = own * both[1].size + other
            for j in pair:
                found.append((p, formulas.Lookup((j,), (codes[j],), halves[j][1:])))
                found.append((p, formulas.Combinations((j,), both, keys, 0.5 * difference[1:])))
        return found


class PairFit(NamedTuple):
    virtual: float  # s
    gain: float  # nats over all rows, beyond its parts


def back_off(evidence: FloatArray, prior: FloatArray) -> FloatArray:
    """(n, K) q_c ∝ π_c·exp(e_c), which sums to 1."""
    shares = prior * np.exp(evidence - evidence.max(axis=1, keepdims=True))
    result: FloatArray = shares / shares.sum(axis=1, keepdims=True)
    return result


def fit_pair(
    table: FloatArray,
    parts: tuple[IntArray, IntArray],
    sides: Sequence[tuple[FloatArray, float]],
    class_rows: FloatArray,
) -> PairFit:
    """s of a pair with counts (combinations, K), whose parts (combinations) are cells of two tables, each with its s.

    A row is left out of the combination and of both parts. The gain is that over the mean of the parts or over their
    sum, whichever predicts better.
    """
    rows, prior = CountedRows.of(table), class_rows / class_rows.sum()
    left = without_row(table[rows.cells], class_rows, rows.labels, rows.once)
    total = np.zeros_like(left)
    for (single, virtual), cells in zip(sides, parts, strict=True):
        counts = without_row(single[cells[rows.cells]], class_rows, rows.labels, rows.once)
        total += log_ratio(counts, virtual, prior, prior)
    backing = back_off(SHARE * total, prior)
    virtual, loss = choose_smoothing(rows, left, backing)
    return PairFit(virtual, min(rows.losses(backing), rows.losses(back_off(total, prior))) - loss)


class Candidates(NamedTuple):
    """Categories whose combinations are too many for a table of all of them, and rows to select pairs by."""

    columns: tuple[int, ...]  # (d) indices in the schema
    reading: LevelCodes
    codes: NDArray[np.int32]  # (n, d)
    labels: Labels
    weights: FloatArray | None
    classes: int

    @classmethod
    def of(cls, planning: JointPlanning) -> Candidates | None:
        """Columns of few rows for each level are left out, and those that repeat another."""
        sample, block = planning.sample, _categories(planning.single)
        classes, weights = len(sample.labels.classes), sample.weights
        rows = float(len(sample.labels.codes) if weights is None else weights.sum())
        if block is None or rows < FEWEST_ROWS or classes < 2:
            return None
        columns = [j for j in block.columns if j < len(planning.single.schema.names)]
        counts = block.statistic
        assert isinstance(counts, Counts)
        names = [tuple(level for level in levels if level is not None) for levels in counts.levels]
        levels = {j: names[i] for i, j in enumerate(block.columns) if j in columns}
        columns = [j for j in columns if 1 < len(levels[j]) <= SHARE * rows]
        if len(columns) < 2:
            return None
        reading = LevelCodes(tuple(levels[j] for j in columns))
        codes = np.asfortranarray(reading.of(sample.frame, [planning.places[j] for j in columns]))
        whole = cls(tuple(columns), reading, codes, sample.labels.codes, weights, classes)
        return whole._most_informative()

    def _most_informative(self) -> Candidates:
        first = dict[bytes, int]()
        for i, column in enumerate(self.codes.T):
            first.setdefault(_partition(column).tobytes(), i)
        kept = list(first.values())
        if len(kept) > MOST_COLUMNS:
            gains = [smoothing_of(self._single(i, None), self._class_rows(None))[1] for i in kept]
            kept = sorted(kept[i] for i in np.argsort(-np.array(gains), kind="stable")[:MOST_COLUMNS])
        return self._take(kept)

    def _take(self, kept: Sequence[int]) -> Candidates:
        columns, levels = (tuple(each[i] for i in kept) for each in (self.columns, self.reading.levels))
        return self._replace(columns=columns, reading=LevelCodes(levels), codes=self.codes[:, kept])

    def _class_rows(self, weights: FloatArray | None) -> FloatArray:
        rows: FloatArray = np.bincount(self.labels, weights, self.classes).astype(np.float64)
        return rows

    def _single(self, column: int, weights: FloatArray | None) -> FloatArray:
        """(codes, K) the counts of a feature, 0 for unknown values."""
        table = self._counted(self.codes[:, column], int(self.reading.sizes[column]), weights)
        table[0] = 0.0
        return table

    def _counted(self, cells: NDArray[Any], size: int, weights: FloatArray | None) -> FloatArray:
        flat = np.bincount(cells.astype(np.int64) * self.classes + self.labels, weights, size * self.classes)
        return flat.astype(np.float64).reshape(size, self.classes)

    def _pairs(self) -> list[tuple[int, int]]:
        """The pairs of a feature of many levels, and those with too many combinations for a table of all."""
        most, sizes = SHARE * float(self._class_rows(self.weights).sum()), (self.reading.sizes - 1).tolist()
        pairs = combinations(range(len(sizes)), 2)
        return [(a, b) for a, b in pairs if max(sizes[a], sizes[b]) > MANY_LEVELS or sizes[a] * sizes[b] > most]

    def plans(self, planning: JointPlanning) -> list[Plan]:
        """The pairs that gain most over their parts: all rows select, and if they are few the others of each fold."""
        tried = self._pairs()
        if not tried:
            return []
        least = float(np.log(len(tried))) + CHANCE if planning.pairs is None else 0.0
        most = MOST_PAIRS if planning.pairs is None else planning.pairs
        subsets = [self.weights]
        if planning.pairs is None and len(self.labels) <= MOST_ROWS:
            keys = row_keys(planning.sample.frame, planning.places, planning.seed)
            rows, folds, weights = assign_folds(keys, self.labels, self.weights)
            whole = np.bincount(rows, weights, len(self.labels))
            for fold in range(FOLDS):
                inside = folds == fold
                subset = whole - np.bincount(rows[inside], None if weights is None else weights[inside], len(whole))
                subsets.append(np.maximum(subset, 0.0))
        listed = [self._combinations(pair) for pair in tried]
        chosen = dict.fromkeys(p for weights in subsets for p in self._select(tried, listed, weights, least, most))
        return self._plan([(tried[p], listed[p][0]) for p in chosen], least)

    def _combinations(self, pair: tuple[int, int]) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
        """The keys that occur, and (n) the place of each row among them, from 1 on; 0 for one with unknown values."""
        a, b = pair
        keys = pair_keys(self.codes[:, a], self.codes[:, b], int(self.reading.sizes[b]))
        listed, places = np.unique(keys, return_inverse=True)
        unknown = int(listed[0] < 0)
        return listed[unknown:], places.reshape(-1) + (1 - unknown)

    def _select(
        self,
        tried: Sequence[tuple[int, int]],
        listed: Sequence[tuple[NDArray[np.int64], NDArray[np.intp]]],
        weights: FloatArray | None,
        least: float,
        most: int,
    ) -> list[int]:
        """The indices of the best pairs by rows with these weights, best first."""
        class_rows = self._class_rows(weights)
        if np.count_nonzero(class_rows) < self.classes:
            return []
        singles = [self._single(j, weights) for j in range(len(self.columns))]
        smoothing = [smoothing_of(table, class_rows)[0] for table in singles]
        gains = np.zeros(len(tried))
        for p, (pair, (keys, places)) in enumerate(zip(tried, listed, strict=True)):
            nested = len(keys) <= max(np.count_nonzero(singles[j].any(axis=1)) for j in pair)
            if nested or not len(keys):  # the pair is the finer of both features
                continue
            table = self._counted(places, len(keys) + 1, weights)[1:]
            sides = [(singles[j], smoothing[j]) for j in pair]
            gains[p] = fit_pair(table, np.divmod(keys, self.reading.sizes[pair[1]]), sides, class_rows).gain
        return [int(p) for p in np.argsort(-gains, kind="stable") if gains[p] > least][:most]

    def _plan(self, chosen: Sequence[tuple[tuple[int, int], NDArray[np.int64]]], least: float) -> list[Plan]:
        if not chosen:
            return []
        used = sorted({j for pair, _ in chosen for j in pair})
        place = {j: i for i, j in enumerate(used)}
        starts = np.cumsum([0, *(len(keys) for _, keys in chosen)], dtype=np.int64)
        pairs = tuple((place[a], place[b]) for (a, b), _ in chosen)
        reading = self._take(used).reading
        family = LevelPairs(reading, pairs, starts, np.concatenate([keys for _, keys in chosen]), least)
        return [Plan(family, tuple(self.columns[j] for j in used))]


def _categories(model: Generative) -> Block | None:
    blocks = (block for block in model.blocks if isinstance(block.family, Categorical))
    return next(blocks, None)


def _partition(codes: NDArray[Any]) -> NDArray[np.intp]:
    """Codes by first occurrence: equal for columns that repeat each other."""
    _, first, which = np.unique(codes, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.intp)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[which.reshape(-1)]
