"""Unknown features: how the weights of the other evidence change for rows in which a feature is unknown.

A feature that is missing, or has a value that was never seen, is no evidence. Then features that are correlated with it
should get back the weight that they shared with it. So for every feature the weights are fitted again with that feature
hidden, and the change is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.evidence.block_evidence import EvidencePiece
from deciban.evidence.candidates import WIDE, PieceWeights, candidate_paths, mean_weights, piece_gains
from deciban.evidence.evidence_by_block import EvidenceByBlock
from deciban.evidence.evidence_rows import EvidenceRows
from deciban.evidence.folds import FOLDS
from deciban.evidence.weight_solver import Evidence, log_losses
from deciban.types import BoolArray, FloatArray

FEWEST_ROWS, MOST_ROWS = 500, 2_500  # that changes are fitted to
MOST_CELLS = 1 << 18  # of evidence of these rows, if they are more than the fewest
MOST_COLUMNS = 32  # with changes: the most informative by themselves
EXACT = 1e-7  # tol of the fits
LEAST = 1.0  # nats that are lost if the feature is hidden and weights do not change: a change cannot gain more
CHANCE = 3.0  # nats by which rows must be predicted better for a missing value to be informative


@dataclass(frozen=True)
class ColumnChanges:
    """How the weights of all pieces change where one feature is unknown."""

    column: int
    informative: bool  # whether a missing value is evidence by itself: then only an unseen value is unknown
    change: PieceWeights  # to be added
    folds: tuple[PieceWeights, ...]  # (FOLDS) fitted to the other folds; () if no training row needs them


def column_changes(
    rows: EvidenceRows, sources: EvidenceByBlock, shares: dict[str, float], start: Mapping[str, PieceWeights]
) -> list[ColumnChanges]:
    """The changes for every feature with a weight, or for the most informative of many.

    The fits of candidates begin at the weights in `start`. If hiding a feature hardly increases the loss, nothing
    changes, and its missing values, if any, stay evidence.
    """
    pieces = [piece for _, source in sources for piece in source.pieces]
    scores = 1 if len(rows.model.classes) == 2 else len(rows.model.classes)
    sample = rows.subsample(min(MOST_ROWS, max(FEWEST_ROWS, MOST_CELLS // max(1, scores * len(pieces)))))
    sample, fold_of_row = sample.deduplicated().in_folds()
    whole, _, _ = sample.evidence(sources)
    sample = sample.without_checks()
    fit = _Fit(pieces, sample.selected(sources), shares, start)
    base = fit(whole)
    if not base.values.any():
        return []
    schema, missing = rows.model.schema, rows.missing(sources)
    missing_in_sample = sample.missing(sources)
    others = [np.flatnonzero(fold_of_row != f) for f in range(FOLDS)]
    any_missing = any(mask.any() for mask in missing.values())
    base_of_folds = [fit(whole.take(index)) for index in others] if any_missing else []
    changes, total = [], _losses(base, whole).sum()
    for column in _columns(rows, whole, pieces, base):
        hidden = frozenset(j for j in range(len(schema.all_names)) if column in schema.source_columns((j,)))
        without = sample.evidence_hiding(whole, sources, hidden)
        has_missing = column in missing and bool(missing[column].any())
        if _losses(base, without).sum() < total + LEAST:
            changes.append(ColumnChanges(column, has_missing, base - base, ()))
            continue
        weights = fit(without)
        informative, folds = False, tuple[PieceWeights, ...]()
        if has_missing:
            mask = missing_in_sample[column]
            gain = _losses(weights, without)[mask].sum() - _losses(base, whole)[mask].sum()
            informative = bool(gain > CHANCE)
            if not informative:
                folds = tuple(fit(without.take(i)) - fold for i, fold in zip(others, base_of_folds, strict=True))
        changes.append(ColumnChanges(column, informative, weights - base, folds))
    return changes


class _Fit:
    """Fits the candidates and takes their mean by the shares; later fits start where the first ended."""

    def __init__(
        self,
        pieces: Sequence[EvidencePiece],
        selected: BoolArray,
        shares: dict[str, float],
        start: Mapping[str, PieceWeights],
    ) -> None:
        self.pieces, self.selected, self.shares, self.start = pieces, selected, shares, start
        self.fitted = False

    def __call__(self, evidence: Evidence) -> PieceWeights:
        settings: dict[str, Any] = {"wide": len(self.pieces) >= WIDE, "tol": EXACT, "names": self.shares}
        paths = candidate_paths(evidence, self.pieces, self.selected, start=self.start, **settings)
        weights = {name: weights for path in paths for name, weights in path if name in self.shares}
        if not self.fitted:
            self.start, self.fitted = weights, True
        return mean_weights(list(weights.values()), [self.shares[name] for name in weights])


def _columns(rows: EvidenceRows, evidence: Evidence, pieces: Sequence[EvidencePiece], base: PieceWeights) -> list[int]:
    """The features of pieces with a weight, or the most informative of many."""
    schema, gains = rows.model.schema, piece_gains(evidence)
    best = dict[int, float]()
    for p, piece in enumerate(pieces):
        owners = schema.source_columns(piece.columns)
        for j in owners if base.values[p].any() else ():
            best.setdefault(j, 0.0)
    for p, piece in enumerate(pieces):
        owners = schema.source_columns(piece.columns)
        if len(owners) == 1 and owners[0] in best:
            best[owners[0]] = max(best[owners[0]], float(gains[p]))
    return sorted(sorted(best, key=lambda j: (-best[j], j))[:MOST_COLUMNS])


def _losses(weights: PieceWeights, evidence: Evidence) -> FloatArray:
    """(n) −log p of the true classes, times the weights of the rows."""
    losses = log_losses(weights.scores(evidence), evidence.labels)
    return losses if evidence.weights is None else evidence.weights * losses
