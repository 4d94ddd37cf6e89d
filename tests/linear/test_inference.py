"""Inference: errors, tests, intervals and deviances, at maxima that are known in closed form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats
from scipy.optimize import brentq
from scipy.special import expit, logit

from deciban.linear.design_rows import DenseRows, SparseRows, rows_of
from deciban.linear.inference import Inference
from deciban.linear.objective import Objective
from deciban.linear.responses import Bernoulli, Exponential, Gaussian, Multinomial, Poisson, Response
from deciban.linear.solvers import exact_newton

CLOSE = {"rtol": 1e-11, "atol": 1e-13}


def over(x, response, y, weights=None, offset=None, origin=0.0, scale=1.0) -> Objective:
    """An objective in given coordinates."""
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    shape = x.shape[1]
    rows = DenseRows(x, np.full(shape, float(origin)), np.full(shape, float(scale)))
    weights, offset = (None if v is None else np.asarray(v, dtype=np.float64) for v in (weights, offset))
    return Objective(rows, response, y, weights, offset)


def fitted(objective: Objective) -> Inference:
    solved = exact_newton(objective, objective.null_start(), tol=1e-15, max_iter=100)
    return Inference.of(objective, solved.solution.theta)


# Two groups ----------------------------------------------------------------------------------------------------------
# Of y in two groups, with indicator x = 0 and 1, everything is known: the mean of each group is that of its rows.


def counted(y, size):
    """How many of each class."""
    return [sum(1 for v in y if v == k) for k in range(size)]


@dataclass(frozen=True)
class Groups:
    """y of both, and the closed form for one group: η of its mean, and the covariance of that η."""

    response: Response
    y: tuple[list, list]
    eta: Callable[[list], list[float]]
    covariance: Callable[[list], list[list[Fraction]]]  # for dispersion 1
    log_density: Callable[[np.ndarray, np.ndarray], np.ndarray]  # of y, given the mean (of T) of its group
    best: Callable[[np.ndarray], np.ndarray]  # the mean under which y is most probable


def mean(y):
    return sum(map(Fraction, y), Fraction(0)) / len(y)


def of_classes(y, means):
    whole = np.column_stack([1.0 - means.sum(axis=1), means])
    return np.log(whole[np.arange(len(y)), y.astype(int)])


GROUPS = {
    "gaussian": Groups(
        Gaussian(),
        ([1, 2, 4, 5, 5], [3, 7, 8]),
        eta=lambda y: [float(mean(y))],
        covariance=lambda y: [[Fraction(1, len(y))]],
        log_density=lambda y, mu: stats.norm.logpdf(y, mu[:, 0]),
        best=lambda y: y[:, np.newaxis],
    ),
    "bernoulli": Groups(
        Bernoulli(),
        ([0] * 7 + [1] * 3, [0] * 2 + [1] * 6),
        eta=lambda y: [float(logit(float(mean(y))))],
        covariance=lambda y: [[Fraction(1, sum(y)) + Fraction(1, len(y) - sum(y))]],
        log_density=of_classes,
        best=lambda y: y[:, np.newaxis],
    ),
    "multinomial": Groups(
        Multinomial(3),
        ([0] * 2 + [1] * 3 + [2] * 5, [0] * 4 + [1] + [2] * 3),
        eta=lambda y: [float(np.log(k / counted(y, 3)[0])) for k in counted(y, 3)[1:]],
        covariance=lambda y: [
            [Fraction(1, counted(y, 3)[0]) + (Fraction(1, counted(y, 3)[i]) if i == j else 0) for j in (1, 2)]
            for i in (1, 2)
        ],
        log_density=of_classes,
        best=lambda y: (y[:, np.newaxis] == [1, 2]).astype(float),
    ),
    "poisson": Groups(
        Poisson(),
        ([1, 3, 2, 0, 2], [4, 6, 6]),
        eta=lambda y: [float(np.log(float(mean(y))))],
        covariance=lambda y: [[Fraction(1, sum(y))]],
        log_density=lambda y, mu: stats.poisson.logpmf(y, mu[:, 0]),
        best=lambda y: y[:, np.newaxis],
    ),
    "exponential": Groups(
        Exponential(),
        ([0.5, 1.5, 1.0, 1.0], [4.0, 2.0, 3.0, 7.0, 2.0]),
        eta=lambda y: [float(-1 / mean(y))],
        covariance=lambda y: [[Fraction(len(y)) / sum(map(Fraction, y)) ** 2]],
        log_density=lambda y, mu: stats.expon.logpdf(y, scale=mu[:, 0]),
        best=lambda y: y[:, np.newaxis],
    ),
}


@pytest.fixture(params=GROUPS)
def groups(request):
    return GROUPS[request.param]


def expected_of(groups: Groups):
    """Estimates (m, 2), their covariance (2m, 2m), deviance, null deviance, log-likelihood, dispersion."""
    y = np.concatenate(groups.y).astype(float)
    first, second = (np.array(groups.eta(part)) for part in groups.y)
    estimates = np.column_stack([first, second - first])
    m = len(first)
    v, w = (np.array([[float(c) for c in row] for row in groups.covariance(part)]) for part in groups.y)
    blocks = np.empty((m, 2, m, 2))
    blocks[:, 0, :, 0], blocks[:, 0, :, 1], blocks[:, 1, :, 0], blocks[:, 1, :, 1] = v, -v, -v, v + w
    truth = groups.best(y)
    sizes = [len(part) for part in groups.y]
    means = np.repeat([truth[: sizes[0]].mean(axis=0), truth[sizes[0] :].mean(axis=0)], sizes, axis=0)
    overall = np.broadcast_to(truth.mean(axis=0), means.shape)
    with np.errstate(divide="ignore"):
        best, alone = groups.log_density(y, truth).sum(), groups.log_density(y, overall).sum()
    likelihood = groups.log_density(y, means).sum()
    deviance, null = 2 * (best - likelihood), 2 * (best - alone)
    dispersion = 1.0
    if groups.response.name == "gaussian":
        dispersion = deviance / (len(y) - 2)
        likelihood = stats.norm.logpdf(y, means[:, 0], np.sqrt(deviance / len(y))).sum()
    return estimates, dispersion * blocks.reshape(2 * m, 2 * m), deviance, null, likelihood, dispersion


def agrees(result: Inference, groups: Groups) -> None:
    estimates, covariance, deviance, null, likelihood, dispersion = expected_of(groups)
    n, m = sum(map(len, groups.y)), len(estimates)
    np.testing.assert_allclose(result.estimates, estimates, **CLOSE)
    np.testing.assert_allclose(result.covariance, covariance, **CLOSE)
    errors = np.sqrt(np.diag(covariance)).reshape(m, 2)
    np.testing.assert_allclose(result.standard_errors, errors, **CLOSE)
    np.testing.assert_allclose(result.statistics, estimates / errors, **CLOSE)
    assert result.deviance == pytest.approx(deviance, rel=1e-12)
    assert result.null_deviance == pytest.approx(null, rel=1e-12)
    assert result.log_likelihood == pytest.approx(likelihood, rel=1e-12)
    assert result.dispersion == pytest.approx(dispersion, rel=1e-12)
    assert (result.n, result.rank, result.undetermined) == (n, 2 * m, ())
    assert result.residual_df == m * n - 2 * m
    assert result.by_t is (groups.response.name == "gaussian")
    assert result.aic == pytest.approx(-2 * likelihood + 2 * (2 * m + result.by_t), rel=1e-12)


def at_the_maximum(groups: Groups, origin: float, scale: float):
    """θ in the coordinates of rows with that origin and scale."""
    first, second = (np.array(groups.eta(part)) for part in groups.y)
    slope = second - first
    return np.column_stack([slope * scale, first + slope * origin])


def group_indicator(groups: Groups):
    return np.repeat([0.0, 1.0], [len(part) for part in groups.y])[:, np.newaxis]


def test_two_groups_agree_with_the_closed_form_in_any_coordinates(groups):
    x, y = group_indicator(groups), np.concatenate(groups.y).astype(float)
    for origin, scale in ((0.0, 1.0), (0.5, 0.25), (-3.0, 100.0)):
        objective = over(x, groups.response, y, origin=origin, scale=scale)
        agrees(Inference.of(objective, at_the_maximum(groups, origin, scale)), groups)
    for rows in (rows_of(x, x.mean(axis=0), None), SparseRows.of(sp.csr_array(x))):
        agrees(fitted(Objective(rows, groups.response, y)), groups)


def test_a_weight_repeats_a_row(groups):
    pairs = np.column_stack([group_indicator(groups)[:, 0], np.concatenate(groups.y)])
    once, times = np.unique(pairs, axis=0, return_counts=True)
    assert (times > 1).any()
    agrees(fitted(over(once[:, :1], groups.response, once[:, 1], weights=times)), groups)


# Against R -----------------------------------------------------------------------------------------------------------
# R 4.2.2: d <- data.frame(x = 0:7, z = c(1, 0, 0, 1, 1, 0, 1, 0), t = c(1, 2, 1, 3, 1, 2, 4, 2)); m <- glm(...), then
# coef(summary(m)) and c(m$null.deviance, m$deviance, m$df.residual, AIC(m)), with control epsilon = 1e-15.

X, Z, T = np.arange(8.0), np.array([1, 0, 0, 1, 1, 0, 1, 0.0]), np.array([1, 2, 1, 3, 1, 2, 4, 2.0])
Y = np.array([2, 1, 4, 3, 6, 5, 9, 12.0])


def table_of(result):
    return np.stack([result.estimates[0], result.standard_errors[0], result.statistics[0], result.p_values[0]], axis=1)


def test_gaussian_as_in_r():
    result = fitted(over(np.column_stack([X, Z]), Gaussian(), Y))
    # coef(summary(glm(y ~ x + z, gaussian, d)))
    expected = [
        [0.3042168674698815, 1.3437212527349300, 0.2263987913048905, 0.829855635697261285],
        [1.3855421686746985, 0.2718196186187584, 5.0972853825462670, 0.003778809897661485],
        [0.1927710843373490, 1.2456339776944887, 0.1547574069022619, 0.883065681858231644],
    ]
    np.testing.assert_allclose(table_of(result), expected, rtol=1e-11)
    judged = result.null_deviance, result.deviance, result.residual_df, result.aic
    np.testing.assert_allclose(judged, [95.5, 15.33132530120482, 5, 35.90666932286071], rtol=1e-12)
    # confint(lm(y ~ x + z, d), level = 0.9)
    limits = [
        [-2.4034464570666541, 3.011880192006415],
        [0.8378124883369662, 1.933271849012431],
        [-2.3172416361842756, 2.702783804858972],
    ]
    np.testing.assert_allclose(result.intervals(0.9)[0], limits, rtol=1e-11)


def test_bernoulli_with_an_offset_as_in_r():
    result = fitted(over(X[:, np.newaxis], Bernoulli(), [0, 0, 1, 0, 0, 1, 1, 1], offset=T / 4))
    # glm(c(0, 0, 1, 0, 0, 1, 1, 1) ~ x + offset(t / 4), binomial, d)
    expected = [
        [-3.2274077349344061, 2.1421381859629913, -1.506629103613843, 0.1319057531493555],
        [0.7818105520021578, 0.5523754750948411, 1.415360723370138, 0.1569627593066127],
    ]
    np.testing.assert_allclose(table_of(result), expected, rtol=1e-10)
    judged = result.null_deviance, result.deviance, result.residual_df, result.aic
    np.testing.assert_allclose(judged, [10.714550590027955, 7.252917619060506, 6, 11.252917619060506], rtol=1e-12)


def test_poisson_with_an_offset_as_in_r():
    result = fitted(over(np.column_stack([X, Z]), Poisson(), Y, offset=np.log(T)))
    # glm(y ~ x + z + offset(log(t)), poisson, d)
    expected = [
        [0.3232647807724051, 0.44220683850005071, 0.731026190976393, 0.46476315542043251],
        [0.1815755140107681, 0.07714276175006814, 2.353759573698536, 0.01858462718338898],
        [-0.3297647660777448, 0.30980200987007506, -1.064437142341464, 0.28713071540279039],
    ]
    np.testing.assert_allclose(table_of(result), expected, rtol=1e-10)
    judged = result.null_deviance, result.deviance, result.residual_df, result.aic
    np.testing.assert_allclose(judged, [19.67284608526316, 12.33002966673730, 5, 44.72960840283101], rtol=1e-12)


def test_exponential_with_an_offset_as_in_r():
    """R's link is 1/μ, which is −η: so all signs are reversed."""
    result = fitted(over(X[:, np.newaxis], Exponential(), Y, offset=T / 100))
    # summary(glm(y ~ x + offset(-t / 100), Gamma, d), dispersion = 1)
    expected = [
        [-0.48064160831919051, 0.21689548779922321, -2.216005566534021, 0.02669112091360721],
        [0.05474351299886521, 0.03526359150955007, 1.552408891307614, 0.12056441733616027],
    ]
    np.testing.assert_allclose(table_of(result), expected, rtol=1e-9)
    judged = result.null_deviance, result.deviance, result.residual_df
    np.testing.assert_allclose(judged, [3.8515282805, 0.9997365580358117, 6], rtol=1e-10)


