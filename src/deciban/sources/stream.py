"""Streams: tables that come batch by batch, and may be longer than memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from deciban.batch import Kind, Notation
from deciban.errors import DecibanError, RowError
from deciban.late import late
from deciban.sources.ahead import ahead
from deciban.sources.arrow import TableFrame, kind_of, plain
from deciban.sources.cells import KIND, STYLES, Cells, cells_of_type
from deciban.sources.notation import written_as

pa = late("pyarrow")

T = TypeVar("T")


class TypesChanged(DecibanError):
    """Columns are of wider types than their first rows showed: what was read is to be read again."""


class Stream(ABC):
    """Rows in batches, all with the same columns of the same kinds. Re-iterable, unless `once` says otherwise."""

    @property
    def once(self) -> bool:
        """Whether the rows can be read a single time."""
        return False

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]: ...

    @property
    @abstractmethod
    def kinds(self) -> tuple[Kind, ...]: ...

    @property
    def title(self) -> str:
        """What messages call it."""
        return "the stream"

    @abstractmethod
    def frames(self) -> Iterator[TableFrame]:
        """Batch by batch, in order; the next one is read while one is in use."""

    def typed(self, types: Mapping[str, Cells]) -> Stream:
        """The same rows, cells of text read as these types; other streams have types of their own."""
        return self

    def as_written(self, names: Collection[str]) -> Stream:
        """The same rows; text of these columns, such as classes, is never read as dates or numbers."""
        return self

    @property
    def notations(self) -> tuple[Notation | None, ...]:
        """How columns of text are written that are read as dates or numbers; () is none."""
        return ()

    def chosen(self, names: Collection[str]) -> Stream:
        """The same rows without columns other than these, where leaving them out saves reading them."""
        return self

    def knowing(self, names: Collection[str]) -> Stream:
        """The same rows, looked at for these columns if they are not known of yet: keys of JSON may come late."""
        return self

    def place(self, row: int) -> str | None:
        """Where a row of the last pass was read, if more is known than its number."""
        return None

    @contextmanager
    def located(self) -> Iterator[None]:
        """Errors about a row say where it was read."""
        try:
            yield
        except RowError as error:
            place = self.place(error.row)
            if place is None:
                raise
            raise error.at(place) from None

    @property
    def empty(self) -> TableFrame:
        """No rows, of the same columns."""
        nothing = pa.table([pa.array([], pa.null()) for _ in self.names], names=list(self.names))
        return TableFrame(nothing, self.names, self.kinds, self.notations)


@dataclass(frozen=True)
class ArrowStream(Stream):
    """Whatever exports the Arrow C stream, or makes a reader: duckdb's relations, pyarrow's datasets, …"""

    source: Any
    schema: Any
    opened: list[Any] = field(default_factory=list, repr=False, compare=False)  # a reader for the first pass, or none
    asked: Mapping[str, Cells] = field(default_factory=dict, repr=False)  # as what text is read

    @classmethod
    def of(cls, source: Any) -> ArrowStream:
        schema = getattr(source, "dataset_schema" if hasattr(source, "dataset_schema") else "schema", None)
        if isinstance(schema, pa.Schema):
            return cls(source, schema)
        reader = _reader(source)  # to open one may be to run a query: it is kept
        return cls(source, reader.schema, [reader])

    @property
    def once(self) -> bool:
        return isinstance(self.source, pa.RecordBatchReader)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.schema.names)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        kinds = [kind_of(field.name, field.type) for field in self.schema]
        return tuple(KIND[self.asked[name]] if j in self._written else kinds[j] for j, name in enumerate(self.names))

    def typed(self, types: Mapping[str, Cells]) -> Stream:
        return replace(self, asked={**self.asked, **types})

    @property
    def _written(self) -> list[int]:
        """Columns of text that are read as dates or numbers."""
        text = [j for j, field in enumerate(self.schema) if cells_of_type(field.type) == "text"]
        return [j for j in text if self.asked.get(self.names[j]) in STYLES]

    def frames(self) -> Iterator[TableFrame]:
        kinds, rows, written = self.kinds, 0, self._written
        try:
            for batch in ahead(self.opened.pop() if self.opened else _reader(self.source)):
                rows += batch.num_rows
                table = pa.Table.from_batches([batch])
                for j in written:
                    style: Any = self.asked[self.names[j]]
                    values = written_as(pa.chunked_array([plain(table.column(j))]), style, strict=False)
                    table = table.set_column(j, self.names[j], values)
                if batch.num_rows:
                    yield TableFrame(table, self.names, kinds)
        except pa.ArrowInvalid as error:
            raise DecibanError(f"{self.title} cannot be read: {str(error).partition(chr(10))[0]}") from error
        if not rows and self.once:
            raise DecibanError("the reader has no rows (left): a reader can be read once; make a new one for each pass")


def _reader(source: Any) -> Any:
    if hasattr(source, "__arrow_c_stream__"):  # first, since a column's name may be an attribute of a relation
        return pa.RecordBatchReader.from_stream(source)
    return (source.scanner() if hasattr(source, "scanner") else source).to_reader()


def table_of(stream: Stream) -> TableFrame:
    """All rows, in memory."""

    def read() -> TableFrame:
        tables = [frame.table for frame in stream.frames()]
        return replace(stream.empty, table=pa.concat_tables(_alike(tables))) if tables else stream.empty

    return settled(read)


def joined(frames: Sequence[TableFrame]) -> TableFrame:
    """The rows of frames with the same columns, one after the other."""
    return replace(frames[0], table=pa.concat_tables(_alike([frame.table for frame in frames])))


def _alike(tables: list[Any]) -> list[Any]:
    """The tables, with columns of types that hold the cells of all: files may be narrower than others."""
    schemas = list({str(table.schema): table.schema for table in tables}.values())
    if len(schemas) == 1:
        return tables
    fields = [(name, _common({schema.field(j).type for schema in schemas})) for j, name in enumerate(schemas[0].names)]
    return [table.cast(pa.schema(fields), safe=False) for table in tables]  # integers beyond 2⁵³ are rounded


def _common(kinds: set[Any]) -> Any:
    if len(kinds) == 1:
        return kinds.pop()
    plain = {kind.value_type if pa.types.is_dictionary(kind) else kind for kind in kinds} - {pa.null()}
    if len(plain) == 1:
        return plain.pop()
    return pa.large_string() if any(kind_of("", kind) == "category" for kind in plain) else pa.float64()


def settled(work: Callable[[], T]) -> T:
    """Does the work, again if the columns that it reads turn out to be of wider types than they seemed."""
    for _ in range(2):
        try:
            return work()
        except TypesChanged:
            continue
    return work()
