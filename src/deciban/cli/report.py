"""`deciban report`: a model and its quality on rows, as one HTML page."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import deciban
from deciban.cli.options import Data, Model, OptionGroup, Quiet, Reading, Target, option, require_column, with_groups
from deciban.cli.progress import watched
from deciban.lazy import lazy

if TYPE_CHECKING:
    from deciban.data.files.scan import Scan

errors, model_rows = lazy("deciban.errors"), lazy("deciban.cli.model_rows")

PAGE = Path("report.html")


class ReportOptions(OptionGroup):
    """What the report shows."""

    held_out: bool = option(
        "--held-out/--training-rows",
        default=True,
        help="Whether DATA are held-out rows, or the training rows, which are scored by leave-one-out.",
    )
    rows: int = option(default=200, help="How many rows of DATA the page includes; 0 for none.", min=0)
    random_state: int = option(default=0, help="The seed for sampling the rows to show and explain.", min=0)
    offset: str | None = option(metavar="COL", help="A column to add to the linear predictor.")
    exposure: str | None = option(metavar="COL", help="A column of exposures, for a poisson model.")


@with_groups
def report(
    model: Model,
    data: Data,
    target: Target,
    reading: Reading,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The page to write (default report.html, without --json).")
    ] = None,
    *,
    options: ReportOptions,
    json: Annotated[bool, typer.Option("--json", help="Print the figures of the page as JSON.")] = False,
    quiet: Quiet = False,
) -> None:
    """Write an HTML report: the model, its quality, the evidence of each feature, and predictions to try out.

    The page is one file and needs no network. It includes some rows of DATA: see --rows.

    \b
    Examples:
      deciban report people.deciban later.csv -o report.html
      deciban report people.deciban people.csv --training-rows
    """
    from deciban.report import report_of
    from deciban.report.page import require_libraries

    loaded = deciban.load(model)
    model_rows.require_rows(loaded, "report")
    scan = reading.scan(data)
    page = output or (None if json else PAGE)
    if page is not None:
        if page.suffix.lower() not in (".html", ".htm", ".json"):
            raise deciban.DecibanError(f"{page}: the name must end with .html, for a page, or .json, for its figures")
        if page.suffix != ".json":
            require_libraries()
        model_rows.require_writable(page, [str(model), *(fragment.path for fragment in scan.fragments)])
    with watched(scan, quiet=quiet), warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.UnknownLabelsWarning)  # an error, below
        column, weight = model_rows.label_for(loaded, scan, target.label), target.weight
        stream = _for_model(loaded, model_rows.prepared(scan, column, target), column, weight, options)
        result = report_of(loaded, stream, column, sample_weight=weight, **vars(options))
    quality = result.figures["quality"]
    if "confusion" in quality:
        present = [name for name, rows in zip(quality["classes"], quality["confusion"], strict=True) if any(rows)]
        model_rows.require_known(present, result.figures["classes"])
    if page is not None:
        result.save(page)
    typer.echo(result.json() if json else f"{result}\n\nwritten: {page}")


def _for_model(model: Any, scan: Scan, label: str, weight: str | None, options: ReportOptions) -> Scan:
    """The columns that the model reads, and the label typed as in training: a class, or a number with its offsets."""
    if model.task == "classification":
        return model_rows.for_model(model, scan, label, weight)  # type: ignore[no-any-return]
    offsets = {name: getattr(options, name) for name in ("offset", "exposure") if getattr(options, name) is not None}
    for name, column in offsets.items():
        require_column(scan.names, column, f"--{name}")
    stream = model_rows.columns_for(model, scan, [label, *offsets.values(), *([] if weight is None else [weight])])
    return stream.with_types(dict.fromkeys([label, *offsets.values()], "number"))  # type: ignore[no-any-return]
