"""``python -m benchmarks.updating``: an EvidenceClassifier after updates, without and with a refit of its weights.

A first fit of 300 rows of adult, then `partial_fit` on the other rows in 30 batches; evaluated on the test rows of
adult. Needs $DECIBAN_DATA/tables/adult-train.csv and adult-test.csv.
"""

from __future__ import annotations

import copy
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import deciban as db

FIRST = 300
BATCHES = 30
SHOWN = (0, 1, 2, 4, 8, 16, 30)  # batches after which the model is evaluated


def main() -> int:
    tables = Path(os.environ.get("DECIBAN_DATA", "")) / "tables"
    if not (tables / "adult-train.csv").exists():
        print("set DECIBAN_DATA to the folder that holds tables/adult-train.csv", file=sys.stderr)
        return 1
    (X, y), test = adult(tables / "adult-train.csv"), adult(tables / "adult-test.csv")
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X.iloc[order], y[order]
    ends = np.linspace(FIRST, len(X), BATCHES + 1).astype(int)
    model = db.EvidenceClassifier().fit(X[:FIRST], y[:FIRST])
    print("| training rows | log-loss, weights of the first fit | after refitting the weights |\n|---|---|---|")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", db.DecibanWarning)  # the weights are out of date on purpose
        for batch, end in enumerate(ends):
            begin = 0 if batch == 0 else ends[batch - 1]
            if batch:
                model.partial_fit(X[begin:end], y[begin:end])
            if batch in SHOWN:
                refitted = copy.deepcopy(model).refit_weights(X[:end], y[:end])
                losses = (db.evaluate(fitted, *test).log_loss for fitted in (model, refitted))
                print(f"| {end:,} | " + " | ".join(f"{loss:.3f}" for loss in losses) + " |")
    return 0


def adult(path: Path) -> tuple[pd.DataFrame, Any]:
    """The features and labels of a file of adult."""
    table = pd.read_csv(path, header=None, skipinitialspace=True, na_values="?")
    table.columns = [f"c{j}" for j in range(table.shape[1])]
    return table.iloc[:, :-1], table.iloc[:, -1].str.rstrip(".").to_numpy(dtype=object)


if __name__ == "__main__":
    sys.exit(main())
