"""fit, evaluate and cross_validate, for the collections of every engine."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from deciban.data.containers import ENGINES
from deciban.engines.partitions import EngineRows
from deciban.errors import DecibanError
from deciban.lazy import lazy

if TYPE_CHECKING:
    from deciban.evaluation import Evaluation

validation = lazy("deciban.evaluation.cross_validation")  # not needed on workers

Model = TypeVar("Model")


def wrong_collection(collection: Any, expected: str) -> DecibanError:
    library = type(collection).__module__.partition(".")[0]
    return DecibanError(f"collection is a {type(collection).__name__} of {library}: pass {expected}")


def _rows(collection: Any, label: Any, sample_weight: Any) -> EngineRows:
    """The rows of a collection, by the engine for its library."""
    library = type(collection).__module__.partition(".")[0]
    if library not in ENGINES:
        raise wrong_collection(collection, "a Dask DataFrame, a Dask array or a Spark DataFrame")
    rows: EngineRows = import_module(f"deciban.engines.{ENGINES[library]}").rows(collection, label, sample_weight)
    return rows


def fit(model: Model, collection: Any, label: Any, sample_weight: Any = None) -> Model:
    """Fit a model to a collection: the same result as `model.fit` on all rows at once.

    Generative models read the collection once, an EvidenceClassifier twice, linear models once per Newton step.
    Persist or cache a collection that is read more than once.

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
    fitted: Model = model.fit(_rows(collection, label, sample_weight))  # type: ignore[attr-defined]
    return fitted


def evaluate(model: Any, collection: Any, label: Any, sample_weight: Any = None) -> Evaluation:
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
    evaluation: Evaluation = validation.evaluate(model, _rows(collection, label, sample_weight), None)
    return evaluation


def cross_validate(
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
    rows = _rows(collection, label, sample_weight)
    evaluation: Evaluation = validation.cross_validate(model, rows, None, cv, random_state=random_state)
    return evaluation
