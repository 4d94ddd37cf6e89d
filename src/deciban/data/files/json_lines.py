"""JSON lines: a file with one object on each line."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from types import NoneType
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.json as pajson

from deciban.data.cell_types import CELL_WORDS, STYLES, CellType, arrow_types, common_type
from deciban.data.files.fragment import Chunk, FileFormat, ReadOptions, TextFragment, TypeMismatch
from deciban.data.files.text_files import BOM, SAMPLE, Block, parser_input
from deciban.data.notation import TextProfile, parse_column, profile_text, require_undecided
from deciban.errors import DecibanError

TYPES: dict[type, CellType] = {NoneType: "empty", bool: "boolean", float: "number", str: "text"}
ARROW = arrow_types() | dict.fromkeys(("text", *STYLES), pa.string())


@dataclass(frozen=True)
class JsonLines(TextFragment):
    """A file of objects; a key that an object lacks is a missing value."""

    has_late_columns: ClassVar[bool] = True

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.columns)

    @cached_property
    def columns(self) -> dict[str, CellType]:
        types = self._block_types(self._first_block)
        if not types:
            raise DecibanError(f"{self.title} is empty: it has no rows")
        return types

    @property
    def _first_block(self) -> Block:
        sample = self.file.sample
        return Block(sample[: _find_end(sample) if len(sample) >= SAMPLE else len(sample)], 0, 0)

    def _blocks(self) -> Iterator[Block]:
        return self.file.blocks(_find_end)

    def _profiles(self, names: Collection[str], block: Block) -> dict[str, TextProfile]:
        texts: dict[str, list[str]] = {name: [] for name in names}
        for _, row in self._objects(block):
            for name, cells in texts.items():
                if isinstance(value := row.get(name), str):
                    cells.append(value.encode("utf-8", "replace").decode())
        return {name: profile_text(pa.array(cells, pa.string())) for name, cells in texts.items()}

    def _line(self, block: Block, row: int) -> int:
        return next(islice(self._objects(block), row, None))[0]

    def _read(self, block: Block, options: ReadOptions) -> Chunk:
        types = self.columns | dict(options.types)
        schema = pa.schema([(name, ARROW[types[name]]) for name in options.names if types[name] != "other"])
        # while types are inferred, a new key is a new column, so no key is ignored
        parse_options = pajson.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="infer" if options.inferred else "ignore"
        )
        try:
            table = _parsed(block.data, parse_options)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            self._block_types(block)  # names a line that is not an object
            if options.inferred:
                raise TypeMismatch from None
            for line, row in self._objects(block):
                for name in options.names:
                    if not _holds(types[name], _cell_type(row.get(name))):
                        problem = f"column {name!r} holds {row[name]!r}, and {CELL_WORDS[types[name]]} elsewhere"
                        raise DecibanError(f"{self.title}, line {line}: {problem}: make them one type") from None
            raise DecibanError(f"{self.title}, line {self._first_unreadable(block, parse_options)}: {error}") from None
        if not set(table.column_names) <= set(types):
            raise TypeMismatch
        try:
            require_undecided(table, options.undecided)
            columns = [self._column(block, table, name, types[name], options) for name in options.names]
        except pa.ArrowInvalid:
            raise TypeMismatch from None
        return Chunk(pa.table(columns, names=list(options.names)), block.offset, block.bytes_read)

    def _column(self, block: Block, table: Any, name: str, cell_type: CellType, options: ReadOptions) -> Any:
        if cell_type == "other":  # lists and objects as JSON: not features, but `predict` can keep them
            values = (row.get(name) for _, row in self._objects(block))
            return pa.array([None if value is None else json.dumps(value) for value in values], pa.string())
        column = table.column(name)
        return parse_column(column, cell_type, options.markers(name)) if cell_type in STYLES else column

    def _first_unreadable(self, block: Block, options: Any) -> int:
        """The number of the first line that Arrow cannot parse."""
        lines, first = block.text.splitlines(keepends=True), 0
        while len(lines) > 1:
            half = lines[: len(lines) // 2]
            try:
                _parsed(b"".join(half), options)
            except pa.ArrowInvalid:
                lines = half
            else:
                first, lines = first + len(half), lines[len(half) :]
        return self.file.line(block.offset) + first

    def _block_types(self, block: Block) -> dict[str, CellType]:
        types: dict[str, CellType] = {}
        for _, row in self._objects(block):
            for name, value in row.items():
                types[name] = common_type(types.get(name, "empty"), _cell_type(value))
        return types

    def _objects(self, block: Block) -> Iterator[tuple[int, dict[str, Any]]]:
        """Every object with its line number: slow, for inference and error messages."""
        first = self.file.line(block.offset)
        for number, line in enumerate(block.text.splitlines()):
            if not line.strip():
                continue
            try:
                row = json.loads(line.decode("utf-8", "surrogatepass"), parse_constant=_refuse)
            except (ValueError, RecursionError) as error:
                raise self._line_error(first + number, f"this is not JSON: {error}") from None
            if not isinstance(row, dict):
                raise self._line_error(first + number, "every line must be an object, {…}")
            for name in row:
                if any("\ud800" <= character <= "\udfff" for character in name):
                    raise self._line_error(first + number, f"the key {name!a} holds half of a surrogate pair")
            yield first + number, row

    def _line_error(self, line: int, problem: str) -> DecibanError:
        """An error about a line, or about a file that is one JSON document."""
        beginning = self.file.sample.lstrip()
        if beginning.startswith(b"[") or beginning.partition(b"\n")[0].strip() == b"{":
            problem = "one JSON document, not JSON lines: write one object on each line, for instance by jq -c '.[]'"
            return DecibanError(f"{self.title} is {problem}")
        return DecibanError(f"{self.title}, line {line}: {problem}")


def _find_end(data: bytes) -> int:
    return data.rfind(b"\n") + 1


def _cell_type(value: Any) -> CellType:
    if type(value) is int:
        return "integer" if -(1 << 63) <= value < 1 << 63 else "number"
    return TYPES.get(type(value), "other")


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON; null is a missing value")


def _parsed(data: bytes | memoryview, options: Any) -> Any:
    """JSON lines as a table, with text as dictionaries."""
    read_options = pajson.ReadOptions(use_threads=False, block_size=len(data) + len(BOM) + 1)
    table = pajson.read_json(parser_input(data), read_options, options)
    for j, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            encoded = table.column(j).dictionary_encode()
            for chunk in encoded.chunks:
                chunk.dictionary.validate(full=True)  # the parser does not check that text is UTF-8
            table = table.set_column(j, field.name, encoded)
    return table


def _holds(column_type: CellType, cell_type: CellType) -> bool:
    """Whether a column can have such a cell: unlike in csv, a number is not text."""
    if column_type == "text" or column_type in STYLES:
        return cell_type in ("text", "empty")
    return common_type(column_type, cell_type) == column_type


JSON_LINES = FileFormat(
    "jsonl",
    lambda file, options: JsonLines(file),
    (".jsonl", ".ndjson", ".json"),
    resembles=lambda start: start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"),
)
