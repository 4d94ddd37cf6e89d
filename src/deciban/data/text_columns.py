"""Columns of text that hold dates or numbers: inferred from training rows, and parsed alike in other rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from deciban.data.arrow import TableFrame
from deciban.data.batch import Frame, Notation
from deciban.data.cell_types import CELL_WORDS, cell_type_of
from deciban.data.notation import TextProfile, ambiguity_warnings, parse_text, profile_text
from deciban.data.schema import Schema, compatible_kinds
from deciban.errors import warn
from deciban.lazy import lazy

pa = lazy("pyarrow")
pc = lazy("pyarrow.compute")

HEAD = 1000  # cells that identify most columns of words


def infer_notations(frame: Frame, source: Any) -> Frame:
    """Training rows, with columns of text that hold dates or numbers parsed.

    A categorical column of pandas or polars stays categorical.
    """
    if not isinstance(frame, TableFrame) or frame.notations or not frame.rows:
        return frame
    dictionaries = isinstance(source, (pa.Table, pa.RecordBatch))
    profiles = {}
    for j, kind in enumerate(frame.kinds):
        categorical = pa.types.is_dictionary(frame.table.column(j).type) and not dictionaries
        if kind == "category" and _is_text(frame, j) and not categorical:
            profiles[j] = _profile(frame, j)
    notations = {j: notation for j, p in profiles.items() if (notation := p.notation()) is not None}
    for message in ambiguity_warnings({frame.names[j]: profile for j, profile in profiles.items()}):
        warn(message)
    return _parsed(frame, notations)


def _profile(frame: TableFrame, column: int) -> TextProfile:
    """The profile of all cells, or of the first ones if these show that the column holds words."""
    head = profile_text(frame.slice(0, HEAD).array(column))
    is_certain = head.cells and not head.may_have_notation() and head.exceptions() is None
    return head if is_certain or frame.rows <= HEAD else profile_text(frame.array(column))


def apply_notations(frame: Frame, schema: Schema) -> Frame:
    """Rows with columns of text parsed as in the training rows."""
    if not isinstance(frame, TableFrame):
        return frame
    frame = _with_empty_columns(frame, schema)
    if not (schema.notations or {"date", "time"} & {*schema.kinds}):
        return frame
    notations = {position: schema.notation(j) for j, position in enumerate(schema.positions(frame))}
    text = {j for j, kind in enumerate(frame.kinds) if kind == "category" and _is_text(frame, j)}
    return _parsed(frame, {j: notation for j, notation in notations.items() if notation is not None and j in text})


def _with_empty_columns(frame: TableFrame, schema: Schema) -> TableFrame:
    """Columns of another kind than in training become empty if all of their cells are missing, such as NaN."""
    table, kinds = frame.table, list(frame.kinds)
    for kind, j in zip(schema.kinds, schema.positions(frame), strict=True):
        if not compatible_kinds(kind, kinds[j]) and _is_empty(frame.array(j)):
            table = table.set_column(j, table.column_names[j], pa.nulls(frame.rows))
            kinds[j] = "empty"
    return frame if table is frame.table else replace(frame, table=table, kinds=tuple(kinds))


def _is_empty(column: Any) -> bool:
    nan = pa.types.is_floating(column.type)
    return bool(pc.all(pc.is_null(column, nan_is_null=nan), min_count=0).as_py())


def _is_text(frame: TableFrame, column: int) -> bool:
    return cell_type_of(frame.table.column(column).type) == "text"


def _parsed(frame: TableFrame, notations: Mapping[int, Notation]) -> TableFrame:
    """The rows with some columns of text parsed."""
    if not notations:
        return frame
    table, kinds = frame.table, list(frame.kinds)
    all_notations = list(frame.notations or (None,) * len(kinds))
    for j, notation in notations.items():
        values = parse_notation(frame.array(j), notation, f"column {frame.names[j]!r}")
        table = table.set_column(j, table.column_names[j], values)
        kinds[j], all_notations[j] = notation.kind, notation
    return replace(frame, table=table, kinds=tuple(kinds), notations=tuple(all_notations))


def parse_notation(column: Any, notation: Notation, title: str) -> Any:
    """A column of text as values; null where a cell is not in the notation."""
    values = parse_text(column if pa.types.is_dictionary(column.type) else column.dictionary_encode(), notation.style)
    if len(column) and values.null_count == len(values) and column.null_count < len(column):
        unparsed = [text for text in column.unique().drop_null().to_pylist() if text not in notation.missing]
        if unparsed:
            words = CELL_WORDS[notation.style]
            warn(f"{title} is read as {words}, and no cell here is one: {unparsed[0]!r} is read as a missing value")
    return values
