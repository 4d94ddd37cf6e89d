"""Choosing: smoothing, shrinkage and families by what leave-one-out says of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from deciban import _kernels, families
from deciban.batch import NUMERIC
from deciban.choices import Choice, Contest
from deciban.contributions import DECIBANS
from deciban.errors import INFINITE, BadCell, cell_error, hearing
from deciban.families.base import Context, Recalled
from deciban.generative import Block, Generative, log_prior
from deciban.late import late
from deciban.plans import AnyFamily, read
from deciban.schema import Schema
from deciban.sources import Sample
from deciban.statistics import Histogram, Statistic
from deciban.types import FloatArray, Labels, Level

optimize = late("scipy.optimize")

SMOOTHINGS = 10.0 ** np.arange(-3, 3.5, 0.5)  # then between the best one's neighbours
SHRINKAGES = (0.0, 1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 3e-2, 0.1, 0.3, 0.6, 1.0)  # then between the best one's neighbours
LEAST = float(np.log(np.finfo(np.float64).eps))  # of a log-probability, as in the log-loss


# Smoothing -----------------------------------------------------------------------------------------------------------


def choose_smoothing(evidence: Generative, *, reserve: bool, default: float = 1.0) -> Choice:
    """The α that makes Σ log p(x_i|c_i) largest, every row (of a Multinomial, every word) left out in its turn.

    All from the counts: no data are read. Of weighted rows, those left out have weight 1, or as much as there is.
    """
    columns = list(_remembered(evidence, reserve))
    rows = float(evidence.counts.value.sum())
    if not columns:
        return Choice(default, default, 0.0)

    def likelihood(alpha: float) -> float:
        return sum(_held_out(family, s, replace(context, smoothing=alpha), r) for family, s, context, r in columns)

    known = {alpha: likelihood(alpha) for alpha in SMOOTHINGS.tolist()}
    best = int(np.argmax(list(known.values())))
    low, high = np.log(SMOOTHINGS[[max(best - 1, 0), min(best + 1, len(SMOOTHINGS) - 1)]])
    found = optimize.minimize_scalar(lambda t: -likelihood(float(np.exp(t))), bounds=(low, high), method="bounded")
    known[float(np.exp(found.x))] = float(-found.fun)
    known.setdefault(default, likelihood(default))
    value = max(known, key=lambda alpha: known[alpha])
    return Choice(value, default, (known[value] - known[default]) * DECIBANS / rows)


def _remembered(evidence: Generative, reserve: bool) -> Iterator[tuple[AnyFamily, Statistic, Context, Recalled]]:
    """The columns (and joint blocks) that smoothing is for, with the cells that their counts remember."""
    for block in evidence.blocks:
        family, columns = block.plan.family, range(len(block.plan.columns))
        if not family.smoothed:
            continue
        names = [evidence.schema.names[j] for j in block.plan.columns]
        for group in [list(columns)] if family.joint else [[j] for j in columns]:
            statistic = block.statistic if family.joint else block.statistic.columns(group)
            recalled = family.recall(statistic)
            if recalled is not None and len(recalled.times):
                yield (
                    family,
                    statistic,
                    Context(evidence.classes, tuple(names[j] for j in group), 1.0, reserve),
                    recalled,
                )


def _held_out(family: AnyFamily, statistic: Statistic, context: Context, recalled: Recalled) -> float:
    """Σ log p(x|c) of what a statistic remembers, each left out of it in its turn."""
    out = np.zeros((len(recalled.labels), len(context.classes)))
    weights = None if (recalled.times >= 1).all() else np.minimum(recalled.times, 1.0)
    params = family.estimate(statistic, context)
    family.leave_one_out(statistic, params, context, recalled.values, recalled.labels, weights, out)
    own = out[np.arange(len(out)), recalled.labels]
    return float((recalled.times * np.maximum(own, LEAST)).sum())


# Shrinkage -----------------------------------------------------------------------------------------------------------


def choose_shrinkages(evidence: Generative, sample: Sample) -> dict[frozenset[Level], Choice]:
    """For each block that leaves its shrinkage to be chosen the best, by the rows that it was collected from."""
    blocks = [block for block in evidence.blocks if leaves_shrinkage(block.plan.family)]
    place = {label: i for i, label in enumerate(evidence.classes)}
    index = np.array([place.get(label, -1) for label in sample.labels.classes], dtype=np.int32)
    return {columns_of(block, evidence): _block_shrinkage(evidence, block, sample, index) for block in blocks}


def columns_of(block: Block, evidence: Generative) -> frozenset[Level]:
    """What tells a block of one model from the others, in any order."""
    return frozenset(evidence.schema.names[j] for j in block.plan.columns)


def leaves_shrinkage(family: AnyFamily) -> bool:
    """Whether a family leaves its shrinkage to be chosen."""
    return getattr(family, "shrinkage", None) == "auto"


def _block_shrinkage(evidence: Generative, block: Block, sample: Sample, index: Labels) -> Choice:
    """The s that makes Σ log p(c_i|x_i) of this block alone largest, every row left out in its turn; against none.

    Where the covariance is singular without, none is nearly none (1e-8).

    The rows are read once for every s that is tried.
    """
    family = block.plan.family
    context = Context(evidence.classes, tuple(evidence.schema.names[j] for j in block.plan.columns))
    places = evidence.schema.places(sample.frame)
    parts = []
    for batch in sample.batches(converts=True):
        values, labels = read(block.plan, batch.frame, places, None, evidence.missing), index[batch.labels]
        parts.append((values, labels, batch.weights, _priors(evidence.counts.value, labels, batch.weights)))
    known: dict[float, float] = {}

    def likelihood(s: float) -> float:
        if s not in known:
            with_s = replace(context, shrinkage=s)
            params, total = family.estimate(block.statistic, with_s), 0.0
            for values, labels, weights, prior in parts:
                own = _foretold(family, block.statistic, params, with_s, (values, labels, weights), prior)
                total += float((own if weights is None else own * weights).sum())
            known[s] = total
        return known[s]

    with hearing():  # a covariance that is singular until it is shrunk
        none = family.estimate(block.statistic, context)
        tried = SHRINKAGES if getattr(none, "status", "ok") == "ok" else SHRINKAGES[1:]
        best = int(np.argmax([likelihood(s) for s in tried]))
        low, high = np.log([max(tried[max(best - 1, 0)], 1e-10), tried[min(best + 1, len(tried) - 1)]])
        optimize.minimize_scalar(
            lambda t: -likelihood(float(np.exp(t))), bounds=(low, high), method="bounded", options={"xatol": 0.02}
        )
    value = max(known, key=lambda s: known[s])
    rows = float(evidence.counts.value.sum())
    return Choice(value, tried[0], (known[value] - known[tried[0]]) * DECIBANS / rows)


def _foretold(
    family: AnyFamily,
    statistic: Statistic,
    params: Any,
    context: Context,
    rows: tuple[Any, Labels, FloatArray | None],
    prior: FloatArray,
) -> FloatArray:
    """(n) log p(c_i|x_i) of each row, by one block that has not learned it."""
    values, labels, weights = rows
    out = prior.copy()
    family.leave_one_out(statistic, params, context, values, labels, weights, out)
    _kernels.normalise(out, np.zeros(out.shape[1]), True)
    own: FloatArray = np.maximum(out[np.arange(len(labels)), labels], LEAST)
    return own


def _priors(counts: FloatArray, labels: Labels, weights: FloatArray | None) -> FloatArray:
    """(n, K) log p(c) of each row, without it."""
    left = np.broadcast_to(counts, (len(labels), len(counts))).copy()
    left[np.arange(len(labels)), labels] -= 1.0 if weights is None else weights
    with np.errstate(invalid="ignore"):
        prior = log_prior(np.maximum(left, 0.0), tuple(range(len(counts))), "empirical")
    return np.where(left.sum(axis=1, keepdims=True) > 0, prior, 0.0)  # without the only row all classes are alike


# Families ------------------------------------------------------------------------------------------------------------


def hold_contests(schema: Schema, sample: Sample) -> tuple[Contest, ...]:
    """One for each column of numbers."""
    places = schema.places(sample.frame)
    numbers = [j for j, kind in enumerate(schema.kinds) if kind in NUMERIC]
    rows = np.arange(sample.frame.rows) if sample.weights is None else np.flatnonzero(sample.weights)
    labels = sample.labels.codes[rows]
    weights = None if sample.weights is None else sample.weights[rows]
    found = []
    for j in numbers:
        values = sample.frame.numbers([places[j]])[:, 0].astype(np.float64)[rows]
        infinite = np.isinf(values)
        if infinite.any():
            row = int(rows[np.argmax(infinite)])
            raise cell_error(schema.names[j], row, sample.frame.cell(row, places[j]), INFINITE)
        found.append(contest(schema.names[j], values, labels, weights, len(sample.labels.classes)))
    return tuple(found)


def candidates(values: FloatArray) -> tuple[AnyFamily, ...]:
    """The families that a column of numbers might be of, the simplest first."""
    seen = values[~np.isnan(values)]
    if not len(seen):
        return (families.Gaussian(),)
    if np.isin(seen, (0.0, 1.0)).all():
        return (families.Bernoulli(),)
    found: list[AnyFamily] = [families.Gaussian()]
    if (seen > 0).all():
        found.append(families.Exponential())
    if (seen >= 0).all() and (seen == np.floor(seen)).all():
        found.append(families.Poisson())
    return (*found, families.Binned())


def contest(column: Level, values: FloatArray, labels: Labels, weights: FloatArray | None, classes: int) -> Contest:
    """Families against each other on one column (n) of numbers: which makes Σ log p(c_i|x_i) largest?

    It is the class that has to be foretold. Densities of x would not do: the mass of a bin, that of a whole number and
    a density per unit do not compare. While the column has few different values, its histogram stands in for the rows,
    which are then not read again.
    """
    there = ~np.isnan(values)
    company = np.bincount(labels, minlength=classes)[labels] > 1  # the only row of a class foretells nothing
    kept = there & company
    x, y, w = values[kept, np.newaxis], labels[kept], None if weights is None else weights[kept]
    possible = candidates(values[there])
    if len(possible) < 2 or not len(y):
        return Contest(column, dict.fromkeys(possible, 0.0))
    times = w if w is not None else np.ones(len(y))
    whole = x, y, w
    if w is None:
        histogram = Histogram.of(x, y, None, classes)
        if not histogram.levels.any():
            x, y, times = histogram.occupied(0)
            x = x[:, np.newaxis]
    context = Context(tuple(range(classes)), (column,))
    prior = _priors(np.bincount(whole[1], w, minlength=classes).astype(np.float64), y, w)
    found = {}
    for family in possible:
        try:
            statistic = family.collect(*whole, classes)
        except BadCell:  # a number too large to be squared, say
            continue
        own = _foretold(family, statistic, family.estimate(statistic, context), context, (x, y, w), prior)
        found[family] = float(np.average(own, weights=times)) * DECIBANS
    return Contest(column, found or {families.Gaussian(): 0.0})  # whose fit says what is wrong, and where
