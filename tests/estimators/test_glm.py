"""GeneralizedLinearModel: five responses, offsets, weights, penalties, summaries, and data that are not so nice.

Maxima are known by their score equations: a fit without penalty is right if Σ w (T(y) − E[T(y)]) x = 0 in every column
and the intercept, the likelihood being concave. Figures of R on real tables are in test_linear_references.py.
"""

import warnings
from functools import cache
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from scipy import stats
from scipy.special import expit, softmax
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, d2_tweedie_score, r2_score

import deciban as db

FAMILIES = ["gaussian", "bernoulli", "multinomial", "poisson", "exponential"]
NUMBERS = ["gaussian", "poisson", "exponential"]
CLASSES = ["bernoulli", "multinomial"]
CLOSE = {"rtol": 1e-8, "atol": 1e-10}
FAR = np.array([1e8, -1e8, 0.0])


def glm(family, **settings):
    return db.GeneralizedLinearModel(family, **settings)


@pytest.fixture(params=FAMILIES)
def family(request):
    return request.param


@pytest.fixture(params=NUMBERS)
def number_family(request):
    return request.param


@cache
def fitted(family):
    """A model of the sample, not to be changed."""
    return glm(family).fit(*sample(family))


def sample(family, n=80, columns=3, seed=0):
    """X within ±1, and y drawn from the family."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, columns))
    eta = x @ np.linspace(0.8, -0.5, columns)
    draw = {
        "gaussian": lambda: 1.0 + eta + rng.normal(size=n),
        "bernoulli": lambda: rng.random(n) < expit(0.3 + eta),
        "multinomial": lambda: np.digitize(eta + rng.logistic(size=n), [-0.7, 0.7]),
        "poisson": lambda: rng.poisson(np.exp(0.7 + eta)),
        "exponential": lambda: rng.exponential(1 / (2.5 - eta)),
    }[family]
    return x, draw().astype(int if family in ("bernoulli", "multinomial", "poisson") else float)


def textbook_mean(family, eta):
    """(n, m) E[T(y)] of η (n, m)."""
    if family == "multinomial":
        return softmax(np.column_stack([np.zeros(len(eta)), eta]), axis=1)[:, 1:]
    return {
        "gaussian": lambda: eta,
        "bernoulli": lambda: expit(eta),
        "poisson": lambda: np.exp(eta),
        "exponential": lambda: -1 / eta,
    }[family]()


def assert_score_equations(model, family, x, y, weights=None, offset=0.0, l2=0.0, close=1e-8):
    """The gradient of the log-likelihood is 0, as good as."""
    w = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=float)
    z = np.column_stack([np.ones(len(x)), x])
    theta = np.column_stack([np.atleast_1d(model.intercept_), np.atleast_2d(model.coef_)])
    eta = z @ theta.T + np.broadcast_to(offset, len(y))[:, np.newaxis]
    target = np.asarray(y)[:, np.newaxis]
    target = (target == np.arange(1, len(theta) + 1)) if family == "multinomial" else target
    mean = textbook_mean(family, eta)
    gradient = (w[:, np.newaxis] * (target - mean)).T @ z
    size = (w[:, np.newaxis] * (np.abs(target) + np.abs(mean))).T @ np.abs(z)
    gradient[:, 1:] -= l2 * theta[:, 1:]
    assert (np.abs(gradient) <= close * size).all()


# Fit, mean, score
def test_a_fit_satisfies_the_score_equations(family):
    x, y = sample(family)
    assert fitted(family).status_ == "ok"
    assert_score_equations(fitted(family), family, x, y)
    x, y = sample(family, columns=1)
    assert_score_equations(glm(family).fit(x, y), family, x, y)


def test_many_rows_satisfy_them_too(family):
    """Beyond some thousand rows a sample gives the start and the curvature."""
    x, y = sample(family, n=20_000, columns=2)
    model = glm(family).fit(x, y)
    assert model.status_ == "ok"
    assert_score_equations(model, family, x, y, close=1e-6)


def test_predict_mean_is_the_inverse_link(family):
    model = fitted(family)
    asked = np.linspace(-0.9, 0.9, 15).reshape(5, 3)
    eta = asked @ np.atleast_2d(model.coef_).T + np.atleast_1d(model.intercept_)
    expected = textbook_mean(family, eta)
    expected = expected if family == "multinomial" else expected[:, 0]
    np.testing.assert_allclose(model.predict_mean(asked), expected, rtol=1e-12)


def test_predict_is_the_mean_or_the_most_probable_class(family):
    x, y = sample(family)
    if family in CLASSES:
        y = np.array(["one", "three", "two"])[y]  # sorted, as the codes are
    model = glm(family).fit(x, y)
    mean = model.predict_mean(x)
    if family in NUMBERS:
        np.testing.assert_array_equal(model.predict(x), mean)
        return
    mean = mean.reshape(len(x), -1)
    shares = np.column_stack([1 - mean.sum(axis=1), mean])
    assert model.classes_.tolist() == sorted(set(y))
    assert model.predict(x).tolist() == model.classes_[shares.argmax(axis=1)].tolist()


@pytest.mark.parametrize("one", CLASSES)
def test_predict_proba_has_all_classes(one):
    x, _ = sample(one)
    model = fitted(one)
    asked = np.vstack([x, 100 * x])  # far out the first class has next to nothing left
    eta = asked @ np.atleast_2d(model.coef_).T + np.atleast_1d(model.intercept_)
    expected = softmax(np.column_stack([np.zeros(len(asked)), eta]), axis=1)
    proba = model.predict_proba(asked)
    np.testing.assert_allclose(proba, expected, rtol=1e-9, atol=1e-15)
    assert (proba >= 0).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(proba[:, 1:], model.predict_mean(asked).reshape(len(asked), -1))
    if one == "bernoulli":
        shifted = model.predict_proba(x, offset=0.5)[:, 1]
        np.testing.assert_array_equal(shifted, model.predict_mean(x, offset=0.5))


def test_shapes(family):
    x, _ = sample(family)
    model = fitted(family)
    several = family == "multinomial"
    assert hasattr(model, "predict_proba") == (family in CLASSES)
    assert model.coef_.shape == ((2, 3) if several else (3,))
    assert np.shape(model.intercept_) == ((2,) if several else ())
    assert isinstance(model.intercept_, np.ndarray if several else float)
    assert model.predict_mean(x[:5]).shape == ((5, 2) if several else (5,))
    assert model.predict(x[:5]).shape == (5,)
    assert model.feature_names_ == ("0", "1", "2")
    assert model.n_features_in_ == 3
    assert model.n_parameters_ == (8 if several else 4)
    assert model.n_iter_ == len(model.path_.rows) - 1  # and the end
    np.testing.assert_allclose(model.inference_.estimates[:, 1:], np.atleast_2d(model.coef_), rtol=1e-13)


def test_score_is_that_of_scikit_learn(family):
    x, y = sample(family)
    weights = np.random.default_rng(1).uniform(0, 2, 80)
    model = glm(family).fit(x[:60], y[:60])
    measure = {
        "gaussian": r2_score,
        "poisson": lambda y, mean, **kw: d2_tweedie_score(y, mean, power=1, **kw),
        "exponential": lambda y, mean, **kw: d2_tweedie_score(y, mean, power=2, **kw),
    }.get(family, accuracy_score)
    for rows, some in ((slice(60), None), (slice(60, 80), weights[60:]), (slice(None), weights)):
        expected = measure(y[rows], model.predict(x[rows]), sample_weight=some)
        assert model.score(x[rows], y[rows], sample_weight=some) == pytest.approx(expected, rel=1e-10)
    for few in (1, 79):
        with pytest.raises(db.DecibanError, match=f"80 rows, {few} labels"):
            model.score(x, y[:few])
    if family in NUMBERS:
        inference = fitted(family).inference_
        share = 1 - inference.deviance / inference.null_deviance
        assert fitted(family).score(x, y) == pytest.approx(share, rel=1e-10)


def test_score_takes_offsets_and_exposures(claims):
    x, y, years = claims
    model = glm("poisson").fit(x, y, exposure=years)
    share = 1 - model.inference_.deviance / model.inference_.null_deviance
    assert model.score(x, y, exposure=years) == pytest.approx(share, rel=1e-10)
    assert model.score(x, y, offset=np.log(years)) == pytest.approx(share, rel=1e-10)
    table = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "years": years, "y": y})
    by_name = glm("poisson").fit(table, "y", exposure="years")
    assert by_name.score(table, "y", exposure="years") == pytest.approx(share, rel=1e-10)
    assert model.score(x, y) != pytest.approx(share, rel=0.01)


def test_score_of_a_constant_y_is_that_of_scikit_learn():
    x = [[0.0], [1.0], [2.0], [3.0]]
    exact, wrong = glm("gaussian").fit(x, [2.0] * 4), glm("gaussian").fit(x, [1.0, 2.0, 3.0, 5.0])
    for model in (wrong, exact):
        assert model.score(x, [2.0] * 4) == r2_score([2.0] * 4, model.predict(x))


def test_score_of_counts_that_are_all_0_is_a_number():
    assert np.isfinite(fitted("poisson").score(sample("poisson")[0], np.zeros(80)))


@pytest.mark.parametrize("l2", [0.0, 0.7])
def test_multinomial_of_two_classes_is_bernoulli(l2):
    x, y = sample("bernoulli")
    y = np.array(["no", "yes"])[y]
    weights = 1.0 + np.arange(80) % 3
    two, several = (glm(family, l2=l2).fit(x, y, sample_weight=weights) for family in CLASSES)
    np.testing.assert_array_equal(two.coef_, several.coef_)
    assert two.intercept_ == several.intercept_
    np.testing.assert_array_equal(two.predict_mean(x), several.predict_mean(x))
    np.testing.assert_array_equal(two.predict(x), several.predict(x))
    np.testing.assert_array_equal(two.inference_.covariance, several.inference_.covariance)


# Offset and exposure
@pytest.fixture(scope="module")
def claims():
    """X, counts, and the years in which they were counted."""
    rng = np.random.default_rng(3)
    x, years = rng.uniform(-1, 1, (60, 2)), rng.uniform(0.2, 9, 60)
    return x, rng.poisson(years * np.exp(0.4 * x[:, 0])), years


def test_an_exposure_is_an_offset_of_its_logarithm(claims):
    x, y, years = claims
    for form in (np.asarray, list, tuple, pl.Series, lambda v: pd.Series(v, index=range(60, 0, -1))):
        model = glm("poisson").fit(x, y, exposure=form(years))
        assert_score_equations(model, "poisson", x, y, offset=np.log(years))
        same = glm("poisson").fit(x, y, offset=form(np.log(years)))
        np.testing.assert_array_equal(model.coef_, same.coef_)
        expected = same.predict(x, offset=form(np.log(years)))
        np.testing.assert_array_equal(model.predict(x, exposure=form(years)), expected)
        np.testing.assert_allclose(model.predict(x, exposure=form(years)), years * model.predict(x), rtol=1e-12)


def test_offset_and_exposure_add_up(claims):
    x, y, years = claims
    offset = np.linspace(-1, 1, 60)
    model = glm("poisson").fit(x, y, offset=offset, exposure=years)
    assert_score_equations(model, "poisson", x, y, offset=offset + np.log(years))
    expected = model.predict(x, offset=offset + np.log(years))
    np.testing.assert_allclose(model.predict(x, offset=offset, exposure=years), expected, rtol=1e-12)


@pytest.mark.parametrize("number", [0.01, 250])
def test_a_scalar_exposure_moves_the_intercept(claims, number):
    x, y, _ = claims
    plain, model = glm("poisson").fit(x, y), glm("poisson").fit(x, y, exposure=number)
    np.testing.assert_allclose(model.coef_, plain.coef_, **CLOSE)
    assert model.intercept_ == pytest.approx(plain.intercept_ - np.log(number), rel=1e-9)
    np.testing.assert_allclose(model.predict(x, exposure=number), plain.predict(x), rtol=1e-9)
    assert model.inference_.null_deviance == pytest.approx(plain.inference_.null_deviance, rel=1e-12)


def test_a_scalar_offset_moves_the_intercept():
    for family in ("gaussian", "bernoulli", "exponential"):
        x, y = sample(family)
        plain, model = glm(family).fit(x, y), glm(family).fit(x, y, offset=-0.75)
        np.testing.assert_allclose(model.coef_, plain.coef_, **CLOSE)
        assert model.intercept_ == pytest.approx(plain.intercept_ + 0.75, rel=1e-9)
        np.testing.assert_allclose(model.predict_mean(x, offset=-0.75), plain.predict_mean(x), rtol=1e-9)


@pytest.mark.parametrize(
    ("table", "what", "y_by_name"), [(pd.DataFrame, "offset", False), (pl.DataFrame, "exposure", True)]
)
def test_a_column_may_be_named_and_is_then_no_feature(claims, table, what, y_by_name):
    x, y, years = claims
    values = years if what == "exposure" else np.log(years)
    whole = table({"a": x[:, 0], "shift": values, "b": x[:, 1], **({"y": y} if y_by_name else {})})
    model = glm("poisson").fit(whole, "y" if y_by_name else y, **{what: "shift"})
    plain = glm("poisson").fit(x, y, **{what: values})
    assert model.feature_names_ == ("a", "b")
    assert model.feature_names_in_.tolist() == ["a", "b"]
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    np.testing.assert_array_equal(model.predict(whole, **{what: "shift"}), plain.predict(x, **{what: values}))
    np.testing.assert_array_equal(model.predict(whole, **{what: values}), plain.predict(x, **{what: values}))
    np.testing.assert_array_equal(model.predict(table({"b": x[:, 1], "a": x[:, 0]})), plain.predict(x))


def test_a_table_of_nothing_but_an_exposure_has_one_rate():
    table = pd.DataFrame({"years": [1.0, 2.0, 3.0, 4.0]})
    model = glm("poisson").fit(table, [1, 2, 3, 5], exposure="years")
    assert model.feature_names_ == ()
    assert model.intercept_ == pytest.approx(np.log(11 / 10), rel=1e-12)
    assert model.inference_.standard_errors[0, 0] == pytest.approx(np.sqrt(1 / 11), rel=1e-12)


def test_a_gaussian_offset_is_taken_from_y():
    x, y = sample("gaussian")
    offset = np.linspace(-5, 5, 80)
    model, less = glm("gaussian").fit(x, y, offset=offset), glm("gaussian").fit(x, y - offset)
    np.testing.assert_allclose(model.coef_, less.coef_, **CLOSE)
    np.testing.assert_allclose(model.inference_.covariance, less.inference_.covariance, **CLOSE)
    assert model.inference_.null_deviance == pytest.approx(less.inference_.null_deviance, rel=1e-10)
    np.testing.assert_allclose(model.predict(x, offset=offset), less.predict(x) + offset, rtol=1e-9)


def test_a_bernoulli_offset_counts_in_the_fit_and_in_the_classes():
    x, y = sample("bernoulli")
    offset = np.linspace(-2, 2, 80)
    model = glm("bernoulli").fit(x, y, offset=offset)
    assert_score_equations(model, "bernoulli", x, y, offset=offset)
    np.testing.assert_array_equal(model.predict(x, offset=offset), (model.predict_mean(x, offset=offset) > 0.5) * 1)
    assert (model.predict(x, offset=1e3) == 1).all()
    assert (model.predict(x, offset=-1e3) == 0).all()


@pytest.mark.parametrize("far", [0.1, 10.0])
def test_an_exponential_offset_may_differ_by_more_than_the_rate(far):
    """−1/ȳ less the mean offset, a natural first guess, is then outside of the domain in some rows."""
    rng = np.random.default_rng(0)
    x, offset = rng.uniform(0, 1, (50, 1)), -far * rng.uniform(0, 1, 50)
    y = rng.exponential(1 / (0.5 + 0.3 * x[:, 0] - offset))
    model = glm("exponential").fit(x, y, offset=offset)
    assert_score_equations(model, "exponential", x, y, offset=offset)


def test_exposures_that_differ_widely():
    x, y, years = [[0], [0], [1], [1]], [1, 2_000, 3, 5_000], np.array([1e-9, 1e9, 1e-9, 1e9])
    model = glm("poisson").fit(x, y, exposure=years)
    rates = np.array([2_001 / (1e9 + 1e-9), 5_003 / (1e9 + 1e-9)])
    np.testing.assert_allclose(model.predict([[0], [1]]), rates, rtol=1e-9)


def nan_in_row_4(n=60):
    return np.where(np.arange(n) == 4, np.nan, 1.0)


def test_wrong_offsets_and_exposures_are_named():
    for family, wrong, words in [
        ("poisson", {"exposure": -np.ones(60)}, "exposure, row 0: -1 must be above 0"),
        ("poisson", {"exposure": np.where(np.arange(60) == 7, 0.0, 1.0)}, "exposure, row 7: 0 must be above 0"),
        ("poisson", {"exposure": 0}, "exposure, row 0: 0 must be above 0"),
        ("poisson", {"exposure": nan_in_row_4()}, "exposure, row 4: nan is not a finite number"),
        ("poisson", {"exposure": [1.0] * 59 + [np.inf]}, "exposure, row 59: inf is not a finite number"),
        ("poisson", {"exposure": [1.0, 2.0]}, r"exposure has shape \(2,\); it needs one number for each of 60 rows"),
        ("poisson", {"exposure": np.ones((60, 1))}, r"exposure has shape \(60, 1\)"),
        ("poisson", {"exposure": "years"}, "exposure='years' is not a column of X"),
        ("poisson", {"exposure": ["long"] * 60}, "exposure"),
        ("gaussian", {"exposure": 1.0}, "exposure needs a poisson response; for gaussian use offset"),
        ("exponential", {"exposure": 1.0}, "exposure needs a poisson response"),
        ("bernoulli", {"exposure": 1.0}, "exposure needs a poisson response"),
        ("multinomial", {"exposure": 1.0}, "a multinomial response takes no offset"),
        ("multinomial", {"offset": np.ones(60)}, "a multinomial response takes no offset"),
        ("gaussian", {"offset": nan_in_row_4()}, "offset, row 4: nan is not a finite number"),
        ("gaussian", {"offset": np.ones(61)}, r"offset has shape \(61,\); it needs one number for each of 60 rows"),
        ("gaussian", {"offset": "zero"}, "offset='zero' is not a column of X"),
        ("gaussian", {"offset": ["zero"] * 60}, "offset"),
    ]:
        x, y = sample(family, n=60)
        with pytest.raises(db.DecibanError, match=words):
            glm(family).fit(x, y, **wrong)
        with pytest.raises(db.DecibanError, match=words):
            fitted(family).predict(x, **wrong)
        if "names" in words:
            with pytest.raises(db.DecibanError, match=words):
                glm(family).fit(pd.DataFrame(x, columns=list("abc")), y, **wrong)


def test_a_named_column_of_text_is_refused_by_name(claims):
    x, y, _ = claims
    table = pd.DataFrame(x, columns=list("ab")).assign(s="text")
    with pytest.raises(db.DecibanError, match="'s' holds text"):
        glm("poisson").fit(table, y, offset="s")


def test_a_missing_value_in_a_named_column_is_refused_by_its_row(claims):
    x, y, _ = claims
    table = pd.DataFrame(x, columns=list("ab")).assign(t=nan_in_row_4())
    with pytest.raises(db.DecibanError, match="exposure, row 4: nan"):
        glm("poisson").fit(table, y, exposure="t")


# Weights
def assert_same_inference(one, other, **close):
    close = close or {"rtol": 1e-8, "atol": 1e-11}
    np.testing.assert_allclose(one.estimates, other.estimates, **close)
    np.testing.assert_allclose(one.standard_errors, other.standard_errors, **close)
    for name in ("n", "rank", "deviance", "null_deviance", "log_likelihood", "dispersion", "residual_df", "aic"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-9), name


def test_a_weight_of_2_is_the_row_twice(family):
    x, y = sample(family)
    l2 = 2.0 if family in ("poisson", "multinomial") else 0.0
    times = 1 + np.arange(80) % 3
    weighted = glm(family, l2=l2).fit(x, y, sample_weight=times)
    repeated = glm(family, l2=l2).fit(x.repeat(times, axis=0), y.repeat(times))
    assert_same_inference(weighted.inference_, repeated.inference_)
    assert weighted.inference_.n == times.sum()
    np.testing.assert_allclose(weighted.predict_mean(x), repeated.predict_mean(x), rtol=1e-9)
    assert str(weighted.summary()).splitlines()[0] == str(repeated.summary()).splitlines()[0]


def test_a_weight_of_0_is_no_row(family):
    x, y = sample(family)
    weights = np.where(np.arange(80) % 4 == 0, 0.0, 1.0)
    kept = weights > 0
    weighted = glm(family).fit(np.where(kept[:, np.newaxis], x, 1e9), y, sample_weight=weights)
    alone = glm(family).fit(x[kept], y[kept])
    assert_same_inference(weighted.inference_, alone.inference_)


def test_a_weight_of_0_takes_levels_missing_values_and_classes_along():
    table = pd.DataFrame({"a": [1.0, 2.0, np.nan, 4.0, 3.0, 5.0], "g": list("uvwuvv")})
    y = ["no", "yes", "perhaps", "no", "no", "yes"]
    weights = [1, 1, 0, 1, 1, 1]
    keep = [0, 1, 3, 4, 5]
    model = glm("bernoulli", l2=1.0).fit(table, y, sample_weight=weights)
    alone = glm("bernoulli", l2=1.0).fit(table.iloc[keep], [y[i] for i in keep])
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.feature_names_ == alone.feature_names_ == ("a", "g = v")
    np.testing.assert_allclose(model.coef_, alone.coef_, rtol=1e-12)


def test_weights_and_offsets_go_with_their_rows(claims):
    x, y, years = claims
    weights = np.arange(60) % 3
    model = glm("poisson").fit(x, y, sample_weight=weights, exposure=years)
    assert_score_equations(model, "poisson", x, y, weights=weights, offset=np.log(years))
    times = weights.astype(int)
    repeated = glm("poisson").fit(x.repeat(times, axis=0), y.repeat(times), exposure=years.repeat(times))
    assert_same_inference(model.inference_, repeated.inference_)


def test_the_unit_of_weights_changes_errors_only(family):
    """As if every row came 1000 times: the dispersion of a gaussian loses its n − p."""
    x, y = sample(family)
    one, many = (glm(family).fit(x, y, sample_weight=np.full(80, w)).inference_ for w in (1.0, 1000.0))
    np.testing.assert_allclose(one.estimates, many.estimates, **CLOSE)
    ratio = np.sqrt(many.dispersion / one.dispersion / 1000)
    np.testing.assert_allclose(many.standard_errors, ratio * one.standard_errors, rtol=1e-7)


def test_wrong_weights_are_named(family):
    x, y = sample(family)
    for weights, words in [
        (np.where(np.arange(80) == 3, -1.0, 1.0), "sample_weight, row 3: -1"),
        (np.where(np.arange(80) == 5, np.nan, 1.0), "sample_weight, row 5: nan"),
        (np.zeros(80), "every sample weight is zero"),
        (np.ones(79), r"sample_weight.shape == \(79,\)"),
    ]:
        with pytest.raises(db.DecibanError, match=words):
            glm(family).fit(x, y, sample_weight=weights)


# Penalty
@pytest.mark.parametrize(("l2", "weighted"), [(1e-6, True), (0.5, False), (30.0, True), (1e6, False)])
def test_gaussian_with_a_penalty_is_ridge_regression(l2, weighted):
    """w = (X̃ᵀWX̃ + l2)⁻¹ X̃ᵀWỹ of centred X and y; the intercept is not penalised."""
    x, y = sample("gaussian")
    x = x * [1.0, 10.0, 0.01]  # the penalty is on the coefficients of the columns as they are
    w = 1.0 + np.arange(80) % 3 if weighted else np.ones(80)
    mean, height = np.average(x, axis=0, weights=w), np.average(y, weights=w)
    z = x - mean
    expected = np.linalg.solve(z.T @ (w[:, np.newaxis] * z) + l2 * np.eye(3), z.T @ (w * (y - height)))
    model = glm("gaussian", l2=l2).fit(x, y, sample_weight=w if weighted else None)
    np.testing.assert_allclose(model.coef_, expected, rtol=1e-9)
    assert model.intercept_ == pytest.approx(height - mean @ expected, rel=1e-10)


@pytest.mark.parametrize("one", ["bernoulli", "poisson", "exponential"])
def test_a_penalty_pulls_on_the_score_equations(one):
    x, y = sample(one)
    assert_score_equations(glm(one, l2=3.0).fit(x, y), one, x, y, l2=3.0)


@pytest.mark.parametrize("one", CLASSES)
def test_a_penalty_on_classes_is_that_of_scikit_learn(one):
    """The same for every class, so that it does not matter which one is compared with."""
    x, y = sample(one)
    expected = LogisticRegression(C=0.5, tol=1e-10, max_iter=10_000).fit(x, y).predict_proba(x)[:, 1:]
    actual = glm(one, l2=2.0).fit(x, y).predict_mean(x).reshape(80, -1)
    np.testing.assert_allclose(actual, expected, atol=1e-6)
    other = glm(one, l2=2.0).fit(x, y.max() - y).predict_mean(x).reshape(80, -1)
    shares = np.column_stack([1 - actual.sum(axis=1), actual])
    np.testing.assert_allclose(other, shares[:, ::-1][:, 1:], atol=1e-9)


def test_a_penalised_summary_has_no_errors(family):
    x, y = sample(family)
    summary = glm(family, l2=1.0).fit(x, y).summary()
    for table in summary.tables:
        assert table.header == ("", "estimate")
    assert "penalised by l2 = 1: no standard errors" in summary.notes
    assert not any("AIC" in note for note in summary.notes)


def test_a_penalty_makes_hard_problems_easy():
    """No warning: separable, collinear, or with more columns than rows."""
    x = np.random.default_rng(0).normal(size=(6, 9))
    for one in FAMILIES:
        y = {"bernoulli": [0, 0, 0, 1, 1, 1], "multinomial": [0, 0, 1, 1, 2, 2]}.get(one, [1, 2, 3, 4, 5, 6])
        model = glm(one, l2=1.0).fit(x, y)
        assert model.status_ == "ok"
        assert np.isfinite(model.coef_).all()


# Summary
@pytest.mark.parametrize("level", [0.9, 0.95, 0.999])
def test_summary_has_wald_intervals_of_the_level(family, level):
    model = fitted(family)
    tables = (model.summary() if level == 0.95 else model.summary(level=level)).tables
    assert len(tables) == (2 if family == "multinomial" else 1)
    law = stats.t(80 - 4) if family == "gaussian" else stats.norm()
    ends = {0.9: ("5 %", "95 %"), 0.95: ("2.5 %", "97.5 %"), 0.999: ("0.05 %", "99.95 %")}[level]
    for k, table in enumerate(tables):
        assert table.header == ("", "estimate", "std. error", "t" if family == "gaussian" else "z", "p", *ends)
        assert [row[0] for row in table.rows] == ["(intercept)", "0", "1", "2"]
        numbers = np.array([row[1:] for row in table.rows])
        estimate, error = numbers[:, 0], numbers[:, 1]
        expected = np.append(np.atleast_1d(model.intercept_)[k], np.atleast_2d(model.coef_)[k])
        np.testing.assert_allclose(estimate, expected, rtol=1e-9)
        np.testing.assert_allclose(numbers[:, 2], estimate / error, rtol=1e-12)
        np.testing.assert_allclose(numbers[:, 3], 2 * law.sf(np.abs(estimate / error)), rtol=1e-9)
        np.testing.assert_allclose(numbers[:, 4], estimate + law.ppf(0.5 - level / 2) * error, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(numbers[:, 5], estimate + law.ppf(0.5 + level / 2) * error, rtol=1e-9, atol=1e-12)


def test_a_level_is_a_share():
    for level in (95, 1.5, -0.5, np.nan):
        with pytest.raises(ValueError, match="level"):
            fitted("poisson").summary(level=level)


def test_summary_in_words():
    """Two groups, of means 2 and 6: everything in closed form, to the digits shown."""
    table = pd.DataFrame({"group": list("uuvvv")})
    y = [1, 3, 4, 6, 8]
    text = str(glm("poisson").fit(table, y).summary(level=0.9))
    lines = text.splitlines()
    assert lines[0] == "GeneralizedLinearModel: poisson response, log link, 5 rows, 2 parameters"
    first, second = np.log(2), np.log(3)
    errors = np.sqrt(1 / 4), np.sqrt(1 / 4 + 1 / 18)
    z = stats.norm.ppf(0.95)
    for name, estimate, error in (("(intercept)", first, errors[0]), ("group = v", second, errors[1])):
        (line,) = (line for line in lines if line.strip().startswith(name))
        p = 2 * stats.norm.sf(estimate / error)
        figures = (estimate, error, estimate / error, p, estimate - z * error, estimate + z * error)
        assert line.split(name)[1].split() == [f"{v:.6g}" for v in figures]
    mean = np.array([2, 2, 6, 6, 6])
    likelihood = stats.poisson.logpmf(y, mean).sum()
    deviance, null = (2 * (stats.poisson.logpmf(y, y) - stats.poisson.logpmf(y, m)).sum() for m in (mean, np.mean(y)))
    assert f"note: deviance {deviance:.6g} on 3 degrees of freedom, null deviance {null:.6g}" in lines
    assert f"note: log-likelihood {likelihood:.6g}, AIC {4 - 2 * likelihood:.6g}" in lines


def test_summary_of_gaussian_says_its_dispersion():
    """Residuals ±1 in both groups: 4/2."""
    summary = glm("gaussian").fit([[0], [0], [1], [1]], [1, 3, 5, 7]).summary()
    assert summary.title == "GeneralizedLinearModel: gaussian response, identity link, 4 rows, 2 parameters"
    assert "deviance 4 on 2 degrees of freedom, null deviance 20" in summary.notes
    assert "dispersion 2, the residual variance" in summary.notes


def test_summary_of_classes_says_what_is_compared():
    x, y = sample("multinomial")
    summary = glm("multinomial").fit(x, np.array(["a", "b", "c"])[y]).summary()
    assert [table.title for table in summary.tables] == ["coefficients of b against a", "coefficients of c against a"]
    assert "80 rows, 8 parameters" in summary.title
    assert any("on 152 degrees of freedom" in note for note in summary.notes)  # 2·80 − 8


def test_path_goes_down(family):
    model = fitted(family)
    values = [row[1] for row in model.path_.rows]
    assert all(after <= before + 1e-14 * values[0] for before, after in pairwise(values))  # within rounding
    assert model.inference_.deviance <= 2 * values[-1] * (1 + 1e-12)


# Columns
@pytest.fixture(scope="module")
def mixed():
    """Numbers, text and booleans, with missing values."""
    rng = np.random.default_rng(5)
    n = 90
    table = pd.DataFrame({"a": rng.uniform(-1, 1, n), "g": rng.choice(list("uvw"), n), "b": rng.random(n) < 0.5})
    table.loc[::7, "a"] = np.nan
    table.loc[::10, "g"] = None
    return table


def features_by_hand(table):
    a, g = table["a"].to_numpy(), table["g"]
    filled = np.where(np.isnan(a), np.nanmean(a), a)
    return np.column_stack([filled, table["b"], np.isnan(a), g == "v", g == "w", g.isna()]).astype(float)


def test_text_and_missing_values_are_indicators(family, mixed):
    _, y = sample(family, n=90)
    form = pl.from_pandas if family in CLASSES else pd.DataFrame
    model = glm(family).fit(form(mixed), y)
    assert model.feature_names_ == ("a", "b", "a missing", "g = v", "g = w", "g = missing")
    by_hand = features_by_hand(mixed)
    plain = glm(family).fit(by_hand, y)
    assert_same_inference(model.inference_, plain.inference_)
    np.testing.assert_allclose(model.predict_mean(form(mixed)), plain.predict_mean(by_hand), rtol=1e-9)


def test_y_may_be_the_name_of_a_column(family):
    x, y = sample(family)
    for table in (pd.DataFrame, pl.DataFrame):
        whole = table({"a": x[:, 0], "y": y, "b": x[:, 1], "c": x[:, 2]})
        model = glm(family).fit(whole, "y")
        assert model.feature_names_ == ("a", "b", "c")
        np.testing.assert_array_equal(model.coef_, fitted(family).coef_)
        np.testing.assert_array_equal(model.predict(whole), fitted(family).predict(x))
        assert model.score(whole, "y") == pytest.approx(fitted(family).score(x, y), rel=1e-12)


def test_the_form_of_the_rows_does_not_matter(family):
    x, y = sample(family)
    x = np.round(x * 256) / 256  # which float32 holds
    plain = glm(family).fit(x, y)
    strided, named = np.repeat(x, 2, axis=1)[:, ::2], pl.DataFrame(x, schema=list("abc"))
    for form in (np.asfortranarray(x), strided, x.astype(np.float32), x.tolist(), sp.csr_array(x), named):
        model = glm(family).fit(form, y)
        assert_same_inference(model.inference_, plain.inference_)
        np.testing.assert_allclose(model.predict_mean(form), plain.predict_mean(x), rtol=1e-9)


def test_the_form_of_y_does_not_matter(family):
    x, y = sample(family)
    for form in (list, tuple, pd.Series, pl.Series):
        model = glm(family).fit(x, form(y.tolist()))
        np.testing.assert_array_equal(model.coef_, fitted(family).coef_)
        assert model.score(x, form(y.tolist())) == fitted(family).score(x, y)


def test_a_table_without_evidence_is_the_intercept_alone(family):
    """A column that is empty: there are no features, and the mean is that of all rows."""
    _, y = sample(family)
    table = pd.DataFrame({"hollow": [None] * 80})
    model = glm(family).fit(table, y)
    assert model.feature_names_ == ()
    assert model.coef_.size == 0
    assert model.inference_.deviance == pytest.approx(model.inference_.null_deviance, rel=1e-12)
    overall = np.mean(y[:, np.newaxis] == [1, 2], axis=0) if family == "multinomial" else np.array([np.mean(y)])
    eta = np.atleast_1d(model.intercept_)[np.newaxis]
    np.testing.assert_allclose(textbook_mean(family, eta)[0], overall, rtol=1e-9)
    np.testing.assert_allclose(model.predict_mean(table).reshape(80, -1), np.tile(overall, (80, 1)), rtol=1e-9)
    assert [row[0] for row in model.summary().tables[0].rows] == ["(intercept)"]


# Columns that say nothing new
def test_a_redundant_column_changes_no_prediction(family):
    x, y = sample(family)
    more = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "sum": x[:, 0] + 2 * x[:, 1], "c": x[:, 2]})
    with pytest.warns(db.DecibanWarning, match="collinear: columns 'a', 'b', 'sum' are combinations of each other"):
        model = glm(family).fit(more, y)
    assert model.status_ == "collinear: columns 'a', 'b', 'sum' are combinations of each other"
    assert model.status_ in model.summary().notes
    np.testing.assert_allclose(model.predict_mean(more), fitted(family).predict_mean(x), rtol=1e-8)
    inference, plain = model.inference_, fitted(family).inference_
    assert inference.undetermined == (1, 2, 3)
    assert np.isinf(inference.standard_errors[:, 1:4]).all()
    np.testing.assert_allclose(inference.standard_errors[:, [0, 4]], plain.standard_errors[:, [0, 3]], rtol=1e-7)
    for name in ("rank", "deviance", "null_deviance", "dispersion", "residual_df", "aic"):
        assert getattr(inference, name) == pytest.approx(getattr(plain, name), rel=1e-9), name
    rows = {row[0]: row[1:] for row in model.summary().tables[0].rows}
    assert rows["sum"][1:] == (np.inf, 0.0, 1.0, -np.inf, np.inf)
    assert np.isfinite(rows["c"]).all()


def test_a_constant_column_is_noted_without_a_warning(family):
    x, y = sample(family)
    more = pd.DataFrame({"a": x[:, 0], "same": 5.0, "b": x[:, 1], "c": x[:, 2]})
    model, less = glm(family).fit(more, y), fitted(family)
    assert model.status_ == "constant: columns 'same'"
    assert model.status_ in model.summary().notes
    np.testing.assert_allclose(model.predict_mean(more), less.predict_mean(x), rtol=1e-9)
    np.testing.assert_array_equal(np.atleast_2d(model.coef_)[:, 1], 0)
    assert np.isinf(model.inference_.standard_errors[:, 2]).all()
    np.testing.assert_allclose(
        model.inference_.standard_errors[:, [1, 3, 4]], less.inference_.standard_errors[:, 1:], rtol=1e-8
    )
    assert model.inference_.rank == less.inference_.rank


# Classes that can be separated
@pytest.mark.parametrize("one", CLASSES)
def test_separable_classes_are_said_and_stay_finite(one):
    rng = np.random.default_rng(0)
    y = np.arange(60) % (2 if one == "bernoulli" else 3)
    x = pd.DataFrame({"noise": rng.normal(size=60), "tell": y + rng.uniform(-0.3, 0.3, 60)})
    with pytest.warns(db.DecibanWarning, match="^separable by: columns 'tell'"):
        model = glm(one).fit(x, y)
    assert model.status_ == "separable by: columns 'tell'"
    assert model.status_ in model.summary().notes
    assert model.score(x, y) == 1
    inference = model.inference_
    for values in (
        model.coef_,
        model.intercept_,
        inference.standard_errors,
        inference.p_values,
        inference.intervals(0.9),
    ):
        assert np.isfinite(values).all()
    assert np.isfinite([inference.deviance, inference.aic]).all()
    assert inference.deviance < 0.01 * inference.null_deviance


def test_partly_separable_classes_are_said():
    """In group v there are only 1s: its log-odds have no end, those of the others have."""
    table = pd.DataFrame({"g": list("uuuuvvvv")})
    with pytest.warns(db.DecibanWarning, match="partly separable by: columns 'g = v'"):
        model = glm("bernoulli").fit(table, [0, 1, 1, 1, 1, 1, 1, 1])
    assert model.predict_mean(table)[0] == pytest.approx(3 / 4, rel=1e-3)
    assert model.predict_mean(table)[-1] > 0.99
    assert np.isfinite(model.inference_.standard_errors).all()


# y that is no response
def test_y_outside_of_the_domain_is_named_by_its_row():
    for family, value, words in [
        ("poisson", -1, "y, row 7: -1 is not a count"),
        ("exponential", 0, "y, row 7: 0 must be above 0"),
        ("exponential", -2.5, "y, row 7: -2.5 must be above 0"),
        ("gaussian", np.nan, "y, row 7: nan is missing"),
        ("poisson", np.nan, "y, row 7: nan is missing"),
        ("exponential", np.nan, "y, row 7: nan is missing"),
        ("gaussian", np.inf, "y, row 7: inf is missing or infinite"),
    ]:
        x, y = sample(family)
        y = np.where(np.arange(80) == 7, value, y.astype(float))
        for rows, target in ((x, y), (pd.DataFrame(x, columns=list("abc")).assign(y=y), "y")):
            with pytest.raises(db.DecibanError, match=words):
                glm(family).fit(rows, target)


@pytest.mark.parametrize("one", CLASSES)
def test_a_missing_class_is_named_by_its_row(one):
    with pytest.raises(db.DecibanError, match="row 2"):
        glm(one).fit([[0], [1], [2], [3]], ["a", "b", None, "c" if one == "multinomial" else "a"])


def test_y_that_is_no_number_is_named_by_its_row(number_family):
    missing, words = [1, 2, None, 3], ["one", "two", "three"]
    table = pd.DataFrame({"a": [0, 1, 2], "y": words})
    for x, y, message in [
        *(
            ([[0], [1], [2], [3]], y, "y, row 2")
            for y in (missing, pd.Series(missing, dtype="Int64"), pl.Series(missing))
        ),
        *((x, y, "y must be numbers for a|row 0") for x, y in ((table[["a"]], table["y"]), (table, "y"))),
        ([[0], [1], [2]], words, "y must be numbers for a|row 0"),
        ([[0], [1], [2]], [1.0, "two", 3.0], "row 1"),
    ]:
        with pytest.raises(db.DecibanError, match=message):
            glm(number_family).fit(x, y)


def test_other_numbers_of_classes_are_refused():
    x = [[0], [1], [2], [3]]
    for one in CLASSES:
        with pytest.raises(db.DecibanError, match="needs two classes; y holds 1 class"):
            glm(one).fit(x, ["a"] * 4)
    with pytest.raises(db.DecibanError, match=r"two classes; y holds 3 classes: \['a', 'b', 'c'\].*multinomial"):
        glm("bernoulli").fit(x, list("abca"))


def test_numbers_of_rows_must_agree(family):
    x, y = sample(family)
    with pytest.raises(db.DecibanError, match="80 rows, 79 labels"):
        glm(family).fit(x, y[:79])
    with pytest.raises(ValueError, match="requires y"):
        glm(family).fit(x)
    for two in (np.column_stack([y, y]), np.column_stack([y, y]).tolist()):
        with pytest.raises(db.DecibanError, match="y should be a 1d array"):
            glm(family).fit(x, two)
    for nothing in (np.empty((0, 2)), pd.DataFrame({"a": np.empty(0)})):
        with pytest.raises(ValueError, match=r"0 sample|no rows"):
            glm(family).fit(nothing, [])


def test_settings_are_checked():
    x, y = sample("gaussian")
    with pytest.raises(ValueError, match=r"family .*'gamma'"):
        glm("gamma").fit(x, y)
    for l2 in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="l2"):
            glm("gaussian", l2=l2).fit(x, y)


def test_a_bad_cell_is_named_with_its_row_as_passed(family):
    x, y = sample(family)
    x[4, 1] = np.inf
    with pytest.raises(db.DecibanError, match="column 1, row 4: inf"):
        glm(family).fit(x, y)
    weights = np.where(np.arange(80) < 2, 0.0, 1.0)
    with pytest.raises(db.DecibanError, match="column 1, row 4: inf"):
        glm(family).fit(x, y, sample_weight=weights)


def test_a_fit_that_fails_leaves_the_model_as_it_was(family):
    x, y = sample(family)
    labels = np.array(["a", "b", "c"])[y] if family in CLASSES else y
    model = glm(family).fit(x, labels)
    before = model.predict(x)
    other = np.array(["d", "e", "f"])[y] if family in CLASSES else y
    with pytest.raises(db.DecibanError, match="inf"):
        model.fit(np.where(np.arange(3) == 1, np.inf, x), other)
    np.testing.assert_array_equal(model.predict(x), before)


def test_asking_before_the_fit_is_an_error():
    model, (x, y) = glm("poisson"), sample("poisson")
    for ask in (
        lambda: model.predict(x),
        lambda: model.predict_mean(x),
        lambda: model.score(x, y),
        lambda: model.summary(),
        lambda: model.coef_,
        lambda: model.intercept_,
        lambda: model.feature_names_,
    ):
        with pytest.raises(NotFittedError):
            ask()


def test_a_fit_cut_short_is_said():
    x, y = sample("poisson")
    with pytest.warns(db.DecibanWarning, match="not converged after 1 iterations"):
        model = glm("poisson", max_iter=1).fit(x, y)
    assert model.status_ == "not converged after 1 iterations"


# The edge of the domain
def quiet(family, x, y):
    """A fit that may say what it will: what counts here is the numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", db.DecibanWarning)
        return glm(family).fit(x, y)


