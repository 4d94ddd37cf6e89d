"""How common the values of a feature are in each class: by the densities of the model, or counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban.plots.figures import Figures, table
from deciban.report.axis_scales import bins_between, spread, widths
from deciban.report.model_view import ModelView
from deciban.report.report_input import weights_of
from deciban.statistics import Counts, Histogram
from deciban.table import numbered
from deciban.types import FloatArray, Level

BINS = 30  # in which numbers are counted
WHOLE = 2.0**50  # below it, integers ± ½ are exact
MISSING = "(missing)"
ENDS = ("from", "to")
BY_MODEL, BY_ROWS, OF_ALL = "p(x | class) by the model", "share of the rows of each class", "share of the rows"


@dataclass(frozen=True)
class Points:
    """The points of a feature's chart: levels, numbers, or steps with their ends."""

    chart: str  # "levels", "numbers" or "steps"
    values: list[Any]
    rows: FloatArray  # (m) Σ w in the sample; NaN where it was not counted
    others: tuple[int, float] = (0, 0.0)  # the number of values that are not shown, and Σ w of their rows
    edges: FloatArray | None = None  # (m + 1)
    scale: Figures | None = None  # of numbers and steps, where it is not linear

    def keys(self, i: int) -> tuple[Any, ...]:
        """The first cells of the i-th row of a table: a level, a number, or the ends of a step."""
        if self.edges is not None:
            return self.edges[i], self.edges[i + 1]
        return (self.names[i] if self.chart == "levels" else self.values[i],)

    @cached_property
    def names(self) -> list[str]:
        """The names of levels, made distinct: a level may be called "(missing)", too."""
        return numbered(map(level_name, self.values))


def level_name(level: Level) -> str:
    return MISSING if level is None else str(level)


def shares_by_model(view: ModelView, at: Points, nats: FloatArray) -> tuple[Figures, str]:
    """p(x|c) at the points; for steps, the probability divided by the width.

    Levels without evidence, which are unseen or skipped, are left out.
    """
    width = 1.0 if at.edges is None else widths(at.edges, at.scale)[:, np.newaxis]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        density = np.exp(nats) / width
    known = [i for i in range(len(at.values)) if at.chart != "levels" or nats[i].any()]
    rows = [(*at.keys(i), name, density[i, k]) for k, name in enumerate(view.names) for i in known]
    return table((*(("value",) if at.edges is None else ENDS), "class", "density"), rows), BY_MODEL


def shares_counted(view: ModelView, j: int, at: Points) -> tuple[Figures, str]:
    """Shares in the counts of weighted evidence, or in the sample; for numbers, divided by widths on the axis."""
    if at.chart == "levels":
        counts, title = _level_counts(view, j, at.values)
        keys: list[tuple[Any, ...]] = [(name,) for name in at.names]
        width = np.ones(len(keys))
    else:
        edges, counts, title = _bin_counts(view, j, at.scale)
        keys, width = list(pairwise(edges.tolist())), widths(edges, at.scale)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # a constant has no width, so no density
        share = np.where(width > 0, (counts / np.maximum(counts.sum(axis=0), 1e-300)).T / width, np.nan)
    rows = [(*key, name, share[k, i]) for k, name in enumerate(view.names) for i, key in enumerate(keys)]
    return table((*(("value",) if at.chart == "levels" else ENDS), "class", "density"), rows), title


def _level_counts(view: ModelView, j: int, levels: Sequence[Level]) -> tuple[FloatArray, str]:
    """(levels, K) Σ w, and what these are shares of."""
    statistic, at = view.counts(j)
    if isinstance(statistic, Counts):
        table = statistic.table.value[:, statistic.offsets[at] : statistic.offsets[at + 1]].T
        index = {level: i for i, level in enumerate(statistic.levels[at])}
        counts = [table[index[v]] if v in index else np.zeros(len(view.names)) for v in levels]
        return np.array(counts).reshape(len(levels), -1), BY_MODEL
    weights, classes = weights_of(view.data.sample), range(len(view.names))
    counts = [[weights[rows & (view.codes == k)].sum() for k in classes] for rows in rows_with(view, j, levels)]
    return np.array(counts).reshape(len(levels), -1), OF_ALL if view.regression else BY_ROWS


def rows_with(view: ModelView, j: int, levels: Sequence[Level]) -> list[NDArray[np.bool_]]:
    """For each level, (n) which rows of the sample have it."""
    coded = view.data.sample.frame.coded([view.data.position(j)])
    index: dict[Level, int] = {level: i for i, level in enumerate(coded.levels[0])} | {None: -1}
    return [coded.codes[:, 0] == index.get(level, len(index)) for level in levels]


def _bin_counts(view: ModelView, j: int, scale: Figures | None) -> tuple[FloatArray, FloatArray, str]:
    """(m + 1) edges of bins that are equally wide on a scale, (m, K) Σ w in them, and what these are shares of."""
    statistic, at = view.counts(j)
    if isinstance(statistic, Histogram) and len(statistic.keys[at]):
        x, table = statistic.lower(at), statistic.table(at)
        edges = _equal_bins(x, scale)
        return edges, table.group(bins_between(edges, x), len(edges) - 1).value.T, BY_MODEL
    x, weights = view.data.column(j), weights_of(view.data.sample)
    known = ~np.isnan(x) & (view.codes >= 0)
    edges = _equal_bins(x[known], scale)
    counts = np.zeros((len(edges) - 1, len(view.names)))
    np.add.at(counts, (bins_between(edges, x[known]), view.codes[known]), weights[known])
    return edges, counts, OF_ALL if view.regression else BY_ROWS


def _equal_bins(x: FloatArray, scale: Figures | None) -> FloatArray:
    """Edges from the smallest number to the largest; a single number gives two equal edges, and none a single edge.

    Bins of integers contain equally many of them; otherwise some would seem more common than others.

    >>> _equal_bins(np.array([1.0, 2.0, 4.0]), None), _equal_bins(np.array([0.5]), None)
    (array([0.5, 1.5, 2.5, 3.5, 4.5]), array([0.5, 0.5]))
    """
    if not len(x):
        return np.zeros(1)
    low, high = float(x.min()), float(x.max())
    if scale is None and low < high and max(-low, high) < WHOLE and (x == np.rint(x)).all():
        each = np.ceil((high - low + 1) / BINS)
        return np.append(np.arange(low - 0.5, high + 0.5, each), high + 0.5)
    edges = spread(low, high, BINS + 1, scale)
    return edges if len(edges) > 1 else np.repeat(edges, 2)
