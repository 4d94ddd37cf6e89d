"""Each row left out: equal to refits without the row, for mixed tables and every setting, and to MASS with CV=TRUE."""

import copy
import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import confusion_matrix, log_loss

import deciban as db
from deciban import families as fam
from deciban.generative.held_out import leave_one_out
from tests.laws import flattened

GIVEN = {"a": 0.2, "b": 0.3, "c": 0.4, "z": 0.1}
PRIORS = ["empirical", "laplace", "uniform", "given"]
OF_NUMBERS = [
    fam.Gaussian(),
    fam.Gaussian(ddof=1),
    fam.Gaussian(mean=db.priors.Normal(1.0, 2.0), variance=db.priors.InverseGamma(2.0, 1.0)),
    fam.Exponential(),
    fam.Uniform(),
    fam.Binned("equal-width", count=3),
    fam.Binned("equal-frequency", count=3),
    fam.Binned("supervised"),
    fam.Categorical(),
]
OF_COUNTS = [fam.Poisson(), fam.Multinomial(), fam.Gaussian(), fam.Categorical(), fam.Binned("equal-width", count=2)]
OF_PAIRS = [
    fam.MultivariateGaussian(),
    fam.MultivariateGaussian("per-class", shrinkage=0.3),
    fam.MultivariateGaussian("shared", shrinkage="oas", ddof="unbiased"),
]
REFERENCE = Path(__file__).parent.parent / "references" / "leave_one_out.json"
DISCRIMINANTS = [
    {"covariance": kind, "shrinkage": shrinkage, "ddof": ddof}
    for kind, other in (("shared", (0, "unbiased", 0)), ("per-class", ("unbiased", 0, "unbiased")))
    for shrinkage, ddof in zip((None, 0.2, "oas"), other, strict=True)
] + [
    {"covariance": "diagonal", "ddof": "unbiased"},
    {"covariance": "shared", "prior": db.priors.InverseWishart(5.0, 0.7)},
    {"covariance": "per-class", "prior": db.priors.InverseWishart(5.0, 0.7)},
]


def left_out(model, x, y, weights=None):
    """(n, K) p(c|x_i), row i left out, of the rows that weigh something."""
    sample = model._more_rows(x, y, weights)
    return np.concatenate(
        [leave_one_out(model.estimate_, batch).proba for batch in sample.batches(needs_small_batches=True)]
    )


def without(x, i):
    """A table, a matrix or sparse rows without row i, and row i alone."""
    others = np.delete(np.arange(x.shape[0]), i)
    return (x.iloc[others], x.iloc[[i]]) if hasattr(x, "iloc") else (x[others], x[[i]])


def refits(model, x, y, weights=None):
    """(n, K) the same from n models; a class that lost its only row has probability 0, given ones are shared out."""
    classes = np.unique(y)
    out = np.zeros((len(y), len(classes)))
    for i in range(len(y)):
        rest, row = without(x, i)
        labels = np.delete(y, i)
        there = np.isin(classes, labels)
        fresh = clone(model)
        if isinstance(fresh.class_prior, dict):
            total = sum(fresh.class_prior[c] for c in classes[there])
            fresh.class_prior = {c: fresh.class_prior[c] / total for c in classes[there]}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", db.DecibanWarning)
            fresh.fit(rest, labels, None if weights is None else np.delete(weights, i))
            out[i, there] = fresh.predict_proba(row)[0]
    return out


