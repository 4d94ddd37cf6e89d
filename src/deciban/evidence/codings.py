"""Codings and encodings of features, made from the statistics of single features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban.evidence.mixed_columns import MOST_CODES, Coding, Encoding
from deciban.evidence.tables import by_rows_and_values, rare_below
from deciban.families import Binned, Categorical, Gaussian
from deciban.families.cuts import cut_values, equal_frequency
from deciban.generative.block import Block
from deciban.generative.model import Generative
from deciban.statistics import Counts, Histogram, Moments
from deciban.types import FloatArray, Levels

COARSE = 5  # cuts of a number, for pairs
LISTED = 16  # values of a category that have entries in a joint normal
WIDEST = 256  # entries of a joint normal
PRODUCTS = 1 << 23  # numbers in its scatter


def distinct(columns: Sequence[NDArray[Any]]) -> list[int]:
    """The indices of columns that differ from all before them."""
    first: dict[bytes, int] = {}
    for i, column in enumerate(columns):
        first.setdefault(column.tobytes(), i)
    return list(first.values())


def _block_of(model: Generative, family: type) -> Block | None:
    blocks = (block for block in model.blocks if not block.plan.presence)
    return next((block for block in blocks if type(block.family) is family), None)


def _frequent(counts: Counts, most: int) -> list[tuple[Levels, FloatArray]]:
    """For each feature at most `most` values that are not rare, the most frequent first, and their counts."""
    frequent = []
    total = counts.table.value.sum(axis=0)
    for j, levels in enumerate(counts.levels):
        sizes = total[counts.offsets[j] : counts.offsets[j + 1]]
        least = rare_below(float(sizes.sum()))
        order = [i for i in np.argsort(-sizes, kind="stable") if sizes[i] >= least and levels[i] is not None][:most]
        frequent.append((tuple(levels[i] for i in order), sizes[order]))
    return frequent


def make_coding(model: Generative, bins: int) -> tuple[tuple[int, ...], Coding]:
    """The features that vary, and their codes: bins of equal frequency, and the values that are not rare."""
    numbers, categories = _block_of(model, Binned), _block_of(model, Categorical)
    codes: dict[int, tuple[tuple[float, ...] | None, Levels | None]] = {}
    if numbers is not None:
        statistic = numbers.statistic
        assert isinstance(statistic, Histogram)
        for i, j in enumerate(numbers.plan.columns):
            counts = statistic.table(i).value.sum(axis=0)
            if len(counts) < 2:
                continue
            sizes = by_rows_and_values(counts) if bins > COARSE else counts
            after = equal_frequency(sizes, bins + 1)
            if len(after):
                codes[j] = tuple(cut_values(statistic.lower(i), statistic.upper(i), after).tolist()), None
    if categories is not None:
        assert isinstance(categories.statistic, Counts)
        frequent = _frequent(categories.statistic, MOST_CODES - 2)
        for j, (levels, _) in zip(categories.plan.columns, frequent, strict=True):
            if levels:
                codes[j] = None, levels
    columns = tuple(sorted(codes))
    return columns, Coding(tuple(codes[j][0] for j in columns), tuple(codes[j][1] for j in columns))


def make_encoding(model: Generative) -> tuple[tuple[int, ...], Encoding]:
    """Features for a joint normal: all, or the numbers alone, or none, whichever is not too wide.

    Derived features are left to tables and trees: a gap is linear in two dates, and calendars are wide.
    """
    numbers, ranges = _scales(model)
    categories = _listed(model)
    classes = len(model.classes)

    def fits(width: int) -> bool:
        return 0 < width <= WIDEST and classes * width**2 <= PRODUCTS

    if not fits(len(numbers) + sum(len(levels) - baseline for levels, baseline in categories.values())):
        categories = {}
    if not categories and not fits(len(numbers)):
        numbers = {}
    columns = tuple(sorted([*numbers, *categories]))
    middle, spread = (tuple(numbers[j][i] if j in numbers else None for j in columns) for i in (0, 1))
    levels = tuple(categories[j][0] if j in categories else None for j in columns)
    baseline = tuple(categories[j][1] if j in categories else False for j in columns)
    range_of = tuple(ranges[j] if j in numbers else None for j in columns)
    return columns, Encoding(middle, spread, range_of, levels, baseline)


def _scales(model: Generative) -> tuple[dict[int, tuple[float, float]], dict[int, tuple[float, float]]]:
    """For each number that varies its mean and standard deviation; for each number its range."""
    histograms, moments = _block_of(model, Binned), _block_of(model, Gaussian)
    scales: dict[int, tuple[float, float]] = {}
    ranges: dict[int, tuple[float, float]] = {}
    if moments is None or histograms is None:
        return scales, ranges
    assert isinstance(histograms.statistic, Histogram)
    for i, j in enumerate(histograms.plan.columns):
        if len(histograms.statistic.keys[i]):
            ranges[j] = float(histograms.statistic.lower(i)[0]), float(histograms.statistic.upper(i)[-1])
    assert isinstance(moments.statistic, Moments)
    pooled = moments.statistic.pooled()
    spread = np.sqrt(pooled.squares[0] / np.maximum(pooled.count.value[0], 1.0))
    for i, j in enumerate(moments.plan.columns):
        if spread[i] > 0 and j < len(model.schema.names):
            scales[j] = float(pooled.mean[0, i]), float(spread[i])
    return scales, ranges


def _listed(model: Generative) -> dict[int, tuple[Levels, bool]]:
    """For each category its frequent values, and whether the first is the baseline: if no row has any other."""
    block = _block_of(model, Categorical)
    if block is None:
        return {}
    assert isinstance(block.statistic, Counts)
    listed: dict[int, tuple[Levels, bool]] = {}
    for j, (levels, sizes) in zip(block.columns, _frequent(block.statistic, LISTED), strict=True):
        complete = bool(sizes.sum() >= model.counts.value.sum())  # then the other entries imply the last
        if j < len(model.schema.names) and len(levels) > (1 if complete else 0):
            listed[j] = levels, complete
    return listed
