"""Lists of documents, and columns of text: the same cells whatever holds them."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deciban as db
from deciban.data import frame_of, is_documents
from deciban.data.arrow import text_of
from deciban.data.batch import MISSING, Texts
from deciban.data.documents import TextFrame
from deciban.errors import DecibanError
from deciban.families import Text
from tests.laws import assert_same_bits, flattened

NAN = float("nan")
LONG = "a text that is longer than the twelve bytes of a view"
CELLS = ["Buy a book of 1,000 pages", "", None, "été 😀 buy", "short", LONG] * 2
LABELS = [0, 1, 0, 1, 1, 0] * 2
BYTES = [None if cell is None else cell.encode() for cell in CELLS]
WITH_NAN = [NAN if cell is None else cell for cell in CELLS]
AROUND = ["no", LONG * 2, "neither"]
VALUES = [*dict.fromkeys(cell for cell in CELLS if cell is not None)]
CODES = [None if cell is None else VALUES.index(cell) for cell in CELLS]


def sliced(kind):
    return pa.array([*AROUND, *CELLS, *AROUND], kind).slice(len(AROUND), len(CELLS))


def chunked(kind):
    return pa.chunked_array([pa.array(part, kind) for part in (CELLS[:1], CELLS[1:7], [], CELLS[7:])])


ARRAYS = {
    "string": lambda: pa.array(CELLS),
    "large": lambda: pa.array(CELLS, pa.large_string()),
    "view": lambda: pa.array(CELLS, pa.string_view()),
    "sliced": lambda: sliced(pa.string()),
    "large, sliced": lambda: sliced(pa.large_string()),
    "view, sliced": lambda: sliced(pa.string_view()),
    "in chunks": lambda: chunked(pa.string()),
    "view, in chunks": lambda: chunked(pa.string_view()),
    "dictionary": lambda: pa.array(CELLS).dictionary_encode(),
    "dictionary, sliced": lambda: sliced(pa.string()).dictionary_encode(),
    "slice of a dictionary": lambda: pa.array([*AROUND, *CELLS]).dictionary_encode().slice(len(AROUND)),
    "dictionary of views": lambda: pa.DictionaryArray.from_arrays(
        pa.array(CODES, pa.int8()), pa.array(VALUES, pa.string_view())
    ),
    "dictionary with null": lambda: pa.DictionaryArray.from_arrays(
        pa.array([len(VALUES) if code is None else code for code in CODES]), pa.array([*VALUES, None])
    ),
    "dictionary, in chunks": lambda: pa.chunked_array(
        [pa.array(CELLS[:5]).dictionary_encode(), pa.array(CELLS[5:]).dictionary_encode()]
    ),
}
SERIES = {
    "list": lambda: [*CELLS],
    "tuple": lambda: (*CELLS,),
    "list with NaN": lambda: WITH_NAN,
    "numpy object": lambda: np.array(CELLS, dtype=object),
    "numpy object with NaN": lambda: np.array(WITH_NAN, dtype=object),
    "numpy every other": lambda: np.array([cell for cell in CELLS for _ in range(2)], dtype=object)[::2],
    "pandas str": lambda: pd.Series(CELLS, dtype="str"),
    "pandas object": lambda: pd.Series(CELLS, dtype=object),
    "pandas object with NaN": lambda: pd.Series(WITH_NAN, dtype=object),
    "pandas string": lambda: pd.Series(CELLS, dtype="string"),
    "pandas with another index": lambda: pd.Series(CELLS, dtype="str", index=range(5, 5 + len(CELLS)), name="mail"),
    "polars": lambda: pl.Series(CELLS),
    "polars with a name": lambda: pl.Series("mail", CELLS),
    "pyarrow": lambda: pa.array(CELLS),
    "pyarrow large": lambda: pa.array(CELLS, pa.large_string()),
    "pyarrow view": lambda: pa.array(CELLS, pa.string_view()),
    "pyarrow sliced": lambda: sliced(pa.string()),
    "pyarrow in chunks": lambda: chunked(pa.string()),
}
TABLES = {
    **{f"pyarrow {name}": lambda make=make: pa.table({"x": make()}) for name, make in ARRAYS.items()},
    "record batch": lambda: pa.record_batch({"x": pa.array(CELLS)}),
    "reader": lambda: pa.table({"x": CELLS}).to_reader(max_chunksize=5),
    "pandas str": lambda: pd.DataFrame({"x": pd.Series(CELLS, dtype="str")}),
    "pandas object with NaN": lambda: pd.DataFrame({"x": pd.Series(WITH_NAN, dtype=object)}),
    "pandas string": lambda: pd.DataFrame({"x": pd.Series(CELLS, dtype="string")}),
    "pandas categorical": lambda: pd.DataFrame({"x": pd.Categorical(CELLS)}),
    "polars": lambda: pl.DataFrame({"x": CELLS}),
    "polars Categorical": lambda: pl.DataFrame({"x": pl.Series(CELLS, dtype=pl.Categorical)}),
    "polars in chunks": lambda: pl.concat(
        [pl.DataFrame({"x": CELLS[:2]}), pl.DataFrame({"x": CELLS[2:]})], rechunk=False
    ),
    "duckdb": lambda: duckdb.from_arrow(pa.table({"x": CELLS})),
    "object matrix": lambda: np.array(CELLS, dtype=object)[:, np.newaxis],
}


def cells_of(texts, column=0):
    return [texts.cell(i, column) for i in range(texts.shape[0])]


def fitted(x, **settings):
    return db.NaiveBayes(families=Text(**settings)).fit(x, LABELS)


def evidence_of(model):
    (block,) = model.generative_.blocks
    return flattened(block.statistic)


# One column ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ARRAYS)
def test_text_is_read_where_it_lies(kind):
    array = ARRAYS[kind]()
    for part in array.chunks if isinstance(array, pa.ChunkedArray) else [array]:
        buffers, places = text_of(part)
        texts = Texts(tuple(buffers), places[:, np.newaxis])
        assert cells_of(texts) == [None if cell is None else cell.encode() for cell in part.to_pylist()]
        assert texts.present.tolist() == [cell is not None for cell in part.to_pylist()]
    frame = frame_of(pa.table({"n": range(len(CELLS)), "x": array, "y": array}))
    assert cells_of(frame.texts([1])) == BYTES
    assert cells_of(frame.texts([2, 1]), 1) == BYTES
    assert cells_of(frame.slice(3, 8).texts([1])) == BYTES[3:8]
    assert cells_of(frame.take(np.array([7, 2, 7])).texts([1])) == [BYTES[7], None, BYTES[7]]


@given(st.lists(st.none() | st.text(), max_size=8), st.integers(0, 8), st.integers(0, 8))
def test_any_text_in_any_slice(cells, start, length):
    expected = [None if cell is None else cell.encode() for cell in cells[start : start + length]]
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        buffers, places = text_of(pa.array(cells, kind).slice(start, length))
        assert cells_of(Texts(tuple(buffers), places[:, np.newaxis])) == expected


def test_cells_that_are_all_missing():
    for array in (*(pa.nulls(3, kind) for kind in (pa.null(), pa.string(), pa.string_view())), NO_TEXTS):
        assert (text_of(array)[1][:, 2] == -1).all()
        table = pa.table({"x": array, "z": [1.0, 2.0, 4.0]})
        assert np.isfinite(db.NaiveBayes(families={"x": Text()}).fit(table, [0, 1, 0]).predict_proba(table)).all()


NO_TEXTS = pa.nulls(3, pa.string()).dictionary_encode()


def test_no_rows_have_no_text():
    for array in (pa.array([], pa.string()), pa.array([], pa.string_view()), pa.chunked_array([], pa.string())):
        assert frame_of(pa.table({"x": array})).texts([0]).shape == (0, 1)


@given(st.lists(st.none() | st.text(st.characters(exclude_categories=())), max_size=6))
def test_texts_of_lists(cells):
    texts = Texts.of(cells, cells[::-1])
    expected = [None if cell is None else cell.encode("utf-8", "surrogatepass") for cell in cells]
    assert texts.shape == (len(cells), 2)
    assert cells_of(texts) == expected
    assert cells_of(texts, 1) == expected[::-1]
    assert cells_of(texts[1:]) == expected[1:]
    assert texts.present.tolist() == [a is not None or b is not None for a, b in zip(cells, cells[::-1], strict=True)]


def test_rows_differ_by_what_they_hold():
    cells = Texts.of(["a", "a", None, ""], ["b", "b", "b", "b"])
    contents = [cells[i : i + 1].tobytes() for i in range(4)]
    assert contents[0] == contents[1]
    assert len(set(contents)) == 3


# The same model ------------------------------------------------------------------------------------------------------


def test_one_column_of_text_is_a_list_of_documents():
    for name, make in SERIES.items():
        x = make()
        assert is_documents(x), name
        frame = frame_of(x)
        assert (frame.kinds, frame.rows, tuple(frame.names)) == (("text",), len(CELLS), (0,))
        assert cells_of(frame.texts([0])) == BYTES


@pytest.mark.parametrize("events", ["multinomial", "bernoulli", "complement"])
def test_the_same_model_whatever_holds_the_text(events):
    expected = fitted(CELLS, events=events, words=(1, 2))
    statistic, p = evidence_of(expected), expected.predict_proba(CELLS).tobytes()
    for make in (*SERIES.values(), *TABLES.values())[:: 1 if events == "multinomial" else 7]:
        model = fitted(make(), events=events, words=(1, 2))
        assert_same_bits(evidence_of(model), statistic)
        assert model.predict_proba(make()).tobytes() == p


def test_arrays_of_text_without_missing_values():
    cells = [cell or "" for cell in CELLS]
    for dtype in ("U", np.dtypes.StringDType()):  # of fixed and of variable width
        assert_same_bits(evidence_of(fitted(np.array(cells, dtype=dtype))), evidence_of(fitted(cells)))


def test_bytes_that_are_no_text_are_fitted_and_predicted():
    data = [b"buy \xff\xfe book\xc3", b"\xa9 math", b"caf\xe9 buy", b"math math"]
    ends = np.cumsum([0, *map(len, data)]).astype(np.int32)
    array = pa.StringArray.from_buffers(4, pa.py_buffer(ends.tobytes()), pa.py_buffer(b"".join(data)))
    model = db.NaiveBayes(families={"x": Text()}).fit(pa.table({"x": array}), [0, 1, 0, 1])
    plain = db.NaiveBayes().fit(["buy book", "math", "caf buy", "math math"], [0, 1, 0, 1])
    assert_same_bits(evidence_of(model), evidence_of(plain))
    np.testing.assert_array_equal(
        model.predict_proba(pa.table({"x": array})), plain.predict_proba(["buy book", "math", "caf buy", "math math"])
    )
    assert len(model.explain(pa.table({"x": array}))) == 4


# The frame -----------------------------------------------------------------------------------------------------------


def test_a_frame_of_documents():
    frame = frame_of(["a b", None, "a b", "c"])
    assert isinstance(frame, TextFrame)
    assert (frame.cell(0, 0), frame.cell(1, 0)) == ("a b", None)
    assert frame.slice(0, 4) is frame
    assert frame.slice(1, 3).columns == ([None, "a b"],)
    assert frame.take(np.array([3, 0])).columns == (["c", "a b"],)
    coded = frame.coded([0])
    assert coded.levels == (("a b", "c"),)
    assert coded.codes.ravel().tolist() == [0, MISSING, 0, 1]
    assert frame.codes([0], (("c", "z"),)).ravel().tolist() == [-2, -1, -2, 0]
    for wanted in (frame.numbers, frame.counts):
        with pytest.raises(DecibanError, match="holds text, but its family needs numbers: use Text"):
            wanted([0])


def test_what_is_no_list_of_documents():
    for x in (
        *([["a"], ["b"]], [1, 2], [], np.ones(3), np.array([["a"], ["b"]]), "text", pd.DataFrame({"x": ["a"]}), None),
        *(pa.table({"x": ["a"]}), pd.Series([1.0]), pl.Series([1]), pa.array([1]), {"x": ["a"]}, 5),
    ):
        assert not is_documents(x)


def test_a_cell_that_is_no_text_is_named():
    for late in (2, 1500):
        cells = ["a", "b"] * 800
        cells[late] = 3
        for x in (cells, np.array(cells, dtype=object), pd.Series(cells)):
            with pytest.raises(DecibanError, match=f"row {late} is 3: documents must be text, or None"):
                db.NaiveBayes().fit(x, [0, 1] * 800)


def test_numbers_are_no_text():
    for x in (
        pa.table({"x": [1.0, 2.0]}),
        pa.table({"x": [True, False]}),
        pd.DataFrame({"x": [1, 2]}),
        np.ones((2, 1)),
    ):
        with pytest.raises(DecibanError, match="holds numbers, but its family, Text, needs text"):
            db.NaiveBayes(families=Text()).fit(x, [0, 1])


def test_models_of_numbers_name_the_alternative():
    with pytest.raises(DecibanError, match="use Text"):
        db.NaiveBayes(families=db.families.Gaussian()).fit(["a", "b"], [0, 1])
    for model in (db.GaussianDiscriminant(), db.LogisticRegression()):
        with pytest.raises(DecibanError, match="use NaiveBayes"):
            model.fit(["a", "b"], [0, 1])
