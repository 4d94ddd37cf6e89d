"""What the generative estimators share: everything but the choice of families."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import validate_data

from deciban.batch import Frame
from deciban.errors import DecibanError, DecibanWarning
from deciban.explain import Explanation
from deciban.families import Table
from deciban.generative import ClassPrior, Estimate, Generative, Missing, Plan, Unseen, is_sparse, posterior
from deciban.schema import Schema
from deciban.sources import batches, frame_of, is_table, slices, split_label
from deciban.sources.labels import check_weights, encode_labels
from deciban.summary import Summary
from deciban.types import FloatArray


class GenerativeClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Fits by adding evidence, so it can merge, forget and go on learning; estimates when asked to predict."""

    class_prior: ClassPrior
    generative_: Generative

    @abstractmethod
    def _plans(self, schema: Schema, *, sparse: bool) -> tuple[Plan, ...]: ...

    def _smoothing(self) -> float:
        return 0.0

    def _missing(self) -> Missing:
        return "skip"

    def _unseen(self) -> Unseen:
        return "skip"

    # Learning ------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learns from rows X and their classes y: an array, or the name of a column of X."""
        fresh = self._collect(X, y, sample_weight, None, reset=True)
        self._accept(fresh, X, y)
        return self

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learns from more rows; new classes and categories are welcome. (`classes` is accepted and not needed.)"""
        if not hasattr(self, "generative_"):
            return self.fit(X, y, sample_weight)
        more = self._collect(X, y, sample_weight, self.generative_, reset=False)
        self._replace(self.generative_ + more)
        return self

    def forget(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Unlearns rows that were learned, exactly: the model is as if it had never seen them."""
        self._require_fitted()
        less = self._collect(X, y, sample_weight, self.generative_, reset=False)
        self._replace(self.generative_ - less)
        return self

    def merge(self, other: Self) -> Self:
        """A new model of the rows of both."""
        self._require_fitted()
        other._require_fitted()
        if type(self) is not type(other):
            raise DecibanError(f"a {type(self).__name__} and a {type(other).__name__} cannot be merged")
        both = self.generative_ + other.generative_
        merged: Self = type(self)(**self.get_params(deep=False))
        for name in ("n_features_in_", "feature_names_in_", "_label_dtype"):
            if hasattr(self, name):
                setattr(merged, name, getattr(self, name))
        merged._replace(both)
        return merged

    def __add__(self, other: Self) -> Self:
        return self.merge(other)

    def _collect(self, X: Any, y: Any, sample_weight: Any, known: Generative | None, *, reset: bool) -> Generative:
        frame, labels = self._frame_and_labels(X, y, reset=reset)
        encoded = encode_labels(labels)
        if len(encoded.codes) != frame.rows:
            raise DecibanError(
                f"Found input variables with inconsistent numbers of samples: {frame.rows} rows, {len(encoded.codes)} labels"
            )
        if frame.rows == 0:
            raise DecibanError("Found array with 0 sample(s): there are no rows to learn from")
        weights = check_weights(sample_weight, frame.rows)
        if known is None:
            schema = Schema.of(frame)
            plans = self._plans(schema, sparse=is_sparse(frame))
        else:
            schema, plans = known.schema, tuple(block.plan for block in known.blocks)
            places = schema.places(frame)
            schema.widened(Schema(schema.names, tuple(frame.kinds[j] for j in places)))
        total: Generative | None = None
        for batch in batches(frame, encoded, weights):
            part = Generative.observe(batch, schema, plans, self._missing())
            total = part if total is None else total + part
        assert total is not None
        return total

    def _frame_and_labels(self, X: Any, y: Any, *, reset: bool) -> tuple[Frame, Any]:
        if isinstance(y, str):
            return split_label(X, y)
        if y is None:
            name = type(self).__name__
            raise ValueError(f"This {name} estimator requires y to be passed, but the target y is None.")
        labels = _one_dimensional(y)
        return self._frame(X, reset=reset), labels

    def _frame(self, X: Any, *, reset: bool) -> Frame:
        if is_table(X):
            return frame_of(X)
        if isinstance(X, (list, tuple)) and np.asarray(X).dtype.kind in "US":
            X = np.array(X, dtype=object)  # numbers beside text stay numbers
        array = validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=None, ensure_all_finite=False, skip_check_array=False
        )
        if getattr(array, "dtype", None) == object:
            array = _numeric_if_possible(array)
        return frame_of(array)

    def _accept(self, generative: Generative, X: Any, y: Any) -> None:
        """Takes over a first fit, with what scikit-learn wants to know of it."""
        self.n_features_in_ = len(generative.schema.names)
        if not generative.schema.positional:
            self.feature_names_in_ = np.array(generative.schema.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self._label_dtype = getattr(y, "dtype", None) if isinstance(y, np.ndarray) else None
        self._replace(generative)

    def _replace(self, generative: Generative) -> None:
        self.generative_ = generative
        self._estimated: tuple[Any, Estimate] | None = None
        self.classes_ = _class_array(generative.classes, getattr(self, "_label_dtype", None))

    # What was learned ----------------------------------------------------------------------------------------------

    @property
    def estimate_(self) -> Estimate:
        """Parameters, made from the evidence at the present smoothing and class prior; no data is read for it."""
        self._require_fitted()
        settings = (self._smoothing(), self.class_prior, self._unseen())
        if self._estimated is None or not _same(self._estimated[0], settings):
            self._estimated = (settings, self.generative_.estimate(*settings))
        return self._estimated[1]

    @property
    def class_count_(self) -> FloatArray:
        """(K) the weight of the rows of each class."""
        self._require_fitted()
        return self.generative_.counts.value

    @property
    def n_parameters_(self) -> int:
        """Free parameters: K − 1 for an estimated class prior, and those of every family."""
        estimate = self.estimate_
        blocks = zip(self.generative_.blocks, estimate.params, strict=True)
        prior = len(self.classes_) - 1 if self.class_prior in ("empirical", "laplace") else 0
        return prior + sum(block.plan.family.n_parameters(params) for block, params in blocks)

    def summary(self) -> Summary:
        """Class prior and conditional tables, and what deserves a look."""
        estimate = self.estimate_
        counts = self.class_count_
        prior = np.exp(estimate.log_prior)
        rows = tuple(zip(estimate.evidence.classes, counts.tolist(), prior.tolist(), strict=True))
        tables, notes = [Table("class prior", ("class", "rows", "probability"), rows)], []
        for block, params, context in zip(self.generative_.blocks, estimate.params, estimate.contexts, strict=True):
            family = block.plan.family
            made = family.describe(params, context)
            tables += [_presence(t) for t in made] if block.plan.presence else made
            silent = [repr(context.columns[j]) for j in family.silent(params)]
            if silent and not block.plan.presence:
                notes.append(f"no evidence from {', '.join(silent[:20])} (constant, or never present)")
            if getattr(params, "status", "ok") != "ok":
                notes.append(params.status)
        n, k, d = counts.sum(), len(self.classes_), self.n_features_in_
        title = f"{type(self).__name__}: {n:g} rows, {k} classes, {d} columns, {self.n_parameters_} parameters"
        return Summary(title, tuple(tables), tuple(notes))

    # Predicting ----------------------------------------------------------------------------------------------------

    def predict_joint_log_proba(self, X: Any) -> FloatArray:
        """(n, K) log p(c) + log p(x|c)."""
        return self._score(X, lambda joint: joint)

    def predict_log_proba(self, X: Any) -> FloatArray:
        """(n, K) log p(c|x), by log-sum-exp."""
        return self._posterior(X, logs=True)

    def predict_proba(self, X: Any) -> FloatArray:
        """(n, K) p(c|x). A row impossible under every class gets the class prior, with a warning."""
        return self._posterior(X, logs=False)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row."""
        chosen: NDArray[Any] = self.classes_[self.predict_log_proba(X).argmax(axis=1)]
        return chosen

    def explain(self, X: Any) -> Explanation:
        """Every prediction as a sum of decibans, column by column."""
        frame = self._frame_to_score(X)
        estimate = self.estimate_
        names, parts = estimate.parts(frame)
        prior = np.broadcast_to(estimate.log_prior, (frame.rows, len(estimate.log_prior)))
        return Explanation(estimate.evidence.classes, ("prior", *names), np.stack([prior, *parts], axis=1))

    def _posterior(self, X: Any, *, logs: bool) -> FloatArray:
        impossible = 0
        prior = self.estimate_.log_prior

        def normalise(joint: FloatArray) -> FloatArray:
            nonlocal impossible
            impossible += posterior(joint, prior, logs=logs)
            return joint

        result = self._score(X, normalise)
        if impossible:
            warnings.warn(
                f"{impossible} rows are impossible under every class and got the class prior: raise smoothing, "
                "or choose families that allow them",
                DecibanWarning,
                stacklevel=3,
            )
        return result

    def _score(self, X: Any, finish: Any) -> FloatArray:
        frame = self._frame_to_score(X)
        estimate = self.estimate_
        out: FloatArray | None = None
        for first, part in slices(frame):
            scores = finish(estimate.joint(part, first))
            if part.rows == frame.rows:
                return scores  # type: ignore[no-any-return]
            if out is None:
                out = np.empty((frame.rows, scores.shape[1]))
            out[first : first + part.rows] = scores
        return np.zeros((0, len(self.classes_))) if out is None else out

    def _frame_to_score(self, X: Any) -> Frame:
        self._require_fitted()
        return self._frame(X, reset=False)

    def _require_fitted(self) -> None:
        if not hasattr(self, "generative_"):
            name = type(self).__name__
            raise NotFittedError(f"This {name} instance is not fitted yet: call fit first.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def _presence(table: Table) -> Table:
    title = table.title.replace(" (Bernoulli)", " is missing (Bernoulli)")
    return Table(title, table.header, table.rows, table.note)


def _numeric_if_possible(array: NDArray[Any]) -> NDArray[Any]:
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        return array


def _one_dimensional(y: Any) -> Any:
    shape = getattr(y, "shape", None)
    if shape is not None and len(shape) == 2 and shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples,)",
            DataConversionWarning,
            stacklevel=4,
        )
        return np.asarray(y)[:, 0]
    if shape is not None and len(shape) != 1:
        raise DecibanError(f"y should be a 1d array, got an array of shape {tuple(shape)} instead.")
    return y


def _class_array(classes: tuple[Any, ...], dtype: Any) -> NDArray[Any]:
    if dtype is not None and dtype.kind in "iubf":
        return np.array(classes, dtype=dtype)
    kinds = {type(c) for c in classes}
    return np.array(classes) if len(kinds) == 1 and kinds <= {str, int, bool} else np.array(classes, dtype=object)


def _same(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return all(np.array_equal(x, y) if isinstance(x, (list, np.ndarray)) else x == y for x, y in zip(a, b, strict=True))
