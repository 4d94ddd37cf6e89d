"""Generative: class counts and blocks of evidence. It observes, merges, forgets, is estimated, and scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Self

import numpy as np

from deciban import _kernels
from deciban.batch import UNSEEN, Batch, Coded, Frame, Place
from deciban.contributions import Contributions, Line, title
from deciban.errors import BadCell, DecibanError, NegativeEvidence, cell_error, forbid_infinite
from deciban.families.base import Context
from deciban.late import late
from deciban.plans import (
    AnyFamily,
    Missing,
    Plan,
    alike,
    by_kind,
    converts,
    read,
    replaced,
    wider,
)
from deciban.schema import Schema
from deciban.sources import Labelled
from deciban.sources.arrays import MatrixFrame
from deciban.statistics.base import Statistic, require_not_negative
from deciban.statistics.counts import Counts
from deciban.statistics.moments import Moments
from deciban.statistics.sums import Sum
from deciban.types import FloatArray, IntArray, Level, Levels, sorted_levels

joint = late("deciban.families.multivariate_gaussian")

ClassPrior = Literal["empirical", "laplace", "uniform"] | Sequence[float] | Mapping[Level, float]
Unseen = Literal["skip", "reserve", "error"]

FEW = 16  # classes: so few are filled faster column by column than row by row
DIFFERENT = (
    "the models read their columns with different families: they cannot be added. Fit one with the families of the "
    "other: NaiveBayes(families=other.families_)"
)


@dataclass(frozen=True)
class Block:
    """One family over one or more columns, and the evidence seen."""

    plan: Plan
    statistic: Statistic


@dataclass(frozen=True)
class Generative:
    """p(c, x) = p(c) Π_blocks p(x_block | c), as evidence: everything that was seen, nothing that was assumed.

    A value: + and − make new ones, and an operation that fails leaves the old one as it was.
    """

    schema: Schema
    classes: Levels
    counts: Sum  # (K) Σ w of each class
    blocks: tuple[Block, ...]
    missing: Missing = "skip"

    @classmethod
    def observe(cls, batch: Batch, schema: Schema, plans: Sequence[Plan], missing: Missing) -> Generative:
        """The evidence of one batch."""
        places = schema.places(batch.frame)
        classes = len(batch.classes)
        blocks = []
        for plan in plans:
            try:
                values = read(plan, batch.frame, places, None, missing)
                blocks.append(Block(plan, plan.family.collect(values, batch.labels, batch.weights, classes)))
            except BadCell as bad:
                raise named_cell(bad, plan, schema, places, batch.frame, batch.row_number(bad.row)) from None
        return cls(schema, batch.classes, class_counts(batch), tuple(blocks), missing)._without_empty_classes()

    @classmethod
    def collect(cls, rows: Labelled, schema: Schema, plans: Sequence[Plan], missing: Missing) -> Generative:
        """The evidence of all rows, batch by batch, wherever they are."""
        observe = partial(cls.observe, schema=schema, plans=plans, missing=missing)
        return rows.summed(observe, converts=converts(plans, rows.frame))

    @property
    def plans(self) -> tuple[Plan, ...]:
        return tuple(block.plan for block in self.blocks)

    def __add__(self, other: Self) -> Self:
        classes = sorted_levels({*self.classes, *other.classes})
        a, b = (model._on(classes) for model in self._matched(other))
        blocks = tuple(Block(x.plan, x.statistic + y.statistic) for x, y in zip(a.blocks, b.blocks, strict=True))
        return type(self)(a.schema.widened(b.schema), classes, a.counts + b.counts, blocks, self.missing)

    def __sub__(self, other: Self) -> Self:
        return self._less(other, lambda a, b: a - b)

    def without(self, row: Self) -> Self:
        """Less one row that was learned, to estimate from: families that cannot forget can do this."""
        return self._less(row, lambda a, b: a.without(b))

    def _less(self, other: Self, subtract: Callable[[Statistic, Statistic], Statistic]) -> Self:
        unknown = [c for c in other.classes if c not in self.classes]
        if unknown:
            raise NegativeEvidence(f"class {unknown[0]!r} was never learned; the model is unchanged")
        a, b = (model._on(self.classes) for model in self._matched(other))
        counts = a.counts - b.counts
        require_not_negative(counts)
        pairs = zip(a.blocks, b.blocks, strict=True)
        blocks = tuple(Block(x.plan, subtract(x.statistic, y.statistic)) for x, y in pairs)
        schema = a.schema.widened(b.schema)
        return type(self)(schema, self.classes, counts, blocks, self.missing)._without_empty_classes()

    def _matched(self, other: Self) -> tuple[Self, Self]:
        """Both with the plans of all rows at once; columns are matched by name, and stand in the order of this one."""
        if self.schema.names == other.schema.names and self.plans == other.plans and self.missing == other.missing:
            return self, other
        other = other._in_order_of(self.schema)
        self.schema.widened(other.schema)  # kinds that do not go together are the clearer error
        if self.missing != other.missing:
            raise DecibanError(DIFFERENT)
        plans = replaced(self.plans, self._free | wider(other.plans, self.plans), other.plans)
        return self._read_by(plans), other._read_by(plans)

    def sharing(self, other: Self) -> tuple[Self, Self]:
        """Both without the joint blocks that only one of them has."""
        other = other._in_order_of(self.schema) if self.schema.names != other.schema.names else other

        def kept(model: Self, plans: Sequence[Plan]) -> Self:
            blocks = tuple(block for block in model.blocks if not block.plan.family.joint or block.plan in plans)
            return replace(model, blocks=blocks)

        return kept(self, other.plans), kept(other, self.plans)

    def plans_for(self, first: Callable[[], Sequence[Plan]]) -> tuple[Plan, ...]:
        """How more rows are read: as these were, but a column that was empty as if it were met for the first time."""
        if not self._free:
            return self.plans
        lenient = any(plan.lenient for plan in self.plans)
        return replaced(self.plans, self._free, [replace(plan, lenient=lenient) for plan in first()])

    @property
    def _free(self) -> set[int]:
        """Columns that were never present, and are read by the family of such: any other would have seen as much."""
        default = [plan for plan in self.plans if plan.family == by_kind()["empty"]]
        return {j for plan in default for j in plan.columns if self.schema.all_kinds[j] == "empty"}

    @property
    def _absent(self) -> set[int]:
        """Columns without a cell: the free ones, and numbers of which none is known."""
        found = self._free
        for block in self.blocks:
            if isinstance(block.statistic, Moments):
                nothing = block.statistic.count.value.sum(axis=0) == 0
                found |= {block.plan.columns[i] for i in np.flatnonzero(nothing)}
        return found

    def _in_order_of(self, schema: Schema) -> Self:
        """The same evidence, with the columns numbered as in another schema."""
        ordered = self.schema.in_order_of(schema)
        place = {name: j for j, name in enumerate(ordered.all_names)}
        places = [place[name] for name in self.schema.all_names]
        blocks = tuple(
            Block(replace(b.plan, columns=tuple(places[j] for j in b.plan.columns)), b.statistic) for b in self.blocks
        )
        return type(self)(ordered, self.classes, self.counts, blocks, self.missing)

    def _read_by(self, plans: tuple[Plan, ...]) -> Self:
        """The same evidence in the blocks of other plans; only of columns that are empty may the family change."""
        if plans == self.plans:
            return self
        blocks = tuple(Block(plan, self._evidence_for(plan)) for plan in plans)
        return type(self)(self.schema, self.classes, self.counts, blocks, self.missing)

    def _evidence_for(self, plan: Plan) -> Statistic:
        """What is known of a plan's columns: by the block that reads them so, and of the others that they are empty."""
        same = [block for block in self.blocks if alike(block.plan, plan)]
        known = [j for block in same for j in block.plan.columns]
        new = tuple(sorted({*plan.columns}.difference(known)))
        if new and not self._may_turn({*new}, plan.family):
            raise DecibanError(DIFFERENT)
        parts = [block.statistic for block in same]
        if new:
            parts.append(self._of_empty_cells(replace(plan, columns=new)))
        place = {j: i for i, j in enumerate((*known, *new))}
        whole = parts[0] if len(parts) == 1 else type(parts[0]).beside(parts)
        if (*known, *new) == plan.columns:
            return whole
        return whole.columns([place[j] for j in plan.columns])

    def _may_turn(self, columns: set[int], family: AnyFamily) -> bool:
        """Whether a family may have columns that it did not read here.

        A joint normal leaves out rows with a hole: where a column is absent, that is all rows, so what was learned of
        its other columns by themselves is no part of it.
        """
        if columns <= self._free:
            return True
        absent = self._absent
        partly = {j for plan in self.plans if plan.family == family for j in plan.columns}
        return isinstance(family, joint.MultivariateGaussian) and bool(columns & absent) and columns <= absent | partly

    def _of_empty_cells(self, plan: Plan) -> Statistic:
        """What a plan would have seen of these rows, all of its cells being empty."""
        words = self.counts.words  # (words, K) a row for each, so that Σw stays exact
        columns = tuple(range(len(plan.columns)))
        frame = MatrixFrame(np.full((words.size, len(columns)), np.nan))
        values = read(replace(plan, columns=columns), frame, list(columns), None, self.missing)
        labels = np.tile(np.arange(len(self.classes), dtype=np.int32), len(words))
        statistic: Statistic = plan.family.collect(values, labels, words.ravel(), len(self.classes))
        return statistic

    def _on(self, classes: Levels) -> Self:
        if classes == self.classes:
            return self
        place = {label: i for i, label in enumerate(classes)}
        index = [place[label] for label in self.classes]
        blocks = tuple(Block(b.plan, b.statistic.align(index, len(classes))) for b in self.blocks)
        return type(self)(self.schema, classes, self.counts.place(index, len(classes)), blocks, self.missing)

    def _without_empty_classes(self) -> Self:
        kept = np.flatnonzero(self.counts.value)
        if len(kept) == len(self.classes):
            return self
        classes = tuple(self.classes[i] for i in kept)
        blocks = tuple(Block(b.plan, b.statistic.take(kept)) for b in self.blocks)
        return type(self)(self.schema, classes, self.counts.take(kept), blocks, self.missing)

    def estimate(self, settings: Settings) -> Estimate:
        """Parameters of every block, and of the class prior."""
        shrinkages, names = settings.shrinkages or (0.0,) * len(self.blocks), self.schema.all_names
        contexts = tuple(
            Context(
                self.classes,
                tuple(names[j] for j in block.plan.columns),
                settings.smoothing,
                settings.unseen == "reserve",
                shrinkage,
            )
            for block, shrinkage in zip(self.blocks, shrinkages, strict=True)
        )
        params = tuple(
            b.plan.family.estimate(b.statistic, context) for b, context in zip(self.blocks, contexts, strict=True)
        )
        prior = log_prior(self.counts.value, self.classes, settings.class_prior)
        return Estimate(self, prior, params, contexts, settings)


