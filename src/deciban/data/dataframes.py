"""Data frames of pandas and polars → Arrow tables, also where Arrow lacks a type."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import Any

from deciban.data.columns import CONVERT, arrow_column
from deciban.errors import DecibanError
from deciban.lazy import lazy

pa = lazy("pyarrow")

WIDE = ("Int128", "UInt128")  # types of polars that Arrow lacks


def is_pandas(x: Any) -> bool:
    return any(base.__module__.partition(".")[0] == "pandas" for base in type(x).__mro__)


def pandas_table(x: Any, names: Sequence[str]) -> Any:
    """A pandas data frame as an Arrow table, without its index."""
    converted = {j: _converted(x.iloc[:, j]) for j, dtype in enumerate(x.dtypes) if _needs_conversion(dtype)}
    if not converted:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # names of several types are written as text
                return pa.Table.from_pandas(x, preserve_index=False)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            pass  # arrow_column names the column
    columns = [converted[j] if j in converted else x.iloc[:, j] for j in range(len(names))]
    return pa.table([arrow_column(name, column) for name, column in zip(names, columns, strict=True)], list(names))


def _needs_conversion(dtype: Any) -> bool:
    """Whether Arrow does not read a type, or not as it is meant."""
    if hasattr(dtype, "categories"):
        return dtype.categories.dtype.kind not in "biufO" or type(dtype.categories.dtype).__name__ == "IntervalDtype"
    return type(dtype).__name__ in ("IntervalDtype", "SparseDtype")


def _converted(column: Any) -> Any:
    """A sparse column as a dense one; intervals, and categories that are neither text nor numbers, as text."""
    if hasattr(column.dtype, "categories"):
        return column.cat.rename_categories(list(map(str, column.dtype.categories)))
    if type(column.dtype).__name__ == "SparseDtype":
        return column.sparse.to_dense()
    return column.astype(object).map(str, na_action="ignore")


def without_wide_integers(x: Any) -> Any:
    """A data frame of polars with 128-bit integers as doubles, a series of these as a list; anything else unchanged."""
    if type(x).__module__.partition(".")[0] != "polars":
        return x
    if not hasattr(x, "schema"):
        return x.to_list() if str(x.dtype) in WIDE else x
    for name, dtype in x.schema.items():
        if str(dtype) == "Object":
            raise DecibanError(f"column {name!r} holds Python objects: {CONVERT}")
    wide = [name for name, dtype in x.schema.items() if str(dtype) in WIDE]
    return x.cast(dict.fromkeys(wide, sys.modules["polars"].Float64)) if wide else x
