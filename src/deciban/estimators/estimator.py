"""What all estimators share: tables and arrays as X, a column name as y, and predictions from scores."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.utils.validation import validate_data

from deciban import _kernels
from deciban.contributions import By
from deciban.data import Labelled, Sample, frame_of, is_documents, is_stream, is_table, slices, supported
from deciban.data.batch import Frame
from deciban.data.column_reader import TrainedColumns
from deciban.data.distributed import DistributedRows
from deciban.data.input_types import Rows, SampleWeight, Target
from deciban.data.intake import label_name, labelled_rows, require_rows, rows_in_memory
from deciban.data.labels import encode_labels
from deciban.data.schema import Schema
from deciban.data.stream import read_table
from deciban.data.text_columns import apply_notations
from deciban.display.explanation import Explanation, require_by
from deciban.errors import DecibanError, require_scores, warn_of_impossible
from deciban.estimators.displayed import Displayed
from deciban.estimators.saving import Savable
from deciban.evaluation.fitted_model import FittedModel
from deciban.types import FloatArray, IntArray, Levels


class TableEstimator(Displayed, Savable, BaseEstimator, FittedModel):  # type: ignore[misc]
    """Takes X as it is: an array, sparse rows, or a table; y may be the name of one of its columns."""

    _label_name: str | None = None
    _label_dtype: np.dtype | None = None

    def _training_rows(self, X: Any, y: Any, sample_weight: Any) -> Labelled:
        """Rows to fit; at least one of those in memory."""
        rows = labelled_rows(X, one_dimensional(y), sample_weight)
        if isinstance(rows, Sample):
            require_rows(rows.frame)
        return rows

    def _more_rows(self, X: Any, y: Any, sample_weight: Any) -> Labelled:
        """Rows to learn from or to evaluate after a fit, read with the features of the model; there may be none."""
        self._require_fitted()
        if not isinstance(X, DistributedRows):
            self._check_features(X)
        return labelled_rows(X, one_dimensional(y), sample_weight, self.columns_.to_learn())

    @property
    def columns_(self) -> TrainedColumns:
        """The reader of the columns of new rows, which types them as those of the fit."""
        classes = () if self.task == "regression" else tuple(self.classes_.tolist())
        return TrainedColumns.of(self.schema_, self._levels(), classes)

    def _levels(self) -> Mapping[int, Levels]:
        """The values of the columns of categories, by their places, as far as they are known."""
        return {}

    def _check_features(self, X: Any) -> None:
        """Require the number of features of the fit, and warn if those had names."""
        X = supported(X)
        if not (is_documents(X) or is_table(X)):
            validate_data(self, X, reset=False, skip_check_array=True)

    def _frame_to_score(self, X: Any, also: Collection[str] = ()) -> Frame:
        """Rows to predict; `also` names columns of a stream that are read though they are no features."""
        if isinstance(X, DistributedRows):
            raise DecibanError(
                "these rows are distributed: use `predict` of deciban.engines.dask or deciban.engines.spark"
            )
        self._check_features(X)
        schema, X = self.schema_, supported(X)
        frame = apply_notations(read_table(self.columns_.stream(X, also)) if is_stream(X) else frame_of(X), schema)
        schema.merge_frame(frame)
        return frame

    def _each_to_score(self, X: Any, score: Callable[[Frame, int], None]) -> None:
        """score(frame, number of its first row): for all rows at once, or as a stream brings them."""
        if not is_stream(X):
            score(self._frame_to_score(X), 0)
            return
        schema, stream, first = self.schema_, self.columns_.stream(X), 0
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
        """The object with the schema; None before fit."""

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
        """Set n_features_in_ and feature_names_in_, as scikit-learn expects."""
        self.n_features_in_ = len(schema.names)
        if not schema.positional:
            self.feature_names_in_ = np.array(schema.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _note_label(self, X: Any, y: Any) -> None:
        """Remember the name of the label column, or the dtype of the label array."""
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

    def predict(self, X: Rows) -> NDArray[Any]:
        """Predict the most probable class of each row.

        Parameters
        ----------
        X : array-like, DataFrame, sparse matrix, list of documents, or scan
            Rows with the features of the fit. Columns of a table are matched by name; others are ignored.

        Returns
        -------
        array of shape (n,)
            Labels, as in `classes_`.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        DecibanError
            If a feature is missing or of another type; the message names it.

        See Also
        --------
        predict_proba : How probable each class is.
        explain : Why.
        """
        self._require_fitted()
        scorer, chosen, impossible = self.scorer_, [np.empty(0, dtype=np.int64)], 0

        def score(frame: Frame, first: int) -> None:
            nonlocal impossible
            for start, part in slices(frame, needs_small_batches=scorer.needs_small_batches(frame)):
                joint = np.empty((part.rows, len(self.classes_)))
                scorer.joint(part, joint, first + start)
                require_scores(joint, first + start)
                best, none = _kernels.most_probable(joint, scorer.log_prior)
                chosen.append(best)
                impossible += none

        self._each_to_score(X, score)
        warn_of_impossible(impossible)
        labels: NDArray[Any] = self.classes_[np.concatenate(chosen)]
        return labels

    def score(self, X: Rows, y: Target, sample_weight: SampleWeight | None = None) -> float:
        """The accuracy: the share of rows whose most probable class is the true one.

        Parameters
        ----------
        X : array-like, DataFrame, sparse matrix, list of documents, or scan
            The rows: (n, d) numbers or objects; a table of pandas, polars, pyarrow or duckdb; sparse counts; a list of
            texts; or a stream such as `deciban.scan(...)`, which is read in batches.
        y : array-like of shape (n,), or str
            The class of each row, or the name of the column of X that holds it.
        sample_weight : array-like of shape (n,), str or None, default None
            The weight of each row, or the name of a column of X. A weight of 2 counts the row twice, 0 leaves it out.

        Returns
        -------
        float
            From 0 to 1.

        See Also
        --------
        deciban.evaluate : Log-loss, AUC, calibration and more, from the same rows.
        """
        if label_name(X, y) is None:
            labels = encode_labels(one_dimensional(y))
        else:
            self._require_fitted()
            rows = rows_in_memory(X, y, sample_weight, self.columns_)
            X, labels, sample_weight = rows.frame, rows.labels, rows.weights
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
                require_scores(rows, first + start)
                total += finish(rows, scorer.log_prior)
            scored.append(out)

        self._each_to_score(X, score)
        return scored[0] if len(scored) == 1 else np.concatenate([np.empty((0, len(self.classes_))), *scored]), total


class ProbabilityClassifier(ScoringClassifier):
    """Scores are log-probabilities, up to a term common to all classes."""

    def predict_log_proba(self, X: Rows) -> FloatArray:
        """The logarithm of the probability of each class, log p(c|x).

        Computed by log-sum-exp: exact where the probability itself would round to 0.

        Parameters
        ----------
        X : array-like, DataFrame, sparse matrix, list of documents, or scan
            Rows with the features of the fit. Columns of a table are matched by name; others are ignored.

        Returns
        -------
        array of shape (n, K)
            Natural logarithms; columns in the order of `classes_`.

        See Also
        --------
        predict_proba : The probabilities.
        """
        return self._posterior(X, logs=True)

    def predict_proba(self, X: Rows) -> FloatArray:
        """The probability of each class, p(c|x).

        A row that is impossible under every class gets the class prior, with a warning.

        Parameters
        ----------
        X : array-like, DataFrame, sparse matrix, list of documents, or scan
            Rows with the features of the fit. Columns of a table are matched by name; others are ignored.

        Returns
        -------
        array of shape (n, K)
            Rows sum to 1; columns in the order of `classes_`.

        See Also
        --------
        predict_log_proba : Without rounding to 0.
        explain : What each feature contributes.
        """
        return self._posterior(X, logs=False)

    def predict_with_proba(self, X: Rows) -> tuple[IntArray, FloatArray]:
        """Predict classes and probabilities from one scoring of the rows.

        Parameters
        ----------
        X : array-like, DataFrame, sparse matrix, list of documents, or scan
            Rows with the features of the fit. Columns of a table are matched by name; others are ignored.

        Returns
        -------
        positions : array of shape (n,)
            The most probable classes, as positions in `classes_`.
        probabilities : array of shape (n, K)
            As `predict_proba`.
        """
        chosen: list[IntArray] = [np.empty(0, dtype=np.intp)]

        def finish(joint: FloatArray, prior: FloatArray) -> int:
            chosen.append(_kernels.most_probable(joint, prior)[0])
            return _kernels.normalise(joint, prior, False)

        out, impossible = self._scores(X, finish)
        warn_of_impossible(impossible)
        return np.concatenate(chosen), out

    def explain(self, X: Rows, *, by: By = "column") -> Explanation:
        """Explain every prediction as a sum of decibans, feature by feature.

        The prior is that of the classes, or the average row of a linear model. A joint normal is shared out to its
        features (see `deciban.families.MultivariateGaussian`). For an EvidenceClassifier a feature has its own
        evidence, its terms of the joint normals, the steps of trees that ask for it, and its share of the pairs that it
        is in (Shapley values of the two); the intercept is the bias that was fitted with the weights.

        Parameters
        ----------
        X : array-like, DataFrame, sparse matrix, list of documents, or scan
            Rows with the features of the fit. Columns of a table are matched by name; others are ignored.
        by : "column" or "pair", default "column"
            "pair" shows pairs of features that have a table of their own as separate lines.

        Returns
        -------
        Explanation
            Print it, or use `to_frame()` for all rows as a table.

        See Also
        --------
        deciban.display.explanation.Explanation : What is returned.
        """
        require_by(by)
        frame = self._frame_to_score(X)
        return Explanation.of(tuple(self.classes_.tolist()), self.scorer_.contributions(frame, by), self.schema_, frame)

    def plot_boundary(
        self,
        X: Rows,
        y: Target,
        *,
        sample_weight: SampleWeight | None = None,
        points: int = 2000,
        random_state: int | None = 0,
    ) -> Any:
        """Draw the boundaries between classes over two numeric features.

        For a generative model the class densities are drawn as contours, too, and the boundary of the equal linear
        model (`to_linear`), refined by (X, y).

        Parameters
        ----------
        X : array-like, DataFrame, sparse matrix, list of documents, or scan
            The rows: (n, d) numbers or objects; a table of pandas, polars, pyarrow or duckdb; sparse counts; a list of
            texts; or a stream such as `deciban.scan(...)`, which is read in batches.
        y : array-like of shape (n,), or str
            The class of each row, or the name of the column of X that holds it.
        sample_weight : array-like of shape (n,), str or None, default None
            The weight of each row, or the name of a column of X. A weight of 2 counts the row twice, 0 leaves it out.
        points : int, default 2000
            The largest number of rows that are drawn.
        random_state : int or None, default 0
            The seed that chooses them.

        Returns
        -------
        altair.Chart
            Needs `pip install 'deciban[plot]'`.

        Raises
        ------
        DecibanError
            If the model has not two numeric features.
        """
        from deciban.evaluation.boundary import boundary_figures
        from deciban.plots.boundary_chart import boundary

        figures = boundary_figures(self, X, y, sample_weight=sample_weight, points=points, random_state=random_state)
        return boundary(**figures)

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
