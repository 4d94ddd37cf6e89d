"""The figures on densities and exponential families: their numbers are those of deciban."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import deciban as db
from deciban import families
from deciban.families.gaussian import GaussianParams
from deciban.families.rate_family import RateParams
from deciban.families.uniform import UniformParams
from deciban.linear import responses
from tests.lectures.figures import PHONE, SCHEMES, WIDE, low_contrast, scrolls_sideways
from tests.lectures.table_figures import numbers, open_figure, shown
from tests.report.browser import ONE_BROWSER

pytestmark = [ONE_BROWSER, pytest.mark.slow]

EXACT = 1e-9
DECIBANS = 10 / np.log(10)
DENSITIES = ("gaussian", "exponential", "poisson", "uniform", "binned")
NATURAL = ("bernoulli", "gaussian", "poisson", "exponential")


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("size", [WIDE, PHONE])
@pytest.mark.parametrize("figure", ["densities", "families"])
def test_figures_fit_and_can_be_read(figures, figure, size, scheme):
    for family in DENSITIES if figure == "densities" else NATURAL:
        page = open_figure(figures, figure, size, scheme, family=family)
        assert not scrolls_sideways(page)
        assert low_contrast(page) == []


# Densities -----------------------------------------------------------------------------------------------------------


def log_densities(family, parameters, x):
    """log p(x|0) and log p(x|1) of deciban's family."""
    column = {name: np.array([[one[name]] for one in parameters], dtype=float) for name in parameters[0]}
    informative = np.array([True])
    if family == "gaussian":
        of = families.Gaussian(), GaussianParams(column["mean"], column["sd"] ** 2, informative)
    elif family == "uniform":
        of = families.Uniform(), UniformParams(column["low"], column["high"], informative)
    else:
        of = {"exponential": families.Exponential(), "poisson": families.Poisson()}[family], rates(column["rate"])
    out = np.zeros((1, 2))
    of[0].add_log_density(of[1], np.array([[float(x)]]), out)
    return out[0]


def rates(rate):
    return RateParams(rate, np.array([True]))


SETTINGS = [
    ("gaussian", {"mean0": -1.5, "sd0": 1, "mean1": 0.7, "sd1": 1}, [-7, 0.3, 4], "linear"),
    ("gaussian", {"mean0": -1.5, "sd0": 0.6, "mean1": 0.7, "sd1": 2.3}, [-7, 0.3, 4], "quadratic"),
    ("gaussian", {"mean0": 2, "sd0": 0.6, "mean1": 2, "sd1": 0.6}, [-7, 0.3, 4], "constant"),
    ("exponential", {"rate0": 1.7, "rate1": 0.3}, [0.05, 1, 7.5], "linear"),
    ("poisson", {"events0": 1, "events1": 4.5}, [0, 3, 16], "linear"),
    ("poisson", {"events0": 2, "events1": 2}, [0, 3], "constant"),
    ("uniform", {"low0": 10, "high0": 18, "low1": 16, "high1": 30}, [4, 10, 15.5, 16, 18, 18.5, 31], "steps"),
]


@pytest.mark.parametrize("prior", [0.5, 0.2])
@pytest.mark.parametrize(("family", "settings", "places", "shape"), SETTINGS)
def test_densities_are_those_of_deciban(figures, family, settings, places, shape, prior):
    page = open_figure(figures, "densities", family=family)
    for x in places:
        found = numbers(page, **settings, prior=prior, x=x)
        log_p = log_densities(family, found["parameters"], x)
        np.testing.assert_allclose(found["log"], log_p, rtol=EXACT, atol=EXACT)
        joint = log_p + np.log([1 - prior, prior])
        if np.isneginf(joint).all():
            assert found["probability"] == pytest.approx(prior, rel=EXACT)
            assert found["impossible"] == [0, 1]
        else:
            top = joint.max()
            expected = np.exp(joint[1] - top) / np.exp(joint - top).sum()
            assert found["probability"] == pytest.approx(expected, rel=EXACT, abs=1e-15)
            assert found["logOdds"] == pytest.approx((joint[1] - joint[0]) * DECIBANS, rel=EXACT, abs=EXACT)
        assert found["shape"] == shape
        if shape != "steps":
            polynomial = np.polynomial.polynomial.polyval(x, found["coefficients"])
            assert polynomial == pytest.approx(found["logOdds"], rel=EXACT, abs=EXACT)
    if shape != "steps":
        assert shape in shown(page, ".figure-note")[0]


