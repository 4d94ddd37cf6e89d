"""Poisson: each column a number of events."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import lgamma, log, pi
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deciban.errors import forbid, forbid_infinite
from deciban.families.family import FLOOR
from deciban.families.rate_family import RateFamily
from deciban.types import Domain, FloatArray

FEW = 4096  # below it, log-factorials are tabulated


@dataclass(frozen=True)
class Poisson(RateFamily):
    """Numbers of events, with a rate in each class.

    log p(x|c) = x log λ − λ − log x!, with λ = Σx/n

    Values are whole numbers, 0 or more. No rate is below 1e-9 of the mean of all classes.

    Parameters
    ----------
    prior : deciban.priors.Virtual or None, default None
        With Virtual(m) the class mean is shrunk towards the mean of all classes: (Σx + m·mean) / (n + m).

    See Also
    --------
    deciban.families.Exponential : Waiting times.
    deciban.families.Multinomial : Shares of a total.

    Examples
    --------
    >>> import numpy as np
    >>> from deciban.families import Context, Poisson
    >>> family = Poisson()
    >>> evidence = family.collect(np.array([[1.0], [5.0]]), np.zeros(2, np.int32), None, 1)
    >>> family.estimate(evidence, Context(("all",), ("x",))).rate.item()
    3.0
    """

    phrase: ClassVar[str] = "Poisson counts, one rate in each class"
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
        """−log x!, which is the same for all classes.

        Parameters
        ----------
        x : array of shape (n, d)
            Counts, NaN where missing.

        Returns
        -------
        array of shape (n, 1)
            Summed over the columns.
        """
        total: FloatArray = np.where(np.isnan(x), 0.0, -log_factorial(x)).sum(axis=1, keepdims=True)
        return total


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
