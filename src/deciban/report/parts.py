"""Parts of explanations: what each column, pair and term says of some rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.batch import Frame
from deciban.contributions import against_others
from deciban.report.rows import Given, given, gives_numbers, weights_of
from deciban.types import FloatArray

CELLS = 1 << 23  # numbers that are explained at a time
DOCUMENTS = 200  # that are explained at a time: their terms are many
WIDE, FEWER = 2000, 200  # columns from which on only so many rows are explained


def explained(model: Any, frame: Frame) -> tuple[list[str], FloatArray]:
    """Names, and (n, parts, K) nats, of which the first part is the prior: those of `explain`.

    For a GLM with a number for a response K is 1, and the parts are those of η.
    """
    if hasattr(model, "predictor_"):
        found = model.predictor_.contributions(frame)
        nats = found.nats
        if hasattr(model, "predict_proba") and nats.shape[2] < len(model.classes_):  # the first class is at 0
            nats = np.concatenate([np.zeros((*nats.shape[:2], 1)), nats], axis=2)
        return [line.name for line in found.lines], nats
    explanation = model.explain(given(frame))
    return list(explanation.names), explanation.nats


@dataclass(frozen=True)
class Told:
    """What the parts of explanations say of some rows."""

    means: dict[str, float]  # mean |decibans| of each part but the prior
    columns: dict[int, FloatArray]  # (n, K) decibans of columns, where they were kept
    rows: int
    weights: FloatArray  # (n)


def told(model: Any, of: Given, kept: Iterable[int]) -> Told:
    """Every part of the sample's explanations; those of the columns `kept` row by row."""
    sample = of.sample
    width = len(of.schema.names)
    if width > WIDE:
        sample = sample.take(np.arange(min(FEWER, sample.frame.rows)))
    weights, classes = weights_of(sample), 1 if gives_numbers(model) else len(model.classes_)
    step = max(1, CELLS // ((width + 1) * classes))
    if any(kind in ("text", "category") for kind in of.schema.kinds):
        step = min(step, DOCUMENTS)
    names = {str(of.schema.names[j]): j for j in kept}
    sums, found = dict[str, float](), {j: list[FloatArray]() for j in names.values()}
    for at in range(0, sample.frame.rows, step):
        some = slice(at, min(at + step, sample.frame.rows))
        titles, nats = explained(model, sample.frame.slice(some.start, some.stop))
        decibans = against_others(nats[:, 1:])
        with np.errstate(invalid="ignore"):
            absolute = weights[some] @ np.abs(decibans).mean(axis=2)
        for i, name in enumerate(titles[1:]):
            sums[name] = sums.get(name, 0.0) + float(absolute[i])
            if name in names:
                found[names[name]].append(decibans[:, i])
    means = {name: total / float(weights.sum()) for name, total in sums.items()}
    rows = {j: np.concatenate(parts) for j, parts in found.items() if parts}
    return Told(means, rows, sample.frame.rows, weights)
