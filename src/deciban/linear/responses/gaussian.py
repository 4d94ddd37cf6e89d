"""Gaussian: a number with errors of constant variance."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from deciban.linear.responses.response import Response
from deciban.types import FloatArray


class Gaussian(Response):
    """b(y) = exp(−y²/2)/√2π, T(y) = y, η = μ, a(η) = η²/2; the link is the identity.

    Written for σ = 1, as the coefficients do not depend on σ; the dispersion σ² is estimated afterwards.

    >>> import numpy as np
    >>> Gaussian().mean(np.array([[1.5]]))
    array([[1.5]])
    """

    name: ClassVar[str] = "gaussian"
    link: ClassVar[str] = "identity"
    estimates_dispersion: ClassVar[bool] = True
    javascript_mean: ClassVar[str] = "eta"

    def log_base(self, y: FloatArray) -> FloatArray:
        result: FloatArray = -0.5 * (y**2 + np.log(2 * np.pi))
        return result

    def log_partition(self, eta: FloatArray) -> FloatArray:
        return 0.5 * eta[:, 0] ** 2

    def natural(self, mean: FloatArray) -> FloatArray:
        return mean

    def mean(self, eta: FloatArray) -> FloatArray:
        return eta

    def variance(self, mean: FloatArray, i: int, j: int) -> FloatArray:
        return np.ones(len(mean))

    def saturated(self, statistic: FloatArray) -> FloatArray:
        return 0.5 * statistic[:, 0] ** 2

    def loss(self, statistic: FloatArray, eta: FloatArray) -> FloatArray:
        return 0.5 * (statistic - eta)[:, 0] ** 2  # without cancellation
