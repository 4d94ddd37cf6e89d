"""Keywords of other libraries: the TypeError says what they are called here."""

import inspect

import pytest
from sklearn.base import clone

import deciban as db


@pytest.mark.parametrize(
    ("call", "keyword", "hint"),
    [
        (db.NaiveBayes, "alpha", "smoothing=alpha"),
        (db.NaiveBayes, "priors", "class_prior=priors"),
        (db.GaussianDiscriminant, "reg_param", "shrinkage=reg_param"),
        (db.LogisticRegression, "C", "l2=1/C"),
        (db.SoftmaxRegression, "alpha", "l2=alpha"),
        (db.GeneralizedLinearModel, "distribution", "family=distribution"),
        (db.EvidenceClassifier, "n_estimators", "trees=n_estimators"),
        (db.EvidenceClassifier, "seed", "random_state=seed"),
        (db.CalibratedClassifier, "estimator", "model=estimator"),
        (db.cross_validate, "folds", "cv=folds"),
        (db.learning_curve, "seed", "random_state=seed"),
        (db.evaluate, "weights", "sample_weight=weights"),
    ],
)
def test_a_keyword_of_another_library_gets_a_hint(call, keyword, hint):
    with pytest.raises(TypeError, match=rf"{call.__name__}\(\) got an unexpected .*'{keyword}': use {hint}"):
        call(**{keyword: 1})


def test_an_unknown_keyword_without_a_hint_is_a_plain_type_error():
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'colour'$"):
        db.NaiveBayes(colour=1)


def test_signatures_and_parameters_are_those_of_the_class():
    assert {*inspect.signature(db.NaiveBayes).parameters} == {*db.NaiveBayes().get_params(deep=False)}
    assert clone(db.LogisticRegression(l2=2.0)).get_params()["l2"] == 2.0
