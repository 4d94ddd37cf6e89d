"""Columns: the cells of one column, in any container → an Arrow array, or an error that names the column."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import numpy as np

from deciban.errors import DecibanError, cell_error
from deciban.lazy import lazy
from deciban.types import Level

pa = lazy("pyarrow")

CONVERT = "convert it to numbers or text, or drop it"
NUMBERS = (bool, int, float, np.number, Decimal)


def column_name(name: Any) -> str:
    """The name of a column as text; for an integer, or a tuple of a MultiIndex, its Python notation.

    >>> column_name(7), column_name(("price", np.int64(2020)))
    ('7', "('price', 2020)")
    """
    if isinstance(name, tuple):
        return str(tuple(part.item() if isinstance(part, np.generic) else part for part in name))
    return str(name)


def arrow_column(name: Level, values: Any) -> Any:
    """A list, an array of numpy or a series as an Arrow array; NaN and None are missing values."""
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise DecibanError(f"column {name!r} has cells of shape {values.shape[1:]}: {remedy('array')}")
    if isinstance(values, np.ndarray) and values.dtype.kind == "V":
        raise DecibanError(f"column {name!r} holds records: {remedy('struct')}")
    if hasattr(values, "to_arrow"):  # polars
        try:
            return values.to_arrow()
        except (pa.ArrowException, TypeError, ValueError):  # 128-bit integers
            values = values.to_list()
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    if getattr(getattr(values, "dtype", None), "kind", "") == "c":
        raise _complex(name)
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return _as_numbers(name, list(values))


def _as_numbers(name: Level, values: list[Any]) -> Any:
    """Numbers of several types, or beyond 64 bits, as doubles; raises if a cell is not a number."""
    present = [value for value in values if not _is_missing(value)]
    if not present or not all(isinstance(value, NUMBERS) for value in present):
        raise mixed_types(name, values)
    if any(isinstance(value, (complex, np.complexfloating)) for value in present):
        raise _complex(name)
    numbers = []
    for row, value in enumerate(values):
        try:
            numbers.append(None if _is_missing(value) else float(value))
        except OverflowError:
            raise cell_error(name, row, value, "is too large: rescale the column, or drop it") from None
    return pa.array(numbers, pa.float64())


def _is_missing(value: Any) -> bool:
    pandas_missing = type(value).__name__ in ("NAType", "NaTType")
    return value is None or pandas_missing or bool(np.ndim(value) == 0 and value != value)


def _complex(name: Level) -> DecibanError:
    return DecibanError(
        f"column {name!r} holds complex numbers. Complex data not supported: pass real and imaginary parts as two "
        "columns"
    )


def mixed_types(name: Level, values: Iterable[Any]) -> DecibanError:
    """An error about the first cell that cannot be read, or that has another type than the cells before it."""
    before = None
    for row, value in enumerate(values):
        if _is_missing(value):
            continue
        if isinstance(value, str) and not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
            return cell_error(name, row, value, "holds a lone surrogate: decode it again, with errors='replace'")
        if isinstance(value, (complex, np.complexfloating)):
            return _complex(name)
        is_number = isinstance(value, NUMBERS)
        kind = "a number" if is_number else "text" if isinstance(value, str) else type(value).__name__
        if kind != (before := before or kind):
            return cell_error(name, row, value, f"is not {before}, as the cells before it: convert it to one type")
    if before in (None, "text", "a number"):
        return DecibanError(f"column {name!r} cannot be read: {CONVERT}")
    return DecibanError(f"column {name!r} holds cells of type {before}: {remedy(before)}")


def unsupported(name: Level, dtype: Any) -> DecibanError:
    """An error about a column of an Arrow type that cannot be a feature."""
    return DecibanError(f"column {name!r} is of type {type_name(dtype)}: {remedy(type_name(dtype))}")


def type_name(dtype: Any) -> str:
    """The name of an Arrow type in messages."""
    if pa.types.is_dictionary(dtype):
        return f"category of {type_name(dtype.value_type)}"
    return str(getattr(dtype, "extension_name", dtype)).removeprefix("arrow.")


def remedy(kind: str) -> str:
    """What to do with a column of such a type."""
    if kind.startswith(("list", "large_list", "fixed_size_list", "array", "ndarray", "set", "tuple")):
        return "make a column of each element, join them into one text, or drop it"
    if kind.startswith(("struct", "map", "dict")):
        return "make a column of each field, or drop it"
    if kind.startswith(("binary", "large_binary", "fixed_size_binary", "bytes")):
        return "decode it to text, or drop it"
    return CONVERT
