"""Spark: DataFrames, learned from where their partitions are; needs `pip install deciban[spark]`, and Java 17.

Rows go through mapInArrow, which Spark Connect has too. What a partition comes to travels as a binary column and is
added up by three shuffles, so the driver meets one statistic, however many partitions there are.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from deciban.engines.handing_over import Packing, groups_of_scan, read_groups
from deciban.engines.parts import Collection, Outcome, add, columns_of, fitted, located
from deciban.errors import DecibanError
from deciban.late import late
from deciban.schema import Schema
from deciban.sources.arrow import kind_of, table_frame

try:
    from pyspark import TaskContext
    from pyspark.sql import functions
    from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema
    from pyspark.sql.types import StructField, StructType
except ImportError as error:
    raise ImportError(f"deciban.engines.spark needs PySpark: pip install deciban[spark] ({error})") from error

if TYPE_CHECKING:
    from deciban.engines.answers import Answers
    from deciban.evaluation import Evaluation

# not needed where partitions are collected
answering = late("deciban.engines.answers")
judging = late("deciban.evaluation.judging")

T = TypeVar("T")

GROUPS = (1024, 32, 1)  # sums that partitions are added up to, one after the other
CELL = 1 << 22  # bytes of a statistic in one cell: Java holds some of them at a time
TRAVELS = "number long, piece int, outcome binary"

__all__ = ["cross_validate", "evaluate", "fit", "predict", "rows"]


def fit(model: Any, collection: Any, label: str, sample_weight: str | None = None) -> Any:
    """Σ over partitions: what `model.fit` would learn from all rows at once; the model, fitted.

    - `model`: a generative model, an EvidenceClassifier, a LogisticRegression or a SoftmaxRegression.
    - `collection`: a DataFrame of Spark; `label` and `sample_weight` are names of its columns.

    Every pass runs the DataFrame's plan once: generative models take one, an EvidenceClassifier two, Newton one a step.
    What is read again and again is best cached.
    """
    return fitted(model, rows(collection, label, sample_weight))


def evaluate(model: Any, collection: Any, label: str, sample_weight: str | None = None) -> Evaluation:
    """How good a fitted model's probabilities are: `deciban.evaluate`, partition by partition, added up."""
    found: Evaluation = judging.evaluate(model, rows(collection, label, sample_weight), None)
    return found


def cross_validate(
    model: Any,
    collection: Any,
    label: str,
    cv: int | str = 10,
    *,
    random_state: int | None = 0,
    sample_weight: str | None = None,
) -> Evaluation:
    """Every row judged by a model that has learned the other folds: `deciban.cross_validate`.

    - `cv`: how many folds, or the name of a column that holds the fold of each row. Rows are dealt by what they hold:
      equal rows are in one fold, wherever they are.

    Generative models take two passes, whatever the number of folds; others are fitted once for each.
    """
    found: Evaluation = judging.cross_validate(
        model, rows(collection, label, sample_weight), None, cv, random_state=random_state
    )
    return found


def predict(model: Any, collection: Any, *, probabilities: bool = True) -> Any:
    """A DataFrame with the columns `prediction` and `proba_CLASS` beside its own.

    Lazy, and distributed: nothing is computed until the result is asked for.
    """
    _require_frame(collection)
    answers = answering.Answers(model, probabilities)
    fields = list(collection.schema.fields)
    names = answers.beside([field.name for field in fields])
    types = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in answers.types]
    added = [StructField(name, from_arrow_type(kind)) for name, kind in zip(names, types, strict=True)]
    schema = StructType(fields + added)
    return collection.mapInArrow(partial(_answered, answers, names, types), schema)


def rows(collection: Any, label: str, sample_weight: str | None = None) -> Collection:
    """A DataFrame as X, for every method that learns rows or judges by them: `model.partial_fit(rows(more, "y"))`."""
    _require_frame(collection)
    fields = arrow_schema(collection.schema)
    schema = Schema(tuple(fields.names), tuple(kind_of(field.name, field.type) for field in fields))
    columns = columns_of(schema, label, sample_weight)
    groups = groups_of_scan(collection, fields)
    if groups:
        numbers = collection.sparkSession.range(0, len(groups), 1, len(groups))  # one for each task
        return Partitions(columns, partial(read_groups, columns, groups), numbers)
    packing = Packing.of(fields)
    return Partitions(columns, partial(packing.read, columns), packing.packed(collection))


