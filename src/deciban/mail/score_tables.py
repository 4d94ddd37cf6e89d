"""Score tables: what classifies many mails without numpy, which takes longer to import than a thousand mails.

They follow from a model file, and are kept in the user's cache: $XDG_CACHE_HOME/deciban, or ~/.cache/deciban. A model
file that has changed has other tables; without a cache everything works, only slower.
"""

from __future__ import annotations

import os
from contextlib import suppress
from math import log
from typing import TYPE_CHECKING, NamedTuple

import deciban
from deciban import _kernels

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deciban.mail.filter import Verdict
    from deciban.persist.storage import FilePath

MAGIC = b"deciban score tables 1\n"  # what follows: `_key` of the model file, fingerprint of the tables, the tables
FINGERPRINT_BYTES = 16
DECIBANS = 10.0 / log(10.0)  # in a nat


class Score(NamedTuple):
    """The class of a mail, its probability, and its decibans against the runner-up class."""

    label: str
    probability: float
    decibans: float


class ScoreTables:
    """Classifies mails as the filter in a file does, to within the rounding of sums."""

    def __init__(self, data: bytes, path: FilePath, begin: int = 0) -> None:
        self._scorer = _kernels.TermScorer(data, begin)
        self.classes = self._scorer.classes
        self._path = path

    def classify(self, mails: Sequence[dict[str, str | None]]) -> list[Score | Verdict]:
        """The score of each mail. Those without a column that changes weights are left to the filter itself."""
        classes, best = self.classes, self._scorer.best(list(mails))
        others: Iterator[Verdict] = iter(())
        if None in best:
            from deciban.mail.filter import Filter

            others = iter(Filter.load(self._path).classify([m for m, b in zip(mails, best, strict=True) if b is None]))
        return [next(others) if each is None else Score(classes[each[0]], each[1], each[2] * DECIBANS) for each in best]


def cached(path: FilePath) -> ScoreTables | None:
    """The tables of a model file; None if they are not in the cache."""
    with suppress(OSError, ValueError):
        place = _place(path)
        if place is None or not os.path.isfile(place) or not os.path.isfile(path):
            return None
        with open(place, "rb") as file:
            status = os.fstat(file.fileno())
            if hasattr(os, "getuid") and status.st_uid != os.getuid():
                return None
            data = file.read()
        begin = len(MAGIC) + 2 * FINGERPRINT_BYTES
        if len(data) > begin and data[:begin] == MAGIC + _key(path) + _kernels.fingerprint(data, begin):
            return ScoreTables(data, path, begin)
    return None


def keep(path: FilePath, key: bytes, tables: bytes) -> None:
    """Puts the tables of a model file with this key into the cache, if there is one that can be written."""
    with suppress(OSError, ValueError):
        place = _place(path)
        if place is None:
            return
        os.makedirs(os.path.dirname(place), 0o700, exist_ok=True)
        temporary = f"{place}.{os.getpid()}"
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
            with open(os.open(temporary, flags, 0o600), "wb") as file:  # words of mails are nobody else's
                file.write(MAGIC + key + _kernels.fingerprint(tables))
                file.write(tables)
            os.replace(temporary, place)
        finally:
            with suppress(OSError):
                os.unlink(temporary)


def key_of(path: FilePath) -> bytes | None:
    """What tables of a model file are kept under: a fingerprint of the file and of the version of this library."""
    with suppress(OSError, ValueError):
        return _key(path) if os.path.isfile(path) else None
    return None


def _key(path: FilePath) -> bytes:
    with open(path, "rb") as file:
        return _kernels.fingerprint(file.read() + deciban.__version__.encode())


def _place(path: FilePath) -> str | None:
    """Where the tables of a model file are: one file for each, which is replaced when the model changes."""
    folder = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    if not os.path.isabs(folder):
        return None
    return os.path.join(folder, "deciban", _kernels.fingerprint(os.fsencode(os.path.realpath(path))).hex())
