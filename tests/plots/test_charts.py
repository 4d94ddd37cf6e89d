"""Charts of figures: what is drawn where, data sets by name, and nothing that a renderer would stumble over."""

import json
import sys

import numpy as np
import pytest
import vl_convert
from sklearn.metrics import average_precision_score, precision_recall_curve

import deciban as db
from deciban.plots import evidence_charts as evidence
from deciban.plots import linear_charts as linear
from deciban.plots import quality_charts as quality
from deciban.plots.chart_data import drawable
from deciban.plots.colours import AGAINST, FOR
from tests.report import made


def drawn(chart):
    """The specification, as JSON without NaN, and the picture."""
    spec = json.loads(json.dumps(chart.to_dict(), allow_nan=False))
    picture = vl_convert.vegalite_to_svg(spec)
    assert "NaN" not in picture
    assert "undefined" not in picture
    return spec, picture


def names_of(spec):
    """Of all data sets that a specification refers to."""
    if isinstance(spec, list):
        return set().union(*map(names_of, spec))
    if not isinstance(spec, dict):
        return set()
    own = {spec["data"]["name"]} if isinstance(spec.get("data"), dict) else set()
    return own.union(*(names_of(value) for key, value in spec.items() if key != "datasets"))


def charts_of(figures):
    quality_figures, evidence_figures = figures["quality"], figures["evidence"]
    curves = [{"line": curve["class"], **curve} for curve in quality_figures["curves"]]
    coefficients = made.table("name estimate low high", [("a", 1.5, 1.0, 2.0), ("b", -0.5, None, None)])
    return [
        quality.roc(curves, "ROC"),
        quality.precision_recall(curves, "PR"),
        quality.calibration(quality_figures["calibration"][0]["bins"], "calibration", "given", "observed"),
        quality.confusion(figures["classes"], quality_figures["confusion"], "confusion"),
        quality.residuals(made.table("predicted observed", [(1.0, 2.0), (3.0, 2.5)])),
        evidence.ranking(evidence_figures["ranking"]),
        *(evidence.feature(column) for column in evidence_figures["columns"]),
        evidence.pair(evidence_figures["pairs"][0]),
        evidence.terms(evidence_figures["terms"][0]),
        evidence.waterfall([("prior", -2.0), ("age", np.inf), ("log-odds", np.inf)], "row 0"),
        linear.coefficients([{"title": "a", "rows": coefficients}, {"title": "b", "rows": coefficients}]),
        linear.path(made.table("iteration objective gradient step", [(0, 9.0, 3.0, 1.0), (1, 8.0, 0.0, 1.0)])),
    ]


def test_charts_are_drawn_from_data_sets_with_names():
    for chart in charts_of(made.five()):
        spec, picture = drawn(chart)
        assert picture.startswith("<svg")
        assert names_of(spec) <= set(spec["datasets"])
    for spec in (chart.to_dict() for chart in charts_of(made.binary())):
        assert names_of(spec) <= set(spec["datasets"])


@pytest.mark.parametrize(("decibans", "colours"), [(3.0, (True, False)), (-3.0, (False, True))])
def test_evidence_is_blue_for_a_class_and_vermilion_against_it(decibans, colours):
    terms = made.table("term class decibans count", [("free", "spam", decibans, 1)])
    _, picture = drawn(evidence.terms({"name": "", "terms": terms}))
    assert (FOR in picture, AGAINST in picture) == colours


def test_a_column_is_drawn_for_the_class_asked_for():
    column = made.five()["evidence"]["columns"][0]
    spec = evidence.feature(column, "cedar").to_dict()
    assert [param["value"] for param in spec["params"] if param["name"] == "chosen"] == ["cedar"]
    assert spec["title"]["text"] == "age: evidence for cedar"


def test_infinite_evidence_lies_beyond_all_finite_evidence():
    column = made.binary()["evidence"]["columns"][1]
    rows = evidence.feature(column).to_dict()["datasets"]["evidence"]
    assert column["evidence"]["rows"][0][2] == "-inf"
    assert rows[0]["decibans"] < -max(abs(row["decibans"]) for row in rows[1:])
    assert [row["infinite"] for row in rows] == [True] + [False] * (len(rows) - 1)
    assert "−∞" in drawn(evidence.feature(column))[1]
    assert drawable([{"x": "inf"}, {"x": "a"}], "x") == [{"x": 1.1, "infinite": True}, {"x": "a", "infinite": False}]


