"""A summary holds every number that was estimated, and prints those that fit a page."""

import numpy as np
import pandas as pd
import pytest

import deciban as db
from deciban import families as f
from deciban.display.summary import MOST_TABLES, Summary
from deciban.table import MOST_ROWS, Table


@pytest.fixture
def model():
    table = pd.DataFrame({"size": [1.0, 3.0, 7.0, 9.0], "colour": ["red", "red", "blue", None], "same": [5.0] * 4})
    return db.NaiveBayes(smoothing=0).fit(table, ["n", "n", "y", "y"])


def test_tables_hold_priors_shares_means_and_deviations(model):
    tables = {t.title: t for t in model.summary().tables}
    assert tables["class prior"].header == ("class", "rows", "probability")
    assert tables["class prior"].rows == (("n", 2.0, 0.5), ("y", 2.0, 0.5))
    assert tables["size (Gaussian)"].rows == (("n", 2.0, 1.0), ("y", 8.0, 1.0))
    assert tables["colour (Categorical)"].header == ("class", "blue", "red")
    assert tables["colour (Categorical)"].rows == (("n", 0.0, 1.0), ("y", 1.0, 0.0))


def test_title_counts_rows_classes_columns_and_parameters(model):
    # 1 prior, 2 means and 2 variances in each of two columns, and one share for each class
    assert model.n_parameters_ == 1 + 2 * 4 + 2
    assert model.summary().title == "NaiveBayes: 4 rows, 2 classes, 3 columns, 11 parameters"


def test_columns_without_evidence_are_noted(model):
    assert model.summary().notes == ("no evidence from 'same': constant",)
    assert str(model.summary()).endswith("note: no evidence from 'same': constant")


def test_text_lines_columns_up(model):
    lines = str(model.summary()).splitlines()
    start = lines.index("size (Gaussian)")
    assert lines[start + 1 : start + 4] == ["  class  mean  sd", "  n         2   1", "  y         8   1"]


def test_long_tables_are_shortened_in_print_only():
    wide = Table("wide", ("class", *map(str, range(50))), (("a", *[0.5] * 50),))
    long = Table("long", ("word", "p"), tuple((str(i), 0.25) for i in range(100)))
    text = str(Summary("title", (wide, long)))
    assert "…" in text
    assert f"… and {100 - MOST_ROWS} more rows" in text
    assert max(map(len, text.splitlines())) < 120
    many = Summary("title", (Table("one", ("class",), ()),) * (MOST_TABLES + 5))
    assert "… and 5 more tables, in summary().tables" in str(many)


def test_html_escapes_names_classes_and_values():
    attack = "<script>alert(1)</script>"
    table = pd.DataFrame({attack: [attack, "v", "u", "v"]})
    page = db.NaiveBayes().fit(table, [attack, "b", attack, "b"]).summary()._repr_html_()
    assert "<script>" not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 3


@pytest.mark.parametrize(
    ("family", "words"),
    [
        (f.Gaussian(), "mean"),
        (f.Poisson(), "rate"),
        (f.Exponential(), "rate"),
        (f.Uniform(), "from"),
        (f.Binned("equal-width", count=2), "<"),
        (f.Categorical(), "1"),
        (f.Bernoulli(threshold=2), "true"),
        (f.Multinomial(), "word"),
        (f.MultivariateGaussian("shared"), "covariance of all classes"),
        (f.MultivariateGaussian("per-class", shrinkage=0.5), "covariance of n"),
    ],
    ids=str,
)
def test_every_family_prints_its_tables(family, words):
    x = np.array([[1.0, 2], [2, 1], [3, 3], [4, 2], [5, 1], [1, 4]])
    text = str(db.NaiveBayes(family).fit(x, list("nynyny")).summary())
    assert type(family).__name__ in text
    assert words in text
    assert "nan" not in text


def test_a_model_not_fitted_has_no_summary():
    with pytest.raises(ValueError, match="not fitted"):
        db.NaiveBayes().summary()
