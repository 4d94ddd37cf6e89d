"""Poisson: the rate is the mean."""

import mpmath
import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import stats

from deciban.errors import BadCell
from deciban.families import Context, Poisson
from deciban.families.poisson import FEW, log_factorial
from deciban.families.priors import Virtual
from tests.exact import exact
from tests.laws import family_subject, matrices, nans

counts = st.integers(0, 9).map(float) | st.integers(0, 10**4).map(float)
SUBJECTS = [
    family_subject(Poisson(), matrices(counts | nans)),
    family_subject(Poisson(Virtual(0.5)), matrices(counts | nans)),
]

RNG = np.random.default_rng(0)
X = RNG.poisson([0.7, 30.0], size=(30, 2)).astype(np.float64)
X[RNG.random(X.shape) < 0.1] = np.nan
LABELS = (np.arange(30) % 2).astype(np.int32)


def fit(family, x=X, labels=LABELS, classes=2):
    x = np.asarray(x, dtype=np.float64)
    context = Context(tuple(range(classes)), tuple(range(x.shape[1])))
    return family.estimate(family.collect(x, np.asarray(labels, np.int32), None, classes), context)


def test_the_rate_is_the_mean():
    params = fit(Poisson())
    for c in range(2):
        for j in range(2):
            cells = X[c == LABELS, j]
            cells = cells[~np.isnan(cells)]
            assert params.rate[c, j] == pytest.approx(float(exact(cells) / len(cells)), rel=1e-15)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_log_density_is_that_of_scipy(dtype):
    params = fit(Poisson())
    asked = np.nan_to_num(X).astype(dtype)
    expected = stats.poisson.logpmf(asked.astype(np.float64)[:, np.newaxis], params.rate).sum(axis=2)
    np.testing.assert_allclose(Poisson().log_density(params, asked, 2), expected, rtol=1e-12, atol=1e-12)


def test_a_missing_cell_adds_nothing():
    params = fit(Poisson())
    found = Poisson().log_density(params, np.array([[np.nan, 2.0], [np.nan, np.nan]]), 2)
    np.testing.assert_allclose(found[0], stats.poisson.logpmf(2, params.rate[:, 1]), rtol=1e-12)
    assert found[1].tolist() == [0, 0]


@pytest.mark.parametrize("family", [Poisson(), Poisson(Virtual(0.3))], ids=str)
@pytest.mark.parametrize("column", [[3.0] * 6, [0.0] * 6, [np.nan] * 6])
def test_a_column_constant_or_never_present_is_silent(column, family):
    x = np.column_stack([np.arange(6.0), column])
    params = fit(family, x, [0, 1, 0, 1, 1, 1])
    assert list(family.silent(params)) == [1]
    difference = np.diff(family.log_density(params, np.array([[1.0, 5.0]]), 2))
    assert np.array_equal(difference, np.diff(family.log_density(params, np.array([[1.0, np.nan]]), 2)))


def test_a_class_that_never_counted_anything_has_the_floor_for_a_rate():
    params = fit(Poisson(), [[0.0], [0.0], [4.0], [8.0]], [0, 0, 1, 1])
    assert params.rate[:, 0].tolist() == [pytest.approx(1e-9 * 3), 6.0]


def test_a_class_with_no_cell_is_like_all_together():
    params = fit(Poisson(), [[1.0], [2.0], [6.0], [np.nan]], [0, 0, 0, 1])
    assert params.rate[:, 0].tolist() == [3.0, 3.0]


def test_virtual_rows_lie_at_the_mean_of_all():
    params = fit(Poisson(Virtual(2.0)), [[1.0], [2.0], [6.0], [7.0]], [0, 0, 1, 1])
    np.testing.assert_allclose(params.rate[:, 0], [(3 + 2 * 4) / 4, (13 + 2 * 4) / 4], rtol=1e-15)


@pytest.mark.parametrize(
    ("bad", "problem"), [(-1.0, "not a count"), (0.5, "whole number"), (np.inf, "infinite"), (1e200, "too large")]
)
def test_a_cell_outside_the_domain_is_named(bad, problem):
    with pytest.raises(BadCell, match=problem) as caught:
        fit(Poisson(), [[1.0, 2.0], [3.0, bad]], [0, 0], 1)
    assert (caught.value.row, caught.value.column) == (1, 1)


@pytest.mark.parametrize("bad", [-1.0, 0.5, np.inf])
def test_a_cell_outside_the_domain_is_named_at_prediction(bad):
    with pytest.raises(BadCell):
        Poisson().log_density(fit(Poisson()), np.array([[1.0, bad]]), 2)


def test_there_are_kd_parameters():
    assert Poisson().n_parameters(fit(Poisson())) == 4


def test_the_table_shows_the_rate():
    table = Poisson().describe(fit(Poisson(), [[1.0], [3.0]], [0, 0], 1), Context(("all",), ("x",)))[0]
    assert (table.header, table.rows) == (("class", "rate"), (("all", 2.0),))


def test_factorials_are_those_of_mpmath():
    """From the table, at its end, and beyond; a missing cell has none."""
    x = np.concatenate([np.arange(40.0), FEW + np.arange(-3.0, 4.0), 10.0 ** np.arange(4, 300, 13)])
    expected = [float(mpmath.loggamma(mpmath.mpf(value) + 1)) for value in x]
    np.testing.assert_allclose(log_factorial(x), expected, rtol=1e-15)
    assert np.isnan(log_factorial(np.array([1.0, np.nan]))).tolist() == [False, True]
    assert log_factorial(np.array([1e308])).tolist() == [np.inf]
