"""Scales: how numbers are spread on an axis where a few of them lie far from the others, and bins on it."""

from __future__ import annotations

from math import floor, log10

import numpy as np

from deciban.plots.figures import Figures, rounded
from deciban.types import FloatArray, IntArray

TAIL = 30  # times as wide as the middle: a range in which nothing of the middle is seen
NEAR = 10  # percent of the cells that are not 0 lie nearer to 0 than the constant
MOST_TICKS = 8
LARGEST = float(np.finfo(float).max)
BINS = 20  # of equally many rows
LEAST = 0.01  # of all rows are in such a bin
NARROW = 100  # times as wide as the narrowest bin that can be seen


def scale_of(x: FloatArray) -> Figures | None:
    """sign(x)·log(1 + |x|/c), c being the tenth percentile of |x| where x is not 0; None where an even scale will do.

    That is where the range is no more than 30 times the distance between the quartiles, or c: numbers that are all far
    from 0 are not told apart by it.

    >>> scale_of(np.array([0.0] * 90 + [1.0, 5.0, 70.0, 1000.0]))
    {'constant': 2.2, 'ticks': [0.0, 1.0, 10.0, 100.0, 1000.0]}
    """
    sizes = np.abs(x[x != 0])
    if not len(sizes):
        return None
    low, first, third, high = np.percentile(x, [0, 25, 75, 100]).tolist()
    constant = rounded(np.percentile(sizes, NEAR))
    wide = high / constant - low / constant  # not the range itself, which may be more than a number can hold
    if not TAIL * max(1.0, (third - first) / constant) < wide < np.inf:
        return None
    return {"constant": constant, "ticks": _ticks(low, high, constant)}


def _ticks(low: float, high: float, constant: float) -> list[float]:
    """0 and powers of ten on both sides, as far as they are in the range; smaller ones than the constant would crowd.

    >>> _ticks(-30.0, 2e4, 1.0)
    [-10.0, -1.0, 0.0, 1.0, 10.0, 100.0, 1000.0, 10000.0]
    >>> _ticks(-30.0, 2e5, 1.0)
    [-10.0, 0.0, 10.0, 1000.0, 100000.0]
    """
    tens = range(floor(log10(constant)), floor(log10(max(-low, high))) + 1)
    for apart in range(1, len(tens) + 1):
        powers = [10.0**ten for ten in tens[::-apart]]
        ticks = [tick for tick in (*(-power for power in powers), 0.0, *reversed(powers)) if low <= tick <= high]
        if len(ticks) <= MOST_TICKS:
            break
    return ticks


def placed(x: FloatArray, scale: Figures | None) -> FloatArray:
    """Where numbers lie on a scale.

    >>> placed(np.array([-1.0, 0.0, 1.0]), {"constant": 1.0}).round(3)
    array([-0.693,  0.   ,  0.693])
    """
    if scale is None:
        return x
    with np.errstate(over="ignore"):
        times = np.minimum(np.abs(x) / scale["constant"], LARGEST)
    bent: FloatArray = np.sign(x) * np.log1p(times)
    return bent


def spread(low: float, high: float, points: int, scale: Figures | None) -> FloatArray:
    """Numbers from low to high that lie evenly on a scale.

    >>> spread(0.0, 8.0, 3, None), spread(0.0, 8.0, 3, {"constant": 1.0})
    (array([0., 4., 8.]), array([0., 2., 8.]))
    """
    if scale is None:
        return np.unique(2 * np.linspace(low / 2, high / 2, points))  # the whole range may be more than a number holds
    first, last = placed(np.array([low, high]), scale).tolist()
    places = np.linspace(first, last, points)
    numbers = np.sign(places) * np.expm1(np.abs(places)) * scale["constant"]
    return np.unique(np.append(np.clip(numbers, low, high), [low, high]))


# Bins ----------------------------------------------------------------------------------------------------------------


def bins_of_rows(x: FloatArray, weights: FloatArray, scale: Figures | None) -> FloatArray:
    """Edges of about BINS bins of equally many rows.

    A number that alone has as many has a bin of its own, and the bins of the others are made without it. No bin is so
    narrow on the scale that it could not be seen, but for those.

    >>> bins_of_rows(np.array([0.0] * 90 + [1.0] * 5 + [9.0] * 5), np.ones(100), None)
    array([0. , 0.5, 5. , 9. ])
    """
    if not len(x):
        return np.zeros(1)
    values, of = np.unique(x, return_inverse=True)
    rows = np.bincount(of, weights=weights)
    heavy = rows >= rows.sum() / BINS
    enough = max(rows[~heavy].sum() / max(1, BINS - heavy.sum()), LEAST * rows.sum())
    places = placed(values, scale) / 2  # the whole range may be more than a number holds
    narrow = (places[-1] - places[0]) / NARROW
    cuts, first, met = [], 0, 0.0  # the first value of the bin that is being filled, and Σ w in it
    for i in range(len(values) - 1):
        met += rows[i]
        full = met >= enough and places[i + 1] - places[first] >= narrow
        if full or heavy[i] or heavy[i + 1]:
            cuts.append(values[i] / 2 + values[i + 1] / 2)
            first, met = i + 1, 0.0
    return np.array([values[0], *cuts, values[-1]])


def bins_between(edges: FloatArray, x: FloatArray) -> IntArray:
    """The bin of each number; those beyond the ends are in the first and the last.

    >>> bins_between(np.array([0.0, 1.0, 2.0]), np.array([-1.0, 0.5, 1.0, 2.0])).tolist()
    [0, 0, 1, 1]
    """
    return np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(edges) - 2)


def widths(edges: FloatArray, scale: Figures | None) -> FloatArray:
    """Of bins, on a scale: shares over these are areas on the axis."""
    with np.errstate(over="ignore"):
        return np.diff(placed(edges, scale))