@dataclass(frozen=True)
class Settings:
    """What an estimate is made with, beside the evidence and the settings of the families."""

    smoothing: float
    class_prior: ClassPrior
    unseen: Unseen
    shrinkages: tuple[float, ...] = ()  # of each block that leaves its own to be chosen; none is all 0


@dataclass(frozen=True)
class Estimate:
    """A generative model with parameters: it scores rows."""

    evidence: Generative
    log_prior: FloatArray  # (K)
    params: tuple[Any, ...]  # of each block
    contexts: tuple[Context, ...]
    settings: Settings

    def joint(self, frame: Frame, out: FloatArray, first_row: int | IntArray = 0) -> None:
        """out (n, K) = log p(c) + Σ_blocks log p(x_block | c). Messages number rows from the first, or as given."""
        places = self.evidence.schema.places(frame)
        if len(self.log_prior) < FEW:
            for k, prior in enumerate(self.log_prior):
                out[:, k] = prior
        else:
            out[:] = self.log_prior
        for block, params in zip(self.evidence.blocks, self.params, strict=True):
            try:
                values = self.read(block, frame, places, first_row)
                block.plan.family.add_log_density(params, values, out)
                _require_finite(values, out)
            except BadCell as bad:
                row = numbered_row(first_row, bad.row)
                raise named_cell(bad, block.plan, self.evidence.schema, places, frame, row) from None

    def converts(self, frame: Frame) -> bool:
        return converts([block.plan for block in self.evidence.blocks], frame)

    def contributions(self, frame: Frame) -> Contributions:
        """The prior, what each column (or block that is not split by columns) adds, and what each term does."""
        places, names, classes = self.evidence.schema.places(frame), self.evidence.schema.names, len(self.log_prior)
        found: dict[tuple[int, ...], FloatArray] = {}
        terms: list[tuple[Line, FloatArray]] = []
        try:
            for block, params in zip(self.evidence.blocks, self.params, strict=True):
                family, columns = block.plan.family, block.plan.columns
                values = self.read(block, frame, places, 0)
                family.check(values)
                by_terms = family.lines(params, values, classes)
                if by_terms is not None:
                    terms += [(term.line(columns, names), term.nats) for term in by_terms]
                    continue
                pieces = family.parts(params, values, classes)
                owners = [columns] if len(pieces) != len(columns) else [(j,) for j in columns]
                for owner, piece in zip(owners, pieces, strict=True):
                    found[owner] = found[owner] + piece if owner in found else piece
        except BadCell:
            self._name_bad_cell(frame)
            raise
        prior = np.broadcast_to(self.log_prior, (frame.rows, classes))
        order = sorted(found)
        lines = [Line("prior"), *(Line(title(owner, names), owner) for owner in order), *(line for line, _ in terms)]
        nats = np.stack([prior, *(found[owner] for owner in order), *(piece for _, piece in terms)], axis=1)
        if not np.isfinite(nats.sum()):
            self._name_bad_cell(frame)
        return Contributions(tuple(lines), nats)

    def column_shares(self, frame: Frame) -> FloatArray:
        """(n, columns, K) what each column adds; columns of a block that is not split by columns share alike."""
        places, width = self.evidence.schema.places(frame), len(self.evidence.schema.names)
        out = np.zeros((frame.rows, width, len(self.log_prior)))
        for block, params in zip(self.evidence.blocks, self.params, strict=True):
            columns = list(block.plan.columns)
            pieces = block.plan.family.parts(params, self.read(block, frame, places, 0), out.shape[2])
            split = len(pieces) == len(columns)
            for i, piece in enumerate(pieces):
                owners = columns[i : i + 1] if split else columns
                out[:, owners] += piece[:, np.newaxis] / len(owners)
        return out

    def _name_bad_cell(self, frame: Frame) -> None:
        """Raises an error that names the cell, if there is a bad one; a part of a block knows no other column."""
        self.joint(frame, np.empty((frame.rows, len(self.log_prior))))

    def read(self, block: Block, frame: Frame, places: Sequence[Place], first_row: int | IntArray) -> Any:
        """A block's columns in the form its family reads; a value never seen is refused where that is asked for."""
        levels = block.statistic.levels if isinstance(block.statistic, Counts) else None
        values = read(block.plan, frame, places, levels, self.evidence.missing)
        if self.settings.unseen == "error" and isinstance(values, Coded) and (values.codes == UNSEEN).any():
            row, j = np.argwhere(values.codes == UNSEEN)[0].tolist()
            column = block.plan.columns[j]
            value = frame.cell(row, places[column])
            known = ", ".join(map(repr, values.levels[j][:10]))
            problem = f"was never seen in training (known: {known}); unseen='skip' ignores such cells"
            raise cell_error(self.evidence.schema.all_names[column], numbered_row(first_row, row), value, problem)
        return values


