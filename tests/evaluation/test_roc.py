"""ROC curves equal scikit-learn's, point by point; DeLong's variance equals pROC's and the double sum it stands for."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score, roc_curve

from deciban.errors import DecibanError, DecibanWarning
from deciban.evaluation import roc as roc_module
from deciban.evaluation import score_counts
from deciban.evaluation.roc import Roc

R = json.loads((Path(__file__).parent.parent / "references" / "roc.json").read_text())
real = st.floats(-1e300, 1e300) | st.sampled_from([0.0, -0.0, 0.25, 0.5, 1.0])  # the latter will be ties
single = st.floats(-100, 100, width=32) | st.sampled_from([0.0, 0.5, 1.0])
whole = st.sampled_from([1.0, 2.0, 3.0])
NAN = pytest.approx(np.nan, nan_ok=True)


@st.composite
def labelled(draw, scores=real, weights=None, least=1):
    """Labels of both classes, scores, and optionally weights."""
    n = draw(st.integers(2 * least, 14))
    y = draw(hnp.arrays(np.int64, n, elements=st.integers(0, 1)))
    assume(least <= y.sum() <= n - least)
    dtype = np.float32 if scores is single else np.float64
    x = draw(hnp.arrays(dtype, n, elements=scores, fill=st.nothing()))
    return y, x, None if weights is None else draw(hnp.arrays(np.float64, n, elements=weights, fill=st.nothing()))


def same_curve(roc, y, x, w=None):
    fpr, tpr, thresholds = roc_curve(y, x, sample_weight=w, drop_intermediate=False)
    np.testing.assert_array_equal(roc.thresholds, thresholds)
    rounding = 0 if w is None else 1e-12  # scikit-learn adds up weights row by row
    np.testing.assert_allclose(roc.false_positive_rate, fpr, rtol=rounding)
    np.testing.assert_allclose(roc.sensitivity, tpr, rtol=rounding)
    assert roc.auc == pytest.approx(roc_auc_score(y, x, sample_weight=w), rel=1e-12, abs=1e-15)


def same_precision(roc, y, x, w=None):
    precision, recall, thresholds = precision_recall_curve(y, x, sample_weight=w)
    table = np.array(roc.precision_recall().rows, dtype=np.float64)
    np.testing.assert_array_equal(table[:-1, 0], thresholds)
    assert roc.precision_recall().rows[-1] == (None, 1.0, 0.0)
    rounding = 0 if w is None else 1e-12
    np.testing.assert_allclose(table[:, 1], precision, rtol=rounding)
    np.testing.assert_allclose(table[:, 2], recall, rtol=rounding)
    assert roc.average_precision == pytest.approx(average_precision_score(y, x, sample_weight=w), rel=1e-12)


@pytest.mark.parametrize("weights", [None, st.floats(0.01, 100)], ids=["plain", "weighted"])
@pytest.mark.parametrize("scores", [real, single], ids=["double", "single"])
@given(data=st.data())
def test_curve_is_that_of_scikit_learn(scores, weights, data):
    y, x, w = data.draw(labelled(scores, weights))
    same_curve(Roc.of(y, x, sample_weight=w), y, x, w)
    same_precision(Roc.of(y, x, sample_weight=w), y, x, w)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_many_rows_in_two_threads(dtype):
    rng = np.random.default_rng(0)
    n = 2 * score_counts.TWO_THREADS
    y = rng.random(n) < 0.2
    x = (rng.normal(size=n) + y).round(3).astype(dtype)
    same_curve(Roc.of(y, x), y, x)
    same_precision(Roc.of(y, x), y, x)
    w = rng.random(n)
    same_curve(Roc.of(y, x, sample_weight=w), y, x, w)


@given(labelled())
def test_area_is_a_count_of_pairs(rows):
    y, x, _ = rows
    pairs = [(p, q) for p in x[y == 1] for q in x[y == 0]]
    won = sum(Fraction(int(p > q)) + Fraction(int(p == q), 2) for p, q in pairs)
    assert Roc.of(y, x).auc == float(won / len(pairs))


@given(labelled(weights=whole))
def test_long_curves_are_summed_in_blocks(rows):
    y, x, w = rows
    again = np.repeat(np.arange(len(y)), w.astype(int))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(roc_module, "BLOCK", 2)
        roc = Roc.of(y, x, sample_weight=w)
        assert roc.auc == pytest.approx(roc_auc_score(y, x, sample_weight=w), rel=1e-12, abs=1e-15)
        if roc.positives >= 2 and roc.negatives >= 2:
            assert roc.variance == pytest.approx(delong(y[again], x[again]), rel=1e-12, abs=1e-15)


# DeLong
def placements(y, x):
    """Of each positive the share of negatives below it, of each negative that of positives above it."""
    positive, negative = x[y == 1], x[y == 0]
    won = (positive[:, None] > negative) + 0.5 * (positive[:, None] == negative)
    return won.mean(axis=1), won.mean(axis=0)


def delong(y, x):
    return sum(v.var(ddof=1) / len(v) for v in placements(y, x))


@given(labelled(least=2))
def test_variance_is_that_of_all_pairs(rows):
    y, x, _ = rows
    assert Roc.of(y, x).variance == pytest.approx(delong(y, x), rel=1e-12, abs=1e-15)


@given(labelled(weights=whole, least=2))
def test_a_weight_is_a_repeated_row(rows):
    y, x, w = rows
    again = np.repeat(np.arange(len(y)), w.astype(int))
    weighted, repeated = Roc.of(y, x, sample_weight=w), Roc.of(y[again], x[again])
    for name in ("thresholds", "tp", "fp"):
        np.testing.assert_array_equal(getattr(weighted, name), getattr(repeated, name))
    assert weighted.variance == pytest.approx(delong(y[again], x[again]), rel=1e-12, abs=1e-15)
    assert weighted.auc == repeated.auc


@pytest.mark.parametrize("name", ["s100b", "ndka", "wfns", "reversed"])
def test_auc_and_interval_are_those_of_proc(name):
    expected = R[name]
    roc = Roc.of(R["outcome"], expected["score"], pos_label="Poor")
    assert roc.auc == pytest.approx(expected["auc"], rel=1e-14)
    assert roc.variance == pytest.approx(expected["variance"], rel=1e-12)
    assert roc.interval() == pytest.approx(expected["interval_95"], rel=1e-12)
    assert roc.interval(0.8) == pytest.approx(expected["interval_80"], rel=1e-12)


def test_interval_stays_within_0_and_1():
    roc = Roc.of([0, 1, 0, 1, 1], [0.1, 0.35, 0.4, 0.8, 0.9])
    reach = 1.959963984540054 * np.sqrt(roc.variance)
    assert roc.auc + reach > 1
    assert roc.interval() == (pytest.approx(roc.auc - reach, rel=1e-12), 1.0)
    backwards = Roc.of([1, 0, 1, 0, 0], [0.1, 0.35, 0.4, 0.8, 0.9])
    assert backwards.interval() == (0.0, pytest.approx(1 - roc.auc + reach, rel=1e-12))
    with pytest.raises(DecibanError, match="between 0 and 1"):
        roc.interval(95)


@pytest.mark.parametrize("y", [[0, 1, 1, 1], [0, 0, 0, 1]])
def test_one_positive_or_negative_has_no_variance(y):
    roc = Roc.of(y, [0.1, 0.2, 0.3, 0.4])
    assert roc.auc == 1.0
    assert roc.variance == NAN
    assert roc.interval() == (NAN, NAN)
    assert "interval" not in str(roc)


# Corner cases
@pytest.mark.parametrize(("label", "missing"), [(1, "negative"), (0, "positive"), (True, "negative"), (-1, "positive")])
def test_one_class_has_points_but_no_area(label, missing):
    roc = Roc.of([label] * 3, [0.5, 0.25, 0.5])
    with pytest.warns(DecibanWarning, match=f"no row is {missing}"):
        assert roc.auc == NAN
    np.testing.assert_array_equal(roc.thresholds, [np.inf, 0.5, 0.25])
    np.testing.assert_array_equal(roc.fp if missing == "positive" else roc.tp, [0, 2, 3])
    assert np.isnan(roc.sensitivity if missing == "positive" else roc.false_positive_rate).all()
    assert "nan" in str(roc)
    assert roc.interval() == (NAN, NAN)


def test_no_rows_or_no_positive_ones():
    with pytest.warns(DecibanWarning, match="no row is positive"):
        assert Roc.of([0, 0], [0.5, 0.25]).average_precision == NAN
    assert Roc.of([1, 1], [0.5, 0.25]).average_precision == 1.0
    for roc in (Roc.of([], []), Roc.of([0, 1], [0.25, 0.5], sample_weight=[0, 0])):
        np.testing.assert_array_equal(roc.thresholds, [np.inf])
        assert (roc.positives, roc.negatives) == (0, 0)
        with pytest.warns(DecibanWarning, match="no AUC"):
            assert roc.auc == NAN


@given(labelled(st.just(0.3)))
def test_equal_scores_tell_nothing(rows):
    y, x, _ = rows
    roc = Roc.of(y, x)
    assert roc.auc == 0.5
    assert len(roc.tp) == 2
    assert roc.variance == (NAN if min(y.sum(), (1 - y).sum()) < 2 else 0.0)


@given(labelled(), st.data())
def test_a_row_of_weight_zero_is_absent(rows, data):
    y, x, _ = rows
    nonzero = data.draw(hnp.arrays(np.bool_, len(y)))
    assume(nonzero.any() and len(set(y[nonzero])) == 2)
    roc, expected = Roc.of(y, x, sample_weight=nonzero.astype(float)), Roc.of(y[nonzero], x[nonzero])
    for name in ("thresholds", "tp", "fp"):
        np.testing.assert_array_equal(getattr(roc, name), getattr(expected, name))


def test_infinite_scores_are_scores():
    y, x = [0, 1, 0, 1], [-np.inf, np.inf, 0.0, 0.0]
    roc = Roc.of(y, x)
    np.testing.assert_array_equal(roc.thresholds, [np.inf, np.inf, 0.0, -np.inf])
    assert roc.auc == 0.875  # of 4 pairs one is a tie


@given(labelled(weights=whole), st.data())
def test_rates_at_a_threshold_are_counts(rows, data):
    y, x, w = rows
    t = data.draw(st.sampled_from(list(x)) | real)
    called, positive = x >= t, y == 1
    roc = Roc.of(y, x, sample_weight=w).at(t)
    expected = [w[called & positive], w[called & ~positive], w[~called & ~positive], w[~called & positive]]
    tp, fp, tn, fn = (float(part.sum()) for part in expected)
    assert (roc.threshold, roc.tp, roc.fp, roc.tn, roc.fn) == (t, tp, fp, tn, fn)
    pairs = {
        "sensitivity": (tp, tp + fn),
        "specificity": (tn, tn + fp),
        "precision": (tp, tp + fp),
        "negative_predictive_value": (tn, tn + fn),
        "accuracy": (tp + tn, tp + tn + fp + fn),
        "f1": (2 * tp, 2 * tp + fp + fn),
    }
    for name, (part, whole_of) in pairs.items():
        assert getattr(roc, name) == (part / whole_of if whole_of else NAN), name


def test_the_positive_class_can_be_chosen():
    x = [0.1, 0.35, 0.4, 0.8]
    assert Roc.of(["no", "yes", "no", "yes"], x).auc == 0.75
    assert Roc.of(["no", "yes", "no", "yes"], x, pos_label="no").auc == 0.25
    assert Roc.of(["a", "b", "a", "c"], x, pos_label="c").auc == 1.0
    with pytest.raises(DecibanError, match="which of 'a', 'b', 'c' is positive"):
        Roc.of(["a", "b", "a", "c"], x)
    with pytest.raises(DecibanError, match="which of 'a' is positive"):
        Roc.of(["a"] * 4, x)
    with pytest.raises(DecibanError, match="no row is labelled 'y': pos_label must be one of 'no', 'yes'"):
        Roc.of(["no", "yes", "no", "yes"], x, pos_label="y")
    assert Roc.of(["no"] * 4, x, pos_label="yes").negatives == 4


def test_types_of_scores():
    assert Roc.of([0, 1, 1], [1, 2, 3]).auc == 1.0
    assert Roc.of([0, 1, 1], [False, True, True]).auc == 1.0
    for scores, message in [
        ([0.5, np.inf, np.nan], "scores, row 2: the score is NaN"),
        (np.array([0.5, np.nan, np.nan], np.float32), "row 1"),
        ([0.5, 0.25], "each of the 3 labels"),
        (np.zeros((3, 2)), r"their shape is \(3, 2\)"),
        ([0.5, None, 0.5], "row 1: the score is NaN"),
        (["a", "b", "c"], "must be numbers"),
    ]:
        with pytest.raises(DecibanError, match=message):
            Roc.of([0, 1, 1], scores)


def test_points_as_a_table():
    roc = Roc.of([0, 1, 1], [0.25, 0.5, 0.25])
    assert roc.to_frame().to_pydict() == {
        "threshold": [np.inf, 0.5, 0.25],
        "false_positive_rate": [0.0, 0.0, 1.0],
        "sensitivity": [0.0, 0.5, 1.0],
        "fp": [0.0, 0.0, 1.0],
        "tp": [0.0, 1.0, 2.0],
    }


def test_scores_passed_are_not_changed():
    x = np.array([0.5, 0.25, 0.75])
    Roc.of([0, 1, 1], x)
    np.testing.assert_array_equal(x, [0.5, 0.25, 0.75])
