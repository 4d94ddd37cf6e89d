"""Metrics equal scikit-learn's, whatever the batches were; bad input is named by row."""

import io
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.calibration import calibration_curve
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    brier_score_loss,
    confusion_matrix,
    f1_score,
    log_loss,
    precision_recall_curve,
    precision_score,
    recall_score,
    roc_auc_score,
    roc_curve,
)

from deciban.errors import DecibanError, DecibanWarning, NegativeEvidence
from deciban.evaluation.calibration import quantiles
from deciban.evaluation.evaluation import Evaluation
from deciban.evaluation.score_counts import ScoreCounts
from tests.laws import assert_same_bits, dyadic

NAMES = np.array(["ant", "bee", "cow", "dog"])
NAN = pytest.approx(np.nan, nan_ok=True)


def drawn(classes, n=300, weights=None, seed=0, decimals=2, dtype=np.float64):
    """Labels of all classes, probabilities with many ties that know something, and weights."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, classes, n)
    codes[:classes] = np.arange(classes)
    raw = rng.dirichlet(np.ones(classes), n) + np.eye(classes)[codes] * rng.random((n, 1))
    p = (raw / raw.sum(axis=1, keepdims=True)).round(decimals)
    p[:, 0] += 1 - p.sum(axis=1)
    p = np.abs(p / p.sum(axis=1, keepdims=True)).astype(dtype)
    w = {None: None, "whole": rng.integers(1, 4, n).astype(float), "real": rng.random(n) + 0.01}[weights]
    return NAMES[codes], p, w


CASES = [
    pytest.param(drawn(classes, weights=weights, decimals=decimals), id=f"{classes}-{weights}-{decimals}")
    for classes, weights, decimals in [(2, None, 2), (2, "whole", 15), (3, "real", 2), (4, None, 15), (4, "whole", 2)]
]


@pytest.fixture(params=CASES)
def case(request):
    return request.param


def same_bits(a, b):
    assert_same_bits(a.to_arrays(), b.to_arrays())


# Agreement with scikit-learn
def test_confusion_and_losses_are_those_of_scikit_learn(case):
    y, p, w = case
    evaluation, names = Evaluation.of(y, p, sample_weight=w), NAMES[: p.shape[1]]
    predicted = names[p.argmax(axis=1)]
    counts = confusion_matrix(y, predicted, sample_weight=w)
    np.testing.assert_allclose(evaluation.confusion, counts, rtol=1e-12 if w is not None else 0)
    assert evaluation.classes == tuple(names)
    assert evaluation.accuracy == pytest.approx(accuracy_score(y, predicted, sample_weight=w), rel=1e-14)
    assert evaluation.error == pytest.approx(1 - accuracy_score(y, predicted, sample_weight=w), rel=1e-12)
    assert evaluation.log_loss == pytest.approx(log_loss(y, p, sample_weight=w), rel=1e-13)
    two = {"pos_label": "bee"} if len(names) == 2 else {}
    expected = brier_score_loss(y, p[:, 1] if two else p, sample_weight=w, **two)
    assert evaluation.brier == pytest.approx(expected, rel=1e-13)
    assert evaluation.rows == pytest.approx(len(y) if w is None else w.sum(), rel=1e-14)
    np.testing.assert_allclose(evaluation.count, counts.sum(axis=1), rtol=1e-13)


def test_curves_are_those_of_scikit_learn(case):
    y, p, w = case
    evaluation = Evaluation.of(y, p, sample_weight=w)
    for k, name in enumerate(evaluation.classes):
        member, x = y == name, p[:, k]
        curve = evaluation.roc(name)
        fpr, tpr, thresholds = roc_curve(member, x, sample_weight=w, drop_intermediate=False)
        np.testing.assert_array_equal(curve.thresholds, thresholds)
        np.testing.assert_allclose(curve.false_positive_rate, fpr, rtol=1e-12)
        np.testing.assert_allclose(curve.sensitivity, tpr, rtol=1e-12)
        assert evaluation.auc(name) == pytest.approx(roc_auc_score(member, x, sample_weight=w), rel=1e-12)
        assert evaluation.auc_error(name) == 0
        table = np.array(evaluation.precision_recall(name).rows, float)
        expected = precision_recall_curve(member, x, sample_weight=w)
        np.testing.assert_array_equal(table[:-1, 0], expected[2])
        np.testing.assert_allclose(table[:, 1:], np.transpose(expected[:2]), rtol=1e-12)
        average = average_precision_score(member, x, sample_weight=w)
        assert evaluation.average_precision(name) == pytest.approx(average, rel=1e-12)
        called = x >= 0.3
        rates = evaluation.at(0.3, pos_label=name)
        assert rates.sensitivity == pytest.approx(recall_score(member, called, sample_weight=w), rel=1e-12)
        assert rates.precision == pytest.approx(precision_score(member, called, sample_weight=w), rel=1e-12)
        assert rates.f1 == pytest.approx(f1_score(member, called, sample_weight=w), rel=1e-12)
        assert evaluation.at(pos_label=name) == evaluation.at(0.5, pos_label=name)


def test_by_class_is_that_of_scikit_learn(case):
    y, p, w = case
    evaluation = Evaluation.of(y, p, sample_weight=w)
    predicted = NAMES[p.argmax(axis=1)]
    header = evaluation.by_class().header
    for k, row in enumerate(evaluation.by_class().rows):
        values = dict(zip(header, row, strict=True))
        truth, called = y == NAMES[k], predicted == NAMES[k]
        assert values["class"] == NAMES[k]
        expected = {
            "rows": truth.sum() if w is None else w[truth].sum(),
            "sensitivity": recall_score(truth, called, sample_weight=w),
            "specificity": recall_score(~truth, ~called, sample_weight=w),
            "precision": precision_score(truth, called, sample_weight=w),
            "npv": precision_score(~truth, ~called, sample_weight=w),
            "f1": f1_score(truth, called, sample_weight=w),
            "auc": roc_auc_score(truth, p[:, k], sample_weight=w),
        }
        assert {name: values[name] for name in expected} == pytest.approx(expected, rel=1e-12)


def test_the_mean_auc_is_that_of_scikit_learn():
    y, p, _ = drawn(4)
    metrics = dict(zip(*Evaluation.of(y, p).to_frame().to_pydict().values(), strict=True))
    assert metrics["mean_auc"] == pytest.approx(roc_auc_score(y, p, multi_class="ovr"), rel=1e-13)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_calibration_is_that_of_scikit_learn(strategy):
    for weights, decimals, bins in product((None, "whole"), (1, 2, 15), (1, 4, 10)):
        y, p, w = drawn(2, weights=weights, decimals=decimals)
        again = np.arange(len(y)) if w is None else np.repeat(np.arange(len(y)), w.astype(int))
        table = np.array(Evaluation.of(y, p, sample_weight=w).calibration(bins=bins, strategy=strategy).rows)
        observed, predicted = calibration_curve((y == "bee")[again], p[again, 1], n_bins=bins, strategy=strategy)
        np.testing.assert_allclose(table[:, 0], predicted, rtol=1e-13)
        np.testing.assert_allclose(table[:, 1], observed, rtol=1e-13)
        assert table[:, 2].sum() == len(again)


@given(hnp.arrays(np.float64, st.integers(1, 30), elements=st.floats(0, 1)), st.integers(1, 7))
def test_quantile_bins_have_numpys_edges(x, bins):
    """A score that lies on an edge belongs below it, so edges must be numpy's to the last bit."""
    y = np.arange(len(x)) % 2
    evaluation = Evaluation.of(y, x, classes=[0, 1]).calibration(bins=bins, strategy="quantile")
    shares = np.linspace(0, 1, bins + 1)
    edges = np.percentile(x, shares * 100)
    cells = ScoreCounts.of(x, y == 1, np.ones(len(x)))
    np.testing.assert_array_equal(quantiles(cells, shares), edges)
    sizes = np.bincount(np.searchsorted(edges[1:-1], x), minlength=bins)
    assert [row[2] for row in evaluation.rows] == sizes[sizes > 0].tolist()


