"""Makes models-0.1/: a file of every estimator as version 0.1 wrote it, and what each predicted.

Later versions have to read them and predict the same, so they stay as they are. Run once: python models_0_1.py
"""

import json
import warnings
from pathlib import Path

import pandas as pd

import deciban as db

FOLDER = Path(__file__).with_name("models-0.1")
N = 60


def table() -> pd.DataFrame:
    """Numbers, categories, truth, dates and missing values, without chance."""
    i = pd.Series(range(N))
    return pd.DataFrame(
        {
            "size": (i * 37 % 29) / 4.0,
            "weight": ((i * 17 % 23) - 5.0).where(i % 11 != 3),
            "colour": i.map(lambda k: ["red", "green", "blue"][k * k % 3] if k % 13 else None),
            "member": i % 4 == 1,
            "since": pd.Timestamp("2024-01-01") + pd.to_timedelta(i * 5 % 200, unit="D"),
        }
    )


def labels() -> list[str]:
    rows = table()
    return [
        "yes" if size + 3 * member + (colour == "red") > 4 else "no"
        for size, member, colour in zip(rows["size"], rows["member"], rows["colour"], strict=True)
    ]


def models() -> dict[str, object]:
    """As version 0.1 fitted them; some settings had other names there."""
    rows, y = table(), labels()
    numbers = rows[["size", "weight"]].fillna(0.0)
    three = [f"{label}{k % 2}" if label == "yes" else label for k, label in enumerate(y)]
    return {
        "naive-bayes": db.NaiveBayes(smoothing=0.5).fit(rows, y),
        "lda": db.GaussianDiscriminant().fit(numbers, y),
        "qda": db.GaussianDiscriminant(covariance="per-class", shrinkage=0.1).fit(numbers, three),
        "evidence": db.EvidenceClassifier(trees=8, max_weight_rows=1000, random_state=3).fit(rows, y),
        "calibrated": db.CalibratedClassifier(db.NaiveBayes(), cv=4, random_state=5).fit(rows, three),
        "logistic": db.LogisticRegression(l2=1.0).fit(rows, y),
        "softmax": db.SoftmaxRegression(l2=1.0).fit(numbers, three),
        "halfspace": db.Halfspace().fit(numbers, numbers["size"] > 3.1),
        "glm": db.GeneralizedLinearModel("poisson").fit(numbers, range(N)),
    }


def predicted(model: object, name: str) -> list[list[str]]:
    """What a model says of the rows: numbers that lose nothing, or classes."""
    rows = table() if name in ("naive-bayes", "evidence", "calibrated", "logistic") else None
    rows = table()[["size", "weight"]].fillna(0.0) if rows is None else rows
    if hasattr(model, "predict_proba"):
        return [[float(p).hex() for p in row] for row in model.predict_proba(rows)]
    return [[float(value).hex() if name == "glm" else str(value)] for value in model.predict(rows)]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    FOLDER.mkdir(exist_ok=True)
    predictions = {}
    for name, model in models().items():
        model.save(FOLDER / f"{name}.deciban")
        predictions[name] = predicted(db.load(FOLDER / f"{name}.deciban"), name)
    (FOLDER / "predictions.json").write_text(json.dumps(predictions))
