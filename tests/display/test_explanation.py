"""An explanation is a sum: prior and columns, in decibans, that add up to the log-odds of the prediction."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

import deciban as db
from deciban import families as f

EVADE = pd.DataFrame(
    {
        "Refund": ["Yes", "No", "No", "Yes", "No", "No", "Yes", "No", "No", "No"],
        "Status": ["S", "M", "S", "M", "D", "M", "D", "S", "M", "S"],
        "Income": [125, 100, 70, 120, 95, 60, 220, 85, 75, 90],
        "Evade": ["No", "No", "No", "No", "Yes", "No", "No", "Yes", "No", "Yes"],
    }
)


@pytest.fixture
def evade():
    return db.NaiveBayes().fit(EVADE, "Evade")


RNG = np.random.default_rng(4)
X = RNG.integers(0, 5, (40, 4)).astype(float)
X[RNG.random(X.shape) < 0.1] = np.nan
Y = np.array(list("abc"))[np.arange(40) % 3]
MODELS = {
    "Gaussian": db.NaiveBayes(),
    "Categorical": db.NaiveBayes(f.Categorical()),
    "Bernoulli": db.NaiveBayes(f.Bernoulli(threshold=2)),
    "Poisson": db.NaiveBayes(f.Poisson()),
    "Binned": db.NaiveBayes(f.Binned("equal-frequency", count=3)),
    "Uniform": db.NaiveBayes(f.Uniform()),
    "Multinomial": db.NaiveBayes(f.Multinomial()),
    "mixed": db.NaiveBayes({(0, 2): f.MultivariateGaussian(), 1: f.Poisson()}),
    "missing as a value": db.NaiveBayes({0: f.Categorical()}, missing="category"),
    "unseen in reserve": db.NaiveBayes(f.Categorical(), unseen="reserve", class_prior="laplace"),
    "shared": db.GaussianDiscriminant("shared"),
    "per-class": db.GaussianDiscriminant("per-class", shrinkage=0.1),
    "diagonal": db.GaussianDiscriminant("diagonal", class_prior=[0.2, 0.3, 0.5]),
}


@pytest.mark.parametrize("name", MODELS)
def test_decibans_sum_to_the_log_odds_of_the_prediction(name):
    model = MODELS[name].fit(X, Y)
    logs = model.predict_log_proba(X) * 10 / np.log(10)
    explanation = model.explain(X)
    assert len(explanation) == len(X)
    for i, target in enumerate(model.classes_):
        for j, against in enumerate(model.classes_):
            values = explanation.decibans(target, against)
            assert values.shape == (len(X), len(explanation.names))
            possible = np.isfinite(logs[:, [i, j]]).any(axis=1)  # Uniform excludes some rows from both
            odds = logs[possible, i] - logs[possible, j]
            np.testing.assert_allclose(values[possible].sum(axis=1), odds, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(explanation.log_odds(target, against)[possible], odds, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_the_predicted_class_is_weighed_against_the_next(name):
    model = MODELS[name].fit(X, Y)
    logs = model.predict_log_proba(X) * 10 / np.log(10)
    best, second = np.sort(logs, axis=1)[:, ::-1][:, :2].T
    np.testing.assert_allclose(model.explain(X).log_odds(), best - second, rtol=1e-9, atol=1e-9)


def test_each_part_is_ten_log_ten_of_its_ratio(evade):
    """Prior 3/10 : 7/10; Refund=No 4/5 : 5/9 (1 + 3 of 2 + 3, 1 + 4 of 2 + 7); Status=D 2/6 : 2/10."""
    explanation = evade.explain(pd.DataFrame({"Refund": ["No"], "Status": ["D"], "Income": [np.nan]}))
    assert explanation.names == ("prior", "Refund", "Status", "Income")
    expected = 10 * np.log10([3 / 7, (4 / 5) / (5 / 9), (2 / 6) / (2 / 10), 1])
    np.testing.assert_allclose(explanation.decibans("Yes", "No")[0], expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(explanation.decibans("No", "Yes")[0], -expected, rtol=1e-12, atol=1e-12)


def test_columns_come_in_the_order_of_the_fit_and_joint_blocks_are_shared_out():
    table = pd.DataFrame({"c": [1.0, 2, 3, 5, 4, 8], "b": list("uvuvuv"), "a": [2.0, 1, 2, 2, 3, 1]})
    model = db.NaiveBayes({("a", "c"): f.MultivariateGaussian()}).fit(table, list("nynyny"))
    assert model.explain(table).names == ("prior", "c", "b", "a")  # a joint normal is shared out
    assert db.NaiveBayes().fit(table, list("nynyny")).explain(table[["a", "b", "c"]]).names == ("prior", "c", "b", "a")


def test_words_of_sparse_rows_are_explained_one_by_one():
    x = sp.csr_array([[2, 0, 1], [0, 3, 0], [1, 0, 0], [0, 1, 1]])
    model = db.NaiveBayes().fit(x, [0, 1, 0, 1])
    explanation = model.explain(x)
    assert explanation.names == ("prior", "0", "1", "2")
    assert explanation.decibans()[0, 2] == 0  # the word is not there
    np.testing.assert_allclose(explanation.joint, model.predict_joint_log_proba(x), rtol=1e-12)


def test_text_shows_the_prior_then_the_strongest_columns(evade):
    lines = evade.explain(EVADE[4:5]).text().splitlines()
    assert lines[0] == "row 0: Yes against No, in decibans"
    assert lines[1].split()[0] == "prior"
    assert lines[-1].split()[0] == "log-odds"
    shown = [abs(float(line.split()[3])) for line in lines[2:-1]]
    assert shown == sorted(shown, reverse=True)
    assert {line[2:].partition("  ")[0] for line in lines[2:-1]} == {"Refund = No", "Status = D", "Income = 95"}
    total = evade.explain(EVADE[4:5]).log_odds()[0]
    assert f"{total:+.2f}" in lines[-1]
    assert f"odds {10 ** (total / 10):.1f} to 1" in lines[-1]


def test_text_may_ask_for_one_row_and_two_classes(evade):
    text = evade.explain(EVADE).text(3, pos_label="Yes", against="No")
    assert text.startswith("row 3: Yes against No")
    assert "odds 1 to " in text
    with pytest.raises(db.DecibanError, match="no class 'Maybe'; there are"):
        evade.explain(EVADE).text(3, pos_label="Maybe")
    with pytest.raises(db.DecibanError, match=r"no class 'yes' \(did you mean 'Yes'\?\); there are"):
        evade.explain(EVADE).text(3, pos_label="yes")


def test_print_shows_five_rows_and_counts_the_others(evade):
    shown = str(evade.explain(EVADE))
    assert shown.count("log-odds") == 5
    assert "… and 5 more rows" in shown


def test_many_columns_are_shortened_in_print_only():
    x = RNG.normal(size=(20, 200))
    explanation = db.NaiveBayes().fit(x, np.arange(20) % 2).explain(x)
    lines = explanation.text().splitlines()
    assert len(explanation.names) == 201
    assert len(lines) < 30
    others = next(line for line in lines if "others" in line)
    values = explanation.decibans()[0]
    listed = [line.split()[1] for line in lines[1:] if line.split()[0] == "column"]
    assert len(listed) == 15
    rest = values.sum() - values[0] - sum(values[1 + int(name)] for name in listed)
    assert f"{rest:+.2f}" in others


def test_html_escapes_names_and_classes():
    attack = "<script>alert(1)</script>"
    table = pd.DataFrame({attack: ["u", "v", "u", "v"]})
    page = db.NaiveBayes().fit(table, [attack, "b", attack, "b"]).explain(table)._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_evidence_that_excludes_a_class_is_infinite_and_says_so():
    table = pd.DataFrame({"a": list("uuvv"), "b": list("xyxy")})
    explanation = db.NaiveBayes(smoothing=0).fit(table, list("nnyy")).explain(table[:1])
    assert explanation.decibans("n", "y")[0].tolist() == [0, np.inf, 0]
    assert explanation.log_odds("y", "n")[0] == -np.inf
    assert "certain" in explanation.text()
    assert "impossible" in explanation.text(pos_label="y", against="n")


def test_a_row_impossible_under_both_classes_is_never_nan():
    table = pd.DataFrame({"a": list("uv"), "b": list("uv")})
    model = db.NaiveBayes(smoothing=0, class_prior=[0.2, 0.8]).fit(table, ["n", "y"])
    explanation = model.explain(pd.DataFrame({"a": ["u"], "b": ["v"]}))
    np.testing.assert_allclose(explanation.log_odds("y", "n"), 10 * np.log10(4), rtol=1e-12)
    assert "nan" not in str(explanation)


def test_one_class_alone_needs_no_evidence():
    explanation = db.NaiveBayes().fit([[1.0], [2.0]], ["only", "only"]).explain([[1.0]])
    assert explanation.log_odds().tolist() == [0.0]
    assert explanation.text() == "row 0: only, the only class"


def test_html_bars_lie_on_the_side_of_their_sign(evade):
    """Of 50% for each side, as much as the share of the strongest part."""
    table = pd.DataFrame({"Refund": ["No"], "Status": ["D"], "Income": [np.nan]})
    explanation = evade.explain(table)
    page = explanation._repr_html_()
    values = explanation.decibans()[0]
    scale = np.abs(values).max()
    for i, value in enumerate(values):
        row = next(line for line in page.splitlines() if f">{explanation.label(i)}</th>" in line)
        width = 50 * abs(value) / scale
        if value == 0:  # a missing income: the row stays, without a bar
            assert '<td style="text-align:right">0.00</td>' in row
            assert "<div" not in row
            continue
        assert f"width:{width:.1f}%;margin-left:{50 if value >= 0 else 50 - width:.1f}%" in row
        assert f'<td style="text-align:right">{value:+.2f}</td>' in row
    assert "odds" in page


def test_html_shows_as_many_rows_as_text(evade):
    page = evade.explain(pd.concat([EVADE[:1]] * 7, ignore_index=True))._repr_html_()
    assert page.count("<table>") == 5
    assert "… and 2 more rows" in page


# Values --------------------------------------------------------------------------------------------------------------

FRAMES = {"pandas": lambda table: table, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}


@pytest.mark.parametrize("kind", FRAMES)
def test_values_are_those_of_the_rows(evade, kind):
    table = EVADE.assign(Income=EVADE["Income"].astype(float)).drop(columns="Evade")
    table.loc[1, "Income"], table.loc[2, "Status"] = np.nan, None
    turned = FRAMES[kind](table[["Income", "Status", "Refund"]])  # another order than that of the fit
    explanation = evade.explain(turned)
    assert explanation.features == ((), ("Refund",), ("Status",), ("Income",))
    assert explanation.values.shape == explanation.decibans().shape
    assert explanation.values[:3].tolist() == [
        [None, "Yes", "S", 125.0],
        [None, "No", "M", None],
        [None, "No", None, 70.0],
    ]
    assert {label for label, _ in explanation.lines(1)} == {
        "prior",
        "Refund = No",
        "Status = M",
        "Income is missing",
        "log-odds",
    }


def test_values_of_arrays_are_kept_as_they_were():
    x = np.array([[1.5, 2.0], [np.nan, 4.0], [0.5, 1.0], [2.5, 3.0]])
    explanation = db.NaiveBayes().fit(x, [0, 1, 0, 1]).explain(x)
    x[:] = 99.0
    assert explanation.values.tolist() == [[None, 1.5, 2.0], [None, None, 4.0], [None, 0.5, 1.0], [None, 2.5, 3.0]]
    assert {label for label, _ in explanation.lines(1)} == {"prior", "column 0 is missing", "column 1 = 4", "log-odds"}


def test_values_of_sparse_rows_and_booleans():
    x = sp.csr_array([[2, 0], [0, 3], [1, 0], [0, 1]])
    explanation = db.NaiveBayes().fit(x, [0, 1, 0, 1]).explain(x)
    assert explanation.values.tolist() == [[None, 2, 0], [None, 0, 3], [None, 1, 0], [None, 0, 1]]
    table = pd.DataFrame({"flag": [True, False, True, False]})
    assert db.NaiveBayes().fit(table, [0, 0, 1, 1]).explain(table).label(1) == "flag = True"


def test_long_text_is_cut_and_stays_on_a_line():
    table = pd.DataFrame({"note": ["one\n two " + "x" * 80, "", "b", "b"]})
    explanation = db.NaiveBayes().fit(table, [0, 0, 1, 1]).explain(table)
    assert explanation.label(1, 0) == "note = one two " + "x" * 21 + "…"
    assert explanation.label(1, 1) == "note = ''"
    assert explanation.values[0, 1] == "one\n two " + "x" * 80


MODELS_OF_TABLES = {
    "naive Bayes": db.NaiveBayes(),
    "weighted evidence": db.EvidenceClassifier(trees=4),
    "logistic": db.LogisticRegression(l2=1.0),
    "softmax": db.SoftmaxRegression(l2=1.0),
    "calibrated": db.CalibratedClassifier(db.NaiveBayes(), cv=2),
}


@pytest.mark.parametrize("name", MODELS_OF_TABLES)
def test_all_explanations_carry_values_and_are_tidy_tables(name):
    model = MODELS_OF_TABLES[name].fit(EVADE, "Evade")
    explanation = model.explain(EVADE[:3])
    columns = [explanation.names.index(name) for name in ("Refund", "Status", "Income")]
    assert explanation.values[:, columns].tolist() == EVADE.drop(columns="Evade")[:3].values.tolist()
    frame = explanation.to_frame("Yes", "No").to_pandas()
    assert list(frame) == ["row", "feature", "value", "decibans", "class", "against"]
    assert set(frame["class"]) == {"Yes"}
    assert set(frame["against"]) == {"No"}
    np.testing.assert_allclose(frame.groupby("row")["decibans"].sum(), explanation.log_odds("Yes", "No"), rtol=1e-9)
    assert frame[frame["feature"] == "Status"]["value"].tolist() == ["S", "M", "S"]
    assert pl.DataFrame(explanation).shape == frame.shape


def test_the_table_explains_the_class_predicted_if_none_is_given(evade):
    frame = evade.explain(EVADE).to_frame().to_pandas().drop_duplicates("row")
    assert frame["class"].tolist() == evade.predict(EVADE).tolist()
    assert (frame["class"] != frame["against"]).all()


def test_joint_normals_have_no_line_that_is_a_constant():
    """Prior and columns are all there is; a row at the middle of both means is told nothing by the shared form."""
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    x = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 3)) + y[:, np.newaxis]
    model = db.GaussianDiscriminant("shared").fit(x, y)
    explanation = model.explain(np.array([x[y == 0].mean(axis=0) / 2 + x[y == 1].mean(axis=0) / 2]))
    assert explanation.names == ("prior", "0", "1", "2")
    np.testing.assert_allclose(explanation.decibans(1, 0)[0], 0.0, atol=1e-9)


# Documents -----------------------------------------------------------------------------------------------------------

TEXTS = ["call 08712460324 now", "see you now", "call me", "win 500 now, call now"]


def test_terms_of_the_document_come_first_and_absent_ones_last():
    model = db.NaiveBayes(f.Text("bernoulli", shapes=True)).fit(TEXTS, [1, 0, 0, 1])
    explanation = model.explain(["now call 07000000000, now", "see"])
    labels = [label for label, _ in explanation.lines(0)]
    assert labels[0] == "prior"
    assert set(labels[1:-2]) == {"now (×2)", "call", "a number of 11 digits"}
    assert labels[-2:] == ["absent words", "log-odds"]
    assert [label for label, _ in explanation.lines(1)] == ["prior", "see", "absent words", "log-odds"]
    frame = explanation.to_frame().to_pandas()
    assert frame[frame["row"] == 1]["feature"].tolist() == ["prior", "see", "absent words"]
    assert frame[frame["feature"] == "now"]["value"].tolist() == [2]
