"""Progress on a terminal, and Ctrl-C in the middle of the work."""

import io
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from rich.console import Console

import deciban as db
from deciban.cli.progress import Watch, bar
from tests.cli.runs import command, people, run

MAIN = "from deciban.cli import main; main()"
SLOW = f"""
import sys, time
from deciban.data.files.scan import Scan

frames = Scan.frames

def slowly(self):
    for frame in frames(self):
        yield frame
        print("one batch is done", file=sys.stderr, flush=True)
        time.sleep(600)

Scan.frames = slowly
{MAIN}
"""


@pytest.fixture
def office(tmp_path):
    people(2000).drop(columns="id").to_csv(tmp_path / "people.csv", index=False)
    run("fit", tmp_path / "people.csv", "--label", "evade", "-o", tmp_path / "m.deciban")
    return tmp_path


def listed(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    "args",
    [
        ["fit", "people.csv", "--label", "evade", "-o", "new.deciban"],
        ["fit", "people.csv", "--label", "evade", "-o", "m.deciban"],
        ["fit", "people.csv", "--resume", "m.deciban"],
        ["fit", "people.csv", "--label", "evade", "--model", "logistic", "-o", "m.deciban"],
        ["forget", "m.deciban", "people.csv"],
        ["refit-weights", "m.deciban", "people.csv"],
        ["refit-weights", "m.deciban", "people.csv", "--held-out", "-o", "new.deciban"],
        ["predict", "m.deciban", "people.csv", "-o", "out.csv"],
        ["predict", "m.deciban", "people.csv", "-o", "out.parquet"],
        ["predict", "m.deciban", "people.csv", "-o", "out.jsonl"],
        ["evaluate", "m.deciban", "people.csv"],
    ],
    ids=" ".join,
)
def test_an_interruption_leaves_what_was_there_and_nothing_else(args, office):
    before = listed(office)
    line = [sys.executable, "-c", SLOW, *args]
    with subprocess.Popen(line, cwd=office, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr.readline() == "one batch is done\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "deciban: interrupted\n")
    assert listed(office) == before


FITTING_WEIGHTS = f"""
import sys, time
from deciban.evidence.weights import Weights

def slowly(*args, **options):
    print("fitting weights", file=sys.stderr, flush=True)
    time.sleep(600)

Weights.fit = slowly
{MAIN}
"""
SECOND = f"""
import sys, time
from deciban.data.files.scan import Scan

frames, passes = Scan.frames, []

def slowly(self):
    passes.append(self)
    for frame in frames(self):
        yield frame
        if len(passes) == 2:
            print("reading again", file=sys.stderr, flush=True)
            time.sleep(600)

Scan.frames = slowly
{MAIN}
"""


@pytest.mark.parametrize(
    ("program", "words"), [(SECOND, "reading again"), (FITTING_WEIGHTS, "fitting weights")], ids=lambda text: text[:9]
)
@pytest.mark.parametrize("output", ["new.deciban", "m.deciban"])
def test_an_interruption_at_any_stage_of_a_fit(program, words, output, office):
    before = listed(office)
    line = [sys.executable, "-c", program, "fit", "people.csv", "--label", "evade", "-o", output]
    with subprocess.Popen(line, cwd=office, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr.readline() == f"{words}\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "deciban: interrupted\n")
    assert listed(office) == before


# Progress ------------------------------------------------------------------------------------------------------------


def on_a_terminal(*args, cwd):
    """Exit code, stdout, and what a terminal as stderr was shown."""
    ours, theirs = os.openpty()
    line = [sys.executable, "-c", MAIN, *args]
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    with (
        (cwd / "stdout").open("w") as out,
        subprocess.Popen(line, cwd=cwd, stdout=out, stderr=theirs, env=env) as process,
    ):
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            shown += piece
    os.close(ours)
    return process.returncode, (cwd / "stdout").read_text(), shown.decode()


def test_a_terminal_is_shown_the_rows(office):
    code, out, shown = on_a_terminal("fit", "people.csv", "--label", "evade", "-o", "m.deciban", cwd=office)
    assert code == 0
    assert out.startswith("m.deciban: EvidenceClassifier, 2000 rows")
    assert "2,000 rows" in shown
    assert "rows/s" in shown


@pytest.mark.parametrize("args", [["forget", "m.deciban", "people.csv"], ["refit-weights", "m.deciban", "people.csv"]])
def test_a_terminal_is_shown_the_rows_of_other_work(args, office):
    code, _, shown = on_a_terminal(*args, cwd=office)
    assert code == 0
    assert "2,000 rows" in shown
    assert shown.endswith("\r\x1b[1A\x1b[2K")  # nothing of it stays


def test_quiet_is_quiet(office):
    code, out, shown = on_a_terminal("predict", "m.deciban", "people.csv", "--quiet", cwd=office)
    assert (code, shown) == (0, "")
    assert len(out.splitlines()) == 2001


def test_pipes_are_shown_nothing(office):
    done = command("evaluate", "m.deciban", "people.csv", cwd=office)
    assert done.returncode == 0
    assert done.stderr == ""


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


def test_bytes_of_all_files_are_the_whole(office):
    lines = (office / "people.csv").read_text().splitlines(keepends=True)
    (office / "rest.csv").write_text("".join(lines[:500]))
    scan = db.scan([office / "people.csv", office / "rest.csv"], block_size=5000)
    task = watched(scan)
    assert task.total == sum(os.path.getsize(office / name) for name in ("people.csv", "rest.csv"))
    for _ in range(2):  # the second pass begins anew
        done = [task.completed for _ in scan.frames()]
        assert done == sorted(done)
        assert 0 < done[0] < 20_000 < task.total
        assert done[-1] == task.total
        assert task.fields["rows"] == 2499


def test_between_passes_there_is_work_and_a_second_pass_is_called_so(office):
    scan = db.scan(office / "people.csv", block_size=5000)
    task, line = shown_of(scan)
    assert line().startswith("reading ")
    for words in ("reading ", "reading again "):
        lines = [(task.finished, task.fields["rows"], line()) for _ in scan.frames()]
        reading = [(rows, shown) for finished, rows, shown in lines if not finished]
        assert len(reading) > 5
        assert all(shown.startswith(words) and f" {rows:,} rows " in shown for rows, shown in reading)
        assert line().startswith("working ")  # trees grow, or evidence is weighed
        first = re.search("[0-9,]+ rows/s", line()).group()
        time.sleep(0.05)
        assert first in line()  # the rate is that of reading
    assert "0:00:0" in line()


def test_files_with_columns_apart_are_counted_by_their_share_of_rows(office):
    import pandas as pd

    pd.read_csv(office / "people.csv").to_parquet(office / "people.parquet", row_group_size=500)
    scan = db.scan(office / "people.parquet")
    task = watched(scan)
    done = [task.completed for _ in scan.frames()]
    assert task.total == os.path.getsize(office / "people.parquet")
    assert done == sorted(done)
    assert done[-1] == task.total
    assert task.fields["rows"] == 2000
