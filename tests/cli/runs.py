"""What the tests of the command line share: running it, and a mixed table."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
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
LEARNED = {"evidence": ([], db.EvidenceClassifier), "naive-bayes": (NAIVE_BAYES, db.NaiveBayes)}  # by fit; in memory


def run(*args: object, code: int = 0, input: str | bytes | None = None) -> Any:
    """The command, in this process."""
    done = CliRunner().invoke(cli.app, [*map(str, args)], input=input)
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == code, (done.exit_code, done.stdout, done.stderr)
    return done


def command(*args: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """The command, as a process of its own."""
    line = [sys.executable, "-c", "from deciban.cli import main; main()", *map(str, args)]
    return subprocess.run(line, capture_output=True, text=True, check=False, **options)


def people(n: int, seed: int = 0) -> pd.DataFrame:
    """A mixed table with holes: text, numbers, whole numbers, true and false, and a class that they tell of."""
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
