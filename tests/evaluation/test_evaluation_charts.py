"""Charts: their data against scikit-learn and against formulas worked out by hand, and what they refuse."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
import vl_convert
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression as Peer
from sklearn.metrics import confusion_matrix, roc_auc_score, roc_curve

import deciban as db
from deciban.evaluation.evaluation import Evaluation
from deciban.plots.contours import MOST_POINTS, TOLERANCE

EVALUATION_CHARTS = [Evaluation.plot_roc, Evaluation.plot_calibration, Evaluation.plot_confusion]


def rows_of(spec, layer):
    """The data of a layer; a chart must be JSON, without NaN."""
    json.dumps(spec, allow_nan=False)
    return pd.DataFrame(spec["datasets"][spec["layer"][layer]["data"]["name"]])


def encoding(spec, layer, channel):
    return spec["layer"][layer]["encoding"][channel]


@pytest.fixture(scope="module")
def iris():
    x, y = load_iris(return_X_y=True)
    return x[:, :2], load_iris().target_names[y]


# Judgements
@pytest.fixture(scope="module")
def mail():
    """Labels and probabilities of two classes."""
    rng = np.random.default_rng(15)
    y = rng.random(600) < 0.2
    return np.where(y, "spam", "ham"), 1 / (1 + np.exp(2 - 1.6 * (rng.normal(size=600) + 1.3 * y)))


@pytest.fixture(scope="module")
def flowers(iris):
    """Labels and probabilities of three classes."""
    x, y = iris
    return y, Peer().fit(x, y).predict_proba(x)


def corners(member, p):
    """scikit-learn's curve without the points on straight runs, by whole numbers: (false positive rate, sensitivity)
    and thresholds. (Its own drop_intermediate leaves some of them.)"""
    fpr, tpr, thresholds = roc_curve(member, p, drop_intermediate=False)
    fp, tp = (np.diff(np.round(rate * n).astype(int)) for rate, n in ((fpr, (~member).sum()), (tpr, member.sum())))
    turns = np.r_[True, fp[:-1] * tp[1:] != fp[1:] * tp[:-1], True]
    return np.column_stack([fpr, tpr])[turns], thresholds[turns]


def test_roc_of_two_classes_is_that_of_scikit_learn(mail):
    y, p = mail
    spec = Evaluation.of(y, p).plot_roc().to_dict()
    drawn = rows_of(spec, 1)
    points, thresholds = corners(y == "spam", p)
    np.testing.assert_allclose(drawn[["x", "y"]], points, atol=1e-12)
    np.testing.assert_array_equal(drawn.threshold[1:].astype(float), thresholds[1:])
    assert np.isnan(drawn.threshold[0])  # infinite, which JSON cannot say
    assert spec["title"]["text"].startswith(f"ROC of spam: AUC {roc_auc_score(y == 'spam', p):.3f} (95% interval ")
    assert spec["width"] == spec["height"]
    diagonal = rows_of(spec, 0)[["x", "y"]]
    assert diagonal.to_numpy().tolist() == [[0, 0], [1, 1]]


def test_roc_of_the_other_class_is_mirrored(mail):
    y, p = mail
    drawn = rows_of(Evaluation.of(y, p).plot_roc(pos_label="ham").to_dict(), 1)
    np.testing.assert_allclose(drawn[["x", "y"]], corners(y == "ham", 1 - p)[0], atol=1e-12)


def test_roc_of_three_classes_has_a_line_for_each(flowers):
    y, p = flowers
    spec = Evaluation.of(y, p).plot_roc().to_dict()
    drawn, names = rows_of(spec, 1), encoding(spec, 1, "color")["scale"]["domain"]
    for k, (c, name) in enumerate(zip(np.unique(y), names, strict=True)):
        np.testing.assert_allclose(drawn[drawn.line == name][["x", "y"]], corners(y == c, p[:, k])[0], atol=1e-12)
        assert name.startswith(f"{c}: {roc_auc_score(y == c, p[:, k]):.3f} (")
    one = Evaluation.of(y, p).plot_roc(pos_label="virginica").to_dict()
    assert set(rows_of(one, 1).line) == {one["title"]["text"].removeprefix("ROC of ").replace("AUC ", "")}


def test_a_long_curve_is_thinned_to_what_can_be_seen():
    rng = np.random.default_rng(16)
    y = rng.random(50_000) < 0.3
    p = 1 / (1 + np.exp(-rng.normal(size=50_000) - y))
    drawn = rows_of(Evaluation.of(y, p).plot_roc().to_dict(), 1)
    assert len(drawn) < MOST_POINTS
    fpr, tpr, _ = roc_curve(y, p)
    # a curve that rises is nowhere farther off upwards than √2 times the distance, where its slope is 1
    off = np.abs(np.interp(fpr, drawn.x, drawn.y) - tpr)
    steep = np.abs(np.interp(tpr, drawn.y, drawn.x) - fpr)
    assert np.minimum(off, steep).max() <= np.sqrt(2) * TOLERANCE
    assert abs(np.trapezoid(drawn.y, drawn.x) - roc_auc_score(y, p)) < TOLERANCE


def test_roc_of_one_class_has_no_line():
    with pytest.warns(db.DecibanWarning, match="no AUC"):
        spec = Evaluation.of([1, 1, 1], [[0.5, 0.5], [0.2, 0.8], [0.1, 0.9]], classes=[0, 1]).plot_roc().to_dict()
    assert spec["title"]["text"] == "ROC of 1: AUC not defined (one class only)"
    assert rows_of(spec, 1).empty


@pytest.mark.parametrize("bins", [5, 10])
def test_calibration_is_that_of_scikit_learn(mail, bins):
    y, p = mail
    above, below = (chart_of(Evaluation.of(y, p).plot_calibration(bins=bins), i) for i in (0, 1))
    observed, predicted = calibration_curve(y == "spam", p, n_bins=bins)
    rows = rows_of(above, 1)
    np.testing.assert_allclose(rows.predicted, predicted, rtol=1e-12)
    np.testing.assert_allclose(rows.observed, observed, rtol=1e-12)
    count, edges = np.histogram(p, bins, (0, 1))
    np.testing.assert_array_equal(rows.rows, count[count > 0])
    np.testing.assert_allclose(rows[["low", "high"]], np.column_stack([edges[:-1], edges[1:]])[count > 0])
    error = (count[count > 0] * np.abs(observed - predicted)).sum() / len(y)
    assert above["title"]["text"] == f"Calibration of spam: ECE {error:.3f}"
    assert below["encoding"]["y"]["field"] == "rows"
    assert [encoding(above, 1, side)["title"] for side in "xy"] == [
        "predicted probability of spam",
        "observed share of spam",
    ]


def test_calibration_of_three_classes_is_of_the_one_predicted(flowers):
    y, p = flowers
    evaluation = Evaluation.of(y, p)
    observed, predicted = calibration_curve(np.unique(y)[p.argmax(axis=1)] == y, p.max(axis=1), n_bins=10)
    above = chart_of(evaluation.plot_calibration(), 0)
    np.testing.assert_allclose(rows_of(above, 1)[["predicted", "observed"]], np.column_stack([predicted, observed]))
    assert above["title"]["text"].startswith("Calibration of the predicted class: ")
    observed, predicted = calibration_curve(y == "setosa", p[:, 0], n_bins=10)
    above = chart_of(evaluation.plot_calibration(pos_label="setosa"), 0)
    np.testing.assert_allclose(rows_of(above, 1)[["predicted", "observed"]], np.column_stack([predicted, observed]))


def test_a_bin_of_one_score_on_an_edge_is_drawn_where_it_was_counted():
    rows = rows_of(chart_of(Evaluation.of([0, 1, 1], [0.5, 0.5, 1.0]).plot_calibration(bins=2), 0), 1)
    assert rows[["low", "high", "rows"]].to_numpy().tolist() == [[0, 0.5, 2], [0.5, 1, 1]]


def chart_of(both, place):
    """One of the charts of a column of them, with the data of all."""
    spec = both.to_dict()
    return spec["vconcat"][place] | {"datasets": spec["datasets"]}


def test_confusion_is_that_of_scikit_learn(flowers):
    y, p = flowers
    spec = Evaluation.of(y, p).plot_confusion().to_dict()
    table = pd.DataFrame(next(iter(spec["datasets"].values())))
    classes = np.unique(y)
    predicted = classes[p.argmax(axis=1)]
    counts = table.pivot_table(index="true", columns="predicted", values="rows").to_numpy()
    np.testing.assert_array_equal(counts, confusion_matrix(y, predicted))
    shares = table.pivot_table(index="true", columns="predicted", values="share").to_numpy()
    np.testing.assert_allclose(shares, confusion_matrix(y, predicted, normalize="true"))
    assert table.text.tolist() == [str(n) for n in confusion_matrix(y, predicted).flat]
    assert encoding(spec, 0, "y")["field"] == "true"
    assert encoding(spec, 0, "x")["sort"] == classes.tolist()
    assert spec["title"]["text"] == f"Confusion: accuracy {np.mean(predicted == y):.3f}"


def test_confusion_of_many_classes_leaves_numbers_to_the_tooltip():
    y = np.arange(40).repeat(2)
    spec = Evaluation.of(y, np.eye(40)[y]).plot_confusion().to_dict()
    assert len(spec["layer"]) == 1
    assert len(next(iter(spec["datasets"].values()))) == 1600


def test_confusion_with_weights_and_an_empty_class():
    proba = [[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.3, 0.7, 0.0]]
    spec = Evaluation.of([0, 0, 1], proba, classes=[0, 1, 2], sample_weight=[0.5, 1.5, 1000.0]).plot_confusion()
    table = pd.DataFrame(next(iter(spec.to_dict()["datasets"].values())))
    assert table.text.tolist() == ["0.5", "1.5", "0", "0", "1,000", "0", "0", "0", "0"]
    assert table.share[:6].tolist() == [0.25, 0.75, 0, 0, 1, 0]
    assert table.share[6:].isna().all()  # there is no share of no rows


@pytest.mark.parametrize("draw", EVALUATION_CHARTS)
def test_charts_of_an_evaluation_need_altair(monkeypatch, mail, draw):
    evaluation = Evaluation.of(*mail)
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(db.DecibanError, match=r"plots need altair: pip install 'deciban\[plot\]'"):
        draw(evaluation)


def test_charts_are_drawn(mail, flowers):
    """What altair's own checks let pass, the renderer may not."""
    charts = [draw(Evaluation.of(*of)) for draw in EVALUATION_CHARTS for of in (mail, flowers)]
    for chart in charts:
        drawn = vl_convert.vegalite_to_svg(chart.to_dict())
        assert drawn.startswith("<svg")
        assert "NaN" not in drawn
