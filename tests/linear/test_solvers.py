"""Solvers: every branch reaches the same optimum."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import logit

from deciban.errors import DecibanError
from deciban.linear import solvers as solve
from deciban.linear.descent import descend
from deciban.linear.design_rows import SparseRows
from deciban.linear.firth import Firth, firth
from deciban.linear.objective import Objective
from deciban.linear.responses import Bernoulli, Gaussian, Multinomial, Poisson
from deciban.linear.solvers import (
    exact_newton,
    flat_columns,
    gradient_descent,
    kronecker_curvature,
    largest_eigenvalue,
    newton,
    rank_deficiency,
)
from tests.linear.problems import cells, plain_cells, problem, rows_over, somewhere
from tests.linear.responses.registry import EXAMPLES

CLASSES = [example for example in EXAMPLES if example.response.name in ("bernoulli", "multinomial")]
each = pytest.mark.parametrize("example", EXAMPLES, ids=str)
each_of_classes = pytest.mark.parametrize("example", CLASSES, ids=str)
layouts = pytest.mark.parametrize("layout", ["dense", "sparse"])
N, P = 600, 3


def go_on(iteration, theta):
    return False


@pytest.fixture
def descents(monkeypatch):
    """The curvature and the memory of every descent from here on."""
    made = []

    def spy(evaluate, start, curvature, **more):
        made.append((curvature(start), more["memory"]))
        return descend(evaluate, start, curvature, **more)

    monkeypatch.setattr(solve, "descend", spy)
    return made


def kinds(descents):
    return [(type(curvature).__name__, memory > 0) for curvature, memory in descents]


def assert_optimal(objective: Objective, theta: np.ndarray, rtol: float = 1e-7) -> None:
    """∇J = 0, by numpy alone: Σ w (a′(η) − T(y)) z + l2 M w in units of what is summed."""
    z, response = plain_cells(objective), objective.response
    eta = z @ theta.T + (0.0 if objective.offset is None else objective.offset[:, np.newaxis])
    residual = (response.mean(eta) - response.sufficient(objective.y)) * objective.weight[:, np.newaxis]
    metric = np.eye(len(theta)) if objective.metric is None else objective.metric
    w = np.hstack([theta[:, :-1] / objective.rows.scale**2, np.zeros((len(theta), 1))])
    gradient = residual.T @ z + objective.l2 * metric @ w
    assert (np.abs(gradient) <= rtol * (np.abs(residual).T @ np.abs(z))).all()


# ---- the branches of Newton -------------------------------------------------------------------------------------

BRANCHES = {
    "exact": ({}, [("DenseCurvature", False)]),
    "sample": (
        {"_sample_rows": lambda n, m, width: max(33, 3 * m * width)},  # every 18th of 600 rows, for one predictor
        [("DenseCurvature", False), ("DenseCurvature", True)],
    ),
    "kronecker": ({"MAX_HESSIAN": 0}, [("Kronecker", True)]),
    "kronecker of a sample": ({"MAX_HESSIAN": 0, "MIN_SAMPLE_ROWS": 50}, [("Kronecker", True)]),
    "diagonal": ({"MAX_HESSIAN": 0, "MAX_GRAM": 0}, [("Diagonal", True)]),
}


def forced(monkeypatch, branch):
    for name, value in BRANCHES[branch][0].items():
        assert hasattr(solve, name)
        monkeypatch.setattr(solve, name, value)


@each
@pytest.mark.parametrize(("layout", "variation"), [("dense", "plain"), ("sparse", "plain"), ("dense", "all")])
def test_every_branch_reaches_the_optimum(monkeypatch, descents, example, layout, variation):
    objective = problem(example, layout, variation, N, P)
    start = np.zeros(objective.shape)
    start[:, -1] = example.centre
    bottom = exact_newton(objective, start, tol=1e-14, max_iter=100).solution
    assert bottom.converged
    assert_optimal(objective, bottom.theta)
    for branch, (_, curvatures) in BRANCHES.items():
        descents.clear()
        with monkeypatch.context() as patch:
            forced(patch, branch)
            result = newton(objective, start, tol=1e-14, max_iter=100, watch=go_on)
        # the solution of a sample may be outside the domain of other rows
        outside = branch == "sample" and example.response.name == "exponential"
        assert kinds(descents) == curvatures or (outside and kinds(descents) == [("DenseCurvature", False)] * 2)
        assert result.solution.converged, branch
        assert result.solution.objective == pytest.approx(bottom.objective, rel=1e-12), branch
        np.testing.assert_allclose(result.solution.theta, bottom.theta, atol=1e-5, err_msg=branch)
        assert result.flat == ()


@pytest.mark.parametrize("example", EXAMPLES[:6], ids=str)
def test_every_branch_recovers_from_a_far_start(monkeypatch, example):
    objective = problem(example, "dense", "l2", N, P)
    bottom = exact_newton(objective, np.zeros(objective.shape), tol=1e-14, max_iter=100).solution
    start = np.random.default_rng(0).normal(size=objective.shape)
    start[:, -1] = 9.0
    for branch in BRANCHES:
        with monkeypatch.context() as patch:
            forced(patch, branch)
            result = newton(objective, start, tol=1e-14, max_iter=200, watch=go_on).solution
        assert result.converged, branch
        np.testing.assert_allclose(result.theta, bottom.theta, atol=1e-5, err_msg=branch)


def test_a_sample_that_lacks_a_column_is_not_trusted(monkeypatch, descents):
    """Step 18: the last column is all zeros in the sample."""
    x = cells(N, P)
    x[::2, -1] = 0.0
    objective = replace(problem(CLASSES[0], n=N), rows=rows_over(x))
    forced(monkeypatch, "sample")
    result = newton(objective, np.zeros(objective.shape), tol=1e-14, max_iter=100, watch=go_on)
    assert kinds(descents) == [("DenseCurvature", False), ("DenseCurvature", False)]
    assert result.flat == ()
    assert_optimal(objective, result.solution.theta)


def test_a_gram_matrix_of_a_sample_that_lacks_a_column_is_not_trusted(monkeypatch, descents):
    x = cells(N, P)
    x[::2, -1] = 0.0
    objective = replace(problem(CLASSES[1], n=N), rows=rows_over(x))
    forced(monkeypatch, "kronecker of a sample")
    assert kronecker_curvature(objective.thinned(12), np.zeros(objective.shape)).over_columns.flat.shape[1] == 1
    result = newton(objective, np.zeros(objective.shape), tol=1e-14, max_iter=100, watch=go_on)
    assert descents[0][0].over_columns.flat.shape[1] == 0
    assert result.flat == ()
    assert_optimal(objective, result.solution.theta)


@each_of_classes
def test_a_sample_that_lacks_a_class_does_no_harm(monkeypatch, example):
    objective = problem(example, n=N)
    y = objective.y.copy()
    y[::18] = 0.0
    objective = replace(objective, y=y)
    forced(monkeypatch, "sample")
    result = newton(objective, np.zeros(objective.shape), tol=1e-14, max_iter=100, watch=go_on).solution
    assert result.converged
    assert_optimal(objective, result.theta)


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_the_number_of_rows_and_columns_chooses_the_branch(descents, layout):
    """With the default limits: 40,000 rows are sampled."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(40_000, 2))
    y = (rng.random(40_000) < 1 / (1 + np.exp(-x[:, 0] + 0.5))).astype(float)
    objective = Objective(rows_over(x, layout), Bernoulli(), y)
    result = newton(objective, np.zeros(objective.shape), tol=1e-14, max_iter=100, watch=go_on).solution
    assert kinds(descents) == BRANCHES["sample"][1]
    assert_optimal(objective, result.theta)


