"""Block: one family over one or more features, and its statistic."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, get_type_hints

from deciban.data.matched_frame import MatchedFrame
from deciban.data.schema import Schema
from deciban.errors import require
from deciban.generative.plan import AnyFamily, Missing, Plan
from deciban.statistics.counts import Counts
from deciban.statistics.statistic import Statistic
from deciban.types import Levels


@dataclass(frozen=True)
class Block:
    """One family over one or more features, and its statistic.

    A model binds its blocks to its schema and to its policy for missing values; a file stores both once, in the model.
    """

    plan: Plan
    statistic: Statistic
    schema: Schema | None = field(default=None, compare=False, repr=False)
    missing: Missing = field(default="skip", compare=False, repr=False)

    def check_fields(self) -> None:
        family: Any = self.plan.family
        statistic: Any = self.statistic
        collected = get_type_hints(type(family).collect)["return"]
        require(isinstance(statistic, collected), f"{type(family).__name__} collects no {type(statistic).__name__}")
        if hasattr(statistic, "shared") and hasattr(family, "covariance"):
            require(statistic.shared == (family.covariance == "shared"), "a scatter of another kind of covariance")
        if family.reads == "mixed":
            width = len(family.reading.levels)
            require(width == len(self.plan.columns), f"{width} columns are read instead of {len(self.plan.columns)}")
        for name in ("cap", "bits"):
            if hasattr(statistic, name) and hasattr(family, name):
                value, expected = getattr(statistic, name), getattr(family, name)
                require(value == expected, f"a histogram with a {name} of {value} instead of {expected}")

    def bind(self, schema: Schema, missing: Missing) -> Block:
        if self.schema is schema and self.missing == missing:
            return self
        return replace(self, schema=schema, missing=missing)

    def with_statistic(self, statistic: Statistic) -> Block:
        return replace(self, statistic=statistic)

    @property
    def family(self) -> AnyFamily:
        return self.plan.family

    @property
    def columns(self) -> tuple[int, ...]:
        """The positions of its features in the schema."""
        return self.plan.columns

    @property
    def names(self) -> Levels:
        assert self.schema is not None
        names = self.schema.all_names
        return tuple(names[j] for j in self.columns)

    @property
    def levels(self) -> tuple[Levels, ...] | None:
        """The levels seen of each feature; None if the statistic does not count levels."""
        return self.statistic.levels if isinstance(self.statistic, Counts) else None

    def read(self, rows: MatchedFrame) -> Any:
        """The values of its features, in the form that its family reads."""
        with self.naming(rows):
            return self.plan.read(rows.frame, rows.columns(self.columns), self.missing, self.levels)

    def read_checked(self, rows: MatchedFrame) -> Any:
        """As `read`; a value outside the domain of the family raises an error that names the cell."""
        values = self.read(rows)
        with self.naming(rows):
            self.family.check(values)
        return values

    def naming(self, rows: MatchedFrame) -> AbstractContextManager[None]:
        """Turns a BadCell of this block into an error that names the feature and the row."""
        return rows.naming(self.columns)
