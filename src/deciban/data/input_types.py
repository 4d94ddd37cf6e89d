"""Types of what users pass: rows, targets and weights. They are for signatures, and need no library.

With `from __future__ import annotations` they are read by type checkers, `help()` and the reference only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from numpy.typing import ArrayLike

from deciban.data.batch import Frame
from deciban.data.distributed import DistributedRows
from deciban.data.stream import Stream


class DataFrameLike(Protocol):
    """A table that exports Arrow: of pandas, polars, pyarrow, duckdb and others; also `deciban.scan(...)`."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The Arrow PyCapsule interface."""


class LazyFrameLike(Protocol):
    """A query that `collect()` turns into a table, as a LazyFrame of polars."""

    def collect(self, *args: Any, **kwargs: Any) -> Any:
        """The table."""


class SparseMatrix(Protocol):
    """Sparse rows of scipy, of any format."""

    def tocsr(self, copy: bool = False) -> Any:
        """Compressed sparse rows."""


class Classifier(Protocol):
    """A classifier of this library or another, with the methods of scikit-learn."""

    def fit(self, X: Any, y: Any) -> Any:
        """Learn from rows."""

    def predict(self, X: Any) -> Any:
        """The class of each row."""


Records = Sequence[Mapping[str, Any]]
"""Rows as a list of dicts. A key that a record lacks is a missing value."""

Columns = Mapping[str, Sequence[Any]]
"""A table as a dict of columns."""

Documents = Sequence[str | None]
"""A list of texts, each of which is a row; None is a missing one."""

Rows = (
    ArrayLike
    | DataFrameLike
    | LazyFrameLike
    | SparseMatrix
    | Documents
    | Records
    | Columns
    | Sequence[Sequence[Any]]
    | Stream
    | DistributedRows
    | Frame
)
"""Rows of features, as every method takes them for X.

An array or nested lists, with a row for each example; a table of pandas, polars, pyarrow, …; sparse rows; a list of
documents, of dicts, or a dict of columns; a stream, such as `deciban.scan(...)`, which is read in batches; or
distributed rows of an engine. (`Frame` is what they are read into.)
"""

Target = str | ArrayLike | Sequence[Any]
"""The class (or response) of each row: an array, a list or a series; or the name of a column of X.

A column that y names is not a feature. A single value that is no text (the 7 of `fit(table, 7)`) is a name too.
"""

SampleWeight = str | ArrayLike
"""The weight of each row: an array, or the name of a column of X, which is then not a feature.

A weight of 2 counts the row twice, a weight of 0 leaves it out; negative weights are errors.
"""

PerRow = str | ArrayLike
"""A number for each row, such as an offset: an array, or the name of a column of X, which is then not a feature."""
