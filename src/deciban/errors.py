"""What can go wrong, in words for the person who has to mend it."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray


class DecibanError(ValueError):
    """Bad input or an impossible request; the message names the column and row and says what to do.

    >>> import deciban as db
    >>> db.NaiveBayes().fit([[1.0], [2.0]], ["no", "yes", "no"])
    Traceback (most recent call last):
    deciban.errors.DecibanError: Found input variables with inconsistent numbers of samples: 2 rows, 3 labels
    """


def require(holds: Any, problem: str) -> None:
    if not holds:
        raise DecibanError(problem)


def require_whole(name: str, value: Any, least: int = 0) -> int:
    """A setting that must be a whole number, such as a seed.

    >>> require_whole("seed", -1)
    Traceback (most recent call last):
    deciban.errors.DecibanError: seed must be a whole number of 0 or more (and below 2**63), not -1
    """
    if not isinstance(value, Integral) or not least <= int(value) < 1 << 63:
        raise DecibanError(f"{name} must be a whole number of {least} or more (and below 2**63), not {value!r}")
    return int(value)


class NotInvertible(DecibanError):
    """The statistic cannot forget: extrema, for one, do not remember what they replaced.

    >>> import deciban as db
    >>> model = db.NaiveBayes(db.families.Uniform()).fit([[1.0], [2.0]], ["no", "yes"])
    >>> try:
    ...     model.forget([[1.0]], ["no"])
    ... except db.NotInvertible:
    ...     print("fit again without these rows")
    fit again without these rows
    """


class NegativeEvidence(DecibanError):
    """More evidence was taken away than was there; the model is as it was before.

    >>> import deciban as db
    >>> model = db.NaiveBayes().fit([[1.0], [2.0]], ["no", "yes"])
    >>> model.forget([[1.0]], ["perhaps"])
    Traceback (most recent call last):
    deciban.errors.NegativeEvidence: class 'perhaps' was never learned; the model is unchanged
    """


class RowError(DecibanError):
    """An error about one row: `row` is its number, from 0, in the table that was passed. For a file the line is named.

    >>> import deciban as db
    >>> db.NaiveBayes().fit([[1.0], [float("inf")]], ["no", "yes"])
    Traceback (most recent call last):
    deciban.errors.RowError: column 0, row 1: inf is infinite: use NaN for a missing cell, or remove the row
    """

    def __init__(self, where: str, row: int, problem: str) -> None:
        super().__init__(f"{where}, row {row}: {problem}")
        self.where, self.row, self.problem = where, row, problem

    def __reduce__(self) -> tuple[Any, ...]:
        return RowError, (self.where, self.row, self.problem)

    def at(self, where: str) -> DecibanError:
        """The same, for who knows the row by its file and line."""
        return DecibanError(f"{where}: {self.where}: {self.problem}")


class DecibanWarning(UserWarning):
    """The result is sound, but something about the data deserves a look.

    >>> import warnings
    >>> import deciban as db
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     status = db.GaussianDiscriminant().fit([[1.0, 2.0], [3.0, 6.0], [5.0, 10.0]], [0, 0, 1]).status_
    >>> caught[0].category is db.DecibanWarning
    True
    """


class LeakageWarning(DecibanWarning):
    """A column predicts the class almost perfectly by itself: it may have been recorded after the outcome.

    Drop such a column, unless it is known when you predict. If it is, silence the warning:

    >>> import warnings
    >>> import deciban as db
    >>> warnings.simplefilter("ignore", db.LeakageWarning)
    """


@dataclass
class CapturedWarnings:
    """Warnings that were kept."""

    messages: list[str] = field(default_factory=list)
    impossible: int = 0  # rows that are impossible under every class


_heard: ContextVar[CapturedWarnings | None] = ContextVar("heard", default=None)


@contextmanager
def capture_warnings() -> Iterator[CapturedWarnings]:
    """Captures the warnings of this thread, to be issued later from the caller, or dropped."""
    heard = CapturedWarnings()
    token = _heard.set(heard)
    try:
        yield heard
    finally:
        _heard.reset(token)


def warn(message: str, category: type[DecibanWarning] = DecibanWarning) -> None:
    """A warning that points at the caller's line, however deep in here it arose."""
    heard = _heard.get()
    if heard is not None:
        heard.messages.append(message)
        return
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in ("deciban", "sklearn"):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def warn_of_impossible(rows: int) -> None:
    heard = _heard.get()
    if heard is not None:
        heard.impossible += rows
    elif rows:
        which = "1 row is" if rows == 1 else f"{rows} rows are"
        warn(
            f"{which} impossible under every class and got the class prior: raise smoothing, "
            "or choose families that allow such cells"
        )


def cell_error(column: object, row: int, value: object, problem: str) -> RowError:
    """An error about one cell."""
    return RowError(f"column {column!r}", row, f"{value!r} {problem}")


INFINITE = "is infinite: use NaN for a missing cell, or remove the row"
TOO_LARGE = "is too large to be squared: rescale the column"


class BadCell(Exception):
    """Raised inside a family, which knows positions but not names; the model makes a DecibanError of it."""

    def __init__(self, row: int, column: int, problem: str) -> None:
        super().__init__(row, column, problem)
        self.row, self.column, self.problem = row, column, problem


def forbid(bad: NDArray[np.bool_], problem: str) -> None:
    """Raises BadCell for the first True, row by row."""
    if bad.any():
        row, column = divmod(int(np.argmax(bad)), bad.shape[1])
        raise BadCell(row, column, problem)


def forbid_infinite(x: NDArray[Any]) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.isfinite(x.sum())  # much cheaper; NaN needs the full check
    if not finite:
        forbid(np.isinf(x), INFINITE)


def forbid_stored(x: Any, bad: NDArray[np.bool_], problem: str) -> None:
    """The same for what compressed sparse rows store."""
    if bad.any():
        i = int(np.argmax(bad))
        row = int(np.searchsorted(x.indptr, i, side="right")) - 1
        raise BadCell(row, int(x.indices[i]), problem)