def test_multinomial_as_in_r():
    result = fitted(over(X[:, np.newaxis], Multinomial(3), [0, 1, 0, 2, 1, 0, 2, 1]))
    # nnet::multinom(c("a", "b", "a", "c", "b", "a", "c", "b") ~ x, d, reltol = 1e-16, abstol = 1e-16)
    estimates = [[-1.12246259075, 0.356714200710], [-1.99553438934, 0.466638694098]]
    errors = [[1.54392684756, 0.408391366015], [1.97908134066, 0.471814319205]]
    np.testing.assert_allclose(result.estimates, estimates, rtol=1e-5)
    np.testing.assert_allclose(result.standard_errors, errors, rtol=1e-5)
    assert result.deviance == pytest.approx(15.9353351068459, rel=1e-10)
    assert result.aic == pytest.approx(23.9353351068459, rel=1e-10)


# Tests and intervals -------------------------------------------------------------------------------------------------


def test_tests_and_intervals_follow_their_distribution(groups):
    result = fitted(over(group_indicator(groups), groups.response, np.concatenate(groups.y)))
    n = sum(map(len, groups.y))
    law = stats.t(n - 2) if groups.response.name == "gaussian" else stats.norm()
    estimates, covariance, *_ = expected_of(groups)
    errors = np.sqrt(np.diag(covariance)).reshape(estimates.shape)
    np.testing.assert_allclose(result.p_values, 2 * law.sf(np.abs(estimates / errors)), rtol=1e-9)
    for level in (0.5, 0.9, 0.99):
        low, high = law.interval(level)
        np.testing.assert_allclose(result.intervals(level)[..., 0], estimates + low * errors, **CLOSE)
        np.testing.assert_allclose(result.intervals(level)[..., 1], estimates + high * errors, **CLOSE)


