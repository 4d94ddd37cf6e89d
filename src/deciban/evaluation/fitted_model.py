"""FittedModel: the interface of our estimators that reports, evaluation, engines and the CLI use."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self

from numpy.typing import NDArray

from deciban.data import Labelled
from deciban.data.batch import Kind
from deciban.data.column_reader import ColumnReader
from deciban.data.schema import Schema
from deciban.errors import DecibanError
from deciban.evaluation.keyword_hints import hint_keywords
from deciban.export.score_formula import ScoreFormula
from deciban.export.scorer import Scorer
from deciban.generative.estimate import Settings
from deciban.generative.model import Generative
from deciban.generative.plan import Missing, Plan
from deciban.generative.selection import FamilyComparison
from deciban.linear.inference import Inference
from deciban.linear.objective import Criterion
from deciban.linear.predictor import Predictor
from deciban.linear.responses import Response
from deciban.table import Table
from deciban.types import FloatArray, Level, Levels

CAPABILITIES = {"empty_copy", "explain", "forget", "leave_one_out", "merge", "partial_fit", "predict_proba", "refine"}
CAPABILITIES |= {"refit_weights", "summary", "to_linear"}


KINDS: dict[Kind, str] = {  # what a column of each kind holds
    "number": "numbers",
    "date": "dates, as days since 1970",
    "time": "times of day, as hours since midnight",
    "boolean": "true or false",
    "category": "text of few distinct values",
    "text": "documents",
    "empty": "always missing",
}


@dataclass(frozen=True)
class Treatment:
    """What a model does with a feature, and why, in words."""

    text: str
    why: str


class Calibration(Protocol):
    """A correction of log-probabilities."""

    name: ClassVar[str]  # "temperature" or "isotonic"

    def formula(self, classes: Levels) -> dict[str, Any]:
        """The correction of log-probabilities of these classes, as plain numbers and arrays."""


@dataclass(frozen=True)
class AdditiveFit:
    """A fit from sums over rows: the statistics to collect, and the settings of the estimate from them."""

    schema: Schema
    plans: tuple[Plan, ...]
    missing: Missing
    settings: Callable[[Generative], Settings]


@dataclass(frozen=True)
class LinearFit:
    """The coefficients of a linear model, and how they were fitted."""

    predictor: Predictor
    estimates: FloatArray  # (m, 1 + p) the intercept first
    l2: float
    status: str  # "ok", or what is wrong
    path: Table | None  # of the solver, if there was one
    inference: Inference | None  # standard errors and what follows from them
    objective: Callable[[Any, Any, Any], Criterion] | None  # for rows (X, y, sample_weight), with these features


class FittedModel:
    """The common interface of the estimators: properties that all of them have, None where one does not apply.

    What a calibrated model has learned about features is in its `base_model_`.
    """

    classes_: NDArray[Any]  # of a classifier
    generative_: Generative | None = None  # sufficient statistics, to which rows can be added, and removed again
    response_: Response | None = None  # of a generalized linear model
    additive: bool = False  # whether `additive_fit` may return a fit

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__init__ is not object.__init__ and not hasattr(cls.__init__, "__wrapped__"):
            cls.__init__ = hint_keywords(cls.__init__)  # type: ignore[method-assign]

    @property
    def task(self) -> Literal["classification", "regression"]:
        """Whether the model predicts classes or numbers."""
        return "classification"

    @property
    def description(self) -> str:
        """One sentence on what the model is."""
        return (inspect.getdoc(type(self)) or type(self).__name__).partition("\n")[0]

    @property
    def capabilities(self) -> frozenset[str]:
        """Which of the optional methods (CAPABILITIES) this model has."""
        return frozenset(name for name in CAPABILITIES if hasattr(self, name))

    @property
    def schema_(self) -> Schema:
        """The features that the model was fitted to."""
        raise NotImplementedError

    @property
    def scorer_(self) -> Scorer:
        """The scorer of rows, before calibration."""
        raise NotImplementedError

    def score_formula(self) -> ScoreFormula:
        """The scores as formulas that need no library.

        Returns
        -------
        ScoreFormula
            What exports and the page of a report are made from.
        """
        raise NotImplementedError

    @property
    def label_name_(self) -> str | None:
        """The name of the label's column, if `fit` was given one."""
        raise NotImplementedError

    @property
    def base_model_(self) -> FittedModel:
        """The model without its calibrations."""
        return self

    @property
    def calibrations_(self) -> tuple[Calibration, ...]:
        """The corrections of its probabilities, the first to apply first."""
        return ()

    @property
    def evidence_scale_(self) -> float:
        """The factor that calibration multiplies decibans of the base model by."""
        return 1.0

    @property
    def class_count_(self) -> FloatArray | None:
        """(K) Σ w of the training rows of each class, if it is known."""
        return None

    @property
    def importances_(self) -> FloatArray | None:
        """(d) `feature_importances_`, if they are known."""
        return None

    @property
    def columns_without_evidence_(self) -> Mapping[Level, str]:
        """Features that carry no evidence, and why."""
        return {}

    @property
    def column_treatments_(self) -> dict[int, Treatment]:
        """What is done with each feature (by position), and why; features that are not used may be left out."""
        kinds, described = self.schema_.kinds, self.scorer_.describe_columns()
        return {j: Treatment(text, KINDS[kinds[j]]) for j, text in described.items()}

    @property
    def family_comparisons_(self) -> tuple[FamilyComparison, ...]:
        """How families="auto" chose the families of features."""
        return ()

    @property
    def linear_fit_(self) -> LinearFit | None:
        """The coefficients, for a linear model."""
        return None

    def additive_fit(self, rows: Labelled) -> AdditiveFit | None:
        """How to fit rows like these by adding up statistics. Needs no earlier fit.

        Parameters
        ----------
        rows : Labelled
            The rows; only their features are read.

        Returns
        -------
        AdditiveFit or None
            What to collect; None where adding up is not enough.
        """
        return None

    @property
    def columns_(self) -> ColumnReader:
        """The reader of the columns of rows to predict."""
        raise NotImplementedError

    if TYPE_CHECKING:
        predict_mean: Any
        score: Any

        def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self: ...

        def predict(self, X: Any) -> NDArray[Any]: ...

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...

        # optional methods: see capabilities
        explain: Any
        leave_one_out: Any
        predict_proba: Any
        summary: Any
        to_linear: Any


class ForeignModelError(DecibanError, AttributeError):
    """A model of another library lacks this; an AttributeError too, as scikit-learn expects of absent attributes."""


def require_fitted_model(model: Any) -> FittedModel:
    """The model, if it is an estimator of this library; otherwise an error."""
    if isinstance(model, FittedModel):
        return model
    name = type(model).__name__
    raise ForeignModelError(f"{name} is a model of another library: only its predictions are known")
