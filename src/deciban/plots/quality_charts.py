"""Charts of evaluations: ROC, precision and recall, calibration, confusion, and residuals of regressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deciban.plots.chart_data import DIAGONAL, Figure, Rows, data, rows_of, unreserved, with_data
from deciban.plots.chart_parts import SHORT_NUMBER, SIDE, axis, axis_of, colour, diagonal, numbers, title
from deciban.plots.colours import COLOURS, FOR, INK
from deciban.plots.libraries import alt


def roc(curves: Sequence[Figure], heading: str) -> Any:
    """Sensitivity against the false positive rate. A curve is `{"line": its name, "roc": table}`.

    The tables hold false_positive_rate, sensitivity and threshold. With more than one curve there is a legend.
    """
    drawn = roc_lines([curve["line"] for curve in curves]).properties(title=title(heading))
    return with_data(drawn, diagonal=DIAGONAL, curve=_points(curves, "roc"))


def roc_lines(lines: Sequence[str], *layers: Any) -> Any:
    """The ROC chart without data; `layers` are drawn over it."""
    drawn = _lines(lines, "false positive rate (1 − specificity)", "sensitivity", "AUC (95% interval)")
    return _square(diagonal(), *drawn, *layers)


def precision_recall(curves: Sequence[Figure], heading: str) -> Any:
    """Precision against recall. A curve is `{"line": its name, "precision_recall": table, "positives", "negatives"}`.

    The tables hold recall, precision and threshold. One curve has a line at the precision of random predictions.
    """
    drawn = precision_lines([curve["line"] for curve in curves]).properties(title=title(heading))
    at_random = _at_random(*curves) if len(curves) == 1 else []
    return with_data(drawn, curve=_points(curves, "precision_recall"), diagonal=at_random)


def _at_random(curve: Figure) -> Rows:
    """A horizontal line at the share of positives.

    >>> _at_random({"positives": 1, "negatives": 3})
    [{'x': 0, 'y': 0.25}, {'x': 1, 'y': 0.25}]
    """
    rows = curve["positives"] + curve["negatives"]
    return [{"x": x, "y": curve["positives"] / rows} for x in (0, 1)] if rows else []


def precision_lines(lines: Sequence[str], *layers: Any) -> Any:
    """The precision-recall chart without data; `layers` are drawn over it."""
    return _square(diagonal(), *_lines(lines, "recall (sensitivity)", "precision", "average precision"), *layers)


def threshold_point() -> Any:
    """The point of a threshold on a curve: the data set `threshold` (x, y)."""
    dot = alt.Chart(data("threshold")).mark_point(filled=True, size=130, color=INK, opacity=1)
    return dot.encode(x="x:Q", y="y:Q")


def _points(curves: Sequence[Figure], table: str) -> Rows:
    return [
        {"line": curve["line"], "order": i, "x": x, "y": y, "threshold": threshold}
        for curve in curves
        for i, (x, y, threshold) in enumerate(curve[table]["rows"])
    ]


def _lines(lines: Sequence[str], x_title: str, y_title: str, legend: str) -> tuple[Any, Any]:
    """Curves within the unit square, and invisible points for their tooltips."""
    base = alt.Chart(data("curve")).encode(
        x=alt.X(**axis_of("x", x_title, (0, 1))),
        y=alt.Y(**axis_of("y", y_title, (0, 1))),
        color=colour("line", lines, legend, "stroke", legend=len(lines) > 1),
    )
    titles = {"x": x_title.split(" (")[0], "y": y_title}
    tips = [alt.Tooltip(f"{field}:Q", format=SHORT_NUMBER, title=text) for field, text in titles.items()]
    points = base.mark_point(opacity=0, size=60).encode(tooltip=[*numbers("threshold"), *tips])
    return base.mark_line(strokeWidth=2).encode(order="order:Q"), points


def _square(*layers: Any) -> Any:
    return alt.layer(*layers).properties(width=SIDE, height=SIDE)


def calibration(bins: Figure, heading: str, x_title: str, y_title: str) -> Any:
    """Observed share of the class against its predicted probability, in bins; below, the rows of each bin.

    A calibrated model lies on the diagonal; bars are intervals, from observed_low to observed_high.
    """
    drawn = calibration_bins(x_title, y_title)
    drawn.vconcat[0].title = title(heading)
    return with_data(drawn, diagonal=DIAGONAL, bins=rows_of(bins))


def calibration_bins(x_title: str, y_title: str) -> Any:
    """The calibration chart without data."""
    tips = numbers("predicted", "observed", "observed_low", "observed_high", "rows")
    base = alt.Chart(data("bins")).encode(tooltip=tips)
    x, y = alt.X(**axis_of("predicted", x_title, (0, 1))), alt.Y(**axis_of("observed", y_title, (0, 1)))
    line = base.encode(x=x, y=y).mark_line(color=FOR, strokeWidth=2, point=alt.OverlayMarkDef(color=FOR, size=60))
    ranges = base.mark_rule(color=FOR, strokeWidth=1.5, opacity=0.6).encode(
        x="predicted:Q", y="observed_low:Q", y2="observed_high:Q"
    )
    below = base.mark_bar(color=FOR, opacity=0.6, stroke="white").encode(
        x=alt.X("low:Q", bin="binned", scale=alt.Scale(domain=[0, 1]), title=None, axis=None),
        x2="high:Q",
        y=alt.Y("rows:Q", title="rows", axis=axis(tickCount=3, grid=False)),
    )
    return alt.vconcat(_square(diagonal(), line, ranges), below.properties(width=SIDE, height=60), spacing=8)


def confusion(names: Sequence[str], counts: Sequence[Sequence[float]], heading: str) -> Any:
    """Σ w by true and predicted class; the colour is the share of the true class."""
    cell = min(64, max(10, 480 // len(names)))
    size = cell * len(names)
    fits = 6 * max(map(len, names)) <= cell  # about 6 pixels a letter
    sides: dict[str, Any] = {"sort": [*map(unreserved, names)], "type": "nominal"}
    above = alt.Axis(orient="top", labelAngle=0 if fits else -45)
    base = alt.Chart(data("confusion")).encode(
        x=alt.X("predicted", title="predicted class", axis=above, **sides),
        y=alt.Y("true", title="true class", **sides),
        tooltip=["true:N", "predicted:N", "rows:Q", alt.Tooltip("share:Q", format=".1%")],
    )
    share = alt.Color(
        "share:Q",
        scale=alt.Scale(domain=[0, 1], range=["white", "#08519C"], interpolate="rgb"),
        legend=alt.Legend(title=["share of the", "true class"], format=".0%", gradientLength=min(size, 200)),
    )
    layers = [base.mark_rect(stroke="#DDDDDD").encode(color=share)]
    if cell >= 20:  # numbers in smaller cells are unreadable; the tooltip has them
        font = min(13.0, 1.5 * cell / max(len(_count(n)) for row in counts for n in row))
        text = base.mark_text(fontSize=font).encode(text="text:N")
        layers.append(text.encode(color=alt.condition("datum.share > 0.5", alt.value("white"), alt.value("black"))))
    drawn = alt.layer(*layers).properties(width=size, height=size, title=title(heading))
    rows = [
        {"true": true, "predicted": other, "rows": n, "share": n / sum(row) if sum(row) else None, "text": _count(n)}
        for true, row in zip(names, counts, strict=True)
        for other, n in zip(names, row, strict=True)
    ]
    return with_data(drawn, confusion=rows)


def _count(n: float) -> str:
    return f"{n:,.0f}" if float(n).is_integer() else f"{n:,.5g}"


def residuals(table: Figure, heading: str = "Observed against predicted") -> Any:
    """Observed against predicted mean; a perfect model lies on the diagonal."""
    rows = rows_of(table)
    values = [row[field] for row in rows for field in ("predicted", "observed") if row[field] is not None]
    ends = [{"x": x, "y": x} for x in (min(values, default=0.0), max(values, default=1.0))]
    return with_data(scatter().properties(title=title(heading)), residuals=rows, diagonal=ends)


def scatter() -> Any:
    """The chart of residuals without data."""
    sides: dict[str, Any] = {"scale": alt.Scale(zero=False), "axis": axis(grid=False, tickCount=6)}
    dots = alt.Chart(data("residuals")).mark_circle(color=COLOURS[0], size=22, opacity=0.5)
    drawn = dots.encode(
        x=alt.X("predicted:Q", title="predicted mean", **sides),
        y=alt.Y("observed:Q", title="observed", **sides),
        tooltip=numbers("predicted", "observed"),
    )
    return _square(diagonal(), drawn)
