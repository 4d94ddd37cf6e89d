"""`deciban fit`: models as of the same table in memory; options; files that cannot be read."""

import json
import os

import numpy as np
import pandas as pd
import pyarrow.feather as feather
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.naive_bayes import CategoricalNB, GaussianNB, MultinomialNB
from sklearn.preprocessing import OrdinalEncoder

import deciban as db
from deciban.cli.model_kinds import column_words, parse_columns
from deciban.cli.options import columns_named, label_named
from deciban.data.files.mail_message import COLUMNS
from deciban.families import Text
from tests.cli.runs import (
    DATA,
    FEATURES,
    KINDS,
    NAIVE_BAYES,
    ROWS,
    files_in,
    fitted,
    in_memory,
    needs_data,
    on_a_terminal,
    people,
    refused,
    run,
)
from tests.laws import flattened

CUT = 120  # rows of a.csv


@pytest.fixture
def files(tmp_path):
    """Two files of people, and one with both."""
    both = people(ROWS).drop(columns="id")
    for name, table in (("a", both[:CUT]), ("b", both[CUT:]), ("both", both)):
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    return tmp_path


def rows(n, seed=1):
    return people(n, seed)[FEATURES]


def proba(path, table):
    return db.load(path).predict_proba(table)


def made(*args):
    """What `fit --json` says about the model."""
    return json.loads(run("fit", *args, "--json").stdout)


# Kinds ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def numbers(tmp_path):
    """Three classes of numbers."""
    rng = np.random.default_rng(5)
    y = rng.integers(0, 3, 300)
    x = rng.normal(size=(300, 3)) + y[:, np.newaxis] * [1.0, -0.5, 0.2]
    table = pd.DataFrame(x, columns=["u", "v", "w"])
    table.assign(kind=y).to_csv(tmp_path / "numbers.csv", index=False)
    return tmp_path / "numbers.csv", table, y


