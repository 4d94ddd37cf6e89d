"""The evidence of a correction: a temperature against brute force, curves against scikit-learn's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit, logsumexp
from sklearn.isotonic import IsotonicRegression

from deciban.models.calibration import BETAS, LEAST, Isotonic, Temperature, log_odds

LETTERS = ("a", "b", "c", "d")


def normalised(z):
    return z - logsumexp(z, axis=1, keepdims=True)


def judged(rng, n, k, scale=3.0, beta=0.5):
    """Log-probabilities (n, K), and classes that follow their power β."""
    log_p = normalised(scale * rng.normal(size=(n, k)))
    p = np.exp(normalised(beta * log_p))
    codes = (rng.random((n, 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1).astype(np.int32)
    return log_p, codes


def least_loss(log_p, codes, weights):
    """The β of the least Σ w·−log p' + (β log β − β): the last is what a row of the slope log β adds."""
    z = np.maximum(log_p, LEAST)

    def loss(t):
        beta = np.exp(t)
        scaled = beta * z
        row = logsumexp(scaled, axis=1) - scaled[np.arange(len(z)), codes]
        return (weights * row).sum() + beta * np.log(beta) - beta

    bounds = np.log(BETAS[[0, -1]])
    return np.exp(minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-10}).x)


def same_bits(a, b):
    return np.array_equal(a.slopes.words, b.slopes.words)


# Temperature ---------------------------------------------------------------------------------------------------------


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 200),
    k=st.integers(2, 4),
    scale=st.sampled_from([0.1, 1.0, 5.0, 30.0]),
    beta=st.sampled_from([0.1, 0.5, 1.0, 2.0]),
    weighted=st.booleans(),
)
def test_beta_makes_the_loss_least(seed, n, k, scale, beta, weighted):
    rng = np.random.default_rng(seed)
    log_p, codes = judged(rng, n, k, scale, beta)
    weights = rng.choice([0.5, 1.0, 3.0], n) if weighted else None
    found = Temperature.of(log_p, codes, LETTERS[:k], weights).beta
    # slopes are known at 41 β, each 19 % above the last; between them they are interpolated
    assert found == pytest.approx(least_loss(log_p, codes, np.ones(n) if weights is None else weights), rel=2e-3)


def test_beta_comes_back_from_many_rows():
    for beta in (0.2, 0.7, 1.0, 1.6):
        log_p, codes = judged(np.random.default_rng(0), 40_000, 3, scale=2.0, beta=beta)
        assert Temperature.of(log_p, codes, LETTERS[:3], None).beta == pytest.approx(beta, rel=0.05)


def test_no_evidence_leaves_beta_at_1():
    even = np.log(np.full((7, 2), 0.5))
    assert Temperature.of(even, np.zeros(7, np.int32), ("a", "b"), None).beta == pytest.approx(1.0, abs=1e-9)
    one = np.zeros((5, 1))
    assert Temperature.of(one, np.zeros(5, np.int32), ("a",), None).beta == pytest.approx(1.0, abs=1e-9)


def test_beta_stays_within_its_grid():
    sure = normalised(np.array([[0.0, -30.0]] * 4000))
    assert Temperature.of(sure, np.ones(4000, np.int32), ("a", "b"), None).beta == BETAS[0]
    faint = normalised(np.array([[0.0, -0.01]] * 400_000))
    assert Temperature.of(faint, np.zeros(400_000, np.int32), ("a", "b"), None).beta == BETAS[-1]


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
    log_p, codes = judged(rng, 30, k)
    weights = rng.choice([0.25, 1.0, 3.0], 30)
    whole = Temperature.of(log_p, codes, LETTERS[:k], weights)
    order = rng.permutation(30)
    parts = [Temperature.of(log_p[r], codes[r], LETTERS[:k], weights[r]) for r in np.array_split(order, 4)]
    a, b, c, d = parts
    assert same_bits(whole, a + b + c + d)
    assert same_bits(whole, d + ((b + c) + a))
    assert (a + b + c + d).beta == whole.beta


def test_a_weight_is_a_repetition():
    log_p, codes = judged(np.random.default_rng(1), 20, 3)
    times = np.arange(20) % 3
    repeated = Temperature.of(np.repeat(log_p, times, axis=0), np.repeat(codes, times), LETTERS[:3], None)
    kept = times > 0
    weighted = Temperature.of(log_p[kept], codes[kept], LETTERS[:3], times[kept].astype(float))
    assert weighted.beta == pytest.approx(repeated.beta, rel=1e-12)


@given(seed=st.integers(0, 2**32 - 1))
def test_a_temperature_is_a_power(seed):
    log_p, codes = judged(np.random.default_rng(seed), 50, 3)
    evidence = Temperature.of(log_p, codes, LETTERS[:3], None)
    power = np.exp(log_p) ** evidence.beta
    np.testing.assert_allclose(
        np.exp(evidence.corrected(log_p, LETTERS[:3])), power / power.sum(axis=1, keepdims=True), rtol=1e-9
    )


# Log-odds ------------------------------------------------------------------------------------------------------------


def test_log_odds_tell_the_sure_from_the_very_sure():
    far = normalised(np.array([[0.0, -46.0], [0.0, -70.0], [3.0, 1.0]]))
    np.testing.assert_allclose(log_odds(far), [[46.0, -46.0], [70.0, -70.0], [2.0, -2.0]], rtol=1e-12)
    three = np.log([[0.5, 0.25, 0.25]])
    np.testing.assert_allclose(log_odds(three), logit([[0.5, 0.25, 0.25]]), atol=1e-12)
    assert np.isfinite(log_odds(np.array([[0.0, -np.inf], [-np.inf, 0.0]]))).all()


