"""The pages of the API reference, one for each public class or function, from their docstrings.

A page is a title and a directive, which mkdocstrings fills in. The indexes in docs/reference/ get a table of the pages
of their group, so a new name is added in one place: here, or for families and priors in their `__all__`.
"""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import deciban

# What all families do is on the page of Family; their own pages leave it out.
FAMILY = "deciban.families.Family"
BASES = ("Family", "Natural", "Context")  # listed after the densities
ALIASES = {"Table"}  # of families, which is documented among the results

GROUPS: dict[str, tuple[str, ...]] = {  # index page: what it lists; names after a comma share a page
    "models": (
        "deciban.EvidenceClassifier",
        "deciban.NaiveBayes",
        "deciban.GaussianDiscriminant",
        "deciban.LogisticRegression",
        "deciban.SoftmaxRegression",
        "deciban.GeneralizedLinearModel",
        "deciban.Halfspace",
        "deciban.CalibratedClassifier",
        "deciban.load",
    ),
    "evaluating": (
        "deciban.evaluate",
        "deciban.cross_validate",
        "deciban.learning_curve",
        "deciban.Evaluation",
        "deciban.Roc",
        "deciban.evaluation.threshold_rates.Rates",
    ),
    "results": (
        "deciban.display.explanation.Explanation",
        "deciban.display.summary.Summary",
        "deciban.table.Table",
        "deciban.report.Report",
    ),
    "rows": ("deciban.scan, deciban.data.files.scan.Scan", "deciban.data.input_types"),
    "families": (
        *(f"deciban.families.{name}" for name in deciban.families.__all__ if name not in {*BASES, *ALIASES}),
        *(f"deciban.families.{name}" for name in BASES),
    ),
    "priors": tuple(f"deciban.priors.{name}" for name in deciban.priors.__all__),
    "errors": (
        "deciban.DecibanError",
        "deciban.RowError",
        "deciban.NegativeEvidence",
        "deciban.NotInvertible",
        "deciban.DecibanWarning",
        "deciban.LeakageWarning",
    ),
    "engines": ("deciban.engines.dask", "deciban.engines.spark"),
}


def write_pages(folder: Path) -> None:
    """Writes the page of every name, and completes the index of every group."""
    for group, entries in GROUPS.items():
        index = folder / f"{group}.md"
        lines = [f"| [`{short(entry)}`]({page(entry)}) | {purpose(entry)} |" for entry in entries]
        table = "\n".join(["| name | purpose |", "|---|---|", *lines])
        index.write_text(f"{index.read_text(encoding='utf-8').rstrip()}\n\n{table}\n", encoding="utf-8")
        for entry in entries:
            directives = "\n\n".join(directive(name) for name in entry.split(", "))
            (folder / page(entry)).write_text(directives + "\n", encoding="utf-8")


def expand_nav(nav: list[Any]) -> list[Any]:
    """The navigation, with the pages of each group below its index."""
    return [_expand(item) for item in nav]


def _expand(item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    ((title, target),) = item.items()
    if isinstance(target, list):
        return {title: expand_nav(target)}
    group = target.removeprefix("reference/").removesuffix(".md")
    if not target.startswith("reference/") or group not in GROUPS:
        return item
    pages = [{short(entry): f"reference/{page(entry)}"} for entry in GROUPS[group]]
    return {title: [{"Overview": target}, *pages]}


def page(entry: str) -> str:
    """The file of an entry.

    >>> page("deciban.scan, deciban.data.files.scan.Scan"), page("deciban.families.Gaussian")
    ('scan.md', 'Gaussian.md')
    """
    return f"{short(entry)}.md"


def short(entry: str) -> str:
    """The title of an entry: its first name, without modules."""
    return entry.split(",")[0].rpartition(".")[2]


def purpose(entry: str) -> str:
    """The first line of the docstring; engines are not imported, as their libraries may be absent."""
    name = entry.split(",")[0]
    spec = find_spec(name) if name.startswith(("deciban.engines.", "deciban.data.")) else None
    if spec is not None and spec.origin is not None:
        text = ast.get_docstring(ast.parse(Path(spec.origin).read_text(encoding="utf-8")))
    else:
        module, _, attribute = name.rpartition(".")
        text = inspect.getdoc(getattr(import_module(module), attribute))
    return (text or "").partition("\n")[0].replace("|", "\\|")


def directive(name: str) -> str:
    """What mkdocstrings replaces by the documentation of a name."""
    options = ["heading_level: 1"]
    if name.startswith("deciban.families.") and name.rpartition(".")[2] not in BASES:
        family = deciban.families.Family
        shared = "|".join(sorted(member for member in dir(family) if not member.startswith("_")))
        options += ["filters:", '  - "!^_"', f'  - "!^({shared})$"']
    return "\n".join([f"::: {name}", "    options:", *(f"      {option}" for option in options)])
