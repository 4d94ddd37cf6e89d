"""Peak memory of a fit, beyond its rows, measured in a separate process.

``python -m benchmarks.memory KIND ROWS`` prints the growth in MB. The peak is Linux's VmHWM, reset before the
fit. (ru_maxrss cannot be reset, and starts from the peak of the process that launched this one.)
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import deciban
from benchmarks import data, sizes
from benchmarks.harness import Bench, job
from benchmarks.sizes import MEMORY_LIMIT_MB, SEED, Size

STATUS = Path("/proc/self/status")
CLEAR = Path("/proc/self/clear_refs")
Make = Callable[[np.random.Generator, Size, data.Ints], Any]


def _floats(rng: np.random.Generator, size: Size, y: data.Ints) -> data.Floats:
    X = data.gaussian(rng, size, y)
    data.remove_values(rng, X)
    return X


def _integers(rng: np.random.Generator, size: Size, _: data.Ints) -> data.Ints:
    return data.whole_numbers(rng, size)


def _table(rng: np.random.Generator, size: Size, y: data.Ints) -> pd.DataFrame:
    return data.table(rng, size, y).drop(columns="label")


@dataclass(frozen=True)
class Kind:
    """The rows and the model of a fit, and its memory limit."""

    size: Size
    make: Make
    model: Callable[[], Any]
    limit: float = MEMORY_LIMIT_MB


KINDS = {
    "float64": Kind(sizes.GAUSSIAN, _floats, deciban.NaiveBayes),
    "int64": Kind(sizes.GAUSSIAN, _integers, deciban.NaiveBayes),
    "codes": Kind(sizes.CODES, data.codes, lambda: deciban.NaiveBayes(families=deciban.families.Categorical())),
    "mixed": Kind(sizes.EVIDENCE, _table, deciban.EvidenceClassifier, sizes.EVIDENCE_LIMIT_MB),
}


@job("memory")
def memory(bench: Bench) -> None:
    """Floats with missing values, integers, codes, and a mixed table for weighted evidence."""
    if not STATUS.exists():
        print("  skipped: needs Linux")
        return
    for kind, case in KINDS.items():
        size = bench.size(case.size)
        command = [sys.executable, "-m", "benchmarks.memory", kind, str(size.rows)]
        root = Path(__file__).resolve().parents[1]
        output = subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True).stdout
        bench.limit(f"memory beyond the rows, fit {size} {kind}", float(output), case.limit, "MB")


def growth(kind: str, rows: int) -> float:
    """MB by which the peak of a fit exceeds the memory before it."""
    case = KINDS[kind]
    size, rng = Size(rows, case.size.columns, case.size.classes), np.random.default_rng(SEED)
    y = data.labels(rng, size)
    X = case.make(rng, size, y)
    case.model().fit(X[:1_000], y[:1_000])  # imports happen once
    ctypes.CDLL(None).malloc_trim(0)  # else the fit could reuse memory freed while the rows were made
    CLEAR.write_text("5", encoding="ascii")  # resets the peak to the current memory
    before = _status_mb("VmRSS")
    case.model().fit(X, y)
    return _status_mb("VmHWM") - before


def _status_mb(name: str) -> float:
    line = next(line for line in STATUS.read_text(encoding="ascii").splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024 / 1e6


if __name__ == "__main__":
    print(growth(sys.argv[1], int(sys.argv[2])))
