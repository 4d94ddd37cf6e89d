"""The estimators are scikit-learn estimators: its own checks, and the tools that people put around them."""

import pickle

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
from sklearn.utils.estimator_checks import check_dataframe_column_names_consistency, parametrize_with_checks

import deciban as db

GENERATIVE = [
    db.NaiveBayes(),
    db.GaussianDiscriminant("shared"),
    db.GaussianDiscriminant("per-class"),
    db.GaussianDiscriminant("diagonal"),
]
EVIDENCE = db.EvidenceClassifier(trees=8)
UNPENALISED = [  # the units of the columns do not matter to them
    db.LogisticRegression(),
    db.LogisticRegression(firth=True),
    db.SoftmaxRegression(),
    *(
        db.GeneralizedLinearModel(family)
        for family in ("gaussian", "bernoulli", "multinomial", "poisson", "exponential")
    ),
]
MODELS = [
    *GENERATIVE,
    EVIDENCE,
    *UNPENALISED,
    db.LogisticRegression(l2=1.0),
    db.LogisticRegression(solver="gradient", l2=1.0),
    db.SoftmaxRegression(l2=1.0, init="generative"),
    db.Halfspace(),
    db.CalibratedClassifier(cv=3),
    db.CalibratedClassifier(db.LogisticRegression(l2=1.0), "isotonic", cv=3),
]
WITH_PROBABILITIES = [model for model in MODELS if hasattr(model, "predict_proba")]


def expected_to_fail(model):
    """Of rows that are dealt to folds, one of weight 2 is not two: its copy may be in another fold, and known there."""
    kinds = ("dense", "sparse") if isinstance(model, db.CalibratedClassifier) else ()
    return {f"check_sample_weight_equivalence_on_{kind}_data": expected_to_fail.__doc__ for kind in kinds}


# All other checks pass. (Small random data make a covariance singular, classes separable or columns collinear here and
# there, which the model says.)
@pytest.mark.filterwarnings("ignore::deciban.errors.DecibanWarning")
@parametrize_with_checks(MODELS, expected_failed_checks=expected_to_fail)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.fixture
def model(request):
    return clone(request.param)


# so that a test gets a copy of each of its models
each_model, each_generative = (
    pytest.mark.parametrize("model", models, ids=str, indirect=True) for models in (MODELS, [*GENERATIVE, EVIDENCE])
)
each_unit_free = pytest.mark.parametrize("model", [*GENERATIVE, *UNPENALISED], ids=str, indirect=True)
each_probabilistic = pytest.mark.parametrize("model", WITH_PROBABILITIES, ids=str, indirect=True)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def two_classes(model):
    return isinstance(model, db.Halfspace) or getattr(model, "family", "") == "bernoulli"


@pytest.fixture
def sample(model):
    """Rows that the model can learn from, whose classes no hyperplane separates."""
    if is_regressor(model):
        x, y = load_diabetes(return_X_y=True)
        return x, y if model.family == "gaussian" else y // 10 + 1
    x, y = load_wine(return_X_y=True)
    rows = y < 2 if two_classes(model) else y < 3
    return x[rows, :3], y[rows]


def answer(model, x):
    """The most that it says of a row."""
    for name in ("predict_proba", "decision_function", "predict_mean"):
        if hasattr(model, name):
            return getattr(model, name)(x)
    raise AssertionError(model)


@each_model
def test_columns_are_matched_by_name_where_scikit_learn_wants_an_error(model):
    """The one check outside check_estimator that fails, by design: another order of names is no mistake."""
    with pytest.raises(AssertionError, match="did not raise"):
        check_dataframe_column_names_consistency(type(model).__name__, model)


@each_model
def test_an_array_for_a_model_of_a_table_is_taken_by_position_with_a_warning(model, sample):
    x, y = sample
    table = pd.DataFrame(x).add_prefix("x")
    model.fit(table, y)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        found = answer(model, x)
    np.testing.assert_array_equal(found, answer(model, table))
    np.testing.assert_array_equal(found, answer(model, table[table.columns[::-1]]))


def test_clone_and_get_params_keep_the_settings_and_not_the_fit(iris):
    families = {0: db.families.Binned(count=3), (1, 2): db.families.MultivariateGaussian()}
    model = db.NaiveBayes(families, smoothing=0.5, class_prior="laplace", missing="category", unseen="reserve")
    copy = clone(model.fit(*iris))
    assert copy.get_params() == model.get_params()
    assert copy.get_params()["families"] == families
    assert not hasattr(copy, "classes_")


