"""Readers of all blocks of a model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from deciban.batch import Batch
from deciban.errors import DecibanError
from deciban.families.base import Context
from deciban.generative import Block, Generative, class_counts
from deciban.late import late
from deciban.plans import read
from deciban.types import FloatArray
from deciban.weighing.reader import Reader, Rows

# a model has blocks of few kinds
densities = late("deciban.weighing.densities")
forest_leaves = late("deciban.weighing.forest_leaves")
statistics = late("deciban.statistics")
tables = late("deciban.weighing.tables")
words = late("deciban.weighing.words")

Readers = tuple[tuple[Block, Reader], ...]


def readers_of(evidence: Generative) -> Readers:
    """Every block with what reads it."""
    return tuple((block, _reader(evidence, block)) for block in evidence.blocks)


def readers_without(evidence: Generative, readers: Readers, batch: Batch) -> tuple[Generative, Readers]:
    """What is left of a model, and what reads its blocks, without some rows that it has learned.

    Where nothing but counts changes, the reader takes them off itself; else it is made again from what is left. The
    blocks of the model that is returned are those of all rows: they say how cells are read, and no more.
    """
    counts = evidence.counts - class_counts(batch).place(
        [evidence.classes.index(label) for label in batch.classes], len(evidence.classes)
    )
    kept = np.flatnonzero(counts.value > 0)
    left = replace(evidence, classes=tuple(evidence.classes[k] for k in kept), counts=counts.take(kept))
    places, found = evidence.schema.places(batch.frame), []
    for block, reader in readers:
        levels = block.statistic.levels if isinstance(block.statistic, statistics.Counts) else None
        values = read(block.plan, batch.frame, places, levels, evidence.missing)
        rest = reader.without(Rows(values, batch.labels, batch.weights), kept)
        if rest is None:
            gone = block.plan.family.collect(values, batch.labels, batch.weights, len(evidence.classes))
            rest = _reader(left, Block(block.plan, (block.statistic - gone).take(kept)))
        found.append((block, rest))
    return left, tuple(found)


def _reader(evidence: Generative, block: Block) -> Reader:
    """What makes pieces of evidence from a block."""
    columns, statistic = block.plan.columns, block.statistic
    family: Any = block.plan.family
    rows = evidence.counts.value
    context = Context(evidence.classes, tuple(evidence.schema.all_names[j] for j in columns))
    found: Reader
    match "presence" if block.plan.presence else type(family).__name__:
        case "presence":
            found = tables.Present(columns, statistic, rows)
        case "Categorical":
            found = tables.Values(columns, statistic, rows)
        case "Binned":
            found = tables.Scales(columns, statistic, rows)
        case "Gaussian":
            found = densities.Normal(columns, statistic, *_ranges(evidence, columns))
        case "Normals":
            found = densities.Jointly(columns, family, statistic, family.estimate(statistic, context))
        case "Pairs":
            found = tables.Paired(columns, family, statistic, rows)
        case "Forest":
            found = forest_leaves.ForestLeaves(columns, family, statistic, rows)
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
