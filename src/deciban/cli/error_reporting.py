"""Errors as one line on stderr and an exit code: never a traceback for a user's mistake."""

from __future__ import annotations

import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn, ParamSpec

import typer
from typer.core import TyperCommand

import deciban
from deciban.cli.process_exit import discard_stdout, os_error_message, print_any_path, say

P = ParamSpec("P")

OTHER_NAMES = {  # what other tools call an option
    "--label": ("--target", "--target-column", "--y", "-y", "--label-column", "--label-col", "--class", "--response"),
    "--output": ("--out", "--output-file", "--save", "--model-file"),
    "--weight": ("--weights", "--sample-weight", "--weight-column"),
    "--delimiter": ("--sep", "--separator", "--delim"),
    "--na-values": ("--na", "--null-values", "--missing-values"),
    "--folds": ("--cv", "--n-folds", "--n-splits"),
    "--drop": ("--exclude", "--ignore"),
    "--model": ("--algorithm", "--classifier", "--method"),
    "--prior": ("--priors", "--class-prior"),
    "--trees": ("--n-estimators", "--num-trees"),
    "--random-state": ("--seed", "--random-seed"),
    "--smoothing": ("--alpha",),
    "--l2": ("--lambda", "--penalty"),
}


class Command(TyperCommand):
    """A command that answers an option of another tool with its own."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except Exception as error:  # for an option that does not exist: its class is typer's own
            wrong = getattr(error, "option_name", None)
            own = {name for parameter in self.params for name in parameter.opts}
            for name, others in OTHER_NAMES.items():
                if wrong in others and name in own:
                    error.possibilities = [name]  # type: ignore[attr-defined]
            raise


def reported(command: Callable[P, None]) -> Callable[P, None]:
    """The command, with errors as a message and exit code 1, Ctrl-C as 130, and warnings as lines on stderr."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with warnings.catch_warnings():
            printer = WarningPrinter()
            print_any_path()
            try:
                command(*args, **kwargs)
                sys.stdout.flush()
            except KeyboardInterrupt:
                fail("interrupted", 130)
            except BrokenPipeError:
                discard_stdout()
                raise typer.Exit(1) from None
            except OSError as error:
                fail(os_error_message(error))
            except MemoryError:
                fail("out of memory")
            except ValueError as error:
                if not isinstance(error, deciban.DecibanError):
                    raise
                fail(str(error))
            finally:
                printer.finish()

    return run


def fail(message: str, code: int = 1) -> NoReturn:
    say(message)
    raise typer.Exit(code) from None


class WarningPrinter:
    """Prints each kind of warning once: the batches of a long file often repeat one with other numbers."""

    def __init__(self) -> None:
        self.first: dict[str, str] = {}
        self.repeats = Counter[str]()
        self.default = warnings.showwarning
        warnings.simplefilter("always", deciban.DecibanWarning)
        warnings.showwarning = self.show

    def show(self, message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if not issubclass(category, deciban.DecibanWarning):
            self.default(message, category, *where, **more)
            return
        pattern = re.sub(r"\d+ rows? (is|are)", "rows are", str(message))
        if pattern not in self.first:
            self.first[pattern] = str(message)
            say(f"warning: {message}")
        elif str(message) != self.first[pattern]:
            self.repeats[pattern] += 1

    def finish(self) -> None:
        for pattern, times in self.repeats.items():
            say(f"warning: {times} more like {pattern[:60]!r}…")
