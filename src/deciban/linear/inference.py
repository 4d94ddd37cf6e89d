"""What a fit by maximum likelihood says of itself: errors, tests, intervals, deviance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from deciban.linear.curvature import Full
from deciban.linear.objective import Objective
from deciban.linear.rows import DenseRows
from deciban.linear.solve import exact_newton
from deciban.types import FloatArray


@dataclass(frozen=True)
class Inference:
    """Cov[w] = φ I⁻¹, I = Σ w a″(η) x xᵀ, φ the dispersion: 1, or for a gaussian response deviance/(n − rank).

    Weights count rows: n is their sum. A coefficient that the data do not determine has an infinite standard error.
    """

    estimates: FloatArray  # (m, 1 + p) intercept first
    covariance: FloatArray  # (m(1 + p), m(1 + p)) of them
    undetermined: tuple[int, ...]  # places among the 1 + p
    n: float
    rank: int
    deviance: float
    null_deviance: float
    log_likelihood: float
    dispersion: float
    by_t: bool  # the dispersion is estimated, so tests are Student's

    @classmethod
    def of(cls, objective: Objective, theta: FloatArray) -> Inference:
        """At the maximum of an objective without penalty."""
        (m, width), n = objective.shape, float(objective.weight.sum())
        information = Full.of(objective.information(theta))
        rank = m * width - information.flat.shape[1]
        eta = objective.predictors(theta)
        deviance = _deviance(objective, eta)
        estimated = objective.response.estimates_dispersion
        dispersion = deviance / (n - rank) if estimated and n > rank else 1.0
        back = np.kron(np.eye(m), _to_columns(objective))
        flat = np.abs(back @ (information.flat / np.where(information.unit > 0, information.unit, 1.0)[:, np.newaxis]))
        unit = np.abs(back) @ np.where(information.unit > 0, 1.0 / np.maximum(information.unit, 1e-300), 1.0)
        loose = (flat > 0.01 * unit[:, np.newaxis]).any(axis=1).reshape(m, width).any(axis=0)
        return cls(
            estimates=(back @ theta.reshape(-1)).reshape(m, width),
            covariance=dispersion * back @ information.inverse() @ back.T,
            undetermined=tuple(np.flatnonzero(loose).tolist()),
            n=n,
            rank=rank,
            deviance=deviance,
            null_deviance=_null_deviance(objective),
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
        result: FloatArray = np.divide(self.estimates, errors, out=np.zeros_like(errors), where=errors > 0)
        return result

    @property
    def p_values(self) -> FloatArray:
        """(m, 1 + p) of the hypothesis that the coefficient is 0."""
        result: FloatArray = 2.0 * self._law.sf(np.abs(self.statistics))
        return result

    def intervals(self, level: float) -> FloatArray:
        """(m, 1 + p, 2) estimate ± quantile·error (Wald)."""
        half = self._law.ppf(0.5 + 0.5 * level) * self.standard_errors
        return np.stack([self.estimates - half, self.estimates + half], axis=2)

    @property
    def residual_df(self) -> float:
        return len(self.estimates) * self.n - self.rank

    @property
    def aic(self) -> float:
        return -2.0 * self.log_likelihood + 2.0 * (self.rank + self.by_t)

    @property
    def _law(self) -> stats.rv_continuous:
        return stats.t(self.residual_df) if self.by_t else stats.norm


def _deviance(objective: Objective, eta: FloatArray) -> float:
    return 2.0 * float(objective.weight @ objective.response.loss(objective.statistic, eta))


def _null_deviance(objective: Objective) -> float:
    """Of the intercept alone."""
    n = objective.rows.shape[0]
    none = np.zeros((n, 0))
    alone = Objective(
        DenseRows.of(none, np.zeros(0)), objective.response, objective.y, objective.weights, objective.offset
    )
    solved = exact_newton(alone, first_guess(alone), tol=1e-14, max_iter=100)
    return 2.0 * solved.solution.objective


def _log_likelihood(objective: Objective, eta: FloatArray, deviance: float, n: float) -> float:
    if objective.response.estimates_dispersion:  # at σ² = deviance/n
        return float(-0.5 * n * (np.log(2.0 * np.pi * max(deviance, 1e-300) / n) + 1.0))
    response, statistic = objective.response, objective.statistic
    per_row = response.log_base(objective.y) + (eta * statistic).sum(axis=1) - response.log_partition(eta)
    return float(objective.weight @ per_row)


def first_guess(objective: Objective) -> FloatArray:
    """(m, p + 1) η of the mean response, as intercept; a mean at the edge of the domain is moved inside a little."""
    total = objective.weight.sum()
    mean = objective.weight @ objective.statistic / total
    edge = 0.5 / (total + 1.0)
    if objective.response.name in ("bernoulli", "multinomial"):
        mean = (mean + edge) / (1.0 + (len(mean) + 1) * edge)
    elif objective.response.name == "poisson":
        mean = np.maximum(mean, edge)
    start = np.zeros(objective.shape)
    start[:, -1] = objective.response.natural(mean[np.newaxis])[0]
    if objective.offset is not None:
        start[:, -1] -= objective.weight @ objective.offset / total
    return start


def _to_columns(objective: Objective) -> FloatArray:
    """(1 + p, p + 1) from θ of one predictor to intercept and coefficients."""
    rows = objective.rows
    p = rows.shape[1]
    back = np.zeros((p + 1, p + 1))
    back[1:, :p] = np.diag(1.0 / rows.scale)
    back[0, :p] = -rows.origin / rows.scale
    back[0, p] = 1.0
    return back
