"""`deciban explain`, `evaluate`, `merge`, `forget`, `refit-weights` and `show`."""

import json
import re
from copy import deepcopy
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix, log_loss, roc_auc_score

import deciban as db
from tests.cli.runs import (
    FEATURES,
    KINDS,
    LATER,
    NAIVE_BAYES,
    ROWS,
    files_in,
    fitted,
    in_memory,
    people,
    refused,
    run,
    write_people,
)
from tests.laws import flattened

BOTH = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def kind():
    return "evidence"


@pytest.fixture
def office(kind, tmp_path, monkeypatch):
    """A model, its training rows, and others."""
    monkeypatch.chdir(tmp_path)
    write_people(tmp_path, kind)
    return tmp_path


def model_file(name, *args, **options):
    """A model of people with other settings, fitted once for all tests."""
    Path(name).write_bytes(fitted(*args, **options))


def table(name):
    return pd.read_csv(name)


def shown(name):
    return json.loads(run("show", name, "--json").stdout)


def evaluated(*args):
    return json.loads(run("evaluate", *args, "--json").stdout)


def learned(rows, kind):
    return fit_in_memory(rows, KINDS[kind][1]())


def fit_in_memory(rows, model):
    return model.fit(rows[FEATURES], rows.evade.to_numpy(dtype=object))


# explain -------------------------------------------------------------------------------------------------------------


@BOTH
def test_explain_prints_the_rows_asked_for(kind, office):
    printed = run("explain", "m.deciban", "later.csv", "--row", "7", "--row", "2").stdout
    explanation = in_memory(kind).explain(table("later.csv")[FEATURES])
    assert printed == f"{explanation.text(7)}\n\n{explanation.text(2)}\n"


@BOTH
def test_explain_as_an_object_sums_to_the_log_odds(kind, office):
    args = ["explain", "m.deciban", "later.csv", "--row", "7", "--pos-label", "yes", "--against", "no", "--json"]
    (explained,) = json.loads(run(*args).stdout)
    row = table("later.csv").loc[[7]]
    p = in_memory(kind).predict_proba(row[FEATURES])[0]
    assert explained["log_odds"] == pytest.approx(10 * np.log10(p[1] / p[0]))
    assert sum(part["decibans"] for part in explained["parts"]) == pytest.approx(explained["log_odds"])
    assert (explained["row"], explained["class"], explained["against"]) == (7, "yes", "no")
    values = {part["name"]: part["value"] for part in explained["parts"]}
    assert {name: values[name] for name in FEATURES} == {name: row[name].item() for name in FEATURES}
    assert set(values.values()) - {row[name].item() for name in FEATURES} == {None}  # of the prior, say
    features = {part["name"]: part["features"] for part in explained["parts"] if part["features"]}
    assert features == {name: [name] for name in FEATURES}


def xor(n):
    """The class is the exclusive or of two columns, mostly: neither of them is informative alone."""
    rng = np.random.default_rng(3)
    rows = pd.DataFrame(rng.choice(list("uv"), (n, 3)), columns=list("abc"))
    return rows.assign(odd=np.where((rows.a == rows.b) == (rng.random(n) < 0.9), "yes", "no"))


@pytest.fixture
def pair(tmp_path, monkeypatch):
    """A model with a pair of columns, and its training rows."""
    monkeypatch.chdir(tmp_path)
    xor(300).to_csv("a.csv", index=False)
    run("fit", "a.csv", "--label", "odd", "--pairs", "2", "--trees", "2", "-o", "m.deciban")
    return xor(300)


def test_a_pair_is_shared_out_or_a_part_of_its_own(pair):
    asked = ["explain", "m.deciban", "a.csv", "--row", "0"]
    (by_column,), (by_pair,) = (json.loads(run(*asked, *more, "--json").stdout) for more in ([], ["--by", "pair"]))
    assert {part["name"] for part in by_column["parts"]} >= {"a", "b", "c"}
    both = next(part for part in by_pair["parts"] if part["name"] == "a + b")
    a, b = pair.a[0], pair.b[0]
    assert (both["name"], both["features"], both["value"]) == ("a + b", ["a", "b"], [a, b])
    assert by_pair["log_odds"] == pytest.approx(by_column["log_odds"])
    assert f"\n  a = {a}, b = {b} " in run(*asked, "--by", "pair").stdout
    reasons = json.loads(run("predict", "m.deciban", "a.csv", "--explain", "--format", "jsonl").stdout.splitlines()[0])
    assert {part["column"]: part["value"] for part in reasons["why"]}.items() <= dict(pair.loc[0]).items()


