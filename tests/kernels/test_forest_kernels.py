"""Forests, evidence of cells and gains of pairs: every kernel against plain numpy."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from deciban import _kernels
from tests.cases import cases
from tests.kernels.test_kernels import layouts, random, threads

__all__ = ["threads"]

GOLDEN = 0x9E3779B97F4A7C15
U64 = 2**64 - 1


# ---- forests ----------------------------------------------------------------------------------------------------


def mix(x):
    """The last step of splitmix64 (Steele, Lea and Flood 2014)."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & U64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & U64
    return x ^ (x >> 31)


def hash_of(row):
    h = len(row)
    for first in range(0, len(row), 8):
        h = mix((h ^ int.from_bytes(bytes(row[first : first + 8]), "little")) + GOLDEN & U64)
    return mix(h + GOLDEN & U64)


def key_of(seed, tree):
    return mix(mix(seed + GOLDEN & U64) + (tree + 1) * GOLDEN & U64)


def bags(x, trees, share, seed):
    hashes = [hash_of(row) for row in x.tolist()]
    return np.array([[(mix(h ^ key_of(seed, t)) >> 11) / 2**53 < share for t in range(trees)] for h in hashes])


def drawn(d, key, node):
    """The columns in the order in which a node tries them."""
    state, order = mix(key ^ mix(node + GOLDEN & U64)), list(range(d))
    for i in range(d):
        state = state + GOLDEN & U64
        j = i + ((mix(state) >> 32) * (d - i) >> 32)
        order[i], order[j] = order[j], order[i]
        yield order[i]


def gini(labels, weights, classes):
    total = np.bincount(labels, weights, classes)
    return (total**2).sum() / total.sum()


def best_cut(x, sizes, ordered, labels, weights, classes, columns, tries, least):
    """(column, code) of the highest Σ L_k²/L + Σ R_k²/R, or None; constant columns are not tried.

    The last code of a category, that of values in no list, is not cut off: nothing is known of other such values.
    """
    best, chosen, tried = gini(labels, weights, classes) * (1 + 1e-12), None, 0
    for column in columns:
        codes = np.unique(x[:, column])
        if len(codes) == 1:
            continue
        for code in codes[: -1 if ordered[column] else None].tolist():
            left = x[:, column] <= code if ordered[column] else x[:, column] == code
            if not ordered[column] and code == sizes[column] - 1:
                continue
            if min(weights[left].sum(), weights[~left].sum()) < least:
                continue
            score = gini(labels[left], weights[left], classes) + gini(labels[~left], weights[~left], classes)
            if score > best:
                best, chosen = score, (column, code)
        tried += 1
        if tried == tries:
            break
    return chosen


def grow(x, sizes, ordered, labels, weights, classes, tree, share, tries, least, most_deep, seed):
    """Nodes (column, code, left), and the leaf of each row."""
    weights = np.ones(len(x)) if weights is None else weights
    bag = bags(x, tree + 1, share, seed)[:, tree] & (weights > 0)
    nodes, waiting = [[-1, 0, 0]], [(np.arange(len(x)), 0, 0)]
    reached = np.zeros(len(x), int)
    while waiting:
        rows, node, depth = waiting.pop()
        reached[rows] = node
        own = rows[bag[rows]]
        if depth >= most_deep or len(np.unique(labels[own])) < 2 or weights[own].sum() < 2 * least:
            continue
        columns = drawn(x.shape[1], key_of(seed, tree), node)
        cut = best_cut(x[own], sizes, ordered, labels[own], weights[own], classes, columns, tries, least)
        if cut is None:
            continue
        column, code = cut
        left = x[rows, column] <= code if ordered[column] else x[rows, column] == code
        nodes[node] = [column, code, len(nodes)]
        waiting += [(rows[~left], len(nodes) + 1, depth + 1), (rows[left], len(nodes), depth + 1)]
        nodes += [[-1, 0, 0], [-1, 0, 0]]
    leaves = np.cumsum([column < 0 for column, _, _ in nodes]) - 1
    for node, leaf in zip(nodes, leaves.tolist(), strict=True):
        if node[0] < 0:
            node[2] = leaf
    return np.array(nodes), leaves[reached]


