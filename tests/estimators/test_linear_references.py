"""Linear models equal those of R's glm, nnet and brglm2, whose numbers are in tests/references/linear.json.

Tables go in as they are: text, missing values and all.
"""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.linear_model import LinearRegression, PoissonRegressor, Ridge

import deciban as db

REFERENCES = json.loads((Path(__file__).parent.parent / "references" / "linear.json").read_text())
KINDS = {
    "binomial": "bernoulli",
    "multinomial": "multinomial",
    "poisson": "poisson",
    "gaussian": "gaussian",
    "exponential": "exponential",
}
LOAD = {"breast_cancer": load_breast_cancer, "iris": load_iris, "wine": load_wine, "diabetes": load_diabetes}
RESPONSE = {
    "breast_cancer": "class",
    "pima": "type",
    "credit_g": "class",
    "credit_g_all": "class",
    "heart_c": "num",
    "insurance": "Claims",
    "quine": "Days",
    "diabetes": "target",
    "leuk": "time",
    "airquality": "Ozone",
    "iris": "class",
    "wine": "class",
    "housing": "Sat",
    "setosa": "setosa",
}
CLOSE = 1e-6


def from_outside(name):
    folder = os.environ.get("DECIBAN_DATA")
    if not folder:
        pytest.skip("DECIBAN_DATA does not say where the data sets are")
    path = Path(folder) / "tables" / f"{name}.csv"
    return pd.read_csv(path, keep_default_na=False, na_values=[""])


def labelled(name):
    data = LOAD[name]()
    table = pd.DataFrame(data.data, columns=data.feature_names)
    if name == "diabetes":
        return table.assign(target=data.target)
    return table.assign(**{"class": data.target_names[data.target]})


def whole_table(name):
    if name in REFERENCES["data"]:
        return pd.DataFrame(REFERENCES["data"][name])
    if name == "setosa":
        iris = labelled("iris")
        return iris.assign(setosa=np.where(iris["class"] == "setosa", "setosa", "other"))
    return labelled(name) if name in LOAD else from_outside(name.removesuffix("_all"))


class Reference:
    """What R actual, its table, and the place of each of its coefficients among ours."""

    def __init__(self, kind, name):
        self.kind, self.name = kind, name
        self.expected = REFERENCES[kind][name]
        self.response = RESPONSE[name]
        whole = whole_table(name)
        used = {column for column, _ in self.expected["terms"]}
        self.table = whole[[column for column in whole.columns if column in used | {self.response}]]
        self.weights = whole["Freq"].to_numpy() if name == "housing" else None
        self.exposure = whole["Holders"].to_numpy() if name == "insurance" else None
        self.several = len(self.expected.get("classes", ())) > 2
        self.sign = -1.0 if kind == "exponential" else 1.0  # R's η is 1/μ there, the natural parameter is −1/μ

    @property
    def features(self):
        """What we call R's columns, the intercept apart."""
        return [f"{column} = {level}" if level else column for column, level in self.expected["terms"][1:]]

    def places(self, names):
        """Of R's coefficients in (intercept, *names); every one of ours is among them."""
        ours = ["(intercept)", *names]
        assert sorted(ours[1:]) == sorted(self.features)
        return [0, *(ours.index(name) for name in self.features)]

    def of(self, key):
        """(m, 1 + p)."""
        return np.atleast_2d(np.array(self.expected[key], dtype=float))


def each(*kinds):
    pairs = [(kind, name) for kind in kinds for name in REFERENCES[kind]]
    return pytest.mark.parametrize(("kind", "name"), pairs, ids=[f"{kind} {name}" for kind, name in pairs])


def fitted_classes(model, reference):
    """(m, 1 + p) coefficients in R's order, of every class against the first."""
    model.fit(reference.table, reference.response, sample_weight=reference.weights)
    assert model.classes_.tolist() == reference.expected["classes"]
    actual = np.hstack([model.intercept_[:, np.newaxis], model.coef_])
    if len(actual) > 1:
        actual = actual[1:] - actual[0]
    return actual[:, reference.places(model.feature_names_)]