def test_only_the_last_descent_is_watched(monkeypatch):
    forced(monkeypatch, "sample")
    objective, asked = problem(CLASSES[0], n=N), []

    def watch(iteration, theta):
        asked.append(iteration)
        return iteration == 1

    result = newton(objective, np.zeros(objective.shape), tol=1e-14, max_iter=100, watch=watch).solution
    assert asked == [0, 1]
    assert not result.converged


# ---- curvatures -------------------------------------------------------------------------------------------------


@each_of_classes
@pytest.mark.parametrize("l2", [0.0, 2.5])
@layouts
def test_at_zero_the_kronecker_product_is_the_hessian(example, l2, layout):
    """For softmax with the symmetric penalty, of which V at θ = 0 is a multiple."""
    objective = replace(problem(example, layout), l2=l2, metric=np.eye(example.m) - 1.0 / (example.m + 1.0))
    zero, gradient = np.zeros(objective.shape), np.random.default_rng(3).normal(size=objective.shape)
    expected = np.linalg.solve(objective.hessian(zero), gradient.ravel()).reshape(zero.shape)
    np.testing.assert_allclose(kronecker_curvature(objective, zero).solve(gradient), expected, rtol=1e-8, atol=1e-12)


# ---- flat directions --------------------------------------------------------------------------------------------


