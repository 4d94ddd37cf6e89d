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

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import deciban as db
from deciban.cli import prediction_tables as predicting
from deciban.data.files import column_inference
from tests.cli.runs import FEATURES, LEARNED, NAIVE_BAYES, people, run

READ = {
    "csv": lambda path: pd.read_csv(path, dtype={"id": str}),
    "jsonl": lambda path: pd.DataFrame([json.loads(line) for line in path.read_text().splitlines()]),
    "parquet": pd.read_parquet,
}


BOTH = pytest.mark.parametrize("kind", LEARNED)


@pytest.fixture
def kind():
    return "evidence"


@pytest.fixture
def office(kind, tmp_path):
    """A model, rows to predict, and the table of them."""
    people(300).drop(columns="id").to_csv(tmp_path / "people.csv", index=False)
    new = people(200, seed=3)
    new.to_csv(tmp_path / "new.csv", index=False)
    run("fit", tmp_path / "people.csv", "--label", "evade", *LEARNED[kind][0], "-o", tmp_path / "m.deciban")
    return tmp_path, new


def in_memory(folder, kind):
    table = pd.read_csv(folder / "people.csv")
    return LEARNED[kind][1]().fit(table[FEATURES], table.evade.to_numpy(dtype=object))


@BOTH
@pytest.mark.parametrize("ending", READ)
def test_every_format_holds_the_predictions_of_the_table(ending, kind, office):
    folder, new = office
    out = folder / f"out.{ending}"
    run("predict", folder / "m.deciban", folder / "new.csv", "--keep", "id,status", "-o", out)
    found, model = READ[ending](out), in_memory(folder, kind)
    assert list(found) == ["id", "status", "prediction", "proba_no", "proba_yes"]
    assert found.id.tolist() == new.id.tolist()  # with its zeros
    assert found.status.isna().tolist() == new.status.isna().tolist()
    assert found.status.dropna().tolist() == new.status.dropna().tolist()
    assert found.prediction.tolist() == model.predict(new[FEATURES]).tolist()
    np.testing.assert_allclose(found[["proba_no", "proba_yes"]], model.predict_proba(new[FEATURES]), rtol=1e-14)


def test_all_formats_hold_the_same_digits(office):
    folder, _ = office
    for ending in READ:
        run("predict", folder / "m.deciban", folder / "new.csv", "-o", folder / f"out.{ending}")
    lines = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]
    table = pq.read_table(folder / "out.parquet")
    assert table.to_pylist() == lines
    text = [line.split(",")[2] for line in (folder / "out.csv").read_text().splitlines()[1:]]
    assert [float(number) for number in text] == table["proba_yes"].to_pylist()


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_kept_columns_of_other_formats_keep_their_types(ending, office):
    folder, new = office
    new = new.assign(number=np.arange(len(new)) * 10**12, share=np.arange(len(new)) / 8, nothing=None)
    if ending == "jsonl":
        new.to_json(folder / "new.jsonl", orient="records", lines=True)
        with (folder / "new.jsonl").open("a") as file:  # a type and a key that the first rows do not show
            file.write('{"status": "single", "income": 1, "age": 2, "member": true, "number": 0.5, "late": "x"}\n')
    else:
        new.to_parquet(folder / "new.parquet")
    kept = ["id", "number", "share", "nothing", "age"]
    run(
        "predict",
        folder / "m.deciban",
        folder / f"new.{ending}",
        "--keep",
        ",".join(kept),
        "-o",
        folder / "out.parquet",
    )
    found = pq.read_table(folder / "out.parquet").slice(0, len(new))
    assert found["id"].to_pylist() == new.id.tolist()
    assert found["number"].to_pylist() == new.number.tolist()
    assert found["share"].to_pylist() == new.share.tolist()
    assert found["nothing"].null_count == len(new)
    assert found["age"].to_pylist() == new.age.tolist()


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
    """A model, and a ledger in both formats that hold a schema."""
    folder, new = office
    table = pa.Table.from_pandas(new[["status", "income", "member"]], preserve_index=False)
    for name, column in zip(ledger(len(new)).column_names, ledger(len(new)).columns, strict=True):
        table = table.append_column(name, column)
    pq.write_table(table, folder / "new.parquet")
    feather.write_feather(table, folder / "new.arrow")
    return folder, table


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_columns_are_kept_as_the_file_has_them(ending, shop):
    folder, table = shop
    for args in (["--keep", ",".join(ledger(1).column_names)], ["--keep-all"]):
        run("predict", folder / "m.deciban", folder / f"new.{ending}", *args, "-o", folder / "out.parquet")
        found = pq.read_table(folder / "out.parquet").select(ledger(1).column_names)
        assert found.equals(ledger(table.num_rows))