def test_pairs_are_shown_one_by_one(pair):
    together = shown("m.deciban")["together"]
    pairs = [each["columns"] for each in together if each["family"] == "Pairs"]
    assert ["a", "b"] in pairs
    assert all(len(columns) == 2 for columns in pairs)
    text = run("show", "m.deciban").stdout
    for each in together:
        assert re.search(rf"^  {re.escape(' + '.join(each['columns']))} +{each['family']}$", text, re.MULTILINE)


def test_what_cannot_be_explained(office):
    for args, words in (
        (["--row", LATER], f"--row {LATER}: there are only {LATER} rows, numbered from 0"),
        (["--row", "0", "--pos-label", "maybe"], "--pos-label: there is no class 'maybe'; there are no, yes"),
        (["--row", "0", "--pos-label", "Yes"], "there is no class 'Yes' (did you mean 'yes'?); there are no, yes"),
        (["--row", "0", "--against", "maybe"], "--against: there is no class"),
    ):
        assert words in refused("explain", "m.deciban", "later.csv", *args)


def test_a_bad_cell_is_named_by_its_line(office):
    lines = (office / "later.csv").read_text().splitlines(keepends=True)
    (office / "bad.csv").write_text("".join([*lines[:20], "1,single,1e999,3,True,no\n", *lines[20:]]))
    done = run("explain", "m.deciban", "bad.csv", "--row", "2", "--row", "19", code=1)
    assert "bad.csv, line 21: column 'income'" in done.stderr


# evaluate ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "args", [[], NAIVE_BAYES, [*NAIVE_BAYES, "--calibrate", "temperature"], ["--model", "logistic"]], ids=" ".join
)
def test_evaluate_agrees_with_scikit_learn(args, office):
    model_file("m.deciban", *args)
    figures, later = evaluated("m.deciban", "later.csv", "--label", "evade"), table("later.csv")
    p = db.load("m.deciban").predict_proba(later[FEATURES])
    predicted = np.array(["no", "yes"])[p.argmax(axis=1)]
    assert figures["metrics"]["accuracy"] == accuracy_score(later.evade, predicted)
    assert figures["metrics"]["log_loss"] == pytest.approx(log_loss(later.evade, p))
    assert figures["metrics"]["auc"] == pytest.approx(roc_auc_score(later.evade == "yes", p[:, 1]))
    np.testing.assert_array_equal(figures["confusion"], confusion_matrix(later.evade, predicted))
    assert figures["classes"] == ["no", "yes"]
    assert [row["rows"] for row in figures["by_class"]] == [(later.evade == "no").sum(), (later.evade == "yes").sum()]


def test_the_text_says_what_the_object_holds(office):
    text, figures = run("evaluate", "m.deciban", "later.csv").stdout, evaluated("m.deciban", "later.csv")
    for value in (*figures["metrics"].values(), *np.ravel(figures["confusion"])):
        assert f"{value:.6g}" in text
    assert all(note in text for note in figures["notes"])


def test_files_of_an_evaluation_add_up_and_weights_count(office):
    later = table("later.csv").assign(weight=np.arange(LATER) % 3)
    later.to_csv("weighted.csv", index=False)
    later.loc[np.repeat(later.index, later.weight)].to_csv("twice.csv", index=False)
    weighted = evaluated("m.deciban", "weighted.csv", "--weight", "weight")
    repeated = evaluated("m.deciban", "twice.csv")
    assert weighted["confusion"] == repeated["confusion"]
    assert weighted["metrics"]["log_loss"] == pytest.approx(repeated["metrics"]["log_loss"])
    later[:25].to_csv("part-1.csv", index=False)
    later[25:].to_csv("part-2.csv", index=False)
    assert evaluated("m.deciban", "part-*.csv") == evaluated("m.deciban", "weighted.csv")


def test_labels_that_are_no_classes_are_an_error_with_both_lists(office):
    later = table("later.csv")
    later.assign(evade=later.evade + ".").to_csv("dotted.csv", index=False)
    line = refused("evaluate", "m.deciban", "dotted.csv")
    assert all(words in line for words in ("'no.', 'yes.'", "'no', 'yes'", "--trim-label"))
    trimmed = run("evaluate", "m.deciban", "dotted.csv", "--trim-label", ".").stdout
    assert trimmed == run("evaluate", "m.deciban", "later.csv").stdout


