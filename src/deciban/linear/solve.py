"""Which curvature for which problem: exact Newton where that is cheap, and what comes nearest to it elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from deciban.errors import DecibanError
from deciban.linear.curvature import Diagonal, Full, Kronecker
from deciban.linear.descent import Curvature, Solution, descend
from deciban.linear.objective import Criterion, Objective
from deciban.types import FloatArray

MODERATE = 1000  # parameters whose Hessian is made and factored
WIDE = 4000  # columns whose Gram matrix is
SAMPLE_LEAST = 4096  # rows
ROWS_PER_PARAMETER = 12  # of a sample at least: they tell a Hessian to some tenths
MEMORY = 12

Watch = Callable[[int, FloatArray], bool]


@dataclass(frozen=True)
class Solved:
    """A solution, and the columns that made its curvature flat."""

    solution: Solution
    flat: tuple[int, ...] = ()


def newton(objective: Criterion, start: FloatArray, *, tol: float, max_iter: int, watch: Watch) -> Solved:
    """Newton's method, or its nearest relative.

    - Moderate m(p + 1), few rows, or rows elsewhere: Newton, a Hessian at every step.
    - Moderate m(p + 1), many rows: a sample is fitted by Newton; its solution is the start and its Hessian the fixed
      curvature of L-BFGS on all rows. A Hessian of all rows costs as much as p passes, and is not wanted that exactly.
    - More parameters, p moderate: the curvature is V ⊗ G with G the Gram matrix and V the mean of a″ (at θ = 0, for
      softmax, V ⊗ G is the Hessian itself; Böhning's bound is a multiple of it).
    - More columns still: the diagonal.
    """
    solved = _newton(objective, start, tol=tol, max_iter=max_iter, watch=watch)
    if solved.solution.converged or solved.solution.stopped or len(solved.solution.path) > max_iter:
        return solved
    null = objective.null_start()
    if np.array_equal(start, null):
        return solved
    # stuck where there is no curvature: a start so far out that every p is 0 or 1
    again = _newton(objective, null, tol=tol, max_iter=max_iter, watch=watch)
    return again if again.solution.objective < solved.solution.objective else solved


def _newton(objective: Criterion, start: FloatArray, *, tol: float, max_iter: int, watch: Watch) -> Solved:
    n, m, width = objective.rows.shape[0], *objective.shape
    if m * width <= MODERATE:
        sample = objective.sampled(_sample_rows(n, m, width), 4)
        if sample is None:
            return exact_newton(objective, start, tol=tol, max_iter=max_iter, watch=watch)
        found = exact_newton(sample, start, tol=1e-3, max_iter=12).solution.theta
        known = objective.evaluate(found)
        if not known[0] < 2.0 * sample.evaluate(start)[0]:  # the sample is separable, or lacks a class
            return exact_newton(objective, start, tol=tol, max_iter=max_iter, watch=watch)
        full = Full.of(sample.hessian(found))
        flat = full.flat.shape[1]
        unlike = not _shows_all(sample) or (flat > 0 and flat != m * rank_lost(objective))
        if unlike:
            return exact_newton(objective, found, tol=tol, max_iter=max_iter, watch=watch)
        solved = _fixed(objective, found, full, tol=tol, max_iter=2 * max_iter, watch=watch, known=known)
        return replace(solved, flat=flat_columns(objective) if flat else ())
    if width - 1 <= WIDE:
        sample = objective.sampled(max(SAMPLE_LEAST, 10 * width), 2)
        metric = kronecker(objective if sample is None else sample, start)
        if sample is not None and metric.among_columns.flat.shape[1]:
            metric = kronecker(objective, start)
        solved = _fixed(objective, start, metric, tol=tol, max_iter=10 * max_iter, watch=watch)
        return replace(
            solved, flat=flat_columns(objective) if metric.among_columns.flat.shape[1] and not objective.l2 else ()
        )
    diagonal = Diagonal(objective.diagonal(start))
    return _fixed(objective, start, diagonal, tol=tol, max_iter=10 * max_iter, watch=watch)


def _shows_all(sample: Objective) -> bool:
    """Whether every column varies in a sample about as it does in all rows, where its mean square is 1."""
    square = sample.rows.squares(sample.weight)[:-1] / sample.weight.sum()
    varies = True if sample.rows.varies is None else sample.rows.varies
    return bool(((square > 0.25) & (square < 4.0) | ~np.asarray(varies)).all())


def kronecker(objective: Criterion, theta: FloatArray) -> Kronecker:
    """M ⊗ (v G + ridge), v the mean of a″ in units of M."""
    metric = objective.penalty_metric
    v = float(np.trace(np.linalg.solve(metric, objective.mean_variance(theta)))) / objective.m
    gram = objective.gram() * v
    return Kronecker(Full.of(metric), Full.of(gram + np.diag(objective.ridge)))


def exact_newton(
    objective: Criterion, start: FloatArray, *, tol: float, max_iter: int, watch: Watch = lambda iteration, theta: False
) -> Solved:
    """A Hessian at every step."""
    last: list[Full] = []

    def curvature(theta: FloatArray) -> Full:
        last[:] = [Full.of(objective.hessian(theta))]
        return last[0]

    solution = descend(
        objective.evaluate, start, curvature, anew=True, memory=0, tol=tol, max_iter=max_iter, watch=watch
    )
    return Solved(solution, flat_columns(objective) if last[0].flat.shape[1] else ())


def _sample_rows(n: int, m: int, width: int) -> int:
    """Rows of a sample whose Hessian costs about as much as a pass over all n, within what is useful of them."""
    useful = ROWS_PER_PARAMETER * m * width
    return max(SAMPLE_LEAST, useful, min(6 * n // (width * (m + 1)), 16 * useful))


def _fixed(
    objective: Criterion,
    start: FloatArray,
    metric: Curvature,
    *,
    tol: float,
    max_iter: int,
    watch: Watch,
    known: tuple[float, FloatArray] | None = None,
) -> Solved:
    solution = descend(
        objective.evaluate,
        start,
        lambda theta: metric,
        anew=False,
        memory=MEMORY,
        tol=tol,
        max_iter=max_iter,
        watch=watch,
        known=known,
    )
    return Solved(solution)


def flat_columns(objective: Criterion) -> tuple[int, ...]:
    """Columns that take part in directions in which the data do not vary; none if a penalty decides between them."""
    if objective.l2:
        return ()
    parts = np.abs(Full.of(objective.gram()).flat)
    found = np.flatnonzero((parts > 0.1 * parts.max(axis=0, initial=0.0)).any(axis=1))
    return tuple(int(j) for j in found if j < objective.rows.shape[1])


def rank_lost(objective: Criterion) -> int:
    """How many of the columns, with the intercept, are combinations of the others."""
    return int(Full.of(objective.gram()).flat.shape[1])


def gradient_descent(objective: Criterion, start: FloatArray, *, tol: float, max_iter: int, watch: Watch) -> Solved:
    """θ ← θ − ∇J/L, with L no less than any curvature of J, so that J falls at every step.

    L is λ_max(ZᵀWZ)/4 for two classes, /2 for more (Böhning), and for each column its own ridge is added.
    """
    limit = (0.25 if objective.m == 1 else 0.5) * largest(objective)
    if not np.isfinite(limit + objective.ridge.max(initial=0.0)):
        raise DecibanError("l2 is too large for the units of the columns")
    metric = Diagonal(np.broadcast_to(limit + objective.ridge, objective.shape))
    solution = descend(
        objective.evaluate, start, lambda theta: metric, anew=False, memory=0, tol=tol, max_iter=max_iter, watch=watch
    )
    path = tuple(replace(step, step=step.step / limit) for step in solution.path)  # what the gradient is multiplied by
    return Solved(replace(solution, path=path), flat_columns(objective) if objective.rows.shape[1] <= WIDE else ())


def largest(objective: Criterion) -> float:
    """An upper bound of λ_max(ZᵀWZ): exact for a moderate width, by power iteration and a margin beyond."""
    width = objective.rows.shape[1]
    if width <= WIDE and objective.makes_gram:
        return float(np.linalg.eigvalsh(objective.gram())[-1]) * (1 + 1e-9)
    vector = np.random.default_rng(0).standard_normal((1, width + 1))
    value = 1.0
    for _ in range(50):
        vector = vector / np.sqrt((vector**2).sum())
        vector = objective.gram_times(vector)
        value = float(np.sqrt((vector**2).sum()))
    return 1.1 * value
