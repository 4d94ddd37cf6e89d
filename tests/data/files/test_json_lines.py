"""JSON lines: keys that come late, types that widen, and what is wrong with which line."""

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deciban as db
from deciban.data.stream import retry_with_wider_types
from tests.data.files.test_delimited import passes_over
from tests.data.files.written import as_parquet, at


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def read(path, **options):
    return db.scan(path, **options).read().to_pydict()


VALUES = {
    "whole": st.none() | st.integers(-(2**63), 2**63 - 1),
    "number": st.none() | st.floats(allow_nan=False, allow_infinity=False),
    "truth": st.none() | st.booleans(),
    "text": st.none() | st.text(st.characters(codec="utf-8"), max_size=5),
}


@given(rows=st.lists(st.fixed_dictionaries({}, optional=VALUES), min_size=1, max_size=20), size=st.integers(1, 100))
def test_what_python_writes_is_read_back(tmp_path_factory, rows, size):
    rows = [{"first": 1}, *rows]
    names = list(dict.fromkeys(name for row in rows for name in row))
    path = at(tmp_path_factory.mktemp("json"), "t.jsonl", lines(*rows))
    assert read(path, block_size=size) == {name: [row.get(name) for row in rows] for name in names}


def test_byte_order_marks_inside_a_file_are_refused_whatever_the_blocks(tmp_path):
    assert read(at(tmp_path, "t.jsonl", "\ufeff" + lines({"x": 1}, {"x": 2}))) == {"x": [1, 2]}
    path = at(tmp_path, "t.jsonl", lines({"x": 1}) + "\ufeff" + lines({"x": 2}, {"x": 3}))
    for size in range(1, 40):
        with pytest.raises(db.DecibanError, match=r"t.jsonl, line 2: this is not JSON: Unexpected UTF-8 BOM"):
            read(path, block_size=size)


def test_keys_that_come_late_are_columns_after_one_survey(tmp_path, monkeypatch, small_sample):
    path = at(tmp_path, "t.jsonl", lines(*[{"x": 1}] * 500, {"x": 2, "z": "q"}))
    passes = passes_over(monkeypatch)
    scan = db.scan(path, block_size=1000)
    assert scan.columns == {"x": "integer"}
    table = scan.read()
    assert scan.columns == {"x": "integer", "z": "text"}
    assert table["z"].null_count == 500
    assert table["z"][-1].as_py() == "q"
    assert len(passes) == 4  # one that fails, two that look at keys and at how text is written, one that reads
    scan.select(["z"]).read()
    assert len(passes) == 5  # what was inferred serves every choice of columns


@pytest.mark.parametrize(
    ("first", "last", "cells", "expected"),
    [
        (1, 1.5, "number", [1.0, 1.5]),
        (1, 2**63, "number", [1.0, 2.0**63]),
        (None, 3, "integer", [None, 3]),
        (None, "t", "text", [None, "t"]),
        (None, False, "boolean", [None, False]),
    ],
)
def test_types_widen(tmp_path, small_sample, first, last, cells, expected):
    path = at(tmp_path, "t.jsonl", lines(*[{"x": first, "y": 0}] * 300, {"x": last}))
    scan = db.scan(path, block_size=1000)
    column = scan.read()["x"]
    assert (scan.columns["x"], [column[0].as_py(), column[-1].as_py()]) == (cells, expected)
    for order in ([first, last], [last, first]):
        paths = [at(tmp_path, f"{i}.jsonl", lines({"x": value})) for i, value in enumerate(order)]
        assert read(paths)["x"] == (expected if order[0] is first else expected[::-1])


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (b'{"x": ', "this is not JSON"),
        (b'{"x": NaN}', "this is not JSON: NaN is not JSON; null is a missing value"),
        (b'"[1, 2]"', "every line must be an object"),
        (b'{"a\\ud83d": 1}', r"the key 'a\\ud83d' holds half of a surrogate pair"),
        (b"7", "every line must be an object"),
        (b'{"x": 1, "y": "\xe9"}', "this is not JSON: 'utf-8'"),
        (b'{"x": 1, "x": 2}', "specified twice"),
        (b'{"x": 1e999}', "too big"),
        (b'{"y": "\\ud800"}', "surrogate"),
        (b'{"x": 1}\0', "NUL"),
    ],
)
def test_lines_that_cannot_be_read_are_named(tmp_path, small_sample, bad, message):
    """In the sample or beyond it, in the first block or in a later one."""
    many = lines(*[{"x": 1, "y": "two\nlines"}] * 100)
    for before, size in (("", 1000), ('{"x": 1}\n\n', 1 << 23), (many, 1000), (many, 1 << 23)):
        path = at(tmp_path, "t.jsonl", before.encode() + bad + b'\n{"x": 3}\n')
        line = before.count("\n") + 1
        with pytest.raises(db.DecibanError, match=f"t.jsonl, line {line}: .*{message}"):
            read(path, block_size=size)


