"""Kinds of evidence that many rows show to gain nothing are left out."""

import numpy as np
import pandas as pd
import pytest

import deciban as db
from deciban.data import Sample, frame_of
from deciban.data.labels import encode_labels
from deciban.data.schema import Schema
from deciban.estimators.evidence_fit import MISSING
from deciban.evidence import kind_selection
from deciban.evidence.boosted_trees import BoostedTrees
from deciban.evidence.densities import JointGaussian
from deciban.evidence.forest_leaves import ForestLeaves
from deciban.evidence.kind_selection import kinds_without_gain
from deciban.evidence.pair_tables import PairTables
from deciban.evidence.structure import JointSettings, first_plans

ALL = {PairTables, JointGaussian, ForestLeaves, BoostedTrees}
ROWS = 4_000
SETTINGS = JointSettings(None, 128, 0)


def table(seed=0):
    """Five features that are independent given the class, and two whose parity is the class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, ROWS)
    X = pd.DataFrame({f"x{j}": rng.normal(0.6 * y) for j in range(4)})
    X["colour"] = np.where(rng.random(ROWS) < 0.5 + 0.2 * y, "red", "blue")
    a = rng.integers(0, 2, ROWS)
    parity = pd.DataFrame({"a": a.astype(str), "b": (a ^ y ^ (rng.random(ROWS) < 0.1)).astype(str)})
    return X, parity, y


def without_gain(X, y, settings=SETTINGS):
    sample = Sample(frame_of(X), encode_labels(y), None)
    schema = Schema.of(sample.frame)
    return set(kinds_without_gain(sample, schema, first_plans(schema, sparse=False), MISSING, settings))


def test_features_that_are_independent_need_no_evidence_of_several():
    X, _, y = table()
    assert without_gain(X, y) >= {ForestLeaves, BoostedTrees}


def test_a_kind_that_predicts_better_is_used():
    X, parity, y = table()
    assert len(without_gain(pd.concat([X, parity], axis=1), y)) < len(ALL)


def test_pairs_that_are_asked_for_are_used():
    X, _, y = table()
    assert PairTables not in without_gain(X, y, JointSettings(3, 128, 0))


def test_the_order_of_rows_does_not_matter_to_what_a_fit_uses(monkeypatch):
    """In a table of many rows; in one of few, all kinds are used."""
    X, parity, y = table()
    X = pd.concat([X, parity], axis=1)
    whole = db.EvidenceClassifier().fit(X, y)
    assert {type(source) for block, source in whole.weighted_evidence_.blocks if block.family.joint} == ALL
    monkeypatch.setattr(kind_selection, "FEWEST_ROWS", 2_000)
    monkeypatch.setattr(kind_selection, "ROWS", 1_500)
    order = np.random.default_rng(1).permutation(ROWS)
    models = [db.EvidenceClassifier().fit(X.iloc[rows], y[rows]) for rows in (np.arange(ROWS), order)]
    assert models[0].generative_.plans == models[1].generative_.plans
    np.testing.assert_allclose(models[0].predict_proba(X[:50]), models[1].predict_proba(X[:50]), rtol=1e-6)
    assert {block.plan for block in models[0].generative_.blocks} != {block.plan for block in whole.generative_.blocks}


@pytest.mark.parametrize("rows", [1, 50])
def test_one_class_tells_nothing(rows):
    X, _, _ = table()
    assert without_gain(X[:rows], np.zeros(rows, int)) == set()
