"""Imports deciban, fits, predicts and explains under Valgrind, and fails if an error or a leak has a frame in _kernels.

    python tools/valgrind.py

Errors elsewhere (the interpreter, NumPy, the dynamic linker) are not counted.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

SMOKE = """
import numpy as np
import deciban as db

rng = np.random.default_rng(0)
x, y = rng.normal(size=(300, 5)), rng.integers(0, 3, 300)
x[::7, 1] = np.nan
texts = [f"word{i % 17} don't {i}" for i in range(300)]
for model, rows in ((db.NaiveBayes(), x), (db.GaussianDiscriminant(), x[:, 2:]), (db.NaiveBayes(), texts),
                    (db.LogisticRegression(), x[:, 2:])):
    model.fit(rows, y).predict_proba(rows[:50])
    model.explain(rows[:2])
model = db.NaiveBayes().fit(x, y)
model.partial_fit(x[:3], y[:3]).forget(x[:3], y[:3])
model.leave_one_out(x, y)
"""


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        command = ["valgrind", "--xml=yes", f"--xml-file={report}", "--num-callers=30", "--leak-check=full"]
        command += ["--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"]
        environment = {**os.environ, "PYTHONMALLOC": "malloc", "OPENBLAS_NUM_THREADS": "1"}
        subprocess.run([*command, sys.executable, "-c", SMOKE], env=environment, check=True)
        errors = list(ElementTree.parse(report).getroot().iter("error"))
    ours = [error for error in errors if any("_kernels" in (name.text or "") for name in error.iter("obj"))]
    for error in ours:
        print(error.findtext("what") or error.findtext("xwhat/text"))
        for frame in error.iter("frame"):
            print("   ", frame.findtext("fn"), frame.findtext("file"), frame.findtext("line"))
    print(f"Valgrind: {len(ours)} errors in _kernels, {len(errors) - len(ours)} elsewhere")
    return bool(ours)


if __name__ == "__main__":
    sys.exit(main())
