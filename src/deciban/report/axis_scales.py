"""Axis scales: linear, or symmetric logarithmic where a few numbers are far from the others; and bins on them."""

from __future__ import annotations

from math import floor, log10

import numpy as np

from deciban.plots.figures import Figures, rounded
from deciban.types import FloatArray, IntArray

TAIL = 30  # times the interquartile range: wider ranges have a logarithmic scale
PERCENTILE = 10  # of nonzero |x|: the constant of the scale
MOST_TICKS = 8
LARGEST = float(np.finfo(float).max)
BINS = 20  # of equally many rows
LEAST = 0.01  # the smallest bin, as a share of all rows
NARROW = 100  # the narrowest visible bin is 1/NARROW of the range


def scale_of(x: FloatArray) -> Figures | None:
    """sign(x)·log(1 + |x|/c), with c the tenth percentile of nonzero |x|; None for a linear scale.

    Linear where the range is at most 30 times the interquartile range, or c: a logarithm would not separate numbers
    that are all far from 0.

    >>> scale_of(np.array([0.0] * 90 + [1.0, 5.0, 70.0, 1000.0]))
    {'constant': 2.2, 'ticks': [0.0, 1.0, 10.0, 100.0, 1000.0]}
    """
    sizes = np.abs(x[x != 0])
    if not len(sizes):
        return None
    low, first, third, high = np.percentile(x, [0, 25, 75, 100]).tolist()
    constant = rounded(np.percentile(sizes, PERCENTILE))
    extent = high / constant - low / constant  # the range itself may overflow
    if not TAIL * max(1.0, (third - first) / constant) < extent < np.inf:
        return None
    return {"constant": constant, "ticks": _ticks(low, high, constant)}


def _ticks(low: float, high: float, constant: float) -> list[float]:
    """0, and the powers of ten on both sides within the range; those below the constant would crowd.

    >>> _ticks(-30.0, 2e4, 1.0)
    [-10.0, -1.0, 0.0, 1.0, 10.0, 100.0, 1000.0, 10000.0]
    >>> _ticks(-30.0, 2e5, 1.0)
    [-10.0, 0.0, 10.0, 1000.0, 100000.0]
    """
    tens = range(floor(log10(constant)), floor(log10(max(-low, high))) + 1)
    for step in range(1, len(tens) + 1):
        powers = [10.0**ten for ten in tens[::-step]]
        ticks = [tick for tick in (*(-power for power in powers), 0.0, *reversed(powers)) if low <= tick <= high]
        if len(ticks) <= MOST_TICKS:
            break
    return ticks


def coordinates(x: FloatArray, scale: Figures | None) -> FloatArray:
    """Numbers in the coordinates of a scale; as they are for a linear one.

    >>> coordinates(np.array([-1.0, 0.0, 1.0]), {"constant": 1.0}).round(3)
    array([-0.693,  0.   ,  0.693])
    """
    if scale is None:
        return x
    with np.errstate(over="ignore"):
        ratio = np.minimum(np.abs(x) / scale["constant"], LARGEST)
    symlog: FloatArray = np.sign(x) * np.log1p(ratio)
    return symlog


def spread(low: float, high: float, points: int, scale: Figures | None) -> FloatArray:
    """Numbers from low to high, evenly spaced on a scale.

    >>> spread(0.0, 8.0, 3, None), spread(0.0, 8.0, 3, {"constant": 1.0})
    (array([0., 4., 8.]), array([0., 2., 8.]))
    """
    if scale is None:
        return np.unique(2 * np.linspace(low / 2, high / 2, points))  # the range itself may overflow
    first, last = coordinates(np.array([low, high]), scale).tolist()
    at = np.linspace(first, last, points)
    numbers = np.sign(at) * np.expm1(np.abs(at)) * scale["constant"]
    return np.unique(np.append(np.clip(numbers, low, high), [low, high]))


def bins_of_rows(x: FloatArray, weights: FloatArray, scale: Figures | None) -> FloatArray:
    """Edges of about BINS bins of equally many rows.

    A value with at least a bin's share of the rows has a bin of its own. No other bin is too narrow to be visible.

    >>> bins_of_rows(np.array([0.0] * 90 + [1.0] * 5 + [9.0] * 5), np.ones(100), None)
    array([0. , 0.5, 5. , 9. ])
    """
    if not len(x):
        return np.zeros(1)
    values, index = np.unique(x, return_inverse=True)
    rows = np.bincount(index, weights=weights)
    heavy = rows >= rows.sum() / BINS
    enough = max(rows[~heavy].sum() / max(1, BINS - heavy.sum()), LEAST * rows.sum())
    places = coordinates(values, scale) / 2  # the range itself may overflow
    narrow = (places[-1] - places[0]) / NARROW
    cuts, first, filled = [], 0, 0.0  # the first value of the current bin, and Σ w in it
    for i in range(len(values) - 1):
        filled += rows[i]
        full = filled >= enough and places[i + 1] - places[first] >= narrow
        if full or heavy[i] or heavy[i + 1]:
            cuts.append(values[i] / 2 + values[i + 1] / 2)
            first, filled = i + 1, 0.0
    return np.array([values[0], *cuts, values[-1]])


def bins_between(edges: FloatArray, x: FloatArray) -> IntArray:
    """The bin of each number; those outside the edges are in the first or the last.

    >>> bins_between(np.array([0.0, 1.0, 2.0]), np.array([-1.0, 0.5, 1.0, 2.0])).tolist()
    [0, 0, 1, 1]
    """
    return np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(edges) - 2)


def widths(edges: FloatArray, scale: Figures | None) -> FloatArray:
    """The widths of bins on a scale: a share divided by its width is a density on the axis."""
    with np.errstate(over="ignore"):
        return np.diff(coordinates(edges, scale))
