"""labelled_rows: every form of X, y and sample_weight gives the same rows."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import deciban as db
from deciban.data import Sample, Stream, Streamed, labelled_rows
from deciban.data.column_reader import AS_GIVEN, GivenColumns, TrainedColumns
from deciban.data.intake import NoRows, input_columns, rows_in_memory
from deciban.data.schema import Schema
from deciban.errors import DecibanError

TABLE = pd.DataFrame(
    {
        "size": [1.5, np.nan, 3.0, 4.0],
        "price": ["$1,200", "$300", "$40", "$5"],
        "w": [1.0, 0.0, 2.0, 1.0],
        "y": ["b", "c", "a", "b"],
    }
)
FEATURES = TABLE[["size", "price"]]


def forms(tmp_path):
    """The same rows, however they are passed: (X, y, sample_weight)."""
    path = tmp_path / "rows.csv"
    TABLE.to_csv(path, index=False)
    yield from ((table, "y", "w") for table in (TABLE, pl.from_pandas(TABLE), pa.table(TABLE), db.scan(path)))
    yield FEATURES, TABLE["y"], TABLE["w"]
    yield FEATURES, TABLE["y"].tolist(), TABLE["w"].to_numpy()
    yield FEATURES, TABLE[["y"]], TABLE["w"].tolist()
    yield TABLE.drop(columns="w").to_dict("list"), "y", TABLE["w"]


def test_all_forms_are_the_same_rows(tmp_path):
    for X, y, weight in forms(tmp_path):
        rows = rows_in_memory(X, y, weight)
        name = type(X).__name__
        assert rows.labels.codes.tolist() == [1, 2, 0, 1], name
        assert rows.labels.classes == ("a", "b", "c"), name
        assert rows.weights.tolist() == [1.0, 0.0, 2.0, 1.0], name
        assert tuple(rows.frame.names) == ("size", "price"), name
        assert rows.frame.numbers([1])[:, 0].tolist() == [1200.0, 300.0, 40.0, 5.0], name
        kept = rows.nonzero()
        assert kept.labels.classes == ("a", "b"), name
        assert kept.labels.codes.tolist() == [1, 0, 1], name
        assert kept.row_numbers.tolist() == [0, 2, 3], name


def test_a_stream_stays_one_until_it_is_needed_in_memory(tmp_path):
    X, y, weight = next(form for form in forms(tmp_path) if isinstance(form[0], Stream))
    streamed = labelled_rows(X, y, weight)
    assert isinstance(streamed, Streamed)
    assert isinstance(labelled_rows(TABLE, y, weight), Sample)
    assert streamed.read().labels.classes == ("a", "b", "c")


def test_columns_are_read_as_the_reader_says():
    assert rows_in_memory(TABLE, "y", "w", AS_GIVEN).frame.kinds == ("number", "category")
    fitted = rows_in_memory(TABLE, "y", "w")
    columns = TrainedColumns.of(Schema.of(fitted.frame), {}, ("a", "b", "c"))
    again = rows_in_memory(TABLE.assign(price=["$7", "x", "$8", "$9"]), "y", "w", columns)
    assert again.frame.kinds == ("number", "number")
    np.testing.assert_array_equal(again.frame.numbers([1])[:, 0], [7.0, np.nan, 8.0, 9.0])


@pytest.mark.parametrize("classes", [("1", "2"), (1, 2)])
def test_labels_of_files_are_read_as_the_classes_that_are_known(tmp_path, classes):
    path = tmp_path / "digits.csv"
    path.write_text("x,y\n0.5,1\n1.5,2\n")
    rows = rows_in_memory(db.scan(path), "y", None, GivenColumns(classes))
    assert rows.labels.classes == classes


def test_what_is_not_rows_is_refused():
    with pytest.raises(NoRows, match="no rows to learn from"):
        rows_in_memory(FEATURES[:0], [])
    with pytest.raises(DecibanError, match="the target y is None"):
        labelled_rows(FEATURES, None)
    with pytest.raises(DecibanError, match="4 rows, 3 labels"):
        labelled_rows(FEATURES, ["a", "b", "a"])
    with pytest.raises(DecibanError, match="names a column, so X must be a table"):
        labelled_rows(np.eye(2), ["a", "b"], "w")
    with pytest.raises(DecibanError, match="0 feature"):
        labelled_rows(TABLE[["w", "y"]], "y", "w")


def test_a_stream_without_features_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("w,y\n1,a\n2,b\n")
    for y, weight in (("y", "w"), (["a", "b"], None)):
        stream = db.scan(path) if weight else db.scan(path).select([])
        with pytest.raises(DecibanError, match="0 feature"):
            labelled_rows(stream, y, weight)
    assert db.scan(path).select([]).read().to_pydict() == {}


def test_columns_that_are_no_features_are_read_from_a_stream_too(tmp_path):
    path = tmp_path / "drivers.csv"
    drivers = pd.DataFrame(
        {"age": [1.0, 2, 3, 4, 5], "years": [10.0, 20, 30, 10, 20], "w": [1.0, 2, 1, 2, 1], "claims": [1, 2, 4, 2, 5]}
    )
    drivers.to_csv(path, index=False)
    named = {"sample_weight": "w", "exposure": "years"}
    table, file = (db.GeneralizedLinearModel("poisson").fit(X, "claims", **named) for X in (drivers, db.scan(path)))
    given = {"sample_weight": drivers["w"], "exposure": drivers["years"]}
    expected = table.score(drivers[["age"]], drivers["claims"], **given)
    assert table.score(drivers, "claims", **named) == expected
    assert file.score(db.scan(path), "claims", **named) == expected
    np.testing.assert_array_equal(
        file.predict(db.scan(path), exposure="years"), table.predict(drivers, exposure="years")
    )
    assert input_columns(db.scan(path), "claims", "w", table.columns_, ["years"]).frame.names == ("age", "years")
