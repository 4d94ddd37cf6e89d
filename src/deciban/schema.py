"""Schema: what each column is, so that later rows can be matched to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import get_args

from deciban.batch import DatePart, Derived, Frame, Kind, Notation, Place
from deciban.errors import DecibanError
from deciban.types import Level, Names

STYLES = {  # what text is read as
    "date": "dates",
    "time": "times of day",
    "formatted": "numbers",
    "formatted_comma": "numbers with a decimal comma",
}
MOST_DATES = 6  # whose gaps are all derived; of more columns, those of neighbours


@dataclass(frozen=True)
class Schema:
    """Names and kinds of columns. Arrays have positions for names.

    >>> Schema(("age", "job"), ("number", "category")).kinds
    ('number', 'category')
    """

    names: Names
    kinds: tuple[Kind, ...]
    notations: tuple[Notation | None, ...] = ()  # of each column, where text is read as something else; () is none
    derived: tuple[Derived, ...] = ()  # columns that are made of these, numbered after them

    @classmethod
    def of(cls, frame: Frame) -> Schema:
        require_unique(frame.names)
        return cls(frame.names, frame.kinds, getattr(frame, "notations", ()))

    def with_calendar(self) -> Schema:
        """With the parts of dates as columns, and the gaps between two of them."""
        dates = [j for j, kind in enumerate(self.kinds) if kind == "date"]
        parts = [Derived(part, (j,)) for j in dates for part in get_args(DatePart)]
        between = combinations(dates, 2) if len(dates) <= MOST_DATES else pairwise(dates)
        return replace(self, derived=(*parts, *(Derived("gap", pair) for pair in between)))

    @property
    def all_names(self) -> Names:
        """Those of derived columns, too: `signup[weekday]`, `returned − signup`."""
        if not self.derived:
            return self.names
        return (*self.names, *map(self._derived_name, self.derived))

    def _derived_name(self, derived: Derived) -> str:
        names = [str(self.names[j]) for j in derived.columns]
        return " − ".join(reversed(names)) if derived.part == "gap" else f"{names[0]}[{derived.part}]"

    @property
    def all_kinds(self) -> tuple[Kind, ...]:
        return (*self.kinds, *(derived.kind for derived in self.derived))

    def owners(self, columns: Sequence[int]) -> tuple[int, ...]:
        """The columns of the table that some, derived ones among them, count for; a gap for both of its dates."""
        if not self.derived:
            return tuple(columns)
        own = len(self.names)
        return tuple(sorted({i for j in columns for i in ((j,) if j < own else self.derived[j - own].columns)}))

    def notation(self, column: int) -> Notation | None:
        """How text in a column is to be read. Dates are written in one way, so they need none of their own."""
        kind = self.kinds[column]
        given = self.notations[column] if self.notations else None
        return Notation(kind) if given is None and (kind == "date" or kind == "time") else given

    @property
    def positional(self) -> bool:
        return isinstance(self.names, range)

    def notes(self) -> list[str]:
        """What `summary()` says of columns of text that are read as something else."""
        found = []
        for name, notation in zip(self.names, self.notations, strict=False):
            if notation is not None:
                missing = ", ".join(map(repr, notation.missing))
                also = f"; {missing} {'is a missing value' if len(notation.missing) == 1 else 'are missing values'}"
                found.append(f"{name!r} is text that is read as {STYLES[notation.style]}{also if missing else ''}")
        return found

    def places(self, frame: Frame) -> list[Place]:
        """Where each of this schema's columns stands in a frame, and what is derived from which of these."""
        own = self.own_places(frame)
        return [*own, *(derived.at(own) for derived in self.derived)]

    def own_places(self, frame: Frame) -> list[int]:
        """Where each column of the table stands in a frame: by name, or by position in an array."""
        if self.positional or isinstance(frame.names, range):
            if len(frame.names) != len(self.names):
                raise DecibanError(
                    f"X has {len(frame.names)} features, but the model is expecting {len(self.names)} features as input"
                )
            return list(range(len(self.names)))
        require_unique(frame.names)
        place = {name: i for i, name in enumerate(frame.names)}
        lacking = [name for name in self.names if name not in place]
        if lacking:
            raise DecibanError(f"the table lacks {columns_named(lacking)}; it has {columns_named(frame.names)}")
        return [place[name] for name in self.names]

    def met_with(self, frame: Frame) -> Schema:
        """This schema after reading a frame: its columns are there, and of kinds that go together."""
        kinds = frame.kinds
        return self.widened(replace(self, kinds=tuple(kinds[j] for j in self.own_places(frame))))

    def in_order_of(self, other: Schema) -> Schema:
        """The same columns, in the order that they have in another schema."""
        if len(self.names) != len(other.names) or set(self.names) != set(other.names):
            raise DecibanError(f"the columns differ: {columns_named(other.names)} and {columns_named(self.names)}")
        place = {name: j for j, name in enumerate(self.names)}
        order = [place[name] for name in other.names]
        moved = [order.index(j) for j in range(len(order))] if self.derived else []
        return Schema(
            other.names,
            tuple(self.kinds[j] for j in order),
            tuple(self.notations[j] for j in order) if self.notations else (),
            tuple(derived.at(moved) for derived in self.derived),
        )

    def widened(self, other: Schema) -> Schema:
        """The kinds of both: an empty column may turn out to be any, a boolean one takes numbers, categories and
        documents are both text; text, numbers and dates never mix."""
        if self.names != other.names:
            raise DecibanError(f"the columns differ: {columns_named(self.names)} and {columns_named(other.names)}")
        if self.kinds == other.kinds:
            return self if self.notations else replace(self, notations=other.notations)
        kinds = tuple(_widen(name, a, b) for name, a, b in zip(self.names, self.kinds, other.kinds, strict=True))
        return replace(self, kinds=kinds, notations=self.notations or other.notations)


def go_together(a: Kind, b: Kind) -> bool:
    """Whether rows of one column may be of both kinds."""
    return a == b or "empty" in (a, b) or {a, b} in ({"number", "boolean"}, {"category", "text"})


def _widen(name: Level, a: Kind, b: Kind) -> Kind:
    if go_together(a, b):
        return b if a == "empty" else a
    words = {"category": "text", "text": "text", "number": "numbers", "boolean": "true or false", "date": "dates"}
    words["time"] = "times of day"
    raise DecibanError(
        f"column {name!r} held {words[a]} so far and holds {words[b]} now: convert it to one type; of files, read it "
        "as text (types={...: 'text'}, or --category)"
    )


def require_unique(names: Sequence[Level]) -> None:
    if isinstance(names, range):
        return
    doubled = [name for name, times in Counter(names).items() if times > 1]
    if doubled:
        raise DecibanError(f"{columns_named(doubled)} occurs more than once: rename or drop it")


def columns_named(names: Sequence[Level]) -> str:
    """Some names of columns, for a message."""
    shown = ", ".join(repr(name) for name in names[:10])
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return f"{'column' if len(names) == 1 else 'columns'} {shown}{more}"
