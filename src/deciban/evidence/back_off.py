"""Counts of few rows: virtual rows that say what is known without them, as many as predict best the rows left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deciban.evidence.block_evidence import centred
from deciban.types import FloatArray, IntArray, Labels

GRID = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0)  # virtual rows in a cell
Features = tuple[int, ...]


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
        logs = np.log(shares[np.arange(len(self.labels)), self.labels]) - np.log(shares.sum(axis=1))
        return -float(self.weights @ logs)


class Fit(NamedTuple):
    virtual: float  # s
    gain: float  # nats over all rows, beyond what the virtual rows say by themselves


@dataclass
class BackOff:
    """Evidence of features and of combinations of them, each of which backs off to its parts.

    e_c(F) = log (N_c(F) + s·q_c) − log π_c, centred, with q_c ∝ π_c·exp(mean of e_c over the parts of F)

    The parts of a pair are its two features, those of three features are their three pairs; for a single feature q = π.
    The first cell of a table is that of unknown values and of combinations that are not listed: it has no rows, so it
    says what its parts say.
    """

    class_rows: FloatArray  # (K)
    tables: dict[Features, FloatArray] = field(default_factory=dict)  # (cells, K) counts
    fits: dict[Features, Fit] = field(default_factory=dict)

    @property
    def prior(self) -> FloatArray:
        """(K) π, the shares of the classes."""
        result: FloatArray = self.class_rows / self.class_rows.sum()
        return result

    def add(self, features: Features, table: FloatArray, cells: Mapping[Features, IntArray]) -> Fit:
        """Adds a table of counts (cells, K), and chooses s; cells are those of its cells in the tables of its parts."""
        table = self.tables[features] = _without_unknown(table)
        rows = CountedRows.of(table)
        own = {part: of_part[rows.cells] for part, of_part in cells.items()}
        backing = self._backing(features, own, rows.labels, rows.once, {})
        left = without_row(table[rows.cells], self.class_rows, rows.labels, rows.once)
        losses = [rows.losses(left + virtual * backing) for virtual in GRID]
        best = int(np.argmin(losses))
        fit = Fit(GRID[best], rows.losses(np.broadcast_to(backing, left.shape)) - losses[best])
        self.fits[features] = fit
        return fit

    def add_fitted(self, features: Features, table: FloatArray, fit: Fit) -> None:
        """Adds a table whose s is known."""
        self.tables[features], self.fits[features] = _without_unknown(table), fit

    def evidence(
        self,
        features: Features,
        cells: Mapping[Features, IntArray],
        labels: Labels | None,
        weights: FloatArray | None,
        known: dict[Features, FloatArray],
    ) -> FloatArray:
        """(n, K) the evidence of rows in these cells; those with labels are left out of all tables at once.

        What is known already of other features is used, and what is computed is added to it.
        """
        if features not in known:
            counts = self.tables[features][cells[features]]
            if labels is not None:
                counts = without_row(counts, self.class_rows, labels, weights)
            backing = self._backing(features, cells, labels, weights, known)
            known[features] = log_ratio(counts, self.fits[features].virtual, backing, self.prior)
        return known[features]

    def _backing(
        self,
        features: Features,
        cells: Mapping[Features, IntArray],
        labels: Labels | None,
        weights: FloatArray | None,
        known: dict[Features, FloatArray],
    ) -> FloatArray:
        """(n, K) q; (K) π for a single feature."""
        parts = parts_of(features)
        if not parts:
            return self.prior
        total = np.zeros((len(next(iter(cells.values()))), len(self.class_rows)))
        for part in parts:
            total += self.evidence(part, cells, labels, weights, known)
        odds = np.exp(total / len(parts))
        rows: Any = (odds * self.class_rows).sum(axis=1)
        n: Any = self.class_rows.sum()
        if labels is not None:  # q sums to 1 over the shares of the classes without the row
            once = 1.0 if weights is None else weights
            rows, n = rows - once * odds[np.arange(len(odds)), labels], n - once
        result: FloatArray = self.prior * odds * (n / rows)[:, np.newaxis]
        return result


def _without_unknown(table: FloatArray) -> FloatArray:
    """Counts without those of the first cell."""
    known = table.copy()
    known[0] = 0.0
    return known


def parts_of(features: Features) -> tuple[Features, ...]:
    """The parts that a combination backs off to: all but one of its features.

    >>> parts_of((0, 1, 4)), parts_of((0, 1)), parts_of((0,))
    (((0, 1), (0, 4), (1, 4)), ((0,), (1,)), ())
    """
    return tuple(combinations(features, len(features) - 1)) if len(features) > 1 else ()


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


def fit_single(table: FloatArray, class_rows: FloatArray) -> Fit:
    """s of a feature by itself, with counts (cells, K), and its leave-one-out gain over the class prior.

    >>> fit_single(np.array([[9.0, 1.0]] * 20 + [[1.0, 9.0]] * 20), np.array([200.0, 200.0])).virtual
    2.0
    """
    unknown = np.zeros((1, table.shape[1]))
    return BackOff(class_rows).add((0,), np.concatenate([unknown, table]), {})


def keys_of(codes: NDArray[np.integer], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n) codes (n, k) as one number, (a·size + b)·size + c; −1, which is no key, where one is 0: unknown."""
    keys = np.zeros(len(codes), np.int64)
    for column, size in zip(codes.T, sizes.tolist(), strict=True):
        keys = keys * size + column
    keys[(codes == 0).any(axis=1)] = -1
    return keys


def codes_of(keys: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n, k) the codes that make up keys.

    >>> sizes = np.array([3, 4])
    >>> codes_of(keys_of(np.array([[2, 3], [1, 1]]), sizes), sizes).tolist()
    [[2, 3], [1, 1]]
    """
    codes = np.empty((len(keys), len(sizes)), np.int64, order="F")
    for j in reversed(range(len(sizes))):
        keys, codes[:, j] = np.divmod(keys, sizes[j])
    return codes


def find_keys(listed: NDArray[np.int64], keys: NDArray[np.int64]) -> NDArray[np.int32]:
    """(n) 1 + the position of each key in an ascending list; 0 for one that it lacks."""
    if not len(listed):
        return np.zeros(len(keys), np.int32)
    at = np.minimum(np.searchsorted(listed, keys), len(listed) - 1)
    return np.where(listed[at] == keys, at + 1, 0).astype(np.int32)
