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
from deciban.types import BoolArray, FloatArray

linalg = lazy("scipy.linalg")
lapack = lazy("scipy.linalg.lapack")

LITTLE = 1e-4  # of a class, a column or a direction: if less remains without a row, there is no closed form
CELLS = 1 << 16  # of rows that are left out at a time, so that they stay in the cache
RUN = 64  # ratios that are multiplied before their logarithm is taken


@dataclass(frozen=True)
class Less:
    """What changes when each of m rows is left out of its class."""

    outer: FloatArray  # (m) a = w n/n′: the scatter M becomes M − aδδᵀ
    count: FloatArray  # (m) rows that the covariance is then estimated from
    divisor: FloatArray  # (m) ν′: what the scatter is then divided by

    def part(self, rows: slice) -> Less:
        return Less(self.outer[rows], self.count[rows], self.divisor[rows])


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
        self.turn: FloatArray = linalg.solve_triangular(lower, np.diag(1.0 / unit), lower=True)  # (d, d) T
        one = np.ones(1)
        log_det = 2 * np.log(unit * np.diagonal(lower)).sum()
        self._diagonal = Diagonal(one[:, np.newaxis], log_det * one, one, narrowest(scatter, total) * one)

    def coordinates(self, x: NDArray[Any], mean: FloatArray) -> FloatArray:
        return _kernels.whiten(x, self.turn, mean)

    def diagonal(self, v: FloatArray, less: Less) -> Diagonal:
        return self._diagonal

    def squares(self, v: FloatArray, diagonal: Diagonal, moves: FloatArray) -> FloatArray:
        """(m, k) uᵀD⁻¹u with u = v + move."""
        out = np.zeros((len(v), len(moves)))
        _kernels.add_quadratic(v, -moves, np.ones_like(moves), np.zeros_like(moves), out)
        return out


class Rotated:
    """v = Q(x − μ) with QMQᵀ = Λ: shrunk towards s t I, D = (1 − s)Λ + s t, with t = (tr M − a|δ|²)/d.

    Λ is computed as that of M + βI, minus β, with β below s t of any row: so D is a sum of positive numbers, and
    columns of very different size cost no digits.

    >>> rotated = Rotated(np.diag([4.0, 1.0]), np.array([4.0, 2.0]), np.diag([4.0, 1.0]), 0.5, 0.5)
    >>> less = Less(np.array([1.0]), np.array([3.0]), np.array([3.0]))
    >>> rotated.diagonal(np.array([[1.0, 0.0]]), less).log_det.round(12) == np.log(3.0 * 1.5).round(12)
    array([ True])
    """

    def __init__(
        self,
        scatter: FloatArray,
        total: FloatArray,
        everywhere: FloatArray,
        shrinkage: float | Literal["oas"],
        present: float,
    ) -> None:
        """M and the totals of columns that vary, M of all columns, the shrinkage, and its value for all rows."""
        self._shrinkage = shrinkage
        self._width = len(everywhere)
        self._trace = float(np.trace(everywhere))
        self._squares = float((everywhere**2).sum())
        middle, s = self._trace / self._width, min(present, 0.5)
        self._beta = middle * s / (1 - s) / 64
        unit, lower = unit_cholesky(scatter + self._beta * np.eye(len(scatter)))
        # one-sided Jacobi is as exact for small values as for large ones, which eigh is not
        svd = lapack.dgejsv((lower * unit[:, np.newaxis]).T, joba=0, jobu=3, jobv=0, jobt=0)
        values, _, vectors, work, *_, info = svd
        if info:
            raise np.linalg.LinAlgError("the eigenvalues of a covariance did not converge")
        self.turn: FloatArray = np.ascontiguousarray(vectors.T)  # (d, d) Q
        self._values = (values * (work[0] / work[1])) ** 2  # (d) Λ + β
        self._reference = (1 - present) * (self._values - self._beta) + present * middle
        self._narrowest, self._largest = narrowest(scatter, total), float(total.max())

    def coordinates(self, x: NDArray[Any], mean: FloatArray) -> FloatArray:
        return _kernels.predictors(x, self.turn, np.zeros(len(mean)), mean)

    def diagonal(self, v: FloatArray, less: Less) -> Diagonal:
        length = _dot(v, v)
        middle = (self._trace - less.outer * length) / self._width
        s = self._mixed(v, length, middle, less)
        sphere = s * middle
        beyond = sphere - (1 - s) * self._beta
        ratio = np.multiply.outer(1 - s, self._values / self._reference)  # D, relative to that of all rows
        ratio += np.multiply.outer(beyond, 1.0 / self._reference)
        runs = np.multiply.reduceat(ratio, np.arange(0, ratio.shape[1], RUN), axis=1)
        log_det = np.log(runs).sum(axis=1) + np.log(self._reference).sum()
        least = np.where(beyond >= 0, (1 - s) * self._narrowest + sphere / self._largest, 0.0)
        return Diagonal(np.divide(1.0 / self._reference, ratio, out=ratio), log_det, 1 - s, least)

    def squares(self, v: FloatArray, diagonal: Diagonal, moves: FloatArray) -> FloatArray:
        """(m, k) uᵀD⁻¹u with u = v + move."""
        out, u = np.empty((len(v), len(moves))), np.empty_like(v)
        for k, move in enumerate(moves):
            np.add(v, move, out=u)
            out[:, k] = _dot(np.square(u, out=u), diagonal.inverse)
        return out

    def _mixed(self, v: FloatArray, length: FloatArray, middle: FloatArray, less: Less) -> FloatArray:
        """(m) s; for "oas" by tr (M − aδδᵀ)² = tr M² − 2a δᵀMδ + a²|δ|⁴."""
        if self._shrinkage != "oas":
            return np.full(len(v), float(self._shrinkage))
        a = less.outer
        squares = self._squares - 2 * a * (_dot(v * self._values, v) - self._beta * length) + (a * length) ** 2
        return oas_of(squares / self._width**2, middle, less.count, self._width)


