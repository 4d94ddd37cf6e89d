"""The oldest version of every dependency that pyproject.toml allows, one requirement a line: `numpy==1.26`.

    python tools/minimum_versions.py plot dask spark > minimum.txt

With the runtime dependencies come those of the extras that are named; what tests need besides may be of any version.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def minimum(requirement: Requirement) -> str:
    """The requirement with its lower bound instead of its range.

    >>> minimum(Requirement("dask[array]>=2025.1,<2027"))
    'dask[array]==2025.1'
    """
    bounds = [each.version for each in requirement.specifier if each.operator == ">="]
    if len(bounds) != 1:
        raise SystemExit(f"{requirement} has no lower bound: write {requirement.name}>=VERSION")
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    marker = f"; {requirement.marker}" if requirement.marker else ""
    return f"{requirement.name}{extras}=={bounds[0]}{marker}"


def minimum_versions(extras: list[str]) -> list[str]:
    """The minimum of every runtime dependency, and of those of the extras."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    if unknown := [extra for extra in extras if extra not in optional]:
        raise SystemExit(f"no such extra: {', '.join(unknown)}; there are {', '.join(optional)}")
    groups = [project["dependencies"], *(optional[extra] for extra in extras)]
    requirements = [Requirement(text) for group in groups for text in group]
    return [minimum(each) for each in requirements if each.name != project["name"]]


if __name__ == "__main__":
    print("\n".join(minimum_versions(sys.argv[1:])))
