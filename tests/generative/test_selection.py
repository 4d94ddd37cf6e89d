"""Selection: the criterion is that of refits without each row, and the selected value is where it is largest."""

import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

import deciban as db
from deciban import families as fam
from deciban.data import labelled_rows
from deciban.data.schema import Schema
from deciban.families import Context
from deciban.generative import selection
from deciban.generative.selection import choose_smoothing, compare_on
from deciban.statistics import Histogram

DECIBANS = 10 / np.log(10)  # in one nat
LEAST = np.log(np.finfo(np.float64).eps)
ALPHAS = np.exp(np.linspace(np.log(1e-3), np.log(1e3), 100))
EXACT = {"rtol": 1e-9, "atol": 1e-9}


# Smoothing, the slow way: counts in dicts, every cell taken out of them in its turn ---------------------------------


def of_values(column, y, alpha, weights=None, reserve=False):
    """Σ log p(x_i|c_i) of a Categorical column without its cell i; of weighted rows as much as 1 is left out of k."""
    weights = np.ones(len(y)) if weights is None else weights
    held = {}
    for value, label, weight in zip(column, y, weights, strict=True):
        if weight and not missing(value):
            held[label, value] = held.get((label, value), 0.0) + weight
    total = 0.0
    for (label, value), times in held.items():
        rest = dict(held)
        rest[label, value] -= min(times, 1.0)
        if rest[label, value] == 0:
            del rest[label, value]
        seen = {v for _, v in rest}
        if value not in seen and not reserve:
            continue  # a value that is in one row only is never seen without it: no evidence
        n = sum(k for (c, _), k in rest.items() if c == label)
        p = (rest.get((label, value), 0.0) + alpha) / (n + alpha * (len(seen) + reserve))
        total += times * np.log(p)
    return total


def of_truths(column, y, alpha, weights=None):
    """The same of a Bernoulli column: always two values, and silent while all that are left are one."""
    weights = np.ones(len(y)) if weights is None else weights
    total = 0.0
    for label, value in product(set(y), (0, 1)):
        here = np.array([not missing(v) for v in column])
        k = {(c, v): weights[here & (y == c) & (column == v)].sum() for c in set(y) for v in (0, 1)}
        times = k[label, value]
        k[label, value] -= min(times, 1.0)
        if times and all(sum(k[c, v] for c in set(y)) > 0 for v in (0, 1)):
            p = (k[label, value] + alpha) / (k[label, 0] + k[label, 1] + 2 * alpha)
            total += times * np.log(p)
    return total


def of_words(counts, y, alpha):
    """Σ log θ of every word of a Multinomial, without that one word."""
    total = 0.0
    for label in set(y):
        k = counts[y == label].sum(axis=0)
        for v in np.flatnonzero(k):
            out = min(k[v], 1.0)
            total += k[v] * np.log((k[v] - out + alpha) / (k.sum() - out + alpha * len(k)))
    return total


def of_bins(family, x, y, alpha):
    """Σ log p(x_i|c_i) of a Binned column, collected and cut again without each row."""
    classes = int(y.max()) + 1
    context = Context(tuple(range(classes)), ("x",), alpha)
    total = 0.0
    for i in np.flatnonzero(~np.isnan(x)):
        rest = np.delete(np.arange(len(x)), i)
        params = family.estimate(family.collect(x[rest, np.newaxis], y[rest], None, classes), context)
        total += family.log_density(params, x[[i], np.newaxis], classes)[0, y[i]]
    return total


def missing(value):
    return value is None or value != value


