"""Rows that are left out of the evidence that judges them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban.batch import Batch
from deciban.errors import BadCell, NegativeEvidence
from deciban.generative import Block, Generative, named_cell
from deciban.held_out import require_learned
from deciban.plans import read
from deciban.sources import Sample
from deciban.sources.sampling import different, few_of, row_keys
from deciban.statistics import Counts
from deciban.types import FloatArray, IntArray, Labels, Levels
from deciban.weighing.folds import deal
from deciban.weighing.objective import Evidence
from deciban.weighing.reader import Piece, Reader, Rows
from deciban.weighing.readers import Readers

CELLS = 1 << 22  # of evidence, that are made at a time
MOST_CELLS = 1 << 25  # of evidence, that are weighed: 256 MB; beyond, of fewer rows
FEWEST = 0.5  # rows that a class has at least, without its only one


def places_of(classes: Levels, sample: Sample) -> Labels:
    """(n) where each row's class stands among those of a model; −1 where it does not."""
    place = {label: k for k, label in enumerate(classes)}
    known = np.array([place.get(label, -1) for label in sample.labels.classes], np.int32)
    return known[sample.labels.codes]


@dataclass(frozen=True)
class LeftOut:
    """Rows to judge, and the model that judges them; each left out of it, if they are among what it has learned."""

    model: Generative
    sample: Sample
    labels: Labels  # (n) places in the model's classes
    alone: NDArray[np.bool_]  # (n) the only rows of their classes: without such a row nothing is known of its class
    keys: NDArray[np.uint64]
    learned: bool
    sure: bool  # that they were learned: counts are not asked

    @classmethod
    def of(
        cls,
        model: Generative,
        sample: Sample,
        seed: int | None,
        *,
        learned: bool = True,
        sure: bool = False,
        keys: NDArray[np.uint64] | None = None,
    ) -> LeftOut:
        """The rows that weigh something, of classes that are known; their keys are known, or made by the seed."""
        labels = places_of(model.classes, sample)
        weight = np.ones(len(labels)) if sample.weights is None else sample.weights
        there = (labels >= 0) & (weight > 0)
        if learned and (weight[~there] > 0).any():
            raise NegativeEvidence(
                "some rows are of a class that was never learned: these must be rows that the model has learned; to "
                "weigh evidence by others use refit_weights(X, y, held_out=True)"
            )
        rows = np.flatnonzero(there)
        taken = sample if len(rows) == len(labels) else sample.take(rows)
        labels, weight = labels[rows], weight[rows]
        alone = (model.counts.value[labels] - np.minimum(weight, 1.0) <= 1e-9) & learned
        if keys is None:
            assert seed is not None
            keys = row_keys(taken.frame, model.schema.places(taken.frame), seed)
        else:
            keys = keys[rows]
        return cls(model, taken, labels, alone, keys, learned, sure)

    def few(self, most: int) -> LeftOut:
        """No more than about so many of the rows: equal ones as one, and those with the lowest keys."""
        rows, weights = few_of(self.keys, self.labels, self.sample.weights, most)
        if len(rows) == len(self.keys):
            return self
        some = self.take(rows)
        return replace(some, sample=replace(some.sample, weights=weights))

    def dealt(self) -> tuple[LeftOut, IntArray]:
        """The rows in folds, in the order given, and the fold of each; see `deal`."""
        rows, folds, weights = deal(self.keys, self.labels, self.sample.weights)
        if weights is None:
            return self, folds
        some = self.take(rows)
        return replace(some, sample=replace(some.sample, weights=weights)), folds

    def different(self) -> LeftOut:
        """Equal rows as one with the weight of all, by key and class: in an order that does not depend on theirs."""
        rows, weights = different(self.keys, self.labels, self.sample.weights)
        some = self.take(rows)
        return replace(some, sample=replace(some.sample, weights=weights))

    def take(self, rows: NDArray[np.intp]) -> LeftOut:
        """Some of the rows."""
        sample, labels = self.sample.take(rows), self.labels[rows]
        return replace(self, sample=sample, labels=labels, alone=self.alone[rows], keys=self.keys[rows])

    def judged_by(self, model: Generative) -> LeftOut:
        """These rows, judged by a model that has learned some of what this one has, and them; of classes it knows.

        That they were learned is known of this model, and its blocks are those of the other, which may lack a class.
        """
        return LeftOut.of(model, self.sample, None, learned=self.learned, sure=True, keys=self.keys)

    def batch(self, rows: NDArray[np.intp]) -> Batch:
        """Some of the rows, as they were learned."""
        some = self.take(rows)
        return Batch(some.sample.frame, some.labels, self.model.classes, some.sample.weights, 0, some.sample.numbers)

    def admitted(self, readers: Readers) -> NDArray[np.bool_]:
        """(P) the pieces that these rows would choose, where labels choose."""
        return np.concatenate([np.zeros(0, np.bool_), *(self._admitted(*pair) for pair in readers)])

    def _admitted(self, block: Block, reader: Reader) -> NDArray[np.bool_]:
        if not reader.chosen or not self.learned:
            return np.ones(len(reader.pieces), np.bool_)
        return reader.admitted(Rows(self.values(block), self.labels, self.sample.weights))

    def evidence(self, readers: Readers) -> tuple[Evidence, list[Piece], NDArray[np.uint64]]:
        """What every piece says of the rows, or of a part of too many, and their keys."""
        classes = len(self.model.classes)
        columns = 1 if classes == 2 else classes
        pieces = [piece for _, reader in readers for piece in reader.pieces]
        rows = self.few(max(1, MOST_CELLS // max(1, columns * len(pieces))))
        values = np.empty((columns, len(rows.labels), len(pieces)))
        at = 0
        for block, reader in readers:
            if reader.pieces:
                rows._fill(block, reader, values[:, :, at : at + len(reader.pieces)])
            at += len(reader.pieces)
        log_prior = np.log(rows.prior(FEWEST))
        offset = log_prior[:, 1:] - log_prior[:, :1] if columns == 1 else log_prior
        groups = np.zeros(len(pieces), np.intp)
        return Evidence(values, offset, rows.labels, rows.sample.weights, groups), pieces, rows.keys

    def hiding(self, evidence: Evidence, readers: Readers, hidden: frozenset[int]) -> Evidence:
        """The evidence of these rows, with some columns of the table hidden: nothing is known of their cells."""
        values, at = evidence.values.copy(), 0
        for block, reader in readers:
            about = [not hidden.isdisjoint(piece.columns) for piece in reader.pieces]
            here = slice(at, at + len(about))
            if any(about) and max(len(piece.columns) for piece in reader.pieces) > 1:
                self._fill(block, reader, values[:, :, here], hidden)
            else:
                values[:, :, here][:, :, about] = 0.0
            at += len(about)
        return replace(evidence, values=values)

    def missing(self, readers: Readers) -> dict[int, NDArray[np.bool_]]:
        """(n) for each column of the table, in which rows it is missing."""
        schema, found = self.model.schema, dict[int, NDArray[np.bool_]]()
        for block, reader in readers:
            unknown = reader.unknown(self.values(block))
            for j, mask in zip(unknown.columns, unknown.missing.T, strict=True) if unknown else ():
                if j < len(schema.names):
                    found[j] = mask
        return found

    def prior(self, fewest: float) -> FloatArray:
        """(n, K) the shares of the classes, each row left out; a class that is left without rows has so many."""
        counts = np.tile(self.model.counts.value, (len(self.labels), 1))
        if self.learned:
            weight = 1.0 if self.sample.weights is None else np.minimum(self.sample.weights, 1.0)
            own = np.arange(len(counts)), self.labels
            counts[own] = np.where(self.alone, fewest, counts[own] - weight)
        shares: FloatArray = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
        return shares

    def _fill(self, block: Block, reader: Reader, out: FloatArray, hidden: frozenset[int] = frozenset()) -> None:
        for at, found in self.parts(block, reader, hidden):
            here = slice(at, at + len(found))
            found[self.alone[here]] = 0.0
            if len(out) == 1:
                out[0, here] = found[:, :, 1] - found[:, :, 0]
            else:
                out[:, here] = found.transpose(2, 0, 1)

    def parts(
        self, block: Block, reader: Reader, hidden: frozenset[int] = frozenset()
    ) -> Iterator[tuple[int, FloatArray]]:
        """(m, pieces, K) the evidence of a block, of as many rows at a time as make no large arrays; from which on."""
        values, sample = self.values(block), self.sample
        rows = Rows(values, hidden=hidden)
        if self.learned:
            # a row of weight 2 is two rows, of which one is left out at a time
            weights = None if sample.weights is None else np.minimum(sample.weights, 1.0)
            rows = Rows(values, self.labels, weights, hidden)
        step = max(1, CELLS // max(1, len(reader.pieces) * len(self.model.classes)))
        for at in range(0, len(self.labels), step):
            yield at, reader.evidence(rows.some(slice(at, at + step)))

    def values(self, block: Block) -> Any:
        """The columns of a block, in the form that its family reads; they must have been learned."""
        levels = block.statistic.levels if isinstance(block.statistic, Counts) else None
        sample, places = self.sample, self.model.schema.places(self.sample.frame)
        values = read(block.plan, sample.frame, places, levels, self.model.missing)
        numbers = np.arange(len(self.labels)) if sample.numbers is None else sample.numbers
        try:
            block.plan.family.check(values)
        except BadCell as bad:
            row = int(numbers[bad.row])
            raise named_cell(bad, block.plan, self.model.schema, places, sample.frame, row) from None
        if self.learned and not self.sure:
            batch = Batch(sample.frame, self.labels, self.model.classes, sample.weights, 0, numbers)
            require_learned(block, values, self.labels, batch)
        return values
