"""Mailboxes: folders of mail, Maildirs, mbox files and single mails as a part of a scan; and folders of plain texts."""

from __future__ import annotations

import csv
import gzip
import os
import re
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import IO, Any, Literal

import pyarrow as pa

from deciban.errors import DecibanError, warn
from deciban.sources.cells import WORDS, Cells
from deciban.sources.mail import COLUMNS, CUT, END, MOST_BYTES, NotMail, parse
from deciban.sources.notation import Profile
from deciban.sources.part import Job, Read, Reading
from deciban.sources.text import BLOCK, TextFile

ROWS = 1 << 12  # at a time
PIECE = 1 << 20  # bytes of an mbox that are read at a time
MOST_BATCH = 1 << 26  # bytes at a time, however large the blocks are that are asked for
NAMED = 3  # of what was left out
READ_ERRORS = (OSError, EOFError, zlib.error)
GZIP = b"\x1f\x8b"
# What mail programs keep beside mail
INDEX = re.compile(
    r"dovecot.*|courier.*|maildirsize|maildirfolder|subscriptions|.*\.(msf|cmeta|ibex\.index.*|index|lock)|"
    r"popstate\.dat|msgFilterRules\.dat|Thumbs\.db|desktop\.ini"
).fullmatch
LONGEST_END = 1300  # bytes, what is looked at ahead included
QUOTED = re.compile(rb"^>(>*From )", re.MULTILINE)

Contents = Literal["mail", "text"]


@dataclass(frozen=True)
class File:
    """A file of one or more mails, or of a text."""

    path: str
    folder: str | None = None  # the first one below the folder that was given
    problem: str | None = None  # why it cannot be read, if that is known already
    label: str | None = None
    called: str | None = None  # in messages, if not by its path

    @property
    def title(self) -> str:
        return self.called or os.fsencode(self.path).decode("utf-8", "replace")


@dataclass(frozen=True)
class Document:
    """A mail or a text, as it stands in a file."""

    file: File
    number: int | None  # from 1, in an mbox
    data: bytes
    read: int  # bytes of all files that have been read so far
    problem: str | None = None

    @property
    def title(self) -> str:
        return self.file.title if self.number is None else f"{self.file.title}, mail {self.number}"


@dataclass(frozen=True)
class Batch:
    documents: list[Document]
    offset: int  # the number of the first


@dataclass(frozen=True)
class ReadDocuments(Read):
    """Rows, and what was left out since it is no mail, cannot be read or is too long: "file: reason"."""

    left_out: tuple[str, ...]


@dataclass
class LeftOut:
    """What a pass over files has left out."""

    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, read: Read) -> None:
        if isinstance(read, ReadDocuments):
            self.count += len(read.left_out)
            self.first += read.left_out[: NAMED - len(self.first)]

    def __str__(self) -> str:
        more = self.count - len(self.first)
        return "; ".join([*self.first, *([f"and {more} more"] if more else [])])

    def warn(self, title: str) -> None:
        """Once for a pass: one line of every picture in a folder would be too many."""
        warn(f"{title}: {self.count} left out, as a whole or in part: {self}")


