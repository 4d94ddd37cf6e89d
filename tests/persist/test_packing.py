"""Packing: no number changes, and what is unpacked is never far larger than what was packed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from deciban.persist.packing import DTYPES, MOST_TIMES, NARROW, SMALL, pack, unpack


def back(array):
    """The array after packing and unpacking; what is packed is within the bounds that the module promises."""
    packed, how = pack(array)
    assert packed.nbytes <= array.nbytes
    assert array.nbytes <= MOST_TIMES * packed.nbytes
    return packed if how is None else unpack(packed, how)


@given(st.data(), st.sampled_from(sorted(NARROW)), st.integers(1, 5))
def test_every_array_comes_back_to_the_last_bit(data, name, factor):
    few = data.draw(arrays_of.arrays(name, st.integers(1, 8)))
    array = np.resize(few, (factor, SMALL // few.itemsize))
    result = back(array)
    assert (result.dtype, result.shape) == (array.dtype, array.shape)
    assert result.tobytes() == array.tobytes()


NUMBERS = np.random.default_rng(0).integers(0, 200, 3000)


@pytest.mark.parametrize(
    ("array", "narrow"),
    [
        (NUMBERS.astype(float), "u1"),
        (NUMBERS - 100.0, "i1"),
        (NUMBERS * 300.0, "u2"),
        (NUMBERS * -300, "i4"),
        (NUMBERS * 2.0**31, "f4"),
        (NUMBERS + 0.5, "f4"),
        (NUMBERS.astype(np.int32), "u1"),
    ],
)
def test_numbers_are_stored_in_the_narrowest_type_that_holds_them(array, narrow):
    packed, how = pack(array)
    assert how.narrow == narrow
    assert packed.nbytes <= array.size * DTYPES[narrow].itemsize


@pytest.mark.parametrize("odd", [-0.0, np.nan, np.inf, 0.1, 2.0**60])
def test_one_number_that_is_not_held_exactly_keeps_the_type(odd):
    array = np.append(NUMBERS.astype(float), odd)
    assert back(array).tobytes() == array.tobytes()
    assert (pack(array)[1] or ("float64", "float64"))[1] != "u1"


def test_zeros_are_padded_to_the_bound():
    packed, how = pack(np.zeros(1 << 20))
    assert packed.size == (8 << 20) // MOST_TIMES
    assert not unpack(packed, how).any()
