"""Settings and state of the `EvidenceClassifier`: declared once, for the estimator, model files and the mail filter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from deciban.evidence.uninformative import ColumnFacts
from deciban.evidence.weights import Weights
from deciban.generative.classifier_state import GenerativeState
from deciban.generative.estimate import ClassPrior

NO_FACTS = ColumnFacts()


@dataclass(eq=False, repr=False)
class EvidenceClassifierSettings:
    """The parameters of `EvidenceClassifier`, which documents them."""

    pairs: Literal["auto"] | int = "auto"
    trees: int = 128
    class_prior: ClassPrior = "empirical"
    max_weight_rows: int = 200_000
    random_state: int | None = 0
    text: Literal["auto"] | Sequence[Any] = "auto"


@dataclass(eq=False, repr=False, kw_only=True)
class EvidenceClassifierState(GenerativeState):
    """The state of a generative classifier, and the weights of its evidence."""

    _weights: Weights
    _seed: int = 0  # of the last fit
    _weights_rows: float | None = None  # training rows of the model when its weights were fitted
    _facts: ColumnFacts = NO_FACTS