def test_only_csv_is_trimmed(office):
    table("later.csv").to_parquet("later.parquet")
    line = refused("evaluate", "m.deciban", "later.parquet", "--trim-label", ".")
    assert "later.parquet is not csv, and only csv can be trimmed" in line


def test_labels_that_look_like_numbers_are_read_as_the_classes_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("x,y\n1,1\n2,1\n8,2\n9,2\n5,other\n")
    (tmp_path / "b.csv").write_text("x,y\n1,1\n9,2\n")
    run("fit", "a.csv", "--label", "y", *NAIVE_BAYES, "-o", "m.deciban")
    metrics = evaluated("m.deciban", "b.csv")["metrics"]
    assert (metrics["accuracy"], metrics["rows"]) == (1.0, 2)


def test_a_model_without_probabilities_is_not_evaluated(office):
    fit_in_memory(table("people.csv").dropna(), db.Halfspace()).save("m.deciban")
    line = refused("evaluate", "m.deciban", "later.csv", "--label", "evade")
    assert "not a model with probabilities" in line


def test_a_model_that_knows_no_label_asks_for_it(office):
    in_memory("evidence").save("unnamed.deciban")
    assert "give --label" in refused("evaluate", "unnamed.deciban", "later.csv")
    table("later.csv").drop(columns="evade").to_csv("unlabelled.csv", index=False)
    assert "there is no column 'evade'" in refused("evaluate", "m.deciban", "unlabelled.csv")


def test_a_feature_is_no_label(office):
    before = files_in(office)
    for line in (
        "evaluate m.deciban later.csv",
        "fit later.csv --resume m.deciban",
        "forget m.deciban people.csv",
        "refit-weights m.deciban people.csv",
        "refit-weights m.deciban later.csv --held-out",
    ):
        words = "--label: 'status' is a feature of the model, which predicts 'evade'"
        assert refused(*line.split(), "--label", "status") == f"deciban: {words}\n"
    assert files_in(office) == before


# merge ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["naive-bayes"])
def test_merging_eight_is_one_fit(kind, office):
    rows, names = table("people.csv"), [f"{i}.deciban" for i in range(8)]
    for i, name in enumerate(names):
        rows[i::8].to_csv("part.csv", index=False)
        run("fit", "part.csv", "--label", "evade", *NAIVE_BAYES, "-o", name)
    made = run("merge", *names, "-o", "all.deciban")
    assert f"{ROWS} rows, 2 classes, 4 columns" in made.stdout
    assert made.stderr == ""
    later = table("later.csv")[FEATURES]
    expected = in_memory(kind).predict_proba(later)
    for name in ("all.deciban", "m.deciban"):
        np.testing.assert_array_equal(db.load(name).predict_proba(later), expected)


@cache
def thirds():
    """Model files and models in memory of three parts of people, which are evidence."""
    files, models = [], []
    for i in range(3):
        people(ROWS)[i::3].to_csv(f"{i}.csv", index=False)
        run("fit", f"{i}.csv", "--label", "evade", "--drop", "id", "-o", "part.deciban")
        files.append(Path("part.deciban").read_bytes())
        models.append(learned(people(ROWS)[i::3], "evidence"))
    return files, models


def test_merging_evidence_keeps_columns_and_says_what_it_loses(office):
    """The counts of each column are those of all rows; one line says that the rest is gone, for any number of files."""
    files, models = thirds()
    names = [f"{i}.deciban" for i in range(3)]
    for name, data in zip(names, files, strict=True):
        Path(name).write_bytes(data)
    made = run("merge", *names, "-o", "all.deciban")
    assert f"{ROWS} rows, 2 classes, 4 columns" in made.stdout
    (line,) = made.stderr.splitlines()
    assert line.startswith("deciban: warning: joint blocks of columns that differ between the models were dropped")
    assert "fit --resume" in line
    assert "refit-weights" in line
    assert ".py" not in line
    merged, whole = db.load("all.deciban"), db.load("m.deciban")
    assert merged.class_count_.tolist() == whole.class_count_.tolist()
    alone = [block for block in whole.generative_.blocks if not block.plan.family.joint]
    assert [block.plan for block in merged.generative_.blocks] == [block.plan for block in alone]
    assert_same_statistics(merged.generative_.blocks, alone)
    with pytest.warns(db.DecibanWarning):
        expected = models[0].merge(models[1]).merge(models[2])
    later = table("later.csv")[FEATURES]
    np.testing.assert_allclose(merged.predict_proba(later), expected.predict_proba(later), rtol=1e-9)
    about = json.loads(run("merge", *names, "-o", "all.deciban", "--json").stdout)
    assert (about["kind"], about["together"]) == ("EvidenceClassifier", [])
    # weights fitted to what is left predict better than the mean of those fitted beside what is gone
    before = evaluated("all.deciban", "later.csv")["metrics"]["log_loss"]
    run("refit-weights", "all.deciban", "people.csv")
    assert evaluated("all.deciban", "later.csv")["metrics"]["log_loss"] < before


