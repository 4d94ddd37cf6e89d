"""Binned: a number cut into intervals, then counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.errors import DecibanError, forbid_infinite
from deciban.families.cuts import (
    Cuttings,
    bins_of,
    cut_values,
    equal_frequency,
    equal_frequency_without,
    equal_width,
    supervised_cuts,
    supervised_cuts_without,
)
from deciban.families.family import Context, Fitted, Natural, Shaped, SmoothedFamily, formulas, padded_table
from deciban.families.labelled_values import LabelledValues
from deciban.families.loo.tally import Cells, log_frequencies_without
from deciban.families.natural import by_value, indicators, tables_of
from deciban.families.priors import DiscretePrior, log_frequencies
from deciban.plots.figures import counted
from deciban.statistics.histogram import Histogram, keys_of
from deciban.table import Table
from deciban.types import BoolArray, FloatArray, IntArray, Labels, Level

if TYPE_CHECKING:
    from deciban.export.formulas import Formula

MAX_BINS = 1 << 20

# The cuts without each cell that were last computed for a histogram, as long as it lives.
_CUTTINGS: WeakKeyDictionary[Histogram, tuple[object, list[tuple[IntArray, IntArray]]]] = WeakKeyDictionary()


@dataclass(frozen=True)
class BinnedParams:
    cuts: tuple[FloatArray, ...]  # of each column, ascending; bin i holds cuts[i − 1] <= x < cuts[i]
    log_p: tuple[FloatArray, ...]  # (K, cuts + 1) of each column


@dataclass(frozen=True)
class Binned(SmoothedFamily[Histogram, BinnedParams]):
    """Numbers that are cut into intervals and counted, with a probability of each interval in each class.

    p(x|c) = (k_b + α) / (n + αB) for x in bin b of B

    The bins are selected when the model is estimated, from a histogram that adds and subtracts. Cuts lie half way
    between values.

    Parameters
    ----------
    bins : "supervised", "equal-frequency" or "equal-width", default "supervised"
        "supervised" cuts where the classes differ, as long as a cut shortens the description of the labels (Fayyad &
        Irani 1993); the others make `count` bins (fewer if values tie).
    count : int, default 10
        The number of bins; "supervised" ignores it.
    prior : prior of deciban.priors or None, default None
        Pseudo-counts: Laplace, Beta, Dirichlet or Virtual. None: Laplace, with the smoothing of the model.
    cap : int, default 2048
        Beyond this number of different values the histogram is coarser, by whole mantissa bits.
    bits : int or None, default None
        It is coarser, too, if different values take more than this number of bits. None: no such limit.

    Attributes
    ----------
    follows : float or None
        How many pseudo-counts follow the counts of all classes; None if the prior does not say, which makes
        leave-one-out slow.

    See Also
    --------
    deciban.families.Gaussian : Two parameters in place of many bins.

    Examples
    --------
    >>> import numpy as np
    >>> from deciban.families import Binned, Context
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
    bits: int | None = None
    independent_classes: ClassVar[bool] = False  # how fine the histogram is depends on all rows

    def __post_init__(self) -> None:
        if self.bins not in ("supervised", "equal-frequency", "equal-width"):
            raise DecibanError(f"Binned: bins must be supervised, equal-frequency or equal-width, not {self.bins!r}")
        if not 1 <= self.count <= MAX_BINS or self.cap < 2:
            raise DecibanError(f"Binned: count must be from 1 to {MAX_BINS}, cap 2 or more")
        if self.bits is not None and self.bits < 2:
            raise DecibanError("Binned: bits must be 2 or more, or None")

    def collect(self, values: NDArray[Any], labels: Labels, weights: FloatArray | None, classes: int) -> Histogram:
        forbid_infinite(values)
        return Histogram.of(values, labels, weights, classes, self.cap, self.bits)

    def estimate(self, statistic: Histogram, context: Context) -> BinnedParams:
        prior = self.prior_in(context)
        cuts, tables = [], []
        for j in range(len(statistic.keys)):
            lower, upper, table = statistic.lower(j), statistic.upper(j), statistic.table(j)
            after = self._places(lower, upper, table.value)  # the cell before each cut
            counts = table.group(bins_of(after, len(lower)), len(after) + 1).value
            cuts.append(cut_values(lower, upper, after))
            tables.append(log_frequencies(counts, _pseudo_counts(prior, counts, context)))
        return BinnedParams(tuple(cuts), tuple(tables))

    def _places(self, lower: FloatArray, upper: FloatArray, counts: FloatArray) -> IntArray:
        if len(lower) < 2:
            return np.zeros(0, np.intp)
        if self.bins == "supervised":
            return np.array(sorted(supervised_cuts(counts)), dtype=np.intp)
        if self.bins == "equal-width":
            return equal_width(lower, upper, self.count)
        return equal_frequency(counts.sum(axis=0), self.count)

    def add_log_density(self, params: BinnedParams, values: NDArray[Any], out: FloatArray) -> None:
        ends = np.cumsum([0, *(len(cuts) + 1 for cuts in params.cuts)], dtype=np.int64)
        table = padded_table(np.hstack(params.log_p))
        _kernels.add_table(self._codes(params, values), ends, table, out.shape[1], out)

    def leave_one_out(self, fitted: Fitted[Histogram, BinnedParams], rows: LabelledValues, out: FloatArray) -> None:
        """Computed once for rows of equal class, cell and weight."""
        prior = self.prior_in(fitted.context)
        follows = getattr(prior, "follows", None)
        if follows is None:
            super().leave_one_out(fitted, rows, out)
            return
        for j in range(rows.values.shape[1]):
            present_rows = np.flatnonzero(~np.isnan(rows.values[:, j]))
            column, present = fitted.columns([j]), rows.columns([j]).take(present_rows)
            first, inverse, cells = _distinct(column.statistic, present)
            scores = self._scores_without(column.statistic, column.context, prior, follows, cells)
            undecided = np.flatnonzero(np.isnan(scores).any(axis=1))
            scores[undecided] = 0.0
            self.estimate_without(column, present.take(first), undecided, scores)
            out[present_rows] += scores[inverse]

    def _scores_without(
        self, statistic: Histogram, context: Context, prior: DiscretePrior, follows: float, cells: Cells
    ) -> FloatArray:
        """(m, K) log p of each cell without it; NaN where that needs an estimate of its own."""
        table = statistic.table(0)
        scores = np.full((len(cells.labels), len(context.classes)), np.nan)
        emptied = table.total().subtract(cells.weights, cells.index) == 0
        for after, which in self._known_cuttings(statistic, cells, emptied):
            # a cut beside an emptied cell moves, perhaps to the other side of x
            beside = np.isin(cells.index[which], [*after, *(after + 1)])
            kept = which[~(emptied[which] & beside)]
            bins = bins_of(after, table.shape[1])
            binned = table.group(bins, len(after) + 1)
            in_bins = Cells(cells.labels[kept], bins[cells.index[kept]], cells.weights[kept])
            pseudo = _pseudo_counts(prior, binned.value, context)
            scores[kept] = log_frequencies_without(binned, pseudo, follows, in_bins)
        return scores

    def _known_cuttings(
        self, statistic: Histogram, cells: Cells, emptied: BoolArray
    ) -> list[tuple[IntArray, IntArray]]:
        """The cached cuts: they do not depend on smoothing, so they are computed once while it is selected."""
        key = (self.bins, self.count, cells.labels.tobytes(), cells.index.tobytes(), cells.weights.tobytes())
        known = _CUTTINGS.get(statistic)
        if known is None or known[0] != key:
            known = _CUTTINGS[statistic] = (key, list(self._cuttings(statistic, cells, emptied)))
        return known[1]

    def _cuttings(self, statistic: Histogram, cells: Cells, emptied: BoolArray) -> Cuttings:
        """The cuts without each of the cells, except those that rounding could change."""
        counts = statistic.table(0).value
        if self.bins == "supervised":
            yield from supervised_cuts_without(counts, cells)
        elif self.bins == "equal-frequency":
            yield from equal_frequency_without(counts.sum(axis=0), self.count, cells)
        else:  # only the first and the last cell matter
            end = (cells.index == 0) | (cells.index == counts.shape[1] - 1)
            yield self._places(statistic.lower(0), statistic.upper(0), counts), np.flatnonzero(~(emptied & end))

    def recall(self, statistic: Histogram) -> LabelledValues:
        values, labels, times = statistic.occupied(0)
        return LabelledValues(values[:, np.newaxis], labels, times)

    def natural(self, params: BinnedParams, context: Context) -> Natural:
        """log p(b|c) for T = 1 if x is in bin b, for every bin b."""
        names = [_intervals(column, cuts) for column, cuts in zip(context.columns, params.cuts, strict=True)]
        return by_value(params.log_p, names, self.silent(params), context, self)

    def sufficient(self, params: BinnedParams, values: NDArray[Any]) -> Any:
        return indicators(self._codes(params, values), params.log_p, self.silent(params))

    def _codes(self, params: BinnedParams, values: NDArray[Any]) -> NDArray[np.int32]:
        """The bin of each value, −1 where it is missing."""
        forbid_infinite(values)
        codes = np.empty(values.shape, dtype=np.int32)
        for j, cuts in enumerate(params.cuts):
            bins = np.searchsorted(cuts, values[:, j], side="right")
            codes[:, j] = np.where(np.isnan(values[:, j]), -1, bins)
        return codes

    def silent(self, params: BinnedParams) -> Sequence[int]:
        return [j for j, cuts in enumerate(params.cuts) if not len(cuts)]

    def param_shapes(self, params: BinnedParams, classes: int, columns: int) -> dict[str, Shaped]:
        cuts: dict[str, Shaped] = {f"cuts {j}": (cut, (cut.size,)) for j, cut in enumerate(params.cuts)}
        sizes = [1 + cut.size for cut in params.cuts]
        return cuts | {f"log_p {j}": (p, (classes, sizes[j])) for j, p in enumerate(params.log_p)}

    def n_parameters(self, params: BinnedParams) -> int:
        return sum(log_p.shape[0] * len(cuts) for cuts, log_p in zip(params.cuts, params.log_p, strict=True))

    def formula(self, params: BinnedParams) -> list[Formula]:
        codes = [formulas.Code(j, len(cuts) + 1, cuts=cuts) for j, cuts in enumerate(params.cuts)]
        return [formulas.Lookup((j,), (code,), params.log_p[j].T) for j, code in enumerate(codes)]

    def linear_formula(self, params: BinnedParams, weights: FloatArray) -> list[Formula]:
        return self.formula(replace(params, log_p=tables_of(weights, params.log_p, self.silent(params))))

    def describe_column(self, params: BinnedParams, column: int) -> str:
        return f"{counted(len(params.cuts[column]) + 1, 'bin')} ({self.bins}), a probability for each in each class"

    def describe(self, params: BinnedParams, context: Context) -> list[Table]:
        tables = []
        for name, cuts, log_p in zip(context.columns, params.cuts, params.log_p, strict=True):
            edges = [f"{cut:.6g}" for cut in cuts]
            names = [f"< {edges[0]}", *(f"< {edge}" for edge in edges[1:]), f">= {edges[-1]}"] if edges else ["all"]
            tables.append(self._table(context, name, names, list(np.exp(log_p).T)))
        return tables


