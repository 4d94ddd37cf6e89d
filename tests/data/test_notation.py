"""How dates and numbers are written in text: each convention, identifiers, and that parts of a column add."""

from functools import reduce
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deciban as db
from deciban.data.notation import NotationOptions, TextProfile, parse_text, profile_text

CSV = NotationOptions(digits_are_numbers=True)


def notation_of(cells, options=None):
    return profile_text(pa.array(cells, pa.string()), *([] if options is None else [options])).notation()


def test_conventions():
    for cells, style, values in (
        (["$1,200", "$35", "-$4.50", "$-4.50"], "formatted", [1200.0, 35.0, -4.5, -4.5]),
        (["12.5%", "3%", "0%"], "formatted", [12.5, 3.0, 0.0]),
        (["23,952", "1,000,000"], "formatted", [23952.0, 1000000.0]),
        (["0,5", "12,25", "3"], "formatted_comma", [0.5, 12.25, 3.0]),
        (["1,234", "0,5"], "formatted_comma", [1.234, 0.5]),
        (["1,234", "5,678"], "formatted", [1234.0, 5678.0]),
        (["1.234", "0.5"], "formatted", [1.234, 0.5]),
        (["1.234,56", "2,00", "1.000.000"], "formatted_comma", [1234.56, 2.0, 1000000.0]),
        (["1 200", "1\u00a0200,5", "300"], "formatted_comma", [1200.0, 1200.5, 300.0]),
        (["1 200", "35.5"], "formatted", [1200.0, 35.5]),
        (["1'200.5", "35"], "formatted", [1200.5, 35.0]),
        (["(300)", "20", "($1,200.50)"], "formatted", [-300.0, 20.0, -1200.5]),
        (["€ 5", "7,50 €", "EUR 3"], None, None),  # two units
        (["€ 5", "7,50 €", "3"], "formatted_comma", [5.0, 7.5, 3.0]),
        (["1e3", "-2.5E-1", "+.5"], "formatted", [1000.0, -0.25, 0.5]),
        (["−5.0", "5."], "formatted", [-5.0, 5.0]),
        (["2026-03-01", "2026/03/02"], "date", None),
        (["2026-03-01 12:30", "2026-03-01T12:30:05.123Z", "2026-03-01 12:30+01:00"], "date", None),
        (["12:30", "12:30:05.5"], "time", None),
        (["00123", "12345"], None, None),
        (["12345", "90210"], None, None),
        (["12345", "90210"] * 100 + ["somewhere"], None, None),  # postal codes
        (["1", "20", "300"], None, None),  # astype(str)
        (["123-45", "321-55"], None, None),
        (["1e3 kg", "5 kg"], None, None),
        (["5%", "5"], None, None),
        (["red", "blue"], None, None),
        (["2020", "1999"], None, None),
        (["2026-02-30", "2026-13-01"], None, None),
    ):
        notation = notation_of(cells)
        assert (None if notation is None else notation.style) == style, cells
        if values is not None:
            assert parse_text(pa.array(cells), style).to_pylist() == values


def test_dates_and_times_are_those_of_python():
    text = ["2024-02-29", "2024/02/29 23:59", "0001-01-01T00:00:00.000001", "2024-02-29 10:00-08:00", "2023-02-29"]
    actual = parse_text(pa.array(text), "date").to_pylist()
    assert [None if moment is None else moment.isoformat() for moment in actual] == [
        "2024-02-29T00:00:00",
        "2024-02-29T23:59:00",
        "0001-01-01T00:00:00.000001",
        "2024-02-29T10:00:00",  # by the clock on the wall there
        None,
    ]
    assert [str(time) for time in parse_text(pa.array(["09:30", "23:59:59.5"]), "time").to_pylist()] == [
        "09:30:00",
        "23:59:59.500000",
    ]


@pytest.mark.parametrize(
    ("strange", "rows", "number"), [(1, 100, True), (1, 99, False), (3, 300, True), (4, 400, False)]
)
def test_a_few_cells_may_be_something_else(strange, rows, number):
    cells = [f"{i}.5" for i in range(rows - strange)] + [f"word {i}" for i in range(strange)]
    profile = profile_text(pa.array(cells))
    actual = profile.notation()
    assert (actual is not None) == number
    assert (profile.exceptions() is None) == number
    if actual is not None:
        assert actual.missing == tuple(f"word {i}" for i in range(strange))


def test_words_for_a_missing_value_do_not_count():
    actual = notation_of(["5.5", "n/a", "-", "Unknown", "7"])
    assert actual is not None
    assert actual.missing == ("-", "Unknown", "n/a")
    assert notation_of(["35", "7", "n/a"]) is not None  # which is why they are text
    assert notation_of(["-", "n/a"]) is None


def test_in_csv_digits_are_numbers():
    assert notation_of(["12345", "90210"] * 100 + ["somewhere"], CSV) is not None
    assert notation_of(["01234", "90210"] * 100 + ["somewhere"], CSV) is None


CELLS = st.sampled_from(
    ["1,234", "0,5", "0.5", "12", "007", "$5", "€5", "5%", "2026-03-01", "12:30", "a", "b", "c", "d", "n/a", "-", "é"]
)


@given(st.lists(CELLS | st.none(), max_size=30), st.lists(st.integers(0, 30), max_size=3))
def test_the_profile_of_a_column_is_the_sum_of_those_of_its_parts(cells, cuts):
    ends = [0, *sorted(min(cut, len(cells)) for cut in cuts), len(cells)]
    parts = [profile_text(pa.array(cells[a:b], pa.string())) for a, b in pairwise(ends)]
    for order in (parts, parts[::-1]):
        assert reduce(TextProfile.__add__, order, TextProfile()) == profile_text(pa.array(cells, pa.string()))


@given(st.lists(CELLS, max_size=12), st.lists(CELLS, max_size=12))
def test_a_column_of_text_stays_one(first, later):
    some, whole = profile_text(pa.array(first, pa.string())), profile_text(pa.array(first + later, pa.string()))
    if some.cells and not some.may_have_notation():
        assert whole.notation() is None


@pytest.mark.parametrize("form", ["%m/%d/%Y", "%d.%m.%Y", "%d-%m-%y", "%d-%b-%Y", "%B %d, %Y", "%d/%m/%Y %H:%M"])
def test_a_column_of_dates_in_another_notation_is_named(form, tmp_path):
    days = pd.Series(pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(40), unit="D")).dt.strftime(form)
    table = pd.DataFrame({"day": days, "z": ["a", "b"] * 20, "y": [0, 1] * 20})
    table.to_csv(tmp_path / "t.csv", index=False)
    for rows in (table, db.scan(tmp_path / "t.csv")):
        with pytest.warns(db.DecibanWarning, match="'day' is read as categories: .* looks like a date"):
            db.NaiveBayes().fit(rows, "y")


def test_a_column_that_nearly_is_one_of_numbers_is_named():
    table = pd.DataFrame({"price": [f"${i}.50" for i in range(40)] + ["ask", "sold"] * 5, "z": ["a", "b"] * 25})
    with pytest.warns(db.DecibanWarning, match="'price' is read as categories: .* but not 'ask', 'sold'; replace"):
        model = db.NaiveBayes().fit(table, [0, 1] * 25)
    assert model.generative_.schema.kinds == ("category", "category")
