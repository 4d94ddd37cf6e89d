"""Models with rows, as many kinds as a report shows: what tests of pages open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import pandas as pd

import deciban as db

ROWS = 200


@dataclass
class Case:
    """A fitted model, rows to evaluate it by, and rows to predict, with missing values and values never seen."""

    model: Any
    table: Any  # with the label
    label: str
    asked: Any  # 50 rows without the label

    @cached_property
    def report(self) -> Any:
        return self.model.report(self.table, self.label)


def binary() -> Case:
    """An EvidenceClassifier of a mixed table: trees, pairs, joint normals, bins and values."""
    table = _mixed(2)
    return Case(db.EvidenceClassifier(trees=8).fit(table[:ROWS], "y"), table[ROWS:], "y", _asked(table))


def five() -> Case:
    """Naive Bayes of five classes, with a family of each kind."""
    table = _mixed(5).drop(columns=["zone"])
    families = {"visits": db.families.Poisson(), "wait": db.families.Exponential(), "age": db.families.Binned()}
    return Case(db.NaiveBayes(families).fit(table[:ROWS], "y"), table[ROWS:], "y", _asked(table))


def text() -> Case:
    """Documents."""
    rng = np.random.default_rng(5)
    known = "offer now free prize call meeting lunch tomorrow report Straße café 1,000 £ don't 会議 😀"
    words = np.array(known.split(" "))
    spam = rng.random(2 * ROWS) < 0.4
    odds = np.where(spam[:, None], np.linspace(3, 0.3, len(words)), np.linspace(0.3, 3, len(words)))
    texts = [" ".join(rng.choice(words, rng.integers(2, 12), p=row / row.sum())) for row in odds]
    table = pd.DataFrame({"text": texts, "y": np.where(spam, "spam", "ham")})
    asked = table[["text"]][-50:].reset_index(drop=True)
    asked.loc[3, "text"] = "Words nobody has seen: naïve ÆSIR 12.5"
    asked.loc[4, "text"] = ""
    asked.loc[5, "text"] = None
    model = db.NaiveBayes({"text": db.families.Text(words=(1, 2))}).fit(table[:ROWS], "y")
    return Case(model, table[ROWS:], "y", asked)


def glm() -> Case:
    """A response that is a number."""
    table = _mixed(2)
    eta = 0.02 * table["age"].fillna(40) + (table["cough"] == "dry") - 0.5
    table["y"] = np.random.default_rng(6).poisson(np.exp(eta))
    table = table[["age", "cough", "smoker", "y"]]
    return Case(db.GeneralizedLinearModel("poisson").fit(table[:ROWS], "y"), table[ROWS:], "y", _asked(table))


def twins() -> Case:
    """Two numeric columns: the boundary is drawn with both twins."""
    rng = np.random.default_rng(7)
    y = rng.integers(0, 2, 2 * ROWS)
    x = rng.normal(size=(2 * ROWS, 2)) + 1.5 * y[:, np.newaxis]
    table = pd.DataFrame({"height": x[:, 0].round(3), "weight": x[:, 1].round(3), "y": np.where(y, "yes", "no")})
    return Case(db.GaussianDiscriminant().fit(table[:ROWS], "y"), table[ROWS:], "y", _asked(table))


def logistic() -> Case:
    """Coefficients with intervals, and the path of the solver."""
    table = _mixed(2).drop(columns=["zone", "wait"])
    return Case(db.LogisticRegression().fit(table[:ROWS], "y"), table[ROWS:], "y", _asked(table))


CASES: dict[str, Callable[[], Case]] = {
    "binary": cache(binary),
    "five": cache(five),
    "text": cache(text),
    "glm": cache(glm),
    "twins": cache(twins),
    "logistic": cache(logistic),
}


def _mixed(classes: int) -> pd.DataFrame:
    """Numbers, counts, categories and booleans, with missing values; classes differ in all of them."""
    rng = np.random.default_rng(classes)
    n = 2 * ROWS
    y = rng.integers(0, classes, n)
    table = pd.DataFrame(
        {
            "age": (rng.normal(35 + 6 * y, 9)).round(1),
            "visits": rng.poisson(1 + y),
            "wait": (0.01 + rng.exponential(1 + y)).round(3),
            "cough": np.where(rng.random(n) < 0.2 + 0.5 * (y % 2), "dry", rng.choice(["wet", "none"], n)),
            "zone": rng.integers(1, 60, n).astype(str),
            "smoker": rng.random(n) < 0.3 + 0.1 * y,
            "y": np.array(["no", "yes", "perhaps", "rarely", "often"])[y],
        }
    )
    table.loc[rng.random(n) < 0.1, "age"] = np.nan
    table.loc[rng.random(n) < 0.1, "cough"] = None
    return table


def _asked(table: pd.DataFrame) -> pd.DataFrame:
    """Rows that were not learned; the first ones with missing values, values never seen, and numbers far away."""
    asked = table.drop(columns="y")[-50:].reset_index(drop=True)
    if "cough" in asked:
        asked.loc[0, "cough"] = "barking"
    first = asked.columns[0]
    asked.loc[1, first] = np.nan
    asked.loc[2, first] = 150.0
    return asked
