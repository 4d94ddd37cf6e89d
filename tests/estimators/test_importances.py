"""feature_importances_ and column_evidence_: one definition, computed from rows of the fit, kept in the file."""

import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from sklearn.feature_selection import SelectFromModel

import deciban as db
from deciban.contributions import DECIBANS
from deciban.data.schema import Schema
from deciban.estimators.importances import LEAST, ROWS, rows_kept

N = 150


def table(n=N, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    columns = {
        "size": rng.normal(y, 1.0),
        "job": np.array(["clerk", "driver", "nurse", "cook"])[(y + (rng.random(n) < 0.5)) % 4],
        "noise": rng.normal(size=n),
        "weight": rng.normal(2.0 * y, 1.0),
    }
    return pd.DataFrame(columns), np.array(["a", "b", "c"])[y]


X, Y = table()
MODELS = {
    "naive Bayes": db.NaiveBayes(),
    "joint": db.NaiveBayes({("size", "weight"): db.families.MultivariateGaussian("per-class")}),
    "weighted evidence": db.EvidenceClassifier(trees=6),
    "logistic": db.LogisticRegression(l2=1.0),
    "softmax": db.SoftmaxRegression(l2=1.0),
    "calibrated": db.CalibratedClassifier(db.NaiveBayes(), cv=2),
}
FITTED = {name: model.fit(X, Y) for name, model in MODELS.items()}


def expected(model, X, y, weights=None):
    """Mean |decibans| for the true class against the mean of the others, from explain()."""
    explanation = model.explain(X)
    label = np.searchsorted(model.classes_, y)
    listed = []
    for name in X.columns:
        nats = explanation.nats[:, explanation.names.index(name)]
        own = nats[np.arange(len(y)), label]
        others = (nats.sum(axis=1) - own) / (nats.shape[1] - 1)
        listed.append(np.average(np.abs(own - others), weights=weights) * DECIBANS)
    return listed


@pytest.mark.parametrize("name", MODELS)
def test_an_importance_is_the_mean_of_absolute_decibans(name):
    model = FITTED[name]
    np.testing.assert_allclose(model.feature_importances_, expected(model, X, Y), rtol=1e-9)
    assert model.feature_importances_.shape == (model.n_features_in_,)


@pytest.mark.parametrize("name", ["naive Bayes", "joint", "weighted evidence"])
def test_summary_and_report_rank_columns_alike(name):
    model = FITTED[name]
    order = [X.columns[j] for j in np.argsort(-model.feature_importances_, kind="stable")]
    ranked = model.column_evidence_
    assert [row[0] for row in ranked.rows] == order
    assert [row[1] for row in ranked.rows] == sorted(model.feature_importances_, reverse=True)
    assert any(actual == ranked for actual in model.summary().tables)
    report = model.report(X[:60], Y[:60])
    assert [part["name"] for part in report.figures["evidence"]["ranking"]] == order
    np.testing.assert_allclose(
        [part["value"] for part in report.figures["evidence"]["ranking"]], [row[1] for row in ranked.rows]
    )


def test_two_classes_are_ranked_by_their_log_odds():
    y = Y == "a"
    model = db.NaiveBayes().fit(X, y)
    decibans = model.explain(X).decibans(True, False)[:, 1:]
    np.testing.assert_allclose(model.feature_importances_, np.abs(decibans).mean(axis=0), rtol=1e-9)


def test_weights_count_rows():
    times = np.random.default_rng(1).integers(0, 3, N)
    again = np.repeat(np.arange(N), times)
    for model in (db.NaiveBayes(), db.LogisticRegression(l2=1.0)):
        weighted = model.fit(X, Y, sample_weight=times).feature_importances_
        repeated = model.fit(X.iloc[again], Y[again]).feature_importances_
        np.testing.assert_allclose(weighted, repeated, rtol=1e-6)


def test_many_rows_are_represented_by_some_whatever_their_order(tmp_path):
    X, y = table(3 * ROWS)
    model = db.NaiveBayes().fit(X, y)
    order = np.random.default_rng(2).permutation(len(y))
    np.testing.assert_allclose(
        db.NaiveBayes().fit(X.iloc[order], y[order]).feature_importances_, model.feature_importances_, rtol=1e-9
    )
    np.testing.assert_allclose(model.feature_importances_, expected(model, X, y), rtol=0.15)
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_pandas(X.assign(y=y)), path, row_group_size=500)
    streamed = db.NaiveBayes().fit(db.scan(path), "y")
    np.testing.assert_allclose(streamed.feature_importances_, model.feature_importances_, rtol=1e-9)


def test_fewer_rows_of_wide_tables_are_kept():
    kept = [rows_kept(Schema(range(width), ("number",) * width)) for width in (3, 20_000, 1_000_000)]
    assert kept[0] == ROWS
    assert LEAST < kept[1] < ROWS
    assert kept[2] == LEAST