@pytest.mark.parametrize("place", [0, 1, 2], ids=["numbers", "levels", "steps"])
def test_what_is_infinite_is_written_so(place):
    column = made.binary()["evidence"]["columns"][place]
    at = column["evidence"]["fields"].index("decibans")
    assert ("∞" in drawn(evidence.feature(column))[1]) == (place == 1)
    column["evidence"]["rows"][2][at] = "inf"
    assert "+∞" in drawn(evidence.feature(column))[1]


def test_what_is_infinite_is_written_so_in_rankings_pairs_and_terms():
    evidence_figures = made.binary()["evidence"]
    evidence_figures["ranking"][0]["value"] = evidence_figures["pairs"][0]["cells"]["rows"][0][3] = evidence_figures[
        "terms"
    ][0]["terms"]["rows"][0][2] = "inf"
    for chart in (
        evidence.ranking(evidence_figures["ranking"]),
        evidence.pair(evidence_figures["pairs"][0]),
        evidence.terms(evidence_figures["terms"][0]),
    ):
        assert "∞" in drawn(chart)[1]


def test_only_the_most_telling_are_drawn():
    ranked = [{"name": f"column {i}", "value": 50 - i, "what": "feature"} for i in range(50)]
    assert [row["name"] for row in evidence.ranking(ranked).to_dict()["datasets"]["ranking"]] == [
        f"column {i}" for i in range(20)
    ]
    terms = made.table("term class decibans count", [(f"term {i}", "yes", float(i - 50), 1) for i in range(100)])
    shown = [row["decibans"] for row in evidence.terms({"name": "", "terms": terms}).to_dict()["datasets"]["terms"]]
    assert shown == [*range(49, 34, -1), *range(-36, -51, -1)]


def test_names_that_every_object_of_javascript_has_are_drawn():
    names = ["__proto__", "constructor", "toString"]
    figures = made.made(["no", names[0]], columns=(names[1], "colour", "size"))
    figures["evidence"]["ranking"][1]["name"] = figures["evidence"]["terms"][0]["terms"]["rows"][0][0] = names[2]
    pictures = [drawn(chart)[1] for chart in charts_of(figures)]
    assert all(sum(name in picture for picture in pictures) > 1 for name in names)


def test_densities_in_steps_are_lines_too():
    rows = [{"from": 0.0, "to": 1.0, "density": 0.5}, {"from": 1.0, "to": 3.0, "density": 0.25}]
    points = evidence.outline(rows)
    x, y = ([row[field] for row in points] for field in ("value", "density"))
    assert np.trapezoid(y, x) == 1.0  # as much as the steps hold


# Of models ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(300, 3))
    return x, np.where(x[:, 0] + rng.normal(size=300) > 0, "yes", "no")


def test_precision_and_recall_are_those_of_scikit_learn(rows):
    x, y = rows
    p = 1 / (1 + np.exp(-x[:, 0]))
    spec, _ = drawn(db.Evaluation.of(y, p).plot_precision_recall())
    precision, recall, _ = precision_recall_curve(y == "yes", p)
    expected = set(zip(recall.tolist(), precision.tolist(), strict=True))
    curve = [(row["x"], row["y"]) for row in spec["datasets"]["curve"]]
    assert set(curve) <= expected
    assert len(curve) > 50
    assert spec["title"]["text"].endswith(f"average precision {average_precision_score(y == 'yes', p):.3f}")


def test_precision_and_recall_of_three_classes_have_a_line_for_each():
    y, p = (
        np.array(["a", "b", "c", "a"]),
        np.array([[0.3, 0.6, 0.1], [0.4, 0.5, 0.1], [0.5, 0.3, 0.2], [0.6, 0.1, 0.3]]),
    )
    spec, _ = drawn(db.Evaluation.of(y, p).plot_precision_recall())
    means = {f"{c}: {average_precision_score(y == c, p[:, k]):.3f}" for k, c in enumerate("abc")}
    assert {row["line"] for row in spec["datasets"]["curve"]} == means
    assert len({mean[3:] for mean in means}) > 1


