"""Summary: a fitted model as tables."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

from deciban.table import Table

MOST_TABLES = 60  # printed at most; the summary has all


@dataclass(frozen=True, repr=False)
class Summary:
    """What a model has learned, or an evaluation found, as tables.

    `tables` have all numbers; printing shortens long tables, and a notebook shows them as HTML.

    Attributes
    ----------
    title : str
        The model and its sizes.
    tables : tuple of Table
        All tables; `tables[i].to_frame()` gives one to pandas, polars and altair.
    notes : tuple of str
        Remarks, such as columns that carry no evidence.

    See Also
    --------
    deciban.NaiveBayes.summary : Every model has one, except Halfspace.
    deciban.Evaluation.summary : That of an evaluation.

    Examples
    --------
    >>> import deciban as db
    >>> summary = db.NaiveBayes().fit([[1.0], [2.0], [4.0], [5.0]], ["no", "no", "yes", "yes"]).summary()
    >>> summary.title, [table.title for table in summary.tables]
    ('NaiveBayes: 4 rows, 2 classes, 1 column, 5 parameters', ['class prior', 'features', '0 (Gaussian)'])
    """

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
        title = re.sub(r"\b\d{4,}(?= \w+s\b)", lambda count: f"{int(count[0]):,}", self.title)
        parts = [f"<p><b>{html.escape(title)}</b></p>"]
        parts += [table._repr_html_() for table in self.tables[:MOST_TABLES]]
        return "\n".join([*parts, *(f"<p>{html.escape(text)}</p>" for text in (*self._more_tables(), *self.notes))])


def counted_word(n: float, word: str) -> str:
    """A number with its noun, in the plural unless it is 1.

    >>> counted_word(1, "class"), counted_word(3.0, "class")
    ('1 class', '3 classes')
    """
    plural = "es" if word.endswith("s") else "s"
    return f"{n:.15g} {word}{'' if n == 1 else plural}"
