"""Gaussian: mean and variance of each class."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import deciban as db
from deciban.families import Context, Gaussian
from deciban.families.priors import InverseGamma, Normal
from tests.cases import cases
from tests.exact import mean_and_squares
from tests.families.refits import fit
from tests.laws import family_subject, matrices, nans, tame, wild

SUBJECTS = [
    family_subject(Gaussian(), matrices(wild | nans)),
    family_subject(Gaussian(ddof=1), matrices(wild | nans)),
    family_subject(Gaussian(ddof=1), matrices(tame | nans), " tame"),
    family_subject(Gaussian(), matrices(tame | nans), " many", least=9),
    family_subject(Gaussian(mean=Normal(1.0, 2.0), variance=InverseGamma(2.0, 3.0)), matrices(tame | nans)),
]

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.normal(3, 2, 40), RNG.normal(-1e6, 0.5, 40), RNG.exponential(size=40)])
X[RNG.random(X.shape) < 0.1] = np.nan
LABELS = (np.arange(40) % 3).astype(np.int32)


def present(c, j, x=X, labels=LABELS):
    cells = x[labels == c, j]
    return cells[~np.isnan(cells)]


@cases("ddof", [0, 1])
def test_mean_and_variance_are_those_of_fractions(ddof):
    params = fit(Gaussian(ddof=ddof), X, LABELS)
    for c in range(3):
        for j in range(3):
            cells = present(c, j)
            mean, squares = mean_and_squares(cells)
            assert params.mean[c, j] == pytest.approx(float(mean), rel=1e-15)
            assert params.variance[c, j] == pytest.approx(float(squares / (len(cells) - ddof)), rel=1e-15)


def test_evade_incomes_of_the_lectures():
    no, yes = [125, 100, 70, 120, 60, 220, 75], [95, 85, 90]
    params = fit(Gaussian(), np.array([[*no, *yes]]).T, [0] * 7 + [1] * 3)
    assert params.mean[:, 0].tolist() == [110.0, 90.0]
    assert params.variance[1, 0] == pytest.approx(50 / 3, rel=1e-15)
    assert params.variance[0, 0] == pytest.approx(float(Fraction(sum((x - 110) ** 2 for x in no), 7)), rel=1e-15)


def test_log_density_is_that_of_scipy():
    family, params = Gaussian(), fit(Gaussian(), X, LABELS)
    asked = np.where(np.isnan(X), 0.25, X) + 0.1
    expected = stats.norm.logpdf(asked[:, np.newaxis], params.mean, np.sqrt(params.variance)).sum(axis=2)
    np.testing.assert_allclose(family.log_density(params, asked, 3), expected, rtol=1e-12)


def test_a_missing_cell_adds_nothing():
    family, params = Gaussian(), fit(Gaussian(), X, LABELS)
    row = np.array([[np.nan, -1e6, np.nan]])
    expected = stats.norm.logpdf(-1e6, params.mean[:, 1], np.sqrt(params.variance[:, 1]))
    np.testing.assert_allclose(family.log_density(params, row, 3)[0], expected, rtol=1e-12)
    assert family.log_density(params, np.full((1, 3), np.nan), 3).tolist() == [[0, 0, 0]]


def test_weights_of_a_constant_column_make_no_evidence():
    params = fit(Gaussian(), np.full((6, 1), 0.1), [0, 1] * 3, np.array([0.1, 0.2, 0.3, 0.7, 1.1, 1 / 3]))
    assert list(Gaussian().silent(params)) == [0]


@cases("ddof", [0, 1, 5])
def test_a_class_with_one_row_has_the_floor_for_a_variance(ddof):
    x = [[1.0], [2.0], [4.0], [9.0]]
    params = fit(Gaussian(ddof=ddof), x, [0, 0, 0, 1])
    _, squares = mean_and_squares([1, 2, 4, 9])
    assert params.mean[1, 0] == 9.0
    assert params.variance[1, 0] == pytest.approx(1e-9 * float(squares / 4), rel=1e-12)
    assert np.isfinite(Gaussian().log_density(params, np.array([[5.0]]), 2)).all()


def test_normal_prior_on_the_mean():
    """(Σx/σ² + η/λ²) / (n/σ² + 1/λ²), σ² being the variance found."""
    eta, sd = 10.0, 0.5
    params = fit(Gaussian(mean=Normal(eta, sd)), X, LABELS)
    for c in range(3):
        cells = [Fraction(v) for v in present(c, 0)]
        variance = mean_and_squares(cells)[1] / len(cells)
        expected = (sum(cells) / variance + Fraction(eta) / Fraction(sd) ** 2) / (
            len(cells) / variance + 1 / Fraction(sd) ** 2
        )
        assert params.mean[c, 0] == pytest.approx(float(expected), rel=1e-12)
        assert params.variance[c, 0] == pytest.approx(float(variance), rel=1e-12)


def test_inverse_gamma_prior_on_the_variance():
    """The posterior of σ² is InverseGamma(a + n/2, b + ½Σ(x − mean)²); its mode is where its density is largest."""
    a, b = 3.0, 2.0
    params = fit(Gaussian(variance=InverseGamma(a, b)), X, LABELS)
    for c in range(3):
        cells = present(c, 0)
        squares = float(mean_and_squares(cells)[1])
        posterior = stats.invgamma(a + len(cells) / 2, scale=b + squares / 2)
        result = params.variance[c, 0]
        assert result == pytest.approx((b + squares / 2) / (a + len(cells) / 2 + 1), rel=1e-12)
        assert posterior.logpdf(result) > max(posterior.logpdf(result * 1.001), posterior.logpdf(result / 1.001))


def test_both_priors_take_the_variance_first():
    params = fit(Gaussian(mean=Normal(1.0, 2.0), variance=InverseGamma(3.0, 2.0)), X, LABELS)
    cells = present(1, 2)
    mean, squares = (float(v) for v in mean_and_squares(cells))
    variance = (2.0 + squares / 2) / (3.0 + len(cells) / 2 + 1)
    expected = (len(cells) * mean / variance + 1 / 4) / (len(cells) / variance + 1 / 4)
    assert params.mean[1, 2] == pytest.approx(expected, rel=1e-12)


def test_single_precision_is_read_as_the_doubles_it_equals():
    x = np.nan_to_num(X).astype(np.float32)
    context = Context((0, 1, 2), (0, 1, 2))
    single = Gaussian().estimate(Gaussian().collect(x, LABELS, None, 3), context)
    double = fit(Gaussian(), x, LABELS)
    assert np.array_equal(single.mean, double.mean)
    assert np.array_equal(Gaussian().log_density(single, x, 3), Gaussian().log_density(double, x.astype(np.float64), 3))


@cases("kind", [np.float64, np.float32, np.int64])
def test_a_constant_column_is_silent_whatever_it_holds_later(kind):
    """Also where the square of a number is infinite; a constant column says nothing, so the other one decides."""
    x = np.column_stack([np.ones(6), [0, 1, 2, 8, 9, 10]]).astype(kind)
    y = [0, 0, 0, 1, 1, 1]
    model, alone = db.NaiveBayes().fit(x, y), db.NaiveBayes().fit(x[:, 1:], y)
    far = np.array([[1e200, 3.0], [-1e300, 7.0], [np.nan, 1.0]])
    np.testing.assert_allclose(model.predict_proba(far), alone.predict_proba(far[:, 1:]), rtol=1e-12)
    assert model.explain(far).decibans()[:, 1].tolist() == [0, 0, 0]
