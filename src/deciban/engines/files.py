"""Files that an engine reads: their columns, what is asked of them, and how pieces of text become tables.

Text is cut by the engine at line breaks, and read by what reads files without an engine: so the rows are the same.
"""

from __future__ import annotations

import signal
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import resource_tracker
from pathlib import PurePosixPath
from typing import Any, NoReturn, Protocol, Self

from deciban.batch import Kind, Notation
from deciban.engines import parts
from deciban.engines.parts import Columns, Outcome, Reader, columns_of
from deciban.errors import DecibanError
from deciban.schema import Schema, require_unique
from deciban.sources import Labelled
from deciban.sources.cells import KIND, STYLES, WORDS, Cells, cells_of_type, widened
from deciban.sources.columnar import GO_WITH
from deciban.sources.delimited import Delimited
from deciban.sources.dialect import Asked, Dialect
from deciban.sources.files import PACKED_SUFFIXES, SUFFIXES, _check
from deciban.sources.json_lines import JsonLines
from deciban.sources.part import Reading, Unfit
from deciban.sources.stream import Stream
from deciban.sources.text import BOM, Block, TextFile

FORMATS = ("csv", "jsonl", "parquet")

Pieces = Callable[[int, Any], Iterator["Piece"]]  # those of a part
Collect = Callable[[Columns, Reader], parts.Collection]  # an engine's rows, given what makes rows of a part


def format_of(paths: Sequence[str], given: str | None = None) -> str:
    """As given, or by the names of the files.

    >>> format_of(["s3://bucket/2026/*.csv.gz"]), format_of(["hdfs://host/people.parquet/"])
    ('csv', 'parquet')
    """
    found = {path: given or _by_name(path) for path in paths}
    for path, format in found.items():
        if format is None:
            raise DecibanError(f"{path}: its name does not tell the format: say which of {', '.join(FORMATS)} it is")
        if format not in FORMATS:
            raise DecibanError(f"{path} is {format}: an engine reads {', '.join(FORMATS)}")
    if len({*found.values()}) != 1:
        kinds = ", ".join(f"{path} is {format}" for path, format in list(found.items())[:5])
        raise DecibanError(f"all files must be of one format: {kinds}" if found else "no files are given to read")
    return str(next(iter(found.values())))


def _by_name(path: str) -> str | None:
    suffixes = [suffix.lower() for suffix in PurePosixPath(path.rstrip("/")).suffixes]
    if suffixes and suffixes[-1] in PACKED_SUFFIXES:
        suffixes.pop()
    return SUFFIXES.get(suffixes[-1]) if suffixes else None


