"""Non-negative weights of evidence, by a convex fit: projected Newton with conjugate gradients."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban.types import FloatArray, IntArray, Labels

LEVEL = 0.3  # μ, how hard the level of a group is held to t = 1/√P: about as much as one piece, so data soon decide
BIAS = 1e-3  # ε, just enough that the bias of a class without rows is finite and two biases cannot run off together
import sys
T = 'trace' in sys.argv
STEPS = 200  # Newton steps at most; some ten are usual
ROUNDS = 12  # of fixing weights that would fall below 0 within a step
INNER = 100  # conjugate gradients of a round at most
STALE = 8  # conjugate gradients of a step from which on a fresh preconditioner is worth its price
WIDE = 400  # pieces up to which the preconditioner knows how they go together
FORCING = 0.1  # how exactly a Newton step is solved for, at first
ENOUGH = 1e-4  # Armijo: the part of the promised fall that a step must bring
HALVINGS = 40
QUARTERS = 12
SHARE = 0.2
ROUNDING = 1e-13  # of J: a fall below this is not seen
LOWEST = 1e-8  # of J: where a step brings no fall, that it promises no more than this is as good as the minimum


@dataclass(frozen=True)
class Evidence:
    """Rows to weigh: what each of P pieces says of each class, in C score columns (1 for two classes)."""

    values: NDArray[Any]  # (C, n, P) float32 or float64, centred over the classes; C = 1: class 1 less class 0
    offset: FloatArray  # (n, C) log prior, and anything else that is not weighed
    labels: Labels  # (n)
    weights: FloatArray | None  # (n)
    groups: IntArray  # (P) the group of each piece, 0 … G−1

    def take(self, rows: NDArray[Any]) -> Evidence:
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        values = np.ascontiguousarray(self.values[:, rows])
        return replace(self, values=values, offset=self.offset[rows], labels=self.labels[rows], weights=weights)


@dataclass(frozen=True)
class Solution:
    """The minimum of J, or how far the steps came."""

    bias: FloatArray  # (C)
    weights: FloatArray  # (P, C)
    levels: FloatArray  # (G) g
    objective: float
    steps: int  # Newton steps
    converged: bool


def scores(evidence: Evidence, solution: Solution) -> FloatArray:
    """(n, C) z_ic = offset_ic + b_c + Σ_p w_pc e_ipc."""
    theta = np.column_stack([solution.weights.T, solution.bias])
    return evidence.offset + _forward(evidence.values, theta).T


def log_loss(evidence: Evidence, solution: Solution) -> float:
    """Σ_i ω_i·(−log p_{i,y_i}) / Σ_i ω_i; 0 where no row has weight."""
    return _mean_loss(scores(evidence, solution), evidence.labels, evidence.weights)


def _mean_loss(z: FloatArray, labels: Labels, weights: FloatArray | None) -> float:
    weight = np.ones(len(labels)) if weights is None else weights
    total = float(weight.sum())
    return float(weight @ _surprise(z.T, labels)) / total if total else 0.0


def choose_penalty(
    evidence: Evidence, fold: IntArray, penalties: tuple[float, ...] = (300.0, 30.0, 3.0, 0.3)
) -> tuple[float, dict[float, float]]:
    """The penalty λ that foretells the rows of each fold best from the others, and the mean log-loss of each one tried.

    From the strong to the weak, each started where the one before ended; two losses that rise end the search.
    """
    n_folds = int(fold.max()) + 1 if len(fold) else 0
    parts = [(evidence.take(fold != f), evidence.take(fold == f)) for f in range(n_folds)]
    found: list[Solution | None] = [None] * n_folds
    shares = [len(held.labels) if held.weights is None else float(held.weights.sum()) for _, held in parts]
    losses: dict[float, float] = {}
    before, risen = np.inf, 0
    for penalty in sorted(penalties, reverse=True):
        found = [solve(rest, penalty, start, tol=1e-5) for (rest, _), start in zip(parts, found, strict=True)]
        each = [log_loss(held, solution) for (_, held), solution in zip(parts, found, strict=True) if solution]
        loss = float(np.dot(shares, each)) / max(float(np.sum(shares)), np.finfo(float).tiny)
        losses[penalty] = loss
        risen = risen + 1 if loss > before else 0
        if risen == 2:
            break
        before = loss
    return min(losses, key=losses.__getitem__), losses


# The objective -------------------------------------------------------------------------------------------------------
# θ is (C, P + 1): a row for each score column, its weights and then its bias.


def _forward(values: NDArray[Any], theta: FloatArray) -> FloatArray:
    """(C, n) b_c + Σ_p w_pc e_ipc."""
    weights = theta[:, :-1, np.newaxis].astype(values.dtype, copy=False)
    result: FloatArray = np.matmul(values, weights)[..., 0] + theta[:, -1:]
    return result


def _back(values: NDArray[Any], rows: FloatArray) -> FloatArray:
    """(C, P + 1) Σ_i r_ci e_ipc and Σ_i r_ci."""
    inner = np.matmul(rows[:, np.newaxis].astype(values.dtype, copy=False), values)[:, 0]
    return np.concatenate([inner, rows.sum(axis=1, keepdims=True)], axis=1)


def _surprise(z: FloatArray, labels: Labels) -> FloatArray:
    """(n) −log p_{i,y_i} of scores (C, n)."""
    if len(z) == 1:
        return np.logaddexp(0.0, np.where(labels == 1, -z[0], z[0]))
    top = z.max(axis=0)
    log_sum = np.log(np.exp(z - top).sum(axis=0)) + top
    result: FloatArray = log_sum - z[labels, np.arange(len(labels))]
    return result


def _probabilities(z: FloatArray) -> FloatArray:
    """(C, n) p of scores (C, n)."""
    if len(z) == 1:
        return 0.5 + 0.5 * np.tanh(0.5 * z)
    p = np.exp(z - z.max(axis=0))
    p /= p.sum(axis=0)
    return p


@dataclass(frozen=True)
class _Problem:
    """J with the levels put in: the best g = (λ Σ_{p in g} w̄_p + μt)/(λ|g| + μ) is never below 0, as no w is."""

    values: NDArray[Any]  # (C, n, P)
    offset: FloatArray  # (C, n)
    labels: Labels
    weights: FloatArray  # (n)
    groups: IntArray
    penalty: float

    @classmethod
    def of(cls, evidence: Evidence, penalty: float) -> _Problem:
        weights = np.ones(len(evidence.labels)) if evidence.weights is None else evidence.weights
        offset = np.ascontiguousarray(evidence.offset.T, np.float64)
        return cls(evidence.values, offset, evidence.labels, weights, evidence.groups, penalty)

    @property
    def target(self) -> float:
        return 1.0 / np.sqrt(max(1, len(self.groups)))

    def _by_group(self, of_pieces: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(G) sums over each group, and λ|g| + μ."""
        size = np.bincount(self.groups)
        return np.bincount(self.groups, of_pieces, len(size)), self.penalty * size + LEVEL

    def levels(self, theta: FloatArray) -> FloatArray:
        total, curvature = self._by_group(theta[:, :-1].mean(axis=0))
        return (self.penalty * total + LEVEL * self.target) / curvature

    def loss(self, z: FloatArray) -> float:
        return float(self.weights @ _surprise(z, self.labels))

    def ridge(self, theta: FloatArray) -> float:
        """All of J but the loss."""
        weights, levels = theta[:, :-1], self.levels(theta)
        mean = weights.mean(axis=0)
        apart = ((weights - mean) ** 2).sum() + ((mean - levels[self.groups]) ** 2).sum()
        held = LEVEL * ((levels - self.target) ** 2).sum() + BIAS * (theta[:, -1] ** 2).sum()
        return float(self.penalty * apart + held)

    def gradient(self, theta: FloatArray, p: FloatArray) -> FloatArray:
        surplus = p * self.weights
        if len(p) == 1:
            surplus[0] -= self.weights * (self.labels == 1)
        else:
            surplus[self.labels, np.arange(len(self.labels))] -= self.weights
        out = _back(self.values, surplus)
        mean = theta[:, :-1].mean(axis=0)
        pull = (mean - self.levels(theta)[self.groups]) / len(p)
        out[:, :-1] += 2.0 * self.penalty * (theta[:, :-1] - mean + pull)
        out[:, -1] += 2.0 * BIAS * theta[:, -1]
        return out

    def curvature(self, direction: FloatArray, p: FloatArray) -> FloatArray:
        """∇²J·v, by one pass there and one back."""
        moved = _forward(self.values, direction)
        if len(p) == 1:
            moved *= self.weights * p * (1.0 - p)
        else:
            moved -= np.einsum("cn,cn->n", p, moved)
            moved *= p
            moved *= self.weights
        out = _back(self.values, moved)
        mean = direction[:, :-1].mean(axis=0)
        total, curvature = self._by_group(mean)
        pull = (mean - (self.penalty * total / curvature)[self.groups]) / len(p)
        out[:, :-1] += 2.0 * self.penalty * (direction[:, :-1] - mean + pull)
        out[:, -1] += 2.0 * BIAS * direction[:, -1]
        return out

    def blocks(self, p: FloatArray) -> FloatArray:
        """(C, P + 1, P + 1) ∇²J within each score column."""
        n_scores, _, n_pieces = self.values.shape
        out = np.empty((n_scores, n_pieces + 1, n_pieces + 1))
        spread = self.weights * p * (1.0 - p)
        for c in range(n_scores):
            root = np.sqrt(spread[c]).astype(self.values.dtype)
            scaled = self.values[c] * root[:, np.newaxis]
            out[c, :-1, :-1] = scaled.T @ scaled
            out[c, -1, :-1] = out[c, :-1, -1] = root @ scaled
            out[c, -1, -1] = spread[c].sum()
        _, curvature = self._by_group(np.zeros(n_pieces))
        same = self.groups[:, np.newaxis] == self.groups
        out[:, :-1, :-1] -= np.where(same, 2.0 * self.penalty**2 / n_scores**2 / curvature[self.groups], 0.0)
        diagonal = np.arange(n_pieces)
        out[:, diagonal, diagonal] += 2.0 * self.penalty * (1.0 - 1.0 / n_scores + 1.0 / n_scores**2)
        out[:, -1, -1] += 2.0 * BIAS
        return out

    def diagonal(self, p: FloatArray) -> FloatArray:
        """(C, P + 1) the diagonal of ∇²J."""
        n_scores, _, n_pieces = self.values.shape
        out = np.empty((n_scores, n_pieces + 1))
        spread = self.weights * p * (1.0 - p)
        for c in range(n_scores):
            out[c, :-1] = spread[c] @ self.values[c] ** 2
        out[:, -1] = spread.sum(axis=1) + 2.0 * BIAS
        out[:, :-1] += 2.0 * self.penalty * (1.0 - 1.0 / n_scores + 1.0 / n_scores**2)
        return out