def test_text_and_numbers_do_not_mix(tmp_path):
    for cells, line, number in ((["a", 1], 2, 1), ([1, "a"], 1, 1), (["a", None, True], 3, True)):
        path = at(tmp_path, "t.jsonl", lines(*({"x": cell} for cell in cells)))
        with pytest.raises(db.DecibanError, match=f"line {line}: column 'x' holds {number}, and text elsewhere"):
            read(path)


def test_what_nothing_can_be_learned_from_is_refused_only_if_it_is_used(tmp_path):
    path = at(tmp_path, "t.jsonl", lines({"x": 1, "m": {"a": 1}}, {"x": 2, "m": "text"}, {"x": 3, "m": [1]}))
    scan = db.scan(path)
    assert scan.columns == {"x": "integer", "m": "other"}
    assert scan.drop(["m"]).read().to_pydict() == {"x": [1, 2, 3]}
    with pytest.raises(db.DecibanError, match="column 'm' is neither numbers nor text"):
        scan.read()


def test_one_document_is_no_lines(tmp_path):
    assert db.scan(at(tmp_path, "t.json", json.dumps({"rows": [{"x": 1}]}))).columns == {"rows": "other"}
    for document, indent in (([{"x": 1}, {"x": 2}], None), ([{"x": 1}, {"x": 2}], 2), ({"rows": [{"x": 1}]}, 2)):
        path = at(tmp_path, "t.json", json.dumps(document, indent=indent))
        with pytest.raises(db.DecibanError, match=r"t.json is one JSON document, not JSON lines: write one object on"):
            read(path)


def test_lists_and_objects_are_carried_along_as_json(tmp_path):
    rows = [{"x": 1, "m": {"a": [1, None]}}, {"x": 2}, {"x": 3, "m": "é"}]
    scan = db.scan(at(tmp_path, "t.jsonl", "\n" + lines(*rows)), block_size=10)
    frames = retry_with_wider_types(lambda: list(scan.frames()))
    assert {frame.kinds for frame in frames} == {("number", "empty")}
    kept = [cell for frame in frames for cell in frame.table.column("m").to_pylist()]
    assert [cell and json.loads(cell) for cell in kept] == [row.get("m") for row in rows]
    with pytest.raises(db.DecibanError, match="column 'm' is neither"):
        _ = scan.empty


# Keys that come late -------------------------------------------------------------------------------------------------

MOST = [{"id": i, "x": i % 7 + 0.5} for i in range(300)]
LATE_ROWS = [{"id": 1, "late": float(i % 5), "y": "ab"[i % 2], "w": 1.0, "x": 3.5} for i in range(50)]


@pytest.fixture
def lazy(tmp_path, small_sample):
    """Scans of the same rows, keys at the end and at the beginning of the file."""
    paths = [at(tmp_path, f"{i}.jsonl", lines(*rows)) for i, rows in enumerate([MOST + LATE_ROWS, LATE_ROWS + MOST])]
    return [db.scan(path, block_size=1000) for path in paths]


def test_all_columns_but_the_dropped_are_read(lazy):
    for scan in lazy:
        for dropped in ([], ["id"], ["id", "x"], ["late"]):
            kept = [name for name in ("id", "late", "y", "w", "x") if name not in dropped]
            chosen = scan.drop(dropped)
            rows = chosen.read().select(kept).to_pylist()
            assert set(chosen.names) == set(kept)
            assert sum(row.get("late", 0) or 0 for row in rows) == (0 if "late" in dropped else 100)


def test_names_are_looked_for_before_they_are_lacking(lazy):
    for scan in lazy:
        assert scan.select(["late"]).read()["late"].null_count == 300
        with pytest.raises(db.DecibanError, match=r"there is no column 'z' in .*.jsonl; there are .*late"):
            scan.select(["z"])
        with pytest.raises(db.DecibanError, match=r"there is no column 'Late' \(did you mean 'late'\?\) in "):
            scan.select(["Late"])


