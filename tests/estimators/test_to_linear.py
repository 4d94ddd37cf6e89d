"""to_linear(): a generative model of exponential families is a linear model, and refine() goes on from there."""

import pickle
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression as TheirRegression

import deciban as db
from deciban import families as f
from deciban.contributions import DECIBANS
from tests.estimators.test_halfspace import solution
from tests.families.test_natural import NOT_EXPONENTIAL
from tests.laws import all_families

CLOSE = {"rtol": 1e-10, "atol": 1e-10}
N = 120


def same_predictions(model, twin, rows, close=CLOSE):
    assert twin.classes_.tolist() == model.classes_.tolist()
    assert twin.classes_.dtype == model.classes_.dtype
    np.testing.assert_allclose(twin.predict_log_proba(rows), model.predict_log_proba(rows), **close)
    np.testing.assert_allclose(twin.predict_proba(rows), model.predict_proba(rows), **close)
    joint = np.sort(model.predict_joint_log_proba(rows), axis=1)
    clear = joint[:, -1] - joint[:, -2] > 1e-9  # rows on the border may fall to either side
    np.testing.assert_array_equal(twin.predict(rows)[clear], model.predict(rows)[clear])
    assert clear.any()


# Every family
@dataclass(frozen=True)
class Example:
    """A family, columns that suit it, and what it has to bear."""

    family: Any
    draw: Any  # of rng and class places (n), a column
    unseen: Any = None  # a value that no training row has
    missing: bool = True


def normal(rng, c):
    return rng.normal(c, 1.0 + 0.5 * c)


def counted(rng, c):
    return rng.poisson(1.0 + c).astype(float)


def valued(rng, c):
    """Text, the classes preferring different values."""
    return np.array(["red", "green", "blue"], dtype=object)[np.minimum(2, (rng.random(len(c)) * (2 + c)).astype(int))]


def said(rng, c):
    """Documents of some words, the classes preferring different ones."""
    return np.array([" ".join(row) for row in np.stack([valued(rng, c) for _ in range(4)], axis=1)], dtype=object)


EXAMPLES = [
    Example(f.Gaussian(), normal, unseen=1e3),
    Example(f.Gaussian(ddof=1), lambda rng, c: 1e6 + normal(rng, c)),  # far from 0
    Example(f.Gaussian(mean=db.priors.Normal(0.0, 1.0), variance=db.priors.InverseGamma(2.0, 1.0)), normal),
    Example(f.Poisson(), counted, unseen=99.0),
    Example(f.Exponential(), lambda rng, c: rng.exponential(1.0 + c) + 1e-9, unseen=1e3),
    Example(f.Bernoulli(), lambda rng, c: (rng.random(len(c)) < 0.2 + 0.2 * c).astype(float)),
    Example(f.Bernoulli(threshold=1.5), counted, unseen=50.0),
    Example(f.Multinomial(), counted, unseen=99.0),
    Example(f.Categorical(), valued, unseen="violet"),
    Example(f.Categorical(), lambda rng, c: rng.integers(0, 3 + c).astype(float), unseen=77.0),
    Example(f.Text(), said, unseen="violet and Red"),
    Example(f.Text("bernoulli", words=(1, 2)), said, unseen="violet and Red"),
    Example(f.Text("complement", max_terms=2), said, unseen="violet and Red"),
    Example(f.Binned(), normal, unseen=-1e3),
    Example(f.Binned("equal-frequency", count=4), normal, unseen=1e3),
    Example(f.Binned("supervised"), normal, unseen=1e3),
    Example(f.MultivariateGaussian(), normal, unseen=1e3, missing=False),
    Example(f.MultivariateGaussian("per-class"), normal, unseen=1e3, missing=False),
    Example(f.MultivariateGaussian("per-class", shrinkage=0.3), lambda rng, c: 1e5 + normal(rng, c), missing=False),
    Example(f.MultivariateGaussian("shared", ddof="unbiased"), lambda rng, c: 1e5 + normal(rng, c), missing=False),
]
EXPONENTIAL = {type(example.family) for example in EXAMPLES}


def test_every_family_has_an_example_or_is_no_exponential_one():
    assert {*all_families()} == EXPONENTIAL | NOT_EXPONENTIAL


