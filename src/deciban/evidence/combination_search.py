"""Which combinations of levels are evidence: those that predict rows left out better than their parts do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deciban.data.sampling import row_keys
from deciban.evidence.back_off import BackOff, Features, codes_of, find_keys, fit_single, keys_of, parts_of
from deciban.evidence.folds import FOLDS, MOST_ROWS, assign_folds
from deciban.evidence.level_combinations import LARGEST, LevelCodes, LevelCombinations
from deciban.evidence.tables import DISTINCT, MANY_LEVELS, MANY_ROWS
from deciban.families.categorical import Categorical
from deciban.generative.plan import Plan
from deciban.statistics import Counts
from deciban.types import FloatArray, IntArray, Labels, Levels

if TYPE_CHECKING:
    from deciban.evidence.structure import JointPlanning
    from deciban.generative.model import Generative

MOST_COLUMNS = 16  # whose pairs are all tried: those that gain most by themselves
MOST = {2: 20, 3: 10}  # combinations that are evidence, by the number of features
SEARCHED = 50_000  # rows that select combinations; those of all rows are listed
EXTENDED = 6  # pairs, to which a third feature is tried
CHANCE = 3.0  # nats that the best of m combinations must gain beyond log m: less may be chance
CELLS = 0.5  # for each row: a pair with more combinations has no table of all of them


def best_combinations(gains: Mapping[Features, float], least: float, most: int | None = None) -> list[Features]:
    """The best combinations of each number of features, best first, that gain more than `least`."""
    ranked = sorted(gains, key=lambda features: -gains[features])
    kept = [features for features in ranked if gains[features] > least]
    by_size = {size: [features for features in kept if len(features) == size] for size in MOST}
    return [features for size, found in by_size.items() for features in found[: MOST[size] if most is None else most]]


def search(planning: JointPlanning) -> list[Plan]:
    """A block of combinations, if any gain enough; labels select them.

    If rows are few, combinations that the other rows of each fold would select are counted too, as pairs are.
    """
    candidates = None if planning.settings.pairs == 0 else Candidates.of(planning)
    if candidates is None:
        return []
    some = candidates.subsample(planning)
    found = some.select(some.weights, planning.settings.pairs)
    selected = list(found.selected)
    if planning.settings.pairs is None and len(candidates.labels) <= MOST_ROWS:
        for weights in candidates.without_folds(planning):
            selected += candidates.select(weights, None).selected
    return candidates.plans(list(dict.fromkeys(selected)), found.least)


@dataclass(frozen=True)
class Selection:
    selected: list[Features]
    least: float  # nats that each had to gain


@dataclass(frozen=True, eq=False)
class Candidates:
    """Categories, by codes, and rows to select combinations of them by."""

    columns: tuple[int, ...]  # (d) indices in the schema
    reading: LevelCodes
    codes: NDArray[np.int32]  # (n, d)
    labels: Labels
    weights: FloatArray | None
    classes: int

    @classmethod
    def of(cls, planning: JointPlanning) -> Candidates | None:
        """Features with more levels than half of the rows are left out, and those that repeat another."""
        sample, classes = planning.sample, len(planning.sample.labels.classes)
        rows = float(len(sample.labels.codes) if sample.weights is None else sample.weights.sum())
        if rows < MANY_ROWS or classes < 2:
            return None
        levels = _levels(planning.single)
        columns = tuple(j for j, values in levels.items() if 1 < len(values) <= DISTINCT * rows)
        sizes = sorted((len(levels[j]) for j in columns), reverse=True)
        if len(columns) < 2 or not _is_wide(sizes[0], sizes[1], rows):
            return None
        reading = LevelCodes(tuple(levels[j] for j in columns))
        codes = reading.of(sample.frame, [planning.places[j] for j in columns])
        candidates = cls(columns, reading, codes, sample.labels.codes, sample.weights, classes)
        return candidates._take(candidates._most_informative())

    def _most_informative(self) -> list[int]:
        first = dict[bytes, int]()
        for j, column in enumerate(self.codes.T):
            first.setdefault(_partition(column).tobytes(), j)
        kept = list(first.values())
        if len(kept) > MOST_COLUMNS:
            class_rows = self._class_rows(self.weights)
            sizes = self.reading.sizes.tolist()
            tables = [self._counted(self.codes[:, j], sizes[j], self.weights)[1:] for j in kept]
            gains = np.array([fit_single(table, class_rows).gain for table in tables])
            kept = sorted(kept[i] for i in np.argsort(-gains, kind="stable")[:MOST_COLUMNS])
        return kept

    def _take(self, kept: Sequence[int]) -> Candidates:
        columns = tuple(self.columns[j] for j in kept)
        codes = self.codes[:, list(kept)]
        return Candidates(columns, self.reading.take(kept), codes, self.labels, self.weights, self.classes)

    def subsample(self, planning: JointPlanning) -> Candidates:
        """At most about `SEARCHED` rows, those with the lowest keys."""
        if len(self.labels) <= SEARCHED:
            return self
        keys = row_keys(planning.sample.frame, planning.places, planning.settings.seed)
        rows = np.flatnonzero(keys <= np.partition(keys, SEARCHED)[SEARCHED])
        codes, weights = np.asfortranarray(self.codes[rows]), None if self.weights is None else self.weights[rows]
        return replace(self, codes=codes, labels=self.labels[rows], weights=weights)

    def without_folds(self, planning: JointPlanning) -> Iterable[FloatArray]:
        """(n) the weights of the rows that are not in a fold, for each fold."""
        keys = row_keys(planning.sample.frame, planning.places, planning.settings.seed)
        rows, folds, weights = assign_folds(keys, self.labels, self.weights)
        for fold in range(FOLDS):
            outside = folds != fold
            of_rows = None if weights is None else weights[outside]
            yield np.bincount(rows[outside], of_rows, len(self.labels)).astype(np.float64)

    def _class_rows(self, weights: FloatArray | None) -> FloatArray:
        return np.bincount(self.labels, weights, self.classes).astype(np.float64)

    def _counted(self, cells: NDArray[Any], size: int, weights: FloatArray | None) -> FloatArray:
        """(cells, K) the rows of each class in each cell."""
        flat = np.bincount(cells.astype(np.int64) * self.classes + self.labels, weights, size * self.classes)
        return flat.astype(np.float64).reshape(size, self.classes)

    def _cells(self, features: Features) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The keys of a combination that occur, and (n) the cell of each row."""
        keys = keys_of(self.codes[:, list(features)], self.reading.sizes[list(features)])
        listed = np.unique(keys)
        listed = listed[int(listed[0] < 0) :]
        return listed, find_keys(listed, keys)

    @cached_property
    def _pairs(self) -> list[Features]:
        """Pairs of a feature of many levels, and those that have too many combinations for a table of all."""
        sizes, rows = (self.reading.sizes - 1).tolist(), float(self._class_rows(self.weights).sum())
        return [(a, b) for a, b in combinations(range(len(sizes)), 2) if _is_wide(sizes[a], sizes[b], rows)]

    def select(self, weights: FloatArray | None, pairs: int | None) -> Selection:
        """The best combinations by rows with these weights: pairs, then the best pairs with a third feature."""
        class_rows = self._class_rows(weights)
        if np.count_nonzero(class_rows) < self.classes:
            return Selection([], 0.0)
        tables, listed = BackOff(class_rows), dict[Features, NDArray[np.int64]]()
        for j, size in enumerate(self.reading.sizes.tolist()):
            tables.add((j,), self._counted(self.codes[:, j], size, weights), {})
        gains = {features: self._gain(features, weights, tables, listed) for features in self._pairs}
        if pairs is not None:
            return Selection(best_combinations(gains, 0.0, pairs), 0.0)
        for pair in best_combinations(gains, float(np.log(max(1, len(gains)))) + CHANCE)[:EXTENDED]:
            for j in set(range(len(self.columns))).difference(pair):
                features = tuple(sorted((*pair, j)))
                if features not in gains and self.reading.sizes[list(features)].astype(float).prod() < LARGEST:
                    for part in parts_of(features):
                        if part not in tables.tables:
                            self._gain(part, weights, tables, listed)
                    gains[features] = self._gain(features, weights, tables, listed)
                    del tables.tables[features]
        least = float(np.log(max(1, len(gains)))) + CHANCE  # the best of m of noise may gain about log m nats
        return Selection(best_combinations(gains, least), least)

    def _gain(
        self,
        features: Features,
        weights: FloatArray | None,
        tables: BackOff,
        listed: dict[Features, NDArray[np.int64]],
    ) -> float:
        """The nats that a combination gains over its parts; 0 for one that is no finer than a part."""
        keys, cells = self._cells(features)
        listed[features] = keys
        parts = {part: self._part_cells(features, part, keys, listed) for part in _smaller(features)}
        fit = tables.add(features, self._counted(cells, len(keys) + 1, weights), parts)
        finer = len(keys) > max(len(np.unique(parts[part])) - 1 for part in parts_of(features))
        return fit.gain if finer else 0.0

    def _part_cells(
        self,
        features: Features,
        part: Features,
        keys: NDArray[np.int64],
        listed: Mapping[Features, NDArray[np.int64]],
    ) -> IntArray:
        """The cell of a part in which each cell of a combination is."""
        sizes = self.reading.sizes
        codes = codes_of(keys, sizes[list(features)])[:, [features.index(j) for j in part]]
        cells = codes[:, 0] if len(part) == 1 else find_keys(listed[part], keys_of(codes, sizes[list(part)]))
        return np.concatenate([[0], cells])

    def plans(self, selected: Sequence[Features], least: float) -> list[Plan]:
        if not selected:
            return []
        counted = {part for features in selected for part in (features, *_smaller(features)) if len(part) > 1}
        combined = sorted(counted, key=lambda features: (len(features), features))
        used = sorted({j for features in combined for j in features})
        keys = [self._take(used)._cells(tuple(used.index(j) for j in features))[0] for features in combined]
        family = LevelCombinations(
            self.reading.take(used),
            tuple(tuple(used.index(j) for j in features) for features in combined),
            tuple(features in selected for features in combined),
            np.cumsum([0, *map(len, keys)], dtype=np.int64),
            np.concatenate(keys),
            least,
        )
        return [Plan(family, tuple(self.columns[j] for j in used))]


def _is_wide(a: int, b: int, rows: float) -> bool:
    """Whether a pair of features with so many levels is tried."""
    return max(a, b) > MANY_LEVELS or a * b > CELLS * rows


def _smaller(features: Features) -> list[Features]:
    """All parts of a combination, and their parts."""
    return [part for size in range(1, len(features)) for part in combinations(features, size)]


def _levels(model: Generative) -> dict[int, Levels]:
    """The levels of each category of the table, without a missing value."""
    levels = dict[int, Levels]()
    for block in model.blocks:
        if isinstance(block.family, Categorical) and isinstance(block.statistic, Counts):
            for j, values in zip(block.columns, block.statistic.levels, strict=True):
                if j < len(model.schema.names):
                    levels[j] = tuple(value for value in values if value is not None)
    return levels


def _partition(codes: NDArray[Any]) -> NDArray[np.intp]:
    """Codes by first occurrence: equal for columns that repeat each other."""
    _, first, which = np.unique(codes, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.intp)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[which.reshape(-1)]
