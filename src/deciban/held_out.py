"""Held out: every row scored by what was learned from the others, from the statistics and without refits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.batch import MISSING, UNSEEN, Batch, Frame, Place
from deciban.errors import BadCell, DecibanError, NegativeEvidence, cell_error, hearing, warn_of_impossible
from deciban.generative import Block, ClassPrior, Estimate, Generative, Settings, log_prior, named_cell
from deciban.plans import Missing, Plan, is_sparse
from deciban.schema import Schema
from deciban.sources import Sample
from deciban.sources.labels import Encoded
from deciban.statistics import Counts, Histogram, Scatter
from deciban.types import FloatArray, IntArray, Labels, Level, Levels

CELLS = 1 << 22  # of a fold, taken and scored at a time


@dataclass(frozen=True)
class Judged:
    """Rows, and what was said of them."""

    labels: Labels  # (n) places in the classes that were learned
    proba: FloatArray  # (n, K)
    weights: FloatArray | None  # (n)


def leave_one_out(estimate: Estimate, batch: Batch) -> Judged:
    """Rows that were learned, each judged by what was learned from all the others."""
    return Judged(*_left_out(estimate, batch), batch.weights)


def in_small_runs(estimate: Estimate, frame: Frame) -> bool:
    """The arithmetic of the row that is left out needs arrays of the size of a batch of dense rows."""
    return not is_sparse(frame) or estimate.converts(frame)


def _left_out(estimate: Estimate, batch: Batch) -> tuple[Labels, FloatArray]:
    """(n) the places of the rows' classes, and (n, K) p(c|x_i) from all rows but row i, for rows that were learned.

    A row that is the only one of its class leaves none of it behind: the class is then impossible.
    """
    evidence = estimate.evidence
    labels = _places(batch, evidence)
    priors, case, alone = _priors(evidence, batch, labels, estimate.settings.class_prior)
    out = np.take(priors, case, axis=0)
    _add_blocks(estimate, batch, labels, out)
    of_alone = np.empty((len(alone), len(evidence.classes)))
    for a, i in enumerate(alone.tolist()):
        out[i], of_alone[a] = _without_class(estimate, batch, i)
    if not np.isfinite(out.sum()):
        # where a row is impossible under every class the class prior answers, as in a prediction
        impossible = np.asarray(np.isneginf(out).all(axis=1))
        out[impossible] = priors[case[impossible]]
        out[alone] = np.where(impossible[alone, np.newaxis], of_alone, out[alone])
    _kernels.normalise(out, estimate.log_prior, False)
    return labels, out


def _priors(
    evidence: Generative, batch: Batch, labels: Labels, class_prior: ClassPrior
) -> tuple[FloatArray, IntArray, IntArray]:
    """(m, K) log p(c) without each kind of row, (n) the kind of each row, and the rows alone in their class."""
    alike = batch.weights is None  # then rows of one class are one case
    cases = np.arange(len(evidence.classes)) if alike else labels
    counts = np.broadcast_to(evidence.counts.value, (len(cases), len(evidence.classes))).copy()
    left = evidence.counts.less(1.0 if batch.weights is None else batch.weights, cases)
    counts[np.arange(len(cases)), cases] = left
    case = labels.astype(np.intp) if alike else np.arange(len(labels))
    if (left < 0).any() and (left[case] < 0).any():
        raise _never_learned(batch, int(np.argmax(left[case] < 0)))
    with np.errstate(invalid="ignore"):  # a class that these rows do not have may be below 0
        priors = log_prior(counts, evidence.classes, class_prior)
    return priors, case, np.flatnonzero(left[case] == 0) if (left == 0).any() else np.zeros(0, np.intp)


def _add_blocks(estimate: Estimate, batch: Batch, labels: Labels, out: FloatArray) -> None:
    evidence = estimate.evidence
    places = evidence.schema.places(batch.frame)
    numbers = batch.first if batch.rows is None else batch.first + batch.rows
    for block, params, context in zip(evidence.blocks, estimate.params, estimate.contexts, strict=True):
        try:
            values = estimate.read(block, batch.frame, places, numbers)
            family = block.plan.family
            family.check(values)
            require_learned(block, values, labels, batch)
            if estimate.settings.unseen == "error":
                _refuse_once(block, values, batch, places, evidence)
            family.leave_one_out(block.statistic, params, context, values, labels, batch.weights, out)
        except BadCell as bad:
            row = batch.row_number(bad.row)
            raise named_cell(bad, block.plan, evidence.schema, places, batch.frame, row) from None


def require_learned(block: Block, values: Any, labels: Labels, batch: Batch) -> None:
    """Where the counts remember every cell they can tell that a row was never learned. Sums cannot."""
    statistic = block.statistic
    if isinstance(statistic, Counts):
        for j, column in enumerate(values.codes.T):
            if (column == UNSEEN).any():
                raise _never_learned(batch, int(np.argmax(column == UNSEEN)))
            rows = np.flatnonzero(column != MISSING)
            weight = 1.0 if batch.weights is None else batch.weights[rows]
            bad = statistic.table.less(weight, labels[rows], statistic.offsets[j] + column[rows]) < 0
            if bad.any():
                raise _never_learned(batch, int(rows[np.argmax(bad)]))
    elif isinstance(statistic, Histogram):
        for j, column in enumerate(values.T):
            rows = np.flatnonzero(~np.isnan(column))
            place, known = statistic.place(j, column[rows].astype(np.float64))
            weight = 1.0 if batch.weights is None else batch.weights[rows]
            if not known.all():
                raise _never_learned(batch, int(rows[np.argmin(known)]))
            bad = statistic.table(j).less(weight, labels[rows], place) < 0
            if bad.any():
                raise _never_learned(batch, int(rows[np.argmax(bad)]))


def _refuse_once(block: Block, values: Any, batch: Batch, places: Sequence[Place], evidence: Generative) -> None:
    """A value that one row alone has is unseen where that row is left out."""
    if not isinstance(block.statistic, Counts):
        return
    held = block.statistic.table.total()
    for j, column in enumerate(values.codes.T):
        rows = np.flatnonzero(column >= 0)
        weight = 1.0 if batch.weights is None else batch.weights[rows]
        once = rows[held.less(weight, block.statistic.offsets[j] + column[rows]) == 0]
        if len(once):
            i, owner = int(once[0]), block.plan.columns[j]
            value = batch.frame.cell(i, places[owner])
            problem = "is in this row only, so it is unseen when the row is left out: use unseen='skip' or 'reserve'"
            raise cell_error(evidence.schema.all_names[owner], batch.row_number(i), value, problem)


def _without_class(estimate: Estimate, batch: Batch, i: int) -> tuple[FloatArray, FloatArray]:
    """(K) joint log-probabilities and class prior when the only row of a class is gone: −inf for that class."""
    evidence = estimate.evidence
    row = batch.take(np.array([i]))
    rest = evidence.without(Generative.observe(row, evidence.schema, evidence.plans, evidence.missing))
    if not rest.classes:
        raise DecibanError("leave-one-out needs two rows at least: without its only row the model knows nothing")
    kept = [evidence.classes.index(label) for label in rest.classes]
    settings = estimate.settings
    if not isinstance(settings.class_prior, str):  # probabilities given for all classes: those that are left share them
        left = np.exp(estimate.log_prior)[kept]
        settings = replace(settings, class_prior=(left / left.sum()).tolist())
    with hearing():  # what all rows together deserve was said already
        anew = rest.estimate(settings)
    found = np.empty((1, len(kept)))
    anew.joint(row.frame, found, batch.row_number(i))
    joint, log_p = np.full((2, len(evidence.classes)), -np.inf)
    joint[kept], log_p[kept] = found[0], anew.log_prior
    return joint, log_p


def _places(batch: Batch, evidence: Generative) -> Labels:
    """(n) where each row's class stands among those that were learned."""
    place = {label: i for i, label in enumerate(evidence.classes)}
    known = np.array([place.get(label, -1) for label in batch.classes], dtype=np.int32)
    labels = known[batch.labels]
    if (labels < 0).any():
        raise _never_learned(batch, int(np.argmax(labels < 0)))
    return labels