def drawn(example, classes, seed=0):
    """A table of two such columns to learn from, with labels, and rows to ask about."""
    rng = np.random.default_rng(seed)
    c = np.arange(N) % classes
    tables = [pd.DataFrame({"a": example.draw(rng, c), "b": example.draw(rng, c)}) for _ in range(2)]
    if example.missing:
        tables = [table.mask(rng.random(table.shape) < 0.15) for table in tables]
    if example.unseen is not None:
        tables[1].loc[:9, "a"] = example.unseen
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], N)
    return tables[0], c, weights, tables[1]


each_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: f"{e.family} {e.draw.__name__}")


@each_example
@pytest.mark.parametrize("classes", [2, 3])
def test_twin_predicts_what_the_model_predicts(example, classes):
    """For the same reasons, column by column."""
    table, c, weights, rows = drawn(example, classes)
    model = db.NaiveBayes(example.family).fit(table, c, weights if classes == 3 else None)
    twin = model.to_linear()
    for asked in (table, rows[["b", "a"]], pl.from_pandas(rows), pa.Table.from_pandas(rows)):
        same_predictions(model, twin, asked)
    assert twin.coef_.shape == (1 if classes == 2 else classes, len(twin.feature_names_))
    assert len(set(twin.feature_names_)) == len(twin.feature_names_)
    assert twin.status_ == "ok"
    if not example.family.joint:  # which has one part for all columns together
        linear, generative = twin.explain(rows), model.explain(rows)
        assert linear.names == ("intercept", *generative.names[1:])
        np.testing.assert_allclose(linear.decibans(1, 0), generative.decibans(1, 0), rtol=1e-9, atol=1e-9)


@each_example
@pytest.mark.filterwarnings("ignore:singular covariance")
def test_twin_reads_missing_constant_and_new_values_as_the_model_does(example):
    table, c, _, rows = drawn(example, 2)
    for constant in (table, rows):
        constant["b"] = table["b"].dropna().iloc[0]
    model = db.NaiveBayes(example.family).fit(table, c)
    same_predictions(model, model.to_linear(), rows)
    for classes, missing, unseen in ((2, "skip", "reserve"), (3, "category", "skip"), (2, "category", "reserve")):
        table, c, _, rows = drawn(example, classes, seed=1)
        model = db.NaiveBayes(example.family, missing=missing, unseen=unseen, class_prior="laplace").fit(table, c)
        same_predictions(model, model.to_linear(), rows)


def test_no_two_features_have_one_name():
    """Where absence is a value of its own, it is so beside what a missing cell takes back from the intercept."""
    table, c, _, _ = drawn(EXAMPLES[0], 2)
    names = db.NaiveBayes(missing="category").fit(table, c).to_linear().feature_names_
    assert len(set(names)) == len(names), names
    assert not any("is missing is missing" in name for name in names), names


@pytest.mark.parametrize("example", [e for e in EXAMPLES if e.missing], ids=lambda e: f"{e.family} {e.draw.__name__}")
def test_twin_of_classes_with_little_evidence(example):
    """Class 2 has nothing in column b; class 1 has one row; column b is constant for class 0.

    A Gaussian of no width has natural parameters as large as 1e9, so where its cell is there some digits are lost.
    """
    table, c, _, rows = drawn(example, 3, seed=2)
    kept = np.flatnonzero((c != 1) | (np.arange(N) < 3))
    table, c = table.iloc[kept].reset_index(drop=True), c[kept]
    table.loc[c == 2, "b"] = None
    table.loc[c == 0, "b"] = table["b"].dropna().iloc[0]
    model = db.NaiveBayes(example.family).fit(table, c)
    twin = model.to_linear()
    lost = 1e-15 * np.abs(model.predict_joint_log_proba(rows)).max()
    same_predictions(model, twin, rows, {"rtol": 1e-9, "atol": 1e-10 + lost})


def test_a_row_without_a_cell_gets_the_class_prior():
    """Even if two classes have one row, whose width is next to nothing and whose natural parameters are huge."""
    x, c = np.array([[1.5, 7.1], [2.0, 9.0], [4.0, 8.0], [1e3, 7.7], [3e2, 8.9]]), [0, 0, 0, 1, 2]
    for family in (f.Gaussian(), f.Poisson(), f.Exponential(), f.Binned(), f.Categorical()):
        twin = db.NaiveBayes(family).fit(np.floor(x), c).to_linear()
        np.testing.assert_allclose(twin.predict_proba([[np.nan, np.nan]]), [[3 / 5, 1 / 5, 1 / 5]], rtol=1e-10)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("family", [None, f.Multinomial(), f.Bernoulli(threshold=0.0), f.Bernoulli()], ids=str)
