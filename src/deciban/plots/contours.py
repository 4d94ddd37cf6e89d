"""Contour lines on a plane: where scores have a level, or tie; and lines with fewer points."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.interpolate import RegularGridInterpolator

from deciban.errors import DecibanError
from deciban.plots.libraries import contourpy
from deciban.types import FloatArray, IntArray

STEPS = 200  # of a grid, along each axis
SPACINGS = 10 * STEPS  # the least range of an axis, in spacings of floating-point numbers
TINY, LARGEST = 1e-290, 1e300  # ranges between them neither over- nor underflow
PADDING = 0.05  # of the range of a feature, on both sides
MOST_POINTS = 1000  # of a line
TOLERANCE = 1 / 2000  # of the side of the plane: the error of a thinned line, a fifth of a pixel


@dataclass(frozen=True)
class Grid:
    """Nodes at which scores are computed."""

    x: FloatArray  # (nx) ascending
    y: FloatArray  # (ny)

    @classmethod
    def around(cls, points: FloatArray) -> Grid:
        """A fine grid over the points (n, 2), with some padding."""
        low, high = extent(points)
        return cls(*(np.linspace(a, b, STEPS + 1) for a, b in zip(low, high, strict=True)))

    @classmethod
    def within(cls, points: FloatArray) -> Grid:
        """A grid within the points, for densities of positive numbers or integers: waiting times, counts."""
        return cls(*(_nodes_within(column) for column in points.T))

    @property
    def nodes(self) -> FloatArray:
        """(ny·nx, 2) row by row."""
        x, y = np.meshgrid(self.x, self.y)
        return np.column_stack([x.ravel(), y.ravel()])

    def field(self, values: FloatArray) -> FloatArray:
        """(ny, nx, …) from values (ny·nx, …) at the nodes."""
        return values.reshape(len(self.y), len(self.x), *values.shape[1:])


def fits_an_axis(column: FloatArray) -> bool:
    """Whether an axis over these numbers has finite and distinct nodes."""
    low, high = float(column.min()), float(column.max())
    half_range = high / 2 - low / 2 if high > low else 0.5
    least = max(TINY, SPACINGS * float(np.spacing(max(abs(low), abs(high)))))
    return least < half_range < LARGEST


def extent(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(2) the lower and (2) the upper ends of the axes."""
    low, high = points.min(axis=0), points.max(axis=0)
    padding = np.where(high > low, PADDING * (high - low), 0.5)
    return low - padding, high + padding


