"""Columns that predict the class almost perfectly by themselves are named; those that are only strong are not."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

import deciban as db
from deciban.data.intake import rows_in_memory
from deciban.data.schema import Schema
from deciban.evidence.leakage import LeftOutErrors, leaks
from deciban.evidence.structure import first_plans
from deciban.generative.model import Generative


def evidence(table, label, weights=None):
    sample = rows_in_memory(table, label, weights)
    schema = Schema.of(sample.frame)
    return Generative.collect(sample, schema, first_plans(schema, sparse=False), "category")


def named(table, label="y", weights=None):
    return [leak.column for leak in leaks(evidence(table, label, weights))]


def made(n, seed=0, wrong=0.0):
    """Features that leak: a code, a number, a missing value; and others that do not."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.5
    coded = y ^ (rng.random(n) < wrong)
    return pd.DataFrame(
        {
            "noise": rng.normal(size=n),
            "id": [f"i{i}" for i in rng.permutation(n)],
            "strong": y + rng.normal(size=n) / 3,  # right in 93 % of the rows
            "code": np.where(coded, "x", "z"),
            "flag": coded,
            "amount": coded + 0.9 * rng.random(n),
            "closed": np.where(coded, rng.random(n), np.nan),
            "y": y,
        }
    )


LEAKING = ["code", "flag", "amount", "closed"]


@pytest.mark.parametrize("seed", range(2))
def test_leaking_columns_of_every_kind_are_named_and_others_are_not(seed):
    assert named(made(400, seed)) == LEAKING
    assert named(made(4000, seed, wrong=0.004)) == LEAKING
    assert named(made(4000, seed, wrong=0.05)) == []


def test_few_rows_are_no_proof():
    for seed in range(10):
        assert named(made(20, seed)) == []
        assert named(made(80, seed)) == []


def test_a_rare_class_needs_as_many_rows_of_its_own():
    """99 % of the rows are right by the prior alone: what counts are its errors."""
    y = np.arange(10_000) < 100
    wrong = y ^ (np.arange(10_000) % 1000 == 500)  # 10 errors, all false alarms: 99.9 % of the rows are right
    table = pd.DataFrame({"right": np.where(y, "a", "b"), "wrong": np.where(wrong, "a", "b"), "y": y})
    assert named(table) == ["right"]
    assert named(table[::3]) == []  # 34 rows of the rare class


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_strong_columns_of_real_tables_are_not_named(load):
    assert named(load(as_frame=True).frame, "target") == []


def test_order_and_weights_do_not_matter():
    table = made(400, wrong=0.004)
    actual = leaks(evidence(table, "y"))
    assert leaks(evidence(table.sample(frac=1, random_state=1), "y")) == actual
    doubled = leaks(evidence(table, "y", np.full(400, 2.0)))
    assert doubled == leaks(evidence(pd.concat([table, table]), "y"))


@given(st.lists(st.lists(st.integers(0, 6), min_size=3, max_size=3), min_size=1, max_size=5))
def test_errors_are_those_of_leaving_every_row_out(cells):
    """By brute force: each row is taken out of the counts, which then predict it."""
    counts = np.array(cells, dtype=float).T
    prior = np.array([0.2, 0.3, 0.5])
    errors, loss = 0, 0.0
    for v in range(counts.shape[1]):
        for y in range(3):
            for _ in range(int(counts[y, v])):
                rest = counts.copy()
                rest[y, v] -= 1
                p = (rest[:, v] + 2 * prior) / (rest[:, v].sum() + 2)
                errors += not (p[y] > np.delete(p, y)).all()
                loss -= np.log(p[y])
    if counts.sum():
        actual = LeftOutErrors.of(counts, prior)
        assert actual.errors == errors
        assert actual.log_loss == pytest.approx(loss / counts.sum(), rel=1e-12)


def test_the_bound_is_that_of_a_poisson_count():
    """e errors are fewer than so many with 95 % confidence: half the quantile of χ² with 2e + 2 degrees of freedom."""
    for errors in range(4):
        least = stats.chi2.ppf(0.95, 2 * errors + 2) / 2 / 0.05  # errors of the prior
        for rows, named_ in ((2.02 * max(least, errors / 0.02), True), (1.98 * max(least, errors / 0.02), False)):
            assert LeftOutErrors(rows, np.array([0.5, 0.5]), float(errors), 0.01).near_perfect == named_


def test_fit_warns_at_the_callers_line_and_can_be_silenced():
    table = made(400)[["noise", "code", "amount", "y"]]
    model = db.EvidenceClassifier(trees=0, pairs=0)
    with pytest.warns(db.LeakageWarning, match="'code' alone predicts the class in 100 % of the rows") as caught:
        model.fit(table[["noise", "code", "y"]], "y")
    assert caught[0].filename == __file__
    with pytest.warns(db.LeakageWarning, match=r"'code' .*'amount' .* were they recorded after the outcome"):
        model.fit(table, "y")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", db.LeakageWarning)
        model.fit(table, "y")
        model.fit(table[["noise", "y"]], "y")


def test_files_warn_as_tables_do(tmp_path):
    made(400).to_csv(tmp_path / "t.csv", index=False)
    with pytest.warns(db.LeakageWarning, match="'code'"):
        db.EvidenceClassifier(trees=0, pairs=0).fit(db.scan(tmp_path / "t.csv"), "y")
