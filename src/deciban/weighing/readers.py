"""Readers of all blocks of a model."""

from __future__ import annotations

import numpy as np

from deciban.errors import DecibanError
from deciban.families import Binned, Categorical, Context, Gaussian, Multinomial, Text
from deciban.families.celled import Pairs
from deciban.families.forest import Forest
from deciban.families.normals import Normals
from deciban.generative import Block, Generative
from deciban.statistics import Histogram
from deciban.types import FloatArray
from deciban.weighing.densities import Jointly, Normal, Words
from deciban.weighing.reader import Reader
from deciban.weighing.tables import Leaves, Paired, Present, Scales, Values

Readers = tuple[tuple[Block, Reader], ...]


def readers_of(evidence: Generative) -> Readers:
    """Every block with what reads it."""
    return tuple((block, _reader(evidence, block)) for block in evidence.blocks)


def _reader(evidence: Generative, block: Block) -> Reader:
    """What makes pieces of evidence from a block."""
    family, columns = block.plan.family, block.plan.columns
    statistic = block.statistic
    prior = evidence.counts.value / evidence.counts.value.sum()
    context = Context(evidence.classes, tuple(evidence.schema.names[j] for j in columns))
    if block.plan.presence:
        return Present(columns, statistic, prior)  # type: ignore[arg-type]
    match family:
        case Categorical():
            return Values(columns, statistic, prior)  # type: ignore[arg-type]
        case Binned():
            return Scales(columns, statistic, prior)  # type: ignore[arg-type]
        case Gaussian():
            return Normal(columns, statistic, *_ranges(evidence, columns))  # type: ignore[arg-type]
        case Normals():
            return Jointly(columns, family, statistic, family.estimate(statistic, context))  # type: ignore[arg-type]
        case Pairs():
            return Paired(columns, family, statistic, prior)  # type: ignore[arg-type]
        case Forest():
            return Leaves(columns, family, statistic, prior)  # type: ignore[arg-type]
        case Multinomial() | Text():
            return Words(columns, family, statistic, context)  # type: ignore[arg-type]
    raise DecibanError(f"no evidence is weighed of a {type(family).__name__}")


def _ranges(evidence: Generative, columns: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
    """The lowest and the highest number of each column that was seen."""
    low, high = np.full(len(columns), -np.inf), np.full(len(columns), np.inf)
    place = {j: i for i, j in enumerate(columns)}
    for block in evidence.blocks:
        if isinstance(block.statistic, Histogram):
            for i, j in enumerate(block.plan.columns):
                if j in place and len(block.statistic.keys[i]):
                    low[place[j]], high[place[j]] = block.statistic.lower(i)[0], block.statistic.upper(i)[-1]
    return low, high
