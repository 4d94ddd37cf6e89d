"""Poisson: the rate is the mean. (tests/families/test_rate_family.py has what it shares with Exponential.)"""

import mpmath
import numpy as np
import pytest
from hypothesis import strategies as st

from deciban.families import Poisson
from deciban.families.poisson import FEW, log_factorial
from deciban.families.priors import Virtual
from tests.families.refits import assert_left_out_is_refitted, fit
from tests.laws import family_subject, matrices, nans

counts = st.integers(0, 9).map(float) | st.integers(0, 10**4).map(float)
SUBJECTS = [
    family_subject(Poisson(), matrices(counts | nans)),
    family_subject(Poisson(Virtual(0.5)), matrices(counts | nans)),
]


def test_a_class_that_never_counted_anything_has_the_floor_for_a_rate():
    params = fit(Poisson(), [[0.0], [0.0], [4.0], [8.0]], [0, 0, 1, 1])
    assert params.rate[:, 0].tolist() == [pytest.approx(1e-9 * 3), 6.0]


@pytest.mark.parametrize("prior", [None, Virtual(2.0)])
def test_a_class_at_the_floor_follows_the_mean_of_all(prior):
    """Class 1 is all zeros, so its rate is 1e-9 of the mean of all rows, which each row of class 0 moves."""
    x = np.array([[5.0], [90.0], [3.0], [0.0], [0.0], [0.0]])
    assert_left_out_is_refitted(Poisson(prior), x, [0, 0, 0, 1, 1, 1])


def test_factorials_are_those_of_mpmath():
    """From the table, at its end, and beyond; a missing cell has none."""
    x = np.concatenate([np.arange(40.0), FEW + np.arange(-3.0, 4.0), 10.0 ** np.arange(4, 300, 13)])
    expected = [float(mpmath.loggamma(mpmath.mpf(value) + 1)) for value in x]
    np.testing.assert_allclose(log_factorial(x), expected, rtol=1e-15)
    assert np.isnan(log_factorial(np.array([1.0, np.nan]))).tolist() == [False, True]
    assert log_factorial(np.array([1e308])).tolist() == [np.inf]