def forest_problem(n, sizes, classes, seed=0):
    """Codes of columns, some ordered; the classes depend on some of them."""
    rng, d = random(seed), len(sizes)
    x = np.stack([np.minimum(rng.integers(0, size, n), rng.integers(0, size, n)) for size in sizes], axis=1)
    signal = x[:, 0] * 7 // sizes[0] + (x[:, -1] % 2) * 2 + rng.integers(0, 3, n)
    labels = (signal * classes // 12).clip(0, classes - 1).astype(np.int32)
    return x.astype(np.uint8), np.array(sizes, np.int32), np.arange(d) % 3 != 1, labels


FORESTS = {
    "ten columns": (300, [6, 4, 9, 2, 30, 7, 1, 3, 8, 5], 3, 0.6, 4, 2, 99),
    "wide codes": (200, [256, 256, 200, 2], 2, 0.7, 2, 5, 99),
    "many classes": (400, [12, 5, 9], 11, 0.6, 2, 1, 99),
    "more classes than rows": (40, [5, 5, 5], 60, 0.9, 2, 1, 99),
    "all rows, all columns": (250, [8, 3, 8, 3], 4, 1.0, 4, 1, 99),
    "shallow": (300, [20, 3, 20], 3, 0.6, 2, 1, 3),
    "a root alone": (50, [4, 4], 2, 0.6, 2, 1, 0),
    "constant columns": (200, [1, 1, 1, 1, 1, 1, 1, 6, 4], 2, 0.6, 1, 1, 99),
    "more than a line of cache": (100, [3] * 71, 2, 0.6, 9, 2, 99),
    "least is a fraction": (120, [9, 4], 2, 0.6, 2, 2.5, 99),
}


@cases("weighted", [False, True])
@cases("n, sizes, classes, options", {name: (*f[:3], f[3:]) for name, f in FORESTS.items()})
def test_a_forest_equals_the_numpy_forest(weighted, n, sizes, classes, options):
    x, sizes, ordered, labels = forest_problem(n, sizes, classes)
    weights = random(1).integers(0, 9, n) / 8.0 if weighted else None  # eighths, so that sums are exact in any order
    forest = _kernels.grow_forest(x, sizes, ordered, labels, weights, classes, 3, *options, 7)
    starts, *nodes = forest
    result = _kernels.find_leaves(x, *forest, ordered)
    for t in range(3):
        expected, leaves = grow(x, sizes, ordered, labels, weights, classes, t, *options, 7)
        np.testing.assert_array_equal(np.stack(nodes, axis=1)[starts[t] : starts[t + 1]], expected)
        np.testing.assert_array_equal(result[:, t], leaves)


def test_bags_are_those_of_numpy_and_hold_their_share():
    x = random(4).integers(0, 256, (3000, 19)).astype(np.uint8)
    np.testing.assert_array_equal(_kernels.in_bag(x[:200], 5, 0.6, 2**64 - 1), bags(x[:200], 5, 0.6, 2**64 - 1))
    result = _kernels.in_bag(x, 40, 0.6, 3)
    assert abs(result.mean() - 0.6) < 5 * np.sqrt(0.24 / result.size)
    both = result[:, :20] & result[:, 20:]  # bags of two trees have 0.36 in common
    assert abs(both.mean() - 0.36) < 5 * np.sqrt(0.36 * 0.64 / both.size)
    assert _kernels.in_bag(x, 3, 1.0, 3).all()
    assert not _kernels.in_bag(x, 3, 0.0, 3).any()


def test_bags_of_rows_that_differ_in_one_cell_are_independent():
    x = random(5).integers(0, 4, (2000, 9)).astype(np.uint8)
    for column in range(9):
        other = x.copy()
        other[:, column] ^= 1
        both = _kernels.in_bag(x, 20, 0.5, 3) & _kernels.in_bag(other, 20, 0.5, 3)
        # rows that are equal, or are each other's other, share their bags, so there are fewer of them than it seems
        assert abs(both.mean() - 0.25) < 8 * np.sqrt(0.25 * 0.75 / both.size)


def test_every_column_is_drawn_as_often():
    """Where the classes are noise and one column is tried, it is cut."""
    x, labels = random(6).integers(0, 2, (400, 7)).astype(np.uint8), np.arange(400, dtype=np.int32) % 2
    arguments = (np.full(7, 2, np.int32), np.zeros(7, bool), labels, None, 2, 2100, 0.6, 1, 1, 1, 9)
    starts, column, *_ = _kernels.grow_forest(x, *arguments)
    counts = np.bincount(column[starts[:-1]][column[starts[:-1]] >= 0], minlength=7)
    assert abs(counts / counts.sum() - 1 / 7).max() < 5 * np.sqrt(6 / 49 / counts.sum())


@layouts
def test_a_forest_is_the_same_in_any_layout(layout):
    x, sizes, ordered, labels = forest_problem(200, [6, 4, 9, 2], 3)
    arguments = (sizes, ordered, labels, None, 3, 4, 0.6, 2, 2, 99, 5)
    forest = _kernels.grow_forest(x, *arguments)
    assert all(map(np.array_equal, forest, _kernels.grow_forest(layout(x), *arguments)))
    assert np.array_equal(_kernels.in_bag(x, 4, 0.6, 5), _kernels.in_bag(layout(x), 4, 0.6, 5))
    assert np.array_equal(_kernels.find_leaves(x, *forest, ordered), _kernels.find_leaves(layout(x), *forest, ordered))


def shuffled(seed, *arrays):
    order = random(seed).permutation(len(arrays[0]))
    return [None if a is None else a[order] for a in arrays]


@cases("weighted", [False, True])
def test_a_forest_does_not_depend_on_threads_or_on_the_order_of_the_rows(threads, weighted):
    """Bit for bit, with weights of which no sum is exact."""
    x, sizes, ordered, labels = forest_problem(6000, [6, 4, 9, 2, 30, 200, 3], 5)
    weights = random(7).uniform(1e-3, 1e3, 6000) if weighted else None
    forests = []
    for count in (1, 2, 5):
        threads(count)
        rows, own, mass = shuffled(count, x, labels, weights)
        forests.append(_kernels.grow_forest(rows, sizes, ordered, own, mass, 5, 9, 0.7, 3, 2, 99, 8))
    for other in forests[1:]:
        assert all(map(np.array_equal, forests[0], other))
    leaves = _kernels.find_leaves(x, *forests[0], ordered)
    threads(1)
    assert np.array_equal(leaves, _kernels.find_leaves(x, *forests[0], ordered))


def test_a_row_of_weight_two_is_two_rows_and_one_of_weight_zero_is_none():
    x, sizes, ordered, labels = forest_problem(500, [6, 4, 9, 2], 3)
    times = random(8).integers(0, 4, 500)
    rest = (3, 5, 0.6, 2, 3, 99, 4)
    weighted = _kernels.grow_forest(x, sizes, ordered, labels, times.astype(float), *rest)
    repeated = _kernels.grow_forest(np.repeat(x, times, axis=0), sizes, ordered, np.repeat(labels, times), None, *rest)
    assert all(map(np.array_equal, weighted, repeated))


def test_both_ways_to_judge_a_column_agree():
    """More classes than there are make tables too large to be counted: then rows are sorted."""
    x, sizes, ordered, labels = forest_problem(3000, [6, 4, 9, 2], 3)
    for weights in (None, random(9).integers(1, 9, 3000) / 4.0):
        counted, sorted_ = (
            _kernels.grow_forest(x, sizes, ordered, labels, weights, classes, 5, 0.6, 2, 1, 99, 4)
            for classes in (3, 10**6)
        )
        assert all(map(np.array_equal, counted, sorted_))


@cases("n", [0, 1, 2, 7, 8, 9, 1023, 1024, 1025, 3000])
def test_leaves_of_any_number_of_rows(n):
    x, sizes, ordered, labels = forest_problem(3000, [6, 4, 9], 3)
    forest = _kernels.grow_forest(x, sizes, ordered, labels, None, 3, 3, 0.6, 2, 1, 99, 4)
    leaves = _kernels.find_leaves(x, *forest, ordered)
    np.testing.assert_array_equal(_kernels.find_leaves(x[:n], *forest, ordered), leaves[:n])
    np.testing.assert_array_equal(_kernels.find_leaves(x[3000 - n :], *forest, ordered), leaves[3000 - n :])


def test_forests_of_nothing():
    none = np.zeros((0, 3), np.uint8), np.ones(3, np.int32), np.ones(3, bool), np.zeros(0, np.int32)
    leaf = ([0, 1, 2], [-1, -1], [0, 0], [0, 0])
    assert all(map(np.array_equal, _kernels.grow_forest(*none, None, 2, 2, 0.6, 2, 1, 9, 1), leaf))
    assert all(map(np.array_equal, _kernels.grow_forest(*none, np.zeros(0), 0, 2, 0.6, 2, 1, 9, 1), leaf))
    no_columns = np.zeros((5, 0), np.uint8), np.zeros(0, np.int32), np.zeros(0, bool), np.arange(5, dtype=np.int32)
    assert all(map(np.array_equal, _kernels.grow_forest(*no_columns, None, 5, 2, 1.0, 2, 0, 9, 1), leaf))
    assert all(map(np.array_equal, _kernels.grow_forest(*no_columns, np.zeros(5), 5, 2, 1.0, 2, 0, 9, 1), leaf))
    leaves = [np.array(a, dtype) for a, dtype in zip(leaf, (np.int64, np.int32, np.int32, np.int32), strict=True)]
    assert not _kernels.find_leaves(no_columns[0], *leaves, no_columns[2]).any()
    starts, *nodes = _kernels.grow_forest(*no_columns, None, 5, 0, 1.0, 2, 0, 9, 1)
    assert (starts.tolist(), [len(a) for a in nodes]) == ([0], [0, 0, 0])
    assert _kernels.find_leaves(no_columns[0], starts, *nodes, no_columns[2]).shape == (5, 0)
    assert _kernels.in_bag(no_columns[0], 0, 0.6, 1).shape == (5, 0)


GROWN = {
    "codes": np.ones((6, 3), np.uint8),
    "sizes": np.array([3, 2, 4], np.int32),
    "ordered": np.ones(3, bool),
    "labels": np.array([0, 1, 1, 0, 1, 0], np.int32),
    "weights": np.ones(6),
    "classes": 2,
    "trees": 2,
    "bag_fraction": 0.6,
    "max_columns": 2,
    "min_weight": 1.0,
    "max_depth": 9,
    "seed": 1,
}


ROWS_OF = {"sizes": np.int32, "labels": np.int32, "weights": np.float64}  # and all else is given as it is


def refused(call, arguments, name, value, says):
    """The arguments are accepted, and refused when one of them has another value."""
    call(**arguments)
    value = np.array(value, ROWS_OF[name]) if name in ROWS_OF else value
    with pytest.raises((ValueError, TypeError), match=says):
        call(**{**arguments, name: value})


@cases(
    "name, says, values",
    [
        ("codes", "not below the size", [np.full((6, 3), 2, np.uint8)]),
        ("codes", "incompatible", [np.ones((6, 3), np.int64)]),
        ("sizes", "256", [[3, 257, 4], [3, -1, 4]]),
        ("labels", "out of range", [[0, 1, 2, 0, 1, 0], [0, 1, -1, 0, 1, 0]]),
        ("weights", "negative", [[0, 1, -1, 0, 1, 0], [0, 1, np.nan, 0, 1, 0], [0, 1, np.inf, 0, 1, 0]]),
        ("classes", "classes", [2**40]),
        ("trees", "trees", [2**50]),
        ("bag_fraction", "bag_fraction", [1.5, np.nan]),
        ("max_columns", "max_columns", [0]),
        ("min_weight", "min_weight", [-1.0, np.nan]),
        ("max_depth", "incompatible", [-1]),
        ("seed", "incompatible", [-1]),
    ],
)
def test_forests_that_cannot_be_are_refused(name, says, values):
    for value in values:
        refused(_kernels.grow_forest, GROWN, name, value, says)


def test_codes_of_either_layout_are_compared_with_their_sizes():
    codes = np.array([[0, 1], [2, 0]], np.uint8)
    for layout in (np.ascontiguousarray, np.asfortranarray):
        for sizes in ([2, 2], [3, 1]):
            rest = np.array(sizes, np.int32), np.zeros(2, np.int32), None, 1, 1.0, np.zeros((1, 2), np.int32)
            with pytest.raises(ValueError, match="not below the size"):
                _kernels.pair_gains(layout(codes), *rest)


TREES = {  # a cut whose left child is cut again, and a leaf
    "codes": np.ones((6, 3), np.uint8),
    "starts": np.array([0, 5, 6]),
    "column": np.array([1, 2, -1, -1, -1, -1], np.int32),
    "code": np.array([0, 3, 0, 0, 0, 0], np.int32),
    "left": np.array([1, 3, 0, 1, 2, 0], np.int32),
    "ordered": np.ones(3, bool),
}


@cases(
    "name, says, changes",  # at, value
    [
        ("starts", "starts", [(0, 1), (0, -1), (1, -(2**62)), (1, 0), (1, 6), (1, 7), (2, 7), (2, 5), (1, 2**62)]),
        ("column", "column", [(0, 3), (0, -2), (1, 2**31 - 1)]),
        ("column", "left", [(2, 1), (0, -1)]),
        ("code", "code", [(0, 256), (0, -1)]),
        ("left", "left", [(0, 0), (1, 1), (1, 0), (1, -1), (1, 4), (1, 2**31 - 1), (2, 1), (5, -1)]),
    ],
)
def test_trees_that_cannot_be_walked_are_refused(name, says, changes):
    assert _kernels.find_leaves(**TREES).tolist() == [[0, 0]] * 6
    for at, value in changes:
        changed = TREES[name].copy()
        changed[at] = value
        refused(_kernels.find_leaves, TREES, name, changed, says)


def test_trees_without_starts_are_refused():
    with pytest.raises(ValueError, match="starts"):
        _kernels.find_leaves(**{**TREES, "starts": np.zeros(0, np.int64)})


@cases("ordered", [False, True])
def test_every_code_goes_where_it_should(ordered):
    """All 256 codes, at every cut."""
    x = np.arange(256, dtype=np.uint8)[:, np.newaxis]
    for code in range(256):
        nodes = [np.array(a, np.int32) for a in ([0, -1, -1], [code, 0, 0], [1, 0, 1])]
        result = _kernels.find_leaves(x, np.array([0, 3]), *nodes, np.array([ordered]))
        assert np.array_equal(result[:, 0] == 0, x[:, 0] <= code if ordered else x[:, 0] == code)


# ---- shares of columns -----------------------------------------------------------------------------------------


def tree_shares(x, starts, column, code, left, ordered, said):
    """(n, columns, K) Σ over steps of what the child says less what its parent says, for the column that is asked."""
    out = np.zeros((len(x), x.shape[1], said.shape[1]))
    for i, row in enumerate(x.tolist()):
        for root in starts[:-1].tolist():
            node = root
            while (j := int(column[node])) >= 0:
                goes_left = row[j] <= code[node] if ordered[j] else row[j] == code[node]
                child = root + int(left[node]) + (0 if goes_left else 1)
                out[i, j] += said[child] - said[node]
                node = child
    return out


@layouts
@cases("n", [0, 1, 7, 8, 9, 61])  # rows are walked several at a time
def test_shares_of_columns_are_the_steps_that_ask_for_them(threads, layout, n):
    x, sizes, ordered, labels = forest_problem(200, [6, 4, 9, 2], 3)
    forest = _kernels.grow_forest(x, sizes, ordered, labels, None, 3, 5, 0.6, 2, 2, 99, 5)
    said = random(4).normal(size=(len(forest[1]), 3))
    for count in (1, 3):
        threads(count)
        result = _kernels.tree_contributions(layout(x[:n]), *forest, ordered, said)
        np.testing.assert_allclose(result, tree_shares(x[:n], *forest, ordered, said), rtol=1e-12, atol=1e-12)


# ---- unknown cells ----------------------------------------------------------------------------------------------


def reachable_leaves(row, unknown, starts, column, code, left, ordered, tree):
    """The nodes of the leaves that a row may be in: where a node asks for an unknown cell, both ways are open."""
    first = int(starts[tree])

    def below(node):
        j = int(column[node])
        if j < 0:
            return [node]
        child = first + int(left[node])
        if unknown[j]:
            return below(child) + below(child + 1)
        goes_left = row[j] <= code[node] if ordered[j] else row[j] == code[node]
        return below(child if goes_left else child + 1)

    return below(first)


def node_counts(starts, column, left, of_leaves):
    """(nodes, K) the counts of all nodes, from those (leaves, K) of the leaves."""
    counts = np.zeros((len(column), of_leaves.shape[1]))
    counts[column < 0] = of_leaves
    for first, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        for node in reversed(range(first, end)):  # children come after their parent
            if column[node] >= 0:
                counts[node] = counts[first + left[node]] + counts[first + left[node] + 1]
    return counts


def pooled_leaves(x, unknown, starts, column, code, left, ordered, counts, skip):
    """(trees, n, K) the sum over the leaves that a row may be in; the root's counts where a tree is skipped."""
    out = np.empty((len(starts) - 1, len(x), counts.shape[1]))
    for t in range(len(out)):
        for i, row in enumerate(x):
            leaves = reachable_leaves(row, unknown[i], starts, column, code, left, ordered, t)
            out[t, i] = (
                counts[starts[t] if skip is not None and skip[i, t] else leaves]
                .reshape(-1, counts.shape[1])
                .sum(axis=0)
            )
    return out


def said_of(counts, prior, smoothing):
    e = np.log(counts + smoothing * prior) - np.log(prior)
    return e - e.mean(axis=-1, keepdims=True)


def pooled_shares(x, unknown, starts, column, code, left, ordered, counts, prior, smoothing):
    """(n, columns, K) at each level of a tree, what changes is shared by the rows that columns rule out there."""
    out = np.zeros((len(x), x.shape[1], counts.shape[1]))
    for i, row in enumerate(x):
        for first in starts[:-1].tolist():
            level = [first]
            while (column[level] >= 0).any():
                below, ruled_out = [], np.zeros(x.shape[1])
                for node in level:
                    j, child = int(column[node]), first + int(left[node])
                    if j < 0:
                        below.append(node)
                    elif unknown[i, j]:
                        below += [child, child + 1]
                    else:
                        right = int(row[j] > code[node] if ordered[j] else row[j] != code[node])
                        below.append(child + right)
                        ruled_out[j] += counts[child + 1 - right].sum()
                before, after = (said_of(counts[nodes].sum(axis=0), prior, smoothing) for nodes in (level, below))
                out[i] += np.outer(ruled_out / max(ruled_out.sum(), 1e-300), after - before)
                level = below
    return out


def pooled_problem(columns, classes, seed, n=40, trees=3):
    """Codes, a forest with its ordered columns, and the counts of its nodes; some leaves have no rows of a class."""
    rng = random(seed)
    sizes = rng.integers(2, 9, columns).tolist()
    x, sizes, ordered, labels = forest_problem(300, sizes, classes, seed)
    forest = _kernels.grow_forest(x, sizes, ordered, labels, None, classes, trees, 0.8, 4, 1, 99, seed)
    starts, column, _, left = forest
    of_leaves = rng.integers(0, 9, ((column < 0).sum(), classes)).astype(float)
    return x[:n], (*forest, ordered), node_counts(starts, column, left, of_leaves)


POOLED = given(
    columns=st.integers(1, 12) | st.integers(63, 90),
    classes=st.integers(2, 4),
    share=st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]),
    seed=st.integers(0, 2**32 - 1),
)


