"""Answers: what a model says of rows, as columns of a table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from deciban.models.estimator import ProbabilityClassifier
from deciban.types import FloatArray, IntArray


@dataclass(frozen=True)
class Answers:
    """The columns `prediction` and, for each class, `proba_CLASS`.

    >>> import deciban as db
    >>> model = db.NaiveBayes().fit([["red"], ["blue"]], ["no", "yes"])
    >>> Answers(model).names
    ('prediction', 'proba_no', 'proba_yes')
    """

    model: Any
    probabilities: bool = True

    @property
    def _probable(self) -> bool:
        return self.probabilities and hasattr(self.model, "predict_proba")

    @cached_property
    def _classes(self) -> list[Any]:
        return self.model.classes_.tolist() if hasattr(self.model, "classes_") else [0.0]

    @property
    def names(self) -> tuple[str, ...]:
        return ("prediction", *(f"proba_{level}" for level in self._classes if self._probable))

    @property
    def types(self) -> list[Any]:
        """Arrow's, of the columns."""
        return [_type_of(self._classes), *(pa.float64() for _ in self.names[1:])]

    def beside(self, kept: list[str]) -> list[str]:
        """The names, with a number where one is taken by a column that is kept; a and A are one name to Spark."""
        taken, found = {name.lower() for name in kept}, list[str]()
        for name in self.names:
            tries = (name, *(f"{name} {number}" for number in range(2, len(kept) + len(self.names) + 2)))
            found.append(next(free for free in tries if free.lower() not in taken))
            taken.add(found[-1].lower())
        return found

    def needed(self, table: Any) -> Any:
        """The columns of a table, of Arrow or pandas, that the model reads: others may be of any type."""
        names = getattr(getattr(self.model, "model_", self.model), "feature_names_in_", None)
        there = set(map(str, getattr(table, "column_names", None) or table.columns))
        if names is None or not there.issuperset(names.tolist()):
            return table
        return table.select(names.tolist()) if hasattr(table, "column_names") else table[names.tolist()]

    def columns(self, rows: Any) -> list[Any]:
        """Of some rows, as Arrow's arrays."""
        label = _type_of(self._classes)
        if self._probable and isinstance(self.model, ProbabilityClassifier):
            chosen, p = self.model._judged(rows)  # rows are scored once for both
            return [_chosen(self.model.classes_, chosen, label), *_apart(p)]
        found = [_labels(self.model.predict(rows), label)]
        return found + _apart(self.model.predict_proba(rows)) if self._probable else found

    def no_rows(self) -> list[Any]:
        """The columns, empty."""
        none = np.empty(0, np.intp)
        return [_chosen(np.asarray(self._classes), none, self.types[0]), *(pa.array([], t) for t in self.types[1:])]


def _type_of(classes: list[Any]) -> Any:
    """Of the column of predictions; where classes are of several types it is text.

    >>> _type_of([0, 1]), _type_of(["no", 1])
    (DataType(int64), DictionaryType(dictionary<values=string, indices=int32, ordered=0>))
    """
    kind = pa.array(classes).type if len({type(level) for level in classes}) == 1 else pa.string()
    return pa.dictionary(pa.int32(), kind) if pa.types.is_string(kind) else kind


def _labels(predicted: Any, kind: Any) -> Any:
    """Of classes of one type as they are; of several types, as text."""
    if predicted.dtype == object:
        return pa.array([str(value) for value in predicted.tolist()], kind)
    return pa.array(predicted).cast(kind)


def _chosen(classes: Any, places: IntArray, kind: Any) -> Any:
    """The labels at some places; a dictionary's as they are."""
    if not pa.types.is_dictionary(kind):
        return _labels(classes, kind).take(pa.array(places))
    return pa.DictionaryArray.from_arrays(pa.array(places.astype(np.int32)), _labels(classes, kind.value_type))


def _apart(p: FloatArray) -> list[Any]:
    """(n, K) as K columns."""
    return [pa.array(column) for column in np.ascontiguousarray(p.T)]
