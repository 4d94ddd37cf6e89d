"""The command `deciban`. Heavy imports wait until a command needs them."""

from __future__ import annotations

import sys

import typer

from deciban.errors import DecibanError

app = typer.Typer(
    add_completion=True,
    no_args_is_help=True,
    help="Classification you can add up: fit, predict and explain in decibans.",
    pretty_exceptions_enable=False,
)


@app.callback()
def _root() -> None:
    """Every command is a subcommand, also while there is only one."""


@app.command()
def demo() -> None:
    """Fit the lectures' mixed table and iris; print the tables, predictions and an explanation in decibans."""
    from deciban.cli.demo import show

    show(print)


def main() -> None:
    """Runs the command line; a user's mistake is a message and exit code 1, not a traceback."""
    try:
        app()
    except DecibanError as error:
        print(f"deciban: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("deciban: interrupted", file=sys.stderr)
        sys.exit(130)