@POOLED
def test_pooled_leaves_are_those_that_recursion_reaches(columns, classes, share, seed):
    x, forest, counts = pooled_problem(columns, classes, seed)
    rng = random(seed + 1)
    unknown, skip = rng.random(x.shape) < share, rng.random((len(x), 3)) < 0.3
    for given_skip in (None, skip):
        result = _kernels.pooled_leaf_counts(x, unknown, *forest, counts, given_skip)
        np.testing.assert_array_equal(result, pooled_leaves(x, unknown, *forest, counts, given_skip))


@POOLED
def test_pooled_shares_are_what_levels_change_by_rows_ruled_out(columns, classes, share, seed):
    x, forest, counts = pooled_problem(columns, classes, seed, n=15)
    rng = random(seed + 1)
    unknown, prior = rng.random(x.shape) < share, rng.dirichlet(np.full(classes, 5.0))
    result = _kernels.pooled_contributions(x, unknown, *forest, counts, prior, 0.5)
    np.testing.assert_allclose(result, pooled_shares(x, unknown, *forest, counts, prior, 0.5), rtol=1e-10, atol=1e-12)
    pooled = said_of(_kernels.pooled_leaf_counts(x, unknown, *forest, counts, None), prior, 0.5)
    root = said_of(counts[forest[0][:-1]], prior, 0.5)
    np.testing.assert_allclose(result.sum(axis=1), (pooled - root[:, np.newaxis]).sum(axis=0), rtol=1e-9, atol=1e-11)
    assert not result[unknown].any()


