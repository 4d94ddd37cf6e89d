"""Leave-one-out and out-of-fold predictions, from the statistics and without refits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deciban import _kernels
from deciban.data import Sample
from deciban.data.batch import MISSING, UNSEEN, Batch, Frame
from deciban.data.class_index import ClassIndex
from deciban.data.labels import Encoded
from deciban.data.matched_frame import MatchedFrame
from deciban.data.schema import Schema
from deciban.errors import DecibanError, NegativeEvidence, capture_warnings, warn_of_impossible
from deciban.families.family import Fitted
from deciban.families.labelled_values import LabelledValues
from deciban.generative.block import Block
from deciban.generative.estimate import ClassPrior, Estimate, Settings, log_prior
from deciban.generative.model import Generative
from deciban.generative.plan import Missing, Plan, is_sparse
from deciban.statistics import Counts, Histogram, Scatter
from deciban.types import BoolArray, FloatArray, IntArray, Labels, Levels

MOST_CELLS = 1 << 22  # of a fold that are scored at a time


@dataclass(frozen=True)
class HeldOutPredictions:
    """Training rows, and their probabilities from the evidence of the other rows."""

    labels: Labels  # (n) positions in the classes of the model
    proba: FloatArray  # (n, K)
    weights: FloatArray | None  # (n)


def leave_one_out(estimate: Estimate, batch: Batch) -> HeldOutPredictions:
    """p(c|x_i) of training rows, each from all rows except row i.

    Without its only row, a class is impossible.
    """
    evidence = estimate.evidence
    labels = _training_labels(batch, evidence)
    priors, case, singles = _priors(evidence, batch, labels, estimate.settings.class_prior)
    out = np.take(priors, case, axis=0)
    _add_blocks(estimate, batch, labels, out)
    prior_of_single = np.empty((len(singles), len(evidence.classes)))
    for s, i in enumerate(singles.tolist()):
        out[i], prior_of_single[s] = _without_class(estimate, batch, i)
    if not np.isfinite(out.sum()):
        # a row that is impossible under every class gets the class prior, as in a prediction
        impossible = np.asarray(np.isneginf(out).all(axis=1))
        out[impossible] = priors[case[impossible]]
        out[singles] = np.where(impossible[singles, np.newaxis], prior_of_single, out[singles])
    _kernels.normalise(out, estimate.log_prior, False)
    return HeldOutPredictions(labels, out, batch.weights)


def left_out_in_small_batches(estimate: Estimate, frame: Frame) -> bool:
    """Whether batches have to be small: leave-one-out makes arrays of the size of a batch of dense rows."""
    return not is_sparse(frame) or estimate.needs_small_batches(frame)


def _priors(
    evidence: Generative, batch: Batch, labels: Labels, class_prior: ClassPrior
) -> tuple[FloatArray, IntArray, IntArray]:
    """(m, K) log p(c) in each case of a row left out, (n) the case of each row, and the only rows of a class."""
    unweighted = batch.weights is None  # then rows of one class are one case
    cases = np.arange(len(evidence.classes)) if unweighted else labels
    counts = np.broadcast_to(evidence.counts.value, (len(cases), len(evidence.classes))).copy()
    rest = evidence.counts.subtract(1.0 if batch.weights is None else batch.weights, cases)
    counts[np.arange(len(cases)), cases] = rest
    case = labels.astype(np.intp) if unweighted else np.arange(len(labels))
    if (rest < 0).any() and (rest[case] < 0).any():
        raise _not_a_training_row(batch, int(np.argmax(rest[case] < 0)))
    with np.errstate(invalid="ignore"):  # a class without a row in this batch may be below 0
        priors = log_prior(counts, evidence.classes, class_prior)
    return priors, case, np.flatnonzero(rest[case] == 0) if (rest == 0).any() else np.zeros(0, np.intp)


def _add_blocks(estimate: Estimate, batch: Batch, labels: Labels, out: FloatArray) -> None:
    rows = MatchedFrame.of(estimate.evidence.schema, batch)
    for block, params, context in zip(estimate.evidence.blocks, estimate.params, estimate.contexts, strict=True):
        values = estimate.read(block, rows)
        with block.naming(rows):
            block.family.check(values)
            require_training_rows(block, values, labels, batch)
            if estimate.settings.unseen == "error":
                _forbid_single_levels(block, values, batch.weights, rows)
            fitted = Fitted(block.statistic, params, context)
            block.family.leave_one_out(fitted, LabelledValues(values, labels, batch.weights), out)


def require_training_rows(block: Block, values: Any, labels: Labels, batch: Batch) -> None:
    """Raises for rows that counts of values show not to be training rows; sums do not show it."""
    statistic = block.statistic
    if not isinstance(statistic, (Counts, Histogram)):
        return
    for j, column in enumerate((values.codes if isinstance(statistic, Counts) else values).T):
        if isinstance(statistic, Counts):
            rows = np.flatnonzero(column != MISSING)
            table, cells, known = statistic.table, statistic.offsets[j] + column[rows], column[rows] != UNSEEN
        else:
            rows = np.flatnonzero(~np.isnan(column))
            table, (cells, known) = statistic.table(j), statistic.cells_of(j, column[rows].astype(np.float64))
        if not known.all():
            raise _not_a_training_row(batch, int(rows[np.argmin(known)]))
        negative = table.subtract(1.0 if batch.weights is None else batch.weights[rows], labels[rows], cells) < 0
        if negative.any():
            raise _not_a_training_row(batch, int(rows[np.argmax(negative)]))


def _forbid_single_levels(block: Block, values: Any, weights: FloatArray | None, matched: MatchedFrame) -> None:
    """Raises for a level of a single row, which is unseen when that row is left out."""
    if not isinstance(block.statistic, Counts):
        return
    counts = block.statistic.table.total()
    for j, column in enumerate(values.codes.T):
        rows = np.flatnonzero(column >= 0)
        weight = 1.0 if weights is None else weights[rows]
        single = rows[counts.subtract(weight, block.statistic.offsets[j] + column[rows]) == 0]
        if len(single):
            problem = "is in this row only, so it is unseen when the row is left out: use unseen='skip' or 'reserve'"
            raise matched.cell_error(block.columns[j], int(single[0]), problem)


def _without_class(estimate: Estimate, batch: Batch, i: int) -> tuple[FloatArray, FloatArray]:
    """(K) joint log-probabilities and class prior without the only row of a class: −inf for that class."""
    evidence = estimate.evidence
    row = batch.take(np.array([i]))
    rest = evidence.without(Generative.observe(row, evidence.schema, evidence.plans, evidence.missing))
    if not rest.classes:
        raise DecibanError("leave-one-out needs at least two rows: without its only row nothing is left of the model")
    positions = ClassIndex(evidence.classes).positions(rest.classes)
    settings = estimate.settings
    if not isinstance(settings.class_prior, str):  # given probabilities: rescaled to the other classes
        p = np.exp(estimate.log_prior)[positions]
        settings = replace(settings, class_prior=(p / p.sum()).tolist())
    with capture_warnings():  # the fit has already warned
        refit = rest.estimate(settings)
    scores = np.empty((1, len(positions)))
    refit.joint(row.frame, scores, batch.row_number(i))
    joint, log_p = np.full((2, len(evidence.classes)), -np.inf)
    joint[positions], log_p[positions] = scores[0], refit.log_prior
    return joint, log_p


def _training_labels(batch: Batch, evidence: Generative) -> Labels:
    """(n) the position of each row's class."""
    labels = ClassIndex(evidence.classes).recode(batch.labels, batch.classes)
    if (labels < 0).any():
        raise _not_a_training_row(batch, int(np.argmax(labels < 0)))
    return labels


