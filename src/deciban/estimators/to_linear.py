"""The twin of a generative model: the linear model that it equals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from deciban.estimators.logistic import LogisticRegression, SoftmaxRegression
from deciban.generative.estimate import Estimate
from deciban.generative.plan import Plan
from deciban.linear.design import Design, Part
from deciban.linear.encoders import Sufficient
from deciban.linear.predictor import Predictor


def twin_of(estimate: Estimate, label_dtype: Any) -> LogisticRegression:
    """The linear model that a generative one equals: T(x) as features, natural parameters as coefficients."""
    evidence = estimate.evidence
    parts, coefficients = [], []
    constant = estimate.log_prior.copy()
    for block, params, context in zip(evidence.blocks, estimate.params, estimate.contexts, strict=True):
        plan = Plan(block.plan.family, tuple(range(len(block.plan.columns))), block.plan.presence)
        levels = block.levels
        if plan.presence:
            context = replace(context, columns=tuple(f"{name} absent" for name in context.columns))
        natural = plan.family.natural(params, context)
        encoder = Sufficient(plan, params, natural, levels, evidence.missing)
        parts.append(Part(block.plan.columns, encoder))
        coefficients.append(encoder.coefficients)
        constant += encoder.constant
    design = Design(evidence.schema, tuple(parts))
    w = np.hstack(coefficients)
    if len(w) == 2:
        w, constant = w - w[0], constant - constant[0]
    else:
        w, constant = w - w.mean(axis=0), constant - constant.mean()
    twin = LogisticRegression() if len(w) == 2 else SoftmaxRegression()
    twin._label_dtype = label_dtype
    origin = design.origin
    twin._take(Predictor(design, w, constant, origin), evidence.classes)
    return twin
