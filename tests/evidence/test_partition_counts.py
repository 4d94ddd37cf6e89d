"""Pairs: tables of two features, counted in fixed cells."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from deciban.evidence.mixed_columns import Coding
from deciban.evidence.partition_counts import Pairs
from deciban.families import Context
from tests.laws import family_subject, rows

CODING = Coding(((0.5, 1.5), None, (0.5, 1.5)), (None, ("u", "v"), None))
PAIRS = Pairs(CODING, ((0, 1), (2, 0)))


def codes(n, _):
    """Of three columns, whatever the number that is asked for: a coding is of so many."""
    return hnp.arrays(np.uint8, (n, 3), elements=st.integers(0, 3), fill=st.nothing())


SUBJECTS = [
    replace(family_subject(family, codes, joint=True, fixed=True, width=family.width), name=f"Pairs {family.pairs}")
    for family in (PAIRS, Pairs(CODING, ((1, 2),)))
]


@given(rows(SUBJECTS[0]))
def test_cells_are_those_of_a_table_of_two_columns(drawn):
    actual = PAIRS.collect(drawn.values, drawn.labels, drawn.weights, drawn.classes).sum_x.value
    expected = np.zeros((2, drawn.classes, 4, 4))
    weights = np.ones(len(drawn)) if drawn.weights is None else drawn.weights
    for row, label, weight in zip(drawn.values, drawn.labels, weights, strict=True):
        expected[0, label, row[0], row[1]] += weight
        expected[1, label, row[2], row[0]] += weight
    assert PAIRS.offsets.tolist() == [0, 16, 32]
    np.testing.assert_array_equal(actual, np.hstack([table.reshape(drawn.classes, 16) for table in expected]))


@given(rows(SUBJECTS[0]))
def test_density_is_the_mean_over_the_tables(drawn):
    """(k + α)/(n + 16α) of each table; they all see all rows, so their logs are not added but averaged."""
    context = Context(tuple(range(drawn.classes)), ("a", "b", "c"), smoothing=0.5)
    statistic = PAIRS.collect(drawn.values, drawn.labels, drawn.weights, drawn.classes)
    actual = PAIRS.log_density(PAIRS.estimate(statistic, context), drawn.values, drawn.classes)
    tables = statistic.sum_x.value.reshape(drawn.classes, 2, 16)
    shares = (tables + 0.5) / (tables.sum(axis=2, keepdims=True) + 8.0)
    for i, (a, b, c) in enumerate(drawn.values.astype(int)):
        expected = 0.5 * (np.log(shares[:, 0, 4 * a + b]) + np.log(shares[:, 1, 4 * c + a]))
        np.testing.assert_allclose(actual[i], expected, rtol=1e-12)


def test_it_has_a_parameter_less_than_cells_in_each_table_and_class():
    context = Context((0, 1), ("a", "b", "c"))
    statistic = PAIRS.collect(np.zeros((2, 3), np.uint8), np.array([0, 1], np.int32), None, 2)
    params = PAIRS.estimate(statistic, context)
    assert PAIRS.n_parameters(params) == 2 * (15 + 15)
    assert PAIRS.width(3) == 32


def test_families_are_equal_by_what_they_read():
    assert Pairs(CODING, ((0, 1), (2, 0))) == PAIRS
    assert Pairs(CODING, ((0, 1),)) != PAIRS
    assert Pairs(Coding(((0.5,),) * 3, (None,) * 3), PAIRS.pairs) != PAIRS