def test_dates_and_whole_numbers_as_json(shop):
    folder, _ = shop
    args = ["--keep", ",".join(ledger(1).column_names), "--no-probabilities", "--format", "jsonl"]
    first = run("predict", folder / "m.deciban", folder / "new.parquet", *args).stdout.splitlines()[0]
    assert first.startswith(
        '{"age": 1152921504606846977, "number": 18446744073709551615, "small": 0.0, "day": "2024-02-29", '
        '"at": "2024-02-29T00:00:00.000000001", "price": 1.2345678901234568e+16, "units": 3, "prediction": '
    )


def test_whole_numbers_of_json_lines_stay_so(office):
    folder, _ = office
    row = {"status": "single", "income": 1.5, "age": 2**60 + 1, "member": True}
    (folder / "new.jsonl").write_text(f"{json.dumps(row)}\n{json.dumps(row | {'age': 3})}\n")
    args = ["--keep", "income,age", "--no-probabilities", "--format", "jsonl"]
    lines = run("predict", folder / "m.deciban", folder / "new.jsonl", *args).stdout.splitlines()
    assert lines[0].startswith('{"income": 1.5, "age": 1152921504606846977, ')
    assert lines[1].startswith('{"income": 1.5, "age": 3, ')


def test_lists_of_json_lines_are_kept_as_text(office):
    folder, _ = office
    row = {"status": "single", "income": 1.5, "age": 3, "member": True, "tags": [1, "a"]}
    (folder / "new.jsonl").write_text(f"{json.dumps(row)}\n")
    args = ["--keep", "tags", "--format", "jsonl"]
    (line,) = run("predict", folder / "m.deciban", folder / "new.jsonl", *args).stdout.splitlines()
    assert json.loads(json.loads(line)["tags"]) == [1, "a"]


def test_a_kept_column_is_of_a_type_for_all_files(office, monkeypatch):
    folder, new = office
    monkeypatch.setattr(column_inference, "SAMPLED_FILES", 1)
    for name, value in (("a", 3), ("b", 0.5)):
        new.assign(number=value).to_parquet(folder / f"{name}.parquet")
    both = folder / "a.parquet", folder / "b.parquet"
    run("predict", folder / "m.deciban", *both, "--keep", "number", "-o", folder / "out.parquet")
    assert pd.read_parquet(folder / "out.parquet").number.tolist() == [3] * len(new) + [0.5] * len(new)


