"""Registry: the classes that a model file may hold, by their names there, and where they are."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from deciban import statistics
from deciban.evidence.kinds import stored_families
from deciban.families import FAMILIES

Home = tuple[str, str]  # a module and a class in it


def named(prefix: str, module: str, *classes: str) -> dict[str, Home]:
    return {prefix + name: (module, name) for name in classes}


class FamilyHomes(Mapping[str, Home]):
    """Every registered family and its parameters."""

    def _homes(self) -> dict[str, Home]:
        return {
            stored if stored in family.params else f"families.{stored}": (family.module, stored)
            for name, family in FAMILIES.items()
            for stored in (name, *family.params)
        }

    def __getitem__(self, name: str) -> Home:
        return self._homes()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes())

    def __len__(self) -> int:
        return len(self._homes())


# A renamed class keeps its name in files.
OTHER_HOMES: dict[str, Home] = {
    **stored_families(),
    **named("", "deciban.evidence.mixed_columns", "Coding", "Encoding"),
    **named("", "deciban.evidence.level_combinations", "LevelCodes"),
    **named("priors.", "deciban.families.priors", "Beta", "Dirichlet", "InverseGamma", "InverseWishart", "Laplace"),
    **named("priors.", "deciban.families.priors", "Background", "Normal", "Virtual"),
    **named("", "deciban.statistics.cell_counts", "Cells"),
    **named("", "deciban.statistics.extrema", "Least"),
    **{name: (module, name) for name, module in statistics.HOMES.items() if name != "Statistic"},
    **named("", "deciban.data.terms", "Terms"),
    **named("", "deciban.families.family", "Natural"),
    **named("", "deciban.families.rate_family", "RateParams"),
    **named("", "deciban.data.batch", "Notation"),
    "Derived": ("deciban.data.batch", "DerivedColumn"),
    **named("", "deciban.contributions", "ColumnEvidence"),
    **named("", "deciban.data.schema", "Schema"),
    **named("", "deciban.generative.plan", "Plan"),
    **named("", "deciban.generative.block", "Block"),
    **named("", "deciban.generative.model", "Generative"),
    **named("", "deciban.evidence.weights", "UnknownColumns", "Weights"),
    **named("", "deciban.evidence.uninformative", "ColumnFacts"),
    "Choice": ("deciban.generative.selection", "Selection"),
    "Contest": ("deciban.generative.selection", "FamilyComparison"),
    **named("", "deciban.linear.encoders", "Numbers", "Indicators", "Sufficient"),
    **named("", "deciban.linear.design", "Part", "Design"),
    **named("", "deciban.linear.predictor", "Predictor"),
    **named("", "deciban.linear.inference", "Inference"),
    **named("", "deciban.linear.separation", "Certificate"),
    **named("", "deciban.table", "Table"),
}
HOMES: ChainMap[str, Home] = ChainMap(OTHER_HOMES, FamilyHomes())  # type: ignore[arg-type]


@cache
def class_at(home: Home) -> type:
    module, name = home
    kind: Any = getattr(import_module(module), name)
    assert isinstance(kind, type)
    return kind
