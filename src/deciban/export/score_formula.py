"""The scores of a model as a sum of formulas, which compilers translate to other languages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from deciban.data.schema import Schema
from deciban.export.formulas import Always, Bag, Code, Formula, Owner, Weighted, owners_of
from deciban.types import FloatArray, Level, Levels, sorted_levels


@dataclass(frozen=True)
class ScoreFormula:
    """score = start + Σ formulas + Σ constants, for each of K classes, or for the mean of a regression."""

    schema: Schema
    classes: Levels  # () for a regression
    prior: FloatArray  # (K) the scores of a row that is impossible under every class
    start: FloatArray  # (K) what the first part of an explanation adds to every row
    first: str  # the name of that part
    owners: tuple[Owner, ...]  # the features of the other parts, in the order of an explanation
    formulas: tuple[Formula, ...]
    constants: tuple[tuple[str, FloatArray], ...] = ()  # parts that belong to no feature, each with (K) what it adds
    limit: tuple[str, float] | None = None  # the part that bounds the evidence, and the prior share ε
    mean: str | None = None  # the mean as an expression of eta, for a regression
    probabilities: bool = True  # whether the scores are log-probabilities up to a constant
    clocks: Mapping[int, bool] = field(default_factory=dict)  # for date features, whether a time of day was seen
    unknown: tuple[Code, ...] = ()  # features whose weights change where their value is unknown: code < 0
    bias_changes: FloatArray | None = None  # (C, K) how each of these changes the first constant

    @property
    def active_formulas(self) -> list[Formula]:
        """The formulas, without those that add 0 to every row."""
        return [f for f in self.formulas if not isinstance(f, Always) or f.nats.any()]

    @property
    def formula_owners(self) -> set[Owner]:
        return {owner for formula in self.formulas for owner in owners_of(formula)}

    @property
    def text_columns(self) -> set[int]:
        """Features that are read as documents."""
        inner = (formula.formula if isinstance(formula, Weighted) else formula for formula in self.formulas)
        return {j for formula in inner if isinstance(formula, Bag) for j in formula.columns}

    def levels(self) -> dict[int, Levels]:
        """All known values of each feature that is looked up by value."""
        known: dict[int, dict[Level, None]] = {}
        for code in _codes((self.formulas, self.unknown)):
            if code.levels is not None:
                known.setdefault(code.column, {}).update(dict.fromkeys(code.levels))
        return {j: sorted_levels(level for level in levels if level is not None) for j, levels in known.items()}


def _codes(value: Any) -> Iterator[Code]:
    """Every Code anywhere inside a formula."""
    if isinstance(value, Code):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _codes(item)
    elif is_dataclass(value) and not isinstance(value, type):
        for item in fields(value):
            yield from _codes(getattr(value, item.name))
