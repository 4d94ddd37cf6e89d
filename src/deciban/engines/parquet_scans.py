"""Plain scans of parquet files: where a DataFrame of Spark is nothing else, tasks read the files themselves.

Spark turns columns into rows and rows into Arrow's columns again before Python sees them, which takes several times as
long as all that is learned from them. Files that every executor can open need none of this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from deciban.engines.parts import ROWS, Columns
from deciban.late import late
from deciban.sources import Labelled

pq = late("pyarrow.parquet")

MOST_FILES = 1000  # whose ends are looked at before anything is read
PIECE_ROWS = 1 << 21  # of one task, about


@dataclass(frozen=True)
class Piece:
    """Some row groups of a file."""

    path: str
    groups: tuple[int, ...]


def pieces_of_scan(collection: Any, fields: Any) -> tuple[Piece, ...]:
    """The pieces of the files that a DataFrame is a plain scan of; none if it is anything else, or may be.

    Each file must have all columns, of the types that Spark has for them. Files in other places than `file:` are for
    Spark, which knows how to get at them; and what is cached may be older than the files.
    """
    if not _is_scan(collection) or collection.is_cached:
        return ()
    urls = [urlsplit(url) for url in collection.inputFiles()]
    if not 0 < len(urls) <= MOST_FILES or {url.scheme for url in urls} != {"file"}:
        return ()
    pieces: list[Piece] = []
    for path in sorted(unquote(url.path) for url in urls):
        with pq.ParquetFile(path) as file:
            known = file.schema_arrow
            if any(known.get_field_index(f.name) < 0 or known.field(f.name).type != f.type for f in fields):
                return ()
            pieces += _cut(path, [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)])
    return tuple(pieces)


def _is_scan(collection: Any) -> bool:
    """Whether the plan is a relation of parquet files, of which columns may have been chosen, and nothing more.

    Only Spark's own classes are known here: tables of Delta or Iceberg are parquet files too, but not all of these.
    Spark Connect has no plan to look at.
    """
    try:
        plan = collection._jdf.queryExecution().analyzed()
        if _name(plan) == "Project":
            chosen = plan.projectList()
            if any(_name(chosen.apply(i)) != "AttributeReference" for i in range(chosen.size())):
                return False
            plan = plan.child()
        if _name(plan) != "LogicalRelation" or _name(plan.relation()) != "HadoopFsRelation":
            return False
        relation = plan.relation()
        parts = relation.fileFormat(), relation.location()
        return [*map(_name, parts)] == [
            "ParquetFileFormat",
            "InMemoryFileIndex",
        ] and relation.partitionSchema().isEmpty()
    except Exception:  # what cannot be looked at is left to Spark
        return False


def _name(instance: Any) -> str:
    return str(instance.getClass().getSimpleName())


def _cut(path: str, rows: list[int]) -> Iterator[Piece]:
    """Runs of row groups."""
    groups, size = list[int](), 0
    for group, count in enumerate(rows):
        groups.append(group)
        size += count
        if size >= PIECE_ROWS:
            yield Piece(path, tuple(groups))
            groups, size = [], 0
    if groups:
        yield Piece(path, tuple(groups))


def read_pieces(columns: Columns, pieces: tuple[Piece, ...], number: int, batches: Iterable[Any]) -> Labelled:
    """The rows of the pieces whose numbers a task is given."""
    given = (pieces[i] for batch in batches for i in batch.column(0).to_pylist())
    return columns.table(number, (table for piece in given for table in _tables(columns, piece)))


def _tables(columns: Columns, piece: Piece) -> Iterator[Any]:
    with pq.ParquetFile(piece.path) as file:
        yield from file.iter_batches(ROWS, row_groups=list(piece.groups), columns=list(columns.schema.names))
