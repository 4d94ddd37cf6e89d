"""Weights of the pieces of evidence, fitted to leave-one-out evidence."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from deciban.data.class_index import ClassIndex
from deciban.errors import require
from deciban.lazy import lazy
from deciban.statistics.statistic import require_numbers
from deciban.types import BoolArray, FloatArray, IntArray, Level, Levels

if TYPE_CHECKING:
    from deciban.evidence.block_evidence import EvidencePiece
    from deciban.evidence.evidence_by_block import EvidenceByBlock
    from deciban.evidence.evidence_rows import EvidenceRows
    from deciban.evidence.unknown_columns import ColumnChanges

# needed to fit weights only
fitting = lazy("deciban.evidence.candidates")
cross_fitting = lazy("deciban.evidence.cross_fit")
unknown_columns = lazy("deciban.evidence.unknown_columns")
folding = lazy("deciban.evidence.folds")

EXACT = 1e-9  # tol of the fits


@dataclass(frozen=True)
class UnknownColumns:
    """How the weights change for rows in which features are unknown; see `unknown_columns`.

    The changes of several features add up; weights never fall below 0. An unknown feature alone is no evidence. The
    bias goes to 0 as more of the C features are unknown: (C − m)/(C − 1) of it remains with m of them.
    """

    names: Levels  # (C)
    informative: tuple[bool, ...]  # (C) whether a missing value is evidence; then only an unseen value is unknown
    values: FloatArray  # (C, P, K)
    bias: FloatArray  # (C, K)
    fold_values: FloatArray  # (F, C, P, K) fitted to the other folds
    fold_bias: FloatArray  # (F, C, K)

    def check_fields(self) -> None:
        values, bias, folds = self.values, self.bias, len(self.fold_bias)
        unique = len(set(self.names)) == len(self.names) == len(self.informative)
        require(unique, "a column that may be unknown is repeated")
        require(values.ndim == 3 and bias.ndim == 2, "changes of weights have the wrong shape")
        require_numbers("changes", values, (len(self.names), *values.shape[1:]))
        require_numbers("changes of the bias", bias, (len(self.names), values.shape[2]))
        require(folds in (0, folding.FOLDS), f"changes of weights for {folds} folds")
        require_numbers("changes by folds", self.fold_values, (folds, *values.shape))
        require_numbers("changes of the bias by folds", self.fold_bias, (folds, *bias.shape))

    @classmethod
    def none(cls, pieces: int, classes: int) -> UnknownColumns:
        """No feature changes anything."""
        empty = np.zeros((0, pieces, classes)), np.zeros((0, classes))
        return cls((), (), *empty, np.zeros((0, *empty[0].shape)), np.zeros((0, *empty[1].shape)))

    @classmethod
    def of(cls, changes: list[ColumnChanges], names: Sequence[Level], kept: IntArray, classes: int) -> UnknownColumns:
        """From fitted changes, for the pieces in `kept`."""
        if not changes:
            return cls.none(len(kept), classes)
        folds = max(len(change.folds) for change in changes)
        by_column = [(change.change, *(change.folds or (change.change,) * folds)) for change in changes]
        by_fold = list(zip(*by_column, strict=True))  # fitted to all rows, then without each fold
        values = np.stack([[w.values[kept] for w in fold] for fold in by_fold])
        bias = np.stack([[w.bias for w in fold] for fold in by_fold])
        informative = tuple(change.informative for change in changes)
        return cls(tuple(names[c.column] for c in changes), informative, values[0], bias[0], values[1:], bias[1:])

    def of_fold(self, fold: int) -> UnknownColumns:
        if fold >= len(self.fold_bias):
            return self
        return replace(self, values=self.fold_values[fold], bias=self.fold_bias[fold])

    def of_pieces(self, kept: Sequence[int]) -> UnknownColumns:
        return replace(self, values=self.values[:, kept], fold_values=self.fold_values[:, :, kept])

    def bias_share(self, unknown: BoolArray) -> FloatArray:
        """(n) the share of the bias that remains, where features (n, C) are unknown."""
        count, total = unknown.sum(axis=1), len(self.names)
        share: FloatArray = (total - count) / max(1, total - 1)
        return np.where(count > 0, share, 1.0)


@dataclass(frozen=True)
class Weights:
    """w of each piece for each class, and b: log p(c|x) = log p(c) + b_c + Σ_pieces w_pc·evidence_pc, normalised.

    A piece is identified by its kind and the names of its features, a class by its label. So weights outlive changes
    of the evidence: a piece without a weight does not count, a class without one has the mean of the others. Training
    rows are scored by the weights of their fold, which are fitted to the other folds.
    """

    classes: Levels
    kinds: tuple[str, ...]  # (P)
    columns: tuple[Levels, ...]  # (P) names
    values: FloatArray  # (P, K)
    bias: FloatArray  # (K)
    fold_values: FloatArray  # (F, P, K) fitted to the other folds
    fold_bias: FloatArray  # (F, K)
    prior_share: float  # ε: p = (1 − ε)·softmax(scores) + ε·p(c), for n rows support no more than about log n nats
    shares: dict[str, float]  # of each candidate in the mean: "prior", "naive Bayes", "penalty 30", …
    rows: int  # that weights were fitted to
    unknown: UnknownColumns

    def check_fields(self) -> None:
        pieces, classes, folds = len(self.kinds), len(self.classes), len(self.fold_bias)
        require(self.unknown.values.shape[1:] == (pieces, classes), "changes do not match the weights")
        require(len(set(self.classes)) == classes, "a class is repeated")
        require(0 <= self.prior_share <= 1, f"the share of the prior is {self.prior_share}")
        require(all(0 <= share <= 1 for share in self.shares.values()), "a share of a candidate is not from 0 to 1")
        require(folds in (0, folding.FOLDS), f"weights of {folds} folds")
        require(pieces == len(self.columns) == len(self.values), f"{len(self.values)} weights of {pieces} pieces")
        require_numbers("fold_values", self.fold_values, (folds, pieces, classes))
        require_numbers("fold_bias", self.fold_bias, (folds, classes))
        require_numbers("weights", self.values, (pieces, classes))
        require_numbers("bias", self.bias, (classes,))
        require((self.fold_values >= 0).all() and (self.values >= 0).all(), "a weight is below 0")

    @classmethod
    def none(cls, classes: Levels) -> Weights:
        """No weights: only the class prior counts."""
        k = len(classes)
        empty = np.zeros((0, k)), np.zeros(k), np.zeros((0, 0, k)), np.zeros((0, k))
        unknown = UnknownColumns.none(0, k)
        return cls(classes, (), (), *empty, prior_share=0.0, shares={"prior": 1.0}, rows=0, unknown=unknown)

    @classmethod
    def fit(cls, rows: EvidenceRows, sources: EvidenceByBlock) -> Weights:
        """The mean of the candidates that cross-fitting prefers, fitted to all of the rows."""
        classes, names = rows.model.classes, rows.model.schema.all_names
        if len(classes) < 2 or len(rows.labels) < 2:
            return cls.none(classes)
        crossed = cross_fitting.cross_fit(rows, sources)
        evidence, pieces, keys = rows.evidence(sources)
        wide, selected = len(pieces) >= fitting.WIDE, rows.selected(sources)
        settings = {"wide": wide, "tol": EXACT, "names": crossed.shares, "start": crossed.start}
        paths = fitting.candidate_paths(evidence, pieces, selected, **settings)
        chosen = {name: weights for path in paths for name, weights in path if name in crossed.shares}
        mean = fitting.mean_weights(list(chosen.values()), [crossed.shares[name] for name in chosen])
        folds = np.stack([fold.values for fold in crossed.folds])
        changes = unknown_columns.column_changes(rows, sources, crossed.shares, chosen)
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
        """The weights fitted to the other folds; those of all rows, if there are none by folds."""
        if fold >= len(self.fold_bias):
            return self
        unknown = self.unknown.of_fold(fold)
        return replace(self, values=self.fold_values[fold], bias=self.fold_bias[fold], unknown=unknown)

    def drop_pieces(self, dropped: Collection[tuple[str, frozenset[Level]]]) -> Weights:
        kept = [p for p, key in enumerate(self.keys) if key not in dropped]
        kinds, columns = tuple(self.kinds[p] for p in kept), tuple(self.columns[p] for p in kept)
        values, folds = self.values[kept], self.fold_values[:, kept]
        unknown = self.unknown.of_pieces(kept)
        return replace(self, kinds=kinds, columns=columns, values=values, fold_values=folds, unknown=unknown)

    def of(self, pieces: Sequence[EvidencePiece], names: Sequence[Level], classes: Levels) -> FloatArray:
        """(pieces, K) the weights of these pieces for these classes."""
        return self._of(self.values, pieces, names, classes)

    def changes_of(self, pieces: Sequence[EvidencePiece], names: Sequence[Level], classes: Levels) -> FloatArray:
        """(C, pieces, K) their changes for each feature that may be unknown."""
        return self._of(self.unknown.values, pieces, names, classes)

    def _of(
        self, values: FloatArray, pieces: Sequence[EvidencePiece], names: Sequence[Level], classes: Levels
    ) -> FloatArray:
        index = {key: p for p, key in enumerate(self.keys)}
        keys = [(piece.kind, frozenset(names[j] for j in piece.columns)) for piece in pieces]
        known = [i for i, key in enumerate(keys) if key in index]
        out = np.zeros((*values.shape[:-2], len(pieces), len(classes)))
        out[..., known, :] = with_mean(values)[..., [index[keys[i]] for i in known], :][..., self._classes(classes)]
        return out

    def bias_of(self, classes: Levels) -> FloatArray:
        """(K) b of these classes."""
        return _with_zero(self.bias)[self._classes(classes)]

    def bias_changes_of(self, classes: Levels) -> FloatArray:
        """(C, K) the changes of b for each feature that may be unknown."""
        return _with_zero(self.unknown.bias)[:, self._classes(classes)]

    @property
    def keys(self) -> list[tuple[str, frozenset[Level]]]:
        return [(kind, frozenset(names)) for kind, names in zip(self.kinds, self.columns, strict=True)]

    def _classes(self, classes: Levels) -> IntArray:
        """The positions of classes; −1, the position of the mean, for a class without weights."""
        return ClassIndex(self.classes).positions(classes)

    def merged(self, other: Weights, own_rows: Mapping[Level, float], other_rows: Mapping[Level, float]) -> Weights:
        """For each class the mean of both, by its rows in each model; a piece that one lacks has weight 0 there."""
        rows_of_both = own_rows, other_rows
        classes = tuple(dict.fromkeys((*self.classes, *other.classes)))
        keys = list(dict.fromkeys((*self.keys, *other.keys)))
        index = {key: p for p, key in enumerate(keys)}
        names = {**dict(zip(other.keys, other.columns, strict=True)), **dict(zip(self.keys, self.columns, strict=True))}
        share = np.stack([_shares(classes, rows, *rows_of_both) for rows in rows_of_both])
        n_folds = max(len(self.fold_bias), len(other.fold_bias))
        values, bias = np.zeros((2, 1 + n_folds, len(index), len(classes))), np.zeros((2, 1 + n_folds, len(classes)))
        for i, weights in enumerate((self, other)):
            pieces, columns = [index[key] for key in weights.keys], weights._classes(classes)
            values[i][:, pieces] = with_mean(_with_folds(weights.values, weights.fold_values, n_folds))[..., columns]
            bias[i] = _with_zero(_with_folds(weights.bias, weights.fold_bias, n_folds))[:, columns]
        values, bias = _mean(values, share[:, np.newaxis, np.newaxis]), _mean(bias, share[:, np.newaxis])
        sizes = [sum(rows.values()) for rows in rows_of_both]
        of_all = [size / sum(sizes) if sum(sizes) else 0.5 for size in sizes]
        shares = dict[str, float]()
        for weights, factor in zip((self, other), of_all, strict=True):
            for name, candidate_share in weights.shares.items():
                shares[name] = shares.get(name, 0.0) + factor * candidate_share
        return Weights(
            classes,
            tuple(kind for kind, _ in keys),
            tuple(names[key] for key in keys),
            values[0],
            bias[0],
            values[1:],
            bias[1:],
            of_all[0] * self.prior_share + of_all[1] * other.prior_share,
            {name: min(total, 1.0) for name, total in shares.items()},
            self.rows + other.rows,
            _merged_unknown((self, other), index, classes, share),
        )


def _merged_unknown(
    both: tuple[Weights, Weights], index: Mapping[tuple[str, frozenset[Level]], int], classes: Levels, share: FloatArray
) -> UnknownColumns:
    """The mean of the changes of two models; a feature that one lacks changes nothing there."""
    names = tuple(dict.fromkeys((*both[0].unknown.names, *both[1].unknown.names)))
    flags = [dict(zip(weights.unknown.names, weights.unknown.informative, strict=True)) for weights in both]
    n_folds = max(len(weights.unknown.fold_bias) for weights in both)
    values = np.zeros((2, 1 + n_folds, len(names), len(index), len(classes)))
    bias = np.zeros((2, 1 + n_folds, len(names), len(classes)))
    for i, weights in enumerate(both):
        unknown, columns = weights.unknown, weights._classes(classes)
        rows, pieces = [names.index(name) for name in unknown.names], [index[key] for key in weights.keys]
        changes = with_mean(_with_folds(unknown.values, unknown.fold_values, n_folds))[..., columns]
        values[i][np.ix_(range(1 + n_folds), rows, pieces)] = changes
        bias[i][:, rows] = _with_zero(_with_folds(unknown.bias, unknown.fold_bias, n_folds))[..., columns]
    share = share[:, np.newaxis, np.newaxis]
    values, bias = _mean(values, share[:, np.newaxis]), _mean(bias, share)
    informative = tuple(any(model.get(name) for model in flags) for name in names)
    return UnknownColumns(names, informative, values[0], bias[0], values[1:], bias[1:])


def _with_folds(values: FloatArray, fold_values: FloatArray, folds: int) -> FloatArray:
    """(1 + folds, …) weights fitted to all rows, then to the other folds; without folds, those of all rows again."""
    whole = values[np.newaxis]
    return np.concatenate([whole, fold_values if len(fold_values) else np.repeat(whole, folds, axis=0)])


def _with_zero(bias: FloatArray) -> FloatArray:
    """(…, K + 1) biases, and 0, for classes that have none."""
    return np.concatenate([bias, np.zeros((*bias.shape[:-1], 1))], axis=-1)


def with_mean(values: FloatArray) -> FloatArray:
    """(…, P, K + 1) weights, and their means over the classes, for classes that have no weights."""
    mean = values.mean(axis=-1, keepdims=True) if values.shape[-1] else np.zeros((*values.shape[:-1], 1))
    return np.concatenate([values, mean], axis=-1)


def _shares(
    classes: Levels, rows: Mapping[Level, float], own_rows: Mapping[Level, float], other_rows: Mapping[Level, float]
) -> FloatArray:
    """(K) the share of the rows of each class that one of two models has; half for a class without rows."""
    total = np.array([own_rows.get(label, 0.0) + other_rows.get(label, 0.0) for label in classes])
    part = np.array([rows.get(label, 0.0) for label in classes])
    share: FloatArray = np.divide(part, total, out=np.full(len(total), 0.5), where=total > 0)
    return share


def _mean(both: FloatArray, share: FloatArray) -> FloatArray:
    """Σ share·value over two models, in either order; for equal values exactly that value."""
    mean: FloatArray = np.where(both[0] == both[1], both[0], (share * both).sum(axis=0))
    return mean
