"""The chart of a decision boundary over two numeric features."""

from __future__ import annotations

from typing import Any

from deciban.plots.chart_parts import INK, MAGENTA, SIDE, Figure, altair, colour, data, rows_of, side, title, with_data


def boundary(figure: Figure, heading: str) -> Any:
    """Points, contours of class densities if there are any, and the lines where classes tie.

    `figure` holds names (2), low (2), high (2), classes, models, notes, and the tables points (class, x, y), densities
    (class, line, order, x, y) and ties (model, line, order, x, y).
    """
    alt = altair()
    domains = zip(figure["low"], figure["high"], strict=True)
    across, up = (side(*parts) for parts in zip("xy", figure["names"], domains, strict=True))
    points, densities, ties = (rows_of(figure[name]) for name in ("points", "densities", "ties"))

    def base(name: str) -> Any:
        return alt.Chart(data(name)).encode(x=alt.X(**across), y=alt.Y(**up))

    layers = [_dots(base("points"), figure, len(points))]
    if densities:
        layers.append(_densities(base("densities"), figure))
    layers.append(_ties(base("ties"), figure["models"]))
    drawn = alt.layer(*layers).properties(width=1.2 * SIDE, height=SIDE, title=title(heading, figure["notes"]))
    return with_data(drawn, points=points, **({"densities": densities} if densities else {}), ties=ties)


def _dots(base: Any, figure: Figure, count: int) -> Any:
    alt = altair()
    tips = [alt.Tooltip(f"{field}:Q", title=name) for field, name in zip("xy", figure["names"], strict=True)]
    marks = base.mark_circle(size=40 if count <= 500 else 20, opacity=0.6, clip=True)
    return marks.encode(color=colour("class", figure["classes"], "class", "circle"), tooltip=["class:N", *tips])


def _densities(base: Any, figure: Figure) -> Any:
    marks = base.mark_line(strokeWidth=1, opacity=0.8, clip=True)
    shown = colour("class", figure["classes"], "class", "circle")
    return marks.encode(color=shown, detail="line:N", order="order:Q")


def _ties(base: Any, models: list[str]) -> Any:
    """The boundary of each model; the second is dashed, so that both are seen where they coincide."""
    alt = altair()
    marks = base.mark_line(strokeWidth=2, clip=True)
    legend = alt.Legend(title="boundary", symbolType="stroke", symbolStrokeWidth=2, symbolSize=400)
    colours = alt.Scale(domain=models, range=[INK, MAGENTA][: len(models)])
    dashes = alt.Scale(domain=models, range=[[1, 0], [6, 4]][: len(models)])
    return marks.encode(
        stroke=alt.Stroke("model:N", scale=colours, legend=legend),
        strokeDash=alt.StrokeDash("model:N", scale=dashes, legend=legend),
        detail="line:N",
        order="order:Q",
    )
