"""Evidence in a report, held against densities of scipy, exact tables of counts, and means over explained rows."""

from fractions import Fraction
from math import log10

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.datasets import load_iris

import deciban as db
from deciban.data import frame_of
from deciban.report import report_of
from deciban.report.contribution_figures import against_others, explained

F = db.families


def evidence_of(model, X, y, **options):
    return report_of(model.fit(X, y), X, y, **options).figures["evidence"]


def chart(evidence, name):
    (figure,) = [column for column in evidence["columns"] if column["name"] == name]
    return figure


def rows(table):
    return [dict(zip(table["fields"], row, strict=True)) for row in table["rows"]]


def two_normals(n=400, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return np.column_stack([rng.normal(2.0 * y, 1 + y), rng.normal(size=n)]), y


# The ranking ---------------------------------------------------------------------------------------------------------


def test_parts_are_ranked_by_their_mean_size():
    X, y = two_normals()
    evidence = evidence_of(db.NaiveBayes(), X, y)
    expected = []
    for j in range(2):
        logs = [stats.norm.logpdf(X[:, j], X[y == c, j].mean(), X[y == c, j].std()) for c in range(2)]
        expected.append(np.abs(logs[1] - logs[0]).mean() * 10 / np.log(10))
    assert [(part["name"], part["what"]) for part in evidence["ranking"]] == [("0", "feature"), ("1", "feature")]
    assert [part["value"] for part in evidence["ranking"]] == pytest.approx(expected, rel=1e-9)
    assert (evidence["rows"], evidence["unit"]) == (400, "decibans")


def test_equal_rows_count_as_often_as_they_are_there():
    """Of many rows the different ones are explained once, with the weight of all."""
    table = pd.DataFrame({"colour": ["red"] * 4000 + ["blue"] * 1000 + ["red"] * 500 + ["blue"] * 1500})
    y = ["no"] * 5000 + ["yes"] * 2000
    evidence = evidence_of(db.NaiveBayes(smoothing=0), table, y)
    red, blue = 10 * log10(Fraction(500, 2000) / Fraction(4000, 5000)), 10 * log10(Fraction(1500, 2000) * 5)
    assert evidence["ranking"][0]["value"] == pytest.approx((4500 * -red + 2500 * blue) / 7000, rel=1e-12)
    figure = {row["value"]: row for row in rows(chart(evidence, "colour")["evidence"])}
    assert figure["red"]["decibans"] == pytest.approx(red, rel=1e-5)
    assert figure["blue"]["decibans"] == pytest.approx(blue, rel=1e-5)
    assert (figure["red"]["rows"], figure["blue"]["rows"]) == (4500, 2500)


def test_decibans_are_against_the_mean_of_the_others():
    nats = np.log([[0.1, 0.2, 0.7], [1.0, 1.0, 1.0]])
    expected = [10 * log10(0.1 / (0.2 * 0.7) ** 0.5), 10 * log10(0.2 / 0.07**0.5), 10 * log10(0.7 / 0.02**0.5)]
    np.testing.assert_allclose(against_others(nats), [expected, [0, 0, 0]], atol=1e-12)


def test_the_impossible_is_infinite():
    nats = np.array([[-np.inf, 0.0], [0.0, -np.inf], [-np.inf, -np.inf]])
    assert against_others(nats).tolist() == [[-np.inf, np.inf], [np.inf, -np.inf], [0, 0]]
    table = pd.DataFrame({"colour": ["red", "red", "blue", "blue"]})
    figure = chart(evidence_of(db.NaiveBayes(smoothing=0), table, [0, 0, 0, 1]), "colour")
    assert {row["value"]: row["decibans"] for row in rows(figure["evidence"])}["red"] == "-inf"


def test_linear_parts_are_those_of_explain():
    table = pd.DataFrame({"b": [1.0, 2.0, np.nan, 4.0, 0.5, 3.0], "a": list("xyzxyy"), "c": [True, False] * 3})
    model = db.SoftmaxRegression(l2=1.0).fit(table, [0, 1, 2, 0, 1, 2])
    names, nats = explained(model, frame_of(table))
    figure = model.explain(table)
    assert names[1:] == list(figure.names[1:])
    np.testing.assert_allclose(nats, figure.nats, atol=1e-14)


# Columns that speak by themselves ------------------------------------------------------------------------------------


def test_a_curve_is_the_log_ratio_of_densities():
    X, y = two_normals()
    figure = chart(evidence_of(db.NaiveBayes(), X, y), "0")
    laws = [stats.norm(X[y == c, 0].mean(), X[y == c, 0].std()) for c in range(2)]
    assert (figure["chart"], figure["exact"], figure["density_title"]) == ("numbers", True, "p(x | class) by the model")
    points = rows(figure["evidence"])
    x = np.array([row["value"] for row in points])
    assert len(x) == 65
    assert (x[0], x[-1]) == pytest.approx((X[:, 0].min(), X[:, 0].max()), rel=1e-5)
    assert {row["class"] for row in points} == {"1"}
    expected = (laws[1].logpdf(x) - laws[0].logpdf(x)) * 10 / np.log(10)
    np.testing.assert_allclose([row["decibans"] for row in points], expected, rtol=1e-4, atol=1e-3)
    for c in range(2):
        mine = [row for row in rows(figure["density"]) if row["class"] == str(c)]
        np.testing.assert_allclose([row["density"] for row in mine], laws[c].pdf(x), rtol=1e-4, atol=1e-6)


def test_counts_are_asked_at_whole_numbers():
    X, y = np.array([[0.0], [1.0], [2.0], [4.0], [6.0], [5.0]]), [0, 0, 0, 1, 1, 1]
    figure = chart(evidence_of(db.NaiveBayes(F.Poisson()), X, y), "0")
    points = rows(figure["evidence"])
    assert [row["value"] for row in points] == [0, 1, 2, 3, 4, 5, 6]
    expected = [10 / np.log(10) * (stats.poisson.logpmf(x, 5) - stats.poisson.logpmf(x, 1)) for x in range(7)]
    np.testing.assert_allclose([row["decibans"] for row in points], expected, rtol=1e-5)


def test_bins_are_steps():
    X, y = np.array([[1.0], [2.0], [3.0], [9.0]]), [0, 0, 1, 1]
    figure = chart(evidence_of(db.NaiveBayes(F.Binned("equal-frequency", count=2)), X, y), "0")
    assert (figure["chart"], figure["exact"]) == ("steps", True)
    first, second = rows(figure["evidence"])
    assert (first["from"], first["to"], second["from"], second["to"]) == (1, 2.5, 2.5, 9)
    assert (first["decibans"], second["decibans"]) == pytest.approx((10 * log10(1 / 3), 10 * log10(3)), rel=1e-5)
    assert (first["rows"], second["rows"]) == (2, 2)
    densities = [row["density"] for row in rows(figure["density"])]
    assert densities == pytest.approx([0.75 / 1.5, 0.25 / 6.5, 0.25 / 1.5, 0.75 / 6.5], rel=1e-5)


def test_of_many_values_the_most_frequent_are_shown():
    values = [f"v{i:03}" for i in range(100) for _ in range(100 - i)]
    y = (np.arange(len(values)) % 2).tolist()
    figure = chart(evidence_of(db.NaiveBayes(), pd.DataFrame({"x": values}), y), "x")
    points = rows(figure["evidence"])
    assert [row["value"] for row in points[:30]] == [f"v{i:03}" for i in range(30)]
    assert (points[30]["value"], points[30]["rows"], len(points)) == ("(70 others)", sum(range(1, 71)), 31)


def test_a_missing_cell_is_a_value_where_it_counts():
    table = pd.DataFrame({"x": ["a", "a", None, None, "b", None]})
    y = [0, 0, 0, 1, 1, 1]
    by_value = {
        row["value"]: row
        for row in rows(chart(evidence_of(db.NaiveBayes(missing="category"), table, y), "x")["evidence"])
    }
    assert by_value["(missing)"]["decibans"] == pytest.approx(10 * log10(Fraction(3, 6) / Fraction(2, 6)), rel=1e-5)
    skipped = chart(evidence_of(db.NaiveBayes(), table, y), "x")
    assert {row["value"]: row["decibans"] for row in rows(skipped["evidence"])}["(missing)"] == 0
    assert "(missing)" not in {row["value"] for row in rows(skipped["density"])}


def test_a_value_never_learned_has_no_share():
    learned, y = pd.DataFrame({"c": ["a", "b", "a", "b"], "x": [1.0, 2.0, 2.5, 4.0]}), [0, 1, 0, 1]
    model = db.NaiveBayes().fit(learned, y)
    asked = learned.assign(c=["a", "b", "new", "new"])
    figure = chart(report_of(model, asked, y).figures["evidence"], "c")
    assert {row["value"]: row["decibans"] for row in rows(figure["evidence"])}["new"] == 0
    assert {row["value"] for row in rows(figure["density"])} == {"a", "b"}


def test_a_column_that_says_nothing_has_no_chart():
    X = np.column_stack([np.ones(6), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]])
    evidence = evidence_of(db.NaiveBayes(), X, [0, 1, 0, 1, 0, 1])
    assert [column["name"] for column in evidence["columns"]] == ["1"]