# Files ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Files(Stream):
    """Rows of files that are elsewhere: `rows` is what a model learns from. The other methods are those of a Scan."""

    columns: Mapping[str, Cells]  # as a schema says, or the first rows show
    asked: Mapping[str, Cells] = field(default_factory=dict, kw_only=True)

    @abstractmethod
    def rows(self, label: str, weight: str | None = None) -> parts.Collection:
        """The rows, with the columns of classes and of weights."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.columns)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        return tuple(KIND[cells] for cells in self._types.values())

    @property
    def _types(self) -> dict[str, Cells]:
        return {name: self.asked.get(name, cells) for name, cells in self.columns.items()}

    def typed(self, types: Mapping[str, Cells]) -> Self:
        return replace(self, asked={**self.asked, **types})

    def chosen(self, names: Collection[str]) -> Self:
        return replace(self, columns={name: cells for name, cells in self.columns.items() if name in names})

    def drop(self, names: Collection[str]) -> Self:
        return self.chosen([name for name in self.names if name not in names])

    def trimmed(self, name: str, characters: str) -> Files:
        raise DecibanError(f"only the cells of csv can be trimmed: mend column {name!r} in the files")

    def frames(self) -> NoReturn:
        raise DecibanError("these files are read by an engine, and this needs their rows in one place")


@dataclass(frozen=True)
class TableFiles(Files):
    """Files that know their types."""

    schema: Any  # pyarrow's
    of: Callable[[list[str], str, str | None], parts.Collection]  # some columns, the label and the weight

    def rows(self, label: str, weight: str | None = None) -> parts.Collection:
        for name, wanted in self.asked.items():
            mine = self.columns.get(name, "empty")
            if mine not in ("empty", "other") and KIND[mine] not in (KIND[wanted], *GO_WITH.get(wanted, ())):
                problem = f"column {name!r} holds {WORDS[mine]}, and is to be {WORDS[wanted]}"
                raise DecibanError(f"{problem}: convert it in the files")
        return self.of(list(self.names), label, weight)


def table_files(schema: Any, of: Callable[[list[str], str, str | None], parts.Collection]) -> TableFiles:
    require_unique(schema.names)
    return TableFiles({each.name: cells_of_type(each.type) for each in schema}, schema, of)


# Text ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Piece(TextFile):
    """Whole lines of a text file, in memory."""

    data: bytes = b""
    begins: bool = True  # the file
    before: int = 0  # lines

    def _pieces(self, size: int, errors: str = "strict") -> Iterator[tuple[bytes, int]]:
        try:
            data = self._decoder(errors)(self.data, True)
        except UnicodeDecodeError as error:
            raise DecibanError(f"{self.title}: this is not text in {self.encoding}: {error.reason}") from None
        data = data.removeprefix(BOM) if self.begins else data
        for start in range(0, len(data), size):
            yield data[start : start + size], min(start + size, len(data))

    def line(self, offset: int) -> int:
        return self.before + super().line(offset)


class Form(Protocol):
    """How text is written; it travels to where the pieces are."""

    def part(self, piece: Piece) -> Delimited | JsonLines:
        """What reads a piece."""


@dataclass(frozen=True)
class TextFiles(Files):
    """Files of text. Types are those of the first rows, and a later cell that does not fit is an error."""

    form: Form
    sample: Piece  # the beginning
    collect: Collect
    pieces: Pieces

    def rows(self, label: str, weight: str | None = None) -> parts.Collection:
        types = self._types
        if label not in self.asked and types.get(label) in STYLES:
            types[label] = "text"  # a class, whatever it looks like
        kinds = tuple(KIND[self._known(name, cells)] for name, cells in types.items())
        notations = tuple(Notation(cells) if cells in STYLES else None for cells in types.values())
        schema = Schema(self.names, kinds, notations if any(notations) else ())
        guessed = frozenset(types).difference(self.asked) if isinstance(self.form, Separated) else frozenset[str]()
        columns = columns_of(schema, label, weight)
        reading = Reading(self.names, types, guessed)
        return self.collect(columns, partial(_rows_of, columns, self.form, reading, self.pieces))

    def _known(self, name: str, cells: Cells) -> Cells:
        if cells == "other":
            raise DecibanError(f"column {name!r} is neither numbers nor text: convert it, or drop it")
        return cells

    def trimmed(self, name: str, characters: str) -> Files:
        if not isinstance(self.form, Separated):
            return super().trimmed(name, characters)
        form = replace(self.form, trim={**self.form.trim, name: characters})
        found = _guessed(form, self.sample)[name]
        return replace(self, form=form, columns={**self.columns, name: found})


def text_files(
    sample: Piece,
    format: str,
    asked: Asked,
    collect: Collect,
    pieces: Pieces,
) -> TextFiles:
    """Files that begin so, or one of which does. Those of JSON are looked at once, for their keys: some come late."""
    require_lines(sample.encoding)
    if not sample.data.strip():
        raise DecibanError(f"{sample.title} is empty: it has no rows")
    if format == "csv":
        _check(asked, 1, None)
        first = Delimited(sample, asked, {})
        require_unique(first.names)
        form = Separated(first.dialect, first.names, asked)
        return TextFiles(_guessed(form, sample), form, sample, collect, pieces)
    _ = JsonLines(sample).columns  # lines of objects
    nothing = Columns(Schema((), ()), None, None)
    survey = collect(nothing, partial(_rows_of, nothing, Objects({}), Reading((), {}), pieces))
    found = survey._mapped_and_added(partial(_keys_of, pieces)).result()
    columns = {**found.columns, **_written(JsonLines(sample), found.columns)} if found is not None else {}
    return TextFiles(columns, Objects(columns), sample, collect, pieces)


def require_once(paths: Sequence[str]) -> None:
    """Rows of a file that is given twice would count twice."""
    twice = [path for path, times in Counter(paths).items() if times > 1]
    if twice:
        raise DecibanError(f"{twice[-1]!r} is given twice: its rows would count twice")


def require_lines(encoding: str) -> None:
    """A line break is one byte, by which an engine can cut."""
    try:
        cut = "\n".encode(encoding) == b"\n"
    except (LookupError, ValueError):
        return  # there is no such encoding: what reads text says so
    if not cut:
        raise DecibanError(f"an engine cannot cut text in {encoding} into lines: convert it to utf-8")


def _rows_of(
    columns: Columns,
    form: Form,
    reading: Reading,
    pieces: Pieces,
    number: int,
    part: Any,
) -> Labelled:
    return columns.table(number, _tables(form, reading, pieces(number, part)))


def _tables(form: Form, reading: Reading, pieces: Iterable[Piece]) -> Iterator[Any]:
    for piece in pieces:
        if not piece.data.strip():
            continue
        part = form.part(piece)
        try:
            for job in part.jobs(reading):
                yield job().table
        except Unfit:
            raise _misfit(part, reading) from None


def _misfit(part: Delimited | JsonLines, reading: Reading) -> DecibanError:
    """Which cell does not fit the type of the first rows, and what can be said of its column."""
    for name in sorted(reading.guessed):
        cells = reading.types[name]
        say = f"--category {name}" + (
            f" or --columns {name}=number" if cells == "empty" else ", or --na-values if it is missing"
        )
        try:
            for job in part.jobs(Reading([name], reading.types)):
                job()
        except DecibanError as error:
            return DecibanError(f"{error}, unlike its first rows: say {say}")
        try:  # 1 and 0 are true and false if that is asked for, and numbers have no leading zeros
            for job in part.jobs(Reading([name], reading.types, frozenset([name]))):
                job()
        except Unfit:
            what = f"{part.title}: column {name!r} is {WORDS[cells]} in its first rows, and here it is not"
            return DecibanError(f"{what}: say --category {name}")
    return DecibanError(f"{part.title}: cells do not fit the types of the first rows")


# csv -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Separated:
    """A dialect of csv; all files have the same columns in the same order."""

    dialect: Dialect
    names: tuple[str, ...]
    asked: Asked
    trim: Mapping[str, str] = field(default_factory=dict)

    def part(self, piece: Piece) -> Delimited:
        header = self.dialect.header and piece.begins
        if header and self.asked.names is None:
            found = Records(piece, self.asked, {}, self.dialect).names
            if found != self.names:
                raise DecibanError(
                    f"{piece.title} has the columns {', '.join(found)}, and not {', '.join(self.names)}, as another "
                    "file: they must be the same, in one order"
                )
        asked = replace(self.asked, names=self.names)
        return Records(piece, asked, self.trim, replace(self.dialect, header=header))


@dataclass(frozen=True)
class Records(Delimited):
    """Records of a dialect that is known."""

    known: Dialect

    @property
    def dialect(self) -> Dialect:
        return self.known

    def _require_closed(self, block: Block) -> None:
        try:
            super()._require_closed(block)
        except DecibanError as error:
            raise DecibanError(
                f"{error}: an engine cuts files at line breaks, so a cell must have none; parquet may"
            ) from None


def _guessed(form: Separated, sample: Piece) -> dict[str, Cells]:
    """The types of the first rows. Whole numbers may be followed by others, and nothing learns more from them."""
    part = form.part(sample)
    found = {name: "number" if cells == "integer" else cells for name, cells in part.columns.items()}
    return found | _written(part, found)


def _written(part: Delimited | JsonLines, types: Mapping[str, Cells]) -> dict[str, Cells]:
    """Columns of text in which all cells of the first rows are dates, or numbers."""
    text = [name for name, cells in types.items() if cells == "text"]
    profiles = [job() for job in part.profiles(text, first=True)]
    found = {name: p.notation() for each in profiles for name, p in each.items() if p.complete()}
    return {name: notation.style for name, notation in found.items() if notation is not None}


# JSON lines ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Objects:
    """Objects whose keys and types are known."""

    columns: Mapping[str, Cells]

    def part(self, piece: Piece) -> JsonLines:
        return Lines(piece, self.columns)


@dataclass(frozen=True)
class Lines(JsonLines):
    """The same, of a piece."""

    known: Mapping[str, Cells]

    @property
    def columns(self) -> dict[str, Cells]:
        return dict(self.known)


@dataclass(frozen=True)
class _Keys:
    columns: Mapping[str, Cells]

    def __add__(self, other: _Keys) -> _Keys:
        return _Keys(widened(self.columns, other.columns))


def _keys_of(pieces: Pieces, number: int, part: Any) -> Outcome[_Keys]:
    return Outcome.of(number, lambda: _keys(pieces(number, part)))


def _keys(pieces: Iterable[Piece]) -> _Keys | None:
    found: _Keys | None = None
    for piece in pieces:
        if piece.data.strip():
            for survey in JsonLines(piece).surveys():
                keys = _Keys(survey())
                found = keys if found is None else found + keys
    return found


# Clusters ------------------------------------------------------------------------------------------------------------


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C waits until a cluster is there, and can be closed; its processes are not told of it at all.

    A terminal tells all processes of a command. Those that are started while the signal is blocked keep it blocked.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # which would unblock it
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