def assert_chosen(model, likelihood, grid=ALPHAS):
    """What a choice says of itself is what the slow way says, and nothing does better. (The model is fitted.)"""
    evidence, rows = model.generative_, model.class_count_.sum()
    reserve = model.unseen == "reserve"
    for other in (1.0, 0.003, 0.2, 30.0):
        choice = choose_smoothing(evidence, reserve=reserve, default=other)
        gained = likelihood(choice.value) - likelihood(other)
        np.testing.assert_allclose(choice.decibans * rows / DECIBANS, gained, **EXACT)
    chosen, likelihoods = model.smoothing_, np.array([likelihood(a) for a in grid])
    assert choice.value == chosen
    assert likelihood(chosen) >= likelihoods.max() - 1e-6
    best = int(np.argmax(likelihoods))
    if 0 < best < len(grid) - 1:
        around = np.log(grid[[best - 1, best + 1]])
        peak = minimize_scalar(
            lambda t: -likelihood(np.exp(t)), bounds=around, method="bounded", options={"xatol": 1e-3}
        )
        assert abs(np.log(chosen) - peak.x) < 0.01
    else:
        assert abs(np.log(chosen / grid[best])) < 0.035


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def skewed(rng, n, values, y):
    """Values of which some are rare, the classes differing."""
    p = 0.6 ** np.arange(values)
    return np.array([rng.choice(np.roll(np.arange(values), c), p=p / p.sum()) for c in y[:n]])


@pytest.mark.parametrize(("values", "reserve"), [(2, True), (5, False), (12, True), (12, False)])
def test_smoothing_of_categories(rng, values, reserve):
    y = rng.integers(0, 3, 60)
    x = skewed(rng, 60, values, y)
    model = db.NaiveBayes(fam.Categorical(), "auto", unseen="reserve" if reserve else "skip").fit(x[:, np.newaxis], y)
    assert_chosen(model, lambda a: of_values(x, y, a, reserve=reserve))


def test_values_that_occur_once_say_nothing_of_smoothing(rng):
    y = rng.integers(0, 2, 40)
    x = skewed(rng, 40, 4, y).astype(object)
    once = np.r_[x, [f"only {i}" for i in range(10)]]
    labels = np.r_[y, [0, 1] * 5]
    model = db.NaiveBayes(smoothing="auto").fit(pd.DataFrame({"x": once.astype(str)}), labels)
    assert_chosen(model, lambda a: of_values(once, labels, a))
    nothing = db.NaiveBayes(smoothing="auto").fit(pd.DataFrame({"x": list("abcdef")}), [0, 1] * 3)
    assert choose_smoothing(nothing.generative_, reserve=False).decibans == 0


def test_smoothing_of_truths(rng):
    y = rng.integers(0, 4, 50)
    x = (rng.random(50) < np.array([0.02, 0.1, 0.5, 0.9])[y]).astype(float)
    x[::9] = np.nan
    model = db.NaiveBayes(fam.Bernoulli(), "auto").fit(x[:, np.newaxis], y)
    assert_chosen(model, lambda a: of_truths(x, y, a))


def test_smoothing_of_truths_above_a_threshold(rng):
    y = rng.integers(0, 3, 50)
    x = rng.normal(size=50) + y
    model = db.NaiveBayes(fam.Bernoulli(threshold=1.7), "auto").fit(x[:, np.newaxis], y)
    assert_chosen(model, lambda a: of_truths((x > 1.7).astype(int), y, a))


@pytest.mark.parametrize("truths", [[1, 0, 0, 0, 0, 0], [0, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1]])
def test_a_column_that_is_constant_without_a_row_is_silent_for_it(truths):
    x, y = np.array(truths, float), np.array([0, 0, 0, 1, 1, 1])
    model = db.NaiveBayes(fam.Bernoulli(), "auto").fit(x[:, np.newaxis], y)
    for other in (0.01, 20.0):
        choice = choose_smoothing(model.generative_, reserve=False, default=other)
        gained = of_truths(x, y, choice.value) - of_truths(x, y, other)
        np.testing.assert_allclose(choice.decibans * 6 / DECIBANS, gained, **EXACT)


