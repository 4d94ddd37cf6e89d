"""Non-negative weights of evidence, by a convex fit: projected Newton with conjugate gradients."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from deciban.types import FloatArray
from deciban.weighing.objective import Evidence, Problem, Solution, forward, probabilities

STEPS = 200  # Newton steps at most; five are usual
ROUNDS = 12  # of cutting off weights that would fall below 0, within a step
INNER = 100  # conjugate gradients of a round at most
STALE = 16  # passes of a step from which on a preconditioner made anew is worth its price, some eight passes
WIDE = 400  # pieces up to which the preconditioner knows how they go together
FORCING = 0.1  # how exactly a Newton step is solved for, at first
FINEST = 1e-6  # and at last; its square, of J: then the weights, too, hardly depend on the way that led to them
SHARE = 0.01  # of the fall that weights below 0 would bring: where less is left, they were cut off too boldly
SMALL = 1e-3  # of the largest weight: those below are at 0 as good as
ENOUGH = 1e-4  # Armijo: the part of the promised fall that a step must bring
HALVINGS = 40  # of a step at most
QUARTERS = 12  # of a careful cut at most
SHRINKS = 10  # halvings of the weights before the first step at most
ROUNDING = 1e-13  # of J: less is not seen
LOWEST = 1e-8  # of J: where no step brings a fall that is seen, and no more than this is promised, this is the minimum


def solve(evidence: Evidence, penalty: float, start: Solution | None = None, tol: float = 1e-9) -> Solution:
    """The weights that minimise

    J = Σ_i ω_i·(−log p_{i,y_i}) + λ Σ_pc (w_pc − w̄_p)² + λ Σ_p (w̄_p − g_{group(p)})² + μ Σ_g (g − t)² + ε Σ_c b_c²

    over w ≥ 0, g ≥ 0 and b, where z_ic = offset_ic + b_c + Σ_p w_pc e_ipc and p = softmax(z), or p_1 = 1/(1 + exp(−z))
    for one column of scores; w̄_p is the mean over the score columns, t = 1/√P and λ > 0 the penalty. J ends within
    tol·(1 + J) of its minimum; rounding of float32 evidence adds some 1e-9 to what is told of J, and less to its place.

    Each Newton step minimises the quadratic model of J over w ≥ 0, by passes over the evidence, and goes towards that.
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
        fall, passes = -float((model.gradient * move.direction).sum()), move.passes
        # a step near the minimum tells of little to gain also where it was solved for roughly, and so ends elsewhere
        converged = fall + move.left <= near and forcing**2 * fall <= FINEST**2 * near
        found = _go(problem, theta, z, value, move.direction, fall) if fall > 0.0 else None
        if found is None:
            converged = fall + move.left <= max(near, LOWEST * (1.0 + value))
            break
        theta, z, value = found
        forcing = min(FORCING, max(FINEST, np.sqrt(fall / (1.0 + value))))  # Newton is fast only when exact
        steps += 1
    weights, levels = np.ascontiguousarray(theta[:, :-1].T), problem.levels(theta)
    return Solution(theta[:, -1].copy(), weights, levels, value, steps, converged)


def _resume(problem: Problem, start: Solution) -> tuple[FloatArray, FloatArray, float]:
    """θ, scores and J where another solution ended."""
    centre = start.bias.mean() if len(start.bias) > 1 else 0.0
    theta = np.column_stack([start.weights.T, start.bias - centre])
    z = problem.offset + forward(problem.values, theta)
    return theta, z, problem.loss(z) + problem.ridge(theta)


def _start(problem: Problem) -> tuple[FloatArray, FloatArray, float]:
    """θ, scores and J with all weights at t, or at t/2, t/4, … while J falls.

    Pieces that repeat each other say too much together, and where every p is 0 or 1 there is no curvature to go by.
    """
    theta = np.zeros((len(problem.values), len(problem.groups) + 1))
    theta[:, :-1] = problem.target
    said = forward(problem.values, theta)
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
    problem: Problem, theta: FloatArray, z: FloatArray, value: float, direction: FloatArray, fall: float
) -> tuple[FloatArray, FloatArray, float] | None:
    """A step along a direction that brings enough of the fall it promises. Scores are linear: no trial needs a pass."""
    moved = forward(problem.values, direction)
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

    def __init__(self, problem: Problem, p: FloatArray) -> None:
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

    problem: Problem
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
