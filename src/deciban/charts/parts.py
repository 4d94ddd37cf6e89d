"""What charts are made of: data sets with names, colours, sides and titles."""

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
STEP = 20  # of a row of bars, in pixels
# Okabe and Ito (2008): told apart by colour-blind readers too
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
FOR, AGAINST = "#0072B2", "#D55E00"  # evidence; its direction says the same without colour
GREY, MAGENTA, INK = "#888888", "#B5006E", "#222222"
# a label of an axis: 2024 is no 2,024, 250,000 is 250k, 10⁹ is 1G, and 10²⁰ is 1e+20
LARGE = "format(datum.value, abs(datum.value) < 1e15 ? '.12~s' : '~e')"
SHORT = f"abs(datum.value) < 1e4 ? replace(datum.label, ',', '') : abs(datum.value) < 1e5 ? datum.label : {LARGE}"
MARGIN = 1.1  # an infinite number is drawn this many times as far out as the farthest finite one
INFINITE = {"inf": inf, "-inf": -inf}  # as figures spell them
# what every object of JavaScript has: Vega groups rows in objects, and would find these there
TAKEN = {"__proto__", "constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString"}
TAKEN |= {"toString", "valueOf", "__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__"}


def altair() -> Any:
    """The library, imported when a chart is asked for."""
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
    """Rows whose infinite numbers lie a little farther out than all finite ones, where they can be drawn.

    They are `endless` where the first of the fields is infinite: then it is written as such.

    >>> drawable([{"x": 10.0}, {"x": "-inf"}], "x")
    [{'x': 10.0, 'endless': False}, {'x': -11.0, 'endless': True}]
    """
    numbers = [row[field] for row in rows for field in fields if isinstance(row.get(field), int | float)]
    far = MARGIN * max((abs(x) for x in numbers if isfinite(x)), default=1.0)

    def within(value: Any) -> Any:
        known = INFINITE.get(value) if isinstance(value, str) else value
        return value if known is None or isfinite(known) else copysign(far, known)

    def marked(row: dict[str, Any]) -> dict[str, Any]:
        found = row | {field: within(row[field]) for field in fields if field in row}
        return found | {"endless": found.get(fields[0]) != row.get(fields[0])}

    return [marked(row) for row in rows]


def data(name: str) -> Any:
    """A data set by its name; `whole` gives the rows."""
    return altair().NamedData(name=name)


def whole(chart: Any, **datasets: Rows) -> Any:
    """The chart with the rows of its data sets."""
    chart.datasets = {
        name: [{key: apart(x) for key, x in row.items()} for row in rows] for name, rows in datasets.items()
    }
    return chart


def apart(value: Any) -> Any:
    """A value that is not TAKEN: those that are end in a space of no width.

    >>> apart("constructor") == "constructor", apart("age") == "age"
    (False, True)
    """
    return f"{value}\u200b" if isinstance(value, str) and value in TAKEN else value


def axis(**options: Any) -> Any:
    """An axis of numbers, of which large ones are written shortly."""
    return altair().Axis(labelExpr=SHORT, **options)


def side(field: str, title: str, domain: Iterable[float]) -> dict[str, Any]:
    """What alt.X and alt.Y are made of."""
    alt = altair()
    scale = alt.Scale(domain=list(map(float, domain)), nice=False, zero=False)
    plain = axis(grid=False, tickCount=6)
    return {"shorthand": field, "type": "quantitative", "title": apart(title), "scale": scale, "axis": plain}


def colour(field: str, names: Sequence[str], title: str, symbol: str, *, shown: bool = True) -> Any:
    """A colour for each name."""
    alt = altair()
    colours = {"range": list(COLOURS[: len(names)])} if len(names) <= len(COLOURS) else {"scheme": "turbo"}
    legend = alt.Legend(title=title, labelLimit=300, symbolType=symbol) if shown else None
    return alt.Color(field, type="nominal", scale=alt.Scale(domain=[*map(apart, names)], **colours), legend=legend)


def diagonal() -> Any:
    """From (0, 0) to (1, 1): the data set `diagonal`."""
    line = altair().Chart(data("diagonal")).mark_line(color=GREY, strokeDash=[4, 4], strokeWidth=1)
    return line.encode(x="x:Q", y="y:Q")


DIAGONAL: Rows = [{"x": 0, "y": 0}, {"x": 1, "y": 1}]


def title(text: str, notes: Iterable[str] = ()) -> Any:
    """Above a chart, from its left edge; notes are wrapped."""
    lines = [line for note in notes for line in wrap(note, 80)]
    return altair().TitleParams(apart(text), subtitle=lines, anchor="start", fontSize=14, subtitleColor=GREY)


def names_axis(field: str, title: str | None = None, *, shown: bool = True, limit: int = 180) -> Any:
    """Names down the left side, in the order of the rows."""
    alt = altair()
    labels = alt.Axis(labelLimit=limit, ticks=False, domain=False, labelPadding=6) if shown else None
    return alt.Y(field, type="nominal", sort=None, title=title, axis=labels, scale=alt.Scale(paddingInner=0.25))


def signed(field: str) -> Any:
    """Blue where a number is for, vermilion where it is against."""
    alt = altair()
    return alt.condition(f"datum.{field} >= 0", alt.value(FOR), alt.value(AGAINST))


def told(field: str) -> str:
    """An expression: a number in words."""
    return f"datum.endless ? (datum.{field} > 0 ? '+∞' : '−∞') : format(datum.{field}, '+.4~g')"


def endless(bars: Any, field: str) -> list[Any]:
    """Within the ends of bars that are as long as they can be drawn, what they stand for."""
    shown = bars.transform_filter("datum.endless").encode(x=f"{field}:Q")
    right = shown.transform_filter(f"datum.{field} > 0").mark_text(text="+∞", align="right", dx=-4, color="white")
    left = shown.transform_filter(f"datum.{field} < 0").mark_text(text="−∞", align="left", dx=4, color="white")
    return [right, left]


def zero(channel: str = "x") -> Any:
    """A line at 0."""
    alt = altair()
    return alt.Chart(data("zero")).mark_rule(color=INK, strokeWidth=1).encode(**{channel: alt.datum(0)})


ZERO: Rows = [{}]
