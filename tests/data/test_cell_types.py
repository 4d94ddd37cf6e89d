"""Types of cells: the narrowest that holds them all, in whatever order they come."""

from functools import reduce
from typing import get_args

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from deciban.data.cell_types import (
    CellType,
    cell_type_for_kind,
    cell_type_of,
    common_type,
    common_types,
    infer_cell_type,
    label_cell_types,
)

TYPES = get_args(CellType)
ANY = st.sampled_from(TYPES)
CELL_WORDS = st.sampled_from(
    [
        *("1", "-7", "001", "1.5", "1e5", "+5", "inf", "nan", "NaN", "0x10"),
        *("9223372036854775808", "true", "FALSE", "t", "é"),
    ]
)


@given(ANY, ANY, ANY)
def test_the_wider_type_is_a_join(a, b, c):
    assert common_type(a, a) == common_type(a, "empty") == a
    assert common_type(a, b) == common_type(b, a)
    assert common_type(common_type(a, b), c) == common_type(a, common_type(b, c))


@given(st.lists(CELL_WORDS | st.none(), min_size=1, max_size=6), st.integers(0, 6))
def test_the_type_of_all_cells_is_the_join_of_the_types_of_some(cells, cut):
    parts = [infer_cell_type(pa.array(part, pa.string())) for part in (cells[:cut], cells[cut:])]
    assert infer_cell_type(pa.array(cells, pa.string())) == reduce(common_type, parts)


def test_the_type_of_text():
    for cells, expected in (
        ([], "empty"),
        ([None], "empty"),
        (["true", "False", None], "boolean"),
        (["true", "1"], "text"),
        (["1", "-2", None], "integer"),
        (["9223372036854775807"], "integer"),
        (["9223372036854775808"], "number"),
        (["1", "2.5"], "number"),
        (["1e5"], "number"),
        (["0x10"], "text"),
        (["00501", "10001"], "text"),
        (["007", "1.5"], "text"),
        (["0", "0.5", "-05", "10"], "number"),
        (["1_000"], "text"),
        (["1", "x"], "text"),
    ):
        assert infer_cell_type(pa.array(cells, pa.string())) == expected, cells


def test_the_type_of_an_arrow_column():
    for kind, expected in (
        (pa.null(), "empty"),
        (pa.bool_(), "boolean"),
        (pa.uint8(), "integer"),
        (pa.uint64(), "number"),  # may be beyond the integers
        (pa.float32(), "number"),
        (pa.decimal128(5, 2), "number"),
        (pa.string(), "text"),
        (pa.large_string(), "text"),
        (pa.string_view(), "text"),
        (pa.dictionary(pa.int8(), pa.string()), "text"),
        (pa.dictionary(pa.int8(), pa.int64()), "coded"),
        (pa.dictionary(pa.int8(), pa.date32()), "other"),
        (pa.date32(), "date"),
        (pa.timestamp("ns", "Europe/Berlin"), "date"),
        (pa.time64("us"), "time"),
        (pa.duration("s"), "number"),
        (pa.month_day_nano_interval(), "number"),
        (pa.binary(), "other"),
        (pa.list_(pa.int64()), "other"),
    ):
        assert cell_type_of(kind) == expected, kind


def test_columns_keep_the_order_in_which_they_come():
    types = common_types({"b": "integer", "a": "text"}, {"c": "boolean", "b": "number"})
    assert list(types.items()) == [("b", "number"), ("a", "text"), ("c", "boolean")]


def test_what_a_model_learned_says_how_text_is_read():
    assert cell_type_for_kind("category", ("a", "b")) == "text"
    assert cell_type_for_kind("category", (1, 2.5)) == "coded"
    assert cell_type_for_kind("category", ()) == "text"
    assert cell_type_for_kind("boolean", ()) == "boolean"
    assert cell_type_for_kind("number", ()) == "number"
    assert label_cell_types("y", ("1", "2")) == {"y": "text"}
    assert label_cell_types("y", (1, 2)) == {"y": "number"}
    assert label_cell_types("y", (False, True)) == {"y": "boolean"}
    assert label_cell_types("y", ("a", 1)) == {}
