"""EvidenceClassifier: evidence of features, pairs and all features together, weighted by how well it predicts."""

from __future__ import annotations

from copy import copy
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from deciban.data import Labelled, Sample, retry_with_wider_types
from deciban.data.class_index import ClassIndex
from deciban.data.distributed import DistributedRows
from deciban.data.input_types import Rows, SampleWeight, Target
from deciban.data.intake import require_rows
from deciban.data.sampling import RowSample, seed_of
from deciban.data.schema import Schema
from deciban.display.summary import Summary
from deciban.errors import DecibanError, require_whole
from deciban.estimators import outdated_weights as outdated
from deciban.estimators.additive_classifier import AdditiveClassifier, in_memory, same_prior
from deciban.estimators.evidence_fit import MISSING, EvidenceFitter
from deciban.estimators.evidence_merge import dropped_pieces, require_same_text
from deciban.estimators.importances import kept_rows
from deciban.estimators.threads import one_thread
from deciban.evaluation.evaluation import Evaluation
from deciban.evaluation.fitted_model import KINDS, Treatment
from deciban.evidence.evidence_by_block import EvidenceByBlock, evidence_by_block
from deciban.evidence.evidence_formulas import evidence_formula
from deciban.evidence.evidence_rows import EvidenceRows
from deciban.evidence.evidence_state import EvidenceClassifierSettings, EvidenceClassifierState
from deciban.evidence.leakage import warn_of_leakage
from deciban.evidence.term_evidence import TERMS
from deciban.evidence.uninformative import notes as reason_notes
from deciban.evidence.uninformative import reasons
from deciban.evidence.weighted_evidence import WeightedEvidence
from deciban.evidence.weights import Weights
from deciban.export.score_formula import ScoreFormula
from deciban.export.scorer import Scorer
from deciban.generative.model import Generative
from deciban.generative.plan import Missing, Plan
from deciban.table import Table
from deciban.types import Level