def assert_left_out_is_refitted(model, x, y, weights=None):
    y = np.asarray(y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", db.DecibanWarning)
        model.fit(x, y, weights)
        left_out_proba = left_out(model, x, y, weights)
    if weights is not None and not weights.all():
        kept = np.flatnonzero(weights)
        x, y, weights = (x.iloc if hasattr(x, "iloc") else x)[kept], y[kept], weights[kept]
    np.testing.assert_allclose(left_out_proba, refits(model, x, y, weights), rtol=1e-9, atol=1e-10)


def prior_of(draw, y, w=None):
    prior = draw(st.sampled_from(PRIORS))
    there = np.unique(y if w is None else y[w > 0])
    return {c: GIVEN[c] / sum(GIVEN[k] for k in there) for c in there} if prior == "given" else prior


@st.composite
def labels(draw, rng):
    """Two or three classes of two rows or more, and maybe one of a single row."""
    sizes = draw(st.lists(st.integers(2, 4), min_size=2, max_size=3))
    y = [c for c, n in zip("abc", sizes, strict=False) for _ in range(n)] + ["z"] * draw(st.booleans())
    return rng.permutation(np.array(y))


@st.composite
def cases(draw):
    """A mixed table, its labels and weights, and a model whose families read it."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    y = draw(labels(rng))
    n = len(y)
    share = draw(st.sampled_from([0.0, 0.2]))

    def missing():
        return rng.random(n) < share

    text = np.where(missing(), None, rng.choice(["red", "blue", "green", "grey"], n).astype(object))
    flag = np.where(missing(), None, (rng.random(n) < 0.5).astype(object))
    tied = draw(st.booleans())
    size = rng.choice([0.5, 1.0, 2.5, 4.0], n) if tied else rng.exponential(2.0, n) + 0.01
    table = pd.DataFrame(
        {
            "colour": text,
            "calls": np.where(missing(), np.nan, rng.poisson(2.0, n)),
            "flag": flag,
            "size": np.where(missing(), np.nan, size),
            "u": rng.normal(size=n),
            "v": np.where(missing(), np.nan, rng.normal(size=n)),
            "shelf": rng.integers(0, 3, n),
        }
    )
    chosen = {
        "colour": fam.Categorical(),
        "flag": fam.Bernoulli(),
        "calls": draw(st.sampled_from(OF_COUNTS)),
        "size": draw(st.sampled_from(OF_NUMBERS)),
        "shelf": draw(st.sampled_from([fam.Categorical(), fam.Gaussian(), fam.Poisson()])),
    }
    if draw(st.booleans()):
        chosen["u", "v"] = draw(st.sampled_from(OF_PAIRS))
    weights = draw(st.sampled_from([None, [1.0, 2.0], [0.0, 0.5, 1.0, 3.0]]))
    w = None if weights is None else rng.choice(weights, n)
    if w is not None and len(set(y[w > 0])) < 2:
        w = np.maximum(w, 0.5)
    model = db.NaiveBayes(
        chosen,
        smoothing=draw(st.sampled_from([0.0, 0.5, 1.0])),
        class_prior=prior_of(draw, y, w),
        missing=draw(st.sampled_from(["skip", "category"])),
        unseen=draw(st.sampled_from(["skip", "reserve"])),
    )
    return model, table, y, w


@settings(max_examples=20)
@given(case=cases())
def test_leaving_a_row_out_of_a_mixed_table_is_a_refit_without_it(case):
    assert_left_out_is_refitted(*case)


@pytest.mark.parametrize("family", [fam.Multinomial(), fam.Bernoulli(), fam.Poisson()], ids=str)
@settings(max_examples=6)
@given(data=st.data())
def test_sparse_rows(family, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    y = data.draw(labels(rng))
    top = 2 if isinstance(family, fam.Bernoulli) else 4
    counts = rng.integers(0, top, (len(y), 6)) * (rng.random((len(y), 6)) < 0.5)
    x = sp.csr_array(counts.astype(np.float64))
    w = rng.choice([0.5, 1.0, 2.0], len(y)) if data.draw(st.booleans()) else None
    smoothing = data.draw(st.sampled_from([0.0, 0.5, 1.0]))
    model = db.NaiveBayes(family, smoothing, prior_of(data.draw, y))
    assert_left_out_is_refitted(model, x, y, w)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", db.DecibanWarning)
        dense = clone(model).fit(counts.astype(np.float64), y, w)
    np.testing.assert_allclose(
        left_out(model, x, y, w), left_out(dense, counts.astype(np.float64), y, w), rtol=1e-10, atol=1e-12
    )


@pytest.mark.filterwarnings("ignore:singular covariance")
@pytest.mark.parametrize("options", DISCRIMINANTS, ids=str)
@settings(max_examples=4)
@given(data=st.data())
def test_discriminants(options, data):
    """Seven rows in each of two or three classes, maybe one row in a class of its own, two cells missing."""
    draw = data.draw
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    d, classes = draw(st.integers(1, 3)), draw(st.integers(2, 3))
    y = rng.permutation(np.array(list("abc"[:classes] * 7 + "z" * draw(st.booleans()))))
    x = rng.normal(size=(len(y), d)) @ (np.eye(d) + 0.3 * rng.normal(size=(d, d)))
    x += rng.normal(size=(4, d))[np.searchsorted(["a", "b", "c", "z"], y)]
    if draw(st.booleans()):
        x[rng.integers(0, len(y), 2), rng.integers(0, d, 2)] = np.nan
    weights = rng.choice([0.5, 1.0, 2.0], len(y)) if draw(st.booleans()) else None
    model = db.GaussianDiscriminant(**options, class_prior=prior_of(draw, y))
    assert_left_out_is_refitted(model, x, y, weights)
    assert (left_out(model, x, y, weights)[y == "z", -1] == 0).all()


@pytest.mark.parametrize(("covariance", "function"), [("shared", "lda"), ("per-class", "qda")])
@pytest.mark.parametrize(("ddof", "method"), [("unbiased", "moment"), (0, "mle")])
def test_iris_has_the_posteriors_of_mass(covariance, function, ddof, method):
    """MASS leaves the row out of the means and of the covariance, and divides by what a refit would: n − 1 − K for lda,
    n_c − 2 for qda ("moment"), n − 1 and n_c − 1 ("mle"). But the class prior stays that of all rows, so it is given
    here; ours would count it again. (qda takes no 1 − aδᵀM⁻¹δ below 1e-10, which no flower comes near.)
    """
    expected = json.loads(REFERENCE.read_text())["iris"]
    data = load_iris()
    y = data.target_names[data.target].astype(str)
    model = db.GaussianDiscriminant(covariance, ddof=ddof, class_prior=[1 / 3] * 3).fit(data.data, y)
    assert model.classes_.tolist() == expected["classes"]
    wanted, proba = np.array(expected[function][method]), left_out(model, data.data, y)
    np.testing.assert_allclose(proba, wanted, rtol=0, atol=1e-8)
    shown = wanted > 1e-200  # what R did not lose to underflow
    np.testing.assert_allclose(np.log(proba[shown]), np.log(wanted[shown]), rtol=1e-8, atol=1e-8)
    assert np.abs(proba - model.predict_proba(data.data)).max() > 1e-3  # to leave a row out makes a difference


# A table to look at more closely
N = 40
RNG = np.random.default_rng(7)
TABLE = pd.DataFrame(
    {
        "colour": np.where(RNG.random(N) < 0.1, None, RNG.choice(["red", "blue", "green"], N).astype(object)),
        "class": RNG.permutation(np.repeat(["no", "perhaps", "yes"], [20, 14, 6])),
        "size": np.where(RNG.random(N) < 0.1, np.nan, RNG.normal(size=N)),
        "calls": RNG.poisson(2.0, N),
        "flag": RNG.random(N) < 0.5,
    }
)
X, Y = TABLE.drop(columns="class"), TABLE["class"].to_numpy(str)
W = RNG.choice([0.0, 0.5, 1.0, 3.0], N)


def test_tables_of_all_libraries_with_the_label_by_name():
    model = db.NaiveBayes().fit(X, Y)
    expected = refits(db.NaiveBayes(), X, Y)
    for convert in (lambda t: t, pl.from_pandas, lambda t: pa.Table.from_pandas(t, preserve_index=False)):
        np.testing.assert_allclose(left_out(model, convert(TABLE), "class"), expected, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(left_out(model, convert(X), Y), expected, rtol=1e-10, atol=1e-12)


def test_columns_are_found_by_name():
    model = db.NaiveBayes().fit(X, Y)
    np.testing.assert_array_equal(left_out(model, TABLE[TABLE.columns[::-1]], "class"), left_out(model, X, Y))


def test_the_evaluation_is_that_of_the_refits():
    evaluation = db.NaiveBayes().fit(X, Y, W).leave_one_out(X, Y, W)
    kept = np.flatnonzero(W)
    proba = refits(db.NaiveBayes(), X.iloc[kept], Y[kept], W[kept])
    assert evaluation.classes == ("no", "perhaps", "yes")
    assert evaluation.rows == W.sum()
    assert evaluation.log_loss == pytest.approx(log_loss(Y[kept], proba, sample_weight=W[kept]), rel=1e-10)
    guesses = np.unique(Y)[proba.argmax(axis=1)]
    np.testing.assert_allclose(
        evaluation.confusion, confusion_matrix(Y[kept], guesses, sample_weight=W[kept]), rtol=1e-12
    )


def test_some_of_the_rows_are_judged_as_among_all():
    model = db.NaiveBayes().fit(X, Y)
    everything = left_out(model, X, Y)
    some = RNG.permutation(N)[:13]
    np.testing.assert_array_equal(left_out(model, X.iloc[some], Y[some]), everything[some])
    one = np.flatnonzero(Y == "yes")[:1]  # labels that are not all of the classes
    np.testing.assert_array_equal(left_out(model, X.iloc[one], Y[one]), everything[one])
    order = RNG.permutation(N)
    np.testing.assert_array_equal(left_out(model, X.iloc[order], Y[order]), everything[order])
    assert model.leave_one_out(X.iloc[one], Y[one]).classes == ("no", "perhaps", "yes")


def test_rows_learned_in_parts():
    """partial_fit, merge and forget leave a model that leaves rows out as one fitted at once."""
    expected = left_out(db.NaiveBayes().fit(X, Y), X, Y)
    half = N // 2
    first, second = ((X.iloc[s], Y[s]) for s in (slice(half), slice(half, None)))
    parts = db.NaiveBayes().fit(*first).partial_fit(*second)
    np.testing.assert_allclose(left_out(parts, X, Y), expected, rtol=1e-12)
    np.testing.assert_allclose(left_out(db.NaiveBayes().fit(*second) + db.NaiveBayes().fit(*first), X, Y), expected)
    forgot = db.NaiveBayes().fit(X, Y).forget(*second)
    np.testing.assert_allclose(left_out(forgot, *first), left_out(db.NaiveBayes().fit(*first), *first), rtol=1e-12)


def test_settings_may_change_after_the_fit():
    model = db.NaiveBayes().fit(X, Y)
    model.set_params(smoothing=0.25, class_prior="uniform", unseen="reserve")
    expected = refits(clone(model), X, Y)
    np.testing.assert_allclose(left_out(model, X, Y), expected, rtol=1e-10, atol=1e-12)


def test_the_model_stays_as_it_is():
    model = db.NaiveBayes().fit(X, Y)
    before = copy.deepcopy(model.generative_)
    predictions = model.predict_proba(X)
    model.leave_one_out(X, Y)
    np.testing.assert_array_equal(model.predict_proba(X), predictions)
    assert model.generative_.classes == before.classes
    for mine, theirs in zip(model.generative_.blocks, before.blocks, strict=True):
        for key, array in flattened(mine.statistic).items():
            np.testing.assert_array_equal(array, flattened(theirs.statistic)[key])


def test_labels_of_other_types():
    codes = np.unique(Y, return_inverse=True)[1]
    expected = left_out(db.NaiveBayes().fit(X, Y), X, Y)
    for given_labels in (codes, codes.astype(np.int8), codes.tolist(), pd.Categorical(Y), pa.array(Y)):
        model = db.NaiveBayes().fit(X, given_labels)
        np.testing.assert_array_equal(left_out(model, X, given_labels), expected)


# Mistakes
def test_a_value_of_one_row_is_unseen_without_it():
    table = pd.DataFrame({"size": [1.0, 2.0, 3.0, 4.0], "colour": ["red", "red", None, "blue"]})
    model = db.NaiveBayes(unseen="error").fit(table, ["a", "b", "a", "b"])
    with pytest.raises(db.DecibanError, match=r"column 'colour', row 3: 'blue' .*unseen='skip'"):
        model.leave_one_out(table, ["a", "b", "a", "b"])
    assert model.leave_one_out(table[:3], ["a", "b", "a"]).rows == 3
    with pytest.raises(db.DecibanError, match="column 'colour', row 1: 'blue'"):
        model.leave_one_out(table[2:], ["a", "b"])


def test_a_value_of_one_row_is_found_among_weights():
    table = pd.DataFrame({"colour": ["red", "blue", "red", "blue", "green"]})
    y, w = ["a", "b", "a", "b", "a"], np.array([0.5, 2.0, 1.0, 0.0, 0.0])
    model = db.NaiveBayes(unseen="error").fit(table, y, w)
    with pytest.raises(db.DecibanError, match="column 'colour', row 1: 'blue'"):
        model.leave_one_out(table, y, w)


def test_unseen_error_lets_pass_what_other_rows_have():
    table = pd.DataFrame({"colour": ["red", "blue"] * 4})
    y = np.array(["a", "a", "b", "b"] * 2)
    model = db.NaiveBayes(unseen="error").fit(table, y)
    np.testing.assert_allclose(left_out(model, table, y), refits(clone(model), table, y), rtol=1e-12)


def test_rows_and_classes_never_learned():
    model = db.NaiveBayes().fit(X, Y)
    with pytest.raises(db.NegativeEvidence, match="row 1 of class 'never' was never learned"):
        model.leave_one_out(X[:2], ["no", "never"])
    heavy = np.ones(N)
    heavy[5] = 100.0
    with pytest.raises(db.NegativeEvidence, match=r"row 5 .* was never learned"):
        model.leave_one_out(X, Y, heavy)


def test_not_fitted_or_forgotten():
    with pytest.raises(ValueError, match="not fitted"):
        db.NaiveBayes().leave_one_out(X, Y)
    with pytest.raises(db.DecibanError, match="every row was forgotten"):
        db.NaiveBayes().fit(X, Y).forget(X, Y).leave_one_out(X, Y)
    with pytest.raises(db.DecibanError, match="at least two rows"):
        db.NaiveBayes().fit(X[:1], Y[:1]).leave_one_out(X[:1], Y[:1])


def test_mistakes_are_explained():
    model = db.NaiveBayes().fit(X, Y)
    infinite = X.assign(size=np.where(np.arange(N) == 4, np.inf, X["size"]))
    for x, y, w, message in [
        (X, Y[:3], None, "inconsistent numbers of samples"),
        (X[:0], Y[:0], None, "no rows"),
        (X, Y, np.ones(3), "Sample weights must be 1D"),
        (X, Y, -np.ones(N), "not a weight"),
        (X.drop(columns="size"), Y, None, "size"),
        (TABLE, "species", None, "no column 'species'"),
        (X, None, None, "requires y"),
        (infinite, Y, None, "column 'size', row 4: inf is infinite"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.leave_one_out(x, y, w)


@pytest.mark.parametrize("weights", [None, np.ones(8)], ids=["plain", "weighted"])
def test_an_infinite_cell_is_named_by_every_family(weights):
    x = np.array([[1.0, 2.0], [np.nan, 3.0], [4.0, 5.0], [2.0, 1.0], [3.0, 3.0], [1.0, 6.0], [2.0, 2.0], [5.0, 1.0]])
    y = [0, 1] * 4
    bad = x.copy()
    bad[4, 1] = np.inf
    for family in (fam.Gaussian(), fam.Exponential(), fam.Poisson(), fam.Uniform(), fam.Binned(), OF_PAIRS[0]):
        model = db.NaiveBayes(family).fit(x, y, weights)
        with pytest.raises(db.DecibanError, match="column 1, row 4: inf"):
            model.leave_one_out(bad, y, weights)


def test_a_value_never_learned_cannot_be_left_out():
    for family in (fam.Gaussian(), fam.Categorical(), fam.Binned()):
        model = db.NaiveBayes(family).fit([[1.0], [2.0], [4.0], [3.0], [2.0], [1.0]], [0, 1, 0, 1, 0, 1])
        with pytest.raises(db.NegativeEvidence):
            model.leave_one_out([[-500.0]], [0])
