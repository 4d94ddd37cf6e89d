"""How the process ends: signals, broken pipes and the messages of system errors. Imports nothing heavy."""

from __future__ import annotations

import os
import sys
from typing import NoReturn


def exit_on_signals() -> list[int]:
    """Turns SIGTERM and SIGHUP into exits (143 and 129), so that temporary files are removed as after Ctrl-C.

    A second signal ends the process at once. Returns the signals, without those that are ignored (as by nohup).
    """
    import signal

    known = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    handled = [number for number in known if signal.getsignal(number) == signal.SIG_DFL]

    def stop(number: int, frame: object) -> NoReturn:
        for each in handled:
            signal.signal(each, signal.SIG_DFL)
        raise SystemExit(128 + number)

    for number in handled:
        signal.signal(number, stop)
    return handled


def discard_stdout() -> None:
    """After a broken pipe or a full disk: what is left in the buffer must not fail again at exit."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def os_error_message(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)
