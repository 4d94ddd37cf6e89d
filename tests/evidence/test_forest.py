"""Forest: leaves of trees that are fixed before rows are counted."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from deciban.evidence.forest import LEAVES, SHARE, Forest
from deciban.evidence.mixed_columns import Coding
from tests.evidence.test_partition_counts import CODING, codes
from tests.laws import family_subject

N, K, TREES = 400, 3, 5


def made(n=N, seed=0):
    """Three features as codes of a Coding; two are informative together."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 4, (n, 3)).astype(np.uint8)
    labels = ((x[:, 0] + 2 * (x[:, 1] == 2) + (rng.random(n) < 0.2)) % K).astype(np.int32)
    return x, labels


def grown(x, labels, weights=None, trees=TREES, seed=0):
    return Forest.grown(CODING, x, labels, weights, K, trees, seed)


X, LABELS = made()
FOREST = grown(X, LABELS)
SUBJECTS = [
    replace(
        family_subject(forest, codes, joint=True, fixed=True, width=forest.width),
        name=f"Forest of {len(forest.starts) - 1}",
    )
    for forest in (FOREST, grown(X, LABELS, trees=1))
]


def walk(forest, row, tree):
    """The nodes that a row comes by, by the rules as they are written."""
    first, node = forest.starts[tree], 0
    way = [first]
    while (column := forest.column[first + node]) >= 0:
        code, left = forest.code[first + node], forest.left[first + node]
        goes_left = row[column] <= code if forest.reading.ordered[column] else row[column] == code
        node = left if goes_left else left + 1
        way.append(first + node)
    return way


def arrays(forest, tree):
    part = slice(forest.starts[tree], forest.starts[tree + 1])
    return [array[part].tolist() for array in (forest.column, forest.code, forest.left)]


def same_trees(a, b):
    return len(a.starts) == len(b.starts) and all(arrays(a, t) == arrays(b, t) for t in range(len(a.starts) - 1))


def test_rows_end_at_the_leaves_that_their_cells_lead_to():
    actual = FOREST.cells(X)
    for tree in range(TREES):
        leaves = [FOREST.left[walk(FOREST, row, tree)[-1]] for row in X]
        assert actual[:, tree].tolist() == leaves
    assert (actual < np.diff(FOREST.offsets)).all()
    assert FOREST.offsets[-1] == (FOREST.column < 0).sum() == FOREST.width(3)


def shares_by_walking(forest, codes, said):
    """What every step from a root to a leaf changes, at the column that the node asks for."""
    actual = np.zeros((len(codes), codes.shape[1], said.shape[1]))
    for i, row in enumerate(codes):
        for tree in range(len(forest.starts) - 1):
            for node, child in pairwise(walk(forest, row, tree)):
                actual[i, forest.column[node]] += said[child] - said[node]
    return actual


