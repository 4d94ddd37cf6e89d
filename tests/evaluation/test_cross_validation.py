"""evaluate against scikit-learn's metrics, cross_validate against refits on the same folds."""

import copy
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, brier_score_loss, confusion_matrix, log_loss, roc_auc_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import deciban as db
from deciban import families as fam
from deciban.evaluation.cross_validation import out_of_fold, stratified_folds
from deciban.evaluation.evaluation_rows import EvaluationRows

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]
RNG = np.random.default_rng(3)
W = RNG.choice([0.5, 1.0, 2.5], 150)
FOLD = RNG.integers(0, 4, 150)
MIXED = pd.DataFrame(
    {
        "colour": np.where(RNG.random(150) < 0.1, None, RNG.choice(["red", "blue", "green"], 150).astype(object)),
        "petal": np.where(RNG.random(150) < 0.1, np.nan, X[:, 2]),
        "species": NAMES,
        "calls": RNG.poisson(1.0 + Y),
        "flag": RNG.random(150) < 0.2 + 0.3 * Y,
    }
)
PLAIN = MIXED.drop(columns="species")


def arrow(frame):
    return pa.Table.from_pandas(frame, preserve_index=False)


def by_refits(model, x, y, fold, weights=None):
    """(n, K) of each row from a copy of the model fitted on the other folds; a class not among them has 0."""
    classes = np.unique(y)
    out = np.zeros((len(y), len(classes)))
    at = (lambda rows: x.iloc[rows]) if hasattr(x, "iloc") else (lambda rows: x[rows])
    for f in np.unique(fold):
        held_out, others = np.flatnonzero(fold == f), np.flatnonzero(fold != f)
        given_weights = {} if weights is None else {"sample_weight": weights[others]}
        fresh = copy.deepcopy(model).fit(at(others), y[others], **given_weights)
        out[np.ix_(held_out, np.searchsorted(classes, fresh.classes_))] = fresh.predict_proba(at(held_out))
    return out


def by_folds(model, x, y, fold, weights=None):
    """(n, K) the same, predicted fold by fold; every row once."""
    result = out_of_fold(model, EvaluationRows.of(x, y, weights), fold)
    assert [np.unique(fold[one.rows]).tolist() for one in result] == [[f] for f in range(fold.max() + 1)]
    rows = np.concatenate([one.rows for one in result])
    np.testing.assert_array_equal(np.sort(rows), np.arange(len(fold)))
    return np.exp(np.concatenate([one.log_p for one in result]))[np.argsort(rows)]


def assert_like_refits(model, x, y, fold, weights=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", db.DecibanWarning)
        expected = by_refits(model, x, y, fold, weights)
        result = by_folds(model, x, y, fold, weights)
        evaluation = db.cross_validate(model, x, y, fold, sample_weight=weights)
    np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-10)
    assert evaluation.log_loss == pytest.approx(log_loss(y, expected, sample_weight=weights), rel=1e-9)
    guesses = np.unique(y)[expected.argmax(axis=1)]
    assert evaluation.accuracy == pytest.approx(accuracy_score(y, guesses, sample_weight=weights), rel=1e-12)


