"""Files of JSON lines: one object on each."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import pyarrow as pa
import pyarrow.json as pajson

from deciban.errors import DecibanError
from deciban.sources.cells import STYLES, WORDS, Cells, arrow_types, wider
from deciban.sources.notation import Profile, profile_of, require_undecided, written_as
from deciban.sources.part import Job, Read, Reading, Unfit
from deciban.sources.text import SAMPLE, Block, TextFile

PLAIN = arrow_types() | dict.fromkeys(("text", *STYLES), pa.string())


@dataclass(frozen=True)
class JsonLines:
    """One file of objects; a key that an object lacks is a missing cell."""

    file: TextFile

    @property
    def path(self) -> str:
        return self.file.path

    @property
    def title(self) -> str:
        return self.file.title

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.columns)

    @cached_property
    def columns(self) -> dict[str, Cells]:
        found = self._cells(self._first_block)
        if not found:
            raise DecibanError(f"{self.title} is empty: it has no rows")
        return found

    @property
    def _first_block(self) -> Block:
        """The first objects."""
        sample = self.file.sample
        return Block(sample[: _ends(sample) if len(sample) >= SAMPLE else len(sample)], 0, 0)

    def jobs(self, reading: Reading) -> Iterator[Job]:
        for block in self.file.blocks(_ends):
            yield partial(self._read, block, reading)

    def surveys(self) -> Iterator[Callable[[], dict[str, Cells]]]:
        for block in self.file.blocks(_ends):
            yield partial(self._cells, block)

    def profiles(self, names: Collection[str], *, first: bool) -> Iterator[Callable[[], dict[str, Profile]]]:
        for block in [self._first_block] if first else self.file.blocks(_ends):
            yield partial(self._profiles, block, names)

    def _profiles(self, block: Block, names: Collection[str]) -> dict[str, Profile]:
        texts: dict[str, list[str]] = {name: [] for name in names}
        for _, row in self._objects(block):
            for name, held in texts.items():
                if isinstance(value := row.get(name), str):
                    held.append(value.encode("utf-8", "replace").decode())
        return {name: profile_of(pa.array(held, pa.string())) for name, held in texts.items()}

    def place(self, offset: int, row: int) -> str:
        for block in self.file.blocks(_ends):
            if block.offset == offset:
                return f"{self.title}, line {[line for line, _ in self._objects(block)][row]}"
        return self.title

    def _read(self, block: Block, reading: Reading) -> Read:
        types = self.columns | dict(reading.types)
        schema = pa.schema([(name, PLAIN[types[name]]) for name in reading.names if types[name] != "other"])
        # while types are guessed, a key never met is a column that was not known of: all keys are to be looked at
        options = pajson.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="infer" if reading.guessed else "ignore"
        )
        try:
            table = _parsed(block.data, options)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            self._cells(block)  # names a line that is no object
            if reading.guessed:
                raise Unfit from None
            for line, row in self._objects(block):
                for name in reading.names:
                    if not _holds(types[name], _cells_of(row.get(name))):
                        problem = f"column {name!r} holds {row[name]!r}, and {WORDS[types[name]]} elsewhere"
                        raise DecibanError(f"{self.title}, line {line}: {problem}: make them one type") from None
            raise DecibanError(f"{self.title}, line {self._first_unreadable(block, options)}: {error}") from None
        if not set(table.column_names) <= set(types):
            raise Unfit
        try:
            require_undecided(table, reading.undecided)
            columns = [self._column(block, table, name, types[name], reading) for name in reading.names]
        except pa.ArrowInvalid:
            raise Unfit from None
        return Read(pa.table(columns, names=list(reading.names)), block.offset, block.read)

    def _column(self, block: Block, table: Any, name: str, cells: Cells, reading: Reading) -> Any:
        if cells == "other":
            return self._as_text(block, name)
        column = table.column(name)
        return column if cells not in STYLES else written_as(column, cells, strict=name in reading.guessed)

    def _as_text(self, block: Block, name: str) -> Any:
        """Lists and objects, written as JSON: they are not learned from, but may be carried along."""
        values = (row.get(name) for _, row in self._objects(block))
        return pa.array([None if value is None else json.dumps(value) for value in values], pa.string())

    def _first_unreadable(self, block: Block, options: Any) -> int:
        """The number of the first line that Arrow refuses."""
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

    def _cells(self, block: Block) -> dict[str, Cells]:
        """The type of every key of a block."""
        found: dict[str, Cells] = {}
        for _, row in self._objects(block):
            for name, value in row.items():
                found[name] = wider(found.get(name, "empty"), _cells_of(value))
        return found

    def _objects(self, block: Block) -> Iterator[tuple[int, dict[str, Any]]]:
        """Every object with its line: slow, for types and messages."""
        first = self.file.line(block.offset)
        for number, line in enumerate(block.text.splitlines()):
            if not line.strip():
                continue
            try:
                row = json.loads(line, parse_constant=_refuse)
            except (ValueError, RecursionError) as error:
                self._require_lines()
                raise DecibanError(f"{self.title}, line {first + number}: this is not JSON: {error}") from None
            if not isinstance(row, dict):
                self._require_lines()
                raise DecibanError(f"{self.title}, line {first + number}: every line must be an object, {{…}}")
            yield first + number, row

    def _require_lines(self) -> None:
        """A document that takes the whole file, indented or a list, is named as such."""
        beginning = self.file.sample.lstrip()
        if beginning.startswith(b"[") or beginning.partition(b"\n")[0].strip() == b"{":
            problem = "one JSON document; JSON lines are wanted, one object on each line (jq -c '.[]' makes them)"
            raise DecibanError(f"{self.title} is {problem}")


def _ends(data: bytes) -> int:
    return data.rfind(b"\n") + 1


def _cells_of(value: Any) -> Cells:
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer" if -(1 << 63) <= value < 1 << 63 else "number"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "text"
    return "other"


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON; null is a missing cell")


def _parsed(data: bytes | memoryview, options: Any) -> Any:
    """Text as dictionaries."""
    table = pajson.read_json(
        pa.BufferReader(data), pajson.ReadOptions(use_threads=False, block_size=len(data) + 1), options
    )
    return pa.table([_coded(column) for column in table.columns], names=table.column_names)


def _coded(column: Any) -> Any:
    if not pa.types.is_string(column.type):
        return column
    coded = column.dictionary_encode()
    for chunk in coded.chunks:
        chunk.dictionary.validate(full=True)  # the parser takes any bytes for text
    return coded


def _holds(wanted: Cells, cells: Cells) -> bool:
    """Unlike a cell of csv, a number in JSON is no text."""
    wanted = "text" if wanted in STYLES else wanted
    return wider(wanted, cells) == wanted and (wanted != "text" or cells in ("text", "empty"))
