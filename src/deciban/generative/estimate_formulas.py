"""The scores of a generative model's estimate as formulas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from deciban.contributions import line_title
from deciban.export.formulas import Bag, Code, Curve, Formula, Lookup, owners_of, placed
from deciban.export.score_formula import ScoreFormula
from deciban.generative.estimate import Estimate
from deciban.generative.plan import Plan
from deciban.types import Names


def estimate_formula(estimate: Estimate) -> ScoreFormula:
    """log p(c) + Σ_blocks log p(x_block|c), in the order of `Estimate.contributions`."""
    evidence, formulas = estimate.evidence, list[Formula]()
    for block, params in zip(evidence.blocks, estimate.params, strict=True):
        for formula in block.plan.family.formula(params):
            formulas.append(block_formula(_as_read(block.plan, formula, estimate), block.plan, evidence.schema.names))
    owners = sorted({owner for formula in formulas for owner in owners_of(formula)})
    prior = estimate.log_prior
    return ScoreFormula(evidence.schema, evidence.classes, prior, prior, "prior", tuple(owners), tuple(formulas))


def block_formula(formula: Formula, plan: Plan, names: Names) -> Formula:
    """A block's formula in the columns of the table; names of terms get those of the columns as a prefix."""
    formula = placed(formula, plan.columns)
    return replace(formula, title=line_title(plan.columns, names, "")) if isinstance(formula, Bag) else formula


def _as_read(plan: Plan, formula: Formula, estimate: Estimate) -> Formula:
    """Applies the policies for missing values, unseen levels and numbers outside the domain."""
    if isinstance(formula, Lookup):
        return replace(formula, codes=tuple(_code_as_read(plan, code, estimate) for code in formula.codes))
    return replace(formula, lenient=_lenient(plan, formula.domains)) if isinstance(formula, Curve) else formula


def _code_as_read(plan: Plan, code: Code, estimate: Estimate) -> Code:
    if plan.presence:
        return code.present()
    if code.levels is None:
        return replace(code, lenient=_lenient(plan, code.domains))
    code = replace(code, refused=estimate.settings.unseen == "error")
    return code.counting_missing() if estimate.evidence.missing == "category" else code


def _lenient(plan: Plan, domains: Sequence[str]) -> bool:
    """Whether a number outside the domain counts as missing; a negative amount never does."""
    return plan.lenient and "amount" not in domains
