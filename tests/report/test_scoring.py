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
    Text,
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


def assert_same(page, model, table, *, explained=True):
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


# Texts ---------------------------------------------------------------------------------------------------------------


def texts(seed, rows):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    words = np.array(
        ["buy", "drugs", "\u00a31,000", "today", "don't", "Stra\u00dfe", "\u65e5\u672c", "http://a.example/x"]
    )
    found = [" ".join(rng.choice(words[: 5 + 3 * c], rng.integers(0, 9))) for c in y]
    return [None if rng.random() < 0.1 else text for text in found], np.array(["ham", "spam"])[y]


TEXTS = {
    "multinomial": Text(),
    "bernoulli": Text("bernoulli", words=(1, 2)),
    "complement": Text("complement", characters=(2, 3)),
    "shapes": Text(shapes=True, max_terms=7),
    "numbers": Text(characters=(1, 2), hash_bits=6),
}


@pytest.mark.parametrize("missing", ["skip", "category"])
@pytest.mark.parametrize("family", TEXTS)
def test_documents(page, family, missing):
    model = db.NaiveBayes(TEXTS[family], missing=missing).fit(*texts(6, 100))
    assert_same(page, model, [*texts(7, 60)[0], "", "nothing known", "buy buy buy"])


@pytest.mark.usefixtures("quiet")
def test_terms_without_which_a_class_is_impossible(page):
    mails, y = ["buy now", "buy book", "math now", "math"], [0, 0, 1, 1]
    model = db.NaiveBayes(Text("bernoulli"), smoothing=0.0).fit(mails, y)
    assert_same(page, model, ["buy", "math", "book", "", None, "buy math", "buy now book"] * 8)


@pytest.mark.usefixtures("quiet")
def test_texts_of_several_columns_beside_numbers(page):
    def table(seed, rows):
        subject, y = texts(seed, rows)
        size = np.random.default_rng(seed).normal(size=rows) + (y == "spam")
        return pd.DataFrame({"subject": subject, "body": texts(seed + 50, rows)[0], "size": size}), y

    X, y = table(8, 120)
    joined = db.NaiveBayes({("subject", "body"): Text("bernoulli")}).fit(X, y)
    weighed = db.EvidenceClassifier(text=["subject", "body"], trees=8).fit(X, y)
    for model in (joined, weighed):
        assert_same(page, model, table(9, 60)[0])


def test_documents_weighed(page):
    model = db.EvidenceClassifier().fit(*texts(10, 200))
    assert_same(page, model, texts(11, 60)[0])


# Linear models -------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("classes", ["two", "three"])
@pytest.mark.parametrize("kind", [db.LogisticRegression, db.SoftmaxRegression])
def test_linear_classifiers(page, kind, classes):
    X, y = mixed_table(12, rows=200)
    y = np.where(y == "c", "b", y) if classes == "two" else y
    assert_same(page, kind(l2=1.0).fit(X, y), mixed_table(13, new=True)[0])


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("missing", ["skip", "category"])
@pytest.mark.parametrize("families", ["by kind", "one each", "bins", "words"])
def test_twins(page, families, missing):
    X, y = mixed_table(14, rows=200)
    model = db.NaiveBayes(FAMILIES[families], missing=missing, unseen="reserve").fit(X, y)
    rows = mixed_table(15, new=True)[0]
    twin = model.twin()
    assert_same(page, twin, rows)
    assert_same(page, twin.polish(X, y), rows)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("covariance", ["shared", "per-class"])
def test_twins_of_joint_densities(page, covariance):
    rng = np.random.default_rng(16)
    X, y = rng.normal([0.0, 1e3, 0.0], size=(100, 3)), rng.integers(0, 3, 100)
    twin = db.GaussianDiscriminant(covariance).fit(X, y).twin()
    rows = pd.DataFrame(X[:60])
    assert_same(page, twin, rows.rename(columns=str))
    (found,) = in_page(page, twin, [[1.0, None, 2.0]])
    assert "missing" in found["problem"]


@pytest.mark.parametrize("family", ["multinomial", "bernoulli", "numbers"])
def test_twins_of_texts(page, family):
    twin = db.NaiveBayes(TEXTS[family]).fit(*texts(17, 100)).twin()
    assert_same(page, twin, texts(18, 60)[0])


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("family", ["gaussian", "poisson", "exponential"])
def test_means_of_generalized_linear_models(page, family):
    X, y = mixed_table(19, rows=200)
    response = np.random.default_rng(19).poisson(3.0, 200) + (y == "a") + 1.0
    model = db.GeneralizedLinearModel(family, l2=1.0).fit(X, response)
    rows = mixed_table(20)[0]
    found = in_page(page, model, cells_of(rows))
    np.testing.assert_allclose([one["mean"] for one in found], model.predict_mean(rows), rtol=1e-9, atol=1e-9)
    eta = model.response_.natural(model.predict_mean(rows))
    np.testing.assert_allclose([np.sum(one["nats"]) for one in found], eta, rtol=1e-9, atol=1e-9)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("family", ["bernoulli", "multinomial"])
def test_classes_of_generalized_linear_models(page, family):
    X, y = mixed_table(21, rows=200)
    y = np.where(y == "c", "b", y) if family == "bernoulli" else y
    model = db.GeneralizedLinearModel(family, l2=1.0).fit(X, y)
    assert_same(page, model, mixed_table(22, new=True)[0], explained=False)


def test_halfspace(page):
    X, y = mixed_table(23, rows=80)
    model = db.Halfspace().fit(X, y == "a")
    rows = mixed_table(24)[0]
    found = in_page(page, model, cells_of(rows))
    np.testing.assert_allclose([one["joint"][1] for one in found], model.decision_function(rows), rtol=0, atol=1e-9)
    assert [one["predicted"] for one in found] == model.predict(rows).astype(int).tolist()


# Corrections ---------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("classes", ["two", "three"])
@pytest.mark.parametrize("method", ["temperature", "isotonic"])
@pytest.mark.parametrize("inner", [db.NaiveBayes(), db.LogisticRegression(l2=1.0), db.Calibrated()], ids=repr)
def test_calibrated(page, inner, method, classes):
    X, y = mixed_table(25, rows=400)
    y = np.where(y == "c", "b", y) if classes == "two" else y
    model = db.Calibrated(inner, method, folds=3).fit(X, y)
    assert_same(page, model, mixed_table(26, new=True)[0], explained=method == "temperature")


def test_models_of_other_libraries_say_why_not():
    from sklearn.naive_bayes import GaussianNB

    model = db.Calibrated(GaussianNB(), folds=2).fit([[0.0], [1.0], [2.0], [3.0]] * 5, [0, 0, 1, 1] * 5)
    assert scoring(model) == {"why": "a GaussianNB is a model of another library, which is known by its answers alone"}
