"""Charts of evidence, in decibans: features, pairs, terms, and one prediction."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

from deciban.plots.chart_data import ZERO, Figure, Rows, data, drawable, rows_of, unreserved, with_data
from deciban.plots.chart_parts import KNOWN, SIDE, STEP, axis, by_sign, infinite, names_axis, title, zero
from deciban.plots.colours import AGAINST, FOR, GREY, INK
from deciban.plots.libraries import alt
from deciban.table import numbered

MOST_BARS, MOST_TERMS, MOST_OTHERS = 20, 15, 4  # that are drawn; the figures contain all
FULL = 5  # decibans of the deepest colour
TEN, NONE = "abs(datum.decibans) >= 9.95", "abs(datum.decibans) < 0.05"
ZERO_TEXT = "test(/^[+−-]?0(\\.0*)?$/, datum.text)"  # a number that rounds to 0, for which no bar is drawn
ENDS = ("from", "to")
SIGNED = "datum.infinite ? (datum.decibans > 0 ? '+∞' : '−∞') : format(datum.decibans, '+.4~g')"  # as text
OF_CHOSEN, IS_CHOSEN = "datum.class === chosen", "datum.side === chosen"


def ranking(figures: Sequence[Figure], unit: str = "decibans") -> Any:
    """Mean absolute evidence of features: the 20 largest of `{"name", "value", "what"}`.

    >>> chart = ranking([{"name": "age", "value": 3.2, "what": "feature"}])
    >>> chart.to_dict()["datasets"]["ranking"]
    [{'name': 'age', 'value': 3.2, 'what': 'feature', 'infinite': False}]
    """
    drawn = ranking_bars(unit).properties(title=title("Evidence by feature"))
    return with_data(drawn, ranking=drawable([dict(row) for row in figures[:MOST_BARS]], "value"))


def ranking_bars(unit: str = "decibans") -> Any:
    """The ranking without data."""
    base = alt.Chart(data("ranking")).encode(y=names_axis("name"))
    number = f"format(datum.value, '{',.2f' if unit == 'decibans' else '.3~g'}')"
    base = base.transform_calculate(text=f"datum.infinite ? '∞' : {number}", drawn=f"{ZERO_TEXT} ? 0 : 1")
    drawn = base.mark_bar(color=FOR).encode(
        x=alt.X("value:Q", title=f"mean |{unit}|", axis=axis(grid=True, tickCount=5)),
        opacity=_drawn(),
        tooltip=["name:N", "what:N", alt.Tooltip("text:N", title=f"mean |{unit}|")],
    )
    finite = base.transform_filter("!datum.infinite").mark_text(align="left", dx=4, color=INK, fontSize=11)
    texts = finite.encode(x="value:Q", text="text:N"), *infinite(base, "value")
    return alt.layer(drawn, *texts).properties(width=SIDE, height=alt.Step(STEP))


def _drawn() -> Any:
    """The opacity of a bar, from the field `drawn`: 0 for one without length, whose row stays."""
    return alt.Opacity("drawn:Q", scale=None, legend=None)


def feature(figure: Figure, pos_label: str | None = None, unit: str = "decibans") -> Any:
    """Evidence of a feature's values for a class, with how common they are in each class.

    `pos_label` is a class of the figure's table, by default the first.
    """
    evidence, density = rows_of(figure["evidence"]), rows_of(figure["density"])
    chosen = _class_shown(evidence, pos_label)
    if figure["chart"] == "levels":
        drawn = levels(chosen, figure["density_title"], unit)
    else:
        draw, density = numbers if figure["chart"] == "numbers" else steps, outline(density)
        drawn = draw(chosen, figure["density_title"], unit, figure["scale"])
    drawn = drawn.properties(title=title(f"{figure['name']}: evidence for {chosen}"))
    return with_data(drawn, evidence=drawable(evidence, "decibans", "low", "high"), density=density, zero=ZERO)


def _class_shown(rows: Rows, pos_label: str | None) -> str:
    return pos_label if pos_label is not None else next((row["class"] for row in rows), "")


def outline(density: Rows) -> Rows:
    """A density in steps as points of a line, two for each step; other densities are lines already.

    >>> [row["value"] for row in outline([{"from": 0, "to": 2, "class": "yes", "density": 0.5}])]
    [0, 2]
    """
    return [row | {"value": row[end]} for row in density for end in (("from", "to") if "from" in row else ("value",))]


def levels(chosen: str, density_title: str, unit: str = "decibans") -> Any:
    """Decibans by level; beside them, the share of each level in the class and in the other classes."""
    base = alt.Chart(data("evidence")).transform_filter(OF_CHOSEN).encode(y=names_axis("value", limit=120))
    bars = _bars(base, unit, "value", "rows")
    ranges = base.transform_filter(KNOWN).mark_rule(color=INK).encode(x=alt.X("low:Q", title=unit), x2="high:Q")
    evidence = alt.layer(bars, ranges, zero(), _zeros(base, unit), *infinite(base, "decibans"))
    evidence = evidence.properties(width=SIDE * 0.6, height=alt.Step(STEP))
    shares = _density_base(density_title, "value:N").mark_point(filled=True, size=45, opacity=0.9)
    common = shares.encode(
        y=names_axis("value", labels=False),
        x=alt.X("density:Q", title="share", axis=alt.Axis(tickCount=3, format="~p")),
        shape=alt.condition(IS_CHOSEN, alt.value("circle"), alt.value("triangle-up")),
    )
    common = common.properties(width=SIDE * 0.4, height=alt.Step(STEP))
    return alt.hconcat(evidence, common, spacing=12).resolve_scale(y="shared").add_params(_chosen(chosen))


def _bars(base: Any, unit: str, name: str, count: str) -> Any:
    """Bars of decibans: to the right if they are for the class."""
    tips = [f"{name}:N", "class:N", alt.Tooltip("text:N", title=unit), alt.Tooltip(f"{count}:Q", format=",")]
    calculated = base.transform_calculate(text=SIGNED, drawn=f"{_rounds_to_zero(unit)} ? 0 : 1")
    x = alt.X("decibans:Q", title=unit, axis=axis(tickCount=5))
    bars = calculated.mark_bar(height={"band": 0.8})
    return bars.encode(x=x, color=by_sign("decibans"), opacity=_drawn(), tooltip=tips)


def _zeros(base: Any, unit: str) -> Any:
    """0 in place of bars without length."""
    text = base.transform_filter(_rounds_to_zero(unit)).mark_text(text="0", align="left", dx=4, color=GREY, fontSize=11)
    return text.encode(x="decibans:Q")


def _rounds_to_zero(unit: str) -> str:
    return NONE if unit == "decibans" else "datum.decibans === 0"


def numbers(chosen: str, density_title: str, unit: str = "decibans", scale: Figure | None = None) -> Any:
    """Decibans over the numbers, as a line, and behind it the densities of the classes.

    `scale` is `{"constant", "ticks"}` of a symmetric log axis, or None.
    """
    base = alt.Chart(data("evidence")).transform_filter(OF_CHOSEN).encode(x=_x_axis("value:Q", scale))
    y = alt.Y("decibans:Q", title=unit, axis=axis(tickCount=5))
    ranges = base.transform_filter(KNOWN).mark_area(color=INK, opacity=0.15)
    band = ranges.encode(y=alt.Y("low:Q", title=unit), y2="high:Q")
    dashes = alt.condition("datum.infinite", alt.value([2, 3]), alt.value([1, 0]))
    line = base.mark_line(color=INK, strokeWidth=2, interpolate="linear")
    line = line.encode(y=y, detail="infinite:N", strokeDash=dashes)
    tips = [alt.Tooltip("value:Q", format=".4~g"), alt.Tooltip("text:N", title=unit), alt.Tooltip("rows:Q", format=",")]
    points = base.transform_calculate(text=SIGNED).mark_point(opacity=0, size=80).encode(y=y, tooltip=tips)
    infinite_rows = base.transform_filter("datum.infinite").transform_calculate(text=SIGNED)
    ends = [  # ±∞ at the first and last number of an infinite stretch
        infinite_rows.transform_aggregate(value=f"{end}(value)", groupby=["decibans", "text"])
        .mark_text(color=INK, align=align, dy=9)
        .encode(y=y, text="text:N")
        for end, align in (("min", "left"), ("max", "right"))
    ]
    return _layered(_densities(density_title, scale), alt.layer(band, zero("y"), line, points, *ends), chosen)


def steps(chosen: str, density_title: str, unit: str = "decibans", scale: Figure | None = None) -> Any:
    """As `numbers`, with constant decibans from each cut to the next."""
    rows = alt.Chart(data("evidence")).transform_filter(OF_CHOSEN).encode(x=_x_axis("from:Q", scale))
    base = rows.encode(x2="to:Q")
    y = alt.Y("decibans:Q", title=unit, axis=axis(tickCount=5))
    ranges = base.transform_filter(KNOWN).mark_rect(color=INK, opacity=0.1)
    band = ranges.encode(y=alt.Y("low:Q", title=unit), y2="high:Q")
    sides = [alt.Tooltip(f"{field}:Q", format=".4~g") for field in ENDS]
    tips = [*sides, alt.Tooltip("text:N", title=unit), alt.Tooltip("rows:Q", format=",")]
    line = base.transform_calculate(text=SIGNED).mark_rule(color=INK, strokeWidth=2.5).encode(y=y, tooltip=tips)
    infinite_rows = rows.transform_filter("datum.infinite").transform_calculate(text=SIGNED)
    written = infinite_rows.mark_text(color=INK, align="left", dy=9).encode(y=y, text="text:N")
    single = rows.transform_filter("datum.from === datum.to")  # a bin of one value, such as 0
    dots = single.mark_point(filled=True, color=INK, size=40, opacity=1).encode(y=y, tooltip=tips)
    return _layered(_densities(density_title, scale), alt.layer(band, zero("y"), line, dots, written), chosen)


def _x_axis(field: str, scale: Figure | None) -> Any:
    """The x axis, linear or sign(x)·log(1 + |x|/c)."""
    symlog = {"type": "symlog", "constant": scale["constant"]} if scale else {}
    # with a smaller tickCount Vega leaves out every other value
    ticks = {"values": list(scale["ticks"]), "tickCount": len(scale["ticks"])} if scale else {"tickCount": 6}
    return alt.X(field, title=None, scale=alt.Scale(zero=False, nice=False, **symlog), axis=axis(grid=False, **ticks))


def _layered(densities: Any, evidence: Any, chosen: str) -> Any:
    """Evidence over densities, each with its own scale."""
    drawn = alt.layer(alt.layer(*densities), evidence).resolve_scale(y="independent")
    return drawn.add_params(_chosen(chosen)).properties(width=SIDE, height=SIDE * 0.6)


def _densities(density_title: str, scale: Figure | None) -> tuple[Any, Any]:
    """Densities: filled for the chosen class, dashed for the others, so that they differ in print, too."""
    y = alt.Y("density:Q", stack=None, axis=None, title=None)
    common = _density_base(density_title).encode(x=_x_axis("value:Q", scale), y=y, detail="side:N")
    dashes = alt.condition(IS_CHOSEN, alt.value([1, 0]), alt.value([4, 3]))
    # order=False: points in the order of the rows, since each step begins where another ends
    lines = common.mark_line(strokeWidth=1.5, opacity=0.9, order=False).encode(strokeDash=dashes)
    return common.transform_filter(IS_CHOSEN).mark_area(opacity=0.18, order=False), lines


def _density_base(density_title: str, *tips: str) -> Any:
    """Densities in the chosen class and in each of the others; the mean of the others if these are many."""
    many = f"datum.classes > {1 + MOST_OTHERS} && datum.class !== chosen"
    pooled = (
        alt.Chart(data("density"))
        .transform_joinaggregate(classes="distinct(class)")
        .transform_calculate(side=f"{many} ? 'mean of the others' : datum.class")
        .transform_aggregate(density="mean(density)", groupby=["from", "to", "value", "side"])
    )
    side, share = alt.Tooltip("side:N", title="class"), alt.Tooltip("density:Q", format=".4~g", title=density_title)
    colours = alt.condition(IS_CHOSEN, alt.value(FOR), alt.value(AGAINST))
    return pooled.encode(color=colours, tooltip=[*tips, side, share])


def _chosen(value: str) -> Any:
    """The parameter of the class that evidence is for, which a page can set."""
    return alt.param(name="chosen", value=unreserved(value))


def pair(figure: Figure, pos_label: str | None = None) -> Any:
    """Decibans of a pair of features, as a heatmap: blue is for the class, and deepest at five decibans."""
    cells = rows_of(figure["cells"])
    chosen = _class_shown(cells, pos_label)
    drawn = pair_map(chosen, *figure["names"])
    heading = title(f"{' and '.join(figure['names'])}: evidence for {chosen}")
    return with_data(drawn.properties(title=heading), cells=drawable(cells, "decibans"))


def pair_map(chosen: str, x_title: str | None = None, y_title: str | None = None) -> Any:
    """The heatmap without data."""
    base = alt.Chart(data("cells")).transform_filter(OF_CHOSEN)
    base = base.transform_calculate(text=SIGNED, size=f"sqrt(min(1, abs(datum.decibans) / {FULL}))")
    slanted = alt.Axis(labelLimit=90, labelAngle=-45, ticks=False, domain=False)
    base = base.encode(
        x=alt.X("a:N", sort=None, title=unreserved(x_title), axis=slanted),
        y=alt.Y("b:N", sort=None, title=unreserved(y_title), axis=alt.Axis(labelLimit=110, ticks=False, domain=False)),
        tooltip=["a:N", "b:N", "class:N", alt.Tooltip("text:N", title="decibans"), alt.Tooltip("rows:Q", format=",")],
    )
    known = base.transform_filter("isValid(datum.decibans)")
    tiles = base.mark_rect(stroke=GREY, strokeOpacity=0.25).encode(
        fill=by_sign("decibans"),
        # so that numbers stay readable on the deepest colour
        fillOpacity=alt.FillOpacity("size:Q", scale=alt.Scale(domain=[0, 1], range=[0, 0.5]), legend=None),
    )
    written = f"datum.infinite ? datum.text : {NONE} ? '0' : format(datum.decibans, {TEN} ? '+.0f' : '+.1f')"
    text = known.transform_calculate(text=written).mark_text(fontSize=10, color=INK).encode(text="text:N")
    return alt.layer(tiles, text).add_params(_chosen(chosen)).properties(width=SIDE, height=SIDE * 0.8)


def terms(figure: Figure, pos_label: str | None = None) -> Any:
    """The terms with most evidence for a class and against it, in decibans."""
    rows = rows_of(figure["terms"])
    chosen = _class_shown(rows, pos_label)
    ranked = drawable([row for row in rows if row["class"] == chosen], "decibans")
    ranked.sort(key=lambda row: -row["decibans"])
    shown = ranked if len(ranked) <= 2 * MOST_TERMS else ranked[:MOST_TERMS] + ranked[-MOST_TERMS:]
    return with_data(term_bars().properties(title=title(f"Terms for {chosen}")), terms=shown, zero=ZERO)


def term_bars() -> Any:
    """The chart of terms without data."""
    base = alt.Chart(data("terms")).encode(y=names_axis("term"))
    bars = _bars(base, "decibans", "term", "count")
    layers = bars, zero(), _zeros(base, "decibans"), *infinite(base, "decibans")
    return alt.layer(*layers).properties(width=SIDE, height=alt.Step(STEP))


def waterfall(lines: Sequence[tuple[str, float]], heading: str, unit: str = "decibans") -> Any:
    """One prediction from its prior to its sum: floating bars, each starting where the last one ended.

    `lines` are names and numbers from top to bottom; the last is the sum.

    >>> chart = waterfall([("prior", -5.0), ("age", 7.0), ("log-odds", 2.0)], "row 0")
    >>> [(row["name"], row["start"], row["end"]) for row in chart.to_dict()["datasets"]["parts"]]
    [('prior', 0.0, -5.0), ('age', -5.0, 2.0), ('log-odds', 0.0, 2.0)]
    """
    finite = drawable([{"value": value} for _, value in lines], "value")
    rows: Rows = []
    end = 0.0
    for (_, value), name, row in zip(lines, numbered(name for name, _ in lines), finite, strict=True):
        last = len(rows) == len(lines) - 1
        start = 0.0 if last else end
        # an infinite sum is drawn as far as its parts
        end = end if last and not isfinite(value) else start + row["value"]
        text = f"{value:+.1f}" if isfinite(value) else "+∞" if value > 0 else "−∞"
        what = "sum" if last else "part"
        rows.append({"name": name, "value": row["value"], "start": start, "end": end, "text": text, "what": what})
    return with_data(waterfall_bars(unit).properties(title=title(heading)), parts=rows, zero=ZERO)


def waterfall_bars(unit: str = "decibans") -> Any:
    """The waterfall without data; `text` is drawn at the end of a bar."""
    base = alt.Chart(data("parts")).encode(y=names_axis("name"))
    numbers = alt.Tooltip("value:Q", format="+.4~g", title=unit), alt.Tooltip("end:Q", format="+.4~g", title="so far")
    shown = base.transform_calculate(drawn=f"{ZERO_TEXT} ? 0 : datum.what === 'sum' ? 1 : 0.75")
    bars = shown.mark_bar(height={"band": 0.75}).encode(
        # with room for numbers
        x=alt.X("start:Q", title=unit, axis=axis(tickCount=6), scale=alt.Scale(padding=40, nice=False)),
        x2="end:Q",
        color=by_sign("value"),
        opacity=_drawn(),
        tooltip=["name:N", *numbers],
    )
    right = base.transform_filter("datum.value >= 0").mark_text(align="left", dx=4, color=INK, fontSize=11)
    left = base.transform_filter("datum.value < 0").mark_text(align="right", dx=-4, color=INK, fontSize=11)
    texts = (mark.encode(x="end:Q", text="text:N") for mark in (right, left))
    return alt.layer(zero(), bars, *texts).properties(width=1.4 * SIDE, height=alt.Step(STEP))
