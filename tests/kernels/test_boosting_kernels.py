"""Kernels of boosted symmetric trees, against a plain one in NumPy."""

import signal as signals

import numpy as np
import pytest

from deciban import _kernels
from tests.kernels.test_kernels import threads

__all__ = ["threads"]

N, ENSEMBLES, DEPTH, RATE, L2 = 240, 5, 3, 0.3, 1.0
SIZES, ORDERED = np.array([9, 4, 7], np.int32), np.array([True, False, True])


def made(classes=2, n=N, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, size, n) for size in SIZES], axis=1).astype(np.uint8)
    signal = (codes[:, 0] > 4) ^ (codes[:, 1] == 2)
    labels = np.where(rng.random(n) < 0.7, signal + (codes[:, 2] > 3) * (classes > 2), rng.integers(0, classes, n))
    return np.asfortranarray(codes), labels.astype(np.int32)


def grown(codes, labels, weights=None, *, classes=2, rounds=20, rows=1.0, columns=1.0, depth=DEPTH, seed=3):
    settings = classes, ENSEMBLES, rounds, depth, RATE, L2, rows, columns, seed
    return _kernels.boost(codes, SIZES, ORDERED, labels, weights, *settings)


def goes_right(codes, column, code):
    return codes[:, column] > code if ORDERED[column] else codes[:, column] != code


def leaves_of(codes, column, code):
    leaf = np.zeros(len(codes), int)
    for j, at in zip(column, code, strict=True):
        leaf = 2 * leaf + (goes_right(codes, j, at) if j >= 0 else 0)
    return leaf


def slopes_of(scores, labels):
    if scores.shape[1] == 1:
        p = 1 / (1 + np.exp(-scores))
        return p - labels[:, np.newaxis], p * (1 - p)
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return p - np.eye(scores.shape[1])[labels], p * (1 - p)


def plain(codes, labels, classes, rounds):
    """Splits and values of one ensemble, by trying every split; the mean of a tree over its rows is not subtracted."""
    counts = np.bincount(labels, minlength=classes) + 1 / classes
    prior = np.log(counts[1:] / counts[0]) if classes == 2 else np.log(counts)
    scores, trees = np.tile(prior, (len(codes), 1)), []
    for _ in range(rounds):
        g, h = slopes_of(scores, labels)
        leaf, splits = np.zeros(len(codes), int), []
        for _ in range(DEPTH):
            gains = {}
            for j, size in enumerate(SIZES):
                for code in range(size - 1):
                    children = 2 * leaf + goes_right(codes, j, code)
                    gains[j, code] = score(g, h, children) - score(g, h, leaf)
            best = max(gains.values())
            if best < 1e-9:
                break
            splits.append(next(split for split, gain in gains.items() if gain > best - 1e-9 * abs(best)))
            leaf = 2 * leaf + goes_right(codes, *splits[-1])
        spare = DEPTH - len(splits)
        splits += [(-1, 0)] * spare
        leaf <<= spare
        sums = [np.stack([np.bincount(leaf, each, 1 << DEPTH) for each in one.T], axis=1) for one in (g, h)]
        reached = np.arange(1 << DEPTH) >> spare << spare
        values = (-RATE * sums[0] / (sums[1] + L2))[reached]
        scores = scores + values[leaf]
        virtual = (reached == np.arange(1 << DEPTH)) / (1 << len(splits) - spare)
        trees.append((splits, values, np.bincount(leaf, minlength=1 << DEPTH) + virtual))
    return trees


def score(g, h, leaf):
    total = 0.0
    for each in np.unique(leaf):
        here = leaf == each
        total += (g[here].sum(axis=0) ** 2).sum() / (h[here].sum() / h.shape[1] + L2)
    return total