def test_calibration_error_of_the_largest_probability():
    y, p, w = drawn(3, weights="real", decimals=15)
    largest, right = p.max(axis=1), NAMES[p.argmax(axis=1)] == y
    expected = 0.0
    for low in np.arange(10) / 10:
        inside = (largest > low) & (largest <= low + 0.1)
        if inside.any():
            share = w[inside] / w[inside].sum()
            expected += w[inside].sum() / w.sum() * abs(share @ right[inside] - share @ largest[inside])
    assert Evaluation.of(y, p, sample_weight=w).ece() == pytest.approx(expected, rel=1e-12)
    of_bee = Evaluation.of(y == "bee", p[:, 1], sample_weight=w)
    assert Evaluation.of(y, p, sample_weight=w).ece(pos_label="bee") == pytest.approx(of_bee.ece(), rel=1e-13)


@pytest.mark.parametrize("classes", [2, 3])
def test_single_precision_is_as_good_as_its_doubles(classes):
    y, p, _ = drawn(classes, dtype=np.float32, decimals=7)
    assert p.dtype == np.float32
    evaluation = Evaluation.of(y, p)
    assert evaluation.log_loss == pytest.approx(log_loss(y, p), rel=1e-6)
    of_true = p[np.arange(len(y)), np.searchsorted(NAMES, y)].astype(float)
    assert evaluation.log_loss == pytest.approx(-np.log(of_true).mean(), rel=1e-13)
    curve = roc_curve(y == "bee", p[:, 1], drop_intermediate=False)
    np.testing.assert_array_equal(evaluation.roc("bee").thresholds, curve[2])
    np.testing.assert_array_equal(evaluation.roc("bee").sensitivity, curve[1])
    same_bits(evaluation, Evaluation.of(y, p.astype(float)))


