"""Containers: rows as a user passes them → one of the few forms that frames are made from."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban.data.arrow import TableFrame, frame_of_columns
from deciban.data.columns import column_name
from deciban.data.dataframes import is_pandas
from deciban.data.documents import is_documents
from deciban.data.stream import Stream
from deciban.errors import DecibanError
from deciban.lazy import issparse

IN_MEMORY = {"pandas", "polars", "deciban"}
ENGINES = {"dask": "dask", "pyspark": "spark"}  # libraries with distributed tables, and the engines for them
PASS = "pass a table, a matrix with a row for each example, or a list of texts"


def is_table(x: Any) -> bool:
    return hasattr(x, "__arrow_c_stream__") or isinstance(x, TableFrame) or is_stream(x)


def is_stream(x: Any) -> bool:
    """Whether a table comes batch by batch, so that it need not be in memory: files, readers, datasets, relations."""
    if isinstance(x, Stream):
        return True
    if type(x).__module__.startswith("pyarrow"):
        return type(x).__name__ == "RecordBatchReader" or type(x).__module__ == "pyarrow._dataset"
    if not hasattr(x, "__arrow_c_stream__"):
        return False
    return not {base.__module__.partition(".")[0] for base in type(x).__mro__} & IN_MEMORY


def supported(x: Any) -> Any:
    """Rows in a form that frames are made from: a table, a stream, documents, sparse rows, or a matrix.

    Other containers become tables: a LazyFrame of polars is collected; records (a list of dicts), a dict of columns and
    structured arrays of numpy are converted.

    >>> supported([{"age": 39, "sex": "m"}, {"age": 50}]).table.to_pydict()
    {'age': [39, 50], 'sex': ['m', None]}
    """
    if isinstance(x, (TableFrame, Stream)) or is_documents(x):
        return x
    if x is None:
        raise DecibanError(f"X is None: {PASS}")
    if isinstance(x, os.PathLike):
        raise DecibanError(f"X is a path: use deciban.scan({os.fspath(x)!r}) to read the file")
    if isinstance(x, (str, bytes)):
        remedy = "pass a list of texts; to read a file, use deciban.scan(path)"
        raise DecibanError(f"X is a single text, {x[:40]!r}: {remedy}")
    library = type(x).__module__.partition(".")[0]
    if library in ENGINES:
        raise DecibanError(
            f"X is a {type(x).__name__} of {library}: use fit, predict, evaluate or cross_validate of "
            f"deciban.engines.{ENGINES[library]}"
        )
    if is_table(x):
        return x
    if issparse(x):
        return _real(x)
    if library == "polars" and hasattr(x, "collect"):
        return x.collect()
    if isinstance(x, Mapping):
        return frame_of_columns(x)
    if isinstance(x, (list, tuple)) and any(isinstance(row, Mapping) for row in x):
        return frame_of_columns(_columns_of_records(x))
    if isinstance(x, np.ndarray) and x.dtype.names:
        return frame_of_columns({name: x[name] for name in x.dtype.names})
    return _real(_matrix(x))


def column_or_values(x: Any, values: Any) -> Any:
    """The name of a column of x as text, if one was passed in place of values; else the values.

    A tuple is a name if a column has it; a number is a value.
    """
    if not isinstance(values, tuple):
        return values
    names: Any = getattr(x, "columns", ()) if is_pandas(x) else ()
    names = x.names if isinstance(x, (TableFrame, Stream)) else map(column_name, names)
    return column_name(values) if column_name(values) in tuple(names) else values


def label_column_or_values(x: Any, y: Any) -> Any:
    """Like `column_or_values`, but for labels: any scalar is a name, such as the 7 of `fit(table, 7)`."""
    return column_name(y) if _is_scalar(y) else column_or_values(x, y)


def _is_scalar(y: Any) -> bool:
    """Whether y is a single value, and neither None nor text."""
    if y is None or isinstance(y, str) or not isinstance(y, Hashable):
        return False
    is_array = hasattr(y, "__len__") or hasattr(y, "__iter__") or hasattr(y, "__array__")
    return isinstance(y, np.generic) or not is_array


def _columns_of_records(rows: Sequence[Any]) -> dict[Any, list[Any]]:
    """The cells of each key, in order of first appearance; None where a record lacks the key."""
    names: dict[Any, None] = {}
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise DecibanError(f"row {i} is a {type(row).__name__}, and others are dicts: pass a dict for each row")
        names.update(dict.fromkeys(row))
    return {name: [row.get(name) for row in rows] for name in names}


def _matrix(x: Any) -> NDArray[Any]:
    """Two dimensions, of numbers or of objects."""
    if isinstance(x, np.ma.MaskedArray):
        x = np.ma.filled(x.astype(np.float64 if x.dtype.kind in "biuf" else object), np.nan)
    try:
        array = np.asarray(x)
    except ValueError:
        raise _ragged(x) from None
    if array.dtype.kind in "US" and isinstance(x, (list, tuple)):
        array = np.array(x, dtype=object)  # numbers beside text stay numbers
    if array.ndim == 0:
        raise DecibanError(f"X is of type {type(x).__name__}, which has no rows: {PASS}")
    if array.shape == (0,):
        raise DecibanError(f"X has no rows and no columns: {PASS}")
    if array.ndim != 2:  # scikit-learn's checks ask for the words "Reshape your data"
        remedy = ". Reshape your data: X.reshape(-1, 1) is one column, X.reshape(1, -1) is one row"
        remedy = remedy if array.ndim == 1 else ": flatten the values of each row, X.reshape(len(X), -1)"
        raise DecibanError(f"X must be a table or a matrix; it has the shape {array.shape}{remedy}")
    return array


def _real(x: Any) -> Any:
    if x.dtype.kind == "c":
        raise DecibanError("Complex data not supported: pass real and imaginary parts as columns, X.real and X.imag")
    return x


def _ragged(x: Any) -> DecibanError:
    """An error about rows that do not form a matrix."""
    sizes = [len(row) if hasattr(row, "__len__") and not isinstance(row, str) else None for row in x]
    for i, size in enumerate(sizes):
        if size is None:
            return DecibanError(f"row {i} of X is {x[i]!r}, not a list of cells: pass a list for each row")
        if size != sizes[0]:
            return DecibanError(f"row {i} of X has {size} cells, and row 0 has {sizes[0]}: make all rows equally long")
    return DecibanError("the cells of X differ in shape: pass a number or a text in each cell")
