"""Anything with rows → frames and labelled rows. Names are imported on first use: a mail filter needs few of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deciban.lazy import names_of

if TYPE_CHECKING:
    from deciban.data.containers import is_stream as is_stream
    from deciban.data.containers import is_table as is_table
    from deciban.data.containers import supported as supported
    from deciban.data.documents import is_documents as is_documents
    from deciban.data.frames import CELLS_PER_BATCH as CELLS_PER_BATCH
    from deciban.data.frames import CELLS_PER_VIEW as CELLS_PER_VIEW
    from deciban.data.frames import frame_of as frame_of
    from deciban.data.frames import slices as slices
    from deciban.data.frames import split_column as split_column
    from deciban.data.frames import stream_of as stream_of
    from deciban.data.intake import labelled_rows as labelled_rows
    from deciban.data.labelled import Labelled as Labelled
    from deciban.data.labelled import Sample as Sample
    from deciban.data.labelled import Streamed as Streamed
    from deciban.data.stream import Stream as Stream
    from deciban.data.stream import retry_with_wider_types as retry_with_wider_types

HOMES = {
    "CELLS_PER_BATCH": "deciban.data.frames",
    "CELLS_PER_VIEW": "deciban.data.frames",
    "Labelled": "deciban.data.labelled",
    "Sample": "deciban.data.labelled",
    "Stream": "deciban.data.stream",
    "Streamed": "deciban.data.labelled",
    "frame_of": "deciban.data.frames",
    "is_documents": "deciban.data.documents",
    "is_stream": "deciban.data.containers",
    "is_table": "deciban.data.containers",
    "labelled_rows": "deciban.data.intake",
    "retry_with_wider_types": "deciban.data.stream",
    "slices": "deciban.data.frames",
    "split_column": "deciban.data.frames",
    "stream_of": "deciban.data.frames",
    "supported": "deciban.data.containers",
}
__all__ = sorted(HOMES)

__getattr__ = names_of(__name__, HOMES)
