"""Text files as blocks: nothing lost, nothing twice, whole records, and the right line."""

import bz2
import gzip
import pickle
import zipfile

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deciban as db
from deciban.data.files.text_files import SAMPLE, TextFile, count_line_breaks
from tests.data.files.written import at


def line_ends(data):
    return data.rfind(b"\n") + 1


@given(st.text("a\r\n", max_size=80), st.integers(1, 30), st.integers(0, 20))
def test_blocks_are_the_text_in_order(tmp_path_factory, text, size, start):
    file = TextFile(str(at(tmp_path_factory.mktemp("text"), "t", text)), block_size=size)
    start = min(start, len(text))
    blocks = list(file.blocks(line_ends, start))
    assert b"".join(block.text for block in blocks) == text.encode()[start:]
    offset = start
    for block in blocks:
        assert block.offset == offset
        assert block.ends_with_newline == (block is not blocks[-1] or block.text.endswith(b"\n"))
        assert block.text.endswith(b"\n") or block is blocks[-1]
        offset += len(block.data)


@given(st.text("a\r\n", max_size=60), st.integers(0, 60))
def test_lines_are_counted_as_python_counts_them(tmp_path_factory, text, offset):
    file = TextFile(str(at(tmp_path_factory.mktemp("text"), "t", text)))
    before = text[:offset]
    assert count_line_breaks(before.encode()) == len((before + "x").splitlines()) - 1
    assert file.line(offset) == len((before + "x").splitlines())


def test_a_line_break_of_two_bytes_is_one_also_where_pieces_meet(tmp_path, monkeypatch):
    monkeypatch.setattr("deciban.data.files.text_files.BLOCK", 4)
    file = TextFile(str(at(tmp_path, "t", "abc\r\ndef\r\ng")))
    assert [file.line(i) for i in (0, 3, 5, 8, 10)] == [1, 1, 2, 2, 3]


def zstd(data):
    return pa.compress(data, "zstd", asbytes=True)


def test_compressed_files(tmp_path):
    """What a file begins with counts, not its name; gzip may have several members."""
    data = b"x,y\n" + b"1,a\n2,b\n" * 1000
    members = gzip.compress(data[:9]) + gzip.compress(data[9:])
    for packed in (gzip.compress(data), bz2.compress(data), zstd(data), members):
        for name in ("t.csv.gz", "t.csv", "t"):
            table = db.scan(at(tmp_path, name, packed), block_size=3000).read()
            assert table.to_pydict() == {"x": [1, 2] * 1000, "y": ["a", "b"] * 1000}


def test_compressed_files_that_are_truncated_are_refused(tmp_path):
    data = b"x,y\n" + b"".join(b"%d,%d\n" % (i, i * i % 977) for i in range(5000))
    for compress in (gzip.compress, bz2.compress, zstd):
        packed = compress(data)
        for left in (0.5, 0.99):
            path = at(tmp_path, "t.csv.gz", packed[: int(len(packed) * left)])
            with pytest.raises(db.DecibanError, match=r"t.csv.gz cannot be read"):
                db.scan(path).read()


def test_a_header_may_begin_as_a_packed_file_or_a_parquet_file_does(tmp_path):
    for name in ("BZh", "PAR1", "ARROW1", "PK", "SQLite", "%PDF", "<50K"):
        assert db.scan(at(tmp_path, "t.csv", f"{name},y\n1,2\n")).read().to_pydict() == {name: [1], "y": [2]}


def zipped(folder):
    with zipfile.ZipFile(folder / "z", "w") as archive:
        archive.writestr("t.csv", "x,y\n1,2\n")
    return (folder / "z").read_bytes()


FOREIGN = {
    "web page": (lambda d: b"\n <!DOCTYPE html>\n<html><body>404</body></html>", "web page"),
    "html": (lambda d: b"<HTML>", "web page"),
    "html after a comment": (lambda d: b"<!-- made by hand -->\n<Body>404</Body>", "web page"),
    "part of a page": (lambda d: b" <div>\n<p>see</p>\n<TABLE border=1>", "web page"),
    "xml": (lambda d: b"<?xml version='1.0'?>", "web page"),
    "xls": (lambda d: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(99), "Excel"),
    "xlsx or zip": (zipped, "zip archive"),
    "xz": (lambda d: b"\xfd7zXZ\0", "xz"),
    "pdf": (lambda d: b"%PDF-1.7\n%\xe2\xe3", "PDF"),
    "sqlite": (lambda d: b"SQLite format 3\0", "database"),
    **{f"pickle {i}": (lambda d, i=i: pickle.dumps({"x": 1}, i), "pickle") for i in (2, 3, 4, 5)},
    "utf-16": (lambda d: "x,y\n1,2\n".encode("utf-16"), "UTF-16"),
    "binary": (lambda d: bytes(range(256)), "NUL"),
}


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl"])
def test_what_is_no_table_is_named(tmp_path, name):
    for make, message in FOREIGN.values():
        with pytest.raises(db.DecibanError, match=rf"{name}, line 1: .*{message}"):
            db.scan(at(tmp_path, name, make(tmp_path))).read()


def test_a_sample_holds_two_lines(tmp_path):
    file = TextFile(str(at(tmp_path, "t", "h" * 2 * SAMPLE + "\n" + "r" * 2 * SAMPLE + "\n" + "s" * 4 * SAMPLE)))
    assert 4 * SAMPLE + 2 <= len(file.sample) < 6 * SAMPLE
    short = TextFile(str(at(tmp_path, "s", "a\n" * SAMPLE)))
    assert len(short.sample) == SAMPLE


def test_a_record_without_end_is_refused_before_it_fills_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("deciban.data.files.text_files.MAX_RECORD", 10_000)
    path = at(tmp_path, "t.csv", "x,y\n1,a\n" + '2,"b' + "\n3,c" * 10_000)
    with pytest.raises(db.DecibanError, match="line 3: a record of more than"):
        db.scan(path, block_size=1000, header=True, delimiter=",").read()
