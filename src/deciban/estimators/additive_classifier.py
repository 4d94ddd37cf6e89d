"""AdditiveClassifier: what classifiers fitted by adding up sufficient statistics share."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from deciban.contributions import ColumnEvidence
from deciban.data import Labelled, Sample, Streamed, retry_with_wider_types
from deciban.data.distributed import DistributedRows
from deciban.data.input_types import Rows, SampleWeight, Target
from deciban.data.intake import require_rows
from deciban.data.sampling import RowSample
from deciban.data.schema import Schema
from deciban.display.summary import counted_word
from deciban.errors import DecibanError
from deciban.estimators.estimator import ProbabilityClassifier, class_array
from deciban.estimators.first_pass import first_pass_or_none
from deciban.estimators.importances import RanksFeatures
from deciban.generative.estimate import ClassPrior
from deciban.generative.model import Generative
from deciban.generative.plan import Missing, Plan
from deciban.statistics import Counts
from deciban.table import Table
from deciban.types import FloatArray, Levels


class AdditiveClassifier(RanksFeatures, ProbabilityClassifier):
    """Holds the sufficient statistics of its training rows, so it can merge, forget and go on learning."""

    class_prior: ClassPrior
    generative_: Generative
    _copied: tuple[str, ...] = ("n_features_in_", "feature_names_in_", "_label_dtype", "_label_name")  # beside settings

    @abstractmethod
    def _missing(self) -> Missing:
        """How missing values are read."""

    @abstractmethod
    def _first_plans(self, schema: Schema) -> tuple[Plan, ...]:
        """The plans of features that had no values so far."""

    # Learning ------------------------------------------------------------------------------------------------------

    def partial_fit(
        self,
        X: Rows,
        y: Target | None = None,
        classes: ArrayLike | None = None,
        sample_weight: SampleWeight | None = None,
    ) -> Self:
        """Learn from more rows, which may have new classes and categories; no rows at all change nothing.

        Parameters
        ----------
        X : array-like, DataFrame, sparse matrix, list of documents, or scan
            The rows: (n, d) numbers or objects; a table of pandas, polars, pyarrow or duckdb; sparse counts; a list of
            texts; or a stream such as `deciban.scan(...)`, which is read in batches.
        y : array-like of shape (n,), or str, default None
            The class of each row, or the name of the column of X that holds it. Only distributed rows, which have their
            classes with them, do without.
        classes : array-like, or None, default None
            Ignored: accepted as by scikit-learn, but classes need not be known in advance.
        sample_weight : array-like of shape (n,), str or None, default None
            The weight of each row, or the name of a column of X. A weight of 2 counts the row twice, 0 leaves it out.

        Returns
        -------
        self : estimator
            The same model.

        Raises
        ------
        DecibanError
            If rows cannot be read, or are not as many as labels; the message names the column and row.

        See Also
        --------
        forget : The reverse.
        merge : Add a model that was fitted elsewhere.
        """
        if self._fitted() is None:
            return self.fit(X, y, sample_weight)
        more = self._statistics_of(X, y, sample_weight)
        if more is not None:
            evidence, rows = more
            require_like_labels(self.generative_.classes, evidence.classes)
            self._replace(self.generative_ + evidence)
            if self._rows_kept is not None:
                self._keep_rows(self._rows_kept + rows)
        return self

    def forget(self, X: Rows, y: Target | None = None, sample_weight: SampleWeight | None = None) -> Self:
        """Unlearn training rows, exactly: afterwards the statistics are as if they had never been seen.

        Parameters
        ----------
        X : array-like, DataFrame, sparse matrix, list of documents, or scan
            The rows: (n, d) numbers or objects; a table of pandas, polars, pyarrow or duckdb; sparse counts; a list of
            texts; or a stream such as `deciban.scan(...)`, which is read in batches.
        y : array-like of shape (n,), or str, default None
            The class of each row, or the name of the column of X that holds it. Only distributed rows, which have their
            classes with them, do without.
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
        NotInvertible
            If a family cannot subtract rows (Uniform); the model is unchanged.

        See Also
        --------
        partial_fit : Learn more rows.
        """
        self._require_fitted()
        less = self._statistics_of(X, y, sample_weight)
        if less is not None:
            fewer = self.generative_ - less[0]
            self._keep_evidence()
            self._replace(fewer)
        return self

    @abstractmethod
    def merge(self, other: Self) -> Self:
        """A new model of the training rows of both.

        Parameters
        ----------
        other : estimator
            A fitted model of the same kind.

        Returns
        -------
        estimator
            The sum; both models stay as they are. `a + b` and `sum(models)` are the same.

        Raises
        ------
        DecibanError
            If the models are of different kinds, or their features differ.
        """

    def empty_copy(self) -> Self:
        """A model with the settings, features and plans of this one, and no rows.

        For distributed rows: parts learned by `empty_copy().partial_fit(rows)` add up to the model of all rows.
        `deciban fit --like` makes such parts from files.

        Returns
        -------
        estimator
            A fitted model without rows; it cannot predict before it has learned some.

        See Also
        --------
        merge : Adds the parts.
        """
        self._require_fitted()
        other = self._like_this()
        self._copy_choices(other)
        other._replace(self.generative_ - self.generative_)
        other._keep_rows(None, self._made_evidence())
        return other

    @abstractmethod
    def _copy_choices(self, other: Self) -> None:
        """Copy to another model what the fit of this one selected."""

    def __add__(self, other: Self) -> Self:
        return self.merge(other) if isinstance(other, AdditiveClassifier) else NotImplemented

    def __radd__(self, other: object) -> Self:
        """0 + model, with which `sum(models)` begins: a copy."""
        return copy(self) if isinstance(other, int) and other == 0 else NotImplemented

    def _merge_evidence(self, one: Self, other: Self) -> None:
        """Keep the rows that both models kept, or the mean of their feature evidence, weighted by their rows."""
        a, b = one._rows_kept, other._rows_kept
        if a is not None and b is not None and one.schema_ == other.schema_:
            self._keep_rows(a + b)
            return
        first, second = one._evidence_like(self), other._evidence_like(self)
        self._keep_rows(None, first + second if first is not None and second is not None else first or second)

    def _evidence_like(self, other: Self) -> ColumnEvidence | None:
        """The evidence of features, scaled to all training rows, in the order of another model's features."""
        known, total = self._made_evidence(), float(self.class_count_.sum())
        if known is None or not total:
            return None
        names = list(self.schema_.names)
        order, times = [names.index(name) for name in other.schema_.names], total / known.weight
        return ColumnEvidence(known.absolute[order] * times, known.signed[order] * times, total)

    def _require_mergeable(self, other: AdditiveClassifier) -> None:
        self._require_fitted()
        other._require_fitted()
        if type(self) is not type(other):
            raise DecibanError(f"a {type(self).__name__} and a {type(other).__name__} cannot be merged")
        require_like_labels(self.generative_.classes, other.generative_.classes)

    def _like_this(self) -> Self:
        """An unfitted model with the settings and features of this one."""
        other: Self = type(self)(**self.get_params(deep=False))
        for name in self._copied:
            if hasattr(self, name):
                setattr(other, name, getattr(self, name))
        return other

    def _statistics_of(self, X: Any, y: Any, sample_weight: Any) -> tuple[Generative, RowSample] | None:
        """The statistics of more rows, and a sample of them; None if there are no rows."""
        known = self.generative_

        def collect() -> tuple[Generative, RowSample] | None:
            rows = self._more_rows(X, y, sample_weight)
            if isinstance(rows, Sample) and not rows.frame.rows:
                known.schema.positions(rows.frame)  # checks names; without rows there are no kinds
                return None
            schema = known.schema.merge_frame(rows.frame)
            plans = known.plans_for(lambda: self._first_plans(schema))
            return first_pass_or_none(rows, schema, plans, known.missing)

        return retry_with_wider_types(collect)

    def _levels(self) -> dict[int, Levels]:
        counted = [block for block in self.generative_.blocks if isinstance(block.statistic, Counts)]
        pairs = (zip(block.plan.columns, block.statistic.levels, strict=True) for block in counted)  # type: ignore[attr-defined]
        return {column: levels for block in pairs for column, levels in block}

    def _replace(self, generative: Generative) -> None:
        """Take new statistics, and drop what was made from the former ones."""
        self.classes_ = class_array(generative.classes, self._label_dtype)
        self.generative_ = generative

    def _restored(self) -> None:
        self._note_columns(self.generative_.schema)
        self._require_evidence_of(len(self.generative_.schema.names))
        self._replace(self.generative_)

    # What was learned ----------------------------------------------------------------------------------------------

    @property
    def class_count_(self) -> FloatArray:
        """(K) the total weight of the training rows of each class."""
        self._require_fitted()
        return self.generative_.counts.value

    @property
    @abstractmethod
    def n_parameters_(self) -> int:
        """The number of free parameters."""

    def _fitted(self) -> Generative | None:
        return self.generative_

    def _require_rows(self) -> None:
        if not self.generative_.classes:
            raise DecibanError("every row was forgotten: there is nothing to predict from until partial_fit")

    def predict_joint_log_proba(self, X: Rows) -> FloatArray:
        """The scores before they are normalised; for a generative model log p(c) + log p(x|c).

        Parameters
        ----------
        X : array-like, DataFrame, sparse matrix, list of documents, or scan
            Rows with the features of the fit. Columns of a table are matched by name; others are ignored.

        Returns
        -------
        array of shape (n, K)
            Comparable between rows, unlike probabilities: a row with low scores for all classes is unlike the training
            rows.

        See Also
        --------
        predict_log_proba : Normalised.
        """
        return self._scores(X, lambda joint, prior: 0)[0]

    def _title(self) -> str:
        """The first line of a summary: the class of the model, and its sizes."""
        counts = self.class_count_
        sizes = (counts.sum(), "row"), (len(counts), "class"), (self.n_features_in_, "column")
        counted = ", ".join(counted_word(n, word) for n, word in (*sizes, (self.n_parameters_, "parameter")))
        return f"{type(self).__name__}: {counted}"

    def _prior_table(self, log_prior: FloatArray) -> Table:
        rows = zip(self.generative_.classes, self.class_count_.tolist(), np.exp(log_prior).tolist(), strict=True)
        return Table("class prior", ("class", "rows", "probability"), tuple(rows))


def require_like_labels(known: Levels, new: Levels) -> None:
    """Raise an error if 1 and "1" are classes: most likely one class, read as two types."""
    by_text, by_value = {str(label): label for label in known}, {label: label for label in known}
    for label in new:
        other = by_value.get(label, by_text.get(str(label), label))
        if type(other) is not type(label):
            raise DecibanError(
                f"the label {other!r} of one and {label!r} of the other are of different types: convert them to one; "
                "in files, read the column as a category (types={...: 'category'}, or --category)"
            )


def in_memory(rows: Labelled, schema: Schema | None = None) -> Sample:
    """Rows that can be read repeatedly: all of them, or a sample of distributed rows."""
    if isinstance(rows, DistributedRows):
        return rows.sample(schema or Schema.of(rows.frame))
    if isinstance(rows, Streamed):
        rows = rows.read()
    assert isinstance(rows, Sample)
    require_rows(rows.frame)
    return rows


def same_prior(a: ClassPrior, b: ClassPrior) -> bool:
    arrays = any(isinstance(prior, (list, np.ndarray)) for prior in (a, b))
    return bool(np.array_equal(a, b)) if arrays else a == b  # type: ignore[arg-type]
