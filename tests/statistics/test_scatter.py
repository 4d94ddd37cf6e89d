"""Scatter: sums of products about an origin near the data."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from deciban.errors import NegativeEvidence
from deciban.statistics import Scatter
from tests.cases import cases
from tests.laws import Subject, equal_statistics, matrices, nans, tame, wild


def agree(actual, expected, rows):
    """To 1e-12 of the size of the products: the weight of all rows, times how far they lie from an origin, squared."""
    assert actual.count == expected.count
    assert actual.skipped == expected.skipped
    x = rows.values[~np.isnan(rows.values).any(axis=1)]
    if not len(x):
        return
    weight = len(x) * (1.0 if rows.weights is None else 7.25)
    largest = np.abs(x).max(axis=0)
    reach = np.ptp(x, axis=0) + 1e-7 * largest
    assert (np.abs(actual.within - expected.within) <= 1e-12 * weight * np.outer(reach, reach)).all()
    count = expected.count.value[:, np.newaxis]
    error = count * np.abs(actual.mean - expected.mean)
    assert (error <= 1e-12 * weight * reach + 1e-15 * count * largest).all()


SUBJECTS = [
    Subject(Scatter, f"Scatter({kind}, {size})", partial(Scatter.of, shared=kind == "shared"), matrices(cells | nans),
            agree, independent_classes=kind != "shared", joint=True)
    for kind in ("shared", "per-class")
    for size, cells in {"wild": wild, "tame": tame}.items()
]  # fmt: skip


def of(x, labels=None, weights=None, *, shared=False, classes=None):
    labels = np.zeros(len(x), np.int32) if labels is None else np.asarray(labels, np.int32)
    return Scatter.of(
        np.asarray(x, np.float64), labels, weights, classes or int(labels.max(initial=0)) + 1, shared=shared
    )


def slowly(x, labels, weights, classes):
    """Mean and within-class scatter of every class, by fractions."""
    whole = ~np.isnan(x).any(axis=1)
    means, scatters = [], []
    for c in range(classes):
        chosen = whole & (labels == c)
        w = [Fraction(v) for v in weights[chosen]]
        rows = [[Fraction(v) for v in row] for row in x[chosen].tolist()]
        d = x.shape[1]
        mean = [sum(a * row[j] for a, row in zip(w, rows, strict=True)) / sum(w) for j in range(d)]
        scatters.append(
            [
                [
                    float(sum(a * (r[i] - mean[i]) * (r[j] - mean[j]) for a, r in zip(w, rows, strict=True)))
                    for j in range(d)
                ]
                for i in range(d)
            ]
        )
        means.append([float(m) for m in mean])
    return np.array(means), np.array(scatters)


@cases("offset", [0.0, 1e8])
@cases("weighted", [False, True])
def test_mean_and_scatter_are_those_of_fractions_however_far_from_zero(offset, weighted):
    rng = np.random.default_rng(0)
    x, labels = offset + rng.normal(size=(60, 3)), rng.integers(0, 2, 60)
    x[5, 1] = x[17, 0] = np.nan
    weights = rng.random(60) if weighted else np.ones(60)
    means, scatters = slowly(x, labels, weights, 2)
    each = of(x, labels, weights if weighted else None)
    pooled = of(x, labels, weights if weighted else None, shared=True)
    np.testing.assert_allclose(each.mean, means, rtol=1e-15)
    np.testing.assert_allclose(each.within, scatters, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(pooled.within[0], scatters.sum(axis=0), rtol=1e-12, atol=1e-12)


@cases("shared", [False, True])
def test_classes_far_apart_do_not_blur_each_other(shared):
    x = np.random.default_rng(1).normal(size=(200, 2))
    labels = np.arange(200) % 2
    apart = x + 2.0**40 * labels[:, np.newaxis]
    x = apart - 2.0**40 * labels[:, np.newaxis]  # what was left of it after rounding
    near, far = of(x, labels, shared=shared), of(apart, labels, shared=shared)
    np.testing.assert_allclose(far.within, near.within, rtol=1e-12, atol=1e-12 * 200)


def test_rows_with_a_missing_value_are_left_out_and_counted():
    result = of([[1.0, 2.0], [np.nan, 2.0], [3.0, np.nan], [5.0, 6.0]], [0, 0, 1, 1])
    assert result.count.value.tolist() == [1, 1]
    assert result.skipped.value.tolist() == [1, 1]


@cases("shared", [False, True])
@cases("batch", [1, 7, 100])
def test_nothing_is_left_of_a_constant_column(shared, batch):
    x = np.column_stack([np.random.default_rng(5).normal(size=100), np.full(100, 1e8 + 0.1)])
    labels = np.arange(100) % 3
    total = of(x[:0], labels[:0], shared=shared, classes=3)
    for i in range(0, 100, batch):
        total = total + of(x[i : i + batch], labels[i : i + batch], shared=shared, classes=3)
    assert (total.mean[:, 1] == 1e8 + 0.1).all()
    assert not total.within[:, 1].any()
    assert not total.within[:, :, 1].any()


def test_moving_the_origin_changes_nothing_but_the_origin():
    s = of(np.random.default_rng(2).normal(size=(50, 3)))
    moved = s.about(np.array([[3.0, -1.0, 0.5]]))
    np.testing.assert_allclose(moved.within, s.within, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(moved.mean, s.mean, rtol=1e-12, atol=1e-12)


def test_a_class_that_comes_later_has_its_own_scatter():
    """One class alone also has one matrix, but it is not everybody's."""
    rng = np.random.default_rng(3)
    first, later = rng.normal(size=(20, 2)), 5 * rng.normal(size=(20, 2))
    merged = of(first).reindex_classes([0], 2) + of(later).reindex_classes([1], 2)
    np.testing.assert_allclose(
        merged.within, [20 * np.cov(x.T, ddof=0) for x in (first, later)], rtol=1e-12, atol=1e-12
    )


