"""The figures on tables: their numbers are those of deciban, and of exact fractions."""

import warnings
from fractions import Fraction
from math import prod

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import deciban as db
from deciban.families import Bernoulli, Gaussian, Multinomial
from deciban.families.priors import log_frequencies
from tests.lectures.figures import PHONE, SCHEMES, WIDE, low_contrast, scrolls_sideways
from tests.lectures.table_figures import numbers, open_figure, shown
from tests.report.browser import ONE_BROWSER

pytestmark = [ONE_BROWSER, pytest.mark.slow]

EXACT = 1e-9
WORDS = ["book", "buy", "do", "drugs", "math", "today"]
MAILS = ["Do math today", "Buy", "Buy book", "Today do math drugs", "Buy drugs book today"]
LABELS = ["ham", "spam", "ham", "spam", "spam"]
FIGURES = {
    "bayes": {},
    "spam": {"model": "multinomial", "alpha": 9.5},
    "evade": {"errata": "true"},
    "coin": {},
    "parameters": {"features": 65536},
    "threshold": {"rounding": 0.1},
}


def bits(mail):
    return [int(word in mail.lower().split()) for word in WORDS]


# Looks ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("size", [WIDE, PHONE])
@pytest.mark.parametrize("name", FIGURES)
def test_figures_fit_and_can_be_read(figures, name, size, scheme):
    page = open_figure(figures, name, size, scheme, **FIGURES[name])
    assert not scrolls_sideways(page)
    assert low_contrast(page) == []
    overflowing = (
        "[...document.querySelectorAll('.figure-scroll')].filter((n) => n.scrollWidth > n.clientWidth + 1).length"
    )
    assert page.evaluate(overflowing) == 0


# Bayes' rule ---------------------------------------------------------------------------------------------------------


def test_decibans_add(figures):
    page = open_figure(figures, "bayes")
    found = numbers(page, prior=-17.5, first=12, second=8.5, third=-4)
    odds = 10**-1.75 * 10**1.2 * 10**0.85 * 10**-0.4
    assert found["sums"] == pytest.approx([-17.5, -5.5, 3, -1])
    assert found["odds"] == pytest.approx(odds, rel=EXACT)
    assert found["probability"] == pytest.approx(odds / (1 + odds), rel=EXACT)
    expected = [[0, 1, 1 / 2], [10, 10, 10 / 11], [20, 100, 100 / 101]]
    np.testing.assert_allclose(found["scale"], expected, rtol=EXACT)
    for _ in range(2):
        page.get_by_label("evidence 3").press("ArrowRight")
    assert numbers(page)["total"] == pytest.approx(0)
    assert "odds 1 : 1, probability 0.5" in shown(page, ".figure-note")[0]


# Spam mails ----------------------------------------------------------------------------------------------------------


def smoothed(count, total, values, alpha):
    return (count + alpha) / (total + values * alpha)


def exact_spam(mails, labels, words, model, alpha):
    """P(spam), the joint probabilities and φ, in fractions."""
    rows = {label: [mail for mail, own in zip(mails, labels, strict=True) if own == label] for label in ("ham", "spam")}
    counts = {label: [sum(column) for column in zip(*own, strict=True)] for label, own in rows.items()}
    both = [ham + spam for ham, spam in zip(*counts.values(), strict=True)]
    phi = {}
    for label, k in counts.items():
        if model == "bernoulli":
            phi[label] = [smoothed(Fraction(one), len(rows[label]), 2, alpha) for one in k]
        else:
            k = k if sum(k) or alpha else (both if sum(both) else [1] * 6)
            phi[label] = [smoothed(Fraction(one), sum(k), 6, alpha) for one in k]
    constant = [model == "bernoulli" and k in (0, len(mails)) for k in both]
    joint = {}
    for label, shares in phi.items():
        absent = [1 - p if model == "bernoulli" else Fraction(1) for p in shares]
        used = [p if word else q for p, q, word in zip(shares, absent, words, strict=True)]
        informative = [p for p, same in zip(used, constant, strict=True) if not same]
        joint[label] = Fraction(len(rows[label]), len(mails)) * prod(informative, start=Fraction(1))
    total = sum(joint.values())
    posterior = joint["spam"] / total if total else Fraction(len(rows["spam"]), len(mails))
    tables = {
        word: None if constant[j] else {label: str(phi[label][j]) for label in phi} for j, word in enumerate(WORDS)
    }
    return posterior, joint, tables