def test_sparse_counts(family, classes):
    rng = np.random.default_rng(3)
    c = np.arange(N) % classes
    counts = rng.poisson(0.3, (N, 40)) * (rng.random((N, 40)) < 0.2 + 0.3 * (np.arange(40) % classes == c[:, None]))
    counts = counts.astype(float) if family != f.Bernoulli() else (counts > 0).astype(float)
    counts[:, 5] = 0.0  # a word that never occurs
    weights = rng.choice([0.0, 0.5, 2.0], N) if classes == 2 else None
    model = db.NaiveBayes(family).fit(sp.csr_array(counts), c, weights)
    twin = model.to_linear()
    asked = np.vstack([counts, np.zeros((1, 40)), np.ones((1, 40))])
    for rows in (sp.csr_array(asked), sp.csc_array(asked), asked, asked.astype(np.float32)):
        same_predictions(model, twin, rows)
    # scikit-learn would say the same of these coefficients
    rows, b = sp.csr_array(asked), twin.intercept_
    if twin.coef_.shape[1] == 40:
        np.testing.assert_allclose(
            twin.decision_function(rows), np.squeeze(rows @ twin.coef_.T + b), rtol=1e-10, atol=1e-10
        )


@pytest.fixture
def people():
    """Every kind of column, with missing values; three classes."""
    rng = np.random.default_rng(11)
    c = np.arange(N) % 3
    table = pd.DataFrame(
        {
            "height": rng.normal(170 + 10 * c, 5.0),
            "weight": rng.normal(60 + 10 * c, 9.0),
            "colour": valued(rng, c),
            "rank": rng.integers(1, 5, N),
            "member": rng.random(N) < 0.3 + 0.1 * c,
            "visits": rng.poisson(1 + c),
            "wait": rng.exponential(1.0 + c),
            "spread": rng.uniform(0, 1.0 + c),
            "label": np.array(["ham", "eggs", "spam"])[c],
        }
    )
    for name in ("colour", "weight", "wait"):
        table[name] = table[name].mask(rng.random(N) < 0.1)
    return table


MIXED = {
    "rank": f.Categorical(),
    "visits": f.Poisson(),
    "wait": f.Exponential(),
    "spread": f.Binned("equal-frequency", count=4),
    ("height", "visits"): f.MultivariateGaussian("per-class"),
}


@pytest.mark.parametrize(("missing", "joint"), [("skip", True), ("category", False)])
def test_table_of_all_kinds(people, missing, joint):
    chosen = {key: family for key, family in MIXED.items() if key != ("visits" if joint else ("height", "visits"))}
    model = db.NaiveBayes(chosen, missing=missing, unseen="reserve").fit(people, "label")
    twin = model.to_linear()
    rows = people.drop(columns="label")
    rows.loc[3, "colour"], rows.loc[4, "rank"] = "violet", 9
    for asked in (rows, rows[rows.columns[::-1]], pl.from_pandas(rows), pa.Table.from_pandas(rows)):
        same_predictions(model, twin, asked)
    assert twin.score(people, "label") == model.score(people, "label")
    assert twin.n_features_in_ == 8
    assert twin.feature_names_in_.tolist() == rows.columns.tolist()


@pytest.mark.parametrize("covariance", ["shared", "per-class", "diagonal"])
def test_discriminants_of_real_data(covariance):
    for load, prior in ((load_iris, "uniform"), (load_iris, [0.2, 0.5, 0.3]), (load_wine, "laplace")):
        x, y = load(return_X_y=True)
        model = db.GaussianDiscriminant(covariance, class_prior=prior).fit(x, y)
        for rows in (x, x.astype(np.float32), np.asfortranarray(x)):
            same_predictions(model, model.to_linear(), rows)


