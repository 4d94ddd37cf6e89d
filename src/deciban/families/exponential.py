"""Exponential: each column a waiting time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deciban.errors import forbid, forbid_infinite
from deciban.families.rate_family import RateFamily
from deciban.types import Domain, FloatArray


@dataclass(frozen=True)
class Exponential(RateFamily):
    """Positive numbers such as waiting times, with a rate in each class.

    log p(x|c) = log λ − λx for x > 0, with λ = n/Σx, the reciprocal of the mean

    Parameters
    ----------
    prior : deciban.priors.Virtual or None, default None
        With Virtual(m) the class mean is shrunk towards the mean of all classes by m virtual rows.

    See Also
    --------
    deciban.families.Poisson : Numbers of events.

    Examples
    --------
    >>> import numpy as np
    >>> from deciban.families import Context, Exponential
    >>> family = Exponential()
    >>> evidence = family.collect(np.array([[1.0], [3.0]]), np.zeros(2, np.int32), None, 1)
    >>> family.estimate(evidence, Context(("all",), ("x",))).rate.item()
    0.5
    """

    phrase: ClassVar[str] = "exponential density, one rate in each class"
    domain: ClassVar[Domain] = "positive"

    def allowed(self, values: NDArray[Any]) -> NDArray[Any]:
        return np.where(values > 0, values, np.where(np.isinf(values), values, np.nan))

    def check(self, values: NDArray[Any]) -> None:
        forbid_infinite(values)
        forbid(values <= 0, "is not above 0, as an exponential waiting time must be")

    def rate(self, mean: FloatArray, pooled: FloatArray) -> FloatArray:
        return 1.0 / mean

    def line(self, rate: FloatArray) -> tuple[FloatArray, FloatArray]:
        return -rate, np.log(rate)
