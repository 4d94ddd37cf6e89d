"""Files that hold their own schema: parquet and Arrow's."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from deciban.batch import Kind
from deciban.errors import DecibanError
from deciban.sources.arrow import plain
from deciban.sources.cells import KIND, STYLES, WORDS, Cells, cells_of_type, wider
from deciban.sources.notation import Profile, profile_of, require_undecided, written_as
from deciban.sources.part import Job, Read, Reading, Unfit

ROWS = 1 << 18  # at a time
GO_WITH: dict[Cells, tuple[Kind, ...]] = {  # what will do beside a type's own kind, as in a table in memory
    "boolean": ("number",),
    "integer": ("boolean",),
    "number": ("boolean",),
    "coded": ("number",),
}


@dataclass(frozen=True)
class Columnar:
    """What parquet and Arrow files share: types are those of the file."""

    path: str
    called: str | None = None  # in messages, if not by its path

    @property
    def title(self) -> str:
        return self.called or self.path

    @cached_property
    def schema(self) -> Any:
        raise NotImplementedError

    def tables(self, names: list[str]) -> Iterator[tuple[Any, float]]:
        """All rows, some at a time, and which share of the file has been read with them."""
        raise NotImplementedError

    @cached_property
    def columns(self) -> dict[str, Cells]:
        return {field.name: cells_of_type(field.type) for field in self.schema}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.schema.names)

    def jobs(self, reading: Reading) -> Iterator[Job]:
        self._require_fit(reading)
        names, first = list(reading.names), 0
        with self._named_errors():
            size = os.path.getsize(self.path)
            for table, share in self.tables(names):
                read = Read(self._written(table, reading), first, round(share * size))
                yield lambda read=read: read  # type: ignore[misc]
                first += table.num_rows

    def _written(self, table: Any, reading: Reading) -> Any:
        """Text that is dates or numbers, read as such."""
        try:
            require_undecided(table, {name for name in reading.undecided if self.columns[name] == "text"})
            for j, name in enumerate(table.column_names):
                cells = reading.types[name]
                if cells in STYLES and self.columns[name] == "text":
                    values = written_as(table.column(j), cells, strict=name in reading.guessed)
                    table = table.set_column(j, name, values)
        except pa.ArrowInvalid:
            raise Unfit from None
        return table

    def _require_fit(self, reading: Reading) -> None:
        """The file's types may be narrower than those of other files, but not of another kind."""
        for name in reading.names:
            mine, wanted = self.columns[name], reading.types[name]
            if mine == "text" and wanted in STYLES:
                continue
            if wider(mine, wanted) != wanted and name in reading.guessed:
                raise Unfit
            if mine != "empty" and wanted != "other" and not _together(mine, wanted):
                problem = f"column {name!r} holds {WORDS[mine]}, and is to be {WORDS[wanted]}, as elsewhere"
                raise DecibanError(f"{self.title}: {problem}: make them one type")

    def surveys(self) -> Iterator[Callable[[], Mapping[str, Cells]]]:
        yield lambda: self.columns

    def profiles(self, names: Collection[str], *, first: bool) -> Iterator[Callable[[], Mapping[str, Profile]]]:
        mine = [name for name in self.names if name in names and self.columns[name] == "text"]
        with self._named_errors():
            for table, _ in islice(self.tables(mine), 1 if first else None) if mine else ():
                yield partial(_profiles, table)

    def place(self, offset: int, row: int) -> str:
        return f"{self.title}, row {offset + row}"

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
            raise DecibanError(
                f"{self.title} cannot be read, it may be cut off or damaged: {_first_line(error)}"
            ) from None


@dataclass(frozen=True)
class Parquet(Columnar):
    """Text is read as dictionaries, which is what the file mostly holds."""

    @cached_property
    def schema(self) -> Any:
        with self._named_errors():
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
    """Arrow's file format (also called Feather) or its stream format."""

    @cached_property
    def schema(self) -> Any:
        with self._named_errors(), pa.OSFile(self.path) as file:
            return self._opened(file).schema

    def tables(self, names: list[str]) -> Iterator[tuple[Any, float]]:
        with pa.OSFile(self.path) as file:
            opened = self._opened(file)
            whole = isinstance(opened, pa.RecordBatchFileReader)
            batches = map(opened.get_batch, range(opened.num_record_batches)) if whole else opened
            for i, batch in enumerate(batches):
                share = (i + 1) / opened.num_record_batches if whole else file.tell() / file.size()
                table = pa.Table.from_batches([batch]).select(names)
                for first in range(0, max(1, table.num_rows), ROWS):
                    yield table.slice(first, ROWS), share

    def _opened(self, file: Any) -> Any:
        if file.read(6) == b"ARROW1":
            return pa.ipc.open_file(file)
        file.seek(0)
        return pa.ipc.open_stream(file)


def _profiles(table: Any) -> dict[str, Profile]:
    chunks = ((name, chunk) for name in table.column_names for chunk in table.column(name).chunks)
    found: dict[str, Profile] = {}
    for name, chunk in chunks:
        found[name] = found.get(name, Profile()) + profile_of(plain(chunk))
    return found


def _together(mine: Cells, wanted: Cells) -> bool:
    """Whether cells of a file will do for what is wanted."""
    return KIND.get(mine) in {KIND[wanted], *GO_WITH.get(wanted, ())}


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
