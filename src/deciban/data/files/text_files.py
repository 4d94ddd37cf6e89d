"""Text files as blocks of whole records, compressed or not."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from deciban.errors import DecibanError

BLOCK = 1 << 22  # bytes
SAMPLE = 1 << 18  # bytes at the beginning, from which the dialect and the types of columns are inferred
MAX_RECORD = 1 << 27  # bytes: a longer record means that this is not a table
BOM = b"\xef\xbb\xbf"
COMPRESSION = {  # codec: offset and bytes of its signature
    "gzip": (0, b"\x1f\x8b"),
    "zstd": (0, b"\x28\xb5\x2f\xfd"),
    "bz2": (4, b"1AY&SY"),
    "lz4": (0, b"\x04\x22\x4d\x18"),
}
OTHER_FORMATS = {  # signature: what the file is, and what to do
    b"\xd0\xcf\x11\xe0": "an Excel workbook: save it as csv",
    b"PK\x03\x04": "an Excel workbook or a zip archive: save it as csv, or unpack it",
    b"\xfd7zXZ": "compressed by xz: decompress it first",
    b"%PDF-": "a PDF document: save its table as csv",
    b"SQLite format 3": "a database: export its table as csv or parquet",
} | dict.fromkeys((b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"), "a Python pickle, which is never read")
MARKUP_TAGS = (b"<!doctype html", b"<?xml", b"<html", b"<head", b"<body", b"<table")
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

FindEnd = Callable[[bytes], int]  # where the last complete record of some bytes ends; 0 if there is none


@dataclass(frozen=True)
class Block:
    """Whole records in UTF-8."""

    data: bytes | memoryview  # a view saves a copy
    offset: int  # in the decompressed text
    bytes_read: int  # of the file so far
    ends_with_newline: bool = True  # the last block may not

    @property
    def text(self) -> bytes:
        return bytes(self.data)


@dataclass(frozen=True)
class TextFile:
    """A file with its encoding; in text files records have one or more lines."""

    path: str
    encoding: str = "utf-8"
    block_size: int = BLOCK
    name: str | None = None  # in messages, in place of the path

    @property
    def title(self) -> str:
        return self.name or self.path

    @cached_property
    def sample(self) -> bytes:
        """The beginning, with at least two lines: a header may be long."""
        start = b""
        for data, _ in self._pieces(SAMPLE):
            start += data
            if len(start) >= SAMPLE and (count_line_breaks(start) >= 2 or len(start) > MAX_RECORD):
                break
        _require_text(self.title, start)
        self._require_no_nul(start, 0)
        return start

    def blocks(self, find_end: FindEnd, start: int = 0) -> Iterator[Block]:
        """The file from the offset `start` on, as blocks of whole records of about `block_size` bytes."""
        rest, offset, read = b"", start, 0
        for data, read in self._pieces(self.block_size):
            data, start = data[start:], max(0, start - len(data))
            self._require_no_nul(data, offset + len(rest))
            rest = rest + data if rest else data
            end = find_end(rest)
            if end:
                yield Block(memoryview(rest)[:end], offset, read)
                rest, offset = rest[end:], offset + end
            elif len(rest) > MAX_RECORD:
                problem = f"a record of more than {MAX_RECORD >> 20} MB begins here: is a quote not closed?"
                raise self.error(offset, problem)
        if rest:
            yield Block(rest, offset, read, ends_with_newline=False)

    def _require_no_nul(self, data: bytes, offset: int) -> None:
        if b"\0" in data:
            problem = "holds a NUL byte: this is not text, or its encoding must be given"
            raise self.error(offset + data.index(b"\0"), problem)

    def line(self, offset: int) -> int:
        """The line number, from 1, of an offset in the decompressed text. Reads the file again."""
        lines, remaining, before = 1, offset, b""
        for data, _ in self._pieces(BLOCK, "replace"):
            lines += count_line_breaks(before + data[:remaining]) - count_line_breaks(before)
            remaining, before = remaining - len(data), data[-1:]
            if remaining <= 0:
                break
        return lines

    def error(self, offset: int, problem: str) -> DecibanError:
        return DecibanError(f"{self.title}, line {self.line(offset)}: {problem}")

    def _pieces(self, size: int, errors: str = "strict") -> Iterator[tuple[bytes, int]]:
        """The text in UTF-8 without a byte order mark, and the bytes of the file read so far."""
        decode, first, offset = self._decoder(errors), True, 0
        size = max(size, len(BOM))
        try:
            with open(self.path, "rb", buffering=0) as file:
                stream = _decompressed(file)
                while True:
                    raw = stream.read(size)
                    data = decode(raw, not raw)
                    if data:
                        data, first = data.removeprefix(BOM) if first else data, False
                        offset += len(data)
                        yield data, file.tell()
                    if not raw:
                        return
        except UnicodeDecodeError as error:
            decoded = error.object[: error.start].decode(self.encoding, "replace").encode()
            raise self.error(offset + len(decoded), f"this is not text in {self.encoding}: {error.reason}") from None
        except UnicodeError as error:  # no byte order mark, for instance
            raise DecibanError(f"{self.title} is not text in {self.encoding}: {error}") from None
        except (OSError, pa.ArrowInvalid) as error:
            reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
            raise DecibanError(f"{self.title} cannot be read: {reason}") from None

    def _decoder(self, errors: str) -> Callable[[bytes, bool], bytes]:
        """From the file's encoding to UTF-8, incrementally."""
        require_encoding(self.encoding)
        codec = codecs.lookup(self.encoding)
        if codec.name in ("utf-8", "utf-8-sig"):
            return lambda data, last: data
        decoder = codec.incrementaldecoder(errors)
        return lambda data, last: decoder.decode(data, last).encode()


def parser_input(data: bytes | memoryview) -> Any:
    """A block for a parser of Arrow, which drops a byte order mark at its beginning: inside a file it is text."""
    return pa.BufferReader(BOM + data if data[: len(BOM)] == BOM else data)


def require_encoding(encoding: str) -> None:
    try:
        b" ".decode(encoding, "ignore")  # raises for base64 and the like, which are codecs, but not of text
    except (LookupError, ValueError):
        raise DecibanError(f"there is no encoding called {encoding!r}: try utf-8, latin-1 or cp1252") from None


def _decompressed(file: Any) -> Any:
    start = file.read(16)
    file.seek(0)
    for codec, (offset, signature) in COMPRESSION.items():
        if start.startswith(signature, offset):
            return pa.CompressedInputStream(pa.PythonFile(file, "r"), codec)
    return file


def count_line_breaks(text: bytes) -> int:
    r"""Line breaks of all three kinds: \n, \r\n and \r.

    >>> count_line_breaks(b"unix\nwindows\r\nold mac\r")
    3
    """
    return text.count(b"\n") + text.count(b"\r") - text.count(b"\r\n")


def _require_text(title: str, start: bytes) -> None:
    for signature, description in OTHER_FORMATS.items():
        if start.startswith(signature):
            raise DecibanError(f"{title}, line 1: this is {description}")
    if start.startswith(UTF_16):
        raise DecibanError(f"{title}, line 1: this is text in UTF-16: give its encoding, 'utf-16'")
    beginning = start.lstrip()[:1024].lower()
    if beginning.startswith(b"<") and any(tag in beginning for tag in MARKUP_TAGS):
        raise DecibanError(f"{title}, line 1: this is a web page or XML, not a table: download the data itself")