@pytest.mark.parametrize("alpha", [0, 0.5, 3])
@pytest.mark.parametrize("bins", [1, 2, 5, 12])
def test_bins_are_those_of_deciban(figures, bins, alpha):
    page = open_figure(figures, "densities", family="binned")
    sample = numbers(page)["sample"]
    X = pd.DataFrame({"x": np.concatenate(sample)})
    y = np.repeat([0, 1], [len(values) for values in sample])
    family = families.Binned("equal-width", count=bins)
    model = db.NaiveBayes({"x": family}, smoothing=alpha, class_prior=[0.3, 0.7]).fit(X, y)
    for x in (0, 2.15, 3.4, 4.9, 6.5, 8, 10):
        found = numbers(page, bins=bins, alpha=alpha, prior=0.7, x=x)
        new = pd.DataFrame({"x": [float(x)]})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", db.DecibanWarning)
            assert found["probability"] == pytest.approx(model.predict_proba(new)[0, 1], rel=EXACT)
        joint = np.array(found["log"]) + np.log([0.3, 0.7])
        np.testing.assert_allclose(joint, model.predict_joint_log_proba(new)[0], rtol=EXACT, atol=EXACT)
        assert found["shape"] == "steps"


def test_densities_by_sliders(figures):
    page = open_figure(figures, "densities")
    page.get_by_label("σ₁").press("ArrowRight")
    found = numbers(page)
    assert found["shape"] == "quadratic"
    assert found["parameters"][1]["sd"] == pytest.approx(1.1)
    page.get_by_label("family").select_option("uniform")
    assert not page.get_by_label("σ₁").is_visible()
    for _ in range(9):
        page.get_by_label("a₀").press("ArrowRight")  # beyond b₀, which gives way
    assert numbers(page)["parameters"][0] == {"low": 19, "high": 20}
    page.get_by_label("family").select_option("poisson")
    page.get_by_label("x", exact=True).locator("visible=true").press("ArrowRight")
    assert numbers(page)["log"][1] == pytest.approx(stats.poisson.logpmf(3, 4), rel=EXACT)


# Exponential families ------------------------------------------------------------------------------------------------

RESPONSES = {
    "bernoulli": (responses.Bernoulli(), [-6, -0.4, 0, 2.35], lambda mean: stats.bernoulli(mean)),
    "gaussian": (responses.Gaussian(), [-3, 0, 1.25], lambda mean: stats.norm(mean, 1)),
    "poisson": (responses.Poisson(), [-2, 0, 3], lambda mean: stats.poisson(mean)),
    "exponential": (responses.Exponential(), [-4, -1, -0.1], lambda mean: stats.expon(scale=mean)),
}


@pytest.mark.parametrize("family", NATURAL)
def test_families_are_those_of_deciban(figures, family):
    page = open_figure(figures, "families", family=family)
    response, places, distribution = RESPONSES[family]
    for eta in places:
        found = numbers(page, eta=eta)
        at = np.array([[float(eta)]])
        mean = response.mean(at)
        assert found["a"] == pytest.approx(response.log_partition(at)[0], rel=EXACT, abs=EXACT)
        assert found["mean"] == pytest.approx(mean[0, 0], rel=EXACT, abs=EXACT)
        assert found["variance"] == pytest.approx(response.variance(mean, 0, 0)[0], rel=EXACT)
        one = distribution(mean[0, 0])
        y, p = np.array(found["points"]).T
        density = one.pmf if hasattr(one.dist, "pmf") else one.pdf
        np.testing.assert_allclose(p, density(y), rtol=EXACT, atol=1e-14)
        assert found["variance"] == pytest.approx(one.var(), rel=EXACT)


def test_families_by_slider_and_point(figures):
    page = open_figure(figures, "families")
    page.get_by_label("family").select_option("poisson")
    page.locator("input[type=range]").press("ArrowRight")
    page.locator(".figure-handle").press("ArrowLeft")
    page.locator(".figure-handle").press("Shift+ArrowRight")
    assert numbers(page)["mean"] == pytest.approx(np.exp(1.5), rel=EXACT)
    assert page.locator("input[type=range]").input_value() == "1.5"
    page.get_by_label("family").select_option("exponential")
    assert numbers(page)["mean"] == 1
