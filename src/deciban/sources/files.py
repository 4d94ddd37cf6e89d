"""scan: files of tables as a stream."""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import sys
import tempfile
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from glob import glob, has_magic
from pathlib import Path
from typing import IO, Any, Literal, get_args

import pyarrow as pa

from deciban.batch import Kind, Notation
from deciban.errors import DecibanError, warn
from deciban.schema import columns_named, require_unique
from deciban.sources.ahead import mapped
from deciban.sources.arrow import TableFrame
from deciban.sources.cells import KIND, Cells, arrow_types, widened
from deciban.sources.columnar import ArrowFile, Parquet
from deciban.sources.delimited import Delimited
from deciban.sources.dialect import MISSING, Asked
from deciban.sources.json_lines import JsonLines
from deciban.sources.mailboxes import LeftOut, Mailboxes, mailboxes
from deciban.sources.notation import Profile, doubts
from deciban.sources.part import Job, Part, Read, Reading, Unfit
from deciban.sources.stream import Stream, TypesChanged, table_of
from deciban.sources.text import BLOCK, TextFile

Format = Literal["csv", "jsonl", "parquet", "arrow", "mail", "text"]
SUFFIXES: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".txt": "csv",
    ".data": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".eml": "mail",
    ".mbox": "mail",
}
Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
Given = Literal["category", "number", "boolean", "date"]  # types that a user may ask for
Watch = Callable[[int, int, str], None]  # is told the rows read, and how many bytes of which file they took
EXPORTED: dict[Cells, Any] = {"text": pa.string()}
STANDARD_INPUT = ("/dev/stdin", "/proc/self/fd/0", "/dev/fd/0")
PACKED_SUFFIXES = (".gz", ".zst", ".bz2", ".lz4")
LOOKED_AT = 16  # files whose beginnings are looked at for types; the others are met as they are read


def scan(
    paths: Paths,
    *,
    format: Format | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    names: Sequence[str] | None = None,
    quote: str = '"',
    na_values: Collection[str] = MISSING,
    decimal: str | None = None,
    encoding: str = "utf-8",
    skip: int = 0,
    types: Mapping[str, Given] | None = None,
    trim: Mapping[str, str] | None = None,
    labels: str | os.PathLike[str] | None = None,
    block_size: int = BLOCK,
) -> Scan:
    """The rows of files, as a source for `fit`, `predict` and `evaluate`: read in blocks, never as a whole.

    Parameters
    ----------
    paths : a path, a pattern such as "data/*.parquet", or a list of them; "-" is standard input
        csv, tsv, JSON lines, parquet and Arrow (Feather); text may be packed by gzip, zstd, bz2 or lz4.
        Mail: a folder with those below it, Maildirs among them, an mbox, or files of one mail each.
    format : "csv", "jsonl", "parquet", "arrow", "mail" or "text"; by default what each file begins with and is called
        A folder is "mail" by default; if it is "text" every file in it is a document.
    delimiter, header, quote : the dialect of csv; what is not given is found out from the first rows
    names : names of the columns of csv, in place of a header, or instead of one if `header=True`
        Without names and header columns are called c1, c2, ….
    na_values : what is written for a missing value of csv
    decimal : the decimal point; by default a comma where columns of the first rows are only numbers with one
    encoding, skip : the encoding; lines to skip at the beginning
    types : {column: "category", "number", "boolean" or "date"} for columns that shall not be typed by what they hold
    trim : {column: characters} to take off the end of the column's text
    labels : a file with the classes of mails or texts: lines "spam path", or csv with a header "path,label"
        Paths are relative to this file or to the folder.
    block_size : bytes of text that are read at a time; no result depends on it

    A column of csv is of the narrowest type that holds all its cells, in all files: true or false, whole numbers,
    numbers, text. If later rows turn out to need a wider type than the first ones, reading starts again.

    Text in which all cells but a few are dates (2026-03-01, with a time or without), times of day, or numbers such as
    $1,200, 12.5% and 1.234,56 is of type "date", "time", "formatted" or "formatted_comma" (a decimal comma); the few
    cells are missing.

    Mail has a column for each of its main headers, and "links", "attachments" (their names and types) and "body"; of
    texts there is "text". "folder" is the first folder below the one given, often the class; with `labels` it is
    "label". What is no mail is left out, and a DecibanWarning names it at the end of a pass.

    A Scan exports the Arrow C stream, so `pyarrow.table(scan)`, polars and duckdb read it too.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import deciban as db
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = path.write_text("status;income;evade\\nsingle;125;no\\nmarried;?;no\\nsingle;85;yes\\n")
    >>> people = db.scan(path)
    >>> people.columns
    {'status': 'text', 'income': 'integer', 'evade': 'text'}
    >>> db.NaiveBayes().fit(people, "evade").predict(people).tolist()
    ['no', 'no', 'yes']
    """
    for what, words in (("names", names), ("na_values", na_values)):
        if isinstance(words, str):
            raise DecibanError(f"{what} must be a list of words, not {words!r}")
    asked = Asked(delimiter, quote, header, None if names is None else tuple(names), tuple(na_values), decimal, skip)
    _check(asked, block_size, types)
    text = partial(TextFile, encoding=encoding, block_size=block_size)
    parts = [_part(path, called, format, text, asked, trim or {}, labels) for path, called in _resolved(paths)]
    found = Scan(parts, {name: "text" if given == "category" else given for name, given in (types or {}).items()})
    named = {**(types or {}), **(trim or {})}
    if named and not any(isinstance(part, JsonLines) for part in found.parts):  # its keys may come late
        found.select(named)
    return found


