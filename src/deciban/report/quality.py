"""How good a model's predictions are: metrics beside those of the prior, curves at all thresholds, calibration."""

from __future__ import annotations

from collections.abc import Mapping
from math import isclose
from types import MappingProxyType
from typing import Any

import numpy as np

from deciban.charts.figures import Figures, counted, plain, table
from deciban.errors import DecibanError
from deciban.evaluation.evaluation import Evaluation
from deciban.evaluation.judging import evaluate
from deciban.evaluation.lines import LEVEL, at_thresholds, calibration_bins, precision_line, roc_line, wilson
from deciban.evaluation.report import by_class, mean_auc
from deciban.evaluation.scores import EPS
from deciban.report.rows import Given, given, gives_numbers, inner, labels_of, weights_of
from deciban.sources import Sample
from deciban.table import numbered
from deciban.types import FloatArray, Level

STEPS, FEWER_STEPS = 1000, 100  # thresholds of a curve; fewer where there are many classes
MANY = 10  # classes
BINS = 10
RESIDUALS = 2000  # rows
ROUNDING = 1e-12  # of the errors: a mean that is smaller is none
NONE: Mapping[str, Any] = MappingProxyType({})


def quality(model: Any, of: Given, *, learned: bool, shift: Mapping[str, Any] = NONE, rows: int = 1) -> Figures:
    """What a report says of how well rows are foretold; where no rows are to be shown, without residuals."""
    if gives_numbers(model):
        return of_numbers(model, of, learned=learned, shift=shift) | ({} if rows else {"residuals": None})
    if any(value is not None for value in shift.values()):
        raise DecibanError("a report of classes takes no offset and no exposure")
    how, evaluation = judged(model, of, learned=learned)
    if learned:
        require_learned(model, dict(zip(numbered(evaluation.classes), evaluation.count.tolist(), strict=True)))
    sentence = _sentence(model, of, how)
    if evaluation.unknown:
        sentence += (
            f" {counted(evaluation.unknown, 'row')} of a class that the model does not know: its probability is 0."
        )
    return figures(evaluation, how, sentence, prior=prior_of(model, evaluation), share=of.effective)


def judged(model: Any, of: Given, *, learned: bool) -> tuple[str, Evaluation]:
    """ "held-out", "leave-one-out" or "learned", and the evaluation that goes with it."""
    if learned and hasattr(model, "leave_one_out"):
        return "leave-one-out", model.leave_one_out(of.X, of.y, of.sample_weight)
    if not hasattr(model, "predict_proba"):
        raise DecibanError(f"{type(model).__name__} gives no probabilities: a report needs predict_proba")
    return "learned" if learned else "held-out", evaluate(model, of.X, of.y, of.sample_weight)


def figures(
    evaluation: Evaluation, how: str, sentence: str, *, prior: FloatArray | None = None, share: float = 1.0
) -> Figures:
    """Of an evaluation. `share` is the number of rows that a unit of weight counts for, in intervals."""
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
        "curves": [curve(evaluation, label, share=share) for label in wanted(evaluation)],
        "calibration": calibrations(evaluation, share),
    }


def wanted(evaluation: Evaluation) -> tuple[Level, ...]:
    """The classes that have a curve: the second of two, or each of more."""
    classes = evaluation.classes
    return classes[1:] if len(classes) == 2 else classes if len(classes) > 2 else ()


# Metrics -------------------------------------------------------------------------------------------------------------


def metrics(evaluation: Evaluation, prior: FloatArray, share: float = 1.0) -> list[Figures]:
    """Each with its interval, where there is one, and with what the class prior alone would reach."""
    alone = _of_prior(evaluation, prior)
    low, high = wilson(evaluation.accuracy, evaluation.rows * share)
    right = "share of rows whose most probable class is the true one; 95% by Wilson"
    found = [
        _metric("accuracy", "accuracy", evaluation.accuracy, alone["accuracy"], right, low, high),
        _metric("log_loss", "log-loss", evaluation.log_loss, alone["log_loss"], "mean −log p(true class), in nats"),
        _metric("brier", "Brier score", evaluation.brier, alone["brier"], "mean squared error of the probabilities"),
    ]
    if len(evaluation.classes) == 2:
        curve, name = evaluation.roc(), str(evaluation.classes[1])
        positive = _shares(evaluation)[1]
        area = f"chance that a row of {name} has a higher probability of it than another row; 95% by DeLong"
        mean = f"mean precision over all recalls of {name}"
        found.append(_metric("auc", "AUC", curve.area, 0.5, area, *curve.interval(LEVEL, share)))
        found.append(_metric("average_precision", "average precision", curve.precision_area, positive, mean))
    elif len(evaluation.classes) > 2:
        each = "mean over the classes, each against all others"
        found.append(_metric("mean_auc", "mean AUC", mean_auc(evaluation), 0.5, each))
    if len(evaluation.classes) > 1:
        off = "mean distance of probabilities from shares, over 10 bins"
        found.append(_metric("ece", "calibration error", evaluation.ece(), None, off))
    return found


def _metric(
    name: str,
    title: str,
    value: float,
    prior: float | None,
    meaning: str,
    low: float | None = None,
    high: float | None = None,
) -> Figures:
    found = {"name": name, "title": title, "value": value, "low": low, "high": high, "prior": prior, "meaning": meaning}
    return {key: plain(cell) for key, cell in found.items()}


def _shares(evaluation: Evaluation) -> FloatArray:
    """(K) of the classes among the rows."""
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


