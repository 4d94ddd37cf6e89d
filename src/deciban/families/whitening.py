"""Whitening: a joint normal as a sum over its columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deciban.families.covariance import factorising
from deciban.families.family import formulas
from deciban.types import FloatArray

if TYPE_CHECKING:
    from deciban.export.formulas import Whitened

FEWEST = 8  # rows of a product by BLAS, which rounds differently for one


def row_product(x: FloatArray, matrix: FloatArray) -> FloatArray:
    """x @ matrix; each row has the same bits in a batch of any size."""
    if len(x) >= FEWEST:
        return x @ matrix
    padded = np.zeros((FEWEST, x.shape[1]))
    padded[: len(x)] = x
    return (padded @ matrix)[: len(x)]


@dataclass(frozen=True)
class Whitening:
    """log N(x; μ, Σ) = Σ_j logs_j − ½z_j², with z = R^(−½)·(x − μ)/σ, R the correlations and σ the standard deviations.

    This whitening (ZCA-cor: Kessy, Lewin and Strimmer 2018) is the one whose entries z_j are most correlated with their
    own columns x_j. So a term belongs to its column, terms of a class do not cancel each other, and columns that repeat
    each other share. logs_j = −½ log(2πσ_j²) − ½ (log R)_jj, since log |R| is the trace of log R. A constant column
    (σ = 0) adds nothing.

    >>> whitening = Whitening.of(np.array([[[4.0, 0.0], [0.0, 9.0]]]))
    >>> whitening.root[0], whitening.scale
    (array([[1., 0.],
           [0., 1.]]), array([[0.5       , 0.33333333]]))
    """

    root: FloatArray  # (c, d, d) R^(−½), symmetric
    scale: FloatArray  # (c, d) 1/σ
    logs: FloatArray  # (c, d)

    @classmethod
    def of(cls, sigma: FloatArray) -> Whitening:
        """From covariances (c, d, d): one for all classes, or one for each."""
        root, scale, logs = np.zeros_like(sigma), np.zeros(sigma.shape[:2]), np.zeros(sigma.shape[:2])
        for c, matrix in enumerate(sigma):
            varies = np.flatnonzero(np.diagonal(matrix) > 0)
            if not len(varies):
                continue
            block = np.ix_(varies, varies)
            scale[c, varies] = 1.0 / np.sqrt(np.diagonal(matrix)[varies])
            with factorising():
                values, vectors = np.linalg.eigh(matrix[block] * np.outer(scale[c, varies], scale[c, varies]))
            values = np.maximum(values, np.finfo(np.float64).tiny)
            root[c][block] = (vectors / np.sqrt(values)) @ vectors.T
            log_diagonal = (vectors**2) @ np.log(values)
            logs[c, varies] = np.log(scale[c, varies]) - 0.5 * (log_diagonal + np.log(2 * np.pi))
        return cls(root, scale, logs)

    def formula(self) -> Whitened:
        whitened: Whitened = formulas.Whitened(formulas.rows_of_triangle(self.root), self.scale, self.logs)
        return whitened

    def shares(self, x: FloatArray, mean: FloatArray) -> FloatArray:
        """(n, d, K) the terms of rows x for classes with these means (K, d)."""
        return self.terms(x, mean).transpose(1, 2, 0)

    def terms(self, x: FloatArray, mean: FloatArray) -> FloatArray:
        """(K, n, d) the same, class by class."""
        out = np.empty((len(mean), *x.shape))
        if len(self.root) == 1:
            middle = mean.mean(axis=0)
            z, zeta = (row_product((rows - middle) * self.scale[0], self.root[0]) for rows in (x, mean))
            np.subtract(z, zeta[:, np.newaxis], out=out)
        else:
            for k, (root, scale) in enumerate(zip(self.root, self.scale, strict=True)):
                out[k] = row_product((x - mean[k]) * scale, root)
        np.multiply(out, out, out=out)
        out *= -0.5
        out += self.logs[:, np.newaxis]
        return out
