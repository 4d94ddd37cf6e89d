"""Evidence from densities: numbers one by one, and jointly with the values of categories."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deciban.families.normals import Normals, NormalsParams, virtual_rows
from deciban.families.triangles import solve_lower
from deciban.families.whitening import Whitening, row_product
from deciban.late import late
from deciban.statistics import Moments, Scatter
from deciban.types import FloatArray, IntArray
from deciban.weighing.reader import Piece, Reader, Rows, ShareAdder, Unknown, bounded

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
        self.columns, self.kept = tuple(columns), np.flatnonzero(spread > 0)
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

    def unknown(self, values: NDArray[Any]) -> Unknown:
        missing = np.isnan(values)
        return Unknown(self.columns, missing, np.zeros_like(missing))

    def formulas(self) -> list[tuple[int, Formula]]:
        """A parabola for each column, bounded."""
        variance = self._variance(self.count, self.squares, self.spread[:, np.newaxis])
        constant, square = -0.5 * np.log(variance), -0.5 / variance
        curves = []
        for p, j in enumerate(self.kept.tolist()):
            of = slice(p, p + 1)
            within = {"low": self.low[of], "high": self.high[of], "most": self.most}
            curves.append((p, formulas.Curve((j,), self.mean[of], constant[of], square=square[of], **within)))
        return curves

    @staticmethod
    def _variance(count: FloatArray, squares: FloatArray, spread: FloatArray) -> FloatArray:
        variance: FloatArray = (squares + spread) / (count + 1.0)
        return variance


class Jointly(Reader):
    """All columns jointly normal: with one covariance, where evidence is linear, and with one for each class.

    A row is left out in closed form: δ = x − μ_y takes aδδᵀ (a = wn_y/(n_y − w)) from every scatter that it is in, so
    |Σ| and Σ⁻¹ follow by Sherman and Morrison. (Of the shared covariance that a class's own is drawn towards, the
    divisor stays.)

    Entries that are unknown (NaN) are integrated out. With z = T(x − μ) and TᵀT = Σ⁻¹ that takes the span of their
    columns T_U from z, and log |R|, where T_U = QR, from −½ log |Σ|: the density of the other entries is left.
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
        """(n, 2, K), up to a term common to all classes."""
        values = np.where(rows.hides(self.columns)[self.family.reading.owner], np.nan, rows.values)
        x, (classes, d) = np.nan_to_num(rows.values), self.params.mean.shape
        partly = [(~known, some) for known, some in by_known_entries(values) if not known.all()]
        out = np.empty((len(x), 2, classes))
        n, entries = np.arange(len(x)), (~np.isnan(values)).sum(axis=1)
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
                z = row_product(x - self.params.mean[k], t.T)
                u = z if rows.labels is None else z + ((self.params.mean[k] - self.params.mean) @ t.T)[y]  # whitened δ
                logs = np.full(len(x), np.log(np.diagonal(t)).sum())
                for unknown, some in partly:
                    q, r = np.linalg.qr(t[:, unknown])
                    logs[some] -= np.log(np.abs(np.diagonal(r))).sum()
                    z[some] -= _projected(z[some], q)
                    if rows.labels is not None:
                        u[some] -= _projected(u[some], q)
                squares = np.einsum("ij,ij->i", z, z)
                if rows.labels is None:
                    out[:, piece, k] = (logs if piece else 0.0) - 0.5 * squares
                    continue
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
                q_form = (size - less) / size * (squares + taken * cross**2 / (size * rest))
                density = -0.5 * q_form
                if piece:
                    density += logs - 0.5 * (np.log(rest) - entries * np.log((size - less) / size))
                out[n, piece, k] = density
        return out

    @cached_property
    def _covariances(self) -> tuple[FloatArray, FloatArray]:
        """(1, d, d) and (K, d, d) Σ and Σ_c."""

        def of(whiten: FloatArray) -> FloatArray:
            lower = np.stack([solve_lower(t, np.eye(len(t))) for t in whiten])
            return lower @ lower.transpose(0, 2, 1)

        return of(self.params.shared), of(self.params.own)

    @cached_property
    def _whitenings(self) -> tuple[Whitening, ...]:
        """What takes both densities apart by entries."""
        return tuple(map(Whitening.of, self._covariances))

    def formulas(self) -> list[tuple[int, Formula]]:
        """The terms of both; each column has its share, as `share_adder` gives it."""
        reading = self.family.reading
        vector = tuple(range(len(self.columns))), reading.formula(), reading.owner
        both = map(formulas.Whitened.of, self._whitenings)
        return [(p, formulas.Mixed(*vector, self.params.mean, whitened, MOST)) for p, whitened in enumerate(both)]

    @property
    def width(self) -> int:
        return int(self.params.mean.shape[1]) + 4 * len(self.count)

    def share_adder(self) -> ShareAdder:
        """The terms −½z_j² of the entries of a column and their constants; where evidence is bounded, so are they."""
        owner, columns = self.family.reading.owner, np.array(self.columns)

        def add(values: FloatArray, weights: FloatArray, out: FloatArray) -> None:
            for known, rows in by_known_entries(values):
                mine, first = np.unique(owner[known], return_index=True)
                some, of_rows = out[rows], weights if weights.ndim == 2 else weights[rows]
                for p, whitening in enumerate(self._whitenings_of(known)):
                    weight = np.atleast_2d(of_rows[..., p, :])
                    if not weight.any() or not len(mine):
                        continue
                    terms = whitening.terms(values[rows][:, known], self.params.mean[:, known])
                    terms = np.add.reduceat(terms, first, axis=2)
                    terms -= terms.mean(axis=0)
                    scale = MOST / np.maximum(np.abs(terms.sum(axis=2)), MOST) * weight.T
                    some[:, columns[mine]] += (terms * scale[:, :, np.newaxis]).transpose(1, 2, 0)
                out[rows] = some

        return add

    def _whitenings_of(self, known: NDArray[np.bool_]) -> tuple[Whitening, ...]:
        if known.all():
            return self._whitenings
        return tuple(Whitening.of(sigma[:, known][:, :, known]) for sigma in self._covariances)


def _projected(rows: FloatArray, q: FloatArray) -> FloatArray:
    """Rows in the span of the columns of q; each has the same bits, however few rows stand beside it."""
    projected: FloatArray = np.einsum("ik,jk->ij", np.einsum("ij,jk->ik", rows, q), q)
    return projected


def by_known_entries(values: FloatArray) -> list[tuple[NDArray[np.bool_], IntArray | slice]]:
    """The places of rows, by the entries (d) that are known in them."""
    unknown = np.isnan(values)
    if not unknown.any():
        return [(np.ones(values.shape[1], np.bool_), slice(None))]
    patterns, which = np.unique(np.packbits(unknown, axis=1), axis=0, return_inverse=True)
    known = ~np.unpackbits(patterns, axis=1, count=values.shape[1]).astype(np.bool_)
    rows = np.split(np.argsort(which.reshape(-1), kind="stable"), np.cumsum(np.bincount(which.reshape(-1)))[:-1])
    return list(zip(known, rows, strict=True))
