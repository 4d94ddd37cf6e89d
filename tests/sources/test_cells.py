"""Types of cells: the narrowest that holds them all, in whatever order they come."""

from functools import reduce
from typing import get_args

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deciban.sources.cells import Cells, cells_like, cells_of, cells_of_classes, cells_of_type, widened, wider

TYPES = get_args(Cells)
ANY = st.sampled_from(TYPES)
WORDS = st.sampled_from(
    [
        "1",
        "-7",
        "001",
        "1.5",
        "1e5",
        "+5",
        "inf",
        "nan",
        "NaN",
        "0x10",
        "9223372036854775808",
        "true",
        "FALSE",
        "t",
        "é",
    ]
)


@given(ANY, ANY, ANY)
def test_the_wider_type_is_a_join(a, b, c):
    assert wider(a, a) == wider(a, "empty") == a
    assert wider(a, b) == wider(b, a)
    assert wider(wider(a, b), c) == wider(a, wider(b, c))


@given(st.lists(WORDS | st.none(), min_size=1, max_size=6), st.integers(0, 6))
def test_the_type_of_all_cells_is_the_join_of_the_types_of_some(cells, cut):
    parts = [cells[:cut], cells[cut:]]
    found = [cells_of(pa.array(part, pa.string())) for part in parts]
    assert cells_of(pa.array(cells, pa.string())) == reduce(wider, found)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
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
    ],
)
def test_the_type_of_text(cells, expected):
    assert cells_of(pa.array(cells, pa.string())) == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
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
    ],
)
def test_the_type_of_an_arrow_column(kind, expected):
    assert cells_of_type(kind) == expected


def test_columns_keep_the_order_in_which_they_come():
    found = widened({"b": "integer", "a": "text"}, {"c": "boolean", "b": "number"})
    assert list(found.items()) == [("b", "number"), ("a", "text"), ("c", "boolean")]


def test_what_a_model_learned_says_how_text_is_read():
    assert cells_like("category", ("a", "b")) == "text"
    assert cells_like("category", (1, 2.5)) == "coded"
    assert cells_like("category", ()) == "text"
    assert cells_like("boolean", ()) == "boolean"
    assert cells_like("number", ()) == "number"
    assert cells_of_classes("y", ("1", "2")) == {"y": "text"}
    assert cells_of_classes("y", (1, 2)) == {"y": "number"}
    assert cells_of_classes("y", (False, True)) == {"y": "boolean"}
    assert cells_of_classes("y", ("a", 1)) == {}
