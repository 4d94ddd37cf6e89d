"""Reading: how a model reads its columns, as far as a report asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from deciban.late import late
from deciban.report.rows import Given, gives_numbers, inner, places_in
from deciban.schema import Schema
from deciban.statistics import Counts, Histogram
from deciban.table import numbered
from deciban.types import FloatArray, IntArray, Levels

sp = late("scipy.sparse")


@dataclass(frozen=True)
class Reading:
    """How a model reads its columns, as far as charts ask for it."""

    model: Any
    of: Given

    @cached_property
    def own(self) -> Any:
        return inner(self.model)

    @property
    def schema(self) -> Schema:
        return self.of.schema

    @property
    def numbers(self) -> bool:
        return gives_numbers(self.model)

    @cached_property
    def names(self) -> list[str]:
        """Of the classes."""
        return [""] if self.numbers else numbered(np.asarray(self.model.classes_).tolist())

    @cached_property
    def classes(self) -> Levels:
        if self.numbers:
            return ()
        return tuple(np.asarray(self.model.classes_).tolist())

    @property
    def shown(self) -> range:
        """The places of classes that tables hold: of two the second only."""
        return range(1, 2) if len(self.names) == 2 else range(len(self.names))

    @cached_property
    def estimate(self) -> Any:
        """Parameters of a generative model whose evidence is not weighed; None for others."""
        return None if hasattr(self.own, "weighed_") else getattr(self.own, "estimate_", None)

    @property
    def correction(self) -> float:
        """What decibans are multiplied by: β of a corrected model, otherwise 1."""
        return 1.0 if self.model is self.own else float(self.model.beta_)

    @cached_property
    def weighed(self) -> Any:
        return getattr(self.own, "weighed_", None)

    @cached_property
    def design(self) -> Any:
        return self.own.predictor_.design if hasattr(self.own, "predictor_") else None

    @cached_property
    def blocks(self) -> list[tuple[Any, Any]]:
        """The blocks of a generative model, with the parameters of those that are not weighed."""
        if self.estimate is not None:
            return list(zip(self.estimate.evidence.blocks, self.estimate.params, strict=True))
        return [(block, None) for block in self.weighed.evidence.blocks] if self.weighed is not None else []

    @cached_property
    def importances(self) -> FloatArray | None:
        """(d) mean |decibans| of each column over rows of the training data, where the model knows them."""
        if not hasattr(type(self.own), "column_evidence_"):
            return None
        found: FloatArray | None = getattr(self.model, "feature_importances_", None)
        return found

    @cached_property
    def documents(self) -> set[int]:
        """Columns of which terms speak."""
        return {j for b, _ in self.blocks if b.plan.family.reads == "texts" for j in b.plan.columns}

    @cached_property
    def together(self) -> set[int]:
        """Columns of which one says something else where another holds something else."""
        if self.estimate is not None:
            return {j for b, _ in self.blocks if b.plan.family.joint and not _by_column(b) for j in b.plan.columns}
        if self.weighed is not None:
            many = [
                piece.columns
                for _, reader, weights in self.weighed.readers
                for piece, weight in zip(reader.pieces, weights, strict=True)
                if len(piece.columns) > 1 and piece.kind != "words" and weight.any()
            ]
            dates = {j for derived in self.schema.derived for j in derived.columns}  # a curve would be a comb
            return {*self.schema.owners([j for columns in many for j in columns]), *dates} - self.documents
        if self.design is not None:
            joint = [p.columns for p in self.design.parts if getattr(_family(p), "joint", False)]
            return {j for columns in joint for j in columns}
        return set()

    @property
    def mixed(self) -> list[int]:
        """Columns whose evidence is a mean over rows, since it depends on other columns as well."""
        return sorted(self.together - self.documents)

    @cached_property
    def levels(self) -> dict[int, Levels]:
        """The values that were learned of columns, where they are values."""
        found: dict[int, Levels] = {}
        parts = self.design.parts if self.design is not None else ()
        listed: list[tuple[Any, Any]] = [
            (b.plan.columns, b.statistic.levels) for b, _ in self.blocks if isinstance(b.statistic, Counts)
        ]
        listed += [(part.columns, getattr(part.encoder, "levels", None)) for part in parts]
        for columns, levels in listed:
            found |= dict(zip(columns, levels, strict=True)) if levels is not None else {}
        for plan, _, columns in self.plans:
            if type(plan.family).__name__ == "Bernoulli" and not plan.presence and plan.family.threshold is None:
                found |= dict.fromkeys(columns, (0, 1))
        for j, kind in enumerate(self.schema.kinds):
            if kind == "boolean":
                found[j] = (False, True)
        return found

    @cached_property
    def plans(self) -> list[tuple[Any, Any, tuple[int, ...]]]:
        """How columns are read: the plans of a generative model, or of the one that a twin was made from.

        With the parameters of those that are not weighed.
        """
        parts = self.design.parts if self.design is not None else ()
        twin = [(p.encoder.plan, p.encoder.params, p.columns) for p in parts if hasattr(p.encoder, "plan")]
        return [*((block.plan, params, block.plan.columns) for block, params in self.blocks), *twin]

    def family(self, j: int) -> tuple[str, Any, int]:
        """The name of the family that reads a column by itself, its parameters, and the column's place in them."""
        for plan, params, columns in self.plans:
            if j in columns and not plan.presence and params is not None:
                return type(plan.family).__name__, params, columns.index(j)
        return "", None, 0

    def block(self, j: int) -> tuple[Any, Any, int]:
        """The block that reads a column's cells, its parameters, and the column's place in it; of several, counts."""
        for block, params in self.blocks:
            mine = params is not None or isinstance(block.statistic, (Counts, Histogram))
            if j in block.plan.columns and not block.plan.presence and mine:
                return block, params, block.plan.columns.index(j)
        return None, None, 0

    def place(self, j: int) -> int:
        """Where a column stands in the rows."""
        return self._places[j]

    @cached_property
    def _places(self) -> list[int]:
        return self.schema.own_places(self.of.sample.frame)

    def column(self, j: int) -> FloatArray:
        """(n) the numbers of a column in the sample."""
        frame = self.of.sample.frame
        found = frame.counts([self.place(j)])
        return np.asarray(found.toarray() if sp.issparse(found) else found, np.float64)[:, 0]

    @cached_property
    def labels(self) -> IntArray:
        """(n) the class of each row of the sample; −1 where the model does not know it."""
        known = places_in(self.classes, self.of.sample.labels) if self.classes else np.zeros(self.of.sample.frame.rows)
        return known.astype(np.intp)

    def is_levels(self, j: int) -> bool:
        return j in self.levels or self.schema.kinds[j] in ("category", "empty")


def _by_column(block: Any) -> bool:
    """Whether a joint block adds column by column after all."""
    return type(block.plan.family).__name__ == "Multinomial"


def _family(part: Any) -> Any:
    return getattr(getattr(part.encoder, "plan", None), "family", None)
