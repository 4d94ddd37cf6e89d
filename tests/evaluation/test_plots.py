"""Charts: their data against scikit-learn and against formulas worked out by hand, and what they refuse."""

import json
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
import vl_convert
from scipy import stats
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression as Peer
from sklearn.metrics import confusion_matrix, roc_auc_score, roc_curve

import deciban as db
from deciban.evaluation import plots
from deciban.evaluation.contours import MOST_POINTS, TOLERANCE
from deciban.evaluation.evaluation import Evaluation

CORRELATED = np.array([[1.0, 0.6], [0.0, 0.8]])


def rows_of(spec, layer):
    """The data of a layer; a chart must be JSON, without NaN."""
    json.dumps(spec, allow_nan=False)
    return pd.DataFrame(spec["datasets"][spec["layer"][layer]["data"]["name"]])


def encoding(spec, layer, channel):
    return spec["layer"][layer]["encoding"][channel]


def normal_rows(seed=0, n=(300, 200)):
    """Two normal classes with the same covariance."""
    rng = np.random.default_rng(seed)
    x = np.vstack([rng.normal(size=(n[0], 2)) @ CORRELATED, rng.normal(size=(n[1], 2)) @ CORRELATED + [2, 1.5]])
    return x, np.repeat(["no", "yes"], n)


@pytest.fixture(scope="module")
def iris():
    x, y = load_iris(return_X_y=True)
    return x[:, :2], load_iris().target_names[y]


def gaussians(x, y, *, shared):
    """log p(c) + log p(x|c) as functions of x, by scipy, with covariances divided by n."""
    classes = np.unique(y)
    covariances = [np.cov(x[y == c].T, bias=True) for c in classes]
    if shared:
        pooled = sum(np.mean(y == c) * s for c, s in zip(classes, covariances, strict=True))
        covariances = [pooled] * len(classes)
    densities = [
        stats.multivariate_normal(x[y == c].mean(axis=0), s) for c, s in zip(classes, covariances, strict=True)
    ]
    return lambda at: np.column_stack(
        [np.log(np.mean(y == c)) + d.logpdf(at) for c, d in zip(classes, densities, strict=True)]
    )


# Boundary ------------------------------------------------------------------------------------------------------------


def test_boundary_of_equal_covariances_is_the_line_worked_out_by_hand():
    x, y = normal_rows()
    spec = plots.boundary(db.GaussianDiscriminant().fit(x, y), x, y).to_dict()
    ties = rows_of(spec, 2)
    line = ties[ties.model == "generative"][["x", "y"]].to_numpy()
    means = [x[y == c].mean(axis=0) for c in ("no", "yes")]
    pooled = sum(np.cov(x[y == c].T, bias=True) * np.mean(y == c) for c in ("no", "yes"))
    w = np.linalg.solve(pooled, means[1] - means[0])
    b = np.log(200 / 300) - w @ (means[0] + means[1]) / 2
    assert len(line) == 2  # a straight line needs no more
    np.testing.assert_allclose(line @ w + b, 0, atol=1e-9)
    low, high = encoding(spec, 2, "y")["scale"]["domain"]
    np.testing.assert_allclose(sorted(line[:, 1]), [low, high])  # from edge to edge


def test_boundary_of_the_refined_twin_is_that_of_logistic_regression():
    x, y = normal_rows(1)
    spec = plots.boundary(db.GaussianDiscriminant().fit(x, y), x, y).to_dict()
    ties = rows_of(spec, 2)
    line = ties[ties.model == "twin (refined)"][["x", "y"]].to_numpy()
    peer = Peer(C=np.inf, tol=1e-12, solver="newton-cholesky").fit(x, y)
    np.testing.assert_allclose(line @ peer.coef_[0] + peer.intercept_, 0, atol=1e-6)
    assert encoding(spec, 2, "stroke")["scale"]["domain"] == ["generative", "twin (refined)"]


