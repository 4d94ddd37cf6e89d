"""`deciban predict`: predictions for the rows of files, batch by batch."""

from __future__ import annotations

from itertools import chain, islice
from pathlib import Path
from typing import Any

import deciban
from deciban.cli.error_reporting import Command
from deciban.cli.options import Data, Model, OptionGroup, Quiet, Reading, columns_named, option, with_groups
from deciban.cli.progress import watched

FORMATS = ("csv", "jsonl", "parquet")
REASONS = "3"  # for --explain without a number


class Predict(Command):
    """Allows --explain without a number, which typer does not."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        expanded = []
        for word, following in zip(args, [*args[1:], ""], strict=False):
            expanded += [word, REASONS] if word == "--explain" and not following.isdecimal() else [word]
        return super().parse_args(ctx, expanded)


class OutputOptions(OptionGroup):
    """The columns that are written, and where."""

    output: Path = option("--output", "-o", default=Path("-"), help="out.csv, out.jsonl or out.parquet; - for stdout.")
    format: str | None = option("--format", among=FORMATS, help="The output format (default: by file name, csv for -).")
    keep: list[str] | None = option(metavar="COL,COL", help="Columns of DATA to copy to the output. Repeatable.")
    keep_all: bool = option("--keep-all", default=False, help="Copy all columns of DATA to the output.")
    no_probabilities: bool = option(
        "--no-probabilities", default=False, help="Write only the predicted class, no probabilities."
    )
    explain: int | None = option(metavar="[N]", help="Add the N strongest contributions (3 by default).", min=1)


@with_groups
def predict(model: Model, data: Data, reading: Reading, options: OutputOptions, quiet: Quiet = False) -> None:
    """Predict the class of each row, as columns `prediction` and `proba_CLASS` for each class.

    Rows are read and written batch by batch. An existing output file is replaced once all rows are written.

    \b
    Examples:
      deciban predict people.deciban new.csv -o out.csv --keep name --explain
      deciban predict people.deciban new.csv --format jsonl
    """
    from deciban.cli.model_rows import require_writable
    from deciban.cli.prediction_tables import PredictionTables
    from deciban.cli.table_output import format_of, is_open_ended, output_of, require_holds, written
    from deciban.data.prefetch import consume_in_background

    output = output_of(options.output)
    format = format_of(output, options.format)
    loaded = deciban.load(model)
    scan = reading.scan(data)
    if not is_open_ended(output):
        require_writable(output, [str(model), *(fragment.path for fragment in scan.fragments)])
    with watched(scan, quiet=quiet):
        copied = list(scan.names) if options.keep_all else columns_named(scan.names, options.keep, "--keep")
        predictions = PredictionTables.of(
            loaded,
            scan,
            copied,
            probabilities=not options.no_probabilities,
            reasons=options.explain or 0,
            flat=format == "csv",
        )
        require_holds(format, predictions.copied)
        tables = predictions.tables()
        first = list(islice(tables, 1))  # before the header is written: most errors occur in the first row
        with written(output, format, predictions.schema) as write:
            consume_in_background(write, chain(first, tables))
