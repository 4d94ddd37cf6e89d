"""Candidates: weights of the same evidence under different penalties, from none to naive Bayes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from deciban.evidence.block_evidence import EvidencePiece
from deciban.evidence.weight_solver import Evidence, Solution, solve
from deciban.types import BoolArray, FloatArray, IntArray

PENALTIES = (300.0, 30.0, 3.0, 0.3)
LEAST = 1.0  # nats, over all rows, that a piece must gain by itself to get a weight
MOST_PIECES = 512  # with a weight: those with the largest gains
CHANCE = 3.0  # nats beyond log(P/k) that the gain of a strong piece exceeds: less may be chance
FINGERPRINT = 32  # rows that tell most pieces apart
ROUNDING = 1e-9  # nats: smaller evidence is rounding
WIDE = 100  # pieces: from here on, fits of the strong ones alone are candidates too
PRIOR, NAIVE, TEMPERED, STRONG = "prior", "naive Bayes", "tempered naive Bayes", ", strong pieces"


@dataclass(frozen=True)
class PieceWeights:
    """w and b of all classes: log p(c|x) = log p(c) + b_c + Σ_pieces w_pc·evidence_pc, normalised."""

    values: FloatArray  # (P, K)
    bias: FloatArray  # (K)

    @classmethod
    def none(cls, pieces: int, classes: int) -> PieceWeights:
        return cls(np.zeros((pieces, classes)), np.zeros(classes))

    def __sub__(self, other: PieceWeights) -> PieceWeights:
        return PieceWeights(self.values - other.values, self.bias - other.bias)

    def scores(self, evidence: Evidence) -> FloatArray:
        """(C, n) offset + b + Σ_p w_p·evidence_p."""
        weights, bias = self.values.T, self.bias
        if len(evidence.values) == 1:
            weights, bias = weights[1:], bias[1:] - bias[:1]
        z: FloatArray = np.matmul(evidence.values, weights[:, :, np.newaxis])[..., 0] + evidence.offset.T
        return z + bias[:, np.newaxis]


def mean_weights(weights: Sequence[PieceWeights], shares: Sequence[float]) -> PieceWeights:
    """Σ share·weights: a mean of weights is a mean of contributions to the log-odds."""
    if len(weights) == 1 and shares[0] == 1.0:
        return weights[0]
    pairs = list(zip(weights, shares, strict=True))
    bias: FloatArray = sum((s * w.bias for w, s in pairs), np.zeros_like(weights[0].bias))
    return PieceWeights(sum((s * w.values for w, s in pairs), np.zeros_like(weights[0].values)), bias)


Path = Iterator[tuple[str, PieceWeights]]  # names and candidates, in an order in which the loss falls, then rises


def candidate_paths(
    evidence: Evidence,
    pieces: Sequence[EvidencePiece],
    selected: BoolArray,
    *,
    wide: bool,
    tol: float,
    names: Collection[str] | None = None,
    start: Mapping[str, PieceWeights] | None = None,
) -> list[Path]:
    """Candidate weights of the selected pieces: all, or those in `names`; fits begin at the weights in `start`.

    No evidence at all ("prior"); every feature with weight 1 ("naive Bayes") or 1/√features; convex fits under strong
    to weak penalties; and, if wide, such fits of the strong pieces alone, whose gains are unlikely to be chance.
    """
    usable = selected & informative(evidence)
    usable &= ~repeated(evidence, usable)
    gains = np.where(usable, piece_gains(evidence), 0.0)
    best = np.argsort(-gains, kind="stable")[:MOST_PIECES]
    sets = {"": best[gains[best] > LEAST]}
    if wide:
        sets[STRONG] = strong_pieces(gains)[:MOST_PIECES]
    paths = [_unfitted(evidence, pieces)]
    for title, chosen in sets.items():
        penalties = {f"penalty {penalty:g}{title}": penalty for penalty in PENALTIES}
        if names is not None:
            penalties = {name: penalty for name, penalty in penalties.items() if name in names}
        paths.append(_fits(evidence, pieces, np.sort(chosen), penalties, tol, {} if start is None else start))
    return paths


def _unfitted(evidence: Evidence, pieces: Sequence[EvidencePiece]) -> Path:
    """The candidates that need no fit."""
    columns, _, n_pieces = evidence.values.shape
    classes = max(2, columns)
    yield PRIOR, PieceWeights.none(n_pieces, classes)
    single = np.array([piece.naive for piece in pieces], np.bool_) & informative(evidence)
    single &= ~repeated(evidence, single)
    naive = np.tile(single[:, np.newaxis].astype(np.float64), classes)
    yield NAIVE, PieceWeights(naive, np.zeros(classes))
    yield TEMPERED, PieceWeights(naive / np.sqrt(max(1.0, naive[:, 0].sum())), np.zeros(classes))


def _fits(
    evidence: Evidence,
    pieces: Sequence[EvidencePiece],
    chosen: IntArray,
    penalties: Mapping[str, float],
    tol: float,
    starts: Mapping[str, PieceWeights],
) -> Path:
    """Weights of the chosen pieces under each penalty, each started where the one before ended."""
    kinds = [pieces[p].kind for p in chosen.tolist()]
    group = {kind: i for i, kind in enumerate(sorted(set(kinds)))}
    subset = replace(
        evidence,
        values=np.ascontiguousarray(evidence.values[:, :, chosen]) if penalties else evidence.values[:, :, :0],
        groups=np.array([group[kind] for kind in kinds], np.intp),
        tried=len(pieces),
    )
    solution: Solution | None = None
    for name, penalty in penalties.items():
        if len(chosen):
            start = _start(starts[name], chosen, len(evidence.values)) if name in starts else solution
            solution = solve(subset, penalty, start, tol=tol)
        yield name, _expand(solution, chosen, evidence.values.shape)


def _start(weights: PieceWeights, chosen: IntArray, columns: int) -> Solution:
    """Weights of all pieces and classes as a solution for the chosen pieces, with 1 score column or K."""
    if columns == 1:
        values, bias = weights.values[chosen, 1:], weights.bias[1:] - weights.bias[:1]
    else:
        values, bias = weights.values[chosen], weights.bias
    return Solution(bias.copy(), values.copy(), np.zeros(0), np.inf, 0, converged=False)


def _expand(solution: Solution | None, chosen: IntArray, shape: tuple[int, ...]) -> PieceWeights:
    """The weights of all pieces, 0 for those that were not chosen."""
    columns, _, n_pieces = shape
    weights = PieceWeights.none(n_pieces, max(2, columns))
    if solution is not None:
        weights.values[chosen] = solution.weights  # one column of scores stands for both classes
        weights.bias[:] = np.array([-0.5, 0.5]) * solution.bias[0] if columns == 1 else solution.bias
    return weights


def informative(evidence: Evidence) -> BoolArray:
    """(P) whether a piece is nonzero in some row; that of an identifier, for instance, is 0 in all."""
    result: BoolArray = np.any(np.abs(evidence.values) > ROUNDING, axis=(0, 1))
    return result


def repeated(evidence: Evidence, among: BoolArray) -> BoolArray:
    """(P) whether a piece equals an earlier one of `among` in all rows, as that of a duplicated feature does."""
    duplicate, pieces = np.zeros(len(among), np.bool_), np.flatnonzero(among)
    rows = evidence.values[:, :FINGERPRINT]  # equal pieces are equal in these
    alike: dict[bytes, list[int]] = {}
    for p, first in zip(pieces.tolist(), np.moveaxis(rows[:, :, pieces], 2, 0), strict=True):
        earlier = alike.setdefault(first.tobytes(), [])
        duplicate[p] = any(np.array_equal(evidence.values[:, :, p], evidence.values[:, :, q]) for q in earlier)
        earlier.append(p)
    return duplicate


def piece_gains(evidence: Evidence) -> FloatArray:
    """(P) how many nats each piece alone would add to Σ log p(c_i|x_i) with its best weight, to second order."""
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


def strong_pieces(gains: FloatArray) -> IntArray:
    """The pieces that gain too much to be chance, the best first.

    To name k of P pieces takes about k·log(P/k) nats: the k-th best must gain 3 nats more than log(P/k), as in the
    step-up procedure of Benjamini and Hochberg. If all P pieces are noise, few if any pass.
    """
    order = np.argsort(-gains, kind="stable")
    threshold = CHANCE + np.log(len(gains) / np.arange(1, len(gains) + 1))
    passed = np.flatnonzero(gains[order] > threshold)
    return order[: passed[-1] + 1] if len(passed) else order[:0]
