"""Fast transfer of rows out of Spark: parquet files that tasks read themselves, and numbers that are sent as arrays.

Spark converts columns to rows, and rows to Arrow columns, before Python sees them, which takes several times as long
as fitting. Parquet files that every executor can open are read directly; other numbers take half the time in an array.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa

from deciban.data import Labelled
from deciban.data.schema import Schema
from deciban.engines.partitions import ColumnRoles, PartitionRows, PartitionTables, rows_at_a_time
from deciban.errors import DecibanError
from deciban.lazy import lazy
from deciban.types import Names

functions = lazy("pyspark.sql.functions")
pq = lazy("pyarrow.parquet")

MAX_FILES = 1000  # whose metadata the driver reads
TASK_CELLS = 1 << 26  # about as many cells per task


# Files that tasks read -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RowGroups:
    """Some row groups of a file, as they were when its metadata was read."""

    path: str
    groups: tuple[int, ...]
    rows_before: int
    stamp: tuple[int, int]  # size and modification time


def scanned_row_groups(collection: Any, fields: Any) -> tuple[RowGroups, ...]:
    """The row groups of the files of a DataFrame that is a plain scan; none if it is, or may be, anything else.

    Each file must have all columns with Spark's types. Files with URLs other than `file:`, and cached DataFrames, which
    may be older than the files, are left to Spark.
    """
    if not _is_scan(collection) or collection.is_cached:
        return ()
    urls = [urlsplit(url) for url in collection.inputFiles()]
    if not 0 < len(urls) <= MAX_FILES or {url.scheme for url in urls} != {"file"}:
        return ()
    row_groups: list[RowGroups] = []
    try:
        for path in sorted(unquote(url.path) for url in urls):
            stamp = _stamp(path)
            with pq.ParquetFile(path) as file:
                types = {field.name: _plain(field.type) for field in file.schema_arrow}
                if any(types.get(field.name) != _plain(field.type) for field in fields):
                    return ()
                sizes = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
            row_groups += _split(path, sizes, max(1, TASK_CELLS // max(1, len(fields))), stamp)
    except (OSError, pa.ArrowException):  # left to Spark, which may be configured to ignore such files
        return ()
    return tuple(row_groups)


def _is_scan(collection: Any) -> bool:
    """Whether the plan only selects columns of parquet files.

    Only for Spark's own classes: tables of Delta or Iceberg are parquet files too, but not every listed file belongs to
    them. Spark Connect has no plan to inspect.
    """
    try:
        plan = collection._jdf.queryExecution().analyzed()
        while _class_name(plan) == "Project":
            selected = plan.projectList()
            if any(_class_name(selected.apply(i)) != "AttributeReference" for i in range(selected.size())):
                return False
            plan = plan.child()
        if _class_name(plan) != "LogicalRelation" or _class_name(plan.relation()) != "HadoopFsRelation":
            return False
        relation = plan.relation()
        classes = _class_name(relation.fileFormat()), _class_name(relation.location())
        is_parquet = classes == ("ParquetFileFormat", "InMemoryFileIndex")
        by_id = collection.sparkSession.conf.get("spark.sql.parquet.fieldId.read.enabled", "false") == "true"
        has_partitions = not relation.partitionSchema().isEmpty()
        return is_parquet and not by_id and not has_partitions and _disjoint(relation.location())
    except Exception:  # a plan that cannot be inspected is left to Spark
        return False


def _disjoint(location: Any) -> bool:
    """Whether no path contains another: Spark counts such files twice, but inputFiles() lists them once."""
    paths = location.rootPaths()
    roots = [f"{paths.apply(i).toString().rstrip('/')}/" for i in range(paths.size())]
    return not any(a.startswith(b) for i, a in enumerate(roots) for j, b in enumerate(roots) if i != j)


def _class_name(instance: Any) -> str:
    return str(instance.getClass().getSimpleName())


def _plain(kind: Any) -> Any:
    """The type, with dictionaries and large strings as plain ones."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.string() if pa.types.is_large_string(kind) else kind


