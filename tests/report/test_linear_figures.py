"""Coefficients in a report, held against sums over the rows and scipy; and boundaries over two columns."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import softmax
from sklearn.datasets import load_iris

import deciban as db
from deciban.report import report_of


def figures(model, X, y, **options):
    return report_of(model, X, y, **options).figures


def columns(table):
    return {
        name: np.array(cells) for name, cells in zip(table["fields"], zip(*table["rows"], strict=True), strict=True)
    }


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) * [1, 5] + [0, 20]
    return X, (rng.random(300) < 1 / (1 + np.exp(-X[:, 0] - 0.2 * (X[:, 1] - 20)))).astype(int)


def information(X, p, weights=None):
    """(m(1 + p), m(1 + p)) Σ w (diag p − p pᵀ) ⊗ x xᵀ, of all classes but the first; intercepts first."""
    x = np.column_stack([np.ones(len(X)), X])
    m, width = p.shape[1] - 1, x.shape[1]
    total = np.zeros((m * width, m * width))
    for row, q, w in zip(x, p[:, 1:], np.ones(len(X)) if weights is None else weights, strict=True):
        total += w * np.kron(np.diag(q) - np.outer(q, q), np.outer(row, row))
    return total


def test_errors_of_log_odds_are_of_the_information_in_the_rows(rows):
    X, y = rows
    model = db.LogisticRegression().fit(X, y)
    linear = figures(model, X, y)["linear"]
    (figure,) = linear["coefficients"]
    listed = columns(figure["rows"])
    assert figure["title"] == "log-odds of 1 against 0"
    assert listed["name"].tolist() == ["(intercept)", "0", "1"]
    estimates = np.append(model.intercept_, model.coef_)
    errors = np.sqrt(np.diag(np.linalg.inv(information(X, model.predict_proba(X)))))
    np.testing.assert_allclose(listed["estimate"], estimates, rtol=1e-5)
    np.testing.assert_allclose(listed["error"], errors, rtol=1e-5)
    np.testing.assert_allclose(listed["low"], stats.norm.ppf(0.025, estimates, errors), rtol=1e-4)
    np.testing.assert_allclose(listed["high"], stats.norm.ppf(0.975, estimates, errors), rtol=1e-4)
    np.testing.assert_allclose(listed["p"], 2 * stats.norm.sf(np.abs(estimates / errors)), rtol=1e-4)
    assert "300 rows of this report" in linear["sentence"]


def test_weights_count_rows(rows):
    X, y = rows
    w = np.arange(300) % 3
    model = db.LogisticRegression().fit(X, y, w)
    (figure,) = figures(model, X, y, sample_weight=w)["linear"]["coefficients"]
    errors = np.sqrt(np.diag(np.linalg.inv(information(X, model.predict_proba(X), w))))
    np.testing.assert_allclose(columns(figure["rows"])["error"], errors, rtol=1e-5)


def test_errors_of_scores_that_sum_to_0():
    """Each vector is d_k − mean d, of differences d from the first class: by hand from their covariance."""
    X, y = load_iris(return_X_y=True)
    X, y = X[50:, :2], np.random.default_rng(1).integers(0, 3, 100)
    model = db.SoftmaxRegression().fit(X, y)
    linear = figures(model, X, y)["linear"]
    covariance = np.linalg.inv(information(X, softmax(model.decision_function(X), axis=1))).reshape(2, 3, 2, 3)
    assert [figure["title"] for figure in linear["coefficients"]] == ["score of 0", "score of 1", "score of 2"]
    for k, figure in enumerate(linear["coefficients"]):
        listed = columns(figure["rows"])
        weights = (np.arange(1, 3) == k) - 1 / 3
        variance = [weights @ covariance[:, i, :, i] @ weights for i in range(3)]
        np.testing.assert_allclose(listed["error"], np.sqrt(variance), rtol=1e-4)
        np.testing.assert_allclose(listed["estimate"], [model.intercept_[k], *model.coef_[k]], rtol=1e-4, atol=1e-6)


def test_a_glm_has_the_errors_of_its_fit(rows):
    """Least squares: s² (XᵀX)⁻¹, and Student's t."""
    X, _ = rows
    y = X @ [2.0, -0.5] + np.random.default_rng(2).normal(size=300)
    model = db.GeneralizedLinearModel().fit(X, y)
    linear = figures(model, X[:10], y[:10])["linear"]
    x = np.column_stack([np.ones(300), X])
    inverse = np.linalg.inv(x.T @ x)
    estimates = inverse @ x.T @ y
    errors = np.sqrt(np.diag(inverse) * ((y - x @ estimates) ** 2).sum() / 297)
    listed = columns(linear["coefficients"][0]["rows"])
    np.testing.assert_allclose(listed["estimate"], estimates, rtol=1e-5)
    np.testing.assert_allclose(listed["error"], errors, rtol=1e-5)
    np.testing.assert_allclose(listed["high"], estimates + stats.t.ppf(0.975, 297) * errors, rtol=1e-4)
    assert linear["unit"] == "identity link"
    assert "300 training rows" in linear["sentence"]


