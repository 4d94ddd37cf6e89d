"""Charts that are saved as HTML: opened in a browser, they ask nothing of a network."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

import deciban as db
from tests.report.browser import ONE_BROWSER

pytestmark = ONE_BROWSER

HOSTILE = "</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def charts():
    X, y = load_iris(return_X_y=True)
    y = np.array(["setosa", HOSTILE, "virginica"])[y]
    model = db.GaussianDiscriminant().fit(X[:, 2:], y)
    evaluation = model.leave_one_out(X[:, 2:], y)
    two = y != "setosa"
    linear = db.LogisticRegression(l2=1).fit(X[two], y[two])
    report = model.report(X[:, 2:], y, held_out=False)
    return {
        "roc": evaluation.plot_roc(),
        "precision and recall": evaluation.plot_precision_recall(),
        "calibration": evaluation.plot_calibration(),
        "confusion": evaluation.plot_confusion(),
        "explanation": model.explain(X[:1, 2:]).plot(),
        "coefficients": linear.plot_coefficients(),
        "path": linear.plot_path(),
        "boundary": db.GaussianDiscriminant("per-class").fit(X[two, 2:], y[two]).plot_boundary(X[two, 2:], y[two]),
        "evidence": report.plot_evidence(),
        "column": report.plot_column("0"),
        "changed": evaluation.plot_roc().properties(width=200).configure_axis(grid=False),
    }


def test_nothing_is_requested(charts, browser, tmp_path):
    context = browser.new_context(offline=True)
    for i, (name, chart) in enumerate(charts.items()):
        path = tmp_path / f"{i}.html"
        chart.save(str(path) if i % 2 else path)
        page, heard = context.new_page(), []
        page.on("request", lambda request, heard=heard: heard.append(request.url))
        page.on("dialog", lambda dialog, heard=heard: (heard.append(dialog.message), dialog.dismiss()))
        page.on("pageerror", lambda error, heard=heard: heard.append(str(error)))
        page.goto(path.as_uri())
        page.locator("#vis canvas, #vis svg").first.wait_for(timeout=20_000)
        assert heard == [path.as_uri()], name
        assert page.locator("img").count() == 0
        page.close()
    context.close()


def test_html_as_text_is_the_same_and_altairs_options_stay(charts):
    chart = charts["roc"]
    assert " src=" not in chart.to_html().split("<body>")[1]
    assert "<script src=" not in chart.to_html()
    assert "cdn.jsdelivr.net" in chart.to_html(inline=False)
    assert "<html" not in chart.to_html(fullhtml=False)


@pytest.mark.filterwarnings("error")
def test_other_formats_are_altairs(charts, tmp_path):
    charts["roc"].save(tmp_path / "roc.svg")
    charts["roc"].save(tmp_path / "roc.json")
    with (tmp_path / "roc.txt").open("w") as file:
        charts["roc"].save(file, format="html")
    assert (tmp_path / "roc.svg").read_text().startswith("<svg")
    assert len((tmp_path / "roc.txt").read_text()) > 500_000