class EvidenceClassifier(EvidenceClassifierSettings, EvidenceClassifierState, AdditiveClassifier):  # type: ignore[misc]
    """Calibrated classification of tables as they are: evidence of features, weighted by how well it predicts.

    log p(c|x) = log p(c) + b_c + Σ_pieces w_pc·evidence_pc, normalised; w ≥ 0

    Naive Bayes counts evidence twice where features repeat each other. Here every piece of evidence has a weight,
    fitted by a penalised softmax on rows that are left out of the evidence. Predictions are still a sum of decibans.
    Tables may hold text, numbers, dates and missing values, which are evidence too; sparse rows are counts of words.

    Parameters
    ----------
    pairs : "auto" or int, default "auto"
        How many pairs of features have a table of their own, at most. "auto": up to 20, of those that are informative
        enough beyond their two features; a number: as many of the best that add anything; 0: none. Of pairs of levels,
        which back off to their two features, as many again.
    trees : int, default 128
        The number of trees whose leaves are counted; 0: none, and no boosted trees either. Fewer make fit and
        predictions faster. In a table of more than 20,000 rows, pairs, joint normals, trees and boosted trees are each
        used only if some of the rows are predicted better by them.
    class_prior : "empirical", "laplace", "uniform", or probabilities, default "empirical"
        The probability of each class before any feature: the shares of the training rows; these with one more row for
        each class; equal; or given, in order of `classes_` or as {class: probability}. It may be changed after fit.
        Weights are fitted with the empirical one.
    max_weight_rows : int, default 200_000
        How many distinct rows, at most, pairs and trees are chosen from and weights fitted on (boosted trees: 100,000
        of these, weights: 50,000); all rows are counted. They are chosen by what they hold, not by their order.
    random_state : int or None, default 0
        Seeds the choice of these rows, the folds and the trees. None: another seed at every fit.
    text : "auto" or list of columns, default "auto"
        Columns of documents, whose terms are evidence: how often words occur, and whether they occur at all (see
        `deciban.families.Text`), each relative to the average document. "auto": text columns of which a third of the
        cells or more are distinct, with three words or more on average; and a list of documents.

    Attributes
    ----------
    classes_ : array of shape (K,)
        The classes, sorted. Columns of `predict_proba` are in this order.
    class_count_ : array of shape (K,)
        The total weight of the training rows of each class. A class with few rows is estimated poorly.
    weights_ : Weights
        The fitted weights: `values` of each piece for each class, with its `kinds` and `columns`; `shares`, how much
        each candidate counts (no evidence, naive Bayes, weak and strong penalties); and `prior_share`, the share of the
        class prior in every probability: n rows support no probability below about p(c)/2n. `summary()` shows them.
    feature_importances_ : array of shape (n_features_in_,)
        The mean absolute decibans of each feature over training rows. Use them to see which features matter.
    column_evidence_ : Table
        The same with names, the most important first, and the mean decibans for the true class, which is negative for a
        feature that misleads.
    importances_ : array of shape (n_features_in_,) or None
        `feature_importances_`, but None instead of an error where they are unknown.
    columns_without_evidence_ : dict
        The features that add nothing, and why: constant, always missing, a copy of another. They can be dropped.
    column_treatments_ : dict of int to Treatment
        What is done with each feature (by position), and why, in words. Read it to check how a column was understood.
    n_parameters_ : int
        The number of free parameters: those of evidence with a weight, the weights, the bias and the class prior.
    weighted_evidence_ : WeightedEvidence
        Evidence with its weights at the present class prior.
    scorer_ : Scorer
        What scores rows: `weighted_evidence_`.
    generative_ : Generative
        The sufficient statistics of all pieces, which add and subtract: what merging and forgetting change.
    n_features_in_ : int
        The number of features. Arrays to predict need as many columns.
    feature_names_in_ : array of shape (n_features_in_,)
        The names of the features; only if X had names.
    label_name_ : str or None
        The column that y named, or None. Commands read the labels of other files from the column of this name.
    schema_ : Schema
        Names and kinds of the features as they were read. Look here if a column was taken for a wrong type.
    columns_ : ColumnReader
        Reads the columns of new rows as those of the fit were read. For engines and the command line.
    base_model_ : estimator
        The model itself. A `CalibratedClassifier` has the model that it corrects here.
    calibrations_ : tuple
        Empty: only a `CalibratedClassifier` has corrections.
    evidence_scale_ : float
        1.0: only a `CalibratedClassifier` rescales decibans.
    family_comparisons_ : tuple
        Empty: only `NaiveBayes(families="auto")` compares families.
    linear_fit_ : None
        Only linear models have one.

    See Also
    --------
    deciban.NaiveBayes : The same evidence with every weight 1: one pass, and simpler to explain.
    deciban.cross_validate : How well it predicts rows that it was not fitted to.

    Examples
    --------
    >>> import deciban as db
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = db.EvidenceClassifier().fit(X[::2], y[::2])
    >>> round(db.evaluate(model, X[1::2], y[1::2]).log_loss, 2)
    0.08
    >>> round(db.evaluate(db.NaiveBayes().fit(X[::2], y[::2]), X[1::2], y[1::2]).log_loss, 2)
    0.11
    >>> more = model.empty_copy().partial_fit(X[1::2], y[1::2])
    >>> (model + more).class_count_
    array([50., 50., 50.])
    """

    description = (
        "The evidence of features, of pairs and of all features together is added, each with a weight by how well it "
        "predicts rows that it was not computed from."
    )

    _warned: bool = False  # that the weights are outdated
    _state = EvidenceClassifierState
    _copied = (*AdditiveClassifier._copied, "_seed")

    # Learning ------------------------------------------------------------------------------------------------------

    def fit(self, X: Rows, y: Target | None = None, sample_weight: SampleWeight | None = None) -> Self:
        """Learn evidence from rows X with classes y, and its weights.

        Files and other streams are read twice: for features one by one, and for those that are read together.

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

        Warns
        -----
        LeakageWarning
            If a feature by itself predicts the class almost perfectly.
        """
        self._check_settings()
        self._seed = seed_of(self.random_state)
        fitter = self._fitter()
        fitted = retry_with_wider_types(lambda: fitter.fit(self._training_rows(X, y, sample_weight)))
        self._weights, self._facts = fitted.weights, fitted.facts
        self._note_columns(fitted.schema)
        self._note_label(X, y)
        self._replace(fitted.evidence)
        self._keep_rows(fitted.sample)
        self._last_blocks.append(fitted.blocks)
        self._note_weights()
        warn_of_leakage(fitted.evidence)
        return self

    def _check_settings(self) -> None:
        for name, least in (("trees", 0), ("max_weight_rows", 2)):
            require_whole(name, getattr(self, name), least)
        if isinstance(self.pairs, str) and self.pairs == "auto":
            return
        if not isinstance(self.pairs, Integral) or self.pairs < 0:
            raise DecibanError(f"pairs must be 'auto', or a whole number of 0 or more, not {self.pairs!r}")

    def _fitter(self) -> EvidenceFitter:
        pairs = None if isinstance(self.pairs, str) else int(self.pairs)
        return EvidenceFitter(pairs, self.trees, self.text, self.max_weight_rows, self._seed)

    def partial_fit(
        self,
        X: Rows,
        y: Target | None = None,
        classes: ArrayLike | None = None,
        sample_weight: SampleWeight | None = None,
    ) -> Self:
        """Learn from more rows, which may have new classes and categories; the weights stay as they are.

        A warning says once when the model has learned four times as many rows as when they were fitted:
        `refit_weights` fits them again. No rows at all change nothing.

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
        refit_weights : Fits the weights again.
        """
        super().partial_fit(X, y, classes, sample_weight)
        self._warn_if_outdated()
        return self

    def _note_weights(self) -> None:
        self._weights_rows, self._warned = float(self.class_count_.sum()), False

    def _weights_fitted_with(self) -> float:
        """The number of training rows when the weights were fitted; files of format 1 do not hold it."""
        return float(self._weights.rows if self._weights_rows is None else self._weights_rows)

    def _warn_if_outdated(self) -> None:
        rows, fitted_with = float(self.class_count_.sum()), self._weights_fitted_with()
        if not self._warned and outdated.is_outdated(rows, fitted_with):
            self._warned = True
            outdated.warn_of_outdated(rows, fitted_with)

    def _first_plans(self, schema: Schema) -> tuple[Plan, ...]:
        return self._fitter().plans(schema, sparse=False)

    def _missing(self) -> Missing:
        return MISSING

    def refit_weights(
        self, X: Rows, y: Target | None = None, sample_weight: SampleWeight | None = None, *, held_out: bool = False
    ) -> Self:
        """Fit the weights again; the evidence stays as it is.

        For a model that has learned, forgotten or merged so much that its weights are outdated.

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
        held_out : bool, default False
            False: these are training rows, all or some, and each is left out of the evidence that predicts it. True:
            they are other rows; those of unknown classes are ignored.

        Returns
        -------
        self : estimator
            The same model.

        Raises
        ------
        DecibanError
            If there are fewer than two rows of known classes.
        """
        self._require_fitted()
        self._require_rows()
        self._weights, sample = retry_with_wider_types(
            lambda: self._refitted(self._more_rows(X, y, sample_weight), held_out=held_out)
        )
        self._keep_rows(sample)
        self._note_weights()
        return self

    def _refitted(self, rows: Labelled, *, held_out: bool) -> tuple[Weights, RowSample]:
        if isinstance(rows, Sample):
            require_rows(rows.frame)
        schema = self.generative_.schema
        schema.merge_frame(rows.frame)
        with rows.error_context(), one_thread():
            sample = self._fitter().sample(rows, schema)
            codes = ClassIndex(self.generative_.classes).recode(sample.labels.codes, sample.labels.classes)
            known = int((codes >= 0).sum())
            if known < 2 or len(self.classes_) < 2:
                raise DecibanError(
                    f"{known} rows of {len(self.classes_)} known classes are too few to fit weights on: pass more rows"
                )
            origin = EvidenceRows.held_out if held_out else EvidenceRows.of_training
            weights = Weights.fit(origin(self.generative_, sample, self._seed), self._blocks)
            return weights, kept_rows(sample, schema)

    def forget(self, X: Rows, y: Target | None = None, sample_weight: SampleWeight | None = None) -> Self:
        """Unlearn training rows: afterwards they are not counted any more, exactly.

        What they had a part in choosing stays: the weights, and which features are read together, and how.
        `refit_weights` fits the weights again, `fit` everything.

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

        See Also
        --------
        refit_weights : Fits the weights again.
        """
        return super().forget(X, y, sample_weight)

    def merge(self, other: Self) -> Self:
        """A new model of the training rows of both, with the mean of their weights.

        Features by themselves always add. Blocks over several features (joint normals, pairs, trees) were chosen by
        the rows of each fit: those that both models have add, those that only one has are left out, with a warning. A
        model that is to be added to this one should be made from `empty_copy()`, which has the same blocks. The weight
        of a piece for a class is the mean of both, weighted by the rows of that class; `refit_weights` fits them again.

        Parameters
        ----------
        other : EvidenceClassifier
            A fitted model.

        Returns
        -------
        EvidenceClassifier
            The sum; both stay as they are. `a + b` and `sum(models)` are the same.

        Raises
        ------
        DecibanError
            If the features of the models differ, or a column is text to one and a category to the other.
        """
        self._require_mergeable(other)
        require_same_text(self.generative_, other.generative_)
        own, added = self.generative_.sharing(other.generative_)
        dropped = dropped_pieces(own, (self.generative_, self._blocks), (other.generative_, other._blocks))
        merged = self._like_this()
        rows = [dict(zip(model.classes, model.counts.value.tolist(), strict=True)) for model in (own, added)]
        merged._weights = self._weights.merged(other._weights, *rows)
        merged._facts = self._facts.shared(other._facts)
        merged._replace(own + added)
        merged._weights = merged._weights.drop_pieces(dropped)
        merged._merge_evidence(self, other)
        merged._weights_rows = outdated.merged(
            (sum(rows[0].values()), sum(rows[1].values())), (self._weights_fitted_with(), other._weights_fitted_with())
        )
        merged._warned = self._warned or other._warned
        merged._warn_if_outdated()
        return merged

    def _copy_choices(self, other: Self) -> None:
        other._weights, other._weights_rows = self._weights, self._weights_fitted_with()
        other._facts = self._facts

    # Predicting ----------------------------------------------------------------------------------------------------

    def _replace(self, generative: Generative) -> None:
        super()._replace(generative)
        self._last_blocks: list[EvidenceByBlock] = []
        self._last_scorer: list[WeightedEvidence] = []

    def _restored(self) -> None:
        if not hasattr(self, "_weights"):
            raise DecibanError("its evidence has no weights")
        if not 0 <= self._weights_fitted_with() < np.inf:
            raise DecibanError(f"its weights were fitted with {self._weights_fitted_with()} rows")
        super()._restored()
        if "_seed" not in vars(self):  # files of deciban 0.1 have it among the settings
            self._seed = seed_of(self.random_state)
        unknown = {*self._weights.unknown.names} - {*self.generative_.schema.names}
        if unknown:
            raise DecibanError(f"its weights change with columns that it does not have: {sorted(map(str, unknown))}")
        self._last_blocks.append(evidence_by_block(self.generative_))  # raises if a block has no evidence

    def __getstate__(self) -> Any:
        empty: dict[str, Any] = {"_last_blocks": [], "_last_scorer": []}  # they can be computed again
        return {name: empty.get(name, value) for name, value in super().__getstate__().items()}

    @property
    def _blocks(self) -> EvidenceByBlock:
        """The evidence of each block, which depends on the statistics alone."""
        if not self._last_blocks:
            self._last_blocks.append(evidence_by_block(self.generative_))
        return self._last_blocks[0]

    @property
    def weighted_evidence_(self) -> WeightedEvidence:
        """Evidence with its weights, at the present class prior: what scores rows."""
        self._require_fitted()
        self._require_rows()
        last = self._last_scorer
        if not last or last[0].weights is not self._weights or not same_prior(last[0].class_prior, self.class_prior):
            last[:] = [WeightedEvidence(self.generative_, self._blocks, self._weights, copy(self.class_prior))]
        return last[0]

    @property
    def scorer_(self) -> Scorer:
        """What scores rows: `weighted_evidence_`."""
        return self.weighted_evidence_

    def score_formula(self) -> ScoreFormula:
        """The scores as formulas that need no library.

        Returns
        -------
        ScoreFormula
            What exports and the page of a report are made from.
        """
        return evidence_formula(self.weighted_evidence_)

    def leave_one_out(self, X: Rows, y: Target | None = None, sample_weight: SampleWeight | None = None) -> Evaluation:
        """Evaluate every training row by evidence of all the others, with weights that its fold had no part in.

        Rows are assigned to five folds by what they hold. The weights for a fold, the pieces and pairs that have one,
        and the penalty were chosen by rows of the other folds; trees predict only rows that they were not grown from.
        What never looks at labels stays: where bins are cut, the average document. `cross_validate` fits again.

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
        DecibanError
            If the rows are distributed: they have to be in memory.

        See Also
        --------
        deciban.cross_validate : Fits again for each fold.
        """
        rows = self._more_rows(X, y, sample_weight)
        self.generative_.schema.merge_frame(rows.frame)
        if isinstance(rows, DistributedRows):
            raise DecibanError("an EvidenceClassifier leaves out rows in memory only: use cross_validate, or a sample")
        with rows.error_context():
            training = EvidenceRows.of_training(self.generative_, in_memory(rows), self._seed)
            predictions = self.weighted_evidence_.leave_one_out(training)
        classes = self.generative_.classes
        return Evaluation.scored(classes, predictions.labels, predictions.proba, predictions.weights)

    # What was learned ----------------------------------------------------------------------------------------------

    @property
    def n_parameters_(self) -> int:
        """The number of free parameters: those of blocks with a weight, the weights, the bias and the class prior."""
        weighted = [(evidence, weights) for _, evidence, weights in self.weighted_evidence_.sources if weights.any()]
        blocks = sum(evidence.n_parameters + np.count_nonzero(weights) for evidence, weights in weighted)
        return int(blocks + 2 * (len(self.classes_) - 1))

    @property
    def weights_(self) -> Weights:
        """The weight of every piece of evidence that counts, for each class."""
        self._require_fitted()
        return self._weights

    @property
    def columns_without_evidence_(self) -> dict[Level, str]:
        """The features that carry no evidence, and why: "constant", "repeats 'embarked'", …

        Which features repeat others or are identifiers was seen in the rows of the fit.
        """
        evidence, weights = self.weighted_evidence_.evidence, self._weights
        weighted = {name for names, w in zip(weights.columns, weights.values, strict=True) if w.any() for name in names}
        schema = evidence.schema
        owners = schema.source_columns([j for j, name in enumerate(schema.all_names) if name in weighted])
        return reasons(evidence, {*schema.names} - {schema.names[j] for j in owners}, self._facts)

    @property
    def column_treatments_(self) -> dict[int, Treatment]:
        """What is done with each feature that has evidence (by position), and why."""
        kinds, texts = self.schema_.kinds, self.weighted_evidence_.describe_columns()
        read_as_text = "long text, a third or more of it distinct" if isinstance(self.text, str) else "chosen by text="
        why = {j: f"{KINDS[kinds[j]]}; other evidence of it has weight 0" for j in texts}
        return {j: Treatment(text, read_as_text if TERMS in text else why[j]) for j, text in texts.items()}

    def summary(self) -> Summary:
        """What was learned, as tables.

        Returns
        -------
        Summary
            The class prior; features by what they contribute; the weights of all pieces of evidence.
        """
        scorer, weights = self.weighted_evidence_, self._weights
        pieces = zip(weights.kinds, weights.columns, weights.values.tolist(), strict=True)
        by_weight = sorted(pieces, key=lambda piece: -max(piece[2]))
        rows = tuple((_about(columns), kind, *values) for kind, columns, values in by_weight if any(values))
        tables = [
            self._prior_table(scorer.log_prior),
            *([] if self._without_evidence else [self.column_evidence_]),
            Table("weights", ("evidence of", "as", *map(str, weights.classes)), rows),
        ]
        notes = scorer.evidence.schema.notes() + reason_notes(self.columns_without_evidence_)
        return Summary(self._title(), tuple(tables), tuple(notes))


def _about(columns: tuple[Any, ...]) -> str:
    return " + ".join(map(str, columns)) if len(columns) < 3 else f"{len(columns)} columns"
