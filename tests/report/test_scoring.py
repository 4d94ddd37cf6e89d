"""scoring.js against Python: probabilities, names and nats of every family and classifier, row by row."""

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import deciban as db
from deciban.families import (
    Bernoulli,
    Binned,
    Categorical,
    Exponential,
    Gaussian,
    Multinomial,
    MultivariateGaussian,
    Poisson,
    Uniform,
)
from deciban.report.scoring import scoring
from tests.report.browser import browser_page

__all__ = ["browser_page"]
pytestmark = pytest.mark.xdist_group("browser")

SCRIPTS = Path(db.__file__).parent / "report" / "page"
SCORE = "async ([scoring, rows]) => { const s = await Scoring.load(JSON.parse(scoring)); return rows.map(s.score); }"
READ = "([column, texts]) => texts.map((text) => Scoring.read(column, text))"


@pytest.fixture(scope="module")
def page(browser_page):
    for name in ("terms.js", "scoring.js"):
        browser_page.add_script_tag(content=(SCRIPTS / name).read_text())
    return browser_page


def cells_of(table):
    """Rows as JSON has them: numbers, text, booleans and null."""
    if isinstance(table, list):
        return [[cell] for cell in table]
    columns = [[None if pd.isna(cell) else plain(cell) for cell in table[name]] for name in table]
    return [list(row) for row in zip(*columns, strict=True)]


def plain(cell):
    return cell.item() if isinstance(cell, np.generic) else cell


def in_page(page, model, rows):
    packed = json.dumps(scoring(model), allow_nan=False)
    return page.evaluate(SCORE, [packed, rows])


def row_of(table, i):
    return table[i : i + 1] if isinstance(table, list) else table.iloc[i : i + 1]


@pytest.fixture
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", db.DecibanWarning)
        yield


def assert_same(page, model, table, explained=True):
    """What the page says of all rows is what the model says."""
    found = in_page(page, model, cells_of(table))
    assert [one.get("problem") for one in found] == [None] * len(found)
    proba = np.array([one["proba"] for one in found])
    np.testing.assert_allclose(proba, model.predict_proba(table), rtol=0, atol=1e-9)
    assert [one["predicted"] for one in found] == np.searchsorted(model.classes_, model.predict(table)).tolist()
    for i, one in enumerate(found) if explained else ():
        told = model.explain(row_of(table, i))
        assert one["names"] == list(told.names)
        np.testing.assert_allclose(np.array(one["nats"]), told.nats[0], rtol=1e-12, atol=1e-9)
        np.testing.assert_allclose(np.array(one["joint"]), told.joint[0], rtol=1e-12, atol=1e-9)


# Tables --------------------------------------------------------------------------------------------------------------


def holed(column, rng, share=0.15):
    """With missing cells here and there."""
    return pd.Series(column).astype(object).where(rng.random(len(column)) > share, None)


def mixed_table(seed, rows=60, new=False):
    """Columns of all kinds, with holes; new rows have values never seen and numbers far out."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, rows)
    colours = np.array(["red", "blue", "green", "", "gr\u00fcn"] + ["never seen"] * new)
    numbers = rng.normal(y, 1.0, rows)
    if new:
        numbers[:4] = [1e3, -1e3, 0.0, 1e-300]
    columns = {
        "size": holed(numbers, rng).astype(float),
        "colour": holed(colours[(rng.integers(0, len(colours), rows) + y) % len(colours)], rng),
        "flag": holed(rng.random(rows) < 0.2 + 0.3 * y, rng).astype("boolean"),
        "calls": holed(rng.poisson(1.0 + y), rng).astype(float),
        "wait": holed(rng.exponential(1.0 + y) + 1e-3, rng).astype(float),
        "code": holed(rng.integers(0, 4 + new, rows), rng).astype(float),
        "even": rng.integers(0, 2, rows).astype(float),
        "same": np.ones(rows),
    }
    return pd.DataFrame(columns), np.array(["a", "b", "c"])[y]


ONE_EACH = {
    "size": Gaussian(),
    "colour": Categorical(),
    "flag": Bernoulli(),
    "calls": Poisson(),
    "wait": Exponential(),
    "code": Categorical(),
    "even": Bernoulli(threshold=0.25),
}
FAMILIES = {
    "by kind": None,
    "one each": ONE_EACH,
    "priors": {
        "size": Gaussian(ddof=1, mean=db.priors.Normal(0.0, 1.0), variance=db.priors.InverseGamma(2.0, 1.0)),
        "colour": Categorical(prior=db.priors.Virtual(3.0)),
        "calls": Poisson(prior=db.priors.Virtual(2.0)),
        "wait": Exponential(prior=db.priors.Virtual(2.0)),
        "flag": Bernoulli(prior=db.priors.Laplace(0.5)),
    },
    "bins": {"size": Binned(), "calls": Binned("equal-width", count=4), "wait": Binned("equal-frequency", count=3)},
    "uniform": {"size": Uniform(), "wait": Uniform(), "same": Uniform()},
    "joint": {("size", "wait", "same"): MultivariateGaussian(), ("calls", "even"): MultivariateGaussian("per-class")},
    "words": {("calls", "even"): Multinomial(), "size": Gaussian()},
    "chosen": "auto",
}


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("missing", ["skip", "category"])
@pytest.mark.parametrize("unseen", ["skip", "reserve"])
@pytest.mark.parametrize("families", FAMILIES)
def test_naive_bayes(page, families, unseen, missing):
    X, y = mixed_table(1, rows=200)
    model = db.NaiveBayes(FAMILIES[families], unseen=unseen, missing=missing, class_prior="laplace").fit(X, y)
    assert_same(page, model, mixed_table(2, new=True)[0])


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("covariance", ["shared", "per-class", "diagonal"])
@pytest.mark.parametrize("holes", [0.0, 0.3])
def test_gaussian_discriminant(page, covariance, holes):
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(size=(150, 4)) @ rng.normal(size=(4, 5)), columns=list("abcde"))  # singular
    X["f"], X["g"] = rng.normal(size=150), 2.0
    y = rng.integers(0, 3, 150)
    X.loc[y == 1, "b"] += 2.0
    model = db.GaussianDiscriminant(covariance, shrinkage=0.1 if covariance != "diagonal" else None).fit(X, y)
    rows = X[:60].mask(rng.random((60, 7)) < holes)
    rows.iloc[0] = np.nan
    assert_same(page, model, rows)


EVIDENCE = {
    "default": {},
    "pairs": {"pairs": 3, "trees": 0},
    "trees": {"pairs": 0, "trees": 5},
    "prior": {"class_prior": "uniform"},
}


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("settings", EVIDENCE)
def test_evidence_classifier(page, settings):
    X, y = mixed_table(4, rows=400)
    model = db.EvidenceClassifier(**EVIDENCE[settings]).fit(X, y)
    assert_same(page, model, mixed_table(5, new=True)[0])
