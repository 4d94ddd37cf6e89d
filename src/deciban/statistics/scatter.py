"""Scatter: Σw(x − o) and Σw(x − o)(x − o)ᵀ of complete rows, about an origin near the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.errors import require
from deciban.statistics.statistic import (
    Statistic,
    drop_zero_weights,
    never_learned,
    require_not_negative,
    require_numbers,
    require_weights,
)
from deciban.statistics.sums import Sum
from deciban.types import BoolArray, FloatArray, Index, Labels

ROUNDING = 1e-13  # relative error of a sum of products
ORIGIN_ROWS = 256  # rows of a class that determine its origin; any point near the data will do


@dataclass(frozen=True, eq=False)
class Scatter(Statistic):
    """n_c = Σw, s_c = Σw(x − o_c), M = Σw(x − o_c)(x − o_c)ᵀ; within-class scatter = M − Σ_c s_c s_cᵀ/n_c.

    Each class has its own origin o_c, so nothing cancels however far the classes lie apart. On + the origin is moved:
    M about o' = M + sδᵀ + δsᵀ + nδδᵀ, with δ = o − o'. Products are rounded, so results agree to about 1e-13 across
    batches, not bit for bit. `shared` keeps one M for all classes: d² numbers instead of K·d².

    >>> import numpy as np
    >>> x = np.array([[0.0, 0.0], [2.0, 2.0], [np.nan, 1.0]])
    >>> s = Scatter.of(x, np.zeros(3, np.int32), None, 1, shared=True)
    >>> s.mean, s.within, s.skipped.value
    (array([[1., 1.]]), array([[[2., 2.],
            [2., 2.]]]), array([1.]))
    """

    count: Sum  # (K) Σ w of the rows complete in all columns
    skipped: Sum  # (K) Σ w of the rows with a missing value
    origin: FloatArray  # (K, d)
    sum: FloatArray  # (K, d) Σ w·(x − o)
    products: FloatArray  # (K, or 1 if shared, d, d) Σ w·(x − o)(x − o)ᵀ
    shared: bool

    @classmethod
    def of(cls, x: NDArray[Any], codes: Labels, weights: FloatArray | None, classes: int, *, shared: bool) -> Scatter:
        x, codes, weights = drop_zero_weights(x, codes, weights)
        origin = _origins(x, codes, classes)
        count, skipped, total, products = _kernels.scatter(x, codes, weights, origin, shared)
        return cls(Sum(count[:, :, 0]), Sum(skipped[:, :, 0]), origin, total, products, shared)

    @property
    def mean(self) -> FloatArray:
        """(K, d); the origin where there are no rows."""
        count = self.count.value[:, np.newaxis]
        return self.origin + np.divide(self.sum, count, out=np.zeros_like(self.sum), where=count > 0)

    @property
    def within(self) -> FloatArray:
        """(K or 1, d, d) Σ w·(x − mean)(x − mean)ᵀ."""
        count = self.count.value[:, np.newaxis]
        shift = np.divide(self.sum, np.sqrt(count), out=np.zeros_like(self.sum), where=count > 0)
        outer: FloatArray = shift.T @ shift if self.shared else shift[:, :, np.newaxis] * shift[:, np.newaxis, :]
        return self.products - outer

    def about(self, origin: FloatArray) -> Self:
        """The same statistic about another origin (K, d)."""
        if np.array_equal(origin, self.origin):
            return self
        delta = self.origin - origin
        count = self.count.value[:, np.newaxis]
        moved = self.sum + count * delta
        # s dᵀ + d sᵀ + n d dᵀ, written symmetrically
        half = self.sum + 0.5 * count * delta
        cross = half[:, :, np.newaxis] * delta[:, np.newaxis, :]
        change = cross + cross.transpose(0, 2, 1)
        products = self.products + (change.sum(axis=0, keepdims=True) if self.shared else change)
        return type(self)(self.count, self.skipped, origin, moved, products, self.shared)

    def __add__(self, other: Self) -> Self:
        a, b = self._on_common_origin(other)
        count, skipped = a.count + b.count, a.skipped + b.skipped
        return type(self)(count, skipped, a.origin, a.sum + b.sum, a.products + b.products, self.shared)

    def __sub__(self, other: Self) -> Self:
        a, b = self._on_common_origin(other)
        count, skipped = a.count - b.count, a.skipped - b.skipped
        require_not_negative(count, skipped)
        empty = count.value == 0
        origin, total = (np.where(empty[:, np.newaxis], 0.0, v) for v in (a.origin, a.sum - b.sum))
        products = a.products - b.products
        products[np.full(1, empty.all()) if self.shared else empty] = 0.0
        diagonal = np.diagonal(products, axis1=1, axis2=2)
        # rounding leaves about as much below zero as was subtracted
        if (diagonal < -1e-9 * np.diagonal(a.products, axis1=1, axis2=2)).any():
            raise never_learned("a variance would fall below zero")
        return type(self)(count, skipped, origin, total, products, self.shared)

    def subtract_row(self, row: Self) -> Self:
        """Without one row; a column that is constant in the other rows has no scatter, not even by rounding.

        Less than 1e-13 of a column's scatter is rounding, and so is such a difference between the means of two classes.

        >>> s, row = (Scatter.of(np.array(x), np.zeros(len(x), np.int32), None, 1, shared=True)
        ...           for x in ([[0.1], [0.1], [3.0]], [[3.0]]))
        >>> bool((s - row).within.any()), bool(s.subtract_row(row).within.any())
        (True, False)
        """
        rest = self - row
        before = np.diagonal(self.products, axis1=1, axis2=2)
        constant = (np.diagonal(rest.within, axis1=1, axis2=2) <= ROUNDING * before) & (before > 0)  # (K or 1, d)
        if not (row.count.value.any() and constant.any()):
            return rest
        is_constant = constant & (rest.count.value > 0)[:, np.newaxis]  # (K, d)
        reach = np.sqrt(before) + np.abs(rest.mean)
        origin = np.where(is_constant, _merge_means(rest.mean, ROUNDING * reach, rest.count.value > 0), rest.origin)
        total = np.where(is_constant, 0.0, rest.sum)
        products = np.where(constant[:, :, np.newaxis] | constant[:, np.newaxis, :], 0.0, rest.products)
        return type(self)(rest.count, rest.skipped, origin, total, products, self.shared)

    def _on_common_origin(self, other: Self) -> tuple[Self, Self]:
        """Both about the origins of the first that has rows of each class."""
        seen = (self.count.value > 0)[:, np.newaxis]
        origin = np.where(seen, self.origin, other.origin)
        return self.about(origin), other.about(origin)

    def reindex_classes(self, index: Index, classes: int) -> Self:
        index = np.asarray(index, dtype=np.intp)
        d = self.origin.shape[1]
        origin, total = np.zeros((classes, d)), np.zeros((classes, d))
        origin[index], total[index] = self.origin, self.sum
        products = self.products
        if not self.shared:
            products = np.zeros((classes, d, d))
            products[index] = self.products
        count, skipped = (s.scatter(index, classes) for s in (self.count, self.skipped))
        return type(self)(count, skipped, origin, total, products, self.shared)

    def take(self, index: Index) -> Self:
        index = np.asarray(index, dtype=np.intp)
        products = self.products if self.shared else self.products[index]
        count, skipped = self.count.take(index), self.skipped.take(index)
        return type(self)(count, skipped, self.origin[index], self.sum[index], products, self.shared)

    def columns(self, index: Index) -> Self:
        index = np.asarray(index, dtype=np.intp)
        products = self.products[:, index][:, :, index]
        return type(self)(self.count, self.skipped, self.origin[:, index], self.sum[:, index], products, self.shared)

    def check(self, classes: int, columns: int) -> None:
        require_weights("count", self.count, (classes,))
        require_weights("skipped", self.skipped, (classes,))
        require_numbers("origin", self.origin, (classes, columns))
        require_numbers("sum", self.sum, (classes, columns))
        require_numbers("products", self.products, (1 if self.shared else classes, columns, columns))
        require((self.products == self.products.swapaxes(1, 2)).all(), "products are not symmetric")


def _merge_means(mean: FloatArray, near: FloatArray, seen: BoolArray) -> FloatArray:
    """Means (K, d); those within `near` of an earlier class's mean become equal to it."""
    merged = mean.copy()
    for c in np.flatnonzero(seen):
        for k in np.flatnonzero(seen[:c]):
            merged[c] = np.where(np.abs(mean[c] - merged[k]) <= near[c], merged[k], merged[c])
    return merged


def _origins(x: NDArray[Any], codes: Labels, classes: int) -> FloatArray:
    """(K, d) a point near each class.

    It is the value of a constant column, so that its scatter is 0; else the mean in 24 bits: moving it costs no digits.
    """
    origin = np.zeros((classes, x.shape[1]))
    for c in range(classes):
        rows = x[np.flatnonzero(codes == c)[:ORIGIN_ROWS]].astype(np.float64)
        rows = rows[np.isfinite(rows).all(axis=1)]
        if len(rows):
            fraction, exponent = np.frexp((rows / len(rows)).sum(axis=0))
            short = np.ldexp(np.rint(fraction * 2.0**24), exponent - 24)
            origin[c] = np.where((rows == rows[0]).all(axis=0), rows[0], short)
    return origin
