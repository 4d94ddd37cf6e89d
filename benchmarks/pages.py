"""Reports: how long they take to make, how large they are, and how long a browser takes to open them.

``python -m benchmarks.pages``. Needs Chromium and playwright. A page is open when its sections are built and the model
can be asked; charts below the first screen are drawn when they are scrolled to.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import deciban as db
from benchmarks.report import table
from benchmarks.sizes import SEED

RUNS = 3  # the fastest counts
SCORED = """() => {
  const row = window.deciban.figures.rows.cells[0], start = performance.now();
  for (let i = 0; i < 20; ++i) window.deciban.scorer.score(row);
  return (performance.now() - start) / 20;
}"""


def mixed(rows: int = 30_000, columns: int = 15) -> tuple[Any, pd.DataFrame]:
    """Half numbers, half categories."""
    rng = np.random.default_rng(SEED)
    y = rng.integers(0, 2, rows)
    made = {f"x{j}": rng.normal(0.3 * y, 1.0) for j in range(columns // 2)}
    made |= {f"c{j}": (rng.integers(0, 12, rows) + y).astype(str) for j in range(columns - columns // 2)}
    data = pd.DataFrame({**made, "y": np.where(y, "yes", "no")})
    return db.EvidenceClassifier().fit(data, "y"), data


def wide() -> tuple[Any, pd.DataFrame]:
    """300 columns, one of them with 10,000 values."""
    rng = np.random.default_rng(SEED)
    y = rng.integers(0, 3, 20_000)
    made = {f"x{j}": rng.normal(0.2 * y, 1.0) for j in range(299)}
    many = [f"value {v}" for v in rng.integers(0, 10_000, len(y)).tolist()]
    data = pd.DataFrame({**made, "many": many, "y": np.array(["a", "b", "c"])[y]})
    return db.NaiveBayes().fit(data, "y"), data


def words() -> tuple[Any, pd.DataFrame]:
    """Documents with 100,000 different words."""
    rng = np.random.default_rng(SEED)
    y = rng.integers(0, 2, 20_000)
    ranks = (rng.pareto(0.7, (len(y), 60)) * 20).astype(np.int64) % 300_000
    texts = [" ".join(f"w{rank + 7 * label}" for rank in row) for row, label in zip(ranks.tolist(), y, strict=True)]
    data = pd.DataFrame({"text": texts, "y": np.where(y, "spam", "ham")})
    return db.NaiveBayes({"text": db.families.Text()}).fit(data, "y"), data


CASES: dict[str, Callable[[], tuple[Any, pd.DataFrame]]] = {
    "EvidenceClassifier, 30,000 × 15, mixed": mixed,
    "NaiveBayes, 300 columns, one with 10,000 values": wide,
    "NaiveBayes, texts of 20,000 rows": words,
}


def main() -> int:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        rows = [_row(browser, Path(folder) / "report.html", title, *case()) for title, case in CASES.items()]
        browser.close()
    print(table(["report", "made, s", "kB", "opened, s", "a row scored, ms"], rows))
    return 0


def _row(browser: Any, path: Path, title: str, model: Any, data: pd.DataFrame) -> tuple[str, ...]:
    made = min(_seconds(lambda: model.report(data, "y").save(path)) for _ in range(RUNS))
    opened, scored = min(_opened(browser, path) for _ in range(RUNS))
    return title, f"{made:.1f}", f"{path.stat().st_size / 1000:,.0f}", f"{opened:.2f}", f"{scored:.2f}"


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _opened(browser: Any, path: Path) -> tuple[float, float]:
    """Seconds until the page is built, and milliseconds that it takes to score a row."""
    page = browser.new_page()

    def open_it() -> None:
        page.goto(path.as_uri())
        page.evaluate("window.deciban.ready")

    found = _seconds(open_it), float(page.evaluate(SCORED))
    page.close()
    return found


if __name__ == "__main__":
    sys.exit(main())
