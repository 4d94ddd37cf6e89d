"""Files that an engine reads: their format and columns.

An engine splits text at line breaks, and `text_partitions` parses it as `scan` does, so that rows are the same.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, Self

from deciban.data.batch import Kind
from deciban.data.cell_types import CELL_WORDS, KIND_OF, CellType, cell_type_of
from deciban.data.files.columnar import compatible_types
from deciban.data.files.formats import format_by_suffix
from deciban.data.schema import require_unique
from deciban.data.stream import Stream
from deciban.engines.partitions import EngineRows
from deciban.errors import DecibanError

FORMATS = ("csv", "jsonl", "parquet")

SelectRows = Callable[[list[str], str, str | None], EngineRows]  # of some columns, with a label and a weight


def format_of(paths: Sequence[str], format: str | None = None) -> str:
    """The given format, or the one that the names of all files show.

    >>> format_of(["s3://bucket/2026/*.csv.gz"]), format_of(["hdfs://host/people.parquet/"])
    ('csv', 'parquet')
    """
    by_suffix = {path: format_by_suffix(path) for path in paths}
    formats = {path: format or (suffix_format and suffix_format.name) for path, suffix_format in by_suffix.items()}
    for path, name in formats.items():
        if name is None:
            raise DecibanError(f"{path}: its name does not show the format: give one of {', '.join(FORMATS)}")
        if name not in FORMATS:
            raise DecibanError(f"{path} is {name}: an engine reads {', '.join(FORMATS)}")
    if not formats:
        raise DecibanError("no files to read: pass a path or a pattern")
    if len({*formats.values()}) != 1:
        examples = ", ".join(f"{path} is {name}" for path, name in list(formats.items())[:5])
        raise DecibanError(f"all files must have the same format: {examples}")
    return str(next(iter(formats.values())))


@dataclass(frozen=True)
class EngineFiles(Stream):
    """Files that a cluster reads. Models are fitted to `rows`; the other methods are those of a Scan."""

    columns: Mapping[str, CellType]  # from the schema, or inferred from the first rows
    given_types: Mapping[str, CellType] = field(default_factory=dict, kw_only=True)

    @abstractmethod
    def rows(self, label: str, weight: str | None = None) -> EngineRows:
        """The rows, with the columns of labels and weights."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.columns)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        return tuple(KIND_OF[cell_type] for cell_type in self._types.values())

    @property
    def _types(self) -> dict[str, CellType]:
        return {name: self.given_types.get(name, cell_type) for name, cell_type in self.columns.items()}

    def with_types(self, types: Mapping[str, CellType]) -> Self:
        return replace(self, given_types={**self.given_types, **types})

    def project(self, names: Collection[str]) -> Self:
        return replace(self, columns={name: self.columns[name] for name in self.names if name in names})

    def drop(self, names: Collection[str]) -> Self:
        return self.project([name for name in self.names if name not in names])

    def with_trim(self, name: str, characters: str) -> EngineFiles:
        raise DecibanError(f"only csv can be trimmed: fix column {name!r} in the files")

    def frames(self) -> NoReturn:
        raise DecibanError("this needs all rows in memory, and an engine reads these files: use deciban.scan")


@dataclass(frozen=True)
class TableFiles(EngineFiles):
    """Files with a schema, such as parquet."""

    schema: Any  # pyarrow.Schema
    select_rows: SelectRows

    def rows(self, label: str, weight: str | None = None) -> EngineRows:
        for name, cell_type in self.given_types.items():
            file_type = self.columns.get(name, "empty")
            if file_type not in ("empty", "other") and not compatible_types(file_type, cell_type):
                problem = f"column {name!r} holds {CELL_WORDS[file_type]}, not {CELL_WORDS[cell_type]}"
                raise DecibanError(f"{problem}: convert it in the files")
        return self.select_rows(list(self.names), label, weight)


def table_files(schema: Any, select_rows: SelectRows) -> TableFiles:
    require_unique(schema.names)
    return TableFiles({field.name: cell_type_of(field.type) for field in schema}, schema, select_rows)
