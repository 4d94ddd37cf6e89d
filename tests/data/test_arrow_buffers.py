"""Arrow buffers that do not fit their types: refused by column, in whatever they come, and nothing is read."""

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.ipc
import pytest

import deciban as db
from deciban.data import frame_of
from tests.data.files.written import as_arrow

OUTSIDE = 1 << 30  # beyond any buffer here


def buffer(values, dtype):
    return pa.py_buffer(np.array(values, dtype).tobytes())


def views(*cells):
    """Text as views: length, then the text, or its beginning, a buffer and the start in it."""
    return pa.Array.from_buffers(pa.string_view(), len(cells), [None, buffer(cells, np.int32), pa.py_buffer(b"a" * 30)])


def text(ends, dtype=None, data=b"abcd"):
    dtype = dtype or pa.string()
    offsets = buffer(ends, np.int32 if dtype == pa.string() else np.int64)
    return pa.Array.from_buffers(dtype, len(ends) - 1, [None, offsets, pa.py_buffer(data)])


def coded(indices, dictionary):
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), dictionary, safe=False)


AAAA = int.from_bytes(b"aaaa", "little")
DAMAGED = {
    "an offset outside": lambda: text([0, OUTSIDE, 3, 4]),
    "a negative offset": lambda: text([0, -OUTSIDE, 3, 4]),
    "a descending offset": lambda: text([0, 3, 2, 4]),
    "an offset of large text outside": lambda: text([0, 1 << 60, 3, 4], pa.large_string()),
    "an index outside": lambda: coded([0, OUTSIDE, 1], pa.array(["a", "b"])),
    "a negative index": lambda: coded([0, -OUTSIDE, 1], pa.array(["a", "b"])),
    "an offset of a dictionary outside": lambda: coded([0, 1, 2], text([0, OUTSIDE, 3, 4])),
    "a view of no buffer": lambda: views((20, AAAA, 0, 0), (20, AAAA, 9, 0), (1, 97, 0, 0)),
    "a view outside its buffer": lambda: views((20, AAAA, 0, 0), (20, AAAA, 0, OUTSIDE), (1, 97, 0, 0)),
    "a view of negative length": lambda: views((20, AAAA, 0, 0), (-20, AAAA, 0, 0), (1, 97, 0, 0)),
}
WRONG_NULLS = pa.Array.from_buffers(pa.float64(), 3, [pa.py_buffer(b"\x00"), buffer([1, 2, 3], float)], null_count=1)
LABELS = ["no", "yes", "no"]


