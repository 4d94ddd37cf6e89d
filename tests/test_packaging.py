"""What pyproject.toml says is what the Makefile, the tools and the documentation say."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
TOOL = runpy.run_path(str(ROOT / "tools" / "minimum_versions.py"))


def test_the_backend_that_make_installs_is_that_of_isolated_builds() -> None:
    (backend,) = re.findall(r"^BACKEND := (.*)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert re.findall(r"'([^']+)'", backend) == SETTINGS["build-system"]["requires"]


def test_minimum_versions_are_exact_and_of_every_dependency() -> None:
    extras = ["plot", "dask", "spark"]
    pinned = [Requirement(line) for line in TOOL["minimum_versions"](extras)]
    optional = SETTINGS["project"]["optional-dependencies"]
    groups = [SETTINGS["project"]["dependencies"], *(optional[extra] for extra in extras)]
    declared = [Requirement(text) for group in groups for text in group]
    assert [each.name for each in pinned] == [each.name for each in declared]
    for exact, allowed in zip(pinned, declared, strict=True):
        ((operator, version),) = [(each.operator, each.version) for each in exact.specifier]
        assert operator == "=="
        assert version in allowed.specifier
        assert exact.extras == allowed.extras


def test_a_dependency_without_a_lower_bound_is_refused() -> None:
    with pytest.raises(SystemExit, match="numpy<3 has no lower bound: write numpy>=VERSION"):
        TOOL["minimum"](Requirement("numpy<3"))
    with pytest.raises(SystemExit, match="no such extra: plots"):
        TOOL["minimum_versions"](["plots"])


def test_the_documented_minimums_are_those_declared() -> None:
    names = {
        "Python": "Python",
        "NumPy": "numpy",
        "SciPy": "scipy",
        "scikit-learn": "scikit-learn",
        "pyarrow": "pyarrow",
    }
    text = (ROOT / "docs" / "versioning.md").read_text(encoding="utf-8")
    documented = {names[row[0]]: row[1] for row in re.findall(r"^\| ([\w-]+) \| ([\d.]+) \|", text, re.MULTILINE)}
    pinned = [Requirement(line) for line in TOOL["minimum_versions"]([])]
    declared = {each.name: next(iter(each.specifier)).version for each in pinned}
    declared["Python"] = SETTINGS["project"]["requires-python"].removeprefix(">=")
    assert documented == {name: declared[name] for name in names.values()}
