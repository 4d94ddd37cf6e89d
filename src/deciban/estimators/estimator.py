"""What all estimators share: tables and arrays as X, a column name as y, and predictions from scores."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.utils.validation import validate_data

from deciban import _kernels
from deciban.contributions import By
from deciban.data import Sample, Stream, frame_of, is_documents, is_stream, is_table, slices, stream_of, supported
from deciban.data.batch import Frame
from deciban.data.cell_types import cell_type_for_kind, label_cell_types
from deciban.data.distributed import DistributedRows
from deciban.data.intake import LabelledInput, label_name, split_weights
from deciban.data.labels import encode_labels
from deciban.data.schema import Schema
from deciban.data.stream import read_table
from deciban.data.text_columns import apply_notations, infer_notations
from deciban.display.explanation import Explanation, require_by
from deciban.errors import DecibanError, warn_of_impossible
from deciban.estimators.displayed import Displayed
from deciban.estimators.saving import Savable
from deciban.evaluation.fitted_model import FittedModel
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


class TableEstimator(Displayed, Savable, BaseEstimator, FittedModel):  # type: ignore[misc]
    """Takes X as it is: an array, sparse rows, or a table; y may be the name of one of its columns."""

    _label_name: str | None = None

    _kept: ClassVar[dict[str, Any]] = {"_label_dtype": np.dtype | None, "_label_name": str | None}

    def _labelled(self, X: Any, y: Any, sample_weight: Any = None, *, first: bool) -> LabelledInput:
        """Rows with their labels; those of a stream are read into memory, as the model reads columns."""
        given = LabelledInput.of(X, one_dimensional(y), sample_weight)
        if is_stream(given.x):
            given = replace(given, x=read_table(self._stream(given.x, first=first, also=given.named)))
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
        if first:
            return stream_of(X).resolve_columns(also).keep_text(also)
        return self.stream_to_learn(X, also) if learns else self.stream_to_predict(X, also)

    def stream_to_predict(self, X: Any, also: Collection[str] = ()) -> Stream:
        """A stream with the features of the model, typed as in training, and the columns `also`."""
        return self._typed_stream(X, also, ())

    def stream_to_learn(self, X: Any, also: Collection[str] = ()) -> Stream:
        """The same; features that were empty so far may be of any type."""
        return self._typed_stream(X, also, ("empty",))

    def _typed_stream(self, X: Any, also: Collection[str], untyped: Collection[str]) -> Stream:
        schema = self.schema_
        kinds = dict(zip(map(str, schema.names), schema.kinds, strict=True))
        levels = self._levels()
        types = {
            name: cell_type_for_kind(kind, levels.get(j, ()), schema.notation(j))
            for j, (name, kind) in enumerate(kinds.items())
        }
        known = {name: cells for name, cells in types.items() if kinds[name] not in untyped}
        return stream_of(X).resolve_columns(also).with_types(known).project((*kinds, *also))

    def _levels(self) -> Mapping[int, Levels]:
        """The values of the columns of categories, by their places, as far as they are known."""
        return {}

    def _frame(self, X: Any, *, first: bool) -> Frame:
        """Rows; text that is dates or numbers is read as such, later rows as the first ones were."""
        return self._typed(self._frame_as_given(X, first=first), X, first=first)

    def _typed(self, frame: Frame, X: Any, *, first: bool) -> Frame:
        if not first:
            return apply_notations(frame, self.schema_)
        return frame if is_stream(X) else infer_notations(frame, X)

    def _frame_as_given(self, X: Any, *, first: bool) -> Frame:
        if isinstance(X, DistributedRows):
            raise DecibanError("these rows are in parts elsewhere: use predict of deciban.engines, on the collection")
        X = supported(X)
        if is_stream(X):
            return read_table(self._stream(X, first=first))
        if not (first or is_documents(X) or is_table(X)):  # as many columns, and a warning if those had names
            validate_data(self, X, reset=False, skip_check_array=True)
        return frame_of(X)

    def _frame_to_score(self, X: Any) -> Frame:
        schema = self.schema_
        frame = self._frame(X, first=False)
        schema.merge_frame(frame)
        return frame

    def _each_to_score(self, X: Any, score: Callable[[Frame, int], None]) -> None:
        """score(frame, number of its first row): of all rows at once, or as a stream brings them."""
        if not is_stream(X):
            score(self._frame_to_score(X), 0)
            return
        schema, stream, first = self.schema_, self._stream(X, first=False), 0
        schema.merge_frame(stream.empty)
        with stream.error_context():
            for frame in stream.frames():
                score(frame, first)
                first += frame.rows

    @property
    def schema_(self) -> Schema:
        """The features that the model was fitted to."""
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
        self._label_name = X.label if isinstance(X, DistributedRows) else label_name(X, y)
        dtype = X.label_dtype if isinstance(X, DistributedRows) else y.dtype if isinstance(y, np.ndarray) else None
        self._label_dtype = dtype

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


class ScoringClassifier(ClassifierMixin, TableEstimator):  # type: ignore[misc]
    """Predicts the class with the largest score."""

    classes_: NDArray[Any]

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row."""
        self._require_fitted()
        scorer, chosen, impossible = self.scorer_, [np.empty(0, dtype=np.int64)], 0

        def score(frame: Frame, first: int) -> None:
            nonlocal impossible
            for start, part in slices(frame, needs_small_batches=scorer.needs_small_batches(frame)):
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
        types = label_cell_types(label, tuple(self.classes_.tolist()))
        return self._stream(X, first=False, also=also).with_types(types)

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
        scorer, scored, total = self.scorer_, list[FloatArray](), 0

        def score(frame: Frame, first: int) -> None:
            nonlocal total
            out = np.empty((frame.rows, len(self.classes_)))
            for start, part in slices(frame, needs_small_batches=scorer.needs_small_batches(frame)):
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

    def predict_with_proba(self, X: Any) -> tuple[IntArray, FloatArray]:
        """(n) positions of the most probable classes in `classes_`, and (n, K) p(c|x), from one scoring of the rows."""
        chosen: list[IntArray] = [np.empty(0, dtype=np.intp)]

        def finish(joint: FloatArray, prior: FloatArray) -> int:
            chosen.append(_kernels.most_probable(joint, prior)[0])
            return _kernels.normalise(joint, prior, False)

        out, impossible = self._scores(X, finish)
        warn_of_impossible(impossible)
        return np.concatenate(chosen), out

    def explain(self, X: Any, *, by: By = "column") -> Explanation:
        """Every prediction as a sum of decibans, feature by feature.

        The prior is that of the classes, or the average row of a linear model. A joint normal is shared out to its
        features (see `deciban.families.MultivariateGaussian`). For an EvidenceClassifier a feature has its own
        evidence, its terms of the joint normals, the steps of trees that ask for it, and its share of the pairs that it
        is in (Shapley values of the two); the intercept is the bias that was fitted with the weights.

        Parameters
        ----------
        X : rows to explain
        by : "column" or "pair"
            "pair" shows pairs of features that have a table of their own as separate lines.
        """
        require_by(by)
        frame = self._frame_to_score(X)
        return Explanation.of(tuple(self.classes_.tolist()), self.scorer_.contributions(frame, by), self.schema_, frame)

    def plot_boundary(
        self, X: Any, y: Any, *, sample_weight: Any = None, points: int = 2000, random_state: int | None = 0
    ) -> Any:
        """The boundaries between classes over two numeric features, as an altair chart.

        With at most `points` rows of (X, y); for a generative model also the class densities as contours, and the
        boundary of the equal linear model (`to_linear`), refined by (X, y). Needs `pip install 'deciban[plot]'`.
        """
        from deciban.evaluation.boundary import boundary_figures
        from deciban.plots.boundary_chart import boundary

        options = {"sample_weight": sample_weight, "points": points, "random_state": random_state}
        return boundary(**boundary_figures(self, X, y, **options))

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