@pytest.mark.parametrize("classes", [1, 2, 5])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_split_belongs_to_its_feature(classes, order):
    said = np.random.default_rng(classes).normal(size=(len(FOREST.column), classes))
    rows = np.asarray(X[:60], order=order)
    actual = FOREST.shares(rows, said)
    np.testing.assert_allclose(actual, shares_by_walking(FOREST, rows, said), rtol=1e-12, atol=1e-12)
    ends = np.flatnonzero(FOREST.column < 0)[FOREST.cells(rows) + FOREST.offsets[:-1]]
    total = said[ends].sum(axis=1) - said[FOREST.starts[:-1]].sum(axis=0)
    np.testing.assert_allclose(actual.sum(axis=1), total, rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(FOREST.shares(rows[:0], said), np.zeros((0, 3, classes)))


def test_scores_are_needed_for_all_nodes():
    with pytest.raises(ValueError, match="node_scores has length"):
        FOREST.shares(X, np.zeros((3, 2)))


def test_sums_of_nodes_are_those_of_the_rows_that_come_by():
    counts = FOREST.collect(X, LABELS, None, K).sum_x.value.T
    expected = np.zeros((len(FOREST.column), K))
    for row, label in zip(X, LABELS, strict=True):
        for tree in range(TREES):
            expected[walk(FOREST, row, tree), label] += 1
    np.testing.assert_array_equal(FOREST.sums(counts), expected)
    np.testing.assert_array_equal(expected[FOREST.starts[:-1]], np.tile(np.bincount(LABELS), (TREES, 1)))


def test_trees_depend_on_neither_the_order_of_rows_nor_chance():
    order = np.random.default_rng(1).permutation(N)
    assert same_trees(grown(X[order], LABELS[order]), FOREST)
    assert not same_trees(grown(X, LABELS, seed=1), FOREST)
    assert same_trees(grown(np.asfortranarray(X), LABELS), FOREST)


def test_weight_two_is_the_row_twice_and_weight_zero_is_none():
    times = np.random.default_rng(2).integers(0, 3, N)
    again = np.repeat(np.arange(N), times)
    assert same_trees(grown(X, LABELS, times.astype(float)), grown(X[again], LABELS[again]))


def test_a_tree_is_grown_only_from_the_rows_that_it_has_seen():
    """Whatever the classes of the others are, it is the same tree."""
    seen = FOREST.seen(X)
    for tree in range(TREES):
        assert arrays(grown(X, np.where(seen[:, tree], LABELS, 0).astype(np.int32)), tree) == arrays(FOREST, tree)
        few = np.flatnonzero(seen[:, tree])
        assert arrays(grown(X[few], LABELS[few]), tree) == arrays(FOREST, tree)


def test_which_rows_a_tree_has_seen_depends_on_what_they_hold_alone():
    seen = FOREST.seen(X)
    assert seen.shape == (N, TREES)
    _, first, of_row = np.unique(X, axis=0, return_index=True, return_inverse=True)
    np.testing.assert_array_equal(seen, seen[first][of_row.ravel()])
    many = np.random.default_rng(3).integers(0, 4, (20_000, 12)).astype(np.uint8)
    none = np.zeros(0, np.int32)
    wide = Forest(Coding(((0.5, 1.5),) * 12, (None,) * 12), np.zeros(TREES + 1, np.int64), none, none, none, 7)
    shares = wide.seen(many).mean(axis=0)
    np.testing.assert_allclose(shares, SHARE, atol=5 * np.sqrt(SHARE * (1 - SHARE) / 20_000))


def test_forests_are_equal_by_their_trees():
    assert grown(*made()) == FOREST
    assert hash(FOREST) == hash(grown(*made()))
    assert grown(X, LABELS, seed=1) != FOREST
    assert grown(X, LABELS, trees=4) != FOREST
    assert grown(X, (LABELS + 1) % 2) != FOREST
    assert FOREST != "a forest"


def test_leaves_of_many_rows_are_limited():
    """About: no leaf has fewer of the rows that a tree has seen than the 4096th part of them."""
    n = 40 * LEAVES
    rng = np.random.default_rng(4)
    x = rng.integers(0, 250, (n, 4)).astype(np.uint8)
    reading = Coding((tuple(range(254)),) * 4, (None,) * 4)
    forest = Forest.grown(reading, x, rng.integers(0, 2, n).astype(np.int32), None, 2, 1, 0)
    counts = np.bincount(forest.cells(x[forest.seen(x)[:, 0]]).ravel(), minlength=int(forest.offsets[-1]))
    assert counts.min() >= int(SHARE * n / LEAVES)
    assert forest.offsets[-1] <= 1.05 * LEAVES


@pytest.mark.parametrize("labels", [np.zeros(N, np.int32), LABELS])
def test_rows_that_are_all_alike_make_trees_of_one_leaf(labels):
    flat = grown(np.ones((N, 3), np.uint8), labels)
    assert flat.column.tolist() == [-1] * TREES
    assert flat.cells(X).max() == 0
    assert not flat.shares(X, np.ones((TREES, 2))).any()
