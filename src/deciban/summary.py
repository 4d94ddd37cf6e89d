"""Summary: a fitted model as tables for people, data first and text second."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

from deciban.families import Table

MOST_ROWS, MOST_COLUMNS, MOST_TABLES = 20, 12, 60


@dataclass(frozen=True, repr=False)
class Summary:
    """What was learned: `tables` holds every number, printing shortens long ones."""

    title: str
    tables: tuple[Table, ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [self.title]
        parts += [_text(table) for table in self.tables[:MOST_TABLES]]
        if len(self.tables) > MOST_TABLES:
            parts.append(f"… and {len(self.tables) - MOST_TABLES} more tables, in summary().tables")
        parts += [f"note: {note}" for note in self.notes]
        return "\n\n".join(parts)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def _text(table: Table) -> str:
    header = [*table.header[:MOST_COLUMNS], *(["…"] if len(table.header) > MOST_COLUMNS else [])]
    body = [[_cell(v) for v in row[:MOST_COLUMNS]] for row in table.rows[:MOST_ROWS]]
    for row in body:
        row += ["…"] * (len(header) - len(row))
    widths = [max(len(str(row[i])) for row in [header, *body]) for i in range(len(header))]
    lines = [table.title]
    for row in [header, *body]:
        first, rest = row[0], row[1:]
        cells = [f"{value:>{width}}" for value, width in zip(rest, widths[1:], strict=True)]
        lines.append("  " + "  ".join([f"{first:<{widths[0]}}", *cells]))
    if len(table.rows) > MOST_ROWS:
        lines.append(f"  … and {len(table.rows) - MOST_ROWS} more rows")
    if table.note:
        lines.append(f"  ({table.note})")
    return "\n".join(lines)


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
