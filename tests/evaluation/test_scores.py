"""Score sums add to the last bit, and do not depend on when rows are folded."""

from dataclasses import replace
from fractions import Fraction
from math import log

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from deciban.errors import NegativeEvidence
from deciban.evaluation.scores import EPS, ScoredRows, ScoreSums, score_histogram
from deciban.statistics.histogram import Histogram
from deciban.statistics.sums import Sum
from tests.laws import assert_same_bits, dyadic

CAP = 1000  # more than any test has rows, so that all scores are exact
shares = st.sampled_from([0.0, 0.125, 0.25, 0.5, 1.0]) | st.floats(1e-300, 1.0)


@st.composite
def rows(draw, classes=None, weights=True, least=0, cap=CAP):
    """A few rows that were scored; many probabilities are equal, and some are 0."""
    k = draw(st.integers(1, 3)) if classes is None else classes
    n = draw(st.integers(least, 9))
    raw = draw(hnp.arrays(np.float64, (n, k), elements=shares, fill=st.nothing()))
    raw[raw.sum(axis=1) == 0, 0] = 1.0
    codes = draw(hnp.arrays(np.int32, n, elements=st.integers(0, k - 1), fill=st.nothing()))
    weighted = weights and draw(st.booleans())
    w = draw(hnp.arrays(np.float64, n, elements=dyadic, fill=st.nothing())) if weighted else None
    known = draw(st.none() | hnp.arrays(np.bool_, k))
    return ScoredRows.of(codes, raw / raw.sum(axis=1, keepdims=True), w, known, cap)


def same(actual, expected):
    assert_same_bits(actual.to_arrays(), expected.to_arrays())


def taken(rows, index, known=None):
    weights = None if rows.weights is None else rows.weights[index]
    return ScoredRows.of(rows.codes[index], rows.proba[index], weights, known, rows.cap)


@st.composite
def three(draw, cap=CAP):
    k = draw(st.integers(1, 3))
    return [draw(rows(k, cap=cap)) for _ in range(3)]


# Laws
@pytest.mark.parametrize("cap", [CAP, 4])
@given(data=st.data())
def test_folded_and_added_is_joined_and_folded(cap, data):
    a, b, c = data.draw(three(cap))
    same(a.folded() + b.folded() + c.folded(), ScoredRows.joined([a, b, c]).folded())
    same(ScoredRows.joined([c, a]).folded() + b.folded(), ScoredRows.joined([a, b, c]).folded())


@given(rows(least=1), st.data())
def test_rows_that_were_not_added_cannot_be_removed(a, data):
    assume(len(a))
    one = taken(a, [data.draw(st.integers(0, len(a) - 1))]).folded()
    with pytest.raises(NegativeEvidence):
        a.folded() - (a.folded() + one)


@pytest.mark.parametrize("field", ["confusion", "loss", "squares", "known"])
def test_no_sum_may_fall_below_zero(field):
    """Even where every score that is to be forgotten was there."""
    a = ScoredRows.of(np.array([0, 1], np.int32), np.array([[0.5, 0.5], [0.25, 0.75]]), None).folded()
    with pytest.raises(NegativeEvidence, match="below zero"):
        a - replace(a, **{field: Sum.of(2 * getattr(a, field).value)})


def test_a_loss_that_belongs_to_no_row_cannot_stay():
    a = ScoredRows.of(np.array([0, 1], np.int32), np.array([[0.5, 0.5], [0.25, 0.75]]), None).folded()
    other = ScoreSums(a.confusion, Sum.of(a.loss.value / 2), a.squares, a.known, a.scores, a.confidence)
    with pytest.raises(NegativeEvidence, match="never scored"):
        a - other


@given(rows(), st.data())
def test_classes_can_move(a, data):
    positions = sorted(data.draw(st.permutations(range(a.classes + 2)))[: a.classes])
    moved = a.reindex_classes(positions, a.classes + 2)
    np.testing.assert_array_equal(moved.proba[:, positions], a.proba)
    assert not np.delete(moved.proba, positions, axis=1).any()
    same(a.folded().reindex_classes(positions, a.classes + 2), moved.folded())
    same(moved.folded().take(positions), a.folded())


