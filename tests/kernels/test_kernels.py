"""Every kernel against plain numpy or fractions."""

import re
from fractions import Fraction
from math import fsum
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from deciban import _kernels
from tests import exact
from tests.cases import cases
from tests.statistics.test_histogram import least_level, ordered

NONE = np.zeros(0, np.int32)


def frozen(x):
    x = x.copy()
    x.flags.writeable = False
    return x


def inside_a_wider_one(x):
    wide = np.full((x.shape[0], x.shape[1] + 3), 99, x.dtype)
    wide[:, 1 : 1 + x.shape[1]] = x
    return wide[:, 1 : 1 + x.shape[1]]


LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "rows backwards": lambda x: x[::-1].copy()[::-1],
    "columns backwards": lambda x: x[:, ::-1].copy()[:, ::-1],
    "every other row": lambda x: np.repeat(x, 2, axis=0)[::2],
    "every other column": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "part of a wider one": inside_a_wider_one,
    "read-only": frozen,
}
layouts = cases("layout", LAYOUTS)


@pytest.fixture
def threads():
    yield _kernels.set_threads
    _kernels.set_threads(0)


def random(seed=0):
    return np.random.default_rng(seed)


def wild_matrix(n, d, seed=0, decades=100):
    """Numbers of every size, zeros and missing values."""
    rng = random(seed)
    x = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-decades, decades, size=(n, d))
    x[rng.random((n, d)) < 0.1] = 0.0
    x[rng.random((n, d)) < 0.1] = np.nan
    return x


def with_missing(x, seed=99):
    x = x.copy()
    x[random(seed).random(x.shape) < 0.15] = np.nan
    return x


# ---- exact sums -------------------------------------------------------------------------------------------------


def assert_exact_moments(x, labels, weights, classes):
    *result, bad = _kernels.moments(x, labels, weights, classes)
    assert bad is None
    for words, table in zip(result, exact.moments(x, labels, weights, classes), strict=True):
        assert np.array_equal(words, exact.as_words(table))


@cases("d", range(1, 10))
@cases("decades", [0.5, 100])
def test_moments_are_exact_for_any_number_of_columns(d, decades):
    x, labels = wild_matrix(70, d, seed=d, decades=decades), random(1).integers(0, 3, 70).astype(np.int32)
    assert_exact_moments(x, labels, None, 3)
    assert_exact_moments(x, labels, random(2).random(70), 3)


@layouts
@cases("d", [3, 6])
@cases("dtype", [np.float64, np.float32])
def test_moments_are_exact_in_any_layout(layout, d, dtype):
    x = layout(wild_matrix(50, d, decades=15).astype(dtype))
    labels = random(3).integers(0, 2, 50).astype(np.int32)
    assert_exact_moments(x, labels, None, 2)
    assert_exact_moments(x, labels, random(4).integers(0, 4, 50).astype(np.float64), 2)


@cases("classes", [1, 2])
def test_moments_are_exact_for_more_rows_than_are_added_before_a_flush(classes):
    """All 53 bits in use, at both ends of the window of 19 binades, 9,000 rows."""
    rng = random(5)
    mantissa = 1.0 + (2**52 - 1 - rng.integers(0, 1000, size=(9000, 2))) * 2.0**-52
    x = mantissa * 2.0 ** rng.choice([-9, -8, 8, 9], size=(9000, 2))
    assert_exact_moments(x, (np.arange(9000) % classes).astype(np.int32), None, classes)


def weights_of(kinds, seed=50):
    rng = random(seed)
    return rng.choice(10.0 ** rng.uniform(-3, 3, kinds), 400)


MOMENTS = {  # values, classes, weights
    "a window that was chosen from other rows": (np.repeat([1.1, 1.1e30, -1.1e-30], 1500)[:, np.newaxis], 1, None),
    "columns that take several passes": (wild_matrix(40, 35, decades=5), 1000, None),
    # up to 64 groups of class and weight are added plainly and scaled; beyond, every row is multiplied
    **{f"{k} weights": (wild_matrix(400, 3, decades=25), 3, weights_of(k)) for k in (1, 3, 21, 22, 300)},
    "every size": (wild_matrix(400, 2, decades=125), 2, None),
    "every size, many weights": (wild_matrix(400, 2, decades=125), 2, random(52).random(400)),
    "every size, one weight": (wild_matrix(400, 2, decades=125), 2, np.full(400, 0.3)),
    "weights that were like others at first": (
        random(51).normal(size=(900, 2)),
        1,
        random(52).random(900) * np.repeat([1.0, 1e20, 1e-20], 300),
    ),
}


@cases("x, classes, weights", MOMENTS)
def test_moments_are_exact(x, classes, weights):
    assert_exact_moments(x, random(6).integers(0, classes, len(x)).astype(np.int32), weights, classes)


@cases("d", [2, 5])
@cases("weights", [None, np.ones(300)])
def test_moments_name_the_first_cell_too_large_to_square(d, weights):
    x = random(9).normal(size=(300, d))
    assert _kernels.moments(x, np.zeros(300, np.int32), weights, 1)[3] is None
    x[250, 0], x[211, 1], x[211, d - 1] = 1e160, np.inf, -np.inf
    assert _kernels.moments(x, np.zeros(300, np.int32), weights, 1)[3] == (211, 1)


def test_moments_of_no_rows_are_nothing():
    count, sum_x, sum_xx, bad = _kernels.moments(np.zeros((0, 3)), NONE, None, 2)
    assert bad is None
    assert all(np.array_equal(words, np.zeros((1, 2, 3))) for words in (count, sum_x, sum_xx))


@cases("weighted", [False, True])
def test_centre_of_hundreds_of_rows_of_every_size(weighted):
    x, weights = np.nan_to_num(wild_matrix(300, 1, decades=125)), random(54).random(300) if weighted else None
    sums = exact.moments(x, np.zeros(300, np.int32), weights, 1)
    mean, squares = _kernels.centre(*(exact.as_words(table)[:, 0] for table in sums))
    expected = exact.mean_and_squares(x[:, 0], weights)
    assert exact.relative_error(mean[0], expected[0]) < 3e-16
    assert exact.relative_error(squares[0], expected[1]) < 1e-15


@cases("kinds", [1, 300])
def test_a_cell_too_large_for_its_weight_is_named(kinds):
    weights = np.linspace(1e100, 2e100, 300) if kinds > 1 else np.full(300, 1e100)
    x = np.ones((300, 2))
    x[211, 1] = 1e149
    assert _kernels.moments(x, np.zeros(300, np.int32), None, 1)[3] is None
    assert _kernels.moments(x, np.zeros(300, np.int32), weights, 1)[3] == (211, 1)


def test_sums_that_overflow_are_refused():
    with pytest.raises(OverflowError):
        _kernels.add_sums(np.array([[1.7e308]]), np.array([[1.7e308]]), 1.0)


def test_a_class_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="out of range"):
        _kernels.moments(np.ones((1, 1)), np.array([2], np.int32), None, 2)


doubles = st.floats(-1e300, 1e300)


@given(st.lists(st.lists(doubles, min_size=3, max_size=3), min_size=1, max_size=5), st.sampled_from([1.0, -1.0]))
def test_add_sums_is_exact(lines, sign):
    a = np.array(lines)
    b = np.array([[0.1, 1e200, -3.0]])
    words = _kernels.add_sums(a, b, sign)
    for k in range(3):
        expected = exact.words_of(exact.exact(a[:, k]) + int(sign) * exact.exact(b[:, k]))
        assert [w for w in words[:, 0, k] if w] == expected


@given(st.lists(st.lists(doubles, min_size=4, max_size=4), min_size=1, max_size=5))
def test_total_sums_is_exact(lines):
    a = np.array(lines).reshape(len(lines), 2, 2)  # words, groups, cells
    words = _kernels.total_sums(a)
    for k in range(2):
        assert [w for w in words[:, 0, k] if w] == exact.words_of(exact.exact(a[:, :, k].ravel()))


def test_total_sums_of_hundreds_of_doubles_of_every_size():
    a = random(55).normal(size=1000) * 10.0 ** random(56).uniform(-290, 290, size=1000)
    assert _kernels.total_sums(a.reshape(1, 1000, 1))[:, 0, 0].tolist() == exact.words_of(exact.exact(a))


@given(
    st.lists(st.tuples(st.floats(-1e100, 1e100), st.floats(0.01, 100)), min_size=1, max_size=8),
    st.sampled_from([0.0, 1.0, 1e12]),
)
def test_centre_rounds_mean_and_squares_once(rows, offset):
    x = np.array([[v + offset] for v, _ in rows])
    weights = np.array([w for _, w in rows])
    x[np.abs(x) < 1e-100] = 0.0
    *sums, _ = _kernels.moments(x, np.zeros(len(x), np.int32), weights, 1)
    mean, squares = _kernels.centre(*(words[:, 0] for words in sums))
    expected = exact.mean_and_squares(x[:, 0], weights)
    assert exact.relative_error(mean[0], expected[0]) < 3e-16
    assert exact.relative_error(squares[0], expected[1]) < 1e-15


