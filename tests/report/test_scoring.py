"""scoring.js against Python: probabilities, names and nats of every family and classifier, row by row."""

import base64
import json
import warnings
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import deciban as db
from deciban.evidence.pair_tables import PairTables
from deciban.evidence.tables import Tables
from deciban.export.javascript import LARGE, Pack
from deciban.families import (
    Bernoulli,
    Binned,
    Categorical,
    Exponential,
    Family,
    Gaussian,
    Multinomial,
    MultivariateGaussian,
    Poisson,
    Text,
    Uniform,
)
from deciban.report.page import SCORING
from deciban.report.scoring import scoring
from tests.evidence.test_combination_tables import access
from tests.report.browser import ONE_BROWSER, SLOW, some_slow

pytestmark = ONE_BROWSER

MORE_POLICIES = [("skip", "category"), ("reserve", "skip")]  # for unseen levels and missing values
SCRIPTS = Path(db.__file__).parent / "report" / "page"
SCORE = "async ([scoring, rows]) => { const s = await Scoring.load(JSON.parse(scoring)); return rows.map(s.score); }"
READ = "([column, texts]) => texts.map((text) => Scoring.read(column, text))"


@pytest.fixture(scope="module")
def page(browser_page):
    for name in ("terms", *SCORING):
        browser_page.add_script_tag(content=(SCRIPTS / f"{name}.js").read_text())
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
    """What the page says about all rows is what the model says."""
    scored = in_page(page, model, cells_of(table))
    assert [one.get("problem") for one in scored] == [None] * len(scored)
    np.testing.assert_allclose([one["proba"] for one in scored], model.predict_proba(table), rtol=0, atol=1e-9)
    assert [one["predicted"] for one in scored] == np.searchsorted(model.classes_, model.predict(table)).tolist()
    if not explained:
        return
    together = model.explain(table)
    for i, one in enumerate(scored):
        shared = one["names"] == list(together.names)  # of documents, each has parts of its own
        explanation, row = (together, i) if shared else (model.explain(row_of(table, i)), 0)
        assert one["names"] == list(explanation.names)
        assert one["last"] == [line.last for line in explanation.parts]
        np.testing.assert_allclose(np.array(one["nats"]), explanation.nats[row], rtol=1e-12, atol=1e-9)
        np.testing.assert_allclose(np.array(one["joint"]), explanation.joint[row], rtol=1e-12, atol=1e-9)


# Tables --------------------------------------------------------------------------------------------------------------


def with_missing(column, rng, share=0.15):
    return pd.Series(column).astype(object).where(rng.random(len(column)) > share, None)


