"""Frames over numpy arrays and scipy's sparse rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.data.batch import MISSING, UNSEEN, Coded, ColumnRef, Kind, Texts, positions
from deciban.errors import BadCell, DecibanError
from deciban.lazy import lazy
from deciban.types import Levels, Names, level_of

sp = lazy("scipy.sparse")
futures = lazy("concurrent.futures")

MANY_CELLS = 1 << 20  # to be taken by two threads

WIDEST_RANGE = 1 << 16  # integers spread over no more than this are coded by a table, others by sorting


@dataclass(frozen=True)
class MatrixFrame:
    """A numeric or boolean matrix, never copied as a whole."""

    x: NDArray[Any]

    @property
    def names(self) -> Names:
        return range(self.x.shape[1])

    @property
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
        return MatrixFrame(taken(self.x, rows))

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
        if x.dtype == np.bool_:
            x = x.view(np.uint8)
        if x.dtype.kind in "iu" and len(x) and fits_signed(x):
            coded = _coded_integers(x)
            if coded is not None:
                return coded
        found = [_coded_column(x[:, j]) for j in range(x.shape[1])]
        codes = np.stack([c for c, _ in found], axis=1) if found else np.zeros(x.shape, np.int32)
        return without_infinite(Coded(codes, tuple(levels for _, levels in found)))

    def codes(self, columns: Sequence[ColumnRef], levels: tuple[Levels, ...]) -> NDArray[np.int32]:
        x = self._columns(columns)
        if x.dtype == np.bool_:
            x = x.view(np.uint8)
        if x.dtype.kind in "iu" and fits_signed(x):
            table = _lookup(levels)
            if table is not None:
                low, ends, lut = table
                return _kernels.encode_integers(signed(x), low, ends, lut, UNSEEN)
        found = self.coded(columns)
        return recode(found, levels)

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
    """Compressed sparse rows: what is not stored is 0."""

    x: Any  # scipy.sparse.csr_array of float64

    @property
    def names(self) -> Names:
        return range(self.x.shape[1])

    @property
    def kinds(self) -> tuple[Kind, ...]:
        kind: Kind = "number"
        return (kind,) * int(self.x.shape[1])

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
    rows = sp.csr_array(x)
    if rows.dtype != np.float64:
        rows = rows.astype(np.float64)
    return SparseFrame(rows)


def taken(x: NDArray[Any], rows: NDArray[np.intp]) -> NDArray[Any]:
    """x[rows]; many rows by two threads (np.take does not hold the lock), which is twice as fast or more."""
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


def recode(found: Coded, levels: tuple[Levels, ...]) -> NDArray[np.int32]:
    """Codes into other lists of values."""
    codes = np.empty(found.codes.shape, dtype=np.int32)
    for j, (mine, wanted) in enumerate(zip(found.levels, levels, strict=True)):
        place = {level: i for i, level in enumerate(wanted)}
        # two more entries: what the codes −2 and −1 index from the end
        table = np.array([*(place.get(level, UNSEEN) for level in mine), UNSEEN, MISSING], dtype=np.int32)
        codes[:, j] = table[found.codes[:, j]]
    return codes


def without_infinite(coded: Coded) -> Coded:
    """The same; an infinite number is no category."""
    for j, levels in enumerate(coded.levels):
        for place, level in enumerate(levels):
            if isinstance(level, float) and np.isinf(level):
                row = int(np.argmax(coded.codes[:, j] == place))
                raise BadCell(row, j, "is infinite: use NaN for a missing cell, or remove the row")
    return coded


def signed(x: NDArray[Any]) -> NDArray[Any]:
    """Integers of a type that the kernels read."""
    known = (np.int64, np.int32, np.int16, np.int8, np.uint8)
    return x if x.dtype in known and x.dtype.isnative else x.astype(np.int64)


def fits_signed(x: NDArray[Any]) -> bool:
    """Whether int64 holds every number."""
    return x.dtype.kind in "ib" or x.dtype.itemsize < 8 or not len(x) or bool(x.max() < 1 << 63)


def _coded_integers(x: NDArray[Any]) -> Coded | None:
    """Codes are distances from the column's smallest; None where a column is too spread out for that."""
    x = signed(x)
    low, high = _kernels.integer_range(x)
    if (high.astype(object) - low.astype(object) >= WIDEST_RANGE).any():
        return None
    sizes = high - low + 1
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    lut = np.concatenate([np.arange(size, dtype=np.int32) for size in sizes])
    codes = _kernels.encode_integers(x, low, ends, lut, UNSEEN)
    return Coded(codes, tuple(tuple(range(a, b + 1)) for a, b in zip(low.tolist(), high.tolist(), strict=True)))


def _lookup(
    levels: tuple[Levels, ...],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]] | None:
    """Tables from integer to code, or None where the values are not integers or too spread out."""
    low, tables = [], []
    for column in levels:
        if not all(isinstance(v, int) for v in column):
            return None
        whole = [int(v) for v in column if isinstance(v, int)]
        first, last = (min(whole), max(whole)) if whole else (0, -1)
        if last - first >= WIDEST_RANGE:
            return None
        table = np.full(last - first + 1, UNSEEN, dtype=np.int32)
        for i, value in enumerate(whole):
            table[value - first] = i
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