MODELS = [
    db.NaiveBayes(),
    db.NaiveBayes(fam.Uniform()),
    db.NaiveBayes(fam.Binned()),
    db.NaiveBayes(fam.Binned("equal-width", count=4)),
    db.NaiveBayes({(0, 1): fam.MultivariateGaussian(), 3: fam.Exponential()}),
    db.NaiveBayes({(0, 1): fam.MultivariateGaussian("per-class")}, class_prior="uniform"),
    db.NaiveBayes({0: fam.Binned()}, smoothing="auto"),
    *(db.GaussianDiscriminant("shared", s) for s in (None, "oas")),
    *(db.GaussianDiscriminant("per-class", s) for s in (0.2, "oas")),
    db.GaussianDiscriminant("shared", ddof="unbiased", class_prior=[0.2, 0.3, 0.5]),
    db.GaussianDiscriminant("diagonal"),
    db.LogisticRegression(l2=1.0),
    GaussianNB(),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_folds_are_refits(model):
    assert_like_refits(model, X[::2], Y[::2], FOLD[::2], W[::2])


def test_folds_are_refits_without_weights():
    for model in (db.NaiveBayes(), db.GaussianDiscriminant(), GaussianNB()):
        assert_like_refits(model, X[::2], Y[::2], FOLD[::2])


@pytest.mark.parametrize(("kind", "missing"), [(pd.DataFrame, "skip"), (pl.from_pandas, "category"), (arrow, "skip")])
def test_a_mixed_table(kind, missing):
    model = db.NaiveBayes(missing=missing)
    expected = by_refits(model, PLAIN, NAMES, FOLD, W)
    for x, y in ((kind(PLAIN), NAMES), (kind(MIXED), "species")):
        np.testing.assert_allclose(by_folds(model, x, y, FOLD, W), expected, rtol=1e-10, atol=1e-12)
        result = db.cross_validate(model, x, y, FOLD, sample_weight=W)
        assert result.classes == ("setosa", "versicolor", "virginica")
        assert result.log_loss == pytest.approx(log_loss(NAMES, expected, sample_weight=W), rel=1e-10)


@pytest.mark.parametrize(
    "kind", [pl.from_pandas, lambda t: pl.from_pandas(t).lazy(), lambda t: pa.table(pl.from_pandas(t))]
)
def test_models_that_are_fitted_again_read_tables_of_polars(kind):
    """With string views, from which Arrow takes no rows."""
    model = db.LogisticRegression(l2=1.0)
    expected = db.cross_validate(model, MIXED, "species", FOLD).log_loss
    assert db.cross_validate(model, kind(MIXED), "species", FOLD).log_loss == pytest.approx(expected, rel=1e-9)
    table = kind(MIXED.assign(word=np.where(Y, "u", "v")).drop(columns="species"))
    db.CalibratedClassifier(db.NaiveBayes("auto"), cv=3).fit(table, NAMES)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@pytest.mark.parametrize("kind", [lambda t: t, pd.DataFrame.to_numpy, pl.from_pandas, arrow])
def test_labels_may_be_a_table_of_one_column(kind):
    y = kind(pd.DataFrame({"species": NAMES}))
    model, expected = db.NaiveBayes().fit(X, y), db.NaiveBayes().fit(X, NAMES)
    assert db.evaluate(model, X, y) == db.evaluate(expected, X, NAMES)
    assert db.cross_validate(model, X, y, FOLD) == db.cross_validate(expected, X, NAMES, FOLD)
    assert model.score(X, y) == expected.score(X, NAMES)


@pytest.mark.parametrize(
    "kind", [lambda y: y.astype(object), lambda y: [*map(bool, y)], lambda y: pd.Series(y, dtype=object)]
)
def test_labels_that_are_true_or_false_may_be_objects(kind):
    y = kind(Y > 0)
    model = db.NaiveBayes().fit(X, y)
    assert model.score(X, y) == db.evaluate(model, X, y).accuracy


def test_foreign_models_read_pandas_and_arrow():
    numbers = pd.DataFrame(X, columns=list("abcd"), index=np.arange(150)[::-1])
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, solver="newton-cholesky"))
    expected = log_loss(Y, by_refits(model, numbers, Y, FOLD))
    named = numbers.assign(species=NAMES)
    for x, y in ((numbers, Y), (named, "species"), (X.tolist(), Y.tolist())):
        assert db.cross_validate(model, x, y, FOLD).log_loss == pytest.approx(expected, rel=1e-9)
    own = log_loss(Y, by_refits(db.LogisticRegression(l2=1.0), numbers, Y, FOLD))
    assert db.cross_validate(db.LogisticRegression(l2=1.0), arrow(named), "species", FOLD).log_loss == pytest.approx(
        own
    )


