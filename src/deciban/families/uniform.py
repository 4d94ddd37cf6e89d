"""Uniform: each column evenly spread over an interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deciban.errors import forbid_infinite
from deciban.families.family import FLOOR, Context, Family, Fitted, formulas
from deciban.families.labelled_values import LabelledValues
from deciban.families.priors import Laplace
from deciban.statistics.extrema import Extrema, Least
from deciban.table import Table
from deciban.types import BoolArray, FloatArray, Labels

if TYPE_CHECKING:
    from deciban.export.formulas import Formula, Lookup


@dataclass(frozen=True)
class UniformParams:
    low: FloatArray  # (K, d)
    high: FloatArray  # (K, d)
    informative: BoolArray  # (d)


@dataclass(frozen=True)
class Uniform(Family[Extrema, UniformParams]):
    """Numbers that are evenly spread over an interval of each class.

    p(x|c) = 1/(b − a) on [a, b], with a = min x − αg and b = max x + αg, where g = (range of the column)/(n + 1)

    α = 0 is maximum likelihood, under which values beyond the training range are impossible. The widening is the
    posterior mode under the conjugate (bilateral Pareto) prior whose virtual rows reach α gaps beyond the extremes; g
    is the expected gap between neighbours of n rows that spread over the column's range in all classes together. Rows
    cannot be subtracted.

    Parameters
    ----------
    prior : deciban.priors.Laplace or None, default None
        With Laplace(α). None: α is the smoothing of the model.

    See Also
    --------
    deciban.NotInvertible : What `forget` raises.

    Examples
    --------
    >>> import numpy as np
    >>> from deciban.families import Context, Uniform
    >>> family = Uniform()
    >>> evidence = family.collect(np.array([[1.0], [3.0], [5.0]]), np.zeros(3, np.int32), None, 1)
    >>> params = family.estimate(evidence, Context(("all",), ("x",)))
    >>> params.low.item(), params.high.item()
    (0.0, 6.0)
    """

    phrase: ClassVar[str] = "uniform between the extremes of each class"
    prior: Laplace | None = None

    def collect(self, values: NDArray[Any], labels: Labels, weights: FloatArray | None, classes: int) -> Extrema:
        forbid_infinite(values)
        return Extrema.of(values, labels, weights, classes)

    def estimate(self, statistic: Extrema, context: Context) -> UniformParams:
        low, high = statistic.low, statistic.high
        column = Range(low.min(axis=0), high.max(axis=0))
        low, high = widened(low, high, statistic.count.value, column, self._alpha(context))
        informative = column.span > 0
        return UniformParams(np.where(informative, low, 0.0), np.where(informative, high, 1.0), informative)

    def _alpha(self, context: Context) -> float:
        return context.smoothing if self.prior is None else self.prior.alpha

    def add_log_density(self, params: UniformParams, values: NDArray[Any], out: FloatArray) -> None:
        forbid_infinite(values)
        for j in np.flatnonzero(params.informative):
            out += log_density_within(params.low[:, j], params.high[:, j], values[:, [j]])

    def leave_one_out(self, fitted: Fitted[Extrema, UniformParams], rows: LabelledValues, out: FloatArray) -> None:
        """Only the row's own class changes, unless the row alone is at an end of the column's range."""
        labels, w = rows.labels, 1.0 if rows.weights is None else rows.weights
        for j in np.flatnonzero(fitted.params.informative).tolist():
            column, cells = fitted.columns([j]), rows.columns([j])
            statistic, params, x = column.statistic, column.params, cells.values[:, 0].astype(np.float64)
            count = np.where(np.isnan(x), statistic.count.value[labels, 0], statistic.count.subtract(w, labels, 0))
            low, lower = _without(statistic.least, x, labels, w)
            most, higher = _without(statistic.most, -x, labels, w)
            whole = Range(statistic.low.min(), statistic.high.max())
            low, high = widened(low, 0.0 - most, count, whole, self._alpha(column.context))
            log_p = log_density_within(params.low[:, 0], params.high[:, 0], x[:, np.newaxis])
            log_p[np.arange(len(rows)), labels] = log_density_within(low, high, x)
            moved = lower | higher  # at most two rows, without which the range of the column changes
            log_p[moved] = 0.0
            out += log_p
            self.estimate_without(column, cells, np.flatnonzero(moved), out)

    def n_parameters(self, params: UniformParams) -> int:
        return 2 * params.low.size

    def formula(self, params: UniformParams) -> list[Formula]:
        """A step function for each column, which changes at the ends of the classes' intervals."""
        tables: list[Formula] = []
        for j, (low, high) in enumerate(zip(params.low.T, params.high.T, strict=True)):
            tables.append(_steps(j, low, high) if params.informative[j] else formulas.Always((j,), np.zeros(len(low))))
        return tables

    def describe(self, params: UniformParams, context: Context) -> list[Table]:
        return self._tables(context, ("from", "to"), params.low, params.high)


@dataclass(frozen=True)
class Range:
    """The range of a column in all classes together."""

    least: FloatArray  # (d) or a number; +inf without values
    most: FloatArray  # (d) or a number; −inf without values

    @property
    def span(self) -> FloatArray:
        seen = self.least <= self.most
        return np.where(seen, self.most - np.where(seen, self.least, 0.0), 0.0)


def widened(
    low: FloatArray, high: FloatArray, count: FloatArray, column: Range, alpha: float
) -> tuple[FloatArray, FloatArray]:
    """min x − αg and max x + αg, elementwise, and never equal; the column's range for a class without values."""
    span = column.span
    empty = low > high
    low, high = np.where(empty, column.least, low), np.where(empty, column.most, high)
    gap = np.maximum(alpha * span / (count + 1.0), np.where(low == high, 0.5 * FLOOR * span, 0.0))
    low, high = low - gap, high + gap
    narrow = low == high  # the gap is below the spacing of doubles: one step to either side
    return np.where(narrow, np.nextafter(low, -np.inf), low), np.where(narrow, np.nextafter(high, np.inf), high)


def log_density_within(low: FloatArray, high: FloatArray, x: FloatArray) -> FloatArray:
    """−log(high − low) if low <= x <= high, else −inf; 0 where x is missing; elementwise."""
    inside = np.where((x >= low) & (x <= high), -np.log(high - low), -np.inf)
    return np.where(np.isnan(x), 0.0, inside)


def _steps(column: int, low: FloatArray, high: FloatArray) -> Lookup:
    """[low, high] of each class (K) as bins: one begins at each low, and one after each high."""
    cuts = np.unique(np.concatenate([low, np.nextafter(high, np.inf)]))
    firsts = np.append(np.nextafter(cuts[0], -np.inf), cuts)  # a number of each bin
    table = log_density_within(low, high, firsts[:, np.newaxis])
    steps: Lookup = formulas.Lookup((column,), (formulas.Code(column, len(firsts), cuts=cuts),), table)
    return steps


def _without(least: Least, x: FloatArray, labels: Labels, w: FloatArray | float) -> tuple[FloatArray, BoolArray]:
    """(n) the minimum of each row's class without the row, and whether the minimum of all classes changes with it."""
    smallest = least.value[labels, 0]
    lost = (x == smallest) & (least.weight.subtract(w, labels, 0) == 0)
    only = (least.value == least.value.min()).sum() == 1
    return np.where(lost, least.second[labels, 0], smallest), lost & only & (smallest == least.value.min())
