"""Extrema: the smallest and the largest of the cells present."""

import numpy as np
import pytest
from hypothesis import given

from deciban.errors import NegativeEvidence, NotInvertible
from deciban.statistics import Extrema
from tests.laws import Subject, equal_statistics, matrices, nans, rows, wild

SUBJECTS = [Subject(Extrema, "Extrema", Extrema.of, matrices(wild | nans), equal_statistics, subtracts=False)]


@given(rows(SUBJECTS[0]))
def test_extrema_are_those_of_the_rows_of_positive_weight(drawn):
    result = SUBJECTS[0].of(drawn)
    weights = np.ones(len(drawn)) if drawn.weights is None else drawn.weights
    for c in range(drawn.classes):
        for j in range(drawn.values.shape[1]):
            chosen = (drawn.labels == c) & (weights > 0) & ~np.isnan(drawn.values[:, j])
            cells = drawn.values[chosen, j].tolist()
            assert result.low[c, j] == min(cells, default=np.inf)
            assert result.high[c, j] == max(cells, default=-np.inf)
            assert result.count.value[c, j] == weights[chosen].sum()
            for side, sign in ((result.least, 1), (result.most, -1)):
                smallest, second = [*sorted({sign * cell for cell in cells}), np.inf, np.inf][:2]
                assert side.value[c, j] == smallest
                assert side.second[c, j] == second
                at = chosen & (sign * drawn.values[:, j] == smallest)
                assert side.weight.value[c, j] == weights[at].sum()


@given(rows(SUBJECTS[0]))
def test_extrema_without_a_row_are_those_of_the_others(drawn):
    result = SUBJECTS[0].of(drawn)
    for i in range(len(drawn)):
        left = result.subtract_row(SUBJECTS[0].of(drawn.take(np.array([i]))))
        expected = SUBJECTS[0].of(drawn.take(np.delete(np.arange(len(drawn)), i)))
        assert np.array_equal(left.low, expected.low)
        assert np.array_equal(left.high, expected.high)
        assert left.count == expected.count


@pytest.mark.parametrize("never", [[[1.0], [1.0]], [[0.0], [1.0], [2.0]]])
def test_more_than_was_learned_cannot_be_left_out(never):
    learned = Extrema.of(np.array([[1.0], [2.0]]), np.zeros(2, np.int32), None, 1)
    with pytest.raises(NegativeEvidence):
        learned.subtract_row(Extrema.of(np.array(never), np.zeros(len(never), np.int32), None, 1))


def test_it_says_that_it_cannot_forget():
    one = Extrema.of(np.ones((1, 1)), np.zeros(1, np.int32), None, 1)
    with pytest.raises(NotInvertible, match="cannot forget rows"):
        one - one