@pytest.mark.parametrize("covariance", ["shared", "per-class", "diagonal"])
@pytest.mark.parametrize("classes", [2, 3])
def test_discriminants_with_weights_and_singular_columns(covariance, classes):
    rng = np.random.default_rng(5)
    c = np.arange(N) % classes
    x = rng.normal(c[:, np.newaxis], 1.0, (N, 3)) * [1.0, 1e-6, 1e6]
    model = db.GaussianDiscriminant(covariance).fit(x, c, rng.choice([0.0, 1.0, 2.5], N))
    same_predictions(model, model.to_linear(), x)
    incomplete = x.copy()
    incomplete[::5, 1] = np.nan  # left out of a joint fit
    model = db.GaussianDiscriminant(covariance).fit(incomplete, c)
    same_predictions(model, model.to_linear(), x)


def test_labels_keep_their_type():
    x, y = load_iris(return_X_y=True)
    for labels in (y.astype(np.int8), y > 0, np.array(["a", "b", "c"])[y], y.astype(object)):
        same_predictions(model := db.GaussianDiscriminant().fit(x, labels), model.to_linear(), x)


def test_settings_changed_after_the_fit_count():
    x, y = load_iris(return_X_y=True)
    model = db.NaiveBayes(f.Binned()).fit(x, y)
    before = model.to_linear()
    model.set_params(smoothing=10.0, class_prior=[0.2, 0.3, 0.5])
    same_predictions(model, model.to_linear(), x)
    assert np.abs(before.coef_ - model.to_linear().coef_).max() > 0.1
    assert np.abs(before.intercept_ - model.to_linear().intercept_).max() > 0.1


# The formula
def dot(a, b):
    return sum((p * q for p, q in zip(a, b, strict=True)), Fraction(0))


def exact_moments(x, c):
    """Class means and the shared covariance, as fractions."""
    rows = [[Fraction(float(v)) for v in row] for row in x]
    parts = [[row for row, k in zip(rows, c, strict=True) if k == label] for label in sorted(set(c.tolist()))]
    means = [[sum(column, Fraction(0)) / len(part) for column in zip(*part, strict=True)] for part in parts]
    centred = [[v - m for v, m in zip(row, means[k], strict=True)] for row, k in zip(rows, c.tolist(), strict=True)]
    d, n = len(rows[0]), len(rows)
    sigma = [[dot([r[i] for r in centred], [r[j] for r in centred]) / n for j in range(d)] for i in range(d)]
    return means, sigma


@pytest.mark.parametrize(("d", "seed"), [(1, 0), (2, 1), (3, 2)])
def test_two_gaussians_with_one_covariance_are_the_logistic_of_the_lecture(d, seed):
    """w = Σ⁻¹(μ₁ − μ₀), b = −½(μ₁ᵀΣ⁻¹μ₁ − μ₀ᵀΣ⁻¹μ₀) + log(φ/(1 − φ)), in exact fractions but for the logarithm."""
    rng = np.random.default_rng(seed)
    c = (rng.random(30) < 0.4).astype(int)
    x = rng.integers(-20, 20, (30, d)) / 4 + 2 * c[:, np.newaxis]
    (mean0, mean1), sigma = exact_moments(x, c)
    w, to0, to1 = (
        solution([[*row, value] for row, value in zip(sigma, right, strict=True)])
        for right in ([b - a for a, b in zip(mean0, mean1, strict=True)], mean0, mean1)
    )
    square = dot(mean1, to1) - dot(mean0, to0)
    odds = Fraction(int(c.sum()), int((1 - c).sum()))
    twin = db.GaussianDiscriminant("shared").fit(x, c).to_linear()
    assert isinstance(twin, db.LogisticRegression)
    np.testing.assert_allclose(twin.coef_, [[float(v) for v in w]], rtol=1e-12)
    np.testing.assert_allclose(twin.intercept_, [float(-square / 2) + np.log(float(odds))], rtol=1e-12, atol=1e-13)


