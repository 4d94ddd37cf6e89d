"""A table prints what fits a page, and hands all of it to other libraries."""

import json
import re
import subprocess
import sys

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import deciban as db
from deciban import families
from deciban.table import MOST_COLUMNS, MOST_ROWS, Table, numbered

TABLE = Table(
    "fruit", ("name", "rows", "share", "ripe"), (("apple", 3, 0.75, True), ("pear", 1, 0.25, False)), "of four"
)


def test_families_speak_of_the_same_table():
    assert families.Table is Table


def test_text_lines_columns_up_and_ends_with_the_note():
    assert str(TABLE).splitlines() == [
        "fruit",
        "  name   rows  share   ripe",
        "  apple     3   0.75   True",
        "  pear      1   0.25  False",
        "  (of four)",
    ]
    assert repr(TABLE) == str(TABLE)


def test_long_tables_are_shortened_in_print_only():
    wide = Table("wide", tuple(map(str, range(50))), (tuple(range(50)),) * 100)
    lines = str(wide).splitlines()
    assert lines[1].split() == [*map(str, range(MOST_COLUMNS)), "…"]
    assert lines[2].split() == lines[1].split()
    assert lines[-1] == f"  … and {100 - MOST_ROWS} more rows"
    assert len(lines) == 2 + MOST_ROWS + 1
    assert wide._repr_html_().count("<tr>") == 1 + MOST_ROWS
    assert f"<p>… and {100 - MOST_ROWS} more rows</p>" in wide._repr_html_()
    assert wide.to_frame().shape == (100, 50)


def test_html_is_a_table_that_pandas_could_show():
    page = TABLE._repr_html_()
    assert re.findall("<caption.*?>(.*)</caption>", page) == ["fruit"]
    aligned = re.findall(r'<t[hd] style="text-align:(\w+)">(.*?)</t[hd]>', page)
    assert [cell for _, cell in aligned] == [
        "name",
        "rows",
        "share",
        "ripe",
        *["apple", "3", "0.750", "True", "pear", "1", "0.250", "False"],
    ]
    assert [side for side, _ in aligned] == ["left", "right", "right", "left"] * 3
    assert page.endswith("</table>\n<p>(of four)</p>")


def test_html_escapes_everything():
    attack = "<script>alert(1)</script>"
    page = Table(attack, (attack,), ((attack,),), attack)._repr_html_()
    assert "<script>" not in page
    assert page.count("&lt;script&gt;") == 4


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([1, 2], pa.int64(), [1, 2]),
        ([1, 2.5, None], pa.float64(), [1.0, 2.5, None]),
        ([2**60 + 1, 0.5], pa.float64(), [2.0**60, 0.5]),
        ([np.int32(1), np.float64(0.5)], pa.float64(), [1.0, 0.5]),
        ([True, np.False_], pa.bool_(), [True, False]),
        (["a", None], pa.string(), ["a", None]),
        ([1, "a", 0.1, None], pa.string(), ["1", "a", "0.1", None]),
        ([True, 1], pa.string(), ["True", "1"]),
        ([2**70, 1], pa.string(), [str(2**70), "1"]),
        ([2**2000, 1.5], pa.string(), [str(2**2000), "1.5"]),
        ([(1, 2), "a"], pa.string(), ["(1, 2)", "a"]),
        ([None], pa.null(), [None]),
        ([], pa.null(), []),
    ],
    ids=str,
)
def test_columns_are_typed_by_what_they_hold(values, kind, expected):
    column = Table("", ("x",), tuple((v,) for v in values)).to_frame()["x"]
    assert column.type == kind
    assert column.to_pylist() == expected


def test_nan_stays_a_number():
    column = Table("", ("x",), ((np.nan,), (1.0,))).to_frame()["x"]
    assert column.type == pa.float64()
    assert column.null_count == 0


def test_equal_names_are_numbered():
    assert numbered(["a", "a", "b", "a"]) == ["a", "a 2", "b", "a 3"]
    assert numbered(["a", "a", "a 2", 1]) == ["a", "a 3", "a 2", "1"]
    assert Table("", ("class", "class"), (("n", 0.5),)).to_frame().column_names == ["class", "class 2"]


def test_other_libraries_take_a_table():
    columns = {"name": ["apple", "pear"], "rows": [3, 1], "share": [0.75, 0.25], "ripe": [True, False]}
    assert TABLE.to_frame().to_pydict() == columns
    assert TABLE.to_frame().to_pandas().to_dict("list") == columns
    assert pd.DataFrame.from_arrow(TABLE).to_dict("list") == columns
    assert pl.DataFrame(TABLE).to_dict(as_series=False) == columns
    assert pa.table(TABLE).to_pydict() == columns
    fruit = TABLE  # duckdb finds it by its name
    assert duckdb.sql("select sum(rows) from fruit").fetchall() == [(4,)]
    assert fruit is TABLE


def test_models_learn_from_a_table():
    model = db.NaiveBayes().fit(Table("", ("size", "y"), ((1.0, "n"), (2.0, "n"), (8.0, "y"), (9.0, "y"))), "y")
    assert model.predict(Table("", ("size",), ((7.0,),))).tolist() == ["y"]


def test_every_table_of_a_summary_becomes_a_frame():
    data = pd.DataFrame({"x": [1.0, 2.0, 3.0, 5.0], "class": ["class", "b", "b", None]})
    for table in db.NaiveBayes().fit(data, ["n", "y", "n", "y"]).summary().tables:
        assert table.to_frame().num_rows == len(table.rows)
        assert len(pl.DataFrame(table).columns) == len(table.header)


def test_printing_needs_no_arrow():
    code = "import sys, json, deciban.table as t; str(t.Table('', ('a',), ((1,),))); print(json.dumps([*sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"pyarrow", "pandas", "scipy"} & set(json.loads(done.stdout))
