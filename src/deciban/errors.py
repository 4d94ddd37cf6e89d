"""What can go wrong, in words for the person who has to mend it."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray


class DecibanError(ValueError):
    """Bad input or an impossible request; the message names the column and row and says what to do."""


class NotInvertible(DecibanError):
    """The statistic cannot forget: extrema, for one, do not remember what they replaced."""


class NegativeEvidence(DecibanError):
    """More evidence was taken away than was there; the model is as it was before."""


class DecibanWarning(UserWarning):
    """The result is sound, but something about the data deserves a look."""


def warn(message: str) -> None:
    """A DecibanWarning that points at the caller's line, however deep in here it arose."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in ("deciban", "sklearn"):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, DecibanWarning, stacklevel=max(2, level - 1))


def cell_error(column: object, row: int, value: object, problem: str) -> DecibanError:
    """An error about one cell. Rows count from 0, as in the table that was passed."""
    return DecibanError(f"column {column!r}, row {row}: {value!r} {problem}")


class BadCell(Exception):
    """Raised inside a family, which knows places but not names; the model makes a DecibanError of it."""

    def __init__(self, row: int, column: int, problem: str) -> None:
        super().__init__(row, column, problem)
        self.row, self.column, self.problem = row, column, problem


def forbid(bad: NDArray[np.bool_], problem: str) -> None:
    """Raises BadCell for the first True, row by row."""
    if bad.any():
        row, column = divmod(int(np.argmax(bad)), bad.shape[1])
        raise BadCell(row, column, problem)


def forbid_infinite(x: NDArray[Any]) -> None:
    forbid(np.isinf(x), "is infinite: use NaN for a missing cell, or remove the row")


def forbid_stored(x: Any, bad: NDArray[np.bool_], problem: str) -> None:
    """The same for what compressed sparse rows store."""
    if bad.any():
        place = int(np.argmax(bad))
        row = int(np.searchsorted(x.indptr, place, side="right")) - 1
        raise BadCell(row, int(x.indices[place]), problem)
