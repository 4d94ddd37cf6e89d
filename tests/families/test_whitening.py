"""Whitening: a joint normal is the sum of terms that belong to its columns."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import logm, sqrtm
from scipy.stats import multivariate_normal

from deciban.families.whitening import Whitening


def covariances(seed, classes=3, d=4):
    a = np.random.default_rng(seed).normal(size=(classes, d, d + 2))
    return a @ a.transpose(0, 2, 1)


def rows(seed, classes=3, d=4, n=5):
    rng = np.random.default_rng(seed + 1)
    return rng.normal(size=(n, d)) * 3, rng.normal(size=(classes, d))


@pytest.mark.parametrize("shared", [True, False])
@given(st.integers(0, 2**32 - 2))
def test_terms_sum_to_the_log_density(shared, seed):
    sigma, (x, mean) = covariances(seed)[: 1 if shared else 3], rows(seed)
    expected = [multivariate_normal(mu, sigma[0 if shared else k]).logpdf(x) for k, mu in enumerate(mean)]
    result = Whitening.of(sigma).shares(x, mean)
    np.testing.assert_allclose(result.sum(axis=1).T, expected, rtol=1e-7, atol=1e-7)


def test_terms_are_those_of_the_roots_and_logarithms_of_correlations():
    """By scipy's functions of matrices: z = R^(−½)(x − μ)/σ, and the diagonal of log R."""
    sigma, (x, mean) = covariances(0), rows(0)
    result = Whitening.of(sigma).shares(x, mean)
    for k in range(3):
        sd = np.sqrt(np.diagonal(sigma[k]))
        correlations = sigma[k] / np.outer(sd, sd)
        z = (x - mean[k]) / sd @ np.linalg.inv(sqrtm(correlations))
        logs = -0.5 * np.log(2 * np.pi * sd**2) - 0.5 * np.diagonal(logm(correlations))
        np.testing.assert_allclose(result[:, :, k], logs - 0.5 * z**2, rtol=1e-9, atol=1e-9)


def test_independent_columns_have_their_own_densities():
    x, mean = rows(1)
    result = Whitening.of(np.diag([1.0, 4.0, 0.25, 9.0])[np.newaxis]).shares(x, mean)
    for j, sd in enumerate([1.0, 2.0, 0.5, 3.0]):
        expected = -0.5 * ((x[:, [j]] - mean[:, j]) / sd) ** 2 - np.log(sd * np.sqrt(2 * np.pi))
        np.testing.assert_allclose(result[:, j], expected, rtol=1e-12)


def test_units_do_not_matter_between_classes():
    sigma, (x, mean) = covariances(2), rows(2)
    unit = np.array([1.0, 1000.0, 0.001, 7.0])
    plain = Whitening.of(sigma).shares(x, mean)
    other = Whitening.of(sigma * np.outer(unit, unit)).shares(x * unit, mean * unit)
    np.testing.assert_allclose(other - other[:, :, :1], plain - plain[:, :, :1], rtol=1e-8, atol=1e-8)


def test_columns_that_repeat_each_other_share():
    """Rows of Σ⁻¹ give them large terms of opposite signs."""
    sigma = np.array([[[1.0, 0.999], [0.999, 1.0]]])
    x, mean = np.array([[1.0, 1.02]]), np.array([[0.0, 0.0], [1.0, 1.0]])
    result = Whitening.of(sigma).shares(x, mean)
    apart = result[0, :, 1] - result[0, :, 0]
    assert np.abs(apart).sum() == pytest.approx(abs(apart.sum()))
    away = x - mean
    by_rows = np.diff(-0.5 * away * (away @ np.linalg.inv(sigma[0])), axis=0)[0]
    assert by_rows.sum() == pytest.approx(apart.sum())
    assert np.abs(by_rows).sum() > 10 * abs(by_rows.sum())


def test_a_constant_column_says_nothing():
    sigma = np.zeros((1, 2, 2))
    sigma[0, 1, 1] = 4.0
    result = Whitening.of(sigma).shares(np.array([[5.0, 1.0]]), np.array([[3.0, 0.0], [3.0, 2.0]]))
    assert not result[:, 0].any()
    assert result[0, 1, 0] == pytest.approx(-0.125 - np.log(2 * np.sqrt(2 * np.pi)))
    assert not Whitening.of(np.zeros((1, 2, 2))).shares(np.ones((1, 2)), np.zeros((2, 2))).any()
