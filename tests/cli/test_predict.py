"""`deciban predict`: csv, jsonl and parquet hold what predict_proba of the table gives."""

import datetime as dt
import io
import json
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import deciban as db
from deciban.cli import prediction_tables as predicting
from deciban.data.files import column_inference
from tests.cli.runs import FEATURES, KINDS, MAIN, NAIVE_BAYES, files_in, fitted, in_memory, people, refused, run

READ = {
    "csv": lambda path: pd.read_csv(path, dtype={"id": str}),
    "jsonl": lambda path: pd.DataFrame([json.loads(line) for line in path.read_text().splitlines()]),
    "parquet": pd.read_parquet,
}


BOTH = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def kind():
    return "evidence"


NEW = people(40, seed=3)


@pytest.fixture
def office(kind, tmp_path, monkeypatch):
    """A model (m.deciban) and rows to predict (new.csv), in the working directory."""
    monkeypatch.chdir(tmp_path)
    NEW.to_csv("new.csv", index=False)
    (tmp_path / "m.deciban").write_bytes(fitted(*KINDS[kind][0]))
    return tmp_path


def predict(*args):
    return run("predict", "m.deciban", *args)


@BOTH
def test_every_format_holds_the_predictions_of_the_table(kind, office):
    model = in_memory(kind)
    for ending, read in READ.items():
        predict("new.csv", "--keep", "id,status", "-o", f"out.{ending}")
        table = read(Path(f"out.{ending}"))
        assert list(table) == ["id", "status", "prediction", "proba_no", "proba_yes"]
        assert table.id.tolist() == NEW.id.tolist()  # with its zeros
        assert table.status.isna().tolist() == NEW.status.isna().tolist()
        assert table.status.dropna().tolist() == NEW.status.dropna().tolist()
        assert table.prediction.tolist() == model.predict(NEW[FEATURES]).tolist()
        np.testing.assert_allclose(table[["proba_no", "proba_yes"]], model.predict_proba(NEW[FEATURES]), rtol=1e-14)


def test_all_formats_hold_the_same_digits(office):
    for ending in READ:
        predict("new.csv", "-o", f"out.{ending}")
    lines = [json.loads(line) for line in (office / "out.jsonl").read_text().splitlines()]
    table = pq.read_table("out.parquet")
    assert table.to_pylist() == lines
    text = [line.split(",")[2] for line in (office / "out.csv").read_text().splitlines()[1:]]
    assert [float(number) for number in text] == table["proba_yes"].to_pylist()


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_kept_columns_of_other_formats_keep_their_types(ending, office):
    new = NEW.assign(number=np.arange(len(NEW)) * 10**12, share=np.arange(len(NEW)) / 8, nothing=None)
    if ending == "jsonl":
        new.to_json("new.jsonl", orient="records", lines=True)
        with open("new.jsonl", "a") as file:  # a type and a key that the first rows do not show
            file.write('{"status": "single", "income": 1, "age": 2, "member": true, "number": 0.5, "late": "x"}\n')
    else:
        new.to_parquet("new.parquet")
    kept = ["id", "number", "share", "nothing", "age"]
    predict(f"new.{ending}", "--keep", ",".join(kept), "-o", "out.parquet")
    table = pq.read_table("out.parquet").slice(0, len(new))
    for name in ("id", "number", "share", "age"):
        assert table[name].to_pylist() == new[name].tolist()
    assert table["nothing"].null_count == len(new)


def ledger(n):
    """Columns that doubles and text cannot hold; `age` is one that the model reads."""
    return pa.table(
        {
            "age": pa.array([2**60 + 1 + i for i in range(n)]),
            "number": pa.array([2**64 - 1 - i for i in range(n)], pa.uint64()),
            "small": pa.array([i / 4 for i in range(n)], pa.float32()),
            "day": pa.array([dt.date(2024, 2, 29)] * n),
            "at": pa.array([1_709_164_800_000_000_001] * n, pa.timestamp("ns")),
            "price": pa.array([Decimal("12345678901234567.89")] * n),
            "units": pa.array([Decimal(3)] * n, pa.decimal128(10, 0)),
        }
    )


@pytest.fixture
def shop(office):
    """The ledger, in both formats that hold a schema."""
    table = pa.Table.from_pandas(NEW[["status", "income", "member"]], preserve_index=False)
    for name, column in zip(ledger(len(NEW)).column_names, ledger(len(NEW)).columns, strict=True):
        table = table.append_column(name, column)
    pq.write_table(table, "new.parquet")
    feather.write_feather(table, "new.arrow")


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_columns_are_kept_as_the_file_has_them(ending, shop):
    for args in (["--keep", ",".join(ledger(1).column_names)], ["--keep-all"]):
        predict(f"new.{ending}", *args, "-o", "out.parquet")
        assert pq.read_table("out.parquet").select(ledger(1).column_names).equals(ledger(len(NEW)))