def assert_same_spam(found, mails, labels, words, model, alpha):
    posterior, joint, tables = exact_spam(mails, labels, words, model, Fraction(alpha))
    assert Fraction(found["posterior"]) == posterior
    assert {label: Fraction(p) for label, p in found["joint"].items()} == joint
    assert found["shares"] == tables
    family = Bernoulli() if model == "bernoulli" else Multinomial()
    fitted = db.NaiveBayes(family, smoothing=alpha).fit(pd.DataFrame(mails, columns=WORDS), labels)
    new = pd.DataFrame([words], columns=WORDS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", db.DecibanWarning)  # impossible under every class
        proba = fitted.predict_proba(new)[0, 1]
        explanation = fitted.explain(new)
    assert found["probability"] == pytest.approx(proba, rel=EXACT)
    log_joint = [found["jointLog"][label] for label in ("ham", "spam")]
    np.testing.assert_allclose(log_joint, fitted.predict_joint_log_proba(new)[0], rtol=EXACT)
    assert list(found["decibans"]) == list(explanation.names)
    decibans = explanation.decibans("spam", "ham")[0]
    np.testing.assert_allclose(list(found["decibans"].values()), decibans, rtol=EXACT, atol=EXACT)
    np.testing.assert_allclose(found["logOdds"], explanation.log_odds("spam", "ham")[0], rtol=EXACT, atol=EXACT)


@pytest.mark.parametrize(
    ("model", "alpha", "posterior"),
    [("bernoulli", 0, "256/499"), ("bernoulli", 1, "20736/36361"), ("multinomial", 1, "1331/2331")],
)
def test_spam_of_the_lecture(figures, model, alpha, posterior):
    page = open_figure(figures, "spam", model=model)
    assert page.get_by_label("model").input_value() == model
    found = numbers(page, alpha=alpha)
    assert found["posterior"] == posterior
    assert posterior in shown(page, ".figure-verdict")[0]
    assert_same_spam(found, [bits(mail) for mail in MAILS], LABELS, bits("Buy book today"), model, alpha)


@pytest.mark.parametrize("model", ["bernoulli", "multinomial"])
def test_spam_of_any_mails(figures, model):
    page = open_figure(figures, "spam", model=model)
    rng = np.random.default_rng(7)
    impossible = 0
    for round in range(60):
        mails = (rng.random((5, 6)) < rng.choice([0.15, 0.5, 0.85])).astype(int).tolist()
        labels = rng.permutation(["ham", "spam", *rng.choice(["ham", "spam"], 3)]).tolist()
        words = (rng.random(6) < 0.5).astype(int).tolist()
        alpha = 0 if round % 2 else int(rng.integers(0, 21)) / 2
        found = numbers(page, mails=mails, labels=labels, words=words, alpha=alpha)
        assert_same_spam(found, mails, labels, words, model, alpha)
        impossible += len(found["impossible"]) == 2
    assert impossible  # some are impossible under both classes


def test_spam_by_clicks_and_keys(figures):
    page = open_figure(figures, "spam", model="bernoulli")
    mails, labels, words = [bits(mail) for mail in MAILS], list(LABELS), bits("Buy book today")
    page.get_by_label("drugs in the new mail").click()
    words[3] = 1
    assert_same_spam(numbers(page), mails, labels, words, "bernoulli", 0)
    assert "impossible under ham" in shown(page, ".figure-verdict")[0]
    page.get_by_label("drugs in mail 3").click()
    page.get_by_label("class of mail 2").click()
    mails[2][3], labels[1] = 1, "ham"
    assert page.get_by_label("drugs in mail 3").get_attribute("aria-pressed") == "true"
    for _ in range(5):
        page.get_by_label("Laplace's α").press("ArrowRight")
    assert_same_spam(numbers(page), mails, labels, words, "bernoulli", 2.5)
    page.get_by_label("model").select_option("multinomial")
    assert_same_spam(numbers(page), mails, labels, words, "multinomial", 2.5)
    page.get_by_label("today in the new mail").press("Enter")
    words[5] = 0
    assert_same_spam(numbers(page), mails, labels, words, "multinomial", 2.5)
    page.get_by_role("button", name="Reset mails").click()
    assert_same_spam(numbers(page), [bits(mail) for mail in MAILS], LABELS, bits("Buy book today"), "multinomial", 2.5)


def test_a_class_keeps_a_mail(figures):
    page = open_figure(figures, "spam")
    page.get_by_label("class of mail 1").click()
    page.get_by_label("class of mail 3").click()
    assert "each class needs a mail" in shown(page, ".figure-verdict")[0]
    assert numbers(page)["prior"] == {"ham": "1/5", "spam": "4/5"}


# Taxes ---------------------------------------------------------------------------------------------------------------

PEOPLE = pd.DataFrame(
    {
        "refund": ["Yes", "No", "No", "Yes", "No", "No", "Yes", "No", "No", "No"],
        "status": [
            "Single",
            "Married",
            "Single",
            "Married",
            "Divorced",
            "Married",
            "Divorced",
            "Single",
            "Married",
            "Single",
        ],
        "income": [125.0, 100, 70, 120, 95, 60, 220, 85, 75, 90],
        "evade": ["No", "No", "No", "No", "Yes", "No", "No", "Yes", "No", "Yes"],
    }
)


def assert_same_evade(found, row, alpha, ddof):
    model = db.NaiveBayes({"income": Gaussian(ddof=ddof)}, smoothing=alpha).fit(PEOPLE, "evade")
    new = pd.DataFrame({name: pd.Series([cell], dtype=PEOPLE[name].dtype) for name, cell in row.items()})
    explanation = model.explain(new)
    assert found["probability"] == pytest.approx(model.predict_proba(new)[0, 1], rel=EXACT)
    joint = [found["joint"][label] for label in ("No", "Yes")]
    np.testing.assert_allclose(joint, model.predict_joint_log_proba(new)[0], rtol=EXACT)
    evidence = dict(zip(explanation.names, explanation.decibans("Yes", "No")[0], strict=True))
    assert found["decibans"].keys() == evidence.keys()
    for name, dban in evidence.items():
        assert found["decibans"][name] == pytest.approx(dban, rel=EXACT, abs=EXACT)
    assert found["predicted"] == model.predict(new)[0]


@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("alpha", [0, 0.5, 3])
def test_evade_of_all_rows(figures, alpha, ddof):
    page = open_figure(figures, "evade")
    for refund in ("No", "Yes", None):
        for status in ("Divorced", "Married", "Single", None):
            for income in (88, 130, None):
                row = {"refund": refund, "status": status, "income": income}
                found = numbers(page, **row, alpha=alpha, spread=str(ddof))
                assert_same_evade(found, row, alpha, ddof)


def test_evade_of_the_lecture(figures):
    page = open_figure(figures, "evade")
    found = numbers(page)
    joint = np.exp([found["joint"]["No"], found["joint"]["Yes"]])
    np.testing.assert_allclose(joint, [4.4267637899e-4, 1.8366850019e-14], rtol=1e-9)
    assert found["model"]["status"]["No"] == {"Divorced": "1/7", "Married": "4/7", "Single": "2/7"}
    assert found["model"]["income"]["Yes"]["sd"] == pytest.approx((50 / 3) ** 0.5, rel=EXACT)
    assert found["slide"] is None


def test_evade_by_clicks_and_keys(figures):
    page = open_figure(figures, "evade")
    page.get_by_label("Refund").select_option("missing")
    page.get_by_label("Status").select_option("Married")
    page.get_by_label("Income (K)").press("ArrowLeft")
    for _ in range(2):
        page.get_by_label("Laplace's α").press("ArrowRight")
    assert_same_evade(numbers(page), {"refund": None, "status": "Married", "income": 119}, 1, 0)
    page.get_by_label("income is missing").check()
    assert_same_evade(numbers(page), {"refund": None, "status": "Married", "income": None}, 1, 0)
    page.get_by_label("income is missing").uncheck()
    page.get_by_label("variance divides by").select_option("1")
    page.get_by_label("log axis").check()
    assert_same_evade(numbers(page), {"refund": None, "status": "Married", "income": 119}, 1, 1)
    page.get_by_label("copy row 7").click()
    assert_same_evade(numbers(page), {"refund": "Yes", "status": "Divorced", "income": 220}, 1, 1)


def test_errata_show_the_slide_beside_the_right_numbers(figures):
    page = open_figure(figures, "evade", errata="true")
    found = numbers(page)
    density = stats.norm.pdf(120, 90, [4.82, (50 / 3) ** 0.5])
    assert found["slide"]["sd"] == 4.82
    np.testing.assert_allclose([found["slide"]["joint"], found["correct"]["joint"]], 0.1 * density, rtol=EXACT)
    table = shown(page, "table")[-1]
    assert all(text in table for text in ("4.82", "4.08", "3.2·10⁻¹¹", "1.84·10⁻¹⁴"))
    page.get_by_label("variance divides by").select_option("slide")
    assert np.exp(numbers(page)["joint"]["Yes"]) == pytest.approx(0.1 * density[0], rel=EXACT)


# A coin --------------------------------------------------------------------------------------------------------------


def test_coin_is_a_beta_posterior(figures):
    page = open_figure(figures, "coin")
    for h, t, heads, tails in [(2, 2, 7, 3), (1, 1, 0, 4), (1, 3.5, 20, 0), (7.5, 2, 0, 0), (20, 20, 50, 50)]:
        found = numbers(page, betaHeads=h, betaTails=t, heads=heads, tails=tails)
        mode = np.exp(
            log_frequencies(
                counts := np.array([[tails, heads]]),
                db.priors.Beta(h, t).pseudo_counts(counts, (False, True), ("all",)),
            )
        )[0, 1]
        a, b = Fraction(h) + heads, Fraction(t) + tails
        assert Fraction(found["map"]) == (a - 1) / (a + b - 2)
        assert float(Fraction(found["map"])) == pytest.approx(mode, rel=EXACT)
        assert Fraction(found["mean"]) == a / (a + b)
        assert found["mle"] == (str(Fraction(heads, heads + tails)) if heads + tails else None)
        for curve, density in (("curve", stats.beta(float(a), float(b))), ("priorCurve", stats.beta(h, t))):
            x, y = np.array(found[curve]).T
            np.testing.assert_allclose(y, density.pdf(x), rtol=EXACT, atol=1e-12)


def test_laplace_is_beta_2_2(figures):
    page = open_figure(figures, "coin")
    page.get_by_role("button", name="Flat").click()
    assert numbers(page)["map"] == "7/10"
    page.get_by_role("button", name="Laplace").click()
    page.get_by_label("heads").press("ArrowRight")
    assert numbers(page)["map"] == "9/13"
    assert "Laplace" in shown(page, ".figure-note")[0]
    assert numbers(page, betaHeads=1, betaTails=1, heads=0, tails=0)["map"] is None


# Parameters ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("classes", "features"), [(2, 1), (3, 4), (4, 2)])
def test_parameters_are_those_of_fitted_models(figures, classes, features):
    page = open_figure(figures, "parameters", classes=classes, features=features)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, features)), np.arange(400) % classes
    binary = pd.DataFrame(X > 0)
    pattern = binary.astype(int).astype(str).agg("".join, axis=1).to_frame("pattern")
    fitted = {
        "bernoulli": db.NaiveBayes(Bernoulli()).fit(binary, y),
        "gaussian": db.NaiveBayes(Gaussian()).fit(X, y),
        "shared": db.GaussianDiscriminant().fit(X, y),
        "own": db.GaussianDiscriminant("per-class").fit(X, y),
        "table": db.NaiveBayes().fit(pattern, y),
    }
    totals = {name: int(total) for name, total in numbers(page)["totals"].items()}
    assert totals == {"prior": classes - 1} | {name: model.n_parameters_ for name, model in fitted.items()}


