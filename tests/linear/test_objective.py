"""J, its gradient and its Hessian: against definitions and finite differences, for every response."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from deciban.linear.design_rows import DenseRows, SparseRows, rows_of
from deciban.linear.firth import Firth
from deciban.linear.objective import Objective
from deciban.linear.responses import Bernoulli, Gaussian, Multinomial
from tests.linear.problems import (
    LAYOUTS,
    VARIATIONS,
    cells,
    chosen,
    derivative,
    plain_cells,
    problem,
    rows_over,
    somewhere,
)
from tests.linear.responses.registry import EXAMPLES

each = pytest.mark.parametrize("example", EXAMPLES, ids=str)
layouts = pytest.mark.parametrize("layout", LAYOUTS)


def problems(example, variations=VARIATIONS):
    """(objective, θ, case) for every layout and variation."""
    for layout in LAYOUTS:
        for variation in variations:
            objective = problem(example, layout, variation)
            yield objective, somewhere(example, objective), f"{layout}, {variation}"


# ---- J ----------------------------------------------------------------------------------------------------------


@each
def test_the_objective_follows_its_definition(example):
    """−Σ w log p(y|η), measured from the saturated model, + l2/2 Σ M_ab w_a·w_b in the units of the columns."""
    for objective, theta, case in problems(example):
        eta = plain_cells(objective) @ theta.T + (0.0 if objective.offset is None else objective.offset[:, np.newaxis])
        weights = np.ones(40) if objective.weights is None else objective.weights
        y = objective.y
        lost = example.log_density(y, example.best(y)) - example.log_density(y, eta)
        w = theta[:, :-1] / objective.rows.scale
        metric = np.eye(example.m) if objective.metric is None else objective.metric
        expected = weights @ lost + 0.5 * objective.l2 * np.trace(metric @ w @ w.T)
        assert objective.evaluate(theta)[0] == pytest.approx(expected, rel=1e-12), case
        np.testing.assert_allclose(objective.predictors(theta), eta, rtol=1e-12, atol=1e-12, err_msg=case)


@each
def test_the_gradient_and_the_hessian_are_derivatives(example):
    for objective, theta, case in problems(example):
        value, gradient = objective.evaluate(theta)
        assert gradient.shape == objective.shape == theta.shape
        result = derivative(lambda t, f=objective: f.evaluate(t)[0], theta)
        np.testing.assert_allclose(gradient, result, rtol=1e-8, atol=1e-10 * (1.0 + abs(value)), err_msg=case)
        hessian = objective.hessian(theta)
        result = derivative(lambda t, f=objective: f.evaluate(t)[1], theta).reshape(theta.size, theta.size)
        size = np.abs(result).max()
        assert hessian.shape == result.shape
        np.testing.assert_allclose(hessian, result, rtol=1e-7, atol=1e-9 * size, err_msg=case)
        np.testing.assert_allclose(hessian, hessian.T, rtol=1e-13, atol=1e-13 * size, err_msg=case)
        diagonal = np.diagonal(hessian).reshape(theta.shape)
        np.testing.assert_allclose(objective.diagonal(theta), diagonal, rtol=1e-12, err_msg=case)
        information = replace(objective, l2=0.0).hessian(theta)
        np.testing.assert_array_equal(objective.information(theta), information, err_msg=case)


@each
def test_the_mean_variance_is_weighted(example):
    for objective, theta, case in problems(example, ["all"]):
        mean = example.response.mean(plain_cells(objective) @ theta.T + objective.offset[:, np.newaxis])
        for i, j in np.ndindex(example.m, example.m):
            expected = np.average(example.response.variance(mean, i, j), weights=objective.weights)
            assert objective.variances(theta)[i, j] / objective.total == pytest.approx(expected, rel=1e-12), case


def test_outside_the_domain_the_objective_is_infinite():
    example = next(e for e in EXAMPLES if e.response.name == "exponential")
    objective = problem(example)
    theta = np.zeros(objective.shape)
    theta[0, -1] = 3.0
    value, gradient = objective.evaluate(theta)
    assert value == np.inf
    assert gradient.shape == theta.shape


# ---- weights ----------------------------------------------------------------------------------------------------


def assert_same(first: Objective, second: Objective, theta: np.ndarray) -> None:
    for a, b in zip(first.evaluate(theta), second.evaluate(theta), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(first.hessian(theta), second.hessian(theta), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(first.diagonal(theta), second.diagonal(theta), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        first.variances(theta) / first.total, second.variances(theta) / second.total, rtol=1e-12, atol=1e-12
    )


def taken(objective: Objective, index: np.ndarray) -> Objective:
    return replace(
        objective,
        rows=chosen(objective.rows, index),
        y=objective.y[index],
        weights=None,
        offset=None if objective.offset is None else objective.offset[index],
    )


@each
def test_a_weight_is_the_number_of_times_a_row_is_there(example):
    times = np.random.default_rng(3).integers(0, 3, 40)
    assert set(times) == {0, 1, 2}
    for objective, theta, _ in problems(example, ["plain", "offset", "metric"]):
        weighted = replace(objective, weights=times.astype(np.float64))
        assert_same(weighted, taken(objective, np.repeat(np.arange(40), times)), theta)
        assert_same(replace(objective, weights=np.ones(40)), objective, theta)


# ---- a sample ---------------------------------------------------------------------------------------------------


@each
@pytest.mark.parametrize("step", [1, 3, 39, 40])
def test_a_thinned_objective_is_that_of_every_nth_row_scaled_up(example, step):
    kept = np.arange(0, 40, step)
    for objective, theta, case in problems(example, ["plain", "all"]):
        thin = objective.thinned(step)
        weights = np.ones(40) if objective.weights is None else objective.weights
        expected = replace(taken(objective, kept), weights=weights[kept] * weights.sum() / weights[kept].sum())
        assert thin.weight.sum() == pytest.approx(weights.sum()), case
        assert thin.l2 == objective.l2
        np.testing.assert_array_equal(plain_cells(thin), plain_cells(objective)[kept], err_msg=case)
        assert_same(thin, expected, theta)


def test_a_sample_of_zero_weight_is_finite():
    objective = replace(problem(EXAMPLES[1]), weights=(np.arange(40) % 2).astype(float))
    value, gradient = objective.thinned(2).evaluate(np.zeros(objective.shape))
    assert value == 0.0
    assert not gradient.any()


# ---- rows -------------------------------------------------------------------------------------------------------


@layouts
def test_rows_against_numpy(layout):
    x = cells(50, 4)
    rows = rows_over(x, layout)
    assert isinstance(rows, SparseRows if layout == "sparse" else DenseRows)
    assert rows.shape == (50, 4)
    z = np.hstack([(x - rows.origin) / rows.scale, np.ones((50, 1))])
    rng = np.random.default_rng(4)
    theta, residual, weights = rng.normal(size=(3, 5)), rng.normal(size=(50, 3)), rng.random(50)
    np.testing.assert_allclose(rows.predictors(theta), z @ theta.T, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(rows.residual_sums(residual), residual.T @ z, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(rows.gram(weights), (weights[:, np.newaxis] * z).T @ z, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(rows.squares(weights), weights @ z**2, rtol=1e-12)
    np.testing.assert_array_equal(rows.take(7).predictors(theta), rows.predictors(theta)[::7])


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
@layouts
def test_columns_have_spread_about_one_whatever_their_unit(layout, unit):
    x = cells(400, 3) * unit
    rows = rows_over(x, layout)
    about = 0.0 if layout == "sparse" else x.mean(axis=0)
    np.testing.assert_allclose(rows.scale, np.sqrt(((x - about) ** 2).mean(axis=0)), rtol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@layouts
def test_unknown_means_are_computed(layout, weighted):
    x, weights = cells(50, 3), np.random.default_rng(12).random(50) if weighted else None
    rows = rows_of(LAYOUTS[layout](x), None, weights)
    expected = np.zeros(3) if layout == "sparse" else np.average(x, axis=0, weights=weights)
    np.testing.assert_allclose(rows.origin, expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(rows.scale, rows_over(x, layout, weights).scale, rtol=1e-12)


def test_constant_columns_have_unit_scale():
    x = np.column_stack([np.full(20, 7.1), np.zeros(20), np.arange(20.0)])
    assert DenseRows.of(x, x.mean(axis=0)).scale[:2].tolist() == [1.0, 1.0]
    assert SparseRows.of(sp.csr_array(x)).scale.tolist()[1] == 1.0


def test_a_column_that_varies_outside_the_sample_only_has_a_scale():
    """Origin and scale come from every second row here, in which the column is constant."""
    x = np.ones((20_000, 2))
    x[:, 0] = np.random.default_rng(5).normal(size=20_000)
    x[1::2, 1] = 1e6
    rows = DenseRows.of(x, np.array([0.0, 1.0]))
    assert rows.scale[1] == pytest.approx(1e6 / np.sqrt(2.0), rel=1e-3)


@pytest.mark.parametrize("order", ["C", "F"])
def test_contiguous_rows_are_read_in_place(order):
    x = np.asarray(cells(30, 3), order=order)
    assert np.shares_memory(DenseRows.of(x, np.zeros(3)).x, x) == (order == "C")


def test_more_rows_than_are_squared_at_a_time():
    x, weights = cells(20_000, 2), np.random.default_rng(6).random(20_000)
    rows = rows_over(x)
    np.testing.assert_allclose(rows.squares(weights), np.diagonal(rows.gram(weights)), rtol=1e-11)


# ---- Firth ------------------------------------------------------------------------------------------------------


def penalised(
    classes: int, *, layout: str = "dense", weighted: bool = False, collinear: bool = False, n: int = 40
) -> Firth:
    x, rng = cells(n, 3), np.random.default_rng(7)
    if collinear:
        x = np.column_stack([x, x[:, 0] - 2.0 * x[:, 1], np.full(n, 3.0)])
    response = Bernoulli() if classes == 2 else Multinomial(classes)
    y = rng.integers(0, classes, n).astype(float)
    weights = rng.uniform(0.2, 3.0, n) if weighted else None
    return Firth(Objective(rows_over(x, layout, weights), response, y, weights))


@pytest.mark.parametrize(
    ("classes", "layout", "weighted", "collinear"),
    [
        (2, "dense", False, True),
        (2, "float32", True, False),
        (2, "sparse", True, True),
        (4, "dense", True, False),
        (4, "float32", False, True),
        (4, "sparse", False, False),
    ],
)
def test_firths_gradient_is_the_derivative(classes, layout, weighted, collinear):
    firth = penalised(classes, layout=layout, weighted=weighted, collinear=collinear)
    theta = 0.7 * np.random.default_rng(8).normal(size=firth.objective.shape)
    value, gradient = firth.evaluate(theta)
    result = derivative(lambda t: firth.evaluate(t)[0], theta)
    np.testing.assert_allclose(gradient, result, rtol=1e-7, atol=1e-9 * (1.0 + abs(value)))


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
@layouts
def test_firths_penalty_is_half_the_log_determinant(classes, weighted, layout):
    firth = penalised(classes, layout=layout, weighted=weighted)
    theta = 0.7 * np.random.default_rng(8).normal(size=firth.objective.shape)
    z, objective, m = plain_cells(firth.objective), firth.objective, classes - 1
    scores = np.hstack([np.zeros((len(z), 1)), z @ theta.T])
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    information = np.zeros((m, 4, m, 4))
    for i, j in np.ndindex(m, m):
        w = objective.weight * p[:, i + 1] * ((i == j) - p[:, j + 1])
        information[i, :, j] = (w[:, np.newaxis] * z).T @ z
    sign, log_determinant = np.linalg.slogdet(information.reshape(4 * m, 4 * m))
    assert sign == 1.0
    assert firth.evaluate(theta)[0] == pytest.approx(objective.evaluate(theta)[0] - 0.5 * log_determinant, rel=1e-11)
    np.testing.assert_allclose(firth.inverse(theta), np.linalg.inv(information.reshape(4 * m, 4 * m)), rtol=1e-9)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_collinear_columns_do_not_change_firths_likelihood(classes, weighted):
    """Up to a constant that depends on the choice of basis."""
    plain = penalised(classes, weighted=weighted)
    more = penalised(classes, weighted=weighted, collinear=True)
    rng = np.random.default_rng(9)
    differences = []
    for _ in range(3):
        theta = 0.7 * rng.normal(size=plain.objective.shape)
        wide = np.hstack([theta[:, :3], np.zeros((classes - 1, 2)), theta[:, 3:]])
        np.testing.assert_allclose(more.objective.predictors(wide), plain.objective.predictors(theta), atol=1e-12)
        differences.append(more.evaluate(wide)[0] - plain.evaluate(theta)[0])
    np.testing.assert_allclose(differences, differences[0], atol=1e-9)


def test_two_classes_are_the_same_as_bernoulli_or_as_multinomial():
    firth = penalised(2, weighted=True)
    other = Firth(replace(firth.objective, response=Multinomial(2)))
    theta = np.random.default_rng(10).normal(size=firth.objective.shape)
    for a, b in zip(firth.evaluate(theta), other.evaluate(theta), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11)


def test_firths_objective_is_infinite_where_probabilities_are_zero_or_one():
    firth = penalised(2)
    theta = np.zeros(firth.objective.shape)
    theta[0, -1] = 500.0
    assert firth.evaluate(theta)[0] == np.inf


def test_a_gaussian_objective_is_that_of_least_squares():
    x, y = cells(40, 3), np.random.default_rng(11).normal(size=40)
    objective = Objective(rows_over(x), Gaussian(), y)
    z = plain_cells(objective)
    theta = np.linalg.lstsq(z, y, rcond=None)[0]
    value, gradient = objective.evaluate(theta[np.newaxis])
    assert value == pytest.approx(0.5 * ((y - z @ theta) ** 2).sum(), rel=1e-13)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-12)
