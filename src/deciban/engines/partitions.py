"""What all engines share: the rows of a partition, the result of work on it, and the sum of results.

An engine subclasses `EngineRows`, which maps work over its partitions and sums the results.
"""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, Generic, TypeVar

from deciban.data import CELLS_PER_BATCH, Labelled, Sample, Streamed, frame_of
from deciban.data.arrow import TableFrame
from deciban.data.batch import Frame, Kind, Notation
from deciban.data.distributed import DistributedRows
from deciban.data.labels import encode_labels, weights_of
from deciban.data.schema import Schema, no_column, require_unique
from deciban.data.stream import Stream, concat_frames
from deciban.data.text_columns import apply_notations
from deciban.errors import DecibanError, RowError, capture_warnings, warn, warn_of_impossible

T = TypeVar("T")

ROWS = 1 << 17  # per frame, to which small tables are concatenated; fewer for wide tables
MAX_WARNINGS = 5  # distinct warnings of partitions that are issued on the driver


# A partition ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PartitionTables(Stream):
    """The tables of one partition, which can be read only once."""

    tables: Iterable[Any]
    schema: Schema
    number: int

    single_pass = True

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(map(str, self.schema.names))

    @property
    def kinds(self) -> tuple[Kind, ...]:
        return self.schema.kinds

    @property
    def notations(self) -> tuple[Notation | None, ...]:
        return self.schema.notations

    @property
    def title(self) -> str:
        return f"partition {self.number}"

    def locate(self, row: int) -> str:
        return f"partition {self.number}, row {row}"

    def frames(self) -> Iterator[TableFrame]:
        """Frames with the kinds of the whole collection: in one partition a column may be empty."""
        pending: list[TableFrame] = []
        for table in self.tables:
            frame = apply_notations(frame_of(table), self.schema)
            assert isinstance(frame, TableFrame)
            if not frame.rows:
                continue
            self.schema.merge_frame(frame)
            columns = self.schema.positions(frame)
            pending.append(TableFrame(frame.table.select(columns), self.names, self.kinds, self.notations))
            if sum(frame.rows for frame in pending) >= rows_at_a_time(self.schema):
                yield concat_frames(pending)
                pending.clear()
        if pending:
            yield concat_frames(pending)


