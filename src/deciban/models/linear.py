"""What estimators with a linear predictor share."""

from __future__ import annotations

from deciban.linear.predictor import Predictor
from deciban.models.estimator import TableEstimator


class LinearEstimator(TableEstimator):
    """Holds a predictor: a linear function of the table's features."""

    predictor_: Predictor

    @property
    def feature_names_(self) -> tuple[str, ...]:
        """What each coefficient multiplies."""
        self._require_fitted()
        return self.predictor_.design.names

    def _fitted(self) -> Predictor | None:
        return getattr(self, "predictor_", None)

    def _scorer(self) -> Predictor:
        return self.predictor_
