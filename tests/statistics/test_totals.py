"""Totals: exact sums of columns that count."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from deciban.errors import NegativeEvidence
from deciban.statistics import Sum, Totals
from tests import exact
from tests.laws import Subject, equal_statistics, matrices, nans, positive, rows

amounts = matrices(positive | nans | st.just(0.0))


def sparse(n, d):
    return amounts(n, d).map(sp.csr_array)


SUBJECTS = [
    Subject(Totals, "Totals", Totals.of, amounts, equal_statistics),
    Subject(Totals, "Totals of sparse rows", Totals.of, sparse, equal_statistics),
]


@given(rows(SUBJECTS[0]))
def test_totals_are_those_of_fractions(drawn):
    _, sum_x, _ = exact.moments(drawn.values, drawn.labels, drawn.weights, drawn.classes)
    assert np.array_equal(SUBJECTS[0].of(drawn).sum_x.words, exact.as_words(sum_x))


@given(rows(SUBJECTS[1]))
def test_sparse_rows_are_the_same_as_dense(drawn):
    dense = Totals.of(drawn.values.toarray(), drawn.labels, drawn.weights, drawn.classes)
    equal_statistics(SUBJECTS[1].of(drawn), dense, drawn)


def test_a_word_cannot_be_forgotten_more_often_than_it_was_seen():
    with pytest.raises(NegativeEvidence):
        Totals(Sum.of([[2.0, 5.0]])) - Totals(Sum.of([[2.0, 6.0]]))