# How Spark maps and adds ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Partitions(Collection):
    """The partitions of a DataFrame."""

    collection: Any

    def _mapped_and_added(self, work: Callable[[int, Any], Outcome[T]]) -> Outcome[T]:
        """Each partition's outcome is pickled; sums of some are made in parallel, then sums of these."""
        found = self.collection.mapInArrow(partial(_outcomes, work), TRAVELS)
        for groups in GROUPS:
            grouped = found.withColumn("group", functions.col("number") % groups)
            found = _added(grouped.repartition("group") if groups > 1 else grouped.repartition(1))
        pieces = sorted(found.collect(), key=lambda row: row["piece"])
        return _unpickled([row["outcome"] for row in pieces]) if pieces else Outcome()


def _outcomes(work: Callable[[int, Any], Outcome[Any]], batches: Iterable[Any]) -> Iterator[Any]:
    """One partition: its batches in, its outcome out. An empty one says nothing."""
    number = _number()
    yield from _sent(number, work(number, batches))


def _number() -> int:
    """That of the partition which this task works on."""
    context = TaskContext.get()
    return context.partitionId() if context is not None else 0


def _added(grouped: Any) -> Any:
    """The sums of groups of outcomes. Each is added up in the order of partitions, whoever was ready first."""
    return grouped.sortWithinPartitions("group", "number", "piece").mapInArrow(_sums, TRAVELS)


def _sums(batches: Iterable[Any]) -> Iterator[Any]:
    rows = (row for batch in batches for row in _rows_of(batch))
    for group, members in groupby(rows, key=lambda row: row[0]):
        outcomes = (
            _unpickled([piece for *_, piece in pieces]) for _, pieces in groupby(members, key=lambda row: row[1])
        )
        yield from _sent(group, add(outcomes))


def _rows_of(batch: Any) -> Iterator[tuple[int, int, bytes]]:
    group, number, outcome = (
        batch.column(batch.schema.get_field_index(name)) for name in ("group", "number", "outcome")
    )
    for i in range(batch.num_rows):
        yield group[i].as_py(), number[i].as_py(), outcome[i].as_py()


def _sent(number: int, outcome: Outcome[Any]) -> Iterator[Any]:
    """An outcome as rows, each of a size that a cell may have."""
    if outcome.empty:
        return
    data = pickle.dumps(outcome, protocol=5)
    for piece, start in enumerate(range(0, len(data), CELL)):
        cells = [pa.array([number], pa.int64()), pa.array([piece], pa.int32())]
        cells.append(pa.array([data[start : start + CELL]], pa.binary()))
        yield pa.RecordBatch.from_arrays(cells, names=["number", "piece", "outcome"])


def _unpickled(pieces: list[bytes]) -> Outcome[Any]:
    found: Outcome[Any] = pickle.loads(b"".join(pieces))
    return found


# DataFrames ----------------------------------------------------------------------------------------------------------


def _require_frame(collection: Any) -> None:
    if not hasattr(collection, "mapInArrow"):
        kind = f"{type(collection).__module__.partition('.')[0]}'s {type(collection).__name__}"
        raise DecibanError(f"collection is {kind}: pass a DataFrame of Spark")


def arrow_schema(schema: Any) -> Any:
    """Arrow's types of the columns; those that Spark has no word for are structures without fields."""
    return pa.schema([(field.name, _arrow_type(field)) for field in schema.fields])


def _arrow_type(field: Any) -> Any:
    if field.dataType.typeName() == "timestamp":  # which asks for a time zone, in some versions
        return pa.timestamp("us", tz="UTC")
    try:
        return to_arrow_schema(StructType([field])).field(0).type
    except Exception:  # one that is dropped, or kept by predict, is none of our business
        return pa.struct([])


def _answered(answers: Answers, names: list[str], types: list[Any], batches: Iterable[Any]) -> Iterator[Any]:
    first = 0
    for batch in batches:
        with located(_number(), first):
            found = answers.columns(table_frame(answers.needed(pa.Table.from_batches([batch]))))
        first += batch.num_rows
        added = [column.cast(kind) for column, kind in zip(found, types, strict=True)]
        yield pa.RecordBatch.from_arrays([*batch.columns, *added], names=[*batch.schema.names, *names])