def test_centre_of_nothing_is_zero():
    nothing = np.zeros((1, 2))
    assert [a.tolist() for a in _kernels.centre(nothing, nothing, nothing)] == [[0, 0], [0, 0]]


# ---- densities --------------------------------------------------------------------------------------------------

WIDTHS = [1, 2, 3, 4, 5, 8, 9, 255, 256, 257, 300, 513]


def quadratic(x, mean, factor, constant):
    x = x.astype(np.float64)[:, np.newaxis]
    return np.where(np.isnan(x), 0.0, constant + factor * (x - mean) ** 2).sum(axis=2)


def linear(x, factor, constant):
    x = x.astype(np.float64)[:, np.newaxis]
    with np.errstate(invalid="ignore"):
        return np.where(np.isnan(x), 0.0, constant + np.where(x == 0, 0.0, x * factor)).sum(axis=2)


def density_parameters(classes, d, seed=10):
    rng = random(seed)
    return rng.normal(size=(classes, d)), -rng.random((classes, d)) - 0.1, rng.normal(size=(classes, d))


@cases("d", WIDTHS)
@cases("classes", [1, 3])
def test_add_quadratic(d, classes):
    x, parameters = with_missing(random().normal(size=(21, d))), density_parameters(classes, d)
    x[4] = 0.5  # one row without a missing value, however many columns
    out = np.full((21, classes), 7.0)
    _kernels.add_quadratic(x, *parameters, out)
    np.testing.assert_allclose(out, 7.0 + quadratic(x, *parameters), rtol=1e-12, atol=1e-12)


@layouts
@cases("dtype", [np.float64, np.float32])
def test_densities_in_any_layout(layout, dtype):
    x = layout(with_missing(np.abs(random().normal(size=(40, 6)))).astype(dtype))
    mean, factor, constant = density_parameters(3, 6)
    out = np.zeros((40, 3))
    _kernels.add_quadratic(x, mean, factor, constant, out)
    np.testing.assert_allclose(out, quadratic(x, mean, factor, constant), rtol=1e-12, atol=1e-12)
    out = np.zeros((40, 3))
    _kernels.add_linear(x, factor, constant, out)
    np.testing.assert_allclose(out, linear(x, factor, constant), rtol=1e-12, atol=1e-12)


@cases("d", WIDTHS)
def test_add_linear(d):
    x, (_, factor, constant) = (
        with_missing(random().integers(0, 3, size=(30, d)).astype(np.float64)),
        density_parameters(2, d),
    )
    out = np.full((30, 2), -3.0)
    _kernels.add_linear(x, factor, constant, out)
    np.testing.assert_allclose(out, -3.0 + linear(x, factor, constant), rtol=1e-12, atol=1e-12)


@cases("d", [1, 4, 7, 300])
def test_an_impossible_word_used_never_is_not_impossible(d):
    """0 · log 0 is 0; 1 · log 0 is −∞."""
    x, (_, factor, constant) = (
        with_missing(random().integers(0, 2, size=(30, d)).astype(np.float64)),
        density_parameters(3, d),
    )
    factor[1, random(11).random(d) < 0.1] = -np.inf
    factor[2, 0] = -np.inf
    out = np.zeros((30, 3))
    _kernels.add_linear(x, factor, constant, out)
    expected = linear(x, factor, constant)
    assert np.isneginf(expected).any()
    assert np.isfinite(expected[:, 2]).any()
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)


def triangles(classes, d, seed=12):
    rng = random(seed)
    return (
        np.tril(rng.normal(size=(classes, d, d))) + 2 * np.eye(d),
        rng.normal(size=(classes, d)),
        rng.normal(size=classes),
    )


@cases("d", [*range(1, 14), 40])
@cases("n", [1, 11, 12, 13, 50])
def test_add_whitened_and_whiten(d, n):
    x = random().normal(size=(n, d))
    lower, means, constants = triangles(3, d)
    out = np.ones((n, 3))
    _kernels.add_whitened(x, lower, means, constants, out)
    z = np.einsum("kij,nkj->nki", lower, x[:, np.newaxis] - means)
    np.testing.assert_allclose(out, 1.0 + constants - 0.5 * (z**2).sum(axis=2), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(_kernels.whiten(x, lower[1], means[1]), z[:, 1], rtol=1e-12, atol=1e-12)


@layouts
@cases("dtype", [np.float64, np.float32])
def test_whiten_in_any_layout(layout, dtype):
    x = layout(random().normal(size=(17, 5)).astype(dtype))
    lower, means, constants = triangles(1, 5)
    expected = (x.astype(np.float64) - means[0]) @ lower[0].T
    np.testing.assert_allclose(_kernels.whiten(x, lower[0], means[0]), expected, rtol=1e-12, atol=1e-12)
    out = np.zeros((17, 1))
    _kernels.add_whitened(x, lower, means, constants, out)
    np.testing.assert_allclose(out[:, 0], constants[0] - 0.5 * (expected**2).sum(axis=1), rtol=1e-12, atol=1e-12)


@cases("classes", [1, 2, 7, 40])
@cases("logs", [False, True])
def test_normalise(classes, logs):
    joint = 50 * random().normal(size=(6, classes)) - 2000
    joint[1, 0] = -np.inf if classes > 1 else joint[1, 0]
    joint[4] = -np.inf
    fallback = np.log(np.arange(1.0, classes + 1) / np.arange(1, classes + 1).sum())
    distance = np.vstack([joint[:4], joint[:1], joint[5:]])
    distance -= distance.max(axis=1, keepdims=True)  # exact logarithms of small numbers need small numbers
    expected = distance - logsumexp(distance, axis=1, keepdims=True)
    expected[4] = fallback
    assert _kernels.normalise(joint, fallback, logs) == 1
    np.testing.assert_allclose(joint, expected if logs else np.exp(expected), rtol=1e-12, atol=1e-15)


@cases("classes", [1, 3, 40])
def test_most_probable(classes):
    joint = random().integers(-5, 5, size=(2000, classes)).astype(np.float64)  # with ties: the first among equals
    joint[::7] = -np.inf
    fallback = np.arange(classes, dtype=np.float64)
    chosen, impossible = _kernels.most_probable(joint, fallback)
    expected = joint.argmax(axis=1)
    expected[::7] = classes - 1
    assert chosen.tolist() == expected.tolist()
    assert impossible == len(joint[::7])


# ---- tables -----------------------------------------------------------------------------------------------------


def random_codes(n, sizes, seed=13):
    rng = random(seed)
    return np.stack([rng.integers(-2, size, n) for size in sizes], axis=1).astype(np.int32)


def ends_of(sizes):
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


SIZES = [3, 1, 5]


@layouts
@cases("weighted", [False, True])
def test_count_codes(layout, weighted):
    codes, labels = random_codes(200, SIZES), random(14).integers(0, 4, 200).astype(np.int32)
    weights = random(15).random(200) if weighted else None
    words = _kernels.count_codes(layout(codes), ends_of(SIZES), labels, weights, 4)
    table = [[Fraction(0)] * sum(SIZES) for _ in range(4)]
    for i, row in enumerate(codes):
        for j, code in enumerate(row):
            if code >= 0:
                table[labels[i]][ends_of(SIZES)[j] + code] += Fraction(weights[i]) if weighted else 1
    assert np.array_equal(words, exact.as_words(table))


def padded(table, classes):
    return np.hstack([table, np.zeros((len(table), -classes % 4))])


@cases("classes", range(1, 41))
def test_add_table(classes):
    codes, table = random_codes(30, SIZES), random(16).normal(size=(sum(SIZES), classes))
    table[2] = -np.inf
    out = np.full((30, classes), 2.0)
    _kernels.add_table(codes, ends_of(SIZES), padded(table, classes), classes, out)
    cells = np.where((codes >= 0)[:, :, np.newaxis], table[ends_of(SIZES)[:-1] + np.maximum(codes, 0)], 0.0)
    np.testing.assert_allclose(out, 2.0 + cells.sum(axis=1), rtol=1e-12, atol=1e-12)


@layouts
def test_add_table_in_any_layout(layout):
    codes, table = random_codes(2100, SIZES), random(16).normal(size=(sum(SIZES), 3))
    expected, out = np.zeros((2100, 3)), np.zeros((2100, 3))
    _kernels.add_table(codes, ends_of(SIZES), padded(table, 3), 3, expected)
    _kernels.add_table(layout(codes), ends_of(SIZES), padded(table, 3), 3, out)
    assert np.array_equal(out, expected)


INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8]


@layouts
@cases("dtype", INTEGERS)
def test_integer_range(layout, dtype):
    info = np.iinfo(dtype)
    x = random().integers(info.min, info.max, size=(50, 3), dtype=dtype, endpoint=True)
    x[7, 0], x[8, 0] = info.min, info.max
    low, high = _kernels.integer_range(layout(x))
    assert low.tolist() == x.min(axis=0).tolist()
    assert high.tolist() == x.max(axis=0).tolist()


