"""Binned: a number cut into intervals, then counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from deciban import _kernels
from deciban.errors import forbid_infinite
from deciban.families.base import Context, Family, Natural, Table, class_rows, padded_table
from deciban.families.natural import by_value, indicators
from deciban.families.priors import DiscretePrior, Laplace, log_frequencies
from deciban.statistics.histogram import Histogram
from deciban.types import FloatArray, Labels, Level


@dataclass(frozen=True)
class BinnedParams:
    cuts: tuple[FloatArray, ...]  # of each column, ascending; bin i holds cuts[i − 1] <= x < cuts[i]
    log_p: tuple[FloatArray, ...]  # (K, cuts + 1) of each column


@dataclass(frozen=True)
class Binned(Family[Histogram, BinnedParams]):
    """p(x|c) = (k_b + α) / (n + αB) for x in bin b of B.

    The bins are chosen when the model is estimated, from a histogram that adds and subtracts:
    "equal-width" and "equal-frequency" make `count` bins (fewer where values tie); "supervised" cuts where the classes
    differ, as long as a cut shortens the description of the labels (Fayyad & Irani 1993), at any number of bins.
    Cuts lie half way between values. Beyond `cap` different values the histogram is coarser, by whole mantissa bits.

    >>> import numpy as np
    >>> family = Binned("equal-frequency", count=2)
    >>> x, labels = np.array([[1.0], [2.0], [3.0], [9.0]]), np.array([0, 0, 1, 1], np.int32)
    >>> params = family.estimate(family.collect(x, labels, None, 2), Context(("a", "b"), ("x",)))
    >>> params.cuts[0], np.exp(params.log_p[0]).round(12)
    (array([2.5]), array([[0.75, 0.25],
           [0.25, 0.75]]))
    """

    bins: Literal["supervised", "equal-frequency", "equal-width"] = "supervised"
    count: int = 10
    prior: DiscretePrior | None = None
    cap: int = 2048

    def __post_init__(self) -> None:
        if self.bins not in ("supervised", "equal-frequency", "equal-width"):
            raise ValueError(f"Binned: no bins called {self.bins!r}: supervised, equal-frequency or equal-width")
        if self.count < 1 or self.cap < 2:
            raise ValueError("Binned: count must be 1 or more, cap 2 or more")

    def collect(self, values: NDArray[Any], labels: Labels, weights: FloatArray | None, classes: int) -> Histogram:
        forbid_infinite(values)
        return Histogram.of(values, labels, weights, classes, cap=self.cap)

    def estimate(self, statistic: Histogram, context: Context) -> BinnedParams:
        prior = self.prior or Laplace(context.smoothing)
        cuts, tables = [], []
        for j in range(len(statistic.keys)):
            lower, upper, table = statistic.lower(j), statistic.upper(j), statistic.table(j)
            after = self._places(lower, upper, table.value)  # a cut stands behind each of these cells
            low, high = upper[after], lower[after + 1]
            cut = 0.5 * low + 0.5 * high
            cut = np.where(cut > low, cut, high)  # neighbouring doubles: the upper one opens its bin
            bins = np.searchsorted(after, np.arange(len(lower)), side="left")
            counts = table.group(bins, len(after) + 1).value
            names = tuple(range(counts.shape[1]))
            cuts.append(cut)
            tables.append(log_frequencies(counts, prior.pseudo_counts(counts, names, context.classes)))
        return BinnedParams(tuple(cuts), tuple(tables))

    def _places(self, lower: FloatArray, upper: FloatArray, counts: FloatArray) -> NDArray[np.intp]:
        if len(lower) < 2:
            return np.zeros(0, np.intp)
        if self.bins == "supervised":
            return np.array(sorted(supervised_cuts(counts)), dtype=np.intp)
        if self.bins == "equal-width":
            share = np.arange(1, self.count) / self.count
            edges = lower[0] * (1 - share) + upper[-1] * share
            places = np.searchsorted(lower, edges, side="left") - 1
        else:
            reached = np.cumsum(counts.sum(axis=0))
            targets = reached[-1] * np.arange(1, self.count) / self.count
            places = np.searchsorted(reached, targets * (1 - 1e-12), side="left")
        return np.unique(places[(places >= 0) & (places < len(lower) - 1)]).astype(np.intp)

    def add_log_density(self, params: BinnedParams, values: NDArray[Any], out: FloatArray) -> None:
        ends = np.cumsum([0, *(len(cuts) + 1 for cuts in params.cuts)], dtype=np.int64)
        table = padded_table(np.hstack(params.log_p))
        _kernels.add_table(self._codes(params, values), ends, table, out.shape[1], out)

    def natural(self, params: BinnedParams, context: Context) -> Natural:
        """log p(b|c): of whether x is in bin b, for every bin b."""
        names = [_intervals(column, cuts) for column, cuts in zip(context.columns, params.cuts, strict=True)]
        return by_value(params.log_p, names, self.silent(params), context, self)

    def sufficient(self, params: BinnedParams, values: NDArray[Any]) -> Any:
        return indicators(self._codes(params, values), params.log_p, self.silent(params))

    def _codes(self, params: BinnedParams, values: NDArray[Any]) -> NDArray[np.int32]:
        """The bin of each cell, −1 where it is missing."""
        forbid_infinite(values)
        codes = np.empty(values.shape, dtype=np.int32)
        for j, cuts in enumerate(params.cuts):
            bins = np.searchsorted(cuts, values[:, j], side="right")
            codes[:, j] = np.where(np.isnan(values[:, j]), -1, bins)
        return codes

    def silent(self, params: BinnedParams) -> Sequence[int]:
        return [j for j, cuts in enumerate(params.cuts) if not len(cuts)]

    def n_parameters(self, params: BinnedParams) -> int:
        return sum(log_p.shape[0] * len(cuts) for cuts, log_p in zip(params.cuts, params.log_p, strict=True))

    def describe(self, params: BinnedParams, context: Context) -> list[Table]:
        tables = []
        for name, cuts, log_p in zip(context.columns, params.cuts, params.log_p, strict=True):
            edges = [f"{cut:.6g}" for cut in cuts]
            names = [f"< {edges[0]}", *(f"< {edge}" for edge in edges[1:]), f">= {edges[-1]}"] if edges else ["all"]
            tables.append(Table(f"{name} (Binned)", ("class", *names), class_rows(context, list(np.exp(log_p).T))))
        return tables


def _intervals(column: Level, cuts: FloatArray) -> list[str]:
    """What the bins are called, with as many digits as tell the cuts apart.

    >>> _intervals("age", np.array([2.5, 7.0]))
    ['age < 2.5', '2.5 ≤ age < 7', 'age ≥ 7']
    """
    texts = ([f"{cut:.{digits}g}" for cut in cuts] for digits in range(6, 18))
    edges = next(text for text in texts if len(set(text)) == len(cuts))
    if not edges:
        return []  # a single bin says nothing
    between = [f"{low} ≤ {column} < {high}" for low, high in pairwise(edges)]
    return [f"{column} < {edges[0]}", *between, f"{column} ≥ {edges[-1]}"]


def supervised_cuts(counts: FloatArray) -> set[int]:
    """The cells (K, cells) behind which to cut, by recursive halving with the MDL criterion.

    A set S of n rows is cut in two, S₁ and S₂, where the entropy of the labels falls most, if that
    gain > [log₂(n − 1) + log₂(3ᵏ − 2) − k·H(S) + k₁·H(S₁) + k₂·H(S₂)] / n,
    with H in bits and k the number of classes present in each set.

    >>> sorted(supervised_cuts(np.array([[9.0, 9.0, 0.0, 0.0], [0.0, 0.0, 9.0, 9.0]])))
    [1]
    """
    reached = np.concatenate([np.zeros((len(counts), 1)), np.cumsum(counts, axis=1)], axis=1)
    cuts: set[int] = set()
    waiting = [(0, counts.shape[1])]
    while waiting:
        start, end = waiting.pop()
        if end - start < 2:
            continue
        whole = reached[:, end] - reached[:, start]
        left = reached[:, start + 1 : end] - reached[:, [start]]
        right = whole[:, np.newaxis] - left
        bits = _bits(left) + _bits(right)  # n₁H(S₁) + n₂H(S₂)
        best = int(np.argmin(bits))
        n, k = whole.sum(), int((whole > 0).sum())
        all_bits = _bits(whole[:, np.newaxis])[0]
        gain = all_bits - bits[best]
        subsets = k * np.log2(3) + np.log2(1 - 2 * 3.0**-k)  # log₂(3ᵏ − 2), for any k
        cost = np.log2(max(n - 1, 1)) + subsets - k * all_bits / n
        for part in (left[:, best], right[:, best]):
            cost += (part > 0).sum() * _bits(part[:, np.newaxis])[0] / max(part.sum(), 1e-300)
        if gain > cost:
            cut = start + best
            cuts.add(cut)
            waiting += [(start, cut + 1), (cut + 1, end)]
    return cuts


def _bits(counts: FloatArray) -> FloatArray:
    """n·H of each column of counts (K, cells), in bits."""
    n = counts.sum(axis=0)
    bits: FloatArray = (xlogy(n, n) - xlogy(counts, counts).sum(axis=0)) / np.log(2)
    return bits
