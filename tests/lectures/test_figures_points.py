"""The figure of points: models of dragged points are deciban's."""

import numpy as np
import pytest

import deciban as db
from tests.lectures.figures import PHONE, SCHEMES, WIDE, evaluate, low_contrast, results, scrolls_sideways
from tests.report.browser import ONE_BROWSER

pytestmark = [ONE_BROWSER, pytest.mark.slow]

EXACT = 1e-9
FITTED = {
    "gnb": lambda l2: db.GaussianDiscriminant(covariance="diagonal"),
    "lda": lambda l2: db.GaussianDiscriminant(covariance="shared"),
    "qda": lambda l2: db.GaussianDiscriminant(covariance="per-class"),
    "logistic": lambda l2: db.LogisticRegression(l2=l2, tol=1e-20),
    "softmax": lambda l2: db.SoftmaxRegression(l2=l2, tol=1e-20),
}


def rows(page):
    points = evaluate(page, "figure.state.points")
    return np.array([[p["x"], p["y"]] for p in points]), np.array([p["label"] for p in points])


def check(page, names):
    """The figure's numbers are those of deciban's models of the same points."""
    X, y = rows(page)
    found = results(page)["models"]
    l2 = evaluate(page, "figure.state.l2")
    assert sorted(found) == sorted(names)
    for name in names:
        shown = found[name]
        if name == "halfspace":
            check_halfspace(shown, X, y)
            continue
        model = FITTED[name](l2).fit(X, y)
        p = model.predict_proba(X)
        np.testing.assert_allclose(shown["probabilities"], p, rtol=EXACT, atol=EXACT)
        assert shown["errors"] == np.sum(model.predict(X) != y)
        assert shown["logLoss"] == pytest.approx(-np.log(p[np.arange(len(y)), y]).mean(), rel=EXACT, abs=EXACT)
        if name == "gnb":
            variances = [np.diag(covariance) for covariance in shown["covariances"]]
            np.testing.assert_allclose(variances, model.covariance_, rtol=EXACT)
        elif name == "qda":
            np.testing.assert_allclose(shown["covariances"], model.covariance_, rtol=EXACT, atol=EXACT)
        elif name == "lda":
            np.testing.assert_allclose(shown["covariances"][0], model.covariance_, rtol=EXACT, atol=EXACT)
            np.testing.assert_allclose(shown["means"], model.means_, rtol=EXACT)
        elif name == "logistic":
            np.testing.assert_allclose([shown["coef"]], model.coef_, rtol=EXACT, atol=EXACT)
            np.testing.assert_allclose([shown["intercept"]], model.intercept_, rtol=EXACT, atol=EXACT)
            assert shown["objective"] == pytest.approx(model.objective_, rel=EXACT)
        else:
            np.testing.assert_allclose(shown["weights"], model.coef_, rtol=EXACT, atol=EXACT)
            np.testing.assert_allclose(np.diff(shown["intercepts"]), np.diff(model.intercept_), rtol=EXACT, atol=EXACT)


def check_halfspace(shown, X, y):
    model = db.Halfspace().fit(X, y)
    sign = 2 * y - 1
    margins = sign * (X @ shown["w"] - shown["d"])
    slack = np.maximum(0, 1 - sign * model.decision_function(X)).sum()
    assert shown["separable"] == model.separable_
    assert shown["slack"] == pytest.approx(np.maximum(0, 1 - margins).sum(), abs=1e-9)
    assert shown["slack"] == pytest.approx(slack, abs=1e-6)
    assert shown["errors"] == np.sum((X @ shown["w"] > shown["d"]) != y)
    if model.separable_:  # the widest gap: no other hyperplane with margins of 1 has shorter weights
        assert margins.min() >= 1 - 1e-9
        assert np.linalg.norm(shown["w"]) <= np.linalg.norm(model.coef_) * (1 + EXACT)


ALL = ["gnb", "lda", "qda", "logistic", "softmax", "halfspace"]


@pytest.mark.parametrize("points", ["clouds", "correlated", "own", "apart", "outlier"])
def test_models_of_two_classes_are_decibans(figures, points):
    page = figures.open("points", show=",".join(ALL), points=points)
    check(page, ALL)
    results(page, l2=2.5)
    check(page, ALL)


@pytest.mark.parametrize("points", ["clouds", "row"])
def test_models_of_three_classes_are_decibans(figures, points):
    page = figures.open("points", show="gnb,lda,qda,softmax,logistic", points=points, classes=3)
    check(page, ["gnb", "lda", "qda", "softmax"])


def random_points(seed, kind):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 14))
    X = rng.uniform(1, 7, (2 * n, 2)).round(2)
    if kind == "on a line":
        X[:, 1] = X[:, 0]
    elif kind == "in two places":
        X = np.array([[2.0, 3.0], [4.0, 1.0]])[rng.integers(2, size=2 * n)]
    return [{"x": x, "y": y, "label": int(i < n)} for i, (x, y) in enumerate(X.tolist())]


@pytest.mark.parametrize("kind", ["anywhere", "on a line", "in two places"])
def test_the_least_slack_is_that_of_the_linear_program(figures, kind):
    page = figures.open("points", show="halfspace")
    for seed in range(5):
        results(page, points=random_points(seed, kind))
        check(page, ["halfspace"])