@settings(max_examples=10)
@given(seed=st.integers(0, 2**32 - 1), bins=st.sampled_from(["supervised", "equal-width", "equal-frequency"]))
def test_bins_of_more_values_than_a_histogram_remembers(seed, bins):
    """All 24 values are too many, those of three folds of four are not: a refit is not as coarse as all rows are."""
    rng = np.random.default_rng(seed)
    y = np.arange(24) % 3
    x = rng.exponential(size=(24, 2)) + y[:, np.newaxis]
    assert_like_refits(db.NaiveBayes(fam.Binned(bins, count=4, cap=20)), x, y, np.arange(24) // 6)


def test_sparse_rows_and_single_precision():
    counts = RNG.poisson(0.5 + Y[:, np.newaxis], (150, 6)).astype(float)
    expected = by_refits(db.NaiveBayes(fam.Multinomial()), counts, Y, FOLD)
    for x in (sp.csr_array(counts), sp.csc_matrix(counts), counts.astype(np.float32)):
        result = by_folds(db.NaiveBayes(fam.Multinomial()), x, Y, FOLD)
        np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-12)


def test_a_class_that_is_in_one_fold_only_has_probability_0_there():
    fold = np.where(Y == 2, 0, 1 + np.arange(150) % 2)
    for model in (db.NaiveBayes(), db.GaussianDiscriminant(), db.LogisticRegression(l2=1.0), GaussianNB()):
        assert_like_refits(model, X, Y, fold)
        assert (by_folds(model, X, Y, fold)[Y == 2, 2] == 0).all()


def test_values_of_one_fold_only_are_unseen_there():
    words = pd.DataFrame({"word": ["a", "b", "a", "b", "c", "c", "a", "b"]})
    y, fold = np.array([0, 1, 0, 1, 0, 1, 1, 0]), np.array([0, 0, 1, 1, 2, 2, 0, 1])
    for unseen in ("skip", "reserve"):
        assert_like_refits(db.NaiveBayes(unseen=unseen), words, y, fold)
    with pytest.raises(db.DecibanError, match="column 'word', row 4: 'c' was never seen"):
        db.cross_validate(db.NaiveBayes(unseen="error"), words, y, fold)


def test_a_column_without_a_cell_is_left_out_of_a_joint_density():
    more = np.column_stack([X, np.full(150, np.nan)])
    for kind in ("shared", "per-class"):
        expected = by_refits(db.GaussianDiscriminant(kind), X, Y, FOLD)
        np.testing.assert_allclose(by_folds(db.GaussianDiscriminant(kind), more, Y, FOLD), expected, rtol=1e-9)


def test_a_row_that_no_class_allows_gets_the_prior_of_the_others():
    x = np.array([[1.0], [2.0], [1.0], [3.0], [9.0], [2.0]])
    y, fold = np.array([0, 0, 1, 1, 1, 0]), np.array([0, 1, 0, 1, 2, 1])
    model = db.NaiveBayes(fam.Uniform(), smoothing=0)
    with pytest.warns(db.DecibanWarning, match="impossible under every class"):
        result = by_folds(model, x, y, fold)
    np.testing.assert_allclose(result[4], [3 / 5, 2 / 5], rtol=1e-12)