def test_booleans_have_two_values():
    X, y = np.array([[True], [True], [False], [False]]), [0, 0, 0, 1]
    figure = rows(chart(evidence_of(db.NaiveBayes(), X, y), "0")["evidence"])
    expected = {
        "False": 10 * log10(Fraction(2, 3) / Fraction(2, 5)),
        "True": 10 * log10(Fraction(1, 3) / Fraction(3, 5)),
    }
    assert {row["value"]: row["decibans"] for row in figure} == pytest.approx(expected, rel=1e-5)


def test_a_coefficient_is_a_line():
    X, y = two_normals()
    model = db.LogisticRegression().fit(X, y)
    evidence = report_of(model, X, y).figures["evidence"]
    figure = chart(evidence, "0")
    points = rows(figure["evidence"])
    slope = np.diff([row["decibans"] for row in points]) / np.diff([row["value"] for row in points])
    np.testing.assert_allclose(slope, model.coef_[0, 0] * 10 / np.log(10), rtol=1e-3)
    assert (figure["exact"], figure["density_title"]) == (True, "share of the rows of each class")
    for c in ("0", "1"):
        area = sum((row["to"] - row["from"]) * row["density"] for row in rows(figure["density"]) if row["class"] == c)
        assert area == pytest.approx(1, rel=1e-4)


