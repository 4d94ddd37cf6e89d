"""The charts of a report, one by one."""

import numpy as np
import pandas as pd
import pytest
import vl_convert

import deciban as db
from deciban.errors import DecibanError
from tests.report.cases import CASES


def report(name):
    return CASES[name]().report


def drawn(chart):
    """What altair would show, and the picture, which has no NaN in it."""
    picture = vl_convert.vegalite_to_svg(chart.to_json())
    assert picture.startswith("<svg")
    assert "NaN" not in picture
    return chart.to_dict()


def test_evidence_is_ranked_as_in_the_figures():
    case_report = report("binary")
    rows = drawn(case_report.plot_evidence())["datasets"]["ranking"]
    assert [row["name"] for row in rows] == [part["name"] for part in case_report.figures["evidence"]["ranking"]][:20]


@pytest.mark.parametrize("name", ["binary", "five", "glm", "twins", "logistic"])
def test_every_column_has_a_chart(name):
    case_report, kinds = report(name), set()
    for column in case_report.figures["evidence"]["columns"]:
        plot = case_report.plot_column(column["name"])
        spec = plot.to_dict() if column["chart"] in kinds else drawn(plot)  # a picture of each kind
        kinds.add(column["chart"])
        decibans = [row["decibans"] for row in spec["datasets"]["evidence"]]
        assert decibans == [row[column["evidence"]["fields"].index("decibans")] for row in column["evidence"]["rows"]]


def test_of_five_classes_each_can_be_asked_for():
    case_report = report("five")
    params = drawn(case_report.plot_column("age", pos_label="rarely"))["params"]
    assert {"name": "chosen", "value": "rarely"} in params


def test_pairs_go_by_either_order():
    """Whether two columns are equal tells the class; neither does alone."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 3, (2, 600))
    y = np.where((a == b) ^ (rng.random(600) < 0.1), "x", "z")
    table = pd.DataFrame({"a": a.astype(str), "b": b.astype(str), "y": y})
    case_report = db.EvidenceClassifier(trees=0).fit(table, "y").report(table, "y")
    assert [sorted(pair["names"]) for pair in case_report.figures["evidence"]["pairs"]] == [["a", "b"]]
    one, other = (drawn(case_report.plot_pair(*names))["datasets"] for names in (("a", "b"), ("b", "a")))
    assert one == other
    cells = {(row["a"], row["b"]): row["decibans"] for row in one["cells"]}
    assert all((cells[p, q] < 0) == (p == q) for p, q in cells if "(" not in p + q)


def test_terms_of_documents():
    case_report = report("text")
    rows = drawn(case_report.plot_terms())["datasets"]["terms"]
    assert rows == drawn(case_report.plot_terms("text", pos_label="spam"))["datasets"]["terms"]
    assert rows[0]["decibans"] > 0 > rows[-1]["decibans"]


def test_residuals_of_numbers():
    case_report, case = report("glm"), CASES["glm"]()
    rows = drawn(case_report.plot_residuals())["datasets"]["residuals"]
    np.testing.assert_allclose([row["observed"] for row in rows], case.table[case.label])
    np.testing.assert_allclose([row["predicted"] for row in rows], case.model.predict(case.table), rtol=1e-5)


def test_what_is_not_there_is_said():
    case_report = report("binary")
    with pytest.raises(DecibanError, match="no chart of a feature 'agee': pass one of"):
        case_report.plot_column("agee")
    with pytest.raises(DecibanError, match="no class 'maybe'"):
        case_report.plot_column("age", pos_label="maybe")
    with pytest.raises(DecibanError, match="evidence is for the second of two classes, 'yes'"):
        case_report.plot_column("age", pos_label="no")
    with pytest.raises(DecibanError, match="pass one of none"):
        case_report.plot_terms()
    with pytest.raises(DecibanError, match="a classifier has no residuals"):
        case_report.plot_residuals()
