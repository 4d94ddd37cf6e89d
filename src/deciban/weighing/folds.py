"""Folds of rows: what looks at labels is judged by rows of a fold that it did not see."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from deciban.sources.sampling import Keys
from deciban.types import FloatArray, IntArray, Labels

FOLDS = 5
MOST_ROWS = 2_500  # that are dealt to folds
LEAST = 1e-9  # of a row: less is rounding


class Dealt(NamedTuple):
    """Rows in folds. A row that counts as several may be in several folds, with a part of its weight in each."""

    rows: IntArray  # (m) places
    folds: IntArray  # (m)
    weights: FloatArray | None  # (m)


def deal(keys: Keys, labels: Labels, weights: FloatArray | None) -> Dealt:
    """Every row in the fold that its key names; of rows that are equal, each in the next fold.

    So the folds depend on what rows hold, and not on their order; where a table has few different rows, all folds have
    them; and a row of weight 2 is dealt as the row twice.

    >>> keys, labels = np.array([3 << 20, 7 << 20, 3 << 20], np.uint64), np.zeros(3, np.int32)
    >>> deal(keys, labels, None).folds.tolist()
    [3, 2, 4]
    >>> deal(keys[:1], labels[:1], np.array([2.5]))
    Dealt(rows=array([0, 0, 0]), folds=array([3, 4, 0]), weights=array([1. , 1. , 0.5]))
    """
    first = ((keys >> np.uint64(20)) % np.uint64(FOLDS)).astype(np.intp)
    before = _weight_before(keys, labels, weights)
    if weights is None:
        return Dealt(np.arange(len(keys)), (first + before.astype(np.intp)) % FOLDS, None)
    parts = _dealt_until(before + weights) - _dealt_until(before)  # (n, FOLDS), from the first fold of a row on
    rows, turns = np.nonzero(parts > LEAST)
    return Dealt(rows, (first[rows] + turns) % FOLDS, parts[rows, turns])


def _weight_before(keys: Keys, labels: Labels, weights: FloatArray | None) -> FloatArray:
    """(n) the weight of the rows that are equal to a row, and come before it."""
    order = np.lexsort((labels, keys))
    begins = np.ones(len(keys), np.bool_)
    begins[1:] = (np.diff(keys[order]) != 0) | (np.diff(labels[order]) != 0)
    total = np.arange(float(len(keys))) if weights is None else np.cumsum(weights[order]) - weights[order]
    before = np.empty(len(keys))
    before[order] = total - total[begins][np.cumsum(begins) - 1]
    return before


def _dealt_until(weight: FloatArray) -> FloatArray:
    """(n, FOLDS) how much of a weight each fold has, if it is dealt one by one, in turn."""
    rounds, rest = np.divmod(weight, FOLDS)
    result: FloatArray = rounds[:, np.newaxis] + np.clip(rest[:, np.newaxis] - np.arange(FOLDS), 0.0, 1.0)
    return result
