"""Spark: models of DataFrames, fitted where their partitions are; needs `pip install deciban[spark]`, and Java 17.

Rows pass through mapInArrow, which Spark Connect has too. The result of a partition is a binary column, and three
shuffles sum the results, so the driver receives one statistic, whatever the number of partitions.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from deciban.data.arrow import kind_of, table_frame
from deciban.data.schema import Schema
from deciban.engines.engine import cross_validate, evaluate, fit, wrong_collection
from deciban.engines.partitions import EngineRows, PartitionResult, column_roles, error_context, sum_results
from deciban.engines.spark_transfer import PackedColumns, read_row_groups, scanned_row_groups
from deciban.lazy import lazy

try:
    from pyspark import TaskContext
    from pyspark.sql import functions
    from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema
    from pyspark.sql.types import StructField, StructType
except ImportError as error:
    raise ImportError(f"deciban.engines.spark needs PySpark: pip install deciban[spark] ({error})") from error

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from deciban.engines.prediction_columns import PredictionColumns
    from deciban.evaluation.fitted_model import FittedModel

prediction_columns = lazy("deciban.engines.prediction_columns")  # workers that fit do not need it

T = TypeVar("T")

GROUPS = (1024, 32, 1)  # sums after each shuffle
CELL = 1 << 22  # bytes of a result per cell: Java holds several cells at a time
RESULT_SCHEMA = "number long, piece int, result binary"

__all__ = ["cross_validate", "evaluate", "fit", "predict", "rows"]


def predict(model: FittedModel, collection: DataFrame, *, probabilities: bool = True) -> DataFrame:
    """Predict lazily: a DataFrame with the added columns `prediction` and `proba_CLASS`.

    Parameters
    ----------
    model : estimator
        A fitted model of deciban.
    collection : Spark DataFrame
        The rows; other columns than the features are kept.
    probabilities : bool, default True
        Whether to add columns of probabilities.

    Returns
    -------
    Spark DataFrame
        Nothing is computed before an action, such as `write`.

    Raises
    ------
    DecibanError
        If this is no Spark DataFrame; and, when it is computed, if a row cannot be read.

    See Also
    --------
    deciban.engines.spark.evaluate : How good the predictions are.
    """
    _require_frame(collection)
    predictions = prediction_columns.PredictionColumns(model, probabilities)
    fields = list(collection.schema.fields)
    names = predictions.free_names([field.name for field in fields])
    types = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in predictions.types]
    added = [StructField(name, from_arrow_type(kind)) for name, kind in zip(names, types, strict=True)]
    schema = StructType(fields + added)
    return collection.mapInArrow(partial(_predict, predictions, names, types), schema)


def rows(collection: DataFrame, label: str, sample_weight: str | None = None) -> EngineRows:
    """A DataFrame as X of any method that takes labelled rows, such as `model.partial_fit(rows(more, "y"))`.

    Parameters
    ----------
    collection : Spark DataFrame
        The rows, where they are.
    label : str
        The name of the column of classes.
    sample_weight : str or None, default None
        The name of the column of weights.

    Returns
    -------
    EngineRows
        Distributed rows, with their classes and weights.

    Raises
    ------
    DecibanError
        If this is no Spark DataFrame, or has no such column.

    See Also
    --------
    deciban.engines.spark.fit : The first fit.
    """
    _require_frame(collection)
    fields = arrow_schema(collection.schema)
    schema = Schema(tuple(fields.names), tuple(kind_of(field.name, field.type) for field in fields))
    columns = column_roles(schema, label, sample_weight)
    groups = scanned_row_groups(collection, fields)
    if groups:
        numbers = collection.sparkSession.range(0, len(groups), 1, len(groups))  # one for each task
        return SparkRows(columns, partial(read_row_groups, columns, groups), numbers)
    packed = PackedColumns.of(fields)
    return SparkRows(columns, partial(packed.read, columns), packed.pack(collection))


# Map and sum ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SparkRows(EngineRows):
    """The partitions of a DataFrame."""

    collection: Any

    def map_sum(self, work: Callable[[int, Any], PartitionResult[T]]) -> PartitionResult[T]:
        """The result of each partition is pickled; groups of them are summed in parallel, then these sums."""
        results = self.collection.mapInArrow(partial(_run, work), RESULT_SCHEMA)
        for groups in GROUPS:
            grouped = results.withColumn("group", functions.col("number") % groups)
            grouped = grouped.repartition("group") if groups > 1 else grouped.repartition(1)
            in_order = grouped.sortWithinPartitions("group", "number", "piece")  # not as results were ready
            results = in_order.mapInArrow(_sums, RESULT_SCHEMA)
        pieces = sorted(results.collect(), key=itemgetter("piece"))
        return pickle.loads(b"".join(row["result"] for row in pieces)) if pieces else PartitionResult()


def _run(work: Callable[[int, Any], PartitionResult[Any]], batches: Iterable[Any]) -> Iterator[Any]:
    """The result of work on the batches of a partition, as rows."""
    number = _partition_number()
    yield from _pickled(number, work(number, batches))


def _partition_number() -> int:
    """The number of the partition of this task."""
    context = TaskContext.get()
    return context.partitionId() if context is not None else 0


def _sums(batches: Iterable[Any]) -> Iterator[Any]:
    """The sum of each group of results."""
    rows = (row for batch in batches for row in batch.select(["group", "number", "result"]).to_pylist())
    for group, members in groupby(rows, key=itemgetter("group")):
        by_number = groupby(members, key=itemgetter("number"))
        pickles = (b"".join(row["result"] for row in pieces) for _, pieces in by_number)
        results: Iterator[PartitionResult[Any]] = map(pickle.loads, pickles)
        yield from _pickled(group, sum_results(results))


def _pickled(number: int, result: PartitionResult[Any]) -> Iterator[Any]:
    """A pickled result as rows of at most CELL bytes; an empty result has no rows."""
    if result.empty:
        return
    data = pickle.dumps(result, protocol=5)
    for piece, start in enumerate(range(0, len(data), CELL)):
        cells = [pa.array([number], pa.int64()), pa.array([piece], pa.int32())]
        cells.append(pa.array([data[start : start + CELL]], pa.binary()))
        yield pa.RecordBatch.from_arrays(cells, names=["number", "piece", "result"])


# DataFrames ----------------------------------------------------------------------------------------------------------


def _require_frame(collection: Any) -> None:
    if not hasattr(collection, "mapInArrow"):
        raise wrong_collection(collection, "a Spark DataFrame")


def arrow_schema(schema: Any) -> Any:
    """The Arrow types of columns; an empty struct for types that have none."""
    return pa.schema([(field.name, _arrow_type(field)) for field in schema.fields])


def _arrow_type(field: Any) -> Any:
    if field.dataType.typeName() == "timestamp":  # some versions of pyspark require a time zone
        return pa.timestamp("us", tz="UTC")
    try:
        return to_arrow_schema(StructType([field])).field(0).type
    except Exception:  # predict copies such a column; a fit raises an error unless it is dropped
        return pa.struct([])


def _predict(
    predictions: PredictionColumns, names: list[str], types: list[Any], batches: Iterable[Any]
) -> Iterator[Any]:
    first = 0
    for batch in batches:
        with error_context(_partition_number(), first):
            features = predictions.select_features(pa.Table.from_batches([batch]))
            columns = predictions.predict(table_frame(features))
        first += batch.num_rows
        added = [column.cast(kind) for column, kind in zip(columns, types, strict=True)]
        yield pa.RecordBatch.from_arrays([*batch.columns, *added], names=[*batch.schema.names, *names])
