"""Column readers: how the columns of X are typed: inferred, as in training, or as they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from deciban.data.batch import Frame
from deciban.data.cell_types import CellType, cell_type_for_kind
from deciban.data.containers import is_stream
from deciban.data.frames import stream_of
from deciban.data.schema import Schema
from deciban.data.stream import Stream
from deciban.data.text_columns import apply_notations, infer_notations
from deciban.types import Levels


class ColumnReader(ABC):
    """Gives the columns of X their types."""

    classes: Levels = ()  # labels in files are read as their type

    @abstractmethod
    def stream(self, x: Any, also: Collection[str] = ()) -> Stream:
        """x as a stream with its columns typed; `also` are columns that are not features, such as the label."""

    @abstractmethod
    def typed(self, frame: Frame, x: Any) -> Frame:
        """Rows in memory, made from x, with columns of text parsed where they hold dates or numbers."""


@dataclass(frozen=True)
class InferredColumns(ColumnReader):
    """The columns of training rows, with types inferred from their cells."""

    def stream(self, x: Any, also: Collection[str] = ()) -> Stream:
        return stream_of(x).resolve_columns(also).keep_text(also)

    def typed(self, frame: Frame, x: Any) -> Frame:
        return frame if is_stream(x) else infer_notations(frame, x)


@dataclass(frozen=True)
class GivenColumns(ColumnReader):
    """Columns as they are, for models of other libraries."""

    classes: Levels = ()

    def stream(self, x: Any, also: Collection[str] = ()) -> Stream:
        return stream_of(x).resolve_columns(also)

    def typed(self, frame: Frame, x: Any) -> Frame:
        return frame


@dataclass(frozen=True)
class TrainedColumns(ColumnReader):
    """The features of a fitted model, typed as in training."""

    schema: Schema
    types: Mapping[str, CellType]  # of the cells of files
    classes: Levels = field(default=(), kw_only=True)

    @classmethod
    def of(cls, schema: Schema, levels: Mapping[int, Levels], classes: Levels) -> TrainedColumns:
        """`levels` are the known values of categorical features, by position."""
        types = {
            str(name): cell_type_for_kind(kind, levels.get(j, ()), schema.notation(j))
            for j, (name, kind) in enumerate(zip(schema.names, schema.kinds, strict=True))
        }
        return cls(schema, types, classes=classes)

    def to_learn(self) -> TrainedColumns:
        """For further training rows: features that were empty so far may have any type."""
        kinds = dict(zip(map(str, self.schema.names), self.schema.kinds, strict=True))
        return replace(self, types={name: cells for name, cells in self.types.items() if kinds[name] != "empty"})

    def stream(self, x: Any, also: Collection[str] = ()) -> Stream:
        names = (*map(str, self.schema.names), *also)
        return stream_of(x).resolve_columns(also).with_types(self.types).project(names)

    def typed(self, frame: Frame, x: Any) -> Frame:
        return apply_notations(frame, self.schema)


INFERRED, AS_GIVEN = InferredColumns(), GivenColumns()
