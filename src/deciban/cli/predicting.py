"""The work of `deciban predict`: rows of files into tables of predictions."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa

from deciban.cli.data import columns_for, inner, require_able, require_rows
from deciban.engines.answers import Answers
from deciban.errors import DecibanError, RowError
from deciban.sources import CELLS_PER_BATCH
from deciban.sources.arrow import TableFrame
from deciban.sources.cells import Cells, arrow_types, cells_of_type, widened
from deciban.sources.columnar import Columnar
from deciban.sources.delimited import Delimited
from deciban.sources.files import Scan
from deciban.sources.stream import settled
from deciban.table import numbered

# what is written of cells, if it is not as in the files
WRITTEN: dict[Cells, Any] = arrow_types() | dict.fromkeys(("empty", "text", "other"), pa.string())
REASONS = pa.list_(pa.struct([("column", pa.string()), ("value", pa.string()), ("decibans", pa.float64())]))


@dataclass(frozen=True)
class Predicting:
    """Predictions of a model for the rows of files: columns that are kept, the class, and what more is asked for."""

    model: Any
    stream: Scan
    kept: dict[str, Any]  # columns of the files and Arrow's types of them
    answers: Answers
    reasons: int  # how many of each row, 0 for none
    flat: bool  # the format's cells hold no lists: reasons are text

    @classmethod
    def of(
        cls, model: Any, scan: Scan, kept: Sequence[str], *, probabilities: bool, reasons: int, flat: bool
    ) -> Predicting:
        if reasons:
            require_able(model, "explain", "be explained in decibans: leave out --explain")
        require_rows(model, "to predict from")
        types = _types_of_kept(scan, kept)
        stream = columns_for(model, scan.typed(types), also=kept)
        # beyond 2^53 a whole number is kept as it is, though the model rounds it
        whole = [name for name, cells in types.items() if (cells, stream.columns[name]) == ("integer", "number")]
        stream = stream.typed(dict.fromkeys(whole, "integer"))
        answers = Answers(model, probabilities=probabilities)
        return cls(model, stream, {name: _written_as(stream, name) for name in kept}, answers, reasons, flat)

    @property
    def schema(self) -> Any:
        """The columns that come out. A name that is taken by one that is kept gets a number."""
        why = ["why"] if self.reasons else []
        types = [*self.kept.values(), *self.answers.types, *(self._type_of_reasons for _ in why)]
        return pa.schema(zip(numbered([*self.kept, *self.answers.names, *why]), types, strict=True))

    def tables(self) -> Iterator[Any]:
        """Rows in their order, some at a time."""
        schema, first = self.schema, 0
        with self.stream.located():
            for frame in self.stream.frames():
                for start in range(0, frame.rows, self._step):
                    part = frame.slice(start, min(start + self._step, frame.rows))
                    try:
                        columns = self._columns(part, schema)
                    except RowError as error:
                        raise RowError(error.where, first + start + error.row, error.problem) from None
                    yield pa.table(columns, schema=schema)
                first += frame.rows

    @property
    def _step(self) -> int:
        """Rows at a time: many classes and parts of explanations take memory too."""
        classes = len(getattr(self.model, "classes_", [0]))
        parts = 1 + len(inner(self.model)._schema().names) if self.reasons else 1
        return max(1, CELLS_PER_BATCH // max(1, classes * parts))

    def _columns(self, frame: TableFrame, schema: Any) -> list[Any]:
        found = [_cast(frame.table.column(name), schema.field(j)) for j, name in enumerate(self.kept)]
        found += self.answers.columns(frame)
        if self.reasons:
            reasons = self._reasons(frame)
            found.append(pa.array([_text(row) for row in reasons] if self.flat else reasons, self._type_of_reasons))
        return found

    @property
    def _type_of_reasons(self) -> Any:
        return pa.string() if self.flat else REASONS

    def _reasons(self, frame: TableFrame) -> list[list[dict[str, Any]]]:
        """The strongest evidence of each row for the class predicted, against the runner-up; what is none is not."""
        explanation = self.model.explain(frame)
        own = [i for i, line in enumerate(explanation.parts) if line.columns and not line.last]
        decibans, values = explanation.decibans()[:, own], explanation.values[:, own]
        names = [explanation.names[i] for i in own]
        strongest = np.argsort(-np.abs(decibans), axis=1, kind="stable")[:, : self.reasons]
        return [
            [
                {"column": names[j], "value": _value(values[i, j]), "decibans": x}
                for j, x in zip(order.tolist(), decibans[i, order].tolist(), strict=True)
                if x
            ]
            for i, order in enumerate(strongest)
        ]


def _types_of_kept(scan: Scan, kept: Sequence[str]) -> dict[str, Cells]:
    """As what kept columns are read: in csv as text, so that 0042 stays so; else as the type that holds all rows.

    Types must be known before the first row is written.
    """
    if all(isinstance(part, Columnar) for part in scan.parts):
        return reduce(widened, ({name: part.columns[name] for name in kept} for part in scan.parts), {})
    if all(isinstance(part, Delimited) for part in scan.parts):
        return dict.fromkeys(kept, "text")
    only = scan.chosen(kept)
    only.watch = None
    if kept:
        settled(lambda: deque(only.frames(), maxlen=0))
    return only.columns


def _written_as(scan: Scan, name: str) -> Any:
    """The Arrow type that the files have, if it is one; else one that holds the cells of all."""
    own = {_plain(part.schema.types[part.names.index(name)]) for part in scan.parts if isinstance(part, Columnar)}
    if len(own) == 1 and all(isinstance(part, Columnar) for part in scan.parts):
        return own.pop()
    if own and scan.columns[name] == "other":
        raise DecibanError(f"column {name!r} cannot be kept, it is of several types: convert it, or do not keep it")
    return WRITTEN[scan.columns[name]]


def _plain(kind: Any) -> Any:
    """
    >>> _plain(pa.dictionary(pa.int8(), pa.large_string())), _plain(pa.date32())
    (DataType(string), DataType(date32[day]))
    """
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return WRITTEN[cells] if (cells := cells_of_type(kind)) in ("text", "empty") else kind


def _cast(column: Any, field: Any) -> Any:
    try:
        return column.cast(field.type)
    except pa.ArrowInvalid as error:
        raise DecibanError(f"column {field.name!r} cannot be kept: {str(error).partition(chr(10))[0]}") from None


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
