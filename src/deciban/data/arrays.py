"""Frames over numpy arrays and scipy's sparse rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.data.batch import MISSING, UNSEEN, Coded, ColumnRef, Kind, Texts, positions
from deciban.errors import DecibanError
from deciban.lazy import lazy
from deciban.types import Levels, Names, level_of

sp = lazy("scipy.sparse")
futures = lazy("concurrent.futures")

MANY_CELLS = 1 << 20  # from here on two threads take rows
MAX_RANGE = 1 << 16  # integers within a range of this size are coded by a table, others by sorting


@dataclass(frozen=True)
class MatrixFrame:
    """A numeric or boolean matrix, never copied as a whole."""

    x: NDArray[Any]

    @property
    def names(self) -> Names:
        return range(self.x.shape[1])

    @cached_property  # asked for column by column
    def kinds(self) -> tuple[Kind, ...]:
        kind: Kind = "boolean" if self.x.dtype == np.bool_ else "number"
        return (kind,) * int(self.x.shape[1])

    @property
    def rows(self) -> int:
        return int(self.x.shape[0])

    @property
    def in_place(self) -> bool:
        """Whether numbers() is a view."""
        return as_floats(self.x[:0]).dtype == self.x.dtype

    def slice(self, start: int, stop: int) -> MatrixFrame:
        return MatrixFrame(self.x[start:stop])

    def take(self, rows: NDArray[np.intp]) -> MatrixFrame:
        return MatrixFrame(take_rows(self.x, rows))

    def _columns(self, columns: Sequence[ColumnRef]) -> NDArray[Any]:
        at = positions(columns)
        if at and at == list(range(at[0], at[0] + len(at))):
            return self.x[:, at[0] : at[0] + len(at)]
        return self.x[:, at]

    def numbers(self, columns: Sequence[ColumnRef]) -> NDArray[Any]:
        return as_floats(self._columns(columns))

    def counts(self, columns: Sequence[ColumnRef]) -> NDArray[Any]:
        return self.numbers(columns)

    def coded(self, columns: Sequence[ColumnRef]) -> Coded:
        x = self._columns(columns)
        integers = as_signed(x)
        if integers is not None and len(x) and (coded := coded_integers(integers, MAX_RANGE)) is not None:
            return Coded(coded[0], tuple(map(tuple, coded[1])))
        codes, levels = np.empty(x.shape, np.int32), list[Levels]()
        for j, column in enumerate((x if integers is None else integers).T):
            codes[:, j], values = _coded_column(column)
            levels.append(values)
        return Coded(codes, tuple(levels)).without_infinite()

    def codes(self, columns: Sequence[ColumnRef], levels: tuple[Levels, ...]) -> NDArray[np.int32]:
        integers = as_signed(self._columns(columns))
        if integers is not None and (tables := _lookup_tables(levels)) is not None:
            return _kernels.encode_integers(integers, *tables, UNSEEN)
        return self.coded(columns).recode(levels)

    def texts(self, columns: Sequence[ColumnRef]) -> Texts:
        if not np.isnan(self.numbers(columns)).all():
            raise no_text(columns)
        return Texts((), np.full((self.rows, len(columns), 3), -1, np.int64))

    def cell(self, row: int, column: ColumnRef) -> object:
        return self._columns([column])[row, 0].item()

    def cells(self, column: int) -> list[Any]:
        return [None if cell != cell else cell for cell in self.x[:, column].tolist()]


@dataclass(frozen=True)
class SparseFrame:
    """Compressed sparse rows: a cell that is not stored is 0."""

    x: Any  # scipy.sparse.csr_array of float64

    @property
    def names(self) -> Names:
        return range(self.x.shape[1])

    @cached_property
    def kinds(self) -> tuple[Kind, ...]:
        return tuple("number" for _ in self.names)

    @property
    def rows(self) -> int:
        return int(self.x.shape[0])

    def slice(self, start: int, stop: int) -> SparseFrame:
        if start == 0 and stop >= self.rows:
            return self
        return SparseFrame(self.x[start:stop])

    def take(self, rows: NDArray[np.intp]) -> SparseFrame:
        return SparseFrame(self.x[rows])

    def numbers(self, columns: Sequence[ColumnRef]) -> NDArray[Any]:
        return np.asarray(self.counts(columns).toarray())

    def counts(self, columns: Sequence[ColumnRef]) -> Any:
        if list(columns) == list(range(self.x.shape[1])):
            return self.x
        return sp.csr_array(self.x[:, positions(columns)])

    def coded(self, columns: Sequence[ColumnRef]) -> Coded:
        return MatrixFrame(self.numbers(columns)).coded(range(len(columns)))

    def codes(self, columns: Sequence[ColumnRef], levels: tuple[Levels, ...]) -> NDArray[np.int32]:
        return MatrixFrame(self.numbers(columns)).codes(range(len(columns)), levels)

    def texts(self, columns: Sequence[ColumnRef]) -> Texts:
        raise no_text(columns)

    def cell(self, row: int, column: ColumnRef) -> object:
        return float(self.x[row, positions([column])[0]])

    def cells(self, column: int) -> list[Any]:
        return MatrixFrame(self.numbers([column])).cells(0)


def no_text(columns: Sequence[ColumnRef]) -> DecibanError:
    return DecibanError(f"column {columns[0]} holds numbers, but its family, Text, needs text")


def sparse_frame(x: Any) -> SparseFrame:
    return SparseFrame(sp.csr_array(x).astype(np.float64, copy=False))


def take_rows(x: NDArray[Any], rows: NDArray[np.intp]) -> NDArray[Any]:
    """x[rows]. Two threads take many rows, which is at least twice as fast: np.take releases the GIL."""
    if len(rows) * x.shape[1] < MANY_CELLS or x.dtype.hasobject:
        return np.take(x, rows, axis=0)
    out = np.empty((len(rows), x.shape[1]), x.dtype)
    half = len(rows) // 2
    with futures.ThreadPoolExecutor(1) as pool:
        other = pool.submit(np.take, x, rows[:half], 0, out[:half], "clip")
        np.take(x, rows[half:], 0, out[half:], "clip")
        other.result()
    return out


def as_floats(x: NDArray[Any]) -> NDArray[Any]:
    """float32 and float64 as they are, anything else as float64."""
    if x.dtype in (np.float64, np.float32) and x.dtype.isnative:
        return x
    return x.astype(np.float64)


def as_signed(x: NDArray[Any]) -> NDArray[Any] | None:
    """Integers and booleans in a signed type, or uint8, that the kernels read; None for other numbers."""
    if x.dtype == np.bool_:
        return x.view(np.uint8)
    if x.dtype.kind not in "iu" or (x.dtype.kind == "u" and x.dtype.itemsize == 8 and len(x) and x.max() >= 1 << 63):
        return None
    kernel_types = (np.int64, np.int32, np.int16, np.int8, np.uint8)
    return x if x.dtype in kernel_types and x.dtype.isnative else x.astype(np.int64)


def coded_integers(x: NDArray[Any], widest: int) -> tuple[NDArray[np.int32], list[range]] | None:
    """Integers as distances from the smallest of their column, and the range of each column; None if one is wider."""
    low, high = _kernels.integer_range(x)
    if (high.astype(object) - low.astype(object) >= widest).any():
        return None
    sizes = high - low + 1
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    table = np.concatenate([np.arange(size, dtype=np.int32) for size in sizes])
    ranges = [range(a, b + 1) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
    return _kernels.encode_integers(x, low, ends, table, UNSEEN), ranges


def _lookup_tables(levels: tuple[Levels, ...]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]] | None:
    """Tables from integer to code; None if a level is not an integer, or the range of a column is too wide."""
    low, tables = [], []
    for column in levels:
        integers = [int(level) for level in column if isinstance(level, int)]
        first, last = (min(integers), max(integers)) if integers else (0, -1)
        if len(integers) < len(column) or last - first >= MAX_RANGE:
            return None
        table = np.full(last - first + 1, UNSEEN, dtype=np.int32)
        table[np.array(integers, np.int64) - first] = np.arange(len(integers))
        low.append(first)
        tables.append(table)
    ends = np.cumsum([0, *map(len, tables)], dtype=np.int64)
    return np.array(low, dtype=np.int64), ends, np.concatenate(tables)


def _coded_column(x: NDArray[Any]) -> tuple[NDArray[np.int32], Levels]:
    missing = np.isnan(x) if x.dtype.kind == "f" else np.zeros(len(x), dtype=bool)
    values, places = np.unique(x[~missing], return_inverse=True)
    codes = np.full(len(x), MISSING, dtype=np.int32)
    codes[~missing] = places
    return codes, tuple(level_of(v) for v in values)