def test_weights_count_in_the_twin_and_rows_of_weight_0_are_not_drawn():
    x, y = normal_rows(2)
    weights = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
    model = db.GaussianDiscriminant().fit(x, y, weights)
    spec = plots.boundary(model, x, y, sample_weight=weights).to_dict()
    peer = Peer(C=np.inf, tol=1e-12, solver="newton-cholesky").fit(x, y, weights)
    ties = rows_of(spec, 2)
    line = ties[ties.model == "twin (refined)"][["x", "y"]].to_numpy()
    np.testing.assert_allclose(line @ peer.coef_[0] + peer.intercept_, 0, atol=1e-6)
    assert len(rows_of(spec, 0)) == np.count_nonzero(weights)


def test_boundary_of_two_covariances_is_where_the_densities_of_scipy_tie():
    x, y = normal_rows(3, (2000, 60))
    x[y == "yes"] = (x[y == "yes"] - 2) * [0.5, 1.5] + 2
    spec = plots.boundary(db.GaussianDiscriminant("per-class").fit(x, y), x, y).to_dict()
    ties = rows_of(spec, 2)
    scores = gaussians(x, y, shared=False)(ties[ties.model == "generative"][["x", "y"]].to_numpy())
    assert len(scores) > 10  # a curve
    assert np.abs(scores[:, 0] - scores[:, 1]).max() < 0.01  # of a grid of 200 steps


def test_density_contours_lie_at_1_2_and_3_standard_deviations(iris):
    x, y = iris
    with pytest.warns(db.DecibanWarning, match="separable"):
        chart = plots.boundary(db.GaussianDiscriminant("per-class").fit(x, y), x, y)
    contours = rows_of(chart.to_dict(), 1)
    for c in np.unique(y):
        off = contours[contours["class"] == c][["x", "y"]].to_numpy() - x[y == c].mean(axis=0)
        distance = np.sqrt((off @ np.linalg.inv(np.cov(x[y == c].T, bias=True)) * off).sum(axis=1))
        nearest = np.clip(np.round(distance), 1, 3)
        np.testing.assert_allclose(distance, nearest, atol=0.01)
        assert set(nearest) == {1, 2, 3}


def test_naive_bayes_has_contours_along_the_axes():
    x, y = normal_rows(4)
    contours = rows_of(plots.boundary(db.NaiveBayes().fit(x, y), x, y).to_dict(), 1)
    for c in ("no", "yes"):
        off = (contours[contours["class"] == c][["x", "y"]] - x[y == c].mean(axis=0)) / x[y == c].std(axis=0)
        distance = np.hypot(off.x, off.y)
        np.testing.assert_allclose(distance, np.clip(np.round(distance), 1, 3), atol=0.01)


@pytest.mark.parametrize("shared", [True, False])
def test_three_classes_meet_where_the_two_best_scores_tie(iris, shared):
    x, y = iris
    model = db.GaussianDiscriminant("shared" if shared else "per-class").fit(x, y)
    with pytest.warns(db.DecibanWarning, match="separable"):
        ties = rows_of(plots.boundary(model, x, y).to_dict(), 2)
    line = ties[ties.model == "generative"]
    scores = np.sort(gaussians(x, y, shared=shared)(line[["x", "y"]].to_numpy()), axis=1)
    assert np.abs(scores[:, 2] - scores[:, 1]).max() < (1e-9 if shared else 0.02)
    if shared:  # three half-lines, each drawn once, from one point
        assert line.groupby("line").size().tolist() == [2, 2, 2]
        together = scores[np.abs(scores[:, 2] - scores[:, 0]) < 1e-9]
        assert len(together) == 3