def test_classes_that_touch_are_not_separable(figures):
    page = figures.open("points", show="halfspace")
    corners = [(2, 2, 0), (2, 6, 0), (6, 2, 1), (6, 6, 1)]
    points = [{"x": x, "y": y, "label": c} for x, y, c in corners]
    shown = results(page, points=points)["models"]["halfspace"]
    assert shown["separable"]
    assert shown["gap"] == 4
    assert "Separable: yes" in page.locator(".figure-note:visible").last.text_content()
    check(page, ["halfspace"])
    results(page, points=[*points, {"x": 2, "y": 4, "label": 1}])
    assert "Separable: no" in page.locator(".figure-note:visible").last.text_content()
    check(page, ["halfspace"])


def test_points_are_dragged_by_mouse(figures):
    page = figures.open("points", show="lda,logistic,halfspace")
    before, _ = rows(page)
    centre = page.locator(".figure-handle").first.bounding_box()
    x, y = centre["x"] + centre["width"] / 2, centre["y"] + centre["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y - 90, steps=3)
    page.mouse.up()
    page.mouse.move(x, y)  # no longer held
    after, _ = rows(page)
    assert (after[0] - before[0] > 0.9).all()
    np.testing.assert_array_equal(after[1:], before[1:])
    check(page, ["lda", "logistic", "halfspace"])


def test_points_are_moved_added_and_removed_by_keyboard(figures):
    page = figures.open("points", show="gnb,qda", points="own")
    before, labels = rows(page)
    page.locator(".figure-handle").nth(2).focus()
    for key in ["ArrowRight", "ArrowRight", "ArrowUp", "Shift+ArrowLeft"]:
        page.keyboard.press(key)
    after, _ = rows(page)
    np.testing.assert_allclose(after[2] - before[2], [-0.8, 0.1], atol=1e-9)
    assert page.evaluate("document.activeElement.getAttribute('aria-valuetext')").startswith("x ")
    check(page, ["gnb", "qda"])
    page.keyboard.press("Delete")
    assert len(rows(page)[0]) == len(before) - 1
    check(page, ["gnb", "qda"])
    page.get_by_label("Class to add").select_option("1")
    page.get_by_role("button", name="Add a point").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowDown")
    X, y = rows(page)
    assert (X[-1].tolist(), y[-1], len(y)) == ([5, 3.9], 1, len(labels))
    check(page, ["gnb", "qda"])


def test_a_click_in_the_plane_adds_a_point_and_reset_restores(figures):
    page = figures.open("points", show="lda")
    n = len(rows(page)[0])
    plane = page.locator(".figure-chart svg").bounding_box()
    page.mouse.click(plane["x"] + plane["width"] - 40, plane["y"] + plane["height"] - 70)
    assert len(rows(page)[0]) == n + 1
    page.get_by_role("button", name="Remove").click()
    assert len(rows(page)[0]) == n
    page.get_by_label("Points", exact=True).select_option("apart")
    page.get_by_role("button", name="Reset").click()
    assert len(rows(page)[0]) == 18


def test_models_without_estimates_say_why(figures):
    page = figures.open("points", show="qda,lda,gnb,logistic,halfspace")
    few = [{"x": 1, "y": 2, "label": 0}, {"x": 3, "y": 5, "label": 0}, {"x": 4, "y": 1, "label": 1}]
    states = {name: model["status"] for name, model in results(page, points=few)["models"].items()}
    assert states == {
        "qda": "a covariance is singular",
        "lda": "a covariance is singular",
        "gnb": "a variance is 0",
        "logistic": "ok",
        "halfspace": "ok",
    }
    assert "no estimate: a variance is 0" in page.locator("table").text_content()
    assert {model["status"] for model in results(page, points=few[:2])["models"].values()} == {
        "every class needs points",
        "both classes need points",
    }
    results(page, points=[])


def test_boundaries_lie_where_two_classes_are_equally_likely(figures):
    page = figures.open("points", show="qda", points="own")
    # Points of the traced path are on the boundary within a tenth of a cell of the grid.
    odds = page.evaluate("""() => {
        const box = document.querySelector(".lecture-figure"), { qda } = box.figure.results().models;
        const { contour, grid } = lectures.math;
        const f = (x, y) => { const s = qda.scores([x, y]); return s[1] - s[0]; };
        return contour(grid(f, [[0, 10], [0, 8]], 100, 80)).flat().map(([x, y]) => {
            const h = 1e-5, slope = Math.hypot(f(x + h, y) - f(x - h, y), f(x, y + h) - f(x, y - h)) / (2 * h);
            return Math.abs(f(x, y)) / slope;
        });
    }""")
    assert len(odds) > 50
    assert max(odds) < 0.01


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("size", [WIDE, PHONE])
@pytest.mark.parametrize("classes", [2, 3])
def test_it_fits_and_is_readable(figures, size, scheme, classes):
    page = figures.open("points", size=size, scheme=scheme, show=",".join(ALL), classes=classes)
    assert not scrolls_sideways(page)
    assert low_contrast(page) == []
    assert page.locator(".figure-chart svg").bounding_box()["width"] > 0.8 * (size[0] if size == PHONE else 640) - 60
    unlabelled = "document.querySelectorAll('.lecture-figure :is(input, select):not([id])').length"
    assert page.evaluate(unlabelled) == 0