def test_single_precision_of_many_classes_may_add_up_to_a_little_else():
    p = np.full((1, 1000), 0.001, np.float32)
    p[0, 0] += 5e-6
    assert Evaluation.of([0], p, classes=range(1000)).accuracy == 1
    with pytest.raises(DecibanError, match="add up to"):
        Evaluation.of([0], p.astype(float), classes=range(1000))


def test_a_probability_of_0_costs_what_scikit_learn_says():
    y, p = ["a", "b", "a"], np.array([[0.0, 1.0], [0.0, 1.0], [0.75, 0.25]])
    assert Evaluation.of(y, p).log_loss == pytest.approx(log_loss(y, p), rel=1e-15)
    certain = log_loss(["b"], [[0, 1]], labels=["a", "b"])
    assert Evaluation.of(["b"], [1.0], classes=["a", "b"]).log_loss == pytest.approx(certain, rel=1e-15, abs=0)


# Laws
@st.composite
def samples(draw, weights=True, cap=1000):
    """An evaluation of a few rows whose model knows some classes, which need not be those of the labels."""
    known = draw(st.sets(st.sampled_from(NAMES.tolist()), min_size=1))
    n = draw(st.integers(0, 6))
    y = draw(st.lists(st.sampled_from(NAMES.tolist()), min_size=n, max_size=n))
    raw = draw(
        hnp.arrays(np.float64, (n, len(known)), elements=st.sampled_from([0.125, 0.25, 1.0]) | st.floats(0.1, 1))
    )
    w = draw(st.none() | st.lists(dyadic, min_size=n, max_size=n)) if weights else None
    p = raw / raw.sum(axis=1, keepdims=True)
    return Evaluation.of(y, p, classes=draw(st.permutations(sorted(known))), sample_weight=w, cap=cap)


nothing = Evaluation.of([], [])


@given(samples())
def test_nothing_adds_nothing(a):
    same_bits(a + nothing, a)
    same_bits(nothing + a, a)
    same_bits(sum([a]), a)


@pytest.mark.parametrize("cap", [1000, 7, 3])
@given(data=st.data())
def test_order_and_brackets_do_not_matter(cap, data):
    a, b, c = (data.draw(samples(cap=cap)) for _ in range(3))
    same_bits(a + b, b + a)
    same_bits((a + b) + c, a + (b + c))
    same_bits(sum([a, b, c]), c + a + b)
    assert (a + b) + c == sum([c, b, a])


@given(samples(), samples())
def test_what_was_added_can_be_forgotten(a, b):
    assume(a.rows)
    left = (a + b) - b
    same_bits(left, a)
    assert left == a
    assert left.classes == a.classes