@layouts
@pytest.mark.parametrize("branch", ["exact", "kronecker", "diagonal"])
@pytest.mark.parametrize("example", EXAMPLES[1:4], ids=str)
def test_equal_columns_share_their_coefficient_and_are_named(monkeypatch, example, layout, branch):
    x = cells(N, P)
    alone = Objective(rows_over(x, layout), example.response, example.draw(np.random.default_rng(4), N))
    twice = replace(alone, rows=rows_over(np.hstack([x, x[:, :1]]), layout))
    forced(monkeypatch, branch)
    single = exact_newton(alone, np.zeros(alone.shape), tol=1e-14, max_iter=100).solution.theta
    result = newton(twice, np.zeros(twice.shape), tol=1e-14, max_iter=100, watch=go_on)
    expected = np.column_stack([single[:, 0] / 2, single[:, 1:3], single[:, 0] / 2, single[:, 3]])
    assert result.solution.converged
    np.testing.assert_allclose(result.solution.theta, expected, atol=1e-5)
    assert result.flat == (() if branch == "diagonal" else (0, 3))


@pytest.mark.parametrize("branch", ["exact", "kronecker"])
def test_a_constant_column_gets_no_weight_and_is_named(monkeypatch, branch):
    x = np.insert(cells(N, P), 1, 7.5, axis=1)
    objective = Objective(rows_over(x), Bernoulli(), CLASSES[0].draw(np.random.default_rng(4), N))
    forced(monkeypatch, branch)
    result = newton(objective, np.zeros(objective.shape), tol=1e-14, max_iter=100, watch=go_on)
    assert result.flat == (1,)
    assert result.solution.theta[0, 1] == pytest.approx(0.0, abs=1e-12)
    assert_optimal(objective, result.solution.theta)


def test_collinear_columns_fit_as_lstsq_does():
    """Least squares of least length, in units of the columns' spread."""
    x = cells(50, 3)
    x = np.column_stack([x, x[:, 0] + x[:, 1], x[:, 1] - 2.0 * x[:, 2]])
    objective = Objective(rows_over(x), Gaussian(), np.random.default_rng(5).normal(size=50))
    result = exact_newton(objective, np.zeros(objective.shape), tol=1e-14, max_iter=100)
    z = plain_cells(objective)
    expected = np.linalg.lstsq(z, objective.y, rcond=1e-10)[0]
    np.testing.assert_allclose(result.solution.theta[0], expected, atol=1e-9)
    assert result.flat == (0, 1, 2, 3, 4)


def test_many_collinear_columns_are_named():
    indicators = np.eye(150)[np.arange(600) % 150]
    objective = Objective(rows_over(indicators), Gaussian(), np.random.default_rng(6).normal(size=600))
    assert rank_deficiency(objective) == 1
    assert flat_columns(objective) == tuple(range(150))


# ---- gradient descent -------------------------------------------------------------------------------------------


def top_curvature(objective, seeds=20):
    """The largest curvature of J at several points, including the maximum."""
    rng = np.random.default_rng(7)
    places = [rng.normal(size=objective.shape) for _ in range(seeds)]
    places.append(np.zeros(objective.shape))
    for k in range(1, objective.m):
        even = np.zeros(objective.shape)  # two classes of probability ½
        even[:, -1] = -20.0
        even[[0, k], -1] = 20.0
        places.append(even)
    return max(np.linalg.eigvalsh(objective.hessian(theta))[-1] for theta in places)


