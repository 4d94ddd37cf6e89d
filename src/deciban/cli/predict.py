"""`deciban predict`: predictions for the rows of files, batch by batch."""

from __future__ import annotations

from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from deciban.cli.options import Data, Model, Quiet, Reading, choice, columns_named, reads_files
from deciban.cli.progress import watched

WRITTEN = ("csv", "jsonl", "parquet")
REASONS = "3"  # what --explain means without a number


class Predict(TyperCommand):
    """Lets --explain stand without a number, which typer's options cannot."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        counted = []
        for word, following in zip(args, [*args[1:], ""], strict=True):
            counted += [word, REASONS] if word == "--explain" and not following.isdecimal() else [word]
        return super().parse_args(ctx, counted)


@reads_files
def predict(
    model: Model,
    data: Data,
    reading: Reading,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="out.csv, out.jsonl or out.parquet; - is standard output.")
    ] = Path("-"),
    format: Annotated[
        str | None, choice("--format", among=WRITTEN, help="The format of the output, if not by its name; csv for -.")
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option(metavar="COL,COL", help="Columns of DATA to copy. Repeatable.")
    ] = None,
    keep_all: Annotated[bool, typer.Option("--keep-all", help="Copy all columns of DATA.")] = False,
    no_probabilities: Annotated[
        bool, typer.Option("--no-probabilities", help="Write the prediction without the classes' probabilities.")
    ] = False,
    explain: Annotated[
        int | None, typer.Option(metavar="[N]", help="Add the N strongest reasons, 3 if not given.", min=1)
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Predict the class of every row: columns `prediction` and, for each class, `proba_CLASS`.

    Rows are read and written batch by batch.

    A file takes its place when all is written; one that was there is replaced.

    \b
    Examples:
      deciban predict people.deciban new.csv -o out.csv --keep name --explain
      deciban predict people.deciban new.csv --format jsonl
    """
    from deciban.cli.data import require_writable
    from deciban.cli.predicting import Predicting
    from deciban.cli.writing import format_of, is_open_ended, output_of, require_holds, written
    from deciban.models import load
    from deciban.sources.ahead import behind

    output = output_of(output)
    chosen = format_of(output, format)
    found = load(model)
    scan = reading.scan(data)
    if not is_open_ended(output):
        require_writable(output, [str(model), *(part.path for part in scan.parts)])
    with watched(scan, quiet=quiet):
        kept = list(scan.names) if keep_all else columns_named(scan.names, keep, "--keep")
        work = Predicting.of(
            found, scan, kept, probabilities=not no_probabilities, reasons=explain or 0, flat=chosen == "csv"
        )
        require_holds(chosen, work.kept)
        tables = work.tables()
        first = list(islice(tables, 1))  # before a header: what is wrong is mostly wrong from the first row on
        with written(output, chosen, work.schema) as write:
            behind(write, chain(first, tables))
