"""Evidence from densities: numbers one by one, and jointly with the values of categories."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from deciban.families.normals import Normals, NormalsParams, virtual_rows
from deciban.families.triangles import solve_lower
from deciban.families.whitening import Whitening
from deciban.late import late
from deciban.statistics import Moments, Scatter
from deciban.types import FloatArray
from deciban.weighing.reader import Adder, Piece, Reader, Rows, bounded

if TYPE_CHECKING:
    from deciban.families.formulas import Formula

formulas = late("deciban.families.formulas")  # only a report asks for them

MOST = 30.0  # nats, that columns tell together, however far from all classes a row is


class Normal(Reader):
    """Each number normal, with σ_c² = (Σ(x − μ_c)² + s²)/(n_c + 1): one more row, as far off as all rows are (s²).

    It tells no more than log n nats, which n rows in a table could tell: tails are seldom those of a normal.
    """

    def __init__(self, columns: Sequence[int], statistic: Moments, low: FloatArray, high: FloatArray) -> None:
        """Between low and high (d) numbers were seen; others count as the nearest of them."""
        pooled = statistic.pooled()
        count = np.maximum(pooled.count.value[0], 1.0)
        spread = pooled.squares[0] / count
        self.kept = np.flatnonzero(spread > 0)
        self.middle, self.spread = pooled.mean[0, self.kept], spread[self.kept]
        self.low, self.high = low[self.kept], high[self.kept]
        self.count, self.mean, self.squares = (
            a[:, self.kept].T for a in (statistic.count.value, statistic.mean, statistic.squares)
        )  # (d, K)
        self.mean = np.where(self.count > 0, self.mean, self.middle[:, np.newaxis])
        self.most = max(1.0, float(np.log(pooled.count.value.max(initial=1.0))))  # nats: what so many rows could tell
        self.pieces = tuple(Piece("normal", (columns[j],)) for j in self.kept.tolist())

    def evidence(self, rows: Rows) -> FloatArray:
        x = np.clip(rows.values[:, self.kept].astype(np.float64), self.low, self.high)
        there = ~np.isnan(x)
        x = np.where(there, x, self.middle)
        away = x[:, :, np.newaxis] - self.mean
        variance = self._variance(self.count, self.squares, self.spread[:, np.newaxis])
        density = -0.5 * (np.log(variance) + away**2 / variance)
        if rows.labels is not None:
            w = np.ones(len(x)) if rows.weights is None else rows.weights
            place = rows.labels[:, np.newaxis], np.arange(x.shape[1])
            count, squares, off = (a.T[place] for a in (self.count, self.squares, self.mean))
            left = np.maximum(count - w[:, np.newaxis], 0.0)
            some = left > 1e-9 * count
            off = x - off
            farther = np.where(some, count / np.where(some, left, 1.0), 1.0)  # μ moves away from x
            less = np.maximum(squares - w[:, np.newaxis] * off**2 * farther, 0.0)
            var = self._variance(left, np.where(some, less, 0.0), self.spread)
            off = np.where(some, off * farther, x - self.middle)
            own = -0.5 * (np.log(var) + off**2 / var)
            rows_, columns_ = np.arange(len(x))[:, np.newaxis], np.arange(x.shape[1])
            density[rows_, columns_, rows.labels[:, np.newaxis]] = own
        return np.where(there[:, :, np.newaxis], bounded(density, self.most), 0.0)

    @property
    def n_parameters(self) -> int:
        return 2 * self.mean.size

    def formula(self, weights: FloatArray) -> list[Formula]:
        """A parabola for each column, bounded and weighed."""
        columns = tuple(self.kept.tolist())
        variance = self._variance(self.count, self.squares, self.spread[:, np.newaxis])
        constant, square = -0.5 * np.log(variance), -0.5 / variance
        held = {"low": self.low, "high": self.high, "most": self.most, "weights": weights}
        return [formulas.Curve(columns, self.mean, constant, square=square, **held)]

    @staticmethod
    def _variance(count: FloatArray, squares: FloatArray, spread: FloatArray) -> FloatArray:
        variance: FloatArray = (squares + spread) / (count + 1.0)
        return variance


class Jointly(Reader):
    """All columns jointly normal: with one covariance, where evidence is linear, and with one for each class.

    A row is left out in closed form: δ = x − μ_y takes aδδᵀ (a = wn_y/(n_y − w)) from every scatter that it is in, so
    |Σ| and Σ⁻¹ follow by Sherman and Morrison. (Of the shared covariance that a class's own is drawn towards, the
    divisor stays.)
    """

    def __init__(self, columns: Sequence[int], family: Normals, statistic: Scatter, params: NormalsParams) -> None:
        self.columns, self.family, self.params = tuple(columns), family, params
        self.count = statistic.count.value
        self.pieces = (Piece("linear", self.columns), Piece("quadratic", self.columns))

    def evidence(self, rows: Rows) -> FloatArray:
        return bounded(self._densities(rows), MOST)

    @property
    def n_parameters(self) -> int:
        return self.family.n_parameters(self.params)

    def _densities(self, rows: Rows) -> FloatArray:
        """(n, 2, K), but for what is common to all classes."""
        x, (classes, d) = rows.values, self.params.mean.shape
        out = np.empty((len(x), 2, classes))
        n = np.arange(len(x))
        total = float(self.count.sum())
        whole = total + virtual_rows(total, d)
        if rows.labels is not None:
            y = rows.labels
            w = np.ones(len(x)) if rows.weights is None else rows.weights
            left = self.count[y] - w
            farther = np.where(left > 1e-9, self.count[y] / np.maximum(left, 1e-9), 1.0)  # of an only row, anything
            a = w * farther
        for piece, whiten in enumerate((self.params.shared, self.params.own)):
            for k in range(classes):
                t = whiten[k if piece else 0]
                z = (x - self.params.mean[k]) @ t.T
                logs = np.log(np.diagonal(t)).sum() if piece else 0.0
                squares = np.einsum("ij,ij->i", z, z)
                if rows.labels is None:
                    out[:, piece, k] = logs - 0.5 * squares
                    continue
                u = z + ((self.params.mean[k] - self.params.mean) @ t.T)[y]  # whitened δ
                mine = y == k
                if piece:
                    size = self.count[k] + d
                    less = np.where(mine, w, 0.0)
                    taken = a * (np.where(mine, 1.0, 0.0) + d / whole)
                else:
                    size, less, taken = whole, w, a
                h = np.einsum("ij,ij->i", u, u)
                cross = np.where(mine, farther * h, np.einsum("ij,ij->i", u, z))
                squares = np.where(mine, farther**2 * h, squares)
                rest = np.maximum(1.0 - taken * h / size, 1e-9)
                q = (size - less) / size * (squares + taken * cross**2 / (size * rest))
                found = -0.5 * q
                if piece:
                    found += logs - 0.5 * (np.log(rest) - d * np.log((size - less) / size))
                out[n, piece, k] = found
        return out

    @cached_property
    def _whitenings(self) -> tuple[Whitening, Whitening]:
        """What takes both densities apart by entries."""

        def of(whiten: FloatArray) -> Whitening:
            lower = np.stack([solve_lower(t, np.eye(len(t))) for t in whiten])
            return Whitening.of(lower @ lower.transpose(0, 2, 1))

        return of(self.params.shared), of(self.params.own)

    def formula(self, weights: FloatArray) -> list[Formula]:
        """The terms of both; each column has its share, as `share_adder` gives it."""
        reading = self.family.reading
        vector = tuple(range(len(self.columns))), reading.formula(), reading.owner
        shared, own = map(formulas.Whitened.of, self._whitenings)
        return [formulas.Mixed(*vector, self.params.mean, shared, own, weights, MOST)]

    @property
    def width(self) -> int:
        return int(self.params.mean.shape[1]) + 4 * len(self.count)

    def share_adder(self, weights: FloatArray) -> Adder:
        """The terms −½z_j² of the entries of a column and their constants; where evidence is bounded, so are they."""
        first = np.searchsorted(self.family.reading.owner, np.arange(len(self.columns)))
        columns = list(self.columns)

        def add(values: FloatArray, out: FloatArray) -> None:
            for whitening, weight in zip(self._whitenings, weights, strict=True):
                if not weight.any():
                    continue
                terms = np.add.reduceat(whitening.terms(values, self.params.mean), first, axis=2)
                terms -= terms.mean(axis=0)
                scale = MOST / np.maximum(np.abs(terms.sum(axis=2)), MOST) * weight[:, np.newaxis]
                out[:, columns] += (terms * scale[:, :, np.newaxis]).transpose(1, 2, 0)

        return add
