"""Plans: which family reads which features, and in what form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Literal

import numpy as np

from deciban.data import Labelled
from deciban.data.arrays import SparseFrame
from deciban.data.batch import MISSING, UNSEEN, Batch, Coded, ColumnRef, Frame, Kind, kind_at
from deciban.data.columns import column_name
from deciban.data.schema import Schema
from deciban.errors import DecibanError, did_you_mean, require
from deciban.families.family import Family
from deciban.lazy import lazy
from deciban.types import FloatArray, IntArray, Levels

densities = lazy("deciban.families")  # each is imported when it is needed

AnyFamily = Family[Any, Any]
Families = AnyFamily | Mapping[Any, AnyFamily] | None
Missing = Literal["skip", "category"]


@dataclass(frozen=True)
class Plan:
    """Which family reads which features; with `presence`, it reads whether their values are missing."""

    family: AnyFamily
    columns: tuple[int, ...]
    presence: bool = False
    lenient: bool = False  # whether a number outside the family's domain counts as missing

    def check_fields(self) -> None:
        require(self.columns and min(self.columns) >= 0, "a block without columns")
        require(len(set(self.columns)) == len(self.columns), "a block has a column twice")
        numeric = self.family.reads in ("numbers", "counts")
        require(not self.presence or numeric, f"a family of {self.family.reads} cannot read presence")

    def read(
        self, frame: Frame, columns: Sequence[ColumnRef], missing: Missing, levels: tuple[Levels, ...] | None = None
    ) -> Any:
        """Columns of a frame in the form that the family reads; categories as codes of `levels`, if these are known."""
        family: Any = self.family
        if self.presence:
            return _is_missing(frame, columns)
        match family.reads:
            case "mixed":
                return family.reading.of(frame, columns)
            case "texts":
                return frame.texts(columns)
            case "numbers" | "counts":
                values = frame.numbers(columns) if family.reads == "numbers" else frame.counts(columns)
                return family.allowed(values) if self.lenient else values
        if levels is None:
            coded = frame.coded(columns)
            return _with_missing_level(coded) if missing == "category" else coded
        codes = frame.codes(columns, levels)
        if missing == "category":
            # None, if it was seen, is the last level
            last = np.array([len(v) - 1 if v and v[-1] is None else UNSEEN for v in levels], dtype=np.int32)
            codes = np.where(codes == MISSING, last, codes)
        return Coded(codes, levels)


@cache
def by_kind() -> dict[Kind, AnyFamily]:
    """The default family of each kind of feature."""
    return {
        "boolean": densities.Bernoulli(),
        "category": densities.Categorical(),
        "number": densities.Gaussian(),
        "date": densities.Gaussian(),
        "time": densities.Gaussian(),
        "text": densities.Text(),
        "empty": densities.Categorical(),
    }


def make_plans(schema: Schema, families: Families, missing: Missing, *, sparse: bool) -> tuple[Plan, ...]:
    """Plans for all features: the given families, then defaults by kind, or one Multinomial for sparse rows."""
    plans = _given_plans(schema, families)
    planned = {j for plan in plans for j in plan.columns}
    rest = [j for j in range(len(schema.names)) if j not in planned]
    if sparse and rest:
        plans.append(Plan(densities.Multinomial(), tuple(rest)))
    elif rest:
        for kind, family in by_kind().items():
            plans.append(Plan(family, tuple(j for j in rest if schema.kinds[j] == kind)))
    plans = grouped(plans)
    return tuple(with_presence(plans) if missing == "category" and not sparse else plans)


def without_absent(plans: Sequence[Plan], rows: Labelled) -> tuple[Plan, ...]:
    """Plans whose joint blocks lack features without a value, which would leave them no complete row."""
    absent = _never_present(rows)
    changed = [plan for plan in plans if not plan.family.joint]
    for plan in plans:
        if plan.family.joint:
            changed.append(Plan(plan.family, tuple(j for j in plan.columns if j not in absent)))
            changed.append(Plan(densities.Gaussian(), tuple(j for j in plan.columns if j in absent)))
    return tuple(grouped(changed))


def _never_present(rows: Labelled) -> set[int]:
    numbers = [j for j, kind in enumerate(rows.frame.kinds) if kind != "category"]
    seen = rows.summed(partial(_present, numbers), needs_small_batches=True)
    return {j for j, present in zip(numbers, seen, strict=True) if not present}


def _present(numbers: list[int], batch: Batch) -> IntArray:
    count: IntArray = (~np.isnan(batch.frame.numbers(numbers))).sum(axis=0)
    return count


def _given_plans(schema: Schema, families: Families) -> list[Plan]:
    everything = tuple(range(len(schema.names)))
    if isinstance(families, Family):
        return [Plan(families, everything)]
    plans: list[Plan] = []
    for key, family in (families or {}).items():
        if not isinstance(family, Family):
            raise DecibanError(f"families[{key!r}] must be a family such as families.Gaussian(), not {family!r}")
        columns = columns_of_key(key, schema, "families")
        for plan in plans:
            for j in set(columns) & set(plan.columns):
                raise DecibanError(f"column {schema.names[j]!r} is given two families")
        plans.append(Plan(family, columns))
    return plans


def grouped(plans: Sequence[Plan]) -> list[Plan]:
    """One plan for all features of a univariate family.

    Joint plans come first, then the others by the names of their families. So the order in which evidence is added up
    depends on the families only, and merged models add as one fit does.
    """
    groups: list[Plan] = []
    for plan in plans:
        i = next((i for i, group in enumerate(groups) if alike(group, plan)), None)
        if i is not None and not plan.family.joint:
            groups[i] = replace(groups[i], columns=groups[i].columns + plan.columns)
        else:
            groups.append(plan)
    ordered = [p if p.family.joint else replace(p, columns=tuple(sorted(p.columns))) for p in groups if p.columns]
    return sorted(ordered, key=rank)


def rank(plan: Plan) -> tuple[bool, bool, str, int]:
    return plan.presence, not plan.family.joint, type(plan.family).__name__, min(plan.columns)


def alike(a: Plan, b: Plan) -> bool:
    """Whether two plans read columns in the same way: for a joint family, the same columns."""
    same = a.family == b.family and a.presence == b.presence
    return same and (not a.family.joint or {*a.columns} == {*b.columns})


def with_presence(plans: Sequence[Plan]) -> list[Plan]:
    """The plans, and one that reads whether values are missing, for features where that is not a level."""
    uncoded = ("numbers", "counts", "texts")
    columns = sorted({j for plan in plans if plan.family.reads in uncoded for j in plan.columns})
    return [*plans, Plan(densities.Bernoulli(), tuple(columns), presence=True)] if columns else [*plans]


def replaced(plans: Sequence[Plan], columns: set[int], others: Sequence[Plan]) -> tuple[Plan, ...]:
    """Plans in which `columns` are read as in `others`."""
    rest = [replace(p, columns=tuple(j for j in p.columns if j not in columns)) for p in plans if not p.presence]
    replacements = [replace(p, columns=tuple(j for j in p.columns if j in columns)) for p in others if not p.presence]
    merged = grouped([*rest, *replacements])
    return tuple(with_presence(merged) if any(plan.presence for plan in (*plans, *others)) else merged)


def wider(plans: Sequence[Plan], others: Sequence[Plan]) -> set[int]:
    """The features of joint plans that no plan of the same family among `others` contains."""
    joint = [plan for plan in plans if plan.family.joint]
    return {
        j
        for plan in joint
        if not any(plan.family == other.family and {*plan.columns} <= {*other.columns} for other in others)
        for j in plan.columns
    }


def columns_of_key(key: Any, schema: Schema, setting: str) -> tuple[int, ...]:
    """The positions that a key of a setting refers to: a name, a position, or a tuple of them.

    A name takes precedence over a position, and a tuple that is itself a name, as in a MultiIndex, over its entries.
    """
    single = not isinstance(key, tuple) or (not schema.positional and column_name(key) in schema.names)
    keys = (key,) if single else key
    positions = []
    for k in keys:
        name: Any = k if schema.positional else column_name(k)
        if name in schema.names:
            positions.append(list(schema.names).index(name))
        elif isinstance(k, int) and -len(schema.names) <= k < len(schema.names):
            positions.append(k % len(schema.names))
        else:
            near, names = did_you_mean(name, among=schema.names), list(schema.names)[:20]
            raise DecibanError(f"{setting} names an unknown column {k!r}{near}; the columns are {names}")
    if len(set(positions)) < len(positions):
        raise DecibanError(f"{setting} names a column twice in {key!r}")
    return tuple(positions)


def _is_missing(frame: Frame, columns: Sequence[ColumnRef]) -> FloatArray:
    """(n, d) 1 where a value is missing, else 0."""
    numbers = [i for i, column in enumerate(columns) if kind_at(frame, column) not in ("category", "text")]
    if len(numbers) == len(columns):
        return np.where(np.isnan(frame.numbers(columns)), 1.0, 0.0)
    out = np.empty((frame.rows, len(columns)))
    if numbers:
        out[:, numbers] = np.isnan(frame.numbers([columns[i] for i in numbers]))
    for i in {*range(len(columns))}.difference(numbers):
        out[:, i] = ~frame.texts([columns[i]]).present
    return out


def _with_missing_level(coded: Coded) -> Coded:
    sizes = np.array([len(levels) for levels in coded.levels], dtype=np.int32)
    codes = np.where(coded.codes == MISSING, sizes, coded.codes)
    return Coded(codes, tuple((*levels, None) for levels in coded.levels))


def needs_small_batches(plans: Sequence[Plan], frame: Frame) -> bool:
    """Whether rows have to be converted to codes or, if they are sparse, to numbers."""
    direct = ("counts",) if is_sparse(frame) else ("counts", "numbers")
    return any(plan.presence or plan.family.reads not in direct for plan in plans)


def is_sparse(frame: Frame) -> bool:
    return isinstance(frame, SparseFrame)