def test_a_discriminative_model_alone_is_points_and_its_boundary():
    x, y = normal_rows(5)
    spec = plots.boundary(db.LogisticRegression().fit(x, y), x, y).to_dict()
    assert len(spec["layer"]) == 2
    line = rows_of(spec, 1)[["x", "y"]].to_numpy()
    peer = Peer(C=np.inf, tol=1e-12, solver="newton-cholesky").fit(x, y)
    np.testing.assert_allclose(line @ peer.coef_[0] + peer.intercept_, 0, atol=1e-6)
    assert encoding(spec, 1, "stroke")["scale"]["domain"] == ["LogisticRegression"]


def test_models_of_other_libraries_have_a_boundary(iris):
    x, y = iris
    peer = Peer().fit(x, y)
    line = rows_of(plots.boundary(peer, x, y).to_dict(), 1)[["x", "y"]].to_numpy()
    proba = np.sort(peer.predict_proba(line), axis=1)
    np.testing.assert_allclose(proba[:, 2], proba[:, 1], atol=1e-9)


def test_counts_are_asked_for_at_whole_numbers_and_waiting_times_above_0():
    rng = np.random.default_rng(6)
    y = np.repeat([0, 1], 200)
    counts = rng.poisson(np.where(y == 0, 2, 5)[:, None] * [1, 2])
    line = _generative_line(db.families.Poisson(), counts, y)
    a, b = (counts[y == c].mean(axis=0) for c in (0, 1))
    np.testing.assert_allclose(line @ np.log(b / a) - (b - a).sum(), 0, atol=1e-9)
    waits = rng.exponential(np.where(y == 0, 1, 4)[:, None] * [1, 2])
    line = _generative_line(db.families.Exponential(), waits, y)
    a, b = (1 / waits[y == c].mean(axis=0) for c in (0, 1))
    np.testing.assert_allclose(np.log(b / a).sum() - line @ (b - a), 0, atol=1e-9)


def _generative_line(family, x, y):
    ties = rows_of(plots.boundary(db.NaiveBayes(family).fit(x, y), x, y).to_dict(), 2)
    return ties[ties.model == "generative"][["x", "y"]].to_numpy()


def test_a_model_without_twin_is_drawn_alone_and_says_why():
    x, y = normal_rows(7)
    x[y == "yes"] *= 0.5  # the smaller box is the denser one, and lies partly in the other
    spec = plots.boundary(db.NaiveBayes(db.families.Uniform(), smoothing=0).fit(x, y), x, y).to_dict()
    assert encoding(spec, 2, "stroke")["scale"]["domain"] == ["generative"]
    assert "not an exponential family" in " ".join(spec["title"]["subtitle"])
    line = rows_of(spec, 2)[["x", "y"]].to_numpy()
    step = 1.1 * np.ptp(x, axis=0) / 200  # of the grid
    low, high = x[y == "yes"].min(axis=0), x[y == "yes"].max(axis=0)
    assert len(line)
    assert (np.minimum(np.abs(line - low), np.abs(line - high)) <= step).any(axis=1).all()  # on the box's edge
    assert ((line >= low - step) & (line <= high + step)).all()


def test_a_class_of_prior_0_has_no_density_and_no_boundary():
    x, y = normal_rows(8)
    spec = plots.boundary(db.GaussianDiscriminant(class_prior=[0.0, 1.0]).fit(x, y), x, y).to_dict()
    assert set(rows_of(spec, 1)["class"]) == {"yes"}
    assert rows_of(spec, 2).empty


# The rows that are drawn ---------------------------------------------------------------------------------------------


