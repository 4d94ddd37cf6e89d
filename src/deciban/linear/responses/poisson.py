"""Poisson: a number of events."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlogy

from deciban.linear.responses.response import Response
from deciban.types import FloatArray


class Poisson(Response):
    """b(y) = 1/y!, T(y) = y, η = log λ, a(η) = e^η; the link is the logarithm.

    >>> import numpy as np
    >>> Poisson().mean(np.array([[0.0]]))
    array([[1.]])
    """

    name: ClassVar[str] = "poisson"
    link: ClassVar[str] = "log"
    positive: ClassVar[bool] = True
    takes_exposure: ClassVar[bool] = True
    javascript_mean: ClassVar[str] = "Math.exp(eta)"

    def log_base(self, y: FloatArray) -> FloatArray:
        result: FloatArray = -gammaln(y + 1.0)
        return result

    def log_partition(self, eta: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):  # after too large a step it is infinite, and the line search shortens the step
            result: FloatArray = np.exp(eta[:, 0])
        return result

    def natural(self, mean: FloatArray) -> FloatArray:
        return np.log(mean)

    def inside(self, mean: FloatArray, edge: float) -> FloatArray:
        return np.maximum(mean, edge)

    def mean(self, eta: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            result: FloatArray = np.exp(eta)
        return result

    def variance(self, mean: FloatArray, i: int, j: int) -> FloatArray:
        return mean[:, 0]

    def saturated(self, statistic: FloatArray) -> FloatArray:
        y = statistic[:, 0]
        result: FloatArray = xlogy(y, y) - y
        return result

    def check(self, y: NDArray[Any]) -> FloatArray:
        numbers = super().check(y)
        self.forbid(numbers < 0, numbers, "is not a count: it must be 0 or more")
        return numbers
