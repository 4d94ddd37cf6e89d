"""State of the estimators with a linear predictor: declared once, for the estimators and for model files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban.contributions import ColumnEvidence
from deciban.linear.inference import Inference
from deciban.linear.predictor import Predictor
from deciban.linear.separation import Certificate
from deciban.table import Table
from deciban.types import FloatArray, Levels


def unset() -> Any:
    """The default of a field that not every fit sets, and that a file may lack. The class has no such attribute."""


@dataclass(init=False, eq=False, repr=False, kw_only=True)
class LinearState:
    """What every linear model has learned: attributes of the estimator, which a file holds by these names."""

    predictor_: Predictor
    _label_name: str | None = None


@dataclass(init=False, eq=False, repr=False, kw_only=True)
class LogisticState(LinearState):
    """The classes, and how the solver reached the coefficients; `to_linear()` computes them without a solver."""

    _classes: Levels
    classes_: NDArray[Any]
    status_: str
    path_: Table = field(default_factory=unset)
    n_iter_: int = field(default_factory=unset)
    objective_: float = field(default_factory=unset)
    _label_dtype: np.dtype | None = None
    _column_evidence: ColumnEvidence | None = None


@dataclass(init=False, eq=False, repr=False, kw_only=True)
class GeneralizedLinearState(LinearState):
    """The inference, and how the solver reached the coefficients; classes only if the response has them."""

    inference_: Inference
    path_: Table
    n_iter_: int
    status_: str
    _classes: Levels = ()
    classes_: NDArray[Any] = field(default_factory=unset)


@dataclass(init=False, eq=False, repr=False, kw_only=True)
class HalfspaceState(LinearState):
    """The classes, and whether a hyperplane separates them."""

    classes_: NDArray[Any]
    separable_: bool
    certificate_: Certificate | None
    axis_intercepts_: FloatArray
