"""Dask: models of DataFrames and arrays, fitted where their partitions are; needs `pip install deciban[dask]`.

Any scheduler of Dask does the work: threads, or the cluster of a `dask.distributed.Client`.

Examples
--------
>>> import dask.dataframe as dd
>>> import pandas as pd
>>> import deciban as db
>>> from deciban.engines import dask
>>> people = pd.DataFrame({"income": [125, 100, 70, 95, 85, 90], "evade": ["no", "no", "no", "yes", "yes", "yes"]})
>>> model = dask.fit(db.NaiveBayes(), dd.from_pandas(people, npartitions=3), "evade")
>>> model.class_count_
array([3., 3.])
"""

from __future__ import annotations

import operator
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from deciban.data import frame_of
from deciban.data.arrow import table_frame
from deciban.data.batch import Kind
from deciban.data.schema import Schema
from deciban.engines.engine import cross_validate, evaluate, fit, wrong_collection
from deciban.engines.partitions import (
    ColumnRoles,
    EngineRows,
    PartitionResult,
    column_roles,
    error_context,
    sum_results,
)
from deciban.errors import DecibanError
from deciban.lazy import lazy

try:
    import dask.array as da
    import dask.dataframe as dd
    from dask.delayed import Delayed
except ImportError as error:
    raise ImportError(f"deciban.engines.dask needs Dask: pip install deciban[dask] ({error})") from error

if TYPE_CHECKING:
    from deciban.engines.prediction_columns import PredictionColumns
    from deciban.evaluation.fitted_model import FittedModel

sp = lazy("scipy.sparse")
prediction_columns = lazy("deciban.engines.prediction_columns")  # workers that fit do not need it

T = TypeVar("T")

FAN_IN = 8  # results that one task sums

__all__ = ["cross_validate", "evaluate", "fit", "predict", "predict_proba", "rows"]


def predict(
    model: FittedModel, collection: dd.DataFrame | da.Array, *, probabilities: bool = True
) -> dd.DataFrame | da.Array:
    """Predict lazily: a DataFrame with the added columns `prediction` and `proba_CLASS`, or an array of labels.

    Parameters
    ----------
    model : estimator
        A fitted model of deciban.
    collection : Dask DataFrame or Dask array
        The rows; other columns than the features are kept.
    probabilities : bool, default True
        Whether a DataFrame gets columns of probabilities.

    Returns
    -------
    Dask DataFrame, or Dask array of labels
        Nothing is computed before `compute()` or `to_parquet()`.

    Raises
    ------
    DecibanError
        If this is no Dask collection; and, when it is computed, if a row cannot be read.

    See Also
    --------
    deciban.engines.dask.predict_proba : Probabilities of an array.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> import deciban as db
    >>> from deciban.engines import dask
    >>> people = pd.DataFrame({"income": [125, 100, 70, 95, 85, 90], "evade": ["no", "no", "no", "yes", "yes", "yes"]})
    >>> model = db.NaiveBayes().fit(people, "evade")
    >>> dask.predict(model, dd.from_pandas(people, npartitions=2), probabilities=False).compute()["prediction"].tolist()
    ['no', 'no', 'no', 'yes', 'yes', 'yes']
    """
    if isinstance(collection, da.Array):
        dtype = np.asarray(model.classes_).dtype
        return _whole_rows(collection).map_blocks(
            partial(_predict_block, model), dtype=dtype, drop_axis=1, meta=np.empty(0, dtype)
        )
    _require_frame(collection)
    predictions = prediction_columns.PredictionColumns(model, probabilities)
    return collection.map_partitions(partial(_predict, predictions), meta=_predict(predictions, collection._meta))


def predict_proba(model: FittedModel, collection: da.Array) -> da.Array:
    """The probability of each class for the rows of a Dask array, lazily.

    Parameters
    ----------
    model : classifier
        A fitted model with probabilities.
    collection : Dask array of shape (n, d)
        The rows.

    Returns
    -------
    Dask array of shape (n, K)
        Columns in the order of `model.classes_`.

    Raises
    ------
    DecibanError
        If this is no Dask array: for a DataFrame, `predict` adds columns of probabilities.

    See Also
    --------
    deciban.engines.dask.predict : Labels, and DataFrames.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> import deciban as db
    >>> from deciban.engines import dask
    >>> x, y = np.arange(8.0).reshape(8, 1), np.array([0, 0, 0, 0, 1, 1, 1, 1])
    >>> dask.predict_proba(db.NaiveBayes().fit(x, y), da.from_array(x, chunks=3)).shape
    (8, 2)
    """
    if not isinstance(collection, da.Array):
        raise DecibanError("predict_proba takes a Dask array: for a DataFrame, predict adds columns of probabilities")
    x, chunks = _whole_rows(collection), (len(model.classes_),)
    return x.map_blocks(
        partial(_predict_proba_block, model), dtype=np.float64, chunks=(x.chunks[0], chunks), meta=np.empty((0, 0))
    )


