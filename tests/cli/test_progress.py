"""Progress on a terminal, and Ctrl-C in the middle of the work."""

import io
import os
import re
import signal
import subprocess
import sys
import time
from functools import partial

import pytest
from rich.console import Console

import deciban as db
from deciban.cli.progress import Watch, bar
from deciban.data.files.scan import Scan
from deciban.evidence.weights import Weights
from tests.cli.runs import MAIN, ROWS, files_in, on_a_terminal, people, run, write_people


@pytest.fixture
def office(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_people(tmp_path)
    return tmp_path


# Interruptions -------------------------------------------------------------------------------------------------------


def after_one_batch(monkeypatch, interrupt, passes=1):
    """Ctrl-C in the middle of a pass over the file."""
    frames, begun = Scan.frames, []

    def interrupted(scan):
        begun.append(scan)
        for frame in frames(scan):
            yield frame
            if len(begun) == passes:
                interrupt()

    monkeypatch.setattr(Scan, "frames", interrupted)


def while_weights_are_fitted(monkeypatch, interrupt):
    monkeypatch.setattr(Weights, "fit", lambda *args, **options: interrupt())


@pytest.mark.parametrize(
    "line",
    [
        "fit people.csv --label evade -o new.deciban",
        "fit people.csv --resume m.deciban",
        "fit people.csv --label evade --model logistic -o m.deciban",
        "forget m.deciban people.csv",
        "refit-weights m.deciban people.csv",
        "refit-weights m.deciban people.csv --held-out -o new.deciban",
        "predict m.deciban people.csv -o out.csv",
        "predict m.deciban people.csv -o out.parquet",
        "predict m.deciban people.csv -o out.jsonl",
        "evaluate m.deciban people.csv",
    ],
)
def test_an_interruption_leaves_what_was_there_and_nothing_else(line, office, monkeypatch, interrupt):
    before = files_in(office)
    after_one_batch(monkeypatch, interrupt)
    done = run(*line.split(), code=130)
    assert (done.stdout, done.stderr) == ("", "deciban: interrupted\n")
    assert files_in(office) == before


@pytest.mark.parametrize("output", ["new.deciban", "m.deciban"])
def test_an_interruption_at_any_stage_of_a_fit(output, office, monkeypatch, interrupt):
    before = files_in(office)
    for stage in (after_one_batch, partial(after_one_batch, passes=2), while_weights_are_fitted):
        with monkeypatch.context() as patch:
            stage(patch, interrupt)
            done = run("fit", "people.csv", "--label", "evade", "-o", output, code=130)
        assert (done.stdout, done.stderr) == ("", "deciban: interrupted\n")
        assert files_in(office) == before


INTERRUPTED = f"""
import sys, time
from deciban.data.files.scan import Scan

def slowly(scan):
    print("reading", file=sys.stderr, flush=True)
    time.sleep(600)

Scan.frames = slowly
{MAIN}
"""


def test_a_process_that_is_interrupted_has_exit_code_130(office):
    before = files_in(office)
    line = [sys.executable, "-c", INTERRUPTED, "forget", "m.deciban", "people.csv"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr.readline() == "reading\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "deciban: interrupted\n")
    assert files_in(office) == before


# Progress ------------------------------------------------------------------------------------------------------------


def test_a_terminal_is_shown_the_rows(office):
    args = ["people.csv", "--label", "evade", "-o", "new.deciban"]
    out, shown = on_a_terminal("fit", *args)
    assert out.startswith(f"new.deciban: EvidenceClassifier, {ROWS} rows")
    assert f"{ROWS} rows" in shown
    assert "rows/s" in shown
    for other in ("refit-weights", "forget"):
        _, shown = on_a_terminal(other, "m.deciban", "people.csv")
        assert f"{ROWS} rows" in shown
        assert shown.endswith("\r\x1b[1A\x1b[2K")  # nothing of it stays


def test_quiet_is_quiet(office):
    out, shown = on_a_terminal("predict", "m.deciban", "people.csv", "--quiet", "--format", "jsonl")
    assert shown == ""
    assert len(out.splitlines()) == ROWS


def test_pipes_are_shown_nothing(office):
    assert run("evaluate", "m.deciban", "people.csv").stderr == ""


def watched(scan):
    return shown_of(scan)[0]


def shown_of(scan):
    """The task, and a function that gives the line as it is now."""
    progress = bar(Console(file=io.StringIO(), force_terminal=True, width=120))
    watch = Watch(progress, scan)
    scan.on_progress = watch.update

    def line():
        console = Console(file=io.StringIO(), width=120)
        console.print(progress.get_renderable())
        return console.file.getvalue()

    return progress.tasks[0], line


@pytest.fixture
def long(tmp_path):
    people(2000).drop(columns="id").to_csv(tmp_path / "people.csv", index=False)
    return tmp_path


def test_bytes_of_all_files_are_the_whole(long):
    lines = (long / "people.csv").read_text().splitlines(keepends=True)
    (long / "rest.csv").write_text("".join(lines[:500]))
    scan = db.scan([long / "people.csv", long / "rest.csv"], block_size=5000)
    task = watched(scan)
    assert task.total == sum(os.path.getsize(long / name) for name in ("people.csv", "rest.csv"))
    for _ in range(2):  # the second pass starts at 0 again
        done = [task.completed for _ in scan.frames()]
        assert done == sorted(done)
        assert 0 < done[0] < 20_000 < task.total
        assert done[-1] == task.total
        assert task.fields["rows"] == 2499


def test_between_passes_there_is_work_and_a_second_pass_is_called_so(long):
    scan = db.scan(long / "people.csv", block_size=5000)
    task, line = shown_of(scan)
    assert line().startswith("reading ")
    for words in ("reading ", "reading again "):
        lines = [(task.finished, task.fields["rows"], line()) for _ in scan.frames()]
        reading = [(rows, shown) for finished, rows, shown in lines if not finished]
        assert len(reading) > 5
        assert all(shown.startswith(words) and f" {rows:,} rows " in shown for rows, shown in reading)
        assert line().startswith("working ")  # trees grow, or weights are fitted
        first = re.search("[0-9,]+ rows/s", line()).group()
        time.sleep(0.05)
        assert first in line()  # the rate is that of reading
    assert "0:00:0" in line()


def test_files_with_columns_apart_are_counted_by_their_share_of_rows(tmp_path):
    people(2000).to_parquet(tmp_path / "people.parquet", row_group_size=500)
    scan = db.scan(tmp_path / "people.parquet")
    task = watched(scan)
    done = [task.completed for _ in scan.frames()]
    assert task.total == os.path.getsize(tmp_path / "people.parquet")
    assert done == sorted(done)
    assert done[-1] == task.total
    assert task.fields["rows"] == 2000
