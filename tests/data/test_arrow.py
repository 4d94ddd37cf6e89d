"""Frames over tables: pandas, polars, pyarrow and duckdb say the same of the same cells."""

import decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import deciban as db
from deciban.data import frame_of, split_column
from deciban.data.arrow import TableFrame
from deciban.data.batch import MISSING

NAN = float("nan")


def cells(frame, column=0):
    """The values of a column as Categorical reads them; None where missing."""
    coded = frame.coded([column])
    return [None if code == MISSING else coded.levels[0][code] for code in coded.codes[:, 0].tolist()]


def numbers(frame, column=0):
    return [None if np.isnan(v) else v for v in frame.numbers([column])[:, 0].tolist()]


TEXT = ["b", None, "a", "b"]
TEXTS = {
    "pandas str": lambda: pd.DataFrame({"x": pd.Series(TEXT, dtype="str")}),
    "pandas object": lambda: pd.DataFrame({"x": pd.Series(TEXT, dtype=object)}),
    "pandas object with NaN": lambda: pd.DataFrame({"x": pd.Series(["b", NAN, "a", "b"], dtype=object)}),
    "pandas string": lambda: pd.DataFrame({"x": pd.Series(TEXT, dtype="string")}),
    "pandas categorical": lambda: pd.DataFrame({"x": pd.Categorical(TEXT, categories=["never", "b", "a"])}),
    "polars": lambda: pl.DataFrame({"x": TEXT}),
    "polars Categorical": lambda: pl.DataFrame({"x": pl.Series(TEXT, dtype=pl.Categorical)}),
    "polars Enum": lambda: pl.DataFrame({"x": pl.Series(TEXT, dtype=pl.Enum(["never", "b", "a"]))}),
    "polars in chunks": lambda: pl.concat(
        [pl.DataFrame({"x": TEXT[:1]}), pl.DataFrame({"x": TEXT[1:]})], rechunk=False
    ),
    "pyarrow": lambda: pa.table({"x": TEXT}),
    "pyarrow large": lambda: pa.table({"x": pa.array(TEXT, pa.large_string())}),
    "pyarrow view": lambda: pa.table({"x": pa.array(TEXT, pa.string_view())}),
    "pyarrow in chunks": lambda: pa.table({"x": pa.chunked_array([["b"], [None, "a"], [], ["b"]])}),
    "pyarrow dictionary": lambda: pa.table({"x": pa.array(TEXT).dictionary_encode()}),
    "pyarrow record batch": lambda: pa.record_batch({"x": pa.array(TEXT)}),
    "duckdb": lambda: duckdb.from_arrow(pa.table({"x": TEXT})),
    "duckdb enum": lambda: duckdb.sql("select unnest(['b', null, 'a', 'b']::enum('a', 'b', 'never')[]) as x"),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_text_is_read_with_its_missing_values(kind):
    frame = frame_of(TEXTS[kind]())
    assert (frame.names, frame.kinds, frame.rows) == (("x",), ("category",), 4)
    assert cells(frame) == TEXT
    assert frame.cell(0, 0) == "b"
    assert frame.codes([0], (("a", "z"),)).ravel().tolist() == [-2, -1, 0, -2]
    assert cells(frame.slice(1, 3)) == [None, "a"]
    assert cells(frame.take(np.array([3, 1]))) == ["b", None]
    tables = {table.title: table for table in db.NaiveBayes().fit(TEXTS[kind](), [0, 0, 1, 1]).summary().tables}
    assert tables["x (Categorical)"].header == ("class", "a", "b")  # no category that is never used


NUMBERS = {
    "pandas": (lambda: pd.DataFrame({"x": [1.5, NAN, 3.0]}), [1.5, None, 3.0]),
    "pandas nullable integers": (lambda: pd.DataFrame({"x": pd.array([1, None, 3], dtype="Int64")}), [1, None, 3]),
    "pandas nullable small": (lambda: pd.DataFrame({"x": pd.array([1, None, 3], dtype="UInt8")}), [1, None, 3]),
    "pandas nullable floats": (lambda: pd.DataFrame({"x": pd.array([1.5, None, 3], dtype="Float64")}), [1.5, None, 3]),
    "pandas arrow": (lambda: pd.DataFrame({"x": pd.array([1, None, 3], dtype="int32[pyarrow]")}), [1, None, 3]),
    "pandas objects": (lambda: pd.DataFrame({"x": pd.Series([1, pd.NA, 2.5], dtype=object)}), [1, None, 2.5]),
    "pandas float16": (lambda: pd.DataFrame({"x": np.float16([1.5, NAN, 3])}), [1.5, None, 3]),
    "pandas longdouble": (lambda: pd.DataFrame({"x": np.longdouble([1.5, NAN, 3])}), [1.5, None, 3]),
    "pandas sparse": (lambda: pd.DataFrame({"x": pd.arrays.SparseArray([1, 0, 3])}), [1, 0, 3]),
    "pandas decimal": (lambda: pd.DataFrame({"x": [decimal.Decimal("1.5"), None, decimal.Decimal(3)]}), [1.5, None, 3]),
    "objects of many types": (lambda: {"x": [decimal.Decimal(1), 2.0, np.int8(3), 4]}, [1, 2, 3, 4]),
    "polars null": (lambda: pl.DataFrame({"x": [1.5, None, 3.0]}), [1.5, None, 3.0]),
    "polars NaN": (lambda: pl.DataFrame({"x": [1.5, NAN, 3.0]}), [1.5, None, 3.0]),
    "polars both": (lambda: pl.DataFrame({"x": [None, NAN, 3.0]}), [None, None, 3.0]),
    "polars Int128": (lambda: pl.DataFrame({"x": [1, None, 3]}).cast(pl.Int128), [1, None, 3]),
    "polars UInt128": (lambda: {"x": pl.Series([1, None, 3]).cast(pl.UInt128)}, [1, None, 3]),
    "polars Decimal": (lambda: pl.DataFrame({"x": pl.Series([1.5, None, 3]).cast(pl.Decimal(10, 2))}), [1.5, None, 3]),
    "polars Float16": (lambda: pl.DataFrame({"x": pl.Series([1.5, None, 3]).cast(pl.Float16)}), [1.5, None, 3]),
    "polars integers": (lambda: pl.DataFrame({"x": pl.Series([1, None, 3], dtype=pl.Int16)}), [1, None, 3]),
    "pyarrow NaN": (lambda: pa.table({"x": pa.array([1.5, NAN, None])}), [1.5, None, None]),
    "pyarrow float32": (lambda: pa.table({"x": pa.array([1.5, None, 3.0], pa.float32())}), [1.5, None, 3.0]),
    "pyarrow float16": (
        lambda: pa.table({"x": pa.array([np.float16(1.5), None, np.float16(3)], pa.float16())}),
        [1.5, None, 3.0],
    ),
    "pyarrow decimal": (lambda: pa.table({"x": [decimal.Decimal("1.5"), None, decimal.Decimal(3)]}), [1.5, None, 3.0]),
    "pyarrow chunks": (lambda: pa.table({"x": pa.chunked_array([[1], [None, 3]])}), [1, None, 3]),
    "duckdb": (lambda: duckdb.sql("select unnest([1.5, null, 3]) as x"), [1.5, None, 3.0]),
    "duckdb hugeint": (lambda: duckdb.sql("select unnest([1, null, 3]::hugeint[]) as x"), [1, None, 3]),
}


def test_numbers_are_read_with_their_missing_values():
    for kind, (make, expected) in NUMBERS.items():
        frame = frame_of(make())
        assert frame.kinds == ("number",), kind
        assert numbers(frame) == expected, kind
        assert cells(frame) == expected, kind


def test_whole_floats_and_integers_are_one_level():
    for table in (pd.DataFrame({"x": [1.0, 2.5]}), pl.DataFrame({"x": [1.0, 2.5]}), pa.table({"x": [1.0, 2.5]})):
        first, second = cells(frame_of(table))
        assert (first, type(first), second) == (1, int, 2.5)


def test_integers_beyond_53_bits_are_rounded_as_numpy_does():
    whole = [2**60 + 1, 2**63 - 1, -(2**63)]
    assert numbers(frame_of(pa.table({"x": whole}))) == np.array(whole).astype(float).tolist()
    assert cells(frame_of(pa.table({"x": whole}))) == whole


def test_truth_is_boolean():
    columns = {"x": [True, False]}
    table = pa.table(columns)
    nullable = pd.DataFrame(columns, dtype="boolean")
    for x in (pd.DataFrame(columns), nullable, pl.DataFrame(columns), table, duckdb.from_arrow(table)):
        frame = frame_of(x)
        assert frame.kinds == ("boolean",)
        assert numbers(frame) == [1.0, 0.0]
        assert cells(frame) == [True, False]


def test_truth_with_missing_values_keeps_them():
    for table in (pl.DataFrame({"x": [True, None]}), pd.DataFrame({"x": pd.array([True, None], dtype="boolean")})):
        assert (numbers(frame_of(table)), cells(frame_of(table))) == ([1.0, None], [True, None])


def test_a_column_of_nulls_is_empty():
    for make in (pd.DataFrame, pl.DataFrame, pa.table):
        frame = frame_of(make({"x": [None, None]}))
        assert frame.kinds == ("empty",)
        assert (numbers(frame), cells(frame)) == ([None, None], [None, None])
    assert cells(frame_of(pd.DataFrame({"x": pd.Categorical([None, None])}))) == [None, None]


# Dictionaries --------------------------------------------------------------------------------------------------------


def dictionary(indices, values):
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int8()), pa.array(values))


