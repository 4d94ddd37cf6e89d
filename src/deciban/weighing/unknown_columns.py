"""Unknown columns: how the weights of the other evidence change for rows in which a column is unknown.

A column that is missing, or holds a value that was never seen, says nothing. But columns that repeat it have shared
its weight, and they should get it back. So for every column the weights are fitted again with that column hidden, and
the change is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from deciban.types import FloatArray
from deciban.weighing.candidates import WIDE, PieceWeights, candidate_paths, mean_weights, piece_gains
from deciban.weighing.folds import FOLDS
from deciban.weighing.left_out import LeftOut
from deciban.weighing.objective import Evidence, surprise
from deciban.weighing.reader import Piece
from deciban.weighing.readers import Readers

FEWEST_ROWS, MOST_ROWS = 1_000, 2_500  # that changes are fitted to
MOST_CELLS = 1 << 20  # of evidence of these rows, where they are more than the fewest
MOST_COLUMNS = 32  # that have changes: those that are most informative by themselves
EXACT = 1e-10  # tol of the fits: then batches and the order of rows do not show
LEAST = 1.0  # nats that a column must be worth, with the weights as they are: a change could not bring more
CHANCE = 3.0  # nats by which rows must be better predicted for a missing cell to be informative


@dataclass(frozen=True)
class ColumnChanges:
    """How the weights of all pieces change where one column is unknown."""

    column: int
    informative: bool  # whether a missing cell is evidence by itself: then only a value never seen is unknown
    change: PieceWeights  # to be added
    folds: tuple[PieceWeights, ...]  # (FOLDS) by rows of the other folds; () if no training row needs them


def column_changes(rows: LeftOut, readers: Readers, shares: dict[str, float]) -> list[ColumnChanges]:
    """The changes for every column that has a part in the weights, or for the most informative of many.

    A column that the model would hardly miss changes nothing, and where its missing cells are evidence, they stay so.
    """
    pieces = [piece for _, reader in readers for piece in reader.pieces]
    scores = 1 if len(rows.model.classes) == 2 else len(rows.model.classes)
    few = rows.few(min(MOST_ROWS, max(FEWEST_ROWS, MOST_CELLS // max(1, scores * len(pieces)))))
    few, fold = few.different().dealt()
    whole, _, _ = few.evidence(readers)
    few = replace(few, sure=True)  # that they were learned has been seen
    fit = _Fit(pieces, few.admitted(readers), shares)
    base = fit(whole)
    if not base.values.any():
        return []
    schema, missing = rows.model.schema, rows.missing(readers)
    missing_of_few = few.missing(readers)
    parts = [np.flatnonzero(fold != f) for f in range(FOLDS)]
    of_folds = [fit(whole.take(part)) for part in parts] if any(mask.any() for mask in missing.values()) else []
    changes, total = [], _losses(base, whole).sum()
    for column in _columns(rows, whole, pieces, base):
        hidden = frozenset(j for j in range(len(schema.all_names)) if column in schema.owners((j,)))
        without = few.hiding(whole, readers, hidden)
        has_missing = column in missing and bool(missing[column].any())
        if _losses(base, without).sum() < total + LEAST:
            changes.append(ColumnChanges(column, has_missing, base - base, ()))
            continue
        weights = fit(without)
        informative, folds = False, tuple[PieceWeights, ...]()
        if has_missing:
            there = missing_of_few[column]
            gain = _losses(weights, without)[there].sum() - _losses(base, whole)[there].sum()
            informative = bool(gain > CHANCE)
            if not informative:
                folds = tuple(fit(without.take(p)) - was for p, was in zip(parts, of_folds, strict=True))
        changes.append(ColumnChanges(column, informative, weights - base, folds))
    return changes


class _Fit:
    """Weights by the candidates that were believed, as much as they were; later fits start where the first ended."""

    def __init__(self, pieces: Sequence[Piece], admitted: NDArray[np.bool_], shares: dict[str, float]) -> None:
        self.pieces, self.admitted, self.shares = pieces, admitted, shares
        self.near: dict[str, PieceWeights] = {}

    def __call__(self, evidence: Evidence) -> PieceWeights:
        given = {"wide": len(self.pieces) >= WIDE, "tol": EXACT, "wanted": self.shares, "near": self.near}
        paths = candidate_paths(evidence, self.pieces, self.admitted, **given)  # type: ignore[arg-type]
        fitted = {name: weights for path in paths for name, weights in path if name in self.shares}
        self.near = self.near or fitted
        return mean_weights(list(fitted.values()), [self.shares[name] for name in fitted])


def _columns(rows: LeftOut, evidence: Evidence, pieces: Sequence[Piece], base: PieceWeights) -> list[int]:
    """The columns of the table that some piece with a weight is about."""
    schema, gains = rows.model.schema, piece_gains(evidence)
    best = dict[int, float]()
    for p, piece in enumerate(pieces):
        owners = schema.owners(piece.columns)
        for j in owners if base.values[p].any() else ():
            best.setdefault(j, 0.0)
    for p, piece in enumerate(pieces):
        owners = schema.owners(piece.columns)
        if len(owners) == 1 and owners[0] in best:
            best[owners[0]] = max(best[owners[0]], float(gains[p]))
    return sorted(sorted(best, key=lambda j: (-best[j], j))[:MOST_COLUMNS])


def _losses(weights: PieceWeights, evidence: Evidence) -> FloatArray:
    """(n) −log p of the true classes, times the weights of the rows."""
    losses = surprise(weights.scores(evidence), evidence.labels)
    return losses if evidence.weights is None else evidence.weights * losses
