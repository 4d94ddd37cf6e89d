"""The first sentence of a report: what is predicted, from what, and how well, from the report's own figures."""

from __future__ import annotations

from math import pi, sqrt

from deciban.plots.figures import Figures, counted

CALIBRATED, ROUGHLY = 0.05, 0.1  # the largest calibration errors that are called so
NOISE = 1.5  # times the expected calibration error of a calibrated model: below it, rows are too few to tell


def lead(
    about: Figures,
    quality: Figures,
    rows: int,
    *,
    text: bool = False,
    weighted: bool = False,
    doubtful: bool = False,
) -> str:
    """One sentence on the result.

    Parameters
    ----------
    about, quality : the figures `head` and `quality` of a report
    rows : the number of rows it was evaluated on
    text : whether the only feature is text
    weighted : whether the rows have weights
    doubtful : whether the rows are said to be held out, and look like training rows

    >>> about = {"model": "NaiveBayes", "label": "ill", "width": 3}
    >>> metrics = [{"name": "accuracy", "value": 0.76}]
    >>> quality = {"how": "held-out", "classes": ["no", "yes"], "confusion": [[60, 10], [14, 16]], "metrics": metrics}
    >>> print(lead(about, quality, 100))
    NaiveBayes predicts `ill` from 3 features; on 100 held-out rows it is right for 76% (always guessing 'no': 70%).
    """
    measured = _errors(quality) if "residuals" in quality else _hits(quality, rows, weighted)
    optimistic = "; this is optimistic, since the model was fitted to them" if quality["how"] == "training" else ""
    on_rows = f"{_rows(quality, rows, doubtful)}{_unknown(quality, weighted)}"
    return f"{_task(about, quality, text)}; {on_rows} {measured}{optimistic}."


def _task(about: Figures, quality: Figures, text: bool) -> str:
    """What the model predicts, and from what."""
    unknown = quality["unknown"]["classes"] if "unknown" in quality else ()
    classes = [name for name in quality.get("classes", ()) if name not in unknown]
    many = f" ({counted(len(classes), 'class')})" if len(classes) > 2 else ""
    unnamed = {0: "a number", 1: "the only class", 2: " or ".join(map(repr, classes))}
    predicted = (
        f"`{about['label']}`{many}"
        if about["label"]
        else unnamed.get(len(classes), f"one of {counted(len(classes), 'class')}")
    )
    return f"{about['model']} predicts {predicted} from {'text' if text else counted(about['width'], 'feature')}"


def _rows(quality: Figures, rows: int, doubtful: bool) -> str:
    counts = {
        "held-out": f"on {counted(rows, 'held-out row')}",
        "leave-one-out": f"on its {counted(rows, 'training row')}, each predicted from all the others (leave-one-out),",
        "training": f"on its {counted(rows, 'training row')}",
    }
    return f"on {counted(rows, 'row')} that may be its training rows" if doubtful else counts[quality["how"]]


def _unknown(quality: Figures, weighted: bool) -> str:
    """How many of the rows have a class that the model does not know.

    >>> _unknown({"unknown": {"classes": ["c"], "rows": 2}}, weighted=False)
    ' (2 of them of a class that the model does not know, which count as errors)'
    """
    rows = quality["unknown"]["rows"] if "unknown" in quality else 0
    if not rows:
        return ""
    some = "some" if weighted else f"{rows:,.0f}"
    counted_as = "which counts as an error" if some == "1" else "which count as errors"
    return f" ({some} of them of a class that the model does not know, {counted_as})"


def _hits(quality: Figures, rows: int, weighted: bool) -> str:
    """Accuracy beside that of always predicting the most frequent class, and calibration."""
    values = {metric["name"]: metric["value"] for metric in quality["metrics"]}
    totals = [sum(row) for row in quality["confusion"]]
    text = f"it is right for {_percent(values['accuracy'])}{' of their weight' if weighted else ''}"
    if len(totals) > 1 and sum(totals):
        most = max(totals)
        text += f" (always guessing {quality['classes'][totals.index(most)]!r}: {_percent(most / sum(totals))})"
    error, calibration = values.get("ece"), quality.get("calibration")
    return f"{text}{_calibration(error, calibration[0]['bins'], rows)}" if error is not None and calibration else text


def _calibration(error: float, bins: Figures, rows: int) -> str:
    given = f"(calibration error {error:.2f})"
    if error > CALIBRATED and error <= NOISE * expected_error(bins):
        return f", and {counted(rows, 'row')} are too few to tell whether its probabilities are calibrated {given}"
    how = "and its probabilities are well" if error <= CALIBRATED else "and its probabilities are roughly"
    return f", {how if error <= ROUGHLY else 'but its probabilities are poorly'} calibrated {given}"


def expected_error(bins: Figures) -> float:
    """The expected calibration error of a calibrated model with as many rows: Σ (n_b/n)·√(2 p_b (1 − p_b)/(π n_b)).

    >>> round(expected_error({"fields": ["predicted", "rows"], "rows": [[0.5, 100.0]]}), 3)
    0.04
    """
    given, counts = (bins["fields"].index(name) for name in ("predicted", "rows"))
    cells = [(row[given], row[counts]) for row in bins["rows"] if row[counts]]
    total = sum(n for _, n in cells)
    return sum(sqrt(2.0 * max(p * (1.0 - p), 0.0) * n / pi) for p, n in cells) / total if total else 0.0


def _errors(quality: Figures) -> str:
    """The mean absolute error of a regression beside that of one mean, and the deviance explained."""
    metrics = {metric["name"]: metric for metric in quality["metrics"]}
    error, explained = metrics["mean_absolute_error"], metrics["deviance_explained"]["value"]
    text = f"its mean absolute error is {_number(error['value'])} (one mean for all: {_number(error['prior'])})"
    if not isinstance(explained, float):
        return text
    share = f"{_percent(explained)} of the deviance" if explained > 0.0 else "nothing: one mean for all fits better"
    return f"{text}, and it explains {share}"


def _number(value: object) -> str:
    """
    >>> _number(0.50812), _number(12345.678), _number("inf")
    ('0.508', '12,346', 'inf')
    """
    if not isinstance(value, float):
        return str(value)
    return f"{value:.3g}" if abs(value) < 1000.0 else f"{value:,.0f}"


def _percent(share: float | None) -> str:
    """A share in percent: with a decimal near 0 and 1, and never rounded to them.

    >>> [_percent(share) for share in (0.756, 0.9937, 0.00042, 1.0, 0.99999, None)]
    ['76%', '99.4%', 'under 0.1%', '100%', 'over 99.9%', '–']
    """
    if share is None:
        return "–"
    if share in (0.0, 1.0) or 0.01 <= share <= 0.99:
        return f"{100.0 * share:.0f}%"
    if 0.001 <= share <= 0.999:
        return f"{100.0 * share:.1f}%"
    return "under 0.1%" if share < 0.5 else "over 99.9%"
