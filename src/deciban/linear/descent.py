"""One descent for all solvers: a direction from the curvature, a backtracking line search, and the path.

With the Hessian at every point it is Newton's method; with a fixed curvature and memory it is preconditioned L-BFGS;
with a multiple of the identity it is gradient descent.
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

ARMIJO = 1e-4  # the least share of the decrease that the slope predicts
MAX_HALVINGS = 40
VANISHED = 1e-12  # of J at the start: below, a fit is perfect up to rounding
FLAT = 1e-8  # of the gradient at the start: below, the gradient has vanished
ROUNDING = 1e-15  # of J, here or at the start: smaller increases are rounding


@dataclass(frozen=True)
class Step:
    """One iteration: J and the norm of its gradient at its start, and the step size; 0 at the end."""

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
    stopped: bool = False  # by `watch`

    def table(self, title: str) -> Table:
        """The path as a table."""
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
    memory: int,
    tol: float,
    max_iter: int,
    watch: Callable[[int, FloatArray], bool] = lambda iteration, theta: False,
    initial: tuple[float, FloatArray] | None = None,
) -> Solution:
    """Minimises a convex J: θ ← θ − t·P⁻¹∇J, with t = 1 or shortened until J falls enough.

    `curvature` gives P at a point; the last `memory` steps and gradient changes correct it (L-BFGS). The descent ends
    when ½ ∇Jᵀ P⁻¹ ∇J, the decrease of a full step if J were quadratic, is below tol·J (or J has all but vanished);
    that last step is still taken. `watch` is called before each iteration and stops the descent by returning True;
    `initial` are J and its gradient at the start, if known. A gradient in a flat direction of P means no convergence.

    >>> quadratic = lambda x: (float(x @ x) / 2, x)
    >>> from deciban.linear.curvature import Diagonal
    >>> descend(quadratic, np.ones(2), lambda x: Diagonal(np.ones(2)), memory=0, tol=1e-9, max_iter=9).theta
    array([0., 0.])
    """
    theta = start
    value, gradient = evaluate(theta) if initial is None else initial
    if not np.isfinite(value):
        raise DecibanError("the start is outside the domain of the response, or overflows")
    start_value, start_norm = abs(value), _norm(gradient)
    metric = curvature(theta)
    pairs: deque[tuple[FloatArray, FloatArray]] = deque(maxlen=max(1, memory))
    path: list[Step] = []
    converged = False
    for iteration in range(max_iter):
        if watch(iteration, theta):
            return Solution(theta, value, (*path, Step(value, _norm(gradient), 0.0)), False, stopped=True)
        if iteration:
            metric = curvature(theta)
        direction = -_corrected(metric, gradient, pairs if memory else ())
        slope = float((gradient * direction).sum())
        gain = -0.5 * slope
        if not gain > 0.0:
            converged = _norm(gradient) <= FLAT * start_norm
            break
        accepted = _line_search(evaluate, theta, value, direction, slope, ROUNDING * max(abs(value), start_value))
        if accepted is None:  # nothing lower within rounding
            converged = gain <= max(1e-8 * abs(value), VANISHED * start_value)
            break
        step, new, new_value, new_gradient = accepted
        path.append(Step(value, _norm(gradient), step))
        converged = gain <= tol * max(abs(value), VANISHED * start_value)
        if memory:
            _remember(pairs, new - theta, new_gradient - gradient)
        theta, value, gradient = new, new_value, new_gradient
        if converged:
            break
    path.append(Step(value, _norm(gradient), 0.0))
    return Solution(theta, value, tuple(path), converged)


def _norm(gradient: FloatArray) -> float:
    return float(np.sqrt((gradient**2).sum()))


def _line_search(
    evaluate: Evaluate, theta: FloatArray, value: float, direction: FloatArray, slope: float, rounding: float
) -> tuple[float, FloatArray, float, FloatArray] | None:
    step = 1.0
    for _ in range(MAX_HALVINGS):
        new = theta + step * direction
        new_value, gradient = evaluate(new)
        if new_value <= value + ARMIJO * step * slope + rounding:
            return step, new, new_value, gradient
        if np.isfinite(new_value):  # the minimum of the parabola through both values and the slope
            bottom = -slope * step**2 / (2.0 * (new_value - value - step * slope))
            step = min(max(bottom, 0.1 * step), 0.5 * step)
        else:
            step *= 0.5
    return None


def _remember(pairs: deque[tuple[FloatArray, FloatArray]], moved: FloatArray, changed: FloatArray) -> None:
    if float((moved * changed).sum()) > 1e-12 * _norm(moved) * _norm(changed):
        pairs.append((moved, changed))


def _corrected(
    metric: Curvature, gradient: FloatArray, pairs: deque[tuple[FloatArray, FloatArray]] | tuple[()]
) -> FloatArray:
    """P⁻¹g corrected by past steps: the two-loop recursion of L-BFGS."""
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
