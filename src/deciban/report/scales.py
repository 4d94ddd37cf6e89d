"""Scales: how numbers are spread on an axis where a few of them lie far from the others."""

from __future__ import annotations

from math import floor, log10

import numpy as np

from deciban.charts.figures import Figures, rounded
from deciban.types import FloatArray

TAIL = 30  # times as wide as the middle: a range in which nothing of the middle is seen
NEAR = 10  # percent of the cells that are not 0 lie nearer to 0 than the constant
MOST_TICKS = 8


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


def spread(low: float, high: float, points: int, scale: Figures | None) -> FloatArray:
    """Numbers from low to high that lie evenly on a scale.

    >>> spread(0.0, 8.0, 3, None), spread(0.0, 8.0, 3, {"constant": 1.0})
    (array([0., 4., 8.]), array([0., 2., 8.]))
    """
    if scale is None:
        return np.unique(np.linspace(low, high, points))
    constant = scale["constant"]
    first, last = (float(np.sign(end) * np.log1p(abs(end) / constant)) for end in (low, high))
    places = np.linspace(first, last, points)
    numbers = np.sign(places) * np.expm1(np.abs(places)) * constant
    return np.unique(np.append(np.clip(numbers, low, high), [low, high]))
