"""Frames over lists of text: documents without a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban.data.batch import MISSING, Coded, ColumnRef, Frame, Kind, Texts, positions
from deciban.errors import DecibanError
from deciban.types import Levels, Names


@dataclass(frozen=True)
class TextFrame:
    """Columns of text; None for a missing value."""

    names: Names
    columns: tuple[Sequence[str | None], ...]
    kind: Kind = "text"  # or "category", as columns of tables

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
        indices = rows.tolist()
        return TextFrame(self.names, tuple([column[i] for i in indices] for column in self.columns), self.kind)

    def numbers(self, columns: Sequence[ColumnRef]) -> NDArray[Any]:
        name = self.names[positions(columns)[0]]
        raise DecibanError(f"column {name!r} holds text, but its family needs numbers: use Text")

    def counts(self, columns: Sequence[ColumnRef]) -> NDArray[Any]:
        return self.numbers(columns)

    def coded(self, columns: Sequence[ColumnRef]) -> Coded:
        codes, levels = np.empty((self.rows, len(columns)), np.int32), []
        for j, column in enumerate(positions(columns)):
            code: dict[str | None, int] = {None: MISSING}
            codes[:, j] = [code.setdefault(cell, len(code) - 1) for cell in self.columns[column]]
            levels.append(tuple(code)[1:])
        return Coded(codes, tuple(levels))

    def codes(self, columns: Sequence[ColumnRef], levels: tuple[Levels, ...]) -> NDArray[np.int32]:
        return self.coded(columns).recode(levels)

    def texts(self, columns: Sequence[ColumnRef]) -> Texts:
        return Texts.of(*(self.columns[column] for column in positions(columns)))

    def cell(self, row: int, column: ColumnRef) -> object:
        return self.columns[positions([column])[0]][row]

    def cells(self, column: int) -> list[Any]:
        return list(self.columns[column])


SAMPLED_CELLS = 1000  # of an array of objects
# names of text types in numpy, pandas, polars and pyarrow
TEXT = ("<u", ">u", "str", "large_string", "dictionary<values=string", "dictionary<values=large_string")


def is_documents(x: Any) -> bool:
    """Whether this is one column of text: a list, an array with one dimension, or a series."""
    if isinstance(x, (list, tuple)):
        first = next((cell for cell in x if not _is_missing(cell)), None)
        return isinstance(first, str) or (first is None and None in x)
    if len(getattr(x, "shape", (0,))) != 1 or not hasattr(x, "__len__"):
        return False
    kind = str(getattr(x, "dtype", getattr(x, "type", ""))).lower()
    return is_documents(x[:SAMPLED_CELLS].tolist()) if kind == "object" else kind.startswith(TEXT)


def _is_missing(cell: Any) -> bool:
    return cell is None or (isinstance(cell, float) and cell != cell) or type(cell).__name__ == "NAType"  # of pandas


def documents_frame(x: Any) -> Frame:
    """One column of text, without a name; arrays and series are not copied."""
    if not isinstance(x, (list, tuple)):
        return _column_frame(x)
    if all(cell is None or isinstance(cell, str) for cell in x):
        return TextFrame(range(1), (x,))
    for row, cell in enumerate(x):
        if not (isinstance(cell, str) or _is_missing(cell)):
            raise DecibanError(f"row {row} is {cell!r}: documents must be text, or None if missing")
    return TextFrame(range(1), ([cell if isinstance(cell, str) else None for cell in x],))


def objects_of(x: Any) -> NDArray[Any]:
    """Documents as an array of text and None, which models of other libraries read as well."""
    frame = documents_frame(x)
    out = np.empty(frame.rows, dtype=object)
    out[:] = frame.cells(0)
    return out


def _column_frame(x: Any) -> Frame:
    from deciban.data.arrow import TableFrame, pa
    from deciban.data.arrow_buffers import require_layout

    if hasattr(x, "to_arrow"):  # polars
        x = x.to_arrow()
    if not isinstance(x, (pa.Array, pa.ChunkedArray)):
        if isinstance(x, np.ndarray) and x.dtype.kind == "T":
            x = x.astype(object)  # pyarrow 19 does not read numpy's StringDType
        try:
            x = pa.array(x, from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError):
            return documents_frame(list(x))  # raises an error that names the row
    return TableFrame(require_layout(pa.table([x], names=["0"])), range(1), ("text",))
