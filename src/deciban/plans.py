"""Plans: which family reads which columns, and in what form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Literal

import numpy as np

from deciban.batch import MISSING, UNSEEN, Batch, Coded, Frame, Kind, Place, kind_at
from deciban.errors import DecibanError
from deciban.families.base import Family
from deciban.late import late
from deciban.schema import Schema
from deciban.sources import Labelled
from deciban.sources.arrays import SparseFrame
from deciban.sources.columns import column_name
from deciban.types import FloatArray, IntArray, Levels

densities = late("deciban.families")  # each is imported when it is needed

AnyFamily = Family[Any, Any]
Families = AnyFamily | Mapping[Any, AnyFamily] | None
Missing = Literal["skip", "category"]


@dataclass(frozen=True)
class Plan:
    """Which family reads which columns. `presence` blocks read whether the cells are there at all."""

    family: AnyFamily
    columns: tuple[int, ...]
    presence: bool = False
    lenient: bool = False  # a number that the family cannot have is taken for a missing cell


@cache
def by_kind() -> dict[Kind, AnyFamily]:
    """The families of columns that none was given for."""
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
    """Families for all columns: those given, then by kind; what is left of sparse rows is one Multinomial."""
    plans = _given(schema, families)
    taken = {j for plan in plans for j in plan.columns}
    rest = [j for j in range(len(schema.names)) if j not in taken]
    if sparse and rest:
        plans.append(Plan(densities.Multinomial(), tuple(rest)))
    elif rest:
        for kind, family in by_kind().items():
            plans.append(Plan(family, tuple(j for j in rest if schema.kinds[j] == kind)))
    plans = grouped(plans)
    return tuple(with_presence(plans) if missing == "category" and not sparse else plans)


def without_absent(plans: Sequence[Plan], rows: Labelled) -> tuple[Plan, ...]:
    """Joint blocks without the columns that are never present, which would leave them no complete row."""
    absent = _never_present(rows)
    kept = [plan for plan in plans if not plan.family.joint]
    for plan in plans:
        if plan.family.joint:
            kept.append(Plan(plan.family, tuple(j for j in plan.columns if j not in absent)))
            kept.append(Plan(densities.Gaussian(), tuple(j for j in plan.columns if j in absent)))
    return tuple(grouped(kept))


def _never_present(rows: Labelled) -> set[int]:
    """Columns of numbers without a single cell."""
    numbers = [j for j, kind in enumerate(rows.frame.kinds) if kind != "category"]
    seen = rows.summed(partial(_present, numbers), converts=True)
    return {j for j, present in zip(numbers, seen, strict=True) if not present}


def _present(numbers: list[int], batch: Batch) -> IntArray:
    """How many cells of each column are there."""
    count: IntArray = (~np.isnan(batch.frame.numbers(numbers))).sum(axis=0)
    return count


def _given(schema: Schema, families: Families) -> list[Plan]:
    everything = tuple(range(len(schema.names)))
    if isinstance(families, Family):
        return [Plan(families, everything)]
    plans: list[Plan] = []
    for key, family in (families or {}).items():
        if not isinstance(family, Family):
            raise DecibanError(
                f"families[{key!r}] must be a family such as deciban.families.Gaussian(), not {family!r}"
            )
        columns = columns_of_key(key, schema, "families")
        for plan in plans:
            for j in set(columns) & set(plan.columns):
                raise DecibanError(f"column {schema.names[j]!r} is given two families")
        plans.append(Plan(family, columns))
    return plans


def grouped(plans: Sequence[Plan]) -> list[Plan]:
    """Columns of one univariate family are read together: one block, not one for each.

    Joint blocks come first, the others by the names of their families. So the order, in which evidence is added up, is
    that of the families alone, whoever chose them and whenever: models that were merged have that of one fit.
    """
    groups: list[Plan] = []
    for plan in plans:
        same = [i for i, known in enumerate(groups) if alike(known, plan)]
        if same and not plan.family.joint:
            groups[same[0]] = replace(groups[same[0]], columns=groups[same[0]].columns + plan.columns)
        else:
            groups.append(plan)
    ordered = [p if p.family.joint else replace(p, columns=tuple(sorted(p.columns))) for p in groups if p.columns]
    return sorted(ordered, key=rank)


def rank(plan: Plan) -> tuple[bool, bool, str, int]:
    """Where a plan stands among others."""
    return plan.presence, not plan.family.joint, type(plan.family).__name__, min(plan.columns)


def alike(a: Plan, b: Plan) -> bool:
    """Whether two plans read columns in the same way; what a joint family reads are all of its columns."""
    same = a.family == b.family and a.presence == b.presence
    return same and (not a.family.joint or {*a.columns} == {*b.columns})


def with_presence(plans: Sequence[Plan]) -> list[Plan]:
    """And one that reads whether cells are there, where that is no category among others."""
    apart = ("numbers", "counts", "texts")
    counted = sorted({j for plan in plans if plan.family.reads in apart for j in plan.columns})
    return [*plans, Plan(densities.Bernoulli(), tuple(counted), presence=True)] if counted else [*plans]


def replaced(plans: Sequence[Plan], columns: set[int], others: Sequence[Plan]) -> tuple[Plan, ...]:
    """Plans in which some columns are read as by others."""
    mine = [replace(p, columns=tuple(j for j in p.columns if j not in columns)) for p in plans if not p.presence]
    theirs = [replace(p, columns=tuple(j for j in p.columns if j in columns)) for p in others if not p.presence]
    found = grouped([*mine, *theirs])
    return tuple(with_presence(found) if any(plan.presence for plan in (*plans, *others)) else found)


def wider(plans: Sequence[Plan], others: Sequence[Plan]) -> set[int]:
    """The columns of joint plans that are no part of another."""
    joint = [plan for plan in plans if plan.family.joint]
    return {
        j
        for plan in joint
        if not any(plan.family == other.family and {*plan.columns} <= {*other.columns} for other in others)
        for j in plan.columns
    }


def columns_of_key(key: Any, schema: Schema, setting: str) -> tuple[int, ...]:
    """The places that a key of a setting means: a name, a position, or a tuple of them.

    A name comes before a position, and a tuple that is itself a name, as in a MultiIndex, before a tuple of names.
    """
    whole = not isinstance(key, tuple) or (not schema.positional and column_name(key) in schema.names)
    keys = (key,) if whole else key
    places = []
    for k in keys:
        name: Any = k if schema.positional else column_name(k)
        if name in schema.names:
            places.append(list(schema.names).index(name))
        elif isinstance(k, int) and -len(schema.names) <= k < len(schema.names):
            places.append(k % len(schema.names))
        else:
            raise DecibanError(f"{setting} names a column {k!r} that is not there; there are {list(schema.names)[:20]}")
    if len(set(places)) < len(places):
        raise DecibanError(f"{setting} names a column twice in {key!r}")
    return tuple(places)


def read(plan: Plan, frame: Frame, places: Sequence[Place], levels: tuple[Levels, ...] | None, missing: Missing) -> Any:
    """A block's columns in the form its family reads."""
    columns = [places[j] for j in plan.columns]
    if plan.presence:
        return _absent(frame, columns)
    if plan.family.reads == "mixed":
        return plan.family.reading.of(frame, columns)  # type: ignore[attr-defined]
    if plan.family.reads == "texts":
        return frame.texts(columns)
    if plan.family.reads != "codes":
        values = frame.numbers(columns) if plan.family.reads == "numbers" else frame.counts(columns)
        return plan.family.allowed(values) if plan.lenient else values
    if levels is None:
        coded = frame.coded(columns)
        return _with_missing_level(coded) if missing == "category" else coded
    codes = frame.codes(columns, levels)
    if missing == "category":
        # None, where it was learned, is the last of its column's levels
        last = np.array([len(v) - 1 if v and v[-1] is None else UNSEEN for v in levels], dtype=np.int32)
        codes = np.where(codes == MISSING, last, codes)
    return Coded(codes, levels)


def _absent(frame: Frame, columns: Sequence[Place]) -> FloatArray:
    """(n, d) 1 where a cell is missing, 0 where it is there."""
    numbers = [i for i, place in enumerate(columns) if kind_at(frame, place) not in ("category", "text")]
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


def converts(plans: Sequence[Plan], frame: Frame) -> bool:
    """Whether rows have to be turned into codes or, where they are sparse, into numbers."""
    taken = ("counts",) if is_sparse(frame) else ("counts", "numbers")
    return any(plan.presence or plan.family.reads not in taken for plan in plans)


def is_sparse(frame: Frame) -> bool:
    return isinstance(frame, SparseFrame)
