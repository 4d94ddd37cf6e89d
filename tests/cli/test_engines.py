"""`deciban fit --engine`: the model of the same files without an engine; what cannot be read is one line."""

import importlib
import json
import os
import shutil
import sys
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec

import dask
import numpy as np
import pandas as pd
import pytest

import deciban as db
from deciban.data.files.dialect import CsvOptions
from deciban.engines import dask_cluster as by_dask
from deciban.engines.engine_files import format_of
from deciban.errors import DecibanError
from tests.cli.runs import FEATURES, NAIVE_BAYES, command, people, run
from tests.cli.runs import refused as refused_line

spark = [
    pytest.mark.spark,
    pytest.mark.skipif(find_spec("pyspark") is None, reason="PySpark is not installed"),
    pytest.mark.skipif(not (os.environ.get("JAVA_HOME") or shutil.which("java")), reason="there is no Java"),
]
N = 200
ENGINES = ["dask", pytest.param("spark", marks=spark)]


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A table with missing values in every column except the label, in all formats."""
    monkeypatch.chdir(tmp_path)
    table = people(N).drop(columns="id")
    table["member"] = table.member.astype(object).where(np.arange(N) % 7 > 0, None)
    table.to_csv("people.csv", index=False)
    table.to_parquet("people.parquet")
    table.to_json("people.jsonl", orient="records", lines=True)
    return tmp_path


@pytest.fixture
def here(monkeypatch):
    """Dask in threads of this process: a cluster takes seconds, and its errors are those of the reading."""

    @contextmanager
    def session(*, dashboard=False):
        yield by_dask.ClusterSession(None, lambda: None)

    monkeypatch.setattr(by_dask, "session", session)
    with dask.config.set(scheduler="threads"):  # also if a client is left of other tests
        yield


def fit(*args):
    return run("fit", *args, "-o", "m.deciban")


def refused(*args):
    """The one line of an error; no model is written."""
    line = refused_line("fit", *args, "--engine", "dask", "-o", "m.deciban")
    assert not os.path.exists("m.deciban")
    return line


def assert_same_predictions(rtol=0.0, fitted="m.deciban"):
    rows = people(80, 1)[FEATURES]
    predicted, expected = (db.load(path).predict_proba(rows) for path in (fitted, "alone.deciban"))
    np.testing.assert_allclose(predicted, expected, rtol=rtol, atol=1e-12 if rtol else 0)


def same_model(*args, rtol=1e-9):
    fit(*args, "--engine", "dask")
    run("fit", *args, "-o", "alone.deciban")
    assert_same_predictions(rtol)


EVIDENCE = ["--trees", "2", "--pairs", "2"]


# Clusters ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_a_cluster_learns_what_one_process_does(engine, files):
    args = ["people.csv", "--label", "evade", *NAIVE_BAYES]
    done = command("fit", *args, "--engine", engine, "-o", "m.deciban", cwd=files)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"m.deciban: NaiveBayes, {N} rows, 2 classes, 4 columns, ")
    run("fit", *args, "-o", "alone.deciban")
    assert (files / "m.deciban").read_bytes() == (files / "alone.deciban").read_bytes()


@pytest.fixture
def cluster(request, monkeypatch):
    """The name of an engine, with a cluster that stays open between commands: starting it takes longer than they do."""
    if request.param == "spark":
        request.getfixturevalue("spark")  # the command uses a session that is active
        yield request.param
        return
    with by_dask.session() as session:
        monkeypatch.setattr(by_dask, "session", lambda **_: nullcontext(session))
        yield request.param


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ENGINES, indirect=True)
def test_a_cluster_reads_other_formats_and_names_bad_cells(cluster, files):
    for name in ("people.jsonl", "people.parquet"):
        args = [files / name, "--label", "evade", *NAIVE_BAYES]
        fit(*args, "--engine", cluster)
        run("fit", *args, "-o", "alone.deciban")
        assert_same_predictions()
    (files / "bad.csv").write_text("a,y\n" + "1,no\n2,yes\n" * 40_000 + "much,no\n")  # beyond what is looked at first
    line = refused_line("fit", files / "bad.csv", "--label", "y", "--engine", cluster, "-o", "bad.deciban")
    assert "line 80002: column 'a' is read as numbers, and 'much' is not" in line
    assert "--category a" in line
    assert not (files / "bad.deciban").exists()


@pytest.mark.skipif(find_spec("pyspark") is None, reason="PySpark is not installed")
def test_without_java_there_is_one_line(files, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(files / "nowhere"))
    line = refused_line("fit", "people.csv", "--label", "evade", "--engine", "spark", "-o", "m.deciban")
    assert line == "deciban: spark needs Java 17 or newer: install it, or set JAVA_HOME\n"


def test_an_interruption_while_a_cluster_closes_leaves_no_model(files, monkeypatch, interrupt):
    @contextmanager
    def session(*, dashboard=False):
        yield by_dask.ClusterSession(None, lambda: None)
        interrupt()

    monkeypatch.setattr(by_dask, "session", session)
    args = ["people.csv", "--label", "evade", *NAIVE_BAYES, "--engine", "dask", "-o", "m.deciban"]
    done = run("fit", *args, code=130)
    assert (done.stdout, done.stderr) == ("", "deciban: interrupted\n")
    assert not (files / "m.deciban").exists()


# The same model ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "args",
    [
        EVIDENCE,
        NAIVE_BAYES,
        ["--model", "logistic"],
        [*NAIVE_BAYES, "--columns", "age=poisson,income=binned"],
        [*NAIVE_BAYES, "--category", "age", "--drop", "income"],
        [*NAIVE_BAYES, "--text", "status"],
        [*NAIVE_BAYES, "--weight", "age"],
    ],
    ids=" ".join,
)
def test_csv(args, files, here):
    if "--drop" in args or "--weight" in args:
        fit("people.csv", "--label", "evade", "--engine", "dask", *args)
        run("fit", "people.csv", "--label", "evade", *args, "-o", "alone.deciban")
        assert (files / "m.deciban").read_bytes() == (files / "alone.deciban").read_bytes()
    else:
        same_model("people.csv", "--label", "evade", *args)


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # which Dask uses, and pandas 3.1 would rather not have
@pytest.mark.parametrize("name", ["people.parquet", "people.jsonl"])
def test_other_formats(name, files, here):
    same_model(name, "--label", "-1", *NAIVE_BAYES, rtol=0.0)


def test_dialects(files, here):
    table = pd.read_csv("people.csv")
    table.assign(evade=table.evade + ".").to_csv("odd.csv", sep=";", decimal=",", na_rep="none", index=False)
    text = (files / "odd.csv").read_text().partition("\n")[2]
    (files / "odd.csv").write_bytes(text.replace("single", "ledig ä").encode("latin-1"))
    dialect = ["--delimiter", ";", "--decimal", ",", "--na-values", "none", "--no-header", "--encoding", "latin-1"]
    dialect += ["--names", ",".join(table.columns), "--trim-label", "."]
    same_model("odd.csv", "--label", "evade", *NAIVE_BAYES, *dialect, rtol=0.0)
    assert db.load("m.deciban").classes_.tolist() == ["no", "yes"]


def test_patterns_urls_folders_and_packed_files(files, here):
    (files / "parts").mkdir()
    table = pd.read_csv("people.csv")
    table[:80].to_csv("parts/a.csv", index=False)
    table[80:].to_csv("parts/b.csv", index=False)
    (files / "parts" / "c.csv").touch()  # clusters write empty files
    same_model("parts/[ab].csv", "--label", "evade", *EVIDENCE)
    for given in ([f"file://{files}/parts/*.csv"], ["parts/a.csv", "parts/b.csv"], ["parts", "--input-format", "csv"]):
        fit(*given, "--label", "evade", "--engine", "dask", *NAIVE_BAYES)
        assert db.load("m.deciban").class_count_.sum() == N
    table.to_csv("people.csv.gz", index=False)
    same_model("people.csv.gz", "--label", "evade", *NAIVE_BAYES)
    assert db.load("m.deciban").class_count_.sum() == N


def test_other_file_systems_and_blocks(files, here):
    """memory:// stands for s3://: every read goes through fsspec."""
    fsspec = importlib.import_module("fsspec")
    data = (files / "people.csv").read_bytes()
    with fsspec.open("memory://bucket/people.csv", "wb") as file:
        file.write(data)
    rows = by_dask.read_files(["memory://bucket/*.csv"], "csv", CsvOptions(), block_size=400).rows("evade")
    assert len(rows.partitions) > 10
    model, alone = db.NaiveBayes().fit(rows), db.NaiveBayes().fit(db.scan("people.csv"), "evade")
    rows = people(80, 1)[FEATURES]
    np.testing.assert_array_equal(model.predict_proba(rows), alone.predict_proba(rows))