def test_an_exact_fit_has_certain_coefficients():
    """y = 1 + 2x: R gives p below 1e-15 (and says "essentially perfect fit")."""
    result = fitted(over([[0], [1], [2], [3]], Gaussian(), [1, 3, 5, 7]))
    np.testing.assert_allclose(result.estimates, [[1, 2]], rtol=1e-13)
    assert result.deviance == pytest.approx(0, abs=1e-25)
    assert (result.standard_errors < 1e-12).all()
    assert (result.p_values < 1e-10).all()


@pytest.mark.parametrize(
    ("x", "y"), [([[0], [1]], [2, 5]), ([[0], [1], [2]], [2, 5, 5])], ids=["a row for each parameter", "a row more"]
)
def test_standard_errors_need_more_rows_than_parameters(x, y):
    """Else the dispersion is unknown; R gives NaN for errors, tests and intervals."""
    result = fitted(over(x, Gaussian(), y))
    known = len(x) > 2
    assert result.residual_df == len(x) - 2
    assert np.isfinite(result.standard_errors).all() == known
    assert np.isfinite(result.intervals(0.95)).all() == known
    assert (result.p_values < 1).all() == known


# Null deviance with an offset ----------------------------------------------------------------------------------------


def test_null_deviance_of_poisson_is_that_of_one_rate():
    counts, years = np.array([0, 3, 2, 10, 1.0]), np.array([1, 2, 0.5, 8, 4.0])
    weights = np.array([1, 2, 1, 1, 3.0])
    expected = years * (weights @ counts) / (weights @ years)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(counts > 0, counts * np.log(counts / expected), 0.0)
    closed = 2 * weights @ (logs - counts + expected)
    x = np.array([[1], [2], [3], [5], [4.0]])
    for scale in (1.0, 1e-6, 1e6):  # the unit of an exposure does not matter
        result = fitted(over(x, Poisson(), counts, weights=weights, offset=np.log(scale * years)))
        assert result.null_deviance == pytest.approx(closed, rel=1e-12)