ODD_DICTIONARIES = {
    "another for each chunk": (
        pa.chunked_array([dictionary([0, 1], ["a", "b"]), dictionary([0, 1, None], ["b", "c"])]),
        ["a", "b", "b", "c", None],
    ),
    "null among the values": (dictionary([0, 1, 2, None], ["a", None, "b"]), ["a", None, "b", None]),
    "one value twice": (dictionary([0, 1, 2, 2], ["a", "a", "b"]), ["a", "a", "b", "b"]),
    "null and doubles, by chunk": (
        pa.chunked_array([dictionary([0, 1, 2], ["a", None, "a"]), dictionary([1, 0], [None, "b"])]),
        ["a", None, "a", "b", None],
    ),
    "numbers": (dictionary([1, 0, None], [10, 20]), [20, 10, None]),
    "values never used": (dictionary([2, 2], ["x", "y", "a"]), ["a", "a"]),
    "no rows at all": (dictionary([], pa.array([], pa.string())), []),
}


def test_dictionaries_of_any_shape_are_read():
    for kind, (column, expected) in ODD_DICTIONARIES.items():
        assert cells(frame_of(pa.table({"x": column}))) == expected, kind


def test_dictionaries_that_differ_by_batch_learn_the_same():
    chunks = [dictionary([0, 1, 1], ["b", "a"]), dictionary([0, 1, None], ["a", "c"])]
    labels = [0, 1, 0, 1, 1, 0]
    model = db.NaiveBayes().fit(pa.table({"x": chunks[0]}), labels[:3])
    model.partial_fit(pa.table({"x": chunks[1]}), labels[3:])
    plain = pa.table({"x": ["b", "a", "a", "a", "c", None]})
    expected = db.NaiveBayes().fit(plain, labels)
    np.testing.assert_array_equal(model.predict_proba(plain), expected.predict_proba(plain))
    np.testing.assert_array_equal(
        model.predict_proba(pa.table({"x": pa.chunked_array(chunks)})), expected.predict_proba(plain)
    )


