"""EvidenceClassifier beside NaiveBayes: time on many rows (benchmarks/accuracy.py compares their accuracy)."""

from __future__ import annotations

from functools import partial
from statistics import median

import deciban
from benchmarks import data, sizes
from benchmarks.harness import Bench, job, timed

PAIRS = 41  # timed runs of a prediction and an explanation


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
