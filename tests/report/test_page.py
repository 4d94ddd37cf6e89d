"""The page in a browser: what it shows, what it does by keyboard, on a phone and in print, and what it never does."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import deciban as db
from deciban.report import report_of
from deciban.report.page import html
from tests.report import made
from tests.report.browser import ONE_BROWSER, some_slow

pytestmark = ONE_BROWSER

WIDE, PHONE = (1280, 900), (375, 812)


@pytest.fixture(scope="module")
def page(browser_page):
    """The page, with what it says on the console, asks for or opens."""
    browser_page.heard = []
    browser_page.on("console", lambda message: browser_page.heard.append(f"{message.type}: {message.text}"))
    browser_page.on("pageerror", lambda error: browser_page.heard.append(str(error)))
    browser_page.on("dialog", lambda dialog: (browser_page.heard.append(dialog.message), dialog.dismiss()))
    browser_page.on("request", lambda request: browser_page.heard.append(request.url))
    return browser_page


@pytest.fixture
def opened(page, tmp_path):
    """Opens figures. After the test nothing may have been heard but the request for the page itself."""
    page.heard.clear()
    path = tmp_path / "report.html"

    def show(figures, size=WIDE, drawn=False, ready=True):
        path.write_text(figures if isinstance(figures, str) else html(figures), encoding="utf-8")
        page.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))
        page.goto(path.as_uri())
        if ready:
            page.evaluate("deciban.ready")
        if drawn:
            page.evaluate("deciban.drawAll()")
        return page

    yield show
    assert set(page.heard) <= {path.as_uri()}
    page.emulate_media(media="screen", color_scheme="light")


def text(page, selector):
    return page.locator(selector).text_content()


def field(page, name):
    """The input of a column, whose label begins so."""
    return page.locator("#cells .control").filter(has=page.locator(f"label:text('{name}')")).locator("input, select")


def views(page, label, asked):
    """What the charts whose label holds some words have to say."""
    return page.evaluate(f"""[...deciban.drawings].filter(([box]) => box.ariaLabel.includes("{label}"))
        .map(([, {{ view }}]) => {asked})""")


# Models --------------------------------------------------------------------------------------------------------------


def people(n=150, seed=3):
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, n).astype(float)
    age[::17] = np.nan
    trade = rng.choice(["baker", "smith", "miller"], n)
    member = rng.random(n) < 0.4
    score = 0.05 * (np.nan_to_num(age, nan=45) - 45) + (trade == "smith") + member
    table = pd.DataFrame({"age": age, "trade": trade, "member": member})
    return table, np.where(score + rng.logistic(size=n) > 0.7, "yes", "no")


def plane():
    rng = np.random.default_rng(4)
    y = rng.integers(3, size=200)
    return rng.normal(size=(200, 2)) + 1.2 * np.column_stack([y == 1, y == 2]), np.array(["a", "b", "c"])[y]


def mails():
    rng = np.random.default_rng(5)
    y = rng.random(200) < 0.4
    words = np.array(["free", "win", "call", "now", "meeting", "lunch", "report", "thanks"])
    return [" ".join(rng.choice(words[:5] if spam else words[3:], 6)) for spam in y], np.where(y, "spam", "ham")


def counts():
    table, _ = people()
    table = table.assign(age=table.age.fillna(45.0))
    return table, np.random.default_rng(6).poisson(np.exp(0.02 * (table.age - 45) + 0.5 * table.member))


MODELS = {
    "evidence": lambda: (db.EvidenceClassifier(trees=8), *people()),
    "naive Bayes": lambda: (db.NaiveBayes(), *people()),
    "logistic": lambda: (db.LogisticRegression(l2=1.0), *people()),
    "normal, two columns": lambda: (db.GaussianDiscriminant("per-class"), *plane()),
    "text": lambda: (db.NaiveBayes(families=db.families.Text()), *mails()),
    "poisson": lambda: (db.GeneralizedLinearModel("poisson"), *counts()),
}


@pytest.fixture(scope="module", params=some_slow(MODELS, "evidence", "normal, two columns", "text", "poisson"))
def fitted(request):
    model, x, y = MODELS[request.param]()
    return model.fit(x, y), x, y


@pytest.fixture(scope="module")
def judged(fitted):
    model, x, y = fitted
    return report_of(model, x, y, held_out=False).figures


def test_models_are_shown_whole(opened, judged):
    page = opened(judged, drawn=True)
    shown = [section for section in ("quality", "evidence", "linear", "boundary") if judged[section]]
    sections = page.eval_on_selector_all("main section", "all => all.map((one) => one.id)")
    order = ["quality", "evidence", "prediction", "linear", "boundary", "reading"]
    assert sections == [name for name in order if name in {*shown, "prediction", "reading"}]
    links = page.eval_on_selector_all("#contents a", "all => all.map((one) => one.hash.slice(1))")
    assert links == sections
    assert text(page, "h1") == judged["title"]
    drawn = page.eval_on_selector_all(".chart", "all => all.map((one) => one.querySelectorAll('svg').length)")
    assert set(drawn) == {1}
    assert "NaN" not in page.locator("main").inner_html()
    assert "undefined" not in text(page, "main")


@pytest.mark.slow
def test_models_are_shown_on_a_phone(opened, judged):
    page = opened(judged, PHONE, drawn=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]


# One prediction ------------------------------------------------------------------------------------------------------


def row_shown(page, figures):
    return figures["rows"]["numbers"][int(page.input_value("#row"))]


def test_a_row_is_scored_as_in_python(opened, fitted, judged):
    model, x, _ = fitted
    page = opened(judged)
    for place in (0, len(judged["rows"]["numbers"]) // 2):
        page.select_option("#row", str(place))
        row = row_shown(page, judged)
        cells = x.iloc[[row]] if hasattr(x, "iloc") else x[row : row + 1]
        if judged["kind"] == "numbers":
            assert abs(float(text(page, "#result").split()[1]) - model.predict_mean(cells)[0]) < 1e-3
            continue
        given = page.eval_on_selector_all("#probabilities .number", "all => all.map((one) => one.textContent)")
        for said, p in zip(given, model.predict_proba(cells)[0], strict=True):
            whole, _, less = said.partition(" − ")
            assert abs((float(whole) - float(less or 0)) - p) < 1e-4
        decibans = model.explain(cells).log_odds()[0]
        assert f": {abs(decibans):.1f} dban" in text(page, "#waterfall-note").replace("+", "").replace("−", "")


@pytest.fixture(scope="module")
def bayes():
    table, y = people()
    model = db.NaiveBayes().fit(table, y)
    return model, table, report_of(model, table, y, held_out=False).figures


def test_a_changed_cell_is_scored_and_can_be_reset(opened, bayes):
    model, _, figures = bayes
    page = opened(figures)
    before = text(page, "#result")
    field(page, "age").fill("77.5")
    field(page, "trade").select_option("smith")
    field(page, "member").select_option("(missing)")
    cells = pd.DataFrame({"age": [77.5], "trade": ["smith"], "member": pd.array([None], dtype="boolean")})
    (proba,), explanation = model.predict_proba(cells), model.explain(cells)
    assert text(page, "#result") == f"{model.classes_[proba.argmax()]}, with probability {proba.max():.4f}"
    assert f"{abs(explanation.log_odds()[0]):.1f} dban" in text(page, "#waterfall-note")
    page.locator("#target").select_option("no")
    page.locator("#against").select_option("yes")
    decibans = explanation.log_odds("no", "yes")[0]
    assert text(page, "#waterfall-note").startswith(
        f"no against yes: {'−' if decibans < 0 else '+'}{abs(decibans):.1f} "
    )
    page.click("#parts summary")
    parts = page.eval_on_selector_all("#parts tbody tr", "all => all.map((row) => row.innerText.split('\\t'))")
    expected = dict(explanation.lines(0, "no", "yes"))
    assert {"age = 77.5", "trade = smith", "member is missing"} < expected.keys()
    assert {name: float(value.replace("−", "-")) for name, value in parts} == pytest.approx(expected, rel=1e-3)
    page.locator("#target").select_option("-1")
    page.click("#reset")
    assert text(page, "#result") == before


def test_bars_begin_where_the_one_above_ended_whatever_row_is_shown(opened, bayes):
    """In the order of the drawing, which is that of the parts: the strongest first."""
    _, _, figures = bayes
    page = opened(figures, drawn=True)
    orders = set()
    for place in range(12):
        page.select_option("#row", str(place))
        page.evaluate("deciban.drawAll()")
        bars = 'view.data("parts").map(({ name, start, end }) => ({ name, start, end, at: view.scale("y")(name) }))'
        (drawn,) = views(page, "Waterfall", bars)
        drawn.sort(key=lambda bar: bar["at"])
        orders.add(tuple(bar["name"] for bar in drawn))
        starts, ends = ([bar[side] for bar in drawn] for side in ("start", "end"))
        assert (drawn[0]["name"], drawn[-1]["name"]) == ("prior", "log-odds")
        np.testing.assert_allclose(starts, [0, *ends[:-2], 0])
        np.testing.assert_allclose(ends[-1], ends[-2])
    assert len(orders) > 1


def test_text_in_a_numeric_field_is_a_problem(opened, bayes):
    page = opened(bayes[2])
    before = text(page, "#result")
    field(page, "age").fill("old")
    assert "age" in text(page, "#problem")
    assert text(page, "#result") == before
    field(page, "age").fill("")
    assert text(page, "#problem") == ""


def test_rows_are_marked_right_or_wrong(opened, bayes):
    model, table, figures = bayes
    page = opened(figures)
    page.wait_for_function("[...document.querySelectorAll('#row option')].every((one) => /right|wrong/.test(one.text))")
    said = page.eval_on_selector_all("#row option", "all => all.map((one) => one.text)")
    rows = figures["rows"]
    given = model.predict(table.iloc[rows["numbers"]])
    assert said == [
        f"{row}: {label}, {'right' if label == c else 'wrong'}"
        for row, label, c in zip(rows["numbers"], rows["labels"], given, strict=True)
    ]


def test_cells_of_a_row_are_scored_as_they_are_though_inputs_show_them_otherwise(opened):
    """An input drops line breaks, and an empty text looks like a missing one."""
    levels = [f"s{i}\nx" for i in range(60)] + [""]
    table = pd.DataFrame({"a": levels * 4})
    y = ["no" if i % 61 < 30 else "yes" for i in range(len(table))]
    model = db.NaiveBayes().fit(table, y)
    figures = report_of(model, table, y).figures
    page = opened(figures)
    for place in (0, 1, 2, figures["rows"]["cells"].index([""])):
        page.select_option("#row", str(place))
        (proba,) = model.predict_proba(pd.DataFrame({"a": figures["rows"]["cells"][place]}))
        assert text(page, "#result") == f"{model.classes_[proba.argmax()]}, with probability {proba.max():.4f}"
    field(page, "a").fill("s1")  # never seen, so nothing is said
    assert text(page, "#result").endswith(f"{model.predict_proba(pd.DataFrame({'a': ['s1']})).max():.4f}")


def test_large_integers_stay_distinct(opened):
    rng = np.random.default_rng(11)
    y = rng.integers(0, 2, 300)
    table = pd.DataFrame({"id": 2**60 + 1 + rng.integers(0, 2, 300) + y, "z": rng.normal(size=300)})
    model = db.NaiveBayes({"id": db.families.Categorical()}).fit(table, y)
    figures = report_of(model, table, y).figures
    page = opened(figures)
    scored = page.evaluate("deciban.figures.rows.cells.map((row) => deciban.scorer.score(row).proba)")
    expected = model.predict_proba(table.iloc[figures["rows"]["numbers"]])
    np.testing.assert_allclose(scored, expected, rtol=0, atol=1e-9)


def test_an_empty_document_is_not_missing(opened):
    documents = ["buy drugs now", "buy", "lunch", "lunch today", "", "", "", "drugs"]
    model = db.NaiveBayes(db.families.Text("bernoulli")).fit(documents, list("aabbbbba"))
    figures = report_of(model, documents, list("aabbbbba")).figures
    page = opened(figures)
    page.select_option("#row", str(figures["rows"]["cells"].index([""])))
    assert text(page, "#result") == f"b, with probability {model.predict_proba(['']).max():.4f}"
    assert page.locator("#cells label").text_content() == "document"


def test_probabilities_that_are_no_sum_have_no_waterfall(opened):
    x, y = plane()
    model = db.CalibratedClassifier(db.NaiveBayes(), method="isotonic").fit(x, y)
    page = opened(report_of(model, x, y).figures)
    assert page.locator("#probabilities .number").count() == 3
    assert "not a sum" in text(page, "#prediction")
    assert page.locator("#target, #waterfall-note, #parts").count() == 0


def test_one_class_is_the_only_one(opened):
    model = db.NaiveBayes().fit([[1.0], [2.0]], ["a", "a"])
    page = opened(report_of(model, [[1.0], [2.0]], ["a", "a"]).figures)
    assert text(page, "#result") == "a, with probability 1"
    assert "only one class" in text(page, "#prediction")


def test_a_class_is_never_compared_with_itself(opened, bayes):
    page = opened(bayes[2])
    for target in ("no", "yes"):
        page.select_option("#target", target)
        page.select_option("#against", target)
        other = {"no": "yes", "yes": "no"}[target]
        assert text(page, "#waterfall-note").startswith(f"{target} against {other}: ")
    page.click("#reset")
    assert (page.input_value("#target"), page.input_value("#against")) == ("-1", "-1")


def test_a_model_without_scoring_says_why(opened):
    page = opened(made.binary())
    assert "it was made by hand" in text(page, "#prediction")


# Threshold -----------------------------------------------------------------------------------------------------------


def rates_shown(page):
    counted = [int(text(page, f"#confusion-{name}").replace(",", "")) for name in ("tp", "fp", "tn", "fn")]
    return counted, [text(page, f"#rate-{name}") for name in ("sensitivity", "specificity", "precision", "f1")]


def rates_at(curve, step):
    tp, fp = curve["tp"][step], curve["fp"][step]
    fn, tn = curve["positives"] - tp, curve["negatives"] - fp
    pairs = [(tp, tp + fn), (tn, tn + fp), (tp, tp + fp), (2 * tp, 2 * tp + fp + fn)]
    return [tp, fp, tn, fn], [f"{100 * a / b:.1f}%" if b else "–" for a, b in pairs]


@pytest.mark.parametrize("step", [0, 137, 500, 1000])
def test_the_slider_moves_counts_rates_and_points(opened, step):
    figures = made.binary()
    curve = figures["quality"]["curves"][0]
    page = opened(figures, drawn=True)
    page.fill("#threshold", str(step / 1000))
    assert rates_shown(page) == rates_at(curve, step)
    assert page.input_value("#threshold-number") == f"{step / 1000:g}"
    points = views(page, "threshold", 'view.data("threshold").map(({ x, y }) => [x, y])')
    (tp, fp, tn, fn), _ = rates_at(curve, step)
    expected = [[[fp / (fp + tn), tp / (tp + fn)]], [[tp / (tp + fn), tp / (tp + fp)]] if tp + fp else []]
    for result, wanted in zip(points, expected, strict=True):
        np.testing.assert_allclose(np.ravel(result), np.ravel(wanted))


def test_the_slider_goes_by_keyboard_and_by_number(opened):
    figures = made.binary()
    curve = figures["quality"]["curves"][0]
    page = opened(figures)
    page.focus("#threshold")
    page.keyboard.press("ArrowRight")
    assert rates_shown(page) == rates_at(curve, 501)
    page.keyboard.press("Home")
    assert rates_shown(page) == rates_at(curve, 0)
    page.fill("#threshold-number", "0.25")
    page.keyboard.press("Tab")
    assert rates_shown(page) == rates_at(curve, 250)
    assert page.input_value("#threshold") == "0.25"
    assert page.evaluate("deciban.threshold(900).tp") == curve["tp"][900]


def test_an_invalid_threshold_is_ignored(opened):
    page = opened(made.binary())
    page.fill("#threshold", "0.25")
    page.fill("#threshold-number", "")
    page.keyboard.press("Tab")
    assert page.input_value("#threshold-number") == page.input_value("#threshold") == "0.25"
    page.fill("#threshold-number", "7")
    page.keyboard.press("Tab")
    assert page.input_value("#threshold-number") == "1"


def test_tables_of_curves_and_bins_follow_the_class(opened):
    figures = made.five()
    page = opened(figures)
    data = [page.locator("#quality figure").nth(place).locator("details") for place in range(3)]
    for one in data:
        one.locator("summary").click()
        one.locator("table").wait_for()
    page.select_option("#curve", label="elm")
    page.select_option("#calibration-class", label="elm")
    curve, bins = figures["quality"]["curves"][4], figures["quality"]["calibration"][4]["bins"]
    for one, table in zip(data, (curve["roc"], curve["precision_recall"], bins), strict=True):
        assert one.locator("table").count() == 1
        assert one.locator("tbody tr").count() == len(table["rows"])


def test_each_of_five_classes_has_its_curve(opened):
    figures = made.five()
    page = opened(figures)
    page.select_option("#curve", label="dogwood")
    assert rates_shown(page) == rates_at(figures["quality"]["curves"][3], 500)
    assert text(page, "#roc-note").startswith("dogwood: area ")


def test_metrics_and_confusion_are_in_tables(opened):
    figures = made.five()
    page = opened(figures)
    assert "0.4123" in text(page, "#metrics")
    assert "Held-out rows." in text(page, "#how")
    cells = page.eval_on_selector_all("#confusion tbody td", "all => all.map((one) => Number(one.textContent))")
    assert cells == np.ravel(figures["quality"]["confusion"]).tolist()


# Evidence ------------------------------------------------------------------------------------------------------------


def test_evidence_follows_the_class(opened):
    page = opened(made.five(), drawn=True)
    page.select_option("#evidence-class", "elm")
    page.evaluate("deciban.drawAll()")
    chosen = views(page, "Evidence of the values", 'view.signal("chosen")')
    assert chosen == ["elm"] * 3
    assert "for elm" in text(page, "#evidence-key")


def test_a_long_tail_is_marked_at_powers_of_ten(opened):
    figures = made.binary()
    figures["evidence"]["columns"][0]["scale"] = {"constant": 1.0, "ticks": [0, 1, 10]}
    figures["evidence"]["columns"][0]["evidence"]["rows"][0][0] = 0
    page = opened(figures, drawn=True)
    (places,) = views(page, "Evidence of the values of age", '[0, 1, 10, 90].map(view.scale("x"))')
    np.testing.assert_allclose(np.divide(places, places[-1]), np.log1p([0, 1, 10, 90]) / np.log1p(90))
    (marked,) = views(
        page, "Evidence of the values of age", "view.container().innerHTML.match(/>(0|1|10)<\\/text>/g).length"
    )
    assert marked >= 3


def test_a_page_of_300_columns_and_10000_levels_draws_what_is_near(opened):
    names = [f"column {i}" for i in range(300)]
    figures = made.made(["no", "yes"], columns=names, levels=10_000)
    page = opened(figures)
    assert page.locator(".chart svg").count() < 6
    page.focus("#other-column")
    assert page.locator("#other-column-names option").count() == 294
    page.fill("#other-column", "column 217")
    assert page.locator("h4", has_text="column 217").count() == 1


def test_a_column_of_10000_levels_is_typed_and_one_of_few_is_chosen(opened):
    rng = np.random.default_rng(7)
    towns = [f"town {i % 10_000}" for i in range(12_000)]
    table = pd.DataFrame({"town": towns, "sort": rng.choice(["a", "b"], 12_000)})
    y = np.where(rng.random(12_000) < 0.5, "no", "yes")
    model = db.NaiveBayes().fit(table, y)
    page = opened(report_of(model, table, y, held_out=False).figures)
    town = field(page, "town")
    assert town.evaluate("one => one.tagName") == "INPUT"
    town.fill("town 17")
    field(page, "sort").select_option("b")
    (proba,) = model.predict_proba(pd.DataFrame({"town": ["town 17"], "sort": ["b"]}))
    assert text(page, "#result") == f"{model.classes_[proba.argmax()]}, with probability {proba.max():.4f}"
    assert page.locator("datalist option").count() == 10_000  # made when the input is entered


def test_columns_beyond_40_are_behind_a_button(opened):
    rng = np.random.default_rng(8)
    x, y = rng.normal(size=(80, 45)), rng.integers(2, size=80)
    model = db.NaiveBayes().fit(x, y)
    figures = report_of(model, x, y, held_out=False).figures
    page = opened(figures)
    assert page.locator("#cells input").count() == 40
    before = text(page, "#result")
    page.click("text=Show all: 5 more features")
    page.locator("#cells input").nth(44).wait_for()
    assert page.locator("#cells input").count() == 45
    assert page.locator("#cells input").evaluate_all("all => all.every((one) => one.value !== '')")
    page.locator("#cells input").last.fill("3")
    page.click("#reset")
    assert text(page, "#result") == before


def test_rows_of_an_unknown_class_are_counted_beside_the_others(opened):
    figures = made.binary()
    assert "the model does not know" not in text(opened(figures), "#head")
    figures["quality"]["unknown"] = {"classes": ["maybe"], "rows": 2}
    no, yes = figures["head"]["evaluated"]["by_class"]
    counts = f"(no: {no}, yes: {yes}, of a class that the model does not know: 2)"
    assert f"Evaluated on 400 rows {counts}." in text(opened(figures), "#head")


# What never happens --------------------------------------------------------------------------------------------------


def test_hostile_names_are_text(opened):
    names = made.HOSTILE
    figures = made.made(names[:2] + names[-1:], columns=names)
    for column in figures["evidence"]["columns"]:
        if column["chart"] == "levels":
            for table in (column["evidence"], column["density"]):
                for row in table["rows"]:
                    row[0] = names[int(row[0].removeprefix("level "))]
    figures["title"] = figures["head"]["sentence"] = names[0]
    page = opened(figures, drawn=True)
    assert page.title() == text(page, "h1") == names[0]
    assert page.locator("img").count() == 0
    rows = page.eval_on_selector_all("#head table tbody th", "all => all.map((one) => one.textContent)")
    assert rows == names
    drawn = page.eval_on_selector_all(".chart svg text", "all => all.map((one) => one.textContent)")
    assert {names[1], names[2]} <= set(drawn)
    assert (
        page.eval_on_selector_all("#evidence-class option", "all => all.map((one) => one.value)") == figures["classes"]
    )
    page.locator("#evidence .mark-rect path").first.hover()  # the longest bar of the ranking
    assert names[0] in text(page, "#tip")
    assert page.locator("#tip *").count() == 0


def test_hostile_names_are_scored(opened):
    rng = np.random.default_rng(9)
    table = pd.DataFrame({made.HOSTILE[0]: rng.normal(size=90), made.HOSTILE[4]: rng.choice(made.HOSTILE, 90)})
    y = rng.choice(made.HOSTILE[:3], 90)
    model = db.NaiveBayes().fit(table, y)
    figures = report_of(model, table, y, held_out=False).figures
    page = opened(figures, drawn=True)
    row = row_shown(page, figures)
    (proba,) = model.predict_proba(table.iloc[[row]])
    assert text(page, "#result") == f"{model.classes_[proba.argmax()]}, with probability {proba.max():.4f}"
    assert page.locator("img").count() == 0


def test_the_file_holds_the_figures_and_forbids_requests():
    figures = made.made(made.HOSTILE[:3], columns=made.HOSTILE)
    page = html(figures)
    result = re.search(r'<script type="application/json" id="figures">(.*?)</script>', page, re.DOTALL)
    assert json.loads(result[1]) == figures
    assert "default-src 'none'" in page
    assert page.count("</script>") == page.count("<script") == 4
    markup = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r"<(?:link|img|iframe|object|embed|script[^>]* src)", markup)


# For everyone --------------------------------------------------------------------------------------------------------

REACHED = """() => [...document.querySelectorAll("a[href], input, select, textarea, button, summary, [tabindex='0']")]
    .filter((one) => one.checkVisibility()).length"""


def test_everything_is_reached_by_the_tab_key(opened, bayes):
    page = opened(bayes[2])
    there = page.evaluate(REACHED)
    page.evaluate("window.seen = new Set()")
    for _ in range(there):
        page.keyboard.press("Tab")
        page.evaluate("window.seen.add(document.activeElement)")
    assert page.evaluate("window.seen.has(document.body)") is False
    assert page.evaluate("window.seen.size") == there


def test_links_stay_in_the_frame_of_a_notebook(opened):
    """There an address such as #evidence is one of the notebook."""
    table, y = people()
    report = db.NaiveBayes().fit(table, y).report(table, y)
    page = opened(f"<!doctype html><title>notebook</title>{report._repr_html_()}", ready=False)
    frame = page.frames[1]
    frame.locator("#contents a", has_text="Evidence").click()
    assert frame.locator("h1").text_content() == report.figures["title"]
    assert frame.evaluate("document.activeElement.id") == "evidence"
    frame.wait_for_function("Math.abs(document.querySelector('#evidence').getBoundingClientRect().top) < 100")


