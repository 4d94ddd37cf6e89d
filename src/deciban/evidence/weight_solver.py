"""Non-negative weights of evidence, by a convex fit: projected Newton with conjugate gradients."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from deciban.evidence.weight_objective import Evidence, Problem, Solution, forward, probabilities
from deciban.types import BoolArray, FloatArray

STEPS = 200  # Newton steps at most; five are usual
ROUNDS = 12  # of clipping weights that would become negative, within a step
INNER = 100  # conjugate gradient iterations of a round at most
STALE = 16  # passes of a step from which a new preconditioner is worth its cost of about eight passes
WIDE = 400  # pieces up to which the preconditioner has their curvature as a full matrix
FORCING = 0.1  # relative tolerance of a Newton step, at first
FINEST = 1e-6  # and at last; its square, of J: then the weights, too, hardly depend on the path
SHARE = 0.01  # of the decrease without bounds: if clipping achieves less, smaller steps are taken
SMALL = 1e-3  # of the largest weight: those below are treated as 0
ENOUGH = 1e-4  # Armijo: the share of the predicted decrease that a step must achieve
HALVINGS = 40  # of a step at most
QUARTERS = 12  # of a clipped step at most: each tries a quarter of the last
SHRINKS = 10  # halvings of the weights before the first step at most
ROUNDING = 1e-13  # of J: changes below it are rounding
LOWEST = 1e-8  # of J: if no step decreases J, and the model predicts no more than this, it is the minimum


def solve(evidence: Evidence, penalty: float, start: Solution | None = None, tol: float = 1e-9) -> Solution:
    """The weights that minimise

    J = Σ_i ω_i·(−log p_{i,y_i}) + λ Σ_pc (w_pc − w̄_p)² + λ Σ_p (w̄_p − g_{group(p)})² + μ Σ_g (g − t)² + ε Σ_c b_c²

    over w ≥ 0, g ≥ 0 and b, where z_ic = offset_ic + b_c + Σ_p w_pc e_ipc and p = softmax(z), or p_1 = 1/(1 + exp(−z))
    for one column of scores; w̄_p is the mean over the score columns, t = 1/√P and λ > 0 the penalty. J ends within
    tol·(1 + J) of its minimum; rounding of float32 evidence adds some 1e-9 to J, and less to the weights.

    Each Newton step minimises the quadratic model of J over w ≥ 0, by passes over the evidence; a line search follows.
    """
    problem = Problem.of(evidence, penalty)
    theta, z, value = _start(problem) if start is None else _resume(problem, start)
    metric: _Preconditioner | None = None
    converged, steps, passes, forcing = False, 0, 0, FORCING
    while steps < STEPS and not converged:
        p = probabilities(z)
        if metric is None or passes > STALE:
            metric = _Preconditioner(problem, p)
        model = _Model(problem, metric, theta, p, problem.gradient(theta, p))
        near = max(tol, ROUNDING) * (1.0 + value)
        move = model.minimum(forcing, FINEST**2 * near)
        decrease, passes = -float((model.gradient * move.direction).sum()), move.passes
        # a small decrease is no proof of convergence if the step was solved roughly
        converged = decrease + move.remaining <= near and forcing**2 * decrease <= FINEST**2 * near
        step = _line_search(problem, theta, z, value, move.direction, decrease) if decrease > 0.0 else None
        if step is None:
            converged = decrease + move.remaining <= max(near, LOWEST * (1.0 + value))
            break
        theta, z, value = step
        forcing = min(FORCING, max(FINEST, np.sqrt(decrease / (1.0 + value))))  # Newton is fast only when exact
        steps += 1
    weights, levels = np.ascontiguousarray(theta[:, :-1].T), problem.levels(theta)
    return Solution(theta[:, -1].copy(), weights, levels, value, steps, converged)


def _resume(problem: Problem, start: Solution) -> tuple[FloatArray, FloatArray, float]:
    """θ, scores and J of another solution."""
    centre = start.bias.mean() if len(start.bias) > 1 else 0.0
    theta = np.column_stack([start.weights.T, start.bias - centre])
    z = problem.offset + forward(problem.values, theta)
    return theta, z, problem.loss(z) + problem.ridge(theta)


def _start(problem: Problem) -> tuple[FloatArray, FloatArray, float]:
    """θ, scores and J with all weights at t, or at t/2, t/4, … while J decreases.

    Correlated pieces are overconfident together, and if every p is 0 or 1 there is no curvature.
    """
    theta = np.zeros((len(problem.values), len(problem.groups) + 1))
    theta[:, :-1] = problem.target
    evidence = forward(problem.values, theta)
    z = problem.offset + evidence
    value = problem.loss(z) + problem.ridge(theta)
    for _ in range(SHRINKS):
        evidence *= 0.5
        new, new_z = 0.5 * theta, problem.offset + evidence
        new_value = problem.loss(new_z) + problem.ridge(new)
        if not new_value < value:
            break
        theta, z, value = new, new_z, new_value
    return theta, z, value


def _line_search(
    problem: Problem, theta: FloatArray, z: FloatArray, value: float, direction: FloatArray, decrease: float
) -> tuple[FloatArray, FloatArray, float] | None:
    """A step that achieves enough of the predicted decrease. Scores are linear: no trial needs a pass."""
    moved = forward(problem.values, direction)
    step = 1.0
    for _ in range(HALVINGS):
        new = theta + step * direction
        new[:, :-1] = np.maximum(new[:, :-1], 0.0)  # rounding
        new_z = z + step * moved
        new_value = problem.loss(new_z) + problem.ridge(new)
        if new_value <= value - ENOUGH * step * decrease + ROUNDING * value:
            return new, new_z, new_value
        # the minimum of the parabola through both values and the slope
        lowest = step**2 * decrease / (2.0 * (new_value - value + step * decrease))
        step = min(max(lowest, 0.1 * step), 0.5 * step) if np.isfinite(lowest) else 0.1 * step
    return None


class _Preconditioner:
    """About the inverse of ∇²J for the free weights: exact within a score column, or that of the diagonal."""

    def __init__(self, problem: Problem, p: FloatArray) -> None:
        self._blocks = problem.blocks(p) if len(problem.groups) <= WIDE else None
        self.diagonal = problem.diagonal(p) if self._blocks is None else np.einsum("cpp->cp", self._blocks)
        self.stretch = 1.0  # the largest ratio of its curvature to ∇²J that was seen
        self._free: BoolArray = np.zeros(self.diagonal.shape, np.bool_)
        self._inverse = np.zeros_like(self.diagonal if self._blocks is None else self._blocks)

    def restrict(self, free: BoolArray) -> None:
        """Restricts it to the free weights; the others do not move."""
        if self._blocks is None:
            self._inverse = free / self.diagonal
            return
        for c in np.flatnonzero((free != self._free).any(axis=1)):
            square = np.ix_(np.flatnonzero(free[c]), np.flatnonzero(free[c]))
            self._inverse[c] = 0.0
            self._inverse[c][square] = np.linalg.inv(self._blocks[c][square])
        self._free = free.copy()

    def __call__(self, residual: FloatArray) -> FloatArray:
        out: FloatArray
        if self._blocks is None:
            out = self._inverse * residual
        else:
            out = np.matmul(self._inverse, residual[:, :, np.newaxis])[..., 0]
        if len(out) > 1:  # a common change of biases changes no probability: their sum stays 0
            out[:, -1] -= out[:, -1].mean()
        return out


@dataclass(frozen=True)
class _Move:
    direction: FloatArray  # (C, P + 1)
    passes: int  # over the evidence, forward and back
    remaining: float  # about twice the decrease that remains after it


@dataclass(frozen=True)
class _Model:
    """q(d) = ∇J·d + d·∇²J·d/2 about θ."""

    problem: Problem
    metric: _Preconditioner
    theta: FloatArray
    p: FloatArray  # (C, n)
    gradient: FloatArray

    def minimum(self, forcing: float, goal: float) -> _Move:
        """About the minimum of q over weights ≥ 0: until the residual falls by forcing² or to the goal.

        A round solves for the free weights. Those that would become negative are fixed at 0, and the next round solves
        for the others. If pieces almost repeat each other this may end higher than it began; then rounds take shorter
        steps, so that q decreases in each.
        """
        value, unbounded, move = self._rounds(forcing, goal, bold=True)
        if value > SHARE * unbounded:
            _, _, careful = self._rounds(forcing, goal, bold=False)
            return replace(careful, passes=move.passes + careful.passes)
        return move

    def _rounds(self, forcing: float, goal: float, bold: bool) -> tuple[float, float, _Move]:
        """q where the rounds end, q where the first would end if weights could be negative, and the move."""
        theta, metric = self.theta, self.metric
        lowest = -theta
        lowest[:, -1] = -np.inf
        # at 0, or so close that its own diagonal step would end there
        fixed = (theta * metric.diagonal <= self.gradient) & (lowest >= -SMALL * theta[:, :-1].max(initial=0.0))
        moved, curved = np.where(fixed, -theta, 0.0), np.zeros_like(theta)  # d and ∇²J·d
        passes = 0
        if moved.any():
            curved, passes = self._curve(moved), 1
        relative = unbounded = remaining = 0.0
        for round_ in range(ROUNDS):
            slope = self.gradient + curved
            metric.restrict(~fixed)
            energy = float((slope * metric(slope)).sum())
            if round_ == 0:
                relative = forcing**2 * energy
            if energy <= (relative if round_ else 0.0):
                break
            step, step_curved, used = self._conjugate_gradients(~fixed, slope, relative, goal)
            passes += used
            if round_ == 0:
                unbounded = self._value(moved + step, curved + step_curved)
            if (moved + step >= lowest).all():
                moved, curved = moved + step, curved + step_curved
                break
            value, tries = np.inf if bold else self._value(moved, curved), 0
            while tries < QUARTERS:
                new = np.maximum(moved + 0.25**tries * step, lowest)
                new_curved = self._curve(new)
                tries += 1
                if self._value(new, new_curved) < value:
                    moved, curved = new, new_curved
                    break
            else:
                remaining = energy
                break
            passes += tries
            fixed |= moved == lowest
        slope = self.gradient + curved
        remaining += float((slope**2 / metric.diagonal)[fixed & (slope < 0.0)].sum())
        return self._value(moved, curved), unbounded, _Move(moved, passes, metric.stretch * remaining)

    def _conjugate_gradients(
        self, free: BoolArray, slope: FloatArray, relative: float, goal: float
    ) -> tuple[FloatArray, FloatArray, int]:
        """The step of the free weights to where the gradient vanishes, ∇²J times it, and the passes it took."""
        step, step_curved = np.zeros_like(slope), np.zeros_like(slope)
        residual = -slope * free
        direction = self.metric(residual)
        energy = float((residual * direction).sum())
        used = 0
        while used < INNER:
            used += 1
            curved = self._curve(direction)
            length = energy / float((direction * curved).sum())
            self.metric.stretch = max(self.metric.stretch, length)
            step += length * direction
            step_curved += length * curved
            residual -= length * curved * free
            preconditioned = self.metric(residual)
            before, energy = energy, float((residual * preconditioned).sum())
            if energy <= relative or energy * self.metric.stretch <= goal:
                break
            direction = preconditioned + (energy / before) * direction
        return step, step_curved, used

    def _curve(self, direction: FloatArray) -> FloatArray:
        """∇²J·direction."""
        return self.problem.curvature(direction, self.p)

    def _value(self, moved: FloatArray, curved: FloatArray) -> float:
        """q(d), with ∇²J·d."""
        return float((moved * (self.gradient + 0.5 * curved)).sum())
