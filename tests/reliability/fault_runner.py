"""Runs commands with faults: python fault_runner.py SHIM FOLDER SCENARIOS, with SHIM (faults.c) preloaded.

A scenario is [command, call, action, error, step, most]: the first, the 1 + step-th, … call fails, or the process ends
there, until a run has no such call or there were `most` runs. Each run is a process of its own, forked when all is
imported. One line of JSON is printed for each: the scenario, the number of the call, the exit code (negative for a
signal), the file after it ("old", "new" or "torn"), the temporary files that are left after it and after another save,
and what was said on stderr.
"""

import ctypes
import io
import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import deciban as db
from deciban.cli import main
from deciban.persist.storage import replacing

ACTIONS = {"fail": 0, "kill": 1, "cut": 2}
OLD = db.NaiveBayes(db.families.Text()).fit(["lunch at noon"], ["ham"])
NEW = db.NaiveBayes().fit(np.random.default_rng(0).normal(size=(20, 400)), np.arange(20) % 2)


def save(path: Path) -> None:
    try:
        NEW.save(path)
    except db.DecibanError as error:
        raise SystemExit(str(error)) from None
    except MemoryError:
        raise SystemExit("out of memory") from None


def save_without_fsync(path: Path) -> None:
    """A bad way to save, which a power cut shows."""
    os.fsync = lambda descriptor: None
    save(path)


def command(*words: object) -> None:
    sys.argv, sys.stdout = ["deciban", *map(str, words)], io.StringIO()
    main()


def learn(path: Path) -> None:
    command("mail", "learn", path, path.parents[1] / "mail", "--as", "spam")


def fit(path: Path) -> None:
    command("fit", path.parents[1] / "table.csv", "--label", "y", "--model", "naive-bayes", "-o", path)


COMMANDS: dict[str, Callable[[Path], None]] = {work.__name__: work for work in (save, save_without_fsync, learn, fit)}


def forked(work: Callable[[], None], stderr: Path) -> int:
    """The exit code of a process that does the work; negative for a signal."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code: Any = 1
    with stderr.open("w", buffering=1) as sys.stderr:
        try:
            work()
            code = 0
        except SystemExit as end:
            code = end.code
            if isinstance(code, str):
                print(code, file=sys.stderr)
        except BaseException:
            traceback.print_exc()
    os._exit(code if isinstance(code, int) else int(code is not None))


def warm_up(work: Callable[[Path], None], path: Path) -> None:
    """Does the work in this process, so that all is imported before others are forked."""
    before = os.fsync, sys.stdout
    try:
        work(path)
    except SystemExit as end:
        if end.code:
            raise
    finally:
        os.fsync, sys.stdout = before


class Runner:
    def __init__(self, shim: str, folder: Path) -> None:
        self.faults = ctypes.CDLL(shim)
        self.path, self.stderr, self.unfired = folder / "models" / "m.deciban", folder / "stderr", folder / "unfired"
        self.path.parent.mkdir()
        (folder / "mail").write_bytes(b"Subject: cheap pills\n\nBuy now\n")
        (folder / "table.csv").write_text("x,y\n" + "".join(f"{i % 7},{'ab'[i % 2]}\n" for i in range(40)))
        OLD.save(self.path)
        self.old = self.path.read_bytes()

    def run(self, name: str, call: str, action: str, error: int, step: int, most: int) -> None:
        self.path.write_bytes(self.old)
        warm_up(COMMANDS[name], self.path)
        states = {self.old: "old", self.path.read_bytes(): "new"}
        assert len(states) == 2
        for number in range(1, 1 + step * most, step):
            self.path.write_bytes(self.old)
            self.unfired.unlink(missing_ok=True)
            folder, wanted = os.fsencode(self.path.parent), ctypes.c_long(number)
            planned = (folder, call.encode(), wanted, ACTIONS[action], error)
            code = forked(lambda planned=planned: self._work(name, planned), self.stderr)  # type: ignore[misc]
            if self.unfired.exists():
                break
            state, left = states.get(self.path.read_bytes(), "torn"), self._others()
            with replacing(self.path.with_name("other")):
                pass
            self.path.with_name("other").unlink()
            result = {"number": number, "code": code, "file": state, "left": left, "stale": self._others()}
            scenario = {"command": name, "call": call, "action": action}
            print(json.dumps(scenario | result | {"said": self.stderr.read_text()}))

    def _work(self, name: str, planned: tuple[Any, ...]) -> None:
        self.faults.fault_plan(*planned)
        try:
            COMMANDS[name](self.path)
        finally:
            if not self.faults.fault_end():
                self.unfired.touch()

    def _others(self) -> int:
        return len(os.listdir(self.path.parent)) - 1


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=sys.argv[2]) as place:
        runner = Runner(sys.argv[1], Path(place))
        for scenario in json.loads(sys.argv[3]):
            runner.run(*scenario)