def _never_learned(batch: Batch, i: int) -> NegativeEvidence:
    label = batch.classes[batch.labels[i]]
    return NegativeEvidence(
        f"row {batch.row_number(i)} of class {label!r} was never learned: give rows of the fit, with their weights; "
        "to judge other rows use evaluate; to fit weights by others, refit_weights(X, y, held_out=True)"
    )


# Folds ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Foretold:
    """What was said of the rows of one fold by what was learned from the others."""

    rows: IntArray  # (m) their places
    log_p: FloatArray  # (m, K) log p(c|x)
    known: NDArray[np.bool_]  # (K) the classes that have rows in the others

    @classmethod
    def of(cls, rows: IntArray, log_p: FloatArray, known: Levels, classes: Levels) -> Foretold:
        """With columns in the order of `classes`, of log-probabilities in the order of those that are known."""
        if known == classes:
            return cls(rows, log_p, np.ones(len(classes), np.bool_))
        columns = [classes.index(label) for label in known]
        out = np.full((len(log_p), len(classes)), -np.inf)
        out[:, columns] = log_p
        return cls(rows, out, np.isin(np.arange(len(classes)), columns))


def rows_of_folds(fold: IntArray) -> list[IntArray]:
    """The rows of each fold, in order.

    >>> [rows.tolist() for rows in rows_of_folds(np.array([1, 0, 1]))]
    [[1], [0, 2]]
    """
    short = fold.astype(np.int16) if fold.max() < 1 << 15 else fold  # which are sorted by radix
    order = np.argsort(short, kind="stable")
    return np.split(order, np.cumsum(np.bincount(fold))[:-1])


