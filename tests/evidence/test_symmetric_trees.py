"""SymmetricTrees: splits and values that are fixed before rows are counted; nothing is counted."""

from dataclasses import replace

import numpy as np

from deciban.evidence.symmetric_trees import ENSEMBLES, VALUES, SymmetricTrees
from tests.evidence.test_forest import CODING, made
from tests.evidence.test_partition_counts import codes
from tests.laws import family_subject


def grown(x, labels, weights=None, classes=("a", "b", "c"), seed=0):
    return SymmetricTrees.grown(CODING, x, labels, weights, classes, seed)


X, LABELS = made(400)
TREES = grown(X, LABELS)
SUBJECTS = [replace(family_subject(TREES, codes, joint=True, fixed=True, width=TREES.width), name="SymmetricTrees")]


def test_trees_are_equal_by_what_they_hold():
    again = grown(X[::-1].copy(), LABELS[::-1].copy())
    assert again == TREES
    assert hash(again) == hash(TREES)
    assert grown(X, LABELS, seed=1) != TREES
    assert TREES != "trees"
    value = TREES.value.copy()
    value[0, 0, 0] += 1
    assert replace(TREES, value=value) != TREES


def test_many_classes_have_fewer_trees():
    labels = (np.arange(400) % 60).astype(np.int32)
    trees = grown(X, labels, classes=tuple(range(60)))
    assert trees.value.size <= VALUES
    assert len(trees.starts) == ENSEMBLES + 1


def test_trees_are_grown_from_some_of_very_many_rows(monkeypatch):
    """Rows with the same codes are drawn together, in any order."""
    monkeypatch.setattr("deciban.evidence.symmetric_trees.MOST_ROWS", 100)
    few = grown(X, LABELS, np.ones(400))
    first, second = few.rows[:, :].sum(axis=1)[[0, -1]]
    assert 20 < first < 200
    assert first != second
    assert grown(X[::-1].copy(), LABELS[::-1].copy()) == few
    monkeypatch.setattr("deciban.evidence.symmetric_trees.MOST_ROWS", 400)
    assert grown(X, LABELS) == TREES


def test_nothing_is_counted():
    assert TREES.collect(X, LABELS, None, 3).sum_x.value.shape == (3, 0)