def test_corrected_evidence_is_multiplied_and_its_densities_are_not():
    X, y = two_normals()
    model = db.CalibratedClassifier(db.NaiveBayes()).fit(X, y)
    figure = chart(report_of(model, X, y).figures["evidence"], "0")
    law = stats.norm(X[y == 1, 0].mean(), X[y == 1, 0].std()), stats.norm(X[y == 0, 0].mean(), X[y == 0, 0].std())
    row = rows(figure["evidence"])[10]
    expected = model.beta_ * 10 / np.log(10) * (law[0].logpdf(row["value"]) - law[1].logpdf(row["value"]))
    assert row["decibans"] == pytest.approx(expected, rel=1e-4)
    density = [r for r in rows(figure["density"]) if r["class"] == "1"][10]
    assert density["density"] == pytest.approx(law[0].pdf(row["value"]), rel=1e-4)


def test_columns_without_evidence_are_no_trouble():
    n = 50
    table = pd.DataFrame({"never": [None] * n, "same": 1.0, "nan": np.nan, "x": np.arange(n) * 1.0})
    y = np.arange(n) // 5 % 2
    y[:10] = 0
    for model in (db.NaiveBayes(), db.EvidenceClassifier(trees=2), db.LogisticRegression(l2=1.0)):
        evidence = evidence_of(model, table, y)
        assert chart(evidence, "x")["evidence"]["rows"]
        assert {part["name"]: part["value"] for part in evidence["ranking"]}.get("same", 0) == 0