def test_keys_of_json_may_come_late(files, here):
    with open("late.jsonl", "w") as file:
        file.writelines(f'{{"a": {i % 5}, "y": "{"no" if i % 3 else "yes"}"}}\n' for i in range(20_000))
        file.write('{"a": 1, "b": 2.5, "y": "no"}\n')
    fit("late.jsonl", "--label", "y", "--engine", "dask", *NAIVE_BAYES)
    assert db.load("m.deciban").feature_names_in_.tolist() == ["a", "b"]


def test_folds_evaluate_every_row(files, here):
    made = fit("people.csv", "--label", "evade", "--engine", "dask", "--folds", "3", "--json", *NAIVE_BAYES)
    assert json.loads(made.stdout)["folds"]["metrics"]["rows"] == N


def test_a_model_resumes(files, here):
    table = pd.read_csv("people.csv")
    table[:80].to_csv("a.csv", index=False)
    table[80:].to_csv("b.csv", index=False)
    fit("a.csv", "--label", "evade", "--engine", "dask", *NAIVE_BAYES)
    run("fit", "b.csv", "--resume", "m.deciban", "--engine", "dask")
    run("fit", "people.csv", "--label", "evade", *NAIVE_BAYES, "-o", "alone.deciban")
    assert_same_predictions()


