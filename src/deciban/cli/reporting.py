"""What goes wrong, as one line on stderr and an exit code: never a traceback for a user's mistake."""

from __future__ import annotations

import os
import re
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn, ParamSpec

import typer

P = ParamSpec("P")


def reported(command: Callable[P, None]) -> Callable[P, None]:
    """The command; its errors are a message and exit code 1, Ctrl-C is 130, and warnings are lines too."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with warnings.catch_warnings():
            told = Warned()
            try:
                command(*args, **kwargs)
                sys.stdout.flush()
            except KeyboardInterrupt:
                fail("interrupted", 130)
            except BrokenPipeError:
                _leave_stdout()
                raise typer.Exit(1) from None
            except OSError as error:
                fail(f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error))
            except MemoryError:
                fail("there is not enough memory for this")
            except ValueError as error:
                from deciban.errors import DecibanError

                if not isinstance(error, DecibanError):
                    raise
                fail(str(error))
            finally:
                told.finish()

    return run


def end_orderly() -> None:
    """SIGTERM and SIGHUP are exits, 143 and 129: half-written and temporary files go, as they do by Ctrl-C."""
    asked = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    heard = [number for number in asked if signal.getsignal(number) == signal.SIG_DFL]  # nohup ignores one of them

    def stop(number: int, frame: object) -> NoReturn:
        for each in heard:  # a second one ends at once, if the tidying has to wait for somebody
            signal.signal(each, signal.SIG_DFL)
        raise SystemExit(128 + number)

    for number in heard:
        signal.signal(number, stop)


def say(message: str) -> None:
    typer.echo(f"deciban: {message}", err=True)


def fail(message: str, code: int = 1) -> NoReturn:
    say(message)
    raise typer.Exit(code) from None


class Warned:
    """Prints warnings, once for each kind: batches of a long file often repeat one, with other numbers in it."""

    def __init__(self) -> None:
        from deciban.errors import DecibanWarning

        self.kind = DecibanWarning
        self.first: dict[str, str] = {}
        self.more = Counter[str]()
        self.otherwise = warnings.showwarning
        warnings.simplefilter("always", DecibanWarning)
        warnings.showwarning = self.show

    def show(self, message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if not issubclass(category, self.kind):
            self.otherwise(message, category, *where, **more)
            return
        like = re.sub(r"\d+ rows? (is|are)", "rows are", str(message))
        if like not in self.first:
            self.first[like] = str(message)
            say(f"warning: {message}")
        elif str(message) != self.first[like]:  # the same once more would say nothing new
            self.more[like] += 1

    def finish(self) -> None:
        for like, times in self.more.items():
            say(f"warning: {times} more like {like[:60]!r}…")


def _leave_stdout() -> None:
    """Whoever read it is gone: what is still in its buffer must not fail when the program ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
