"""Weights: how much each piece of evidence counts, learned from rows that are left out of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from deciban.late import late
from deciban.types import FloatArray, IntArray, Level, Levels

if TYPE_CHECKING:
    from deciban.generative import Generative
    from deciban.sources import Sample
    from deciban.weighing.reader import Piece
    from deciban.weighing.readers import Readers
    from deciban.weighing.unknown_columns import ColumnChanges

# what learns weights is not needed where they are known
left_out = late("deciban.weighing.left_out")
fitting = late("deciban.weighing.candidates")
cross_fitting = late("deciban.weighing.cross_fit")
unknown_columns = late("deciban.weighing.unknown_columns")

EXACT = 1e-12  # of the objective: then the order of the rows does not show


@dataclass(frozen=True)
class UnknownColumns:
    """How the weights change for rows in which columns are unknown; see weighing.unknown_columns.

    The changes of several columns add up; weights never fall below 0. Evidence of an unknown column alone says
    nothing. The bias goes to 0 as ever more of the C columns are unknown: (C − m)/(C − 1) of it is left with m of them.
    """

    names: Levels  # (C)
    informative: tuple[bool, ...]  # (C) whether a missing cell is evidence; then only a value never seen is unknown
    values: FloatArray  # (C, P, K)
    bias: FloatArray  # (C, K)
    fold_values: FloatArray  # (F, C, P, K) by rows that are not in a fold
    fold_bias: FloatArray  # (F, C, K)

    @classmethod
    def none(cls, pieces: int, classes: int) -> UnknownColumns:
        """No column changes anything."""
        empty = np.zeros((0, pieces, classes)), np.zeros((0, classes))
        return cls((), (), *empty, np.zeros((0, *empty[0].shape)), np.zeros((0, *empty[1].shape)))

    @classmethod
    def of(
        cls, changes: Sequence[ColumnChanges], names: Sequence[Level], kept: IntArray, classes: int
    ) -> UnknownColumns:
        """From what was fitted, for some of the pieces."""
        if not changes:
            return cls.none(len(kept), classes)
        folds = max(len(change.folds) for change in changes)
        each = [(change.change, *(change.folds or (change.change,) * folds)) for change in changes]
        values = np.stack([[w.values[kept] for w in several] for several in zip(*each, strict=True)])
        bias = np.stack([[w.bias for w in several] for several in zip(*each, strict=True)])
        informative = tuple(change.informative for change in changes)
        return cls(tuple(names[c.column] for c in changes), informative, values[0], bias[0], values[1:], bias[1:])

    def of_fold(self, fold: int) -> UnknownColumns:
        if fold >= len(self.fold_bias):
            return self
        return replace(self, values=self.fold_values[fold], bias=self.fold_bias[fold])

    def of_pieces(self, kept: Sequence[int]) -> UnknownColumns:
        return replace(self, values=self.values[:, kept], fold_values=self.fold_values[:, :, kept])

    def bias_left(self, unknown: NDArray[np.bool_]) -> FloatArray:
        """(n) the part of the bias that is left, where some of the columns (n, C) are unknown."""
        count, several = unknown.sum(axis=1), len(self.names)
        left: FloatArray = (several - count) / max(1, several - 1)
        return np.where(count > 0, left, 1.0)


@dataclass(frozen=True)
class Weights:
    """w of each piece for each class, and b: log p(c|x) = log p(c) + b_c + Σ_pieces w_pc·evidence_pc, normalised.

    A piece is known by its kind and the names of its columns, a class by its label. So weights outlive changes of what
    they weigh: a piece without one counts nothing, a class without one has the mean of the others. Rows of a fold were
    not seen by the weights of that fold: they judge training rows.
    """

    classes: Levels
    kinds: tuple[str, ...]  # (P)
    columns: tuple[Levels, ...]  # (P) names
    values: FloatArray  # (P, K)
    bias: FloatArray  # (K)
    fold_values: FloatArray  # (F, P, K) of the rows that are not in a fold
    fold_bias: FloatArray  # (F, K)
    prior_share: float  # ε: p = (1 − ε)·softmax(scores) + ε·p(c), for n rows support no more than about log n nats
    shares: dict[str, float]  # how much each candidate is believed: "prior", "naive Bayes", "penalty 30", …
    rows: int  # that were weighed
    unknown: UnknownColumns

    @classmethod
    def none(cls, classes: Levels) -> Weights:
        """Nothing counts but the class prior."""
        k = len(classes)
        empty = np.zeros((0, k)), np.zeros(k), np.zeros((0, 0, k)), np.zeros((0, k))
        unknown = UnknownColumns.none(0, k)
        return cls(classes, (), (), *empty, prior_share=0.0, shares={"prior": 1.0}, rows=0, unknown=unknown)

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
        classes, names = evidence.classes, evidence.schema.all_names
        rows = left_out.LeftOut.of(evidence, sample, seed, learned=learned, sure=sure)
        if len(classes) < 2 or len(rows.labels) < 2:
            return cls.none(classes)
        crossed = cross_fitting.cross_fit(rows, readers)
        gathered, pieces, keys = rows.evidence(readers)
        wide = len(pieces) >= fitting.WIDE
        admitted = rows.admitted(readers)
        paths = fitting.candidate_paths(gathered, pieces, admitted, wide=wide, tol=EXACT, wanted=crossed.shares)
        chosen = {name: weights for path in paths for name, weights in path if name in crossed.shares}
        mean = fitting.mean_weights(list(chosen.values()), [crossed.shares[name] for name in chosen])
        folds = np.stack([fold.values for fold in crossed.folds])
        changes = unknown_columns.column_changes(rows, readers, crossed.shares)
        changed = sum((np.abs(change.change.values) for change in changes), np.zeros_like(mean.values))
        kept = np.flatnonzero((mean.values + changed).any(axis=1) | folds.any(axis=(0, 2)))
        return cls(
            classes,
            tuple(pieces[p].kind for p in kept),
            tuple(tuple(names[j] for j in pieces[p].columns) for p in kept),
            np.ascontiguousarray(mean.values[kept]),
            mean.bias,
            np.ascontiguousarray(folds[:, kept]),
            np.stack([fold.bias for fold in crossed.folds]),
            crossed.prior_share,
            crossed.shares,
            len(keys),
            UnknownColumns.of(changes, names, kept, len(classes)),
        )

    def of_fold(self, fold: int) -> Weights:
        """The weights that rows of a fold had no part in; those of all rows, if none were learned by folds."""
        if fold >= len(self.fold_bias):
            return self
        unknown = self.unknown.of_fold(fold)
        return replace(self, values=self.fold_values[fold], bias=self.fold_bias[fold], unknown=unknown)

    def without(self, gone: Collection[tuple[str, frozenset[Level]]]) -> Weights:
        """Less the weights of pieces (kinds and columns) that are there no more."""
        kept = [p for p, key in enumerate(self.keys) if key not in gone]
        kinds, columns = tuple(self.kinds[p] for p in kept), tuple(self.columns[p] for p in kept)
        values, folds = self.values[kept], self.fold_values[:, kept]
        unknown = self.unknown.of_pieces(kept)
        return replace(self, kinds=kinds, columns=columns, values=values, fold_values=folds, unknown=unknown)

    def of(self, pieces: Sequence[Piece], names: Sequence[Level], classes: Levels) -> FloatArray:
        """(pieces, K) the weights of some pieces for some classes."""
        return self._of(self.values, pieces, names, classes)

    def changes_of(self, pieces: Sequence[Piece], names: Sequence[Level], classes: Levels) -> FloatArray:
        """(C, pieces, K) how they change for each column that may be unknown."""
        return self._of(self.unknown.values, pieces, names, classes)

    def _of(self, values: FloatArray, pieces: Sequence[Piece], names: Sequence[Level], classes: Levels) -> FloatArray:
        place = {key: p for p, key in enumerate(self.keys)}
        keys = [(piece.kind, frozenset(names[j] for j in piece.columns)) for piece in pieces]
        there = [i for i, key in enumerate(keys) if key in place]
        found = np.zeros((*values.shape[:-2], len(pieces), len(classes)))
        found[..., there, :] = with_mean(values)[..., [place[keys[i]] for i in there], :][..., self._classes(classes)]
        return found

    def bias_of(self, classes: Levels) -> FloatArray:
        """(K) b of some classes."""
        return np.append(self.bias, 0.0)[self._classes(classes)]

    def bias_changes_of(self, classes: Levels) -> FloatArray:
        """(C, K) how b changes for each column that may be unknown."""
        bias = self.unknown.bias
        return np.hstack([bias, np.zeros((len(bias), 1))])[:, self._classes(classes)]

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
        share = np.stack([_shares(classes, rows, mine, theirs) for rows in (mine, theirs)])
        values, bias = _mean_of((self, other), place, classes, share)
        several = range(max(len(self.fold_bias), len(other.fold_bias)))
        folds = [_mean_of((self.of_fold(f), other.of_fold(f)), place, classes, share) for f in several]
        sizes = [sum(rows.values()) for rows in (mine, theirs)]
        of_all = [size / sum(sizes) if sum(sizes) else 0.5 for size in sizes]
        shares = dict[str, float]()
        for weights, part in zip((self, other), of_all, strict=True):
            for name, believed in weights.shares.items():
                shares[name] = shares.get(name, 0.0) + part * believed
        return Weights(
            classes,
            tuple(kind for kind, _ in keys),
            tuple(names[key] for key in keys),
            values,
            bias,
            np.stack([v for v, _ in folds]) if folds else np.zeros((0, *values.shape)),
            np.stack([b for _, b in folds]) if folds else np.zeros((0, *bias.shape)),
            of_all[0] * self.prior_share + of_all[1] * other.prior_share,
            {name: min(believed, 1.0) for name, believed in shares.items()},
            self.rows + other.rows,
            _merged_unknown((self, other), place, classes, share),
        )


def _mean_of(
    both: tuple[Weights, Weights], place: Mapping[tuple[str, frozenset[Level]], int], classes: Levels, share: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """(P, K) and (K) the mean of the weights of two models."""
    values, bias = np.zeros((2, len(place), len(classes))), np.zeros((2, len(classes)))
    for i, weights in enumerate(both):
        at, of = [place[key] for key in weights.keys], weights._classes(classes)
        values[i, at] = with_mean(weights.values)[:, of]
        bias[i] = weights.bias_of(classes)
    return _mean(values, share[:, np.newaxis]), _mean(bias, share)


def _merged_unknown(
    both: tuple[Weights, Weights], place: Mapping[tuple[str, frozenset[Level]], int], classes: Levels, share: FloatArray
) -> UnknownColumns:
    """The mean of the changes of two models; a column that one lacks changes nothing there."""
    names = tuple(dict.fromkeys((*both[0].unknown.names, *both[1].unknown.names)))
    flags = [dict(zip(weights.unknown.names, weights.unknown.informative, strict=True)) for weights in both]

    def mean(unknowns: Sequence[UnknownColumns]) -> tuple[FloatArray, FloatArray]:
        values, bias = np.zeros((2, len(names), len(place), len(classes))), np.zeros((2, len(names), len(classes)))
        for i, (weights, unknown) in enumerate(zip(both, unknowns, strict=True)):
            at, of = [place[key] for key in weights.keys], weights._classes(classes)
            rows = [names.index(name) for name in unknown.names]
            values[i][np.ix_(rows, at)] = with_mean(unknown.values)[..., of]
            bias[i, rows] = np.hstack([unknown.bias, np.zeros((len(rows), 1))])[:, of]
        return _mean(values, share[:, np.newaxis, np.newaxis]), _mean(bias, share[:, np.newaxis])

    values, bias = mean([w.unknown for w in both])
    several = range(max(len(w.unknown.fold_bias) for w in both))
    folds = [mean([w.unknown.of_fold(f) for w in both]) for f in several]
    fold_values = np.stack([v for v, _ in folds]) if folds else np.zeros((0, *values.shape))
    fold_bias = np.stack([b for _, b in folds]) if folds else np.zeros((0, *bias.shape))
    return UnknownColumns(
        names, tuple(any(of.get(n) for of in flags) for n in names), values, bias, fold_values, fold_bias
    )


def with_mean(values: FloatArray) -> FloatArray:
    """(…, P, K + 1) weights, and their means over the classes: those of classes that were never weighed."""
    some = values.shape[-1] > 0
    mean = values.mean(axis=-1, keepdims=True) if some else np.zeros((*values.shape[:-1], 1))
    return np.concatenate([values, mean], axis=-1)


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
