"""Rows that weights are fitted to, and their evidence: leave-one-out for training rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from deciban.data import Sample
from deciban.data.batch import Batch
from deciban.data.class_index import ClassIndex
from deciban.data.matched_frame import MatchedFrame
from deciban.data.sampling import distinct_rows, row_keys, row_sample_of
from deciban.errors import NegativeEvidence
from deciban.evidence.block_evidence import BlockEvidence, EvidencePiece, Rows
from deciban.evidence.evidence_by_block import EvidenceByBlock
from deciban.evidence.folds import assign_folds
from deciban.evidence.weight_solver import Evidence
from deciban.families.labelled_values import LabelledValues
from deciban.generative.block import Block
from deciban.generative.held_out import require_training_rows
from deciban.generative.model import Generative
from deciban.types import BoolArray, FloatArray, IntArray, Labels

BATCH_CELLS = 1 << 22  # of evidence, computed at a time
MOST_CELLS = 1 << 23  # of evidence that weights are fitted to: 64 MB; beyond, rows are subsampled
MOST_ROWS = 50_000  # that weights are fitted to: more hardly change them
MOST_KEPT = 5_000  # rows whose values are kept: they are read again for each feature that is hidden
FEWEST = 0.5  # rows of a class whose only row is left out

# rows of this fit; rows declared to be training rows, which is checked; or rows that the model has never seen
Origin = Literal["fit", "training", "held-out"]


@dataclass(frozen=True)
class EvidenceRows:
    """Rows, and the model that scores them; each training row is left out of its own evidence."""

    model: Generative
    sample: Sample
    labels: Labels  # (n) indices of the model's classes
    alone: BoolArray  # (n) whether a row is the only training row of its class: without it the class has no evidence
    keys: NDArray[np.uint64]
    origin: Origin

    @classmethod
    def of_fit(cls, model: Generative, sample: Sample, seed: int) -> EvidenceRows:
        """Training rows of the current fit."""
        return cls._of(model, sample, "fit", seed)

    @classmethod
    def of_training(cls, model: Generative, sample: Sample, seed: int) -> EvidenceRows:
        """Rows declared to be training rows. Raises NegativeEvidence where the counts show that they are not."""
        return cls._of(model, sample, "training", seed)

    @classmethod
    def held_out(cls, model: Generative, sample: Sample, seed: int) -> EvidenceRows:
        """Rows that the model has never seen; those of unknown classes are dropped."""
        return cls._of(model, sample, "held-out", seed)

    @classmethod
    def _of(
        cls, model: Generative, sample: Sample, origin: Origin, seed: int = 0, keys: NDArray[np.uint64] | None = None
    ) -> EvidenceRows:
        """The rows of known classes with nonzero weights; keys are computed from the seed unless given."""
        labels = ClassIndex(model.classes).recode(sample.labels.codes, sample.labels.classes)
        training = origin != "held-out"
        weight = np.ones(len(labels)) if sample.weights is None else sample.weights
        usable = (labels >= 0) & (weight > 0)
        if training and (weight[~usable] > 0).any():
            raise NegativeEvidence(
                "some rows are of a class that the model has never seen, so they are not training rows: to fit weights "
                "to other rows use refit_weights(X, y, held_out=True)"
            )
        rows = np.flatnonzero(usable)
        kept = sample if len(rows) == len(labels) else sample.take(rows)
        labels, weight = labels[rows], weight[rows]
        alone = (model.counts.value[labels] - np.minimum(weight, 1.0) <= 1e-9) & training
        keys = row_keys(kept.frame, model.schema.column_refs(kept.frame), seed) if keys is None else keys[rows]
        return cls(model, kept, labels, alone, keys, origin)

    @property
    def are_training(self) -> bool:
        """Whether each row is left out of its evidence."""
        return self.origin != "held-out"

    def without_checks(self) -> EvidenceRows:
        """The same rows, once they are known to be training rows."""
        return replace(self, origin="fit") if self.are_training else self

    def subsample(self, most: int) -> EvidenceRows:
        """At most about `most` rows, those with the lowest keys; duplicates are merged."""
        rows, weights = row_sample_of(self.keys, self.labels, self.sample.weights, most)
        return self if len(rows) == len(self.keys) else self._weighted(rows, weights)

    def in_folds(self) -> tuple[EvidenceRows, IntArray]:
        """The rows, and the fold of each; see `assign_folds`."""
        rows, folds, weights = assign_folds(self.keys, self.labels, self.sample.weights)
        return (self, folds) if weights is None else (self._weighted(rows, weights), folds)

    def deduplicated(self) -> EvidenceRows:
        """Equal rows as one with the weight of all, sorted by key and class, so that their order does not matter."""
        return self._weighted(*distinct_rows(self.keys, self.labels, self.sample.weights))

    def _weighted(self, rows: IntArray, weights: FloatArray | None) -> EvidenceRows:
        taken = self.take(rows)
        return replace(taken, sample=replace(taken.sample, weights=weights))

    def take(self, rows: NDArray[np.intp]) -> EvidenceRows:
        sample, labels = self.sample.take(rows), self.labels[rows]
        return replace(self, sample=sample, labels=labels, alone=self.alone[rows], keys=self.keys[rows])

    def scored_by(self, model: Generative) -> EvidenceRows:
        """These rows, scored by a model of some of the training rows; rows of other classes are dropped.

        That they are training rows is not checked again: the blocks of such a model are still those of all rows.
        """
        return EvidenceRows._of(model, self.sample, "fit" if self.are_training else "held-out", keys=self.keys)

    def batch(self, rows: NDArray[np.intp]) -> Batch:
        taken = self.take(rows)
        sample = taken.sample
        return Batch(sample.frame, taken.labels, self.model.classes, sample.weights, 0, sample.numbers)

    def selected(self, sources: EvidenceByBlock) -> BoolArray:
        """(P) the pieces that these rows would select, where labels select pieces."""
        return np.concatenate([np.zeros(0, np.bool_), *(self._selected(*source) for source in sources)])

    def _selected(self, block: Block, source: BlockEvidence) -> BoolArray:
        if not source.selected_by_labels or not self.are_training:
            return np.ones(len(source.pieces), np.bool_)
        return source.selected(LabelledValues(self.values(block), self.labels, self.sample.weights))

    def evidence(self, sources: EvidenceByBlock) -> tuple[Evidence, list[EvidencePiece], NDArray[np.uint64]]:
        """The evidence of every piece for the rows (or a subsample of too many), the pieces, and the rows' keys."""
        classes = len(self.model.classes)
        columns = 1 if classes == 2 else classes
        pieces = [piece for _, source in sources for piece in source.pieces]
        rows = self.subsample(min(MOST_ROWS, max(1, MOST_CELLS // max(1, columns * len(pieces)))))
        values = np.empty((columns, len(rows.labels), len(pieces)))
        at = 0
        for block, source in sources:
            if source.pieces:
                rows._fill(block, source, values[:, :, at : at + len(source.pieces)])
            at += len(source.pieces)
        log_prior = np.log(rows.prior(FEWEST))
        offset = log_prior[:, 1:] - log_prior[:, :1] if columns == 1 else log_prior
        groups = np.zeros(len(pieces), np.intp)
        return Evidence(values, offset, rows.labels, rows.sample.weights, groups), pieces, rows.keys

    def evidence_hiding(self, evidence: Evidence, sources: EvidenceByBlock, hidden: frozenset[int]) -> Evidence:
        """The evidence of these rows, if some features (indices in the schema) were unknown."""
        values, at = evidence.values.copy(), 0
        for block, source in sources:
            affected = [not hidden.isdisjoint(piece.columns) for piece in source.pieces]
            here = slice(at, at + len(affected))
            if any(affected) and max(len(piece.columns) for piece in source.pieces) > 1:
                self._fill(block, source, values[:, :, here], hidden)
            else:
                values[:, :, here][:, :, affected] = 0.0
            at += len(affected)
        return replace(evidence, values=values)

    def missing(self, sources: EvidenceByBlock) -> dict[int, BoolArray]:
        """(n) for each feature, in which rows it is missing."""
        schema, missing = self.model.schema, dict[int, BoolArray]()
        for block, source in sources:
            unknown = source.unknown_cells(self.values(block))
            for j, mask in zip(unknown.columns, unknown.missing.T, strict=True) if unknown else ():
                if j < len(schema.names):
                    missing[j] = mask
        return missing

    def prior(self, fewest: float) -> FloatArray:
        """(n, K) the shares of the classes, leave-one-out; a class whose only row is left out has `fewest` rows."""
        counts = np.tile(self.model.counts.value, (len(self.labels), 1))
        if self.are_training:
            weight = 1.0 if self.sample.weights is None else np.minimum(self.sample.weights, 1.0)
            true = np.arange(len(counts)), self.labels
            counts[true] = np.where(self.alone, fewest, counts[true] - weight)
        shares: FloatArray = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
        return shares

    def _fill(self, block: Block, source: BlockEvidence, out: FloatArray, hidden: frozenset[int] = frozenset()) -> None:
        for at, evidence in self.evidence_batches(block, source, hidden):
            here = slice(at, at + len(evidence))
            evidence[self.alone[here]] = 0.0
            if len(out) == 1:
                out[0, here] = evidence[:, :, 1] - evidence[:, :, 0]
            else:
                out[:, here] = evidence.transpose(2, 0, 1)

    def evidence_batches(
        self, block: Block, source: BlockEvidence, hidden: frozenset[int] = frozenset()
    ) -> Iterator[tuple[int, FloatArray]]:
        """The first row of each batch, and the evidence (m, pieces, K) of its rows."""
        values, sample = self.values(block), self.sample
        rows = Rows(values, hidden=hidden)
        if self.are_training:
            # a row of weight 2 is two rows, of which one is left out at a time
            weights = None if sample.weights is None else np.minimum(sample.weights, 1.0)
            rows = Rows(values, self.labels, weights, hidden)
        step = max(1, BATCH_CELLS // max(1, len(source.pieces) * len(self.model.classes)))
        for at in range(0, len(self.labels), step):
            yield at, source.evidence(rows.take(slice(at, at + step)))

    def values(self, block: Block) -> Any:
        """The values of a block, as read by its family. Raises if its counts show that rows are not training rows."""
        if (known := self._known_values.get(id(block))) is not None:
            return known[1]
        values = self._read(block)
        if len(self.labels) <= MOST_KEPT:
            self._known_values[id(block)] = block, values
        return values

    @cached_property
    def _known_values(self) -> dict[int, tuple[Block, Any]]:
        """Values that were read before, by the identity of their block."""
        return {}

    def _read(self, block: Block) -> Any:
        sample = self.sample
        numbers = np.arange(len(self.labels)) if sample.numbers is None else sample.numbers
        values = block.read_checked(MatchedFrame(self.model.schema, sample.frame, numbers))
        if self.origin == "training":
            batch = Batch(sample.frame, self.labels, self.model.classes, sample.weights, 0, numbers)
            require_training_rows(block, values, self.labels, batch)
        return values
