"""Curvature matrices P of an objective, factored to solve P d = g."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dpocon

from deciban.types import FloatArray

TINY = 1e-150  # its square underflows


@dataclass(frozen=True)
class Diagonal:
    """P = diag(d)."""

    diagonal: FloatArray  # the shape of θ

    def solve(self, gradient: FloatArray) -> FloatArray:
        return np.divide(gradient, self.diagonal, out=np.zeros_like(gradient), where=self.diagonal > 0)


@dataclass(frozen=True)
class DenseCurvature:
    """Any positive semi-definite matrix, factored once; solutions are orthogonal to its null space.

    The null space ("flat" directions) comes from columns that are constant or collinear. The shortest solution
    is taken, so equal columns share the coefficient that one of them would get.
    """

    unit: FloatArray  # (s) the square roots of the diagonal; 0 where it is 0
    factor: FloatArray  # (s, s) of the scaled matrix: a Cholesky factor; a pseudo-inverse if there are flat directions
    flat: FloatArray  # (s, f) scaled directions without curvature

    @classmethod
    def of(cls, matrix: FloatArray) -> DenseCurvature:
        unit = np.sqrt(np.maximum(np.diagonal(matrix), 0.0))
        positive = unit > TINY
        inverse = np.divide(1.0, unit, out=np.zeros_like(unit), where=positive)
        scaled = matrix * inverse * inverse[:, np.newaxis]
        size = len(scaled)
        least = 8 * size * np.finfo(float).eps
        if positive.all():
            try:
                factor = cho_factor(scaled, lower=True)[0]
            except np.linalg.LinAlgError:
                pass
            else:
                condition, _ = dpocon(factor, np.abs(scaled).sum(axis=0).max(), uplo="L")
                if condition > least:
                    return cls(unit, factor, np.zeros((size, 0)))
        values, vectors = np.linalg.eigh(scaled)
        curved = values > least * max(values[-1], 0.0)
        basis = vectors[:, curved]
        return cls(unit, (basis / values[curved]) @ basis.T, vectors[:, ~curved])

    def solve(self, gradient: FloatArray) -> FloatArray:
        return self.solve_columns(gradient.reshape(-1, 1)).reshape(gradient.shape)

    def solve_columns(self, right: FloatArray) -> FloatArray:
        """(s, r) P⁻¹R, column by column."""
        inverse = np.divide(1.0, self.unit, out=np.zeros_like(self.unit), where=self.unit > TINY)[:, np.newaxis]
        scaled = right * inverse
        solution = self.factor @ scaled if self.flat.shape[1] else cho_solve((self.factor, True), scaled)
        return solution * inverse

    def inverse(self) -> FloatArray:
        """P⁻¹ (s, s); 0 in flat directions."""
        return self.solve_columns(np.eye(len(self.unit)))

    def log_determinant(self) -> float:
        """log |P|, for a matrix without flat directions."""
        return 2.0 * float(np.log(np.diagonal(self.factor)).sum() + np.log(self.unit).sum())


@dataclass(frozen=True)
class Kronecker:
    """P = V ⊗ G: one matrix over predictors, one over columns, each factored on its own."""

    over_predictors: DenseCurvature  # (m, m)
    over_columns: DenseCurvature  # (p + 1, p + 1)

    def solve(self, gradient: FloatArray) -> FloatArray:
        return self.over_predictors.solve_columns(self.over_columns.solve_columns(gradient.T).T)
