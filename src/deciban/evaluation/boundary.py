"""Where a model of two columns of numbers changes its mind: the data of a picture, not yet drawn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from deciban.batch import Frame
from deciban.errors import INFINITE, DecibanError, cell_error, require_whole
from deciban.evaluation.contours import Grid, extent, level_lines, on_an_axis, scored, thinned, ties
from deciban.schema import Schema
from deciban.sources.intake import LabelledInput
from deciban.sources.labels import Encoded
from deciban.table import Table, numbered
from deciban.types import FloatArray, IntArray, level_of

Row = dict[str, Any]  # of a chart

GENERATIVE, REFINED = "generative", "twin (refined)"
DEVIATIONS = (1, 2, 3)  # of density contours
FAR_BELOW = -20.0  # nats below the peak of a density: farther than any contour, and finite


@dataclass(frozen=True)
class Boundary:
    """Points, class densities and boundaries, as rows of a chart. Lines are points in their order."""

    names: list[str]  # (2) of the columns
    low: FloatArray  # (2) where the plane begins
    high: FloatArray  # (2) and ends
    classes: list[str]
    models: list[str]  # whose boundaries are drawn
    points: list[Row]  # class, x, y
    densities: list[Row]  # class, line, order, x, y
    ties: list[Row]  # model, line, order, x, y
    notes: list[str]


def boundary_of(model: Any, X: Any, y: Any, sample_weight: Any, most: int, seed: int) -> Boundary:
    """The boundary of a model, and that of its refined twin where it has one; at most `most` points."""
    sample = _sampled(model, X, y, sample_weight, most, seed)
    grid, scores = scored(partial(_scores, model), sample.cells)
    if not hasattr(model, "to_linear"):
        return _gathered(sample, {type(model).__name__: ties(grid, scores)}, [], [])
    with np.errstate(invalid="ignore"):  # −inf − −inf: a class of prior 0 has no density to show
        densities = _density_rows(sample, grid, scores - model.estimate_.log_prior)
    lines = {GENERATIVE: ties(grid, scores)}
    notes = ["thin lines: class densities at 1, 2 and 3 standard deviations (if normal)"]
    try:
        twin = model.to_linear().refine(X, y, sample_weight)
        lines[REFINED] = ties(*scored(partial(_scores, twin), sample.cells))
    except DecibanError as reason:  # the families have none, or these rows cannot refine it
        notes.append(f"no twin: {reason}")
    return _gathered(sample, lines, densities, notes)


@dataclass(frozen=True)
class _Sample:
    """The rows that are drawn."""

    names: list[str]  # (2) of the columns
    cells: FloatArray  # (n, 2)
    labels: list[str]  # (n)
    classes: list[str]  # of the model
    note: str

    def rows(self, lines: Iterable[FloatArray], **of_all: str) -> list[Row]:
        """Lines (m, 2), thinned, as rows of a chart."""
        low, high = extent(self.cells)
        return [
            {**of_all, "line": i, "order": order, "x": x, "y": y}
            for i, line in enumerate(lines)
            for order, (x, y) in enumerate(line[thinned((line - low) / (high - low))].tolist())
        ]


def _gathered(sample: _Sample, lines: dict[str, list[FloatArray]], densities: list[Row], notes: list[str]) -> Boundary:
    low, high = extent(sample.cells)
    pairs = zip(sample.labels, sample.cells.tolist(), strict=True)
    points = [{"class": label, "x": x, "y": y} for label, (x, y) in pairs]
    tied = [row for name, found in lines.items() for row in sample.rows(found, model=name)]
    notes = [sample.note, *notes]
    return Boundary(sample.names, low, high, sample.classes, list(lines), points, densities, tied, notes)


def _density_rows(sample: _Sample, grid: Grid, densities: FloatArray) -> list[Row]:
    """Contours of log p(x|c) (ny, nx, K), as far below its peak as a normal density is after t deviations: t²/2."""
    found = []
    for name, density in zip(sample.classes, np.moveaxis(densities, 2, 0), strict=True):
        below = np.fmax(density - np.fmax.reduce(density, axis=None), FAR_BELOW)  # NaN and −inf are far below, too
        lines = [line for t in DEVIATIONS for line in level_lines(grid, below, -(t**2) / 2)]
        found += sample.rows(lines, **{"class": name})
    return found


# What the model says -------------------------------------------------------------------------------------------------


def _scores(model: Any, nodes: FloatArray) -> FloatArray:
    """(n, K) scores of the classes at nodes (n, 2), up to a term common to all."""
    names = _names(model)
    rows = Table("nodes", names, tuple(map(tuple, nodes.tolist()))).to_frame() if names else nodes
    for method in ("predict_joint_log_proba", "decision_function", "predict_log_proba"):
        if hasattr(model, method):
            scores = np.asarray(getattr(model, method)(rows), dtype=np.float64)
            return scores if scores.ndim == 2 else np.column_stack([np.zeros(len(scores)), scores])
    raise DecibanError(f"{type(model).__name__} gives no scores to classes: it needs decision_function")


def _names(model: Any) -> tuple[str, ...]:
    """The columns as the model knows them; none where it was fitted to an array."""
    return tuple(getattr(model, "feature_names_in_", ()))


# Rows ----------------------------------------------------------------------------------------------------------------


def _sampled(model: Any, X: Any, y: Any, sample_weight: Any, most: int, seed: int) -> _Sample:
    sample = LabelledInput.of(X, y, sample_weight).sample()
    frame, encoded, weights = sample.frame, sample.labels, sample.weights
    places = _places(model, frame)
    cells = _cells(frame, places)
    present = ~np.isnan(cells).any(axis=1)
    rows = np.flatnonzero(present if weights is None else present & (weights > 0))
    if not len(rows) or most < 1:
        raise DecibanError("there is no point to draw: pass rows without missing cells, and points of 1 or more")
    drawn = np.random.default_rng(require_whole("seed", seed)).permutation(rows)[:most]
    labels, classes = _labels(model, encoded, drawn)
    names = [f"column {j}" if isinstance(frame.names, range) else str(frame.names[j]) for j in places]
    for name, column in zip(names, cells[drawn].T, strict=True):
        if not on_an_axis(column):
            ends = f"{column.min():.6g} to {column.max():.6g}"
            raise DecibanError(f"{name!r} cannot be drawn: its numbers, {ends}, are too large or too close together")
    return _Sample(names, cells[drawn], labels, classes, _note(len(drawn), len(rows), frame.rows))


def _places(model: Any, frame: Frame) -> list[int]:
    """Where the model's two columns stand in a frame."""
    if not hasattr(model, "classes_"):
        raise DecibanError(f"this {type(model).__name__} is not fitted yet: call fit first")
    if model.n_features_in_ != 2:
        raise DecibanError(
            f"a boundary is drawn over two columns of numbers; the model has {model.n_features_in_}: fit it on two"
        )
    places = Schema(_names(model) or range(2), ("number", "number")).own_places(frame)
    for j in places:
        if frame.kinds[j] != "number":
            raise DecibanError(f"column {frame.names[j]!r} does not hold numbers: fit a model of two columns that do")
    return places


def _cells(frame: Frame, places: list[int]) -> FloatArray:
    cells = np.asarray(frame.numbers(places), dtype=np.float64)
    if np.isinf(cells).any():
        row, j = np.argwhere(np.isinf(cells))[0].tolist()
        raise cell_error(frame.names[places[j]], row, cells[row, j].item(), INFINITE)
    return cells


def _labels(model: Any, encoded: Encoded, drawn: IntArray) -> tuple[list[str], list[str]]:
    """The classes of the rows that are drawn, and of the model, as text."""
    classes = [level_of(label) for label in np.asarray(model.classes_).tolist()]
    unknown = [label for label in encoded.classes if label not in classes]
    if unknown:
        raise DecibanError(f"class {unknown[0]!r} is not one of the model's: {classes}")
    shown = numbered(classes)
    place = [classes.index(label) for label in encoded.classes]
    return [shown[place[code]] for code in encoded.codes[drawn].tolist()], shown


def _note(drawn: int, present: int, rows: int) -> str:
    note = f"{drawn:,} rows" if drawn == present else f"a random sample of {drawn:,} of {present:,} rows"
    return note + (f"; {rows - present:,} with a missing cell or weight 0 are not drawn" if present < rows else "")