@each_model
def test_a_clone_has_the_settings_and_not_the_fit(model, sample):
    copy = clone(model.fit(*sample))
    assert repr(copy) == repr(model)
    assert not [name for name in vars(copy) if name.endswith("_") and not name.startswith("_")]
    np.testing.assert_array_equal(answer(copy.fit(*sample), sample[0]), answer(model, sample[0]))


@each_model
def test_classifiers_and_regressors_are_recognised(model):
    numbers = getattr(model, "family", "") in ("gaussian", "poisson", "exponential")
    assert is_classifier(model) != is_regressor(model)
    assert is_regressor(model) == numbers
    assert type(model).__name__ in repr(model)


@each_model
def test_pickle_keeps_every_bit(model, sample):
    x, y = sample
    model.fit(x, y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(answer(copy, x), answer(model, x))
    assert repr(copy) == repr(model)


@each_generative
def test_pickle_goes_on_learning(model, iris):
    x, y = iris
    model.fit(x[::2], y[::2]).predict(x)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(
        copy.partial_fit(x[1::2], y[1::2]).predict_proba(x), model.partial_fit(x[1::2], y[1::2]).predict_proba(x)
    )


@each_unit_free
def test_pipeline_of_scaling_does_not_change_what_the_model_says(model, sample):
    x, y = sample
    scaled = make_pipeline(StandardScaler(), clone(model)).fit(x, y)
    name = "predict_proba" if hasattr(model, "predict_proba") else "predict"
    found, expected = getattr(scaled, name)(x), getattr(model.fit(x, y), name)(x)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


def test_pipeline_of_words_ends_in_sparse_counts():
    mails = ["do math today", "buy", "buy book", "today do math drugs", "buy drugs book today"]
    pipeline = make_pipeline(CountVectorizer(), db.NaiveBayes()).fit(mails, [0, 1, 0, 1, 1])
    assert pipeline.predict_proba(["buy book today"])[0, 1] == pytest.approx(1331 / 2331, rel=1e-12)


@pytest.mark.parametrize(
    "model", [db.LogisticRegression(l2=1.0), db.SoftmaxRegression(l2=1.0), db.Halfspace()], ids=str, indirect=True
)
def test_sparse_counts_of_words_give_what_the_same_counts_give_in_full(model):
    mails = ["do math today", "buy", "buy book", "today do math drugs", "buy drugs book today"]
    counts, labels = CountVectorizer(), [0, 1, 0, 1, 1]
    pipeline = make_pipeline(counts, clone(model)).fit(mails, labels)
    full = model.fit(counts.transform(mails).toarray(), labels)
    expected = answer(full, counts.transform(mails).toarray())
    np.testing.assert_allclose(answer(pipeline, mails), expected, rtol=1e-9, atol=1e-12)


def test_pipeline_may_hand_on_a_table():
    table = pd.DataFrame({"a": [1.0, 2.0, 8.0, 9.0], "b": ["u", "u", "v", "v"], "c": [0, 0, 0, 0]})
    chosen = ColumnTransformer([("kept", "passthrough", ["a", "b"])], verbose_feature_names_out=False)
    for model in (db.NaiveBayes(), db.LogisticRegression(l2=1.0)):
        pipeline = make_pipeline(chosen.set_output(transform="pandas"), model).fit(table, list("nnyy"))
        assert pipeline.predict(table).tolist() == list("nnyy")
        assert pipeline[-1].feature_names_in_.tolist() == ["a", "b"]


@each_model
def test_cross_validation_equals_fits_by_hand(model, sample):
    x, y = sample
    n = len(y)
    folds = [(np.flatnonzero(np.arange(n) % 5 != k), np.flatnonzero(np.arange(n) % 5 == k)) for k in range(5)]
    scores = cross_val_score(model, x, y, cv=folds)
    by_hand = [clone(model).fit(x[a], y[a]).score(x[b], y[b]) for a, b in folds]
    assert scores.tolist() == pytest.approx(by_hand)
    if is_classifier(model):
        rightly = [(clone(model).fit(x[a], y[a]).predict(x[b]) == y[b]).mean() for a, b in folds]
        assert by_hand == pytest.approx(rightly)
    if hasattr(model, "predict_proba"):
        assert cross_val_predict(model, x, y, cv=folds, method="predict_proba").shape == (n, len(np.unique(y)))


@each_generative
def test_grid_search_and_calibration_take_the_estimators(model, iris):
    x, y = iris
    search = GridSearchCV(model, {"class_prior": ["empirical", "laplace"]}, cv=3).fit(x, y)
    assert search.best_score_ > 0.9
    assert CalibratedClassifierCV(model, cv=3).fit(x, y).score(x, y) > 0.9


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
