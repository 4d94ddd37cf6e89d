"""`deciban explain`, `evaluate`, `merge`, `forget`, `refit-weights` and `show`."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix, log_loss, roc_auc_score

import deciban as db
from tests.cli.runs import FEATURES, LEARNED, NAIVE_BAYES, people, run
from tests.laws import flattened

BOTH = pytest.mark.parametrize("kind", LEARNED)


@pytest.fixture
def kind():
    return "evidence"


@pytest.fixture
def office(kind, tmp_path, monkeypatch):
    """A model, and rows that it has not learned."""
    monkeypatch.chdir(tmp_path)
    people(400).drop(columns="id").to_csv("people.csv", index=False)
    people(150, seed=3).to_csv("later.csv", index=False)
    run("fit", "people.csv", "--label", "evade", *LEARNED[kind][0], "-o", "m.deciban")
    return tmp_path


def table(name):
    return pd.read_csv(name)


def in_memory(rows, model):
    return model.fit(rows[FEATURES], rows.evade.to_numpy(dtype=object))


def learned(rows, kind):
    return in_memory(rows, LEARNED[kind][1]())


# explain -------------------------------------------------------------------------------------------------------------


@BOTH
def test_explain_prints_the_rows_asked_for(kind, office):
    shown = run("explain", "m.deciban", "later.csv", "--row", "7", "--row", "2").stdout
    explanation = learned(table("people.csv"), kind).explain(table("later.csv")[FEATURES])
    assert shown == f"{explanation.text(7)}\n\n{explanation.text(2)}\n"


@BOTH
def test_explain_as_an_object_sums_to_the_log_odds(kind, office):
    args = ["explain", "m.deciban", "later.csv", "--row", "7", "--pos-label", "yes", "--against", "no", "--json"]
    (found,) = json.loads(run(*args).stdout)
    row = table("later.csv").loc[[7]]
    p = learned(table("people.csv"), kind).predict_proba(row[FEATURES])[0]
    assert found["log_odds"] == pytest.approx(10 * np.log10(p[1] / p[0]))
    assert sum(part["decibans"] for part in found["parts"]) == pytest.approx(found["log_odds"])
    assert (found["row"], found["class"], found["against"]) == (7, "yes", "no")
    values = {part["name"]: part["value"] for part in found["parts"]}
    assert {name: values[name] for name in FEATURES} == {name: row[name].item() for name in FEATURES}
    assert set(values.values()) - {row[name].item() for name in FEATURES} == {None}  # of the prior, say
    features = {part["name"]: part["features"] for part in found["parts"] if part["features"]}
    assert features == {name: [name] for name in FEATURES}


def test_a_pair_is_shared_out_or_a_part_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = odd(600)
    rows.to_csv("a.csv", index=False)
    run("fit", "a.csv", "--label", "odd", "-o", "m.deciban")
    asked = ["explain", "m.deciban", "a.csv", "--row", "0"]
    (by_column,), (by_pair,) = (json.loads(run(*asked, *more, "--json").stdout) for more in ([], ["--by", "pair"]))
    assert {part["name"] for part in by_column["parts"]} >= {"a", "b", "c"}
    pair = next(part for part in by_pair["parts"] if part["name"] == "a + b")
    a, b = rows.a[0], rows.b[0]
    assert (pair["name"], pair["features"], pair["value"]) == ("a + b", ["a", "b"], [a, b])
    assert by_pair["log_odds"] == pytest.approx(by_column["log_odds"])
    assert f"\n  a = {a}, b = {b} " in run(*asked, "--by", "pair").stdout
    reasons = json.loads(run("predict", "m.deciban", "a.csv", "--explain", "--format", "jsonl").stdout.splitlines()[0])
    assert {part["column"]: part["value"] for part in reasons["why"]}.items() <= dict(rows.loc[0]).items()


def odd(n):
    """The class is the exclusive or of two columns, mostly: neither of them tells it by itself."""
    rng = np.random.default_rng(3)
    rows = pd.DataFrame(rng.choice(list("uv"), (n, 3)), columns=list("abc"))
    return rows.assign(odd=np.where((rows.a == rows.b) == (rng.random(n) < 0.9), "yes", "no"))


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--row", "150"], "--row 150: there are only 150 rows, numbered from 0"),
        (["--row", "0", "--pos-label", "maybe"], "--pos-label: there is no class 'maybe'; there are no, yes"),
        (["--row", "0", "--against", "maybe"], "--against: there is no class"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_cannot_be_explained(args, words, office):
    assert words in run("explain", "m.deciban", "later.csv", *args, code=1).stderr


def test_a_bad_cell_is_named_by_its_line(office):
    lines = (office / "later.csv").read_text().splitlines(keepends=True)
    (office / "bad.csv").write_text("".join([*lines[:20], "1,single,1e999,3,True,no\n", *lines[20:]]))
    done = run("explain", "m.deciban", "bad.csv", "--row", "2", "--row", "19", code=1)
    assert "bad.csv, line 21: column 'income'" in done.stderr


# evaluate ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "args", [[], NAIVE_BAYES, ["--calibrate", "temperature"], ["--model", "logistic"]], ids=" ".join
)
def test_evaluate_agrees_with_scikit_learn(args, office):
    run("fit", "people.csv", "--label", "evade", *args, "-o", "m.deciban")
    found = json.loads(run("evaluate", "m.deciban", "later.csv", "--label", "evade", "--json").stdout)
    later = table("later.csv")
    p = db.load("m.deciban").predict_proba(later[FEATURES])
    metrics = found["metrics"]
    assert metrics["accuracy"] == accuracy_score(later.evade, np.array(["no", "yes"])[p.argmax(axis=1)])
    assert metrics["log_loss"] == pytest.approx(log_loss(later.evade, p))
    assert metrics["auc"] == pytest.approx(roc_auc_score(later.evade == "yes", p[:, 1]))
    predicted = np.array(["no", "yes"])[p.argmax(axis=1)]
    np.testing.assert_array_equal(found["confusion"], confusion_matrix(later.evade, predicted))
    assert found["classes"] == ["no", "yes"]
    assert [row["rows"] for row in found["by_class"]] == [(later.evade == "no").sum(), (later.evade == "yes").sum()]


def test_the_text_says_what_the_object_holds(office):
    text = run("evaluate", "m.deciban", "later.csv").stdout
    found = json.loads(run("evaluate", "m.deciban", "later.csv", "--json").stdout)
    for value in (*found["metrics"].values(), *np.ravel(found["confusion"])):
        assert f"{value:.6g}" in text
    assert all(note in text for note in found["notes"])


def test_files_of_an_evaluation_add_up_and_weights_count(office):
    later = table("later.csv").assign(weight=np.arange(150) % 3)
    later.to_csv("weighted.csv", index=False)
    later.loc[np.repeat(later.index, later.weight)].to_csv("twice.csv", index=False)
    weighted = json.loads(run("evaluate", "m.deciban", "weighted.csv", "--weight", "weight", "--json").stdout)
    repeated = json.loads(run("evaluate", "m.deciban", "twice.csv", "--json").stdout)
    assert weighted["confusion"] == repeated["confusion"]
    assert weighted["metrics"]["log_loss"] == pytest.approx(repeated["metrics"]["log_loss"])
    later[:60].to_csv("part-1.csv", index=False)
    later[60:].to_csv("part-2.csv", index=False)
    parts = json.loads(run("evaluate", "m.deciban", "part-*.csv", "--json").stdout)
    assert parts == json.loads(run("evaluate", "m.deciban", "weighted.csv", "--json").stdout)


def test_labels_that_are_no_classes_are_an_error_with_both_lists(office):
    later = table("later.csv")
    later.assign(evade=later.evade + ".").to_csv("dotted.csv", index=False)
    done = run("evaluate", "m.deciban", "dotted.csv", code=1)
    assert "'no.', 'yes.'" in done.stderr
    assert "'no', 'yes'" in done.stderr
    assert "--trim-label" in done.stderr
    assert done.stderr.count("\n") == 1
    trimmed = run("evaluate", "m.deciban", "dotted.csv", "--trim-label", ".").stdout
    assert trimmed == run("evaluate", "m.deciban", "later.csv").stdout


def test_only_csv_is_trimmed(office):
    table("later.csv").to_parquet("later.parquet")
    done = run("evaluate", "m.deciban", "later.parquet", "--trim-label", ".", code=1)
    assert "later.parquet is not csv, and only csv can be trimmed" in done.stderr


def test_labels_that_look_like_numbers_are_read_as_the_classes_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("x,y\n1,1\n2,1\n8,2\n9,2\n5,other\n")
    (tmp_path / "b.csv").write_text("x,y\n1,1\n9,2\n")
    run("fit", "a.csv", "--label", "y", "-o", "m.deciban")
    found = json.loads(run("evaluate", "m.deciban", "b.csv", "--json").stdout)
    assert found["metrics"]["accuracy"] == 1.0
    assert found["metrics"]["rows"] == 2


def test_a_model_without_probabilities_is_not_evaluated(office):
    in_memory(table("people.csv").dropna(), db.Halfspace()).save("m.deciban")
    done = run("evaluate", "m.deciban", "later.csv", "--label", "evade", code=1)
    assert "not a model that gives probabilities" in done.stderr


def test_a_model_that_knows_no_label_asks_for_it(office):
    learned(table("people.csv"), "evidence").save("m.deciban")
    done = run("evaluate", "m.deciban", "later.csv", code=1)
    assert "give --label" in done.stderr
    run("fit", "people.csv", "--label", "evade", "-o", "m.deciban")
    table("later.csv").drop(columns="evade").to_csv("unlabelled.csv", index=False)
    done = run("evaluate", "m.deciban", "unlabelled.csv", code=1)
    assert "there is no column 'evade'" in done.stderr


@pytest.mark.parametrize(
    "args",
    [
        ["evaluate", "m.deciban", "later.csv"],
        ["fit", "later.csv", "--resume", "m.deciban"],
        ["forget", "m.deciban", "people.csv"],
        ["refit-weights", "m.deciban", "people.csv"],
        ["refit-weights", "m.deciban", "later.csv", "--held-out"],
    ],
    ids=" ".join,
)
def test_a_column_that_is_predicted_from_is_no_label(args, office):
    before = (office / "m.deciban").read_bytes()
    done = run(*args, "--label", "status", code=1)
    words = "--label: 'status' is a feature of the model, which predicts 'evade'"
    assert done.stderr == f"deciban: {words}\n"
    assert (office / "m.deciban").read_bytes() == before


# merge ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["naive-bayes"])
def test_merging_eight_is_one_fit(kind, office):
    rows = table("people.csv")
    names = []
    for i in range(8):
        rows[i::8].to_csv(f"{i}.csv", index=False)
        run("fit", f"{i}.csv", "--label", "evade", *NAIVE_BAYES, "-o", f"{i}.deciban")
        names.append(f"{i}.deciban")
    made = run("merge", *names, "-o", "all.deciban")
    assert "400 rows, 2 classes, 4 columns" in made.stdout
    assert made.stderr == ""
    later = table("later.csv")[FEATURES]
    np.testing.assert_array_equal(
        db.load("all.deciban").predict_proba(later), db.load("m.deciban").predict_proba(later)
    )
    np.testing.assert_array_equal(db.load("m.deciban").predict_proba(later), learned(rows, kind).predict_proba(later))


@pytest.mark.parametrize("files", [2, 4])
def test_merging_evidence_keeps_columns_and_says_what_it_loses(files, office):
    """What is known of each column is that of all rows; one line says that the rest is gone, whatever the number."""
    rows = table("people.csv")
    for i in range(files):
        rows[i::files].to_csv(f"{i}.csv", index=False)
        run("fit", f"{i}.csv", "--label", "evade", "-o", f"{i}.deciban")
    names = [f"{i}.deciban" for i in range(files)]
    made = run("merge", *names, "-o", "all.deciban")
    assert "400 rows, 2 classes, 4 columns" in made.stdout
    (line,) = made.stderr.splitlines()
    assert line.startswith("deciban: warning: joint blocks of columns that differ between the models were dropped")
    assert "fit --resume" in line
    assert "refit-weights" in line
    assert ".py" not in line
    found, whole = db.load("all.deciban"), db.load("m.deciban")
    assert found.class_count_.tolist() == whole.class_count_.tolist()
    alone = [block for block in whole.generative_.blocks if not block.plan.family.joint]
    for mine, theirs in zip(found.generative_.blocks, alone, strict=True):
        assert mine.plan == theirs.plan
        a, b = flattened(mine.statistic), flattened(theirs.statistic)
        assert all(a[key].tobytes() == b[key].tobytes() for key in b)
    expected = learned(rows[::files], "evidence")
    for i in range(1, files):
        other = learned(rows[i::files], "evidence")
        with pytest.warns(db.DecibanWarning):
            expected = expected.merge(other)
    later = table("later.csv")[FEATURES]
    np.testing.assert_allclose(found.predict_proba(later), expected.predict_proba(later), rtol=1e-9)
    about = json.loads(run("merge", *names, "-o", "all.deciban", "--json").stdout)
    assert (about["kind"], about["together"]) == ("EvidenceClassifier", [])


def test_models_that_went_on_from_one_are_merged_whole(office):
    """Their blocks over several columns were laid out by the same rows: nothing is lost, nothing is said."""
    run("fit", "later.csv", "--resume", "m.deciban", "-o", "more.deciban")
    made = run("merge", "m.deciban", "more.deciban", "-o", "all.deciban")
    assert (made.stderr, "950 rows" in made.stdout) == ("", True)
    shown = [json.loads(run("show", name, "--json").stdout) for name in ("m.deciban", "all.deciban")]
    assert shown[0]["together"] == shown[1]["together"] != []


@BOTH
def test_models_that_do_not_fit_together(kind, office):
    run("fit", "people.csv", "--label", "evade", "--model", "logistic", "-o", "l.deciban")
    run("fit", "people.csv", "--label", "evade", "--drop", "age", *LEARNED[kind][0], "-o", "d.deciban")
    done = run("merge", "m.deciban", "d.deciban", "-o", "out.deciban", code=1)
    assert done.stderr.startswith("deciban: d.deciban: the columns differ")
    done = run("merge", "l.deciban", "m.deciban", "-o", "out.deciban", code=1)
    assert "LogisticRegression cannot be merged" in done.stderr
    done = run("merge", "m.deciban", "l.deciban", "-o", "out.deciban", code=1)
    assert "cannot be merged" in done.stderr
    other = next(name for name in LEARNED if name != kind)
    run("fit", "people.csv", "--label", "evade", *LEARNED[other][0], "-o", "o.deciban")
    done = run("merge", "m.deciban", "o.deciban", "-o", "out.deciban", code=1)
    assert done.stderr.startswith("deciban: o.deciban: ")
    assert "cannot be merged" in done.stderr
    assert not (office / "out.deciban").exists()


@BOTH
def test_models_of_other_labels_or_settings_are_not_merged(kind, office):
    rows = table("people.csv")
    rows.rename(columns={"evade": "cheats"}).to_csv("other.csv", index=False)
    args, setting, values = {
        "evidence": (["--pairs", "5"], "pairs", "is 5, that of the first model 'auto'"),
        "naive-bayes": (["--smoothing", "5"], "smoothing", "is 5.0, that of the first model 1.0"),
    }[kind]
    plain, calibrated = LEARNED[kind][0], [*LEARNED[kind][0], "--calibrate", "temperature"]
    run("fit", "other.csv", "--label", "cheats", *plain, "-o", "c.deciban")
    run("fit", "people.csv", "--label", "evade", *plain, *args, "-o", "s.deciban")
    run("fit", "people.csv", "--label", "evade", *calibrated, "-o", "k.deciban")
    run("fit", "people.csv", "--label", "evade", *calibrated, *args, "-o", "ks.deciban")
    learned(rows, kind).save("unnamed.deciban")
    for names, words in (
        (["m", "c"], "c.deciban: its label is 'cheats', that of the first model 'evade'"),
        (["unnamed", "m", "c"], "c.deciban: its label is 'cheats', that of the first model 'evade'"),
        (["m", "s"], f"s.deciban: its {setting} {values}"),
        (["k", "ks"], f"ks.deciban: its {setting} {values}"),
        (["m", "none"], "none.deciban: there is no such file"),
    ):
        done = run("merge", *(f"{name}.deciban" for name in names), "-o", "out.deciban", code=1)
        assert done.stderr.startswith(f"deciban: {words}")
    assert not (office / "out.deciban").exists()
    run("merge", "unnamed.deciban", "m.deciban", "-o", "out.deciban")


@pytest.mark.parametrize(
    "args",
    [
        [*NAIVE_BAYES, "--columns", "age=poisson"],
        [*NAIVE_BAYES, "--families", "auto"],
        [*NAIVE_BAYES, "--calibrate", "isotonic"],
        ["--calibrate", "isotonic"],
        ["--pairs", "2"],
    ],
    ids=" ".join,
)
def test_models_of_the_same_settings_are_merged(args, office):
    for seed, name in enumerate("ab"):
        people(200, seed).drop(columns="id").to_csv(f"{name}.csv", index=False)
        run("fit", f"{name}.csv", "--label", "evade", *args, "-o", f"{name}.deciban")
    assert "400 rows" in run("merge", "a.deciban", "b.deciban", "-o", "out.deciban").stdout


@BOTH
def test_parts_fitted_like_a_model_add_up_without_loss(kind, office):
    later = table("later.csv")
    parts = {"b": later[:60], "c": later[60:]}
    for name, rows in parts.items():
        rows.to_csv(f"{name}.csv", index=False)
        made = run("fit", f"{name}.csv", "--like", "m.deciban", "-o", f"{name}.deciban")
        assert f"{len(rows)} rows" in made.stdout
    merged = run("merge", "m.deciban", "b.deciban", "c.deciban", "-o", "all.deciban")
    assert merged.stderr == ""
    run("fit", "b.csv", "c.csv", "--resume", "m.deciban", "-o", "resumed.deciban")
    found, expected = db.load("all.deciban"), db.load("resumed.deciban")
    np.testing.assert_allclose(found.predict_proba(later[FEATURES]), expected.predict_proba(later[FEATURES]), rtol=1e-9)
    assert found.class_count_.tolist() == expected.class_count_.tolist()


def test_labels_of_a_part_are_read_as_those_of_the_model(office):
    rows = table("people.csv").assign(evade=lambda t: np.where(t.evade == "yes", "1", "x"))
    rows.to_csv("words.csv", index=False)
    run("fit", "words.csv", "--label", "evade", "--trees", "2", "-o", "words.deciban")
    rows[rows.evade == "1"].to_csv("ones.csv", index=False)  # which alone would be numbers
    run("fit", "ones.csv", "--like", "words.deciban", "-o", "ones.deciban")
    assert db.load("ones.deciban").classes_.tolist() == ["1"]
    run("merge", "words.deciban", "ones.deciban", "-o", "all.deciban")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--like", "m.deciban", "--resume", "m.deciban"], "use only one of them"),
        (["--like", "m.deciban", "--trees", "3"], "--like reads columns as a model does: drop --trees"),
        (["--like", "m.deciban", "--label", "age"], "'age' is a feature of the model"),
        (["--like", "logistic.deciban"], "cannot be followed by --like: fit one model, with all files"),
    ],
)
def test_parts_that_cannot_be_like_a_model(args, message, office):
    run("fit", "people.csv", "--label", "evade", "--model", "logistic", "--l2", "1", "-o", "logistic.deciban")
    failed = run("fit", "later.csv", *args, "-o", "part.deciban", code=2 if "use only one" in message else 1)
    assert message in " ".join(failed.stderr.replace("│", " ").split())
    assert not (office / "part.deciban").exists()


def test_updates_say_when_weights_are_out_of_date(office):
    table("people.csv")[:80].to_csv("few.csv", index=False)
    table("people.csv")[80:].to_csv("many.csv", index=False)
    run("fit", "few.csv", "--label", "evade", "--trees", "2", "-o", "few.deciban")
    words = "has learned 400 rows, and its weights were fitted when it had learned 80"
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
    rows[300:].to_csv("leavers.csv", index=False)
    rows[:300].to_csv("stayers.csv", index=False)
    before = (office / "m.deciban").read_bytes()
    run("forget", "m.deciban", "leavers.csv", "-o", "less.deciban")
    assert (office / "m.deciban").read_bytes() == before
    run("fit", "stayers.csv", "--label", "evade", *NAIVE_BAYES, "-o", "stayed.deciban")
    shown = [json.loads(run("show", name, "--json").stdout) for name in ("less.deciban", "stayed.deciban")]
    assert shown[0]["counts"] == shown[1]["counts"] == rows[:300].evade.value_counts().loc[["no", "yes"]].tolist()
    less, stayed = ({table["title"]: table for table in found["summary"]["tables"]} for found in shown)
    assert less.keys() == stayed.keys()
    assert all(less[title] == stayed[title] for title in less if title != "features")  # importances are as they were
    run("forget", "m.deciban", "leavers.csv", "--label", "-1")
    assert (office / "m.deciban").read_bytes() == (office / "less.deciban").read_bytes()


def test_evidence_forgets_what_it_counted_and_keeps_its_weights(office):
    """Every count of a column, a pair, or a leaf is that of the rows that stay; weights are those of all rows."""
    rows = table("people.csv")
    rows[300:].to_csv("leavers.csv", index=False)
    rows[:300].to_csv("stayers.csv", index=False)
    before = (office / "m.deciban").read_bytes()
    run("forget", "m.deciban", "leavers.csv", "-o", "less.deciban")
    assert (office / "m.deciban").read_bytes() == before
    found, model = db.load("less.deciban"), db.load("m.deciban")
    assert found.class_count_.tolist() == rows[:300].evade.value_counts().loc[["no", "yes"]].tolist()
    run("fit", "stayers.csv", "--label", "evade", "-o", "stayed.deciban")
    alone = [block for block in db.load("stayed.deciban").generative_.blocks if not block.plan.family.joint]
    mine = [block for block in found.generative_.blocks if not block.plan.family.joint]
    for a, b in zip(mine, alone, strict=True):
        a, b = flattened(a.statistic), flattened(b.statistic)
        assert all(a[key].tobytes() == b[key].tobytes() for key in b)
    expected = model.empty_copy().partial_fit(rows[FEATURES][:300], rows.evade[:300].to_numpy(dtype=object))
    later = table("later.csv")[FEATURES]
    np.testing.assert_allclose(found.predict_proba(later), expected.predict_proba(later), rtol=1e-9)
    np.testing.assert_array_equal(found.weights_.values, model.weights_.values)
    run("forget", "m.deciban", "leavers.csv", "--label", "-1")
    assert (office / "m.deciban").read_bytes() == (office / "less.deciban").read_bytes()


@BOTH
def test_weighted_rows_are_forgotten_by_their_weights(kind, office):
    rows = table("people.csv").assign(weight=np.arange(400) % 4)
    rows.to_csv("weighted.csv", index=False)
    rows[100:200].to_csv("leavers.csv", index=False)
    run("fit", "weighted.csv", "--label", "evade", "--weight", "weight", *LEARNED[kind][0], "-o", "m.deciban")
    run("forget", "m.deciban", "leavers.csv", "--weight", "weight")
    left = rows.drop(index=range(100, 200))
    expected = [left.weight[left.evade == level].sum() for level in ("no", "yes")]
    assert json.loads(run("show", "m.deciban", "--json").stdout)["counts"] == expected


@BOTH
def test_forgetting_everything_leaves_an_empty_model(kind, office):
    shown = run("forget", "m.deciban", "people.csv").stdout
    assert "0 rows, 0 classes" in shown
    assert "classes none: every row was forgotten" in run("show", "m.deciban").stdout
    assert json.loads(run("show", "m.deciban", "--json").stdout)["classes"] == []
    asked = [["predict"], ["evaluate"], ["explain", "--row", "0"]]
    asked += [["refit-weights"], ["refit-weights", "--held-out"]] if kind == "evidence" else []
    for name, *args in asked:
        done = run(name, "m.deciban", "later.csv", *args, code=1)
        assert done.stderr.startswith("deciban: every row was forgotten: there is nothing to ")
        assert done.stderr.endswith(" until fit --resume\n")
        assert done.stdout == ""
    run("fit", "people.csv", "--resume", "m.deciban")
    later = table("later.csv")[FEATURES]
    expected = learned(table("people.csv"), kind).predict_proba(later)
    np.testing.assert_allclose(db.load("m.deciban").predict_proba(later), expected, rtol=1e-9)


@BOTH
def test_forgetting_what_was_not_learned_changes_nothing(kind, office):
    before = (office / "m.deciban").read_bytes()
    table("later.csv").assign(evade="perhaps").to_csv("strangers.csv", index=False)
    done = run("forget", "m.deciban", "strangers.csv", code=1)
    assert "class 'perhaps' was never learned; the model is unchanged" in done.stderr
    run("fit", "people.csv", "--label", "evade", *NAIVE_BAYES, "--columns", "age=uniform", "-o", "u.deciban")
    run("forget", "u.deciban", "people.csv", code=1)
    assert (office / "m.deciban").read_bytes() == before
    run("fit", "people.csv", "--label", "evade", "--model", "logistic", "-o", "l.deciban")
    done = run("forget", "l.deciban", "people.csv", code=1)
    assert "LogisticRegression cannot forget" in done.stderr


# refit-weights -------------------------------------------------------------------------------------------------------


def weights(path):
    found = db.load(path).weights_
    return np.append(found.values.ravel(), found.bias)


def test_refitting_by_the_rows_of_the_fit_is_the_fit(office):
    before = weights("m.deciban")
    made = run("refit-weights", "m.deciban", "people.csv", "-o", "again.deciban")
    assert made.stdout.startswith("again.deciban: EvidenceClassifier, 400 rows, 2 classes, 4 columns")
    assert made.stderr == ""
    np.testing.assert_allclose(weights("again.deciban"), before, rtol=1e-6, atol=1e-9)


def test_refit_weights_learns_weights_anew_and_nothing_else(office):
    """After more rows were learned: the weights are those of refit_weights in memory, the counts are as they were."""
    rows, later = table("people.csv"), table("later.csv")
    later.drop(columns="id").to_csv("more.csv", index=False)
    run("fit", "more.csv", "--resume", "m.deciban")
    before = (office / "m.deciban").read_bytes()
    run("refit-weights", "m.deciban", "people.csv", "more.csv", "-o", "better.deciban")
    assert (office / "m.deciban").read_bytes() == before
    both = pd.concat([rows, later])
    expected = learned(rows, "evidence").partial_fit(later[FEATURES], later.evade.to_numpy(dtype=object))
    stale = expected.predict_proba(later[FEATURES])
    expected.refit_weights(both[FEATURES], both.evade.to_numpy(dtype=object))
    found = db.load("better.deciban").predict_proba(later[FEATURES])
    np.testing.assert_allclose(found, expected.predict_proba(later[FEATURES]), rtol=1e-6)
    assert np.abs(found - stale).max() > 1e-3
    shown = [json.loads(run("show", name, "--json").stdout) for name in ("m.deciban", "better.deciban")]
    assert shown[0]["counts"] == shown[1]["counts"]
    run("refit-weights", "m.deciban", "people.csv", "more.csv", "--label", "-1")
    assert (office / "m.deciban").read_bytes() == (office / "better.deciban").read_bytes()


def test_refit_weights_by_new_rows(office):
    later = table("later.csv").assign(weight=np.arange(150) % 3)
    later.to_csv("weighted.csv", index=False)
    made = run(
        "refit-weights", "m.deciban", "weighted.csv", "--held-out", "--weight", "weight", "--json", "-o", "new.deciban"
    )
    assert sum(json.loads(made.stdout)["counts"]) == 400
    expected = learned(table("people.csv"), "evidence")
    y = later.evade.to_numpy(dtype=object)
    expected.refit_weights(later[FEATURES], y, later.weight.to_numpy(float), held_out=True)
    found = db.load("new.deciban").predict_proba(later[FEATURES])
    np.testing.assert_allclose(found, expected.predict_proba(later[FEATURES]), rtol=1e-6)


def test_a_merged_model_is_refitted(office):
    """Weights for what is left foretell better than the mean of those that were learned beside what is gone."""
    for i in range(2):
        table("people.csv")[i::2].to_csv(f"{i}.csv", index=False)
        run("fit", f"{i}.csv", "--label", "evade", "-o", f"{i}.deciban")
    run("merge", "0.deciban", "1.deciban", "-o", "both.deciban")
    before = json.loads(run("evaluate", "both.deciban", "later.csv", "--json").stdout)["metrics"]["log_loss"]
    run("refit-weights", "both.deciban", "0.csv", "1.csv")
    after = json.loads(run("evaluate", "both.deciban", "later.csv", "--json").stdout)["metrics"]["log_loss"]
    assert after < before


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["later.csv"], "was never learned: give training rows of the model, or --held-out for others"),
        (["half-dotted.csv"], "so they are not training rows: give training rows of the model, or --held-out"),
        (["dotted.csv"], "too few to fit weights on"),
        (["dotted.csv", "--held-out"], "too few to fit weights on"),
        (["people.csv", "--label", "nobody"], "--label: there is no column 'nobody'"),
        (["unlabelled.csv"], "there is no column 'evade'"),
        (["names.csv"], "names.csv has no rows"),
        (["bad.csv"], "bad.csv, line 2: column 'income'"),
        (["infinite.csv", "--held-out"], "infinite.csv, line 3: column 'income'"),
        (["nothing.csv"], "there is no file 'nothing.csv'"),
        (["people.csv", "-o", "people.csv"], "is one of the input files"),
        (["people.csv", "-o", "-"], "a model cannot be written to standard output"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_cannot_be_refitted_by(args, words, office):
    later, lines = table("later.csv"), (office / "people.csv").read_text().splitlines()
    later.assign(evade=later.evade + ".").to_csv("dotted.csv", index=False)
    later.assign(evade=later.evade.replace("yes", "yes.")).to_csv("half-dotted.csv", index=False)
    later.drop(columns="evade").to_csv("unlabelled.csv", index=False)
    (office / "names.csv").write_text(f"{lines[0]}\n")
    (office / "bad.csv").write_text("\n".join([lines[0], "single,cheap,30,True,no", *lines[1:]]))
    (office / "infinite.csv").write_text("\n".join([*lines[:2], "single,1e999,30,True,no", *lines[2:]]))
    before = {path.name: path.read_bytes() for path in office.iterdir()}
    done = run("refit-weights", "m.deciban", *args, code=1)
    assert words in done.stderr
    assert done.stderr.startswith("deciban: ")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert {path.name: path.read_bytes() for path in office.iterdir()} == before


@pytest.mark.parametrize("args", [NAIVE_BAYES, ["--model", "logistic"], ["--calibrate", "temperature"]], ids=" ".join)
def test_models_without_weights_are_not_refitted(args, office):
    run("fit", "people.csv", "--label", "evade", *args, "-o", "m.deciban")
    before = (office / "m.deciban").read_bytes()
    done = run("refit-weights", "m.deciban", "people.csv", code=1)
    assert (
        "cannot have its weights refitted: only an EvidenceClassifier that is not calibrated has weights" in done.stderr
    )
    assert (office / "m.deciban").read_bytes() == before


# show ----------------------------------------------------------------------------------------------------------------


@BOTH
def test_show_says_what_the_file_holds(kind, office):
    found = json.loads(run("show", "m.deciban", "--json").stdout)
    rows = table("people.csv")
    assert found["kind"] == LEARNED[kind][1].__name__
    assert (found["label"], found["classes"]) == ("evade", ["no", "yes"])
    assert found["counts"] == rows.evade.value_counts().loc[["no", "yes"]].tolist()
    assert found["bytes"] == (office / "m.deciban").stat().st_size
    assert (found["format"], found["version"]) == (2, db.__version__)
    numbers, boolean = {
        "evidence": ("Binned, Gaussian", "Categorical"),
        "naive-bayes": ("Gaussian", "Bernoulli"),
    }[kind]
    assert [(c["name"], c["kind"], c["family"]) for c in found["columns"]] == [
        ("status", "category", "Categorical"),
        ("income", "number", numbers),
        ("age", "number", numbers),
        ("member", "boolean", boolean),
    ]
    if kind == "evidence":
        assert {"family": "Forest", "columns": FEATURES} in found["together"]
        assert {"family": "JointNormals", "columns": FEATURES} in found["together"]
        assert {each["family"] for each in found["together"]} <= {"Forest", "JointNormals", "Pairs"}
        titles = [t["title"] for t in found["summary"]["tables"]]
        assert titles == ["class prior", "features", "weights"]
        return
    assert found["together"] == []
    (means,) = [t for t in found["summary"]["tables"] if t["title"].startswith("income")]
    mean = dict(zip(means["header"], means["rows"][0], strict=True))["mean"]
    assert mean == pytest.approx(rows.income[rows.evade == "no"].mean())


def test_pairs_are_shown_one_by_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    odd(600).to_csv("a.csv", index=False)
    run("fit", "a.csv", "--label", "odd", "--pairs", "2", "-o", "m.deciban")
    found = json.loads(run("show", "m.deciban", "--json").stdout)["together"]
    pairs = [each["columns"] for each in found if each["family"] == "Pairs"]
    assert ["a", "b"] in pairs
    assert all(len(pair) == 2 for pair in pairs)
    text = run("show", "m.deciban").stdout
    for each in found:
        assert re.search(rf"^  {re.escape(' + '.join(each['columns']))} +{each['family']}$", text, re.MULTILINE)


def test_columns_of_one_density_are_shown_together(office):
    run("fit", "people.csv", "--label", "evade", "--model", "lda", "--drop", "status,member", "-o", "m.deciban")
    found = json.loads(run("show", "m.deciban", "--json").stdout)
    assert [column["family"] for column in found["columns"]] == ["MultivariateGaussian"] * 2
    assert found["together"] == [{"family": "MultivariateGaussian", "columns": ["income", "age"]}]


def test_show_knows_models_of_arrays(office):
    rows = np.random.default_rng(0).normal(size=(60, 7))
    for model in (db.EvidenceClassifier(), db.NaiveBayes(), db.GaussianDiscriminant()):
        model.fit(rows, (rows[:, 0] > 0).astype(int)).save("m.deciban")
        found = json.loads(run("show", "m.deciban", "--json").stdout)
        assert [column["name"] for column in found["columns"]] == [*range(7)]
        assert ("0 + 1 + 2 + 3 + 3 others" in run("show", "m.deciban").stdout) == bool(found["together"])


@BOTH
def test_the_text_of_show_holds_the_same(kind, office):
    text = run("show", "m.deciban").stdout
    found = json.loads(run("show", "m.deciban", "--json").stdout)
    no, yes = found["counts"]
    for words in (
        f"m.deciban: {LEARNED[kind][1].__name__}",
        f"{found['bytes']:,} bytes",
        f"classes no ({no:g}), yes ({yes:g})",
    ):
        assert words in text
    for t in found["summary"]["tables"]:
        assert t["title"] in text
    assert all(column["name"] in text and column["family"] in text for column in found["columns"])


@pytest.mark.parametrize(
    ("model", "called"),
    [
        (db.Halfspace(), "Halfspace"),
        (db.CalibratedClassifier(db.NaiveBayes()), "NaiveBayes, calibrated (temperature)"),
        (db.CalibratedClassifier(db.EvidenceClassifier()), "EvidenceClassifier, calibrated (temperature)"),
        (db.LogisticRegression(l2=1.0), "LogisticRegression"),
        (db.GeneralizedLinearModel("bernoulli"), "GeneralizedLinearModel"),
        (db.GaussianDiscriminant(), "GaussianDiscriminant"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_show_knows_every_kind(model, called, office):
    rows = table("people.csv").dropna()
    names = ["income", "age"] if isinstance(model, db.GaussianDiscriminant) else FEATURES
    model.fit(rows[names], rows.evade.to_numpy(dtype=object)).save("m.deciban")
    found = json.loads(run("show", "m.deciban", "--json").stdout)
    assert found["kind"] == called
    assert found["classes"] == ["no", "yes"]
    assert [c["name"] for c in found["columns"]] == names
    assert f"m.deciban: {called}, " in run("show", "m.deciban").stdout


def test_show_knows_a_response_of_numbers(office):
    rows = table("people.csv").dropna()
    db.GeneralizedLinearModel().fit(rows[["age"]], rows.income).save("m.deciban")
    assert json.loads(run("show", "m.deciban", "--json").stdout)["classes"] is None
    assert "coefficients" in run("show", "m.deciban").stdout
