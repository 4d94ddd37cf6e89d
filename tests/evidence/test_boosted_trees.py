"""Boosted trees as evidence: of held-out ensembles for training rows, in pieces by rounds, for any classes."""

import numpy as np
import pytest

from deciban.evidence.block_evidence import Rows
from deciban.evidence.boosted_trees import BoostedTrees
from deciban.evidence.symmetric_trees import ENSEMBLES
from deciban.families.labelled_values import LabelledValues
from tests.evidence.test_symmetric_trees import LABELS, TREES, X, grown

COLUMNS = (4, 5, 6)


EVIDENCE = BoostedTrees(COLUMNS, TREES, TREES.classes)


def leaf(trees, row, t):
    """The leaf of a row without unknown values, by the rules as they are written."""
    place = 0
    for column, code in zip(trees.column[t], trees.code[t], strict=True):
        left = column < 0 or (row[column] <= code if trees.reading.ordered[column] else row[column] == code)
        place = 2 * place + (not left)
    return place


def sums(trees, row, of):
    """(K) the sum of values of some trees, centred."""
    total = sum((trees.value[t, leaf(trees, row, t)].astype(float) for t in of), np.zeros(trees.value.shape[2]))
    total = np.array([-0.5, 0.5]) * total if len(total) == 1 else total
    return total - total.mean()


@pytest.mark.parametrize("classes", [2, 3])
def test_pieces_are_sums_over_rounds_by_ensembles(classes):
    """A training row has the ensemble that never saw it, a new row the mean of all."""
    labels = LABELS % classes
    trees = grown(X, labels, classes=("a", "b", "c")[:classes])
    source = BoostedTrees(COLUMNS, trees, trees.classes)
    assert [piece.kind for piece in source.pieces] == ["boosting 1", "boosting 2", "boosting 3"]
    known = np.flatnonzero(~trees.reading.unknown(X).any(axis=1))[:25]
    new, own = source.evidence(Rows(X[known])), source.evidence(Rows(X[known], labels[known]))
    for i, row in enumerate(X[known]):
        fold = int(trees.held_out_from(X)[known[i]])
        for p in range(3):
            by_ensemble = []
            for e in range(ENSEMBLES):
                first, end = trees.starts[e : e + 2]
                quarter = (np.arange(end - first) + 0.5) / (end - first)
                of = first + np.flatnonzero(np.searchsorted([0.25, 0.5], quarter) == p)
                by_ensemble.append(sums(trees, row, of))
            np.testing.assert_allclose(own[i, p], by_ensemble[fold], atol=1e-9)
            np.testing.assert_allclose(new[i, p], np.mean(by_ensemble, axis=0), atol=1e-9)


def test_the_label_of_a_row_has_no_part_in_the_trees_that_score_it():
    """It has one in how many there are: they are chosen by other ensembles, to which it is a training row."""
    changed = LABELS.copy()
    fold = TREES.held_out_from(X)
    changed[fold == 2] = (changed[fold == 2] + 1) % 3
    other = grown(X, changed)
    common = min(other.starts[3] - other.starts[2], TREES.starts[3] - TREES.starts[2])
    for name in ("column", "code", "value", "rows"):
        one, two = (getattr(trees, name)[trees.starts[2] :][:common] for trees in (TREES, other))
        np.testing.assert_array_equal(one, two)
    assert not np.array_equal(other.value[:20], TREES.value[:20])


def test_a_row_without_known_values_has_no_evidence():
    everything = Rows(X, hidden=frozenset(COLUMNS))
    np.testing.assert_allclose(EVIDENCE.evidence(everything), 0.0, atol=1e-5)  # values are of single precision
    one = EVIDENCE.evidence(Rows(X, hidden=frozenset({5})))
    unknown = X.copy()
    unknown[:, 1] = 0
    np.testing.assert_array_equal(one, EVIDENCE.evidence(Rows(unknown)))
    assert np.abs(one - EVIDENCE.evidence(Rows(X))).max() > 0.01


def test_other_classes_than_those_of_the_trees():
    """Classes have values by their labels; one that the trees do not know has no evidence."""
    whole = EVIDENCE.evidence(Rows(X))
    fewer = EVIDENCE.subtract(LabelledValues(X, LABELS), np.array([0, 2]))
    rest = whole[..., [0, 2]]
    np.testing.assert_allclose(fewer.evidence(Rows(X)), rest - rest.mean(axis=-1, keepdims=True), atol=1e-12)
    more = BoostedTrees(COLUMNS, TREES, ("c", "new", "a", "b")).evidence(Rows(X))
    np.testing.assert_allclose(more[..., [2, 3, 0]], whole, atol=1e-12)
    assert not more[..., 1].any()
    assert not BoostedTrees(COLUMNS, TREES, ("x", "y")).evidence(Rows(X)).any()
