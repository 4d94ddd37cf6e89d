"""A response is added by its own file and one line of the registry: everything else follows from the class."""

from __future__ import annotations

import json
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

import deciban as db
from deciban.linear.responses import RESPONSES, Response
from tests.cli.runs import run


class Geometric(Response):
    """p(y) = (1 − q) q^y: η = log q < 0, a(η) = −log(1 − e^η); the mean is q/(1 − q)."""

    name: ClassVar[str] = "geometric"
    link: ClassVar[str] = "log odds"
    positive: ClassVar[bool] = True
    javascript_mean: ClassVar[str] = "eta < 0 ? 1 / Math.expm1(-eta) : Infinity"

    def log_base(self, y):
        return np.zeros(len(y))

    def log_partition(self, eta):
        with np.errstate(divide="ignore"):
            return -np.log(-np.expm1(np.minimum(eta[:, 0], 0.0)))

    def natural(self, mean):
        return -np.log1p(1.0 / mean)

    def mean(self, eta):
        return 1.0 / np.expm1(-eta)

    def variance(self, mean, i, j):
        return (mean * (1.0 + mean))[:, 0]

    def saturated(self, statistic):
        y = statistic[:, 0]
        return y * np.log(np.maximum(y, 1.0) / (1.0 + y)) - np.log1p(y)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    group = np.repeat(["a", "b"], 60)
    return pd.DataFrame({"group": group, "failures": rng.geometric(np.where(group == "a", 0.5, 0.2)) - 1})


@pytest.fixture
def model(monkeypatch, rows):
    monkeypatch.setitem(RESPONSES, "geometric", Geometric)
    return db.GeneralizedLinearModel("geometric").fit(rows, "failures")


def test_fit_estimates_the_mean_of_each_group(model, rows):
    expected = rows.groupby("group")["failures"].transform("mean")
    np.testing.assert_allclose(model.predict(rows[["group"]]), expected, rtol=1e-9)
    assert model.status_ == "ok"


def test_summary_names_the_response_and_its_link(model):
    text = str(model.summary())
    assert text.startswith("GeneralizedLinearModel: geometric response, log odds link, 120 rows, 2 parameters")
    assert "std. error" in text


def test_a_saved_model_predicts_the_same(model, rows, tmp_path):
    model.save(tmp_path / "model.deciban")
    loaded = db.load(tmp_path / "model.deciban")
    assert isinstance(loaded.response_, Geometric)
    np.testing.assert_array_equal(loaded.predict(rows[["group"]]), model.predict(rows[["group"]]))


def test_the_report_predicts_by_the_expression_of_the_response(model, rows):
    figures = json.loads(model.report(rows, "failures").json())
    assert Geometric.javascript_mean in json.dumps(figures)


def test_the_command_line_shows_and_reports_it(model, rows, tmp_path):
    model.save(tmp_path / "model.deciban")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    assert "geometric response" in run("show", tmp_path / "model.deciban").stdout
    run("report", tmp_path / "model.deciban", tmp_path / "rows.csv", "-o", tmp_path / "report.html", "-q")
    assert b"1 / Math.expm1(-eta)" in (tmp_path / "report.html").read_bytes()