def test_a_group_without_events_has_a_rate_near_0():
    """Its coefficient has no end; everything stays finite, and the other groups are fitted."""
    table = pd.DataFrame({"g": list("uuuvvvwww")})
    model = quiet("poisson", table, [2, 4, 3, 0, 0, 0, 1, 0, 1])
    inference = model.inference_
    for values in (
        inference.estimates,
        inference.covariance,
        inference.p_values,
        inference.deviance,
        inference.null_deviance,
        inference.aic,
    ):
        assert np.isfinite(values).all()
    rates = model.predict(table)[::3]
    np.testing.assert_allclose(rates[[0, 2]], [3, 2 / 3], rtol=1e-6)
    assert 0 <= rates[1] < 1e-6
    assert np.isfinite(model.score(table, [2, 4, 3, 0, 0, 0, 1, 0, 1]))
    assert "nan" not in str(model.summary())


def test_a_single_column_is_never_collinear():
    """A group without events has next to no curvature; where the other is fitted without error, the search is long."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = glm("poisson").fit([[0], [0], [1], [1]], [0, 0, 4, 4])
    np.testing.assert_allclose(model.predict([[0], [1]]), [0, 4], atol=1e-6)
    assert np.isfinite(model.coef_).all()
    assert not [str(w.message) for w in caught if "collinear" in str(w.message)]
    assert model.inference_.rank == 2


def test_no_events_at_all():
    x, _ = sample("poisson")
    model = quiet("poisson", x, np.zeros(80))
    assert (model.predict(x) < 1e-6).all()
    assert np.isfinite(model.coef_).all()
    assert model.inference_.deviance == pytest.approx(0, abs=1e-6)


def test_counts_need_not_be_whole():
    x, y = sample("poisson")
    assert_score_equations(glm("poisson").fit(x, y / 4), "poisson", x, y / 4)


@pytest.mark.parametrize("ratio", [1e3, 1e6])
def test_two_groups_of_waiting_times_that_differ_by_far(ratio):
    """η is −1/mean: from one first guess for both, a full step leaves the domain."""
    x, y = [[0], [0], [1], [1]], np.array([1, 3, 1, 3]) * np.array([1, 1, ratio, ratio])
    model = glm("exponential").fit(x, y)
    np.testing.assert_allclose(model.predict([[0], [1]]), [2, 2 * ratio], rtol=1e-7)
    # Var η = 1/(n mean²), of each group
    error = np.sqrt(1 / (2 * 2**2))
    assert model.inference_.standard_errors[0, 0] == pytest.approx(error, rel=1e-4)
    assert model.status_ == "ok"


@pytest.mark.parametrize("seed", range(2))
def test_waiting_times_with_rates_near_0_stay_inside(seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 1, (200, 2))
    y = rng.exponential(1 / (0.001 + x @ [5.0, 0.1]))
    model = glm("exponential").fit(x, y)
    assert (x @ model.coef_ + model.intercept_ < 0).all()
    assert_score_equations(model, "exponential", x, y)


def test_a_prediction_outside_of_the_domain_is_infinite_with_a_warning():
    model = glm("exponential").fit([[0.0], [1.0], [2.0], [3.0]], [4.0, 1.0, 0.5, 0.4])
    edge = -model.intercept_ / model.coef_[0]  # η = 0
    with pytest.warns(db.DecibanWarning, match="outside the response's domain"):
        predicted = model.predict([[edge - 1.0], [edge - 1e6], [1.0]])
    assert np.isposinf(predicted[:2]).all()
    assert predicted[2] == pytest.approx(-1 / (model.coef_[0] + model.intercept_), rel=1e-12)
    with pytest.warns(db.DecibanWarning, match="outside the response's domain"):
        assert np.isposinf(model.predict_mean([[edge - 1.0]])).all()
    assert np.isfinite(model.predict([[1.0]])).all()


def test_a_prediction_beyond_all_numbers_is_infinite_with_a_warning():
    model = fitted("poisson")
    with pytest.warns(db.DecibanWarning) as caught:
        predicted = model.predict([1e6 * np.sign(model.coef_), -1e6 * np.sign(model.coef_)])
    assert predicted.tolist() == [np.inf, 0.0]
    assert all(w.category is db.DecibanWarning for w in caught)


# Fits without error, and few rows
@pytest.mark.parametrize("noise", [0.0, 1e-13, 1e-10])
def test_a_gaussian_fit_without_error_is_ok(noise):
    """What is left is rounding, or next to it: nothing to warn of."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 2))
    y = 2.0 + x @ [1.0, 3.0] + noise * rng.normal(size=30)
    model = glm("gaussian").fit(x, y)
    assert model.status_ == "ok"
    np.testing.assert_allclose([model.intercept_, *model.coef_], [2, 1, 3], rtol=1e-9)
    assert model.score(x, y) == pytest.approx(1, abs=1e-12)
    assert (model.inference_.standard_errors < 1e-9).all()


