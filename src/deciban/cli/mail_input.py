"""The input of the mail commands: standard input, files and mboxes, as bytes of mails."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from deciban.data.files.mail_message import Mail

READ = 1 << 16  # bytes of a mail that are read at once: most have fewer, and larger buffers cost more than the reading
BATCH, MAX_BATCH_CHARACTERS = 256, 1 << 24  # limits of what is classified at a time: mails, and their characters


def mails_of(name: str, options: argparse.Namespace) -> Iterator[tuple[str, bytes]]:
    """The mails of a file, or of standard input, each with a name for messages."""
    if name == "-":
        name, data = "standard input", read_stdin()
    else:
        from deciban.data.files.mail_message import MAX_BYTES

        data = _contents(name, sys.maxsize if options.mbox else MAX_BYTES + 1)
    if not options.mbox:
        yield name, data
        return
    for number, (mail, _) in enumerate(split_mbox(data), 1):
        yield f"{name}, mail {number}", mail


def _contents(name: str, most: int) -> bytes:
    """The bytes of a file, at most so many. Most mails are one read, which is a third of the work of a file object."""
    descriptor = os.open(name, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        data = os.read(descriptor, READ)
        while len(data) < most and (more := os.read(descriptor, min(max(READ, len(data)), most - len(data)))):
            data += more
    except OSError as error:
        raise OSError(error.errno, error.strerror, name) from None
    finally:
        os.close(descriptor)
    return data


def split_mbox(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The mails of an mbox, each with the bytes between it and the next; together they are all bytes of the mbox."""
    from deciban.data.files.mail_message import END

    start = 0
    for match in END.finditer(data):
        yield data[start : match.start() + 1], data[match.start() + 1 : match.end()]
        start = match.end()
    yield data[start:], b""


def read_stdin() -> bytes:
    return b"" if sys.stdin is None else sys.stdin.buffer.read()  # None: it is closed


def names_from_stdin() -> Iterator[str]:
    for line in () if sys.stdin is None else sys.stdin.buffer:
        if line.strip():
            yield os.fsdecode(line.rstrip(b"\n"))


def batches(mails: Iterable[tuple[str, Mail | None]]) -> Iterator[list[tuple[str, Mail | None]]]:
    batch, size = list[tuple[str, "Mail | None"]](), 0
    for name, mail in mails:
        batch.append((name, mail))
        size += 0 if mail is None else sum(map(len, filter(None, mail.texts.values())))
        if len(batch) == BATCH or size > MAX_BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    yield batch