def same_inference(model, reference):
    """All figures, and R's confint.default from R's own coefficients and errors; Student's quantile where the
    dispersion is estimated."""
    actual = model.inference_
    places = reference.places(model.feature_names_)
    for ours, theirs, sign in [
        (actual.estimates, "coefficients", reference.sign),
        (actual.standard_errors, "standard_errors", 1.0),
        (actual.statistics, "statistics", reference.sign),
        (actual.p_values, "p_values", 1.0),
    ]:
        np.testing.assert_allclose(sign * ours[:, places], reference.of(theirs), rtol=CLOSE, err_msg=theirs)
    for key in ("deviance", "null_deviance", "log_likelihood", "aic", "residual_df"):
        assert getattr(actual, key) == pytest.approx(reference.expected[key], rel=CLOSE), key
    assert actual.dispersion == pytest.approx(reference.expected.get("dispersion", 1.0), rel=CLOSE)
    assert actual.n == reference.expected["observations"]
    assert actual.by_t == (reference.kind == "gaussian")
    assert model.status_ == "ok"
    law = stats.t(reference.expected["residual_df"]) if actual.by_t else stats.norm
    half, middle = law.ppf(0.975) * reference.of("standard_errors"), reference.sign * reference.of("coefficients")
    expected = np.stack([middle - half, middle + half], axis=2)
    np.testing.assert_allclose(actual.intervals(0.95)[:, places], expected, rtol=1e-5, atol=1e-5 * half.min())


def test_every_reference_is_used():
    assert {*KINDS, "firth", "firth_multinomial"} == {*REFERENCES} - {"versions", "data"}
    assert {name for kind in [*KINDS, "firth", "firth_multinomial"] for name in REFERENCES[kind]} == RESPONSE.keys()


# Generalised linear models
@each(*KINDS)
def test_generalised_linear_model_is_that_of_r(kind, name):
    reference = Reference(kind, name)
    model = db.GeneralizedLinearModel(KINDS[kind])
    exposure = {} if reference.exposure is None else {"exposure": reference.exposure}
    model.fit(reference.table, reference.response, sample_weight=reference.weights, **exposure)
    same_inference(model, reference)


@pytest.mark.parametrize(
    "how",
    [
        {"offset": "array"},
        {"exposure": "array"},
        {"exposure": "Holders"},
        {"offset": "log"},
        {"offset": "half", "exposure": "root"},
    ],
    ids=str,
)
def test_exposure_comes_as_an_array_or_as_a_column_name(how):
    reference = Reference("poisson", "insurance")
    holders = reference.exposure.astype(float)
    added = {"Holders": holders, "log": np.log(holders), "half": 0.5 * np.log(holders), "root": np.sqrt(holders)}
    arrays = {("offset", "array"): np.log(holders), ("exposure", "array"): holders}
    settings = {key: arrays.get((key, value), value) for key, value in how.items()}
    table = reference.table.assign(**{value: added[value] for value in how.values() if value in added})
    model = db.GeneralizedLinearModel("poisson").fit(table, "Claims", **settings)
    same_inference(model, reference)
    rates, claims = model.predict(reference.table), model.predict(table, **settings)
    np.testing.assert_allclose(claims, rates * holders, rtol=1e-12)
    assert claims.sum() == pytest.approx(reference.table["Claims"].sum(), rel=1e-9)  # the score of the intercept is 0


@pytest.mark.parametrize("name", ["insurance", "quine"])
def test_table_of_any_library_gives_the_same(name):
    reference = Reference("poisson", name)
    for make in (pl.from_pandas, lambda table: pl.from_pandas(table).to_arrow()):
        exposure = {} if reference.exposure is None else {"exposure": reference.exposure}
        model = db.GeneralizedLinearModel("poisson").fit(make(reference.table), reference.response, **exposure)
        same_inference(model, reference)


# Classifiers
@each("binomial", "multinomial")
@pytest.mark.parametrize("model", [db.LogisticRegression(), db.SoftmaxRegression()], ids=str)
def test_classifier_is_that_of_r(kind, name, model):
    reference = Reference(kind, name)
    actual = fitted_classes(model, reference)
    np.testing.assert_allclose(actual, reference.of("coefficients"), rtol=CLOSE)
    assert model.objective_ == pytest.approx(-reference.expected["log_likelihood"], rel=1e-9)
    assert model.status_ == "ok"
    assert model.n_parameters_ == reference.of("coefficients").size


