"""The chart of a decision boundary over two numeric features."""

from __future__ import annotations

from typing import Any

from deciban.plots.chart_data import Figure, data, rows_of, with_data
from deciban.plots.chart_parts import SIDE, axis_of, colour, title
from deciban.plots.colours import INK, MAGENTA
from deciban.plots.libraries import alt


def boundary(figure: Figure, heading: str) -> Any:
    """Points, contours of class densities if there are any, and the lines where classes tie.

    `figure` holds names (2), low (2), high (2), classes, models, notes, and the tables points (class, x, y), densities
    (class, line, order, x, y) and ties (model, line, order, x, y).
    """
    domains = zip(figure["low"], figure["high"], strict=True)
    x, y = (axis_of(*parts) for parts in zip("xy", figure["names"], domains, strict=True))
    datasets = {name: rows_of(figure[name]) for name in ("points", "densities", "ties")}
    if not datasets["densities"]:
        del datasets["densities"]
    classes = colour("class", figure["classes"], "class", "circle")
    tips = [alt.Tooltip(f"{field}:Q", title=name) for field, name in zip("xy", figure["names"], strict=True)]

    def base(name: str) -> Any:
        return alt.Chart(data(name)).encode(x=alt.X(**x), y=alt.Y(**y))

    dots = base("points").mark_circle(size=40 if len(datasets["points"]) <= 500 else 20, opacity=0.6, clip=True)
    layers = [dots.encode(color=classes, tooltip=["class:N", *tips])]
    if "densities" in datasets:
        lines = base("densities").mark_line(strokeWidth=1, opacity=0.8, clip=True)
        layers.append(lines.encode(color=classes, detail="line:N", order="order:Q"))
    layers.append(_ties(base("ties"), figure["models"]))
    drawn = alt.layer(*layers).properties(width=1.2 * SIDE, height=SIDE, title=title(heading, figure["notes"]))
    return with_data(drawn, **datasets)


def _ties(base: Any, models: list[str]) -> Any:
    """The boundary of each model; the second is dashed, so that both are seen where they coincide."""
    legend = alt.Legend(title="boundary", symbolType="stroke", symbolStrokeWidth=2, symbolSize=400)
    colours = alt.Scale(domain=models, range=[INK, MAGENTA][: len(models)])
    dashes = alt.Scale(domain=models, range=[[1, 0], [6, 4]][: len(models)])
    return base.mark_line(strokeWidth=2, clip=True).encode(
        stroke=alt.Stroke("model:N", scale=colours, legend=legend),
        strokeDash=alt.StrokeDash("model:N", scale=dashes, legend=legend),
        detail="line:N",
        order="order:Q",
    )
