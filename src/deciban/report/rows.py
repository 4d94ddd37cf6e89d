"""Rows of a report: all of them where they are in memory, a sample to explain, and a few to show as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban.batch import Batch, Frame
from deciban.charts.figures import Figures, cell_of, counted, plain
from deciban.errors import DecibanError
from deciban.evaluation.rows import classes_of
from deciban.schema import Schema
from deciban.sources import Sample, is_stream, settled, stream_of
from deciban.sources.arrays import MatrixFrame, SparseFrame
from deciban.sources.arrow import TableFrame
from deciban.sources.documents import TextFrame
from deciban.sources.intake import LabelledInput
from deciban.sources.labels import Encoded, encode_labels
from deciban.sources.parted import Parted
from deciban.sources.sampling import Few, row_keys, sampled
from deciban.sources.typed import as_learned
from deciban.types import FloatArray, IntArray, Labels, Levels

EXPLAINED = 2000  # rows, at most, that evidence is told from
MOST_BYTES = 500_000  # of the rows that are shown
MOST_CELLS = 100_000  # of them: sparse rows are wide


@dataclass(frozen=True)
class Given:
    """What a report is made from."""

    X: Any  # as it was given, but for a reader that can be read once
    y: Any
    sample_weight: Any
    schema: Schema  # the columns that the model has learned from
    label: str | None  # the name of the label's column
    sample: Sample  # EXPLAINED rows at most; equal ones are one, with the weight of all
    whole: Sample | None  # all rows, where they are in memory
    rows: int  # of weight above 0
    weight: float  # Σ w
    squares: float  # Σ w²

    @property
    def known(self) -> Sample:
        """All rows if they are in memory, otherwise the sample."""
        return self.sample if self.whole is None else self.whole

    @property
    def weighted(self) -> bool:
        return self.sample_weight is not None

    @property
    def effective(self) -> float:
        """(Σw)²/Σw² over Σw: of how many rows that count alike each unit of weight tells as much."""
        return self.weight / self.squares


def read(model: Any, X: Any, y: Any, sample_weight: Any, seed: int, also: Sequence[str] = ()) -> Given:
    """Rows as for `fit`: arrays, tables, documents, a stream. `also` are columns of it that the model does not read."""
    if isinstance(X, Parted):
        raise DecibanError("a report reads rows here, and these are in parts elsewhere: pass a sample of them")
    passed, schema = LabelledInput.of(X, y, sample_weight), schema_of(model)
    label = passed.y if isinstance(passed.y, str) else None
    numbers = gives_numbers(model)
    if is_stream(passed.x) and not numbers and not stream_of(passed.x).once:
        return settled(lambda: _streamed(model, schema, passed, seed))
    whole = _in_memory(model, passed, also, numbers=numbers)
    schema.met_with(whole.frame)
    keys = row_keys(whole.frame, schema.places(whole.frame), seed)
    weights = np.ones(whole.frame.rows) if whole.weights is None else whole.weights
    X, y, w = given(whole.frame), labels_of(whole), whole.weights
    few = _first(sampled(whole, keys, EXPLAINED))
    return Given(X, y, w, schema, label, few, whole, len(weights), float(weights.sum()), float(weights @ weights))


def _first(sample: Sample) -> Sample:
    """No more than EXPLAINED rows: of equal rows, those of different classes are still apart."""
    return sample if sample.frame.rows <= EXPLAINED else sample.take(np.arange(EXPLAINED))


def _in_memory(model: Any, passed: LabelledInput, also: Sequence[str], *, numbers: bool) -> Sample:
    """All rows of weight above 0."""
    if is_stream(passed.x) and hasattr(model, "_stream"):
        passed = replace(passed, x=model._stream(passed.x, first=False, also=[*passed.named, *also]))
    encode = partial(_encoded_numbers, model) if numbers else encode_labels
    whole = passed.sample(encode=encode, typed=partial(as_learned, schema=schema_of(model)))
    return whole if whole.weights is None or whole.weights.all() else whole.take(np.flatnonzero(whole.weights))


def _encoded_numbers(model: Any, labels: Any) -> Encoded:
    """Responses that are numbers, each different one as a class."""
    values, codes = np.unique(model.response_.check(labels), return_inverse=True)
    return Encoded(codes.astype(np.int32), tuple(values.tolist()))


def _streamed(model: Any, schema: Schema, passed: LabelledInput, seed: int) -> Given:
    """A sample of a stream, in one pass."""
    X, named = passed.x, passed.named
    stream = model._stream(X, first=False, also=named) if hasattr(model, "_stream") else stream_of(X).knowing(named)
    rows = passed.streamed(stream, classes_of(model))
    met = rows.summed(partial(_Met.of, schema=schema, seed=seed), converts=True)
    few, label = _first(met.few.sample()), passed.y if isinstance(passed.y, str) else None
    return Given(X, passed.y, passed.weights, schema, label, few, None, met.few.rows, met.weight, met.squares)


@dataclass(frozen=True)
class _Met:
    """What a pass over a stream brings."""

    few: Few
    weight: float  # Σ w
    squares: float  # Σ w²

    @classmethod
    def of(cls, batch: Batch, schema: Schema, seed: int) -> _Met:
        w = np.ones(len(batch.labels)) if batch.weights is None else batch.weights
        return cls(Few.of(batch, schema, EXPLAINED, seed), float(w.sum()), float(w @ w))

    def __add__(self, other: _Met) -> _Met:
        return _Met(self.few + other.few, self.weight + other.weight, self.squares + other.squares)


# Models --------------------------------------------------------------------------------------------------------------


def inner(model: Any) -> Any:
    """The model that was corrected, where this is a correction of one."""
    return model.model_ if hasattr(model, "model_") else model


def schema_of(model: Any) -> Schema:
    """The columns that a model has learned from."""
    own = inner(model)
    if hasattr(own, "_schema"):
        schema: Schema = own._schema()
        return schema
    if hasattr(own, "generative_"):
        return own.generative_.schema  # type: ignore[no-any-return]
    raise DecibanError(f"{type(own).__name__} is not a fitted model of deciban: a report shows what such a one learned")


def gives_numbers(model: Any) -> bool:
    """Whether the response is a number, not a class."""
    return hasattr(model, "response_") and not hasattr(model, "predict_proba")


def given(frame: Frame) -> Any:
    """A frame as the models take X."""
    if isinstance(frame, (MatrixFrame, SparseFrame)):
        return frame.x
    if isinstance(frame, TextFrame):
        return list(frame.columns[0])
    if isinstance(frame, TableFrame) and isinstance(frame.names, range) and frame.kinds == ("text",):
        return frame.table.column(0).to_pylist()
    return frame


def places_in(classes: Levels, labels: Encoded) -> Labels:
    """(n) the place of each row's class in other classes; −1 where it is not among them."""
    place = {label: k for k, label in enumerate(classes)}
    known = np.array([*(place.get(label, -1) for label in labels.classes), -1], np.int32)
    return known[labels.codes]


