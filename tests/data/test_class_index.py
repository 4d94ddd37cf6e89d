"""Class labels ↔ positions."""

import numpy as np

from deciban.data.class_index import ClassIndex


def test_recode_gives_positions_among_the_classes_of_a_model():
    index = ClassIndex(("a", "b", "c"))
    codes = index.recode(np.array([0, 1, 2, -1, 1], np.int32), ("c", "x", "a"))
    np.testing.assert_array_equal(codes, [2, -1, 0, -1, -1])
    assert codes.dtype == np.int32
    assert index.positions(("c", "x")).tolist() == [2, -1]


def test_recode_of_no_rows_and_no_classes():
    assert ClassIndex(("a",)).recode(np.zeros(0, np.int32), ()).tolist() == []
    assert ClassIndex(()).recode(np.array([0], np.int32), ("a",)).tolist() == [-1]
