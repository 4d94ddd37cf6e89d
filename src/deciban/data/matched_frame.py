"""MatchedFrame: a frame whose columns are matched with the features of a schema."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from deciban.data.batch import Batch, ColumnRef, Frame
from deciban.data.schema import Schema
from deciban.errors import BadCell, RowError, cell_error
from deciban.types import IntArray


@dataclass(frozen=True)
class MatchedFrame:
    """Where each feature of a schema is in a frame, and how rows are numbered in messages.

    >>> import numpy as np
    >>> from deciban.data.arrays import MatrixFrame
    >>> rows = MatchedFrame(Schema(range(2), ("number", "number")), MatrixFrame(np.array([[1.0, 7.0]])), 100)
    >>> print(rows.cell_error(1, 0, "is too large"))
    column 1, row 100: 7.0 is too large
    """

    schema: Schema
    frame: Frame
    numbers: int | IntArray = 0  # of the first row, or of each
    places: list[ColumnRef] = field(init=False, repr=False)  # of each feature

    def __post_init__(self) -> None:
        object.__setattr__(self, "places", self.schema.column_refs(self.frame))

    @classmethod
    def of(cls, schema: Schema, batch: Batch) -> MatchedFrame:
        return cls(schema, batch.frame, batch.first if batch.rows is None else batch.first + batch.rows)

    def columns(self, features: Sequence[int]) -> list[ColumnRef]:
        """Where some of the features are."""
        return [self.places[j] for j in features]

    def cell_error(self, feature: int, row: int, problem: str) -> RowError:
        """An error that names a cell by its feature and the number of its row."""
        number = self.numbers + row if isinstance(self.numbers, int) else int(self.numbers[row])
        value = self.frame.cell(row, self.places[feature])
        return cell_error(self.schema.all_names[feature], number, value, problem)

    @contextmanager
    def naming(self, features: Sequence[int]) -> Iterator[None]:
        """A BadCell among the columns of some features becomes an error that names it."""
        try:
            yield
        except BadCell as bad:
            raise self.cell_error(features[bad.column], bad.row, bad.problem) from None
