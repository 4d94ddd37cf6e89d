"""Part: one file of a scan, whatever its format."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Protocol

from deciban.sources.cells import Cells
from deciban.sources.notation import Profile


class Unfit(Exception):
    """Cells that do not fit the type of their column, which was guessed from too little."""


@dataclass(frozen=True)
class Reading:
    """Which columns are read, and as what."""

    names: Sequence[str]
    types: Mapping[str, Cells]
    guessed: Set[str] = frozenset()  # by the first records; in other columns a cell that does not fit is an error
    undecided: Set[str] = frozenset()  # columns of text that may yet be found to be dates or numbers


@dataclass(frozen=True)
class Read:
    """Some rows of a file."""

    table: Any  # pyarrow.Table
    offset: int  # where they stand: a place in a text, the number of the first row elsewhere
    read: int  # bytes of the file that have been read so far


Job = Callable[[], Read]


class Part(Protocol):
    """A file. Jobs come in its order, and may be done at the same time."""

    @property
    def path(self) -> str: ...

    @property
    def title(self) -> str:
        """What messages call it: its path, or standard input."""

    @property
    def columns(self) -> Mapping[str, Cells]:
        """Names and types: those of the file's schema, or as its first records show."""

    @property
    def names(self) -> tuple[str, ...]:
        """As they stand in the file, also if one occurs twice."""

    def jobs(self, reading: Reading) -> Iterator[Job]:
        """Each reads some rows."""

    def surveys(self) -> Iterator[Callable[[], Mapping[str, Cells]]]:
        """Each looks at some rows, for the types that hold all of their cells."""

    def profiles(self, names: Collection[str], *, first: bool) -> Iterator[Callable[[], Mapping[str, Profile]]]:
        """Each looks at some rows, for how the text of some columns is written; or at the first rows alone."""

    def place(self, offset: int, row: int) -> str:
        """Where a row is that was read: its line, or its number."""
