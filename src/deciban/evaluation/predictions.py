"""Labels and probabilities of any library, checked, with classes sorted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.data.class_index import ClassIndex
from deciban.data.labels import Encoded, check_weights, encode_labels
from deciban.errors import DecibanError
from deciban.statistics.statistic import drop_zero_weights
from deciban.types import FloatArray, Labels, Levels, level_of, sorted_levels

TOLERANCE = {np.dtype(np.float64): 1e-6, np.dtype(np.float32): 1e-4}  # of a row's sum from 1


@dataclass(frozen=True)
class Predictions:
    """Probabilities of rows, and their true classes."""

    classes: Levels  # sorted: of probabilities and labels together
    codes: Labels  # (n) positions in classes
    proba: FloatArray  # (n, K)
    weights: FloatArray | None  # (n)
    known: NDArray[np.bool_]  # (K) which classes have a column of probabilities


def read_predictions(y: Any, proba: Any, classes: Any, sample_weight: Any) -> Predictions:
    """Predictions of rows with their labels; rows of weight 0 are left out.

    >>> read_predictions(["b", "a"], [[0.9, 0.1], [0.2, 0.8]], ["b", "a"], None).proba
    array([[0.1, 0.9],
           [0.8, 0.2]])
    """
    encoded = encode_labels(y)
    n = len(encoded.codes)
    p = _matrix(proba, n)
    columns = getattr(proba, "columns", None)
    if classes is None and columns is not None and {*columns} == {*encoded.classes}:
        classes = list(columns)  # a table whose columns are named after the classes
    names = _names(classes, encoded, p.shape[1], n)
    weights = row_weights(sample_weight, n)
    p, codes, weights = drop_zero_weights(p, encoded.codes, weights)
    return _sorted(Encoded(codes, encoded.classes), names, p, weights)


def _sorted(encoded: Encoded, names: Levels, p: FloatArray, weights: FloatArray | None) -> Predictions:
    """Columns and codes in the order of the union of classes; a class without a column has probability 0."""
    seen = [encoded.classes[i] for i in np.flatnonzero(_kernels.count_labels(encoded.codes, len(encoded.classes)))]
    classes = sorted_levels({*names, *seen})
    index = ClassIndex(classes)
    columns = index.positions(names)
    if names != classes or p.shape[1] != len(classes):
        unsorted, p = p, np.zeros((len(p), len(classes)))
        p[:, columns] = unsorted[:, : len(names)]
    codes = index.recode(encoded.codes, encoded.classes)
    return Predictions(classes, codes, p, weights, np.isin(np.arange(len(classes)), columns))


def _names(classes: Any, encoded: Encoded, columns: int, rows: int) -> Levels:
    """The class of each column of probabilities."""
    if classes is None:
        if not rows:
            return ()
        if len(encoded.classes) != columns:
            listed = ", ".join(map(repr, encoded.classes))
            raise DecibanError(
                f"proba is for {columns} classes, but the labels are of {len(encoded.classes)} ({listed}): "
                "pass classes=, the class of each column, such as model.classes_"
            )
        return encoded.classes
    names = tuple(level_of(level) for level in (classes.tolist() if hasattr(classes, "tolist") else classes))
    if len(set(names)) != len(names):
        raise DecibanError(f"classes names a class twice: {', '.join(map(repr, names))}")
    if len(names) != columns and rows:
        raise DecibanError(f"proba has {columns} columns, but classes has {len(names)}: pass the class of each column")
    return names


def row_weights(sample_weight: Any, rows: int) -> FloatArray | None:
    """Weights as for `fit`, except that all may be 0: then there are no rows."""
    if sample_weight is None or not rows:
        return None
    w = np.array(sample_weight, dtype=np.float64)
    if w.shape == (rows,) and not w.any():
        return w
    return check_weights(w, rows)


def _matrix(proba: Any, rows: int) -> FloatArray:
    """(n, K), a copy in double precision; a vector is the probability of the second of two classes."""
    array = np.asarray(proba)
    if array.dtype.kind not in "fiub":
        raise DecibanError(f"proba must be numbers; it is of type {array.dtype}")
    if array.ndim not in (1, 2) or len(array) != rows:
        raise DecibanError(
            f"proba must have a row for each of the {rows} labels, (n, classes) or (n); its shape is {array.shape}"
        )
    if array.ndim == 2:
        p = np.array(array, dtype=np.float64, order="C")
    else:
        p = np.empty((rows, 2))
        p[:, 1] = array
        np.subtract(1.0, p[:, 1], out=p[:, 0])
    check_probabilities(p, TOLERANCE.get(array.dtype, 1e-6))
    return p


def check_probabilities(p: FloatArray, tolerance: float) -> None:
    """Raise an error if a probability is negative or missing, or a row does not sum to 1."""
    if not p.size:
        return
    if not p.min() >= 0:  # NaN too
        row, column = divmod(int(np.argmax(~(p >= 0))), p.shape[1])
        problem = "is missing" if np.isnan(p[row, column]) else f"is {p[row, column]:g}, which is negative"
        raise DecibanError(f"proba, row {row}: the probability in column {column} {problem}; drop or fix the row")
    sums = p @ np.ones(p.shape[1])
    bad = ~(np.abs(sums - 1) <= tolerance)
    if bad.any():
        row = int(np.argmax(bad))
        raise DecibanError(
            f"proba, row {row}: the probabilities add up to {sums[row]:.9g}, not 1: pass predict_proba's result, one "
            "column for each class (for other scores, use Roc.of)"
        )
