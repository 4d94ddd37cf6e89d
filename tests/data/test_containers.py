"""Rows in every container that people have them in: the same answers everywhere, or an error that names the column."""

import decimal
import pathlib
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import deciban as db
from deciban.data import frame_of

N = 24
AGE = [float(i % 7) for i in range(N)]
SEX = ["fm"[i % 5 % 2] for i in range(N)]
LABEL = ["yes" if i % 3 else "no" for i in range(N)]
COLUMNS = {"age": AGE, "sex": SEX}


def structured(columns):
    kinds = [(name, "f8" if isinstance(cells[0], float) else "U3") for name, cells in columns.items()]
    return np.array(list(zip(*columns.values(), strict=True)), dtype=kinds)


CONTAINERS = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "lazy": pl.LazyFrame,
    "arrow": pa.table,
    "record batch": pa.record_batch,
    "records": lambda columns: [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
    "columns": dict,
    "columns of arrays": lambda columns: {name: np.array(cells) for name, cells in columns.items()},
    "columns of series": lambda columns: {name: pd.Series(cells, range(N)[::-1]) for name, cells in columns.items()},
    "structured": structured,
    "recarray": lambda columns: structured(columns).view(np.recarray),
    "nullable": lambda columns: pd.DataFrame(columns).convert_dtypes(),
    "backed by arrow": lambda columns: pd.DataFrame(columns).convert_dtypes(dtype_backend="pyarrow"),
}
CALLS = {
    "fit": lambda m, X, y: db.NaiveBayes().fit(X, y).predict_proba(REFERENCE),
    "fit evidence": lambda m, X, y: db.EvidenceClassifier(trees=2).fit(X, y).predict_proba(REFERENCE),
    "fit linear": lambda m, X, y: db.LogisticRegression(l2=1.0).fit(X, y).predict_proba(REFERENCE),
    "fit calibrated": lambda m, X, y: db.CalibratedClassifier(cv=2).fit(X, y).predict_proba(X),
    "predict_proba": lambda m, X, y: m.predict_proba(X),
    "explain": lambda m, X, y: m.explain(X).nats,
    "partial_fit": lambda m, X, y: db.NaiveBayes().fit(REFERENCE, LABEL).partial_fit(X, y).predict_proba(REFERENCE),
    "score": lambda m, X, y: m.score(X, y),
    "leave_one_out": lambda m, X, y: m.leave_one_out(X, y).log_loss,
    "evaluate": lambda m, X, y: db.evaluate(m, X, y).log_loss,
    "cross_validate": lambda m, X, y: db.cross_validate(db.NaiveBayes(), X, y, 3).log_loss,
}
REFERENCE = pd.DataFrame(COLUMNS)


@pytest.fixture(scope="module")
def model():
    return db.NaiveBayes().fit(REFERENCE, LABEL)


FEATURES_ONLY = ("predict_proba", "explain")


def assert_gives_what_pandas_gives(call, container, model):
    expected = CALLS[call](model, REFERENCE, np.array(LABEL))
    np.testing.assert_array_equal(CALLS[call](model, CONTAINERS[container](COLUMNS), np.array(LABEL)), expected)
    if call not in FEATURES_ONLY:  # the label as a column
        whole = CONTAINERS[container]({**COLUMNS, "label": LABEL})
        np.testing.assert_array_equal(CALLS[call](model, whole, "label"), expected)


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_gives_what_pandas_gives(container, model):
    for call in ("fit", *FEATURES_ONLY):
        assert_gives_what_pandas_gives(call, container, model)


@pytest.mark.parametrize("call", [call for call in CALLS if call not in ("fit", *FEATURES_ONLY)])
def test_every_entry_point_takes_other_containers(call, model):
    for container in ("lazy", "records", "structured"):
        assert_gives_what_pandas_gives(call, container, model)


@pytest.mark.parametrize("container", ["lazy", "records", "structured"])
def test_a_report_reads_every_container(container, model):
    figures = model.report(CONTAINERS[container]({**COLUMNS, "label": LABEL}), "label").figures
    assert figures["quality"]["confusion"] == model.report(REFERENCE, LABEL).figures["quality"]["confusion"]
    assert figures["head"]["label"] == "label"


def test_a_record_without_a_key_has_a_missing_cell():
    records = [{"age": 1.0, "sex": "f"}, {"sex": "m"}, {"age": 3.0, "note": "x"}]
    frame = frame_of(records)
    assert frame.names == ("age", "sex", "note")
    assert frame.table.to_pylist() == [{"age": None, "sex": None, "note": None} | record for record in records]


