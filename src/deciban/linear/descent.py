"""One descent for all solvers: a direction from the curvature, a step that is sure to go down, a path to look at.

With the Hessian made anew at every point it is Newton's method; with a fixed curvature and memory it is
preconditioned L-BFGS; with a multiple of the identity it is gradient descent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from deciban.errors import DecibanError
from deciban.table import Table
from deciban.types import FloatArray

ENOUGH = 1e-4  # of the decrease that the slope promises (Armijo)
HALVINGS = 40
VANISHED = 1e-12  # of J at the start: what a perfect fit leaves is rounding
FLAT = 1e-8  # of the gradient at the start: what is left of it at the end
ROUNDING = 1e-15  # of J, here or at the start: differences below are no evidence of going up


@dataclass(frozen=True)
class Step:
    """One iteration: J and the length of its gradient where it began, and the step taken from there; 0 at the end."""

    objective: float
    gradient_norm: float
    step: float


@dataclass(frozen=True)
class Solution:
    """Where the descent ended."""

    theta: FloatArray
    objective: float
    path: tuple[Step, ...]
    converged: bool
    stopped: bool = False  # by who watched

    def table(self, title: str) -> Table:
        """The path, for people and plots."""
        rows = tuple((i, step.objective, step.gradient_norm, step.step) for i, step in enumerate(self.path))
        return Table(title, ("iteration", "objective", "gradient_norm", "step"), rows)


class Curvature(Protocol):
    def solve(self, gradient: FloatArray) -> FloatArray:
        """P⁻¹g."""


Evaluate = Callable[[FloatArray], tuple[float, FloatArray]]


def descend(
    evaluate: Evaluate,
    start: FloatArray,
    curvature: Callable[[FloatArray], Curvature],
    *,
    anew: bool,
    memory: int,
    tol: float,
    max_iter: int,
    watch: Callable[[int, FloatArray], bool] = lambda iteration, theta: False,
    known: tuple[float, FloatArray] | None = None,
) -> Solution:
    """Minimises a convex J: θ ← θ − t·P⁻¹∇J, t = 1 or halved until J falls enough.

    `curvature` gives P at a point: at every one if `anew`, else at the start only, and `memory` pairs of steps and
    gradient changes then correct it (L-BFGS). It ends when half of ∇Jᵀ P⁻¹ ∇J, what a whole step would gain if J were
    quadratic, is below tol·J (or J has all but vanished); that last step is still taken. `watch` is asked before each
    iteration whether to stop; `known` are J and its gradient at the start, if they are. Where P is flat and the
    gradient is not, nothing can be done: it has not converged.

    >>> quadratic = lambda x: (float(x @ x) / 2, x)
    >>> from deciban.linear.curvature import Diagonal
    >>> descend(quadratic, np.ones(2), lambda x: Diagonal(np.ones(2)), anew=True, memory=0, tol=1e-9, max_iter=9).theta
    array([0., 0.])
    """
    theta = start
    value, gradient = evaluate(theta) if known is None else known
    if not np.isfinite(value):
        raise DecibanError("the start is outside the domain of the response, or too far away for numbers")
    height, steep = abs(value), _length(gradient)
    metric = curvature(theta)
    pairs: deque[tuple[FloatArray, FloatArray]] = deque(maxlen=max(1, memory))
    path: list[Step] = []
    converged = False
    for iteration in range(max_iter):
        if watch(iteration, theta):
            return Solution(theta, value, (*path, Step(value, _length(gradient), 0.0)), False, stopped=True)
        if anew and iteration:
            metric = curvature(theta)
        direction = -_corrected(metric, gradient, pairs if memory else ())
        slope = float((gradient * direction).sum())
        gain = -0.5 * slope
        if not gain > 0.0:
            converged = _length(gradient) <= FLAT * steep
            break
        found = _go(evaluate, theta, value, direction, slope, ROUNDING * max(abs(value), height))
        if found is None:  # nothing lower within rounding
            converged = gain <= max(1e-8 * abs(value), VANISHED * height)
            break
        step, new, new_value, new_gradient = found
        path.append(Step(value, _length(gradient), step))
        converged = gain <= tol * max(abs(value), VANISHED * height)
        if memory:
            _remember(pairs, new - theta, new_gradient - gradient)
        theta, value, gradient = new, new_value, new_gradient
        if converged:
            break
    path.append(Step(value, _length(gradient), 0.0))
    return Solution(theta, value, tuple(path), converged)


def _length(gradient: FloatArray) -> float:
    return float(np.sqrt((gradient**2).sum()))


def _go(
    evaluate: Evaluate, theta: FloatArray, value: float, direction: FloatArray, slope: float, rounding: float
) -> tuple[float, FloatArray, float, FloatArray] | None:
    step = 1.0
    for _ in range(HALVINGS):
        new = theta + step * direction
        new_value, gradient = evaluate(new)
        if new_value <= value + ENOUGH * step * slope + rounding:
            return step, new, new_value, gradient
        if np.isfinite(new_value):  # the lowest point of the parabola through what is known
            bottom = -slope * step**2 / (2.0 * (new_value - value - step * slope))
            step = min(max(bottom, 0.1 * step), 0.5 * step)
        else:
            step *= 0.5
    return None


def _remember(pairs: deque[tuple[FloatArray, FloatArray]], moved: FloatArray, changed: FloatArray) -> None:
    if float((moved * changed).sum()) > 1e-12 * _length(moved) * _length(changed):
        pairs.append((moved, changed))


def _corrected(
    metric: Curvature, gradient: FloatArray, pairs: deque[tuple[FloatArray, FloatArray]] | tuple[()]
) -> FloatArray:
    """P⁻¹g corrected by what was seen of the curvature: the two loops of L-BFGS."""
    rest = gradient
    shares = []
    for moved, changed in reversed(pairs):
        inner = float((moved * changed).sum())
        share = float((moved * rest).sum()) / inner
        shares.append((share, inner))
        rest = rest - share * changed
    result = metric.solve(rest)
    if pairs:
        moved, changed = pairs[-1]
        result = result * (float((moved * changed).sum()) / float((changed * metric.solve(changed)).sum()))
    for (moved, changed), (share, inner) in zip(pairs, reversed(shares), strict=True):
        result = result + (share - float((changed * result).sum()) / inner) * moved
    return result