def test_whole_numbers_on_a_line_leave_a_residual_of_exactly_0():
    model = glm("gaussian").fit([[0], [1], [2], [3]], [1, 3, 5, 7])
    assert [model.intercept_, *model.coef_] == pytest.approx([1, 2], rel=1e-13)
    assert model.inference_.deviance == pytest.approx(0, abs=1e-25)
    assert not np.isnan([row[1:] for row in model.summary().tables[0].rows]).any()
    slope = model.summary().tables[0].rows[1]
    assert slope[4] < 1e-10  # p: nothing could be surer


@pytest.mark.parametrize(("one", "y"), [("gaussian", [2, 5]), ("poisson", [3, 7]), ("exponential", [2.1, 5.7])])
def test_as_many_rows_as_parameters_are_fitted_exactly(one, y):
    x = [[0.0], [1.3]]
    model = glm(one).fit(x, y)
    assert model.status_ == "ok"
    np.testing.assert_allclose(model.predict(x), y, rtol=1e-9)
    assert model.inference_.residual_df == 0
    assert model.inference_.deviance == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("one", "y"), [("gaussian", [2, 5]), ("poisson", [3, 7]), ("exponential", [2.1, 5.7])])
def test_fewer_rows_than_columns_are_fitted_exactly_and_said(one, y):
    x = np.array([[0.0, 1.0, 5.0], [1.0, 3.0, 4.0]])
    with pytest.warns(db.DecibanWarning, match="collinear"):
        model = glm(one).fit(x, y)
    assert model.status_ == "collinear: columns 0, 1, 2 are combinations of each other"
    np.testing.assert_allclose(model.predict(x), y, rtol=1e-9)
    assert np.isinf(model.inference_.standard_errors[:, 1:]).all()
    assert np.isfinite(model.coef_).all()
    assert model.inference_.rank == 2


