"""Weights: how much each piece of evidence counts, learned from rows that are left out of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from deciban.late import late
from deciban.types import FloatArray, Level, Levels

if TYPE_CHECKING:
    from deciban.generative import Generative
    from deciban.sources import Sample
    from deciban.weighing.objective import Evidence
    from deciban.weighing.reader import Piece
    from deciban.weighing.readers import Readers

# what learns weights is not needed where they are known
sampling = late("deciban.sources.sampling")
left_out = late("deciban.weighing.left_out")
penalties = late("deciban.weighing.penalty")
solving = late("deciban.weighing.solve")

TRIED = 3000  # rows that the penalty is chosen by
EXACT = 1e-12  # of the objective: then the order of the rows does not show
TELLS = 1.0  # nats, over all rows, that a piece must tell by itself to be weighed at all
WEIGHED = 512  # pieces, at most: of more, those that tell most


@dataclass(frozen=True)
class Weights:
    """w of each piece for each class, and b: log p(c|x) = log p(c) + b_c + Σ_pieces w_pc·evidence_pc, normalised.

    A piece is known by its kind and the names of its columns, a class by its label. So weights outlive changes of what
    they weigh: a piece without one counts nothing, a class without one has the mean of the others.
    """

    classes: Levels
    kinds: tuple[str, ...]  # (P)
    columns: tuple[Levels, ...]  # (P) names
    values: FloatArray  # (P, K)
    bias: FloatArray  # (K)
    penalty: float  # the one chosen
    rows: int  # that were weighed
    parts: tuple[Levels, ...] = ()  # columns and pairs
    decibans: FloatArray = field(default_factory=lambda: np.zeros(0))  # that each contributes in the mean

    @classmethod
    def none(cls, classes: Levels) -> Weights:
        """Nothing counts but the class prior."""
        return cls(classes, (), (), np.zeros((0, len(classes))), np.zeros(len(classes)), 0.0, 0)

    @classmethod
    def learned(
        cls,
        evidence: Generative,
        readers: Readers,
        sample: Sample,
        seed: int,
        *,
        learned: bool = True,
        sure: bool = False,
    ) -> Weights:
        """From rows that were learned (for sure, or so it is said), each left out in its turn; or from new ones."""
        classes, names = evidence.classes, evidence.schema.names
        rows = left_out.LeftOut.of(evidence, sample, seed, learned=learned, sure=sure)
        if len(classes) < 2 or len(rows.labels) < 2:
            return cls.none(classes)
        gathered, pieces, keys = rows.evidence(readers)
        tells = np.where(_repeated(gathered), 0.0, _tells(gathered))
        best = np.argsort(-tells, kind="stable")[:WEIGHED]
        telling = np.sort(best[tells[best] > TELLS])
        pieces = [pieces[p] for p in telling]
        groups = {kind: i for i, kind in enumerate(sorted({piece.kind for piece in pieces}))}
        chosen = replace(
            gathered,
            values=np.ascontiguousarray(gathered.values[:, :, telling]),
            groups=np.array([groups[piece.kind] for piece in pieces], np.intp),
        )
        few, weights = sampling.few_of(keys, chosen.labels, chosen.weights, TRIED)
        tried = chosen if len(few) == len(keys) else replace(chosen.take(few), weights=weights)
        penalty, rough, _ = penalties.choose_penalty(tried)
        found = solving.solve(chosen, penalty, rough, tol=EXACT)
        two = len(classes) == 2
        values = np.repeat(found.weights, 2, axis=1) if two else found.weights
        bias = np.array([-0.5, 0.5]) * found.bias[0] if two else found.bias
        columns = tuple(tuple(names[j] for j in piece.columns) for piece in pieces)
        return cls(
            classes,
            tuple(p.kind for p in pieces),
            columns,
            np.ascontiguousarray(values),
            bias,
            penalty,
            len(keys),
        )

    def without(self, gone: Collection[tuple[str, frozenset[Level]]]) -> Weights:
        """Less the weights of pieces (kinds and columns) that are there no more."""
        kept = [p for p, key in enumerate(self.keys) if key not in gone]
        kinds, columns = tuple(self.kinds[p] for p in kept), tuple(self.columns[p] for p in kept)
        told = [i for i, part in enumerate(self.parts) if ("pair", frozenset(part)) not in gone]
        parts, decibans = tuple(self.parts[i] for i in told), self.decibans[told]
        return replace(self, kinds=kinds, columns=columns, values=self.values[kept], parts=parts, decibans=decibans)

    def of(self, pieces: Sequence[Piece], names: Sequence[Level], classes: Levels) -> FloatArray:
        """(pieces, K) the weights of some pieces for some classes."""
        place = {key: p for p, key in enumerate(self.keys)}
        values = self._with_mean
        found = np.zeros((len(pieces), len(classes)))
        for i, piece in enumerate(pieces):
            p = place.get((piece.kind, frozenset(names[j] for j in piece.columns)))
            if p is not None:
                found[i] = values[p, self._classes(classes)]
        return found

    def bias_of(self, classes: Levels) -> FloatArray:
        """(K) b of some classes."""
        return np.append(self.bias, 0.0)[self._classes(classes)]

    @property
    def _with_mean(self) -> FloatArray:
        """(P, K + 1) the weights, and their means: those of classes that were never weighed."""
        mean = self.values.mean(axis=1, keepdims=True) if len(self.classes) else np.zeros((len(self.values), 1))
        return np.hstack([self.values, mean])

    @property
    def keys(self) -> list[tuple[str, frozenset[Level]]]:
        return [(kind, frozenset(names)) for kind, names in zip(self.kinds, self.columns, strict=True)]

    def _classes(self, classes: Levels) -> list[int]:
        place: Mapping[Level, int] = {label: k for k, label in enumerate(self.classes)}
        return [place.get(label, len(place)) for label in classes]

    def merged(self, other: Weights, mine: Mapping[Level, float], theirs: Mapping[Level, float]) -> Weights:
        """Of each class the mean of both, by the rows that each model had of it; a piece that one lacks is 0 there."""
        classes = tuple(dict.fromkeys((*self.classes, *other.classes)))
        keys = list(dict.fromkeys((*self.keys, *other.keys)))
        place = {key: p for p, key in enumerate(keys)}
        names = {**dict(zip(other.keys, other.columns, strict=True)), **dict(zip(self.keys, self.columns, strict=True))}
        values, bias = np.zeros((2, len(keys), len(classes))), np.zeros((2, len(classes)))
        share = np.stack([_shares(classes, rows, mine, theirs) for rows in (mine, theirs)])
        for i, weights in enumerate((self, other)):
            at, of = [place[key] for key in weights.keys], weights._classes(classes)
            values[i, at] = weights._with_mean[:, of]
            bias[i] = weights.bias_of(classes)
        kinds = tuple(kind for kind, _ in keys)
        larger = self if self.rows >= other.rows else other
        columns = tuple(names[key] for key in keys)
        told: dict[Levels, float] = {}
        for weights, rows in ((self, mine), (other, theirs)):
            of_all = sum(rows.values()) / max(sum(mine.values()) + sum(theirs.values()), 1e-300)
            for part, decibans in zip(weights.parts, weights.decibans.tolist(), strict=True):
                told[part] = told.get(part, 0.0) + of_all * decibans
        return Weights(
            classes,
            kinds,
            columns,
            _mean(values, share[:, np.newaxis]),
            _mean(bias, share),
            larger.penalty,
            self.rows + other.rows,
            tuple(told),
            np.array([*told.values()]),
        )


def _shares(
    classes: Levels, rows: Mapping[Level, float], mine: Mapping[Level, float], theirs: Mapping[Level, float]
) -> FloatArray:
    """(K) what part of the rows of each class one of two models has; of a class without rows, half."""
    total = np.array([mine.get(label, 0.0) + theirs.get(label, 0.0) for label in classes])
    part = np.array([rows.get(label, 0.0) for label in classes])
    share: FloatArray = np.divide(part, total, out=np.full(len(total), 0.5), where=total > 0)
    return share


def _mean(both: FloatArray, share: FloatArray) -> FloatArray:
    """Σ share·value over two models, in either order; of equal values the value itself, and not one near it."""
    mean: FloatArray = np.where(both[0] == both[1], both[0], (share * both).sum(axis=0))
    return mean


def _repeated(evidence: Evidence) -> NDArray[np.bool_]:
    """(P) whether a piece says of all rows what an earlier one says: that of a column that is there twice, say."""
    known, found = set[bytes](), np.zeros(evidence.values.shape[2], np.bool_)
    for p in range(len(found)):
        mark = blake2b(evidence.values[:, :, p].tobytes()).digest()
        found[p] = mark in known
        known.add(mark)
    return found


def _tells(evidence: Evidence) -> FloatArray:
    """(P) what each piece would add to Σ log p(c_i|x_i), alone and with its best weight, in the second order; nats."""
    columns, rows, pieces = evidence.values.shape
    z = evidence.offset
    p = 1 / (1 + np.exp(-z)) if columns == 1 else np.exp(z)
    truth = (evidence.labels == 1)[:, np.newaxis] if columns == 1 else np.eye(columns)[evidence.labels]
    omega = np.ones(rows) if evidence.weights is None else evidence.weights
    slope, curve, mean = np.zeros(pieces), np.zeros(pieces), np.zeros((rows, pieces))
    for c in range(columns):
        e = evidence.values[c]
        slope += (omega * (truth[:, c] - p[:, c])) @ e
        curve += (omega * p[:, c]) @ (e * e)
        mean += p[:, [c]] * e
    curve -= omega @ (mean * mean)
    return np.where(slope > 0, slope**2 / (2 * np.maximum(curve, 1e-300)), 0.0)
