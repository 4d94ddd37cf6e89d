"""Readers: every block of a model has one, no other has, and each can be had without some of the rows."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from deciban.errors import DecibanError
from deciban.families import Context, Poisson
from deciban.plans import Plan, read
from deciban.statistics import Counts
from deciban.weighing.densities import Jointly, Normal
from deciban.weighing.forest_leaves import ForestLeaves
from deciban.weighing.left_out import LeftOut
from deciban.weighing.reader import Rows
from deciban.weighing.readers import readers_of, readers_without
from deciban.weighing.tables import Paired, Present, Scales, Values
from deciban.weighing.words import Words
from tests.weighing.made import (
    alike_in_pair,
    alike_in_tree,
    centred,
    collected,
    learned,
    mixed,
    sampled,
    unknown_of,
)

TABLES = (Values, Present, Scales, Paired)


def test_every_block_is_read():
    model, _ = learned()
    found = readers_of(model)
    assert [block for block, _ in found] == [*model.blocks]
    assert {type(reader) for _, reader in found} == {*TABLES, ForestLeaves, Normal, Jointly}
    words = collected(sampled(sp.csr_array(np.eye(4)), [0, 1, 0, 1]))
    assert [type(reader) for _, reader in readers_of(words)] == [Words]


def test_numbers_count_up_to_the_ends_of_what_was_seen():
    model, _ = learned()
    X, _ = mixed()
    normal = next(reader for _, reader in readers_of(model) if isinstance(reader, Normal))
    names = [X.columns[piece.columns[0]] for piece in normal.pieces]
    assert names == ["height", "width"]
    np.testing.assert_array_equal(normal.low, X[names].min())
    np.testing.assert_array_equal(normal.high, X[names].max())


def test_a_family_that_is_not_weighed_is_refused():
    model, _ = learned()
    block = replace(model.blocks[-1], plan=Plan(Poisson(), (0,)))
    with pytest.raises(DecibanError, match="no evidence is weighed of a Poisson"):
        readers_of(replace(model, blocks=(block,)))


# Without some rows ---------------------------------------------------------------------------------------------------


def values_of(block, model, sample):
    levels = block.statistic.levels if isinstance(block.statistic, Counts) else None
    return read(block.plan, sample.frame, model.schema.places(sample.frame), levels, model.missing)


def split(model, sample, inside):
    """What is left of a model without some rows, what reads it, and the labels and weights of the rows that stay."""
    rows = LeftOut.of(model, sample, 0)
    left, readers = readers_without(model, readers_of(model), rows.batch(np.flatnonzero(inside)))
    weights = np.ones(len(rows.labels)) if sample.weights is None else sample.weights
    kept = [model.classes.index(label) for label in left.classes]
    place = np.full(len(model.classes), -1, np.int32)
    place[kept] = np.arange(len(kept))
    return left, readers, place[rows.labels[~inside]], weights[~inside]


def of_counts(alike, stay, labels, weights, K, virtual):
    """(n, pieces, K) evidence by counts of the rows that stay and are like each row, alike (pieces, n, n); or zero."""
    rows = np.bincount(labels, weights, K)
    prior, found = rows / rows.sum(), np.zeros((alike.shape[1], len(alike), K))
    for p, i in np.argwhere(alike.any(axis=2)):
        counts = np.bincount(labels[alike[p, i, stay]], weights[alike[p, i, stay]], K)
        found[i, p] = centred(np.log(counts + virtual * prior) - np.log(prior))
    return found


def rows_alike(reader, values):
    """(pieces or trees, n, n) the rows that are counted for each row: those with its cells, where they are known."""
    if isinstance(reader, Paired):
        unknown = unknown_of(reader.family.reading, values)
        return np.stack([alike_in_pair(values, unknown, pair) for pair in reader.family.pairs])
    if isinstance(reader, ForestLeaves):
        unknown = unknown_of(reader.family.reading, values)
        return np.stack([alike_in_tree(reader.family, values, unknown, t) for t in range(5)])
    codes = reader.codes(values).T
    return (codes[:, :, np.newaxis] == codes[:, np.newaxis]) & (codes >= 0)[:, :, np.newaxis]


FOLDS = {
    "a few": lambda y: np.arange(len(y)) % 5 == 2,
    "one": lambda y: np.arange(len(y)) == 17,
    "all of a class": lambda y: (y == "ham") | (np.arange(len(y)) % 9 == 0),
}


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("inside", FOLDS.values(), ids=FOLDS)
def test_readers_without_rows_say_what_the_others_say(inside, weighted):
    """As readers that have never seen the rows, except for what does not look at labels: cuts, rare values, ranges."""
    _, y = mixed()
    given = np.random.default_rng(1).choice([0.5, 1.0, 2.0], len(y)) if weighted else None
    model, sample = learned(weights=given)
    inside = inside(y)
    left, readers, labels, weights = split(model, sample, inside)
    K = len(left.classes)
    assert {*left.classes} == {*y[~inside]}
    np.testing.assert_allclose(left.counts.value, np.bincount(labels, weights, K), rtol=1e-12)
    for (block, reader), (_, whole) in zip(readers, readers_of(model), strict=True):
        values = values_of(block, model, sample)
        found = reader.evidence(Rows(values))
        assert reader.pieces == whole.pieces
        if isinstance(reader, (*TABLES, ForestLeaves)):
            expected = of_counts(rows_alike(whole, values), ~inside, labels, weights, K, whole.virtual)
            if isinstance(reader, ForestLeaves):
                expected = expected.mean(axis=1, keepdims=True)
        else:
            family, own = block.plan.family, values[~inside]
            rest, context = family.collect(own, labels, weights, K), Context(left.classes, ())
            if isinstance(reader, Normal):
                ends = [np.nanmin(values, axis=0), np.nanmax(values, axis=0)]
                expected = Normal(block.plan.columns, rest, *ends).evidence(Rows(values))
            else:
                fresh = Jointly(block.plan.columns, family, rest, family.estimate(rest, context))
                expected = fresh.evidence(Rows(values))
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9, err_msg=type(reader).__name__)


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_words_without_rows_are_those_of_the_others(weighted):
    rng = np.random.default_rng(0)
    X, y = sp.csr_array(rng.poisson(0.6, (40, 7)).astype(float)), np.arange(40) % 3
    sample = sampled(X, y, rng.choice([0.5, 1.0, 2.0], 40) if weighted else None)
    model, inside = collected(sample), np.arange(40) % 4 == 1
    left, ((block, reader),), labels, weights = split(model, sample, inside)
    context = Context(left.classes, tuple(range(7)))
    fresh = Words(
        tuple(range(7)), block.plan.family, block.plan.family.collect(X[~inside], labels, weights, 3), context
    )
    np.testing.assert_allclose(reader.evidence(Rows(X)), fresh.evidence(Rows(X)), rtol=1e-9, atol=1e-10)


def test_the_readers_that_rows_are_taken_from_stay_as_they_are():
    model, sample = learned()
    readers = readers_of(model)
    before = [reader.evidence(Rows(values_of(block, model, sample))) for block, reader in readers]
    readers_without(model, readers, LeftOut.of(model, sample, 0).batch(np.arange(100)))
    for (block, reader), expected in zip(readers, before, strict=True):
        np.testing.assert_array_equal(reader.evidence(Rows(values_of(block, model, sample))), expected)


def test_pairs_are_admitted_by_what_rows_say():
    """Columns left and right tell the class together; of labels in another order no pair does."""
    model, sample = learned(400)
    block, reader = next(found for found in readers_of(model) if isinstance(found[1], Paired))
    codes, labels = values_of(block, model, sample), sample.labels.codes
    assert reader.chosen
    assert reader.admitted(Rows(codes, labels)).any()
    assert reader.admitted(Rows(codes, labels, np.full(len(labels), 2.0))).any()
    assert not reader.admitted(Rows(codes, np.random.default_rng(0).permutation(labels))).any()
    others = [other for _, other in readers_of(model) if other is not reader and not isinstance(other, Paired)]
    assert not any(other.chosen for other in others)
