"""A family is added by its own file and one line of the registry: all else follows from the class."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

import deciban as db
from deciban.errors import forbid
from deciban.export.formulas import Curve
from deciban.families import FAMILIES, Context, Family, Registered, Table
from deciban.families.family import class_rows
from deciban.statistics import Moments
from deciban.types import FloatArray, Labels
from tests.cli.runs import NAIVE_BAYES, run


@dataclass(frozen=True)
class RayleighParams:
    scale: FloatArray  # (K, d) σ²


@dataclass(frozen=True)
class Rayleigh(Family[Moments, RayleighParams]):
    """p(x|c) = x/σ² exp(−x²/2σ²) for x > 0, with σ² = Σx²/2n; log x is common to all classes and is left out."""

    def collect(self, values: Any, labels: Labels, weights: FloatArray | None, classes: int) -> Moments:
        self.check(values)
        return Moments.of(values, labels, weights, classes)

    def check(self, values: Any) -> None:
        forbid(values <= 0, "is not above 0")

    def estimate(self, statistic: Moments, context: Context) -> RayleighParams:
        count, mean = statistic.count.value, statistic.mean
        return RayleighParams((statistic.squares / count + mean**2) / 2)

    def add_log_density(self, params: RayleighParams, values: Any, out: FloatArray) -> None:
        self.check(values)
        x = values[:, :, np.newaxis]
        log_p = -np.log(params.scale.T) - x**2 / (2 * params.scale.T)
        out += np.where(np.isnan(x), 0.0, log_p).sum(axis=1)

    def n_parameters(self, params: RayleighParams) -> int:
        return params.scale.size

    def formula(self, params: RayleighParams) -> list[Curve]:
        columns = tuple(range(params.scale.shape[1]))
        scale, middle = params.scale.T, np.zeros(params.scale.T.shape)
        return [Curve(columns, middle, constant=-np.log(scale), square=-0.5 / scale)]

    def describe(self, params: RayleighParams, context: Context) -> list[Table]:
        rows = [class_rows(context, [column]) for column in params.scale.T]
        names = map(str, context.columns)
        return [Table(f"{name} (Rayleigh)", ("class", "scale"), row) for name, row in zip(names, rows, strict=True)]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    sea = np.repeat(["calm", "rough"], 20)
    height = rng.rayleigh(np.where(sea == "calm", 1.0, 2.0))
    return pd.DataFrame({"height": height, "wind": rng.normal(size=40), "sea": sea})


@pytest.fixture
def model(monkeypatch, rows):
    monkeypatch.setitem(FAMILIES, "Rayleigh", Registered(__name__, "rayleigh"))
    return db.NaiveBayes({"height": Rayleigh()}).fit(rows, "sea")


def log_density(scale, x):
    return np.log(x / scale) - x**2 / (2 * scale)


def test_explanations_are_differences_of_log_densities(model, rows):
    x = rows["height"].iloc[[0]].to_numpy()
    calm, rough = ((rows.height[rows.sea == sea] ** 2).mean() / 2 for sea in ("calm", "rough"))
    evidence = model.explain(rows[["height", "wind"]].iloc[[0]]).to_frame(pos_label="calm").to_pandas()
    decibans = evidence.set_index("feature").decibans["height"]
    assert decibans == pytest.approx(10 / np.log(10) * (log_density(calm, x) - log_density(rough, x)).item())


def test_leave_one_out_is_a_refit_without_the_row(model, rows):
    losses = []
    for i in range(len(rows)):
        rest = model.empty_copy().fit(rows.drop(index=i), "sea")
        p = rest.predict_proba(rows[["height", "wind"]].iloc[[i]])[0]
        losses.append(-np.log(p[rest.classes_.tolist().index(rows.sea[i])]))
    assert model.leave_one_out(rows, "sea").log_loss == pytest.approx(np.mean(losses), rel=1e-9)


def test_a_saved_model_predicts_the_same(model, rows, tmp_path):
    model.save(tmp_path / "model.deciban")
    loaded = db.load(tmp_path / "model.deciban")
    assert Rayleigh() in loaded.families_.values()
    np.testing.assert_array_equal(loaded.predict_proba(rows), model.predict_proba(rows))


def test_a_cell_outside_its_domain_is_named(model, rows):
    with pytest.raises(db.DecibanError, match=r"'height'.*row 3.*is not above 0"):
        model.predict(rows.assign(height=rows.height.where(rows.index != 3, -1.0)))


def test_the_report_scores_by_its_formula(model, rows):
    figures = json.loads(model.report(rows, "sea").json())
    assert "Rayleigh" in json.dumps(figures)


def test_the_command_line_fits_it(model, rows, tmp_path):
    rows.to_csv(tmp_path / "rows.csv", index=False)
    words = ["--columns", "height=rayleigh,wind=gaussian"]
    run("fit", tmp_path / "rows.csv", "--label", "sea", *NAIVE_BAYES, *words, "-o", tmp_path / "model.deciban", "-q")
    loaded = db.load(tmp_path / "model.deciban")
    np.testing.assert_array_equal(loaded.predict_proba(rows), model.predict_proba(rows))
    assert "Rayleigh" in run("show", tmp_path / "model.deciban").stdout
    run("report", tmp_path / "model.deciban", tmp_path / "rows.csv", "-o", tmp_path / "report.html", "-q")
    assert b"Rayleigh" in (tmp_path / "report.html").read_bytes()


def test_a_family_that_is_not_registered_is_not_saved(rows, tmp_path):
    model = db.NaiveBayes({"height": Rayleigh()}).fit(rows, "sea")
    with pytest.raises(db.DecibanError, match="a model file holds the classes of deciban"):
        model.save(tmp_path / "model.deciban")
