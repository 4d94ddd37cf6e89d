"""A Gaussian less one row, in closed form."""

import mpmath
import numpy as np
import pytest
from scipy import stats

from deciban.families.loo.downdate import Downdate, Rotated, Whitened, log_density_without

X = np.random.default_rng(0).normal(size=(12, 3)) @ np.array([[1.0, 0.0, 0.0], [0.7, 1.0, 0.0], [-2.0, 0.3, 0.5]])
SCATTER = 12 * np.cov(X.T, ddof=0)
DOWNDATE = Downdate(np.array([12 / 11]), np.array([11.0]), np.array([11.0]))


@pytest.mark.parametrize("shrinkage", [None, 0.4])
def test_the_density_is_that_of_the_other_rows(shrinkage):
    """About their own mean, and about any other point."""
    total, away = np.diagonal(SCATTER), np.array([1.0, -2.0, 0.5])
    basis = Rotated(SCATTER, total, SCATTER, shrinkage, shrinkage) if shrinkage else Whitened(SCATTER, total)
    for i, x in enumerate(X):
        others = np.delete(X, i, axis=0)
        sigma = np.cov(others.T, ddof=0)
        sigma = (1 - (shrinkage or 0)) * sigma + (shrinkage or 0) * np.trace(sigma) / 3 * np.eye(3)
        means = others.mean(axis=0), X.mean(axis=0) - away
        v = basis.coordinates(x[np.newaxis], X.mean(axis=0))
        result, *_ = log_density_without(basis, v, np.array([0 * away, away]), np.array([[12 / 11, 1.0]]), DOWNDATE)
        np.testing.assert_allclose(
            result[0], [stats.multivariate_normal.logpdf(x, m, sigma) for m in means], rtol=1e-11
        )


def test_columns_of_very_different_size_keep_their_digits():
    """log |(1 − s)M + s t I| by mpmath; an eigenvalue that is off by 1e-16 of the largest would be off by itself."""
    size, s = np.array([1e-6, 1.0, 1e7]), 1e-9
    scatter = SCATTER * size * size[:, np.newaxis]
    basis = Rotated(scatter, np.diagonal(scatter), scatter, s, s)
    with mpmath.workdps(60):
        m = mpmath.matrix(scatter.tolist())
        t = (m[0, 0] + m[1, 1] + m[2, 2]) / 3
        expected = float(mpmath.log(mpmath.det((1 - mpmath.mpf(s)) * m + s * t * mpmath.eye(3))))
    result = basis.diagonal(np.zeros((1, 3)), DOWNDATE).log_det
    np.testing.assert_allclose(result, expected, rtol=1e-13)