@cases("columns", [1, 5, 70])
def test_where_all_is_known_a_row_is_in_one_leaf_and_where_nothing_is_at_the_root(columns):
    x, forest, counts = pooled_problem(columns, 3, columns)
    nothing, everything, prior = np.zeros(x.shape, np.bool_), np.ones(x.shape, np.bool_), np.array([0.2, 0.3, 0.5])
    leaf_nodes = np.flatnonzero(forest[1] < 0)
    first = np.concatenate([[0], np.cumsum(forest[1] < 0)])[forest[0][:-1]]
    leaves = leaf_nodes[_kernels.find_leaves(x, *forest) + first]
    np.testing.assert_array_equal(_kernels.pooled_leaf_counts(x, nothing, *forest, counts, None), counts[leaves.T])
    shares = _kernels.tree_contributions(x, *forest, said_of(counts, prior, 0.5))
    result = _kernels.pooled_contributions(x, nothing, *forest, counts, prior, 0.5)
    np.testing.assert_allclose(result, shares, rtol=1e-10, atol=1e-12)
    roots = np.repeat(counts[forest[0][:-1]][:, np.newaxis], len(x), axis=1)
    np.testing.assert_array_equal(_kernels.pooled_leaf_counts(x, everything, *forest, counts, None), roots)
    assert not _kernels.pooled_contributions(x, everything, *forest, counts, prior, 0.5).any()


