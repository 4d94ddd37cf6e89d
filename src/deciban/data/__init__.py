"""Anything with rows → frames and batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from deciban.data.arrays import MatrixFrame, SparseFrame, sparse_frame
from deciban.data.arrow import TableFrame, numbers_of, object_frame, table_frame
from deciban.data.batch import Batch, Frame
from deciban.data.containers import column_or_values, is_stream, is_table, supported
from deciban.data.documents import documents_frame, is_documents
from deciban.data.labels import Encoded, encode_labels, require_weight, total_weight, weights_of
from deciban.data.stream import ArrowStream, Stream, read_table, retry_with_wider_types
from deciban.errors import DecibanError
from deciban.lazy import issparse
from deciban.types import FloatArray

CELLS_PER_BATCH = 1 << 22  # what is converted at a time: 32 MB of doubles
CELLS_PER_VIEW = 1 << 26  # what is read in place at a time: only a family's masks are of this size

T = TypeVar("T")

__all__ = [
    "Labelled",
    "Sample",
    "Stream",
    "Streamed",
    "column_or_values",
    "frame_of",
    "is_documents",
    "is_stream",
    "is_table",
    "retry_with_wider_types",
    "slices",
    "split_column",
    "split_label",
    "stream_of",
    "supported",
]


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


def split_label(x: Any, label: str) -> tuple[TableFrame, Any]:
    """A table without its label column, and that column."""
    return split_column(x, label, "label")


def split_column(x: Any, name: str, use: str) -> tuple[TableFrame, Any]:
    """A table without a column that is used as something else, and that column."""
    x = supported(x)
    if not is_table(x):
        what = "y" if use == "label" else "sample_weight"
        raise DecibanError(f"{what}={name!r} names a column, so X must be a table; it is {type(x).__name__}")
    frame = frame_of(x)
    assert isinstance(frame, TableFrame)
    return frame.split(name, use)


def slices(frame: Frame, *, needs_small_batches: bool) -> Iterator[tuple[int, Frame]]:
    """Runs of rows small enough to convert, with the number of their first row.

    `needs_small_batches` says whether a family needs codes or, from sparse rows, numbers. Where none does, sparse rows
    come in one piece, and a matrix of floats, which is read in place, in long runs.
    """
    cells = CELLS_PER_BATCH
    if not needs_small_batches and isinstance(frame, MatrixFrame) and frame.in_place:
        cells = max(cells, CELLS_PER_VIEW)
    step = max(1, cells // max(1, len(frame.names)))
    if not needs_small_batches and isinstance(frame, SparseFrame):
        step = max(1, frame.rows)
    for start in range(0, frame.rows, step):
        yield start, frame.slice(start, min(start + step, frame.rows))


class Labelled(ABC):
    """Rows to learn from or to judge by, with their classes and weights: in memory, in a stream, or elsewhere.

    What is learned is a sum over batches, so rows need not be in one place: `summed` is all that learning asks of them.
    """

    if TYPE_CHECKING:  # a field, or a property

        @property
        def frame(self) -> Frame:
            """What the rows look like; none of them need be in it."""

    @abstractmethod
    def error_context(self) -> AbstractContextManager[None]:
        """Errors about a row say where it was read."""

    @abstractmethod
    def batches(self, *, needs_small_batches: bool) -> Iterator[Batch]:
        """Runs of rows; those of weight 0 are left out, as if they were not there."""

    def summed(self, work: Callable[[Batch], T], *, needs_small_batches: bool) -> T:
        """Σ work(batch) over all rows; what work returns adds by +."""
        total = self.summed_or_none(work, needs_small_batches=needs_small_batches)
        if total is None:
            raise DecibanError(self._no_rows())
        return total

    def _no_rows(self) -> str:
        return "there are no rows to learn from or to judge by"

    def summed_or_none(self, work: Callable[[Batch], T], *, needs_small_batches: bool) -> T | None:
        """The same; None if there are no rows."""
        total: T | None = None
        with self.error_context():
            for batch in self.batches(needs_small_batches=needs_small_batches):
                part = work(batch)
                total = part if total is None else total + part  # type: ignore[operator]
        return total


@dataclass(frozen=True)
class Sample(Labelled):
    """Rows in memory."""

    frame: Frame
    labels: Encoded
    weights: FloatArray | None  # (n) 0 or more
    numbers: NDArray[np.intp] | None = None  # (n) of the rows in the input, if some were left out

    def take(self, rows: NDArray[np.intp]) -> Sample:
        labels = Encoded(self.labels.codes[rows], self.labels.classes)
        weights = None if self.weights is None else self.weights[rows]
        return Sample(self.frame.take(rows), labels, weights, rows if self.numbers is None else self.numbers[rows])

    def error_context(self) -> AbstractContextManager[None]:
        """Rows in memory are known by their numbers."""
        return nullcontext()

    def batches(self, *, needs_small_batches: bool) -> Iterator[Batch]:
        """Runs of rows; those of weight 0 are left out, as if they were not there."""
        for first, part in slices(self.frame, needs_small_batches=needs_small_batches):
            stop = first + part.rows
            codes = self.labels.codes[first:stop]
            weights = None if self.weights is None else self.weights[first:stop]
            rows: NDArray[np.intp] | None = None
            if weights is not None and not weights.all():
                rows = np.flatnonzero(weights)
                if not len(rows):
                    continue
                part, codes, weights = part.take(rows), codes[rows], weights[rows]
            if self.numbers is not None:
                numbers = self.numbers[first:stop]
                first, rows = 0, numbers if rows is None else numbers[rows]
            yield Batch(part, np.ascontiguousarray(codes), self.labels.classes, weights, first, rows)


@dataclass(frozen=True)
class Streamed(Labelled):
    """Rows of a stream: never in memory as a whole."""

    stream: Stream
    label: str | Encoded  # the name of a column, or those of all rows
    weights: str | FloatArray | None

    @property
    def frame(self) -> Frame:
        """What the rows look like; there is none in it."""
        return self._sample(self.stream.empty, 0).frame

    def read(self) -> Sample:
        """All rows, in memory."""
        with self.error_context():
            return self._sample(read_table(self.stream), 0)

    def error_context(self) -> AbstractContextManager[None]:
        """Errors about a row say where it was read."""
        return self.stream.error_context()

    def samples(self) -> Iterator[tuple[int, Sample]]:
        """The rows as they come, with the number of the first."""
        first, weight = 0, 0.0
        for frame in self.stream.frames():
            sample = self._sample(frame, first)
            weight += frame.rows if sample.weights is None else total_weight(sample.weights)
            yield first, sample
            first += frame.rows
        self._require_as_many(first, at_end=True)
        self._require_some(first, weight)

    def _require_some(self, rows: int, weight: float) -> None:
        """Rows that weigh nothing are an error, unlike no rows."""
        if rows:
            require_weight(weight)

    def _no_rows(self) -> str:
        return f"{self.stream.title} has no rows to learn from or to judge by"

    def batches(self, *, needs_small_batches: bool) -> Iterator[Batch]:
        """Runs of rows; those of weight 0 are left out, as if they were not there."""
        for first, sample in self.samples():
            for batch in sample.batches(needs_small_batches=needs_small_batches):
                yield replace(batch, first=first + batch.first)

    def _require_as_many(self, rows: int, *, at_end: bool) -> None:
        """Arrays that come with a stream are as long as it is, which shows at its end."""
        for what, given in (("y", getattr(self.label, "codes", None)), ("sample_weight", self.weights)):
            if isinstance(given, np.ndarray) and (len(given) < rows or (at_end and len(given) > rows)):
                raise DecibanError(
                    "Found input variables with inconsistent numbers of samples: "
                    f"{what}.shape == {given.shape}, and there are {rows} rows{'' if at_end else ' or more'}"
                )

    def _sample(self, frame: TableFrame, first: int) -> Sample:
        stop = first + frame.rows
        self._require_as_many(stop, at_end=False)
        if isinstance(self.label, str):
            frame, column = frame.split(self.label, "label")
            labels = encode_labels(column, first)
        else:
            labels = Encoded(self.label.codes[first:stop], self.label.classes)
        if isinstance(self.weights, str):
            frame, column = frame.split(self.weights, "weight")
            return Sample(frame, labels, weights_of(numbers_of(column), frame.rows, first))
        return Sample(frame, labels, None if self.weights is None else self.weights[first:stop])
