"""The notebooks of the lectures are those that their pages make, and they run."""

from __future__ import annotations

import doctest
import json
import runpy
import sys
import types
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "examples" / "lectures"
TOOL = runpy.run_path(str(ROOT / "tools" / "notebooks.py"))
NAMES = sorted(path.stem for path in (ROOT / "docs" / "lectures").glob("*.md") if path.stem != "index")


def cells(name: str) -> list[dict[str, Any]]:
    return json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]


def test_sessions_become_code() -> None:
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
    for test in finder.find(TOOL["session"], globs=TOOL):
        runner.run(test)
    assert (runner.tries, runner.failures) == (4, 0)


def test_notebooks_are_current() -> None:
    made = {f"{name}.ipynb": text for name, text in TOOL["all_notebooks"]().items()}
    committed = {path.name: path.read_text(encoding="utf-8") for path in NOTEBOOKS.glob("*.ipynb")}
    assert sorted(committed) == sorted(made), "make notebooks"
    assert [name for name, text in made.items() if committed[name] != text] == [], "make notebooks"


@pytest.mark.parametrize("name", NAMES)
def test_cells_have_unique_names_and_code(name: str) -> None:
    ids = [cell["id"] for cell in cells(name)]
    assert len(ids) == len(set(ids))
    assert all(len(identity) <= 64 for identity in ids)  # as the format demands
    assert {cell["cell_type"] for cell in cells(name)} == {"code", "markdown"}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_notebooks_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From top to bottom, in a folder of their own; tests/test_docs.py compares what the pages print."""
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType(f"notebook_{name.replace('-', '_')}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    module.__dict__["display"] = print
    for cell in cells(name):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), cell["id"], "exec", dont_inherit=True), module.__dict__)