# Newton steps --------------------------------------------------------------------------------------------------------


class _Preconditioner:
    """About the inverse of ∇²J among the weights that are free: exact within a score column, or its diagonal."""

    def __init__(self, problem: _Problem, p: FloatArray) -> None:
        self.blocks = problem.blocks(p) if len(problem.groups) <= WIDE else problem.diagonal(p)
        self.free: NDArray[np.bool_] | None = None
        self.inverse = self.blocks
        self.diagonal = self.blocks if self.blocks.ndim == 2 else np.einsum("cpp->cp", self.blocks)

    def restrict(self, free: NDArray[np.bool_]) -> None:
        """To those that are free; others get no direction."""
        if self.free is not None and np.array_equal(free, self.free):
            return
        self.free = free.copy()
        if self.blocks.ndim == 2:
            self.inverse = free / self.blocks
            return
        masked = np.where(free[:, :, np.newaxis] & free[:, np.newaxis], self.blocks, 0.0)
        at = np.arange(free.shape[1])
        masked[:, at, at] += ~free
        self.inverse = np.linalg.inv(masked)
        self.inverse[:, at, at] *= free

    def __call__(self, residual: FloatArray) -> FloatArray:
        out: FloatArray
        if self.blocks.ndim == 2:
            out = self.inverse * residual
        else:
            out = np.matmul(self.inverse, residual[:, :, np.newaxis])[..., 0]
        if len(out) > 1:  # biases that rise together change no probability: at the minimum their sum is 0, so keep it
            out[:, -1] -= out[:, -1].mean()
        return out