@each("binomial", "multinomial")
def test_classifier_gets_there_from_the_twin_of_a_gaussian_too(kind, name):
    reference = Reference(kind, name)
    actual = fitted_classes(db.LogisticRegression(init="generative"), reference)
    np.testing.assert_allclose(actual, reference.of("coefficients"), rtol=CLOSE)


@pytest.mark.parametrize(("kind", "name"), [("binomial", "pima"), ("binomial", "heart_c"), ("multinomial", "wine")])
def test_gradient_descent_gets_there_too(kind, name):
    reference = Reference(kind, name)
    actual = fitted_classes(db.LogisticRegression(solver="gradient", max_iter=100_000), reference)
    np.testing.assert_allclose(actual, reference.of("coefficients"), rtol=CLOSE)


@each("firth", "firth_multinomial")
@pytest.mark.parametrize("kind_of_model", [db.LogisticRegression, db.SoftmaxRegression])
def test_firths_estimates_are_those_of_brglm2(kind, name, kind_of_model):
    reference = Reference(kind, name)
    model = kind_of_model(firth=True)
    actual = fitted_classes(model, reference)
    np.testing.assert_allclose(actual, reference.of("coefficients"), rtol=CLOSE)
    assert model.status_ == "ok"
    rows, labels = reference.table.drop(columns=reference.response), reference.table[reference.response]
    of_label = np.searchsorted(model.classes_, labels.to_numpy().astype(str))
    likelihood = model.predict_log_proba(rows)[np.arange(len(rows)), of_label].sum()
    assert likelihood == pytest.approx(reference.expected["log_likelihood"], rel=CLOSE)


def test_holes_have_the_names_that_r_gave_them():
    """heart_c: a number missing here and there has an indicator beside it, missing text is a level."""
    reference = Reference("binomial", "heart_c")
    model = db.LogisticRegression().fit(reference.table, "num")
    assert "ca missing" in model.feature_names_
    assert "thal = missing" in model.feature_names_
    assert reference.table[["ca", "thal"]].isna().any().all()


# scikit-learn, which has no errors but penalties
def indicators(reference):
    """R's columns by hand, for who takes no text."""
    table = reference.table
    columns = [table[c] == level if level else table[c] for c, level in reference.expected["terms"][1:]]
    return np.column_stack(columns).astype(float)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("l2", [0.0, 0.1, 10.0])
@pytest.mark.parametrize("name", ["insurance", "quine"])
def test_poisson_regression_is_that_of_scikit_learn(name, l2, weighted):
    """Its objective is the mean of the deviances, halved, + alpha/2 |w|²: alpha is l2/Σ weights."""
    reference = Reference("poisson", name)
    x, y = indicators(reference), reference.table[reference.response].to_numpy()
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y)) if weighted else np.ones(len(y))
    theirs = PoissonRegressor(alpha=l2 / weights.sum(), solver="newton-cholesky", tol=1e-10, max_iter=1000)
    theirs.fit(x, y, sample_weight=weights)
    table = reference.table.drop(columns=reference.response)
    model = db.GeneralizedLinearModel("poisson", l2=l2).fit(table, y, sample_weight=weights)
    places = np.array(reference.places(model.feature_names_)[1:]) - 1
    np.testing.assert_allclose(model.coef_[places], theirs.coef_, rtol=CLOSE, atol=1e-9)
    assert model.intercept_ == pytest.approx(theirs.intercept_, rel=CLOSE)
    np.testing.assert_allclose(model.predict(table), theirs.predict(x), rtol=CLOSE)
    assert model.score(table, y) == pytest.approx(theirs.score(x, y), rel=CLOSE)


@pytest.mark.parametrize("l2", [0.0, 0.01, 10.0])
def test_gaussian_regression_is_that_of_scikit_learn(l2):
    x, y = load_diabetes(return_X_y=True)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    theirs = (Ridge(alpha=l2, tol=1e-12) if l2 else LinearRegression()).fit(x, y, sample_weight=weights)
    model = db.GeneralizedLinearModel("gaussian", l2=l2).fit(x, y, sample_weight=weights)
    np.testing.assert_allclose(model.coef_, theirs.coef_, rtol=CLOSE)
    assert model.intercept_ == pytest.approx(theirs.intercept_, rel=CLOSE)
    assert model.score(x, y) == pytest.approx(theirs.score(x, y), rel=CLOSE)
