"""What all engines share: a part as rows, what comes back from it, and how that adds up.

An engine is a `Collection`: it says what its columns are, and how work is mapped over its parts and added up.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, Generic, TypeVar

from deciban.batch import Frame, Kind, Notation
from deciban.errors import DecibanError, RowError, hearing, warn, warn_of_impossible
from deciban.schema import Schema, require_unique
from deciban.sources import CELLS_PER_BATCH, Labelled, Sample, Streamed, frame_of
from deciban.sources.arrow import TableFrame
from deciban.sources.labels import encode_labels, weights_of
from deciban.sources.parted import Parted
from deciban.sources.stream import Stream, joined
from deciban.sources.typed import as_learned

T = TypeVar("T")

ROWS = 1 << 17  # of small tables that come one by one, taken together; fewer of wide ones
TOLD = 5  # warnings of parts that are passed on, at most


# A part --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tables(Stream):
    """The tables of one part, which come once."""

    tables: Iterable[Any]
    schema: Schema
    number: int

    @property
    def once(self) -> bool:
        return True

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

    def place(self, row: int) -> str:
        return f"partition {self.number}, row {row}"

    def frames(self) -> Iterator[TableFrame]:
        """Each with the kinds of all parts: a part of an empty column does not know what it is."""
        waiting: list[TableFrame] = []
        for table in self.tables:
            frame = as_learned(frame_of(table), self.schema)
            assert isinstance(frame, TableFrame)
            if not frame.rows:
                continue
            self.schema.met_with(frame)
            columns = self.schema.own_places(frame)
            waiting.append(TableFrame(frame.table.select(columns), self.names, self.kinds, self.notations))
            if sum(frame.rows for frame in waiting) >= rows_at_a_time(self.schema):
                yield joined(waiting)
                waiting.clear()
        if waiting:
            yield joined(waiting)


def rows_at_a_time(schema: Schema) -> int:
    return max(1, min(ROWS, CELLS_PER_BATCH // max(1, len(schema.names))))


@dataclass(frozen=True)
class Part(Streamed):
    """Rows of one part; there may be none."""

    def _require_some(self, rows: int, weight: float) -> None:
        pass


@dataclass(frozen=True)
class Columns:
    """What each part is made of."""

    schema: Schema  # of all columns of a table, or of the array
    label: str | None  # None: the classes are an array of their own
    weight: str | None
    like: Frame | None = None  # no rows of the array

    def table(self, number: int, tables: Iterable[Any]) -> Labelled:
        assert self.label is not None
        return Part(Tables(tables, self.schema, number), self.label, self.weight)

    def block(self, x: Any, y: Any, weights: Any) -> Labelled:
        frame = frame_of(x)
        self.schema.met_with(frame)
        labels = encode_labels(y)
        if len(labels.codes) != frame.rows:
            raise DecibanError(f"there are {frame.rows} rows, and {len(labels.codes)} labels: chunk both alike")
        return Sample(frame, labels, None if weights is None else weights_of(weights, frame.rows))

    @property
    def frame(self) -> Frame:
        """No rows, of the columns to learn from."""
        if self.like is not None:
            return self.like
        empty: Any = Tables((), self.schema, 0).empty
        for name, use in ((self.label, "label"), (self.weight, "weight")):
            if name is not None:
                empty = empty.split(name, use)[0]
        return empty  # type: ignore[no-any-return]


@contextmanager
def located(number: int, first: int = 0) -> Iterator[None]:
    """Errors about a row of a part, which are numbered from the first one here, say where it is."""
    where = f"partition {number}"
    try:
        yield
    except RowError as error:
        raise error.at(f"{where}, row {first + error.row}") from None
    except DecibanError as error:
        if where in str(error):
            raise
        raise type(error)(f"{where}: {error}") from None


# What comes back -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """What work on some parts came to. Bad rows are an outcome too: engines try again what fails, and these would not
    get better."""

    value: T | None = None
    error: tuple[int, DecibanError] | None = None  # that of the first part that has one
    warnings: tuple[tuple[str, int, int], ...] = ()  # message, the first part that gave it, in how many
    impossible: int = 0  # rows that are impossible under every class
    number: int = 0  # of the first part

    @classmethod
    def of(cls, number: int, work: Callable[[], T | None]) -> Outcome[T]:
        try:
            with hearing() as heard, located(number):
                value = work()
        except DecibanError as error:
            return cls(error=(number, error), number=number)
        messages = tuple((message, number, 1) for message in dict.fromkeys(heard.messages))
        return cls(value, None, messages[:TOLD], heard.impossible, number)

    @property
    def empty(self) -> bool:
        """Whether there was nothing to say."""
        return self.value is None and self.error is None and not self.warnings and not self.impossible

    def __add__(self, other: Outcome[T]) -> Outcome[T]:
        errors = [found for found in (self.error, other.error) if found is not None]
        if errors:
            return Outcome(error=min(errors, key=lambda found: found[0]))
        try:
            with located(other.number):  # what does not go with the parts before
                value = _added(self.value, other.value)
        except DecibanError as error:
            return Outcome(error=(other.number, error))
        number = min((outcome.number for outcome in (self, other) if not outcome.empty), default=0)
        both = _together(self.warnings + other.warnings)
        return Outcome(value, None, both, self.impossible + other.impossible, number)

    def result(self) -> T | None:
        """The value, once warnings are told; or the error is raised."""
        if self.error is not None:
            raise self.error[1]
        for message, number, times in self.warnings:
            more = f" and {times - 1} more" if times > 1 else ""
            warn(f"{message} (partition {number}{more})")
        warn_of_impossible(self.impossible)
        return self.value


def _added(a: T | None, b: T | None) -> T | None:
    if a is None or b is None:
        return b if a is None else a
    return a + b  # type: ignore[operator, no-any-return]


def _together(warnings: tuple[tuple[str, int, int], ...]) -> tuple[tuple[str, int, int], ...]:
    found: dict[str, tuple[str, int, int]] = {}
    for message, number, times in warnings:
        _, first, before = found.get(message, (message, number, 0))
        found[message] = message, min(first, number), before + times
    return tuple(found.values())[:TOLD]


def add(outcomes: Iterable[Outcome[T]]) -> Outcome[T]:
    """The sum of some, in their order."""
    return reduce(lambda a, b: a + b, outcomes, Outcome[T]())


# A collection --------------------------------------------------------------------------------------------------------


Reader = Callable[[int, Any], Labelled]  # what makes rows of a part: columns.table, or the like


@dataclass(frozen=True)
class Collection(Parted):
    """Rows of an engine. What is to be written for another engine is `_mapped_and_added`, and what its columns are.

    Work is a function of a part, whatever the engine hands over as one; it can be pickled, and so can what it returns.
    """

    columns: Columns
    reader: Reader

    @property
    def label(self) -> str | None:  # type: ignore[override]
        return self.columns.label

    @property
    def frame(self) -> Frame:
        return self.columns.frame

    @abstractmethod
    def _mapped_and_added(self, work: Callable[[int, Any], Outcome[T]]) -> Outcome[T]:
        """Σ work(number, part) over the parts, in a tree whose order is fixed."""

    def total(self, work: Callable[[Labelled], T | None]) -> T | None:
        return self._mapped_and_added(partial(_on_part, self.reader, work)).result()


def _on_part(read: Reader, work: Callable[[Labelled], T | None], number: int, part: Any) -> Outcome[T]:
    return Outcome.of(number, lambda: work(read(number, part)))


def fitted(model: Any, rows: Collection) -> Any:
    """The model, once it has learned the rows."""
    if isinstance(model, type):
        raise DecibanError(f"{model.__name__} is a class of models: pass a model, {model.__name__}()")
    if not any(base.__module__.startswith("deciban.") for base in type(model).__mro__):
        raise DecibanError(f"a {type(model).__name__} cannot learn from parts: pass a model of deciban")
    return model.fit(rows)


def columns_of(schema: Schema, label: Any, weight: Any) -> Columns:
    """The columns of a table with a label, all of them there."""
    if not isinstance(label, str):
        raise DecibanError(f"label is the name of a column, not {type(label).__name__}")
    if weight is not None and not isinstance(weight, str):
        raise DecibanError(f"sample_weight is the name of a column, not {type(weight).__name__}")
    require_unique(schema.names)
    for name, use in ((label, "label"), (weight, "weight")):
        if name is not None and name not in schema.names:
            raise DecibanError(f"no column {name!r} to use as {use}; the table has {list(schema.names)}")
    if label == weight:
        raise DecibanError(f"label and sample_weight name the same column, {label!r}")
    return Columns(schema, label, weight)
