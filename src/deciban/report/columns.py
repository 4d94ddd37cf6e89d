"""Charts of columns, as figures: what each of their values says, and how often it is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deciban.batch import Frame
from deciban.charts.figures import Figures, table
from deciban.contributions import against_others
from deciban.late import late
from deciban.report.parts import Told, explained
from deciban.report.reading import Reading
from deciban.report.rows import weights_of
from deciban.report.scales import bins_between, bins_of_rows, scale_of, spread
from deciban.report.shares import ENDS, Points, shares_by_model, shares_counted
from deciban.sources.arrays import MatrixFrame, SparseFrame
from deciban.sources.arrow import TableFrame
from deciban.sources.documents import TextFrame
from deciban.table import Table
from deciban.types import FloatArray, Level, Levels

sp = late("scipy.sparse")

GRID, LEAST = 65, 17  # points of a curve, at most and at least
POINTS = 20_000  # of the curves of all columns and classes, about
LEVELS = 30  # of a category that are shown by themselves
LOW, HIGH = 0.1, 0.9  # of the rows: the range beside a mean
CURVE = ("value", "class", "decibans", "low", "high", "rows")
STEPS = (*ENDS, "class", "decibans", "low", "high", "rows")


def charts(reading: Reading, found: Told, columns: Sequence[int]) -> list[Figures]:
    """A chart of each column: exact where it speaks by itself, otherwise the mean over rows."""
    alone = [j for j in columns if j not in reading.together]
    fine = max(LEAST, min(GRID, POINTS // max(1, len(columns) * len(reading.names))))
    asked = {j: points(reading, j, fine) for j in alone}
    asked = {j: at for j, at in asked.items() if at.values}
    scored = _scored(reading, asked)
    made = []
    for j in columns:
        if j in scored:
            made.append(_exact(reading, j, asked[j], *scored[j]))
        elif j in found.columns:
            made.append(_mean(reading, j, found))
    return [chart for chart in made if _says(chart["evidence"])]


def _says(evidence: Figures) -> bool:
    """Whether anything is not 0."""
    place = evidence["fields"].index("decibans")
    return any(row[place] for row in evidence["rows"])


def points(reading: Reading, j: int, fine: int) -> Points:
    """Where to ask a column that speaks by itself: its values, its bins, or so many numbers."""
    if reading.is_levels(j):
        return _levels(reading, j)
    x = reading.column(j)
    name, params, at = reading.family(j)
    if name == "Binned":
        return _steps(x[~np.isnan(x)], params.cuts[at])
    return _curve(x[~np.isnan(x)], fine, whole=name == "Poisson")


def _steps(x: FloatArray, cuts: FloatArray) -> Points:
    """From each cut to the next, the first and the last step as far as there are numbers."""
    if not len(x):
        return Points("steps", [], np.zeros(0))
    ends = np.array([x.min(), x.max(), *cuts])
    edges = np.array([ends.min(), *cuts, ends.max()])
    values = [float(np.nextafter(cuts[0], -np.inf)) if len(cuts) else float(x.min()), *cuts.tolist()]
    rows = np.bincount(np.searchsorted(cuts, x, side="right"), minlength=len(values))
    return Points("steps", values, rows.astype(np.float64), edges=edges, scale=scale_of(x))


def _curve(x: FloatArray, fine: int, *, whole: bool = False) -> Points:
    """So many numbers over the range of a column, evenly on its scale; of counts, whole ones."""
    if not len(x):
        return Points("numbers", [], np.zeros(0))
    scale = scale_of(x)
    values = spread(float(x.min()), float(x.max()), fine, scale)
    asked = np.unique(np.round(values)) if whole else values
    return Points("numbers", asked.tolist(), np.full(len(asked), np.nan), scale=scale)


def _levels(reading: Reading, j: int) -> Points:
    """The values that most rows have, then those that were learned; a missing cell is one where some are missing."""
    sample = reading.of.sample
    weights = weights_of(sample)
    known = reading.levels.get(j, ())
    if isinstance(sample.frame, SparseFrame):
        x = reading.column(j)
        held, places = np.unique(x, return_inverse=True)
        codes = places.astype(np.int32)
        levels: Levels = tuple(int(v) if float(v).is_integer() else float(v) for v in held.tolist())
    else:
        coded = sample.frame.coded([reading.place(j)])
        codes, levels = coded.codes[:, 0], coded.levels[0]
    if reading.schema.kinds[j] == "boolean":
        levels = tuple(bool(level) for level in levels)
    counts = np.bincount(codes + 1, weights=weights, minlength=len(levels) + 1)
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


def _scored(reading: Reading, asked: dict[int, Points]) -> dict[int, tuple[FloatArray, FloatArray]]:
    """Of each column (m, K) decibans at its points, and (m, K) nats of the model before any correction."""
    if not asked or isinstance(reading.of.sample.frame, TextFrame):
        return {}
    frame = grid(reading, {j: at.values for j, at in asked.items()})
    names, nats = explained(reading.model, frame)
    plainly = nats if reading.own is reading.model else explained(reading.own, frame)[1]
    place = {name: i for i, name in enumerate(names)}
    decibans = against_others(nats)
    found = {}
    for j, at in asked.items():
        i = place.get(str(reading.schema.names[j]))
        if i is not None:
            found[j] = decibans[: len(at.values), i], plainly[: len(at.values), i]
    return found


def grid(reading: Reading, values: dict[int, list[Any]]) -> Frame:
    """Rows of which row i holds the i-th value of every column; shorter columns repeat their last.

    A model may refuse a missing cell. Columns that are not asked have missing cells.
    """
    schema, frame = reading.schema, reading.of.sample.frame
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
    made = Table("grid", names, tuple(zip(*columns, strict=True))).to_frame()
    return TableFrame(made, schema.names, schema.kinds)


def _exact(reading: Reading, j: int, at: Points, decibans: FloatArray, nats: FloatArray) -> Figures:
    """What a column says at its points, by itself."""
    rows = [
        (*at.keys(i), reading.names[k], decibans[i, k], None, None, at.rows[i])
        for k in reading.shown
        for i in range(len(at.values))
    ]
    if at.others[0]:
        rows += [(f"({at.others[0]} others)", reading.names[k], None, None, None, at.others[1]) for k in reading.shown]
    evidence = table(STEPS if at.edges is not None else CURVE, rows)
    by_model = reading.estimate is not None and nats.any()
    common = shares_by_model(reading, at, nats) if by_model else shares_counted(reading, j, at)
    return _chart(reading, j, at, evidence, common, exact=True)


def _chart(
    reading: Reading, j: int, at: Points, evidence: Figures, common: tuple[Figures, str], *, exact: bool
) -> Figures:
    told = {"name": str(reading.schema.names[j]), "chart": at.chart, "exact": exact, "scale": at.scale}
    density, of = common
    return {**told, "evidence": evidence, "density": density, "density_title": of}


# Means over rows -----------------------------------------------------------------------------------------------------


def _mean(reading: Reading, j: int, found: Told) -> Figures:
    """The mean of what rows with each value, or in each bin, were told by a column, and where most of them lie."""
    decibans, weights = found.columns[j], found.weights
    if reading.is_levels(j):
        at = _levels(reading, j)
        coded = reading.of.sample.frame.coded([reading.place(j)])
        place = {level: i for i, level in enumerate(coded.levels[0])}
        groups = [coded.codes[:, 0] == (-1 if v is None else place.get(v, len(place))) for v in at.values]
        keys = [at.keys(i) for i in range(len(at.values))]
        if at.others[0]:
            groups.append(~np.any(groups, axis=0))
            keys.append((f"({at.others[0]} others)",))
    else:
        x = reading.column(j)
        there = ~np.isnan(x)
        scale = scale_of(x[there])
        edges = bins_of_rows(x[there], weights[there], scale)
        count = len(edges) - 1
        at = Points("steps", edges[:-1].tolist(), np.zeros(count), edges=edges, scale=scale)
        bins = np.where(there, bins_between(edges, np.where(there, x, 0.0)), -1)
        groups, keys = [bins == i for i in range(count)], [at.keys(i) for i in range(count)]
    rows = []
    for k in reading.shown:
        for key, mine in zip(keys, groups, strict=True):
            rows.append((*key, reading.names[k], *_spread(decibans[mine, k], weights[mine]), weights[mine].sum()))
    fields = STEPS if at.edges is not None else CURVE
    return _chart(reading, j, at, table(fields, rows), shares_counted(reading, j, at), exact=False)


def _spread(values: FloatArray, weights: FloatArray) -> tuple[float | None, float | None, float | None]:
    """Mean, and the values below which a tenth and nine tenths of the weight lie."""
    if not len(values):
        return None, None, None
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    low, high = (values[order][np.searchsorted(reached, share * reached[-1])] for share in (LOW, HIGH))
    with np.errstate(invalid="ignore"):
        return float(np.average(values, weights=weights)), float(low), float(high)
