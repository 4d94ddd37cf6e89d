"""The interface of every response of a generalised linear model: an exponential family of y, with η linear in x."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deciban.errors import DecibanError
from deciban.types import FloatArray


class Response(ABC):
    """p(y; η) = b(y) exp(η·T(y) − a(η)), in the natural parameter η, which the canonical link makes linear in x.

    E[T(y)] = a′(η) and Var[T(y)] = a″(η), so the gradient of the log-likelihood is T(y) − a′(η) and its Hessian −a″(η):
    nothing else is needed to fit. Arrays of T, η and means are (n, m), with m natural parameters.

    Attributes
    ----------
    name, link : str
        The `family=` of GeneralizedLinearModel that selects the response, and the name of its canonical link.
    max_classes : float
        The most classes that y may have, inf if any number; 0: y is a number.
    estimates_dispersion : bool
        Whether the variance has a factor to estimate, so that tests use t instead of z.
    positive, takes_offset, takes_exposure : bool
        Whether y is never negative, and whether `offset=` and `exposure=` have a meaning.
    javascript_mean : str
        For numbers: a′(η) as a JavaScript expression in `eta`, with which the report's page predicts.
    """

    name: ClassVar[str]
    link: ClassVar[str]
    max_classes: ClassVar[float] = 0
    estimates_dispersion: ClassVar[bool] = False
    positive: ClassVar[bool] = False
    takes_offset: ClassVar[bool] = True
    takes_exposure: ClassVar[bool] = False
    javascript_mean: ClassVar[str] = ""

    @classmethod
    def for_classes(cls, count: int) -> Response:
        """The response for y of `count` classes; 0 if y is a number."""
        return cls()

    def log_base(self, y: FloatArray) -> FloatArray:
        """(n) log b(y); 0 unless a response says otherwise."""
        return np.zeros(len(y))

    def sufficient(self, y: FloatArray) -> FloatArray:
        """(n, m) T(y)."""
        return y[:, np.newaxis]

    @abstractmethod
    def log_partition(self, eta: FloatArray) -> FloatArray:
        """(n) a(η); infinite where η is outside the domain."""

    @abstractmethod
    def natural(self, mean: FloatArray) -> FloatArray:
        """(n, m) η of a mean: the canonical link, the inverse of a′."""

    def inside(self, mean: FloatArray, edge: float) -> FloatArray:
        """A mean of T(y), moved inwards by about `edge` where it lies on the boundary, at which η would be infinite."""
        return mean

    @abstractmethod
    def mean(self, eta: FloatArray) -> FloatArray:
        """(n, m) a′(η) = E[T(y)]."""

    @abstractmethod
    def variance(self, mean: FloatArray, i: int, j: int) -> FloatArray:
        """(n) ∂²a/∂η_i∂η_j, the covariance of T_i and T_j, as a function of the mean."""

    @abstractmethod
    def saturated(self, statistic: FloatArray) -> FloatArray:
        """(n) max over η of η·T − a(η): the saturated model, from which the deviance is measured."""

    def loss(self, statistic: FloatArray, eta: FloatArray) -> FloatArray:
        """(n) half of the deviance: saturated − (η·T − a(η)); at least 0 up to rounding."""
        loss: FloatArray = self.saturated(statistic) - (eta * statistic).sum(axis=1) + self.log_partition(eta)
        return loss

    def check(self, y: NDArray[Any]) -> FloatArray:
        """y as numbers of the response's domain; a DecibanError names the first row that is not."""
        try:
            numbers = np.asarray(y, dtype=np.float64)
        except (TypeError, ValueError):
            raise DecibanError(f"y must be numbers for a {self.name} response; {_first_non_number(y)}") from None
        if numbers.ndim != 1:
            raise DecibanError(f"y should be a 1d array, got an array of shape {numbers.shape} instead.")
        self.forbid(~np.isfinite(numbers), numbers, "is missing or infinite: remove the row")
        return numbers

    def forbid(self, bad: NDArray[np.bool_], y: FloatArray, problem: str) -> None:
        """Raises an error for the first bad row."""
        if bad.any():
            row = int(np.argmax(bad))
            raise DecibanError(f"y, row {row}: {y[row]:g} {problem} (a {self.name} response)")


def _first_non_number(y: Any) -> str:
    for row, value in enumerate(y):
        try:
            float(value)
        except (TypeError, ValueError):
            return f"row {row} holds {str(value)!r}"
    return "its rows are not numbers"
