"""The types of an estimator's settings and state, as files know them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, NamedTuple

from deciban.persist.registry import Home, class_at
from deciban.persist.validation import hints_of


class Types(NamedTuple):
    """The types of an estimator's settings and state."""

    params: Mapping[str, Any]
    state: Mapping[str, Any]
    required: frozenset[str] = frozenset()  # of the state


@dataclass(frozen=True)
class Declaration:
    """The dataclasses that declare the settings and the state of an estimator."""

    settings: Home
    state: Home

    def types(self) -> Types:
        state = class_at(self.state)
        return Types(field_types(class_at(self.settings)), field_types(state), required_fields(state))


def field_types(declared: type) -> dict[str, Any]:
    """The types of the fields of a dataclass."""
    hints = hints_of(declared)
    return {field.name: hints[field.name] for field in fields(declared)}


def required_fields(declared: type) -> frozenset[str]:
    """The fields of a dataclass without a default."""
    return frozenset(f.name for f in fields(declared) if f.default is MISSING and f.default_factory is MISSING)


def _declared(module: str, settings: str, state: str) -> Declaration:
    return Declaration((module, settings), (module, state))


# Estimators that score rows without their classes, by their names in files: see `model_file.py`.
DECLARATIONS: dict[str, Declaration] = {
    "NaiveBayes": _declared("deciban.generative.classifier_state", "NaiveBayesSettings", "NaiveBayesState"),
    "GaussianDiscriminant": _declared(
        "deciban.generative.classifier_state", "GaussianDiscriminantSettings", "GenerativeState"
    ),
    "EvidenceClassifier": _declared(
        "deciban.evidence.evidence_state", "EvidenceClassifierSettings", "EvidenceClassifierState"
    ),
}

# Settings that files of deciban 0.1 know by another name.
RENAMED: dict[str, dict[str, str]] = {
    "Calibrated": {"folds": "cv", "seed": "random_state"},
    "EvidenceClassifier": {"weigh_rows": "max_weight_rows", "seed": "random_state"},
}