@layouts
@cases("dtype", INTEGERS)
def test_encode_integers(layout, dtype):
    info = np.iinfo(dtype)
    x = random().integers(0, 20, size=(60, 2)).astype(dtype)
    x[3, 0], x[4, 1] = info.min, info.max
    low, sizes = np.array([2, 5], np.int64), [7, 9]
    lut = random(17).permutation(16).astype(np.int32)
    codes = _kernels.encode_integers(layout(x), low, ends_of(sizes), lut, -2)
    for i, row in enumerate(x.tolist()):
        for j, value in enumerate(row):
            at = value - int(low[j])
            assert codes[i, j] == (lut[ends_of(sizes)[j] + at] if 0 <= at < sizes[j] else -2)


def sparse_counts(n, d, seed=18, *, fractions=False):
    rng = random(seed)
    dense = np.where(rng.random((n, d)) < 0.2, rng.integers(1, 9, size=(n, d)), 0).astype(np.float64)
    return dense * (0.1 if fractions else 1.0)


def with_index(dense, index):
    rows = sp.csr_array(dense)
    return rows.data, rows.indices.astype(index), rows.indptr.astype(index)


@cases("index", [np.int32, np.int64])
@cases("fractions", [False, True])
@cases("weighted", [False, True])
def test_sum_sparse(index, fractions, weighted):
    dense, labels = sparse_counts(60, 11, fractions=fractions), random(19).integers(0, 3, 60).astype(np.int32)
    weights = random(20).random(60) if weighted else None
    words = _kernels.sum_sparse(*with_index(dense, index), 11, labels, weights, 3)
    assert np.array_equal(words, exact.as_words(exact.moments(dense, labels, weights, 3)[1]))


@cases("index", [np.int32, np.int64])
@cases("classes", [1, 3, 4, 9])
def test_add_sparse(index, classes):
    dense, table = sparse_counts(50, 12, fractions=True), random(21).normal(size=(12, classes))
    out = np.full((50, classes), 4.0)
    _kernels.add_sparse(*with_index(dense, index), padded(table, classes), classes, out)
    np.testing.assert_allclose(out, 4.0 + dense @ table, rtol=1e-12, atol=1e-12)


def test_add_sparse_skips_stored_zeros_and_missing_values():
    rows = np.array([0.0, 2.0, np.nan]), np.array([0, 1, 2], np.int32), np.array([0, 3], np.int32)
    table = padded(np.array([[-np.inf], [3.0], [5.0]]), 1)
    out = np.zeros((1, 1))
    _kernels.add_sparse(*rows, table, 1, out)
    assert out.item() == 6.0


@layouts
@cases("cap", [2, 10, 90, 1000])
@cases("dtype", [np.float64, np.float32])
def test_histogram_column(layout, cap, dtype):
    x = np.round(random(22).normal(size=(150, 3)), 2).astype(dtype)
    x[3:9, 1] = [0.0, -0.0, np.nan, 1e30, -1e-30, np.nan]
    level, keys, places = _kernels.histogram_column(layout(x), 1, cap)
    values = x[:, 1].tolist()
    present = [v for v in values if v == v]
    assert level == least_level(present, cap)
    assert keys.tolist() == sorted({ordered(v) >> level for v in present})
    expected = [-1 if v != v else keys.tolist().index(ordered(v) >> level) for v in values]
    assert places.tolist() == expected


@settings(max_examples=40)
@given(st.lists(st.floats(allow_infinity=False), min_size=1, max_size=30), st.integers(2, 12))
def test_histogram_column_of_any_doubles(values, cap):
    level, keys, _ = _kernels.histogram_column(np.array(values)[:, np.newaxis], 0, cap)
    present = [v for v in values if v == v]
    assert level == least_level(present, cap)
    assert keys.tolist() == sorted({ordered(v) >> level for v in present})


# ---- scatter ----------------------------------------------------------------------------------------------------


def scatter(x, labels, weights, origin, shared):
    x = x.astype(np.float64)
    weights = np.ones(len(x)) if weights is None else weights
    whole = np.isfinite(x).all(axis=1)
    classes, d = origin.shape
    skipped = np.bincount(labels[~whole], weights[~whole], classes)
    count = np.bincount(labels[whole], weights[whole], classes)
    sums, products = np.zeros((classes, d)), np.zeros((classes, d, d))
    for c in range(classes):
        z, w = x[whole & (labels == c)] - origin[c], weights[whole & (labels == c)]
        sums[c], products[c] = w @ z, (w[:, np.newaxis] * z).T @ z
    return count, skipped, sums, products.sum(axis=0, keepdims=True) if shared else products


