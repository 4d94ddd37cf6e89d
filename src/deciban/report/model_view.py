"""How a model uses its features, for the charts of a report."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from deciban.data.class_index import ClassIndex
from deciban.data.schema import Schema
from deciban.evaluation.fitted_model import FittedModel
from deciban.evidence.weighted_evidence import WeightedEvidence
from deciban.families import Bernoulli, Multinomial
from deciban.families.family import Family
from deciban.generative.block import Block
from deciban.generative.estimate import Estimate
from deciban.generative.plan import Plan
from deciban.linear.design import Design
from deciban.linear.encoders import Sufficient
from deciban.linear.predictor import Predictor
from deciban.report.report_input import ReportInput
from deciban.statistics import Counts, Histogram
from deciban.table import numbered
from deciban.types import IntArray, Levels


@dataclass(frozen=True)
class ModelView:
    """A fitted model, with the rows of a report."""

    model: FittedModel
    data: ReportInput

    @property
    def base(self) -> FittedModel:
        return self.model.base_model_

    @property
    def schema(self) -> Schema:
        return self.data.schema

    @property
    def regression(self) -> bool:
        return self.model.task == "regression"

    @cached_property
    def classes(self) -> Levels:
        return () if self.regression else tuple(np.asarray(self.model.classes_).tolist())

    @cached_property
    def names(self) -> list[str]:
        """The names of the classes; one empty name for a regression."""
        return [""] if self.regression else numbered(self.classes)

    @property
    def shown(self) -> range:
        """The positions of the classes in tables of evidence: only the second of two."""
        return range(1, 2) if len(self.names) == 2 else range(len(self.names))

    @cached_property
    def estimate(self) -> Estimate | None:
        """The parameters of a generative model."""
        return self.base.scorer_ if isinstance(self.base.scorer_, Estimate) else None

    @cached_property
    def weighted(self) -> WeightedEvidence | None:
        """The pieces of evidence of an EvidenceClassifier, with their weights."""
        return self.base.scorer_ if isinstance(self.base.scorer_, WeightedEvidence) else None

    @cached_property
    def design(self) -> Design | None:
        """The features of a linear model."""
        return self.base.scorer_.design if isinstance(self.base.scorer_, Predictor) else None

    @cached_property
    def blocks(self) -> list[tuple[Block, Any]]:
        """The blocks of a generative model with their parameters, which weighted evidence does not have."""
        if self.estimate is not None:
            return list(zip(self.estimate.evidence.blocks, self.estimate.params, strict=True))
        return [(block, None) for block in self.weighted.evidence.blocks] if self.weighted is not None else []

    @cached_property
    def documents(self) -> set[int]:
        """Text features, whose evidence is shown by term."""
        return {j for block, _ in self.blocks if block.plan.family.reads == "texts" for j in block.plan.columns}

    @cached_property
    def joint(self) -> set[int]:
        """Features whose evidence also depends on other features."""
        if self.estimate is not None:
            plans = [block.plan for block, _ in self.blocks]
            return {j for p in plans if p.family.joint and not isinstance(p.family, Multinomial) for j in p.columns}
        if self.weighted is not None:
            columns = [
                j
                for _, evidence, weights in self.weighted.sources
                for piece, weight in zip(evidence.pieces, weights, strict=True)
                if len(piece.columns) > 1 and piece.kind != "words" and weight.any()
                for j in piece.columns
            ]
            dates = {j for derived in self.schema.derived for j in derived.columns}  # a curve would be a comb
            return {*self.schema.source_columns(columns), *dates} - self.documents
        return {j for plan, _, columns in self.linear_plans if plan.family.joint for j in columns}

    @property
    def averaged(self) -> list[int]:
        """Features whose evidence is shown as a mean over rows."""
        return sorted(self.joint - self.documents)

    @cached_property
    def levels(self) -> dict[int, Levels]:
        """The levels of categorical features in the training rows."""
        levels: dict[int, Levels] = {}
        for block, _ in self.blocks:
            levels |= dict(zip(block.columns, block.levels, strict=True)) if block.levels is not None else {}
        for part in self.design.parts if self.design is not None else ():
            if part.encoder.levels is not None:
                levels |= dict(zip(part.columns, part.encoder.levels, strict=True))
        for plan, _, columns in self.plans:
            if isinstance(plan.family, Bernoulli) and not plan.presence and plan.family.threshold is None:
                levels |= dict.fromkeys(columns, (0, 1))
        return levels | {j: (False, True) for j, kind in enumerate(self.schema.kinds) if kind == "boolean"}

    @cached_property
    def linear_plans(self) -> list[tuple[Plan, Any, tuple[int, ...]]]:
        """Plans, parameters and features of a linear model that was made from a generative one."""
        parts = self.design.parts if self.design is not None else ()
        encoders = [(part.encoder, part.columns) for part in parts]
        return [(e.plan, e.params, columns) for e, columns in encoders if isinstance(e, Sufficient)]

    @cached_property
    def plans(self) -> list[tuple[Plan, Any, tuple[int, ...]]]:
        """Plans, parameters (None if there are none) and features."""
        return [*((block.plan, params, block.plan.columns) for block, params in self.blocks), *self.linear_plans]

    def family(self, j: int) -> tuple[Family[Any, Any] | None, Any, int]:
        """The family of a feature, its parameters, and the position of the feature in them."""
        for plan, params, columns in self.plans:
            if j in columns and not plan.presence and params is not None:
                return plan.family, params, columns.index(j)
        return None, None, 0

    def counts(self, j: int) -> tuple[Counts | Histogram | None, int]:
        """The statistic in which weighted evidence counts a feature, and the position of the feature in it."""
        if self.weighted is not None:
            for block, _ in self.blocks:
                counted = j in block.plan.columns and not block.plan.presence
                if counted and isinstance(block.statistic, (Counts, Histogram)):
                    return block.statistic, block.plan.columns.index(j)
        return None, 0

    @cached_property
    def codes(self) -> IntArray:
        """(n) the class of each row of the sample; −1 for a class that the model does not know."""
        labels = self.data.sample.labels
        codes = ClassIndex(self.classes).recode(labels.codes, labels.classes) if self.classes else 0 * labels.codes
        return codes.astype(np.intp)

    def is_categorical(self, j: int) -> bool:
        return j in self.levels or self.schema.kinds[j] in ("category", "empty")
