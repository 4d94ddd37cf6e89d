"""Figures: plain values and tables that JSON can hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from math import ceil, inf, log10
from typing import Any

import numpy as np

Figures = dict[str, Any]
LARGEST_INTEGER = 1 << 53  # the largest integer that JavaScript holds exactly


def table(fields: Sequence[str], rows: Iterable[Sequence[Any]]) -> Figures:
    """A table, its numbers rounded to 6 digits, or to a millionth of the range of their column.

    >>> table(["x", "share"], [(1, 2 / 3), ("b", float("nan"))])
    {'fields': ['x', 'share'], 'rows': [[1, 0.666667], ['b', None]]}
    >>> table(["time"], [(1.6e9 + 1 / 3,), (1.6e9 + 2,)])["rows"]
    [[1600000000.333333], [1600000002.0]]
    """
    cells = [[plain(cell) for cell in row] for row in rows]
    extents = [_half_range(column) for column in zip(*cells, strict=True)]
    return {
        "fields": list(fields),
        "rows": [[rounded(*pair) for pair in zip(row, extents, strict=True)] for row in cells],
    }


def _half_range(column: Sequence[Any]) -> float:
    """Half the range of the numbers: the range itself may overflow."""
    numbers = [cell for cell in column if isinstance(cell, float)]
    return max(numbers, default=0.0) / 2 - min(numbers, default=0.0) / 2


def rounded(value: Any, extent: float = 0.0) -> Any:
    """A plain value with 6 digits; more if `extent`, the range of its column, is narrow for its size.

    >>> rounded(2 / 3), rounded(1.6e9 + 1 / 3, extent=10.0)
    (0.666667, 1600000000.33333)
    """
    number = plain(value)
    if not isinstance(number, float):
        return number
    ratio = abs(number) / extent if extent > 0.0 else 0.0
    digits = 6 + ceil(log10(ratio)) if 1.0 < ratio < inf else 6
    return float(f"{number:.{min(digits, 17)}g}")


def cell_of(value: Any) -> Any:
    """A value for JSON; an integer that JavaScript would round becomes text.

    >>> cell_of(2**60 + 1), cell_of(Decimal("0.5"))
    ('1152921504606846977', 0.5)
    """
    cell = plain(value)
    return str(cell) if isinstance(cell, int) and abs(cell) > LARGEST_INTEGER else cell


def plain(value: Any) -> Any:
    """A value that JSON can hold: no numpy, no Decimal; NaN is None, and ±inf is text.

    >>> plain({"a": np.array([1.0, np.nan, -np.inf]), 2: (True, "x")})
    {'a': [1.0, None, '-inf'], '2': [True, 'x']}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, Mapping):
        return {str(key): plain(cell) for key, cell in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(cell) for cell in value]
    if isinstance(value, float):
        if np.isnan(value):
            return None
        return value if np.isfinite(value) else ("inf" if value > 0 else "-inf")
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def counted(n: float, word: str) -> str:
    """A count with its noun.

    >>> counted(1, "row"), counted(32561, "row"), counted(2, "class")
    ('1 row', '32,561 rows', '2 classes')
    """
    plural = f"{word}es" if word.endswith("s") else f"{word}s"
    return f"{n:,.0f} {word if n == 1 else plural}" if float(n).is_integer() else f"{n:,.6g} {plural}"
