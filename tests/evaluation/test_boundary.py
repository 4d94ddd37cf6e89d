"""Decision boundaries: lines worked out by hand and by scipy, and what is refused."""

import json
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
import vl_convert
from scipy import stats
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression as Peer

import deciban as db
from deciban.evaluation.boundary import boundary_figures
from deciban.plots import boundary_chart

CORRELATED = np.array([[1.0, 0.6], [0.0, 0.8]])


def boundary(model, X, y, **options):
    return boundary_chart.boundary(**boundary_figures(model, X, y, **options))


def specification(model, X, y, **options):
    """The chart as a dict; that altair takes it is checked where it is rendered."""
    return boundary(model, X, y, **options).to_dict(validate=False)


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


# Boundary
def test_boundary_of_equal_covariances_is_the_line_worked_out_by_hand():
    x, y = normal_rows()
    spec = specification(db.GaussianDiscriminant().fit(x, y), x, y)
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
    spec = specification(db.GaussianDiscriminant().fit(x, y), x, y)
    ties = rows_of(spec, 2)
    line = ties[ties.model == "linear (refined)"][["x", "y"]].to_numpy()
    peer = Peer(C=np.inf, tol=1e-12, solver="newton-cholesky").fit(x, y)
    np.testing.assert_allclose(line @ peer.coef_[0] + peer.intercept_, 0, atol=1e-6)
    assert encoding(spec, 2, "stroke")["scale"]["domain"] == ["generative", "linear (refined)"]


def test_weights_count_in_the_twin_and_rows_of_weight_0_are_not_drawn():
    x, y = normal_rows(2)
    weights = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
    model = db.GaussianDiscriminant().fit(x, y, weights)
    spec = specification(model, x, y, sample_weight=weights)
    peer = Peer(C=np.inf, tol=1e-12, solver="newton-cholesky").fit(x, y, weights)
    ties = rows_of(spec, 2)
    line = ties[ties.model == "linear (refined)"][["x", "y"]].to_numpy()
    np.testing.assert_allclose(line @ peer.coef_[0] + peer.intercept_, 0, atol=1e-6)
    assert len(rows_of(spec, 0)) == np.count_nonzero(weights)


def test_boundary_of_two_covariances_is_where_the_densities_of_scipy_tie():
    x, y = normal_rows(3, (2000, 60))
    x[y == "yes"] = (x[y == "yes"] - 2) * [0.5, 1.5] + 2
    spec = specification(db.GaussianDiscriminant("per-class").fit(x, y), x, y)
    ties = rows_of(spec, 2)
    scores = gaussians(x, y, shared=False)(ties[ties.model == "generative"][["x", "y"]].to_numpy())
    assert len(scores) > 10  # a curve
    assert np.abs(scores[:, 0] - scores[:, 1]).max() < 0.01  # of a grid of 200 steps


def test_density_contours_lie_at_1_2_and_3_standard_deviations(iris):
    x, y = iris
    with pytest.warns(db.DecibanWarning, match="separable"):
        chart = boundary(db.GaussianDiscriminant("per-class").fit(x, y), x, y)
    contours = rows_of(chart.to_dict(), 1)
    for c in np.unique(y):
        off = contours[contours["class"] == c][["x", "y"]].to_numpy() - x[y == c].mean(axis=0)
        distance = np.sqrt((off @ np.linalg.inv(np.cov(x[y == c].T, bias=True)) * off).sum(axis=1))
        nearest = np.clip(np.round(distance), 1, 3)
        np.testing.assert_allclose(distance, nearest, atol=0.01)
        assert set(nearest) == {1, 2, 3}


def test_naive_bayes_has_contours_along_the_axes():
    x, y = normal_rows(4)
    contours = rows_of(specification(db.NaiveBayes().fit(x, y), x, y), 1)
    for c in ("no", "yes"):
        off = (contours[contours["class"] == c][["x", "y"]] - x[y == c].mean(axis=0)) / x[y == c].std(axis=0)
        distance = np.hypot(off.x, off.y)
        np.testing.assert_allclose(distance, np.clip(np.round(distance), 1, 3), atol=0.01)


