"""GaussianDiscriminant, each row left out: equal to refits without the row, and to MASS with CV=TRUE."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris

import deciban as db
from deciban.data import frame_of
from deciban.data.batch import Batch
from deciban.generative.held_out import leave_one_out

REFERENCE = Path(__file__).parent.parent / "references" / "leave_one_out.json"
KINDS = [
    {"covariance": kind, "shrinkage": shrinkage, "ddof": ddof}
    for kind, other in (("shared", (0, "unbiased", 0)), ("per-class", ("unbiased", 0, "unbiased")))
    for shrinkage, ddof in zip((None, 0.2, "oas"), other, strict=True)
] + [
    {"covariance": "diagonal", "ddof": "unbiased"},
    {"covariance": "shared", "prior": db.priors.InverseWishart(5.0, 0.7)},
    {"covariance": "per-class", "prior": db.priors.InverseWishart(5.0, 0.7)},
]
GIVEN = {"a": 0.2, "b": 0.3, "c": 0.4, "z": 0.1}


def left_out(model, x, y, weights=None):
    """(n, K) p(c|x_i), row i left out; the rows weigh something."""
    classes, codes = np.unique(y, return_inverse=True)
    batch = Batch(frame_of(x), codes.astype(np.int32), tuple(classes.tolist()), weights, 0)
    return leave_one_out(model.estimate_, batch).proba


def refits(options, x, y, weights):
    """(n, K) the same from n models; a class that lost its only row has probability 0, given ones are shared out."""
    classes = np.unique(y)
    out = np.zeros((len(y), len(classes)))
    for i in range(len(y)):
        rest = np.delete(np.arange(len(y)), i)
        there = np.isin(classes, y[rest])
        prior = options["class_prior"]
        if isinstance(prior, dict):
            total = sum(prior[c] for c in classes[there])
            prior = {c: prior[c] / total for c in classes[there]}
        model = db.GaussianDiscriminant(**{**options, "class_prior": prior})
        model.fit(x[rest], y[rest], None if weights is None else weights[rest])
        out[i, there] = model.predict_proba(x[[i]])[0]
    return out


@st.composite
def tables(draw):
    """Seven rows in each of two or three classes, maybe one row in a class of its own, two cells missing."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    d, classes = draw(st.integers(1, 3)), draw(st.integers(2, 3))
    y = rng.permutation(np.array(list("abc"[:classes] * 7 + "z" * draw(st.booleans()))))
    x = rng.normal(size=(len(y), d)) @ (np.eye(d) + 0.3 * rng.normal(size=(d, d)))
    x += rng.normal(size=(4, d))[np.searchsorted(["a", "b", "c", "z"], y)]
    if draw(st.booleans()):
        x[rng.integers(0, len(y), 2), rng.integers(0, d, 2)] = np.nan
    return x, y, rng.choice([0.5, 1.0, 2.0], len(y)) if draw(st.booleans()) else None


@pytest.mark.filterwarnings("ignore:singular covariance")
@pytest.mark.parametrize("options", KINDS, ids=str)
@settings(max_examples=4)
@given(table=tables(), prior=st.sampled_from(["empirical", "laplace", "uniform", "given"]))
def test_leaving_a_row_out_is_a_refit_without_it(options, table, prior):
    x, y, weights = table
    shares = {c: GIVEN[c] / sum(GIVEN[k] for k in np.unique(y)) for c in np.unique(y)}
    options = {**options, "class_prior": shares if prior == "given" else prior}
    model = db.GaussianDiscriminant(**options).fit(x, y, weights)
    left_out_proba, expected = left_out(model, x, y, weights), refits(options, x, y, weights)
    np.testing.assert_allclose(left_out_proba, expected, rtol=1e-9, atol=1e-10)
    lone = np.flatnonzero(y == "z")
    assert (left_out_proba[lone, -1] == 0).all()


@pytest.mark.parametrize(("covariance", "function"), [("shared", "lda"), ("per-class", "qda")])
@pytest.mark.parametrize(("ddof", "method"), [("unbiased", "moment"), (0, "mle")])
def test_iris_has_the_posteriors_of_mass(covariance, function, ddof, method):
    """MASS leaves the row out of the means and of the covariance, and divides by what a refit would: n − 1 − K for lda,
    n_c − 2 for qda ("moment"), n − 1 and n_c − 1 ("mle"). But the class prior stays that of all rows, so it is given
    here; ours would count it again. (qda takes no 1 − aδᵀM⁻¹δ below 1e-10, which no flower comes near.)
    """
    expected = json.loads(REFERENCE.read_text())["iris"]
    data = load_iris()
    y = data.target_names[data.target].astype(str)
    model = db.GaussianDiscriminant(covariance, ddof=ddof, class_prior=[1 / 3] * 3).fit(data.data, y)
    assert model.classes_.tolist() == expected["classes"]
    wanted, left_out_proba = np.array(expected[function][method]), left_out(model, data.data, y)
    np.testing.assert_allclose(left_out_proba, wanted, rtol=0, atol=1e-8)
    shown = wanted > 1e-200  # what R did not lose to underflow
    np.testing.assert_allclose(np.log(left_out_proba[shown]), np.log(wanted[shown]), rtol=1e-8, atol=1e-8)
    assert np.abs(left_out_proba - model.predict_proba(data.data)).max() > 1e-3  # to leave a row out makes a difference
