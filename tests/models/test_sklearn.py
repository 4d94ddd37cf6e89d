"""The estimators are scikit-learn estimators: its own checks, and the tools that people put around them."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_dataframe_column_names_consistency, parametrize_with_checks

import deciban as db

MODELS = [
    db.NaiveBayes(),
    db.GaussianDiscriminant("shared"),
    db.GaussianDiscriminant("per-class"),
    db.GaussianDiscriminant("diagonal"),
]


# Every check passes, so there is no list of expected failures. (Small random data make a covariance singular here and
# there, which the model says.)
@pytest.mark.filterwarnings("ignore:singular covariance:deciban.errors.DecibanWarning")
@parametrize_with_checks(MODELS)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.fixture(params=MODELS, ids=str)
def model(request):
    return clone(request.param)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def test_columns_are_matched_by_name_where_scikit_learn_wants_an_error(model):
    """The one check outside check_estimator that fails, by design: another order of names is no mistake."""
    with pytest.raises(AssertionError, match="did not raise"):
        check_dataframe_column_names_consistency(type(model).__name__, model)


def test_an_array_for_a_model_of_a_table_is_taken_by_position_with_a_warning(model, iris):
    x, y = iris
    table = pd.DataFrame(x, columns=list("abcd"))
    model.fit(table, y)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        posterior = model.predict_proba(x)
    np.testing.assert_array_equal(posterior, model.predict_proba(table))


def test_clone_and_get_params_keep_the_settings_and_not_the_fit(iris):
    families = {0: db.families.Binned(count=3), (1, 2): db.families.MultivariateGaussian()}
    model = db.NaiveBayes(families, smoothing=0.5, class_prior="laplace", missing="category", unseen="reserve")
    copy = clone(model.fit(*iris))
    assert copy.get_params() == model.get_params()
    assert copy.get_params()["families"] == families
    assert not hasattr(copy, "classes_")


def test_classifier_is_recognised(model):
    assert is_classifier(model)
    assert type(model).__name__ in repr(model)


def test_pickle_keeps_every_bit_and_goes_on_learning(model, iris):
    x, y = iris
    model.fit(x[::2], y[::2]).predict(x)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict_proba(x), model.predict_proba(x))
    np.testing.assert_array_equal(
        copy.partial_fit(x[1::2], y[1::2]).predict_proba(x), model.partial_fit(x[1::2], y[1::2]).predict_proba(x)
    )


def test_pipeline_of_scaling_does_not_change_what_a_normal_density_says(model, iris):
    x, y = iris
    scaled = make_pipeline(StandardScaler(), clone(model)).fit(x, y)
    np.testing.assert_allclose(scaled.predict_proba(x), model.fit(x, y).predict_proba(x), atol=1e-9)


def test_pipeline_of_words_ends_in_sparse_counts():
    mails = ["do math today", "buy", "buy book", "today do math drugs", "buy drugs book today"]
    pipeline = make_pipeline(CountVectorizer(), db.NaiveBayes()).fit(mails, [0, 1, 0, 1, 1])
    assert pipeline.predict_proba(["buy book today"])[0, 1] == pytest.approx(1331 / 2331, rel=1e-12)


def test_pipeline_may_hand_on_a_table():
    table = pd.DataFrame({"a": [1.0, 2.0, 8.0, 9.0], "b": ["u", "u", "v", "v"], "c": [0, 0, 0, 0]})
    chosen = ColumnTransformer([("kept", "passthrough", ["a", "b"])], verbose_feature_names_out=False)
    pipeline = make_pipeline(chosen.set_output(transform="pandas"), db.NaiveBayes()).fit(table, list("nnyy"))
    assert pipeline.predict(table).tolist() == list("nnyy")
    assert pipeline[-1].feature_names_in_.tolist() == ["a", "b"]


def test_cross_validation_equals_fits_by_hand(model, iris):
    x, y = iris
    folds = [(np.flatnonzero(np.arange(150) % 5 != k), np.flatnonzero(np.arange(150) % 5 == k)) for k in range(5)]
    scores = cross_val_score(model, x, y, cv=folds)
    by_hand = [(clone(model).fit(x[a], y[a]).predict(x[b]) == y[b]).mean() for a, b in folds]
    assert scores.tolist() == pytest.approx(by_hand)
    assert cross_val_predict(model, x, y, cv=folds, method="predict_proba").shape == (150, 3)


def test_grid_search_and_calibration_take_the_estimators(model, iris):
    x, y = iris
    search = GridSearchCV(model, {"class_prior": ["empirical", "laplace"]}, cv=3).fit(x, y)
    assert search.best_score_ > 0.9
    assert CalibratedClassifierCV(model, cv=3).fit(x, y).score(x, y) > 0.9


def test_score_weighs_rows_and_takes_a_column_name(iris):
    x, y = iris
    table = pd.DataFrame(x, columns=list("abcd")).assign(kind=y.astype(str))
    model = db.NaiveBayes().fit(table, "kind")
    right = model.predict(table) == table["kind"].to_numpy()
    assert model.score(table, "kind") == right.mean()
    assert model.score(table, table["kind"], sample_weight=right.astype(float)) == 1