@dataclass
class _Known:
    """What was found out about files, for all scans of them."""

    types: dict[str, Cells] | None = None  # that hold all cells seen so far
    sure: bool = False  # all rows were looked at
    profiles: dict[str, Profile] = field(default_factory=dict)  # of columns of text
    doubted: set[str] = field(default_factory=set)  # what was said of columns
    left_out: str = ""  # what was last said of it: several passes are not to repeat it


class Scan(Stream):
    """Rows of files, block by block: made by `scan`.

    `columns` are names and types, `select` and `drop` choose among them, `read` gives all rows as a pyarrow.Table.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        asked: Mapping[str, Cells],
        chosen: Sequence[str] | None = None,
        dropped: Set[str] = frozenset(),
        raw: Set[str] = frozenset(),
    ) -> None:
        self.parts = tuple(parts)
        self.watch: Watch | None = None
        self._asked = dict(asked)
        self._chosen = chosen  # None is all but those dropped: of JSON lines they may become more
        self._dropped = dropped
        self._raw = raw  # columns whose text is not read as dates or numbers
        self._known = _Known()
        self._seen: list[tuple[int, Part, int]] = []  # in the last pass: first row, its file, where in it

    # Columns -------------------------------------------------------------------------------------------------------

    @property
    def columns(self) -> dict[str, Cells]:
        """Names and types. Those of text files are what their first rows show, until more is read."""
        types = self._types() | {name: found.style for name, found in self._notations.items()} | self._asked
        return {name: types.get(name, "empty") for name in self.names}

    @property
    def notations(self) -> tuple[Notation | None, ...]:
        known = self._notations
        found = tuple(known.get(name) if name not in self._asked else None for name in self.names)
        return found if any(found) else ()

    @property
    def _notations(self) -> dict[str, Notation]:
        types = self._types()
        text = {name: p for name, p in self._known.profiles.items() if types[name] == "text" and name not in self._raw}
        return {name: notation for name, profile in text.items() if (notation := profile.notation()) is not None}

    @property
    def names(self) -> tuple[str, ...]:
        if self._chosen is not None:
            return tuple(self._chosen)
        return tuple(name for name in self._types() if name not in self._dropped)

    @property
    def title(self) -> str:
        return self.parts[0].title if len(self.parts) == 1 else f"{len(self.parts)} files"

    @property
    def kinds(self) -> tuple[Kind, ...]:
        for name, cells in self.columns.items():
            if cells == "other":
                raise DecibanError(f"column {name!r} is neither numbers nor text: convert it, or drop it")
        return tuple(KIND[cells] for cells in self.columns.values())

    def select(self, names: str | Iterable[str]) -> Scan:
        """Only these columns, in this order."""
        names = (names,) if isinstance(names, str) else tuple(names)
        require_unique(names)
        lacking = self.knowing(names)._lacking(names)
        if lacking:
            raise DecibanError(f"there is no column {lacking[0]!r} in {self.title}; there are {list(self.names)}")
        return self._with(self._asked, names)

    def drop(self, names: str | Iterable[str]) -> Scan:
        """All columns but these."""
        dropped = self._dropped | set(self.select(names).names)
        left = None if self._chosen is None else [name for name in self._chosen if name not in dropped]
        return self._with(self._asked, left, dropped)

    def typed(self, types: Mapping[str, Cells]) -> Scan:
        """The same files with some types given: a cell of text that does not fit is an error."""
        return self._with(self._asked | dict(types), self._chosen, self._dropped)

    def as_written(self, names: Collection[str]) -> Scan:
        return self._with(self._asked, self._chosen, self._dropped, self._raw | {*names})

    def trimmed(self, name: str, characters: str) -> Scan:
        """The same files of csv, a column's text without these characters at its end."""
        other = [part.title for part in self.parts if not isinstance(part, Delimited)]
        if other:
            raise DecibanError(
                f"only the cells of csv can be trimmed, and {other[0]} is none: mend column {name!r} there"
            )
        parts = [
            replace(part, trim={**part.trim, name: characters}) for part in self.parts if isinstance(part, Delimited)
        ]
        found = Scan(parts, self._asked, self._chosen, self._dropped, self._raw)
        found.watch = self.watch
        return found

    def chosen(self, names: Collection[str]) -> Scan:
        lacking = self.knowing(names)._lacking(names)
        if lacking and not self._may_have(lacking):
            return self  # for the message about those that are lacking
        if lacking:
            warn(f"no object of {self.title} has {', '.join(map(repr, lacking))}: taken as missing values")
        wanted = set(names)
        return self._with(self._asked, [*(name for name in self.names if name in wanted), *lacking])

    def knowing(self, names: Collection[str]) -> Scan:
        lacking = self._lacking(names)
        if lacking and self._may_have(lacking) and not self._known.sure:
            self._survey()
        return self

    def _lacking(self, names: Collection[str]) -> list[str]:
        known = set(self.names)
        return [name for name in dict.fromkeys(names) if name not in known]

    def _may_have(self, lacking: Collection[str]) -> bool:
        """A key of JSON that was not met so far is a column of missing cells; other files name all their columns."""
        all_keys = self._chosen is None and self._dropped.isdisjoint(lacking)
        return all_keys and all(isinstance(part, JsonLines) for part in self.parts)

    def _with(
        self,
        asked: Mapping[str, Cells],
        chosen: Sequence[str] | None,
        dropped: Set[str] = frozenset(),
        raw: Set[str] | None = None,
    ) -> Scan:
        other = Scan(self.parts, asked, chosen, dropped, self._raw if raw is None else raw)
        other.watch, other._known = self.watch, self._known
        return other

    def _types(self) -> dict[str, Cells]:
        if self._known.types is None:
            self._know(part.columns for part in self._in_order()[:LOOKED_AT])
            self._profile(first=True)
        assert self._known.types is not None
        return self._known.types

    def _know(self, found: Iterable[Mapping[str, Cells]]) -> None:
        types = self._joined(found)
        for part in self.parts:
            self._require_same_columns(part, set(types))
        self._known.types = types

    def _profile(self, *, first: bool) -> None:
        """How text is written, in the first rows of some files or in all: of columns that these do not settle."""
        assert self._known.types is not None
        known = self._known.profiles
        text = [name for name, cells in self._known.types.items() if cells == "text"]
        open_ = {name for name in text if name not in known or known[name].may_be() or known[name].doubt()}
        if not open_:
            return
        parts = self._in_order()[:LOOKED_AT] if first else self._in_order()
        found: dict[str, Profile] = dict.fromkeys(open_, Profile())
        for profiles in mapped(lambda job: job(), (job for p in parts for job in p.profiles(open_, first=first))):
            found |= {name: found[name] + profile for name, profile in profiles.items()}
        self._known.profiles |= found

    def _in_order(self) -> list[Part]:
        """By path, so that the order of columns does not hang on which file comes first."""
        return sorted(self.parts, key=lambda part: part.path)

    def _joined(self, found: Iterable[Mapping[str, Cells]]) -> dict[str, Cells]:
        types: dict[str, Cells] = {}
        for columns in found:
            types = widened(types, columns)
        return types

    def _require_same_columns(self, part: Part, known: set[str]) -> None:
        if isinstance(part, JsonLines):
            return
        found = set(part.names)
        if known != found:
            which = "lacks" if known - found else "has, beyond the others,"
            raise DecibanError(
                f"{part.title} {which} {columns_named(sorted(known - found) or sorted(found - known))}: all files of a "
                f"scan must have the same columns, as {self._in_order()[0].title} has"
            )

    # Rows ----------------------------------------------------------------------------------------------------------

    def frames(self) -> Iterator[TableFrame]:
        if not (self._known.sure or self._guessed) and self._may_have(()):
            self._survey()  # where no type is a guess, no row would be looked at for keys that come late
        names, types, guessed, notations = self.names, self.columns, self._guessed, self.notations
        kinds = tuple(KIND.get(cells, "empty") for cells in types.values())  # others are carried along, not learned
        require_unique(names)
        for part in self.parts:
            try:
                require_unique(part.names)
            except DecibanError as error:
                raise DecibanError(f"{part.title}: {error}") from None
        self._seen.clear()
        rows, left_out = 0, LeftOut()
        try:
            for part, read in mapped(_done, self._jobs(Reading(names, types, guessed, self._undecided))):
                table = read.table
                place = {name: j for j, name in enumerate(table.column_names)}
                columns = [table.column(place[name]) if name in place else _nulls(table) for name in names]
                self._seen.append((rows, part, read.offset))
                rows += table.num_rows
                left_out.add(read)
                if self.watch is not None:
                    self.watch(rows, read.read, part.path)
                if table.num_rows:
                    yield TableFrame(pa.table(columns, names=list(names)), names, kinds, notations)
        except Unfit:
            self._survey()
            raise TypesChanged("columns are of wider types than their first rows: read again") from None
        self._tell(left_out, rows)

    def _tell(self, left_out: LeftOut, rows: int) -> None:
        """What was no mail; if there was none at all, that is an error."""
        contents = {part.contents for part in self.parts if isinstance(part, Mailboxes)}
        if contents and not rows:
            raise DecibanError(f"there is no {' or '.join(sorted(contents))} in {self.title}: {left_out}")
        text = {name: p for name, p in self._known.profiles.items() if self.columns.get(name) == "text"}
        for message in doubts({n: p for n, p in text.items() if n not in self._asked and n not in self._raw}):
            if message not in self._known.doubted:
                self._known.doubted.add(message)
                warn(message)
        if left_out.count and self._known.left_out != str(left_out):
            self._known.left_out = str(left_out)
            left_out.warn(self.title)

    @property
    def _guessed(self) -> frozenset[str]:
        """Columns whose types are those of their first rows."""
        return frozenset() if self._known.sure else frozenset(self.names).difference(self._asked)

    @property
    def _undecided(self) -> frozenset[str]:
        """Columns of text that more rows may show to be dates or numbers."""
        known, types = self._known.profiles, self.columns
        text = {name for name in self._guessed - self._raw if types[name] == "text" and name in known}
        return frozenset(name for name in text if known[name].may_be())

    def _jobs(self, reading: Reading) -> Iterator[tuple[Part, Job]]:
        for part in self.parts:
            for job in part.jobs(reading):
                yield part, job

    def _survey(self) -> None:
        """Looks at all rows, for types that hold them."""
        surveys = (survey for part in self._in_order() for survey in part.surveys())
        self._know(mapped(lambda survey: survey(), surveys))
        self._profile(first=False)
        self._known.sure = True

    def place(self, row: int) -> str | None:
        at = bisect_right(self._seen, row, key=lambda seen: seen[0]) - 1
        if at < 0:
            return None
        first, part, offset = self._seen[at]
        return part.place(offset, row - first)

    def read(self) -> Any:
        """All rows, as a pyarrow.Table in memory."""
        return table_of(self).table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        if not self._known.sure:
            self._survey()
        _ = self.kinds  # all of them can be read
        schema = pa.schema([(name, EXPORTED.get(cells, arrow_types()[cells])) for name, cells in self.columns.items()])
        batches = (batch for frame in self.frames() for batch in frame.table.cast(schema, safe=False).to_batches())
        reader = pa.RecordBatchReader.from_batches(schema, batches)
        return reader.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        shown = ((name, "category" if cells == "text" else cells) for name, cells in self.columns.items())
        return f"Scan of {self.title}: {', '.join(f'{name} ({cells})' for name, cells in shown)}"


