"""Gaussian: each column normal within each class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.families.base import FLOOR, Context, Family, Natural, Table, class_rows
from deciban.families.natural import Term, by_column, origins, plain, powers, shifted, squarable, squared, there
from deciban.families.priors import InverseGamma, Normal
from deciban.statistics.moments import Moments
from deciban.types import FloatArray, Labels


@dataclass(frozen=True)
class GaussianParams:
    mean: FloatArray  # (K, d)
    variance: FloatArray  # (K, d)
    informative: NDArray[np.bool_]  # (d) False where the column is constant or never present


@dataclass(frozen=True)
class Gaussian(Family[Moments, GaussianParams]):
    """log p(x|c) = −½ log 2πσ² − (x − μ)²/2σ², with μ = Σx/n and σ² = Σ(x − μ)²/(n − ddof).

    ddof=0 is maximum likelihood, ddof=1 the unbiased variance (what R's e1071 divides by). `mean` and `variance` take
    priors, whose posterior modes then replace the estimates: the variance first, about the sample mean, then the mean
    with that variance. No variance is taken below 1e-9 of the column's variance over all classes.

    >>> import numpy as np
    >>> family = Gaussian(ddof=1)
    >>> evidence = family.collect(np.array([[1.0], [2.0], [6.0]]), np.zeros(3, np.int32), None, 1)
    >>> params = family.estimate(evidence, Context(("all",), ("x",)))
    >>> params.mean.item(), params.variance.item()
    (3.0, 7.0)
    """

    ddof: float = 0
    mean: Normal | None = None
    variance: InverseGamma | None = None

    def collect(self, values: NDArray[Any], labels: Labels, weights: FloatArray | None, classes: int) -> Moments:
        return Moments.of(values, labels, weights, classes)

    def estimate(self, statistic: Moments, context: Context) -> GaussianParams:
        pooled = statistic.pooled()
        count, mean, squares = statistic.count.value, statistic.mean, statistic.squares
        seen = pooled.count.value > 0
        spread = np.divide(pooled.squares, pooled.count.value, out=np.zeros_like(pooled.mean), where=seen)
        if self.variance is None:
            divisor = count - self.ddof
            variance = np.divide(squares, divisor, out=np.zeros_like(squares), where=divisor > 0)
        else:
            variance = self.variance.mode(count, squares)
        informative = (spread > 0)[0]
        variance = np.maximum(variance, np.where(informative, FLOOR * spread, 1.0))
        if self.mean is not None:
            mean = self.mean.mode(count, statistic.sum_x.value, variance)
        empty = count == 0  # nothing known of this class here: it is taken to be like all together, unless a prior says
        if self.mean is None:
            mean = np.where(empty, pooled.mean, mean)
        if self.variance is None:
            variance = np.where(empty & informative, spread, variance)
        return GaussianParams(mean, variance, informative)

    def add_log_density(self, params: GaussianParams, values: NDArray[Any], out: FloatArray) -> None:
        factor = np.where(params.informative, -0.5 / params.variance, 0.0)
        constant = np.where(params.informative, -0.5 * np.log(2 * np.pi * params.variance), 0.0)
        _kernels.add_quadratic(values, np.ascontiguousarray(params.mean), factor, constant, out)

    def natural(self, params: GaussianParams, context: Context) -> Natural:
        """−½ log 2πσ² − m²/2σ², m/σ² and −1/2σ², with m = μ − o: of 1, x − o and (x − o)²."""
        origin = _origin(params)
        apart, variance = np.where(params.informative, params.mean - origin, 0.0), params.variance
        constant = -0.5 * np.log(2 * np.pi * variance) - 0.5 * (apart / np.sqrt(variance)) ** 2
        terms = [
            Term(there(context), constant, presence=True),
            Term(shifted(plain(context), origin), apart / variance),
            Term(squared(plain(context), origin), -0.5 / variance),
        ]
        return by_column(params.informative, terms)

    def sufficient(self, params: GaussianParams, values: NDArray[Any]) -> FloatArray:
        kept = params.informative
        return powers(squarable(values)[:, kept], 2, _origin(params)[kept])

    def n_parameters(self, params: GaussianParams) -> int:
        return 2 * params.mean.size

    def describe(self, params: GaussianParams, context: Context) -> list[Table]:
        return [
            Table(
                f"{name} (Gaussian)",
                ("class", "mean", "sd"),
                class_rows(context, [params.mean[:, j], np.sqrt(params.variance[:, j])]),
            )
            for j, name in enumerate(context.columns)
        ]


def _origin(params: GaussianParams) -> FloatArray:
    """(d) what x² is taken about; nearest to the narrow classes, which have most digits to lose."""
    mean, variance = np.where(params.informative, params.mean, 0.0), params.variance
    weight = variance.min(axis=0) / variance
    middle = mean[0] + (weight * (mean - mean[0])).sum(axis=0) / weight.sum(axis=0)
    return origins(mean, 1.0 / np.sqrt(variance), middle)
