"""Lines on a plane, against brute force."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from deciban.errors import DecibanError
from deciban.plots.contours import MOST_POINTS, TOLERANCE, Grid, cut, extent, level_lines, score_grid, thinned, ties

LINES = arrays(np.float64, st.tuples(st.integers(2, 60), st.just(2)), elements=st.floats(0, 1, width=32))


def distance(point, a, b):
    """Of a point from a segment."""
    chord = b - a
    t = np.clip((point - a) @ chord / (chord @ chord), 0, 1) if (chord @ chord) > 0 else 0.0
    return np.linalg.norm(point - a - t * chord)


@given(LINES)
def test_thinned_lines_keep_their_ends_and_are_near_every_point_they_dropped(line):
    kept = thinned(line)
    assert (kept[0], kept[-1]) == (0, len(line) - 1)
    assert (np.diff(kept) > 0).all()
    for a, b in pairwise(kept):
        for i in range(a + 1, b):
            assert distance(line[i], line[a], line[b]) <= TOLERANCE * (1 + 1e-9)


def test_thinned_lines_have_a_most_and_spend_it_on_the_largest_corners():
    x = np.linspace(0, 1, 20_001)
    zigzag = np.column_stack([x, np.where(np.arange(len(x)) % 2, 0.01, 0.0)])
    zigzag[10_001, 1] = 1.0
    kept = thinned(zigzag)
    assert len(kept) == MOST_POINTS
    assert 10_001 in kept


def test_a_closed_line_is_not_lost():
    angle = np.linspace(0, 2 * np.pi, 1000)
    kept = thinned(0.5 + 0.4 * np.column_stack([np.cos(angle), np.sin(angle)]))
    least = np.pi / np.arccos(1 - TOLERANCE / 0.4)  # chords, each off by the most it may be
    assert least <= len(kept) <= 2 * least + 1


def test_straight_runs_go():
    assert thinned(np.array([[0, 0], [0, 0.3], [0, 1], [0.4, 1], [1, 1]])).tolist() == [0, 2, 4]


@given(st.integers(2, 20), st.integers(0, 1000))
def test_cut_keeps_what_leads_and_nothing_else(n, seed):
    rng = np.random.default_rng(seed)
    along = np.sort(rng.random(n))
    lead = rng.normal(size=n)
    line = np.column_stack([along, 2 * along])
    pieces = [(piece[0, 0], piece[-1, 0]) for piece in cut(line, lead)]
    for t in rng.uniform(along[0], along[-1], 50):
        value = np.interp(t, along, lead)
        if abs(value) > 1e-6:
            assert any(a <= t <= b for a, b in pieces) == (value > 0)


def test_ties_of_three_planes_are_three_lines_from_one_point():
    """x, y and 1 − x − y tie at (⅓, ⅓)."""
    grid = Grid(np.linspace(0, 1, 12), np.linspace(0, 1, 9))
    x, y = grid.nodes.T
    lines = ties(grid, grid.field(np.column_stack([x, y, 1 - x - y])))
    ends = np.array([end for line in lines for end in (line[0], line[-1])])
    assert len(lines) == 3
    assert (np.abs(ends - 1 / 3).max(axis=1) < 1e-12).sum() == 3
    outer = ends[np.abs(ends - 1 / 3).max(axis=1) >= 1e-12]
    np.testing.assert_allclose(sorted(outer.tolist()), [[0, 0.5], [0.5, 0], [1, 1]], atol=1e-12)


def test_where_no_class_is_possible_there_is_no_tie():
    grid = Grid(np.arange(5.0), np.arange(3.0))
    x = grid.nodes[:, 0]
    first, second = np.where(x < 2, 0.0, -np.inf), np.where((x > 1) & (x < 4), 0.0, -np.inf)
    lines = ties(grid, grid.field(np.column_stack([first, second])))
    assert len(lines) == 1  # between 1 and 2, not at 4
    assert ((lines[0][:, 0] > 1) & (lines[0][:, 0] < 2)).all()


def test_level_lines_of_a_cone_are_circles():
    grid = Grid(np.linspace(-1, 1, 201), np.linspace(-1, 1, 201))
    (circle,) = level_lines(grid, grid.field(np.hypot(*grid.nodes.T)), 0.5)
    np.testing.assert_allclose(np.hypot(*circle.T), 0.5, atol=1e-4)


def test_a_constant_column_has_an_extent():
    low, high = extent(np.array([[1.0, 5.0], [3.0, 5.0]]))
    np.testing.assert_allclose(np.stack([low, high]), [[0.9, 4.5], [3.1, 5.5]])


def test_a_second_grid_keeps_to_what_was_seen():
    cells = np.array([[0.0, 0.5], [1000.0, 2.5], [3.0, 0.75]])
    grid = Grid.within(cells)
    assert (grid.x == np.floor(grid.x)).all()
    assert (grid.x.min(), grid.y.min(), grid.y.max()) == (0, 0.5, 2.5)
    assert len(grid.x) <= 210


def test_an_error_that_the_second_grid_does_not_mend_is_told():
    def refuse(nodes):
        raise DecibanError("never")

    with pytest.raises(DecibanError, match="never"):
        score_grid(refuse, np.array([[0.0, 1.0], [1.0, 2.0]]))
