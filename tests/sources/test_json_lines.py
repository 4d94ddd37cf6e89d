"""JSON lines: keys that come late, types that widen, and what is wrong with which line."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import deciban as db
from tests.sources.test_delimited import passes_over
from tests.sources.written import at


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


def test_keys_that_come_late_are_columns_after_one_survey(tmp_path, monkeypatch):
    path = at(tmp_path, "t.jsonl", lines(*[{"x": 1}] * 100_000, {"x": 2, "z": "q"}))
    passes = passes_over(monkeypatch)
    scan = db.scan(path, block_size=100_000)
    assert scan.columns == {"x": "integer"}
    table = scan.read()
    assert scan.columns == {"x": "integer", "z": "text"}
    assert table["z"].null_count == 100_000
    assert table["z"][-1].as_py() == "q"
    assert len(passes) == 3
    scan.select(["z"]).read()
    assert len(passes) == 4  # what was found out serves every choice of columns


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
def test_types_widen(tmp_path, first, last, cells, expected):
    path = at(tmp_path, "t.jsonl", lines(*[{"x": first, "y": 0}] * 30_000, {"x": last}))
    scan = db.scan(path, block_size=20_000)
    found = scan.read()["x"]
    assert (scan.columns["x"], [found[0].as_py(), found[-1].as_py()]) == (cells, expected)
    for order in ([first, last], [last, first]):
        paths = [at(tmp_path, f"{i}.jsonl", lines({"x": value})) for i, value in enumerate(order)]
        assert read(paths)["x"] == (expected if order[0] is first else expected[::-1])


MANY = lines(*[{"x": 1, "y": "two\nlines"}] * 20_000)


@pytest.mark.parametrize("size", [1000, 1 << 23])
@pytest.mark.parametrize("before", ["", '{"x": 1}\n\n', MANY])
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (b'{"x": ', "this is not JSON"),
        (b'{"x": NaN}', "this is not JSON: NaN is no JSON; null is a missing cell"),
        (b"[1, 2]", "every line must be an object"),
        (b"7", "every line must be an object"),
        (b'{"x": 1, "y": "\xe9"}', "this is not JSON: 'utf-8'"),
        (b'{"x": 1, "x": 2}', "specified twice"),
        (b'{"x": 1e999}', "too big"),
        (b'{"y": "\\ud800"}', "surrogate"),
        (b'{"x": 1}\0', "NUL"),
    ],
)
def test_lines_that_cannot_be_read_are_named(tmp_path, before, bad, message, size):
    line = before.count("\n") + 1
    path = at(tmp_path, "t.jsonl", before.encode() + bad + b'\n{"x": 3}\n')
    with pytest.raises(db.DecibanError, match=f"t.jsonl, line {line}: .*{message}"):
        read(path, block_size=size)


@pytest.mark.parametrize(
    ("rows", "line", "message"),
    [
        ([{"x": "a"}, {"x": 1}], 2, "column 'x' holds 1, and text elsewhere"),
        ([{"x": 1}, {"x": "a"}], 1, "column 'x' holds 1, and text elsewhere"),
        ([{"x": "a"}, {"x": None}, {"x": True}], 3, "column 'x' holds True, and text elsewhere"),
    ],
)
def test_text_and_numbers_do_not_mix(tmp_path, rows, line, message):
    with pytest.raises(db.DecibanError, match=f"t.jsonl, line {line}: {message}"):
        read(at(tmp_path, "t.jsonl", lines(*rows)))


def test_what_nothing_can_be_learned_from_is_refused_only_if_it_is_used(tmp_path):
    path = at(tmp_path, "t.jsonl", lines({"x": 1, "m": {"a": 1}}, {"x": 2, "m": "text"}, {"x": 3, "m": [1]}))
    scan = db.scan(path)
    assert scan.columns == {"x": "integer", "m": "other"}
    assert scan.drop(["m"]).read().to_pydict() == {"x": [1, 2, 3]}
    with pytest.raises(db.DecibanError, match="column 'm' is neither numbers nor text"):
        scan.read()


@pytest.mark.parametrize("data", ["", "\n", "{}\n{}\n"])
def test_files_without_a_key_are_empty(tmp_path, data):
    with pytest.raises(db.DecibanError, match="is empty"):
        read(at(tmp_path, "t.jsonl", data))


def test_how_lines_may_be_written(tmp_path):
    data = '\ufeff{"x": 1, "t": "a\u2028b"}\r\n\r\n  {"x": 2}  \r\n{"t": "\\u00e9\\n"}'
    for size in (1, 20, 1000):
        found = read(at(tmp_path, "t.json", data), block_size=size)
        assert found == {"x": [1, 2, None], "t": ["a\u2028b", None, "é\n"]}
    assert db.scan(at(tmp_path, "no suffix", data)).columns == {"x": "integer", "t": "text"}
