"""Charts of altair: ROC, calibration and confusion of an Evaluation, and the boundary of a model of two columns.

Every chart holds its data (`chart.to_dict()`), a few thousand rows at most, however many rows were judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import Any

import numpy as np

from deciban.errors import DecibanError
from deciban.evaluation.boundary import Boundary, boundary_of
from deciban.evaluation.contours import library, thinned
from deciban.table import Table, numbered
from deciban.types import FloatArray, level_of

SIDE = 360  # of a square chart, in pixels
LEVEL = 0.95  # of intervals
# Okabe and Ito (2008): told apart by colour-blind readers too
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
GREY, MAGENTA = "#888888", "#B5006E"


# Judgements ----------------------------------------------------------------------------------------------------------


def roc(evaluation: Any, of: Any = None) -> Any:
    """Sensitivity = tp/(tp + fn) against the false positive rate = fp/(fp + tn), for every threshold.

    The title holds the area below it (AUC) with its 95% interval. `of` is the class to find, by default the second of
    two; of more than two classes, each has a line of its own.

    >>> import deciban as db
    >>> judged = db.Evaluation.of([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.85])
    >>> roc(judged).to_dict()["title"]["text"]
    'ROC of 1: AUC 0.750 (95% interval 0.057 to 1.000)'
    """
    alt = library("altair")
    _require_rows(evaluation)
    classes = evaluation.classes
    each = of is None and len(classes) > 2
    wanted = classes if each else (classes[-1] if of is None else level_of(of),)
    curves = [evaluation.roc(label) for label in wanted]
    names = numbered(wanted)
    areas = [_area(curve, "" if each else "95% interval ") for curve in curves]
    lines = [f"{name}: {area}" for name, area in zip(names, areas, strict=True)]
    rows = [row for line, curve in zip(lines, curves, strict=True) for row in _roc_rows(line, curve)]
    base = alt.Chart(_data(alt, rows)).encode(
        x=alt.X(**_side(alt, "x", "false positive rate (1 − specificity)", (0, 1))),
        y=alt.Y(**_side(alt, "y", "sensitivity", (0, 1))),
        color=_colour(alt, "line", lines, "AUC (95% interval)", "stroke", shown=each),
    )
    points = base.mark_point(opacity=0, size=60).encode(
        tooltip=[
            alt.Tooltip("threshold:Q", format=".4~g"),
            alt.Tooltip("x:Q", format=".4~g", title="false positive rate"),
            alt.Tooltip("y:Q", format=".4~g", title="sensitivity"),
        ]
    )
    drawn = alt.layer(_diagonal(alt), base.mark_line(strokeWidth=2).encode(order="order:Q"), points)
    title = "ROC of each class against the others" if each else f"ROC of {names[0]}: AUC {areas[0]}"
    return drawn.properties(width=SIDE, height=SIDE, title=_title(alt, title))


def calibration(evaluation: Any, of: Any = None, bins: int = 10) -> Any:
    """Share of rows that are of the class, against the probability the model gave them, in bins; below, the rows.

    A calibrated model lies on the diagonal. The title holds the expected calibration error Σ_bins rows/n·|observed −
    predicted|. `of` is by default the second of two classes; of more, the class that the model gave the most to.

    >>> import deciban as db
    >>> judged = db.Evaluation.of([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.85])
    >>> calibration(judged).to_dict()["vconcat"][0]["title"]["text"]
    'Calibration of 1: ECE 0.125'
    """
    alt = library("altair")
    rows = _calibration_rows(evaluation.calibration(of, bins), bins)
    classes = evaluation.classes
    top = of is None and len(classes) > 2
    name = "the predicted class" if top else str(classes[-1] if of is None else of)
    given = _side(alt, "predicted", f"probability given to {name}", (0, 1))
    was = _side(alt, "observed", "share that was right" if top else f"share of {name}", (0, 1))
    base = alt.Chart(_data(alt, rows)).encode(
        tooltip=[alt.Tooltip(f"{field}:Q", format=".4~g") for field in ("predicted", "observed", "rows")]
    )
    curve = base.encode(x=alt.X(**given), y=alt.Y(**was))
    line = curve.mark_line(color=COLOURS[0], strokeWidth=2, point=alt.OverlayMarkDef(color=COLOURS[0], size=60))
    title = f"Calibration of {name}: ECE {evaluation.ece(of, bins):.3f}"
    above = alt.layer(_diagonal(alt), line).properties(width=SIDE, height=SIDE, title=_title(alt, title))
    below = base.mark_bar(color=COLOURS[0], opacity=0.6, stroke="white").encode(
        x=alt.X("low:Q", bin="binned", scale=alt.Scale(domain=[0, 1]), title=None, axis=None),
        x2="high:Q",
        y=alt.Y("rows:Q", title="rows", axis=alt.Axis(tickCount=3, grid=False)),
    )
    return alt.vconcat(above, below.properties(width=SIDE, height=60), spacing=8)


def confusion(evaluation: Any) -> Any:
    """How many rows of each true class were given which class; the colour is their share of the true class.

    >>> import deciban as db
    >>> judged = db.Evaluation.of([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.85])
    >>> confusion(judged).to_dict()["title"]["text"]
    'Confusion: accuracy 0.750'
    """
    alt = library("altair")
    _require_rows(evaluation)
    names = numbered(evaluation.classes)
    counts = np.asarray(evaluation.confusion)
    cell = min(64, max(10, 480 // len(names)))
    size = cell * len(names)
    above = alt.Axis(orient="top", labelAngle=_angle(names, cell))
    sides = {"sort": names, "type": "nominal"}
    base = alt.Chart(_data(alt, _confusion_rows(names, counts))).encode(
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
    if cell >= 20:  # in smaller cells numbers cannot be read; the tooltip has them
        font = min(13.0, 1.5 * cell / max(len(_count(n)) for n in counts.flat))
        text = base.mark_text(fontSize=font).encode(text="text:N")
        layers.append(text.encode(color=alt.condition("datum.share > 0.5", alt.value("white"), alt.value("black"))))
    title = _title(alt, f"Confusion: accuracy {evaluation.accuracy:.3f}")
    return alt.layer(*layers).properties(width=size, height=size, title=title)


def _area(curve: Any, word: str) -> str:
    """AUC and its interval, which there is none of with one row of a class."""
    auc = curve.auc
    if np.isnan(auc):
        return "not defined (one class only)"
    low, high = curve.interval(LEVEL)
    return f"{auc:.3f}" + ("" if np.isnan(low) else f" ({word}{low:.3f} to {high:.3f})")


def _roc_rows(line: str, curve: Any) -> list[dict[str, Any]]:
    points = np.column_stack([curve.false_positive_rate, curve.sensitivity])
    if not np.isfinite(points).all():  # one class only: a rate is 0/0
        return []
    kept = thinned(points)
    threshold = np.asarray(curve.thresholds)[kept].tolist()
    return [
        {"line": line, "order": i, "x": x, "y": y, "threshold": t if np.isfinite(t) else None}
        for i, ((x, y), t) in enumerate(zip(points[kept].tolist(), threshold, strict=True))
    ]


def _calibration_rows(table: Table, bins: int) -> list[dict[str, Any]]:
    """With the ends of each bin, which its mean lies in; a mean on an edge belongs to the bin below."""
    edges = np.linspace(0, 1, bins + 1)
    rows = [dict(zip(table.header, map(float, row), strict=True)) for row in table.rows]
    for row in rows:
        place = int(np.searchsorted(edges[1:-1], row["predicted"]))
        row["low"], row["high"] = edges[place].item(), edges[place + 1].item()
    return rows


def _confusion_rows(names: Sequence[str], counts: FloatArray) -> list[dict[str, Any]]:
    totals = counts.sum(axis=1).tolist()
    return [
        {"true": true, "predicted": given, "rows": n, "share": n / total if total else None, "text": _count(n)}
        for true, total, row in zip(names, totals, counts.tolist(), strict=True)
        for given, n in zip(names, row, strict=True)
    ]


def _count(n: float) -> str:
    return f"{n:,.0f}" if float(n).is_integer() else f"{n:,.5g}"


# Boundary ------------------------------------------------------------------------------------------------------------


def boundary(model: Any, X: Any, y: Any, *, sample_weight: Any = None, points: int = 2000, seed: int = 0) -> Any:
    """Where the most probable class of a model of two columns of numbers changes: s_j(x) = s_k(x) ≥ all other scores.

    - A generative model is drawn with the density of each class, at e^−½, e^−2 and e^−4½ of its peak (1, 2 and 3
      standard deviations of a normal one), and with the boundary of its twin after `polish(X, y)`: the discriminative
      fit of the same form. Before polishing, the twin's boundary is the model's own.
    - Any other classifier is drawn with its boundary alone.
    - `X`, `y`: rows as for `fit`. At most `points` of them are drawn, a random sample that `seed` gives again.

    >>> import deciban as db
    >>> X = [[0.0, 0.0], [1.0, 1.0], [1.0, 0.0], [3.0, 0.5], [2.0, 1.0], [1.5, 2.0], [0.5, 0.5]]
    >>> y = ["a", "a", "a", "b", "b", "b", "b"]
    >>> chart = boundary(db.GaussianDiscriminant().fit(X, y), X, y)
    >>> chart.to_dict()["title"]["text"]
    'Decision boundary of GaussianDiscriminant'
    """
    alt = library("altair")
    found = boundary_of(model, X, y, sample_weight, points, seed)
    domains = zip(found.low, found.high, strict=True)
    across, up = (_side(alt, *side) for side in zip("xy", found.names, domains, strict=True))
    base = alt.Chart().encode(x=alt.X(**across), y=alt.Y(**up))
    layers = [_dots, _densities, _ties] if found.densities else [_dots, _ties]
    title = _title(alt, f"Decision boundary of {type(model).__name__}", found.notes)
    drawn = alt.layer(*(layer(alt, base, found) for layer in layers))
    return drawn.properties(width=1.2 * SIDE, height=SIDE, title=title)


def _dots(alt: Any, base: Any, found: Boundary) -> Any:
    tips = [alt.Tooltip(f"{field}:Q", title=name) for field, name in zip("xy", found.names, strict=True)]
    marks = base.mark_circle(size=40 if len(found.points) <= 500 else 20, opacity=0.6, clip=True)
    colour = _colour(alt, "class", found.classes, "class", "circle")
    return marks.encode(color=colour, tooltip=["class:N", *tips]).properties(data=_data(alt, found.points))


def _densities(alt: Any, base: Any, found: Boundary) -> Any:
    marks = base.mark_line(strokeWidth=1, opacity=0.8, clip=True)
    colour = _colour(alt, "class", found.classes, "class", "circle")
    return marks.encode(color=colour, detail="line:N", order="order:Q").properties(data=_data(alt, found.densities))


def _ties(alt: Any, base: Any, found: Boundary) -> Any:
    """The boundary of each model; where they lie on top of each other, both show through the dashes of the second."""
    marks = base.mark_line(strokeWidth=2, clip=True)
    legend = alt.Legend(title="boundary", symbolType="stroke", symbolStrokeWidth=2, symbolSize=400)
    names = found.models
    colours = alt.Scale(domain=names, range=["black", MAGENTA][: len(names)])
    dashes = alt.Scale(domain=names, range=[[1, 0], [6, 4]][: len(names)])
    return marks.encode(
        stroke=alt.Stroke("model:N", scale=colours, legend=legend),
        strokeDash=alt.StrokeDash("model:N", scale=dashes, legend=legend),
        detail="line:N",
        order="order:Q",
    ).properties(data=_data(alt, found.ties))


# What charts are made of ---------------------------------------------------------------------------------------------


def _data(alt: Any, rows: list[dict[str, Any]]) -> Any:
    """Rows inside the chart; altair's limit of 5,000 is for tables that nobody thinned."""
    return alt.InlineData(values=rows)


