"""Folds: rows are assigned by what they hold, and equal rows in turn."""

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from deciban.evidence.folds import FOLDS, assign_folds
from tests.evidence.reference import fold_of, keys_of, mixed


def test_folds_of_different_rows_are_a_function_of_what_they_hold():
    X, _ = mixed(300)
    fold = fold_of(keys_of(X))
    order = np.random.default_rng(0).permutation(300)
    np.testing.assert_array_equal(fold_of(keys_of(X.iloc[order])), fold[order])
    np.testing.assert_array_equal(fold_of(keys_of(X[100:200])), fold[100:200])


def test_folds_are_about_as_large():
    """Of 3,000 different rows 600 each, give or take four standard deviations."""
    sizes = np.bincount(fold_of(keys_of(pd.DataFrame({"x": np.arange(3000.0)}))))
    assert len(sizes) == FOLDS
    assert np.abs(sizes - 600).max() < 4 * np.sqrt(3000 * 0.2 * 0.8)


ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(1, 7)), min_size=1, max_size=12)


def in_folds(assigned, keys, labels):
    """The weight of every kind of row in every fold."""
    weights = np.ones(len(assigned.rows)) if assigned.weights is None else assigned.weights
    actual = np.zeros((4, 2, FOLDS))
    np.add.at(actual, (keys[assigned.rows] >> np.uint64(20), labels[assigned.rows], assigned.folds), weights)
    return actual


@settings(max_examples=40)
@given(rows=ROWS, seed=st.integers(0, 99))
def test_a_weighted_row_is_assigned_as_the_repeated_row_in_any_order(rows, seed):
    kinds, labels, times = (np.array(of) for of in zip(*rows, strict=True))
    keys = kinds.astype(np.uint64) << np.uint64(20)
    order = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(rows)), times))
    weighted = in_folds(assign_folds(keys, labels, times.astype(float)), keys, labels)
    repeated = in_folds(assign_folds(keys[order], labels[order], None), keys[order], labels[order])
    np.testing.assert_allclose(weighted, repeated, rtol=0, atol=1e-12)
    assert weighted.sum() == times.sum()
    assert np.ptp(weighted, axis=2).max() <= 1  # all folds have as many of a row, or one more


@settings(max_examples=50)
@given(weights=st.lists(st.floats(0.01, 9.0), min_size=1, max_size=8))
def test_the_parts_of_a_row_add_up_to_its_weight(weights):
    weights = np.array(weights)
    assigned = assign_folds(np.zeros(len(weights), np.uint64), np.zeros(len(weights), np.int32), weights)
    np.testing.assert_allclose(np.bincount(assigned.rows, assigned.weights), weights, rtol=1e-9)
    in_fold = np.bincount(assigned.folds, assigned.weights, FOLDS)
    assert np.ptp(in_fold) <= 1 + 1e-9
