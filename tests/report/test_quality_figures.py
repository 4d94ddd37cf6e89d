"""Quality of a report, held against scikit-learn, scipy and sums over the rows."""

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics as sk
from sklearn.datasets import load_breast_cancer, load_iris

import deciban as db
from deciban.evaluation import curves as lines
from deciban.report import quality_figures as quality
from deciban.report import report_of


@pytest.fixture(scope="module")
def halves():
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, :3]
    return X[::2], y[::2], X[1::2], y[1::2]


@pytest.fixture(scope="module")
def judged(halves):
    X, y, other, labels = halves
    model = db.NaiveBayes().fit(X, y)
    return model, report_of(model, other, labels).figures["quality"]


def values(figures):
    return {metric["name"]: metric for metric in figures["metrics"]}


def columns(table):
    return dict(zip(table["fields"], zip(*table["rows"], strict=True), strict=True))


def test_metrics_are_those_of_scikit_learn(judged, halves):
    model, figures = judged
    _, _, X, y = halves
    p = model.predict_proba(X)
    expected = {
        "accuracy": sk.accuracy_score(y, p.argmax(axis=1)),
        "log_loss": sk.log_loss(y, p),
        "brier": sk.brier_score_loss(y, p[:, 1]),
        "auc": sk.roc_auc_score(y, p[:, 1]),
        "average_precision": sk.average_precision_score(y, p[:, 1]),
    }
    figure = values(figures)
    for name, value in expected.items():
        assert figure[name]["value"] == pytest.approx(value, rel=1e-12), name
    assert figures["confusion"] == sk.confusion_matrix(y, p.argmax(axis=1)).tolist()
    assert figures["how"] == "held-out"


def test_the_prior_is_judged_as_a_model_that_knows_no_column(judged, halves):
    _, figures = judged
    _, learned, _, y = halves
    share = np.bincount(learned) / len(learned)
    p = np.tile(share, (len(y), 1))
    figure = values(figures)
    assert figure["log_loss"]["prior"] == pytest.approx(sk.log_loss(y, p), rel=1e-12)
    assert figure["brier"]["prior"] == pytest.approx(sk.brier_score_loss(y, p[:, 1]), rel=1e-12)
    assert figure["accuracy"]["prior"] == pytest.approx((y == share.argmax()).mean(), rel=1e-12)
    assert figure["auc"]["prior"] == sk.roc_auc_score(y, p[:, 1])
    assert figure["average_precision"]["prior"] == pytest.approx(sk.average_precision_score(y, p[:, 1]), rel=1e-12)


def test_without_a_class_prior_it_is_the_shares_of_the_rows():
    X, y = load_iris(return_X_y=True)
    y = np.where(y == 2, 1, y)
    figures = report_of(db.LogisticRegression(l2=1.0).fit(X, y), X, y).figures["quality"]
    assert values(figures)["log_loss"]["prior"] == pytest.approx(np.log(3) - 2 / 3 * np.log(2), rel=1e-12)


def test_counts_at_every_threshold_are_exact(judged, halves):
    model, figures = judged
    _, _, X, y = halves
    p = model.predict_proba(X)[:, 1]
    (curve,) = figures["curves"]
    thresholds = np.arange(1001) / 1000
    assert curve["tp"] == [int((p[y == 1] >= t).sum()) for t in thresholds]
    assert curve["fp"] == [int((p[y == 0] >= t).sum()) for t in thresholds]
    assert (curve["class"], curve["place"], curve["steps"]) == ("1", 1, 1000)
    assert (curve["positives"], curve["negatives"]) == ((y == 1).sum(), (y == 0).sum())
    evaluation = db.evaluate(model, X, y)
    for i in (0, 1, 333, 500, 999, 1000):
        rates = evaluation.at(i / 1000)
        assert (curve["tp"][i], curve["fp"][i]) == (rates.tp, rates.fp)


def test_scores_on_a_threshold_count_as_above_it():
    evaluation = db.Evaluation.of([0, 1, 1, 0], [0.25, 0.25, 0.7, 1.0])
    curve = quality.curve(evaluation)
    assert (curve["tp"][250], curve["tp"][251], curve["tp"][700], curve["tp"][701]) == (2, 1, 1, 0)
    assert (curve["fp"][0], curve["fp"][250], curve["fp"][251], curve["fp"][1000]) == (2, 2, 1, 1)


