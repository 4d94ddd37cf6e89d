"""The examples run, warn of nothing, and show what they say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
SHOWN = {  # what must be among the lines that an example prints, or among the files that it writes
    "1_mixed_table.py": ["loans.deciban learned 1500 rows, and then 2000"],
    "2_text.py": ["after it was forgotten, the same to the last bit: True"],
    "3_merge_and_forget.py": [
        "merged is fitted in one place: True",
        "forgotten is never learned: True",
        "rows now: 380",  # of 569, less every third
        "and back again: True",
    ],
    "4_twins.py": ["the twin says the same: True"],
    "5_glm.py": ["GeneralizedLinearModel: poisson response, log link, 2000 rows, 5 parameters"],
}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_examples_run(script: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", script]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    lacking = set(SHOWN[script.name]) - set(done.stdout.splitlines())
    assert not lacking, done.stdout


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_examples_are_short_and_listed(script: Path) -> None:
    assert len(script.read_text(encoding="utf-8").splitlines()) < 60
    assert f"[{script.name}]({script.name})" in (EXAMPLES / "README.md").read_text(encoding="utf-8")


def test_there_are_examples() -> None:
    assert [script.name for script in SCRIPTS] == list(SHOWN)
