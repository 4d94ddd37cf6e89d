"""Predictions as columns of a table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from deciban.evaluation.fitted_model import FittedModel
from deciban.types import FloatArray, IntArray

# Protocols, because models of other libraries can predict too


@runtime_checkable
class Classifier(Protocol):
    classes_: Any


@runtime_checkable
class ProbabilisticClassifier(Protocol):
    def predict_proba(self, X: Any) -> FloatArray: ...


@runtime_checkable
class NamedFeatures(Protocol):
    """A model that was fitted to named columns."""

    feature_names_in_: Any


@runtime_checkable
class PredictsBoth(Protocol):
    """A model that scores rows once for labels and probabilities."""

    classes_: Any

    def predict_with_proba(self, X: Any) -> tuple[IntArray, FloatArray]: ...


@dataclass(frozen=True)
class PredictionColumns:
    """The columns `prediction` and, for each class, `proba_CLASS`.

    >>> import deciban as db
    >>> model = db.NaiveBayes().fit([["red"], ["blue"]], ["no", "yes"])
    >>> PredictionColumns(model).names
    ('prediction', 'proba_no', 'proba_yes')
    """

    model: Any
    probabilities: bool = True

    @property
    def _has_proba(self) -> bool:
        if isinstance(self.model, FittedModel):
            return self.probabilities and "predict_proba" in self.model.capabilities
        return self.probabilities and isinstance(self.model, ProbabilisticClassifier)

    @cached_property
    def _classes(self) -> list[Any]:
        return self.model.classes_.tolist() if isinstance(self.model, Classifier) else [0.0]

    @property
    def names(self) -> tuple[str, ...]:
        return ("prediction", *(f"proba_{level}" for level in self._classes if self._has_proba))

    @property
    def types(self) -> list[Any]:
        """Arrow types of the columns."""
        return [_type_of(self._classes), *(pa.float64() for _ in self.names[1:])]

    def free_names(self, existing: list[str]) -> list[str]:
        """The names, numbered where the table has such a column already; Spark ignores case."""
        used, free = {name.lower() for name in existing}, list[str]()
        for name in self.names:
            numbered = (f"{name} {number}" for number in range(2, len(existing) + len(self.names) + 2))
            free.append(next(each for each in (name, *numbered) if each.lower() not in used))
            used.add(free[-1].lower())
        return free

    def select_features(self, table: Any) -> Any:
        """The columns of an Arrow or pandas table that the model reads; others may have unsupported types."""
        names = self.model.feature_names_in_.tolist() if isinstance(self.model, NamedFeatures) else []
        arrow = isinstance(table, pa.Table)
        columns = set(map(str, table.column_names if arrow else table.columns))
        if not names or not columns.issuperset(names):
            return table
        return table.select(names) if arrow else table[names]

    def predict(self, rows: Any) -> list[Any]:
        """The columns for some rows, as Arrow arrays."""
        label = _type_of(self._classes)
        if self._has_proba and isinstance(self.model, PredictsBoth):
            indices, proba = self.model.predict_with_proba(rows)
            return [_take_labels(self.model.classes_, indices, label), *_split_columns(proba)]
        labels = [_labels(self.model.predict(rows), label)]
        return labels + _split_columns(self.model.predict_proba(rows)) if self._has_proba else labels

    def empty(self) -> list[Any]:
        """The columns for no rows."""
        no_rows = np.empty(0, np.intp)
        return [
            _take_labels(np.asarray(self._classes), no_rows, self.types[0]),
            *(pa.array([], t) for t in self.types[1:]),
        ]


def _type_of(classes: list[Any]) -> Any:
    """The type of the column of predictions; text if classes have several types.

    >>> _type_of([0, 1]), _type_of(["no", 1])
    (DataType(int64), DictionaryType(dictionary<values=string, indices=int32, ordered=0>))
    """
    kind = pa.array(classes).type if len({type(level) for level in classes}) == 1 else pa.string()
    return pa.dictionary(pa.int32(), kind) if pa.types.is_string(kind) else kind


def _labels(predicted: Any, kind: Any) -> Any:
    """Labels as an Arrow array; as text if they have several types."""
    if predicted.dtype == object:
        return pa.array([str(value) for value in predicted.tolist()], kind)
    return pa.array(predicted).cast(kind)


def _take_labels(classes: Any, indices: IntArray, kind: Any) -> Any:
    if not pa.types.is_dictionary(kind):
        return _labels(classes, kind).take(pa.array(indices))
    return pa.DictionaryArray.from_arrays(pa.array(indices.astype(np.int32)), _labels(classes, kind.value_type))


def _split_columns(proba: FloatArray) -> list[Any]:
    """(n, K) as K columns."""
    return [pa.array(column) for column in np.ascontiguousarray(proba.T)]
