"""Rates at a threshold: sensitivity, specificity, precision, …"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rates:
    """The four counts at a threshold, and their quotients. Positive is score ≥ threshold; a quotient 0/0 is NaN.

    `Evaluation.at` and `Roc.at` return them.

    Attributes
    ----------
    threshold : float
        The threshold.
    tp : float
        Σ w of positives at or above it: true positives.
    fp : float
        Σ w of negatives at or above: false positives.
    tn : float
        Σ w of negatives below: true negatives.
    fn : float
        Σ w of positives below: false negatives.
    sensitivity : float
        tp / (tp + fn), the recall.
    specificity : float
        tn / (tn + fp).
    precision : float
        tp / (tp + fp), the positive predictive value.
    negative_predictive_value : float
        tn / (tn + fn).
    accuracy : float
        (tp + tn) / all.
    f1 : float
        2 tp / (2 tp + fp + fn).

    See Also
    --------
    deciban.Evaluation.at : That of a model's probabilities.

    Examples
    --------
    >>> rates = Rates(threshold=0.5, tp=8.0, fp=2.0, tn=18.0, fn=0.0)
    >>> rates.sensitivity, rates.specificity, rates.precision
    (1.0, 0.9, 0.8)
    """

    threshold: float
    tp: float  # Σ w of positives at or above the threshold
    fp: float  # Σ w of negatives at or above
    tn: float  # Σ w of negatives below
    fn: float  # Σ w of positives below

    @property
    def sensitivity(self) -> float:
        """tp / (tp + fn), the recall."""
        return share(self.tp, self.tp + self.fn)

    @property
    def specificity(self) -> float:
        """tn / (tn + fp)."""
        return share(self.tn, self.tn + self.fp)

    @property
    def precision(self) -> float:
        """tp / (tp + fp), the positive predictive value."""
        return share(self.tp, self.tp + self.fp)

    @property
    def negative_predictive_value(self) -> float:
        """tn / (tn + fn)."""
        return share(self.tn, self.tn + self.fn)

    @property
    def accuracy(self) -> float:
        """(tp + tn) / all."""
        return share(self.tp + self.tn, self.tp + self.fp + self.tn + self.fn)

    @property
    def f1(self) -> float:
        """2 tp / (2 tp + fp + fn)."""
        return share(2 * self.tp, 2 * self.tp + self.fp + self.fn)


def share(part: float, whole: float) -> float:
    """part / whole, where 0/0 is NaN."""
    return float(part) / float(whole) if whole else float("nan")
