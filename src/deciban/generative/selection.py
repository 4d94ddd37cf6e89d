"""Selection of smoothing, shrinkage and families, by leave-one-out predictions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deciban import _kernels, families
from deciban.contributions import DECIBANS
from deciban.data import Sample
from deciban.data.batch import NUMERIC
from deciban.data.class_index import ClassIndex
from deciban.data.matched_frame import MatchedFrame
from deciban.data.schema import Schema
from deciban.errors import INFINITE, BadCell, capture_warnings, require
from deciban.families.family import Context, Fitted
from deciban.families.labelled_values import LabelledValues
from deciban.generative.block import Block
from deciban.generative.estimate import log_prior
from deciban.generative.model import Generative
from deciban.generative.plan import AnyFamily
from deciban.lazy import lazy
from deciban.statistics import Histogram, Statistic
from deciban.types import FloatArray, Labels, Level

optimize = lazy("scipy.optimize")

SMOOTHINGS = 10.0 ** np.arange(-3, 3.5, 0.5)  # then any value between the neighbours of the best
SHRINKAGES = (0.0, 1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 3e-2, 0.1, 0.3, 0.6, 1.0)  # then any value in between, as above
LEAST_LOG_P = float(np.log(np.finfo(np.float64).eps))  # as in the log-loss


@dataclass(frozen=True)
class Selection:
    """A setting that was selected, and by how much it predicts better than its default."""

    value: float
    other: float  # the default
    decibans: float  # mean gain

    def check_fields(self) -> None:
        require(0 <= self.value <= 1, f"a shrinkage of {self.value}")


@dataclass(frozen=True)
class FamilyComparison:
    """How well each family predicts the classes from one feature alone."""

    column: Level
    decibans: dict[AnyFamily, float]  # leave-one-out mean of 10 log₁₀ p(c|x); nearer to 0 is better

    @property
    def winner(self) -> AnyFamily:
        """The best family; among equals the first, which is the simplest."""
        return max(self.decibans, key=lambda family: self.decibans[family])


def choose_smoothing(evidence: Generative, *, reserve: bool, default: float = 1.0) -> Selection:
    """The α that maximises Σ log p(x_i|c_i), where every row (for a Multinomial, every word) is left out.

    It is computed from the counts, without the rows. Weighted rows are left out by 1, or by their weight if it is less.
    """
    columns = list(_counted(evidence, reserve))
    rows = float(evidence.counts.value.sum())
    if not columns:
        return Selection(default, default, 0.0)

    def likelihood(alpha: float) -> float:
        return sum(_held_out(family, s, replace(context, smoothing=alpha), r) for family, s, context, r in columns)

    likelihoods = {alpha: likelihood(alpha) for alpha in SMOOTHINGS.tolist()}
    best = int(np.argmax(list(likelihoods.values())))
    low, high = np.log(SMOOTHINGS[[max(best - 1, 0), min(best + 1, len(SMOOTHINGS) - 1)]])
    result = optimize.minimize_scalar(lambda t: -likelihood(float(np.exp(t))), bounds=(low, high), method="bounded")
    likelihoods[float(np.exp(result.x))] = float(-result.fun)
    likelihoods.setdefault(default, likelihood(default))
    value = max(likelihoods, key=lambda alpha: likelihoods[alpha])
    return Selection(value, default, (likelihoods[value] - likelihoods[default]) * DECIBANS / rows)


def _counted(evidence: Generative, reserve: bool) -> Iterator[tuple[AnyFamily, Statistic, Context, LabelledValues]]:
    """The features (and joint blocks) with smoothing, and the rows that follow from their counts."""
    for block in evidence.blocks:
        family, columns, names = block.family, range(len(block.columns)), block.names
        if not family.smoothed:
            continue
        for group in [list(columns)] if family.joint else [[j] for j in columns]:
            statistic = block.statistic if family.joint else block.statistic.columns(group)
            recalled = family.recall(statistic)
            if recalled is not None and len(recalled):
                context = Context(evidence.classes, tuple(names[j] for j in group), 1.0, reserve)
                yield family, statistic, context, recalled


def _held_out(family: AnyFamily, statistic: Statistic, context: Context, recalled: LabelledValues) -> float:
    """Σ log p(x_i|c_i) of the rows that follow from a statistic, each left out."""
    out = np.zeros((len(recalled), len(context.classes)))
    times = recalled.weights
    assert times is not None
    rows = replace(recalled, weights=None if (times >= 1).all() else np.minimum(times, 1.0))
    family.leave_one_out(Fitted(statistic, family.estimate(statistic, context), context), rows, out)
    own = out[np.arange(len(out)), recalled.labels]
    return float((times * np.maximum(own, LEAST_LOG_P)).sum())


def choose_shrinkages(evidence: Generative, sample: Sample) -> dict[frozenset[Level], Selection]:
    """The best shrinkage of each block with shrinkage="auto", from training rows; by the features of the block."""
    blocks = [block for block in evidence.blocks if has_auto_shrinkage(block.family)]
    return {frozenset(block.names): _block_shrinkage(evidence, block, sample) for block in blocks}


def has_auto_shrinkage(family: AnyFamily) -> bool:
    return getattr(family, "shrinkage", None) == "auto"


def _block_shrinkage(evidence: Generative, block: Block, sample: Sample) -> Selection:
    """The s that maximises Σ log p(c_i|x_i) of this block alone, every row left out; compared with no shrinkage.

    A singular covariance is compared with almost none (1e-8) instead. The rows are read once for all s.
    """
    family, index = block.family, ClassIndex(evidence.classes)
    context = Context(evidence.classes, block.names)
    batches = []
    for batch in sample.batches(needs_small_batches=True):
        values = block.read(MatchedFrame.of(evidence.schema, batch))
        rows = LabelledValues(values, index.recode(batch.labels, batch.classes), batch.weights)
        batches.append((rows, _priors(evidence.counts.value, rows)))
    likelihoods: dict[float, float] = {}

    def likelihood(s: float) -> float:
        if s not in likelihoods:
            with_s = replace(context, shrinkage=s)
            fitted, total = Fitted(block.statistic, family.estimate(block.statistic, with_s), with_s), 0.0
            for rows, prior in batches:
                own = _log_p(family, fitted, rows, prior)
                total += float((own if rows.weights is None else own * rows.weights).sum())
            likelihoods[s] = total
        return likelihoods[s]

    with capture_warnings():  # a covariance may be singular until it is shrunk
        unshrunk = family.estimate(block.statistic, context)
        grid = SHRINKAGES if getattr(unshrunk, "status", "ok") == "ok" else SHRINKAGES[1:]
        best = int(np.argmax([likelihood(s) for s in grid]))
        low, high = np.log([max(grid[max(best - 1, 0)], 1e-10), grid[min(best + 1, len(grid) - 1)]])
        optimize.minimize_scalar(
            lambda t: -likelihood(float(np.exp(t))), bounds=(low, high), method="bounded", options={"xatol": 0.02}
        )
    value = max(likelihoods, key=lambda s: likelihoods[s])
    n = float(evidence.counts.value.sum())
    return Selection(value, grid[0], (likelihoods[value] - likelihoods[grid[0]]) * DECIBANS / n)


def _log_p(family: AnyFamily, fitted: Fitted[Any, Any], rows: LabelledValues, prior: FloatArray) -> FloatArray:
    """(n) log p(c_i|x_i) from one block, each row left out."""
    out = prior.copy()
    family.leave_one_out(fitted, rows, out)
    _kernels.normalise(out, np.zeros(out.shape[1]), True)
    return np.maximum(out[np.arange(len(rows)), rows.labels], LEAST_LOG_P)


def _priors(counts: FloatArray, rows: LabelledValues) -> FloatArray:
    """(n, K) log p(c), each row left out."""
    rest = np.broadcast_to(counts, (len(rows), len(counts))).copy()
    rest[np.arange(len(rows)), rows.labels] -= 1.0 if rows.weights is None else rows.weights
    with np.errstate(invalid="ignore"):
        prior = log_prior(np.maximum(rest, 0.0), tuple(range(len(counts))), "empirical")
    return np.where(rest.sum(axis=1, keepdims=True) > 0, prior, 0.0)  # uniform if there is no other row


def compare_families(schema: Schema, sample: Sample) -> tuple[FamilyComparison, ...]:
    matched = MatchedFrame(schema, sample.frame)
    rows = np.arange(sample.frame.rows) if sample.weights is None else np.flatnonzero(sample.weights)
    labels = sample.labels.codes[rows]
    weights = None if sample.weights is None else sample.weights[rows]
    comparisons = []
    for j in (j for j, kind in enumerate(schema.kinds) if kind in NUMERIC):
        values = sample.frame.numbers(matched.columns([j]))[:, 0].astype(np.float64)[rows]
        infinite = np.isinf(values)
        if infinite.any():
            raise matched.cell_error(j, int(rows[np.argmax(infinite)]), INFINITE)
        comparisons.append(compare_on(schema.names[j], values, labels, weights, len(sample.labels.classes)))
    return tuple(comparisons)


def candidates(values: FloatArray) -> tuple[AnyFamily, ...]:
    """The families that may fit a numeric feature, the simplest first."""
    known = values[~np.isnan(values)]
    if not len(known):
        return (families.Gaussian(),)
    if np.isin(known, (0.0, 1.0)).all():
        return (families.Bernoulli(),)
    possible: list[AnyFamily] = [families.Gaussian()]
    if (known > 0).all():
        possible.append(families.Exponential())
    if (known >= 0).all() and (known == np.floor(known)).all():
        possible.append(families.Poisson())
    return (*possible, families.Binned())


def compare_on(
    column: Level, values: FloatArray, labels: Labels, weights: FloatArray | None, classes: int
) -> FamilyComparison:
    """The leave-one-out mean of log p(c_i|x_i) of each family on one numeric feature (n).

    Families are compared by their predictions of the class, since p(x|c) is not comparable: the mass of a bin, of an
    integer, or a density. For a feature with few distinct values, its histogram replaces the rows.
    """
    present = ~np.isnan(values)
    shared = np.bincount(labels, minlength=classes)[labels] > 1  # without its only row a class is impossible
    used = present & shared
    x, y, w = values[used, np.newaxis], labels[used], None if weights is None else weights[used]
    possible = candidates(values[present])
    if len(possible) < 2 or not len(y):
        return FamilyComparison(column, dict.fromkeys(possible, 0.0))
    times = w if w is not None else np.ones(len(y))
    all_rows = x, y, w
    if w is None:
        histogram = Histogram.of(x, y, None, classes)
        if not histogram.levels.any():
            x, y, times = histogram.occupied(0)
            x = x[:, np.newaxis]
    context = Context(tuple(range(classes)), (column,))
    distinct = LabelledValues(x, y, w)
    prior = _priors(np.bincount(all_rows[1], w, minlength=classes).astype(np.float64), distinct)
    decibans = {}
    for family in possible:
        try:
            statistic = family.collect(*all_rows, classes)
        except BadCell:  # such as a number too large to be squared
            continue
        own = _log_p(family, Fitted(statistic, family.estimate(statistic, context), context), distinct, prior)
        decibans[family] = float(np.average(own, weights=times)) * DECIBANS
    return FamilyComparison(column, decibans or {families.Gaussian(): 0.0})  # the fit of a Gaussian names the bad cell
