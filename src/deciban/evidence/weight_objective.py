"""The objective of weights of evidence, its gradient and its curvature."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban.types import FloatArray, IntArray, Labels

LEVEL = 120.0, 0.3, 6.0  # μ = 120/n, within bounds: few rows hardly change the level of a group, many determine it
BIAS = 1.0 / 3.0  # ε = μ/3: likewise for the bias of a class


@dataclass(frozen=True)
class Evidence:
    """The evidence of P pieces for n rows, in C score columns: one for each class, or 1 for two classes."""

    values: NDArray[Any]  # (C, n, P) float32 or float64, centred over the classes; C = 1: class 1 minus class 0
    offset: FloatArray  # (n, C) log prior, and other terms without a weight
    labels: Labels  # (n)
    weights: FloatArray | None  # (n)
    groups: IntArray  # (P) the group of each piece, 0 … G−1
    tried: int = 0  # the number of pieces that these were chosen from, if more

    def take(self, rows: IntArray) -> Evidence:
        weights = None if self.weights is None else self.weights[rows]
        values = np.take(self.values, rows, axis=1)  # contiguous, as values[:, rows] is not
        return replace(self, values=values, offset=self.offset[rows], labels=self.labels[rows], weights=weights)


@dataclass(frozen=True)
class Solution:
    """The minimum of J, or the last step."""

    bias: FloatArray  # (C)
    weights: FloatArray  # (P, C)
    levels: FloatArray  # (G) g
    objective: float
    steps: int  # Newton steps
    converged: bool


# θ is (C, P + 1): a row for each score column, its weights and then its bias.


def forward(values: NDArray[Any], theta: FloatArray) -> FloatArray:
    """(C, n) b_c + Σ_p w_pc e_ipc."""
    weights = theta[:, :-1, np.newaxis].astype(values.dtype, copy=False)
    result: FloatArray = np.matmul(values, weights)[..., 0] + theta[:, -1:]
    return result


def backward(values: NDArray[Any], rows: FloatArray) -> FloatArray:
    """(C, P + 1) Σ_i r_ci e_ipc and Σ_i r_ci."""
    inner = np.matmul(rows[:, np.newaxis].astype(values.dtype, copy=False), values)[:, 0]
    return np.concatenate([inner, rows.sum(axis=1, keepdims=True)], axis=1)


def _mean(of_scores: FloatArray) -> FloatArray:
    """(P) the mean over the score columns (C, P)."""
    mean: FloatArray = of_scores[0] if len(of_scores) == 1 else np.add.reduce(of_scores) / len(of_scores)
    return mean


def log_losses(z: FloatArray, labels: Labels) -> FloatArray:
    """(n) −log p_{i,y_i}, from scores (C, n)."""
    result: FloatArray
    if len(z) == 1:
        result = np.logaddexp(0.0, np.where(labels == 1, -z[0], z[0]))
    else:
        top = z.max(axis=0)
        result = np.log(np.exp(z - top).sum(axis=0)) + top - z[labels, np.arange(len(labels))]
    return result


def probabilities(z: FloatArray) -> FloatArray:
    """(C, n) p, from scores (C, n)."""
    p: FloatArray
    if len(z) == 1:
        p = 0.5 + 0.5 * np.tanh(0.5 * z)
    else:
        p = np.exp(z - z.max(axis=0))
        p /= p.sum(axis=0)
    return p


@dataclass(frozen=True)
class Problem:
    """J with the levels solved for: the best g = (λ Σ_{p in g} w̄_p + μt)/(λ|g| + μ) is ≥ 0, as every w is."""

    values: NDArray[Any]  # (C, n, P)
    offset: FloatArray  # (C, n)
    labels: Labels
    weights: FloatArray  # (n)
    groups: IntArray
    penalty: float
    tried: int = 0

    @classmethod
    def of(cls, evidence: Evidence, penalty: float) -> Problem:
        weights = np.ones(len(evidence.labels)) if evidence.weights is None else evidence.weights
        offset = np.ascontiguousarray(evidence.offset.T, np.float64)
        return cls(evidence.values, offset, evidence.labels, weights, evidence.groups, penalty, evidence.tried)

    @cached_property
    def level(self) -> float:
        """μ: how strongly the levels of groups are shrunk to t."""
        rows, least, most = LEVEL
        return min(most, max(least, rows / max(float(self.weights.sum()), 1e-300)))

    @property
    def bias(self) -> float:
        """ε: how strongly the biases are shrunk to 0."""
        return BIAS * self.level

    @property
    def target(self) -> float:
        """t = 1/√P, with P the number of pieces, or of those that they were chosen from."""
        return float(max(1, len(self.groups), self.tried) ** -0.5)

    @cached_property
    def _level_curvature(self) -> FloatArray:
        """(G) λ|g| + μ."""
        return self.penalty * np.bincount(self.groups).astype(np.float64) + self.level

    def _sums(self, of_pieces: FloatArray) -> FloatArray:
        """(G) sums over each group."""
        return np.bincount(self.groups, of_pieces).astype(np.float64, copy=False)

    def levels(self, theta: FloatArray) -> FloatArray:
        """(G) the best g."""
        total = self._sums(_mean(theta[:, :-1]))
        return (self.penalty * total + self.level * self.target) / self._level_curvature

    def loss(self, z: FloatArray) -> float:
        return float(self.weights @ log_losses(z, self.labels))

    def ridge(self, theta: FloatArray) -> float:
        """J without the loss."""
        weights, levels = theta[:, :-1], self.levels(theta)
        mean = _mean(weights)
        spread = ((weights - mean) ** 2).sum() + ((mean - levels[self.groups]) ** 2).sum()
        shrinkage = self.level * ((levels - self.target) ** 2).sum() + self.bias * (theta[:, -1] ** 2).sum()
        return float(self.penalty * spread + shrinkage)

    def gradient(self, theta: FloatArray, p: FloatArray) -> FloatArray:
        residual = p * self.weights
        if len(p) == 1:
            residual[0] -= self.weights * (self.labels == 1)
        else:
            residual[self.labels, np.arange(len(self.labels))] -= self.weights
        out = backward(self.values, residual)
        mean = _mean(theta[:, :-1])
        pull = (mean - self.levels(theta)[self.groups]) / len(p)
        out[:, :-1] += 2.0 * self.penalty * (theta[:, :-1] - mean + pull)
        out[:, -1] += 2.0 * self.bias * theta[:, -1]
        return out

    def curvature(self, direction: FloatArray, p: FloatArray) -> FloatArray:
        """∇²J·v, by one pass forward and one back."""
        moved = forward(self.values, direction)
        if len(p) == 1:
            moved *= self.weights * p * (1.0 - p)
        else:
            moved -= np.einsum("cn,cn->n", p, moved)
            moved *= p
            moved *= self.weights
        out = backward(self.values, moved)
        mean = _mean(direction[:, :-1])
        pull = (mean - (self.penalty * self._sums(mean) / self._level_curvature)[self.groups]) / len(p)
        out[:, :-1] += 2.0 * self.penalty * (direction[:, :-1] - mean + pull)
        out[:, -1] += 2.0 * self.bias * direction[:, -1]
        return out

    def blocks(self, p: FloatArray) -> FloatArray:
        """(C, P + 1, P + 1) ∇²J within each score column."""
        n_scores, _, n_pieces = self.values.shape
        out = np.empty((n_scores, n_pieces + 1, n_pieces + 1))
        spread = self.weights * p * (1.0 - p)
        for c in range(n_scores):
            root = np.sqrt(spread[c]).astype(self.values.dtype)
            scaled = self.values[c] * root[:, np.newaxis]
            out[c, :-1, :-1] = scaled.T @ scaled
            out[c, -1, :-1] = out[c, :-1, -1] = root @ scaled
            out[c, -1, -1] = spread[c].sum()
        same_group, curvature = self.groups[:, np.newaxis] == self.groups, self._level_curvature[self.groups]
        out[:, :-1, :-1] -= np.where(same_group, 2.0 * self.penalty**2 / n_scores**2 / curvature, 0.0)
        diagonal = np.arange(n_pieces)
        out[:, diagonal, diagonal] += 2.0 * self.penalty * (1.0 - 1.0 / n_scores + 1.0 / n_scores**2)
        out[:, -1, -1] += 2.0 * self.bias
        # rounding must not make the least eigenvalue negative
        rounding = np.finfo(self.values.dtype).eps * np.trace(out, axis1=1, axis2=2)
        out += rounding[:, np.newaxis, np.newaxis] * np.eye(n_pieces + 1)
        return out

    def diagonal(self, p: FloatArray) -> FloatArray:
        """(C, P + 1) the diagonal of ∇²J."""
        n_scores, _, n_pieces = self.values.shape
        out = np.empty((n_scores, n_pieces + 1))
        spread = self.weights * p * (1.0 - p)
        for c in range(n_scores):
            out[c, :-1] = spread[c] @ self.values[c] ** 2
        out[:, -1] = spread.sum(axis=1) + 2.0 * self.bias
        out[:, :-1] += 2.0 * self.penalty * (1.0 - 1.0 / n_scores + 1.0 / n_scores**2)
        return out