def out_of_fold(
    sample: Sample,
    fold: IntArray,
    schema: Schema,
    plans: tuple[Plan, ...],
    missing: Missing,
    settings: Callable[[Generative], Settings],
) -> list[Foretold] | None:
    """Every fold foretold by the others. The rows are collected once; then the folds are added up.

    None where some fold leaves a joint block without a whole row: what a fit does then needs a look at its rows.
    """
    folds = rows_of_folds(fold)
    rests = list(sums_of_others(_by_fold(sample, fold, folds, schema, plans, missing)))
    if any(map(lacks_whole_rows, rests)):
        return None
    found, impossible = [], 0
    for rows, rest in zip(folds, rests, strict=True):
        estimate = rest.estimate(settings(rest))
        log_p = np.empty((len(rows), len(rest.classes)))
        step = max(1, CELLS // max(1, len(schema.names)))
        for first in range(0, len(rows), step):
            some = log_p[first : first + step]
            estimate.joint(sample.frame.take(rows[first : first + step]), some, rows[first:])
            impossible += _kernels.normalise(some, estimate.log_prior, True)
        found.append(Foretold.of(rows, log_p, rest.classes, sample.labels.classes))
    warn_of_impossible(impossible)
    return found


def lacks_whole_rows(evidence: Generative) -> bool:
    """Whether some joint block has not seen a single row without holes."""
    scatters = [block.statistic for block in evidence.blocks if isinstance(block.statistic, Scatter)]
    return any(not scatter.count.value.any() for scatter in scatters)


def _by_fold(
    sample: Sample, fold: IntArray, folds: list[IntArray], schema: Schema, plans: tuple[Plan, ...], missing: Missing
) -> list[Generative]:
    """The evidence of each fold."""
    if not all(plan.family.apart for plan in plans):
        return [Generative.collect(sample.take(rows), schema, plans, missing) for rows in folds]
    # as if each class of each fold were a class of its own: one pass, and no row is moved
    classes = sample.labels.classes
    codes = (fold * len(classes) + sample.labels.codes).astype(np.int32)
    every = Encoded(codes, tuple(range(len(folds) * len(classes))))
    return _split(Generative.collect(replace(sample, labels=every), schema, plans, missing), len(folds), classes)


def _split(evidence: Generative, parts: int, classes: Levels) -> list[Generative]:
    """Evidence of classes 0 … parts·K − 1 as the evidence of each part: class i is class i mod K of part i // K."""
    found = []
    for part in range(parts):
        kept = [i for i, code in enumerate(evidence.classes) if _place(code) // len(classes) == part]
        mine = tuple(classes[_place(evidence.classes[i]) % len(classes)] for i in kept)
        blocks = tuple(Block(block.plan, block.statistic.take(kept)) for block in evidence.blocks)
        found.append(Generative(evidence.schema, mine, evidence.counts.take(kept), blocks, evidence.missing))
    return found


def _place(code: Level) -> int:
    assert isinstance(code, int)
    return code


def sums_of_others(parts: Sequence[Generative]) -> Iterator[Generative]:
    """For each part the sum of all the others: what is learned without it, also where nothing can be subtracted."""
    after: list[Generative] = [parts[-1]]  # the sums of the last parts, the longest last
    for part in reversed(parts[1:-1]):
        after.append(part + after[-1])
    yield after.pop()
    before = parts[0]
    for part in parts[1:-1]:
        yield before + after.pop()
        before = before + part
    yield before