def test_where_there_are_no_errors_it_is_said(rows):
    X, y = rows
    cases = {
        "l2 = 1": db.LogisticRegression(l2=1.0).fit(X, y),
        "generative model": db.NaiveBayes().fit(X, y).to_linear(),
    }
    for words, model in cases.items():
        linear = figures(model, X, y)["linear"]
        assert words in linear["sentence"]
        assert all(row[2:] == [None] * 4 for figure in linear["coefficients"] for row in figure["rows"]["rows"])
    linear = figures(db.LogisticRegression().fit(X, y), X[y == 1], y[y == 1])["linear"]
    assert any("no row of class" in note for note in linear["notes"])


def test_a_coefficient_that_is_not_determined_has_no_error(rows):
    X, y = rows
    twice = np.column_stack([X, X[:, 0]])
    with pytest.warns(db.DecibanWarning, match="collinear"):
        model = db.LogisticRegression().fit(twice, y)
    listed = columns(figures(model, twice, y)["linear"]["coefficients"][0]["rows"])
    assert listed["error"].tolist()[1] is None
    assert listed["error"].tolist()[3] is None
    assert listed["error"].tolist()[2] > 0


def test_the_path_leads_to_the_optimum(rows):
    X, y = rows
    model = db.LogisticRegression().fit(X, y)
    path = columns(figures(model, X, y)["linear"]["path"])
    assert path["iteration"].tolist() == list(range(len(path["iteration"])))
    p = model.predict_proba(X)[np.arange(300), y]
    assert path["objective"][-1] == pytest.approx(-np.log(p).sum(), rel=1e-5)
    assert path["gradient"][-1] < path["gradient"][0]
    twin = db.NaiveBayes().fit(X, y).to_linear()
    assert figures(twin, X, y)["linear"]["path"] is None


def test_of_very_many_coefficients_the_largest_are_listed():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(40, 1200)), np.arange(40) % 2
    model = db.LogisticRegression(l2=1.0).fit(X, y)
    linear = figures(model, X, y)["linear"]
    listed = columns(linear["coefficients"][0]["rows"])
    assert len(listed["name"]) == 1000
    assert np.abs(listed["estimate"][1:]).min() >= np.sort(np.abs(model.coef_[0]))[-999] * (1 - 1e-5)
    assert any("1,000 largest" in note for note in linear["notes"])


def test_the_path_has_all_its_digits(rows):
    """What is left to the optimum is a difference of objectives."""
    X, y = rows
    model = db.LogisticRegression().fit(X, y)
    figure = figures(model, X, y)["linear"]["path"]
    assert [row[1] for row in figure["rows"]] == [row[1] for row in model.path_.rows]


def test_a_boundary_is_where_classes_tie():
    X, y = load_iris(return_X_y=True)
    X, y = X[50:, 2:], y[50:]
    model = db.GaussianDiscriminant().fit(X, y)
    figure = figures(model, X, y)["boundary"]
    assert figure["models"] == ["generative", "linear (refined)"]
    ties = [dict(zip(figure["ties"]["fields"], row, strict=True)) for row in figure["ties"]["rows"]]
    at = np.array([[row["x"], row["y"]] for row in ties if row["model"] == "generative"])
    scores = [stats.multivariate_normal(X[y == c].mean(axis=0), model.covariance_).logpdf(at) for c in (1, 2)]
    np.testing.assert_allclose(scores[0], scores[1], atol=0.05)
    assert len(figure["points"]["rows"]) == 100
    assert {row[0] for row in figure["points"]["rows"]} == {"1", "2"}


def test_what_is_said_of_the_twin_stands_beside_the_boundary():
    """Separable classes have no finite coefficients, but normal densities."""
    X, y = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [8.0, 9.0], [9.0, 8.0], [9.0, 9.5]]), [0, 0, 0, 1, 1, 1]
    figure = figures(db.GaussianDiscriminant().fit(X, y), X, y)
    assert any(note.startswith("refined linear form: ") and "separable" in note for note in figure["boundary"]["notes"])
    assert not any("separable" in note for note in figure["head"]["notes"])


def test_only_two_columns_of_numbers_have_a_boundary(rows):
    X, y = rows
    assert figures(db.NaiveBayes().fit(X, y), X, y)["boundary"] is not None
    assert figures(db.NaiveBayes().fit(X[:, :1], y), X[:, :1], y)["boundary"] is None
    text = [[float(a), "b" if b > 20 else "c"] for a, b in X]
    assert figures(db.NaiveBayes().fit(text, y), text, y)["boundary"] is None


def test_without_a_whole_row_there_is_no_boundary(rows):
    X, y = rows
    model = db.NaiveBayes().fit(X, y)
    incomplete = np.where(np.arange(300)[:, np.newaxis] % 2 == [0, 1], np.nan, X)
    figure = figures(model, incomplete, y)
    assert figure["boundary"] is None
    assert any("no decision boundary" in note for note in figure["head"]["notes"])