def test_one_gaussian_of_each_class_is_a_parabola():
    """log N(x; μ₁, σ₁²) − log N(x; μ₀, σ₀²) = (μ₁/σ₁² − μ₀/σ₀²) x − ½(1/σ₁² − 1/σ₀²) x² + …"""
    x = np.array([1.0, 2.0, 4.0, 5.0, 3.0, 7.0, 11.0])
    c = np.array([0, 0, 0, 0, 1, 1, 1])
    (mean0, mean1), (var0, var1) = (Fraction(3), Fraction(7)), (Fraction(10, 4), Fraction(32, 3))
    twin = db.NaiveBayes().fit(pd.DataFrame({"x": x}), c).to_linear()
    w = dict(zip(twin.feature_names_, twin.coef_[0].tolist(), strict=True))
    assert w["x"] == pytest.approx(float(mean1 / var1 - mean0 / var0), rel=1e-12)
    assert w["x²"] == pytest.approx(float(-(1 / var1 - 1 / var0) / 2), rel=1e-12)
    constant = float(-(mean1**2 / var1 - mean0**2 / var0) / 2) - 0.5 * np.log(float(var1 / var0)) + np.log(3 / 4)
    assert twin.intercept_[0] == pytest.approx(constant, rel=1e-12)


def test_poisson_is_the_logarithm_of_the_rates():
    x, c = np.array([[0.0], [4.0], [1.0], [8.0], [9.0]]), [0, 0, 0, 1, 1]
    twin = db.NaiveBayes(f.Poisson()).fit(x, c).to_linear()
    w = dict(zip(twin.feature_names_, twin.coef_[0].tolist(), strict=True))
    rates = 5 / 3, 17 / 2
    assert w["0"] == pytest.approx(np.log(rates[1] / rates[0]), rel=1e-12)
    assert twin.intercept_[0] == pytest.approx(rates[0] - rates[1] + np.log(2 / 3), rel=1e-12)
    assert w["0 is missing"] == pytest.approx(rates[1] - rates[0], rel=1e-12)  # a missing cell says nothing


def test_multinomial_counts_are_their_own_features():
    """Lecture mails: log ratios of the smoothed shares of each word."""
    counts = sp.csr_array(np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 1.0], [0.0, 3.0, 2.0]]))
    twin = db.NaiveBayes().fit(counts, ["ham", "ham", "spam"]).to_linear()
    shares = np.array([[3, 3, 2], [1, 4, 3]]) / 8  # of 5 and 5 words, each kind counted once more
    np.testing.assert_allclose(twin.coef_, [np.log(shares[1] / shares[0])], rtol=1e-12)
    assert twin.intercept_[0] == pytest.approx(np.log(1 / 2), rel=1e-12)
    assert twin.feature_names_ == ("0", "1", "2")


def test_three_classes_are_a_softmax_whose_vectors_sum_to_zero():
    x, y = load_iris(return_X_y=True)
    model = db.GaussianDiscriminant().fit(x, y)
    twin = model.to_linear()
    assert isinstance(twin, db.SoftmaxRegression)
    np.testing.assert_allclose(twin.coef_.sum(axis=0), 0, atol=1e-10)
    assert twin.intercept_.sum() == pytest.approx(0, abs=1e-9)
    precision = np.linalg.inv(model.covariance_)
    expected = (model.means_ - model.means_[0]) @ precision
    np.testing.assert_allclose(twin.coef_ - twin.coef_[0], expected, rtol=1e-9, atol=1e-9)


# What has no linear form
def test_uniform_is_no_exponential_family():
    table = pd.DataFrame({"size": [1.0, 2.0, 3.0, 4.0], "age": [1.0, 3.0, 2.0, 5.0]})
    model = db.NaiveBayes({"age": f.Uniform()}).fit(table, list("nyny"))
    with pytest.raises(db.DecibanError, match=r"column 'age' \(Uniform\): this is not an exponential family"):
        model.to_linear()


@pytest.mark.parametrize("covariance", ["shared", "per-class"])
def test_a_missing_value_in_a_joint_density_is_named(covariance):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=9), "b": rng.normal(size=9)})
    model = db.GaussianDiscriminant(covariance).fit(table, list("nyn" * 3))
    twin = model.to_linear()
    table.loc[7, "b"] = np.nan
    model.predict(table)  # it can: by the marginal density
    for ask in (twin.predict, twin.predict_proba, twin.decision_function, twin.explain):
        with pytest.raises(
            db.DecibanError, match=r"column 'b', row 7: (nan|None) is missing: the linear form of a joint density"
        ):
            ask(table)
    with pytest.raises(db.DecibanError, match=r"column 'b', row 7: (nan|None) is missing"):
        twin.refine(table, list("nyn" * 3))
    assert twin.predict(table.head(7)).shape == (7,)


