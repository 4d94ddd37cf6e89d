"""Labelled rows: in memory, in a stream, or distributed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from deciban.data.arrow import TableFrame, numbers_of
from deciban.data.batch import Batch, Frame
from deciban.data.frames import slices
from deciban.data.labels import Encoded, encode_labels, require_weight, total_weight, weights_of
from deciban.data.stream import Stream, read_table
from deciban.errors import DecibanError
from deciban.types import FloatArray, IntArray

T = TypeVar("T")


class Labelled(ABC):
    """Rows for training or evaluation, with their labels and weights: in memory, in a stream, or distributed.

    Statistics are sums over batches, so rows need not be in one place: training uses only `summed`.
    """

    if TYPE_CHECKING:  # a field in some subclasses, a property in others

        @property
        def frame(self) -> Frame:
            """Names and kinds of the columns; it may have no rows."""

    @abstractmethod
    def error_context(self) -> AbstractContextManager[None]:
        """A context in which errors about a row name where it was read."""

    @abstractmethod
    def batches(self, *, needs_small_batches: bool) -> Iterator[Batch]:
        """The rows in batches, without rows of weight 0."""

    def summed(self, work: Callable[[Batch], T], *, needs_small_batches: bool) -> T:
        """Σ work(batch) over all batches; results are added with +."""
        total = self.summed_or_none(work, needs_small_batches=needs_small_batches)
        if total is None:
            raise DecibanError(self._no_rows())
        return total

    def _no_rows(self) -> str:
        return "there are no rows to learn from or to evaluate"

    def summed_or_none(self, work: Callable[[Batch], T], *, needs_small_batches: bool) -> T | None:
        """Like `summed`, but None if there are no rows."""
        total: T | None = None
        with self.error_context():
            for batch in self.batches(needs_small_batches=needs_small_batches):
                result = work(batch)
                total = result if total is None else total + result  # type: ignore[operator]
        return total


@dataclass(frozen=True)
class Sample(Labelled):
    """Rows in memory."""

    frame: Frame
    labels: Encoded
    weights: FloatArray | None  # (n) 0 or more
    numbers: IntArray | None = None  # (n) positions of the rows in the input; None: 0, 1, …

    def take(self, rows: IntArray) -> Sample:
        labels = Encoded(self.labels.codes[rows], self.labels.classes)
        weights = None if self.weights is None else self.weights[rows]
        return Sample(self.frame.take(rows), labels, weights, rows if self.numbers is None else self.numbers[rows])

    def nonzero(self) -> Sample:
        """Without rows of weight 0, and without classes that have no rows."""
        rows = self
        if self.weights is not None and not self.weights.all():
            rows = self.take(np.flatnonzero(self.weights))
        codes, classes = rows.labels.codes, rows.labels.classes
        present = np.flatnonzero(np.bincount(codes, minlength=len(classes)))
        if len(present) == len(classes):
            return rows
        codes = np.searchsorted(present, codes).astype(np.int32)
        return replace(rows, labels=Encoded(codes, tuple(classes[i] for i in present)))

    @property
    def row_numbers(self) -> IntArray:
        """(n) the positions of the rows in the input."""
        return np.arange(self.frame.rows) if self.numbers is None else self.numbers

    def error_context(self) -> AbstractContextManager[None]:
        return nullcontext()  # the number of a row says where it is

    def batches(self, *, needs_small_batches: bool) -> Iterator[Batch]:
        for first, frame in slices(self.frame, needs_small_batches=needs_small_batches):
            stop = first + frame.rows
            codes = self.labels.codes[first:stop]
            weights = None if self.weights is None else self.weights[first:stop]
            rows: IntArray | None = None
            if weights is not None and not weights.all():
                rows = np.flatnonzero(weights)
                if not len(rows):
                    continue
                frame, codes, weights = frame.take(rows), codes[rows], weights[rows]
            if self.numbers is not None:
                numbers = self.numbers[first:stop]
                first, rows = 0, numbers if rows is None else numbers[rows]
            yield Batch(frame, np.ascontiguousarray(codes), self.labels.classes, weights, first, rows)


@dataclass(frozen=True)
class Streamed(Labelled):
    """Rows of a stream, never in memory as a whole."""

    stream: Stream
    label: str | Encoded  # the name of a column, or the labels of all rows
    weights: str | FloatArray | None  # the name of a column, or the weights of all rows

    @property
    def frame(self) -> Frame:
        """The columns, without rows."""
        return self._sample(self.stream.empty, 0).frame

    def read(self) -> Sample:
        """All rows, in memory."""
        with self.error_context():
            return self._sample(read_table(self.stream), 0)

    def error_context(self) -> AbstractContextManager[None]:
        return self.stream.error_context()

    def samples(self) -> Iterator[tuple[int, Sample]]:
        """The rows of each frame of the stream, with the number of the first."""
        first, weight = 0, 0.0
        for frame in self.stream.frames():
            sample = self._sample(frame, first)
            weight += frame.rows if sample.weights is None else total_weight(sample.weights)
            yield first, sample
            first += frame.rows
        self._require_same_length(first, at_end=True)
        self._require_some(first, weight)

    def _require_some(self, rows: int, weight: float) -> None:
        """Raises an error if there are rows, but their total weight is 0."""
        if rows:
            require_weight(weight)

    def _no_rows(self) -> str:
        return f"{self.stream.title} has no rows to learn from or to evaluate"

    def batches(self, *, needs_small_batches: bool) -> Iterator[Batch]:
        for first, sample in self.samples():
            for batch in sample.batches(needs_small_batches=needs_small_batches):
                yield replace(batch, first=first + batch.first)

    def _require_same_length(self, rows: int, *, at_end: bool) -> None:
        """Raises an error if y or sample_weight is an array whose length is not the number of rows."""
        for name, values in (("y", getattr(self.label, "codes", None)), ("sample_weight", self.weights)):
            if isinstance(values, np.ndarray) and (len(values) < rows or (at_end and len(values) > rows)):
                raise DecibanError(
                    "Found input variables with inconsistent numbers of samples: "
                    f"{name}.shape == {values.shape}, and there are {rows} rows{'' if at_end else ' or more'}"
                )

    def _sample(self, frame: TableFrame, first: int) -> Sample:
        stop = first + frame.rows
        self._require_same_length(stop, at_end=False)
        if isinstance(self.label, str):
            frame, column = frame.split(self.label, "label")
            labels = encode_labels(column, first)
        else:
            labels = Encoded(self.label.codes[first:stop], self.label.classes)
        if isinstance(self.weights, str):
            frame, column = frame.split(self.weights, "weight")
            return Sample(frame, labels, weights_of(numbers_of(column), frame.rows, first))
        return Sample(frame, labels, None if self.weights is None else self.weights[first:stop])
