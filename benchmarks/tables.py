"""A pandas table with strings and missing values, beside imputing, encoding and two naive Bayes models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.special import softmax
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import deciban
from benchmarks import data, sizes
from benchmarks.harness import Bench, gap, job
from benchmarks.sizes import HEAD

CHECKED = 100_000  # of these rows the complete ones are compared


@job("table")
def table(bench: Bench) -> None:
    """The peers impute missing values and we ignore them, so predictions are compared on complete rows."""
    size = bench.size(sizes.TABLE)
    frame = data.table(bench.rng(), size)
    bench.compare(
        f"pandas table fit, {size}, half strings, missing values",
        "ColumnTransformer + NB",
        ours=lambda: deciban.NaiveBayes().fit(frame, "label"),
        peer=lambda: ImputeEncodeNB().fit(frame, "label"),
        target=10,
        agreement=lambda *_: _gap_on_complete_rows(frame),
        note="agreement is that of fits to complete rows",
    )


class ImputeEncodeNB:
    """GaussianNB on the numbers plus CategoricalNB on the strings, after imputing and encoding."""

    def fit(self, frame: pd.DataFrame, label: str) -> ImputeEncodeNB:
        numbers = [name for name in frame if pd.api.types.is_float_dtype(frame[name].dtype)]
        strings = [name for name in frame if name not in numbers and name != label]
        encode = make_pipeline(SimpleImputer(strategy="most_frequent"), OrdinalEncoder())
        parts = [("numbers", SimpleImputer(), numbers), ("strings", encode, strings)]
        self.prepare = ColumnTransformer(parts)
        self.n_numbers = len(numbers)
        X, y = self.prepare.fit_transform(frame), frame[label]
        self.gaussian: Any = GaussianNB(var_smoothing=0).fit(X[:, : self.n_numbers], y)
        self.categorical: Any = CategoricalNB().fit(X[:, self.n_numbers :], y)
        return self

    def predict_proba(self, frame: pd.DataFrame) -> data.Floats:
        X = self.prepare.transform(frame)
        log_joint = self.gaussian.predict_joint_log_proba(X[:, : self.n_numbers])
        log_joint += self.categorical.predict_joint_log_proba(X[:, self.n_numbers :])
        return np.asarray(softmax(log_joint - self.categorical.class_log_prior_, axis=1))


def _gap_on_complete_rows(frame: pd.DataFrame) -> float:
    complete = frame.head(CHECKED).dropna()
    head = complete.head(HEAD).drop(columns="label")
    ours = deciban.NaiveBayes().fit(complete, "label")
    return gap(ours.predict_proba(head), ImputeEncodeNB().fit(complete, "label").predict_proba(head))