def assert_scatter(x, labels, weights, origin, shared):
    count, skipped, sums, products = _kernels.scatter(x, labels, weights, origin, shared)
    expected = scatter(x, labels, weights, origin, shared)
    np.testing.assert_allclose(count[0, :, 0], expected[0], rtol=1e-14)
    np.testing.assert_allclose(skipped[0, :, 0], expected[1], rtol=1e-14)
    np.testing.assert_allclose(sums, expected[2], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(products, expected[3], rtol=1e-12, atol=1e-12)
    assert np.array_equal(products, products.transpose(0, 2, 1))


@cases("d", [*range(1, 14), 16, 20, 24, 25, 28, 32, 37])
@cases("shared", [False, True])
def test_scatter(d, shared):
    x, labels = random(23).normal(size=(90, d)), random(24).integers(0, 3, 90).astype(np.int32)
    x[random(25).integers(0, 90, 5), random(26).integers(0, d, 5)] = [np.nan, np.inf, -np.inf, np.nan, np.nan]
    origin = random(27).normal(size=(4, d))  # one class without rows
    assert_scatter(x, labels, None, origin, shared)
    assert_scatter(x, labels, random(28).random(90), origin, shared)


@layouts
@cases("dtype", [np.float64, np.float32])
def test_scatter_in_any_layout(layout, dtype):
    x, labels = layout(with_missing(random().normal(size=(700, 5))).astype(dtype)), random(24).integers(0, 2, 700)
    assert_scatter(x, labels.astype(np.int32), None, np.ones((2, 5)), False)


@cases("shared", [False, True])
def test_scatter_of_many_rows_by_any_number_of_threads(threads, shared):
    x, labels = random().normal(size=(40_000, 9)), random(24).integers(0, 2, 40_000).astype(np.int32)
    for count in (1, 2, 3):
        threads(count)
        result = _kernels.scatter(x, labels, None, np.zeros((2, 9)), shared)
        expected = scatter(x, labels, None, np.zeros((2, 9)), shared)
        assert result[0][0, :, 0].tolist() == expected[0].tolist()
        np.testing.assert_allclose(result[2], expected[2], atol=1e-12 * 40_000)
        np.testing.assert_allclose(result[3], expected[3], atol=1e-12 * 40_000)


# ---- neighbours and threads -------------------------------------------------------------------------------------

K, D = 5, 7


def scored(kernel, x, *parameters):
    out = np.zeros((len(x), K))
    kernel(x, *parameters, out)
    return out


def table_of(x):
    codes = np.where(np.isnan(x), -1, np.floor(np.abs(x))).astype(np.int32)
    return scored(_kernels.add_table, codes, ends_of([9] * D), padded(random(29).normal(size=(9 * D, K)), K), K)


def sparse_of(x):
    out, table = np.zeros((len(x), K)), padded(random(30).normal(size=(D, K)), K)
    _kernels.add_sparse(*with_index(np.where(np.abs(x) > 1, np.abs(x), 0.0), np.int32), table, K, out)
    return out


def posterior_of(x):
    out = SCORES["add_quadratic"](x)
    _kernels.normalise(out, np.zeros(K), False)
    return out


SCORES = {
    "add_quadratic": lambda x: scored(_kernels.add_quadratic, x, *density_parameters(K, D)),
    "add_linear": lambda x: scored(_kernels.add_linear, x, *density_parameters(K, D)[1:]),
    "add_whitened": lambda x: scored(_kernels.add_whitened, np.nan_to_num(x), *triangles(K, D)),
    "whiten": lambda x: _kernels.whiten(np.nan_to_num(x), *(a[0] for a in triangles(1, D)[:2])),
    "add_table": table_of,
    "add_sparse": sparse_of,
    "normalise": posterior_of,
}


def by_threads(threads, call):
    """The results of one, two and three threads."""
    for count in (1, 2, 3):
        threads(count)
        yield call()


@cases("score", SCORES)
def test_a_row_gets_the_same_bits_from_any_threads_whatever_stands_around_it(threads, score):
    x = with_missing(random(31).normal(size=(300, D)))
    whole = score(x)
    order = random(32).permutation(300)
    assert np.array_equal(np.concatenate([score(x[i : i + 1]) for i in range(300)]), whole)
    assert np.array_equal(score(x[order]), whole[order])
    assert np.array_equal(score(x[5:]), whole[5:])
    assert np.array_equal(score(np.nan_to_num(x))[~np.isnan(x).any(axis=1)], whole[~np.isnan(x).any(axis=1)])
    one, *others = by_threads(threads, lambda: score(random(33).normal(size=(20_000, D))))
    assert all(np.array_equal(other, one) for other in others)


def moments_of(d, weighted):
    n = 240_000 // d
    weights = random(8).random(n) if weighted else None
    return _kernels.moments(wild_matrix(n, d, decades=8), random(7).integers(0, 3, n).astype(np.int32), weights, 3)[:3]


def impossible_rows():
    joint = 10 * random().normal(size=(30_000, 3))
    joint[::1000] = -np.inf
    return [_kernels.normalise(joint, np.log(np.full(3, 1 / 3)), False), joint]


def labels_of(n, classes):
    return random(14).integers(0, classes, n).astype(np.int32)


MANY_CODES, MANY_COUNTS = random_codes(80_000, SIZES), sparse_counts(40_000, 30)
MANY_INTEGERS = random().integers(-(10**9), 10**9, size=(300_000, 3))


def weights_of_many():
    labels = labels_of(40_000, 3)
    values = random(9).normal(size=(3, 40_000, 8))
    values[labels, np.arange(40_000)] += 0.5
    offset = np.full((3, 40_000), -np.log(3.0))
    groups = np.zeros(8, np.int32)
    theta, *rest = _kernels.fit_weights(values, offset, labels, None, groups, 3.0, 1.0, 1.0, 0.3, None, 1e-9, 50, 400)
    return [theta, np.array(rest)]


OF_MANY = {
    "fit_weights": weights_of_many,
    **{f"moments {d} {w}": lambda d=d, w=w: moments_of(d, w) for d in (1, 6) for w in (False, True)},
    "normalise": impossible_rows,
    "count_codes": lambda: [_kernels.count_codes(MANY_CODES, ends_of(SIZES), labels_of(80_000, 4), None, 4)],
    "integer_range": lambda: _kernels.integer_range(MANY_INTEGERS),
    "sum_sparse": lambda: [
        _kernels.sum_sparse(*with_index(MANY_COUNTS, np.int32), 30, labels_of(40_000, 3), None, 3),
    ],
}


@cases("call", OF_MANY)
def test_many_rows_give_the_same_bits_from_any_number_of_threads(threads, call):
    one, *others = by_threads(threads, call)
    for other in others:
        assert all(map(np.array_equal, one, other))


def test_results_of_many_rows_are_those_of_numpy():
    x, labels = wild_matrix(240_000, 1, decades=8)[:, 0], random(7).integers(0, 3, 240_000)
    assert moments_of(1, False)[1][0, 2, 0] == fsum(x[(labels == 2) & ~np.isnan(x)])
    assert impossible_rows()[0] == 30
    assert OF_MANY["count_codes"]()[0].sum() == (MANY_CODES >= 0).sum()
    for result, expected in zip(OF_MANY["integer_range"](), (MANY_INTEGERS.min(0), MANY_INTEGERS.max(0)), strict=True):
        assert result.tolist() == expected.tolist()
    by_class = [MANY_COUNTS[labels_of(40_000, 3) == c].sum(axis=0).tolist() for c in range(3)]
    assert OF_MANY["sum_sparse"]()[0][0].tolist() == by_class


# ---- contracts --------------------------------------------------------------------------------------------------


@cases("out", [np.zeros((3, 2), order="F"), np.zeros((3, 4))[:, ::2], np.zeros((3, 2), np.float32)])
def test_an_output_that_cannot_be_written_in_place_is_refused(out):
    x, parameters, table = np.ones((3, 2)), np.ones((2, 2)), np.zeros((4, 4))
    calls = [
        lambda: _kernels.add_linear(x, parameters, parameters, out),
        lambda: _kernels.add_quadratic(x, parameters, parameters, parameters, out),
        lambda: _kernels.add_whitened(x, np.ones((2, 2, 2)), parameters, np.ones(2), out),
        lambda: _kernels.add_table(x.astype(np.int32), np.array([0, 2, 4]), table, 2, out),
        lambda: _kernels.add_sparse(*with_index(x, np.int32), table[:2], 2, out),
        lambda: _kernels.normalise(out, np.zeros(2), False),
    ]
    for call in calls:
        with pytest.raises(TypeError):
            call()


def test_project_out_leaves_what_the_columns_do_not_span(threads):
    """As QR in NumPy says; in groups of rows that lack the same columns, some of no column and some of all."""
    rng = random(7)
    d, n = 11, 40
    t = np.tril(rng.normal(size=(d, d))) + 2 * np.eye(d)
    unknown = rng.random((6, d)) < 0.3
    unknown[0], unknown[1] = False, True
    group = rng.integers(-1, 6, n)  # −1: complete rows
    rows = np.flatnonzero(group >= 0)[np.argsort(group[group >= 0], kind="stable")]
    starts = np.concatenate([[0], np.cumsum(np.bincount(group[group >= 0], minlength=6))])
    vectors, log_det = rng.normal(size=(3, n, d)), rng.normal(size=n)
    expected, expected_log = vectors.copy(), log_det.copy()
    for g in range(6):
        q, r = np.linalg.qr(t[:, unknown[g]])
        expected[:, group == g] -= expected[:, group == g] @ q @ q.T
        expected_log[group == g] -= np.log(np.abs(np.diagonal(r))).sum()
    before = vectors.copy(), log_det.copy()
    for count in (1, 3):
        threads(count)
        vectors, log_det = (array.copy() for array in before)
        _kernels.project_out(t, unknown, starts, rows, vectors, log_det)
        np.testing.assert_allclose(vectors, expected, atol=1e-12)
        np.testing.assert_allclose(log_det, expected_log, atol=1e-12)
    np.testing.assert_array_equal(vectors[:, group < 1], before[0][:, group < 1])
    for bad in (np.where(rows == rows[0], n, rows), np.where(rows == rows[1], rows[0], rows)):
        with pytest.raises(ValueError, match="a row does not exist, or is in two groups"):
            _kernels.project_out(t, unknown, starts, bad, vectors, log_det)


def every_kernel():
    return {name for name in dir(_kernels) if not name.startswith("_")} - {"set_threads", "instruction_set"}


@pytest.mark.parametrize("classes", [2, 3])
def test_add_changed(classes):
    """out + Σ_p e·max(0, w + Σ_c Δ_c), without the pieces of an unknown feature alone."""
    rng = np.random.default_rng(0)
    n, pieces, features = 50, 4, 3
    evidence, weights = rng.normal(size=(n, pieces, classes)), rng.random((pieces, classes))
    unknown, alone = rng.random((n, features)) < 0.3, rng.random((features, pieces)) < 0.3
    changes, out = rng.normal(size=(features, pieces, classes)), rng.normal(size=(n, classes))
    expected = out.copy()
    for i in range(n):
        for p in range(pieces):
            for k in range(classes):
                weight = max(0.0, weights[p, k] + sum(changes[c, p, k] for c in range(features) if unknown[i, c]))
                if not (unknown[i] & alone[:, p]).any():
                    expected[i, k] += evidence[i, p, k] * weight
    _kernels.add_changed(evidence, unknown, weights, changes, alone, out)
    np.testing.assert_allclose(out, expected, rtol=1e-12)


def test_the_number_of_threads_is_known():
    _kernels.set_threads(3)
    try:
        assert _kernels.thread_count() == 3
    finally:
        _kernels.set_threads(0)
    assert _kernels.thread_count() >= 1


def test_every_kernel_is_tested_here_or_with_what_uses_it():
    names = (
        "test_kernels",
        "test_forest_kernels",
        "test_boosting_kernels",
        "test_text_kernels",
        "test_mail_kernels",
        "../data/test_sampling",
    )
    files = [f"{name}.py" for name in names]
    source = "".join((Path(__file__).parent / name).read_text() for name in files)
    assert [name for name in sorted(every_kernel()) if f"_kernels.{name}(" not in source] == []


# Arguments that agree, each with a letter for each of its axes; a further letter is what its values index. Axes with
# the same letter have the same length (or one more, or padded), so none of them may change alone.
MATRIX, GRID, CODES = np.ones((6, 3)), np.ones((6, 3), np.int32), np.array([0, 1, 1, 0, 1, 0], np.int32)
PER_ROW, PER_COLUMN, PER_CLASS = np.ones(6), np.ones(3), np.ones(2)
TABLE, OUT, OFFSETS = np.ones((2, 3)), np.zeros((6, 2)), np.array([0, 3, 4, 9])
SPARSE = list(zip(with_index(np.eye(6, 3), np.int32), ("s", "s", "n"), strict=True))
LINEAR = [(MATRIX, "nd"), (TABLE, "md"), (PER_CLASS, "m"), (PER_COLUMN, "d")]
BYTES, BYTE_SIZES, ORDERED = GRID.astype(np.uint8), np.array([3, 2, 4], np.int32), np.array([True, False, True])
NODES = [np.array(a, np.int32) for a in ([1, -1, -1, -1], [0, 0, 0, 0], [1, 0, 1, 0])]  # a tree with a cut, and a leaf
TREES = [(np.array([0, 3, 4]), "tv"), *((a, "v") for a in NODES)]
POOLED = [(BYTES, "nd"), (np.zeros((6, 3), bool), "nd"), *TREES, (ORDERED, "d"), (np.ones((4, 2)), "vk")]
PAIRS = np.array([[0, 2]], np.int32)
SPLITS = [(np.zeros((5, 2), np.int32), "tl"), (np.zeros((5, 2), np.int32), "tl"), (ORDERED, "d")]
SYMMETRIC = [*POOLED[:2], *SPLITS, (np.ones((5, 8, 1)), "tho"), (np.ones((5, 8)), "th")]
CELLS = [(GRID, "nm"), (OFFSETS, "mv"), (np.ones((9, 2)), "vk"), (PER_CLASS, "k"), 1.0, (CODES, "n"), (PER_ROW, "n")]
TEXT, ENDS = np.frombuffer(b"abcbcdefghij", np.uint8), np.array([1, 3, 12])


def known_terms():
    return _kernels.Vocabulary(TEXT, ENDS)


DOCUMENTS = [[TEXT], (np.tile(np.array([0, 3, 4]), (6, 1, 1)), "ncp"), [1, 1, 1, 0, False, 0]]
SHAPES = {
    "Vocabulary": [(TEXT, "v"), (ENDS, "tv")],
    "ascending_terms": [(TEXT, "v"), (ENDS, "tv")],
    "merge_terms": [(TEXT, "v"), (ENDS, "tv"), (TEXT, "w"), (ENDS, "sw")],
    "tokenize": [(TEXT, "v"), DOCUMENTS[2]],
    "count_terms": [*DOCUMENTS, (CODES, "n"), 2, False],
    "add_terms": [*DOCUMENTS, known_terms, (np.ones((3, 4)), "tk"), False, (OUT, "nj")],
    "term_rows": [*DOCUMENTS, known_terms],
    "moments": [(MATRIX, "nd"), (CODES, "n"), (PER_ROW, "n"), 2],
    "add_sums": [(TABLE, "wc"), (np.ones((4, 3)), "vc"), 1.0],
    "total_sums": [(np.ones((2, 3, 4)), "wgc")],
    "centre": [(TABLE, "uc"), (TABLE, "vc"), (TABLE, "wc")],
    "add_changed": [
        (np.ones((6, 5, 2)), "npk"),
        (np.zeros((6, 3), bool), "nc"),
        (np.ones((5, 2)), "pk"),
        (np.ones((3, 5, 2)), "cpk"),
        (np.zeros((3, 5), bool), "cp"),
        (OUT, "nk"),
    ],
    "add_quadratic": [(MATRIX, "nd"), (TABLE, "kd"), (TABLE, "kd"), (TABLE, "kd"), (OUT, "nk")],
    "add_linear": [(MATRIX, "nd"), (TABLE, "kd"), (TABLE, "kd"), (OUT, "nk")],
    "add_whitened": [(MATRIX, "nd"), (np.ones((2, 3, 3)), "kdd"), (TABLE, "kd"), (PER_CLASS, "k"), (OUT, "nk")],
    "whiten": [(MATRIX, "nd"), (np.ones((3, 3)), "dd"), (PER_COLUMN, "d")],
    "project_out": [
        (np.eye(3), "dd"),
        (np.zeros((2, 3), bool), "gd"),
        (np.array([0, 4, 6]), "g"),
        (np.arange(6), "r"),
        (np.ones((2, 6, 3)), "vnd"),
        (np.zeros(6), "n"),
    ],
    "rows_with_nan": [(MATRIX, "nd")],
    "leave_one_out_densities": [(MATRIX, "nd"), (CODES, "n"), *4 * [(TABLE / 10, "kd")]],
    "merge_sorted": [(PER_ROW, "n"), (PER_COLUMN, "m")],
    "most_probable": [(OUT, "nk"), (PER_CLASS, "k")],
    "normalise": [(OUT, "nk"), (PER_CLASS, "k"), True],
    "scatter": [(MATRIX, "nd"), (CODES, "n"), (PER_ROW, "n"), (TABLE, "kd"), False],
    "count_codes": [(GRID, "nd"), (OFFSETS, "d"), (CODES, "n"), (PER_ROW, "n"), 2],
    "count_labels": [(CODES, "n"), 2],
    "add_table": [(GRID, "nd"), (OFFSETS, "dv"), (np.ones((9, 4)), "vk"), 2, (OUT, "nk")],
    "integer_range": [(GRID, "nd")],
    "encode_integers": [(GRID, "nd"), (np.zeros(3, np.int64), "d"), (OFFSETS, "dv"), (np.zeros(9, np.int32), "v"), -1],
    "sum_sparse": [*SPARSE, 3, (CODES, "n"), (PER_ROW, "n"), 2],
    "add_sparse": [*SPARSE, (np.ones((3, 4)), "dk"), 2, (OUT, "nk")],
    "histogram_column": [(MATRIX, "nd"), 1, 5],
    "softmax_pass": [*LINEAR, (CODES, "n"), (PER_ROW, "n")],
    "predictors": LINEAR,
    "residual_sums": [(MATRIX, "nd"), (PER_COLUMN, "d"), (OUT, "nm")],
    "column_sums": [(MATRIX, "nd"), (PER_COLUMN, "d"), (PER_ROW, "n")],
    "sparse_softmax_pass": [*SPARSE, (np.ones((3, 2)), "dm"), (PER_CLASS, "m"), (CODES, "n"), (PER_ROW, "n")],
    "sparse_predictors": [*SPARSE, (np.ones((3, 2)), "dm"), (PER_CLASS, "m")],
    "sparse_residual_sums": [*SPARSE, 3, (OUT, "nm")],
    "grow_forest": [
        (BYTES, "nd"),
        (BYTE_SIZES, "d"),
        (ORDERED, "d"),
        (CODES, "n"),
        (PER_ROW, "n"),
        2,
        2,
        0.6,
        2,
        1.0,
        9,
        1,
    ],
    "in_bag": [(BYTES, "nd"), 3, 0.6, 1],
    "find_leaves": [(BYTES, "nd"), *TREES, (ORDERED, "d")],
    "tree_contributions": [(BYTES, "nd"), *TREES, (ORDERED, "d"), (np.ones((4, 2)), "vk")],
    "pooled_leaf_counts": [*POOLED, (np.zeros((6, 2), bool), "ns")],
    "pooled_contributions": [*POOLED, (np.full(2, 0.5), "k"), 0.5],
    "boost": [
        (BYTES, "nd"),
        (BYTE_SIZES, "d"),
        (ORDERED, "d"),
        (CODES, "n"),
        (PER_ROW, "n"),
        *(2, 3, 4, 2, 0.1, 1.0, 0.8, 0.5, 1),
    ],
    "find_ensembles": [(BYTES, "nd"), 3, 1],
    "leaf_values": [*SYMMETRIC, (np.zeros(5, np.int32), "t"), 1, (CODES, "n"), (np.zeros(5, np.int32), "t")],
    "symmetric_contributions": SYMMETRIC,
    "add_sparse_keys": [*SPARSE, (np.zeros(6, np.uint64), "n")],
    "mix_keys": [(MATRIX, "nd"), (np.arange(3, dtype=np.uint64), "d"), (np.zeros(6, np.uint64), "n")],
    "cell_evidence": [*CELLS, (np.zeros((6, 3, 2)), "nmk")],
    "mean_cell_evidence": [*CELLS, (np.zeros((6, 3), bool), "nm"), (OUT, "nk")],
    "fit_weights": [
        (np.ones((2, 6, 3)), "knp"),
        (np.ones((2, 6)), "kn"),
        (CODES, "n"),
        (PER_ROW, "n"),
        (np.zeros(3, np.int32), "p"),
        *(3.0, 1.0, 1.0, 0.5),
        (np.ones((2, 4)), "kp"),
        *(1e-9, 50, 400),
    ],
    "pair_gains": [(BYTES, "nd"), (BYTE_SIZES, "d"), (CODES, "n"), (PER_ROW, "n"), 2, 1.0, (PAIRS, "qp")],
}


def test_the_shapes_of_every_kernel_that_takes_arrays_are_known():
    described = {name: getattr(_kernels, name) for name in every_kernel()}
    taken = {name: result.__doc__ or result.__init__.__doc__ for name, result in described.items()}
    assert set(SHAPES) == {name for name, signature in taken.items() if "ndarray" in signature}


def arrays_of(name):
    return [a() if callable(a) else a[0].copy() if isinstance(a, tuple) else a for a in SHAPES[name]]


@cases("name", list(SHAPES))
def test_shapes_that_agree_are_accepted(name):
    getattr(_kernels, name)(*arrays_of(name))


def shared_axes(name):
    """(argument, axis) of the axes that must be as long as some other."""
    axes = [argument[1][: argument[0].ndim] if isinstance(argument, tuple) else "" for argument in SHAPES[name]]
    letters = "".join(argument[1] for argument in SHAPES[name] if isinstance(argument, tuple))
    return [(i, j) for i, own in enumerate(axes) for j, letter in enumerate(own) if letters.count(letter) > 1]


def resized(array, axis, size):
    return np.ascontiguousarray(np.take(array, np.arange(size) % array.shape[axis], axis=axis))


@cases("name", list(SHAPES))
def test_shapes_that_disagree_raise(name):
    for argument, axis in shared_axes(name):
        for change in (-1, 1, None):  # shorter, longer, empty
            arguments = arrays_of(name)
            size = arguments[argument].shape[axis]
            arguments[argument] = resized(arguments[argument], axis, 0 if change is None else size + change)
            with pytest.raises(ValueError):
                getattr(_kernels, name)(*arguments)


@cases("offsets", [[1, 3, 4, 9], [0, 3, 2, 9], [0, -3, 4, 9], [0, 3, 4, 10], [0, 3, 4, 8], [0, 3, 10, 9]])
def test_offsets_that_a_table_does_not_have_are_refused(offsets):
    offsets = np.array(offsets)
    with pytest.raises(ValueError):
        _kernels.add_table(GRID, offsets, np.ones((9, 4)), 2, OUT.copy())
    with pytest.raises(ValueError):
        _kernels.encode_integers(GRID, np.zeros(3, np.int64), offsets, np.zeros(9, np.int32), -1)


@cases("offsets", [[1, 3, 4, 9], [0, 3, 2, 9], [0, -3, 4, 9], [0, 3, 4, 2**62], [0, 3, 4, 2**63 - 1]])
def test_offsets_that_no_counts_have_are_refused(offsets):
    with pytest.raises(ValueError):
        _kernels.count_codes(GRID, np.array(offsets), CODES, None, 4)


@cases("classes", [2**31, 2**32 + 1, 2**62, 2**64 - 1])
def test_more_classes_than_codes_can_name_are_refused(classes):
    """−1 read as a number without a sign would be one of them, and sizes made of them would begin again at 0."""
    codes, rows = np.full(6, -1, np.int32), [a for a, _ in SPARSE]
    for call in (
        lambda: _kernels.moments(MATRIX, codes, None, classes),
        lambda: _kernels.count_codes(GRID, OFFSETS, codes, None, classes),
        lambda: _kernels.count_labels(codes, classes),
        lambda: _kernels.sum_sparse(*rows, 3, codes, None, classes),
    ):
        with pytest.raises(ValueError):
            call()


def test_sizes_that_would_begin_again_at_zero_are_refused():
    rows, none = [a for a, _ in SPARSE], np.zeros((0, 2**54))
    for call in (
        lambda: _kernels.sum_sparse(*rows, 2**62, CODES, None, 4),
        lambda: _kernels.sparse_residual_sums(*rows, 2**62, np.ones((6, 4))),
        lambda: _kernels.residual_sums(np.zeros((0, 1024)), np.zeros(1024), none),
        lambda: _kernels.moments(none, NONE, None, 1024),
        lambda: _kernels.scatter(none, NONE, None, none, True),
    ):
        with pytest.raises(ValueError):
            call()


@cases("empty", range(3))
def test_a_sum_without_words_has_no_centre(empty):
    sums = [np.ones((1, 4)) for _ in range(3)]
    sums[empty] = np.ones((0, 4))
    with pytest.raises(ValueError, match="at least one word"):
        _kernels.centre(*sums)


def test_joint_probabilities_of_no_class_are_refused():
    with pytest.raises(ValueError, match="no classes"):
        _kernels.normalise(np.zeros((5, 0)), np.zeros(0), False)
    with pytest.raises(ValueError, match="no classes"):
        _kernels.most_probable(np.zeros((5, 0)), np.zeros(0))


@cases("words", [1, 33, 41, 64, 65, 300])
def test_sums_of_more_words_than_any_sum_needs(words):
    """2ᵗ⁺⁵⁵ is too far above 2ᵗ to be joined with it, and what the next number leaves of it is 2ᵗ⁺³, a word of its own.

    So every other number adds a word to those that do not overlap, and they are more than any buffer for them holds.
    """
    steps = ((2.0 ** (t + 55), 2.0 ** (t + 3) - 2.0 ** (t + 55)) for t in range(-950, 950, 3))
    upwards = np.array([2.0**-950, *(number for step in steps for number in step)])
    groups = upwards[: len(upwards) // words * words].reshape(-1, words)[:, ::-1]  # of a group the last is added first
    a, b = groups[:2, :, np.newaxis]
    for sign in (1.0, -1.0):
        result = _kernels.add_sums(a, b, sign)
        assert np.array_equal(result, exact.as_words([[sum(map(Fraction, [*a[:, 0], *sign * b[:, 0]]))]]))
    result = _kernels.total_sums(groups.T[:, :, np.newaxis])
    assert np.array_equal(result, exact.as_words([[sum(map(Fraction, groups.ravel()))]]))


@cases("column, cap", [(3, 5), (0, 0)])
def test_a_column_or_a_histogram_that_cannot_be_is_refused(column, cap):
    with pytest.raises(ValueError):
        _kernels.histogram_column(np.array([[-1.0, 0.0, 1.0], [1.0, 0.0, 1.0]]), column, cap)


def test_numbers_of_either_sign_never_share_a_cell():
    """With room for one, low bits are dropped until no more can be."""
    level, keys, places = _kernels.histogram_column(np.array([[-1.0], [1.0], [2.0]]), 0, 1)
    assert (level, keys.tolist(), places.tolist()) == (63, [-1, 0], [0, 1, 1])


@cases("cap", [2**61, 2**62, 2**64 - 1])
def test_a_histogram_may_have_room_for_more_than_there_is(cap):
    x = random(68).normal(size=(200, 1))
    level, keys, _ = _kernels.histogram_column(x, 0, cap)
    assert (level, keys.tolist()) == (0, sorted(ordered(v) for v in x[:, 0].tolist()))


@layouts
def test_rows_with_nan_is_any_nan(layout):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(50, 7))
    x[rng.random(x.shape) < 0.05] = np.nan
    for kind in (np.float64, np.float32):
        np.testing.assert_array_equal(_kernels.rows_with_nan(layout(x.astype(kind))), np.isnan(x).any(axis=1))
    assert not _kernels.rows_with_nan(np.zeros((3, 0))).any()


def test_count_labels_is_bincount():
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 5, 1000).astype(np.int32)
    np.testing.assert_array_equal(_kernels.count_labels(labels, 7), np.bincount(labels, minlength=7))
    with pytest.raises(ValueError, match="out of range"):
        _kernels.count_labels(labels, 3)


