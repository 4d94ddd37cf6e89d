"""The scores of weighted evidence as formulas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from deciban.data.batch import MISSING
from deciban.evidence.weighted_evidence import WeightedEvidence
from deciban.export.formulas import Code, Formula, Lookup, Weighted
from deciban.export.score_formula import ScoreFormula
from deciban.generative.estimate_formulas import block_formula
from deciban.generative.model import Generative

NONE = -1  # no column


def evidence_formula(weighted: WeightedEvidence) -> ScoreFormula:
    """log p(c) + b_c + Σ_pieces w_pc·evidence_pc, in the order of `WeightedEvidence.contributions`."""
    evidence, formulas = weighted.evidence, list[Formula]()
    for (block, source, weights), (changes, alone) in zip(weighted.sources, weighted.changes, strict=True):
        for p, formula in source.formulas():
            if not (weights[p].any() or changes[:, p].any()):
                continue
            if isinstance(formula, Lookup) and block.plan.family.reads == "codes":
                formula = replace(formula, codes=tuple(code.counting_missing() for code in formula.codes))
            formula = block_formula(formula, block.plan, evidence.schema.all_names)
            column = int(np.argmax(alone[:, p])) if alone[:, p].any() else NONE
            formulas.append(Weighted(formula, weights[p], changes[:, p], column))
    share = weighted.weights.prior_share
    return ScoreFormula(
        evidence.schema,
        evidence.classes,
        weighted.log_prior,
        weighted.log_prior,
        "prior",
        tuple((j,) for j in weighted.explained_columns),
        tuple(formulas),
        constants=(("intercept", weighted.bias),) if weighted.has_intercept else (),
        limit=(weighted.limit_name, share) if share else None,
        clocks=_clocks(evidence),
        unknown=_unknown(weighted),
        bias_changes=weighted.weights.bias_changes_of(evidence.classes),
    )


def _unknown(weighted: WeightedEvidence) -> tuple[Code, ...]:
    """A code for each feature that may be unknown: negative where it is."""
    evidence, names = weighted.evidence, weighted.weights.unknown.names
    levels_of = {
        j: levels
        for block in evidence.blocks
        if block.levels is not None and not block.family.joint
        for j, levels in zip(block.columns, block.levels, strict=True)
    }
    codes = []
    for name, informative in zip(names, weighted.weights.unknown.informative, strict=True):
        j = list(evidence.schema.names).index(name)
        missing = 0 if informative else MISSING
        if j in levels_of:
            known = tuple(level for level in levels_of[j] if level is not None)
            missing = missing if None in levels_of[j] else MISSING
            codes.append(Code(j, len(known), levels=known, missing=missing))
        else:
            codes.append(Code(j, 1, cuts=np.zeros(0), missing=missing))
    return tuple(codes)


def _clocks(evidence: Generative) -> dict[int, bool]:
    """For each feature of dates, whether training rows had a time of day."""
    n_columns, clocks = len(evidence.schema.names), {}
    for block in evidence.blocks:
        for j, levels in zip(block.columns, block.levels, strict=True) if block.levels is not None else ():
            derived = evidence.schema.derived[j - n_columns] if j >= n_columns else None
            if derived is not None and derived.part == "hour":
                clocks[derived.columns[0]] = not {*levels} <= {0, None}
    return clocks
