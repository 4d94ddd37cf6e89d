"""Linear models of distributed rows: values, gradients and Hessians are sums, so each θ takes one pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from deciban.data.batch import Batch
from deciban.data.class_index import ClassIndex
from deciban.data.distributed import DistributedRows
from deciban.data.schema import Schema
from deciban.errors import BadCell, DecibanError, cell_error
from deciban.families import Categorical, Gaussian
from deciban.generative.model import Generative
from deciban.generative.plan import Plan, is_sparse
from deciban.linear.design import Design, Part, columns_by_encoder
from deciban.linear.design_rows import DenseRows, DesignRows, SparseRows, scale_of
from deciban.linear.encoders import Indicators, Numbers
from deciban.linear.objective import MAX_DENSE_CELLS, TOO_WIDE, Criterion, Objective
from deciban.linear.responses import Response
from deciban.statistics import Counts, Moments, Scatter
from deciban.statistics.sums import Sum
from deciban.types import FloatArray, Levels

T = TypeVar("T")


def forbid_distributed(X: Any, model: object) -> None:
    """Raises an error for distributed rows, in models that need all rows in memory."""
    if isinstance(X, DistributedRows):
        raise DecibanError(f"{type(model).__name__} needs the rows in memory: read them, or a sample of them")


@dataclass(frozen=True)
class DistributedDesignRows:
    """Distributed rows with their design, coordinates and classes, so that an objective can be summed over them."""

    source: DistributedRows
    design: Design
    rows: DesignRows  # coordinates, without rows
    classes: Levels
    weight: FloatArray  # (K) Σ w of each class

    @classmethod
    def of(cls, source: DistributedRows) -> DistributedDesignRows:
        """The design that all rows in memory would have, from one pass (or two, if they are sparse)."""
        schema = Schema.of(source.frame)
        numbers, categories = columns_by_encoder(schema)
        if is_sparse(source.frame):  # the design does not depend on the rows
            return cls.with_design(source, Design.of(source.frame.slice(0, 0)))
        plans = [Plan(Gaussian(), numbers), Plan(Categorical(), categories)]
        evidence = Generative.collect(source, schema, [plan for plan in plans if plan.columns], "category")
        parts, spreads = [], [np.zeros(0)]
        for block in evidence.blocks:
            labels = tuple(schema.names[j] for j in block.plan.columns)
            encode: Any = _numbers if isinstance(block.statistic, Moments) else _indicators
            encoder, spread = encode(labels, block.statistic, evidence.counts.total())
            parts.append(Part(block.plan.columns, encoder))
            spreads.append(spread)
        design = Design(schema, tuple(parts))
        rows = _coordinates(source, design, design.origin, np.concatenate(spreads))
        return cls(source, design, rows, evidence.classes, evidence.counts.value)

    @classmethod
    def with_design(cls, source: DistributedRows, design: Design) -> DistributedDesignRows:
        """The rows as features of a given design."""
        evidence = Generative.collect(source, Schema.of(source.frame), (), "category")
        small = design.needs_small_batches(source.frame)
        sums: Any = source.summed(partial(_feature_moments, design), needs_small_batches=small)
        mean, squares = (sums.mean[0], sums.squares[0]) if isinstance(sums, Moments) else (0.0 * sums, sums)
        rows = _coordinates(source, design, mean, np.sqrt(squares / float(evidence.counts.total().value)))
        return cls(source, design, rows, evidence.classes, evidence.counts.value)

    def reordered(self, classes: Levels) -> DistributedDesignRows:
        """The same classes in another order."""
        positions = ClassIndex(self.classes).positions(classes)
        return replace(self, classes=classes, weight=self.weight[positions])


def _numbers(labels: Levels, moments: Moments, total: Sum) -> tuple[Numbers, FloatArray]:
    """The encoder, and the spread of its features: missing values are imputed by the mean, so they add none."""
    pooled, n = moments.pooled(), float(total.value)
    count, mean, squares = pooled.count, pooled.mean[0], pooled.squares[0]
    rows = Sum(np.repeat(total.words[:, np.newaxis, np.newaxis], len(labels), axis=2))
    absent = (rows - count).value[0]  # exactly
    share = np.where(count.value[0] > 0, absent / n, 1.0)
    spread = np.where((squares == 0) & (np.abs(mean) < 1e-150), np.abs(mean), np.sqrt(squares / n))  # underflow
    numbers = Numbers(labels, mean, share, None if share.any() else spread)
    marked = share[list(numbers.marked)]
    return numbers, np.concatenate([spread, np.sqrt(marked * (1.0 - marked))])


def _indicators(labels: Levels, counts: Counts, total: Sum) -> tuple[Indicators, FloatArray]:
    """The encoder, and the spread of its features."""
    later = np.delete(np.arange(counts.offsets[-1]), counts.offsets[:-1])  # the first level is the reference
    share = counts.table.total().value[later] / float(total.value)
    return Indicators(labels, counts.levels, share), np.sqrt(share * (1.0 - share))


def _coordinates(source: DistributedRows, design: Design, mean: FloatArray, spread: FloatArray) -> DesignRows:
    """Sparse rows are not centred: their scale is the root mean square."""
    empty = design.matrix(source.frame.slice(0, 0))
    if sp.issparse(empty):
        size = np.hypot(mean, spread)
        return SparseRows(empty, np.zeros(len(size)), scale_of(size), size > 0)
    return DenseRows(empty, mean, scale_of(spread), spread > 0)


def _feature_moments(design: Design, batch: Batch) -> Moments | FloatArray:
    """The moments of the features; for sparse rows the sums of squares."""
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


@dataclass(frozen=True)
class BatchObjective:
    """Builds the objective of one batch, on the worker that holds it."""

    design: Design
    classes: Levels
    rows: DesignRows
    response: Response

    def objective(self, batch: Batch) -> Objective:
        x = self.design.matrix(batch.frame, batch.first, batch.rows)
        y = ClassIndex(self.classes).recode(batch.labels, batch.classes).astype(np.float64)
        return Objective(self.rows.with_matrix(x), self.response, y, batch.weights)


@dataclass(frozen=True)
class Maximum:
    """An elementwise maximum that is merged as sums are: a + b is the larger of both."""

    values: FloatArray

    def __add__(self, other: Maximum) -> Maximum:
        return Maximum(np.maximum(self.values, other.values))


@dataclass(frozen=True)
class DistributedObjective(Criterion):
    """The same J(θ) as `Objective` for rows in memory, from one pass for each θ."""

    data: DistributedDesignRows
    response: Response
    l2: float
    metric: FloatArray | None
    with_information: bool  # computed together with J, as Newton's method needs both
    _last: list[tuple[FloatArray, FloatArray]] = field(default_factory=list, repr=False, compare=False)

    @property
    def rows(self) -> DesignRows:  # type: ignore[override]
        return self.data.rows

    @property
    def total(self) -> float:
        return float(self.data.weight.sum())

    @property
    def mean_statistic(self) -> FloatArray:
        return self.data.weight[1:] / self.total

    def loss(self, theta: FloatArray) -> tuple[float, FloatArray]:
        values = self._at(theta, self.with_information)
        return float(values[0]), values[1 : 1 + theta.size].reshape(theta.shape)

    def information(self, theta: FloatArray) -> FloatArray:
        return self._at(theta, with_information=True)[1 + theta.size :].reshape(theta.size, theta.size).copy()

    def _at(self, theta: FloatArray, with_information: bool) -> FloatArray:
        """Loss, gradient and, if wanted, information, from one pass; cached for the last θ."""
        size = 1 + theta.size + (theta.size**2 if with_information else 0)
        if self._last and len(self._last[0][1]) >= size and np.array_equal(self._last[0][0], theta):
            return self._last[0][1]
        self._last[:] = [(theta, self._sum(_derivatives, theta, with_information))]
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
        if self.rows.shape[1] ** 2 > MAX_DENSE_CELLS:
            raise DecibanError(TOO_WIDE)
        return self._sum(Objective.scatter, needs_small_batches=True)  # sparse rows are made dense

    def maximum(self, function: Callable[..., ArrayLike], *args: Any) -> FloatArray:
        return self._sum(_maximum, function, *args).values

    def _sum(self, function: Callable[..., T], *args: Any, needs_small_batches: bool = False) -> T:
        """The sum of function(objective, *args) over the batches."""
        source, design = self.data.source, self.data.design
        local = BatchObjective(design, self.data.classes, self.rows, self.response)
        return source.summed(
            partial(_on_batch, local, function, args),
            needs_small_batches=needs_small_batches or design.needs_small_batches(source.frame),
        )


def _on_batch(local: BatchObjective, function: Callable[..., T], args: tuple[Any, ...], batch: Batch) -> T:
    return function(local.objective(batch), *args)


def _maximum(objective: Objective, function: Callable[..., ArrayLike], *args: Any) -> Maximum:
    return Maximum(objective.maximum(function, *args))


def _derivatives(objective: Objective, theta: FloatArray, with_information: bool) -> FloatArray:
    value, gradient = objective.loss(theta)
    information = objective.information(theta).ravel() if with_information else np.zeros(0)
    return np.concatenate([[value], gradient.ravel(), information])
