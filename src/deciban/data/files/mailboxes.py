"""Mail: folders, Maildirs, mbox files and single mails; and folders of plain text. Each document is a row."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal

import pyarrow as pa

from deciban.data.cell_types import CellType
from deciban.data.files.document_labels import absolute_path, read_labels
from deciban.data.files.fragment import Chunk, FileFormat, Fragment, ReadOptions, ReadTask
from deciban.data.files.mail_message import COLUMNS, END, MAX_BYTES, TRUNCATED, NotMail, parse
from deciban.data.files.text_files import TextFile, require_encoding
from deciban.errors import DecibanError

ROWS = 1 << 12  # per chunk
MAX_BATCH = 1 << 26  # bytes per chunk, whatever the block size
MBOX_READ = 1 << 20  # bytes of an mbox that are read at a time
# files that mail programs keep beside mail
INDEX = re.compile(
    r"dovecot.*|courier.*|maildirsize|maildirfolder|subscriptions|.*\.(msf|cmeta|ibex\.index.*|index|lock)|"
    r"popstate\.dat|msgFilterRules\.dat|Thumbs\.db|desktop\.ini"
).fullmatch
MAX_END = 1300  # bytes that END may match, lookahead included
QUOTED = re.compile(rb"^>(>*From )", re.MULTILINE)

Contents = Literal["mail", "text"]


@dataclass(frozen=True)
class File:
    """A file of one or more mails, or of a text."""

    path: str
    folder: str | None = None  # the first folder below the scanned one
    problem: str | None = None  # why it cannot be read, if that is already known
    label: str | None = None
    name: str | None = None  # in messages, in place of the path

    @property
    def title(self) -> str:
        return self.name or os.fsencode(self.path).decode("utf-8", "replace")


@dataclass(frozen=True)
class Document:
    """The bytes of a mail or a text."""

    file: File
    number: int | None  # from 1, in an mbox
    data: bytes
    bytes_read: int  # of all files so far
    problem: str | None = None

    @property
    def title(self) -> str:
        return self.file.title if self.number is None else f"{self.file.title}, mail {self.number}"


@dataclass(frozen=True)
class Mailboxes(Fragment):
    """A folder or a file of mails, or of texts. All columns are text."""

    files: tuple[File, ...]
    contents: Contents
    labelled: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(file.path for file in self.files)

    @property
    def document_kind(self) -> str:
        return self.contents

    @property
    def names(self) -> tuple[str, ...]:
        """A label replaces the folder, which would otherwise become a feature."""
        return ("label" if self.labelled else "folder", *(COLUMNS if self.contents == "mail" else ("text",)))

    @property
    def columns(self) -> dict[str, CellType]:
        return dict.fromkeys(self.names, "text")

    @cached_property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(os.path.getsize(file.path) for file in self.files if os.path.exists(file.path))

    def read_tasks(self, options: ReadOptions) -> Iterator[ReadTask]:
        for name in options.names:
            if options.types[name] not in ("text", "empty", "other"):
                raise self.mixed_types(name, "text", options.types[name])
        return (partial(self._read, first, documents, options) for first, documents in self._batches())

    def locate(self, offset: int, row: int) -> str:
        documents = next((documents for first, documents in self._batches() if first == offset), ())
        rows = [document for document in documents if self._texts(document)[0] is not None]
        return rows[row].title if rows else self.title

    def _read(self, first: int, documents: Sequence[Document], options: ReadOptions) -> Chunk:
        columns: dict[str, list[str | None]] = {name: [] for name in options.names}
        skipped = []
        for document in documents:
            texts, problem = self._texts(document)
            if problem is not None:
                skipped.append(f"{document.title}: {problem}")
            if texts is not None:
                for name, column in columns.items():
                    column.append(texts[name])
        table = pa.table({name: pa.array(column, pa.string()) for name, column in columns.items()})
        return Chunk(table, first, documents[-1].bytes_read, tuple(skipped))

    def _texts(self, document: Document) -> tuple[dict[str, str | None] | None, str | None]:
        """A row if the document can be read, and what is wrong with it."""
        if document.problem is not None:
            return None, document.problem
        context = {"folder": document.file.folder, "label": document.file.label}
        problem = TRUNCATED if len(document.data) > MAX_BYTES else None
        if self.contents == "text":
            text = document.data[:MAX_BYTES].decode(self.file.encoding, "replace").removeprefix("\ufeff")
            text = text.encode("utf-8", "replace").decode()  # utf-7 may hold lone surrogates
            return {**context, "text": text}, problem
        try:
            return {**context, **parse(document.data).texts}, problem
        except NotMail as error:
            return None, str(error)

    def _batches(self) -> Iterator[tuple[int, list[Document]]]:
        """Batches of documents with the index of the first; they depend only on the files and the block size."""
        max_size = min(self.file.block_size, MAX_BATCH)
        documents: list[Document] = []
        first = size = 0
        for document in self._documents():
            documents.append(document)
            size += len(document.data)
            if size >= max_size or len(documents) == ROWS:
                yield first, documents
                first += len(documents)
                documents, size = [], 0
        if documents:
            yield first, documents

    def _documents(self) -> Iterator[Document]:
        before = 0
        for file in self.files:
            if file.problem is not None:
                yield Document(file, None, b"", before, file.problem)
                continue
            number: int | None = None
            try:
                with open(file.path, "rb") as stream:
                    for number, data in _split(_decompressed(stream), self.contents):
                        yield Document(file, number, data, before + stream.tell())
                    before += stream.tell()
            except (OSError, EOFError, zlib.error) as error:
                following = None if number is None else number + 1
                problem = f"it cannot be read: {getattr(error, 'strerror', None) or error}"
                yield Document(file, following, b"", before, problem)


def mailboxes(file: TextFile, contents: Contents, labels: str | os.PathLike[str] | None = None) -> Mailboxes:
    """The documents of a file or a folder."""
    path, folder = file.path, os.path.isdir(file.path)
    require_encoding(file.encoding)
    files = files_of(path, contents) if folder else [File(path, name=file.name)]
    if labels is not None:
        labels_file, root = os.path.expanduser(labels), path if folder else os.path.dirname(path)
        by_path = {absolute_path(file.path): file for file in files}
        by_path.pop(os.path.realpath(labels_file), None)
        label_of = read_labels(labels_file, root, by_path)
        files = [replace(file, label=label_of.get(path)) for path, file in by_path.items()]
    if not files:
        raise DecibanError(f"{path} is a directory without files: there is no {contents} in it")
    return Mailboxes(file, tuple(files), contents, labels is not None)


MAIL = FileFormat(
    "mail", lambda file, options: mailboxes(file, "mail", options.labels), (".eml", ".mbox"), holds_documents=True
)
TEXT = FileFormat("text", lambda file, options: mailboxes(file, "text", options.labels), holds_documents=True)


# Files → documents ---------------------------------------------------------------------------------------------------


def _decompressed(stream: Any) -> Any:
    return gzip.GzipFile(fileobj=stream) if stream.peek(2).startswith(b"\x1f\x8b") else stream


def _split(stream: Any, contents: Contents) -> Iterator[tuple[int | None, bytes]]:
    """The mails of an mbox with their numbers, or one document."""
    start = stream.read(1 << 12)
    if contents == "mail" and start.lstrip(b"\r\n").startswith(b"From "):
        yield from enumerate(mails_of(start, partial(stream.read, MBOX_READ)), 1)
    else:
        yield None, start + stream.read(MAX_BYTES + 1 - len(start))  # one more byte shows that it was truncated


def mails_of(start: bytes, more: Callable[[], bytes]) -> Iterator[bytes]:
    """The mails of an mbox that begins with `start`; a mail is truncated after MAX_BYTES."""
    data, at, searched, pending = start.lstrip(b"\r\n"), 0, 0, b""
    while True:
        for match in END.finditer(data, searched):
            yield _unquoted(pending + data[at : match.start() + 1])
            pending, at = b"", match.end()
        piece = more()
        if not piece:
            break
        searched = max(at, len(data) - MAX_END)
        if len(pending) + searched - at > MAX_BYTES:
            pending += data[at : max(at, at + MAX_BYTES + 1 - len(pending))]
            at = searched
        data, searched, at = data[at:] + piece, searched - at, 0
    if pending or data[at:].strip():
        end = len(data) - data.endswith(b"\n\n") - 2 * data.endswith(b"\n\r\n")  # the empty line after the last mail
        yield _unquoted(pending + data[at:end])


def _unquoted(mail: bytes) -> bytes:
    return QUOTED.sub(rb"\1", mail) if b">From " in mail else mail


# Folders → files -----------------------------------------------------------------------------------------------------


def files_of(folder: str, contents: Contents) -> list[File]:
    """The files of a folder and its subfolders, by path, without hidden files and indexes of mail programs."""
    files: list[File] = []
    pending: list[tuple[str, str | None]] = [(folder, None)]  # folders to list, and the folder column of their files
    while pending:
        path, column = pending.pop()
        try:
            with os.scandir(path) as entries:
                children = list(entries)
        except OSError as error:
            files.append(File(path, column, f"it cannot be read: {error.strerror}"))
            continue
        folders = {entry.name for entry in children if entry.is_dir(follow_symlinks=False)}
        maildir = {"cur", "new"} & folders if "tmp" in folders or {"cur", "new"} <= folders else set()
        for entry in children:
            hidden = entry.name.startswith(".")
            if entry.name not in folders:
                if not hidden and _is_read(entry, contents):
                    files.append(File(entry.path, column))
                continue
            if (maildir and entry.name == "tmp") or (hidden and not os.path.isdir(os.path.join(entry.path, "cur"))):
                continue  # the folders of a Maildir have names of hidden ones
            name = os.fsencode(entry.name.removeprefix(".")).decode("utf-8", "replace")
            pending.append((entry.path, name if path == folder and entry.name not in maildir else column))
    return sorted(files, key=lambda file: file.path)


def _is_read(entry: os.DirEntry[str], contents: Contents) -> bool:
    """Whether it is a regular file, or a link to one (a pipe would never end), and not an index."""
    try:
        return entry.is_file() and not (contents == "mail" and INDEX(entry.name))
    except OSError:  # a cycle of links
        return False