def _done(item: tuple[Part, Job]) -> tuple[Part, Read]:
    return item[0], item[1]()


def _nulls(table: Any) -> Any:
    return pa.nulls(table.num_rows)


# Paths → parts -------------------------------------------------------------------------------------------------------


def _check(asked: Asked, block_size: int, types: Mapping[str, Given] | None) -> None:
    signs = {"delimiter": asked.delimiter, "quote": asked.quote}
    signs = {what: sign for what, sign in signs.items() if sign}
    signs["decimal"] = "." if asked.decimal is None else asked.decimal
    for what, sign in signs.items():
        if not (isinstance(sign, str) and len(sign) == 1 and (sign == "\t" or " " <= sign <= "~")):
            raise DecibanError(f"{what} must be one character of ASCII, not {sign!r}")
    if len(set(signs.values())) < len(signs):
        raise DecibanError(f"{', '.join(signs)} must be different characters, not {list(signs.values())}")
    for what, count, least in (("block_size", block_size, 1), ("skip", asked.skip, 0)):
        if not isinstance(count, int) or count < least:
            raise DecibanError(f"{what} must be a whole number of {least} or more, not {count!r}")
    for name, given in (types or {}).items():
        if given not in get_args(Given):
            raise DecibanError(f"types[{name!r}] must be one of {', '.join(get_args(Given))}, not {given!r}")


