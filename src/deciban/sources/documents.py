"""Frames over lists of text: documents as they are, without a table around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban.batch import MISSING, Coded, Kind, Texts
from deciban.errors import DecibanError
from deciban.sources.arrays import recode
from deciban.types import Levels, Names


@dataclass(frozen=True)
class TextFrame:
    """Columns of text, or None where a cell is missing."""

    names: Names
    columns: tuple[Sequence[str | None], ...]
    kind: Kind = "text"  # "category": as columns of tables are known

    @property
    def kinds(self) -> tuple[Kind, ...]:
        return (self.kind,) * len(self.columns)

    @property
    def rows(self) -> int:
        return len(self.columns[0])

    def slice(self, start: int, stop: int) -> TextFrame:
        if start == 0 and stop >= self.rows:
            return self
        return TextFrame(self.names, tuple(column[start:stop] for column in self.columns), self.kind)

    def take(self, rows: NDArray[np.intp]) -> TextFrame:
        places = rows.tolist()
        return TextFrame(self.names, tuple([column[i] for i in places] for column in self.columns), self.kind)

    def numbers(self, columns: Sequence[int]) -> NDArray[Any]:
        """Whether text is there can be told; no other number can be made of it."""
        raise DecibanError(f"column {self.names[columns[0]]!r} holds text, but its family needs numbers: use Text")

    def counts(self, columns: Sequence[int]) -> NDArray[Any]:
        return self.numbers(columns)

    def coded(self, columns: Sequence[int]) -> Coded:
        codes, levels = np.empty((self.rows, len(columns)), np.int32), []
        for j, column in enumerate(columns):
            place: dict[str | None, int] = {None: MISSING}
            codes[:, j] = [place.setdefault(cell, len(place) - 1) for cell in self.columns[column]]
            levels.append(tuple(place)[1:])
        return Coded(codes, tuple(levels))

    def codes(self, columns: Sequence[int], levels: tuple[Levels, ...]) -> NDArray[np.int32]:
        return recode(self.coded(columns), levels)

    def texts(self, columns: Sequence[int]) -> Texts:
        return Texts.of(*(self.columns[column] for column in columns))

    def cell(self, row: int, column: int) -> object:
        return self.columns[column][row]


def is_documents(x: Any) -> bool:
    """Whether this is one column of text: a list of it, or an array or series with one dimension."""
    if isinstance(x, (list, tuple)):
        return bool(x) and all(cell is None or isinstance(cell, str) for cell in x) and any(x_ is not None for x_ in x)
    if isinstance(x, np.ndarray):
        text = x.dtype.kind in "UT" or (x.dtype.kind == "O" and is_documents(x.ravel()[:1000].tolist()))
        return x.ndim == 1 and text
    kind = str(getattr(x, "dtype", getattr(x, "type", ""))).lower()
    return len(getattr(x, "shape", (0,))) == 1 and hasattr(x, "__len__") and kind in TEXT


TEXT = ("str", "string", "large_string", "string_view", "object")


def documents_frame(x: Any) -> TextFrame:
    """One column of text, without a name."""
    cells = x if isinstance(x, (list, tuple)) else x.tolist()
    for row, cell in enumerate(cells):
        if not (cell is None or isinstance(cell, str)):
            if cell != cell:  # NaN of pandas
                return documents_frame([None if c != c else c for c in cells])
            raise DecibanError(f"row {row} is {cell!r}: documents are text, or None where there is none")
    return TextFrame(range(1), (cells,))