def test_the_predictor_of_a_number_has_no_classes():
    X = np.arange(20.0)[:, np.newaxis]
    model = db.GeneralizedLinearModel("poisson")
    evidence = evidence_of(model, X, np.arange(20) // 4)
    assert evidence["unit"] == "predictor"
    expected = np.abs(model.coef_[0] * (X - X.mean())).mean()
    assert evidence["ranking"][0]["value"] == pytest.approx(expected, rel=1e-9)
    points = rows(chart(evidence, "0")["evidence"])
    assert points[-1]["decibans"] - points[0]["decibans"] == pytest.approx(19 * model.coef_[0], rel=1e-4)


# Columns that speak with others --------------------------------------------------------------------------------------


def test_columns_of_trees_are_means_over_rows():
    X, y = load_iris(return_X_y=True)
    model = db.EvidenceClassifier(trees=8).fit(X, y)
    figure = chart(report_of(model, X, y).figures["evidence"], "2")
    assert (figure["chart"], figure["exact"]) == ("steps", False)
    explanation = model.explain(X)
    nats = explanation.nats[:, explanation.names.index("2")]
    decibans = 10 / np.log(10) * (nats - (nats.sum(axis=1, keepdims=True) - nats) / 2)
    points = [row for row in rows(figure["evidence"]) if row["class"] == "1"]
    assert sum(row["rows"] for row in points) == 150
    for row in points[1:-1]:
        mine = decibans[(X[:, 2] >= row["from"]) & (X[:, 2] < row["to"]), 1]
        assert len(mine) == row["rows"]
        assert row["decibans"] == pytest.approx(mine.mean(), rel=1e-4, abs=1e-4)
        expected = [np.quantile(mine, share, method="inverted_cdf") for share in (0.1, 0.9)]
        assert [row["low"], row["high"]] == pytest.approx(expected, rel=1e-4, abs=1e-4)
    for c in ("0", "1", "2"):
        area = sum((r["to"] - r["from"]) * r["density"] for r in rows(figure["density"]) if r["class"] == c)
        assert area == pytest.approx(1, rel=1e-4)


def test_shares_over_a_bent_axis_are_areas_on_it():
    rng = np.random.default_rng(6)
    y = rng.integers(0, 2, 900)
    money = rng.lognormal(3 + y, 2.0)
    figure = chart(evidence_of(db.LogisticRegression(l2=1.0), np.column_stack([money, rng.normal(y, 1.0)]), y), "0")
    constant = figure["scale"]["constant"]
    for c in ("0", "1"):
        mine = [row for row in rows(figure["density"]) if row["class"] == c]
        wide = [np.log1p(row["to"] / constant) - np.log1p(row["from"] / constant) for row in mine]
        assert np.dot(wide, [row["density"] for row in mine]) == pytest.approx(1, rel=1e-4)


def test_whole_numbers_are_as_common_as_they_are():
    """Of 73 ages in 30 bins some would hold three and some two."""
    ages = np.repeat(np.arange(18.0, 91.0), 10)[:, np.newaxis]
    figure = chart(evidence_of(db.GeneralizedLinearModel("gaussian"), ages, ages[:, 0] ** 2), "0")
    density = [row["density"] for row in rows(figure["density"])]
    np.testing.assert_allclose(density, 1 / 73, rtol=1e-5)


def test_values_of_a_category_are_means_over_rows():
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"job": rng.choice(list("abc"), 250), "x": rng.normal(size=250)})
    y = ((table["job"] == "a") ^ (rng.random(250) < 0.2)).to_numpy().astype(int)
    model = db.EvidenceClassifier(trees=8).fit(table, y)
    figure = chart(report_of(model, table, y).figures["evidence"], "job")
    explanation = model.explain(table)
    decibans = explanation.decibans(1, 0)[:, explanation.names.index("job")]
    for row in rows(figure["evidence"]):
        assert row["decibans"] == pytest.approx(decibans[table["job"] == row["value"]].mean(), rel=1e-4, abs=1e-4)
        density = {(r["value"], r["class"]): r["density"] for r in rows(figure["density"])}
        for c in (0, 1):
            share = (table["job"][y == c] == row["value"]).mean()
            assert density[row["value"], str(c)] == pytest.approx(share, rel=1e-5)


def test_columns_of_a_joint_normal_are_means_over_rows():
    X, y = load_iris(return_X_y=True)
    model = db.GaussianDiscriminant(covariance="per-class").fit(X[:, :2], y)
    evidence = report_of(model, X[:, :2], y).figures["evidence"]
    assert {(part["name"], part["what"]) for part in evidence["ranking"]} == {("0", "feature"), ("1", "feature")}
    figure = chart(evidence, "1")
    assert not figure["exact"]
    nats = model.explain(X[:, :2]).nats[:, 2]
    decibans = (nats[:, 2] - nats[:, :2].mean(axis=1)) * 10 / np.log(10)
    bins = [row for row in rows(figure["evidence"]) if row["class"] == "2"]
    assert sum(row["rows"] for row in bins) == len(X)
    assert sum(row["rows"] * row["decibans"] for row in bins) == pytest.approx(decibans.sum(), rel=1e-3)


