"""What all estimators share: tables and arrays as X, a column name as y, and predictions from scores."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.utils.validation import validate_data

from deciban import _kernels
from deciban.batch import Frame
from deciban.errors import DecibanError, warn_of_impossible
from deciban.models.saving import Savable
from deciban.models.shown import Shown
from deciban.schema import Schema
from deciban.sources import Sample, Stream, frame_of, is_documents, is_stream, is_table, slices, stream_of, supported
from deciban.sources.cells import cells_like, cells_of_classes
from deciban.sources.intake import LabelledInput, label_name, split_weights
from deciban.sources.labels import encode_labels
from deciban.sources.parted import Parted
from deciban.sources.stream import table_of
from deciban.sources.typed import as_learned, inferred
from deciban.types import FloatArray, IntArray, Labels, Levels


@dataclass(frozen=True)
class Classified:
    """Rows to learn classes from."""

    frame: Frame
    codes: Labels  # (n) places in classes
    classes: Levels  # those that occur
    weights: FloatArray | None  # (n) all above 0
    rows: IntArray  # (n) their numbers among the rows that were passed

    @classmethod
    def of(cls, sample: Sample) -> Classified:
        """Rows of weight 0 are left out, as if they were not there."""
        frame, codes, known, weights = sample.frame, sample.labels.codes, sample.labels.classes, sample.weights
        rows = np.arange(frame.rows) if weights is None else np.flatnonzero(weights)
        if len(rows) < frame.rows and weights is not None:
            frame, codes, weights = frame.take(rows), codes[rows], weights[rows]
        kept = np.flatnonzero(np.bincount(codes, minlength=len(known)))
        if len(kept) < len(known):
            codes = np.searchsorted(kept, codes).astype(np.int32)
        return cls(frame, codes, tuple(known[i] for i in kept), weights, rows)


class TableEstimator(Shown, Savable, BaseEstimator):  # type: ignore[misc]
    """Takes X as it is: an array, sparse rows, or a table; y may be the name of one of its columns."""

    _label_name: str | None = None

    _kept: ClassVar[dict[str, Any]] = {"_label_dtype": np.dtype | None, "_label_name": str | None}

    def _labelled(self, X: Any, y: Any, sample_weight: Any = None, *, first: bool) -> LabelledInput:
        """Rows with their labels; those of a stream are read into memory, as the model reads columns."""
        given = LabelledInput.of(X, one_dimensional(y), sample_weight)
        if is_stream(given.x):
            given = replace(given, x=table_of(self._stream(given.x, first=first, also=given.named)))
        return given

    def _frame_and_labels(self, X: Any, y: Any, *, first: bool, weight: Any = None) -> tuple[Frame, Any]:
        given = self._labelled(X, y, weight, first=first)
        return given.frame_and_labels(*self._frames(X, first=first))

    def _classified(self, X: Any, y: Any, sample_weight: Any, *, first: bool) -> Classified:
        as_given, typed = self._frames(X, first=first)
        return Classified.of(self._labelled(X, y, sample_weight, first=first).sample(as_given, typed=typed))

    def _frames(self, X: Any, *, first: bool) -> tuple[Callable[[Any], Frame], Callable[[Frame], Frame]]:
        """What makes a frame of rows, and what reads its columns of text as dates or numbers."""
        return partial(self._frame_as_given, first=first), partial(self._typed, X=X, first=first)

    def _stream(self, X: Any, *, first: bool, also: Collection[str] = (), learns: bool = False) -> Stream:
        """Later rows of text are read as the first ones were, and no more columns of them than are needed.

        A column that was empty so far may be anything to learn from, and does not matter otherwise.
        """
        stream = stream_of(X).knowing(also)
        if first:
            return stream.as_written(also)
        schema = self._schema()
        kinds = dict(zip(map(str, schema.names), schema.kinds, strict=True))
        levels = self._levels()
        types = {
            name: cells_like(kind, levels.get(j, ()), schema.notation(j))
            for j, (name, kind) in enumerate(kinds.items())
        }
        known = {name: cells for name, cells in types.items() if not (learns and kinds[name] == "empty")}
        return stream.typed(known).chosen((*kinds, *also))

    def _levels(self) -> Mapping[int, Levels]:
        """The values of the columns of categories, by their places, as far as they are known."""
        return {}

    def _frame(self, X: Any, *, first: bool) -> Frame:
        """Rows; text that is dates or numbers is read as such, later rows as the first ones were."""
        return self._typed(self._frame_as_given(X, first=first), X, first=first)

    def _typed(self, frame: Frame, X: Any, *, first: bool) -> Frame:
        if not first:
            return as_learned(frame, self._schema())
        return frame if is_stream(X) else inferred(frame, X)

    def _frame_as_given(self, X: Any, *, first: bool) -> Frame:
        if isinstance(X, Parted):
            raise DecibanError("these rows are in parts elsewhere: use predict of deciban.engines, on the collection")
        X = supported(X)
        if is_stream(X):
            return table_of(self._stream(X, first=first))
        if not (first or is_documents(X) or is_table(X)):  # as many columns, and a warning if those had names
            validate_data(self, X, reset=False, skip_check_array=True)
        return frame_of(X)

    def _frame_to_score(self, X: Any) -> Frame:
        schema = self._schema()
        frame = self._frame(X, first=False)
        schema.met_with(frame)
        return frame

    def _each_to_score(self, X: Any, score: Callable[[Frame, int], None]) -> None:
        """score(frame, number of its first row): of all rows at once, or as a stream brings them."""
        if not is_stream(X):
            score(self._frame_to_score(X), 0)
            return
        schema, stream, first = self._schema(), self._stream(X, first=False), 0
        schema.met_with(stream.empty)
        with stream.located():
            for frame in stream.frames():
                score(frame, first)
                first += frame.rows

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

    @property
    def label_name_(self) -> str | None:
        """The name of the label's column, if `fit` was given one."""
        self._require_fitted()
        return self._label_name

    def _note_columns(self, schema: Schema) -> None:
        """What scikit-learn wants to know of the columns."""
        self.n_features_in_ = len(schema.names)
        if not schema.positional:
            self.feature_names_in_ = np.array(schema.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _note_label(self, X: Any, y: Any) -> None:
        """How the classes were given: by a column of that name, or an array of that type."""
        self._label_name = X.label if isinstance(X, Parted) else label_name(X, y)
        dtype = X.label_dtype if isinstance(X, Parted) else y.dtype if isinstance(y, np.ndarray) else None
        self._label_dtype = dtype

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


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
        self._require_fitted()
        scorer, chosen, impossible = self._scorer(), [np.empty(0, dtype=np.int64)], 0

        def score(frame: Frame, first: int) -> None:
            nonlocal impossible
            for start, part in slices(frame, converts=scorer.converts(frame)):
                joint = np.empty((part.rows, len(self.classes_)))
                scorer.joint(part, joint, first + start)
                found, none = _kernels.most_probable(joint, scorer.log_prior)
                chosen.append(found)
                impossible += none

        self._each_to_score(X, score)
        warn_of_impossible(impossible)
        labels: NDArray[Any] = self.classes_[np.concatenate(chosen)]
        return labels

    def _labelled_stream(self, X: Any, label: str, also: Collection[str]) -> Stream:
        """A stream with a column of labels, all read as they were learned."""
        self._require_fitted()
        types = cells_of_classes(label, tuple(self.classes_.tolist()))
        return self._stream(X, first=False, also=also).typed(types)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows classed rightly; y is an array, or the name of a column of X."""
        if label_name(X, y) is not None:
            given = LabelledInput.of(X, y, sample_weight)
            if is_stream(given.x):
                given = replace(given, x=self._labelled_stream(given.x, given.y, given.named))
            frame, column = given.frame_and_labels()
            X, sample_weight = split_weights(frame, given.weights)
            y = column
        labels = encode_labels(one_dimensional(y))  # as fit reads them: objects that are true or false, say
        return float(super().score(X, class_array(labels.classes, None)[labels.codes], sample_weight))

    def _scores(self, X: Any, finish: Callable[[FloatArray, FloatArray], int]) -> tuple[FloatArray, int]:
        """(n, K) joint log-probabilities, finished in place batch by batch, and the sum of what finishing returned."""
        self._require_fitted()
        scorer, scored, total = self._scorer(), list[FloatArray](), 0

        def score(frame: Frame, first: int) -> None:
            nonlocal total
            out = np.empty((frame.rows, len(self.classes_)))
            for start, part in slices(frame, converts=scorer.converts(frame)):
                rows = out[start : start + part.rows]
                scorer.joint(part, rows, first + start)
                total += finish(rows, scorer.log_prior)
            scored.append(out)

        self._each_to_score(X, score)
        return scored[0] if len(scored) == 1 else np.concatenate([np.empty((0, len(self.classes_))), *scored]), total


class ProbabilityClassifier(ScoringClassifier):
    """Scores are log-probabilities, but for a term common to all classes."""

    def predict_log_proba(self, X: Any) -> FloatArray:
        """(n, K) log p(c|x), by log-sum-exp."""
        return self._posterior(X, logs=True)

    def predict_proba(self, X: Any) -> FloatArray:
        """(n, K) p(c|x). A row impossible under every class gets the class prior, with a warning."""
        return self._posterior(X, logs=False)

    def _judged(self, X: Any) -> tuple[IntArray, FloatArray]:
        """(n) the places of the most probable classes, and (n, K) p(c|x): rows are scored once for both."""
        chosen: list[IntArray] = [np.empty(0, dtype=np.intp)]

        def finish(joint: FloatArray, prior: FloatArray) -> int:
            chosen.append(_kernels.most_probable(joint, prior)[0])
            return _kernels.normalise(joint, prior, False)

        out, impossible = self._scores(X, finish)
        warn_of_impossible(impossible)
        return np.concatenate(chosen), out

    def _posterior(self, X: Any, *, logs: bool) -> FloatArray:
        out, impossible = self._scores(X, lambda joint, prior: _kernels.normalise(joint, prior, logs))
        warn_of_impossible(impossible)
        return out


def one_dimensional(y: Any) -> Any:
    shape = None if isinstance(y, np.generic) else getattr(y, "shape", None)  # a scalar names a column
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