@dataclass(frozen=True)
class Mailboxes:
    """A folder or a file of mails, each of which is a row; or of texts. All columns are text."""

    path: str
    files: tuple[File, ...]
    contents: Contents
    labelled: bool = False
    called: str | None = None  # in messages, if not by its path
    encoding: str = "utf-8"  # of texts; a mail knows its own
    block_size: int = BLOCK

    @property
    def title(self) -> str:
        return self.called or self.path

    @property
    def names(self) -> tuple[str, ...]:
        """A class by a file of labels takes the place of one by folders, which would be learned as evidence."""
        return ("label" if self.labelled else "folder", *(COLUMNS if self.contents == "mail" else ("text",)))

    @property
    def columns(self) -> dict[str, Cells]:
        return dict.fromkeys(self.names, "text")

    @cached_property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(os.path.getsize(file.path) for file in self.files if os.path.exists(file.path))

    def jobs(self, reading: Reading) -> Iterator[Job]:
        for name in reading.names:
            if reading.types[name] not in ("text", "empty", "other"):
                problem = f"column {name!r} holds text, and is to be {WORDS[reading.types[name]]}, as elsewhere"
                raise DecibanError(f"{self.title}: {problem}: make them one type")
        for batch in self._batches():
            yield partial(self._read, batch, reading)

    def surveys(self) -> Iterator[Callable[[], Mapping[str, Cells]]]:
        yield lambda: self.columns

    def profiles(self, names: Collection[str], *, first: bool) -> Iterator[Callable[[], Mapping[str, Profile]]]:
        """Nothing of documents is a date or a number."""
        yield from ()

    def place(self, offset: int, row: int) -> str:
        for batch in self._batches():
            if batch.offset == offset:
                there = [document for document in batch.documents if self._texts(document)[0] is not None]
                return there[row].title
        return self.title

    def _read(self, batch: Batch, reading: Reading) -> Read:
        columns: dict[str, list[str | None]] = {name: [] for name in reading.names}
        left_out = []
        for document in batch.documents:
            texts, problem = self._texts(document)
            if problem is not None:
                left_out.append(f"{document.title}: {problem}")
            if texts is not None:
                for name, column in columns.items():
                    column.append(texts[name])
        table = pa.table({name: pa.array(column, pa.string()) for name, column in columns.items()})
        return ReadDocuments(table, batch.offset, batch.documents[-1].read, tuple(left_out))

    def _texts(self, document: Document) -> tuple[dict[str, str | None] | None, str | None]:
        """A row if there is one, and what is wrong with it."""
        if document.problem is not None:
            return None, document.problem
        known = {"folder": document.file.folder, "label": document.file.label}
        problem = CUT if len(document.data) > MOST_BYTES else None
        if self.contents == "text":
            text = document.data[:MOST_BYTES].decode(self.encoding, "replace").removeprefix("\ufeff")
            return {**known, "text": text.encode("utf-8", "replace").decode()}, problem  # utf-7 has halves of pairs
        try:
            return {**known, **parse(document.data).texts}, problem
        except NotMail as error:
            return None, str(error)

    def _batches(self) -> Iterator[Batch]:
        """Runs of documents, which hang on nothing but the files and the size of blocks."""
        most = min(self.block_size, MOST_BATCH)
        documents: list[Document] = []
        offset = size = 0
        for document in self._documents():
            documents.append(document)
            size += len(document.data)
            if size >= most or len(documents) == ROWS:
                yield Batch(documents, offset)
                offset += len(documents)
                documents, size = [], 0
        if documents:
            yield Batch(documents, offset)

    def _documents(self) -> Iterator[Document]:
        before = 0
        for file in self.files:
            if file.problem is not None:
                yield Document(file, None, b"", before, file.problem)
                continue
            number: int | None = None
            try:
                with open(file.path, "rb") as stream:
                    for number, data in _split(_unpacked(stream), self.contents):
                        yield Document(file, number, data, before + stream.tell())
                    before += stream.tell()
            except READ_ERRORS as error:
                after = None if number is None else number + 1
                yield Document(
                    file, after, b"", before, f"it cannot be read: {getattr(error, 'strerror', None) or error}"
                )


def mailboxes(file: TextFile, contents: Contents, labels: str | os.PathLike[str] | None = None) -> Mailboxes:
    """What is at a path."""
    path, encoding, folder = file.path, file.encoding, os.path.isdir(file.path)
    try:
        b" ".decode(encoding, "ignore")
    except (LookupError, ValueError):
        raise DecibanError(f"there is no encoding called {encoding!r}: try utf-8, latin-1 or cp1252") from None
    files = files_of(path, contents) if folder else [File(path, called=file.called)]
    if labels is not None:
        files = labelled(files, os.path.expanduser(labels), path if folder else os.path.dirname(path))
    if not files:
        raise DecibanError(f"{path} is a directory without files: there is no {contents} in it")
    return Mailboxes(path, tuple(files), contents, labels is not None, file.called, encoding, file.block_size)


# Files → documents ---------------------------------------------------------------------------------------------------


def _unpacked(stream: Any) -> IO[bytes]:
    return gzip.GzipFile(fileobj=stream) if stream.peek(2).startswith(GZIP) else stream  # type: ignore[return-value]


def _split(stream: IO[bytes], contents: Contents) -> Iterator[tuple[int | None, bytes]]:
    """What a file holds: the mails of an mbox with their numbers, or one document."""
    start = stream.read(1 << 12)
    if contents == "mail" and start.lstrip(b"\r\n").startswith(b"From "):
        yield from enumerate(mails_of(start, partial(stream.read, PIECE)), 1)
    else:
        yield None, start + stream.read(MOST_BYTES + 1 - len(start))  # one more byte tells that it was cut


def mails_of(start: bytes, more: Callable[[], bytes]) -> Iterator[bytes]:
    """The mails of an mbox, whose beginning is given. Of one that is too long no more than can be read is kept."""
    data, at, searched, kept = start.lstrip(b"\r\n"), 0, 0, b""
    while True:
        for match in END.finditer(data, searched):
            yield _unquoted(kept + data[at : match.start() + 1])
            kept, at = b"", match.end()
        piece = more()
        if not piece:
            break
        searched = max(at, len(data) - LONGEST_END)
        if len(kept) + searched - at > MOST_BYTES:
            kept += data[at : max(at, at + MOST_BYTES + 1 - len(kept))]
            at = searched
        data, searched, at = data[at:] + piece, searched - at, 0
    if kept or data[at:].strip():
        end = len(data) - data.endswith(b"\n\n") - 2 * data.endswith(b"\n\r\n")  # the empty line after the last mail
        yield _unquoted(kept + data[at:end])


