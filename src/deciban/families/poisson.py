"""Poisson: each column a number of events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from deciban import _kernels
from deciban.errors import forbid, forbid_infinite
from deciban.families.base import FLOOR, Context, Family, Natural, Table, class_rows
from deciban.families.natural import Term, by_column, plain, powers, there
from deciban.families.priors import Virtual
from deciban.statistics.moments import Moments
from deciban.types import FloatArray, Labels


@dataclass(frozen=True)
class PoissonParams:
    rate: FloatArray  # (K, d)
    informative: NDArray[np.bool_]  # (d)


@dataclass(frozen=True)
class Poisson(Family[Moments, PoissonParams]):
    """log p(x|c) = x log λ − λ − log x!, with λ = Σx/n.

    Cells are whole numbers, 0 or more. With prior=Virtual(m) the class mean is drawn towards the mean of all classes:
    (Σx + m·mean) / (n + m). No rate is taken below 1e-9 of that mean.

    >>> import numpy as np
    >>> family = Poisson()
    >>> evidence = family.collect(np.array([[1.0], [5.0]]), np.zeros(2, np.int32), None, 1)
    >>> family.estimate(evidence, Context(("all",), ("x",))).rate.item()
    3.0
    """

    prior: Virtual | None = None

    def collect(self, values: NDArray[Any], labels: Labels, weights: FloatArray | None, classes: int) -> Moments:
        self._check(values)
        return Moments.of(values, labels, weights, classes)

    def estimate(self, statistic: Moments, context: Context) -> PoissonParams:
        mean, pooled = shrunk_means(statistic, self.prior)
        informative = varies(statistic)
        return PoissonParams(np.where(informative, np.maximum(mean, FLOOR * pooled), 1.0), informative)

    def add_log_density(self, params: PoissonParams, values: NDArray[Any], out: FloatArray) -> None:
        self._check(values)
        slope = np.where(params.informative, np.log(params.rate), 0.0)
        _kernels.add_linear(values, slope, np.where(params.informative, -params.rate, 0.0), out)
        counted = values[:, params.informative].astype(np.float64)
        out -= np.where(np.isnan(counted), 0.0, gammaln(counted + 1.0)).sum(axis=1, keepdims=True)

    def natural(self, params: PoissonParams, context: Context) -> Natural:
        """−λ and log λ: of 1 and x. (log x! is common to all classes.)"""
        terms = [Term(there(context), -params.rate, presence=True), Term(plain(context), np.log(params.rate))]
        return by_column(params.informative, terms)

    def sufficient(self, params: PoissonParams, values: NDArray[Any]) -> FloatArray:
        self._check(values)
        return powers(values[:, params.informative], 1)

    def _check(self, values: NDArray[Any]) -> None:
        forbid_infinite(values)
        forbid(values < 0, "is not a count: it must be 0 or more")
        forbid((values != np.floor(values)) & ~np.isnan(values), "is not a whole number of events")

    def n_parameters(self, params: PoissonParams) -> int:
        return params.rate.size

    def describe(self, params: PoissonParams, context: Context) -> list[Table]:
        return [
            Table(f"{name} (Poisson)", ("class", "rate"), class_rows(context, [params.rate[:, j]]))
            for j, name in enumerate(context.columns)
        ]


def shrunk_means(statistic: Moments, prior: Virtual | None) -> tuple[FloatArray, FloatArray]:
    """(K, d) class means drawn towards the mean of all classes by m virtual rows, and that mean (1, d)."""
    pooled = statistic.pooled().mean
    count, total = statistic.count.value, statistic.sum_x.value
    mean = np.where(count > 0, statistic.mean, pooled)
    if prior is not None and prior.m > 0:
        mean = (total + prior.m * pooled) / (count + prior.m)
    return mean, pooled


def varies(statistic: Moments) -> NDArray[np.bool_]:
    """(d) whether a column holds more than one value."""
    spread: NDArray[np.bool_] = statistic.pooled().squares[0] > 0
    return spread
