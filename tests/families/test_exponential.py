"""Exponential: the rate is the reciprocal of the mean."""

import numpy as np
import pytest
from scipy import stats

from deciban.errors import BadCell
from deciban.families import Context, Exponential
from deciban.families.priors import Virtual
from tests.exact import exact
from tests.laws import family_subject, matrices, nans, positive

SUBJECTS = [
    family_subject(Exponential(), matrices(positive | nans)),
    family_subject(Exponential(Virtual(2.0)), matrices(positive | nans)),
]

RNG = np.random.default_rng(0)
X = RNG.exponential([0.1, 5.0], size=(30, 2))
X[RNG.random(X.shape) < 0.1] = np.nan
LABELS = (np.arange(30) % 2).astype(np.int32)


def fit(family, x=X, labels=LABELS, classes=2):
    x = np.asarray(x, dtype=np.float64)
    context = Context(tuple(range(classes)), tuple(range(x.shape[1])))
    return family.estimate(family.collect(x, np.asarray(labels, np.int32), None, classes), context)


def test_the_rate_is_n_over_the_sum():
    params = fit(Exponential())
    for c in range(2):
        for j in range(2):
            cells = X[c == LABELS, j]
            cells = cells[~np.isnan(cells)]
            assert params.rate[c, j] == pytest.approx(float(len(cells) / exact(cells)), rel=1e-15)


def test_log_density_is_that_of_scipy():
    params = fit(Exponential())
    asked = np.where(np.isnan(X), 1.0, X)
    expected = stats.expon.logpdf(asked[:, np.newaxis], scale=1 / params.rate).sum(axis=2)
    np.testing.assert_allclose(Exponential().log_density(params, asked, 2), expected, rtol=1e-12, atol=1e-12)


def test_a_missing_cell_adds_nothing():
    params = fit(Exponential())
    found = Exponential().log_density(params, np.array([[np.nan, 2.0], [np.nan, np.nan]]), 2)
    np.testing.assert_allclose(found[0], stats.expon.logpdf(2.0, scale=1 / params.rate[:, 1]), rtol=1e-12)
    assert found[1].tolist() == [0, 0]


@pytest.mark.parametrize("family", [Exponential(), Exponential(Virtual(0.3))], ids=str)
@pytest.mark.parametrize("column", [[0.3] * 6, [np.nan] * 6])
def test_a_column_constant_or_never_present_is_silent(column, family):
    x = np.column_stack([np.arange(1.0, 7.0), column])
    params = fit(family, x, [0, 1, 0, 1, 1, 1])
    assert list(family.silent(params)) == [1]
    difference = np.diff(family.log_density(params, np.array([[1.0, 0.7]]), 2))
    assert np.array_equal(difference, np.diff(family.log_density(params, np.array([[1.0, np.nan]]), 2)))


def test_a_class_with_no_cell_is_like_all_together():
    params = fit(Exponential(), [[1.0], [2.0], [6.0], [np.nan]], [0, 0, 0, 1])
    assert params.rate[:, 0].tolist() == [1 / 3, 1 / 3]


def test_virtual_rows_lie_at_the_mean_of_all():
    params = fit(Exponential(Virtual(2.0)), [[1.0], [2.0], [6.0], [7.0]], [0, 0, 1, 1])
    np.testing.assert_allclose(1 / params.rate[:, 0], [(3 + 2 * 4) / 4, (13 + 2 * 4) / 4], rtol=1e-15)


@pytest.mark.parametrize(
    ("bad", "problem"), [(0.0, "not above 0"), (-1.0, "not above 0"), (np.inf, "infinite"), (1e200, "too large")]
)
def test_a_cell_outside_the_domain_is_named(bad, problem):
    with pytest.raises(BadCell, match=problem) as caught:
        fit(Exponential(), [[1.0, 2.0], [3.0, bad]], [0, 0], 1)
    assert (caught.value.row, caught.value.column) == (1, 1)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.inf])
def test_a_cell_outside_the_domain_is_named_at_prediction(bad):
    with pytest.raises(BadCell):
        Exponential().log_density(fit(Exponential()), np.array([[1.0, bad]]), 2)


def test_there_are_kd_parameters():
    assert Exponential().n_parameters(fit(Exponential())) == 4


def test_the_table_shows_the_rate():
    table = Exponential().describe(fit(Exponential(), [[1.0], [3.0]], [0, 0], 1), Context(("all",), ("x",)))[0]
    assert (table.header, table.rows) == (("class", "rate"), (("all", 0.5),))
