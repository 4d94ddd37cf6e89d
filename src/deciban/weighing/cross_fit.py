"""Cross-fitting: which candidate weights to believe, judged by rows that had no part in making them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from deciban.types import FloatArray, IntArray, Levels
from deciban.weighing.candidates import (
    NAIVE,
    PRIOR,
    STRONG,
    TEMPERED,
    WIDE,
    Path,
    PieceWeights,
    candidate_paths,
    mean_weights,
)
from deciban.weighing.folds import FOLDS, MOST_ROWS
from deciban.weighing.left_out import LeftOut
from deciban.weighing.objective import Evidence
from deciban.weighing.reader import Piece
from deciban.weighing.readers import Readers, readers_without

MOST_CELLS = 1 << 24  # of evidence of the rows that are dealt to folds
ROUGH = 1e-8  # tol of fits that are compared: then rounding in the sums does not show in the shares
FEW = 20, 40  # rows: of so few there is little to ask held-out rows, and of so many all of it
TEMPER = 0.35, 0.7  # the power of the likelihood of held-out rows, for few rows and for more: they are not independent
# of candidates, before any row is seen; of others 1, of strong pieces among P 1/P
MASSES = {PRIOR: (0.5, 2.5), TEMPERED: (4.0, 1.0), NAIVE: (0.1, 0.1)}
CLEAR = 3.25, 6.0  # t² of the gain of held-out rows, from which on evidence is trusted a little, and fully
FALLBACK = (
    0.3,
    15.0,
)  # of tempered naive Bayes, where evidence is not trusted: 0.3 of it, or 15/n; the rest is the prior
SMALL = 0.05  # shares of candidates below it are not worth a fit of all rows
MANY = 2_000  # rows, from which on the best candidate alone is fitted to all of them: others hardly differ
HOPELESS = 10.0  # nats by which a penalty is worse than the best, where still weaker ones are not tried


@dataclass(frozen=True)
class CrossFit:
    """How much each candidate is believed, and weights of the pieces for rows of each fold, which never saw them."""

    shares: dict[str, float]  # of each candidate, of all 1
    folds: tuple[PieceWeights, ...]  # (FOLDS) of all pieces
    prior_share: float  # ε: p = (1 − ε)·softmax(scores) + ε·p(c)


@dataclass(frozen=True)
class HeldOut:
    """Rows that are dealt to folds, and what the evidence of all other rows says of each."""

    rows: LeftOut
    evidence: Evidence
    fold: IntArray  # (n)

    @classmethod
    def of(cls, rows: LeftOut, readers: Readers, pieces: int) -> HeldOut:
        """All rows, or some of many, in an order of their own: that of the rows does not matter."""
        columns = 1 if len(rows.model.classes) == 2 else len(rows.model.classes)
        most = min(MOST_ROWS, max(FOLDS, MOST_CELLS // max(1, columns * pieces)))
        few = rows.few(most).different()
        dealt, fold = few.dealt()
        if len(fold) > most:  # rows that count as several are in several folds
            dealt, fold = few.few(max(FOLDS, most * len(few.labels) // len(fold))).dealt()
        return cls(dealt, dealt.evidence(readers)[0], fold)

    @property
    def omega(self) -> FloatArray:
        """(n) the weights of the rows."""
        weights = self.evidence.weights
        return np.ones(len(self.fold)) if weights is None else weights

    def of_few(self, both: tuple[float, float] | None) -> float:
        """What is right for as many rows: the first for few, the second for more, and between them a part of both."""
        few, more = both or (1.0, 1.0)
        least, most = FEW
        part = min(1.0, max(0.0, (float(self.omega.sum()) - least) / (most - least)))
        return few + part * (more - few)

    @property
    def log_prior(self) -> FloatArray:
        """(n, K) of the rows without each."""
        return log_probabilities(self.evidence.offset.T)

    def true(self, log_p: FloatArray) -> FloatArray:
        """(n) log p of the true classes."""
        result: FloatArray = log_p[np.arange(len(self.fold)), self.rows.labels]
        return result

    def scores(self, of_folds: Sequence[PieceWeights]) -> FloatArray:
        """(C, n) of every row, by the weights of its fold."""
        out = np.empty((len(self.evidence.values), len(self.fold)))
        for f, weights in enumerate(of_folds):
            inside = np.flatnonzero(self.fold == f)
            out[:, inside] = weights.scores(self.evidence.take(inside))
        return out

    def log_probabilities(self, z: FloatArray) -> FloatArray:
        """(n, K) log p; no row is more certain than all rows allow."""
        return mixed_with_prior(z, self.log_prior, 0.5 / (float(self.omega.sum()) + 1.0))

    def losses(self, z: FloatArray) -> FloatArray:
        """(n) −log p of the true classes, times the weights of the rows."""
        return -self.omega * self.true(self.log_probabilities(z))


def cross_fit(rows: LeftOut, readers: Readers) -> CrossFit:
    """Every fold is judged by weights that rows of the others chose, from evidence without the fold.

    For the rows of a fold, nothing that looked at their labels is used: the fold is taken out of all sums, the pieces
    are chosen, and the candidates fitted, by the other rows, each left out of the evidence in its turn. Then the rows
    of the fold are scored, by evidence of all rows but the one, and by these weights.
    """
    pieces = [piece for _, reader in readers for piece in reader.pieces]
    held = HeldOut.of(rows, readers, len(pieces))
    names, by_fold, scores, losses = [], list[list[PieceWeights]](), list[FloatArray](), list[FloatArray]()
    for name, weights, z, loss in _compared(held, readers, pieces):
        names.append(name)
        by_fold.append(weights)
        scores.append(z)
        losses.append(loss)
    masses = np.array([1.0 / len(pieces) if name.endswith(STRONG) else held.of_few(MASSES.get(name)) for name in names])
    all_losses = held.of_few(TEMPER) * np.stack(losses)
    of_fold = [_shares(masses, all_losses[:, held.fold != f]) for f in range(FOLDS)]
    first = held.log_probabilities(np.einsum("nm,mcn->cn", np.stack(of_fold)[held.fold], np.stack(scores)))
    of_fold = [_trusted(held, of_fold[f], names, _trust(held, first, held.fold != f)) for f in range(FOLDS)]
    mean = np.einsum("nm,mcn->cn", np.stack(of_fold)[held.fold], np.stack(scores))
    # without its only row a class is not expected
    log_p = np.where(held.rows.alone, -np.inf, held.true(log_probabilities(mean)))
    surprises, total = _surprises(log_p, held.true(held.log_prior), held.omega), float(held.omega.sum())
    scale = float(rows.model.counts.value.sum()) / total if rows.learned else 1.0
    folds = (mean_weights([w[f] for w in by_fold], share.tolist()) for f, share in enumerate(of_fold))
    believed = _trusted(held, _shares(masses, all_losses), names, _trust(held, first, held.fold >= 0))
    shares = dict(zip(names, believed.tolist(), strict=True))
    return CrossFit(_worth_a_fit(shares, total * scale), tuple(folds), _prior_share(surprises * scale, total * scale))


Compared = tuple[str, list[PieceWeights], FloatArray, FloatArray]  # name, of each fold, (C, n) scores, (n) losses


def _compared(held: HeldOut, readers: Readers, pieces: Sequence[Piece]) -> Iterator[Compared]:
    """Every candidate, with the weights that it has for rows of each fold, and how well these predict them."""
    folds = [_without_fold(held.rows, held.fold == f, readers, pieces) for f in range(FOLDS)]
    none = PieceWeights.none(len(pieces), len(held.rows.model.classes))
    only: list[Path] = [iter([(PRIOR, none)])]
    for p, lead in enumerate(next((fold for fold in folds if fold), only)):
        best = np.inf
        for name, first in lead:
            rest = [fold[p] if fold else None for fold in folds]
            weights = [none if path is None else first if path is lead else next(path)[1] for path in rest]
            z = held.scores(weights)
            losses = held.losses(z)
            yield name, weights, z, losses
            best = min(best, float(losses.sum()))
            if p and float(losses.sum()) > best + HOPELESS:
                break  # weaker penalties are worse still


def _worth_a_fit(shares: dict[str, float], rows: float) -> dict[str, float]:
    """The candidates that are fitted to all rows, with their shares among each other."""
    most = max(shares.values())
    kept = {name: share for name, share in shares.items() if share == most or (rows < MANY and share >= SMALL)}
    return {name: share / sum(kept.values()) for name, share in kept.items()}


def _without_fold(rows: LeftOut, inside: NDArray[np.bool_], readers: Readers, pieces: Sequence[Piece]) -> list[Path]:
    """The candidates as the other folds make them, as weights of all pieces and classes; none if one class is left."""
    model, others = rows.model, np.flatnonzero(~inside)
    if rows.learned and inside.any():
        model, readers = readers_without(model, readers, rows.batch(np.flatnonzero(inside)))
    if len(model.classes) < 2 or len(others) < 2:
        return []
    left = rows.take(others).judged_by(model)
    gathered, known, _ = left.evidence(readers)
    paths = candidate_paths(gathered, known, left.admitted(readers), wide=len(pieces) >= WIDE, tol=ROUGH)
    return [_placed(path, known, pieces, model.classes, rows.model.classes) for path in paths]


def _placed(path: Path, known: Sequence[Piece], pieces: Sequence[Piece], classes: Levels, all_classes: Levels) -> Path:
    """The weights among those of all pieces and classes; a class that was not there has the mean of the others."""
    place = {piece: p for p, piece in enumerate(pieces)}
    at = np.array([place.get(piece, -1) for piece in known], np.intp)
    column = {label: k for k, label in enumerate(classes)}
    of = [column.get(label, len(classes)) for label in all_classes]
    for name, weights in path:
        out = PieceWeights.none(len(pieces), len(all_classes))
        values = np.hstack([weights.values, weights.values.mean(axis=1, keepdims=True)])
        out.values[at[at >= 0]] = values[at >= 0][:, of]
        out.bias[:] = np.append(weights.bias, 0.0)[of]
        yield name, out


def _shares(masses: FloatArray, losses: FloatArray) -> FloatArray:
    """(M) mass·exp(−Σ loss), normalised, of losses (M, n)."""
    total = losses.sum(axis=1)
    shares: FloatArray = masses * np.exp(-(total - total.min()))
    return shares / float(shares.sum())


def _trust(held: HeldOut, log_p: FloatArray, rows: NDArray[np.bool_]) -> float:
    """How far held-out rows show that evidence helps at all, from 0 to 1, by t of what it gains on the class prior.

    That of the log-loss, or of the Brier score, whichever shows more: of few rows, one bad surprise hides the rest.
    """
    log_prior, omega = held.log_prior[rows], held.omega[rows]
    truth = np.eye(log_p.shape[1])[held.rows.labels[rows]]
    gains = ((log_p[rows] - log_prior) * truth).sum(axis=1)
    brier = 0.5 * ((np.exp(log_prior) - truth) ** 2 - (np.exp(log_p[rows]) - truth) ** 2).sum(axis=1)
    t = max(_t(gains, omega), _t(brier, omega), 0.0)
    least, most = CLEAR
    return held.of_few((1.0, min(1.0, max(0.0, (t**2 - least) / (most - least)))))


def _t(gains: FloatArray, omega: FloatArray) -> float:
    """Σ ω·gain, in standard errors of itself: a row of weight 2 is the row twice."""
    total, weight = float(omega @ gains), max(float(omega.sum()), 1e-300)
    return total / float(np.sqrt(omega @ (gains - total / weight) ** 2 + 1e-12))


def _trusted(held: HeldOut, shares: FloatArray, names: Sequence[str], trust: float) -> FloatArray:
    """Shares as far as they are trusted; the rest is the prior, and of few rows a little tempered naive Bayes."""
    most, rows = FALLBACK
    little = min(most, rows / max(float(held.omega.sum()), 1.0))
    if TEMPERED not in names or held.evidence.values.shape[2] >= WIDE:
        little = 0.0
    rest = {PRIOR: 1.0 - little, TEMPERED: little}
    return trust * shares + (1.0 - trust) * np.array([rest.get(name, 0.0) for name in names])


def log_probabilities(z: FloatArray) -> FloatArray:
    """(n, K) log p of scores (C, n); one column is that of the second class of two."""
    if len(z) == 1:
        return np.stack([-np.logaddexp(0.0, z[0]), -np.logaddexp(0.0, -z[0])], axis=1)
    z = z - z.max(axis=0)
    result: FloatArray = (z - np.log(np.exp(z).sum(axis=0))).T
    return result


def mixed_with_prior(z: FloatArray, log_prior: FloatArray, prior_share: float) -> FloatArray:
    """(n, K) log ((1 − ε)·softmax(z) + ε·prior)."""
    logs: FloatArray = np.logaddexp(log_probabilities(z) + np.log1p(-prior_share), log_prior + np.log(prior_share))
    return logs


def _surprises(log_p: FloatArray, log_prior: FloatArray, omega: FloatArray) -> float:
    """How many of the rows the prior explains rather than the scores: EM of a mixture of both."""
    total = float(omega.sum())
    share = 0.5 / (total + 1.0)
    said, prior = np.exp(log_p), np.exp(log_prior)
    for _ in range(200):
        count = float(omega @ (share * prior / (share * prior + (1.0 - share) * said + 1e-300)))
        before, share = share, (count + 0.5) / (total + 1.0)
        if abs(share - before) <= 1e-9 * share:
            break
    return count


def _prior_share(surprises: float, rows: float) -> float:
    """ε = (½ + r)/(n + 1), Jeffreys' estimate, with r surprises less two standard errors, for they may be chance.

    So n rows that were all as expected leave odds of about 2n to 1 at most.
    """
    return (0.5 + max(0.0, surprises - 2.0 * sqrt(surprises))) / (rows + 1.0)