def test_lines_lie_on_the_curves(judged, halves):
    """What was left out lies as near as can be seen to the line that is drawn."""
    model, figures = judged
    _, _, X, y = halves
    p = model.predict_proba(X)[:, 1]
    (curve,) = figures["curves"]
    fpr, tpr, _ = sk.roc_curve(y, p, drop_intermediate=False)
    drawn = columns(curve["roc"])
    at = np.column_stack([drawn["false_positive_rate"], drawn["sensitivity"]])
    every = np.column_stack([fpr, tpr])
    assert all(np.abs(every - point).sum(axis=1).min() < 1e-5 for point in at)
    assert sk.auc(at[:, 0], at[:, 1]) == pytest.approx(sk.roc_auc_score(y, p), abs=2e-3)
    precision, recall, _ = sk.precision_recall_curve(y, p)
    every = np.column_stack([recall, precision])
    drawn = columns(curve["precision_recall"])
    at = np.column_stack([drawn["recall"], drawn["precision"]])
    assert all(np.abs(every - point).sum(axis=1).min() < 1e-5 for point in at)
    assert at[-1, 0] == 1.0


@pytest.mark.parametrize(("right", "rows"), [(0, 5), (3, 10), (50, 100), (7, 7), (999, 1000)])
def test_intervals_are_wilsons(right, rows):
    expected = stats.binomtest(right, rows).proportion_ci(0.95, method="wilson")
    assert lines.wilson(right / rows, rows) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_calibration_has_bins_shares_and_their_intervals(judged, halves):
    model, figures = judged
    _, _, X, y = halves
    p = model.predict_proba(X)[:, 1]
    (figure,) = figures["calibration"]
    assert figure["class"] == "1"
    total = 0.0
    for low, high, predicted, observed, observed_low, observed_high, rows in figure["bins"]["rows"]:
        mine = (p <= high) & ((p > low) | ((low == 0) & (p == 0)))
        interval = stats.binomtest(int(y[mine].sum()), int(mine.sum())).proportion_ci(0.95, method="wilson")
        expected = (p[mine].mean(), y[mine].mean(), interval.low, interval.high, mine.sum())
        assert (predicted, observed, observed_low, observed_high, rows) == pytest.approx(expected, rel=1e-5)
        total += mine.sum() * abs(p[mine].mean() - y[mine].mean())
    assert figure["ece"] == pytest.approx(total / len(y), rel=1e-9)


def test_weights_widen_intervals_to_the_rows_that_they_are_worth():
    rng = np.random.default_rng(0)
    X, y, w = rng.normal(size=(400, 2)), rng.integers(0, 2, 400), rng.exponential(size=400)
    model = db.NaiveBayes().fit(X, y)
    figures = report_of(model, X, y, sample_weight=w).figures["quality"]
    accuracy, rows = values(figures)["accuracy"], w.sum() ** 2 / (w**2).sum()
    assert accuracy["value"] == pytest.approx(np.average(model.predict(X) == y, weights=w), rel=1e-12)
    p, z = accuracy["value"], stats.norm.ppf(0.975)
    for end in (accuracy["low"], accuracy["high"]):  # (p̂ − p)² = z² p(1 − p)/n at both ends
        assert (p - end) ** 2 == pytest.approx(z**2 * end * (1 - end) / rows, rel=1e-9)
    assert "(Σw)²/Σw²" in figures["sentence"]


def test_learned_rows_are_left_out_one_by_one():
    X, y = load_iris(return_X_y=True)
    X, y = X[30:130:4], y[30:130:4]
    figures = report_of(db.NaiveBayes().fit(X, y), X, y, held_out=False).figures["quality"]
    every = np.arange(len(y))
    p = np.array([db.NaiveBayes().fit(X[every != i], y[every != i]).predict_proba(X[[i]])[0] for i in every])
    assert values(figures)["log_loss"]["value"] == pytest.approx(sk.log_loss(y, p), rel=1e-9)
    assert figures["how"] == "leave-one-out"
    assert "exact" in figures["sentence"]