def mixed_table(seed, rows=40, new=False):
    """Columns of all kinds, with missing values; new rows have values never seen and numbers far out."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, rows)
    colours = np.array(["red", "blue", "green", "", "gr\u00fcn"] + ["never seen"] * new)
    numbers = rng.normal(y, 1.0, rows)
    if new:
        numbers[:4] = [1e3, -1e3, 0.0, 1e-300]
    columns = {
        "size": with_missing(numbers, rng).astype(float),
        "colour": with_missing(colours[(rng.integers(0, len(colours), rows) + y) % len(colours)], rng),
        "flag": with_missing(rng.random(rows) < 0.2 + 0.3 * y, rng).astype("boolean"),
        "calls": with_missing(rng.poisson(1.0 + y), rng).astype(float),
        "wait": with_missing(rng.exponential(1.0 + y) + 1e-3, rng).astype(float),
        "code": with_missing(rng.integers(0, 4 + new, rows), rng).astype(float),
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
@pytest.mark.parametrize(
    ("unseen", "missing"),
    [("skip", "skip"), ("reserve", "category"), *(pytest.param(*v, marks=SLOW) for v in MORE_POLICIES)],
)
@pytest.mark.parametrize("families", FAMILIES)
def test_naive_bayes(page, families, unseen, missing):
    X, y = mixed_table(1, rows=120)
    model = db.NaiveBayes(FAMILIES[families], unseen=unseen, missing=missing, class_prior="laplace").fit(X, y)
    assert_same(page, model, mixed_table(2, new=True)[0])


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("covariance", ["shared", "per-class", "diagonal"])
@pytest.mark.parametrize("missing_share", [0.0, 0.3])
def test_gaussian_discriminant(page, covariance, missing_share):
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(size=(150, 4)) @ rng.normal(size=(4, 5)), columns=list("abcde"))  # singular
    X["f"], X["g"] = rng.normal(size=150), 2.0
    y = rng.integers(0, 3, 150)
    X.loc[y == 1, "b"] += 2.0
    model = db.GaussianDiscriminant(covariance, shrinkage=0.1 if covariance != "diagonal" else None).fit(X, y)
    rows = X[:60].mask(rng.random((60, 7)) < missing_share)
    rows.iloc[0] = np.nan
    assert_same(page, model, rows)


def test_classes_that_tie_at_numbers_far_away_share_the_probability(page):
    rng = np.random.default_rng(12)
    X = pd.DataFrame(rng.normal(size=(90, 2)), columns=["a", "b"])
    model = db.GaussianDiscriminant().fit(X, np.arange(90) % 3)
    assert_same(page, model, pd.DataFrame({"a": [1e100, -1e120, 1e60], "b": [1.0, 2.0, np.nan]}), explained=False)


def test_a_model_that_is_too_large_for_a_page_is_not_in_it(monkeypatch):
    rng = np.random.default_rng(13)
    model = db.GaussianDiscriminant().fit(rng.normal(size=(90, 30)), np.arange(90) % 3)
    assert "arrays" in scoring(model)
    monkeypatch.setattr("deciban.export.javascript.MOST", 5000)
    assert scoring(model) == {"why": "it would take 0 MB"}


EVIDENCE = {
    "default": {},
    "pairs": {"pairs": 3, "trees": 0},
    "trees": {"pairs": 0, "trees": 5},
    "prior": {"class_prior": "uniform", "trees": 4},
}


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("settings", some_slow(EVIDENCE, "default", "prior"))
def test_evidence_classifier(page, settings):
    X, y = mixed_table(4, rows=150)
    model = db.EvidenceClassifier(**EVIDENCE[settings]).fit(X, y)
    assert model.weights_.unknown.names
    assert_same(page, model, mixed_table(5, new=True)[0])
    assert_same(page, model, unknown_cells(X))


def unknown_cells(X):
    """Complete rows with one, with several and with all cells missing, each in turn; then with values never seen."""
    rows = X.dropna()[: 3 * X.shape[1]].reset_index(drop=True)
    column, turn = np.arange(len(rows)) % X.shape[1], np.arange(len(rows)) // X.shape[1]
    missing = np.zeros(rows.shape, np.bool_)
    for i in range(len(rows)):
        missing[
            i, [column[i], (column[i] + 3) % X.shape[1], (column[i] + 4) % X.shape[1]][: 1 + 2 * (turn[i] == 1)]
        ] = True
    missing[-1] = True
    assert sorted({*missing.sum(axis=1).tolist()}) == [1, 3, X.shape[1]]
    unseen = rows.assign(colour="never seen")
    return pd.concat([rows.mask(missing), unseen.mask(missing), unseen], ignore_index=True).astype(X.dtypes)


@pytest.mark.usefixtures("quiet")
def test_informative_missing_cells(page):
    """Values that are missing by the class are evidence, beside a column where they are not; some rows have neither."""
    rng = np.random.default_rng(39)
    y = rng.integers(0, 2, 200)
    X = pd.DataFrame(
        {
            "tested": np.where((y == 1) | (rng.random(200) < 0.2), rng.normal(y, 1.0), np.nan),
            "colour": np.where((y == 0) | (rng.random(200) < 0.2), rng.choice(["red", "blue"], 200), None),
            "size": np.where(rng.random(200) < 0.2, np.nan, rng.normal(y, 1.0)),
        }
    )
    model = db.EvidenceClassifier(trees=8).fit(X, y)
    assert any(model.weights_.unknown.informative)
    rows = X[:40].copy()
    rows.loc[::3, "colour"], rows.loc[::4, "tested"], rows.loc[::5, "size"] = "green", np.nan, np.nan
    rows.loc[0] = [np.nan, None, np.nan]
    assert_same(page, model, rows)


@pytest.mark.usefixtures("quiet")
def test_pairs_of_columns_with_different_numbers_of_codes(page):
    def table(seed, rows):
        rng = np.random.default_rng(seed)
        colour, x = rng.integers(0, 3, rows), rng.normal(size=rows)
        X = pd.DataFrame(
            {"colour": with_missing(np.array(["red", "blue", "green"])[colour], rng), "x": with_missing(x, rng)}
        )
        return X.astype({"x": float}), (colour == 1) ^ (x > 0)

    X, y = table(36, 300)
    model = db.EvidenceClassifier(pairs=1, trees=0).fit(X, y)
    assert "pair" in model.weights_.kinds
    assert_same(page, model, table(37, 40)[0])


@pytest.mark.usefixtures("quiet")
def test_combinations_of_levels(page):
    X, y = access(1_200)
    X["resource"] = X["resource"].mask(np.arange(len(X)) % 20 == 0)
    model = db.EvidenceClassifier(trees=0).fit(X, y)
    assert any(kind.startswith("level") for kind in model.weights_.kinds)
    rows = access(40, seed=1)[0].astype(object)
    rows.iloc[0, 0], rows.iloc[1, 1], rows.iloc[2, 0], rows.iloc[3] = "never seen", None, None, "never seen"
    assert_same(page, model, rows)


# Texts ---------------------------------------------------------------------------------------------------------------


def texts(seed, rows):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    words = np.array(
        ["buy", "drugs", "\u00a31,000", "today", "don't", "Stra\u00dfe", "\u65e5\u672c", "http://a.example/x"]
    )
    documents = [" ".join(rng.choice(words[: 5 + 3 * c], rng.integers(0, 9))) for c in y]
    return [None if rng.random() < 0.1 else text for text in documents], np.array(["ham", "spam"])[y]


TEXTS = {
    "multinomial": Text(),
    "bernoulli": Text("bernoulli", words=(1, 2)),
    "complement": Text("complement", characters=(2, 3)),
    "shapes": Text(shapes=True, max_terms=7),
    "numbers": Text(characters=(1, 2), hash_bits=6),
}


@pytest.mark.parametrize("missing", some_slow(["skip", "category"], "skip"))
@pytest.mark.parametrize("family", TEXTS)
def test_documents(page, family, missing):
    model = db.NaiveBayes(TEXTS[family], missing=missing).fit(*texts(6, 100))
    assert_same(page, model, [*texts(7, 25)[0], "", "nothing known", "buy buy buy"])


@pytest.mark.usefixtures("quiet")
def test_terms_without_which_a_class_is_impossible(page):
    mails, y = ["buy now", "buy book", "math now", "math"], [0, 0, 1, 1]
    model = db.NaiveBayes(Text("bernoulli"), smoothing=0.0).fit(mails, y)
    assert_same(page, model, ["buy", "math", "book", "", None, "buy math", "buy now book"])


@pytest.mark.usefixtures("quiet")
def test_texts_of_several_columns_beside_numbers(page):
    def table(seed, rows):
        subject, y = texts(seed, rows)
        size = np.random.default_rng(seed).normal(size=rows) + (y == "spam")
        return pd.DataFrame({"subject": subject, "body": texts(seed + 50, rows)[0], "size": size}), y

    X, y = table(8, 120)
    joined = db.NaiveBayes({("subject", "body"): Text("bernoulli")}).fit(X, y)
    weighted = db.EvidenceClassifier(text=["subject", "body"], trees=2).fit(X, y)
    for model in (joined, weighted):
        assert_same(page, model, table(9, 25)[0])


def test_weighted_documents(page):
    model = db.EvidenceClassifier().fit(*texts(10, 100))
    assert_same(page, model, texts(11, 25)[0])


# Linear models -------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("classes", ["two", "three"])
@pytest.mark.parametrize("kind", [db.LogisticRegression, db.SoftmaxRegression])
def test_linear_classifiers(page, kind, classes):
    X, y = mixed_table(12, rows=120)
    y = np.where(y == "c", "b", y) if classes == "two" else y
    assert_same(page, kind(l2=1.0).fit(X, y), mixed_table(13, new=True)[0])


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("missing", some_slow(["skip", "category"], "category"))
@pytest.mark.parametrize("families", ["by kind", "one each", "bins", "words"])
def test_twins(page, families, missing):
    X, y = mixed_table(14, rows=120)
    model = db.NaiveBayes(FAMILIES[families], missing=missing, unseen="reserve").fit(X, y)
    rows = mixed_table(15, new=True)[0]
    twin = model.to_linear()
    assert_same(page, twin, rows)
    assert_same(page, twin.refine(X, y), rows)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("covariance", ["shared", "per-class"])
def test_twins_of_joint_densities(page, covariance):
    rng = np.random.default_rng(16)
    X, y = rng.normal([0.0, 1e3, 0.0], size=(100, 3)), rng.integers(0, 3, 100)
    twin = db.GaussianDiscriminant(covariance).fit(X, y).to_linear()
    rows = pd.DataFrame(X[:60])
    assert_same(page, twin, rows.rename(columns=str))
    (scored,) = in_page(page, twin, [[1.0, None, 2.0]])
    assert "missing" in scored["problem"]


@pytest.mark.parametrize("family", ["multinomial", "bernoulli", "numbers"])
def test_twins_of_texts(page, family):
    twin = db.NaiveBayes(TEXTS[family]).fit(*texts(17, 100)).to_linear()
    assert_same(page, twin, texts(18, 25)[0])


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("family", ["gaussian", "poisson", "exponential"])
def test_means_of_generalized_linear_models(page, family):
    X, y = mixed_table(19, rows=120)
    response = np.random.default_rng(19).poisson(3.0, len(y)) + (y == "a") + 1.0
    model = db.GeneralizedLinearModel(family, l2=1.0).fit(X, response)
    rows = mixed_table(20)[0]
    scored = in_page(page, model, cells_of(rows))
    np.testing.assert_allclose([one["mean"] for one in scored], model.predict_mean(rows), rtol=1e-9, atol=1e-9)
    eta = model.response_.natural(model.predict_mean(rows))
    np.testing.assert_allclose([np.sum(one["nats"]) for one in scored], eta, rtol=1e-9, atol=1e-9)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("family", ["bernoulli", "multinomial"])
def test_classes_of_generalized_linear_models(page, family):
    X, y = mixed_table(21, rows=120)
    y = np.where(y == "c", "b", y) if family == "bernoulli" else y
    model = db.GeneralizedLinearModel(family, l2=1.0).fit(X, y)
    assert_same(page, model, mixed_table(22, new=True)[0], explained=False)


def test_halfspace(page):
    X, y = mixed_table(23, rows=80)
    model = db.Halfspace().fit(X, y == "a")
    rows = mixed_table(24)[0]
    scored = in_page(page, model, cells_of(rows))
    np.testing.assert_allclose([one["joint"][1] for one in scored], model.decision_function(rows), rtol=0, atol=1e-9)
    assert [one["predicted"] for one in scored] == model.predict(rows).astype(int).tolist()


# Corrections ---------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("method", ["temperature", "isotonic"])
@pytest.mark.parametrize(
    ("inner", "classes"),
    [
        (db.NaiveBayes(), 3),
        (db.NaiveBayes(), 2),
        (db.LogisticRegression(l2=1.0), 3),
        (db.CalibratedClassifier(db.NaiveBayes()), 2),
    ],
    ids=repr,
)
def test_calibrated(page, inner, method, classes):
    X, y = mixed_table(25, rows=150)
    y = np.where(y == "c", "b", y) if classes == 2 else y
    model = db.CalibratedClassifier(inner, method, cv=2).fit(X, y)
    assert_same(page, model, mixed_table(26, new=True)[0], explained=method == "temperature")


def test_models_of_other_libraries_say_why_not():
    from sklearn.naive_bayes import GaussianNB

    model = db.CalibratedClassifier(GaussianNB(), cv=2).fit([[0.0], [1.0], [2.0], [3.0]] * 5, [0, 0, 1, 1] * 5)
    assert scoring(model) == {"why": "GaussianNB is a model of another library: only its predictions are known"}


# What is possible, and what is refused -------------------------------------------------------------------------------


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("family", [Categorical(), Uniform(), Binned("equal-width", count=4), Bernoulli(threshold=2.5)])
def test_impossible_rows_have_the_prior(page, family):
    X = pd.DataFrame({"a": [1.0, 1.0, 2.0, 3.0, 4.0], "b": [2.0, 2.0, 3.0, 1.0, 0.0]})
    model = db.NaiveBayes(family, smoothing=0.0).fit(X, ["x", "x", "y", "y", "y"])
    rows = pd.DataFrame([[a, b] for a in (0.0, 1.0, 2.0, 2.5, 4.0, None) for b in (0.0, 1.0, 2.0, 3.0, 9.0)])
    assert_same(page, model, rows.set_axis(["a", "b"], axis=1).astype(float))


@pytest.mark.usefixtures("quiet")
def test_words_that_a_class_never_had(page):
    X = pd.DataFrame({"a": [1.0, 2.0, 0.0, 0.0], "b": [1.0, 0.0, 3.0, 1.0]})
    model = db.NaiveBayes(Multinomial(), smoothing=0.0).fit(X, [0, 0, 1, 1])
    rows = pd.DataFrame([[a, b] for a in (0.0, 1.0, 5.0, np.nan) for b in (0.0, 2.0, np.nan)], columns=["a", "b"])
    assert_same(page, model, rows)


@pytest.mark.usefixtures("quiet")
def test_joint_evidence_is_bounded(page):
    rng = np.random.default_rng(38)
    y = rng.integers(0, 2, 200)
    X = pd.DataFrame(rng.normal(size=(200, 4)) + 6.0 * y[:, np.newaxis], columns=list("abcd"))
    model = db.EvidenceClassifier(pairs=0, trees=0).fit(X, y)
    assert {"linear", "quadratic"} & set(model.weights_.kinds)
    assert_same(page, model, X[:50] * 3.0)


@pytest.mark.usefixtures("quiet")
def test_chosen_families_take_cells_that_they_cannot_have_for_missing(page):
    rng = np.random.default_rng(27)
    y = rng.integers(0, 2, 300)
    X = pd.DataFrame({"calls": rng.poisson(1 + 4 * y), "wait": rng.exponential(1 + 9 * y), "bit": rng.random(300) < y})
    X = X.astype(float)
    model = db.NaiveBayes("auto").fit(X, y)
    assert {type(family) for family in model.families_.values()} == {Poisson, Exponential, Bernoulli}
    values = rng.choice([-1.0, 0.0, 0.5, 1.0, 7.0, 4095.0, 4096.0, 1e6, np.nan], (60, 3))
    assert_same(page, model, pd.DataFrame(values, columns=list(X)))


REFUSED = {
    "infinite": (Gaussian(), np.inf),
    "not a number": (Gaussian(), "many"),
    "below 0": (Poisson(), -1.0),
    "a fraction": (Poisson(), 0.5),
    "a wait of 0": (Exponential(), 0.0),
    "neither true nor false": (Bernoulli(), 2.0),
    "less than none": (Multinomial(), -1.0),
    "never seen": (Categorical(), 5.0),
}


def test_what_python_refuses_is_a_problem(page):
    for case, (family, cell) in REFUSED.items():
        values = [1.0, 2.0, 3.0, 4.0] if case == "a wait of 0" else [1.0, 1.0, 0.0, 1.0]
        model = db.NaiveBayes(family, unseen="error").fit(pd.DataFrame({"size": values}), [0, 0, 1, 1])
        with pytest.raises(db.DecibanError, match="size"):
            model.predict(pd.DataFrame({"size": [cell]}))
        (scored,) = in_page(page, model, [["inf" if cell == np.inf else cell]])
        assert scored["problem"].startswith("column size: "), case
        assert (scored["proba"], scored["names"], scored["predicted"]) == ([], [], -1), case


def test_a_missing_cell_never_met_is_refused_as_a_value(page):
    X = pd.DataFrame({"colour": ["red", "blue", "red"]})
    model = db.NaiveBayes(unseen="error", missing="category").fit(X, [0, 1, 1])
    with pytest.raises(db.DecibanError, match="never seen"):
        model.predict(pd.DataFrame({"colour": pd.Series([None], dtype="str")}))
    scored = in_page(page, model, [[None], ["red"]])
    assert "never seen" in scored[0]["problem"]
    assert "problem" not in scored[1]


def test_bad_rows_are_problems_too(page):
    model = db.NaiveBayes().fit(pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}), [0, 1])
    rows = [None, 3, "row", [], [1.0], [1.0, "x", 2.0], [[], "x"], [{}, "x"], [1.0, 2.0], ["toString", "x"]]
    assert all(one["problem"] for one in in_page(page, model, rows))


def test_cells_typed_by_people(page):
    X = pd.DataFrame(
        {
            "number": [1.5, 2.0, 3.0],
            "flag": [True, False, True],
            "text": ["a", "b", "3"],
            "code": pd.Categorical([3, 4, 3]),
            "long": pd.Categorical([2**60 + 1, 2**60 + 2, 2**60 + 1]),
        }
    )
    columns = {one["name"]: one for one in scoring(db.NaiveBayes().fit(X, [0, 1, 1]))["columns"]}
    typed = {
        "number": {"3.5": 3.5, "1e3": 1000, " 7 ": 7, "-.5": -0.5, "+2.": 2, "": None, "  ": None, "nan": None},
        "flag": {"true": True, "FALSE": False, " True ": True, "1": 1, "0": 0, "": None},
        "text": {"3": "3", " a": " a", "": None, "new": "new"},
        "code": {"3": 3, " 4 ": 4, "x": "x", "": None},
        "long": {str(2**60 + 1): str(2**60 + 1), "7": 7},
    }
    for name, cells in typed.items():
        assert page.evaluate(READ, [columns[name], list(cells)]) == list(cells.values()), name
    for name, wrong in (("number", ["1,5", "0x10", "x", "inf", "1e999"]), ("flag", ["maybe", "constructor"])):
        for read in page.evaluate(READ, [columns[name], wrong]):
            assert read["problem"].startswith(f"column {name}: ")


@pytest.mark.usefixtures("quiet")
def test_typed_cells_are_scored_as_those_of_the_table(page):
    X, y = mixed_table(28, rows=120)
    X["long"] = pd.Categorical(2**60 + np.random.default_rng(28).integers(0, 3, len(X)))
    model = db.NaiveBayes(ONE_EACH).fit(X, y)
    rows = X[:40]
    texts = [[None if cell is None else str(cell) for cell in row] for row in cells_of(rows)]
    scored = in_page(page, model, texts)
    np.testing.assert_allclose([one["proba"] for one in scored], model.predict_proba(rows), rtol=0, atol=1e-9)


# All that there is ---------------------------------------------------------------------------------------------------


def families_of(cases):
    return {type(family) for case in cases if isinstance(case, dict) for family in case.values()}


def test_every_family_has_a_formula_and_is_tested():
    public = [getattr(db.families, name) for name in db.families.__all__]
    concrete = {one for one in public if issubclass(one, Family) and one is not Family}
    assert concrete == families_of(FAMILIES.values()) | families_of([TEXTS])
    for family in concrete:
        assert family.formula is not Family.formula
        assert (family.linear_formula is Family.linear_formula) == (family.natural is Family.natural)


def test_every_reader_of_tables_has_codes():
    """Or says by itself how it is scored elsewhere, as pairs of columns do."""
    kinds = {kind for kind in Tables.__subclasses__() if kind.__module__.startswith("deciban.")}
    assert {PairTables} == {kind for kind in kinds if kind.formulas is not Tables.formulas}
    assert all(kind.code_formula is not Tables.code_formula for kind in kinds - {PairTables})


def test_every_model_has_scores():
    rng = np.random.default_rng(29)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    public = [getattr(db, name) for name in db.__all__]
    models = [one for one in public if isinstance(one, type) and hasattr(one, "predict")]
    assert len(models) >= 8
    keys = {"columns", "derived", "classes", "parts", "owners", "shared", "start", "unknown", "formulas", "finish"}
    for model in models:
        assert scoring(model().fit(X, y)).keys() == keys | {"arrays"}


@pytest.mark.usefixtures("quiet")
def test_arrays_have_positions_for_names(page):
    rng = np.random.default_rng(30)
    X, y = rng.normal(size=(100, 5)), rng.integers(0, 2, 100)
    evidence = db.EvidenceClassifier(trees=2)
    for model in (db.NaiveBayes(), evidence, db.GaussianDiscriminant(), db.LogisticRegression()):
        scored = in_page(page, model.fit(X, y), X[:50].tolist())
        np.testing.assert_allclose([one["proba"] for one in scored], model.predict_proba(X[:50]), rtol=0, atol=1e-9)
        assert scored[0]["names"] == list(model.explain(X[:1]).names)


@pytest.mark.usefixtures("quiet")
def test_sparse_rows_are_counts_of_words(page):
    from scipy.sparse import csr_array

    rng = np.random.default_rng(31)
    y = rng.integers(0, 2, 150)
    X = rng.poisson(0.4 + np.outer(y, rng.random(30))).astype(float)
    for model in (db.NaiveBayes(), db.EvidenceClassifier(trees=2), db.LogisticRegression(l2=1.0)):
        expected = model.fit(csr_array(X), y).predict_proba(csr_array(X[:50]))
        scored = in_page(page, model, X[:50].tolist())
        np.testing.assert_allclose([one["proba"] for one in scored], expected, rtol=0, atol=1e-9)


@pytest.mark.usefixtures("quiet")
def test_one_class_and_merged_models(page):
    X, y = mixed_table(32, rows=120)
    rows = mixed_table(33, new=True)[0]
    assert_same(page, db.NaiveBayes().fit(X, ["only"] * len(X)), rows)
    whole = db.EvidenceClassifier(trees=4).fit(X, y)
    assert_same(page, whole + whole.empty_copy().partial_fit(*mixed_table(34, rows=100)), rows)


# Packing -------------------------------------------------------------------------------------------------------------


def test_arrays_are_as_small_as_they_can_be():
    for values, kind, size in (
        ([0, 255], "u1", 2),
        ([True, False], "u1", 2),
        ([0.0, 256.0], "u2", 4),
        ([0, 65536], "u4", 8),
        ([-1, 2], "i4", 8),
        ([0.5], "f8", 8),
        ([2.0**32], "f8", 8),
        ([-np.inf, 1.0], "f8", 16),
        ([], "u1", 0),
    ):
        packed = Pack({}, {}).array(np.array(values))
        assert (packed["type"], packed["bytes"]) == (kind, size)


@pytest.mark.usefixtures("quiet")
def test_large_models_are_deflated(page, monkeypatch):
    """Trees that predict the signs of two products have many leaves."""
    rng = np.random.default_rng(35)
    X = pd.DataFrame(rng.normal(size=(1000, 4)), columns=list("abcd"))
    model = db.EvidenceClassifier(trees=8).fit(X, (X["a"] * X["b"] > 0) ^ (X["c"] * X["d"] > 0))
    rows = X[:50].mask(rng.random((50, 4)) < 0.2)
    whole = scoring(model)
    plain = base64.b64decode(whole["arrays"]["data"])
    assert not whole["arrays"]["deflated"]
    assert len(plain) <= LARGE
    assert_same(page, model, rows)
    monkeypatch.setattr("deciban.export.javascript.LARGE", len(plain) - 1)
    packed = scoring(model)
    assert packed["arrays"]["deflated"]
    assert zlib.decompress(base64.b64decode(packed["arrays"]["data"])) == plain
    assert len(json.dumps(packed)) < len(json.dumps(whole))
    assert_same(page, model, rows)


@pytest.mark.usefixtures("quiet")
def test_rows_of_large_tables_that_are_equal_are_packed_once(page):
    rng = np.random.default_rng(35)
    n, levels = 6000, 1000
    y = rng.integers(0, 2, n)
    codes = rng.integers(0, levels, n) + levels * (y ^ (rng.random(n) < 0.2))
    X = pd.DataFrame({"id": codes.astype(str), "x": rng.normal(size=n) + y})
    for model in (db.EvidenceClassifier(trees=0).fit(X, y), db.NaiveBayes().fit(X, y)):
        assert len(json.dumps(scoring(model))) < 120_000  # 2,000 names, and a few rows of a table
        assert_same(page, model, X[:50])
    (table,) = [one["table"] for one in scoring(model)["formulas"] if one["kind"] == "lookup"]
    assert table["type"] == "rows"


# Dates ---------------------------------------------------------------------------------------------------------------


def dated_table(rows, seed=0):
    """Dates with and without a time of day, before 1970 too, times, and missing values; weekends are late."""
    rng = np.random.default_rng(seed)
    signup = pd.Timestamp("1969-01-01") + pd.to_timedelta(rng.integers(0, 20_000, rows), unit="D")
    back = signup + pd.to_timedelta(rng.integers(1, 10**9, rows), unit="ms")
    table = pd.DataFrame(
        {
            "signup": signup.strftime("%Y-%m-%d"),
            "returned": back.strftime("%Y-%m-%d %H:%M:%S.%f"),
            "opened": [f"{h:02}:{m:02}" for h, m in zip(*rng.integers(0, [[24], [60]], (2, rows)), strict=True)],
            "x": rng.normal(size=rows),
        }
    )
    table.loc[rng.random(rows) < 0.1, ["signup", "returned"]] = None
    late = (signup.day_of_week >= 5) ^ (rng.random(rows) < 0.2)
    return table, np.where(late, "late", "paid")


@pytest.mark.parametrize(
    "make", [lambda: db.EvidenceClassifier(trees=2), db.NaiveBayes, lambda: db.LogisticRegression(l2=1.0)]
)
def test_dates_are_scored_in_the_page_as_in_python(page, make):
    table, y = dated_table(150)
    model = make().fit(table, y)
    assert_same(page, model, dated_table(40, seed=1)[0])


def test_dates_as_people_type_them(page):
    table, y = dated_table(60)
    columns = scoring(db.EvidenceClassifier(trees=0).fit(table, y))["columns"]
    assert [(column["kind"], column.get("clock")) for column in columns] == [
        ("date", False),
        ("date", True),
        ("time", None),
        ("number", None),
    ]
    typed = ["2026-03-01", "2026/03/01 12:00", "1969-12-31T06:00:00Z", "", "2026-02-30", "yesterday"]
    *known, no_day, no_date = page.evaluate(READ, [columns[0], typed])
    expected = pd.to_datetime(["2026-03-01 00:00", "2026-03-01 12:00", "1969-12-31 06:00"])
    days = ((expected - pd.Timestamp("1970-01-01")) / pd.Timedelta("1D")).tolist()
    assert known == [*days, None]
    for refused in (no_day, no_date):
        assert "is not a date, such as 2026-03-01" in refused["problem"]
    assert page.evaluate(READ, [columns[2], ["09:30", "24:00"]])[0] == 9.5


def test_labels_are_those_of_an_explanation(page):
    table = pd.DataFrame(
        {
            "size": [39.0, 0.1234567, np.nan, 1234567.0],
            "note": ["one\n two " + "x" * 40, "", None, "b"],
            "flag": pd.array([True, False, None, True], dtype="boolean"),
        }
    )
    model = db.NaiveBayes().fit(table, [0, 1, 0, 1])
    for i, one in enumerate(in_page(page, model, cells_of(table))):
        explanation = model.explain(table.iloc[i : i + 1])
        assert [label.lower() for label in one["labels"]] == [explanation.label(part).lower() for part in range(4)]
    texts = ["call 08712460324 now", "see you now", "call me", "win 500 now"]
    words = db.NaiveBayes(Text("bernoulli", shapes=True)).fit(texts, [1, 0, 0, 1])
    (one,) = in_page(page, words, [["now call 07000000000, now"]])
    explanation = words.explain(["now call 07000000000, now"])
    assert one["labels"] == [explanation.label(part) for part in range(len(explanation.names))]
    assert "a number of 11 digits" in one["labels"]
