"""ColumnEvidence: mean decibans for the true class against the mean of the others."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from deciban.contributions import DECIBANS, ColumnEvidence


def drawn(seed, n=6, d=3, classes=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d, classes)), rng.integers(0, classes, n), rng.exponential(size=n)


@given(st.integers(0, 2**32 - 1), st.integers(2, 4))
def test_means_are_those_of_the_formula(seed, classes):
    shares, labels, weights = drawn(seed, classes=classes)
    evidence = ColumnEvidence.of(shares, labels, weights)
    for j in range(3):
        decibans = [
            (row[j, c] - np.mean([row[j, k] for k in range(classes) if k != c])) * DECIBANS
            for row, c in zip(shares, labels, strict=True)
        ]
        np.testing.assert_allclose(evidence.mean[j], np.average(decibans, weights=weights), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(evidence.mean_absolute[j], np.average(np.abs(decibans), weights=weights), rtol=1e-9)


@given(st.integers(0, 2**32 - 1))
def test_parts_add_up(seed):
    shares, labels, weights = drawn(seed)
    whole = ColumnEvidence.of(shares, labels, weights)
    parts = [ColumnEvidence.of(shares[at], labels[at], weights[at]) for at in (slice(0, 2), slice(2, 6))]
    both = parts[0] + parts[1]
    np.testing.assert_allclose([both.mean, both.mean_absolute], [whole.mean, whole.mean_absolute], rtol=1e-9)


def test_what_is_impossible_is_infinite_and_never_nan():
    shares = np.array([[[0.0, -np.inf]], [[-np.inf, 0.0]], [[-np.inf, -np.inf]]])
    evidence = ColumnEvidence.of(shares, np.array([0, 0, 1]), None)
    assert evidence.mean_absolute.tolist() == [np.inf]
    assert not np.isnan(evidence.mean).any()
    assert not np.isnan((evidence + evidence).mean).any()
