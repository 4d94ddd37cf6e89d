"""What the generative estimators share: everything but the choice of families."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.utils.validation import check_array, validate_data

from deciban import _kernels
from deciban.batch import Frame
from deciban.errors import DecibanError, warn
from deciban.explain import Explanation
from deciban.families import Table
from deciban.generative import ClassPrior, Estimate, Generative, Missing, Plan, Unseen, converts, is_sparse, leaving_out
from deciban.schema import Schema
from deciban.sources import batches, frame_of, is_table, slices, split_label
from deciban.sources.labels import Encoded, check_weights, encode_labels
from deciban.statistics import Scatter
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
        fresh = self._collect(X, y, sample_weight, None)
        self._accept(fresh, X, y)
        return self

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learns from more rows; new classes and categories are welcome. (`classes` is accepted and not needed.)"""
        if not hasattr(self, "generative_"):
            return self.fit(X, y, sample_weight)
        more = self._collect(X, y, sample_weight, self.generative_)
        self._replace(self.generative_ + more)
        return self

    def forget(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Unlearns rows that were learned, exactly: the model is as if it had never seen them."""
        self._require_fitted()
        less = self._collect(X, y, sample_weight, self.generative_)
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
        return self.merge(other) if isinstance(other, GenerativeClassifier) else NotImplemented

    def _collect(self, X: Any, y: Any, sample_weight: Any, known: Generative | None) -> Generative:
        frame, labels = self._frame_and_labels(X, y, first=known is None)
        encoded = encode_labels(labels)
        if len(encoded.codes) != frame.rows:
            raise DecibanError(
                "Found input variables with inconsistent numbers of samples: "
                f"{frame.rows} rows, {len(encoded.codes)} labels"
            )
        if frame.rows == 0:
            raise DecibanError("Found array with 0 sample(s): there are no rows to learn from")
        weights = check_weights(sample_weight, frame.rows)
        if known is not None:
            plans = tuple(block.plan for block in known.blocks)
            return self._observe(frame, encoded, weights, known.schema.met_with(frame), plans)
        schema = Schema.of(frame)
        plans = self._plans(schema, sparse=is_sparse(frame))
        fresh = self._observe(frame, encoded, weights, schema, plans)
        if any(isinstance(b.statistic, Scatter) and not b.statistic.count.value.any() for b in fresh.blocks):
            absent = _never_present(frame)
            if absent:
                return self._observe(frame, encoded, weights, schema, leaving_out(plans, absent))
        return fresh

    def _observe(
        self, frame: Frame, labels: Encoded, weights: FloatArray | None, schema: Schema, plans: tuple[Plan, ...]
    ) -> Generative:
        total: Generative | None = None
        for batch in batches(frame, labels, weights, converts=converts(plans, frame)):
            part = Generative.observe(batch, schema, plans, self._missing())
            total = part if total is None else total + part
        assert total is not None
        return total

    def _frame_and_labels(self, X: Any, y: Any, *, first: bool) -> tuple[Frame, Any]:
        if isinstance(y, str):
            return split_label(X, y)
        if y is None:
            name = type(self).__name__
            raise ValueError(f"This {name} estimator requires y to be passed, but the target y is None.")
        labels = _one_dimensional(y)
        return self._frame(X, first=first), labels

    def _frame(self, X: Any, *, first: bool) -> Frame:
        if is_table(X):
            return frame_of(X)
        if isinstance(X, (list, tuple)) and np.asarray(X).dtype.kind in "US":
            X = np.array(X, dtype=object)  # numbers beside text stay numbers
        checks: dict[str, Any] = {"accept_sparse": "csr", "dtype": None, "ensure_all_finite": False}
        if first:  # nothing is noted on the model yet: the fit may still fail
            return frame_of(check_array(X, estimator=self, **checks))
        return frame_of(validate_data(self, X, reset=False, **checks))

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
        self.classes_ = _class_array(generative.classes, getattr(self, "_label_dtype", None))
        self.generative_ = generative
        self._estimates: list[tuple[Any, Estimate]] = []  # the last one made, and the settings it was made with

    # What was learned ----------------------------------------------------------------------------------------------

    @property
    def estimate_(self) -> Estimate:
        """Parameters, made from the evidence at the present smoothing and class prior; no data is read for it."""
        self._require_fitted()
        if not self.generative_.classes:
            raise DecibanError("every row was forgotten: there is nothing to predict from until partial_fit")
        settings = (self._smoothing(), self.class_prior, self._unseen())
        if not self._estimates or not _same(self._estimates[0][0], settings):
            self._estimates[:] = [(settings, self.generative_.estimate(*settings))]
        return self._estimates[0][1]

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
        estimated = isinstance(self.class_prior, str) and self.class_prior != "uniform"
        prior = len(self.classes_) - 1 if estimated else 0
        return prior + sum(block.plan.family.n_parameters(params) for block, params in blocks)

    def summary(self) -> Summary:
        """Class prior and conditional tables in the order of the columns, and what deserves a look."""
        estimate, counts = self.estimate_, self.class_count_
        rows = tuple(zip(estimate.evidence.classes, counts.tolist(), np.exp(estimate.log_prior).tolist(), strict=True))
        notes: list[str] = []
        placed: list[tuple[int, Table]] = []
        silent: list[int] = []
        for block, params, context in zip(self.generative_.blocks, estimate.params, estimate.contexts, strict=True):
            family, columns = block.plan.family, block.plan.columns
            tables = family.describe(params, context)
            if block.plan.presence:
                tables = [_presence(table) for table in tables]
            apart = len(tables) == len(columns)  # one table for each column
            quiet = set(family.silent(params)) if apart else set()
            placed += [pair for i, pair in enumerate(_paired(columns, tables)) if i not in quiet]
            if not block.plan.presence:
                silent += [columns[j] for j in family.silent(params)]
            if getattr(params, "status", "ok") != "ok":
                notes.append(params.status)
        if silent:
            shown = ", ".join(repr(self.generative_.schema.names[j]) for j in sorted(silent)[:20])
            notes.insert(0, f"no evidence from {shown} (constant, never present, or nothing tells the classes apart)")
        placed.sort(key=lambda pair: pair[0])
        prior = Table("class prior", ("class", "rows", "probability"), rows)
        sizes = (counts.sum(), "row"), (len(counts), "class"), (self.n_features_in_, "column")
        counted = ", ".join(_number(n, word) for n, word in (*sizes, (self.n_parameters_, "parameter")))
        title = f"{type(self).__name__}: {counted}"
        return Summary(title, (prior, *(table for _, table in placed)), tuple(notes))

    # Predicting ----------------------------------------------------------------------------------------------------

    def predict_joint_log_proba(self, X: Any) -> FloatArray:
        """(n, K) log p(c) + log p(x|c)."""
        return self._scores(X, lambda joint, prior: 0)[0]

    def predict_log_proba(self, X: Any) -> FloatArray:
        """(n, K) log p(c|x), by log-sum-exp."""
        return self._posterior(X, logs=True)

    def predict_proba(self, X: Any) -> FloatArray:
        """(n, K) p(c|x). A row impossible under every class gets the class prior, with a warning."""
        return self._posterior(X, logs=False)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row."""
        frame, estimate = self._frame_to_score(X), self.estimate_
        chosen = np.empty(frame.rows, dtype=np.int64)
        impossible = 0
        for first, part in slices(frame, converts=self._converts(frame)):
            joint = np.empty((part.rows, len(self.classes_)))
            estimate.joint(part, joint, first)
            chosen[first : first + part.rows], found = _kernels.most_probable(joint, estimate.log_prior)
            impossible += found
        _warn_of_impossible(impossible)
        labels: NDArray[Any] = self.classes_[chosen]
        return labels

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows classed rightly; y is an array, or the name of a column of X."""
        if isinstance(y, str):
            X, column = split_label(X, y)
            y = column.to_pylist()
        return float(super().score(X, y, sample_weight))

    def explain(self, X: Any) -> Explanation:
        """Every prediction as a sum of decibans, column by column."""
        frame = self._frame_to_score(X)
        estimate = self.estimate_
        names, parts = estimate.parts(frame)
        prior = np.broadcast_to(estimate.log_prior, (frame.rows, len(estimate.log_prior)))
        return Explanation(estimate.evidence.classes, ("prior", *names), np.stack([prior, *parts], axis=1))

    def _posterior(self, X: Any, *, logs: bool) -> FloatArray:
        out, impossible = self._scores(X, lambda joint, prior: _kernels.normalise(joint, prior, logs))
        _warn_of_impossible(impossible)
        return out

    def _scores(self, X: Any, finish: Callable[[FloatArray, FloatArray], int]) -> tuple[FloatArray, int]:
        """(n, K) joint log-probabilities, finished in place batch by batch, and the sum of what finishing returned."""
        frame, estimate = self._frame_to_score(X), self.estimate_
        out = np.empty((frame.rows, len(self.classes_)))
        total = 0
        for first, part in slices(frame, converts=self._converts(frame)):
            rows = out[first : first + part.rows]
            estimate.joint(part, rows, first)
            total += finish(rows, estimate.log_prior)
        return out, total

    def _converts(self, frame: Frame) -> bool:
        return converts([block.plan for block in self.generative_.blocks], frame)

    def _frame_to_score(self, X: Any) -> Frame:
        self._require_fitted()
        frame = self._frame(X, first=False)
        self.generative_.schema.met_with(frame)
        return frame

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


def _warn_of_impossible(rows: int) -> None:
    if rows:
        which = "1 row is" if rows == 1 else f"{rows} rows are"
        warn(
            f"{which} impossible under every class and got the class prior: raise smoothing, "
            "or choose families that allow such cells"
        )


def _never_present(frame: Frame) -> set[int]:
    """Columns of numbers without a single cell."""
    numbers = [j for j, kind in enumerate(frame.kinds) if kind != "category"]
    seen = np.zeros(len(numbers), dtype=bool)
    for _, part in slices(frame, converts=True):
        seen |= ~np.isnan(part.numbers(numbers)).all(axis=0)
    return {j for j, present in zip(numbers, seen, strict=True) if not present}


def _number(n: float, word: str) -> str:
    plural = "es" if word.endswith("s") else "s"
    return f"{n:.15g} {word}{'' if n == 1 else plural}"


def _paired(columns: tuple[int, ...], tables: list[Table]) -> list[tuple[int, Table]]:
    """Each table with its column, or all with the first."""
    places = columns if len(tables) == len(columns) else columns[:1] * len(tables)
    return list(zip(places, tables, strict=True))


def _presence(table: Table) -> Table:
    title = table.title.replace(" (Bernoulli)", " is missing (Bernoulli)")
    return Table(title, table.header, table.rows, table.note)


def _one_dimensional(y: Any) -> Any:
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


def _class_array(classes: tuple[Any, ...], dtype: Any) -> NDArray[Any]:
    """As the labels of the first fit were typed, while that can hold them all."""
    typed = [None] if dtype is None or dtype.kind not in "iubf" else [dtype, None]
    if len({type(c) for c in classes}) == 1:
        for wanted in typed:
            with suppress(OverflowError, ValueError):
                array = np.array(classes, dtype=wanted)
                if array.tolist() == list(classes):
                    return array
    return np.array(classes, dtype=object)


def _same(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    arrays = (list, np.ndarray)
    return all(
        np.array_equal(x, y) if isinstance(x, arrays) or isinstance(y, arrays) else x == y
        for x, y in zip(a, b, strict=True)
    )
