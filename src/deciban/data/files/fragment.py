"""Fragment: the rows of one file, in any format; FileFormat: how a format is recognised and opened."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

from deciban.data.cell_types import CELL_WORDS, CellType
from deciban.data.files.dialect import CsvOptions
from deciban.data.files.text_files import Block, TextFile
from deciban.data.notation import MARKERS, TextProfile
from deciban.errors import DecibanError

MAX_REPORTED = 3  # skipped documents that a warning names


class TypeMismatch(Exception):
    """A cell does not fit the type that was inferred from the first rows."""


@dataclass(frozen=True)
class ReadOptions:
    """Which columns are read, and as which types."""

    names: Sequence[str]
    types: Mapping[str, CellType]
    inferred: Set[str] = frozenset()  # types from the first rows; in other columns a cell that does not fit is an error
    undecided: Set[str] = frozenset()  # columns of text that later rows may show to be dates or numbers

    @classmethod
    def as_text(cls, names: Sequence[str]) -> ReadOptions:
        return cls(names, dict.fromkeys(names, "text"))

    def markers(self, name: str, markers: frozenset[str] = MARKERS) -> frozenset[str] | None:
        """Texts that may be in a column in place of its style; None: any text, where the type was given."""
        return markers if name in self.inferred else None


@dataclass(frozen=True)
class Chunk:
    """Some rows of a file."""

    table: Any  # pyarrow.Table
    offset: int  # of the first row: bytes in text files, rows in others
    bytes_read: int  # of the file so far
    skipped: tuple[str, ...] = ()  # "file: reason" for documents that cannot be read, or only in part


ReadTask = Callable[[], Chunk]


@dataclass(frozen=True)
class Fragment(ABC):
    """A file of a scan. Tasks come in the order of its rows, and may run at the same time."""

    file: TextFile

    has_late_columns: ClassVar[bool] = False  # later rows may have columns that the first ones lack

    @property
    def path(self) -> str:
        return self.file.path

    @property
    def title(self) -> str:
        """Its name in messages: the path, or standard input."""
        return self.file.title

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that are read: more than one for a folder."""
        return (self.path,)

    @property
    def document_kind(self) -> str | None:
        """What each row is, if not a record of a table: "mail" or "text"."""
        return None

    @property
    @abstractmethod
    def columns(self) -> Mapping[str, CellType]:
        """Names and types: those of the file's schema, or inferred from its first rows."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Names of columns as in the file, duplicates included."""

    @abstractmethod
    def read_tasks(self, options: ReadOptions) -> Iterator[ReadTask]:
        """Tasks that each read some rows."""

    def type_tasks(self) -> Iterator[Callable[[], Mapping[str, CellType]]]:
        """Tasks that each infer the types that hold all cells of some rows."""
        yield lambda: self.columns

    def profile_tasks(self, names: Collection[str]) -> Iterator[Callable[[], Mapping[str, TextProfile]]]:
        """Tasks that each profile the text of some columns in some rows."""
        return iter(())

    def sample_profiles(self, names: Collection[str]) -> Mapping[str, TextProfile]:
        """The profiles of the first rows."""
        return next(self.profile_tasks(names), dict)()

    @abstractmethod
    def locate(self, offset: int, row: int) -> str:
        """Where a row of the chunk at an offset is: file and line, or row."""

    def mixed_types(self, name: str, own_type: CellType, cell_type: CellType) -> DecibanError:
        """An error about a column that has another type in other files."""
        problem = f"column {name!r} holds {CELL_WORDS[own_type]}, and {CELL_WORDS[cell_type]} elsewhere"
        return DecibanError(f"{self.title}: {problem}: convert it to one type")

    def with_trim(self, name: str, characters: str) -> Fragment:
        """The same file; these characters are stripped from the end of a column's cells."""
        raise DecibanError(f"{self.title} is not csv, and only csv can be trimmed: fix column {name!r} in the file")


@dataclass(frozen=True)
class TextFragment(Fragment):
    """A text file, which is read in blocks of whole records."""

    @property
    @abstractmethod
    def _first_block(self) -> Block:
        """The first records."""

    @abstractmethod
    def _blocks(self) -> Iterator[Block]:
        """All records."""

    @abstractmethod
    def _read(self, block: Block, options: ReadOptions) -> Chunk:
        """The selected columns of a block; TypeMismatch if an inferred type does not hold its cells."""

    @abstractmethod
    def _block_types(self, block: Block) -> Mapping[str, CellType]: ...

    @abstractmethod
    def _profiles(self, names: Collection[str], block: Block) -> Mapping[str, TextProfile]: ...

    @abstractmethod
    def _line(self, block: Block, row: int) -> int:
        """The number of the line of a row."""

    def read_tasks(self, options: ReadOptions) -> Iterator[ReadTask]:
        return (partial(self._read, block, options) for block in self._blocks())

    def type_tasks(self) -> Iterator[Callable[[], Mapping[str, CellType]]]:
        return (partial(self._block_types, block) for block in self._blocks())

    def profile_tasks(self, names: Collection[str]) -> Iterator[Callable[[], Mapping[str, TextProfile]]]:
        return (partial(self._profiles, names, block) for block in self._blocks())

    def sample_profiles(self, names: Collection[str]) -> Mapping[str, TextProfile]:
        return self._profiles(names, self._first_block)

    def locate(self, offset: int, row: int) -> str:
        block = next((block for block in self._blocks() if block.offset == offset), None)
        return self.title if block is None else f"{self.title}, line {self._line(block, row)}"


@dataclass
class SkippedDocuments:
    """The documents that were skipped in a pass over files."""

    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, chunk: Chunk) -> None:
        self.count += len(chunk.skipped)
        self.first += chunk.skipped[: MAX_REPORTED - len(self.first)]

    def __str__(self) -> str:
        more = self.count - len(self.first)
        return "; ".join([*self.first, *([f"and {more} more"] if more else [])])


# Formats -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OpenOptions:
    """The options of `scan`; each format takes those that concern it."""

    csv: CsvOptions
    trim: Mapping[str, str]  # {column: characters}
    labels: str | os.PathLike[str] | None = None


@dataclass(frozen=True)
class FileFormat:
    """A file format: how it is recognised and opened. `formats.FORMATS` lists all."""

    name: str
    open: Callable[[TextFile, OpenOptions], Fragment]
    suffixes: tuple[str, ...] = ()
    has_signature: Callable[[bytes], bool] = lambda start: False  # the first bytes decide, whatever the name
    resembles: Callable[[bytes], bool] = lambda start: False  # the first bytes decide if the name does not
    holds_documents: bool = False  # folders can be opened, and labels are read from a file of their own
