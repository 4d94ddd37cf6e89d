"""Posteriors equal those of R's e1071 and MASS, whose numbers are in tests/references."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, load_wine

import deciban as db

DIRECTORY = Path(__file__).parent.parent / "references"
CLOSE = 1e-9
LOAD = {"iris": load_iris, "wine": load_wine}


def reference(name):
    return json.loads((DIRECTORY / f"{name}.json").read_text())


def labelled(name):
    data = LOAD[name]()
    return data.data, data.target_names[data.target].astype(str)


def same_posterior(model, rows, expected, classes):
    expected = np.array(expected)
    assert model.classes_.tolist() == classes
    np.testing.assert_allclose(model.predict_proba(rows), expected, rtol=0, atol=CLOSE)
    # small probabilities too, where R's own are not lost to underflow
    shown = expected > 1e-200
    np.testing.assert_allclose(model.predict_log_proba(rows)[shown], np.log(expected[shown]), rtol=CLOSE, atol=CLOSE)


def test_iris_posterior_is_that_of_e1071():
    expected = reference("naive_bayes")["iris"]
    x, y = labelled("iris")
    model = db.NaiveBayes(families=db.families.Gaussian(ddof=1)).fit(x, y)
    same_posterior(model, x, expected["posterior"], expected["classes"])
    tables = [table for table in model.summary().tables[1:] if table.title != "features"]
    np.testing.assert_allclose([[row[1] for row in t.rows] for t in tables], np.transpose(expected["mean"]), rtol=1e-12)
    np.testing.assert_allclose([[row[2] for row in t.rows] for t in tables], np.transpose(expected["sd"]), rtol=1e-12)


@pytest.mark.parametrize("laplace", [1, 3])
def test_votes_with_missing_cells_have_the_posterior_of_e1071(laplace):
    expected = reference("naive_bayes")["votes"]
    cells = np.array([list(row) for row in expected["rows"]], dtype=object)
    votes = pd.DataFrame(np.where(cells == "?", None, cells)).add_prefix("V")
    assert votes.isna().to_numpy().sum() > 100
    model = db.NaiveBayes(smoothing=laplace).fit(votes, expected["labels"])
    same_posterior(model, votes, expected[f"posterior_laplace_{laplace}"], expected["classes"])


@pytest.mark.parametrize(("covariance", "function"), [("shared", "lda"), ("per-class", "qda")])
@pytest.mark.parametrize("name", ["iris", "wine"])
def test_discriminant_posterior_is_that_of_mass(name, covariance, function):
    expected = reference("discriminant")[name]
    x, y = labelled(name)
    model = db.GaussianDiscriminant(covariance, ddof="unbiased").fit(x, y)
    assert model.status_ == "ok"
    same_posterior(model, x, expected[function], expected["classes"])