def assert_same_statistics(blocks, expected):
    for mine, theirs in zip(blocks, expected, strict=True):
        a, b = flattened(mine.statistic), flattened(theirs.statistic)
        assert all(a[key].tobytes() == b[key].tobytes() for key in b)


def test_models_resumed_from_one_are_merged_whole(office):
    """Their joint blocks were laid out by the same rows: nothing is lost, nothing is said."""
    run("fit", "later.csv", "--resume", "m.deciban", "-o", "more.deciban")
    made = run("merge", "m.deciban", "more.deciban", "-o", "all.deciban")
    assert (made.stderr, f"{2 * ROWS + LATER} rows" in made.stdout) == ("", True)
    assert shown("m.deciban")["together"] == shown("all.deciban")["together"] != []


@BOTH
def test_models_that_cannot_be_merged(kind, office):
    plain, *_ = KINDS[kind]
    other = next(name for name in KINDS if name != kind)
    args, setting, values = {
        "evidence": (["--pairs", "5"], "pairs", "is 5, but the first model's is 'auto'"),
        "naive-bayes": (["--smoothing", "5"], "smoothing", "is 5.0, but the first model's is 1.0"),
    }[kind]
    model_file("logistic.deciban", "--model", "logistic")
    model_file("dropped.deciban", "--drop", "age", *plain)
    model_file("other.deciban", *KINDS[other][0])
    model_file("label.deciban", *plain, label="cheats")
    model_file("setting.deciban", *plain, *args)
    in_memory(kind).save("unnamed.deciban")
    cases = [
        ("m dropped", "dropped.deciban: the columns differ"),
        ("logistic m", "LogisticRegression cannot be merged"),
        ("m logistic", "cannot be merged"),
        ("m other", "other.deciban: "),
        ("m other", "cannot be merged"),
        ("m label", "label.deciban: its label is 'cheats', but the first model's is 'evade'"),
        ("unnamed m label", "label.deciban: its label is 'cheats', but the first model's is 'evade'"),
        ("m setting", f"setting.deciban: its {setting} {values}"),
        ("m none", "none.deciban: there is no such file"),
    ]
    if kind == "naive-bayes":
        calibrated = [*plain, "--calibrate", "temperature"]
        model_file("calibrated.deciban", *calibrated)
        model_file("both.deciban", *calibrated, *args)
        cases.append(("calibrated both", f"both.deciban: its {setting} {values}"))
    for names, words in cases:
        assert words in refused("merge", *(f"{name}.deciban" for name in names.split()), "-o", "out.deciban")
    assert not (office / "out.deciban").exists()
    run("merge", "unnamed.deciban", "m.deciban", "-o", "out.deciban")


@pytest.mark.parametrize(
    "args",
    [
        [*NAIVE_BAYES, "--columns", "age=poisson"],
        [*NAIVE_BAYES, "--families", "auto"],
        [*NAIVE_BAYES, "--calibrate", "isotonic"],
        ["--pairs", "2"],
    ],
    ids=" ".join,
)
def test_models_of_the_same_settings_are_merged(args, office):
    for seed, name in enumerate("ab"):
        model_file(f"{name}.deciban", *args, seed=seed)
    assert f"{2 * ROWS} rows" in run("merge", "a.deciban", "b.deciban", "-o", "out.deciban").stdout


