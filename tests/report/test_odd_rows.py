"""Reports of odd rows and settings: what is drawn is right, or a message says why there is no report."""

import decimal

import numpy as np
import pandas as pd
import pytest

import deciban as db
from deciban.errors import DecibanError
from deciban.report import report_of

F = db.families
N = 300


@pytest.fixture(scope="module")
def y():
    return np.random.default_rng(0).integers(0, 2, N)


def metric(figures, name):
    (figure,) = [one for one in figures["quality"]["metrics"] if one["name"] == name]
    return figure


def chart(figures, name):
    (figure,) = [column for column in figures["evidence"]["columns"] if column["name"] == name]
    return figure


# Weights -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [0.01, 3.0, 100.0])
def test_equal_weights_change_no_interval(y, weight):
    X = np.random.default_rng(1).normal(y)[:, np.newaxis]
    model = db.NaiveBayes().fit(X, y)
    plainly, weighed = (report_of(model, X, y, sample_weight=w).figures for w in (None, np.full(N, weight)))
    for name in ("accuracy", "auc"):
        for end in ("low", "high"):
            assert metric(weighed, name)[end] == pytest.approx(metric(plainly, name)[end], rel=1e-9)
    (before,), (after,) = (figures["quality"]["curves"] for figures in (plainly, weighed))
    assert after["auc_low"] == pytest.approx(before["auc_low"], rel=1e-9)


def test_few_heavy_rows_make_a_wide_interval(y):
    X = np.random.default_rng(2).normal(0.5 * y)[:, np.newaxis]
    model = db.NaiveBayes().fit(X, y)
    heavy = np.where(np.arange(N) % 20 == 0, 50.0, 1.0)
    plainly, weighed = (metric(report_of(model, X, y, sample_weight=w).figures, "auc") for w in (None, heavy))
    assert weighed["high"] - weighed["low"] > 2 * (plainly["high"] - plainly["low"])


# Numbers far from 0 --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model", [db.NaiveBayes(), db.NaiveBayes(F.Binned("equal-frequency")), db.EvidenceClassifier(trees=2)]
)
def test_numbers_far_from_0_are_told_apart(y, model):
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"time": 1.6e9 + 100 * rng.normal(y), "u": rng.normal(y)})
    figures = report_of(model.fit(table, y), table, y).figures
    figure = chart(figures, "time")
    assert len({row[0] for row in figure["evidence"]["rows"]}) > 5
    (about,) = [column for column in figures["head"]["columns"] if column["name"] == "time"]
    assert (about["low"], about["high"]) == (table["time"].min(), table["time"].max())
    points = {row[1] for row in figures["boundary"]["points"]["rows"]}
    assert len(points) == N


@pytest.mark.parametrize(
    "column",
    [
        1e17 + 16.0 * np.arange(N),
        np.full(N, 1e17),
        1e10 + 1e-6 * np.arange(N),
        np.where(np.arange(N) % 3, 1e308, -1e308),
        5e-324 * (np.arange(N) % 9),
    ],
    ids=["close", "constant", "digits", "huge", "tiny"],
)
def test_what_no_axis_holds_is_said(y, column):
    table = pd.DataFrame({"x": column, "ok": np.random.default_rng(4).normal(y)})
    model = db.NaiveBayes(F.Binned()).fit(table, y)
    figures = report_of(model, table, y).figures
    assert figures["boundary"] is None
    assert any("'x' cannot be drawn" in note for note in figures["head"]["notes"])
    with pytest.raises(DecibanError, match="'x' cannot be drawn"):
        model.plot_boundary(table, y)


# Twins and refusals --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", [F.Poisson(), F.Bernoulli(), F.Categorical(), F.Binned("equal-frequency", count=2)])
def test_a_twin_is_asked_what_its_family_takes(y, family):
    rng = np.random.default_rng(5)
    k = rng.integers(0, 2, N) if isinstance(family, F.Bernoulli) else rng.poisson(1 + 2 * y)
    table = pd.DataFrame({"k": k, "z": rng.normal(size=N)})
    model = db.NaiveBayes({"k": family}).fit(table, y)
    whole, twin = (report_of(one, table, y).figures for one in (model, model.to_linear()))
    ours, theirs = ({row[0]: row for row in chart(figures, "k")["evidence"]["rows"]} for figures in (whole, twin))
    place = chart(whole, "k")["evidence"]["fields"].index("decibans")
    assert ours.keys() == theirs.keys()
    assert [row[place] for row in theirs.values()] == pytest.approx([row[place] for row in ours.values()], rel=1e-4)


