"""Kinds of evidence: every block of a model has one, and rows can be subtracted from each."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from deciban.data.matched_frame import MatchedFrame
from deciban.errors import DecibanError
from deciban.evidence.block_evidence import Rows
from deciban.evidence.boosted_trees import BoostedTrees
from deciban.evidence.densities import GaussianEvidence, JointGaussian
from deciban.evidence.evidence_by_block import evidence_by_block, subtract_rows
from deciban.evidence.evidence_rows import EvidenceRows
from deciban.evidence.forest_leaves import ForestLeaves
from deciban.evidence.pair_tables import PairTables
from deciban.evidence.tables import BinTables, LevelTables, MissingnessTable
from deciban.evidence.term_evidence import TermEvidence
from deciban.families import Context, Poisson
from deciban.families.labelled_values import LabelledValues
from deciban.generative.plan import Plan
from tests.evidence.reference import (
    alike_in_pair,
    alike_in_tree,
    centred,
    collected,
    learned,
    mixed,
    sampled,
    unknown_of,
)

TABLES = (LevelTables, MissingnessTable, BinTables, PairTables)


def test_every_block_has_evidence():
    model, _ = learned()
    actual = evidence_by_block(model)
    assert [block for block, _ in actual] == [*model.blocks]
    trees = {ForestLeaves, BoostedTrees}
    assert {type(source) for _, source in actual} == {*TABLES, *trees, GaussianEvidence, JointGaussian}
    words = collected(sampled(sp.csr_array(np.eye(4)), [0, 1, 0, 1]))
    assert [type(source) for _, source in evidence_by_block(words)] == [TermEvidence]


def test_numbers_count_up_to_the_ends_of_what_was_seen():
    model, _ = learned()
    X, _ = mixed()
    normal = next(source for _, source in evidence_by_block(model) if isinstance(source, GaussianEvidence))
    names = [X.columns[piece.columns[0]] for piece in normal.pieces]
    assert names == ["height", "width"]
    np.testing.assert_array_equal(normal.low, X[names].min())
    np.testing.assert_array_equal(normal.high, X[names].max())


def test_a_family_without_evidence_raises():
    model, _ = learned()
    block = replace(model.blocks[-1], plan=Plan(Poisson(), (0,)))
    with pytest.raises(DecibanError, match="no evidence for a block of Poisson"):
        evidence_by_block(replace(model, blocks=(block,)))


# Without some rows ---------------------------------------------------------------------------------------------------


def values_of(block, model, sample):
    return block.read(MatchedFrame(model.schema, sample.frame))


def split(model, sample, inside):
    """What is left of a model without some rows, what reads it, and the labels and weights of the rows that stay."""
    rows = EvidenceRows.of_training(model, sample, 0)
    left, sources = subtract_rows(model, evidence_by_block(model), rows.batch(np.flatnonzero(inside)))
    weights = np.ones(len(rows.labels)) if sample.weights is None else sample.weights
    kept = [model.classes.index(label) for label in left.classes]
    place = np.full(len(model.classes), -1, np.int32)
    place[kept] = np.arange(len(kept))
    return left, sources, place[rows.labels[~inside]], weights[~inside]


def of_counts(alike, stay, labels, weights, K, virtual):
    """(n, pieces, K) evidence by counts of the rows that stay and are like each row, alike (pieces, n, n); or zero."""
    rows = np.bincount(labels, weights, K)
    prior, actual = rows / rows.sum(), np.zeros((alike.shape[1], len(alike), K))
    for p, i in np.argwhere(alike.any(axis=2)):
        counts = np.bincount(labels[alike[p, i, stay]], weights[alike[p, i, stay]], K)
        actual[i, p] = centred(np.log(counts + virtual * prior) - np.log(prior))
    return actual


def rows_alike(source, values):
    """(pieces or trees, n, n) the rows that are counted for each row: those with its cells, where they are known."""
    if isinstance(source, PairTables):
        unknown = unknown_of(source.family.reading, values)
        return np.stack([alike_in_pair(values, unknown, pair) for pair in source.family.pairs])
    if isinstance(source, ForestLeaves):
        unknown = unknown_of(source.family.reading, values)
        return np.stack([alike_in_tree(source.family, values, unknown, t) for t in range(5)])
    codes = source.codes(values).T
    return (codes[:, :, np.newaxis] == codes[:, np.newaxis]) & (codes >= 0)[:, :, np.newaxis]


FOLDS = {
    "a few": lambda y: np.arange(len(y)) % 5 == 2,
    "one": lambda y: np.arange(len(y)) == 17,
    "all of a class": lambda y: (y == "ham") | (np.arange(len(y)) % 9 == 0),
}


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("inside", FOLDS.values(), ids=FOLDS)
def test_evidence_without_rows_is_that_of_the_other_rows(inside, weighted):
    """As sources that have never seen the rows, except for what does not look at labels: cuts, rare values, ranges."""
    _, y = mixed()
    given = np.random.default_rng(1).choice([0.5, 1.0, 2.0], len(y)) if weighted else None
    model, sample = learned(weights=given)
    inside = inside(y)
    left, sources, labels, weights = split(model, sample, inside)
    K = len(left.classes)
    assert {*left.classes} == {*y[~inside]}
    np.testing.assert_allclose(left.counts.value, np.bincount(labels, weights, K), rtol=1e-12)
    for (block, source), (_, whole) in zip(sources, evidence_by_block(model), strict=True):
        values = values_of(block, model, sample)
        actual = source.evidence(Rows(values))
        assert source.pieces == whole.pieces
        if isinstance(source, (*TABLES, ForestLeaves)):
            expected = of_counts(rows_alike(whole, values), ~inside, labels, weights, K, whole.virtual_rows)
            if isinstance(source, ForestLeaves):
                expected = expected.mean(axis=1, keepdims=True)
        elif isinstance(source, BoostedTrees):  # its values are fixed, as weights are
            kept = [model.classes.index(label) for label in left.classes]
            expected = centred(whole.evidence(Rows(values))[..., kept])
        else:
            family, own = block.plan.family, values[~inside]
            rest, context = family.collect(own, labels, weights, K), Context(left.classes, ())
            if isinstance(source, GaussianEvidence):
                ends = [np.nanmin(values, axis=0), np.nanmax(values, axis=0)]
                expected = GaussianEvidence(block.plan.columns, rest, *ends).evidence(Rows(values))
            else:
                fresh = JointGaussian(block.plan.columns, family, rest, family.estimate(rest, context))
                expected = fresh.evidence(Rows(values))
        np.testing.assert_allclose(actual, expected, rtol=1e-8, atol=1e-9, err_msg=type(source).__name__)


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_words_without_rows_are_those_of_the_other_rows(weighted):
    rng = np.random.default_rng(0)
    X, y = sp.csr_array(rng.poisson(0.6, (40, 7)).astype(float)), np.arange(40) % 3
    sample = sampled(X, y, rng.choice([0.5, 1.0, 2.0], 40) if weighted else None)
    model, inside = collected(sample), np.arange(40) % 4 == 1
    left, ((block, source),), labels, weights = split(model, sample, inside)
    context = Context(left.classes, tuple(range(7)))
    fresh = TermEvidence(
        tuple(range(7)), block.plan.family, block.plan.family.collect(X[~inside], labels, weights, 3), context
    )
    np.testing.assert_allclose(source.evidence(Rows(X)), fresh.evidence(Rows(X)), rtol=1e-9, atol=1e-10)


def test_subtracting_rows_leaves_the_evidence_unchanged():
    model, sample = learned()
    sources = evidence_by_block(model)
    before = [source.evidence(Rows(values_of(block, model, sample))) for block, source in sources]
    subtract_rows(model, sources, EvidenceRows.of_training(model, sample, 0).batch(np.arange(100)))
    for (block, source), expected in zip(sources, before, strict=True):
        np.testing.assert_array_equal(source.evidence(Rows(values_of(block, model, sample))), expected)


def test_pairs_are_selected_by_the_gain_of_rows():
    """The features left and right are informative together; with shuffled labels no pair is."""
    model, sample = learned(400)
    block, source = next(actual for actual in evidence_by_block(model) if isinstance(actual[1], PairTables))
    codes, labels = values_of(block, model, sample), sample.labels.codes
    assert source.selected_by_labels
    assert source.selected(LabelledValues(codes, labels)).any()
    assert source.selected(LabelledValues(codes, labels, np.full(len(labels), 2.0))).any()
    assert not source.selected(LabelledValues(codes, np.random.default_rng(0).permutation(labels))).any()
    others = [
        other for _, other in evidence_by_block(model) if other is not source and not isinstance(other, PairTables)
    ]
    assert not any(other.selected_by_labels for other in others)
