"""What the generative estimators share: everything but the choice of families."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from deciban.batch import Batch
from deciban.choices import Choice
from deciban.choosing import choose_shrinkages, columns_of, leaves_shrinkage
from deciban.contributions import By, ColumnEvidence
from deciban.errors import DecibanError
from deciban.evaluation.evaluation import Evaluation
from deciban.explain import Explanation, require_by
from deciban.families import Table
from deciban.generative import ClassPrior, Estimate, Generative, Settings, Unseen
from deciban.held_out import Foretold, in_small_runs, lacks_whole_rows, leave_one_out, out_of_fold
from deciban.models.estimator import ProbabilityClassifier, class_array, one_dimensional
from deciban.models.first_pass import first_pass, first_pass_or_none
from deciban.models.importances import RanksFeatures
from deciban.models.logistic import LogisticRegression
from deciban.models.twin import twin_of
from deciban.plans import Families, Missing, Plan, make_plans, without_absent
from deciban.schema import Schema
from deciban.sources import Labelled, Sample, Streamed, is_stream, settled
from deciban.sources.intake import LabelledInput, require_rows
from deciban.sources.labels import Encoded
from deciban.sources.parted import Parted
from deciban.sources.sampling import Few
from deciban.statistics import Counts
from deciban.summary import Summary, counted_word
from deciban.types import FloatArray, IntArray, Level, Levels
from deciban.weighing.reasons import notes as reason_notes
from deciban.weighing.reasons import reasons


class GenerativeClassifier(RanksFeatures, ProbabilityClassifier):
    """Fits by adding evidence, so it can merge, forget and go on learning; estimates when asked to predict."""

    class_prior: ClassPrior
    generative_: Generative
    _shrinkages: Mapping[frozenset[Level], Choice] = MappingProxyType({})  # of blocks that leave theirs to be chosen
    _kept = ProbabilityClassifier._kept | {
        "generative_": Generative,
        "_shrinkages": Mapping[frozenset[Level], Choice],
        "_column_evidence": ColumnEvidence | None,
    }

    @abstractmethod
    def _plans(self, schema: Schema, rows: Labelled) -> tuple[Plan, ...]:
        """Which families read which columns. Only a model that chooses among families looks at the rows."""

    def _smoothing(self, evidence: Generative) -> float:
        return 0.0

    def _reads_to_choose(self) -> bool:
        """Whether families are chosen, which takes more than one look at the rows."""
        return False

    def _missing(self) -> Missing:
        return "skip"

    def _families(self) -> Families:
        """Those that were given for columns by their names or positions."""
        return None

    def _unseen(self) -> Unseen:
        return "skip"

    # Learning ------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learns from rows X and their classes y: an array, or the name of a column of X."""
        schema, fresh, kept, shrinkages = settled(lambda: self._learned(self._sample(X, y, sample_weight, first=True)))
        self._note_fit(schema, X, y)
        self._shrinkages = shrinkages
        self._replace(fresh)
        self._keep_rows(kept)
        return self

    def _note_fit(self, schema: Schema, X: Any, y: Any) -> None:
        self._note_columns(schema)
        self._note_label(X, y)

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learns from more rows; new classes and categories are welcome. (`classes` is accepted and not needed.)

        No rows at all, an empty array, table or file, change nothing.
        """
        if not hasattr(self, "generative_"):
            return self.fit(X, y, sample_weight)
        more = self._more(X, y, sample_weight)
        if more is not None:
            evidence, rows = more
            require_like_labels(self.generative_.classes, evidence.classes)
            self._replace(self.generative_ + evidence)
            if self._rows_kept is not None:
                self._keep_rows(self._rows_kept + rows)
        return self

    def forget(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Unlearns rows that were learned, exactly: the model is as if it had never seen them."""
        self._require_fitted()
        less = self._more(X, y, sample_weight)
        if less is not None:
            fewer = self.generative_ - less[0]
            self._keep_evidence()
            self._replace(fewer)
        return self

    def merge(self, other: Self) -> Self:
        """A new model of the rows of both."""
        self._require_mergeable(other)
        merged = self._like_this()
        both = self.generative_ + other.generative_
        fewer, more = sorted((other, self), key=lambda model: model.class_count_.sum())
        chosen = {**fewer._shrinkages, **more._shrinkages}  # by rows that are not there any more: the more, the better
        blocks = {columns_of(block, both) for block in both.blocks}
        merged._shrinkages = {columns: choice for columns, choice in chosen.items() if columns in blocks}
        merged._replace(both)
        merged._merge_evidence(self, other)
        return merged

    def empty_copy(self) -> Self:
        """A model that reads columns as this one does, and has learned no rows.

        For rows elsewhere: parts that are learned by `empty_copy().partial_fit(rows)` add up to the model of all rows.
        `deciban fit --like` makes such parts of files.
        """
        self._require_fitted()
        other = self._like_this()
        other._shrinkages = dict(self._shrinkages)
        other._replace(self.generative_ - self.generative_)
        other._keep_rows(None, self._made_evidence())
        return other

    def _merge_evidence(self, one: Self, other: Self) -> None:
        """The rows that two models have kept; or the mean of their evidence of columns, by the rows they learned."""
        a, b = one._rows_kept, other._rows_kept
        if a is not None and b is not None and one._schema() == other._schema():
            self._keep_rows(a + b)
            return
        mine, theirs = one._evidence_like(self), other._evidence_like(self)
        self._keep_rows(None, mine + theirs if mine is not None and theirs is not None else mine or theirs)

    def _evidence_like(self, other: Self) -> ColumnEvidence | None:
        """The evidence of columns as if from all rows that were learned, in the order of another model's columns."""
        known, total = self._made_evidence(), float(self.class_count_.sum())
        if known is None or not total:
            return None
        mine = list(self._schema().names)
        order, times = [mine.index(name) for name in other._schema().names], total / known.weight
        return ColumnEvidence(known.absolute[order] * times, known.signed[order] * times, total)

    def _require_mergeable(self, other: GenerativeClassifier) -> None:
        self._require_fitted()
        other._require_fitted()
        if type(self) is not type(other):
            raise DecibanError(f"a {type(self).__name__} and a {type(other).__name__} cannot be merged")
        require_like_labels(self.generative_.classes, other.generative_.classes)

    def _like_this(self) -> Self:
        """Another model with these settings and columns, that has learned nothing."""
        other: Self = type(self)(**self.get_params(deep=False))
        for name in ("n_features_in_", "feature_names_in_", "_label_dtype", "_label_name", "_seed"):
            if hasattr(self, name):
                setattr(other, name, getattr(self, name))
        return other

    def __add__(self, other: Self) -> Self:
        return self.merge(other) if isinstance(other, GenerativeClassifier) else NotImplemented

    def __radd__(self, other: object) -> Self:
        """0 + model, which is what `sum(models)` begins with: a copy."""
        return copy(self) if isinstance(other, int) and other == 0 else NotImplemented

    def _sample(self, X: Any, y: Any, sample_weight: Any, *, first: bool) -> Labelled:
        """Rows with their classes and weights; of those in memory there is one at least."""
        rows = self._rows(X, y, sample_weight, first=first)
        if isinstance(rows, Sample):
            require_rows(rows.frame)
        return rows

    def _rows(self, X: Any, y: Any, sample_weight: Any, *, first: bool) -> Labelled:
        if isinstance(X, Parted):
            return X
        given = LabelledInput.of(X, one_dimensional(y), sample_weight)
        if not is_stream(given.x):
            return given.any_sample(*self._frames(X, first=first))
        stream = self._stream(given.x, first=first, also=given.named, learns=True)
        return given.streamed(stream, () if first else self.generative_.classes)

    def _learned(self, rows: Labelled) -> tuple[Schema, Generative, Few, dict[frozenset[Level], Choice]]:
        """The columns and evidence of the first rows, some of them, and shrinkages that blocks leave to be chosen."""
        with rows.located():
            schema = Schema.of(rows.frame)
            seen = rows
            if self._reads_to_choose():
                seen = in_memory(rows, schema)
            plans = self._plans(schema, seen)
            if any(leaves_shrinkage(plan.family) for plan in plans):
                seen = in_memory(seen, schema)
            if not isinstance(rows, Parted):
                rows = seen
            fresh, kept = first_pass(rows, schema, plans, self._missing())
            if lacks_whole_rows(fresh):
                fresh = Generative.collect(rows, schema, without_absent(plans, rows), self._missing())
            return schema, fresh, kept, choose_shrinkages(fresh, seen) if isinstance(seen, Sample) else {}

    def _more(self, X: Any, y: Any, sample_weight: Any) -> tuple[Generative, Few] | None:
        """The evidence of more rows, read as the first ones were, and some of these rows; None if there are none."""
        known = self.generative_

        def collect() -> tuple[Generative, Few] | None:
            rows = self._rows(X, y, sample_weight, first=False)
            if isinstance(rows, Sample) and not rows.frame.rows:
                known.schema.own_places(rows.frame)  # kinds are those of cells, and there are none
                return None
            schema = known.schema.met_with(rows.frame)
            plans = known.plans_for(lambda: self._first_plans(schema))
            return first_pass_or_none(rows, schema, plans, known.missing)

        return settled(collect)

    def _first_plans(self, schema: Schema) -> tuple[Plan, ...]:
        """How columns are read that nothing is known of yet."""
        return make_plans(schema, self._families(), self._missing(), sparse=False)

    def _levels(self) -> dict[int, Levels]:
        counted = [block for block in self.generative_.blocks if isinstance(block.statistic, Counts)]
        pairs = (zip(block.plan.columns, block.statistic.levels, strict=True) for block in counted)  # type: ignore[attr-defined]
        return {column: levels for block in pairs for column, levels in block}

    def _settings(self, evidence: Generative) -> Settings:
        """What parameters are made with, from this evidence."""
        chosen = (self._shrinkages.get(columns_of(block, evidence)) for block in evidence.blocks)
        shrinkages = tuple(0.0 if choice is None else choice.value for choice in chosen)
        return Settings(self._smoothing(evidence), self.class_prior, self._unseen(), shrinkages)

    def _replace(self, generative: Generative) -> None:
        self.classes_ = class_array(generative.classes, getattr(self, "_label_dtype", None))
        self.generative_ = generative
        self._estimates: list[Estimate] = []  # the last one made

    def _restored(self) -> None:
        self._note_columns(self.generative_.schema)
        self._require_evidence_of(len(self.generative_.schema.names))
        self._replace(self.generative_)

    # Judging -------------------------------------------------------------------------------------------------------

    def leave_one_out(self, X: Any, y: Any = None, sample_weight: Any = None) -> Evaluation:
        """Every row judged by what the model knows from all the others: exact, in one pass, without refits.

        X, y and sample_weight are rows that the model has learned (all of them, or some). A row that is the only one
        of its class has no other to learn the class from: the model then gives the class probability 0.

        >>> import deciban as db
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> db.GaussianDiscriminant().fit(X, y).leave_one_out(X, y).confusion
        array([[50.,  0.,  0.],
               [ 0., 48.,  2.],
               [ 0.,  1., 49.]])
        """
        rows = self._sample(X, y, sample_weight, first=False)
        if not isinstance(rows, Parted):
            rows = in_memory(rows)
        estimate = self.estimate_
        return rows.summed(partial(_judged_left_out, estimate), converts=in_small_runs(estimate, rows.frame))

    def _out_of_fold(
        self, X: Any, labels: Encoded, weights: FloatArray | None, fold: IntArray
    ) -> list[Foretold] | None:
        """Every fold foretold by the others; None where it takes refits."""
        sample = Sample(self._frame(X, first=True), labels, weights)
        found = self._plans_of_folds(sample)
        return None if found is None else out_of_fold(sample, fold, *found, self._missing(), self._settings)

    def _plans_of_folds(self, rows: Labelled) -> tuple[Schema, tuple[Plan, ...]] | None:
        """How rows are read, if what the folds have learned can be added up; None where each fold takes a refit."""
        if self._reads_to_choose():
            return None
        schema = Schema.of(rows.frame)
        plans = self._plans(schema, rows)
        return None if any(leaves_shrinkage(plan.family) for plan in plans) else (schema, plans)

    # What was learned ----------------------------------------------------------------------------------------------

    @property
    def estimate_(self) -> Estimate:
        """Parameters, made from the evidence at the present smoothing and class prior; no data is read for it."""
        self._require_fitted()
        self._require_rows()
        settings = self._settings(self.generative_)
        if not self._estimates or not _same(self._estimates[0].settings, settings):
            self._estimates[:] = [self.generative_.estimate(settings)]
        return self._estimates[0]

    def _require_rows(self) -> None:
        if not self.generative_.classes:
            raise DecibanError("every row was forgotten: there is nothing to predict from until partial_fit")

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

    @property
    def columns_without_evidence_(self) -> dict[Level, str]:
        """The columns that carry no evidence, and why: constant, or missing in every row, for example."""
        estimate, silent = self.estimate_, set[Level]()
        for block, params, context in zip(self.generative_.blocks, estimate.params, estimate.contexts, strict=True):
            if not block.plan.presence:
                silent |= {context.columns[j] for j in block.plan.family.silent(params)}
        return reasons(self.generative_, silent, None)

    def summary(self) -> Summary:
        """Class prior and conditional tables in the order of the columns, and what deserves a look."""
        estimate, counts = self.estimate_, self.class_count_
        rows = tuple(zip(estimate.evidence.classes, counts.tolist(), np.exp(estimate.log_prior).tolist(), strict=True))
        notes = self.generative_.schema.notes() + reason_notes(self.columns_without_evidence_)
        placed: list[tuple[int, Table]] = []
        for block, params, context in zip(self.generative_.blocks, estimate.params, estimate.contexts, strict=True):
            family, columns = block.plan.family, block.plan.columns
            tables = family.describe(params, context)
            if block.plan.presence:
                tables = [_presence(table) for table in tables]
            apart = len(tables) == len(columns)  # one table for each column
            quiet = set(family.silent(params)) if apart else set()
            placed += [pair for i, pair in enumerate(_paired(columns, tables)) if i not in quiet]
            if getattr(params, "status", "ok") != "ok":
                notes.append(params.status)
        placed.sort(key=lambda pair: pair[0])
        prior = Table("class prior", ("class", "rows", "probability"), rows)
        sizes = (counts.sum(), "row"), (len(counts), "class"), (self.n_features_in_, "column")
        counted = ", ".join(counted_word(n, word) for n, word in (*sizes, (self.n_parameters_, "parameter")))
        title = f"{type(self).__name__}: {counted}"
        ranked = [] if self._without_evidence else [self.column_evidence_]
        return Summary(title, (prior, *self._chosen(), *ranked, *(table for _, table in placed)), tuple(notes))

    def _chosen(self) -> list[Table]:
        """What was chosen by leave-one-out, and by how much."""
        chosen = self._shrinkages.values()
        rows = tuple(("shrinkage", choice.value, choice.decibans, choice.other) for choice in chosen)
        return [Table("chosen by leave-one-out", ("", "value", "decibans a row", "over"), rows)] if rows else []

    def to_linear(self) -> LogisticRegression:
        """The equal linear model: a softmax that is linear in the sufficient statistics of the columns.

        Every family must be an exponential one (all but Uniform), with no probability of 0. Predictions are the same;
        `refine` of the twin goes on from there, to the largest conditional likelihood.
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

    def plot_boundary(
        self, X: Any, y: Any, *, sample_weight: Any = None, points: int = 2000, random_state: int | None = 0
    ) -> Any:
        """The boundaries between classes over two columns of numbers, as an altair chart.

        With at most `points` rows of (X, y), the densities of the classes as contours, and the boundary of the model's
        twin, refined by (X, y). Needs `pip install 'deciban[plot]'`.
        """
        from deciban.evaluation import plots

        return plots.boundary(self, X, y, sample_weight=sample_weight, points=points, random_state=random_state)

    def explain(self, X: Any, *, by: By = "column") -> Explanation:
        """Every prediction as a sum of decibans, feature by feature.

        A joint normal is shared out to its columns (see `deciban.families.MultivariateGaussian`). `by` is there for
        models with tables of pairs (see `EvidenceClassifier.explain`); here both are the same.
        """
        require_by(by)
        frame = self._frame_to_score(X)
        estimate = self.estimate_
        return Explanation.of(estimate.evidence.classes, estimate.contributions(frame), self._schema(), frame)


def _judged_left_out(estimate: Estimate, batch: Batch) -> Evaluation:
    judged = leave_one_out(estimate, batch)
    return Evaluation.scored(estimate.evidence.classes, judged.labels, judged.proba, judged.weights)


def require_like_labels(known: Levels, new: Levels) -> None:
    """The class 1 of one file and the class "1" of another are one, read as two types: both models would be wrong."""
    by_text, by_value = {str(label): label for label in known}, {label: label for label in known}
    for label in new:
        other = by_value.get(label, by_text.get(str(label), label))
        if type(other) is not type(label):
            raise DecibanError(
                f"the label {other!r} of one and {label!r} of the other are of different types: convert them to one; "
                "of files, read the column as text (types={...: 'text'}, or --category)"
            )


def in_memory(rows: Labelled, schema: Schema | None = None) -> Sample:
    """Rows that can be read again and again: all, or of those elsewhere some."""
    if isinstance(rows, Parted):
        return rows.sample(schema or Schema.of(rows.frame))
    if isinstance(rows, Streamed):
        rows = rows.read()
        require_rows(rows.frame)
    assert isinstance(rows, Sample)
    return rows


def _paired(columns: tuple[int, ...], tables: list[Table]) -> list[tuple[int, Table]]:
    """Each table with its column, or all with the first."""
    places = columns if len(tables) == len(columns) else columns[:1] * len(tables)
    return list(zip(places, tables, strict=True))


def _presence(table: Table) -> Table:
    title = table.title.replace(" (Bernoulli)", " is missing (Bernoulli)")
    return Table(title, table.header, table.rows, table.note)


def _same(a: Settings, b: Settings) -> bool:
    prior = (a.class_prior, b.class_prior)
    arrays = any(isinstance(given, (list, np.ndarray)) for given in prior)
    alike = np.array_equal(*prior) if arrays else prior[0] == prior[1]  # type: ignore[arg-type]
    return alike and replace(a, class_prior="uniform") == replace(b, class_prior="uniform")
