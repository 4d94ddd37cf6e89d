"""EvidenceClassifier: a sum of decibans that is calibrated, whatever repeats, is noise, is missing or comes late."""

import copy
import os
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import NotFittedError

import deciban as db
import deciban.data.frames
from deciban.contributions import DECIBANS
from deciban.estimators.importances import ROWS
from deciban.evidence.folds import MOST_ROWS
from tests.data.files.written import FILES, STREAMS
from tests.evidence.reference import mixed as all_kinds
from tests.laws import flattened

N = 160
REAL = pytest.mark.skipif("DECIBAN_DATA" not in os.environ, reason="real tables: set DECIBAN_DATA")


def model(**settings):
    """With fewer trees and pairs than by default, which takes less time."""
    return db.EvidenceClassifier(**({"pairs": 2, "trees": 4} | settings))


def mixed(n, seed=0, classes=3):
    """Without one of two columns of numbers, which takes less time."""
    table, y = all_kinds(n, seed, classes)
    return table.drop(columns="width"), y


@pytest.fixture(scope="module")
def rows():
    return mixed(N)


@pytest.fixture(scope="module")
def fitted(rows):
    """Not to be changed."""
    return model().fit(*rows)


@pytest.fixture
def learned(fitted):
    return copy.deepcopy(fitted)


def log_loss(estimator, X, y):
    place = {label: k for k, label in enumerate(estimator.classes_.tolist())}
    proba = estimator.predict_proba(X)
    return -np.log(proba[np.arange(len(y)), [place[label] for label in np.asarray(y).tolist()]]).mean()


def same_predictions(a, b, X, atol=1e-12):
    assert a.classes_.tolist() == b.classes_.tolist()
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), rtol=0, atol=atol)


def own_weight(estimator, name):
    """The largest weight of a piece that is of this column alone."""
    pieces = zip(estimator.weights_.columns, estimator.weights_.values, strict=True)
    return max((float(values.max()) for columns, values in pieces if columns == (name,)), default=0.0)


# What it says
def test_predictions_agree_with_each_other(fitted, rows):
    X, _ = rows
    logs = fitted.predict_log_proba(X)
    np.testing.assert_allclose(fitted.predict_proba(X), np.exp(logs), rtol=1e-12)
    np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(softmax(fitted.predict_joint_log_proba(X), axis=1), np.exp(logs), rtol=1e-10)
    np.testing.assert_array_equal(fitted.predict(X), fitted.classes_[logs.argmax(axis=1)])