def test_an_infinite_cell_is_named():
    x, y = load_iris(return_X_y=True)
    twin = db.NaiveBayes().fit(x, y).to_linear()
    bad = x.copy()
    bad[17, 2] = np.inf
    for ask in (twin.predict, lambda rows: twin.refine(rows, y)):
        with pytest.raises(db.DecibanError, match="column 2, row 17: inf is infinite"):
            ask(bad)


def test_a_probability_of_zero_has_no_twin():
    table = pd.DataFrame({"a": ["u", "u", "v", "v"], "b": ["s", "t", "s", "t"]})
    model = db.NaiveBayes(smoothing=0.0).fit(table, list("nnyy"))
    with pytest.raises(db.DecibanError, match=r"column 'a' \(Categorical\): a probability is 0.*set smoothing above 0"):
        model.to_linear()


def test_no_class_may_be_impossible_or_alone():
    x, y = load_iris(return_X_y=True)
    with pytest.raises(db.DecibanError, match="a class with prior 0 has no finite intercept"):
        db.NaiveBayes(class_prior=[0.5, 0.5, 0.0]).fit(x, y).to_linear()
    with pytest.raises(db.DecibanError, match="a model of one class has no equal linear model"):
        db.NaiveBayes().fit(x[:50], y[:50]).to_linear()
    with pytest.raises(NotFittedError):
        db.NaiveBayes().to_linear()


# refine
def conditional(model, rows, labels):
    """Σ log p(y|x)."""
    place = np.searchsorted(model.classes_, labels)
    return model.predict_log_proba(rows)[np.arange(len(place)), place].sum()


def overlapping(classes):
    """Classes that no plane separates, in columns that are not normal; the last one holds counts."""
    rng = np.random.default_rng(7)
    c = np.arange(100 * classes) % classes
    return np.column_stack([rng.exponential(1.0 + c), rng.normal(c, 2.0), rng.poisson(2.0 + c)]), c


def with_squares(x, columns):
    return np.hstack([x, x[:, columns] ** 2])


def with_products(x):
    i, j = np.triu_indices(x.shape[1])
    return np.hstack([x, x[:, i] * x[:, j]])


SAME_FEATURES = [  # as the twin of the model, written by hand
    (db.GaussianDiscriminant("shared"), lambda x: x),
    (db.GaussianDiscriminant("per-class"), with_products),
    (db.GaussianDiscriminant("diagonal"), lambda x: with_squares(x, [0, 1, 2])),
    (db.NaiveBayes({2: f.Poisson()}), lambda x: with_squares(x, [0, 1])),
    (db.NaiveBayes({0: f.Exponential(), 1: f.Gaussian(), 2: f.Poisson()}), lambda x: with_squares(x, [1])),
    (db.NaiveBayes(f.Bernoulli(threshold=1.0)), lambda x: (x > 1.0).astype(float)),
]
each_model = pytest.mark.parametrize(("model", "features"), SAME_FEATURES, ids=[str(m) for m, _ in SAME_FEATURES])