@given(samples(), samples())
def test_more_than_was_there_cannot_be_forgotten(a, b):
    assume(b.rows)
    with pytest.raises(NegativeEvidence, match="not in the evaluation"):
        a - (a + b)


@pytest.mark.parametrize(("weights", "cap"), [(None, 150), ("whole", 10_000), ("real", 299)])
def test_batches_do_not_matter(weights, cap):
    """Not when they are many, nor when they are folded on the way because the cap is low."""
    y, p, w = drawn(3, weights=weights)
    whole = Evaluation.of(y, p, sample_weight=w)
    cuts = [0, 3, 3, 50, 130, 131, 300]
    parts = [
        Evaluation.of(y[a:b], p[a:b], classes=NAMES[:3], sample_weight=None if w is None else w[a:b], cap=cap)
        for a, b in pairwise(cuts)
    ]
    total = sum(parts)
    assert (total.folded is None) == (cap > 300)
    assert len(np.unique(p)) < 150  # all scores are exact: many are equal
    assert_same_bits(*({k: v for k, v in e.to_arrays().items() if not k.endswith("cap")} for e in (total, whole)))
    assert total.summary().tables == whole.summary().tables
    assert total.auc_interval("bee") == whole.auc_interval("bee")
    assert total.calibration() == whole.calibration()
    one_by_one = sum(Evaluation.of(y[i : i + 1], p[i : i + 1], classes=NAMES[:3]) for i in range(60))
    same_bits(one_by_one, Evaluation.of(y[:60], p[:60], classes=NAMES[:3]))


def test_metrics_do_not_depend_on_when_rows_are_folded():
    y, p, w = drawn(3, weights="real", decimals=15)
    rows = Evaluation.of(y, p, sample_weight=w)
    folded = Evaluation.from_arrays(Evaluation.of(y, p, sample_weight=w).to_arrays())
    assert rows.pieces
    assert not folded.pieces
    for name in ("accuracy", "error", "log_loss", "brier", "rows"):
        assert getattr(rows, name) == getattr(folded, name), name
    for name in rows.classes:
        assert rows.auc(name) == folded.auc(name)
        assert rows.auc_interval(name) == folded.auc_interval(name)
        assert rows.average_precision(name) == folded.average_precision(name)
        assert rows.calibration(name) == folded.calibration(name)
    assert str(rows) == str(folded)


@given(samples(weights=False), st.data())
def test_weights_are_repeated_rows(a, data):
    assume(a.rows)
    (piece,) = a.pieces
    y, p = np.array(a.classes)[piece.codes], piece.proba
    w = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(y), max_size=len(y))))
    again = np.repeat(np.arange(len(y)), w)
    weighted = Evaluation.of(y, p, classes=a.classes, sample_weight=w)
    same_bits(weighted, Evaluation.of(y[again], p[again], classes=a.classes))


@given(samples())
def test_saved_is_loaded(a):
    file = io.BytesIO()
    np.savez(file, **a.to_arrays())
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        loaded = Evaluation.from_arrays(dict(arrays))
    same_bits(loaded, a)
    assert loaded == a
    assert loaded.classes == a.classes


def test_classes_of_any_type_are_saved():
    evaluation = Evaluation.of([True, False], [0.25, 0.5])
    assert Evaluation.from_arrays(evaluation.to_arrays()).classes == (False, True)
    mixed = Evaluation.of([1, 2], [0.25, 0.5]) + Evaluation.of(["é", "b"], [0.25, 0.5])
    assert Evaluation.from_arrays(mixed.to_arrays()).classes == (1, 2, "b", "é")


def test_different_evidence_is_not_equal():
    a = Evaluation.of([0, 1], [0.25, 0.5])
    assert a != Evaluation.of([0, 1], [0.25, 0.75])
    assert a != Evaluation.of([1, 2], [0.25, 0.5])
    assert a != "a"
    with pytest.raises(TypeError):
        a + 1
    with pytest.raises(TypeError):
        a - 1
    with pytest.raises(TypeError):
        1 + a