@BOTH
def test_parts_fitted_like_a_model_add_up_without_loss(kind, office):
    later = table("later.csv")
    parts = {"b": later[:25], "c": later[25:]}
    for name, rows in parts.items():
        rows.to_csv(f"{name}.csv", index=False)
        made = run("fit", f"{name}.csv", "--like", "m.deciban", "-o", f"{name}.deciban")
        assert f"{len(rows)} rows" in made.stdout
    assert run("merge", "m.deciban", "b.deciban", "c.deciban", "-o", "all.deciban").stderr == ""
    run("fit", "b.csv", "c.csv", "--resume", "m.deciban", "-o", "resumed.deciban")
    merged, expected = db.load("all.deciban"), db.load("resumed.deciban")
    rows = later[FEATURES]
    np.testing.assert_allclose(merged.predict_proba(rows), expected.predict_proba(rows), rtol=1e-9)
    assert merged.class_count_.tolist() == expected.class_count_.tolist()


def test_labels_of_a_part_are_read_as_those_of_the_model(office):
    rows = table("people.csv").assign(evade=lambda t: np.where(t.evade == "yes", "1", "x"))
    rows.to_csv("words.csv", index=False)
    run("fit", "words.csv", "--label", "evade", "--trees", "2", "-o", "words.deciban")
    rows[rows.evade == "1"].to_csv("ones.csv", index=False)  # which alone would be numbers
    run("fit", "ones.csv", "--like", "words.deciban", "-o", "ones.deciban")
    assert db.load("ones.deciban").classes_.tolist() == ["1"]
    run("merge", "words.deciban", "ones.deciban", "-o", "all.deciban")


def test_parts_that_cannot_be_like_a_model(office):
    model_file("logistic.deciban", "--model", "logistic")
    for line, message in (
        ("--like m.deciban --resume m.deciban", "use only one of them"),
        ("--like m.deciban --trees 3", "--like reads columns as a model does: drop --trees"),
        ("--like m.deciban --label age", "'age' is a feature of the model"),
        ("--like logistic.deciban", "cannot be followed by --like: fit one model, with all files"),
    ):
        args = ["fit", "later.csv", *line.split(), "-o", "part.deciban"]
        failed = run(*args, code=2 if "use only one" in message else 1)
        assert message in " ".join(failed.stderr.replace("│", " ").split())
    assert not (office / "part.deciban").exists()


def test_updates_say_when_weights_are_out_of_date(office):
    table("people.csv")[:40].to_csv("few.csv", index=False)
    table("people.csv")[40:].to_csv("many.csv", index=False)
    run("fit", "few.csv", "--label", "evade", "--trees", "2", "-o", "few.deciban")
    words = f"has learned {ROWS} rows, and its weights were fitted when it had learned 40"
    resumed = run("fit", "many.csv", "--resume", "few.deciban", "-o", "resumed.deciban").stderr
    run("fit", "many.csv", "--like", "few.deciban", "-o", "many.deciban")
    merged = run("merge", "few.deciban", "many.deciban", "-o", "merged.deciban").stderr
    for said in (resumed, merged):
        assert " ".join(said.split()).count(words) == 1
        assert "deciban refit-weights MODEL ROWS" in " ".join(said.split())
    assert run("refit-weights", "resumed.deciban", "people.csv").stderr == ""
    people(20, seed=9).to_csv("new.csv", index=False)
    assert run("fit", "new.csv", "--resume", "resumed.deciban").stderr == ""


# forget --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["naive-bayes"])
def test_what_is_forgotten_was_never_there(kind, office):
    rows = table("people.csv")
    rows[150:].to_csv("leavers.csv", index=False)
    rows[:150].to_csv("stayers.csv", index=False)
    before = (office / "m.deciban").read_bytes()
    run("forget", "m.deciban", "leavers.csv", "-o", "less.deciban")
    assert (office / "m.deciban").read_bytes() == before
    run("fit", "stayers.csv", "--label", "evade", *NAIVE_BAYES, "-o", "stayed.deciban")
    less, stayed = shown("less.deciban"), shown("stayed.deciban")
    assert less["counts"] == stayed["counts"] == rows[:150].evade.value_counts().loc[["no", "yes"]].tolist()
    mine, theirs = ({each["title"]: each for each in model["summary"]["tables"]} for model in (less, stayed))
    assert mine.keys() == theirs.keys()
    assert all(mine[title] == theirs[title] for title in mine if title != "features")  # importances are as they were
    run("forget", "m.deciban", "leavers.csv", "--label", "-1")
    assert (office / "m.deciban").read_bytes() == (office / "less.deciban").read_bytes()


