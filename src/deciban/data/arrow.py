"""Frames over tables: pandas, polars, pyarrow, duckdb, and all others that export the Arrow C stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban.data.arrow_buffers import NotUtf8, column_names, require_layout
from deciban.data.batch import MISSING, Coded, ColumnRef, DerivedColumn, Kind, Notation, Texts
from deciban.data.cell_types import KIND_OF, cell_type_of
from deciban.data.columns import CONVERT, arrow_column, column_name, unsupported
from deciban.data.dataframes import is_pandas, pandas_table, without_wide_integers
from deciban.data.schema import no_column, require_unique
from deciban.data.temporal import calendar, elapsed, format_date, format_time, is_temporal
from deciban.errors import DecibanError
from deciban.lazy import lazy
from deciban.types import Level, Levels, Names, level_of

pa = lazy("pyarrow")
pc = lazy("pyarrow.compute")


@dataclass(frozen=True)
class TableFrame:
    """A frame over an Arrow table; names are those of the table that a user passed."""

    table: Any  # pyarrow.Table
    names: Names
    kinds: tuple[Kind, ...]
    notations: tuple[Notation | None, ...] = ()  # of columns of text that were parsed; () for none

    @property
    def rows(self) -> int:
        return int(self.table.num_rows)

    def slice(self, start: int, stop: int) -> TableFrame:
        return replace(self, table=self.table.slice(start, stop - start))

    def take(self, rows: NDArray[np.intp]) -> TableFrame:
        indices = pa.array(rows)
        columns = [_compact(self.array(j).take(indices)) for j in range(len(self.names))]
        return replace(self, table=pa.table(columns, names=self.table.column_names))

    def select(self, columns: Sequence[int]) -> TableFrame:
        """Some of the columns, in this order."""
        if list(columns) == list(range(len(self.names))):
            return self
        notations = tuple(self.notations[j] for j in columns) if self.notations else self.notations
        names, kinds = tuple(self.names[j] for j in columns), tuple(self.kinds[j] for j in columns)
        return TableFrame(self.table.select(list(columns)), names, kinds, notations)

    def drop(self, column: int) -> TableFrame:
        return self.select([j for j in range(len(self.names)) if j != column])

    def split(self, name: str, use: str) -> tuple[TableFrame, Any]:
        """The table without a column, and that column."""
        if name not in self.names:
            raise no_column(name, use, self.names)
        position = list(self.names).index(name)
        return self.drop(position), self.array(position)

    def array(self, column: int) -> Any:
        """One column as a single Arrow array: see `plain`."""
        return plain(self.table.column(column))

    def numbers(self, columns: Sequence[ColumnRef]) -> NDArray[Any]:
        out = np.empty((self.rows, len(columns)))
        for j, column in enumerate(columns):
            if isinstance(column, DerivedColumn):
                first, second = self.numbers(column.columns).T
                out[:, j] = second - first
                continue
            if self.kinds[column] == "category":
                raise DecibanError(
                    f"column {self.names[column]!r} holds text, but its family needs numbers: use Categorical"
                )
            out[:, j] = self._numbers(column)
        return out

    def _numbers(self, column: int) -> NDArray[Any]:
        try:
            return numbers_of(self.array(column))
        except (pa.ArrowException, UnicodeDecodeError) as error:  # a time zone that does not exist
            raise DecibanError(f"column {self.names[column]!r} cannot be read: {error}: {CONVERT}") from None

    def counts(self, columns: Sequence[ColumnRef]) -> NDArray[Any]:
        return self.numbers(columns)

    def coded(self, columns: Sequence[ColumnRef]) -> Coded:
        codes = np.empty((self.rows, len(columns)), dtype=np.int32, order="F")
        levels: list[Levels] = [()] * len(columns)
        for j, column in enumerate(columns):
            codes[:, j], levels[j] = self._coded(column)
        return Coded(codes, tuple(levels)).without_infinite()

    def _coded(self, column: ColumnRef) -> tuple[NDArray[np.int32], Levels]:
        """The codes and levels of a column, which are kept: several blocks read a column, each in its own way."""
        if (known := self._known_codes.get(column)) is None:
            known = self._known_codes[column] = self._encode(column)
        return known

    @cached_property
    def _known_codes(self) -> dict[ColumnRef, tuple[NDArray[np.int32], Levels]]:
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_known_codes"}

    def _encode(self, column: ColumnRef) -> tuple[NDArray[np.int32], Levels]:
        if isinstance(column, DerivedColumn):
            assert column.part != "gap"
            coded = calendar(self.numbers(column.columns)[:, 0], column.part)
            return coded.codes[:, 0], coded.levels[0]
        array = self.array(column)
        try:
            return encode(pa.array(self._numbers(column), from_pandas=True) if is_temporal(array.type) else array)
        except UnicodeDecodeError:
            raise NotUtf8(f"column {self.names[column]!r}") from None

    def codes(self, columns: Sequence[ColumnRef], levels: tuple[Levels, ...]) -> NDArray[np.int32]:
        return self.coded(columns).recode(levels)

    def texts(self, columns: Sequence[ColumnRef]) -> Texts:
        buffers: list[NDArray[np.uint8]] = []
        places = np.empty((self.rows, len(columns), 3), np.int64)
        for j, column in enumerate(columns):
            position, row = column.columns[0] if isinstance(column, DerivedColumn) else column, 0
            if self.kinds[position] not in ("category", "text", "empty"):
                words = "dates" if self.kinds[position] == "date" else "numbers"
                raise DecibanError(
                    f"column {self.names[position]!r} holds {words}, but its family, Text, needs text: convert it; in "
                    "files, read it as text (types={...: 'category'}, or --category)"
                )
            for chunk in self.table.column(position).chunks:
                data, place = text_of(chunk)
                places[row : row + len(chunk), j] = place + np.array([len(buffers), 0, 0])
                buffers += data
                row += len(chunk)
        return Texts(tuple(buffers), places)

    def cell(self, row: int, column: ColumnRef) -> object:
        if isinstance(column, DerivedColumn):
            if column.part == "gap":
                return self.slice(row, row + 1).numbers([column]).item()
            codes, levels = self.slice(row, row + 1)._coded(column)
            return levels[codes[0]] if codes[0] >= 0 else None
        if self.kinds[column] in ("date", "time"):
            value = float(self.slice(row, row + 1).numbers([column]).item())
            return None if np.isnan(value) else (format_date if self.kinds[column] == "date" else format_time)(value)
        return self.table.column(column)[row].as_py()

    def cells(self, column: int) -> list[Any]:
        return [None if cell != cell else cell for cell in self.table.column(column).to_pylist()]


def table_frame(x: Any) -> TableFrame:
    """A frame over any table; a pandas index is not a column."""
    if len(getattr(x, "shape", (0, 0))) != 2:
        raise DecibanError(f"X must be a table or a matrix; a {type(x).__name__} is one column: use X.to_frame()")
    if is_pandas(x):
        names = tuple(map(column_name, x.columns))
        require_unique(names)
        return _frame(pandas_table(x, names), names)
    try:
        table = _arrow_table(x)
    except UnicodeDecodeError:
        raise NotUtf8("the name of a column") from None
    return _frame(table, column_names(table.schema))


def _arrow_table(x: Any) -> Any:
    """Any table as one of pyarrow; its own ones not by the C interface, which does not tell the sizes of buffers."""
    if isinstance(x, pa.RecordBatch):
        return pa.Table.from_batches([x])
    if isinstance(x, pa.RecordBatchReader):
        return x.read_all()
    return x if isinstance(x, pa.Table) else pa.table(without_wide_integers(x))


def object_frame(x: NDArray[Any]) -> TableFrame:
    """A frame over an array of Python objects or strings: each column is typed by its cells."""
    temporal = x.dtype.kind in "Mm"  # as lists they would be integers
    arrays = [arrow_column(j, column if temporal else column.tolist()) for j, column in enumerate(x.T)]
    return _frame(pa.table(arrays, names=list(map(str, range(len(arrays))))), range(len(arrays)))


def frame_of_columns(columns: Mapping[Any, Any]) -> TableFrame:
    """A frame over columns by their names: lists, arrays or series of the same length."""
    for name, values in columns.items():
        if not hasattr(values, "__len__") or isinstance(values, (str, bytes)):
            raise DecibanError(f"column {name!r} is {values!r}, not a list of cells: pass a list or an array")
    sizes = {name: len(values) for name, values in columns.items()}
    longest = max(sizes, key=sizes.__getitem__, default=None)
    for name, size in sizes.items():
        if size != sizes[longest]:
            raise DecibanError(
                f"column {name!r} has {size} cells, and column {longest!r} has {sizes[longest]}: make them equally long"
            )
    names = tuple(map(column_name, columns))
    require_unique(names)
    arrays = [arrow_column(name, values) for name, values in zip(names, columns.values(), strict=True)]
    return _frame(pa.table(arrays, names=list(names)), names)


def _frame(table: Any, names: Names) -> TableFrame:
    table = require_layout(table)
    return TableFrame(table, names, tuple(kind_of(n, f.type) for n, f in zip(names, table.schema, strict=True)))


def kind_of(name: Level, dtype: Any) -> Kind:
    """The kind of a column with an Arrow type."""
    cell_type = cell_type_of(dtype)
    if cell_type == "other":
        raise unsupported(name, dtype)
    return KIND_OF[cell_type]


def numbers_of(array: Any) -> NDArray[Any]:
    """A column of numbers, booleans or dates (see `elapsed`) as doubles, NaN where a cell is missing."""
    if pa.types.is_null(array.type):
        return np.full(len(array), np.nan)
    if is_temporal(array.type):
        return elapsed(array)
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.int8())
    if not pa.types.is_float64(array.type):
        array = array.cast(pa.float64(), safe=False)  # integers beyond 2⁵³ are rounded, as numpy does
    if array.null_count:
        array = array.fill_null(np.nan)
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _compact(array: Any) -> Any:
    """Drops unused values from a dictionary that is far larger than its array."""
    if not pa.types.is_dictionary(array.type) or len(array.dictionary) <= 2 * len(array) + 16:
        return array
    return array.dictionary_decode().dictionary_encode().cast(array.type)


def text_of(array: Any) -> tuple[list[NDArray[np.uint8]], NDArray[np.int64]]:
    """The buffers of an Arrow array of text, and (n, 3) buffer, start and length of each cell; −1 where it is null."""
    n, dtype = len(array), array.type
    places = np.zeros((n, 3), np.int64)
    if pa.types.is_dictionary(dtype):
        buffers, of_values = text_of(array.dictionary)
        codes = numbers_of(array.indices)
        present = ~np.isnan(codes)
        places[present] = of_values[codes[present].astype(np.intp)]
        places[~present, 2] = -1
        return buffers, places
    if pa.types.is_null(dtype):
        places[:, 2] = -1
        return [], places
    if not (pa.types.is_string(dtype) or pa.types.is_large_string(dtype) or pa.types.is_string_view(dtype)):
        return text_of(array.cast(pa.large_string()))  # numbers that are categories
    data = [np.zeros(0, np.uint8) if b is None else np.frombuffer(b, np.uint8) for b in array.buffers()[1:]]
    if pa.types.is_string_view(dtype):  # 16 bytes each: length, then the text, or its beginning, buffer and start
        views = _numbers(data[0], np.int32)[: len(data[0]) // 16 * 4].reshape(-1, 4)[array.offset : array.offset + n]
        short = views[:, 0] <= 12
        inline = 16 * (array.offset + np.arange(n)) + 4
        places[:, 0] = np.where(short, 0, views[:, 2] + 1)
        places[:, 1] = np.where(short, inline, views[:, 3])
        places[:, 2] = views[:, 0]
    else:
        ends = _numbers(data.pop(0), np.int32 if pa.types.is_string(dtype) else np.int64)[array.offset :][: n + 1]
        places[:, 1], places[:, 2] = ends[:-1], np.diff(ends)
    if array.null_count:
        places[~np.asarray(array.is_valid()), 2] = -1
    return data, places


def _numbers(buffer: NDArray[np.uint8], kind: Any) -> NDArray[Any]:
    """The whole numbers of a buffer, which may end in a few bytes more."""
    size = np.dtype(kind).itemsize
    return buffer[: len(buffer) // size * size].view(kind)


def plain(array: Any) -> Any:
    """A column as one Arrow array, with large strings for string views, and doubles for decimals."""
    if pa.types.is_dictionary(array.type) and pa.types.is_string_view(array.type.value_type):
        array = _dictionary_of_text(array)
    if isinstance(array, pa.ChunkedArray):
        if pa.types.is_dictionary(array.type) and any(chunk.dictionary.null_count for chunk in array.chunks):
            array = array.cast(array.type.value_type)  # dictionaries that hold null cannot be combined
        array = pa.chunked_array([chunk for chunk in array.chunks if len(chunk)], type=array.type).combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], type=array.type)
    if pa.types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    if pa.types.is_decimal(array.type):
        array = array.cast(pa.float64())
    return array


def _dictionary_of_text(array: Any) -> Any:
    """A dictionary of string views as one of large strings."""
    if isinstance(array, pa.ChunkedArray):
        dtype = pa.dictionary(array.type.index_type, pa.large_string())
        return pa.chunked_array([_dictionary_of_text(chunk) for chunk in array.chunks], dtype)
    return pa.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(pa.large_string()))


def without_views(table: Any) -> Any:
    """An Arrow table without string views, for which Arrow lacks some functions."""
    for j, field in enumerate(table.schema):
        dtype = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if pa.types.is_string_view(dtype):
            table = table.set_column(j, field.name, plain(table.column(j)))
    return table


def encode(array: Any) -> tuple[NDArray[np.int32], Levels]:
    """An Arrow array as indices into its values."""
    dtype = array.type
    if pa.types.is_null(dtype):
        return np.full(len(array), MISSING, dtype=np.int32), ()
    if pa.types.is_float16(dtype):
        array = array.cast(pa.float32())  # pyarrow 19 has no is_nan for halves
    if pa.types.is_floating(dtype):
        array = pc.if_else(pc.is_nan(array), None, array)
    if not pa.types.is_dictionary(dtype):
        array = array.dictionary_encode()
    indices = array.indices.cast(pa.int32())
    if array.indices.null_count:
        indices = indices.fill_null(MISSING)
    codes = np.asarray(indices.to_numpy(zero_copy_only=False), dtype=np.int32)
    levels = [None if value is None else level_of(value) for value in array.dictionary.to_pylist()]
    unique = tuple(dict.fromkeys(level for level in levels if level is not None))
    if len(unique) == len(levels):
        return codes, unique
    code = {level: i for i, level in enumerate(unique)} | {None: MISSING}  # a dictionary may hold null, or duplicates
    return np.array([*(code[level] for level in levels), MISSING], dtype=np.int32)[codes], unique
