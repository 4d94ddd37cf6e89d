"""Errors and warnings: what is wrong, where, and what to do."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Integral
from typing import TYPE_CHECKING, Any

from deciban.lazy import lazy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")  # a mail filter may do without it


class DecibanError(ValueError):
    """Bad input or an impossible request; the message names the column and row and says what to do.

    All errors of this library derive from it, and it is a ValueError.

    See Also
    --------
    deciban.RowError : With the number of the row.
    deciban.NegativeEvidence : Rows that were never learned cannot be forgotten.
    deciban.NotInvertible : A family that cannot forget.

    Examples
    --------
    >>> import deciban as db
    >>> db.NaiveBayes().fit([[1.0], [2.0]], ["no", "yes", "no"])
    Traceback (most recent call last):
    deciban.errors.DecibanError: Found input variables with inconsistent numbers of samples: 2 rows, 3 labels
    """


def require(condition: Any, problem: str) -> None:
    if not condition:
        raise DecibanError(problem)


def require_whole(name: str, value: Any, least: int = 0) -> int:
    """The value of a setting as an int; raises unless it is a whole number.

    >>> require_whole("random_state", -1)
    Traceback (most recent call last):
    deciban.errors.DecibanError: random_state must be a whole number of 0 or more (and below 2**63), not -1
    """
    if not isinstance(value, Integral) or not least <= int(value) < 1 << 63:
        raise DecibanError(f"{name} must be a whole number of {least} or more (and below 2**63), not {value!r}")
    return int(value)


NEAR = 0.7  # the least similarity of a name that is suggested: c1 is not taken for c


def did_you_mean(*misspelt: object, among: Iterable[object]) -> str:
    """The names nearest to misspelt ones, to follow them in a message; case does not matter, and "" if none is near.

    >>> did_you_mean("Clas", among=["age", "class"])
    " (did you mean 'class'?)"
    """
    from difflib import get_close_matches  # only messages need it

    spelt = {name.casefold(): name for name in among if isinstance(name, str)}
    words = [name.casefold() for name in misspelt if isinstance(name, str)]
    nearest = dict.fromkeys(near for word in words for near in get_close_matches(word, spelt, n=1, cutoff=NEAR))
    return f" (did you mean {', '.join(repr(spelt[near]) for near in nearest)}?)" if nearest else ""


class NotInvertible(DecibanError):
    """Rows cannot be subtracted from a statistic: extrema, for instance, do not keep the values that they replaced.

    The model is unchanged. Fit it again without these rows, or use another family.

    See Also
    --------
    deciban.families.Uniform : The family that cannot forget.
    deciban.DecibanError : All errors of this library.

    Examples
    --------
    >>> import deciban as db
    >>> model = db.NaiveBayes(db.families.Uniform()).fit([[1.0], [2.0]], ["no", "yes"])
    >>> try:
    ...     model.forget([[1.0]], ["no"])
    ... except db.NotInvertible:
    ...     print("fit again without these rows")
    fit again without these rows
    """


class NegativeEvidence(DecibanError):
    """Rows to be subtracted are not among the training rows; the model is unchanged.

    See Also
    --------
    deciban.NaiveBayes.forget : Raises it.
    deciban.DecibanError : All errors of this library.

    Examples
    --------
    >>> import deciban as db
    >>> model = db.NaiveBayes().fit([[1.0], [2.0]], ["no", "yes"])
    >>> model.forget([[1.0]], ["perhaps"])
    Traceback (most recent call last):
    deciban.errors.NegativeEvidence: class 'perhaps' was never learned; the model is unchanged
    """


class RowError(DecibanError):
    """An error about one row, with its number; for files the message names the line instead.

    Parameters
    ----------
    where : str
        The column, file or argument.
    row : int
        The number of the row, from 0, in the table that was passed.
    problem : str
        What is wrong, and what to do.

    Attributes
    ----------
    where : str
        The column, file or argument.
    row : int
        The number of the row, from 0: use it to look the row up, or to drop it.
    problem : str
        What is wrong, and what to do.

    See Also
    --------
    deciban.DecibanError : All errors of this library.

    Examples
    --------
    >>> import deciban as db
    >>> db.NaiveBayes().fit([[1.0], [float("inf")]], ["no", "yes"])
    Traceback (most recent call last):
    deciban.errors.RowError: column 0, row 1: inf is infinite: use NaN for a missing value, or remove the row
    """

    def __init__(self, where: str, row: int, problem: str) -> None:
        super().__init__(f"{where}, row {row}: {problem}")
        self.where, self.row, self.problem = where, row, problem

    def __reduce__(self) -> tuple[Any, ...]:
        return RowError, (self.where, self.row, self.problem)

    def at(self, where: str) -> DecibanError:
        """The same error, at a file and line.

        Parameters
        ----------
        where : str
            The file and line.

        Returns
        -------
        DecibanError
            To be raised in place of this one.
        """
        return DecibanError(f"{where}: {self.where}: {self.problem}")


class DecibanWarning(UserWarning):
    """The result is valid, but the data may have a problem; the message says which, and what to do.

    See Also
    --------
    deciban.LeakageWarning : About a feature that predicts too well.

    Examples
    --------
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

    Drop such a column, unless it is known when you predict. If it is, silence the warning.

    See Also
    --------
    deciban.EvidenceClassifier.fit : Issues it.
    deciban.DecibanWarning : All warnings of this library.

    Examples
    --------
    >>> import warnings
    >>> import deciban as db
    >>> warnings.simplefilter("ignore", db.LeakageWarning)
    """


class UnknownLabelsWarning(DecibanWarning):
    """None of the labels of the rows is a class of the model."""


class DroppedBlocksWarning(DecibanWarning):
    """A merge has dropped joint blocks that only one of the models has."""


class CapturedWarnings:
    def __init__(self) -> None:
        self.messages: list[str] = []
        self.impossible = 0  # rows that are impossible under every class


_captured: ContextVar[CapturedWarnings | None] = ContextVar("captured", default=None)


@contextmanager
def capture_warnings() -> Iterator[CapturedWarnings]:
    """Captures the warnings of this thread, to be issued later from the caller, or dropped."""
    token = _captured.set(captured := CapturedWarnings())
    try:
        yield captured
    finally:
        _captured.reset(token)


def warn(message: str, category: type[DecibanWarning] = DecibanWarning) -> None:
    """Warns at the line of the caller outside this library."""
    if (captured := _captured.get()) is not None:
        captured.messages.append(message)
        return
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in ("deciban", "sklearn"):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def warn_of_impossible(rows: int) -> None:
    if (captured := _captured.get()) is not None:
        captured.impossible += rows
    elif rows:
        which = "1 row is" if rows == 1 else f"{rows} rows are"
        warn(
            f"{which} impossible under every class and got the class prior: raise smoothing, "
            "or choose families that allow such values"
        )


def cell_error(column: object, row: int, value: object, problem: str) -> RowError:
    return RowError(f"column {column!r}", row, f"{value!r} {problem}")


INFINITE = "is infinite: use NaN for a missing value, or remove the row"
TOO_LARGE = "is too large to be squared: rescale the column"


class BadCell(Exception):
    """Raised by a family, which knows positions but not names; a model turns it into a DecibanError."""

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


def require_scores(scores: NDArray[np.float64], first_row: int = 0) -> None:
    """Raises an error if a score (n, K) of a row is NaN or +inf: there is no probability then."""
    if scores.size and not scores.max() < np.inf:
        row = first_row + int(np.argmin((scores < np.inf).all(axis=1)))
        raise DecibanError(f"row {row}: its score is not a number: a number of the row or of the model is too large")


def forbid_stored(x: Any, bad: NDArray[np.bool_], problem: str) -> None:
    """As `forbid`, for the stored values of CSR rows."""
    if bad.any():
        i = int(np.argmax(bad))
        row = int(np.searchsorted(x.indptr, i, side="right")) - 1
        raise BadCell(row, int(x.indices[i]), problem)
