"""Forged files, with a right checksum: numbers that no rows have are refused, or raise an error when they are used."""

from functools import cache

import numpy as np
import pytest

import deciban as db
from deciban import families as f
from deciban.persist.storage import read, write

RNG = np.random.default_rng(2)
CLASSES = np.arange(30) % 3
X = RNG.normal(CLASSES[:, np.newaxis], 1.0, (30, 3))
COEFFICIENTS = "model.state.predictor_.coefficients"
STATISTIC = "model.state.generative_.blocks.0.statistic"
MODELS = {
    "gaussian": db.NaiveBayes(),
    "binned": db.NaiveBayes(f.Binned()),
    "uniform": db.NaiveBayes(f.Uniform()),
    "discriminant": db.GaussianDiscriminant(),
    "evidence": db.EvidenceClassifier(trees=2),
    "logistic": db.LogisticRegression(l2=1.0),
    "poisson response": db.GeneralizedLinearModel("poisson"),
}


@cache
def fitted(name):
    return MODELS[name].fit(X, CLASSES)


def forged(name, path, change):
    """The file of a model whose arrays are changed."""
    fitted(name).save(path)
    tree, arrays = read(path)
    change(arrays)
    write(path, tree, arrays)


def put(key, places, value):
    """A change of numbers in an array."""

    def change(arrays):
        array = arrays[key] = arrays[key].astype(arrays[key].dtype, copy=True)
        array[places] = value

    return change


def two_words(key, second):
    """A change of sums to two words."""
    return lambda arrays: arrays.update({key: np.concatenate([arrays[key][:1], np.full_like(arrays[key][:1], second)])})


@pytest.mark.parametrize(
    ("name", "change", "match"),
    [
        ("gaussian", put(f"{STATISTIC}.sum_x.words", 0, 1e3), "block 0, Gaussian: no rows have these sums"),
        ("gaussian", put(f"{STATISTIC}.sum_x.words", 0, 1e200), "no rows have these sums|too large to sum"),
        ("gaussian", put(f"{STATISTIC}.sum_xx.words", ..., 1e-3), "sum_xx is not written as sums are"),
        ("gaussian", put(f"{STATISTIC}.sum_xx.words", 0, 1.7e308), "too large to sum"),
        ("gaussian", put(f"{STATISTIC}.count.words", (0, 0), 0.0), "no rows have these sums"),
        ("gaussian", two_words(f"{STATISTIC}.count.words", 1.0), "count is not written as sums are"),
        ("gaussian", put("model.state.generative_.counts.words", ..., 1e308), "counts is too large to sum"),
        ("uniform", put(f"{STATISTIC}.least.value", ..., 9.0), "not beyond the extreme|above the largest"),
        ("uniform", put(f"{STATISTIC}.least.second", ..., -99.0), "a second value is not beyond the extreme"),
        ("uniform", put(f"{STATISTIC}.most.weight.words", ..., 0.0), "an extreme has no weight"),
        ("discriminant", put(f"{STATISTIC}.products", (0, 0, 1), 5.0), "products are not symmetric"),
        (
            "evidence",
            put("model.state.generative_.blocks.0.plan.family.code", ..., 300),
            "a node splits at an unknown code",
        ),
    ],
)
def test_numbers_that_no_rows_have_are_refused_by_name(name, change, match, tmp_path):
    path = tmp_path / "model.deciban"
    forged(name, path, change)
    with pytest.raises(db.DecibanError, match=rf"is damaged: model\..*({match})"):
        db.load(path)


@pytest.mark.parametrize(
    ("name", "change", "match"),
    [
        ("discriminant", put(f"{STATISTIC}.origin", 0, 1e300), "a covariance is not that of rows, or too large"),
        ("logistic", put(COEFFICIENTS, ..., 1e308), "row 0: its score is not a number"),
        ("poisson response", put(COEFFICIENTS, ..., 1e308), "row .: its score is not a number"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_numbers_without_an_estimate_raise_an_error_when_they_are_used(name, change, match, tmp_path):
    path = tmp_path / "model.deciban"
    forged(name, path, change)
    model = db.load(path)
    with pytest.raises(db.DecibanError, match=match), np.errstate(all="ignore"):
        model.predict(np.abs(X) * 10.0)


def test_labels_of_wide_text_are_saved(tmp_path):
    """The width of text is no part of the model; a file may not ask for a wide one."""
    path = tmp_path / "model.deciban"
    model = db.NaiveBayes().fit(X, np.array(["a", "b", "c"] * 10, dtype="<U2000000"))
    model.save(path)
    assert db.load(path).classes_.tolist() == ["a", "b", "c"]