@pytest.mark.parametrize(
    "family", [fam.Binned(), fam.Binned("equal-width", count=5), fam.Binned("equal-frequency", count=4)], ids=str
)
def test_smoothing_of_bins(rng, family):
    y = rng.integers(0, 2, 16).astype(np.int32)
    x = np.round(rng.normal(size=16) + 2 * y, 1)
    x[3] = np.nan
    model = db.NaiveBayes(family, "auto").fit(x[:, np.newaxis], y)
    assert_chosen(model, lambda a: of_bins(family, x, y, a), grid=ALPHAS[::20])


@pytest.mark.parametrize(("sparse", "scale"), [(False, 1.0), (True, 0.25)])
def test_smoothing_of_words(rng, sparse, scale):
    """Fractions of a word (tf-idf) too: what there is of it is left out."""
    y = rng.integers(0, 3, 20)
    counts = scale * rng.poisson(0.15, (20, 40)) * (1 + (np.arange(40) % 3 == y[:, np.newaxis]))
    x = sp.csr_array(counts.astype(float)) if sparse else counts
    model = db.NaiveBayes(fam.Multinomial(), "auto").fit(x, y)
    assert_chosen(model, lambda a: of_words(counts, y, a))


@pytest.mark.parametrize("of", ["whole", "fractions"])
def test_smoothing_with_weights(rng, of):
    """As much as 1 is left out of the weight of equal cells, or all there is; the sum has their weight."""
    y = rng.integers(0, 2, 40)
    x, flag = skewed(rng, 40, 6, y), rng.integers(0, 2, 40)
    weights = rng.choice([0.0, 1.0, 3.0] if of == "whole" else [0.0, 0.125, 0.25, 2.5], 40)
    table = pd.DataFrame({"x": x.astype(str), "flag": flag.astype(bool)})
    model = db.NaiveBayes(smoothing="auto").fit(table, y, weights)
    assert_chosen(model, lambda a: of_values(x, y, a, weights) + of_truths(flag, y, a, weights))
    if of == "whole":
        again = np.repeat(np.arange(40), weights.astype(int))
        repeated = db.NaiveBayes(smoothing="auto").fit(table.iloc[again], y[again])
        assert model.smoothing_ == repeated.smoothing_


@pytest.mark.parametrize("how", ["skip", "category"])
def test_smoothing_of_a_mixed_table(rng, how):
    """The sum over all columns that are counted; that a cell is missing is counted too, where it is a value."""
    y = rng.integers(0, 3, 50)
    text = np.where(rng.random(50) < 0.2, None, skewed(rng, 50, 5, y).astype(str).astype(object))
    size = np.where(rng.random(50) < 0.1 * y, np.nan, rng.normal(size=50))
    flag = rng.random(50) < 0.3 * y
    table = pd.DataFrame({"size": size, "text": text, "flag": flag})
    model = db.NaiveBayes(smoothing="auto", missing=how).fit(table, y)

    def likelihood(alpha):
        if how == "skip":
            return of_values(text, y, alpha) + of_truths(flag, y, alpha)
        named = np.where(np.equal(text, None), "missing", text)
        gaps = of_truths(np.isnan(size).astype(int), y, alpha)  # of `flag` no cell is missing: constant, so silent
        return of_values(named, y, alpha) + of_truths(flag, y, alpha) + gaps

    assert_chosen(model, likelihood)


def test_columns_with_a_prior_of_their_own_do_not_take_part(rng):
    y = rng.integers(0, 2, 40)
    x = np.c_[skewed(rng, 40, 6, y), rng.integers(0, 30, 40)]
    families = {0: fam.Categorical(), 1: fam.Categorical(db.priors.Laplace(2.0))}
    model = db.NaiveBayes(families, "auto").fit(x, y)
    assert_chosen(model, lambda a: of_values(x[:, 0], y, a))


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1), reserve=st.booleans())
def test_smoothing_of_small_tables_with_a_class_of_one_row(seed, reserve):
    """Of a class that has no other row all values are equally probable: k = 0, so α/(αV)."""
    rng = np.random.default_rng(seed)
    y = np.r_[rng.integers(0, 2, 12), 2]
    x = rng.integers(0, 4, 13)
    model = db.NaiveBayes(fam.Categorical(), "auto", unseen="reserve" if reserve else "error").fit(x[:, np.newaxis], y)
    for other in (0.01, 5.0):
        choice = choose_smoothing(model.generative_, reserve=reserve, default=other)
        gained = of_values(x, y, choice.value, reserve=reserve) - of_values(x, y, other, reserve=reserve)
        np.testing.assert_allclose(choice.decibans * 13 / DECIBANS, gained, **EXACT)