def test_parameters_of_many_pixels(figures):
    page = open_figure(figures, "parameters", classes=10, features=30000)
    page.get_by_label("features d").press("ArrowRight")
    page.get_by_label("classes K").press("ArrowLeft")
    counts, d = numbers(page)["counts"], 65536
    assert int(counts["own"]) == 9 * d + 9 * d * (d + 1) // 2
    assert int(counts["gaussian"]) == 18 * d
    assert len(counts["table"]) == 19730
    assert numbers(page)["log10"]["table"] == pytest.approx(np.log10(9) + d * np.log10(2), rel=EXACT)
    assert numbers(page, features=100)["counts"]["table"] == str(9 * (2**100 - 1))


# Thresholds ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounding", [0.01, 0.05, 0.1, 0.25, 1])
def test_rates_are_those_of_the_roc(figures, rounding):
    page = open_figure(figures, "threshold", rounding=rounding)
    rows = numbers(page)["rows"]
    assert len(rows) == 40
    roc = db.Roc.of([row["positive"] for row in rows], [row["score"] for row in rows])
    for threshold in (0, 0.31, 0.5, 0.55, 0.7, 0.93, 1.01):
        found, rates = numbers(page, threshold=threshold), roc.at(threshold)
        for name in ("tp", "fp", "tn", "fn", "sensitivity", "specificity", "precision", "f1", "accuracy"):
            assert found[name] == pytest.approx(getattr(rates, name), rel=EXACT, nan_ok=True)
        assert found["auc"] == pytest.approx(roc.auc, rel=EXACT)
        np.testing.assert_array_equal(found["roc"], np.column_stack([roc.thresholds, roc.fp, roc.tp]))


def test_threshold_moves_by_slider_and_line(figures):
    page = open_figure(figures, "threshold")
    for _ in range(3):
        page.locator("input[type=range]").press("ArrowRight")
    page.get_by_role("slider", name="threshold").last.press("ArrowRight")
    assert numbers(page)["threshold"] == pytest.approx(0.54)
    page.get_by_label("scores rounded to").select_option("0.25")
    assert len(numbers(page)["roc"]) == 6
    handle = page.locator(".figure-handle").bounding_box()
    x, y = handle["x"] + handle["width"] / 2, handle["y"] + handle["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 100, y)
    page.mouse.up()
    assert numbers(page)["threshold"] > 0.6