def test_a_column_that_cannot_be_kept_says_so(office):
    folder, new = office
    table = pa.Table.from_pandas(new[FEATURES], preserve_index=False)
    for name, cell in (("a", [dt.date(2024, 2, 29)]), ("b", b"x")):
        lists, raw = pa.array([[1]] * len(new)), pa.array([b"x"] * len(new))
        more = table.append_column("when", pa.array([cell] * len(new))).append_column("list", lists)
        pq.write_table(more.append_column("raw", raw), folder / f"{name}.parquet")
    row = {"status": "x", "income": 1.5, "age": 2, "member": True, "when": "now", "list": [1], "raw": "x"}
    (folder / "new.jsonl").write_text(f"{json.dumps(row)}\n")
    for names, args, words in (
        (["a.parquet", "b.parquet"], ["--keep", "when"], "column 'when' has several types"),
        (["a.parquet", "new.jsonl"], ["--keep", "list"], "column 'list' has several types"),
        (["a.parquet"], ["--keep", "list"], "column 'list' is of type list<"),
        (["a.parquet"], ["--keep", "raw", "--format", "jsonl"], "column 'raw' is of type binary, which jsonl cannot"),
    ):
        done = run("predict", folder / "m.deciban", *(folder / name for name in names), *args, code=1)
        assert done.stderr.startswith(f"deciban: {words}")
        assert done.stdout == ""
    run("predict", folder / "m.deciban", folder / "a.parquet", folder / "b.parquet")  # other columns do not matter


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_what_is_no_ordinary_file_is_written_to_and_stays(ending, office):
    folder, _ = office
    args = ["predict", folder / "m.deciban", folder / "new.csv", "--format", ending, "-o"]
    run(*args, folder / f"out.{ending}")
    run(*args, "/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    os.mkfifo(folder / "pipe")
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit((folder / "pipe").read_bytes)
        run(*args, folder / "pipe")
        assert read.result() == (folder / f"out.{ending}").read_bytes()
    assert stat.S_ISFIFO((folder / "pipe").stat().st_mode)


def test_standard_output_by_its_other_name(office):
    folder, _ = office
    expected = run("predict", folder / "m.deciban", folder / "new.csv").stdout
    with (folder / "log.txt").open("w") as file:
        file.write("before\n")
        file.flush()
        line = [sys.executable, "-c", "from deciban.cli import main; main()", "predict", "m.deciban", "new.csv"]
        subprocess.run([*line, "-o", "/dev/stdout"], cwd=folder, stdout=file, check=True)
    assert (folder / "log.txt").read_text() == "before\n" + expected


def test_standard_input_and_output(office):
    folder, _ = office
    run("predict", folder / "m.deciban", folder / "new.csv", "-o", folder / "out.csv")
    text = (folder / "new.csv").read_text()
    for args in ([], ["-o", "-"], ["-o", "-", "--format", "csv"]):
        done = run("predict", folder / "m.deciban", "-", *args, input=text)
        assert done.stdout == (folder / "out.csv").read_text()
    binary = run("predict", folder / "m.deciban", "-", "--format", "parquet", input=text).stdout_bytes
    assert pq.read_table(io.BytesIO(binary)).num_rows == 200


@BOTH
def test_all_columns_are_kept_and_no_name_is_taken_twice(kind, office):
    folder, new = office
    new.assign(prediction="mine").to_csv(folder / "new.csv", index=False)
    run("predict", folder / "m.deciban", folder / "new.csv", "--keep-all", "--no-probabilities", "-o", folder / "o.csv")
    found = pd.read_csv(folder / "o.csv")
    assert list(found) == ["id", "status", "income", "age", "member", "evade", "prediction", "prediction 2"]
    assert set(found.prediction) == {"mine"}
    assert found.income.tolist() == pytest.approx(new.income.tolist(), nan_ok=True)
    assert found["prediction 2"].tolist() == in_memory(folder, kind).predict(new[FEATURES]).tolist()


def test_no_rows_are_a_header(office):
    folder, _ = office
    (folder / "none.csv").write_text("status,income,age,member\n")
    run("predict", folder / "m.deciban", folder / "none.csv", "-o", folder / "out.csv")
    assert (folder / "out.csv").read_text() == '"prediction","proba_no","proba_yes"\n'


@BOTH
def test_batches_do_not_matter(kind, office, monkeypatch):
    folder, _ = office
    args = ["predict", folder / "m.deciban", folder / "new.csv", "--explain", "--format", "jsonl"]
    whole = run(*args).stdout
    monkeypatch.setattr(predicting, "CELLS_PER_BATCH", 70)
    assert run(*args).stdout == whole


# Reasons -------------------------------------------------------------------------------------------------------------


@BOTH
def test_reasons_are_the_strongest_parts_of_the_explanation(kind, office):
    folder, new = office
    args = ["predict", folder / "m.deciban", folder / "new.csv", "--explain", "2", "-o"]
    for ending in READ:
        run(*args, folder / f"out.{ending}")
    lines = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]
    assert pq.read_table(folder / "out.parquet").to_pylist() == lines
    explanation = in_memory(folder, kind).explain(new[FEATURES])
    decibans = pd.DataFrame(explanation.decibans(), columns=explanation.names)[FEATURES]
    text = pd.read_csv(folder / "out.csv").why.fillna("")
    for i, line in enumerate(lines):
        strongest = decibans.loc[i].abs().sort_values(ascending=False).head(2)
        expected = {name: decibans.loc[i, name] for name in strongest.index if strongest[name] > 0}
        assert {part["column"]: part["decibans"] for part in line["why"]} == pytest.approx(expected)
        for part in line["why"]:
            cell = new.loc[i, part["column"]]
            if pd.isna(cell):  # that it is missing tells something too, of evidence
                assert (kind, part["value"]) == ("evidence", None)
                continue
            assert part["value"] == (cell if isinstance(cell, str) else str(cell) if cell in (0, 1) else f"{cell:g}")
        values = ["" if part["value"] is None else f"={part['value']}" for part in line["why"]]
        shown = [
            f"{part['column']}{value}: {part['decibans']:+.1f} dban"
            for part, value in zip(line["why"], values, strict=True)
        ]
        assert text[i] == "; ".join(shown)


