"""Columns of text that hold dates or numbers: recognised in the first rows, and read in the same way in later ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from deciban.batch import Frame, Notation
from deciban.errors import warn
from deciban.late import late
from deciban.schema import STYLES, Schema, go_together
from deciban.sources.arrow import TableFrame
from deciban.sources.cells import cells_of_type
from deciban.sources.notation import Profile, doubts, parsed, profile_of

pa = late("pyarrow")
pc = late("pyarrow.compute")

HEAD = 1000  # cells that most columns of words are known by


def inferred(frame: Frame, source: Any) -> Frame:
    """The rows of a table to learn from, text that is written as dates or numbers read as such.

    A dictionary that pandas or polars made is a column of categories, because the user said so.
    """
    if not isinstance(frame, TableFrame) or frame.notations or not frame.rows:
        return frame
    dictionaries = isinstance(source, (pa.Table, pa.RecordBatch))
    profiles = {}
    for j, kind in enumerate(frame.kinds):
        given = pa.types.is_dictionary(frame.table.column(j).type) and not dictionaries
        if kind == "category" and _is_text(frame, j) and not given:
            profiles[j] = _profile(frame, j)
    found = {j: notation for j, p in profiles.items() if (notation := p.notation()) is not None}
    for message in doubts({frame.names[j]: profile for j, profile in profiles.items()}):
        warn(message)
    return converted(frame, found)


def _profile(frame: TableFrame, column: int) -> Profile:
    """Of all cells, or of the first alone, where these settle that the column is one of words."""
    head = profile_of(frame.slice(0, HEAD).array(column))
    settled = head.cells and not head.may_be() and head.doubt() is None
    return head if settled or frame.rows <= HEAD else profile_of(frame.array(column))


def as_learned(frame: Frame, schema: Schema) -> Frame:
    """Rows whose text is read as it was in the rows that a model has learned."""
    if not isinstance(frame, TableFrame):
        return frame
    frame = _emptied(frame, schema)
    if not (schema.notations or {"date", "time"} & {*schema.kinds}):
        return frame
    wanted = {place: schema.notation(j) for j, place in enumerate(schema.own_places(frame))}
    text = {j for j, kind in enumerate(frame.kinds) if kind == "category" and _is_text(frame, j)}
    return converted(frame, {j: notation for j, notation in wanted.items() if notation is not None and j in text})


def _emptied(frame: TableFrame, schema: Schema) -> TableFrame:
    """Columns of another kind than was learned, all of whose cells are missing, are empty: NaN is no number then."""
    table, kinds = frame.table, list(frame.kinds)
    for learned, j in zip(schema.kinds, schema.own_places(frame), strict=True):
        if not go_together(learned, kinds[j]) and _is_empty(frame.array(j)):
            table = table.set_column(j, table.column_names[j], pa.nulls(frame.rows))
            kinds[j] = "empty"
    return frame if table is frame.table else replace(frame, table=table, kinds=tuple(kinds))


def _is_empty(column: Any) -> bool:
    nan = pa.types.is_floating(column.type)
    return len(column) == (pc.is_null(column, nan_is_null=True).sum().as_py() or 0 if nan else column.null_count)


def _is_text(frame: TableFrame, column: int) -> bool:
    return cells_of_type(frame.table.column(column).type) == "text"


def converted(frame: TableFrame, notations: Mapping[int, Notation]) -> TableFrame:
    """The rows, some columns of text read as they are written."""
    if not notations:
        return frame
    table, kinds = frame.table, list(frame.kinds)
    all_notations = list(frame.notations or (None,) * len(kinds))
    for j, notation in notations.items():
        values = read_as(frame.array(j), notation, f"column {frame.names[j]!r}")
        table = table.set_column(j, table.column_names[j], values)
        kinds[j], all_notations[j] = notation.kind, notation
    return replace(frame, table=table, kinds=tuple(kinds), notations=tuple(all_notations))


def read_as(column: Any, notation: Notation, title: str) -> Any:
    """A column of text as what is written there: a cell that is written otherwise is missing."""
    values = parsed(column if pa.types.is_dictionary(column.type) else column.dictionary_encode(), notation.style)
    if len(column) and values.null_count == len(values) and column.null_count < len(column):
        strange = [text for text in column.unique().drop_null().to_pylist() if text not in notation.missing]
        if strange:
            warn(f"{title} is read as {STYLES[notation.style]}, and no cell here is one: {strange[0]!r} is missing")
    return values