def test_one_row_is_its_own_mean(number_family):
    model = glm(number_family).fit([[3.0, 1.0]], [2.0])
    assert model.status_ == "constant: columns 0, 1"
    np.testing.assert_allclose(model.predict([[3.0, 1.0], [7.0, 2.0]]), 2.0, rtol=1e-12)
    assert model.coef_.tolist() == [0, 0]
    assert model.inference_.rank == 1
    assert str(model.summary())


# Units and distances
def test_units_of_columns_scale_their_coefficients(family):
    x, y = sample(family)
    plain = fitted(family)
    for units in np.array([(1e12, 1e-12, 1.0), (1e-12, 1e12, 1e12), (1e-100, 1e100, 1e-12)]):
        model = glm(family).fit(x * units, y)
        assert model.status_ == "ok"
        np.testing.assert_allclose(model.coef_ * units, plain.coef_, rtol=1e-8)
        errors = model.inference_.standard_errors * np.append(1.0, units)
        np.testing.assert_allclose(errors, plain.inference_.standard_errors, rtol=1e-8)
        np.testing.assert_allclose(model.predict_mean(x * units), plain.predict_mean(x), rtol=1e-8)


@pytest.mark.parametrize("unit", [1e-12, 1e12])
def test_units_of_a_gaussian_y_scale_everything(unit):
    x, y = sample("gaussian")
    plain, model = glm("gaussian").fit(x, y).inference_, glm("gaussian").fit(x, y * unit).inference_
    np.testing.assert_allclose(model.estimates, plain.estimates * unit, rtol=1e-9)
    np.testing.assert_allclose(model.standard_errors, plain.standard_errors * unit, rtol=1e-9)
    np.testing.assert_allclose(model.p_values, plain.p_values, rtol=1e-7)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_units_of_waiting_times_scale_the_rates(unit):
    x, y = sample("exponential")
    plain, model = glm("exponential").fit(x, y).inference_, glm("exponential").fit(x, y * unit).inference_
    np.testing.assert_allclose(model.estimates * unit, plain.estimates, rtol=1e-8)
    assert model.deviance == pytest.approx(plain.deviance, rel=1e-8)


