"""GenerativeClassifier: what estimators with a class-conditional density share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Self

import numpy as np

from deciban.data import Labelled, Sample, retry_with_wider_types
from deciban.data.batch import Batch
from deciban.data.distributed import DistributedRows
from deciban.data.input_types import Rows, SampleWeight, Target
from deciban.data.sampling import RowSample
from deciban.data.schema import Schema
from deciban.display.summary import Summary
from deciban.errors import DecibanError
from deciban.estimators.additive_classifier import AdditiveClassifier, in_memory, same_prior
from deciban.estimators.first_pass import first_pass
from deciban.estimators.logistic import LogisticRegression
from deciban.estimators.to_linear import linear_equivalent
from deciban.evaluation.evaluation import Evaluation
from deciban.evaluation.fitted_model import AdditiveFit, Treatment
from deciban.evidence.uninformative import notes as reason_notes
from deciban.evidence.uninformative import reasons
from deciban.export.score_formula import ScoreFormula
from deciban.export.scorer import Scorer
from deciban.generative.classifier_state import GenerativeState
from deciban.generative.estimate import Estimate, Settings, Unseen
from deciban.generative.estimate_formulas import estimate_formula
from deciban.generative.held_out import lacks_complete_rows, leave_one_out, left_out_in_small_batches
from deciban.generative.model import Generative
from deciban.generative.plan import Families, Missing, Plan, make_plans, without_absent
from deciban.generative.selection import Selection, choose_shrinkages, has_auto_shrinkage
from deciban.table import Table
from deciban.types import Level


class GenerativeClassifier(GenerativeState, AdditiveClassifier):  # type: ignore[misc]
    """p(c|x) ∝ p(c) p(x|c), with parameters that are estimated from sufficient statistics when they are needed."""

    additive = True
    _shrinkages: Mapping[frozenset[Level], Selection] = MappingProxyType({})
    _state = GenerativeState

    @abstractmethod
    def _plans(self, schema: Schema, rows: Labelled) -> tuple[Plan, ...]:
        """Which family each feature has; only a model that chooses families looks at the rows."""

    def _smoothing(self, evidence: Generative) -> float:
        return 0.0

    def _chooses_families(self) -> bool:
        """Whether families are chosen, which reads the rows more than once."""
        return False

    def _missing(self) -> Missing:
        return "skip"

    def _families(self) -> Families:
        """The families given for features by name or position."""
        return None

    def _unseen(self) -> Unseen:
        return "skip"

    # Learning ------------------------------------------------------------------------------------------------------

    def fit(self, X: Rows, y: Target | None = None, sample_weight: SampleWeight | None = None) -> Self:
        """Learn from rows X with classes y, in one pass.

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
        DecibanError
            If rows cannot be read, or are not as many as labels; the message names the column and row.

        See Also
        --------
        partial_fit : Learn more rows without forgetting these.
        """
        schema, fresh, sample, shrinkages = retry_with_wider_types(
            lambda: self._learned(self._training_rows(X, y, sample_weight))
        )
        self._note_columns(schema)
        self._note_label(X, y)
        self._shrinkages = shrinkages
        self._replace(fresh)
        self._keep_rows(sample)
        return self

    def merge(self, other: Self) -> Self:
        """A new model of the training rows of both.

        Parameters
        ----------
        other : estimator
            A fitted model of the same kind, with the same features.

        Returns
        -------
        estimator
            The sum, with the settings of this one; both stay as they are. `a + b` and `sum(models)` are the same.

        Raises
        ------
        DecibanError
            If the models are of different kinds, or their features or families differ.
        """
        self._require_mergeable(other)
        merged = self._like_this()
        both = self.generative_ + other.generative_
        fewer, more = sorted((other, self), key=lambda model: model.class_count_.sum())
        chosen = {**fewer._shrinkages, **more._shrinkages}  # those of more rows win
        blocks = {frozenset(block.names) for block in both.blocks}
        merged._shrinkages = {names: selection for names, selection in chosen.items() if names in blocks}
        merged._replace(both)
        merged._merge_evidence(self, other)
        return merged

    def _copy_choices(self, other: Self) -> None:
        other._shrinkages = dict(self._shrinkages)

    def _learned(self, rows: Labelled) -> tuple[Schema, Generative, RowSample, dict[frozenset[Level], Selection]]:
        """Schema and statistics of training rows, a sample of them, and the shrinkages that blocks left to choose."""
        with rows.error_context():
            schema = Schema.of(rows.frame)
            seen = rows
            if self._chooses_families():
                seen = in_memory(rows, schema)
            plans = self._plans(schema, seen)
            if any(has_auto_shrinkage(plan.family) for plan in plans):
                seen = in_memory(seen, schema)
            if not isinstance(rows, DistributedRows):
                rows = seen
            fresh, sample = first_pass(rows, schema, plans, self._missing())
            if lacks_complete_rows(fresh):
                fresh = Generative.collect(rows, schema, without_absent(plans, rows), self._missing())
            return schema, fresh, sample, choose_shrinkages(fresh, seen) if isinstance(seen, Sample) else {}

    def _first_plans(self, schema: Schema) -> tuple[Plan, ...]:
        return make_plans(schema, self._families(), self._missing(), sparse=False)

    def _settings(self, evidence: Generative) -> Settings:
        """How parameters are estimated from this evidence."""
        chosen = (self._shrinkages.get(frozenset(block.names)) for block in evidence.blocks)
        shrinkages = tuple(0.0 if selection is None else selection.value for selection in chosen)
        return Settings(self._smoothing(evidence), self.class_prior, self._unseen(), shrinkages)

    def _replace(self, generative: Generative) -> None:
        super()._replace(generative)
        self._estimates: list[Estimate] = []  # the last one

    # Evaluation ----------------------------------------------------------------------------------------------------

    def leave_one_out(self, X: Rows, y: Target | None = None, sample_weight: SampleWeight | None = None) -> Evaluation:
        """Evaluate every training row by a model of all the others: exact, in one pass, without refits.

        The only row of a class is given probability 0: without it the class has no rows.

        Parameters
        ----------
        X : array-like, DataFrame, sparse matrix, list of documents, or scan
            All training rows, or some of them.
        y : array-like of shape (n,), or str, default None
            The class of each row, or the name of the column of X that holds it. Only distributed rows, which have their
            classes with them, do without.
        sample_weight : array-like of shape (n,), str or None, default None
            The weight of each row, or the name of a column of X. A weight of 2 counts the row twice, 0 leaves it out.

        Returns
        -------
        Evaluation
            Of the rows that were passed.

        Raises
        ------
        NegativeEvidence
            If a row was not learned.

        See Also
        --------
        deciban.cross_validate : By folds, for any model.

        Examples
        --------
        >>> import deciban as db
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> db.GaussianDiscriminant().fit(X, y).leave_one_out(X, y).confusion
        array([[50.,  0.,  0.],
               [ 0., 48.,  2.],
               [ 0.,  1., 49.]])
        """
        rows = self._more_rows(X, y, sample_weight)
        if not isinstance(rows, DistributedRows):
            rows = in_memory(rows)
        estimate = self.estimate_
        return rows.summed(
            partial(_evaluated_left_out, estimate), needs_small_batches=left_out_in_small_batches(estimate, rows.frame)
        )

    def additive_fit(self, rows: Labelled) -> AdditiveFit | None:
        """How this model would fit rows by adding up.

        Parameters
        ----------
        rows : Labelled
            The rows; only their features are read.

        Returns
        -------
        AdditiveFit or None
            What to collect; None where families or shrinkages have to be chosen first.
        """
        if self._chooses_families():
            return None
        model, schema = copy(self), Schema.of(rows.frame)
        plans = model._plans(schema, rows)
        if any(has_auto_shrinkage(plan.family) for plan in plans):
            return None
        return AdditiveFit(schema, plans, model._missing(), model._settings)

    # What was learned ----------------------------------------------------------------------------------------------

    @property
    def estimate_(self) -> Estimate:
        """Parameters, estimated from the statistics with the present smoothing and class prior; reads no rows."""
        self._require_fitted()
        self._require_rows()
        settings = self._settings(self.generative_)
        if not self._estimates or not _same(self._estimates[0].settings, settings):
            self._estimates[:] = [self.generative_.estimate(settings)]
        return self._estimates[0]

    @property
    def scorer_(self) -> Scorer:
        """What scores rows: `estimate_`."""
        return self.estimate_

    def score_formula(self) -> ScoreFormula:
        """The scores as formulas that need no library.

        Returns
        -------
        ScoreFormula
            What exports and the page of a report are made from.
        """
        return estimate_formula(self.estimate_)

    @property
    def n_parameters_(self) -> int:
        """The number of free parameters: K − 1 for an estimated class prior, and those of every family."""
        estimate = self.estimate_
        blocks = zip(self.generative_.blocks, estimate.params, strict=True)
        estimated = isinstance(self.class_prior, str) and self.class_prior != "uniform"
        prior = len(self.classes_) - 1 if estimated else 0
        return prior + sum(block.plan.family.n_parameters(params) for block, params in blocks)

    @property
    def columns_without_evidence_(self) -> dict[Level, str]:
        """The features that carry no evidence, and why: constant, or missing in every row, for example."""
        estimate, silent = self.estimate_, set[Level]()
        for block, params, context in zip(self.generative_.blocks, estimate.params, estimate.contexts, strict=True):
            if not block.plan.presence:
                silent |= {context.columns[j] for j in block.plan.family.silent(params)}
        return reasons(self.generative_, silent, None)

    @property
    def column_treatments_(self) -> dict[int, Treatment]:
        """What is done with each feature (by position), and why."""
        names, reasons_of = self.schema_.names, self.columns_without_evidence_
        columns = {j for plan in self.generative_.plans if not plan.presence for j in plan.columns}
        left_out = {j: f"left out: {reasons_of.get(names[j], 'no evidence')}" for j in columns}
        texts, why = left_out | self.estimate_.describe_columns(), self._family_reasons(columns)
        return {j: Treatment(text, why[j]) for j, text in texts.items()}

    def _family_reasons(self, columns: Collection[int]) -> dict[int, str]:
        """Why each of these features has its family."""
        return dict.fromkeys(columns, f"every feature of a {type(self).__name__} has this density")

    def summary(self) -> Summary:
        """What was learned, as tables.

        Returns
        -------
        Summary
            The class prior, what was chosen, importances, and the parameters of each feature in the order of the table.
        """
        estimate = self.estimate_
        notes = self.generative_.schema.notes() + reason_notes(self.columns_without_evidence_)
        placed: list[tuple[int, Table]] = []
        for block, params, context in zip(self.generative_.blocks, estimate.params, estimate.contexts, strict=True):
            family, columns = block.plan.family, block.plan.columns
            tables = family.describe(params, context)
            if block.plan.presence:
                tables = [_presence(table) for table in tables]
            by_feature = len(tables) == len(columns)
            silent = set(family.silent(params)) if by_feature else set()
            owners = columns if by_feature else columns[:1] * len(tables)
            placed += [(j, table) for i, (j, table) in enumerate(zip(owners, tables, strict=True)) if i not in silent]
            if getattr(params, "status", "ok") != "ok":
                notes.append(params.status)
        placed.sort(key=lambda pair: pair[0])
        importances = [] if self._without_evidence else [self.column_evidence_]
        tables = [self._prior_table(estimate.log_prior), *self._chosen(), *importances, *(table for _, table in placed)]
        return Summary(self._title(), tuple(tables), tuple(notes))

    def _chosen(self) -> list[Table]:
        """What was chosen by leave-one-out, and by how much."""
        rows = tuple(("shrinkage", each.value, each.decibans, each.other) for each in self._shrinkages.values())
        return [Table("chosen by leave-one-out", ("", "value", "mean decibans", "over"), rows)] if rows else []

    def to_linear(self) -> LogisticRegression:
        """The equal linear model: a softmax that is linear in the sufficient statistics of the features.

        Predictions are the same; `refine` goes on from there, to the largest conditional likelihood.

        Returns
        -------
        LogisticRegression
            A fitted model, without the path of a solver.

        Raises
        ------
        DecibanError
            If a family is not an exponential one (Uniform), or a class or value has probability 0.

        See Also
        --------
        deciban.LogisticRegression.refine : Improves it on the same rows.
        """
        estimate = self.estimate_
        if len(estimate.log_prior) < 2:
            raise DecibanError("a model of one class has no equal linear model")
        if not np.isfinite(estimate.log_prior).all():
            raise DecibanError("a class with prior 0 has no finite intercept: use another class_prior")
        return linear_equivalent(estimate, self._label_dtype)


def _evaluated_left_out(estimate: Estimate, batch: Batch) -> Evaluation:
    predictions = leave_one_out(estimate, batch)
    return Evaluation.scored(estimate.evidence.classes, predictions.labels, predictions.proba, predictions.weights)


def _presence(table: Table) -> Table:
    title = table.title.replace(" (Bernoulli)", " is missing (Bernoulli)")
    return Table(title, table.header, table.rows, table.note)


def _same(a: Settings, b: Settings) -> bool:
    alike = same_prior(a.class_prior, b.class_prior)
    return alike and replace(a, class_prior="uniform") == replace(b, class_prior="uniform")
