"""Exponential: a waiting time."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deciban.linear.responses.response import Response
from deciban.types import FloatArray


class Exponential(Response):
    """b(y) = 1, T(y) = y, η = −λ, a(η) = −log(−η) for η < 0; the mean is −1/η.

    The domain is a half-line: the linear predictor must stay below 0 in every training row.

    >>> import numpy as np
    >>> Exponential().mean(np.array([[-0.5]]))
    array([[2.]])
    """

    name: ClassVar[str] = "exponential"
    link: ClassVar[str] = "negative inverse"
    positive: ClassVar[bool] = True
    javascript_mean: ClassVar[str] = "eta < 0 ? -1 / eta : Infinity"

    def log_partition(self, eta: FloatArray) -> FloatArray:
        inside = eta[:, 0] < 0
        result: FloatArray = np.full(len(eta), np.inf)
        result[inside] = -np.log(-eta[inside, 0])
        return result

    def natural(self, mean: FloatArray) -> FloatArray:
        return -1.0 / mean

    def mean(self, eta: FloatArray) -> FloatArray:
        result: FloatArray = np.full_like(eta, np.inf)
        return np.divide(-1.0, eta, out=result, where=eta < 0)

    def variance(self, mean: FloatArray, i: int, j: int) -> FloatArray:
        return mean[:, 0] ** 2

    def saturated(self, statistic: FloatArray) -> FloatArray:
        return -1.0 - np.log(statistic[:, 0])

    def check(self, y: NDArray[Any]) -> FloatArray:
        numbers = super().check(y)
        self.forbid(numbers <= 0, numbers, "must be above 0, as a waiting time is")
        return numbers
