"""CalibratedClassifier: what it learns, adds, forgets and predicts, against brute force and on real tables."""

import os
import pickle
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

import deciban as db
from deciban.evaluation.cross_validation import stratified_folds
from tests.estimators.test_calibration_maps import shrunk_beta

X, Y = load_iris(return_X_y=True)
TWO = tuple(part[:300] for part in load_breast_cancer(return_X_y=True))
RNG = np.random.default_rng(0)
W = RNG.choice([0.5, 1.0, 2.5], 150)
METHODS = ["temperature", "isotonic"]


def out_of_fold(model, x, y, weights=None, folds=10, seed=0):
    """(n, K) log-probabilities of fresh fits on the other folds."""
    classes, codes = np.unique(y, return_inverse=True)
    fold = stratified_folds(codes.astype(np.int32), folds, seed)
    out = np.full((len(y), len(classes)), -np.inf)
    for f in range(folds):
        mine, others = fold == f, fold != f
        given = {} if weights is None else {"sample_weight": weights[others]}
        fresh = clone(model).fit(x[others], y[others], **given)
        out[np.ix_(mine, np.searchsorted(classes, fresh.classes_))] = fresh.predict_log_proba(x[mine])
    return out, codes


def same_evidence(a, b):
    if a.method == "isotonic":
        mine, theirs = a.evidence_.odds.to_arrays(), b.evidence_.odds.to_arrays()
        assert mine.keys() == theirs.keys()
        assert all(np.array_equal(mine[k], theirs[k]) for k in mine)
        a, b = a.evidence_.temperature, b.evidence_.temperature
    else:
        a, b = a.evidence_, b.evidence_
    return np.array_equal(a.slopes.words, b.slopes.words)


def assert_probabilities(p):
    assert np.isfinite(p).all()
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)


# The temperature
@pytest.mark.parametrize("weights", [None, W], ids=["plain", "weighted"])
@pytest.mark.parametrize(
    "model",
    [
        db.NaiveBayes(),
        db.GaussianDiscriminant("per-class"),
        db.GaussianDiscriminant("shared"),
        db.LogisticRegression(l2=1.0),
        GaussianNB(),
    ],
    ids=str,
)
def test_beta_is_that_of_what_folds_said(model, weights):
    fitted = db.CalibratedClassifier(model, cv=5, random_state=3).fit(X, Y, weights)
    expected = shrunk_beta(*out_of_fold(model, X, Y, weights, folds=5, seed=3), weights)
    assert fitted.beta_ == pytest.approx(expected, rel=2e-3)


def test_two_classes_and_thirty_columns_that_repeat_each_other():
    fitted = db.CalibratedClassifier().fit(*TWO)
    expected = shrunk_beta(*out_of_fold(db.NaiveBayes(), *TWO))
    assert fitted.beta_ == pytest.approx(expected, rel=2e-3)
    assert fitted.beta_ < 0.2


def test_a_temperature_keeps_predictions():
    for model in (db.NaiveBayes(), GaussianNB()):
        fitted = db.CalibratedClassifier(model).fit(*TWO)
        plain = clone(model).fit(*TWO)
        np.testing.assert_array_equal(fitted.predict(TWO[0]), plain.predict(TWO[0]))
        np.testing.assert_array_equal(fitted.predict_proba(TWO[0]).argmax(axis=1), plain.predict(TWO[0]))
        power = np.exp(fitted.beta_ * plain.predict_log_proba(TWO[0]))
        np.testing.assert_allclose(
            fitted.predict_proba(TWO[0]), power / power.sum(axis=1, keepdims=True), rtol=1e-9, atol=1e-300
        )


def test_explanations_sum_to_the_log_odds():
    fitted = db.CalibratedClassifier().fit(X, Y)
    explanation = fitted.explain(X)
    plain = db.NaiveBayes().fit(X, Y).explain(X)
    assert explanation.names == plain.names
    np.testing.assert_allclose(explanation.nats, fitted.beta_ * plain.nats, rtol=1e-12)
    log_p, total = fitted.predict_log_proba(X), explanation.nats.sum(axis=1)
    np.testing.assert_allclose(total - total[:, :1], log_p - log_p[:, :1], rtol=1e-9, atol=1e-9)


