"""Which kinds of evidence of several features are worth their time in a table of many rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Self

import numpy as np

from deciban.data import Sample
from deciban.data.schema import Schema
from deciban.evidence.block_evidence import BlockEvidence, EvidencePiece
from deciban.evidence.candidates import WIDE, candidate_paths
from deciban.evidence.evidence_by_block import evidence_by_block
from deciban.evidence.evidence_rows import EvidenceRows
from deciban.evidence.pair_tables import PairTables
from deciban.evidence.structure import JointSettings, joint_plans
from deciban.evidence.weight_solver import Evidence, log_losses
from deciban.generative.model import Generative
from deciban.generative.plan import Missing, Plan, rank
from deciban.types import BoolArray, FloatArray

FEWEST_ROWS = 20_000  # of a table: in smaller ones all kinds are used
ROWS = 10_000  # that select kinds, about
TREES, BOOSTING = 32, (5, 150)  # of the forest, and ensembles and rounds of boosted trees, grown from these rows
PENALTY = "penalty 3"  # of the weights that are compared
TOLERANCE = 1e-6  # of their fits
LEAST = 1e-3  # of the log-loss: a kind that may gain as much is used

Kinds = Collection[type[BlockEvidence]]


def kinds_without_gain(
    sample: Sample, schema: Schema, plans: Sequence[Plan], missing: Missing, settings: JointSettings
) -> Kinds:
    """The kinds of evidence of several features that a sample of the rows is not predicted better by.

    To the evidence of single features, kinds are added one by one, the best first, as long as the next one gains
    0.1 % of the log-loss, or may gain that much by its standard error. Weights are fitted to half of the rows and
    judged by the other half. Pairs are used in any case if a number of them is asked for; otherwise only if some of
    these rows find any.
    """
    if len(np.unique(sample.labels.codes)) < 2:
        return ()
    compared = _Compared.of(sample, schema, plans, missing, settings)
    others: set[type[BlockEvidence]] = {kind for kind in compared.kinds if kind is not None}
    used: set[type[BlockEvidence]] = {kind for kind in others if settings.pairs and kind is PairTables}
    losses = compared.losses(used)
    while others - used:
        tried = {kind: compared.losses({*used, kind}) for kind in sorted(others - used, key=lambda kind: kind.__name__)}
        best = min(tried, key=lambda kind: float(tried[kind].sum()))
        gains = losses - tried[best]
        if gains.sum() + sqrt(len(gains)) * gains.std() < LEAST * losses.sum():
            break
        used, losses = {*used, best}, tried[best]
    if settings.pairs is None:
        others.add(PairTables)
    return others - used


@dataclass(frozen=True)
class _Compared:
    """The evidence of a sample of rows, by kinds."""

    evidence: Evidence
    pieces: Sequence[EvidencePiece]
    kinds: Sequence[type[BlockEvidence] | None]  # (P) of each piece; None for single features
    selected: BoolArray  # (P)

    @classmethod
    def of(
        cls, sample: Sample, schema: Schema, plans: Sequence[Plan], missing: Missing, settings: JointSettings
    ) -> Self:
        single = Generative.collect(sample, schema, plans, missing)
        quick = replace(settings, trees=min(settings.trees, TREES), boosting=BOOSTING)
        joint = joint_plans(single, sample, quick)
        blocks = (
            (*single.blocks, *Generative.collect(sample, schema, joint, missing).blocks) if joint else single.blocks
        )
        whole = replace(single, blocks=tuple(sorted(blocks, key=lambda block: rank(block.plan))))
        sources, rows = evidence_by_block(whole), EvidenceRows.of_fit(whole, sample, settings.seed)
        evidence, pieces, _ = rows.evidence(sources)
        kinds = [type(source) if block.plan in joint else None for block, source in sources for _ in source.pieces]
        return cls(evidence, pieces, kinds, rows.selected(sources))

    def losses(self, used: Kinds) -> FloatArray:
        """(n) −log p of each row times its weight, by weights of single features and some kinds."""
        among = self.selected & np.array([kind is None or kind in used for kind in self.kinds], np.bool_)
        rows = np.arange(len(self.evidence.labels))
        out = np.empty(len(rows))
        for judged in (rows % 2 == 0, rows % 2 == 1):
            train, test = (self.evidence.take(np.flatnonzero(half)) for half in (~judged, judged))
            wide = len(self.pieces) >= WIDE
            paths = candidate_paths(train, self.pieces, among, wide=wide, tol=TOLERANCE, names=[PENALTY])
            weights = next(weights for path in paths for name, weights in path if name == PENALTY)
            losses = log_losses(weights.scores(test), test.labels)
            out[judged] = losses if test.weights is None else test.weights * losses
        return out