def rows_at_a_time(schema: Schema) -> int:
    return max(1, min(ROWS, CELLS_PER_BATCH // max(1, len(schema.names))))


@dataclass(frozen=True)
class PartitionRows(Streamed):
    """Rows of one partition; there may be none."""

    def _require_some(self, rows: int, weight: float) -> None:
        pass


@dataclass(frozen=True)
class ColumnRoles:
    """The columns of every partition, and which of them are labels and weights."""

    schema: Schema  # of all columns of a table, or of the array
    label: str | None  # None: the labels are an array of their own
    weight: str | None
    like: Frame | None = None  # an array without rows

    def table(self, number: int, tables: Iterable[Any]) -> Labelled:
        """The rows of a partition of tables."""
        assert self.label is not None
        return PartitionRows(PartitionTables(tables, self.schema, number), self.label, self.weight)

    def block(self, number: int, arrays: Any) -> Labelled:
        """Rows of an array, with arrays of labels and weights."""
        x, y, weights = arrays
        frame = frame_of(x)
        self.schema.merge_frame(frame)
        labels = encode_labels(y)
        if len(labels.codes) != frame.rows:
            raise DecibanError(f"there are {frame.rows} rows and {len(labels.codes)} labels: give both the same chunks")
        return Sample(frame, labels, None if weights is None else weights_of(weights, frame.rows))

    @property
    def frame(self) -> Frame:
        """The features, without rows."""
        if self.like is not None:
            return self.like
        empty = PartitionTables((), self.schema, 0).empty
        return empty.select([j for j, name in enumerate(empty.names) if name not in (self.label, self.weight)])


@contextmanager
def error_context(number: int, first: int = 0) -> Iterator[None]:
    """Adds the partition, and the row counted from `first`, to errors."""
    where = f"partition {number}"
    try:
        yield
    except RowError as error:
        raise error.at(f"{where}, row {first + error.row}") from None
    except DecibanError as error:
        if where in str(error):
            raise
        raise type(error)(f"{where}: {error}") from None


# Results -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PartitionResult(Generic[T]):
    """The result of work on some partitions. An error about rows is a result too, since engines would retry a task that
    fails."""

    value: T | None = None
    error: tuple[int, DecibanError] | None = None  # the first partition with an error, and the error
    warnings: tuple[tuple[str, int, int], ...] = ()  # message, the first partition with it, number of partitions
    impossible: int = 0  # rows that are impossible under every class
    number: int = 0  # of the first partition

    @classmethod
    def of(cls, number: int, work: Callable[[], T | None]) -> PartitionResult[T]:
        """The value of work(), or the error that it raises, and its warnings."""
        try:
            with capture_warnings() as captured, error_context(number):
                value = work()
        except DecibanError as error:
            return cls(error=(number, error), number=number)
        messages = tuple((message, number, 1) for message in dict.fromkeys(captured.messages))
        return cls(value, None, messages[:MAX_WARNINGS], captured.impossible, number)

    @property
    def empty(self) -> bool:
        """Whether there is no value, error or warning."""
        return self.value is None and self.error is None and not self.warnings and not self.impossible

    def __add__(self, other: PartitionResult[T]) -> PartitionResult[T]:
        errors = [error for error in (self.error, other.error) if error is not None]
        if errors:
            return PartitionResult(error=min(errors, key=lambda error: error[0]))
        try:
            with error_context(other.number):  # the partition that does not match earlier ones
                values = [value for value in (self.value, other.value) if value is not None]
                value = reduce(operator.add, values) if values else None
        except DecibanError as error:
            return PartitionResult(error=(other.number, error))
        number = min((result.number for result in (self, other) if not result.empty), default=0)
        warnings: dict[str, tuple[str, int, int]] = {}
        for message, partition, times in self.warnings + other.warnings:
            _, first, count = warnings.get(message, (message, partition, 0))
            warnings[message] = message, min(first, partition), count + times
        messages = tuple(warnings.values())[:MAX_WARNINGS]
        return PartitionResult(value, None, messages, self.impossible + other.impossible, number)

    def unwrap(self) -> T | None:
        """The value, after its warnings are issued; raises the error if there is one."""
        if self.error is not None:
            raise self.error[1]
        for message, number, times in self.warnings:
            more = f" and {times - 1} more" if times > 1 else ""
            warn(f"{message} (partition {number}{more})")
        warn_of_impossible(self.impossible)
        return self.value


def sum_results(results: Iterable[PartitionResult[T]]) -> PartitionResult[T]:
    """The sum of results, in this order."""
    return reduce(operator.add, results, PartitionResult[T]())


# Rows of an engine --------------------------------------------------------------------------------------------------


ReadPartition = Callable[[int, Any], Labelled]  # (number, partition) → rows, such as ColumnRoles.table


@dataclass(frozen=True)
class EngineRows(DistributedRows):
    """Rows of an engine, which implements `map_sum` and passes `columns` and `read_partition`.

    Work is a function of a partition in the form that the engine has it; it and its results can be pickled.
    """

    columns: ColumnRoles
    read_partition: ReadPartition

    @property
    def label(self) -> str | None:  # type: ignore[override]
        return self.columns.label

    @property
    def frame(self) -> Frame:
        return self.columns.frame

    @abstractmethod
    def map_sum(self, work: Callable[[int, Any], PartitionResult[T]]) -> PartitionResult[T]:
        """Σ work(number, partition) over the partitions, in a tree whose order is fixed."""

    def total(self, work: Callable[[Labelled], T | None]) -> T | None:
        return self.map_sum(partial(_on_partition, self.read_partition, work)).unwrap()


def _on_partition(
    read: ReadPartition, work: Callable[[Labelled], T | None], number: int, partition: Any
) -> PartitionResult[T]:
    return PartitionResult.of(number, lambda: work(read(number, partition)))


def column_roles(schema: Schema, label: Any, weight: Any) -> ColumnRoles:
    """The roles of a table's columns; raises an error if the label or weight is not one of them."""
    if not isinstance(label, str):
        raise DecibanError(f"label must be the name of a column, not {type(label).__name__}")
    if weight is not None and not isinstance(weight, str):
        raise DecibanError(f"sample_weight must be the name of a column, not {type(weight).__name__}")
    require_unique(schema.names)
    for name, role in ((label, "label"), (weight, "weight")):
        if name is not None and name not in schema.names:
            raise no_column(name, role, schema.names)
    if label == weight:
        raise DecibanError(f"label and sample_weight name the same column, {label!r}")
    return ColumnRoles(schema, label, weight)
