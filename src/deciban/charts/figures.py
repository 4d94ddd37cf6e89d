"""Figures: plain values that JSON can hold, and tables of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

Figures = dict[str, Any]


def table(fields: Sequence[str], rows: Iterable[Sequence[Any]]) -> Figures:
    """A table in long form, its numbers rounded to 6 digits, which is more than a chart shows.

    >>> table(["x", "share"], [(1, 2 / 3), ("b", float("nan"))])
    {'fields': ['x', 'share'], 'rows': [[1, 0.666667], ['b', None]]}
    """
    return {"fields": list(fields), "rows": [[rounded(cell) for cell in row] for row in rows]}


def rounded(value: Any) -> Any:
    """A plain value, with 6 digits if it is a fraction."""
    found = plain(value)
    return float(f"{found:.6g}") if isinstance(found, float) else found


def plain(value: Any) -> Any:
    """What JSON can hold: no numpy; NaN is None, and what is infinite is text.

    >>> plain({"a": np.array([1.0, np.nan, -np.inf]), 2: (True, "x")})
    {'a': [1.0, None, '-inf'], '2': [True, 'x']}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        value = value.tolist()
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
    """A number of things, with commas.

    >>> counted(1, "row"), counted(32561, "row"), counted(2, "class")
    ('1 row', '32,561 rows', '2 classes')
    """
    many = f"{word}es" if word.endswith("s") else f"{word}s"
    return f"{n:,.0f} {word if n == 1 else many}" if float(n).is_integer() else f"{n:,.6g} {many}"
