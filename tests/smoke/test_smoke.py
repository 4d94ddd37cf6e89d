"""An installation works: fit, predict, explain, save, load, and the command. Needs deciban and pytest, nothing else."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import deciban as db

MODELS = [
    db.EvidenceClassifier(),
    db.NaiveBayes(),
    db.NaiveBayes(families="auto", smoothing="auto"),
    db.GaussianDiscriminant("per-class"),
    db.LogisticRegression(l2=1.0),
]


def two_groups(rows=200):
    """Rows of two classes, four standard deviations apart in each of two features."""
    rng = np.random.default_rng(0)
    y = np.arange(rows) % 2
    return rng.normal(4.0 * y[:, None], 1.0, (rows, 2)), np.array(["no", "yes"])[y]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_fit_predict_explain_save_load(model, tmp_path):
    X, y = two_groups()
    model.fit(X, y)
    probabilities = model.predict_proba(X)
    assert (model.predict(X) == y).mean() > 0.95
    np.testing.assert_allclose(probabilities.sum(1), 1.0)
    log_odds = 10 * np.log10(probabilities[0].max() / probabilities[0].min())
    decibans = model.explain(X[:1]).to_frame()["decibans"].to_numpy()
    np.testing.assert_allclose(decibans.sum(), log_odds, rtol=1e-6)
    model.save(tmp_path / "m.deciban")
    np.testing.assert_array_equal(db.load(tmp_path / "m.deciban").predict_proba(X), probabilities)


def test_sums_are_exact():
    X, y = two_groups()
    whole = db.NaiveBayes().fit(X, y)
    parts = db.NaiveBayes().fit(X[:77], y[:77]) + db.NaiveBayes().fit(X[77:], y[77:])
    np.testing.assert_array_equal(parts.predict_proba(X), whole.predict_proba(X))


def test_a_table_of_text_numbers_and_missing_values():
    table = pa.table({"color": ["red", None, "blue", "blue"] * 9, "size": [1.0, 2.0, None, 9.0] * 9})
    model = db.NaiveBayes().fit(table, ["a", "a", "b", "b"] * 9)
    assert model.predict(table).tolist()[:4] == ["a", "a", "b", "b"]


def test_text():
    model = db.NaiveBayes().fit(
        ["free prize now", "lunch at noon", "claim a prize", "notes of the meeting"], [1, 0, 1, 0]
    )
    assert model.predict(["a free prize", "the meeting at noon"]).tolist() == [1, 0]


def test_the_command(tmp_path):
    X, y = two_groups()
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("left", "right", "label"), *((*x, label) for x, label in zip(X, y, strict=True))])

    def deciban(*args):
        program = Path(sys.executable).with_name("deciban")
        environment = os.environ | {"PYTHONIOENCODING": "utf-8"}
        done = subprocess.run([program, *args], cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8")
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert deciban("--version").startswith(f"deciban {db.__version__}\n")
    deciban("fit", "rows.csv", "--label", "label", "-o", "m.deciban")
    assert json.loads(deciban("evaluate", "m.deciban", "rows.csv", "--json"))["metrics"]["accuracy"] > 0.95
    assert "proba_yes" in deciban("predict", "m.deciban", "rows.csv")
    assert "right" in deciban("explain", "m.deciban", "rows.csv", "--row", "1")
