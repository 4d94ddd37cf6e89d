"""Descent: Newton's rate of convergence, monotone steps, and a correct `converged`."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deciban.errors import DecibanError
from deciban.linear.curvature import DenseCurvature, Diagonal
from deciban.linear.descent import Solution, descend
from deciban.linear.objective import Objective
from deciban.linear.responses import Bernoulli, Exponential, Gaussian, Poisson
from deciban.linear.solvers import exact_newton
from tests.linear.problems import plain_cells, rows_over


def random(seed=0):
    return np.random.default_rng(seed)


def newton(evaluate, hessian, start, *, tol=1e-12, max_iter=50, **more) -> Solution:
    curvature = lambda theta: DenseCurvature.of(hessian(theta))  # noqa: E731
    return descend(evaluate, start, curvature, memory=0, tol=tol, max_iter=max_iter, **more)


def assert_goes_down(solution: Solution) -> None:
    """J never rises beyond rounding, and ends below the start of the last step."""
    values = [step.objective for step in solution.path] + [solution.objective]
    assert all(b <= a + 1e-14 * abs(a) for a, b in pairwise(values))


def logistic(n=200, p=3, seed=0) -> Objective:
    rng = random(seed)
    x = rng.normal(size=(n, p))
    y = (rng.random(n) < 1 / (1 + np.exp(-x @ np.linspace(-1.0, 1.5, p) - 0.3))).astype(float)
    return Objective(rows_over(x), Bernoulli(), y)


# ---- quadratics -------------------------------------------------------------------------------------------------


def quadratic(size=4, seed=1, *, floor=1.0):
    """½(x − a)ᵀA(x − a) + floor, and its A and a."""
    root, bottom = random(seed).normal(size=(size, size)), random(seed + 1).normal(size=size)
    matrix = root @ root.T + 0.5 * np.eye(size)

    def evaluate(x):
        gradient = matrix @ (x - bottom)
        return floor + 0.5 * float((x - bottom) @ gradient), gradient

    return evaluate, matrix, bottom


@given(st.integers(1, 12), st.integers(0, 1000), st.floats(-1e6, 1e6))
def test_a_quadratic_takes_one_step(size, seed, far):
    evaluate, matrix, bottom = quadratic(size, seed)
    start = np.full(size, far)
    solution = newton(evaluate, lambda x: matrix, start)
    assert solution.converged
    assert solution.path[0].step == 1.0
    error = np.abs(solution.theta - bottom).max()
    assert error <= 1e-12 * np.linalg.cond(matrix) * (1.0 + np.abs(start - bottom).max())
    # after the first step only rounding is left
    left = 1e-12 * np.linalg.cond(matrix) * solution.path[0].gradient_norm
    assert all(step.gradient_norm <= left for step in solution.path[1:])


@pytest.mark.parametrize("memory", [1, 3, 20])
def test_memory_compensates_for_a_poor_curvature(memory):
    evaluate, matrix, bottom = quadratic(6)
    limit = Diagonal(np.full(6, np.linalg.eigvalsh(matrix)[-1]))
    plain, better = (
        descend(evaluate, np.zeros(6), lambda x: limit, memory=m, tol=1e-14, max_iter=5000) for m in (0, memory)
    )
    for solution in (plain, better):
        assert solution.converged
        assert_goes_down(solution)
        np.testing.assert_allclose(solution.theta, bottom, atol=1e-5)
    assert len(better.path) < len(plain.path)


def test_the_path_holds_the_objective_and_the_gradient_where_each_step_began():
    evaluate, matrix, _ = quadratic()
    asked = []

    def watch(iteration, theta):
        asked.append((iteration, theta))
        return False

    limit = Diagonal(np.full(4, np.linalg.eigvalsh(matrix)[-1]))
    solution = descend(evaluate, np.ones(4), lambda x: limit, memory=0, tol=1e-8, max_iter=500, watch=watch)
    assert solution.converged
    *taken, last = solution.path
    assert [iteration for iteration, _ in asked] == list(range(len(taken)))
    places = [*(theta for _, theta in asked), solution.theta]
    for theta, step in zip(places, solution.path, strict=True):
        value, gradient = evaluate(theta)
        assert step.objective == value
        assert step.gradient_norm == pytest.approx(np.linalg.norm(gradient), rel=1e-14)
    for (old, new), step in zip(pairwise(places), taken, strict=True):
        np.testing.assert_allclose(new, old - step.step * evaluate(old)[1] / limit.diagonal, rtol=1e-12, atol=1e-15)
    assert last.step == 0.0
    assert last.objective == solution.objective


def test_the_optimum_itself_needs_no_step():
    evaluate, matrix, bottom = quadratic()
    solution = newton(evaluate, lambda x: matrix, bottom)
    assert solution.converged
    assert [step.step for step in solution.path] == [0.0]
    assert solution.theta is bottom


def test_a_watch_stops_the_descent():
    objective = logistic()
    solution = exact_newton(
        objective, np.zeros(objective.shape), tol=1e-12, max_iter=50, watch=lambda iteration, theta: iteration == 2
    ).solution
    assert not solution.converged
    assert [step.step > 0 for step in solution.path] == [True, True, False]
    assert solution.objective == objective.evaluate(solution.theta)[0]


@pytest.mark.parametrize("max_iter", [0, 1, 2])
def test_too_few_iterations_are_not_called_converged(max_iter):
    objective = logistic()
    solution = exact_newton(objective, np.zeros(objective.shape), tol=1e-15, max_iter=max_iter).solution
    assert not solution.converged
    assert [step.step > 0 for step in solution.path] == [True] * max_iter + [False]
    assert solution.objective == objective.evaluate(solution.theta)[0]


# ---- Newton -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_newton_converges_quadratically(seed):
    """|g₊| ≤ L/(2μ²)·|g|², μ the least curvature on the way, L = Σ|z|³/(6√3), as |sigmoid″| ≤ 1/(6√3)."""
    objective = logistic(seed=seed)
    places = []

    def watch(iteration, theta):
        places.append(theta)
        return False

    start = np.zeros(objective.shape)
    solution = exact_newton(objective, start, tol=1e-20, max_iter=30, watch=watch).solution
    assert solution.converged
    z = plain_cells(objective)
    lipschitz = (np.sqrt((z**2).sum(axis=1)) ** 3).sum() / (6.0 * np.sqrt(3.0))
    least = min(np.linalg.eigvalsh(objective.hessian(theta))[0] for theta in places)
    constant = lipschitz / (2.0 * least**2)
    norms = [step.gradient_norm for step in solution.path]
    floor = 1e-12 * norms[0]  # rounding
    assert norms[-1] <= floor
    pairs = list(pairwise(norms))
    assert all(after <= constant * before**2 + floor for before, after in pairs)
    # from a hundredth of the gradient on, every step squares it or ends at rounding
    small = [(b / norms[0], a / norms[0]) for b, a in pairs if b < 1e-2 * norms[0]]
    assert small
    assert all(after <= before**1.7 + 1e-12 for before, after in small)
    assert len(solution.path) <= 8


@pytest.mark.parametrize("far", [-25.0, -5.0, 5.0, 25.0])
@pytest.mark.parametrize("response", [Bernoulli(), Poisson(), Gaussian()], ids=lambda r: r.name)
def test_newton_recovers_from_a_far_start(response, far):
    """A step that overshoots is shortened."""
    objective = logistic()
    objective = Objective(objective.rows, response, objective.y)
    start = np.full(objective.shape, 0.1 * far)
    start[:, -1] = far
    near = exact_newton(objective, np.zeros(objective.shape), tol=1e-14, max_iter=100).solution
    solution = exact_newton(objective, start, tol=1e-14, max_iter=100).solution
    assert near.converged
    assert solution.converged
    assert_goes_down(solution)
    np.testing.assert_allclose(solution.theta, near.theta, atol=1e-7)


def test_a_line_search_stays_inside_the_domain():
    """η < 0 in every row, for an exponential response; steps that leave the domain are halved."""
    rng = random(3)
    x = rng.uniform(0.0, 1.0, size=(80, 2))
    y = rng.exponential(1.0 / (0.05 + x @ np.array([4.0, 0.0])))
    objective = Objective(rows_over(x), Exponential(), y)
    outside = []
    evaluate = objective.evaluate

    def counted(theta):
        value, gradient = evaluate(theta)
        outside.append(not np.isfinite(value))
        return value, gradient

    start = np.zeros(objective.shape)
    start[:, -1] = -50.0
    solution = newton(counted, objective.hessian, start, tol=1e-13, max_iter=100)
    assert any(outside), "the search never met the border, so nothing is tested"
    assert solution.converged
    assert_goes_down(solution)
    assert any(0.0 < step.step < 1.0 for step in solution.path)
    eta = plain_cells(objective) @ solution.theta[0]
    assert (eta < 0).all()
    gradient = (-1.0 / eta - y) @ plain_cells(objective)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-6 * np.abs(y).sum())


def test_a_step_to_nan_is_rejected():
    """log x − …: NaN beyond the border instead of infinity."""

    def evaluate(x):
        return (float(x[0] - np.log(x[0])), 1.0 - 1.0 / x) if x[0] > 0 else (np.nan, x)

    solution = newton(evaluate, lambda x: np.array([[1.0 / x[0] ** 2]]), np.array([30.0]))
    assert solution.converged
    assert solution.theta[0] == pytest.approx(1.0, abs=1e-7)


def test_a_wrong_gradient_does_not_converge():
    solution = newton(lambda x: (float(x[0] ** 2) + 1.0, -2.0 * x), lambda x: np.eye(1), np.array([3.0]))
    assert not solution.converged
    assert solution.theta[0] == pytest.approx(3.0, abs=1e-9)


# ---- known bugs -------------------------------------------------------------------------------------------------


def test_a_perfect_fit_converges():
    x = random(5).normal(size=(50, 3))
    objective = Objective(rows_over(x), Gaussian(), x @ [1.0, 2.0, 3.0] + 4.0)
    solution = exact_newton(objective, np.zeros(objective.shape), tol=1e-10, max_iter=50).solution
    assert solution.objective < 1e-25
    assert solution.converged
    assert len(solution.path) < 10


def test_a_start_outside_the_domain_is_not_called_converged():
    objective = Objective(rows_over(random(6).normal(size=(20, 1))), Exponential(), np.ones(20))
    start = np.zeros(objective.shape)
    limit = Diagonal(np.ones(objective.shape))
    with pytest.raises(DecibanError, match="outside the domain"):
        descend(objective.evaluate, start, lambda x: limit, memory=0, tol=1e-9, max_iter=9)


@pytest.mark.parametrize("far", [40.0, 700.0, -700.0])
def test_a_start_without_curvature_is_not_called_converged(far):
    """At the largest gradient a solver either descends or reports no convergence."""
    objective = logistic()
    start = np.zeros(objective.shape)
    start[:, -1] = far
    solution = exact_newton(objective, start, tol=1e-10, max_iter=100).solution
    bottom = exact_newton(objective, np.zeros(objective.shape), tol=1e-10, max_iter=100).solution
    assert not solution.converged or solution.objective == pytest.approx(bottom.objective)
