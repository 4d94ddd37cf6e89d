"""Priors: every row of LECTURES.md section 3, and the class prior of section 1, against their formulas."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from deciban.errors import DecibanError
from deciban.families.priors import (
    Beta,
    Dirichlet,
    InverseGamma,
    InverseWishart,
    Laplace,
    Normal,
    Virtual,
    log_frequencies,
)
from deciban.generative.estimate import log_prior
from tests.cases import cases

COUNTS = np.array([[3.0, 0.0, 2.0], [1.0, 4.0, 0.0]])
LEVELS, CLASSES = ("a", "b", "c"), ("no", "yes")


def frequencies(prior, counts=COUNTS, levels=LEVELS):
    return np.exp(log_frequencies(counts, prior.pseudo_counts(counts, levels, CLASSES)))


@cases("alpha", [0, 1, 0.25])
def test_laplace(alpha):
    expected = [[(Fraction(k) + Fraction(alpha)) / (5 + 3 * Fraction(alpha)) for k in row] for row in COUNTS.tolist()]
    np.testing.assert_allclose(frequencies(Laplace(alpha)), np.array(expected, float), rtol=1e-14)


def test_beta_is_the_mode_of_its_posterior():
    heads, tails = 4.0, 2.5
    counts = np.array([[7.0, 3.0], [0.0, 6.0]])  # false, true
    result = frequencies(Beta(heads, tails), counts, (False, True))
    for (f, t), p in zip(counts, result[:, 1], strict=True):
        assert p == pytest.approx((t + heads - 1) / (t + f + heads + tails - 2), rel=1e-14)
        grid = np.linspace(0.001, 0.999, 999)
        best = grid[np.argmax(stats.beta.logpdf(grid, t + heads, f + tails))]
        assert p == pytest.approx(best, abs=2e-3)


def test_beta_2_2_is_laplace():
    counts = np.array([[7.0, 3.0], [0.0, 6.0]])
    assert np.array_equal(
        frequencies(Beta(2, 2), counts, (False, True)), frequencies(Laplace(1), counts, (False, True))
    )


def test_dirichlet():
    a = np.array([2.0, 1.0, 4.5])
    expected = (COUNTS + a - 1) / (COUNTS.sum(axis=1, keepdims=True) + a.sum() - 3)
    np.testing.assert_allclose(frequencies(Dirichlet(a.tolist())), expected, rtol=1e-14)
    np.testing.assert_allclose(frequencies(Dirichlet({"c": 4.5, "a": 2.0, "b": 1.0})), expected, rtol=1e-14)


def test_virtual_examples():
    q = np.array([[0.2, 0.1, 0.1], [0.05, 0.25, 0.3]])
    expected = (COUNTS + 6 * q) / (COUNTS.sum(axis=1) + 6 * q.sum(axis=1))[:, np.newaxis]
    np.testing.assert_allclose(frequencies(Virtual(6.0, q)), expected, rtol=1e-14)


def test_virtual_examples_of_all_classes_together():
    q = COUNTS.sum(axis=0) / COUNTS.sum() / 2
    np.testing.assert_allclose(frequencies(Virtual(6.0)), (COUNTS + 6 * q) / (5 + 3), rtol=1e-14)


def test_virtual_examples_where_nothing_was_seen_are_even():
    nothing = np.zeros((2, 4))
    np.testing.assert_allclose(frequencies(Virtual(2.0), nothing, tuple("abcd")), np.full((2, 4), 0.25), rtol=1e-14)


def test_normal():
    """The posterior of a mean is normal with this mean: precision-weighted, by Bayes."""
    x, variance, eta, sd = [1.0, 4.0, 7.0, 0.5], 2.5, -3.0, 1.25
    result = Normal(eta, sd).mode(np.array(4.0), np.array(sum(x)), np.array(variance))
    grid = np.linspace(-5, 5, 200_001)
    log_posterior = stats.norm.logpdf(grid, eta, sd) + sum(stats.norm.logpdf(v, grid, variance**0.5) for v in x)
    assert result == pytest.approx(grid[np.argmax(log_posterior)], abs=1e-4)
    assert result == pytest.approx((sum(x) / variance + eta / sd**2) / (4 / variance + 1 / sd**2), rel=1e-15)


def test_inverse_gamma():
    x, mean = np.array([1.0, 4.0, 7.0, 0.5]), 3.125
    result = InverseGamma(2.0, 1.5).mode(np.array(4.0), np.array(((x - mean) ** 2).sum()))
    grid = np.linspace(0.5, 20, 200_001)
    likelihood = sum(stats.norm.logpdf(v, mean, np.sqrt(grid)) for v in x)
    log_posterior = stats.invgamma.logpdf(grid, 2.0, scale=1.5) + likelihood
    assert result == pytest.approx(grid[np.argmax(log_posterior)], abs=2e-4)


@cases("scale", [0.7, [[0.7, 0.2], [0.2, 1.1]]])
def test_inverse_wishart(scale):
    """(Ψ + S) / (ν + n + d + 1): nothing near it has a larger posterior density."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(9, 2))
    centred = x - x.mean(axis=0)
    scatter = centred.T @ centred
    result = InverseWishart(4.0, scale).mode(np.array(9.0), scatter)
    psi = scale * np.eye(2) if np.ndim(scale) == 0 else np.array(scale)
    np.testing.assert_allclose(result, (psi + scatter) / (4 + 9 + 2 + 1), rtol=1e-14)

    def log_posterior(sigma):
        rows = stats.multivariate_normal.logpdf(centred, np.zeros(2), sigma).sum()
        return stats.invwishart.logpdf(sigma, 4.0, psi) + rows

    for step in (np.diag([1e-3, 0]), np.diag([0, 1e-3]), np.array([[0, 1e-3], [1e-3, 0]])):
        assert log_posterior(result) > max(log_posterior(result + step), log_posterior(result - step))