def test_null_deviance_of_poisson_with_exposures_that_differ_widely():
    counts, years = np.array([2, 5, 1e6, 3e6]), np.array([1e-6, 1e-6, 1e9, 2e9])
    expected = years * counts.sum() / years.sum()
    closed = 2 * np.sum(counts * np.log(counts / expected) - counts + expected)
    result = fitted(over([[0], [1], [0], [1]], Poisson(), counts, offset=np.log(years)))
    assert result.null_deviance == pytest.approx(closed, rel=1e-12)


def test_null_deviance_of_gaussian_is_the_variance_after_the_offset():
    y, offset = np.array([1, 4, 2, 8.0]), np.array([0.5, 1, 3, -2.0])
    result = fitted(over([[1], [2], [4], [3]], Gaussian(), y, offset=offset))
    assert result.null_deviance == pytest.approx(4 * np.var(y - offset), rel=1e-13)


def test_null_deviance_of_bernoulli_is_that_of_the_best_intercept():
    y, offset = np.array([0, 1, 1, 0, 1, 1.0]), np.array([-2, 1, 0, 0.5, -1, 3.0])
    best = brentq(lambda b: np.sum(y - expit(b + offset)), -10, 10, xtol=1e-14)
    closed = -2 * stats.bernoulli.logpmf(y, expit(best + offset)).sum()
    result = fitted(over([[1], [3], [2], [5], [4], [0]], Bernoulli(), y, offset=offset))
    assert result.null_deviance == pytest.approx(closed, rel=1e-12)