def test_many_rows_are_sampled_and_the_chart_says_so():
    x, y = normal_rows(9, (6000, 3000))
    model = db.LogisticRegression().fit(x, y)
    first, again, other = (plots.boundary(model, x, y, random_state=seed).to_dict() for seed in (0, 0, 1))
    points = rows_of(first, 0)
    assert len(points) == 2000
    assert first["title"]["subtitle"] == ["a random sample of 2,000 of 9,000 rows"]
    known = {(a, b, c) for (a, b), c in zip(x.tolist(), y.tolist(), strict=True)}
    drawn = set(points[["x", "y", "class"]].itertuples(index=False, name=None))
    assert len(drawn) == 2000
    assert drawn <= known
    pd.testing.assert_frame_equal(points, rows_of(again, 0))
    assert drawn != set(rows_of(other, 0)[["x", "y", "class"]].itertuples(index=False, name=None))
    assert len(rows_of(plots.boundary(model, x, y, points=10).to_dict(), 0)) == 10


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_tables_give_axes_their_names_in_the_order_of_the_model(library):
    x, y = normal_rows(10)
    table = library({"log.weight": x[:, 1], "sick": y, "size [cm]": x[:, 0]})
    model = db.GaussianDiscriminant().fit(library({"size [cm]": x[:, 0], "log.weight": x[:, 1]}), y)
    named, plain = plots.boundary(model, table, "sick"), plots.boundary(db.GaussianDiscriminant().fit(x, y), x, y)
    named, plain = named.to_dict(), plain.to_dict()
    for layer in range(3):
        assert encoding(named, layer, "x")["title"] == "size [cm]"
        assert encoding(named, layer, "y")["title"] == "log.weight"
        pd.testing.assert_frame_equal(rows_of(named, layer), rows_of(plain, layer))
    assert encoding(plain, 0, "x")["title"] == "column 0"


def test_rows_with_a_hole_are_not_drawn():
    x, y = normal_rows(11)
    x[[3, 5, 400, 410], [0, 1, 0, 1]] = np.nan  # in both classes: holes tell them not apart
    spec = plots.boundary(db.NaiveBayes().fit(x, y), x, y).to_dict()
    assert spec["title"]["subtitle"][0] == "496 rows; 4 with a missing cell or weight 0 are not drawn"
    assert len(rows_of(spec, 0)) == 496


def test_the_row_limit_of_altair_is_passed():
    rng = np.random.default_rng(12)
    y = rng.integers(0, 12, 6000)
    x = rng.normal(size=(6000, 2)) + 2 * np.column_stack([y % 4, y // 4])
    spec = plots.boundary(db.SoftmaxRegression().fit(x, y), x, y, points=6000).to_dict()
    assert len(rows_of(spec, 0)) == 6000
    assert encoding(spec, 0, "color")["scale"]["domain"] == [str(c) for c in range(12)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x, y: {"model": db.LogisticRegression().fit(np.column_stack([x, x[:, 0] ** 2]), y)}, "the model has 3"),
        (lambda x, y: {"model": db.LogisticRegression()}, "not fitted yet"),
        (lambda x, y: {"X": x[:, :1]}, "X has 1 features"),
        (lambda x, y: {"y": y[1:]}, "500 rows, 499 labels"),
        (lambda x, y: {"y": np.where(x[:, 0] > 0, "maybe", y)}, "class 'maybe' is not one of the model's"),
        (lambda x, y: {"X": np.where(x == x[7, 1], np.inf, x)}, "column 1, row 7: inf is infinite"),
        (lambda x, y: {"X": x * np.nan}, "no point to draw"),
        (lambda x, y: {"points": 0}, "no point to draw"),
    ],
)
def test_boundary_refuses(change, message):
    x, y = normal_rows(13)
    asked = {"model": db.LogisticRegression().fit(x, y), "X": x, "y": y}
    with pytest.raises(db.DecibanError, match=message):
        plots.boundary(**asked | change(x, y))


def test_boundary_refuses_text_and_models_without_scores():
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": list("uvuv")})
    model = db.NaiveBayes().fit(table, [0, 0, 1, 1])
    with pytest.raises(db.DecibanError, match="column 'b' does not hold numbers"):
        plots.boundary(model, table, [0, 0, 1, 1])

    class Silent:
        classes_, n_features_in_ = np.array([0, 1]), 2

    with pytest.raises(db.DecibanError, match="Silent gives no scores"):
        plots.boundary(Silent(), [[0.0, 1.0], [1.0, 2.0]], [0, 1])


