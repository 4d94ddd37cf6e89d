"""Weights: how much each piece of evidence counts, learned from rows that are left out of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from deciban.errors import BadCell, DecibanError, NegativeEvidence
from deciban.families import Binned, Categorical, Context, Gaussian, Multinomial
from deciban.families.celled import Pairs
from deciban.families.forest import Forest
from deciban.families.normals import Normals
from deciban.generative import Block, Generative, named_cell
from deciban.plans import read
from deciban.sources import Sample
from deciban.sources.sampling import lowest, row_keys
from deciban.statistics import Counts, Histogram
from deciban.types import FloatArray, Labels, Level, Levels
from deciban.weighing.densities import Jointly, Normal, Words
from deciban.weighing.reader import Piece, Reader, Rows
from deciban.weighing.solve import Evidence, choose_penalty, solve
from deciban.weighing.tables import Leaves, Paired, Present, Scales, Values

CELLS = 1 << 22  # of evidence, that are made at a time
MOST_CELLS = 1 << 25  # of evidence, that are weighed: 256 MB; beyond, of fewer rows
TRIED = 3000  # rows that the penalty is chosen by
EXACT = 1e-12  # of the objective: then the order of the rows does not show
TELLS = 1.0  # nats, over all rows, that a piece must tell by itself to be weighed at all


Readers = tuple[tuple[Block, Reader], ...]


def readers_of(evidence: Generative) -> Readers:
    """Every block with what reads it."""
    return tuple((block, _reader(evidence, block)) for block in evidence.blocks)


def _reader(evidence: Generative, block: Block) -> Reader:
    """What makes pieces of evidence from a block."""
    family, columns = block.plan.family, block.plan.columns
    statistic = block.statistic
    prior = evidence.counts.value / evidence.counts.value.sum()
    context = Context(evidence.classes, tuple(evidence.schema.names[j] for j in columns))
    if block.plan.presence:
        return Present(columns, statistic, prior)  # type: ignore[arg-type]
    match family:
        case Categorical():
            return Values(columns, statistic, prior)  # type: ignore[arg-type]
        case Binned():
            return Scales(columns, statistic, prior)  # type: ignore[arg-type]
        case Gaussian():
            return Normal(columns, statistic, *_ranges(evidence, columns))  # type: ignore[arg-type]
        case Normals():
            return Jointly(columns, family, statistic, family.estimate(statistic, context))  # type: ignore[arg-type]
        case Pairs():
            return Paired(columns, family, statistic, prior)  # type: ignore[arg-type]
        case Forest():
            return Leaves(columns, family, statistic, prior)  # type: ignore[arg-type]
        case Multinomial():
            return Words(columns, family, statistic, context)  # type: ignore[arg-type]
    raise DecibanError(f"no evidence is weighed of a {type(family).__name__}")


def _ranges(evidence: Generative, columns: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
    """The lowest and the highest number of each column that was seen."""
    low, high = np.full(len(columns), -np.inf), np.full(len(columns), np.inf)
    place = {j: i for i, j in enumerate(columns)}
    for block in evidence.blocks:
        if isinstance(block.statistic, Histogram):
            for i, j in enumerate(block.plan.columns):
                if j in place and len(block.statistic.keys[i]):
                    low[place[j]], high[place[j]] = block.statistic.lower(i)[0], block.statistic.upper(i)[-1]
    return low, high


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
        cls, evidence: Generative, readers: Readers, sample: Sample, seed: int, *, left_out: bool = True
    ) -> Weights:
        """From rows that were learned, each left out in its turn; or from new ones."""
        classes, names = evidence.classes, evidence.schema.names
        rows = LeftOut.of(evidence, sample, seed, learned=left_out)
        if len(classes) < 2 or len(rows.labels) < 2:
            return cls.none(classes)
        gathered, pieces, keys = rows.evidence(readers)
        telling = np.flatnonzero((_tells(gathered) > TELLS) & ~_repeated(gathered))
        pieces = [pieces[p] for p in telling]
        groups = {kind: i for i, kind in enumerate(sorted({piece.kind for piece in pieces}))}
        chosen = replace(
            gathered,
            values=np.ascontiguousarray(gathered.values[:, :, telling]),
            groups=np.array([groups[piece.kind] for piece in pieces], np.intp),
        )
        order = lowest(keys, TRIED)
        penalty, rough, _ = choose_penalty(chosen if len(order) == len(keys) else chosen.take(order))
        found = solve(chosen, penalty, rough, tol=EXACT)
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
            len(rows.labels),
        )

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
        names = {**dict(zip(other.keys, other.columns, strict=True)), **dict(zip(self.keys, self.columns, strict=True))}
        values, bias = np.zeros((len(keys), len(classes))), np.zeros(len(classes))
        for weights, rows in ((self, mine), (other, theirs)):
            share = _shares(classes, rows, mine, theirs)
            at, of = [keys.index(key) for key in weights.keys], weights._classes(classes)
            values[at] += share * weights._with_mean[:, of]
            bias += share * weights.bias_of(classes)
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
            values,
            bias,
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

    @classmethod
    def of(cls, model: Generative, sample: Sample, seed: int, *, learned: bool = True) -> LeftOut:
        """The rows that weigh something, of classes that are known."""
        labels = places_of(model.classes, sample)
        weight = np.ones(len(labels)) if sample.weights is None else sample.weights
        there = (labels >= 0) & (weight > 0)
        if learned and (weight[~there] > 0).any():
            raise NegativeEvidence(
                "some rows are of a class that was never learned: these must be rows that the model has learned; to "
                "weigh evidence by others use reweigh(X, y, learned=False)"
            )
        rows = np.flatnonzero(there)
        taken = sample if len(rows) == len(labels) else sample.take(rows)
        labels, weight = labels[rows], weight[rows]
        alone = (model.counts.value[labels] - np.minimum(weight, 1.0) <= 1e-9) & learned
        keys = row_keys(taken.frame, model.schema.places(taken.frame), seed)
        return cls(model, taken, labels, alone, keys, learned)

    def evidence(self, readers: Readers) -> tuple[Evidence, list[Piece], NDArray[np.uint64]]:
        """What every piece says of every row, and the keys of these. Of too many, of those with the lowest keys."""
        classes = len(self.model.classes)
        columns = 1 if classes == 2 else classes
        pieces = [piece for _, reader in readers for piece in reader.pieces]
        most = max(1, MOST_CELLS // max(1, columns * len(pieces)))
        rows = lowest(self.keys, most)
        values = np.empty((columns, len(rows), len(pieces)))
        at = 0
        for block, reader in readers:
            if reader.pieces:
                self._fill(block, reader, rows, values[:, :, at : at + len(reader.pieces)])
            at += len(reader.pieces)
        log_prior = np.log(self.model.counts.value / self.model.counts.value.sum())
        offset = np.broadcast_to(log_prior[1] - log_prior[0] if columns == 1 else log_prior, (len(rows), columns))
        weights = None if self.sample.weights is None else self.sample.weights[rows]
        groups = np.zeros(len(pieces), np.intp)
        return (
            Evidence(values, np.ascontiguousarray(offset), self.labels[rows], weights, groups),
            pieces,
            self.keys[rows],
        )

    def _fill(self, block: Block, reader: Reader, rows: NDArray[np.intp], out: FloatArray) -> None:
        for at, part in self.parts(block, reader, rows):
            found = reader.evidence(part)
            here = slice(at, at + len(found))
            found[self.alone[rows[here]]] = 0.0
            if len(out) == 1:
                out[0, here] = found[:, :, 1] - found[:, :, 0]
            else:
                out[:, here] = found.transpose(2, 0, 1)

    def parts(self, block: Block, reader: Reader, rows: NDArray[np.intp]) -> Iterator[tuple[int, Rows]]:
        """The rows as a block reads them, as many at a time as make no large arrays."""
        levels = block.statistic.levels if isinstance(block.statistic, Counts) else None
        places = self.model.schema.places(self.sample.frame)
        sample = self.sample if len(rows) == self.sample.frame.rows else self.sample.take(rows)
        values = read(block.plan, sample.frame, places, levels, self.model.missing)
        try:
            block.plan.family.check(values)
        except BadCell as bad:
            row = bad.row if sample.numbers is None else int(sample.numbers[bad.row])
            raise named_cell(bad, block.plan, self.model.schema, places, sample.frame, row) from None
        labels = self.labels[rows] if self.learned else None
        half = (self.keys[rows] & np.uint64(1)).astype(np.bool_)
        # a row of weight 2 is two rows, of which one is left out at a time
        weights = None if sample.weights is None or not self.learned else np.minimum(sample.weights, 1.0)
        whole = Rows(values, labels, weights, half)
        if self.learned:
            reader.prepare(replace(whole, weights=sample.weights))
        step = max(1, CELLS // max(1, len(reader.pieces) * len(self.model.classes)))
        for at in range(0, len(rows), step):
            yield at, whole.some(slice(at, at + step))


def _repeated(evidence: Evidence) -> NDArray[np.bool_]:
    """(P) whether a piece says of all rows what an earlier one says: that of a column that is there twice, say."""
    _, rows, pieces = evidence.values.shape
    found, known = np.zeros(pieces, np.bool_), dict[bytes, list[int]]()
    few = evidence.values[:, : min(rows, 16)]
    for p in range(pieces):
        alike = known.setdefault(few[:, :, p].tobytes(), [])
        found[p] = any(np.array_equal(evidence.values[:, :, p], evidence.values[:, :, q]) for q in alike)
        if not found[p]:
            alike.append(p)
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
