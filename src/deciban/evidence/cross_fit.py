"""Cross-fitting: how much each candidate counts, by its loss on rows that had no part in fitting it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from deciban.data.class_index import ClassIndex
from deciban.evidence.block_evidence import EvidencePiece
from deciban.evidence.candidates import (
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
from deciban.evidence.evidence_by_block import EvidenceByBlock, subtract_rows
from deciban.evidence.evidence_rows import EvidenceRows
from deciban.evidence.folds import FOLDS, MOST_ROWS
from deciban.evidence.weight_objective import Evidence
from deciban.types import BoolArray, FloatArray, IntArray, Levels

MOST_CELLS = 1 << 24  # of evidence of the rows that are assigned to folds
ROUGH = 1e-8  # tol of fits that are compared: then rounding in the sums does not change the shares
FEW = 20, 40  # rows: up to the first, held-out rows say little; from the second on, they decide
TEMPER = 0.35, 0.7  # the power of the likelihood of held-out rows, for few rows and for more: they are not independent
# prior masses of candidates, for few rows and for more; of others 1, of strong pieces among P 1/P
MASSES = {PRIOR: (0.5, 2.5), TEMPERED: (4.0, 1.0), NAIVE: (0.1, 0.1)}
CLEAR = 3.25, 6.0  # t² of the gain on held-out rows, from which on evidence is trusted a little, and fully
FALLBACK = 0.3, 15.0  # share of tempered naive Bayes where evidence is not trusted: 0.3, or 15/n; the rest is the prior
SMALL = 0.05  # shares of candidates below it are not worth a fit to all rows
MANY = 2_000  # rows, from which on the best candidate alone is fitted to all of them: others hardly differ
HOPELESS = 10.0  # nats by which a penalty is worse than the best, from which on still weaker ones are not tried


@dataclass(frozen=True)
class CrossFit:
    """The share of each candidate, and for each fold the weights by rows of the others."""

    shares: dict[str, float]  # of the candidates; they sum to 1
    folds: tuple[PieceWeights, ...]  # (FOLDS) of all pieces
    prior_share: float  # ε: p = (1 − ε)·softmax(scores) + ε·p(c)


@dataclass(frozen=True)
class HeldOut:
    """Rows that are assigned to folds, and their leave-one-out evidence."""

    rows: EvidenceRows
    evidence: Evidence
    fold: IntArray  # (n)

    @classmethod
    def of(cls, rows: EvidenceRows, sources: EvidenceByBlock, pieces: int) -> HeldOut:
        """All rows, or a subsample of many, sorted by key, so that their order does not matter."""
        columns = 1 if len(rows.model.classes) == 2 else len(rows.model.classes)
        most = min(MOST_ROWS, max(FOLDS, MOST_CELLS // max(1, columns * pieces)))
        few = rows.subsample(most).deduplicated()
        assigned, fold = few.in_folds()
        if len(fold) > most:  # rows that count as several are in several folds
            assigned, fold = few.subsample(max(FOLDS, most * len(few.labels) // len(fold))).in_folds()
        return cls(assigned, assigned.evidence(sources)[0], fold)

    @property
    def omega(self) -> FloatArray:
        weights = self.evidence.weights
        return np.ones(len(self.fold)) if weights is None else weights

    def for_size(self, values: tuple[float, float] | None) -> float:
        """The first value for few rows, the second for more, and between them a mean of both; 1 by default."""
        few, more = values or (1.0, 1.0)
        least, most = FEW
        part = min(1.0, max(0.0, (float(self.omega.sum()) - least) / (most - least)))
        return few + part * (more - few)

    @property
    def log_prior(self) -> FloatArray:
        """(n, K) leave-one-out."""
        return log_probabilities(self.evidence.offset.T)

    def of_true_class(self, log_p: FloatArray) -> FloatArray:
        """(n) log p of the true classes."""
        return log_p[np.arange(len(self.fold)), self.rows.labels]

    def scores(self, by_fold: Sequence[PieceWeights]) -> FloatArray:
        """(C, n) by the weights of the fold of each row."""
        out = np.empty((len(self.evidence.values), len(self.fold)))
        for f, weights in enumerate(by_fold):
            inside = np.flatnonzero(self.fold == f)
            out[:, inside] = weights.scores(self.evidence.take(inside))
        return out

    def log_probabilities(self, z: FloatArray) -> FloatArray:
        """(n, K) log p, mixed with a little of the prior, as n rows cannot support certainty."""
        return mixed_with_prior(z, self.log_prior, 0.5 / (float(self.omega.sum()) + 1.0))

    def losses(self, z: FloatArray) -> FloatArray:
        """(n) −log p of the true classes, times the weights of the rows."""
        return -self.omega * self.of_true_class(self.log_probabilities(z))


def cross_fit(rows: EvidenceRows, sources: EvidenceByBlock) -> CrossFit:
    """Every fold is scored by weights that the other folds fit to evidence without the fold.

    Nothing that depends on the labels of a fold is used for its rows: the fold is subtracted from all statistics, and
    the other rows select the pieces and fit the candidates, each left out of the evidence in turn. Then the rows of
    the fold are scored by these weights and their leave-one-out evidence of all rows.
    """
    pieces = [piece for _, source in sources for piece in source.pieces]
    held = HeldOut.of(rows, sources, len(pieces))
    names, by_fold, scores, losses = zip(*_compare(held, sources, pieces), strict=True)
    strong = 1.0 / len(pieces) if pieces else 1.0
    masses = np.array([strong if name.endswith(STRONG) else held.for_size(MASSES.get(name)) for name in names])
    tempered = held.for_size(TEMPER) * np.stack(losses)
    fold_shares = [_shares(masses, tempered[:, held.fold != f]) for f in range(FOLDS)]
    first = held.log_probabilities(np.einsum("nm,mcn->cn", np.stack(fold_shares)[held.fold], np.stack(scores)))
    fold_shares = [_trusted(held, fold_shares[f], names, _trust(held, first, held.fold != f)) for f in range(FOLDS)]
    mean = np.einsum("nm,mcn->cn", np.stack(fold_shares)[held.fold], np.stack(scores))
    # without its only row a class is not expected
    log_p = np.where(held.rows.alone, -np.inf, held.of_true_class(log_probabilities(mean)))
    surprises, total = _surprises(log_p, held.of_true_class(held.log_prior), held.omega), float(held.omega.sum())
    scale = float(rows.model.counts.value.sum()) / total if rows.are_training else 1.0
    folds = (mean_weights([w[f] for w in by_fold], share.tolist()) for f, share in enumerate(fold_shares))
    trusted = _trusted(held, _shares(masses, tempered), names, _trust(held, first, held.fold >= 0))
    shares = dict(zip(names, trusted.tolist(), strict=True))
    return CrossFit(_worth_a_fit(shares, total * scale), tuple(folds), _prior_share(surprises * scale, total * scale))


Compared = tuple[str, list[PieceWeights], FloatArray, FloatArray]  # name, by fold, (C, n) scores, (n) losses


def _compare(held: HeldOut, sources: EvidenceByBlock, pieces: Sequence[EvidencePiece]) -> Iterator[Compared]:
    """Every candidate, with its weights for rows of each fold, and how well these predict them."""
    folds = [_without_fold(held.rows, held.fold == f, sources, pieces) for f in range(FOLDS)]
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


def _without_fold(
    rows: EvidenceRows, inside: BoolArray, sources: EvidenceByBlock, pieces: Sequence[EvidencePiece]
) -> list[Path]:
    """The candidates as the other folds fit them, as weights of all pieces and classes; none if one class remains."""
    model, others = rows.model, np.flatnonzero(~inside)
    if rows.are_training and inside.any():
        model, sources = subtract_rows(model, sources, rows.batch(np.flatnonzero(inside)))
    if len(model.classes) < 2 or len(others) < 2:
        return []
    remaining = rows.take(others).scored_by(model)
    evidence, known, _ = remaining.evidence(sources)
    paths = candidate_paths(evidence, known, remaining.selected(sources), wide=len(pieces) >= WIDE, tol=ROUGH)
    return [_expand(path, known, pieces, model.classes, rows.model.classes) for path in paths]


def _expand(
    path: Path, known: Sequence[EvidencePiece], pieces: Sequence[EvidencePiece], classes: Levels, all_classes: Levels
) -> Path:
    """The weights of all pieces and classes, 0 for other pieces; a class without rows has the mean of the others."""
    piece_index = {piece: p for p, piece in enumerate(pieces)}
    at = np.array([piece_index.get(piece, -1) for piece in known], np.intp)
    columns = ClassIndex(classes).positions(all_classes)  # −1: the mean
    for name, weights in path:
        out = PieceWeights.none(len(pieces), len(all_classes))
        values = np.hstack([weights.values, weights.values.mean(axis=1, keepdims=True)])
        out.values[at[at >= 0]] = values[at >= 0][:, columns]
        out.bias[:] = np.append(weights.bias, 0.0)[columns]
        yield name, out


def _shares(masses: FloatArray, losses: FloatArray) -> FloatArray:
    """(M) mass·exp(−Σ loss), normalised, for losses (M, n)."""
    total = losses.sum(axis=1)
    shares: FloatArray = masses * np.exp(-(total - total.min()))
    return shares / float(shares.sum())


def _trust(held: HeldOut, log_p: FloatArray, rows: BoolArray) -> float:
    """How far held-out rows show that evidence helps at all, from 0 to 1: by t of its gain over the class prior.

    The gain is in log-loss or in Brier score, whichever shows more: of few rows, one bad surprise hides the rest.
    """
    log_prior, omega = held.log_prior[rows], held.omega[rows]
    truth = np.eye(log_p.shape[1])[held.rows.labels[rows]]
    gains = ((log_p[rows] - log_prior) * truth).sum(axis=1)
    brier = 0.5 * ((np.exp(log_prior) - truth) ** 2 - (np.exp(log_p[rows]) - truth) ** 2).sum(axis=1)
    t = max(_t(gains, omega), _t(brier, omega), 0.0)
    least, most = CLEAR
    return held.for_size((1.0, min(1.0, max(0.0, (t**2 - least) / (most - least)))))


def _t(gains: FloatArray, omega: FloatArray) -> float:
    """Σ ω·gain, in standard errors of itself: a row of weight 2 is the row twice."""
    total, weight = float(omega @ gains), max(float(omega.sum()), 1e-300)
    return total / float(np.sqrt(omega @ (gains - total / weight) ** 2 + 1e-12))


def _trusted(held: HeldOut, shares: FloatArray, names: Sequence[str], trust: float) -> FloatArray:
    """Shares as far as they are trusted; the rest is the prior, and of few rows a little tempered naive Bayes."""
    most, rows = FALLBACK
    fallback = min(most, rows / max(float(held.omega.sum()), 1.0))
    if TEMPERED not in names or held.evidence.values.shape[2] >= WIDE:
        fallback = 0.0
    rest = {PRIOR: 1.0 - fallback, TEMPERED: fallback}
    return trust * shares + (1.0 - trust) * np.array([rest.get(name, 0.0) for name in names])


def log_probabilities(z: FloatArray) -> FloatArray:
    """(n, K) log p of scores (C, n); if C = 1, they are those of the second of two classes."""
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
    """How many of the rows are explained by the prior rather than by the scores: EM for a mixture of both."""
    total = float(omega.sum())
    share = 0.5 / (total + 1.0)
    p, prior = np.exp(log_p), np.exp(log_prior)
    for _ in range(200):
        count = float(omega @ (share * prior / (share * prior + (1.0 - share) * p + 1e-300)))
        before, share = share, (count + 0.5) / (total + 1.0)
        if abs(share - before) <= 1e-9 * share:
            break
    return count


def _prior_share(surprises: float, rows: float) -> float:
    """ε = (½ + r)/(n + 1), Jeffreys' estimate, with r surprises minus two standard errors, as they may be chance.

    So n rows that were all as expected leave odds of about 2n to 1 at most.
    """
    return (0.5 + max(0.0, surprises - 2.0 * sqrt(surprises))) / (rows + 1.0)
