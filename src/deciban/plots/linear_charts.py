"""Charts of linear models: coefficients with their intervals, and the path of the solver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deciban.plots.chart_data import ZERO, Figure, Rows, data, rows_of, with_data
from deciban.plots.chart_parts import KNOWN, SIDE, STEP, axis, names_axis, numbers, title, zero
from deciban.plots.colours import FOR, INK
from deciban.plots.libraries import alt

MOST_COEFFICIENTS = 40  # drawn, the largest; figures hold all
REACH = 3.0  # times the largest coefficient: where intervals are cut off
INTERCEPT = "(intercept)"


def coefficients(figures: Sequence[Figure], unit: str = "coefficient") -> Any:
    """Estimates as points, their 95% intervals as lines where they are known; a chart for each figure, stacked.

    Intervals that reach beyond three times the largest coefficient are cut off there. The intercept is not drawn. A
    figure is `{"title", "rows": table(name, estimate, low, high, …)}`.

    >>> rows = {"fields": ["name", "estimate", "low", "high"], "rows": [["age", 0.5, None, None]]}
    >>> coefficients([{"title": "log-odds", "rows": rows}]).to_dict()["vconcat"][0]["title"]["text"]
    'log-odds'
    """
    data_sets = {f"coefficients {k}": _largest(figure["rows"]) for k, figure in enumerate(figures)}
    pairs = zip(data_sets, figures, strict=True)
    drawn = [interval_points(unit, name).properties(title=title(figure["title"])) for name, figure in pairs]
    return with_data(alt.vconcat(*drawn), **data_sets, zero=ZERO)


def _largest(table: Figure) -> Rows:
    """The largest coefficients, without the intercept, which is on another scale; intervals cut off."""
    rows = [row for row in rows_of(table) if row["name"] != INTERCEPT] or rows_of(table)
    rows.sort(key=lambda row: -abs(row["estimate"] or 0.0))
    reach = REACH * max((abs(row["estimate"] or 0.0) for row in rows), default=0.0)
    return [row | _cut_off(row, reach) for row in rows[:MOST_COEFFICIENTS]]


def _cut_off(row: Figure, reach: float) -> dict[str, Any]:
    """The ends of an interval, cut off at ±reach.

    >>> _cut_off({"low": -90.0, "high": 2.0}, 10.0)
    {'from': -10.0, 'to': 2.0}
    """
    ends = {"from": row["low"], "to": row["high"]}
    return {key: end if end is None else min(max(end, -reach), reach) for key, end in ends.items()}


def interval_points(unit: str = "coefficient", name: str = "coefficients") -> Any:
    """The chart of coefficients without data."""
    base = alt.Chart(data(name)).encode(y=names_axis("name"))
    known = base.transform_filter(KNOWN).mark_rule(color=INK, strokeWidth=1.5)
    ranges = known.encode(x=alt.X("from:Q", title=unit), x2="to:Q")
    x, tips = alt.X("estimate:Q", title=unit, axis=axis(tickCount=5)), numbers("estimate", "low", "high")
    points = base.mark_point(filled=True, size=55, color=FOR, opacity=1).encode(x=x, tooltip=["name:N", *tips])
    return alt.layer(zero(), ranges, points).properties(width=SIDE, height=alt.Step(STEP))


def path(table: Figure) -> Any:
    """The objective above its minimum, and the norm of its gradient, by iteration; both logarithmic."""
    rows = rows_of(table)
    least = min((row["objective"] for row in rows), default=0.0)
    for row in rows:
        above = row["objective"] - least
        row["above"] = above if above > 0 else None
        row["gradient"] = row["gradient"] if row["gradient"] and row["gradient"] > 0 else None
    return with_data(convergence().properties(title=title("Convergence")), path=rows)


def convergence() -> Any:
    """The chart of the solver's path without data."""
    x = alt.X("iteration:Q", title="iteration", axis=alt.Axis(grid=False, tickMinStep=1, format="d"))
    tips = [alt.Tooltip("objective:Q", format=".8~g"), alt.Tooltip("gradient:Q", format=".3~g")]
    base = alt.Chart(data("path")).encode(x=x, tooltip=["iteration:Q", *tips, "step:Q"])

    def line(field: str, text: str) -> Any:
        scale = alt.Scale(type="log", nice=False)
        y = alt.Y(f"{field}:Q", title=text, scale=scale, axis=alt.Axis(tickCount=4, format=".0e"))
        marks = base.transform_filter(f"datum.{field} !== null").mark_line(color=FOR, point={"color": FOR, "size": 35})
        return marks.encode(y=y).properties(width=SIDE, height=120)

    lines = line("above", "objective − minimum"), line("gradient", "gradient norm")
    return alt.vconcat(*lines, spacing=8).resolve_scale(x="shared")
