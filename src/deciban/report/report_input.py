"""The rows of a report: all of them where they are in memory, a sample to explain, and a few to show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban.data import Sample, is_stream, labelled_rows, retry_with_wider_types, stream_of
from deciban.data.arrays import MatrixFrame, SparseFrame
from deciban.data.arrow import TableFrame
from deciban.data.batch import Batch, Frame
from deciban.data.distributed import DistributedRows
from deciban.data.documents import TextFrame
from deciban.data.intake import input_columns, label_name, require_rows
from deciban.data.labels import Encoded, encode_labels
from deciban.data.sampling import RowSample, row_keys, sampled
from deciban.data.schema import Schema
from deciban.errors import DecibanError
from deciban.evaluation.fitted_model import FittedModel
from deciban.lazy import issparse
from deciban.linear.responses import Response
from deciban.plots.figures import Figures, cell_of, counted, plain
from deciban.types import FloatArray, IntArray

EXPLAINED = 2000  # rows, at most, that evidence is computed from
MOST_BYTES = 500_000  # of the shown rows
MOST_CELLS = 100_000  # of the shown rows: sparse ones are wide


@dataclass(frozen=True)
class ReportInput:
    """The labelled rows of a report."""

    X: Any  # as passed; in memory for a stream that can be read only once
    y: Any
    sample_weight: Any
    schema: Schema  # the features of the model
    label: str | None  # the name of the label column
    sample: Sample  # EXPLAINED rows at most; equal rows are one, with the weight of all
    whole: Sample | None  # all rows, where they are in memory
    rows: int  # of weight above 0
    weight: float  # Σ w
    squares: float  # Σ w²

    @property
    def available(self) -> Sample:
        """All rows if they are in memory, otherwise the sample."""
        return self.sample if self.whole is None else self.whole

    @property
    def weighted(self) -> bool:
        return self.sample_weight is not None

    @property
    def effective(self) -> float:
        """Σw/Σw²: the effective number of rows, (Σw)²/Σw², per unit of weight."""
        return self.weight / self.squares

    @cached_property
    def _positions(self) -> list[int]:
        return self.schema.positions(self.sample.frame)

    def position(self, j: int) -> int:
        """The position of a feature in the columns of the sample."""
        return self._positions[j]

    def column(self, j: int) -> FloatArray:
        """(n) the numbers of a feature in the sample."""
        x = self.sample.frame.counts([self.position(j)])
        return np.asarray(x.toarray() if issparse(x) else x, np.float64)[:, 0]


def read_input(
    model: FittedModel, X: Any, y: Any, sample_weight: Any, seed: int, no_features: Sequence[str] = ()
) -> ReportInput:
    """Rows as for `fit`: arrays, tables, documents, a stream. `no_features` names other columns to read."""
    if isinstance(X, DistributedRows):
        raise DecibanError("a report needs rows on this machine, and these are distributed: pass a sample of them")
    schema, label = model.schema_, label_name(X, y)
    if is_stream(X) and model.task == "classification" and not stream_of(X).single_pass:
        return retry_with_wider_types(lambda: _streamed(model, X, y, sample_weight, seed))
    encode = encode_labels if model.response_ is None or model.task == "classification" else _encoder(model.response_)
    whole = input_columns(X, y, sample_weight, model.columns_, no_features).sample(encode)
    require_rows(whole.frame)
    whole = whole if whole.weights is None or whole.weights.all() else whole.take(np.flatnonzero(whole.weights))
    schema.merge_frame(whole.frame)
    keys = row_keys(whole.frame, schema.column_refs(whole.frame), seed)
    weights = np.ones(whole.frame.rows) if whole.weights is None else whole.weights
    X, y, w = as_input(whole.frame), labels_of(whole), whole.weights
    sample = _capped(sampled(whole, keys, EXPLAINED))
    return ReportInput(
        X, y, w, schema, label, sample, whole, len(weights), float(weights.sum()), float(weights @ weights)
    )


def _capped(sample: Sample) -> Sample:
    """At most EXPLAINED rows; there may be more, since equal rows of different classes are not one."""
    return sample if sample.frame.rows <= EXPLAINED else sample.take(np.arange(EXPLAINED))


def _encoder(response: Response) -> Callable[[Any], Encoded]:
    """An encoder of numbers, with a class for each distinct one."""

    def encode(labels: Any) -> Encoded:
        values, codes = np.unique(response.check(labels), return_inverse=True)
        return Encoded(codes.astype(np.int32), tuple(values.tolist()))

    return encode


def _streamed(model: FittedModel, X: Any, y: Any, sample_weight: Any, seed: int) -> ReportInput:
    """The input from a stream: a sample of its rows, in one pass."""
    schema, rows = model.schema_, labelled_rows(X, y, sample_weight, model.columns_)
    sums = rows.summed(partial(_SampleSums.of, schema=schema, seed=seed), needs_small_batches=True)
    totals = sums.rows.rows, sums.weight, sums.squares
    return ReportInput(X, y, sample_weight, schema, label_name(X, y), _capped(sums.rows.sample()), None, *totals)


@dataclass(frozen=True)
class _SampleSums:
    """A sample of a stream, and sums of its weights."""

    rows: RowSample
    weight: float  # Σ w
    squares: float  # Σ w²

    @classmethod
    def of(cls, batch: Batch, schema: Schema, seed: int) -> _SampleSums:
        w = np.ones(len(batch.labels)) if batch.weights is None else batch.weights
        return cls(RowSample.of(batch, schema, EXPLAINED, seed), float(w.sum()), float(w @ w))

    def __add__(self, other: _SampleSums) -> _SampleSums:
        return _SampleSums(self.rows + other.rows, self.weight + other.weight, self.squares + other.squares)


def as_input(frame: Frame) -> Any:
    """A frame as X of a model's methods."""
    if isinstance(frame, (MatrixFrame, SparseFrame)):
        return frame.x
    if isinstance(frame, TextFrame):
        return list(frame.columns[0])
    if isinstance(frame, TableFrame) and isinstance(frame.names, range) and frame.kinds == ("text",):
        return frame.table.column(0).to_pylist()
    return frame


