"""Dialects of csv: options that are not passed are inferred from the first records."""

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

from deciban.data.files.text_files import MAX_RECORD
from deciban.errors import DecibanError

NA_VALUES = ("", "?", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL")
DELIMITERS = ",\t;|"
SAMPLED_RECORDS = 200  # from which a dialect is inferred
DIGITS = re.compile(r"\d{1,9}", re.ASCII)
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}", re.ASCII)
YEARS = range(1000, 3000)
FIELD_LIMIT = Lock()  # one thread at a time changes the field size limit of Python's csv module


@dataclass(frozen=True)
class Dialect:
    """How a csv file is written.

    >>> sniff(b"39, State-gov, <=50K\\n50, ?, >50K\\n")
    Dialect(delimiter=',', quote='"', header=False, spaced=True, decimal='.')
    """

    delimiter: str
    quote: str  # "" for none
    header: bool
    spaced: bool  # spaces beside delimiters are not part of cells
    decimal: str = "."


@dataclass(frozen=True)
class CsvOptions:
    """The options of `scan` for csv files; None is inferred."""

    delimiter: str | None = None
    quote: str = '"'
    header: bool | None = None
    names: Sequence[str] | None = None
    na_values: Collection[str] = NA_VALUES
    decimal: str | None = None
    skip: int = 0

    def check(self) -> None:
        """Raises DecibanError if an option cannot be used."""
        signs = {"delimiter": self.delimiter, "quote": self.quote}
        signs = {option: sign for option, sign in signs.items() if sign}
        signs["decimal"] = "." if self.decimal is None else self.decimal
        for option, sign in signs.items():
            if not (isinstance(sign, str) and len(sign) == 1 and (sign == "\t" or " " <= sign <= "~")):
                raise DecibanError(f"{option} must be one character of ASCII, not {sign!r}")
        if len(set(signs.values())) < len(signs):
            raise DecibanError(f"{', '.join(signs)} must be different characters, not {list(signs.values())}")
        for option, words in (("names", self.names or ()), ("na_values", self.na_values)):
            require_utf8(option, *words)
        if not isinstance(self.skip, int) or self.skip < 0:
            raise DecibanError(f"skip must be a whole number of 0 or more, not {self.skip!r}")


def require_utf8(option: str, *texts: str) -> None:
    """Raises DecibanError for text that no file holds: arguments of a command may be any bytes."""
    for text in texts:
        try:
            str(text).encode()
        except UnicodeEncodeError:
            raise DecibanError(f"{option} must be text in UTF-8, not {text!r}") from None


def sniff(sample: bytes, options: CsvOptions | None = None, delimiters: str = DELIMITERS) -> Dialect:
    """The dialect of a file that begins with the sample; the first of equally good delimiters is chosen."""
    options = CsvOptions() if options is None else options
    lines = sample.decode(errors="replace").splitlines(keepends=True)
    if len(lines) > 1 and len(lines) <= SAMPLED_RECORDS and not sample.endswith((b"\n", b"\r")):
        lines.pop()  # perhaps cut off
    text = "".join(lines[: SAMPLED_RECORDS * 2])
    candidates = options.delimiter or delimiters.replace(options.decimal or ".", "")
    parses = {
        d: [record for _, record in islice(numbered_records(text, d, options.quote), SAMPLED_RECORDS)]
        for d in candidates
    }
    delimiter = max(parses, key=lambda d: _regularity(parses[d], options.decimal or ("." if d == "," else ",")))
    records = parses[delimiter]
    later_cells = [cell for record in records for cell in record[1:] if cell]
    leading_spaces = sum(cell[0] == " " for cell in later_cells)
    spaced = delimiter != "\t" and bool(later_cells) and leading_spaces > 0.9 * len(later_cells)
    cells = [[cell.strip() for cell in record] for record in records]
    decimal = options.decimal or ("," if delimiter != "," and _has_decimal_commas(cells, options.na_values) else ".")
    header = _has_header(cells, options.na_values, decimal) if options.header is None else options.header
    if options.names is not None and options.header is None:
        header = bool(cells) and cells[0] == list(options.names)
    return Dialect(delimiter, options.quote, header, spaced, decimal)


