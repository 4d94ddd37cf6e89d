"""What the tests of the command line share: running it, a mixed table, and models of it that are fitted once."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import deciban as db
from deciban import cli

DATA = Path(os.environ.get("DECIBAN_DATA", "")) / "tables"
needs_data = pytest.mark.skipif(not os.environ.get("DECIBAN_DATA"), reason="DECIBAN_DATA names no folder")
FEATURES = ["status", "income", "age", "member"]
NAIVE_BAYES = ["--model", "naive-bayes"]
KINDS = {"evidence": ([], db.EvidenceClassifier), "naive-bayes": (NAIVE_BAYES, db.NaiveBayes)}  # by fit; in memory
MAIN = "from deciban.cli import main; main()"
ROWS, LATER = 200, 60  # of people.csv, to fit models by, and of later.csv


def run(*args: object, code: int = 0, input: str | bytes | None = None) -> Any:
    """The command, in this process."""
    done = CliRunner().invoke(cli.app, [*map(str, args)], input=input)
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == code, (done.exit_code, done.stdout, done.stderr)
    return done


def refused(*args: object) -> str:
    """The one line on stderr of a command that fails."""
    done = run(*args, code=1)
    assert done.stdout == ""
    assert done.stderr.startswith("deciban: ")
    assert done.stderr.count("\n") == 1
    return str(done.stderr)


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def on_a_terminal(*args: object) -> tuple[str, str]:
    """What the command writes to standard output, and what a terminal as stderr is shown."""
    out, shown = io.TextIOWrapper(io.BytesIO()), Terminal()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", shown)
        patch.setenv("TERM", "xterm")
        patch.setenv("COLUMNS", "120")
        assert not cli.app([*map(str, args)], prog_name="deciban", standalone_mode=False)
    out.flush()
    return out.buffer.getvalue().decode(), shown.getvalue()


def command(*args: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """The command, as a process of its own."""
    line = [sys.executable, "-c", MAIN, *map(str, args)]
    return subprocess.run(line, capture_output=True, text=True, check=False, **options)


def people(n: int, seed: int = 0) -> pd.DataFrame:
    """A mixed table with missing values: text, numbers, integers and booleans, all informative about the class."""
    rng = np.random.default_rng(seed)
    evade = rng.random(n) < 0.4
    status = np.where(rng.random(n) < 0.3 + 0.4 * evade, "single", "married, or so").astype(object)
    status[rng.random(n) < 0.1] = None
    income = np.round(rng.normal(100 - 20 * evade, 15), 3)
    income[rng.random(n) < 0.05] = np.nan
    return pd.DataFrame(
        {
            "id": [f"{i:05d}" for i in range(n)],
            "status": status,
            "income": income,
            "age": rng.integers(18, 90, n),
            "member": rng.random(n) < 0.5 - 0.2 * evade,
            "evade": np.where(evade, "yes", "no"),
        }
    )


@cache
def fitted(*args: str, rows: int = ROWS, seed: int = 0, label: str = "evade") -> bytes:
    """The model file that `deciban fit` makes of people."""
    with TemporaryDirectory() as folder:
        table, model = Path(folder) / "people.csv", Path(folder) / "m.deciban"
        people(rows, seed).drop(columns="id").rename(columns={"evade": label}).to_csv(table, index=False)
        run("fit", table, "--label", label, *args, "-o", model)
        return model.read_bytes()


@cache
def in_memory(kind: str, rows: int = ROWS) -> Any:
    """The same model without files. It is shared: copy it before it learns more."""
    table = people(rows)
    return KINDS[kind][1]().fit(table[FEATURES], table.evade.to_numpy(dtype=object))


def write_people(folder: Path, kind: str = "evidence") -> None:
    """Rows (people.csv), a model of them (m.deciban), and rows that it has not seen (later.csv)."""
    people(ROWS).drop(columns="id").to_csv(folder / "people.csv", index=False)
    people(LATER, seed=3).to_csv(folder / "later.csv", index=False)
    (folder / "m.deciban").write_bytes(fitted(*KINDS[kind][0]))


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
