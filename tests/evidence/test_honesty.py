"""Honest with few rows: noise is as good as the prior, leave-one-out as held-out rows, and n rows bound the odds."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import deciban as db
from tests.evidence.reference import mixed

SEEDS = 3


def noise():
    actual = []
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(1100, 30)), (rng.random(1100) < 0.4).astype(int)
        model = db.EvidenceClassifier(trees=8).fit(X[:100], y[:100])
        share = y[:100].mean()
        prior = -np.log(np.where(y[100:], share, 1 - share)).mean()
        left_out = model.leave_one_out(X[:100], y[:100]).log_loss
        actual.append((db.evaluate(model, X[100:], y[100:]).log_loss, left_out, prior))
    return np.array(actual).T


def test_noise_is_as_good_as_the_prior_and_leave_one_out_as_held_out_rows():
    """Log-loss of 1,000 rows held out, of 100 training rows left out, and of the class shares; 30 columns."""
    held_out, left_out, prior = noise()
    assert held_out.mean() < 1.02 * prior.mean()
    assert (held_out < 1.06 * prior).all()
    assert abs(left_out.mean() - held_out.mean()) < 0.03


RATES = {"a": 0.85, "b": 0.4, "c": 0.1}


@pytest.mark.parametrize(("levels", "seed"), [(2, 0), (3, 1)])
def test_a_table_of_few_different_rows_is_fitted(levels, seed):
    """All rows with one value are equal: they must not all be in one fold. Counted or weighted, it is the same."""
    rng = np.random.default_rng(seed)
    k = rng.choice(list(RATES)[:levels], 400).astype(object)
    y = (rng.random(400) < np.vectorize(RATES.get)(k)).astype(int)
    X, counts = pd.DataFrame({"k": k}), pd.DataFrame({"k": k, "y": y}).value_counts().reset_index()
    queries = pd.DataFrame({"k": list(RATES)[:levels]})
    model = db.EvidenceClassifier(trees=4, random_state=seed).fit(X, y)
    p = model.predict_proba(queries)[:, 1]
    np.testing.assert_allclose(p, [y[k == level].mean() for level in queries["k"]], rtol=0, atol=0.04)
    predictions, expected = model.leave_one_out(X, y), db.NaiveBayes().fit(X, y).leave_one_out(X, y)
    assert predictions.log_loss == pytest.approx(expected.log_loss, abs=0.01)
    weights = counts["count"].to_numpy(float)
    weighted = db.EvidenceClassifier(trees=4, random_state=seed).fit(counts[["k"]], counts["y"], sample_weight=weights)
    np.testing.assert_allclose(weighted.predict_proba(queries)[:, 1], p, rtol=1e-3)
    again = weighted.leave_one_out(counts[["k"]], counts["y"], sample_weight=weights)
    assert again.log_loss == pytest.approx(predictions.log_loss, rel=1e-3)


@pytest.mark.parametrize(("classes", "others"), [(2, 0), (3, 1), (2, 5)])
def test_twenty_rows_are_not_overconfident(classes, others):
    """A column that equals the class, alone or beside noise: 20 rows support odds between 9 and 99 to 1."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(20) % classes)
    X = pd.DataFrame({"same": np.array(["u", "v", "w"])[y]})
    X = X.assign(**{f"noise {j}": rng.normal(size=20) for j in range(others)})
    p = db.EvidenceClassifier(trees=8).fit(X, y).predict_proba(X)[np.arange(20), y]
    assert (1 - p < 1 / 10).all()
    assert (1 - p > 1 / 100).all()


@pytest.mark.filterwarnings("ignore::deciban.LeakageWarning")
def test_more_rows_support_more():
    doubt = []
    for n in (20, 200, 2000):
        y = np.arange(n) % 2
        X = pd.DataFrame({"same": np.where(y, "u", "v"), "i": np.arange(float(n))})
        doubt.append(1 - db.EvidenceClassifier(trees=0).fit(X, y).predict_proba(X)[np.arange(n), y].max())
    assert doubt[0] > 5 * doubt[1] > 25 * doubt[2] > 0


# Explanations --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    return {K: db.EvidenceClassifier(trees=3, pairs=1).fit(*mixed(120, classes=K)) for K in (2, 3)}


cells = st.fixed_dictionaries(
    {
        "height": st.floats(-1e3, 1e3) | st.none(),
        "width": st.floats(-5, 9) | st.none(),
        "colour": st.sampled_from(["red", "green", "blue", "mauve", None]),
        "code": st.sampled_from(["u", "v", "w", "x", None]),
        "left": st.sampled_from(["a", "b", None]),
        "right": st.sampled_from(["a", "b", None]),
        "flag": st.sampled_from([True, False, None]),
    }
)
KINDS = {"height": "float64", "width": "float64", "flag": "boolean"}


@settings(max_examples=10)
@given(st.lists(cells, min_size=1, max_size=5), st.sampled_from([2, 3]))
def test_decibans_sum_to_the_log_odds_of_the_probabilities(fitted, rows, K):
    """The limit of n rows is a line of its own: no sum is near, all are exact."""
    model, X = fitted[K], pd.DataFrame(rows).astype(KINDS)
    p, explained = model.predict_proba(X), model.explain(X)
    for a in range(K):
        for b in range(K):
            odds = 10 * np.log10(p[:, a] / p[:, b])
            total = explained.decibans(model.classes_[a], model.classes_[b]).sum(axis=1)
            np.testing.assert_allclose(total, odds, rtol=1e-8, atol=1e-8)


def test_the_limit_is_a_line_that_names_the_rows(fitted):
    X, _ = mixed(5)
    assert [name for name in fitted[3].explain(X).names if name.startswith("limit")] == ["limit of 120 rows"]