# Past the cap
@pytest.mark.parametrize(("cap", "weights"), [(16, "real"), (64, None), (256, "real")])
def test_past_the_cap_the_error_is_bounded(cap, weights):
    y, p, w = drawn(3, n=1000, weights=weights, decimals=15)
    exact = Evaluation.of(y, p, sample_weight=w)
    parts = [
        Evaluation.of(y[i::7], p[i::7], classes=NAMES[:3], sample_weight=None if w is None else w[i::7], cap=cap)
        for i in range(7)
    ]
    evaluation = sum(parts)
    same_bits(evaluation, Evaluation.of(y, p, sample_weight=w, cap=cap))
    np.testing.assert_array_equal(evaluation.confusion, exact.confusion)
    assert (evaluation.accuracy, evaluation.log_loss, evaluation.brier) == (exact.accuracy, exact.log_loss, exact.brier)
    for name in NAMES[:3]:
        assert 0 < abs(evaluation.auc(name) - exact.auc(name)) <= evaluation.auc_error(name) < 0.1
        assert evaluation.at(pos_label=name) == replace(
            exact.at(pos_label=name), **_counts(evaluation.at(pos_label=name), exact.at(pos_label=name))
        )
        curve, member = evaluation.roc(name), y == name
        score = p[:, evaluation.classes.index(name)]
        # there are fewer points, but each of them is exact
        above = [np.where(score >= t, 1.0 if w is None else w, 0.0) for t in curve.thresholds[1:]]
        np.testing.assert_allclose(curve.tp[1:], [a[member].sum() for a in above], rtol=1e-12)
        np.testing.assert_allclose(curve.fp[1:], [a[~member].sum() for a in above], rtol=1e-12)
    assert f"more than {cap} distinct scores" in str(evaluation)
    assert "distinct scores" not in str(exact)


def _counts(evaluation, exact):
    """The four counts at 0.5, a power of 2 and so the edge of a cell, up to the rounding of sums of weights."""
    names = ("tp", "fp", "tn", "fn")
    assert [getattr(evaluation, n) for n in names] == pytest.approx([getattr(exact, n) for n in names], rel=1e-12)
    return {n: getattr(evaluation, n) for n in names}


def test_rows_beyond_the_cap_are_folded_and_new_ones_wait():
    y, p, _ = drawn(2, n=100)
    full = Evaluation.of(y, p, cap=60)
    assert full.folded is not None
    assert not full.pieces
    more = full + Evaluation.of(y[:50], p[:50], cap=60)
    assert [len(piece) for piece in more.pieces] == [50]
    assert not (more + Evaluation.of(y[:11], p[:11], cap=60)).pieces
    assert more.accuracy == accuracy_score(np.r_[y, y[:50]], NAMES[np.r_[p, p[:50]].argmax(axis=1)])


# Classes
def test_columns_may_be_in_any_order():
    y, p, _ = drawn(3)
    same_bits(Evaluation.of(y, p[:, [2, 0, 1]], classes=["cow", "ant", "bee"]), Evaluation.of(y, p))


def test_labels_and_probabilities_of_any_kind():
    y, p, _ = drawn(2)
    expected = Evaluation.of(y, p)
    same_bits(Evaluation.of(pd.Series(y), pd.DataFrame(p), classes=pd.Index(["ant", "bee"])), expected)
    same_bits(Evaluation.of(y.tolist(), p.tolist(), classes=np.array(["ant", "bee"])), expected)
    same_bits(Evaluation.of(y, np.asfortranarray(p)), expected)
    vector = Evaluation.of(y, p[:, 1])
    assert vector.auc() == expected.auc()
    assert Evaluation.of(y == "bee", p[:, 1], classes=[0, 1]).classes == (0, 1)


def test_a_class_that_the_model_does_not_know_has_probability_0():
    y, p = ["a", "c", "b"], np.array([[0.75, 0.25], [0.5, 0.5], [0.25, 0.75]])
    evaluation = Evaluation.of(y, p, classes=["a", "b"])
    assert evaluation.classes == ("a", "b", "c")
    padded = np.column_stack([p, np.zeros(3)])
    assert evaluation.log_loss == pytest.approx(log_loss(y, padded, labels=["a", "b", "c"]), rel=1e-15)
    assert evaluation.brier == pytest.approx(brier_score_loss(y, padded, labels=["a", "b", "c"]), rel=1e-15)
    np.testing.assert_array_equal(evaluation.confusion, confusion_matrix(y, ["a", "a", "b"]))
    assert evaluation.auc("c") == 0.5
    assert evaluation.unknown == 1
    assert "1 row of a class that the model does not know counts as an error: its probability is 0" in str(evaluation)
    assert Evaluation.of(y, padded, classes=["a", "b", "c"]).unknown == 0