# ---- linear predictors ------------------------------------------------------------------------------------------

ROWS = [0, 1, 3, 4, 5, 31, 63, 64, 65, 70]
COLUMNS = [0, 1, 2, 3, 4, 5, 8, 13, 33, 40]
PREDICTORS = [1, 2, 3, 4, 5, 7, 8, 11]


def linear_problem(n, d, m, seed=60):
    """x, w, constant, origin, labels, weights: everything of moderate size."""
    rng = random(seed)
    return (
        rng.normal(size=(n, d)),
        rng.normal(size=(m, d)),
        rng.normal(size=m),
        rng.normal(size=d),
        rng.integers(0, m + 1, n).astype(np.int32),
        rng.uniform(0.0, 3.0, n),
    )


def scores(x, w, constant, origin):
    return (x.astype(np.float64) - origin) @ w.T + constant


def softmax(eta, labels, weights):
    """−Σ w log p(y) and the residuals w (p − [y = k]) of all classes but the first, whose η is 0."""
    weights = np.ones(len(eta)) if weights is None else weights
    wide = np.hstack([np.zeros((len(eta), 1)), eta])
    wide -= wide.max(axis=1, keepdims=True)
    log_p = wide - logsumexp(wide, axis=1, keepdims=True) if len(eta) else wide
    loss = -float(weights @ log_p[np.arange(len(eta)), labels])
    return loss, weights[:, np.newaxis] * (np.exp(log_p) - (labels[:, np.newaxis] == np.arange(wide.shape[1])))[:, 1:]


