"""Tables into files or standard output, batch by batch."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from deciban.cli.objects import plain
from deciban.errors import DecibanError
from deciban.storage import replacing

Write = Callable[[Any], None]  # takes a pyarrow.Table
STDOUT = Path("-")


def format_of(path: Path, asked: str | None) -> str:
    """csv, jsonl or parquet: as asked, or by the name.

    >>> format_of(Path("a.parquet"), None), format_of(Path("-"), None), format_of(Path("a.txt"), "jsonl")
    ('parquet', 'csv', 'jsonl')
    """
    found = asked or ("csv" if path == STDOUT else path.suffix.lower().removeprefix("."))
    if found not in WRITERS:
        raise DecibanError(f"{path}: which format? End its name with .{', .'.join(WRITERS)}, or give --format")
    if found == "parquet" and path == STDOUT and sys.stdout.isatty():
        raise DecibanError("parquet is not for a terminal: give -o a file, or pipe it somewhere")
    return found


@contextmanager
def written(path: Path, format: str, schema: Any) -> Iterator[Write]:
    """Takes tables of a schema. A file is in its place when all of them are written, and not before."""
    with _opened(path) as file, WRITERS[format](file, schema) as write:
        yield write


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    if path != STDOUT:
        with replacing(path) as file:
            yield file
        return
    sys.stdout.flush()
    yield sys.stdout.buffer
    sys.stdout.buffer.flush()


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
    yield lambda table: file.writelines(_line(row) for row in table.to_pylist())


def _line(row: dict[str, Any]) -> bytes:
    try:
        text = json.dumps(row, ensure_ascii=False, allow_nan=False)
    except ValueError:  # rarely a number is not finite
        text = json.dumps(plain(row), ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


WRITERS: dict[str, Callable[[BinaryIO, Any], AbstractContextManager[Write]]] = {
    "csv": _csv,
    "jsonl": _jsonl,
    "parquet": _parquet,
}
