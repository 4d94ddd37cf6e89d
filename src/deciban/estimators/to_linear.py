"""The linear model that a generative model equals."""

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


def linear_equivalent(estimate: Estimate, label_dtype: Any) -> LogisticRegression:
    """A softmax with T(x) as features and the natural parameters as coefficients."""
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
    model = LogisticRegression() if len(w) == 2 else SoftmaxRegression()
    model._label_dtype = label_dtype
    model._take(Predictor(design, w, constant, design.origin), evidence.classes)
    return model
