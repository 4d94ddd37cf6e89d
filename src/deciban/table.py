"""Table: rows under a title, as text, as HTML and as an Arrow table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import floor, isfinite, log10
from typing import TYPE_CHECKING, Any

import numpy as np

from deciban.errors import require
from deciban.lazy import lazy

if TYPE_CHECKING:
    import pyarrow as pa

html = lazy("html")

MOST_ROWS, MOST_COLUMNS = 20, 12  # printed at most; the table has all
ESTIMATES = {"estimate", "std. error", "mean", "sd", "rate", "2.5 %", "97.5 %"}  # never shares or probabilities


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
        header, columns = self._html_columns()
        sides = ["right" if numeric else "left" for _, numeric in columns]
        body = zip(*(texts for texts, _ in columns), strict=True)
        lines = [html_caption(self.title), f"<thead>{_html_row(header, 'th', sides)}</thead>"]
        lines += ['<tbody style="font-variant-numeric:tabular-nums">', *(_html_row(row, "td", sides) for row in body)]
        remarks = [f"<p>{html.escape(remark)}</p>" for remark in self._remarks()]
        return "\n".join(["<table>", *lines, "</tbody>", "</table>", *remarks])

    def _html_columns(self) -> tuple[list[str], list[tuple[list[str], bool]]]:
        """The header, and the cells of each shown column with whether they are numbers."""
        rows = self.rows[:MOST_ROWS]
        whole = all(_is_whole(value) for row in rows for value in row[1:] if _is_number(value))
        header = list(map(str, self.header[:MOST_COLUMNS]))
        columns = [html_cells(name, [row[j] for row in rows], counts=whole) for j, name in enumerate(header)]
        if header and not any(isinstance(row[0], float) for row in rows):  # labels: a class 2024 is no count
            columns[0] = ([_text(row[0]) for row in rows], False)
        cut = [(["…"] * len(rows), False)] if len(self.header) > MOST_COLUMNS else []
        return [*header, *["…" for _ in cut]], [*columns, *cut]

    def to_frame(self) -> pa.Table:
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
    """A caption on one line, which may be wider than the table; in the colour of the notebook's text."""
    style = "text-align:left;white-space:nowrap;color:inherit;font-weight:bold;padding:0.8em 0 0.2em"
    return f'<caption style="{style}">{html.escape(text)}</caption>'


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


def _html_row(cells: Sequence[str], tag: str, sides: Sequence[str]) -> str:
    written = (
        f'<{tag} style="text-align:{side}">{html.escape(cell)}</{tag}>' for cell, side in zip(cells, sides, strict=True)
    )
    return f"<tr>{''.join(written)}</tr>"


def html_cells(name: str, values: Sequence[Any], *, counts: bool = False) -> tuple[list[str], bool]:
    """A column of a table as text, and whether it holds numbers, which have the same number of decimals.

    Decibans have two, shares and probabilities three; `counts` says that all numbers of the table are whole.

    >>> html_cells("rows", [32561.0, 8.0])
    (['32,561', '8'], True)
    >>> html_cells("probability", [0.5, 1.0, 0.00001])
    (['0.500', '1.000', '<0.001'], True)
    >>> html_cells("mean |decibans|", [3.00512, 0.0])
    (['3.01', '0.00'], True)
    >>> html_cells("mean", [1234.5678, -0.02])
    (['1,234.6', '-0.02'], True)
    """
    numbers = [value for value in values if _is_number(value)]
    counts = counts or not any(isinstance(value, float) for value in numbers)
    if not numbers or name == "value":  # a column of values of many units
        return [_mixed(value) for value in values], bool(numbers)
    write = _writer(name, [float(x) for x in numbers], counts)
    return [write(float(value)) if _is_number(value) else _text(value) for value in values], True


def _writer(name: str, numbers: Sequence[float], counts: bool) -> Callable[[float], str]:
    """How the numbers of a column are written."""
    largest = max(map(abs, numbers))
    if "decibans" in name or name == "for the true class":
        return lambda x: _fixed(x, 2, "0.00")
    if all(map(_is_whole, numbers)) and (counts or largest > 1.0):
        return lambda x: f"{x:,.0f}" if abs(x) < 1e15 else f"{x:.4g}"
    if min(numbers) >= 0.0 and largest <= 1.0 and name not in ESTIMATES:
        return lambda x: _fixed(x, 3, "<0.001")
    decimals = _decimals(largest, min(abs(x) for x in numbers if x))
    return lambda x: _fixed(x, decimals)


def _decimals(largest: float, smallest: float) -> int:
    """Three decimals: fewer of large numbers, more where the smallest of a column would have less than two digits.

    >>> _decimals(38.9, 0.33), _decimals(12345.6, 2.0), _decimals(0.74, 0.0021)
    (3, 0, 4)
    """
    first, last = floor(log10(largest)), floor(log10(smallest))
    return max(0, 4 - first) if first > 1 else min(6, max(3, 1 - last))


def _fixed(x: float, decimals: int, small: str | None = None) -> str:
    """A number with these decimals; `small`, by default two digits, if it would be written as 0."""
    if x and round(abs(x), decimals) == 0.0:
        return f"{x:.2g}" if small is None else small
    return f"{x:,.{decimals}f}" if abs(x) < 1e15 else f"{x:.4g}"


def _mixed(value: Any) -> str:
    """A value by itself: a count, or a number with three decimals."""
    if not _is_number(value):
        return _text(value)
    count = isinstance(value, int) or (_is_whole(value) and abs(value) > 1.0)
    return f"{value:,.0f}" if count else _fixed(float(value), 3)


def _text(value: Any) -> str:
    missing = value is None or (isinstance(value, float) and value != value)
    return "–" if missing else _cell(value)


def _is_number(value: Any) -> bool:
    """Whether it is a finite number."""
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and isfinite(value)


def _is_whole(value: float) -> bool:
    return float(value).is_integer()


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
