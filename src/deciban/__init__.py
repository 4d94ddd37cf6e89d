"""deciban: classification you can add up.

Every model is a sum of evidence, and all evidence adds: a fit is one pass, models merge and forget rows exactly, and
every prediction is a list of decibans.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from deciban import _version

if TYPE_CHECKING:
    from deciban import engines as engines
    from deciban import families as families
    from deciban import priors as priors
    from deciban.data.files.scan import scan
    from deciban.errors import DecibanError, DecibanWarning, LeakageWarning, NegativeEvidence, NotInvertible, RowError
    from deciban.estimators import (
        CalibratedClassifier,
        EvidenceClassifier,
        GaussianDiscriminant,
        GeneralizedLinearModel,
        Halfspace,
        LogisticRegression,
        NaiveBayes,
        SoftmaxRegression,
        load,
    )
    from deciban.evaluation import Evaluation, Roc, cross_validate, evaluate
    from deciban.evaluation.learning_curve import learning_curve

__version__ = _version.version
__all__ = [
    "CalibratedClassifier",
    "DecibanError",
    "DecibanWarning",
    "Evaluation",
    "EvidenceClassifier",
    "GaussianDiscriminant",
    "GeneralizedLinearModel",
    "Halfspace",
    "LeakageWarning",
    "LogisticRegression",
    "NaiveBayes",
    "NegativeEvidence",
    "NotInvertible",
    "Roc",
    "RowError",
    "SoftmaxRegression",
    "cross_validate",
    "engines",
    "evaluate",
    "families",
    "learning_curve",
    "load",
    "priors",
    "scan",
]

# Public names are imported on first use: scikit-learn takes a second, and `deciban --help` does not need it.
_MODULE_OF = {
    "DecibanError": "deciban.errors",
    "DecibanWarning": "deciban.errors",
    "LeakageWarning": "deciban.errors",
    "NegativeEvidence": "deciban.errors",
    "NotInvertible": "deciban.errors",
    "RowError": "deciban.errors",
    "Evaluation": "deciban.evaluation",
    "Roc": "deciban.evaluation",
    "cross_validate": "deciban.evaluation",
    "evaluate": "deciban.evaluation",
    "learning_curve": "deciban.evaluation",
    "CalibratedClassifier": "deciban.estimators",
    "EvidenceClassifier": "deciban.estimators",
    "GaussianDiscriminant": "deciban.estimators",
    "GeneralizedLinearModel": "deciban.estimators",
    "Halfspace": "deciban.estimators",
    "LogisticRegression": "deciban.estimators",
    "SoftmaxRegression": "deciban.estimators",
    "NaiveBayes": "deciban.estimators",
    "load": "deciban.estimators",
    "scan": "deciban.data.files.scan",
}
_MODULES = ("engines", "families", "priors")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"deciban.{name}")
    if name in _MODULE_OF:
        return getattr(importlib.import_module(_MODULE_OF[name]), name)
    raise AttributeError(f"module 'deciban' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