def _unquoted(mail: bytes) -> bytes:
    return QUOTED.sub(rb"\1", mail) if b">From " in mail else mail


# Folders → files -----------------------------------------------------------------------------------------------------


def files_of(folder: str, contents: Contents) -> list[File]:
    """The files of a folder and of those below, in order of their paths; not hidden ones and indexes of programs."""
    found: list[File] = []
    pending: list[tuple[str, str | None]] = [(folder, None)]  # folders to look into, and what theirs is called
    while pending:
        path, called = pending.pop()
        try:
            with os.scandir(path) as entries:
                inside = list(entries)
        except OSError as error:
            found.append(File(path, called, f"it cannot be read: {error.strerror}"))
            continue
        folders = {entry.name for entry in inside if entry.is_dir(follow_symlinks=False)}
        maildir = {"cur", "new"} & folders if "tmp" in folders or {"cur", "new"} <= folders else set()
        for entry in inside:
            if entry.name in folders:
                if (maildir and entry.name == "tmp") or not _is_shown(entry):
                    continue
                own = path == folder and entry.name not in maildir
                pending.append((entry.path, _shown(entry.name) if own else called))
            elif _is_read(entry, contents):
                found.append(File(entry.path, called))
    return sorted(found, key=lambda file: file.path)


def _is_shown(entry: os.DirEntry[str]) -> bool:
    """Hidden folders are not, but those of a Maildir are all called so."""
    return not entry.name.startswith(".") or os.path.isdir(os.path.join(entry.path, "cur"))


def _shown(name: str) -> str:
    return os.fsencode(name.removeprefix(".")).decode("utf-8", "replace")


def _is_read(entry: os.DirEntry[str], contents: Contents) -> bool:
    """Regular files and links to them: a pipe would never end."""
    if entry.name.startswith(".") or (contents == "mail" and INDEX(entry.name)):
        return False
    try:
        return entry.is_file()
    except OSError:  # a link in a circle
        return False


# Labels --------------------------------------------------------------------------------------------------------------


def labelled(files: Iterable[File], labels: str, root: str) -> list[File]:
    """The files with their labels; paths are relative to the file of labels, or to the folder. None: no label."""
    own = os.path.realpath(labels)
    by_path = {_absolute(file.path): file for file in files}
    by_path.pop(own, None)
    found: dict[str, str] = {}
    bases = (os.path.dirname(own), os.path.realpath(root))
    lines = _labels(labels)
    for number, label, path in lines:
        path = next((p for p in (os.path.normpath(os.path.join(base, path)) for base in bases) if p in by_path), "")
        if path and found.setdefault(path, label) != label:
            where = os.path.relpath(path, bases[1])
            raise DecibanError(f"{labels}, line {number}: {where!r} is {label!r} here, and was {found[path]!r} before")
    if not found:
        raise DecibanError(
            f"none of the {len(lines)} paths in {labels} is a file in {root}: they must be relative to either"
        )
    return [replace(file, label=found.get(path)) for path, file in by_path.items()]


def _absolute(path: str) -> str:
    """A link to a file is known by its own name."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)


def _labels(path: str) -> list[tuple[int, str, str]]:
    """Lines, labels and paths: "label path" as TREC has it, or csv with a header of "path" or "file", and "label"."""
    try:
        with open(path, encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            text = file.read()
    except OSError as error:
        raise DecibanError(f"{path} cannot be read: {error.strerror}") from None
    rows = csv.reader(text.splitlines())
    names = [name.strip().lower() for name in next(rows, [])]
    which = next((name for name in ("path", "file") if name in names), None)
    found = []
    if which is not None and "label" in names:
        for row in rows:
            if row and len(row) != len(names):
                raise DecibanError(f"{path}, line {rows.line_num}: {len(row)} cells, and {len(names)} in the header")
            if row:
                found.append((rows.line_num, row[names.index("label")].strip(), row[names.index(which)].strip()))
        return found
    for number, line in enumerate(text.splitlines(), 1):
        cells = line.split(None, 1)
        if len(cells) == 1:
            raise DecibanError(
                f"{path}, line {number}: a line must be 'label path', or a header 'path,label' come first"
            )
        if cells:
            found.append((number, cells[0], cells[1].strip()))
    return found
