"""Arrow's file and stream formats: from a file, and as the table that pyarrow reads from it."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.ipc

import deciban as db
from tests.fuzz.row_files import fitted, table, written

ROWS = 6


def tables() -> list[pa.Table]:
    """Columns of every type that can be a feature, in small tables, since a file's schema is most of it."""
    words = ["a", None, "bb", "", "a", "a longer text"]
    text = pa.array(words)
    numbers: dict[str, Any] = {
        "x": pa.array([1.5, None, 3, float("nan"), 0, -1]),
        "i": pa.array([1, 2, None, 4, 5, 6], pa.int8()),
        "b": pa.array([True, None, False, True, False, True]),
        "y": pa.array(["no", "yes"] * 3),
    }
    texts = {"t": text, "l": text.cast(pa.large_string()), "v": text.cast(pa.string_view()), "y": numbers["y"]}
    moments = {
        "d": pa.array(range(ROWS), pa.date32()),
        "m": pa.array(range(ROWS), pa.timestamp("ms", "UTC")),
        "c": pa.array(range(ROWS), pa.int64()).cast(pa.decimal128(30, 2)),
        "h": pa.array(range(ROWS), pa.time64("us")),
        "y": pa.array([0, 1] * 3),
    }
    coded = {"t": text.dictionary_encode(), "k": pa.array([3, 4] * 3).dictionary_encode(), "y": numbers["y"]}
    nested = {"n": pa.array([[1], [], None, [2, 3], [4], [5]]), "e": pa.nulls(ROWS), "y": numbers["y"]}
    return [pa.table(columns) for columns in (numbers, texts, moments, coded, nested)]


def seeds() -> list[bytes]:
    return [_written(table, new) for table in tables() for new in (pa.ipc.new_file, pa.ipc.new_stream)]


def _written(table: pa.Table, new: Any) -> bytes:
    out = io.BytesIO()
    with new(out, table.schema) as writer:
        writer.write_table(table, max_chunksize=4)
    return out.getvalue()


def run(data: bytes) -> None:
    path = written("t.arrow", data)
    table(path)
    fitted(lambda: db.scan(path), lambda: list(db.scan(path).names))
    try:
        opened = pa.ipc.open_file if data.startswith(b"ARROW1") else pa.ipc.open_stream
        rows = opened(io.BytesIO(data)).read_all()
        names = rows.column_names
    except (pa.ArrowException, OSError, UnicodeDecodeError, ValueError, KeyError):
        return
    fitted(lambda: rows, lambda: names)
    fitted(lambda: pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches()), lambda: names)
