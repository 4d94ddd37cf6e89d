"""Counts: how often each class took each value."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from deciban.data.batch import Coded
from deciban.errors import NegativeEvidence
from deciban.statistics import Counts
from tests.laws import Subject, equal_statistics, rows, saved_and_loaded

LEVELS = ("b", 3, 0.5, None, "a", -1)


def coded(n, d):
    codes = hnp.arrays(np.int32, (n, d), elements=st.integers(-2, len(LEVELS) - 1), fill=st.nothing())
    return codes.map(lambda c: Coded(c, (LEVELS,) * d))


def collect(values, labels, weights, classes):
    return Counts.of(values.codes, values.levels, labels, weights, classes)


SUBJECTS = [Subject(Counts, "Counts", collect, coded, equal_statistics)]


def of(*columns, labels=None):
    """Counts of columns of plain values; None is missing."""
    levels = [list(dict.fromkeys(v for v in column if v is not None)) for column in columns]
    codes = [
        [-1 if v is None else known.index(v) for v in column] for column, known in zip(columns, levels, strict=True)
    ]
    labels = np.zeros(len(columns[0]), np.int32) if labels is None else np.array(labels, np.int32)
    return Counts.of(np.array(codes, np.int32).T.copy(), levels, labels, None, int(labels.max(initial=0)) + 1)


def column_of(counts, j):
    """{value: count in each class} of one column."""
    places = range(counts.offsets[j], counts.offsets[j + 1])
    return {v: counts.table.value[:, p].tolist() for v, p in zip(counts.levels[j], places, strict=True)}


@given(rows(SUBJECTS[0]))
def test_counts_are_those_of_a_counter(drawn):
    result = SUBJECTS[0].of(drawn)
    weights = np.ones(len(drawn)) if drawn.weights is None else drawn.weights
    for j in range(drawn.values.shape[1]):
        expected = Counter()
        for code, label, weight in zip(drawn.values.codes[:, j], drawn.labels, weights, strict=True):
            if code >= 0 and weight:
                expected[LEVELS[code], int(label)] += weight
        table = column_of(result, j)
        assert {(v, c): n for v, row in table.items() for c, n in enumerate(row) if n} == expected
        assert result.present[:, j].tolist() == [
            sum(n for (_, c), n in expected.items() if c == label) for label in range(drawn.classes)
        ]


def test_values_stand_in_one_order_whatever_the_batches_knew():
    early, lazy = of(["y", "x", "y"], [2, 10, 2]), of(["z", "x", None], [10, 1, 10])
    for both in (early + lazy, lazy + early):
        assert both.levels == (("x", "y", "z"), (1, 2, 10))
        assert column_of(both, 0) == {"x": [2], "y": [2], "z": [1]}
        assert column_of(both, 1) == {1: [1], 2: [2], 10: [3]}


def test_values_that_are_forgotten_are_listed_no_more():
    assert (of(["x", "y"]) - of(["y"])).levels == (("x",),)


def test_values_that_only_a_dropped_class_took_are_listed_no_more():
    assert of(["x", "y"], labels=[0, 1]).take([1]).levels == (("y",),)


def test_a_value_never_seen_cannot_be_forgotten():
    with pytest.raises(NegativeEvidence):
        of(["x", "x"]) - of(["y"])


def test_every_kind_of_value_is_saved_as_it_is():
    levels = (-3, 1, 2.5, 1e300, "", "1", "naïve \u2028\U0001f600", None)
    counts = Counts.of(np.arange(8, dtype=np.int32)[:, None], [levels], np.zeros(8, np.int32), None, 1)
    loaded = saved_and_loaded(counts)
    assert loaded.levels == counts.levels == (levels,)
    assert [type(v) for v in loaded.levels[0]] == [type(v) for v in levels]


def test_truth_is_saved_as_truth():
    loaded = saved_and_loaded(of([True, False]))
    assert [type(v) for v in loaded.levels[0]] == [bool, bool]
