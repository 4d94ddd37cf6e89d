"""The results of a bench as text and JSON."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from benchmarks.harness import Bench, Comparison, Limit
from benchmarks.sizes import QUICK, SEED

PACKAGES = (
    "deciban",
    "numpy",
    "scipy",
    "scikit-learn",
    "glum",
    "pandas",
    "pyarrow",
    "catboost",
    "lightgbm",
    "khiops",
    "interpret-core",
)


def text(bench: Bench) -> str:
    """The tables of ratios and limits, the notes and the failures."""
    parts = []
    if bench.comparisons:
        head = ["job", "against", "peer s", "ours s", "ratio", "target", "met", "agreement"]
        parts.append(table(head, [_comparison_cells(row) for row in bench.comparisons]))
        parts.append("\n".join(f"{row.title} / {row.against}: {row.note}." for row in bench.comparisons if row.note))
    if bench.limits:
        parts.append(table(["job", "measured", "limit", "met"], [_limit_cells(row) for row in bench.limits]))
    parts.append("\n".join(f"FAILED {name}: {error}" for name, error in bench.failures.items()))
    if bench.quick:
        parts.append(f"Quick run, 1/{QUICK} of the rows: it shows that everything works; its ratios do not count.")
    return "\n\n".join(part for part in parts if part)


def write_json(bench: Bench, path: Path) -> None:
    """Versions, machine, and every timing."""
    content = {
        "quick": bench.quick,
        "seed": SEED,
        "machine": {"cpu": cpu_model(), "cores": os.cpu_count(), "load": list(os.getloadavg())},
        "versions": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
        "comparisons": [_comparison_json(row) for row in bench.comparisons],
        "limits": [{**vars(row), "met": row.met} for row in bench.limits],
        "failures": bench.failures,
    }
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _comparison_cells(row: Comparison) -> list[str]:
    met = "invalid" if not row.valid else "yes" if row.met else "no"
    seconds = [f"{min(row.peer):.3f}", f"{min(row.ours):.3f}"]
    return [row.title, row.against, *seconds, f"{row.ratio:.3f}", f"{row.target:g}", met, f"{row.gap:.1e}"]


def _limit_cells(row: Limit) -> list[str]:
    met = "yes" if row.met else "no"
    return [row.title, f"{row.measured:.1f} {row.unit}", f"{row.at_most:g} {row.unit}", met]


def _comparison_json(row: Comparison) -> dict[str, object]:
    gap = row.gap if math.isfinite(row.gap) else None  # JSON has no NaN
    return {**vars(row), "gap": gap, "ratio": row.ratio, "valid": row.valid, "met": row.met}


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(cell) for cell in column) for column in zip(head, *rows, strict=True)]
    lines = [head, ["-" * width for width in widths], *rows]
    return "\n".join(" | ".join(_pad(line, widths)).rstrip() for line in lines)


def _pad(cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]


def version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
