"""Firth's penalised likelihood: estimates that are always finite, and less biased."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deciban.linear.curvature import DenseCurvature
from deciban.linear.objective import Objective
from deciban.linear.solvers import MEMORY, SeparationWatch, SolverResult, descend_by_hessian
from deciban.types import FloatArray


@dataclass(frozen=True)
class Firth:
    """J(θ) − ½ log |I(θ)|, I = Σ w a″(η) ⊗ z zᵀ: Jeffreys' prior, whose mode is always finite (Firth 1993).

    The derivative of ½ log |I| by η_k of one row is ½ p_k (q_k − Σ_l p_l q_l), where q_l = (e_l − p)ᵀ Q (e_l − p) and
    Q holds the quadratic forms of I⁻¹ at the row; for two classes that is h(½ − p), h the leverage. With collinear
    columns, |I| is that of the remaining directions.
    """

    objective: Objective

    @cached_property
    def basis(self) -> FloatArray | None:
        """(s, r) orthonormal directions in which the data vary; None if these are all directions."""
        gram = self.objective.gram()
        if not DenseCurvature.of(gram).flat.shape[1]:
            return None
        values, vectors = np.linalg.eigh(gram)
        varying = vectors[:, values > 1e-12 * values[-1]]
        return np.kron(np.eye(self.objective.m), varying)

    def information(self, theta: FloatArray) -> DenseCurvature:
        full = self.objective.information(theta)
        return DenseCurvature.of(full if self.basis is None else self.basis.T @ full @ self.basis)

    def inverse(self, theta: FloatArray) -> FloatArray:
        """(s, s) I⁻¹; 0 in directions in which the data do not vary."""
        inverse = self.information(theta).inverse()
        return inverse if self.basis is None else self.basis @ inverse @ self.basis.T

    def evaluate(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """The penalised J and its gradient."""
        value, gradient = self.objective.evaluate(theta)
        information = self.information(theta)
        if information.flat.shape[1]:  # so far out that every p is 0 or 1
            return np.inf, gradient
        objective, (m, width) = self.objective, self.objective.shape
        inverse = self.inverse(theta).reshape(m, width, m, width)
        mean = objective.response.mean(objective.predictors(theta))
        forms = np.empty((len(mean), m, m))  # Q
        for i in range(m):
            for j in range(i + 1):
                forms[:, i, j] = forms[:, j, i] = self._forms(inverse[i, :, j])
        spread = np.einsum("nij,nj->ni", forms, mean)  # Q p
        about = np.einsum("ni,ni->n", spread, mean)  # pᵀ Q p, q of the reference class
        q = np.einsum("nii->ni", forms) - 2.0 * spread + about[:, np.newaxis]
        reference = 1.0 - mean.sum(axis=1)
        average = (mean * q).sum(axis=1) + reference * about
        pull = 0.5 * objective.weight[:, np.newaxis] * mean * (q - average[:, np.newaxis])
        return value - 0.5 * information.log_determinant(), gradient - objective.rows.residual_sums(pull)

    def _forms(self, matrix: FloatArray) -> FloatArray:
        """(n) (z, 1)ᵀ A (z, 1) of every row."""
        result: FloatArray = (self.objective.rows.predictors(matrix) * self._cells).sum(axis=1)
        return result

    @cached_property
    def _cells(self) -> FloatArray:
        """(n, p + 1) (z, 1) of every row: the predictors of the identity."""
        return self.objective.rows.predictors(np.eye(self.objective.shape[1]))


def firth(
    objective: Objective, start: FloatArray, *, tol: float, max_iter: int, watch: SeparationWatch
) -> SolverResult:
    """Newton's steps with the information as curvature."""
    return descend_by_hessian(
        objective, start, Firth(objective).evaluate, memory=MEMORY, tol=tol, max_iter=max_iter, watch=watch
    )