def test_dates_and_whole_numbers_as_json(shop):
    args = ["--keep", ",".join(ledger(1).column_names), "--no-probabilities", "--format", "jsonl"]
    assert predict("new.parquet", *args).stdout.startswith(
        '{"age": 1152921504606846977, "number": 18446744073709551615, "small": 0.0, "day": "2024-02-29", '
        '"at": "2024-02-29T00:00:00.000000001", "price": 1.2345678901234568e+16, "units": 3, "prediction": '
    )


def test_whole_numbers_of_json_lines_stay_so(office):
    row = {"status": "single", "income": 1.5, "age": 2**60 + 1, "member": True}
    (office / "new.jsonl").write_text(f"{json.dumps(row)}\n{json.dumps(row | {'age': 3})}\n")
    args = ["--keep", "income,age", "--no-probabilities", "--format", "jsonl"]
    lines = predict("new.jsonl", *args).stdout.splitlines()
    assert lines[0].startswith('{"income": 1.5, "age": 1152921504606846977, ')
    assert lines[1].startswith('{"income": 1.5, "age": 3, ')


def test_lists_of_json_lines_are_kept_as_text(office):
    row = {"status": "single", "income": 1.5, "age": 3, "member": True, "tags": [1, "a"]}
    (office / "new.jsonl").write_text(f"{json.dumps(row)}\n")
    (line,) = predict("new.jsonl", "--keep", "tags", "--format", "jsonl").stdout.splitlines()
    assert json.loads(json.loads(line)["tags"]) == [1, "a"]


def test_a_kept_column_has_one_type_for_all_files(office, monkeypatch):
    monkeypatch.setattr(column_inference, "SAMPLED_FILES", 1)
    for name, value in (("a", 3), ("b", 0.5)):
        NEW.assign(number=value).to_parquet(f"{name}.parquet")
    predict("a.parquet", "b.parquet", "--keep", "number", "-o", "out.parquet")
    assert pd.read_parquet("out.parquet").number.tolist() == [3] * len(NEW) + [0.5] * len(NEW)


