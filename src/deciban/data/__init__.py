"""Anything with rows → frames and labelled rows."""

from deciban.data.containers import is_stream, is_table, supported
from deciban.data.documents import is_documents
from deciban.data.frames import CELLS_PER_BATCH, CELLS_PER_VIEW, frame_of, slices, split_column, stream_of
from deciban.data.intake import labelled_rows
from deciban.data.labelled import Labelled, Sample, Streamed
from deciban.data.stream import Stream, retry_with_wider_types

__all__ = [
    "CELLS_PER_BATCH",
    "CELLS_PER_VIEW",
    "Labelled",
    "Sample",
    "Stream",
    "Streamed",
    "frame_of",
    "is_documents",
    "is_stream",
    "is_table",
    "labelled_rows",
    "retry_with_wider_types",
    "slices",
    "split_column",
    "stream_of",
    "supported",
]
