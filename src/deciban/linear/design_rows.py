"""Rows of the design matrix, dense or sparse, behind the few operations that solvers need.

Solvers work in standardised coordinates: a parameter θ (m, p + 1) holds scale·w for each of p columns and, last, the
predictor at the origin. Any origin and scale give the same model; these are well conditioned in any units.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from deciban import _kernels
from deciban.types import FloatArray, Labels


@dataclass(frozen=True)
class DesignRows(ABC):
    """Rows z of p standardised columns, with η = θ·(z, 1)."""

    x: Any  # (n, p)
    origin: FloatArray  # (p)
    scale: FloatArray  # (p)
    varies: NDArray[np.bool_] | None = None  # (p) False for constant columns; None if unknown

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.x.shape[0]), int(self.x.shape[1])

    def with_matrix(self, x: Any) -> Self:
        """Other rows, in the same coordinates."""
        return replace(self, x=x)

    @abstractmethod
    def take(self, step: int) -> Self:
        """Every step-th row, in the same coordinates."""

    @abstractmethod
    def predictors(self, theta: FloatArray) -> FloatArray:
        """(n, m) η."""

    @abstractmethod
    def residual_sums(self, residual: FloatArray) -> FloatArray:
        """(m, p + 1) Σ residual·(z, 1)."""

    @abstractmethod
    def softmax(self, theta: FloatArray, codes: Labels, weights: FloatArray | None) -> tuple[float, FloatArray]:
        """−Σ w log p(y|z) and its gradient (m, p + 1), in one pass; class 0 is the reference."""

    @abstractmethod
    def gram(self, weights: FloatArray) -> FloatArray:
        """(p + 1, p + 1) Σ w (z, 1)(z, 1)ᵀ."""

    @abstractmethod
    def squares(self, weights: FloatArray) -> FloatArray:
        """(p + 1) the diagonal of the Gram matrix."""

    def _scaled(self, gradient: FloatArray) -> FloatArray:
        gradient[:, :-1] /= self.scale
        return gradient


def rows_of(
    x: Any, means: FloatArray | None, weights: FloatArray | None, spread: FloatArray | None = None
) -> DesignRows:
    """Rows of a float matrix or of a scipy CSR matrix, all finite; means and spread of columns if known."""
    if sp.issparse(x):
        return SparseRows.of(x, weights)
    if means is None:
        share = np.ones(len(x)) if weights is None else weights
        means = _kernels.column_sums(x, np.zeros(x.shape[1]), share)[0] / share.sum()
    return DenseRows.of(x, means, weights, spread)


@dataclass(frozen=True)
class DenseRows(DesignRows):
    """A dense matrix, read in place."""

    @classmethod
    def of(
        cls, x: NDArray[Any], origin: FloatArray, weights: FloatArray | None = None, spread: FloatArray | None = None
    ) -> DenseRows:
        x = _row_major(x)
        share = np.ones(len(x)) if weights is None else weights
        scale = spread
        if scale is None:
            scale = np.sqrt(_kernels.column_sums(x, np.ascontiguousarray(origin), share)[1] / share.sum())
        scale = scale.copy()
        for j in np.flatnonzero(scale <= 1e-9 * np.abs(origin)):  # constant, up to rounding of the mean, or nearly so
            column = x[:, [j]].astype(np.float64)
            shifted = column - column[0]
            middle = share @ shifted / share.sum()
            origin = np.where(np.arange(len(origin)) == j, column[0] + middle, origin)
            scale[j] = _spread(shifted, middle, share)[0]
        return cls(x, origin, scale_of(scale), scale > 0)

    def with_matrix(self, x: NDArray[Any]) -> DenseRows:
        return super().with_matrix(_row_major(x))

    def take(self, step: int) -> DenseRows:
        return replace(self, x=np.ascontiguousarray(self.x[::step]))

    def predictors(self, theta: FloatArray) -> FloatArray:
        return _kernels.predictors(self.x, *self._coefficients(theta), self.origin)

    def residual_sums(self, residual: FloatArray) -> FloatArray:
        return self._scaled(_kernels.residual_sums(self.x, self.origin, np.ascontiguousarray(residual)))

    def softmax(self, theta: FloatArray, codes: Labels, weights: FloatArray | None) -> tuple[float, FloatArray]:
        loss, gradient = _kernels.softmax_pass(self.x, *self._coefficients(theta), self.origin, codes, weights)
        return loss, self._scaled(gradient)

    def gram(self, weights: FloatArray) -> FloatArray:
        n, p = self.shape
        one_class = np.zeros(n, dtype=np.int32)
        _, _, total, products = _kernels.scatter(self.x, one_class, weights, self.origin[np.newaxis], True)
        gram = np.empty((p + 1, p + 1))
        gram[:p, :p], gram[p, :p], gram[:p, p], gram[p, p] = products[0], total[0], total[0], weights.sum()
        unit = np.append(self.scale, 1.0)
        gram /= unit
        gram /= unit[:, np.newaxis]
        return gram

    def squares(self, weights: FloatArray) -> FloatArray:
        total = _kernels.column_sums(self.x, self.origin, weights)[1] / self.scale**2
        return np.append(total, weights.sum())

    def _coefficients(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.ascontiguousarray(theta[:, :-1] / self.scale), np.ascontiguousarray(theta[:, -1])


@dataclass(frozen=True)
class SparseRows(DesignRows):
    """A CSR matrix of float64: scaled but not centred, which would make it dense. The origin is 0."""

    @classmethod
    def of(cls, x: Any, weights: FloatArray | None = None) -> SparseRows:
        n, p = x.shape
        share = np.full(n, 1.0 / max(1, n)) if weights is None else weights / weights.sum()
        peak = float(np.abs(x.data).max(initial=0.0)) or 1.0
        sums = _kernels.sparse_residual_sums((x.data / peak) ** 2, x.indices, x.indptr, p, share[:, np.newaxis])
        squares = sums[0, :-1]
        return cls(x, np.zeros(p), scale_of(np.sqrt(squares) * peak), squares > 0)

    def take(self, step: int) -> SparseRows:
        return replace(self, x=sp.csr_array(self.x[::step]))

    @property
    def _layout(self) -> tuple[FloatArray, NDArray[Any], NDArray[Any]]:
        return self.x.data, self.x.indices, self.x.indptr

    def predictors(self, theta: FloatArray) -> FloatArray:
        return _kernels.sparse_predictors(*self._layout, *self._coefficients(theta))

    def residual_sums(self, residual: FloatArray) -> FloatArray:
        width = self.shape[1]
        return self._scaled(_kernels.sparse_residual_sums(*self._layout, width, np.ascontiguousarray(residual)))

    def softmax(self, theta: FloatArray, codes: Labels, weights: FloatArray | None) -> tuple[float, FloatArray]:
        loss, gradient = _kernels.sparse_softmax_pass(*self._layout, *self._coefficients(theta), codes, weights)
        return loss, self._scaled(gradient)

    def gram(self, weights: FloatArray) -> FloatArray:
        z = sp.csr_array((self.x.data / self.scale[self.x.indices], self.x.indices, self.x.indptr), shape=self.shape)
        weighted = sp.csr_array((z.data * np.repeat(weights, np.diff(z.indptr)), z.indices, z.indptr), shape=z.shape)
        products, total = (weighted.T @ z).toarray(), weighted.sum(axis=0)
        return np.block([[products, total[:, np.newaxis]], [total[np.newaxis], np.array([[weights.sum()]])]])

    def squares(self, weights: FloatArray) -> FloatArray:
        data, columns, starts = self._layout
        total = _kernels.sparse_residual_sums(data**2, columns, starts, self.shape[1], weights[:, np.newaxis])[0]
        return np.append(total[:-1] / self.scale**2, total[-1])

    def _coefficients(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.ascontiguousarray((theta[:, :-1] / self.scale).T), np.ascontiguousarray(theta[:, -1])


def _row_major(x: NDArray[Any]) -> NDArray[Any]:
    """The matrix in row-major order, as rows are read many times."""
    return np.ascontiguousarray(x) if x.strides[1] != x.itemsize and x.shape[1] > 1 else x


def _spread(x: NDArray[Any], origin: FloatArray, weights: FloatArray) -> FloatArray:
    """(p) the root mean square of x − origin, also for columns of 1e±200."""
    distance = np.abs(x - origin)
    peak = distance.max(axis=0, initial=0.0)
    spread: FloatArray = np.sqrt(weights @ (distance / scale_of(peak)) ** 2 / max(weights.sum(), 1e-300)) * peak
    return spread


def scale_of(spread: FloatArray) -> FloatArray:
    """The scale of each column; 1 for a constant one."""
    return np.where(spread > 0, spread, 1.0)
