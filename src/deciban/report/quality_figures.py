"""How good a model's predictions are: metrics beside those of the prior, curves at all thresholds, calibration."""

from __future__ import annotations

from collections.abc import Mapping
from math import isclose
from types import MappingProxyType
from typing import Any

import numpy as np

from deciban.data import Sample
from deciban.errors import DecibanError
from deciban.evaluation.cross_validation import evaluate
from deciban.evaluation.curves import LEVEL, at_thresholds, calibration_bins, precision_line, roc_line, wilson
from deciban.evaluation.evaluation import Evaluation
from deciban.evaluation.evaluation_tables import by_class, mean_auc
from deciban.evaluation.fitted_model import FittedModel
from deciban.evaluation.scores import EPS
from deciban.evidence.weighted_evidence import WeightedEvidence
from deciban.plots.figures import Figures, counted, plain, table
from deciban.report.report_input import ReportInput, as_input, labels_of, weights_of
from deciban.table import numbered
from deciban.types import FloatArray, Level

STEPS, FEWER_STEPS = 1000, 100  # thresholds of a curve; fewer where there are many classes
MANY = 10  # classes
BINS = 10
RESIDUALS = 2000  # rows
ROUNDING = 1e-12  # of the errors: a mean that is smaller is none
NONE: Mapping[str, Any] = MappingProxyType({})


def quality(
    model: FittedModel, data: ReportInput, *, learned: bool, shift: Mapping[str, Any] = NONE, rows: int = 1
) -> Figures:
    """How good the predictions are; without residuals, where no rows may be shown."""
    if model.task == "regression":
        return regression_quality(model, data, learned=learned, shift=shift) | ({} if rows else {"residuals": None})
    if any(value is not None for value in shift.values()):
        raise DecibanError("offset and exposure are for models of numbers only: leave them out")
    how, evaluation = evaluated(model, data, learned=learned)
    if learned:
        require_learned(model, dict(zip(numbered(evaluation.classes), evaluation.count.tolist(), strict=True)))
    sentence = _sentence(model, data, how)
    if evaluation.unknown:
        sentence += (
            f" {counted(evaluation.unknown, 'row')} of a class that the model does not know, whose probability is 0."
        )
    return figures(evaluation, how, sentence, prior=prior_of(model, evaluation), share=data.effective)


def evaluated(model: FittedModel, data: ReportInput, *, learned: bool) -> tuple[str, Evaluation]:
    """ "held-out", "leave-one-out" or "learned", and the evaluation that goes with it."""
    if learned and "leave_one_out" in model.capabilities:
        return "leave-one-out", model.leave_one_out(data.X, data.y, data.sample_weight)
    if "predict_proba" not in model.capabilities:
        raise DecibanError(f"{type(model).__name__} has no probabilities: a report needs predict_proba")
    return "learned" if learned else "held-out", evaluate(model, data.X, data.y, data.sample_weight)


def figures(
    evaluation: Evaluation, how: str, sentence: str, *, prior: FloatArray | None = None, share: float = 1.0
) -> Figures:
    """Figures of an evaluation. `share` is the number of rows that one unit of weight stands for, in intervals."""
    classes = evaluation.classes
    names = numbered(classes)
    shares = _shares(evaluation) if prior is None else prior
    return {
        "how": how,
        "sentence": sentence,
        "classes": names,
        "metrics": metrics(evaluation, shares, share),
        "confusion": plain(evaluation.confusion),
        "by_class": _by_class(evaluation, names),
        "curves": [curve(evaluation, label, share=share) for label in positive_classes(evaluation)],
        "calibration": calibrations(evaluation, share),
    }


def positive_classes(evaluation: Evaluation) -> tuple[Level, ...]:
    """The classes that have a curve: the second of two, or each of three or more."""
    classes = evaluation.classes
    return classes[1:] if len(classes) == 2 else classes if len(classes) > 2 else ()


# Metrics -------------------------------------------------------------------------------------------------------------