# Isotonic ------------------------------------------------------------------------------------------------------------


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
    log_p, codes = judged(rng, n, k, scale)
    if zeros and k > 1:  # a class that a model thinks impossible
        log_p[rng.random(n) < 0.3, 0] = -np.inf
        log_p = normalised(log_p)
    evidence = Isotonic.of(log_p, codes, LETTERS[:k], None)
    for odds, become in evidence.curves.values():
        assert (np.diff(odds) >= 0).all()
        assert (np.diff(become) >= 0).all()
        assert np.isfinite(become).all()
    new, _ = judged(rng, 50, k, scale)
    for x in (log_p, new):
        p = probabilities(evidence, x, LETTERS[:k])
        if k == 2:
            order = np.argsort(log_odds(x)[:, 1], kind="stable")
            assert (np.diff(p[order, 1]) >= -1e-12).all()


def test_many_rows_make_the_curve_of_scikit_learn():
    """Of 200,000 rows 4 virtual ones do not matter, and trust in the curve is 1 − 2e-6."""
    rng = np.random.default_rng(2)
    z = np.round(rng.normal(scale=2.0, size=200_000) * 8) / 8
    log_p = -np.logaddexp(0, np.column_stack([z, -z]))
    codes = (rng.random(200_000) < expit(np.cbrt(z))).astype(np.int32)
    weights = rng.choice([1.0, 2.0], 200_000)
    evidence = Isotonic.of(log_p, codes, ("no", "yes"), weights)
    reference = IsotonicRegression(out_of_bounds="clip").fit(z, codes, sample_weight=weights)
    at = np.unique(z)[20:-20]
    found = probabilities(evidence, -np.logaddexp(0, np.column_stack([at, -at])), ("no", "yes"))[:, 1]
    np.testing.assert_allclose(found, reference.predict(at), atol=2e-3)
    assert evidence.trust == pytest.approx(1 / (1 + (300 / weights.sum()) ** 2), rel=1e-12)


def test_many_rows_of_three_classes():
    rng = np.random.default_rng(3)
    log_p = normalised(rng.integers(-1, 3, size=(150_000, 3)).astype(float))  # few scores, many rows of each
    p = np.exp(normalised(0.6 * log_p))
    codes = (rng.random((150_000, 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1).astype(np.int32)
    evidence = Isotonic.of(log_p, codes, LETTERS[:3], None)
    curves = []
    for c in range(3):
        z = np.round(logit(np.exp(log_p[:, c])), 9)
        curves.append(IsotonicRegression(out_of_bounds="clip").fit(z, codes == c).predict(z))
    expected = np.column_stack(curves)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(probabilities(evidence, log_p, LETTERS[:3]), expected, atol=0.01)


def test_few_rows_are_left_to_the_temperature():
    log_p, codes = judged(np.random.default_rng(4), 6, 2)
    evidence = Isotonic.of(log_p, codes, ("a", "b"), None)
    assert evidence.trust == pytest.approx(36 / (36 + 90_000))
    warm = evidence.temperature.corrected(log_p, ("a", "b"))
    np.testing.assert_allclose(evidence.corrected(log_p, ("a", "b")), warm, atol=0.01)


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 4))
def test_curves_of_added_evidence_are_those_of_all_rows(seed, k):
    rng = np.random.default_rng(seed)
    log_p, codes = judged(rng, 60, k)
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
        log_p, codes = judged(rng, 40, len(names))
        place = [union.index(c) for c in names]
        wide = np.full((40, len(union)), -np.inf)
        wide[:, place] = log_p
        evidence = Isotonic.of(log_p, codes, tuple(names), None)
        sides[names] = evidence, Isotonic.of(wide, np.array(place, np.int32)[codes], union, None)
    (a, wide_a), (b, wide_b) = sides[first], sides[second]
    new, _ = judged(rng, 30, len(union))
    found, expected = (probabilities(e, new, union) for e in (a + b, wide_a + wide_b))
    np.testing.assert_allclose(found, probabilities(b + a, new, union), rtol=1e-12)
    # β differs a little: a class of probability 0 counts as 2e-16
    np.testing.assert_allclose(found, expected, atol=0.02)


def test_what_is_certain_stays_finite():
    """All rows at probability 0 or 1, and right: a row in between has probabilities all the same."""
    log_p = np.array([[0.0, -np.inf], [-np.inf, 0.0]] * 200)
    evidence = Isotonic.of(log_p, np.array([0, 1] * 200, np.int32), ("a", "b"), None)
    p = probabilities(evidence, np.log([[0.5, 0.5], [0.9, 0.1], [0.1, 0.9]]), ("a", "b"))
    assert p[2, 1] >= p[0, 1] >= p[1, 1]


def test_more_scores_than_are_remembered():
    rng = np.random.default_rng(6)
    log_p, codes = judged(rng, 30_000, 2)
    evidence = Isotonic.of(log_p, codes, ("a", "b"), None)
    z = log_odds(log_p)[:, 1]
    expected = IsotonicRegression().fit_transform(z, codes)
    found = probabilities(evidence, log_p, ("a", "b"))[:, 1]
    assert np.abs(found - expected).mean() < 2e-3
    np.testing.assert_allclose(found, expected, atol=0.06)  # scores of one cell share what two blocks had


def test_tables_show_log_odds_and_probabilities():
    log_p, codes = judged(np.random.default_rng(7), 500, 2)
    (table,) = Isotonic.of(log_p, codes, ("a", "b"), None).tables()
    assert table.header == ("log-odds", "p")
    assert all(0 <= p <= 1 for _, p in table.rows)
    assert [p for _, p in table.rows] == sorted(p for _, p in table.rows)
    ((beta, temperature),) = Temperature.of(log_p, codes, ("a", "b"), None).tables()[0].rows
    assert beta * temperature == pytest.approx(1.0)
