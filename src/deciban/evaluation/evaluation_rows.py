"""Labelled rows for evaluation, in a form that models of other libraries accept, too."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from deciban.data import is_documents, is_table, supported
from deciban.data.arrow import TableFrame, without_views
from deciban.data.batch import Frame
from deciban.data.column_reader import AS_GIVEN, ColumnReader
from deciban.data.columns import column_name
from deciban.data.documents import objects_of
from deciban.data.intake import rows_in_memory
from deciban.errors import DecibanError
from deciban.types import FloatArray, IntArray, Labels, Levels, level_of


@dataclass(frozen=True)
class EvaluationRows:
    """Rows with their classes and weights, in a form that models of other libraries accept, too."""

    x: Any  # a matrix, compressed sparse rows, a table of pandas or Arrow, or documents
    codes: Labels  # (n) positions in classes
    classes: Levels
    weights: FloatArray | None  # (n) all above 0
    kept: IntArray  # (n) the positions of these rows in X
    passed: int  # the number of rows of X

    @classmethod
    def of(cls, X: Any, y: Any, sample_weight: Any, columns: ColumnReader = AS_GIVEN) -> EvaluationRows:
        """Rows as for `fit`, in memory. Rows of weight 0 are left out."""
        all_rows = rows_in_memory(X, y, sample_weight, columns)
        rows = all_rows.nonzero()
        x = _features(supported(X), all_rows.frame)
        if rows.numbers is not None:
            x = _take(x, rows.numbers)
        return cls(x, rows.labels.codes, rows.labels.classes, rows.weights, rows.row_numbers, all_rows.frame.rows)

    @property
    def labels(self) -> NDArray[Any]:
        return np.array(self.classes)[self.codes]

    def take(self, rows: IntArray) -> EvaluationRows:
        weights = None if self.weights is None else self.weights[rows]
        return replace(self, x=_take(self.x, rows), codes=self.codes[rows], weights=weights, kept=self.kept[rows])


def _take(x: Any, rows: IntArray) -> Any:
    return x.take(rows) if is_table(x) else x[rows]


def _features(X: Any, frame: Frame) -> Any:
    """The features of X, of which `frame` was made; a pandas table stays one, since many models accept no other."""
    if is_documents(X):
        return objects_of(X)
    if hasattr(X, "iloc"):
        features = {*map(str, frame.names)}
        columns = [column_name(name) in features for name in X.columns]
        return X if all(columns) else X.loc[:, columns]
    if isinstance(frame, TableFrame) and is_table(X):
        return without_views(frame.table)
    return X.tocsr() if sp.issparse(X) else X


def log_proba(model: Any, x: Any) -> FloatArray:
    """(n, K) log p(c|x) by a model of any library."""
    with np.errstate(divide="ignore"):  # log 0: some libraries warn of it
        if hasattr(model, "predict_log_proba"):
            return np.asarray(model.predict_log_proba(x), dtype=np.float64)
        return np.log(np.asarray(model.predict_proba(x), dtype=np.float64))


def proba(model: Any, x: Any) -> Any:
    """(n, K) p(c|x), in the type that the model returns."""
    return model.predict_proba(x) if hasattr(model, "predict_proba") else np.exp(log_proba(model, x))


def classes_of(model: Any) -> Levels:
    """The classes of a fitted model, in the order of its probabilities."""
    if not hasattr(model, "classes_"):
        raise DecibanError(f"this {type(model).__name__} has no classes_: fit it first")
    return tuple(level_of(label) for label in np.asarray(model.classes_).tolist())


def require_model(model: Any, name: str) -> None:
    """Raise an error unless this is an instance of a classifier with probabilities."""
    has_proba = hasattr(model, "predict_log_proba") or hasattr(model, "predict_proba")
    if isinstance(model, type):
        raise DecibanError(f"{model.__name__} is a class: pass an instance, {model.__name__}()")
    if not hasattr(model, "fit") or not has_proba:
        raise DecibanError(f"{name} is not a model with probabilities: it needs fit and predict_proba")
