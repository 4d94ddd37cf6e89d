"""Evaluation of a batch; and cross-validation of distributed rows, in one pass to fit and one to predict."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np

from deciban import _kernels
from deciban.data.arrays import MatrixFrame
from deciban.data.batch import Batch
from deciban.data.class_index import ClassIndex
from deciban.data.distributed import DistributedRows, DistributedSelection
from deciban.data.sampling import row_keys
from deciban.data.schema import Schema
from deciban.errors import DecibanError, RowError, did_you_mean, warn_of_impossible
from deciban.evaluation.evaluation import Evaluation
from deciban.evaluation.evaluation_rows import classes_of, proba
from deciban.evaluation.fitted_model import FittedModel
from deciban.generative.estimate import Estimate
from deciban.generative.held_out import OutOfFoldPredictions, lacks_complete_rows, sums_of_others
from deciban.generative.model import Generative
from deciban.types import BoolArray, IntArray, Level, Levels, sorted_levels

T = TypeVar("T")

Folds = Callable[[Batch], IntArray]  # the fold of each row


@dataclass(frozen=True)
class ByKey:
    """Folds by a hash of the row's values: the same on every machine, and for equal rows."""

    schema: Schema
    folds: int
    seed: int

    def __call__(self, batch: Batch) -> IntArray:
        keys = row_keys(batch.frame, self.schema.column_refs(batch.frame), self.seed)
        return (keys % np.uint64(self.folds)).astype(np.intp)


@dataclass(frozen=True)
class ByColumn:
    """Folds by the values of a column."""

    column: str
    names: Levels

    def __call__(self, batch: Batch) -> IntArray:
        position = list(batch.frame.names).index(self.column)
        return batch.frame.codes([position], (self.names,))[:, 0].astype(np.intp)


def in_fold(fold: Folds, number: int, batch: Batch) -> BoolArray:
    """(n) which rows are in a fold."""
    return np.equal(fold(batch), number)


def outside_fold(fold: Folds, number: int, batch: Batch) -> BoolArray:
    """(n) which rows are in other folds."""
    return np.not_equal(fold(batch), number)


@dataclass(frozen=True)
class ByFold(Generic[T]):
    """A sum for each fold."""

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


def evaluate_batch(model: Any, known: Levels, batch: Batch) -> Evaluation:
    """The evaluation of one batch; errors number rows as in the input."""
    frame, reads_frames = batch.frame, isinstance(model, FittedModel)
    x: Any = frame.x if isinstance(frame, MatrixFrame) else frame if reads_frames else frame.table  # type: ignore[attr-defined]
    truth = np.array(batch.classes)[batch.labels]
    try:
        p = proba(model, x)
    except RowError as error:
        raise RowError(error.where, batch.row_number(error.row), error.problem) from None
    return Evaluation.of(truth, p, classes=known, sample_weight=batch.weights)


def cross_validate_distributed(model: Any, rows: DistributedRows, cv: Any, seed: int) -> Evaluation:
    """Evaluate every row by a model that was fitted to the other folds."""
    fold, count = _folds(rows, cv, seed)
    column = fold.column if isinstance(fold, ByColumn) else None
    held_out, training = (
        [DistributedSelection(rows, partial(select, fold, f), column) for f in range(count)]
        for select in (in_fold, outside_fold)
    )
    parts = _from_statistics(model, training[0], rows, fold, count)
    if parts is None:
        evaluations = [_refitted(model, *pair) for pair in zip(held_out, training, strict=True)]
        parts = [evaluation for evaluation in evaluations if evaluation is not None]
    return replace(sum(parts[1:], parts[0]), parts=tuple(parts))


def _refitted(model: Any, rows: DistributedRows, others: DistributedRows) -> Evaluation | None:
    """The evaluation of a fold by a model that is fitted to the others; None if the fold has no rows."""
    fresh = copy.deepcopy(model).fit(others)
    return rows.summed_or_none(partial(evaluate_batch, fresh, classes_of(fresh)), needs_small_batches=False)


def _folds(rows: DistributedRows, cv: Any, seed: int) -> tuple[ByKey | ByColumn, int]:
    if isinstance(cv, str):
        names = list(rows.frame.names)
        if cv not in names:
            near = did_you_mean(cv, among=names)
            raise DecibanError(f"cv: there is no column {cv!r}{near}; there are {names[:20]}")
        values = rows.summed(partial(_fold_names, names.index(cv)), needs_small_batches=True)
        if len(values) < 2:
            raise DecibanError("cv has one fold only, so there would be no training rows: pass at least two")
        return ByColumn(cv, sorted_levels(values)), len(values)
    if not isinstance(cv, (int, np.integer)) or cv < 2:
        raise DecibanError(f"cv is {cv!r}: it must be a whole number from 2, or the name of a column of folds")
    return ByKey(Schema.of(rows.frame), int(cv), seed), int(cv)


def _fold_names(position: int, batch: Batch) -> Counter[Level]:
    """The distinct values of a column."""
    coded = batch.frame.coded([position])
    missing = np.flatnonzero(coded.codes[:, 0] < 0)
    if len(missing):
        raise DecibanError(f"row {batch.row_number(int(missing[0]))} has no fold: its value is missing")
    return Counter(coded.levels[0])


def _from_statistics(
    model: Any, training: DistributedRows, rows: DistributedRows, fold: Folds, count: int
) -> list[Evaluation] | None:
    """The evaluation of each fold, from the statistics of all folds; None where the model has to be refitted."""
    fit = model.additive_fit(training) if isinstance(model, FittedModel) and model.additive else None
    if fit is None:
        return None
    observe = partial(_observed, fit.schema, fit.plans, fit.missing)
    collected = rows.summed(partial(ByFold.of, fold=fold, work=observe), needs_small_batches=True).parts
    if len(collected) < 2:
        raise DecibanError(
            "all rows are in one fold, so there would be no training rows: pass more rows, or a column of folds"
        )
    others = dict(zip(collected, sums_of_others(list(collected.values())), strict=True))
    if any(lacks_complete_rows(rest) for rest in others.values()):
        return None
    classes = sorted_levels({label for part in collected.values() for label in part.classes})
    estimates = {f: rest.estimate(fit.settings(rest)) for f, rest in others.items()}
    evaluate = partial(_evaluated, classes, estimates)
    by_fold = rows.summed(partial(ByFold.of, fold=fold, work=evaluate), needs_small_batches=True).parts
    return [by_fold[f] for f in range(count) if f in by_fold]


def _observed(schema: Schema, plans: Sequence[Any], missing: Any, fold: int, batch: Batch) -> Generative:
    return Generative.observe(batch, schema, plans, missing)


def _evaluated(classes: Levels, estimates: dict[int, Estimate], fold: int, batch: Batch) -> Evaluation:
    estimate = estimates[fold]
    log_p = np.empty((batch.frame.rows, len(estimate.log_prior)))
    numbers = batch.first if batch.rows is None else batch.first + batch.rows
    estimate.joint(batch.frame, log_p, numbers)
    warn_of_impossible(_kernels.normalise(log_p, estimate.log_prior, True))
    predicted = OutOfFoldPredictions.of(np.arange(len(log_p)), log_p, estimate.evidence.classes, classes)
    codes = ClassIndex(classes).recode(batch.labels, batch.classes)
    return Evaluation.scored(classes, codes, np.exp(predicted.log_p), batch.weights, known=predicted.known)