def rows(
    collection: dd.DataFrame | da.Array, label: str | ArrayLike, sample_weight: str | ArrayLike | None = None
) -> EngineRows:
    """A collection as X of any method that takes labelled rows, such as `model.partial_fit(rows(more, "y"))`.

    Parameters
    ----------
    collection : Dask DataFrame or Dask array
        The rows, where they are.
    label : str, or array for a Dask array
        The name of the column of classes, or the class of each row.
    sample_weight : str, array for a Dask array, or None, default None
        The name of the column of weights, or the weight of each row.

    Returns
    -------
    EngineRows
        Distributed rows, with their classes and weights.

    Raises
    ------
    DecibanError
        If this is no Dask collection, or has no such column.

    See Also
    --------
    deciban.engines.dask.fit : The first fit.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> import deciban as db
    >>> from deciban.engines import dask
    >>> x, y = da.from_array(np.arange(8.0).reshape(8, 1), chunks=3), np.array([0, 0, 0, 0, 1, 1, 1, 1])
    >>> model = dask.fit(db.NaiveBayes(), x, y)
    >>> model.forget(dask.rows(x[:2], y[:2])).class_count_
    array([2., 4.])
    """
    if isinstance(collection, da.Array):
        return _array_rows(collection, label, sample_weight)
    _require_frame(collection)
    columns = column_roles(_schema(collection), label, sample_weight)
    return DaskRows(columns, columns.table, _partitions(collection))


# Map and sum ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DaskRows(EngineRows):
    """Partitions as tuples of delayed values: a table, or blocks of rows, labels and weights."""

    partitions: tuple[tuple[Any, ...], ...]
    label_dtype: Any = None

    def map_sum(self, work: Callable[[int, Any], PartitionResult[T]]) -> PartitionResult[T]:
        """Workers read partitions and sum FAN_IN results at a time; one result comes back.

        The graph is built by hand: thousands of delayed calls are slow to merge, and each would hold a copy of work.
        """
        if not self.partitions:
            return PartitionResult()
        token = uuid.uuid4().hex
        collect_key, sum_key, work_key = (f"deciban-{step}-{token}" for step in ("collect", "add", "work"))
        graph: dict[Any, Any] = {work_key: (_identity, work)}
        delayed = [cell for partition in self.partitions for cell in partition if isinstance(cell, Delayed)]
        for partition_graph in {id(cell.dask): cell.dask for cell in delayed}.values():
            graph.update(partition_graph)
        layer: list[Any] = []
        for number, partition in enumerate(self.partitions):
            layer.append((collect_key, number))  # the dashboard shows deciban-collect
            keys = [cell.key if isinstance(cell, Delayed) else cell for cell in partition]
            graph[layer[-1]] = (operator.call, work_key, number, keys)
        depth = 0
        while len(layer) > 1:
            depth, below = depth + 1, layer
            layer = [(sum_key, depth, i) for i in range(0, len(below), FAN_IN)]
            graph |= {key: (sum_results, below[key[2] : key[2] + FAN_IN]) for key in layer}
        total: PartitionResult[T] = Delayed(layer[0], graph).compute()
        return total


def _identity(work: T) -> T:
    return work


# DataFrames ----------------------------------------------------------------------------------------------------------


def _require_frame(collection: Any) -> None:
    if not isinstance(collection, dd.DataFrame):
        raise wrong_collection(collection, "a Dask DataFrame or a Dask array of two dimensions")


def _partitions(frame: Any) -> tuple[tuple[Any, ...], ...]:
    return tuple((table,) for table in frame.to_delayed())


