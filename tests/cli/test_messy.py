"""Files as they come, from the shell: learned, or an error with file and line, exit code 1, and nothing written."""

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import deciban as db
from deciban.data.files.text_files import TextFile
from deciban.families import Categorical
from tests.cli.runs import KINDS, NAIVE_BAYES, files_in, fitted, people, refused, run
from tests.laws import flattened

HTML = b"<!DOCTYPE html>\n<html><body><table><tr><td>1</td></tr></table></body></html>\n"
EXCEL = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(1000)
LINES = 200
TEXT = "a,b,label\n" + "1,x,no\n2,y,yes\n" * (LINES // 2)


def parquet_cut(folder):
    path = folder / "bad.parquet"
    people(500).to_parquet(path)
    path.write_bytes(path.read_bytes()[:-100])
    return path


def holding(data):
    def made(folder):
        path = folder / "bad.csv"
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    return made


def directory(folder):
    (folder / "bad.csv").mkdir()
    return folder / "bad.csv"


BROKEN = {
    "a short row": (holding(TEXT + "1,x\n" + "2,y,yes\n"), f"line {LINES + 2}: "),
    "a long row": (holding(TEXT + "1,x,no,no\n"), f"line {LINES + 2}: "),
    "a NUL byte": (holding(TEXT + "1,x\0,no\n"), f"line {LINES + 2}: "),
    "an open quote": (holding(TEXT + '1,"x,no\n2,y,yes\n'), f"line {LINES + 2}: "),
    "bytes that are not UTF-8": (holding(TEXT.encode() + b"1,\xff,no\n"), f"line {LINES + 2}: "),
    "a web page": (holding(HTML), "line 1: "),
    "a workbook": (holding(EXCEL), "line 1: "),
    "a parquet that is truncated": (parquet_cut, "truncated"),
    "nothing": (holding(b""), "empty"),
    "names only": (holding("a,b,label\n"), "rows"),
    "a directory": (directory, "is a directory"),
}


def test_a_file_with_a_date_goes_through_every_command(tmp_path):
    """Evidence of several columns reads parts of dates, too."""
    rng = np.random.default_rng(0)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, 120), unit="D")
    table = pd.DataFrame({"day": days, "x": rng.normal(size=120), "y": np.where(rng.random(120) < 0.5, "p", "q")})
    table.to_csv(tmp_path / "d.csv", index=False)
    d, m, part = (tmp_path / name for name in ("d.csv", "m.deciban", "part.deciban"))
    for command in (
        ["fit", d, "--label", "y", "-o", m],
        ["fit", d, "--label", "y", "-o", m, "--json"],
        ["fit", d, "--like", m, "-o", part],
        ["show", m],
        ["merge", m, part, "-o", tmp_path / "both.deciban"],
        ["fit", d, "--resume", m],
        ["refit-weights", m, d],
        ["forget", m, d],
        ["explain", m, d, "--row", "1"],
        ["evaluate", m, d],
    ):
        run(*command)


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_an_error_and_the_old_model_stays(case, tmp_path):
    make, words = BROKEN[case]
    (tmp_path / "m.deciban").write_bytes(fitted())
    bad = make(tmp_path)
    before = files_in(tmp_path)
    for into in ("m.deciban", "new.deciban"):
        line = refused("fit", bad, "--label", "label", "-o", tmp_path / into)
        assert words in line
        assert case == "names only" or str(bad) in line
    assert files_in(tmp_path) == before


@pytest.fixture
def blocks(monkeypatch):
    """Files are read in blocks of 64 KB."""
    small = lambda path, encoding, size, title: TextFile(path, encoding, 1 << 16, title)  # noqa: E731
    monkeypatch.setattr("deciban.data.files.scan.TextFile", small)


