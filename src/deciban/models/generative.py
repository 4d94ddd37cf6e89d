"""What the generative estimators share: everything but the choice of families."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np

from deciban.batch import Frame
from deciban.errors import DecibanError
from deciban.explain import Explanation
from deciban.families import Table
from deciban.generative import ClassPrior, Estimate, Generative, Missing, Plan, Unseen, converts, is_sparse, leaving_out
from deciban.held_out import leave_one_out
from deciban.models.estimator import ProbabilityClassifier, class_array, require_as_many, require_rows
from deciban.models.logistic import LogisticRegression
from deciban.models.twin import twin_of
from deciban.schema import Schema
from deciban.sources import batches, slices
from deciban.sources.labels import Encoded, check_weights, encode_labels
from deciban.statistics import Scatter
from deciban.summary import Summary, counted_word
from deciban.types import FloatArray


class GenerativeClassifier(ProbabilityClassifier):
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
        self._note_columns(fresh.schema)
        self._label_dtype = getattr(y, "dtype", None) if isinstance(y, np.ndarray) else None
        self._replace(fresh)
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
        require_as_many(frame.rows, len(encoded.codes))
        require_rows(frame)
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

    def _replace(self, generative: Generative) -> None:
        self.classes_ = class_array(generative.classes, getattr(self, "_label_dtype", None))
        self.generative_ = generative
        self._estimates: list[tuple[Any, Estimate]] = []  # the last one made, and the settings it was made with

    # Judging -------------------------------------------------------------------------------------------------------

    def _left_out(self, X: Any, y: Any, sample_weight: Any) -> tuple[Encoded, FloatArray, FloatArray | None]:
        """(n, K) log p(c|x_i) of each row from all the others, with the labels and weights of the rows."""
        estimate = self.estimate_
        frame, labels = self._frame_and_labels(X, y, first=False)
        encoded = encode_labels(labels)
        require_as_many(frame.rows, len(encoded.codes))
        weights = check_weights(sample_weight, frame.rows)
        out = np.empty((frame.rows, len(self.classes_)))
        # small runs of dense rows: the arithmetic of the row that is left out needs arrays of their size
        for batch in batches(frame, encoded, weights, converts=not is_sparse(frame) or estimate.converts(frame)):
            rows = (
                slice(batch.first, batch.first + len(batch.labels)) if batch.rows is None else batch.first + batch.rows
            )
            out[rows] = leave_one_out(estimate, batch, self._smoothing(), self.class_prior)
        return encoded, out, weights

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
        counted = ", ".join(counted_word(n, word) for n, word in (*sizes, (self.n_parameters_, "parameter")))
        title = f"{type(self).__name__}: {counted}"
        return Summary(title, (prior, *(table for _, table in placed)), tuple(notes))

    def twin(self) -> LogisticRegression:
        """The equal linear model: a softmax that is linear in the sufficient statistics of the columns.

        Every family must be an exponential one (all but Uniform), with no probability of 0. Predictions are the same;
        `polish` of the twin goes on from there, to the largest conditional likelihood.
        """
        estimate = self.estimate_
        if len(estimate.log_prior) < 2:
            raise DecibanError("a model of one class has no twin")
        if not np.isfinite(estimate.log_prior).all():
            raise DecibanError("a class with prior 0 has no finite intercept: use another class_prior")
        return twin_of(estimate, getattr(self, "_label_dtype", None))

    def _fitted(self) -> Generative | None:
        return getattr(self, "generative_", None)

    def _scorer(self) -> Estimate:
        return self.estimate_

    # Predicting ----------------------------------------------------------------------------------------------------

    def predict_joint_log_proba(self, X: Any) -> FloatArray:
        """(n, K) log p(c) + log p(x|c)."""
        return self._scores(X, lambda joint, prior: 0)[0]

    def explain(self, X: Any) -> Explanation:
        """Every prediction as a sum of decibans, column by column."""
        frame = self._frame_to_score(X)
        estimate = self.estimate_
        names, parts = estimate.parts(frame)
        prior = np.broadcast_to(estimate.log_prior, (frame.rows, len(estimate.log_prior)))
        return Explanation(estimate.evidence.classes, ("prior", *names), np.stack([prior, *parts], axis=1))


def _never_present(frame: Frame) -> set[int]:
    """Columns of numbers without a single cell."""
    numbers = [j for j, kind in enumerate(frame.kinds) if kind != "category"]
    seen = np.zeros(len(numbers), dtype=bool)
    for _, part in slices(frame, converts=True):
        seen |= ~np.isnan(part.numbers(numbers)).all(axis=0)
    return {j for j, present in zip(numbers, seen, strict=True) if not present}


def _paired(columns: tuple[int, ...], tables: list[Table]) -> list[tuple[int, Table]]:
    """Each table with its column, or all with the first."""
    places = columns if len(tables) == len(columns) else columns[:1] * len(tables)
    return list(zip(places, tables, strict=True))


def _presence(table: Table) -> Table:
    title = table.title.replace(" (Bernoulli)", " is missing (Bernoulli)")
    return Table(title, table.header, table.rows, table.note)


def _same(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    arrays = (list, np.ndarray)
    return all(
        np.array_equal(x, y) if isinstance(x, arrays) or isinstance(y, arrays) else x == y
        for x, y in zip(a, b, strict=True)
    )
