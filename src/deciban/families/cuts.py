"""Cuts: the cells of a histogram after which a column is cut, from all rows and with a row left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from deciban.families.loo.tally import Cells
from deciban.types import BoolArray, FloatArray, IntArray, Labels

Cuttings = Iterator[tuple[IntArray, IntArray]]  # cells after which to cut, and the left-out cells that lead to it

TINY = np.finfo(np.float64).tiny
MOST_CANDIDATES = 2**20  # times cells left out, that are compared at once


def equal_width(lower: FloatArray, upper: FloatArray, count: int) -> IntArray:
    """The last cell that begins below each of count − 1 edges, at equal steps."""
    share = np.arange(1, count) / count
    return _within(np.searchsorted(lower, lower[0] * (1 - share) + upper[-1] * share, side="left") - 1, len(lower))


def equal_frequency(sizes: FloatArray, count: int) -> IntArray:
    """The cells, of these weights, that complete the first, second, … of `count` equal shares.

    >>> equal_frequency(np.array([1.0, 1.0, 1.0, 1.0]), 2)
    array([1])
    """
    cumulative = np.cumsum(sizes)
    return _within(np.searchsorted(cumulative, _shares(cumulative[-1], count), side="left"), len(sizes))


def equal_frequency_without(sizes: FloatArray, count: int, cells: Cells) -> Cuttings:
    """equal_frequency without each of the cells."""
    cumulative = np.cumsum(sizes)
    for w in np.unique(cells.weights):
        chosen = np.flatnonzero(cells.weights == w)
        p, shares = cells.index[chosen, np.newaxis], _shares(cumulative[-1] - w, count)
        before, after = (np.searchsorted(r, shares, side="left") for r in (cumulative, cumulative - w))
        distinct, of_cell = np.unique(np.where(before < p, before, after), axis=0, return_inverse=True)
        for i, cuts in enumerate(distinct):
            yield _within(cuts, len(sizes)), chosen[of_cell.ravel() == i]


def _shares(total: float, count: int) -> FloatArray:
    targets: FloatArray = total * np.arange(1, count) / count
    return targets * (1 - 1e-12)


def _within(cuts: IntArray, cells: int) -> IntArray:
    kept = np.sort(cuts[(cuts >= 0) & (cuts < cells - 1)]).astype(np.intp)
    return kept[np.diff(kept, prepend=-1) > 0]  # np.unique imports masked arrays, which is slow


def cut_values(lower: FloatArray, upper: FloatArray, after: IntArray) -> FloatArray:
    """Half way between the upper end of the cell before a cut and the lower end of the next.

    >>> cut_values(np.array([1.0, 2.0, 9.0]), np.array([1.0, 2.0, 9.0]), np.array([1]))
    array([5.5])
    """
    low, high = upper[after], lower[after + 1]
    cut: FloatArray = 0.5 * low + 0.5 * high
    return np.where(cut > low, cut, high)  # neighbouring doubles: the cut is the upper one


def bins_of(after: IntArray, cells: int) -> IntArray:
    """The bin of each cell, with cuts after these cells."""
    return np.searchsorted(after, np.arange(cells), side="left")


def supervised_cuts(counts: FloatArray) -> set[int]:
    """The cells, of counts (K, cells), after which to cut: recursive halving by the MDL criterion.

    A set S of n rows is cut in two, S₁ and S₂, where the entropy of the labels falls most, if that
    gain > [log₂(n − 1) + log₂(3ᵏ − 2) − k·H(S) + k₁·H(S₁) + k₂·H(S₂)] / n,
    with H in bits and k the number of classes present in each set.

    >>> sorted(supervised_cuts(np.array([[9.0, 9.0, 0.0, 0.0], [0.0, 0.0, 9.0, 9.0]])))
    [1]
    """
    cumulative = _cumulative(counts)
    cuts: set[int] = set()
    waiting = [(0, counts.shape[1])]
    while waiting:
        start, end = waiting.pop()
        if end - start < 2:
            continue
        whole, left, right = _sides(cumulative, start, end)
        bits = _bits(left) + _bits(right)  # n₁H(S₁) + n₂H(S₂)
        best = int(np.argmin(bits))
        gain = _bits(whole)[0] - bits[best]
        if gain > _cost(whole, left[:, [best]], right[:, [best]])[0]:
            cut = start + best
            cuts.add(cut)
            waiting += [(start, cut + 1), (cut + 1, end)]
    return cuts


def supervised_cuts_without(counts: FloatArray, cells: Cells) -> Cuttings:
    """supervised_cuts without each of the cells; cells for which rounding could decide are in no group.

    The half without the left-out cell is cut as with all rows; cells that lead to the same cut go on to the other half
    together. An emptied cell stays, which changes nothing: the cuts on both its sides are equal, the first of them is
    taken, and a cut with nothing on one side gains nothing.
    """
    halving = _Halving(counts, cells)
    waiting = [(0, counts.shape[1], np.arange(len(cells.labels)), frozenset[int]())]
    while waiting:
        start, end, which, cuts = waiting.pop()
        best, certain = halving.decide(start, end, which)
        for cut in np.unique(best[certain]).tolist():
            group = which[certain & (best == cut)]
            if cut < 0:
                yield np.array(sorted(cuts), dtype=np.intp), group
                continue
            left, right = (start, cut + 1), (cut + 1, end)
            before = cells.index[group] <= cut
            for side, other, inside in ((left, right, group[before]), (right, left, group[~before])):
                rest = halving.unchanged_cuts(*other) if len(inside) else None
                if rest is not None:
                    waiting.append((*side, inside, cuts | {cut} | rest))


class _Halving:
    """Where to cut a range of cells in two, for many rows that are left out one at a time."""

    def __init__(self, counts: FloatArray, cells: Cells) -> None:
        self.counts, self.cells = counts, cells
        self.cumulative = _cumulative(counts)
        whole_numbers = all((a == np.rint(a)).all() for a in (counts, cells.weights))
        self.exact = whole_numbers and counts.sum() < 2.0**53  # then equal counts have equal bits, and ties are exact
        self.known: dict[tuple[int, int], frozenset[int] | None] = {}

    def unchanged_cuts(self, start: int, end: int) -> frozenset[int] | None:
        """The cuts within a range of cells from which no row is left out; None if rounding could decide."""
        if (start, end) not in self.known:
            cuts = frozenset(start + cut for cut in supervised_cuts(self.counts[:, start:end]))
            self.known[start, end] = cuts if self.exact or self._is_certain(start, end, cuts) else None
        return self.known[start, end]

    def _is_certain(self, start: int, end: int, cuts: frozenset[int]) -> bool:
        weightless = Cells(np.zeros(1, np.int32), np.array([start]), np.zeros(1))
        groups = list(supervised_cuts_without(self.counts[:, start:end], weightless))
        return len(groups) == 1 and set((start + groups[0][0]).tolist()) == cuts

    def decide(self, start: int, end: int, which: IntArray) -> tuple[IntArray, BoolArray]:
        """The cell after which to cut without each of the cells (−1: no cut), and whether that is certain."""
        best, certain = np.full(len(which), -1, np.intp), np.ones(len(which), np.bool_)
        if end - start < 2 or not len(which):
            return best, certain
        candidates = _Candidates.of(self.cumulative, start, end, self.cells.weights[which].max())
        size = max(1, MOST_CANDIDATES // len(candidates.places))
        for i in range(0, len(which), size):
            chunk = slice(i, i + size)
            best[chunk], certain[chunk] = self._best(candidates, which[chunk])
        return best, certain

    def _best(self, candidates: _Candidates, which: IntArray) -> tuple[IntArray, BoolArray]:
        labels, places, weights = self.cells.labels[which], self.cells.index[which], self.cells.weights[which]
        on_left = candidates.places >= places[:, np.newaxis]
        bits = (candidates.exact_bits if self.exact else candidates.approximate_bits)(on_left, labels, weights)
        column = np.argmin(bits, axis=1)
        best, rows = candidates.places[column], np.arange(len(which))
        lowest, left = bits[rows, column], on_left[rows, column]
        removed = np.zeros((len(self.counts), len(which)))
        removed[labels, rows] = weights
        whole = np.maximum(candidates.whole - removed, 0.0)
        parts = [
            np.maximum(side[:, column] - np.where(here, removed, 0.0), 0.0)
            for side, here in ((candidates.left, left), (candidates.right, ~left))
        ]
        gain, cost = _bits(whole) - lowest, _cost(whole, *parts)
        close, empty = candidates.close, np.zeros_like(whole)
        certain = np.abs(gain - cost) > close
        if not self.exact:
            certain &= (bits <= lowest[:, np.newaxis] + close).sum(axis=1) == 1
            certain |= gain + close < _cost(whole, empty, empty)  # too little gain for any cut
            for part in (*parts, whole):  # a tiny count may be rounding of 0
                certain &= ~((part > 0) & (part < 1e-9 * candidates.whole)).any(axis=0)
        return np.where(gain > cost, best, -1), certain


@dataclass(frozen=True)
class _Candidates:
    """The cuts of a range of cells that are best with all rows, or could be without one of them."""

    places: IntArray  # (cuts) the cells before them
    whole: FloatArray  # (K, 1)
    left: FloatArray  # (K, cuts)
    right: FloatArray  # (K, cuts)
    close: float  # a difference in bits that may be rounding

    @classmethod
    def of(cls, cumulative: FloatArray, start: int, end: int, most: float) -> _Candidates:
        whole, left, right = _sides(cumulative, start, end)
        bits = _bits(left) + _bits(right)
        n = whole.sum()
        close = 1e-11 * (1.0 + n * np.log2(n + 1.0))
        drop = max(_drop(side.sum(axis=0), side, most).max() for side in (left, right))  # which grows with the weight
        near = np.flatnonzero(bits <= bits.min() + drop + close)
        return cls(start + near, whole, left[:, near], right[:, near], close)

    def exact_bits(self, on_left: BoolArray, labels: Labels, weights: FloatArray) -> FloatArray:
        """(m, cuts) n₁H(S₁) + n₂H(S₂) without each of the rows, rounded as in supervised_cuts."""
        bits = np.empty(on_left.shape)
        base = [_bits(side) for side in (self.left, self.right)]
        for (label, weight), chosen in _groups(np.column_stack([labels, weights])):
            removed = np.zeros_like(self.whole)
            removed[int(label)] = weight
            left, right = (_bits(np.maximum(side - removed, 0.0)) for side in (self.left, self.right))
            bits[chosen] = np.where(on_left[chosen], left + base[1], base[0] + right)
        return bits

    def approximate_bits(self, on_left: BoolArray, labels: Labels, weights: FloatArray) -> FloatArray:
        """As exact_bits, up to rounding; faster for many distinct weights."""
        n = np.where(on_left, self.left.sum(axis=0), self.right.sum(axis=0))
        k = np.where(on_left, self.left[labels], self.right[labels])
        return _bits(self.left) + _bits(self.right) - _drop(n, k, weights[:, np.newaxis])


def _drop(n: FloatArray, k: FloatArray, w: FloatArray | float) -> FloatArray:
    """n·H minus n·H without w (at most k) of a class that has k, in bits; elementwise."""
    w = np.minimum(w, k)
    drop: FloatArray = (_xlogx(n) - _xlogx(n - w) - _xlogx(k) + _xlogx(k - w)) / np.log(2)
    return drop


def _groups(kinds: FloatArray) -> Iterator[tuple[FloatArray, IntArray]]:
    """Each distinct row, and the indices where it occurs."""
    distinct, of_row = np.unique(kinds, axis=0, return_inverse=True)
    order = np.argsort(of_row.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(of_row.ravel(), minlength=len(distinct)))
    return zip(distinct, np.split(order, ends[:-1]), strict=True)


def _cumulative(counts: FloatArray) -> FloatArray:
    """(K, cells + 1) cumulative counts, from 0."""
    return np.concatenate([np.zeros((len(counts), 1)), np.cumsum(counts, axis=1)], axis=1)


def _sides(cumulative: FloatArray, start: int, end: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Counts of a range of cells: all (K, 1), and those left and right of each possible cut (K, cuts)."""
    whole = cumulative[:, [end]] - cumulative[:, [start]]
    left = cumulative[:, start + 1 : end] - cumulative[:, [start]]
    return whole, left, whole - left


def _cost(whole: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
    """(cuts) the gain that a cut needs, in bits: n times the right side of the formula."""
    n, k = whole.sum(axis=0), (whole > 0).sum(axis=0)
    subsets = k * np.log2(3) + np.log2(1 - 2 * 3.0**-k)  # log₂(3ᵏ − 2), for any k
    cost: FloatArray = np.log2(np.maximum(n - 1, 1)) + subsets - k * _bits(whole) / n
    for part in (left, right):
        cost = cost + (part > 0).sum(axis=0) * _bits(part) / np.maximum(part.sum(axis=0), 1e-300)
    return cost


def _bits(counts: FloatArray) -> FloatArray:
    """n·H of each column of counts (K, cells), in bits."""
    n = counts.sum(axis=0)
    bits: FloatArray = (_xlogx(n) - _xlogx(counts).sum(axis=0)) / np.log(2)
    return bits


def _xlogx(x: FloatArray) -> FloatArray:
    """x·log x, and 0 at 0."""
    product: FloatArray = np.maximum(x, TINY)
    np.log(product, out=product)
    product *= x
    return product
