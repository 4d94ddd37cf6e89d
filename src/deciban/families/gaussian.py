"""Gaussian: each column normal within each class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.families.family import FLOOR, Context, Family, Fitted, Natural, Shaped, formulas
from deciban.families.labelled_values import LabelledValues
from deciban.families.natural import Term, by_column, names, origins, powers, presence, shifted, squarable, squared
from deciban.families.priors import InverseGamma, Normal
from deciban.statistics.moments import Moments
from deciban.table import Table
from deciban.types import BoolArray, FloatArray, Labels

if TYPE_CHECKING:
    from deciban.export.formulas import Formula

HUGE = 1e150  # beyond, squares may overflow
LEAST = 1e-4  # of a class's squares or count: if less remains without a row, too many digits are lost


class Column(NamedTuple):
    """Moments of a class in a column; arrays that broadcast."""

    n: FloatArray  # Σw
    mean: FloatArray
    squares: FloatArray  # Σw(x − mean)²


@dataclass(frozen=True)
class GaussianParams:
    mean: FloatArray  # (K, d)
    variance: FloatArray  # (K, d)
    informative: BoolArray  # (d) False where the column is constant or always missing


@dataclass(frozen=True)
class Gaussian(Family[Moments, GaussianParams]):
    """Numbers with a normal density in each class.

    log p(x|c) = −½ log 2πσ² − (x − μ)²/2σ², with μ = Σx/n and σ² = Σ(x − μ)²/(n − ddof)

    With priors, estimates are posterior modes: first that of the variance, about the sample mean, then that of the mean
    given this variance. No variance is below 1e-9 of the column's variance over all classes.

    Parameters
    ----------
    ddof : float, default 0
        0 is maximum likelihood, 1 the unbiased variance (as in R's e1071).
    mean : deciban.priors.Normal or None, default None
        A prior on the mean.
    variance : deciban.priors.InverseGamma or None, default None
        A prior on the variance.

    See Also
    --------
    deciban.families.MultivariateGaussian : Columns that are correlated.
    deciban.families.Binned : Numbers of any distribution.

    Examples
    --------
    >>> import numpy as np
    >>> from deciban.families import Context, Gaussian
    >>> family = Gaussian(ddof=1)
    >>> evidence = family.collect(np.array([[1.0], [2.0], [6.0]]), np.zeros(3, np.int32), None, 1)
    >>> params = family.estimate(evidence, Context(("all",), ("x",)))
    >>> params.mean.item(), params.variance.item()
    (3.0, 7.0)
    """

    phrase: ClassVar[str] = "normal density in each class"
    ddof: float = 0
    mean: Normal | None = None
    variance: InverseGamma | None = None

    def collect(self, values: NDArray[Any], labels: Labels, weights: FloatArray | None, classes: int) -> Moments:
        return Moments.of(values, labels, weights, classes)

    def estimate(self, statistic: Moments, context: Context) -> GaussianParams:
        pooled = statistic.pooled()
        spread = _spread(pooled.squares, pooled.count.value)
        own = Column(statistic.count.value, statistic.mean, statistic.squares)
        mean, variance = self._parameters(own, pooled.mean, spread)
        return GaussianParams(mean, variance, (spread > 0)[0])

    def _parameters(self, own: Column, pooled_mean: FloatArray, spread: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of a class in a column with this mean and variance over all classes; elementwise."""
        count, mean, squares = own
        informative = spread > 0
        if self.variance is None:
            divisor = count - self.ddof
            variance = np.divide(squares, divisor, out=np.zeros_like(squares), where=divisor > 0)
        else:
            variance = self.variance.mode(count, squares)
        variance = np.maximum(variance, np.where(informative, FLOOR * spread, 1.0))
        if self.mean is not None:
            mean = self.mean.mode(count, count * mean, variance)
        empty = count == 0  # unless there is a prior, a class without values has the parameters of all classes together
        if self.mean is None:
            mean = np.where(empty, pooled_mean, mean)
        if self.variance is None:
            variance = np.where(empty & informative, spread, variance)
        return mean, variance

    def add_log_density(self, params: GaussianParams, values: NDArray[Any], out: FloatArray) -> None:
        factor, constant = self._terms(params)
        silent = np.flatnonzero(~params.informative)
        if (np.abs(values[:, silent], dtype=np.float64) > HUGE).any():  # 0·∞ is NaN
            values = values.copy()
            values[:, silent] = 0.0
        _kernels.add_quadratic(values, np.ascontiguousarray(params.mean), factor, constant, out)

    @staticmethod
    def _terms(params: GaussianParams) -> tuple[FloatArray, FloatArray]:
        """(K, d) −1/2σ² and −½ log 2πσ²; 0 where not informative."""
        factor = np.where(params.informative, -0.5 / params.variance, 0.0)
        constant = np.where(params.informative, -0.5 * np.log(2 * np.pi * params.variance), 0.0)
        return factor, constant

    def leave_one_out(self, fitted: Fitted[Moments, GaussianParams], rows: LabelledValues, out: FloatArray) -> None:
        """Without x, of weight w and d = x − μ: n' = n − w, μ' = μ − wd/n', and Σ(x − μ)² falls by w·d²·n/n'."""
        d = rows.values.shape[1]
        ordinary = np.zeros(d, np.bool_) if rows.weights is not None else self._ordinary(fitted)
        if ordinary.all():
            self._leave_out_ordinary(fitted, rows, out)
            return
        for columns, leave_out in ((ordinary, self._leave_out_ordinary), (~ordinary, self._leave_out_any)):
            index = np.flatnonzero(columns)
            if len(index):
                leave_out(fitted.columns(index), rows.columns(index), out)

    def _ordinary(self, fitted: Fitted[Moments, GaussianParams]) -> BoolArray:
        """(d) columns without priors, in which leaving out a row of weight 1 leads to no floor and no empty class.

        A row without which less than 1e-4 of its class's squares remain is left out by `_leave_out_any`, so no variance
        can fall from 1e-4 of the column's to the floor.
        """
        statistic, params = fitted.statistic, fitted.params
        if self.mean is not None or self.variance is not None:
            return np.zeros(params.mean.shape[1], np.bool_)
        pooled = statistic.pooled()
        spread = _spread(pooled.squares, pooled.count.value)
        enough = statistic.count.value >= max(3.0, 2.0 * (1.0 + self.ddof))
        return (enough & (params.variance > 1e-4 * spread)).all(axis=0) & params.informative

    def _leave_out_ordinary(
        self, fitted: Fitted[Moments, GaussianParams], rows: LabelledValues, out: FloatArray
    ) -> None:
        """Other classes do not change; in its own, v = 1 − (d²n/n')/Σ(x − μ)² of the squares remains."""
        count, squares = fitted.statistic.count.value, fitted.statistic.squares
        left = count - 1.0
        divisor = left - self.ddof
        log_p = np.zeros_like(out)
        self.add_log_density(fitted.params, rows.values, log_p)
        own, refused = _kernels.leave_one_out_densities(
            rows.values,
            rows.labels,
            np.ascontiguousarray(fitted.params.mean),
            count / (left * squares),
            0.5 * count * divisor / left,
            -0.5 * np.log(2 * np.pi * squares / divisor),
        )
        log_p[np.arange(len(rows)), rows.labels] = own
        index = np.flatnonzero(refused | ~np.isfinite(own))
        if len(index):
            others = np.zeros((len(index), log_p.shape[1]))
            self._leave_out_any(fitted, rows.take(index), others)
            log_p[index] = others
        out += log_p

    def _leave_out_any(self, fitted: Fitted[Moments, GaussianParams], rows: LabelledValues, out: FloatArray) -> None:
        statistic, labels, x = fitted.statistic, rows.labels, rows.values.astype(np.float64)
        w = np.where(np.isnan(x), 0.0, 1.0 if rows.weights is None else rows.weights[:, np.newaxis])
        own, kept = _without_row(statistic, x, w, labels)
        pooled, varies = _without_row(statistic.pooled(), x, w, np.zeros_like(labels))
        safe = kept & varies
        spread = _spread(pooled.squares, pooled.n)
        used = safe & (spread > 0) & (w > 0)
        for c in range(out.shape[1]):
            here = (labels == c)[:, np.newaxis]
            other = Column(statistic.count.value[c], statistic.mean[c], statistic.squares[c])
            without = Column(*(np.where(here, a, b) for a, b in zip(own, other, strict=True)))
            mean, variance = self._parameters(without, pooled.mean, spread)
            density = -0.5 * np.log(2 * np.pi * variance) - 0.5 * ((x - mean) ** 2 / variance)
            out[:, c] += np.where(used, density, 0.0).sum(axis=1)
        for j in np.flatnonzero(~safe.all(axis=0)).tolist():
            column = replace(rows, values=x[:, [j]])
            self.estimate_without(fitted.columns([j]), column, np.flatnonzero(~safe[:, j]), out)

    def natural(self, params: GaussianParams, context: Context) -> Natural:
        """−½ log 2πσ² − m²/2σ² for T = 1, m/σ² for T = x − o and −1/2σ² for T = (x − o)², with m = μ − o."""
        origin = _origin(params)
        distance, variance = np.where(params.informative, params.mean - origin, 0.0), params.variance
        constant = -0.5 * np.log(2 * np.pi * variance) - 0.5 * (distance / np.sqrt(variance)) ** 2
        terms = [
            Term(presence(context), constant, presence=True),
            Term(shifted(names(context), origin), distance / variance),
            Term(squared(names(context), origin), -0.5 / variance),
        ]
        return by_column(params.informative, terms)

    def sufficient(self, params: GaussianParams, values: NDArray[Any]) -> FloatArray:
        kept = params.informative
        return powers(squarable(values)[:, kept], 2, _origin(params)[kept])

    def param_shapes(self, params: GaussianParams, classes: int, columns: int) -> dict[str, Shaped]:
        of_class = classes, columns
        return {
            "mean": (params.mean, of_class),
            "variance": (params.variance, of_class),
            "informative": (params.informative, (columns,)),
        }

    def n_parameters(self, params: GaussianParams) -> int:
        return 2 * params.mean.size

    def formula(self, params: GaussianParams) -> list[Formula]:
        """A parabola for each column, about the mean."""
        factor, constant = self._terms(params)
        columns = tuple(range(params.mean.shape[1]))
        return [formulas.Curve(columns, params.mean.T, constant=constant.T, square=factor.T)]

    def linear_formula(self, params: GaussianParams, weights: FloatArray) -> list[Formula]:
        """A parabola about the origin."""
        kept = np.flatnonzero(params.informative)
        middle = np.repeat(_origin(params)[kept, np.newaxis], len(weights), axis=1)
        constant, slope, square = (weights[:, i::3].T for i in range(3))
        return [formulas.Curve(tuple(kept.tolist()), middle, constant, slope, square, domains=("squarable",))]

    def describe(self, params: GaussianParams, context: Context) -> list[Table]:
        return self._tables(context, ("mean", "sd"), params.mean, np.sqrt(params.variance))


def _spread(squares: FloatArray, count: FloatArray) -> FloatArray:
    """Σ(x − μ)²/n; 0 without values."""
    return np.divide(squares, count, out=np.zeros_like(squares), where=count > 0)


def _without_row(statistic: Moments, x: FloatArray, w: FloatArray, classes: Labels) -> tuple[Column, BoolArray]:
    """(n, d) the moments of each row's class without its value, and where these have enough digits."""
    count, mean, squares = statistic.count.value[classes], statistic.mean[classes], statistic.squares[classes]
    left = statistic.count.subtract(w, classes)
    distance = np.where(w > 0, x - mean, 0.0)
    share = np.divide(w, left, out=np.zeros_like(w), where=left > 0)
    rest = np.where(left > 0, squares - share * count * distance**2, 0.0)
    kept = (w == 0) | (left == 0) | ((rest >= LEAST * squares) & (left >= LEAST * count))
    return Column(left, mean - share * distance, np.maximum(rest, 0.0)), kept


def _origin(params: GaussianParams) -> FloatArray:
    """(d) o of (x − o)²: near the means of narrow classes, which would lose most digits."""
    mean, variance = np.where(params.informative, params.mean, 0.0), params.variance
    weight = variance.min(axis=0) / variance
    middle = mean[0] + (weight * (mean - mean[0])).sum(axis=0) / weight.sum(axis=0)
    return origins(mean, 1.0 / np.sqrt(variance), middle)