def test_a_pair_has_the_cells_of_its_table():
    rng = np.random.default_rng(2)
    table = pd.DataFrame({"a": rng.choice(["p", "q"], 600), "b": rng.choice(["r", "s"], 600)})
    y = ((table["a"] == "p") ^ (table["b"] == "r") ^ (rng.random(600) < 0.1)).to_numpy().astype(int)
    model = db.EvidenceClassifier(trees=0).fit(table, y)
    evidence = report_of(model, table, y).figures["evidence"]
    (pair,) = evidence["pairs"]
    assert pair["names"] == ["a", "b"]
    assert {part["name"] for part in evidence["ranking"]} == {"a", "b"}
    explanation = model.explain(table, by="pair")
    decibans = explanation.decibans(1, 0)[:, explanation.names.index("a + b")]
    cells = rows(pair["cells"])
    assert len(cells) == 4
    for cell in cells:
        mine = (table["a"] == cell["a"]) & (table["b"] == cell["b"])
        assert cell["rows"] == mine.sum()
        np.testing.assert_allclose(decibans[mine], cell["decibans"], rtol=1e-5)


def test_pairs_of_numbers_are_in_order_whatever_cells_were_met():
    """Where one number is large the other is small: no cell of the first row is of the first column."""
    rng = np.random.default_rng(4)
    a = rng.random(1500)
    b = 1 - a + 0.15 * rng.normal(size=1500)
    y = (np.floor(6 * a) + np.floor(6 * b)) % 2 != (rng.random(1500) < 0.1)
    model = db.EvidenceClassifier(pairs=1, trees=0).fit(np.column_stack([a, b]), y)
    (pair,) = report_of(model, np.column_stack([a, b]), y).figures["evidence"]["pairs"]
    cells = rows(pair["cells"])
    for side in "ab":
        labels = list(dict.fromkeys(cell[side] for cell in cells))
        ends = [float(label.split(" to ")[0]) for label in labels[1:-1]]
        assert labels[0].startswith("below ")
        assert labels[-1].endswith(" and above")
        assert ends == sorted(ends)
        assert len(cells) % len(labels) == 0
    empty = [cell for cell in cells if not cell["rows"]]
    assert empty
    assert all((cell["decibans"] is None) == (cell["rows"] == 0) for cell in cells)
    assert sum(cell["rows"] for cell in cells) == 1500


# Terms ---------------------------------------------------------------------------------------------------------------


def test_terms_say_what_their_frequencies_say():
    """Five mails: shares of the terms of each class, with one more of each of the six different ones."""
    mails = ["Do math today", "Buy", "Buy book", "Today do math drugs", "Buy drugs book today"]
    evidence = evidence_of(db.NaiveBayes(families=F.Text()), mails, [0, 1, 0, 1, 1])
    (figure,) = evidence["terms"]
    words = {
        0: ["do", "math", "today", "buy", "book"],
        1: ["buy", "today", "do", "math", "drugs", "buy", "drugs", "book", "today"],
    }
    vocabulary = {*words[0], *words[1]}
    for row in rows(figure["terms"]):
        theta = [Fraction(words[c].count(row["term"]) + 1, len(words[c]) + len(vocabulary)) for c in range(2)]
        assert row["class"] == "1"
        assert row["decibans"] == pytest.approx(10 * log10(theta[1] / theta[0]), rel=1e-5)
        assert row["count"] == words[0].count(row["term"]) + words[1].count(row["term"])
    assert {row["term"] for row in rows(figure["terms"])} >= {"drugs", "math"}
    assert figure["name"] == ""
    assert [(part["name"], part["what"]) for part in evidence["ranking"]] == [("0", "feature")]  # all terms together


def test_weighted_terms_are_those_of_an_explanation():
    rng = np.random.default_rng(3)
    words = ["buy", "book", "math", "do", "drugs", "today", "now"]
    table = pd.DataFrame({"body": [" ".join(rng.choice(words, 6, replace=False)) + f" n{i}" for i in range(150)]})
    y = (table["body"].str.contains("buy") ^ (rng.random(150) < 0.1)).astype(int)
    model = db.EvidenceClassifier(text=["body"]).fit(table, y)
    (figure,) = report_of(model, table, y).figures["evidence"]["terms"]
    assert figure["name"] == "body"
    by_term = {row["term"]: row["decibans"] for row in rows(figure["terms"])}
    explanation = model.explain(pd.DataFrame({"body": ["buy math"]}))
    said = dict(zip(explanation.names, explanation.decibans(1, 0)[0], strict=True))
    assert by_term["buy"] == pytest.approx(said["body: buy"], rel=1e-5)