def metrics(evaluation: Evaluation, prior: FloatArray, share: float = 1.0) -> list[Figures]:
    """Each metric with its interval, if it has one, and with that of the class prior alone."""
    alone = _of_prior(evaluation, prior)
    low, high = wilson(evaluation.accuracy, evaluation.rows * share)
    right = "share of rows whose most probable class is the true one; 95% by Wilson"
    table = [
        _metric("accuracy", "accuracy", evaluation.accuracy, alone["accuracy"], right, low, high),
        _metric("log_loss", "log-loss", evaluation.log_loss, alone["log_loss"], "mean −log p(true class), in nats"),
        _metric("brier", "Brier score", evaluation.brier, alone["brier"], "mean squared error of the probabilities"),
    ]
    if len(evaluation.classes) == 2:
        curve, name = evaluation.roc(), str(evaluation.classes[1])
        positive = _shares(evaluation)[1]
        area = f"probability that a row of {name} scores higher than another row; 95% by DeLong"
        mean = f"mean precision over all recalls of {name}"
        table.append(_metric("auc", "AUC", curve.area, 0.5, area, *curve.interval(LEVEL, share)))
        table.append(_metric("average_precision", "average precision", curve.precision_area, positive, mean))
    elif len(evaluation.classes) > 2:
        each = "mean over the classes, each against all others"
        table.append(_metric("mean_auc", "mean AUC", mean_auc(evaluation), 0.5, each))
    if len(evaluation.classes) > 1:
        off = "mean |predicted probability − observed share|, over 10 bins"
        table.append(_metric("ece", "calibration error", evaluation.ece(), None, off))
    return table


def _metric(
    name: str,
    title: str,
    value: float,
    prior: float | None,
    meaning: str,
    low: float | None = None,
    high: float | None = None,
) -> Figures:
    metric = {
        "name": name,
        "title": title,
        "value": value,
        "low": low,
        "high": high,
        "prior": prior,
        "meaning": meaning,
    }
    return {key: plain(cell) for key, cell in metric.items()}


def _shares(evaluation: Evaluation) -> FloatArray:
    """(K) the share of each class among the rows."""
    count = evaluation.count
    return count / count.sum() if count.sum() else np.full(len(count), np.nan)


def _of_prior(evaluation: Evaluation, prior: FloatArray) -> dict[str, float]:
    """Accuracy, log-loss and Brier score of probabilities that are the same for every row."""
    share, classes = _shares(evaluation), len(prior)
    if not classes:
        return dict.fromkeys(("accuracy", "log_loss", "brier"), float("nan"))
    squares = 1 - 2 * prior + (prior**2).sum()  # Σₖ (πₖ − yₖ)² of a row of each class
    return {
        "accuracy": float(share[int(np.argmax(prior))]),
        "log_loss": float(-share @ np.log(np.clip(prior, EPS, 1 - EPS))),
        "brier": float(share @ squares) / (2 if classes <= 2 else 1),
    }


def prior_of(model: FittedModel, evaluation: Evaluation) -> FloatArray | None:
    """(K) the class prior of a generative model, in the order of an evaluation; None for others."""
    generative, log_prior = model.base_model_.generative_, model.scorer_.log_prior
    if generative is None:
        return None
    known = dict(zip(generative.classes, np.exp(log_prior).tolist(), strict=True))
    return np.array([known.get(label, 0.0) for label in evaluation.classes])


def _by_class(evaluation: Evaluation, names: list[str]) -> Figures:
    rates = by_class(evaluation)
    return table(rates.header, [(name, *row[1:]) for name, row in zip(names, rates.rows, strict=True)])


# Curves --------------------------------------------------------------------------------------------------------------


def curve(evaluation: Evaluation, pos_label: Level = None, *, share: float = 1.0) -> Figures:
    """Predictions of class `pos_label` at many thresholds: tp and fp are exact, the lines are for drawing."""
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


# Calibration ---------------------------------------------------------------------------------------------------------


def calibrations(evaluation: Evaluation, share: float = 1.0) -> list[Figures]:
    """Calibration of the second of two classes; of three or more, of the predicted class first, and then of each."""
    classes = evaluation.classes
    if len(classes) < 2:
        return []
    labels = (None, *(classes if len(classes) > 2 else ()))
    return [calibration(evaluation, label, share=share) for label in labels]


def calibration(evaluation: Evaluation, pos_label: Level = None, bins: int = BINS, *, share: float = 1.0) -> Figures:
    """Observed share of a class against its predicted probability, by bins, with Wilson's 95% intervals."""
    classes = evaluation.classes
    top = pos_label is None and len(classes) > 2
    name = None if top else numbered(classes)[1 if pos_label is None else classes.index(pos_label)]
    return {
        "class": name,
        "title": "the predicted class" if name is None else name,
        "ece": plain(evaluation.ece(pos_label, bins)),
        "bins": table(**calibration_bins(evaluation.calibration(pos_label, bins), bins, share)),
    }


# Numbers -------------------------------------------------------------------------------------------------------------


