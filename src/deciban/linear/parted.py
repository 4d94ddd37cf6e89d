"""A linear model of rows in parts elsewhere: values, gradients and Hessians are sums, so each θ is one pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from deciban.batch import Batch
from deciban.design import Design, Indicators, Numbers, Part, columns_by_encoder
from deciban.errors import BadCell, DecibanError, cell_error
from deciban.families import Categorical, Gaussian
from deciban.generative import Generative
from deciban.linear.objective import CELLS_AT_MOST, TOO_WIDE, Criterion, Objective
from deciban.linear.rows import DenseRows, SparseRows, scale_of
from deciban.plans import Plan, is_sparse
from deciban.responses import Response
from deciban.schema import Schema
from deciban.sources.parted import Parted
from deciban.statistics import Counts, Moments, Scatter
from deciban.statistics.sums import Sum
from deciban.types import FloatArray, Levels

T = TypeVar("T")


def forbid_parted(X: Any, model: object) -> None:
    """For models that need to see all rows at once."""
    if isinstance(X, Parted):
        name = type(model).__name__
        raise DecibanError(f"{name} needs the rows in one place: read them, or a sample of them, into memory")


# What the rows are like ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PartedRows:
    """Rows elsewhere, with all that has to be known of them to add up an objective."""

    parted: Parted
    design: Design
    rows: DenseRows | SparseRows  # coordinates; there is no row in them
    classes: Levels
    weight: FloatArray  # (K) Σ w of each class

    @classmethod
    def of(cls, parted: Parted) -> PartedRows:
        """The design that all rows in memory would have, from one pass (or two, if they are sparse)."""
        schema = Schema.of(parted.frame)
        numbers, categories = columns_by_encoder(schema)
        if is_sparse(parted.frame):  # whose design knows nothing of the rows
            return cls.again(parted, Design.of(parted.frame.slice(0, 0)))
        plans = [Plan(Gaussian(), numbers), Plan(Categorical(), categories)]
        evidence = Generative.collect(parted, schema, [plan for plan in plans if plan.columns], "category")
        parts, spreads = [], [np.zeros(0)]
        for block in evidence.blocks:
            labels = tuple(schema.names[j] for j in block.plan.columns)
            make: Any = _numbers if isinstance(block.statistic, Moments) else _indicators
            encoder, spread = make(labels, block.statistic, evidence.counts.total())
            parts.append(Part(block.plan.columns, encoder))
            spreads.append(spread)
        design = Design(schema, tuple(parts))
        rows = _coordinates(parted, design, design.origin, np.concatenate(spreads))
        return cls(parted, design, rows, evidence.classes, evidence.counts.value)

    @classmethod
    def again(cls, parted: Parted, design: Design) -> PartedRows:
        """By a design that is known."""
        evidence = Generative.collect(parted, Schema.of(parted.frame), (), "category")
        found = parted.summed(partial(_measured, design), converts=design.converts(parted.frame))
        total = float(evidence.counts.total().value)
        mean, squares = (found.mean[0], found.squares[0]) if isinstance(found, Moments) else (0.0 * found, found)
        rows = _coordinates(parted, design, mean, np.sqrt(squares / total))
        return cls(parted, design, rows, evidence.classes, evidence.counts.value)

    def ordered(self, classes: Levels) -> PartedRows:
        """The same classes in another order."""
        place = [self.classes.index(label) for label in classes]
        return replace(self, classes=classes, weight=self.weight[place])


def _numbers(labels: Levels, moments: Moments, total: Sum) -> tuple[Numbers, FloatArray]:
    """And the spread of the features. A missing cell holds the mean, so it adds nothing to that of its column."""
    pooled, n = moments.pooled(), float(total.value)
    count, mean, squares = pooled.count, pooled.mean[0], pooled.squares[0]
    everyone = Sum(np.repeat(total.words[:, np.newaxis, np.newaxis], len(labels), axis=2))
    absent = (everyone - count).value[0]  # exactly
    share = np.where(count.value[0] > 0, absent / n, 1.0)
    spread = np.where((squares == 0) & (np.abs(mean) < 1e-150), np.abs(mean), np.sqrt(squares / n))  # or none is left
    numbers = Numbers(labels, mean, share, None if share.any() else spread)
    marked = share[list(numbers.marked)]
    return numbers, np.concatenate([spread, np.sqrt(marked * (1.0 - marked))])


def _indicators(labels: Levels, counts: Counts, total: Sum) -> tuple[Indicators, FloatArray]:
    """And their spread."""
    later = np.delete(np.arange(counts.offsets[-1]), counts.offsets[:-1])  # the first of each column is no feature
    share = counts.table.total().value[later] / float(total.value)
    return Indicators(labels, counts.levels, share), np.sqrt(share * (1.0 - share))


def _coordinates(parted: Parted, design: Design, mean: FloatArray, spread: FloatArray) -> DenseRows | SparseRows:
    """Sparse rows are not centred: their unit is the root mean square."""
    nothing = design.matrix(parted.frame.slice(0, 0))
    if sp.issparse(nothing):
        size = np.hypot(mean, spread)
        return SparseRows(nothing, np.zeros(len(size)), scale_of(size), size > 0)
    return DenseRows(nothing, mean, scale_of(spread), spread > 0)


def _measured(design: Design, batch: Batch) -> Moments | FloatArray:
    """The moments of the features; of sparse rows the sums of their squares."""
    design.forbid_infinite(batch.frame, batch.first, batch.rows)
    x = design.matrix(batch.frame, batch.first, batch.rows)
    if not sp.issparse(x):
        try:
            return Moments.of(x, np.zeros(len(x), np.int32), batch.weights, 1)
        except BadCell as bad:
            cell = x[bad.row, bad.column].item()
            raise cell_error(design.names[bad.column], batch.row_number(bad.row), cell, bad.problem) from None
    weight = np.ones(x.shape[0]) if batch.weights is None else batch.weights
    return SparseRows(x, np.zeros(x.shape[1]), np.ones(x.shape[1])).squares(weight)[:-1]


# What is minimised ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Local:
    """Makes an objective of one batch, where the batch is."""

    design: Design
    classes: Levels
    rows: DenseRows | SparseRows
    response: Response

    def objective(self, batch: Batch) -> Objective:
        x = self.design.matrix(batch.frame, batch.first, batch.rows)
        known = {label: place for place, label in enumerate(self.classes)}
        place = np.array([known.get(label, -1) for label in batch.classes], dtype=np.float64)  # −1: it has no row
        return Objective(self.rows.over(x), self.response, place[batch.labels], batch.weights)


@dataclass(frozen=True)
class Highest:
    """max, as a sum: a + b is the larger of each two numbers."""

    values: FloatArray

    def __add__(self, other: Highest) -> Highest:
        return Highest(np.maximum(self.values, other.values))


@dataclass(frozen=True)
class PartedObjective(Criterion):
    """The same J(θ) as of rows in memory, by one pass for each θ."""

    data: PartedRows
    response: Response
    l2: float
    metric: FloatArray | None
    curved: bool  # whether the information is wanted wherever J is
    _last: list[tuple[FloatArray, FloatArray]] = field(default_factory=list, repr=False, compare=False)

    @property
    def rows(self) -> DenseRows | SparseRows:  # type: ignore[override]
        return self.data.rows

    @property
    def total(self) -> float:
        return float(self.data.weight.sum())

    @property
    def mean_statistic(self) -> FloatArray:
        return self.data.weight[1:] / self.total

    def loss(self, theta: FloatArray) -> tuple[float, FloatArray]:
        found = self._at(theta, self.curved)
        return float(found[0]), found[1 : 1 + theta.size].reshape(theta.shape)

    def information(self, theta: FloatArray) -> FloatArray:
        return self._at(theta, curved=True)[1 + theta.size :].reshape(theta.size, theta.size).copy()

    def _at(self, theta: FloatArray, curved: bool) -> FloatArray:
        """Loss, gradient and, where wanted, information, in one pass; those of the last θ are kept."""
        size = 1 + theta.size + (theta.size**2 if curved else 0)
        if self._last and len(self._last[0][1]) >= size and np.array_equal(self._last[0][0], theta):
            return self._last[0][1]
        self._last[:] = [(theta, self._sum(_slopes, theta, curved))]
        return self._last[0][1]

    def curvatures(self, theta: FloatArray) -> FloatArray:
        return self._sum(Objective.curvatures, theta)

    def variances(self, theta: FloatArray) -> FloatArray:
        return self._sum(Objective.variances, theta)

    def gram(self) -> FloatArray:
        return self._gram

    @cached_property
    def _gram(self) -> FloatArray:
        return self._sum(Objective.gram)

    def gram_times(self, vector: FloatArray) -> FloatArray:
        return self._sum(Objective.gram_times, vector)

    def scatter(self) -> Scatter:
        if self.rows.shape[1] ** 2 > CELLS_AT_MOST:
            raise DecibanError(TOO_WIDE)
        return self._sum(Objective.scatter, converts=True)  # in small batches, as sparse rows are written out

    def farthest(self, theta: FloatArray) -> float:
        return float(self._highest(Objective.farthest, theta))

    def errs(self, theta: FloatArray) -> bool:
        return bool(self._highest(Objective.errs, theta))

    def extremes(self, columns: Sequence[int]) -> FloatArray:
        return self._highest(Objective.extremes, columns)

    def _sum(self, ask: Callable[..., T], *given: Any, converts: bool = False) -> T:
        parted, design = self.data.parted, self.data.design
        local = Local(design, self.data.classes, self.rows, self.response)
        return parted.summed(partial(_asked, local, ask, given), converts=converts or design.converts(parted.frame))

    def _highest(self, ask: Callable[..., Any], *given: Any) -> FloatArray:
        return self._sum(_high, ask, *given).values


def _asked(local: Local, ask: Callable[..., T], given: tuple[Any, ...], batch: Batch) -> T:
    return ask(local.objective(batch), *given)


def _high(objective: Objective, ask: Callable[..., Any], *given: Any) -> Highest:
    return Highest(np.asarray(ask(objective, *given), dtype=np.float64))


def _slopes(objective: Objective, theta: FloatArray, curved: bool) -> FloatArray:
    value, gradient = objective.loss(theta)
    information = objective.information(theta).ravel() if curved else np.zeros(0)
    return np.concatenate([[value], gradient.ravel(), information])
