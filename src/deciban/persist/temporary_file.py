"""Temporary files beside the file that they will replace; those of processes that were killed are removed.

A process holds a lock on its temporary file, which ends with the process however that ends. So whoever gets the lock
knows that nobody writes the file any more: also across containers, where numbers of processes mean nothing.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows, which removes no file that a process has opened
    fcntl = None  # type: ignore[assignment]

NAME = re.compile(r"\.[0-9a-f]{16}\.deciban-tmp")
UNLOCKED_SECONDS = 3600.0  # that a file is left alone where there are no locks


class TemporaryFile:
    """A new, empty file in a folder, locked; at the end of the `with` block it is removed, unless it was renamed.

    Abandoned ones are removed from the folder before. Who uses it closes the descriptor; the lock has one of its own.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> TemporaryFile:
        remove_abandoned(self.folder)
        while True:
            self.path = os.path.join(self.folder, f".{secrets.token_hex(8)}.deciban-tmp")
            # as for any new file, the user's umask decides who may read it
            self.descriptor = os.open(
                self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666
            )
            try:
                self.lock = _locked(self.descriptor)
                if os.fstat(self.descriptor).st_nlink:
                    return self
            except BaseException:
                os.close(self.descriptor)
                self._remove()
                raise
            self._unlock()  # another process took it for abandoned before it was locked
            os.close(self.descriptor)

    def __exit__(self, *error: object) -> None:
        if any(error):
            self._remove()
        self._unlock()

    def _remove(self) -> None:
        with suppress(OSError):
            os.unlink(self.path)

    def _unlock(self) -> None:
        if self.lock is not None:
            with suppress(OSError):
                os.close(self.lock)


def is_temporary(name: Any) -> bool:
    """Whether this is the name of a temporary file."""
    return NAME.fullmatch(os.path.basename(name)) is not None


def remove_abandoned(folder: Path) -> None:
    """Removes the temporary files of processes that have ended; what cannot be removed stays."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if is_temporary(entry.name):
                with suppress(OSError):
                    _remove_if_abandoned(entry.path)


def _locked(descriptor: int) -> int | None:
    """Another descriptor of the file, which holds its lock; None where there are no locks."""
    if fcntl is None:
        return None
    with suppress(OSError):  # a file system without locks: then nobody else gets one either
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    return os.dup(descriptor)


def _remove_if_abandoned(path: str) -> None:
    if fcntl is None:
        if time.time() - os.stat(path).st_mtime > UNLOCKED_SECONDS:
            os.unlink(path)
        return
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises if the process lives
            os.unlink(path)
    finally:
        os.close(descriptor)
