"""Every response is the exponential family of its definition."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate

from deciban.errors import DecibanError
from deciban.linear import responses
from deciban.linear.responses import Exponential, Multinomial
from tests.laws import members
from tests.linear.responses.registry import ALL, EXAMPLES, FAR, Example

each = pytest.mark.parametrize("example", EXAMPLES, ids=str)

# The derivative by five points: f(x − 2h), f(x − h), f(x + h), f(x + 2h). It errs by h⁴/30 of the fifth derivative and
# by ε/h of f: for h = 2e-3, by some 1e-12 of each. Near 0, which may be the end of the domain, h is shorter.
STEP, RTOL, ATOL = 2e-3, 1e-9, 1e-10


def derivative(function, eta, j):
    length = STEP * np.clip(np.abs(eta).min(axis=1), 0.02, 1.0)
    h = length[:, np.newaxis] * np.eye(eta.shape[1])[j]
    near = function(eta + h) - function(eta - h)
    far = function(eta + 2 * h) - function(eta - 2 * h)
    return (8.0 * near - far) / (12.0 * length)


def test_every_response_has_an_example():
    assert {type(example.response) for example in EXAMPLES} == set(ALL)
    assert ALL
    listed = {result for result in vars(responses).values() if isinstance(result, type)}
    assert set(members(responses, responses.Response)) <= listed, "import it in responses/__init__.py"


@each
def test_examples_are_in_the_domain(example):
    """y and η are in the domain, and there are several of each."""
    assert len(example.y) > 1
    assert len(example.eta) > 3
    np.testing.assert_array_equal(example.response.check(example.y), example.y)
    assert np.isfinite(example.response.log_partition(example.eta)).all()
    drawn = example.draw(np.random.default_rng(0), 20)
    np.testing.assert_array_equal(example.response.check(drawn), drawn)
    assert example.response.sufficient(example.y).shape == (len(example.y), example.m)


@each
def test_the_mean_is_the_derivative_of_the_log_partition(example):
    mean = example.response.mean(example.eta)
    assert mean.shape == example.eta.shape
    for j in range(example.m):
        result = derivative(example.response.log_partition, example.eta, j)
        size = np.abs(example.response.log_partition(example.eta)) + 1.0
        assert (np.abs(result - mean[:, j]) <= RTOL * np.abs(mean[:, j]) + ATOL * size).all()


@each
def test_the_variance_is_the_second_derivative(example):
    mean = example.response.mean(example.eta)
    for i in range(example.m):
        for j in range(example.m):
            result = derivative(lambda eta, i=i: example.response.mean(eta)[:, i], example.eta, j)
            variance = example.response.variance(mean, i, j)
            assert variance.shape == (len(mean),)
            np.testing.assert_allclose(variance, result, rtol=1e-7, atol=ATOL * (1.0 + np.abs(mean[:, i]).max()))


@each
def test_covariances_are_symmetric_and_positive_semi_definite(example):
    mean = example.response.mean(example.eta)
    places = range(example.m)
    matrices = np.array([[example.response.variance(mean, i, j) for j in places] for i in places]).transpose(2, 0, 1)
    np.testing.assert_array_equal(matrices, matrices.transpose(0, 2, 1))
    assert (np.linalg.eigvalsh(matrices) >= -1e-15 * np.abs(matrices).max()).all()


@each
def test_natural_is_the_inverse_of_the_mean(example):
    mean = example.response.mean(example.eta)
    # a mean within ε of 1 determines η to ε·e^η only
    known = np.abs(example.eta).max(axis=1) < 20 if example.support is not None else np.full(len(mean), True)
    eta, atol = example.eta[known], 1e-15 * np.exp(np.abs(example.eta[known]).clip(max=20).max())
    np.testing.assert_allclose(example.response.natural(mean[known]), eta, rtol=1e-12, atol=atol)


@each
@pytest.mark.parametrize("edge", [0.25, 1e-6])
def test_a_mean_at_the_edge_has_a_finite_eta_after_inside(example, edge):
    """For example the mean of rows of a single class, which has no finite intercept."""
    statistic = example.response.sufficient(example.y)
    moved = example.response.inside(statistic, edge)
    eta = example.response.natural(moved)
    assert eta.shape == statistic.shape
    assert np.isfinite(eta).all()
    assert np.isfinite(example.response.log_partition(eta)).all()
    np.testing.assert_allclose(moved, statistic, atol=example.m * edge)


def densities(example: Example, y, eta):
    """b(y) exp(η·T(y) − a(η)) of every y under one η."""
    response = example.response
    wide = np.broadcast_to(eta, (len(y), example.m))
    exponent = (wide * response.sufficient(y)).sum(axis=1) - response.log_partition(wide)
    return np.exp(response.log_base(y) + exponent)


def expected(example: Example, eta, function):
    """Σ or ∫ of density·function over all y."""
    if example.support is not None:
        return float((densities(example, example.support, eta) * function(example.support)).sum())
    mean = float(example.response.mean(eta[np.newaxis])[0, 0])
    spread = float(np.sqrt(example.response.variance(np.array([[mean]]), 0, 0)[0]))
    places = np.linspace(max(example.least, mean - 40.0 * spread), mean + 40.0 * spread, 41)

    def integrand(y):
        y = np.array([y])
        return (densities(example, y, eta) * function(y)).item()

    return float(sum(integrate.quad(integrand, a, b)[0] for a, b in pairwise(places)))


@each
def test_densities_sum_to_one_and_the_mean_is_the_expected_statistic(example):
    for eta in example.eta:
        assert expected(example, eta, np.ones_like) == pytest.approx(1.0, rel=1e-10)
        mean = example.response.mean(eta[np.newaxis])[0]
        for j in range(example.m):
            result = expected(example, eta, lambda y, j=j: example.response.sufficient(y)[:, j])
            assert result == pytest.approx(mean[j], rel=1e-9, abs=1e-12)


def pairs(example):
    """Every y under every η."""
    y = np.repeat(example.y, len(example.eta))
    return y, np.tile(example.eta, (len(example.y), 1))


@each
def test_the_density_agrees_with_scipy(example):
    y, eta = pairs(example)
    response = example.response
    terms = np.stack([response.log_base(y), (eta * response.sufficient(y)).sum(axis=1), -response.log_partition(eta)])
    reference = example.log_density(y, eta)
    assert np.isfinite(reference).all()
    # cancellation of large terms; for log y! two sources agree to about 1e-15 of it
    assert (np.abs(terms.sum(axis=0) - reference) <= 1e-14 * np.abs(terms).sum(axis=0) + 1e-14).all()


@each
def test_the_loss_is_the_distance_to_the_saturated_likelihood(example):
    y, eta = pairs(example)
    statistic, best = example.response.sufficient(y), example.best(y)
    loss = example.response.loss(statistic, eta)
    reference = example.log_density(y, best) - example.log_density(y, eta)
    size = 1.0 + np.abs(example.log_density(y, best)) + np.abs(example.log_density(y, eta)) + np.abs(y)
    assert loss.shape == (len(y),)
    assert (np.abs(loss - reference) <= 1e-13 * size * np.maximum(1.0, np.log(1.0 + np.abs(y)))).all()


@each
def test_nothing_is_better_than_the_saturated_point(example):
    y, eta = pairs(example)
    statistic = example.response.sufficient(y)
    rounding = 1e-14 * (1.0 + np.abs(example.response.saturated(statistic)) + np.abs(eta * statistic).sum(axis=1))
    assert (example.response.loss(statistic, eta) >= -rounding).all()
    best = example.best(y)
    rounding = 1e-14 * (1.0 + np.abs(example.response.saturated(statistic)) + np.abs(best * statistic).sum(axis=1))
    assert (np.abs(example.response.loss(statistic, best)) <= rounding).all()
    reached = (best * statistic).sum(axis=1) - example.response.log_partition(best)
    assert (np.abs(example.response.saturated(statistic) - reached) <= rounding).all()


@each
@settings(max_examples=10)
@given(data=st.data())
def test_the_loss_is_never_negative(example, data):
    y = np.array([data.draw(st.sampled_from(example.y.tolist()))])
    distance = data.draw(st.lists(st.floats(-0.99, 0.99), min_size=example.m, max_size=example.m))
    eta = example.centre + np.array([distance]) * min(example.room, 50.0)
    statistic = example.response.sufficient(y)
    size = 1.0 + np.abs(example.response.saturated(statistic)) + np.abs(eta * statistic).sum(axis=1)
    assert (example.response.loss(statistic, eta) >= -1e-14 * (size + example.response.log_partition(eta))).all()


@each
def test_extreme_predictors_are_finite(example):
    signs = np.array(np.meshgrid(*[[-1.0, 0.0, 1.0]] * example.m)).reshape(example.m, -1).T
    eta = 700.0 * signs
    inside = example.inside(eta)
    mean = example.response.mean(eta)
    statistic = np.tile(example.response.sufficient(example.y[:1]), (len(eta), 1))
    assert inside.any()
    assert np.isfinite(example.response.log_partition(eta))[inside].all()
    assert np.isfinite(mean)[inside].all()
    assert np.isfinite(example.response.loss(statistic, eta))[inside].all()
    for i in range(example.m):
        for j in range(example.m):
            assert np.isfinite(example.response.variance(mean, i, j))[inside].all()


def test_outside_its_domain_an_exponential_response_is_infinite():
    """Without a warning, as a line search may go there."""
    eta = np.array([[0.0], [1e-300], [700.0], [-1.0]])
    statistic = np.ones((4, 1))
    assert Exponential().log_partition(eta).tolist() == [np.inf, np.inf, np.inf, 0.0]
    assert Exponential().loss(statistic, eta).tolist() == [np.inf, np.inf, np.inf, 0.0]
    assert Exponential().mean(eta).tolist() == [[np.inf], [np.inf], [np.inf], [1.0]]


def test_too_many_events_are_infinite():
    """e^800 overflows without a warning."""
    eta = np.array([[FAR]])
    assert responses.Poisson().loss(np.array([[3.0]]), eta).tolist() == [np.inf]


@each
def test_a_bad_y_is_named_by_its_row(example):
    for y, row, words in example.bad.values():
        with pytest.raises(DecibanError) as error:
            example.response.check(y)
        assert str(error.value) == f"y, row {row}: {words} (a {example.response.name} response)"
    with pytest.raises(DecibanError, match=f"^y must be numbers for a {example.response.name} response; row 0 holds"):
        example.response.check(np.array(["yes", "no"]))


@each
def test_numbers_of_any_type_are_taken(example):
    for kind in (list, lambda y: y.astype(np.float32), lambda y: y.astype(object)):
        taken = example.response.check(kind(example.y[1:2]))
        assert taken.dtype == np.float64
        np.testing.assert_allclose(taken, example.y[1:2], rtol=1e-7)


@pytest.mark.parametrize("example", [e for e in EXAMPLES if e.response.name in ("bernoulli", "multinomial")], ids=str)
def test_an_invalid_class_index_is_refused(example):
    for y in (0.5, -1.0, 7.0):
        with pytest.raises(DecibanError, match=r"^y, row 1: "):
            example.response.check(np.array([0.0, y]))


def test_the_first_class_is_the_reference():
    statistic = Multinomial(3).sufficient(np.array([0.0, 1.0, 2.0]))
    assert statistic.tolist() == [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
