"""The quality of predictions: metrics compared with those of the prior, curves over all thresholds, calibration."""

from __future__ import annotations

from collections.abc import Mapping
from math import isclose
from typing import Any, Literal

import numpy as np

from deciban.data import Sample
from deciban.errors import DecibanError
from deciban.evaluation.cross_validation import evaluate
from deciban.evaluation.curves import LEVEL, at_thresholds, calibration_bins, precision_line, roc_line, wilson
from deciban.evaluation.evaluation import Evaluation
from deciban.evaluation.evaluation_tables import by_class, mean_auc, unknown_rows
from deciban.evaluation.fitted_model import FittedModel
from deciban.evaluation.scores import EPS
from deciban.evidence.weighted_evidence import WeightedEvidence
from deciban.plots.figures import Figures, counted, plain, table
from deciban.report.report_input import ReportInput, as_input, labels_of, weights_of
from deciban.table import numbered
from deciban.types import FloatArray, Level

STEPS, FEWER_STEPS = 1000, 100  # thresholds of a curve; fewer where there are many classes
MANY = 10  # classes, above which a curve has fewer thresholds
BINS = 10
RESIDUALS = 2000  # rows in the chart of residuals
ROUNDING = 1e-12  # times the RMSE: a smaller mean error counts as 0

Mode = Literal["held-out", "leave-one-out", "training"]  # how rows are predicted; "training" is optimistic


def prediction_mode(model: FittedModel, *, held_out: bool) -> Mode:
    """How rows are predicted: training rows by leave-one-out, if the model has it."""
    return "held-out" if held_out else "leave-one-out" if "leave_one_out" in model.capabilities else "training"


def quality(model: FittedModel, data: ReportInput, mode: Mode, shift: Mapping[str, Any]) -> Figures:
    """The quality of predictions. `shift` is the `offset` or the `exposure` of rows."""
    if model.task == "regression":
        return _regression_quality(model, data, mode, shift)
    if any(value is not None for value in shift.values()):
        raise DecibanError("offset and exposure are for regression only: leave them out")
    if mode != "leave-one-out" and "predict_proba" not in model.capabilities:
        raise DecibanError(f"{type(model).__name__} has no probabilities: a report needs predict_proba")
    evaluation: Evaluation = (
        model.leave_one_out(data.X, data.y, data.sample_weight)
        if mode == "leave-one-out"
        else evaluate(model, data.X, data.y, data.sample_weight)
    )
    classes, share, names = evaluation.classes, data.effective, numbered(evaluation.classes)
    if mode != "held-out":
        _require_training_rows(model, dict(zip(names, evaluation.count.tolist(), strict=True)))
    sentence, rates = _sentence(model, data, mode), by_class(evaluation)
    unknown = [name for name, label in zip(names, classes, strict=True) if label not in model.classes_.tolist()]
    if unknown:
        sentence += f" {unknown_rows(evaluation)}."
    positive = classes[1:] if len(classes) == 2 else classes if len(classes) > 2 else ()  # of curves
    calibrated = (None, *(classes if len(classes) > 2 else ())) if len(classes) > 1 else ()  # of calibration charts
    return {
        "how": mode,
        "sentence": sentence,
        "classes": names,
        "unknown": {"classes": unknown, "rows": plain(evaluation.unknown)},
        "metrics": _metrics(evaluation, _prior(model, evaluation), share),
        "confusion": plain(evaluation.confusion),
        "by_class": table(rates.header, [(name, *row[1:]) for name, row in zip(names, rates.rows, strict=True)]),
        "curves": [curve(evaluation, label, share=share) for label in positive],
        "calibration": [_calibration(evaluation, label, share) for label in calibrated],
    }


