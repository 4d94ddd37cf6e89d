"""Candidates: weights that the same evidence would be given under different penalties, from none to naive Bayes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from deciban.types import FloatArray, IntArray
from deciban.weighing.objective import Evidence, Solution
from deciban.weighing.reader import Piece
from deciban.weighing.solve import solve

PENALTIES = (300.0, 30.0, 3.0, 0.3)
LEAST = 1.0  # nats, over all rows, that a piece must tell by itself to be weighed at all
MOST_PIECES = 512  # of more, those that tell most
CHANCE = 3.0  # nats, beyond what it takes to name it, from which on a piece is unlikely to tell something by chance
ROUNDING = 1e-9  # nats: what a table of one cell may say
WIDE = 100  # pieces, from which on weights of the strong ones alone are a candidate too
PRIOR, NAIVE, TEMPERED, STRONG = "prior", "naive Bayes", "tempered naive Bayes", ", strong pieces"
NAIVE_KINDS = frozenset({"value", "normal", "present", "words"})  # one piece for each column


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
    """Σ share·weights: a mean of weights is the mean of what they add to the log-odds."""
    if len(weights) == 1 and shares[0] == 1.0:
        return weights[0]
    pairs = list(zip(weights, shares, strict=True))
    bias: FloatArray = sum((s * w.bias for w, s in pairs), np.zeros_like(weights[0].bias))
    return PieceWeights(sum((s * w.values for w, s in pairs), np.zeros_like(weights[0].values)), bias)


Path = Iterator[tuple[str, PieceWeights]]  # candidates by name, in an order in which they get better, and then worse


def candidate_paths(
    evidence: Evidence,
    pieces: Sequence[Piece],
    admitted: NDArray[np.bool_],
    *,
    wide: bool,
    tol: float,
    wanted: Collection[str] | None = None,
    near: Mapping[str, PieceWeights] | None = None,
) -> list[Path]:
    """The candidates (or those wanted), each with the weights that rows would give the pieces that are admitted.

    Fits start from weights that are known to be near, if some are given by name.

    No evidence at all ("prior"), every column counted once and fully ("naive Bayes") or with the weight 1/√columns;
    convex fits under penalties from the strong to the weak; where pieces are many, also fits of those alone that are
    unlikely to be chance.
    """
    usable = admitted & informative(evidence)
    usable &= ~repeated(evidence, usable)
    gains = np.where(usable, piece_gains(evidence), 0.0)
    best = np.argsort(-gains, kind="stable")[:MOST_PIECES]
    sets = {"": best[gains[best] > LEAST]}
    if wide:
        sets[STRONG] = strong_pieces(gains)[:MOST_PIECES]
    paths = [_unfitted(evidence, pieces)]
    for title, chosen in sets.items():
        named = {f"penalty {penalty:g}{title}": penalty for penalty in PENALTIES}
        if wanted is not None:
            named = {name: penalty for name, penalty in named.items() if name in wanted}
        paths.append(_fits(evidence, pieces, np.sort(chosen), named, tol, near or {}))
    return paths


def _unfitted(evidence: Evidence, pieces: Sequence[Piece]) -> Path:
    columns, _, n_pieces = evidence.values.shape
    classes = max(2, columns)
    yield PRIOR, PieceWeights.none(n_pieces, classes)
    single = np.array([piece.kind in NAIVE_KINDS for piece in pieces], np.bool_) & informative(evidence)
    single &= ~repeated(evidence, single)
    naive = np.tile(single[:, np.newaxis].astype(np.float64), classes)
    yield NAIVE, PieceWeights(naive, np.zeros(classes))
    yield TEMPERED, PieceWeights(naive / np.sqrt(max(1.0, naive[:, 0].sum())), np.zeros(classes))


def _fits(
    evidence: Evidence,
    pieces: Sequence[Piece],
    chosen: IntArray,
    named: Mapping[str, float],
    tol: float,
    near: Mapping[str, PieceWeights],
) -> Path:
    """Weights of some pieces under each penalty, each started where the one before ended."""
    kinds = [pieces[p].kind for p in chosen.tolist()]
    place = {kind: i for i, kind in enumerate(sorted(set(kinds)))}
    some = replace(
        evidence,
        values=np.ascontiguousarray(evidence.values[:, :, chosen]) if named else evidence.values[:, :, :0],
        groups=np.array([place[kind] for kind in kinds], np.intp),
        tried=len(pieces),
    )
    solution: Solution | None = None
    for name, penalty in named.items():
        if len(chosen):
            start = _start(near[name], chosen, len(evidence.values)) if name in near else solution
            solution = solve(some, penalty, start, tol=tol)
        yield name, _of_all(solution, chosen, evidence.values.shape)


def _start(weights: PieceWeights, chosen: IntArray, columns: int) -> Solution:
    """Weights of all pieces and classes as a solution for some pieces, in so many columns of scores."""
    if columns == 1:
        values, bias = weights.values[chosen, 1:], weights.bias[1:] - weights.bias[:1]
    else:
        values, bias = weights.values[chosen], weights.bias
    return Solution(bias.copy(), values.copy(), np.zeros(0), np.inf, 0, converged=False)


def _of_all(solution: Solution | None, chosen: IntArray, shape: tuple[int, ...]) -> PieceWeights:
    """The weights of a solution among those of all pieces."""
    columns, _, n_pieces = shape
    weights = PieceWeights.none(n_pieces, max(2, columns))
    if solution is not None:
        weights.values[chosen] = solution.weights  # one column of scores is that of both classes
        weights.bias[:] = np.array([-0.5, 0.5]) * solution.bias[0] if columns == 1 else solution.bias
    return weights


def informative(evidence: Evidence) -> NDArray[np.bool_]:
    """(P) whether a piece distinguishes the classes in any row: that of a column of identifiers does not, say."""
    result: NDArray[np.bool_] = (np.abs(evidence.values) > ROUNDING).any(axis=(0, 1))
    return result


def repeated(evidence: Evidence, among: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(P) whether a piece says of all rows what an earlier one of some says: that of a column that is there twice."""
    known, again = set[bytes](), np.zeros(len(among), np.bool_)
    for p in np.flatnonzero(among):
        mark = blake2b(evidence.values[:, :, p].tobytes()).digest()
        again[p] = mark in known
        known.add(mark)
    return again


def piece_gains(evidence: Evidence) -> FloatArray:
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


def strong_pieces(gains: FloatArray) -> IntArray:
    """The pieces that tell too much to be chance, those that tell most first.

    To name k of P pieces takes about k·log(P/k) nats: the k-th best must tell 3 nats more than log(P/k). (The
    steps are those of Benjamini and Hochberg; of pieces of noise alone, P of them, few if any pass.)
    """
    order = np.argsort(-gains, kind="stable")
    bar = CHANCE + np.log(len(gains) / np.arange(1, len(gains) + 1))
    passed = np.flatnonzero(gains[order] > bar)
    return order[: passed[-1] + 1] if len(passed) else order[:0]