# Both methods
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("classes", [1, 2, 3])
def test_one_two_and_three_classes(method, classes):
    rows = classes > Y
    fitted = db.CalibratedClassifier(method=method).fit(X[rows], Y[rows])
    assert fitted.classes_.tolist() == list(range(classes))
    assert_probabilities(fitted.predict_proba(X))
    assert (fitted.predict_proba(X[rows]).argmax(axis=1) == fitted.predict(X[rows])).all()
    np.testing.assert_array_equal(np.exp(fitted.predict_log_proba(X)), fitted.predict_proba(X))
    assert fitted.score(X[rows], Y[rows]) >= 0.9
    str(fitted.summary())


@pytest.mark.parametrize("method", METHODS)
def test_merged_evidence_is_that_of_both(method):
    rows = RNG.permutation(150)
    parts = [db.CalibratedClassifier(method=method, cv=3).fit(X[r], Y[r]) for r in np.array_split(rows, 3)]
    a, b, c = parts
    left, right = (a + b) + c, c.merge(b.merge(a))
    assert same_evidence(left, right)
    np.testing.assert_allclose(left.predict_proba(X), right.predict_proba(X), rtol=1e-9, atol=1e-300)
    whole = db.NaiveBayes().fit(X, Y)
    np.testing.assert_allclose(left.model_.predict_log_proba(X), whole.predict_log_proba(X), rtol=1e-9)
    assert same_evidence(a, db.CalibratedClassifier(method=method, cv=3).fit(X[rows[:50]], Y[rows[:50]]))  # unchanged


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("first", "second"), [([0, 1], [1, 2]), ([0, 1], [2]), ([0], [1, 2]), ([0, 1, 2], [1])])
def test_merging_models_of_different_classes(method, first, second):
    a, b = (db.CalibratedClassifier(method=method).fit(X[np.isin(Y, c)], Y[np.isin(Y, c)]) for c in (first, second))
    merged = a + b
    assert merged.classes_.tolist() == [0, 1, 2]
    assert_probabilities(merged.predict_proba(X))
    assert same_evidence(merged, b + a)
    assert merged.score(X, Y) > 0.5


@pytest.mark.parametrize("method", METHODS)
def test_more_rows_are_predicted_before_they_are_learned(method):
    early, late = np.arange(150) % 2 == 0, np.arange(150) % 2 == 1
    fitted = db.CalibratedClassifier(method=method).fit(X[early], Y[early])
    before, said = fitted.evidence_, fitted.model_.predict_log_proba(X[late])
    fitted.partial_fit(X[late], Y[late])
    expected = before + type(before).of(said, Y[late].astype(np.int32), (0, 1, 2), None)
    np.testing.assert_array_equal(fitted.evidence_.corrected(said, (0, 1, 2)), expected.corrected(said, (0, 1, 2)))
    plain = db.NaiveBayes().fit(X[early], Y[early]).partial_fit(X[late], Y[late])
    np.testing.assert_array_equal(fitted.model_.predict_log_proba(X), plain.predict_log_proba(X))


@pytest.mark.parametrize("method", METHODS)
def test_rows_of_a_new_class_are_only_learned(method):
    fitted = db.CalibratedClassifier(method=method).fit(X[:100], Y[:100])
    before = fitted.predict_proba(X[:100])
    evidence = fitted.evidence_
    fitted.partial_fit(X[100:120], Y[100:120])
    assert fitted.evidence_ is evidence
    assert fitted.classes_.tolist() == [0, 1, 2]
    assert_probabilities(fitted.predict_proba(X))
    assert before.shape == (100, 2)
    fitted.partial_fit(X[120:], Y[120:])
    assert fitted.evidence_ is not evidence
    assert_probabilities(fitted.predict_proba(X))


@pytest.mark.parametrize("method", METHODS)
def test_what_is_forgotten_leaves_the_model_and_not_the_correction(method):
    kept, gone = np.arange(150) % 3 > 0, np.arange(150) % 3 == 0
    fitted = db.CalibratedClassifier(method=method).fit(X, Y, W)
    evidence = fitted.evidence_
    fitted.forget(X[gone], Y[gone], W[gone])
    plain = db.NaiveBayes().fit(X[kept], Y[kept], W[kept])
    np.testing.assert_array_equal(fitted.model_.predict_log_proba(X), plain.predict_log_proba(X))
    assert fitted.evidence_ is evidence
    assert_probabilities(fitted.predict_proba(X))


