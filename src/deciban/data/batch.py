"""Frame: columns in memory, in any layout. Batch: a frame with labels and weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from deciban.errors import INFINITE, BadCell, require
from deciban.types import FloatArray, Level, Levels, Names

Kind = Literal["number", "boolean", "category", "text", "empty", "date", "time"]
NUMERIC: frozenset[Kind] = frozenset(("number", "date", "time"))  # read as numbers: dates in days, times in hours
Style = Literal["date", "time", "formatted", "formatted_comma"]  # numbers with a decimal point, or with a comma
DatePart = Literal["year", "month", "day", "weekday", "hour"]
MAX_NA_VALUES = 8  # of a column
MISSING, UNSEEN = -1, -2  # codes of missing values, and of values that are not among the levels


@dataclass(frozen=True)
class Notation:
    """How the cells of a column of text are written; `missing` are its texts for missing values."""

    style: Style
    missing: tuple[str, ...] = ()

    def check_fields(self) -> None:
        require(len(self.missing) <= MAX_NA_VALUES, f"{len(self.missing)} texts are missing values")

    @property
    def kind(self) -> Kind:
        return "number" if self.style in ("formatted", "formatted_comma") else self.style  # type: ignore[return-value]


@dataclass(frozen=True)
class DerivedColumn:
    """A column computed from dates: a part of the calendar, or the days from the first of two to the second."""

    part: DatePart | Literal["gap"]
    columns: tuple[int, ...]

    def check_fields(self) -> None:
        expected = 2 if self.part == "gap" else 1
        require(len({*self.columns}) == len(self.columns) == expected, f"a {self.part} of {len(self.columns)} columns")

    @property
    def kind(self) -> Kind:
        return "number" if self.part == "gap" else "category"

    def name(self, *sources: str) -> str:
        """The name of this column, from the names of its dates."""
        return " − ".join(reversed(sources)) if self.part == "gap" else f"{sources[0]}[{self.part}]"

    def at(self, positions: Sequence[int]) -> DerivedColumn:
        """The same column, with its dates at other positions."""
        return DerivedColumn(self.part, tuple(positions[j] for j in self.columns))


ColumnRef = int | DerivedColumn  # a column of a frame


@dataclass(frozen=True)
class Coded:
    """Columns as indices into lists of values."""

    codes: NDArray[np.int32]  # (n, d) MISSING, UNSEEN, or the index in the column's levels
    levels: tuple[Levels, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.codes.shape

    def recode(self, levels: tuple[Levels, ...]) -> NDArray[np.int32]:
        """(n, d) indices into other lists of values."""
        codes = np.empty(self.codes.shape, dtype=np.int32)
        for j, (old, new) in enumerate(zip(self.levels, levels, strict=True)):
            position = {level: i for i, level in enumerate(new)}
            # codes −2 and −1 index the last two entries
            table = np.array([*(position.get(level, UNSEEN) for level in old), UNSEEN, MISSING], dtype=np.int32)
            codes[:, j] = table[self.codes[:, j]]
        return codes

    def without_infinite(self) -> Coded:
        """The same; raises BadCell for an infinite number, which is not a category."""
        for j, levels in enumerate(self.levels):
            for i, level in enumerate(levels):
                if isinstance(level, float) and np.isinf(level):
                    raise BadCell(int(np.argmax(self.codes[:, j] == i)), j, INFINITE)
        return self


@dataclass(frozen=True)
class Texts:
    """Columns of documents in UTF-8, not copied: cell (i, j) is `length` bytes from `start` of a buffer.

    >>> texts = Texts.of(["buy book", None])
    >>> texts.shape, texts.present.tolist(), texts.cell(0, 0)
    ((2, 1), [True, False], b'buy book')
    """

    buffers: tuple[NDArray[np.uint8], ...]
    places: NDArray[np.int64]  # (n, d, 3) buffer, start, length: −1 where there is no document

    @classmethod
    def of(cls, *columns: Sequence[str | None]) -> Texts:
        """From lists of text."""
        buffers, places = [], []
        for j, column in enumerate(columns):
            present = [cell for cell in column if cell is not None]
            joined = "".join(present)
            if joined.isascii():
                data, sizes = joined.encode(), np.fromiter(map(len, present), np.int64, len(present))
            else:
                cells = [cell.encode("utf-8", "surrogatepass") for cell in present]
                data, sizes = b"".join(cells), np.fromiter(map(len, cells), np.int64, len(cells))
            place = np.full((len(column), 3), -1, np.int64)
            documents = slice(None) if len(present) == len(column) else [cell is not None for cell in column]
            place[documents] = np.stack([np.full(len(sizes), j), np.cumsum(sizes) - sizes, sizes], axis=1)
            buffers.append(np.frombuffer(data, np.uint8))
            places.append(place)
        return cls(tuple(buffers), np.ascontiguousarray(np.stack(places, axis=1)))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.places.shape[:2]

    @property
    def present(self) -> NDArray[np.bool_]:
        """(n) whether a row has a document in any column."""
        return np.asarray(np.any(self.places[:, :, 2] >= 0, axis=1))

    def __getitem__(self, rows: Any) -> Texts:
        return Texts(self.buffers, np.ascontiguousarray(self.places[rows]))

    def cell(self, row: int, column: int) -> bytes | None:
        buffer, start, length = self.places[row, column].tolist()
        return None if length < 0 else self.buffers[buffer][start : start + length].tobytes()

    def tobytes(self) -> bytes:
        """Bytes that differ where rows do."""
        return repr([self.cell(i, j) for i, j in np.ndindex(*self.shape)]).encode()


class Frame(Protocol):
    """Named columns in memory, addressed by position or derived from positions; NaN and null are missing values."""

    @property
    def names(self) -> Names: ...

    @property
    def kinds(self) -> tuple[Kind, ...]: ...

    @property
    def rows(self) -> int: ...

    def slice(self, start: int, stop: int) -> Frame: ...

    def take(self, rows: NDArray[np.intp]) -> Frame: ...

    def numbers(self, columns: Sequence[ColumnRef]) -> NDArray[Any]:
        """(n, d) float matrix, NaN where missing; a view where possible."""

    def counts(self, columns: Sequence[ColumnRef]) -> Any:
        """Like `numbers`, but sparse rows stay sparse."""

    def coded(self, columns: Sequence[ColumnRef]) -> Coded:
        """Indices into lists of the values that occur here."""

    def codes(self, columns: Sequence[ColumnRef], levels: tuple[Levels, ...]) -> NDArray[np.int32]:
        """Indices into these lists of values."""

    def texts(self, columns: Sequence[ColumnRef]) -> Texts:
        """Documents, for the family Text."""

    def cell(self, row: int, column: ColumnRef) -> object:
        """One value, for a message."""

    def cells(self, column: int) -> list[Any]:
        """The values of a column as Python objects; None for a missing value."""


def positions(columns: Sequence[ColumnRef]) -> list[int]:
    """Columns as positions, in a frame that has no dates and so no derived columns."""
    return [column for column in columns if not isinstance(column, DerivedColumn)]


def kind_at(frame: Frame, column: ColumnRef) -> Kind:
    return column.kind if isinstance(column, DerivedColumn) else frame.kinds[column]


@dataclass(frozen=True)
class Batch:
    """Rows with their labels (indices into `classes`) and weights; the first one is row `first` of the input."""

    frame: Frame
    labels: NDArray[np.int32]
    classes: tuple[Level, ...]
    weights: FloatArray | None
    first: int
    rows: NDArray[np.intp] | None = None  # the number of each row, if some were excluded

    def take(self, rows: NDArray[np.intp]) -> Batch:
        """Some of the rows, with their numbers."""
        weights = None if self.weights is None else self.weights[rows]
        numbers = rows if self.rows is None else self.rows[rows]
        return Batch(self.frame.take(rows), self.labels[rows], self.classes, weights, self.first, numbers)

    def row_number(self, i: int) -> int:
        return self.first + (i if self.rows is None else int(self.rows[i]))
