"""Merging models with weights: which blocks both have, and what is dropped with the others."""

from __future__ import annotations

from typing import Any

from deciban.errors import DecibanError, DroppedBlocksWarning, warn
from deciban.evidence.evidence_by_block import EvidenceByBlock
from deciban.families import Text
from deciban.generative.model import Generative

Pieces = set[tuple[str, frozenset[Any]]]  # kinds, and the names of their columns


def require_same_text(one: Generative, other: Generative) -> None:
    """Raise an error if a column is read as documents by one model only."""
    for name in _text_columns(one) ^ _text_columns(other):
        raise DecibanError(
            f"column {name!r} is text to one model and a category to the other: fit both with text=[{name!r}]"
        )


def dropped_pieces(shared: Generative, *models: tuple[Generative, EvidenceByBlock]) -> Pieces:
    """The pieces of evidence of blocks over several columns that not both models have; warns if there are any."""
    kept = {(block.plan.family, *block.names) for block in shared.blocks}
    dropped = {piece for evidence, blocks in models for piece in _pieces_beyond(evidence, blocks, kept)}
    if dropped:
        warn(
            "blocks over several columns that only one of the models has were left out, and the weights of the "
            "rest were fitted beside them: use refit_weights(X, y) before you predict, or learn the rows of the "
            "other by model.empty_copy().partial_fit(...), which keeps all",
            DroppedBlocksWarning,
        )
    return dropped


def _pieces_beyond(evidence: Generative, blocks: EvidenceByBlock, kept: set[tuple[Any, ...]]) -> Pieces:
    pieces: Pieces = set()
    for block, block_evidence in blocks:
        if block.plan.family.joint and (block.plan.family, *block.names) not in kept:
            pieces |= {
                (p.kind, frozenset(evidence.schema.all_names[j] for j in p.columns)) for p in block_evidence.pieces
            }
    return pieces


def _text_columns(evidence: Generative) -> set[Any]:
    """The columns that are read as documents."""
    return {name for b in evidence.blocks if isinstance(b.plan.family, Text) for name in b.names}
