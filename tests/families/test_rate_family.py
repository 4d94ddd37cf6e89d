"""Rates: Poisson and Exponential without a row."""

import numpy as np
import pytest

from deciban.families import Exponential, Poisson
from deciban.families.priors import Virtual
from tests.families.refits import assert_left_out_is_refitted

FAMILIES = [Poisson(), Poisson(Virtual(1.5)), Exponential(), Exponential(Virtual(0.7))]
each_family = pytest.mark.parametrize("family", FAMILIES, ids=str)


def drawn(family, rng, n=60, classes=3):
    """A plain column, one with a class that is nearly always 0, one with a class that is never there, a constant."""
    labels = np.arange(n) % classes
    x = rng.poisson([3.0, 30.0, 5.0, 0.0], (n, 4)).astype(np.float64)
    x[(labels == 1) & (rng.random(n) < 0.95), 1] = 0.0
    x[rng.random(x.shape) < 0.1] = np.nan
    x[labels == 2, 2] = np.nan
    return (x if isinstance(family, Poisson) else x + rng.random((n, 1)) + 1e-3), labels


@each_family
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_a_row_left_out_is_a_refit(family, seed, weighted):
    rng = np.random.default_rng(seed)
    x, labels = drawn(family, rng)
    assert_left_out_is_refitted(family, x, labels, rng.random(len(x)) if weighted else None)


@each_family
def test_rows_are_left_out_in_chunks(family, monkeypatch):
    monkeypatch.setattr("deciban.families.rate_family.CHUNK", 50)
    assert_left_out_is_refitted(family, *drawn(family, np.random.default_rng(3), n=31))


@pytest.mark.parametrize("prior", [None, Virtual(2.0)])
def test_a_class_at_the_floor_follows_the_mean_of_all(prior):
    """Class 1 is all zeros, so its rate is 1e-9 of the mean of all rows, which each row of class 0 moves."""
    x = np.array([[5.0], [90.0], [3.0], [0.0], [0.0], [0.0]])
    assert_left_out_is_refitted(Poisson(prior), x, [0, 0, 0, 1, 1, 1])


@each_family
@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 1.0, 0.1, 0.3, 0.7]])
def test_a_column_that_only_one_row_makes_vary(family, weights):
    x = np.array([[2.0, 2.0], [2.0, 3.0], [2.0, 4.0], [2.0, 5.0], [7.0, 6.0], [2.0, 8.0]])
    assert_left_out_is_refitted(family, x, [0, 1, 0, 1, 0, 1], weights)


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
