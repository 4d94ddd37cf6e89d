"""Labels of any type → codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.data.arrays import as_signed, coded_integers
from deciban.data.arrow import encode, plain
from deciban.data.arrow_buffers import NotUtf8
from deciban.data.columns import mixed_types, type_name
from deciban.data.dataframes import without_wide_integers
from deciban.errors import DecibanError, RowError
from deciban.lazy import lazy
from deciban.types import FloatArray, Labels, Level, level_of, sorted_levels

pa = lazy("pyarrow")


MAX_RANGE = 1 << 20  # integers within a range of this size are coded by a table


@dataclass(frozen=True)
class Encoded:
    """Labels as positions among the classes."""

    codes: Labels  # (n)
    classes: tuple[Level, ...]  # sorted


def encode_labels(y: Any, first_row: int = 0) -> Encoded:
    """The classes that occur, sorted, and the position of each label among them; errors number rows from `first_row`.

    >>> encode_labels(["spam", "ham", "spam"])
    Encoded(codes=array([1, 0, 1], dtype=int32), classes=('ham', 'spam'))
    """
    array = y if isinstance(y, (pa.Array, pa.ChunkedArray)) else _as_array(y)
    if isinstance(array, np.ndarray):
        if array.ndim != 1:
            raise DecibanError(f"y should be a 1d array, got an array of shape {array.shape} instead.")
        if (encoded := _encode_integers(array)) is not None:
            return encoded
        array = _to_arrow(array)
    array = plain(array)
    if not _is_label_type(array.type):
        raise DecibanError(f"labels of type {type_name(array.type)} cannot be classes: use text, integers or booleans")
    try:
        codes, levels = encode(array)
    except UnicodeDecodeError:
        raise NotUtf8("a label") from None
    if (codes < 0).any():
        row = first_row + int(np.argmax(codes < 0))
        raise RowError("label", row, "the label is missing (NaN or null): drop the row or give it a class")
    if any(isinstance(level, float) for level in levels):
        raise DecibanError(
            "Unknown label type: continuous. Classes are text, integers or booleans; bin the numbers first"
        )
    return _sort_classes(codes, levels)


def check_weights(weights: Any, rows: int) -> FloatArray | None:
    """(n) weights, finite, 0 or more and not all 0; None for None."""
    if weights is None:
        return None
    w = weights_of(weights, rows)
    require_weight(total_weight(w))
    return w


def total_weight(weights: FloatArray) -> float:
    with np.errstate(over="ignore"):
        return float(weights.sum())


def require_weight(total: float) -> None:
    """Raises an error unless the total weight is finite and not 0."""
    if not np.isfinite(total):
        raise DecibanError("the sample weights add up to more than a number can hold: divide them by their largest")
    if not total:
        raise DecibanError("every sample weight is zero: there is nothing to learn from")


def weights_of(weights: Any, rows: int, first_row: int = 0) -> FloatArray:
    """(n) weights, finite and 0 or more; errors number rows from `first_row`."""
    try:
        values = np.asarray(without_wide_integers(weights))
        w = values.astype(np.float64, casting="same_kind" if values.dtype.kind in "cf" else "unsafe", copy=False)
    except (TypeError, ValueError, OverflowError):  # complex numbers, or text
        raise DecibanError("sample_weight must be numbers: pass one of 0 or more for each row") from None
    if w.ndim == 0:
        w = np.full(rows, float(w))
    if w.shape != (rows,):
        raise DecibanError(
            f"Sample weights must be 1D array or scalar: sample_weight.shape == {w.shape}, expected {(rows,)}"
        )
    bad = ~(w >= 0) | np.isinf(w)
    if bad.any():
        row = int(np.argmax(bad))
        raise RowError("sample_weight", first_row + row, f"{w[row]:g} is not a weight: it must be finite, 0 or more")
    return np.ascontiguousarray(w)


def _as_array(y: Any) -> Any:
    """Labels as an array of numpy or Arrow."""
    if hasattr(y, "__arrow_c_array__") or hasattr(y, "__arrow_c_stream__"):
        try:
            return pa.chunked_array(y) if hasattr(y, "__arrow_c_stream__") else pa.array(y)
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError):
            pass
    try:
        array = np.asarray(without_wide_integers(y))
    except ValueError:
        raise DecibanError("y should be a 1d array, got lists of several lengths instead.") from None
    if isinstance(y, np.ma.MaskedArray):
        array = array.astype(object)
        array[np.ma.getmaskarray(y)] = None
    if array.dtype.kind in "US" and isinstance(y, (list, tuple)) and not all(isinstance(v, str) for v in y):
        return np.array(y, dtype=object)  # numbers beside text stay numbers
    return array


def _is_label_type(dtype: Any) -> bool:
    types = pa.types
    dtype = dtype.value_type if types.is_dictionary(dtype) else dtype
    is_number = types.is_integer(dtype) or types.is_floating(dtype) or types.is_boolean(dtype)
    return bool(is_number or types.is_string(dtype) or types.is_large_string(dtype) or types.is_null(dtype))


def _to_arrow(y: NDArray[Any]) -> Any:
    if y.dtype.kind in "cV":
        kind = "complex numbers" if y.dtype.kind == "c" else "records"
        raise DecibanError(f"Unknown label type: {kind}. Classes are text, integers or booleans")
    try:
        return pa.array(y.tolist() if y.dtype.kind in "OUS" else y, from_pandas=True)
    except OverflowError:
        raise DecibanError("labels beyond 64 bits cannot be classes: convert them to text") from None
    except (pa.ArrowException, TypeError, ValueError):
        raise mixed_types("label", y.tolist()) from None


def _encode_integers(y: NDArray[Any]) -> Encoded | None:
    """Labels that are integers within a small range, or booleans; None for others."""
    column = as_signed(y[:, np.newaxis])
    coded = coded_integers(column, MAX_RANGE) if column is not None and len(y) else None
    if coded is None:
        return None
    codes, values = coded[0][:, 0], coded[1][0]
    present = np.flatnonzero(_kernels.count_labels(codes, len(values)))
    if len(present) < len(values):
        table = np.zeros(len(values), np.int32)
        table[present] = np.arange(len(present))
        codes = table[codes]
    classes = (present + values.start).tolist()
    return Encoded(codes, tuple(map(bool, classes) if y.dtype == np.bool_ else classes))


def _sort_classes(codes: NDArray[np.int32], levels: tuple[Level, ...]) -> Encoded:
    """The levels that occur, sorted, as classes."""
    present = np.bincount(codes, minlength=len(levels)) > 0
    classes = sorted_levels(level_of(level) for level, occurs in zip(levels, present, strict=True) if occurs)
    index = {level: i for i, level in enumerate(classes)}
    table = np.array([index.get(level_of(level), 0) for level in levels], dtype=np.int32)
    return Encoded(table[codes] if len(table) else codes, classes)
