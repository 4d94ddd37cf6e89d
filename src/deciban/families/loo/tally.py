"""Tally: counts from which a row can be left out, for the leave-one-out of discrete families."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np

from deciban.statistics.sums import Sum
from deciban.types import BoolArray, FloatArray, IntArray, Labels

P = TypeVar("P", contravariant=True)


@dataclass(frozen=True)
class Tally:
    """The count k of each value in each class, the count n of its column, and the pseudo-counts of a prior.

    The values are those of one column, of many columns side by side, or one for each row.

    >>> column = Tally.of(Sum.of([[3.0, 2.0], [4.0, 4.0]]), np.ones((2, 2)), follows=0.0)
    >>> others, own = column.leave_out(1.0)
    >>> np.exp(others), np.exp(own).round(3)  # 4/7 and 3/7, 5/10 and 5/10; with one less 3/6 and 2/6, 4/9 and 4/9
    (array([[0.57142857, 0.42857143],
           [0.5       , 0.5       ]]), array([[0.5  , 0.333],
           [0.444, 0.444]]))
    """

    counts: Sum  # (K, m) k
    present: Sum  # (K, m) or (K, 1) n
    pseudo: FloatArray  # (K, m) a
    all_pseudo: FloatArray  # (K, m) or (K, 1) Σa over all values of the column
    values: int  # how many values a column has
    follows: float  # how many of the pseudo-counts follow the counts; see DiscretePrior
    reserved: FloatArray | None = None  # (K, 1) a of the entry reserved for unseen values, if there is one

    @classmethod
    def of(cls, counts: Sum, pseudo: FloatArray, follows: float) -> Tally:
        classes, values = counts.shape
        by_value = Sum(np.ascontiguousarray(counts.words.transpose(0, 2, 1)))
        present = by_value.total() if values else Sum.zeros((classes,))
        all_pseudo = pseudo.sum(axis=1, keepdims=True)
        return cls(counts, Sum(present.words[:, :, np.newaxis]), pseudo, all_pseudo, values, follows)

    def at(self, index: IntArray) -> Tally:
        """The tally of the values of `index`, which may repeat."""
        one_column = self.present.shape[1] == 1
        return replace(
            self,
            counts=self.counts.take(index, axis=1),
            present=self.present if one_column else self.present.take(index, axis=1),
            pseudo=self.pseudo[:, index],
            all_pseudo=self.all_pseudo if one_column else self.all_pseudo[:, index],
        )

    def leave_out(self, weights: float | FloatArray) -> tuple[FloatArray, FloatArray]:
        """(K, m) log (k + a) / (n + Σa) without a row of this value and weight: one of another class, and one of this.

        A value that no other row has is unseen: it has the reserved entry, or NaN if there is none. NaN also where the
        class has no such row.
        """
        left, everything = self.counts.total().subtract(weights), self.present.total().subtract(weights)
        lost = left <= 0
        values = self.values - (lost if self.reserved is not None else 0)
        a, all_a = self._pseudo_without(left, everything, lost, values)
        any_evidence = everything + all_a.sum(axis=0) > 0  # else all values are equally likely
        pooled = np.where(any_evidence, left + a.sum(axis=0), 1.0)
        pooled_total = np.where(any_evidence, everything + all_a.sum(axis=0), values)
        unknown = lost & (self.reserved is None)

        def log_p(k: FloatArray, n: FloatArray) -> FloatArray:
            weight, total = np.where(lost, 0.0, k) + a, n + all_a
            empty = total <= 0  # no evidence in this class: that of all classes
            if empty.any():
                weight, total = np.where(empty, pooled, weight), np.where(empty, pooled_total, total)
            return np.where(unknown, np.nan, np.log(weight) - np.log(total))

        with np.errstate(divide="ignore", invalid="ignore"):
            k = self.counts.subtract(weights)
            own = np.where(k < 0, np.nan, log_p(k, self.present.subtract(weights)))
            return log_p(self.counts.value, self.present.value), own

    def _pseudo_without(
        self, left: FloatArray, everything: FloatArray, lost: BoolArray, values: IntArray | int
    ) -> tuple[FloatArray, FloatArray]:
        """(K, m) a and Σa, if `left` of the value and `everything` of its column remain."""
        if self.follows:
            per_class = self.follows / len(self.pseudo)
            some = everything > 0
            share = np.where(some, left / np.where(some, everything, 1.0), 1.0 / np.maximum(values, 1))
            return np.broadcast_to(per_class * share, self.pseudo.shape), np.full(self.pseudo.shape, per_class)
        if self.reserved is None or not lost.any():
            return self.pseudo, self.all_pseudo
        remaining = np.where(lost, self.all_pseudo - self.pseudo, self.all_pseudo)
        return np.where(lost, self.reserved, self.pseudo), remaining

    def of_rows(self, labels: Labels, weights: FloatArray) -> FloatArray:
        """(m, K) log p of the i-th value, which is that of row i, without row i."""
        others, own = self.leave_out(weights)
        rows = np.arange(len(labels))
        others[labels, rows] = own[labels, rows]
        return others.T


@dataclass(frozen=True)
class Cells:
    """m cells that are left out one at a time: the class of its row, the index of its value, and its weight."""

    labels: Labels  # (m)
    index: IntArray  # (m)
    weights: FloatArray  # (m)


def log_frequencies_without(counts: Sum, pseudo: FloatArray, follows: float, cells: Cells) -> FloatArray:
    """(m, K) log (k + a) / Σ(k + a) of a cell's value in each class, if the cell is left out of the counts (K, V).

    `pseudo` (K, V) are the pseudo-counts with all cells; `follows` of them follow the remaining counts (see
    DiscretePrior). NaN if no other row has the value.

    >>> counts = Sum.of([[3.0, 2.0]])
    >>> cells = Cells(np.zeros(2, np.int32), np.array([0, 1]), np.ones(2))
    >>> np.exp(log_frequencies_without(counts, np.ones((1, 2)), 0.0, cells)).round(3)
    array([[0.5  ],
           [0.333]])
    """
    return Tally.of(counts, pseudo, follows).at(cells.index).of_rows(cells.labels, cells.weights)


def equal_weights(
    weights: FloatArray | None, most: int, step: int
) -> Iterator[tuple[float | FloatArray, slice | IntArray]]:
    """Weight and rows of each group of equal weight; if there are more than `most`, of `step` rows at a time.

    >>> [(weight, rows.tolist()) for weight, rows in equal_weights(np.array([2.0, 1.0, 2.0]), 9, 9)]
    [(1.0, [1]), (2.0, [0, 2])]
    """
    if weights is None:
        yield 1.0, slice(None)
        return
    order = np.argsort(weights, kind="stable")
    distinct, first = np.unique(weights[order], return_index=True)
    if len(distinct) <= most:
        yield from zip(distinct.tolist(), np.split(order, first[1:]), strict=False)
    else:
        for start in range(0, len(weights), step):
            yield weights[start : start + step], slice(start, start + step)


class _Density(Protocol[P]):
    def add_log_density(self, params: P, values: Any, out: FloatArray) -> None: ...


def add_with_own(family: _Density[P], others: P, own: P, values: Any, labels: Labels, out: FloatArray) -> None:
    """out (n, K) += log p(x|c): from `own` for each row's own class, and from `others` for the other classes."""
    flat, at = out.reshape(-1), np.arange(len(labels)) * out.shape[1] + labels
    log_p = np.zeros_like(out)
    family.add_log_density(own, values, log_p)
    own_scores = flat[at] + log_p.reshape(-1)[at]
    family.add_log_density(others, values, out)
    flat[at] = own_scores
