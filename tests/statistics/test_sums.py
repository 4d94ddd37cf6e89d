"""Sum: exact sums of doubles, whose words are a function of the sum alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deciban.statistics import Sum
from deciban.statistics.sums import BLOCK
from tests.exact import exact, words_of

doubles = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)


def total_of(values):
    total = Sum.zeros((1,))
    for value in values:
        total = total + Sum.of([value])
    return total


@given(st.lists(doubles, max_size=12))
def test_words_are_the_exact_sum_rounded_again_and_again(values):
    assert total_of(values).words[:, 0].tolist() == (words_of(exact(values)) or [0.0])


@given(st.lists(doubles, min_size=1, max_size=12), st.data())
def test_what_was_added_in_one_order_can_be_taken_out_in_another(values, data):
    total = total_of(values)
    for value in data.draw(st.permutations(values)):
        total = total - Sum.of([value])
    assert total == Sum.zeros((1,))


@given(st.lists(st.tuples(doubles, doubles), min_size=1, max_size=8))
def test_total_is_the_sum_over_the_first_axis(pairs):
    table = Sum.of(pairs) + Sum.of(np.full((len(pairs), 2), 0.1))
    for j in range(2):
        expected = words_of(sum(exact([pair[j], 0.1]) for pair in pairs)) or [0.0]
        result = table.total().words[:, j].tolist()
        assert [w for w in result if w] == [w for w in expected if w]


@given(st.lists(doubles, max_size=10), st.data())
def test_group_adds_slots_of_equal_index(values, data):
    index = [data.draw(st.integers(0, 2)) for _ in values]
    grouped = Sum.of([values]).group(index, 3)
    for group in range(3):
        expected = words_of(exact(v for v, i in zip(values, index, strict=True) if i == group))
        assert [w for w in grouped.words[:, 0, group] if w] == expected


def test_value_is_rounded_once():
    ones = total_of([1.0, 2.0**-53, 2.0**-200])  # above half way: up
    assert ones.value.item() == 1.0 + 2.0**-52
    assert total_of([1.0, 2.0**-53]).value.item() == 1.0  # half way: to even


def test_place_and_take_undo_each_other_along_any_axis():
    s = Sum.of([[1e16, 2.0], [3.0, 4.0]]) + Sum.of([[1.0, 0.0], [0.0, 0.5]])
    assert len(s.words) == 2
    assert s.scatter([2, 0], 3).take([2, 0]) == s
    assert s.scatter([1, 3], 5, axis=1).take([1, 3], axis=1) == s


def test_take_forgets_words_that_nothing_needs():
    s = Sum.of([[1e16, 2.0]]) + Sum.of([[1.0, 0.0]])
    assert s.take([1], axis=1) == Sum.of([[2.0]])


@pytest.mark.parametrize("place", [0, BLOCK - 1, BLOCK, 2 * BLOCK])
def test_long_sums_are_exact_wherever_a_double_does_not_hold_one(place):
    one = np.ones(2 * BLOCK + 1)
    large = one.copy()
    large[place] = 2.0**53
    assert np.array_equal((Sum.of(one) + Sum.of(3 * one)).words, [4 * one])
    for sum_, sign in ((Sum.of(large) + Sum.of(one), 1), (Sum.of(one) - Sum.of(large), -1)):
        assert sum(map(int, sum_.words[:, place])) == 1 + sign * 2**53
        assert np.array_equal(np.delete(sum_.value, place), np.full(2 * BLOCK, 1.0 + sign))


def test_sums_of_different_shape_do_not_add():
    with pytest.raises(ValueError, match="do not add"):
        Sum.zeros((2,)) + Sum.zeros((3,))