@each_model
@pytest.mark.parametrize("classes", [2, 3])
def test_refine_ends_where_a_fit_from_scratch_ends(model, features, classes):
    x, c = overlapping(classes)
    twin = clone(model).fit(x, c).to_linear()
    before, names = conditional(twin, x, c), twin.feature_names_
    assert twin.refine(x, c) is twin
    after = conditional(twin, x, c)
    assert after > before + 1e-3
    assert twin.feature_names_ == names
    assert twin.classes_.tolist() == list(range(classes))
    scratch = db.LogisticRegression().fit(features(x), c)
    np.testing.assert_allclose(twin.predict_log_proba(x), scratch.predict_log_proba(features(x)), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(twin.objective_, scratch.objective_, rtol=1e-10)
    # and scikit-learn reaches no more
    z = features(x)
    z = (z - z.mean(axis=0)) / z.std(axis=0)
    theirs = TheirRegression(C=np.inf, solver="newton-cholesky", tol=1e-9, max_iter=1000).fit(z, c)
    assert after >= conditional(theirs, z, c) - 1e-9 * abs(after)


@pytest.mark.parametrize("classes", [2, 3])
def test_refined_twin_of_a_shared_covariance_is_the_logistic_regression(classes):
    x, c = overlapping(classes)
    twin = db.GaussianDiscriminant().fit(x, c).to_linear().refine(x, c)
    scratch = db.LogisticRegression().fit(x, c)
    np.testing.assert_allclose(twin.coef_, scratch.coef_, rtol=1e-6)
    np.testing.assert_allclose(twin.intercept_, scratch.intercept_, rtol=1e-6)
    assert twin.status_ == scratch.status_ == "ok"
    assert twin.n_iter_ <= scratch.n_iter_
    assert twin.path_.header == scratch.path_.header


@pytest.mark.parametrize("solver", ["newton", "gradient"])
def test_refine_takes_the_penalty_and_the_solver_that_are_set(solver):
    x, c = overlapping(3)
    counts = sp.csr_array(np.floor(np.abs(x)))
    twin = db.NaiveBayes().fit(counts, c).to_linear().set_params(l2=1.0, solver=solver).refine(counts, c)
    theirs = TheirRegression(C=1.0, solver="newton-cholesky", tol=1e-12, max_iter=1000).fit(counts, c)
    np.testing.assert_allclose(twin.coef_, theirs.coef_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(
        twin.intercept_ - twin.intercept_[0], theirs.intercept_ - theirs.intercept_[0], rtol=1e-5
    )


def test_refine_uses_sample_weights():
    x, c = overlapping(2)
    weights = np.random.default_rng(0).integers(0, 4, len(c))
    twice = np.repeat(np.arange(len(c)), weights)
    model = db.GaussianDiscriminant().fit(x, c)
    weighted, repeated = model.to_linear().refine(x, c, weights), model.to_linear().refine(x[twice], c[twice])
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-7)
    assert np.abs(weighted.coef_ - model.to_linear().refine(x, c).coef_).max() > 1e-3


def test_refine_goes_on_from_other_rows():
    """The generative model of some rows is the start for all."""
    x, c = overlapping(3)
    twin = db.GaussianDiscriminant().fit(x[:60], c[:60]).to_linear().refine(x, c)
    np.testing.assert_allclose(twin.coef_, db.LogisticRegression().fit(x, c).coef_, rtol=1e-6)


def test_refine_takes_a_table_with_its_label():
    x, c = overlapping(3)
    table = pd.DataFrame(x, columns=["a", "b", "n"]).assign(label=np.array(["x", "y", "z"])[c])
    twin = db.GaussianDiscriminant().fit(table, "label").to_linear().refine(table[["label", "n", "b", "a"]], "label")
    np.testing.assert_allclose(twin.coef_, db.LogisticRegression().fit(x, c).coef_, rtol=1e-6)
    assert twin.classes_.tolist() == ["x", "y", "z"]


def test_refine_with_missing_values():
    """Of every column that had missing values there is an indicator; a fit of these features by hand gives the same."""
    x, c = overlapping(2)
    x = np.where(np.random.default_rng(1).random(x.shape) < 0.2, np.nan, x)
    twin = db.NaiveBayes({2: f.Poisson()}).fit(x, c).to_linear().refine(x, c)
    missing = np.isnan(x)
    filled = np.where(missing, 0.0, x)
    by_hand = np.hstack([filled, filled[:, :2] ** 2, missing])
    scratch = db.LogisticRegression().fit(by_hand, c)
    np.testing.assert_allclose(twin.decision_function(x), scratch.decision_function(by_hand), rtol=1e-5, atol=1e-6)


def test_refined_values_of_text_are_the_regression_on_indicators():
    """T(x) has an indicator for each value, one more than needed, which is no reason to warn."""
    rng = np.random.default_rng(4)
    c = np.arange(300) % 3
    values = np.array(["red", "green", "blue", "grey"], dtype=object)
    table = pd.DataFrame({name: values[rng.binomial(3, 0.4 + 0.1 * c)] for name in "ab"})
    twin = db.NaiveBayes().fit(table, c).to_linear().refine(table, c)
    scratch = db.LogisticRegression().fit(table, c)
    assert len(twin.feature_names_) == len(scratch.feature_names_) + 2
    assert twin.status_ == scratch.status_ == "ok"
    np.testing.assert_allclose(twin.predict_log_proba(table), scratch.predict_log_proba(table), rtol=1e-6)


def test_refine_refuses_what_the_model_does_not_know():
    x, c = overlapping(2)
    twin = db.GaussianDiscriminant().fit(x, c).to_linear()
    before = twin.coef_.copy()
    for labels, words in [
        (np.where(c == 1, 7, c), r"class 7 is not one of the model's: \[0, 1\]"),
        (np.zeros(len(c), int), "there is no row of class 1"),
        (c[:-1], "inconsistent numbers of samples"),
        (np.where(np.arange(len(c)) == 3, np.nan, c), "label, row 3: .*missing"),
    ]:
        with pytest.raises(db.DecibanError, match=words):
            twin.refine(x, labels)
    with pytest.raises(ValueError, match="features"):
        twin.refine(x[:, :2], c)
    with pytest.raises(ValueError, match="l2 must be"):
        twin.set_params(l2=-1.0).refine(x, c)
    with pytest.raises(NotFittedError):
        db.LogisticRegression().refine(x, c)
    np.testing.assert_array_equal(twin.coef_, before)


def test_any_regression_can_be_polished():
    x, c = overlapping(3)
    model = db.LogisticRegression(max_iter=1)
    with pytest.warns(db.DecibanWarning, match="not converged"):
        model.fit(x, c)
    model.set_params(max_iter=None).refine(x, c)
    np.testing.assert_allclose(model.coef_, db.LogisticRegression().fit(x, c).coef_, rtol=1e-6)


# A model like others
def test_twin_is_pickled_and_refined_afterwards():
    x, c = overlapping(3)
    twin = db.NaiveBayes({2: f.Poisson()}).fit(x, c).to_linear()
    copy = pickle.loads(pickle.dumps(twin))
    np.testing.assert_array_equal(copy.predict_proba(x), twin.predict_proba(x))
    np.testing.assert_array_equal(copy.refine(x, c).coef_, twin.refine(x, c).coef_)


def test_clone_of_a_twin_is_a_regression_not_yet_fitted():
    x, c = overlapping(3)
    twin = db.NaiveBayes().fit(x, c).to_linear()
    copy = clone(twin)
    assert copy.get_params() == twin.get_params()
    with pytest.raises(NotFittedError):
        copy.predict(x)
    np.testing.assert_allclose(copy.fit(x, c).coef_, db.SoftmaxRegression().fit(x, c).coef_, rtol=1e-12)


def test_twin_does_not_change_when_the_model_goes_on_learning():
    x, c = overlapping(3)
    model = db.NaiveBayes().fit(x[:150], c[:150])
    twin = model.to_linear()
    before = twin.predict_proba(x)
    model.partial_fit(x[150:], c[150:])
    np.testing.assert_array_equal(twin.predict_proba(x), before)
    same_predictions(model, model.to_linear(), x)


@pytest.mark.parametrize(("classes", "refined"), [(2, True), (3, False)])
def test_explanation_sums_to_the_log_odds(classes, refined):
    x, c = overlapping(classes)
    table = pd.DataFrame(x, columns=["wait", "size", "visits"])
    twin = db.NaiveBayes({"visits": f.Poisson()}).fit(table, c).to_linear()
    if refined:
        twin.refine(table, c)
    explained = twin.explain(table)
    assert set(explained.names[1:]) == {"wait", "size", "visits"}
    logs = twin.predict_log_proba(table)
    np.testing.assert_allclose(
        explained.log_odds(pos_label=1, against=0), (logs[:, 1] - logs[:, 0]) * DECIBANS, rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(explained.decibans(1, 0).sum(axis=1), explained.log_odds(1, 0), rtol=1e-12, atol=1e-12)


def test_summary_and_count_of_parameters():
    x, c = overlapping(3)
    twin = db.NaiveBayes({0: f.Exponential(), 1: f.Gaussian(), 2: f.Poisson()}).fit(x, c).to_linear()
    assert twin.n_parameters_ == 2 * (len(twin.feature_names_) + 1)
    text = str(twin.summary())
    for name in twin.feature_names_:
        assert name in text
    assert "iterations" not in text  # nothing was iterated yet
    assert "iterations" in str(twin.refine(x, c).summary())
