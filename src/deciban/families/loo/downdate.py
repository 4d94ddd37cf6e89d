"""A Gaussian without one row: in suitable coordinates, its scatter is a diagonal minus one outer product."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.families.covariance import narrowest, oas_of, unit_cholesky
from deciban.families.family import FLOOR
from deciban.lazy import lazy
from deciban.types import BoolArray, FloatArray, IntArray

linalg = lazy("scipy.linalg")
lapack = lazy("scipy.linalg.lapack")

LITTLE = 1e-4  # of a class, a column or a direction: if less remains without a row, parameters are estimated again
CELLS = 1 << 16  # that are left out at a time, so that they stay in the cache
RUN = 64  # ratios that are multiplied before their logarithm is taken


@dataclass(frozen=True)
class Downdate:
    """What changes if each of m rows is left out of its class."""

    outer: FloatArray  # (m) a = w n/n′: the scatter M becomes M − aδδᵀ
    count: FloatArray  # (m) the weight of the rows that the covariance is then estimated from
    divisor: FloatArray  # (m) ν′, by which the scatter is then divided

    def part(self, rows: slice) -> Downdate:
        return Downdate(self.outer[rows], self.count[rows], self.divisor[rows])


@dataclass(frozen=True)
class Diagonal:
    """D of each row: (1 − s)(M − aδδᵀ) + s t I = R⁻¹(D − (1 − s)a vvᵀ)R⁻ᵀ, with v = Rδ."""

    inverse: FloatArray  # (m or 1, d or 1) 1/D
    log_det: FloatArray  # (m or 1) log |(1 − s)M + s t I|
    kept: FloatArray  # (m or 1) 1 − s
    least: FloatArray  # (m or 1) no direction of (1 − s)M + s t I is narrower than this, in the columns' totals


class Whitened:
    """v = T(x − μ) with TᵀT = M⁻¹, without shrinkage: D is the identity, whichever row is left out.

    >>> whitened = Whitened(np.diag([4.0, 1.0]), np.array([4.0, 2.0]))
    >>> whitened.coordinates(np.array([[3.0, 3.0]]), np.array([1.0, 1.0]))
    array([[1., 2.]])
    """

    def __init__(self, scatter: FloatArray, total: FloatArray) -> None:
        """The scatter M (d, d), and the scatter (d) of each column over all classes."""
        unit, lower = unit_cholesky(scatter)
        self.transform: FloatArray = linalg.solve_triangular(lower, np.diag(1.0 / unit), lower=True)  # (d, d) T
        one = np.ones(1)
        log_det = 2 * np.log(unit * np.diagonal(lower)).sum()
        self._diagonal = Diagonal(one[:, np.newaxis], log_det * one, one, narrowest(scatter, total) * one)

    def coordinates(self, x: NDArray[Any], mean: FloatArray) -> FloatArray:
        return _kernels.whiten(x, self.transform, mean)

    def diagonal(self, v: FloatArray, downdate: Downdate) -> Diagonal:
        return self._diagonal

    def squares(self, v: FloatArray, diagonal: Diagonal, offsets: FloatArray) -> FloatArray:
        """(m, k) uᵀD⁻¹u with u = v + offset."""
        out = np.zeros((len(v), len(offsets)))
        _kernels.add_quadratic(v, -offsets, np.ones_like(offsets), np.zeros_like(offsets), out)
        return out


class Rotated:
    """v = Q(x − μ) with QMQᵀ = Λ: shrunk towards s t I, D = (1 − s)Λ + s t, with t = (tr M − a|δ|²)/d.

    Λ is computed as that of M + βI, minus β, with β below s t of any row: so D is a sum of positive numbers, and
    columns of very different size cost no digits.

    >>> rotated = Rotated(np.diag([4.0, 1.0]), np.array([4.0, 2.0]), np.diag([4.0, 1.0]), 0.5, 0.5)
    >>> downdate = Downdate(np.array([1.0]), np.array([3.0]), np.array([3.0]))
    >>> rotated.diagonal(np.array([[1.0, 0.0]]), downdate).log_det.round(12) == np.log(3.0 * 1.5).round(12)
    array([ True])
    """

    def __init__(
        self,
        scatter: FloatArray,
        total: FloatArray,
        full_scatter: FloatArray,
        shrinkage: float | Literal["oas"],
        s_of_all: float,
    ) -> None:
        """M and the totals of the columns that vary, M of all columns, the shrinkage, and s with all rows."""
        self._shrinkage = shrinkage
        self._width = len(full_scatter)
        self._trace = float(np.trace(full_scatter))
        self._squares = float((full_scatter**2).sum())
        middle, s = self._trace / self._width, min(s_of_all, 0.5)
        self._beta = middle * s / (1 - s) / 64
        unit, lower = unit_cholesky(scatter + self._beta * np.eye(len(scatter)))
        # one-sided Jacobi is as exact for small values as for large ones, which eigh is not
        svd = lapack.dgejsv((lower * unit[:, np.newaxis]).T, joba=0, jobu=3, jobv=0, jobt=0)
        values, _, vectors, work, *_, info = svd
        if info:
            raise np.linalg.LinAlgError("the eigenvalues of a covariance did not converge")
        self.transform: FloatArray = np.ascontiguousarray(vectors.T)  # (d, d) Q
        self._values = (values * (work[0] / work[1])) ** 2  # (d) Λ + β
        self._reference = (1 - s_of_all) * (self._values - self._beta) + s_of_all * middle
        self._narrowest, self._largest = narrowest(scatter, total), float(total.max())

    def coordinates(self, x: NDArray[Any], mean: FloatArray) -> FloatArray:
        return _kernels.predictors(x, self.transform, np.zeros(len(mean)), mean)

    def diagonal(self, v: FloatArray, downdate: Downdate) -> Diagonal:
        length = _dot(v, v)
        middle = (self._trace - downdate.outer * length) / self._width
        s = self._shrinkages(v, length, middle, downdate)
        sphere = s * middle
        beyond = sphere - (1 - s) * self._beta
        ratio = np.multiply.outer(1 - s, self._values / self._reference)  # D, relative to that of all rows
        ratio += np.multiply.outer(beyond, 1.0 / self._reference)
        runs = np.multiply.reduceat(ratio, np.arange(0, ratio.shape[1], RUN), axis=1)
        log_det = np.log(runs).sum(axis=1) + np.log(self._reference).sum()
        least = np.where(beyond >= 0, (1 - s) * self._narrowest + sphere / self._largest, 0.0)
        return Diagonal(np.divide(1.0 / self._reference, ratio, out=ratio), log_det, 1 - s, least)

    def squares(self, v: FloatArray, diagonal: Diagonal, offsets: FloatArray) -> FloatArray:
        """(m, k) uᵀD⁻¹u with u = v + offset."""
        out, u = np.empty((len(v), len(offsets))), np.empty_like(v)
        for k, offset in enumerate(offsets):
            np.add(v, offset, out=u)
            out[:, k] = _dot(np.square(u, out=u), diagonal.inverse)
        return out

    def _shrinkages(self, v: FloatArray, length: FloatArray, middle: FloatArray, downdate: Downdate) -> FloatArray:
        """(m) s; for "oas" by tr (M − aδδᵀ)² = tr M² − 2a δᵀMδ + a²|δ|⁴."""
        if self._shrinkage != "oas":
            return np.full(len(v), float(self._shrinkage))
        a = downdate.outer
        squares = self._squares - 2 * a * (_dot(v * self._values, v) - self._beta * length) + (a * length) ** 2
        return oas_of(squares / self._width**2, middle, downdate.count, self._width)


Basis = Whitened | Rotated


@dataclass(frozen=True)
class Removed:
    """Training rows that are left out one at a time; statistics are those of all classes together."""

    values: NDArray[Any]  # (n, columns)
    kept: IntArray  # (d) the columns that vary
    middle: FloatArray  # (d) the mean of all rows
    scatter: FloatArray  # (d, d) of all rows about it
    count: float  # the weight of all rows
    weight: FloatArray  # (n)

    @cached_property
    def others(self) -> FloatArray:
        """(n) the weight of all other rows."""
        return self.count - self.weight

    @property
    def total(self) -> FloatArray:
        """(d) the scatter of each column, to which the width of a direction is relative."""
        return np.diagonal(self.scatter)

    @property
    def ordinary(self) -> BoolArray:
        """(n) whether enough weight remains without a row: then no variance over all rows, and so no floor, doubles."""
        return self.others > 0.6 * self.count

    def log_density(
        self, rows: IntArray, basis: Basis, mean: FloatArray, offsets: FloatArray, scale: FloatArray, downdate: Downdate
    ) -> tuple[FloatArray, BoolArray]:
        """(m, k) of some rows, as in log_density_without, and (m) whether no direction needs to be widened."""
        log_p, safe = np.empty(scale.shape), np.empty(len(rows), np.bool_)
        step = max(1, CELLS // len(self.kept))
        for start in range(0, len(rows), step):
            run = slice(start, start + step)
            x, part = self._read(rows[run]), downdate.part(run)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # in rows that are not safe
                v = basis.coordinates(x, mean)
                density, left, least = log_density_without(basis, v, offsets, scale[run], part)
                narrow = left * least * self.others[rows[run]] / part.divisor
                narrow[part.divisor <= FLOOR * part.count] = 0.0  # a divisor of 0, up to rounding
                safe[run] = (left > LITTLE) & (narrow > 2 * FLOOR) & self._vary(x, rows[run])
            log_p[run] = density
        return log_p, safe

    def _read(self, rows: IntArray) -> NDArray[Any]:
        x = self.values[rows]
        return x if len(self.kept) == x.shape[1] else x[:, self.kept]

    def _vary(self, x: NDArray[Any], rows: IntArray) -> BoolArray:
        """(m) whether no column loses nearly all of its scatter with the row, as one does that is then constant."""
        outer = self.weight[rows] * self.count / self.others[rows]
        most = (1 - LITTLE) * self.total
        reach = np.maximum(x.max(axis=0) - self.middle, self.middle - x.min(axis=0))
        near = np.flatnonzero(outer.max() * reach**2 >= most)  # columns where some row may be nearly all scatter
        lost = outer[:, np.newaxis] * (x[:, near] - self.middle[near]) ** 2
        return np.asarray((lost < most[near]).all(axis=1))


def log_density_without(
    basis: Basis, v: FloatArray, offsets: FloatArray, scale: FloatArray, downdate: Downdate
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """−½ log |2πΣ′| − ½ f²uᵀΣ′⁻¹u, with Σ′ = (D − c vvᵀ)/ν′ and u = v + offset; r; and a bound.

    By Sherman and Morrison, uᵀΣ′⁻¹u = ν′(uᵀD⁻¹u + c(uᵀD⁻¹v)²/r), and |Σ′| = |D| r/ν′ᵈ, with r = 1 − c vᵀD⁻¹v. As
    D − c vvᵀ ≥ rD, no direction is narrower than r times the bound.

    v (m, d) are rows minus the mean of their class, offsets (k, d) that mean minus others. Without the row, its
    distance to each mean is f (m, k) = `scale` times as large.

    >>> basis = Whitened(np.array([[14.0]]), np.array([14.0]))  # 0, 1, 2, 5; without the 5 it is N(5; 1, 1)
    >>> v = basis.coordinates(np.array([[5.0]]), np.array([2.0]))
    >>> downdate = Downdate(*np.array([[4 / 3], [3.0], [2.0]]))
    >>> log_p, *_ = log_density_without(basis, v, np.zeros((1, 1)), np.array([[4 / 3]]), downdate)
    >>> log_p + 0.5 * np.log(2 * np.pi)
    array([[-8.]])
    """
    d, nu = v.shape[1], downdate.divisor
    diagonal = basis.diagonal(v, downdate)
    scaled = v * diagonal.inverse
    c = diagonal.kept * downdate.outer
    own = _dot(v, scaled)
    r = 1 - c * own
    above = np.maximum(r, np.finfo(float).tiny)
    offsets = offsets @ basis.transform.T
    cross = np.repeat(own[:, np.newaxis], len(offsets), axis=1)  # uᵀD⁻¹v
    _kernels.add_linear(scaled, offsets, np.zeros_like(offsets), cross)
    far = basis.squares(v, diagonal, offsets) + (c / above)[:, np.newaxis] * cross**2
    constant = -0.5 * (diagonal.log_det + np.log(above) + d * np.log(2 * np.pi / nu))
    return constant[:, np.newaxis] - 0.5 * nu[:, np.newaxis] * scale**2 * far, r, diagonal.least


def _dot(a: FloatArray, b: FloatArray) -> FloatArray:
    """(m) the dot product of rows."""
    product: FloatArray = np.einsum("ij,ij->i", a, b)
    return product