def _resolved(paths: Paths) -> list[tuple[str, str | None]]:
    """Every path as it is, or the files that a pattern matches, in order of their names; and what pipes are called."""
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    found: list[tuple[str, str | None]] = []
    for path in [os.fspath(path) for path in given]:
        path = os.path.expanduser(path)
        if path == "-":
            found.append((_spooled(sys.stdin.buffer), "standard input"))
            continue
        if os.path.exists(path) and stat.S_ISFIFO(os.stat(path).st_mode):
            with open(path, "rb") as pipe:
                found.append((_spooled(pipe), "standard input" if path in STANDARD_INPUT else path))
            continue
        if os.path.exists(path):
            found.append((path, None))
            continue
        matches = sorted(glob(path, recursive=True)) if has_magic(path) else []
        if not matches:
            raise DecibanError(f"no file matches {path!r}" if has_magic(path) else f"there is no file {path!r}")
        found += [(match, None) for match in matches if not os.path.isdir(match)]
    if not found:
        raise DecibanError("no files are given to scan")
    met = Counter(os.path.realpath(path) for path, _ in found)
    twice = [path for path, _ in found if met[os.path.realpath(path)] > 1]
    if twice:
        raise DecibanError(f"{twice[-1]!r} is given twice: its rows would count twice")
    return found