@layouts
def test_pooled_leaves_do_not_depend_on_threads_or_layout(threads, layout):
    x, forest, counts = pooled_problem(9, 3, 1, n=300, trees=20)
    unknown, prior = random(2).random(x.shape) < 0.4, np.array([0.2, 0.3, 0.5])
    threads(1)
    leaves = _kernels.pooled_leaf_counts(x, unknown, *forest, counts, None)
    shares = _kernels.pooled_contributions(x, unknown, *forest, counts, prior, 0.5)
    threads(3)
    other = layout(x), layout(unknown)
    assert np.array_equal(leaves, _kernels.pooled_leaf_counts(*other, *forest, counts, None))
    assert np.array_equal(shares, _kernels.pooled_contributions(*other, *forest, counts, prior, 0.5))


def test_pooled_leaves_of_no_rows():
    x, forest, counts = pooled_problem(4, 3, 0, n=0)
    unknown = np.zeros(x.shape, np.bool_)
    assert _kernels.pooled_leaf_counts(x, unknown, *forest, counts, None).shape == (3, 0, 3)
    assert _kernels.pooled_contributions(x, unknown, *forest, counts, np.full(3, 1 / 3), 0.5).shape == (0, 4, 3)


def test_trees_to_skip_are_as_many_as_there_are():
    x, forest, counts = pooled_problem(4, 3, 0)
    unknown = np.zeros(x.shape, np.bool_)
    for trees in (2, 4):
        with pytest.raises(ValueError, match="skip"):
            _kernels.pooled_leaf_counts(x, unknown, *forest, counts, np.zeros((len(x), trees), np.bool_))