@cases("shared", [False, True])
def test_forgetting_everything_leaves_nothing(shared):
    x = np.random.default_rng(4).normal(size=(30, 3)) + 1e6
    s = of(x, shared=shared)
    left = (s + s) - s - s
    assert not left.count.value.any()
    assert not left.products.any()
    assert not left.sum.any()


def test_rows_never_learned_cannot_be_forgotten():
    with pytest.raises(NegativeEvidence):
        of([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]]) - of([[50.0, 50.0]])


@cases("shared", [False, True])
@cases("value", [0.0, 0.1, 1e8 + 0.1])
def test_nothing_is_left_of_a_column_that_is_constant_without_the_row(shared, value):
    """Where a difference leaves rounding; and the classes have one mean there, to the last bit."""
    rng = np.random.default_rng(6)
    x = np.column_stack([rng.normal(size=40), np.full(40, value)])
    labels = np.arange(40) % 3
    x[7, 1] += 3.0
    row = of(x[[7]], labels[[7]], shared=shared, classes=3)
    left = of(x, labels, shared=shared).subtract_row(row)
    expected = of(np.delete(x, 7, axis=0), np.delete(labels, 7), shared=shared)
    assert not left.within[:, 1].any()
    assert not left.within[:, :, 1].any()
    assert (left.mean[:, 1] == left.mean[0, 1]).all()
    np.testing.assert_allclose(left.mean, expected.mean, rtol=1e-15, atol=1e-15)
    np.testing.assert_allclose(left.within, expected.within, rtol=1e-12, atol=1e-12)


def test_without_a_row_is_the_difference_where_columns_vary_and_nothing_where_one_row_is_left():
    x, labels = np.random.default_rng(7).normal(size=(30, 3)), np.arange(30) % 2
    for shared in (False, True):
        s, row = of(x, labels, shared=shared), of(x[[4]], labels[[4]], shared=shared, classes=2)
        equal_statistics(s.subtract_row(row), s - row, None)
    x = np.random.default_rng(8).normal(size=(10, 2))
    labels = np.array([0] * 8 + [1, 1])
    left = of(x, labels).subtract_row(of(x[[9]], labels[[9]], classes=2))
    assert not left.within[1].any()
    np.testing.assert_allclose(left.mean[1], x[8], rtol=1e-15)
