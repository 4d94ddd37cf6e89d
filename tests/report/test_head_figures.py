"""The head of a report: settings, columns, what was done with them and why."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

import deciban as db
from deciban.report import report_of

F = db.families


def head(model, X, y, **options):
    return report_of(model.fit(X, y), X, y, **options).figures["head"]


def column(figures, name):
    (about,) = [column for column in figures["columns"] if column["name"] == name]
    return about


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    return pd.DataFrame(
        {
            "age": rng.normal(40 + 9 * y, 5),
            "job": rng.choice(["cook", "clerk", "smith"], 120),
            "member": rng.random(120) < 0.5,
            "debt": np.where(np.arange(120) % 4 == 0, np.nan, rng.exponential(1 + y)),
            "never": [None] * 120,
            "same": 1.0,
            "label": np.where(y, "yes", "no"),
        }
    )


def test_columns_are_told_as_they_are(table):
    about = head(db.NaiveBayes(), table, "label")
    assert [column["name"] for column in about["columns"]] == ["age", "job", "member", "debt", "never", "same"]
    kinds = [column["kind"] for column in about["columns"]]
    assert kinds == ["number", "category", "boolean", "number", "empty", "number"]
    assert [column["missing"] for column in about["columns"]] == [0, 0, 0, 0.25, 1, 0]
    assert (column(about, "job")["levels"], column(about, "member")["levels"]) == (3, 2)
    assert column(about, "age")["low"] == pytest.approx(table["age"].min(), rel=1e-5)
    assert column(about, "age")["high"] == pytest.approx(table["age"].max(), rel=1e-5)
    assert about["label"] == "label"
    assert about["training"] == {"rows": 120, "by_class": [60, 60]}
    assert about["evaluated"] == {"rows": 120, "by_class": [60, 60]}


def test_treatments_of_naive_bayes(table):
    about = head(db.NaiveBayes(families={"debt": F.Exponential()}, missing="category"), table, "label")
    treated = {column["name"]: (column["treatment"], column["why"]) for column in about["columns"]}
    assert treated["age"] == ("normal density in each class; and whether it is missing", "numbers")
    assert treated["job"] == ("a probability for each of 3 values, in each class", "text of few distinct values")
    assert treated["debt"][0].startswith("exponential density, one rate in each class")
    assert treated["debt"][1] == "chosen by families="
    assert treated["same"][0].startswith("left out: constant")


def test_chosen_families_say_by_how_much(table):
    about = head(db.NaiveBayes(families="auto"), table[["age", "debt", "label"]], "label")
    assert all("by itself predicts the class best" in column["why"] for column in about["columns"])


@pytest.mark.filterwarnings("ignore::deciban.errors.LeakageWarning")  # the bins of the second table tell all
def test_treatments_of_evidence(table):
    about = head(db.EvidenceClassifier(trees=2), table, "label")
    assert column(about, "age")["treatment"].endswith("normal density in each class")
    assert column(about, "same")["treatment"].startswith("left out")
    x = np.random.default_rng(1).uniform(0, 4, size=(600, 1))
    about = head(db.EvidenceClassifier(trees=0), x, x[:, 0].astype(int) % 2)
    assert "bins at several scales" in column(about, "0")["treatment"]
    texts = pd.DataFrame({"body": [f"{'buy' if i % 2 else 'do'} book number {i}" for i in range(60)], "x": range(60)})
    about = head(db.EvidenceClassifier(), texts, np.arange(60) % 2)
    assert column(about, "body")["treatment"] == "terms of documents"
    assert "distinct" in column(about, "body")["why"]


def test_treatments_of_linear_models(table):
    about = head(db.LogisticRegression(l2=1.0), table, "label")
    assert column(about, "job")["treatment"] == "an indicator for each of 3 values except the first, 'clerk'"
    assert column(about, "debt")["treatment"].endswith("a missing value becomes the mean, with an indicator")
    assert column(about, "age")["treatment"] == "multiplied by a coefficient"
    assert column(about, "never")["treatment"].startswith("left out")
    assert "l2 = 1" in about["sentence"]
    twin = db.NaiveBayes().fit(table[["age", "job"]], table["label"]).to_linear()
    about = report_of(twin, table[["age", "job"]], table["label"]).figures["head"]
    assert [column["why"] for column in about["columns"]] == ["the linear form of a generative model"] * 2


def test_settings_that_differ_are_marked():
    X, y = load_iris(return_X_y=True)
    about = head(db.GaussianDiscriminant(covariance="per-class", shrinkage=0.1), X, y)
    said = {setting["name"]: (setting["value"], setting["default"]) for setting in about["settings"]}
    assert said["covariance"] == ("per-class", False)
    assert said["shrinkage"] == (0.1, False)
    assert said["class_prior"] == ("empirical", True)
    assert said["prior"] == (None, True)
    assert "a covariance of its own" in about["sentence"]


def test_notes_hold_what_the_summary_says():
    X = np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 6.5], [5.0, 9.0], [6.0, 12.0], [7.0, 13.0]])
    with pytest.warns(db.DecibanWarning):
        model = db.LogisticRegression().fit(X, [0, 0, 0, 1, 1, 1])
    notes = report_of(model, X, [0, 0, 0, 1, 1, 1]).figures["head"]["notes"]
    assert any(model.status_ in note for note in notes)


def test_what_is_impossible_is_noted():
    model = db.NaiveBayes(smoothing=0).fit([["a", "u"], ["b", "v"]], [0, 1])
    notes = report_of(model, [["a", "v"], ["b", "v"]], [0, 1]).figures["head"]["notes"]
    assert any("impossible under every class" in note for note in notes)


def test_what_is_not_known_is_null():
    X, y = load_iris(return_X_y=True)
    about = head(db.SoftmaxRegression(l2=1.0), X, y)
    assert about["training"] == {"rows": None, "by_class": None}
    assert about["label"] is None
    assert [column["name"] for column in about["columns"]] == ["0", "1", "2", "3"]
    corrected = report_of(db.CalibratedClassifier(db.NaiveBayes()).fit(X, y), X, y).figures
    assert corrected["title"] == "CalibratedClassifier"
    assert "calibrated (temperature)" in corrected["head"]["sentence"]
