"""Curvatures P of an objective, ready to solve P d = g."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dpocon

from deciban.types import FloatArray

NOTHING = 1e-150  # a number whose square is none


@dataclass(frozen=True)
class Diagonal:
    """P = diag(d)."""

    diagonal: FloatArray  # the shape of θ

    def solve(self, gradient: FloatArray) -> FloatArray:
        return np.divide(gradient, self.diagonal, out=np.zeros_like(gradient), where=self.diagonal > 0)


@dataclass(frozen=True)
class Full:
    """Any positive semi-definite matrix, factored once; directions in which it is flat are left alone.

    Flat directions are those of columns that do not vary or are combinations of each other. The solution of least
    length is taken, so equal columns share what one of them would get.
    """

    unit: FloatArray  # (s) the square roots of the diagonal; 0 where it is 0
    factor: FloatArray  # (s, s) of the scaled matrix: a Cholesky factor, or a pseudo-inverse if there is `flat`
    flat: FloatArray  # (s, f) scaled directions without curvature

    @classmethod
    def of(cls, matrix: FloatArray) -> Full:
        unit = np.sqrt(np.maximum(np.diagonal(matrix), 0.0))
        alive = unit > NOTHING
        inverse = np.divide(1.0, unit, out=np.zeros_like(unit), where=alive)
        scaled = matrix * inverse * inverse[:, np.newaxis]
        size = len(scaled)
        least = 8 * size * np.finfo(float).eps
        if alive.all():
            try:
                factor = cho_factor(scaled, lower=True)[0]
            except np.linalg.LinAlgError:
                pass
            else:
                condition, _ = dpocon(factor, np.abs(scaled).sum(axis=0).max(), uplo="L")
                if condition > least:
                    return cls(unit, factor, np.zeros((size, 0)))
        values, vectors = np.linalg.eigh(scaled)
        steep = values > least * max(values[-1], 0.0)
        kept = vectors[:, steep]
        return cls(unit, (kept / values[steep]) @ kept.T, vectors[:, ~steep])

    def solve(self, gradient: FloatArray) -> FloatArray:
        return self.solve_columns(gradient.reshape(-1, 1)).reshape(gradient.shape)

    def solve_columns(self, right: FloatArray) -> FloatArray:
        """(s, r) P⁻¹R, column by column."""
        inverse = np.divide(1.0, self.unit, out=np.zeros_like(self.unit), where=self.unit > NOTHING)[:, np.newaxis]
        scaled = right * inverse
        found = self.factor @ scaled if self.flat.shape[1] else cho_solve((self.factor, True), scaled)
        result: FloatArray = found * inverse
        return result

    def inverse(self) -> FloatArray:
        """P⁻¹ (s, s); in flat directions 0."""
        return self.solve_columns(np.eye(len(self.unit)))

    def log_determinant(self) -> float:
        """log |P|, for a matrix without flat directions."""
        return 2.0 * float(np.log(np.diagonal(self.factor)).sum() + np.log(self.unit).sum())


@dataclass(frozen=True)
class Kronecker:
    """P = V ⊗ G: one matrix among predictors, one among columns, each factored alone."""

    among_predictors: Full  # (m, m)
    among_columns: Full  # (p + 1, p + 1)

    def solve(self, gradient: FloatArray) -> FloatArray:
        return self.among_predictors.solve_columns(self.among_columns.solve_columns(gradient.T).T)
