"""What the cells of a column of a text file are: the narrowest type that holds them all."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, get_args

from deciban.batch import Kind, Notation, Style
from deciban.late import late
from deciban.sources.temporal import is_date, is_temporal
from deciban.types import Level, Levels

pa = late("pyarrow")
pc = late("pyarrow.compute")

# "coded" are numbers that are categories: a dictionary's, or those of a model that learned them so
# "other" is what nothing can be learned from, such as a list
# "formatted" are numbers with currencies, percent signs or thousands separators; "formatted_comma" have a decimal comma
Cells = Literal[
    "empty", "boolean", "integer", "number", "coded", "date", "time", "formatted", "formatted_comma", "text", "other"
]

TRUE, FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")
WORDS: dict[Cells, str] = {
    "empty": "missing",
    "boolean": "true or false",
    "integer": "whole numbers",
    "number": "numbers",
    "coded": "numbers",
    "date": "dates",
    "time": "times of day",
    "formatted": "numbers",
    "formatted_comma": "numbers with a decimal comma",
    "text": "text",
    "other": "neither numbers nor text",
}
FORMATTED: tuple[Cells, ...] = ("formatted", "formatted_comma")
STYLES: tuple[Style, ...] = get_args(Style)  # of cells of text that are read as something else
KIND: dict[Cells, Kind] = {
    "empty": "empty",
    "boolean": "boolean",
    "integer": "number",
    "number": "number",
    "coded": "category",
    "date": "date",
    "time": "time",
    "formatted": "number",
    "formatted_comma": "number",
    "text": "category",
}


@cache
def arrow_types() -> dict[Cells, Any]:
    """The Arrow type that cells are read as."""
    return {
        "empty": pa.null(),
        "boolean": pa.bool_(),
        "integer": pa.int64(),
        "number": pa.float64(),
        "coded": pa.float64(),
        "date": pa.timestamp("us"),
        "time": pa.time64("us"),
        "formatted": pa.float64(),
        "formatted_comma": pa.float64(),
        "text": pa.dictionary(pa.int32(), pa.string()),
    }


def wider(a: Cells, b: Cells) -> Cells:
    """The narrowest type that holds the cells of both. The order of rows and files does not matter to it.

    >>> wider("empty", "integer"), wider("integer", "number"), wider("boolean", "integer")
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


def widened(a: Mapping[str, Cells], b: Mapping[str, Cells]) -> dict[str, Cells]:
    """The columns of both, in the order of the first, each as wide as it must be."""
    return {name: wider(a.get(name, "empty"), b.get(name, "empty")) for name in (*a, *(n for n in b if n not in a))}


def cells_of(text: Any) -> Cells:
    """The type of a column of text without spaces around it; null is missing. Digits with leading zeros are a code.

    >>> cells_of(pa.array(["1", None, "2.5"])), cells_of(pa.array(["7", "x"])), cells_of(pa.array(["00501", "10001"]))
    ('number', 'text', 'text')
    """
    there = text.drop_null().unique()
    if not len(there):
        return "empty"
    if pc.all(pc.is_in(there, pa.array([*TRUE, *FALSE]))).as_py():
        return "boolean"
    if not _castable(there, "number"):  # first, since 0x10 can be cast to a whole number and to no other
        return "text"
    if pc.any(pc.match_substring_regex(there, r"^0\d+$")).as_py():
        return "text"
    return "integer" if _castable(there, "integer") else "number"


def _castable(text: Any, cells: Cells) -> bool:
    try:
        pc.cast(text, arrow_types()[cells])
    except pa.ArrowInvalid:
        return False
    return True


def cells_of_type(kind: Any) -> Cells:
    """What a column of an Arrow type holds."""
    types = pa.types
    if types.is_dictionary(kind):
        of_values = cells_of_type(kind.value_type)
        return of_values if of_values in ("text", "other") else "other" if is_temporal(kind.value_type) else "coded"
    if types.is_null(kind):
        return "empty"
    if types.is_boolean(kind):
        return "boolean"
    if types.is_uint64(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_integer(kind):
        return "integer"
    if is_temporal(kind):
        return "date" if is_date(kind) else "time" if types.is_time(kind) else "number"  # a duration is one of days
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "text"
    return "other"


def cells_like(kind: Kind, levels: Levels, notation: Notation | None = None) -> Cells:
    """As what text is to be read that shall be of the kind of a column that was learned, with such values."""
    if notation is not None:
        return notation.style
    if kind == "empty":
        return "text"
    if kind == "category":
        return "coded" if levels and all(_is_number(level) for level in levels) else "text"
    return "boolean" if kind == "boolean" else _number_like(levels)


def cells_of_classes(label: str, classes: Levels) -> dict[str, Cells]:
    """The same for a column of labels; nothing is asked of one of mixed classes, or of none yet."""
    if not classes:
        return {}
    if all(isinstance(c, bool) for c in classes):
        return {label: "boolean"}
    if all(isinstance(c, str) for c in classes):
        return {label: "text"}
    return {label: _number_like(classes)} if all(_is_number(c) for c in classes) else {}


def _number_like(levels: Levels) -> Cells:
    """A double would round whole numbers beyond 2⁵³, and so take one category for another."""
    return "integer" if any(isinstance(level, int) and abs(level) > 1 << 53 for level in levels) else "number"


def _is_number(level: Level) -> bool:
    return isinstance(level, (int, float)) and not isinstance(level, bool)
