"""Covariances: pooled over classes, made positive definite, whitened and shrunk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from deciban.errors import DecibanError
from deciban.families.family import FLOOR
from deciban.lazy import lazy
from deciban.statistics.scatter import Scatter
from deciban.types import FloatArray

linalg = lazy("scipy.linalg")


@contextmanager
def factorising() -> Iterator[None]:
    """Turns the error of a factorisation into one of ours: of a forged file, or of numbers that are too large."""
    try:
        yield
    except ValueError as error:  # numpy's LinAlgError is one; scipy refuses NaN and infinity
        raise DecibanError(f"a covariance is not that of rows, or too large: rescale the columns ({error})") from None


def oas(sigma: FloatArray, n: float) -> float:
    """The oracle-approximating shrinkage of a covariance estimated from n rows (Chen et al. 2010).

    s = (tr(Σ²)/d² + m²) / ((n + 1)(tr(Σ²)/d² − m²/d)), at most 1, with m = tr(Σ)/d: the form without the terms of
    order 2/d, as scikit-learn has it.

    >>> oas(np.diag([1.0, 4.0]), 9.0)
    0.9333333333333333
    """
    d = len(sigma)
    squares, middle, rows = np.array([[(sigma**2).mean()], [np.trace(sigma) / d], [n]])
    return float(oas_of(squares, middle, rows, d)[0])


def pooled_mean(statistic: Scatter) -> FloatArray:
    """(d) of all classes, relative to the mean of the largest: a mean that all classes share is not rounded."""
    count, mean = statistic.count.value, statistic.mean
    base = mean[np.argmax(count)]
    pooled: FloatArray = base + count @ (mean - base) / max(count.sum(), 1e-300)
    return pooled


def pooled_covariance(statistic: Scatter) -> FloatArray:
    """(d, d) of all classes together; 0 where a column is constant. Floors are relative to its diagonal."""
    count = statistic.count.value
    distance = np.where((count > 0)[:, np.newaxis], statistic.mean - pooled_mean(statistic), 0.0)
    total = statistic.within.sum(axis=0) + (count[:, np.newaxis] * distance).T @ distance
    covariance: FloatArray = total / max(count.sum(), 1e-300)
    varies = np.diagonal(covariance) > 0  # rounding may leave a little below zero
    return np.where(varies & varies[:, np.newaxis], covariance, 0.0)


def widened(sigma: FloatArray, scale: FloatArray) -> tuple[FloatArray, list[int]]:
    """A covariance that is positive definite, except for constant columns; and the columns that made it singular."""
    varies = np.flatnonzero(scale > 0)
    block = np.ix_(varies, varies)
    unit = np.sqrt(scale[varies])
    with factorising():
        values, vectors = np.linalg.eigh(sigma[block] / unit / unit[:, np.newaxis])
    narrow = values < FLOOR
    columns = varies[(np.abs(vectors[:, narrow]) > 0.1).any(axis=1)]
    positive = np.zeros_like(sigma)
    positive[block] = sigma[block]
    if narrow.any():
        positive[block] = (vectors * np.maximum(values, FLOOR)) @ vectors.T * unit * unit[:, np.newaxis]
    return positive, [*np.flatnonzero((scale == 0) & (np.diagonal(sigma) == 0)).tolist(), *columns.tolist()]


def whitening_triangles(sigma: FloatArray) -> tuple[FloatArray, FloatArray]:
    """T (…, d, d) with TᵀT = Σ⁻¹ and −½ log |2πΣ| (…), over the columns whose variance is not 0."""
    triangles, constants = np.zeros_like(sigma), np.zeros(len(sigma))
    for k, (s, triangle) in enumerate(zip(sigma, triangles, strict=True)):
        varies = np.flatnonzero(np.diagonal(s))
        if len(varies):
            block = np.ix_(varies, varies)
            unit, lower = unit_cholesky(s[block])
            with factorising():
                triangle[block] = linalg.solve_triangular(lower, np.eye(len(varies)), lower=True) / unit
            constants[k] = np.log(np.diagonal(triangle)[varies]).sum() - 0.5 * len(varies) * np.log(2 * np.pi)
    return triangles, constants


def oas_of(squares: FloatArray, middle: FloatArray, n: FloatArray, width: int) -> FloatArray:
    """s = (q + m²) / ((n + 1)(q − m²/d)), at most 1, with q = tr(Σ²)/d² and m = tr(Σ)/d.

    >>> oas_of(np.array([4.25]), np.array([2.5]), np.array([9.0]), 2)
    array([0.93333333])
    """
    below = (n + 1.0) * (squares - middle**2 / width)
    ratio = np.divide(squares + middle**2, below, out=np.ones_like(below), where=below > 0)
    return np.minimum(ratio, 1.0)


def narrowest(scatter: FloatArray, total: FloatArray) -> float:
    """The smallest eigenvalue of a scatter, or 0, with each column divided by the root of its total.

    >>> narrowest(np.diag([1.0, 8.0]), np.array([4.0, 64.0]))
    0.125
    """
    unit = np.sqrt(total)
    with factorising():
        return max(0.0, float(np.linalg.eigvalsh(scatter / unit / unit[:, np.newaxis])[0]))


def unit_cholesky(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """u (d) and lower-triangular L with the matrix = diag(u) L Lᵀ diag(u)."""
    unit = np.sqrt(np.diagonal(matrix))
    with factorising():
        return unit, np.asarray(np.linalg.cholesky(matrix / unit / unit[:, np.newaxis]), np.float64)