def test_a_masked_cell_is_missing():
    masked = np.ma.masked_equal(np.column_stack([AGE, AGE[::-1]]), 3.0)
    expected = db.NaiveBayes().fit(masked.filled(np.nan), LABEL).predict_proba(masked.filled(np.nan))
    np.testing.assert_array_equal(db.NaiveBayes().fit(masked, LABEL).predict_proba(masked), expected)


# Names ---------------------------------------------------------------------------------------------------------------

NAMES = {
    "integers": ([10, 7], 7),
    "numpy's integers": (list(np.array([10, 7])), np.int64(7)),
    "tuples": (pd.MultiIndex.from_tuples([("a", "x"), ("a", 2020)]), ("a", 2020)),
    "floats": ([0.5, 1.5], 1.5),
    "mixed": (["a", 3], 3),
}


@pytest.mark.parametrize(("names", "label"), NAMES.values(), ids=NAMES)
def test_names_that_are_no_text_name_columns(names, label, tmp_path):
    table = pd.DataFrame(list(zip(AGE, LABEL, strict=True)), columns=names)
    feature = names[0]
    model = db.NaiveBayes(families={feature: db.families.Poisson()}).fit(table, label)
    expected = db.NaiveBayes(families=db.families.Poisson()).fit(np.array(AGE)[:, None], LABEL)
    np.testing.assert_array_equal(model.predict_proba(table), expected.predict_proba(np.array(AGE)[:, None]))
    assert model.label_name_ == str(label)
    assert list(model.feature_names_in_) == [str(feature)]
    assert model.explain(table).names == ("prior", str(feature))
    assert model.score(table, label) == db.evaluate(model, table, label).accuracy
    assert db.cross_validate(db.NaiveBayes(), table, label, 3).confusion.sum() == N
    model.save(tmp_path / "m.deciban")
    np.testing.assert_array_equal(db.load(tmp_path / "m.deciban").predict_proba(table), model.predict_proba(table))


def test_a_tuple_is_a_column_only_where_one_has_that_name():
    table = pd.DataFrame({"a": [1.0, 2.0], "x": [3.0, 1.0]})
    assert db.NaiveBayes().fit(table, ("a", "x")).classes_.tolist() == ["a", "x"]
    joint = db.NaiveBayes({("a", "x"): db.families.MultivariateGaussian()})
    assert len(joint.fit(pd.DataFrame({"a": AGE, "x": AGE[::-1]}), LABEL).generative_.blocks) == 1


