"""Anything with rows → frames and batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from deciban.batch import Batch, Frame
from deciban.errors import DecibanError
from deciban.sources.arrays import MatrixFrame, SparseFrame, sparse_frame
from deciban.sources.arrow import TableFrame, object_frame, table_frame
from deciban.sources.labels import Encoded
from deciban.types import FloatArray

CELLS_PER_BATCH = 1 << 22  # what is converted at a time: 32 MB of doubles
CELLS_PER_VIEW = 1 << 26  # what is read in place at a time: only a family's masks are of this size

__all__ = ["Sample", "frame_of", "is_table", "slices", "split_label"]


def is_table(x: Any) -> bool:
    return hasattr(x, "__arrow_c_stream__") or isinstance(x, TableFrame)


def frame_of(x: Any) -> Frame:
    """A frame over an array, sparse rows or a table."""
    if isinstance(x, TableFrame):
        return x
    if is_table(x):
        return table_frame(x)
    if sp.issparse(x):
        return sparse_frame(x)
    array = np.asarray(x)
    if array.dtype.kind in "biuf":
        return MatrixFrame(array)
    return object_frame(array)


def split_label(x: Any, label: str) -> tuple[TableFrame, Any]:
    """A table without its label column, and that column."""
    if not is_table(x):
        raise DecibanError(f"y={label!r} names a column, so X must be a table; it is {type(x).__name__}")
    frame = table_frame(x)
    if label not in frame.names:
        raise DecibanError(f"no column {label!r} to use as label; the table has {list(frame.names)}")
    at = list(frame.names).index(label)
    return frame.drop(at), frame.array(at)


def slices(frame: Frame, *, converts: bool) -> Iterator[tuple[int, Frame]]:
    """Runs of rows small enough to convert, with the number of their first row.

    `converts` says whether a family wants codes or, of sparse rows, numbers. Where none does, sparse rows come in one
    piece, and a matrix of floats, which is read in place, in long runs.
    """
    cells = CELLS_PER_BATCH
    if not converts and isinstance(frame, MatrixFrame) and frame.in_place:
        cells = max(cells, CELLS_PER_VIEW)
    step = max(1, cells // max(1, len(frame.names)))
    if not converts and isinstance(frame, SparseFrame):
        step = max(1, frame.rows)
    for start in range(0, frame.rows, step):
        yield start, frame.slice(start, min(start + step, frame.rows))


@dataclass(frozen=True)
class Sample:
    """Rows to learn from or to judge by, with their classes and weights."""

    frame: Frame
    labels: Encoded
    weights: FloatArray | None  # (n) 0 or more
    numbers: NDArray[np.intp] | None = None  # (n) of the rows in the input, if some were left out

    def take(self, rows: NDArray[np.intp]) -> Sample:
        labels = Encoded(self.labels.codes[rows], self.labels.classes)
        weights = None if self.weights is None else self.weights[rows]
        return Sample(self.frame.take(rows), labels, weights, rows if self.numbers is None else self.numbers[rows])

    def batches(self, *, converts: bool) -> Iterator[Batch]:
        """Runs of rows; those of weight 0 are left out, as if they were not there."""
        for first, part in slices(self.frame, converts=converts):
            stop = first + part.rows
            codes = self.labels.codes[first:stop]
            weights = None if self.weights is None else self.weights[first:stop]
            rows: NDArray[np.intp] | None = None
            if weights is not None and not weights.all():
                rows = np.flatnonzero(weights)
                part, codes, weights = part.take(rows), codes[rows], weights[rows]
            if self.numbers is not None:
                numbers = self.numbers[first:stop]
                first, rows = 0, numbers if rows is None else numbers[rows]
            yield Batch(part, np.ascontiguousarray(codes), self.labels.classes, weights, first, rows)