def numbered_row(first: int | IntArray, row: int) -> int:
    """The number of a row, counted from that of the first, or looked up."""
    return first + row if isinstance(first, int) else int(first[row])


def _require_finite(values: Any, out: FloatArray) -> None:
    """An infinite number makes infinite or undefined scores, which are cheap to see; then the cell is sought."""
    if isinstance(values, np.ndarray) and not np.isfinite(out.sum()):
        forbid_infinite(values)


def class_counts(batch: Batch) -> Sum:
    """(K) Σ w of each class."""
    classes = len(batch.classes)
    if batch.weights is None:
        return Sum.of(_kernels.count_labels(batch.labels, classes))
    one = np.zeros((len(batch.labels), 1), dtype=np.int32)
    words = _kernels.count_codes(one, np.array([0, 1]), batch.labels, batch.weights, classes)
    return Sum(np.ascontiguousarray(words[:, :, 0]))


def log_prior(counts: FloatArray, classes: Levels, prior: ClassPrior) -> FloatArray:
    """log p(c): n_c/n, (n_c + 1)/(n + K), 1/K, or as given; for counts (…, K) of each class.

    >>> np.exp(log_prior(np.array([1.0, 3.0]), ("no", "yes"), "laplace")).round(12)
    array([0.33333333, 0.66666667])
    """
    k = counts.shape[-1]
    if isinstance(prior, str):
        if prior == "empirical":
            weight = counts
        elif prior == "laplace":
            weight = counts + 1.0
        elif prior == "uniform":
            weight = np.ones_like(counts)
        else:
            raise DecibanError(f"class_prior must be empirical, laplace, uniform or probabilities, not {prior!r}")
    else:
        if isinstance(prior, Mapping):
            lacking = [c for c in classes if c not in prior]
            if lacking:
                raise DecibanError(f"class_prior gives no probability for class {lacking[0]!r}")
            weight = np.array([float(prior[c]) for c in classes])
        else:
            weight = np.asarray(prior, dtype=np.float64)
        if weight.shape != (k,):
            raise DecibanError(f"class_prior has {weight.size} probabilities for {k} classes {list(classes)}")
        if not (weight >= 0).all() or abs(weight.sum() - 1) > 1e-9:
            raise DecibanError("class_prior must be probabilities that sum to 1")
    with np.errstate(divide="ignore"):
        result: FloatArray = np.log(weight) - np.log(weight.sum(axis=-1, keepdims=True))
    return np.broadcast_to(result, counts.shape).copy()


def named_cell(
    bad: BadCell, plan: Plan, schema: Schema, places: Sequence[Place], frame: Frame, row: int
) -> DecibanError:
    column = plan.columns[bad.column]
    return cell_error(schema.all_names[column], row, frame.cell(bad.row, places[column]), bad.problem)
