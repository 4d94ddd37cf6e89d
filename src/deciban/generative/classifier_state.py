"""Settings and state of the generative classifiers: declared once, for estimators, model files and the mail filter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from deciban.contributions import ColumnEvidence
from deciban.families.priors import InverseWishart
from deciban.generative.estimate import ClassPrior, Unseen
from deciban.generative.model import Generative
from deciban.generative.plan import Families, Missing
from deciban.generative.selection import FamilyComparison, Selection
from deciban.types import Level


@dataclass(eq=False, repr=False)
class NaiveBayesSettings:
    """The parameters of `NaiveBayes`, which documents them."""

    families: Families | Literal["auto"] = None
    smoothing: float | Literal["auto"] = 1.0
    class_prior: ClassPrior = "empirical"
    missing: Missing = "skip"
    unseen: Unseen = "skip"


@dataclass(eq=False, repr=False)
class GaussianDiscriminantSettings:
    """The parameters of `GaussianDiscriminant`, which documents them."""

    covariance: Literal["shared", "per-class", "diagonal"] = "shared"
    shrinkage: float | Literal["oas", "auto"] | None = None
    ddof: float | Literal["unbiased"] = 0
    class_prior: ClassPrior = "empirical"
    prior: InverseWishart | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class GenerativeState:
    """The fitted state of a generative classifier: attributes of the estimator, stored under these names."""

    generative_: Generative
    _label_dtype: np.dtype | None = None
    _label_name: str | None = None
    _shrinkages: Mapping[frozenset[Level], Selection] = field(default_factory=dict)  # by the features of a block
    _column_evidence: ColumnEvidence | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class NaiveBayesState(GenerativeState):
    """The state of a generative classifier, and how families compared if they were selected."""

    _contests: tuple[FamilyComparison, ...] = ()
