"""Leave-one-out beside scoring; folds and ROC curves beside scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.model_selection import PredefinedSplit, cross_validate
from sklearn.naive_bayes import GaussianNB

import deciban
from benchmarks import data, sizes
from benchmarks.data import Floats, Ints
from benchmarks.harness import Bench, gap, job
from deciban.evaluation.cross_validation import stratified_folds


@job("leave-one-out")
def leave_one_out(bench: Bench) -> None:
    """Beside its own predict_proba; evaluated by models that are fitted without a row."""
    size, rng = bench.size(sizes.LEFT_OUT), bench.rng()
    y = data.labels(rng, size)
    x = data.gaussian(rng, size, y)
    model = deciban.NaiveBayes().fit(x, y)
    bench.compare(
        f"leave-one-out, Gaussian, {size}, K={size.classes}",
        "its own predict_proba",
        ours=lambda: model.leave_one_out(x, y),
        peer=lambda: model.predict_proba(x),
        target=1 / 3,
        agreement=lambda ours, _: max(_gap_to_a_refit(model, x, y, row) for row in range(5)),
        note="the ratio is the fraction of its speed",
    )


def _gap_to_a_refit(model: deciban.NaiveBayes, x: Floats, y: Ints, row: int) -> float:
    """The loss of one row, against that of a model which was fitted without it."""
    kept = np.arange(len(y)) != row
    one = slice(row, row + 1)
    refitted = deciban.evaluate(deciban.NaiveBayes().fit(x[kept], y[kept]), x[one], y[one])
    return gap(model.leave_one_out(x[one], y[one]).log_loss, refitted.log_loss)


@job("folds")
def folds(bench: Bench) -> None:
    """The same folds for both; the peer counts what is right, ours keeps every probability."""
    size, rng = bench.size(sizes.FOLDS), bench.rng()
    y = data.labels(rng, size)
    x = data.gaussian(rng, size, y)
    fold = stratified_folds(y.astype(np.int32), sizes.FOLD_COUNT, seed=0)
    dealt = PredefinedSplit(fold)
    bench.compare(
        f"{sizes.FOLD_COUNT} folds, Gaussian naive Bayes, {size}, K={size.classes}",
        "scikit-learn cross_validate, GaussianNB",
        ours=lambda: _accuracies(deciban.cross_validate(deciban.NaiveBayes(), x, y, sizes.FOLD_COUNT, random_state=0)),
        peer=lambda: cross_validate(GaussianNB(var_smoothing=0), x, y, cv=dealt)["test_score"],
        target=30,
        agreement=gap,
    )


def _accuracies(evaluation: deciban.Evaluation) -> Floats:
    return np.array([part.accuracy for part in evaluation.parts])


@job("roc")
def roc(bench: Bench) -> None:
    """Scores that all differ, of overlapping classes."""
    rows, rng = bench.size(sizes.SCORES).rows, bench.rng()
    y = rng.integers(2, size=rows)
    scores = rng.standard_normal(rows) + 0.8 * y
    bench.compare(
        f"ROC and AUC of {sizes.short(rows)} scores",
        "scikit-learn roc_curve, roc_auc_score",
        ours=lambda: _curve(deciban.Roc.of(y, scores)),
        peer=lambda: (*roc_curve(y, scores), roc_auc_score(y, scores)),
        target=2,
        agreement=_gap_of_curves,
    )


def _curve(roc: deciban.Roc) -> tuple[Any, ...]:
    return roc.false_positive_rate, roc.sensitivity, roc.thresholds, roc.auc


def _gap_of_curves(ours: tuple[Any, ...], peer: tuple[Any, ...]) -> float:
    """The peer leaves out points on straight lines: ours at its thresholds, and the areas."""
    place = np.searchsorted(-ours[2], -peer[2])
    return max(gap(ours[0][place], peer[0]), gap(ours[1][place], peer[1]), gap(ours[3], peer[3]))
