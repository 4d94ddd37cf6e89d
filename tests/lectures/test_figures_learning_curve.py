"""The figure of learning curves: rows from documented generators, and models that are deciban's."""

import math

import numpy as np
import pytest

import deciban as db
from tests.lectures.figures import PHONE, SCHEMES, WIDE, evaluate, low_contrast, results, scrolls_sideways
from tests.report.browser import ONE_BROWSER

pytestmark = [ONE_BROWSER, pytest.mark.slow]

SIZES = [20, 40, 80, 160, 320, 640, 1280]
HELD_OUT, D = 2000, 8
EXACT = 1e-9


def mulberry32(seed):
    """Uniform numbers in [0, 1), in 32-bit arithmetic."""
    state, mask = seed & 0xFFFFFFFF, 0xFFFFFFFF
    while True:
        state = (state + 0x6D2B79F5) & mask
        t = (state ^ (state >> 15)) * (state | 1) & mask
        t ^= (t + ((t ^ (t >> 7)) * (t | 61) & mask)) & mask
        yield (t ^ (t >> 14)) / 2**32


def drawn(truth, seed, n):
    """The rows that lectures.math.sample documents."""
    random = mulberry32(seed)

    def normal():
        radius = math.sqrt(-2 * math.log(1 - next(random)))
        return radius * math.cos(2 * math.pi * next(random))

    rows = []
    for i in range(n):
        c = i % 2
        if truth == "exponential":
            rows.append([-math.log(1 - next(random)) * (2.2 if c else 1) for _ in range(D)])
        elif truth == "independent":
            rows.append([normal() + 0.7 * c for _ in range(D)])
        else:
            own, common = [normal() for _ in range(D)], normal()
            shift = [0.7 * c if j < D / 2 else 0 for j in range(D)]
            rows.append([math.sqrt(0.4) * v + math.sqrt(0.6) * common + s for v, s in zip(own, shift, strict=True)])
    return np.array(rows), np.arange(n) % 2


def scored(model, X, y):
    p = model.predict_proba(X)
    return -np.log(p[np.arange(len(y)), y]).mean(), np.mean(model.predict(X) != y)


def complete(page):
    page.wait_for_function("document.querySelector('.lecture-figure').figure.results().complete")
    return results(page)


MODELS = {
    "lda": lambda: db.GaussianDiscriminant(covariance="shared"),
    "gnb": lambda: db.GaussianDiscriminant(covariance="diagonal"),
}


@pytest.mark.parametrize("truth", ["independent", "correlated", "exponential"])
def test_rows_and_models_are_those_of_python(figures, truth):
    page = figures.open("learning-curve", truth=truth, repeats=2)
    X, y = drawn(truth, 0, HELD_OUT)
    shown = evaluate(page, f"lectures.math.sample('{truth}', 0, 50)")
    np.testing.assert_allclose(shown["X"], X[:50], rtol=1e-12, atol=1e-14)
    assert shown["y"] == y[:50].tolist()
    curves = complete(page)
    assert curves["sizes"] == SIZES
    for name, make in MODELS.items():
        found = results(page, generative=name)["generative"]["runs"]
        for repeat, size in [(0, 0), (1, 1), (0, 3)]:
            loss, error = scored(make().fit(*drawn(truth, repeat + 1, SIZES[size])), X, y)
            assert found[repeat][size] == pytest.approx({"logLoss": loss, "error": error}, rel=EXACT)
    for repeat, size in [(0, 0), (1, 2)]:
        model = db.LogisticRegression(l2=0.01, tol=1e-20).fit(*drawn(truth, repeat + 1, SIZES[size]))
        loss, error = scored(model, X, y)
        assert curves["logistic"]["runs"][repeat][size] == pytest.approx({"logLoss": loss, "error": error}, rel=EXACT)
    for what in ("logLoss", "error"):
        runs = np.array([[at[what] for at in run] for run in curves["logistic"]["runs"]])
        at = curves["logistic"][what]
        np.testing.assert_allclose([point["mean"] for point in at], runs.mean(axis=0), rtol=EXACT)
        errors = runs.std(axis=0, ddof=1) / math.sqrt(len(runs))
        np.testing.assert_allclose([point["error"] for point in at], errors, rtol=EXACT, atol=1e-12)


def log_density(truth, X, c):
    """The log-density of rows in a class, from SciPy."""
    from scipy import stats

    if truth == "exponential":
        return stats.expon(scale=2.2 if c else 1.0).logpdf(X).sum(axis=1)
    correlation = 0.6 if truth == "correlated" else 0.0
    mean = 0.7 * c * (np.arange(D) < (D / 2 if truth == "correlated" else D))
    covariance = (1 - correlation) * np.eye(D) + correlation
    return stats.multivariate_normal(mean, covariance).logpdf(X)


@pytest.mark.parametrize("truth", ["independent", "correlated", "exponential"])
def test_the_best_possible_is_that_of_the_true_densities(figures, truth):
    page = figures.open("learning-curve", truth=truth, repeats=5)
    X, y = drawn(truth, 0, HELD_OUT)
    odds = log_density(truth, X, 1) - log_density(truth, X, 0)
    best = results(page)["best"]
    assert best["logLoss"] == pytest.approx(np.logaddexp(0, np.where(y == 1, -odds, odds)).mean(), rel=EXACT)
    assert best["error"] == np.mean((odds > 0) != y)


def test_the_right_generative_model_needs_fewer_rows_and_the_wrong_one_loses(figures):
    page = figures.open("learning-curve", repeats=5)

    def gaps(found):
        pairs = zip(found["generative"]["logLoss"], found["logistic"]["logLoss"], strict=True)
        return [generative["mean"] - logistic["mean"] for generative, logistic in pairs]

    right = complete(page)
    assert right["right"]
    assert max(gaps(right)[:3]) < 0  # ahead with few rows
    assert abs(gaps(right)[-1]) < 0.005  # level with many
    results(page, truth="exponential")
    wrong = complete(page)
    assert not wrong["right"]
    assert gaps(wrong)[0] < 0 < gaps(wrong)[-1]
    note = page.locator(".figure-note").text_content()
    assert note.startswith("The generative model is wrong: LDA takes the features to be normal")
    assert results(page, generative="gnb", truth="correlated")["right"] is False


def test_controls_change_the_curves_and_the_page_answers_meanwhile(figures):
    page = figures.open("learning-curve", repeats=5)
    complete(page)
    page.get_by_label("Generative").select_option("gnb")
    page.get_by_label("repeats").focus()
    page.keyboard.press("ArrowRight")
    assert evaluate(page, "figure.state.repeats") == 10
    complete(page)
    turns = page.evaluate("""async () => {
        const { figure } = document.querySelector(".lecture-figure");
        figure.set({ repeats: 15 }); // it does not wait for the fits
        let turns = 0; // of other work, between fits
        for (; !figure.results().complete; turns++) await new Promise((resolve) => setTimeout(resolve, 0));
        return turns;
    }""")
    assert turns > 2
    assert "Means of 15 repeats: Gaussian naive Bayes first" in page.locator("table caption").text_content()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("size", [WIDE, PHONE])
def test_it_fits_and_is_readable(figures, size, scheme):
    page = figures.open("learning-curve", size=size, scheme=scheme, repeats=2)
    complete(page)
    assert not scrolls_sideways(page)
    assert low_contrast(page) == []
    assert evaluate(page, "[...box.querySelectorAll('.figure-scroll')].every((t) => t.scrollWidth <= t.clientWidth)")