@pytest.fixture(scope="module")
def far():
    """1e8 and small differences, which doubles hold exactly."""
    x, y = sample("gaussian")
    x = np.round(x * 1024) / 1024
    return x, x + FAR, y


def test_columns_far_from_zero_keep_their_digits(far):
    """Against least squares of the differences."""
    near, x, y = far
    centred = np.column_stack([np.ones(80), near - near.mean(axis=0)])
    expected = np.linalg.lstsq(centred, y, rcond=None)[0]
    model = glm("gaussian").fit(x, y)
    assert model.status_ == "ok"
    np.testing.assert_allclose(model.coef_, expected[1:], rtol=1e-11)
    residual = y - centred @ expected
    covariance = residual @ residual / 76 * np.linalg.inv(centred.T @ centred)
    np.testing.assert_allclose(model.inference_.standard_errors[0, 1:], np.sqrt(np.diag(covariance))[1:], rtol=1e-11)
    assert model.inference_.deviance == pytest.approx(residual @ residual, rel=1e-11)


def test_every_response_bears_columns_far_from_zero(family):
    x, y = sample(family)
    x = np.round(x * 1024) / 1024
    plain, model = glm(family).fit(x, y), glm(family).fit(x + FAR, y)
    assert model.status_ == "ok"
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-8)
    np.testing.assert_allclose(
        model.inference_.standard_errors[:, 1:], plain.inference_.standard_errors[:, 1:], rtol=1e-8
    )


# scikit-learn
def test_a_new_fit_forgets_the_old_one():
    x, y = sample("multinomial")
    model = glm("multinomial").fit(pd.DataFrame(x, columns=list("abc")), y)
    x, y = sample("poisson", columns=2)
    model.set_params(family="poisson").fit(x, y)
    np.testing.assert_array_equal(model.coef_, glm("poisson").fit(x, y).coef_)
    assert model.n_features_in_ == 2
    assert not hasattr(model, "feature_names_in_")
    assert model.predict(x).shape == (80,)