@pytest.mark.parametrize("name", MODELS)
def test_importances_are_kept_in_the_file(name, tmp_path):
    model = MODELS[name].fit(X, Y)
    model.save(tmp_path / "model.deciban")  # before anybody asks
    for again in (db.load(tmp_path / "model.deciban"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.feature_importances_, FITTED[name].feature_importances_)


@pytest.mark.parametrize("n", [N, ROWS])
def test_parts_that_are_learned_one_by_one_or_merged_are_one_fit(n):
    more, labels = table(n, seed=5)
    whole = db.NaiveBayes().fit(pd.concat([X, more]), np.concatenate([Y, labels]))
    learned = db.NaiveBayes().fit(X, Y).partial_fit(more, labels)
    merged = db.NaiveBayes().fit(more, labels) + db.NaiveBayes().fit(X, Y)
    for model in (learned, merged):
        np.testing.assert_allclose(model.feature_importances_, whole.feature_importances_, rtol=1e-9)


MAILS, KINDS = ["buy now", "see you", "buy", "see me now"] * 8, [1, 0, 1, 0] * 8
COUNTS = np.abs(np.random.default_rng(7).normal(size=(32, 3)).round())
FORMS = {  # what is learned first, what is learned later, and both as one
    "texts": (MAILS, MAILS, MAILS * 2),
    "sparse, then dense": (sp.csr_array(COUNTS), COUNTS, sp.csr_array(np.vstack([COUNTS, COUNTS]))),
    "dense, then sparse": (COUNTS, sp.csr_array(COUNTS), np.vstack([COUNTS, COUNTS])),
    "a table, then an array": (pd.DataFrame(COUNTS), COUNTS, np.vstack([COUNTS, COUNTS])),
    "an array, then a table": (COUNTS, pd.DataFrame(COUNTS), np.vstack([COUNTS, COUNTS])),
}


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("form", FORMS)
def test_parts_of_any_form_are_one_fit(form):
    one, other, both = FORMS[form]
    model, whole = db.NaiveBayes().fit(one, KINDS).partial_fit(other, KINDS), db.NaiveBayes().fit(both, KINDS * 2)
    np.testing.assert_allclose(model.feature_importances_, whole.feature_importances_, rtol=1e-9)
    before = model.feature_importances_
    np.testing.assert_array_equal(model.forget(other, KINDS).feature_importances_, before)


def test_models_without_rows_keep_what_they_know():
    more, labels = table(seed=5)
    before = FITTED["naive Bayes"].feature_importances_
    fewer = db.NaiveBayes().fit(X, Y).forget(X[:50], Y[:50])
    np.testing.assert_array_equal(fewer.feature_importances_, before)
    np.testing.assert_array_equal(fewer.partial_fit(more, labels).feature_importances_, before)
    np.testing.assert_array_equal(db.NaiveBayes().fit(X, Y).forget(X, Y).feature_importances_, before)
    blank = db.EvidenceClassifier(trees=6).fit(X, Y).empty_copy()
    np.testing.assert_array_equal(blank.feature_importances_, FITTED["weighted evidence"].feature_importances_)


def test_merging_models_without_rows_takes_the_mean_by_rows():
    more, labels = table(300, seed=6)
    one, other = db.NaiveBayes().fit(X, Y), db.NaiveBayes().fit(more[more.columns[::-1]], labels)
    one, other = pickle.loads(pickle.dumps(one)), pickle.loads(pickle.dumps(other))
    theirs = dict(zip(other.feature_names_in_, other.feature_importances_, strict=True))
    mean = [(N * mine + 300 * theirs[name]) / (N + 300) for name, mine in zip(X, one.feature_importances_, strict=True)]
    np.testing.assert_allclose((one + other).feature_importances_, mean, rtol=1e-9)


def test_scikit_learn_selects_features_by_them():
    select = SelectFromModel(db.NaiveBayes(), max_features=2, threshold=-np.inf).fit(
        X[["size", "noise", "weight"]].to_numpy(), Y
    )
    assert select.get_support().tolist() == [True, False, True]


def test_documents_are_one_feature():
    texts = ["buy pills", "see you", "buy now", "you and me"] * 5
    for model in (db.NaiveBayes(db.families.Text()), db.EvidenceClassifier()):
        fitted = model.fit(texts, [1, 0, 1, 0] * 5)
        listed = np.abs(fitted.explain(texts).decibans(1, 0)[:, 1:])
        assert fitted.feature_importances_.shape == (1,)
        assert 0 < fitted.feature_importances_[0] <= listed.sum(axis=1).mean() + 1e-9


def test_sparse_rows_have_an_importance_for_each_word():
    counts = sp.csr_array(np.random.default_rng(3).poisson(0.4 + (np.arange(30) % 3 == 0), (60, 30)))
    y = np.arange(60) % 2
    for model in (db.NaiveBayes(), db.EvidenceClassifier()):
        fitted = model.fit(counts, y)
        nats = fitted.explain(counts).nats[:, 1:31]
        listed = np.abs(nats[:, :, 1] - nats[:, :, 0]).mean(axis=0) * DECIBANS
        np.testing.assert_allclose(fitted.feature_importances_, listed, rtol=1e-9, atol=1e-12)


def test_models_that_saw_no_rows_have_none():
    numbers = X.drop(columns="job")
    twin = db.NaiveBayes().fit(numbers, Y).to_linear()
    assert not hasattr(twin, "feature_importances_")
    with pytest.raises(AttributeError, match="this SoftmaxRegression has no feature_importances_"):
        twin.feature_importances_  # noqa: B018
    assert hasattr(twin.refine(numbers, Y), "feature_importances_")
    assert db.NaiveBayes().fit(X, ["only"] * N).feature_importances_.tolist() == [0.0] * 4