def regression_quality(
    model: FittedModel, data: ReportInput, *, learned: bool, shift: Mapping[str, Any] = NONE
) -> Figures:
    """Errors of predicted means, and the share of the deviance that is explained.

    `shift` is the offset or the exposure of rows: an array, or the name of a column.
    """
    rows = data.known
    x, weights, observed = as_input(rows.frame), weights_of(rows), labels_of(rows).astype(np.float64)
    shift = {name: _of_rows(rows, value) for name, value in shift.items() if value is not None}
    predicted = np.asarray(model.predict_mean(x, **shift), np.float64)
    error = observed - predicted
    mean = float(np.average(observed, weights=weights))
    with np.errstate(invalid="ignore", over="ignore"):
        rmse, spread = (float(np.sqrt(np.average(e**2, weights=weights))) for e in (error, observed - mean))
        off, apart = (float(np.average(np.abs(e), weights=weights)) for e in (error, observed - mean))
        bias = float(np.average(error, weights=weights))
        bias = bias if abs(bias) > ROUNDING * rmse else 0.0
        explained = float(model.score(x, observed, weights, **shift))
    metrics = [
        _metric(
            "deviance_explained",
            "deviance explained",
            explained,
            0.0,
            "1 − deviance / deviance of one mean for all rows",
        ),
        _metric("rmse", "root mean squared error", rmse, spread, "in the units of the response"),
        _metric("mean_absolute_error", "mean absolute error", off, apart, "in the units of the response"),
        _metric("mean_error", "mean error", bias, 0.0, "observed − predicted: the bias"),
    ]
    drawn = np.unique(np.linspace(0, len(observed) - 1, min(RESIDUALS, len(observed))).astype(np.intp))
    residuals = table(("predicted", "observed"), zip(predicted[drawn], observed[drawn], strict=True))
    how = "learned" if learned else "held-out"
    sentence = _sentence(model, data, how)
    if shift:
        sentence += f" They include the {' and '.join(shift)} of rows; the single prediction below does not."
    return {"how": how, "sentence": sentence, "metrics": metrics, "residuals": residuals}


def _of_rows(rows: Sample, value: Any) -> Any:
    """The values of these rows; the name of a column stays one."""
    if isinstance(value, str) or np.ndim(value) == 0 or rows.numbers is None:
        return value
    return np.asarray(value)[rows.numbers]


# Sentences -----------------------------------------------------------------------------------------------------------


def _sentence(model: FittedModel, data: ReportInput, how: str) -> str:
    rows = counted(data.rows, "row")
    if how == "held-out":
        text = f"Evaluated on {rows} that the model was not fitted to."
    elif how == "leave-one-out":
        text = f"Evaluated on the {rows} that the model was fitted to, each predicted from all the others"
        text += (
            "; weights, pairs and cuts were chosen with all rows, so this is slightly optimistic."
            if isinstance(model.scorer_, WeightedEvidence)
            else ": exact, without refits."
        )
    else:
        text = f"Evaluated on the {rows} that the model was fitted to, which is optimistic: hold rows out instead."
    if data.weighted:
        text += (
            f" Rows are weighted: Σw is {data.weight:,.6g}, and intervals are those of the effective number of rows,"
            f" (Σw)²/Σw² = {data.weight * data.effective:,.6g}."
        )
    return text


def seems_learned(model: FittedModel, counts: Figures) -> bool:
    """Whether the rows have the class counts of the training rows."""
    learned = _learned(model)
    present = {name: n for name, n in counts.items() if n}
    return (
        learned is not None
        and learned.keys() == present.keys()
        and all(isclose(learned[name], n) for name, n in present.items())
    )


def require_learned(model: FittedModel, counts: Figures) -> None:
    """Raise if a class has more rows than the model was fitted to."""
    learned = _learned(model)
    for name, n in counts.items():
        known = n if learned is None else learned.get(name, 0.0)
        if n > known and not isclose(n, known):
            raise DecibanError(
                f"learned=True, but class {name!r} has {counted(n, 'row')}, and the model was fitted to "
                f"{counted(known, 'row')} of it: pass its training rows, or learned=False for others"
            )


def _learned(model: FittedModel) -> dict[str, float] | None:
    """Σ w of the training rows of each class, if it is known."""
    base = model.base_model_
    if base.class_count_ is None or base.generative_ is None:
        return None
    return dict(zip(numbered(base.generative_.classes), base.class_count_.tolist(), strict=True))
