"""What a reader sees first, what is collapsed, and what stays visible while a row is changed."""

import numpy as np
import pandas as pd
import pytest

import deciban as db
from tests.report import made
from tests.report.browser import ONE_BROWSER
from tests.report.test_page import PHONE, WIDE, field, opened, page, text, views

pytestmark = ONE_BROWSER
__all__ = ["opened", "page"]  # fixtures


@pytest.fixture(scope="module")
def wide():
    """A report of 14 features, the last three of which are noise, and a model that knows two of them."""
    rng = np.random.default_rng(3)
    y = rng.random(300) < 0.5
    table = pd.DataFrame({f"x{j}": rng.normal(size=300) + y * (11 - j) / 6 * (j < 11) for j in range(14)})
    return db.NaiveBayes().fit(table, np.where(y, "yes", "no")).report(table, np.where(y, "yes", "no"), held_out=False)


# First ---------------------------------------------------------------------------------------------------------------


def test_the_page_begins_with_the_result(opened, wide):
    page = opened(wide.figures)
    assert page.locator("main p").first.get_attribute("id") == "lead"
    assert text(page, "#lead") == wide.figures["lead"]
    figures = made.binary()
    page = opened(figures)
    assert text(page, "#lead") == figures["lead"].replace("`", "")
    assert text(page, "#lead code") == "tree"


# Features ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [WIDE, PHONE])
def test_more_than_ten_features_are_collapsed(opened, wide, size):
    page = opened(wide.figures, size)
    decibans = {column["name"]: column["decibans"] for column in wide.figures["head"]["columns"]}
    ranked = sorted(decibans, key=lambda name: -decibans[name])
    names = page.locator(".columns tbody th")
    assert names.all_text_contents() == ranked[:10]
    summary = page.locator("#head summary", has_text="Show 4 more features")
    assert not summary.evaluate("one => one.parentElement.open")
    summary.click()
    names.nth(13).wait_for()
    assert names.all_text_contents() == ranked
    numbers = page.locator(".columns tbody td:last-child").all_text_contents()
    assert numbers == [f"{decibans[name]:.2f}" for name in ranked]


def test_ten_features_are_all_shown(opened):
    page = opened(made.made(["no", "yes"], columns=[f"x{i}" for i in range(10)]))
    assert page.locator(".columns tbody th").count() == 10
    assert page.locator("#head summary", has_text="more feature").count() == 0


# Words ---------------------------------------------------------------------------------------------------------------


def test_predicted_classes_are_said_to_be_predicted(opened, wide):
    page = opened(wide.figures)
    assert text(page, "#predicted-positive") == "predicted yes"
    assert text(page, "#predicted-negative") == "predicted no"
    assert "called" not in text(page, "main")


# Bars ----------------------------------------------------------------------------------------------------------------


def test_bars_that_round_to_zero_are_not_drawn_and_their_rows_stay(opened, wide):
    page = opened(wide.figures)
    field(page, "x12").fill("")
    field(page, "x0").fill("")
    page.evaluate("deciban.drawAll()")
    (parts,) = views(page, "Waterfall", 'view.data("parts").map(({ name, text }) => [name, text])')
    shown = dict(parts)
    assert shown["x12 is missing"] == shown["x0 is missing"] == "+0.0"
    bars = page.locator("#prediction .mark-rect path").evaluate_all(
        "all => all.map((one) => [one.__data__.datum.name, Number(one.getAttribute('opacity') ?? 1)])"
    )
    assert [name for name, _ in bars] == list(shown)
    assert {name for name, opacity in bars if opacity == 0} == {
        name for name, number in shown.items() if number[1:] == "0.0"
    }
    drawn = page.locator("#prediction .chart svg text").all_text_contents()
    assert drawn.count("+0.0") >= 2
    assert "x12 is missing" in drawn


def test_a_probability_of_zero_has_no_bar(opened):
    x = np.concatenate([np.zeros(20), np.ones(20)])[:, np.newaxis]
    model = db.NaiveBayes(db.families.Categorical(), smoothing=0).fit(x, ["a"] * 20 + ["b"] * 20)
    page = opened(model.report(x, ["a"] * 20 + ["b"] * 20, held_out=True).figures)
    widths = page.eval_on_selector_all("#probabilities i", "all => all.map((one) => one.getBoundingClientRect().width)")
    assert min(widths) == 0
    assert max(widths) > 100


# What if -------------------------------------------------------------------------------------------------------------


def answer(page):
    return page.evaluate("""() => {
        const { top, bottom, left, right } = document.getElementById("answer").getBoundingClientRect();
        return { top, bottom, left, right };
    }""")


@pytest.mark.parametrize("size", [WIDE, PHONE, (375, 500)])
def test_the_answer_stays_visible_and_covers_no_input(opened, wide, size):
    page = opened(wide.figures, size)
    page.add_style_tag(content="html { scroll-behavior: auto !important; }")
    inputs = page.locator("#cells input")
    places = [*range(14), *reversed(range(13))]
    inputs.first.focus()
    for step, place in enumerate(places):
        if step:
            page.keyboard.press("Tab" if places[step - 1] < place else "Shift+Tab")
        assert page.evaluate(f"document.activeElement === document.querySelectorAll('#cells input')[{place}]")
        box = answer(page)
        assert box["top"] >= 0
        assert box["bottom"] <= size[1]
        focused = inputs.nth(place).bounding_box()
        assert focused["y"] >= 0
        assert focused["y"] + focused["height"] <= size[1]
        on_top = "([x, y]) => document.elementFromPoint(x, y) === document.activeElement"
        for share in (0.1, 0.9):  # of its height
            point = [focused["x"] + 20, focused["y"] + share * focused["height"]]
            assert page.evaluate(on_top, point), f"input {place} is covered"
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]


def test_the_answer_follows_the_inputs(opened, wide):
    page = opened(wide.figures, PHONE)
    field(page, "x13").fill("nonsense")
    assert page.locator("#answer.stale").count() == 1
    assert "is not a number" in text(page, "#answer #problem")
    field(page, "x13").fill("")
    field(page, "x2").fill("0.5")
    assert page.locator("#answer.stale").count() == 0
    note = text(page, "#waterfall-note")  # "yes against no: +5.3 dban, odds 3.4 to 1."
    side, _, rest = note.partition(" against ")
    other, _, decibans = rest.partition(": ")
    amount, _, odds = decibans.partition(" dban, ")
    assert text(page, "#result").startswith(f"{side}, with probability ")
    assert text(page, "#answer-odds") == f"{amount} dban against {other}, {odds.removesuffix('.')}"


def test_the_answer_of_a_regression(opened):
    x = np.linspace(0, 1, 40)[:, np.newaxis]
    model = db.GeneralizedLinearModel("gaussian").fit(x, 5 * x[:, 0] + 1)
    page = opened(model.report(x, 5 * x[:, 0] + 1).figures, PHONE)
    page.locator("#cells input").fill("0.5")
    assert text(page, "#answer-odds") == "Linear predictor 3.5"
    assert text(page, "#result") == "Mean 3.5"


def test_the_answer_of_curves_is_that_of_the_probabilities(opened):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    x = rng.normal(size=(200, 1)) + y[:, np.newaxis]
    model = db.CalibratedClassifier(db.NaiveBayes(), method="isotonic").fit(x, y)
    page = opened(model.report(x, y).figures)
    page.locator("#cells input").fill("0.7")
    p = np.sort(model.predict_proba([[0.7]])[0])
    decibans = 10 * np.log10(p[1] / p[0])
    assert text(page, "#answer-odds").startswith(f"+{decibans:.1f} dban against ")
