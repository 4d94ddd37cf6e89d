"""The kinds of evidence: one line each, imported when a block needs it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from deciban.errors import DecibanError

if TYPE_CHECKING:
    from deciban.evidence.block_evidence import BlockEvidence
    from deciban.generative.plan import Plan


class Kind(NamedTuple):
    """A subclass of BlockEvidence, and the family that only it uses, by its name in model files."""

    home: str  # "module:class"
    stored_as: str = ""
    family: str = ""  # "module:class"


# The first kind that accepts a block gets it; later ones are then not imported.
KINDS = [
    Kind("deciban.evidence.tables:BinTables"),
    Kind("deciban.evidence.tables:LevelTables"),
    Kind("deciban.evidence.tables:MissingnessTable"),
    Kind("deciban.evidence.term_evidence:TermEvidence"),
    Kind("deciban.evidence.densities:GaussianEvidence"),
    Kind("deciban.evidence.densities:JointGaussian", "families.Normals", "deciban.evidence.joint_normals:JointNormals"),
    Kind("deciban.evidence.pair_tables:PairTables", "families.Pairs", "deciban.evidence.partition_counts:Pairs"),
    Kind(
        "deciban.evidence.combination_tables:CombinationTables",
        "families.LevelCombinations",
        "deciban.evidence.level_combinations:LevelCombinations",
    ),
    Kind("deciban.evidence.forest_leaves:ForestLeaves", "families.Forest", "deciban.evidence.forest:Forest"),
    Kind(
        "deciban.evidence.boosted_trees:BoostedTrees",
        "families.SymmetricTrees",
        "deciban.evidence.symmetric_trees:SymmetricTrees",
    ),
]


def all_kinds() -> Iterator[type[BlockEvidence]]:
    homes = (kind.home.split(":") for kind in KINDS)
    return (getattr(import_module(module), name) for module, name in homes)


def kind_for(plan: Plan) -> type[BlockEvidence]:
    for kind in all_kinds():
        if kind.accepts(plan):
            return kind
    raise DecibanError(f"EvidenceClassifier has no evidence for a block of {type(plan.family).__name__}")


def stored_families() -> dict[str, tuple[str, str]]:
    """The families that only evidence uses: their names in model files, and their modules and classes."""
    families = ((kind.stored_as, kind.family.partition(":")) for kind in KINDS if kind.stored_as)
    return {stored: (module, name) for stored, (module, _, name) in families}