@pytest.mark.parametrize(
    ("args", "peer"),
    [
        ([*NAIVE_BAYES, "--columns", "u=gaussian"], GaussianNB(var_smoothing=0)),
        ([*NAIVE_BAYES, "--prior", "uniform"], GaussianNB(var_smoothing=0, priors=[1 / 3] * 3)),
        (["--model", "lda"], LinearDiscriminantAnalysis(solver="lsqr")),
        (["--model", "lda", "--shrinkage", "0.5"], None),
        (["--model", "qda"], QuadraticDiscriminantAnalysis()),
        (["--model", "logistic", "--l2", "2"], LogisticRegression(C=0.5, tol=1e-10, max_iter=1000)),
        (["--model", "softmax", "--l2", "2"], LogisticRegression(C=0.5, tol=1e-10, max_iter=1000)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_every_kind_gives_the_probabilities_of_its_peer(args, peer, numbers, tmp_path):
    path, table, y = numbers
    run("fit", path, "--label", "kind", "-o", tmp_path / "m.deciban", *args)
    predicted = proba(tmp_path / "m.deciban", table)
    if peer is None:  # scikit-learn's shrunken covariance is another one
        peer = db.GaussianDiscriminant(shrinkage=0.5)
        np.testing.assert_array_equal(predicted, peer.fit(table, y).predict_proba(table))
        return
    # qda of scikit-learn divides by n − 1
    expected = peer.fit(table.to_numpy(), y).predict_proba(table.to_numpy())
    np.testing.assert_allclose(predicted, expected, atol=0.02 if "qda" in args else 1e-5)


@pytest.mark.parametrize(
    ("args", "model"),
    [
        ([], db.EvidenceClassifier()),
        (
            ["--model", "evidence", "--prior", "uniform", "--pairs", "auto"],
            db.EvidenceClassifier(class_prior="uniform", pairs="auto"),
        ),
        (
            ["--trees", "2", "--pairs", "3", "--max-weight-rows", "100", "--random-state", "9007199254740993"],
            db.EvidenceClassifier(trees=2, pairs=3, max_weight_rows=100, random_state=9007199254740993),
        ),
        (["--calibrate", "temperature"], db.CalibratedClassifier(db.EvidenceClassifier())),
        (NAIVE_BAYES, db.NaiveBayes()),
        (
            [*NAIVE_BAYES, "--smoothing", "0.25", "--missing", "category"],
            db.NaiveBayes(smoothing=0.25, missing="category"),
        ),
        (
            [*NAIVE_BAYES, "--smoothing", "auto", "--prior", "laplace"],
            db.NaiveBayes(smoothing="auto", class_prior="laplace"),
        ),
        ([*NAIVE_BAYES, "--families", "auto"], db.NaiveBayes("auto")),
        (["--model", "logistic"], db.LogisticRegression()),
        ([*NAIVE_BAYES, "--calibrate", "temperature"], db.CalibratedClassifier(db.NaiveBayes())),
        (
            [*NAIVE_BAYES, "--calibrate", "isotonic", "--smoothing", "2"],
            db.CalibratedClassifier(db.NaiveBayes(smoothing=2.0), "isotonic"),
        ),
        (
            [*NAIVE_BAYES, "--columns", "age=poisson,income=binned", "--columns", "status=category"],
            db.NaiveBayes({"age": db.families.Poisson(), "income": db.families.Binned()}),
        ),
        ([*NAIVE_BAYES, "--columns", "age=categorical"], db.NaiveBayes({"age": db.families.Categorical()})),
    ],
    ids=lambda value: " ".join(value) or "plain" if isinstance(value, list) else None,
)
def test_a_file_gives_the_model_that_the_table_gives(args, model, tmp_path):
    n = 60 if "--calibrate" in args else ROWS  # which fits often
    (tmp_path / "m.deciban").write_bytes(fitted(*args, rows=n))
    table = people(n)
    expected = model.fit(table[FEATURES], table.evade.to_numpy(dtype=object)).predict_proba(rows(50))
    np.testing.assert_allclose(proba(tmp_path / "m.deciban", rows(50)), expected, rtol=1e-9, atol=1e-12)


def test_the_default_model(files):
    said = run("fit", files / "both.csv", "--label", "evade", "-o", files / "m.deciban").stdout
    assert said.startswith(f"{files / 'm.deciban'}: EvidenceClassifier, {ROWS} rows, 2 classes, 4 columns, ")
    named = run("fit", files / "both.csv", "--label", "evade", "--model", "evidence", "-o", files / "named.deciban")
    assert said.replace("m.deciban", "") == named.stdout.replace("named.deciban", "")
    assert (files / "m.deciban").read_bytes() == (files / "named.deciban").read_bytes()
    assert isinstance(db.load(files / "m.deciban"), db.EvidenceClassifier)


@pytest.mark.parametrize(("asked", "most"), [("auto", 20), ("0", 0), ("1", 1), ("2.0", 2), ("1e9", 10**9)])
def test_pairs_is_the_largest_number_of_pairs(asked, most, tmp_path):
    """The class is the exclusive or of two columns: neither is informative alone."""
    rng = np.random.default_rng(3)
    table = pd.DataFrame(rng.choice(list("uv"), (300, 3)), columns=list("abc"))
    table["odd"] = np.where((table.a == table.b) == (rng.random(300) < 0.9), "yes", "no")
    table.to_csv(tmp_path / "a.csv", index=False)
    args = ["--label", "odd", "--pairs", asked, "--trees", "0", "-o", tmp_path / "m.deciban"]
    pairs = [set(e["columns"]) for e in made(tmp_path / "a.csv", *args)["together"] if e["family"] == "Pairs"]
    assert len(pairs) <= most
    assert ({"a", "b"} in pairs) == (most > 0)
    assert db.load(tmp_path / "m.deciban").pairs == ("auto" if asked == "auto" else most)


@pytest.mark.parametrize(
    ("text", "args"),
    [
        ("x,z,y\n1,u,a\n2,v,b\n3,u,a\n", ["--pairs", "3"]),
        ("x,z,y\n1,u,a\n2,v,b\n3,u,a\n", NAIVE_BAYES),
        ("x,y\n1,a\n2,b\n3,a\n", ["--loo"]),
        ("z,y\nu,a\nu,b\nu,a\n", ["--folds", "2"]),
        ("x,z,y\n,,a\n,,b\n,,a\n", []),
        ("x,z,y\n,,a\n,,b\n,,a\n", NAIVE_BAYES),
    ],
    ids=["mixed", "mixed, naive Bayes", "one column", "constant", "no values", "no values, naive Bayes"],
)
def test_three_rows_are_enough(text, args, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text(text)
    assert "3 rows, 2 classes" in run("fit", "a.csv", "--label", "y", "-o", "m.deciban", *args).stdout
    run("show", "m.deciban")
    run("explain", "m.deciban", "a.csv", "--row", "1")
    lines = run("predict", "m.deciban", "a.csv", "--explain", "--format", "jsonl").stdout.splitlines()
    assert len(lines) == 3
    for line in map(json.loads, lines):
        assert line["proba_a"] + line["proba_b"] == pytest.approx(1)
    assert json.loads(run("evaluate", "m.deciban", "a.csv", "--json").stdout)["metrics"]["rows"] == 3
    run("fit", "a.csv", "--resume", "m.deciban")
    run("forget", "m.deciban", "a.csv")
    if args != NAIVE_BAYES:
        run("refit-weights", "m.deciban", "a.csv")
    run("forget", "m.deciban", "a.csv")


def test_columns_of_counts_are_one_multinomial(tmp_path):
    rng = np.random.default_rng(0)
    counts = pd.DataFrame(rng.poisson(3, (60, 3)), columns=["a", "b", "c"])
    y = np.where(counts.a > counts.b, "left", "right")
    counts.assign(side=y).to_csv(tmp_path / "words.csv", index=False)
    args = [*NAIVE_BAYES, "--columns", "a=multinomial,b=multinomial,c=multinomial"]
    run("fit", tmp_path / "words.csv", "--label", "side", "-o", tmp_path / "m.deciban", *args)
    expected = MultinomialNB().fit(counts, y).predict_proba(counts)
    np.testing.assert_allclose(proba(tmp_path / "m.deciban", counts), expected, rtol=1e-9)


# Labels, columns, weights --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", ["evade", "5", "-1"])
def test_the_label_is_a_name_or_a_position(label, files):
    about = made(files / "a.csv", "--label", label, *NAIVE_BAYES, "-o", files / "m.deciban")
    assert about["label"] == "evade"


def test_a_column_that_is_called_like_a_position_is_meant_by_its_name(tmp_path):
    (tmp_path / "a.csv").write_text("2,x\nno,1\nyes,2\nno,3\n")
    args = ["--header", "--label", "2", *NAIVE_BAYES, "-o", tmp_path / "m.deciban"]
    assert made(tmp_path / "a.csv", *args)["classes"] == ["no", "yes"]


@given(st.lists(st.text("ab,=1- ", min_size=1), min_size=1, max_size=6, unique=True), st.data())
def test_any_names_can_be_meant(names, data):
    words = {name: data.draw(st.sampled_from(column_words())) for name in names}
    assert parse_columns([f"{name}={word}" for name, word in words.items()], names) == words
    assert columns_named(names, names, "--drop") == names
    assert [label_named(names, name) for name in names] == names
    places = [place for place in range(-len(names), len(names) + 1) if place and str(place) not in names]
    assert all(label_named(names, str(place)) == names[place - 1] for place in places if place > 0)
    assert all(label_named(names, str(place)) == names[place] for place in places if place < 0)


def test_names_with_commas_and_equal_signs(tmp_path):
    (tmp_path / "a.csv").write_text('"x,y=z",b,label\n1,2,no\n3,4,yes\n2,9,no\n')

    def columns(key, *args):
        about = made(tmp_path / "a.csv", *args, "--label", "label", "-o", tmp_path / "m.deciban")
        return [(column["name"], column[key]) for column in about["columns"]]

    args = [*NAIVE_BAYES, "--columns", "x,y=z=poisson", "--columns", "b=categorical"]
    assert columns("family", *args) == [("x,y=z", "Poisson"), ("b", "Categorical")]
    args = ["--columns", "x,y=z=text", "--columns", "b=number"]
    assert columns("kind", *args) == [("x,y=z", "category"), ("b", "number")]
    assert columns("kind", "--drop", "x,y=z", *NAIVE_BAYES) == [("b", "number")]


@pytest.mark.parametrize("kind", KINDS)
def test_dropped_columns_and_weights_are_no_features(kind, tmp_path):
    table = people(60).assign(weight=np.arange(60) % 3)
    table.to_csv(tmp_path / "a.csv", index=False)
    args, model = KINDS[kind]
    args = [*args, "--drop", "id,age", "--drop", "member", "--weight", "weight", "--label", "evade"]
    about = made(tmp_path / "a.csv", *args, "-o", tmp_path / "m.deciban")
    assert [c["name"] for c in about["columns"]] == ["status", "income"]
    twice = table.loc[np.repeat(table.index, table.weight)]
    np.testing.assert_array_equal(about["counts"], twice.evade.value_counts().loc[["no", "yes"]])
    expected = model().fit(twice[["status", "income"]], twice.evade.to_numpy(dtype=object))
    rtol = 1e-6 if kind == "evidence" else 1e-12  # weights are fitted by iteration
    np.testing.assert_allclose(proba(tmp_path / "m.deciban", rows(30)), expected.predict_proba(rows(30)), rtol=rtol)


def test_how_files_are_written(tmp_path):
    text = "a comment\n7|'x|y'|1,5|none|ja\n7|z|2,5|3|nein\n8|z|-|4|ja\n"
    (tmp_path / "a.data").write_bytes(text.encode("utf-16"))
    args = ["--delimiter", "|", "--quote", "'", "--decimal", ",", "--skip", "1", "--no-header", "--encoding", "utf-16"]
    args += ["--names", "code,name,size,rest,answer", "--na-values", "none,-", "--category", "code"]
    args += ["--input-format", "csv", "--label", "answer"]
    for kind in KINDS:
        about = made(tmp_path / "a.data", *args, "--model", kind, "-o", tmp_path / f"{kind}.deciban")
        assert [(c["name"], c["kind"]) for c in about["columns"]] == [
            ("code", "category"),
            ("name", "category"),
            ("size", "number"),
            ("rest", "number"),
        ]
    model = db.load(tmp_path / "naive-bayes.deciban")
    assert model.generative_.blocks[0].statistic.levels == (("7", "8"), ("x|y", "z"))
    np.testing.assert_array_equal(model.estimate_.params[1].mean[:, 0], [1.5, 2.5])  # of ja, nein


def test_tabs(tmp_path):
    (tmp_path / "a.csv").write_text("x\ty\n1\tno\n2\tyes\n")
    for word in ("tab", "\\t", "\t"):
        run("fit", tmp_path / "a.csv", "--delimiter", word, "--label", "y", *NAIVE_BAYES, "-o", tmp_path / "m.deciban")


def test_every_format_gives_the_same_model(tmp_path):
    table = people(ROWS).drop(columns="id")
    table.to_json(tmp_path / "both.jsonl", orient="records", lines=True)
    table.to_parquet(tmp_path / "both.parquet")
    feather.write_feather(table, tmp_path / "both.arrow")
    for ending in ("jsonl", "parquet", "arrow"):
        for kind, (args, _) in KINDS.items():
            run("fit", tmp_path / f"both.{ending}", "--label", "evade", *args, "-o", tmp_path / "m.deciban")
            expected = in_memory(kind).predict_proba(rows(40))
            np.testing.assert_array_equal(proba(tmp_path / "m.deciban", rows(40)), expected, ending)


@pytest.mark.parametrize("kind", KINDS)
def test_standard_input_and_patterns(kind, files):
    args, expected = ["--label", "evade", *KINDS[kind][0]], in_memory(kind).predict_proba(rows(40))
    run("fit", "-", *args, "-o", files / "in.deciban", input=(files / "both.csv").read_text())
    (files / "both.csv").unlink()
    run("fit", files / "*.csv", *args, "-o", files / "all.deciban")
    np.testing.assert_array_equal(proba(files / "in.deciban", rows(40)), expected)
    if kind == "evidence":  # joint normals are rounded where batches are added
        np.testing.assert_allclose(proba(files / "all.deciban", rows(40)), expected, rtol=1e-9)
    else:
        np.testing.assert_array_equal(proba(files / "all.deciban", rows(40)), expected)


# Resuming -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "args",
    [NAIVE_BAYES, ["--model", "lda", "--drop", "status,member"], [*NAIVE_BAYES, "--smoothing", "auto"]],
    ids=" ".join,
)
def test_resume_is_one_fit_of_both_files(args, files):
    (files / "both.deciban").write_bytes(fitted(*args))
    run("fit", files / "a.csv", "--label", "evade", "-o", files / "a.deciban", *args)
    before = (files / "a.deciban").read_bytes()
    run("fit", files / "b.csv", "--resume", files / "a.deciban", "-o", files / "m.deciban")
    assert (files / "a.deciban").read_bytes() == before
    run("fit", files / "b.csv", "--resume", files / "a.deciban", "--label", "-1")
    assert (files / "a.deciban").read_bytes() == (files / "m.deciban").read_bytes()
    resumed, expected = proba(files / "m.deciban", rows(60)), proba(files / "both.deciban", rows(60))
    if "lda" in args:  # scatter is rounded
        np.testing.assert_allclose(resumed, expected, rtol=1e-9)
    else:
        np.testing.assert_array_equal(resumed, expected)


def test_evidence_resumes_with_the_weights_that_it_has(files):
    """As partial_fit does: all rows count, and a fit of both files at once is not far."""
    run("fit", files / "a.csv", "--label", "evade", "-o", files / "a.deciban")
    before = (files / "a.deciban").read_bytes()
    run("fit", files / "b.csv", "--resume", files / "a.deciban", "-o", files / "m.deciban")
    assert (files / "a.deciban").read_bytes() == before
    a, b = (pd.read_csv(files / f"{name}.csv") for name in "ab")
    expected = db.load(files / "a.deciban")
    values, bias = expected.weights_.values.copy(), expected.weights_.bias.copy()
    expected.partial_fit(b[FEATURES], b.evade.to_numpy(dtype=object))
    np.testing.assert_allclose(proba(files / "m.deciban", rows(60)), expected.predict_proba(rows(60)), rtol=1e-9)
    resumed = db.load(files / "m.deciban")
    assert resumed.class_count_.tolist() == pd.concat([a, b]).evade.value_counts().loc[["no", "yes"]].tolist()
    np.testing.assert_array_equal(resumed.weights_.values, values)
    np.testing.assert_array_equal(resumed.weights_.bias, bias)
    run("fit", files / "b.csv", "--resume", files / "a.deciban", "--label", "-1")
    assert (files / "a.deciban").read_bytes() == (files / "m.deciban").read_bytes()
    assert np.abs(proba(files / "m.deciban", rows(60)) - in_memory("evidence").predict_proba(rows(60))).mean() < 0.05


def test_a_calibrated_model_resumes(files):
    args = ["--label", "evade", "--calibrate", "temperature", *NAIVE_BAYES]
    run("fit", files / "a.csv", *args, "-o", files / "m.deciban")
    a, b = (pd.read_csv(files / f"{name}.csv") for name in "ab")
    expected = db.CalibratedClassifier(db.NaiveBayes()).fit(a[FEATURES], a.evade.to_numpy(dtype=object))
    expected.partial_fit(b[FEATURES], b.evade.to_numpy(dtype=object))
    run("fit", files / "b.csv", "--resume", files / "m.deciban", "--label", "evade")
    np.testing.assert_allclose(proba(files / "m.deciban", rows(40)), expected.predict_proba(rows(40)), rtol=1e-9)


def test_resume_refuses_what_would_change_the_model(files):
    (files / "m.deciban").write_bytes(fitted())
    for line in (
        "--model naive-bayes",
        "--pairs 3",
        "--columns age=poisson",
        "--drop age",
        "--smoothing 0",
        "--families auto",
        "--missing skip",
        "--prior uniform",
        "--calibrate temperature",
        "--l2 1",
        "--shrinkage auto",
        "--folds 5",
        "--loo",
        "--text status",
    ):
        said = refused("fit", files / "b.csv", "--resume", files / "m.deciban", *line.split())
        assert said.startswith("deciban: --resume")
        assert line.split()[0] in said
    assert (files / "m.deciban").read_bytes() == fitted()


def test_a_logistic_model_does_not_resume(files):
    (files / "m.deciban").write_bytes(fitted("--model", "logistic"))
    line = refused("fit", files / "b.csv", "--resume", files / "m.deciban")
    assert "LogisticRegression cannot continue training: fit again" in line


# Documents and mail --------------------------------------------------------------------------------------------------


MAILS = 20  # of each class
SAID = {
    "spam": ["free", "win", "claim", "prize", "pills"],
    "ham": ["lunch", "meeting", "report", "noon", "draft"],
}


def mail_of(label, i):
    """The words of the other class are in it too, in every third."""
    other = SAID["ham" if label == "spam" else "spam"]
    said = [*(SAID[label][(i * k) % 5] for k in range(1, 6)), *(other[i % 5 : i % 5 + 2] if i % 3 == 0 else [])]
    sender = f"{'abc'[i % 3]}@{label if i % 4 else 'example'}.org" if i % 5 else "somebody"
    return f"From: {sender}\nTo: me@example.org\nSubject: {' '.join(said[:2])}\n\n{' '.join(said)}\n"


@pytest.fixture
def mail(tmp_path):
    """A folder of mail, one below it for each class."""
    for label in SAID:
        (tmp_path / "mail" / label).mkdir(parents=True)
        for i in range(MAILS):
            (tmp_path / "mail" / label / f"{i:02d}.eml").write_text(mail_of(label, i))
    return tmp_path / "mail"


@pytest.fixture
def texts(tmp_path):
    """A csv of documents beside a number and a category."""
    rng = np.random.default_rng(1)
    y = np.array(["ham", "spam"] * 40)
    said = [" ".join(rng.choice(SAID[label if rng.random() < 0.7 else "ham"], 6)) for label in y]
    length = rng.normal(size=80) + (y == "spam")
    table = pd.DataFrame({"said": said, "length": length.round(3), "tone": rng.choice(["dry", "loud"], 80), "y": y})
    table.to_csv(tmp_path / "texts.csv", index=False)
    return tmp_path / "texts.csv", table


@pytest.mark.parametrize(
    ("args", "model"),
    [
        (["--text", "said"], db.EvidenceClassifier(text=["said"])),
        ([*NAIVE_BAYES, "--columns", "said=text"], db.NaiveBayes({"said": Text()})),
    ],
    ids=list(KINDS),
)
def test_columns_of_documents(args, model, texts, tmp_path):
    path, table = texts
    x, y = table.drop(columns="y"), table.y.to_numpy(dtype=object)
    run("fit", path, "--label", "y", *args, "-o", tmp_path / "m.deciban")
    np.testing.assert_allclose(proba(tmp_path / "m.deciban", x), model.fit(x, y).predict_proba(x), rtol=1e-9)
    explained = run("explain", tmp_path / "m.deciban", path, "--row", "2").stdout
    assert all(f"said: {word} " in explained for word in table.said[2].split())


def test_documents_as_scikit_learn_counts_them(texts, tmp_path):
    path, table = texts
    args = ["--label", "y", "--text", "said", "--drop", "length,tone", *NAIVE_BAYES]
    run("fit", path, *args, "-o", tmp_path / "m.deciban")
    expected = multinomial(table.said, table.y)
    np.testing.assert_allclose(proba(tmp_path / "m.deciban", table[["said"]]), expected, rtol=1e-9)


def multinomial(texts, y):
    """Probabilities by scikit-learn."""
    counts = CountVectorizer().fit_transform(texts)
    return MultinomialNB().fit(counts, y).predict_proba(counts)


def test_several_columns_of_documents_and_categories(texts, tmp_path):
    path, _ = texts

    def families(*args):
        about = made(path, "--label", "y", *args, *NAIVE_BAYES, "-o", tmp_path / "m.deciban")
        return {each["name"]: each["family"] for each in about["columns"]}

    for option in (["--text", "said,tone"], ["--text", "said", "--text", "tone"]):
        assert families(*option) == {"said": "Text", "tone": "Text", "length": "Gaussian"}
    assert families("--category", "length") == dict.fromkeys(("said", "tone", "length"), "Categorical")


def test_documents_that_cannot_be(texts, tmp_path):
    for line, words in (
        ("--text said --model lda", "--text said: lda reads no documents; use --model evidence or naive-bayes"),
        ("--text said --model softmax", "softmax reads no documents"),
        ("--text said --columns said=category", "--columns and --text disagree about column 'said'"),
        ("--text y", "--text: there is no column 'y'"),
        ("--text said --model naive-bayes --families auto", "--families auto"),
    ):
        assert words in refused("fit", texts[0], "--label", "y", *line.split(), "-o", tmp_path / "m.deciban")
    assert not (tmp_path / "m.deciban").exists()


@pytest.mark.parametrize("kind", KINDS)
def test_mail_from_one_command_to_the_next(kind, mail, tmp_path):
    path = tmp_path / "m.deciban"
    about = made(mail, "--label-from-folder", *KINDS[kind][0], "-o", path)
    assert (about["label"], about["classes"], about["counts"]) == ("folder", ["ham", "spam"], [MAILS, MAILS])
    assert [each["name"] for each in about["columns"]] == list(COLUMNS)
    names = [*sorted(mail.glob("ham/*")), *sorted(mail.glob("spam/*"))]
    lines = [json.loads(line) for line in run("predict", path, mail, "--format", "jsonl").stdout.splitlines()]
    metrics = json.loads(run("evaluate", path, mail, "--json").stdout)["metrics"]
    right = [line["prediction"] == name.parent.name for line, name in zip(lines, names, strict=True)]
    assert metrics["rows"] == 2 * MAILS
    assert metrics["accuracy"] == np.mean(right) > 0.9
    verdicts = [json.loads(line) for line in run("mail", "filter", path, "--json", *names).stdout.splitlines()]
    for line, each, name in zip(lines, verdicts, names, strict=True):
        assert each["file"] == str(name)
        assert each["class"] == line["prediction"]
        assert each["probability"] == pytest.approx(line[f"proba_{each['class']}"], rel=1e-12)
    terms = verdicts[MAILS + 1]["terms"]
    top = max(terms, key=lambda term: abs(terms[term]))
    assert f"{top} " in run("explain", path, mail, "--row", MAILS + 1).stdout
    assert f"classes ham ({MAILS}), spam ({MAILS})" in run("show", path).stdout
    before = path.read_bytes()
    run("forget", path, mail / "ham" / "03.eml", "--label", "folder", code=1)  # a file alone is in no folder
    (tmp_path / "less" / "ham").mkdir(parents=True)
    (tmp_path / "less" / "ham" / "x.eml").write_text(mail_of("ham", 3))
    run("forget", path, tmp_path / "less")
    assert db.load(path).class_count_.tolist() == [MAILS - 1, MAILS]
    run("fit", tmp_path / "less", "--resume", path)
    assert path.read_bytes() == before
    run("fit", tmp_path / "less", "--resume", path, "--label-from-folder")
    assert db.load(path).class_count_.tolist() == [MAILS + 1, MAILS]


def test_a_file_of_labels(mail, tmp_path):
    names = [*sorted(mail.glob("ham/*")), *sorted(mail.glob("spam/*"))]
    run("fit", mail, "--label-from-folder", *NAIVE_BAYES, "-o", tmp_path / "folders.deciban")
    expected = db.load(tmp_path / "folders.deciban")
    flat, labels = tmp_path / "flat", {"h": "ham", "s": "spam"}
    flat.mkdir()
    for name in names:
        name.rename(flat / f"{name.parent.name[0]}{name.name}")
    flat_names = sorted(os.listdir(flat))
    (tmp_path / "index").write_text("".join(f"{labels[name[0]]} flat/{name}\n" for name in flat_names))
    (tmp_path / "index.csv").write_text("path,label\n" + "".join(f"{n},{labels[n[0]]}\n" for n in flat_names))
    for index in ("index", "index.csv"):
        for option in ([], ["--label", "label"]):
            run("fit", flat, "--labels", tmp_path / index, *option, *NAIVE_BAYES, "-o", tmp_path / "m.deciban")
            model = db.load(tmp_path / "m.deciban")
            assert model.label_name_ == "label"
            assert model.class_count_.tolist() == expected.class_count_.tolist()
            statistics = ([str(flattened(b.statistic)) for b in m.generative_.blocks] for m in (model, expected))
            assert next(statistics) == next(statistics)
    evaluated = run("evaluate", tmp_path / "m.deciban", flat, "--labels", tmp_path / "index", "--json")
    assert json.loads(evaluated.stdout)["metrics"]["rows"] == 2 * MAILS
    (tmp_path / "some").write_text("ham flat/h00.eml\n")
    line = refused("fit", flat, "--labels", tmp_path / "some", "-o", tmp_path / "m.deciban")
    assert "h01.eml: label: the label is missing" in line


def test_folders_of_texts(tmp_path):
    said, y = [], []
    for label, words in SAID.items():
        (tmp_path / "texts" / label).mkdir(parents=True)
        for i in range(10):
            said.append(" ".join(words[(i * k) % 5] for k in range(1, 5)))
            y.append(label)
            (tmp_path / "texts" / label / f"{i}.txt").write_text(said[-1])
    args = ["fit", tmp_path / "texts", "--label-from-folder", "--input-format", "text", "-o", tmp_path / "m.deciban"]
    assert "20 rows, 2 classes, 1 column" in run(*args, *NAIVE_BAYES).stdout
    table = pd.DataFrame({"text": said})
    np.testing.assert_allclose(proba(tmp_path / "m.deciban", table), multinomial(said, y), rtol=1e-9)
    evaluated = run("evaluate", tmp_path / "m.deciban", tmp_path / "texts", "--input-format", "text", "--json")
    assert json.loads(evaluated.stdout)["metrics"]["accuracy"] == 1
    assert run("mail", "filter", tmp_path / "m.deciban", input="Subject: claim\n\nfree prize").stdout.startswith(
        "X-Deciban: spam"
    )
    run(*args)  # of evidence
    assert "there is no mail in" in refused(*args[:3], "-o", tmp_path / "m.deciban")


@pytest.mark.parametrize("terminal", [False, True])
def test_what_is_no_mail_is_skipped_with_a_warning(terminal, mail, tmp_path):
    (mail / "spam" / "picture.png").write_bytes(b"\x89PNG")
    (mail / "spam" / "empty.eml").write_bytes(b"")
    args = ["fit", mail, "--label-from-folder", *NAIVE_BAYES, "-o", tmp_path / "m.deciban"]
    if terminal:
        out, shown = on_a_terminal(*args)
        assert f"{2 * MAILS} rows" in shown
    else:
        done = run(*args)
        out, shown = done.stdout, done.stderr
    assert f"NaiveBayes, {2 * MAILS} rows, 2 classes" in out
    assert shown.count("deciban: warning: ") == 1
    assert terminal or shown.startswith(f"deciban: warning: {mail}: 2 skipped")
    assert terminal or shown.count("\n") == 1
    for name, words in (("picture.png", "it does not begin with a header"), ("empty.eml", "it is empty")):
        assert f"spam/{name}: {words}" in " ".join(shown.split())


def test_mail_that_cannot_be_learned(mail, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("x,y\n1,a\n2,b\n")
    (tmp_path / "index").write_text("ham mail/ham/00.eml\nspam mail/spam/00.eml\n")
    for line, words, code in (
        ("mail --label-from-folder --label from", "the label is the folder or a column", 2),
        ("mail", "a new model needs a label column", 2),
        ("a.csv --label-from-folder", "--label: there is no column 'folder'; there are x, y", 1),
        ("a.csv --label y --labels index", "labels go with mail and texts, and a.csv is csv", 1),
        ("mail --label-from-folder --labels index", "--label: there is no column 'folder'", 1),
        ("mail --labels nowhere", "nowhere cannot be read: No such file", 1),
        ("mail --label-from-folder --model lda", "lda reads no documents", 1),
        ("mail --label-from-folder --columns body=number", "'body' holds text", 1),
        ("mail --label-from-folder --category nothing", "--category: there is no column 'nothing'", 1),
    ):
        assert words in run("fit", *line.split(), "-o", "m.deciban", code=code).stderr
    assert not (tmp_path / "m.deciban").exists()


# Evaluation ----------------------------------------------------------------------------------------------------------


def test_folds_and_leave_one_out_are_printed_beside_the_fit(numbers, tmp_path):
    path, table, y = numbers
    args = [path, "--label", "kind", *NAIVE_BAYES, "--folds", "10", "--loo", "-o", tmp_path / "m.deciban"]
    about = made(*args)
    left_out = cross_val_predict(GaussianNB(var_smoothing=0), table.to_numpy(), y, cv=LeaveOneOut())
    assert about["leave_one_out"]["metrics"]["accuracy"] == pytest.approx(np.mean(left_out == y))
    assert len(about["folds"]["folds"]) == 10
    folds = cross_val_predict(GaussianNB(var_smoothing=0), table.to_numpy(), y, cv=10)
    assert about["folds"]["metrics"]["accuracy"] == pytest.approx(np.mean(folds == y), abs=0.03)
    text = run("fit", *args).stdout
    assert "cross-validation: evaluation: 300 rows, 3 classes" in text
    assert "leave-one-out: evaluation: 300 rows, 3 classes" in text
    assert f"{about['leave_one_out']['metrics']['accuracy']:.6g}" in text


def test_folds_and_leave_one_out_of_evidence(numbers, tmp_path):
    path, table, y = numbers
    args = [path, "--label", "kind", "--trees", "2", "--folds", "3", "--loo", "-o", tmp_path / "m.deciban"]
    about, model = made(*args), db.EvidenceClassifier(trees=2)
    expected = model.fit(table, y).leave_one_out(table, y)
    assert about["leave_one_out"]["metrics"]["log_loss"] == pytest.approx(expected.log_loss)
    expected = db.cross_validate(model, table, y, 3)
    assert about["folds"]["metrics"]["log_loss"] == pytest.approx(expected.log_loss)
    assert len(about["folds"]["folds"]) == 3
    # the classes are normal, alike except for their means: nothing predicts better than lda does, except by chance
    lda = cross_val_predict(LinearDiscriminantAnalysis(), table.to_numpy(), y, cv=10, method="predict_proba")
    assert about["folds"]["metrics"]["log_loss"] == pytest.approx(log_loss(y, lda), abs=0.05)


def test_leave_one_out_is_for_models_that_can(numbers, tmp_path):
    args = [numbers[0], "--label", "kind", "--loo", "--model", "logistic", "-o", tmp_path / "m.deciban"]
    assert "use --folds" in refused("fit", *args)
    assert not (tmp_path / "m.deciban").exists()


# Mistakes ------------------------------------------------------------------------------------------------------------


def test_a_bad_option_is_one_line_and_no_file(files, monkeypatch):
    monkeypatch.chdir(files)
    for args, words in (
        (["--label", "nobody"], "--label: there is no column 'nobody'; there are status, income, age, member, evade"),
        (["--label", "Evad"], "--label: there is no column 'Evad' (did you mean 'evade'?); there are status,"),
        (["--label", "6"], "no column '6'"),
        (["--label", "0"], "no column '0'"),
        (["--label", "--1"], "no column '--1'"),
        (["--label", "-6"], "no column '-6'"),
        (["--drop", "nothing"], "--drop: there is no column 'nothing'"),
        (["--drop", "evade"], "--label: there is no column 'evade'"),
        (["--drop", "status,income,age,member"], "there is no feature besides the label"),
        (["--weight", "nothing"], "--weight: there is no column 'nothing'"),
        (["--weight", "evade"], "--weight and --label name the same column"),
        (["--weight", "status"], "a.csv, line 2: column 'status'"),
        (["--columns", "age=normal"], "there is no family 'normal'; there are bernoulli, categorical, gaussian"),
        (["--columns", "age"], "'age' is not of the form COLUMN=FAMILY"),
        (["--columns", "agee=text"], "--columns: there is no column 'agee'"),
        (["--columns", "age=text,age=number"], "'age' is given twice"),
        (["--columns", "status=number"], "a.csv, line 2: column 'status'"),
        ([*NAIVE_BAYES, "--columns", "status=gaussian"], "a.csv, line 2: column 'status'"),
        (
            ["--columns", "age=poisson"],
            "--columns age=poisson: evidence takes no families, only text, category and number",
        ),
        ([*NAIVE_BAYES, "--columns", "age=poisson", "--families", "auto"], "--families auto"),
        (["--columns", "age=poisson", "--model", "lda"], "lda takes no families"),
        (["--category", "nothing"], "--category: there is no column"),
        (["--text", "nothing"], "--text: there is no column"),
        (["--smoothing", "2"], "--smoothing is for --model naive-bayes, not for evidence"),
        (["--families", "auto"], "--families is for --model naive-bayes, not for evidence"),
        (["--missing", "skip"], "--missing is for --model naive-bayes, not for evidence"),
        ([*NAIVE_BAYES, "--pairs", "3"], "--pairs is for --model evidence, not for naive-bayes"),
        (["--pairs", "many"], "--pairs must be auto, or a whole number of at least 0, not 'many'"),
        (["--pairs", "1.5"], "--pairs must be auto, or a whole number of at least 0, not '1.5'"),
        (["--pairs", "-1"], "--pairs must be auto, or a whole number of at least 0, not '-1'"),
        (["--pairs", "inf"], "--pairs must be auto, or a whole number of at least 0, not 'inf'"),
        (["--pairs", "nan"], "--pairs must be auto, or a whole number of at least 0, not 'nan'"),
        (["--pairs", ""], "--pairs must be auto, or a whole number of at least 0, not ''"),
        (["--trees", "auto"], "--trees must be a whole number of at least 0, not 'auto'"),
        (["--max-weight-rows", "1"], "--max-weight-rows must be a whole number of at least 2, not '1'"),
        (["--random-state", "0.5"], "--random-state must be a whole number of at least 0, not '0.5'"),
        ([*NAIVE_BAYES, "--trees", "3"], "--trees is for --model evidence, not for naive-bayes"),
        (["--smoothing", "much"], "--smoothing must be auto, or a number of at least 0, not 'much'"),
        (["--smoothing", "-1"], "--smoothing must be"),
        (["--smoothing", "nan"], "--smoothing must be"),
        (["--model", "lda", "--shrinkage", "1.5"], "--shrinkage must be auto, or oas, or a number from 0 to 1"),
        (["--model", "logistic", "--l2", "inf"], "--l2 must be a number of at least 0"),
        (["--l2", "1"], "--l2 is for --model logistic or softmax, not for evidence"),
        ([*NAIVE_BAYES, "--l2", "1"], "--l2 is for --model logistic or softmax, not for naive-bayes"),
        (["--shrinkage", "auto"], "--shrinkage is for --model lda or qda, not for evidence"),
        (["--model", "lda"], "column 'status' holds text"),
        (["--delimiter", "::"], "delimiter must be one character"),
        (["--encoding", "klingon"], "no encoding called 'klingon'"),
    ):
        given = args if "--label" in args else ["--label", "evade", *args]
        assert words in refused("fit", "a.csv", *given, "-o", "m.deciban"), args
    assert not (files / "m.deciban").exists()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"single,1,2\n", "cells, where there are 5 columns"),
        (b"single,1e999,30,True,yes\n", "is infinite"),
        (b"single,80,30,True,\n", "the label is missing"),
        (b"single\x00,80,30,True,no\n", "NUL byte"),
    ],
    ids=["ragged", "infinite", "unlabelled", "binary"],
)
def test_an_error_in_the_middle_of_data_names_file_and_line_and_leaves_what_was_there(line, words, files):
    (files / "m.deciban").write_bytes(fitted())
    lines = (files / "both.csv").read_bytes().splitlines(keepends=True)
    lines.insert(150, line)
    (files / "bad.csv").write_bytes(b"".join(lines))
    before = files_in(files)
    for args in ([], NAIVE_BAYES, ["--model", "logistic"]):  # read twice, streamed, in memory
        for into in ("m.deciban", "new.deciban"):
            said = refused("fit", files / "bad.csv", "--label", "evade", "-o", files / into, *args)
            assert f"{files / 'bad.csv'}, line 151: " in said
            assert words in said
    refused("fit", files / "bad.csv", "--resume", files / "m.deciban")
    assert files_in(files) == before


def test_where_nothing_can_be_written_nothing_is_read(files, monkeypatch):
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: "locked" not in str(path) and access(path, mode))  # not root
    monkeypatch.setattr("deciban.cli.fitting.fit_new", lambda *args, **options: pytest.fail("rows were read"))
    monkeypatch.chdir(files)
    (files / "locked").mkdir()
    before = files_in(files)
    for output, words in (
        ("no/m.deciban", "there is no directory"),
        (".", "is a directory"),
        ("a.csv", "is one of the input files"),
        ("-", "a model cannot be written to standard output"),
        ("/dev/null", "a device or a pipe"),
        ("locked/m.deciban", "you may not write m.deciban in"),
    ):
        assert words in refused("fit", "a.csv", "--label", "evade", "-o", output)
    assert files_in(files) == before