def solve(evidence: Evidence, penalty: float, start: Solution | None = None, tol: float = 1e-9) -> Solution:
    """The weights that minimise

    J = Σ_i ω_i·(−log p_{i,y_i}) + λ Σ_pc (w_pc − w̄_p)² + λ Σ_p (w̄_p − g_{group(p)})² + μ Σ_g (g − t)² + ε Σ_c b_c²

    over w ≥ 0, g ≥ 0 and b, where z_ic = offset_ic + b_c + Σ_p w_pc e_ipc, p = softmax(z), or for one column of scores
    p_1 = 1/(1 + exp(−z)); w̄_p is the mean over score columns and t = 1/√P. λ is the penalty. J ends within tol·(1 + J)
    of its minimum.
    """
    problem = _Problem.of(evidence, penalty)
    theta, z, value = _start(problem) if start is None else _resume(problem, start)
    metric: _Preconditioner | None = None
    converged, steps, effort, forcing = False, 0, 0, FORCING
    while steps < STEPS and not converged:
        p = _probabilities(z)
        gradient = problem.gradient(theta, p)
        if metric is None or effort > STALE:
            metric = _Preconditioner(problem, p)
        near = tol * (1.0 + value)
        direction, effort, left = _direction(problem, metric, theta, gradient, p, forcing, 0.1 * near)
        fall = -float((gradient * direction).sum())
        converged = fall + left <= near
        found = _go(problem, theta, z, value, direction, fall)
        if found is None:  # as low as rounding lets us see
            converged = fall + left <= max(near, LOWEST * (1.0 + value))
            break
        theta, z, value = found
        forcing = min(FORCING, max(1e-3, np.sqrt(fall / (1.0 + value))))
        steps += 1
    levels = problem.levels(theta)
    return Solution(theta[:, -1].copy(), np.ascontiguousarray(theta[:, :-1].T), levels, value, steps, converged)


