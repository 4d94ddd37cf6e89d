"""Forests, evidence of cells and gains of pairs: every kernel against plain numpy."""

import numpy as np
import pytest
from scipy.special import logsumexp

from deciban import _kernels
from tests.test_kernels import layouts, random, threads

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


def best_cut(x, ordered, labels, weights, classes, columns, tries, least):
    """(column, code) of the highest Σ L_k²/L + Σ R_k²/R, or None; constant columns are not tried."""
    best, chosen, tried = gini(labels, weights, classes) * (1 + 1e-12), None, 0
    for column in columns:
        codes = np.unique(x[:, column])
        if len(codes) == 1:
            continue
        for code in codes[: -1 if ordered[column] else None].tolist():
            left = x[:, column] <= code if ordered[column] else x[:, column] == code
            if min(weights[left].sum(), weights[~left].sum()) < least:
                continue
            score = gini(labels[left], weights[left], classes) + gini(labels[~left], weights[~left], classes)
            if score > best:
                best, chosen = score, (column, code)
        tried += 1
        if tried == tries:
            break
    return chosen


def grow(x, ordered, labels, weights, classes, tree, share, tries, least, most_deep, seed):
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
        cut = best_cut(x[own], ordered, labels[own], weights[own], classes, columns, tries, least)
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


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "sizes", "classes", "share", "tries", "least", "deep"), FORESTS.values(), ids=FORESTS)
def test_a_forest_is_that_of_numpy(weighted, n, sizes, classes, share, tries, least, deep):
    x, sizes, ordered, labels = forest_problem(n, sizes, classes)
    weights = random(1).integers(0, 9, n) / 8.0 if weighted else None  # eighths, so that sums are exact in any order
    forest = _kernels.grow_forest(x, sizes, ordered, labels, weights, classes, 3, share, tries, least, deep, 7)
    starts, *nodes = forest
    found = _kernels.find_leaves(x, *forest, ordered)
    for t in range(3):
        expected, leaves = grow(x, ordered, labels, weights, classes, t, share, tries, least, deep, 7)
        np.testing.assert_array_equal(np.stack(nodes, axis=1)[starts[t] : starts[t + 1]], expected)
        np.testing.assert_array_equal(found[:, t], leaves)


def scikit_learns(starts, column, code, left):
    """Whether each node's children are there, and how deep each node is."""
    depth = np.zeros(len(column), int)
    for begin, end in zip(starts, starts[1:], strict=False):
        for node in range(begin, end):
            if column[node] >= 0:
                depth[begin + left[node] : begin + left[node] + 2] = depth[node] + 1
    return depth


@layouts
def test_a_forest_is_the_same_in_any_layout(layout):
    x, sizes, ordered, labels = forest_problem(200, [6, 4, 9, 2], 3)
    arguments = (sizes, ordered, labels, None, 3, 4, 0.6, 2, 2, 99, 5)
    forest = _kernels.grow_forest(x, *arguments)
    assert all(map(np.array_equal, forest, _kernels.grow_forest(layout(x), *arguments)))
    assert np.array_equal(_kernels.in_bag(x, 4, 0.6, 5), _kernels.in_bag(layout(x), 4, 0.6, 5))
    assert np.array_equal(_kernels.find_leaves(x, *forest, ordered), _kernels.find_leaves(layout(x), *forest, ordered))


# ---- evidence of cells ------------------------------------------------------------------------------------------


def evidence(codes, offsets, counts, prior, smoothing, labels, weights):
    """e_k = log(N_k(v) + s π_k) − log π_k less its mean; NaN where the cell is missing."""
    n, m = codes.shape
    size = np.diff(offsets)
    there = (codes >= 0) & (codes < size)
    own = counts[(offsets[:-1] + np.where(there, codes, 0)).clip(0, max(len(counts) - 1, 0))]  # (n, m, K)
    if labels is not None:
        weights = np.ones(n) if weights is None else weights
        rows = np.arange(n)
        own[rows, :, labels] = np.maximum(own[rows, :, labels] - weights[:, np.newaxis], 0.0)
    e = np.log(own + smoothing * prior) - np.log(prior)
    e -= e.mean(axis=2, keepdims=True)
    e[~there] = np.nan
    return e


def cell_problem(n, sizes, classes, weighted, seed=0):
    """codes, offsets, counts, prior, labels, weights; some cells missing, some counts of other rows."""
    rng, m = random(seed), len(sizes)
    codes = np.stack([rng.integers(-1, size + 2, n) for size in sizes], axis=1).astype(np.int32).reshape(n, m)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    labels = rng.integers(0, classes, n).astype(np.int32)
    weights = rng.integers(0, 5, n) / 2.0 if weighted else None
    counts = rng.integers(0, 4, (offsets[-1], classes)) * rng.integers(0, 2, (offsets[-1], classes)).astype(float)
    np.add.at(counts, ((offsets[:-1] + codes)[codes == 0], np.repeat(labels, m).reshape(n, m)[codes == 0]), 1.0)
    return codes, offsets, counts, rng.dirichlet(np.ones(classes)), labels, weights


