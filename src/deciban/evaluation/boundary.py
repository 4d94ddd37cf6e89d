"""Decision boundaries of models of two numeric features, as figures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from deciban.data.batch import Frame
from deciban.data.class_index import ClassIndex
from deciban.data.column_reader import AS_GIVEN
from deciban.data.intake import rows_in_memory
from deciban.data.labels import Encoded
from deciban.data.sampling import seed_of
from deciban.data.schema import Schema
from deciban.errors import INFINITE, DecibanError, cell_error, require_whole
from deciban.evaluation.fitted_model import FittedModel
from deciban.plots.contours import Grid, extent, fits_an_axis, level_lines, score_grid, thinned, ties
from deciban.plots.figures import Figures
from deciban.table import Table, numbered
from deciban.types import FloatArray, IntArray, level_of

Row = dict[str, Any]  # of a chart's data

GENERATIVE, REFINED = "generative", "linear (refined)"
DEVIATIONS = (1, 2, 3)  # standard deviations of the density contours
FAR_BELOW = -20.0  # nats below the peak of a density, farther than any contour


@dataclass(frozen=True)
class Boundary:
    """Points, class densities and boundaries, as rows of a chart; lines are points in their order."""

    names: list[str]  # (2) the features
    low: FloatArray  # (2) the lower ends of the axes
    high: FloatArray  # (2) the upper ends
    classes: list[str]
    models: list[str]  # a boundary each
    points: list[Row]  # class, x, y
    densities: list[Row]  # class, line, order, x, y
    ties: list[Row]  # model, line, order, x, y
    notes: list[str]

    def figure(self) -> Figures:
        tables = {name: _table(getattr(self, name)) for name in ("points", "densities", "ties")}
        plane = {"names": self.names, "low": self.low.tolist(), "high": self.high.tolist()}
        return {**tables, **plane, "classes": self.classes, "models": self.models, "notes": self.notes}


def _table(rows: list[Row]) -> Figures:
    return {"fields": list(rows[0]) if rows else [], "rows": [list(row.values()) for row in rows]}


def boundary_figures(
    model: Any, X: Any, y: Any, *, sample_weight: Any = None, points: int = 2000, random_state: int | None = 0
) -> Figures:
    """The figures of a chart of a decision boundary; see `plot_boundary` of the models.

    >>> import deciban as db
    >>> X = [[0.0, 0.0], [1.0, 1.0], [1.0, 0.0], [3.0, 0.5], [2.0, 1.0], [1.5, 2.0], [0.5, 0.5]]
    >>> y = ["a", "a", "a", "b", "b", "b", "b"]
    >>> boundary_figures(db.GaussianDiscriminant().fit(X, y), X, y)["heading"]
    'Decision boundary of GaussianDiscriminant'
    """
    boundary = boundary_of(model, X, y, sample_weight, points, seed_of(random_state))
    return {"figure": boundary.figure(), "heading": f"Decision boundary of {type(model).__name__}"}


def boundary_of(model: Any, X: Any, y: Any, sample_weight: Any, points: int, seed: int) -> Boundary:
    """Where the most probable class of a model of two numeric features changes: s_j(x) = s_k(x) ≥ all other scores.

    For a generative model, also contours of the density of each class, at e^−½, e^−2 and e^−4½ of its peak (1, 2 and
    3 standard deviations of a normal one), and the boundary of its linear form after `refine(X, y)`, if it has one.
    At most `points` rows are drawn, at random.
    """
    sample = _sample(model, X, y, sample_weight, points, seed)
    grid, scores = score_grid(partial(_scores, model), sample.cells)
    if not isinstance(model, FittedModel) or model.generative_ is None:
        return _boundary(sample, {type(model).__name__: ties(grid, scores)}, [], [])
    with np.errstate(invalid="ignore"):  # −inf − −inf: a class of prior 0
        densities = _density_rows(sample, grid, scores - model.scorer_.log_prior)
    lines = {GENERATIVE: ties(grid, scores)}
    notes = ["thin lines: class densities at 1, 2 and 3 standard deviations (if normal)"]
    if "to_linear" not in model.capabilities:
        notes.append(f"no linear form: the evidence of an {type(model).__name__} is not linear in its features")
        return _boundary(sample, lines, densities, notes)
    try:
        linear = model.to_linear().refine(X, y, sample_weight)
        lines[REFINED] = ties(*score_grid(partial(_scores, linear), sample.cells))
    except DecibanError as reason:  # the families have no linear form, or these rows cannot refine it
        notes.append(f"no linear form: {reason}")
    return _boundary(sample, lines, densities, notes)


@dataclass(frozen=True)
class _Sample:
    """The rows to draw."""

    names: list[str]  # (2) the features
    cells: FloatArray  # (n, 2)
    labels: list[str]  # (n)
    classes: list[str]  # of the model
    note: str

    def rows(self, lines: Iterable[FloatArray], **constants: str) -> list[Row]:
        """Lines (m, 2), thinned, as rows of a chart; `constants` are the same in every row."""
        low, high = extent(self.cells)
        return [
            {**constants, "line": i, "order": order, "x": x, "y": y}
            for i, line in enumerate(lines)
            for order, (x, y) in enumerate(line[thinned((line - low) / (high - low))].tolist())
        ]


def _boundary(sample: _Sample, lines: dict[str, list[FloatArray]], densities: list[Row], notes: list[str]) -> Boundary:
    low, high = extent(sample.cells)
    pairs = zip(sample.labels, sample.cells.tolist(), strict=True)
    points = [{"class": label, "x": x, "y": y} for label, (x, y) in pairs]
    tie_rows = [row for name, line in lines.items() for row in sample.rows(line, model=name)]
    notes = [sample.note, *notes]
    return Boundary(sample.names, low, high, sample.classes, list(lines), points, densities, tie_rows, notes)


def _density_rows(sample: _Sample, grid: Grid, densities: FloatArray) -> list[Row]:
    """Contours of log p(x|c) (ny, nx, K) at t²/2 below its peak, as a normal density has at t standard deviations."""
    rows = []
    for name, density in zip(sample.classes, np.moveaxis(densities, 2, 0), strict=True):
        below = np.fmax(density - np.fmax.reduce(density, axis=None), FAR_BELOW)  # NaN and −inf, too
        lines = [line for t in DEVIATIONS for line in level_lines(grid, below, -(t**2) / 2)]
        rows += sample.rows(lines, **{"class": name})
    return rows


# Scores of the model -------------------------------------------------------------------------------------------------


def _scores(model: Any, nodes: FloatArray) -> FloatArray:
    """(n, K) class scores at nodes (n, 2), up to a term common to all classes."""
    names = _names(model)
    rows = Table("nodes", names, tuple(map(tuple, nodes.tolist()))).to_frame() if names else nodes
    for method in ("predict_joint_log_proba", "decision_function", "predict_log_proba"):
        if hasattr(model, method):
            scores = np.asarray(getattr(model, method)(rows), dtype=np.float64)
            return scores if scores.ndim == 2 else np.column_stack([np.zeros(len(scores)), scores])
    raise DecibanError(f"{type(model).__name__} has no class scores: it needs decision_function or predict_log_proba")


def _names(model: Any) -> tuple[str, ...]:
    """The names of the features; () for a model that was fitted to an array."""
    return tuple(getattr(model, "feature_names_in_", ()))


# Rows ----------------------------------------------------------------------------------------------------------------


def _sample(model: Any, X: Any, y: Any, sample_weight: Any, points: int, seed: int) -> _Sample:
    sample = rows_in_memory(X, y, sample_weight, AS_GIVEN)
    frame, encoded, weights = sample.frame, sample.labels, sample.weights
    positions = _positions(model, frame)
    cells = _cells(frame, positions)
    present = ~np.isnan(cells).any(axis=1)
    rows = np.flatnonzero(present if weights is None else present & (weights > 0))
    if not len(rows) or points < 1:
        raise DecibanError("there is no point to draw: pass rows without missing values, and points=1 or more")
    drawn = np.random.default_rng(require_whole("seed", seed)).permutation(rows)[:points]
    labels, classes = _labels(model, encoded, drawn)
    names = [f"column {j}" if isinstance(frame.names, range) else str(frame.names[j]) for j in positions]
    for name, column in zip(names, cells[drawn].T, strict=True):
        if not fits_an_axis(column):
            ends = f"{column.min():.6g} to {column.max():.6g}"
            raise DecibanError(f"{name!r} cannot be drawn: its numbers, {ends}, are too large or too close together")
    return _Sample(names, cells[drawn], labels, classes, _note(len(drawn), len(rows), frame.rows))


def _positions(model: Any, frame: Frame) -> list[int]:
    """The positions of the model's two features in a frame."""
    if not hasattr(model, "classes_"):
        raise DecibanError(f"this {type(model).__name__} is not fitted yet: call fit first")
    if model.n_features_in_ != 2:
        raise DecibanError(
            f"a boundary needs a model of two numeric features; this one has {model.n_features_in_}: fit it to two"
        )
    positions = Schema(_names(model) or range(2), ("number", "number")).positions(frame)
    for j in positions:
        if frame.kinds[j] != "number":
            raise DecibanError(f"column {frame.names[j]!r} does not hold numbers: fit a model of two numeric features")
    return positions


def _cells(frame: Frame, positions: list[int]) -> FloatArray:
    cells = np.asarray(frame.numbers(positions), dtype=np.float64)
    if np.isinf(cells).any():
        row, j = np.argwhere(np.isinf(cells))[0].tolist()
        raise cell_error(frame.names[positions[j]], row, cells[row, j].item(), INFINITE)
    return cells


def _labels(model: Any, encoded: Encoded, drawn: IntArray) -> tuple[list[str], list[str]]:
    """The labels of the drawn rows, and the classes of the model, as text."""
    classes = tuple(level_of(label) for label in np.asarray(model.classes_).tolist())
    unknown = [label for label in encoded.classes if label not in classes]
    if unknown:
        raise DecibanError(f"class {unknown[0]!r} is not one of the model's: {list(classes)}")
    shown = numbered(classes)
    codes = ClassIndex(classes).recode(encoded.codes[drawn], encoded.classes)
    return [shown[code] for code in codes.tolist()], shown


def _note(drawn: int, present: int, rows: int) -> str:
    note = f"{drawn:,} rows" if drawn == present else f"a random sample of {drawn:,} of {present:,} rows"
    return note + (f"; {rows - present:,} with a missing value or weight 0 are not drawn" if present < rows else "")
