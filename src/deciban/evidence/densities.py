"""Evidence from normal densities: numbers one by one, and jointly with the levels of categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.evidence.block_evidence import AddShares, BlockEvidence, EvidencePiece, Rows, UnknownCells, bounded
from deciban.evidence.codings import distinct, make_encoding
from deciban.evidence.joint_normals import (
    JointNormals,
    JointNormalsParams,
    solve_lower,
    virtual_rows,
    without_missing,
)
from deciban.families.family import Context, formulas
from deciban.families.gaussian import Gaussian
from deciban.families.whitening import Whitening
from deciban.generative.plan import Plan
from deciban.statistics import Histogram, Moments, Scatter
from deciban.types import BoolArray, FloatArray, IntArray, Labels

if TYPE_CHECKING:
    from deciban.evidence.structure import JointPlanning, SingleFeatures
    from deciban.export.formulas import Formula
    from deciban.generative.block import Block
    from deciban.generative.model import Generative

MOST = 30.0  # nats of joint evidence at most, for rows far from all classes too
FIRST_ROWS = 1_000  # in which columns that repeat others are looked for first


class GaussianEvidence(BlockEvidence):
    """Each number normal, with σ_c² = (Σ(x − μ_c)² + s²)/(n_c + 1): one virtual row at the distance of all rows (s²).

    It is clipped to ±log n nats, the most that a table of n rows could give: real tails are seldom normal.
    """

    families = (Gaussian,)
    description = "normal density in each class"
    rejects_infinite = True

    def __init__(self, columns: Sequence[int], statistic: Moments, low: FloatArray, high: FloatArray) -> None:
        """low, high (d): the range of training values; others are clipped to it."""
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
        self.most = max(1.0, float(np.log(pooled.count.value.max(initial=1.0))))  # nats
        self.pieces = tuple(EvidencePiece("normal", (columns[j],), naive=True) for j in self.kept.tolist())

    @classmethod
    def from_block(cls, block: Block, model: Generative) -> Self:
        return cls(block.columns, block.statistic, *_ranges(model, block.columns))  # type: ignore[arg-type]

    @classmethod
    def plans(cls, features: SingleFeatures) -> list[Plan]:
        return [Plan(Gaussian(), features.numbers)] if features.numbers else []

    def evidence(self, rows: Rows) -> FloatArray:
        x = np.clip(rows.values[:, self.kept].astype(np.float64), self.low, self.high)
        present = ~np.isnan(x)
        x = np.where(present, x, self.middle)
        distance = x[:, :, np.newaxis] - self.mean
        variance = self._variance(self.count, self.squares, self.spread[:, np.newaxis])
        density = -0.5 * (np.log(variance) + distance**2 / variance)
        if rows.labels is not None:
            w = np.ones(len(x)) if rows.weights is None else rows.weights
            labels, columns = rows.labels[:, np.newaxis], np.arange(x.shape[1])
            count, squares, mean = (a.T[labels, columns] for a in (self.count, self.squares, self.mean))
            others = np.maximum(count - w[:, np.newaxis], 0.0)
            any_left = others > 1e-9 * count
            away = x - mean
            farther = np.where(any_left, count / np.where(any_left, others, 1.0), 1.0)  # μ moves away from x
            squares = np.maximum(squares - w[:, np.newaxis] * away**2 * farther, 0.0)
            own_variance = self._variance(others, np.where(any_left, squares, 0.0), self.spread)
            away = np.where(any_left, away * farther, x - self.middle)
            own = -0.5 * (np.log(own_variance) + away**2 / own_variance)
            density[np.arange(len(x))[:, np.newaxis], columns, labels] = own
        return np.where(present[:, :, np.newaxis], bounded(density, self.most), 0.0)

    @property
    def n_parameters(self) -> int:
        return 2 * self.mean.size

    def unknown_cells(self, values: NDArray[Any]) -> UnknownCells:
        missing = np.isnan(values)
        return UnknownCells(self.columns, missing, np.zeros_like(missing))

    def formulas(self) -> list[tuple[int, Formula]]:
        """A parabola for each feature, bounded."""
        variance = self._variance(self.count, self.squares, self.spread[:, np.newaxis])
        constant, square = -0.5 * np.log(variance), -0.5 / variance
        curves = []
        for p, j in enumerate(self.kept.tolist()):
            own = slice(p, p + 1)
            bounds = {"low": self.low[own], "high": self.high[own], "most": self.most}
            curves.append((p, formulas.Curve((j,), self.mean[own], constant[own], square=square[own], **bounds)))
        return curves

    @staticmethod
    def _variance(count: FloatArray, squares: FloatArray, spread: FloatArray) -> FloatArray:
        return (squares + spread) / (count + 1.0)


def _ranges(model: Generative, columns: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
    low, high = np.full(len(columns), -np.inf), np.full(len(columns), np.inf)
    position = {j: i for i, j in enumerate(columns)}
    for block in model.blocks:
        if isinstance(block.statistic, Histogram):
            for i, j in enumerate(block.columns):
                if j in position and len(block.statistic.keys[i]):
                    low[position[j]], high[position[j]] = block.statistic.lower(i)[0], block.statistic.upper(i)[-1]
    return low, high


class JointGaussian(BlockEvidence):
    """All features jointly normal: with one covariance, where evidence is linear, and with one for each class.

    A row is left out in closed form: δ = x − μ_y takes aδδᵀ (a = wn_y/(n_y − w)) from every scatter that it is in, so
    |Σ| and Σ⁻¹ follow by Sherman and Morrison. (The divisor of the shared covariance, which that of a class is shrunk
    towards, stays.)

    Entries that are unknown (NaN) are integrated out. With z = T(x − μ) and TᵀT = Σ⁻¹ that removes the span of their
    columns T_U from z, and log |R|, where T_U = QR, from −½ log |Σ|: the density of the other entries remains.
    """

    families = (JointNormals,)
    description = "jointly normal with other columns"

    def __init__(
        self, columns: Sequence[int], family: JointNormals, statistic: Scatter, params: JointNormalsParams
    ) -> None:
        self.columns, self.family, self.params = tuple(columns), family, params
        self.count = statistic.count.value
        self.pieces = (EvidencePiece("linear", self.columns), EvidencePiece("quadratic", self.columns))

    @classmethod
    def from_block(cls, block: Block, model: Generative) -> Self:
        family = block.family
        assert isinstance(family, JointNormals)
        assert isinstance(block.statistic, Scatter)
        params = family.estimate(block.statistic, Context(model.classes, block.names))
        return cls(block.columns, family, block.statistic, params)

    @classmethod
    def joint_plans(cls, planning: JointPlanning) -> list[Plan]:
        columns, encoding = make_encoding(planning.single)
        if not columns:
            return []
        kept = list(range(len(columns)))
        for rows in (FIRST_ROWS, planning.sample.frame.rows):  # hardly any columns repeat others in the first rows
            frame = planning.sample.frame.slice(0, min(rows, planning.sample.frame.rows))
            entries = np.round(encoding.of(frame, [planning.places[j] for j in columns]), 9)
            kept = distinct([entries[:, encoding.owner == i] for i in range(len(columns))])
            if len(kept) == len(columns):
                break
        return [Plan(JointNormals(encoding.take(kept)), tuple(columns[i] for i in kept))]

    def evidence(self, rows: Rows) -> FloatArray:
        return bounded(self._densities(rows), MOST)

    @property
    def n_parameters(self) -> int:
        return self.family.n_parameters(self.params)

    def _densities(self, rows: Rows) -> FloatArray:
        """(n, 2, K), up to a term common to all classes."""
        values = np.where(rows.hides(self.columns)[self.family.reading.owner], np.nan, rows.values)
        gaps, x, mean = _gaps(values), without_missing(rows.values), self.params.mean
        loo = None if rows.labels is None else self._leave_one_out(rows, (~np.isnan(values)).sum(axis=1))
        out = np.empty((len(x), 2, len(mean)))
        (shared,) = self.params.shared
        z = np.empty((len(mean), *x.shape))
        for k, centre in enumerate(mean):
            z[k] = _kernels.whiten(x, shared, centre)
        log_det = _project_out(shared, z, gaps)
        for k in range(len(mean)):
            if loo is not None:
                out[:, 0, k] = loo.density(k, z[k], z[loo.labels, np.arange(len(x))], log_det, per_class=False)
            else:
                out[:, 0, k] = -0.5 * np.einsum("ij,ij->i", z[k], z[k])
        for k, t in enumerate(self.params.by_class):
            z = np.empty((1 if loo is None else 2, *x.shape))
            z[0] = _kernels.whiten(x, t, mean[k])
            if loo is not None:
                np.add(z[0], ((mean[k] - mean) @ t.T)[loo.labels], out=z[1])
            log_det = _project_out(t, z, gaps)
            if loo is not None:
                out[:, 1, k] = loo.density(k, z[0], z[1], log_det, per_class=True)
            else:
                out[:, 1, k] = log_det - 0.5 * np.einsum("ij,ij->i", z[0], z[0])
        return out

    def _leave_one_out(self, rows: Rows, entries: IntArray) -> _LeaveOneOut:
        assert rows.labels is not None
        weights = np.ones(len(rows.labels)) if rows.weights is None else rows.weights
        others = self.count[rows.labels] - weights
        farther = np.where(others > 1e-9, self.count[rows.labels] / np.maximum(others, 1e-9), 1.0)  # or the only row
        total, d = float(self.count.sum()), self.params.mean.shape[1]
        return _LeaveOneOut(self.count, total + virtual_rows(total, d), d, rows.labels, weights, entries, farther)

    @cached_property
    def _covariances(self) -> tuple[FloatArray, FloatArray]:
        """(1, d, d) and (K, d, d) Σ and Σ_c."""

        def covariances(whiten: FloatArray) -> FloatArray:
            lower = np.stack([solve_lower(t, np.eye(len(t))) for t in whiten])
            return lower @ lower.transpose(0, 2, 1)

        return covariances(self.params.shared), covariances(self.params.by_class)

    @cached_property
    def _whitenings(self) -> tuple[Whitening, ...]:
        """The whitenings that split both log-densities into terms of single entries."""
        return tuple(map(Whitening.of, self._covariances))

    def formulas(self) -> list[tuple[int, Formula]]:
        """The terms of both pieces; each feature has its share, as in `share_scorer`."""
        reading = self.family.reading
        vector = tuple(range(len(self.columns))), reading.formula(), reading.owner
        both = (whitening.formula() for whitening in self._whitenings)
        return [(p, formulas.Mixed(*vector, self.params.mean, whitened, MOST)) for p, whitened in enumerate(both)]

    @property
    def numbers_per_row(self) -> int:
        return int(self.params.mean.shape[1]) + 4 * len(self.count)

    def share_scorer(self) -> AddShares:
        """The terms −½z_j² of the entries of a feature and their constants, scaled down if evidence is bounded."""
        owner, columns = self.family.reading.owner, np.array(self.columns)

        def add(values: FloatArray, weights: FloatArray, out: FloatArray) -> None:
            for known, rows in by_known_entries(values):
                features, first = np.unique(owner[known], return_index=True)
                shares, row_weights = out[rows], weights if weights.ndim == 2 else weights[rows]
                for p, whitening in enumerate(self._whitenings_of(known)):
                    weight = np.atleast_2d(row_weights[..., p, :])
                    if not weight.any() or not len(features):
                        continue
                    terms = whitening.terms(values[rows][:, known], self.params.mean[:, known])
                    terms = np.add.reduceat(terms, first, axis=2)
                    terms -= terms.mean(axis=0)
                    scale = MOST / np.maximum(np.abs(terms.sum(axis=2)), MOST) * weight.T
                    shares[:, columns[features]] += (terms * scale[:, :, np.newaxis]).transpose(1, 2, 0)
                out[rows] = shares

        return add

    def _whitenings_of(self, known: BoolArray) -> tuple[Whitening, ...]:
        if known.all():
            return self._whitenings
        return tuple(Whitening.of(sigma[:, known][:, :, known]) for sigma in self._covariances)


@dataclass(frozen=True)
class _LeaveOneOut:
    """Training rows, each left out of the joint normals that score it."""

    count: FloatArray  # (K) rows of each class
    size: float  # of the shared covariance, with its virtual rows
    d: int
    labels: Labels  # (n)
    weights: FloatArray  # (n)
    entries: IntArray  # (n) that are known
    farther: FloatArray  # (n) n_y/(n_y − w): how much farther from x its class mean is without it

    def density(self, k: int, z: FloatArray, u: FloatArray, log_det: FloatArray, *, per_class: bool) -> FloatArray:
        """(n) log density for class k, with z = T(x − μ_k), u = Tδ, and log |T| (n) of the covariance of all rows."""
        member = self.labels == k
        size, removed, factor = self.size, self.weights, self.weights * self.farther
        if per_class:
            size = self.count[k] + self.d
            removed = np.where(member, self.weights, 0.0)
            factor = factor * (np.where(member, 1.0, 0.0) + self.d / self.size)
        h = np.einsum("ij,ij->i", u, u)
        cross = np.where(member, self.farther * h, np.einsum("ij,ij->i", u, z))
        squares = np.where(member, self.farther**2 * h, np.einsum("ij,ij->i", z, z))
        rest = np.maximum(1.0 - factor * h / size, 1e-9)
        density: FloatArray = -0.5 * ((size - removed) / size * (squares + factor * cross**2 / (size * rest)))
        if per_class:
            density += log_det - 0.5 * (np.log(rest) - self.entries * np.log((size - removed) / size))
        return density


class _Gaps(NamedTuple):
    """Rows with unknown entries, in groups that lack the same ones."""

    unknown: BoolArray  # (groups, d)
    starts: IntArray  # (groups + 1) of each group in `rows`
    rows: IntArray


def _gaps(values: FloatArray) -> _Gaps:
    unknown = np.isnan(values)
    rows = np.flatnonzero(unknown.any(axis=1))
    patterns, which = np.unique(np.packbits(unknown[rows], axis=1), axis=0, return_inverse=True)
    order = np.argsort(which.reshape(-1), kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(which.reshape(-1), minlength=len(patterns)))])
    groups = np.unpackbits(patterns, axis=1, count=values.shape[1]).astype(np.bool_)
    return _Gaps(groups, starts.astype(np.int64), rows[order].astype(np.int64))


def _project_out(t: FloatArray, z: FloatArray, gaps: _Gaps) -> FloatArray:
    """Integrates unknown entries out of whitened rows z (vectors, n, d) in place; returns (n) log |T| of the others."""
    log_det = np.full(z.shape[1], np.log(np.diagonal(t)).sum())
    _kernels.project_out(t, *gaps, z, log_det)
    return log_det


def by_known_entries(values: FloatArray) -> list[tuple[BoolArray, IntArray | slice]]:
    """The indices of rows, by the entries (d) that are known in them."""
    unknown = np.isnan(values)
    if not unknown.any():
        return [(np.ones(values.shape[1], np.bool_), slice(None))]
    patterns, which = np.unique(np.packbits(unknown, axis=1), axis=0, return_inverse=True)
    known = ~np.unpackbits(patterns, axis=1, count=values.shape[1]).astype(np.bool_)
    rows = np.split(np.argsort(which.reshape(-1), kind="stable"), np.cumsum(np.bincount(which.reshape(-1)))[:-1])
    return list(zip(known, rows, strict=True))