def test_evidence_forgets_what_it_counted_and_keeps_its_weights(office):
    """Every count of a column, a pair, or a leaf is that of the rows that stay; weights are those of all rows."""
    rows = table("people.csv")
    rows[150:].to_csv("leavers.csv", index=False)
    rows[:150].to_csv("stayers.csv", index=False)
    before = (office / "m.deciban").read_bytes()
    run("forget", "m.deciban", "leavers.csv", "-o", "less.deciban")
    assert (office / "m.deciban").read_bytes() == before
    less, model = db.load("less.deciban"), db.load("m.deciban")
    assert less.class_count_.tolist() == rows[:150].evade.value_counts().loc[["no", "yes"]].tolist()
    run("fit", "stayers.csv", "--label", "evade", "-o", "stayed.deciban")
    alone = [block for block in db.load("stayed.deciban").generative_.blocks if not block.plan.family.joint]
    assert_same_statistics([block for block in less.generative_.blocks if not block.plan.family.joint], alone)
    expected = model.empty_copy().partial_fit(rows[FEATURES][:150], rows.evade[:150].to_numpy(dtype=object))
    later = table("later.csv")[FEATURES]
    np.testing.assert_allclose(less.predict_proba(later), expected.predict_proba(later), rtol=1e-9)
    np.testing.assert_array_equal(less.weights_.values, model.weights_.values)
    run("forget", "m.deciban", "leavers.csv", "--label", "-1")
    assert (office / "m.deciban").read_bytes() == (office / "less.deciban").read_bytes()


@BOTH
def test_weighted_rows_are_forgotten_by_their_weights(kind, office):
    rows = table("people.csv").assign(weight=np.arange(ROWS) % 4)
    rows.to_csv("weighted.csv", index=False)
    rows[50:100].to_csv("leavers.csv", index=False)
    run("fit", "weighted.csv", "--label", "evade", "--weight", "weight", *KINDS[kind][0], "-o", "m.deciban")
    run("forget", "m.deciban", "leavers.csv", "--weight", "weight")
    left = rows.drop(index=range(50, 100))
    expected = [left.weight[left.evade == level].sum() for level in ("no", "yes")]
    assert shown("m.deciban")["counts"] == expected


@BOTH
def test_forgetting_everything_leaves_an_empty_model(kind, office):
    assert "0 rows, 0 classes" in run("forget", "m.deciban", "people.csv").stdout
    assert "classes none: every row was forgotten" in run("show", "m.deciban").stdout
    assert shown("m.deciban")["classes"] == []
    asked = [["predict"], ["evaluate"], ["explain", "--row", "0"]]
    asked += [["refit-weights"], ["refit-weights", "--held-out"]] if kind == "evidence" else []
    for name, *args in asked:
        line = refused(name, "m.deciban", "later.csv", *args)
        assert line.startswith("deciban: every row was forgotten: there is nothing to ")
        assert line.endswith(" until fit --resume\n")
    run("fit", "people.csv", "--resume", "m.deciban")
    later = table("later.csv")[FEATURES]
    expected = in_memory(kind).predict_proba(later)
    np.testing.assert_allclose(db.load("m.deciban").predict_proba(later), expected, rtol=1e-9)


@BOTH
def test_forgetting_what_was_not_learned_changes_nothing(kind, office):
    before = (office / "m.deciban").read_bytes()
    table("later.csv").assign(evade="perhaps").to_csv("strangers.csv", index=False)
    line = refused("forget", "m.deciban", "strangers.csv")
    assert "class 'perhaps' was never learned; the model is unchanged" in line
    assert (office / "m.deciban").read_bytes() == before


def test_models_that_cannot_forget(office):
    model_file("u.deciban", *NAIVE_BAYES, "--columns", "age=uniform")
    refused("forget", "u.deciban", "people.csv")
    model_file("l.deciban", "--model", "logistic")
    assert "LogisticRegression cannot forget" in refused("forget", "l.deciban", "people.csv")


# refit-weights -------------------------------------------------------------------------------------------------------


def weights(path):
    fitted_weights = db.load(path).weights_
    return np.append(fitted_weights.values.ravel(), fitted_weights.bias)


def test_refitting_by_the_rows_of_the_fit_is_the_fit(office):
    before = weights("m.deciban")
    made = run("refit-weights", "m.deciban", "people.csv", "-o", "again.deciban")
    assert made.stdout.startswith(f"again.deciban: EvidenceClassifier, {ROWS} rows, 2 classes, 4 columns")
    assert made.stderr == ""
    np.testing.assert_allclose(weights("again.deciban"), before, rtol=1e-6, atol=1e-9)


