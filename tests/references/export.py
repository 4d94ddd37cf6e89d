"""Write scikit-learn's data sets as CSV, for the R scripts: export.py DIRECTORY"""

import csv
import sys
from pathlib import Path

from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine


def export(directory: str) -> None:
    for name, load in (("iris", load_iris), ("wine", load_wine), ("breast_cancer", load_breast_cancer)):
        data = load()
        write(directory, name, [*data.feature_names, "class"], data.data, data.target_names[data.target])
    data = load_diabetes()
    write(directory, "diabetes", [*data.feature_names, "target"], data.data, data.target)


def write(directory: str, name: str, header: list[str], cells, last) -> None:
    with (Path(directory) / f"{name}.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(header)
        for x, y in zip(cells.tolist(), last.tolist(), strict=True):
            rows.writerow([*x, y])


if __name__ == "__main__":
    export(sys.argv[1])
