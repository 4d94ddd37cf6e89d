"""Spark: DataFrames, learned from where their partitions are; needs `pip install deciban[spark]`, and Java 17.

Rows go through mapInArrow, which Spark Connect has too. What a partition comes to travels as a binary column and is
added up by three shuffles, so the driver meets one statistic, however many partitions there are.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa

from deciban.engines.parquet_scans import pieces_of_scan, read_pieces
from deciban.engines.parts import Collection, Columns, Outcome, add, columns_of
from deciban.errors import DecibanError
from deciban.late import late
from deciban.schema import Schema
from deciban.sources import Labelled
from deciban.sources.arrow import kind_of, table_frame
from deciban.table import numbered

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
PIECE = 1 << 26  # bytes of a statistic in one cell, which Spark bounds at 2 GB
TRAVELS = "number long, piece int, outcome binary"

__all__ = ["cross_validate", "evaluate", "fit", "predict", "rows"]


def fit(model: Any, collection: Any, label: str, sample_weight: str | None = None) -> Any:
    """Σ over partitions: what `model.fit` would learn from all rows at once; the model, fitted.

    - `model`: a generative model, an EvidenceClassifier, a LogisticRegression or a SoftmaxRegression.
    - `collection`: a DataFrame of Spark; `label` and `sample_weight` are names of its columns.

    Every pass runs the DataFrame's plan once: generative models take one, an EvidenceClassifier two, Newton one a step.
    What is read again and again is best cached.
    """
    return model.fit(rows(collection, label, sample_weight))


def evaluate(model: Any, collection: Any, label: str, sample_weight: str | None = None) -> Evaluation:
    """How good a fitted model's probabilities are: `deciban.evaluate`, partition by partition, added up."""
    found: Evaluation = judging.evaluate(model, rows(collection, label, sample_weight), None)
    return found


def cross_validate(
    model: Any,
    collection: Any,
    label: str,
    folds: int | str = 10,
    *,
    seed: int = 0,
    sample_weight: str | None = None,
) -> Evaluation:
    """Every row judged by a model that has learned the other folds: `deciban.cross_validate`.

    - `folds`: how many, or the name of a column that holds the fold of each row. Rows are dealt by what they hold:
      equal rows are in one fold, wherever they are.

    Generative models take two passes, whatever the number of folds; others are fitted once for each.
    """
    found: Evaluation = judging.cross_validate(model, rows(collection, label, sample_weight), None, folds, seed=seed)
    return found


def predict(model: Any, collection: Any, *, probabilities: bool = True) -> Any:
    """A DataFrame with the columns `prediction` and `p(CLASS)` beside its own.

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
    fields = to_arrow_schema(collection.schema)
    schema = Schema(tuple(fields.names), tuple(kind_of(field.name, field.type) for field in fields))
    columns = columns_of(schema, label, sample_weight)
    pieces = pieces_of_scan(collection, fields)
    if pieces:
        numbers = collection.sparkSession.range(0, len(pieces), 1, len(pieces))  # one for each task
        return Partitions(columns, partial(read_pieces, columns, pieces), numbers)
    packs = _packs(fields)
    return Partitions(columns, partial(_read, columns, packs), _packed(collection, fields.names, packs))


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
    context = TaskContext.get()
    number = context.partitionId() if context is not None else 0
    yield from _sent(number, work(number, batches))


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
    for piece, start in enumerate(range(0, len(data), PIECE)):
        cells = [pa.array([number], pa.int64()), pa.array([piece], pa.int32())]
        cells.append(pa.array([data[start : start + PIECE]], pa.binary()))
        yield pa.RecordBatch.from_arrays(cells, names=["number", "piece", "outcome"])


def _unpickled(pieces: list[bytes]) -> Outcome[Any]:
    found: Outcome[Any] = pickle.loads(b"".join(pieces))
    return found


# Many columns as one -------------------------------------------------------------------------------------------------

Packs = dict[str, list[str]]  # the columns that are cells of an array, by its name


def _packs(fields: Any) -> Packs:
    """Numbers of one type go as one array: Spark hands over a cell of an array in half the time of one of a column."""
    found: dict[Any, list[str]] = {}
    for field in fields:
        if pa.types.is_floating(field.type) or pa.types.is_integer(field.type):
            found.setdefault(field.type, []).append(field.name)
    names = numbered([*fields.names, *(f"numbers of {kind}" for kind in found)])[len(fields.names) :]
    return {name: members for name, members in zip(names, found.values(), strict=True) if len(members) > 1}


def _packed(collection: Any, names: Sequence[str], packs: Packs) -> Any:
    inside = {name for members in packs.values() for name in members}
    arrays = [functions.array(*map(_quoted, members)).alias(name) for name, members in packs.items()]
    return collection.select(*(_quoted(name) for name in names if name not in inside), *arrays)


def _quoted(name: str) -> str:
    """A dot in a name is no field of a structure."""
    return f"`{name.replace('`', '``')}`"


def _read(columns: Columns, packs: Packs, number: int, batches: Iterable[Any]) -> Labelled:
    return columns.table(number, (_unpacked(packs, batch) for batch in batches))


def _unpacked(packs: Packs, batch: Any) -> Any:
    found = dict(zip(batch.schema.names, batch.columns, strict=True))
    for name, members in packs.items():
        cells = found.pop(name).flatten()
        values, width = np.asarray(cells.fill_null(0)).reshape(batch.num_rows, -1), len(members)
        absent = None if not cells.null_count else np.asarray(cells.is_null()).reshape(-1, width)
        for j, member in enumerate(members):
            mask = None if absent is None else absent[:, j]
            found[member] = pa.array(np.ascontiguousarray(values[:, j]), mask=mask)
    return pa.table(found)


# DataFrames ----------------------------------------------------------------------------------------------------------


def _require_frame(collection: Any) -> None:
    if not hasattr(collection, "mapInArrow"):
        kind = f"{type(collection).__module__.partition('.')[0]}'s {type(collection).__name__}"
        raise DecibanError(f"collection is {kind}: pass a DataFrame of Spark")


def _answered(answers: Answers, names: list[str], types: list[Any], batches: Iterable[Any]) -> Iterator[Any]:
    for batch in batches:
        found = answers.columns(table_frame(pa.Table.from_batches([batch])))
        added = [column.cast(kind) for column, kind in zip(found, types, strict=True)]
        yield pa.RecordBatch.from_arrays([*batch.columns, *added], names=[*batch.schema.names, *names])
