"""Generative: class counts and blocks of evidence, which are collected, merged, subtracted and estimated from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import numpy as np

from deciban import _kernels
from deciban.data import Labelled
from deciban.data.arrays import MatrixFrame
from deciban.data.batch import Batch
from deciban.data.class_index import ClassIndex, require_classes
from deciban.data.matched_frame import MatchedFrame
from deciban.data.schema import Schema
from deciban.errors import DecibanError, NegativeEvidence, require
from deciban.families.family import Context
from deciban.generative.block import Block
from deciban.generative.estimate import Estimate, Settings, log_prior
from deciban.generative.plan import AnyFamily, Missing, Plan, alike, by_kind, needs_small_batches, replaced, wider
from deciban.lazy import lazy
from deciban.statistics.moments import Moments
from deciban.statistics.statistic import Statistic, require_not_negative, require_weights
from deciban.statistics.sums import Sum
from deciban.types import IntArray, Levels, sorted_levels

joint = lazy("deciban.families.multivariate_gaussian")

DIFFERENT_FAMILIES = (
    "the models read their columns with different families: they cannot be added. Fit one with the families of the "
    "other: NaiveBayes(families=other.families_)"
)


@dataclass(frozen=True)
class Generative:
    """p(c, x) = p(c) Π_blocks p(x_block | c), as raw evidence: counts and sums, without smoothing or priors.

    Immutable: + and − return new models, and an operation that fails changes nothing.
    """

    schema: Schema
    classes: Levels
    counts: Sum  # (K) Σ w of each class
    blocks: tuple[Block, ...]
    missing: Missing = "skip"

    def check_fields(self) -> None:
        require_classes(self.classes)
        require_weights("counts", self.counts, (len(self.classes),))
        require((self.counts.value > 0).all(), "a class has no rows")
        for i, block in enumerate(self.blocks):
            require(max(block.columns) < len(self.schema.all_kinds), f"block {i} reads a column that does not exist")
            try:
                block.statistic.check(len(self.classes), block.family.width(len(block.columns)))
            except DecibanError as error:
                raise DecibanError(f"block {i}, {type(block.family).__name__}: {error}") from None

    def __post_init__(self) -> None:
        blocks = tuple(block.bind(self.schema, self.missing) for block in self.blocks)
        object.__setattr__(self, "blocks", blocks)

    @classmethod
    def observe(cls, batch: Batch, schema: Schema, plans: Sequence[Plan], missing: Missing) -> Generative:
        rows, classes, blocks = MatchedFrame.of(schema, batch), len(batch.classes), []
        for plan in plans:
            with rows.naming(plan.columns):
                values = plan.read(rows.frame, rows.columns(plan.columns), missing)
                blocks.append(Block(plan, plan.family.collect(values, batch.labels, batch.weights, classes)))
        return cls(schema, batch.classes, class_counts(batch), tuple(blocks), missing)._without_empty_classes()

    @classmethod
    def collect(cls, rows: Labelled, schema: Schema, plans: Sequence[Plan], missing: Missing) -> Generative:
        """The evidence of all rows, batch by batch, wherever they are."""
        observe = partial(cls.observe, schema=schema, plans=plans, missing=missing)
        return rows.summed(observe, needs_small_batches=needs_small_batches(plans, rows.frame))

    @property
    def plans(self) -> tuple[Plan, ...]:
        return tuple(block.plan for block in self.blocks)

    def __add__(self, other: Self) -> Self:
        classes = sorted_levels({*self.classes, *other.classes})
        a, b = (model._reindexed(classes) for model in self._matched(other))
        pairs = zip(a.blocks, b.blocks, strict=True)
        blocks = tuple(x.with_statistic(x.statistic + y.statistic) for x, y in pairs)
        return replace(a, schema=a.schema.merge(b.schema), counts=a.counts + b.counts, blocks=blocks)

    def __sub__(self, other: Self) -> Self:
        return self._subtracted(other, lambda a, b: a - b)

    def without(self, row: Self) -> Self:
        """The evidence of all training rows except one, to estimate from; also for families that cannot forget."""
        return self._subtracted(row, lambda a, b: a.subtract_row(b))

    def _subtracted(self, other: Self, subtract: Callable[[Statistic, Statistic], Statistic]) -> Self:
        unknown = [c for c in other.classes if c not in self.classes]
        if unknown:
            raise NegativeEvidence(f"class {unknown[0]!r} was never learned; the model is unchanged")
        a, b = (model._reindexed(self.classes) for model in self._matched(other))
        counts = a.counts - b.counts
        require_not_negative(counts)
        pairs = zip(a.blocks, b.blocks, strict=True)
        blocks = tuple(x.with_statistic(subtract(x.statistic, y.statistic)) for x, y in pairs)
        return replace(a, schema=a.schema.merge(b.schema), counts=counts, blocks=blocks)._without_empty_classes()

    def _matched(self, other: Self) -> tuple[Self, Self]:
        """Both models with the plans of all rows together; features are matched by name, in the order of this model."""
        if self.schema.names == other.schema.names and self.plans == other.plans and self.missing == other.missing:
            return self, other
        other = other._in_order_of(self.schema)
        self.schema.merge(other.schema)  # incompatible kinds make the clearer error
        if self.missing != other.missing:
            raise DecibanError(DIFFERENT_FAMILIES)
        plans = replaced(self.plans, self._empty | wider(other.plans, self.plans), other.plans)
        return self._with_plans(plans), other._with_plans(plans)

    def sharing(self, other: Self) -> tuple[Self, Self]:
        """Both models without the joint blocks that only one of them has."""
        other = other._in_order_of(self.schema) if self.schema.names != other.schema.names else other

        def shared(model: Self, plans: Sequence[Plan]) -> Self:
            blocks = tuple(block for block in model.blocks if not block.family.joint or block.plan in plans)
            return replace(model, blocks=blocks)

        return shared(self, other.plans), shared(other, self.plans)

    def plans_for(self, first_plans: Callable[[], Sequence[Plan]]) -> tuple[Plan, ...]:
        """The plans for more rows: the same, except that features without a value so far get those of a first fit."""
        if not self._empty:
            return self.plans
        lenient = any(plan.lenient for plan in self.plans)
        return replaced(self.plans, self._empty, [replace(plan, lenient=lenient) for plan in first_plans()])

    @property
    def _empty(self) -> set[int]:
        """Features without a value and with the default family of such: they may still get any other family."""
        default = [plan for plan in self.plans if plan.family == by_kind()["empty"]]
        return {j for plan in default for j in plan.columns if self.schema.all_kinds[j] == "empty"}

    @property
    def _without_values(self) -> set[int]:
        """The empty features, and numeric ones without a known value."""
        features = self._empty
        for block in self.blocks:
            if isinstance(block.statistic, Moments):
                nothing = block.statistic.count.value.sum(axis=0) == 0
                features |= {block.columns[i] for i in np.flatnonzero(nothing)}
        return features

    def _in_order_of(self, schema: Schema) -> Self:
        """The same evidence, with features in the order of another schema."""
        ordered = self.schema.reorder_like(schema)
        position = {name: j for j, name in enumerate(ordered.all_names)}
        moved = [position[name] for name in self.schema.all_names]
        plans = [replace(plan, columns=tuple(moved[j] for j in plan.columns)) for plan in self.plans]
        blocks = tuple(replace(block, plan=plan) for block, plan in zip(self.blocks, plans, strict=True))
        return replace(self, schema=ordered, blocks=blocks)

    def _with_plans(self, plans: tuple[Plan, ...]) -> Self:
        """The same evidence in the blocks of other plans; only empty features may change their family."""
        if plans == self.plans:
            return self
        return replace(self, blocks=tuple(Block(plan, self._evidence_for(plan)) for plan in plans))

    def _evidence_for(self, plan: Plan) -> Statistic:
        """The statistic of a plan: from blocks that read its features alike, and of missing values for the others."""
        matching = [block for block in self.blocks if alike(block.plan, plan)]
        known = [j for block in matching for j in block.columns]
        new = tuple(sorted({*plan.columns}.difference(known)))
        if new and not self._may_change_family({*new}, plan.family):
            raise DecibanError(DIFFERENT_FAMILIES)
        parts = [block.statistic for block in matching]
        if new:
            parts.append(self._of_missing_values(replace(plan, columns=new)))
        whole = parts[0] if len(parts) == 1 else type(parts[0]).concat_columns(parts)
        if (*known, *new) == plan.columns:
            return whole
        position = {j: i for i, j in enumerate((*known, *new))}
        return whole.columns([position[j] for j in plan.columns])

    def _may_change_family(self, columns: set[int], family: AnyFamily) -> bool:
        """Whether a family may take over features that another family has read so far.

        A multivariate normal skips rows with a missing value: all rows, if a feature has no value. Then it has no
        evidence to take over from families that read its other features one by one.
        """
        if columns <= self._empty:
            return True
        absent = self._without_values
        partly = {j for plan in self.plans if plan.family == family for j in plan.columns}
        return isinstance(family, joint.MultivariateGaussian) and bool(columns & absent) and columns <= absent | partly

    def _of_missing_values(self, plan: Plan) -> Statistic:
        """The statistic of a plan for these rows if all of its values are missing."""
        words = self.counts.words  # (words, K) a row for each, so that Σw stays exact
        columns = list(range(len(plan.columns)))
        values = plan.read(MatrixFrame(np.full((words.size, len(columns)), np.nan)), columns, self.missing)
        labels = np.tile(np.arange(len(self.classes), dtype=np.int32), len(words))
        statistic: Statistic = plan.family.collect(values, labels, words.ravel(), len(self.classes))
        return statistic

    def _reindexed(self, classes: Levels) -> Self:
        if classes == self.classes:
            return self
        index, size = ClassIndex(classes).positions(self.classes), len(classes)
        blocks = tuple(block.with_statistic(block.statistic.reindex_classes(index, size)) for block in self.blocks)
        return replace(self, classes=classes, counts=self.counts.scatter(index, size), blocks=blocks)

    def take_classes(self, positions: IntArray | Sequence[int], classes: Levels | None = None) -> Self:
        """Some of the classes, by position; relabelled, if `classes` are given."""
        blocks = tuple(block.with_statistic(block.statistic.take(positions)) for block in self.blocks)
        classes = tuple(self.classes[k] for k in positions) if classes is None else classes
        return replace(self, classes=classes, counts=self.counts.take(positions), blocks=blocks)

    def _without_empty_classes(self) -> Self:
        positions = np.flatnonzero(self.counts.value)
        return self if len(positions) == len(self.classes) else self.take_classes(positions)

    def estimate(self, settings: Settings) -> Estimate:
        """Parameters of every block, and of the class prior."""
        shrinkages = settings.shrinkages or (0.0,) * len(self.blocks)
        contexts = tuple(
            Context(self.classes, block.names, settings.smoothing, settings.unseen == "reserve", shrinkage)
            for block, shrinkage in zip(self.blocks, shrinkages, strict=True)
        )
        params = tuple(
            block.family.estimate(block.statistic, context)
            for block, context in zip(self.blocks, contexts, strict=True)
        )
        prior = log_prior(self.counts.value, self.classes, settings.class_prior)
        return Estimate(self, prior, params, contexts, settings)


def class_counts(batch: Batch) -> Sum:
    """(K) Σ w of each class."""
    classes = len(batch.classes)
    if batch.weights is None:
        return Sum.of(_kernels.count_labels(batch.labels, classes))
    one = np.zeros((len(batch.labels), 1), dtype=np.int32)
    words = _kernels.count_codes(one, np.array([0, 1]), batch.labels, batch.weights, classes)
    return Sum(np.ascontiguousarray(words[:, :, 0]))
