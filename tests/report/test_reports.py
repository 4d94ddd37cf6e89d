"""Reports of real models in a browser: nothing goes wrong, nothing leaves, and what is computed there is right."""

import json

import numpy as np
import pytest

import deciban as db
from tests.report.browser import ONE_BROWSER, some_slow
from tests.report.cases import CASES

pytestmark = ONE_BROWSER

DESK = {"width": 1280, "height": 900}
RATES = ("sensitivity", "specificity", "precision", "f1")


@pytest.fixture(scope="module", params=some_slow(CASES, "binary", "text", "glm"))
def case(request):
    return CASES[request.param]()


@pytest.fixture(scope="module")
def opened(case, browser, tmp_path_factory):
    """The page of a report, open, and what it said and asked for since."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    case.report.save(path)
    heard = {"console": [], "asked": []}
    page = browser.new_page()
    page.set_viewport_size(DESK)
    page.on("console", lambda message: heard["console"].append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: heard["console"].append(str(error)))
    page.on("request", lambda request: heard["asked"].append(request.url))
    page.goto(path.as_uri())
    page.evaluate("window.deciban.ready")
    page.evaluate("window.deciban.drawAll()")
    yield page, heard, path
    page.close()


def test_nothing_goes_wrong_and_nothing_leaves(opened):
    page, heard, path = opened
    page.evaluate("window.deciban.drawAll()")
    assert heard["console"] == []
    assert heard["asked"] == [path.as_uri()]
    assert path.stat().st_size < 2_500_000


def test_the_page_shows_what_the_json_holds(opened, case):
    """The figures inside are those of Python, and those of --json."""
    page, _, _ = opened
    report = case.report
    assert json.loads(report.json()) == page.evaluate("window.deciban.figures")
    said = page.locator("#quality").inner_text()
    for metric in report.figures["quality"]["metrics"]:
        assert metric["title"] in said
    assert report.figures["quality"]["sentence"] in said


def test_the_slider_moves_the_matrix_to_what_python_computes(opened, case):
    page, _, _ = opened
    if not hasattr(case.model, "classes_"):
        pytest.skip("a number has no threshold")
    judged = db.evaluate(case.model, case.table, case.label)
    curves = page.evaluate("window.deciban.figures.quality.curves")
    for place, curve in enumerate(curves):
        if len(curves) > 1:
            page.locator("#curve").select_option(index=place)
        for step in (0, 1, 137, 500, 731, 999, 1000):
            slide(page, step)
            rates = judged.at(step / 1000, curve["class"])
            counts = {
                name: number(page.locator(f"#confusion-{name}").inner_text()) for name in ("tp", "fp", "tn", "fn")
            }
            assert counts == {name: getattr(rates, name) for name in counts}
            for name in RATES:
                shown, expected = page.locator(f"#rate-{name}").inner_text(), getattr(rates, name)
                assert (
                    np.isnan(expected)
                    if shown == "–"
                    else float(shown[:-1]) == pytest.approx(100 * expected, abs=0.0501)
                )


def slide(page, step):
    slider = page.locator("#threshold")
    slider.evaluate(
        "(input, value) => { input.value = value; input.dispatchEvent(new Event('input')); }", str(step / 1000)
    )


def number(text):
    return float(text.replace(",", ""))


def test_what_if_is_what_python_predicts(opened, case):
    """50 rows that were not learned: probabilities and every line of the explanation."""
    page, _, _ = opened
    rows = cells(case.asked, page)
    scored = page.evaluate("rows => rows.map(row => window.deciban.scorer.score(row))", rows)
    assert len(scored) == 50
    if not hasattr(case.model, "classes_"):
        np.testing.assert_allclose([row["mean"] for row in scored], case.model.predict_mean(case.asked), atol=1e-9)
        return
    np.testing.assert_allclose(
        [row["proba"] for row in scored], case.model.predict_proba(case.asked), rtol=0, atol=1e-9
    )
    together = case.model.explain(case.asked)
    for i, row in enumerate(scored):
        shared = tuple(row["names"]) == together.names  # of documents, each has terms of its own
        explanation, place = (together, i) if shared else (case.model.explain(case.asked[i : i + 1]), 0)
        assert tuple(row["names"]) == explanation.names
        np.testing.assert_allclose(row["nats"], explanation.nats[place], rtol=1e-9, atol=1e-9)


def cells(table, page):
    """Raw cells in the order in which the page reads columns."""
    names = [column["name"] for column in page.evaluate("window.deciban.figures.scoring.columns")]
    return [
        [None if cell is None or cell != cell else cell for cell in row]
        for row in table[names].to_dict("split")["data"]
    ]
