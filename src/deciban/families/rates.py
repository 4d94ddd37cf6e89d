"""Rates: what Poisson and Exponential share. Each column has one parameter, which is a function of its mean."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.families.base import FLOOR, Context, Family, Table, class_rows
from deciban.families.natural import powers
from deciban.families.priors import Virtual
from deciban.late import late
from deciban.statistics.moments import Moments
from deciban.types import Domain, FloatArray, IntArray, Labels

if TYPE_CHECKING:
    from deciban.families.formulas import Formula

formulas = late("deciban.families.formulas")  # only a report asks for them

CHUNK = 2**19  # cells, times classes, that are worked on together


@dataclass(frozen=True)
class RateParams:
    rate: FloatArray  # (K, d)
    informative: NDArray[np.bool_]  # (d)


@dataclass(frozen=True)
class RateFamily(Family[Moments, RateParams]):
    """log p(x|c) = h(x) + s(λ)·x + t(λ), with a rate λ that follows from the mean."""

    prior: Virtual | None = None
    domain: ClassVar[Domain]
    factorial: ClassVar[bool] = False  # whether h(x) is −log x!, and not 0

    @abstractmethod
    def check(self, values: NDArray[Any]) -> None:
        """Raises BadCell where a cell is outside the domain."""

    @abstractmethod
    def rate(self, mean: FloatArray, pooled: FloatArray) -> FloatArray:
        """λ, from the mean of the class and that of all classes; elementwise."""

    @abstractmethod
    def line(self, rate: FloatArray) -> tuple[FloatArray, FloatArray]:
        """s(λ) and t(λ), elementwise."""

    def common(self, x: FloatArray) -> FloatArray:
        """(n, 1) Σ h(x) over the columns, which is the same for all classes."""
        return np.zeros((len(x), 1))

    def collect(self, values: NDArray[Any], labels: Labels, weights: FloatArray | None, classes: int) -> Moments:
        self.check(values)
        return Moments.of(values, labels, weights, classes)

    def estimate(self, statistic: Moments, context: Context) -> RateParams:
        pooled = statistic.pooled()
        mean = drawn(statistic.count.value, statistic.sum_x.value, statistic.mean, pooled.mean, self.prior)
        informative = pooled.squares[0] > 0
        return RateParams(self.rate(*(np.where(informative, m, 1.0) for m in (mean, pooled.mean))), informative)

    def add_log_density(self, params: RateParams, values: NDArray[Any], out: FloatArray) -> None:
        self.check(values)
        slope, constant = self._lines(params)
        _kernels.add_linear(values, slope, constant, out)
        out += self.common(values[:, params.informative].astype(np.float64))

    def _lines(self, params: RateParams) -> tuple[FloatArray, FloatArray]:
        """(K, d) s(λ) and t(λ); 0 where not informative."""
        slope, constant = (np.where(params.informative, part, 0.0) for part in self.line(params.rate))
        return slope, constant

    def leave_one_out(
        self,
        statistic: Moments,
        params: RateParams,
        context: Context,
        values: NDArray[Any],
        labels: Labels,
        weights: FloatArray | None,
        out: FloatArray,
    ) -> None:
        kept = np.flatnonzero(params.informative)
        rates, informative = params.rate[:, kept], statistic.columns(kept)
        moving = self._others_move(informative, weights)
        for rows in chunks(len(labels), len(kept), len(context.classes) if moving.any() else 1):
            w = None if weights is None else weights[rows]
            left = Left.of(informative, values[rows][:, kept], labels[rows], w)
            self._add_left(informative, rates, moving, left, out[rows])
            for j in np.flatnonzero(left.unsure.any(axis=0)):
                one, alone = [kept[j]], replace(context, columns=(context.columns[kept[j]],))
                again = np.flatnonzero(left.unsure[:, j])
                self.estimate_without(
                    statistic.columns(one), alone, values[rows][:, one], labels[rows], w, again, out[rows]
                )

    def _others_move(self, statistic: Moments, weights: FloatArray | None) -> NDArray[np.bool_]:
        """(d) whether a row may change the rates of other classes: those that follow the mean of all classes do."""
        if self.prior is not None and self.prior.m > 0:
            return np.ones(statistic.count.shape[1], np.bool_)
        pooled = statistic.pooled()
        count = pooled.count.value - (1.0 if weights is None else weights.max(initial=0.0))
        most = np.divide(pooled.sum_x.value, count, out=np.full_like(count, np.inf), where=count > 0)
        low = statistic.mean.min(axis=0)  # 0 where a class has no cell
        moves: NDArray[np.bool_] = np.less(low, 2 * FLOOR * most[0])
        return moves

    def _add_left(
        self, statistic: Moments, rates: FloatArray, moving: NDArray[np.bool_], left: Left, out: FloatArray
    ) -> None:
        """out (m, K) += log p, where each row's own class has lost the row, and in moving columns the others follow."""
        found = np.zeros_like(out)
        slope, constant = (np.where(moving, 0.0, part) for part in self.line(rates))
        _kernels.add_linear(left.x, slope, constant, found)
        own = drawn(left.count, left.total, left.mean, left.pooled, self.prior)
        still = self._log_density(left.x, own, left.pooled)[:, ~moving].sum(axis=1)
        found[np.arange(len(out)), left.labels] = still
        if moving.any():
            count, total, mean, pooled = left.of_classes(statistic, np.flatnonzero(moving))
            x = left.x[:, moving, np.newaxis]
            found += self._log_density(x, drawn(count, total, mean, pooled, self.prior), pooled).sum(axis=1)
        out += found + self.common(left.x)

    def _log_density(self, x: FloatArray, mean: FloatArray, pooled: FloatArray) -> FloatArray:
        """s(λ)·x + t(λ), elementwise; 0 where x is missing."""
        there = ~np.isnan(x)
        slope, constant = self.line(self.rate(np.where(there, mean, 1.0), np.where(there, pooled, 1.0)))
        return np.where(there, slope * x + constant, 0.0)

    def sufficient(self, params: RateParams, values: NDArray[Any]) -> FloatArray:
        self.check(values)
        return powers(values[:, params.informative], 1)

    def n_parameters(self, params: RateParams) -> int:
        return params.rate.size

    def formula(self, params: RateParams) -> list[Formula]:
        """A line for each column, and −log x! of counts."""
        slope, constant = self._lines(params)
        factorial = params.informative if self.factorial else None
        columns = tuple(range(len(params.informative)))
        domains = (self.domain,)
        return [formulas.Curve(columns, None, constant.T, slope.T, factorial=factorial, domains=domains)]

    def linear_formula(self, params: RateParams, weights: FloatArray) -> list[Formula]:
        kept = tuple(np.flatnonzero(params.informative).tolist())
        constant, slope = weights[:, ::2].T, weights[:, 1::2].T
        return [formulas.Curve(kept, constant=constant, slope=slope, domains=(self.domain,))]

    def describe(self, params: RateParams, context: Context) -> list[Table]:
        kind = type(self).__name__
        return [
            Table(f"{name} ({kind})", ("class", "rate"), class_rows(context, [params.rate[:, j]]))
            for j, name in enumerate(context.columns)
        ]


