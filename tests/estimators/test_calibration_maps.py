"""The evidence of a correction: a temperature against brute force, curves against scikit-learn's."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit, logit, logsumexp
from sklearn.isotonic import IsotonicRegression

from deciban.estimators.calibration_maps import BETAS, LEAST, Isotonic, Temperature, log_odds

LETTERS = ("a", "b", "c", "d")


def normalised(z):
    return z - logsumexp(z, axis=1, keepdims=True)


def scored(rng, n, k, scale=3.0, beta=0.5):
    """Log-probabilities (n, K), and classes that follow their power β."""
    log_p = normalised(scale * rng.normal(size=(n, k)))
    p = np.exp(normalised(beta * log_p))
    codes = (rng.random((n, 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1).astype(np.int32)
    return log_p, codes


def loss_of(log_p, codes, weights):
    """log β → Σ w·−log p' + (β log β − β): the last is what a row of the slope log β adds."""
    z = np.maximum(log_p, LEAST)

    def loss(t):
        scaled = np.exp(t) * z
        row = logsumexp(scaled, axis=1) - scaled[np.arange(len(z)), codes]
        return (weights * row).sum() + np.exp(t) * (t - 1)

    return loss


def asked_beta(log_p, codes, weights):
    """log β of the least loss within the grid, and z²: twice what the loss falls by from β = 1."""
    loss = loss_of(log_p, codes, weights)
    asked = minimize_scalar(loss, bounds=np.log(BETAS[[0, -1]]), method="bounded", options={"xatol": 1e-10}).x
    return asked, 2 * (loss(0.0) - loss(asked))


def shrunk_beta(log_p, codes, weights=None):
    """β̂^(1 − 1/z²), or 1 where z² ≤ 1."""
    asked, squared = asked_beta(log_p, codes, np.ones(len(codes)) if weights is None else weights)
    return np.exp(asked * (1 - 1 / max(squared, 1.0)))


def same_bits(a, b):
    return np.array_equal(a.slopes.words, b.slopes.words)


# Temperature
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 200),
    k=st.integers(2, 4),
    scale=st.sampled_from([0.1, 1.0, 5.0, 30.0]),
    beta=st.sampled_from([0.1, 0.5, 1.0, 2.0]),
    weighted=st.booleans(),
)
def test_beta_makes_the_loss_least_and_is_shrunk(seed, n, k, scale, beta, weighted):
    rng = np.random.default_rng(seed)
    log_p, codes = scored(rng, n, k, scale, beta)
    weights = rng.choice([0.5, 1.0, 3.0], n) if weighted else np.ones(n)
    actual = Temperature.of(log_p, codes, LETTERS[:k], weights if weighted else None).beta
    # slopes are known at 41 β, each 19 % above the last; between them they and their rise are interpolated
    assert actual == pytest.approx(shrunk_beta(log_p, codes, weights), rel=0.01)


@pytest.mark.parametrize("wrong", [2, 20, 25, 40])
def test_two_scores_have_a_temperature_by_hand(wrong):
    """Of 100 rows at log-odds ±2, some wrong: where the slope 2·100·(σ(2β) − share) + log β is 0."""
    sure = normalised(np.array([[0.0, -2.0], [-2.0, 0.0]] * 50))
    codes = np.arange(100, dtype=np.int32) % 2
    codes[:wrong] = 1 - codes[:wrong]

    def slope(t):
        return 200 * (expit(2 * np.exp(t)) - (1 - wrong / 100)) + t

    def loss(t):
        right, beta = 100 - wrong, np.exp(t)
        return right * np.log1p(np.exp(-2 * beta)) + wrong * np.log1p(np.exp(2 * beta)) + beta * (t - 1)

    asked = brentq(slope, -6, 3)
    squared = 2 * (loss(0.0) - loss(asked))
    expected = np.exp(asked * max(0, 1 - 1 / squared))
    assert shrunk_beta(sure, codes) == pytest.approx(expected, rel=1e-5)
    assert Temperature.of(sure, codes, ("a", "b"), None).beta == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize("wrong", range(6, 17))
