"""Evidence from combinations of the levels of categories, which back off to their parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.evidence.back_off import BackOff, Features, Fit, codes_of, parts_of
from deciban.evidence.block_evidence import AddScores, AddShares, BlockEvidence, EvidencePiece, Rows
from deciban.evidence.combination_search import best_combinations, search
from deciban.evidence.folds import MOST_ROWS
from deciban.evidence.level_combinations import LevelCombinations
from deciban.evidence.tables import subtract_counts
from deciban.families.family import formulas, padded_table
from deciban.statistics.cell_counts import Cells
from deciban.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from deciban.evidence.structure import JointPlanning
    from deciban.export.formulas import Formula
    from deciban.families.labelled_values import LabelledValues
    from deciban.generative.block import Block
    from deciban.generative.model import Generative
    from deciban.generative.plan import Plan

NO_FITS: dict[Features, Fit] = {}
KINDS = {2: "level pair", 3: "level triple"}  # by the number of features


class CombinationTables(BlockEvidence):
    """log (N_c(u, v) + s·q_c) − log π_c, centred, with q_c ∝ π_c·exp(½e_c(u) + ½e_c(v)): see `BackOff`.

    So a combination of few rows says what its parts say, and one never seen says no more. s is chosen for each by the
    rows that are left out. An unknown level is no evidence.

    With d(F) = e(F) − mean of e over the parts of F, a pair is d(u, v) + ½e(u) + ½e(v), and three features are
    d(u, v, w) + ⅓ Σ d of their pairs + ⅓ Σ e. These are the evidence of what is known if it is F alone, so its features
    have equal shares of each term: by Shapley values.
    """

    families = (LevelCombinations,)
    explains_pairs = True
    selected_by_labels = True

    def __init__(
        self, columns: Sequence[int], family: LevelCombinations, statistic: Cells, class_rows: FloatArray
    ) -> None:
        self.columns, self.family = np.array(columns), family
        chosen = zip(family.combined, family.selected, strict=True)
        self.combined = tuple(features for features, selected in chosen if selected)
        self.pieces = tuple(EvidencePiece(KINDS[len(f)], tuple(columns[j] for j in f)) for f in self.combined)
        self._set_counts(statistic.sum_x.value.T, class_rows)

    @classmethod
    def from_block(cls, block: Block, model: Generative) -> Self:
        return cls(block.columns, block.family, block.statistic, model.counts.value)  # type: ignore[arg-type]

    @classmethod
    def joint_plans(cls, planning: JointPlanning) -> list[Plan]:
        return search(planning)

    def _set_counts(self, counts: FloatArray, class_rows: FloatArray, fits: Mapping[Features, Fit] = NO_FITS) -> None:
        """With the numbers of virtual rows in `fits`, or the best for these counts."""
        self.counts, self.tables = counts, BackOff(class_rows)
        of_partitions = np.split(counts, self.family.offsets[1:-1])
        for features, table, cells in zip(self.family.partitions, of_partitions, self.family.part_cells, strict=True):
            if features in fits:
                self.tables.add_fitted(features, table, fits[features])
            else:
                self.tables.add(features, table, cells)
        self.__dict__.pop("_differences", None)

    def evidence(self, rows: Rows) -> FloatArray:
        codes = np.where(rows.hides(self.columns), 0, rows.values)
        cells = dict(zip(self.family.partitions, self.family.cells(codes).T, strict=True))
        known = dict[Features, FloatArray]()
        for features in self.family.partitions:
            self.tables.evidence(features, cells, rows.labels, rows.weights, known)
        return np.stack([known[features] for features in self.combined], axis=1)

    def selected(self, rows: LabelledValues) -> BoolArray:
        """By the counts alone: where rows are subtracted, the others select."""
        gains = {features: self.tables.fits[features].gain for features in self.combined}
        best = best_combinations(gains, self.family.least) if self.family.least else self.combined
        return np.array([features in best for features in self.combined], np.bool_)

    def subtract(self, rows: LabelledValues, kept: IntArray) -> Self:
        cells, offsets = self.family.cells(rows.values), self.family.offsets
        fits = self.tables.fits if self.tables.class_rows.sum() > MOST_ROWS else NO_FITS  # a fold hardly changes them
        rest = copy(self)
        rest._set_counts(*subtract_counts(self.counts, self.tables.class_rows, cells, offsets, rows, kept), fits)
        return rest

    @property
    def n_parameters(self) -> int:
        return len(self.family.keys) * len(self.tables.class_rows)

    @property
    def numbers_per_row(self) -> int:
        return 1 + 4 * len(self.family.partitions)

    @cached_property
    def _differences(self) -> dict[Features, FloatArray]:
        """(cells, K) d of each partition: what its cells say beyond the mean of their parts."""
        found = dict[Features, FloatArray]()
        for features, of_parts in zip(self.family.partitions, self.family.part_cells, strict=True):
            own = np.arange(len(self.tables.tables[features]))
            cells, known = {**of_parts, features: own}, dict[Features, FloatArray]()
            found[features] = self.tables.evidence(features, cells, None, None, known).copy()
            for part in (parts := parts_of(features)):
                found[features] -= known[part] / len(parts)
            found[features][0] = 0.0
        return found

    @cached_property
    def _shares(self) -> FloatArray:
        """(pieces, partitions) how much of d of each partition is in each piece."""
        partitions = self.family.partitions
        shares = np.zeros((len(self.combined), len(partitions)))
        for p, features in enumerate(self.combined):
            inside = [i for i, part in enumerate(partitions) if {*part} <= {*features}]
            shares[p, inside] = [1.0 if partitions[i] == features else 1.0 / len(features) for i in inside]
        return shares

    def scorer(self, weights: FloatArray) -> AddScores:
        by_partition = self._shares.T @ weights
        tables = [self._differences[f] * w for f, w in zip(self.family.partitions, by_partition, strict=True)]
        table = padded_table(np.concatenate(tables).T)

        def add(values: NDArray[np.int32], out: FloatArray) -> None:
            _kernels.add_table(self.family.cells(values), self.family.offsets, table, out.shape[1], out)

        return add

    def share_scorer(self) -> AddShares:
        def add(values: NDArray[np.int32], weights: FloatArray, out: FloatArray) -> None:
            by_partition = np.einsum("pf,...pk->...fk", self._shares, weights)
            for i, features in enumerate(self.family.partitions):
                if not by_partition[..., i, :].any():
                    continue
                cells = self.family.cells_of(features, values[:, list(features)])
                nats = self._differences[features][cells] * by_partition[..., i, :] / len(features)
                for j in features:
                    out[:, self.columns[j]] += nats

        return add

    def pair_evidence(self, values: Any, weights: FloatArray) -> Iterator[tuple[tuple[int, ...], FloatArray]]:
        weighted = self.evidence(Rows(values)) * weights
        return ((piece.columns, weighted[:, p]) for p, piece in enumerate(self.pieces))

    def formulas(self) -> list[tuple[int, Formula]]:
        """d of each partition, in equal shares of its features."""
        found: list[tuple[int, Formula]] = []
        reading = self.family.reading
        codes = [formulas.Code(j, len(levels), levels=levels) for j, levels in enumerate(reading.levels)]
        keys_of = dict(zip(self.family.combined, np.split(self.family.keys, self.family.starts[1:-1]), strict=True))
        for p in range(len(self.combined)):
            for i in np.flatnonzero(self._shares[p]).tolist():
                features = self.family.partitions[i]
                table = self._differences[features][1:] * self._shares[p, i] / len(features)
                own = tuple(codes[j] for j in features)
                if len(features) == 1:
                    found.append((p, formulas.Lookup(features, own, table)))
                    continue
                keys = np.zeros(len(table), np.int64)  # known levels alone, from 0 on
                for column, code in zip(codes_of(keys_of[features], reading.sizes[list(features)]).T, own, strict=True):
                    keys = keys * code.size + column - 1
                found.append((p, formulas.Combinations(features, own, keys, table)))
        return found
