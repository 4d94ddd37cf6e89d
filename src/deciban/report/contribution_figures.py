"""Contributions of features, pairs and terms to the scores of a sample of rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from deciban.contributions import against_others
from deciban.data.batch import Frame
from deciban.evaluation.fitted_model import FittedModel
from deciban.linear.predictor import Predictor
from deciban.report.report_input import ReportInput, as_input, weights_of
from deciban.types import FloatArray

CELLS = 1 << 23  # contributions that are computed at a time
DOCUMENTS = 200  # rows with text that are explained at a time, since they have many terms
WIDE, FEWER = 2000, 200  # with more than WIDE features, only FEWER rows are explained


def explained(model: FittedModel, frame: Frame) -> tuple[list[str], FloatArray]:
    """Names and (n, parts, K) nats of the parts of `explain`, the prior first.

    For a regression K is 1, and the parts sum to η.
    """
    if isinstance(model.scorer_, Predictor) and not model.calibrations_:
        contributions = model.scorer_.contributions(frame)
        return [line.name for line in contributions.lines], contributions.nats
    explanation = model.explain(as_input(frame))
    return list(explanation.names), explanation.nats


@dataclass(frozen=True)
class ContributionFigures:
    """Contributions to the scores of some rows."""

    means: dict[str, float]  # mean |decibans| of each part except the prior
    columns: dict[int, FloatArray]  # (n, K) decibans of each feature that is shown as a mean
    rows: int
    weights: FloatArray  # (n)


def contribution_figures(model: FittedModel, data: ReportInput, averaged: Iterable[int]) -> ContributionFigures:
    """Mean contributions over the sample; those of the features `averaged` also row by row."""
    sample = data.sample
    width = len(data.schema.names)
    if width > WIDE:
        sample = sample.take(np.arange(min(FEWER, sample.frame.rows)))
    weights, classes = weights_of(sample), 1 if model.task == "regression" else len(model.classes_)
    step = max(1, CELLS // ((width + 1) * classes))
    if any(kind in ("text", "category") for kind in data.schema.kinds):
        step = min(step, DOCUMENTS)
    names = {str(data.schema.names[j]): j for j in averaged}
    sums, by_row = dict[str, float](), {j: list[FloatArray]() for j in names.values()}
    for start in range(0, sample.frame.rows, step):
        rows = slice(start, min(start + step, sample.frame.rows))
        titles, nats = explained(model, sample.frame.slice(rows.start, rows.stop))
        decibans = against_others(nats[:, 1:])
        with np.errstate(invalid="ignore"):
            absolute = weights[rows] @ np.abs(decibans).mean(axis=2)
        for i, name in enumerate(titles[1:]):
            sums[name] = sums.get(name, 0.0) + float(absolute[i])
            if name in names:
                by_row[names[name]].append(decibans[:, i])
    means = {name: total / float(weights.sum()) for name, total in sums.items()}
    columns = {j: np.concatenate(parts) for j, parts in by_row.items() if parts}
    return ContributionFigures(means, columns, sample.frame.rows, weights)
