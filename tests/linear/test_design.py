"""Design: the features of a table. Sufficient is tested with to_linear."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from deciban.data import frame_of
from deciban.errors import DecibanError
from deciban.linear import design
from deciban.linear.design import Design

COLUMNS = {
    "age": [20.0, None, 50.0, 35.0],
    "job": ["cook", "smith", None, "baker"],
    "paid": [True, False, True, True],
    "town": ["Ulm", "Ulm", "Bonn", "Aue"],
    "debt": [0.0, 10.0, 20.0, 6.0],
}
TABLES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
tables = pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)


def learned(x, weights=None) -> Design:
    return Design.of(frame_of(x), weights)


def features(result: Design, x, **more):
    """By name, as lists."""
    matrix = result.matrix(frame_of(x), **more)
    matrix = matrix.toarray() if sp.issparse(matrix) else np.asarray(matrix, dtype=np.float64)
    assert matrix.shape[1] == len(result.names) == len(result.owners) == len(result.origin)
    return {name: matrix[:, j].tolist() for j, name in enumerate(result.names)}


EXPECTED = {
    "age": [20.0, 35.0, 50.0, 35.0],  # the mean of 20, 50 and 35
    "paid": [1.0, 0.0, 1.0, 1.0],
    "debt": [0.0, 10.0, 20.0, 6.0],
    "age missing": [0.0, 1.0, 0.0, 0.0],
    # baker is the reference
    "job = cook": [1.0, 0.0, 0.0, 0.0],
    "job = smith": [0.0, 1.0, 0.0, 0.0],
    "job = missing": [0.0, 0.0, 1.0, 0.0],
    # Aue is the reference
    "town = Bonn": [0.0, 0.0, 1.0, 0.0],
    "town = Ulm": [1.0, 1.0, 0.0, 0.0],
}


# ---- what was learned -------------------------------------------------------------------------------------------


@tables
def test_a_table_of_all_kinds_of_columns(table):
    """In any order, among others, and any number of rows of it."""
    result = learned(table(COLUMNS))
    assert result.names == tuple(EXPECTED)  # numbers, missing indicators, then categories
    assert result.owners == (0, 2, 4, 0, 1, 1, 1, 3, 3)
    assert features(result, table(COLUMNS)) == EXPECTED
    assert features(result, pl.DataFrame(COLUMNS)) == EXPECTED
    assert features(result, table({name: COLUMNS[name] for name in ("town", "debt", "age", "paid", "job")})) == EXPECTED
    assert features(result, table({"more": [1, 2, 3, 4]} | COLUMNS)) == EXPECTED
    np.testing.assert_allclose(result.origin, [np.mean(values) for values in EXPECTED.values()], rtol=1e-15)
    for rows in (0, 1, 4):
        assert result.matrix(frame_of(table(COLUMNS)).slice(0, rows)).shape == (rows, len(EXPECTED))


@tables
def test_weighted_means_are_those_of_repeated_rows(table):
    times = np.array([3, 1, 2, 4])
    weighted = learned(table(COLUMNS), times.astype(float))
    repeated = learned(table({name: np.repeat(np.array(v, object), times).tolist() for name, v in COLUMNS.items()}))
    assert weighted.names == repeated.names
    np.testing.assert_allclose(weighted.origin, repeated.origin, rtol=1e-14)


def test_an_array_of_objects_is_a_table_with_positions_for_names():
    result = learned(np.array(list(zip(*COLUMNS.values(), strict=True)), dtype=object))
    expected = EXPECTED
    for column, place in zip(COLUMNS, "01234", strict=True):
        expected = {name.replace(column, place): values for name, values in expected.items()}
    assert features(result, np.array(list(zip(*COLUMNS.values(), strict=True)), dtype=object)) == expected


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint8, np.bool_])
def test_integers_and_booleans_are_numbers(dtype):
    x = np.array([[0, 1], [1, 1], [1, 0]], dtype=dtype)
    result = learned(x)
    assert features(result, x) == {"0": [0.0, 1.0, 1.0], "1": [1.0, 1.0, 0.0]}
    np.testing.assert_allclose(result.origin, [2 / 3, 2 / 3], rtol=1e-15)


# ---- numbers ----------------------------------------------------------------------------------------------------


def test_a_missing_value_is_the_mean_and_an_indicator_if_there_was_one():
    result = learned(np.array([[1.0, 5.0], [3.0, 6.0]]))
    assert features(result, np.array([[np.nan, 7.0], [9.0, np.nan]])) == {"0": [2.0, 9.0], "1": [7.0, 5.5]}
    result = learned(np.array([[1.0, 5.0], [3.0, 6.0], [np.nan, 10.0]]))
    new = np.array([[np.nan, np.nan], [4.0, 1.0]])
    assert features(result, new) == {"0": [2.0, 4.0], "1": [7.0, 1.0], "0 missing": [1.0, 0.0]}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_an_all_missing_column_has_no_indicator(dtype):
    x = np.array([[np.nan, 1.0], [np.nan, 2.0]], dtype=dtype)
    result = learned(x)
    assert features(result, x) == {"0": [0.0, 0.0], "1": [1.0, 2.0]}
    assert features(result, np.array([[np.nan, np.nan]])) == {"0": [0.0], "1": [1.5]}


@given(
    st.lists(
        st.tuples(st.floats(-1e300, 1e300) | st.just(np.nan), st.floats(-1e300, 1e300) | st.just(np.nan)),
        min_size=1,
        max_size=12,
    )
)
def test_missing_values_among_any_numbers(rows):
    """Features are finite, present values unchanged, and the mean is that of present values."""
    x = np.array(rows)
    result = learned(x)
    matrix = result.matrix(frame_of(x))
    missing = np.isnan(x)
    assert np.isfinite(matrix).all()
    assert np.array_equal(matrix[:, :2][~missing], x[~missing])
    for j in range(2):
        there = x[~missing[:, j], j]
        mean = float(np.mean(there / 1e10) * 1e10) if len(there) else 0.0
        size = np.abs(there).max(initial=0.0)
        assert result.origin[j] == pytest.approx(mean, rel=1e-12, abs=1e-14 * size)
        assert (matrix[missing[:, j], j] == result.origin[j]).all()
    marked = [j for j in range(2) if 0 < missing[:, j].sum() < len(x)]
    assert result.owners == (0, 1, *marked)
    assert np.array_equal(matrix[:, 2:], missing[:, marked])


def test_numbers_too_large_to_add_up_have_a_mean():
    x = np.array([[1.7e308], [1.7e308], [1.6e308]])
    np.testing.assert_allclose(learned(x).origin, [5.0 / 3.0 * 1e308], rtol=1e-15)


# ---- categories -------------------------------------------------------------------------------------------------


def test_the_reference_is_the_first_level_in_sorted_order():
    for values in (["b", "a", "c"], ["c", "b", "a"], ["a", "b", "c"]):
        assert learned(pd.DataFrame({"x": values})).names == ("x = b", "x = c")


def test_levels_of_a_categorical_that_do_not_occur_are_left_out():
    x = pd.DataFrame({"x": pd.Categorical(["b", "c", "b"], categories=["z", "a", "c", "b"])})
    result = learned(x)
    assert features(result, x) == {"x = c": [0.0, 1.0, 0.0]}


def test_categories_that_are_numbers_are_in_the_order_of_numbers():
    x = pd.DataFrame({"x": pd.Categorical([10, 9, 100, 9])})
    assert features(learned(x), x) == {"x = 10": [1.0, 0.0, 0.0, 0.0], "x = 100": [0.0, 0.0, 1.0, 0.0]}


@tables
def test_an_unseen_value_and_unseen_missing_text_are_the_average_row(table):
    result = learned(table({"x": ["a", "b", "b", "c"]}))
    assert features(result, table({"x": ["d", "c", None]})) == {"x = b": [0.5, 0.0, 0.5], "x = c": [0.25, 1.0, 0.25]}


@tables
def test_missing_text_where_there_was_some_is_the_last_level(table):
    result = learned(table({"x": ["b", None, "a", "zebra"]}))
    assert result.names == ("x = b", "x = zebra", "x = missing")
    assert features(result, table({"x": [None, "a"]})) == {
        "x = b": [0.0, 0.0],
        "x = zebra": [0.0, 0.0],
        "x = missing": [1.0, 0.0],
    }


@tables
def test_one_level_is_no_feature(table):
    result = learned(table({"x": ["a", "a"], "n": [1.0, 2.0]}))
    assert features(result, table({"x": ["a", "b", None], "n": [1.0, 2.0, 3.0]})) == {"n": [1.0, 2.0, 3.0]}


def test_an_all_missing_category_is_no_feature():
    x = pa.table({"x": pa.array([None, None], pa.string()), "n": [1.0, 2.0]})
    assert features(learned(x), x) == {"n": [1.0, 2.0]}


@tables
def test_unseen_values_of_several_columns_each_take_their_own_means(table):
    result = learned(table({"x": ["a", "b", "b", "c"], "y": ["q", "p", "p", "p"]}))
    assert features(result, table({"x": ["new", "a"], "y": ["new", "new"]})) == {
        "x = b": [0.5, 0.0],
        "x = c": [0.25, 0.0],
        "y = q": [0.25, 0.25],
    }


# ---- columns ----------------------------------------------------------------------------------------------------


@tables
def test_an_empty_column_has_no_feature(table):
    result = learned(table({"nothing": [None, None], "n": [1.0, 2.0]}))
    assert result.names == ("n",)
    assert result.owners == (1,)
    assert features(result, table({"nothing": [None], "n": [3.0]})) == {"n": [3.0]}
    result = learned(table({"nothing": [None, None]}))
    assert result.matrix(frame_of(table({"nothing": [None, None, None]}))).shape == (3, 0)
    assert result.origin.shape == (0,)


def test_an_absent_column_is_named():
    result = learned(pd.DataFrame(COLUMNS))
    with pytest.raises(DecibanError, match="lacks column 'age'"):
        result.matrix(frame_of(pd.DataFrame(COLUMNS).drop(columns="age")))


def test_columns_that_are_all_missing_later_are_the_mean():
    result = learned(pd.DataFrame({"n": [1.0, 3.0], "x": ["a", "b"]}))
    later = pd.DataFrame({"n": [None, None], "x": [None, None]})
    assert features(result, later) == {"n": [2.0, 2.0], "x = b": [0.5, 0.5]}


# ---- layout -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_matrix_with_nothing_to_encode_is_read_in_place(dtype, order):
    x = np.asarray(np.random.default_rng(0).normal(size=(20, 3)), dtype=dtype, order=order)
    result = learned(x)
    matrix = result.matrix(frame_of(x))
    assert np.shares_memory(matrix, x)
    assert matrix.dtype == dtype
    np.testing.assert_array_equal(matrix, x)
    assert not result.needs_small_batches(frame_of(x))


def test_imputing_does_not_change_the_matrix():
    x = np.array([[1.0, np.nan], [2.0, 4.0]])
    before = x.copy()
    matrix = learned(x).matrix(frame_of(x))
    assert not np.shares_memory(matrix, x)
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_sparse_rows_stay_sparse(kind, dtype):
    dense = np.array([[0, 2, 0], [1, 0, 0], [0, 0, 0], [3, 0, 4]], dtype=dtype)
    result = learned(kind(dense))
    matrix = result.matrix(frame_of(kind(dense)))
    assert sp.issparse(matrix)
    assert matrix.format == "csr"
    assert matrix.dtype == np.float64
    assert matrix.nnz == 4
    np.testing.assert_array_equal(matrix.toarray(), dense)
    assert result.names == ("0", "1", "2")
    assert result.origin.tolist() == [0.0, 0.0, 0.0]  # they are not centred


def test_wide_categories_become_sparse_rows(monkeypatch):
    """Up to MAX_DENSE_INDICATORS indicators stand in a full matrix; one more, and they do not."""
    words = [f"w{i:03}" for i in range(40)]
    x = pd.DataFrame({"n": np.arange(40.0), "x": words})
    monkeypatch.setattr(design, "MAX_DENSE_INDICATORS", 39)
    dense = learned(x).matrix(frame_of(x))
    assert isinstance(dense, np.ndarray)
    monkeypatch.setattr(design, "MAX_DENSE_INDICATORS", 38)
    result = learned(x)
    sparse = result.matrix(frame_of(x))
    assert sparse.format == "csr"
    assert sparse.dtype == np.float64
    assert sparse.shape == (40, 40)
    assert sparse.nnz == 39 + 39  # n is 0 once, and w000 is the reference
    np.testing.assert_array_equal(sparse.toarray(), dense)
    np.testing.assert_array_equal(dense, np.column_stack([np.arange(40.0), np.eye(40)[:, 1:]]))
    assert result.names == ("n", *(f"x = {word}" for word in words[1:]))


def test_categories_alone_become_sparse_rows_beyond_the_limit_as_it_is():
    words = [f"w{i:03}" for i in range(600)]
    x = pl.DataFrame({"x": words})
    result = learned(x)
    assert result.matrix(frame_of(x)).nnz == 599
    new = result.matrix(frame_of(pl.DataFrame({"x": ["w000", "unheard", "w599"]})))
    np.testing.assert_allclose(new.toarray()[1], np.full(599, 1 / 600), rtol=1e-15)
    assert new.toarray()[2].tolist() == [0.0] * 598 + [1.0]


def test_no_rows_have_no_shares():
    assert learned(np.zeros((0, 2))).origin.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("limit", [512, 3])
def test_each_row_is_encoded_on_its_own(monkeypatch, limit):
    monkeypatch.setattr(design, "MAX_DENSE_INDICATORS", limit)
    result = learned(pd.DataFrame(COLUMNS))
    frame = frame_of(pd.DataFrame(COLUMNS))
    whole = list(zip(*features(result, pd.DataFrame(COLUMNS)).values(), strict=True))
    for i in range(4):
        row = result.matrix(frame.slice(i, i + 1))
        row = row.toarray() if sp.issparse(row) else row
        assert tuple(row[0].tolist()) == whole[i]


def test_a_table_needs_small_batches():
    assert learned(pd.DataFrame(COLUMNS)).needs_small_batches(frame_of(pd.DataFrame(COLUMNS)))


# ---- cells that cannot be ---------------------------------------------------------------------------------------

INFINITE = "is infinite: use NaN for a missing value, or remove the row"


@tables
def test_an_infinite_cell_is_named_by_column_and_row(table):
    for value in (np.inf, -np.inf):
        for first in (None, 1.0):
            x = table({"job": ["a", "b", "c"], "age": [first, 2.0, 3.0], "debt": [1.0, 2.0, value]})
            with pytest.raises(DecibanError) as error:
                learned(x)
            assert str(error.value) == f"column 'debt', row 2: {value!r} {INFINITE}"


def test_an_infinite_cell_of_an_array_is_named():
    with pytest.raises(DecibanError, match=r"^column 1, row 2: inf is infinite"):
        learned(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, np.inf]]))


def test_an_infinite_cell_later_is_named_by_its_row_in_the_whole_table():
    """Rows come in batches, and the message counts from the first of all; columns are in another order here."""
    result = learned(pd.DataFrame({"a": [1.0, None], "b": [3.0, 4.0]}))
    later = pd.DataFrame({"b": [1.0, np.inf], "a": [1.0, 2.0]})
    with pytest.raises(DecibanError) as error:
        result.matrix(frame_of(later), first_row=1000)
    assert str(error.value) == f"column 'b', row 1001: inf {INFINITE}"


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_an_infinite_cell_later_is_named_where_nothing_was_missing(value):
    result = learned(np.array([[1.0, 2.0], [3.0, 4.0]]))
    with pytest.raises(DecibanError, match=r"^column 1, row 0: -?inf is infinite"):
        result.forbid_infinite(frame_of(np.array([[1.0, value]])), 0)


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_cells_of_sparse_rows_are_finite(value):
    good, bad = sp.csr_array(np.eye(3)), sp.csr_array(np.eye(3))
    bad.data[1] = value
    message = rf"^column 1, row 1: {value!r} is missing or infinite"
    with pytest.raises(DecibanError, match=message):
        learned(bad)
    with pytest.raises(DecibanError, match=message):
        learned(good).matrix(frame_of(bad))


def test_text_where_numbers_were_is_refused():
    result = learned(pd.DataFrame({"x": [1.0, 2.0]}))
    with pytest.raises(DecibanError, match="column 'x' holds text"):
        result.matrix(frame_of(pd.DataFrame({"x": ["a", "b"]})))
