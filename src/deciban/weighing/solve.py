"""Non-negative weights of evidence, by a convex fit: projected Newton with conjugate gradients."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from deciban.types import FloatArray, IntArray, Labels

LEVEL = 0.3  # μ: the level of a group is held to t about as much as to one piece at λ = 0.3, so that data soon decide
BIAS = 1e-3  # ε: enough that the bias of a class without rows is finite, and too little to be felt with rows
STEPS = 200  # Newton steps at most; five are usual
ROUNDS = 12  # of cutting off weights that would fall below 0, within a step
INNER = 100  # conjugate gradients of a round at most
STALE = 16  # passes of a step from which on a preconditioner made anew is worth its price, some eight passes
WIDE = 400  # pieces up to which the preconditioner knows how they go together
FORCING = 0.1  # how exactly a Newton step is solved for, at first
FINEST = 1e-6  # and at last: then the weights, too, hardly depend on the way that led to them
SHARE = 0.01  # of the fall that weights below 0 would bring: where less is left, they were cut off too boldly
SMALL = 1e-3  # of the largest weight: those below are at 0 as good as
ENOUGH = 1e-4  # Armijo: the part of the promised fall that a step must bring
HALVINGS = 40  # of a step at most
QUARTERS = 12  # of a careful cut at most
SHRINKS = 10  # halvings of the weights before the first step at most
ROUNDING = 1e-13  # of J: less is not seen
PENALTIES = (300.0, 30.0, 3.0, 0.3)
LITTLE = 1e-3  # what is left of a row's curvature without it, at least
ROUGH = 1e-5  # tol where penalties are compared: they differ by more
LOWEST = 1e-8  # of J: where no step brings a fall that is seen, and no more than this is promised, this is the minimum


@dataclass(frozen=True)
class Evidence:
    """Rows to weigh: what each of P pieces says of each class, in C score columns (1 for two classes)."""

    values: NDArray[Any]  # (C, n, P) float32 or float64, centred over the classes; C = 1: class 1 less class 0
    offset: FloatArray  # (n, C) log prior, and anything else that is not weighed
    labels: Labels  # (n)
    weights: FloatArray | None  # (n)
    groups: IntArray  # (P) the group of each piece, 0 … G−1

    def take(self, rows: NDArray[Any]) -> Evidence:
        """Some of the rows, by their places or by a mask."""
        if rows.dtype == np.bool_:
            rows = np.flatnonzero(rows)
        weights = None if self.weights is None else self.weights[rows]
        values = np.take(self.values, rows, axis=1)  # contiguous, as values[:, rows] is not
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
    evidence: Evidence, penalties: tuple[float, ...] = PENALTIES
) -> tuple[float, Solution, dict[float, float]]:
    """The penalty λ to weigh with, its weights (roughly), and the mean log-loss of each λ tried, on left-out rows.

    From the strong to the weak, each started where the one before ended, until the loss rises. The strongest is taken
    whose loss is not above the least by more than one standard error of the difference (Breiman et al. 1984).
    """
    solutions: dict[float, Solution] = {}
    losses: dict[float, FloatArray] = {}
    weight = np.ones(len(evidence.labels)) if evidence.weights is None else evidence.weights
    total = max(float(weight.sum()), 1e-300)
    solution: Solution | None = None
    for penalty in sorted(penalties, reverse=True):
        solution = solutions[penalty] = solve(evidence, penalty, solution, tol=ROUGH)
        losses[penalty] = _surprise(left_out_scores(evidence, penalty, solution).T, evidence.labels)
        so_far = [float(weight @ loss) / total for loss in losses.values()]
        if so_far[-1] > min(so_far):
            break
    means = {penalty: float(weight @ loss) / total for penalty, loss in losses.items()}
    best = min(means, key=means.__getitem__)
    for penalty, loss in losses.items():
        apart, mean = loss - losses[best], means[penalty] - means[best]
        if mean <= np.sqrt(max(float(weight @ apart**2) / total - mean**2, 0.0) / total):
            return penalty, solutions[penalty], means
    return best, solutions[best], means


def left_out_scores(evidence: Evidence, penalty: float, solution: Solution) -> FloatArray:
    """(n, C) scores of each row by weights that are learned from all the others, to the first order.

    z + h·r/(1 − h·p(1 − p)), with r = p − [c = y], and h = x·H⁻¹x of the weights that are not 0 (and the bias), H being
    ∇²J within a score column. (Rad & Maleki 2020; other columns are taken to stay.)
    """
    problem = _Problem.of(evidence, penalty)
    z = scores(evidence, solution).T
    p = _probabilities(z)
    hessian = problem.blocks(p)
    leaves = np.minimum(problem.weights, 1.0)  # a row of weight 2 is two rows
    out = z.copy()
    for c in range(len(z)):
        free = np.append(solution.weights[:, c] > 0, True)
        x = np.column_stack([evidence.values[c], np.ones(len(z[c]))])[:, free]
        root = np.linalg.cholesky(hessian[c][np.ix_(free, free)])
        whitened = solve_triangular(root, x.T.astype(np.float64), lower=True, check_finite=False)
        h = leaves * np.einsum("ij,ij->j", whitened, whitened)
        truth = evidence.labels == (1 if len(z) == 1 else c)
        out[c] += h * (p[c] - truth) / np.maximum(1.0 - h * p[c] * (1.0 - p[c]), LITTLE)
    return out.T


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
    result: FloatArray
    if len(z) == 1:
        result = np.logaddexp(0.0, np.where(labels == 1, -z[0], z[0]))
    else:
        top = z.max(axis=0)
        result = np.log(np.exp(z - top).sum(axis=0)) + top - z[labels, np.arange(len(labels))]
    return result


def _probabilities(z: FloatArray) -> FloatArray:
    """(C, n) p of scores (C, n)."""
    p: FloatArray
    if len(z) == 1:
        p = 0.5 + 0.5 * np.tanh(0.5 * z)
    else:
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
        return float(max(1, len(self.groups)) ** -0.5)

    def _by_group(self, of_pieces: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(G) sums over each group, and λ|g| + μ."""
        total = np.bincount(self.groups, of_pieces).astype(np.float64)
        size = np.bincount(self.groups).astype(np.float64)
        return total, self.penalty * size + LEVEL

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
        # rounding must not take the least eigenvalue below 0
        rounding = np.finfo(self.values.dtype).eps * np.trace(out, axis1=1, axis2=2)
        out += rounding[:, np.newaxis, np.newaxis] * np.eye(n_pieces + 1)
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


