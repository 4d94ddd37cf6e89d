"""Files that hold their own schema: parquet and Arrow."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from deciban.data.arrow import without_views
from deciban.data.arrow_buffers import column_names, require_valid
from deciban.data.batch import Kind
from deciban.data.cell_types import KIND_OF, STYLES, CellType, cell_type_of, common_type
from deciban.data.files.fragment import Chunk, FileFormat, Fragment, ReadOptions, ReadTask, TypeMismatch
from deciban.data.notation import TextProfile, parse_column, profile_table, require_undecided
from deciban.data.schema import require_unique
from deciban.errors import DecibanError

ROWS = 1 << 18  # per chunk
COMPATIBLE_KINDS: dict[CellType, tuple[Kind, ...]] = {  # that a type accepts besides its own, as tables in memory do
    "boolean": ("number",),
    "integer": ("boolean",),
    "number": ("boolean",),
    "coded": ("number",),
}


@dataclass(frozen=True)
class Columnar(Fragment):
    """A file with a schema."""

    @cached_property
    def schema(self) -> Any:
        """pyarrow.Schema"""
        with self._named_errors():
            schema = self._read_schema()
            column_names(schema)  # raises if a name is not UTF-8
            return schema

    @abstractmethod
    def _read_schema(self) -> Any: ...

    @abstractmethod
    def tables(self, names: list[str]) -> Iterator[tuple[Any, float]]:
        """All rows in chunks, and the share of the file that has been read."""

    @cached_property
    def columns(self) -> dict[str, CellType]:
        return {field.name: cell_type_of(field.type) for field in self.schema}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.schema.names)

    def read_tasks(self, options: ReadOptions) -> Iterator[ReadTask]:
        self._require_types(options)
        first = 0
        with self._named_errors():
            size = os.path.getsize(self.path)
            for table, share in self.tables(list(options.names)):
                yield partial(self._chunk, table, first, round(share * size), options)
                first += table.num_rows

    def _chunk(self, table: Any, first: int, bytes_read: int, options: ReadOptions) -> Chunk:
        with self._named_errors():
            return Chunk(self._parsed(require_valid(table), options), first, bytes_read)

    def _parsed(self, table: Any, options: ReadOptions) -> Any:
        """The table with text parsed where it is dates or numbers."""
        try:
            require_undecided(table, {name for name in options.undecided if self.columns[name] == "text"})
            for j, name in enumerate(table.column_names):
                cell_type = options.types[name]
                if cell_type in STYLES and self.columns[name] == "text":
                    table = table.set_column(j, name, parse_column(table.column(j), cell_type, options.markers(name)))
        except pa.ArrowInvalid:
            raise TypeMismatch from None
        return table

    def _require_types(self, options: ReadOptions) -> None:
        """Raises an error if a column is of another kind than in other files; its type may be narrower."""
        for name in options.names:
            own_type, cell_type = self.columns[name], options.types[name]
            if own_type == "text" and cell_type in STYLES:
                continue
            if common_type(own_type, cell_type) != cell_type and name in options.inferred:
                raise TypeMismatch
            if own_type != "empty" and cell_type != "other" and not compatible_types(own_type, cell_type):
                raise self.mixed_types(name, own_type, cell_type)

    def profile_tasks(self, names: Collection[str]) -> Iterator[Callable[[], Mapping[str, TextProfile]]]:
        text = [name for name in self.names if name in names and self.columns[name] == "text"]
        with self._named_errors():
            require_unique(self.names)
            for table, _ in self.tables(text) if text else ():
                yield partial(self._table_profiles, table)

    def _table_profiles(self, table: Any) -> Mapping[str, TextProfile]:
        with self._named_errors():
            return profile_table(without_views(require_valid(table)))

    def locate(self, offset: int, row: int) -> str:
        return f"{self.title}, row {offset + row}"

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except DecibanError as error:
            raise DecibanError(f"{self.title}: {error}") from None
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            reason = str(error).partition("\n")[0]
            raise DecibanError(f"{self.title} cannot be read, it may be truncated or damaged: {reason}") from None


@dataclass(frozen=True)
class Parquet(Columnar):
    """Text is read as dictionaries, as parquet mostly stores it."""

    def _read_schema(self) -> Any:
        return pq.read_schema(self.path)

    def tables(self, names: list[str]) -> Iterator[tuple[Any, float]]:
        text = [name for name in names if self.columns[name] == "text"]
        with pq.ParquetFile(self.path, read_dictionary=text) as file:
            rows = 0
            for batch in file.iter_batches(ROWS, columns=names):
                rows += batch.num_rows
                yield pa.Table.from_batches([batch]), rows / max(1, file.metadata.num_rows)


@dataclass(frozen=True)
class ArrowFile(Columnar):
    """Arrow's file format (Feather) or stream format."""

    def _read_schema(self) -> Any:
        with pa.OSFile(self.path) as file:
            return self._opened(file).schema

    def tables(self, names: list[str]) -> Iterator[tuple[Any, float]]:
        with pa.OSFile(self.path) as file:
            opened = self._opened(file)
            is_file = isinstance(opened, pa.RecordBatchFileReader)
            batches = map(opened.get_batch, range(opened.num_record_batches)) if is_file else opened
            for i, batch in enumerate(batches):
                share = (i + 1) / opened.num_record_batches if is_file else file.tell() / file.size()
                table = pa.Table.from_batches([batch]).select(names)
                for first in range(0, max(1, table.num_rows), ROWS):
                    yield table.slice(first, ROWS), share

    def _opened(self, file: Any) -> Any:
        if file.read(6) == b"ARROW1":
            return pa.ipc.open_file(file)
        file.seek(0)
        return pa.ipc.open_stream(file)


def compatible_types(own_type: CellType, wanted: CellType) -> bool:
    """Whether cells of a file's own type can be read as the wanted type."""
    return KIND_OF.get(own_type) in {KIND_OF[wanted], *COMPATIBLE_KINDS.get(wanted, ())}


PARQUET = FileFormat(
    "parquet",
    lambda file, options: Parquet(file),
    (".parquet", ".pq"),
    lambda start: start.startswith(b"PAR1") and start[4:5] < b" ",  # a csv header may begin with PAR1 as well
)
ARROW = FileFormat(
    "arrow",
    lambda file, options: ArrowFile(file),
    (".arrow", ".feather", ".ipc"),
    lambda start: start.startswith((b"ARROW1\0", b"\xff\xff\xff\xff")),
)