CELLS = {  # rows, sizes, classes
    "few cells": (300, [3, 4, 1, 2], 2),
    "more cells than codes": (5, [100, 40, 30], 3),
    "many classes": (60, [5, 6, 7], 17),
    "one class": (20, [3, 2], 1),
    "no rows": (0, [3, 2], 2),
    "one column": (50, [9], 4),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["all rows", "left out", "left out, weighted"])
@pytest.mark.parametrize(("n", "sizes", "classes"), CELLS.values(), ids=CELLS)
def test_cell_evidence_is_that_of_numpy(n, sizes, classes, kind, dtype):
    codes, offsets, counts, prior, labels, weights = cell_problem(n, sizes, classes, kind == "left out, weighted")
    labels = None if kind == "all rows" else labels
    out = np.full((n, len(sizes), classes), 99, dtype)
    _kernels.cell_evidence(codes, offsets, counts, prior, 0.7, labels, weights, out)
    expected = np.nan_to_num(evidence(codes, offsets, counts, prior, 0.7, labels, weights))
    np.testing.assert_allclose(out, expected, rtol=1e-12 if dtype == np.float64 else 1e-6, atol=1e-13 if dtype == np.float64 else 1e-6)


@pytest.mark.parametrize("skipping", [False, True])
@pytest.mark.parametrize("kind", ["all rows", "left out", "left out, weighted"])
@pytest.mark.parametrize(("n", "sizes", "classes"), CELLS.values(), ids=CELLS)
def test_mean_cell_evidence_is_that_of_numpy(n, sizes, classes, kind, skipping):
    codes, offsets, counts, prior, labels, weights = cell_problem(n, sizes, classes, kind == "left out, weighted")
    labels = None if kind == "all rows" else labels
    skip = random(3).random(codes.shape) < 0.4 if skipping else None
    out = np.full((n, classes), 99.0)
    _kernels.mean_cell_evidence(codes, offsets, counts, prior, 0.7, labels, weights, skip, out)
    e = evidence(codes, offsets, counts, prior, 0.7, labels, weights)
    if skipping:
        e[skip] = np.nan
    taken = (~np.isnan(e[:, :, :1])).sum(axis=1)
    expected = np.nansum(e, axis=1) / np.maximum(taken, 1)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-13)


# ---- gains of pairs ---------------------------------------------------------------------------------------------


def log_softmax(z):
    return z - logsumexp(z)


def pair_gain(x, labels, weights, classes, smoothing, a, b):
    """Σ N_y(u, v) [log softmax_y(log π + e_pair) − log softmax_y(log π + e_a + e_b)] / Σ w, term by term."""
    weights = np.ones(len(x)) if weights is None else weights
    total = np.bincount(labels, weights, classes)
    there = total > 0
    prior = total[there] / total.sum()

    def counts(rows):
        return np.bincount(labels[rows], weights[rows], classes)[there]

    def e(n, y, w):
        n = n.copy()
        n[y] = max(n[y] - w, 0.0)
        return np.log(n + smoothing * prior) - np.log(prior)

    gain = 0.0
    for u, v in {(u, v) for u, v in zip(x[:, a].tolist(), x[:, b].tolist(), strict=True)}:
        in_a, in_b = x[:, a] == u, x[:, b] == v
        together, first, second = counts(in_a & in_b), counts(in_a), counts(in_b)
        for y in np.flatnonzero(together > 0):
            w = min(1.0, together[y])
            apart = log_softmax(np.log(prior) + e(first, y, w) + e(second, y, w))[y]
            gain += together[y] * (log_softmax(np.log(prior) + e(together, y, w))[y] - apart)
    return gain / weights.sum()


GAINS = {  # rows, sizes, classes, smoothing
    "two classes": (300, [4, 3, 5, 1], 2, 1.0),
    "many classes": (200, [6, 3, 9], 12, 0.3),
    "wide codes": (150, [256, 200, 3], 3, 2.0),
    "little smoothing": (200, [4, 3, 9], 3, 1e-9),
    "a row": (1, [4, 3], 2, 1.0),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "sizes", "classes", "smoothing"), GAINS.values(), ids=GAINS)
def test_pair_gains_are_those_of_numpy(n, sizes, classes, smoothing, weighted):
    x, sizes, _, labels = forest_problem(n, sizes, classes)
    weights = random(2).integers(0, 4, n) * 0.7 + (n == 1) if weighted else None
    pairs = np.array([(a, b) for a in range(len(sizes)) for b in range(len(sizes))], np.int32)
    found = _kernels.pair_gains(x, sizes, labels, weights, classes, smoothing, pairs)
    expected = [pair_gain(x, labels, weights, classes, smoothing, a, b) for a, b in pairs.tolist()]
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)