def test_a_column_that_cannot_be_kept_says_so(office):
    table = pa.Table.from_pandas(NEW[FEATURES], preserve_index=False)
    for name, cell in (("a", [dt.date(2024, 2, 29)]), ("b", b"x")):
        lists, raw = pa.array([[1]] * len(NEW)), pa.array([b"x"] * len(NEW))
        more = table.append_column("when", pa.array([cell] * len(NEW))).append_column("list", lists)
        pq.write_table(more.append_column("raw", raw), f"{name}.parquet")
    row = {"status": "x", "income": 1.5, "age": 2, "member": True, "when": "now", "list": [1], "raw": "x"}
    (office / "new.jsonl").write_text(f"{json.dumps(row)}\n")
    for line, words in (
        ("a.parquet b.parquet --keep when", "column 'when' has several types"),
        ("a.parquet new.jsonl --keep list", "column 'list' has several types"),
        ("a.parquet --keep list", "column 'list' is of type list<"),
        ("a.parquet --keep raw --format jsonl", "column 'raw' is of type binary, which jsonl cannot"),
    ):
        assert refused("predict", "m.deciban", *line.split()).startswith(f"deciban: {words}")
    predict("a.parquet", "b.parquet")  # other columns do not matter


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_pipes_and_devices_are_written_to_and_stay(ending, office):
    args = ["new.csv", "--format", ending, "-o"]
    predict(*args, f"out.{ending}")
    predict(*args, "/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    os.mkfifo("pipe")
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit((office / "pipe").read_bytes)
        predict(*args, "pipe")
        assert read.result() == (office / f"out.{ending}").read_bytes()
    assert stat.S_ISFIFO((office / "pipe").stat().st_mode)


def test_standard_output_by_its_other_name(office):
    with (office / "log.txt").open("w") as file:
        file.write("before\n")
        file.flush()
        line = [sys.executable, "-c", MAIN, "predict", "m.deciban", "new.csv", "-o", "/dev/stdout"]
        subprocess.run(line, stdout=file, check=True)
    assert (office / "log.txt").read_text() == "before\n" + predict("new.csv").stdout


def test_standard_input_and_output(office):
    predict("new.csv", "-o", "out.csv")
    text = (office / "new.csv").read_text()
    for args in ([], ["-o", "-"], ["-o", "-", "--format", "csv"]):
        assert run("predict", "m.deciban", "-", *args, input=text).stdout == (office / "out.csv").read_text()
    binary = run("predict", "m.deciban", "-", "--format", "parquet", input=text).stdout_bytes
    assert pq.read_table(io.BytesIO(binary)).num_rows == len(NEW)


@BOTH
def test_all_columns_are_kept_and_no_name_is_used_twice(kind, office):
    NEW.assign(prediction="mine").to_csv("new.csv", index=False)
    predict("new.csv", "--keep-all", "--no-probabilities", "-o", "o.csv")
    table = pd.read_csv("o.csv")
    assert list(table) == ["id", "status", "income", "age", "member", "evade", "prediction", "prediction 2"]
    assert set(table.prediction) == {"mine"}
    assert table.income.tolist() == pytest.approx(NEW.income.tolist(), nan_ok=True)
    assert table["prediction 2"].tolist() == in_memory(kind).predict(NEW[FEATURES]).tolist()


def test_no_rows_are_a_header(office):
    (office / "none.csv").write_text("status,income,age,member\n")
    predict("none.csv", "-o", "out.csv")
    assert (office / "out.csv").read_text() == '"prediction","proba_no","proba_yes"\n'


@BOTH
def test_batches_do_not_matter(kind, office, monkeypatch):
    args = ["new.csv", "--explain", "--format", "jsonl"]
    whole = predict(*args).stdout
    monkeypatch.setattr(predicting, "CELLS_PER_BATCH", 70)
    assert predict(*args).stdout == whole


# Reasons -------------------------------------------------------------------------------------------------------------


@BOTH
def test_reasons_are_the_strongest_parts_of_the_explanation(kind, office):
    for ending in READ:
        predict("new.csv", "--explain", "2", "-o", f"out.{ending}")
    lines = [json.loads(line) for line in (office / "out.jsonl").read_text().splitlines()]
    assert pq.read_table("out.parquet").to_pylist() == lines
    explanation = in_memory(kind).explain(NEW[FEATURES])
    decibans = pd.DataFrame(explanation.decibans(), columns=explanation.names)[FEATURES]
    text = pd.read_csv("out.csv").why.fillna("")
    for i, line in enumerate(lines):
        strongest = decibans.loc[i].abs().sort_values(ascending=False).head(2)
        expected = {name: decibans.loc[i, name] for name in strongest.index if strongest[name] > 0}
        assert {part["column"]: part["decibans"] for part in line["why"]} == pytest.approx(expected)
        for part in line["why"]:
            cell = NEW.loc[i, part["column"]]
            if pd.isna(cell):  # a missing value is informative too, for evidence
                assert (kind, part["value"]) == ("evidence", None)
                continue
            assert part["value"] == (cell if isinstance(cell, str) else str(cell) if cell in (0, 1) else f"{cell:g}")
        values = ["" if part["value"] is None else f"={part['value']}" for part in line["why"]]
        assert text[i] == "; ".join(
            f"{part['column']}{value}: {part['decibans']:+.1f} dban"
            for part, value in zip(line["why"], values, strict=True)
        )


def test_three_reasons_if_no_number_is_given(office):
    three = predict("new.csv", "--explain", "3", "--format", "jsonl").stdout
    for args in (["--explain", "--format", "jsonl"], ["--format", "jsonl", "--explain"]):
        assert predict("new.csv", *args).stdout == three
    assert predict("new.csv", "--format", "jsonl", "--explain=3").stdout == three
    assert max(len(json.loads(line)["why"]) for line in three.splitlines()) == 3


def test_certain_evidence_is_no_broken_json(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\na,no\na,no\nb,yes\nb,yes\nc,no\nc,yes\n")
    run("fit", tmp_path / "a.csv", "--label", "y", *NAIVE_BAYES, "--smoothing", "0", "-o", tmp_path / "m.deciban")
    done = run("predict", tmp_path / "m.deciban", tmp_path / "a.csv", "--explain", "--format", "jsonl")
    first = json.loads(done.stdout.splitlines()[0], parse_constant=pytest.fail)
    assert first["why"] == [{"column": "x", "value": "a", "decibans": "inf"}]
    assert "x=a: +inf dban" in run("predict", tmp_path / "m.deciban", tmp_path / "a.csv", "--explain").stdout


# Models --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        db.NaiveBayes(),
        db.CalibratedClassifier(db.NaiveBayes()),
        db.CalibratedClassifier(db.NaiveBayes(), "isotonic"),
        db.CalibratedClassifier(db.EvidenceClassifier(trees=2), cv=2),
        db.LogisticRegression(l2=1.0),
        db.SoftmaxRegression(l2=1.0),
        db.GeneralizedLinearModel("bernoulli"),
        db.Halfspace(),
        db.GaussianDiscriminant("per-class"),
    ],
    ids=lambda model: type(model).__name__,
)
def test_every_kind_of_model_predicts(model, office):
    table = people(200).dropna()
    names = ["income", "age"] if isinstance(model, db.GaussianDiscriminant) else FEATURES
    model.fit(table[names], table.evade.to_numpy(dtype=object)).save("m.deciban")
    predict("new.csv", "-o", "out.parquet")
    predicted = pd.read_parquet("out.parquet")
    assert predicted.prediction.tolist() == model.predict(NEW[names]).tolist()
    if isinstance(model, db.Halfspace):
        assert list(predicted) == ["prediction"]
    else:
        np.testing.assert_allclose(predicted[["proba_no", "proba_yes"]], model.predict_proba(NEW[names]), rtol=1e-9)


