"""Coding and Encoding: numbers and categories as small codes, and as entries of a matrix."""

from bisect import bisect_right
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deciban.data import frame_of
from deciban.evidence.mixed_columns import FARTHEST, MOST_CODES, Coding, Encoding

CUTS = (-1.5, 0.0, 2.0)
LEVELS = ("red", "blue")
CODING = Coding((CUTS, None, (0.5,)), (None, LEVELS, None))
RANGES = (-3.0, 4.0), None, (0.0, 1.0)
ENCODING = Encoding((2.0, None, 0.0), (0.5, None, 4.0), RANGES, (None, LEVELS, None))

numbers = st.none() | st.floats(-5, 5) | st.sampled_from(CUTS) | st.sampled_from([-0.0, 1e300, -1e300])
cells = st.tuples(numbers, st.sampled_from(["red", "blue", "green", None]), st.sampled_from([0, 1, None]))
tables = st.lists(cells, min_size=1, max_size=20)


def frame(rows, names=("size", "colour", "flag")):
    """With a last row that has a value of each type, so that types are inferred."""
    columns = zip(*rows, (0.25, "red", 1), strict=True)
    return frame_of(pa.table({n: pa.array(c, t) for n, c, t in zip(names, columns, TYPES, strict=True)}))


TYPES = (pa.float64(), pa.string(), pa.int64())


@given(tables)
def test_codes_are_places_among_cuts_and_values(rows):
    def place(cell, cuts):
        return 0 if cell is None else 1 + bisect_right(cuts, cell)

    colours = {None: 0, "red": 1, "blue": 2, "green": 3}
    expected = [[place(x, CUTS), colours[colour], place(flag, (0.5,))] for x, colour, flag in rows]
    actual = CODING.of(frame(rows), [0, 1, 2])
    assert actual.dtype == np.uint8
    assert actual[:-1].tolist() == expected


@given(tables)
def test_entries_are_distances_and_ones(rows):
    def away(cell, middle, spread, low, high):
        if cell is None:
            return np.nan
        return min(max((min(max(cell, low), high) - middle) / spread, -FARTHEST), FARTHEST)

    colours = {"red": [1.0, 0.0], "blue": [0.0, 1.0], "green": [np.nan] * 2, None: [np.nan] * 2}
    expected = np.array(
        [[away(x, 2.0, 0.5, -3.0, 4.0), *colours[colour], away(flag, 0.0, 4.0, 0.0, 1.0)] for x, colour, flag in rows]
    )
    np.testing.assert_allclose(ENCODING.of(frame(rows), [0, 1, 2])[:-1], expected, rtol=1e-14)
    assert ENCODING.owner.tolist() == [0, 1, 1, 2]
    based = replace(ENCODING, baseline=(False, True, False))
    np.testing.assert_array_equal(based.of(frame(rows), [0, 1, 2]), ENCODING.of(frame(rows), [0, 1, 2])[:, [0, 2, 3]])
    assert based.owner.tolist() == [0, 1, 2]


@given(tables)
def test_missing_and_unlisted_values_are_unknown(rows):
    expected = [[x is None, colour in ("green", None), flag is None] for x, colour, flag in rows]
    actual = CODING.unknown(CODING.of(frame(rows), [0, 1, 2]))
    assert actual.dtype == np.bool_
    assert actual[:-1].tolist() == expected
    np.testing.assert_array_equal(np.isnan(ENCODING.of(frame(rows), [0, 1, 2])), actual[:, ENCODING.owner])


def test_the_highest_number_is_known():
    """Its code is the last of its column, as that of a value in no list is."""
    rows = frame([(1e300, "green", 1), (-1e300, "blue", 0)])
    codes = CODING.of(rows, [0, 1, 2])
    assert codes[0].tolist() == (CODING.sizes - 1).tolist()
    assert CODING.unknown(codes)[:2].tolist() == [[False, True, False], [False, False, False]]


@pytest.mark.parametrize("reading", [CODING, ENCODING])
def test_the_form_of_the_table_and_the_place_of_its_columns_do_not_matter(reading):
    table = pa.table({"size": [0.25, -1.5, None], "colour": ["blue", None, "green"], "flag": [0.0, 1.0, None]})
    expected = reading.of(frame_of(table), [0, 1, 2])
    for other in (
        table.to_pandas(),
        table.to_pandas().astype({"size": np.float32, "colour": "category"}),
        pl.from_arrow(table),
        table.set_column(1, "colour", table["colour"].dictionary_encode()),
        np.array(table.to_pandas().astype(object)),
    ):
        np.testing.assert_array_equal(reading.of(frame_of(other), [0, 1, 2]), expected)
    reordered = table.select(["flag", "size", "colour"]).append_column("other", pa.nulls(3))
    np.testing.assert_array_equal(reading.of(frame_of(reordered), [1, 2, 0]), expected)


@pytest.mark.parametrize("encoding", [ENCODING, replace(ENCODING, baseline=(False, True, False))])
def test_a_subset_of_features_is_read_as_among_all(encoding):
    rows = frame([(1.0, "blue", 0), (None, None, None), (-9.0, "green", 1)])
    for chosen in ([0], [2, 1], [1, 2, 0]):
        np.testing.assert_array_equal(CODING.take(chosen).of(rows, chosen), CODING.of(rows, [0, 1, 2])[:, chosen])
        entries = [np.flatnonzero(encoding.owner == j) for j in chosen]
        expected = encoding.of(rows, [0, 1, 2])[:, np.concatenate(entries)]
        np.testing.assert_array_equal(encoding.take(chosen).of(rows, chosen), expected)


def test_sizes_hold_every_code():
    assert CODING.sizes.tolist() == [5, 4, 3]
    assert CODING.ordered.tolist() == [True, False, True]
    many = tuple(f"value {i}" for i in range(MOST_CODES - 2))
    wide = Coding((None,), (many,))
    assert wide.sizes.tolist() == [MOST_CODES]
    actual = wide.of(frame_of(pd.DataFrame({"x": [many[0], many[-1], "another", None]})), [0])
    assert actual.ravel().tolist() == [1, MOST_CODES - 2, MOST_CODES - 1, 0]
    coding = Coding((None,), ((True, False),))
    assert coding.of(frame_of(pd.DataFrame({"x": [True, False, True]})), [0]).ravel().tolist() == [1, 2, 1]
    empty = frame([]).slice(0, 0)
    assert CODING.of(empty, [0, 1, 2]).shape == (0, 3)
    assert ENCODING.of(empty, [0, 1, 2]).shape == (0, 4)


def test_readings_are_equal_by_what_they_hold():
    assert Coding((CUTS, None, (0.5,)), (None, LEVELS, None)) == CODING
    assert Coding((CUTS, None, (0.6,)), (None, LEVELS, None)) != CODING
    assert len({Encoding((2.0, None, 0.0), (0.5, None, 4.0), RANGES, (None, LEVELS, None)), ENCODING}) == 1
