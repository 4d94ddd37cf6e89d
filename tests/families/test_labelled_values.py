"""Rows and columns of labelled values, whatever form the values have."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp

from deciban.data.batch import Coded, Texts
from deciban.families.labelled_values import LabelledValues, contents

NUMBERS = np.array([[1.0, 0.0], [2.0, 6.0], [3.0, 7.0]])
CODED = Coded(np.array([[0, 1], [1, 0], [0, 0]], np.int32), (("a", "b"), ("c", "d")))
LABELS = np.array([0, 1, 0], np.int32)


@pytest.mark.parametrize("values", [NUMBERS, sp.csr_array(NUMBERS), CODED, Texts.of(["a", "b c", "d"])], ids=type)
def test_rows_keep_their_labels_and_weights(values):
    indices = (slice(1, 3), np.array([1, 2]), np.array([False, True, True]))
    for weights, index in product((None, np.array([1.0, 2.0, 3.0])), indices):
        rows = LabelledValues(values, LABELS, weights)
        taken = rows.take(index)
        assert len(rows) == 3
        assert len(taken) == 2
        assert taken.values.shape[0] == 2
        assert taken.labels.tolist() == [1, 0]
        assert taken.weights is None if weights is None else taken.weights.tolist() == [2.0, 3.0]


@pytest.mark.parametrize("values", [NUMBERS, sp.csr_array(NUMBERS)], ids=type)
def test_columns_of_numbers(values):
    assert LabelledValues(values, LABELS).columns([1]).values.tolist() == NUMBERS[:, [1]].tolist()


def test_columns_of_codes():
    second = LabelledValues(CODED, LABELS).columns([1]).values
    assert second.codes.tolist() == [[1], [0], [0]]
    assert second.levels == (("c", "d"),)


@pytest.mark.parametrize("values", [NUMBERS, sp.csr_array(NUMBERS), CODED], ids=type)
def test_rows_of_equal_values_have_equal_contents(values):
    rows = LabelledValues(values, LABELS)
    keys = [contents(rows.take(slice(i, i + 1)).values) for i in (0, 1, 0)]
    assert keys[0] == keys[2] != keys[1]
