"""Weighed: scores are the prior, the bias and the weighed evidence, and their parts are those of columns."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from deciban.errors import DecibanError
from deciban.families import Gaussian
from deciban.sources import frame_of
from deciban.weighing.readers import readers_of
from deciban.weighing.structure import joint_plans
from deciban.weighing.weighed import DECIBANS, SHOWN, Weighed, weigh
from deciban.weighing.weights import Weights
from tests.weighing.made import collected, gathered, mixed, sampled

N = min(200, SHOWN)


def model_of(X, y, weights=None, trees=5):
    sample = sampled(X, y, weights)
    return collected(sample, lambda single, rows: joint_plans(single, rows, None, trees, 0)), sample


@pytest.fixture(scope="module")
def known():
    """A model with weights of all pieces that were drawn by lot, so that no piece is silent."""
    X, y = mixed(N)
    evidence, sample = model_of(X, y)
    pieces = [piece for _, reader in readers_of(evidence) for piece in reader.pieces]
    rng = np.random.default_rng(0)
    names = evidence.schema.names
    weights = Weights(
        evidence.classes,
        tuple(piece.kind for piece in pieces),
        tuple(tuple(names[j] for j in piece.columns) for piece in pieces),
        rng.exponential(0.3, (len(pieces), 3)),
        rng.normal(size=3),
        3.0,
        N,
    )
    return Weighed(evidence, readers_of(evidence), weights, "empirical"), sample, X, y


def joint(weighed, frame):
    out = np.empty((frame.rows, len(weighed.evidence.classes)))
    weighed.joint(frame, out)
    return out


def test_scores_are_the_sum_that_is_written(known):
    weighed, sample, _, y = known
    evidence, _, _ = gathered(weighed.evidence, sample, learned=False)
    expected = np.log(np.unique(y, return_counts=True)[1] / N) + weighed.weights.bias
    expected = expected + np.einsum("cnp,pc->nc", evidence.values, weighed.weights.values)
    np.testing.assert_allclose(joint(weighed, sample.frame), expected, rtol=1e-9, atol=1e-9)


def test_parts_sum_to_the_scores_and_are_those_of_columns_and_pairs(known):
    weighed, sample, X, _ = known
    names, parts = weighed.parts(sample.frame)
    np.testing.assert_allclose(np.sum(parts, axis=0), joint(weighed, sample.frame), rtol=1e-8, atol=1e-8)
    assert names[: 1 + len(X.columns)] == ["prior", *X.columns]
    assert "left + right" in names[1 + len(X.columns) :]
    assert all(name.count(" + ") == 1 for name in names[1 + len(X.columns) :])
    assert all(part.shape == (N, 3) for part in parts)


def test_a_column_has_its_pieces_whatever_the_others_hold(known):
    """But for joint densities and trees: without those, its part depends on its own cells alone."""
    weighed, _, X, y = known
    single = {"value", "normal", "present", "supervised bins"}
    chosen = [p for p, kind in enumerate(weighed.weights.kinds) if kind in single or kind.endswith(" bins")]
    weights = Weights(
        weighed.weights.classes,
        tuple(weighed.weights.kinds[p] for p in chosen),
        tuple(weighed.weights.columns[p] for p in chosen),
        weighed.weights.values[chosen],
        weighed.weights.bias,
        3.0,
        N,
    )
    alone = Weighed(weighed.evidence, weighed.blocks, weights, "empirical")
    names, parts = alone.parts(frame_of(X))
    other = X.sample(frac=1, random_state=1, ignore_index=True).assign(height=X["height"])
    _, changed = alone.parts(frame_of(other))
    j = names.index("height")
    np.testing.assert_array_equal(parts[j], changed[j])
    assert {len(reader.pieces) for _, reader, _ in alone.readers} != {0}
    assert len(y) == N


def test_columns_may_stand_in_another_order_and_more_may_be_there(known):
    weighed, sample, X, _ = known
    turned = frame_of(X[X.columns[::-1]].assign(more=1.0))
    np.testing.assert_array_equal(joint(weighed, turned), joint(weighed, sample.frame))
    with pytest.raises(DecibanError, match="lacks column 'colour'"):
        joint(weighed, frame_of(X.drop(columns="colour")))


def test_the_class_prior_may_be_given(known):
    weighed, sample, _, _ = known
    given = Weighed(weighed.evidence, weighed.blocks, weighed.weights, [0.2, 0.3, 0.5])
    shift = joint(given, sample.frame) - joint(weighed, sample.frame)
    expected = np.log([0.2, 0.3, 0.5]) - weighed.log_prior
    np.testing.assert_allclose(shift, np.tile(expected, (N, 1)), rtol=1e-9, atol=1e-10)


def test_only_blocks_that_count_are_read(known):
    weighed, sample, _, _ = known
    few = replace(weighed, weights=Weights.none(weighed.evidence.classes))
    assert not any(weights.any() for _, _, weights in few.readers)  # but for those that refuse infinite numbers
    assert {type(block.plan.family) for block, _, _ in few.readers} <= {Gaussian}
    np.testing.assert_allclose(joint(few, sample.frame), np.tile(few.log_prior, (N, 1)), rtol=1e-14)
    assert len(weighed.readers) == len(weighed.evidence.blocks)


def test_rows_left_out_are_judged_by_their_left_out_evidence(known):
    weighed, sample, _, y = known
    evidence, _, _ = gathered(weighed.evidence, sample)
    z = weighed.log_prior + weighed.weights.bias
    z = z + np.einsum("cnp,pc->nc", evidence.values, weighed.weights.values)
    judged = weighed.left_out(sample, 0)
    np.testing.assert_allclose(judged.proba, softmax(z, axis=1), rtol=1e-8, atol=1e-12)
    assert [weighed.evidence.classes[k] for k in judged.labels] == y.tolist()
    assert judged.weights is None


def test_without_its_only_row_a_class_is_impossible():
    X, y = mixed(60)
    y = np.where(np.arange(60) == 7, "once", y)
    evidence, sample = model_of(X, y)
    readers = readers_of(evidence)
    weights = Weights.learned(evidence, readers, sample, 0)
    judged = Weighed(evidence, readers, weights, "empirical").left_out(sample, 0)
    once = evidence.classes.index("once")
    assert judged.proba[7, once] == 0.0
    np.testing.assert_allclose(judged.proba.sum(axis=1), 1.0, rtol=1e-12)


# What columns contribute ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_what_a_column_contributes_is_its_mean_for_the_right_class_against_the_others(weighted):
    X, y = mixed(N)
    given = np.random.default_rng(1).choice([0.5, 1.0, 3.0], N) if weighted else None
    evidence, sample = model_of(X, y, given)
    weights = weigh(evidence, readers_of(evidence), sample, 0)
    names, parts = Weighed(evidence, readers_of(evidence), weights, "empirical").parts(sample.frame)
    label = np.array([evidence.classes.index(c) for c in y])
    for name, part, decibans in zip(names[1:], parts[1:], weights.decibans, strict=True):
        own = part[np.arange(N), label]
        others = (part.sum(axis=1) - own) / 2
        assert decibans == pytest.approx(np.average(own - others, weights=given) * DECIBANS, rel=1e-9, abs=1e-9), name
    assert [" + ".join(part) for part in weights.parts] == names[1:]


def test_many_rows_are_represented_by_some():
    X, y = mixed(SHOWN + 300)
    evidence, sample = model_of(X, y, trees=0)
    weights = weigh(evidence, readers_of(evidence), sample, 0)
    order = np.random.default_rng(2).permutation(len(y))
    turned = weigh(evidence, readers_of(evidence), sample.take(order), 0)
    np.testing.assert_allclose(turned.decibans, weights.decibans, rtol=1e-6, atol=1e-9)
    best = weights.parts[int(np.argmax(weights.decibans))]
    assert best in {("code",), ("left", "right")}


def test_new_rows_may_be_weighed_too():
    X, y = mixed(N)
    evidence, _ = model_of(X, y)
    fresh = sampled(*mixed(N, seed=9))
    weights = weigh(evidence, readers_of(evidence), fresh, 0, learned=False)
    new, pieces, _ = gathered(evidence, fresh, learned=False)
    z = np.einsum("cnp,pc->nc", new.values, weights.of(pieces, evidence.schema.names, evidence.classes))
    z = new.offset + weights.bias + z
    rows = np.arange(N), new.labels
    assert log_softmax(z, axis=1)[rows].mean() > new.offset[rows].mean() + 0.3