def labels_of(sample: Sample) -> NDArray[Any]:
    """(n) the label of each row."""
    classes = np.empty(len(sample.labels.classes), dtype=object)
    classes[:] = sample.labels.classes
    return classes[sample.labels.codes]


def weights_of(sample: Sample) -> FloatArray:
    return np.ones(sample.frame.rows) if sample.weights is None else sample.weights


# Rows to show --------------------------------------------------------------------------------------------------------


def shown(model: Any, of: Given, most: int, seed: int) -> Figures:
    """Up to `most` rows as they are: of each class in turn, and of each those that were wrong before the others."""
    sample, schema = of.sample, of.schema
    chosen = _chosen(model, sample, most, seed)
    places = schema.own_places(sample.frame)
    most_rows = MOST_CELLS // max(1, len(places))
    numbers, labels, cells, size = [], [], [], 0
    for row in chosen[:most_rows].tolist():
        found = _row(sample.frame, row, places)
        size += sum(len(cell.encode("utf-8", "replace")) + 3 if isinstance(cell, str) else 8 for cell in found)
        if size > MOST_BYTES:
            break
        numbers.append(row if sample.numbers is None else int(sample.numbers[row]))
        label = sample.labels.classes[sample.labels.codes[row]]
        labels.append(plain(label) if gives_numbers(model) else str(label))
        cells.append(found)
    right = "of each class, those judged wrongly first" if not gives_numbers(model) else "spread over what is predicted"
    count = f"{counted(len(cells), 'row')} of {of.rows:,}"
    sentence = f"{count}: {right}; rows count from 0." if len(cells) < of.rows else f"All {counted(of.rows, 'row')}."
    return {"sentence": sentence, "numbers": numbers, "labels": labels, "cells": cells}


def _row(frame: Frame, row: int, places: list[int]) -> list[Any]:
    if isinstance(frame, SparseFrame):
        return [float(cell) for cell in frame.x[[row]].toarray()[0][places]]
    return [cell_of(frame.cell(row, j)) for j in places]


def _chosen(model: Any, sample: Sample, most: int, seed: int) -> IntArray:
    """Rows in the order in which they are shown: dealt from groups (class, right or wrong) in turn."""
    order = np.random.default_rng(seed).permutation(sample.frame.rows)
    x = given(sample.frame)
    if gives_numbers(model):
        by_mean = np.argsort(model.predict_mean(x), kind="stable")
        return by_mean[np.unique(np.linspace(0, len(by_mean) - 1, min(most, len(by_mean))).astype(np.intp))]
    predicted = encode_labels(model.predict(x))
    classes = np.array(predicted.classes, dtype=object)[predicted.codes]
    group = 2 * sample.labels.codes + (classes == labels_of(sample))  # those that are wrong come first
    group = group[order]
    turn = np.empty(len(order), np.intp)
    for g in np.unique(group):
        turn[group == g] = np.arange(np.count_nonzero(group == g))
    return order[np.lexsort((group, turn))][: max(0, most)]