def test_the_worse_a_model_is_the_less_is_left_of_what_it_says(wrong):
    """16 rows at log-odds 2; with 8 wrong there is nothing in it, and with more it should say the contrary."""
    sure = normalised(np.tile([2.0, 0.0], (16, 1)))

    def beta(count):
        return Temperature.of(sure, np.repeat([0, 1], [16 - count, count]).astype(np.int32), ("a", "b"), None).beta

    assert beta(wrong) <= beta(wrong - 1) + 1e-9
    assert beta(wrong) < 0.6


def test_less_than_one_standard_error_is_no_evidence():
    """100 rows at log-odds ±2, of which 13 are wrong: σ(2β) = 0.87 at β = 0.95, with z² of about 0.1."""
    sure = normalised(np.array([[0.0, -2.0], [-2.0, 0.0]] * 50))
    codes = np.arange(100, dtype=np.int32) % 2
    codes[:13] = 1 - codes[:13]
    asked, squared = asked_beta(sure, codes, np.ones(100))
    assert asked < -0.03
    assert squared < 0.5
    assert Temperature.of(sure, codes, ("a", "b"), None).beta == 1.0
    many = Temperature.of(sure, codes, ("a", "b"), np.full(100, 100.0)).beta
    assert many == pytest.approx(logit(0.87) / 2, rel=0.01)


def test_beta_comes_back_from_many_rows():
    for beta in (0.2, 0.7, 1.0, 1.6):
        log_p, codes = scored(np.random.default_rng(0), 10_000, 3, scale=2.0, beta=beta)
        assert Temperature.of(log_p, codes, LETTERS[:3], None).beta == pytest.approx(beta, rel=0.05)


def test_no_evidence_leaves_beta_at_1():
    even = np.log(np.full((7, 2), 0.5))
    assert Temperature.of(even, np.zeros(7, np.int32), ("a", "b"), None).beta == pytest.approx(1.0, abs=1e-9)
    one = np.zeros((5, 1))
    assert Temperature.of(one, np.zeros(5, np.int32), ("a",), None).beta == pytest.approx(1.0, abs=1e-9)


def test_beta_stays_within_its_grid():
    sure, faint = normalised(np.array([[0.0, -30.0]])), normalised(np.array([[0.0, -0.01]]))
    always_wrong = Temperature.of(sure, np.ones(1, np.int32), ("a", "b"), np.array([4e5]))
    assert always_wrong.beta == pytest.approx(1 / 64, rel=1e-3)
    always_right = Temperature.of(faint, np.zeros(1, np.int32), ("a", "b"), np.array([4e6]))
    assert always_right.beta == pytest.approx(16, rel=1e-3)


def test_a_class_given_0_counts_as_nearly_0():
    log_p = np.array([[0.0, -np.inf], [np.log(0.9), np.log(0.1)]])
    least = np.array([[0.0, LEAST], [np.log(0.9), np.log(0.1)]])
    codes = np.array([1, 0], np.int32)
    a, b = (Temperature.of(p, codes, ("a", "b"), None) for p in (log_p, least))
    assert a.beta == b.beta < 1
    corrected = a.corrected(log_p, ("a", "b"))
    np.testing.assert_array_equal(corrected[0], [0.0, -np.inf])
    assert corrected[1, 0] < np.log(0.9)


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 4))
def test_evidence_adds_in_any_order(seed, k):
    rng = np.random.default_rng(seed)
    log_p, codes = scored(rng, 30, k)
    weights = rng.choice([0.25, 1.0, 3.0], 30)
    whole = Temperature.of(log_p, codes, LETTERS[:k], weights)
    order = rng.permutation(30)
    parts = [Temperature.of(log_p[r], codes[r], LETTERS[:k], weights[r]) for r in np.array_split(order, 4)]
    a, b, c, d = parts
    assert same_bits(whole, a + b + c + d)
    assert same_bits(whole, d + ((b + c) + a))
    assert (a + b + c + d).beta == whole.beta


def test_a_weight_is_a_repetition():
    log_p, codes = scored(np.random.default_rng(1), 20, 3)
    times = np.arange(20) % 3
    repeated = Temperature.of(np.repeat(log_p, times, axis=0), np.repeat(codes, times), LETTERS[:3], None)
    kept = times > 0
    weighted = Temperature.of(log_p[kept], codes[kept], LETTERS[:3], times[kept].astype(float))
    assert weighted.beta == pytest.approx(repeated.beta, rel=1e-12)


