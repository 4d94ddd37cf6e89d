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


@pytest.mark.parametrize("keyword", ["alpha", "C", "l2", "lambda_", "penalty", "reg_lambda", "smoothing"])
def test_the_strengths_of_an_evidence_classifier_need_not_be_set(keyword):
    words = rf"^EvidenceClassifier\(\) got .*'{keyword}': leave it out, since held-out rows select the strength"
    with pytest.raises(TypeError, match=words):
        db.EvidenceClassifier(**{keyword: 1})


def test_variances_have_a_floor_of_their_own():
    with pytest.raises(TypeError, match=r"^NaiveBayes\(\) got .*: leave it out, since a variance is never below 1e-9"):
        db.NaiveBayes(var_smoothing=1)


def test_a_threshold_is_advised_before_weights_of_classes():
    with pytest.raises(TypeError, match=r"choose a threshold for the rare class.*, or pass sample_weight to fit"):
        db.EvidenceClassifier(class_weight="balanced")


PUBLIC = [getattr(db, name) for name in db.__all__]
ESTIMATORS = [each for each in PUBLIC if isinstance(each, type) and hasattr(each, "get_params")]
ESTIMATORS.remove(db.Halfspace)  # "Halfspace() takes no arguments"


@pytest.mark.parametrize("call", [*ESTIMATORS, db.cross_validate, db.evaluate, db.learning_curve])
def test_other_unknown_keywords_are_answered_with_the_known_ones(call):
    name, known = call.__name__, list(inspect.signature(call).parameters)
    with pytest.raises(TypeError) as caught:
        call(**{"zzzzzzzz": 1})
    assert str(caught.value) == f"{name}() got an unexpected keyword argument 'zzzzzzzz': it takes {', '.join(known)}"
    with pytest.raises(TypeError) as caught:
        call(**{f"{known[0]}_": 1})
    assert str(caught.value).startswith(f"{name}() got an unexpected keyword argument '{known[0]}_' (did you mean ")


def test_estimators_are_tested_and_one_takes_nothing():
    assert {db.EvidenceClassifier, db.NaiveBayes, db.CalibratedClassifier} <= {*ESTIMATORS}
    with pytest.raises(TypeError, match=r"^Halfspace\(\) takes no arguments"):
        db.Halfspace(zzzzzzzz=1)


def test_signatures_and_parameters_are_those_of_the_class():
    assert {*inspect.signature(db.NaiveBayes).parameters} == {*db.NaiveBayes().get_params(deep=False)}
    assert clone(db.LogisticRegression(l2=2.0)).get_params()["l2"] == 2.0
