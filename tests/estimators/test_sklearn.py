"""The estimators are scikit-learn estimators: its own checks, and the tools that people put around them."""

import pickle
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_diabetes, load_iris, load_wine
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_dataframe_column_names_consistency, check_estimator

import deciban as db

EVIDENCE = db.EvidenceClassifier(pairs=1, trees=2)
CHECKED = [
    db.NaiveBayes(),
    db.GaussianDiscriminant("shared"),
    EVIDENCE,
    db.LogisticRegression(),
    db.SoftmaxRegression(l2=1.0, init="generative"),
    db.GeneralizedLinearModel("gaussian"),
    db.GeneralizedLinearModel("multinomial"),
    db.Halfspace(),
    db.CalibratedClassifier(cv=2),
]
VARIANTS = [  # settings whose checks take long and find what those above find
    db.GaussianDiscriminant("per-class"),
    db.GaussianDiscriminant("diagonal"),
    db.LogisticRegression(firth=True),
    db.LogisticRegression(solver="gradient", l2=1.0),
    db.GeneralizedLinearModel("bernoulli"),
    db.GeneralizedLinearModel("poisson"),
    db.GeneralizedLinearModel("exponential"),
    db.CalibratedClassifier(db.LogisticRegression(l2=1.0), "isotonic", cv=2),
]
MODELS = [*CHECKED, *VARIANTS]
GENERATIVE = [model for model in MODELS if isinstance(model, (db.NaiveBayes, db.GaussianDiscriminant))]
UNPENALISED = [  # the units of the columns do not matter to them
    *GENERATIVE,
    *(model for model in MODELS if isinstance(model, db.GeneralizedLinearModel)),
    db.LogisticRegression(),
    db.LogisticRegression(firth=True),
]


def expected_to_fail(model):
    """Of rows that are dealt to folds, one of weight 2 is not two: its copy may be in another fold, and known there."""
    kinds = ("dense", "sparse") if isinstance(model, db.CalibratedClassifier) else ()
    return {f"check_sample_weight_equivalence_on_{kind}_data": expected_to_fail.__doc__ for kind in kinds}


# Small random data make a covariance singular, classes separable or columns collinear here and there, with a warning.
@pytest.mark.filterwarnings("ignore::deciban.errors.DecibanWarning")
@pytest.mark.parametrize(
    "model", [*CHECKED, *(pytest.param(model, marks=pytest.mark.slow) for model in VARIANTS)], ids=str
)
def test_scikit_learn_checks_pass(model):
    check_estimator(model, expected_failed_checks=expected_to_fail(model), on_skip=None)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@cache
