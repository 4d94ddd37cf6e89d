"""Streams: whatever exports Arrow's C stream, read once or again, and read as a whole."""

import threading

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import deciban as db
from deciban.data import frame_of, is_stream, is_table, stream_of
from deciban.data.stream import TypesChanged, read_table, retry_with_wider_types
from tests.data.files.written import FILES, STREAMS, as_parquet, at, csv_text

TABLE = pa.table({"x": [1.0, None, 3.0, 4.0] * 50, "t": ["a", "b", None, "a"] * 50, "y": ["no", "yes"] * 100})


def reader(table=TABLE):
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=7))


def test_what_is_a_stream_and_what_is_in_memory(tmp_path):
    assert not any(map(is_stream, (TABLE, pl.from_arrow(TABLE), TABLE.to_pandas(), TABLE.to_batches()[0], [[1]])))
    assert all(is_stream(make(tmp_path, TABLE)) for name, make in (FILES | STREAMS).items() if name != "polars")
    assert all(is_table(make(tmp_path, TABLE)) for make in (FILES | STREAMS).values())


@pytest.mark.parametrize("way", [*FILES, *STREAMS])
def test_a_stream_read_as_a_whole_is_the_table(tmp_path, way):
    frame = frame_of((FILES | STREAMS)[way](tmp_path, TABLE))
    expected = frame_of(TABLE)
    assert (frame.names, frame.kinds, frame.rows) == (expected.names, expected.kinds, 200)
    assert frame.table.to_pydict() == TABLE.to_pydict()
    if way not in ("polars", "reader"):  # others can be read again
        stream = stream_of((FILES | STREAMS)[way](tmp_path, TABLE))
        assert [sum(frame.rows for frame in stream.frames()) for _ in range(3)] == [200] * 3


def test_a_reader_can_be_read_once():
    once = reader()
    model = db.NaiveBayes().fit(once, "y")
    before = model.class_count_.tolist()
    for again in (lambda: db.NaiveBayes().fit(once, "y"), lambda: model.partial_fit(once, "y")):
        with pytest.raises(db.DecibanError, match="it can be read once, so make a new one for each pass"):
            again()
    assert model.class_count_.tolist() == before == [100, 100]
    scanner = ds.Scanner.from_batches(iter(TABLE.to_batches(max_chunksize=7)), schema=TABLE.schema)
    db.NaiveBayes().fit(scanner, "y")
    with pytest.raises(db.DecibanError, match="the stream cannot be read: OneShotFragment was already scanned"):
        db.NaiveBayes().fit(scanner, "y")


def test_a_stream_without_rows_cannot_be_learned_from_and_has_no_predictions(tmp_path):
    model = db.NaiveBayes().fit(TABLE, "y")
    for nothing in (
        ds.dataset(TABLE.slice(0, 0)),
        db.scan(at(tmp_path, "t.csv", "x,t,y\n")),
        db.scan(as_parquet(tmp_path, "t.parquet", TABLE.slice(0, 0))),
        duckdb.from_arrow(TABLE).filter("x > 9"),
        pa.RecordBatchReader.from_batches(TABLE.schema, []),
    ):
        with pytest.raises(db.DecibanError, match=r"no rows"):
            db.NaiveBayes().fit(nothing, "y")
        if not isinstance(nothing, pa.RecordBatchReader):
            assert model.predict(nothing).shape == (0,)
            assert model.predict_proba(nothing).shape == (0, 2)


def test_errors_of_a_source_are_raised_and_leave_no_threads():
    def broken():
        yield from TABLE.to_batches(max_chunksize=50)[:2]
        raise RuntimeError("the line is cut")

    model = db.NaiveBayes().fit(TABLE, "y")
    before = model.predict_proba(TABLE).tobytes()
    with pytest.raises(db.DecibanError, match="the line is cut"):
        model.partial_fit(pa.RecordBatchReader.from_batches(TABLE.schema, broken()), "y")
    assert model.predict_proba(TABLE).tobytes() == before
    assert threading.active_count() == 1 + sum("deciban" not in t.name for t in threading.enumerate()[1:])


def test_columns_of_other_types_are_refused():
    table = TABLE.append_column("day", pa.array([[1]] * 200))
    with pytest.raises(db.DecibanError, match="column 'day' is of type list"):
        db.NaiveBayes().fit(ds.dataset(table), "y")


def test_files_of_several_types_make_one_table(tmp_path):
    columns = [pa.array([1], pa.int8()), pa.array([2.5]), pa.nulls(1), pa.array([2**60], pa.uint64())]
    texts = [pa.array(["a"]), pa.array(["b"]).dictionary_encode(), pa.array(["c"], pa.large_string()), pa.nulls(1)]
    tables = [pa.table({"x": x, "t": t}) for x, t in zip(columns, texts, strict=True)]
    paths = [as_parquet(tmp_path, f"{i}.parquet", table) for i, table in enumerate(tables)]
    paths.append(at(tmp_path, "4.csv", csv_text(pa.table({"x": [7], "t": ["007"]}))))
    frame = read_table(db.scan(paths))
    assert frame.kinds == ("number", "category")
    assert frame.table.to_pydict() == {"x": [1.0, 2.5, None, 2.0**60, 7.0], "t": ["a", "b", "c", None, "007"]}


def test_names_of_columns_do_not_get_in_the_way():
    names = ["schema", "scanner", "to_reader", "dataset_schema", "y"]
    table = pa.table([[1.0, 2.0]] * 4 + [["a", "b"]], names=names)
    model = db.NaiveBayes().fit(duckdb.from_arrow(table), "y")
    assert model.feature_names_in_.tolist() == names[:-1]
    assert model.predict(duckdb.from_arrow(table)).tolist() == ["a", "b"]


def test_a_source_is_opened_once_for_its_schema_and_its_first_pass():
    class Query:
        opened = 0

        def __arrow_c_stream__(self, requested_schema=None):
            self.opened += 1
            return TABLE.__arrow_c_stream__(requested_schema)

    query = Query()
    stream = stream_of(query)
    assert stream.names == ("x", "t", "y")
    for passes in (1, 2):
        assert pa.concat_tables([frame.table for frame in stream.frames()]).to_pydict() == TABLE.to_pydict()
        assert query.opened == passes


def test_what_messages_call_a_stream(tmp_path):
    assert stream_of(reader()).title == "the stream"
    paths = [at(tmp_path, f"{i}.csv", "x,y\n1,a\n") for i in range(3)]
    assert db.scan(paths).title == "3 files"
    assert db.scan(paths[0]).select(["x"]).title == str(paths[0])


def test_work_is_done_again_when_types_change():
    calls = []

    def work():
        calls.append(None)
        if len(calls) < 2:
            raise TypesChanged("wider")
        return "done"

    assert retry_with_wider_types(work) == "done"
    assert len(calls) == 2
