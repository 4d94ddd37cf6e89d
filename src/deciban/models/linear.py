"""What estimators with a linear predictor share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban.errors import DecibanError
from deciban.linear.predictor import Predictor
from deciban.models.estimator import TableEstimator
from deciban.table import Table
from deciban.types import FloatArray, Levels


class LinearEstimator(TableEstimator):
    """Holds a predictor: a linear function of the table's features."""

    predictor_: Predictor
    _kept = TableEstimator._kept | {
        "predictor_": Predictor,
        "_classes": Levels,
        "classes_": NDArray[Any],
        "path_": Table,
        "n_iter_": int,
        "status_": str,
    }

    @property
    def feature_names_(self) -> tuple[str, ...]:
        """What each coefficient multiplies."""
        self._require_fitted()
        return self.predictor_.design.names

    def plot_coefficients(self) -> Any:
        """The coefficients as an altair chart, the largest first; with 95% intervals where the fit gave them.

        Needs `pip install 'deciban[plot]'`.
        """
        from deciban.charts import linear as charts

        self._require_fitted()
        return charts.coefficients([_figure(*each) for each in self._coefficient_tables()])

    def plot_path(self) -> Any:
        """How the fit came to its end: the objective above its least and the length of its gradient, by iteration.

        An altair chart. Needs `pip install 'deciban[plot]'`.
        """
        from deciban.charts import linear as charts

        self._require_fitted()
        if not hasattr(self, "path_"):
            raise DecibanError(f"this {type(self).__name__} was not searched for: there is no path to draw")
        fields = ["iteration", "objective", "gradient", "step"]
        return charts.path({"fields": fields, "rows": [list(row) for row in self.path_.rows]})

    def _coefficient_tables(self) -> list[tuple[str, list[str], FloatArray, FloatArray | None]]:
        """Of each vector: its title, names, estimates (1 + p), and intervals (1 + p, 2) if there are any."""
        names = ["(intercept)", *self.feature_names_]
        estimates = np.column_stack([self.intercept_, self.coef_])
        classes = self.classes_.tolist()
        titles = [f"{classes[1]} against {classes[0]}"] if len(estimates) == 1 else [f"score of {c}" for c in classes]
        return [(title, names, row, None) for title, row in zip(titles, estimates, strict=True)]

    def _fitted(self) -> Predictor | None:
        return getattr(self, "predictor_", None)

    def _scorer(self) -> Predictor:
        return self.predictor_

    def _restored(self) -> None:
        self._note_columns(self.predictor_.schema)


def _figure(title: str, names: list[str], estimates: FloatArray, intervals: FloatArray | None) -> dict[str, Any]:
    """What the chart of coefficients is made from; an interval without end is none."""
    ends: Any = [(None, None)] * len(names) if intervals is None else intervals.tolist()
    known = [(a, b) if a is not None and np.isfinite([a, b]).all() else (None, None) for a, b in ends]
    rows = [[name, x, *pair] for name, x, pair in zip(names, estimates.tolist(), known, strict=True)]
    return {"title": title, "rows": {"fields": ["name", "estimate", "low", "high"], "rows": rows}}