def labels_of(sample: Sample) -> NDArray[Any]:
    """(n) the label of each row."""
    classes = np.empty(len(sample.labels.classes), dtype=object)
    classes[:] = sample.labels.classes
    return classes[sample.labels.codes]


def weights_of(sample: Sample) -> FloatArray:
    return np.ones(sample.frame.rows) if sample.weights is None else sample.weights


# Rows to show --------------------------------------------------------------------------------------------------------


def shown_rows(model: FittedModel, data: ReportInput, most: int, seed: int) -> Figures:
    """The values of up to `most` rows: of each class in turn, misclassified rows first."""
    sample, schema, regression = data.sample, data.schema, model.task == "regression"
    chosen = _chosen(model, sample, most, seed)
    positions = schema.positions(sample.frame)
    most_rows = MOST_CELLS // max(1, len(positions))
    numbers, labels, cells, size = [], [], [], 0
    for row in chosen[:most_rows].tolist():
        values = _row(sample.frame, row, positions)
        size += sum(len(cell.encode("utf-8", "replace")) + 3 if isinstance(cell, str) else 8 for cell in values)
        if size > MOST_BYTES:
            break
        numbers.append(row if sample.numbers is None else int(sample.numbers[row]))
        label = sample.labels.classes[sample.labels.codes[row]]
        labels.append(plain(label) if regression else str(label))
        cells.append(values)
    order = "spread over the predictions" if regression else "of each class, misclassified rows first"
    count = f"{counted(len(cells), 'row')} of {data.rows:,}"
    all_rows = f"All {counted(data.rows, 'row')}."
    sentence = f"{count}: {order}; rows count from 0." if len(cells) < data.rows else all_rows
    return {"sentence": sentence, "numbers": numbers, "labels": labels, "cells": cells}


def _row(frame: Frame, row: int, positions: list[int]) -> list[Any]:
    if isinstance(frame, SparseFrame):
        return [float(cell) for cell in frame.x[[row]].toarray()[0][positions]]
    return [cell_of(frame.cell(row, j)) for j in positions]


def _chosen(model: FittedModel, sample: Sample, most: int, seed: int) -> IntArray:
    """The rows to show, in order: from each group (class, misclassified or not) in turn."""
    order = np.random.default_rng(seed).permutation(sample.frame.rows)
    x = as_input(sample.frame)
    if model.task == "regression":
        by_mean = np.argsort(model.predict_mean(x), kind="stable")
        return by_mean[np.unique(np.linspace(0, len(by_mean) - 1, min(most, len(by_mean))).astype(np.intp))]
    predicted = encode_labels(model.predict(x))
    classes = np.array(predicted.classes, dtype=object)[predicted.codes]
    group = 2 * sample.labels.codes + (classes == labels_of(sample))  # misclassified rows first
    group = group[order]
    turn = np.empty(len(order), np.intp)
    for g in np.unique(group):
        turn[group == g] = np.arange(np.count_nonzero(group == g))
    return order[np.lexsort((group, turn))][: max(0, most)]
