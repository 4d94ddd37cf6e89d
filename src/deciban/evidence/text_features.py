"""Detects which categorical features are documents."""

from __future__ import annotations

from dataclasses import replace

from deciban.evidence.term_evidence import TEXTS
from deciban.generative.block import Block
from deciban.generative.model import Generative
from deciban.generative.plan import Plan, with_presence
from deciban.statistics import Counts

WORDS = 3  # of a document on average, at least; fewer are a name
DISTINCT = 1 / 3  # of the values, at least, if they are documents
IDEOGRAPHS = "\u2e80"  # the first
SAMPLED = 2000  # distinct values, at least, whose words are counted


def split_text(model: Generative, rows: int) -> tuple[Generative, tuple[Plan, ...]]:
    """The model without the categories that are documents, and plans for these.

    Documents are values of several words that are seldom repeated in the rows.
    """
    coded = [block for block in model.blocks if block.levels is not None]
    row_weight = float(model.counts.value.sum()) / max(rows, 1)
    texts = [
        j
        for block in coded
        for i, j in enumerate(block.columns)
        if _is_text(block.statistic.columns([i]), row_weight)  # type: ignore[arg-type]
    ]
    if not texts:
        return model, ()
    blocks = []
    for block in model.blocks:
        removed = texts if block in coded else []
        kept = [i for i, j in enumerate(block.columns) if j not in removed]
        if kept:
            plan = replace(block.plan, columns=tuple(block.columns[i] for i in kept))
            blocks.append(Block(plan, block.statistic.columns(kept)) if plan != block.plan else block)
    plans = [Plan(family, (j,)) for j in texts for family in TEXTS]
    return replace(model, blocks=tuple(blocks)), tuple(with_presence(plans))


def _is_text(counts: Counts, row_weight: float) -> bool:
    """Whether the values are documents; `row_weight` is the mean weight of a row."""
    weights = counts.table.value.sum(axis=0).tolist()
    present = sum(weight for weight, level in zip(weights, counts.levels[0], strict=True) if level)
    texts = [level for level in counts.levels[0] if isinstance(level, str)]
    if len(texts) * row_weight < DISTINCT * present:
        return False
    sample = texts[:: max(1, len(texts) // SAMPLED)]
    return bool(sample) and sum(map(_count_words, sample)) >= WORDS * len(sample)


def _count_words(text: str) -> int:
    """Words between spaces; in scripts without spaces, ideographs."""
    return len(text.split()) if text.isascii() else max(len(text.split()), sum(c >= IDEOGRAPHS for c in text))
