"""Evidence from words: counts of them, and documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from deciban.families.base import Context, TermLine
from deciban.families.text import Text
from deciban.types import FloatArray
from deciban.weighing.reader import Piece, Reader, Rows, ShareAdder, Unknown, centred

if TYPE_CHECKING:
    from deciban.families.formulas import Formula


class Words(Reader):
    """Counts of words, or documents: one piece of all."""

    def __init__(self, columns: Sequence[int], family: Any, statistic: Any, context: Context) -> None:
        """Of a Multinomial and its Totals, or of a Text and its Tokens."""
        self.columns, self.family, self.statistic, self.context = tuple(columns), family, statistic, context
        self.params: Any = family.estimate(statistic, context)
        self.by_lines = isinstance(family, Text)
        self.pieces = (Piece(family.title if self.by_lines else "words", self.columns),)
        if self.by_lines:
            self.params, self.middle = family.centred(statistic, self.params)

    def evidence(self, rows: Rows) -> FloatArray:
        out = np.zeros((rows.values.shape[0], len(self.context.classes)))
        if rows.labels is None:
            self.family.add_log_density(self.params, rows.values, out)
        else:
            left = self.statistic, self.params, self.context, rows.values, rows.labels, rows.weights, out
            self.family.leave_one_out(*left, *([self.middle] if self.by_lines else []))
        return centred(out)[:, np.newaxis]

    @property
    def n_parameters(self) -> int:
        return int(self.family.n_parameters(self.params))

    def unknown(self, values: Any) -> Unknown | None:
        if not self.by_lines:
            return None
        missing = values.places[:, :, 2] < 0
        return Unknown(self.columns, missing, np.zeros_like(missing))

    def formulas(self) -> list[tuple[int, Formula]]:
        """What each word adds, less its mean over the classes."""
        (whole,) = self.family.formula(self.params)
        if not self.by_lines:
            return [(0, replace(whole, slope=centred(whole.slope)))]
        absent = None if whole.absent is None else centred(whole.absent)
        return [(0, replace(whole, table=centred(whole.table), absent=absent))]

    def lines(self, values: Any, weights: FloatArray) -> Iterator[TermLine]:
        for term in self.family.lines(self.params, values, len(self.context.classes)):
            yield replace(term, nats=centred(term.nats) * weights[..., 0, :])

    def share_adder(self) -> ShareAdder:
        """Each word is a column; columns of documents that are read together share alike."""
        columns = list(self.columns)

        def add(values: Any, weights: FloatArray, out: FloatArray) -> None:
            weight = weights[..., 0, :]
            if self.by_lines:
                whole = self.evidence(Rows(values))[:, 0] * weight
                out[:, columns] += whole[:, np.newaxis] / len(columns)
                return
            parts = np.stack(self.family.parts(self.params, values, len(self.context.classes)), axis=1)
            out[:, columns] += centred(parts) * (weight if weight.ndim == 1 else weight[:, np.newaxis])

        return add