def _metrics(evaluation: Evaluation, prior: FloatArray, share: float) -> list[Figures]:
    """Each metric with its interval, if it has one, and its value for the class prior alone.

    `share` is the number of rows that one unit of weight stands for, in intervals.
    """
    accuracy, log_loss, brier = _metrics_of_prior(evaluation, prior)
    interval = wilson(evaluation.accuracy, evaluation.rows * share)
    right = "share of rows whose most probable class is the true one; 95% by Wilson"
    metrics = [
        _metric("accuracy", "accuracy", evaluation.accuracy, accuracy, right, interval),
        _metric("log_loss", "log-loss", evaluation.log_loss, log_loss, "mean −log p(true class), in nats"),
        _metric("brier", "Brier score", evaluation.brier, brier, "mean squared error of the probabilities"),
    ]
    if len(evaluation.classes) == 2:
        roc, name = evaluation.roc(), str(evaluation.classes[1])
        area = f"probability that a row of {name} scores higher than another row; 95% by DeLong"
        mean, positive = f"mean precision over all recalls of {name}", _class_shares(evaluation)[1]
        metrics.append(_metric("auc", "AUC", roc.area, 0.5, area, roc.interval(LEVEL, share)))
        metrics.append(_metric("average_precision", "average precision", roc.precision_area, positive, mean))
    elif len(evaluation.classes) > 2:
        each = f"mean over the classes{' that the model knows' if evaluation.unknown else ''}, each against all others"
        metrics.append(_metric("mean_auc", "mean AUC", mean_auc(evaluation), 0.5, each))
    if len(evaluation.classes) > 1:
        off = "mean |predicted probability − observed share|, over 10 bins"
        metrics.append(_metric("ece", "calibration error", evaluation.ece(), None, off))
    return metrics


def _metric(
    name: str, title: str, value: float, prior: float | None, meaning: str, interval: tuple[Any, Any] = (None, None)
) -> Figures:
    low, high = map(plain, interval)
    about = {"name": name, "title": title, "value": plain(value), "low": low, "high": high}
    return about | {"prior": plain(prior), "meaning": meaning}


def _class_shares(evaluation: Evaluation) -> FloatArray:
    """(K) the share of each class among the rows."""
    count = evaluation.count
    return count / count.sum() if count.sum() else np.full(len(count), np.nan)


def _metrics_of_prior(evaluation: Evaluation, prior: FloatArray) -> tuple[float, float, float]:
    """Accuracy, log-loss and Brier score of probabilities that are the same for every row."""
    share, classes = _class_shares(evaluation), len(prior)
    if not classes:
        return float("nan"), float("nan"), float("nan")
    squares = 1 - 2 * prior + (prior**2).sum()  # Σₖ (πₖ − yₖ)² of a row of each class
    log_loss = float(-share @ np.log(np.clip(prior, EPS, 1 - EPS)))
    return float(share[int(np.argmax(prior))]), log_loss, float(share @ squares) / (2 if classes <= 2 else 1)


def _prior(model: FittedModel, evaluation: Evaluation) -> FloatArray:
    """(K) the class prior of a generative model, in the order of an evaluation; for others, the shares of the rows."""
    generative, log_prior = model.base_model_.generative_, model.scorer_.log_prior
    if generative is None:
        return _class_shares(evaluation)
    known = dict(zip(generative.classes, np.exp(log_prior).tolist(), strict=True))
    return np.array([known.get(label, 0.0) for label in evaluation.classes])


def curve(evaluation: Evaluation, pos_label: Level = None, *, share: float = 1.0) -> Figures:
    """ROC and precision-recall curves of class `pos_label`: tp and fp are exact, the lines are for drawing."""
    classes = evaluation.classes
    position = len(classes) - 1 if pos_label is None else classes.index(pos_label)
    roc = evaluation.roc(classes[position])
    steps = STEPS if len(classes) <= MANY else FEWER_STEPS
    tp, fp = at_thresholds(roc, np.arange(steps + 1) / steps)
    low, high = roc.interval(LEVEL, share)
    exact = {
        "class": numbered(classes)[position],
        "place": position,
        "auc": roc.area,
        "auc_low": low,
        "auc_high": high,
        "average_precision": roc.precision_area,
        "positives": roc.positives,
        "negatives": roc.negatives,
        "steps": steps,
        "tp": tp,
        "fp": fp,
    }
    return {**plain(exact), "roc": table(**roc_line(roc)), "precision_recall": table(**precision_line(roc))}


def _calibration(evaluation: Evaluation, pos_label: Level, share: float) -> Figures:
    """Observed share of a class against its predicted probability, by bins, with Wilson's 95% intervals.

    Without `pos_label`: of the second of two classes, or of the predicted one of three or more.
    """
    classes = evaluation.classes
    top = pos_label is None and len(classes) > 2
    name = None if top else numbered(classes)[1 if pos_label is None else classes.index(pos_label)]
    return {
        "class": name,
        "title": "the predicted class" if name is None else name,
        "ece": plain(evaluation.ece(pos_label, BINS)),
        "bins": table(**calibration_bins(evaluation.calibration(pos_label, BINS), BINS, share)),
    }


