"""Held out: every row scored by what was learned from the others, from the statistics and without refits."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from deciban.batch import Batch
from deciban.errors import BadCell, DecibanError, DecibanWarning, NegativeEvidence
from deciban.generative import ClassPrior, Estimate, Generative, log_prior, named_cell
from deciban.types import FloatArray, Labels


def leave_one_out(estimate: Estimate, batch: Batch, smoothing: float, class_prior: ClassPrior) -> FloatArray:
    """(n, K) log p(c) + log p(x_i|c), estimated from all rows but row i, for every row i of a batch that was learned.

    A row that is the only one of its class leaves none of it behind: the class is then impossible.
    """
    evidence = estimate.evidence
    labels = _places(batch, evidence)
    prior, alone = _priors(evidence, batch, labels, class_prior)
    out = prior.copy()
    _add_blocks(estimate, batch, labels, out)
    for i in np.flatnonzero(alone):
        out[i], prior[i] = _without_class(estimate, batch, int(i), smoothing, class_prior)
    if not np.isfinite(out.sum()):
        impossible = np.isneginf(out).all(axis=1)  # under every class: the class prior answers, as in a prediction
        out[impossible] = prior[impossible]
    return out


def _priors(
    evidence: Generative, batch: Batch, labels: Labels, class_prior: ClassPrior
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """(n, K) log p(c) without each row, and (n) whether it is the only row of its class."""
    alike = batch.weights is None  # then rows of one class are one case
    cases = np.arange(len(evidence.classes)) if alike else labels
    counts = np.broadcast_to(evidence.counts.value, (len(cases), len(evidence.classes))).copy()
    left = evidence.counts.less(1.0 if batch.weights is None else batch.weights, cases)
    counts[np.arange(len(cases)), cases] = left
    place = labels if alike else np.arange(len(labels))
    if (left[place] < 0).any():
        raise _never_learned(batch, int(np.argmax(left[place] < 0)))
    with np.errstate(invalid="ignore"):  # a class that these rows do not have may be below 0
        prior = log_prior(counts, evidence.classes, class_prior)
    return prior[place], left[place] == 0


def _add_blocks(estimate: Estimate, batch: Batch, labels: Labels, out: FloatArray) -> None:
    evidence = estimate.evidence
    places = evidence.schema.places(batch.frame)
    for block, params, context in zip(evidence.blocks, estimate.params, estimate.contexts, strict=True):
        try:
            values = estimate.read(block, batch.frame, places, batch.first)
            family = block.plan.family
            family.leave_one_out(block.statistic, params, context, values, labels, batch.weights, out)
        except BadCell as bad:
            row = batch.row_number(bad.row)
            raise named_cell(bad, block.plan, evidence.schema, places, batch.frame, row) from None


def _without_class(
    estimate: Estimate, batch: Batch, i: int, smoothing: float, class_prior: ClassPrior
) -> tuple[FloatArray, FloatArray]:
    """(K) joint log-probabilities and class prior when the only row of a class is gone: −inf for that class."""
    evidence = estimate.evidence
    row = batch.take(np.array([i]))
    plans = [block.plan for block in evidence.blocks]
    rest = evidence.without(Generative.observe(row, evidence.schema, plans, evidence.missing))
    if not rest.classes:
        raise DecibanError("leave-one-out needs two rows at least: without its only row the model knows nothing")
    kept = [evidence.classes.index(label) for label in rest.classes]
    prior: ClassPrior = class_prior
    if not isinstance(class_prior, str):  # probabilities given for all classes: those that are left share them
        left = np.exp(log_prior(evidence.counts.value, evidence.classes, class_prior))[kept]
        prior = (left / left.sum()).tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DecibanWarning)  # what all rows together deserve was said already
        anew = rest.estimate(smoothing, prior, estimate.unseen)
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
        f"row {batch.row_number(i)} of class {label!r} was never learned: leave_one_out takes the rows of the fit, "
        "with their weights; to judge other rows use evaluate"
    )
