"""Bernoulli: true or false."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import strategies as st
from scipy import stats

from deciban.errors import DecibanError
from deciban.families import Bernoulli, Context
from deciban.families.priors import Beta, Laplace, Virtual
from tests.families.refits import assert_left_out_is_refitted, fit, left_out, paired
from tests.families.test_categorical import CLASSES, WEIGHTS, Own, Q
from tests.laws import family_subject, matrices, nans, tame

bits = st.sampled_from([0.0, 1.0])


def sparse(cells):
    dense = matrices(cells)
    return lambda n, d: dense(n, d).map(sp.csr_array)


SUBJECTS = [
    family_subject(Bernoulli(), matrices(bits | nans)),
    family_subject(Bernoulli(Laplace(0.0)), matrices(bits | nans)),
    family_subject(Bernoulli(threshold=2.5), matrices(tame | nans)),
    family_subject(Bernoulli(), sparse(bits), " sparse"),
    family_subject(Bernoulli(), sparse(bits), " sparse, MLE", settings={"smoothing": 0.0}),
    family_subject(Bernoulli(threshold=2.5), sparse(tame), " sparse"),
    family_subject(Bernoulli(threshold=2.5), sparse(tame), " sparse, MLE", settings={"smoothing": 0.0}),
    family_subject(Bernoulli(Beta(3.0, 1.0)), matrices(bits | nans)),
    family_subject(Bernoulli(Virtual(3.0)), matrices(bits | nans)),
    family_subject(Bernoulli(Virtual(3.0)), sparse(bits), " sparse"),
    family_subject(Bernoulli(), lambda n, d: sparse(bits)(n, 5 * d), " sparse, wide"),
    family_subject(Bernoulli(Own()), matrices(bits | nans)),
]

RNG = np.random.default_rng(0)
X = (RNG.random((30, 3)) < [0.2, 0.5, 0.9]).astype(np.float64)
LABELS = (np.arange(30) % 2).astype(np.int32)
WITH_MISSING = np.where(RNG.random(X.shape) < 0.2, np.nan, X)


def true_and_present(c, j, x=WITH_MISSING):
    cells = x[c == LABELS, j]
    return int(np.nansum(cells)), int((~np.isnan(cells)).sum())


@pytest.mark.parametrize("alpha", [0, 1, 2.5])
def test_the_estimate_is_smoothed_frequency(alpha):
    """(k + α) / (n + 2α)."""
    for params in (fit(Bernoulli(), WITH_MISSING, smoothing=alpha), fit(Bernoulli(Laplace(alpha)), WITH_MISSING)):
        for c in range(2):
            for j in range(3):
                k, n = true_and_present(c, j)
                expected = (k + Fraction(alpha)) / (n + 2 * Fraction(alpha))
                assert np.exp(params.log_p[c, j]) == pytest.approx([float(1 - expected), float(expected)], rel=1e-14)


def test_beta_prior_gives_the_mode_of_the_posterior():
    """(k + h − 1) / (n + h + t − 2), where Beta(k + h, n − k + t) has its mode."""
    heads, tails = 3.0, 5.0
    params = fit(Bernoulli(Beta(heads, tails)), WITH_MISSING)
    for c in range(2):
        k, n = true_and_present(c, 1)
        result = np.exp(params.log_p[c, 1, 1])
        assert result == pytest.approx((k + heads - 1) / (n + heads + tails - 2), rel=1e-14)
        posterior = stats.beta(k + heads, n - k + tails)
        assert posterior.logpdf(result) > max(posterior.logpdf(result - 1e-3), posterior.logpdf(result + 1e-3))


def test_beta_2_2_is_laplace():
    assert np.array_equal(fit(Bernoulli(Beta(2, 2)), WITH_MISSING).log_p, fit(Bernoulli(), WITH_MISSING).log_p)


def test_virtual_examples():
    """Q(v, c) = frequency of v in all classes / K; (k_v + m Q(v, c)) / (n + m Q(c))."""
    params = fit(Bernoulli(Virtual(4.0)), WITH_MISSING)
    (k0, n0), (k1, n1) = true_and_present(0, 2), true_and_present(1, 2)
    share = (k0 + k1) / (n0 + n1)
    assert np.exp(params.log_p[0, 2, 1]) == pytest.approx((k0 + 4 * share / 2) / (n0 + 4 / 2), rel=1e-14)


@pytest.mark.parametrize("rows", [X, sp.csr_array(X)], ids=["dense", "sparse"])
def test_log_density_is_that_of_scipy(rows):
    params = fit(Bernoulli(), WITH_MISSING)
    expected = stats.bernoulli.logpmf(X[:, np.newaxis], np.exp(params.log_p[:, :, 1])).sum(axis=2)
    np.testing.assert_allclose(Bernoulli().log_density(params, rows, 2), expected, rtol=1e-12)


def test_a_missing_cell_adds_nothing():
    params = fit(Bernoulli(), WITH_MISSING)
    result = Bernoulli().log_density(params, np.array([[np.nan, 0.0, np.nan], [np.nan] * 3]), 2)
    np.testing.assert_allclose(result[0], params.log_p[:, 1, 0], rtol=1e-15)
    assert result[1].tolist() == [0, 0]


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_sparse_rows_are_the_same_as_dense(smoothing):
    family = Bernoulli()
    dense, rows = fit(family, X, smoothing=smoothing), fit(family, sp.csr_array(X), smoothing=smoothing)
    assert np.array_equal(dense.log_p, rows.log_p)
    asked = np.eye(3)
    np.testing.assert_allclose(
        family.log_density(rows, sp.csr_array(asked), 2), family.log_density(dense, asked, 2), rtol=1e-12
    )


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_sparse_rows_with_a_threshold_are_the_same_as_dense(smoothing):
    family = Bernoulli(threshold=2.0)
    x = 5 * X * RNG.random(X.shape)
    params = fit(family, sp.csr_array(x), smoothing=smoothing)
    assert np.array_equal(params.log_p, fit(Bernoulli(), x > 2, smoothing=smoothing).log_p)
    expected = Bernoulli().log_density(params, (x > 2).astype(np.float64), 2)
    np.testing.assert_allclose(family.log_density(params, sp.csr_array(x), 2), expected, rtol=1e-12)
    np.testing.assert_allclose(sum(family.parts(params, sp.csr_array(x), expected.shape[1])), expected, rtol=1e-12)


def test_a_threshold_makes_truth_of_any_number():
    x = np.array([[-1.0], [2.5], [2.6], [np.nan]])
    params = fit(Bernoulli(threshold=2.5), x, [0] * 4, smoothing=0.0)
    assert np.exp(params.log_p[0, 0, 1]) == pytest.approx(1 / 3)


def test_a_threshold_below_zero_is_refused_for_sparse_rows():
    with pytest.raises(DecibanError, match="below 0"):
        fit(Bernoulli(threshold=-1.0), sp.csr_array(X))


# Leaving rows out ---------------------------------------------------------------------------------------------------


def many_words():
    """Of all rates; words of one row; a word that one row lacks; one that all rows have; one that none has."""
    words = (RNG.random((24, 8)) < np.linspace(0.05, 0.95, 8)).astype(np.float64)
    once = np.eye(24)[:, [3, 12]]
    return np.column_stack([words, once, 1 - once[:, 0], np.ones(24), np.zeros(24)])


WORDS = many_words()
WORDS_AND_MISSING = np.where(RNG.random(WORDS.shape) < 0.2, np.nan, WORDS)
WORDS_AND_MISSING[:, 0] = np.nan
WORDS_AND_MISSING[CLASSES == 1, 5] = np.nan  # a class without a cell
LAYOUTS = {
    "dense": WORDS_AND_MISSING,
    "float32, by column": np.asfortranarray(WORDS_AND_MISSING, dtype=np.float32),
    "sparse": sp.csr_array(WORDS),
}
PRIORS = [None, Laplace(0.0), Beta(3.0, 1.0), Virtual(2.0), Virtual(2.0, Q[:, :2] / Q[:, :2].sum()), Own()]


def test_a_row_left_out_is_a_row_never_learned():
    for prior, rows, weights in paired(PRIORS, LAYOUTS.values(), WEIGHTS.values()):
        assert_left_out_is_refitted(Bernoulli(prior), rows, CLASSES, weights)


@pytest.mark.parametrize("rows", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_the_left_out_row_is_taken_from_its_own_class(rows):
    """(k − 1 + α) / (n − 1 + 2α) in the row's class; a word of no other row says nothing."""
    x = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
    result = left_out(Bernoulli(), rows(x), np.array([0, 0, 0, 1, 1], np.int32), None, Context((0, 1), ("a", "b")))
    first = [Fraction(2 - 1 + 1, 3 - 1 + 2), Fraction(1 + 1, 2 + 2)]
    second = [Fraction(1 + 1, 2 + 2) * Fraction(1 + 1, 2 + 2), Fraction(1 + 1, 2 + 2) * Fraction(2 + 1, 2 + 2)]
    np.testing.assert_allclose(np.exp(result[:2]), np.array([first, second], float), rtol=1e-14)
