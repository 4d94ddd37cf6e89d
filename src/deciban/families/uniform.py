"""Uniform: each column evenly spread over an interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban.errors import forbid_infinite
from deciban.families.base import FLOOR, Context, Family, Table, class_rows
from deciban.families.priors import Laplace
from deciban.statistics.extrema import Extrema
from deciban.types import FloatArray, Labels


@dataclass(frozen=True)
class UniformParams:
    low: FloatArray  # (K, d)
    high: FloatArray  # (K, d)
    informative: NDArray[np.bool_]  # (d)


@dataclass(frozen=True)
class Uniform(Family[Extrema, UniformParams]):
    """p(x|c) = 1/(b − a) on [a, b], with a = min x − αg and b = max x + αg, where g = (column's range)/(n + 1).

    α = 0 is maximum likelihood: one step outside the rows seen is impossible, which makes it useless on new data. The
    widening is the posterior mode under the conjugate (bilateral Pareto) prior whose virtual rows reach α gaps beyond
    the extremes; g is the gap to expect between neighbours when n rows spread over the range that the column has in
    all classes together. α is the model's smoothing, or `prior` says otherwise. This family cannot forget.

    >>> import numpy as np
    >>> family = Uniform()
    >>> evidence = family.collect(np.array([[1.0], [3.0], [5.0]]), np.zeros(3, np.int32), None, 1)
    >>> params = family.estimate(evidence, Context(("all",), ("x",)))
    >>> params.low.item(), params.high.item()
    (0.0, 6.0)
    """

    prior: Laplace | None = None

    def collect(self, values: NDArray[Any], labels: Labels, weights: FloatArray | None, classes: int) -> Extrema:
        forbid_infinite(values)
        return Extrema.of(values, labels, weights, classes)

    def estimate(self, statistic: Extrema, context: Context) -> UniformParams:
        alpha = context.smoothing if self.prior is None else self.prior.alpha
        low, high = statistic.low, statistic.high
        least, most = low.min(axis=0), high.max(axis=0)
        seen = least <= most
        span = np.where(seen, most - np.where(seen, least, 0.0), 0.0)
        informative = span > 0
        empty = low > high
        low, high = np.where(empty, least, low), np.where(empty, most, high)
        gap = np.maximum(alpha * span / (statistic.count.value + 1.0), np.where(low == high, 0.5 * FLOOR * span, 0.0))
        low, high = low - gap, high + gap
        narrow = low == high  # the gap is too small for doubles of this size: one step to either side, then
        low = np.where(narrow, np.nextafter(low, -np.inf), low)
        high = np.where(narrow, np.nextafter(high, np.inf), high)
        return UniformParams(np.where(informative, low, 0.0), np.where(informative, high, 1.0), informative)

    def add_log_density(self, params: UniformParams, values: NDArray[Any], out: FloatArray) -> None:
        forbid_infinite(values)
        for j in np.flatnonzero(params.informative):
            x, low, high = values[:, [j]], params.low[:, j], params.high[:, j]
            inside = np.where((x >= low) & (x <= high), -np.log(high - low), -np.inf)
            out += np.where(np.isnan(x), 0.0, inside)

    def n_parameters(self, params: UniformParams) -> int:
        return 2 * params.low.size

    def describe(self, params: UniformParams, context: Context) -> list[Table]:
        return [
            Table(
                f"{name} (Uniform)",
                ("class", "from", "to"),
                class_rows(context, [params.low[:, j], params.high[:, j]]),
            )
            for j, name in enumerate(context.columns)
        ]