@each_of_classes
@pytest.mark.parametrize(("layout", "variation"), [("dense", "plain"), ("sparse", "l2"), ("dense", "weights")])
def test_gradient_descent_falls_at_every_step_and_converges(example, layout, variation):
    objective = problem(example, layout, variation, N, P)
    start = np.zeros(objective.shape)
    bottom = exact_newton(objective, start, tol=1e-14, max_iter=100).solution
    result = gradient_descent(objective, start, tol=1e-14, max_iter=5000, watch=go_on).solution
    values = [step.objective for step in result.path] + [result.objective]
    assert result.converged
    assert len(result.path) > 3
    assert all(after <= before + 1e-14 * values[0] for before, after in pairwise(values))
    assert all(after < before for before, after in pairwise(values[:4]))
    np.testing.assert_allclose(result.theta, bottom.theta, atol=1e-4)
    assert result.objective == pytest.approx(bottom.objective, rel=1e-11)


@each_of_classes
@pytest.mark.parametrize("variation", ["plain", "l2", "weights"])
def test_gradient_descent_takes_full_steps(descents, example, variation):
    """L bounds the curvature, so full steps are taken without a line search."""
    objective = problem(example, "dense", variation, N, P)
    result = gradient_descent(objective, np.zeros(objective.shape), tol=1e-10, max_iter=5000, watch=go_on).solution
    limit = descents[0][0].diagonal
    np.testing.assert_allclose(limit - limit[0, -1], np.broadcast_to(objective.ridge, limit.shape), rtol=1e-9)
    *taken, last = [step.step for step in result.path]
    np.testing.assert_allclose(taken, 1.0 / limit[0, -1], rtol=1e-14)  # the factor of the gradient
    assert last == 0.0
    assert limit.max() >= top_curvature(objective) * (1.0 - 1e-9)


@layouts
@pytest.mark.parametrize("wide", [False, True])
def test_the_largest_curvature_of_the_rows(monkeypatch, layout, wide):
    if wide:
        monkeypatch.setattr(solve, "MAX_GRAM", 0)
    objective = problem(CLASSES[0], layout, "weights", N, P)
    z = plain_cells(objective)
    exact = np.linalg.eigvalsh((objective.weight[:, np.newaxis] * z).T @ z)[-1]
    assert exact <= largest_eigenvalue(objective) <= 1.2 * exact


def test_the_largest_curvature_is_found_from_any_start():
    """Columns that are opposites: the steepest direction is (1, −1, 0)."""
    x = np.array([[1.0, -1.0], [-1.0, 1.0]] * 10)
    objective = Objective(SparseRows.of(sp.csr_array(x)), Bernoulli(), np.arange(20) % 2.0)
    z = plain_cells(objective)
    assert largest_eigenvalue(objective) >= np.linalg.eigvalsh(z.T @ z)[-1]


def test_an_overflowing_penalty_is_refused():
    objective = Objective(rows_over(cells(40, 2) * 1e-160), Bernoulli(), np.arange(40) % 2.0, l2=1.0)
    with pytest.raises(DecibanError, match="l2 is too large"):
        gradient_descent(objective, np.zeros(objective.shape), tol=1e-10, max_iter=9, watch=go_on)


# ---- units ------------------------------------------------------------------------------------------------------


@layouts
@pytest.mark.parametrize("unit", [1e-100, 1e-12, 1e12, 1e100])
def test_the_units_of_columns_do_not_matter(layout, unit):
    x, y = cells(N, P), CLASSES[0].draw(np.random.default_rng(8), N)
    thetas = []
    for other in (x, x * unit):
        objective = Objective(rows_over(other, layout), Bernoulli(), y)
        thetas.append(newton(objective, np.zeros(objective.shape), tol=1e-14, max_iter=99, watch=go_on).solution.theta)
    np.testing.assert_allclose(thetas[1], thetas[0], rtol=1e-9)


def test_columns_far_from_zero_keep_their_digits():
    x, y = cells(N, P), CLASSES[0].draw(np.random.default_rng(8), N)
    predictors = []
    for other in (x, x + 2.0**30):  # exact: values are multiples of 1/64
        objective = Objective(rows_over(other), Bernoulli(), y)
        result = newton(objective, np.zeros(objective.shape), tol=1e-14, max_iter=99, watch=go_on).solution
        predictors.append(objective.predictors(result.theta))
    np.testing.assert_allclose(predictors[1], predictors[0], rtol=1e-9, atol=1e-10)


