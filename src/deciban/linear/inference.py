"""Inference from a maximum-likelihood fit: standard errors, tests, intervals, deviance."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from deciban.errors import DecibanError, require
from deciban.linear.curvature import DenseCurvature
from deciban.linear.design_rows import DenseRows
from deciban.linear.objective import Objective
from deciban.linear.solvers import exact_newton, rank_deficiency
from deciban.types import FloatArray


@dataclass(frozen=True)
class Inference:
    """Cov[w] = φ I⁻¹, I = Σ w a″(η) x xᵀ, φ the dispersion: 1, or for a gaussian response deviance/(n − rank).

    Weights count rows: n is their sum. A coefficient that the data do not determine has an infinite standard error.
    """

    estimates: FloatArray  # (m, 1 + p) intercept first
    covariance: FloatArray  # (m(1 + p), m(1 + p)) of the estimates; infinite if the dispersion is unknown
    undetermined: tuple[int, ...]  # indices among the 1 + p
    n: float
    rank: int
    deviance: float
    null_deviance: float
    log_likelihood: float
    dispersion: float
    by_t: bool  # the dispersion is estimated, so tests use t

    def check_fields(self) -> None:
        shape = self.estimates.shape
        require(len(shape) == 2, "estimates are not a matrix")
        size, covariance = self.estimates.size, self.covariance.shape
        require(covariance == (size, size), f"a covariance of shape {covariance} for {size} coefficients")
        require(all(0 <= j < shape[1] for j in self.undetermined), "an undetermined coefficient is unknown")
        require(0 <= self.rank <= size, f"a rank of {self.rank} for {size} coefficients")
        require(0 <= self.n < np.inf, f"n is {self.n}")

    @classmethod
    def of(cls, objective: Objective, theta: FloatArray) -> Inference:
        """At the maximum of an objective without penalty."""
        (m, width), n = objective.shape, float(objective.weight.sum())
        information = DenseCurvature.of(objective.information(theta))
        rank = m * (width - rank_deficiency(objective))
        eta = objective.predictors(theta)
        deviance = _deviance(objective, eta)
        estimated = objective.response.estimates_dispersion
        dispersion = 1.0 if not estimated else deviance / (n - rank) if n > rank else np.inf
        to_coefficients = np.kron(np.eye(m), _to_coefficients(objective))
        # a coefficient is determined if it is constant along flat directions, which have length 1 in these units
        inverse = np.divide(1.0, information.unit, out=np.ones(m * width), where=information.unit > 0)
        along = np.abs(to_coefficients * inverse @ information.flat).max(axis=1, initial=0.0)
        covariance = np.full((m * width, m * width), np.inf)
        if np.isfinite(dispersion):
            covariance = to_coefficients @ information.inverse() @ to_coefficients.T * dispersion
        undetermined = along > 1e-6 * np.sqrt(((to_coefficients * inverse) ** 2).sum(axis=1))
        return cls(
            estimates=(to_coefficients @ theta.reshape(-1)).reshape(m, width),
            covariance=covariance,
            undetermined=tuple(np.flatnonzero(undetermined.reshape(m, width).any(axis=0)).tolist()),
            n=n,
            rank=rank,
            deviance=deviance,
            null_deviance=null_deviance(objective),
            log_likelihood=_log_likelihood(objective, eta, deviance, n),
            dispersion=dispersion,
            by_t=estimated,
        )

    @property
    def standard_errors(self) -> FloatArray:
        """(m, 1 + p)."""
        errors = np.sqrt(np.maximum(np.diagonal(self.covariance), 0.0)).reshape(self.estimates.shape)
        errors[:, list(self.undetermined)] = np.inf
        return errors

    @property
    def statistics(self) -> FloatArray:
        """(m, 1 + p) z, or t: estimate/error."""
        errors = self.standard_errors
        certain = np.where(self.estimates == 0, 0.0, np.copysign(np.inf, self.estimates))  # for an error of 0
        return np.divide(self.estimates, errors, out=certain, where=errors > 0)

    @property
    def p_values(self) -> FloatArray:
        """(m, 1 + p) two-sided, for the hypothesis that the coefficient is 0."""
        result: FloatArray = 2.0 * self._distribution.sf(np.abs(self.statistics))
        return result

    def intervals(self, level: float) -> FloatArray:
        """(m, 1 + p, 2) estimate ± quantile·error (Wald)."""
        if not 0 < level < 1:
            raise DecibanError(f"level must be between 0 and 1, such as 0.95, not {level!r}")
        half = self._distribution.ppf(0.5 + 0.5 * level) * self.standard_errors
        return np.stack([self.estimates - half, self.estimates + half], axis=2)

    @property
    def residual_df(self) -> float:
        return len(self.estimates) * self.n - self.rank

    @property
    def aic(self) -> float:
        return -2.0 * self.log_likelihood + 2.0 * (self.rank + self.by_t)

    @property
    def _distribution(self) -> stats.rv_continuous:
        return stats.t(self.residual_df) if self.by_t and self.residual_df > 0 else stats.norm


def _deviance(objective: Objective, eta: FloatArray) -> float:
    return max(0.0, 2.0 * float(objective.weight @ objective.response.loss(objective.statistic, eta)))


def null_deviance(objective: Objective) -> float:
    """The deviance of the intercept-only model."""
    no_columns = DenseRows.of(np.zeros((objective.rows.shape[0], 0)), np.zeros(0))
    null = replace(objective, rows=no_columns, l2=0.0, metric=None)
    return 2.0 * exact_newton(null, null.null_start(), tol=1e-14, max_iter=100).solution.objective


def _log_likelihood(objective: Objective, eta: FloatArray, deviance: float, n: float) -> float:
    if objective.response.estimates_dispersion:  # at σ² = deviance/n
        return float(-0.5 * n * (np.log(2.0 * np.pi * max(deviance, 1e-300) / n) + 1.0))
    response, statistic = objective.response, objective.statistic
    per_row = response.log_base(objective.y) + (eta * statistic).sum(axis=1) - response.log_partition(eta)
    return float(objective.weight @ per_row)


def _to_coefficients(objective: Objective) -> FloatArray:
    """(1 + p, p + 1) the matrix that maps θ of one predictor to intercept and coefficients."""
    rows, p = objective.rows, objective.rows.shape[1]
    matrix = np.zeros((p + 1, p + 1))
    matrix[1:, :p] = np.diag(1.0 / rows.scale)
    matrix[0, :p] = -rows.origin / rows.scale
    matrix[0, p] = 1.0
    return matrix
