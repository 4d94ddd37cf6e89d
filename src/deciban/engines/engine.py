"""fit, evaluate and cross_validate, for the collections of every engine."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from deciban.data.containers import ENGINES
from deciban.engines.partitions import EngineRows
from deciban.errors import DecibanError
from deciban.lazy import lazy

if TYPE_CHECKING:
    import dask.array as da
    import dask.dataframe as dd
    from numpy.typing import ArrayLike
    from pyspark.sql import DataFrame as SparkDataFrame

    from deciban.data.input_types import Classifier
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


def fit(
    model: Model,
    collection: dd.DataFrame | da.Array | SparkDataFrame,
    label: str | ArrayLike,
    sample_weight: str | ArrayLike | None = None,
) -> Model:
    """Fit a model to a collection: the same result as `model.fit` on all rows at once.

    Generative models read the collection once, an EvidenceClassifier twice, linear models once per Newton step.
    Persist or cache a collection that is read more than once.

    Parameters
    ----------
    model : estimator
        A model of deciban, which is fitted in place.
    collection : Dask DataFrame, Dask array or Spark DataFrame
        The rows, where they are.
    label : str, or array for a Dask array
        The name of the column of classes, or the class of each row.
    sample_weight : str, array for a Dask array, or None, default None
        The name of the column of weights, or the weight of each row.

    Returns
    -------
    estimator
        The model, fitted: it predicts, explains and saves as any other.

    Raises
    ------
    DecibanError
        If the model is not one of deciban, or a row cannot be read; the message names partition and row.

    See Also
    --------
    rows : A collection as X of other methods.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> import deciban as db
    >>> from deciban.engines import dask
    >>> people = pd.DataFrame({"income": [125, 100, 70, 95, 85, 90], "evade": ["no", "no", "no", "yes", "yes", "yes"]})
    >>> dask.fit(db.NaiveBayes(), dd.from_pandas(people, npartitions=3), "evade").class_count_
    array([3., 3.])
    """
    if isinstance(model, type):
        raise DecibanError(f"{model.__name__} is a class: pass a model, {model.__name__}()")
    if not any(base.__module__.startswith("deciban.") for base in type(model).__mro__):
        raise DecibanError(f"{type(model).__name__} cannot be fitted to partitions: pass a model of deciban")
    fitted: Model = model.fit(_rows(collection, label, sample_weight))  # type: ignore[attr-defined]
    return fitted


def evaluate(
    model: Classifier,
    collection: dd.DataFrame | da.Array | SparkDataFrame,
    label: str | ArrayLike,
    sample_weight: str | ArrayLike | None = None,
) -> Evaluation:
    """Evaluate a fitted model on a collection: `deciban.evaluate`, partition by partition.

    Parameters
    ----------
    model : classifier
        A fitted model with probabilities.
    collection : Dask DataFrame, Dask array or Spark DataFrame
        The rows, where they are.
    label : str, or array for a Dask array
        The name of the column of classes, or the class of each row.
    sample_weight : str, array for a Dask array, or None, default None
        The name of the column of weights, or the weight of each row.

    Returns
    -------
    Evaluation
        Of all rows.

    Raises
    ------
    DecibanError
        If a row cannot be read; the message names partition and row.

    See Also
    --------
    deciban.evaluate : For rows in memory and files.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> import deciban as db
    >>> from deciban.engines import dask
    >>> x, y = da.from_array(np.arange(8.0).reshape(8, 1), chunks=3), np.array([0, 0, 0, 0, 1, 1, 1, 1])
    >>> dask.evaluate(dask.fit(db.NaiveBayes(), x, y), x, y).accuracy
    1.0
    """
    evaluation: Evaluation = validation.evaluate(model, _rows(collection, label, sample_weight), None)
    return evaluation


def cross_validate(
    model: Classifier,
    collection: dd.DataFrame | da.Array | SparkDataFrame,
    label: str | ArrayLike,
    cv: int | str = 10,
    *,
    random_state: int | None = 0,
    sample_weight: str | ArrayLike | None = None,
) -> Evaluation:
    """Evaluate a model by cross-validation on a collection: `deciban.cross_validate`.

    Generative models read the collection twice, whatever the number of folds; others are fitted once for each fold.

    Parameters
    ----------
    model : estimator
        A model of deciban; it is not changed.
    collection : Dask DataFrame, Dask array or Spark DataFrame
        The rows, where they are.
    label : str, or array for a Dask array
        The name of the column of classes, or the class of each row.
    cv : int or str, default 10
        The number of folds, or the name of a column that holds the fold of each row. Rows are assigned to folds by
        their values: equal rows are in one fold, in whichever partition they are.
    random_state : int or None, default 0
        The seed of the folds. None: other folds every time.
    sample_weight : str, array for a Dask array, or None, default None
        The name of the column of weights, or the weight of each row.

    Returns
    -------
    Evaluation
        Of all rows; its `parts` are those of the folds.

    Raises
    ------
    DecibanError
        If a row cannot be read, or a fit fails; the message names partition and row.

    See Also
    --------
    deciban.cross_validate : For rows in memory.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> import deciban as db
    >>> from deciban.engines import dask
    >>> x, y = da.from_array(np.arange(8.0).reshape(8, 1), chunks=3), np.array([0, 0, 0, 0, 1, 1, 1, 1])
    >>> dask.cross_validate(db.NaiveBayes(), x, y, cv=2).rows
    8.0
    """
    rows = _rows(collection, label, sample_weight)
    evaluation: Evaluation = validation.cross_validate(model, rows, None, cv, random_state=random_state)
    return evaluation