def solve(evidence: Evidence, penalty: float, start: Solution | None = None, tol: float = 1e-9) -> Solution:
    """The weights that minimise

    J = Σ_i ω_i·(−log p_{i,y_i}) + λ Σ_pc (w_pc − w̄_p)² + λ Σ_p (w̄_p − g_{group(p)})² + μ Σ_g (g − t)² + ε Σ_c b_c²

    over w ≥ 0, g ≥ 0 and b, where z_ic = offset_ic + b_c + Σ_p w_pc e_ipc and p = softmax(z), or p_1 = 1/(1 + exp(−z))
    for one column of scores; w̄_p is the mean over the score columns, t = 1/√P and λ > 0 the penalty. J ends within
    tol·(1 + J) of its minimum; rounding of float32 evidence adds some 1e-9 to what is told of J, and less to its place.

    Each Newton step minimises the quadratic model of J over w ≥ 0, by passes over the evidence, and goes towards that.
    """
    problem = _Problem.of(evidence, penalty)
    theta, z, value = _start(problem) if start is None else _resume(problem, start)
    metric: _Preconditioner | None = None
    converged, steps, passes, forcing = False, 0, 0, FORCING
    while steps < STEPS and not converged:
        p = _probabilities(z)
        if metric is None or passes > STALE:
            metric = _Preconditioner(problem, p)
        model = _Model(problem, metric, theta, p, problem.gradient(theta, p))
        near = max(tol, ROUNDING) * (1.0 + value)
        move = model.minimum(forcing, FINEST * near)
        fall, passes = -float((model.gradient * move.direction).sum()), move.passes
        converged = fall + move.left <= near
        found = _go(problem, theta, z, value, move.direction, fall) if fall > 0.0 else None
        if found is None:
            converged = fall + move.left <= max(near, LOWEST * (1.0 + value))
            break
        theta, z, value = found
        forcing = min(FORCING, max(FINEST, np.sqrt(fall / (1.0 + value))))  # Newton is fast only when exact
        steps += 1
    weights, levels = np.ascontiguousarray(theta[:, :-1].T), problem.levels(theta)
    return Solution(theta[:, -1].copy(), weights, levels, value, steps, converged)


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
    for _ in range(SHRINKS):
        said *= 0.5
        new, new_z = 0.5 * theta, problem.offset + said
        new_value = problem.loss(new_z) + problem.ridge(new)
        if not new_value < value:
            break
        theta, z, value = new, new_z, new_value
    return theta, z, value


def _go(
    problem: _Problem, theta: FloatArray, z: FloatArray, value: float, direction: FloatArray, fall: float
) -> tuple[FloatArray, FloatArray, float] | None:
    """A step along a direction that brings enough of the fall it promises. Scores are linear: no trial needs a pass."""
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


