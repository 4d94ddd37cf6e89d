"""Dialects of separated values: found out from the first records, as far as they are not given."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, pairwise
from threading import Lock
from typing import Any

from deciban.sources.text import LONGEST

MISSING = ("", "?", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL")
DELIMITERS = ",\t;|"
LOOKED_AT = 200  # records, to find a dialect
WHOLE = re.compile(r"\d{1,9}", re.ASCII)
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}", re.ASCII)
YEARS = range(1000, 3000)
READING = Lock()  # one thread at a time changes the limit of Python's csv module


@dataclass(frozen=True)
class Dialect:
    """How a file of separated values is written.

    >>> sniff(b"39, State-gov, <=50K\\n50, ?, >50K\\n")
    Dialect(delimiter=',', quote='"', header=False, spaced=True, decimal='.')
    """

    delimiter: str
    quote: str  # "" is none
    header: bool
    spaced: bool  # spaces beside delimiters are not part of a cell
    decimal: str = "."


@dataclass(frozen=True)
class Asked:
    """What the user says of a dialect; None is left to be found out."""

    delimiter: str | None = None
    quote: str = '"'
    header: bool | None = None
    names: Sequence[str] | None = None
    na_values: Collection[str] = MISSING
    decimal: str | None = None
    skip: int = 0


def sniff(sample: bytes, asked: Asked | None = None, *, tabs: bool = False) -> Dialect:
    """The dialect of a file that begins so. `tabs` says that its name promises them."""
    asked = Asked() if asked is None else asked
    lines = sample.decode(errors="replace").splitlines(keepends=True)
    if len(lines) > 1 and len(lines) <= LOOKED_AT and not sample.endswith((b"\n", b"\r")):
        lines.pop()  # perhaps cut off
    text = "".join(lines[: LOOKED_AT * 2])
    order = asked.delimiter or ("\t" + DELIMITERS if tabs else DELIMITERS).replace(asked.decimal or ".", "")
    found = {d: records_of(text, d, asked.quote) for d in order}
    delimiter = max(found, key=lambda d: _regularity(found[d], asked.decimal or ("." if d == "," else ",")))
    records = found[delimiter]
    after = [cell for record in records for cell in record[1:] if cell]
    spaced = delimiter != "\t" and bool(after) and sum(cell[0] == " " for cell in after) > 0.9 * len(after)
    cells = [[cell.strip() for cell in record] for record in records]
    decimal = asked.decimal or ("," if delimiter != "," and _has_decimal_commas(cells, asked.na_values) else ".")
    header = _has_header(cells, asked.na_values, decimal) if asked.header is None else asked.header
    if asked.names is not None and asked.header is None:
        header = bool(cells) and cells[0] == list(asked.names)
    return Dialect(delimiter, asked.quote, header, spaced, decimal)


def style(quote: str) -> dict[str, Any]:
    return {"quotechar": quote} if quote else {"quoting": csv.QUOTE_NONE}


def records_of(text: str, delimiter: str, quote: str) -> list[list[str]]:
    """The first records."""
    with cells_of_any_length():
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, **style(quote))
        return list(islice(filter(None, reader), LOOKED_AT))


@contextmanager
def cells_of_any_length() -> Iterator[None]:
    """Headers and messages may have to show cells as long as those that Arrow reads."""
    with READING:
        before = csv.field_size_limit()
        csv.field_size_limit(max(before, LONGEST))
        try:
            yield
        finally:
            csv.field_size_limit(before)


def _regularity(records: list[list[str]], decimal: str) -> tuple[float, float, int]:
    """A delimiter is good if records have one width, and better the more cells are numbers, and the wider they are.

    None is as good as a ragged one.
    """
    if not records:
        return 0.0, 0.0, 0
    width, times = Counter(map(len, records)).most_common(1)[0]
    if width == 1:
        return 0.5, 0.0, 1
    cells = [cell for record in records for cell in record]
    return times / len(records), sum(_is_number(cell, decimal) for cell in cells) / len(cells), width


def _has_decimal_commas(records: list[list[str]], missing: Collection[str]) -> bool:
    """Some column is numbers with commas, not all of which may stand before thousands; none is numbers with points."""
    columns = _columns(records[1:] or records, missing, len(records[0]) if records else 0)
    pointed = any("." in cell for column in columns if _all_numbers(column, ".") for cell in column)
    commas = [[cell for cell in column if "," in cell] for column in columns if _all_numbers(column, ",")]
    return not pointed and any(not THOUSANDS.fullmatch(cell) for column in commas for cell in column)


def _columns(records: list[list[str]], missing: Collection[str], width: int) -> list[list[str]]:
    """The cells of every column that are not missing."""
    return [[r[j] for r in records if j < len(r) and r[j] not in missing] for j in range(width)]


def _has_header(records: list[list[str]], missing: Collection[str], decimal: str) -> bool:
    """Names are text; above numbers that is plain, above text they are none of the column's values."""
    if not records:
        return False
    first, columns = records[0], _columns(records[1:], missing, len(records[0]))
    if any(cell and cell in missing for cell in first):
        return False
    if any(_is_number(cell, decimal) for cell in first):
        return _has_numbers_for_names(first, columns, decimal)
    if len(records) == 1 or any(_all_numbers(column, decimal) for column in columns):
        return True
    return not any(cell in column for cell, column in zip(first, columns, strict=True))


def _has_numbers_for_names(first: list[str], columns: list[list[str]], decimal: str) -> bool:
    """Columns counted from 0 or 1, or called by years, above cells that are not such; in doubt a row is no header."""
    numbered = [j for j, cell in enumerate(first) if _is_number(cell, decimal)]
    words = [j for j, cell in enumerate(first) if cell and j not in numbered]
    if not all(columns[j] for j in numbered) or any(first[j] in columns[j] for j in words):
        return False
    if not all(WHOLE.fullmatch(first[j]) for j in numbered):
        return False
    names, below = [int(first[j]) for j in numbered], [columns[j] for j in numbered]
    plain = any(first[j][0].isalpha() and _all_numbers(columns[j], decimal) for j in words)
    return _are_counted(names, below, plain=plain) or (bool(words) and _are_years(names, below, plain=plain))


def _are_counted(names: list[int], below: list[list[str]], *, plain: bool) -> bool:
    """0, 1, … as pandas calls columns without names, or 1, 2, …; few of them are names if what they head is not whole.

    `plain` says that another column's name is plainly one.
    """
    start, count = names[0], len(names)
    ranks = any(sorted(row) == sorted(map(str, names)) for row in zip(*below, strict=False))
    if start not in (0, 1) or names != list(range(start, start + count)) or ranks:
        return False
    fractions = all(any(not WHOLE.fullmatch(cell) for cell in column) for column in below)
    return count >= 5 or (count >= 2 and plain) or (count >= 2 + start and fractions)


def _are_years(names: list[int], below: list[list[str]], *, plain: bool) -> bool:
    """Years that rise from column to column, above cells of which not all are years."""
    rising = all(a < b for a, b in pairwise(names)) and (plain or len(names) >= 2)
    found = all(any(not WHOLE.fullmatch(cell) or int(cell) not in YEARS for cell in column) for column in below)
    return rising and found and all(year in YEARS for year in names)


def _all_numbers(column: list[str], decimal: str) -> bool:
    return bool(column) and all(_is_number(cell, decimal) for cell in column)


def _is_number(cell: str, decimal: str) -> bool:
    try:
        float(cell if decimal == "." else cell.replace(".", "_.").replace(decimal, "."))
    except ValueError:
        return False
    return cell.lower() not in ("nan", "inf", "infinity")
