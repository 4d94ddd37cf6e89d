"""The examples run without warnings and print what they promise."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
EXPECTED = {  # lines that an example prints
    "1_mixed_table.py": ["training rows: 1500, after the update 2000"],
    "2_text.py": ["after it was forgotten, the same to the last bit: True"],
    "3_merge_and_forget.py": [
        "merged equals fitted in one place: True",
        "forgotten equals never trained on: True",
        "rows now: 380",  # 569 without every third
        "and back again: True",
    ],
    "4_twins.py": ["the twin predicts the same: True"],
    "5_glm.py": ["GeneralizedLinearModel: poisson response, log link, 2000 rows, 5 parameters"],
}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_examples_run(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)  # where they write files
    runpy.run_path(str(script), run_name="__main__")
    printed = capsys.readouterr()
    assert not printed.err
    missing = set(EXPECTED[script.name]) - set(printed.out.splitlines())
    assert not missing, printed.out


def test_examples_are_short_and_listed() -> None:
    assert [script.name for script in SCRIPTS] == list(EXPECTED)
    for script in SCRIPTS:
        assert len(script.read_text(encoding="utf-8").splitlines()) < 60
        assert f"[{script.name}]({script.name})" in (EXAMPLES / "README.md").read_text(encoding="utf-8")