# What is refused -----------------------------------------------------------------------------------------------------


def test_what_an_engine_does_not_do(files, here):
    for line, words in (
        ("nothere.csv", "there is no file 'nothere.csv'"),
        ("no*.parquet", "no file matches 'no*.parquet'"),
        ("people.csv people.csv", "given twice"),
        ("people.csv people.parquet", "all files must have the same format"),
        ("people", "--input-format"),
        ("-", "standard input"),
        ("people.csv --skip 1", "--skip: drop --engine"),
        ("people.csv --loo", "--loo: drop --engine"),
        ("people.csv --calibrate isotonic", "--calibrate: drop --engine"),
        ("people.csv --input-format mail", "--input-format mail: drop --engine"),
        ("people.csv --encoding utf-16", "convert it to utf-8"),
        ("people.csv --drop nope", "--drop: there is no column 'nope'"),
        ("people.parquet --category age", "column 'age' holds whole numbers, not text"),
        ("people.parquet --trim-label .", "only csv can be trimmed"),
    ):
        assert words in refused(*line.split(), "--label", "evade"), line
    assert "--label: there is no column 'nope'" in refused("people.csv", "--label", "nope")


@pytest.mark.parametrize(
    ("first", "later", "words"),
    [
        ("1", "much", "column 'a' is read as numbers, and 'much' is not, unlike its first rows: use --category a"),
        ("", "5", "use --category a or --columns a=number"),
        ("true", "1", "column 'a' is true or false in its first rows, but not here: use --category a"),
    ],
)
def test_a_later_cell_that_does_not_fit(first, later, words, files, here, monkeypatch):
    monkeypatch.setattr(by_dask, "SAMPLE", 4096)
    (files / "bad.csv").write_text("a,b,y\n" + f"{first},1,no\n{first},2,yes\n" * 1000 + f"{later},3,no\n")
    assert words in refused("bad.csv", "--label", "y")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,y\n1,no\ninf,yes\n2,no\n", "inf is infinite"),
        ("a,y\n1,no\n2,yes\n3\n", "1 cells, where there are 2 columns"),
        ('a,y\n1,no\n2,yes\n3,"no\n', "an engine splits files at line breaks"),
        ("", "is empty"),
    ],
)
def test_files_that_cannot_be_learned(text, words, files, here):
    (files / "bad.csv").write_text(text)
    assert words in refused("bad.csv", "--label", "y", *NAIVE_BAYES)


def test_files_with_other_columns(files, here):
    (files / "a.csv").write_text("a,b,y\n1,2,no\n3,4,yes\n")
    (files / "b.csv").write_text("b,a,y\n1,2,no\n")
    line = refused("a.csv", "b.csv", "--label", "y")
    assert "b.csv has the columns b, a, y, but another file has a, b, y" in line


def test_an_engine_that_is_not_there(files, monkeypatch):
    args = ["fit", "people.csv", "--label", "evade", "-o", "m.deciban"]
    assert "none of dask, spark" in run(*args, "--engine", "dusk", code=2).stderr
    monkeypatch.setitem(sys.modules, "dask", None)
    monkeypatch.delitem(sys.modules, "deciban.engines.dask_cluster")
    assert "pip install deciban[dask]" in refused("people.csv", "--label", "evade")


def test_the_format_is_that_of_the_names():
    assert format_of(["x/*.tsv"]) == "csv"
    assert format_of(["x"], "jsonl") == "jsonl"
    with pytest.raises(DecibanError, match=r"x\.arrow is arrow"):
        format_of(["x.arrow"])