def test_a_stream_is_asked_for_names_that_it_may_not_know(lazy, monkeypatch):
    end, beginning = lazy
    passes = passes_over(monkeypatch)
    assert "y" not in end.names
    assert "y" in end.resolve_columns(["x", "y"]).names
    assert "y" in beginning.resolve_columns(["x", "y"]).names
    assert len(passes) == 2  # of the first, for keys and for how text is written; the second knew
    end.resolve_columns(["z"])
    assert len(passes) == 2  # all rows were looked at
    dropped = db.scan(end.fragments[0].path).drop(["x"])
    assert dropped.resolve_columns(["x"]).names == dropped.project(["x"]).names == ("id",)
    assert len(passes) == 2  # what was dropped is not looked for


def test_a_model_reads_keys_that_come_late_or_never(lazy, tmp_path):
    model = db.NaiveBayes().fit(lines_in_memory(LATE_ROWS), "y")
    expected = model.predict_proba(lines_in_memory(MOST + LATE_ROWS))
    np.testing.assert_array_equal(model.predict_proba(lazy[0]), expected)
    np.testing.assert_array_equal(model.predict_proba(lazy[1]), np.concatenate([expected[-50:], expected[:-50]]))
    never = db.scan(at(tmp_path, "never.jsonl", lines(*MOST)), block_size=1000)
    with pytest.warns(db.DecibanWarning, match=r"never.jsonl has 'late'.*: read as missing values"):
        np.testing.assert_array_equal(model.predict_proba(never), expected[:-50])


def test_a_key_that_never_comes_is_missing_also_when_all_rows_were_looked_at(tmp_path):
    scan = db.scan(at(tmp_path, "t.jsonl", lines({"x": 1}, {"x": 2})))
    for looked in (scan, scan.resolve_columns(["z"])):
        with pytest.warns(db.DecibanWarning, match="t.jsonl has 'z': read as missing values"):
            chosen = looked.project(["x", "z"])
        assert chosen.read().to_pydict() == {"x": [1, 2], "z": [None, None]}


def test_keys_are_looked_for_where_all_known_types_are_given(lazy):
    scan = lazy[0].with_types({"id": "number", "x": "number"})
    assert set(scan.read().column_names) == {"id", "x", "late", "y", "w"}


def lines_in_memory(rows):
    return pa.table({name: [row.get(name) for row in rows] for name in ("id", "late", "y", "w", "x")})


def test_a_model_does_not_depend_on_where_a_key_occurs_first(tmp_path, small_sample):
    rows = [{**row, "y": "ab"[i % 2]} for i, row in enumerate(MOST + LATE_ROWS)]
    ends = [at(tmp_path, f"{i}.jsonl", lines(*order)) for i, order in enumerate([rows, rows[::-1]])]
    models = [db.NaiveBayes().fit(db.scan(path, block_size=1000).drop(["id"]), "y") for path in ends]
    assert sorted(models[0].feature_names_in_) == sorted(models[1].feature_names_in_) == ["late", "w", "x"]
    np.testing.assert_allclose(*[model.predict_proba(lines_in_memory(LATE_ROWS)) for model in models], rtol=1e-9)


def test_beside_other_files_late_keys_are_columns_that_they_lack(lazy, tmp_path):
    path = lazy[0].fragments[0].path
    for beside in (
        at(tmp_path, "t.csv", "id,x\n1,2.5\n"),
        as_parquet(tmp_path, "t.parquet", pa.table({"id": [1], "x": [2.5]})),
    ):
        with pytest.raises(db.DecibanError, match=rf"{beside.name} lacks columns? 'late'"):
            db.scan([path, beside], block_size=1000).read()


def test_files_without_a_key_are_empty(tmp_path):
    for data in ("", "\n", "{}\n{}\n"):
        with pytest.raises(db.DecibanError, match="is empty"):
            read(at(tmp_path, "t.jsonl", data))


def test_how_lines_may_be_written(tmp_path):
    data = '\ufeff{"x": 1, "t": "a\u2028b"}\r\n\r\n  {"x": 2}  \r\n{"t": "\\u00e9\\n"}'
    for size in (1, 20, 1000):
        assert read(at(tmp_path, "t.json", data), block_size=size) == {
            "x": [1, 2, None],
            "t": ["a\u2028b", None, "é\n"],
        }
    assert db.scan(at(tmp_path, "no suffix", data)).columns == {"x": "integer", "t": "text"}