def test_smoothing_where_the_likelihood_has_two_maxima():
    """A column of many values, of which two classes have one each, wants little; many even columns want much."""
    y = np.repeat([0, 1, 2], 200)
    sharp = np.full(600, None, dtype=object)
    sharp[:10], sharp[200:210], sharp[400:500] = "a", "b", [f"c{i}" for i in range(100)]
    even = np.tile([0, 1], 300).astype(bool)
    table = pd.DataFrame({"sharp": sharp, **{f"even {j}": even for j in range(60)}})
    model = db.NaiveBayes(smoothing="auto").fit(table, y)
    actual = [
        of_values(sharp, y, a) + 60 * of_truths(even, y, a) for a in (*ALPHAS[::15], ALPHAS[-1], model.smoothing_)
    ]
    assert actual[-1] >= max(actual) - 1e-6


# Families: compared with refits ---------------------------------------------------------------------------------------


def refit_decibans(family, x, y, weights=None):
    """Mean 10 log₁₀ p(c_i|x_i), the model being refitted without each row; of present cells."""
    weights = np.ones(len(y)) if weights is None else weights
    kept = np.flatnonzero(~np.isnan(x) & (weights > 0) & (np.bincount(y)[y] > 1))
    own = np.empty(len(kept))
    for place, i in enumerate(kept):
        rest = kept[kept != i]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", db.DecibanWarning)
            model = db.NaiveBayes(family).fit(x[rest, np.newaxis], y[rest], weights[rest])
            log_p = model.predict_log_proba(x[[i], np.newaxis])[0]
        own[place] = max(log_p[model.classes_ == y[i]], default=LEAST)
    return np.average(np.maximum(own, LEAST), weights=weights[kept]) * DECIBANS


def assert_comparison(x, y, weights=None, among=None):
    """Every number is that of the refits, and so is the winner, whom it returns."""
    comparison = compare_on("x", x, y.astype(np.int32), weights, int(y.max()) + 1)
    expected = {family: refit_decibans(family, x, y, weights) for family in comparison.decibans}
    for family, decibans in comparison.decibans.items():
        np.testing.assert_allclose(decibans, expected[family], **EXACT, err_msg=str(family))
    best = max(expected.values())
    assert expected[comparison.winner] >= best - 1e-9
    if among is not None:
        assert {type(family) for family in comparison.decibans} == among
    return type(comparison.winner)


def drawn(rng, kind, n):
    y = np.arange(n) % 2
    if kind == "gaussian":
        return rng.normal(2.0 * y, 1.0), y
    if kind == "exponential":
        return rng.exponential(1.0 + 9.0 * y), y
    if kind == "poisson":
        return rng.poisson(1.0 + 3.0 * y).astype(float), y
    return np.where(y, rng.choice([-4.0, 4.0], n), 0.0) + rng.normal(0, 0.8, n), y  # two humps around one