def test_the_mean_auc_is_that_of_known_classes():
    """The unknown class has no score, whose AUC would be 0.5."""
    y, p = ["a", "c", "b", "c"], np.array([[0.75, 0.25], [0.5, 0.5], [0.25, 0.75], [0.4, 0.6]])
    evaluation = Evaluation.of(y, p, classes=["a", "b"])
    expected = np.mean([roc_auc_score([label == name for label in y], p[:, k]) for k, name in enumerate("ab")])
    assert expected == 1.0
    assert dict(evaluation.summary().tables[0].rows)["mean_auc"] == expected
    assert dict((evaluation + evaluation).summary().tables[0].rows)["mean_auc"] == expected
    assert "mean_auc is the mean over classes that the model knows" in str(evaluation)
    assert "2 rows of a class that the model does not know count as errors" in str(evaluation)
    assert np.isnan(dict(Evaluation.of(["c"], [[0.5, 0.5]], classes=["a", "b"]).summary().tables[0].rows)["mean_auc"])


def test_classes_that_only_one_part_knows():
    ab = Evaluation.of(["a", "b"], [0.25, 0.75])
    bc = Evaluation.of(["b", "c"], [[0.5, 0.5], [0.125, 0.875]])
    together = np.array([[0.75, 0.25, 0], [0.25, 0.75, 0], [0, 0.5, 0.5], [0, 0.125, 0.875]])
    evaluation, y = ab + bc, ["a", "b", "b", "c"]
    assert evaluation.classes == ("a", "b", "c")
    assert evaluation.log_loss == pytest.approx(log_loss(y, together), rel=1e-15)
    assert evaluation.auc("b") == pytest.approx(roc_auc_score([0, 1, 1, 0], together[:, 1]), rel=1e-15)
    assert (evaluation - bc).classes == ("a", "b")
    folded = Evaluation.from_arrays(ab.to_arrays()) + Evaluation.from_arrays(bc.to_arrays())
    same_bits(folded, evaluation)


def test_pos_label_is_required_for_three_classes():
    three = Evaluation.of(*drawn(3)[:2])
    for ask in (three.auc, three.at, three.roc, three.auc_interval, three.average_precision, three.precision_recall):
        with pytest.raises(DecibanError, match="Pass pos_label=, one of 'ant', 'bee', 'cow'"):
            ask()
    with pytest.raises(DecibanError, match="'elk' is not a class of this evaluation: pass one of 'ant'"):
        three.auc("elk")
    with pytest.raises(DecibanError, match=r"'Cow' is not a class of this evaluation \(did you mean 'cow'\?\): pass"):
        three.auc("Cow")
    two = Evaluation.of(*drawn(2)[:2])
    assert two.auc() == two.auc("bee")
    assert two.auc("ant") == pytest.approx(two.auc("bee"), rel=1e-12)


def test_a_class_whose_rows_weigh_nothing_is_absent():
    y, p = ["a", "b", "c", "a"], np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0, 0, 1], [0.75, 0.25, 0]])
    evaluation = Evaluation.of(y, p, sample_weight=[1, 1, 0, 1])
    same_bits(evaluation, Evaluation.of(["a", "b", "a"], p[[0, 1, 3]], classes=["a", "b", "c"]))
    np.testing.assert_array_equal(evaluation.count, [2, 1, 0])
    stranger = Evaluation.of(["a", "b", "z"], [0.25, 0.5, 0.5], classes=["a", "b"], sample_weight=[1, 1, 0])
    assert stranger.classes == ("a", "b")
    assert Evaluation.of(["a", "b"], [0.25, 0.5], sample_weight=[0, 0]).rows == 0


