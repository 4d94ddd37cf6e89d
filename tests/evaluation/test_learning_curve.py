"""Learning curves: growing samples of the same rows, evaluated on held-out rows."""

import copy
from typing import ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.metrics import log_loss
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import deciban as db
from deciban.evaluation.learning_curve import splits

X, Y = load_iris(return_X_y=True)
SIZES = [12, 40, 90]
RARE = np.repeat([0, 1, 2, 3], [70, 20, 9, 1])  # class 3 has a single row


class Recorder:
    """Notes the rows it is given, whose first column is their number, and gives every class the same probability."""

    fitted: ClassVar[list[list[int]]] = []  # of the class, since copies are fitted
    predicted: ClassVar[list[list[int]]] = []

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.fitted.append(X[:, 0].astype(int).tolist())
        return self

    def predict_proba(self, X):
        self.predicted.append(X[:, 0].astype(int).tolist())
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))


class OneClass(Recorder):
    """Knows only the least class there is, and is certain of it."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)[:1]


@pytest.fixture
def recorder():
    Recorder.fitted.clear()
    Recorder.predicted.clear()
    return Recorder()


def curve(models=None, x=X, y=Y, **settings):
    return db.learning_curve(models or [db.NaiveBayes()], x, y, **{"sizes": SIZES, "repeats": 2, **settings})


def column(table, name):
    return table.to_frame()[name].to_pylist()


# Samples
def test_larger_samples_hold_the_smaller_and_no_row_of_the_test(recorder):
    numbered = np.arange(100.0)[:, np.newaxis]
    curve([recorder], numbered, RARE, sizes=[5, 20, 70], repeats=2)
    for repeat in (0, 3):
        small, middle, large = map(set, recorder.fitted[repeat : repeat + 3])
        tests = recorder.predicted[repeat : repeat + 3]
        assert (len(small), len(middle), len(large)) == (5, 20, 70)
        assert small < middle < large
        assert tests[0] == tests[1] == tests[2]
        assert large | set(tests[0]) == set(range(100))
        assert len(tests[0]) == 30
    assert recorder.predicted[0] != recorder.predicted[3]


def test_samples_and_tests_are_stratified():
    for part in splits(RARE, repeats=3, test_size=0.3, seed=1):
        np.testing.assert_array_equal(np.bincount(RARE[part.test], minlength=4), [21, 6, 3, 0])
        for size in range(4, 71):
            counts = np.bincount(RARE[part.pool[:size]], minlength=4)
            assert counts.min() >= 1
            shares = size * np.bincount(RARE) / len(RARE)
            assert np.abs(counts - shares).max() < 2  # the first rows of rare classes come early


def test_splits_differ_between_repeats_and_are_random_within_classes():
    parts = splits(Y, repeats=200, test_size=0.3, seed=0)
    times = np.bincount(np.concatenate([part.test for part in parts]), minlength=len(Y))
    # each row is in a test 200 · 0.3 = 60 times, give or take √(200 · 0.3 · 0.7) = 6.5
    assert times.min() > 60 - 5 * 6.5
    assert times.max() < 60 + 5 * 6.5
    firsts = np.bincount([Y[part.pool[0]] for part in parts])
    assert firsts.min() > 200 / 3 - 5 * 6.7  # no class always comes first


def test_a_seed_gives_the_same_table_again():
    assert curve() == curve()
    assert curve(random_state=1) != curve()
    assert curve(repeats=3).rows[: len(curve().rows)] == curve().rows
    assert set(curve(sizes=[40]).rows) < set(curve().rows)


def test_default_sizes_grow_by_factors_from_few_rows_to_all():
    sizes = sorted(set(column(db.learning_curve(db.NaiveBayes(), X, Y, repeats=1), "rows")))
    assert sizes == [10, 14, 20, 27, 38, 54, 75, 105]  # 10 · 10.5^(i/7)
    many = np.arange(150) % 50
    sizes = sorted(set(column(db.learning_curve(db.NaiveBayes(), X, many, repeats=1), "rows")))
    assert (sizes[0], sizes[-1]) == (100, 105)
    few = db.learning_curve(db.NaiveBayes(), X[45:57], Y[45:57], repeats=1)
    assert column(few, "rows") == [8]


def test_sizes_are_sorted_and_each_is_fitted_once():
    assert curve(sizes=np.array([90.0, 12.0, 40.0, 12.0])) == curve()


# Judgement
def test_the_table_is_long():
    table = curve([db.NaiveBayes(), db.GaussianDiscriminant()])
    assert table.header == ("model", "rows", "repeat", "log_loss", "error")
    assert column(table, "model") == ["NaiveBayes", "GaussianDiscriminant"] * 6
    assert column(table, "rows") == [12, 12, 40, 40, 90, 90] * 2
    assert column(table, "repeat") == [0] * 6 + [1] * 6


def test_one_cell_is_what_scikit_learn_computes():
    part = splits(Y, repeats=2, test_size=0.3, seed=0)[1]
    model = GaussianNB().fit(X[part.pool[:40]], Y[part.pool[:40]])
    expected = log_loss(Y[part.test], model.predict_proba(X[part.test]))
    _, size, repeat, loss, error = curve([GaussianNB()], sizes=[40]).rows[1]
    assert (size, repeat) == (40, 1)
    assert loss == pytest.approx(expected, rel=1e-12)
    assert error == pytest.approx(1 - model.score(X[part.test], Y[part.test]), rel=1e-12)


def test_a_class_the_model_has_not_seen_has_the_least_probability():
    row = curve([OneClass()], sizes=[40], repeats=1).rows[0]
    assert row[3] == pytest.approx(2 / 3 * -np.log(1e-15), rel=1e-12)
    assert row[4] == pytest.approx(2 / 3, rel=1e-12)


def test_a_certain_model_has_no_loss():
    row = curve([OneClass()], y=np.zeros(150, int), sizes=[40], repeats=1).rows[0]
    assert str(row[3:]) == "(0.0, 0.0)"


def test_weights_count_in_fits_and_means():
    weights = np.random.default_rng(0).integers(1, 5, len(Y)).astype(float)
    part = splits(Y, repeats=1, test_size=0.3, seed=0)[0]
    rows, test = part.pool[:40], part.test
    model = GaussianNB().fit(X[rows], Y[rows], weights[rows])
    row = curve([GaussianNB()], sizes=[40], repeats=1, sample_weight=weights).rows[0]
    assert row[3] == pytest.approx(log_loss(Y[test], model.predict_proba(X[test]), sample_weight=weights[test]))
    assert row[4] == pytest.approx(1 - model.score(X[test], Y[test], weights[test]))


def test_rows_of_weight_zero_are_as_if_they_were_not_there():
    weights = np.where(np.arange(150) < 50, 0.0, 1.0 + np.arange(150) % 2)  # all of the first class
    left = weights > 0
    assert curve(sizes=[2, 60], sample_weight=weights) == curve(
        None, X[left], Y[left], sizes=[2, 60], sample_weight=weights[left]
    )


# Models
def test_models_have_the_names_of_their_classes_or_of_the_dict():
    assert set(column(curve({"plain": db.NaiveBayes(), 2: db.NaiveBayes()}), "model")) == {"plain", "2"}
    same = curve([db.NaiveBayes(), db.GaussianDiscriminant(), db.NaiveBayes(smoothing=2)])
    assert column(same, "model")[:3] == ["NaiveBayes", "GaussianDiscriminant", "NaiveBayes 2"]
    assert curve(db.NaiveBayes()) == curve([db.NaiveBayes()]) == curve(iter([db.NaiveBayes()]))
    assert set(column(curve(make_pipeline(db.NaiveBayes())), "model")) == {"Pipeline"}


def test_models_stay_as_they_are():
    fresh, fitted = db.NaiveBayes(), db.NaiveBayes().fit(X[:, :1], Y)
    before = copy.deepcopy(fitted)
    curve([fresh, fitted])
    assert not hasattr(fresh, "classes_")
    assert fitted.n_features_in_ == 1
    np.testing.assert_array_equal(fitted.predict_proba(X[:, :1]), before.predict_proba(X[:, :1]))


# Input
def arrow(frame):
    return pa.Table.from_pandas(frame, preserve_index=False)


@pytest.mark.parametrize(
    ("kind", "named"), [(pd.DataFrame, True), (pd.DataFrame, False), (pl.from_pandas, True), (arrow, False)]
)
def test_a_table_gives_what_an_array_gives(kind, named):
    species = np.array(["setosa", "versicolor", "virginica"])[Y]
    frame = pd.DataFrame(X, columns=list("abcd"), index=np.arange(150)[::-1])
    models = [db.NaiveBayes(), GaussianNB()]
    expected = curve(models, y=species, sizes=[40])
    if named:
        frame.insert(2, "species", species)
    got = curve(models, kind(frame), "species" if named else pd.Series(species), sizes=[40])
    assert got.header == expected.header
    for left, right in zip(got.rows, expected.rows, strict=True):
        assert left[:3] == right[:3]
        assert left[3:] == pytest.approx(right[3:], rel=1e-9)


def test_sparse_rows_give_what_an_array_gives():
    counts = np.random.default_rng(0).poisson(1.0 + Y[:, np.newaxis], (150, 6)).astype(float)
    models = [db.NaiveBayes(db.families.Multinomial())]
    expected = curve(models, counts)
    for sparse in (sp.csr_array(counts), sp.coo_array(counts), sp.csc_matrix(counts)):
        got = curve(models, sparse)
        np.testing.assert_allclose(column(got, "log_loss"), column(expected, "log_loss"), rtol=1e-9)


def test_lists_and_labels_of_any_type():
    for labels in (Y.tolist(), Y.astype(float), Y.astype(np.int8), pd.Categorical(Y), pa.array(Y)):
        assert curve(y=labels) == curve()
    assert curve(x=X.tolist()) == curve()
    assert curve(y=Y > 0).rows == curve(y=(Y > 0).astype(str)).rows
    mixed = [["red", 1.0], ["blue", 2.0]] * 20
    assert len(curve(x=mixed, y=["a", "b"] * 20, sizes=[10]).rows) == 2


def test_pipelines_of_scikit_learn_find_the_columns_of_pandas():
    colours = pd.DataFrame(
        {"colour": ["red", "red", "blue", "green"] * 10, "size": np.arange(40.0), "y": [0, 0, 1, 1] * 10}
    )
    encoder = make_column_transformer((OneHotEncoder(), ["colour"]), remainder="drop")
    models = [make_pipeline(encoder, BernoulliNB()), db.NaiveBayes()]
    assert column(curve(models, colours, "y", sizes=[28], repeats=1), "error")[0] == 0


# Mistakes
def test_mistakes_are_explained():
    for settings, message in [
        ({"sizes": [10, 106]}, "sizes has 106, but there are only 105 training rows"),
        ({"sizes": [2]}, "a sample of 2 rows cannot hold a row of each of the 3 classes"),
        ({"sizes": [0.5]}, r"sizes are numbers of rows, such as \[20, 50, 100\]; got \[0.5\]"),
        ({"sizes": []}, "sizes are numbers of rows"),
        ({"sizes": ["all"]}, "sizes are numbers of rows"),
        ({"repeats": 0}, "repeats is 0: it must be 1 or more"),
        ({"test_size": 1.0}, "test_size is 1.0: it must be a share of the rows, between 0 and 1"),
        ({"test_size": 45}, "test_size is 45: it must be a share"),
        ({"test_size": 0.99}, "2 rows are too few to train on 3 classes: lower test_size, or pass more rows"),
        ({"x": X[:0], "y": Y[:0]}, "no rows to learn from"),
        ({"x": X[:3]}, "inconsistent numbers of samples: 3 rows, 150 labels"),
        ({"x": X[:, 0]}, r"X must be a table or a matrix; it has the shape \(150,\)"),
        ({"y": "species"}, "y='species' names a column, so X must be a table"),
        ({"x": pd.DataFrame(X), "y": "species"}, "no column 'species'"),
        ({"y": X[:, 0]}, "Unknown label type: continuous"),
        ({"sample_weight": [1.0]}, "Sample weights must be 1D"),
        ({"models": {}, "y": Y}, "there are no models to fit"),
        ({"models": [1]}, "int is not a model with probabilities"),
        ({"models": {"plain": GaussianNB}}, "GaussianNB is a class: pass an instance"),
    ]:
        arguments = {"models": [db.NaiveBayes()], "X": X, "y": Y, "sizes": SIZES}
        arguments |= {"X" if name == "x" else name: value for name, value in settings.items()}
        with pytest.raises(db.DecibanError, match=message):
            db.learning_curve(**arguments)


def test_a_fit_that_fails_says_which_model_and_size():
    negative = X - 5.0
    with pytest.raises(db.DecibanError, match="counts, fitted to 12 rows: column 0, row ") as caught:
        curve({"plain": db.NaiveBayes(), "counts": db.NaiveBayes(db.families.Poisson())}, negative)
    assert isinstance(caught.value.__cause__, db.DecibanError)
