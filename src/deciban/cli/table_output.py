"""Writes tables to files or standard output, batch by batch."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from deciban.errors import DecibanError
from deciban.persist.storage import replacing
from deciban.plots.figures import plain

Write = Callable[[Any], None]  # takes a pyarrow.Table
STDOUT = Path("-")
ALSO_STDOUT = ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")  # may be a file that the shell opened for appending


def output_of(path: Path) -> Path:
    """
    >>> str(output_of(Path("/dev/stdout"))), str(output_of(Path("a.csv")))
    ('-', 'a.csv')
    """
    return STDOUT if str(path) in ALSO_STDOUT else path


def is_open_ended(path: Path) -> bool:
    """Whether the path is standard output, a pipe or a device, which cannot be replaced.

    >>> is_open_ended(Path("-")), is_open_ended(Path("/dev/null")), is_open_ended(Path("a.csv"))
    (True, True, False)
    """
    return path == STDOUT or (path.exists() and not path.is_file() and not path.is_dir())


def format_of(path: Path, format: str | None) -> str:
    """csv, jsonl or parquet: as given, or by the file name.

    >>> format_of(Path("a.parquet"), None), format_of(Path("-"), None), format_of(Path("a.txt"), "jsonl")
    ('parquet', 'csv', 'jsonl')
    """
    chosen = format or ("csv" if is_open_ended(path) else path.suffix.lower().removeprefix("."))
    if chosen not in WRITERS:
        raise DecibanError(f"{path}: the format is unclear; end the name with .{', .'.join(WRITERS)}, or give --format")
    if chosen == "parquet" and path == STDOUT and sys.stdout.isatty():
        raise DecibanError("parquet cannot be written to a terminal: give -o a file, or use a pipe")
    return chosen


def require_holds(format: str, columns: Mapping[str, Any]) -> None:
    """Raises an error if a format cannot hold a column, by trying to write a missing value of its Arrow type.

    >>> require_holds("csv", {"tags": pa.list_(pa.string())})
    Traceback (most recent call last):
    deciban.errors.DecibanError: column 'tags' is of type list<item: string>, which csv cannot hold: drop it from --keep
    """
    for name, kind in columns.items():
        if not _holds(format, kind):
            raise DecibanError(f"column {name!r} is of type {kind}, which {format} cannot hold: drop it from --keep")


def _holds(format: str, kind: Any) -> bool:
    missing = pa.table({"value": pa.nulls(1, kind)})
    try:
        with WRITERS[format](io.BytesIO(), missing.schema) as write:
            write(missing)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    return format == "parquet" or not str(kind).startswith(("binary", "large_binary", "fixed_size_binary"))


@contextmanager
def written(path: Path, format: str, schema: Any) -> Iterator[Write]:
    """A function that writes tables of a schema. A file is replaced only once all of them are written."""
    with _opened(path) as file, WRITERS[format](file, schema) as write:
        yield write


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    if path == STDOUT:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with path.open("wb") if is_open_ended(path) else replacing(path) as file:
        yield file


@contextmanager
def _csv(file: BinaryIO, schema: Any) -> Iterator[Write]:
    with pacsv.CSVWriter(file, schema) as writer:
        yield writer.write_table


@contextmanager
def _parquet(file: BinaryIO, schema: Any) -> Iterator[Write]:
    # Probabilities are all different: dictionaries and statistics of them take longer than writing them. Predictions
    # are dictionary-encoded; without Arrow's schema in the file they are read back as plain text
    repeated = [field.name for field in schema if not pa.types.is_floating(field.type)]
    options: dict[str, Any] = {"use_dictionary": repeated, "write_statistics": repeated, "store_schema": False}
    with pq.ParquetWriter(file, schema, **options) as writer:
        yield writer.write_table


@contextmanager
def _jsonl(file: BinaryIO, schema: Any) -> Iterator[Write]:
    yield lambda table: file.writelines(_line(row) for row in _as_json(table).to_pylist())


def _as_json(table: Any) -> Any:
    """Dates and times in ISO format, decimals as numbers.

    >>> moments = pa.table({"at": pa.array([0], pa.timestamp("s", "UTC")), "day": pa.array([1], pa.date32())})
    >>> _as_json(moments).to_pylist()
    [{'at': '1970-01-01T00:00:00Z', 'day': '1970-01-02'}]
    """
    for j, field in enumerate(table.schema):
        if pa.types.is_temporal(field.type):
            text = table.column(j).cast(pa.string())
            table = table.set_column(j, field.name, pc.replace_substring(text, " ", "T"))
        if pa.types.is_decimal(field.type):
            whole = field.type.scale == 0 and field.type.precision <= 18
            table = table.set_column(j, field.name, table.column(j).cast(pa.int64() if whole else pa.float64()))
    return table


def _line(row: dict[str, Any]) -> bytes:
    try:
        text = json.dumps(row, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError):  # a number that is not finite, or dates in a list
        text = json.dumps(plain(row), ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


WRITERS: dict[str, Callable[[BinaryIO, Any], AbstractContextManager[Write]]] = {
    "csv": _csv,
    "jsonl": _jsonl,
    "parquet": _parquet,
}
