"""Write scikit-learn's iris and wine as CSV, for the R scripts: export.py DIRECTORY"""

import csv
import sys
from pathlib import Path

from sklearn.datasets import load_iris, load_wine


def export(directory: str) -> None:
    for name, load in (("iris", load_iris), ("wine", load_wine)):
        data = load()
        with (Path(directory) / f"{name}.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow([*data.feature_names, "class"])
            for x, y in zip(data.data.tolist(), data.target, strict=True):
                rows.writerow([*x, data.target_names[y]])


if __name__ == "__main__":
    export(sys.argv[1])
