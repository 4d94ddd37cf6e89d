"""Exponential: each column a waiting time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.errors import forbid, forbid_infinite
from deciban.families.base import Context, Family, Natural, Table, class_rows
from deciban.families.natural import Term, by_column, plain, powers, there
from deciban.families.poisson import shrunk_means, varies
from deciban.families.priors import Virtual
from deciban.statistics.moments import Moments
from deciban.types import FloatArray, Labels


@dataclass(frozen=True)
class ExponentialParams:
    rate: FloatArray  # (K, d)
    informative: NDArray[np.bool_]  # (d)


@dataclass(frozen=True)
class Exponential(Family[Moments, ExponentialParams]):
    """log p(x|c) = log λ − λx for x > 0, with λ = n/Σx, the reciprocal of the mean.

    With prior=Virtual(m) the class mean is drawn towards the mean of all classes by m virtual rows.

    >>> import numpy as np
    >>> family = Exponential()
    >>> evidence = family.collect(np.array([[1.0], [3.0]]), np.zeros(2, np.int32), None, 1)
    >>> family.estimate(evidence, Context(("all",), ("x",))).rate.item()
    0.5
    """

    prior: Virtual | None = None

    def collect(self, values: NDArray[Any], labels: Labels, weights: FloatArray | None, classes: int) -> Moments:
        self._check(values)
        return Moments.of(values, labels, weights, classes)

    def estimate(self, statistic: Moments, context: Context) -> ExponentialParams:
        mean, _ = shrunk_means(statistic, self.prior)
        informative = varies(statistic)
        return ExponentialParams(1.0 / np.where(informative, mean, 1.0), informative)

    def add_log_density(self, params: ExponentialParams, values: NDArray[Any], out: FloatArray) -> None:
        self._check(values)
        slope = np.where(params.informative, -params.rate, 0.0)
        _kernels.add_linear(values, slope, np.where(params.informative, np.log(params.rate), 0.0), out)

    def natural(self, params: ExponentialParams, context: Context) -> Natural:
        """log λ and −λ: of 1 and x."""
        terms = [Term(there(context), np.log(params.rate), presence=True), Term(plain(context), -params.rate)]
        return by_column(params.informative, terms)

    def sufficient(self, params: ExponentialParams, values: NDArray[Any]) -> FloatArray:
        self._check(values)
        return powers(values[:, params.informative], 1)

    def _check(self, values: NDArray[Any]) -> None:
        forbid_infinite(values)
        forbid(values <= 0, "is not above 0, as an exponential waiting time must be")

    def n_parameters(self, params: ExponentialParams) -> int:
        return params.rate.size

    def describe(self, params: ExponentialParams, context: Context) -> list[Table]:
        return [
            Table(f"{name} (Exponential)", ("class", "rate"), class_rows(context, [params.rate[:, j]]))
            for j, name in enumerate(context.columns)
        ]