def test_refit_weights_changes_weights_and_nothing_else(office):
    """After more rows were learned: the weights are those of refit_weights in memory, the counts are as they were."""
    rows, later = table("people.csv"), table("later.csv")
    later.drop(columns="id").to_csv("more.csv", index=False)
    run("fit", "more.csv", "--resume", "m.deciban")
    before = (office / "m.deciban").read_bytes()
    run("refit-weights", "m.deciban", "people.csv", "more.csv", "-o", "better.deciban")
    assert (office / "m.deciban").read_bytes() == before
    both = pd.concat([rows, later])
    expected = deepcopy(in_memory("evidence")).partial_fit(later[FEATURES], later.evade.to_numpy(dtype=object))
    stale = expected.predict_proba(later[FEATURES])
    expected.refit_weights(both[FEATURES], both.evade.to_numpy(dtype=object))
    refitted = db.load("better.deciban").predict_proba(later[FEATURES])
    np.testing.assert_allclose(refitted, expected.predict_proba(later[FEATURES]), rtol=1e-6)
    assert np.abs(refitted - stale).max() > 1e-3
    assert shown("m.deciban")["counts"] == shown("better.deciban")["counts"]
    run("refit-weights", "m.deciban", "people.csv", "more.csv", "--label", "-1")
    assert (office / "m.deciban").read_bytes() == (office / "better.deciban").read_bytes()


def test_refit_weights_by_new_rows(office):
    later = table("later.csv").assign(weight=np.arange(LATER) % 3)
    later.to_csv("weighted.csv", index=False)
    args = ["--held-out", "--weight", "weight", "--json", "-o", "new.deciban"]
    made = run("refit-weights", "m.deciban", "weighted.csv", *args)
    assert sum(json.loads(made.stdout)["counts"]) == ROWS
    expected, y = deepcopy(in_memory("evidence")), later.evade.to_numpy(dtype=object)
    expected.refit_weights(later[FEATURES], y, later.weight.to_numpy(float), held_out=True)
    refitted = db.load("new.deciban").predict_proba(later[FEATURES])
    np.testing.assert_allclose(refitted, expected.predict_proba(later[FEATURES]), rtol=1e-6)


def test_what_weights_cannot_be_refitted_by(office):
    later, lines = table("later.csv"), (office / "people.csv").read_text().splitlines()
    later.assign(evade=later.evade + ".").to_csv("dotted.csv", index=False)
    later.assign(evade=later.evade.replace("yes", "yes.")).to_csv("half-dotted.csv", index=False)
    later.drop(columns="evade").to_csv("unlabelled.csv", index=False)
    (office / "names.csv").write_text(f"{lines[0]}\n")
    (office / "bad.csv").write_text("\n".join([lines[0], "single,cheap,30,True,no", *lines[1:]]))
    (office / "infinite.csv").write_text("\n".join([*lines[:2], "single,1e999,30,True,no", *lines[2:]]))
    before = files_in(office)
    for line, words in (
        ("later.csv", "was never learned: give training rows of the model, or --held-out for others"),
        ("half-dotted.csv", "so they are not training rows: give training rows of the model, or --held-out"),
        ("dotted.csv", "too few to fit weights on"),
        ("dotted.csv --held-out", "too few to fit weights on"),
        ("people.csv --label nobody", "--label: there is no column 'nobody'"),
        ("unlabelled.csv", "there is no column 'evade'"),
        ("names.csv", "names.csv has no rows"),
        ("bad.csv", "bad.csv, line 2: column 'income'"),
        ("infinite.csv --held-out", "infinite.csv, line 3: column 'income'"),
        ("nothing.csv", "there is no file 'nothing.csv'"),
        ("people.csv -o people.csv", "is one of the input files"),
        ("people.csv -o -", "a model cannot be written to standard output"),
    ):
        assert words in refused("refit-weights", "m.deciban", *line.split()), line
    assert files_in(office) == before


def test_models_without_weights_are_not_refitted(office):
    for args in (NAIVE_BAYES, ["--model", "logistic"], [*NAIVE_BAYES, "--calibrate", "temperature"]):
        model_file("m.deciban", *args)
        line = refused("refit-weights", "m.deciban", "people.csv")
        words = "cannot have its weights refitted: only an EvidenceClassifier that is not calibrated has weights"
        assert words in line
        assert (office / "m.deciban").read_bytes() == fitted(*args)