def test_where_nothing_is_dropped_no_columns_are_asked_for(files, monkeypatch):
    monkeypatch.setattr("deciban.data.files.scan.Scan.drop", lambda scan, names: pytest.fail("dropped"))
    run("fit", files / "a.csv", "--label", "evade", *NAIVE_BAYES, "-o", files / "m.deciban")


def test_warnings_are_printed_and_the_model_is_written(tmp_path):
    (tmp_path / "a.csv").write_text("u,v,y\n1,2,0\n2,4,0\n3,6,1\n5,10,1\n")
    done = run("fit", tmp_path / "a.csv", "--label", "y", "--model", "lda", "-o", tmp_path / "m.deciban")
    run("evaluate", tmp_path / "m.deciban", tmp_path / "a.csv")
    assert done.stdout.startswith(str(tmp_path / "m.deciban"))
    shown = run("show", tmp_path / "m.deciban")
    assert "deciban: warning: " in shown.stderr
    assert "Warning" not in shown.stderr


# Real data -----------------------------------------------------------------------------------------------------------


@needs_data
@pytest.mark.parametrize("kind", KINDS)
def test_adult_in_two_commands(kind, tmp_path):
    args, model = KINDS[kind]
    for part, rows in (("train", 3000), ("test", 3000)):
        lines = (DATA / f"adult-{part}.csv").read_text().splitlines(keepends=True)
        (tmp_path / f"{part}.csv").write_text("".join(lines[:rows]))
    run("fit", tmp_path / "train.csv", "--label", "-1", *args, "-o", tmp_path / "m.deciban")
    evaluated = run("evaluate", tmp_path / "m.deciban", tmp_path / "test.csv", "--trim-label", ".", "--json")
    metrics = json.loads(evaluated.stdout)["metrics"]
    train, test = (
        pd.read_csv(tmp_path / f"{part}.csv", header=None, skipinitialspace=True, na_values="?")
        for part in ("train", "test")
    )
    truth = test[14].str.rstrip(".")
    predicted = model().fit(train.drop(columns=14), train[14]).predict(test.drop(columns=14))
    assert metrics["accuracy"] == np.mean(predicted == truth)
    assert metrics["rows"] == len(test)
    # the same by scikit-learn, text and numbers apart: log p(c, x) = Σ of both, less the prior that counts twice
    naive = np.mean(adult_by_scikit_learn(train, test) == truth)
    if kind == "naive-bayes":
        assert metrics["accuracy"] == pytest.approx(naive, abs=0.003)
    else:
        assert metrics["accuracy"] > naive + 0.03


def adult_by_scikit_learn(train, test):
    text = [j for j in range(14) if not pd.api.types.is_numeric_dtype(train[j])]
    numbers = [j for j in range(14) if j not in text]
    code = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1).fit(train[text].fillna("?"))
    x, z = (np.maximum(code.transform(table[text].fillna("?")), 0) for table in (train, test))
    categorical = CategoricalNB().fit(x, train[14])
    gaussian = GaussianNB(var_smoothing=0).fit(train[numbers], train[14])
    joint = categorical.predict_joint_log_proba(z) + gaussian.predict_joint_log_proba(test[numbers])
    return gaussian.classes_[(joint - np.log(gaussian.class_prior_)).argmax(axis=1)]