def _regression_quality(model: FittedModel, data: ReportInput, mode: Mode, shift: Mapping[str, Any]) -> Figures:
    """Errors of predicted means, and the share of deviance explained."""
    rows = data.available
    x, weights, observed = as_input(rows.frame), weights_of(rows), labels_of(rows).astype(np.float64)
    shift = {name: _of_rows(rows, value) for name, value in shift.items() if value is not None}
    predicted = np.asarray(model.predict_mean(x, **shift), np.float64)
    error = observed - predicted
    mean = float(np.average(observed, weights=weights))
    with np.errstate(invalid="ignore", over="ignore"):
        rmse, deviation = (float(np.sqrt(np.average(e**2, weights=weights))) for e in (error, observed - mean))
        absolute_error, absolute_deviation = (
            float(np.average(np.abs(e), weights=weights)) for e in (error, observed - mean)
        )
        mean_error = float(np.average(error, weights=weights))
        mean_error = mean_error if abs(mean_error) > ROUNDING * rmse else 0.0
        explained = float(model.score(x, observed, weights, **shift))
    share, units = "1 − deviance / deviance of one mean for all rows", "in the units of the response"
    metrics = [
        _metric("deviance_explained", "deviance explained", explained, 0.0, share),
        _metric("rmse", "root mean squared error", rmse, deviation, units),
        _metric("mean_absolute_error", "mean absolute error", absolute_error, absolute_deviation, units),
        _metric("mean_error", "mean error", mean_error, 0.0, "observed − predicted: the bias"),
    ]
    drawn = np.unique(np.linspace(0, len(observed) - 1, min(RESIDUALS, len(observed))).astype(np.intp))
    residuals = table(("predicted", "observed"), zip(predicted[drawn], observed[drawn], strict=True))
    sentence = _sentence(model, data, mode)
    if shift:
        sentence += f" They include the {' and '.join(shift)} of rows; the single prediction below does not."
    return {"how": mode, "sentence": sentence, "metrics": metrics, "residuals": residuals}


def _of_rows(rows: Sample, value: Any) -> Any:
    """The offset or exposure of these rows; a number or the name of a column stays as it is."""
    if isinstance(value, str) or np.ndim(value) == 0 or rows.numbers is None:
        return value
    return np.asarray(value)[rows.numbers]


def _sentence(model: FittedModel, data: ReportInput, mode: Mode) -> str:
    """How rows were predicted, and what their weights mean."""
    rows = counted(data.rows, "row")
    if mode == "held-out":
        text = f"Evaluated on {rows} that the model was not fitted to."
    elif mode == "training":
        text = f"Evaluated on the {rows} that the model was fitted to, which is optimistic: hold rows out instead."
    else:
        weighted = "; weights, pairs and cuts were chosen with all rows, so this is slightly optimistic."
        exact = weighted if isinstance(model.scorer_, WeightedEvidence) else ": exact, without refits."
        text = f"Evaluated on the {rows} that the model was fitted to, each predicted from all the others{exact}"
    if data.weighted:
        text += (
            f" Rows are weighted: Σw is {data.weight:,.6g}, and intervals are those of the effective number of rows,"
            f" (Σw)²/Σw² = {data.weight * data.effective:,.6g}."
        )
    return text


def seems_training(model: FittedModel, counts: Figures) -> bool:
    """Whether the rows have the class counts of the training rows."""
    training, present = _training_counts(model), {name: n for name, n in counts.items() if n}
    if training is None or training.keys() != present.keys():
        return False
    return all(isclose(training[name], n) for name, n in present.items())


def _require_training_rows(model: FittedModel, counts: Figures) -> None:
    """Raise if a class has more rows than the model was fitted to."""
    training = _training_counts(model)
    for name, n in counts.items():
        known = n if training is None else training.get(name, 0.0)
        if n > known and not isclose(n, known):
            raise DecibanError(
                f"held_out=False, but class {name!r} has {counted(n, 'row')}, and the model was fitted to "
                f"{counted(known, 'row')} of it: pass its training rows, or held_out=True for others"
            )


def _training_counts(model: FittedModel) -> dict[str, float] | None:
    """Σ w of the training rows of each class, if it is known."""
    base = model.base_model_
    if base.class_count_ is None or base.generative_ is None:
        return None
    return dict(zip(numbered(base.generative_.classes), base.class_count_.tolist(), strict=True))
