"""Bernoulli: one of two classes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from deciban.linear.responses.response import Response
from deciban.types import FloatArray


class Bernoulli(Response):
    """b(y) = 1, T(y) = y, η = log φ/(1 − φ), a(η) = log(1 + e^η); the mean is the sigmoid of η.

    >>> import numpy as np
    >>> Bernoulli().mean(np.array([[0.0]]))
    array([[0.5]])
    """

    name: ClassVar[str] = "bernoulli"
    link: ClassVar[str] = "logit"
    max_classes: ClassVar[float] = 2

    def log_partition(self, eta: FloatArray) -> FloatArray:
        return np.logaddexp(0.0, eta[:, 0])

    def natural(self, mean: FloatArray) -> FloatArray:
        result: FloatArray = logit(mean)
        return result

    def inside(self, mean: FloatArray, edge: float) -> FloatArray:
        return shares_inside(mean, edge)

    def mean(self, eta: FloatArray) -> FloatArray:
        result: FloatArray = expit(eta)
        return result

    def variance(self, mean: FloatArray, i: int, j: int) -> FloatArray:
        return (mean * (1.0 - mean))[:, 0]

    def check(self, y: NDArray[Any]) -> FloatArray:
        numbers = super().check(y)
        self.forbid((numbers != 0) & (numbers != 1), numbers, "is neither 0 nor 1")
        return numbers

    def saturated(self, statistic: FloatArray) -> FloatArray:
        return np.zeros(len(statistic))  # y is 0 or 1: the likelihood reaches 1


def shares_inside(mean: FloatArray, edge: float) -> FloatArray:
    """(…, m) shares of all classes except the first, after adding `edge` to every class."""
    classes = mean.shape[-1] + 1
    result: FloatArray = (mean + edge) / (1.0 + classes * edge)
    return result