def test_explanations_are_sums_of_decibans_that_are_the_log_odds(fitted, rows):
    X, _ = rows
    explanation = fitted.explain(X)
    logs = fitted.predict_log_proba(X)
    for target, against in ((0, 1), (2, 0)):
        odds = (logs[:, target] - logs[:, against]) * DECIBANS
        listed = explanation.decibans(fitted.classes_[target], fitted.classes_[against])
        np.testing.assert_allclose(listed.sum(axis=1), odds, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(softmax(explanation.joint, axis=1), np.exp(logs), atol=1e-10)


def test_explanations_are_by_columns_or_by_pairs(fitted, rows):
    X, _ = rows
    by_column, by_pair = fitted.explain(X[:30]), fitted.explain(X[:30], by="pair")
    assert by_column.names == ("prior", *X.columns, "intercept", f"limit of {N} rows")
    pairs = by_pair.names[1 + len(X.columns) : -2]
    assert "left + right" in pairs
    assert all({*name.split(" + ")} < {*X.columns} for name in pairs)
    np.testing.assert_allclose(by_pair.joint, by_column.joint, rtol=1e-9, atol=1e-9)
    left, right = X["left"].iloc[0], X["right"].iloc[0]
    assert f"left = {left}, right = {right}" in dict(by_pair.lines(0, most=99))
    with pytest.raises(ValueError, match="by must be 'column' or 'pair', not 'row'"):
        fitted.explain(X, by="row")


def test_the_prior_is_that_of_the_classes_and_the_bias_is_the_intercept(fitted, rows):
    X, y = rows
    explanation = fitted.explain(X[:4])
    share = np.unique(y, return_counts=True)[1] / len(y)
    np.testing.assert_allclose(explanation.nats[:, 0], np.tile(np.log(share), (4, 1)), rtol=1e-12)
    np.testing.assert_array_equal(explanation.nats[:, -2], np.tile(fitted.weights_.bias, (4, 1)))
    assert [label for label, _ in explanation.lines()][-3:] == ["intercept", f"limit of {N} rows", "log-odds"]


def test_summary_ranks_columns_and_shows_weights(fitted, rows):
    summary = fitted.summary()
    prior, columns, weights = summary.tables
    assert [row[0] for row in prior.rows] == ["egg", "ham", "spam"]
    listed = [row[1] for row in columns.rows]
    assert listed == sorted(listed, reverse=True)
    assert columns.rows[0][0] in ("code", "left + right")
    assert all(max(row[2:]) > 0 for row in weights.rows)
    assert {"pair", "value"} <= {row[1] for row in weights.rows}
    assert f"EvidenceClassifier: {N} rows, 3 classes, 6 columns" in str(summary)
    assert fitted.n_parameters_ > 100


def test_parameters_are_those_of_blocks_that_count(rows):
    X, y = rows
    assert model().fit(X, ["same"] * N).n_parameters_ == 0
    estimator = model(trees=0, pairs=0).fit(X[["code"]], y)
    used = np.count_nonzero(estimator.weights_.values)
    assert {"value"} <= set(estimator.weights_.kinds) <= {"value", "linear", "quadratic"}
    assert estimator.n_parameters_ >= (3 - 1) * 3 + used + 2 * 2  # a table of three values, weights, bias and prior


def test_summary_lists_columns_without_evidence(rows):
    X, y = rows
    estimator = model(trees=0).fit(X.assign(constant=1.0, nothing=None, identifier=[f"id {i}" for i in range(N)]), y)
    assert estimator.summary().notes == (
        "no evidence from 'constant': constant",
        "no evidence from 'nothing': missing in every row",
        "no evidence from 'identifier': different in every row (an identifier)",
    )


def test_it_predicts_better_than_naive_bayes_where_columns_interact(fitted, rows):
    T, t = mixed(1000, seed=1)
    X, y = rows
    plain = db.NaiveBayes(missing="category").fit(X, y)
    assert log_loss(fitted, T, t) < log_loss(plain, T, t) - 0.1


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_held_out_rows_are_predicted_well(load):
    X, y = load(return_X_y=True)
    held_out = np.arange(len(y)) % 3 == 0
    fitted = model().fit(X[~held_out, :10], y[~held_out])
    assert log_loss(fitted, X[held_out, :10], y[held_out]) < 0.25
    assert fitted.score(X[held_out, :10], y[held_out]) > 0.92


def test_probabilities_are_calibrated():
    """Of rows with a probability of about p, about p are of that class; plain naive Bayes is overconfident by far."""
    X, y = mixed(800, classes=2)
    T, t = mixed(4000, seed=1, classes=2)
    for copies in range(4):
        X, T = (table.assign(**{f"height {copies}": table["height"]}) for table in (X, T))
    estimator, plain = model().fit(X, y), db.NaiveBayes().fit(X, y)

    def worst(m):
        p = m.predict_proba(T)[:, 1]
        tenths = np.minimum((p * 10).astype(int), 9)
        return max(
            abs(p[tenths == k].mean() - (t[tenths == k] == m.classes_[1]).mean())
            for k in range(10)
            if (tenths == k).sum() > 100
        )

    assert worst(estimator) < 0.1
    assert worst(plain) > 0.15


def test_a_class_prior_acts_without_data(learned, rows):
    X, _ = rows
    before, share = learned.predict_log_proba(X), learned.weights_.prior_share
    empirical = learned.class_count_ / N
    unbounded = np.log((np.exp(before) - share * empirical) / (1 - share))
    for prior in ([0.5, 0.25, 0.25], {"egg": 0.5, "ham": 0.25, "spam": 0.25}, np.array([0.5, 0.25, 0.25])):
        learned.set_params(class_prior=prior)
        z = unbounded + np.log([0.5, 0.25, 0.25]) - np.log(empirical)
        expected = (1 - share) * softmax(z, axis=1) + share * np.array([0.5, 0.25, 0.25])
        np.testing.assert_allclose(learned.predict_proba(X), expected, rtol=1e-7)
    learned.set_params(class_prior="empirical")
    np.testing.assert_array_equal(learned.predict_log_proba(X), before)


# Settings
def test_pairs_and_trees_are_as_many_as_asked_for(rows):
    X, y = rows
    for pairs, trees in ((0, 3), (2, 0)):
        kinds = db.EvidenceClassifier(pairs, trees).fit(X, y).generative_.plans
        families = {type(plan.family).__name__: plan.family for plan in kinds}
        assert len(families["Pairs"].pairs) == pairs if pairs else "Pairs" not in families
        assert len(families["Forest"].starts) == trees + 1 if trees else "Forest" not in families


def test_settings_are_checked(rows):
    for settings, words in [
        ({"pairs": "x"}, "pairs must be 'auto'.*'x'"),
        ({"pairs": -1}, "pairs must be 'auto'.*-1"),
        ({"pairs": 1.5}, "pairs must be 'auto'.*1.5"),
        ({"pairs": None}, "pairs must be 'auto'.*None"),
        ({"max_weight_rows": 1}, "max_weight_rows must be .*2 or more.*1"),
        ({"max_weight_rows": None}, "max_weight_rows must be .*2 or more.*None"),
        ({"trees": -1}, "trees must be .*0 or more.*-1"),
        ({"trees": 2.5}, "trees must be .*0 or more.*2.5"),
        ({"random_state": -1}, "random_state must be .*-1"),
        ({"random_state": 1 << 63}, "random_state must be"),
    ]:
        with pytest.raises(ValueError, match=words):
            db.EvidenceClassifier(**settings).fit(*rows)


def test_it_must_be_fitted(fitted):
    assert not hasattr(fitted, "to_linear")
    for ask in (
        lambda m: m.predict([[1.0]]),
        lambda m: m.refit_weights([[1.0]], [0]),
        lambda m: m.empty_copy(),
        lambda m: m.weights_,
    ):
        with pytest.raises(NotFittedError):
            ask(db.EvidenceClassifier())


# What must not matter
def test_two_fits_of_the_same_rows_are_the_same_bits(fitted, rows):
    X, y = rows
    again = model().fit(X, y)
    assert again.predict_proba(X).tobytes() == fitted.predict_proba(X).tobytes()
    assert again.weights_.values.tobytes() == fitted.weights_.values.tobytes()
    assert str(again.summary()) == str(fitted.summary())


@pytest.mark.parametrize(("n", "classes"), [(60, 3), (1200, 2)])
def test_the_order_of_rows_does_not_matter(n, classes):
    X, y = mixed(n, classes=classes)
    expected = model().fit(X, y)
    order = np.random.default_rng(n).permutation(n)
    shuffled = model().fit(X.iloc[order], y[order])
    same_predictions(shuffled, expected, X, 1e-8)
    np.testing.assert_allclose(shuffled.feature_importances_, expected.feature_importances_, atol=1e-6)


def test_the_order_of_rows_that_repeat_does_not_matter():
    """More rows than the penalty is chosen by, of few different kinds."""
    rng = np.random.default_rng(0)
    n = MOST_ROWS + 200
    X = pd.DataFrame(rng.choice(list("pqr"), (n, 4)), columns=list("abcd"))
    y = (X["a"] == "p").to_numpy() * 1 + (X["b"] == "q") + (rng.random(n) < 0.3)
    order = rng.permutation(n)
    same_predictions(model().fit(X.iloc[order], y[order]), model().fit(X, y), X, 1e-8)


@pytest.mark.parametrize("n", [60, 800])
def test_weights_equal_repeated_rows(n):
    X, y = mixed(n, classes=2 if n > 100 else 3)
    times = np.random.default_rng(2).integers(0, 4, n)
    again = np.repeat(np.arange(n), times)
    weighted, repeated = model().fit(X, y, sample_weight=times), model().fit(X.iloc[again], y[again])
    same_predictions(weighted, repeated, X, 1e-9)
    if len(again) <= ROWS:
        np.testing.assert_allclose(weighted.feature_importances_, repeated.feature_importances_, atol=1e-6)
    assert weighted.leave_one_out(X, y, times).log_loss == pytest.approx(
        repeated.leave_one_out(X.iloc[again], y[again]).log_loss, abs=1e-9
    )


def test_rows_of_weight_zero_are_absent(fitted, rows):
    """They bring no class, no value, no number and no cut."""
    X, y = rows
    more, labels = mixed(40, seed=5)
    more = more.assign(height=1e6, code="strange")
    labels = np.where(np.arange(40) % 2, labels, "another")
    weights = np.repeat([1.0, 0.0], [N, 40])
    both = model().fit(pd.concat([X, more], ignore_index=True), np.concatenate([y, labels]), sample_weight=weights)
    same_predictions(both, fitted, X, 1e-9)
    assert both.classes_.tolist() == ["egg", "ham", "spam"]
    with pytest.warns(db.DecibanWarning, match="sums to less than a tenth of them: multiply it"):
        model(trees=0, pairs=0).fit(X[["code"]], y, sample_weight=np.full(N, 0.05))


def test_columns_may_stand_in_another_order(learned, rows):
    X, y = rows
    turned = X[X.columns[::-1]].assign(more=np.arange(N))
    np.testing.assert_array_equal(learned.predict_proba(turned), learned.predict_proba(X))
    np.testing.assert_array_equal(learned.explain(turned).nats, learned.explain(X).nats)
    assert learned.leave_one_out(turned, y).log_loss == learned.leave_one_out(X, y).log_loss
    same_predictions(copy.deepcopy(learned).refit_weights(turned, y), copy.deepcopy(learned).refit_weights(X, y), X)
    again = copy.deepcopy(learned).partial_fit(turned, y)
    same_predictions(again, copy.deepcopy(learned).partial_fit(X, y), X)
    same_predictions(again.forget(turned, y), learned, X)


def test_batches_do_not_matter(fitted, rows, monkeypatch):
    X, y = rows
    expected = fitted.predict_proba(X)
    monkeypatch.setattr(deciban.data.frames, "CELLS_PER_BATCH", 7 * 20)
    np.testing.assert_allclose(fitted.predict_proba(X), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(model().fit(X, y).predict_proba(X), expected, rtol=0, atol=1e-8)


def test_the_form_of_an_array_does_not_matter():
    rng = np.random.default_rng(3)
    x = rng.integers(0, 9, (80, 3)).astype(float)
    y = (x[:, 0] + rng.normal(0, 2, 80) > 4).astype(int)
    expected = model().fit(x, y).predict_proba(x)
    forms = [x.astype(kind) for kind in (np.float32, np.int64, np.int8, object)]
    for form in (*forms, x.tolist(), pd.DataFrame(x), np.asfortranarray(x)):
        np.testing.assert_allclose(model().fit(form, y).predict_proba(form), expected, rtol=0, atol=1e-10)


# What repeats, and what is noise
def repeated(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = pd.DataFrame(rng.normal(y[:, np.newaxis] * [1.0, 0.5, 0.3, 0.0], 1.0), columns=list("abcd"))
    return X.assign(k=np.where(rng.random(n) < 0.6, y, rng.integers(0, 2, n)).astype(str)), y


def moved_by_a_copy(make, X, y, T, column):
    """The mean change of probabilities where a column is there twice."""
    one = make().fit(X, y).predict_proba(T)
    two = make().fit(X.assign(copy=X[column]), y).predict_proba(T.assign(copy=T[column]))
    return np.abs(one - two).mean()


def test_two_copies_of_a_column_hardly_move_probabilities():
    rows = (*repeated(1000, 0), repeated(1000, 1)[0], "a")
    ours, plain = moved_by_a_copy(model, *rows), moved_by_a_copy(db.NaiveBayes, *rows)
    assert ours < 0.01
    assert plain > 5 * ours


@REAL
@pytest.mark.parametrize(("name", "column"), [("car", "safety"), ("vote", "physician-fee-freeze")])
def test_two_copies_of_a_real_column_hardly_move_probabilities(name, column):
    table = pd.read_csv(Path(os.environ["DECIBAN_DATA"]) / "tables" / f"{name}.csv")
    X, y = table.iloc[:, :-1], table.iloc[:, -1].astype(str).to_numpy()
    rows = (X[::2], y[::2], X[1::2], column)
    ours, plain = moved_by_a_copy(model, *rows), moved_by_a_copy(db.NaiveBayes, *rows)
    assert ours < 0.01
    assert plain > 2 * ours


USELESS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "letters": lambda rng, n: rng.choice(list("pqr"), n),
    "identifier": lambda rng, n: [f"id {i}" for i in rng.permutation(10 * n)[:n]],
    "pairs of rows": lambda rng, n: [f"level {i // 2}" for i in rng.permutation(n)],
    "missing": lambda rng, n: np.where(rng.random(n) < 0.5, np.nan, 1.0),
}


@cache
def without_it(seed):
    """A table, held-out rows, and the log loss of these."""
    (X, y), (T, t) = mixed(400, seed, classes=2), mixed(1000, 50 + seed, classes=2)
    return X, y, T, t, log_loss(model().fit(X, y), T, t)


@pytest.mark.parametrize("what", USELESS)
def test_a_useless_column_does_not_hurt(what):
    """Its own pieces have no weight (except by chance, in some of the tables), and new rows are predicted as well."""
    worse, weight = [], []
    for seed in range(3):
        X, y, T, t, expected = without_it(seed)
        rng = np.random.default_rng(100 + seed)
        estimator = model().fit(X.assign(useless=USELESS[what](rng, 400)), y)
        worse.append(log_loss(estimator, T.assign(useless=USELESS[what](rng, 1000)), t) - expected)
        weight.append(own_weight(estimator, "useless"))
    assert np.mean(worse) < 0.012
    assert np.median(weight) == 0
    if what in ("identifier", "pairs of rows"):
        assert max(weight) == 0


@pytest.mark.parametrize("times", [1, 2])
def test_levels_of_one_or_two_rows_do_not_leak(times):
    """All that there is are levels of so many rows, both of one class: who looked at the row itself would know it."""
    rng = np.random.default_rng(4)
    y = np.repeat(rng.integers(0, 2, 300 // times), times)
    X = pd.DataFrame({"a": [f"a{i // times}" for i in range(300)], "b": [f"b{i // times}" for i in range(300)]})
    order = rng.permutation(300)
    estimator = model().fit(X.iloc[order], y[order])
    new = pd.DataFrame({"a": ["new"], "b": ["new"]})
    np.testing.assert_allclose(estimator.predict_proba(new), [estimator.class_count_ / 300], atol=0.02)
    assert not any(estimator.weights_.values.ravel())
    np.testing.assert_allclose(estimator.predict_proba(X), np.tile(estimator.class_count_ / 300, (300, 1)), atol=0.02)


# Small and odd tables
ODD = {
    "one row": ([[1.0]], ["a"]),
    "two rows": ([[1.0], [2.0]], ["a", "b"]),
    "two rows of one class": ([[1.0], [2.0]], ["a", "a"]),
    "two rows of text": ([["u"], ["v"]], ["a", "b"]),
    "three rows": ([[1.0, 3.0], [2.0, 4.0], [3.0, 0.0]], ["a", "b", "b"]),
    "constant": ([[1.0, 2.0]] * 8, ["a", "b"] * 4),
    "all missing": ([[np.nan, np.nan]] * 8, ["a", "b", "b", "b"] * 2),
    "all missing in a table": (pd.DataFrame({"x": [None] * 8, "z": [np.nan] * 8}), ["a", "b", "b", "b"] * 2),
    "one there": ([[np.nan], [np.nan], [1.0], [np.nan]], ["a", "b", "a", "b"]),
    "a class of one row": ([[float(i)] for i in range(12)], ["a"] * 6 + ["b"] * 5 + ["c"]),
    "classes of one row each": ([[float(i)] for i in range(6)], list("abcdef")),
    "huge": ([[1e150], [2e150], [3e150], [-1e150]] * 3, ["a", "b", "b", "a"] * 3),
    "tiny": ([[1e-150], [2e-150], [3e-150], [-1e-150]] * 3, ["a", "b", "b", "a"] * 3),
    "far from zero": ([[1e12 + i] for i in range(12)], ["a"] * 6 + ["b"] * 6),
    "truths": ([[True, False], [False, False], [True, True], [False, True]] * 4, ["a", "b"] * 8),
}


UNINFORMATIVE = {"two rows", "two rows of text", "constant", "all missing", "all missing in a table"}


@pytest.mark.parametrize("what", ODD)
def test_odd_tables_have_finite_and_sensible_answers(what):
    """Those without information have the class prior."""
    X, y = ODD[what]
    fitted = db.EvidenceClassifier(trees=20).fit(X, y)
    proba = fitted.predict_proba(X)
    assert np.isfinite(proba).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    fitted.summary()
    fitted.explain(X)
    assert not np.isnan(fitted.leave_one_out(X, y).log_loss)
    assert fitted.n_parameters_ >= 0
    if what in UNINFORMATIVE:
        share = np.unique(y, return_counts=True)[1] / len(y)
        np.testing.assert_allclose(proba, np.tile(share, (len(y), 1)), atol=0.02)


@pytest.mark.parametrize("y", [[0, 1, 1], [0, 0, 1, 1, 1, 2]])
def test_the_only_row_of_a_class_does_not_make_it_impossible(y):
    """Nothing is known but the prior: 1/3 is 1/3, though weights are learned from rows of other classes."""
    estimator = db.EvidenceClassifier().fit([[np.nan]] * len(y), y)
    np.testing.assert_allclose(estimator.predict_proba([[np.nan]]), [np.bincount(y) / len(y)], atol=0.02)


def test_a_class_of_one_row_among_many(fitted, rows):
    X, y = rows
    y = np.where(np.arange(N) == 11, "once", y)
    estimator = model().fit(X, y)
    T, t = mixed(1000, seed=1)
    assert log_loss(estimator, T, t) < log_loss(fitted, T, t) + 0.05
    proba = estimator.predict_proba(T)[:, estimator.classes_.tolist().index("once")]
    assert proba.max() < 0.5
    assert proba.mean() < 0.05
    evaluation = estimator.leave_one_out(X, y)
    assert evaluation.rows == N


def test_many_columns_and_few_rows():
    """200 columns of 100 rows; one is informative."""
    rng = np.random.default_rng(6)

    def drawn(n):
        y = rng.integers(0, 2, n)
        x = rng.normal(size=(n, 200))
        x[:, 7] += 4 * y
        return x, y

    (X, y), (T, t) = drawn(100), drawn(400)
    estimator = model().fit(X, y)
    proba = estimator.predict_proba(T)
    assert np.isfinite(proba).all()
    assert estimator.score(T, t) > 0.6
    assert log_loss(estimator, T, t) < np.log(2)
    assert own_weight(estimator, 7) > 0


def test_sparse_counts_of_words():
    rng = np.random.default_rng(7)
    y = rng.integers(0, 3, 300)
    counts = rng.poisson(0.1 + 0.6 * (np.arange(30) % 3 == y[:, np.newaxis])).astype(float)
    estimator = model().fit(sp.csr_array(counts), y)
    dense, sparse = estimator.predict_proba(counts), estimator.predict_proba(sp.csr_array(counts))
    np.testing.assert_allclose(dense, sparse, rtol=1e-10, atol=1e-12)
    assert estimator.score(sp.csr_array(counts), y) > 0.9
    np.testing.assert_allclose(softmax(estimator.explain(counts).joint, axis=1), dense, atol=1e-9)
    order = rng.permutation(300)
    same_predictions(model().fit(sp.csr_array(counts[order]), y[order]), estimator, counts, 1e-8)
    same_predictions(copy.deepcopy(estimator).partial_fit(counts, y).forget(counts, y), estimator, counts)
    plain = db.NaiveBayes().fit(sp.csr_array(counts), y)
    T = rng.poisson(0.1 + 0.6 * (np.arange(30) % 3 == y[:, np.newaxis])).astype(float)
    assert log_loss(estimator, T, y) < log_loss(plain, T, y) + 0.02


# More rows, other models
def test_parts_learned_from_a_blank_add_up_to_the_whole(fitted, rows):
    X, y = rows
    parts = [fitted.empty_copy().partial_fit(X[i::3], y[i::3]) for i in range(3)]
    for whole in (parts[0] + parts[1] + parts[2], parts[2].merge(parts[0].merge(parts[1]))):
        same_predictions(whole, fitted, X)
        assert whole.class_count_.tolist() == fitted.class_count_.tolist()
        np.testing.assert_allclose(whole.explain(X).nats, fitted.explain(X).nats, atol=1e-9)
    parts = [fitted.empty_copy().partial_fit(X[y == label], y[y == label]) for label in fitted.classes_]
    same_predictions(parts[2] + parts[0] + parts[1], fitted, X)


def test_a_blank_has_learned_nothing(fitted, rows):
    X, y = rows
    blank = fitted.empty_copy()
    with pytest.raises(db.DecibanError, match="every row was forgotten"):
        blank.predict(X)
    assert blank.get_params() == fitted.get_params()
    same_predictions(blank.partial_fit(X, y), fitted, X)
    for empty in (fitted.empty_copy() + fitted, fitted + fitted.empty_copy()):
        same_predictions(empty, fitted, X)
    same_predictions((fitted.empty_copy() + fitted.empty_copy()).partial_fit(X, y), fitted, X)


@pytest.mark.parametrize("weighted", [False, True])
def test_forgotten_rows_were_never_learned(learned, rows, weighted):
    X, _ = rows
    more, labels = mixed(80, seed=8)
    weights = np.random.default_rng(9).random(80) if weighted else None
    before, evidence = learned.predict_proba(X), learned.class_count_.tolist()
    learned.partial_fit(more, labels, sample_weight=weights)
    assert np.abs(learned.predict_proba(X) - before).max() > 1e-3
    learned.forget(more, labels, sample_weight=weights)
    np.testing.assert_allclose(learned.predict_proba(X), before, rtol=0, atol=1e-10)
    assert learned.class_count_.tolist() == evidence


def test_new_evidence_is_added_at_once_and_weights_stay():
    (X, y), (more, labels), (T, t) = all_kinds(240), all_kinds(2000, seed=8), all_kinds(2000, seed=1)
    learned = db.EvidenceClassifier(trees=16).fit(X, y)
    before, loss = learned.weights_, log_loss(learned, T, t)
    with pytest.warns(db.DecibanWarning, match="learned 2,240 rows, and its weights were fitted when it .* 240: refit"):
        learned.partial_fit(more, labels)
    assert learned.weights_ is before
    later = log_loss(learned, T, t)
    assert later < loss
    assert learned.refit_weights(more, labels) is learned
    assert learned.weights_.rows == 2000
    assert log_loss(learned, T, t) < later + 0.005


def test_weights_out_of_date_are_warned_of_once_until_they_are_refitted(learned, rows, tmp_path):
    X, y = rows
    silent = pytest.warns(db.DecibanWarning, match="refit them with model.refit_weights")
    for _ in range(3):
        learned.partial_fit(X, y)  # up to four times the rows of the fit: DecibanWarning would be an error
    learned.save(tmp_path / "m.deciban")
    with silent:
        learned.partial_fit(X[:1], y[:1])
    learned.partial_fit(X, y)
    with silent:
        db.load(tmp_path / "m.deciban").partial_fit(X[:1], y[:1])
    learned.refit_weights(X, y)  # of all rows there are six now
    for _ in range(5):
        learned.partial_fit(X, y)


def test_merging_models_counts_as_learning_their_rows(fitted, rows):
    X, y = rows
    part = fitted.empty_copy().partial_fit(X, y)
    four = sum([fitted, part, part, part])
    with pytest.warns(db.DecibanWarning, match=f"learned {5 * N:,} rows, .* had learned {N}:") as said:
        more = sum([four, part, part, part])
    assert len(said) == 1
    assert more.class_count_.sum() == 7 * N
    small = model().fit(X[:60], y[:60])
    with pytest.warns(db.DecibanWarning) as said:  # of models fitted apart: weights of 60 rows each
        sum([small] * 5)
    assert [str(warning.message) for warning in said] == [
        "the model has learned 300 rows, and its weights were fitted when it had learned 60: refit them with "
        "model.refit_weights(X, y), or `deciban refit-weights MODEL ROWS`, on rows that it has learned"
    ]


def test_a_small_sample_for_weights_is_not_out_of_date(rows):
    X, y = rows
    estimator = model(max_weight_rows=30).fit(X, y)
    assert 4 * estimator.weights_.rows < N
    estimator.partial_fit(X, y).merge(estimator.empty_copy().partial_fit(X, y))


def test_no_rows_change_nothing(learned, rows, tmp_path):
    X, y = rows
    table = X.assign(label=y)
    table[:0].to_csv(tmp_path / "none.csv", index=False)
    before = learned.generative_
    batches = [(X[:0], y[:0]), (X[:0], []), (table[:0], "label"), (db.scan(tmp_path / "none.csv"), "label")]
    for change in (learned.partial_fit, learned.forget):
        for batch in batches:
            assert change(*batch) is learned
        assert change(X[:0], y[:0], sample_weight=[]) is learned
        with pytest.raises(db.DecibanError, match=str(X.columns[0])):
            change(X.iloc[:0, 1:], y[:0])
    assert learned.generative_ is before
    for refused in (learned.refit_weights, learned.leave_one_out, learned.fit):
        with pytest.raises(db.DecibanError, match="no rows"):
            refused(X[:0], y[:0])
        with pytest.raises(db.DecibanError, match="no rows"):
            refused(db.scan(tmp_path / "none.csv"), "label")


def test_weights_of_the_same_rows_are_the_same(learned, fitted, rows):
    X, y = rows
    same_predictions(learned.refit_weights(X, y), fitted, X, 0)
    np.testing.assert_array_equal(learned.weights_.values, fitted.weights_.values)
    np.testing.assert_array_equal(learned.feature_importances_, fitted.feature_importances_)
    times = np.arange(N) % 3
    weighted = model().fit(X, y, sample_weight=times)
    same_predictions(copy.deepcopy(weighted).refit_weights(X, y, sample_weight=times), weighted, X, 0)


def test_weights_may_be_learned_from_other_rows(learned, rows):
    """Rows of which no part is among what was learned need not be left out of it."""
    T, t = mixed(600, seed=1)
    U, u = mixed(1500, seed=2)
    before = log_loss(learned, U, u)
    learned.refit_weights(T, t, held_out=True)
    assert learned.weights_.rows == 600
    assert log_loss(learned, U, u) < before + 0.01
    assert log_loss(learned, T, t) < log_loss(learned, U, u) + 0.05


def test_rows_that_were_learned_are_not_new(rows):
    """To judge rows by themselves is to believe what only they say."""
    X, y = rows
    noise = pd.DataFrame(np.random.default_rng(10).integers(0, 60, (N, 3)).astype(str)).add_prefix("n")
    table = pd.concat([X, noise], axis=1)
    honest = model(pairs=0).fit(table, y)
    fooled = copy.deepcopy(honest).refit_weights(table, y, held_out=True)
    assert log_loss(fooled, table, y) < honest.leave_one_out(table, y).log_loss - 0.1
    T, t = mixed(1000, seed=1)
    more = pd.DataFrame(np.random.default_rng(11).integers(0, 60, (1000, 3)).astype(str)).add_prefix("n")
    T = pd.concat([T, more], axis=1)
    assert log_loss(honest, T, t) < log_loss(fooled, T, t)


def test_weights_cannot_be_learned_from_rows_of_unknown_classes(learned, rows):
    X, y = rows
    before = learned.weights_
    y = np.where(np.arange(N) == 3, "another", y)
    with pytest.raises(db.DecibanError, match=r"not training rows.*held_out=True"):
        learned.refit_weights(X, y)
    assert learned.weights_ is before
    learned.refit_weights(X, y, held_out=True)
    assert learned.weights_.rows == N - 1


def test_new_classes_and_categories_are_welcome(rows):
    X, y = rows
    first = (y != "spam") & (X["colour"] != "red").to_numpy()
    estimator = model().fit(X[first], y[first]).partial_fit(X[~first], y[~first])
    assert estimator.classes_.tolist() == ["egg", "ham", "spam"]
    assert estimator.score(X, y) > 0.6
    T, t = mixed(1000, seed=1)
    weighted = copy.deepcopy(estimator).refit_weights(X, y)
    assert weighted.weights_.classes == ("egg", "ham", "spam")
    assert log_loss(weighted, T, t) < log_loss(estimator, T, t) + 0.02
    assert log_loss(estimator, T, t) < 0.8
    same_predictions(estimator.forget(X[~first], y[~first]), model().fit(X[first], y[first]), X)


@pytest.mark.parametrize("kind", ["number", "category", "boolean"])
def test_a_column_that_was_empty_may_get_values(kind, rows):
    X, y = rows
    late = {"number": "height", "category": "code", "boolean": "flag"}[kind]
    estimator = model().fit(X.assign(**{late: None}), y)
    first, before = copy.deepcopy(estimator), estimator.predict_proba(X.assign(**{late: None}))
    more, labels = mixed(200, seed=8)
    estimator.partial_fit(more, labels)
    assert np.isfinite(estimator.predict_proba(more)).all()
    both = pd.concat([X.assign(**{late: np.nan if kind == "number" else None}), more], ignore_index=True)
    estimator.refit_weights(both, np.concatenate([y, labels]))
    assert own_weight(estimator, late) > 0
    T, t = mixed(1000, seed=1)
    without = T.assign(**{late: np.nan if kind == "number" else None})
    assert log_loss(estimator, T, t) < log_loss(estimator, without, t)
    estimator = first.partial_fit(more, labels).forget(more, labels)
    np.testing.assert_allclose(estimator.predict_proba(X.assign(**{late: None})), before, atol=1e-10)


def test_a_column_that_was_empty_in_one_of_two_models(rows):
    X, y = rows
    more, labels = mixed(200, seed=8)
    one, other = model(trees=0, pairs=0).fit(X.assign(code=None), y), model(trees=0, pairs=0).fit(more, labels)
    with pytest.warns(db.DecibanWarning, match="only one of the models has"):
        a = one + other
    with pytest.warns(db.DecibanWarning, match="only one of the models has"):
        b = other + one
    same_predictions(a, b, more)
    assert own_weight(a, "code") > 0


# Merging
def test_two_fits_merge_without_what_was_laid_out_by_the_rows_of_each(fitted, rows):
    X, y = rows
    Z, z = mixed(200, seed=8)
    a, b = fitted, model().fit(Z, z)
    with pytest.warns(db.DecibanWarning, match="blocks over several columns that only one of the models has") as caught:
        merged = a + b
    assert len(caught) == 1
    assert not any(plan.family.joint for plan in merged.generative_.plans)
    assert merged.class_count_.tolist() == (a.class_count_ + b.class_count_).tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", db.DecibanWarning)
        turned = b + a
    same_predictions(merged, turned, X)
    assert merged.get_params() == a.get_params()
    # the evidence is that of all rows, the weights are means by the rows of each class
    whole = model(pairs=0, trees=0).fit(pd.concat([X, Z], ignore_index=True), np.concatenate([y, z]))
    by_name = {block.plan: block for block in whole.generative_.blocks}
    for block in merged.generative_.blocks:
        expected = flattened(by_name[block.plan].statistic)
        for name, array in flattened(block.statistic).items():
            np.testing.assert_array_equal(array, expected[name])
    share = a.class_count_ / (a.class_count_ + b.class_count_)
    for key, values in zip(merged.weights_.keys, merged.weights_.values, strict=True):
        mine, theirs = (
            dict(zip(w.keys, w.values, strict=True)).get(key, np.zeros(3)) for w in (a.weights_, b.weights_)
        )
        np.testing.assert_allclose(values, share * mine + (1 - share) * theirs, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(
        merged.weights_.bias, share * a.weights_.bias + (1 - share) * b.weights_.bias, rtol=1e-12
    )
    T, t = mixed(1000, seed=1)
    before = log_loss(merged, T, t)
    merged.refit_weights(pd.concat([X, Z], ignore_index=True), np.concatenate([y, z]))
    assert log_loss(merged, T, t) < before


def test_models_of_other_classes_merge(rows):
    X, y = rows
    two = y != "spam"
    a, b = model(trees=0).fit(X[two], y[two]), model(trees=0).fit(X, y)
    with pytest.warns(db.DecibanWarning, match="only one of the models"):
        merged = a + b
    assert merged.classes_.tolist() == ["egg", "ham", "spam"]
    assert np.isfinite(merged.predict_log_proba(X)).all()
    spam = dict(zip(b.weights_.keys, b.weights_.values[:, 2], strict=True))
    for key, value in zip(merged.weights_.keys, merged.weights_.values[:, 2], strict=True):
        assert value == pytest.approx(spam.get(key, 0.0), rel=1e-12)  # all rows of the class are there


def test_a_class_learned_later_keeps_its_weight_on_merge(rows):
    X, y = rows
    two = y != "spam"
    late = model(trees=0, pairs=0).fit(X[two], y[two]).partial_fit(X[~two], y[~two])
    merged = late + copy.deepcopy(late)
    same_predictions(merged.forget(X, y), late, X)


def test_only_models_of_one_kind_merge(fitted, rows):
    with pytest.raises(db.DecibanError, match="cannot be merged"):
        fitted.merge(db.NaiveBayes().fit(*rows))
    with pytest.raises(db.DecibanError, match="columns differ"):
        fitted.merge(model().fit(rows[0].drop(columns="code"), rows[1]))


# Saving
def test_a_loaded_model_goes_on_where_the_saved_one_was(learned, rows, tmp_path):
    X, y = rows
    learned.save(tmp_path / "model.deciban")
    estimator = db.load(tmp_path / "model.deciban")
    more, labels = mixed(60, seed=8)
    for ask in (
        lambda m: m.predict_proba(X),
        lambda m: m.explain(X).nats,
        lambda m: m.leave_one_out(X, y).log_loss,
        lambda m: m.weights_.values,
        lambda m: m.empty_copy().partial_fit(more, labels).predict_proba(X),
        lambda m: m.partial_fit(more, labels).predict_proba(X),
        lambda m: m.refit_weights(more, labels).predict_proba(X),
        lambda m: m.forget(more, labels).predict_proba(X),
    ):
        np.testing.assert_array_equal(ask(estimator), ask(learned))
    assert str(estimator.summary()) == str(learned.summary())


def test_parts_may_be_learned_elsewhere_and_come_as_files(fitted, rows, tmp_path):
    X, y = rows
    fitted.empty_copy().save(tmp_path / "blank.deciban")
    for i in range(2):
        db.load(tmp_path / "blank.deciban").partial_fit(X[i::2], y[i::2]).save(tmp_path / f"{i}.deciban")
    same_predictions(db.load(tmp_path / "0.deciban") + db.load(tmp_path / "1.deciban"), fitted, X)


# Streams
TABLE = pa.Table.from_pandas(
    mixed(N, classes=2)[0].assign(
        weight=np.random.default_rng(12).choice([0.0, 1.0, 2.5], N), kind=mixed(N, classes=2)[1]
    ),
    preserve_index=False,
)
WAYS = FILES | STREAMS


@cache
def of_table(weight, max_weight_rows):
    table = TABLE if weight else TABLE.drop(["weight"])
    return model(trees=3, max_weight_rows=max_weight_rows).fit(table, "kind", sample_weight=weight)


@pytest.mark.parametrize(
    ("way", "weight", "max_weight_rows"),
    [
        ("csv, blocks of 100 rows", None, 80),
        ("jsonl", None, 200_000),
        ("parquet", "weight", 80),
        ("csv beside parquet", None, 200_000),
        ("duckdb", "weight", 200_000),
        ("reader", "weight", 80),
        ("scanner", None, 80),
    ],
)
def test_a_stream_gives_the_model_of_the_table(way, weight, max_weight_rows, tmp_path):
    table = TABLE if weight else TABLE.drop(["weight"])
    expected = of_table(weight, max_weight_rows)
    estimator = clone(expected).fit(WAYS[way](tmp_path, table), "kind", sample_weight=weight)
    rows = TABLE.drop(["weight", "kind"])
    same_predictions(estimator, expected, rows, 1e-9)
    assert estimator.weights_.rows == expected.weights_.rows
    assert (estimator.weights_.rows < N) == (max_weight_rows == 80 or weight is not None)
    np.testing.assert_allclose(estimator.feature_importances_, expected.feature_importances_, atol=1e-6)
    streamed = estimator.predict_proba(WAYS[way](tmp_path, rows))
    np.testing.assert_allclose(streamed, estimator.predict_proba(rows), rtol=0, atol=1e-12)


@pytest.mark.parametrize("way", ["csv, blocks of 100 rows", "reader"])
def test_streams_are_learned_forgotten_and_weighted(way, tmp_path):
    table = TABLE.drop(["weight"])
    rows = table.drop(["kind"])
    expected = of_table(None, 80)
    estimator = copy.deepcopy(expected).refit_weights(WAYS[way](tmp_path, table), "kind")
    same_predictions(estimator, expected, rows, 1e-9)
    estimator.partial_fit(WAYS[way](tmp_path, table), "kind").forget(WAYS[way](tmp_path, table), "kind")
    same_predictions(estimator, expected, rows, 1e-9)
    evaluation = estimator.leave_one_out(WAYS[way](tmp_path, table), "kind")
    assert evaluation.log_loss == pytest.approx(expected.leave_one_out(table, "kind").log_loss, abs=1e-9)


def test_whole_numbers_of_a_file_are_the_numbers_of_a_table(tmp_path):
    """A column is whole numbers in one file, and floats in another and in memory."""
    rng = np.random.default_rng(13)
    x = rng.integers(0, 30, 300)
    y = (x + rng.normal(0, 8, 300) > 15).astype(int)
    (tmp_path / "whole.csv").write_text("x,z,y\n" + "".join(f"{a},{a % 7},{b}\n" for a, b in zip(x, y, strict=True)))
    (tmp_path / "broken.csv").write_text("x,z,y\n" + "".join(f"{a}.0,{a % 7},{b}\n" for a, b in zip(x, y, strict=True)))
    frame = pd.DataFrame({"x": x.astype(float), "z": (x % 7).astype(np.int8), "y": y})
    models = [
        model(max_weight_rows=100).fit(given, "y")
        for given in (frame, *(db.scan(p) for p in sorted(tmp_path.iterdir())))
    ]
    for other in models[1:]:
        same_predictions(other, models[0], frame, 1e-9)


def test_weights_of_fewer_rows_are_nearly_as_good():
    X, y = mixed(1500, classes=2)
    T, t = mixed(2000, seed=1, classes=2)
    few, all_of_them = model(max_weight_rows=500).fit(X, y), model().fit(X, y)
    assert 500 <= few.weights_.rows < 520  # equal rows of two classes are two
    assert log_loss(few, T, t) < log_loss(all_of_them, T, t) + 0.03


def test_weights_are_fitted_to_a_fair_sample_of_rows_that_repeat():
    """Three columns that mostly agree, of two values: there are eight kinds of rows, and all of them count."""
    rng = np.random.default_rng(0)

    def drawn(n):
        s = rng.integers(0, 2, n)
        y = (rng.random(n) < np.where(s, 0.8, 0.2)).astype(int)
        return pd.DataFrame({c: np.array(list("uv"))[s ^ (rng.random(n) < 0.02)] for c in "abc"}), y

    (X, y), (T, t) = drawn(4000), drawn(4000)
    few, all_of_them = (model(max_weight_rows=n).fit(X, y) for n in (500, 200_000))
    assert log_loss(few, T, t) < log_loss(all_of_them, T, t) + 0.005


# What goes wrong
def test_bad_rows_are_named(rows, learned):
    X, y = rows
    before = learned.predict_proba(X)
    for bad, words in (
        (X.assign(height=np.where(np.arange(N) == 17, -np.inf, X["height"])), "'height', row 17: -inf is infinite"),
        (X.drop(columns="colour"), "lacks column 'colour'"),
        (X.assign(height="wide"), r"column 'height' held numbers .* text now"),
        (X.assign(code=1.0), r"column 'code' held text .* numbers now"),
    ):
        for learn in (learned.partial_fit, learned.forget, learned.refit_weights, learned.leave_one_out):
            with pytest.raises(db.DecibanError, match=words):
                learn(bad, y)
        for ask in (learned.predict, learned.predict_proba, learned.explain):
            with pytest.raises(db.DecibanError, match=words):
                ask(bad)
    np.testing.assert_array_equal(learned.predict_proba(X), before)


def test_infinite_cells_are_named_whatever_counts():
    """Also where nothing does but what all columns say together, or nothing at all."""
    rng = np.random.default_rng(14)
    X = pd.DataFrame(rng.normal(size=(300, 2)), columns=["a", "b"])
    bad = X.copy()
    bad.loc[3, "b"] = np.inf
    for y in ((X["a"] > 0) ^ (X["b"] > 0), np.zeros(300), rng.integers(0, 2, 300)):
        with pytest.raises(db.DecibanError, match="column 'b', row 3: inf is infinite"):
            model().fit(X, np.asarray(y).astype(int)).predict(bad)


def test_a_fit_that_fails_leaves_the_model_as_it_was(learned, rows):
    X, y = rows
    before = learned.predict_proba(X)
    with pytest.raises(db.DecibanError, match="column 'height', row 17: inf is infinite"):
        learned.fit(X.assign(height=np.where(np.arange(N) == 17, np.inf, X["height"])), y)
    with pytest.raises(db.DecibanError, match=r"label, row 5: .*missing"):
        learned.fit(X, [None if i == 5 else label for i, label in enumerate(y)])
    with pytest.raises(db.DecibanError, match="sample_weight, row 5"):
        learned.partial_fit(X, y, sample_weight=np.where(np.arange(N) == 5, -1.0, 1.0))
    with pytest.raises(db.DecibanError, match="never learned"):
        learned.forget(X.assign(height=99.0), y)
    np.testing.assert_array_equal(learned.predict_proba(X), before)


def test_a_new_fit_forgets_the_old_one(learned, rows):
    X, _ = rows
    Z, z = mixed(100, seed=8)
    learned.predict(X)
    same_predictions(learned.fit(Z, z), model().fit(Z, z), X, 0)
    small = model().fit(Z[["height"]], z)
    np.testing.assert_array_equal(learned.fit(Z[["height"]], z).predict_proba(X), small.predict_proba(X))


# Other tools
def test_it_can_be_calibrated_evaluated_and_drawn(fitted, rows):
    X, y = rows
    T, t = mixed(300, seed=1)
    estimator = db.CalibratedClassifier(model(trees=2), cv=2).fit(X, y)
    assert log_loss(estimator, T, t) < 0.9
    evaluation = db.evaluate(fitted, T, t)
    assert evaluation.log_loss == pytest.approx(log_loss(fitted, T, t), rel=1e-9)
