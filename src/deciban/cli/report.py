"""`deciban report`: a model and how it does on rows, as one page."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deciban.cli.options import Data, Label, Model, Quiet, Reading, TrimLabel, Weight, reads_files, require_column
from deciban.cli.progress import watched

if TYPE_CHECKING:
    from deciban.sources.files import Scan

PAGE = Path("report.html")


@reads_files
def report(
    model: Model,
    data: Data,
    reading: Reading,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The page, such as report.html (the default, without --json).")
    ] = None,
    label: Label = None,
    weight: Weight = None,
    trim_label: TrimLabel = None,
    learned: Annotated[
        bool, typer.Option("--learned", help="DATA are the rows that the model learned: judge each by all the others.")
    ] = False,
    rows: Annotated[int, typer.Option(help="How many rows the page keeps, to pick one from; 0 for none.", min=0)] = 200,
    random_state: Annotated[int, typer.Option(help="Chooses the rows that are kept and explained.", min=0)] = 0,
    offset: Annotated[str | None, typer.Option(metavar="COL", help="A column that is added to the predictor.")] = None,
    exposure: Annotated[
        str | None, typer.Option(metavar="COL", help="A column that a poisson model counts rates by.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print every figure of the page as an object.")] = False,
    quiet: Quiet = False,
) -> None:
    """Write a report: what the model is, how good it is, what each column says, and any prediction, to try out.

    One file, which needs no network. It holds some rows of DATA, so that one can be picked: see --rows.

    \b
    Examples:
      deciban report people.deciban later.csv -o report.html
      deciban report people.deciban people.csv --learned
    """
    from deciban.cli.data import label_for, prepared, require_known, require_rows, require_writable
    from deciban.models import load
    from deciban.report import report_of
    from deciban.report.page import require_libraries

    found = load(model)
    require_rows(found, "to report")
    scan = reading.scan(data)
    page = output or (None if json else PAGE)
    if page is not None:
        _require_page(page)
        if page.suffix != ".json":
            require_libraries()
        require_writable(page, [str(model), *(part.path for part in scan.parts)])
    with watched(scan, quiet=quiet), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "no label is among")  # here that is an error
        column = label_for(found, scan, label)
        shift = {"offset": offset, "exposure": exposure}
        stream = _for_model(found, prepared(scan, column, trim_label, weight), column, weight, shift)
        made = report_of(
            found, stream, column, sample_weight=weight, learned=learned, rows=rows, random_state=random_state, **shift
        )
    quality = made.figures["quality"]
    if "confusion" in quality:
        met = [name for name, rows in zip(quality["classes"], quality["confusion"], strict=True) if any(rows)]
        require_known(met, made.figures["classes"])
    if page is not None:
        made.save(page)
    typer.echo(made.json() if json else f"{made}\n\nwritten: {page}")


def _require_page(path: Path) -> None:
    from deciban.errors import DecibanError

    if path.suffix.lower() not in (".html", ".htm", ".json"):
        raise DecibanError(f"{path}: end its name with .html, for a page, or with .json, for its figures")


def _for_model(model: Any, scan: Scan, label: str, weight: str | None, shift: dict[str, str | None]) -> Scan:
    """The columns that it reads, and the label as it was learned: classes, or numbers, with what shifts them."""
    from deciban.cli.data import columns_for, for_model

    if hasattr(model, "classes_"):
        return for_model(model, scan, label, weight)
    named = {option: name for option, name in shift.items() if name is not None}
    for option, name in named.items():
        require_column(scan.names, name, f"--{option}")
    stream = columns_for(model, scan, [label, *named.values(), *([] if weight is None else [weight])])
    return stream.typed(dict.fromkeys([label, *named.values()], "number"))
