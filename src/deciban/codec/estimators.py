"""Estimators as files know them: the types of their settings, and of what they learned.

Those of generative models, which score rows without their classes: see `parts.py`. The classes say the same of
themselves, in `__init__` and `_kept`; the tests see to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from deciban.choices import Choice, Contest
from deciban.contributions import ColumnEvidence
from deciban.generative import ClassPrior, Generative, Unseen
from deciban.plans import Families, Missing
from deciban.types import Level


class Types(NamedTuple):
    """The types of an estimator's parts."""

    params: Mapping[str, Any]
    state: Mapping[str, Any]
    needed: frozenset[str] = frozenset()  # what it cannot have learned nothing of


_LEARNED: dict[str, Any] = {
    "_label_dtype": np.dtype | None,
    "_label_name": str | None,
    "generative_": Generative,
    "_shrinkages": Mapping[frozenset[Level], Choice],
    "_column_evidence": ColumnEvidence | None,
}


def _naive_bayes() -> Types:
    params = {
        "families": Families | Literal["auto"],
        "smoothing": float | Literal["auto"],
        "class_prior": ClassPrior,
        "missing": Missing,
        "unseen": Unseen,
    }
    return Types(params, _LEARNED | {"_contests": tuple[Contest, ...]}, frozenset({"generative_"}))


def _gaussian_discriminant() -> Types:
    from deciban.families.priors import InverseWishart

    params = {
        "covariance": Literal["shared", "per-class", "diagonal"],
        "shrinkage": float | Literal["oas", "auto"] | None,
        "ddof": float | Literal["unbiased"],
        "class_prior": ClassPrior,
        "prior": InverseWishart | None,
    }
    return Types(params, _LEARNED, frozenset({"generative_"}))


def _evidence_classifier() -> Types:
    from deciban.weighing.reasons import ColumnFacts
    from deciban.weighing.weights import Weights

    params = {
        "pairs": Literal["auto"] | int,
        "trees": int,
        "class_prior": ClassPrior,
        "max_weight_rows": int,
        "random_state": int | None,
        "text": Literal["auto"] | Sequence[Any],
    }
    learned = _LEARNED | {"_seed": int, "_weights": Weights, "_weights_rows": float | None, "_facts": ColumnFacts}
    return Types(params, learned, frozenset({"generative_", "_weights"}))


# Settings that files know by another name: those of deciban 0.1.
RENAMED: dict[str, dict[str, str]] = {
    "Calibrated": {"folds": "cv", "seed": "random_state"},
    "EvidenceClassifier": {"weigh_rows": "max_weight_rows", "seed": "random_state"},
}

TYPES: dict[str, Callable[[], Types]] = {
    "NaiveBayes": _naive_bayes,
    "GaussianDiscriminant": _gaussian_discriminant,
    "EvidenceClassifier": _evidence_classifier,
}
