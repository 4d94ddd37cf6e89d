"""`deciban explain`: predictions of some rows as lists of decibans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deciban.cli.options import Data, Json, Model, Reading, reads_files

if TYPE_CHECKING:
    from deciban.explain import Explanation
    from deciban.sources.arrow import TableFrame
    from deciban.sources.files import Scan
    from deciban.types import Level


class Lines(StrEnum):
    """What has a line of its own."""

    column = "column"
    pair = "pair"


@reads_files
def explain(
    model: Model,
    data: Data,
    reading: Reading,
    row: Annotated[list[int], typer.Option(help="A row, counted from 0 without the header. Repeatable.", min=0)],
    pos_label: Annotated[
        str | None, typer.Option("--pos-label", help="The class to explain; else the one predicted.")
    ] = None,
    against: Annotated[str | None, typer.Option(help="The class to compare with; else the runner-up.")] = None,
    by: Annotated[Lines, typer.Option(help="Pairs of columns shared out to both, or as lines of their own.")] = (
        Lines.column
    ),
    json: Json = False,
) -> None:
    """Explain predictions: how many decibans each column, with its value, adds for one class against another.

    Ten decibans are odds of ten to one. The parts sum to the log-odds of the prediction.

    \b
    Examples:
      deciban explain people.deciban new.csv --row 0
      deciban explain people.deciban new.csv --row 0 --pos-label Yes --json
    """
    from deciban.cli.data import class_named, columns_for, require_able, require_rows
    from deciban.cli.objects import print_object
    from deciban.models import load

    found = load(model)
    require_able(found, "explain", "be explained in decibans")
    require_rows(found, "to explain")
    target, other = class_named(found, pos_label, "--pos-label"), class_named(found, against, "--against")
    numbers = list(dict.fromkeys(row))
    stream = columns_for(found, reading.scan(data))
    frame = rows_numbered(stream, numbers)
    explanation = _explained(found, stream, frame, numbers, by.value)
    if json:
        print_object([_object(explanation, i, n, target, other) for i, n in enumerate(numbers)])
        return
    texts = (explanation.text(i, target, other).partition(":")[2] for i in range(len(numbers)))
    typer.echo("\n\n".join(f"row {n}:{text}" for n, text in zip(numbers, texts, strict=True)))


def rows_numbered(stream: Scan, numbers: Sequence[int]) -> TableFrame:
    """Some rows, in the order of their numbers as given; nothing is read beyond the last."""
    import pyarrow as pa

    from deciban.errors import DecibanError
    from deciban.sources.stream import settled

    def find() -> tuple[dict[int, Any], int]:
        found: dict[int, Any] = {}
        first = 0
        for frame in stream.frames():
            stop = first + frame.rows
            found |= {n: frame.table.slice(n - first, 1) for n in numbers if first <= n < stop}
            first = stop
            if len(found) == len(numbers):
                break
        return found, first

    found, rows = settled(find)
    for n in numbers:
        if n not in found:
            raise DecibanError(f"--row {n}: there are {rows} rows, counted from 0")
    return replace(stream.empty, table=pa.concat_tables([found[n] for n in numbers]))


def _explained(model: Any, stream: Scan, frame: TableFrame, numbers: Sequence[int], by: str) -> Explanation:
    from deciban.errors import RowError

    with stream.located():
        try:
            explanation: Explanation = model.explain(frame, by=by)
        except RowError as error:
            raise RowError(error.where, numbers[error.row], error.problem) from None
    return explanation


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
