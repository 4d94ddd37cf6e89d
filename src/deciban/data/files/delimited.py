"""csv, tsv and other delimited files, of any dialect."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from deciban import _kernels
from deciban.data.cell_types import BOOLEANS, CELL_WORDS, STYLES, CellType, arrow_types, cell_type_of, infer_cell_type
from deciban.data.files.dialect import DELIMITERS, NA_VALUES, CsvOptions, Dialect, numbered_records, require_utf8, sniff
from deciban.data.files.fragment import Chunk, FileFormat, ReadOptions, TextFragment, TypeMismatch
from deciban.data.files.text_files import BOM, SAMPLE, Block, parser_input
from deciban.data.notation import MARKERS, NotationOptions, TextProfile, parse_column, profile_table, require_undecided
from deciban.errors import DecibanError

SPACES = " \t"  # stripped around numbers
GIVEN_BOOLEANS = (*BOOLEANS[0], "1"), (*BOOLEANS[1], "0")  # in columns whose type is given
ARROW = arrow_types()
READ_AS = ARROW | dict.fromkeys(("boolean", *STYLES), ARROW["text"])  # Arrow allows no spaces around true and false


@dataclass(frozen=True)
class Delimited(TextFragment):
    """A csv file."""

    options: CsvOptions
    trim: Mapping[str, str]  # characters to strip from the end of a column's cells

    @cached_property
    def dialect(self) -> Dialect:
        tabs = ".tsv" in self.path or ".tab" in self.path
        return sniff(self._sample, self.options, "\t" + DELIMITERS if tabs else DELIMITERS)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """As in the header; c1, c2, … without one."""
        start, end = self._first_record
        block = Block(self.file.sample[start:end], start, 0)
        if start == end:
            raise DecibanError(f"{self.title} is empty: it has no rows")
        self._require_utf8(block)
        self._require_closed(block)
        _, first = next(numbered_records(block.text.decode(), self.dialect.delimiter, self.dialect.quote))
        names = self.options.names
        if names is not None and len(names) != len(first):
            raise self.file.error(start, f"{len(names)} names are given for {len(first)} columns")
        if names is not None:
            return tuple(names)
        header = first if self.dialect.header else [""] * len(first)
        return tuple(cell.strip() or f"c{j + 1}" for j, cell in enumerate(header))

    @cached_property
    def columns(self) -> dict[str, CellType]:
        """Types of the first records; later ones may need wider types."""
        return self._infer_types(self._first_block)

    @property
    def _first_block(self) -> Block:
        sample = self.file.sample[self._start :]
        end = self._find_end(sample) if len(self.file.sample) >= SAMPLE else len(sample)
        return Block(sample[:end], self._start, 0)

    def _profiles(self, names: Collection[str], block: Block) -> dict[str, TextProfile]:
        selected = [name for name in self.names if name in names]
        if not selected or not block.text.strip():
            return {}
        return profile_table(self._table(block, ReadOptions.as_text(selected)), self._notation_options)

    def with_trim(self, name: str, characters: str) -> Delimited:
        require_utf8("trim", characters)
        return replace(self, trim={**self.trim, name: characters})

    @cached_property
    def _notation_options(self) -> NotationOptions:
        """A decimal separator or missing values that the user gave rule out others."""
        excluded = {".": "formatted_comma", ",": "formatted"}.get(self.options.decimal or "")
        styles = tuple(style for style in STYLES if style != excluded)
        markers = MARKERS if self.options.na_values == NA_VALUES else frozenset[str]()
        return NotationOptions(styles, markers, digits_are_numbers=True)

    def _block_types(self, block: Block) -> dict[str, CellType]:
        try:
            self._read(block, ReadOptions(self.names, self.columns, frozenset(self.names)))
        except TypeMismatch:
            return self._infer_types(block)
        return self.columns

    def _blocks(self) -> Iterator[Block]:
        for block in self.file.blocks(self._find_end, self._start):
            if not block.ends_with_newline:
                self._require_closed(block)
            yield block

    def _line(self, block: Block, row: int) -> int:
        return next(islice(self._records(block), row, None))[0]

    # Bytes → cells -------------------------------------------------------------------------------------------------

    def _read(self, block: Block, options: ReadOptions) -> Chunk:
        try:
            table = self._table(block, options)
            require_undecided(table, options.undecided, self._notation_options)
        except pa.ArrowInvalid as error:
            raise self._diagnosis(block, options, error) from None
        return Chunk(table, block.offset, block.bytes_read)

    def _table(self, block: Block, options: ReadOptions) -> Any:
        own_names = set(self.names)
        types = {name: options.types[name] for name in options.names if name in own_names}
        if not types:  # the number of rows is needed all the same
            return self._table(block, ReadOptions.as_text(self.names[:1]))
        try:
            read_as = {name: READ_AS["text" if name in self.trim else t] for name, t in types.items()}
            table = self._parsed(block, read_as)
        except pa.ArrowInvalid:
            if not self.dialect.spaced:
                raise
            table = self._parsed(block, dict.fromkeys(types, ARROW["text"]))  # spaces beside missing values
        columns = [self._converted(column, name, options) for name, column in zip(types, table.columns, strict=True)]
        numbers = [name for name in options.inferred if types.get(name) in ("integer", "number")]
        if numbers:
            self._forbid_codes(block, numbers)
        return pa.table(columns, names=list(types))

    def _parsed(self, block: Block, types: Mapping[str, Any]) -> Any:
        missing = self.options.na_values
        return pacsv.read_csv(
            parser_input(block.data),
            read_options=pacsv.ReadOptions(
                column_names=self.names, use_threads=False, block_size=len(block.data) + len(BOM) + 1
            ),
            parse_options=pacsv.ParseOptions(
                delimiter=self.dialect.delimiter, quote_char=self.dialect.quote or False, newlines_in_values=True
            ),
            convert_options=pacsv.ConvertOptions(
                column_types=types,
                include_columns=list(types),
                null_values=[*missing, *(f" {word}" for word in missing if self.dialect.spaced)],
                strings_can_be_null=True,
                decimal_point=self.dialect.decimal,
            ),
        )

    def _converted(self, column: Any, name: str, options: ReadOptions) -> Any:
        """A column that was read as text, trimmed and converted to its type."""
        if cell_type_of(column.type) != "text":
            return column
        cell_type = options.types[name]
        if self.dialect.spaced or name in self.trim:
            column = pa.chunked_array([self._trimmed(chunk, name) for chunk in column.chunks], column.type)
        if cell_type == "text":
            return column
        if cell_type in STYLES:
            return parse_column(column, cell_type, options.markers(name, self._notation_options.markers))
        booleans = BOOLEANS if name in options.inferred else GIVEN_BOOLEANS
        chunks = [self._parsed_text(c.dictionary, cell_type, booleans).take(c.indices) for c in column.chunks]
        return pa.chunked_array(chunks, ARROW[cell_type])

    def _parsed_text(
        self, words: Any, cell_type: CellType, booleans: tuple[tuple[str, ...], tuple[str, ...]] = GIVEN_BOOLEANS
    ) -> Any:
        """Text as values of a type; raises pa.ArrowInvalid if a word is not one."""
        words = self._with_decimal_points(words)
        if cell_type == "boolean":
            true, false = booleans
            truth = pc.is_in(words, pa.array(true))
            either = pc.or_(truth, pc.is_in(words, pa.array((None, *false))))
            if not pc.all(either, min_count=0).as_py():
                raise pa.ArrowInvalid("neither true nor false")
            return pc.if_else(words.is_null(), None, truth)
        if cell_type == "empty":
            if words.null_count < len(words):
                raise pa.ArrowInvalid("not empty")
            return pa.nulls(len(words))
        return pc.cast(words, ARROW[cell_type])

    def _trimmed(self, array: Any, name: str) -> Any:
        """Without spaces at both ends and `trim` at the end; null if the rest is one of `na_values`."""
        if pa.types.is_dictionary(array.type):
            return pa.DictionaryArray.from_arrays(array.indices, self._trimmed(array.dictionary, name))
        if self.dialect.spaced:
            array = pc.utf8_trim_whitespace(array)
        if name in self.trim:
            array = pc.utf8_rtrim(array, self.trim[name])
        return pc.if_else(pc.is_in(array, pa.array(self.options.na_values, pa.string())), None, array)

    def _infer_types(self, block: Block) -> dict[str, CellType]:
        if not block.text.strip():
            return dict.fromkeys(self.names, "empty")
        try:
            table = self._table(block, ReadOptions.as_text(self.names))
        except pa.ArrowInvalid as error:
            raise self._diagnosis(block, ReadOptions.as_text(self.names), error) from None
        return {name: self._infer_type(table.column(name)) for name in self.names}

    def _infer_type(self, column: Any) -> CellType:
        return infer_cell_type(
            pa.chunked_array([self._with_decimal_points(chunk.dictionary) for chunk in column.chunks], pa.string())
        )

    def _with_decimal_points(self, text: Any) -> Any:
        """Without spaces, and with a decimal point where the file has a comma."""
        text = pc.utf8_trim(text, SPACES)
        if self.dialect.decimal == ".":
            return text
        return pc.replace_substring(pc.replace_substring(text, ".", "_"), self.dialect.decimal, ".")

    def _forbid_codes(self, block: Block, names: list[str]) -> None:
        """Arrow reads 0x10 and 00501 as integers: here they are text."""
        text = block.text
        hexadecimal = (b"x" in text or b"X" in text) and (b"0x" in text or b"0X" in text)
        if hexadecimal or _kernels.has_leading_zero(text, *self._marks):
            table = self._table(block, ReadOptions.as_text(names))
            if any(self._infer_type(column) == "text" for column in table.columns):
                raise pa.ArrowInvalid("hexadecimal numbers, and digits with leading zeros, are text")

    # Where records end, and diagnosis ------------------------------------------------------------------------------

    @cached_property
    def _first_record(self) -> tuple[int, int]:
        """Start and end of the first record, after skipped and blank lines."""
        sample = self._sample.lstrip(b"\r\n")
        start = len(self.file.sample) - len(sample)
        return start, start + (_kernels.last_record_end(sample, *self._marks, 1) or len(sample))

    @cached_property
    def _start(self) -> int:
        """The offset of the first record after the header."""
        return self._first_record[1 if self.dialect.header else 0]

    @cached_property
    def _sample(self) -> bytes:
        sample = self.file.sample
        for _ in range(self.options.skip):
            sample = sample.partition(b"\n" if b"\n" in sample else b"\r")[2]
        return sample

    def _find_end(self, data: bytes) -> int:
        """The end of the last complete record; a line break inside quotes ends none."""
        if not self.dialect.quote or self.dialect.quote.encode() not in data:
            return data.rfind(b"\n") + 1 or data.rfind(b"\r", 0, -1) + 1
        return _kernels.last_record_end(data, *self._marks, 0)

    @property
    def _marks(self) -> tuple[int, int]:
        return ord(self.dialect.delimiter), ord(self.dialect.quote or "\0")

    def _records(self, block: Block) -> Iterator[tuple[int, list[str]]]:
        """Every record with the number of its first line: slow, for error messages."""
        first = self.file.line(block.offset)
        records = numbered_records(block.text.decode(), self.dialect.delimiter, self.dialect.quote)
        return ((first + before, record) for before, record in records)

    def _require_utf8(self, block: Block) -> None:
        try:
            block.text.decode()
        except UnicodeDecodeError as error:
            problem = "holds bytes that are not UTF-8: give the file's encoding, for instance latin-1"
            raise self.file.error(block.offset + error.start, problem) from None

    def _require_closed(self, block: Block) -> None:
        """Raises an error at a quote that is not closed: it would swallow the rest of the file."""
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

    def _diagnosis(self, block: Block, options: ReadOptions, error: Exception) -> Exception:
        """What is wrong with a block that Arrow cannot read: a TypeMismatch, or an error that names the line."""
        self._require_utf8(block)
        self._require_closed(block)
        for line, record in self._records(block):
            if len(record) != len(self.names):
                shown = self.dialect.delimiter.join(record)[:60]
                problem = f"{len(record)} cells, where there are {len(self.names)} columns: {shown!r}"
                problem += "; is a quote not closed?" if any("\n" in cell for cell in record) else ""
                return DecibanError(f"{self.title}, line {line}: {problem}")
        for name in set(self.names).intersection(options.names) - options.inferred:
            self._require_type(block, name, options.types[name])
        return TypeMismatch() if options.inferred else DecibanError(f"{self.title}: {error}")

    def _require_type(self, block: Block, name: str, cell_type: CellType) -> None:
        column = self._table(block, ReadOptions.as_text([name])).column(0)
        first, stop = 0, len(column)
        if cell_type in ("text", *STYLES) or self._fits(column, cell_type):
            return
        while stop - first > 1:  # the first cell that does not fit is among these
            middle = (first + stop) // 2
            first, stop = (middle, stop) if self._fits(column[first:middle], cell_type) else (first, middle)
        problem = f"column {name!r} is read as {CELL_WORDS[cell_type]}, and {column[first].as_py()!r} is not"
        raise DecibanError(f"{self.title}, line {self._line(block, first)}: {problem}")

    def _fits(self, column: Any, cell_type: CellType) -> bool:
        text = pa.chunked_array([column.cast(pa.string()).unique()])
        try:
            self._parsed_text(text, cell_type)
        except pa.ArrowInvalid:
            return False
        return True


CSV = FileFormat(
    "csv", lambda file, options: Delimited(file, options.csv, options.trim), (".csv", ".tsv", ".tab", ".txt", ".data")
)
