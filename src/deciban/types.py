"""Types that all rooms share."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]
Labels = NDArray[np.int32]  # the index of each row's class
Index = Sequence[int] | IntArray

Level = Hashable  # a value of a column or label: a str, int, float or bool; None is a missing value that counts as one
Levels = tuple[Level, ...]
Names = Levels | range  # of columns; those of an array are their positions
# what a number must be: 0 or 1, above 0, a whole number of 0 or more, 0 or more, not too large; "there": not missing
Domain = Literal["binary", "positive", "count", "amount", "squarable", "there"]


def level_of(value: Any) -> Level:
    """A plain Python value; a whole float is an int, so that 1 and 1.0 are one level."""
    value = value.item() if isinstance(value, np.generic) else value
    return int(value) if isinstance(value, float) and value.is_integer() else value


def sorted_levels(levels: Iterable[Level]) -> Levels:
    """Numbers first, then text, then None.

    >>> sorted_levels(["b", 2, None, "a", 1])
    (1, 2, 'a', 'b', None)
    """
    known = list(levels)
    if {*map(type, known)} <= {str}:  # the usual case, ten times as fast without a key
        return tuple(sorted(known))  # type: ignore[type-var]

    def order(level: Level) -> tuple[int, Any]:
        if level is None:
            return (2, 0)
        return (0, level) if isinstance(level, (bool, int, float)) else (1, level)

    return tuple(sorted(known, key=order))


def is_sorted(levels: Levels) -> bool:
    """Whether levels are all different, and in the order of `sorted_levels`."""
    return len(set(levels)) == len(levels) and sorted_levels(levels) == levels
