"""Histogram: counts at the finest resolution that fits."""

import struct
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deciban.errors import NegativeEvidence
from deciban.statistics import Histogram
from deciban.statistics.histogram import keys_of, values_of
from tests.laws import Subject, equal_statistics, matrices, nans, wild

finite = st.floats(allow_nan=False, allow_infinity=False)


def at_level_of(expected, actual):
    """Forgetting does not refine: equal after coarsening."""
    return expected.coarsened(actual.levels)


SUBJECTS = [
    Subject(Histogram, f"Histogram(cap={cap})", partial(Histogram.of, cap=cap), matrices(wild | nans), equal_statistics,
            after_subtraction=at_level_of)
    for cap in (2, 4, 2048)
] + [
    Subject(Histogram, f"Histogram(bits={bits})", partial(Histogram.of, bits=bits), matrices(wild | nans),
            equal_statistics, after_subtraction=at_level_of)
    for bits in (2, 100)
]  # fmt: skip


def of(values, cap=2048, labels=None, classes=1):
    x = np.asarray(values, dtype=np.float64).reshape(-1, 1)
    labels = np.zeros(len(x), np.int32) if labels is None else np.asarray(labels, np.int32)
    return Histogram.of(x, labels, None, classes, cap=cap)


def ordered(x):
    """The place of a double among all doubles, counted from zero: by struct, not by numpy."""
    (bits,) = struct.unpack("<q", struct.pack("<d", abs(x)))
    return bits if x >= 0 else -1 - bits


def least_level(values, cap):
    return next(level for level in range(64) if len({ordered(v) >> level for v in values}) <= cap)


@given(st.lists(finite, min_size=1, max_size=20))
def test_keys_order_as_the_numbers_do(values):
    x = np.array(sorted(values)) + 0.0
    keys = keys_of(x)
    assert keys.tolist() == [ordered(v) for v in x]
    assert np.array_equal(values_of(keys), x)
    assert all((a < b) == (k < m) for (a, b), (k, m) in zip(pairwise(x), pairwise(keys), strict=True))


@given(st.lists(finite, min_size=1, max_size=30), st.integers(2, 10))
def test_the_level_is_the_least_that_fits(values, cap):
    h = of(values, cap)
    assert h.levels.item() == least_level(values, cap)
    assert h.keys[0].tolist() == sorted({ordered(v) >> h.levels.item() for v in values})


def width(keys):
    """The bits that keys take, as text in base two: without zeros that all of them end with."""
    texts = [f"{k if k >= 0 else ~k:064b}" for k in keys]
    return max(len(text.rstrip("0")) for text in texts)


@given(st.lists(finite, min_size=1, max_size=30), st.integers(2, 1000))
def test_the_level_is_the_least_that_fits_into_the_bits(values, bits):
    h = Histogram.of(np.array(values)[:, np.newaxis], np.zeros(len(values), np.int32), None, 1, bits=bits)
    keys = {ordered(v) for v in values}
    for level in range(64):
        left = {k >> level for k in keys}
        if len(left) * max(1, width(left) - level) <= bits:
            break
    assert h.levels.item() == level


def test_whole_numbers_are_exact_in_few_bits():
    h = Histogram.of(np.arange(-128.0, 128)[:, np.newaxis], np.zeros(256, np.int32), None, 1, bits=256 * 19)
    assert h.levels.item() == 0
    assert h.lower(0).tolist() == list(range(-128, 128))


@example([0.0, 1.0, -1.0], 2)  # 0 is not below 0, though −0.0 is
@given(st.lists(finite, min_size=1, max_size=30), st.integers(2, 10))
def test_every_value_lies_in_its_cell(values, cap):
    h = of(values, cap)
    lower, upper = h.lower(0), h.upper(0)
    assert np.isfinite([lower, upper]).all()
    inside = [(lower <= v) & (v <= upper) for v in values]
    assert all(result.sum() == 1 for result in inside)
    assert h.table(0).value[0].tolist() == np.sum(inside, axis=0).tolist()


@settings(max_examples=15)
@given(st.lists(finite | st.floats(1e9, 1e9 + 1), min_size=3, max_size=40), st.integers(2, 9), st.randoms())
def test_merging_in_any_order_is_one_batch(values, cap, random):
    parts = [of([v], cap) for v in values]
    while len(parts) > 1:  # any two of them, again and again
        a, b = (parts.pop(random.randrange(len(parts))) for _ in range(2))
        parts.append(a + b)
    equal_statistics(parts[0], of(values, cap), None)


def test_values_are_exact_below_the_cap():
    x = np.random.default_rng(0).normal(size=2000)
    h = of(np.concatenate([x, x[:500]]))
    assert h.levels.item() == 0
    assert np.array_equal(h.lower(0), np.sort(x))
    assert np.array_equal(h.upper(0), np.sort(x))
    assert h.table(0).value.sum() == 2500


def test_a_narrow_range_far_from_zero_keeps_its_resolution():
    x = 1e9 + np.random.default_rng(1).random(100_000)
    h = of(x, cap=2048)
    width = h.upper(0) - h.lower(0)
    assert len(h.keys[0]) > 1024  # one bit less would not fit
    assert width.max() < 1 / 1000


def test_batches_beyond_the_cap_give_the_level_of_all_values():
    rng = np.random.default_rng(2)
    x, labels = np.round(rng.normal(size=3000), 3), rng.integers(0, 3, 3000)
    whole = of(x, 64, labels, 3)
    parts = [of(x[i::7], 64, labels[i::7], 3) for i in range(7)]
    total = parts[3]
    for i in (6, 0, 5, 1, 4, 2):
        total = total + parts[i]
    equal_statistics(total, whole, None)
    assert whole.levels.item() == least_level(x.tolist(), 64)


@pytest.mark.parametrize("cap", [50, 2048])
def test_any_bins_can_be_counted_later(cap):
    rng = np.random.default_rng(3)
    x, labels = np.exp(rng.normal(size=1500)), rng.integers(0, 2, 1500)
    h = of(x, cap, labels, 2)
    for cut in h.lower(0)[[0, 7, 20, -1]]:
        below = h.table(0).value[:, h.upper(0) < cut].sum(axis=1)
        assert below.tolist() == [((x < cut) & (labels == c)).sum() for c in range(2)]


def test_forgetting_does_not_refine():
    few, many = [1.0, 1.5], [1.0 + i / 64 for i in range(64)]
    left = (of(few, 8) + of(many, 8)) - of(many, 8)
    assert left.levels.item() == least_level(few + many, 8) > 0
    assert left.table(0).value.sum() == 2


def test_rows_never_learned_cannot_be_forgotten():
    with pytest.raises(NegativeEvidence):
        of([1.0, 2.0]) - of([3.0])


def test_zero_is_the_evidence_of_no_rows():
    equal_statistics(Histogram.zero(1, 1, cap=9), of([], 9), None)


def test_single_precision_is_counted_as_the_doubles_it_equals():
    x = np.random.default_rng(4).normal(size=(500, 2)).astype(np.float32)
    labels = np.zeros(500, np.int32)
    equal_statistics(
        Histogram.of(x, labels, None, 1, 99), Histogram.of(x.astype(np.float64), labels, None, 1, 99), None
    )