@pytest.mark.parametrize("library", ["altair", "contourpy"])
def test_a_missing_library_is_named_with_what_to_install(monkeypatch, library):
    x, y = normal_rows(14)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(db.DecibanError, match=rf"plots need {library}: pip install 'deciban\[plot\]'"):
        plots.boundary(db.LogisticRegression().fit(x, y), x, y)


# Judgements ----------------------------------------------------------------------------------------------------------


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
    spec = plots.roc(Evaluation.of(y, p)).to_dict()
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
    drawn = rows_of(plots.roc(Evaluation.of(y, p), pos_label="ham").to_dict(), 1)
    np.testing.assert_allclose(drawn[["x", "y"]], corners(y == "ham", 1 - p)[0], atol=1e-12)


def test_roc_of_three_classes_has_a_line_for_each(flowers):
    y, p = flowers
    spec = plots.roc(Evaluation.of(y, p)).to_dict()
    drawn, names = rows_of(spec, 1), encoding(spec, 1, "color")["scale"]["domain"]
    for k, (c, name) in enumerate(zip(np.unique(y), names, strict=True)):
        np.testing.assert_allclose(drawn[drawn.line == name][["x", "y"]], corners(y == c, p[:, k])[0], atol=1e-12)
        assert name.startswith(f"{c}: {roc_auc_score(y == c, p[:, k]):.3f} (")
    one = plots.roc(Evaluation.of(y, p), pos_label="virginica").to_dict()
    assert set(rows_of(one, 1).line) == {one["title"]["text"].removeprefix("ROC of ").replace("AUC ", "")}


def test_a_long_curve_is_thinned_to_what_can_be_seen():
    rng = np.random.default_rng(16)
    y = rng.random(50_000) < 0.3
    p = 1 / (1 + np.exp(-rng.normal(size=50_000) - y))
    drawn = rows_of(plots.roc(Evaluation.of(y, p)).to_dict(), 1)
    assert len(drawn) < MOST_POINTS
    fpr, tpr, _ = roc_curve(y, p)
    # a curve that rises is nowhere farther off upwards than √2 times the distance, where its slope is 1
    off = np.abs(np.interp(fpr, drawn.x, drawn.y) - tpr)
    steep = np.abs(np.interp(tpr, drawn.y, drawn.x) - fpr)
    assert np.minimum(off, steep).max() <= np.sqrt(2) * TOLERANCE
    assert abs(np.trapezoid(drawn.y, drawn.x) - roc_auc_score(y, p)) < TOLERANCE


def test_roc_of_one_class_has_no_line():
    with pytest.warns(db.DecibanWarning, match="no AUC"):
        spec = plots.roc(Evaluation.of([1, 1, 1], [[0.5, 0.5], [0.2, 0.8], [0.1, 0.9]], classes=[0, 1])).to_dict()
    assert spec["title"]["text"] == "ROC of 1: AUC not defined (one class only)"
    assert rows_of(spec, 1).empty


@pytest.mark.parametrize("bins", [5, 10])
def test_calibration_is_that_of_scikit_learn(mail, bins):
    y, p = mail
    above, below = (chart_of(plots.calibration(Evaluation.of(y, p), bins=bins), i) for i in (0, 1))
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
    assert [encoding(above, 1, side)["title"] for side in "xy"] == ["probability given to spam", "share of spam"]


def test_calibration_of_three_classes_is_of_the_one_predicted(flowers):
    y, p = flowers
    evaluation = Evaluation.of(y, p)
    observed, predicted = calibration_curve(np.unique(y)[p.argmax(axis=1)] == y, p.max(axis=1), n_bins=10)
    above = chart_of(plots.calibration(evaluation), 0)
    np.testing.assert_allclose(rows_of(above, 1)[["predicted", "observed"]], np.column_stack([predicted, observed]))
    assert above["title"]["text"].startswith("Calibration of the predicted class: ")
    observed, predicted = calibration_curve(y == "setosa", p[:, 0], n_bins=10)
    above = chart_of(plots.calibration(evaluation, pos_label="setosa"), 0)
    np.testing.assert_allclose(rows_of(above, 1)[["predicted", "observed"]], np.column_stack([predicted, observed]))


