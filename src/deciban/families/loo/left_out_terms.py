"""Leave-one-out of documents from counts of terms, in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.statistics.tokens import TermRows, Tokens
from deciban.types import BoolArray, FloatArray, IntArray, Labels


@dataclass(frozen=True)
class LeftOut:
    """Log-densities of documents from counts without them, with pseudo-counts α and those that follow the counts."""

    statistic: Tokens
    alpha: float
    per_class: float  # pseudo-counts of a class, which are spread as the counts of all classes
    events: str  # as in Text
    middle: FloatArray  # (K) what is subtracted from every term or document; see Text.centred

    def of(self, rows: TermRows, labels: Labels, weights: FloatArray) -> FloatArray:
        """(n, K) log p(x_i|c) without row i."""
        x = np.ones_like(rows.data) if self.events == "bernoulli" else rows.data
        row, own = rows.rows, weights[rows.rows] * x
        left = self.statistic.counts.total().subtract(own, rows.indices)
        cells = Cells(row, rows.indices, x, np.maximum(left, 0.0), left > 1e-12 * own, len(rows))
        return (self._bernoulli if self.events == "bernoulli" else self._multinomial)(cells, labels, weights)

    def _multinomial(self, cells: Cells, labels: Labels, weights: FloatArray) -> FloatArray:
        """Σ x log(k + a) − Σx log(Σ(k + a)), over the terms that other rows have."""
        counts, row, removed = self.statistic.counts, cells.row, weights[cells.row] * cells.x
        n, v, all_terms = cells.n, counts.shape[1], counts.value.sum()
        length, known = cells.summed(cells.x), cells.summed(np.where(cells.kept, cells.x, 0.0))
        lost = cells.summed(~cells.kept)  # terms that no other row has
        rest = np.maximum(all_terms - weights * length, 1e-300)
        a = self.alpha + self.per_class * cells.left / rest[row]
        pseudo = self.alpha * (v - lost) + self.per_class
        out = np.empty((n, len(counts.value)))
        complement = self.events == "complement"
        everything = counts.total().value
        for c in range(out.shape[1]):
            counted = (labels == c) != complement  # whether a row is among the counts of the class
            within = np.where(counted[row], removed, 0.0)
            if complement:
                k = (everything - counts.value[c])[cells.term] - within
                whole = all_terms - counts.value[c].sum()
            else:
                k, whole = counts.subtract(within, c, cells.term), counts.value[c].sum()
            size = np.maximum(whole - np.where(counted, weights * length, 0.0), 0.0) + pseudo
            with np.errstate(divide="ignore", invalid="ignore"):
                logs = np.where(cells.kept, cells.x * np.log(np.maximum(k, 0.0) + a), 0.0)
                out[:, c] = cells.summed(logs) - np.where(known > 0, known * np.log(size), 0.0)
        return (-out if complement else out) - known[:, np.newaxis] * self.middle

    def _bernoulli(self, cells: Cells, labels: Labels, weights: FloatArray) -> FloatArray:
        """Σ log(k + a) of present terms, plus Σ log(n − k + a') of absent ones, minus V log(n + a + a')."""
        counts, documents, row, term = self.statistic.counts, self.statistic.documents, cells.row, cells.term
        n, v = cells.n, counts.shape[1]
        seen = counts.total().value  # (V) documents that have the term
        rest = np.maximum(documents.total().subtract(weights), 1e-300)  # (n) documents without the row
        lost = cells.summed(~cells.kept)
        true_a = self.alpha + self.per_class * cells.left / rest[row]
        out = np.empty((n, len(counts.value)))
        for c in range(out.shape[1]):
            less = np.where(labels == c, weights, 0.0)
            size = documents.subtract(less, np.full(n, c))
            missing = documents.subtract(counts.value[c], np.full(v, c)) - counts.words[1:, c].sum(axis=0)  # (V) n − k
            absent = np.empty(n)  # over all terms, as if the row had none
            for weight, total in np.unique(np.stack([less, rest]), axis=1).T.tolist():
                # a term that all documents have is in every row, and never absent
                false = self._absent(missing - weight, seen, total)
                here = (less == weight) & (rest == total)
                absent[here] = np.log(false[false > 0.0]).sum()
                all_others = (false <= 0.0) & (seen <= total * (1.0 + 1e-12))  # terms that all other documents have
                if all_others.any():
                    absent[here & (cells.summed(all_others[term]) < all_others.sum())] = -np.inf
            false = self._absent(missing[term] - less[row], seen[term], rest[row])
            k = np.maximum(counts.subtract(less[row], c, term), 0.0)  # without the row
            with np.errstate(divide="ignore", invalid="ignore"):
                change = np.where(cells.kept, np.log(k + true_a), 0.0) - np.where(false > 0.0, np.log(false), 0.0)
            out[:, c] = absent + cells.summed(change) - (v - lost) * np.log(size + 2.0 * self.alpha + self.per_class)
        return out - self.middle

    def _absent(self, missing: FloatArray, seen: FloatArray, total: Any) -> FloatArray:
        """The number of documents of a class without a term, rounding errors as 0, plus pseudo-counts."""
        near = 1e-12 * self.statistic.documents.value.sum()
        share = np.where(seen >= total - near, 0.0, 1.0 - seen / total)
        documents = np.where(missing > near, missing, np.minimum(missing, 0.0))
        return documents + self.alpha + self.per_class * share


@dataclass(frozen=True)
class Cells:
    """Terms of rows that are left out one at a time."""

    row: IntArray  # (m)
    term: IntArray  # (m)
    x: FloatArray  # (m)
    left: FloatArray  # (m) counts of the term in all other rows
    kept: BoolArray  # (m) whether other rows have it
    n: int

    def summed(self, values: Any) -> FloatArray:
        """(n) over the terms of each row."""
        return np.bincount(self.row, values, minlength=self.n).astype(np.float64)
