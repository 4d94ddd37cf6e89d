"""Uniform: from the smallest to the largest, and a little wider."""

import numpy as np
import pytest
from scipy import stats

from deciban.families import Uniform
from deciban.families.priors import Laplace
from tests.cases import cases
from tests.families.refits import assert_left_out_is_refitted, fit
from tests.laws import family_subject, matrices, nans, wild

SUBJECTS = [
    family_subject(Uniform(), matrices(wild | nans), subtracts=False),
    family_subject(Uniform(Laplace(0.0)), matrices(wild | nans), subtracts=False),
]

MLE = Uniform(Laplace(0.0))


X = [[1.0], [3.0], [5.0], [8.0], [np.nan], [11.0]]
LABELS = [0, 0, 0, 1, 1, 1]


def test_maximum_likelihood_is_the_smallest_and_the_largest():
    for params in (fit(MLE, X, LABELS), fit(Uniform(), X, LABELS, smoothing=0.0)):
        assert params.low[:, 0].tolist() == [1.0, 8.0]
        assert params.high[:, 0].tolist() == [5.0, 11.0]


@cases("alpha", [0.5, 1.0, 2.0])
def test_the_interval_is_widened_by_alpha_gaps_of_the_column(alpha):
    for params in (fit(Uniform(Laplace(alpha)), X, LABELS), fit(Uniform(), X, LABELS, smoothing=alpha)):
        gaps = np.array([10 / 4, 10 / 3])  # range / (n + 1), n being 3 and 2
        np.testing.assert_allclose(params.low[:, 0], [1, 8] - alpha * gaps, rtol=1e-15)
        np.testing.assert_allclose(params.high[:, 0], [5, 11] + alpha * gaps, rtol=1e-15)


@cases("family", [Uniform(), MLE])
def test_log_density_is_that_of_scipy(family):
    params = fit(family, X, LABELS)
    asked = np.linspace(-5, 20, 51)[:, np.newaxis]
    with np.errstate(divide="ignore"):
        expected = stats.uniform.logpdf(asked, params.low[:, 0], params.high[:, 0] - params.low[:, 0])
    np.testing.assert_allclose(family.log_density(params, asked, 2), expected, rtol=1e-12)


def test_both_ends_belong_to_the_interval():
    params = fit(MLE, X, LABELS)
    result = MLE.log_density(params, np.array([[1.0], [5.0], [np.nextafter(5.0, 6.0)]]), 2)[:, 0]
    assert result.tolist() == [-np.log(4), -np.log(4), -np.inf]


def test_a_missing_cell_adds_nothing():
    assert Uniform().log_density(fit(Uniform(), X, LABELS), np.array([[np.nan]]), 2).tolist() == [[0, 0]]


def test_a_class_with_one_row_has_the_floor_for_a_width():
    params = fit(MLE, [[0.0], [10.0], [4.0]], [0, 0, 1])
    width = params.high[1, 0] - params.low[1, 0]
    assert width == pytest.approx(1e-9 * 10, rel=1e-6)
    assert params.low[1, 0] < 4.0 < params.high[1, 0]


@cases("family", [Uniform(), MLE])
@cases("middle", [1e9, 1e16, -1e16])
def test_a_class_with_one_row_far_from_zero_still_has_a_width(family, middle):
    step = np.spacing(abs(middle))
    params = fit(family, [[middle - step], [middle + step], [middle]], [0, 0, 1])
    density = family.log_density(params, np.array([[middle]]), 2)
    assert np.isfinite(density).all()
    assert density[0, 1] <= -np.log(step)  # no narrower than doubles are


@cases("family", [Uniform(), MLE])
@cases("top, weighted", [(4, False), (4, True), (40, True), (4000, False)])
def test_a_row_left_out_is_a_refit(family, top, weighted):
    """Extremes that many rows share, or one has alone; a class that is there once only in a column."""
    rng = np.random.default_rng(top)
    labels = np.arange(40) % 3
    x = rng.integers(-top, top, (40, 3)) / 7
    x[rng.random(x.shape) < 0.1] = np.nan
    x[np.flatnonzero(labels == 2)[1:], 2] = np.nan
    x[x == 0] *= rng.choice([-1.0, 1.0], (x == 0).sum())
    assert_left_out_is_refitted(family, x, labels, rng.random(40) if weighted else None)


def test_a_column_that_only_one_row_makes_vary_is_silent_without_it():
    assert_left_out_is_refitted(Uniform(), [[2.0], [2.0], [5.0], [2.0]], [0, 0, 1, 1])
