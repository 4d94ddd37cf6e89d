"""Figures of a report: every key of every kind of model, from rows of every kind, and nothing but plain values."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

import deciban as db
from deciban.errors import DecibanError
from deciban.report import Report, report_of

KEYS = {"format", "version", "title", "kind", "classes", "head", "quality", "evidence", "linear", "boundary", "rows"}
KEYS |= {"lead", "scoring"}
HEAD = {"model", "sentence", "settings", "label", "training", "evaluated", "width", "missing", "columns", "notes"}
COLUMN = {"name", "kind", "missing", "levels", "low", "high", "treatment", "why", "decibans"}
CLASSES = {"how", "sentence", "classes", "unknown", "metrics", "confusion", "by_class", "curves", "calibration"}
NUMBERS = {"how", "sentence", "metrics", "residuals"}
METRIC = {"name", "title", "value", "low", "high", "prior", "meaning"}
CURVE = {"class", "place", "auc", "auc_low", "auc_high", "average_precision", "positives", "negatives", "steps"}
CURVE |= {"tp", "fp", "roc", "precision_recall"}
EVIDENCE = {"sentence", "rows", "unit", "ranking", "columns", "pairs", "terms"}
CHART = {"name", "chart", "exact", "scale", "evidence", "density", "density_title"}
LINEAR = {"sentence", "unit", "coefficients", "path", "notes"}
BOUNDARY = {"names", "low", "high", "classes", "models", "points", "densities", "ties", "notes"}


def people(rows=160, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    return pd.DataFrame(
        {
            "age": rng.normal(40 + 6 * y, 8).round(1),
            "job": rng.choice(["cook", "clerk", "smith"], rows),
            "member": rng.random(rows) < 0.3 + 0.3 * y,
            "debt": np.where(rng.random(rows) < 0.3, np.nan, rng.exponential(1 + y)),
            "never": [None] * rows,
            "same": 1.0,
            "income": np.where(y, "high", "low"),
        }
    )


def iris():
    return load_iris(return_X_y=True)


def documents():
    return ["Do math today", "Buy", "Buy book", "Today do math drugs", "Buy drugs book today"] * 8, [0, 1, 0, 1, 1] * 8


def five():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 5, 200)
    return rng.normal(size=(200, 3)) + y[:, np.newaxis], y


def counts():
    table = people().drop(columns=["income", "never", "same"])
    return table, np.random.default_rng(2).poisson(2, len(table))


CASES = {
    "mixed": (db.NaiveBayes(), lambda: (people(), "income")),
    "evidence": (db.EvidenceClassifier(trees=8), lambda: (people(), "income")),
    "five": (db.NaiveBayes(), five),
    "text": (db.NaiveBayes(families=db.families.Text()), documents),
    "weighted text": (db.EvidenceClassifier(), documents),
    "poisson": (db.GeneralizedLinearModel("poisson"), counts),
    "logistic": (db.LogisticRegression(), lambda: (people().drop(columns=["never", "same"]), "income")),
    "softmax": (db.SoftmaxRegression(l2=1.0), iris),
    "discriminant": (db.GaussianDiscriminant(), lambda: (iris()[0][:, :2], iris()[1])),
    "array": (db.EvidenceClassifier(trees=8), iris),
    "one class": (db.NaiveBayes(), lambda: ([[1.0, 2.0], [2.0, 1.0], [3.0, 5.0]], ["a", "a", "a"])),
    "calibrated": (db.CalibratedClassifier(db.NaiveBayes()), iris),
    "isotonic": (db.CalibratedClassifier(db.NaiveBayes(), method="isotonic"), iris),
    "multinomial": (db.GeneralizedLinearModel("multinomial", l2=0.1), iris),
}


def plain(value):
    """Nothing but what JSON has, by exact types."""
    if type(value) is dict:
        return all(type(key) is str and plain(cell) for key, cell in value.items())
    if type(value) is list:
        return all(map(plain, value))
    return value is None or (type(value) is float and np.isfinite(value)) or type(value) in (bool, int, str)


def tables(value):
    """Every table inside."""
    if isinstance(value, dict):
        if value.keys() == {"fields", "rows"}:
            yield value
        else:
            for cell in value.values():
                yield from tables(cell)
    elif isinstance(value, list):
        for cell in value:
            yield from tables(cell)


@pytest.mark.parametrize("name", ["mixed", "poisson", "discriminant"])
def test_without_rows_no_row_is_in_the_figures(name):
    model, rows = CASES[name]
    X, y = rows()
    figures = report_of(model.fit(X, y), X, y, rows=0).figures
    assert figures["rows"]["cells"] == figures["rows"]["numbers"] == figures["rows"]["labels"] == []
    assert figures["quality"].get("residuals") is None
    assert not (figures["boundary"] or {}).get("points", {}).get("rows")


@pytest.mark.parametrize("name", CASES)
def test_every_key_is_there(name):
    model, rows = CASES[name]
    X, y = rows()
    figures = report_of(model.fit(X, y), X, y).figures
    assert figures.keys() == KEYS
    assert plain(figures)
    assert figures["head"].keys() == HEAD
    assert all(column.keys() == COLUMN for column in figures["head"]["columns"])
    assert len(figures["head"]["columns"]) == model.n_features_in_
    assert all(metric.keys() == METRIC for metric in figures["quality"]["metrics"])
    numbers = name == "poisson"
    assert figures["kind"] == ("numbers" if numbers else "classes")
    assert figures["quality"].keys() == (NUMBERS if numbers else CLASSES)
    assert (figures["classes"] == []) == numbers
    for curve in figures["quality"].get("curves", ()):
        assert curve.keys() == CURVE
        assert len(curve["tp"]) == len(curve["fp"]) == curve["steps"] + 1
    assert (figures["evidence"] is None) == (name in ("one class", "isotonic"))
    if figures["evidence"]:
        assert figures["evidence"].keys() == EVIDENCE
        assert all(chart.keys() == CHART for chart in figures["evidence"]["columns"])
        values = [part["value"] for part in figures["evidence"]["ranking"]]
        assert values == sorted(values, reverse=True)
    linear = name in ("poisson", "logistic", "softmax", "multinomial")
    assert (figures["linear"] is not None) == linear
    assert not linear or figures["linear"].keys() == LINEAR
    assert (figures["boundary"] is not None) == (name == "discriminant")
    assert name != "discriminant" or figures["boundary"].keys() == BOUNDARY
    assert figures["rows"].keys() == {"sentence", "numbers", "labels", "cells"}
    assert all(len(row) == len(table["fields"]) for table in tables(figures) for row in table["rows"])


def test_of_many_classes_each_has_a_shorter_curve():
    rng = np.random.default_rng(3)
    y = np.repeat(np.arange(12), 4)
    X = rng.normal(size=(48, 2)) + y[:, np.newaxis]
    quality = report_of(db.NaiveBayes().fit(X, y), X, y).figures["quality"]
    assert [(curve["place"], curve["steps"]) for curve in quality["curves"]] == [(k, 100) for k in range(12)]
    assert [result["class"] for result in quality["calibration"]] == [None, *map(str, range(12))]


# Rows of every kind --------------------------------------------------------------------------------------------------


def same(a, b):
    assert {**a, "head": None} == {**b, "head": None}
    notes = [{**figures["head"], "notes": None, "columns": None} for figures in (a, b)]
    assert notes[0] == notes[1]


def test_tables_of_all_libraries_are_one():
    table = people().drop(columns="never")
    model = db.NaiveBayes().fit(table, "income")
    expected = report_of(model, table, "income").figures
    same(report_of(model, pl.from_pandas(table), "income").figures, expected)
    same(report_of(model, pa.Table.from_pandas(table), "income").figures, expected)


def test_a_stream_is_as_its_rows(tmp_path):
    table = people().drop(columns="never")
    table.to_csv(tmp_path / "people.csv", index=False)
    for model in (db.NaiveBayes(), db.EvidenceClassifier(trees=2)):
        model.fit(table, "income")
        streamed = report_of(model, db.scan(tmp_path / "people.csv"), "income").figures
        whole = report_of(model, table, "income").figures
        assert streamed["quality"] == whole["quality"]
        assert streamed["evidence"]["ranking"] == whole["evidence"]["ranking"]
        assert not any("are those of" in note for note in streamed["head"]["notes"])


def test_of_a_long_file_some_rows_are_explained(tmp_path):
    """Figures of a sample say so."""
    x = np.arange(3000)
    pd.DataFrame({"x": x, "y": np.where(x % 7 < 3, "a", "b")}).to_csv(tmp_path / "long.csv", index=False)
    model = db.NaiveBayes().fit(db.scan(tmp_path / "long.csv"), "y")
    figures = report_of(model, db.scan(tmp_path / "long.csv"), "y").figures
    assert figures["evidence"]["rows"] == 2000
    assert any("those of 2,000 of the 3,000 rows" in note for note in figures["head"]["notes"])
    assert np.sum(figures["quality"]["confusion"]) == 3000


def test_a_reader_can_be_read_once():
    table = people()
    model = db.NaiveBayes().fit(table, "income")
    same(
        report_of(model, pa.Table.from_pandas(table).to_reader(), "income").figures,
        report_of(model, table, "income").figures,
    )


def test_of_many_rows_a_sample_is_explained_and_all_are_judged():
    table = people(2500)
    model = db.NaiveBayes().fit(table, "income")
    figures = report_of(model, table, "income").figures
    assert figures["evidence"]["rows"] <= 2000
    assert sum(map(sum, figures["quality"]["confusion"])) == 2500
    assert figures == report_of(model, table, "income").figures


def test_a_weight_column_is_no_column():
    table = people()
    table["times"] = np.arange(len(table)) % 3
    plainly = table.drop(columns="times")
    model = db.NaiveBayes().fit(plainly, "income")
    figures = report_of(model, table, "income", sample_weight="times").figures
    repeated = plainly.loc[plainly.index.repeat(table["times"])]
    expected = report_of(model, repeated, "income").figures
    values = [[metric["value"] for metric in result["quality"]["metrics"]] for result in (figures, expected)]
    np.testing.assert_allclose(*values, rtol=1e-12)
    assert figures["quality"]["confusion"] == expected["quality"]["confusion"]
    assert figures["head"]["evaluated"]["rows"] == table["times"].sum()


def test_wide_sparse_rows_show_the_most_telling():
    rng = np.random.default_rng(4)
    X = sp.random(80, 2100, density=0.01, format="csr", random_state=0, data_rvs=lambda n: rng.integers(1, 4, n))
    y = rng.integers(0, 2, 80)
    X = sp.csr_array(X + sp.csr_array((3.0 * y, (np.arange(80), np.full(80, 7))), shape=X.shape))
    for model in (db.NaiveBayes(), db.LogisticRegression(l2=1.0)):
        figures = report_of(model.fit(X, y), X, y).figures
        assert figures["evidence"]["ranking"][0]["name"] == "7"
        assert len(figures["evidence"]["columns"]) == 300
        assert len(figures["head"]["columns"]) == 300


def test_rows_are_shown_as_they_are():
    table = people()
    model = db.NaiveBayes().fit(table, "income")
    rows = report_of(model, table, "income", rows=40).figures["rows"]
    assert len(rows["numbers"]) == 40
    names = table.columns.drop("income")
    for number, label, cells in zip(rows["numbers"], rows["labels"], rows["cells"], strict=True):
        row = table.iloc[number]
        assert label == row["income"]
        assert cells == [None if pd.isna(row[name]) else row[name] for name in names]
    right = model.predict(table.iloc[rows["numbers"]]) == rows["labels"]
    assert {*zip(rows["labels"], right.tolist(), strict=True)} == {
        (c, r) for c in ("low", "high") for r in (True, False)
    }


def test_long_texts_are_few():
    texts = ["word " * 10_000, "other " * 10_000] * 20
    model = db.NaiveBayes(families=db.families.Text()).fit(texts, [0, 1] * 20)
    rows = report_of(model, texts, [0, 1] * 20).figures["rows"]
    assert 0 < len(json.dumps(rows)) <= 510_000
    assert 0 < len(rows["cells"]) < 40


# A report ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def report():
    X, y = iris()
    return report_of(db.NaiveBayes().fit(X, y), X, y)


def test_json_is_the_figures(report, tmp_path):
    assert json.loads(report.json()) == report.figures
    report.save(tmp_path / "iris.json")
    assert json.loads((tmp_path / "iris.json").read_text(encoding="utf-8")) == report.figures
    assert [path.name for path in tmp_path.iterdir()] == ["iris.json"]


def test_a_page_is_saved_and_shown(report, tmp_path):
    report.save(tmp_path / "iris.html")
    page = (tmp_path / "iris.html").read_text(encoding="utf-8")
    assert page == report.html()
    shown = report._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert shown.count('"') == 4  # those of the two attributes: all of the page's are escaped


def test_what_is_no_report_is_not_written(report, tmp_path):
    with pytest.raises(DecibanError, match=r"ends in \.html or \.json"):
        report.save(tmp_path / "iris.pdf")
    assert not list(tmp_path.iterdir())


def test_a_report_in_a_few_lines(report):
    lines = str(report).splitlines()
    assert lines[0].startswith("NaiveBayes predicts one of 3 classes from 4 features; on")
    assert any(line.split() == ["accuracy", "0.96"] for line in lines)
    assert isinstance(report, Report)


def test_what_cannot_be_reported_is_said():
    X, y = iris()
    model = db.NaiveBayes().fit(X, y)
    with pytest.raises(DecibanError, match="the target y is None: pass the labels"):
        report_of(model, X, None)
    with pytest.raises(DecibanError, match="150 rows, 149 labels"):
        report_of(model, X, y[1:])
    with pytest.raises(DecibanError, match="expecting 4 features"):
        report_of(model, X[:, :3], y)
    with pytest.raises(DecibanError, match="has no probabilities"):
        report_of(db.Halfspace().fit(X[:100], y[:100]), X[:100], y[:100])
