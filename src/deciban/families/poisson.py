"""Poisson: each column a number of events."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import lgamma, log, pi
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deciban.errors import forbid, forbid_infinite
from deciban.families.family import FLOOR, Context, Natural
from deciban.families.natural import Term, by_column, plain, there
from deciban.families.rate_family import RateFamily, RateParams
from deciban.types import Domain, FloatArray

FEW = 4096  # numbers whose factorials are looked up


@dataclass(frozen=True)
class Poisson(RateFamily):
    """log p(x|c) = x log λ − λ − log x!, with λ = Σx/n.

    Cells are whole numbers, 0 or more. With prior=Virtual(m) the class mean is drawn towards the mean of all classes:
    (Σx + m·mean) / (n + m). No rate is taken below 1e-9 of that mean.

    >>> import numpy as np
    >>> family = Poisson()
    >>> evidence = family.collect(np.array([[1.0], [5.0]]), np.zeros(2, np.int32), None, 1)
    >>> family.estimate(evidence, Context(("all",), ("x",))).rate.item()
    3.0
    """

    domain: ClassVar[Domain] = "count"
    factorial: ClassVar[bool] = True

    def allowed(self, values: NDArray[Any]) -> NDArray[Any]:
        return np.where((values >= 0) & (values == np.floor(values)) | np.isinf(values), values, np.nan)

    def check(self, values: NDArray[Any]) -> None:
        forbid_infinite(values)
        forbid(values < 0, "is not a count: it must be 0 or more")
        forbid((values != np.floor(values)) & ~np.isnan(values), "is not a whole number of events")

    def rate(self, mean: FloatArray, pooled: FloatArray) -> FloatArray:
        return np.maximum(mean, FLOOR * pooled)

    def line(self, rate: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.log(rate), -rate

    def common(self, x: FloatArray) -> FloatArray:
        """−log x!"""
        total: FloatArray = np.where(np.isnan(x), 0.0, -log_factorial(x)).sum(axis=1, keepdims=True)
        return total

    def natural(self, params: RateParams, context: Context) -> Natural:
        """−λ and log λ: of 1 and x. (log x! is common to all classes.)"""
        terms = [Term(there(context), -params.rate, presence=True), Term(plain(context), np.log(params.rate))]
        return by_column(params.informative, terms)


def log_factorial(x: FloatArray) -> FloatArray:
    """log x! of whole numbers; beyond a table by Stirling's series, whose next term is below 1e-20 there.

    >>> log_factorial(np.array([0.0, 4.0, 1e6])).round(4)
    array([0.00000000e+00, 3.17810000e+00, 1.28155184e+07])
    """
    few = x < FEW
    logs: FloatArray = _factorials()[np.where(few, x, 0.0).astype(np.intp)]
    if not few.all():
        n = x[~few]
        r = 1.0 / n
        with np.errstate(over="ignore"):
            logs[~few] = (n + 0.5) * np.log(n) - n + 0.5 * log(2 * pi) + r * (1 / 12 - r * r / 360)
    return logs


@cache
def _factorials() -> FloatArray:
    return np.array([lgamma(n + 1.0) for n in range(FEW)])
