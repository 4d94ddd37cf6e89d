"""GaussianDiscriminant: covariances, divisors, shrinkage, and the same model whatever way the rows come."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import log_softmax
from scipy.stats import multivariate_normal
from sklearn.covariance import oas
from sklearn.datasets import load_iris

import deciban as db
import deciban.data.frames

COVARIANCES = ["shared", "per-class", "diagonal"]
CLOSE = {"rtol": 1e-9, "atol": 1e-12}  # scatter is rounded: about 1e-13 between batches


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(params=COVARIANCES)
def covariance(request):
    return request.param


def textbook(x, y, asked, covariance, divisor, shrink=lambda sigma, n: sigma):
    """log p(c|x) from numpy's covariances and scipy's density; divisor(n, K) as the lectures have it."""
    classes = np.unique(y)
    centred = x - np.stack([x[y == c].mean(axis=0) for c in classes])[y]
    shared = shrink(centred.T @ centred / divisor(len(x), len(classes)), len(x))
    scores = []
    for c in classes:
        rows = centred[y == c]
        own = shrink(rows.T @ rows / divisor(len(rows), 1), len(rows))
        sigma = {"shared": shared, "per-class": own, "diagonal": np.diag(np.diag(own))}[covariance]
        density = multivariate_normal(x[y == c].mean(axis=0), sigma)
        scores.append(np.log(len(rows) / len(x)) + density.logpdf(asked))
    return log_softmax(np.transpose(scores), axis=1)


@pytest.mark.parametrize(
    ("ddof", "divisor"),
    [(0, lambda n, k: n), (1, lambda n, k: n - 1), ("unbiased", lambda n, k: n - k), (2.5, lambda n, k: n - 2.5)],
    ids=["n", "n - 1", "unbiased", "n - 2.5"],
)
def test_posterior_is_the_textbook_one_for_every_divisor(iris, covariance, ddof, divisor):
    x, y = iris
    model = db.GaussianDiscriminant(covariance, ddof=ddof).fit(x, y)
    np.testing.assert_allclose(model.predict_log_proba(x), textbook(x, y, x, covariance, divisor), rtol=1e-9, atol=1e-9)
    assert model.status_ == "ok"


@pytest.mark.parametrize("strength", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("covariance", ["shared", "per-class"])
def test_shrinkage_draws_towards_a_sphere(iris, covariance, strength):
    x, y = iris

    def shrink(sigma, n):
        return (1 - strength) * sigma + strength * np.trace(sigma) / 4 * np.eye(4)

    expected = textbook(x, y, x, covariance, lambda n, k: n, shrink)
    model = db.GaussianDiscriminant(covariance, shrinkage=strength).fit(x, y)
    np.testing.assert_allclose(model.predict_log_proba(x), expected, rtol=1e-9, atol=1e-9)


def test_oas_shrinks_each_class_as_scikit_learn_does(iris):
    x, y = iris
    model = db.GaussianDiscriminant("per-class", shrinkage="oas").fit(x, y)
    scores = []
    for c in range(3):
        sigma, _ = oas(x[y == c])
        scores.append(multivariate_normal(x[y == c].mean(axis=0), sigma).logpdf(x))
    expected = log_softmax(np.transpose(scores), axis=1)
    np.testing.assert_allclose(model.predict_log_proba(x), expected, rtol=1e-9, atol=1e-9)


def test_inverse_wishart_gives_the_posterior_mode(iris):
    """(Ψ + S) / (ν + n + d + 1), from the formula."""
    x, y = iris
    model = db.GaussianDiscriminant(prior=db.priors.InverseWishart(6.0, 2.0)).fit(x, y)
    centred = x - np.stack([x[y == c].mean(axis=0) for c in range(3)])[y]
    expected = (2.0 * np.eye(4) + centred.T @ centred) / (6 + 150 + 4 + 1)
    table = next(t for t in model.summary().tables if t.title == "covariance of all classes")
    np.testing.assert_allclose([row[1:] for row in table.rows], expected, rtol=1e-11)


def test_diagonal_is_gaussian_naive_bayes(iris):
    x, y = iris
    naive = db.NaiveBayes(db.families.Gaussian(ddof=1)).fit(x, y)
    model = db.GaussianDiscriminant("diagonal", ddof="unbiased").fit(x, y)
    np.testing.assert_array_equal(model.predict_proba(x), naive.predict_proba(x))
    variances = [x[y == c].var(axis=0, ddof=1) for c in range(3)]
    np.testing.assert_allclose(model.covariance_, variances, rtol=1e-12)


def test_settings_are_checked(iris):
    wrong = [{"covariance": "full"}, {"shrinkage": 2}, {"shrinkage": -0.1}, {"shrinkage": "magic"}, {"ddof": "n"}]
    for settings in (*wrong, {"covariance": "diagonal", "shrinkage": 0.5}, {"covariance": "diagonal", "ddof": "n"}):
        with pytest.raises(ValueError, match=r"covariance|shrinkage|ddof"):
            db.GaussianDiscriminant(**settings).fit(*iris)


# The same rows in other forms
def test_the_form_of_the_array_does_not_matter(iris, covariance):
    x, y = np.round(iris[0] * 10), iris[1]
    expected = db.GaussianDiscriminant(covariance).fit(x, y).predict_proba(x)
    strided, read_only = np.repeat(x, 2, axis=1)[:, ::2], np.frombuffer(x.tobytes()).reshape(x.shape)
    types = [x.astype(kind) for kind in (np.float32, np.int64, np.uint8)]
    for form in (*types, np.asfortranarray(x), strided, read_only, sp.csr_array(x), pd.DataFrame(x), x.tolist()):
        posterior = db.GaussianDiscriminant(covariance).fit(form, y).predict_proba(form)
        np.testing.assert_allclose(posterior, expected, **CLOSE)


def test_boolean_columns_are_numbers(iris, covariance):
    x, y = iris
    table = pd.DataFrame(x, columns=list("abcd")).assign(e=np.arange(150) % 2 == 0)
    expected = db.GaussianDiscriminant(covariance).fit(table.astype(float), y).predict_proba(table.astype(float))
    np.testing.assert_array_equal(db.GaussianDiscriminant(covariance).fit(table, y).predict_proba(table), expected)


def test_weights_equal_repeated_rows(iris, covariance):
    x, y = iris
    times = 1 + np.arange(150) % 3
    weighted = db.GaussianDiscriminant(covariance, ddof=1).fit(x, y, sample_weight=times)
    repeated = db.GaussianDiscriminant(covariance, ddof=1).fit(x.repeat(times, axis=0), y.repeat(times))
    np.testing.assert_allclose(weighted.predict_proba(x), repeated.predict_proba(x), **CLOSE)


def test_partial_fits_with_new_classes_equal_one_fit(iris, covariance):
    x, y = iris  # sorted by class
    model = db.GaussianDiscriminant(covariance)
    for start in range(0, 150, 40):
        model.partial_fit(x[start : start + 40], y[start : start + 40])
    whole = db.GaussianDiscriminant(covariance).fit(x, y)
    assert model.classes_.tolist() == [0, 1, 2]
    np.testing.assert_allclose(model.predict_proba(x), whole.predict_proba(x), **CLOSE)


def test_merged_models_equal_one_fit_in_either_order(iris, covariance):
    x, y = iris
    a, b = (db.GaussianDiscriminant(covariance).fit(x[rows], y[rows]) for rows in (slice(70), slice(70, 150)))
    expected = db.GaussianDiscriminant(covariance).fit(x, y).predict_proba(x)
    np.testing.assert_allclose((a + b).predict_proba(x), expected, **CLOSE)
    np.testing.assert_allclose((b + a).predict_proba(x), expected, **CLOSE)


def test_forgotten_rows_were_never_learned(iris, covariance):
    x, y = iris
    model = db.GaussianDiscriminant(covariance).fit(x, y).forget(x[90:], y[90:])
    fresh = db.GaussianDiscriminant(covariance).fit(x[:90], y[:90])
    assert model.classes_.tolist() == [0, 1]
    np.testing.assert_allclose(model.predict_proba(x), fresh.predict_proba(x), **CLOSE)


@pytest.mark.parametrize("far", [1e6, 1e9])
def test_rows_far_from_zero_keep_their_digits(iris, covariance, far):
    """The origin of each scatter moves with the data: only what a mean loses by being a double is lost."""
    x, y = np.round(iris[0] * 8), iris[1]  # whole numbers: exact when moved
    expected = db.GaussianDiscriminant(covariance).fit(x, y).predict_proba(x)
    model = db.GaussianDiscriminant(covariance).fit(x[:75] + far, y[:75]).partial_fit(x[75:] + far, y[75:])
    np.testing.assert_allclose(model.predict_proba(x + far), expected, rtol=1e-14 * far, atol=1e-9)


def test_batch_boundaries_change_no_bit_of_a_prediction(monkeypatch, iris, covariance):
    x, y = iris[0].copy(), iris[1]
    x[::7, 1] = np.nan
    x[::11, 2] = np.nan
    model = db.GaussianDiscriminant(covariance).fit(x, y)
    expected = model.predict_proba(x)
    monkeypatch.setattr(deciban.data.frames, "CELLS_PER_BATCH", 4 * 13)
    np.testing.assert_array_equal(model.predict_proba(x), expected)
    in_batches = db.GaussianDiscriminant(covariance).fit(x, y)
    np.testing.assert_allclose(in_batches.predict_proba(x), expected, **CLOSE)


def test_incomplete_rows_are_left_out_and_scored_by_the_marginal(iris):
    x, y = iris[0].copy(), iris[1]
    x[::10, 0] = np.nan
    complete = ~np.isnan(x).any(axis=1)
    for covariance in ("shared", "per-class"):
        model = db.GaussianDiscriminant(covariance, class_prior="uniform").fit(x, y)
        fresh = db.GaussianDiscriminant(covariance, class_prior="uniform").fit(x[complete], y[complete])
        np.testing.assert_allclose(model.predict_proba(x), fresh.predict_proba(x), **CLOSE)
        assert model.class_count_.sum() == 150
        note = next(t.note for t in model.summary().tables if t.note)
        assert "missing value" in note
        assert "15" in note
        # a covariance without a row and a column is that of the columns that stay
        without = db.GaussianDiscriminant(covariance, class_prior="uniform").fit(x[complete, 1:], y[complete])
        np.testing.assert_allclose(model.predict_proba(x)[::10], without.predict_proba(x[::10, 1:]), **CLOSE)


def test_a_row_without_any_cell_gets_the_class_prior(iris, covariance):
    model = db.GaussianDiscriminant(covariance, class_prior=[0.2, 0.3, 0.5]).fit(*iris)
    np.testing.assert_allclose(model.predict_proba(np.full((2, 4), np.nan)), [[0.2, 0.3, 0.5]] * 2, rtol=1e-12)


def test_class_prior_changed_after_the_fit_acts_without_data(iris, covariance):
    x, y = iris
    model = db.GaussianDiscriminant(covariance).fit(x, y)
    fresh = db.GaussianDiscriminant(covariance, class_prior=[0.7, 0.2, 0.1]).fit(x, y)
    model.set_params(class_prior=[0.7, 0.2, 0.1])
    np.testing.assert_array_equal(model.predict_proba(x), fresh.predict_proba(x))


def test_a_column_of_labels_is_the_same_as_an_array(iris, covariance):
    x, y = iris
    table = pd.DataFrame(x, columns=list("abcd")).assign(kind=y)
    model = db.GaussianDiscriminant(covariance).fit(table, "kind")
    np.testing.assert_array_equal(
        model.predict_proba(table), db.GaussianDiscriminant(covariance).fit(x, y).predict_proba(x)
    )