def numbered_records(text: str, delimiter: str, quote: str) -> Iterator[tuple[int, list[str]]]:
    """Every record, with the number of lines before it."""
    quoting: Any = {"quotechar": quote} if quote else {"quoting": csv.QUOTE_NONE}
    reader, before = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, **quoting), 0
    while True:
        with _raised_field_limit():
            record = next(reader, None)
        if record is None:
            return
        if record:
            yield before, record
        before = reader.line_num


@contextmanager
def _raised_field_limit() -> Iterator[None]:
    """Python's csv module reads cells as long as those that Arrow reads."""
    with FIELD_LIMIT:
        before = csv.field_size_limit()
        csv.field_size_limit(max(before, MAX_RECORD))
        try:
            yield
        finally:
            csv.field_size_limit(before)


def _regularity(records: list[list[str]], decimal: str) -> tuple[float, float, int]:
    """(share of records of one width, share of numbers, width): the greatest is the best delimiter.

    A single column counts as half regular.
    """
    if not records:
        return 0.0, 0.0, 0
    width, times = Counter(map(len, records)).most_common(1)[0]
    if width == 1:
        return 0.5, 0.0, 1
    cells = [cell for record in records for cell in record]
    return times / len(records), sum(_is_number(cell, decimal) for cell in cells) / len(cells), width


def _has_decimal_commas(records: list[list[str]], missing: Collection[str]) -> bool:
    """Whether a column is numbers with commas, not all of them before thousands, and none is numbers with points."""
    columns = _columns(records[1:] or records, missing, len(records[0]) if records else 0)
    pointed = any("." in cell for column in columns if _all_numbers(column, ".") for cell in column)
    commas = [[cell for cell in column if "," in cell] for column in columns if _all_numbers(column, ",")]
    return not pointed and any(not THOUSANDS.fullmatch(cell) for column in commas for cell in column)


def _columns(records: list[list[str]], missing: Collection[str], width: int) -> list[list[str]]:
    """The cells of every column that are not missing."""
    return [[r[j] for r in records if j < len(r) and r[j] not in missing] for j in range(width)]


def _has_header(records: list[list[str]], missing: Collection[str], decimal: str) -> bool:
    """Whether the first record is names: text above numbers, or above other text."""
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
    """Whether names are numbers: 0, 1, … or 1, 2, …, or years, above other cells; in doubt not."""
    numbered = [j for j, cell in enumerate(first) if _is_number(cell, decimal)]
    words = [j for j, cell in enumerate(first) if cell and j not in numbered]
    if not all(columns[j] for j in numbered) or any(first[j] in columns[j] for j in words):
        return False
    if not all(DIGITS.fullmatch(first[j]) for j in numbered):
        return False
    names, below = [int(first[j]) for j in numbered], [columns[j] for j in numbered]
    has_name = any(first[j][0].isalpha() and _all_numbers(columns[j], decimal) for j in words)
    years = bool(words) and _are_years(names, below, has_name=has_name)
    return years or _are_counted(names, below, has_name=has_name)


def _are_counted(names: list[int], below: list[list[str]], *, has_name: bool) -> bool:
    """Whether names are 0, 1, …, as in pandas, or 1, 2, …; if they are few, only above fractions.

    `has_name`: the name of another column is text above numbers.
    """
    start, count = names[0], len(names)
    ranks = any(sorted(row) == sorted(map(str, names)) for row in zip(*below, strict=False))
    if start not in (0, 1) or names != list(range(start, start + count)) or ranks:
        return False
    fractions = all(any(not DIGITS.fullmatch(cell) for cell in column) for column in below)
    return count >= 5 or (count >= 2 and has_name) or (count >= 2 + start and fractions)


def _are_years(names: list[int], below: list[list[str]], *, has_name: bool) -> bool:
    """Whether names are ascending years, above cells that are not all years."""
    rising = all(a < b for a, b in pairwise(names)) and (has_name or len(names) >= 2)
    other_cells = all(any(not DIGITS.fullmatch(cell) or int(cell) not in YEARS for cell in column) for column in below)
    return rising and other_cells and all(year in YEARS for year in names)


def _all_numbers(column: list[str], decimal: str) -> bool:
    return bool(column) and all(_is_number(cell, decimal) for cell in column)


def _is_number(cell: str, decimal: str) -> bool:
    try:
        float(cell if decimal == "." else cell.replace(".", "_.").replace(decimal, "."))
    except ValueError:
        return False
    return cell.lower() not in ("nan", "inf", "infinity")