def back(x, origin, residual):
    """(m, d + 1) Σ residual·(x − origin), and last Σ residual."""
    return np.hstack([residual.T @ (x.astype(np.float64) - origin), residual.sum(axis=0)[:, np.newaxis]])


def assert_near(result, expected, size=1.0):
    np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-12 * size)


def assert_linear(x, w, constant, origin, labels, weights):
    eta = scores(x, w, constant, origin)
    assert_near(_kernels.predictors(x, w, constant, origin), eta)
    loss, residual = softmax(eta, labels, weights)
    result, gradient = _kernels.softmax_pass(x, w, constant, origin, labels, weights)
    assert gradient.shape == (len(w), x.shape[1] + 1)
    assert_near(result, loss, 1.0 + len(x))
    assert_near(gradient, back(x, origin, residual), 1.0 + len(x))
    assert_near(_kernels.residual_sums(x, origin, residual), back(x, origin, residual), 1.0 + len(x))


def sizes_of_linear_problems(m):
    """(n, d, weighted): all numbers of rows, with a third of the numbers of columns each, so that all d occur."""
    return [(n, d, (i + j) % 2 == 0) for i, n in enumerate(ROWS) for j, d in enumerate(COLUMNS) if (i + j + m) % 3 == 0]


@cases("m", PREDICTORS)
def test_linear_predictors_and_residual_sums(m):
    for n, d, weighted in sizes_of_linear_problems(m):
        *problem, weights = linear_problem(n, d, m)
        assert_linear(*problem, weights if weighted else None)


