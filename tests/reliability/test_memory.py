"""Long runs: the resident memory of a process that predicts, explains, learns and forgets stays flat."""

import os
import subprocess
import sys

import numpy as np
import pytest

CYCLES = """
import sys
import numpy as np
import deciban as db

kind, cycles = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(0)
rows = rng.normal(size=(60, 3))
labels = ["yes" if row[0] > 0 else "no" for row in rows]
if kind == "documents":
    rows = [f"the {'good' if label == 'yes' else 'bad'} word {i}" for i, label in enumerate(labels)]
model = db.NaiveBayes().fit(rows, labels)

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])

pages = []
for i in range(cycles):
    j = i % len(labels)
    row, label = rows[j : j + 1], labels[j : j + 1]
    model.predict(row)
    model.explain(row)
    model.partial_fit(row, label)
    model.forget(row, label)
    if i % 10 == 0:
        pages.append(resident())
print(*pages)
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
@pytest.mark.parametrize(("kind", "cycles"), [("numbers", 10_000), ("documents", 2_000)])
def test_memory_is_flat(kind: str, cycles: int) -> None:
    code = [sys.executable, "-c", CYCLES, kind, str(cycles)]
    done = subprocess.run(code, capture_output=True, text=True, check=True)
    pages = np.array(done.stdout.split(), float)[cycles // 100 :]  # after a tenth, caches are filled
    slope = np.polyfit(np.arange(len(pages)) * 10, pages * os.sysconf("SC_PAGE_SIZE"), 1)[0]  # bytes a cycle
    assert slope < 4 * 1024  # four calls
