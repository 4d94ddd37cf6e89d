"""Charts of features, as figures: the evidence of their values, and how common they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deciban.contributions import against_others
from deciban.data.arrays import MatrixFrame, SparseFrame
from deciban.data.arrow import TableFrame
from deciban.data.batch import Frame
from deciban.data.documents import TextFrame
from deciban.families import Binned
from deciban.lazy import lazy
from deciban.plots.figures import Figures, table
from deciban.report.axis_scales import bins_between, bins_of_rows, scale_of, spread
from deciban.report.class_shares import ENDS, Points, rows_with, shares_by_model, shares_counted
from deciban.report.contribution_figures import ContributionFigures, explained
from deciban.report.model_view import ModelView
from deciban.report.report_input import weights_of
from deciban.table import Table
from deciban.types import FloatArray, Level, level_of

sp = lazy("scipy.sparse")

GRID, LEAST = 65, 17  # the most and the fewest points of a curve
POINTS = 20_000  # of the curves of all features and classes, approximately
LEVELS = 30  # of a categorical feature that are shown one by one
LOW, HIGH = 0.1, 0.9  # quantiles of the range beside a mean
CURVE = ("value", "class", "decibans", "low", "high", "rows")
STEPS = (*ENDS, "class", "decibans", "low", "high", "rows")


def charts(view: ModelView, contributions: ContributionFigures, columns: Sequence[int]) -> list[Figures]:
    """A chart of each feature: exact if its evidence depends on no other feature, otherwise means over rows."""
    most = max(LEAST, min(GRID, POINTS // max(1, len(columns) * len(view.names))))
    at = {j: points(view, j, most) for j in columns if j not in view.joint}
    at = {j: each for j, each in at.items() if each.values}
    scored = _scored(view, at)
    figures = []
    for j in columns:
        if j in scored:
            figures.append(_exact(view, j, at[j], *scored[j]))
        elif j in contributions.columns:
            figures.append(_mean(view, j, contributions))
    return [chart for chart in figures if _is_informative(chart["evidence"])]


def _is_informative(evidence: Figures) -> bool:
    column = evidence["fields"].index("decibans")
    return any(row[column] for row in evidence["rows"])


def points(view: ModelView, j: int, most: int) -> Points:
    """The values to score a feature at: its levels, its bins, or up to `most` numbers."""
    if view.is_categorical(j):
        return _levels(view, j)
    x = view.data.column(j)
    family, params, at = view.family(j)
    if isinstance(family, Binned):
        return _steps(x[~np.isnan(x)], params.cuts[at])
    integers = family is not None and bool(np.isnan(family.allowed(np.array([[0.5]]))).all())
    return _curve(x[~np.isnan(x)], most, integers=integers)


def _steps(x: FloatArray, cuts: FloatArray) -> Points:
    """Steps from each cut to the next; the first begins at the smallest value, and the last ends at the largest."""
    if not len(x):
        return Points("steps", [], np.zeros(0))
    ends = np.array([x.min(), x.max(), *cuts])
    edges = np.array([ends.min(), *cuts, ends.max()])
    values = [float(np.nextafter(cuts[0], -np.inf)) if len(cuts) else float(x.min()), *cuts.tolist()]
    rows = np.bincount(np.searchsorted(cuts, x, side="right"), minlength=len(values))
    return Points("steps", values, rows.astype(np.float64), edges=edges, scale=scale_of(x))


def _curve(x: FloatArray, most: int, *, integers: bool = False) -> Points:
    """Up to `most` numbers over the range of a feature, evenly spaced on its scale; rounded to integers for counts."""
    if not len(x):
        return Points("numbers", [], np.zeros(0))
    scale = scale_of(x)
    values = spread(float(x.min()), float(x.max()), most, scale)
    values = np.unique(np.round(values)) if integers else values
    return Points("numbers", values.tolist(), np.full(len(values), np.nan), scale=scale)


def _levels(view: ModelView, j: int) -> Points:
    """The most common levels of the sample, then others of the training rows; missing values are a level, too."""
    sample, known = view.data.sample, view.levels.get(j, ())
    if isinstance(sample.frame, SparseFrame):
        distinct, index = np.unique(view.data.column(j), return_inverse=True)
        codes, levels = index.astype(np.int32), tuple(map(level_of, distinct.tolist()))
    else:
        coded = sample.frame.coded([view.data.position(j)])
        codes, levels = coded.codes[:, 0], coded.levels[0]
    if view.schema.kinds[j] == "boolean":
        levels = tuple(bool(level) for level in levels)
    counts = np.bincount(codes + 1, weights=weights_of(sample), minlength=len(levels) + 1)
    rows: dict[Level, float] = {level: float(n) for level, n in zip(levels, counts[1:], strict=True) if n}
    if counts[0] or None in known:
        rows[None] = float(counts[0])
    for level in known:
        rows.setdefault(level, 0.0)
    order = sorted(rows, key=lambda level: -rows[level])
    shown, rest = order[:LEVELS], order[LEVELS:]
    if len(rest) == 1:
        shown, rest = order, []
    others = len(rest), sum(rows[level] for level in rest)
    return Points("levels", shown, np.array([rows[level] for level in shown]), others)


def _scored(view: ModelView, points_of: dict[int, Points]) -> dict[int, tuple[FloatArray, FloatArray]]:
    """For each feature, (m, K) decibans at its points, and (m, K) nats of the base model."""
    if not points_of or isinstance(view.data.sample.frame, TextFrame):
        return {}
    frame = grid(view, {j: at.values for j, at in points_of.items()})
    names, nats = explained(view.model, frame)
    base_nats = nats if view.base is view.model else explained(view.base, frame)[1]
    index = {name: i for i, name in enumerate(names)}
    decibans = against_others(nats)
    scored = {}
    for j, at in points_of.items():
        i = index.get(str(view.schema.names[j]))
        if i is not None:
            scored[j] = decibans[: len(at.values), i], base_nats[: len(at.values), i]
    return scored


def grid(view: ModelView, values: dict[int, list[Any]]) -> Frame:
    """A frame whose row i has the i-th value of every feature; shorter columns repeat their last value.

    Features without values are missing.
    """
    schema, frame = view.schema, view.data.sample.frame
    rows, width = max(map(len, values.values())), len(schema.names)
    values = {j: [*column, *[column[-1]] * (rows - len(column))] for j, column in values.items()}
    if isinstance(frame, SparseFrame):
        at = [(i, j) for j, column in values.items() for i in range(len(column))]
        data = np.array([float(value) for column in values.values() for value in column])
        x = sp.csr_array((data, np.array(at, np.intp).reshape(-1, 2).T), shape=(rows, width))
        x.eliminate_zeros()
        return SparseFrame(x)
    if isinstance(frame, MatrixFrame):
        x = np.full((rows, width), np.nan)
        for j, column in values.items():
            x[:, j] = [np.nan if value is None else float(value) for value in column]
        return MatrixFrame(x)
    columns = [values.get(j, [None] * rows) for j in range(width)]
    names = tuple(str(name) for name in schema.names)
    table = Table("grid", names, tuple(zip(*columns, strict=True))).to_frame()
    return TableFrame(table, schema.names, schema.kinds)


def _exact(view: ModelView, j: int, at: Points, decibans: FloatArray, nats: FloatArray) -> Figures:
    """The evidence of a feature at its points."""
    rows = [
        (*at.keys(i), view.names[k], decibans[i, k], None, None, at.rows[i])
        for k in view.shown
        for i in range(len(at.values))
    ]
    if at.others[0]:
        rows += [(f"({at.others[0]} others)", view.names[k], None, None, None, at.others[1]) for k in view.shown]
    evidence = table(STEPS if at.edges is not None else CURVE, rows)
    by_model = view.estimate is not None and nats.any()
    common = shares_by_model(view, at, nats) if by_model else shares_counted(view, j, at)
    return _chart(view, j, at, evidence, common)


def _chart(view: ModelView, j: int, at: Points, evidence: Figures, common: tuple[Figures, str]) -> Figures:
    about = {"name": str(view.schema.names[j]), "chart": at.chart, "exact": j not in view.joint, "scale": at.scale}
    density, title = common
    return {**about, "evidence": evidence, "density": density, "density_title": title}


def _mean(view: ModelView, j: int, contributions: ContributionFigures) -> Figures:
    """The mean evidence of a feature over the rows of each level or bin, with its range."""
    decibans, weights = contributions.columns[j], contributions.weights
    if view.is_categorical(j):
        at = _levels(view, j)
        groups = rows_with(view, j, at.values)
        keys = [at.keys(i) for i in range(len(at.values))]
        if at.others[0]:
            groups.append(~np.any(groups, axis=0))
            keys.append((f"({at.others[0]} others)",))
    else:
        x = view.data.column(j)
        present = ~np.isnan(x)
        scale = scale_of(x[present])
        edges = bins_of_rows(x[present], weights[present], scale)
        count = len(edges) - 1
        at = Points("steps", edges[:-1].tolist(), np.zeros(count), edges=edges, scale=scale)
        bins = np.where(present, bins_between(edges, np.where(present, x, 0.0)), -1)
        groups, keys = [bins == i for i in range(count)], [at.keys(i) for i in range(count)]
    rows = [
        (*key, view.names[k], *_spread(decibans[group, k], weights[group]), weights[group].sum())
        for k in view.shown
        for key, group in zip(keys, groups, strict=True)
    ]
    fields = STEPS if at.edges is not None else CURVE
    return _chart(view, j, at, table(fields, rows), shares_counted(view, j, at))


def _spread(values: FloatArray, weights: FloatArray) -> tuple[float | None, float | None, float | None]:
    """The mean, and the quantiles LOW and HIGH."""
    if not len(values):
        return None, None, None
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    low, high = (values[order][np.searchsorted(reached, share * reached[-1])] for share in (LOW, HIGH))
    with np.errstate(invalid="ignore"):
        return float(np.average(values, weights=weights)), float(low), float(high)
