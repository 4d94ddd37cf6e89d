"""Faults while a model is saved: the file is the old one or the new one, never a part of one, and nothing stays behind.

`faults.c` is preloaded into a process and makes single system calls fail, or ends the process there as kill -9 or a
power cut would. DECIBAN_FAULT_ROUNDS is how often the slow test ends processes at each of their calls: 10 rounds are
more than 200 kills and 200 power cuts.
"""

import errno
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from itertools import product
from pathlib import Path

import pytest

HERE = Path(__file__).parent
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
ROUNDS = int(os.environ.get("DECIBAN_FAULT_ROUNDS", "2"))
ALL = 100  # more calls than any command has

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="calls are intercepted on Linux only"),
    pytest.mark.skipif(COMPILER is None, reason="there is no C compiler"),
]


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    library = tmp_path_factory.mktemp("shim") / "faults.so"
    subprocess.run([COMPILER, "-O1", "-shared", "-fPIC", "-o", library, HERE / "faults.c", "-ldl"], check=True)
    return library


def results(shim, folder, *scenarios):
    """What happened in each run of the scenarios."""
    command = [sys.executable, "-W", "ignore", HERE / "fault_runner.py", shim, folder, json.dumps(scenarios)]
    environment = {**os.environ, "LD_PRELOAD": str(shim), "PYTHONMALLOC": "malloc", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=HERE.parents[1])
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def check(runs):
    """Raises unless every run left a whole file and said what went wrong."""
    for run in runs:
        assert run["file"] in ("old", "new"), run
        assert not run["stale"], run
        if run["action"] != "fail":
            assert run["code"] == -9, run
            continue
        assert not run["left"], run
        if run["call"] == "malloc" and run["code"] == -6:  # libraries in Rust abort; `fit` reads the new file with one
            assert (run["command"], run["file"]) == ("fit", "new"), run
            continue
        assert run["code"] in (0, 1), run
        assert run["code"] or run["file"] == "new", run
        assert not run["code"] or run["said"].strip(), run
        if run["call"] != "malloc":  # the interpreter itself may need memory to raise or report an error
            assert "Traceback" not in run["said"], run


def faults(command, step):
    """Scenarios: an error of every call; the disk is full from some write on; no memory; and two ways to end."""
    return [
        [command, "any", "fail", errno.EIO, 1, ALL],  # open, write, fsync, rename, close
        [command, "write", "fail", errno.ENOSPC, 1, ALL],
        [command, "open", "fail", errno.EROFS, 1, ALL],
        [command, "malloc", "fail", errno.ENOMEM, step, ALL],
        [command, "any", "kill", 0, 1, ALL],
        [command, "any", "cut", 0, 1, ALL],
    ]


def test_a_fault_leaves_the_old_file_or_the_new_one(shim, tmp_path):
    learn, cut = ["learn", "any", "fail", errno.EIO, 1, ALL], ["save_without_fsync", "any", "cut", 0, 1, ALL]
    runs = results(shim, tmp_path, *faults("save", 20), learn, cut)
    bad = [run for run in runs if run["command"] == "save_without_fsync"]
    assert any(run["file"] == "torn" for run in bad)  # so power cuts are simulated as they should be
    runs = [run for run in runs if run not in bad]
    check(runs)
    assert {(run["action"], run["file"]) for run in runs} == {*product(("fail", "kill", "cut"), ("old", "new"))}
    said = {(run["call"], run["said"].partition(" cannot be written: ")[2][:16]) for run in runs}
    assert {("any", "Input/output err"), ("write", "the disk is full"), ("open", "you may not writ")} <= said
    assert any("out of memory" in run["said"] for run in runs)


@pytest.mark.slow
def test_every_fault_of_every_command(shim, tmp_path):
    rounds = [[name, "any", action, 0, 1, ALL] for name in ("save", "learn") for action in ("kill", "cut")] * ROUNDS
    runs = results(shim, tmp_path, *faults("save", 1), *faults("learn", 3), *faults("fit", 40), *rounds)
    check(runs)
    ended = Counter(run["action"] for run in runs)
    assert min(ended["kill"], ended["cut"]) >= 20 * ROUNDS