def test_whole_numbers_that_turn_into_text_after_many_rows(blocks, tmp_path):
    codes = [*(str(i % 7) for i in range(30_000)), *["seven"] * 2000]
    labels = [("no", "yes")[i % 3 == 0] for i in range(len(codes))]
    pd.DataFrame({"code": codes, "label": labels}).to_csv(tmp_path / "late.csv", index=False)
    expected = pd.crosstab(pd.Series(labels), pd.Series(codes))
    for args, _ in KINDS.values():
        run("fit", tmp_path / "late.csv", "--label", "label", *args, "-o", tmp_path / "m.deciban")
        blocks = db.load(tmp_path / "m.deciban").generative_.blocks
        (statistic,) = [block.statistic for block in blocks if isinstance(block.plan.family, Categorical)]
        levels = tuple(level for level in statistic.levels[0] if level is not None)
        assert levels == ("0", "1", "2", "3", "4", "5", "6", "seven")
        assert statistic.table.value[:, : len(levels)].tolist() == expected.to_numpy().tolist()
        assert not statistic.table.value[:, len(levels) :].any()  # no value is missing


@pytest.mark.parametrize("kind", KINDS)
def test_categories_that_appear_in_the_last_block(kind, blocks, tmp_path):
    frame = people(4_000)
    frame.loc[len(frame) - 1, "status"] = "widowed"
    frame.to_csv(tmp_path / "people.csv", index=False)
    assert (tmp_path / "people.csv").stat().st_size > 2 << 16
    args, settings = ([*KINDS[kind][0], "--trees", "2"], {"trees": 2}) if kind == "evidence" else (NAIVE_BAYES, {})
    run("fit", tmp_path / "people.csv", "--label", "evade", "--drop", "id", *args, "-o", tmp_path / "m.deciban")
    rows = frame.tail(100)
    expected = KINDS[kind][1](**settings).fit(frame.drop(columns="id"), "evade").predict_proba(rows)
    predicted = db.load(tmp_path / "m.deciban").predict_proba(rows)
    if kind == "evidence":  # joint normals are rounded where batches are added
        np.testing.assert_allclose(predicted, expected, rtol=1e-9)
    else:
        assert (predicted == expected).all()


def test_many_row_groups_and_eight_files_are_one_fit(tmp_path):
    """The same table in memory, as csv in blocks of 250 rows and in one, as parquet, and from 8 merged models."""
    frame = people(6_000).drop(columns="id")
    expected = db.NaiveBayes().fit(frame, "evade")
    frame.to_csv(tmp_path / "all.csv", index=False)
    frame.to_parquet(tmp_path / "all.parquet", row_group_size=175)
    assert pq.ParquetFile(tmp_path / "all.parquet").num_row_groups > 30
    size = (tmp_path / "all.csv").stat().st_size
    models = {
        "blocks": db.NaiveBayes().fit(db.scan(tmp_path / "all.csv", block_size=size // 24), "evade"),
        "one block": db.NaiveBayes().fit(db.scan(tmp_path / "all.csv", block_size=2 * size), "evade"),
        "parquet": db.NaiveBayes().fit(db.scan(tmp_path / "all.parquet"), "evade"),
    }
    for i in range(8):
        frame[i * 750 : (i + 1) * 750].to_csv(tmp_path / f"part{i}.csv", index=False)
        run("fit", tmp_path / f"part{i}.csv", "--label", "evade", *NAIVE_BAYES, "-o", tmp_path / f"{i}.deciban")
    run("merge", *(tmp_path / f"{i}.deciban" for i in range(8)), "-o", tmp_path / "merged.deciban")
    models["merged"] = db.load(tmp_path / "merged.deciban")
    for name, model in models.items():
        assert model.predict_proba(frame).tobytes() == expected.predict_proba(frame).tobytes(), name
        assert model.class_count_.tolist() == expected.class_count_.tolist()
        for mine, theirs in zip(model.generative_.blocks, expected.generative_.blocks, strict=True):
            a, b = flattened(mine.statistic), flattened(theirs.statistic)
            assert all(a[key].tobytes() == b[key].tobytes() for key in b), name
