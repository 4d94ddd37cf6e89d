"""Summary: a fitted model as tables for people, data first and text second."""

from __future__ import annotations

import html
from dataclasses import dataclass

from deciban.table import Table

MOST_TABLES = 60  # that are printed; the summary holds all


@dataclass(frozen=True, repr=False)
class Summary:
    """What was learned: `tables` holds every number, printing shortens long ones."""

    title: str
    tables: tuple[Table, ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [self.title]
        parts += [str(table) for table in self.tables[:MOST_TABLES]]
        if len(self.tables) > MOST_TABLES:
            parts.append(f"… and {len(self.tables) - MOST_TABLES} more tables, in summary().tables")
        parts += [f"note: {note}" for note in self.notes]
        return "\n\n".join(parts)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        parts = [f"<p><b>{html.escape(self.title)}</b></p>"]
        parts += [table._repr_html_() for table in self.tables[:MOST_TABLES]]
        if len(self.tables) > MOST_TABLES:
            parts.append(f"<p>… and {len(self.tables) - MOST_TABLES} more tables, in summary().tables</p>")
        return "\n".join([*parts, *(f"<p>{html.escape(note)}</p>" for note in self.notes)])


def counted_word(n: float, word: str) -> str:
    """A number of things.

    >>> counted_word(1, "class"), counted_word(3.0, "class")
    ('1 class', '3 classes')
    """
    plural = "es" if word.endswith("s") else "s"
    return f"{n:.15g} {word}{'' if n == 1 else plural}"