def test_weights_may_be_a_column_with_a_tuple_for_a_name_and_a_number_is_a_weight():
    table = pd.DataFrame({("a", 1): AGE, ("a", 2): [1.0, 2.0] * (N // 2), ("y", 0): LABEL})
    weighted = db.NaiveBayes().fit(table, ("y", 0), ("a", 2))
    by_hand = [sum(1 + i % 2 for i in range(N) if LABEL[i] == label) for label in ("no", "yes")]
    assert weighted.class_count_.tolist() == by_hand
    assert db.NaiveBayes().fit(table[[("a", 1)]], LABEL, 3).class_count_.sum() == 3 * N


def test_names_that_are_one_as_text_are_refused():
    with pytest.raises(db.DecibanError, match="column '7' occurs more than once"):
        db.NaiveBayes().fit(pd.DataFrame([[1.0, 2.0]] * N, columns=[7, "7"]), LABEL)


def test_labels_are_taken_by_position_as_scikit_learn_does():
    shuffled = pd.Series(LABEL, index=np.random.default_rng(0).permutation(N))
    assert db.NaiveBayes().fit(REFERENCE, shuffled).class_count_.tolist() == [LABEL.count("no"), LABEL.count("yes")]


# Types ---------------------------------------------------------------------------------------------------------------

CLASSES = {
    "Int128": pl.Series([0, 1] * (N // 2)).cast(pl.Int128),
    "decimal": [decimal.Decimal(i % 2) for i in range(N)],
    "Int64": pd.Series([0, 1] * (N // 2), dtype="Int64"),
    "arrow": pd.Series([0, 1] * (N // 2), dtype="int64[pyarrow]"),
    "categories": pd.Series(pd.Categorical([0, 1] * (N // 2))),
    "a column": pl.Series([0, 1] * (N // 2)),
    "a tuple": (0, 1) * (N // 2),
}


def test_labels_of_every_type_are_classes():
    expected = db.NaiveBayes().fit(REFERENCE, [0, 1] * (N // 2))
    p, accuracy = expected.predict_proba(REFERENCE), expected.score(REFERENCE, [0, 1] * (N // 2))
    for kind, labels in CLASSES.items():
        model = db.NaiveBayes().fit(REFERENCE, labels)
        assert model.classes_.tolist() == [0, 1], kind
        np.testing.assert_array_equal(model.predict_proba(REFERENCE), p)
        assert db.evaluate(expected, REFERENCE, labels).accuracy == accuracy


NO_CLASSES = {
    "complex": (np.array([1j] * N), "Unknown label type: complex"),
    "records": (np.zeros(N, dtype=[("a", "i4")]), "Unknown label type: records"),
    "bytes": ([b"x"] * N, "labels of type binary cannot be classes"),
    "lists": (pl.Series([[1]] * N), "labels of type large_list<item: int64> cannot be classes"),
    "intervals": (pd.Series(pd.cut(AGE, 2)), "labels of type category of pandas.interval cannot be classes"),
    "ragged": ([[1], [1, 2]] * (N // 2), "lists of several lengths"),
    "large": ([2**70, 1] * (N // 2), "labels beyond 64 bits cannot be classes"),
    "masked": (np.ma.masked_equal([0, 1] * (N // 2), 1), "label, row 1: the label is missing"),
    "a dict": ({"a": 1}, "y should be a 1d array"),
    "0-d": (np.array(1), "y should be a 1d array"),
}


def test_labels_that_are_no_classes_are_refused(model):
    calls = (db.NaiveBayes().fit, db.LogisticRegression().fit, model.leave_one_out, model.partial_fit)
    for labels, words in NO_CLASSES.values():
        for call in (*calls, lambda X, y: db.evaluate(model, X, y)):
            with pytest.raises(db.DecibanError, match=words):
                call(REFERENCE, labels)


def test_weights_that_are_no_numbers_are_refused():
    for weights in (["a"] * N, [{}] * N, np.ones(N) + 1j, [[1], [1, 2]] * (N // 2)):
        with pytest.raises(db.DecibanError, match="sample_weight must be numbers"):
            db.NaiveBayes().fit(REFERENCE, LABEL, weights)


def test_integers_beyond_64_bits_are_doubles():
    np.testing.assert_array_equal(frame_of(pd.DataFrame({"c": [2**70, -3]})).numbers([0])[:, 0], [2.0**70, -3.0])
    with pytest.raises(db.DecibanError, match=r"column 'c', row 0: .* is too large"):
        frame_of(pd.DataFrame({"c": pd.Series([10**400, -3], dtype=object)}))


def test_categories_of_numbers_and_intervals_are_categories():
    coded = pd.DataFrame({"c": pd.Categorical([int(v) for v in AGE])})
    assert frame_of(coded).coded([0]).levels[0] == tuple(range(7))
    cut = pd.cut(AGE, [-1, 2, 7])
    for column in (cut, pd.IntervalIndex(cut)):
        codes = frame_of(pd.DataFrame({"c": column})).coded([0])
        assert {*codes.levels[0]} == {"(-1, 2]", "(2, 7]"}
        assert [codes.levels[0][i] for i in codes.codes[:, 0]] == list(map(str, cut))


REFUSED = {
    "complex": (pd.DataFrame({"c": np.array(AGE) + 1j}), "complex numbers.*two columns"),
    "complex objects": (pd.DataFrame({"c": pd.Series([1j] * N, dtype=object)}), "complex numbers"),
    "bytes": (pd.DataFrame({"c": [b"x"] * N}), "binary: decode it to text"),
    "lists": (pd.DataFrame({"c": [[1]] * N}), "list.*make a column of each element"),
    "lists of arrow": (pa.table({"c": [[1]] * N}), "list.*make a column of each element"),
    "structs": (pl.DataFrame({"c": [{"x": 1}] * N}), "struct.*make a column of each field"),
    "objects": (pd.DataFrame({"c": [object()] * N}), "convert it to numbers or text"),
    "objects of polars": (pl.DataFrame({"c": pl.Series([object()] * N, dtype=pl.Object)}), "Python objects"),
    "numbers and text": (pd.DataFrame({"c": [1, "x"] * (N // 2)}), "row 1: 'x' is not a number"),
    "uuid": (pa.table({"c": pa.array([bytes(16)] * N, pa.uuid())}), "type uuid"),
    "records of arrays": ({"c": np.zeros((N, 2))}, "cells of shape"),
    "nested fields": (np.zeros(N, dtype=[("c", [("x", "f8")])]), "holds records"),
    "a scalar": ({"c": 5}, "not a list of cells"),
}


def test_columns_of_other_types_are_named():
    known = db.NaiveBayes().fit(pd.DataFrame({"c": AGE}), LABEL)
    for table, words in REFUSED.values():
        for call in ("fit", "predict_proba", "evaluate", "explain"):
            with pytest.raises(db.DecibanError, match=f"column 'c'.*{words}"):
                CALLS[call](known, table, LABEL)


# Everything else -----------------------------------------------------------------------------------------------------

NO_ROWS = {
    "None": (None, "X is None: pass a table"),
    "text": ("free money", "X is a single text, 'free money': pass a list of texts"),
    "path": (pathlib.Path("a.csv"), r"use deciban.scan\('a.csv'\)"),
    "number": (5, "X is of type int, which has no rows"),
    "0-d": (np.array(5.0), "X is of type ndarray, which has no rows"),
    "generator": ((row for row in [[1.0]]), "X is of type generator, which has no rows"),
    "1-d": (np.array(AGE), r"X must be a table or a matrix; it has the shape \(24,\)"),
    "3-d": (np.zeros((N, 2, 2)), r"X must be a table or a matrix; it has the shape \(24, 2, 2\)"),
    "series": (pd.Series(AGE), "a Series is one column"),
    "polars series": (pl.Series(AGE), "a Series is one column"),
    "nothing": ([], "X has no rows and no columns"),
    "ragged": ([[1.0, 2.0], [3.0]], "row 1 of X has 1 cells, and row 0 has 2"),
    "not rows": ([[1.0, 2.0], 3.0], "row 1 of X is 3.0, not a list of cells"),
    "dicts and lists": ([{"age": 1.0}, [2.0]], "row 1 is a list, and others are dicts"),
    "unlike columns": ({"age": [1.0], "sex": ["f", "m"]}, "column 'age' has 1 cells, and column 'sex' has 2"),
    "complex": (np.array([[1j]]), "Complex data not supported"),
    "sparse complex": (sp.csr_array([[1j]]), "Complex data not supported"),
}


@pytest.mark.parametrize("call", CALLS)
def test_what_has_no_rows_is_refused_with_a_reason(call, model):
    for x, words in NO_ROWS.values():
        with pytest.raises(db.DecibanError, match=words):
            CALLS[call](model, x, LABEL)


def test_a_table_without_columns_is_refused():
    for table in (pd.DataFrame(), pd.DataFrame({"label": LABEL}), pl.DataFrame()):
        with pytest.raises(db.DecibanError, match=r"0 feature\(s\).*column to learn from"):
            db.NaiveBayes().fit(table, "label" if len(table) else [])


def test_a_name_needs_a_table_that_has_it():
    with pytest.raises(db.DecibanError, match="y='7' names a column, so X must be a table"):
        db.NaiveBayes().fit(np.column_stack([AGE, AGE]), 7)
    with pytest.raises(db.DecibanError, match="no column '7' to use as label"):
        db.NaiveBayes().fit(REFERENCE, 7)


# Odd cells -----------------------------------------------------------------------------------------------------------

ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**80), 2**80),
    st.integers(-99, 99).map(lambda i: i / 7) | st.just(float("nan")),
    st.text(max_size=3),
    st.binary(max_size=2),
    st.complex_numbers(max_magnitude=10, allow_nan=False),
    st.decimals(-100, 100, places=2),
    st.lists(st.integers(0, 3), max_size=2),
    st.tuples(st.integers(0, 3), st.text(max_size=1)),
    st.dictionaries(st.sampled_from("ab"), st.integers(0, 2), max_size=2),
    st.sampled_from([pd.NA, pd.NaT, object, np.int8(1), np.float16(2), np.str_("a"), frozenset({1})]),
    st.dates(),
)
FOREIGN = re.compile("arrow|reshape", re.IGNORECASE)


@given(st.lists(ODD, min_size=2, max_size=4), st.sampled_from(["records", "columns", "pandas", "array"]), st.booleans())
def test_cells_of_any_type_are_learned_or_refused_by_column(cells, container, at_predict):
    """Never an error of another library, whatever is in a column."""
    column = np.empty(len(cells), dtype=object)
    column[:] = cells
    table = {
        "records": [{"odd": cell} for cell in cells],
        "columns": {"odd": cells},
        "pandas": pd.DataFrame({"odd": column}),
        "array": column[:, np.newaxis],
    }[container]
    known = db.NaiveBayes().fit(pd.DataFrame({"odd": AGE}) if container != "array" else np.array(AGE)[:, None], LABEL)
    labels = ["n", "y", "n", "y"][: len(cells)]
    message = "column 'odd'"
    try:
        answers = known.predict(table) if at_predict else db.NaiveBayes().fit(table, labels).predict(table)
        assert len(answers) == len(cells)
    except (db.DecibanError, TypeError) as error:
        message = str(error)
    assert re.search("column ('odd'|0)", message)
    assert not FOREIGN.search(message)