def test_one_class_has_no_auc():
    evaluation = Evaluation.of(["a", "a", "a"], [0.25, 0.5, 0.75], classes=["a", "b"])
    with pytest.warns(DecibanWarning, match="no AUC: no row is positive"):
        assert evaluation.auc() == NAN
    with pytest.warns(DecibanWarning, match="no AUC: no row is negative"):
        assert evaluation.auc("a") == NAN
    with pytest.warns(DecibanWarning, match="no average precision"):
        assert evaluation.average_precision() == NAN
    assert evaluation.auc_interval() == (NAN, NAN)
    assert evaluation.accuracy == pytest.approx(2 / 3)
    assert len(evaluation.roc().tp) == 4
    assert evaluation.at().specificity == pytest.approx(1 / 3)
    assert evaluation.at().sensitivity == NAN
    assert "nan" in str(evaluation)  # and no warning


def test_equal_scores_tell_nothing():
    evaluation = Evaluation.of(["a", "b", "a", "b"], [0.5] * 4)
    assert evaluation.auc() == 0.5
    assert evaluation.log_loss == pytest.approx(np.log(2), rel=1e-15)
    np.testing.assert_array_equal(evaluation.confusion, [[2, 0], [2, 0]])  # the first of several


def test_no_rows_have_no_metrics():
    for empty in (nothing, Evaluation.of([], np.zeros((0, 2)), classes=["a", "b"]), nothing + nothing):
        assert empty.rows == 0
        for name in ("accuracy", "error", "log_loss", "brier"):
            assert getattr(empty, name) == NAN
        assert "0 rows" in str(empty)
    assert Evaluation.of([], [], classes=["a", "b"]).ece() == NAN
    with pytest.raises(DecibanError, match="Pass pos_label="):
        nothing.auc()


# Bad input
def test_bad_probabilities_are_named():
    for proba, message in [
        ([[0.5, 0.5], [np.nan, 0.5]], "proba, row 1: the probability in column 0 is missing"),
        ([[0.5, 0.5], [1.25, -0.25]], "proba, row 1: the probability in column 1 is -0.25, which is negative"),
        ([[0.5, 0.5], [0.5, 0.500002]], r"proba, row 1: the probabilities add up to 1\.000002, not 1"),
        ([[0.5, 0.4], [0.5, 0.5]], r"proba, row 0: the probabilities add up to 0\.9, not 1"),
        ([[0.5, 0.5], [np.inf, 0.5]], "proba, row 1: the probabilities add up to inf"),
        ([0.5, np.nan], "proba, row 1: .* is missing"),
        ([0.5, 1.5], "proba, row 1: .* is -0.5, which is negative"),
        ([0.5, -0.5], "proba, row 1: .* is -0.5, which is negative"),
        ([0.5], r"a row for each of the 2 labels, .*; its shape is \(1,\)"),
        (np.zeros((2, 2, 2)), r"its shape is \(2, 2, 2\)"),
        (["x", "y"], "must be numbers"),
        ([[0.5, 0.25, 0.25]] * 2, "proba is for 3 classes, but the labels are of 2 .'a', 'b'.: pass classes="),
    ]:
        with pytest.raises(DecibanError, match=message):
            Evaluation.of(["a", "b"], proba)


def test_sums_within_a_millionth_are_taken():
    assert Evaluation.of(["a", "b"], [[0.5, 0.5], [0.5, 0.5000009]]).accuracy == 1


def test_bad_classes_weights_and_settings():
    y, p = ["a", "b"], [0.25, 0.5]
    for labels, settings, message in [
        (y, {"classes": ["a", "a"]}, "names a class twice: 'a', 'a'"),
        (y, {"classes": ["a", "b", "c"]}, "proba has 2 columns, but classes has 3"),
        (["a", "a"], {}, "the labels are of 1"),
        (y, {"sample_weight": [1, -1]}, "sample_weight, row 1"),
        (["a", None], {}, "label, row 1: the label is missing"),
        (y, {"cap": 0}, "cap is 0"),
    ]:
        with pytest.raises(DecibanError, match=message):
            Evaluation.of(labels, p, **settings)
    evaluation = Evaluation.of(y, p)
    with pytest.raises(DecibanError, match="bins is 0"):
        evaluation.calibration(bins=0)
    with pytest.raises(DecibanError, match='use "uniform" or "quantile"'):
        evaluation.calibration(strategy="equal")