def test_a_waterfall_goes_from_the_prior_to_the_log_odds(rows):
    x, y = rows
    explanation = db.NaiveBayes().fit(x, y).explain(x)
    spec, _ = drawn(explanation.plot(7))
    parts = spec["datasets"]["parts"]
    assert [parts[0]["name"], parts[-1]["name"]] == ["prior", "log-odds"]
    assert parts[0]["start"] == parts[-1]["start"] == 0
    np.testing.assert_allclose([part["start"] for part in parts[1:-1]], [part["end"] for part in parts[:-2]])
    np.testing.assert_allclose([parts[-2]["end"], parts[-1]["end"]], explanation.log_odds()[7])
    assert spec["title"]["text"].startswith("row 7: ")
    swapped = explanation.plot(7, pos_label="no", against="yes").to_dict()["datasets"]["parts"]
    np.testing.assert_allclose(swapped[-1]["end"], explanation.log_odds("no", "yes")[7])


def test_a_waterfall_of_one_class_is_refused(rows):
    model = db.NaiveBayes().fit(rows[0], ["yes"] * 300)
    with pytest.raises(db.DecibanError, match="the only class"):
        model.explain(rows[0]).plot()


def test_an_impossible_value_is_drawn_beyond_the_others():
    parts = evidence.waterfall([("prior", 1.0), ("colour", -np.inf), ("log-odds", -np.inf)], "").to_dict()["datasets"][
        "parts"
    ]
    assert [part["text"] for part in parts] == ["+1.0", "−∞", "−∞"]
    assert parts[1]["end"] == parts[2]["end"] < -0.05


def test_coefficients_have_the_intervals_of_the_fit(rows):
    x, _ = rows
    model = db.GeneralizedLinearModel("poisson").fit(x, np.random.default_rng(0).poisson(np.exp(0.5 * x[:, 1])))
    spec, _ = drawn(model.plot_coefficients())
    (listed,) = (rows for name, rows in spec["datasets"].items() if name != "zero")
    result = {row["name"]: (row["low"], row["estimate"], row["high"]) for row in listed}
    assert "(intercept)" not in result
    errors = np.sqrt(np.diag(model.inference_.covariance))[1:]
    for name, estimate, error in zip(model.feature_names_, model.inference_.estimates[0, 1:], errors, strict=True):
        np.testing.assert_allclose(result[name], estimate + 1.959963984540054 * error * np.array([-1, 0, 1]))
    sizes = [abs(row["estimate"]) for row in listed]
    assert sizes == sorted(sizes, reverse=True)


def test_coefficients_of_each_class_without_intervals(rows):
    x, _ = rows
    model = db.SoftmaxRegression(l2=1.0).fit(x, np.random.default_rng(1).integers(3, size=300))
    spec, _ = drawn(model.plot_coefficients())
    assert [part["title"]["text"] for part in spec["vconcat"]] == ["score of 0", "score of 1", "score of 2"]
    assert all(row["low"] is None for name, rows in spec["datasets"].items() if name != "zero" for row in rows)


def test_the_path_falls_to_its_least(rows):
    model = db.LogisticRegression(l2=1.0).fit(*rows)
    spec, _ = drawn(model.plot_path())
    path = spec["datasets"]["path"]
    assert [row["iteration"] for row in path] == [row[0] for row in model.path_.rows]
    assert path[-1]["above"] is None  # 0 has no logarithm
    assert path[0]["above"] == model.path_.rows[0][1] - model.path_.rows[-1][1]
    with pytest.raises(db.DecibanError, match="no path to draw"):
        db.Halfspace().fit(rows[0], rows[0][:, 0] > 0).plot_path()


def test_charts_need_altair(monkeypatch, rows):
    model = db.LogisticRegression(l2=1.0).fit(*rows)
    monkeypatch.setitem(sys.modules, "altair", None)
    for draw in (model.plot_path, model.plot_coefficients, model.explain(rows[0][:1]).plot):
        with pytest.raises(db.DecibanError, match=r"plots need altair: pip install 'deciban\[plot\]'"):
            draw()
