"""`deciban explain`: the contributions to predictions, in decibans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

import deciban
from deciban.cli.options import Data, Json, Model, Reading, choice, with_groups
from deciban.lazy import lazy

if TYPE_CHECKING:
    from deciban.data.arrow import TableFrame
    from deciban.data.files.scan import Scan
    from deciban.display.explanation import Explanation
    from deciban.types import Level

json_output, model_rows = map(lazy, ("deciban.cli.json_output", "deciban.cli.model_rows"))


@with_groups
def explain(
    model: Model,
    data: Data,
    reading: Reading,
    row: Annotated[list[int], typer.Option(help="The number of a row, from 0, without the header. Repeatable.", min=0)],
    pos_label: Annotated[
        str | None, typer.Option("--pos-label", help="The class to explain (default: the predicted one).")
    ] = None,
    against: Annotated[str | None, typer.Option(help="The class to compare with (default: the runner-up).")] = None,
    by: Annotated[
        str,
        choice("--by", among=["column", "pair"], help="Split the evidence of pairs between columns, or list pairs."),
    ] = "column",
    json: Json = False,
) -> None:
    """Explain predictions: the decibans that each feature adds for one class against another.

    Ten decibans are odds of ten to one. Contributions sum to the log-odds of the prediction.

    \b
    Examples:
      deciban explain people.deciban new.csv --row 0
      deciban explain people.deciban new.csv --row 0 --pos-label Yes --json
    """
    loaded = deciban.load(model)
    model_rows.require_able(loaded, "explain", "be explained in decibans")
    model_rows.require_rows(loaded, "explain")
    target = model_rows.class_named(loaded, pos_label, "--pos-label")
    other = model_rows.class_named(loaded, against, "--against")
    numbers = list(dict.fromkeys(row))
    stream = model_rows.columns_for(loaded, reading.scan(data))
    frame = _rows_numbered(stream, numbers)
    with stream.error_context():
        try:
            explanation: Explanation = loaded.explain(frame, by=by)
        except deciban.RowError as error:
            raise deciban.RowError(error.where, numbers[error.row], error.problem) from None
    if json:
        json_output.print_object([_object(explanation, i, n, target, other) for i, n in enumerate(numbers)])
        return
    texts = (explanation.text(i, target, other).partition(":")[2] for i in range(len(numbers)))
    typer.echo("\n\n".join(f"row {n}:{text}" for n, text in zip(numbers, texts, strict=True)))


def _rows_numbered(stream: Scan, numbers: Sequence[int]) -> TableFrame:
    """Rows by number, in this order; nothing is read beyond the last of them."""
    import pyarrow as pa

    from deciban.data.stream import retry_with_wider_types

    def find() -> tuple[dict[int, Any], int]:
        rows: dict[int, Any] = {}
        first = 0
        for frame in stream.frames():
            stop = first + frame.rows
            rows |= {n: frame.table.slice(n - first, 1) for n in numbers if first <= n < stop}
            first = stop
            if len(rows) == len(numbers):
                break
        return rows, first

    rows, count = retry_with_wider_types(find)
    for n in numbers:
        if n not in rows:
            raise deciban.DecibanError(f"--row {n}: there are only {count} rows, numbered from 0")
    return replace(stream.empty, table=pa.concat_tables([rows[n] for n in numbers]))


def _object(explanation: Explanation, i: int, row: int, pos_label: Level, other: Level) -> dict[str, Any]:
    chosen, against = (explanation.classes[int(side[i])] for side in explanation.sides(pos_label, other))
    names, features, values = explanation.names, explanation.features, explanation.values[i]
    decibans = explanation.decibans(pos_label, other)[i]
    return {
        "row": row,
        "class": chosen,
        "against": against,
        "log_odds": explanation.log_odds(pos_label, other)[i],
        "parts": [
            {"name": names[p], "features": list(features[p]), "value": values[p], "decibans": decibans[p]}
            for p in explanation.listed(i)
        ],
    }
