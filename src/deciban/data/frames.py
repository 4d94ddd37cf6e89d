"""Rows in any form → a frame, or a stream of frames."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from deciban.data.arrays import MatrixFrame, SparseFrame, sparse_frame
from deciban.data.arrow import TableFrame, object_frame, table_frame
from deciban.data.batch import Frame
from deciban.data.containers import is_stream, is_table, supported
from deciban.data.documents import documents_frame, is_documents
from deciban.data.stream import ArrowStream, Stream, read_table
from deciban.errors import DecibanError
from deciban.lazy import issparse

CELLS_PER_BATCH = 1 << 20  # converted at a time: 8 MB of doubles, whose pages the next batch uses again
CELLS_PER_VIEW = 1 << 26  # read in place at a time: only masks of a family are of this size


def stream_of(x: Any) -> Stream:
    return x if isinstance(x, Stream) else ArrowStream.of(x)


def frame_of(x: Any) -> Frame:
    """A frame over rows in any form that `supported` knows; a stream is read as a whole."""
    x = supported(x)
    if isinstance(x, TableFrame):
        return x
    if is_stream(x):
        return read_table(stream_of(x))
    if is_documents(x):
        return documents_frame(x)
    if is_table(x):
        return table_frame(x)
    if issparse(x):
        return sparse_frame(x)
    return MatrixFrame(x) if x.dtype.kind in "biuf" else object_frame(x)


def split_column(x: Any, name: str, use: str) -> tuple[TableFrame, Any]:
    """A table without its label or weight column, and that column."""
    x = supported(x)
    if not is_table(x):
        argument = "y" if use == "label" else "sample_weight"
        raise DecibanError(f"{argument}={name!r} names a column, so X must be a table; it is {type(x).__name__}")
    frame = frame_of(x)
    assert isinstance(frame, TableFrame)
    return frame.split(name, use)


def slices(frame: Frame, *, needs_small_batches: bool) -> Iterator[tuple[int, Frame]]:
    """Slices of rows small enough to convert, with the number of their first row.

    `needs_small_batches` says whether a family needs codes or, from sparse rows, numbers. Where none does, sparse rows
    come in one slice, and a matrix of floats, which is read in place, in large ones.
    """
    cells = CELLS_PER_BATCH
    if not needs_small_batches and isinstance(frame, MatrixFrame) and frame.in_place:
        cells = max(cells, CELLS_PER_VIEW)
    step = max(1, cells // max(1, len(frame.names)))
    if not needs_small_batches and isinstance(frame, SparseFrame):
        step = max(1, frame.rows)
    for start in range(0, frame.rows, step):
        yield start, frame.slice(start, min(start + step, frame.rows))