def _not_a_training_row(batch: Batch, i: int) -> NegativeEvidence:
    label = batch.classes[batch.labels[i]]
    return NegativeEvidence(
        f"row {batch.row_number(i)} of class {label!r} was never learned: give training rows, with their weights; for "
        "other rows use evaluate, or refit_weights(X, y, held_out=True) to fit weights to them"
    )


@dataclass(frozen=True)
class OutOfFoldPredictions:
    """The predictions for the rows of one fold from the evidence of the other folds."""

    rows: IntArray  # (m) their positions
    log_p: FloatArray  # (m, K) log p(c|x)
    known: BoolArray  # (K) whether a class has rows in the other folds

    @classmethod
    def of(cls, rows: IntArray, log_p: FloatArray, known: Levels, classes: Levels) -> OutOfFoldPredictions:
        """From log-probabilities of the known classes, with columns in the order of all `classes`."""
        if known == classes:
            return cls(rows, log_p, np.ones(len(classes), np.bool_))
        columns = ClassIndex(classes).positions(known)
        out = np.full((len(log_p), len(classes)), -np.inf)
        out[:, columns] = log_p
        return cls(rows, out, np.isin(np.arange(len(classes)), columns))


def rows_of_folds(fold: IntArray) -> list[IntArray]:
    """The rows of each fold, ascending.

    >>> [rows.tolist() for rows in rows_of_folds(np.array([1, 0, 1]))]
    [[1], [0, 2]]
    """
    short = fold.astype(np.int16) if fold.max() < 1 << 15 else fold  # numpy sorts int16 by radix
    order = np.argsort(short, kind="stable")
    return np.split(order, np.cumsum(np.bincount(fold))[:-1])


