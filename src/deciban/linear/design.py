"""Design: from the columns of a table to the features of a linear model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from deciban.data.batch import NUMERIC, Frame, Kind
from deciban.data.matched_frame import MatchedFrame
from deciban.data.schema import Schema
from deciban.errors import DecibanError, forbid_infinite, require
from deciban.generative.plan import is_sparse
from deciban.lazy import lazy
from deciban.linear.encoders import Encoder, Indicators, Numbers, Sufficient
from deciban.table import numbered
from deciban.types import FloatArray, IntArray

if TYPE_CHECKING:
    from deciban.export.formulas import Formula

formulas = lazy("deciban.export.formulas")  # needed only by reports

MAX_DENSE_INDICATORS = 512  # more indicators make a sparse matrix


@dataclass(frozen=True)
class Part:
    """An encoder, and the columns that it encodes."""

    columns: tuple[int, ...]
    encoder: Encoder

    def check_fields(self) -> None:
        encoder: Any = self.encoder
        require(self.columns and min(self.columns) >= 0, "features without a valid column")
        width = len(encoder.plan.columns) if isinstance(encoder, Sufficient) else len(encoder.labels)
        require(width == len(self.columns), f"features of {width} columns instead of {len(self.columns)}")


@dataclass(frozen=True)
class Design:
    """The features of a table: those of its numbers, then of its categories."""

    schema: Schema
    parts: tuple[Part, ...]
    names: tuple[str, ...] = field(init=False)
    owners: tuple[int, ...] = field(init=False)  # the column of each feature

    def check_fields(self) -> None:
        for part in self.parts:
            require(max(part.columns) < len(self.schema.names), "features of an unknown column")
            if isinstance(part.encoder, (Numbers, Indicators)):
                names = tuple(self.schema.names[j] for j in part.columns)
                require(part.encoder.labels == names, "features have the names of other columns")

    def __post_init__(self) -> None:
        names = numbered(name for part in self.parts for name in part.encoder.names)  # unique
        object.__setattr__(self, "names", tuple(names))
        owners = tuple(part.columns[j] for part in self.parts for j in part.encoder.owners)
        object.__setattr__(self, "owners", owners)

    @classmethod
    def of(cls, frame: Frame, weights: FloatArray | None = None, rows: IntArray | None = None) -> Design:
        """Numbers and booleans are numbers, categories are indicators, an empty column has no feature.

        `rows` are the row numbers for messages, if some rows were left out.
        """
        schema = Schema.of(frame)
        matched, parts = MatchedFrame(schema, frame, 0 if rows is None else rows), []
        encoders: tuple[Any, ...] = (Numbers, Indicators)
        for encoder, columns in zip(encoders, columns_by_encoder(schema), strict=True):
            if columns:
                labels = tuple(schema.names[j] for j in columns)
                with matched.naming(columns):
                    parts.append(Part(columns, encoder.of(labels, frame, columns, weights)))
        return cls(schema, tuple(parts))

    @property
    def spread(self) -> FloatArray | None:
        """(p) standard deviations of the features in training, where they are known."""
        if len(self.parts) == 1 and isinstance(self.parts[0].encoder, Numbers):
            return self.parts[0].encoder.spread
        return None

    def training_matrix(self, frame: Frame, rows: IntArray) -> Any:
        """The features of the training rows, without checking their values again."""
        if self.spread is not None:
            return frame.counts(self.parts[0].columns)
        return self.matrix(frame, rows=rows)

    def matrix(self, frame: Frame, first_row: int = 0, rows: IntArray | None = None) -> Any:
        """(n, p) features: the frame's own matrix where possible, else a new one, or CSR."""
        matched, matrices = self._matched(frame, first_row, rows), []
        for part in self.parts:
            with matched.naming(part.columns):
                matrices.append(part.encoder.features(frame, matched.columns(part.columns)))
        if not matrices:
            return np.zeros((frame.rows, 0))
        indicators = [x.shape[1] for x in matrices if sp.issparse(x)]
        if indicators:
            if not is_sparse(frame) and sum(indicators) <= MAX_DENSE_INDICATORS:
                matrices = [x.toarray() if sp.issparse(x) else x for x in matrices]
            else:
                return sp.csr_array(matrices[0] if len(matrices) == 1 else sp.hstack(matrices, format="csr"))
        return matrices[0] if len(matrices) == 1 else np.hstack(matrices)

    @property
    def origin(self) -> FloatArray:
        """(p) the baseline of explanations: the means of the features, or all missing for sufficient statistics."""
        return np.concatenate([np.zeros(0), *(part.encoder.origin for part in self.parts)])

    def formula(self, weights: FloatArray, origin: FloatArray) -> list[Formula]:
        """Σ weights (k, p) · (features − origin), as formulas over the columns of the table."""
        terms: list[Formula] = []
        first = 0
        for part in self.parts:
            features = slice(first, first := first + len(part.encoder.owners))
            encoded = part.encoder.formula(weights[:, features], origin[features])
            terms += [formulas.placed(formula, part.columns) for formula in encoded]
        return terms

    @property
    def has_sufficient_statistics(self) -> bool:
        """Whether features are sufficient statistics, which are often redundant."""
        return any(isinstance(part.encoder, Sufficient) for part in self.parts)

    def forbid_infinite(self, frame: Frame, first_row: int, rows: IntArray | None = None) -> None:
        """Raises an error that names an infinite value, if there is one among the numbers."""
        matched = self._matched(frame, first_row, rows)
        for part in self.parts:
            if isinstance(part.encoder, Numbers):
                with matched.naming(part.columns):
                    x = frame.counts(matched.columns(part.columns))
                    if not sp.issparse(x):
                        forbid_infinite(x)

    def _matched(self, frame: Frame, first_row: int, rows: IntArray | None) -> MatchedFrame:
        return MatchedFrame(self.schema, frame, first_row if rows is None else first_row + rows)

    def needs_small_batches(self, frame: Frame) -> bool:
        """Whether features are computed; numbers alone are read in place."""
        return not (len(self.parts) == 1 and isinstance(self.parts[0].encoder, Numbers))


def columns_by_encoder(schema: Schema) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The columns to encode as numbers, and as indicators."""
    if "text" in schema.kinds:
        raise DecibanError("this model takes numbers and categories, not documents: use NaiveBayes")
    by_encoder: tuple[set[Kind], ...] = ({*NUMERIC, "boolean"}, {"category"})
    numbers, categories = (tuple(j for j, kind in enumerate(schema.kinds) if kind in kinds) for kinds in by_encoder)
    return numbers, categories
