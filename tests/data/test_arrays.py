"""Frames over numpy arrays and sparse rows: what they read is what numpy says is there."""

import numpy as np
import pytest
import scipy.sparse as sp

from deciban.data import Sample, frame_of, slices
from deciban.data.arrays import MatrixFrame, SparseFrame
from deciban.data.batch import MISSING, UNSEEN
from deciban.data.labels import encode_labels
from deciban.errors import BadCell


def values_of(coded):
    """The cells that codes stand for; None where missing."""
    return [
        [None if code == MISSING else coded.levels[j][code] for j, code in enumerate(row)]
        for row in coded.codes.tolist()
    ]


X = np.array([[3, 7, -1], [1, 7, 5], [3, 9, -1]])


def test_names_are_positions_and_kinds_follow_the_dtype():
    frame = frame_of(X)
    assert (list(frame.names), frame.kinds, frame.rows) == ([0, 1, 2], ("number",) * 3, 3)
    assert frame_of(X > 2).kinds == ("boolean",) * 3
    assert frame_of(sp.csr_array(X)).kinds == ("number",) * 3


def test_neighbouring_float_columns_are_a_view_and_never_a_copy():
    x = X.astype(float)
    for columns in ([0, 1, 2], [1, 2], [2]):
        assert np.shares_memory(frame_of(x).numbers(columns), x)
    np.testing.assert_array_equal(frame_of(x).numbers([2, 0]), x[:, [2, 0]])
    single = x.astype(np.float32)
    assert np.shares_memory(frame_of(single).numbers([0, 1]), single)


def test_other_numbers_are_read_as_doubles():
    for kind in ("?", "i1", "u2", "i4", "u8", "f2", ">f8", ">i4", "g"):
        numbers = frame_of((X > 2).astype(kind)).numbers([0, 1, 2])
        assert numbers.dtype == np.float64
        np.testing.assert_array_equal(numbers, X > 2)


@pytest.mark.parametrize("order", ["C", "F"])
def test_coded_cells_stand_for_the_values(order):
    for kind in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", ">i4", ">f8"):
        x = np.asarray(np.abs(X), dtype=kind, order=order)
        coded = frame_of(x).coded([0, 2])
        assert values_of(coded) == x[:, [0, 2]].tolist()
        assert all(isinstance(level, int) for levels in coded.levels for level in levels)  # 1 and 1.0 are one level


def test_coded_truth_is_0_and_1():
    x = np.array([[True], [False], [True]])
    assert values_of(frame_of(x).coded([0])) == [[1], [0], [1]]


def test_integers_far_apart_and_unsigned_ones_keep_their_values():
    far_apart = [[0, 2**62, -(2**62)], [-(2**63), 2**63 - 1, 0], [5, 5 + 2**16, 5 + 2**16], [5, 4 + 2**16, 5]]
    unsigned = [[2**63 + 1, 2**63 + 2], [2**64 - 1, 0], [3, 4]]
    for column in (*map(np.array, far_apart), *(np.array(column, np.uint64) for column in unsigned)):
        x = column[:, np.newaxis]
        coded = frame_of(x).coded([0])
        assert values_of(coded) == x.tolist()
        np.testing.assert_array_equal(frame_of(x).codes([0], coded.levels), coded.codes)


def test_nan_is_missing_and_minus_zero_is_zero():
    coded = frame_of(np.array([[0.0], [np.nan], [-0.0], [2.5]])).coded([0])
    assert values_of(coded) == [[0], [None], [0], [2.5]]
    assert coded.levels == ((0, 2.5),)


def test_infinite_categories_are_refused_by_place():
    with pytest.raises(BadCell) as caught:
        frame_of(np.array([[0.0, 1.0], [2.0, 3.0], [4.0, -np.inf]])).coded([0, 1])
    assert (caught.value.row, caught.value.column) == (2, 1)


@pytest.mark.parametrize("kind", ["i8", "f8", "u1"])
def test_codes_point_into_the_lists_given(kind):
    x = np.array([[3, 7], [1, 7], [3, 9]], dtype=kind)
    for levels in (((1, 3), (9,)), ((0, 1, 2, 3), (-5, 9)), (("a", 1), (9, None)), ((), (9,))):
        codes = [
            [lst.index(v) if v in lst else UNSEEN for v, lst in zip(row, levels, strict=True)] for row in x.tolist()
        ]
        assert frame_of(x).codes([0, 1], levels).tolist() == codes


def test_codes_of_missing_cells_are_missing_and_not_unseen():
    assert frame_of(np.array([[np.nan], [4.0], [1.0]])).codes([0], ((1,),)).tolist() == [[MISSING], [UNSEEN], [0]]


# Sparse rows ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix, sp.lil_array, sp.dok_array])
def test_sparse_rows_read_as_their_dense_ones(form):
    x = np.array([[0, 2, 0], [1, 0, 0], [0, 0, 3]])
    frame = frame_of(form(x))
    assert isinstance(frame, SparseFrame)
    np.testing.assert_array_equal(frame.numbers([2, 1]), x[:, [2, 1]])
    np.testing.assert_array_equal(frame.counts([0, 1, 2]).toarray(), x)
    np.testing.assert_array_equal(frame.counts([1]).toarray(), x[:, [1]])
    np.testing.assert_array_equal(frame.take(np.array([2, 0])).numbers([0, 1, 2]), x[[2, 0]])
    assert values_of(frame.coded([0, 2])) == x[:, [0, 2]].tolist()
    assert frame.codes([0], ((1, 0),)).tolist() == [[1], [0], [1]]
    assert (frame.cell(0, 1), frame.cell(0, 0)) == (2.0, 0.0)


# Batches -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cells", [1, 5, 6, 100])
def test_slices_cover_every_row_once(monkeypatch, cells):
    monkeypatch.setattr("deciban.data.frames.CELLS_PER_BATCH", cells)
    x = np.arange(21).reshape(7, 3)
    parts = list(slices(frame_of(x), needs_small_batches=True))
    np.testing.assert_array_equal(np.concatenate([part.x for _, part in parts]), x)
    assert [first for first, _ in parts] == np.cumsum([0, *(part.rows for _, part in parts)])[:-1].tolist()


def test_sparse_rows_are_one_slice(monkeypatch):
    monkeypatch.setattr("deciban.data.frames.CELLS_PER_BATCH", 1)
    rows = frame_of(sp.csr_array(np.eye(5)))
    assert len(list(slices(rows, needs_small_batches=False))) == 1


def test_batches_leave_out_rows_of_weight_zero_and_remember_where_the_others_were(monkeypatch):
    monkeypatch.setattr("deciban.data.frames.CELLS_PER_BATCH", 6)
    x = np.arange(10.0).reshape(5, 2)
    labels = encode_labels(list("abaab"))
    weights = np.array([1.0, 0.0, 2.0, 0.0, 3.0])
    seen = [
        (batch.row_number(i), batch.frame.cell(i, 0), batch.classes[batch.labels[i]], batch.weights[i])
        for batch in Sample(frame_of(x), labels, weights).batches(needs_small_batches=True)
        for i in range(batch.frame.rows)
    ]
    assert seen == [(0, 0.0, "a", 1.0), (2, 4.0, "a", 2.0), (4, 8.0, "b", 3.0)]


def test_a_frame_takes_and_slices_rows():
    frame = MatrixFrame(X)
    np.testing.assert_array_equal(frame.slice(1, 3).x, X[1:])
    np.testing.assert_array_equal(frame.take(np.array([2, 0])).x, X[[2, 0]])
    assert frame.cell(1, 2) == 5