def test_three_reasons_if_no_number_is_given(office):
    folder, _ = office
    args = ["predict", folder / "m.deciban", folder / "new.csv"]
    three = run(*args, "--explain", "3", "--format", "jsonl").stdout
    assert run(*args, "--explain", "--format", "jsonl").stdout == three
    assert run(*args, "--format", "jsonl", "--explain").stdout == three
    assert run(*args, "--format", "jsonl", "--explain=3").stdout == three
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
        db.EvidenceClassifier(),
        db.CalibratedClassifier(db.NaiveBayes()),
        db.CalibratedClassifier(db.NaiveBayes(), "isotonic"),
        db.CalibratedClassifier(db.EvidenceClassifier()),
        db.LogisticRegression(l2=1.0),
        db.SoftmaxRegression(l2=1.0),
        db.GeneralizedLinearModel("bernoulli"),
        db.Halfspace(),
        db.GaussianDiscriminant("per-class"),
    ],
    ids=lambda model: type(model).__name__,
)
def test_every_kind_of_model_predicts(model, office):
    folder, new = office
    table = pd.read_csv(folder / "people.csv").dropna()
    names = ["income", "age"] if isinstance(model, db.GaussianDiscriminant) else FEATURES
    model.fit(table[names], table.evade.to_numpy(dtype=object)).save(folder / "m.deciban")
    run("predict", folder / "m.deciban", folder / "new.csv", "-o", folder / "out.parquet")
    found = pd.read_parquet(folder / "out.parquet")
    assert found.prediction.tolist() == model.predict(new[names]).tolist()
    if isinstance(model, db.Halfspace):
        assert list(found) == ["prediction"]
    else:
        np.testing.assert_allclose(found[["proba_no", "proba_yes"]], model.predict_proba(new[names]), rtol=1e-9)


def test_a_response_of_numbers_is_predicted(office):
    folder, new = office
    table = pd.read_csv(folder / "people.csv").dropna()
    model = db.GeneralizedLinearModel().fit(table[["age", "member"]], table.income)
    model.save(folder / "m.deciban")
    run("predict", folder / "m.deciban", folder / "new.csv", "-o", folder / "out.parquet")
    found = pd.read_parquet(folder / "out.parquet")
    np.testing.assert_allclose(found.prediction, model.predict(new[["age", "member"]]), rtol=1e-12)


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


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--keep", "nothing"], "--keep: there is no column 'nothing'"),
        (["-o", "out.xls"], "the format is unclear; end the name with .csv, .jsonl, .parquet, or give --format"),
        (["-o", "no/out.csv"], "there is no directory"),
        (["-o", "new.csv"], "is one of the input files"),
        (["-o", "m.deciban", "--format", "csv"], "is one of the input files"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_bad_option_is_one_line(args, words, office, monkeypatch):
    folder, _ = office
    monkeypatch.chdir(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    done = run("predict", "m.deciban", "new.csv", *args, code=1)
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_table_without_a_column_says_which(office):
    folder, new = office
    new.drop(columns="age").to_csv(folder / "new.csv", index=False)
    done = run("predict", folder / "m.deciban", folder / "new.csv", code=1)
    assert "the table lacks column 'age'; it has columns 'id', 'status', 'income', 'member', 'evade'" in done.stderr
    (folder / "other.csv").write_text("x,y\n1,2\n")
    done = run("predict", folder / "m.deciban", folder / "other.csv", code=1)
    assert "lacks columns 'status', 'income', 'age', 'member'; it has columns 'x', 'y'" in done.stderr


def test_an_error_in_the_middle_leaves_nothing_and_names_the_line(office):
    folder, _ = office
    lines = (folder / "new.csv").read_text().splitlines(keepends=True)
    for bad, words in (("1,single,1e999,3,True,no\n", "is infinite"), ("1,single,cheap,3,True,no\n", "'cheap'")):
        (folder / "bad.csv").write_text("".join([*lines[:100], bad, *lines[100:]]))
        done = run("predict", folder / "m.deciban", folder / "bad.csv", "-o", folder / "out.csv", code=1)
        assert f"{folder / 'bad.csv'}, line 101: column 'income'" in done.stderr
        assert words in done.stderr
        assert run("predict", folder / "m.deciban", folder / "bad.csv", code=1).stdout == ""  # no header either
    assert sorted(path.name for path in folder.iterdir()) == ["bad.csv", "m.deciban", "new.csv", "people.csv"]


def test_no_model(office):
    folder, _ = office
    absent = run("predict", folder / "no.deciban", folder / "new.csv", code=1)
    assert "there is no such file" in absent.stderr
    other = run("predict", folder / "new.csv", folder / "new.csv", code=1)
    assert "is no model of deciban: it looks like text" in other.stderr
    db.NaiveBayes().fit([[1.0], [2.0]], ["a", "b"]).save(folder / "array.deciban")
    unnamed = run("predict", folder / "array.deciban", folder / "new.csv", code=1)
    assert "columns have no names" in unnamed.stderr


@pytest.mark.parametrize(
    "model", [db.Halfspace(), db.CalibratedClassifier(db.NaiveBayes(), "isotonic")], ids=["plane", "curve"]
)
def test_a_model_that_cannot_be_explained_says_so(model, office):
    folder, _ = office
    table = pd.read_csv(folder / "people.csv").dropna()
    model.fit(table[FEATURES], table.evade.to_numpy(dtype=object)).save(folder / "m.deciban")
    done = run("predict", folder / "m.deciban", folder / "new.csv", "--explain", code=1)
    assert "cannot be explained in decibans: drop --explain" in done.stderr