def sample(model):
    """Rows that the model can learn from, whose classes no hyperplane separates, and the model fitted to them."""
    if is_regressor(model):
        x, y = load_diabetes(return_X_y=True)
        x, y = x[:80], (y if model.family == "gaussian" else y // 10 + 1)[:80]
    else:
        x, y = load_wine(return_X_y=True)
        rows = y < (2 if isinstance(model, db.Halfspace) or getattr(model, "family", "") == "bernoulli" else 3)
        x, y = x[rows, :3], y[rows]
    return x, y, clone(model).fit(x, y)


def answer(model, x):
    """The most that it says of a row."""
    for name in ("predict_proba", "decision_function", "predict_mean"):
        if hasattr(model, name):
            return getattr(model, name)(x)
    raise AssertionError(model)


def test_columns_are_matched_by_name_where_scikit_learn_wants_an_error():
    """The one check outside check_estimator that fails, by design: another order of names is no mistake."""
    for model in CHECKED:
        with pytest.raises(AssertionError, match="did not raise"):
            check_dataframe_column_names_consistency(type(model).__name__, clone(model))


def test_an_array_for_a_model_of_a_table_is_read_by_position_with_a_warning():
    for model in CHECKED:
        x, y, _ = sample(model)
        table = pd.DataFrame(x).add_prefix("x")
        fitted = clone(model).fit(table, y)
        with pytest.warns(UserWarning, match="X does not have valid feature names"):
            by_position = answer(fitted, x)
        np.testing.assert_array_equal(by_position, answer(fitted, table))
        np.testing.assert_array_equal(by_position, answer(fitted, table[table.columns[::-1]]))


def test_clone_and_get_params_keep_the_settings_and_not_the_fit(iris):
    families = {0: db.families.Binned(count=3), (1, 2): db.families.MultivariateGaussian()}
    model = db.NaiveBayes(families, smoothing=0.5, class_prior="laplace", missing="category", unseen="reserve")
    copy = clone(model.fit(*iris))
    assert copy.get_params() == model.get_params()
    assert copy.get_params()["families"] == families
    assert not hasattr(copy, "classes_")


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_copies_clones_and_kinds(model):
    """A pickle keeps every bit, a clone the settings and not the fit."""
    x, y, fitted = sample(model)
    copy, fresh = pickle.loads(pickle.dumps(fitted)), clone(fitted)
    np.testing.assert_array_equal(answer(copy, x), answer(fitted, x))
    assert repr(copy) == repr(fresh) == repr(fitted)
    assert not [name for name in vars(fresh) if name.endswith("_") and not name.startswith("_")]
    np.testing.assert_array_equal(answer(fresh.fit(x, y), x), answer(fitted, x))
    assert is_classifier(model) != is_regressor(model)
    assert is_regressor(model) == (getattr(model, "family", "") in ("gaussian", "poisson", "exponential"))
    assert type(model).__name__ in repr(model)


def test_pickle_goes_on_learning(iris):
    x, y = iris
    for model in (*GENERATIVE, EVIDENCE):
        fitted = clone(model).fit(x[::2], y[::2])
        fitted.predict(x)
        copy = pickle.loads(pickle.dumps(fitted))
        for more in (copy, fitted):
            more.partial_fit(x[1::2], y[1::2])
        np.testing.assert_array_equal(copy.predict_proba(x), fitted.predict_proba(x))


def test_scaling_in_a_pipeline_does_not_change_predictions():
    for model in UNPENALISED:
        x, y, fitted = sample(model)
        scaled = make_pipeline(StandardScaler(), clone(model)).fit(x, y)
        name = "predict_proba" if hasattr(model, "predict_proba") else "predict"
        expected = getattr(fitted, name)(x)
        np.testing.assert_allclose(getattr(scaled, name)(x), expected, rtol=1e-7, atol=1e-9, err_msg=str(model))


def test_pipeline_of_words_ends_in_sparse_counts():
    mails = ["do math today", "buy", "buy book", "today do math drugs", "buy drugs book today"]
    pipeline = make_pipeline(CountVectorizer(), db.NaiveBayes()).fit(mails, [0, 1, 0, 1, 1])
    assert pipeline.predict_proba(["buy book today"])[0, 1] == pytest.approx(1331 / 2331, rel=1e-12)


def test_sparse_counts_of_words_give_what_dense_counts_give():
    mails = ["do math today", "buy", "buy book", "today do math drugs", "buy drugs book today"]
    counts, labels = CountVectorizer(), [0, 1, 0, 1, 1]
    for model in (db.LogisticRegression(l2=1.0), db.SoftmaxRegression(l2=1.0), db.Halfspace()):
        pipeline = make_pipeline(counts, clone(model)).fit(mails, labels)
        dense = counts.transform(mails).toarray()
        expected = answer(model.fit(dense, labels), dense)
        np.testing.assert_allclose(answer(pipeline, mails), expected, rtol=1e-9, atol=1e-12)


def test_pipeline_may_hand_on_a_table():
    table = pd.DataFrame({"a": [1.0, 2.0, 8.0, 9.0], "b": ["u", "u", "v", "v"], "c": [0, 0, 0, 0]})
    chosen = ColumnTransformer([("kept", "passthrough", ["a", "b"])], verbose_feature_names_out=False)
    for model in (db.NaiveBayes(), db.LogisticRegression(l2=1.0)):
        pipeline = make_pipeline(chosen.set_output(transform="pandas"), model).fit(table, list("nnyy"))
        assert pipeline.predict(table).tolist() == list("nnyy")
        assert pipeline[-1].feature_names_in_.tolist() == ["a", "b"]


@pytest.mark.parametrize("model", CHECKED, ids=str)
def test_cross_validation_equals_fits_by_hand(model):
    x, y, _ = sample(model)
    odd = np.arange(len(y)) % 2 == 1
    folds = [(np.flatnonzero(odd), np.flatnonzero(~odd)), (np.flatnonzero(~odd), np.flatnonzero(odd))]
    by_hand = [clone(model).fit(x[a], y[a]) for a, _ in folds]
    scores = [fitted.score(x[b], y[b]) for fitted, (_, b) in zip(by_hand, folds, strict=True)]
    assert cross_val_score(model, x, y, cv=folds).tolist() == pytest.approx(scores)
    if is_classifier(model):
        right = [(fitted.predict(x[b]) == y[b]).mean() for fitted, (_, b) in zip(by_hand, folds, strict=True)]
        assert scores == pytest.approx(right)
    if hasattr(model, "predict_proba"):
        proba = cross_val_predict(model, x, y, cv=folds, method="predict_proba")
        np.testing.assert_allclose(proba[folds[0][1]], by_hand[0].predict_proba(x[folds[0][1]]), rtol=1e-12)


def test_grid_search_and_calibration_take_the_estimators(iris):
    x, y = iris
    for model in (db.NaiveBayes(), EVIDENCE):
        search = GridSearchCV(clone(model), {"class_prior": ["empirical", "laplace"]}, cv=2).fit(x, y)
        assert search.best_score_ > 0.9
        assert CalibratedClassifierCV(clone(model), cv=2).fit(x, y).score(x, y) > 0.9


@pytest.mark.parametrize("kind", [db.LogisticRegression, db.SoftmaxRegression])
def test_grid_search_over_penalties_finds_the_one_that_predicts_best(kind, iris):
    """On few noisy rows a strong penalty beats none, and none beats an absurd one."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 10))
    y = (x[:, 0] + rng.logistic(size=120) > 0).astype(int)
    search = GridSearchCV(kind(), {"l2": [1e-3, 10.0, 1e7]}, cv=4, scoring="neg_log_loss").fit(x, y)
    assert search.best_params_ == {"l2": 10.0}
    assert CalibratedClassifierCV(kind(l2=1.0), cv=3).fit(*iris).score(*iris) > 0.9


def test_one_against_rest_makes_many_classes_of_two(iris):
    assert OneVsRestClassifier(db.Halfspace()).fit(*iris).score(*iris) > 0.9
    assert OneVsRestClassifier(db.LogisticRegression(l2=1.0)).fit(*iris).score(*iris) > 0.9


def test_score_weighs_rows_and_takes_a_column_name(iris):
    x, y = iris
    table = pd.DataFrame(x, columns=list("abcd")).assign(kind=y.astype(str))
    for model in (db.NaiveBayes(), db.LogisticRegression(l2=1.0), db.GeneralizedLinearModel("multinomial", l2=1.0)):
        model.fit(table, "kind")
        right = model.predict(table) == table["kind"].to_numpy()
        assert 0 < right.mean() < 1
        assert model.score(table, "kind") == right.mean()
        assert model.score(table, table["kind"], sample_weight=right.astype(float)) == 1
