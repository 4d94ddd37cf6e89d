"""Streams: tables that are read batch by batch, and may be larger than memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from deciban.data.arrow import TableFrame, kind_of, plain
from deciban.data.arrow_buffers import column_names, require_layout
from deciban.data.batch import Kind, Notation
from deciban.data.cell_types import KIND_OF, STYLES, CellType, cell_type_of
from deciban.data.notation import parse_column
from deciban.data.prefetch import prefetch
from deciban.errors import DecibanError, RowError
from deciban.lazy import lazy

pa = lazy("pyarrow")

T = TypeVar("T")


class TypesChanged(DecibanError):
    """Columns have wider types than their first rows: read the stream again."""


class Stream(ABC):
    """Rows in batches with the same columns of the same kinds. Re-iterable, unless `single_pass`."""

    @property
    def single_pass(self) -> bool:
        """Whether the rows can be read only once."""
        return False

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""

    @property
    @abstractmethod
    def kinds(self) -> tuple[Kind, ...]:
        """What models take each column for."""

    @property
    def title(self) -> str:
        """Its name in messages."""
        return "the stream"

    @abstractmethod
    def frames(self) -> Iterator[TableFrame]:
        """The batches in order; the next one is read while one is in use."""

    def with_types(self, types: Mapping[str, CellType]) -> Stream:
        """The same rows with text read as these types; streams with a schema keep their types."""
        return self

    def keep_text(self, names: Collection[str]) -> Stream:
        """The same rows; text of these columns, such as labels, is not parsed as dates or numbers."""
        return self

    @property
    def notations(self) -> tuple[Notation | None, ...]:
        """One for each column, None unless it is text that is parsed as dates or numbers; () if all are None."""
        return ()

    def project(self, names: Collection[str]) -> Stream:
        """The same rows, without columns that need not be read."""
        return self

    def resolve_columns(self, names: Collection[str]) -> Stream:
        """The same stream; reads all rows first if a column is unknown, since later JSON objects may have it."""
        return self

    def locate(self, row: int) -> str | None:
        """Where a row of the last pass was read; None if only its number is known."""
        return None

    @contextmanager
    def error_context(self) -> Iterator[None]:
        """A context in which errors about a row name where it was read.

        Returns
        -------
        context manager
            For a `with` statement around a pass.
        """
        try:
            yield
        except RowError as error:
            location = self.locate(error.row)
            if location is None:
                raise
            raise error.at(location) from None

    @property
    def empty(self) -> TableFrame:
        """The columns without rows."""
        table = pa.table([pa.array([], pa.null()) for _ in self.names], names=list(self.names))
        return TableFrame(table, self.names, self.kinds, self.notations)


@dataclass(frozen=True)
class ArrowStream(Stream):
    """Anything that exports the Arrow C stream, or makes a reader: duckdb relations, pyarrow datasets, …"""

    source: Any
    schema: Any
    opened: list[Any] = field(default_factory=list, repr=False, compare=False)  # a reader for the first pass, or none
    given_types: Mapping[str, CellType] = field(default_factory=dict, repr=False)  # types of columns of text

    @classmethod
    def of(cls, source: Any) -> ArrowStream:
        schema = getattr(source, "dataset_schema" if hasattr(source, "dataset_schema") else "schema", None)
        opened = []
        if not isinstance(schema, pa.Schema):
            opened = [_reader(source)]  # kept, since opening it may run a query
            schema = opened[0].schema
        column_names(schema)  # raises if a name is not UTF-8
        return cls(source, schema, opened)

    @property
    def single_pass(self) -> bool:
        return isinstance(self.source, pa.RecordBatchReader)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.schema.names)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        parsed = {j: KIND_OF[self.given_types[self.names[j]]] for j in self._parsed_columns}
        return tuple(parsed.get(j) or kind_of(field.name, field.type) for j, field in enumerate(self.schema))

    def with_types(self, types: Mapping[str, CellType]) -> Stream:
        return replace(self, given_types={**self.given_types, **types})

    @property
    def _parsed_columns(self) -> list[int]:
        """Positions of columns of text that are parsed."""
        text = [j for j, field in enumerate(self.schema) if cell_type_of(field.type) == "text"]
        return [j for j in text if self.given_types.get(self.names[j]) in STYLES]

    def frames(self) -> Iterator[TableFrame]:
        kinds, rows, parsed = self.kinds, 0, self._parsed_columns
        try:
            for table in prefetch(self._tables()):
                rows += table.num_rows
                for j in parsed:
                    style: Any = self.given_types[self.names[j]]
                    values = parse_column(pa.chunked_array([plain(table.column(j))]), style)
                    table = table.set_column(j, self.names[j], values)
                if table.num_rows:
                    yield TableFrame(table, self.names, kinds)
        except pa.ArrowInvalid as error:
            raise DecibanError(f"{self.title} cannot be read: {str(error).partition(chr(10))[0]}") from error
        if not rows and self.single_pass:
            raise DecibanError("the reader has no rows left: it can be read once, so make a new one for each pass")

    def _tables(self) -> Iterator[Any]:
        batches = iter(self.opened.pop() if self.opened else _reader(self.source))
        while (batch := self._next(batches)) is not None:
            yield require_layout(pa.Table.from_batches([batch]))

    def _next(self, batches: Iterator[Any]) -> Any:
        try:
            return next(batches, None)
        except Exception as error:  # of any library, or of a generator of the user
            raise DecibanError(f"{self.title} cannot be read: {str(error).partition(chr(10))[0]}") from error


def _reader(source: Any) -> Any:
    if isinstance(source, pa.RecordBatchReader):  # not by the C interface, which does not tell the sizes of buffers
        return source
    if hasattr(source, "__arrow_c_stream__"):  # first, since a column's name may be an attribute of a relation
        return pa.RecordBatchReader.from_stream(source)
    return (source.scanner() if hasattr(source, "scanner") else source).to_reader()


def read_table(stream: Stream) -> TableFrame:
    """All rows in memory."""
    frames = retry_with_wider_types(lambda: [*stream.frames()])
    return replace(stream.empty, table=concat_frames(frames).table) if frames else stream.empty


def concat_frames(frames: Sequence[TableFrame]) -> TableFrame:
    """The rows of frames with the same columns, cast to types that hold all cells: files may have narrower types."""
    tables = [frame.table for frame in frames]
    schemas = list({str(table.schema): table.schema for table in tables}.values())
    if len(schemas) > 1:
        types = ({schema.field(j).type for schema in schemas} for j in range(len(schemas[0])))
        schema = pa.schema(zip(schemas[0].names, map(_common_arrow_type, types), strict=True))
        tables = [table.cast(schema, safe=False) for table in tables]  # integers beyond 2⁵³ are rounded
    return replace(frames[0], table=pa.concat_tables(tables))


def _common_arrow_type(types: set[Any]) -> Any:
    if len(types) == 1:
        return types.pop()
    value_types = {dtype.value_type if pa.types.is_dictionary(dtype) else dtype for dtype in types} - {pa.null()}
    if len(value_types) == 1:
        return value_types.pop()
    return pa.large_string() if any(kind_of("", dtype) == "category" for dtype in value_types) else pa.float64()


def retry_with_wider_types(work: Callable[[], T]) -> T:
    """The result of work(), which runs again if columns turn out to have wider types than their first rows."""
    for _ in range(2):
        try:
            return work()
        except TypesChanged:
            continue
    return work()