@pytest.mark.parametrize("shared", [True, False])
def test_three_classes_meet_where_the_two_best_scores_tie(iris, shared):
    x, y = iris
    model = db.GaussianDiscriminant("shared" if shared else "per-class").fit(x, y)
    with pytest.warns(db.DecibanWarning, match="separable"):
        ties = rows_of(specification(model, x, y), 2)
    line = ties[ties.model == "generative"]
    scores = np.sort(gaussians(x, y, shared=shared)(line[["x", "y"]].to_numpy()), axis=1)
    assert np.abs(scores[:, 2] - scores[:, 1]).max() < (1e-9 if shared else 0.02)
    if shared:  # three half-lines, each drawn once, from one point
        assert line.groupby("line").size().tolist() == [2, 2, 2]
        together = scores[np.abs(scores[:, 2] - scores[:, 0]) < 1e-9]
        assert len(together) == 3


def test_a_discriminative_model_alone_is_points_and_its_boundary():
    x, y = normal_rows(5)
    spec = specification(db.LogisticRegression().fit(x, y), x, y)
    assert len(spec["layer"]) == 2
    line = rows_of(spec, 1)[["x", "y"]].to_numpy()
    peer = Peer(C=np.inf, tol=1e-12, solver="newton-cholesky").fit(x, y)
    np.testing.assert_allclose(line @ peer.coef_[0] + peer.intercept_, 0, atol=1e-6)
    assert encoding(spec, 1, "stroke")["scale"]["domain"] == ["LogisticRegression"]


def test_models_of_other_libraries_have_a_boundary(iris):
    x, y = iris
    peer = Peer().fit(x, y)
    line = rows_of(specification(peer, x, y), 1)[["x", "y"]].to_numpy()
    proba = np.sort(peer.predict_proba(line), axis=1)
    np.testing.assert_allclose(proba[:, 2], proba[:, 1], atol=1e-9)


def test_counts_are_scored_at_integers_and_waiting_times_above_0():
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
    ties = rows_of(specification(db.NaiveBayes(family).fit(x, y), x, y), 2)
    return ties[ties.model == "generative"][["x", "y"]].to_numpy()


def test_a_model_without_twin_is_drawn_alone_and_says_why():
    x, y = normal_rows(7)
    x[y == "yes"] *= 0.5  # the smaller box is the denser one, and lies partly in the other
    spec = specification(db.NaiveBayes(db.families.Uniform(), smoothing=0).fit(x, y), x, y)
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
    spec = specification(db.GaussianDiscriminant(class_prior=[0.0, 1.0]).fit(x, y), x, y)
    assert set(rows_of(spec, 1)["class"]) == {"yes"}
    assert rows_of(spec, 2).empty


# The rows that are drawn
def test_many_rows_are_sampled_and_the_chart_says_so():
    x, y = normal_rows(9, (1500, 1000))
    model = db.LogisticRegression().fit(x, y)
    first, again, other = (specification(model, x, y, random_state=seed) for seed in (0, 0, 1))
    points = rows_of(first, 0)
    assert len(points) == 2000
    assert first["title"]["subtitle"] == ["a random sample of 2,000 of 2,500 rows"]
    known = {(a, b, c) for (a, b), c in zip(x.tolist(), y.tolist(), strict=True)}
    drawn = set(points[["x", "y", "class"]].itertuples(index=False, name=None))
    assert len(drawn) == 2000
    assert drawn <= known
    pd.testing.assert_frame_equal(points, rows_of(again, 0))
    assert drawn != set(rows_of(other, 0)[["x", "y", "class"]].itertuples(index=False, name=None))
    assert len(rows_of(specification(model, x, y, points=10), 0)) == 10


