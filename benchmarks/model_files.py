"""``python -m benchmarks.model_files``: sizes of model files, and times for many columns.

letter (26 classes) from $DECIBAN_DATA/tables, if it exists; 500 rows of 1,000, 6,000 and 10,000 columns of noise.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import deciban as db

ROWS = 500
COLUMNS = (1_000, 6_000, 10_000)


def main() -> int:
    print("| table | fit, s | save, s | load, s | peak, MB | file, MB | predictions |\n|---|---|---|---|---|---|---|")
    for name, X, y, rows in tables():
        print(f"| {name} | " + " | ".join(measure(X, y, rows)) + " |", flush=True)
    return 0


def tables() -> Iterator[tuple[str, Any, Any, Any]]:
    """The name of a table, X and y to fit, and rows to predict."""
    letter = Path(os.environ.get("DECIBAN_DATA", "")) / "tables" / "letter.csv"
    if letter.exists():
        yield "letter", db.scan(letter), "class", db.scan(letter)
    for columns in COLUMNS:
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(ROWS, columns)), rng.random(ROWS) < 0.5
        yield f"{ROWS} × {columns:,}", X, y, X


def measure(X: Any, y: Any, rows: Any) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.deciban"
        begin = time.perf_counter()
        model = db.EvidenceClassifier().fit(X, y)
        fitted = time.perf_counter()
        model.save(path)
        saved = time.perf_counter()
        loaded = db.load(path)
        seconds = fitted - begin, saved - fitted, time.perf_counter() - saved
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        same = np.array_equal(model.predict_proba(rows), loaded.predict_proba(rows))
        size = path.stat().st_size / 1e6
    return [*(f"{s:.1f}" for s in seconds), f"{peak:,.0f}", f"{size:.1f}", "the same" if same else "DIFFER"]


if __name__ == "__main__":
    sys.exit(main())