def _side(alt: Any, field: str, title: str, domain: Iterable[float]) -> dict[str, Any]:
    """What alt.X and alt.Y are made of."""
    scale = alt.Scale(domain=list(map(float, domain)), nice=False, zero=False)
    axis = alt.Axis(grid=False, tickCount=6)
    return {"shorthand": field, "type": "quantitative", "title": title, "scale": scale, "axis": axis}


def _colour(alt: Any, field: str, names: list[str], title: str, symbol: str, *, shown: bool = True) -> Any:
    colours = {"range": list(COLOURS[: len(names)])} if len(names) <= len(COLOURS) else {"scheme": "turbo"}
    legend = alt.Legend(title=title, labelLimit=300, symbolType=symbol) if shown else None
    return alt.Color(field, type="nominal", scale=alt.Scale(domain=names, **colours), legend=legend)


def _diagonal(alt: Any) -> Any:
    ends = _data(alt, [{"x": 0, "y": 0}, {"x": 1, "y": 1}])
    return alt.Chart(ends).mark_line(color=GREY, strokeDash=[4, 4], strokeWidth=1).encode(x="x:Q", y="y:Q")


def _title(alt: Any, text: str, notes: Iterable[str] = ()) -> Any:
    lines = [line for note in notes for line in wrap(note, 80)]
    return alt.TitleParams(text, subtitle=lines, anchor="start", fontSize=14, subtitleColor=GREY)


def _angle(names: list[str], width: int) -> int:
    """Names that fit stand upright, others lean; a letter takes about 6 pixels."""
    return 0 if 6 * max(map(len, names)) <= width else -45


def _require_rows(evaluation: Any) -> None:
    if not evaluation.rows:
        raise DecibanError("there are no rows to draw")
