"""EvidenceClassifier: evidence of columns, pairs and all columns together, each weighed by how well it foretells."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np

from deciban.contributions import By
from deciban.errors import DecibanError, require_whole, warn
from deciban.evaluation.evaluation import Evaluation
from deciban.explain import Explanation, require_by
from deciban.families import Text
from deciban.generative import Block, ClassPrior, Generative
from deciban.models import outdated
from deciban.models.first_pass import FirstPass
from deciban.models.generative import GenerativeClassifier, in_memory
from deciban.models.importances import kept_rows
from deciban.models.logistic import LogisticRegression
from deciban.models.threads import one_thread
from deciban.plans import Missing, Plan, columns_of_key, is_sparse, rank
from deciban.schema import Schema
from deciban.sources import Labelled, Sample, Streamed, settled
from deciban.sources.parted import Parted
from deciban.sources.sampling import Few, row_keys, sampled, seed_of
from deciban.summary import Summary, counted_word
from deciban.table import Table
from deciban.types import Level
from deciban.weighing.leakage import warn_of_leakage
from deciban.weighing.left_out import places_of
from deciban.weighing.readers import Readers, readers_of
from deciban.weighing.reasons import ColumnFacts, reasons
from deciban.weighing.reasons import notes as reason_notes
from deciban.weighing.structure import first_plans, joint_plans, with_text
from deciban.weighing.weighed import Weighed, weigh
from deciban.weighing.weights import Weights


class EvidenceClassifier(GenerativeClassifier):
    """log p(c|x) = log p(c) + b_c + Σ_pieces w_pc·evidence_pc, normalised; w ≥ 0.

    Naive Bayes counts evidence twice where columns repeat each other. Here every piece of evidence has a weight, which
    is learned from rows that are left out of it, by a penalised softmax. It is a sum of decibans still. Tables are
    taken as they are: text, numbers and holes; a missing cell is evidence too. Sparse rows are counts of words.

    Parameters
    ----------
    pairs : "auto" or a number
        How many pairs of columns have a table of their own, at most. "auto": up to 20, of those that tell enough more
        than their two columns; a number: as many of the best that tell anything more; 0: none.
    trees : number
        Trees whose leaves are counted; 0: none.
    class_prior : "empirical", "laplace", "uniform", or probabilities (in order of classes_, or a dict)
        May be changed after fit. Weights are learned with the empirical one.
    max_weight_rows : number
        Of how many different rows, at most, pairs and trees are laid out, and weights learned; all rows are counted.
        Which ones they are depends on what they hold, not on their order.
    random_state : number or None
        Seeds the choice of these rows, the folds and the trees. None: another seed at every fit.
    text : "auto", or a list of columns
        Columns of documents, whose terms are evidence: words as often as they are there, and whether they are there at
        all (see `deciban.families.Text`), each less what it says of the average document. "auto": columns of text of
        which a third of the cells or more differ, and have three words or more in the mean; and a list of documents.

    `weights_` holds the weights that were fitted, how much each candidate counts (`shares`: no evidence, naive Bayes,
    weak and strong penalties), and `prior_share`, the share of the class prior in every probability: n rows cannot
    support odds of more than about 2n to 1.

    Examples
    --------
    >>> import deciban as db
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = db.EvidenceClassifier().fit(X[::2], y[::2])
    >>> round(db.evaluate(model, X[1::2], y[1::2]).log_loss, 2)
    0.07
    >>> round(db.evaluate(db.NaiveBayes().fit(X[::2], y[::2]), X[1::2], y[1::2]).log_loss, 2)
    0.11
    >>> more = model.empty_copy().partial_fit(X[1::2], y[1::2])
    >>> (model + more).class_count_
    array([50., 50., 50.])
    """

    _weights: Weights
    _seed: int = 0  # of the last fit
    _weights_rows: float | None = None  # that the model had learned when its weights were fitted
    _warned: bool = False  # that its weights are out of date
    _facts: ColumnFacts = ColumnFacts()
    _kept = GenerativeClassifier._kept | {
        "_seed": int,
        "_weights": Weights,
        "_weights_rows": float | None,
        "_facts": ColumnFacts,
    }

    def __init__(
        self,
        pairs: Literal["auto"] | int = "auto",
        trees: int = 128,
        class_prior: ClassPrior = "empirical",
        max_weight_rows: int = 200_000,
        random_state: int | None = 0,
        text: Literal["auto"] | Sequence[Any] = "auto",
    ) -> None:
        self.pairs = pairs
        self.trees = trees
        self.class_prior = class_prior
        self.max_weight_rows = max_weight_rows
        self.random_state = random_state
        self.text = text

    # Learning ------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learns evidence from rows X and their classes y (an array, or the name of a column of X), and its weights.

        Files and other streams are read twice: for columns one by one, and for those that are read together.
        """
        pairs = self._pairs()
        self._seed = seed_of(self.random_state)
        learned = settled(lambda: self._learned_and_weighed(self._sample(X, y, sample_weight, first=True), pairs))
        schema, fresh, kept, readers, self._weights, self._facts = learned
        self._note_fit(schema, X, y)
        self._replace(fresh)
        self._keep_rows(kept)
        self._last_readers.append(readers)
        self._note_weights()
        warn_of_leakage(fresh)
        return self

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learns from more rows; new classes and categories are welcome. (`classes` is accepted and not needed.)

        The weights stay as they are. A warning says once when the model has learned four times as many rows as it had
        when they were fitted: `refit_weights` fits them again. No rows at all change nothing.
        """
        super().partial_fit(X, y, classes, sample_weight)
        self._warn_if_outdated()
        return self

    def _note_weights(self) -> None:
        self._weights_rows, self._warned = float(self.class_count_.sum()), False

    def _weights_fitted_with(self) -> float:
        """The rows that the model had learned when its weights were fitted; files of format 1 do not say it."""
        return float(self._weights.rows if self._weights_rows is None else self._weights_rows)

    def _warn_if_outdated(self) -> None:
        rows, fitted_with = float(self.class_count_.sum()), self._weights_fitted_with()
        if not self._warned and outdated.is_outdated(rows, fitted_with):
            self._warned = True
            outdated.warn_of_outdated(rows, fitted_with)

    def _pairs(self) -> int | None:
        """How many pairs are wanted; None is to be seen. All settings are looked at."""
        for name, least in (("trees", 0), ("max_weight_rows", 2)):
            require_whole(name, getattr(self, name), least)
        if isinstance(self.pairs, str) and self.pairs == "auto":
            return None
        if not isinstance(self.pairs, Integral) or self.pairs < 0:
            raise ValueError(f"pairs must be 'auto', or a whole number of 0 or more, not {self.pairs!r}")
        return int(self.pairs)

    def _learned_and_weighed(
        self, rows: Labelled, pairs: int | None
    ) -> tuple[Schema, Generative, Few, Readers, Weights, ColumnFacts]:
        """First columns one by one; then those that are read together, in a second pass; then weights."""
        if isinstance(rows, Streamed) and rows.stream.once:
            rows = rows.read()
        with rows.located(), one_thread():
            schema = Schema.of(rows.frame).with_calendar()
            if is_sparse(rows.frame) and self._texts(schema):
                raise DecibanError("text names columns of documents, and these rows are counts")
            plans = self._plans(schema, rows)
            if isinstance(rows, Sample):
                single = Generative.collect(rows, schema, plans, self._missing())
                few = self._few(rows, schema)
                seen = rows.frame.rows if rows.weights is None else int(np.count_nonzero(rows.weights))
            else:
                observe = partial(FirstPass.of, schema, plans, self._missing(), self.max_weight_rows, self._seed)
                first = rows.summed(observe, converts=True)
                single, few, seen = first.evidence, first.few.sample(), first.few.rows
            if single.counts.value.sum() < 0.1 * seen:
                warn("the weights of rows count rows, but sum to less than a tenth of them: multiply them")
            single, together = with_text(single, seen) if isinstance(self.text, str) else (single, ())
            whole = single
            if not is_sparse(rows.frame):
                together += joint_plans(single, few, pairs, self.trees, self._seed)
            if together:
                joint = Generative.collect(rows, schema, together, self._missing())
                blocks = sorted((*single.blocks, *joint.blocks), key=lambda block: rank(block.plan))
                whole = replace(single, blocks=tuple(blocks))
            readers = readers_of(whole)
            facts = ColumnFacts() if is_sparse(rows.frame) else ColumnFacts.of(schema, few)
            weights = weigh(whole, readers, few, self._seed, sure=True)
            return schema, whole, kept_rows(few, schema), readers, weights, facts

    def _few(self, rows: Sample, schema: Schema) -> Sample:
        """As many rows as weights need, of those that weigh something."""
        if rows.weights is not None and not rows.weights.all():
            rows = rows.take(np.flatnonzero(rows.weights))
        if rows.frame.rows <= self.max_weight_rows:
            return rows
        return sampled(rows, row_keys(rows.frame, schema.places(rows.frame), self._seed), self.max_weight_rows)

    def _plans(self, schema: Schema, rows: Labelled) -> tuple[Plan, ...]:
        return first_plans(schema, sparse=is_sparse(rows.frame), text=self._texts(schema))

    def _first_plans(self, schema: Schema) -> tuple[Plan, ...]:
        return first_plans(schema, sparse=False, text=self._texts(schema))

    def _texts(self, schema: Schema) -> list[int]:
        """The columns that were said to be documents."""
        if isinstance(self.text, str) and self.text == "auto":
            return []
        if isinstance(self.text, str) or not isinstance(self.text, Sequence):
            raise DecibanError(f"text must be 'auto' or a list of columns, such as ['body'], not {self.text!r}")
        return [j for name in self.text for j in columns_of_key(name, schema, "text")]

    def _missing(self) -> Missing:
        return "category"

    def refit_weights(self, X: Any, y: Any = None, sample_weight: Any = None, *, held_out: bool = False) -> Self:
        """Fits the weights again; the evidence stays as it is.

        For a model that has learned, forgotten or merged so much that its weights are out of date. X and y are training
        rows, all or some of them: each is left out of the evidence that judges it. With held_out=True they are others,
        which judge it as they are; classes that the model does not know are passed over.
        """
        self._require_fitted()
        self._require_rows()
        self._weights, kept = settled(lambda: self._refitted(X, y, sample_weight, learned=not held_out))
        self._keep_rows(kept)
        self._note_weights()
        return self

    def _refitted(self, X: Any, y: Any, sample_weight: Any, *, learned: bool) -> tuple[Weights, Few]:
        given = self._known(self._sample(X, y, sample_weight, first=False))
        with given.located(), one_thread():
            rows = self._weighable(given)
            known = int((places_of(self.generative_.classes, rows) >= 0).sum())
            if known < 2 or len(self.classes_) < 2:
                raise DecibanError(
                    f"{known} rows of {len(self.classes_)} known classes are too few to weigh evidence by: "
                    "give more rows"
                )
            weights = weigh(self.generative_, self._readers, rows, self._seed, learned=learned)
            return weights, kept_rows(rows, self.generative_.schema)

    def _known(self, rows: Labelled) -> Labelled:
        """Rows, once their columns are known to be of the kinds that were learned."""
        self.generative_.schema.met_with(rows.frame)
        return rows

    def _weighable(self, rows: Labelled) -> Sample:
        """As many rows as weights need."""
        schema = self.generative_.schema
        if isinstance(rows, Sample):
            return self._few(rows, schema)
        look = partial(Few.of, schema=schema, most=self.max_weight_rows, seed=self._seed)
        return rows.summed(look, converts=True).sample()

    def forget(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Unlearns rows that were learned: nothing is counted of them any more, exactly.

        What they had a part in choosing stays: the weights, and which columns are read together, and how.
        `refit_weights` fits the weights again, `fit` all.
        """
        return super().forget(X, y, sample_weight)

    def merge(self, other: Self) -> Self:
        """A new model of the rows of both, with the mean of their weights.

        Columns by themselves always add. Blocks over several columns (joint normals, pairs, trees) were laid out by the
        rows of each fit: those that both models have add, those that only one has are left out, with a warning. A model
        that is to be added to this one should be made from `empty_copy()`, which lays them out as here. The weight of a
        piece for a class is the mean of both, by the rows of that class; `refit_weights` learns them anew.
        """
        self._require_mergeable(other)
        for name in _texts(self.generative_) ^ _texts(other.generative_):
            raise DecibanError(
                f"column {name!r} is text to one model and a category to the other: fit both with text=[{name!r}]"
            )
        mine, theirs = self.generative_.sharing(other.generative_)
        shared = {(block.plan.family, *_names(block, mine)) for block in mine.blocks}
        gone = {*_pieces_beyond(self, shared), *_pieces_beyond(other, shared)}
        if gone:
            warn(
                "blocks over several columns that only one of the models has were left out: they were laid out by "
                "other rows, and the weights of the rest were learned beside them. Use refit_weights(X, y) before you "
                "predict; or learn the rows of the other by model.empty_copy().partial_fit(...), which keeps all"
            )
        merged = self._like_this()
        rows = [dict(zip(model.classes, model.counts.value.tolist(), strict=True)) for model in (mine, theirs)]
        merged._weights = self._weights.merged(other._weights, *rows)
        merged._facts = self._facts.shared(other._facts)
        merged._replace(mine + theirs)
        merged._weights = merged._weights.without(gone)
        merged._merge_evidence(self, other)
        merged._weights_rows = outdated.merged(
            (sum(rows[0].values()), sum(rows[1].values())), (self._weights_fitted_with(), other._weights_fitted_with())
        )
        merged._warned = self._warned or other._warned
        merged._warn_if_outdated()
        return merged

    def empty_copy(self) -> Self:
        """A model that reads columns as this one does, with its weights, and has learned no rows.

        For rows elsewhere: parts that are learned by `empty_copy().partial_fit(rows)`, on other machines or later, add
        up to what one pass over all rows would have collected. `deciban fit --like` makes such parts of files.
        """
        other = super().empty_copy()
        other._weights, other._weights_rows = self._weights, self._weights_fitted_with()
        other._facts = self._facts
        return other

    # Predicting ----------------------------------------------------------------------------------------------------

    def _replace(self, generative: Generative) -> None:
        super()._replace(generative)
        self._last_readers: list[Readers] = []
        self._last_weighed: list[Weighed] = []

    def _restored(self) -> None:
        if not hasattr(self, "_weights"):
            raise DecibanError("its evidence has no weights")
        if not 0 <= self._weights_fitted_with() < np.inf:
            raise DecibanError(f"its weights were fitted with {self._weights_fitted_with()} rows")
        super()._restored()
        if "_seed" not in vars(self):  # files of deciban 0.1 have it among the settings
            self._seed = seed_of(self.random_state)
        strange = {*self._weights.unknown.names} - {*self.generative_.schema.names}
        if strange:
            raise DecibanError(f"its weights change with columns that it has not: {sorted(map(str, strange))}")
        self._last_readers.append(readers_of(self.generative_))  # that of all blocks evidence can be made

    def __getstate__(self) -> Any:
        made: dict[str, Any] = {"_last_readers": [], "_last_weighed": []}  # what can be made again
        return {name: made.get(name, value) for name, value in super().__getstate__().items()}

    @property
    def _readers(self) -> Readers:
        """What reads the blocks; it depends on the evidence alone, so it is made once."""
        if not self._last_readers:
            self._last_readers.append(readers_of(self.generative_))
        return self._last_readers[0]

    @property
    def weighed_(self) -> Weighed:
        """Evidence with its weights: what scores rows. Made from the evidence, and the present class prior."""
        self._require_fitted()
        self._require_rows()
        last = self._last_weighed
        if not last or last[0].weights is not self._weights or not _same_prior(last[0].class_prior, self.class_prior):
            last[:] = [Weighed(self.generative_, self._readers, self._weights, copy(self.class_prior))]
        return last[0]

    def _scorer(self) -> Any:
        return self.weighed_

    def explain(self, X: Any, *, by: By = "column") -> Explanation:
        """Every prediction as a sum of decibans, by columns.

        A column has what is known of it alone, its terms of the joint normals, the steps of trees that ask for it, and
        its share of the pairs that it is in (Shapley's values of the two); by="pair" shows these pairs as lines of
        their own. The prior is that of the classes; the intercept is the bias that was fitted with the weights.
        """
        require_by(by)
        frame = self._frame_to_score(X)
        return Explanation.of(self.generative_.classes, self.weighed_.contributions(frame, by), self._schema(), frame)

    def leave_one_out(self, X: Any, y: Any = None, sample_weight: Any = None) -> Evaluation:
        """Every training row judged by evidence of all the others, and by weights that its fold had no part in.

        Rows are dealt to five folds by what they hold. The weights for a fold, the pieces and pairs that have one, and
        the penalty were chosen by rows of the other folds; trees judge only rows that they were not grown from. What
        never looks at labels stays: where bins are cut, the average document. `cross_validate` fits again.
        """
        given = self._known(self._sample(X, y, sample_weight, first=False))
        if isinstance(given, Parted):
            raise DecibanError("an EvidenceClassifier leaves out rows in memory only: use cross_validate, or a sample")
        with given.located():
            judged = self.weighed_.left_out(in_memory(given), self._seed)
        return Evaluation.scored(self.generative_.classes, judged.labels, judged.proba, judged.weights)

    def _plans_of_folds(self, rows: Labelled) -> None:
        return None

    def to_linear(self) -> LogisticRegression:
        """There is none: its evidence is not linear in the columns."""
        raise DecibanError("an EvidenceClassifier has no twin: its evidence is not linear in what its columns hold")

    # What was learned ----------------------------------------------------------------------------------------------

    @property
    def n_parameters_(self) -> int:
        """Free parameters: those of every block that counts, its weights, the bias and the class prior."""
        weighed = self.weighed_
        counting = [(reader, weights) for _, reader, weights in weighed.readers if weights.any()]
        blocks = sum(reader.n_parameters + np.count_nonzero(weights) for reader, weights in counting)
        return int(blocks + 2 * (len(self.classes_) - 1))

    @property
    def weights_(self) -> Weights:
        """The weight of every piece of evidence that counts, for each class."""
        self._require_fitted()
        return self._weights

    @property
    def columns_without_evidence_(self) -> dict[Level, str]:
        """The columns that carry no evidence, and why: "constant", "repeats 'embarked'", …

        Which columns repeat others or are identifiers was seen in the rows of the fit.
        """
        evidence, weights = self.weighed_.evidence, self._weights
        heard = {name for names, w in zip(weights.columns, weights.values, strict=True) if w.any() for name in names}
        schema = evidence.schema
        owners = schema.owners([j for j, name in enumerate(schema.all_names) if name in heard])
        return reasons(evidence, {*schema.names} - {schema.names[j] for j in owners}, self._facts)

    def summary(self) -> Summary:
        """Class prior; columns by what they contribute; the weights of all pieces of evidence."""
        weighed, counts, weights = self.weighed_, self.class_count_, self._weights
        classes = weighed.evidence.classes
        prior = tuple(zip(classes, counts.tolist(), np.exp(weighed.log_prior).tolist(), strict=True))
        pieces = sorted(
            zip(weights.kinds, weights.columns, weights.values.tolist(), strict=True), key=lambda found: -max(found[2])
        )
        weighing = tuple((_about(columns), kind, *values) for kind, columns, values in pieces if any(values))
        tables = [
            Table("class prior", ("class", "rows", "probability"), prior),
            *([] if self._without_evidence else [self.column_evidence_]),
            Table("weights", ("evidence of", "as", *map(str, weights.classes)), weighing),
        ]
        sizes = (counts.sum(), "row"), (len(counts), "class"), (self.n_features_in_, "column")
        counted = ", ".join(counted_word(n, word) for n, word in (*sizes, (self.n_parameters_, "parameter")))
        notes = weighed.evidence.schema.notes() + reason_notes(self.columns_without_evidence_)
        return Summary(f"{type(self).__name__}: {counted}", tuple(tables), tuple(notes))


def _pieces_beyond(model: EvidenceClassifier, shared: set[tuple[Any, ...]]) -> set[tuple[str, frozenset[Any]]]:
    """The pieces of evidence of blocks over several columns that are not among those shared."""
    evidence, found = model.generative_, set()
    for block, reader in model._readers:
        if block.plan.family.joint and (block.plan.family, *_names(block, evidence)) not in shared:
            found |= {(p.kind, frozenset(evidence.schema.all_names[j] for j in p.columns)) for p in reader.pieces}
    return found


def _texts(evidence: Generative) -> set[Any]:
    """The columns that are read as documents."""
    return {name for b in evidence.blocks if isinstance(b.plan.family, Text) for name in _names(b, evidence)}


def _about(columns: tuple[Any, ...]) -> str:
    return " + ".join(map(str, columns)) if len(columns) < 3 else f"{len(columns)} columns"


def _names(block: Block, evidence: Generative) -> list[Any]:
    return [evidence.schema.all_names[j] for j in block.plan.columns]


def _same_prior(a: ClassPrior, b: ClassPrior) -> bool:
    arrays = any(isinstance(given, (list, np.ndarray)) for given in (a, b))
    return bool(np.array_equal(a, b)) if arrays else a == b  # type: ignore[arg-type]