@layouts
@cases("dtype", [np.float64, np.float32])
@cases("d", [1, 6])
def test_linear_predictors_in_any_layout(layout, dtype, d):
    x, *rest = linear_problem(70, d, 3)
    assert_linear(layout(x.astype(dtype)), *rest)


@cases("n", [255, 256, 511, 512, 1023, 5000])
@cases("d", [1, 9, 1100])
def test_linear_predictors_of_many_rows_and_columns(n, d):
    """Several blocks of rows; so many columns that a tile has 8 rows only."""
    assert_linear(*linear_problem(min(n, 700) if d > 1000 else n, d, 2))


@given(st.integers(0, 70), st.integers(0, 40), st.integers(1, 11), st.booleans(), st.integers(0, 2**32 - 1))
def test_linear_predictors_of_any_shape(n, d, m, weighted, seed):
    *problem, weights = linear_problem(n, d, m, seed)
    assert_linear(*problem, weights if weighted else None)


def test_a_loss_is_as_exact_as_its_logarithms():
    """Two classes, one column, η from −40 to 40: log(1 + e^−η) by its own function."""
    x = np.linspace(-40.0, 40.0, 64)[:, np.newaxis]
    one = np.ones(1)
    for code, sign in ((0, 1.0), (1, -1.0)):
        for i in range(64):
            labels = np.array([code], np.int32)
            expected = np.logaddexp(0.0, sign * x[i, 0])
            for weights in (None, one):
                loss, gradient = _kernels.softmax_pass(x[i : i + 1], one[np.newaxis], 0 * one, 0 * one, labels, weights)
                assert loss == pytest.approx(expected, rel=1e-14, abs=3e-16)
                assert gradient[0, 1] == pytest.approx(1 / (1 + np.exp(-x[i, 0])) - code, rel=1e-14, abs=3e-16)


@cases("weighted", [False, True])
@cases("m", [1, 2, 5])
@cases("size", [1e3, 1e5, 1e300])
@cases("sparse", [False, True])
def test_extreme_predictors_neither_overflow_nor_vanish(m, weighted, size, sparse):
    rng = random(61)
    x = rng.choice([-1.0, 0.0, 1.0], size=(70, 1))
    w, constant = size * rng.choice([-1.0, 1.0], size=(m, 1)), np.zeros(m)
    labels, weights = rng.integers(0, m + 1, 70).astype(np.int32), rng.uniform(0.5, 1.0, 70) if weighted else None
    expected, residual = softmax(scores(x, w, constant, np.zeros(1)), labels, weights)
    if sparse:
        loss, gradient = _kernels.sparse_softmax_pass(*with_index(x, np.int32), w.T.copy(), constant, labels, weights)
    else:
        loss, gradient = _kernels.softmax_pass(x, w, constant, np.zeros(1), labels, weights)
    assert np.isfinite(loss)
    assert loss == pytest.approx(expected, rel=1e-13)
    assert_near(gradient, back(x, np.zeros(1), residual), 70)


@cases("sparse", [False, True])
@cases("code", [0, 1])
def test_a_predictor_that_is_not_a_number_is_not_a_good_one(code, sparse):
    """∞ − ∞ at the end of a step that is too long: the loss must not be finite, or it would be taken."""
    x, w, labels = np.array([[1e200, 1e200]]), np.array([[1e200, -1e200]]), np.array([code], np.int32)
    if sparse:
        loss, _ = _kernels.sparse_softmax_pass(*with_index(x, np.int32), w.T.copy(), np.zeros(1), labels, None)
    else:
        loss, _ = _kernels.softmax_pass(x, w, np.zeros(1), np.zeros(2), labels, None)
    assert not np.isfinite(loss)


@cases("weighted", [False, True])
def test_hundreds_of_classes(weighted):
    *problem, weights = linear_problem(70, 3, 400)
    assert_linear(*problem, weights if weighted else None)


def test_sums_of_probabilities_do_not_overflow_when_multiplied():
    """Without weights the sums of a tile are multiplied, and the logarithm taken of the product: here, of 2000^16."""
    x, labels = np.zeros((64, 1)), np.zeros(64, np.int32)
    loss, _ = _kernels.softmax_pass(x, np.zeros((1999, 1)), np.zeros(1999), np.zeros(1), labels, None)
    assert loss == pytest.approx(64 * np.log(2000.0), rel=1e-14)


# the same for sparse rows


def sparse_problem(n, d, m, seed=62):
    rng = random(seed)
    _, w, constant, _, labels, weights = linear_problem(n, d, m, seed)
    return np.where(rng.random((n, d)) < 0.3, rng.normal(size=(n, d)), 0.0), w, constant, labels, weights


def assert_sparse_linear(dense, w, constant, labels, weights, index=np.int32):
    n, d = dense.shape
    rows, origin, columns = with_index(dense, index), np.zeros(d), np.ascontiguousarray(w.T)
    eta = scores(dense, w, constant, origin)
    assert_near(_kernels.sparse_predictors(*rows, columns, constant), eta)
    loss, residual = softmax(eta, labels, weights)
    result, gradient = _kernels.sparse_softmax_pass(*rows, columns, constant, labels, weights)
    assert gradient.shape == (len(w), d + 1)
    assert_near(result, loss, 1.0 + n)
    assert_near(gradient, back(dense, origin, residual), 1.0 + n)
    assert_near(_kernels.sparse_residual_sums(*rows, d, residual), back(dense, origin, residual), 1.0 + n)


@cases("m", PREDICTORS)
def test_sparse_linear_predictors_and_residual_sums(m):
    for k, (n, d, weighted) in enumerate(sizes_of_linear_problems(m)):
        *problem, weights = sparse_problem(n, d, m)
        assert_sparse_linear(*problem, weights if weighted else None, (np.int32, np.int64)[k % 2])


@given(st.integers(0, 70), st.integers(0, 40), st.integers(1, 11), st.booleans(), st.integers(0, 2**32 - 1))
def test_sparse_linear_predictors_of_any_shape(n, d, m, weighted, seed):
    *problem, weights = sparse_problem(n, d, m, seed)
    assert_sparse_linear(*problem, weights if weighted else None)


@cases("n", [255, 256, 1024, 5000])
def test_sparse_linear_predictors_of_many_rows(n):
    assert_sparse_linear(*sparse_problem(n, 9, 2))


def test_cells_stored_twice_in_sparse_rows_add_up():
    rows = np.array([1.0, 2.0, 5.0]), np.array([1, 1, 0], np.int32), np.array([0, 2, 3], np.int32)
    w, none = np.array([[10.0], [100.0]]), np.zeros(1)
    assert _kernels.sparse_predictors(*rows, w, none).tolist() == [[300.0], [50.0]]
    assert _kernels.sparse_residual_sums(*rows, 2, np.array([[1.0], [-1.0]])).tolist() == [[-5.0, 3.0, 0.0]]


# threads and neighbours


def linear_results(n, d, m, weighted):
    x, w, constant, origin, labels, weights = linear_problem(n, d, m)
    weights, residual = weights if weighted else None, random(63).normal(size=(n, m))
    rows, columns = with_index(np.where(np.abs(x) > 1, x, 0.0), np.int32), np.ascontiguousarray(w.T)
    return [
        _kernels.predictors(x, w, constant, origin),
        *_kernels.softmax_pass(x, w, constant, origin, labels, weights),
        _kernels.residual_sums(x, origin, residual),
        _kernels.sparse_predictors(*rows, columns, constant),
        *_kernels.sparse_softmax_pass(*rows, columns, constant, labels, weights),
        _kernels.sparse_residual_sums(*rows, d, residual),
    ]


@cases("weighted", [False, True])
@cases("n, d, m", [(20_000, 30, 1), (5_001, 33, 5), (1_500, 9, 100)])
def test_linear_kernels_give_the_same_bits_from_any_number_of_threads(threads, n, d, m, weighted):
    results = []
    for count in (1, 2, 3, 7):
        threads(count)
        results.append(linear_results(n, d, m, weighted))
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            assert np.array_equal(a, b)