@dataclass(frozen=True)
class Left:
    """m rows of d columns, each left out: what is left of its own class, and of all classes together."""

    x: FloatArray  # (m, d) NaN where the cell is missing, or unsure
    labels: Labels  # (m)
    count: FloatArray  # (m, d) Σw of the row's class, without the row
    total: FloatArray  # (m, d) Σwx of the row's class, without the row
    mean: FloatArray  # (m, d) of the row's class, without the row; 0 where nothing is left
    pooled: FloatArray  # (m, d) mean of all classes, without the row
    unsure: NDArray[np.bool_]  # (m, d) where the column may be constant without the row, or digits are lost

    @classmethod
    def of(cls, statistic: Moments, values: NDArray[Any], labels: Labels, weights: FloatArray | None) -> Left:
        x = values.astype(np.float64)
        there = ~np.isnan(x)
        w = np.where(there, 1.0 if weights is None else weights[:, np.newaxis], 0.0)
        wx = np.where(there, w * x, 0.0)
        own = labels[:, np.newaxis], np.arange(x.shape[1])
        count, total = statistic.count.less(w, *own), statistic.sum_x.less(wx, *own)
        everything, whole = statistic.count.total(), statistic.sum_x.total()
        count_of_all, total_of_all = everything.less(w), whole.less(wx)
        unsure = there & _may_be_constant(statistic.pooled(), x, w)
        if weights is not None:  # w·x is rounded, which matters where it is nearly the whole sum: of one row at most
            unsure |= there & ((total < 0.01 * statistic.sum_x.value[own]) | (total_of_all < 0.01 * whole.value))
        x[unsure] = np.nan
        return cls(x, labels, count, total, _ratio(total, count), _ratio(total_of_all, count_of_all), unsure)

    def of_classes(
        self, statistic: Moments, columns: IntArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """(m, columns, K) count, total and mean of every class without the row, and the pooled mean (m, columns, 1)."""
        rows = np.arange(len(self.x))[:, np.newaxis], np.arange(len(columns)), self.labels[:, np.newaxis]
        found = []
        for of_class, own in (
            (statistic.count.value, self.count),
            (statistic.sum_x.value, self.total),
            (statistic.mean, self.mean),
        ):
            of_all = np.tile(of_class[:, columns].T, (len(self.x), 1, 1))
            of_all[rows] = own[:, columns]
            found.append(of_all)
        count, total, mean = found
        return count, total, mean, self.pooled[:, columns, np.newaxis]


def drawn(
    count: FloatArray, total: FloatArray, mean: FloatArray, pooled: FloatArray, prior: Virtual | None
) -> FloatArray:
    """(Σx + m·pooled) / (n + m): class means drawn towards that of all classes by m virtual rows; elementwise.

    >>> drawn(np.array([2.0, 0.0]), np.array([6.0, 0.0]), np.array([3.0, 0.0]), np.array([5.0]), Virtual(2.0))
    array([4., 5.])
    """
    if prior is not None and prior.m > 0:
        return (total + prior.m * pooled) / (count + prior.m)
    return np.where(count > 0, mean, pooled)


def chunks(rows: int, columns: int, classes: int) -> Iterator[slice]:
    """The rows, as many at a time as keep their arrays small."""
    size = max(1, CHUNK // max(1, columns * classes))
    return (slice(start, min(start + size, rows)) for start in range(0, rows, size))


def _may_be_constant(pooled: Moments, x: FloatArray, w: FloatArray) -> NDArray[np.bool_]:
    """(m, d) where Σ(x − mean)² without the row is not surely above 0: Σ(x − mean)² − w(x − mean)²·n/(n − w)."""
    n, mean, squares = pooled.count.value, pooled.mean, pooled.squares
    away = np.abs(x - mean) + np.spacing(mean)  # the mean is rounded
    with np.errstate(all="ignore"):
        left = squares - w * away**2 * (n / (n - w))
    surely: NDArray[np.bool_] = left > 1e-4 * squares
    return ~surely


def _ratio(total: FloatArray, count: FloatArray) -> FloatArray:
    return np.divide(total, count, out=np.zeros_like(total), where=count > 0)