def _part(
    path: str,
    called: str | None,
    format: Format | None,
    text: Callable[..., TextFile],
    asked: Asked,
    trim: Mapping[str, str],
    labels: str | os.PathLike[str] | None,
) -> Part:
    folder = os.path.isdir(path)
    chosen: Format = format or ("mail" if folder else _format(path))
    if chosen in ("mail", "text"):
        found = mailboxes(text(path, called=called), chosen, labels)
        if format is None and folder and all(_is_called_a_table(file.path) for file in found.files):
            raise _is_a_directory(path)
        return found
    if folder:
        raise _is_a_directory(path)
    if labels is not None:
        raise DecibanError(f"labels go with mail and texts; {called or path} is {chosen}, which has columns of its own")
    if chosen == "parquet":
        return Parquet(path, called)
    if chosen == "arrow":
        return ArrowFile(path, called)
    if chosen not in ("csv", "jsonl"):
        raise DecibanError(f"format must be one of {', '.join(get_args(Format))}, not {format!r}")
    file = text(path, called=called)
    return JsonLines(file) if chosen == "jsonl" else Delimited(file, asked, trim)


def _is_a_directory(path: str) -> DecibanError:
    return DecibanError(f"{path} is a directory: name the files in it, for instance {os.path.join(path, '*.csv')!r}")


def _is_called_a_table(path: str) -> bool:
    """Mails are often called .txt."""
    suffix = Path(path).suffix.lower()
    return suffix != ".txt" and SUFFIXES.get(suffix, "mail") != "mail"


def _format(path: str) -> Format:
    """By what the file begins with, and else by its name."""
    try:
        with open(path, "rb") as file:
            start = file.read(64)
    except OSError as error:
        raise DecibanError(f"{path} cannot be read: {error.strerror}") from None
    if start.startswith(b"PAR1") and start[4:5] < b" ":  # a header of text may begin so too
        return "parquet"
    if start.startswith((b"ARROW1\0", b"\xff\xff\xff\xff")):
        return "arrow"
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in PACKED_SUFFIXES:
        suffixes.pop()
    known = SUFFIXES.get(suffixes[-1]) if suffixes else None
    return known or ("jsonl" if start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") else "csv")


def _spooled(pipe: IO[bytes]) -> str:
    """A pipe as a file that is gone when the program ends: types may need a second look at the rows."""
    folder = tempfile.mkdtemp(prefix="deciban-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = os.path.join(folder, "rows")
    with open(path, "wb") as file:
        shutil.copyfileobj(pipe, file, 1 << 20)
    return path
