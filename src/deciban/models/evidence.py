"""EvidenceClassifier: evidence of columns, pairs and all columns together, each weighed by how well it foretells."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from threadpoolctl import ThreadpoolController

from deciban.errors import DecibanError, warn
from deciban.evaluation.evaluation import Evaluation
from deciban.explain import Explanation
from deciban.generative import Block, ClassPrior, Generative
from deciban.held_out import Foretold
from deciban.models.generative import GenerativeClassifier, in_memory
from deciban.models.logistic import LogisticRegression
from deciban.plans import Missing, Plan, is_sparse, rank
from deciban.schema import Schema
from deciban.sources import Sample, Streamed, settled
from deciban.sources.labels import Encoded
from deciban.sources.sampling import Watched, row_keys, sampled
from deciban.summary import Summary, counted_word
from deciban.table import Table
from deciban.types import FloatArray, IntArray
from deciban.weighing.readers import Readers, readers_of
from deciban.weighing.structure import first_plans, joint_plans
from deciban.weighing.weighed import Weighed, weigh
from deciban.weighing.weights import Weights


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


def one_thread() -> Any:
    """Linear algebra in one thread: matrices are small here, and threads that wait for each other cost more."""
    return _blas().limit(limits=1, user_api="blas")


class EvidenceClassifier(GenerativeClassifier):
    """log p(c|x) = log p(c) + b_c + Σ_pieces w_pc·evidence_pc, normalised; w ≥ 0.

    Naive Bayes counts evidence twice where columns repeat each other. Here every piece of evidence has a weight, which
    is learned from rows that are left out of it, by a penalised softmax. It is a sum of decibans still.
    """

    _weights: Weights
    _kept = GenerativeClassifier._kept | {"_weights": Weights}

    def __init__(
        self,
        pairs: Literal["auto"] | int = "auto",
        trees: int = 128,
        class_prior: ClassPrior = "empirical",
        weigh_rows: int = 200_000,
        seed: int = 0,
    ) -> None:
        self.pairs = pairs
        self.trees = trees
        self.class_prior = class_prior
        self.weigh_rows = weigh_rows
        self.seed = seed

    # Learning ------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learns evidence from rows X and their classes y (an array, or the name of a column of X), and its weights."""
        pairs = self._pairs()
        learned = settled(lambda: self._learned_and_weighed(self._sample(X, y, sample_weight, first=True), pairs))
        schema, fresh, readers, self._weights = learned
        self._note_fit(schema, y)
        self._replace(fresh)
        self._last_readers.append(readers)
        return self

    def _pairs(self) -> int | None:
        """How many pairs are wanted; None is to be seen. All settings are looked at."""
        for name, least in (("trees", 0), ("weigh_rows", 2), ("seed", 0)):
            value = getattr(self, name)
            if not isinstance(value, Integral) or not least <= int(value) < 1 << 63:
                raise ValueError(f"{name} must be a whole number of {least} or more, not {value!r}")
        if isinstance(self.pairs, str) and self.pairs == "auto":
            return None
        if not isinstance(self.pairs, Integral) or self.pairs < 0:
            raise ValueError(f"pairs must be 'auto', or a whole number of 0 or more, not {self.pairs!r}")
        return int(self.pairs)

    def _learned_and_weighed(
        self, rows: Sample | Streamed, pairs: int | None
    ) -> tuple[Schema, Generative, Readers, Weights]:
        """First columns one by one; then those that are read together, in a second pass; then weights."""
        if isinstance(rows, Streamed) and rows.stream.once:
            rows = rows.read()
        with rows.located(), one_thread():
            schema = Schema.of(rows.frame)
            plans = first_plans(schema, sparse=is_sparse(rows.frame))
            if isinstance(rows, Sample):
                single = Generative.collect(rows, schema, plans, self._missing())
                few = self._few(rows, schema)
            else:
                watched = Watched.over(rows, schema, self.weigh_rows, self.seed)
                single = Generative.collect(watched, schema, plans, self._missing())
                few = watched.sample()
            whole = single
            together = () if is_sparse(rows.frame) else joint_plans(single, few, pairs, self.trees, self.seed)
            if together:
                joint = Generative.collect(rows, schema, together, self._missing())
                blocks = sorted((*single.blocks, *joint.blocks), key=lambda block: rank(block.plan))
                whole = replace(single, blocks=tuple(blocks))
            readers = readers_of(whole)
            return schema, whole, readers, weigh(whole, readers, few, self.seed, sure=True)

    def _few(self, rows: Sample, schema: Schema) -> Sample:
        """As many rows as weights need, of those that weigh something."""
        if rows.weights is not None and not rows.weights.all():
            rows = rows.take(np.flatnonzero(rows.weights))
        if rows.frame.rows <= self.weigh_rows:
            return rows
        return sampled(rows, row_keys(rows.frame, schema.places(rows.frame), self.seed), self.weigh_rows)

    def _plans(self, schema: Schema, sample: Sample | Streamed) -> tuple[Plan, ...]:
        return first_plans(schema, sparse=is_sparse(sample.frame))

    def _first_plans(self, schema: Schema) -> tuple[Plan, ...]:
        return first_plans(schema, sparse=False)

    def _missing(self) -> Missing:
        return "category"

    def reweigh(self, X: Any, y: Any = None, sample_weight: Any = None, *, learned: bool = True) -> Self:
        """Learns the weights again, from rows that the model has learned; learned=False: from others."""
        self._require_fitted()
        rows = settled(lambda: self._weighable(X, y, sample_weight))
        with one_thread():
            self._weights = weigh(self.generative_, self._readers, rows, self.seed, learned=learned)
        return self

    def _known(self, rows: Sample | Streamed) -> Sample | Streamed:
        """Rows, once their columns are known to be of the kinds that were learned."""
        self.generative_.schema.met_with(rows.frame)
        return rows

    def _weighable(self, X: Any, y: Any, sample_weight: Any) -> Sample:
        rows = self._known(self._sample(X, y, sample_weight, first=False))
        if isinstance(rows, Sample):
            return self._few(rows, self.generative_.schema)
        watched = Watched.over(rows, self.generative_.schema, self.weigh_rows, self.seed)
        with watched.located():
            for _ in watched.batches(converts=True):
                pass
        return watched.sample()

    def merge(self, other: Self) -> Self:
        """A new model of the rows of both, with the mean of their weights.

        Columns by themselves always add. Blocks over several columns (joint normals, pairs, trees) were laid out by the
        rows of each fit: those that both models have add, those that only one has are left out, with a warning. A model
        that is to be added to this one should be made from `blank()`, which lays them out as here. The weight of a
        piece for a class is the mean of both, by the rows of that class; `reweigh` learns them anew.
        """
        self._require_mergeable(other)
        mine, theirs = self.generative_.sharing(other.generative_)
        lost = {block.plan for block in (*self.generative_.blocks, *other.generative_.blocks)}
        lost -= {block.plan for block in (*mine.blocks, *theirs.blocks)}
        if lost:
            warn(
                "blocks over several columns that only one of the models has were left out: they were laid out by "
                "other rows. To keep them, learn the rows of the other by model.blank().partial_fit(...); or reweigh"
            )
        merged = self._like_this()
        rows = [dict(zip(model.classes, model.counts.value.tolist(), strict=True)) for model in (mine, theirs)]
        merged._weights = self._weights.merged(other._weights, *rows)
        merged._replace(mine + theirs)
        return merged

    def blank(self) -> Self:
        """A model that reads columns as this one does, with its weights, and has learned no rows.

        For rows elsewhere: parts that are learned by `blank().partial_fit(rows)`, on other machines or later, add up to
        what one pass over all rows would have collected.
        """
        self._require_fitted()
        other = self._like_this()
        other._weights = self._weights
        other._replace(self.generative_ - self.generative_)
        return other

    # Predicting ----------------------------------------------------------------------------------------------------

    def _replace(self, generative: Generative) -> None:
        super()._replace(generative)
        self._last_readers: list[Readers] = []
        self._last_weighed: list[Weighed] = []

    def _restored(self) -> None:
        if not hasattr(self, "_weights"):
            raise DecibanError("its evidence has no weights")
        super()._restored()
        self._last_readers.append(readers_of(self.generative_))  # that of all blocks evidence can be made

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
            last[:] = [Weighed(self.generative_, self._readers, self._weights, self.class_prior)]
        return last[0]

    def _scorer(self) -> Any:
        return self.weighed_

    def explain(self, X: Any) -> Explanation:
        """Every prediction as a sum of decibans: by columns, and by pairs of columns.

        A column has what is known of it alone, its terms of the joint densities, and the steps of trees that ask for
        it. The prior has what no column has.
        """
        frame = self._frame_to_score(X)
        names, parts = self.weighed_.parts(frame)
        return Explanation(self.generative_.classes, tuple(names), np.stack(parts, axis=1))

    def leave_one_out(self, X: Any, y: Any = None, sample_weight: Any = None) -> Evaluation:
        """Every row judged by evidence of all the others. The weights, of which there are few, stay as they are."""
        rows = in_memory(self._known(self._sample(X, y, sample_weight, first=False)))
        judged = self.weighed_.left_out(rows, self.seed)
        return Evaluation.scored(self.generative_.classes, judged.labels, judged.proba, judged.weights)

    def _out_of_fold(
        self, X: Any, labels: Encoded, weights: FloatArray | None, fold: IntArray
    ) -> list[Foretold] | None:
        return None

    def twin(self) -> LogisticRegression:
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

    def summary(self) -> Summary:
        """Class prior; columns by what they contribute; the weights of all pieces of evidence."""
        weighed, counts, weights = self.weighed_, self.class_count_, self._weights
        classes = weighed.evidence.classes
        prior = tuple(zip(classes, counts.tolist(), np.exp(weighed.log_prior).tolist(), strict=True))
        order = np.argsort(-weights.decibans, kind="stable").tolist()
        telling = tuple((" + ".join(map(str, weights.parts[i])), float(weights.decibans[i])) for i in order)
        pieces = sorted(
            zip(weights.kinds, weights.columns, weights.values.tolist(), strict=True), key=lambda found: -max(found[2])
        )
        weighing = tuple((_about(columns), kind, *values) for kind, columns, values in pieces if any(values))
        tables = [
            Table("class prior", ("class", "rows", "probability"), prior),
            Table("columns", ("", "decibans a row for the right class"), telling),
            Table("weights", ("evidence of", "as", *map(str, weights.classes)), weighing),
        ]
        silent = {name for block in weighed.evidence.blocks for name in _names(block, weighed.evidence)}
        silent -= {name for columns in weights.columns for name in columns}
        notes = []
        if silent:
            shown = ", ".join(repr(name) for name in sorted(silent, key=str)[:20])
            notes.append(f"no evidence from {shown} (constant, never present, or nothing tells the classes apart)")
        sizes = (counts.sum(), "row"), (len(counts), "class"), (self.n_features_in_, "column")
        counted = ", ".join(counted_word(n, word) for n, word in (*sizes, (self.n_parameters_, "parameter")))
        return Summary(f"{type(self).__name__}: {counted}", tuple(tables), tuple(notes))


def _about(columns: tuple[Any, ...]) -> str:
    return " + ".join(map(str, columns)) if len(columns) < 3 else f"{len(columns)} columns"


def _names(block: Block, evidence: Generative) -> list[Any]:
    return [evidence.schema.names[j] for j in block.plan.columns]


def _same_prior(a: ClassPrior, b: ClassPrior) -> bool:
    arrays = any(isinstance(given, (list, np.ndarray)) for given in (a, b))
    return bool(np.array_equal(a, b)) if arrays else a == b  # type: ignore[arg-type]