def _intervals(column: Level, cuts: FloatArray) -> list[str]:
    """The names of the bins, with as many digits as distinguish the cuts.

    >>> _intervals("age", np.array([2.5, 7.0]))
    ['age < 2.5', '2.5 ≤ age < 7', 'age ≥ 7']
    """
    texts = ([f"{cut:.{digits}g}" for cut in cuts] for digits in range(6, 18))
    edges = next(text for text in texts if len(set(text)) == len(cuts))
    if not edges:
        return []  # a single bin is no evidence
    between = [f"{low} ≤ {column} < {high}" for low, high in pairwise(edges)]
    return [f"{column} < {edges[0]}", *between, f"{column} ≥ {edges[-1]}"]


def _distinct(statistic: Histogram, rows: LabelledValues) -> tuple[IntArray, IntArray, Cells]:
    """The distinct rows by class, cell and weight: the first of each, each row's index among them, and their cells."""
    keys, labels = statistic.keys[0], rows.labels
    index = np.searchsorted(keys, keys_of(rows.values[:, 0].astype(np.float64)) >> statistic.levels[0])
    w = np.ones(len(rows)) if rows.weights is None else rows.weights
    unique_weights, of_weight = np.unique(w, return_inverse=True)
    code = (labels.astype(np.int64) * len(keys) + index) * len(unique_weights) + of_weight
    _, first, inverse = np.unique(code, return_index=True, return_inverse=True)
    return first, inverse, Cells(labels[first], index[first], w[first])


def _pseudo_counts(prior: DiscretePrior, counts: FloatArray, context: Context) -> FloatArray:
    return prior.pseudo_counts(counts, tuple(range(counts.shape[1])), context.classes)
