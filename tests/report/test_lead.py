"""The first sentence of a report: what is predicted, from what, how well, and how that was measured."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

import deciban as db
from deciban.report.lead import expected_error, lead
from tests.report import made
from tests.report.cases import CASES

HELD_OUT = "on 200 held-out rows "


def lead_of(name):
    return CASES[name]().report.figures["lead"]


def accuracy(report):
    return {metric["name"]: metric["value"] for metric in report.figures["quality"]["metrics"]}["accuracy"]


def test_two_classes_of_held_out_rows():
    report = CASES["binary"]().report
    counts = [sum(row) for row in report.figures["quality"]["confusion"]]
    most = report.figures["classes"][counts.index(max(counts))]
    expected = (
        f"EvidenceClassifier predicts `y` from 6 features; {HELD_OUT}it is right for {100 * accuracy(report):.0f}% "
        f"(always guessing {most!r}: {100 * max(counts) / 200:.0f}%), "
    )
    assert report.figures["lead"].startswith(expected)
    assert report.figures["lead"].endswith(").")
    assert "calibrated (calibration error 0." in report.figures["lead"]
    assert str(report).splitlines()[0] == report.figures["lead"]


def test_many_classes_are_counted():
    assert lead_of("five").startswith(f"NaiveBayes predicts `y` (5 classes) from 5 features; {HELD_OUT}it is right")


def test_rows_of_a_class_that_the_model_does_not_know_are_counted():
    X, y = load_iris(return_X_y=True)
    model = db.NaiveBayes().fit(X[:130], np.where(y[:130] == 2, "c", np.where(y[:130] == 1, "b", "a")))
    report = model.report(X[130:], ["c"] * 18 + ["d"] * 2)
    start = "NaiveBayes predicts one of 3 classes from 4 features; on 20 held-out rows (2 of them of a class that the "
    assert report.figures["lead"].startswith(f"{start}model does not know, which count as errors) it is right for ")
    weighted = model.report(X[130:], ["c"] * 18 + ["d"] * 2, sample_weight=np.full(20, 0.5))
    assert "(some of them of a class that the model does not know" in weighted.figures["lead"]


def test_text_is_no_feature():
    assert lead_of("text").startswith("NaiveBayes predicts `y` from text; on 200 held-out rows")


def test_a_regression_has_errors():
    report = CASES["glm"]().report
    metrics = {metric["name"]: metric for metric in report.figures["quality"]["metrics"]}
    error, share = metrics["mean_absolute_error"], metrics["deviance_explained"]["value"]
    assert report.figures["lead"] == (
        f"GeneralizedLinearModel predicts `y` from 3 features; {HELD_OUT}its mean absolute error is "
        f"{error['value']:.3g} (one mean for all: {error['prior']:.3g}), "
        f"and it explains {100 * share:.0f}% of the deviance."
    )


def test_a_regression_worse_than_one_mean_says_so():
    x = np.linspace(0, 1, 40)[:, np.newaxis]
    model = db.GeneralizedLinearModel("gaussian").fit(x, 5 * x[:, 0])
    assert "it explains nothing: one mean for all fits better." in model.report(x, -5 * x[:, 0]).figures["lead"]


def test_training_rows_are_never_called_held_out():
    X, y = load_iris(return_X_y=True)
    left_out = db.GaussianDiscriminant().fit(X, y).report(X, y, held_out=False).figures["lead"]
    assert left_out.startswith(
        "GaussianDiscriminant predicts one of 3 classes from 4 features; on its 150 training rows,"
    )
    assert (
        "each predicted from all the others (leave-one-out), it is right for 98% (always guessing '0': 33%)" in left_out
    )
    two = y > 0
    fitted = db.LogisticRegression(l2=1).fit(X[two], y[two]).report(X[two], y[two], held_out=False).figures["lead"]
    assert fitted.startswith(
        "LogisticRegression predicts '1' or '2' from 4 features; on its 100 training rows it is right"
    )
    assert fitted.endswith("; this is optimistic, since the model was fitted to them.")
    said = db.GaussianDiscriminant().fit(X, y).report(X, y).figures["lead"]
    assert "; on 150 rows that may be its training rows it is right for" in said
    assert "held-out" not in left_out + fitted + said


def test_weighted_rows():
    table = pd.DataFrame({"x": [0.0, 1, 2, 3, 4, 5], "y": list("ababab")})
    model = db.NaiveBayes().fit(table, "y")
    figures = model.report(table[:4], "y", sample_weight=[1, 1, 3, 5]).figures
    assert "on 4 held-out rows it is right for " in figures["lead"]
    assert "% of their weight (always guessing 'b': 60%)" in figures["lead"]


@pytest.mark.parametrize(
    ("error", "rows", "words"),
    [
        (0.03, 400, ", and its probabilities are well calibrated (calibration error 0.03)."),
        (0.08, 4000, ", and its probabilities are roughly calibrated (calibration error 0.08)."),
        (0.2, 400, ", but its probabilities are poorly calibrated (calibration error 0.20)."),
        (
            0.2,
            10,
            ", and 10 rows are too few to tell whether its probabilities are calibrated (calibration error 0.20).",
        ),
    ],
)
def test_calibration_is_judged_by_its_error_and_by_the_number_of_rows(error, rows, words):
    figures = made.binary()
    quality = figures["quality"]
    quality["metrics"].append({"name": "ece", "value": error})
    bins = quality["calibration"][0]["bins"]
    for row in bins["rows"]:
        row[-1] = row[-1] * rows / 400
    assert lead(figures["head"], quality, rows).endswith(words)


def test_the_expected_error_of_a_calibrated_model():
    """By simulation: rows of known probabilities in two bins, whose observed shares differ from them by chance."""
    rng = np.random.default_rng(0)
    p, n = np.array([0.1, 0.6]), np.array([200, 300])
    observed = rng.binomial(n, p, (20_000, 2)) / n
    simulated = (np.abs(observed - p) * n / n.sum()).sum(axis=1).mean()
    bins = {"fields": ["predicted", "rows"], "rows": [list(pair) for pair in zip(p.tolist(), n.tolist(), strict=True)]}
    assert expected_error(bins) == pytest.approx(simulated, rel=0.02)


def test_one_class_has_nothing_to_guess():
    model = db.NaiveBayes().fit([[1.0], [2.0]], ["only", "only"])
    assert model.report([[1.5]], ["only"]).figures["lead"] == (
        "NaiveBayes predicts the only class from 1 feature; on 1 held-out row it is right for 100%."
    )