def test_a_response_of_numbers_is_predicted(office):
    table = people(200).dropna()
    model = db.GeneralizedLinearModel().fit(table[["age", "member"]], table.income)
    model.save("m.deciban")
    predict("new.csv", "-o", "out.parquet")
    mean = model.predict(NEW[["age", "member"]])
    np.testing.assert_allclose(pd.read_parquet("out.parquet").prediction, mean, rtol=1e-12)


@pytest.mark.parametrize("classes", [[0, 1], [True, False], ["a", 1]], ids=str)
def test_classes_of_any_type(classes, tmp_path):
    x = pd.DataFrame({"x": [1.0, 2.0, 8.0, 9.0]})
    halves = [db.NaiveBayes().fit(x[2 * i : 2 * i + 2], [level] * 2) for i, level in enumerate(classes)]
    halves[0].merge(halves[1]).save(tmp_path / "m.deciban")
    x.to_csv(tmp_path / "x.csv", index=False)
    lines = run("predict", tmp_path / "m.deciban", tmp_path / "x.csv", "--format", "jsonl").stdout.splitlines()
    expected = [classes[0]] * 2 + [classes[1]] * 2
    expected = [str(level) for level in expected] if "a" in classes else expected
    assert [json.loads(line)["prediction"] for line in lines] == expected
    assert set(json.loads(lines[0])) == {"prediction", f"proba_{classes[0]}", f"proba_{classes[1]}"}


# Mistakes ------------------------------------------------------------------------------------------------------------


def test_a_bad_option_is_one_line(office):
    before = files_in(office)
    for line, words in (
        ("--keep nothing", "--keep: there is no column 'nothing'"),
        ("-o out.xls", "the format is unclear; end the name with .csv, .jsonl, .parquet, or give --format"),
        ("-o no/out.csv", "there is no directory"),
        ("-o new.csv", "is one of the input files"),
        ("-o m.deciban --format csv", "is one of the input files"),
    ):
        assert words in refused("predict", "m.deciban", "new.csv", *line.split())
    assert files_in(office) == before


def test_a_table_without_a_column_says_which(office):
    NEW.drop(columns="age").to_csv("new.csv", index=False)
    line = refused("predict", "m.deciban", "new.csv")
    assert "the table lacks column 'age'; it has columns 'id', 'status', 'income', 'member', 'evade'" in line
    NEW.rename(columns={"age": "Age"}).to_csv("new.csv", index=False)
    line = refused("predict", "m.deciban", "new.csv")
    assert "the table lacks column 'age' (did you mean 'Age'?); it has columns 'id', 'status'" in line
    (office / "other.csv").write_text("x,y\n1,2\n")
    line = refused("predict", "m.deciban", "other.csv")
    assert "lacks columns 'status', 'income', 'age', 'member'; it has columns 'x', 'y'" in line


def test_an_error_in_the_middle_leaves_nothing_and_names_the_line(office):
    lines = (office / "new.csv").read_text().splitlines(keepends=True)
    for bad, words in (("1,single,1e999,3,True,no\n", "is infinite"), ("1,single,cheap,3,True,no\n", "'cheap'")):
        (office / "bad.csv").write_text("".join([*lines[:30], bad, *lines[30:]]))
        for output in (["-o", "out.csv"], []):  # no header either
            line = refused("predict", "m.deciban", "bad.csv", *output)
            assert "bad.csv, line 31: column 'income'" in line
            assert words in line
    assert sorted(files_in(office)) == ["bad.csv", "m.deciban", "new.csv"]


def test_no_model(office):
    assert "there is no such file" in refused("predict", "no.deciban", "new.csv")
    assert "is no model of deciban: it looks like text" in refused("predict", "new.csv", "new.csv")
    db.NaiveBayes().fit([[1.0], [2.0]], ["a", "b"]).save("array.deciban")
    assert "columns have no names" in refused("predict", "array.deciban", "new.csv")


@pytest.mark.parametrize(
    "model", [db.Halfspace(), db.CalibratedClassifier(db.NaiveBayes(), "isotonic")], ids=["plane", "curve"]
)
def test_a_model_that_cannot_be_explained_says_so(model, office):
    table = people(200).dropna()
    model.fit(table[FEATURES], table.evade.to_numpy(dtype=object)).save("m.deciban")
    line = refused("predict", "m.deciban", "new.csv", "--explain")
    assert "cannot be explained in decibans: drop --explain" in line
