"""Weights: how much each piece counts, and what becomes of that on merge."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax

from deciban.evidence.block_evidence import EvidencePiece
from deciban.evidence.candidates import candidate_paths
from deciban.evidence.evidence_by_block import evidence_by_block
from deciban.evidence.evidence_rows import EvidenceRows
from deciban.evidence.folds import FOLDS
from deciban.evidence.weights import UnknownColumns, Weights
from tests.evidence.reference import collected, fit_weights, gathered, learned, mixed, sampled

# What pieces and classes have ----------------------------------------------------------------------------------------

GIVEN = Weights(
    ("a", "b"),
    ("value", "pair", "pair"),
    (("x",), ("x", "y"), ("z", "y")),
    np.array([[1.0, 3.0], [0.5, 0.0], [0.25, 0.75]]),
    np.array([0.5, -0.5]),
    np.array([[[1.0, 3.0], [0.5, 0.0], [0.25, 0.75]], [[2.0, 1.0], [0.0, 0.0], [0.0, 0.5]]]),
    np.array([[0.5, -0.5], [0.25, -0.25]]),
    0.1,
    {"prior": 0.25, "penalty 3": 0.75},
    10,
    UnknownColumns.none(3, 2),
)


def test_a_piece_is_known_by_its_kind_and_its_columns_and_a_class_by_its_label():
    names = ("y", "x", "z")
    pieces = [
        EvidencePiece("value", (1,)),
        EvidencePiece("value", (0,)),
        EvidencePiece("pair", (0, 1)),
        EvidencePiece("pair", (0, 2)),
    ]
    actual = GIVEN.of(pieces, names, ("b", "a"))
    assert actual.tolist() == [[3.0, 1.0], [0.0, 0.0], [0.0, 0.5], [0.75, 0.25]]
    assert GIVEN.bias_of(("b", "a")).tolist() == [-0.5, 0.5]


def test_a_class_without_weights_has_the_mean_of_the_others():
    actual = GIVEN.of([EvidencePiece("value", (0,)), EvidencePiece("pair", (0, 1))], ("x", "y"), ("a", "new", "b"))
    assert actual.tolist() == [[1.0, 2.0, 3.0], [0.5, 0.25, 0.0]]
    assert GIVEN.bias_of(("a", "new", "b")).tolist() == [0.5, 0.0, -0.5]


def test_no_weights_count_for_nothing():
    nothing = Weights.none(("a", "b"))
    assert not nothing.of([EvidencePiece("value", (0,))], ("x",), ("a", "b", "c")).any()
    assert not nothing.bias_of(("a", "b", "c")).any()


# Merging -------------------------------------------------------------------------------------------------------------

OTHER = Weights(
    ("b", "c"),
    ("pair", "value"),
    (("y", "x"), ("z",)),
    np.array([[1.0, 2.0], [4.0, 8.0]]),
    np.array([1.0, -1.0]),
    np.array([[[1.0, 2.0], [4.0, 8.0]], [[1.0, 0.0], [2.0, 4.0]]]),
    np.array([[1.0, -1.0], [2.0, -2.0]]),
    0.3,
    {"naive Bayes": 1.0},
    30,
    UnknownColumns.none(2, 2),
)


def as_table(weights):
    """{(kind, columns, class): weight}, without the zeros, whatever the order."""
    actual = {}
    for key, row in zip(weights.keys, weights.values.tolist(), strict=True):
        actual |= {(*key, label): value for label, value in zip(weights.classes, row, strict=True) if value}
    return actual, dict(zip(weights.classes, weights.bias.tolist(), strict=True))


def test_merged_weights_that_are_equal_stay_as_they_are():
    """To the last bit, those of unknown columns too: s·w + (1 − s)·w is not always w."""
    rng = np.random.default_rng(0)
    given = replace(GIVEN, values=rng.random(GIVEN.values.shape), bias=rng.random(GIVEN.bias.shape))
    given = changing(given, ("x", "y"), (True, False), 0)
    some = ({"a": float(rows), "b": float(rows)} for rows in range(1, 50))
    for own_rows, other_rows in (*((rows, {"a": 7.0, "b": 7.0}) for rows in some), ({"a": 1.0}, {"b": 2.0})):
        merged = given.merged(given, own_rows, other_rows)
        assert (merged.unknown.names, merged.unknown.informative) == (("x", "y"), (True, False))
        for actual, expected in ((merged, given), (merged.unknown, given.unknown)):
            for name in ("values", "bias", "fold_values", "fold_bias"):
                assert (getattr(actual, name) == getattr(expected, name)).all(), name


def test_merged_weights_are_means_by_the_rows_of_each_class():
    """b: 1 row here and 3 there. a and c have rows on one side only; a piece that one lacks is 0 there."""
    own_rows, other_rows = {"a": 4.0, "b": 1.0}, {"b": 3.0, "c": 5.0}
    merged = GIVEN.merged(OTHER, own_rows, other_rows)
    x, xy, zy, z = (frozenset(names) for names in ({"x"}, {"x", "y"}, {"z", "y"}, {"z"}))
    expected = {
        ("value", x, "a"): 1.0,
        ("value", x, "b"): 3.0 / 4,
        ("pair", xy, "a"): 0.5,
        ("pair", xy, "b"): 1.0 * 3 / 4,
        ("pair", xy, "c"): 2.0,
        ("pair", zy, "a"): 0.25,
        ("pair", zy, "b"): 0.75 / 4,
        ("value", z, "b"): 4.0 * 3 / 4,
        ("value", z, "c"): 8.0,
    }
    values, bias = as_table(merged)
    assert values == expected
    assert bias == {"a": 0.5, "b": -0.5 / 4 + 1.0 * 3 / 4, "c": -1.0}
    assert merged.rows == 40
    reordered = OTHER.merged(GIVEN, other_rows, own_rows)
    assert as_table(reordered) == (values, bias)


def test_weights_of_folds_the_limit_and_the_candidates_are_merged_too():
    """By the rows of each class; the limit and the candidates by all rows: 6 here and 2 there."""
    own_rows, other_rows = {"a": 5.0, "b": 1.0}, {"b": 1.0, "c": 1.0}
    merged, reordered = GIVEN.merged(OTHER, own_rows, other_rows), OTHER.merged(GIVEN, other_rows, own_rows)
    for fold in range(2):
        expected = GIVEN.of_fold(fold).merged(OTHER.of_fold(fold), own_rows, other_rows)
        assert as_table(merged.of_fold(fold)) == as_table(reordered.of_fold(fold)) == as_table(expected)
    assert as_table(merged.of_fold(1))[0]["value", frozenset({"z"}), "b"] == 2.0 / 2
    assert as_table(merged.of_fold(0)) != as_table(merged.of_fold(1))
    assert merged.prior_share == reordered.prior_share == pytest.approx(0.75 * 0.1 + 0.25 * 0.3, rel=1e-12)
    assert merged.shares == {"prior": 0.75 * 0.25, "penalty 3": 0.75 * 0.75, "naive Bayes": 0.25}
    assert reordered.shares == merged.shares


def test_a_model_without_folds_counts_by_its_weights_in_every_fold():
    whole = replace(OTHER, fold_values=OTHER.fold_values[:0], fold_bias=OTHER.fold_bias[:0])
    assert whole.of_fold(1) is whole
    merged = GIVEN.merged(whole, {"a": 1.0, "b": 1.0}, {"b": 3.0})
    assert merged.fold_values.shape == (2, 4, 3)
    assert as_table(merged.of_fold(1))[0]["value", frozenset({"z"}), "b"] == 4.0 * 3 / 4


def test_dropped_pieces_have_no_weights_in_folds():
    left = GIVEN.drop_pieces({("pair", frozenset({"x", "y"}))})
    assert left.kinds == ("value", "pair")
    assert left.columns == (("x",), ("z", "y"))
    assert left.values.tolist() == [[1.0, 3.0], [0.25, 0.75]]
    assert left.of_fold(1).values.tolist() == [[2.0, 1.0], [0.0, 0.5]]
    assert left.of_fold(1).bias.tolist() == [0.25, -0.25]


def changing(weights, names, informative, seed, folds=2):
    """With changes of unknown columns."""
    rng, (P, K), C = np.random.default_rng(seed), weights.values.shape, len(names)
    values = rng.normal(size=(folds + 1, C, P, K))
    bias = rng.normal(size=(folds + 1, C, K))
    return replace(weights, unknown=UnknownColumns(names, informative, values[0], bias[0], values[1:], bias[1:]))


def changes_of(weights):
    """{(unknown column, kind, columns, class): change} and {(unknown column, class): change of the bias}."""
    unknown = weights.unknown
    actual = {
        (name, *key, label): value
        for name, table in zip(unknown.names, unknown.values.tolist(), strict=True)
        for key, row in zip(weights.keys, table, strict=True)
        for label, value in zip(weights.classes, row, strict=True)
        if value
    }
    bias = {
        (name, label): value
        for name, row in zip(unknown.names, unknown.bias.tolist(), strict=True)
        for label, value in zip(weights.classes, row, strict=True)
        if value
    }
    return actual, bias


def test_changes_of_unknown_columns_are_means_by_the_rows_of_each_class():
    """b: 1 row here and 3 there. A column, or a piece, that one model lacks changes nothing there."""
    own_rows, other_rows = {"a": 4.0, "b": 1.0}, {"b": 3.0, "c": 5.0}
    here = changing(GIVEN, ("x", "y"), (True, False), 0)
    present = changing(OTHER, ("z", "y"), (False, False), 1)
    merged, reordered = here.merged(present, own_rows, other_rows), present.merged(here, other_rows, own_rows)
    assert merged.unknown.names == ("x", "y", "z")
    assert merged.unknown.informative == (True, False, False)
    assert reordered.unknown.names == ("z", "y", "x")
    share = {"a": (1.0, 0.0), "b": (0.25, 0.75), "c": (0.0, 1.0)}
    for fold in (None, 0, 1):
        both = [some if fold is None else some.of_fold(fold) for some in (here, present, merged, reordered)]
        (ours, our_bias), (others, other_bias), *actual = map(changes_of, both)
        expected = {
            key: share[key[-1]][0] * ours.get(key, 0.0) + share[key[-1]][1] * others.get(key, 0.0)
            for key in ours.keys() | others.keys()
        }
        bias = {
            key: share[key[-1]][0] * our_bias.get(key, 0.0) + share[key[-1]][1] * other_bias.get(key, 0.0)
            for key in our_bias.keys() | other_bias.keys()
        }
        for values, of_bias in actual:
            assert values == pytest.approx(expected, rel=1e-12)
            assert of_bias == pytest.approx(bias, rel=1e-12)


def test_changes_of_dropped_pieces_are_dropped():
    one = changing(GIVEN, ("x", "y"), (False, False), 0)
    left = one.drop_pieces({("pair", frozenset({"x", "y"}))})
    np.testing.assert_array_equal(left.unknown.values, one.unknown.values[:, [0, 2]])
    np.testing.assert_array_equal(left.unknown.fold_values, one.unknown.fold_values[:, :, [0, 2]])
    names, pieces = (
        ("y", "x", "z"),
        [EvidencePiece("pair", (0, 2)), EvidencePiece("normal", (0,)), EvidencePiece("value", (1,))],
    )
    actual = one.changes_of(pieces, names, ("b", "new", "a"))
    assert actual.shape == (2, 3, 3)
    assert not actual[:, 1].any()
    np.testing.assert_array_equal(actual[:, 2][:, [2, 0]], one.unknown.values[:, 0])
    np.testing.assert_allclose(actual[:, 0, 1], one.unknown.values[:, 2].mean(axis=1), rtol=1e-12)
    np.testing.assert_array_equal(one.bias_changes_of(("b", "new"))[:, 0], one.unknown.bias[:, 1])
    assert not one.bias_changes_of(("b", "new"))[:, 1].any()


def test_a_class_without_weights_in_one_model_has_the_mean_of_the_others_there():
    """a: 1 row here with weight 1, and 1 row there, added later: there it has the mean of b and c."""
    merged = GIVEN.merged(OTHER, {"a": 1.0, "b": 1.0}, {"a": 1.0, "b": 1.0, "c": 1.0})
    values, bias = as_table(merged)
    assert values["value", frozenset({"x"}), "a"] == (1.0 + 0.0) / 2
    assert values["pair", frozenset({"x", "y"}), "a"] == (0.5 + 1.5) / 2
    assert values["value", frozenset({"z"}), "a"] == (0.0 + 6.0) / 2
    assert bias["a"] == (0.5 + 0.0) / 2


# Learning ------------------------------------------------------------------------------------------------------------


def table_of(weights, names, pieces):
    """(F + 1, P, K) weights of all pieces: of all rows, and of the rows that are in no fold."""
    given = [weights, *(weights.of_fold(f) for f in range(len(weights.fold_bias)))]
    return np.stack([some.of(pieces, names, weights.classes) for some in given])


@pytest.mark.parametrize("classes", [2, 3])
def test_weights_are_the_mean_of_the_candidates_by_their_shares(classes):
    model, sample = learned(classes=classes)
    weights = fit_weights(model, sample)
    evidence, pieces, _ = gathered(model, sample)
    selected = EvidenceRows.of_training(model, sample, 0).selected(evidence_by_block(model))
    paths = candidate_paths(evidence, pieces, selected, wide=False, tol=1e-12)
    actual = {name: weights for path in paths for name, weights in path}
    assert sum(weights.shares.values()) == pytest.approx(1.0, rel=1e-12)
    values = sum(share * actual[name].values for name, share in weights.shares.items())
    bias = sum(share * actual[name].bias for name, share in weights.shares.items())
    table = table_of(weights, model.schema.names, pieces)
    np.testing.assert_allclose(table[0], values, atol=1e-6)
    np.testing.assert_allclose(weights.bias, bias, atol=1e-6)
    assert (table >= 0).all()
    assert table.shape == (1 + FOLDS, len(pieces), classes)
    assert all((table[0] != fold).any() for fold in table[1:])
    assert weights.rows == sample.frame.rows


def test_the_order_of_rows_does_not_matter():
    model, sample = learned(classes=2)
    order = np.random.default_rng(1).permutation(sample.frame.rows)
    one, other = (fit_weights(model, rows) for rows in (sample, sample.take(order)))
    assert one.keys == other.keys
    assert one.shares == pytest.approx(other.shares, rel=1e-9)
    assert one.prior_share == pytest.approx(other.prior_share, rel=1e-9)
    for name in ("values", "bias", "fold_values", "fold_bias"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(getattr(one.unknown, name), getattr(other.unknown, name), rtol=1e-6, atol=1e-7)
    assert one.unknown.names == other.unknown.names
    assert one.unknown.informative == other.unknown.informative


def test_a_repeated_piece_has_a_weight_only_where_the_other_is_unknown():
    """A column that repeats another has no weight, and has its weight where the other is unknown."""
    X, y = mixed()
    sample = sampled(X.assign(again=X["code"], other=X["height"]), y)
    model = collected(sample)
    weights = fit_weights(model, sample)
    weighted = {
        name for columns, row in zip(weights.columns, weights.values, strict=True) if row.any() for name in columns
    }
    assert {"code", "height"} <= weighted
    assert not {"again", "other"} & weighted
    assert not weights.fold_values[:, [{"again", "other"} & {*columns} != set() for columns in weights.columns]].any()
    table = dict(zip(weights.keys, weights.values, strict=True))
    for name, again in (("code", "again"), ("height", "other")):
        change = dict(zip(weights.keys, weights.unknown.values[weights.unknown.names.index(name)], strict=True))
        for (kind, columns), values in table.items():
            if columns == {name}:
                np.testing.assert_allclose(change.get((kind, frozenset({again})), 0.0 * values), values, atol=1e-3)


def test_weights_make_left_out_rows_more_probable():
    model, sample = learned()
    weights = fit_weights(model, sample)
    evidence, pieces, _ = gathered(model, sample)
    w = weights.of(pieces, model.schema.names, model.classes)

    def loss(w, bias):
        z = evidence.offset + bias + np.einsum("cnp,pc->nc", evidence.values, w)
        return -log_softmax(z, axis=1)[np.arange(len(z)), evidence.labels].mean()

    learned_loss = loss(w, weights.bias)
    assert learned_loss < loss(np.ones_like(w), 0.0) - 0.3  # all at full weight, as naive Bayes has them
    assert learned_loss < loss(np.zeros_like(w), 0.0) - 0.3  # the prior alone
    assert learned_loss < loss(np.full_like(w, 1 / len(w)), 0.0)


@pytest.mark.parametrize("y", [["same"] * 6, ["a", "b"]], ids=["one class", "a row of each"])
def test_one_class_or_one_row_of_each_gives_no_weights(y):
    sample = sampled(pd.DataFrame({"x": np.arange(float(len(y)))}), y)
    model = collected(sample)
    weights = fit_weights(model, sample)
    assert not weights.values.any()
    np.testing.assert_allclose(weights.bias, 0.0, atol=1e-9)
