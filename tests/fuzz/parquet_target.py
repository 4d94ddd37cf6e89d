"""Parquet files."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq

import deciban as db
from tests.fuzz import arrow_target
from tests.fuzz.row_files import fitted, table, written


def seeds() -> list[bytes]:
    tables = [
        pa.table([pa.array(column.to_pylist(), _stored(column.type)) for column in table.columns], table.column_names)
        for table in arrow_target.tables()
    ]
    options = [{"compression": "none"}, {"compression": "none", "use_dictionary": False}, {"compression": "snappy"}]
    return [_written(table, option) for table in tables for option in options]


def _stored(dtype: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_string_view(dtype) else dtype


def _written(table: pa.Table, options: dict[str, object]) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, row_group_size=4, **options)
    return out.getvalue()


def run(data: bytes) -> None:
    path = written("t.parquet", data)
    table(path)
    fitted(lambda: db.scan(path), lambda: list(db.scan(path).names))
