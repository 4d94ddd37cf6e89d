"""The evidence of all blocks of a model, and the same without some training rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from deciban.data.batch import Batch
from deciban.data.class_index import ClassIndex
from deciban.data.matched_frame import MatchedFrame
from deciban.evidence.block_evidence import BlockEvidence
from deciban.evidence.kinds import kind_for
from deciban.families.labelled_values import LabelledValues
from deciban.generative.block import Block
from deciban.generative.model import Generative, class_counts

EvidenceByBlock = tuple[tuple[Block, BlockEvidence], ...]


def evidence_by_block(model: Generative) -> EvidenceByBlock:
    return tuple((block, kind_for(block.plan).from_block(block, model)) for block in model.blocks)


def subtract_rows(model: Generative, sources: EvidenceByBlock, batch: Batch) -> tuple[Generative, EvidenceByBlock]:
    """A model and its evidence without some training rows, for the classes that still have rows.

    The blocks of the returned model are still those of all rows: they are only used to read values.
    """
    index = ClassIndex(model.classes).positions(batch.classes)
    counts = model.counts - class_counts(batch).scatter(index, len(model.classes))
    kept = np.flatnonzero(counts.value > 0)
    rest = replace(model, classes=tuple(model.classes[k] for k in kept), counts=counts.take(kept))
    rows, remaining = MatchedFrame.of(model.schema, batch), []
    for block, source in sources:
        subtracted = LabelledValues(block.read(rows), batch.labels, batch.weights)
        evidence = source.subtract(subtracted, kept)
        if evidence is None:  # made from the statistic of the other rows
            statistic = block.family.collect(subtracted.values, batch.labels, batch.weights, len(model.classes))
            evidence = type(source).from_block(block.with_statistic((block.statistic - statistic).take(kept)), rest)
        remaining.append((block, evidence))
    return rest, tuple(remaining)
