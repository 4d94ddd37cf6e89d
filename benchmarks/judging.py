"""Leave-one-out beside predict_proba; cross-validation and ROC curves beside scikit-learn."""

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
    """Beside predict_proba of the same model; checked against refits without a row."""
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
    """The gap between the leave-one-out loss of a row and its loss under a model fitted without it."""
    others = np.arange(len(y)) != row
    one = slice(row, row + 1)
    refitted = deciban.evaluate(deciban.NaiveBayes().fit(x[others], y[others]), x[one], y[one])
    return gap(model.leave_one_out(x[one], y[one]).log_loss, refitted.log_loss)


@job("folds")
def folds(bench: Bench) -> None:
    """The same folds for both; the peer computes only accuracies, ours keeps every probability."""
    size, rng = bench.size(sizes.FOLDS), bench.rng()
    y = data.labels(rng, size)
    x = data.gaussian(rng, size, y)
    fold = stratified_folds(y.astype(np.int32), sizes.FOLD_COUNT, seed=0)
    same_folds = PredefinedSplit(fold)
    bench.compare(
        f"{sizes.FOLD_COUNT} folds, Gaussian naive Bayes, {size}, K={size.classes}",
        "scikit-learn cross_validate, GaussianNB",
        ours=lambda: _accuracies(deciban.cross_validate(deciban.NaiveBayes(), x, y, sizes.FOLD_COUNT, random_state=0)),
        peer=lambda: cross_validate(GaussianNB(var_smoothing=0), x, y, cv=same_folds)["test_score"],
        target=30,
        agreement=gap,
    )


def _accuracies(evaluation: deciban.Evaluation) -> Floats:
    return np.array([fold.accuracy for fold in evaluation.parts])


@job("roc")
def roc(bench: Bench) -> None:
    """Distinct scores of overlapping classes."""
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
    """The largest gap at the peer's thresholds (it drops collinear points), and between the areas."""
    at = np.searchsorted(-ours[2], -peer[2])
    return max(gap(ours[0][at], peer[0]), gap(ours[1][at], peer[1]), gap(ours[3], peer[3]))
