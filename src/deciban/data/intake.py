"""Intake: X, y and sample_weight as a user passes them → labelled rows. All input comes this way."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.data.arrow import TableFrame, numbers_of
from deciban.data.arrow_buffers import require_array_layout
from deciban.data.batch import Frame
from deciban.data.cell_types import CellType, label_cell_types
from deciban.data.column_reader import INFERRED, ColumnReader
from deciban.data.containers import column_or_values, is_stream, label_column_or_values, supported
from deciban.data.distributed import DistributedRows
from deciban.data.frames import frame_of, split_column
from deciban.data.labelled import Labelled, Sample, Streamed
from deciban.data.labels import Encoded, check_weights, encode_labels
from deciban.data.stream import Stream, read_table
from deciban.errors import DecibanError
from deciban.lazy import lazy

pa = lazy("pyarrow")


class NoRows(DecibanError):
    """There are no rows."""


def labelled_rows(X: Any, y: Any, sample_weight: Any = None, columns: ColumnReader = INFERRED) -> Labelled:
    """Labelled rows: in memory, a stream that is read batch by batch, or distributed. There may be none.

    Parameters
    ----------
    X : array, sparse matrix, table, list of documents, stream or distributed rows
    y : array, or the name of a column of X
    sample_weight : array, the name of a column of X, or None
    columns : how the columns of X are typed: inferred, or as in the training rows of a model

    >>> rows = labelled_rows([[1.0], [2.0], [3.0]], ["no", "yes", "no"])
    >>> rows.labels
    Encoded(codes=array([0, 1, 0], dtype=int32), classes=('no', 'yes'))
    """
    if isinstance(X, DistributedRows):
        return X
    data = _Input.of(X, y, sample_weight)
    if not is_stream(data.x):
        return data.read(columns).sample()
    labels = data.y if isinstance(data.y, str) else encode_labels(data.y)
    weights = data.weights
    if not (weights is None or isinstance(weights, str)):
        weights = check_weights(weights, np.size(weights))
    rows = Streamed(data.stream(columns), labels, weights)
    require_features(rows.frame)
    return rows


def rows_in_memory(X: Any, y: Any, sample_weight: Any = None, columns: ColumnReader = INFERRED) -> Sample:
    """Labelled rows in memory, those of a stream too; raises `NoRows` if there are none."""
    rows = input_columns(X, y, sample_weight, columns).sample()
    require_rows(rows.frame)
    return rows


def input_columns(
    X: Any, y: Any, sample_weight: Any = None, columns: ColumnReader = INFERRED, also: Collection[str] = ()
) -> InputColumns:
    """Rows in memory before labels are encoded, for responses that are not classes.

    `also` names columns of a stream that are read although they are not features, such as an offset.
    """
    return _Input.of(X, y, sample_weight).read(columns, also)


@dataclass(frozen=True)
class InputColumns:
    """Rows in memory, with their labels and weights as they were passed."""

    frame: Frame  # the features
    labels: Any  # an array, or a column of Arrow
    weights: Any  # an array, or None

    def sample(self, encode: Callable[[Any], Encoded] = encode_labels) -> Sample:
        labels, n = encode(self.labels), self.frame.rows
        require_as_many(n, len(labels.codes))
        return Sample(self.frame, labels, check_weights(self.weights, n) if n else None)


@dataclass(frozen=True)
class _Input:
    """X, y and sample_weight, each in one of a few forms."""

    x: Any  # a table, a stream, documents, sparse rows or a matrix
    y: Any  # labels, or the name of a column
    weights: Any  # numbers, the name of a column, or None

    @classmethod
    def of(cls, X: Any, y: Any, sample_weight: Any) -> _Input:
        if y is None:
            raise DecibanError(
                "this requires y to be passed, but the target y is None: pass the labels, or the name of a column of X"
            )
        x, labels, weights = supported(X), require_array_layout(_one_column(y)), require_array_layout(sample_weight)
        return cls(x, label_column_or_values(x, labels), column_or_values(x, weights))

    def stream(self, columns: ColumnReader, also: Collection[str] = ()) -> Stream:
        """The stream, with labels read as the type of the known classes, if any."""
        named = [name for name in (self.y, self.weights) if isinstance(name, str)]
        types: dict[str, CellType] = label_cell_types(self.y, columns.classes) if isinstance(self.y, str) else {}
        if isinstance(self.weights, str):
            types |= {self.weights: "number"}
        return columns.stream(self.x, [*named, *also]).with_types(types)

    def read(self, columns: ColumnReader, also: Collection[str] = ()) -> InputColumns:
        x, labels, weights = self.x, self.y, self.weights
        if is_stream(x):
            x = read_table(self.stream(columns, also))
        frame, labels = split_column(x, labels, "label") if isinstance(labels, str) else (frame_of(x), labels)
        frame = columns.typed(frame, self.x)
        if isinstance(weights, str):
            if not isinstance(frame, TableFrame):
                raise DecibanError(f"sample_weight={weights!r} names a column, so X must be a table")
            frame, column = frame.split(weights, "weight")
            weights = numbers_of(column)
        require_features(frame)
        return InputColumns(frame, labels, weights)


def _one_column(y: Any) -> Any:
    """y as one dimension if it is a table or a matrix with one column; else unchanged."""
    if getattr(y, "shape", None) is None or len(y.shape) != 2 or y.shape[1] != 1:
        return y
    return y.column(0) if isinstance(y, pa.Table) else np.asarray(y)[:, 0]


def label_name(X: Any, y: Any) -> str | None:
    """The name of the label column, if y names one."""
    name = label_column_or_values(X, y)
    return name if isinstance(name, str) else None


def require_features(frame: Frame) -> None:
    if not len(frame.names):
        raise DecibanError(
            f"Found array with 0 feature(s) (shape=({frame.rows}, 0)) while a minimum of 1 is required. Pass a "
            "table with a column to learn from"
        )


def require_rows(frame: Frame) -> None:
    if frame.rows == 0:
        raise NoRows("Found array with 0 sample(s): there are no rows to learn from")


def require_as_many(rows: int, labels: int) -> None:
    if rows != labels:
        raise DecibanError(f"Found input variables with inconsistent numbers of samples: {rows} rows, {labels} labels")
