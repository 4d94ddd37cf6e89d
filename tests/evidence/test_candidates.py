"""Candidates: weights from none to naive Bayes, for pieces that are informative beyond chance."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax

from deciban.evidence.block_evidence import EvidencePiece
from deciban.evidence.candidates import (
    LEAST,
    PENALTIES,
    PieceWeights,
    candidate_paths,
    informative,
    mean_weights,
    piece_gains,
    repeated,
    strong_pieces,
)
from deciban.evidence.weight_solver import solve
from tests.evidence.test_weight_solver import assert_optimal, made

columns = pytest.mark.parametrize("C", [1, 3])
KINDS = ("value", "5 bins", "normal", "pair", "present", "forest", "words", "linear")
NAIVE = np.array([True, False, True, False, True, False, True, False])


def pieces_of(P):
    return [EvidencePiece(KINDS[p % len(KINDS)], (p,), naive=bool(NAIVE[p % len(KINDS)])) for p in range(P)]


def all_of(evidence, pieces=None, selected=None, *, wide=False, names=None):
    P = evidence.values.shape[2]
    pieces, selected = pieces or pieces_of(P), np.ones(P, np.bool_) if selected is None else selected
    paths = candidate_paths(evidence, pieces, selected, wide=wide, tol=1e-12, names=names)
    return {name: weights for path in paths for name, weights in path}


def log_likelihood(evidence, p, w):
    """Σ log p(c_i|x_i) with weight w of piece p alone, for every class."""
    z = evidence.offset + w * evidence.values[:, :, p].T
    z = np.column_stack([np.zeros(len(z)), z]) if len(evidence.values) == 1 else z
    omega = np.ones(len(z)) if evidence.weights is None else evidence.weights
    return float(omega @ log_softmax(z, axis=1)[np.arange(len(z)), evidence.labels])


def normalised(evidence):
    """With offsets that are log-probabilities, as those of the prior are."""
    offset = evidence.offset
    return replace(evidence, offset=offset if offset.shape[1] == 1 else log_softmax(offset, axis=1))


# What is among them --------------------------------------------------------------------------------------------------


@columns
def test_nothing_and_naive_bayes_are_among_them(C):
    evidence, K = normalised(made(200, 8, C)), max(2, C)
    actual = all_of(evidence)
    assert [*actual][:3] == ["prior", "naive Bayes", "tempered naive Bayes"]
    assert [*actual][3:] == [f"penalty {penalty:g}" for penalty in PENALTIES]
    assert not actual["prior"].values.any()
    np.testing.assert_array_equal(actual["naive Bayes"].values, np.tile(NAIVE[:, np.newaxis], K))
    np.testing.assert_allclose(actual["tempered naive Bayes"].values, actual["naive Bayes"].values / 2.0, rtol=1e-15)
    for name in ("prior", "naive Bayes", "tempered naive Bayes"):
        assert not actual[name].bias.any()
    np.testing.assert_array_equal(actual["prior"].scores(evidence), evidence.offset.T)


@columns
def test_penalised_weights_of_informative_pieces_are_at_the_minimum(C):
    evidence = normalised(made(300, 12, C))
    gains = piece_gains(evidence)
    chosen = np.flatnonzero(gains > LEAST)
    assert 0 < len(chosen) < 12
    pieces = pieces_of(12)
    groups = np.unique([pieces[p].kind for p in chosen], return_inverse=True)[1]
    some = replace(evidence, values=np.ascontiguousarray(evidence.values[:, :, chosen]), groups=groups, tried=12)
    for penalty in PENALTIES:
        actual = all_of(evidence)[f"penalty {penalty:g}"]
        best = solve(some, penalty, tol=1e-12)
        assert_optimal(some, penalty, best)
        np.testing.assert_allclose(
            actual.values[chosen], np.broadcast_to(best.weights, (len(chosen), max(2, C))), atol=1e-6
        )
        assert not np.delete(actual.values, chosen, axis=0).any()
        bias = actual.bias[1:] - actual.bias[0] if C == 1 else actual.bias
        np.testing.assert_allclose(bias, best.bias, atol=1e-6)


@columns
def test_only_named_candidates_and_selected_pieces_are_fitted(C):
    evidence, selected = normalised(made(300, 12, C)), np.arange(12) % 2 == 0
    actual = all_of(evidence, selected=selected, names=["penalty 3", "naive Bayes"])
    assert [name for name in actual if name.startswith("penalty")] == ["penalty 3"]
    assert actual["penalty 3"].values.any()
    assert not actual["penalty 3"].values[~selected].any()
    alone = all_of(evidence, selected=selected)["penalty 3"]  # started where others ended
    np.testing.assert_allclose(actual["penalty 3"].values, alone.values, atol=1e-6)


@columns
def test_of_many_pieces_the_strong_alone_are_candidates_too(C):
    """Among noise, one that is always right."""
    rng = np.random.default_rng(0)
    evidence = normalised(made(150, 120, C))
    noise = rng.normal(size=evidence.values.shape)
    noise -= noise.mean(axis=0) * (C > 1)
    right = np.where(np.arange(C)[:, np.newaxis] == (0 if C == 1 else evidence.labels), 1.0, -1.0 / max(C - 1, 1))
    noise[:, :, 7] = 2.0 * evidence.labels - 1.0 if C == 1 else right
    actual = all_of(replace(evidence, values=noise), wide=True)
    assert [*actual][-4:] == [f"penalty {penalty:g}, strong pieces" for penalty in PENALTIES]
    strong = actual["penalty 3, strong pieces"].values.any(axis=1)
    assert strong[7]
    assert strong.sum() <= 3
    assert actual["penalty 3"].values.any(axis=1).sum() > 3


@columns
def test_repeated_and_uninformative_pieces_are_not_counted(C):
    evidence = normalised(made(100, 8, C))
    values = evidence.values.copy()
    values[:, :, 2] = values[:, :, 0]  # "normal" as "value"
    values[:, :, 6] = 1e-15
    values[:, :, 7] = values[:, :, 5]
    given = replace(evidence, values=values)
    assert np.flatnonzero(repeated(given, np.ones(8, np.bool_))).tolist() == [2, 7]
    assert np.flatnonzero(repeated(given, np.arange(8) != 0)).tolist() == [7]
    assert np.flatnonzero(~informative(given)).tolist() == [6]
    actual = all_of(given)
    assert np.flatnonzero(actual["naive Bayes"].values.any(axis=1)).tolist() == [0, 4]
    for name, weights in actual.items():
        assert not weights.values[[2, 6]].any(), name
        assert not (weights.values[7].any() and name.startswith("penalty")), name


# Gains ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@columns
def test_gains_are_those_of_the_second_order(C, weighted):
    """slope²/(2·curvature) of the log-likelihood at w = 0, by differences; 0 where it falls."""
    evidence = normalised(made(80, 10, C, adverse=0.3))
    if weighted:
        evidence = replace(evidence, weights=np.random.default_rng(1).exponential(1.0, 80))
    actual, h = piece_gains(evidence), 1e-4
    for p in range(10):
        low, middle, high = (log_likelihood(evidence, p, w) for w in (-h, 0.0, h))
        slope, curve = (high - low) / (2 * h), (2 * middle - high - low) / h**2
        assert actual[p] == pytest.approx(slope**2 / (2 * curve) if slope > 0 else 0.0, rel=1e-4)
    assert (actual == 0).any()
    assert (actual > 0).any()


@pytest.mark.parametrize("P", [100, 2000])
def test_few_pieces_of_noise_are_strong(P):
    """What noise gains is half a χ² of one degree, and nothing for half of the pieces: their slope is negative."""
    passed = []
    for seed in range(200):
        slope = np.random.default_rng(seed).normal(size=P)
        passed.append(len(strong_pieces(np.where(slope > 0, slope**2 / 2, 0.0))))
    assert np.mean(passed) < 0.1
    assert np.mean(np.array(passed) > 0) < 0.05


@pytest.mark.parametrize("clear", [1, 5, 50])
def test_clear_pieces_are_strong_and_come_first(clear):
    """Those of 12 nats among 2,000 of noise: chance has no more than about log 2000 = 7.6."""
    rng = np.random.default_rng(0)
    slope = rng.normal(size=2000)
    gains = np.where(slope > 0, slope**2 / 2, 0.0)
    place = rng.permutation(2000)[:clear]
    gains[place] = 12.0 + np.arange(clear)
    actual = strong_pieces(gains)
    assert actual[:clear].tolist() == place[::-1].tolist()
    assert len(actual) <= clear + max(2, clear // 5)


def test_no_piece_of_none_is_strong():
    assert strong_pieces(np.zeros(0)).tolist() == []
    assert strong_pieces(np.zeros(5)).tolist() == []
    assert strong_pieces(np.full(5, 3.1)).tolist() == [0, 1, 2, 3, 4]  # nothing needs to be named


# Means ---------------------------------------------------------------------------------------------------------------

parts = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=4).filter(lambda s: sum(s) > 1e-3)


@given(parts, st.sampled_from([1, 3]), st.integers(0, 2**32 - 1))
def test_scores_of_a_mean_are_the_mean_of_the_scores(shares, C, seed):
    rng, evidence = np.random.default_rng(seed), made(7, 4, C)
    several = [PieceWeights(rng.random((4, max(2, C))), rng.normal(size=max(2, C))) for _ in shares]
    if C == 1:  # both classes have one weight
        several = [replace(weights, values=np.repeat(weights.values[:, :1], 2, axis=1)) for weights in several]
    shares = np.array(shares) / sum(shares)
    mean = mean_weights(several, shares.tolist())
    expected = sum(share * weights.scores(evidence) for share, weights in zip(shares, several, strict=True))
    np.testing.assert_allclose(mean.scores(evidence), expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(mean.values, np.einsum("m,mpk->pk", shares, [w.values for w in several]), atol=1e-12)


@columns
def test_scores_are_sums_of_weighted_evidence(C):
    evidence, K = made(20, 4, C), max(2, C)
    rng = np.random.default_rng(0)
    weights = PieceWeights(rng.random((4, K)), rng.normal(size=K))
    actual = weights.scores(evidence)
    for i in range(20):
        for c in range(C):
            k = 1 if C == 1 else c
            z = evidence.offset[i, c] + sum(weights.values[p, k] * evidence.values[c, i, p] for p in range(4))
            assert actual[c, i] == pytest.approx(z + weights.bias[k] - (weights.bias[0] if C == 1 else 0.0), rel=1e-12)