@cases("m, d", [(1, 37), (2, 8), (3, 3), (5, 37)])
def test_linear_predictors_of_a_row_do_not_depend_on_its_neighbours(m, d):
    x, w, constant, origin, *_ = linear_problem(100, d, m)
    whole = _kernels.predictors(x, w, constant, origin)
    alone = [_kernels.predictors(x[i : i + 1], w, constant, origin) for i in range(100)]
    assert np.array_equal(np.concatenate(alone), whole)
    order = random(64).permutation(100)
    assert np.array_equal(_kernels.predictors(x[order], w, constant, origin), whole[order])
    dense, columns = np.where(np.abs(x) > 1, x, 0.0), np.ascontiguousarray(w.T)
    whole = _kernels.sparse_predictors(*with_index(dense, np.int32), columns, constant)
    alone = [_kernels.sparse_predictors(*with_index(dense[i : i + 1], np.int32), columns, constant) for i in range(100)]
    assert np.array_equal(np.concatenate(alone), whole)


def test_linear_kernels_leave_their_arguments_as_they_were():
    arguments = linear_problem(70, 5, 3)
    kept = [a.copy() for a in arguments]
    x, w, constant, origin, labels, weights = (frozen(a) for a in arguments)
    _kernels.softmax_pass(x, w, constant, origin, labels, weights)
    rows, columns = [frozen(a) for a in with_index(x, np.int32)], frozen(np.ascontiguousarray(w.T))
    _kernels.sparse_softmax_pass(*rows, columns, constant, labels, weights)
    _kernels.residual_sums(x, origin, frozen(random(65).normal(size=(70, 3))))
    assert all(np.array_equal(a, b) for a, b in zip(arguments, kept, strict=True))


# contracts


@cases("code", [-1, 4, 2**31 - 1, -(2**31)])
@cases("place", [0, 5, 69])
def test_linear_kernels_refuse_a_class_that_is_not_there(code, place):
    x, w, constant, origin, labels, weights = linear_problem(70, 5, 3)
    labels[place] = code
    for call in (
        lambda: _kernels.softmax_pass(x, w, constant, origin, labels, None),
        lambda: _kernels.softmax_pass(x, w, constant, origin, labels, weights),
        lambda: _kernels.sparse_softmax_pass(*with_index(x, np.int32), w.T.copy(), constant, labels, None),
    ):
        with pytest.raises(ValueError, match="class code out of range"):
            call()


@cases("x", [np.ones(6), np.ones((2, 3, 1)), np.ones((2, 3), np.int64), np.ones((2, 3), np.complex128)])
def test_linear_kernels_refuse_what_is_no_matrix_of_floats(x):
    for call in (
        lambda: _kernels.predictors(x, np.ones((1, 3)), np.ones(1), np.ones(3)),
        lambda: _kernels.softmax_pass(x, np.ones((1, 3)), np.ones(1), np.ones(3), np.zeros(2, np.int32), None),
        lambda: _kernels.residual_sums(x, np.ones(3), np.ones((2, 1))),
    ):
        with pytest.raises(TypeError):
            call()


def assert_broken(rows, n, d, m):
    """All kernels of sparse rows refuse them."""
    labels = np.zeros(n, np.int32)
    for call in (
        lambda: _kernels.sum_sparse(*rows, d, labels, None, 1),
        lambda: _kernels.add_sparse(*rows, np.zeros((d, 4)), m, np.zeros((n, m))),
        lambda: _kernels.sparse_predictors(*rows, np.zeros((d, m)), np.zeros(m)),
        lambda: _kernels.sparse_softmax_pass(*rows, np.zeros((d, m)), np.zeros(m), labels, None),
        lambda: _kernels.sparse_residual_sums(*rows, d, np.zeros((n, m))),
    ):
        with pytest.raises(ValueError, match="sparse rows"):
            call()


BROKEN = {
    "column too large": ([3], [0, 1]),
    "negative column": ([-1], [0, 1]),
    "beyond the end": ([0], [0, 2]),
    "backwards": ([0], [1, 0]),
    "before the start": ([0], [-1, 1]),
}


@cases("columns, starts", BROKEN)
@cases("index", [np.int32, np.int64])
@cases("m", [1, 3])
def test_broken_sparse_rows_are_refused(columns, starts, index, m):
    assert_broken((np.ones(1), np.array(columns, index), np.array(starts, index)), 1, 3, m)


def test_a_broken_sparse_row_is_refused_by_any_thread(threads):
    """In the last of many rows, read by the last of several threads."""
    threads(3)
    values, columns, starts = with_index(np.ones((20_000, 30)), np.int32)
    columns[-1] = 30
    assert_broken((values, columns, starts), 20_000, 30, 2)


@cases("dtype", [np.float64, np.float32])
@cases("n, d", [(0, 3), (1, 1), (37, 5), (700, 13), (5, 0)])
def test_column_sums_are_those_of_numpy(n, d, dtype):
    rng = np.random.default_rng(n + d)
    x, origin, weights = rng.normal(size=(n, d)).astype(dtype), rng.normal(size=d), rng.random(n)
    z = x.astype(np.float64) - origin
    for layout in (x, np.asfortranarray(x), np.repeat(x, 2, axis=0)[::2]):
        result = _kernels.column_sums(layout, origin, weights)
        np.testing.assert_allclose(result, [weights @ z, weights @ z**2], rtol=1e-12, atol=1e-12)


# ---- a row left out ---------------------------------------------------------------------------------------------


def left_out_by_numpy(x, labels, mean, scale, gain, constant):
    left = 1.0 - scale[labels] * (x - mean[labels]) ** 2
    cells = constant[labels] - 0.5 * np.log(left) - gain[labels] * (1.0 / left - 1.0)
    return np.nansum(cells, axis=1)


@layouts
@cases("columns", [1, 4, 63, 64, 65, 300])
def test_left_out_densities_are_the_formula(layout, columns):
    rng = random(columns)
    x = rng.normal(size=(70, columns))
    x[rng.random(x.shape) < 0.1] = np.nan
    labels = rng.integers(0, 3, 70).astype(np.int32)
    parameters = [rng.normal(size=(3, columns)) * 0.1, *rng.uniform(0.001, 0.02, size=(3, 3, columns))]
    for kind, digits in ((np.float64, 1e-12), (np.float32, 1e-12)):
        given_x = x.astype(kind)
        own, refused = _kernels.leave_one_out_densities(layout(given_x), labels, *parameters)
        expected = left_out_by_numpy(given_x.astype(np.float64), labels, *parameters)
        np.testing.assert_allclose(own, expected, rtol=digits, atol=1e-12)
        assert not refused.any()


def test_left_out_densities_refuse_a_row_that_held_nearly_all_of_its_class(threads):
    one = np.ones((1, 66))
    x = np.zeros((500, 66))
    x[3, 65], x[7, 0], x[9, 64], x[11, 1] = 1.0, 2.0, 0.99999, 0.9999  # v = 0, below 0, 2e-5, 2e-4
    for limit in (1, 2):
        threads(limit)
        _, refused = _kernels.leave_one_out_densities(x, np.zeros(500, np.int32), 0 * one, one, one, one)
        assert np.flatnonzero(refused).tolist() == [3, 7, 9]
    with pytest.raises(ValueError, match="class code"):
        _kernels.leave_one_out_densities(x, np.ones(500, np.int32), one, one, one, one)


@given(
    st.lists(st.sampled_from([-np.inf, -1.0, -0.0, 0.0, 0.5, 2.0, np.inf])),
    st.lists(st.sampled_from([-1.0, 0.0, 0.5, 3.0])),
)
def test_merge_sorted_counts_what_is_at_or_below_each_value(a, b):
    a, b = np.sort(np.array(a, np.float64)), np.sort(np.array(b, np.float64))
    values, of_a, of_b = _kernels.merge_sorted(a, b)
    np.testing.assert_array_equal(values, np.unique(np.concatenate([a, b])))
    np.testing.assert_array_equal(of_a, np.searchsorted(a, values, side="right"))
    np.testing.assert_array_equal(of_b, np.searchsorted(b, values, side="right"))


# ---- records ----------------------------------------------------------------------------------------------------

CELL = rb'(?:"(?:[^"]|"")*"(?!")|(?!"))[^,\r\n]*'
RECORD = re.compile(rb"%b(?:,%b)*(?:\r\n|\n|\r(?=[^\n]))" % (CELL, CELL))


@given(st.lists(st.sampled_from([b"a", b",", b'"', b'""', b"\n", b"\r", b"\r\n"])).map(b"".join), st.integers(0, 3))
def test_record_ends_is_where_the_grammar_says(data, most):
    end, result = 0, 0
    while (record := RECORD.match(data, end)) and (most == 0 or result < most):
        end, result = record.end(), result + 1
    assert _kernels.last_record_end(data, ord(","), ord('"'), most) == end


@given(st.lists(st.sampled_from([b"0", b"7", b".", b"a", b",", b'"', b" ", b"\n", b"\r"])).map(b"".join))
def test_leading_zeros_begin_a_cell(data):
    expected = re.search(rb'(?:^|[," \n\r])0\d', data) is not None
    assert _kernels.has_leading_zero(data, ord(","), ord('"')) == expected