# ---- evidence of cells ------------------------------------------------------------------------------------------


def evidence(codes, offsets, counts, rows, smoothing, labels, weights):
    """e_k = log(N_k(v) + s π_k) − log π_k less its mean, with π_k = n_k/n; NaN where the cell is missing.

    For a row of class y that is left out with weight w, N_y(v) is (N_y(v) − w)·n_y/(n_y − w), or 0 where none is left.
    """
    n, prior = len(codes), rows / rows.sum()
    there = (codes >= 0) & (codes < np.diff(offsets))
    own = counts[(offsets[:-1] + np.where(there, codes, 0)).clip(0, max(len(counts) - 1, 0))]  # (n, m, K)
    if labels is not None:
        weights = (np.ones(n) if weights is None else weights)[:, np.newaxis]
        of_class, place = rows[labels][:, np.newaxis], (np.arange(n), slice(None), labels)
        left, whole = np.maximum(own[place] - weights, 0.0), np.maximum(of_class - weights, 1e-300)
        own[place] = np.where(left > 0, left * (of_class / whole), 0.0)
    e = np.log(own + smoothing * prior) - np.log(prior)
    e -= e.mean(axis=2, keepdims=True)
    e[~there] = np.nan
    return e


def cell_problem(n, sizes, classes, weighted, seed=0):
    """codes, offsets, counts, rows, labels, weights; some cells missing, some counts of other rows."""
    rng, m = random(seed), len(sizes)
    codes = np.stack([rng.integers(-1, size + 2, n) for size in sizes], axis=1).astype(np.int32).reshape(n, m)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    labels = rng.integers(0, classes, n).astype(np.int32)
    weights = rng.integers(0, 5, n) / 2.0 if weighted else None
    counts = rng.integers(0, 4, (offsets[-1], classes)) * rng.integers(0, 2, (offsets[-1], classes)).astype(float)
    np.add.at(counts, ((offsets[:-1] + codes)[codes == 0], np.repeat(labels, m).reshape(n, m)[codes == 0]), 1.0)
    rows = np.add.reduceat(counts, offsets[:-1]).max(axis=0) + rng.uniform(0.25, 3.0, classes)  # cells may be missing
    return codes, offsets, counts, rows, labels, weights


CELLS = {  # rows, sizes, classes
    "few cells": (300, [3, 4, 1, 2], 2),
    "more cells than codes": (5, [100, 40, 30], 3),
    "many classes": (60, [5, 6, 7], 17),
    "one class": (20, [3, 2], 1),
    "no rows": (0, [3, 2], 2),
    "one column": (50, [9], 4),
}


