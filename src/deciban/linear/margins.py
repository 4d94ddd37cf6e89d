"""Margins of labelled rows: (u_y − u_k)·z for the true class y of a row z and a rival class k."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from deciban.types import FloatArray, IntArray

CHUNK = 1 << 10  # rows scaled at a time: they fit into the cache, and BLAS starts no threads for so few

Pairs = IntArray  # (2, m) rows of the sample, and a rival class of each


@dataclass(frozen=True)
class ScaledSample:
    """z = (x − centre)·scale, each column within ±1, and a 1 for the offset; computed in chunks."""

    x: Any  # (n, d) float64, dense or CSR
    centre: FloatArray  # (d) the middle of the column; 0 for a sparse column, whose zeros must stay 0
    scale: FloatArray  # (d) powers of two, which are exact; 0 for a constant column, which gets no weight

    @classmethod
    def of(cls, x: Any) -> ScaledSample:
        x = _canonical(x) if sp.issparse(x) else np.asarray(x, np.float64)
        low, high = column_ranges(x)
        centre = 0.5 * low + 0.5 * high
        if sp.issparse(x):
            centre[np.bincount(x.indices, minlength=x.shape[1]) < x.shape[0]] = 0.0
        size = np.maximum(high - centre, centre - low)
        varies = size > 1e-300  # else its weight would overflow
        return cls(x, centre, np.where(varies, np.ldexp(1.0, -np.frexp(np.where(varies, size, 1.0))[1]), 0.0))

    def cells(self, index: slice | IntArray) -> Any:
        """(m, d) z of these rows, without the 1."""
        part = self.x[index]
        if sp.issparse(part):
            z = (part.data - self.centre[part.indices]) * self.scale[part.indices]
            return sp.csr_array((z, part.indices, part.indptr), part.shape)
        return (part - self.centre) * self.scale

    def rows(self, index: IntArray) -> Any:
        """(m, d + 1) CSR."""
        return sp.hstack([sp.csr_array(self.cells(index)), np.ones((len(index), 1))], format="csr")

    def columns(self, index: IntArray) -> ScaledSample:
        return ScaledSample(self.x[:, index], self.centre[index], self.scale[index])

    def totals(self, codes: IntArray, classes: int) -> FloatArray:
        """(K, d + 1) Σ z of each class."""
        result = np.zeros((classes, self.x.shape[1] + 1))
        result[:, -1] = np.bincount(codes, minlength=classes)
        for part in _chunks(len(codes)):
            member = sp.csr_array(codes[part] == np.arange(classes)[:, np.newaxis], dtype=np.float64)
            total = member @ self.cells(part)
            result[:, :-1] += total.toarray() if sp.issparse(total) else total
        return result

    def margins(self, direction: FloatArray, codes: IntArray) -> tuple[FloatArray, IntArray, FloatArray]:
        """For each row the least margin (u_y − u_k)·z over k ≠ y, its class k, and the greatest; u (K, d + 1)."""
        least, rival, greatest = np.empty(len(codes)), np.empty(len(codes), np.intp), np.empty(len(codes))
        for part in _chunks(len(codes)):
            score = direction[:, :-1] @ self.cells(part).T + direction[:, -1:]
            true = codes[part], np.arange(score.shape[1])
            true_score = score[true]
            greatest[part] = true_score - score.min(axis=0)
            score[true] = -np.inf
            rival[part] = score.argmax(axis=0)
            least[part] = true_score - score.max(axis=0)
        return least, rival, greatest


def _canonical(x: Any) -> Any:
    """CSR without duplicate entries."""
    x = sp.csr_array(x, dtype=np.float64)
    if not x.has_canonical_format:
        x = x.copy()
        x.sum_duplicates()
    return x


def _chunks(n: int) -> Iterator[slice]:
    return (slice(start, start + CHUNK) for start in range(0, n, CHUNK))


def column_ranges(x: Any) -> tuple[FloatArray, FloatArray]:
    """(d) the minimum and the maximum of each column."""
    low, high = x.min(axis=0), x.max(axis=0)
    return (low.toarray().ravel(), high.toarray().ravel()) if sp.issparse(x) else (low, high)


def spread_rows(rows: IntArray, count: int) -> IntArray:
    """About `count` of the rows, evenly spaced."""
    return rows[np.linspace(0, len(rows) - 1, min(count, len(rows))).astype(np.intp)]


def first_pairs(codes: IntArray, classes: int, count: int) -> Pairs:
    """Rows spread evenly over each class, divided among its rivals; all pairs if there are few."""
    if len(codes) * (classes - 1) <= count:
        row, other = np.divmod(np.arange(len(codes) * classes), classes)
        return np.array([row, other])[:, other != codes[row]]
    share = -(-count // (classes * (classes - 1)))
    pairs = []
    for own in range(classes):
        rows = np.flatnonzero(codes == own)
        for start, rival in enumerate(k for k in range(classes) if k != own):
            chosen = spread_rows(rows[start % len(rows) :: classes - 1], share)
            pairs.append(np.array([chosen, np.full(len(chosen), rival)]))
    return np.concatenate(pairs, axis=1)


def margin_matrix(z: Any, own: IntArray, rival: IntArray, classes: int) -> Any:
    """The matrix a with a·u = (u_own − u_rival)·z.

    u = (u_1 … u_K−1), each of d weights and an offset; that of class 0 is 0, as only differences count.
    """
    size, cells = z.shape[1], np.diff(z.indptr)

    def in_block(k: IntArray) -> Any:
        return sp.csr_array((z.data, z.indices + size * np.repeat(k, cells), z.indptr), (len(k), size * classes))

    return (in_block(own) - in_block(rival))[:, size:]