class Foreign:
    """A table of another library."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


WAYS = {
    "table": lambda table: table,
    "columns": lambda table: {"x": table.column("x").chunk(0), "n": [1.0, 2.0, 3.0]},
    "reader": lambda table: pa.RecordBatchReader.from_batches(table.schema, table.to_batches()),
    "stream of another library": Foreign,
    "pandas": lambda table: pd.DataFrame({"x": pd.arrays.ArrowExtensionArray(table.column("x")), "n": [1.0, 2.0, 3.0]}),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("damage", DAMAGED)
def test_damaged_buffers_are_refused(damage, way):
    table = pa.table({"n": [1.0, 2.0, 3.0], "x": DAMAGED[damage]()})
    for model in (db.NaiveBayes(), db.NaiveBayes({"x": db.families.Text()})):
        with pytest.raises(db.DecibanError, match=r"column 'x' is damaged: .+: write it again"):
            model.fit(WAYS[way](table), LABELS)
    learned = db.NaiveBayes().fit(pa.table({"n": [1.0, 2.0, 3.0], "x": ["a", "b", "a"]}), LABELS)
    with pytest.raises(db.DecibanError, match="column 'x' is damaged"):
        learned.predict(WAYS[way](table))


@pytest.mark.parametrize("new", [pa.ipc.new_file, pa.ipc.new_stream])
@pytest.mark.parametrize("damage", DAMAGED)
def test_damaged_buffers_in_files_are_refused_by_name(tmp_path, damage, new):
    table = pa.table({"y": LABELS, "x": DAMAGED[damage]()})
    path = as_arrow(tmp_path, "t.arrow", table, new)
    with pytest.raises(db.DecibanError, match=r"t\.arrow: column 'x' is damaged"):
        db.NaiveBayes().fit(db.scan(path), "y")
    with pytest.raises(db.DecibanError, match=r"t\.arrow: column 'x' is damaged"):
        db.NaiveBayes({"x": db.families.Text()}).fit(db.scan(path, types={"x": "category"}), "y")
    with pytest.raises(db.DecibanError, match=r"t\.arrow: column 'x' is damaged"):
        db.scan(path).read()


@pytest.mark.parametrize("damage", DAMAGED)
def test_damaged_labels_and_documents_are_refused(damage):
    array, numbers = DAMAGED[damage](), [[1.0], [2.0], [3.0]]
    for y in (array, pa.chunked_array([array])):
        with pytest.raises(db.DecibanError, match=r"an Arrow array is damaged: .+: make it again"):
            db.NaiveBayes().fit(numbers, y)
    with pytest.raises(db.DecibanError, match="is damaged"):
        db.NaiveBayes().fit(array, LABELS)


def test_a_buffer_may_end_in_bytes_of_no_number():
    offsets = pa.py_buffer(np.array([0, 1, 2, 4], np.int32).tobytes() + b"\x00\x00\x00")
    cells = pa.py_buffer(np.array([(1, 97, 0, 0)] * 3, np.int32).tobytes() + b"\x00" * 5)
    texts = pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(b"abcd")])
    views = pa.Array.from_buffers(pa.string_view(), 3, [None, cells, pa.py_buffer(b"")])
    for array, expected in ((texts, ["a", "b", "cd"]), (views, ["a"] * 3)):
        table = pa.table({"x": array})
        assert frame_of(table).coded([0]).levels[0] == tuple(dict.fromkeys(expected))
        model = db.NaiveBayes({"x": db.families.Text()}).fit(table, LABELS)
        twin = db.NaiveBayes({"x": db.families.Text()}).fit({"x": expected}, LABELS)
        np.testing.assert_array_equal(model.predict_proba(table), twin.predict_proba({"x": expected}))


@pytest.mark.parametrize("coded_by", [None, pa.array([0, 1, 2], pa.int32())])
def test_views_under_missing_values_are_not_followed(coded_by):
    cells = buffer([(20, AAAA, 0, 0), (OUTSIDE, AAAA, 99, OUTSIDE), (1, 97, 0, 0)], np.int32)
    buffers = [pa.py_buffer(b"\x05"), cells, pa.py_buffer(b"a" * 30)]
    array = pa.Array.from_buffers(pa.string_view(), 3, buffers)
    if coded_by is not None:
        array = pa.DictionaryArray.from_arrays(coded_by, array)
    table = pa.table({"x": array})
    frame = frame_of(table)
    assert frame.coded([0]).levels[0] == ("a" * 20, "a")
    assert frame.array(0).to_pylist() == ["a" * 20, None, "a"]
    assert frame_of(table.slice(1)).coded([0]).codes[:, 0].tolist()[0] == -1


def test_text_beyond_its_buffer_is_refused(tmp_path):
    table = pa.table({"n": [1.0, 2.0], "x": ["abc", "de"]})
    path = as_arrow(tmp_path, "t.arrow", table, pa.ipc.new_stream)
    path.write_bytes(path.read_bytes().replace(buffer([0, 3, 5], np.int32), buffer([0, 3, OUTSIDE], np.int32)))
    with pytest.raises(db.DecibanError, match=r"t\.arrow: column 'x' is damaged"):
        db.NaiveBayes().fit(db.scan(path), "x")
    opened = pa.ipc.open_stream(path)
    for x in (opened, pa.ipc.open_stream(path).read_all(), *pa.ipc.open_stream(path)):
        with pytest.raises(db.DecibanError, match="column 'x' is damaged"):
            db.NaiveBayes().fit(x, ["no", "yes"])


def test_missing_values_that_do_not_match_their_number_are_refused():
    with pytest.raises(db.DecibanError, match="column 'x' is damaged: null_count"):
        frame_of(pa.table({"x": WRONG_NULLS}))
    with pytest.raises(db.DecibanError, match="an Arrow array is damaged: null_count"):
        db.NaiveBayes().fit([[1.0], [2.0], [3.0]], LABELS, sample_weight=WRONG_NULLS)


BYTES = text([0, 2, 3, 4], data=b"\xff\xfeab")


def test_bytes_that_are_not_utf8_are_no_categories(tmp_path):
    for array in (BYTES, coded([0, 1, 2], BYTES), BYTES.cast(pa.binary()).view(pa.string())):
        with pytest.raises(db.DecibanError, match=r"column 'x' holds bytes that are not UTF-8"):
            db.NaiveBayes().fit(pa.table({"x": array}), LABELS)
        with pytest.raises(db.DecibanError, match=r"a label holds bytes that are not UTF-8"):
            db.NaiveBayes().fit([[1.0], [2.0], [3.0]], array)
    path = as_arrow(tmp_path, "t.arrow", pa.table({"y": LABELS, "x": BYTES}), pa.ipc.new_file)
    with pytest.raises(db.DecibanError, match=r"t\.arrow: column 'x' is damaged: .*UTF8"):
        db.NaiveBayes().fit(db.scan(path), "y")


def test_names_of_columns_that_are_not_utf8_are_refused(tmp_path):
    table = pa.table({"y": LABELS, "name": [1.0, 2.0, 3.0]})
    data = as_arrow(tmp_path, "t.arrow", table, pa.ipc.new_stream).read_bytes().replace(b"name", b"\xff\xfe\xff\xfe")
    (tmp_path / "t.arrow").write_bytes(data)
    with pytest.raises(db.DecibanError, match=r"t\.arrow: the name of a column holds bytes that are not UTF-8"):
        db.NaiveBayes().fit(db.scan(tmp_path / "t.arrow"), "y")
    for x in (pa.ipc.open_stream(data).read_all(), pa.ipc.open_stream(data), Foreign(pa.ipc.open_stream(data))):
        with pytest.raises(db.DecibanError, match=r"the name of a column holds bytes that are not UTF-8"):
            db.NaiveBayes().fit(x, "y")


def test_time_zones_that_do_not_exist_are_named():
    table = pa.table({"m": pa.array([0, 1, 2], pa.timestamp("ms", "Mars/Phobos"))})
    for model in (db.NaiveBayes(), db.NaiveBayes({"m": db.families.Categorical()})):
        with pytest.raises(db.DecibanError, match=r"column 'm' cannot be read: .*Mars/Phobos.*: convert it"):
            model.fit(table, LABELS)


def test_names_that_occur_twice_are_refused(tmp_path):
    table = pa.table([pa.array(LABELS), pa.array(LABELS)], names=["y", "y"])
    with pytest.raises(db.DecibanError, match=r"t\.arrow: column 'y' occurs more than once"):
        db.scan(as_arrow(tmp_path, "t.arrow", table, pa.ipc.new_file)).read()


def test_values_that_only_a_calendar_refuses_are_read():
    midnight = pa.array([86_400_000_000, 0, 0], pa.int64()).view(pa.time64("us"))  # 24:00, as duckdb has it
    milliseconds = pa.array([1, 2, 3], pa.int64()).view(pa.date64())
    frame = frame_of(pa.table({"t": midnight, "d": milliseconds}))
    assert frame.numbers([0])[:, 0].tolist() == [24.0, 0.0, 0.0]
    assert frame_of(pa.table({"t": [datetime.time(1), None]})).rows == 2