def _schema(frame: Any) -> Schema:
    """The kinds of columns. Columns of Python objects and of unknown categories are read to infer them."""
    declared = Schema.of(table_frame(frame._meta))
    unknown = [j for j, kind in enumerate(declared.kinds) if kind == "empty" or _unknown_categories(frame, j)]
    if not unknown:
        return declared
    columns = ColumnRoles(declared, None, None)
    rows = DaskRows(columns, columns.table, _partitions(frame.iloc[:, unknown]))
    total = rows.map_sum(_partition_kinds).unwrap()
    inferred: dict[int, Kind] = dict(zip(unknown, total.schema.kinds, strict=True)) if total else {}
    return Schema(declared.names, tuple(inferred.get(j, kind) for j, kind in enumerate(declared.kinds)))


def _unknown_categories(frame: Any, position: int) -> bool:
    column = frame._meta.iloc[:, position]
    return str(column.dtype) == "category" and not dd.utils.has_known_categories(column)


@dataclass(frozen=True)
class _Kinds:
    schema: Schema

    def __add__(self, other: _Kinds) -> _Kinds:
        a, b = self.schema, other.schema
        kinds = zip(a.merge(b).kinds, b.merge(a).kinds, strict=True)  # booleans beside numbers are numbers
        return _Kinds(Schema(a.names, tuple("number" if x != y and "number" in (x, y) else x for x, y in kinds)))


def _partition_kinds(number: int, tables: Any) -> PartitionResult[_Kinds]:
    (table,) = tables
    return PartitionResult.of(number, lambda: _Kinds(Schema.of(table_frame(table))) if len(table) else None)


def _predict(predictions: PredictionColumns, table: Any, partition_info: Any = None) -> Any:
    names = predictions.free_names([str(name) for name in table.columns])
    with error_context(0 if partition_info is None else partition_info["number"]):
        columns = predictions.predict(predictions.select_features(table)) if len(table) else predictions.empty()
    return table.assign(**{name: column.to_pandas().array for name, column in zip(names, columns, strict=True)})


# Arrays --------------------------------------------------------------------------------------------------------------


def _whole_rows(x: Any) -> Any:
    """The array in chunks of whole rows."""
    if x.ndim != 2:
        raise DecibanError(f"X must have two dimensions; it has the shape {x.shape}: pass a row for each example")
    return x.rechunk({1: -1}) if x.numblocks[1] > 1 else x


def _array_rows(x: Any, y: Any, weights: Any) -> DaskRows:
    x = _whole_rows(x)
    sparse = sp.issparse(x._meta)
    like = frame_of(sp.csr_array((0, x.shape[1])) if sparse else np.empty((0, x.shape[1]), x.dtype))
    labels, weights = _chunked_like(x, y, "y"), _chunked_like(x, weights, "sample_weight")
    partitions = tuple(zip(x.to_delayed().ravel(), labels, weights, strict=True))
    columns = ColumnRoles(Schema.of(like), None, None, like)
    return DaskRows(columns, columns.block, partitions, getattr(y, "dtype", None))


def _chunked_like(x: Any, values: Any, name: str) -> list[Any]:
    """The delayed chunks of labels or weights, split as the rows are."""
    if values is None and name == "sample_weight":
        return [None] * x.numblocks[0]
    if values is None or isinstance(values, str):
        raise DecibanError(f"{name} is {values!r}: for a Dask array pass an array with a value for each row")
    if not isinstance(values, da.Array):
        has_chunks = hasattr(values, "to_dask_array")
        values = values.to_dask_array(lengths=True) if has_chunks else da.from_array(np.asarray(values))
    if np.isnan(x.shape[0]) or np.isnan(values.shape[0]):
        if values.numblocks[0] != x.numblocks[0]:
            raise DecibanError(f"X and {name} have chunks of unknown sizes: call compute_chunk_sizes() on both")
    elif values.shape != (x.shape[0],):
        raise DecibanError(
            f"Found input variables with inconsistent numbers of samples: {name}.shape == {values.shape}, and there "
            f"are {x.shape[0]} rows"
        )
    else:
        values = values.rechunk((x.chunks[0],))
    return list(values.to_delayed().ravel())


def _predict_block(model: Any, block: Any) -> Any:
    return model.predict(block) if block.shape[0] else np.asarray(model.classes_)[:0]


def _predict_proba_block(model: Any, block: Any) -> Any:
    return model.predict_proba(block) if block.shape[0] else np.empty((0, len(model.classes_)))
