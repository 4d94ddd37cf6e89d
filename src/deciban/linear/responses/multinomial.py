"""Multinomial: one of K classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from deciban import _kernels
from deciban.linear.responses.bernoulli import Bernoulli, shares_inside
from deciban.linear.responses.response import Response
from deciban.types import FloatArray


@dataclass(frozen=True)
class Multinomial(Response):
    """b(y) = 1, T(y) = indicators of all classes except the first, η_k = log φ_k/φ_0, a(η) = log(1 + Σ e^η_k).

    The mean is the softmax of η. y is the index of the class, 0 to K − 1; the first class is the reference.

    >>> import numpy as np
    >>> Multinomial(3).mean(np.zeros((1, 2))).round(12)
    array([[0.33333333, 0.33333333]])
    """

    classes: int
    name: ClassVar[str] = "multinomial"
    link: ClassVar[str] = "multinomial logit"
    max_classes: ClassVar[float] = np.inf
    takes_offset: ClassVar[bool] = False

    @classmethod
    def for_classes(cls, count: int) -> Response:
        return Bernoulli() if count == 2 else cls(count)

    def sufficient(self, y: FloatArray) -> FloatArray:
        result: FloatArray = (y[:, np.newaxis] == np.arange(1, self.classes)).astype(np.float64)
        return result

    def log_partition(self, eta: FloatArray) -> FloatArray:
        result: FloatArray = logsumexp(_with_reference(eta), axis=1)
        return result

    def natural(self, mean: FloatArray) -> FloatArray:
        first = 1.0 - mean.sum(axis=1, keepdims=True)
        result: FloatArray = np.log(mean) - np.log(first)
        return result

    def inside(self, mean: FloatArray, edge: float) -> FloatArray:
        return shares_inside(mean, edge)

    def mean(self, eta: FloatArray) -> FloatArray:
        scores = _with_reference(eta)
        _kernels.normalise(scores, np.zeros(self.classes), False)
        return scores[:, 1:]

    def variance(self, mean: FloatArray, i: int, j: int) -> FloatArray:
        return mean[:, i] * (float(i == j) - mean[:, j])

    def check(self, y: NDArray[Any]) -> FloatArray:
        numbers = super().check(y)
        indices = (numbers >= 0) & (numbers < self.classes) & (numbers == np.floor(numbers))
        self.forbid(~indices, numbers, f"is not the index of one of {self.classes} classes")
        return numbers

    def saturated(self, statistic: FloatArray) -> FloatArray:
        return np.zeros(len(statistic))


def _with_reference(eta: FloatArray) -> FloatArray:
    scores = np.zeros((eta.shape[0], eta.shape[1] + 1))
    scores[:, 1:] = eta
    return scores
