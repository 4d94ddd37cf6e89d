"""Summary: a fitted model as tables."""

from __future__ import annotations

import html
from dataclasses import dataclass

from deciban.table import Table

MOST_TABLES = 60  # printed at most; the summary has all


@dataclass(frozen=True, repr=False)
class Summary:
    """What a model has learned. `tables` have all numbers; printing shortens long tables."""

    title: str
    tables: tuple[Table, ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [self.title, *map(str, self.tables[:MOST_TABLES]), *self._more_tables()]
        return "\n\n".join([*parts, *(f"note: {note}" for note in self.notes)])

    def _more_tables(self) -> list[str]:
        more = len(self.tables) - MOST_TABLES
        return [f"… and {more} more tables, in summary().tables"] if more > 0 else []

    __repr__ = __str__

    def _repr_html_(self) -> str:
        parts = [f"<p><b>{html.escape(self.title)}</b></p>"]
        parts += [table._repr_html_() for table in self.tables[:MOST_TABLES]]
        return "\n".join([*parts, *(f"<p>{html.escape(text)}</p>" for text in (*self._more_tables(), *self.notes))])


def counted_word(n: float, word: str) -> str:
    """A number with its noun, in the plural unless it is 1.

    >>> counted_word(1, "class"), counted_word(3.0, "class")
    ('1 class', '3 classes')
    """
    plural = "es" if word.endswith("s") else "s"
    return f"{n:.15g} {word}{'' if n == 1 else plural}"
