"""CalibratedClassifier: a classifier whose probabilities are corrected by how they fared on rows it had not seen."""

from __future__ import annotations

from collections.abc import Callable, Collection
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if

from deciban.contributions import By
from deciban.errors import DecibanError
from deciban.evaluation.judging import deal, out_of_fold
from deciban.evaluation.rows import NoRows, classes_of, labelled, log_proba, require_model
from deciban.explain import Explanation
from deciban.linear.parted import forbid_parted
from deciban.models.calibration import Evidence, Isotonic, Temperature
from deciban.models.estimator import one_dimensional
from deciban.models.generative import GenerativeClassifier
from deciban.models.naive_bayes import NaiveBayes
from deciban.models.saving import Savable, kept_of
from deciban.models.shown import Shown
from deciban.sources import Stream, is_stream, stream_of, supported
from deciban.sources.cells import cells_of_classes
from deciban.sources.intake import LabelledInput, label_name
from deciban.sources.sampling import seed_of
from deciban.statistics.base import require
from deciban.summary import Summary
from deciban.types import FloatArray

F = TypeVar("F", bound=Callable[..., Any])
KINDS: dict[str, type[Evidence]] = {"temperature": Temperature, "isotonic": Isotonic}


def _as_inner(method: F) -> F:
    """A method that a calibrated model has where its inner model has it."""
    decorated: F = available_if(lambda calibrated: hasattr(calibrated._inner(), method.__name__))(method)
    return decorated


