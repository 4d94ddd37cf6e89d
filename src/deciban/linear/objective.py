"""The objective of linear models: J(θ) = −Σ w log p(y|η) + l2/2 |coefficients|², with gradient and Hessian."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from deciban.errors import DecibanError
from deciban.families import MultivariateGaussian
from deciban.linear.design_rows import DesignRows
from deciban.linear.responses import Response
from deciban.statistics import Scatter
from deciban.types import FloatArray, Labels

MAX_DENSE_CELLS = 1 << 27  # for sparse rows made dense
TOO_WIDE = "init='generative' fits a covariance, which these sparse rows are too wide for"


class Criterion(ABC):
    """J(θ) = loss + l2/2 Σ_ab M_ab w_a·w_b, where the loss is a sum over rows, in memory or distributed."""

    rows: DesignRows  # the coordinates of θ; may be without rows
    response: Response
    l2: float
    metric: FloatArray | None  # (m, m) M; the identity unless given

    @cached_property
    def m(self) -> int:
        return int(self.response.sufficient(np.zeros(1)).shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of θ: (m, p + 1)."""
        return self.m, self.rows.shape[1] + 1

    @cached_property
    def ridge(self) -> FloatArray:
        """(p + 1) l2 in the coordinates of θ."""
        with np.errstate(over="ignore"):
            return np.append(self.l2 / self.rows.scale**2, 0.0) if self.l2 else np.zeros(self.shape[1])

    @cached_property
    def penalty_metric(self) -> FloatArray:
        return np.eye(self.m) if self.metric is None else self.metric

    def evaluate(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """J and its gradient (m, p + 1)."""
        value, gradient = self.loss(theta)
        if self.l2 and value < np.inf:
            shrinkage = self.penalty_metric @ theta * self.ridge
            value += 0.5 * float((theta * shrinkage).sum())
            gradient = gradient + shrinkage
        return value, gradient

    def hessian(self, theta: FloatArray) -> FloatArray:
        """The second derivative of J."""
        hessian = self.information(theta)
        if self.l2:
            hessian += np.kron(self.penalty_metric, np.diag(self.ridge))
        return hessian

    def diagonal(self, theta: FloatArray) -> FloatArray:
        """(m, p + 1) the diagonal of the Hessian."""
        return self.curvatures(theta) + np.diagonal(self.penalty_metric)[:, np.newaxis] * self.ridge

    def null_start(self) -> FloatArray:
        """(m, p + 1) the intercept that predicts the mean response; all coefficients 0."""
        mean = self.response.inside(self.mean_statistic, 0.5 / (self.total + 1.0))
        start = np.zeros(self.shape)
        start[:, -1] = self.response.natural(mean[np.newaxis])[0]
        return start

    # Sums over the rows ----------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def total(self) -> float:
        """Σ w."""

    @property
    @abstractmethod
    def mean_statistic(self) -> FloatArray:
        """(m) the mean of T(y)."""

    @abstractmethod
    def loss(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """J without the penalty, and its gradient."""

    @abstractmethod
    def information(self, theta: FloatArray) -> FloatArray:
        """(m(p + 1), m(p + 1)) Σ w a″(η) ⊗ (z, 1)(z, 1)ᵀ: the Hessian without the penalty."""

    @abstractmethod
    def curvatures(self, theta: FloatArray) -> FloatArray:
        """(m, p + 1) the diagonal of the information."""

    @abstractmethod
    def variances(self, theta: FloatArray) -> FloatArray:
        """(m, m) Σ w a″(η)."""

    @abstractmethod
    def gram(self) -> FloatArray:
        """(p + 1, p + 1) Σ w (z, 1)(z, 1)ᵀ."""

    @abstractmethod
    def gram_times(self, vector: FloatArray) -> FloatArray:
        """(1, p + 1) the Gram matrix times a vector."""

    @abstractmethod
    def scatter(self) -> Scatter:
        """The scatter of the features about their class means."""

    @abstractmethod
    def maximum(self, function: Callable[..., ArrayLike], *args: Any) -> FloatArray:
        """The elementwise maximum of function(objective, *args), the objective being that of a batch of the rows."""


@dataclass(frozen=True)
class Objective(Criterion):
    """J(θ) = Σ w·loss(y, η) + l2/2 Σ_ab M_ab w_a·w_b, η = θ·(z, 1) + offset.

    The gradient is Σ w (a′(η) − T(y)) z, the Hessian Σ w a″(η) z zᵀ. Intercepts are not penalised. The loss is half of
    the deviance: minus the log-likelihood, measured from the saturated model.
    """

    rows: DesignRows
    response: Response
    y: FloatArray  # (n)
    weights: FloatArray | None = None  # (n)
    offset: FloatArray | None = None  # (n)
    l2: float = 0.0
    metric: FloatArray | None = None  # (m, m) M; the identity unless given

    @cached_property
    def statistic(self) -> FloatArray:
        """(n, m) T(y)."""
        return self.response.sufficient(self.y)

    @cached_property
    def weight(self) -> FloatArray:
        return np.ones(self.rows.shape[0]) if self.weights is None else self.weights

    @property
    def total(self) -> float:
        return float(self.weight.sum())

    @property
    def mean_statistic(self) -> FloatArray:
        return self.weight @ self.statistic / self.total

    def null_start(self) -> FloatArray:
        start = super().null_start()
        if self.offset is not None:
            inside = start.copy()
            start[:, -1] -= self.weight @ self.offset / self.total
            if not np.isfinite(self.evaluate(start)[0]):  # the domain is a half-line: below the largest offset
                inside[:, -1] -= self.offset.max()
                return inside
        return start

    def predictors(self, theta: FloatArray) -> FloatArray:
        """(n, m) η."""
        eta = self.rows.predictors(theta)
        return eta if self.offset is None else eta + self.offset[:, np.newaxis]

    def loss(self, theta: FloatArray) -> tuple[float, FloatArray]:
        if self.offset is None and self.response.max_classes:
            return self.rows.softmax(theta, self.codes, self.weights)
        eta = self.predictors(theta)
        with np.errstate(over="ignore", invalid="ignore"):
            value = float(self.weight @ self.response.loss(self.statistic, eta))
        if not np.isfinite(value):  # outside the response's domain, or overflow
            return np.inf, np.zeros_like(theta)
        residual = self.weight[:, np.newaxis] * (self.response.mean(eta) - self.statistic)
        return value, self.rows.residual_sums(residual)

    @cached_property
    def codes(self) -> Labels:
        """(n) class indices, if the response is one of classes."""
        return self.y.astype(np.int32)

    def information(self, theta: FloatArray) -> FloatArray:
        mean = self.response.mean(self.predictors(theta))
        m, width = self.shape
        blocks = np.empty((m, width, m, width))
        for i in range(m):
            for j in range(i + 1):
                block = self.rows.gram(self.weight * self.response.variance(mean, i, j))
                blocks[i, :, j], blocks[j, :, i] = block, block
        return blocks.reshape(m * width, m * width)

    def curvatures(self, theta: FloatArray) -> FloatArray:
        mean = self.response.mean(self.predictors(theta))
        return np.stack([self.rows.squares(self.weight * self.response.variance(mean, i, i)) for i in range(self.m)])

    def variances(self, theta: FloatArray) -> FloatArray:
        mean = self.response.mean(self.predictors(theta))
        indices = range(self.m)
        return np.array([[float(self.weight @ self.response.variance(mean, i, j)) for j in indices] for i in indices])

    def gram(self) -> FloatArray:
        return self.rows.gram(self.weight)

    def gram_times(self, vector: FloatArray) -> FloatArray:
        return self.rows.residual_sums(self.weight[:, np.newaxis] * self.rows.predictors(vector))

    def scatter(self) -> Scatter:
        x: Any = self.rows.x
        if sp.issparse(x):
            if x.shape[0] * x.shape[1] > MAX_DENSE_CELLS:
                raise DecibanError(TOO_WIDE)
            x = x.toarray()
        return MultivariateGaussian().collect(x, self.codes, self.weights, self.m + 1)

    def maximum(self, function: Callable[..., ArrayLike], *args: Any) -> FloatArray:
        return np.asarray(function(self, *args), dtype=np.float64)

    def thinned(self, step: int) -> Objective:
        """The objective of every step-th row, weighted to the total of all rows."""
        factor = self.weight.sum() / max(self.weight[::step].sum(), 1e-300)
        return replace(
            self,
            rows=self.rows.take(step),
            y=self.y[::step],
            weights=self.weight[::step] * factor,
            offset=None if self.offset is None else self.offset[::step],
        )
