"""What a linear model minimises: J(θ) = −Σ w log p(y|η) + l2/2 |coefficients|², with gradient and Hessian."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from deciban.linear.rows import DenseRows, SparseRows
from deciban.responses import Bernoulli, Multinomial, Response
from deciban.types import FloatArray


@dataclass(frozen=True)
class Objective:
    """J(θ) = Σ w·loss(y, η) + l2/2 Σ_ab M_ab w_a·w_b, η = θ·(z, 1) + offset.

    The gradient is Σ w (a′(η) − T(y)) z, the Hessian Σ w a″(η) z zᵀ. Intercepts are not penalised. The loss is half of
    the deviance: minus the log-likelihood, counted from the best that any model could reach.
    """

    rows: DenseRows | SparseRows
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
    def m(self) -> int:
        return int(self.response.sufficient(self.y[:1]).shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """Of θ: (m, p + 1)."""
        return self.m, self.rows.shape[1] + 1

    @cached_property
    def weight(self) -> FloatArray:
        return np.ones(self.rows.shape[0]) if self.weights is None else self.weights

    @cached_property
    def ridge(self) -> FloatArray:
        """(p + 1) l2 in the coordinates of θ."""
        with np.errstate(over="ignore"):
            return np.append(self.l2 / self.rows.scale**2, 0.0) if self.l2 else np.zeros(self.shape[1])

    @cached_property
    def penalty_metric(self) -> FloatArray:
        return np.eye(self.m) if self.metric is None else self.metric

    def null_start(self) -> FloatArray:
        """(m, p + 1) η of the mean response as intercept, and nothing else."""
        total = self.weight.sum()
        mean = self.response.inside(self.weight @ self.statistic / total, 0.5 / (total + 1.0))
        start = np.zeros(self.shape)
        start[:, -1] = self.response.natural(mean[np.newaxis])[0]
        if self.offset is not None:
            inside = start.copy()
            start[:, -1] -= self.weight @ self.offset / total
            if not np.isfinite(self.evaluate(start)[0]):  # the domain is a half-line: below the largest offset
                inside[:, -1] -= self.offset.max()
                return inside
        return start

    def predictors(self, theta: FloatArray) -> FloatArray:
        """(n, m) η."""
        eta = self.rows.predictors(theta)
        return eta if self.offset is None else eta + self.offset[:, np.newaxis]

    def evaluate(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """J and its gradient (m, p + 1)."""
        if self.offset is None and isinstance(self.response, (Bernoulli, Multinomial)):
            value, gradient = self.rows.softmax(theta, self._codes, self.weights)
        else:
            eta = self.predictors(theta)
            with np.errstate(over="ignore", invalid="ignore"):
                value = float(self.weight @ self.response.loss(self.statistic, eta))
            if not np.isfinite(value):  # outside the response's domain, or too far
                return np.inf, np.zeros_like(theta)
            residual = self.weight[:, np.newaxis] * (self.response.mean(eta) - self.statistic)
            gradient = self.rows.returned(residual)
        if self.l2:
            pull = self.penalty_metric @ theta * self.ridge
            value += 0.5 * float((theta * pull).sum())
            gradient = gradient + pull
        return value, gradient

    @cached_property
    def _codes(self) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
        return self.y.astype(np.int32)

    def information(self, theta: FloatArray) -> FloatArray:
        """(m(p + 1), m(p + 1)) Σ w a″(η) ⊗ (z, 1)(z, 1)ᵀ: the Hessian without the penalty."""
        mean = self.response.mean(self.predictors(theta))
        m, width = self.shape
        blocks = np.empty((m, width, m, width))
        for i in range(m):
            for j in range(i + 1):
                block = self.rows.gram(self.weight * self.response.variance(mean, i, j))
                blocks[i, :, j], blocks[j, :, i] = block, block
        return blocks.reshape(m * width, m * width)

    def hessian(self, theta: FloatArray) -> FloatArray:
        """The second derivative of J."""
        hessian = self.information(theta)
        if self.l2:
            hessian += np.kron(self.penalty_metric, np.diag(self.ridge))
        return hessian

    def diagonal(self, theta: FloatArray) -> FloatArray:
        """(m, p + 1) the Hessian's diagonal, alone."""
        mean = self.response.mean(self.predictors(theta))
        blocks = [self.rows.squares(self.weight * self.response.variance(mean, i, i)) for i in range(self.m)]
        return np.stack(blocks) + np.diagonal(self.penalty_metric)[:, np.newaxis] * self.ridge

    def mean_variance(self, theta: FloatArray) -> FloatArray:
        """(m, m) a″(η), averaged over the rows."""
        mean = self.response.mean(self.predictors(theta))
        places = range(self.m)
        average = [[float(self.weight @ self.response.variance(mean, i, j)) for j in places] for i in places]
        result: FloatArray = np.array(average) / self.weight.sum()
        return result

    def thinned(self, step: int) -> Objective:
        """The same for every step-th row; it stands for all, so it is of the same size."""
        factor = self.weight.sum() / max(self.weight[::step].sum(), 1e-300)
        return replace(
            self,
            rows=self.rows.take(step),
            y=self.y[::step],
            weights=self.weight[::step] * factor,
            offset=None if self.offset is None else self.offset[::step],
        )
