"""HTML reports: time to write them, their size, and the time that a browser takes to open them.

Needs Chromium and playwright. A page is open when its sections are built and its model can predict; charts below the
first screen are drawn when they are scrolled to.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import deciban as db
from benchmarks.harness import Bench, job, timed
from benchmarks.sizes import QUICK, SEED, short

WRITE_S, SIZE_KB, OPEN_S, SCORE_MS = 10.0, 5000.0, 3.0, 16.0  # limits; a frame takes 16 ms
SCORE = """() => {
  const row = window.deciban.figures.rows.cells[0], start = performance.now();
  for (let i = 0; i < 20; ++i) window.deciban.scorer.score(row);
  return (performance.now() - start) / 20;
}"""


def mixed(rows: int, columns: int = 15) -> tuple[Any, pd.DataFrame]:
    """Half numbers, half categories."""
    rng = np.random.default_rng(SEED)
    y = rng.integers(0, 2, rows)
    features = {f"x{j}": rng.normal(0.3 * y, 1.0) for j in range(columns // 2)}
    features |= {f"c{j}": (rng.integers(0, 12, rows) + y).astype(str) for j in range(columns - columns // 2)}
    data = pd.DataFrame({**features, "y": np.where(y, "yes", "no")})
    return db.EvidenceClassifier().fit(data, "y"), data


def wide(rows: int) -> tuple[Any, pd.DataFrame]:
    """300 columns, one of them with 10,000 values."""
    rng = np.random.default_rng(SEED)
    y = rng.integers(0, 3, rows)
    numbers = {f"x{j}": rng.normal(0.2 * y, 1.0) for j in range(299)}
    many = [f"value {v}" for v in rng.integers(0, 10_000, len(y)).tolist()]
    data = pd.DataFrame({**numbers, "many": many, "y": np.array(["a", "b", "c"])[y]})
    return db.NaiveBayes().fit(data, "y"), data


def words(rows: int) -> tuple[Any, pd.DataFrame]:
    """Documents with 100,000 different words."""
    rng = np.random.default_rng(SEED)
    y = rng.integers(0, 2, rows)
    ranks = (rng.pareto(0.7, (len(y), 60)) * 20).astype(np.int64) % 300_000
    texts = [" ".join(f"w{rank + 7 * label}" for rank in row) for row, label in zip(ranks.tolist(), y, strict=True)]
    data = pd.DataFrame({"text": texts, "y": np.where(y, "spam", "ham")})
    return db.NaiveBayes({"text": db.families.Text()}).fit(data, "y"), data


CASES: dict[str, tuple[Callable[[int], tuple[Any, pd.DataFrame]], int]] = {
    "EvidenceClassifier, mixed, 15 columns": (mixed, 30_000),
    "NaiveBayes, 300 columns, one with 10,000 values": (wide, 20_000),
    "NaiveBayes, texts": (words, 20_000),
}


@job("pages")
def pages(bench: Bench) -> None:
    """Sizes are those of the whole file, of which Vega is 0.9 MB."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None or find_spec("playwright") is None:
        print("  skipped: pip install playwright, and chromium on the PATH", flush=True)
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for title, (case, rows) in CASES.items():
            n = rows // QUICK if bench.quick else rows
            _page(bench, browser, Path(folder) / "report.html", f"{title}, {short(n)} rows", *case(n))
        browser.close()


def _page(bench: Bench, browser: Any, path: Path, title: str, model: Any, data: pd.DataFrame) -> None:
    seconds = min(timed(lambda: model.report(data, "y").save(path))[0] for _ in range(bench.runs))
    opened, scored = (min(times) for times in zip(*(_opened(browser, path) for _ in range(bench.runs)), strict=True))
    bench.limit(f"write a report: {title}", seconds, WRITE_S, "s")
    bench.limit(f"size of the report: {title}", path.stat().st_size / 1000, SIZE_KB, "kB")
    bench.limit(f"open the report: {title}", opened, OPEN_S, "s")
    bench.limit(f"score a row in the report: {title}", scored, SCORE_MS, "ms")


def _opened(browser: Any, path: Path) -> tuple[float, float]:
    """Seconds to open the page, and milliseconds to score a row in it."""
    page = browser.new_page()

    def open_it() -> None:
        page.goto(path.as_uri())
        page.evaluate("window.deciban.ready")

    seconds = timed(open_it)[0], float(page.evaluate(SCORE))
    page.close()
    return seconds