def test_changes_of_arrays_do_not_change_an_evaluation():
    y, p, w = np.array([0, 1]), np.array([[0.75, 0.25], [0.25, 0.75]]), np.array([1.0, 2.0])
    evaluation = Evaluation.of(y, p, sample_weight=w)
    p[:], w[:], y[:] = 0.5, 7.0, 0
    same_bits(evaluation, Evaluation.of([0, 1], [0.25, 0.75], sample_weight=[1, 2]))
    evaluation = Evaluation.of([0, 1], [0.25, 0.75])
    evaluation.confusion[:] = 7
    evaluation.count[:] = 7
    assert (evaluation.rows, evaluation.accuracy) == (2, 1)


# For people
def test_the_inner_door_says_what_the_outer_does():
    y, p, _ = drawn(3)
    codes = np.searchsorted(NAMES, y).astype(np.int32)
    same_bits(Evaluation.scored(tuple(NAMES[:3]), codes, p, None), Evaluation.of(y, p))
    some = np.array([True, True, False])
    without = np.column_stack([1 - p[:, 1], p[:, 1], np.zeros(len(y))])
    evaluation = Evaluation.scored(("ant", "bee", "cow"), codes, without, None, known=some)
    same_bits(evaluation, Evaluation.of(y, without[:, :2], classes=["ant", "bee"]))
    assert evaluation.unknown == (y == "cow").sum()


def test_summary_of_folds():
    y, p, _ = drawn(2)
    parts = tuple(Evaluation.of(y[i::3], p[i::3]) for i in range(3))
    evaluation = replace(sum(parts), parts=parts)
    table = evaluation.summary().tables[-1]
    assert table.title == "folds"
    areas = [roc_auc_score(y[i::3] == "bee", p[i::3, 1]) for i in range(3)]
    losses = [log_loss(y[i::3], p[i::3]) for i in range(3)]
    columns = {name: [row[j] for row in table.rows] for j, name in enumerate(table.header)}
    assert columns["fold"] == ["0", "1", "2", "mean", "sd"]
    for name, values in (("auc", areas), ("log_loss", losses)):
        assert columns[name] == pytest.approx([*values, np.mean(values), np.std(values, ddof=1)], rel=1e-12)
    assert evaluation == sum(parts)  # the folds are not compared
    assert (evaluation + nothing).parts == ()
    assert (evaluation - parts[0]).parts == ()


def test_metrics_as_a_frame():
    y, p, _ = drawn(2)
    evaluation = Evaluation.of(y, p)
    frame = dict(zip(*evaluation.to_frame().to_pydict().values(), strict=True))
    assert list(evaluation.to_frame().column_names) == ["metric", "value"]
    low, high = evaluation.auc_interval()
    expected = {
        "rows": 300,
        "accuracy": accuracy_score(y, NAMES[p.argmax(axis=1)]),
        "log_loss": log_loss(y, p),
        "auc": roc_auc_score(y == "bee", p[:, 1]),
        "auc_low": low,
        "auc_high": high,
        "average_precision": average_precision_score(y == "bee", p[:, 1]),
    }
    assert {name: frame[name] for name in expected} == pytest.approx(expected, rel=1e-12)


def test_text_and_html():
    evaluation = Evaluation.of(["<a>", "b", "b"], [0.25, 0.75, 0.25])
    assert str(evaluation).startswith("evaluation: 3 rows, 2 classes\n\nmetrics\n")
    confusion = "confusion: rows are true, columns predicted\n  true  <a>  b\n  <a>     1  0\n  b       1  1"
    assert confusion in str(evaluation)
    assert repr(evaluation) == str(evaluation)
    page = evaluation._repr_html_()
    assert page.count("<table>") == 3
    assert "&lt;a&gt;" in page
    assert "<a>" not in page


def test_a_table_of_probabilities_may_name_its_classes():
    table = pd.DataFrame({"b": [0.9, 0.2], "a": [0.1, 0.8]})
    assert Evaluation.of(["b", "a"], table).accuracy == 1.0
    assert Evaluation.of(["b", "a"], table.set_axis([0, 1], axis=1)).accuracy == 0.0  # columns in order of the labels
