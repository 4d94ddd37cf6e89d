"""Cells: counts of the cells of partitions that were fixed before."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from deciban.errors import DecibanError, NegativeEvidence
from deciban.statistics import Sum
from deciban.statistics.cell_counts import Cells
from tests import exact
from tests.laws import Subject, equal_statistics, rows

EACH = 3  # cells of a partition


def partitions(n, d):
    return hnp.arrays(np.int32, (n, d), elements=st.integers(0, EACH - 1), fill=st.nothing())


def collect(codes, labels, weights, classes):
    return Cells.count(codes, np.arange(0, EACH * codes.shape[1] + 1, EACH), labels, weights, classes)


SUBJECTS = [
    Subject(
        Cells,
        "Cells",
        collect,
        partitions,
        equal_statistics,
        joint=True,
        fixed=True,
        width=lambda columns: EACH * columns,
    )
]


@given(rows(SUBJECTS[0]))
def test_counts_are_those_of_fractions(drawn):
    """Each cell as a column of its own, which is 1 in the rows that are in it."""
    inside = np.repeat(drawn.values, EACH, axis=1) == np.tile(np.arange(EACH), drawn.values.shape[1])
    _, counts, _ = exact.moments(inside.astype(float), drawn.labels, drawn.weights, drawn.classes)
    assert np.array_equal(SUBJECTS[0].of(drawn).sum_x.words, exact.as_words(counts))


def test_partitions_may_be_of_different_sizes():
    codes = np.array([[0, 4], [1, 0], [1, 4]], np.int32)
    result = Cells.count(codes, np.array([0, 2, 7]), np.array([0, 1, 1], np.int32), np.array([1.0, 0.5, 2.0]), 2)
    assert result.sum_x.value.tolist() == [[1, 0, 0, 0, 0, 0, 1], [0, 2.5, 0.5, 0, 0, 0, 2]]


def test_a_cell_cannot_be_forgotten_more_often_than_it_was_seen():
    with pytest.raises(NegativeEvidence):
        Cells(Sum.of([[2.0, 5.0]])) - Cells(Sum.of([[2.0, 6.0]]))


@pytest.mark.parametrize("counts", [[[1.0, -1.0]], [[1.0, np.inf]], [[1.0, 2.0, 3.0]], [[1.0, 2.0]] * 2])
def test_what_cannot_have_been_counted_is_refused(counts):
    with pytest.raises(DecibanError, match="sum_x"):
        Cells(Sum(np.array([counts]))).check(1, 2)
