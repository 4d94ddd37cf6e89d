"""The data sets of charts: named rows, with numbers and names that Vega can draw."""

from __future__ import annotations

from collections.abc import Mapping
from math import copysign, inf, isfinite
from typing import Any

from deciban.plots.libraries import alt

Rows = list[dict[str, Any]]  # of a data set
Figure = Mapping[str, Any]  # what a chart is made from

MARGIN = 1.1  # an infinite number is drawn this many times as far out as the largest finite one
INFINITE = {"inf": inf, "-inf": -inf}  # as figures spell them
# properties of every JavaScript object: Vega groups rows by the keys of objects, which already have these
RESERVED = {"__proto__", "constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString"}
RESERVED |= {"toString", "valueOf", "__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__"}

ZERO: Rows = [{}]
DIAGONAL: Rows = [{"x": 0, "y": 0}, {"x": 1, "y": 1}]


def data(name: str) -> Any:
    """A data set by name; `with_data` fills in its rows."""
    return alt.NamedData(name=name)


def with_data(chart: Any, **datasets: Rows) -> Any:
    """The chart with the rows of its data sets; saved as HTML it needs no network."""
    from deciban.plots.offline import offline  # needs altair

    chart.datasets = {
        name: [{key: unreserved(x) for key, x in row.items()} for row in rows] for name, rows in datasets.items()
    }
    return offline(chart)


def unreserved(value: Any) -> Any:
    """The value; a RESERVED one with a zero-width space appended.

    >>> unreserved("constructor") == "constructor", unreserved("age") == "age"
    (False, True)
    """
    return f"{value}\u200b" if isinstance(value, str) and value in RESERVED else value


def rows_of(table: Figure) -> Rows:
    """The rows of a table as dicts.

    >>> rows_of({"fields": ["term", "count"], "rows": [["free", 3], ["call", 2]]})
    [{'term': 'free', 'count': 3}, {'term': 'call', 'count': 2}]
    """
    return [dict(zip(table["fields"], row, strict=True)) for row in table["rows"]]


def drawable(rows: Rows, *fields: str) -> Rows:
    """Rows with infinite numbers replaced by numbers a little beyond all finite ones, so that they can be drawn.

    A row is marked `infinite` if the first of the fields is.

    >>> drawable([{"x": 10.0}, {"x": "-inf"}], "x")
    [{'x': 10.0, 'infinite': False}, {'x': -11.0, 'infinite': True}]
    """
    numbers = [row[field] for row in rows for field in fields if isinstance(row.get(field), int | float)]
    far = MARGIN * max((abs(x) for x in numbers if isfinite(x)), default=1.0)

    def finite_number(value: Any) -> Any:
        number = INFINITE.get(value) if isinstance(value, str) else value
        return value if number is None or isfinite(number) else copysign(far, number)

    def marked(row: dict[str, Any]) -> dict[str, Any]:
        finite = row | {field: finite_number(row[field]) for field in fields if field in row}
        return finite | {"infinite": finite.get(fields[0]) != row.get(fields[0])}

    return [marked(row) for row in rows]
