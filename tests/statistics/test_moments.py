"""Moments: Σw, Σwx and Σwx², exactly."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from deciban.errors import BadCell, NegativeEvidence
from deciban.statistics import Moments
from tests import exact
from tests.cases import cases
from tests.laws import Subject, dyadic, equal_statistics, matrices, nans, rows, wild

SUBJECTS = [Subject(Moments, "Moments", Moments.of, matrices(wild | nans), equal_statistics)]


def of(values, weights=None):
    x = np.array(values, dtype=np.float64).reshape(-1, 1)
    return Moments.of(x, np.zeros(len(x), np.int32), weights, 1)


@given(rows(SUBJECTS[0]))
def test_sums_are_those_of_fractions(drawn):
    result = SUBJECTS[0].of(drawn)
    expected = exact.moments(drawn.values, drawn.labels, drawn.weights, drawn.classes)
    for mine, table in zip((result.count, result.sum_x, result.sum_xx), expected, strict=True):
        assert np.array_equal(mine.words, exact.as_words(table))


@given(st.lists(wild, min_size=1, max_size=9), st.data())
def test_mean_and_squares_are_as_good_as_a_double_can_hold(values, data):
    weights = data.draw(hnp.arrays(np.float64, len(values), elements=dyadic.filter(bool)))
    result = of(values, weights)
    mean, squares = exact.mean_and_squares(values, weights)
    assert exact.relative_error(result.mean.item(), mean) < 3e-16
    assert exact.relative_error(result.squares.item(), squares) < 1e-15


def test_squares_of_neighbouring_doubles_far_from_zero():
    values = [1e15, np.nextafter(1e15, 2e15), 1e15]
    assert exact.relative_error(of(values).squares.item(), exact.mean_and_squares(values)[1]) < 1e-15


@given(st.floats(1e-100, 1e100), st.lists(st.floats(0.001, 1000), min_size=1, max_size=9))
def test_a_constant_has_no_squares_whatever_the_weights(value, weights):
    result = of([value] * len(weights), np.array(weights))
    assert (result.mean.item(), result.squares.item()) == (value, 0.0)


@given(rows(SUBJECTS[0]))
def test_pooled_is_all_rows_in_one_class(drawn):
    one = Moments.of(drawn.values, np.zeros_like(drawn.labels), drawn.weights, 1)
    equal_statistics(SUBJECTS[0].of(drawn).pooled(), one, drawn)


@cases("size", [1, 10, 63, 150])
@cases("kinds", [1, 5, 300])
def test_batches_do_not_matter_whether_weights_are_few_or_many(size, kinds):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2)) * 10.0 ** rng.uniform(-20, 20, size=(300, 2))
    weights, labels = rng.choice(rng.random(kinds), 300), rng.integers(0, 3, 300).astype(np.int32)
    total = Moments.of(x[:0], labels[:0], weights[:0], 3)
    for i in range(0, 300, size):
        total = total + Moments.of(x[i : i + size], labels[i : i + size], weights[i : i + size], 3)
    equal_statistics(total, Moments.of(x, labels, weights, 3), None)


def test_missing_cells_count_nowhere():
    result = Moments.of(np.array([[1.0, np.nan], [np.nan, 2.0], [3.0, np.nan]]), np.array([0, 0, 1], np.int32), None, 2)
    assert result.count.value.tolist() == [[1, 1], [1, 0]]
    assert result.mean.tolist() == [[1, 2], [3, 0]]


@cases("weights", [None, np.ones(3)])
@cases("bad", [np.inf, -np.inf, 1e200])
def test_a_cell_too_large_to_square_is_named(bad, weights):
    x = np.array([[1.0, 2.0], [3.0, bad], [bad, 5.0]])
    with pytest.raises(BadCell, match="infinite" if np.isinf(bad) else "too large") as caught:
        Moments.of(x, np.zeros(3, np.int32), weights, 1)
    assert (caught.value.row, caught.value.column) == (1, 1)


@cases(
    "learned, never",
    [
        ([1.0], [1.0, 2.0]),  # more rows than there were
        ([1.0, 2.0], [3.0]),  # Σx² too large
        ([3.0, 3.0, 4.0], [1.0]),  # what remains is no data's sum: Σ(x − mean)² < 0
        ([2.0], [1.0]),  # no rows left, but something of them
        ([-1.0, 1.0], [0.0, 1.0]),
    ],
)
def test_rows_never_learned_cannot_be_forgotten(learned, never):
    with pytest.raises(NegativeEvidence):
        of(learned) - of(never)