@given(seed=st.integers(0, 2**32 - 1))
def test_a_temperature_is_a_power(seed):
    log_p, codes = scored(np.random.default_rng(seed), 50, 3)
    evidence = Temperature.of(log_p, codes, LETTERS[:3], None)
    power = np.exp(log_p) ** evidence.beta
    np.testing.assert_allclose(
        np.exp(evidence.corrected(log_p, LETTERS[:3])), power / power.sum(axis=1, keepdims=True), rtol=1e-9
    )


# Log-odds
def test_log_odds_tell_the_sure_from_the_very_sure():
    far = normalised(np.array([[0.0, -46.0], [0.0, -70.0], [3.0, 1.0]]))
    np.testing.assert_allclose(log_odds(far), [[46.0, -46.0], [70.0, -70.0], [2.0, -2.0]], rtol=1e-12)
    three = np.log([[0.5, 0.25, 0.25]])
    np.testing.assert_allclose(log_odds(three), logit([[0.5, 0.25, 0.25]]), atol=1e-12)
    assert np.isfinite(log_odds(np.array([[0.0, -np.inf], [-np.inf, 0.0]]))).all()


# Isotonic
def binary(z):
    """(n, 2) log-probabilities of log-odds."""
    return -np.logaddexp(0, np.column_stack([z, -z]))


def curve_by_hand(z, hit, weights, beta):
    """Log-odds → log-odds, and the trust in them: scikit-learn's blocks, each with 4 rows of what β·z says of it."""
    fitted = IsotonicRegression().fit_transform(z, hit, sample_weight=weights)
    block = np.unique(np.round(fitted, 12), return_inverse=True)[1]
    n, k, said = (np.bincount(block, w) for w in (weights, weights * hit, weights * expit(beta * z)))
    level = np.maximum.accumulate((k + 4 * said / n) / (n + 4))
    after, before = level[block], expit(beta * z)
    gain = (weights * np.log(np.where(hit, after / before, (1 - after) / (1 - before)))).sum()
    trust = max(0.0, 1 - len(n) / gain) if gain > 0 else 0.0
    order = np.argsort(z)
    return (lambda new: trust * np.interp(new, z[order], logit(after[order])) + (1 - trust) * beta * new), trust


