"""Multinomial: words drawn from the vocabulary of a class."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from deciban.families import Context, Multinomial
from deciban.families.multinomial import exact_product
from deciban.families.priors import Dirichlet, Laplace, Virtual
from tests.families.refits import assert_left_out_is_refitted, fit, left_out, paired
from tests.families.test_categorical import CLASSES, WEIGHTS, Own
from tests.laws import family_subject, matrices, nans

amounts = st.integers(0, 5).map(float) | st.floats(0.01, 10)


def sparse(cells):
    dense = matrices(cells)
    return lambda n, d: dense(n, d).map(sp.csr_array)


SUBJECTS = [
    family_subject(Multinomial(), matrices(amounts | nans)),
    family_subject(Multinomial(), matrices(amounts | nans), " MLE", settings={"smoothing": 0.0}),
    family_subject(Multinomial(), sparse(amounts), " sparse"),
    family_subject(Multinomial(), sparse(amounts | nans), " sparse, MLE", settings={"smoothing": 0.0}),
    family_subject(Multinomial(Virtual(3.0)), matrices(amounts | nans)),
    family_subject(Multinomial(Virtual(3.0)), sparse(amounts), " sparse"),
    family_subject(Multinomial(Dirichlet(1.5)), lambda n, d: sparse(amounts)(n, 5 * d), " sparse, wide"),
    family_subject(Multinomial(Own()), matrices(amounts | nans)),
]

RNG = np.random.default_rng(0)
X = RNG.poisson(0.8, size=(20, 5)).astype(np.float64)
LABELS = (np.arange(20) % 2).astype(np.int32)


@pytest.mark.parametrize("alpha", [0, 1, 0.1])
@pytest.mark.parametrize("rows", [X, sp.csr_array(X)], ids=["dense", "sparse"])
def test_the_estimate_is_smoothed_frequency_of_words(alpha, rows):
    """(k_v + α) / (all words of the class + αV)."""
    a = Fraction(alpha)
    for params in (fit(Multinomial(), rows, smoothing=alpha), fit(Multinomial(Laplace(alpha)), rows)):
        for c in range(2):
            counts = [int(k) for k in X[c == LABELS].sum(axis=0)]
            expected = [float((k + a) / (sum(counts) + 5 * a)) for k in counts]
            np.testing.assert_allclose(np.exp(params.log_p[c]), expected, rtol=1e-14)


def test_spam_of_the_lectures():
    """P(word | class) of the event model, α = 1 over six words: do math today buy book drugs."""
    mails = [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0], [0, 0, 0, 1, 1, 0], [1, 1, 1, 0, 0, 1], [0, 0, 1, 1, 1, 1]]
    p = np.exp(fit(Multinomial(), mails, [0, 1, 0, 1, 1]).log_p)
    np.testing.assert_allclose(p[0] * 11, [2, 2, 2, 2, 2, 1], rtol=1e-14)
    np.testing.assert_allclose(p[1] * 15, [2, 2, 3, 3, 2, 3], rtol=1e-14)


@pytest.mark.parametrize("rows", [X, sp.csr_array(X)], ids=["dense", "sparse"])
def test_log_density_is_that_of_scipy_but_for_the_number_of_orders(rows):
    params = fit(Multinomial(), X)
    result = Multinomial().log_density(params, rows, 2)
    n = X.sum(axis=1)
    for c in range(2):
        p = np.exp(params.log_p[c])
        orders = stats.multinomial.logpmf(X, n, np.full(5, 0.2)) - n * np.log(0.2)
        np.testing.assert_allclose(
            result[:, c], stats.multinomial.logpmf(X, n, p / p.sum()) - orders, rtol=1e-12, atol=1e-12
        )


@pytest.mark.parametrize("rows", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_a_missing_cell_adds_nothing(rows):
    params = fit(Multinomial(), X)
    result = Multinomial().log_density(params, rows([[np.nan, 2.0, 0.0, np.nan, 1.0]]), 2)
    np.testing.assert_allclose(result[0], 2 * params.log_p[:, 1] + params.log_p[:, 4], rtol=1e-14)
    with_missing = np.where(RNG.random(X.shape) < 0.2, np.nan, X)
    assert np.array_equal(
        fit(Multinomial(), rows(with_missing)).log_p, fit(Multinomial(), np.nan_to_num(with_missing)).log_p
    )


@pytest.mark.parametrize("rows", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_an_impossible_word_is_impossible_only_where_it_is_used(rows):
    params = fit(Multinomial(), [[1.0, 0.0], [1.0, 1.0]], [0, 1], smoothing=0.0)
    result = Multinomial().log_density(params, rows([[3.0, 0.0], [0.0, 1.0]]), 2)
    np.testing.assert_allclose(result, [[0.0, 3 * np.log(0.5)], [-np.inf, np.log(0.5)]])
    np.testing.assert_allclose(
        sum(Multinomial().parts(params, rows([[3.0, 0.0], [0.0, 1.0]]), result.shape[1])), result
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_sparse_rows_give_the_same_bits_as_dense(weighted):
    x = X * 0.1
    weights = RNG.random(20) if weighted else None
    dense, rows = (Multinomial().collect(v, LABELS, weights, 2) for v in (x, sp.csr_array(x)))
    assert np.array_equal(dense.sum_x.words, rows.sum_x.words)


def test_dirichlet_prior():
    """(k_v + a_v − 1) / (n + Σa − V)."""
    a = np.array([1.0, 2.0, 3.0, 1.5, 1.0])
    counts = X[LABELS == 1].sum(axis=0)
    p = np.exp(fit(Multinomial(Dirichlet(a.tolist())), X).log_p[1])
    np.testing.assert_allclose(p, (counts + a - 1) / (counts.sum() + a.sum() - 5), rtol=1e-14)


# Leaving rows out ---------------------------------------------------------------------------------------------------

WORDS = RNG.poisson(np.linspace(0.02, 4.0, 12), size=(24, 12)).astype(np.float64)
WORDS[7] = 0  # a row without words
WORDS[:, 5] = np.eye(24)[3]  # a word that only one row has
FRACTIONS = np.where(WORDS > 0, RNG.random(WORDS.shape), 0.0)
WITH_MISSING = np.where(RNG.random(WORDS.shape) < 0.2, np.nan, WORDS)
LAYOUTS = {
    "counts": WORDS,
    "missing values": WITH_MISSING,
    "float32, by column": np.asfortranarray(WITH_MISSING, dtype=np.float32),
    "fractions": FRACTIONS,
    "sparse": sp.csr_array(WORDS),
    "sparse fractions": sp.csr_array(FRACTIONS),
}
SHARES = RNG.random((3, 12))
PRIORS = [None, Laplace(0.0), Dirichlet(1.5), Virtual(2.0), Virtual(2.0, SHARES / SHARES.sum()), Own()]


def test_a_row_left_out_is_a_row_never_learned():
    for prior, rows, weights in paired(PRIORS, LAYOUTS.values(), WEIGHTS.values()):
        assert_left_out_is_refitted(Multinomial(prior), rows, CLASSES, weights)


@pytest.mark.parametrize("prior", [None, Laplace(0.0), Virtual(2.0)], ids=str)
@pytest.mark.parametrize("nobody", [0, 8])
def test_a_row_that_has_all_words_of_its_class_can_be_left_out(prior, nobody):
    """And so can rows beside a class that has no words at all."""
    x = FRACTIONS.copy()
    x[1:8] = 0
    x[:nobody] = 0
    assert_left_out_is_refitted(Multinomial(prior), x, CLASSES)


def test_a_row_that_stores_a_word_twice_can_be_left_out():
    once = sp.csr_array(WORDS)
    twice = sp.csr_array(
        (np.repeat(once.data / 2, 2), np.repeat(once.indices, 2), 2 * once.indptr), shape=once.shape, copy=True
    )
    context = Context((0, 1, 2), tuple(range(12)))
    stored = twice.nnz
    result, expected = (left_out(Multinomial(), rows, CLASSES, None, context) for rows in (twice, once))
    np.testing.assert_allclose(result, expected, rtol=1e-12)
    assert twice.nnz == stored


@pytest.mark.parametrize("rows", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_the_left_out_row_is_taken_from_its_own_class(rows):
    """(k_v − x_v + α) / (n − Σx + αV) in the row's class."""
    x, labels = np.array([[2.0, 1.0], [3.0, 0.0], [1.0, 1.0]]), np.array([0, 0, 1], np.int32)
    result = left_out(Multinomial(), rows(x), labels, None, Context((0, 1), ("a", "b")))
    own = Fraction(5 - 2 + 1, 6 - 3 + 2) ** 2 * Fraction(1 - 1 + 1, 6 - 3 + 2)
    other = Fraction(1 + 1, 2 + 2) ** 2 * Fraction(1 + 1, 2 + 2)
    np.testing.assert_allclose(np.exp(result[0]), [float(own), float(other)], rtol=1e-14)


@given(*[st.floats(2.0**-200, 2.0**200)] * 2)
def test_a_product_and_what_it_lost_are_the_product(a, b):
    high, low = exact_product(np.array([a]), np.array([b]))
    assert Fraction(high[0]) + Fraction(low[0]) == Fraction(a) * Fraction(b)