def test_what_was_learned_is_said_plainly():
    X, y = load_iris(return_X_y=True)
    figure = report_of(db.SoftmaxRegression(l2=1.0).fit(X, y), X, y, held_out=False).figures["quality"]
    assert figure["how"] == "training"
    assert "which is optimistic" in figure["sentence"]
    weighted = report_of(db.EvidenceClassifier(trees=2).fit(X, y), X, y, held_out=False).figures["quality"]
    assert weighted["how"] == "leave-one-out"
    assert "slightly optimistic" in weighted["sentence"]


def test_rows_that_seem_learned_are_noted():
    X, y = load_iris(return_X_y=True)
    model = db.NaiveBayes().fit(X, y)

    def noted(*rows, **options):
        return any("held_out=False" in note for note in report_of(model, *rows, **options).figures["head"]["notes"])

    assert noted(X, y)
    assert not noted(X[1:], y[1:])
    assert not noted(X, y, held_out=False)


def test_of_more_classes_each_is_judged():
    X, y = load_iris(return_X_y=True)
    model = db.NaiveBayes().fit(X[::2], y[::2])
    figures = report_of(model, X[1::2], y[1::2]).figures["quality"]
    p, truth = model.predict_proba(X[1::2]), y[1::2]
    assert values(figures)["mean_auc"]["value"] == pytest.approx(
        sk.roc_auc_score(truth, p, multi_class="ovr"), rel=1e-12
    )
    assert values(figures)["log_loss"]["prior"] == pytest.approx(np.log(3), rel=1e-12)
    for k, curve in enumerate(figures["curves"]):
        assert curve["auc"] == pytest.approx(sk.roc_auc_score(truth == k, p[:, k]), rel=1e-12)
        assert curve["tp"][300] == (p[truth == k, k] >= 0.3).sum()
    top = figures["calibration"][0]
    assert top["class"] is None
    assert sum(columns(top["bins"])["rows"]) == len(truth)


def test_a_class_that_the_model_does_not_know_has_probability_0():
    model = db.NaiveBayes().fit([[0.0], [1.0], [4.0], [5.0]], ["a", "a", "b", "b"])
    figures = report_of(model, [[0.5], [4.5], [9.0]], ["a", "b", "c"]).figures
    assert figures["classes"] == ["a", "b"]
    assert figures["quality"]["classes"] == ["a", "b", "c"]
    assert [row[2] for row in figures["quality"]["confusion"]] == [0, 0, 0]
    assert "1 row of a class that the model does not know counts as an error" in figures["quality"]["sentence"]
    assert figures["head"]["evaluated"]["by_class"] == [1, 1]
    assert figures["quality"]["unknown"] == {"classes": ["c"], "rows": 1}
    assert sum(figures["head"]["evaluated"]["by_class"]) + 1 == figures["head"]["evaluated"]["rows"]


def test_numbers_are_judged_by_their_errors():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 2))
    y = rng.poisson(np.exp(0.3 + 0.5 * X[:, 0]))
    model = db.GeneralizedLinearModel("poisson").fit(X[:200], y[:200])
    figures = report_of(model, X[200:], y[200:]).figures["quality"]
    mean, truth, figure = model.predict(X[200:]), y[200:], values(figures)
    assert figure["rmse"]["value"] == pytest.approx(sk.root_mean_squared_error(truth, mean), rel=1e-12)
    assert figure["rmse"]["prior"] == pytest.approx(truth.std(), rel=1e-12)
    assert figure["mean_absolute_error"]["value"] == pytest.approx(sk.mean_absolute_error(truth, mean), rel=1e-12)
    assert figure["mean_error"]["value"] == pytest.approx((truth - mean).mean(), rel=1e-12)
    assert figure["deviance_explained"]["value"] == pytest.approx(sk.d2_tweedie_score(truth, mean, power=1), rel=1e-9)
    drawn = columns(figures["residuals"])
    np.testing.assert_allclose(np.sort(drawn["observed"]), np.sort(truth))
    np.testing.assert_allclose(np.sort(drawn["predicted"]), np.sort(mean), rtol=1e-5)
