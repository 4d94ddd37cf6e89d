"""Weighed evidence on many rows, beside the plain sum of it. (benchmarks/accuracy.py tells what weighing is for.)"""

from __future__ import annotations

import deciban
from benchmarks import data, sizes
from benchmarks.harness import Bench, job, timed


@job("evidence")
def evidence(bench: Bench) -> None:
    """How many times longer than NaiveBayes on a table of numbers and text, to fit and to predict."""
    size = bench.size(sizes.EVIDENCE)
    frame = data.table(bench.rng(), size)
    plain, weighed = deciban.NaiveBayes(), deciban.EvidenceClassifier()
    rows = frame.drop(columns="label")
    for what, times in {
        "fit": (lambda: plain.fit(frame, "label"), lambda: weighed.fit(frame, "label")),
        "predict_proba": (lambda: plain.predict_proba(rows), lambda: weighed.predict_proba(rows)),
    }.items():
        found = [min(timed(work)[0] for _ in range(bench.runs)) for work in times]
        print(f"  {what}: NaiveBayes {found[0]:.2f} s, EvidenceClassifier {found[1]:.2f} s")
        bench.limit(
            f"EvidenceClassifier {what} {size}, NaiveBayes's time", found[1] / found[0], sizes.EVIDENCE_TIMES, "×"
        )
