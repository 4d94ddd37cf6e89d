"""`deciban report`."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import confusion_matrix, log_loss

import deciban as db
from tests.cli.runs import FEATURES, people, refused, run, write_people


@pytest.fixture
def office(tmp_path, monkeypatch):
    """A model, its training rows, and others."""
    monkeypatch.chdir(tmp_path)
    write_people(tmp_path, "naive-bayes")
    return tmp_path


def figures(*args):
    return json.loads(run("report", "m.deciban", *args, "--json").stdout)


@pytest.mark.parametrize(("args", "name"), [(["-o", "page.html"], "page.html"), ([], "report.html")])
def test_a_page_is_written_and_said(args, name, office):
    said = run("report", "m.deciban", "later.csv", *args).stdout
    assert "NaiveBayes predicts `evade` from 4 features" in said
    assert f"written: {name}" in said
    page = (office / name).read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "<title>NaiveBayes of evade</title>" in page


def test_json_holds_the_figures_and_writes_no_page(office):
    shown = figures("later.csv")
    later, model = pd.read_csv("later.csv"), db.load("m.deciban")
    proba = model.predict_proba(later[FEATURES])
    metrics = {metric["name"]: metric["value"] for metric in shown["quality"]["metrics"]}
    assert metrics["log_loss"] == pytest.approx(log_loss(later.evade, proba, labels=["no", "yes"]), rel=1e-9)
    assert shown["quality"]["confusion"] == confusion_matrix(later.evade, model.predict(later[FEATURES])).tolist()
    assert shown["quality"]["how"] == "held-out"
    assert [column["name"] for column in shown["head"]["columns"]] == FEATURES
    assert not (office / "report.html").exists()


def test_json_and_page_are_the_same_figures(office):
    printed = run("report", "m.deciban", "later.csv", "--json", "-o", "figures.json").stdout
    assert json.loads(printed) == json.loads((office / "figures.json").read_text(encoding="utf-8"))


def test_learned_rows_are_left_out(office):
    shown = figures("people.csv", "--training-rows")
    rows = pd.read_csv("people.csv")
    model = db.load("m.deciban")
    judged = model.leave_one_out(rows[FEATURES], rows.evade.to_numpy(dtype=object))
    metrics = {metric["name"]: metric["value"] for metric in shown["quality"]["metrics"]}
    assert shown["quality"]["how"] == "leave-one-out"
    assert metrics["log_loss"] == pytest.approx(judged.log_loss, rel=1e-12)
    assert any("--training-rows" in note for note in figures("people.csv")["head"]["notes"])


def test_rows_may_stay_out_of_the_page(office):
    assert figures("later.csv", "--rows", "0")["rows"]["cells"] == []
    assert len(figures("later.csv", "--rows", "7")["rows"]["cells"]) == 7
    chosen = [figures("later.csv", "--rows", "7", "--random-state", seed)["rows"]["numbers"] for seed in (1, 1, 2)]
    assert chosen[0] == chosen[1] != chosen[2]


def test_weights_count(office):
    later = pd.read_csv("later.csv")
    later["w"] = np.arange(len(later)) % 3
    later.to_csv("weighted.csv", index=False)
    shown = figures("weighted.csv", "--weight", "w")
    assert np.sum(shown["quality"]["confusion"]) == later.w.sum()


def test_a_response_that_is_a_number(office):
    rows = people(200).drop(columns=["id", "evade"])
    rows["claims"] = np.random.default_rng(1).poisson(2 + rows.member)
    rows.to_csv("claims.csv", index=False)
    db.GeneralizedLinearModel("poisson").fit(rows, "claims").save("m.deciban")
    shown = figures("claims.csv")
    assert shown["kind"] == "numbers"
    assert shown["linear"]["coefficients"][0]["rows"]["rows"]
    run("report", "m.deciban", "claims.csv", "-o", "page.html")


def test_exposure_is_counted_in(office):
    """With twice the years twice the claims: as `predict_mean` says."""
    rng = np.random.default_rng(1)
    rows = people(200)[["age", "member"]].assign(years=rng.integers(1, 9, 200))
    rows["claims"] = rng.poisson(rows.years * (0.3 + 0.5 * rows.member))
    rows.to_csv("claims.csv", index=False)
    model = db.GeneralizedLinearModel("poisson").fit(rows, "claims", exposure="years")
    model.save("m.deciban")
    error = rows.claims - model.predict_mean(rows[["age", "member"]], exposure=rows.years)
    for shown in (
        figures("claims.csv", "--exposure", "years"),
        model.report(rows, "claims", exposure="years").figures,
        model.report(rows[["age", "member"]], rows.claims, exposure=rows.years.to_numpy()).figures,
    ):
        metrics = {metric["name"]: metric["value"] for metric in shown["quality"]["metrics"]}
        assert metrics["rmse"] == pytest.approx(np.sqrt((error**2).mean()), rel=1e-9)
        assert metrics["deviance_explained"] == pytest.approx(model.score(rows, "claims", exposure="years"), rel=1e-9)
        assert "include the exposure of rows" in shown["quality"]["sentence"]
    weights = np.arange(200) % 2
    shown = model.report(rows, "claims", exposure=rows.years.to_numpy(), sample_weight=weights).figures
    metrics = {metric["name"]: metric["value"] for metric in shown["quality"]["metrics"]}
    assert metrics["rmse"] == pytest.approx(np.sqrt((error[weights > 0] ** 2).mean()), rel=1e-9)
    assert "there is no column 'x'" in run("report", "m.deciban", "claims.csv", "--offset", "x", code=1).stderr


def test_errors_are_raised_before_long_work(office):
    for args, message in (
        (["later.csv", "-o", "page.pdf"], "page.pdf: the name must end with .html, for a page, or .json"),
        (["later.csv", "--label", "nothing"], "--label: there is no column 'nothing'"),
        (["later.csv", "--label", "income"], "--label: 'income' is a feature of the model"),
        (["later.csv", "-o", "nowhere/page.html"], "nowhere"),
        (["later.csv", "--exposure", "age"], "offset and exposure are for regression only"),
        (["missing.csv"], "missing.csv"),
    ):
        assert message in refused("report", "m.deciban", *args)


def test_labels_that_the_model_does_not_know(office):
    pd.read_csv("later.csv").assign(evade="other").to_csv("other.csv", index=False)
    assert "none of the labels is a class of the model" in refused("report", "m.deciban", "other.csv")


def test_without_altair_the_figures_are_still_there(office, monkeypatch):
    for name in ("altair", "vl_convert"):
        monkeypatch.setitem(sys.modules, name, None)
    assert figures("later.csv")["quality"]["how"] == "held-out"
    assert "pip install 'deciban[plot]'" in refused("report", "m.deciban", "later.csv")
    assert not (office / "report.html").exists()
