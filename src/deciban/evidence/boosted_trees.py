"""Evidence from boosted trees."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from deciban.data.class_index import ClassIndex
from deciban.evidence.block_evidence import AddShares, BlockEvidence, EvidencePiece, Rows, centred
from deciban.evidence.symmetric_trees import ENSEMBLES, ROUNDS, SymmetricTrees
from deciban.families.family import formulas
from deciban.generative.plan import Plan
from deciban.types import FloatArray, IntArray, Levels

if TYPE_CHECKING:
    from deciban.evidence.structure import JointPlanning
    from deciban.export.formulas import Formula
    from deciban.families.labelled_values import LabelledValues
    from deciban.generative.block import Block
    from deciban.generative.model import Generative

PARTS = (0.25, 0.5)  # of the rounds, where the next piece begins: later rounds may deserve less weight


class BoostedTrees(BlockEvidence):
    """The sum over rounds of the values of leaves, in pieces: earlier and later rounds have weights of their own.

    A training row is scored by the ensemble that was grown without it, a new row by the mean of all ensembles. Values
    are fixed like weights: to subtract rows does not change them. A class that the trees do not know has the mean.
    """

    families = (SymmetricTrees,)

    def __init__(self, columns: Sequence[int], family: SymmetricTrees, classes: Levels) -> None:
        self.columns, self.family, self.classes = tuple(columns), family, classes
        sizes = np.diff(family.starts)
        place = np.concatenate([(np.arange(size) + 0.5) / size for size in sizes.tolist()])
        self.part = np.searchsorted(PARTS, place).astype(np.int32)
        count = int(self.part.max()) + 1
        self.pieces = tuple(EvidencePiece(f"boosting {p + 1}", self.columns) for p in range(count))

    @classmethod
    def from_block(cls, block: Block, model: Generative) -> Self:
        return cls(block.columns, block.family, model.classes)  # type: ignore[arg-type]

    @classmethod
    def joint_plans(cls, planning: JointPlanning) -> list[Plan]:
        if planning.fine is None or not planning.settings.trees:
            return []
        columns, coding, codes = planning.fine
        labels, weights = planning.sample.labels, planning.sample.weights
        present = np.bincount(labels.codes, weights, len(labels.classes)) > 0
        places = (np.cumsum(present) - 1).astype(np.int32)[labels.codes]
        classes = tuple(label for label, here in zip(labels.classes, present.tolist(), strict=True) if here)
        if len(classes) < 2:
            return []
        settings = planning.settings
        size = settings.boosting or (ENSEMBLES, ROUNDS)
        trees = SymmetricTrees.grown(coding, codes, places, weights, classes, settings.seed, *size)
        return [Plan(trees, columns)]

    def evidence(self, rows: Rows) -> FloatArray:
        codes, family = np.asfortranarray(rows.values), self.family
        unknown = family.reading.unknown(codes) | rows.hides(self.columns)
        own = None if rows.labels is None else family.held_out_from(codes)
        values = family.values(codes, unknown if unknown.any() else None, self.part, own)
        return self._by_class(values if own is not None else values / self._ensembles)

    @property
    def _ensembles(self) -> int:
        return len(self.family.starts) - 1

    @cached_property
    def _places(self) -> IntArray:
        """(K) the position of each class among those of the trees, or −1."""
        return ClassIndex(self.family.classes).positions(self.classes)

    def _by_class(self, values: FloatArray) -> FloatArray:
        """Values (…, outputs) for the classes of the model (…, K), centred over those that the trees know."""
        if values.shape[-1] == 1:
            values = values * [-0.5, 0.5]
        if self.classes == self.family.classes:
            return centred(values)
        known = self._places >= 0
        out = np.zeros((*values.shape[:-1], len(known)))
        if known.any():
            out[..., known] = centred(values[..., self._places[known]])
        return out

    def subtract(self, rows: LabelledValues, kept: IntArray) -> Self:
        return type(self)(self.columns, self.family, tuple(self.classes[k] for k in kept))

    @property
    def n_parameters(self) -> int:
        return self.family.value.size + self.family.column.size

    @property
    def numbers_per_row(self) -> int:
        return 2 + 4 * len(self.pieces)

    def describe(self, piece: EvidencePiece) -> str:
        ends = ("earliest", "early", "late")
        return f"boosted trees, {ends[self.pieces.index(piece)]} rounds"

    def formulas(self) -> list[tuple[int, Formula]]:
        reading, family = self.family.reading, self.family
        common = tuple(range(len(self.columns))), reading.formula(), reading.ordered
        found: list[tuple[int, Formula]] = []
        for p in range(len(self.pieces)):
            of = self.part == p
            splits, values = (
                (family.column[of] + 1, family.code[of]),
                (family.value[of].ravel(), family.rows[of].ravel()),
            )
            found.append((p, formulas.Symmetric(*common, *splits, *values, self._places + 1, 1 / self._ensembles)))
        return found

    def share_scorer(self) -> AddShares:
        """What a split adds to the mean of the rows that agree so far belongs to its feature."""
        columns = np.array(self.columns)

        def add(values: object, weights: FloatArray, out: FloatArray) -> None:
            codes = np.asfortranarray(values)
            unknown = self.family.reading.unknown(codes)
            mask = unknown if unknown.any() else None
            for p in range(len(self.pieces)):
                shares = self.family.contributions(codes, mask, self.part == p) / self._ensembles
                weight = weights[..., p, :]
                out[:, columns] += self._by_class(shares) * (weight if weight.ndim == 1 else weight[:, np.newaxis])

        return add