@pytest.mark.parametrize("far", [0.1, 10.0])
def test_null_deviance_of_exponential_is_that_of_the_best_intercept(far):
    """An offset that moves the average intercept out of the domain in some rows."""
    y, offset = np.array([1, 2, 0.5, 4, 1.5]), far * np.array([-1, -0.5, 0, -2, -0.1])
    best = brentq(lambda b: np.sum(y + 1 / (b + offset)), -100, -1e-12, xtol=1e-15)
    closed = 2 * np.sum(stats.expon.logpdf(y, scale=y) - stats.expon.logpdf(y, scale=-1 / (best + offset)))
    result = fitted(over([[1], [3], [2], [5], [4]], Exponential(), y, offset=offset))
    assert result.null_deviance == pytest.approx(closed, rel=1e-10)


# What the data do not determine --------------------------------------------------------------------------------------


def assert_as_one_column(result: Inference, groups: Groups, loose: tuple[int, ...]) -> None:
    """A redundant column changes neither the fit nor its degrees of freedom."""
    estimates, covariance, deviance, null, likelihood, dispersion = expected_of(groups)
    m = len(estimates)
    assert result.undetermined == loose
    assert result.rank == 2 * m
    assert result.residual_df == m * (sum(map(len, groups.y)) - 2)
    assert result.deviance == pytest.approx(deviance, rel=1e-10)
    assert result.null_deviance == pytest.approx(null, rel=1e-10)
    assert result.dispersion == pytest.approx(dispersion, rel=1e-10)
    assert result.aic == pytest.approx(-2 * likelihood + 2 * (2 * m + result.by_t), rel=1e-10)
    known = [j for j in range(3) if j not in loose]
    assert np.isinf(result.standard_errors[:, list(loose)]).all()
    assert (result.statistics[:, list(loose)] == 0).all()
    assert (result.p_values[:, list(loose)] == 1).all()
    assert np.isneginf(result.intervals(0.9)[:, list(loose), 0]).all()
    assert np.isposinf(result.intervals(0.9)[:, list(loose), 1]).all()
    errors = np.sqrt(np.diag(covariance)).reshape(m, 2)
    np.testing.assert_allclose(result.standard_errors[:, known], errors[:, known], rtol=1e-8)


