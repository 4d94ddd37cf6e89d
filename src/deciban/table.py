"""Table: rows under a title, as text, as HTML and as an Arrow table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.errors import require
from deciban.lazy import lazy

html = lazy("html")

MOST_ROWS, MOST_COLUMNS = 20, 12  # printed at most; the table has all


@dataclass(frozen=True, repr=False)
class Table:
    """Rows under a title, as summaries, importances and learning curves are returned.

    Printing shortens it; `to_frame()` gives all of it to pandas, polars and altair. polars, duckdb and pyarrow also
    take a Table as it is, and so does `pandas.DataFrame.from_arrow`.

    Attributes
    ----------
    title : str
        What it is about.
    header : tuple of str
        The names of the columns.
    rows : tuple of tuple
        All rows, as Python values; None is a missing value.
    note : str
        A remark that is printed below; "" for none.

    See Also
    --------
    deciban.display.summary.Summary : Several tables.

    Examples
    --------
    >>> table = Table("size", ("class", "mean"), (("ham", 2.0), ("spam", 8.5)))
    >>> table
    size
      class  mean
      ham       2
      spam    8.5
    >>> table.to_frame().to_pydict()
    {'class': ['ham', 'spam'], 'mean': [2.0, 8.5]}
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    note: str = ""

    def check_fields(self) -> None:
        """Check that every row fits the header; for tables from a file.

        Raises
        ------
        DecibanError
            If one does not.
        """
        require(all(len(row) == len(self.header) for row in self.rows), "a row is not as long as the header")

    def __str__(self) -> str:
        header, body = self._shown()
        widths = [max(len(row[i]) for row in [header, *body]) for i in range(len(header))]
        lines = [self.title]
        for first, *rest in [header, *body]:
            cells = [f"{value:>{width}}" for value, width in zip(rest, widths[1:], strict=True)]
            lines.append("  " + "  ".join([f"{first:<{widths[0]}}", *cells]))
        return "\n".join([*lines, *(f"  {remark}" for remark in self._remarks())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        header, body = self._shown()
        lines = [html_caption(self.title), f"<thead>{_html_row(header, 'th')}</thead>"]
        lines += ["<tbody>", *(_html_row(row, "td") for row in body), "</tbody>"]
        remarks = [f"<p>{html.escape(remark)}</p>" for remark in self._remarks()]
        return "\n".join(["<table>", *lines, "</table>", *remarks])

    def to_frame(self) -> Any:
        """The whole table as an Arrow table.

        A column of numbers stays one. A column of numbers and text becomes text; None is a missing value. Columns
        with equal names are numbered, except the first.

        Returns
        -------
        pyarrow.Table
            `.to_pandas()` makes it pandas; polars and altair read it as it is.

        Examples
        --------
        >>> Table("", ("bin", "bin"), ((1, 0.5), ("other", 2))).to_frame().to_pydict()
        {'bin': ['1', 'other'], 'bin 2': [0.5, 2.0]}
        """
        import pyarrow as pa  # takes a while, and a table that is only printed does not need it

        columns = [_arrow([row[j] for row in self.rows]) for j in range(len(self.header))]
        return pa.table(columns, names=numbered(self.header))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The Arrow PyCapsule interface."""
        return self.to_frame().__arrow_c_stream__(requested_schema)

    def _shown(self) -> tuple[list[str], list[list[str]]]:
        cut = ["…"] if len(self.header) > MOST_COLUMNS else []
        body = [[*map(_cell, row[:MOST_COLUMNS]), *cut] for row in self.rows[:MOST_ROWS]]
        return [*map(str, self.header[:MOST_COLUMNS]), *cut], body

    def _remarks(self) -> list[str]:
        more = len(self.rows) - MOST_ROWS
        return [f"… and {more} more rows"] * (more > 0) + [f"({self.note})"] * bool(self.note)


def html_caption(text: str) -> str:
    """A caption on one line, which may be wider than the table."""
    return f'<caption style="text-align:left;white-space:nowrap">{html.escape(text)}</caption>'


def numbered(names: Iterable[object]) -> list[str]:
    """Names as text, all different: equal ones are numbered, except the first.

    >>> numbered(["a", "b", "a", "a 2", "a"])
    ['a', 'b', 'a 3', 'a 2', 'a 4']
    """
    texts = [str(name) for name in names]
    reserved, used, last = set(texts), dict[str, None](), dict[str, int]()
    for name in texts:
        number = last.get(name, 1)
        candidate = name if number == 1 else f"{name} {number}"
        while candidate in used or (number > 1 and candidate in reserved):
            number += 1
            candidate = f"{name} {number}"
        used[candidate], last[name] = None, number
    return list(used)


def _arrow(values: list[Any]) -> Any:
    """A column of the type of its values, or of text if they have several."""
    import pyarrow as pa

    values = [value.item() if isinstance(value, np.generic) else value for value in values]
    kinds = {type(value) for value in values if value is not None}
    with suppress(OverflowError):  # an integer that is too large keeps its digits as text
        if kinds == {int, float}:
            return pa.array([None if value is None else float(value) for value in values])
        if len(kinds) < 2 and kinds <= {bool, int, float, str}:
            return pa.array(values)
    return pa.array([None if value is None else str(value) for value in values], type=pa.string())


def _html_row(cells: Sequence[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
