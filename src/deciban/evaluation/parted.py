"""Judging batch by batch; and folds of rows that lie elsewhere, collected in one pass and judged in another."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np

from deciban import _kernels
from deciban.batch import Batch
from deciban.errors import DecibanError, RowError, warn_of_impossible
from deciban.evaluation.evaluation import Evaluation
from deciban.evaluation.rows import classes_of, proba
from deciban.generative import Estimate, Generative
from deciban.held_out import Foretold, lacks_whole_rows, sums_of_others
from deciban.schema import Schema
from deciban.sources.arrays import MatrixFrame
from deciban.sources.parted import Folds, Parted, PartedFold
from deciban.sources.sampling import row_keys
from deciban.types import IntArray, Level, Levels, sorted_levels

T = TypeVar("T")


@dataclass(frozen=True)
class ByKey:
    """Rows are dealt by what they hold, so each has its fold wherever it is; equal rows have the same."""

    schema: Schema
    folds: int
    seed: int

    def __call__(self, batch: Batch) -> IntArray:
        keys = row_keys(batch.frame, self.schema.places(batch.frame), self.seed)
        fold: IntArray = (keys % np.uint64(self.folds)).astype(np.intp)
        return fold


@dataclass(frozen=True)
class ByColumn:
    """A column names the fold of each row."""

    column: str
    names: Levels

    def __call__(self, batch: Batch) -> IntArray:
        place = list(batch.frame.names).index(self.column)
        return batch.frame.codes([place], (self.names,))[:, 0].astype(np.intp)


@dataclass(frozen=True)
class ByFold(Generic[T]):
    """Something that adds, of each fold."""

    parts: dict[int, T]

    @classmethod
    def of(cls, batch: Batch, fold: Folds, work: Callable[[int, Batch], T]) -> ByFold[T]:
        folds = fold(batch)
        return cls({int(f): work(int(f), batch.take(np.flatnonzero(folds == f))) for f in np.unique(folds)})

    def __add__(self, other: ByFold[T]) -> ByFold[T]:
        both = dict(self.parts)
        for f, part in other.parts.items():
            both[f] = both[f] + part if f in both else part  # type: ignore[operator]
        return ByFold(both)


def judged(model: Any, known: Levels, batch: Batch) -> Evaluation:
    """What a model says of some rows, held against their classes. Rows are numbered as in the input."""
    frame, own = batch.frame, hasattr(model, "_stream")
    x = frame.x if isinstance(frame, MatrixFrame) else frame if own else frame.table  # type: ignore[attr-defined]
    truth = np.array(batch.classes)[batch.labels]
    try:
        p = proba(model, x)
    except RowError as error:
        raise RowError(error.where, batch.row_number(error.row), error.problem) from None
    return Evaluation.of(truth, p, classes=known, sample_weight=batch.weights)


def cross_validate_parts(model: Any, rows: Parted, cv: Any, seed: int) -> Evaluation:
    """Every row judged by what was learned from the other folds."""
    fold, count = _folds(rows, cv, seed)
    mine = [PartedFold(rows, fold, f, others=False, hidden=_column(fold)) for f in range(count)]
    rest = [replace(part, others=True) for part in mine]
    parts = _added_up(model, rest[0], rows, fold, count)
    if parts is None:
        judgements = [_refitted(model, part, others) for part, others in zip(mine, rest, strict=True)]
        parts = [found for found in judgements if found is not None]
    return replace(sum(parts[1:], parts[0]), parts=tuple(parts))


def _refitted(model: Any, rows: Parted, others: Parted) -> Evaluation | None:
    """The rows of a fold, judged by a model that was fitted to the others; None if it has no rows."""
    fresh = copy.deepcopy(model).fit(others)
    return rows.summed_or_none(partial(judged, fresh, classes_of(fresh)), converts=False)


def _folds(rows: Parted, cv: Any, seed: int) -> tuple[ByKey | ByColumn, int]:
    if isinstance(cv, str):
        names = list(rows.frame.names)
        if cv not in names:
            raise DecibanError(f"cv: there is no column {cv!r}; there are {names[:20]}")
        met = rows.summed(partial(_Names.of, names.index(cv)), converts=True).names
        if len(met) < 2:
            raise DecibanError("cv has one fold only: without it there would be no rows to learn from")
        return ByColumn(cv, sorted_levels(met)), len(met)
    if not isinstance(cv, (int, np.integer)) or cv < 2:
        raise DecibanError(f"cv is {cv!r}: it must be a whole number from 2, or the name of a column of folds")
    return ByKey(Schema.of(rows.frame), int(cv), seed), int(cv)


def _column(fold: ByKey | ByColumn) -> str | None:
    return fold.column if isinstance(fold, ByColumn) else None


@dataclass(frozen=True)
class _Names:
    """The values of a column."""

    names: frozenset[Level]

    @classmethod
    def of(cls, place: int, batch: Batch) -> _Names:
        coded = batch.frame.coded([place])
        missing = np.flatnonzero(coded.codes[:, 0] < 0)
        if len(missing):
            raise DecibanError(f"row {batch.row_number(int(missing[0]))} has no fold: its cell is empty")
        return cls(frozenset(coded.levels[0]))

    def __add__(self, other: _Names) -> _Names:
        return _Names(self.names | other.names)


# Folds that add up ---------------------------------------------------------------------------------------------------


def _added_up(model: Any, some: PartedFold, rows: Parted, fold: Folds, count: int) -> list[Evaluation] | None:
    """The evaluation of each fold, from a statistic of each; None where it takes refits."""
    plans = copy.copy(model)._plans_of_folds(some) if hasattr(model, "_plans_of_folds") else None
    if plans is None:
        return None
    schema, found = plans
    observe = partial(_observed, schema, found, model._missing())
    collected = rows.summed(partial(ByFold.of, fold=fold, work=observe), converts=True).parts
    if len(collected) < 2:
        raise DecibanError("all rows are in one fold: without it there would be no rows to learn from")
    others = dict(zip(collected, sums_of_others(list(collected.values())), strict=True))
    if any(lacks_whole_rows(rest) for rest in others.values()):
        return None
    classes = sorted_levels({label for part in collected.values() for label in part.classes})
    estimates = {f: rest.estimate(model._settings(rest)) for f, rest in others.items()}
    judge = partial(_foretold, classes, estimates)
    judged = rows.summed(partial(ByFold.of, fold=fold, work=judge), converts=True).parts
    return [judged[f] for f in range(count) if f in judged]


def _observed(schema: Schema, plans: Sequence[Any], missing: Any, fold: int, batch: Batch) -> Generative:
    return Generative.observe(batch, schema, plans, missing)


def _foretold(classes: Levels, estimates: dict[int, Estimate], fold: int, batch: Batch) -> Evaluation:
    estimate = estimates[fold]
    log_p = np.empty((batch.frame.rows, len(estimate.log_prior)))
    numbers = batch.first if batch.rows is None else batch.first + batch.rows
    estimate.joint(batch.frame, log_p, numbers)
    warn_of_impossible(_kernels.normalise(log_p, estimate.log_prior, True))
    found = Foretold.of(np.arange(len(log_p)), log_p, estimate.evidence.classes, classes)
    place = {label: i for i, label in enumerate(classes)}
    codes = np.array([place[label] for label in batch.classes], np.int32)[batch.labels]
    return Evaluation.scored(classes, codes, np.exp(found.log_p), batch.weights, known=found.known)
