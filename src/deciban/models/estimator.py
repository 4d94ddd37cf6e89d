"""What all estimators share: tables and arrays as X, a column name as y, and predictions from scores."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.utils.validation import check_array, validate_data

from deciban import _kernels
from deciban.batch import Frame
from deciban.errors import DecibanError, warn_of_impossible
from deciban.schema import Schema
from deciban.sources import frame_of, is_table, slices, split_label
from deciban.sources.labels import check_weights, encode_labels
from deciban.types import FloatArray, IntArray, Labels, Levels


@dataclass(frozen=True)
class Classified:
    """Rows to learn classes from."""

    frame: Frame
    codes: Labels  # (n) places in classes
    classes: Levels  # those that occur
    weights: FloatArray | None  # (n) all above 0
    rows: IntArray  # (n) their numbers among the rows that were passed


class TableEstimator(BaseEstimator):  # type: ignore[misc]
    """Takes X as it is: an array, sparse rows, or a table; y may be the name of one of its columns."""

    def _frame_and_labels(self, X: Any, y: Any, *, first: bool) -> tuple[Frame, Any]:
        if isinstance(y, str):
            return split_label(X, y)
        if y is None:
            name = type(self).__name__
            raise ValueError(f"This {name} estimator requires y to be passed, but the target y is None.")
        labels = one_dimensional(y)
        return self._frame(X, first=first), labels

    def _classified(self, frame: Frame, labels: Any, sample_weight: Any) -> Classified:
        """Rows with their classes; those of weight 0 are left out, as if they were not there."""
        encoded = encode_labels(labels)
        require_as_many(frame.rows, len(encoded.codes))
        require_rows(frame)
        codes, weights = encoded.codes, check_weights(sample_weight, frame.rows)
        rows = np.arange(frame.rows) if weights is None else np.flatnonzero(weights)
        if len(rows) < frame.rows and weights is not None:
            frame, codes, weights = frame.take(rows), codes[rows], weights[rows]
        kept = np.flatnonzero(np.bincount(codes, minlength=len(encoded.classes)))
        classes = tuple(encoded.classes[i] for i in kept)
        if len(kept) < len(encoded.classes):
            codes = np.searchsorted(kept, codes).astype(np.int32)
        return Classified(frame, codes, classes, weights, rows)

    def _frame(self, X: Any, *, first: bool) -> Frame:
        if is_table(X):
            return frame_of(X)
        if isinstance(X, (list, tuple)) and np.asarray(X).dtype.kind in "US":
            X = np.array(X, dtype=object)  # numbers beside text stay numbers
        checks: dict[str, Any] = {"accept_sparse": "csr", "dtype": None, "ensure_all_finite": False}
        if first:  # nothing is noted on the model yet: the fit may still fail
            return frame_of(check_array(X, estimator=self, **checks))
        return frame_of(validate_data(self, X, reset=False, **checks))

    def _frame_to_score(self, X: Any) -> Frame:
        schema = self._schema()
        frame = self._frame(X, first=False)
        schema.met_with(frame)
        return frame

    def _schema(self) -> Schema:
        """The columns that were learned from."""
        self._require_fitted()
        schema: Schema = self._fitted().schema
        return schema

    @abstractmethod
    def _fitted(self) -> Any:
        """What holds the schema; None before fit."""

    def _require_fitted(self) -> None:
        if self._fitted() is None:
            name = type(self).__name__
            raise NotFittedError(f"This {name} instance is not fitted yet: call fit first.")

    def _note_columns(self, schema: Schema) -> None:
        """What scikit-learn wants to know of the columns."""
        self.n_features_in_ = len(schema.names)
        if not schema.positional:
            self.feature_names_in_ = np.array(schema.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def require_rows(frame: Frame) -> None:
    if frame.rows == 0:
        raise DecibanError("Found array with 0 sample(s): there are no rows to learn from")


def require_as_many(rows: int, labels: int) -> None:
    if rows != labels:
        raise DecibanError(f"Found input variables with inconsistent numbers of samples: {rows} rows, {labels} labels")


class Scorer(Protocol):
    """Parameters that give every class of a row a score, up to a term common to all."""

    @property
    def log_prior(self) -> FloatArray:
        """(K) the answer for a row that is impossible under every class."""

    def joint(self, frame: Frame, out: FloatArray, first_row: int = 0) -> None:
        """out (n, K) = the scores; log p(c, x) for a generative model."""

    def converts(self, frame: Frame) -> bool:
        """Whether rows have to be turned into something else first, and so in small batches."""


class ScoringClassifier(ClassifierMixin, TableEstimator):  # type: ignore[misc]
    """Predicts the class with the largest score."""

    classes_: NDArray[Any]

    @abstractmethod
    def _scorer(self) -> Scorer: ...

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row."""
        frame, scorer = self._frame_to_score(X), self._scorer()
        chosen = np.empty(frame.rows, dtype=np.int64)
        impossible = 0
        for first, part in slices(frame, converts=scorer.converts(frame)):
            joint = np.empty((part.rows, len(self.classes_)))
            scorer.joint(part, joint, first)
            chosen[first : first + part.rows], found = _kernels.most_probable(joint, scorer.log_prior)
            impossible += found
        warn_of_impossible(impossible)
        labels: NDArray[Any] = self.classes_[chosen]
        return labels

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows classed rightly; y is an array, or the name of a column of X."""
        if isinstance(y, str):
            X, column = split_label(X, y)
            y = column.to_pylist()
        return float(super().score(X, y, sample_weight))

    def _scores(self, X: Any, finish: Callable[[FloatArray, FloatArray], int]) -> tuple[FloatArray, int]:
        """(n, K) joint log-probabilities, finished in place batch by batch, and the sum of what finishing returned."""
        frame, scorer = self._frame_to_score(X), self._scorer()
        out = np.empty((frame.rows, len(self.classes_)))
        total = 0
        for first, part in slices(frame, converts=scorer.converts(frame)):
            rows = out[first : first + part.rows]
            scorer.joint(part, rows, first)
            total += finish(rows, scorer.log_prior)
        return out, total


class ProbabilityClassifier(ScoringClassifier):
    """Scores are log-probabilities, but for a term common to all classes."""

    def predict_log_proba(self, X: Any) -> FloatArray:
        """(n, K) log p(c|x), by log-sum-exp."""
        return self._posterior(X, logs=True)

    def predict_proba(self, X: Any) -> FloatArray:
        """(n, K) p(c|x). A row impossible under every class gets the class prior, with a warning."""
        return self._posterior(X, logs=False)

    def _posterior(self, X: Any, *, logs: bool) -> FloatArray:
        out, impossible = self._scores(X, lambda joint, prior: _kernels.normalise(joint, prior, logs))
        warn_of_impossible(impossible)
        return out


def one_dimensional(y: Any) -> Any:
    shape = getattr(y, "shape", None)
    if shape is not None and len(shape) == 2 and shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples,)",
            DataConversionWarning,
            stacklevel=4,
        )
        return np.asarray(y)[:, 0]
    if shape is not None and len(shape) != 1:
        raise DecibanError(f"y should be a 1d array, got an array of shape {tuple(shape)} instead.")
    return y


def class_array(classes: tuple[Any, ...], dtype: Any) -> NDArray[Any]:
    """As the labels of the first fit were typed, while that can hold them all."""
    typed = [None] if dtype is None or dtype.kind not in "iubf" else [dtype, None]
    if len({type(c) for c in classes}) == 1:
        for wanted in typed:
            with suppress(OverflowError, ValueError):
                array = np.array(classes, dtype=wanted)
                if array.tolist() == list(classes):
                    return array
    return np.array(classes, dtype=object)
