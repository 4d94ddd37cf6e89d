"""Exponential: the rate is the reciprocal of the mean. (tests/families/test_rate_family.py has what Poisson shares.)"""

import numpy as np
import pytest

from deciban.families import Exponential
from deciban.families.priors import Virtual
from tests.families.refits import assert_left_out_is_refitted
from tests.laws import family_subject, matrices, nans, positive

SUBJECTS = [
    family_subject(Exponential(), matrices(positive | nans)),
    family_subject(Exponential(Virtual(2.0)), matrices(positive | nans)),
]


@pytest.mark.parametrize("far", [1e8, 1e15])
@pytest.mark.parametrize("rows", [2, 5])
def test_a_column_that_varies_by_the_last_bit(far, rows):
    x = np.full((rows, 1), far)
    x[-1] = np.nextafter(far, np.inf)
    assert_left_out_is_refitted(Exponential(), x, np.zeros(rows))


@pytest.mark.parametrize("prior", [None, Virtual(0.5)])
@pytest.mark.parametrize("others", [[0.7, 2.9], [1e20, 3e20]])
def test_a_row_that_is_nearly_the_whole_sum(prior, others):
    """w·x of the first row is no double: what it leaves behind in its class is 1e20 times less."""
    x, weights = np.array([[1.1e20], [1.3], *([x] for x in others)]), [0.1, 0.3, 0.7, 0.9]
    assert_left_out_is_refitted(Exponential(prior), x, [0, 0, 1, 1], weights)
