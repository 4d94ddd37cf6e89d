"""Tables in a notebook: numbers to the right, with as many decimals as the others of their column."""

import re
from html import unescape

import numpy as np
import pandas as pd
import pytest

import deciban as db
from deciban.display.summary import Summary
from deciban.table import Table

CELL = re.compile(r'<td style="text-align:(left|right)">(.*?)</td>')


def cells(table):
    """(side, text) of the cells of each row."""
    rows = [line for line in table._repr_html_().splitlines() if line.startswith("<tr>")]
    return [[(side, unescape(text)) for side, text in CELL.findall(row)] for row in rows]


def column(name, *values):
    """The second of two columns, as it is shown."""
    return [row[1] for row in cells(Table("t", ("class", name), tuple(("a", value) for value in values)))]


@pytest.mark.parametrize(
    ("name", "values", "shown"),
    [
        ("rows", (32561.0, 8.0), ["32,561", "8"]),
        ("probability", (0.5, 1.0, 1 / 3), ["0.500", "1.000", "0.333"]),
        ("p", (0.18346, 3.6e-09), ["0.183", "<0.001"]),
        ("mean |decibans|", (75.4254, 3.6721, 0.0), ["75.43", "3.67", "0.00"]),
        ("for the true class", (0.876262, -0.001), ["0.88", "0.00"]),
        ("mean", (37.2, 38.9667), ["37.200", "38.967"]),
        ("mean", (3938.1234, 2985.5), ["3,938.1", "2,985.5"]),
        ("estimate", (-2.63906, 0.00054), ["-2.63906", "0.00054"]),
        ("sd", (0.244949, 0.329983), ["0.245", "0.330"]),
        ("auc", (0.75, float("nan")), ["0.750", "–"]),
        ("repeat", (0, 1), ["0", "1"]),
    ],
)
def test_a_column_has_one_number_of_decimals(name, values, shown):
    assert column(name, *values) == [("right", text) for text in shown]


def test_text_stays_on_the_left_and_labels_are_no_counts():
    (first, second) = cells(Table("t", ("class", "kind", "rows"), ((2024, "category", 1000.0), (2025, "number", 2.0))))
    assert first == [("left", "2024"), ("left", "category"), ("right", "1,000")]
    assert second == [("left", "2025"), ("left", "number"), ("right", "2")]


def test_values_of_many_units_are_written_one_by_one():
    assert column("value", 1574.0, 0.993647, 1.0) == [("right", "1,574"), ("right", "0.994"), ("right", "1.000")]


def test_a_count_in_a_title_has_separators():
    assert "<b>NaiveBayes: 32,561 rows, 2 classes</b>" in Summary("NaiveBayes: 32561 rows, 2 classes", ())._repr_html_()


def test_models_evaluations_and_explanations_have_aligned_numbers():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=60), "colour": rng.choice(["red", "blue"], 60)})
    y = np.where(table.x + rng.normal(size=60) > 0, "yes", "no")
    model = db.NaiveBayes().fit(table, y)
    pages = [model._repr_html_(), model.leave_one_out(table, y)._repr_html_(), model.explain(table[:1])._repr_html_()]
    for page in pages:
        assert page.count("tabular-nums") == page.count("<table>") > 0
        numbers = re.findall(r"<td( style=\"text-align:right\")?>[+-]?[\d,.]+</td>", page)
        assert numbers
        assert all(numbers)
        assert not re.search(r"(?<![-\w])color:(?!inherit)", page)  # text has the colour of the notebook
