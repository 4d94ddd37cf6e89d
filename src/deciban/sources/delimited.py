"""Files of separated values: csv, tsv and their relatives, with any dialect."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice, pairwise
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from deciban import _kernels
from deciban.errors import DecibanError
from deciban.sources.cells import ARROW, FALSE, TRUE, WORDS, Cells, cells_of, cells_of_type
from deciban.sources.part import Job, Read, Reading, Unfit
from deciban.sources.text import LONGEST, SAMPLE, Block, TextFile

MISSING = ("", "?", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL")
DELIMITERS = ",\t;|"
LOOKED_AT = 200  # records, to find a dialect
SPACES = " \t"  # beside a number they are no part of it
BREAKS = b"\r\n"
READ_AS = ARROW | {"boolean": ARROW["text"]}  # Arrow takes no spaces beside true and false

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
    missing: Collection[str] = MISSING
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
    found = {d: _records(text, d, asked.quote) for d in order}
    delimiter = max(found, key=lambda d: _regularity(found[d], asked.decimal or ("." if d == "," else ",")))
    records = found[delimiter]
    after = [cell for record in records for cell in record[1:] if cell]
    spaced = delimiter != "\t" and bool(after) and sum(cell[0] == " " for cell in after) > 0.9 * len(after)
    cells = [[cell.strip() for cell in record] for record in records]
    decimal = asked.decimal or ("," if delimiter != "," and _has_decimal_commas(cells, asked.missing) else ".")
    header = _has_header(cells, asked.missing, decimal) if asked.header is None else asked.header
    if asked.names is not None and asked.header is None:
        header = bool(cells) and cells[0] == list(asked.names)
    return Dialect(delimiter, asked.quote, header, spaced, decimal)


def _style(quote: str) -> dict[str, Any]:
    return {"quotechar": quote} if quote else {"quoting": csv.QUOTE_NONE}


def _records(text: str, delimiter: str, quote: str) -> list[list[str]]:
    """The first records."""
    with _cells_of_any_length():
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, **_style(quote))
        return list(islice(filter(None, reader), LOOKED_AT))


@contextmanager
def _cells_of_any_length() -> Iterator[None]:
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


@dataclass(frozen=True)
class Delimited:
    """One file of separated values."""

    file: TextFile
    asked: Asked
    trim: Mapping[str, str]  # characters to take off the end of a column's cells

    @property
    def path(self) -> str:
        return self.file.path

    @property
    def title(self) -> str:
        return self.file.title

    @cached_property
    def dialect(self) -> Dialect:
        return sniff(self._sample, self.asked, tabs=".tsv" in self.path or ".tab" in self.path)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """As in the header; c1, c2, … where there is none."""
        start, end = self._first
        block = Block(self.file.sample[start:end], start, 0)
        if start == end:
            raise DecibanError(f"{self.title} is empty: it has no rows")
        self._require_utf8(block)
        self._require_closed(block)
        first = [cell.strip() for cell in _records(block.text.decode(), self.dialect.delimiter, self.dialect.quote)[0]]
        if self.asked.names is not None:
            if len(self.asked.names) != len(first):
                given = len(self.asked.names)
                raise self.file.error(start, f"{given} names are given for {len(first)} columns")
            return tuple(self.asked.names)
        if not self.dialect.header:
            return tuple(f"c{j + 1}" for j in range(len(first)))
        return tuple(cell or f"c{j + 1}" for j, cell in enumerate(first))

    @cached_property
    def columns(self) -> dict[str, Cells]:
        """What the first records show; later ones may need wider types."""
        sample = self.file.sample[self._start :]
        end = self._ends(sample) if len(self.file.sample) >= SAMPLE else len(sample)
        return self._cells(Block(sample[:end], self._start, 0))

    def jobs(self, reading: Reading) -> Iterator[Job]:
        for block in self._blocks():
            yield partial(self._read, block, reading)

    def surveys(self) -> Iterator[Callable[[], dict[str, Cells]]]:
        for block in self._blocks():
            yield partial(self._survey, block)

    def _survey(self, block: Block) -> dict[str, Cells]:
        try:
            self._read(block, Reading(self.names, self.columns, frozenset(self.names)))
        except Unfit:
            return self._cells(block)
        return self.columns

    def _blocks(self) -> Iterator[Block]:
        """Records without the header."""
        for block in self.file.blocks(self._ends, self._start):
            if not block.ended:
                self._require_closed(block)
            yield block

    def place(self, offset: int, row: int) -> str:
        found = next((block for block in self._blocks() if block.offset == offset), None)
        return self.title if found is None else self._place(found, row)

    def _place(self, block: Block, row: int) -> str:
        line, _ = next(islice(self._lines(block), row, None))
        return f"{self.title}, line {line}"

    # Bytes → cells -------------------------------------------------------------------------------------------------

    def _read(self, block: Block, reading: Reading) -> Read:
        """The chosen columns of a block; Unfit if a type that was only guessed does not hold its cells."""
        mine = set(self.names)
        types = {name: reading.types[name] for name in reading.names if name in mine}
        try:
            table = self._table(block, types, reading.guessed)
        except pa.ArrowInvalid as error:
            self._diagnose(block, reading)
            raise DecibanError(f"{self.title}: {error}") from None
        return Read(table, block.offset, block.read)

    def _table(self, block: Block, types: Mapping[str, Cells], guessed: Set[str] = frozenset()) -> Any:
        try:
            table = self._parsed(block, {name: self._read_as(name, cells) for name, cells in types.items()})
        except pa.ArrowInvalid:
            if not self.dialect.spaced:
                raise
            table = self._parsed(block, dict.fromkeys(types, ARROW["text"]))  # spaces beside what stands for missing
        columns = [
            self._converted(column, name, cells, strict=name in guessed)
            for column, (name, cells) in zip(table.columns, types.items(), strict=True)
        ]
        whole = [name for name, cells in types.items() if cells == "integer" and name in guessed]
        if whole:
            self._forbid_hexadecimals(block, whole)
        return pa.table(columns, names=list(types))

    def _read_as(self, name: str, cells: Cells) -> Any:
        return ARROW["text"] if name in self.trim else READ_AS[cells]

    def _parsed(self, block: Block, types: Mapping[str, Any]) -> Any:
        return pacsv.read_csv(
            pa.BufferReader(block.data),
            read_options=pacsv.ReadOptions(column_names=self.names, use_threads=False, block_size=len(block.data) + 1),
            parse_options=pacsv.ParseOptions(
                delimiter=self.dialect.delimiter,
                quote_char=self.dialect.quote or False,
                newlines_in_values=True,
            ),
            convert_options=pacsv.ConvertOptions(
                column_types=types,
                include_columns=list(types),
                null_values=self._missing,
                strings_can_be_null=True,
                decimal_point=self.dialect.decimal,
            ),
        )

    @cached_property
    def _missing(self) -> list[str]:
        """What is written for a missing cell; where cells have spaces beside them, with one too."""
        found = list(self.asked.missing)
        return [*found, *(f" {word}" for word in found)] if self.dialect.spaced else found

    def _converted(self, column: Any, name: str, cells: Cells, *, strict: bool) -> Any:
        """A column that was read as text, trimmed, and as what it is to be."""
        if cells_of_type(column.type) != "text":
            return column
        if self.dialect.spaced or name in self.trim:
            column = pa.chunked_array([self._trimmed(chunk, name) for chunk in column.chunks], column.type)
        if cells == "text":
            return column
        chunks = [self._values(chunk.dictionary, cells, strict=strict).take(chunk.indices) for chunk in column.chunks]
        return pa.chunked_array(chunks, ARROW[cells])

    def _values(self, words: Any, cells: Cells, *, strict: bool) -> Any:
        """Cells of text as what they are to be. Unless strict, 1 and 0 are true and false."""
        words = self._pointed(words)
        if cells == "boolean":
            truth = pc.is_in(words, pa.array(TRUE if strict else (*TRUE, "1")))
            either = pc.or_(truth, pc.is_in(words, pa.array((None, *(FALSE if strict else (*FALSE, "0"))))))
            if not pc.all(either, min_count=0).as_py():
                raise pa.ArrowInvalid("neither true nor false")
            return pc.if_else(words.is_null(), None, truth)
        if cells == "empty":
            if words.null_count < len(words):
                raise pa.ArrowInvalid("not empty")
            return pa.nulls(len(words))
        return pc.cast(words, ARROW[cells])

    def _trimmed(self, array: Any, name: str) -> Any:
        """Without spaces at both ends, and without what is to be taken off; a cell of nothing else is missing."""
        if pa.types.is_dictionary(array.type):
            return pa.DictionaryArray.from_arrays(array.indices, self._trimmed(array.dictionary, name))
        if self.dialect.spaced:
            array = pc.utf8_trim_whitespace(array)
        if name in self.trim:
            array = pc.utf8_rtrim(array, self.trim[name])
        return pc.if_else(pc.is_in(array, pa.array(self.asked.missing, pa.string())), None, array)

    def _cells(self, block: Block) -> dict[str, Cells]:
        """The type of every column of a block."""
        if not block.text.strip():
            return dict.fromkeys(self.names, "empty")
        try:
            table = self._table(block, dict.fromkeys(self.names, "text"))
        except pa.ArrowInvalid as error:
            self._diagnose(block, Reading(self.names, dict.fromkeys(self.names, "text")))
            raise DecibanError(f"{self.title}: {error}") from None
        return {name: self._cells_of(table.column(name)) for name in self.names}

    def _cells_of(self, column: Any) -> Cells:
        return cells_of(pa.chunked_array([self._pointed(chunk.dictionary) for chunk in column.chunks], pa.string()))

    def _pointed(self, text: Any) -> Any:
        """Without spaces, and with a decimal point where the file has another sign for it."""
        text = pc.utf8_trim(text, SPACES)
        if self.dialect.decimal == ".":
            return text
        return pc.replace_substring(pc.replace_substring(text, ".", "_"), self.dialect.decimal, ".")

    def _forbid_hexadecimals(self, block: Block, names: list[str]) -> None:
        """Arrow takes 0x10 for a whole number, but for no other number: here it is text."""
        text = block.text
        if (b"x" in text or b"X" in text) and (b"0x" in text or b"0X" in text):
            table = self._table(block, dict.fromkeys(names, "text"))
            if any(self._cells_of(column) == "text" for column in table.columns):
                raise pa.ArrowInvalid("hexadecimal numbers are text")

    # Where records end, and what is wrong with them ----------------------------------------------------------------

    @cached_property
    def _first(self) -> tuple[int, int]:
        """Where the first record is, after lines to be skipped and blank ones."""
        sample = self._sample.lstrip(BREAKS)
        start = len(self.file.sample) - len(sample)
        return start, start + (_kernels.record_ends(sample, *self._marks, 1) or len(sample))

    @cached_property
    def _start(self) -> int:
        """Where the records begin, after the header."""
        return self._first[1 if self.dialect.header else 0]

    @cached_property
    def _sample(self) -> bytes:
        sample = self.file.sample
        for _ in range(self.asked.skip):
            sample = sample.partition(b"\n" if b"\n" in sample else b"\r")[2]
        return sample

    def _ends(self, data: bytes) -> int:
        """Where the last complete record ends; a line break inside of quotes ends none."""
        if not self.dialect.quote or self.dialect.quote.encode() not in data:
            return data.rfind(b"\n") + 1 or data.rfind(b"\r", 0, -1) + 1
        return _kernels.record_ends(data, *self._marks, 0)

    @property
    def _marks(self) -> tuple[int, int]:
        return ord(self.dialect.delimiter), ord(self.dialect.quote or "\0")

    def _lines(self, block: Block) -> Iterator[tuple[int, list[str]]]:
        """Every record with the number of its first line: slow, for messages."""
        text, line, before = io.StringIO(block.text.decode(), newline=""), self.file.line(block.offset), 0
        reader = csv.reader(text, delimiter=self.dialect.delimiter, **_style(self.dialect.quote))
        while True:
            with _cells_of_any_length():
                record = next(reader, None)
            if record is None:
                return
            if record:
                yield line + before, record
            before = reader.line_num

    def _require_utf8(self, block: Block) -> None:
        try:
            block.text.decode()
        except UnicodeDecodeError as error:
            problem = "holds bytes that are not UTF-8: give the file's encoding, for instance latin-1"
            raise self.file.error(block.offset + error.start, problem) from None

    def _require_closed(self, block: Block) -> None:
        """The last quote that opens is closed: else it would swallow the rest of the file."""
        data, quote, opened, at = block.text, self.dialect.quote.encode(), -1, 0
        before = (b"", b"\n", b"\r", self.dialect.delimiter.encode())
        while quote and (at := data.find(quote, at)) >= 0:
            if opened < 0 and data[max(0, at - 1) : at] in before:
                opened = at
            elif opened >= 0 and data[at + 1 : at + 2] == quote:
                at += 1
            elif opened >= 0:
                opened = -1
            at += 1
        if opened >= 0:
            raise self.file.error(block.offset + opened, "the quote that opens here is not closed")

    def _diagnose(self, block: Block, reading: Reading) -> None:
        """Raises what is wrong with a block that cannot be read."""
        self._require_utf8(block)
        self._require_closed(block)
        for line, record in self._lines(block):
            if len(record) != len(self.names):
                shown = self.dialect.delimiter.join(record)[:60]
                problem = f"{len(record)} cells, where there are {len(self.names)} columns: {shown!r}"
                problem += "; is a quote not closed?" if any("\n" in cell for cell in record) else ""
                raise DecibanError(f"{self.title}, line {line}: {problem}")
        for name in set(self.names).intersection(reading.names) - reading.guessed:
            self._require_fit(block, name, reading.types[name])
        if reading.guessed:
            raise Unfit

    def _require_fit(self, block: Block, name: str, wanted: Cells) -> None:
        column = self._table(block, {name: "text"}).column(0)
        first, stop = 0, len(column)
        if wanted == "text" or self._fits(column, wanted):
            return
        while stop - first > 1:  # the first cell that does not fit is among these
            middle = (first + stop) // 2
            first, stop = (middle, stop) if self._fits(column[first:middle], wanted) else (first, middle)
        place, cell = self._place(block, first), column[first].as_py()
        raise DecibanError(f"{place}: column {name!r} is read as {WORDS[wanted]}, and {cell!r} is not")

    def _fits(self, column: Any, wanted: Cells) -> bool:
        text = pa.chunked_array([column.cast(pa.string()).unique()])
        try:
            self._values(text, wanted, strict=False)
        except pa.ArrowInvalid:
            return False
        return True
