"""Engine: fit, evaluate and cross-validate models on rows that a cluster holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from deciban.engines.partitions import EngineRows
from deciban.errors import DecibanError
from deciban.lazy import lazy

if TYPE_CHECKING:
    from deciban.evaluation import Evaluation

validation = lazy("deciban.evaluation.cross_validation")  # not needed on workers

Model = TypeVar("Model")


@dataclass(frozen=True)
class Engine:
    """The functions that all engines share, for collections that `rows` turns into rows."""

    rows: Callable[[Any, Any, Any], EngineRows]

    def fit(self, model: Model, collection: Any, label: Any, sample_weight: Any = None) -> Model:
        """Fit a model to a collection: the same result as `model.fit` on all rows at once.

        Generative models read the collection once, an EvidenceClassifier twice, linear models once for each Newton
        step. Persist or cache a collection that is read more than once.

        Parameters
        ----------
        model : estimator of deciban
        collection : Dask DataFrame, Dask array or Spark DataFrame
        label : str, or array for a Dask array
            The name of the column of classes, or the class of each row.
        sample_weight : str, or array for a Dask array, optional
            The name of the column of weights, or the weight of each row.

        Returns
        -------
        The model, fitted.

        Raises
        ------
        DecibanError
            If the model is not one of deciban, or a row cannot be read; the message names partition and row.
        """
        if isinstance(model, type):
            raise DecibanError(f"{model.__name__} is a class: pass a model, {model.__name__}()")
        if not any(base.__module__.startswith("deciban.") for base in type(model).__mro__):
            raise DecibanError(f"{type(model).__name__} cannot be fitted to partitions: pass a model of deciban")
        fitted: Model = model.fit(self.rows(collection, label, sample_weight))  # type: ignore[attr-defined]
        return fitted

    def evaluate(self, model: Any, collection: Any, label: Any, sample_weight: Any = None) -> Evaluation:
        """Evaluate a fitted model on a collection: `deciban.evaluate`, partition by partition.

        Parameters
        ----------
        model : fitted classifier
        collection, label, sample_weight
            As in `fit`.

        Returns
        -------
        Evaluation
        """
        evaluation: Evaluation = validation.evaluate(model, self.rows(collection, label, sample_weight), None)
        return evaluation

    def cross_validate(
        self,
        model: Any,
        collection: Any,
        label: Any,
        cv: int | str = 10,
        *,
        random_state: int | None = 0,
        sample_weight: Any = None,
    ) -> Evaluation:
        """Evaluate a model by cross-validation on a collection: `deciban.cross_validate`.

        Generative models read the collection twice, whatever the number of folds; others are fitted once for each fold.

        Parameters
        ----------
        model : estimator of deciban
        collection, label, sample_weight
            As in `fit`.
        cv : int or str, default=10
            The number of folds, or the name of a column that holds the fold of each row. Rows are assigned to folds by
            their values: equal rows are in one fold, in whichever partition they are.
        random_state : int or None, default=0

        Returns
        -------
        Evaluation
        """
        rows = self.rows(collection, label, sample_weight)
        evaluation: Evaluation = validation.cross_validate(model, rows, None, cv, random_state=random_state)
        return evaluation
