"""Cuts: after which cells of a histogram a column is cut, with all rows and with a row left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from deciban.families.loo.tally import Cells
from deciban.types import BoolArray, FloatArray, IntArray, Labels

Cutting = Iterator[tuple[IntArray, IntArray]]  # cells after which to cut, and the left-out cells that lead to it

TINY = np.finfo(np.float64).tiny
TOGETHER = 2**20  # candidates, times cells left out, that are compared at once


def equal_width(lower: FloatArray, upper: FloatArray, count: int) -> IntArray:
    """The last cell that begins below each of count − 1 edges, at equal steps."""
    share = np.arange(1, count) / count
    return _within(np.searchsorted(lower, lower[0] * (1 - share) + upper[-1] * share, side="left") - 1, len(lower))


def equal_frequency(sizes: FloatArray, count: int) -> IntArray:
    """The cells, of these weights, at which 1, 2, … of count equal shares are reached.

    >>> equal_frequency(np.array([1.0, 1.0, 1.0, 1.0]), 2)
    array([1])
    """
    reached = np.cumsum(sizes)
    return _within(np.searchsorted(reached, _shares(reached[-1], count), side="left"), len(sizes))


def equal_frequency_without(sizes: FloatArray, count: int, cells: Cells) -> Cutting:
    """equal_frequency without each of the cells."""
    reached = np.cumsum(sizes)
    for w in np.unique(cells.weights):
        chosen = np.flatnonzero(cells.weights == w)
        p, shares = cells.index[chosen, np.newaxis], _shares(reached[-1] - w, count)
        before, after = (np.searchsorted(r, shares, side="left") for r in (reached, reached - w))
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
    """Half way between the cells (from lower to upper) before the cuts and the next ones.

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
    reached = _reached(counts)
    cuts: set[int] = set()
    waiting = [(0, counts.shape[1])]
    while waiting:
        start, end = waiting.pop()
        if end - start < 2:
            continue
        whole, left, right = _sides(reached, start, end)
        bits = _bits(left) + _bits(right)  # n₁H(S₁) + n₂H(S₂)
        best = int(np.argmin(bits))
        gain = _bits(whole)[0] - bits[best]
        if gain > _cost(whole, left[:, [best]], right[:, [best]])[0]:
            cut = start + best
            cuts.add(cut)
            waiting += [(start, cut + 1), (cut + 1, end)]
    return cuts


def supervised_cuts_without(counts: FloatArray, cells: Cells) -> Cutting:
    """supervised_cuts without each of the cells; those that rounding could decide are in no group.

    The half without the left-out cell is cut as with all rows; cells that lead to the same cut go on to the other half
    together. An emptied cell stays, which changes nothing: the cuts on both its sides are equal, the first of them is
    taken, and a cut with nothing on one side gains nothing.
    """
    halving = _Halving(counts, cells)
    waiting = [(0, counts.shape[1], np.arange(len(cells.labels)), frozenset[int]())]
    while waiting:
        start, end, which, cuts = waiting.pop()
        best, sure = halving.decide(start, end, which)
        for cut in np.unique(best[sure]).tolist():
            group = which[sure & (best == cut)]
            if cut < 0:
                yield np.array(sorted(cuts), dtype=np.intp), group
                continue
            left, right = (start, cut + 1), (cut + 1, end)
            before = cells.index[group] <= cut
            for side, other, inside in ((left, right, group[before]), (right, left, group[~before])):
                rest = halving.as_ever(*other) if len(inside) else None
                if rest is not None:
                    waiting.append((*side, inside, cuts | {cut} | rest))