# Tables --------------------------------------------------------------------------------------------------------------


def test_a_pandas_index_is_no_column():
    keys = pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["u", "v"])
    for index in (pd.Index([5, 6], name="key"), keys):
        table = pd.DataFrame({"x": [1.0, 2.0]}, index=index)
        assert frame_of(table).names == ("x",)
        assert db.NaiveBayes().fit(table, ["a", "b"]).feature_names_in_.tolist() == ["x"]


def test_a_pandas_subclass_is_pandas():
    class Table(pd.DataFrame):
        pass

    assert frame_of(Table({"x": [1.0]}, index=pd.Index([3], name="key"))).names == ("x",)


def test_pandas_names_that_are_no_text_are_spelled_out():
    assert frame_of(pd.DataFrame(np.eye(2))).names == ("0", "1")
    assert frame_of(pd.DataFrame({("a", 1): [1]})).names == ("('a', 1)",)


def test_arrays_of_objects_are_typed_by_column():
    x = np.array([["u", 1, 1.5, True, None], [None, None, None, None, None]], dtype=object)
    frame = frame_of(x)
    assert isinstance(frame, TableFrame)
    assert frame.kinds == ("category", "number", "number", "boolean", "empty")
    assert list(frame.names) == [0, 1, 2, 3, 4]
    assert frame_of(np.array([["u"], ["v"]])).kinds == ("category",)


def test_the_label_column_is_taken_out():
    frame, labels = split_column(pa.table({"a": [1, 2], "y": ["u", "v"], "b": [3, 4]}), "y", "label")
    assert (frame.names, frame.kinds, labels.to_pylist()) == (("a", "b"), ("number", "number"), ["u", "v"])