def out_of_fold(
    sample: Sample,
    fold: IntArray,
    schema: Schema,
    plans: tuple[Plan, ...],
    missing: Missing,
    settings: Callable[[Generative], Settings],
) -> list[OutOfFoldPredictions] | None:
    """The predictions for every fold from the others. Each row is collected once; then statistics of folds are added.

    None if a joint block has no complete row outside some fold: then each fold needs a fit of its own.
    """
    folds = rows_of_folds(fold)
    others = list(sums_of_others(_by_fold(sample, fold, folds, schema, plans, missing)))
    if any(map(lacks_complete_rows, others)):
        return None
    predictions, impossible = [], 0
    for rows, evidence in zip(folds, others, strict=True):
        estimate = evidence.estimate(settings(evidence))
        log_p = np.empty((len(rows), len(evidence.classes)))
        step = max(1, MOST_CELLS // max(1, len(schema.names)))
        for first in range(0, len(rows), step):
            scores = log_p[first : first + step]
            estimate.joint(sample.frame.take(rows[first : first + step]), scores, rows[first:])
            impossible += _kernels.normalise(scores, estimate.log_prior, True)
        predictions.append(OutOfFoldPredictions.of(rows, log_p, evidence.classes, sample.labels.classes))
    warn_of_impossible(impossible)
    return predictions


def lacks_complete_rows(evidence: Generative) -> bool:
    """Whether some joint block has seen no row without missing values."""
    scatters = [block.statistic for block in evidence.blocks if isinstance(block.statistic, Scatter)]
    return any(not scatter.count.value.any() for scatter in scatters)


def _by_fold(
    sample: Sample, fold: IntArray, folds: list[IntArray], schema: Schema, plans: tuple[Plan, ...], missing: Missing
) -> list[Generative]:
    if not all(plan.family.independent_classes for plan in plans):
        return [Generative.collect(sample.take(rows), schema, plans, missing) for rows in folds]
    # each class of each fold is a class of its own: one pass, and no row is moved
    classes = sample.labels.classes
    codes = (fold * len(classes) + sample.labels.codes).astype(np.int32)
    labels = Encoded(codes, tuple(range(len(folds) * len(classes))))
    return _split(Generative.collect(replace(sample, labels=labels), schema, plans, missing), len(folds), classes)


def _split(evidence: Generative, folds: int, classes: Levels) -> list[Generative]:
    """Evidence of classes 0 … folds·K − 1 as the evidence of each fold: class i is class i mod K of fold i // K."""
    fold_of, index = np.divmod(np.array(evidence.classes, np.intp), len(classes))
    positions = [np.flatnonzero(fold_of == fold) for fold in range(folds)]
    return [evidence.take_classes(part, tuple(classes[k] for k in index[part])) for part in positions]


def sums_of_others(parts: Sequence[Generative]) -> Iterator[Generative]:
    """For each part the sum of all others, without subtraction, which not every statistic has."""
    after: list[Generative] = [parts[-1]]  # sums of the last parts, the longest last
    for part in reversed(parts[1:-1]):
        after.append(part + after[-1])
    yield after.pop()
    before = parts[0]
    for part in parts[1:-1]:
        yield before + after.pop()
        before = before + part
    yield before