# show ----------------------------------------------------------------------------------------------------------------


@BOTH
def test_show_says_what_the_file_holds(kind, office):
    about, text, rows = shown("m.deciban"), run("show", "m.deciban").stdout, table("people.csv")
    assert about["kind"] == KINDS[kind][1].__name__
    assert (about["label"], about["classes"]) == ("evade", ["no", "yes"])
    assert about["counts"] == rows.evade.value_counts().loc[["no", "yes"]].tolist()
    assert about["bytes"] == (office / "m.deciban").stat().st_size
    assert (about["format"], about["version"]) == (2, db.__version__)
    numbers, boolean = {
        "evidence": ("Binned, Gaussian", "Categorical"),
        "naive-bayes": ("Gaussian", "Bernoulli"),
    }[kind]
    assert [(c["name"], c["kind"], c["family"]) for c in about["columns"]] == [
        ("status", "category", "Categorical"),
        ("income", "number", numbers),
        ("age", "number", numbers),
        ("member", "boolean", boolean),
    ]
    no, yes = about["counts"]
    listed = [f"m.deciban: {about['kind']}", f"{about['bytes']:,} bytes", f"classes no ({no:g}), yes ({yes:g})"]
    listed += [each["title"] for each in about["summary"]["tables"]]
    listed += [column[key] for column in about["columns"] for key in ("name", "family")]
    assert all(words in text for words in listed)
    if kind == "evidence":
        assert {"family": "Forest", "columns": FEATURES} in about["together"]
        assert {"family": "JointNormals", "columns": FEATURES} in about["together"]
        families = {each["family"] for each in about["together"]}
        assert families <= {"Forest", "JointNormals", "Pairs", "SymmetricTrees"}
        assert [each["title"] for each in about["summary"]["tables"]] == ["class prior", "features", "weights"]
        return
    assert about["together"] == []
    (means,) = [each for each in about["summary"]["tables"] if each["title"].startswith("income")]
    mean = dict(zip(means["header"], means["rows"][0], strict=True))["mean"]
    assert mean == pytest.approx(rows.income[rows.evade == "no"].mean())


def test_columns_of_one_density_are_shown_together(office):
    model_file("m.deciban", "--model", "lda", "--drop", "status,member")
    about = shown("m.deciban")
    assert [column["family"] for column in about["columns"]] == ["MultivariateGaussian"] * 2
    assert about["together"] == [{"family": "MultivariateGaussian", "columns": ["income", "age"]}]


def test_show_knows_models_of_arrays(office):
    rows = np.random.default_rng(0).normal(size=(60, 7))
    for model in (db.EvidenceClassifier(trees=2), db.NaiveBayes(), db.GaussianDiscriminant()):
        model.fit(rows, (rows[:, 0] > 0).astype(int)).save("m.deciban")
        about = shown("m.deciban")
        assert [column["name"] for column in about["columns"]] == [*range(7)]
        assert ("0 + 1 + 2 + 3 + 3 others" in run("show", "m.deciban").stdout) == bool(about["together"])


def test_show_knows_every_kind(office):
    rows = table("people.csv").dropna()
    for model, called in (
        (db.Halfspace(), "Halfspace"),
        (db.CalibratedClassifier(db.NaiveBayes()), "NaiveBayes, calibrated (temperature)"),
        (
            db.CalibratedClassifier(db.EvidenceClassifier(trees=2), cv=2),
            "EvidenceClassifier, calibrated (temperature)",
        ),
        (db.LogisticRegression(l2=1.0), "LogisticRegression"),
        (db.GeneralizedLinearModel("bernoulli"), "GeneralizedLinearModel"),
        (db.GaussianDiscriminant(), "GaussianDiscriminant"),
    ):
        names = ["income", "age"] if isinstance(model, db.GaussianDiscriminant) else FEATURES
        model.fit(rows[names], rows.evade.to_numpy(dtype=object)).save("m.deciban")
        about = shown("m.deciban")
        assert (about["kind"], about["classes"]) == (called, ["no", "yes"])
        assert [column["name"] for column in about["columns"]] == names
        assert f"m.deciban: {called}, " in run("show", "m.deciban").stdout
    db.GeneralizedLinearModel().fit(rows[["age"]], rows.income).save("m.deciban")
    assert shown("m.deciban")["classes"] is None
    assert "coefficients" in run("show", "m.deciban").stdout