def test_a_bin_of_one_score_on_an_edge_is_drawn_where_it_was_counted():
    rows = rows_of(chart_of(plots.calibration(Evaluation.of([0, 1, 1], [0.5, 0.5, 1.0]), bins=2), 0), 1)
    assert rows[["low", "high", "rows"]].to_numpy().tolist() == [[0, 0.5, 2], [0.5, 1, 1]]


def chart_of(both, place):
    """One of the charts of a column of them, with the data of all."""
    spec = both.to_dict()
    return spec["vconcat"][place] | {"datasets": spec["datasets"]}


def test_confusion_is_that_of_scikit_learn(flowers):
    y, p = flowers
    spec = plots.confusion(Evaluation.of(y, p)).to_dict()
    table = pd.DataFrame(next(iter(spec["datasets"].values())))
    classes = np.unique(y)
    given = classes[p.argmax(axis=1)]
    counts = table.pivot_table(index="true", columns="predicted", values="rows").to_numpy()
    np.testing.assert_array_equal(counts, confusion_matrix(y, given))
    shares = table.pivot_table(index="true", columns="predicted", values="share").to_numpy()
    np.testing.assert_allclose(shares, confusion_matrix(y, given, normalize="true"))
    assert table.text.tolist() == [str(n) for n in confusion_matrix(y, given).flat]
    assert encoding(spec, 0, "y")["field"] == "true"
    assert encoding(spec, 0, "x")["sort"] == classes.tolist()
    assert spec["title"]["text"] == f"Confusion: accuracy {np.mean(given == y):.3f}"


def test_confusion_of_many_classes_leaves_numbers_to_the_tooltip():
    y = np.arange(40).repeat(2)
    spec = plots.confusion(Evaluation.of(y, np.eye(40)[y])).to_dict()
    assert len(spec["layer"]) == 1
    assert len(next(iter(spec["datasets"].values()))) == 1600


def test_confusion_with_weights_and_an_empty_class():
    proba = [[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.3, 0.7, 0.0]]
    spec = plots.confusion(Evaluation.of([0, 0, 1], proba, classes=[0, 1, 2], sample_weight=[0.5, 1.5, 1000.0]))
    table = pd.DataFrame(next(iter(spec.to_dict()["datasets"].values())))
    assert table.text.tolist() == ["0.5", "1.5", "0", "0", "1,000", "0", "0", "0", "0"]
    assert table.share[:6].tolist() == [0.25, 0.75, 0, 0, 1, 0]
    assert table.share[6:].isna().all()  # there is no share of no rows


@pytest.mark.parametrize("draw", [plots.roc, plots.calibration, plots.confusion])
def test_charts_of_an_evaluation_need_altair(monkeypatch, mail, draw):
    evaluation = Evaluation.of(*mail)
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(db.DecibanError, match=r"plots need altair: pip install 'deciban\[plot\]'"):
        draw(evaluation)


def test_charts_are_drawn(mail, flowers, iris):
    """What altair's own checks let pass, the renderer may not."""
    x, y = normal_rows(17)
    charts = [
        draw(Evaluation.of(*of)) for draw in (plots.roc, plots.calibration, plots.confusion) for of in (mail, flowers)
    ]
    charts.append(plots.boundary(db.GaussianDiscriminant().fit(x, y), x, y))
    for chart in charts:
        drawn = vl_convert.vegalite_to_svg(chart.to_dict())
        assert drawn.startswith("<svg")
        assert "NaN" not in drawn
