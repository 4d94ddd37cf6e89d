"""Tables into files or standard output, batch by batch."""

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

from deciban.charts.figures import plain
from deciban.errors import DecibanError
from deciban.storage import replacing

Write = Callable[[Any], None]  # takes a pyarrow.Table
STDOUT = Path("-")
ALSO_STDOUT = ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")  # may be a file that a shell has opened to append to


def output_of(path: Path) -> Path:
    """
    >>> str(output_of(Path("/dev/stdout"))), str(output_of(Path("a.csv")))
    ('-', 'a.csv')
    """
    return STDOUT if str(path) in ALSO_STDOUT else path


def is_open_ended(path: Path) -> bool:
    """Standard output, a pipe or a device: it takes what comes, and nothing can take its place.

    >>> is_open_ended(Path("-")), is_open_ended(Path("/dev/null")), is_open_ended(Path("a.csv"))
    (True, True, False)
    """
    return path == STDOUT or (path.exists() and not path.is_file() and not path.is_dir())


def format_of(path: Path, asked: str | None) -> str:
    """csv, jsonl or parquet: as asked, or by the name.

    >>> format_of(Path("a.parquet"), None), format_of(Path("-"), None), format_of(Path("a.txt"), "jsonl")
    ('parquet', 'csv', 'jsonl')
    """
    found = asked or ("csv" if is_open_ended(path) else path.suffix.lower().removeprefix("."))
    if found not in WRITERS:
        raise DecibanError(f"{path}: which format? End its name with .{', .'.join(WRITERS)}, or give --format")
    if found == "parquet" and path == STDOUT and sys.stdout.isatty():
        raise DecibanError("parquet is not for a terminal: give -o a file, or pipe it somewhere")
    return found


def require_holds(format: str, columns: Mapping[str, Any]) -> None:
    """Columns of Arrow's types can be written in a format: found by writing a missing cell.

    >>> require_holds("csv", {"tags": pa.list_(pa.string())})
    Traceback (most recent call last):
    deciban.errors.DecibanError: column 'tags' is of type list<item: string>, which csv cannot hold: do not keep it
    """
    for name, kind in columns.items():
        if not _holds(format, kind):
            raise DecibanError(f"column {name!r} is of type {kind}, which {format} cannot hold: do not keep it")


def _holds(format: str, kind: Any) -> bool:
    missing = pa.table({"cell": pa.nulls(1, kind)})
    try:
        with WRITERS[format](io.BytesIO(), missing.schema) as write:
            write(missing)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    return format == "parquet" or not _is_bytes(kind)


def _is_bytes(kind: Any) -> bool:
    types = pa.types
    return any(
        is_kind(kind)
        for is_kind in (types.is_binary, types.is_large_binary, types.is_binary_view, types.is_fixed_size_binary)
    )


@contextmanager
def written(path: Path, format: str, schema: Any) -> Iterator[Write]:
    """Takes tables of a schema. A file is in its place when all of them are written, and not before."""
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
    # probabilities are all different: to look for a dictionary of them, and for extremes that nobody asks for, takes
    # longer than to write them. Predictions come as a dictionary; without Arrow's schema in the file that is plain text
    repeated = [field.name for field in schema if not pa.types.is_floating(field.type)]
    options: dict[str, Any] = {"use_dictionary": repeated, "write_statistics": repeated, "store_schema": False}
    with pq.ParquetWriter(file, schema, **options) as writer:
        yield writer.write_table


@contextmanager
def _jsonl(file: BinaryIO, schema: Any) -> Iterator[Write]:
    yield lambda table: file.writelines(_line(row) for row in _as_json(table).to_pylist())


def _as_json(table: Any) -> Any:
    """Dates and times as ISO has them, decimals as numbers.

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
    except (ValueError, TypeError):  # rarely a number is not finite, or a list holds dates
        text = json.dumps(plain(row), ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


WRITERS: dict[str, Callable[[BinaryIO, Any], AbstractContextManager[Write]]] = {
    "csv": _csv,
    "jsonl": _jsonl,
    "parquet": _parquet,
}
