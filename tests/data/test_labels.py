"""Labels of any type become codes into their sorted values; weights are checked."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deciban as db
from deciban.data.labels import check_weights, encode_labels


def decoded(y):
    encoded = encode_labels(y)
    assert encoded.codes.dtype == np.int32
    return [encoded.classes[code] for code in encoded.codes.tolist()]


LABELS = st.one_of(
    st.lists(st.text(max_size=3), min_size=1),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1),
    st.lists(st.integers(-5, 5), min_size=1),
    st.lists(st.booleans(), min_size=1),
)


@given(LABELS)
def test_codes_stand_for_the_labels_and_classes_are_sorted(y):
    for form in (y, np.array(y, dtype=object), pd.Series(y, dtype=object), pa.array(y)):
        assert decoded(form) == y
        assert list(encode_labels(form).classes) == sorted(set(y))


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1))
def test_unsigned_labels_keep_their_values(y):
    assert decoded(np.array(y, dtype=np.uint64)) == y


def test_every_width_of_number_is_read():
    for kind in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i4", "f4", "f8", "?"):
        assert decoded(np.array([1, 0, 1], dtype=kind)) == [1, 0, 1]
    assert decoded(np.arange(10)[::-3]) == [9, 6, 3, 0]


def test_text_of_any_library_is_read():
    for y in (
        pd.Series(["b", "a"], dtype="str"),
        pd.Series(["b", "a"], dtype=object),
        pd.Series(["b", "a"], dtype="string"),
        pd.Series(["b", "a"], dtype="category"),
        pd.Series(pd.Categorical(["b", "a"], categories=["never", "a", "b"], ordered=True)),
        pd.Categorical(["b", "a"]),
        pd.Index(["b", "a"]),
        pl.Series(["b", "a"]),
        pl.Series(["b", "a"], dtype=pl.Categorical),
        pl.Series(["b", "a"], dtype=pl.Enum(["never", "b", "a"])),
        pa.array(["b", "a"], pa.string_view()),
        pa.array(["b", "a"], pa.large_string()),
        pa.array(["b", "a"]).dictionary_encode(),
        pa.chunked_array([["b"], [], ["a"]]),
        pa.chunked_array([pa.array(["b"]).dictionary_encode(), pa.array(["a"]).dictionary_encode()]),
        np.array(["b", "a"]),
        ("b", "a"),
    ):
        encoded = encode_labels(y)
        assert (encoded.codes.tolist(), encoded.classes) == ([1, 0], ("a", "b"))


def test_whole_floats_are_integers():
    for y in (np.array([2.0, 1.0]), pd.Series([2.0, 1.0]), pl.Series([2.0, 1.0]), [2.0, 1.0]):
        assert encode_labels(y).classes == (1, 2)


def test_a_missing_label_is_named_by_row():
    for y in (
        np.array([1.0, 0.0, np.nan]),
        np.array(["a", "b", None], dtype=object),
        np.array(["a", "b", np.nan], dtype=object),
        pd.Series(["a", "b", None]),
        pd.Series([1, 2, None], dtype="Int64"),
        pd.Series(["a", "b", None], dtype="category"),
        pl.Series([1.0, 0.0, float("nan")]),
        pl.Series(["a", "b", None]),
        pl.Series(["a", "b", None], dtype=pl.Categorical),
        pa.array([1, 2, None]),
        pa.array([None, None, None]),
    ):
        row = 0 if isinstance(y, pa.Array) and y.null_count == 3 else 2
        with pytest.raises(db.DecibanError, match=f"label, row {row}: .* missing"):
            encode_labels(y)


def test_what_cannot_be_a_class_is_refused():
    for y, words in (
        ([0.5, 1.0], "continuous"),
        ([np.inf, 1.0], "continuous"),
        ([[1, 2], [3, 4]], "1d array"),
        (np.zeros((2, 2)), "1d array"),
        (np.array([{}, {}], dtype=object), "cannot be classes|mix types"),
        (pa.array([[1], [2]]), "cannot be classes"),
        (pd.Series(pd.to_datetime(["2020-01-01", "2020-01-02"])), "cannot be classes"),
    ):
        with pytest.raises(db.DecibanError, match=words):
            encode_labels(y)


def test_weights_are_one_finite_number_of_0_or_more_for_each_row():
    assert check_weights(None, 3) is None
    np.testing.assert_array_equal(check_weights([1, 0, 2], 3), [1.0, 0.0, 2.0])
    np.testing.assert_array_equal(check_weights(pd.Series([1, 0, 2]), 3), [1.0, 0.0, 2.0])
    np.testing.assert_array_equal(check_weights(pl.Series([1, 0, 2]), 3), [1.0, 0.0, 2.0])
    np.testing.assert_array_equal(check_weights(2.5, 2), [2.5, 2.5])
    assert check_weights(np.arange(6.0)[::2], 3).flags.c_contiguous
