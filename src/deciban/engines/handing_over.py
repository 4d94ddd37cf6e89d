"""How rows get out of Spark: files that tasks read by themselves, and numbers that are handed over as arrays.

Spark turns columns into rows and rows into Arrow's columns again before Python sees them, which takes several times as
long as all that is learned from them. Parquet files that every executor can open need none of this; for the rest, a
cell of an array is handed over in half the time of a cell of a column.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa

from deciban.engines.parts import Columns, Part, Tables, rows_at_a_time
from deciban.errors import DecibanError
from deciban.late import late
from deciban.schema import Schema
from deciban.sources import Labelled
from deciban.types import Names

functions = late("pyspark.sql.functions")
pq = late("pyarrow.parquet")

MOST_FILES = 1000  # whose ends are looked at before anything is read
TASK_CELLS = 1 << 26  # of one task, about


# Files that tasks read -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Groups:
    """Some row groups of a file, as it was when it was looked at."""

    path: str
    groups: tuple[int, ...]
    before: int  # rows
    stamp: tuple[int, int]  # size, and time of the last change


def groups_of_scan(collection: Any, fields: Any) -> tuple[Groups, ...]:
    """The row groups of the files that a DataFrame is a plain scan of; none if it is anything else, or may be.

    Each file must have all columns, of the types that Spark has for them. Files in other places than `file:` are for
    Spark, which knows how to get at them; and what is cached may be older than the files.
    """
    if not _is_scan(collection) or collection.is_cached:
        return ()
    urls = [urlsplit(url) for url in collection.inputFiles()]
    if not 0 < len(urls) <= MOST_FILES or {url.scheme for url in urls} != {"file"}:
        return ()
    found: list[Groups] = []
    try:
        for path in sorted(unquote(url.path) for url in urls):
            stamp = _stamp(path)
            with pq.ParquetFile(path) as file:
                known = {field.name: _plain(field.type) for field in file.schema_arrow}
                if any(known.get(field.name) != _plain(field.type) for field in fields):
                    return ()
                sizes = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
            found += _cut(path, sizes, max(1, TASK_CELLS // max(1, len(fields))), stamp)
    except (OSError, pa.ArrowException):  # which Spark may have been told to pass over
        return ()
    return tuple(found)


def _is_scan(collection: Any) -> bool:
    """Whether the plan is a relation of parquet files, of which columns may have been chosen, and nothing more.

    Only Spark's own classes are known here: tables of Delta or Iceberg are parquet files too, but not all of these.
    Spark Connect has no plan to look at.
    """
    try:
        plan = collection._jdf.queryExecution().analyzed()
        while _name(plan) == "Project":
            chosen = plan.projectList()
            if any(_name(chosen.apply(i)) != "AttributeReference" for i in range(chosen.size())):
                return False
            plan = plan.child()
        if _name(plan) != "LogicalRelation" or _name(plan.relation()) != "HadoopFsRelation":
            return False
        relation = plan.relation()
        parts = relation.fileFormat(), relation.location()
        known = [*map(_name, parts)] == ["ParquetFileFormat", "InMemoryFileIndex"]
        by_id = collection.sparkSession.conf.get("spark.sql.parquet.fieldId.read.enabled", "false") == "true"
        return known and not by_id and bool(relation.partitionSchema().isEmpty()) and _all_apart(relation.location())
    except Exception:  # what cannot be looked at is left to Spark
        return False


def _all_apart(location: Any) -> bool:
    """Whether no file is named twice: its rows would count twice, and the list of files has it once."""
    paths = location.rootPaths()
    roots = [f"{paths.apply(i).toString().rstrip('/')}/" for i in range(paths.size())]
    return not any(a.startswith(b) for i, a in enumerate(roots) for j, b in enumerate(roots) if i != j)


def _name(instance: Any) -> str:
    return str(instance.getClass().getSimpleName())


def _plain(kind: Any) -> Any:
    """Dictionaries and large strings hold what plain ones hold."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.string() if pa.types.is_large_string(kind) else kind


def _stamp(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns


def _cut(path: str, sizes: list[int], most: int, stamp: tuple[int, int]) -> Iterator[Groups]:
    """Runs of row groups, each with about so many rows."""
    groups, first, rows = list[int](), 0, 0
    for group, size in enumerate(sizes):
        groups.append(group)
        rows += size
        if rows - first >= most or group == len(sizes) - 1:
            yield Groups(path, tuple(groups), first, stamp)
            groups, first = [], rows


@dataclass(frozen=True)
class FileTables(Tables):
    """The tables of some row groups."""

    groups: Groups

    def place(self, row: int) -> str:
        return f"partition {self.number}, {self.groups.path}, row {self.groups.before + row}"


def read_groups(columns: Columns, every: tuple[Groups, ...], number: int, batches: Iterable[Any]) -> Labelled:
    """The rows of the row groups whose number a task is given: one."""
    (place,) = (place for batch in batches for place in batch.column(0).to_pylist())
    tables = _tables(columns.schema, every[place])
    assert columns.label is not None
    return Part(FileTables(tables, columns.schema, number, every[place]), columns.label, columns.weight)


def _tables(schema: Schema, groups: Groups) -> Iterator[Any]:
    if _stamp(groups.path) != groups.stamp:
        raise DecibanError(f"{groups.path} has changed since the DataFrame was looked at: read it again")
    with pq.ParquetFile(groups.path) as file:
        rows, names = rows_at_a_time(schema), list(schema.names)
        yield from file.iter_batches(rows, row_groups=list(groups.groups), columns=names, use_threads=False)


# Numbers as arrays ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Packing:
    """Columns of numbers of one type go as one array; columns have their places for names meanwhile."""

    names: Names
    arrays: tuple[tuple[int, ...], ...]  # the places of the columns of each

    @classmethod
    def of(cls, fields: Any) -> Packing:
        found: dict[Any, list[int]] = {}
        for place, field in enumerate(fields):
            if pa.types.is_floating(field.type) or pa.types.is_integer(field.type):
                found.setdefault(field.type, []).append(place)
        return cls(tuple(fields.names), tuple(tuple(places) for places in found.values() if len(places) > 1))

    def packed(self, collection: Any) -> Any:
        inside = {place for places in self.arrays for place in places}
        by_place = collection.toDF(*(f"c{place}" for place in range(len(self.names))))
        alone = [f"c{place}" for place in range(len(self.names)) if place not in inside]
        arrays = [
            functions.array(*(f"c{place}" for place in places)).alias(f"n{i}") for i, places in enumerate(self.arrays)
        ]
        return by_place.select(*alone, *arrays)

    def read(self, columns: Columns, number: int, batches: Iterable[Any]) -> Labelled:
        return columns.table(number, map(self._unpacked, batches))

    def _unpacked(self, batch: Any) -> Any:
        found: dict[int, Any] = {}
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if name.startswith("c"):
                found[int(name[1:])] = column
            else:
                found |= _columns_of(column, self.arrays[int(name[1:])])
        return pa.table([found[place] for place in range(len(self.names))], names=list(map(str, self.names)))


def _columns_of(arrays: Any, places: tuple[int, ...]) -> dict[int, Any]:
    """The columns whose cells are those of arrays, one for each row."""
    cells = arrays.flatten()
    values = np.asarray(cells.fill_null(0)).reshape(len(arrays), len(places))
    absent = np.asarray(cells.is_null()).reshape(values.shape) if cells.null_count else None
    return {
        place: pa.array(np.ascontiguousarray(values[:, j]), mask=None if absent is None else absent[:, j])
        for j, place in enumerate(places)
    }