@cases("n, sizes, classes", CELLS)
@cases("kind", ["all rows", "left out", "left out, weighted"])
def test_cell_evidence_and_its_mean_are_those_of_numpy(n, sizes, classes, kind):
    codes, offsets, counts, rows, labels, weights = cell_problem(n, sizes, classes, kind == "left out, weighted")
    given = codes, offsets, counts, rows, 0.7, None if kind == "all rows" else labels, weights
    expected = evidence(*given)
    for dtype, rtol, atol in ((np.float64, 1e-12, 1e-13), (np.float32, 1e-6, 1e-6)):
        out = np.full((n, len(sizes), classes), 99, dtype)
        _kernels.cell_evidence(*given, out)
        np.testing.assert_allclose(out, np.nan_to_num(expected), rtol=rtol, atol=atol)
    for skip in (None, random(3).random(codes.shape) < 0.4):
        e = expected if skip is None else np.where(skip[:, :, np.newaxis], np.nan, expected)
        out = np.full((n, classes), 99.0)
        _kernels.mean_cell_evidence(*given, skip, out)
        taken = (~np.isnan(e[:, :, :1])).sum(axis=1)
        np.testing.assert_allclose(out, np.nansum(e, axis=1) / np.maximum(taken, 1), rtol=1e-12, atol=1e-13)


