"""CalibratedClassifier: a classifier whose probabilities are calibrated on out-of-fold predictions."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if

from deciban.contributions import By
from deciban.data import is_stream, supported
from deciban.data.class_index import ClassIndex
from deciban.data.column_reader import ColumnReader, GivenColumns
from deciban.data.input_types import Rows, SampleWeight, Target
from deciban.data.intake import NoRows, label_name
from deciban.data.sampling import seed_of
from deciban.data.schema import Schema
from deciban.display.explanation import Explanation
from deciban.display.summary import Summary
from deciban.errors import DecibanError, require
from deciban.estimators.calibration_maps import CalibrationMap, Isotonic, Temperature
from deciban.estimators.displayed import Displayed
from deciban.estimators.estimator import one_dimensional
from deciban.estimators.generative_classifier import GenerativeClassifier
from deciban.estimators.naive_bayes import NaiveBayes
from deciban.estimators.saving import Savable, kept_of
from deciban.evaluation.cross_validation import out_of_fold, stratified_folds
from deciban.evaluation.evaluation_rows import EvaluationRows, classes_of, log_proba, require_model
from deciban.evaluation.fitted_model import Calibration, FittedModel, require_fitted_model
from deciban.export.scorer import Scorer
from deciban.linear.distributed_objective import forbid_distributed
from deciban.types import FloatArray

F = TypeVar("F", bound=Callable[..., Any])
KINDS: dict[str, type[CalibrationMap]] = {"temperature": Temperature, "isotonic": Isotonic}


def _as_inner(method: F) -> F:
    """A method that a calibrated model has if its inner model has it."""
    decorated: F = available_if(lambda calibrated: hasattr(calibrated._corrected(), method.__name__))(method)
    return decorated


@dataclass(init=False, eq=False, repr=False)
class CalibratedState:
    """What a calibrated classifier has learned: attributes of the estimator, which a file holds by these names."""

    model_: Any  # of another library too, though a file holds only ours
    evidence_: CalibrationMap
    _label_name: str | None = None


class CalibratedClassifier(
    CalibratedState,
    Displayed,
    Savable,
    ClassifierMixin,  # type: ignore[misc]
    MetaEstimatorMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
    FittedModel,
):
    """Calibration: a classifier whose probabilities are corrected by its own out-of-fold predictions.

    p'(c|x) ∝ p(c|x)^β (temperature), or an increasing curve for each class (isotonic)

    Naive Bayes is often overconfident: features that repeat each other count as independent evidence. The correction is
    fitted to out-of-fold probabilities (which take a generative model no refits), and the model to all rows.

    It merges, forgets and goes on learning if the model does. Evidence for the correction adds: a merged model has that
    of both, and rows of `partial_fit` are predicted before they are learned. Rows that are forgotten leave the model
    exactly; the correction, which holds no row, stays. Fit again to calibrate again.

    Parameters
    ----------
    model : classifier with predict_proba or None, default None
        The model to correct, of this library or another. None is NaiveBayes().
    method : "temperature" or "isotonic", default "temperature"
        "temperature": p^β, normalised; predicted classes stay as they are, and the decibans of explanations are
        multiplied by β. "isotonic": an increasing curve for each class, which needs a thousand rows or more.
    cv : int, default 10
        The number of folds.
    random_state : int or None, default 0
        Seeds the assignment of rows to folds. None: another one at every fit.

    Attributes
    ----------
    model_ : classifier
        The fitted model that is corrected. What it has learned is there: `model_.summary()`, `model_.weights_`.
    evidence_ : Temperature or Isotonic
        The correction. It adds like all evidence; `curves` of an isotonic one are what it does to probabilities.
    beta_ : float
        The power of "temperature". Below 1 the model was overconfident; near 1 it needs no correction.
    classes_ : array of shape (K,)
        The classes, sorted. Columns of `predict_proba` are in this order.
    feature_importances_ : array of shape (n_features_in_,)
        Those of the model, times β for "temperature". Use them to see which features matter.
    importances_ : array of shape (n_features_in_,) or None
        `feature_importances_`, but None instead of an error where they are unknown.
    base_model_ : estimator
        The model below all corrections, if it is one of this library.
    calibrations_ : tuple
        All corrections, the first to apply first.
    evidence_scale_ : float
        β of all corrections: what decibans of `base_model_` are multiplied by.
    scorer_ : Scorer
        What scores rows, before the correction: that of `base_model_`.
    n_features_in_ : int
        The number of features. Arrays to predict need as many columns.
    feature_names_in_ : array of shape (n_features_in_,)
        The names of the features; only if X had names.
    label_name_ : str or None
        The column that y named, or None. Commands read the labels of other files from the column of this name.
    schema_ : Schema
        Names and kinds of the features, as `base_model_` has them.
    columns_ : ColumnReader
        Reads the columns of new rows as the model does. For engines and the command line.
    column_treatments_ : dict of int to Treatment
        What is done with each feature (by position), and why, in words. Read it to check how a column was understood.
    columns_without_evidence_ : dict
        Empty: see that of `base_model_`.
    class_count_ : None
        See that of `base_model_`.
    family_comparisons_ : tuple
        Empty: see that of `base_model_`.
    linear_fit_ : None
        See that of `base_model_`.

    See Also
    --------
    deciban.EvidenceClassifier : Calibrated by itself.
    deciban.Evaluation.calibration : Shows whether probabilities are calibrated.

    Examples
    --------
    >>> import deciban as db
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> plain, better = db.NaiveBayes(), db.CalibratedClassifier(db.NaiveBayes())
    >>> for model in (plain, better):
    ...     print(round(db.cross_validate(model, X, y).log_loss, 2))
    0.69
    0.15
    >>> round(better.fit(X, y).beta_, 2)  # thirty features that hold the information of five
    0.13
    """

    def __init__(
        self,
        model: Any = None,
        method: Literal["temperature", "isotonic"] = "temperature",
        cv: int = 10,
        random_state: int | None = 0,
    ) -> None:
        self.model = model
        self.method = method
        self.cv = cv
        self.random_state = random_state

    _state = CalibratedState

    # Learning ------------------------------------------------------------------------------------------------------

    def fit(self, X: Rows, y: Target | None = None, sample_weight: SampleWeight | None = None) -> Self:
        """Fit the model to all rows, and its correction to out-of-fold predictions of copies.

        Parameters
        ----------
        X : array-like, DataFrame, sparse matrix, list of documents, or scan
            The rows: (n, d) numbers or objects; a table of pandas, polars, pyarrow or duckdb; sparse counts; a list of
            texts; or a stream such as `deciban.scan(...)`, which is read in batches.
        y : array-like of shape (n,), or str, default None
            The class of each row, or the name of the column of X that holds it.
        sample_weight : array-like of shape (n,), str or None, default None
            The weight of each row, or the name of a column of X. A weight of 2 counts the row twice, 0 leaves it out.

        Returns
        -------
        self : estimator
            The same model.

        Raises
        ------
        DecibanError
            If there is one row only, the rows are distributed, or the model cannot read them.
        """
        return self._fit(X, y, sample_weight, lambda model, *rows, **weights: model.fit(*rows, **weights))

    def _fit(self, X: Any, y: Any, sample_weight: Any, learn: Callable[..., Any]) -> Self:
        kind = self._kind()
        forbid_distributed(X, self)
        require_model(self._inner(), f"model={self._inner()!r}")
        model = clone(self._inner())
        X, y = supported(X), one_dimensional(y)
        name = label_name(X, y)
        if name is not None:
            named = EvaluationRows.of(X, y, sample_weight)
            X, y, sample_weight = named.x, named.labels, named.weights
        learn(model, X, y, **_weight_argument(sample_weight))  # first: its messages about bad input are the better ones
        rows = EvaluationRows.of(X, y, sample_weight)
        folds = min(self._folds(), len(rows.codes))
        if folds < 2:
            raise DecibanError("calibration needs two rows at least, n_samples=1 is too few to hold one out")
        log_p = np.empty((len(rows.codes), len(rows.classes)))
        for part in out_of_fold(model, rows, stratified_folds(rows.codes, folds, seed_of(self.random_state))):
            log_p[part.rows] = part.log_p
        self.model_, self.evidence_ = model, kind.of(log_p, rows.codes, rows.classes, rows.weights)
        self._label_name = name
        self._note()
        return self

    @_as_inner
    def partial_fit(
        self,
        X: Rows,
        y: Target | None = None,
        classes: ArrayLike | None = None,
        sample_weight: SampleWeight | None = None,
    ) -> Self:
        """Predict more rows with the model as it is, for the correction, then learn them.

        Rows of new classes are only learned. No rows at all change nothing.

        Parameters
        ----------
        X : array-like, DataFrame, sparse matrix, list of documents, or scan
            The rows: (n, d) numbers or objects; a table of pandas, polars, pyarrow or duckdb; sparse counts; a list of
            texts; or a stream such as `deciban.scan(...)`, which is read in batches.
        y : array-like of shape (n,), or str, default None
            The class of each row, or the name of the column of X that holds it.
        classes : array-like, or None, default None
            All classes, for the first call with a model of another library that asks for them.
        sample_weight : array-like of shape (n,), str or None, default None
            The weight of each row, or the name of a column of X. A weight of 2 counts the row twice, 0 leaves it out.

        Returns
        -------
        self : estimator
            The same model.

        Raises
        ------
        DecibanError
            If `method` was changed after the fit.
        """
        forbid_distributed(X, self)
        if not hasattr(self, "model_"):
            if classes is None:
                return self.fit(X, y, sample_weight)
            more = {"classes": classes}  # which models of other libraries ask for
            return self._fit(X, y, sample_weight, lambda model, *rows, **w: model.partial_fit(*rows, **more, **w))
        if not isinstance(self.evidence_, self._kind()):
            raise DecibanError(f"method was changed to {self.method!r} after the fit: fit again")
        try:
            rows = EvaluationRows.of(X, y, sample_weight, self.columns_)
            if is_stream(X):  # which is read once
                X, y, sample_weight = rows.x, rows.labels, rows.weights
            X = supported(X)
        except NoRows:
            if isinstance(self.model_, GenerativeClassifier):
                self.model_.partial_fit(X, y, sample_weight=sample_weight)  # learns nothing, and checks the columns
            return self
        known = classes_of(self.model_)
        codes = ClassIndex(known).recode(rows.codes, rows.classes)
        known_rows = rows.take(np.flatnonzero(codes >= 0))
        evidence = self.evidence_
        if len(known_rows.codes):
            evidence = evidence + type(self.evidence_).of(
                log_proba(self.model_, known_rows.x), codes[codes >= 0], known, known_rows.weights
            )
        self.model_.partial_fit(X, y, **_weight_argument(sample_weight))
        self.evidence_ = evidence
        self._note()
        return self

    @_as_inner
    def forget(self, X: Rows, y: Target | None = None, sample_weight: SampleWeight | None = None) -> Self:
        """Unlearn training rows, exactly; the correction stays as it is.

        Parameters
        ----------
        X : array-like, DataFrame, sparse matrix, list of documents, or scan
            The rows: (n, d) numbers or objects; a table of pandas, polars, pyarrow or duckdb; sparse counts; a list of
            texts; or a stream such as `deciban.scan(...)`, which is read in batches.
        y : array-like of shape (n,), or str, default None
            The class of each row, or the name of the column of X that holds it.
        sample_weight : array-like of shape (n,), str or None, default None
            The weight of each row, or the name of a column of X. A weight of 2 counts the row twice, 0 leaves it out.

        Returns
        -------
        self : estimator
            The same model.

        Raises
        ------
        NegativeEvidence
            If the rows were not learned; the model is unchanged.
        """
        self._require_fitted()
        self.model_.forget(X, y, sample_weight)
        self._note()
        return self

    @_as_inner
    def merge(self, other: Self) -> Self:
        """A new model of the training rows of both, corrected by the evidence of both.

        Parameters
        ----------
        other : CalibratedClassifier
            A fitted model with the same method, of a model of the same kind.

        Returns
        -------
        CalibratedClassifier
            The sum; both stay as they are. `a + b` and `sum(models)` are the same.

        Raises
        ------
        DecibanError
            If methods or models are of different kinds.
        """
        self._require_fitted()
        if not isinstance(other, CalibratedClassifier):
            raise DecibanError(f"a CalibratedClassifier and a {type(other).__name__} cannot be merged")
        other._require_fitted()
        if type(self.evidence_) is not type(other.evidence_):
            raise DecibanError(f"corrections by {self.method} and by {other.method} cannot be merged")
        merged: Self = clone(self)
        merged.model_, merged.evidence_ = self.model_.merge(other.model_), self.evidence_ + other.evidence_
        merged._label_name = self._label_name
        merged._note()
        return merged

    def __add__(self, other: Self) -> Self:
        if not isinstance(other, CalibratedClassifier):
            return NotImplemented
        merged: Self = self.merge(other)
        return merged

    def __radd__(self, other: object) -> Self:
        """0 + model, with which `sum(models)` begins: a copy."""
        if not (isinstance(other, int) and other == 0):
            return NotImplemented
        same = copy(self)
        same.model_ = copy(self.model_)
        return same

    # What was learned ----------------------------------------------------------------------------------------------

    @property
    def beta_(self) -> float:
        """The power that probabilities are raised to; its reciprocal is the temperature."""
        self._require_fitted()
        beta: float | None = getattr(self.evidence_, "beta", None)
        if beta is None:
            raise AttributeError("an isotonic correction is a curve, not a temperature: see evidence_.curves")
        return beta

    @property
    def base_model_(self) -> FittedModel:
        """The model that is corrected."""
        self._require_fitted()
        return require_fitted_model(self.model_).base_model_

    @property
    def calibrations_(self) -> tuple[Calibration, ...]:
        """The correction, after those of the model that is corrected."""
        inner: tuple[Calibration, ...] = self.model_.calibrations_ if isinstance(self.model_, FittedModel) else ()
        return (*inner, self.evidence_)

    @property
    def evidence_scale_(self) -> float:
        """β, which the decibans of the model are multiplied by."""
        return self.beta_ * require_fitted_model(self.model_).evidence_scale_

    @property
    def schema_(self) -> Schema:
        """The features that the model was fitted to."""
        return self.base_model_.schema_

    @property
    def scorer_(self) -> Scorer:
        """What scores rows, before the correction."""
        return self.base_model_.scorer_

    @property
    def importances_(self) -> FloatArray | None:
        """`feature_importances_`, or None where they are not known."""
        inner = self.model_.importances_ if isinstance(self.model_, FittedModel) else None
        return inner * self.beta_ if inner is not None and self._is_temperature() else inner

    @property
    def label_name_(self) -> str | None:
        """The name of the label's column, if `fit` was given one."""
        self._require_fitted()
        return self._label_name

    @_as_inner
    def summary(self) -> Summary:
        """What was learned, as tables.

        Returns
        -------
        Summary
            That of the model, led by the correction.
        """
        self._require_fitted()
        inner = self.model_.summary()
        tables = (*self.evidence_.tables(), *inner.tables)
        return Summary(f"Calibrated ({self.method}) {inner.title}", tables, inner.notes)

    # Predicting ----------------------------------------------------------------------------------------------------

    def predict_log_proba(self, X: Rows) -> FloatArray:
        """The logarithm of the corrected probability of each class, log p'(c|x).

        Parameters
        ----------
        X : array-like, DataFrame, sparse matrix, list of documents, or scan
            Rows with the features of the fit. Columns of a table are matched by name; others are ignored.

        Returns
        -------
        array of shape (n, K)
            Natural logarithms; columns in the order of `classes_`.
        """
        self._require_fitted()
        return self.evidence_.corrected(log_proba(self.model_, supported(X)), classes_of(self.model_))

    def predict_proba(self, X: Rows) -> FloatArray:
        """The corrected probability of each class, p'(c|x).

        Parameters
        ----------
        X : array-like, DataFrame, sparse matrix, list of documents, or scan
            Rows with the features of the fit. Columns of a table are matched by name; others are ignored.

        Returns
        -------
        array of shape (n, K)
            Rows sum to 1; columns in the order of `classes_`.
        """
        p: FloatArray = np.exp(self.predict_log_proba(X))
        return p

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
        """
        self._require_fitted()
        if isinstance(self.evidence_, Temperature):
            labels: NDArray[Any] = self.model_.predict(supported(X))
            return labels
        return np.asarray(self.classes_[self.predict_log_proba(X).argmax(axis=1)])

    @available_if(lambda self: hasattr(self._corrected(), "explain") and self._is_temperature())  # type: ignore[untyped-decorator]
    def explain(self, X: Rows, *, by: By = "column") -> Explanation:
        """Explain every prediction as a sum of decibans: those of the model, each multiplied by β.

        Only for "temperature", and models that explain.

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
        """
        self._require_fitted()
        explanation: Explanation = self.model_.explain(X, by=by)
        return replace(explanation, nats=explanation.nats * self.beta_)

    @property
    def feature_importances_(self) -> FloatArray:
        """Those of the model that is corrected; for temperature in decibans after the correction, multiplied by β."""
        self._require_fitted()
        own: FloatArray = self.model_.feature_importances_
        return own * self.beta_ if self._is_temperature() else own

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
        """
        self._require_fitted()
        if is_stream(X) or label_name(X, y) is not None:
            rows = EvaluationRows.of(X, y, sample_weight, self.columns_)
            X, y, sample_weight = rows.x, rows.labels, rows.weights
        return float(super().score(X, y, sample_weight))

    # Checks --------------------------------------------------------------------------------------------------------

    def _inner(self) -> Any:
        return NaiveBayes() if self.model is None else self.model

    def _corrected(self) -> Any:
        """The model that is corrected: the fitted one if there is one, whatever `model` is now."""
        return getattr(self, "model_", self._inner())

    def _is_temperature(self) -> bool:
        """Whether the correction, fitted or to be fitted, multiplies decibans."""
        return isinstance(self.evidence_, Temperature) if hasattr(self, "evidence_") else self.method == "temperature"

    def _kind(self) -> type[CalibrationMap]:
        if self.method not in KINDS:
            raise DecibanError(f"method must be {' or '.join(map(repr, KINDS))}, not {self.method!r}")
        return KINDS[self.method]

    @property
    def columns_(self) -> ColumnReader:
        """As the model that is corrected reads them."""
        inner = self.model_
        return inner.columns_ if isinstance(inner, FittedModel) else GivenColumns(classes_of(inner))

    def _folds(self) -> int:
        if not isinstance(self.cv, (int, np.integer)) or self.cv < 2:
            raise DecibanError(f"cv must be a whole number of 2 or more, not {self.cv!r}")
        return int(self.cv)

    def _require_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise NotFittedError("This CalibratedClassifier instance is not fitted yet: call fit first.")

    def _note(self) -> None:
        """Copy the attributes that scikit-learn expects from the inner model."""
        for name in ("classes_", "n_features_in_", "feature_names_in_"):
            if hasattr(self.model_, name):
                setattr(self, name, getattr(self.model_, name))
            elif hasattr(self, name):
                delattr(self, name)

    def _restored(self) -> None:
        require(self.model is None or isinstance(self.model, Savable), "model is no model")
        fitted = isinstance(self.model_, Savable) and kept_of(self.model_)
        require(fitted and hasattr(self.model_, "predict_proba"), "model_ is no fitted classifier")
        self._note()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._inner())
        tags.input_tags = inner.input_tags
        return tags


def _weight_argument(sample_weight: Any) -> dict[str, Any]:
    return {} if sample_weight is None else {"sample_weight": sample_weight}
