"""Schema: names and kinds of columns, to which later rows are matched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import get_args

from deciban.data.batch import ColumnRef, DatePart, DerivedColumn, Frame, Kind, Notation
from deciban.data.cell_types import CELL_WORDS
from deciban.errors import DecibanError, did_you_mean, require
from deciban.types import Level, Names

MAX_DATES = 6  # up to which gaps are taken between all pairs of dates; beyond, only between neighbours
SHOWN = 10  # names of columns in a message, at most


@dataclass(frozen=True)
class Schema:
    """Names and kinds of columns. The columns of arrays are named by position.

    >>> Schema(("age", "job"), ("number", "category")).kinds
    ('number', 'category')
    """

    names: Names
    kinds: tuple[Kind, ...]
    notations: tuple[Notation | None, ...] = ()  # of columns of text that are parsed; () for none
    derived: tuple[DerivedColumn, ...] = ()  # columns computed from these, numbered after them

    def check_fields(self) -> None:
        names, kinds, notations = self.names, self.kinds, self.notations
        require(not notations or len(notations) == len(kinds), f"{len(notations)} notations of {len(kinds)} columns")
        for kind, notation in zip(kinds, notations, strict=False):
            require(notation is None or notation.kind == kind, f"a column of kind {kind} is read as another")
        dates = {j for j, kind in enumerate(kinds) if kind == "date"}
        of_dates = all(dates >= {*derived.columns} for derived in self.derived)
        require(of_dates, "a part of a date is derived from a column that is not a date")
        require(len({*self.derived}) == len(self.derived), "a part of a date occurs twice")
        require(len(names) == len(kinds), f"{len(names)} columns of {len(kinds)} kinds")
        if isinstance(names, range):
            require(names == range(len(kinds)), "columns are not numbered from 0")
        else:
            require(len(set(names)) == len(names), "two columns have the same name")

    @classmethod
    def of(cls, frame: Frame) -> Schema:
        require_unique(frame.names)
        return cls(frame.names, frame.kinds, getattr(frame, "notations", ()))

    def with_calendar(self) -> Schema:
        """With the parts of each date and the gaps between dates as derived columns."""
        dates = [j for j, kind in enumerate(self.kinds) if kind == "date"]
        parts = [DerivedColumn(part, (j,)) for j in dates for part in get_args(DatePart)]
        between = combinations(dates, 2) if len(dates) <= MAX_DATES else pairwise(dates)
        return replace(self, derived=(*parts, *(DerivedColumn("gap", pair) for pair in between)))

    @property
    def all_names(self) -> Names:
        """With derived columns, such as `signup[weekday]` and `returned − signup`."""
        if not self.derived:
            return self.names
        sources = [[str(self.names[j]) for j in derived.columns] for derived in self.derived]
        return (*self.names, *(derived.name(*names) for derived, names in zip(self.derived, sources, strict=True)))

    @property
    def all_kinds(self) -> tuple[Kind, ...]:
        return (*self.kinds, *(derived.kind for derived in self.derived))

    def source_columns(self, columns: Sequence[int]) -> tuple[int, ...]:
        """The columns of the table that these, derived ones among them, are computed from."""
        if not self.derived:
            return tuple(columns)
        n = len(self.names)
        return tuple(sorted({i for j in columns for i in ((j,) if j < n else self.derived[j - n].columns)}))

    def notation(self, column: int) -> Notation | None:
        """How text of a column is parsed. Dates and times have one notation."""
        kind = self.kinds[column]
        notation = self.notations[column] if self.notations else None
        return Notation(kind) if notation is None and (kind == "date" or kind == "time") else notation

    @property
    def positional(self) -> bool:
        return isinstance(self.names, range)

    def notes(self) -> list[str]:
        """Notes for `summary()` about columns of text that are parsed."""
        notes = []
        for name, notation in zip(self.names, self.notations, strict=False):
            if notation is not None:
                missing = ", ".join(map(repr, notation.missing))
                also = f"; {missing} {'is a missing value' if len(notation.missing) == 1 else 'are missing values'}"
                notes.append(f"{name!r} is text that is read as {CELL_WORDS[notation.style]}{also if missing else ''}")
        return notes

    def column_refs(self, frame: Frame) -> list[ColumnRef]:
        """The columns of this schema in a frame: positions, and columns derived from positions."""
        positions = self.positions(frame)
        return [*positions, *(derived.at(positions) for derived in self.derived)]

    def positions(self, frame: Frame) -> list[int]:
        """The position of each column in a frame: by name, or by position in an array."""
        if self.positional or isinstance(frame.names, range):
            if len(frame.names) != len(self.names):
                raise DecibanError(
                    f"X has {len(frame.names)} features, but the model is expecting {len(self.names)} features as input"
                )
            return list(range(len(self.names)))
        require_unique(frame.names)
        position = {name: i for i, name in enumerate(frame.names)}
        missing = [name for name in self.names if name not in position]
        if missing:
            raise self.lacking(missing, frame.names)
        return [position[name] for name in self.names]

    def lacking(self, missing: Sequence[Level], names: Sequence[Level]) -> DecibanError:
        """The error for a table with these names, which lacks columns of this schema."""
        known = {*self.names}
        renamed = did_you_mean(*missing[:SHOWN], among=[name for name in names if name not in known])
        return DecibanError(f"the table lacks {columns_named(missing)}{renamed}; it has {columns_named(names)}")

    def merge_frame(self, frame: Frame) -> Schema:
        """This schema after reading a frame, which must have all columns, of compatible kinds."""
        return self.merge(replace(self, kinds=tuple(frame.kinds[j] for j in self.positions(frame))))

    def reorder_like(self, other: Schema) -> Schema:
        """The same columns in the order of another schema."""
        if len(self.names) != len(other.names) or set(self.names) != set(other.names):
            raise DecibanError(f"the columns differ: {columns_named(other.names)} and {columns_named(self.names)}")
        position, new_position = ({name: j for j, name in enumerate(each.names)} for each in (self, other))
        order, moved = [position[name] for name in other.names], [new_position[name] for name in self.names]
        return Schema(
            other.names,
            tuple(self.kinds[j] for j in order),
            tuple(self.notations[j] for j in order) if self.notations else (),
            tuple(derived.at(moved) for derived in self.derived),
        )

    def merge(self, other: Schema) -> Schema:
        """The schema of the rows of both.

        Kinds mix if one is empty, if they are boolean and number, or category and text: see `compatible_kinds`.
        """
        if self.names != other.names:
            raise DecibanError(f"the columns differ: {columns_named(self.names)} and {columns_named(other.names)}")
        if self.kinds == other.kinds:
            return self if self.notations else replace(self, notations=other.notations)
        kinds = tuple(_merge_kinds(name, a, b) for name, a, b in zip(self.names, self.kinds, other.kinds, strict=True))
        return replace(self, kinds=kinds, notations=self.notations or other.notations)


def compatible_kinds(a: Kind, b: Kind) -> bool:
    """Whether rows of one column may have both kinds."""
    return a == b or "empty" in (a, b) or {a, b} in ({"number", "boolean"}, {"category", "text"})


def _merge_kinds(name: Level, a: Kind, b: Kind) -> Kind:
    if compatible_kinds(a, b):
        return b if a == "empty" else a
    before, now = (CELL_WORDS.get(kind, "text") for kind in (a, b))
    raise DecibanError(
        f"column {name!r} held {before} so far and holds {now} now: convert it to one type; in files, read it as text "
        "(types={...: 'category'}, or --category)"
    )


def require_unique(names: Sequence[Level]) -> None:
    if isinstance(names, range):
        return
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise DecibanError(f"{columns_named(repeated)} occurs more than once: rename or drop it")


def no_column(name: Level, use: str, names: Sequence[Level]) -> DecibanError:
    """The error for a table with these names, which lacks the column of labels or weights."""
    near = did_you_mean(name, among=names)
    return DecibanError(f"no column {name!r} to use as {use}{near}; the table has {list(names)}")


def columns_named(names: Sequence[Level]) -> str:
    """Some names of columns, for a message."""
    shown = ", ".join(repr(name) for name in names[:SHOWN])
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{'column' if len(names) == 1 else 'columns'} {shown}{more}"
