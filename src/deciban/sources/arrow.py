"""Frames over tables: pandas, polars, pyarrow, duckdb, and whatever else exports the Arrow C stream."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban.batch import MISSING, Coded, Kind, Texts
from deciban.errors import DecibanError, cell_error
from deciban.late import late
from deciban.schema import require_unique
from deciban.sources.arrays import recode, without_infinite
from deciban.sources.cells import KIND, cells_of_type
from deciban.types import Level, Levels, Names, level_of

pa = late("pyarrow")
pc = late("pyarrow.compute")


@dataclass(frozen=True)
class TableFrame:
    """An Arrow table; names are those of the table it came from."""

    table: Any  # pyarrow.Table
    names: Names
    kinds: tuple[Kind, ...]

    @property
    def rows(self) -> int:
        return int(self.table.num_rows)

    def slice(self, start: int, stop: int) -> TableFrame:
        return TableFrame(self.table.slice(start, stop - start), self.names, self.kinds)

    def take(self, rows: NDArray[np.intp]) -> TableFrame:
        chosen = pa.array(rows)
        columns = [compact(self.array(j).take(chosen)) for j in range(len(self.names))]
        return TableFrame(pa.table(columns, names=self.table.column_names), self.names, self.kinds)

    def drop(self, column: int) -> TableFrame:
        def without(items: Any) -> tuple[Any, ...]:
            return (*items[:column], *items[column + 1 :])

        return TableFrame(self.table.remove_column(column), without(self.names), without(self.kinds))

    def split(self, name: str, use: str) -> tuple[TableFrame, Any]:
        """The table without a column, and that column."""
        if name not in self.names:
            raise DecibanError(f"no column {name!r} to use as {use}; the table has {list(self.names)}")
        at = list(self.names).index(name)
        return self.drop(at), self.array(at)

    def array(self, column: int) -> Any:
        """One column as a single Arrow array, decoded to plain strings where they are views."""
        return plain(self.table.column(column))

    def numbers(self, columns: Sequence[int]) -> NDArray[Any]:
        out = np.empty((self.rows, len(columns)))
        for j, column in enumerate(columns):
            if self.kinds[column] == "category":
                raise DecibanError(
                    f"column {self.names[column]!r} holds text, but its family needs numbers: use Categorical"
                )
            out[:, j] = numbers_of(self.array(column))
        return out

    def counts(self, columns: Sequence[int]) -> NDArray[Any]:
        return self.numbers(columns)

    def coded(self, columns: Sequence[int]) -> Coded:
        codes = np.empty((self.rows, len(columns)), dtype=np.int32, order="F")
        levels = []
        for j, column in enumerate(columns):
            codes[:, j], found = encode(self.array(column))
            levels.append(found)
        return without_infinite(Coded(codes, tuple(levels)))

    def codes(self, columns: Sequence[int], levels: tuple[Levels, ...]) -> NDArray[np.int32]:
        return recode(self.coded(columns), levels)

    def texts(self, columns: Sequence[int]) -> Texts:
        found = [self._texts(column) for column in columns]
        sizes = np.cumsum([0, *(len(buffers) for buffers, _ in found)])
        moved = [place + np.array([first, 0, 0]) for (_, place), first in zip(found, sizes[:-1], strict=True)]
        places = np.stack(moved, axis=1)
        return Texts(tuple(buffer for buffers, _ in found for buffer in buffers), np.ascontiguousarray(places))

    def _texts(self, column: int) -> tuple[list[NDArray[np.uint8]], NDArray[np.int64]]:
        """The buffers that documents of a column lie in, and (n, 3) their places."""
        if self.kinds[column] not in ("category", "text", "empty"):
            raise DecibanError(
                f"column {self.names[column]!r} holds numbers, but its family, Text, needs text: convert it; of files, "
                "read it as text (types={...: 'text'}, or --category)"
            )
        buffers, places = list[NDArray[np.uint8]](), [np.empty((0, 3), np.int64)]
        for chunk in self.table.column(column).chunks:
            data, place = text_of(chunk)
            places.append(place + np.array([len(buffers), 0, 0]))
            buffers += data
        return buffers, np.concatenate(places)

    def cell(self, row: int, column: int) -> object:
        return self.table.column(column)[row].as_py()


def table_frame(x: Any) -> TableFrame:
    """A frame over any table; a pandas index is not a column."""
    if len(getattr(x, "shape", (0, 0))) != 2:
        raise DecibanError(
            f"X must be a table or a matrix; a {type(x).__name__} is one column of one: use X.to_frame()"
        )
    if _is_pandas(x):
        names = tuple(_name(name) for name in x.columns)
        require_unique(names)
        try:
            table = pa.Table.from_pandas(x, preserve_index=False)
        except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError):
            raise _unreadable({name: x.iloc[:, j] for j, name in enumerate(names)}) from None
    else:
        table = pa.table(x)
        names = tuple(table.column_names)
    kinds = tuple(kind_of(name, field.type) for name, field in zip(names, table.schema, strict=True))
    return TableFrame(table, names, kinds)


def object_frame(x: NDArray[Any]) -> TableFrame:
    """A frame over an array of Python objects or strings: each column is typed by what it holds."""
    arrays = []
    for j in range(x.shape[1]):
        try:
            arrays.append(pa.array(x[:, j].tolist(), from_pandas=True))
        except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError):
            raise mixed_types(j, x[:, j]) from None
    table = pa.table(arrays, names=[str(j) for j in range(x.shape[1])])
    names = range(x.shape[1])
    return TableFrame(table, names, tuple(kind_of(n, f.type) for n, f in zip(names, table.schema, strict=True)))


def _unreadable(columns: dict[Level, Any]) -> DecibanError:
    """What to say of a table that Arrow cannot take: the first column that it cannot, by itself."""
    for name, column in columns.items():
        try:
            pa.array(column, from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError):
            return mixed_types(name, column)
    return DecibanError(f"the table cannot be read: {list(columns)}")


def mixed_types(name: Level, values: Iterable[Any]) -> DecibanError:
    """An error about the first cell that Arrow cannot hold, or whose type is not that of the cells before it."""
    before = None
    for row, value in enumerate(values):
        if value is None or value != value:
            continue
        if isinstance(value, str) and not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
            return cell_error(name, row, value, "holds half a character: decode it anew, with errors='replace'")
        kind = "text" if isinstance(value, str) else type(value).__name__
        kind = "a number" if isinstance(value, (bool, int, float, np.number)) else kind
        if kind != (before := before or kind):
            return cell_error(name, row, value, f"is not {before}, as the cells before it: convert it to one type")
    return DecibanError(f"column {name!r} cannot be read: convert it to numbers or text")


def _is_pandas(x: Any) -> bool:
    return any(base.__module__.partition(".")[0] == "pandas" for base in type(x).__mro__)


def _name(name: Any) -> Level:
    return name if isinstance(name, str) else str(name)


def kind_of(name: Level, kind: Any) -> Kind:
    """What a column of an Arrow type is taken for."""
    cells = cells_of_type(kind)
    if cells == "other":
        raise DecibanError(f"column {name!r} is of type {kind}: convert it to numbers or text, or drop it")
    return KIND[cells]


def numbers_of(array: Any) -> NDArray[Any]:
    """A column of numbers or booleans as doubles, NaN where a cell is missing."""
    if pa.types.is_null(array.type):
        return np.full(len(array), np.nan)
    if not pa.types.is_float64(array.type):
        array = (
            array.cast(pa.float64(), safe=False)  # integers beyond 2⁵³ are rounded, as numpy does
            if not pa.types.is_boolean(array.type)
            else array.cast(pa.int8()).cast(pa.float64())
        )
    if array.null_count:
        array = array.fill_null(np.nan)
    return np.asarray(array.to_numpy(zero_copy_only=False))


def compact(array: Any) -> Any:
    """The same; of a dictionary that holds far more than the rows do, no more is kept."""
    if not pa.types.is_dictionary(array.type) or len(array.dictionary) <= 2 * len(array) + 16:
        return array
    return array.dictionary_decode().dictionary_encode().cast(array.type)


def text_of(array: Any) -> tuple[list[NDArray[np.uint8]], NDArray[np.int64]]:
    """The buffers of an Arrow array of text, and (n, 3) buffer, start and length of each cell; −1 where it is null."""
    n, kind = len(array), array.type
    places = np.zeros((n, 3), np.int64)
    if pa.types.is_dictionary(kind):
        buffers, of_values = text_of(array.dictionary)
        codes = numbers_of(array.indices)
        there = ~np.isnan(codes)
        places[there] = of_values[codes[there].astype(np.intp)]
        places[~there, 2] = -1
        return buffers, places
    if pa.types.is_null(kind):
        places[:, 2] = -1
        return [], places
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        return text_of(array.cast(pa.large_string()))  # numbers that are categories
    held = [None if b is None else np.frombuffer(b, np.uint8) for b in array.buffers()]
    data = [np.zeros(0, np.uint8) if b is None else b for b in held[1:]]
    if pa.types.is_string_view(kind):  # 16 bytes each: length, then the text, or its beginning, buffer and start
        views = data[0].view(np.int32).reshape(-1, 4)[array.offset : array.offset + n]
        short = views[:, 0] <= 12
        here = 16 * (array.offset + np.arange(n)) + 4
        places[:, 0] = np.where(short, 0, views[:, 2] + 1)
        places[:, 1] = np.where(short, here, views[:, 3])
        places[:, 2] = views[:, 0]
        buffers = data
    else:
        ends = data[0].view(np.int32 if pa.types.is_string(kind) else np.int64)[array.offset : array.offset + n + 1]
        places[:, 1], places[:, 2] = ends[:-1], np.diff(ends)
        buffers = data[1:]
    if array.null_count:
        places[~np.asarray(array.is_valid()), 2] = -1
    return buffers, places


def plain(array: Any) -> Any:
    """A column as one Arrow array, strings that are views decoded."""
    if isinstance(array, pa.ChunkedArray):
        if pa.types.is_dictionary(array.type) and any(chunk.dictionary.null_count for chunk in array.chunks):
            array = array.cast(array.type.value_type)  # dictionaries that hold null cannot be made one
        array = pa.chunked_array([chunk for chunk in array.chunks if len(chunk)], type=array.type).combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], type=array.type)
    if pa.types.is_dictionary(array.type) and pa.types.is_string_view(array.type.value_type):
        array = pa.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(pa.large_string()))
    if pa.types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    return array


def encode(array: Any) -> tuple[NDArray[np.int32], Levels]:
    kind = array.type
    if pa.types.is_null(kind):
        return np.full(len(array), MISSING, dtype=np.int32), ()
    if pa.types.is_floating(kind):
        array = pc.if_else(pc.is_nan(array), None, array)
    if not pa.types.is_dictionary(kind):
        array = array.dictionary_encode()
    indices = array.indices.cast(pa.int32())
    if array.indices.null_count:
        indices = indices.fill_null(MISSING)
    codes = np.asarray(indices.to_numpy(zero_copy_only=False), dtype=np.int32)
    return _distinct(codes, [None if v is None else level_of(v) for v in array.dictionary.to_pylist()])


def _distinct(codes: NDArray[np.int32], levels: list[Level | None]) -> tuple[NDArray[np.int32], Levels]:
    """A dictionary may hold null, or one value twice: merge them."""
    unique = list(dict.fromkeys(level for level in levels if level is not None))
    if len(unique) == len(levels):
        return codes, tuple(unique)
    place = {level: i for i, level in enumerate(unique)}
    table = np.array([*(MISSING if v is None else place[v] for v in levels), MISSING], dtype=np.int32)
    return table[codes], tuple(unique)