@pytest.mark.parametrize(("classes", "rounds"), [(2, 40), (3, 20)])
def test_ensembles_are_newton_steps_from_the_rows_of_the_other_folds(classes, rounds):
    """How many rounds an ensemble keeps is chosen by the rows that the others have not seen."""
    codes, labels = made(classes)
    starts, column, code, value, rows = grown(codes, labels, classes=classes, rounds=rounds)
    fold = _kernels.find_ensembles(codes, ENSEMBLES, 3)
    assert {*fold.tolist()} == {*range(ENSEMBLES)}
    losses = np.empty((rounds // 20, ENSEMBLES))
    for e in range(ENSEMBLES):
        seen = fold != e
        trees = plain(codes[seen], labels[seen], classes, rounds)
        for t, (splits, values, weight) in zip(range(starts[e], starts[e + 1]), trees, strict=False):
            assert [*zip(column[t].tolist(), code[t].tolist(), strict=True)] == splits
            np.testing.assert_allclose(rows[t], weight)
            centre = rows[t] @ values / rows[t].sum()
            np.testing.assert_allclose(value[t], values - centre, atol=1e-8)
        if classes == 2:
            losses[:, e] = [held_out_loss(codes, labels, seen, trees[:end]) for end in (20, 40)]
    if classes == 2:
        kept = [20 * (1 + np.delete(losses, e, axis=1).sum(axis=1).argmin()) for e in range(ENSEMBLES)]
        assert np.diff(starts).tolist() == kept


def held_out_loss(codes, labels, seen, trees):
    """−log p of two classes, summed over the rows that an ensemble has not seen."""
    others = np.bincount(labels[seen], minlength=2) + 0.5
    z = np.log(others[1] / others[0]) + sum(
        values[leaves_of(codes[~seen], *zip(*splits, strict=True)), 0] for splits, values, _ in trees
    )
    return np.logaddexp(0, np.where(labels[~seen] == 1, -z, z)).sum()


def test_labels_without_any_signal_are_given_up_early():
    codes, _ = made()
    noise = np.random.default_rng(1).integers(0, 2, N).astype(np.int32)
    assert (np.diff(grown(codes, noise, rounds=400)[0]) == 20).all()
    clear = ((codes[:, 0] > 4) ^ (codes[:, 1] == 2)).astype(np.int32)
    assert (np.diff(grown(codes, clear, rounds=60)[0]) == 60).all()


class Interrupted(Exception):
    """Raised by a handler of a signal."""


def test_a_signal_ends_the_growth():
    """The handler runs between rounds: without it this would take minutes."""

    def interrupt(*_):
        raise Interrupted

    codes, labels = made(n=20_000)
    before = signals.signal(signals.SIGALRM, interrupt)
    signals.setitimer(signals.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(Interrupted):
            grown(codes, labels, rounds=65_536)
    finally:
        signals.setitimer(signals.ITIMER_REAL, 0)
        signals.signal(signals.SIGALRM, before)


def test_neither_order_nor_threads_nor_chance_matter_and_weight_two_is_the_row_twice(threads):
    rng = np.random.default_rng(2)
    codes, labels = made(3)
    times = rng.integers(0, 4, N)
    settings = {"classes": 3, "rows": 0.7, "columns": 0.6, "rounds": 40}
    order = rng.permutation(N)
    threads(1)
    expected = grown(codes, labels, times.astype(float), **settings)
    threads(3)
    again = np.repeat(np.arange(N), times)
    for other in (
        grown(np.asfortranarray(codes[order]), labels[order], times[order].astype(float), **settings),
        grown(np.asfortranarray(codes[again]), labels[again], **settings),
    ):
        for a, b in zip(expected, other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_more_classes_than_directions_are_learned():
    codes, _ = made()
    labels = (codes[:, 0] % 9).astype(np.int32)
    starts, column, code, value, _ = grown(codes, labels, classes=9, rounds=100)
    own = _kernels.find_ensembles(codes, ENSEMBLES, 3)
    total = np.zeros((N, 9))
    for e in range(ENSEMBLES):
        for t in range(starts[e], starts[e + 1]):
            total[own == e] += value[t][leaves_of(codes[own == e], column[t], code[t])]
    assert (total.argmax(axis=1) == labels).mean() > 0.9


# Scoring -------------------------------------------------------------------------------------------------------------


def heap(value, rows):
    """The means and rows of all nodes, a node at a time."""
    trees, leaves, outputs = value.shape
    mean, total = np.zeros((trees, 2 * leaves, outputs)), np.zeros((trees, 2 * leaves))
    mean[:, leaves:], total[:, leaves:] = value, rows
    for node in reversed(range(1, leaves)):
        total[:, node] = total[:, 2 * node] + total[:, 2 * node + 1]
        for t in np.flatnonzero(total[:, node]):
            children = [2 * node, 2 * node + 1]
            mean[t, node] = total[t, children] @ mean[t, children] / total[t, node]
    return mean, total


def expected_of(row, unknown, column, code, mean, total, levels):
    """The mean of the nodes of a level that a row may be in."""
    nodes = [1]
    for j, at in zip(column[:levels], code[:levels], strict=True):
        if unknown[j]:
            nodes = [child for node in nodes for child in (2 * node, 2 * node + 1)]
        else:
            nodes = [2 * node + int(goes_right(row[np.newaxis], j, at)[0]) for node in nodes]
    return total[nodes] @ mean[nodes] / total[nodes].sum()


@pytest.mark.parametrize("classes", [2, 3])
def test_where_values_are_unknown_a_row_has_the_mean_of_both_sides(classes):
    codes, labels = made(classes)
    starts, column, code, value, rows = grown(codes, labels, classes=classes)
    mean, total = heap(value, rows)
    ensemble = np.repeat(np.arange(ENSEMBLES, dtype=np.int32), np.diff(starts))
    part = (np.arange(len(column)) % 2).astype(np.int32)
    asked, unknown = codes[:40], np.random.default_rng(4).random((40, 3)) < 0.3
    splits = column, code, ORDERED, mean, total
    actual = _kernels.leaf_values(asked, unknown, *splits, part, 2, None, ensemble)
    shares = _kernels.symmetric_contributions(asked, unknown, *splits)
    expected, by_feature = np.zeros_like(actual), np.zeros_like(shares)
    for i in range(40):
        for t in range(len(column)):
            levels = [j for j in column[t].tolist() if j >= 0]
            path = [
                expected_of(asked[i], unknown[i], column[t], code[t], mean[t], total[t], level)
                for level in range(len(levels) + 1)
            ]
            expected[i, part[t]] += path[-1]
            for level, j in enumerate(levels):
                by_feature[i, j] += path[level + 1] - path[level]
    np.testing.assert_allclose(actual, expected, atol=1e-12)
    np.testing.assert_allclose(shares, by_feature, atol=1e-12)
    np.testing.assert_allclose(shares.sum(axis=1), actual.sum(axis=1), atol=1e-9)  # the mean of each tree is 0
    assert not shares[unknown].any()
    known = _kernels.leaf_values(asked, None, *splits, part, 2, None, ensemble)
    np.testing.assert_array_equal(known[~unknown.any(axis=1)], actual[~unknown.any(axis=1)])
    own = _kernels.find_ensembles(asked, ENSEMBLES, 3)
    of_one = _kernels.leaf_values(asked, unknown, *splits, ensemble, ENSEMBLES, own, ensemble)
    each = _kernels.leaf_values(asked, unknown, *splits, ensemble, ENSEMBLES, None, ensemble)
    np.testing.assert_array_equal(of_one[np.arange(40), own], each[np.arange(40), own])
    assert np.count_nonzero(of_one.any(axis=2)) == 40


def test_trees_of_fewer_levels_than_others():
    """With nothing left to split, a tree ends early, and its leaves are still means of what is below."""
    codes, labels = made()
    two = np.asfortranarray(np.minimum(codes, 1))
    starts, column, code, value, rows = grown(two, labels, rounds=20, depth=6)
    assert (column[:, -1] < 0).any()
    mean, total = heap(value, rows)
    leaf = np.array([leaves_of(two, *split) for split in zip(column, code, strict=True)]).T
    values = np.take_along_axis(value[..., 0].T, leaf, axis=0).sum(axis=1)
    shares = _kernels.symmetric_contributions(two, None, column, code, ORDERED, mean, total)
    np.testing.assert_allclose(shares[..., 0].sum(axis=1), values, atol=1e-9)
    assert starts[-1] == len(column)


def test_arguments_that_do_not_fit_raise():
    codes, labels = made()
    starts, column, code, value, rows = grown(codes, labels)
    mean, total = heap(value, rows)
    ensemble = np.repeat(np.arange(ENSEMBLES, dtype=np.int32), np.diff(starts))
    part = np.zeros(len(column), np.int32)
    for changed, match in [
        ({0: codes[:, :2].copy(order="F")}, "ordered has length 3, expected 2"),
        ({2: np.where(column == 0, 3, column)}, "splits an unknown column"),
        ({3: code[:-1]}, "code has length"),
        ({5: mean[:, :-1].copy()}, "mean has length"),
        ({7: part + 1}, "a tree is of an unknown part"),
        ({10: ensemble[:-1]}, "ensemble_of_tree has length"),
    ]:
        arguments = [codes, None, column, code, ORDERED, mean, total, part, 1, None, ensemble]
        for place, value in changed.items():
            arguments[place] = value
        with pytest.raises(ValueError, match=match):
            _kernels.leaf_values(*arguments)
    for settings, match in [
        ({"depth": 9}, "depth must be"),
        ({"rows": 0.0}, "row_fraction"),
        ({"classes": 1}, "class code out of range"),
    ]:
        with pytest.raises(ValueError, match=match):
            grown(codes, labels, **settings)
