"""`deciban explain`, `evaluate`, `merge`, `forget` and `show`."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix, log_loss, roc_auc_score

import deciban as db
from tests.cli.runs import FEATURES, people, run


@pytest.fixture
def office(tmp_path, monkeypatch):
    """A model, and rows that it has not learned."""
    monkeypatch.chdir(tmp_path)
    people(400).drop(columns="id").to_csv("people.csv", index=False)
    people(150, seed=3).to_csv("later.csv", index=False)
    run("fit", "people.csv", "--label", "evade", "-o", "m.deciban")
    return tmp_path


def table(name):
    return pd.read_csv(name)


def in_memory(rows, model=None):
    return (model or db.NaiveBayes()).fit(rows[FEATURES], rows.evade.to_numpy(dtype=object))


# explain -------------------------------------------------------------------------------------------------------------


def test_explain_prints_the_rows_asked_for(office):
    shown = run("explain", "m.deciban", "later.csv", "--row", "7", "--row", "2").stdout
    explanation = in_memory(table("people.csv")).explain(table("later.csv")[FEATURES])
    assert shown == f"{explanation.text(7)}\n\n{explanation.text(2)}\n"


def test_explain_as_an_object_sums_to_the_log_odds(office):
    args = ["explain", "m.deciban", "later.csv", "--row", "7", "--class", "yes", "--against", "no", "--json"]
    (found,) = json.loads(run(*args).stdout)
    row = table("later.csv").loc[[7]]
    p = in_memory(table("people.csv")).predict_proba(row[FEATURES])[0]
    assert found["log_odds"] == pytest.approx(10 * np.log10(p[1] / p[0]))
    assert sum(part["decibans"] for part in found["parts"]) == pytest.approx(found["log_odds"])
    assert (found["row"], found["class"], found["against"]) == (7, "yes", "no")
    values = {part["name"]: part["value"] for part in found["parts"]}
    assert values == {"prior": None, **{name: row[name].item() for name in FEATURES}}


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--row", "150"], "--row 150: there are 150 rows, counted from 0"),
        (["--row", "0", "--class", "maybe"], "--class: there is no class 'maybe'; there are no, yes"),
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


@pytest.mark.parametrize("args", [[], ["--calibrate", "temperature"], ["--model", "logistic"]], ids=str)
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
    assert "only the cells of csv can be trimmed, and later.parquet is none" in done.stderr


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
    in_memory(table("people.csv")).save("m.deciban")
    done = run("evaluate", "m.deciban", "later.csv", code=1)
    assert "give --label" in done.stderr
    run("fit", "people.csv", "--label", "evade", "-o", "m.deciban")
    table("later.csv").drop(columns="evade").to_csv("unlabelled.csv", index=False)
    done = run("evaluate", "m.deciban", "unlabelled.csv", code=1)
    assert "there is no column 'evade'" in done.stderr


# merge and forget ----------------------------------------------------------------------------------------------------


def test_merging_eight_is_one_fit(office):
    rows = table("people.csv")
    names = []
    for i in range(8):
        rows[i::8].to_csv(f"{i}.csv", index=False)
        run("fit", f"{i}.csv", "--label", "evade", "-o", f"{i}.deciban")
        names.append(f"{i}.deciban")
    made = run("merge", *names, "-o", "all.deciban").stdout
    assert "400 rows, 2 classes, 4 columns" in made
    later = table("later.csv")[FEATURES]
    np.testing.assert_array_equal(
        db.load("all.deciban").predict_proba(later), db.load("m.deciban").predict_proba(later)
    )
    np.testing.assert_array_equal(db.load("m.deciban").predict_proba(later), in_memory(rows).predict_proba(later))


def test_models_that_do_not_fit_together(office):
    run("fit", "people.csv", "--label", "evade", "--model", "logistic", "-o", "l.deciban")
    run("fit", "people.csv", "--label", "evade", "--drop", "age", "-o", "d.deciban")
    done = run("merge", "m.deciban", "d.deciban", "-o", "out.deciban", code=1)
    assert done.stderr.startswith("deciban: d.deciban: the columns differ")
    done = run("merge", "l.deciban", "m.deciban", "-o", "out.deciban", code=1)
    assert "LogisticRegression cannot be merged" in done.stderr
    done = run("merge", "m.deciban", "l.deciban", "-o", "out.deciban", code=1)
    assert "cannot be merged" in done.stderr
    assert not (office / "out.deciban").exists()


def test_models_of_other_labels_or_settings_are_not_merged(office):
    rows = table("people.csv")
    rows.rename(columns={"evade": "cheats"}).to_csv("other.csv", index=False)
    run("fit", "other.csv", "--label", "cheats", "-o", "c.deciban")
    run("fit", "people.csv", "--label", "evade", "--smoothing", "5", "-o", "s.deciban")
    run("fit", "people.csv", "--label", "evade", "--calibrate", "temperature", "-o", "k.deciban")
    run("fit", "people.csv", "--label", "evade", "--calibrate", "temperature", "--smoothing", "5", "-o", "ks.deciban")
    in_memory(rows).save("unnamed.deciban")
    for names, words in (
        (["m", "c"], "c.deciban: its label is 'cheats', and before it was 'evade'"),
        (["unnamed", "m", "c"], "c.deciban: its label is 'cheats', and before it was 'evade'"),
        (["m", "s"], "s.deciban: its smoothing is 5.0, and before it was 1.0"),
        (["k", "ks"], "ks.deciban: its smoothing is 5.0, and before it was 1.0"),
        (["m", "none"], "none.deciban: there is no such file"),
    ):
        done = run("merge", *(f"{name}.deciban" for name in names), "-o", "out.deciban", code=1)
        assert done.stderr.startswith(f"deciban: {words}")
    assert not (office / "out.deciban").exists()
    run("merge", "unnamed.deciban", "m.deciban", "-o", "out.deciban")


@pytest.mark.parametrize(
    "args", [["--columns", "age=poisson"], ["--families", "auto"], ["--calibrate", "isotonic"]], ids=" ".join
)
def test_models_of_the_same_settings_are_merged(args, office):
    for seed, name in enumerate("ab"):
        people(200, seed).drop(columns="id").to_csv(f"{name}.csv", index=False)
        run("fit", f"{name}.csv", "--label", "evade", *args, "-o", f"{name}.deciban")
    assert "400 rows" in run("merge", "a.deciban", "b.deciban", "-o", "out.deciban").stdout


def test_what_is_forgotten_was_never_there(office):
    rows = table("people.csv")
    rows[300:].to_csv("leavers.csv", index=False)
    rows[:300].to_csv("stayers.csv", index=False)
    before = (office / "m.deciban").read_bytes()
    run("forget", "m.deciban", "leavers.csv", "-o", "less.deciban")
    assert (office / "m.deciban").read_bytes() == before
    run("fit", "stayers.csv", "--label", "evade", "-o", "stayed.deciban")
    shown = [json.loads(run("show", name, "--json").stdout) for name in ("less.deciban", "stayed.deciban")]
    assert shown[0]["counts"] == shown[1]["counts"] == rows[:300].evade.value_counts().loc[["no", "yes"]].tolist()
    assert shown[0]["summary"] == shown[1]["summary"]
    run("forget", "m.deciban", "leavers.csv", "--label", "-1")
    assert (office / "m.deciban").read_bytes() == (office / "less.deciban").read_bytes()


def test_weighted_rows_are_forgotten_by_their_weights(office):
    rows = table("people.csv").assign(weight=np.arange(400) % 4)
    rows.to_csv("weighted.csv", index=False)
    rows[100:200].to_csv("leavers.csv", index=False)
    run("fit", "weighted.csv", "--label", "evade", "--weight", "weight", "-o", "m.deciban")
    run("forget", "m.deciban", "leavers.csv", "--weight", "weight")
    left = rows.drop(index=range(100, 200))
    expected = [left.weight[left.evade == level].sum() for level in ("no", "yes")]
    assert json.loads(run("show", "m.deciban", "--json").stdout)["counts"] == expected


def test_forgetting_everything_leaves_an_empty_model(office):
    shown = run("forget", "m.deciban", "people.csv").stdout
    assert "0 rows, 0 classes" in shown
    assert "classes none: every row was forgotten" in run("show", "m.deciban").stdout
    done = run("predict", "m.deciban", "later.csv", code=1)
    assert "every row was forgotten" in done.stderr
    assert done.stdout == ""


def test_forgetting_what_was_not_learned_changes_nothing(office):
    before = (office / "m.deciban").read_bytes()
    table("later.csv").assign(evade="perhaps").to_csv("strangers.csv", index=False)
    done = run("forget", "m.deciban", "strangers.csv", code=1)
    assert "class 'perhaps' was never learned; the model is unchanged" in done.stderr
    run("fit", "people.csv", "--label", "evade", "--columns", "age=uniform", "-o", "u.deciban")
    run("forget", "u.deciban", "people.csv", code=1)
    assert (office / "m.deciban").read_bytes() == before
    run("fit", "people.csv", "--label", "evade", "--model", "logistic", "-o", "l.deciban")
    done = run("forget", "l.deciban", "people.csv", code=1)
    assert "LogisticRegression cannot forget" in done.stderr


# show ----------------------------------------------------------------------------------------------------------------


def test_show_says_what_the_file_holds(office):
    found = json.loads(run("show", "m.deciban", "--json").stdout)
    rows = table("people.csv")
    assert found["kind"] == "NaiveBayes"
    assert (found["label"], found["classes"]) == ("evade", ["no", "yes"])
    assert found["counts"] == rows.evade.value_counts().loc[["no", "yes"]].tolist()
    assert found["bytes"] == (office / "m.deciban").stat().st_size
    assert (found["format"], found["version"]) == (1, db.__version__)
    assert [(c["name"], c["kind"], c["family"]) for c in found["columns"]] == [
        ("status", "category", "Categorical"),
        ("income", "number", "Gaussian"),
        ("age", "number", "Gaussian"),
        ("member", "boolean", "Bernoulli"),
    ]
    (means,) = [t for t in found["summary"]["tables"] if t["title"].startswith("income")]
    mean = dict(zip(means["header"], means["rows"][0], strict=True))["mean"]
    assert mean == pytest.approx(rows.income[rows.evade == "no"].mean())


def test_the_text_of_show_holds_the_same(office):
    text = run("show", "m.deciban").stdout
    found = json.loads(run("show", "m.deciban", "--json").stdout)
    no, yes = found["counts"]
    for words in ("m.deciban: NaiveBayes", f"{found['bytes']:,} bytes", f"classes no ({no:g}), yes ({yes:g})"):
        assert words in text
    for t in found["summary"]["tables"]:
        assert t["title"] in text
    assert all(column["name"] in text and column["family"] in text for column in found["columns"])


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        (db.Halfspace(), "Halfspace"),
        (db.Calibrated(db.NaiveBayes()), "NaiveBayes, calibrated (temperature)"),
        (db.LogisticRegression(l2=1.0), "LogisticRegression"),
        (db.GeneralizedLinearModel("bernoulli"), "GeneralizedLinearModel"),
        (db.GaussianDiscriminant(), "GaussianDiscriminant"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_show_knows_every_kind(model, kind, office):
    rows = table("people.csv").dropna()
    names = ["income", "age"] if isinstance(model, db.GaussianDiscriminant) else FEATURES
    model.fit(rows[names], rows.evade.to_numpy(dtype=object)).save("m.deciban")
    found = json.loads(run("show", "m.deciban", "--json").stdout)
    assert found["kind"] == kind
    assert found["classes"] == ["no", "yes"]
    assert [c["name"] for c in found["columns"]] == names
    assert f"m.deciban: {kind}, " in run("show", "m.deciban").stdout


def test_show_knows_a_response_of_numbers(office):
    rows = table("people.csv").dropna()
    db.GeneralizedLinearModel().fit(rows[["age"]], rows.income).save("m.deciban")
    assert json.loads(run("show", "m.deciban", "--json").stdout)["classes"] is None
    assert "coefficients" in run("show", "m.deciban").stdout
