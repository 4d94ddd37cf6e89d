"""CONTRIBUTING's recipe for a family works as it is written: its files, a fit, a report and the command line."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import deciban
from deciban import _kernels, _version

# An editable install answers imports of the package before the path is asked: its finder is taken out.
SITE = """
import sys

sys.meta_path = [finder for finder in sys.meta_path if "ScikitBuild" not in type(finder).__name__]
"""
ROOT = Path(__file__).resolve().parents[1]
RECIPE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
USE = """
import numpy as np
import pandas as pd
import deciban as db
from tests.cli.runs import NAIVE_BAYES, run
from tests.families.test_geometric import test_density_agrees_with_scipy

assert db.families.Geometric.__module__ == "deciban.families.geometric"
test_density_agrees_with_scipy()
rng = np.random.default_rng(0)
line = np.repeat(["old", "new"], 80)
rows = pd.DataFrame({"failures": rng.geometric(np.where(line == "old", 0.2, 0.5)) - 1, "line": line})
model = db.NaiveBayes({"failures": db.families.Geometric()}).fit(rows, "line")
assert "failures = 9" in str(model.explain(pd.DataFrame({"failures": [9]})))
assert "failures (Geometric)" in str(model.summary())
model.save("model.deciban")
loaded = db.load("model.deciban")
assert (loaded.predict_proba(rows) == model.predict_proba(rows)).all()
model.report(rows, "line").save("report.html")
rows.to_csv("rows.csv", index=False)
run("fit", "rows.csv", "--label", "line", *NAIVE_BAYES, "--columns", "failures=geometric", "-o", "cli.deciban", "-q")
assert (db.load("cli.deciban").predict_proba(rows) == model.predict_proba(rows)).all()
assert "proba_old" in run("predict", "cli.deciban", "rows.csv").stdout
run("report", "cli.deciban", "rows.csv", "-o", "cli.html", "-q")
"""


def written_files() -> dict[str, str]:
    """The files of the recipe for a family, by their paths."""
    blocks = re.findall(r"^```python\n# (\S+\.py)\n(.*?)^```$", RECIPE, re.MULTILINE | re.DOTALL)
    return {path: text for path, text in blocks if "geometric" in path}


def registered(source: str) -> str:
    """The registry with the lines of the recipe: the import beside the others, the entry first."""
    added = re.search(r"^```diff\n# src/deciban/families/__init__\.py\n\+(.*)\n\+(.*)\n```$", RECIPE, re.MULTILINE)
    assert added is not None
    source = source.replace("if TYPE_CHECKING:\n", f"if TYPE_CHECKING:\n{added[1]}\n", 1)
    return re.sub(r"^(FAMILIES\b.*\{)$", lambda head: f"{head[0]}\n{added[2]}", source, count=1, flags=re.MULTILINE)


def test_the_recipe_for_a_family_works_from_its_files_to_the_command_line(tmp_path: Path) -> None:
    package = tmp_path / "src" / "deciban"
    shutil.copytree(
        Path(deciban.__file__).parent, package, ignore=shutil.ignore_patterns("*.so", "_version.py", "__pycache__")
    )
    for built in (_kernels, _version):  # an editable install has them elsewhere
        (package / Path(built.__file__).name).symlink_to(built.__file__)
    shutil.copytree(ROOT / "tests", tmp_path / "tests", ignore=shutil.ignore_patterns("references", "__pycache__"))
    files = written_files()
    assert set(files) == {"src/deciban/families/geometric.py", "tests/families/test_geometric.py"}
    for path, text in files.items():
        (tmp_path / path).write_text(text, encoding="utf-8")
    registry = package / "families" / "__init__.py"
    registry.write_text(registered(registry.read_text(encoding="utf-8")), encoding="utf-8")
    (package.parent / "sitecustomize.py").write_text(SITE, encoding="utf-8")
    paths = os.pathsep.join([str(package.parent), str(tmp_path)])
    command = [sys.executable, "-W", "error", "-c", USE]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_the_files_that_recipes_name_exist() -> None:
    """Each path in backticks, except those of what is to be added."""
    paths = re.findall(r"`((?:src/deciban|tests|docs|export|cli|evidence|report)/[\w./-]+\.\w+)`", RECIPE)
    rooms = ("", "src/deciban/")
    missing = [p for p in paths if "NAME" not in p and not any((ROOT / f"{room}{p}").exists() for room in rooms)]
    assert len(paths) > 20
    assert not missing
