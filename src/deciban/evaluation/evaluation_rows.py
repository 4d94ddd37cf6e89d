"""Rows that models are evaluated on, in a form that models of other libraries read too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from deciban.data import column_or_values, frame_of, is_documents, is_table, split_column, supported
from deciban.data.arrow import TableFrame, numbers_of, without_views
from deciban.data.columns import column_name
from deciban.data.documents import objects_of
from deciban.data.intake import LabelledInput, require_as_many
from deciban.data.labels import check_weights, encode_labels
from deciban.errors import DecibanError
from deciban.types import FloatArray, IntArray, Labels, Levels, level_of


class NoRows(DecibanError):
    """There are no rows."""


@dataclass(frozen=True)
class EvaluationRows:
    """Rows with their classes and weights, in a form that models of other libraries read too."""

    x: Any  # a matrix, compressed sparse rows, a table of pandas or Arrow, or documents
    codes: Labels  # (n) positions in classes
    classes: Levels
    weights: FloatArray | None

    @property
    def labels(self) -> NDArray[Any]:
        return np.array(self.classes)[self.codes]

    def take(self, rows: IntArray) -> EvaluationRows:
        x = self.x.take(rows) if is_table(self.x) else self.x[rows]
        weights = None if self.weights is None else self.weights[rows]
        return EvaluationRows(x, self.codes[rows], self.classes, weights)

    def without_empty_classes(self) -> EvaluationRows:
        present = np.flatnonzero(np.bincount(self.codes, minlength=len(self.classes)))
        codes = np.searchsorted(present, self.codes).astype(np.int32)
        return EvaluationRows(self.x, codes, tuple(self.classes[i] for i in present), self.weights)


def weights_given(X: Any, sample_weight: Any) -> Any:
    """The weights of all rows; `sample_weight` may be the name of a column of X."""
    name = column_or_values(X, sample_weight, scalars=False)
    return numbers_of(_without(supported(X), name, "weight")[1]) if isinstance(name, str) else sample_weight


def labelled(X: Any, y: Any, sample_weight: Any) -> EvaluationRows:
    """Rows in memory, with y the labels or the name of a column of X. Rows of weight 0 are left out."""
    rows_in = LabelledInput.of(X, y, sample_weight)
    x, labels, weights = rows_in.x, rows_in.y, rows_in.weights
    if isinstance(labels, str):
        x, labels = _without(x, labels, "label")
    if isinstance(weights, str):
        x, column = _without(x, weights, "weight")
        weights = numbers_of(column)
    x = _readable(x)
    n = x.shape[0]
    encoded = encode_labels(labels)
    require_as_many(n, len(encoded.codes))
    if not n:
        raise NoRows("Found array with 0 sample(s): there are no rows to learn from")
    weights = check_weights(weights, n)
    rows = EvaluationRows(x, encoded.codes, encoded.classes, weights)
    return rows if weights is None or weights.all() else rows.take(np.flatnonzero(weights)).without_empty_classes()


def _without(X: Any, name: str, use: str) -> tuple[Any, Any]:
    """A table without a column, and that column."""
    frame, column = split_column(X, name, use)
    if hasattr(X, "iloc"):
        return X.loc[:, [column_name(other) != name for other in X.columns]], column
    return frame.table, column


def _readable(X: Any) -> Any:
    """A pandas table stays one, since many models read no other; all other tables become Arrow's."""
    if is_documents(X):
        return objects_of(X)
    if is_table(X):
        frame = frame_of(X)
        assert isinstance(frame, TableFrame)
        return X if hasattr(X, "iloc") else without_views(frame.table)
    return X.tocsr() if sp.issparse(X) else X


def log_proba(model: Any, x: Any) -> FloatArray:
    """(n, K) log p(c|x) by a model of any library."""
    with np.errstate(divide="ignore"):  # log 0: some libraries warn of it
        if hasattr(model, "predict_log_proba"):
            return np.asarray(model.predict_log_proba(x), dtype=np.float64)
        return np.log(np.asarray(model.predict_proba(x), dtype=np.float64))


def proba(model: Any, x: Any) -> Any:
    """(n, K) p(c|x), as the model gives it."""
    return model.predict_proba(x) if hasattr(model, "predict_proba") else np.exp(log_proba(model, x))


def classes_of(model: Any) -> Levels:
    """The classes of a fitted model, in the order of its probabilities."""
    if not hasattr(model, "classes_"):
        raise DecibanError(f"this {type(model).__name__} has no classes_: fit it first")
    return tuple(level_of(label) for label in np.asarray(model.classes_).tolist())


def require_model(model: Any, name: str) -> None:
    gives = hasattr(model, "predict_log_proba") or hasattr(model, "predict_proba")
    if isinstance(model, type):
        raise DecibanError(f"{model.__name__} is a class: pass an instance, {model.__name__}()")
    if not hasattr(model, "fit") or not gives:
        raise DecibanError(f"{name} is not a model that gives probabilities: it needs fit and predict_proba")
