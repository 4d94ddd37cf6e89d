"""The work of `deciban predict`: from the rows of files to tables of predictions."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa

from deciban.cli.model_rows import columns_for, require_able, require_rows
from deciban.data import CELLS_PER_BATCH
from deciban.data.arrow import TableFrame
from deciban.data.cell_types import CellType, arrow_types, cell_type_of, common_types
from deciban.data.files.columnar import Columnar
from deciban.data.files.delimited import Delimited
from deciban.data.files.scan import Scan
from deciban.data.stream import retry_with_wider_types
from deciban.engines.prediction_columns import PredictionColumns
from deciban.errors import DecibanError, RowError
from deciban.table import numbered

# Arrow types of columns that are not written with their type in the files
WRITTEN: dict[CellType, Any] = arrow_types() | dict.fromkeys(("empty", "text", "other"), pa.string())
REASONS = pa.list_(pa.struct([("column", pa.string()), ("value", pa.string()), ("decibans", pa.float64())]))


@dataclass(frozen=True)
class PredictionTables:
    """Predictions of a model for the rows of files: copied columns, the class, probabilities and reasons."""

    model: Any
    stream: Scan
    copied: dict[str, Any]  # columns of the files, with their Arrow types
    predictions: PredictionColumns
    reasons: int  # how many per row
    flat: bool  # the format has no lists: reasons are written as text

    @classmethod
    def of(
        cls, model: Any, scan: Scan, copied: Sequence[str], *, probabilities: bool, reasons: int, flat: bool
    ) -> PredictionTables:
        if reasons:
            require_able(model, "explain", "be explained in decibans: drop --explain")
        require_rows(model, "predict from")
        types = _types_of_copied(scan, copied)
        stream = columns_for(model, scan.with_types(types), also=copied)
        # integers beyond 2^53 are copied exactly, although the model rounds them
        integers = [name for name, cells in types.items() if (cells, stream.columns[name]) == ("integer", "number")]
        stream = stream.with_types(dict.fromkeys(integers, "integer"))
        predictions = PredictionColumns(model, probabilities=probabilities)
        return cls(model, stream, {name: _written_as(stream, name) for name in copied}, predictions, reasons, flat)

    @property
    def schema(self) -> Any:
        """The output columns. A name that a copied column already has gets a number."""
        why = [("why", pa.string() if self.flat else REASONS)] if self.reasons else []
        predicted = zip(self.predictions.names, self.predictions.types, strict=True)
        names, types = zip(*self.copied.items(), *predicted, *why, strict=True)
        return pa.schema(zip(numbered(list(names)), types, strict=True))

    def tables(self) -> Iterator[Any]:
        """The predictions, batch by batch."""
        schema, first = self.schema, 0
        with self.stream.error_context():
            for frame in self.stream.frames():
                for start in range(0, frame.rows, self._step):
                    batch = frame.slice(start, min(start + self._step, frame.rows))
                    try:
                        columns = self._columns(batch, schema)
                    except RowError as error:
                        raise RowError(error.where, first + start + error.row, error.problem) from None
                    yield pa.table(columns, schema=schema)
                first += frame.rows

    @property
    def _step(self) -> int:
        """Rows per batch: explanations take memory for each class and feature."""
        classes = len(self.model.classes_) if self.model.task == "classification" else 1
        contributions = 1 + len(self.model.schema_.names) if self.reasons else 1
        return max(1, CELLS_PER_BATCH // max(1, classes * contributions))

    def _columns(self, frame: TableFrame, schema: Any) -> list[Any]:
        columns = [_cast(frame.table.column(name), schema.field(j)) for j, name in enumerate(self.copied)]
        columns += self.predictions.predict(frame)
        if self.reasons:
            reasons = self._reasons(frame)
            columns.append(pa.array(map(_text, reasons) if self.flat else reasons, schema.field(len(columns)).type))
        return columns

    def _reasons(self, frame: TableFrame) -> list[list[dict[str, Any]]]:
        """The strongest nonzero contributions of each row for the predicted class against the runner-up."""
        explanation = self.model.explain(frame)
        of_columns = [i for i, line in enumerate(explanation.parts) if line.columns and not line.last]
        decibans, values = explanation.decibans()[:, of_columns], explanation.values[:, of_columns]
        names = [explanation.names[i] for i in of_columns]
        strongest = np.argsort(-np.abs(decibans), axis=1, kind="stable")[:, : self.reasons]
        return [
            [
                {"column": names[j], "value": _value(values[i, j]), "decibans": x}
                for j, x in zip(order.tolist(), decibans[i, order].tolist(), strict=True)
                if x
            ]
            for i, order in enumerate(strongest)
        ]


def _types_of_copied(scan: Scan, copied: Sequence[str]) -> dict[str, CellType]:
    """The types of copied columns: text in csv, so that 0042 stays as it is; else the type that holds all rows.

    Types must be known before the first row is written.
    """
    if all(isinstance(file, Columnar) for file in scan.fragments):
        return reduce(common_types, ({name: file.columns[name] for name in copied} for file in scan.fragments), {})
    if all(isinstance(file, Delimited) for file in scan.fragments):
        return dict.fromkeys(copied, "text")
    projected = scan.project(copied)
    projected.on_progress = None
    if copied:
        retry_with_wider_types(lambda: deque(projected.frames(), maxlen=0))
    return projected.columns


def _written_as(scan: Scan, name: str) -> Any:
    """The Arrow type of the column in the files, if it is the same in all; else one that holds all values."""
    columnar = [file for file in scan.fragments if isinstance(file, Columnar)]
    types = {_plain(file.schema.types[file.names.index(name)]) for file in columnar}
    if len(types) == 1 and len(columnar) == len(scan.fragments):
        return types.pop()
    if types and scan.columns[name] == "other":
        raise DecibanError(f"column {name!r} has several types: convert it, or drop it from --keep")
    return WRITTEN[scan.columns[name]]


def _plain(kind: Any) -> Any:
    """
    >>> _plain(pa.dictionary(pa.int8(), pa.large_string())), _plain(pa.date32())
    (DataType(string), DataType(date32[day]))
    """
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return WRITTEN[cells] if (cells := cell_type_of(kind)) in ("text", "empty") else kind


def _cast(column: Any, field: Any) -> Any:
    try:
        return column.cast(field.type)
    except pa.ArrowInvalid as error:
        raise DecibanError(f"column {field.name!r} cannot be copied: {str(error).partition(chr(10))[0]}") from None


def _value(cell: Any) -> str | None:
    """
    >>> _value(125.0), _value("single")
    ('125', 'single')
    """
    return f"{cell:.15g}" if isinstance(cell, float) else None if cell is None else str(cell)


def _text(reasons: list[dict[str, Any]]) -> str:
    """
    >>> joint = {"column": "a + b", "value": None, "decibans": -1.0}
    >>> _text([{"column": "income", "value": "125", "decibans": 4.21}, joint])
    'income=125: +4.2 dban; a + b: -1.0 dban'
    """
    return "; ".join(
        f"{r['column']}{'' if r['value'] is None else '='}{r['value'] or ''}: {r['decibans']:+.1f} dban"
        for r in reasons
    )
