"""Batch: rows in flight. A Frame hides how they are laid out; a Batch adds what is known of each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from deciban.types import FloatArray, Level, Levels, Names

Kind = Literal["number", "boolean", "category", "text", "empty", "date", "time"]
NUMERIC: frozenset[Kind] = frozenset(("number", "date", "time"))  # read as numbers: dates in days, times in hours
Style = Literal["date", "time", "formatted", "formatted_comma"]  # numbers with a decimal point, or with a comma
DatePart = Literal["year", "month", "day", "weekday", "hour"]
MISSING, UNSEEN = -1, -2  # codes of cells that hold nothing, or a value that is not in the list


@dataclass(frozen=True)
class Notation:
    """How the cells of a column of text are written; `missing` are texts that stand for a missing value there."""

    style: Style
    missing: tuple[str, ...] = ()

    @property
    def kind(self) -> Kind:
        return "number" if self.style in ("formatted", "formatted_comma") else self.style  # type: ignore[return-value]


@dataclass(frozen=True)
class Derived:
    """What is made of columns of dates: a part of the calendar, or the days from the first of two to the second."""

    part: DatePart | Literal["gap"]
    columns: tuple[int, ...]

    @property
    def kind(self) -> Kind:
        return "number" if self.part == "gap" else "category"

    def at(self, places: Sequence[int]) -> Derived:
        """The same of columns that stand elsewhere."""
        return Derived(self.part, tuple(places[j] for j in self.columns))


Place = int | Derived  # what is asked of a frame


@dataclass(frozen=True)
class Coded:
    """Columns as places in lists of values."""

    codes: NDArray[np.int32]  # (n, d) MISSING, UNSEEN, or the place in the column's levels
    levels: tuple[Levels, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.codes.shape


@dataclass(frozen=True)
class Texts:
    """Columns of documents in UTF-8, where they lie: cell (i, j) is `length` bytes from `start` of a buffer.

    >>> texts = Texts.of(["buy book", None])
    >>> texts.shape, texts.present.tolist(), texts.cell(0, 0)
    ((2, 1), [True, False], b'buy book')
    """

    buffers: tuple[NDArray[np.uint8], ...]
    places: NDArray[np.int64]  # (n, d, 3) buffer, start, length: −1 where there is no document

    @classmethod
    def of(cls, *columns: Sequence[str | None]) -> Texts:
        """Of lists of text."""
        buffers, places = [], []
        for j, column in enumerate(columns):
            present = [cell for cell in column if cell is not None]
            whole = "".join(present)
            if whole.isascii():
                data, sizes = whole.encode(), np.fromiter(map(len, present), np.int64, len(present))
            else:
                cells = [cell.encode("utf-8", "surrogatepass") for cell in present]
                data, sizes = b"".join(cells), np.fromiter(map(len, cells), np.int64, len(cells))
            found = np.full((len(column), 3), -1, np.int64)
            there = slice(None) if len(present) == len(column) else [cell is not None for cell in column]
            found[there] = np.stack([np.full(len(sizes), j), np.cumsum(sizes) - sizes, sizes], axis=1)
            buffers.append(np.frombuffer(data, np.uint8))
            places.append(found)
        return cls(tuple(buffers), np.ascontiguousarray(np.stack(places, axis=1)))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.places.shape[:2]

    @property
    def present(self) -> NDArray[np.bool_]:
        """(n) whether a row has a document in any column."""
        there: NDArray[np.bool_] = np.any(self.places[:, :, 2] >= 0, axis=1)
        return there

    def __getitem__(self, rows: Any) -> Texts:
        return Texts(self.buffers, np.ascontiguousarray(self.places[rows]))

    def cell(self, row: int, column: int) -> bytes | None:
        buffer, start, length = self.places[row, column].tolist()
        return None if length < 0 else self.buffers[buffer][start : start + length].tobytes()

    def tobytes(self) -> bytes:
        """What tells rows apart."""
        cells = [self.cell(i, j) for i, j in np.ndindex(*self.shape)]
        return repr(cells).encode()


class Frame(Protocol):
    """Named columns in memory. Columns are asked for by position, or derived from those; NaN and null are missing."""

    @property
    def names(self) -> Names: ...

    @property
    def kinds(self) -> tuple[Kind, ...]: ...

    @property
    def rows(self) -> int: ...

    def slice(self, start: int, stop: int) -> Frame: ...

    def take(self, rows: NDArray[np.intp]) -> Frame: ...

    def numbers(self, columns: Sequence[Place]) -> NDArray[Any]:
        """(n, d) float matrix, NaN where missing; a view where possible."""

    def counts(self, columns: Sequence[Place]) -> Any:
        """The same, or sparse rows where that is what they are."""

    def coded(self, columns: Sequence[Place]) -> Coded:
        """Places in lists of the values that occur here."""

    def codes(self, columns: Sequence[Place], levels: tuple[Levels, ...]) -> NDArray[np.int32]:
        """Places in the given lists."""

    def texts(self, columns: Sequence[Place]) -> Texts:
        """Documents: text that is more than a category."""

    def cell(self, row: int, column: Place) -> object:
        """One value, for a message."""

    def cells(self, column: int) -> list[Any]:
        """The values of a column as Python objects; None where one is missing."""


def positions(columns: Sequence[Place]) -> list[int]:
    """Columns of a frame that has no dates, and so none that are derived."""
    return [column for column in columns if not isinstance(column, Derived)]


def kind_at(frame: Frame, place: Place) -> Kind:
    return place.kind if isinstance(place, Derived) else frame.kinds[place]


@dataclass(frozen=True)
class Batch:
    """Rows with their labels (places in `classes`) and weights; the first one is row `first` of the input."""

    frame: Frame
    labels: NDArray[np.int32]
    classes: tuple[Level, ...]
    weights: FloatArray | None
    first: int
    rows: NDArray[np.intp] | None = None  # where each row was, if some were left out

    def take(self, rows: NDArray[np.intp]) -> Batch:
        """Some of the rows; they keep their numbers."""
        weights = None if self.weights is None else self.weights[rows]
        numbers = rows if self.rows is None else self.rows[rows]
        return Batch(self.frame.take(rows), self.labels[rows], self.classes, weights, self.first, numbers)

    def row_number(self, i: int) -> int:
        return self.first + (i if self.rows is None else int(self.rows[i]))
