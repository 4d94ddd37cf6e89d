"""Unknown columns: weights change as fits without the column would have them; the laws of these changes."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deciban.evidence.candidates import candidate_paths, mean_weights
from deciban.evidence.evidence_by_block import evidence_by_block
from deciban.evidence.evidence_rows import EvidenceRows
from deciban.evidence.unknown_columns import LEAST
from deciban.evidence.weight_solver import log_losses
from deciban.evidence.weighted_evidence import changed_bias, changed_weights
from deciban.evidence.weights import UnknownColumns, Weights
from tests.evidence.reference import collected, fit_weights, learned, mixed, sampled

# Laws ----------------------------------------------------------------------------------------------------------------

sizes = st.tuples(st.integers(1, 6), st.integers(1, 8), st.integers(2, 4))  # columns, pieces, classes
seeds = st.integers(0, 2**32 - 1)


def drawn(sizes, seed):
    """Weights, their changes, the pieces of one column alone, and which columns are unknown in 20 rows."""
    (C, P, K), rng = sizes, np.random.default_rng(seed)
    owner = rng.integers(-1, C, P)  # −1: a piece of several columns
    alone = owner == np.arange(C)[:, np.newaxis]
    unknown = rng.random((20, C)) < 0.4
    unknown[0], unknown[1] = False, True
    return rng.exponential(size=(P, K)), rng.normal(size=(C, P, K)), alone, unknown


@given(sizes, seeds)
def test_changes_of_unknown_features_add_up_and_weights_stay_nonnegative(sizes, seed):
    weights, changes, alone, unknown = drawn(sizes, seed)
    actual = changed_weights(weights, changes, alone, unknown)
    for i, mask in enumerate(unknown):
        expected = np.maximum(weights + sum(changes[c] for c in np.flatnonzero(mask)), 0.0)
        expected[[any(alone[c, p] for c in np.flatnonzero(mask)) for p in range(len(weights))]] = 0.0
        np.testing.assert_allclose(actual[i], expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(actual[0], weights)  # where no column is unknown
    assert (actual >= 0).all()
    assert not actual[1, alone.any(axis=0)].any()


@given(sizes, seeds)
def test_the_bias_is_zero_where_all_columns_are_unknown(sizes, seed):
    (C, P, K), rng = sizes, np.random.default_rng(seed)
    classes = tuple(range(K))
    unknown = UnknownColumns(
        tuple(f"x{c}" for c in range(C)),
        (False,) * C,
        np.zeros((C, P, K)),
        rng.normal(size=(C, K)),
        np.zeros((0, C, P, K)),
        np.zeros((0, C, K)),
    )
    weights = replace(Weights.none(classes), bias=rng.normal(size=K), unknown=unknown)
    mask = drawn(sizes, seed)[3]
    actual = changed_bias(weights, classes, mask)
    np.testing.assert_array_equal(actual[0], weights.bias)  # where no column is unknown
    assert not actual[1].any()
    for i, row in enumerate(mask[2:], 2):
        whole = weights.bias + unknown.bias[row].sum(axis=0)
        left = (C - row.sum()) / max(C - 1, 1) if row.any() else 1.0  # as it was where one of several is unknown
        np.testing.assert_allclose(actual[i], left * whole, rtol=1e-12, atol=1e-13)
    reordered = changed_bias(weights, classes[::-1], mask)
    np.testing.assert_array_equal(reordered, actual[:, ::-1])


def test_no_columns_change_nothing():
    weights = replace(Weights.none(("a", "b")), bias=np.array([0.5, -0.5]))
    nothing = np.zeros((4, 0), np.bool_)
    np.testing.assert_array_equal(changed_bias(weights, ("a", "b"), nothing), np.tile(weights.bias, (4, 1)))
    given = np.ones((3, 2))
    actual = changed_weights(given, np.zeros((0, 3, 2)), np.zeros((0, 3), np.bool_), nothing)
    np.testing.assert_array_equal(actual, np.tile(given, (4, 1, 1)))


def test_folds_and_pieces_can_be_chosen():
    rng = np.random.default_rng(0)
    parts = (
        rng.normal(size=(2, 3, 2)),
        rng.normal(size=(2, 2)),
        rng.normal(size=(5, 2, 3, 2)),
        rng.normal(size=(5, 2, 2)),
    )
    given = UnknownColumns(("x", "y"), (True, False), *parts)
    np.testing.assert_array_equal(given.of_fold(3).values, parts[2][3])
    np.testing.assert_array_equal(given.of_fold(3).bias, parts[3][3])
    assert given.of_fold(5) is given  # there is none: all rows have changed them
    some = given.of_pieces([2, 0])
    np.testing.assert_array_equal(some.values, parts[0][:, [2, 0]])
    np.testing.assert_array_equal(some.fold_values, parts[2][:, :, [2, 0]])
    np.testing.assert_array_equal(some.bias, given.bias)


# Fitted changes ------------------------------------------------------------------------------------------------------


def fitted(evidence, pieces, selected, shares):
    paths = candidate_paths(evidence, pieces, selected, wide=False, tol=1e-12, names=shares)
    actual = {name: weights for path in paths for name, weights in path if name in shares}
    return mean_weights(list(actual.values()), [shares[name] for name in actual])


def loss_of(weights, evidence):
    return log_losses(weights.scores(evidence), evidence.labels).sum()


@pytest.mark.parametrize("classes", [2, 3])
def test_weights_where_a_column_is_unknown_are_fitted_with_the_column_hidden(classes):
    """By the candidates and their shares."""
    model, sample = learned(classes=classes)
    sources = evidence_by_block(model)
    weights, rows = fit_weights(model, sample), EvidenceRows.of_training(model, sample, 0)
    whole, pieces, _ = rows.evidence(sources)
    names, selected = model.schema.names, rows.selected(sources)
    base = fitted(whole, pieces, selected, weights.shares)
    changes, bias = weights.changes_of(pieces, names, model.classes), weights.bias_changes_of(model.classes)
    assert {"height", "code"} <= {*weights.unknown.names}
    for c, name in enumerate(weights.unknown.names):
        column = names.index(name)
        hidden = rows.evidence_hiding(whole, sources, frozenset({column}))
        if not changes[c].any():  # a column that the model would hardly miss
            lost = loss_of(base, hidden) - loss_of(base, whole)
            assert lost < LEAST + 0.05
            continue
        without = fitted(hidden, pieces, selected, weights.shares)
        np.testing.assert_allclose(changes[c], without.values - base.values, atol=2e-3)
        np.testing.assert_allclose(bias[c], without.bias - base.bias, atol=2e-3)
        alone = [piece.columns == (column,) for piece in pieces]
        np.testing.assert_allclose(base.values[alone] + changes[c, alone], 0.0, atol=2e-3)


@pytest.mark.parametrize("random", [True, False])
def test_a_missing_value_is_informative_where_it_depends_on_the_class(random):
    X, y = mixed(240)
    rng = np.random.default_rng(0)
    present = rng.random(240) < 0.7 if random else (y != "egg") | (rng.random(240) < 0.2)
    sample = sampled(X.assign(height=X["height"].fillna(0.0).where(present), width=X["width"]), y)
    model = collected(sample)
    weights = fit_weights(model, sample)
    actual = dict(zip(weights.unknown.names, weights.unknown.informative, strict=True))
    assert actual["height"] != random
    assert not actual["code"]  # where no value was missing


def test_folds_have_their_own_changes_if_training_rows_have_missing_values():
    model, sample = learned()
    weights = fit_weights(model, sample)
    names = weights.unknown.names
    assert not weights.unknown.informative[names.index("height")]
    assert weights.unknown.fold_values.shape == (len(weights.fold_bias), *weights.unknown.values.shape)
    each = [weights.of_fold(f).unknown.values[names.index("height")] for f in range(len(weights.fold_bias))]
    assert all((fold != weights.unknown.values[names.index("height")]).any() for fold in each)
    X, y = mixed()
    whole = sampled(X[["width", "code", "left"]], y)
    single = collected(whole)
    assert len(fit_weights(single, whole).unknown.fold_values) == 0


def test_columns_without_weights_change_nothing():
    """Both values are as frequent in both classes."""
    sample = sampled(pd.DataFrame({"x": ["a", "b"] * 60}), [0, 0, 1, 1] * 30)
    model = collected(sample)
    unknown = fit_weights(model, sample).unknown
    assert not unknown.values.any()
    assert not unknown.bias.any()
    assert not any(unknown.informative)
