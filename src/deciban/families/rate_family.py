"""RateFamily: the base of Poisson and Exponential. Each column has one parameter, a function of its mean."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.families.family import FLOOR, Context, Family, Fitted, Natural, Shaped, formulas
from deciban.families.labelled_values import LabelledValues
from deciban.families.natural import Term, by_column, names, powers, presence
from deciban.families.priors import Virtual
from deciban.statistics.moments import Moments
from deciban.table import Table
from deciban.types import BoolArray, Domain, FloatArray, IntArray, Labels

if TYPE_CHECKING:
    from deciban.export.formulas import Formula

CHUNK = 2**19  # values, times classes, that are left out at a time


@dataclass(frozen=True)
class RateParams:
    rate: FloatArray  # (K, d)
    informative: BoolArray  # (d)


@dataclass(frozen=True)
class RateFamily(Family[Moments, RateParams]):
    """log p(x|c) = h(x) + s(λ)·x + t(λ), with a rate λ that follows from the mean."""

    prior: Virtual | None = None
    domain: ClassVar[Domain]
    factorial: ClassVar[bool] = False  # whether h(x) is −log x!, and not 0

    @abstractmethod
    def rate(self, mean: FloatArray, pooled: FloatArray) -> FloatArray:
        """λ, from the mean of the class and that of all classes; elementwise.

        Parameters
        ----------
        mean : array
            Means of the classes.
        pooled : array
            Means of all classes together.

        Returns
        -------
        array
            Rates.
        """

    @abstractmethod
    def line(self, rate: FloatArray) -> tuple[FloatArray, FloatArray]:
        """s(λ) and t(λ) of log p(x|c) = h(x) + s(λ)·x + t(λ), elementwise.

        Parameters
        ----------
        rate : array
            Rates λ.

        Returns
        -------
        slope : array
            s(λ).
        constant : array
            t(λ).
        """

    def common(self, x: FloatArray) -> FloatArray:
        """Σ h(x) over the columns, which is the same for all classes.

        Parameters
        ----------
        x : array of shape (n, d)
            Numbers, NaN where missing.

        Returns
        -------
        array of shape (n, 1)
            0, unless h(x) is −log x!.
        """
        return np.zeros((len(x), 1))

    def collect(self, values: NDArray[Any], labels: Labels, weights: FloatArray | None, classes: int) -> Moments:
        self.check(values)
        return Moments.of(values, labels, weights, classes)

    def estimate(self, statistic: Moments, context: Context) -> RateParams:
        pooled = statistic.pooled()
        mean = shrunk(statistic.count.value, statistic.sum_x.value, statistic.mean, pooled.mean, self.prior)
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

    def leave_one_out(self, fitted: Fitted[Moments, RateParams], rows: LabelledValues, out: FloatArray) -> None:
        index = np.flatnonzero(fitted.params.informative)
        statistic, rates = fitted.statistic.columns(index), fitted.params.rate[:, index]
        moving = self._others_move(statistic, rows.weights)
        for chunk in chunks(len(rows), len(index), out.shape[1] if moving.any() else 1):
            batch = rows.take(chunk)
            left = Left.of(statistic, batch.columns(index))
            self._add_left(statistic, rates, moving, left, out[chunk])
            for j in np.flatnonzero(left.unsure.any(axis=0)):
                column, unsure = [int(index[j])], np.flatnonzero(left.unsure[:, j])
                self.estimate_without(fitted.columns(column), batch.columns(column), unsure, out[chunk])

    def _others_move(self, statistic: Moments, weights: FloatArray | None) -> BoolArray:
        """(d) whether a row may change the rates of other classes, which may follow the mean of all classes."""
        if self.prior is not None and self.prior.m > 0:
            return np.ones(statistic.count.shape[1], np.bool_)
        pooled = statistic.pooled()
        count = pooled.count.value - (1.0 if weights is None else weights.max(initial=0.0))
        most = np.divide(pooled.sum_x.value, count, out=np.full_like(count, np.inf), where=count > 0)
        low = statistic.mean.min(axis=0)  # 0 where a class has no value
        moves: BoolArray = np.less(low, 2 * FLOOR * most[0])
        return moves

    def _add_left(self, statistic: Moments, rates: FloatArray, moving: BoolArray, left: Left, out: FloatArray) -> None:
        """out (m, K) += log p without the row, which changes its own class and, in moving columns, the others."""
        log_p = np.zeros_like(out)
        slope, constant = (np.where(moving, 0.0, part) for part in self.line(rates))
        _kernels.add_linear(left.x, slope, constant, log_p)
        own = shrunk(left.count, left.total, left.mean, left.pooled, self.prior)
        own_log_p = self._log_density(left.x, own, left.pooled)[:, ~moving].sum(axis=1)
        log_p[np.arange(len(out)), left.labels] = own_log_p
        if moving.any():
            count, total, mean, pooled = left.of_classes(statistic, np.flatnonzero(moving))
            x = left.x[:, moving, np.newaxis]
            log_p += self._log_density(x, shrunk(count, total, mean, pooled, self.prior), pooled).sum(axis=1)
        out += log_p + self.common(left.x)

    def _log_density(self, x: FloatArray, mean: FloatArray, pooled: FloatArray) -> FloatArray:
        """s(λ)·x + t(λ), elementwise; 0 where x is missing."""
        present = ~np.isnan(x)
        slope, constant = self.line(self.rate(np.where(present, mean, 1.0), np.where(present, pooled, 1.0)))
        return np.where(present, slope * x + constant, 0.0)

    def natural(self, params: RateParams, context: Context) -> Natural:
        """t(λ) for T = 1, and s(λ) for T = x; h(x) is common to all classes."""
        slope, constant = self.line(params.rate)
        terms = [Term(presence(context), constant, presence=True), Term(names(context), slope)]
        return by_column(params.informative, terms)

    def sufficient(self, params: RateParams, values: NDArray[Any]) -> FloatArray:
        self.check(values)
        return powers(values[:, params.informative], 1)

    def param_shapes(self, params: RateParams, classes: int, columns: int) -> dict[str, Shaped]:
        return {"rate": (params.rate, (classes, columns)), "informative": (params.informative, (columns,))}

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
        return self._tables(context, ("rate",), params.rate)


@dataclass(frozen=True)
class Left:
    """m rows of d columns, each left out: the sums of its own class, and the mean of all classes, without it."""

    x: FloatArray  # (m, d) NaN where the value is missing, or unsure
    labels: Labels  # (m)
    count: FloatArray  # (m, d) Σw of the row's class
    total: FloatArray  # (m, d) Σwx of the row's class
    mean: FloatArray  # (m, d) of the row's class; 0 if it has no other row
    pooled: FloatArray  # (m, d) mean of all classes
    unsure: BoolArray  # (m, d) where the column may be constant without the row, or too many digits are lost

    @classmethod
    def of(cls, statistic: Moments, rows: LabelledValues) -> Left:
        x, labels = rows.values.astype(np.float64), rows.labels
        present = ~np.isnan(x)
        w = np.where(present, 1.0 if rows.weights is None else rows.weights[:, np.newaxis], 0.0)
        wx = np.where(present, w * x, 0.0)
        own = labels[:, np.newaxis], np.arange(x.shape[1])
        count, total = statistic.count.subtract(w, *own), statistic.sum_x.subtract(wx, *own)
        everything, whole = statistic.count.total(), statistic.sum_x.total()
        count_of_all, total_of_all = everything.subtract(w), whole.subtract(wx)
        unsure = present & _may_be_constant(statistic.pooled(), x, w)
        if rows.weights is not None:  # w·x is rounded, which matters where it is nearly the whole sum
            unsure |= present & ((total < 0.01 * statistic.sum_x.value[own]) | (total_of_all < 0.01 * whole.value))
        x[unsure] = np.nan
        return cls(x, labels, count, total, _ratio(total, count), _ratio(total_of_all, count_of_all), unsure)

    def of_classes(self, statistic: Moments, columns: IntArray) -> tuple[FloatArray, ...]:
        """(m, columns, K) count, total and mean of every class without the row, and the pooled mean (m, columns, 1)."""
        rows = np.arange(len(self.x))[:, np.newaxis], np.arange(len(columns)), self.labels[:, np.newaxis]
        parts = []
        for of_class, own in (
            (statistic.count.value, self.count),
            (statistic.sum_x.value, self.total),
            (statistic.mean, self.mean),
        ):
            of_all = np.tile(of_class[:, columns].T, (len(self.x), 1, 1))
            of_all[rows] = own[:, columns]
            parts.append(of_all)
        count, total, mean = parts
        return count, total, mean, self.pooled[:, columns, np.newaxis]


def shrunk(
    count: FloatArray, total: FloatArray, mean: FloatArray, pooled: FloatArray, prior: Virtual | None
) -> FloatArray:
    """(Σx + m·pooled) / (n + m): class means shrunk towards that of all classes by m virtual rows; elementwise.

    >>> shrunk(np.array([2.0, 0.0]), np.array([6.0, 0.0]), np.array([3.0, 0.0]), np.array([5.0]), Virtual(2.0))
    array([4., 5.])
    """
    if prior is not None and prior.m > 0:
        return (total + prior.m * pooled) / (count + prior.m)
    return np.where(count > 0, mean, pooled)


def chunks(rows: int, columns: int, classes: int) -> Iterator[slice]:
    size = max(1, CHUNK // max(1, columns * classes))
    return (slice(start, min(start + size, rows)) for start in range(0, rows, size))


def _may_be_constant(pooled: Moments, x: FloatArray, w: FloatArray) -> BoolArray:
    """(m, d) where rounding may hide that Σ(x − mean)² − w(x − mean)²·n/(n − w), without the row, is 0."""
    n, mean, squares = pooled.count.value, pooled.mean, pooled.squares
    away = np.abs(x - mean) + np.spacing(mean)  # the mean is rounded
    with np.errstate(all="ignore"):
        left = squares - w * away**2 * (n / (n - w))
    surely: BoolArray = left > 1e-4 * squares
    return ~surely


def _ratio(total: FloatArray, count: FloatArray) -> FloatArray:
    return np.divide(total, count, out=np.zeros_like(total), where=count > 0)