class _Preconditioner:
    """About the inverse of ∇²J among the weights that are free: exact within a score column, or the diagonal's."""

    def __init__(self, problem: _Problem, p: FloatArray) -> None:
        self._blocks = problem.blocks(p) if len(problem.groups) <= WIDE else None
        self.diagonal = problem.diagonal(p) if self._blocks is None else np.einsum("cpp->cp", self._blocks)
        self.stretch = 1.0  # how many times softer ∇²J is, where that was seen
        self._free: NDArray[np.bool_] = np.zeros(self.diagonal.shape, np.bool_)
        self._inverse = np.zeros_like(self.diagonal if self._blocks is None else self._blocks)

    def restrict(self, free: NDArray[np.bool_]) -> None:
        """To those that are free; the others are given no direction."""
        if self._blocks is None:
            self._inverse = free / self.diagonal
            return
        for c in np.flatnonzero((free != self._free).any(axis=1)):
            places = np.flatnonzero(free[c])
            self._inverse[c] = 0.0
            self._inverse[c][np.ix_(places, places)] = np.linalg.inv(self._blocks[c][np.ix_(places, places)])
        self._free = free.copy()

    def __call__(self, residual: FloatArray) -> FloatArray:
        out: FloatArray
        if self._blocks is None:
            out = self._inverse * residual
        else:
            out = np.matmul(self._inverse, residual[:, :, np.newaxis])[..., 0]
        if len(out) > 1:  # biases that rise together change no probability: their sum is 0 and stays so
            out[:, -1] -= out[:, -1].mean()
        return out


@dataclass(frozen=True)
class _Move:
    direction: FloatArray  # (C, P + 1)
    passes: int  # over the evidence, there and back
    left: float  # about twice what it leaves to be gained


@dataclass(frozen=True)
class _Model:
    """q(d) = ∇J·d + d·∇²J·d/2 about θ."""

    problem: _Problem
    metric: _Preconditioner
    theta: FloatArray
    p: FloatArray  # (C, n)
    gradient: FloatArray

    def minimum(self, forcing: float, goal: float) -> _Move:
        """To about the least q over weights ≥ 0: until what is left falls by forcing² or to the goal.

        A round solves for the weights that are free. Those that would fall below 0 are cut off there, and the next
        round solves for the others, knowing that. Where pieces all but repeat each other this may end higher than it
        began; then only so much is cut off at a time that q falls.
        """
        value, deepest, move = self._rounds(forcing, goal, bold=True)
        if value > SHARE * deepest:
            _, _, careful = self._rounds(forcing, goal, bold=False)
            return replace(careful, passes=move.passes + careful.passes)
        return move

    def _rounds(self, forcing: float, goal: float, bold: bool) -> tuple[float, float, _Move]:
        """q where the rounds end, q where the first would end could weights be negative, and the move."""
        theta, metric = self.theta, self.metric
        lowest = -theta
        lowest[:, -1] = -np.inf
        # at 0, or all but there and a step of its own would take it there
        held = (theta * metric.diagonal <= self.gradient) & (lowest >= -SMALL * theta[:, :-1].max(initial=0.0))
        moved, bent = np.where(held, -theta, 0.0), np.zeros_like(theta)  # d and ∇²J·d
        passes = 0
        if moved.any():
            bent, passes = self._bend(moved), 1
        relative = deepest = left = 0.0
        for round_ in range(ROUNDS):
            slope = self.gradient + bent
            metric.restrict(~held)
            energy = float((slope * metric(slope)).sum())
            if round_ == 0:
                relative = forcing**2 * energy
            if energy <= (relative if round_ else 0.0):
                break
            step, step_bent, used = self._conjugate_gradients(~held, slope, relative, goal)
            passes += used
            if round_ == 0:
                deepest = self._value(moved + step, bent + step_bent)
            if (moved + step >= lowest).all():
                moved, bent = moved + step, bent + step_bent
                break
            value, tries = np.inf if bold else self._value(moved, bent), 0
            while tries < QUARTERS:
                new = np.maximum(moved + 0.25**tries * step, lowest)
                new_bent = self._bend(new)
                tries += 1
                if self._value(new, new_bent) < value:
                    moved, bent = new, new_bent
                    break
            else:
                left = energy
                break
            passes += tries
            held |= moved == lowest
        slope = self.gradient + bent
        left += float((slope**2 / metric.diagonal)[held & (slope < 0.0)].sum())
        return self._value(moved, bent), deepest, _Move(moved, passes, metric.stretch * left)

    def _conjugate_gradients(
        self, free: NDArray[np.bool_], slope: FloatArray, relative: float, goal: float
    ) -> tuple[FloatArray, FloatArray, int]:
        """The step of the free weights to where the slope vanishes, ∇²J times it, and the passes it took."""
        step, bent = np.zeros_like(slope), np.zeros_like(slope)
        residual = -slope * free
        along = self.metric(residual)
        energy = float((residual * along).sum())
        used = 0
        while used < INNER:
            used += 1
            turned = self._bend(along)
            length = energy / float((along * turned).sum())
            self.metric.stretch = max(self.metric.stretch, length)
            step += length * along
            bent += length * turned
            residual -= length * turned * free
            tilted = self.metric(residual)
            before, energy = energy, float((residual * tilted).sum())
            if energy <= relative or energy * self.metric.stretch <= goal:
                break
            along = tilted + (energy / before) * along
        return step, bent, used

    def _bend(self, direction: FloatArray) -> FloatArray:
        return self.problem.curvature(direction, self.p)

    def _value(self, moved: FloatArray, bent: FloatArray) -> float:
        return float((moved * (self.gradient + 0.5 * bent)).sum())
