"""Cross-fitting: the share of each candidate, by its loss on rows that it was not fitted to."""

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
from deciban.evidence.weight_solver import Evidence
from deciban.types import BoolArray, FloatArray, IntArray, Levels

MOST_CELLS = 1 << 22  # of evidence of the rows that are assigned to folds
ROUGH = 1e-6  # tol of fits that are compared
FEW = 20, 40  # rows: up to the first, held-out rows say little; from the second on, they decide
TEMPER = 0.35, 0.7  # the power of the likelihood of held-out rows, for few rows and for more: they are not independent
# prior masses of candidates, for few rows and for more; 1 for others, 1/P for strong pieces among P
MASSES = {PRIOR: (0.5, 2.5), TEMPERED: (4.0, 1.0), NAIVE: (0.1, 0.1)}
CLEAR = 3.25, 6.0  # t² of the gain on held-out rows from which evidence is trusted a little, and fully
FALLBACK = 0.3, 15.0  # share of tempered naive Bayes if evidence is not trusted: 15/n, at most 0.3; else the prior
SMALL = 0.05  # shares of candidates below it are not worth a fit to all rows
MANY = 2_000  # rows, from which only the best candidate is fitted to all of them: others hardly differ
HOPELESS = 10.0  # nats by which a penalty is worse than the best, from which weaker ones are not tried


@dataclass(frozen=True)
class CrossFit:
    """The share of each candidate, and for each fold the weights that the other folds fit."""

    shares: dict[str, float]  # of the candidates; they sum to 1
    folds: tuple[PieceWeights, ...]  # (FOLDS) of all pieces
    prior_share: float  # ε: p = (1 − ε)·softmax(scores) + ε·p(c)
    start: dict[str, PieceWeights]  # of each candidate, fitted without the first fold: where other fits may begin


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
        """The first value for few rows, the second for more, interpolated between; 1 by default."""
        few, more = values or (1.0, 1.0)
        least, most = FEW
        share = min(1.0, max(0.0, (float(self.omega.sum()) - least) / (most - least)))
        return few + share * (more - few)

    @property
    def log_prior(self) -> FloatArray:
        """(n, K) the log prior, leave-one-out."""
        return log_probabilities(self.evidence.offset.T)

    def of_true_class(self, log_p: FloatArray) -> FloatArray:
        """(n) log p of the true classes."""
        return log_p[np.arange(len(self.fold)), self.rows.labels]

    def scores(self, by_fold: Sequence[PieceWeights]) -> FloatArray:
        """(C, n) scores, each row by the weights of its fold."""
        out = np.empty((len(self.evidence.values), len(self.fold)))
        for f, weights in enumerate(by_fold):
            inside = np.flatnonzero(self.fold == f)
            out[:, inside] = weights.scores(self.evidence.take(inside))
        return out

    def mean_scores(self, fold_shares: Sequence[FloatArray], scores: Sequence[FloatArray]) -> FloatArray:
        """(C, n) the mean of the candidates' scores, each row by the shares of its fold."""
        mean: FloatArray = np.einsum("nm,mcn->cn", np.stack(fold_shares)[self.fold], np.stack(scores))
        return mean

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
    held_out = HeldOut.of(rows, sources, len(pieces))
    names, by_fold, scores, losses = zip(*_compare(held_out, sources, pieces), strict=True)
    strong = 1.0 / len(pieces) if pieces else 1.0
    masses = np.array([strong if name.endswith(STRONG) else held_out.for_size(MASSES.get(name)) for name in names])
    tempered = held_out.for_size(TEMPER) * np.stack(losses)
    fold_shares = [_shares(masses, tempered[:, held_out.fold != f]) for f in range(FOLDS)]
    first = held_out.log_probabilities(held_out.mean_scores(fold_shares, scores))
    trust = [_trust(held_out, first, held_out.fold != f) for f in range(FOLDS)]
    fold_shares = [_trusted(held_out, fold_shares[f], names, trust[f]) for f in range(FOLDS)]
    # a class whose only row is left out has probability 0
    log_p = held_out.of_true_class(log_probabilities(held_out.mean_scores(fold_shares, scores)))
    log_p = np.where(held_out.rows.alone, -np.inf, log_p)
    surprises = _count_surprises(log_p, held_out.of_true_class(held_out.log_prior), held_out.omega)
    total = float(held_out.omega.sum())
    scale = float(rows.model.counts.value.sum()) / total if rows.are_training else 1.0
    folds = (mean_weights([w[f] for w in by_fold], share.tolist()) for f, share in enumerate(fold_shares))
    trusted = _trusted(held_out, _shares(masses, tempered), names, _trust(held_out, first, held_out.fold >= 0))
    shares = dict(zip(names, trusted.tolist(), strict=True))
    prior_share = _prior_share(surprises * scale, total * scale)
    start = {name: fitted[0] for name, fitted in zip(names, by_fold, strict=True)}
    return CrossFit(_worth_a_fit(shares, total * scale), tuple(folds), prior_share, start)


