"""Intake: rows with their labels and weights, as a user passes them → rows to learn from or to judge by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.data import Sample, Stream, Streamed, column_or_values, frame_of, split_label, supported
from deciban.data.arrow import TableFrame, numbers_of
from deciban.data.batch import Frame
from deciban.data.cell_types import CellType, label_cell_types
from deciban.data.labels import Encoded, check_weights, encode_labels
from deciban.errors import DecibanError
from deciban.lazy import lazy
from deciban.types import Levels

pa = lazy("pyarrow")


def as_given(frame: Frame) -> Frame:
    """Columns of text stay text."""
    return frame


def _one_column(y: Any) -> Any:
    """Labels of a table with one column, or of a matrix, as that column."""
    if getattr(y, "shape", None) is None or len(y.shape) != 2 or y.shape[1] != 1:
        return y
    return y.column(0) if isinstance(y, pa.Table) else np.asarray(y)[:, 0]


@dataclass(frozen=True)
class LabelledInput:
    """What was passed as X, y and sample_weight, each in one of few forms."""

    x: Any  # a table, a stream, documents, sparse rows or a matrix
    y: Any  # labels, or the name of a column
    weights: Any  # numbers, or the name of a column, or None

    @classmethod
    def of(cls, X: Any, y: Any, sample_weight: Any = None) -> LabelledInput:
        """y may be the name of a column of X, and so may sample_weight."""
        if y is None:
            raise DecibanError(
                "this requires y to be passed, but the target y is None: pass the labels, or the name of a column of X"
            )
        x = supported(X)
        return cls(x, column_or_values(x, _one_column(y)), column_or_values(x, sample_weight, scalars=False))

    @property
    def named(self) -> list[str]:
        """The columns that are labels or weights, and so are none to learn from."""
        return [name for name in (self.y, self.weights) if isinstance(name, str)]

    def frame_and_labels(
        self, frame: Callable[[Any], Frame] = frame_of, typed: Callable[[Frame], Frame] = as_given
    ) -> tuple[Frame, Any]:
        """The columns to learn from (with the weights, if these are among them), and the labels.

        `typed` reads columns of text as what is written in them.
        """
        rows, labels = split_label(self.x, self.y) if isinstance(self.y, str) else (frame(self.x), self.y)
        rows = typed(rows)
        if not len(rows.names):
            raise DecibanError(
                f"Found array with 0 feature(s) (shape=({rows.rows}, 0)) while a minimum of 1 is required. Pass a "
                "table with a column to learn from"
            )
        return rows, labels

    def sample(
        self,
        frame: Callable[[Any], Frame] = frame_of,
        encode: Callable[[Any], Encoded] = encode_labels,
        typed: Callable[[Frame], Frame] = as_given,
    ) -> Sample:
        """All rows, in memory; there must be some."""
        return sample_of(*self.frame_and_labels(frame, typed), self.weights, encode)

    def any_sample(
        self, frame: Callable[[Any], Frame] = frame_of, typed: Callable[[Frame], Frame] = as_given
    ) -> Sample:
        """All rows, in memory; there may be none."""
        return _sample(*self.frame_and_labels(frame, typed), self.weights, encode_labels)

    def streamed(self, stream: Stream, classes: Levels = ()) -> Streamed:
        """The rows of a stream, its labels read as the classes that are known, if any."""
        types: dict[str, CellType] = label_cell_types(self.y, classes) if isinstance(self.y, str) else {}
        if isinstance(self.weights, str):
            types |= {self.weights: "number"}
        labels = self.y if isinstance(self.y, str) else encode_labels(self.y)
        weights = self.weights
        if not (weights is None or isinstance(weights, str)):
            weights = check_weights(weights, np.size(weights))
        return Streamed(stream.with_types(types), labels, weights)


def sample_of(frame: Frame, labels: Any, weights: Any, encode: Callable[[Any], Encoded] = encode_labels) -> Sample:
    """Rows in memory, as many labels, and weights: numbers, or the name of a column."""
    require_rows(frame)
    return _sample(frame, labels, weights, encode)


def _sample(frame: Frame, labels: Any, weights: Any, encode: Callable[[Any], Encoded]) -> Sample:
    encoded = encode(labels)
    require_as_many(frame.rows, len(encoded.codes))
    frame, weights = split_weights(frame, weights)
    return Sample(frame, encoded, check_weights(weights, frame.rows) if frame.rows else None)


def label_name(X: Any, y: Any) -> str | None:
    """The name of the column of labels, if y is one."""
    name = column_or_values(X, y)
    return name if isinstance(name, str) else None


def require_rows(frame: Frame) -> None:
    if frame.rows == 0:
        raise DecibanError("Found array with 0 sample(s): there are no rows to learn from")


def split_weights(frame: Frame, weights: Any) -> tuple[Frame, Any]:
    """Weights may be the name of a column, which then is none to learn from."""
    if not isinstance(weights, str):
        return frame, weights
    if not isinstance(frame, TableFrame):
        raise DecibanError(f"sample_weight={weights!r} names a column, so X must be a table")
    frame, column = frame.split(weights, "weight")
    return frame, numbers_of(column)


def require_as_many(rows: int, labels: int) -> None:
    if rows != labels:
        raise DecibanError(f"Found input variables with inconsistent numbers of samples: {rows} rows, {labels} labels")
