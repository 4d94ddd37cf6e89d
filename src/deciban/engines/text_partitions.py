"""Text files that an engine splits into blocks of lines: parsing, and inference of types."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any, ClassVar

from deciban.data import Labelled
from deciban.data.batch import Notation
from deciban.data.cell_types import CELL_WORDS, KIND_OF, STYLES, CellType, common_types
from deciban.data.files.delimited import Delimited
from deciban.data.files.dialect import CsvOptions, Dialect
from deciban.data.files.fragment import Fragment, ReadOptions, TypeMismatch
from deciban.data.files.json_lines import JsonLines
from deciban.data.files.text_files import BOM, Block, TextFile
from deciban.data.schema import Schema, require_unique
from deciban.engines.engine_files import EngineFiles
from deciban.engines.partitions import ColumnRoles, EngineRows, PartitionResult, ReadPartition, column_roles
from deciban.errors import DecibanError

SplitBlocks = Callable[[int, Any], Iterator["TextBlock"]]  # (number, partition) → its blocks of lines
Collect = Callable[[ColumnRoles, ReadPartition], EngineRows]  # the rows of an engine, from how a partition is read


@dataclass(frozen=True)
class TextBlock(TextFile):
    """Whole lines of a text file, in memory."""

    data: bytes = b""
    starts_file: bool = True
    lines_before: int = 0

    def _pieces(self, size: int, errors: str = "strict") -> Iterator[tuple[bytes, int]]:
        try:
            data = self._decoder(errors)(self.data, True)
        except UnicodeDecodeError as error:
            raise DecibanError(f"{self.title}: this is not text in {self.encoding}: {error.reason}") from None
        data = data.removeprefix(BOM) if self.starts_file else data
        for start in range(0, len(data), size):
            yield data[start : start + size], min(start + size, len(data))

    def line(self, offset: int) -> int:
        return self.lines_before + super().line(offset)


@dataclass(frozen=True)
class TextFiles(EngineFiles):
    """Text files. Types are inferred from the first rows, and a later cell that does not fit them is an error."""

    format: TextFormat
    sample: TextBlock  # the first lines
    collect: Collect
    split_blocks: SplitBlocks

    def rows(self, label: str, weight: str | None = None) -> EngineRows:
        types = self._types
        if label not in self.given_types and types.get(label) in STYLES:
            types[label] = "text"  # classes are never dates or numbers
        for name, cell_type in types.items():
            if cell_type == "other":
                raise DecibanError(f"column {name!r} is neither numbers nor text: convert it, or drop it")
        kinds = tuple(KIND_OF[cell_type] for cell_type in types.values())
        notations = tuple(Notation(cell_type) if cell_type in STYLES else None for cell_type in types.values())
        schema = Schema(self.names, kinds, notations if any(notations) else ())
        inferred = frozenset(types).difference(self.given_types) if self.format.infers_types else frozenset[str]()
        columns = column_roles(schema, label, weight)
        options = ReadOptions(self.names, types, inferred)
        return self.collect(columns, partial(_rows, columns, self.format, options, self.split_blocks))

    def with_trim(self, name: str, characters: str) -> EngineFiles:
        if not isinstance(self.format, CsvFormat):
            return super().with_trim(name, characters)
        format = replace(self.format, trim={**self.format.trim, name: characters})
        return replace(self, format=format, columns={**self.columns, name: _inferred(format, self.sample)[name]})


def text_files(
    sample: TextBlock, format: str, csv: CsvOptions, collect: Collect, split_blocks: SplitBlocks
) -> TextFiles:
    """Text files, from their first lines. JSON lines are read once for their keys, some of which may occur late."""
    require_line_breaks(sample.encoding)
    if not sample.data.strip():
        raise DecibanError(f"{sample.title} is empty: it has no rows")
    if format == "csv":
        csv.check()
        first = Delimited(sample, csv, {})
        require_unique(first.names)
        csv_format = CsvFormat(first.dialect, first.names, csv)
        return TextFiles(_inferred(csv_format, sample), csv_format, sample, collect, split_blocks)
    first_lines = JsonLines(sample)
    _ = first_lines.columns  # raises an error if lines are not objects
    no_columns = ColumnRoles(Schema((), ()), None, None)
    lines = collect(no_columns, partial(_rows, no_columns, JsonFormat({}), ReadOptions((), {}), split_blocks))
    keys = lines.map_sum(partial(_partition_keys, split_blocks)).unwrap()
    columns = {**keys.columns, **_styles(first_lines, keys.columns)} if keys is not None else {}
    return TextFiles(columns, JsonFormat(columns), sample, collect, split_blocks)


def require_line_breaks(encoding: str) -> None:
    """Raises an error if line breaks are not one byte, at which an engine splits text."""
    try:
        splits = "\n".encode(encoding) == b"\n"
    except (LookupError, ValueError):
        return  # reading the text raises an error about the encoding
    if not splits:
        raise DecibanError(f"an engine cannot split text in {encoding} into lines: convert it to utf-8")


def _rows(
    columns: ColumnRoles,
    format: TextFormat,
    options: ReadOptions,
    split_blocks: SplitBlocks,
    number: int,
    partition: Any,
) -> Labelled:
    return columns.table(number, _tables(format, options, split_blocks(number, partition)))


def _tables(format: TextFormat, options: ReadOptions, blocks: Iterable[TextBlock]) -> Iterator[Any]:
    for block in blocks:
        if not block.data.strip():
            continue
        fragment = format.fragment(block)
        try:
            for task in fragment.read_tasks(options):
                yield task().table
        except TypeMismatch:
            raise _mismatch_error(fragment, options) from None


def _mismatch_error(fragment: Fragment, options: ReadOptions) -> DecibanError:
    """The error for a cell that does not fit the type of the first rows, with the option that helps."""
    for name in sorted(options.inferred):
        cell_type = options.types[name]
        remedy = f"use --category {name}" + (
            f" or --columns {name}=number" if cell_type == "empty" else ", or --na-values if it is missing"
        )
        try:
            for task in fragment.read_tasks(ReadOptions([name], options.types)):
                task()
        except DecibanError as error:
            return DecibanError(f"{error}, unlike its first rows: {remedy}")
        try:  # given types accept 1 and 0 as booleans, and leading zeros in numbers; inferred types do not
            for task in fragment.read_tasks(ReadOptions([name], options.types, frozenset([name]))):
                task()
        except TypeMismatch:
            problem = f"column {name!r} is {CELL_WORDS[cell_type]} in its first rows, but not here"
            return DecibanError(f"{fragment.title}: {problem}: use --category {name}")
    return DecibanError(f"{fragment.title}: cells do not fit the types of the first rows: give types with --columns")


# csv -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CsvFormat:
    """The dialect and columns of all csv files, sent to the workers."""

    dialect: Dialect
    names: tuple[str, ...]
    options: CsvOptions
    trim: Mapping[str, str] = field(default_factory=dict)

    infers_types: ClassVar[bool] = True  # from the first rows, which later cells may not fit

    def fragment(self, block: TextBlock) -> Delimited:
        """The rows of a block."""
        header = self.dialect.header and block.starts_file
        if header and self.options.names is None:
            names = CsvBlock(block, self.options, {}, self.dialect).names
            if names != self.names:
                raise DecibanError(
                    f"{block.title} has the columns {', '.join(names)}, but another file has {', '.join(self.names)}: "
                    "all files must have the same columns in the same order"
                )
        options = replace(self.options, names=self.names)
        return CsvBlock(block, options, self.trim, replace(self.dialect, header=header))


@dataclass(frozen=True)
class CsvBlock(Delimited):
    """Records of a block, in a known dialect."""

    known_dialect: Dialect

    @property
    def dialect(self) -> Dialect:
        return self.known_dialect

    def _require_closed(self, block: Block) -> None:
        try:
            super()._require_closed(block)
        except DecibanError as error:
            raise DecibanError(
                f"{error}: an engine splits files at line breaks, so cells of csv must have none; use parquet"
            ) from None


def _inferred(format: CsvFormat, sample: TextBlock) -> dict[str, CellType]:
    """The types of the first rows. Integers become numbers, since fractions may follow."""
    fragment = format.fragment(sample)
    types = {name: "number" if cell_type == "integer" else cell_type for name, cell_type in fragment.columns.items()}
    return types | _styles(fragment, types)


def _styles(fragment: Fragment, types: Mapping[str, CellType]) -> dict[str, CellType]:
    """The styles of text columns whose first cells are all dates, or all numbers."""
    profiles = fragment.sample_profiles([name for name, cell_type in types.items() if cell_type == "text"])
    notations = {name: profile.notation() for name, profile in profiles.items() if profile.all_parsed()}
    return {name: notation.style for name, notation in notations.items() if notation is not None}


# JSON lines ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class JsonFormat:
    """The keys and types of all objects, sent to the workers."""

    columns: Mapping[str, CellType]

    infers_types: ClassVar[bool] = False

    def fragment(self, block: TextBlock) -> JsonLines:
        return JsonBlock(block, self.columns)


TextFormat = CsvFormat | JsonFormat


@dataclass(frozen=True)
class JsonBlock(JsonLines):
    """Objects of a block, with known keys."""

    known_columns: Mapping[str, CellType]

    @property
    def columns(self) -> dict[str, CellType]:
        return dict(self.known_columns)


@dataclass(frozen=True)
class _Keys:
    columns: Mapping[str, CellType]

    def __add__(self, other: _Keys) -> _Keys:
        return _Keys(common_types(self.columns, other.columns))


def _partition_keys(split_blocks: SplitBlocks, number: int, partition: Any) -> PartitionResult[_Keys]:
    def keys() -> _Keys | None:
        blocks = (JsonLines(block) for block in split_blocks(number, partition) if block.data.strip())
        keys_of_blocks = [_Keys(task()) for block in blocks for task in block.type_tasks()]
        return reduce(operator.add, keys_of_blocks) if keys_of_blocks else None

    return PartitionResult.of(number, keys)
