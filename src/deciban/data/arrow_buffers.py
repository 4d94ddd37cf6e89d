"""Arrow buffers from outside, checked before anything reads them: a wrong offset or index would read other memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from deciban.data.columns import unsupported
from deciban.errors import DecibanError
from deciban.lazy import lazy

pa = lazy("pyarrow")
pc = lazy("pyarrow.compute")


class NotUtf8(DecibanError):
    """Text that is not UTF-8 where it has to be decoded."""

    def __init__(self, where: str) -> None:
        super().__init__(f"{where} holds bytes that are not UTF-8: decode it again, with errors='replace'")


def require_layout(table: Any) -> Any:
    """The table; raises if the buffers of a column do not have the layout of its type. Text may be any bytes.

    >>> require_layout(pa.table({"x": [1, None], "y": ["a", "b"]})).num_rows
    2
    """
    return _checked_table(table, as_bytes)


def require_valid(table: Any) -> Any:
    """The table; raises if the buffers of a column do not have the layout of its type, or text is not UTF-8."""
    return _checked_table(table, lambda array: array)


def require_array_layout(values: Any) -> Any:
    """The values; raises if they are an Arrow array that `require_layout` refuses in a table."""
    if not isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    try:
        return _checked(values, as_bytes)
    except pa.ArrowException as error:
        raise DecibanError(f"an Arrow array is damaged: {_reason(error)}: make it again") from None


def column_names(schema: Any) -> tuple[str, ...]:
    try:
        return tuple(schema.names)
    except UnicodeDecodeError:
        raise NotUtf8("the name of a column") from None


def _checked_table(table: Any, converted: Callable[[Any], Any]) -> Any:
    for j, name in enumerate(column_names(table.schema)):
        column = table.column(j)
        try:
            checked = _checked(column, converted)
        except KeyError:  # pyarrow has no arrays of this type, an interval of days for instance
            raise unsupported(name, column.type) from None
        except pa.ArrowException as error:
            raise DecibanError(f"column {name!r} is damaged: {_reason(error)}: write it again") from None
        if checked is not column:
            table = table.set_column(j, table.schema.field(j), checked)
    return table


def _checked(column: Any, converted: Callable[[Any], Any]) -> Any:
    """The column, without views under nulls where these are not valid; raises pa.ArrowException if it is damaged."""
    if not isinstance(column, pa.ChunkedArray):
        return _checked_array(column, converted)
    chunks = column.chunks
    checked = [_checked_array(chunk, converted) for chunk in chunks]
    if all(a is b for a, b in zip(chunks, checked, strict=True)):
        return column
    return pa.chunked_array(checked, column.type)


def _checked_array(array: Any, converted: Callable[[Any], Any]) -> Any:
    array.validate()  # sizes of buffers, without which nothing else can be read
    if not pa.types.is_dictionary(array.type):
        converted(array).validate(full=True)
        return _with_valid_views(array) if pa.types.is_string_view(array.type) and array.null_count else array
    _checked_array(array.indices, converted)
    dictionary = _checked_array(array.dictionary, converted)
    _require_indices(array.indices, len(dictionary))
    if not pa.types.is_string_view(dictionary.type):
        return array
    return pa.DictionaryArray.from_arrays(array.indices, dictionary, ordered=array.type.ordered)


def _require_indices(indices: Any, size: int) -> None:
    """Like a full validation of the dictionary array, in a fraction of its time."""
    bounds = pc.min_max(indices).as_py()
    for bound in bounds.values():
        if bound is not None and not 0 <= bound < size:
            raise pa.ArrowInvalid(f"index {bound} of a dictionary of {size} values")


def _with_valid_views(array: Any) -> Any:
    """Text with empty views under nulls: they may be any bytes, and pyarrow follows them nonetheless."""
    validity, views, *data = array.buffers()
    cells = np.frombuffer(views, np.uint8)[: 16 * (array.offset + len(array))].reshape(-1, 16)
    null = np.asarray(array.is_null())
    if not cells[array.offset :][null].any():
        return array
    cells = cells.copy()
    cells[array.offset :][null] = 0
    buffers = [validity, pa.py_buffer(cells), *data]
    return pa.Array.from_buffers(array.type, len(array), buffers, array.null_count, array.offset)


def as_bytes(array: Any) -> Any:
    """The same buffers as a type that any bytes are values of: text may not be UTF-8, times may be beyond a day."""
    dtype = array.type
    for is_type, plain in _PLAIN:
        if is_type(dtype):
            return array.view(plain())
    return array.view(pa.binary(dtype.byte_width)) if pa.types.is_decimal(dtype) else array


_PLAIN: list[tuple[Callable[[Any], bool], Callable[[], Any]]] = [
    (lambda dtype: pa.types.is_string(dtype), lambda: pa.binary()),
    (lambda dtype: pa.types.is_large_string(dtype), lambda: pa.large_binary()),
    (lambda dtype: pa.types.is_string_view(dtype), lambda: pa.binary_view()),
    (lambda dtype: pa.types.is_date64(dtype) or pa.types.is_time64(dtype), lambda: pa.int64()),
    (lambda dtype: pa.types.is_time32(dtype), lambda: pa.int32()),
]


def _reason(error: Exception) -> str:
    return str(error).partition("\n")[0]
