"""A schema matches later columns to the first ones, by name or position, and their kinds."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from deciban.data import frame_of
from deciban.data.schema import Schema, require_unique
from deciban.errors import DecibanError

KINDS = ["number", "boolean", "category", "empty"]
TABLE = frame_of(pd.DataFrame({"a": [1.0], "b": ["u"], "c": [True]}))


def test_a_schema_is_the_names_and_kinds_of_a_frame():
    assert Schema.of(TABLE) == Schema(("a", "b", "c"), ("number", "category", "boolean"))
    assert not Schema.of(TABLE).positional
    assert Schema.of(frame_of(np.eye(2))).positional


def test_places_are_by_name():
    assert Schema(("c", "a"), ("boolean", "number")).column_refs(TABLE) == [2, 0]


def test_places_in_an_array_are_positions():
    assert Schema.of(TABLE).column_refs(frame_of(np.eye(3))) == [0, 1, 2]
    assert Schema.of(frame_of(np.eye(3))).column_refs(TABLE) == [0, 1, 2]
    with pytest.raises(DecibanError, match="X has 2 features, but the model is expecting 3 features"):
        Schema.of(TABLE).column_refs(frame_of(np.eye(2)))


def test_a_table_without_columns_lacks_them_by_name():
    with pytest.raises(DecibanError, match="lacks columns 'a', 'b', 'c'"):
        Schema.of(TABLE).column_refs(frame_of(pd.DataFrame(index=[0])))


def test_long_lists_of_names_are_cut():
    wide = Schema(tuple(f"c{i}" for i in range(30)), ("number",) * 30)
    with pytest.raises(DecibanError, match="'c9' and 20 more; it has columns 'a', 'b', 'c'"):
        wide.column_refs(TABLE)


def test_empty_may_turn_out_anything_numbers_take_truth_and_text_never_mixes():
    for a, b in product(KINDS, KINDS):
        one, other = Schema(("x",), (a,)), Schema(("x",), (b,))
        if (a == "category") != (b == "category") and "empty" not in (a, b):
            with pytest.raises(DecibanError, match=r"column 'x' held .* so far and holds .* now"):
                one.merge(other)
        else:
            assert one.merge(other).kinds == (b if a == "empty" else a,)


def test_other_columns_do_not_widen():
    with pytest.raises(DecibanError, match="the columns differ: column 'x' and columns 'x', 'y'"):
        Schema(("x",), ("number",)).merge(Schema(("x", "y"), ("number", "number")))


def test_reading_a_frame_checks_names_and_kinds():
    schema = Schema(("b", "a"), ("empty", "number"))
    assert schema.merge_frame(TABLE) == Schema(("b", "a"), ("category", "number"))
    with pytest.raises(DecibanError, match="column 'b' held numbers so far and holds text now"):
        Schema(("b",), ("number",)).merge_frame(TABLE)


def test_doubled_names_are_named_once():
    require_unique(("a", "b"))
    with pytest.raises(DecibanError, match="columns 'a', 'b' occurs more than once"):
        require_unique(("a", "b", "a", "a", "b"))
