"""What estimators with a linear predictor share."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from deciban.linear.predictor import Predictor
from deciban.models.estimator import TableEstimator
from deciban.table import Table
from deciban.types import Levels


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

    def _fitted(self) -> Predictor | None:
        return getattr(self, "predictor_", None)

    def _scorer(self) -> Predictor:
        return self.predictor_

    def _restored(self) -> None:
        self._note_columns(self.predictor_.schema)