@layouts
@cases("kind", ["all rows", "left out", "left out, weighted"])
def test_cell_evidence_does_not_depend_on_threads_layout_or_company(threads, layout, kind):
    """A row alone has the same evidence as among others, though other logs are taken of other tables."""
    weighted = kind == "left out, weighted"
    codes, offsets, counts, rows, labels, weights = cell_problem(20_000, [3, 4, 1, 200], 3, weighted)
    labels = None if kind == "all rows" else labels
    whole, mean = np.empty((2, 20_000, 4, 3)), np.empty((2, 20_000, 3))
    for count, own in ((1, codes), (3, layout(codes))):
        threads(count)
        _kernels.cell_evidence(own, offsets, counts, rows, 0.7, labels, weights, whole[count // 2])
        _kernels.mean_cell_evidence(own, offsets, counts, rows, 0.7, labels, weights, None, mean[count // 2])
    assert np.array_equal(whole[0], whole[1])
    assert np.array_equal(mean[0], mean[1])
    for i in range(20):
        label, weight = (None if a is None else a[i : i + 1] for a in (labels, weights))
        alone = np.empty((1, 4, 3))
        _kernels.cell_evidence(codes[i : i + 1], offsets, counts, rows, 0.7, label, weight, alone)
        assert np.array_equal(alone[0], whole[0, i])


CELL = {
    "codes": np.ones((6, 3), np.int32),
    "offsets": np.array([0, 3, 4, 9]),
    "counts": np.ones((9, 2)),
    "rows": np.full(2, 6.0),
    "smoothing": 1.0,
    "labels": np.array([0, 1, 1, 0, 1, 0], np.int32),
    "weights": np.ones(6),
}


@cases(
    "name, says, values",
    [
        ("codes", "incompatible", [np.ones((6, 3), np.int64)]),
        ("offsets", "offsets", [np.array([1, 3, 4, 9]), np.array([0, 5, 4, 9])]),
        ("offsets", "counts", [np.array([0, 3, 4, 8])]),
        ("counts", "counts", [np.full((9, 2), value) for value in (-1.0, np.nan, np.inf)]),
        ("rows", "rows", [np.array([1.0, value]) for value in (0.0, -1.0, np.nan)]),
        ("smoothing", "smoothing", [0.0, np.inf, np.nan]),
        ("labels", "out of range", [[0, 1, 2, 0, 1, 0]]),
        ("weights", "weights", [[0, 1, -1, 0, 1, 0], [0, 1, np.nan, 0, 1, 0]]),
    ],
)
def test_evidence_that_cannot_be_is_refused(name, says, values):
    for value in values:
        refused(partial(_kernels.cell_evidence, out=np.zeros((6, 3, 2))), CELL, name, value, says)
        refused(partial(_kernels.mean_cell_evidence, skip=None, out=np.zeros((6, 2))), CELL, name, value, says)


@cases("out", [np.zeros((6, 3, 2), order="F"), np.zeros((6, 3, 4))[:, :, ::2], np.zeros((6, 3, 2), int)])
def test_evidence_is_written_in_place_or_not_at_all(out):
    with pytest.raises(TypeError):
        _kernels.cell_evidence(**CELL, out=out)
    with pytest.raises(TypeError):
        _kernels.mean_cell_evidence(**CELL, skip=None, out=out[:, 0])


# ---- gains of pairs ---------------------------------------------------------------------------------------------


def log_softmax(z):
    return z - logsumexp(z)


def pair_gain(x, labels, weights, classes, smoothing, a, b):
    """Σ N_y(u, v) [log softmax_y(log π' + e_pair) − log softmax_y(log π' + e_a + e_b)] / Σ w, term by term.

    Each row is left out of its cells and of the share π' of its class; an only row of a class adds nothing.
    """
    weights = np.ones(len(x)) if weights is None else weights
    total = np.bincount(labels, weights, classes)
    there = total > 0
    total = total[there]
    prior = total / total.sum()

    def counts(rows):
        return np.bincount(labels[rows], weights[rows], classes)[there]

    def e(n, left):
        n = np.where(n - left > 1e-12, n - left, 0.0) * total / (total - left)
        return np.log(n + smoothing * prior) - np.log(prior)

    gain = 0.0
    for u, v in {(u, v) for u, v in zip(x[:, a].tolist(), x[:, b].tolist(), strict=True)}:
        in_a, in_b = x[:, a] == u, x[:, b] == v
        together, first, second = counts(in_a & in_b), counts(in_a), counts(in_b)
        for y in np.flatnonzero(together > 0):
            left = np.zeros(len(total))
            left[y] = min(1.0, together[y])
            if left[y] >= total[y]:
                continue
            z = np.log(total - left)
            apart = log_softmax(z + e(first, left) + e(second, left))[y]
            gain += together[y] * (log_softmax(z + e(together, left))[y] - apart)
    return gain / weights.sum()


GAINS = {  # rows, sizes, classes, smoothing
    "two classes": (120, [4, 3, 5, 1], 2, 1.0),
    "many classes": (120, [6, 3, 9], 12, 0.3),
    "wide codes": (80, [256, 200, 3], 3, 2.0),
    "little smoothing": (120, [4, 3, 9], 3, 1e-9),
    "a row": (1, [4, 3], 2, 1.0),
}


@cases("weighted", [False, True])
@cases("n, sizes, classes, smoothing", GAINS)
def test_pair_gains_are_those_of_numpy(n, sizes, classes, smoothing, weighted):
    x, sizes, _, labels = forest_problem(n, sizes, classes)
    weights = random(2).integers(0, 4, n) * 0.7 + (n == 1) if weighted else None
    pairs = np.array([(a, b) for a in range(len(sizes)) for b in range(len(sizes))], np.int32)
    result = _kernels.pair_gains(x, sizes, labels, weights, classes, smoothing, pairs)
    expected = [pair_gain(x, labels, weights, classes, smoothing, a, b) for a, b in pairs.tolist()]
    np.testing.assert_allclose(result, expected, rtol=1e-11, atol=1e-13)


@layouts
@cases("weighted", [False, True])
def test_pair_gains_do_not_depend_on_threads_layout_or_order(threads, layout, weighted):
    x, sizes, _, labels = forest_problem(4000, [4, 3, 250, 200], 3)
    weights = random(10).uniform(1e-3, 1e3, 4000) if weighted else None
    pairs = np.array([(a, b) for a in range(4) for b in range(a)], np.int32)
    threads(1)
    expected = _kernels.pair_gains(x, sizes, labels, weights, 3, 1.0, pairs)
    rows, own, mass = shuffled(11, x, labels, weights)
    threads(3)
    assert np.array_equal(_kernels.pair_gains(layout(rows), sizes, own, mass, 3, 1.0, pairs), expected)


def test_two_columns_that_decide_only_together_gain():
    """y = a xor b: one column says nothing, both say all."""
    a, b, noise = random(12).integers(0, 2, (3, 4000))
    x = np.stack([a, b, noise], axis=1).astype(np.uint8)
    pairs = np.array([[0, 1], [0, 2], [2, 1]], np.int32)
    gains = _kernels.pair_gains(x, np.full(3, 2, np.int32), (a ^ b).astype(np.int32), None, 2, 1.0, pairs)
    assert abs(gains[0] - np.log(2)) < 0.01
    assert abs(gains[1:]).max() < 0.01


def test_the_only_row_of_a_class_adds_nothing():
    """Without it nothing is known of its class: what it would be given says nothing of the pair."""
    x = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [1, 1]], np.uint8)
    labels, sizes, pairs = np.array([0, 1, 1, 0, 2], np.int32), np.full(2, 2, np.int32), np.array([[0, 1]], np.int32)
    (result,) = _kernels.pair_gains(x, sizes, labels, None, 3, 1.0, pairs)
    assert result == pytest.approx(pair_gain(x, labels, None, 3, 1.0, 0, 1), rel=1e-12)
    alone = _kernels.pair_gains(x, sizes, np.arange(5, dtype=np.int32), None, 5, 1.0, pairs)
    assert alone.tolist() == [0.0]


def test_a_class_without_rows_changes_no_gain():
    x, sizes, _, labels = forest_problem(300, [4, 3, 9], 3)
    pairs = np.array([[0, 1], [0, 2], [2, 1]], np.int32)
    expected = _kernels.pair_gains(x, sizes, labels, None, 3, 1.0, pairs)
    result = _kernels.pair_gains(x, sizes, 2 * labels + 1, None, 8, 1.0, pairs)
    np.testing.assert_allclose(result, expected, rtol=1e-13, atol=1e-15)


@cases("weights", [None, np.zeros(2)])
def test_gains_of_nothing_are_none(weights):
    n = 0 if weights is None else 2
    none = np.zeros((n, 2), np.uint8), np.ones(2, np.int32), np.zeros(n, np.int32), weights, 1, 1.0
    assert _kernels.pair_gains(*none, np.array([[0, 1]], np.int32)).tolist() == [0.0]
    assert _kernels.pair_gains(*none, np.zeros((0, 2), np.int32)).tolist() == []


@cases(
    "name, says, values",
    [
        ("pairs", "pairs", [np.array(pair, np.int32) for pair in ([[0, 3]], [[-1, 2]], [[0, 1, 2]])]),
        ("smoothing", "smoothing", [0.0]),
        ("weights", "weights", [np.full(6, -1.0)]),
        ("sizes", "not below the size", [[3, 1, 4]]),
        ("classes", "out of range", [1]),
    ],
)
def test_gains_that_cannot_be_are_refused(name, says, values):
    given = {key: GROWN[key] for key in ("codes", "sizes", "labels", "weights", "classes")}
    given |= {"smoothing": 1.0, "pairs": np.array([[0, 2]], np.int32)}
    for value in values:
        refused(_kernels.pair_gains, given, name, value, says)