Basis = Whitened | Rotated


@dataclass(frozen=True)
class Removed:
    """Training rows, each of which is removed; statistics are those of all classes together."""

    values: NDArray[Any]  # (n, columns)
    kept: NDArray[np.intp]  # (d) the columns that vary
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
        """(d) the scatter of each column, which narrowness is relative to."""
        return np.diagonal(self.scatter)

    @property
    def ordinary(self) -> BoolArray:
        """(n) whether a row is not most of all: without it no variance over all rows doubles, and so no floor."""
        return self.others > 0.6 * self.count

    def log_density(
        self, rows: NDArray[np.intp], basis: Basis, mean: FloatArray, moves: FloatArray, farther: FloatArray, less: Less
    ) -> tuple[FloatArray, BoolArray]:
        """(m, k) of some rows, as in log_density_without, and (m) whether no direction needs to be widened."""
        log_p, safe = np.empty(farther.shape), np.empty(len(rows), np.bool_)
        step = max(1, CELLS // len(self.kept))
        for start in range(0, len(rows), step):
            run = slice(start, start + step)
            x, part = self._read(rows[run]), less.part(run)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # in rows that are not safe
                density, left, least = log_density_without(basis, basis.coordinates(x, mean), moves, farther[run], part)
                narrow = left * least * self.others[rows[run]] / part.divisor
                narrow[part.divisor <= FLOOR * part.count] = 0.0  # a divisor of 0, up to rounding
                safe[run] = (left > LITTLE) & (narrow > 2 * FLOOR) & self._vary(x, rows[run])
            log_p[run] = density
        return log_p, safe

    def _read(self, rows: NDArray[np.intp]) -> NDArray[Any]:
        x = self.values[rows]
        return x if len(self.kept) == x.shape[1] else x[:, self.kept]

    def _vary(self, x: NDArray[Any], rows: NDArray[np.intp]) -> BoolArray:
        """(m) whether no column loses nearly all of its scatter with the row, as if the others were constant."""
        outer = self.weight[rows] * self.count / self.others[rows]
        most = (1 - LITTLE) * self.total
        reach = np.maximum(x.max(axis=0) - self.middle, self.middle - x.min(axis=0))
        near = np.flatnonzero(outer.max() * reach**2 >= most)  # columns where some row may be nearly all scatter
        lost = outer[:, np.newaxis] * (x[:, near] - self.middle[near]) ** 2
        return np.asarray((lost < most[near]).all(axis=1))


def log_density_without(
    basis: Basis, v: FloatArray, moves: FloatArray, farther: FloatArray, less: Less
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """−½ log |2πΣ′| − ½ f²uᵀΣ′⁻¹u, with Σ′ = (D − c vvᵀ)/ν′ and u = v + move, for each move; r; and a bound.

    By Sherman and Morrison, uᵀΣ′⁻¹u = ν′(uᵀD⁻¹u + c(uᵀD⁻¹v)²/r), and |Σ′| = |D| r/ν′ᵈ, with r = 1 − c vᵀD⁻¹v. As
    D − c vvᵀ ≥ rD, no direction is narrower than r times the bound.

    v (m, d) is the row about its class mean, moves (k, d) lead from there to other means, and a mean is f (m, k) times
    as far from the row without it.

    >>> basis = Whitened(np.array([[14.0]]), np.array([14.0]))  # 0, 1, 2, 5; less the 5 it is N(5; 1, 1)
    >>> v, less = basis.coordinates(np.array([[5.0]]), np.array([2.0])), Less(*np.array([[4 / 3], [3.0], [2.0]]))
    >>> log_p, *_ = log_density_without(basis, v, np.zeros((1, 1)), np.array([[4 / 3]]), less)
    >>> log_p + 0.5 * np.log(2 * np.pi)
    array([[-8.]])
    """
    d, nu = v.shape[1], less.divisor
    diagonal = basis.diagonal(v, less)
    scaled = v * diagonal.inverse
    c = diagonal.kept * less.outer
    own = _dot(v, scaled)
    r = 1 - c * own
    above = np.maximum(r, np.finfo(float).tiny)
    turned = moves @ basis.turn.T
    cross = np.repeat(own[:, np.newaxis], len(moves), axis=1)  # uᵀD⁻¹v
    _kernels.add_linear(scaled, turned, np.zeros_like(turned), cross)
    far = basis.squares(v, diagonal, turned) + (c / above)[:, np.newaxis] * cross**2
    constant = -0.5 * (diagonal.log_det + np.log(above) + d * np.log(2 * np.pi / nu))
    return constant[:, np.newaxis] - 0.5 * nu[:, np.newaxis] * farther**2 * far, r, diagonal.least


def _dot(a: FloatArray, b: FloatArray) -> FloatArray:
    """(m) the dot product of rows."""
    product: FloatArray = np.einsum("ij,ij->i", a, b)
    return product