# Folds
@given(
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=5),
    folds=st.integers(2, 9),
    seed=st.integers(0, 2**31),
)
def test_folds_are_stratified(sizes, folds, seed):
    codes = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes)).astype(np.int32)
    fold = stratified_folds(codes, folds, seed)
    for c, n in enumerate(sizes):
        counts = np.bincount(fold[codes == c], minlength=folds)
        assert counts.min() >= n // folds
        assert counts.max() <= -(-n // folds)
    counts = np.bincount(fold, minlength=folds)
    assert counts.max() - counts.min() <= 1


def test_every_row_is_in_every_fold_equally_often():
    codes = np.repeat([0, 1], [10, 20]).astype(np.int32)
    first = np.mean([stratified_folds(codes, 5, seed) == 0 for seed in range(200)], axis=0)
    assert np.abs(first - 0.2).max() < 5 * np.sqrt(0.2 * 0.8 / 200)


def test_a_seed_gives_the_same_folds_again():
    a, b = (db.cross_validate(db.NaiveBayes(), X, Y) for _ in range(2))
    assert a == b
    assert a != db.cross_validate(db.NaiveBayes(), X, Y, random_state=1)
    assert a.log_loss == pytest.approx(
        log_loss(Y, by_refits(db.NaiveBayes(), X, Y, stratified_folds(Y.astype(np.int32), 10, 0)))
    )


def test_folds_have_names_of_any_kind():
    result = db.cross_validate(db.NaiveBayes(), X, Y, FOLD)
    names = np.array(["north", "east", "south", "west"])[FOLD]
    for folds in (FOLD.tolist(), FOLD * 7 - 3, names.tolist(), pd.Series(FOLD), names, names.astype(object)):
        same = db.cross_validate(db.NaiveBayes(), X, Y, folds)
        assert same == result
        assert len(same.parts) == 4
    assert result.parts[2] == db.cross_validate(db.NaiveBayes(), X, Y, FOLD).parts[2]


def test_parts_are_the_folds_and_sum_to_the_whole():
    for model in (db.NaiveBayes(), GaussianNB()):
        result = db.cross_validate(model, X, Y, FOLD, sample_weight=W)
        assert sum(result.parts) == result
        proba = by_refits(model, X, Y, FOLD, W)
        for f, part in enumerate(result.parts):
            held_out = f == FOLD
            assert part.rows == pytest.approx(W[held_out].sum())
            assert part.log_loss == pytest.approx(
                log_loss(Y[held_out], proba[held_out], sample_weight=W[held_out]), rel=1e-9
            )


def test_leave_one_out_is_as_many_folds_as_rows():
    few = np.arange(0, 150, 6)
    for model in (db.NaiveBayes(), db.GaussianDiscriminant()):
        folds = db.cross_validate(model, X[few], Y[few], np.arange(25))
        assert model.fit(X[few], Y[few]).leave_one_out(X[few], Y[few]).log_loss == pytest.approx(
            folds.log_loss, rel=1e-9
        )


def test_rows_of_weight_0_are_as_if_they_were_not_there():
    weights = np.where(np.arange(150) % 3 == 0, 0.0, W)
    nonzero = weights > 0
    for model in (db.NaiveBayes(), GaussianNB(), db.LogisticRegression(l2=1.0)):
        for folds in (5, FOLD):
            left = folds if isinstance(folds, int) else folds[nonzero]
            expected = db.cross_validate(model, X[nonzero], Y[nonzero], left, sample_weight=weights[nonzero])
            assert db.cross_validate(model, X, Y, folds, sample_weight=weights) == expected
    none_of_class_2 = np.where(Y == 2, 0.0, 1.0)
    result = db.cross_validate(db.NaiveBayes(), X, Y, sample_weight=none_of_class_2)
    assert result.rows == 100
    assert result.log_loss == pytest.approx(db.cross_validate(db.NaiveBayes(), X[Y < 2], Y[Y < 2]).log_loss)


def test_the_model_stays_as_it_is():
    for kind in (db.NaiveBayes, db.GaussianDiscriminant, lambda: db.LogisticRegression(l2=1.0), GaussianNB):
        fresh, fitted = kind(), kind().fit(X[:, :1], Y)
        before = fitted.predict_proba(X[:, :1])
        db.cross_validate(fresh, X, Y, cv=2)
        db.cross_validate(fitted, X, Y, cv=2)
        assert not hasattr(fresh, "classes_")
        assert vars(fresh) == vars(kind())
        assert fitted.n_features_in_ == 1
        np.testing.assert_array_equal(fitted.predict_proba(X[:, :1]), before)


def test_a_class_of_few_rows_is_warned_of():
    rare = np.where(np.arange(150) < 3, 9, Y)
    with pytest.warns(db.DecibanWarning, match=r"class 9 has fewer rows \(3\) than there are folds \(10\)"):
        result = db.cross_validate(db.NaiveBayes(), X, rare)
    np.testing.assert_array_equal(result.count, [47, 50, 50, 3])


def test_mistakes_are_explained():
    for changes, message in [
        ({"cv": 1}, "cv is 1: it must be a whole number from 2 to the number of rows, 150"),
        ({"cv": 0}, "cv is 0"),
        ({"cv": -3}, "cv is -3"),
        ({"cv": 151}, "cv is 151"),
        ({"cv": 2.5}, "cv is 2.5"),
        ({"cv": "ten"}, "cv is 'ten'"),
        ({"cv": None}, "cv is None"),
        ({"cv": True}, "cv is True"),
        ({"cv": FOLD[:5]}, r"cv has 5 rows: \w+ one fold for each of the 150 rows"),
        ({"cv": np.ones((150, 2))}, r"cv must be a number of folds, or the fold of each row: .*\(150, 2\)"),
        ({"cv": np.zeros(150)}, "cv has one fold only"),
        ({"cv": FOLD[:5], "sample_weight": W}, r"cv has 5 rows: \w+ one fold for each of the 150"),
        ({"cv": np.where(FOLD == 0, None, FOLD)}, "cv must be a number of folds, or the fold of each row"),
        ({"model": db.NaiveBayes}, "NaiveBayes is a class: pass an instance"),
        ({"model": 3}, "int is not a model with probabilities"),
        ({"X": X[:3]}, "inconsistent numbers of samples: 3 rows, 150 labels"),
        ({"X": X[:0], "y": Y[:0]}, "no rows"),
        ({"X": X[:, 0]}, r"X must be a table or a matrix; it has the shape \(150,\)"),
        ({"y": X[:, 0]}, "Unknown label type: continuous"),
        ({"y": "species"}, "y='species' names a column, so X must be a table"),
        ({"X": MIXED, "y": "name"}, "no column 'name'"),
        ({"sample_weight": W[:5]}, "Sample weights must be 1D"),
        ({"sample_weight": -W}, "not a weight"),
        ({"sample_weight": 0 * W}, "every sample weight is zero"),
        ({"X": np.where(X > 7, np.inf, X)}, "column 0, row 102: inf is infinite"),
        (
            {"model": GaussianNB(), "X": np.where(X > 7, np.nan, X)},
            r"GaussianNB, fitted without fold 0 \(rows count from 0 without it\): Input X contains NaN",
        ),
        ({"y": None}, "the target y is None: pass the labels, or the name of a column of X"),
    ]:
        with pytest.raises(db.DecibanError, match=message):
            db.cross_validate(**{"model": db.NaiveBayes(), "X": X, "y": Y, **changes})


@pytest.mark.parametrize("row", [0, 60])
def test_rows_of_a_refit_are_counted_without_the_fold(row):
    """A generative model names the row of the table; one that is fitted again can only name that of its own rows."""
    bad = X.copy()
    bad[row, 0] = np.inf
    fold = np.where(np.arange(150) % 3 == 1, "a", "b")
    for model in (db.NaiveBayes(), db.NaiveBayes(fam.Binned()), db.GaussianDiscriminant()):
        with pytest.raises(db.DecibanError, match=f"^column 0, row {row}: inf is infinite"):
            db.cross_validate(model, bad, Y, fold)
    before = int((fold[:row] == "b").sum())
    for model in (db.LogisticRegression(l2=1.0), db.CalibratedClassifier()):
        where = rf"{type(model).__name__}, fitted without fold 0 \(rows count from 0 without it\): column 0"
        with pytest.raises(db.DecibanError, match=f"^{where}, row {before}: inf is infinite"):
            db.cross_validate(model, bad, Y, fold)


def test_a_fold_of_all_rows_that_count_is_one_fold():
    weights = np.where(FOLD == 0, 1.0, 0.0)
    with pytest.raises(db.DecibanError, match="cv has one fold only"):
        db.cross_validate(db.NaiveBayes(), X, Y, FOLD, sample_weight=weights)


# Evaluate
@pytest.mark.parametrize("weights", [None, W[1::2]], ids=["plain", "weighted"])
@pytest.mark.parametrize("model", [db.NaiveBayes(), GaussianNB()], ids=str)
def test_metrics_are_those_of_scikit_learn(model, weights):
    fitted = copy.deepcopy(model).fit(X[::2], Y[::2])
    x, y = X[1::2], Y[1::2]
    proba = fitted.predict_proba(x)
    result = db.evaluate(fitted, x, y, weights)
    assert result.classes == (0, 1, 2)
    assert result.log_loss == pytest.approx(log_loss(y, proba, sample_weight=weights), rel=1e-10)
    assert result.accuracy == pytest.approx(accuracy_score(y, proba.argmax(axis=1), sample_weight=weights), rel=1e-12)
    expected = confusion_matrix(y, proba.argmax(axis=1), sample_weight=weights)
    np.testing.assert_allclose(result.confusion, expected, rtol=1e-12)
    for k in range(3):
        area = roc_auc_score(y == k, proba[:, k], sample_weight=weights)
        assert result.auc(pos_label=k) == pytest.approx(area, rel=1e-12)


def test_two_classes():
    y = np.where(NAMES == "virginica", "yes", "no")
    model = db.NaiveBayes().fit(X[::2], y[::2])
    proba = model.predict_proba(X[1::2])[:, 1]
    result = db.evaluate(model, X[1::2], y[1::2])
    assert result.brier == pytest.approx(brier_score_loss(y[1::2] == "yes", proba), rel=1e-12)
    assert result.auc() == pytest.approx(roc_auc_score(y[1::2] == "yes", proba), rel=1e-12)


def test_classes_that_the_model_does_not_know_have_probability_0():
    model = db.NaiveBayes().fit(X[Y < 2], NAMES[Y < 2])
    result = db.evaluate(model, X, NAMES)
    assert result.classes == ("setosa", "versicolor", "virginica")
    proba = np.column_stack([model.predict_proba(X), np.zeros(150)])
    assert result.log_loss == pytest.approx(log_loss(Y, proba), rel=1e-10)
    assert result.unknown == 50
    known_only = db.evaluate(model, X[:50], NAMES[:50])
    assert known_only.classes == ("setosa", "versicolor")
    assert known_only.unknown == 0
    first = db.NaiveBayes().fit(X[Y > 0], NAMES[Y > 0])  # the class that is not known comes first
    assert db.evaluate(first, X, NAMES).unknown == 50
    np.testing.assert_array_equal(db.evaluate(first, X, NAMES).confusion[:, 0], 0)


@pytest.mark.parametrize("kind", [lambda t: t, pl.from_pandas, arrow], ids=["pandas", "polars", "arrow"])
def test_the_label_by_name(kind):
    model = db.NaiveBayes().fit(PLAIN, NAMES)
    expected = db.evaluate(model, PLAIN, NAMES, W)
    assert db.evaluate(model, kind(MIXED), "species", W) == expected
    assert expected.log_loss == pytest.approx(log_loss(NAMES, model.predict_proba(PLAIN), sample_weight=W), rel=1e-10)


def test_foreign_models_and_the_label_by_name():
    numbers = pd.DataFrame(X, columns=list("abcd")).assign(species=NAMES)
    model = GaussianNB().fit(numbers[list("abcd")], NAMES)
    expected = log_loss(NAMES, model.predict_proba(numbers[list("abcd")]))
    assert db.evaluate(model, numbers, "species").log_loss == pytest.approx(expected, rel=1e-10)


def test_evaluations_of_parts_add_up():
    for model in (db.NaiveBayes().fit(X, Y), GaussianNB().fit(X, Y)):
        cut = RNG.integers(0, 3, 150)
        parts = [db.evaluate(model, X[cut == k], Y[cut == k], W[cut == k]) for k in range(3)]
        assert sum(parts) == db.evaluate(model, X, Y, W)


def test_labels_of_another_type_than_the_models():
    model = GaussianNB().fit(X, Y.astype(np.int8))
    expected = db.evaluate(model, X, Y)
    assert expected.accuracy == pytest.approx(model.score(X, Y))
    for y in (Y.tolist(), pd.Series(Y), pd.Categorical(Y), Y.astype(float), pa.array(Y)):
        assert db.evaluate(model, X, y) == expected
    flags = GaussianNB().fit(X, Y > 1)
    assert db.evaluate(flags, X, Y > 1).classes == (False, True)


def test_evaluate_of_mistakes():
    model = db.NaiveBayes().fit(X, Y)
    for args, message in (
        ((db.NaiveBayes(), X, Y), "this NaiveBayes has no classes_: fit it first"),
        ((db.CalibratedClassifier(), X, Y), "this CalibratedClassifier has no classes_: fit it first"),
        ((GaussianNB(), X, Y), "this GaussianNB has no classes_: fit it first"),
        ((model, X, None), "the target y is None: pass the labels, or the name of a column of X"),
        ((3, X, Y), "int is not a model"),
        ((model, X[:3], Y), "inconsistent numbers"),
        ((model, X[:, :2], Y), "features"),
        ((model, X, Y, W[:2]), "Sample weights must be 1D"),
    ):
        with pytest.raises(ValueError, match=message):
            db.evaluate(*args)
