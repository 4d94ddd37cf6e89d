"""Held out, inside: batches, folds, and sums of all the others."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import deciban as db
from deciban import families as fam
from deciban.data import frames as sources
from deciban.data import labelled_rows
from deciban.generative.held_out import leave_one_out, sums_of_others
from tests.evaluation.test_cross_validation import by_folds
from tests.laws import flattened

RNG = np.random.default_rng(0)
N = 60
Y = RNG.permutation(np.repeat(["a", "b", "c"], [30, 20, 10]))
TABLE = pd.DataFrame(
    {
        "colour": RNG.choice(["red", "blue", "green"], N),
        "size": np.where(RNG.random(N) < 0.1, np.nan, RNG.normal(size=N)),
        "calls": RNG.poisson(2.0, N),
    }
)
W = RNG.choice([0.0, 0.5, 1.0, 2.0], N)


@pytest.fixture
def small_batches(monkeypatch):
    """Seven rows of three columns at a time."""
    monkeypatch.setattr(sources, "CELLS_PER_BATCH", 21)
    monkeypatch.setattr(sources, "CELLS_PER_VIEW", 21)


def predictions_of(model, x, y, weights=None):
    return [
        leave_one_out(model.estimate_, batch)
        for batch in labelled_rows(x, y, weights, model.columns_).batches(needs_small_batches=True)
    ]


# Leave-one-out -------------------------------------------------------------------------------------------------------


def test_class_priors_without_a_row_are_fractions():
    """A column that says nothing: what is left is n_c/n without the row, exactly; or (n_c + 1)/(n + K)."""
    y = np.array(["a", "a", "a", "b", "b"])
    x = np.ones((5, 1))
    for prior, extra in (("empirical", 0), ("laplace", 1)):
        model = db.NaiveBayes(class_prior=prior).fit(x, y)
        (actual,) = predictions_of(model, x, y)
        for row, label in zip(actual.proba, y, strict=True):
            a, b = 3 - (label == "a") + extra, 2 - (label == "b") + extra
            expected = [float(Fraction(int(n), int(a + b))) for n in (a, b)]
            np.testing.assert_allclose(row, expected, rtol=1e-15)


def test_counts_without_a_row_are_fractions():
    """p(red|a) = (k + 1)/(n + 2), with k and n counted without the row: by hand."""
    x = pd.DataFrame({"colour": ["red", "red", "blue", "blue", "red"]})
    y = np.array(["a", "a", "a", "b", "b"])
    (actual,) = predictions_of(db.NaiveBayes().fit(x, y), x, y)
    a, b = Fraction(2, 4) * Fraction(1 + 1, 2 + 2), Fraction(2, 4) * Fraction(1 + 1, 2 + 2)  # row 0: red of a
    np.testing.assert_allclose(actual.proba[0], [float(a / (a + b)), float(b / (a + b))], rtol=1e-14)
    a, b = Fraction(3, 4) * Fraction(1 + 1, 3 + 2), Fraction(1, 4) * Fraction(0 + 1, 1 + 2)  # row 3: blue of b
    np.testing.assert_allclose(actual.proba[3], [float(a / (a + b)), float(b / (a + b))], rtol=1e-14)


@pytest.mark.parametrize("weights", [None, W], ids=["plain", "weighted"])
@pytest.mark.parametrize("table", [TABLE, TABLE[["size", "calls"]].to_numpy(float)], ids=["mixed", "numbers"])
def test_batches_do_not_matter(table, weights, small_batches, monkeypatch):
    model = db.NaiveBayes().fit(table, Y, weights)
    pieces = predictions_of(model, table, Y, weights)
    assert len(pieces) > 3
    actual = model.leave_one_out(table, Y, weights)
    monkeypatch.undo()
    (whole,) = predictions_of(model, table, Y, weights)
    np.testing.assert_array_equal(np.concatenate([p.proba for p in pieces]), whole.proba)
    np.testing.assert_array_equal(np.concatenate([p.labels for p in pieces]), whole.labels)
    assert actual == model.leave_one_out(table, Y, weights)


def test_rows_are_counted_across_batches_and_rows_of_weight_0(small_batches):
    model = db.NaiveBayes().fit(TABLE, Y, W)
    heavy = W.copy()
    row = int(np.flatnonzero(W)[-2])
    heavy[row] = 500.0
    with pytest.raises(db.NegativeEvidence, match=f"row {row} of class '{Y[row]}' was never learned"):
        model.leave_one_out(TABLE, Y, heavy)
    odd = TABLE.copy()
    odd.loc[row, "colour"] = "grey"
    strict = db.NaiveBayes(unseen="error").fit(odd, Y, W)
    with pytest.raises(db.DecibanError, match=f"column 'colour', row {row}: 'grey'"):
        strict.leave_one_out(odd, Y, W)


def test_a_batch_of_rows_of_weight_0_is_no_batch(small_batches):
    weights = np.where(np.arange(N) < 14, 0.0, 1.0)
    model = db.NaiveBayes().fit(TABLE, Y, weights)
    actual = model.leave_one_out(TABLE, Y, weights)
    assert actual.rows == N - 14
    rest = db.NaiveBayes().fit(TABLE[14:], Y[14:])
    assert actual.log_loss == pytest.approx(rest.leave_one_out(TABLE[14:], Y[14:]).log_loss, rel=1e-12)


# Folds ---------------------------------------------------------------------------------------------------------------


def test_batches_do_not_matter_to_folds(small_batches, monkeypatch):
    fold = np.arange(N) % 4
    for x in (TABLE, TABLE[["size", "calls"]].to_numpy(float), sp.csr_array(TABLE[["calls"]].to_numpy(float))):
        kind = fam.Multinomial() if sp.issparse(x) else None
        actual = by_folds(db.NaiveBayes(kind), x, Y, fold[W > 0], W)
        with monkeypatch.context() as whole:
            whole.setattr(sources, "CELLS_PER_BATCH", 1 << 22)
            whole.setattr(sources, "CELLS_PER_VIEW", 1 << 26)
            expected = by_folds(db.NaiveBayes(kind), x, Y, fold[W > 0], W)
        np.testing.assert_allclose(actual, expected, rtol=1e-12)


@pytest.mark.parametrize("parts", [2, 3, 4, 7])
def test_sums_of_others(parts):
    """Each is what a fit of the other rows has collected, bit for bit."""
    cut = np.arange(N) % parts
    models = [db.NaiveBayes().fit(TABLE[cut == p], Y[cut == p]).generative_ for p in range(parts)]
    actual = list(sums_of_others(models))
    assert len(actual) == parts
    for p, rest in enumerate(actual):
        expected = db.NaiveBayes().fit(TABLE[cut != p], Y[cut != p]).generative_
        assert rest.classes == expected.classes
        np.testing.assert_array_equal(rest.counts.value, expected.counts.value)
        for mine, theirs in zip(rest.blocks, expected.blocks, strict=True):
            wanted = flattened(theirs.statistic)
            for key, array in flattened(mine.statistic).items():
                np.testing.assert_array_equal(array, wanted[key])


def test_families_that_cannot_forget_have_folds():
    fold = np.arange(N) % 3
    x = TABLE[["size"]]
    actual = by_folds(db.NaiveBayes(fam.Uniform()), x, Y, fold)
    for f in range(3):
        fresh = db.NaiveBayes(fam.Uniform()).fit(x[fold != f], Y[fold != f])
        np.testing.assert_allclose(actual[fold == f], fresh.predict_proba(x[fold == f]), rtol=1e-10)


def test_a_bad_cell_is_named_by_its_row_in_the_table(small_batches):
    bad = TABLE.copy()
    bad.loc[41, "size"] = np.inf
    for folds in (5, np.arange(N) % 4):
        for model in (db.NaiveBayes(), db.NaiveBayes({"calls": fam.Binned()})):
            with pytest.raises(db.DecibanError, match="column 'size', row 41: inf is infinite"):
                db.cross_validate(model, bad, Y, folds)