def probabilities(evidence, log_p, classes):
    p = np.exp(evidence.corrected(log_p, classes))
    assert (p > 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    return p


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 400),
    k=st.integers(1, 4),
    scale=st.sampled_from([0.5, 5.0, 50.0]),
    zeros=st.booleans(),
)
def test_curves_rise_and_probabilities_are_probabilities(seed, n, k, scale, zeros):
    rng = np.random.default_rng(seed)
    log_p, codes = scored(rng, n, k, scale)
    if zeros and k > 1:  # a class that a model thinks impossible
        log_p[rng.random(n) < 0.3, 0] = -np.inf
        log_p = normalised(log_p)
    evidence = Isotonic.of(log_p, codes, LETTERS[:k], None)
    for curve in evidence.curves.values():
        assert (np.diff(curve.odds) >= 0).all()
        assert (np.diff(curve.become) >= 0).all()
        assert np.isfinite(curve.become).all()
        assert 0 <= curve.trust <= 1
    new, _ = scored(rng, 50, k, scale)
    for x in (log_p, new):
        p = probabilities(evidence, x, LETTERS[:k])
        if k == 2:
            order = np.argsort(log_odds(x)[:, 1], kind="stable")
            assert (np.diff(p[order, 1]) >= -1e-12).all()


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(20, 2000), k=st.integers(2, 4), power=st.sampled_from([0.3, 1.0]))
def test_curves_are_trusted_by_what_they_gain(seed, n, k, power):
    """Classes follow |log p|^power: a temperature is right for 1, and a curve is needed for 0.3."""
    rng = np.random.default_rng(seed)
    log_p = normalised(3.0 * rng.normal(size=(n, k)))
    p = np.exp(normalised(-(np.abs(log_p) ** power)))
    codes = (rng.random((n, 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1).astype(np.int32)
    weights = rng.random(n) + 0.1  # so that no two blocks have the same level
    evidence = Isotonic.of(log_p, codes, LETTERS[:k], weights)
    z, new = log_odds(log_p), scored(rng, 50, k)[0]
    expected = np.empty((50, k))
    for c in evidence.curves:
        curve, trust = curve_by_hand(z[:, c], codes == c, weights, evidence.temperature.beta)
        assert evidence.curves[c].trust == pytest.approx(trust, rel=1e-6, abs=1e-9)
        expected[:, c] = expit(curve(log_odds(new)[:, c]))
    if k == 2:
        assert list(evidence.curves) == [1]
        expected[:, 0] = 1 - expected[:, 1]
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(probabilities(evidence, new, LETTERS[:k]), expected, rtol=1e-6, atol=1e-12)


def test_a_curve_is_trusted_where_it_is_needed():
    """Log-odds of which the truth is the cube root, or the half; and a hundred times as many rows of each."""
    rng = np.random.default_rng(8)
    z = np.linspace(-6, 6, 200)
    for truth, few, many in ((np.cbrt, (0.0, 0.9), (0.95, 1.0)), (lambda z: z / 2, (0.0, 0.2), (0.0, 0.5))):
        for times, (low, high) in ((10, few), (1000, many)):
            yes = rng.binomial(times, expit(truth(z)))
            counts = np.concatenate([yes, times - yes]).astype(float)
            kept = counts > 0
            codes = np.repeat([1, 0], 200)[kept].astype(np.int32)
            evidence = Isotonic.of(binary(np.tile(z, 2)[kept]), codes, ("no", "yes"), counts[kept])
            assert low <= evidence.curves[1].trust <= high


def test_many_rows_make_the_curve_of_scikit_learn():
    """Of 300,000 rows 4 virtual ones do not matter, and the temperature has nearly no say."""
    rng = np.random.default_rng(2)
    z = np.arange(-48, 49) / 8
    yes = rng.binomial(3000, expit(np.cbrt(z)))
    counts = np.concatenate([yes, 3000 - yes]).astype(float)
    codes = np.repeat([1, 0], 97).astype(np.int32)
    evidence = Isotonic.of(binary(np.tile(z, 2)), codes, ("no", "yes"), counts)
    reference = IsotonicRegression().fit_transform(z, yes / 3000)
    proba = probabilities(evidence, binary(z), ("no", "yes"))[:, 1]
    np.testing.assert_allclose(proba, reference, atol=5e-3)
    at_curve = np.interp(z, evidence.curves[1].odds, evidence.curves[1].become)
    np.testing.assert_allclose(expit(at_curve), reference, atol=1e-3)
    assert evidence.curves[1].trust > 0.95


def test_many_rows_of_three_classes():
    rng = np.random.default_rng(3)
    scores = np.array(list(itertools.product(range(-1, 3), repeat=3)), dtype=float)
    log_p = normalised(scores)
    p = np.exp(normalised(np.cbrt(log_p)))
    counts = rng.multinomial(3000, p).astype(float)  # (64 scores, 3)
    weights, codes = counts.ravel(), np.tile(np.arange(3, dtype=np.int32), 64)
    evidence = Isotonic.of(np.repeat(log_p, 3, axis=0), codes, LETTERS[:3], weights)
    curves = []
    for c in range(3):
        z = np.round(logit(np.exp(log_p[:, c])), 9)
        curves.append(IsotonicRegression().fit_transform(z, counts[:, c] / 3000))
    expected = np.column_stack(curves)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(probabilities(evidence, log_p, LETTERS[:3]), expected, atol=0.01)


def test_few_rows_are_left_to_the_temperature():
    """Two rows at each of log-odds ±1, one right and one wrong: one block, at 1/2, and too few to move β from 1.

    It gains 4 log(1/2) − 2 log σ(1) − 2 log σ(−1) = 0.48 nats, less than a block costs.
    """
    log_p = binary(np.array([-1.0, -1.0, 1.0, 1.0]))
    evidence = Isotonic.of(log_p, np.array([0, 1, 0, 1], np.int32), ("a", "b"), None)
    np.testing.assert_allclose(evidence.curves[1].become, 0.0, atol=1e-12)
    assert evidence.curves[1].trust == 0
    assert evidence.temperature.beta == 1
    np.testing.assert_allclose(evidence.corrected(log_p, ("a", "b")), log_p, rtol=1e-9)


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 4))
def test_curves_of_added_evidence_are_those_of_all_rows(seed, k):
    rng = np.random.default_rng(seed)
    log_p, codes = scored(rng, 60, k)
    whole = Isotonic.of(log_p, codes, LETTERS[:k], None)
    parts = [Isotonic.of(log_p[r], codes[r], LETTERS[:k], None) for r in np.array_split(rng.permutation(60), 3)]
    a, b, c = parts
    for together in (a + b + c, c + (a + b)):
        np.testing.assert_array_equal(together.corrected(log_p, LETTERS[:k]), whole.corrected(log_p, LETTERS[:k]))