def prior_of(model: Any, evaluation: Evaluation) -> FloatArray | None:
    """(K) the class prior of a generative model, in the order of an evaluation; None for others."""
    own = inner(model)
    source = own.weighed_ if hasattr(own, "weighed_") else getattr(own, "estimate_", None)
    if source is None:
        return None
    known = dict(zip(source.evidence.classes, np.exp(source.log_prior).tolist(), strict=True))
    return np.array([known.get(label, 0.0) for label in evaluation.classes])


def _by_class(evaluation: Evaluation, names: list[str]) -> Figures:
    found = by_class(evaluation)
    return table(found.header, [(name, *row[1:]) for name, row in zip(names, found.rows, strict=True)])


# Curves --------------------------------------------------------------------------------------------------------------


def curve(evaluation: Evaluation, pos_label: Level = None, *, share: float = 1.0) -> Figures:
    """What calling class `of` at each of many thresholds does: tp and fp are exact, the lines are for drawing."""
    classes = evaluation.classes
    place = len(classes) - 1 if pos_label is None else classes.index(pos_label)
    roc = evaluation.roc(classes[place])
    steps = STEPS if len(classes) <= MANY else FEWER_STEPS
    tp, fp = at_thresholds(roc, np.arange(steps + 1) / steps)
    low, high = roc.interval(LEVEL, share)
    exact = {
        "class": numbered(classes)[place],
        "place": place,
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
    """Of the second of two classes; of more, of the predicted class first, and then of each."""
    classes = evaluation.classes
    if len(classes) < 2:
        return []
    return [calibration(evaluation, of, share=share) for of in (None, *(classes if len(classes) > 2 else ()))]


def calibration(evaluation: Evaluation, pos_label: Level = None, bins: int = BINS, *, share: float = 1.0) -> Figures:
    """Shares of rows of a class against the probabilities that it was given, by bins, with Wilson's 95% intervals."""
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


def of_numbers(model: Any, of: Given, *, learned: bool, shift: Mapping[str, Any] = NONE) -> Figures:
    """Errors of predicted means: their mean, their spread, and the share of the deviance that is explained.

    `shift` is the offset or the exposure of rows, where a model has such: an array, or the name of a column.
    """
    rows = of.known
    x, weights, observed = given(rows.frame), weights_of(rows), labels_of(rows).astype(np.float64)
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
    found = [
        _metric("deviance_explained", "deviance explained", explained, 0.0, "1 − deviance / that of one mean for all"),
        _metric("rmse", "root mean squared error", rmse, spread, "in the units of the response"),
        _metric("mean_absolute_error", "mean absolute error", off, apart, "in the units of the response"),
        _metric("mean_error", "mean error", bias, 0.0, "observed less predicted; far from 0 is bias"),
    ]
    some = np.unique(np.linspace(0, len(observed) - 1, min(RESIDUALS, len(observed))).astype(np.intp))
    residuals = table(("predicted", "observed"), zip(predicted[some], observed[some], strict=True))
    how = "learned" if learned else "held-out"
    sentence = _sentence(model, of, how)
    if shift:
        sentence += f" Their {' and '.join(shift)} is counted in; one prediction, below, is made without."
    return {"how": how, "sentence": sentence, "metrics": found, "residuals": residuals}


def _of_rows(rows: Sample, value: Any) -> Any:
    """A number for each of some rows; the name of a column stays one."""
    if isinstance(value, str) or np.ndim(value) == 0 or rows.numbers is None:
        return value
    return np.asarray(value)[rows.numbers]


# Words ---------------------------------------------------------------------------------------------------------------


def _sentence(model: Any, of: Given, how: str) -> str:
    rows = counted(of.rows, "row")
    if how == "held-out":
        said = f"Judged on {rows} that the model is said not to have learned from."
    elif how == "leave-one-out":
        said = f"Judged on the {rows} that were learned, each by what was learned from all the others"
        said += (
            ": exact, without refits."
            if not hasattr(inner(model), "weighed_")
            else "; weights, pairs and cuts that all rows chose stay, so it is a little kinder than new rows would be."
        )
    else:
        said = f"Judged on the {rows} that were learned: new rows would do worse. Cross-validate, or hold rows out."
    if of.weighted:
        said += (
            f" Rows are weighted: Σw is {of.weight:,.6g}, which tells as much as (Σw)²/Σw² ="
            f" {of.weight * of.effective:,.6g} rows that count alike; intervals are made by that number."
        )
    return said


def seems_learned(model: Any, counts: Figures) -> bool:
    """Whether the rows have the classes, by name and Σ w, that the model learned."""
    learned = _learned(model)
    met = {name: n for name, n in counts.items() if n}
    return (
        learned is not None and learned.keys() == met.keys() and all(isclose(learned[name], met[name]) for name in met)
    )


def require_learned(model: Any, counts: Figures) -> None:
    """That no class has more rows than the model learned."""
    learned = _learned(model)
    for name, n in counts.items():
        known = n if learned is None else learned.get(name, 0.0)
        if n > known and not isclose(n, known):
            raise DecibanError(
                f"learned=True, but class {name!r} has {counted(n, 'row')} here, and the model learned "
                f"{counted(known, 'row')} of it: pass the rows that it learned, or learned=False for others"
            )


def _learned(model: Any) -> dict[str, float] | None:
    """Σ w of each class; None where the model does not remember it."""
    own = inner(model)
    if not hasattr(own, "class_count_"):
        return None
    return dict(zip(numbered(own.generative_.classes), own.class_count_.tolist(), strict=True))
