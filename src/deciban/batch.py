"""Batch: rows in flight. A Frame hides how they are laid out; a Batch adds what is known of each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from deciban.types import FloatArray, Level, Levels, Names

Kind = Literal["number", "boolean", "category", "empty"]
MISSING, UNSEEN = -1, -2  # codes of cells that hold nothing, or a value that is not in the list


@dataclass(frozen=True)
class Coded:
    """Columns as places in lists of values."""

    codes: NDArray[np.int32]  # (n, d) MISSING, UNSEEN, or the place in the column's levels
    levels: tuple[Levels, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.codes.shape


class Frame(Protocol):
    """Named columns in memory. Columns are asked for by position; NaN and null are missing."""

    @property
    def names(self) -> Names: ...

    @property
    def kinds(self) -> tuple[Kind, ...]: ...

    @property
    def rows(self) -> int: ...

    def slice(self, start: int, stop: int) -> Frame: ...

    def take(self, rows: NDArray[np.intp]) -> Frame: ...

    def numbers(self, columns: Sequence[int]) -> NDArray[Any]:
        """(n, d) float matrix, NaN where missing; a view where possible."""

    def counts(self, columns: Sequence[int]) -> Any:
        """The same, or sparse rows where that is what they are."""

    def coded(self, columns: Sequence[int]) -> Coded:
        """Places in lists of the values that occur here."""

    def codes(self, columns: Sequence[int], levels: tuple[Levels, ...]) -> NDArray[np.int32]:
        """Places in the given lists."""

    def cell(self, row: int, column: int) -> object:
        """One value, for a message."""


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
