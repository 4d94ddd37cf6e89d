"""BlockEvidence: the evidence of a block of features, in pieces that each have a weight."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from deciban.contributions import TermLine
from deciban.families.labelled_values import LabelledValues, rows_of
from deciban.types import BoolArray, FloatArray, IntArray, Labels

if TYPE_CHECKING:
    from deciban.evidence.structure import JointPlanning, SingleFeatures
    from deciban.export.formulas import Formula
    from deciban.generative.block import Block
    from deciban.generative.model import Generative
    from deciban.generative.plan import Plan

AddScores = Callable[[Any, FloatArray], None]  # (values, out (n, K))
AddShares = Callable[[Any, FloatArray, FloatArray], None]  # (values, weights, out (n, features, K))


@dataclass(frozen=True)
class EvidencePiece:
    """Evidence with a weight of its own: its kind, and its features (indices in the schema)."""

    kind: str
    columns: tuple[int, ...]
    naive: bool = False  # whether naive Bayes uses it: one piece for each feature


@dataclass(frozen=True)
class Rows:
    """Values of a block. Rows with labels are training rows: each is left out of the evidence about itself."""

    values: Any
    labels: Labels | None = None
    weights: FloatArray | None = None  # (n) how much of each row is left out; None is 1
    hidden: frozenset[int] = frozenset()  # features (indices in the schema) that are treated as unknown

    def hides(self, columns: Any) -> BoolArray:
        return np.isin(columns, list(self.hidden))

    def take(self, rows: slice | IntArray) -> Rows:
        labels, weights = (None if array is None else array[rows] for array in (self.labels, self.weights))
        return Rows(rows_of(self.values, rows), labels, weights, self.hidden)  # type: ignore[arg-type]


@dataclass(frozen=True)
class UnknownCells:
    """Which values are missing, and which were never seen in training."""

    columns: tuple[int, ...]  # (m) indices in the schema
    missing: BoolArray  # (n, m)
    unseen: BoolArray  # (n, m)


class BlockEvidence(ABC):
    """Evidence is log p(x|c) minus its mean over the classes.

    A subclass declares the families of its blocks (`families`), which blocks a fit counts (`plans`, `joint_plans`),
    and how evidence is made from a block (`from_block`). One line of `kinds.KINDS` registers it.
    """

    families: ClassVar[tuple[type, ...]] = ()  # of the blocks that it is made from
    explains_terms: bool = False  # whether each term of a document is explained
    explains_pairs: ClassVar[bool] = False  # whether pieces are pairs of features, which share their evidence
    selected_by_labels: ClassVar[bool] = False  # whether its pieces are selected by means of the labels
    of_missingness: ClassVar[bool] = False  # whether it is about missing values
    rejects_infinite: ClassVar[bool] = False  # whether an infinite number is an error, even if all weights are 0

    description: str = ""  # of its pieces, in a few words
    pieces: tuple[EvidencePiece, ...]

    @classmethod
    def accepts(cls, plan: Plan) -> bool:
        """Whether blocks with this plan have this kind of evidence."""
        return not plan.presence and isinstance(plan.family, cls.families)

    @classmethod
    @abstractmethod
    def from_block(cls, block: Block, model: Generative) -> Self:
        """The evidence of a block of a model."""

    @classmethod
    def plans(cls, features: SingleFeatures) -> list[Plan]:
        """The blocks of single features that a fit counts for this kind of evidence."""
        return []

    @classmethod
    def joint_plans(cls, planning: JointPlanning) -> list[Plan]:
        """The blocks of several features that a fit counts, in a second pass, for this kind of evidence."""
        return []

    @abstractmethod
    def evidence(self, rows: Rows) -> FloatArray:
        """(n, pieces, K) the evidence of each piece."""

    def selected(self, rows: LabelledValues) -> BoolArray:
        """(pieces) which pieces these rows, with full weights, would select; all, unless `selected_by_labels`."""
        return np.ones(len(self.pieces), np.bool_)

    def subtract(self, rows: LabelledValues, kept: IntArray) -> Self | None:
        """The evidence without some training rows, for the classes in `kept`; None if it needs a statistic."""
        return None

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """The number of free parameters."""

    def scorer(self, weights: FloatArray) -> AddScores:
        """A function that adds Σ weights (pieces, K) · evidence of new rows to out (n, K)."""

        def add(values: Any, out: FloatArray) -> None:
            out += np.einsum("npk,pk->nk", self.evidence(Rows(values)), weights)

        return add

    @property
    def numbers_per_row(self) -> int:
        """About how many numbers per row and class `evidence` allocates."""
        return 1 + 4 * len(self.pieces)

    def unknown_cells(self, values: Any) -> UnknownCells | None:
        """Which values are unknown, if this kind of evidence shows it for its features; else None."""
        return None

    @abstractmethod
    def formulas(self) -> list[tuple[int, Formula]]:
        """The evidence of each piece (its index), as formulas that need no library.

        Their owners are the features that have shares of it. Features are numbered as in the block.
        """

    def term_lines(self, values: Any, weights: FloatArray) -> Iterator[TermLine]:
        """The weighted evidence of each term, if it `explains_terms`; the sum is that of the block."""
        raise NotImplementedError

    def share_scorer(self) -> AddShares:
        """A function that adds the shares of features to out (n, features, K); they sum to what `scorer` adds.

        Its arguments are values, weights (pieces, K) or (n, pieces, K), and out. By default a piece has one feature.
        """

        def add(values: Any, weights: FloatArray, out: FloatArray) -> None:
            weighted = self.evidence(Rows(values)) * weights
            for p, piece in enumerate(self.pieces):
                out[:, piece.columns[0]] += weighted[:, p]

        return add

    def pair_evidence(self, values: Any, weights: FloatArray) -> Iterator[tuple[tuple[int, ...], FloatArray]]:
        """The features and weighted evidence (n, K) of each pair, if it `explains_pairs`."""
        raise NotImplementedError

    def describe(self, piece: EvidencePiece) -> str:
        """A piece in a few words: the description of all, or its kind."""
        return self.description or piece.kind


def centred(evidence: FloatArray) -> FloatArray:
    """Evidence minus its mean over the classes, the last axis."""
    result: FloatArray = evidence - evidence.mean(axis=-1, keepdims=True)
    return result


def bounded(evidence: FloatArray, most: float) -> FloatArray:
    """Centred, and clipped to ±most nats."""
    return np.clip(centred(evidence), -most, most)