@pytest.mark.parametrize(
    ("first", "second"),
    [("ab", "bc"), ("ab", "cd"), ("ab", "c"), ("a", "b"), ("abc", "b"), ("a", "a")],
)
def test_evidence_of_different_classes(first, second):
    """A class that one side did not know was impossible to it."""
    rng = np.random.default_rng(5)
    union = tuple(sorted({*first, *second}))
    sides = {}
    for names in dict.fromkeys((first, second)):
        log_p, codes = scored(rng, 40, len(names))
        place = [union.index(c) for c in names]
        wide = np.full((40, len(union)), -np.inf)
        wide[:, place] = log_p
        evidence = Isotonic.of(log_p, codes, tuple(names), None)
        sides[names] = evidence, Isotonic.of(wide, np.array(place, np.int32)[codes], union, None)
    (a, wide_a), (b, wide_b) = sides[first], sides[second]
    new, _ = scored(rng, 30, len(union))
    proba, expected = (probabilities(e, new, union) for e in (a + b, wide_a + wide_b))
    np.testing.assert_allclose(proba, probabilities(b + a, new, union), rtol=1e-12)
    # β differs a little: a class of probability 0 counts as 2e-16
    np.testing.assert_allclose(proba, expected, atol=0.02)


def test_what_is_certain_stays_finite():
    """All rows at probability 0 or 1, and right: a row in between has probabilities all the same."""
    log_p = np.array([[0.0, -np.inf], [-np.inf, 0.0]] * 200)
    evidence = Isotonic.of(log_p, np.array([0, 1] * 200, np.int32), ("a", "b"), None)
    p = probabilities(evidence, np.log([[0.5, 0.5], [0.9, 0.1], [0.1, 0.9]]), ("a", "b"))
    assert p[2, 1] >= p[0, 1] >= p[1, 1]


def test_more_scores_than_are_remembered():
    rng = np.random.default_rng(6)
    log_p, codes = scored(rng, 30_000, 2)
    evidence = Isotonic.of(log_p, codes, ("a", "b"), None)
    z = log_odds(log_p)[:, 1]
    expected = IsotonicRegression().fit_transform(z, codes)
    actual = expit(np.interp(z, evidence.curves[1].odds, evidence.curves[1].become))
    assert np.abs(actual - expected).mean() < 2e-3
    np.testing.assert_allclose(actual, expected, atol=0.06)  # scores of one cell share what two blocks had


def test_tables_show_log_odds_and_probabilities():
    z = np.arange(-40, 41) / 8
    codes = (np.random.default_rng(7).random(8100) < expit(np.cbrt(np.repeat(z, 100)))).astype(np.int32)
    evidence = Isotonic.of(binary(np.repeat(z, 100)), codes, ("a", "b"), None)
    (table,) = evidence.tables()
    assert table.title == "correction of b"
    assert table.header == ("log-odds", "p of the curve")
    odds, p = np.array(table.rows).T
    assert (np.diff(odds) >= 0).all()
    np.testing.assert_allclose([odds[0], odds[-1]], [-5, 5], rtol=1e-12)
    reference = IsotonicRegression().fit(np.repeat(z, 100), codes)
    np.testing.assert_allclose(p, reference.predict(np.clip(odds, -5, 5)), atol=0.02)  # 4 virtual rows to 100
    assert f"weight {evidence.curves[1].trust:.2f}" in table.note
    three, codes = scored(np.random.default_rng(7), 90, 3)
    assert [t.title[-1] for t in Isotonic.of(three, codes, LETTERS[:3], None).tables()] == ["a", "b", "c"]


def test_the_table_of_a_temperature():
    log_p, codes = scored(np.random.default_rng(7), 500, 2)
    evidence = Temperature.of(log_p, codes, ("a", "b"), None)
    ((beta, temperature),) = evidence.tables()[0].rows
    assert beta == evidence.beta
    assert beta * temperature == pytest.approx(1.0)