def _nodes_within(column: FloatArray) -> FloatArray:
    low, high = column.min(), column.max()
    high = high if high > low else low + 1
    if (column == np.floor(column)).all():
        return np.arange(low, high + 1, max(1, (high - low) // STEPS))
    return np.linspace(low, high, STEPS + 1)


def score_grid(score: Callable[[FloatArray], FloatArray], points: FloatArray) -> tuple[Grid, FloatArray]:
    """A grid around the points, or within them if scores are defined only there; and the scores (ny, nx, K)."""
    grid = Grid.around(points)
    try:
        return grid, grid.field(score(grid.nodes))
    except DecibanError:
        grid = Grid.within(points)
        return grid, grid.field(score(grid.nodes))


def level_lines(grid: Grid, values: FloatArray, level: float) -> list[FloatArray]:
    """Lines (m, 2) along which values (ny, nx) equal `level`; there are none through NaN.

    >>> line, = level_lines(Grid(np.arange(3.0), np.arange(2.0)), np.array([[0.0, 1.0, 2.0]] * 2), 0.5)
    >>> sorted(line.tolist())
    [[0.5, 0.0], [0.5, 1.0]]
    """
    lines: list[FloatArray] = contourpy.contour_generator(grid.x, grid.y, np.ma.masked_invalid(values)).lines(level)
    return lines


def ties(grid: Grid, scores: FloatArray) -> list[FloatArray]:
    """Lines along which two of the scores (ny, nx, K) tie and no other is higher.

    Pair by pair, so that each line comes once, and a linear difference gives an exact line.
    """
    return [line for j, k in _neighbours(scores.argmax(axis=2)) for line in _tie(grid, scores, j, k)]


def _neighbours(best: IntArray) -> list[tuple[int, int]]:
    """Pairs of classes that win at two corners of one grid cell; others do not tie on this grid.

    >>> _neighbours(np.array([[0, 0, 2], [1, 1, 2]]))
    [(0, 1), (0, 2), (1, 2)]
    """
    corners, n_classes = (best[:-1, :-1], best[:-1, 1:], best[1:, :-1], best[1:, 1:]), int(best.max(initial=0)) + 1
    together = np.zeros((n_classes, n_classes), np.bool_)
    for a, b in combinations(corners, 2):
        together[np.minimum(a, b), np.maximum(a, b)] = True
    return [(j, k) for j, k in np.argwhere(together).tolist() if j != k]


def _tie(grid: Grid, scores: FloatArray, j: int, k: int) -> Iterator[FloatArray]:
    """Lines along which classes j and k tie and no other score is higher."""
    with np.errstate(invalid="ignore"):  # impossible under both: −inf − −inf
        lead = _finite(scores[:, :, [j]] - scores)
    others = [i for i in range(scores.shape[2]) if i not in (j, k)]
    for line in level_lines(grid, lead[:, :, k], 0.0):
        if not others:
            yield line
            continue
        lead_over_others = np.nan_to_num(lead[:, :, others])
        # without bounds: rounding may put the end of a line just outside of the grid
        interpolate = RegularGridInterpolator((grid.y, grid.x), lead_over_others, bounds_error=False, fill_value=None)
        yield from cut(line, interpolate(line[:, ::-1]).min(axis=1))


def _finite(differences: FloatArray) -> FloatArray:
    """Infinite differences clipped to large ones, so that a zero can be interpolated."""
    finite = differences[np.isfinite(differences)]
    large = max(1.0, np.abs(finite).max(initial=0.0))
    return np.clip(differences, -large, large)


def cut(line: FloatArray, lead: FloatArray) -> Iterator[FloatArray]:
    """The pieces of a line (m, 2) where lead (m), interpolated linearly, is not below 0.

    >>> [piece.tolist() for piece in cut(np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]]), np.array([1.0, -1.0, -2.0]))]
    [[[0.0, 0.0], [0.5, 0.0]]]
    """
    inside = lead >= 0
    before = np.flatnonzero(inside[1:] != inside[:-1])
    share = (lead[before] / (lead[before] - lead[before + 1]))[:, np.newaxis]
    ends = line[before] + share * (line[before + 1] - line[before])
    points = np.insert(line, before + 1, ends, axis=0)
    valid = np.insert(inside, before + 1, True)
    for piece in np.split(np.arange(len(points)), np.flatnonzero(~valid)):
        piece = piece[valid[piece]]
        if len(piece) > 1:
            yield points[piece]


def thinned(line: FloatArray) -> IntArray:
    """Indices of at most MOST_POINTS points that draw the same line (m, 2), in units of the plane's side.

    Ramer, Douglas and Peucker, worst first: the point farthest from its chord is added next, until none is farther than
    TOLERANCE.

    >>> thinned(np.array([[0.0, 0.0], [0.2, 0.2], [0.5, 0.5], [0.5, 1.0], [1.0, 1.0]])).tolist()
    [0, 2, 3, 4]
    """
    chosen = {0, len(line) - 1}
    heap = list(_farthest(line, 0, len(line) - 1))
    while heap and len(chosen) < MOST_POINTS:
        _, first, worst, last = heapq.heappop(heap)
        chosen.add(worst)
        for part in (*_farthest(line, first, worst), *_farthest(line, worst, last)):
            heapq.heappush(heap, part)
    return np.array(sorted(chosen), dtype=np.intp)


def _farthest(line: FloatArray, first: int, last: int) -> Iterator[tuple[float, int, int, int]]:
    """(−distance, first, index, last) of the point farthest from the chord of two others, if beyond TOLERANCE."""
    if last - first < 2:
        return
    chord = line[last] - line[first]
    offsets = line[first + 1 : last] - line[first]
    length = chord @ chord  # squared; 0 where the line is closed
    along = np.clip(offsets @ chord / length, 0, 1) if length else np.zeros(len(offsets))
    distance = np.hypot(offsets[:, 0] - along * chord[0], offsets[:, 1] - along * chord[1])
    worst = int(np.argmax(distance))
    if distance[worst] > TOLERANCE:
        yield -float(distance[worst]), first, first + 1 + worst, last