Compared = tuple[str, list[PieceWeights], FloatArray, FloatArray]  # name, by fold, (C, n) scores, (n) losses


def _compare(held_out: HeldOut, sources: EvidenceByBlock, pieces: Sequence[EvidencePiece]) -> Iterator[Compared]:
    """Every candidate: its weights for each fold, and the scores and losses of the held-out rows."""
    folds = [_without_fold(held_out.rows, held_out.fold == f, sources, pieces) for f in range(FOLDS)]
    no_weights = PieceWeights.none(len(pieces), len(held_out.rows.model.classes))
    prior_only: list[Path] = [iter([(PRIOR, no_weights)])]
    for p, lead in enumerate(next((fold for fold in folds if fold), prior_only)):
        best = np.inf
        for name, first in lead:
            paths = [fold[p] if fold else None for fold in folds]
            weights = [no_weights if path is None else first if path is lead else next(path)[1] for path in paths]
            z = held_out.scores(weights)
            losses = held_out.losses(z)
            yield name, weights, z, losses
            best = min(best, float(losses.sum()))
            if p and float(losses.sum()) > best + HOPELESS:
                break  # weaker penalties are worse still


def _worth_a_fit(shares: dict[str, float], rows: float) -> dict[str, float]:
    """The candidates that are fitted to all rows, and their shares, which sum to 1."""
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


def _trust(held_out: HeldOut, log_p: FloatArray, rows: BoolArray) -> float:
    """How far held-out rows show that evidence helps at all, from 0 to 1: by t of its gain over the class prior.

    The gain is in log-loss or in Brier score, whichever is clearer: with few rows, one bad prediction hides the rest.
    """
    log_prior, omega = held_out.log_prior[rows], held_out.omega[rows]
    truth = np.eye(log_p.shape[1])[held_out.rows.labels[rows]]
    gains = ((log_p[rows] - log_prior) * truth).sum(axis=1)
    brier = 0.5 * ((np.exp(log_prior) - truth) ** 2 - (np.exp(log_p[rows]) - truth) ** 2).sum(axis=1)
    t = max(_t(gains, omega), _t(brier, omega), 0.0)
    least, most = CLEAR
    return held_out.for_size((1.0, min(1.0, max(0.0, (t**2 - least) / (most - least)))))


def _t(gains: FloatArray, omega: FloatArray) -> float:
    """Σ ω·gain divided by its standard error: a row of weight 2 is the row twice."""
    total, weight = float(omega @ gains), max(float(omega.sum()), 1e-300)
    return total / float(np.sqrt(omega @ (gains - total / weight) ** 2 + 1e-12))


def _trusted(held_out: HeldOut, shares: FloatArray, names: Sequence[str], trust: float) -> FloatArray:
    """Shares, shrunk by the trust in them towards the prior and, for few rows, a little tempered naive Bayes."""
    most, rows = FALLBACK
    fallback = min(most, rows / max(float(held_out.omega.sum()), 1.0))
    if TEMPERED not in names or held_out.evidence.values.shape[2] >= WIDE:
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


def _count_surprises(log_p: FloatArray, log_prior: FloatArray, omega: FloatArray) -> float:
    """The expected number of rows that the prior explains, not the scores: EM for a mixture of both."""
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

    So if all n rows are predicted well, no probability is below about p(c)/2n, with p(c) the class prior.
    """
    return (0.5 + max(0.0, surprises - 2.0 * sqrt(surprises))) / (rows + 1.0)