class CalibratedClassifier(Shown, Savable, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """p'(c|x) = a correction of p(c|x), learned from what a model says of rows that it has not learned.

    Naive Bayes is often too sure: columns that repeat each other count as independent evidence. The correction is
    learned from out-of-fold probabilities (which cost a generative model no refits), and the model from all rows.

    Parameters
    ----------
    model : a classifier with predict_proba, of this library or another; None is NaiveBayes()
    method : "temperature" or "isotonic"
        p^β, divided by the sum: one number, which keeps the order of classes, so predictions stay as they are; and
        explanations, whose decibans are all multiplied by β. Or any rising curve for each class, for which
        there should be a thousand rows or more.
    cv : number
        How many folds.
    random_state : number or None
        How rows are dealt to the folds. None: another way at every fit.

    It merges, forgets and goes on learning where the model does. Evidence for the correction adds: that of a merged
    model is that of both; rows of `partial_fit` are judged before they are learned. Rows that are forgotten leave the
    model exactly; what was seen of its calibration, which holds no row, stays. Fit again to learn it anew.

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
    >>> round(better.fit(X, y).beta_, 2)  # thirty columns that say what five could
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

    evidence_: Evidence
    _label_name: str | None = None
    _kept: ClassVar[dict[str, Any]] = {
        "model_": Savable,
        "evidence_": Temperature | Isotonic,
        "_label_name": str | None,
    }

    # Learning ------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learns the model from all rows, and its correction from what copies say of folds they have not learned."""
        return self._fit(X, y, sample_weight, lambda model, *rows, **weights: model.fit(*rows, **weights))

    def _fit(self, X: Any, y: Any, sample_weight: Any, learn: Callable[..., Any]) -> Self:
        kind = self._kind()
        forbid_parted(X, self)
        require_model(self._inner(), f"model={self._inner()!r}")
        model = clone(self._inner())
        X, y = supported(X), one_dimensional(y)
        name = label_name(X, y)
        if name is not None:
            named = labelled(X, y, sample_weight)
            X, y, sample_weight = named.x, named.labels, named.weights
        learn(model, X, y, **_weighing(sample_weight))  # first: its messages about bad input are the better ones
        rows = labelled(X, y, sample_weight)
        folds = min(self._folds(), len(rows.codes))
        if folds < 2:
            raise DecibanError("calibration needs two rows at least, n_samples=1 is too few to hold one out")
        log_p = np.empty((len(rows.codes), len(rows.classes)))
        for found in out_of_fold(model, rows, deal(rows.codes, folds, seed_of(self.random_state))):
            log_p[found.rows] = found.log_p
        self.model_, self.evidence_ = model, kind.of(log_p, rows.codes, rows.classes, rows.weights)
        self._label_name = name
        self._note()
        return self

    @_as_inner
    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """Judges more rows by the model as it is, then learns them. Rows of a class not met before are only learned.

        No rows at all change nothing.
        """
        forbid_parted(X, self)
        if not hasattr(self, "model_"):
            if classes is None:
                return self.fit(X, y, sample_weight)
            more = {"classes": classes}  # which models of other libraries ask for
            return self._fit(X, y, sample_weight, lambda model, *rows, **w: model.partial_fit(*rows, **more, **w))
        if not isinstance(self.evidence_, self._kind()):
            raise DecibanError(f"method was changed to {self.method!r} after the fit: fit again")
        try:
            if is_stream(X):  # which is read once
                X, y, sample_weight = self._read(X, y, sample_weight)
            X = supported(X)
            rows = labelled(X, y, sample_weight)
        except NoRows:
            if isinstance(self.model_, GenerativeClassifier):
                self.model_.partial_fit(X, y, sample_weight=sample_weight)  # learns nothing, and checks the columns
            return self
        known = classes_of(self.model_)
        place = np.array([known.index(label) if label in known else -1 for label in rows.classes], dtype=np.int32)
        met = rows.take(np.flatnonzero(place[rows.codes] >= 0))
        evidence = self.evidence_
        if len(met.codes):
            evidence = evidence + type(self.evidence_).of(
                log_proba(self.model_, met.x), place[met.codes], known, met.weights
            )
        self.model_.partial_fit(X, y, **_weighing(sample_weight))
        self.evidence_ = evidence
        self._note()
        return self

    @_as_inner
    def forget(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Unlearns rows, exactly; the correction stays as it is."""
        self._require_fitted()
        self.model_.forget(X, y, sample_weight)
        self._note()
        return self

    @_as_inner
    def merge(self, other: Self) -> Self:
        """A new model of the rows of both, corrected by the evidence of both."""
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
        """0 + model, which is what `sum(models)` begins with: a copy."""
        if not (isinstance(other, int) and other == 0):
            return NotImplemented
        found = copy(self)
        found.model_ = copy(self.model_)
        return found

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
    def label_name_(self) -> str | None:
        """The name of the label's column, if `fit` was given one."""
        self._require_fitted()
        return self._label_name

    @_as_inner
    def summary(self) -> Summary:
        """The model's summary, led by the correction."""
        self._require_fitted()
        found = self.model_.summary()
        return Summary(
            f"Calibrated ({self.method}) {found.title}", (*self.evidence_.tables(), *found.tables), found.notes
        )

    # Predicting ----------------------------------------------------------------------------------------------------

    def predict_log_proba(self, X: Any) -> FloatArray:
        """(n, K) log p'(c|x)."""
        self._require_fitted()
        return self.evidence_.corrected(log_proba(self.model_, supported(X)), classes_of(self.model_))

    def predict_proba(self, X: Any) -> FloatArray:
        """(n, K) p'(c|x)."""
        p: FloatArray = np.exp(self.predict_log_proba(X))
        return p

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row."""
        self._require_fitted()
        if isinstance(self.evidence_, Temperature):
            labels: NDArray[Any] = self.model_.predict(supported(X))
            return labels
        return np.asarray(self.classes_[self.predict_log_proba(X).argmax(axis=1)])

    @available_if(lambda self: hasattr(self._inner(), "explain") and self.method == "temperature")  # type: ignore[untyped-decorator]
    def explain(self, X: Any, *, by: By = "column") -> Explanation:
        """Every prediction as a sum of decibans: the model's, each multiplied by β."""
        self._require_fitted()
        found: Explanation = self.model_.explain(X, by=by)
        return replace(found, nats=found.nats * self.beta_)

    @property
    def feature_importances_(self) -> FloatArray:
        """Those of the model that is corrected; for temperature in decibans after the correction, multiplied by β."""
        self._require_fitted()
        own: FloatArray = self.model_.feature_importances_
        return own * self.beta_ if self.method == "temperature" else own

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows classed rightly; y is an array, or the name of a column of X."""
        self._require_fitted()
        if is_stream(X):
            X, y, sample_weight = self._read(X, y, sample_weight)
        elif label_name(X, y) is not None:
            rows = labelled(X, y, sample_weight)
            X, y, sample_weight = rows.x, rows.labels, rows.weights
        return float(super().score(X, y, sample_weight))

    # Checks --------------------------------------------------------------------------------------------------------

    def _inner(self) -> Any:
        return NaiveBayes() if self.model is None else self.model

    def _kind(self) -> type[Evidence]:
        if self.method not in KINDS:
            raise ValueError(f"method must be {' or '.join(map(repr, KINDS))}, not {self.method!r}")
        return KINDS[self.method]

    def _read(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        """The rows of a stream, read as the model has learned its columns, with their labels and weights."""
        given = LabelledInput.of(X, y, sample_weight)
        stream = self._stream(given.x, first=False, also=given.named)
        if isinstance(given.y, str):
            stream = stream.typed(cells_of_classes(given.y, classes_of(self.model_)))
        rows = labelled(stream, given.y, given.weights)
        return rows.x, rows.labels, rows.weights

    def _stream(self, X: Any, *, first: bool, also: Collection[str] = ()) -> Stream:
        """As the inner model reads streams."""
        if first or not hasattr(self.model_, "_stream"):
            return stream_of(X).knowing(also)
        stream: Stream = self.model_._stream(X, first=False, also=also)
        return stream

    def _folds(self) -> int:
        if not isinstance(self.cv, (int, np.integer)) or self.cv < 2:
            raise ValueError(f"cv must be a whole number of 2 or more, not {self.cv!r}")
        return int(self.cv)

    def _require_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise NotFittedError("This CalibratedClassifier instance is not fitted yet: call fit first.")

    def _note(self) -> None:
        """What scikit-learn wants to know of the model."""
        for name in ("classes_", "n_features_in_", "feature_names_in_"):
            if hasattr(self.model_, name):
                setattr(self, name, getattr(self.model_, name))
            elif hasattr(self, name):
                delattr(self, name)

    def _restored(self) -> None:
        require(self.model is None or isinstance(self.model, Savable), "model is no model")
        require(hasattr(self.model_, "predict_proba") and kept_of(self.model_), "model_ is no fitted classifier")
        self._note()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._inner())
        tags.input_tags = inner.input_tags
        return tags


def _weighing(sample_weight: Any) -> dict[str, Any]:
    return {} if sample_weight is None else {"sample_weight": sample_weight}
