"""Cross-fitting: candidates without a fold, and how much of the class prior is mixed in."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import log_softmax, softmax

import deciban as db
from deciban.data import labelled_rows
from deciban.evidence import cross_fit as module
from deciban.evidence.cross_fit import cross_fit, log_probabilities, mixed_with_prior
from deciban.evidence.evidence_by_block import evidence_by_block
from deciban.evidence.evidence_rows import EvidenceRows
from deciban.evidence.folds import FOLDS
from tests.evidence.reference import collected, fold_of, keys_of, learned, mixed, sampled


def crossed(X, y, weights=None):
    """By columns one by one: nothing that labels choose is fixed before."""
    sample = sampled(X, y, weights)
    model = collected(sample)
    return cross_fit(EvidenceRows.of_training(model, sample, 0), evidence_by_block(model)), model


# What a fold has no part in ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
def test_labels_of_a_fold_have_no_part_in_its_candidates(classes, monkeypatch):
    """With shares that rows do not move, weights of a fold are the same whatever its labels; those of others not."""
    monkeypatch.setattr(module, "TEMPER", (1e-300, 1e-300))
    monkeypatch.setattr(module, "CLEAR", (-2.0, -1.0))  # whatever held-out rows gain, it is trusted
    X, y = mixed(150, classes=classes)
    inside = fold_of(keys_of(X)) == 2
    other = y.copy()
    other[inside] = np.random.default_rng(0).permutation(y[inside])
    assert (other != y).any()
    (one, model), (two, _) = crossed(X, y), crossed(X, other)
    for f in range(FOLDS):
        same = np.allclose(one.folds[f].values, two.folds[f].values, rtol=1e-6, atol=1e-7)
        assert same == (f == 2)
    assert one.folds[2].values.any()
    assert len(one.folds) == FOLDS
    assert sum(one.shares.values()) == pytest.approx(1.0, rel=1e-12)
    assert {"prior", "tempered naive Bayes"} <= {*one.shares}
    assert len(model.classes) == classes


def test_the_order_of_rows_does_not_matter():
    X, y = mixed(100)
    order = np.random.default_rng(0).permutation(100)
    (one, _), (two, _) = crossed(X, y), crossed(X.iloc[order], y[order])
    assert one.shares == pytest.approx(two.shares, rel=1e-9)
    assert one.prior_share == pytest.approx(two.prior_share, rel=1e-9)
    for a, b in zip(one.folds, two.folds, strict=True):
        np.testing.assert_allclose(a.values, b.values, rtol=1e-6, atol=1e-8)


def test_a_row_twice_is_a_row_of_weight_two():
    X, y = mixed(100)
    times = np.random.default_rng(0).integers(1, 3, 100)
    again = np.repeat(np.arange(100), times)
    (one, _), (two, _) = crossed(X.iloc[again], y[again]), crossed(X, y, times.astype(float))
    assert one.shares == pytest.approx(two.shares, rel=1e-6)
    assert one.prior_share == pytest.approx(two.prior_share, rel=1e-6)
    for a, b in zip(one.folds, two.folds, strict=True):
        np.testing.assert_allclose(a.values, b.values, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_fold_may_hold_all_rows_of_a_class(classes):
    """The others know nothing of it: its weights are the mean of those of the other classes."""
    X, y = mixed(150, classes=classes)
    fold = fold_of(keys_of(X))
    y = np.where((y == "egg") & (fold != 1), "ham", y)
    assert (y == "egg").any()
    actual, model = crossed(X, y)
    egg = model.classes.index("egg")
    values = actual.folds[1].values
    assert np.isfinite(values).all()
    if classes == 3:
        np.testing.assert_allclose(values[:, egg], np.delete(values, egg, axis=1).mean(axis=1), rtol=1e-12)
        assert values.any()
    else:  # with one class nothing is left to fit
        assert not values.any()


def test_held_out_rows_compare_candidates_by_all_evidence():
    model, _ = learned(150)
    fresh = sampled(*mixed(150, seed=4))
    actual = cross_fit(EvidenceRows.held_out(model, fresh, 0), evidence_by_block(model))
    assert sum(actual.shares.values()) == pytest.approx(1.0)
    assert 0 < actual.prior_share < 0.1
    assert max(actual.shares, key=actual.shares.get) not in ("prior", "naive Bayes")


def test_weaker_penalties_are_not_compared_once_one_is_hopeless(monkeypatch):
    X, y = mixed(100)
    assert sum(name.startswith("penalty") for name in compared(X, y)) > 1
    monkeypatch.setattr(module, "HOPELESS", -1.0)
    assert sum(name.startswith("penalty") for name in compared(X, y)) == 1


def compared(X, y):
    """The names of the candidates, in the order in which they are compared."""
    sample = sampled(X, y)
    model = collected(sample)
    sources, rows = evidence_by_block(model), EvidenceRows.of_training(model, sample, 0)
    held = module.HeldOut.of(rows, sources, 1)
    return [name for name, *_ in module._compare(held, sources, rows.evidence(sources)[1])]


# Shares and trust -----------------------------------------------------------------------------------------------------


def test_noise_prefers_the_prior_and_a_clear_feature_does_not():
    y, believed = np.arange(200) % 2, []
    for seed in range(4):
        noise, _ = crossed(pd.DataFrame(np.random.default_rng(seed).normal(size=(200, 20))), y)
        assert "naive Bayes" not in noise.shares
        believed.append(noise.shares.get("prior", 0.0))
    assert np.mean(believed) > 0.5
    rng = np.random.default_rng(0)
    clear, _ = crossed(pd.DataFrame({"x": y + rng.normal(0, 0.4, 200), "z": rng.normal(size=200)}), y)
    assert "prior" not in clear.shares


@pytest.mark.parametrize("n", [20, 100, 400])
def test_rows_that_are_all_as_expected_leave_half_a_surprise(n):
    """ε = ½/(n + 1), Jeffreys' estimate."""
    y = np.arange(n) % 2
    actual, _ = crossed(pd.DataFrame({"x": np.where(y, "yes", "no"), "i": np.arange(float(n))}), y)
    assert actual.prior_share == pytest.approx(0.5 / (n + 1), rel=0.05)


