"""Non-negative weights of evidence, by a convex fit."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from deciban import _kernels
from deciban.types import FloatArray, IntArray, Labels

STEPS = 200  # Newton steps at most; five are usual
WIDE = 400  # pieces up to which the preconditioner has their curvature as a full matrix
LEVEL = 120.0, 0.3, 6.0  # μ = 120/n, within bounds: few rows hardly change the level of a group, many determine it
BIAS = 1.0 / 3.0  # ε = μ/3: likewise for the bias of a class


@dataclass(frozen=True)
class Evidence:
    """The evidence of P pieces for n rows, in C score columns: one for each class, or 1 for two classes."""

    values: FloatArray  # (C, n, P) centred over the classes; C = 1: class 1 minus class 0
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


def solve(evidence: Evidence, penalty: float, start: Solution | None = None, tol: float = 1e-9) -> Solution:
    """The weights that minimise

    J = Σ_i ω_i·(−log p_{i,y_i}) + λ Σ_pc (w_pc − w̄_p)² + λ Σ_p (w̄_p − g_{group(p)})² + μ Σ_g (g − t)² + ε Σ_c b_c²

    over w ≥ 0, g ≥ 0 and b, where z_ic = offset_ic + b_c + Σ_p w_pc e_ipc and p = softmax(z), or p_1 = 1/(1 + exp(−z))
    for one column of scores; w̄_p is the mean over the score columns, t = 1/√P, with P the number of pieces or of those
    that they were chosen from, and λ > 0 the penalty. J ends within tol·(1 + J) of its minimum.

    Each Newton step minimises the quadratic model of J over w ≥ 0, by conjugate gradients; a line search follows.
    """
    groups = evidence.groups.astype(np.int32)
    total = float(len(evidence.labels) if evidence.weights is None else evidence.weights.sum())
    rows, least, most = LEVEL
    level, target = min(most, max(least, rows / max(total, 1e-300))), max(1, len(groups), evidence.tried) ** -0.5
    theta, objective, steps, converged = _kernels.fit_weights(
        np.ascontiguousarray(evidence.values, np.float64),
        np.ascontiguousarray(evidence.offset.T, np.float64),
        evidence.labels,
        evidence.weights,
        groups,
        penalty,
        level,
        BIAS * level,
        target,
        None if start is None else _start(start),
        tol,
        STEPS,
        WIDE,
    )
    weights = np.ascontiguousarray(theta[:, :-1].T)
    sums = np.bincount(groups, weights.mean(axis=1)).astype(np.float64, copy=False)
    levels = (penalty * sums + level * target) / (penalty * np.bincount(groups) + level)
    return Solution(theta[:, -1].copy(), weights, levels, objective, steps, converged)


def _start(solution: Solution) -> FloatArray:
    """(C, P + 1) weights and biases; a term common to all biases changes nothing."""
    centre = solution.bias.mean() if len(solution.bias) > 1 else 0.0
    return np.column_stack([solution.weights.T, solution.bias - centre])


def log_losses(z: FloatArray, labels: Labels) -> FloatArray:
    """(n) −log p_{i,y_i}, from scores (C, n)."""
    result: FloatArray
    if len(z) == 1:
        result = np.logaddexp(0.0, np.where(labels == 1, -z[0], z[0]))
    else:
        top = z.max(axis=0)
        result = np.log(np.exp(z - top).sum(axis=0)) + top - z[labels, np.arange(len(labels))]
    return result
