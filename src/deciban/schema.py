"""Schema: what each column is, so that later rows can be matched to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from deciban.batch import Frame, Kind
from deciban.errors import DecibanError
from deciban.types import Level, Names


@dataclass(frozen=True)
class Schema:
    """Names and kinds of columns. Arrays have positions for names.

    >>> Schema(("age", "job"), ("number", "category")).kinds
    ('number', 'category')
    """

    names: Names
    kinds: tuple[Kind, ...]

    @classmethod
    def of(cls, frame: Frame) -> Schema:
        require_unique(frame.names)
        return cls(frame.names, frame.kinds)

    @property
    def positional(self) -> bool:
        return isinstance(self.names, range)

    def places(self, frame: Frame) -> list[int]:
        """Where each of this schema's columns stands in a frame: by name, or by position in an array."""
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
        return self.widened(Schema(self.names, tuple(kinds[j] for j in self.places(frame))))

    def in_order_of(self, other: Schema) -> Schema:
        """The same columns, in the order that they have in another schema."""
        if len(self.names) != len(other.names) or set(self.names) != set(other.names):
            raise DecibanError(f"the columns differ: {columns_named(other.names)} and {columns_named(self.names)}")
        kind = dict(zip(self.names, self.kinds, strict=True))
        return Schema(other.names, tuple(kind[name] for name in other.names))

    def widened(self, other: Schema) -> Schema:
        """The kinds of both: an empty column may turn out to be any, a boolean one takes numbers, categories and
        documents are both text; text and numbers never mix."""
        if self.names != other.names:
            raise DecibanError(f"the columns differ: {columns_named(self.names)} and {columns_named(other.names)}")
        if self.kinds == other.kinds:
            return self
        kinds = tuple(_widen(name, a, b) for name, a, b in zip(self.names, self.kinds, other.kinds, strict=True))
        return Schema(self.names, kinds)


def _widen(name: Level, a: Kind, b: Kind) -> Kind:
    if a == b or b == "empty":
        return a
    if a == "empty":
        return b
    if {a, b} in ({"number", "boolean"}, {"category", "text"}):
        return a
    words = {"category": "text", "text": "text", "number": "numbers", "boolean": "true or false"}
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