@pytest.mark.parametrize("method", METHODS)
def test_a_forgotten_class(method):
    fitted = db.CalibratedClassifier(method=method).fit(X, Y).forget(X[Y == 1], Y[Y == 1])
    assert fitted.classes_.tolist() == [0, 2]
    assert_probabilities(fitted.predict_proba(X))
    assert fitted.score(X[Y != 1], Y[Y != 1]) == 1.0


@pytest.mark.parametrize(
    ("method", "kind"), [("temperature", lambda t: t), ("isotonic", pl.from_pandas), ("isotonic", pa.Table.from_pandas)]
)
def test_tables_with_the_label_by_name(method, kind):
    names = np.array(["setosa", "versicolor", "virginica"])[Y]
    table = pd.DataFrame(X, columns=list("abcd")).assign(species=names)
    expected = db.CalibratedClassifier(method=method).fit(X, names, W)
    fitted = db.CalibratedClassifier(method=method).fit(kind(table), "species", W)
    assert same_evidence(fitted, expected)
    plain = kind(table.drop(columns="species"))
    np.testing.assert_array_equal(fitted.predict_proba(plain), expected.predict_proba(X))
    np.testing.assert_array_equal(fitted.predict(plain), expected.predict(X))
    assert fitted.score(kind(table), "species") == expected.score(X, names)
    assert fitted.feature_names_in_.tolist() == list("abcd")
    half = kind(table[:70])
    fitted.partial_fit(half, "species")
    fitted.forget(half, "species")
    np.testing.assert_allclose(fitted.model_.predict_proba(plain), expected.model_.predict_proba(X), rtol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_rows_of_weight_0_are_as_if_they_were_not_there(method):
    weights = np.where(np.arange(150) % 4 == 0, 0.0, W)
    kept = weights > 0
    fitted = db.CalibratedClassifier(method=method).fit(X, Y, weights)
    expected = db.CalibratedClassifier(method=method).fit(X[kept], Y[kept], weights[kept])
    assert same_evidence(fitted, expected)
    np.testing.assert_array_equal(fitted.predict_proba(X), expected.predict_proba(X))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("model", [None, db.GaussianDiscriminant("per-class"), GaussianNB()], ids=str)
def test_copies(method, model):
    fitted = db.CalibratedClassifier(model, method, cv=4, random_state=9).fit(X, Y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    fresh = clone(fitted)
    assert fresh.get_params(deep=False).keys() == fitted.get_params(deep=False).keys()
    assert (fresh.method, fresh.cv, fresh.random_state) == (method, 4, 9)
    assert not hasattr(fresh, "model_")
    assert same_evidence(fresh.fit(X, Y), fitted)
    if model is not None:
        assert not hasattr(model, "classes_")  # the model that was passed stays unfitted
        assert fitted.get_params()["model"] is model


@pytest.mark.parametrize("method", METHODS)
def test_models_of_other_libraries(method):
    fitted = db.CalibratedClassifier(GaussianNB(var_smoothing=0), method, cv=3).fit(*TWO)
    assert_probabilities(fitted.predict_proba(TWO[0]))
    own = db.CalibratedClassifier(db.NaiveBayes(), method, cv=3).fit(*TWO)
    np.testing.assert_allclose(fitted.predict_proba(TWO[0]), own.predict_proba(TWO[0]), atol=1e-6)
    assert db.cross_validate(fitted, *TWO, cv=3).log_loss < db.cross_validate(GaussianNB(), *TWO, cv=3).log_loss


def test_it_has_what_its_model_has():
    foreign = db.CalibratedClassifier(GaussianNB()).fit(X, Y)
    for name in ("forget", "merge", "explain", "summary"):
        assert not hasattr(foreign, name)
        assert hasattr(db.CalibratedClassifier(), name)
    assert hasattr(foreign, "partial_fit")
    foreign.partial_fit(X, Y)
    assert not hasattr(db.CalibratedClassifier(LogisticRegression()), "partial_fit")
    with pytest.raises(AttributeError):
        foreign.explain(X)


def test_a_foreign_model_learns_in_parts_what_classes_there_will_be():
    fitted = db.CalibratedClassifier(GaussianNB()).partial_fit(X[:100], Y[:100], classes=[0, 1, 2])
    fitted.partial_fit(X[100:], Y[100:])
    assert fitted.classes_.tolist() == [0, 1, 2]


def test_a_first_partial_fit_is_a_fit_and_a_new_fit_forgets_the_old_one():
    table = pd.DataFrame(X, columns=list("abcd"))
    fitted = db.CalibratedClassifier().partial_fit(table, Y)
    assert same_evidence(fitted, db.CalibratedClassifier().fit(X, Y))
    assert fitted.feature_names_in_.tolist() == list("abcd")
    assert not hasattr(fitted.fit(X, Y), "feature_names_in_")


@pytest.mark.parametrize("method", METHODS)
def test_many_sure_rows_and_one_that_is_not(method):
    """Probabilities of 0 and 1 for all rows seen; a row with nothing to go by gets finite ones."""
    x = pd.DataFrame({"colour": ["red", "blue"] * 300})
    fitted = db.CalibratedClassifier(db.NaiveBayes(smoothing=0), method).fit(x, ["a", "b"] * 300)
    assert_probabilities(fitted.predict_proba(pd.DataFrame({"colour": ["red", None, "blue"]})))


# Mistakes
def test_settings_that_cannot_be():
    for settings, message in [
        ({"method": "platt"}, "method must be 'temperature' or 'isotonic', not 'platt'"),
        ({"cv": 1}, "cv must be a whole number of 2 or more, not 1"),
        ({"cv": 2.5}, "cv must be a whole number"),
        ({"cv": [0, 1]}, "cv must be a whole number"),
        ({"model": db.Halfspace()}, "predict_proba"),
        ({"model": LinearSVC()}, "predict_proba"),
    ]:
        with pytest.raises(ValueError, match=message):
            db.CalibratedClassifier(**settings).fit(X[:100], Y[:100])


def test_rows_that_cannot_be():
    for x, y, w, message in [
        (X, None, None, "requires y to be passed"),
        (X, Y[:3], None, "inconsistent numbers of samples"),
        (X[:0], Y[:0], None, "0 sample"),
        (X[:1], Y[:1], None, "two rows at least"),
        (X, Y, -W, "not a weight"),
        (X, Y, np.eye(150)[0], "two rows at least"),
        (X, X[:, 0], None, "Unknown label type: continuous"),
        (np.where(X > 7, np.inf, X), Y, None, "column 0, row 102: inf is infinite"),
        (X, "species", None, "names a column, so X must be a table"),
    ]:
        for model in (db.CalibratedClassifier(), db.CalibratedClassifier(method="isotonic")):
            with pytest.raises(ValueError, match=message):
                model.fit(x, y, w)
            assert not hasattr(model, "model_")


def test_a_failed_step_leaves_all_as_it_was():
    fitted = db.CalibratedClassifier().fit(X, Y)
    evidence, before = fitted.evidence_, fitted.predict_proba(X)
    for step, args in (
        (fitted.partial_fit, (np.full((2, 4), np.inf), [0, 1])),
        (fitted.partial_fit, (X[:, :2], Y)),
        (fitted.forget, (X + 1, Y)),
        (fitted.forget, (X[:1], ["never"])),
    ):
        with pytest.raises(ValueError, match=r"\w"):
            step(*args)
        assert fitted.evidence_ is evidence
        np.testing.assert_array_equal(fitted.predict_proba(X), before)


def test_not_fitted():
    for act in ("predict", "predict_proba", "predict_log_proba", "explain"):
        with pytest.raises(ValueError, match="not fitted"):
            getattr(db.CalibratedClassifier(), act)(X)
    for act in (lambda m: m.beta_, lambda m: m.summary(), lambda m: m.forget(X, Y), lambda m: m.merge(m)):
        with pytest.raises(ValueError, match="not fitted"):
            act(db.CalibratedClassifier())


def test_what_cannot_be_merged():
    warm = db.CalibratedClassifier().fit(X, Y)
    for other in (
        db.CalibratedClassifier(method="isotonic").fit(X, Y),
        db.CalibratedClassifier(db.GaussianDiscriminant()).fit(X, Y),
        db.NaiveBayes().fit(X, Y),
    ):
        with pytest.raises(db.DecibanError, match="cannot be merged"):
            warm.merge(other)
    with pytest.raises(TypeError):
        warm + 3


@pytest.mark.parametrize(("before", "after"), [METHODS, METHODS[::-1]])
def test_a_method_changed_after_the_fit_is_refused(before, after):
    fitted = db.CalibratedClassifier(method=before).fit(X, Y).set_params(method=after)
    evidence, said = fitted.evidence_, fitted.model_.predict_log_proba(X)
    with pytest.raises(db.DecibanError, match=f"method was changed to '{after}' after the fit: fit again"):
        fitted.partial_fit(X, Y)
    assert fitted.evidence_ is evidence
    np.testing.assert_array_equal(fitted.model_.predict_log_proba(X), said)
    assert same_evidence(fitted.fit(X, Y), db.CalibratedClassifier(method=after).fit(X, Y))


def test_curves_have_no_temperature():
    fitted = db.CalibratedClassifier(method="isotonic").fit(X, Y)
    assert not hasattr(fitted, "beta_")
    assert not hasattr(fitted, "explain")
    with pytest.raises(AttributeError, match="an isotonic correction is a curve, not a temperature"):
        fitted.beta_  # noqa: B018
    assert hasattr(db.CalibratedClassifier().fit(X, Y), "beta_")


@pytest.mark.parametrize(("before", "after"), [METHODS, METHODS[::-1]])
def test_what_a_fitted_model_offers_does_not_follow_parameters(before, after):
    fitted = db.CalibratedClassifier(method=before).fit(X, Y)
    importances = fitted.feature_importances_
    fitted.set_params(method=after, model=db.Halfspace())  # which has no probabilities, and explains nothing
    assert hasattr(fitted, "explain") == (before == "temperature")
    np.testing.assert_array_equal(fitted.feature_importances_, importances)
    assert hasattr(fitted, "forget")


def test_labels_are_asked_for():
    fitted = db.CalibratedClassifier().fit(X, Y)
    with pytest.raises(db.DecibanError, match="the target y is None: pass the labels, or the name of a column of X"):
        fitted.partial_fit(X)


# Real tables
LABELS = {
    "breast_w": "Class",
    "car": "class",
    "credit_g": "class",
    "heart_c": "num",
    "hypothyroid": "Class",
    "iris": "class",
    "mushroom": "class",
    "page_blocks": "class",
    "segment": "class",
    "spambase": "class",
    "vote": "Class",
}
NAIVE = [(name, db.NaiveBayes()) for name in LABELS]
DISCRIMINANT = [(name, db.GaussianDiscriminant("shared", shrinkage="oas")) for name in ("breast_w", "iris")]


@pytest.mark.skipif("DECIBAN_DATA" not in os.environ, reason="real tables: set DECIBAN_DATA")
@pytest.mark.parametrize(
    ("name", "model"), [*NAIVE, *DISCRIMINANT], ids=lambda v: v if isinstance(v, str) else type(v).__name__
)
def test_calibration_does_no_harm(name, model):
    """On the folds of one seed. Of iris ten seeds give ratios from 0.89 to 1.06, and with 5 folds up to 1.14."""
    table = pd.read_csv(Path(os.environ["DECIBAN_DATA"]) / "tables" / f"{name}.csv")
    label = LABELS[name]
    table = table if len(table) <= 800 else table.sample(800, random_state=0)
    table = table[table.groupby(label)[label].transform("size") >= 5].reset_index(drop=True)
    folds = 10 if len(table) <= 200 else 4  # a few rows need them, and many rows take long
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", db.DecibanWarning)
        plain, *losses = (
            db.cross_validate(evaluation, table, label, folds).log_loss
            for evaluation in (model, *(db.CalibratedClassifier(model, method) for method in METHODS))
        )
    assert max(losses) <= 1.01 * plain, f"plain {plain}, {METHODS} {losses}"


def test_no_rows_change_nothing_and_models_are_summed():
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    model = db.CalibratedClassifier(db.NaiveBayes()).fit(X, y)
    before, evidence = model.model_.generative_, model.evidence_
    assert model.partial_fit(X[:0], y[:0]) is model
    assert model.forget(X[:0], y[:0]) is model
    assert model.model_.generative_ is before
    assert model.evidence_ is evidence
    with pytest.raises(ValueError, match="expecting 2 features"):
        model.partial_fit(X[:0, :1], y[:0])
    total = sum([model, model, model])
    np.testing.assert_array_equal(total.predict_proba(X), (model + model + model).predict_proba(X))
    alone = sum([model])
    alone.partial_fit(X, y)
    assert model.model_.generative_ is before
    with pytest.raises(TypeError):
        1 + model
