"""The time of EvidenceClassifier beside NaiveBayes, boosting and a pipeline (benchmarks/accuracy.py: accuracy)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import deciban
from benchmarks import accuracy, data, sizes
from benchmarks.harness import Bench, job, timed

PAIRS = 41  # timed runs of a prediction and an explanation
OURS, LIGHTGBM, HIST, PIPELINE = "EvidenceClassifier", "LightGBM", "HistGradientBoosting", accuracy.LOGISTIC
MODELS = {model.title: model for model in accuracy.MODELS}
MOST_EXCESS = 0.01  # of our log-loss over a peer's, for a row to count


@job("explain")
def explain(bench: Bench) -> None:
    """The time of an explanation / that of a prediction, for one row and for a thousand."""
    size = bench.size(sizes.EXPLAIN)
    frame = data.table(bench.rng(), size)
    for model in (deciban.NaiveBayes(), deciban.EvidenceClassifier()):
        model.fit(frame, "label")
        for count in (1, 1000):
            rows = frame.drop(columns="label")[:count]
            works = (partial(model.predict_proba, rows), partial(model.explain, rows))
            pairs = [[timed(work)[0] for work in works] for _ in range(PAIRS)]  # in turn, so that load slows both
            ratio = median(explained / predicted for predicted, explained in pairs[1:])  # the first builds tables
            title = f"{type(model).__name__} explain {count:,} rows, predict_proba's time"
            bench.limit(title, ratio, sizes.EXPLAIN_TIMES, "×")


@job("evidence")
def evidence(bench: Bench) -> None:
    """The time / that of NaiveBayes on a table of numbers and text, to fit and to predict."""
    size = bench.size(sizes.EVIDENCE)
    frame = data.table(bench.rng(), size)
    plain, weighted = deciban.NaiveBayes(), deciban.EvidenceClassifier()
    rows = frame.drop(columns="label")
    for method, works in {
        "fit": (lambda: plain.fit(frame, "label"), lambda: weighted.fit(frame, "label")),
        "predict_proba": (lambda: plain.predict_proba(rows), lambda: weighted.predict_proba(rows)),
    }.items():
        seconds = [min(timed(work)[0] for _ in range(bench.runs)) for work in works]
        print(f"  {method}: NaiveBayes {seconds[0]:.2f} s, EvidenceClassifier {seconds[1]:.2f} s")
        bench.limit(
            f"EvidenceClassifier {method} {size}, NaiveBayes's time", seconds[1] / seconds[0], sizes.EVIDENCE_TIMES, "×"
        )


@job("beside-boosting")
def beside_boosting(bench: Bench) -> None:
    """Fit and prediction beside LightGBM, and beside HistGradientBoosting for many rows, all with their defaults."""
    for size, peers in ((sizes.BOOSTED, {LIGHTGBM: 1.0}), (sizes.MANY_BOOSTED, {LIGHTGBM: 1.5, HIST: 2.0})):
        size = bench.size(size)
        frame = data.table(bench.rng(), replace(size, rows=size.rows + sizes.JUDGED))
        rows, labels = frame.drop(columns="label"), frame["label"].to_numpy()
        for peer, target in peers.items():
            _compare_fits(bench, f"fit {size} mixed", peer, rows, labels, size.rows, target)
    size = bench.size(sizes.BOOSTED_PREDICT)
    train = rows[: bench.size(sizes.BOOSTED).rows], labels[: bench.size(sizes.BOOSTED).rows]
    ours, peer = (MODELS[title].make().fit(*train) for title in (OURS, LIGHTGBM))
    new, truth = rows[-size.rows :], labels[-size.rows :]
    bench.compare(
        f"{OURS} predict_proba {size} mixed",
        LIGHTGBM,
        ours=lambda: ours.predict_proba(new),
        peer=lambda: peer.predict_proba(new),
        target=1.5,
        agreement=lambda *proba: _excess(truth, *proba),
        within=MOST_EXCESS,
    )


@job("evidence-tables")
def evidence_tables(bench: Bench) -> None:
    """Fit of all folds of the real tables, of letter, and predictions of one row of adult."""
    if not os.environ.get("DECIBAN_DATA"):
        print("  skipped: set DECIBAN_DATA to the folder that holds tables/*.csv")
        return
    tables = {name: accuracy.read(name) for name in accuracy.names_of_tables()}
    letter, adult = (tables[name].shuffled() for name in ("letter", "adult"))
    count = len(letter.labels) * 4 // 5
    _compare_fits(bench, "fit letter", LIGHTGBM, letter.rows, letter.labels, count, 1.0)
    models = [MODELS[title].make().fit(adult.rows, adult.labels) for title in (OURS, PIPELINE)]
    one = [adult.rows[i : i + 1] for i in range(sizes.SINGLE_ROWS)]
    seconds = [[_seconds(partial(model.predict_proba, row)) for row in one] for model in models]
    ours, peer = (median(each) for each in seconds)
    title = f"{OURS} predict_proba of one row of adult, median, time of {PIPELINE}"
    bench.limit(title, ours / peer, 0.5, "×")
    totals = [
        sum(accuracy.evaluate_model(MODELS[title], table).seconds for table in tables.values())
        for title in (OURS, PIPELINE)
    ]
    bench.limit(f"{OURS} all folds of {len(tables)} tables, time of {PIPELINE}", totals[0] / totals[1], 2.0, "×")


def _seconds(work: Callable[[], object]) -> float:
    """Without the rest of `timed`, for work of milliseconds."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _compare_fits(
    bench: Bench, title: str, against: str, rows: pd.DataFrame, labels: NDArray[Any], count: int, target: float
) -> None:
    """Fits to the first rows; the agreement is that of the log-loss on the others."""
    train, new, truth = (rows[:count], labels[:count]), rows[count:], labels[count:]
    bench.compare(
        f"{OURS} {title}",
        against,
        ours=lambda: MODELS[OURS].make().fit(*train),
        peer=lambda: MODELS[against].make().fit(*train),
        target=target,
        agreement=lambda *fitted: _excess(truth, *(model.predict_proba(new) for model in fitted)),
        within=MOST_EXCESS,
    )


def _excess(labels: NDArray[Any], ours: data.Floats, peer: data.Floats) -> float:
    """How far our log-loss is above the peer's, or 0."""
    codes = np.unique(labels, return_inverse=True)[1]
    losses = [accuracy.measure(codes, proba, 0.0).log_loss for proba in (ours, peer)]
    return max(0.0, losses[0] - losses[1])
