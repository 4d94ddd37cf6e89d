"""Rows of one block in the form that its family reads, with their classes and weights."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from deciban.data.batch import Coded
from deciban.lazy import issparse
from deciban.types import FloatArray, Index, Labels


@dataclass(frozen=True)
class LabelledValues:
    """n rows of d columns: values, classes and weights.

    >>> rows = LabelledValues(np.array([[1.0, 5.0], [2.0, 6.0], [3.0, 7.0]]), np.array([0, 1, 0], np.int32))
    >>> rows.take([2, 0]).columns([1]).values
    array([[7.],
           [5.]])
    """

    values: Any  # (n, d) an array, sparse rows, Coded or Texts
    labels: Labels  # (n)
    weights: FloatArray | None = None  # (n); None: each row has weight 1

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, index: Any) -> LabelledValues:
        """Only the rows of `index`: a slice, positions or a mask."""
        weights = None if self.weights is None else self.weights[index]
        return LabelledValues(rows_of(self.values, index), self.labels[index], weights)

    def columns(self, index: Index) -> LabelledValues:
        return replace(self, values=columns_of(self.values, index))


def rows_of(values: Any, index: Any) -> Any:
    return Coded(values.codes[index], values.levels) if isinstance(values, Coded) else values[index]


def columns_of(whole: Any, index: Index) -> Any:
    """Some columns of values or parameters; those of an array are its second axis, or its only one."""
    if issparse(whole):
        return whole[:, index].toarray()
    if isinstance(whole, np.ndarray):
        return whole[index] if whole.ndim == 1 else whole[:, index]
    if isinstance(whole, tuple):
        return tuple(whole[j] for j in index)
    if is_dataclass(whole) and not isinstance(whole, type):
        return replace(whole, **{f.name: columns_of(getattr(whole, f.name), index) for f in fields(whole)})
    return whole


def contents(values: Any) -> object:
    """A hashable key of rows, equal for equal values."""
    if issparse(values):
        return values.indices.tobytes(), values.data.tobytes()
    return (values.codes if isinstance(values, Coded) else values).tobytes()
