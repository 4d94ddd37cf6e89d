"""Binned: a number cut into intervals."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from deciban.families import Binned, Context
from deciban.families.priors import Dirichlet, Laplace, Virtual
from tests.cases import cases
from tests.families.refits import assert_left_out_is_refitted, paired
from tests.families.refits import fit as fit_family
from tests.laws import family_subject, matrices, nans, wild
from tests.statistics.test_histogram import at_level_of

SUBJECTS = [
    family_subject(Binned(bins, count=3, cap=cap), matrices(wild | nans), after_subtraction=at_level_of)
    for bins in ("supervised", "equal-frequency", "equal-width")
    for cap in (4, 2048)
] + [
    family_subject(Binned(bins, 2, Virtual(1.5), cap=4), matrices(wild | nans), after_subtraction=at_level_of)
    for bins in ("supervised", "equal-frequency", "equal-width")
]


BINS = ("supervised", "equal-frequency", "equal-width")
each_kind = pytest.mark.parametrize("bins", BINS)


def fit(family, x, labels=None, weights=None, **settings):
    """Of one column; without labels there is one class."""
    x = np.asarray(x, np.float64).reshape(-1, 1)
    return fit_family(family, x, np.zeros(len(x)) if labels is None else labels, weights, **settings)


# ---- where the cuts are -----------------------------------------------------------------------------------------


@cases(
    "bins, count, x, cuts",
    [
        ("equal-width", 4, np.arange(101.0), [24.5, 49.5, 74.5]),
        ("equal-frequency", 4, [1, 1, 1, 1, 1, 1, 2, 3], [1.5]),  # fewer bins where values tie
        ("equal-frequency", 2, [1.0, 2.0, 7.0, 9.0], [4.5]),  # half way between values
        *((bins, 2, [-1.7e308] * 9 + [1.7e308] * 9, [0.0]) for bins in BINS),
    ],
)
def test_cuts_are_where_they_should_be(bins, count, x, cuts):
    labels = np.arange(len(x)) * 2 // len(x)
    assert fit(Binned(bins, count=count), x, labels).cuts[0].tolist() == cuts


def test_equal_frequency_bins_hold_the_same_number_of_rows():
    x = np.random.default_rng(0).exponential(size=1000)
    params = fit(Binned("equal-frequency", count=8), x)
    assert np.diff([0, *np.searchsorted(np.sort(x), params.cuts[0]), 1000]).tolist() == [125] * 8


def test_neighbouring_doubles_are_in_different_bins():
    low, high = 1e15, np.nextafter(1e15, 2e15)
    family = Binned("equal-frequency", count=2)
    params = fit(family, [low, low, high, high], [0, 0, 1, 1])
    result = family.log_density(params, np.array([[low], [high]]), 2)
    np.testing.assert_allclose(np.exp(result), [[3 / 4, 1 / 4], [1 / 4, 3 / 4]], rtol=1e-14)


def entropy(labels):
    n = len(labels)
    return -sum(k / n * np.log2(k / n) for k in np.unique(labels, return_counts=True)[1])


def fayyad_irani(x, labels):
    """The cuts of Fayyad & Irani (1993), straight from the paper: by recursion, on the rows themselves."""
    values = np.unique(x)
    n, h, k = len(x), entropy(labels), len(np.unique(labels))
    best = None
    for a, b in pairwise(values):
        left, right = labels[x <= a], labels[x > a]
        split = (len(left) * entropy(left) + len(right) * entropy(right)) / n
        if best is None or split < best[0] - 1e-12:
            best = split, (a + b) / 2, a
    if best is None:
        return []
    split, cut, a = best
    left, right = labels[x <= a], labels[x > a]
    kinds = [len(np.unique(part)) for part in (left, right)]
    delta = np.log2(3**k - 2) - (k * h - kinds[0] * entropy(left) - kinds[1] * entropy(right))
    if h - split <= (np.log2(n - 1) + delta) / n:
        return []
    return [*fayyad_irani(x[x <= a], left), cut, *fayyad_irani(x[x > a], right)]


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_supervised_cuts_are_those_of_fayyad_and_irani(classes):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        labels = rng.integers(0, classes, 100)
        x = np.round(rng.normal(1.5 * labels, 1 + (labels == 1)), 1)
        assert fit(Binned(), x, labels).cuts[0].tolist() == pytest.approx(fayyad_irani(x, labels)), seed


def test_supervised_cuts_of_noise_are_none():
    rng = np.random.default_rng(1)
    family = Binned()
    params = fit(family, rng.normal(size=300), rng.integers(0, 2, 300))
    assert params.cuts[0].tolist() == []
    assert list(family.silent(params)) == [0]


def test_weights_that_round_are_cut_like_whole_ones():
    """Rows of weight 0.1, 1,000 times as many: cumulative sums of 0.1 are never quite whole."""
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 3, 300)
    x = np.round(rng.normal(2.0 * labels), 1)
    many = fit(Binned(), np.tile(x, 10), np.tile(labels, 10), np.full(3000, 0.1))
    assert many.cuts[0].tolist() == fit(Binned(), x, labels).cuts[0].tolist()


def test_there_may_be_hundreds_of_classes():
    labels = np.repeat(np.arange(300), 3)
    assert fit(Binned(), labels, labels).cuts[0].size > 0


# ---- what is in the bins ----------------------------------------------------------------------------------------

X = [0.5, 1.5, 1.6, 2.5, 3.5, 3.6, 3.7, np.nan]
LABELS = [0, 0, 1, 1, 1, 0, 1, 0]


@pytest.mark.parametrize("alpha", [0, 1, 0.5])
def test_the_estimate_is_smoothed_frequency_of_bins(alpha):
    """(k_b + α) / (n + αB)."""
    family, a = Binned("equal-width", count=3), Fraction(alpha)
    for params in (fit(family, X, LABELS, smoothing=alpha), fit(Binned("equal-width", 3, Laplace(alpha)), X, LABELS)):
        assert params.cuts[0] == pytest.approx([(1.5 + 1.6) / 2, (2.5 + 3.5) / 2])  # the edges are 1.57 and 2.63
        counts = [[2, 0, 1], [0, 2, 2]]
        expected = [[(k + a) / (sum(row) + 3 * a) for k in row] for row in counts]
        np.testing.assert_allclose(np.exp(params.log_p[0]), np.array(expected, float), rtol=1e-14)


def test_log_density_is_that_of_the_bin_and_a_cut_opens_the_upper_one():
    family = Binned("equal-frequency", count=2)
    params = fit(family, [1.0, 2.0, 3.0, 9.0], [0, 0, 1, 1])
    asked = np.array([[-1e300], [2.4999], [2.5], [1e300], [np.nan]])
    expected = np.log([[3 / 4, 1 / 4]] * 2 + [[1 / 4, 3 / 4]] * 2 + [[1, 1]])
    np.testing.assert_allclose(family.log_density(params, asked, 2), expected, rtol=1e-13)


def test_dirichlet_prior_on_bins():
    params = fit(Binned("equal-width", 2, Dirichlet([3.0, 1.5])), [0.0, 1.0, 9.0, 10.0])
    np.testing.assert_allclose(np.exp(params.log_p[0][0]), np.array([2 + 2, 2 + 0.5]) / (4 + 4.5 - 2), rtol=1e-14)


def test_bins_beyond_the_cap_are_nearly_the_same():
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 2, 5000)
    x = rng.normal(3.0 * labels)
    coarse, fine = (fit(Binned(cap=cap), x, labels).cuts[0] for cap in (500, 10_000))
    assert len(coarse) == len(fine)
    np.testing.assert_allclose(coarse, fine, atol=0.15)  # cells from 2 to 4 are 1/8 wide


def test_bins_can_be_chosen_again_from_the_same_evidence():
    x, labels = np.random.default_rng(4).normal(size=(400, 1)), (np.arange(400) % 2).astype(np.int32)
    evidence = Binned().collect(x, labels, None, 2)
    for family in (Binned("equal-width", 7), Binned("equal-frequency", 5)):
        later = family.estimate(evidence, Context((0, 1), ("x",)))
        assert np.array_equal(later.cuts[0], fit(family, x, labels).cuts[0])


@pytest.mark.parametrize("make", [lambda: Binned("random"), lambda: Binned(count=0), lambda: Binned(cap=1)])
def test_settings_that_make_no_sense_are_refused(make):
    with pytest.raises(ValueError, match="Binned"):
        make()


# ---- without a row ----------------------------------------------------------------------------------------------


@each_kind
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_a_row_left_out_is_a_refit(bins):
    """Cuts that depend on one row, values that many rows share or one has alone, and a full histogram."""
    rng = np.random.default_rng(5)
    labels = np.arange(30) % 3
    x = rng.normal(1.2 * labels[:, np.newaxis], [1.0, 0.3], (30, 2))
    x[rng.random(x.shape) < 0.05] = np.nan
    weights = [None, rng.choice([1.0, 2.0], 30), rng.choice([0.1, 0.3, 0.7], 30), rng.random(30)]
    for prior, (digits, cap), weight in paired(
        [None, Virtual(2.0), Laplace(0.0)], [(1, 15), (1, 2048), (15, 15), (15, 2048)], weights
    ):
        rounded = np.round(x, digits)
        assert_left_out_is_refitted(Binned(bins, 4, prior, cap), rounded, labels, weight, after_subtraction=at_level_of)


class ByTheCounts:
    """A prior that does not say what it follows."""

    def pseudo_counts(self, counts, levels, classes):
        return 0.1 * counts.max() + np.zeros(counts.shape)


def test_a_prior_of_ones_own_is_asked_again_for_every_row():
    rng = np.random.default_rng(7)
    assert_left_out_is_refitted(Binned("equal-width", 3, ByTheCounts()), rng.normal(size=(20, 2)), np.arange(20) % 2)