def _stamp(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns


def _split(path: str, sizes: list[int], task_rows: int, stamp: tuple[int, int]) -> Iterator[RowGroups]:
    """Runs of row groups, each with about `task_rows` rows."""
    groups, first, rows = list[int](), 0, 0
    for group, size in enumerate(sizes):
        groups.append(group)
        rows += size
        if rows - first >= task_rows or group == len(sizes) - 1:
            yield RowGroups(path, tuple(groups), first, stamp)
            groups, first = [], rows


@dataclass(frozen=True)
class RowGroupTables(PartitionTables):
    """The tables of some row groups."""

    row_groups: RowGroups

    def locate(self, row: int) -> str:
        return f"partition {self.number}, {self.row_groups.path}, row {self.row_groups.rows_before + row}"


def read_row_groups(
    columns: ColumnRoles, row_groups: tuple[RowGroups, ...], number: int, batches: Iterable[Any]
) -> Labelled:
    """The rows of some row groups; their index is the only cell of the partition."""
    (index,) = (index for batch in batches for index in batch.column(0).to_pylist())
    tables = _tables(columns.schema, row_groups[index])
    assert columns.label is not None
    stream = RowGroupTables(tables, columns.schema, number, row_groups[index])
    return PartitionRows(stream, columns.label, columns.weight)


def _tables(schema: Schema, row_groups: RowGroups) -> Iterator[Any]:
    if _stamp(row_groups.path) != row_groups.stamp:
        raise DecibanError(f"{row_groups.path} has changed since the DataFrame was made: read it again")
    with pq.ParquetFile(row_groups.path) as file:
        rows, names = rows_at_a_time(schema), list(schema.names)
        yield from file.iter_batches(rows, row_groups=list(row_groups.groups), columns=names, use_threads=False)


# Numbers as arrays ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PackedColumns:
    """Sends columns of numbers with the same type as one array, with columns named by position."""

    names: Names
    arrays: tuple[tuple[int, ...], ...]  # positions of the columns of each array

    @classmethod
    def of(cls, fields: Any) -> PackedColumns:
        by_type: dict[Any, list[int]] = {}
        for position, field in enumerate(fields):
            if pa.types.is_floating(field.type) or pa.types.is_integer(field.type):
                by_type.setdefault(field.type, []).append(position)
        arrays = tuple(tuple(positions) for positions in by_type.values() if len(positions) > 1)
        return cls(tuple(fields.names), arrays)

    def pack(self, collection: Any) -> Any:
        names = [f"c{position}" for position in range(len(self.names))]
        packed = {position for positions in self.arrays for position in positions}
        single = [name for position, name in enumerate(names) if position not in packed]
        arrays = [
            functions.array(*(names[position] for position in positions)).alias(f"n{i}")
            for i, positions in enumerate(self.arrays)
        ]
        return collection.toDF(*names).select(*single, *arrays)

    def read(self, columns: ColumnRoles, number: int, batches: Iterable[Any]) -> Labelled:
        return columns.table(number, map(self._unpacked, batches))

    def _unpacked(self, batch: Any) -> Any:
        columns: dict[int, Any] = {}
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if name.startswith("c"):
                columns[int(name[1:])] = column
            else:
                columns |= _unpacked_array(column, self.arrays[int(name[1:])])
        return pa.table([columns[position] for position in range(len(self.names))], names=list(map(str, self.names)))


def _unpacked_array(arrays: Any, positions: tuple[int, ...]) -> dict[int, Any]:
    """{position: column} of a column of arrays, one array for each row."""
    cells = arrays.flatten()
    values = np.asarray(cells.fill_null(0)).reshape(len(arrays), len(positions))
    missing = np.asarray(cells.is_null()).reshape(values.shape) if cells.null_count else None
    return {
        position: pa.array(np.ascontiguousarray(values[:, j]), mask=None if missing is None else missing[:, j])
        for j, position in enumerate(positions)
    }
