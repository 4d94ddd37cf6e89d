"""Folds of rows: what depends on labels is evaluated on a fold that was not used for it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from deciban.data.sampling import Keys
from deciban.types import FloatArray, IntArray, Labels

FOLDS = 5
MOST_ROWS = 2_500  # that are assigned to folds
LEAST = 1e-9  # weight: less is rounding


class FoldAssignment(NamedTuple):
    """Rows in folds. A row of weight above 1 may be in several folds, with a part of its weight in each."""

    rows: IntArray  # (m) indices
    folds: IntArray  # (m)
    weights: FloatArray | None  # (m)


def assign_folds(keys: Keys, labels: Labels, weights: FloatArray | None) -> FoldAssignment:
    """Assigns each row to the fold of its key, and each further duplicate to the next fold.

    So folds depend on the values of rows, and not on their order; if a table has few distinct rows, all folds have
    them; and a row of weight 2 is assigned as the row twice.

    >>> keys, labels = np.array([3 << 20, 7 << 20, 3 << 20], np.uint64), np.zeros(3, np.int32)
    >>> assign_folds(keys, labels, None).folds.tolist()
    [3, 2, 4]
    >>> assign_folds(keys[:1], labels[:1], np.array([2.5]))
    FoldAssignment(rows=array([0, 0, 0]), folds=array([3, 4, 0]), weights=array([1. , 1. , 0.5]))
    """
    first = ((keys >> np.uint64(20)) % np.uint64(FOLDS)).astype(np.intp)
    before = _weight_before(keys, labels, weights)
    if weights is None:
        return FoldAssignment(np.arange(len(keys)), (first + before.astype(np.intp)) % FOLDS, None)
    parts = _assigned_until(before + weights) - _assigned_until(before)  # (n, FOLDS), from the first fold of a row on
    rows, turns = np.nonzero(parts > LEAST)
    return FoldAssignment(rows, (first[rows] + turns) % FOLDS, parts[rows, turns])


def _weight_before(keys: Keys, labels: Labels, weights: FloatArray | None) -> FloatArray:
    """(n) the weight of the duplicates of a row that come before it."""
    order = np.lexsort((labels, keys))
    begins = np.ones(len(keys), np.bool_)
    begins[1:] = (np.diff(keys[order]) != 0) | (np.diff(labels[order]) != 0)
    total = np.arange(float(len(keys))) if weights is None else np.cumsum(weights[order]) - weights[order]
    before = np.empty(len(keys))
    before[order] = total - total[begins][np.cumsum(begins) - 1]
    return before


def _assigned_until(weight: FloatArray) -> FloatArray:
    """(n, FOLDS) the weight in each fold, if the folds take one unit of weight in turn."""
    rounds, rest = np.divmod(weight, FOLDS)
    return rounds[:, np.newaxis] + np.clip(rest[:, np.newaxis] - np.arange(FOLDS), 0.0, 1.0)