# ---- closed forms -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("counts", [(3, 7), (5, 1, 9), (2, 8, 4, 6)])
@pytest.mark.parametrize("method", [newton, gradient_descent])
def test_without_columns_the_intercept_fits_the_shares(counts, method):
    y = np.repeat(np.arange(len(counts)), counts).astype(float)
    response = Bernoulli() if len(counts) == 2 else Multinomial(len(counts))
    objective = Objective(rows_over(np.zeros((len(y), 0))), response, y)
    result = method(objective, np.zeros(objective.shape), tol=1e-15, max_iter=1000, watch=go_on).solution
    np.testing.assert_allclose(result.theta[:, 0], np.log(np.array(counts[1:]) / counts[0]), atol=1e-6)


def test_two_groups_of_counts_have_their_own_rates():
    x, y = np.array([[0.0], [0.0], [1.0], [1.0], [1.0]]), np.array([1.0, 3.0, 4.0, 6.0, 5.0])
    exposure = np.log([2.0, 6.0, 1.0, 2.0, 3.0])
    objective = Objective(rows_over(x), Poisson(), y, offset=exposure)
    theta = newton(objective, np.zeros(objective.shape), tol=1e-15, max_iter=99, watch=go_on).solution.theta
    rate = np.exp(plain_cells(objective) @ theta[0])
    np.testing.assert_allclose(rate, [4 / 8, 4 / 8, 15 / 6, 15 / 6, 15 / 6], rtol=1e-7)


# ---- Firth ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("counts", [(3, 7), (0, 4), (5, 1, 9), (2, 8, 4, 6), (0, 0, 6)])
def test_firth_without_columns_adds_half_a_row_to_every_class(counts):
    """Jeffreys' prior of a multinomial is Dirichlet(½, …, ½), in coordinates in which I is measured by η."""
    y = np.repeat(np.arange(len(counts)), counts).astype(float)
    response = Bernoulli() if len(counts) == 2 else Multinomial(len(counts))
    objective = Objective(rows_over(np.zeros((len(y), 0))), response, y)
    result = firth(objective, np.zeros(objective.shape), tol=1e-16, max_iter=200, watch=go_on).solution
    shares = np.array(counts) + 0.5
    np.testing.assert_allclose(result.theta[:, 0], np.log(shares[1:] / shares[0]), atol=1e-6)


def test_firth_of_two_groups_adds_half_a_row_to_every_cell():
    """Also where a group has one class only, so that the plain likelihood has no maximum."""
    x, y = np.repeat([[0.0], [1.0]], [6, 9], axis=0), np.array([0.0] * 6 + [1.0] * 5 + [0.0] * 4)
    objective = Objective(rows_over(x), Bernoulli(), y)
    result = firth(objective, np.zeros(objective.shape), tol=1e-16, max_iter=200, watch=go_on).solution
    eta = plain_cells(objective) @ result.theta[0]
    np.testing.assert_allclose(eta[[0, -1]], logit([0.5 / 7, 5.5 / 10]), atol=1e-6)


@each_of_classes
@pytest.mark.parametrize("collinear", [False, True])
def test_firth_ends_where_its_gradient_is_zero(example, collinear):
    objective = problem(example, "dense", "weights", n=40)
    if collinear:
        x = objective.rows.x
        objective = replace(objective, rows=rows_over(np.hstack([x, x[:, :1] + x[:, 1:2]]), weights=objective.weights))
    result = firth(objective, np.zeros(objective.shape), tol=1e-16, max_iter=200, watch=go_on)
    value, gradient = Firth(objective).evaluate(result.solution.theta)
    assert value == result.solution.objective
    assert np.abs(gradient).max() <= 1e-5
    assert result.flat == ((0, 1, 3) if collinear else ())


def test_firth_is_finite_where_classes_are_separated():
    x = np.array([[-3.0], [-2.0], [-1.0], [1.0], [2.0], [3.0]])
    objective = Objective(rows_over(x), Bernoulli(), (x[:, 0] > 0).astype(float))
    result = firth(objective, np.zeros(objective.shape), tol=1e-16, max_iter=200, watch=go_on).solution
    assert result.converged
    assert np.abs(result.theta).max() < 10.0
    assert np.abs(Firth(objective).evaluate(result.theta)[1]).max() <= 1e-6
    assert result.theta[0, -1] == pytest.approx(0.0, abs=1e-6)  # by symmetry


def test_the_test_thetas_are_inside_the_domain():
    """All tests of responses rely on this."""
    for example in EXAMPLES:
        objective = problem(example)
        assert example.inside(plain_cells(objective) @ somewhere(example, objective).T).all()