def test_a_column_twice_is_undetermined_and_its_sum_is_not(groups):
    x = group_indicator(groups)
    result = fitted(over(np.hstack([x, x]), groups.response, np.concatenate(groups.y)))
    assert_as_one_column(result, groups, (1, 2))
    estimates, covariance, *_ = expected_of(groups)
    m = len(estimates)
    np.testing.assert_allclose(result.estimates[:, 1:].sum(axis=1), estimates[:, 1], rtol=1e-8)
    blocks = result.covariance.reshape(m, 3, m, 3)
    of_sum = np.einsum("iajb->ij", blocks[:, 1:, :, 1:])
    np.testing.assert_allclose(of_sum, covariance.reshape(m, 2, m, 2)[:, 1, :, 1], rtol=1e-8)


def test_a_column_of_zeros_and_an_intercept_beside_all_indicators_are_undetermined(groups):
    x, y = group_indicator(groups), np.concatenate(groups.y)
    assert_as_one_column(fitted(over(np.hstack([x, 0 * x]), groups.response, y)), groups, (2,))
    assert_as_one_column(fitted(over(np.hstack([x, 1 - x]), groups.response, y)), groups, (0, 1, 2))


@pytest.mark.parametrize(("slope", "start"), [(1.8, 32.0), (3.3, 1.0), (1.0, 0.1), (2.0, 0.0)])
def test_the_same_quantity_in_two_units_is_undetermined(slope, start):
    """Celsius and Fahrenheit: if their zeros differ, w₁x + w₂(slope x + start) leaves the intercept open, too."""
    x = np.arange(40.0)
    both = np.column_stack([x, slope * x + start])
    y = np.random.default_rng(0).poisson(3.0, 40)
    objective = Objective(rows_of(both, both.mean(axis=0), None), Poisson(), y.astype(float))
    assert fitted(objective).undetermined == ((0, 1, 2) if start else (1, 2))


def test_more_columns_than_rows_leave_no_degrees_of_freedom():
    x = np.array([[0, 1, 5], [1, 3, 4.0]])
    result = fitted(Objective(rows_of(x, x.mean(axis=0), None), Poisson(), np.array([2.0, 5.0])))
    assert (result.rank, result.residual_df) == (2, 0)
    assert set(result.undetermined) >= {1, 2, 3}
    assert result.deviance == pytest.approx(0, abs=1e-12)


# Weights and the first guess -----------------------------------------------------------------------------------------


def test_standard_errors_shrink_with_the_root_of_the_weights(groups):
    """100 times the evidence: errors a tenth, deviance 100 times; for gaussian up to n − p."""
    x, y = group_indicator(groups), np.concatenate(groups.y)
    one, more = (fitted(over(x, groups.response, y, weights=np.full(len(y), times))) for times in (1.0, 100.0))
    np.testing.assert_allclose(more.estimates, one.estimates, rtol=1e-9, atol=1e-12)
    scale = np.sqrt(more.dispersion / one.dispersion) / 10
    np.testing.assert_allclose(more.standard_errors, scale * one.standard_errors, rtol=1e-9)
    assert more.deviance == pytest.approx(100 * one.deviance, rel=1e-9)
    assert more.n == 100 * one.n


def test_the_null_start_is_the_average_response(groups):
    """Its mean is that of all rows, moved by less than the share of one row."""
    y = np.concatenate(groups.y).astype(float)
    objective = over(group_indicator(groups), groups.response, y)
    guess = objective.null_start()
    assert (guess[:, :-1] == 0).all()
    overall = groups.best(y).mean(axis=0)
    np.testing.assert_allclose(groups.response.mean(objective.predictors(guess))[0], overall, atol=1 / len(y))


def test_the_null_start_is_finite_at_the_edge_of_the_domain():
    x = np.array([[0.0], [1.0], [2.0]])
    for response, y in ((Poisson(), [0, 0, 0]), (Bernoulli(), [0, 0, 0]), (Bernoulli(), [1, 1, 1])):
        objective = over(x, response, y)
        assert np.isfinite(objective.evaluate(objective.null_start())[0])


def test_the_null_start_is_in_the_domain_whatever_the_offset():
    x, y = np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 2.0, 3.0])
    for response, offset in ((Exponential(), [-10.0, 0.0, -5.0]), (Poisson(), [-20.0, 0.0, 20.0])):
        objective = over(x, response, y, offset=offset)
        assert np.isfinite(objective.evaluate(objective.null_start())[0])
