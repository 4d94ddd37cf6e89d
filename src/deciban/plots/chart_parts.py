"""Parts of charts: named data sets, colours, axes and titles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from math import copysign, inf, isfinite
from textwrap import wrap
from typing import Any

from deciban.errors import DecibanError

Rows = list[dict[str, Any]]  # of a data set
Figure = Mapping[str, Any]  # what a chart is made from

SIDE = 360  # of a square chart, in pixels
STEP = 20  # height of a bar, in pixels
# Okabe and Ito (2008): distinguishable for colour-blind readers
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
FOR, AGAINST = "#0072B2", "#D55E00"  # evidence; the direction of bars says the same without colour
GREY, MAGENTA, INK = "#888888", "#B5006E", "#222222"
# axis labels: 2024 stays 2024, 250,000 is 250k, 10⁹ is 1G, and 10²⁰ is 1e+20
LARGE = "format(datum.value, abs(datum.value) < 1e15 ? '.12~s' : '~e')"
SHORT = f"abs(datum.value) < 1e4 ? replace(datum.label, ',', '') : abs(datum.value) < 1e5 ? datum.label : {LARGE}"
MARGIN = 1.1  # an infinite number is drawn this many times as far out as the largest finite one
INFINITE = {"inf": inf, "-inf": -inf}  # as figures spell them
# properties of every JavaScript object: Vega groups rows by the keys of objects, where these are already there
RESERVED = {"__proto__", "constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString"}
RESERVED |= {"toString", "valueOf", "__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__"}


def altair() -> Any:
    """The library, imported with the first chart."""
    try:
        return import_module("altair")
    except ModuleNotFoundError:
        raise DecibanError("plots need altair: pip install 'deciban[plot]'") from None


def rows_of(table: Figure) -> Rows:
    """
    >>> rows_of({"fields": ["term", "count"], "rows": [["free", 3], ["call", 2]]})
    [{'term': 'free', 'count': 3}, {'term': 'call', 'count': 2}]
    """
    return [dict(zip(table["fields"], row, strict=True)) for row in table["rows"]]


def drawable(rows: Rows, *fields: str) -> Rows:
    """Rows whose infinite numbers are a little farther out than all finite ones, so that they can be drawn.

    A row is `infinite` where the first of the fields is.

    >>> drawable([{"x": 10.0}, {"x": "-inf"}], "x")
    [{'x': 10.0, 'infinite': False}, {'x': -11.0, 'infinite': True}]
    """
    numbers = [row[field] for row in rows for field in fields if isinstance(row.get(field), int | float)]
    far = MARGIN * max((abs(x) for x in numbers if isfinite(x)), default=1.0)

    def within(value: Any) -> Any:
        known = INFINITE.get(value) if isinstance(value, str) else value
        return value if known is None or isfinite(known) else copysign(far, known)

    def marked(row: dict[str, Any]) -> dict[str, Any]:
        finite = row | {field: within(row[field]) for field in fields if field in row}
        return finite | {"infinite": finite.get(fields[0]) != row.get(fields[0])}

    return [marked(row) for row in rows]


def data(name: str) -> Any:
    """A data set by name; `with_data` gives its rows."""
    return altair().NamedData(name=name)


def with_data(chart: Any, **datasets: Rows) -> Any:
    """The chart with the rows of its data sets."""
    chart.datasets = {
        name: [{key: unreserved(x) for key, x in row.items()} for row in rows] for name, rows in datasets.items()
    }
    return chart


def unreserved(value: Any) -> Any:
    """The value; a RESERVED one with a zero-width space appended.

    >>> unreserved("constructor") == "constructor", unreserved("age") == "age"
    (False, True)
    """
    return f"{value}\u200b" if isinstance(value, str) and value in RESERVED else value


def axis(**options: Any) -> Any:
    """A numeric axis with short labels for large numbers."""
    return altair().Axis(labelExpr=SHORT, **options)


def side(field: str, title: str, domain: Iterable[float]) -> dict[str, Any]:
    """The arguments of alt.X or alt.Y."""
    alt = altair()
    scale = alt.Scale(domain=list(map(float, domain)), nice=False, zero=False)
    plain = axis(grid=False, tickCount=6)
    return {"shorthand": field, "type": "quantitative", "title": unreserved(title), "scale": scale, "axis": plain}


def colour(field: str, names: Sequence[str], title: str, symbol: str, *, shown: bool = True) -> Any:
    """A colour for each name."""
    alt = altair()
    colours = {"range": list(COLOURS[: len(names)])} if len(names) <= len(COLOURS) else {"scheme": "turbo"}
    legend = alt.Legend(title=title, labelLimit=300, symbolType=symbol) if shown else None
    return alt.Color(field, type="nominal", scale=alt.Scale(domain=[*map(unreserved, names)], **colours), legend=legend)


def diagonal() -> Any:
    """From (0, 0) to (1, 1): the data set `diagonal`."""
    line = altair().Chart(data("diagonal")).mark_line(color=GREY, strokeDash=[4, 4], strokeWidth=1)
    return line.encode(x="x:Q", y="y:Q")


DIAGONAL: Rows = [{"x": 0, "y": 0}, {"x": 1, "y": 1}]


def title(text: str, notes: Iterable[str] = ()) -> Any:
    """Above a chart, from its left edge; notes are wrapped."""
    lines = [line for note in notes for line in wrap(note, 80)]
    return altair().TitleParams(unreserved(text), subtitle=lines, anchor="start", fontSize=14, subtitleColor=GREY)


def names_axis(field: str, title: str | None = None, *, shown: bool = True, limit: int = 180) -> Any:
    """Names down the left side, in the order of the rows."""
    alt = altair()
    labels = alt.Axis(labelLimit=limit, ticks=False, domain=False, labelPadding=6) if shown else None
    return alt.Y(field, type="nominal", sort=None, title=title, axis=labels, scale=alt.Scale(paddingInner=0.25))


def signed(field: str) -> Any:
    """Blue for positive evidence, vermilion for negative."""
    alt = altair()
    return alt.condition(f"datum.{field} >= 0", alt.value(FOR), alt.value(AGAINST))


def signed_text(field: str) -> str:
    """An expression: a number with its sign, as text."""
    return f"datum.infinite ? (datum.{field} > 0 ? '+∞' : '−∞') : format(datum.{field}, '+.4~g')"


def infinite(bars: Any, field: str) -> list[Any]:
    """±∞ inside the ends of infinite bars."""
    shown = bars.transform_filter("datum.infinite").encode(x=f"{field}:Q")
    right = shown.transform_filter(f"datum.{field} > 0").mark_text(text="+∞", align="right", dx=-4, color="white")
    left = shown.transform_filter(f"datum.{field} < 0").mark_text(text="−∞", align="left", dx=4, color="white")
    return [right, left]


def zero(channel: str = "x") -> Any:
    """A line at 0."""
    alt = altair()
    return alt.Chart(data("zero")).mark_rule(color=INK, strokeWidth=1).encode(**{channel: alt.datum(0)})


ZERO: Rows = [{}]