def test_a_missing_cell_that_is_refused_is_not_asked(y):
    table = pd.DataFrame({"a": np.array(list("abc"))[np.arange(N) % 3], "z": np.random.default_rng(6).normal(y)})
    model = db.NaiveBayes(missing="category", unseen="error").fit(table, y)
    assert len(chart(report_of(model, table, y).figures, "a")["evidence"]["rows"]) == 3


def test_a_text_may_be_called_missing(y):
    table = pd.DataFrame({"a": np.array(["(missing)", None, "b"], dtype=object)[np.arange(N) % 3 * y]})
    model = db.NaiveBayes(missing="category").fit(table, y)
    figure = chart(report_of(model, table, y).figures, "a")
    names = [row[0] for row in figure["evidence"]["rows"]]
    assert sorted(names) == ["(missing)", "(missing) 2", "b"]
    assert sorted(row[0] for row in figure["density"]["rows"]) == sorted(names * 2)


def test_decimals_are_numbers(y):
    table = pd.DataFrame({"d": [decimal.Decimal(i % 7) / 2 for i in range(N)], "z": np.random.default_rng(7).normal(y)})
    for family in (None, {"d": F.Categorical()}):
        report = report_of(db.NaiveBayes(family).fit(table, y), table, y)
        row = report.figures["rows"]["numbers"][0]
        assert report.figures["rows"]["cells"][0][0] == float(table["d"][row])
        assert '"d"' in report.json()


# Settings ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "setting", [{"random_state": -1}, {"random_state": 10**23}, {"rows": -1}, {"rows": 2.5}, {"rows": None}]
)
def test_settings_that_are_no_whole_number(y, setting):
    X = np.random.default_rng(8).normal(y)[:, np.newaxis]
    model = db.NaiveBayes().fit(X, y)
    (name,) = setting
    with pytest.raises(DecibanError, match=f"{name} must be a whole number of 0 or more"):
        model.report(X, y, **setting)


def test_more_rows_than_were_learned_were_not_learned(y):
    X = np.random.default_rng(9).normal(y)[:, np.newaxis]
    model = db.NaiveBayes().fit(X, y)
    with pytest.raises(DecibanError, match=r"held_out=False, but class '0' has .*, and the model was fitted to"):
        model.report(np.vstack([X, X]), np.tile(y, 2), held_out=False)
    assert model.report(X[:50], y[:50], held_out=False).figures["quality"]["how"] == "leave-one-out"


def test_a_model_that_is_not_fitted_has_no_report(y):
    for model in (db.NaiveBayes(), db.CalibratedClassifier(), db.LogisticRegression()):
        with pytest.raises(ValueError, match=r"not fitted|call fit first"):
            model.report([[1.0]], [0])


def test_classes_and_columns_are_found_by_what_they_are(y):
    X = np.random.default_rng(10).normal(y)[:, np.newaxis]
    report = db.NaiveBayes().fit(X, y).report(X, y)
    assert report.plot_column(0, pos_label=1).to_dict() == report.plot_column("0", pos_label="1").to_dict()


def test_a_row_that_is_not_there_is_said(y):
    X = np.random.default_rng(11).normal(y)[:, np.newaxis]
    explanation = db.NaiveBayes().fit(X, y).explain(X[:3])
    for row in (3, -4):
        with pytest.raises(DecibanError, match=f"there is no row {row}; there are 3"):
            explanation.plot(row)


@pytest.mark.parametrize("place", ["label", "level", "array"])
def test_half_a_character_is_no_text(place):
    half = "x\ud800"
    given = {
        "label": ([[1.0], [2.0]], [half, "b"]),
        "level": (pd.DataFrame({"a": [half, "b"]}, dtype=object), [0, 1]),
        "array": (np.array([[half, 1], ["b", 2]], dtype=object), [0, 1]),
    }
    with pytest.raises(DecibanError, match="holds a lone surrogate: decode it again"):
        db.NaiveBayes().fit(*given[place])