class _Halving:
    """Where to cut a range of cells in two, for many rows that are left out one at a time."""

    def __init__(self, counts: FloatArray, cells: Cells) -> None:
        self.counts, self.cells = counts, cells
        self.reached = _reached(counts)
        whole_numbers = all((a == np.rint(a)).all() for a in (counts, cells.weights))
        self.exact = whole_numbers and counts.sum() < 2.0**53  # then equal counts have equal bits, and ties are exact
        self.known: dict[tuple[int, int], frozenset[int] | None] = {}

    def as_ever(self, start: int, end: int) -> frozenset[int] | None:
        """The cuts within a range of cells that loses no row; None if rounding could decide."""
        if (start, end) not in self.known:
            cuts = frozenset(start + cut for cut in supervised_cuts(self.counts[:, start:end]))
            self.known[start, end] = cuts if self.exact or self._clear(start, end, cuts) else None
        return self.known[start, end]

    def _clear(self, start: int, end: int, cuts: frozenset[int]) -> bool:
        nothing = Cells(np.zeros(1, np.int32), np.array([start]), np.zeros(1))
        groups = list(supervised_cuts_without(self.counts[:, start:end], nothing))
        return len(groups) == 1 and set((start + groups[0][0]).tolist()) == cuts

    def decide(self, start: int, end: int, which: IntArray) -> tuple[IntArray, BoolArray]:
        """The cell after which to cut without each of the cells (−1: no cut), and whether that is sure."""
        best, sure = np.full(len(which), -1, np.intp), np.ones(len(which), np.bool_)
        if end - start < 2 or not len(which):
            return best, sure
        stretch = _Stretch.of(self.reached, start, end, self.cells.weights[which].max())
        size = max(1, TOGETHER // len(stretch.places))
        for i in range(0, len(which), size):
            some = slice(i, i + size)
            best[some], sure[some] = self._best(stretch, which[some])
        return best, sure

    def _best(self, stretch: _Stretch, which: IntArray) -> tuple[IntArray, BoolArray]:
        labels, places, weights = self.cells.labels[which], self.cells.index[which], self.cells.weights[which]
        on_left = stretch.places >= places[:, np.newaxis]
        bits = (stretch.bits_again if self.exact else stretch.bits_less)(on_left, labels, weights)
        column = np.argmin(bits, axis=1)
        best, rows = stretch.places[column], np.arange(len(which))
        lowest, left = bits[rows, column], on_left[rows, column]
        less = np.zeros((len(self.counts), len(which)))
        less[labels, rows] = weights
        whole = np.maximum(stretch.whole - less, 0.0)
        parts = [
            np.maximum(side[:, column] - np.where(here, less, 0.0), 0.0)
            for side, here in ((stretch.left, left), (stretch.right, ~left))
        ]
        gain, cost = _bits(whole) - lowest, _cost(whole, *parts)
        close, nothing = stretch.close, np.zeros_like(whole)
        sure = np.abs(gain - cost) > close
        if not self.exact:
            sure &= (bits <= lowest[:, np.newaxis] + close).sum(axis=1) == 1
            sure |= gain + close < _cost(whole, nothing, nothing)  # too little gain for any cut
            for part in (*parts, whole):  # a tiny count may be rounding of 0
                sure &= ~((part > 0) & (part < 1e-9 * stretch.whole)).any(axis=0)
        return np.where(gain > cost, best, -1), sure


@dataclass(frozen=True)
class _Stretch:
    """Cells to be cut in two, and the cuts that are best, or could be without one of the rows."""

    places: IntArray  # (cuts) the cells before them
    whole: FloatArray  # (K, 1)
    left: FloatArray  # (K, cuts)
    right: FloatArray  # (K, cuts)
    close: float  # bits that may be rounding

    @classmethod
    def of(cls, reached: FloatArray, start: int, end: int, most: float) -> _Stretch:
        whole, left, right = _sides(reached, start, end)
        bits = _bits(left) + _bits(right)
        n = whole.sum()
        close = 1e-11 * (1.0 + n * np.log2(n + 1.0))
        drop = max(_drop(side.sum(axis=0), side, most).max() for side in (left, right))  # it grows with the weight
        near = np.flatnonzero(bits <= bits.min() + drop + close)
        return cls(start + near, whole, left[:, near], right[:, near], close)

    def bits_again(self, on_left: BoolArray, labels: Labels, weights: FloatArray) -> FloatArray:
        """(m, cuts) n₁H(S₁) + n₂H(S₂) without each of the rows, with the same bits as in supervised_cuts."""
        bits = np.empty(on_left.shape)
        base = [_bits(side) for side in (self.left, self.right)]
        for (label, weight), chosen in _groups(np.column_stack([labels, weights])):
            less = np.zeros_like(self.whole)
            less[int(label)] = weight
            left, right = (_bits(np.maximum(side - less, 0.0)) for side in (self.left, self.right))
            bits[chosen] = np.where(on_left[chosen], left + base[1], base[0] + right)
        return bits

    def bits_less(self, on_left: BoolArray, labels: Labels, weights: FloatArray) -> FloatArray:
        """The same up to rounding, for many distinct weights."""
        n = np.where(on_left, self.left.sum(axis=0), self.right.sum(axis=0))
        k = np.where(on_left, self.left[labels], self.right[labels])
        return _bits(self.left) + _bits(self.right) - _drop(n, k, weights[:, np.newaxis])


def _drop(n: FloatArray, k: FloatArray, w: FloatArray | float) -> FloatArray:
    """n·H minus n·H without w (at most k) of a class that has k, in bits; elementwise."""
    w = np.minimum(w, k)
    drop: FloatArray = (_xlogx(n) - _xlogx(n - w) - _xlogx(k) + _xlogx(k - w)) / np.log(2)
    return drop


def _groups(kinds: FloatArray) -> Iterator[tuple[FloatArray, IntArray]]:
    """Each distinct row, and its indices."""
    different, of_row = np.unique(kinds, axis=0, return_inverse=True)
    order = np.argsort(of_row.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(of_row.ravel(), minlength=len(different)))
    return zip(different, np.split(order, ends[:-1]), strict=True)


def _reached(counts: FloatArray) -> FloatArray:
    """(K, cells + 1) cumulative counts, from 0."""
    return np.concatenate([np.zeros((len(counts), 1)), np.cumsum(counts, axis=1)], axis=1)


def _sides(reached: FloatArray, start: int, end: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Counts of a range of cells: all (K, 1), and those left and right of each possible cut (K, cuts)."""
    whole = reached[:, [end]] - reached[:, [start]]
    left = reached[:, start + 1 : end] - reached[:, [start]]
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
