"""Paths and patterns as a user passes them → files that exist; pipes are written to files first."""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from glob import glob, has_magic
from typing import IO

from deciban.errors import DecibanError

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
STANDARD_INPUT = ("/dev/stdin", "/proc/self/fd/0", "/dev/fd/0")


def resolve_paths(paths: Paths) -> list[tuple[str, str | None]]:
    """(path, title) of every file; patterns match in the order of names, and only pipes have titles."""
    paths = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    files = [file for path in paths for file in _files_at(os.path.expanduser(os.fspath(path)))]
    if not files:
        raise DecibanError("no files to scan: pass a path, a pattern, or a list of them")
    require_unique_paths([path for path, _ in files])
    return files


def require_unique_paths(paths: Sequence[str]) -> None:
    """Raises an error if two paths lead to one file; URLs are compared as they are."""
    files = [path if "://" in path else os.path.realpath(path) for path in paths]
    times = Counter(files)
    repeated = [path for path, file in zip(paths, files, strict=True) if times[file] > 1]
    if repeated:
        raise DecibanError(f"{repeated[-1]!r} is given twice: its rows would count twice")


def _files_at(path: str) -> list[tuple[str, str | None]]:
    if path == "-":
        return [(_spool(sys.stdin.buffer), "standard input")]
    if os.path.exists(path) and stat.S_ISFIFO(os.stat(path).st_mode):
        with open(path, "rb") as pipe:
            return [(_spool(pipe), "standard input" if path in STANDARD_INPUT else path)]
    if os.path.exists(path):
        return [(path, None)]
    matches = sorted(glob(path, recursive=True)) if has_magic(path) else []
    if not matches:
        raise DecibanError(f"no file matches {path!r}" if has_magic(path) else f"there is no file {path!r}")
    return [(match, None) for match in matches if not os.path.isdir(match)]


def _spool(pipe: IO[bytes]) -> str:
    """A pipe as a temporary file: inferring types may need a second pass over the rows."""
    folder = tempfile.mkdtemp(prefix="deciban-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = os.path.join(folder, "rows")
    with open(path, "wb") as file:
        shutil.copyfileobj(pipe, file, 1 << 20)
    return path
