"""Readers of all blocks of a model."""

from __future__ import annotations

from typing import Any

import numpy as np

from deciban.errors import DecibanError
from deciban.families.base import Context
from deciban.generative import Block, Generative
from deciban.late import late
from deciban.types import FloatArray
from deciban.weighing.reader import Reader

# a model has blocks of few kinds
densities = late("deciban.weighing.densities")
statistics = late("deciban.statistics")
tables = late("deciban.weighing.tables")
words = late("deciban.weighing.words")

Readers = tuple[tuple[Block, Reader], ...]


def readers_of(evidence: Generative) -> Readers:
    """Every block with what reads it."""
    return tuple((block, _reader(evidence, block)) for block in evidence.blocks)


def _reader(evidence: Generative, block: Block) -> Reader:
    """What makes pieces of evidence from a block."""
    columns, statistic = block.plan.columns, block.statistic
    family: Any = block.plan.family
    prior = evidence.counts.value / evidence.counts.value.sum()
    context = Context(evidence.classes, tuple(evidence.schema.names[j] for j in columns))
    found: Reader
    match "presence" if block.plan.presence else type(family).__name__:
        case "presence":
            found = tables.Present(columns, statistic, prior)
        case "Categorical":
            found = tables.Values(columns, statistic, prior)
        case "Binned":
            found = tables.Scales(columns, statistic, prior)
        case "Gaussian":
            found = densities.Normal(columns, statistic, *_ranges(evidence, columns))
        case "Normals":
            found = densities.Jointly(columns, family, statistic, family.estimate(statistic, context))
        case "Pairs":
            found = tables.Paired(columns, family, statistic, prior)
        case "Forest":
            found = tables.Leaves(columns, family, statistic, prior)
        case "Multinomial" | "Text":
            found = words.Words(columns, family, statistic, context)
        case name:
            raise DecibanError(f"no evidence is weighed of a {name}")
    return found


def _ranges(evidence: Generative, columns: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
    """The lowest and the highest number of each column that was seen."""
    low, high = np.full(len(columns), -np.inf), np.full(len(columns), np.inf)
    place = {j: i for i, j in enumerate(columns)}
    for block in evidence.blocks:
        if isinstance(block.statistic, statistics.Histogram):
            for i, j in enumerate(block.plan.columns):
                if j in place and len(block.statistic.keys[i]):
                    low[place[j]], high[place[j]] = block.statistic.lower(i)[0], block.statistic.upper(i)[-1]
    return low, high
