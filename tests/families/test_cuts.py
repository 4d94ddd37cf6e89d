"""Cuts: where a histogram is cut, with all rows and without one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from deciban.families.cuts import equal_frequency, equal_frequency_without, supervised_cuts, supervised_cuts_without
from deciban.families.loo.tally import Cells


@given(st.integers(1, 30), st.integers(1, 30), st.sampled_from([0.1, 0.3, 1 / 3, 0.7]))
def test_a_clean_cut_is_found_whatever_the_weights(left, right, weight):
    """Three cells of one class, then three of the other: the weights only scale the evidence."""
    counts = weight * np.array([[left, 5, 9, 0, 0, 0], [0, 0, 0, right, 7, 11]], dtype=np.float64)
    n = counts.sum()
    h = -sum(p * np.log2(p) for p in counts.sum(axis=1) / n)
    worth_it = n * h > np.log2(max(n - 1, 1)) + np.log2(7) - 2 * h
    assert supervised_cuts(counts) == ({2} if worth_it else set())


def all_cells(counts, weight):
    """One cell to be left out for each class and place that has as much."""
    labels, places = np.nonzero(counts >= weight)
    return Cells(labels.astype(np.int32), places, np.full(len(labels), weight))


def refitted(choose, counts, cells, i):
    """The places that `choose` finds in the counts less a cell; an emptied place is no place."""
    rest = counts.copy()
    rest[cells.labels[i], cells.index[i]] -= cells.weights[i]
    there = np.flatnonzero(rest.any(axis=0))
    return there[sorted(choose(rest[:, there]))].tolist()


def emptied(counts, cells):
    return counts.sum(axis=0)[cells.index] == cells.weights


def check_supervised(counts, weight):
    """Every group makes the cuts of a refit; returns the share of cells that are in one."""
    cells = all_cells(counts, weight)
    result = np.zeros(len(cells.labels), int)
    for after, which in supervised_cuts_without(counts, cells):
        result[which] += 1
        for i in which:
            assert after.tolist() == refitted(supervised_cuts, counts, cells, i)
    assert result.max(initial=0) <= 1
    return result.mean() if len(result) else 1.0


tables = hnp.arrays(
    np.float64, st.tuples(st.integers(1, 3), st.integers(1, 8)), elements=st.sampled_from([0, 1, 2, 9, 30])
)


@given(tables, st.sampled_from([1.0, 0.5, 0.3]))
def test_cuts_without_a_row_are_those_of_a_refit(counts, unit):
    check_supervised(unit * counts[:, counts.any(axis=0)], unit)


@pytest.mark.parametrize("counts", [np.eye(12), np.eye(12) + np.eye(12, k=3), np.eye(12) + np.ones((12, 1))])
def test_cuts_without_the_only_row_of_a_place_are_those_of_a_refit(counts):
    """Of so many classes almost any cut is welcome."""
    check_supervised(counts, 1.0)


@pytest.mark.parametrize(("rows", "classes", "unit"), [(150, 2, 1.0), (150, 9, 0.3), (300, 3, 0.5)])
def test_nearly_all_rows_take_the_short_way(rows, classes, unit):
    """Many cuts, of which some depend on a single row."""
    rng = np.random.default_rng(rows + classes)
    labels = rng.integers(0, classes, rows)
    x = np.round(rng.normal(labels, 0.5), 1)
    counts = unit * np.array([[np.sum((x == v) & (labels == c)) for v in np.unique(x)] for c in range(classes)], float)
    assert check_supervised(counts, unit) > 0.9


@given(tables, st.integers(1, 5), st.sampled_from([1.0, 0.5]))
def test_equal_shares_without_a_row_are_those_of_a_refit(counts, bins, unit):
    counts = unit * counts[:, counts.any(axis=0)]
    cells = all_cells(counts, unit)
    stays = ~emptied(counts, cells)
    result = np.zeros(len(cells.labels), int)
    for after, which in equal_frequency_without(counts.sum(axis=0), bins, cells):
        result[which] += 1
        for i in which[stays[which]]:
            assert after.tolist() == refitted(lambda rest: equal_frequency(rest.sum(axis=0), bins), counts, cells, i)
    assert (result == 1).all()