@given(rows(2, cap=3), rows(2, cap=5))
def test_the_smaller_cap_rules(a, b):
    same(a.folded() + b.folded(), b.folded() + a.folded())
    assert (b.folded() + a.folded()).cap == 3
    assert all(len(keys) <= 3 for keys in (b.folded() + a.folded()).scores.keys)


# Numbers
def weight(rows, i):
    return Fraction(1) if rows.weights is None else Fraction(float(rows.weights[i]))


@given(rows())
def test_sums_are_those_of_exact_fractions(a):
    s = a.folded()
    confusion = [[Fraction(0)] * a.classes for _ in range(a.classes)]
    loss = [Fraction(0)] * a.classes
    for i, code in enumerate(a.codes):
        p = a.proba[i].tolist()
        confusion[code][p.index(max(p))] += weight(a, i)
        loss[code] += weight(a, i) * Fraction(-log(min(max(p[code], EPS), 1 - EPS)))
    np.testing.assert_array_equal(s.confusion.value, np.array(confusion, float).reshape(a.classes, a.classes))
    np.testing.assert_allclose(s.loss.value, np.array(loss, float), rtol=1e-15)


@given(rows())
def test_squares_are_distances_from_the_truth(a):
    truth = np.eye(a.classes)[a.codes]
    w = np.ones(len(a)) if a.weights is None else a.weights
    expected = [(w * ((a.proba - truth) ** 2).sum(axis=1))[a.codes == k].sum() for k in range(a.classes)]
    np.testing.assert_allclose(a.folded().squares.value, expected, rtol=1e-13, atol=1e-300)


@given(rows())
def test_scores_are_counted_by_class(a):
    s = a.folded()
    w = np.ones(len(a)) if a.weights is None else a.weights
    right = a.proba.argmax(axis=1) == a.codes
    subjects = [(s.column(k), a.proba[:, k], a.codes == k) for k in range(a.classes)]
    for histogram, x, member in [*subjects, (s.confidence, a.proba.max(axis=1, initial=0), right)]:
        values = np.unique(x)
        np.testing.assert_array_equal(histogram.lower(0), values)
        expected = [[w[(x == v) & (member == side)].sum() for v in values] for side in (False, True)]
        np.testing.assert_array_equal(histogram.table(0).value, np.reshape(expected, (2, len(values))))


@given(rows(weights=False, least=1), st.data())
def test_known_classes_are_counted(a, data):
    known = data.draw(hnp.arrays(np.bool_, a.classes))
    histogram = ScoredRows.of(a.codes, a.proba, None, known).known.value
    by_class = np.array([(a.codes == k).sum() for k in range(a.classes)])
    np.testing.assert_array_equal(histogram, np.stack([len(a) - by_class, by_class]) * known)


@pytest.mark.parametrize("weighted", [False, True])
@given(data=st.data())
def test_counting_by_sorting_is_the_histogram(weighted, data):
    n, cap = data.draw(st.integers(0, 40)), data.draw(st.integers(1, 12))
    x = data.draw(hnp.arrays(np.float64, n, elements=st.floats(0, 1), fill=st.nothing()))
    member = data.draw(hnp.arrays(np.bool_, n))
    w = np.full(n, 0.1) if weighted else None
    expected = Histogram.of(x[:, np.newaxis], member.astype(np.int32), w, 2, cap)
    same(score_histogram(x, member, w, cap), expected)


def test_many_classes_keep_the_order_of_addition():
    """numpy adds up eight or more numbers of a row in another order than fewer; squares must not see it."""
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(12), size=50)
    a = ScoredRows.of(rng.integers(0, 12, 50).astype(np.int32), proba, None)
    positions = np.sort(rng.permutation(40)[:12])
    same(a.reindex_classes(positions, 40).folded(), a.folded().reindex_classes(positions, 40))
    one_by_one = [taken(a, [i]).folded() for i in range(50)]
    same(sum(one_by_one[1:], one_by_one[0]), a.folded())