def test_tables_give_axes_their_names_in_the_order_of_the_model():
    x, y = normal_rows(10, (60, 40))
    table = pl.DataFrame({"log.weight": x[:, 1], "sick": y, "size [cm]": x[:, 0]})
    model = db.GaussianDiscriminant().fit(pd.DataFrame({"size [cm]": x[:, 0], "log.weight": x[:, 1]}), y)
    named, plain = specification(model, table, "sick"), specification(db.GaussianDiscriminant().fit(x, y), x, y)
    for layer in range(3):
        assert encoding(named, layer, "x")["title"] == "size [cm]"
        assert encoding(named, layer, "y")["title"] == "log.weight"
        pd.testing.assert_frame_equal(rows_of(named, layer), rows_of(plain, layer))
    assert encoding(plain, 0, "x")["title"] == "column 0"


def test_rows_with_a_missing_value_are_not_drawn():
    x, y = normal_rows(11)
    x[[3, 5, 400, 410], [0, 1, 0, 1]] = np.nan  # in both classes, so that missingness is not informative
    spec = specification(db.NaiveBayes().fit(x, y), x, y)
    assert spec["title"]["subtitle"][0] == "496 rows; 4 with a missing value or weight 0 are not drawn"
    assert len(rows_of(spec, 0)) == 496


def test_the_row_limit_of_altair_is_passed():
    rng = np.random.default_rng(12)
    y = rng.integers(0, 3, 5200)
    x = rng.normal(size=(5200, 2)) + 2 * np.column_stack([y, y % 2])
    spec = specification(db.SoftmaxRegression().fit(x, y), x, y, points=5200)
    assert len(rows_of(spec, 0)) == 5200
    assert encoding(spec, 0, "color")["scale"]["domain"] == ["0", "1", "2"]


def test_boundary_refuses():
    x, y = normal_rows(13)
    model = db.LogisticRegression().fit(x, y)
    for change, message in [
        ({"model": db.LogisticRegression().fit(np.column_stack([x, x[:, 0] ** 2]), y)}, "this one has 3"),
        ({"model": db.LogisticRegression()}, "not fitted yet"),
        ({"X": x[:, :1]}, "X has 1 features"),
        ({"y": y[1:]}, "500 rows, 499 labels"),
        ({"y": np.where(x[:, 0] > 0, "maybe", y)}, "class 'maybe' is not one of the model's"),
        ({"X": np.where(x == x[7, 1], np.inf, x)}, "column 1, row 7: inf is infinite"),
        ({"X": x * np.nan}, "no point to draw"),
        ({"points": 0}, "no point to draw"),
    ]:
        with pytest.raises(db.DecibanError, match=message):
            boundary(**{"model": model, "X": x, "y": y} | change)


def test_boundary_refuses_text_and_models_without_scores():
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": list("uvuv")})
    model = db.NaiveBayes().fit(table, [0, 0, 1, 1])
    with pytest.raises(db.DecibanError, match="column 'b' does not hold numbers"):
        boundary(model, table, [0, 0, 1, 1])

    class Silent:
        classes_, n_features_in_ = np.array([0, 1]), 2

    with pytest.raises(db.DecibanError, match="Silent has no class scores"):
        boundary(Silent(), [[0.0, 1.0], [1.0, 2.0]], [0, 1])


@pytest.mark.parametrize("library", ["altair", "contourpy"])
def test_a_missing_library_is_named_with_what_to_install(monkeypatch, library):
    x, y = normal_rows(14)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(db.DecibanError, match=rf"plots need {library}: pip install 'deciban\[plot\]'"):
        boundary(db.LogisticRegression().fit(x, y), x, y)


def test_a_boundary_is_rendered():
    """The renderer may refuse what altair's own checks let pass."""
    x, y = normal_rows(17)
    svg = vl_convert.vegalite_to_svg(boundary(db.GaussianDiscriminant().fit(x, y), x, y).to_dict())
    assert svg.startswith("<svg")
    assert "NaN" not in svg
