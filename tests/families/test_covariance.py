"""Covariances: pooled, widened, whitened and shrunk."""

import numpy as np
import pytest

from deciban.families.covariance import narrowest, oas, pooled_covariance, pooled_mean, whitening_triangles, widened
from deciban.statistics import Scatter

RNG = np.random.default_rng(7)
X = RNG.normal(size=(40, 3)) @ RNG.normal(size=(3, 3)) + [5.0, -1.0, 0.0]
LABELS = (np.arange(40) % 3).astype(np.int32)


@pytest.mark.parametrize("sigma", [np.eye(3), np.zeros((2, 2)), np.diag([1.0, 4.0])])
def test_oas_is_at_most_one(sigma):
    assert 0 < oas(sigma, 5.0) <= 1


@pytest.mark.parametrize("shared", [False, True])
def test_pooled_moments_are_those_of_all_rows(shared):
    statistic = Scatter.of(X, LABELS, None, 3, shared=shared)
    np.testing.assert_allclose(pooled_mean(statistic), X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(pooled_covariance(statistic), np.cov(X.T, ddof=0), rtol=1e-12)


def test_triangles_whiten():
    sigma = np.cov(X.T)
    triangles, constants = whitening_triangles(sigma[np.newaxis])
    np.testing.assert_allclose(triangles[0].T @ triangles[0], np.linalg.inv(sigma), rtol=1e-10)
    assert constants[0] == pytest.approx(-0.5 * np.linalg.slogdet(2 * np.pi * sigma)[1], rel=1e-12)


def test_a_singular_covariance_is_widened_and_its_columns_are_named():
    sigma = np.array([[1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 2.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    sound, columns = widened(sigma, np.diagonal(sigma))
    assert sorted(columns) == [0, 1, 3]
    assert narrowest(sound[:3, :3], np.diagonal(sigma)[:3]) == pytest.approx(1e-9, rel=1e-6)
    np.testing.assert_allclose(sound, sigma, atol=1e-8)