KINDS = {
    "gaussian": (fam.Gaussian, {fam.Gaussian, fam.Binned}),
    "exponential": (fam.Exponential, {fam.Gaussian, fam.Exponential, fam.Binned}),
    "poisson": (fam.Poisson, {fam.Gaussian, fam.Poisson, fam.Binned}),
    "humps": (None, {fam.Gaussian, fam.Binned}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_comparisons_equal_refits(rng, kind):
    x, y = drawn(rng, kind, 24)
    x[5] = np.nan
    for weights in (None, rng.choice([0.5, 1.0, 2.0], 24)):
        assert_comparison(x, y, weights, KINDS[kind][1])


@pytest.mark.parametrize("kind", ["gaussian", "exponential", "poisson"])
def test_of_many_rows_the_family_they_were_drawn_from_wins(kind):
    x, y = drawn(np.random.default_rng(0), kind, 3000)
    assert isinstance(compare_on("x", x, y.astype(np.int32), None, 2).winner, KINDS[kind][0])


def test_what_no_family_of_one_hump_can_tell_is_binned():
    y = np.arange(300) % 3
    x = np.array([0.0, 5.0, 10.0])[y] * np.where(np.arange(300) % 2, 1, -1) + np.random.default_rng(0).normal(size=300)
    assert isinstance(compare_on("x", x, y.astype(np.int32), None, 3).winner, fam.Binned)


def test_cells_stand_in_for_rows(rng, monkeypatch):
    """The numbers from the histogram are those from the rows, which are read where there are too many values."""
    y = rng.integers(0, 3, 500).astype(np.int32)
    x = rng.poisson(2.0 + y).astype(float)
    x[::50] = np.nan
    cells = compare_on("x", x, y, None, 3)
    rows = compare_on("x", x, y, np.ones(500), 3)

    class Coarse(Histogram):
        @classmethod
        def of(cls, x, codes, weights, classes, cap=2048):
            return Histogram.of(x, codes, weights, classes, cap=2)

    monkeypatch.setattr(selection, "Histogram", Coarse)
    coarse = compare_on("x", x, y, None, 3)
    assert cells.decibans.keys() == rows.decibans.keys() == coarse.decibans.keys()
    assert len(cells.decibans) == 3
    for family, decibans in cells.decibans.items():
        np.testing.assert_allclose([rows.decibans[family], coarse.decibans[family]], decibans, rtol=1e-12)


def test_weights_are_as_many_rows(rng):
    """A row of weight 2 leaves with all its weight, which two rows do not: so only of the rest it is the same."""
    y = np.arange(30) % 2
    x = rng.integers(0, 6, 30).astype(float)
    weights = np.where(np.arange(30) % 5, 1.0, 0.0)
    kept = weights > 0
    one = compare_on("x", x[kept], y[kept].astype(np.int32), None, 2)
    other = selection.compare_families(*sampled(x, y, weights))[0]
    for family, decibans in one.decibans.items():
        np.testing.assert_allclose(other.decibans[family], decibans, rtol=1e-12)


def sampled(x, y, weights=None):
    sample = labelled_rows(x[:, np.newaxis], y, weights)
    return Schema.of(sample.frame), sample


@pytest.mark.parametrize(
    "x",
    [
        [3.0] * 8,  # constant
        [2.0, 5.0] * 4,  # one value in each class
        [-2.5, 5.0] * 4,
        [1.0, 2.0, np.nan, 3.0, 2.0, np.nan, np.nan, 4.0],
        [1.0, np.nan, np.nan, 3.0, np.nan, 2.0, np.nan, 4.0],  # a class with one cell
        [np.nan, 1.5] * 4,  # a class with none
        [1e-150, 1e150, 1.0, 2.0, 3.0, 1e100, 7.0, 1e-100],
    ],
    ids=str,
)
def test_comparisons_of_odd_columns(x):
    assert_comparison(np.array(x), np.arange(8) % 2)


def test_of_equals_the_simplest_wins():
    y = (np.arange(12) % 2).astype(np.int32)
    assert isinstance(compare_on("x", np.full(12, 3.0), y, None, 2).winner, fam.Gaussian)
    gaussian, binned = fam.Gaussian(), fam.Binned()
    assert selection.FamilyComparison("x", {gaussian: -1.0, binned: -1.0}).winner is gaussian
    assert selection.FamilyComparison("x", {gaussian: -1.0, binned: -0.5}).winner is binned


def test_the_only_row_of_a_class_takes_no_part(rng):
    y = np.r_[np.arange(20) % 2, 2]
    x = np.r_[rng.normal(y[:20], 1.0), 50.0]
    assert_comparison(x, y)
    with_it, without = (compare_on("x", x[:n], y[:n].astype(np.int32), None, 3) for n in (21, 20))
    np.testing.assert_allclose(list(with_it.decibans.values()), list(without.decibans.values()), rtol=1e-12)


# Shrinkage: the textbook at every s ----------------------------------------------------------------------------------


def label_likelihood(x, y, covariance, s, weights=None):
    """Σ w log p(c_i|x_i) by the textbook, everything estimated without row i; whole rows only, except for scoring."""
    weights = np.ones(len(y)) if weights is None else weights
    d, classes = x.shape[1], np.unique(y)
    total = 0.0
    for i in range(len(y)):
        rest = np.delete(np.arange(len(y)), i)
        whole = rest[~np.isnan(x[rest]).any(axis=1)]
        there = ~np.isnan(x[i])
        mean = {}
        for c in set(y[rest]):
            mine = whole[y[whole] == c]
            mean[c] = np.average(x[mine], axis=0, weights=weights[mine])
        joint = np.full(len(classes), -np.inf)
        for place, c in enumerate(classes):
            if c not in mean:
                continue
            used = whole if covariance == "shared" else whole[y[whole] == c]
            off = x[used] - np.array([mean[k] for k in y[used]])
            sigma = (weights[used, np.newaxis] * off).T @ off / weights[used].sum()
            sigma = (1 - s) * sigma + s * np.trace(sigma) / d * np.eye(d)
            density = multivariate_normal(mean[c][there], sigma[np.ix_(there, there)])
            joint[place] = np.log(weights[rest][y[rest] == c].sum()) + density.logpdf(x[i, there])
        total += weights[i] * max(joint[classes == y[i]].item() - logsumexp(joint), LEAST)
    return total


def clouds(rng, n, d, apart=1.0):
    y = np.arange(n) % 2
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    spread = np.linspace(1.0, 2.0, d)
    return (rng.normal(size=(n, d)) * spread + apart * y[:, np.newaxis] * np.linspace(1, 0, d)) @ turn, y


CASES = {
    "plain": (16, 3, None, False),
    "weights and missing values": (20, 3, [0.5, 1.0, 2.5], True),
    "fewer rows than columns": (10, 14, None, False),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("covariance", ["shared", "per-class"])
def test_shrinkage_is_where_refits_predict_labels_best(covariance, case):
    n, d, weighted, incomplete = CASES[case]
    rng = np.random.default_rng(3)
    x, y = clouds(rng, n, d)
    weights = None if weighted is None else rng.choice(weighted, n)
    if incomplete:
        x[[1, 8, 15], [0, 1, 2]] = np.nan
    model = db.GaussianDiscriminant(covariance, shrinkage="auto").fit(x, y, weights)
    assert model.status_ == "ok"

    def likelihood(s):
        return label_likelihood(x, y, covariance, s, weights)

    (choice,) = model._shrinkages.values()
    rows = n if weights is None else weights.sum()
    gained = likelihood(choice.value) - likelihood(choice.other)
    np.testing.assert_allclose(choice.decibans * rows / DECIBANS, gained, rtol=1e-7, atol=1e-7)
    assert model.shrinkage_ == choice.value
    grid = [1e-6, 1e-3, 0.01, 0.05, *np.linspace(0.1, 1.0, 7)]
    assert likelihood(choice.value) >= max(map(likelihood, grid)) - 2e-3


def test_a_class_of_one_row_does_not_hinder_shrinkage(rng):
    x, y = clouds(rng, 20, 3)
    x, y = np.r_[x, [[9.0, 9.0, 9.0]]], np.r_[y, 2]
    model = db.GaussianDiscriminant("shared", shrinkage="auto").fit(x, y)
    (choice,) = model._shrinkages.values()
    gained = label_likelihood(x, y, "shared", choice.value) - label_likelihood(x, y, "shared", choice.other)
    np.testing.assert_allclose(choice.decibans * 21 / DECIBANS, gained, rtol=1e-7)