def test_inverse_wishart_of_several_matrices():
    scatters, counts = np.stack([np.eye(2), 3 * np.eye(2)]), np.array([4.0, 10.0])
    result = InverseWishart(3.0, 1.0).mode(counts, scatters)
    np.testing.assert_allclose(result, [2 / 10 * np.eye(2), 4 / 16 * np.eye(2)], rtol=1e-14)


def test_frequencies_of_a_class_without_evidence_are_those_of_all_together():
    result = frequencies(Laplace(0.0), np.array([[3.0, 1.0, 0.0], [0.0, 0.0, 0.0]]))
    np.testing.assert_allclose(result, [[0.75, 0.25, 0.0]] * 2, rtol=1e-14)


def test_frequencies_of_nothing_at_all_are_even():
    np.testing.assert_allclose(frequencies(Laplace(0.0), np.zeros((2, 3))), np.full((2, 3), 1 / 3), rtol=1e-14)


@cases(
    "prior, expected",
    [
        ("empirical", [Fraction(2, 9), Fraction(7, 9)]),
        ("laplace", [Fraction(3, 11), Fraction(8, 11)]),
        ("uniform", [Fraction(1, 2), Fraction(1, 2)]),
        ([0.1, 0.9], [Fraction(1, 10), Fraction(9, 10)]),
        ({"yes": 0.9, "no": 0.1}, [Fraction(1, 10), Fraction(9, 10)]),
    ],
)
def test_class_prior(prior, expected):
    result = np.exp(log_prior(np.array([2.0, 7.0]), CLASSES, prior))
    np.testing.assert_allclose(result, np.array(expected, float), rtol=1e-14)


@cases(
    "make",
    [
        lambda: Laplace(-1.0),
        lambda: Beta(0.5, 2.0),
        lambda: Virtual(-1.0),
        lambda: Normal(0.0, 0.0),
        lambda: InverseGamma(0.0, 1.0),
        lambda: Beta(2, 2).pseudo_counts(COUNTS, LEVELS, CLASSES),
        lambda: Dirichlet([1.0, 2.0]).pseudo_counts(COUNTS, LEVELS, CLASSES),
        lambda: Dirichlet(0.5).pseudo_counts(COUNTS, LEVELS, CLASSES),
        lambda: Dirichlet({"a": 1.0}).pseudo_counts(COUNTS, LEVELS, CLASSES),
        lambda: Virtual(1.0, np.ones((2, 3))).pseudo_counts(COUNTS, LEVELS, CLASSES),
        lambda: Virtual(1.0, np.full((3, 2), 1 / 6)).pseudo_counts(COUNTS, LEVELS, CLASSES),
        lambda: InverseWishart(1.0, 1.0).mode(np.array(4.0), np.eye(2)),
        lambda: InverseWishart(4.0, np.eye(3)).mode(np.array(4.0), np.eye(2)),
    ],
)
def test_a_prior_that_makes_no_sense_is_refused(make):
    with pytest.raises(DecibanError):
        make()
