"""A cell left out of a tally, in exact fractions."""

from fractions import Fraction
from math import log

import numpy as np
import pytest

from deciban.families.loo.tally import Cells, Tally, equal_weights, log_frequencies_without
from deciban.families.priors import Dirichlet, Laplace, Virtual
from deciban.statistics.sums import Sum

COUNTS = [[3, 1, 2], [0, 4, 1]]
CLASSES, LEVELS = ("no", "yes"), ("a", "b", "c")


def by_fractions(prior, c, v, w=1):
    """(K) log p of value v in each class, when w cells of it are taken from class c."""
    left = [[Fraction(k) for k in row] for row in COUNTS]
    left[c][v] -= w
    pseudo = prior.pseudo_counts(np.array(left, dtype=np.float64), LEVELS, CLASSES)
    rows = [[k + Fraction(float(a)) for k, a in zip(*pair, strict=True)] for pair in zip(left, pseudo, strict=True)]
    return [log(row[v] / sum(row)) if row[v] else -np.inf for row in rows]


@pytest.mark.parametrize("prior", [Laplace(1.0), Laplace(0.0), Dirichlet([2, 3, 1]), Virtual(2.5)], ids=repr)
def test_what_is_left_is_counted_again(prior):
    counts = Sum.of(COUNTS)
    pseudo = prior.pseudo_counts(counts.value, LEVELS, CLASSES)
    labels, places = np.nonzero(counts.value)
    cells = Cells(labels.astype(np.int32), places, np.ones(len(labels)))
    result = log_frequencies_without(counts, pseudo, prior.follows, cells)
    expected = [by_fractions(prior, c, v) for c, v in zip(labels, places, strict=True)]
    np.testing.assert_allclose(result, expected, rtol=1e-13)


def test_a_value_that_no_other_row_has_is_unknown_or_takes_the_reserved_place():
    counts, pseudo = Sum.of([[3.0, 1.0], [2.0, 0.0]]), np.full((2, 2), 0.5)
    cells = Cells(np.zeros(1, np.int32), np.array([1]), np.ones(1))
    assert np.isnan(log_frequencies_without(counts, pseudo, 0.0, cells)).all()
    tally = Tally.of(counts, pseudo, 0.0)
    with_place = Tally(counts, tally.present, pseudo, tally.all_pseudo + 0.5, 3, 0.0, reserved=np.full((2, 1), 0.5))
    result = with_place.at(cells.index).of_rows(cells.labels, cells.weights)
    # two values are left, a and the reserved one: ½ / (3 + 1) in the first class, ½ / (2 + 1) in the second
    np.testing.assert_allclose(np.exp(result[0]), [1 / 8, 1 / 6], rtol=1e-13)


def test_rows_of_equal_weight_come_together_unless_there_are_too_many_weights():
    weights = np.array([0.5, 2.0, 0.5, 3.0])
    groups = [(w, rows.tolist()) for w, rows in equal_weights(weights, 3, step=2)]
    assert groups == [(0.5, [0, 2]), (2.0, [1]), (3.0, [3])]
    runs = list(equal_weights(weights, 2, step=3))
    assert [(w.tolist(), rows) for w, rows in runs] == [([0.5, 2.0, 0.5], slice(0, 3)), ([3.0], slice(3, 6))]
    assert list(equal_weights(None, 0, step=1)) == [(1.0, slice(None))]