def test_a_cell_that_is_refused_is_marked(opened, bayes):
    page = opened(bayes[2])
    age = field(page, "age")
    age.fill("old")
    assert age.get_attribute("aria-invalid") == "true"
    assert age.get_attribute("aria-describedby") == "problem"
    age.fill("40")
    assert age.get_attribute("aria-invalid") == "false"


CONTRAST = """(selector) => [...document.querySelectorAll(selector)].map((one) => {
  const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 })
    .getContext("2d", { willReadFrequently: true });
  const light = (colours) => {
    canvas.clearRect(0, 0, 1, 1);
    for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
    const linear = (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map(linear);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const paper = getComputedStyle(document.body).backgroundColor;
  const behind = [];
  for (let up = one; up; up = up.parentElement) behind.unshift(getComputedStyle(up).backgroundColor);
  const [a, b] = [light([paper, ...behind]), light([paper, ...behind, getComputedStyle(one).color])];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
})"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(opened, bayes, scheme):
    """WCAG AA: 4.5 to 1, of words and of numbers on shaded cells."""
    page = opened(bayes[2])
    page.emulate_media(color_scheme=scheme)
    field(page, "age").fill("old")
    page.evaluate("document.querySelectorAll('.matrix td').forEach((one) => one.style.setProperty('--share', 1))")
    words = "h1, h2, h3, h4, p, th, td:not(.corner), label, dt, dd, summary, button, input, select, nav a, li"
    ratios = page.evaluate(CONTRAST, words)
    assert len(ratios) > 50
    assert min(ratios) >= 4.5


def test_inputs_charts_and_headings_have_names_and_order(opened, judged):
    page = opened(judged)
    unnamed = page.eval_on_selector_all(
        "input, select, textarea", "all => all.filter((one) => !one.labels.length).map((one) => one.id)"
    )
    assert unnamed == []
    labels = page.eval_on_selector_all(".chart", "all => all.map((one) => one.role + one.ariaLabel)")
    assert all(label.startswith("img") and len(label) > 10 for label in labels)
    levels = page.eval_on_selector_all("h1, h2, h3, h4", "all => all.map((one) => Number(one.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert max(np.diff(levels)) <= 1
    assert page.evaluate("document.documentElement.lang") == "en"
    ids = page.eval_on_selector_all("[id]", "all => all.map((one) => one.id)")
    assert len(ids) == len(set(ids))


def test_targets_are_large_enough_for_a_finger(opened, bayes):
    page = opened(bayes[2], PHONE)
    heights = page.eval_on_selector_all(
        "nav a, input, select, textarea, button, summary",
        "all => all.filter((one) => one.checkVisibility()).map((one) => one.getBoundingClientRect().height)",
    )
    assert min(heights) >= 44


@pytest.mark.parametrize("figures", [made.binary, made.five])
def test_nothing_is_wider_than_a_phone(opened, figures):
    long = figures()
    long["title"] = long["head"]["label"] = "x" * 200
    long["head"]["columns"][0]["name"] = long["evidence"]["columns"][0]["name"] = "y" * 200
    page = opened(long, PHONE, drawn=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]


def test_light_and_dark_are_the_same_drawing(opened):
    page = opened(made.binary(), drawn=True)
    page.evaluate("window.mark = document.querySelector('#evidence .mark-rect path')")
    colour = "getComputedStyle(window.mark).fill"
    light = page.evaluate(colour)
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(colour)
    assert light != dark
    page.select_option("#theme", "light")
    assert page.evaluate(colour) == light
    page.select_option("#theme", "auto")
    assert page.evaluate(colour) == dark
    page.emulate_media(media="print")
    assert page.evaluate(colour) == light
    assert page.evaluate("window.mark.isConnected")


def test_an_appearance_that_was_chosen_outlives_a_reload(opened):
    page = opened(made.binary())
    page.select_option("#theme", "dark")
    page.reload()
    assert page.input_value("#theme") == "dark"
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.evaluate("sessionStorage.setItem('deciban-theme', 'nonsense')")
    page.reload()
    assert page.input_value("#theme") == "auto"
    page.evaluate("sessionStorage.clear()")


def test_a_print_has_all_charts_and_no_controls(opened, bayes):
    page = opened(bayes[2])
    assert page.locator(".chart:not(:has(svg))").count() > 0
    assert page.pdf(format="A4").startswith(b"%PDF")
    assert page.locator(".chart:not(:has(svg))").count() == 0
    page.emulate_media(media="print")
    seen = page.eval_on_selector_all(
        "input, select, button, summary, nav", "all => all.filter((one) => one.checkVisibility()).length"
    )
    assert seen == 0
    assert page.locator("#result").is_visible()
