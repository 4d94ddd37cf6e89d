"""LinearEstimator: what estimators with a linear predictor share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from deciban.errors import DecibanError
from deciban.estimators.estimator import TableEstimator
from deciban.evaluation.fitted_model import LinearFit, Treatment
from deciban.export.score_formula import ScoreFormula
from deciban.export.scorer import Scorer
from deciban.linear.linear_state import LinearState
from deciban.linear.predictor import Predictor
from deciban.types import FloatArray


class LinearEstimator(LinearState, TableEstimator):
    """η = w·x + b for each class or response, x the encoded features."""

    @property
    def feature_names_(self) -> tuple[str, ...]:
        """The names of the encoded features, one for each coefficient."""
        self._require_fitted()
        return self.predictor_.design.names

    def plot_coefficients(self) -> Any:
        """Draw the coefficients, the largest first; with 95% intervals where the fit gave them.

        Returns
        -------
        altair.Chart
            Needs `pip install 'deciban[plot]'`.
        """
        from deciban.plots import linear_charts as charts

        self._require_fitted()
        return charts.coefficients([_figure(*each) for each in self._coefficient_tables()])

    def plot_path(self) -> Any:
        """Draw the convergence of the fit: the objective above its minimum and the norm of its gradient, by iteration.

        Returns
        -------
        altair.Chart
            Needs `pip install 'deciban[plot]'`.

        Raises
        ------
        DecibanError
            If no solver was used: `to_linear()` and Halfspace have no path.
        """
        from deciban.plots import linear_charts as charts

        self._require_fitted()
        if not hasattr(self, "path_"):
            raise DecibanError(f"this {type(self).__name__} was not fitted by a solver: there is no path to draw")
        fields = ["iteration", "objective", "gradient", "step"]
        return charts.path({"fields": fields, "rows": [list(row) for row in self.path_.rows]})

    def _coefficient_tables(self) -> list[tuple[str, list[str], FloatArray, FloatArray | None]]:
        """For each vector: its title, names, estimates (1 + p), and intervals (1 + p, 2) if there are any."""
        names = ["(intercept)", *self.feature_names_]
        estimates = np.column_stack([np.atleast_1d(self.intercept_), np.atleast_2d(self.coef_)])
        classes = self.classes_.tolist()
        titles = [f"{classes[1]} against {classes[0]}"] if len(estimates) == 1 else [f"score of {c}" for c in classes]
        return [(title, names, row, None) for title, row in zip(titles, estimates, strict=True)]

    def _fitted(self) -> Predictor | None:
        return getattr(self, "predictor_", None)

    @property
    def scorer_(self) -> Scorer:
        """What scores rows."""
        return self.predictor_

    def score_formula(self) -> ScoreFormula:
        """The scores as formulas that need no library.

        Returns
        -------
        ScoreFormula
            What exports and the page of a report are made from.
        """
        classes = () if self.task == "regression" else tuple(self.classes_.tolist())
        mean = None if classes or self.response_ is None else self.response_.javascript_mean
        return self.predictor_.score_formula(classes, mean, probabilities="predict_proba" in self.capabilities)

    @property
    def column_treatments_(self) -> dict[int, Treatment]:
        """What is done with each feature (by position), and why."""
        treatments = super().column_treatments_
        if not self.predictor_.design.has_sufficient_statistics:
            return treatments
        return {j: replace(each, why="the linear form of a generative model") for j, each in treatments.items()}

    @property
    def linear_fit_(self) -> LinearFit:
        """The coefficients, and how the solver reached them."""
        estimates = np.column_stack([np.atleast_1d(self.intercept_), np.atleast_2d(self.coef_)])
        settings: dict[str, Any] = self.get_params(deep=False)
        status, path = getattr(self, "status_", "ok"), getattr(self, "path_", None)
        return LinearFit(self.predictor_, estimates, float(settings.get("l2", 0.0)), status, path, None, None)

    def _restored(self) -> None:
        self._note_columns(self.predictor_.schema)


def _figure(title: str, names: list[str], estimates: FloatArray, intervals: FloatArray | None) -> dict[str, Any]:
    """The figures of one table of the chart; infinite intervals are left out."""
    ends: Any = [(None, None)] * len(names) if intervals is None else intervals.tolist()
    known = [(a, b) if a is not None and np.isfinite([a, b]).all() else (None, None) for a, b in ends]
    rows = [[name, x, *pair] for name, x, pair in zip(names, estimates.tolist(), known, strict=True)]
    return {"title": title, "rows": {"fields": ["name", "estimate", "low", "high"], "rows": rows}}
