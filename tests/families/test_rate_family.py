"""Rates: what Poisson and Exponential have in common."""

import numpy as np
import pytest
from scipy import stats

from deciban.families import Exponential, Poisson
from deciban.families.priors import Virtual
from tests.exact import exact
from tests.families.refits import assert_left_out_is_refitted, fit

RNG = np.random.default_rng(0)
LABELS = np.arange(30) % 2
DRAWN = {Poisson: RNG.poisson([0.7, 30.0], size=(30, 2)) + 0.0, Exponential: RNG.exponential([0.1, 5.0], size=(30, 2))}
X = {kind: np.where(RNG.random(x.shape) < 0.1, np.nan, x) for kind, x in DRAWN.items()}
LOG_DENSITY = {Poisson: stats.poisson.logpmf, Exponential: lambda x, rate: stats.expon.logpdf(x, scale=1 / rate)}
each_kind = pytest.mark.parametrize("kind", [Poisson, Exponential])
each_family = pytest.mark.parametrize(
    "family", [Poisson(), Poisson(Virtual(0.3)), Exponential(), Exponential(Virtual(0.7))], ids=str
)


def mean_of(kind, params):
    return params.rate if kind is Poisson else 1 / params.rate


@each_kind
def test_the_mean_of_each_class_is_exact(kind):
    means = mean_of(kind, fit(kind(), X[kind], LABELS))
    for c, j in np.ndindex(2, 2):
        cells = X[kind][c == LABELS, j]
        cells = cells[~np.isnan(cells)]
        assert means[c, j] == pytest.approx(float(exact(cells) / len(cells)), rel=1e-15)


@each_kind
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_log_density_is_that_of_scipy(kind, dtype):
    params = fit(kind(), X[kind], LABELS)
    asked = np.where(np.isnan(X[kind]), 1.0, X[kind]).astype(dtype)
    expected = LOG_DENSITY[kind](asked.astype(np.float64)[:, np.newaxis], params.rate).sum(axis=2)
    np.testing.assert_allclose(kind().log_density(params, asked, 2), expected, rtol=1e-12, atol=1e-12)
    missing = kind().log_density(params, np.array([[np.nan, 2.0], [np.nan, np.nan]]), 2)
    np.testing.assert_allclose(missing[0], LOG_DENSITY[kind](2.0, params.rate[:, 1]), rtol=1e-12)
    assert missing[1].tolist() == [0, 0]


@each_kind
def test_virtual_rows_lie_at_the_mean_of_all(kind):
    params = fit(kind(Virtual(2.0)), [[1.0], [2.0], [6.0], [7.0]], [0, 0, 1, 1])
    np.testing.assert_allclose(mean_of(kind, params)[:, 0], [(3 + 2 * 4) / 4, (13 + 2 * 4) / 4], rtol=1e-15)


# ---- without a row ----------------------------------------------------------------------------------------------


def drawn(family, seed, n=30, classes=3):
    """A plain column, one with a class that is nearly always 0, one with a class that is never there, a constant."""
    rng, labels = np.random.default_rng(seed), np.arange(n) % classes
    x = rng.poisson([3.0, 30.0, 5.0, 0.0], (n, 4)).astype(np.float64)
    x[(labels == 1) & (rng.random(n) < 0.95), 1] = 0.0
    x[rng.random(x.shape) < 0.1] = np.nan
    x[labels == 2, 2] = np.nan
    return (x if isinstance(family, Poisson) else x + rng.random((n, 1)) + 1e-3), labels


@each_family
def test_a_row_left_out_is_a_refit(family, monkeypatch):
    for seed in range(2):
        assert_left_out_is_refitted(family, *drawn(family, seed), None if seed else RNG.random(30))
    monkeypatch.setattr("deciban.families.rate_family.CHUNK", 50)
    assert_left_out_is_refitted(family, *drawn(family, 3, n=31))


@each_family
@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 1.0, 0.1, 0.3, 0.7]])
def test_a_column_that_only_one_row_makes_vary(family, weights):
    x = np.array([[2.0, 2.0], [2.0, 3.0], [2.0, 4.0], [2.0, 5.0], [7.0, 6.0], [2.0, 8.0]])
    assert_left_out_is_refitted(family, x, [0, 1, 0, 1, 0, 1], weights)
