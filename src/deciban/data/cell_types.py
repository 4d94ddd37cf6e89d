"""Cell types: the narrowest type that holds all cells of a column."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal, get_args

from deciban.data.batch import Kind, Notation, Style
from deciban.data.temporal import is_date, is_temporal
from deciban.lazy import lazy
from deciban.types import Level, Levels

pa = lazy("pyarrow")
pc = lazy("pyarrow.compute")

# "coded" are numbers that are categories: those of a dictionary, or of a categorical feature of a model
# "other" cannot be a feature, such as a list
# "formatted" are numbers with currencies, percent signs or thousands separators; "formatted_comma" have a decimal comma
CellType = Literal[
    "empty", "boolean", "integer", "number", "coded", "date", "time", "formatted", "formatted_comma", "text", "other"
]

BOOLEANS = ("true", "True", "TRUE"), ("false", "False", "FALSE")
_TYPES: dict[CellType, tuple[str, Kind | None, Callable[[], Any] | None]] = {  # words, kind of column, Arrow type
    "empty": ("missing", "empty", lambda: pa.null()),
    "boolean": ("true or false", "boolean", lambda: pa.bool_()),
    "integer": ("whole numbers", "number", lambda: pa.int64()),
    "number": ("numbers", "number", lambda: pa.float64()),
    "coded": ("numbers", "category", lambda: pa.float64()),
    "date": ("dates", "date", lambda: pa.timestamp("us")),
    "time": ("times of day", "time", lambda: pa.time64("us")),
    "formatted": ("numbers", "number", lambda: pa.float64()),
    "formatted_comma": ("numbers with a decimal comma", "number", lambda: pa.float64()),
    "text": ("text", "category", lambda: pa.dictionary(pa.int32(), pa.string())),
    "other": ("neither numbers nor text", None, None),
}
CELL_WORDS: dict[str, str] = {cell_type: words for cell_type, (words, _, _) in _TYPES.items()}  # for messages
KIND_OF: dict[CellType, Kind] = {cell_type: kind for cell_type, (_, kind, _) in _TYPES.items() if kind}
FORMATTED: tuple[CellType, ...] = ("formatted", "formatted_comma")
STYLES: tuple[Style, ...] = get_args(Style)  # of text that is parsed


@cache
def arrow_types() -> dict[CellType, Any]:
    """The Arrow type of each cell type."""
    return {cell_type: arrow() for cell_type, (_, _, arrow) in _TYPES.items() if arrow}


def common_type(a: CellType, b: CellType) -> CellType:
    """The narrowest type that holds the cells of both; associative and commutative.

    >>> common_type("empty", "integer"), common_type("integer", "number"), common_type("boolean", "integer")
    ('integer', 'number', 'text')
    """
    if a == b or b == "empty":
        return a
    if a == "empty":
        return b
    if "other" in (a, b):
        return "other"
    if {a, b} <= {"integer", "number", "coded"}:
        return "coded" if "coded" in (a, b) else "number"
    for formatted in FORMATTED:
        if {a, b} <= {"integer", "number", formatted}:
            return formatted
    return "text"


def common_types(a: Mapping[str, CellType], b: Mapping[str, CellType]) -> dict[str, CellType]:
    """The columns of both, in the order of the first, with their common types."""
    return {name: common_type(a.get(name, "empty"), b.get(name, "empty")) for name in dict.fromkeys((*a, *b))}


def infer_cell_type(text: Any) -> CellType:
    """The type of a column of text without spaces around cells. Digits with leading zeros are text.

    >>> [infer_cell_type(pa.array(cells)) for cells in (["1", None, "2.5"], ["7", "x"], ["00501", "10001"])]
    ['number', 'text', 'text']
    """
    values = text.drop_null().unique()
    if not len(values):
        return "empty"
    if pc.all(pc.is_in(values, pa.array(sum(BOOLEANS, ())))).as_py():
        return "boolean"
    leading_zeros = pc.any(pc.match_substring_regex(values, r"^0\d+$")).as_py()
    if leading_zeros or not _castable(values, "number"):  # 0x10 can be cast to an integer only
        return "text"
    return "integer" if _castable(values, "integer") else "number"


def _castable(text: Any, cell_type: CellType) -> bool:
    try:
        pc.cast(text, arrow_types()[cell_type])
    except pa.ArrowInvalid:
        return False
    return True


def cell_type_of(dtype: Any) -> CellType:
    """The cell type of an Arrow type."""
    types = pa.types
    if types.is_dictionary(dtype):
        value_type = cell_type_of(dtype.value_type)
        return value_type if value_type in ("text", "other") else "other" if is_temporal(dtype.value_type) else "coded"
    if types.is_null(dtype):
        return "empty"
    if types.is_boolean(dtype):
        return "boolean"
    if types.is_uint64(dtype) or types.is_floating(dtype) or types.is_decimal(dtype):
        return "number"
    if types.is_integer(dtype):
        return "integer"
    if is_temporal(dtype):
        return "date" if is_date(dtype) else "time" if types.is_time(dtype) else "number"  # a duration in days
    if types.is_string(dtype) or types.is_large_string(dtype) or types.is_string_view(dtype):
        return "text"
    return "other"


def cell_type_for_kind(kind: Kind, levels: Levels, notation: Notation | None = None) -> CellType:
    """The type as which text is read for a column with this kind and these values in the training rows."""
    if notation is not None:
        return notation.style
    if kind == "empty":
        return "text"
    if kind == "category":
        return "coded" if levels and all(_is_number(level) for level in levels) else "text"
    return "boolean" if kind == "boolean" else _number_like(levels)


def label_cell_types(label: str, classes: Levels) -> dict[str, CellType]:
    """{label: type} as which labels are read; {} for classes of several types, or none yet."""
    if not classes:
        return {}
    if all(isinstance(c, bool) for c in classes):
        return {label: "boolean"}
    if all(isinstance(c, str) for c in classes):
        return {label: "text"}
    return {label: _number_like(classes)} if all(_is_number(c) for c in classes) else {}


def _number_like(levels: Levels) -> CellType:
    """A double would round integers beyond 2⁵³ and so confuse categories."""
    return "integer" if any(isinstance(level, int) and abs(level) > 1 << 53 for level in levels) else "number"


def _is_number(level: Level) -> bool:
    return isinstance(level, (int, float)) and not isinstance(level, bool)
