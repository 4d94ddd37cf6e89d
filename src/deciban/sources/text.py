"""Text files as blocks of whole records, packed or not."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from deciban.errors import DecibanError

BLOCK = 1 << 22  # bytes
SAMPLE = 1 << 18  # bytes of the beginning, from which a dialect and the types of columns are guessed
LONGEST = 1 << 27  # bytes of one record: beyond this it is no table
BOM = b"\xef\xbb\xbf"
PACKED = {  # packing: where its mark stands, and what it is
    "gzip": (0, b"\x1f\x8b"),
    "zstd": (0, b"\x28\xb5\x2f\xfd"),
    "bz2": (4, b"1AY&SY"),
    "lz4": (0, b"\x04\x22\x4d\x18"),
}
FOREIGN = {
    b"\xd0\xcf\x11\xe0": "an Excel workbook: save it as csv",
    b"PK\x03\x04": "an Excel workbook or a zip archive: save it as csv, or unpack it",
    b"\xfd7zXZ": "packed by xz: unpack it first",
    b"%PDF-": "a PDF document: save its table as csv",
    b"SQLite format 3": "a database: export its table as csv or parquet",
    b"\x80\x02": "a Python pickle, which is never read",
    b"\x80\x03": "a Python pickle, which is never read",
    b"\x80\x04": "a Python pickle, which is never read",
    b"\x80\x05": "a Python pickle, which is never read",
}
WEB = (b"<!doctype html", b"<?xml", b"<html", b"<head", b"<body", b"<table")
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

# Where the last complete record of some bytes ends, 0 if none does: a format knows where a line break ends a record
Ends = Callable[[bytes], int]


@dataclass(frozen=True)
class Block:
    """Whole records in UTF-8, and where they stand in the unpacked text."""

    data: bytes | memoryview  # a view is not copied: at the speed of reading that counts
    offset: int
    read: int  # bytes of the file that have been read so far, for progress
    ended: bool = True  # by a line break; the last block may not be

    @property
    def text(self) -> bytes:
        return bytes(self.data)


@dataclass(frozen=True)
class TextFile:
    """A file of records of one or more lines each."""

    path: str
    encoding: str = "utf-8"
    block_size: int = BLOCK
    called: str | None = None  # in messages, if not by its path

    @property
    def title(self) -> str:
        return self.called or self.path

    @cached_property
    def sample(self) -> bytes:
        """The beginning, with two lines at least: a header may be long."""
        start = b""
        for data, _ in self._pieces(SAMPLE):
            start += data
            if len(start) >= SAMPLE and (breaks(start) >= 2 or len(start) > LONGEST):
                break
        _require_text(self.title, start)
        self._require_no_nul(start, 0)
        return start

    def blocks(self, ends: Ends, start: int = 0) -> Iterator[Block]:
        """All of the file from a start on, in runs of whole records, of about `block_size` bytes."""
        rest, offset, read = b"", start, 0
        for data, read in self._pieces(self.block_size):
            data, start = data[start:], max(0, start - len(data))
            self._require_no_nul(data, offset + len(rest))
            rest = rest + data if rest else data
            end = ends(rest)
            if end:
                yield Block(memoryview(rest)[:end], offset, read)
                rest, offset = rest[end:], offset + end
            elif len(rest) > LONGEST:
                raise self.error(
                    offset, f"a record of more than {LONGEST >> 20} MB begins here: is a quote not closed?"
                )
        if rest:
            yield Block(rest, offset, read, ended=False)

    def _require_no_nul(self, data: bytes, offset: int) -> None:
        if b"\0" in data:
            problem = "holds a NUL byte: this is no text, or its encoding is to be given"
            raise self.error(offset + data.index(b"\0"), problem)

    def line(self, offset: int) -> int:
        """The number of the line, from 1, of a place in the unpacked text. Reads the file again."""
        lines, left, before = 1, offset, b""
        for data, _ in self._pieces(BLOCK, "replace"):
            lines += breaks(before + data[:left]) - breaks(before)
            left, before = left - len(data), data[-1:]
            if left <= 0:
                break
        return lines

    def error(self, offset: int, problem: str) -> DecibanError:
        return DecibanError(f"{self.title}, line {self.line(offset)}: {problem}")

    def _pieces(self, size: int, errors: str = "strict") -> Iterator[tuple[bytes, int]]:
        """The text in UTF-8, without a byte order mark, and how much of the file it took."""
        decode, first, offset = self._decoder(errors), True, 0
        size = max(size, len(BOM))
        try:
            with open(self.path, "rb", buffering=0) as file:
                stream = _unpacked(file)
                while True:
                    packed = stream.read(size)
                    data = decode(packed, not packed)
                    if data:
                        data, first = data.removeprefix(BOM) if first else data, False
                        offset += len(data)
                        yield data, file.tell()
                    if not packed:
                        return
        except UnicodeDecodeError as error:
            good = error.object[: error.start].decode(self.encoding, "replace").encode()
            raise self.error(offset + len(good), f"this is not text in {self.encoding}: {error.reason}") from None
        except (OSError, pa.ArrowInvalid) as error:
            raise DecibanError(f"{self.title} cannot be read: {_reason(error)}") from None

    def _decoder(self, errors: str) -> Callable[[bytes, bool], bytes]:
        """From the file's encoding to UTF-8, piece by piece."""
        try:
            known = codecs.lookup(self.encoding)
            b" ".decode(self.encoding, "ignore")  # base64 and its like are codecs too, but not of text
        except (LookupError, ValueError):
            raise DecibanError(f"there is no encoding called {self.encoding!r}: try utf-8, latin-1 or cp1252") from None
        if known.name in ("utf-8", "utf-8-sig"):
            return lambda data, last: data
        decoder = known.incrementaldecoder(errors)
        return lambda data, last: decoder.decode(data, last).encode()


def _unpacked(file: Any) -> Any:
    start = file.read(16)
    file.seek(0)
    for packing, (where, mark) in PACKED.items():
        if start.startswith(mark, where):
            return pa.CompressedInputStream(pa.PythonFile(file, "r"), packing)
    return file


def breaks(text: bytes) -> int:
    """Line breaks of all three kinds.

    >>> breaks(b"unix\\nwindows\\r\\nold mac\\r")
    3
    """
    return text.count(b"\n") + text.count(b"\r") - text.count(b"\r\n")


def _reason(error: Exception) -> str:
    strerror = getattr(error, "strerror", None)
    return strerror or str(error).partition("\n")[0]


def _require_text(title: str, start: bytes) -> None:
    for magic, what in FOREIGN.items():
        if start.startswith(magic):
            raise DecibanError(f"{title}, line 1: this is {what}")
    if start.startswith(UTF_16):
        raise DecibanError(f"{title}, line 1: this is text in UTF-16: give its encoding, 'utf-16'")
    beginning = start.lstrip()[:1024].lower()
    if beginning.startswith(b"<") and any(tag in beginning for tag in WEB):
        raise DecibanError(f"{title}, line 1: this is a web page or XML, not a table: download the data itself")
