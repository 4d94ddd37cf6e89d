"""Files of separated values: csv, tsv and their relatives, with any dialect."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Collection, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from deciban import _kernels
from deciban.errors import DecibanError
from deciban.sources.cells import FALSE, STYLES, TRUE, WORDS, Cells, arrow_types, cells_of, cells_of_type
from deciban.sources.dialect import MISSING, Asked, Dialect, cells_of_any_length, records_of, sniff, style
from deciban.sources.notation import MARKERS, Options, Profile, profile_of, require_undecided, written_as
from deciban.sources.part import Job, Read, Reading, Unfit
from deciban.sources.text import SAMPLE, Block, TextFile

SPACES = " \t"  # beside a number they are no part of it
BREAKS = b"\r\n"
ARROW = arrow_types()
READ_AS = ARROW | dict.fromkeys(("boolean", *STYLES), ARROW["text"])  # Arrow takes no spaces beside true and false


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
        first = [
            cell.strip() for cell in records_of(block.text.decode(), self.dialect.delimiter, self.dialect.quote)[0]
        ]
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
        return self._cells(self._first_block)

    @property
    def _first_block(self) -> Block:
        """The first records."""
        sample = self.file.sample[self._start :]
        end = self._ends(sample) if len(self.file.sample) >= SAMPLE else len(sample)
        return Block(sample[:end], self._start, 0)

    def jobs(self, reading: Reading) -> Iterator[Job]:
        for block in self._blocks():
            yield partial(self._read, block, reading)

    def surveys(self) -> Iterator[Callable[[], dict[str, Cells]]]:
        for block in self._blocks():
            yield partial(self._survey, block)

    def profiles(self, names: Collection[str], *, first: bool) -> Iterator[Callable[[], dict[str, Profile]]]:
        mine = [name for name in self.names if name in names]
        for block in [self._first_block] if first else self._blocks():
            yield partial(self._profiles, block, mine)

    def _profiles(self, block: Block, names: list[str]) -> dict[str, Profile]:
        if not names or not block.text.strip():
            return {}
        table = self._table(block, dict.fromkeys(names, "text"))
        chunks = ((name, chunk) for name in names for chunk in table.column(name).chunks)
        found: dict[str, Profile] = {}
        for name, chunk in chunks:
            found[name] = found.get(name, Profile()) + profile_of(chunk, self._options)
        return found

    @cached_property
    def _options(self) -> Options:
        """A decimal sign, or what is written for a missing cell, is not guessed where it is given."""
        decimals = {".": "formatted_comma", ",": "formatted"}  # what is then left out
        styles = tuple(style for style in STYLES if style != decimals.get(self.asked.decimal or ""))
        markers = MARKERS if self.asked.na_values == MISSING else frozenset[str]()
        return Options(styles, markers, digits_are_numbers=True)

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
            require_undecided(table, reading.undecided, self._options)
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
        numbers = [name for name, cells in types.items() if cells in ("integer", "number") and name in guessed]
        if numbers:
            self._forbid_codes(block, numbers)
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
        found = list(self.asked.na_values)
        return [*found, *(f" {word}" for word in found)] if self.dialect.spaced else found

    def _converted(self, column: Any, name: str, cells: Cells, *, strict: bool) -> Any:
        """A column that was read as text, trimmed, and as what it is to be."""
        if cells_of_type(column.type) != "text":
            return column
        if self.dialect.spaced or name in self.trim:
            column = pa.chunked_array([self._trimmed(chunk, name) for chunk in column.chunks], column.type)
        if cells == "text":
            return column
        if cells in STYLES:
            return written_as(column, cells, strict=strict, options=self._options)
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
        return pc.if_else(pc.is_in(array, pa.array(self.asked.na_values, pa.string())), None, array)

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

    def _forbid_codes(self, block: Block, names: list[str]) -> None:
        """Arrow takes 0x10 and 00501 for whole numbers: here they are text."""
        text = block.text
        hexadecimal = (b"x" in text or b"X" in text) and (b"0x" in text or b"0X" in text)
        if hexadecimal or _kernels.has_leading_zero(text, *self._marks):
            table = self._table(block, dict.fromkeys(names, "text"))
            if any(self._cells_of(column) == "text" for column in table.columns):
                raise pa.ArrowInvalid("hexadecimal numbers, and digits with leading zeros, are text")

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
        reader = csv.reader(text, delimiter=self.dialect.delimiter, **style(self.dialect.quote))
        while True:
            with cells_of_any_length():
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
        if wanted in ("text", *STYLES) or self._fits(column, wanted):
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
