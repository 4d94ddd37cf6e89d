"""WeightedEvidence: scores are the prior, the bias and the weighted evidence, split by features."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax

from deciban.data import frame_of
from deciban.errors import DecibanError
from deciban.evidence.evidence_by_block import evidence_by_block
from deciban.evidence.evidence_rows import EvidenceRows
from deciban.evidence.folds import FOLDS
from deciban.evidence.structure import JointSettings, joint_plans
from deciban.evidence.weighted_evidence import WeightedEvidence
from deciban.evidence.weights import UnknownColumns, Weights
from deciban.families import Gaussian
from tests.evidence.reference import centred, collected, fit_weights, fold_of, gathered, left_out, mixed, sampled

N = 120
LIMIT = 0.02


def model_of(X, y, weights=None, trees=5):
    sample = sampled(X, y, weights)
    return collected(sample, lambda single, rows: joint_plans(single, rows, JointSettings(None, trees, 0))), sample


@pytest.fixture(scope="module")
def known():
    """A model with weights of all pieces that were drawn by lot, so that no piece is silent."""
    X, y = mixed(N)
    evidence, sample = model_of(X, y)
    pieces = [piece for _, source in evidence_by_block(evidence) for piece in source.pieces]
    rng = np.random.default_rng(0)
    names = evidence.schema.names
    weights = Weights(
        evidence.classes,
        tuple(piece.kind for piece in pieces),
        tuple(tuple(names[j] for j in piece.columns) for piece in pieces),
        rng.exponential(0.3, (len(pieces), 3)),
        rng.normal(size=3),
        rng.exponential(0.3, (FOLDS, len(pieces), 3)),
        rng.normal(size=(FOLDS, 3)),
        LIMIT,
        {"prior": 1.0},
        N,
        UnknownColumns.none(len(pieces), 3),
    )
    return WeightedEvidence(evidence, evidence_by_block(evidence), weights, "empirical"), sample, X, y


def joint(weighted, frame):
    out = np.empty((frame.rows, len(weighted.evidence.classes)))
    weighted.joint(frame, out)
    return out


def limited(z, prior):
    """log ((1 − ε)·softmax(z) + ε·p(c))."""
    return np.log((1.0 - LIMIT) * softmax(z, axis=1) + LIMIT * prior)


def test_scores_are_the_sum_that_is_written(known):
    weighted, sample, _, y = known
    evidence, _, _ = gathered(weighted.evidence, sample, held_out=True)
    prior = np.unique(y, return_counts=True)[1] / N
    z = np.log(prior) + weighted.weights.bias + np.einsum("cnp,pc->nc", evidence.values, weighted.weights.values)
    np.testing.assert_allclose(joint(weighted, sample.frame), limited(z, prior), rtol=1e-9, atol=1e-9)
    unlimited = replace(weighted, weights=replace(weighted.weights, prior_share=0.0))
    np.testing.assert_allclose(joint(unlimited, sample.frame), z, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("by", ["column", "pair"])
def test_contributions_sum_to_the_scores(known, by):
    """Apart from what is common to all classes: decibans of one class against another are exact sums."""
    weighted, sample, X, _ = known
    actual = weighted.contributions(sample.frame, by)
    expected = centred(joint(weighted, sample.frame))
    np.testing.assert_allclose(centred(actual.nats.sum(axis=1)), expected, rtol=1e-8, atol=1e-8)
    names = [line.name for line in actual.lines]
    assert names[: 1 + len(X.columns)] == ["prior", *X.columns]
    assert names[-2:] == ["intercept", f"limit of {N} rows"]
    pairs = names[1 + len(X.columns) : -2]
    assert ("left + right" in pairs) if by == "pair" else not pairs
    assert [line.columns for line in actual.lines[1 : 1 + len(X.columns)]] == [(j,) for j in range(len(X.columns))]


def test_pairs_are_shared_by_their_features(known):
    weighted, sample, X, _ = known
    by_column, by_pair = weighted.contributions(sample.frame), weighted.contributions(sample.frame, "pair")
    none = replace(weighted, weights=replace(weighted.weights, bias=np.zeros(3)))
    assert "intercept" not in [line.name for line in none.contributions(sample.frame).lines]
    moved = by_column.nats[:, 1 : 1 + len(X.columns)] - by_pair.nats[:, 1 : 1 + len(X.columns)]
    pairs = {line.columns: by_pair.nats[:, i] for i, line in enumerate(by_pair.lines) if len(line.columns) == 2}
    np.testing.assert_allclose(moved.sum(axis=1), sum(pairs.values()), rtol=1e-9, atol=1e-9)
    alone = [j for j in range(len(X.columns)) if not any(j in columns for columns in pairs)]
    np.testing.assert_allclose(moved[:, alone], 0.0, atol=1e-12)


def test_the_limit_bounds_the_odds_and_moves_no_order(known):
    """p ≥ ε·p(c), whatever the evidence; the class that is more probable than by its prior stays so."""
    weighted, sample, _, _ = known
    sure = replace(weighted, weights=replace(weighted.weights, values=1e3 * weighted.weights.values))
    prior, p = np.exp(weighted.log_prior), np.exp(joint(sure, sample.frame))
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    assert (p >= LIMIT * prior * (1 - 1e-12)).all()
    assert p.max() <= 1 - LIMIT * (1 - prior.max()) + 1e-12
    assert p.max() > 1 - 1.001 * LIMIT


def test_the_pieces_of_a_feature_do_not_depend_on_others(known):
    """Without joint densities and trees, its share depends on its own values alone."""
    weighted, _, X, y = known
    single = {"value", "normal", "present"}
    chosen = [p for p, kind in enumerate(weighted.weights.kinds) if kind in single or kind.endswith(" bins")]
    weights = replace(
        weighted.weights,
        kinds=tuple(weighted.weights.kinds[p] for p in chosen),
        columns=tuple(weighted.weights.columns[p] for p in chosen),
        values=weighted.weights.values[chosen],
        fold_values=weighted.weights.fold_values[:, chosen],
        unknown=weighted.weights.unknown.of_pieces(chosen),
    )
    alone = WeightedEvidence(weighted.evidence, weighted.blocks, weights, "empirical")
    actual = alone.column_shares(frame_of(X))
    other = X.sample(frac=1, random_state=1, ignore_index=True).assign(height=X["height"])
    j = list(X.columns).index("height")
    np.testing.assert_array_equal(actual[:, j], alone.column_shares(frame_of(other))[:, j])
    assert actual[:, j].any()
    assert {len(source.pieces) for _, source, _ in alone.sources} != {0}
    assert len(y) == N


def test_columns_may_stand_in_another_order_and_more_may_be_there(known):
    weighted, sample, X, _ = known
    reordered = frame_of(X[X.columns[::-1]].assign(more=1.0))
    np.testing.assert_array_equal(joint(weighted, reordered), joint(weighted, sample.frame))
    with pytest.raises(DecibanError, match="lacks column 'colour'"):
        joint(weighted, frame_of(X.drop(columns="colour")))


def test_the_class_prior_may_be_given(known):
    weighted, sample, _, _ = known
    given = WeightedEvidence(weighted.evidence, weighted.blocks, weighted.weights, [0.2, 0.3, 0.5])
    plain = replace(weighted.weights, prior_share=0.0)
    shift = joint(replace(given, weights=plain), sample.frame) - joint(replace(weighted, weights=plain), sample.frame)
    expected = np.log([0.2, 0.3, 0.5]) - weighted.log_prior
    np.testing.assert_allclose(shift, np.tile(expected, (N, 1)), rtol=1e-9, atol=1e-10)
    z = joint(replace(given, weights=plain), sample.frame)  # the limit is that of the prior that is given
    np.testing.assert_allclose(joint(given, sample.frame), limited(z, np.array([0.2, 0.3, 0.5])), rtol=1e-9, atol=1e-9)


def test_only_blocks_that_count_are_read(known):
    weighted, sample, _, _ = known
    few = replace(weighted, weights=Weights.none(weighted.evidence.classes))
    assert not any(weights.any() for _, _, weights in few.sources)  # except those that reject infinite numbers
    assert {type(block.plan.family) for block, _, _ in few.sources} <= {Gaussian}
    np.testing.assert_allclose(joint(few, sample.frame), np.tile(few.log_prior, (N, 1)), rtol=1e-14)
    assert len(weighted.sources) == len(weighted.evidence.blocks)


def test_left_out_rows_are_scored_by_leave_one_out_evidence_and_weights_of_their_fold(known):
    weighted, sample, _, y = known
    evidence, _, keys = gathered(weighted.evidence, sample)
    fold, counts = fold_of(keys), np.unique(y, return_counts=True)[1].astype(float)
    expected = np.empty((N, 3))
    for i in range(N):
        prior = counts - (np.arange(3) == evidence.labels[i])
        prior /= prior.sum()
        w, bias = weighted.weights.fold_values[fold[i]], weighted.weights.fold_bias[fold[i]]
        z = np.log(prior) + bias + np.einsum("cp,pc->c", evidence.values[:, i], w)
        expected[i] = np.exp(limited(z[np.newaxis], prior)[0])
    predictions = left_out(weighted, sample)
    np.testing.assert_allclose(predictions.proba, expected, rtol=1e-8, atol=1e-12)
    assert [weighted.evidence.classes[k] for k in predictions.labels] == y.tolist()
    assert predictions.weights is None
    assert {*fold.tolist()} == {*range(FOLDS)}


def test_left_out_rows_are_scored_by_blocks_with_weights_in_their_folds_only(known):
    """As if one candidate is fitted to all rows, and several to folds."""
    weighted, sample, _, _ = known
    silent = replace(weighted, weights=replace(weighted.weights, values=0.0 * weighted.weights.values))
    np.testing.assert_array_equal(left_out(silent, sample).proba, left_out(weighted, sample).proba)


# Unknown columns -----------------------------------------------------------------------------------------------------

CHANGING = ("height", "colour", "code", "flag", "width")
INFORMATIVE = {"colour"}  # a missing value is evidence: only an unseen value is unknown


@pytest.fixture(scope="module")
def changing(known):
    """The same model, with changes of unknown columns that were drawn by lot."""
    weighted, *rest = known
    P, rng = len(weighted.weights.kinds), np.random.default_rng(1)
    values, bias = rng.normal(0, 0.2, (1 + FOLDS, 5, P, 3)), rng.normal(size=(1 + FOLDS, 5, 3))
    unknown = UnknownColumns(
        CHANGING, tuple(name in INFORMATIVE for name in CHANGING), values[0], bias[0], values[1:], bias[1:]
    )
    return replace(weighted, weights=replace(weighted.weights, unknown=unknown)), *rest


def partly_unknown(X):
    """Rows with missing and unseen values: in one, in several and in all features."""
    rng = np.random.default_rng(2)
    mask = rng.random(X.shape) < rng.choice([0.0, 0.2, 0.8], len(X))[:, np.newaxis]
    mask[0], mask[1] = True, False
    rows = X.astype({"flag": object}).mask(mask, None).astype({"height": float, "width": float})
    rows.loc[::5, "code"], rows.loc[1::7, "colour"] = "never seen", "never seen"
    return rows


def unknown_in(rows):
    """(n, C) which features are unknown."""
    actual = np.zeros((len(rows), len(CHANGING)), np.bool_)
    for c, name in enumerate(CHANGING):
        for i, cell in enumerate(rows[name]):
            missing = cell is None or cell != cell
            actual[i, c] = cell == "never seen" or (missing and name not in INFORMATIVE)
    return actual


def weights_of_row(weights, row):
    """(P, K) and (K) for a row: changes add up, and pieces of an unknown feature alone have weight 0."""
    values, bias = weights.values.copy(), weights.bias.copy()
    for c in np.flatnonzero(row):
        values += weights.unknown.values[c]
        bias += weights.unknown.bias[c]
    values = np.maximum(values, 0.0)
    for p, (kind, columns) in enumerate(zip(weights.kinds, weights.columns, strict=True)):
        if kind != "present" and columns in [(CHANGING[c],) for c in np.flatnonzero(row)]:
            values[p] = 0.0
    return values, bias * ((5 - row.sum()) / 4 if row.any() else 1.0)


def by_row(weights, evidence, log_prior, unknown):
    """(n, K) the scores, each row with its own weights."""
    z = np.empty((len(unknown), 3))
    for i, row in enumerate(unknown):
        values, bias = weights_of_row(weights, row)
        z[i] = log_prior[i] + bias + np.einsum("cp,pc->c", evidence[:, i], values)
    return z


def test_scores_of_rows_with_unknown_columns_have_weights_of_their_own(changing):
    weighted, _, X, y = changing
    rows = partly_unknown(X)
    unknown = unknown_in(rows)
    assert {0, 1, 2, 4} <= {*unknown.sum(axis=1).tolist()}
    evidence, _, _ = gathered(weighted.evidence, sampled(rows, y), held_out=True)
    log_prior = np.tile(weighted.log_prior, (N, 1))
    z = by_row(weighted.weights, evidence.values, log_prior, unknown)
    actual = joint(weighted, frame_of(rows))
    np.testing.assert_allclose(actual, limited(z, np.exp(weighted.log_prior)), rtol=1e-9, atol=1e-9)
    alone = np.vstack([joint(weighted, frame_of(rows[i : i + 1])) for i in range(40)])
    np.testing.assert_allclose(alone, actual[:40], rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("by", ["column", "pair"])
def test_contributions_of_rows_with_unknown_columns_sum_to_the_scores(changing, by):
    """An unknown column adds nothing, but that it is missing may be evidence where it was missing before."""
    weighted, _, X, y = changing
    rows = partly_unknown(X)
    actual, unknown = weighted.contributions(frame_of(rows), by), unknown_in(rows)
    expected = centred(joint(weighted, frame_of(rows)))
    np.testing.assert_allclose(centred(actual.nats.sum(axis=1)), expected, rtol=1e-8, atol=1e-8)
    for c, name in enumerate(CHANGING):
        at = [line.name for line in actual.lines].index(name)
        assert (name == "height") == actual.nats[unknown[:, c], at].any()
        assert actual.nats[~unknown[:, c], at].any()
    evidence, _, _ = gathered(weighted.evidence, sampled(rows, y), held_out=True)
    p, at = weighted.weights.kinds.index("present"), [line.name for line in actual.lines].index("height")
    for i in np.flatnonzero(unknown[:, 0]):
        expected = evidence.values[:, i, p] * weights_of_row(weighted.weights, unknown[i])[0][p]
        np.testing.assert_allclose(actual.nats[i, at], expected, rtol=1e-9, atol=1e-12)


def test_training_rows_with_unknown_columns_have_the_changes_of_their_fold(changing):
    weighted, sample, X, y = changing
    evidence, _, keys = gathered(weighted.evidence, sample)
    unknown, fold = unknown_in(X), fold_of(keys)
    assert unknown.any()
    counts = np.unique(y, return_counts=True)[1].astype(float)
    prior = counts - (np.arange(3) == evidence.labels[:, np.newaxis])
    prior /= prior.sum(axis=1, keepdims=True)
    expected = np.empty((N, 3))
    for f in range(FOLDS):
        z = by_row(weighted.weights.of_fold(f), evidence.values, np.log(prior), unknown)
        expected[fold == f] = np.exp(limited(z, prior))[fold == f]
    np.testing.assert_allclose(left_out(weighted, sample).proba, expected, rtol=1e-8, atol=1e-12)


def test_columns_that_change_weights_are_read_even_where_nothing_else_is(changing):
    weighted, _, X, _ = changing
    weights = weighted.weights
    few = replace(
        weights, values=0.0 * weights.values, unknown=replace(weights.unknown, values=0.0 * weights.unknown.values)
    )
    silent, rows = replace(weighted, weights=replace(few, prior_share=0.0)), partly_unknown(X)
    unknown = unknown_in(rows)
    left = np.where(unknown.any(axis=1), (5 - unknown.sum(axis=1)) / 4, 1.0)[:, np.newaxis]
    expected = weighted.log_prior + left * (weights.bias + unknown @ weights.unknown.bias)
    np.testing.assert_allclose(joint(silent, frame_of(rows)), expected, rtol=1e-12, atol=1e-12)


def test_weights_without_folds_score_all_rows_alike(known):
    weighted, sample, _, _ = known
    weights = weighted.weights
    none = replace(weights, fold_values=weights.fold_values[:0], fold_bias=weights.fold_bias[:0])
    same = (FOLDS, *weights.values.shape)
    alike = replace(
        weights,
        fold_values=np.broadcast_to(weights.values, same).copy(),
        fold_bias=np.tile(weights.bias, (FOLDS, 1)),
    )
    one, other = (left_out(replace(weighted, weights=given), sample).proba for given in (none, alike))
    np.testing.assert_array_equal(one, other)


def test_without_its_only_row_a_class_is_impossible():
    X, y = mixed(40)
    y = np.where(np.arange(40) == 7, "once", y)
    evidence, sample = model_of(X, y)
    weights = fit_weights(evidence, sample)
    predictions = left_out(WeightedEvidence(evidence, evidence_by_block(evidence), weights, "empirical"), sample)
    once = evidence.classes.index("once")
    assert predictions.proba[7, once] == 0.0
    np.testing.assert_allclose(predictions.proba.sum(axis=1), 1.0, rtol=1e-12)


def test_weights_can_be_fitted_to_held_out_rows():
    evidence, _ = model_of(*mixed(N, classes=2))
    fresh = sampled(*mixed(N, seed=9, classes=2))
    weights = Weights.fit(EvidenceRows.held_out(evidence, fresh, 0), evidence_by_block(evidence))
    new, pieces, _ = gathered(evidence, fresh, held_out=True)
    w = weights.of(pieces, evidence.schema.names, evidence.classes)
    z = (new.offset + np.einsum("cnp,pc->nc", new.values, w[:, 1:]))[:, 0] + weights.bias[1] - weights.bias[0]
    losses = [np.logaddexp(0.0, np.where(new.labels == 1, -x, x)).mean() for x in (z, new.offset[:, 0])]
    assert losses[0] < losses[1] - 0.1