def _resume(problem: _Problem, start: Solution) -> tuple[FloatArray, FloatArray, float]:
    """θ, scores and J where another solution ended."""
    centre = start.bias.mean() if len(start.bias) > 1 else 0.0
    theta = np.column_stack([start.weights.T, start.bias - centre])
    z = problem.offset + _forward(problem.values, theta)
    return theta, z, problem.loss(z) + problem.ridge(theta)


def _start(problem: _Problem) -> tuple[FloatArray, FloatArray, float]:
    """θ, scores and J with all weights at t, or at t/2, t/4, … while J falls.

    Pieces that repeat each other say too much together, and where every p is 0 or 1 there is no curvature to go by.
    """
    theta = np.zeros((len(problem.values), len(problem.groups) + 1))
    theta[:, :-1] = problem.target
    said = _forward(problem.values, theta)
    z = problem.offset + said
    value = problem.loss(z) + problem.ridge(theta)
    for halvings in range(1, HALVINGS):
        scale = 0.5**halvings
        new, new_z = scale * theta, problem.offset + scale * said
        new_value = problem.loss(new_z) + problem.ridge(new)
        if not new_value < value:
            return 2.0 * new, z, value
        z, value = new_z, new_value
    return scale * theta, z, value


def _direction(
    problem: _Problem,
    metric: _Preconditioner,
    theta: FloatArray,
    gradient: FloatArray,
    p: FloatArray,
    forcing: float,
    goal: float,
    bold: bool = True,
) -> tuple[FloatArray, int, float]:
    """To about the minimum of the quadratic model q over weights ≥ 0; the passes it took; what is left to gain.

    A round solves for the weights that are free; those that would fall below 0 end there, and the next round solves
    for the others, knowing that. q falls in every round, so that J falls along the direction.
    """
    weights = np.ones(theta.shape, np.bool_)
    weights[:, -1] = False
    held = weights & (theta * metric.diagonal <= gradient)  # at 0, or where a step of its own would take it there
    moved = np.where(held, -theta, 0.0)
    bent = np.zeros_like(theta)  # ∇²J·d
    passes = 0
    if moved.any():
        bent, passes = problem.curvature(moved, p), 1
    value = float((moved * (gradient + 0.5 * bent)).sum())
    least, deepest = -1.0, 0.0
    for _ in range(ROUNDS):
        slope = gradient + bent  # of q
        metric.restrict(~held)
        energy = float((slope * metric(slope)).sum())
        if least < 0.0:
            least = max(goal, forcing**2 * energy)
        elif energy <= least:
            return moved, passes, energy
        if energy == 0.0:
            return moved, passes, energy
        step, step_bent, used = _conjugate_gradients(problem, metric, ~held, slope, p, least)
        passes += used
        if not (weights & (theta + moved + step < 0.0)).any():
            moved, bent = moved + step, bent + step_bent
            value = float((moved * (gradient + 0.5 * bent)).sum())
            break
        if not deepest:
            deepest = float(((moved + step) * (gradient + 0.5 * (bent + step_bent))).sum())
        for quarters in range(QUARTERS):
            trial = theta + moved + 0.25**quarters * step
            below = weights & (trial <= 0.0)
            trial -= theta
            trial[below] = -theta[below]
            trial_bent = problem.curvature(trial, p)
            passes += 1
            trial_value = float((trial * (gradient + 0.5 * trial_bent)).sum())
            if bold or trial_value < value:
                break
            if T: print('   quarter', quarters, trial_value-value)
        moved, bent, value = trial, trial_bent, trial_value
        held |= below
    if bold and deepest and value > SHARE * deepest:
        if T: print("   careful", value, deepest)
        moved, used, left = _direction(problem, metric, theta, gradient, p, forcing, goal, False)
        return moved, passes + used, left
    return moved, passes, 0.0


