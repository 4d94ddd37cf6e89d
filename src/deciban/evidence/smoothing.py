"""Smoothing of cells of few rows: how many virtual rows each has, chosen by the rows that are left out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from deciban.evidence.block_evidence import centred
from deciban.types import FloatArray, IntArray, Labels

GRID = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0)  # virtual rows in a cell


class CountedRows(NamedTuple):
    """The rows of cells, those of one cell and one class together: leaving one of them out is the same for all."""

    cells: IntArray  # (m)
    labels: Labels  # (m)
    weights: FloatArray  # (m) how many rows they are

    @classmethod
    def of(cls, counts: FloatArray) -> CountedRows:
        """The rows of cells with these counts (cells, K).

        >>> CountedRows.of(np.array([[2.0, 0.0], [1.0, 5.0]])).weights.tolist()
        [2.0, 1.0, 5.0]
        """
        cells, labels = np.nonzero(counts)
        return cls(cells, labels.astype(np.int32), counts[cells, labels])

    @property
    def once(self) -> FloatArray:
        """(m) the weight of one row of each."""
        return np.minimum(self.weights, 1.0)

    def losses(self, shares: FloatArray) -> float:
        """Σ −log p(y) in nats, from shares (m, K) of the classes in any unit."""
        with np.errstate(divide="ignore"):
            logs = np.log(shares[np.arange(len(self.labels)), self.labels]) - np.log(shares.sum(axis=1))
        return -float(self.weights @ logs)


def without_row(counts: FloatArray, class_rows: FloatArray, labels: Labels, weights: FloatArray | None) -> FloatArray:
    """Counts (n, K) of the cell of each row without the row: (N_y − w)·n_y/(n_y − w), in proportion to n_y rows."""
    left, rows = counts.copy(), np.arange(len(counts))
    weight = 1.0 if weights is None else weights
    remaining, of_class = left[rows, labels] - weight, class_rows[labels]
    positive = remaining > 0
    scaled = remaining * of_class / np.where(positive, of_class - weight, 1.0)
    left[rows, labels] = np.where(positive, scaled, 0.0)
    return left


def log_ratio(counts: FloatArray, virtual: FloatArray | float, backing: FloatArray, prior: FloatArray) -> FloatArray:
    """(…, K) log (N_c + s·q_c) − log π_c, centred: counts with s virtual rows that have the shares q of the classes."""
    return centred(np.log(counts + virtual * backing) - np.log(prior))


def choose_smoothing(rows: CountedRows, counts: FloatArray, backing: FloatArray) -> tuple[float, float]:
    """The s of `GRID` with the least loss of p(c) = (N_c + s·q_c)/(N + s), and that loss in nats.

    Counts (m, K) are without the row, and q (m, K) or (K) is what the virtual rows are shared by.

    >>> heads = np.array([[9.0, 1.0]] * 20 + [[1.0, 9.0]] * 20)  # what cells of ten rows are left out from
    >>> choose_smoothing(CountedRows.of(heads), heads[np.repeat(np.arange(40), 2)], np.array([0.5, 0.5]))[0]
    2.0
    """
    losses = [rows.losses(counts + virtual * backing) for virtual in GRID]
    best = int(np.argmin(losses))
    return GRID[best], losses[best]


def smoothing_of(table: FloatArray, class_rows: FloatArray) -> tuple[float, float]:
    """s of a feature by itself, and its leave-one-out gain over the class prior in nats, from counts (cells, K)."""
    rows, prior = CountedRows.of(table), class_rows / class_rows.sum()
    left = without_row(table[rows.cells], class_rows, rows.labels, rows.once)
    virtual, loss = choose_smoothing(rows, left, prior)
    return virtual, rows.losses(np.tile(prior, (len(left), 1))) - loss
