"""Signals, broken pipes and messages on stderr. Imports nothing heavy."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn


@contextmanager
def exiting_on_signals() -> Iterator[None]:
    """Turns SIGTERM and SIGHUP into exits (143 and 129), so that temporary files are removed as after Ctrl-C.

    A second signal ends the process at once. Signals that are ignored, as by nohup, stay ignored.
    """
    import signal

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    handled = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]

    def restore() -> None:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)

    def stop(number: int, frame: object) -> NoReturn:
        restore()
        raise SystemExit(128 + number)

    for number in handled:
        signal.signal(number, stop)
    try:
        yield
    finally:
        restore()


def print_any_path() -> None:
    """Lets standard output print names of files that are not UTF-8, as the bytes that they are."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="surrogateescape")


def discard_stdout() -> None:
    """After a broken pipe or a full disk: drops the rest of the buffer, which would fail again at exit."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def os_error_message(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)


def say(message: str) -> None:
    """Prints a message on stderr."""
    if sys.stderr is not None:  # with None, print would write to standard output
        print(f"deciban: {message}", file=sys.stderr)
