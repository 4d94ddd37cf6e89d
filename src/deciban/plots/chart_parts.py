"""Parts that several charts share: colours, axes, titles and marks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import Any

from deciban.plots.chart_data import data, unreserved
from deciban.plots.colours import AGAINST, COLOURS, FOR, GREY, INK
from deciban.plots.libraries import alt

SIDE = 360  # of a square chart, in pixels
STEP = 20  # height of a bar, in pixels
# axis labels: 2024 stays 2024, 250,000 is 250k, 10⁹ is 1G, and 10²⁰ is 1e+20
LARGE = "format(datum.value, abs(datum.value) < 1e15 ? '.12~s' : '~e')"
SHORT = f"abs(datum.value) < 1e4 ? replace(datum.label, ',', '') : abs(datum.value) < 1e5 ? datum.label : {LARGE}"
SHORT_NUMBER = ".4~g"
KNOWN = "isValid(datum.low) && isValid(datum.high)"


def axis(**options: Any) -> Any:
    """A numeric axis with short labels for large numbers."""
    return alt.Axis(labelExpr=SHORT, **options)


def axis_of(field: str, title: str, domain: Iterable[float]) -> dict[str, Any]:
    """The arguments of alt.X or alt.Y for a numeric field over a fixed domain."""
    scale = alt.Scale(domain=list(map(float, domain)), nice=False, zero=False)
    ticks = axis(grid=False, tickCount=6)
    return {"shorthand": field, "type": "quantitative", "title": unreserved(title), "scale": scale, "axis": ticks}


def names_axis(field: str, *, labels: bool = True, limit: int = 180) -> Any:
    """Names down the left side, in the order of the rows."""
    shown = alt.Axis(labelLimit=limit, ticks=False, domain=False, labelPadding=6) if labels else None
    return alt.Y(field, type="nominal", sort=None, title=None, axis=shown, scale=alt.Scale(paddingInner=0.25))


def title(text: str, notes: Iterable[str] = ()) -> Any:
    """A title at the left edge above a chart; notes below it are wrapped."""
    lines = [line for note in notes for line in wrap(note, 80)]
    return alt.TitleParams(unreserved(text), subtitle=lines, anchor="start", fontSize=14, subtitleColor=GREY)


def colour(field: str, names: Sequence[str], title: str, symbol: str, *, legend: bool = True) -> Any:
    """A colour for each name."""
    colours = {"range": list(COLOURS[: len(names)])} if len(names) <= len(COLOURS) else {"scheme": "turbo"}
    shown = alt.Legend(title=title, labelLimit=300, symbolType=symbol) if legend else None
    return alt.Color(field, type="nominal", scale=alt.Scale(domain=[*map(unreserved, names)], **colours), legend=shown)


def by_sign(field: str) -> Any:
    """Blue for positive evidence, vermilion for negative."""
    return alt.condition(f"datum.{field} >= 0", alt.value(FOR), alt.value(AGAINST))


def numbers(*fields: str) -> list[Any]:
    """Tooltips of numbers."""
    return [alt.Tooltip(f"{field}:Q", format=SHORT_NUMBER) for field in fields]


def diagonal() -> Any:
    """A dashed line through the data set `diagonal`, from (0, 0) to (1, 1)."""
    line = alt.Chart(data("diagonal")).mark_line(color=GREY, strokeDash=[4, 4], strokeWidth=1)
    return line.encode(x="x:Q", y="y:Q")


def zero(channel: str = "x") -> Any:
    """A line at 0, for each row of the data set `zero`."""
    return alt.Chart(data("zero")).mark_rule(color=INK, strokeWidth=1).encode(**{channel: alt.datum(0)})


def infinite(bars: Any, field: str) -> list[Any]:
    """±∞ inside the ends of infinite bars."""
    shown = bars.transform_filter("datum.infinite").encode(x=f"{field}:Q")
    right = shown.transform_filter(f"datum.{field} > 0").mark_text(text="+∞", align="right", dx=-4, color="white")
    left = shown.transform_filter(f"datum.{field} < 0").mark_text(text="−∞", align="left", dx=4, color="white")
    return [right, left]