def _conjugate_gradients(
    problem: _Problem,
    metric: _Preconditioner,
    free: NDArray[np.bool_],
    slope: FloatArray,
    p: FloatArray,
    least: float,
) -> tuple[FloatArray, FloatArray, int]:
    """The free part of −(∇²J)⁻¹·slope up to an energy of what is left, ∇²J times it, and the passes it took."""
    step, bent = np.zeros_like(slope), np.zeros_like(slope)
    residual = -slope * free
    along = metric(residual)
    energy = float((residual * along).sum())
    for used in range(1, INNER + 1):
        turned = problem.curvature(along, p)
        length = energy / float((along * turned).sum())
        step += length * along
        bent += length * turned
        residual -= length * turned * free
        tilted = metric(residual)
        before, energy = energy, float((residual * tilted).sum())
        if energy <= least:
            break
        along = tilted + (energy / before) * along
    return step, bent, used


def _go(
    problem: _Problem, theta: FloatArray, z: FloatArray, value: float, direction: FloatArray, fall: float
) -> tuple[FloatArray, FloatArray, float] | None:
    """A step along a direction that brings enough of what it promises: scores are linear, so no trial needs a pass."""
    moved = _forward(problem.values, direction)
    step = 1.0
    for _ in range(HALVINGS):
        new = theta + step * direction
        new[:, :-1] = np.maximum(new[:, :-1], 0.0)  # rounding
        new_z = z + step * moved
        new_value = problem.loss(new_z) + problem.ridge(new)
        if new_value <= value - ENOUGH * step * fall + ROUNDING * value:
            return new, new_z, new_value
        # the lowest point of the parabola through what is known
        bottom = step**2 * fall / (2.0 * (new_value - value + step * fall))
        step = min(max(bottom, 0.1 * step), 0.5 * step) if np.isfinite(bottom) else 0.1 * step
    return None
