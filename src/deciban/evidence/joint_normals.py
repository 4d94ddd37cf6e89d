"""JointNormals: numbers and levels of categories, jointly normal with a shared covariance and one for each class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.evidence.mixed_columns import Encoding
from deciban.families.covariance import factorising
from deciban.families.family import Context, Family, Reads, Table
from deciban.statistics.scatter import Scatter
from deciban.types import FloatArray, Labels

PER_ENTRY = 2.0 / 3.0  # virtual rows that shrink the shared covariance towards the identity, for each of d entries
PER_ROW = 0.02  # and for each row
BLOCK = 16  # rows of a triangular system that one product updates


@dataclass(frozen=True)
class JointNormalsParams:
    """μ_c, and the whitening matrix of each covariance."""

    mean: FloatArray  # (K, d)
    shared: FloatArray  # (1, d, d) T with TᵀT = Σ⁻¹
    by_class: FloatArray  # (K, d, d) T of each class


@dataclass(frozen=True)
class JointNormals(Family[Scatter, JointNormalsParams]):
    """Σ = (W + mI)/(n + m), with m = 2d/3 + n/50; Σ_c = (W_c + d·Σ)/(n_c + d), with W the scatter within the classes.

    As a density, each class has its own covariance, shrunk towards the shared one by as many virtual rows as there are
    dimensions. Values are encoded before they are summed (see Encoding); an unknown entry counts as 0.
    """

    reading: Encoding
    reads: ClassVar[Reads] = "mixed"
    joint: ClassVar[bool] = True

    def width(self, columns: int) -> int:
        return len(self.reading.owner)

    def check(self, values: Any) -> None:
        """Encoded values are finite."""

    def collect(self, values: FloatArray, labels: Labels, weights: FloatArray | None, classes: int) -> Scatter:
        return Scatter.of(without_missing(values), labels, weights, classes, shared=False)

    def estimate(self, statistic: Scatter, context: Context) -> JointNormalsParams:
        count = statistic.count.value
        total, d = max(float(count.sum()), 1e-300), statistic.origin.shape[1]
        within = statistic.within
        virtual = virtual_rows(total, d)
        shared = (within.sum(axis=0) + virtual * np.eye(d)) / (total + virtual)
        middle = count @ statistic.mean / total
        mean = np.where((count > 0)[:, np.newaxis], statistic.mean, middle)
        by_class = (within + d * shared) / (count + d)[:, np.newaxis, np.newaxis]
        triangles = np.stack([_whitening(sigma) for sigma in (shared, *by_class)])
        return JointNormalsParams(mean, triangles[:1], triangles[1:])

    def add_log_density(self, params: JointNormalsParams, values: FloatArray, out: FloatArray) -> None:
        _kernels.add_whitened(without_missing(values), params.by_class, params.mean, log_roots(params.by_class), out)

    def n_parameters(self, params: JointNormalsParams) -> int:
        classes, d = params.mean.shape
        return int(classes * (d + d * (d + 1) // 2))

    def describe(self, params: JointNormalsParams, context: Context) -> list[Table]:
        return []


def without_missing(values: FloatArray) -> FloatArray:
    """The same with 0 for NaN."""
    return np.where(np.isnan(values), 0.0, values)


def virtual_rows(rows: float, entries: int) -> float:
    """m = 2d/3 + n/50."""
    return PER_ENTRY * entries + PER_ROW * rows


def log_roots(whiten: FloatArray) -> FloatArray:
    """−½ log |2πΣ| of each covariance."""
    d = whiten.shape[1]
    roots: FloatArray = np.log(np.diagonal(whiten, axis1=1, axis2=2)).sum(axis=1) - 0.5 * d * np.log(2 * np.pi)
    return roots


def _whitening(sigma: FloatArray) -> FloatArray:
    """The lower triangle T with TᵀT = Σ⁻¹."""
    with factorising():
        return solve_lower(np.linalg.cholesky(sigma), np.eye(len(sigma)))


def solve_lower(lower: NDArray[Any], right: FloatArray) -> FloatArray:
    """X (d, n) with LX = R, by forward substitution in numpy alone: x_i = (r_i − Σ_{j<i} l_ij x_j)/l_ii.

    >>> solve_lower(np.array([[2.0, 0.0], [1.0, 4.0]]), np.eye(2))
    array([[ 0.5  ,  0.   ],
           [-0.125,  0.25 ]])
    """
    x = right.astype(np.float64)
    for start in range(0, len(lower), BLOCK):
        stop = min(start + BLOCK, len(lower))
        x[start:stop] -= lower[start:stop, :start] @ x[:start]
        for i in range(start, stop):
            x[i] -= lower[i, start:i] @ x[start:i]
            x[i] /= lower[i, i]
    return x