def test_wrong_labels_are_surprises():
    """8 of 400: as many as 16 rows of the prior would have, less two standard errors, for they may be chance."""
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    X = pd.DataFrame({"x": y + rng.normal(0, 0.05, 400), "i": rng.normal(size=400)})
    wrong = np.where(np.arange(400) < 8, 1 - y, y)
    few, many = crossed(X, y)[0].prior_share, crossed(X, wrong)[0].prior_share
    assert 3 * few < many < 16 / 400


# Probabilities -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [1, 3])
def test_probabilities_are_those_of_softmax_mixed_with_the_prior(C):
    rng = np.random.default_rng(0)
    z = rng.normal(0, 30, (C, 40))
    both = np.vstack([np.zeros(40), z]) if C == 1 else z
    np.testing.assert_allclose(log_probabilities(z), log_softmax(both.T, axis=1), rtol=1e-10, atol=1e-12)
    prior = rng.dirichlet(np.ones(max(2, C)), 40)
    expected = np.log(0.9 * softmax(both.T, axis=1) + 0.1 * prior)
    np.testing.assert_allclose(mixed_with_prior(z, np.log(prior), 0.1), expected, rtol=1e-10, atol=1e-12)


# How far evidence is trusted -----------------------------------------------------------------------------------------


def held_out(rows, gain, seed=0):
    """Rows that were held out, of two equal classes, and log-probabilities that are right by so much, give or take."""
    rng = np.random.default_rng(seed)
    X, y = pd.DataFrame({"x": np.arange(float(rows))}), np.arange(rows) % 2
    model = db.EvidenceClassifier(trees=0, pairs=0).fit(X, y)
    left = EvidenceRows.of_training(model.generative_, labelled_rows(X, y, None, model.columns_), 0)
    held = module.HeldOut.of(left, model._blocks, 1)
    log_odds = np.where(held.rows.labels == 1, 1.0, -1.0) * (gain + rng.normal(size=rows))
    return held, module.log_probabilities(log_odds[np.newaxis])


@pytest.mark.parametrize(("rows", "gain", "trust"), [(400, 2.0, 1.0), (400, -0.5, 0.0), (20, -0.5, 1.0)])
def test_evidence_is_trusted_if_its_gain_is_clear_or_rows_are_too_few_to_ask(rows, gain, trust):
    held, log_p = held_out(rows, gain)
    assert module._trust(held, log_p, np.ones(rows, bool)) == trust


def test_trust_is_that_of_the_gain_in_standard_errors():
    held, log_p = held_out(200, 0.33)
    y, p, prior = held.rows.labels, np.exp(log_p), np.exp(held.log_prior)
    gains = np.log(p[np.arange(200), y]) - np.log(prior[np.arange(200), y])
    brier = (prior[:, 1] - y) ** 2 - (p[:, 1] - y) ** 2
    t = max(stats.ttest_1samp(g, 0.0, alternative="greater").statistic * np.sqrt(200 / 199) for g in (gains, brier))
    expected = np.clip((t**2 - 3.25) / 2.75, 0.0, 1.0)
    assert 0.0 < expected < 1.0
    assert module._trust(held, log_p, np.ones(200, bool)) == pytest.approx(expected, rel=1e-9)


def test_evidence_that_is_not_trusted_leaves_the_prior():
    held, _ = held_out(600, 0.0)
    names = ["prior", "tempered naive Bayes", "penalty 3"]
    shares = np.array([0.1, 0.2, 0.7])
    np.testing.assert_array_equal(module._trusted(held, shares, names, 1.0), shares)
    np.testing.assert_allclose(module._trusted(held, shares, names, 0.0), [0.975, 0.025, 0.0], rtol=1e-12)  # 15/600
