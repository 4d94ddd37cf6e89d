"""Makes format-1.deciban, a model file as version 0.1.0 wrote it. Later versions have to read it, so it stays as it is.

Run once, in this directory: python format_1.py
"""

from pathlib import Path

import pyarrow as pa

import deciban as db

FILE = Path(__file__).with_name("format-1.deciban")
ROWS = pa.table(
    {
        "income": [125.0, 100.0, None, 95.0, 85.5, 90.0],
        "refund": ["yes", "no", None, "no", "no", "yes"],
        "married": [True, True, False, None, False, False],
        "visits": [0.0, 2.0, 1.0, 7.0, 4.0, 5.0],
        "distance": [0.5, 0.25, 3.0, 8.0, 9.0, 7.5],
    }
)
LABELS = ["No", "No", "No", "Yes", "Yes", "Yes"]


def fitted() -> db.NaiveBayes:
    """The model that the file holds, from its rows."""
    families = {"visits": db.families.Poisson(), "distance": db.families.Binned("equal-frequency", count=2)}
    return db.NaiveBayes(families, smoothing=0.5, class_prior={"No": 0.75, "Yes": 0.25}, missing="category").fit(
        ROWS, LABELS
    )


if __name__ == "__main__":
    fitted().save(FILE)
