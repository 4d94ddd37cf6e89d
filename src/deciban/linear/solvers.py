"""The curvature for each problem size: exact Newton where it is cheap, else an approximation of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deciban.errors import DecibanError
from deciban.linear.curvature import DenseCurvature, Diagonal, Kronecker
from deciban.linear.descent import Curvature, Evaluate, Solution, descend
from deciban.linear.design_rows import SparseRows
from deciban.linear.objective import Criterion, Objective
from deciban.types import FloatArray

MAX_HESSIAN = 1000  # parameters with a full Hessian
MAX_GRAM = 4000  # columns with a full Gram matrix
MIN_SAMPLE_ROWS = 4096
ROWS_PER_PARAMETER = 12  # in a sample: enough for a Hessian to within some tenths
MEMORY = 12

SeparationWatch = Callable[[int, FloatArray], bool]


@dataclass(frozen=True)
class SolverResult:
    """A solution, and the columns with weight in flat directions."""

    solution: Solution
    flat: tuple[int, ...] = ()


def newton(
    objective: Criterion, start: FloatArray, *, tol: float, max_iter: int, watch: SeparationWatch
) -> SolverResult:
    """Newton's method, or its closest affordable approximation.

    - Moderate m(p + 1), few or distributed rows: Newton, with a Hessian at every step.
    - Moderate m(p + 1), many rows: a sample is fitted by Newton; its solution is the start and its Hessian the fixed
      curvature of L-BFGS on all rows. A Hessian of all rows costs as much as p passes.
    - More parameters, p moderate: the curvature is V ⊗ G with G the Gram matrix and V the mean of a″ (at θ = 0, for
      softmax, V ⊗ G is the Hessian itself; Böhning's bound is a multiple of it).
    - More columns: the diagonal.
    """
    solved = _newton(objective, start, tol, max_iter, watch)
    if solved.solution.converged or solved.solution.stopped or len(solved.solution.path) > max_iter:
        return solved
    null = objective.null_start()
    if np.array_equal(start, null):
        return solved
    # no curvature: the start is so far out that every p is 0 or 1
    retried = _newton(objective, null, tol, max_iter, watch)
    return retried if retried.solution.objective < solved.solution.objective else solved


def _newton(objective: Criterion, start: FloatArray, tol: float, max_iter: int, watch: SeparationWatch) -> SolverResult:
    n, m, width = objective.rows.shape[0], *objective.shape
    if m * width <= MAX_HESSIAN:
        sample = _sample_of(objective, _sample_rows(n, m, width), 4)
        if sample is None:
            return exact_newton(objective, start, tol=tol, max_iter=max_iter, watch=watch)
        theta = exact_newton(sample, start, tol=1e-3, max_iter=12).solution.theta
        initial = objective.evaluate(theta)
        if not initial[0] < 2.0 * sample.evaluate(start)[0]:  # the sample is separable, or lacks a class
            return exact_newton(objective, start, tol=tol, max_iter=max_iter, watch=watch)
        full = DenseCurvature.of(sample.hessian(theta))
        flat = full.flat.shape[1]
        if not _is_representative(sample) or (flat > 0 and flat != m * rank_deficiency(objective)):
            return exact_newton(objective, theta, tol=tol, max_iter=max_iter, watch=watch)
        solved = _lbfgs(objective, theta, full, tol=tol, max_iter=2 * max_iter, watch=watch, initial=initial)
        return replace(solved, flat=flat_columns(objective) if flat else ())
    if width - 1 > MAX_GRAM:
        diagonal = Diagonal(objective.diagonal(start))
        return _lbfgs(objective, start, diagonal, tol=tol, max_iter=10 * max_iter, watch=watch)
    sample = _sample_of(objective, max(MIN_SAMPLE_ROWS, 10 * width), 2)
    metric = kronecker_curvature(objective if sample is None else sample, start)
    if sample is not None and metric.over_columns.flat.shape[1]:
        metric = kronecker_curvature(objective, start)
    solved = _lbfgs(objective, start, metric, tol=tol, max_iter=10 * max_iter, watch=watch)
    return replace(solved, flat=flat_columns(objective) if metric.over_columns.flat.shape[1] else ())


def _sample_of(objective: Criterion, rows: int, least: int) -> Objective | None:
    """The objective of about this many rows; None if these are more than one in `least`, or rows are distributed."""
    step = objective.rows.shape[0] // rows
    return objective.thinned(step) if isinstance(objective, Objective) and step >= least else None


def _is_representative(sample: Objective) -> bool:
    """Whether each column varies in the sample about as in all rows, where its mean square is 1."""
    square = sample.rows.squares(sample.weight)[:-1] / sample.weight.sum()
    varies = True if sample.rows.varies is None else sample.rows.varies
    return bool(((square > 0.25) & (square < 4.0) | ~np.asarray(varies)).all())


def kronecker_curvature(objective: Criterion, theta: FloatArray) -> Kronecker:
    """M ⊗ (v G + ridge), v the mean of a″ in units of M."""
    metric = objective.penalty_metric
    mean_variance = objective.variances(theta) / objective.total
    v = float(np.trace(np.linalg.solve(metric, mean_variance))) / objective.m
    gram = objective.gram() * v
    return Kronecker(DenseCurvature.of(metric), DenseCurvature.of(gram + np.diag(objective.ridge)))


def exact_newton(
    objective: Criterion,
    start: FloatArray,
    *,
    tol: float,
    max_iter: int,
    watch: SeparationWatch = lambda iteration, theta: False,
) -> SolverResult:
    """Newton's method with a Hessian at every step."""
    return descend_by_hessian(objective, start, objective.evaluate, memory=0, tol=tol, max_iter=max_iter, watch=watch)


def descend_by_hessian(objective: Criterion, start: FloatArray, evaluate: Evaluate, **options: Any) -> SolverResult:
    """Minimises the function that `evaluate` computes, with the Hessian of the objective as curvature."""
    last: list[DenseCurvature] = []

    def curvature(theta: FloatArray) -> DenseCurvature:
        last[:] = [DenseCurvature.of(objective.hessian(theta))]
        return last[0]

    solution = descend(evaluate, start, curvature, **options)
    return SolverResult(solution, flat_columns(objective) if last[0].flat.shape[1] else ())


def _sample_rows(n: int, m: int, width: int) -> int:
    """The size of a sample whose Hessian costs about as much as a pass over all n rows, within useful limits."""
    useful = ROWS_PER_PARAMETER * m * width
    return max(MIN_SAMPLE_ROWS, useful, min(6 * n // (width * (m + 1)), 16 * useful))


def _lbfgs(objective: Criterion, start: FloatArray, metric: Curvature, **options: Any) -> SolverResult:
    return SolverResult(descend(objective.evaluate, start, lambda theta: metric, memory=MEMORY, **options))


def flat_columns(objective: Criterion) -> tuple[int, ...]:
    """Columns with weight in flat directions of the data; none with a penalty, which makes the solution unique."""
    if objective.l2:
        return ()
    parts = np.abs(DenseCurvature.of(objective.gram()).flat)
    columns = np.flatnonzero((parts > 0.1 * parts.max(axis=0, initial=0.0)).any(axis=1))
    return tuple(int(j) for j in columns if j < objective.rows.shape[1])


def rank_deficiency(objective: Criterion) -> int:
    """How many of the columns, intercept included, are linear combinations of the others."""
    return int(DenseCurvature.of(objective.gram()).flat.shape[1])


def gradient_descent(
    objective: Criterion, start: FloatArray, *, tol: float, max_iter: int, watch: SeparationWatch
) -> SolverResult:
    """θ ← θ − ∇J/L, with L at least the largest curvature of J, so that J falls at every step.

    L is λ_max(ZᵀWZ)/4 for two classes, /2 for more (Böhning), plus the ridge of each column.
    """
    limit = (0.25 if objective.m == 1 else 0.5) * largest_eigenvalue(objective)
    if not np.isfinite(limit + objective.ridge.max(initial=0.0)):
        raise DecibanError("l2 is too large for the units of the columns")
    metric = Diagonal(np.broadcast_to(limit + objective.ridge, objective.shape))
    options: Any = {"memory": 0, "tol": tol, "max_iter": max_iter, "watch": watch}
    solution = descend(objective.evaluate, start, lambda theta: metric, **options)
    path = tuple(replace(step, step=step.step / limit) for step in solution.path)  # the factor of the gradient
    flat = flat_columns(objective) if objective.rows.shape[1] <= MAX_GRAM else ()
    return SolverResult(replace(solution, path=path), flat)


def largest_eigenvalue(objective: Criterion) -> float:
    """An upper bound of λ_max(ZᵀWZ): exact for moderate width, else by power iteration with a margin."""
    width = objective.rows.shape[1]
    slow_gram = isinstance(objective, Objective) and isinstance(objective.rows, SparseRows)  # slower than 50 passes
    if width <= MAX_GRAM and not slow_gram:
        return float(np.linalg.eigvalsh(objective.gram())[-1]) * (1 + 1e-9)
    vector = np.random.default_rng(0).standard_normal((1, width + 1))
    value = 1.0
    for _ in range(50):
        vector = vector / np.sqrt((vector**2).sum())
        vector = objective.gram_times(vector)
        value = float(np.sqrt((vector**2).sum()))
    return 1.1 * value
