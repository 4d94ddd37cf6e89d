"""Folds of rows: what looks at labels is judged by rows of a fold that it did not see."""

from __future__ import annotations

import numpy as np

from deciban.sources.sampling import Keys
from deciban.types import IntArray

FOLDS = 5
MOST_ROWS = 2_500  # that are dealt to folds


def fold_of(keys: Keys) -> IntArray:
    """(n) the fold of each row: a function of what it holds, so equal rows are in one fold, in any order."""
    return ((keys >> np.uint64(20)) % np.uint64(FOLDS)).astype(np.intp)
