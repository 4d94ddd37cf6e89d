"""The figure of descent: its paths are those of deciban's solvers."""

import numpy as np
import pytest

import deciban as db
from tests.lectures.figures import PHONE, SCHEMES, WIDE, evaluate, low_contrast, results, scrolls_sideways
from tests.report.browser import ONE_BROWSER

pytestmark = [ONE_BROWSER, pytest.mark.slow]

X = [[0.5], [1.0], [1.5], [2.0], [2.5], [3.0], [3.5], [4.0]]
Y = [0, 0, 0, 1, 0, 1, 1, 1]
EXACT = 1e-9


def path_of(model, field):
    return model.path_.to_frame()[field].to_numpy()


def costs(path, field="cost"):
    return np.array([iteration[field] for iteration in path])


@pytest.mark.parametrize("standardise", [False, True])
@pytest.mark.parametrize("l2", [0, 0.7, 3])
def test_newton_takes_the_steps_of_deciban(figures, l2, standardise):
    page = figures.open("descent")
    model = db.LogisticRegression(l2=l2).fit(X, Y)
    found = results(page, l2=l2, standardise=standardise, steps=50)
    n = len(model.path_.rows)
    np.testing.assert_allclose(costs(found["newton"])[:n], path_of(model, "objective"), rtol=EXACT)
    assert (costs(found["newton"], "step")[: n - 1] == path_of(model, "step")[:-1]).all()
    if standardise:  # deciban's gradients are those of standardised features
        gradients = costs(found["newton"], "gradient")[:n]
        np.testing.assert_allclose(gradients, path_of(model, "gradient_norm"), rtol=1e-6, atol=EXACT)
    at_end = found["newton"][-1]
    best = db.LogisticRegression(l2=l2, tol=1e-20).fit(X, Y)
    for place in (at_end, found["solution"]):
        np.testing.assert_allclose([[place["coef"]]], best.coef_, rtol=EXACT)
        np.testing.assert_allclose([place["intercept"]], best.intercept_, rtol=EXACT)
        assert place["cost"] == pytest.approx(best.objective_, rel=EXACT)


def test_gradient_descent_takes_the_steps_of_deciban(figures):
    page = figures.open("descent", standardise="yes")
    path = db.LogisticRegression(solver="gradient").fit(X, Y).path_.to_frame()
    rate = float(path["step"][0])
    found = results(page, rate=rate, steps=60)["gradient"]
    assert len(found) == 61
    np.testing.assert_allclose(costs(found), path["objective"][:61], rtol=EXACT)
    np.testing.assert_allclose(costs(found, "gradient"), path["gradient_norm"][:61], rtol=1e-7)


def test_gradient_descent_follows_its_formula(figures):
    page = figures.open("descent")
    found = results(page, rate=0.05, steps=40, l2=0.5, start=[1.0, -0.5])["gradient"]
    x, y = np.array(X)[:, 0], np.array(Y)
    b, w = 1.0, -0.5
    for iteration in found:
        assert (iteration["intercept"], iteration["coef"]) == pytest.approx((b, w), rel=EXACT)
        error = 1 / (1 + np.exp(-(b + w * x))) - y
        b, w = b - 0.05 * error.sum(), w - 0.05 * (error @ x + 0.5 * w)


def test_buttons_step_play_and_reset(figures):
    page = figures.open("descent")
    page.get_by_role("button", name="Step", exact=True).click()
    page.get_by_role("button", name="10 steps").click()
    assert evaluate(page, "figure.state.steps") == 11
    assert page.locator("table tbody tr").last.locator("th").text_content() == "11"
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("document.querySelector('.lecture-figure').figure.state.steps > 12")
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("button", name="Reset").click()
    assert evaluate(page, "figure.state.steps") == 0
    assert len(results(page)["newton"]) == 1


def test_without_motion_play_goes_to_the_end_at_once(figures):
    figures.page.emulate_media(reduced_motion="reduce")
    page = figures.open("descent", standardise="yes", rate=0.5)
    page.get_by_role("button", name="Play").click()
    assert results(page)["gradient"][-1]["gradient"] <= 1e-6
    assert page.get_by_role("button", name="Play").is_visible()


def test_the_start_is_moved_by_mouse_and_keyboard(figures):
    page = figures.open("descent")
    start = page.get_by_role("slider", name="Start of both methods")
    start.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Shift+ArrowUp")
    assert evaluate(page, "figure.state.start") == [-0.1, 1]
    at = start.bounding_box()
    page.mouse.move(at["x"] + at["width"] / 2, at["y"] + at["height"] / 2)
    page.mouse.down()
    page.mouse.move(at["x"] - 80, at["y"] + 5)
    page.mouse.up()
    b, _ = evaluate(page, "figure.state.start")
    assert b < -1.5
    found = results(page, steps=60)
    assert found["newton"][0]["place"] == evaluate(page, "figure.state.start")
    assert found["newton"][-1]["cost"] == pytest.approx(found["solution"]["cost"], rel=1e-12)


def test_too_large_a_rate_is_said_to_be_so(figures):
    page = figures.open("descent")
    results(page, rate=2.0, steps=1)
    slider = page.get_by_label("learning rate")
    assert slider.get_attribute("aria-valuetext") == "2"
    texts = []
    for steps in range(1, 6):
        results(page, steps=steps)
        texts.append(page.locator(".figure-note").first.text_content())
    assert any("too large" in text for text in texts)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("size", [WIDE, PHONE])
def test_it_fits_and_is_readable(figures, size, scheme):
    page = figures.open("descent", size=size, scheme=scheme)
    results(page, steps=25)
    assert not scrolls_sideways(page)
    assert low_contrast(page) == []
    assert evaluate(page, "[...box.querySelectorAll('.figure-scroll')].every((t) => t.scrollWidth <= t.clientWidth)")
