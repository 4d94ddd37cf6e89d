"""Data frames of pandas and polars → Arrow tables, with the types that Arrow does not know."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import Any

from deciban.data.columns import CONVERT, arrow_column
from deciban.errors import DecibanError
from deciban.lazy import lazy

pa = lazy("pyarrow")

WIDE = ("Int128", "UInt128")  # of polars, which Arrow does not know


def is_pandas(x: Any) -> bool:
    return any(base.__module__.partition(".")[0] == "pandas" for base in type(x).__mro__)


def pandas_table(x: Any, names: Sequence[str]) -> Any:
    """A data frame of pandas; its index is not a column."""
    odd = {j: _plain_series(x.iloc[:, j]) for j, dtype in enumerate(x.dtypes) if _is_odd(dtype)}
    if not odd:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # names of several types are written as text
                return pa.Table.from_pandas(x, preserve_index=False)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            pass  # one of the columns, which is named below
    columns = [odd[j] if j in odd else x.iloc[:, j] for j in range(len(names))]
    return pa.table([arrow_column(name, column) for name, column in zip(names, columns, strict=True)], list(names))


def _is_odd(dtype: Any) -> bool:
    """Whether a column is not what Arrow would make of it."""
    if hasattr(dtype, "categories"):
        return dtype.categories.dtype.kind not in "biufO" or _is_interval(dtype.categories.dtype)
    return _is_interval(dtype) or type(dtype).__name__ == "SparseDtype"


def _is_interval(dtype: Any) -> bool:
    return type(dtype).__name__ == "IntervalDtype"


def _plain_series(column: Any) -> Any:
    """A column without what is sparse in it, and with intervals and other such categories as text."""
    dtype = column.dtype
    if type(dtype).__name__ == "SparseDtype":
        return column.sparse.to_dense()
    if _is_interval(dtype):
        return column.astype(object).map(str, na_action="ignore")
    return column.cat.rename_categories(list(map(str, dtype.categories)))


def without_wide_integers(x: Any) -> Any:
    """A data frame of polars with integers of 128 bits as doubles, or a series as a list; all else as it is."""
    if type(x).__module__.partition(".")[0] != "polars":
        return x
    if not hasattr(x, "schema"):
        return x.to_list() if str(x.dtype) in WIDE else x
    wide = []
    for name, dtype in x.schema.items():
        if str(dtype) == "Object":
            raise DecibanError(f"column {name!r} holds Python objects: {CONVERT}")
        if str(dtype) in WIDE:
            wide.append(name)
    return x.cast(dict.fromkeys(wide, sys.modules["polars"].Float64)) if wide else x
