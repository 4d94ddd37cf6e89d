"""How common the values of a column are in each class: by the model's densities, or as they were counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from deciban.charts.figures import Figures, table
from deciban.report.reading import Reading
from deciban.report.rows import weights_of
from deciban.report.scales import bins_between, spread, widths
from deciban.statistics import Counts, Histogram
from deciban.table import numbered
from deciban.types import FloatArray, Level

BINS = 30  # of numbers that are counted
WHOLE = 2.0**50  # whole numbers below it have halves between them
MISSING = "(missing)"
ENDS = ("from", "to")
BY_MODEL, BY_ROWS, OF_ALL = "p(x | class) by the model", "share of the rows of each class", "share of the rows"


@dataclass(frozen=True)
class Points:
    """Where a column is asked: values, and what they are called; of steps, the ends of each."""

    chart: str  # "levels", "numbers" or "steps"
    values: list[Any]
    rows: FloatArray  # (m) Σ w of rows of the sample; NaN where they were not counted
    others: tuple[int, float] = (0, 0.0)  # values that are not shown by themselves, and Σ w of their rows
    edges: FloatArray | None = None  # (m + 1)
    scale: Figures | None = None  # of numbers and steps, where it is not even

    def keys(self, i: int) -> tuple[Any, ...]:
        if self.edges is not None:
            return self.edges[i], self.edges[i + 1]
        return (self.names[i] if self.chart == "levels" else self.values[i],)

    @cached_property
    def names(self) -> list[str]:
        """Of levels, all different: a text may be "(missing)", too."""
        return numbered(map(called, self.values))


def called(level: Level) -> str:
    return MISSING if level is None else str(level)


def shares_by_model(reading: Reading, at: Points, nats: FloatArray) -> tuple[Figures, str]:
    """p(x|c) at the points: of steps, the mass over the width.

    A value that says nothing at all, as one never learned or a missing cell that is skipped, has none.
    """
    wide = 1.0 if at.edges is None else widths(at.edges, at.scale)[:, np.newaxis]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        density = np.exp(nats) / wide
    kept = [i for i in range(len(at.values)) if at.chart != "levels" or nats[i].any()]
    rows = [(*at.keys(i), name, density[i, k]) for k, name in enumerate(reading.names) for i in kept]
    return table((*(("value",) if at.edges is None else ENDS), "class", "density"), rows), BY_MODEL


def shares_counted(reading: Reading, j: int, at: Points) -> tuple[Figures, str]:
    """Shares of cells as a weighed model has counted them, or among these rows; of numbers, over widths on the axis."""
    if at.chart == "levels":
        counts, of = _level_counts(reading, j, at.values)
        keys: list[tuple[Any, ...]] = [(name,) for name in at.names]
        wide = np.ones(len(keys))
    else:
        edges, counts, of = _bin_counts(reading, j, at.scale)
        keys, wide = list(pairwise(edges.tolist())), widths(edges, at.scale)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # a constant has no width, so no density
        share = np.where(wide > 0, (counts / np.maximum(counts.sum(axis=0), 1e-300)).T / wide, np.nan)
    rows = [(*key, name, share[k, i]) for k, name in enumerate(reading.names) for i, key in enumerate(keys)]
    return table((*(("value",) if at.chart == "levels" else ENDS), "class", "density"), rows), of


def _level_counts(reading: Reading, j: int, levels: Sequence[Level]) -> tuple[FloatArray, str]:
    """(levels, K) Σ w."""
    if reading.weighed is not None:
        block, _, at = reading.block(j)
        if block is not None and isinstance(block.statistic, Counts):
            statistic = block.statistic
            counts = statistic.table.value[:, statistic.offsets[at] : statistic.offsets[at + 1]].T
            place = {level: i for i, level in enumerate(statistic.levels[at])}
            known = [counts[place[v]] if v in place else np.zeros(len(reading.names)) for v in levels]
            return np.array(known).reshape(len(levels), -1), BY_MODEL
    sample = reading.of.sample
    coded = sample.frame.coded([reading.place(j)])
    place = {level: i for i, level in enumerate(coded.levels[0])}
    found = np.zeros((len(levels), len(reading.names)))
    weights = weights_of(sample)
    for i, level in enumerate(levels):
        mine = coded.codes[:, 0] == (-1 if level is None else place.get(level, len(place)))
        for k in range(len(reading.names)):
            found[i, k] = weights[mine & (reading.labels == k)].sum()
    return found, OF_ALL if reading.numbers else BY_ROWS


def _bin_counts(reading: Reading, j: int, scale: Figures | None) -> tuple[FloatArray, FloatArray, str]:
    """(m + 1) edges of bins that are equally wide on a scale, and (m, K) Σ w in them."""
    block, _, at = reading.block(j) if reading.weighed is not None else (None, None, 0)
    if block is not None and isinstance(block.statistic, Histogram) and len(block.statistic.keys[at]):
        x, counts = block.statistic.lower(at), block.statistic.table(at)
        edges = _even(x, scale)
        return edges, counts.group(bins_between(edges, x), len(edges) - 1).value.T, BY_MODEL
    x, weights = reading.column(j), weights_of(reading.of.sample)
    there = ~np.isnan(x) & (reading.labels >= 0)
    edges = _even(x[there], scale)
    found = np.zeros((len(edges) - 1, len(reading.names)))
    np.add.at(found, (bins_between(edges, x[there]), reading.labels[there]), weights[there])
    return edges, found, OF_ALL if reading.numbers else BY_ROWS


def _even(x: FloatArray, scale: Figures | None) -> FloatArray:
    """Edges from the least number to the largest; of one number twice that, and of none, one edge and so no bin.

    Whole numbers lie in the middle: bins hold equally many of them, or some would seem more common than others.

    >>> _even(np.array([1.0, 2.0, 4.0]), None), _even(np.array([0.5]), None)
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
