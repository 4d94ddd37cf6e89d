"""ROC curves: how well scores separate positives from negatives, at every threshold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from deciban import _kernels
from deciban.data.labels import encode_labels
from deciban.errors import DecibanError, warn
from deciban.evaluation.predictions import row_weights
from deciban.evaluation.score_counts import ScoreCounts, sort_by_class
from deciban.evaluation.threshold_rates import Rates, share
from deciban.table import Table
from deciban.types import FloatArray, Level, Levels, level_of

BLOCK = 1 << 16  # points that are summed at a time, so that long curves stay in the cache
SIGNS = {True: 1, False: 0, -1: 0}  # labels that are positive or negative by convention (True is 1, False is 0)


@dataclass(frozen=True, eq=False, repr=False)
class Roc:
    """ROC curve: how well scores separate positives from negatives, at every threshold.

    Sensitivity tp/P against false positive rate fp/N, as the threshold t falls; a row is positive at score ≥ t

    Equal scores are one point, so ties are one diagonal segment. The first point is (0, 0), its threshold +inf, and no
    point is left out: `sklearn.metrics.roc_curve(..., drop_intermediate=False)`.

    Attributes
    ----------
    thresholds : array of shape (m + 1,)
        The distinct scores, descending, after +inf.
    tp : array of shape (m + 1,)
        Σ w of positives at or above each threshold.
    fp : array of shape (m + 1,)
        Σ w of negatives at or above each threshold.
    positives : float
        P, Σ w of the rows of the positive class.
    negatives : float
        N, Σ w of the other rows.
    sensitivity : array of shape (m + 1,)
        tp / P, the recall.
    false_positive_rate : array of shape (m + 1,)
        fp / N.
    precision : array of shape (m + 1,)
        tp / (tp + fp).
    auc : float
        The probability that a positive has a higher score than a negative, ties counted half. NaN, with a warning,
        where all rows are of one class.
    area : float
        The same without a warning.
    variance : float
        The variance of the AUC (DeLong); `interval` uses it.
    average_precision : float
        The area under the precision-recall curve. NaN, with a warning, where no row is positive.
    precision_area : float
        The same without a warning.

    See Also
    --------
    deciban.Evaluation.roc : That of a model's probabilities.

    Examples
    --------
    >>> import deciban as db
    >>> roc = db.Roc.of(["no", "yes", "no", "yes"], [0.1, 0.35, 0.4, 0.8])
    >>> roc
    ROC curve: AUC 0.75 (95% interval 0.05705 to 1), 2 positives, 2 negatives, 4 different scores
    >>> roc.sensitivity, roc.false_positive_rate
    (array([0. , 0.5, 0.5, 1. , 1. ]), array([0. , 0. , 0.5, 0.5, 1. ]))
    """

    thresholds: FloatArray  # (m + 1) descending from +inf
    tp: FloatArray  # (m + 1) Σ w of positives at or above
    fp: FloatArray  # (m + 1) Σ w of negatives at or above

    @classmethod
    def of(
        cls,
        y: ArrayLike | Sequence[Any],
        scores: ArrayLike,
        pos_label: Level = None,
        sample_weight: ArrayLike | None = None,
    ) -> Roc:
        """The curve of any real scores: probabilities, decision functions, distances.

        Parameters
        ----------
        y : array-like of shape (n,)
            The true labels.
        scores : array-like of shape (n,)
            The larger, the more likely positive.
        pos_label : str, int, float or bool, default None
            The label of the positives; by default the second of two.
        sample_weight : array-like of shape (n,) or None, default None
            Weights of the rows; rows of weight 0 are ignored.

        Returns
        -------
        Roc
            With a point for each distinct score.

        Raises
        ------
        DecibanError
            If a score is NaN, or `pos_label` is needed and missing.
        """
        positive = _positive_rows(y, pos_label)
        x = _scores(scores, len(positive))
        weights = row_weights(sample_weight, len(x))
        if weights is not None:
            used = weights != 0
            return cls.from_counts(ScoreCounts.of(x[used], positive[used], weights[used]))
        values, negatives, positives = _kernels.merge_sorted(*sort_by_class(x, positive))
        return cls(_descending_from(np.inf, values), _at_or_above(positives), _at_or_above(negatives))

    @classmethod
    def from_counts(cls, counts: ScoreCounts) -> Roc:
        """The curve of counted scores.

        Parameters
        ----------
        counts : ScoreCounts
            Distinct scores, with the weight of positives and negatives at each.

        Returns
        -------
        Roc
            With a point for each distinct score.
        """
        sums = _running_sums(counts.positive), _running_sums(counts.negative)
        return cls(_descending_from(np.inf, counts.values), *sums)

    @property
    def positives(self) -> float:
        """P: Σ w of the rows of the class."""
        return float(self.tp[-1])

    @property
    def negatives(self) -> float:
        """N: Σ w of the other rows."""
        return float(self.fp[-1])

    @property
    def sensitivity(self) -> FloatArray:
        """tp / P; NaN where there are no positives."""
        return _shares(self.tp, self.positives)

    @property
    def false_positive_rate(self) -> FloatArray:
        """fp / N; NaN where there are no negatives."""
        return _shares(self.fp, self.negatives)

    @property
    def auc(self) -> float:
        """Σ (fpᵢ − fpᵢ₋₁)(tpᵢ + tpᵢ₋₁) / 2PN: P(score of a positive > that of a negative) + ½ P(they are equal).

        NaN, with a warning, where all rows are of one class.
        """
        if not self.positives or not self.negatives:
            missing = "negative" if self.positives else "positive"
            warn(f"there is no AUC: no row is {missing}; evaluate more rows, of both classes")
        return self.area

    @cached_property
    def area(self) -> float:
        """The AUC; NaN, without a warning, where it is not defined."""
        twice = sum(float((np.diff(fp) * (tp[1:] + tp[:-1])).sum()) for tp, fp in self._blocks())
        return share(twice, 2 * self.positives * self.negatives)

    @cached_property
    def variance(self) -> float:
        """Var AUC = S₁₀/P + S₀₁/N (DeLong, DeLong and Clarke-Pearson 1988), weights counted as repeated rows.

        S₁₀ is the variance among positives of their share of negatives below, S₀₁ that among negatives of their share
        of positives above. NaN for fewer than 2 positives or negatives.
        """
        return self._variance(1.0)

    def _variance(self, share: float) -> float:
        """The variance, if one unit of weight stands for `share` rows."""
        p, n = self.positives, self.negatives
        if share * p < 2 or share * n < 2:
            return float("nan")
        among_positives = among_negatives = 0.0
        for tp, fp in self._blocks():
            below, above = 1 - (fp[1:] + fp[:-1]) / (2 * n), (tp[1:] + tp[:-1]) / (2 * p)
            among_positives += float((np.diff(tp) * (below - self.area) ** 2).sum())
            among_negatives += float((np.diff(fp) * (above - self.area) ** 2).sum())
        return among_positives / ((share * p - 1) * p) + among_negatives / ((share * n - 1) * n)

    def interval(self, level: float = 0.95, share: float = 1.0) -> tuple[float, float]:
        """The confidence interval of the AUC: AUC ± z √variance, within [0, 1].

        Parameters
        ----------
        level : float, default 0.95
            The probability of the interval.
        share : float, default 1.0
            The number of rows that one unit of weight stands for.

        Returns
        -------
        tuple of float
            Its ends; NaN where there is no variance.

        Raises
        ------
        DecibanError
            If `level` is not between 0 and 1.
        """
        if not 0 < level < 1:
            raise DecibanError(f"level is {level}: it must be between 0 and 1, such as 0.95")
        reach = float(ndtri(0.5 + level / 2)) * float(np.sqrt(self._variance(share)))
        low, high = np.clip([self.area - reach, self.area + reach], 0.0, 1.0)
        return float(low), float(high)

    def at(self, threshold: float) -> Rates:
        """The counts where rows with score ≥ threshold are predicted positive.

        Parameters
        ----------
        threshold : float
            Any number.

        Returns
        -------
        Rates
            Sensitivity, specificity, precision, F1 and the counts they are made of.
        """
        i = len(self.thresholds) - 1 - int(np.searchsorted(self.thresholds[:0:-1], threshold))
        tp, fp = float(self.tp[i]), float(self.fp[i])
        return Rates(float(threshold), tp, fp, self.negatives - fp, self.positives - tp)

    @property
    def precision(self) -> FloatArray:
        """tp / (tp + fp) at each threshold; 1 at the first, where no row is predicted positive."""
        predicted = self.tp + self.fp
        return np.divide(self.tp, predicted, out=np.ones_like(predicted), where=predicted > 0)

    @property
    def average_precision(self) -> float:
        """Σ (recallᵢ − recallᵢ₋₁)·precisionᵢ. NaN, with a warning, where no row is positive."""
        if not self.positives:
            warn("there is no average precision: no row is positive; evaluate more rows")
        return self.precision_area

    @cached_property
    def precision_area(self) -> float:
        """The average precision; NaN, without a warning, where it is not defined."""
        return share(float(np.sum(np.diff(self.tp) * self.precision[1:])), self.positives)

    def precision_recall(self) -> Table:
        """Precision and recall at each threshold, ascending.

        Returns
        -------
        Table
            The last threshold, at which no row is positive, is None.

        Examples
        --------
        >>> import deciban as db
        >>> db.Roc.of([0, 1, 1], [0.2, 0.6, 0.9]).precision_recall()
        precision and recall
          threshold  precision  recall
          0.2         0.666667       1
          0.6                1       1
          0.9                1     0.5
          None               1       0
        """
        thresholds = [*self.thresholds[:0:-1].tolist(), None]
        columns = (thresholds, self.precision[::-1].tolist(), self.sensitivity[::-1].tolist())
        return Table("precision and recall", ("threshold", "precision", "recall"), tuple(zip(*columns, strict=True)))

    def to_table(self) -> Table:
        """The points, from (0, 0) to (1, 1).

        Returns
        -------
        Table
            Threshold, false positive rate, sensitivity, fp and tp of each point.
        """
        columns = {
            "threshold": self.thresholds,
            "false_positive_rate": self.false_positive_rate,
            "sensitivity": self.sensitivity,
            "fp": self.fp,
            "tp": self.tp,
        }
        return Table("ROC curve", tuple(columns), tuple(zip(*(c.tolist() for c in columns.values()), strict=True)))

    def to_frame(self) -> Any:
        """The points as an Arrow table.

        Returns
        -------
        pyarrow.Table
            `.to_pandas()` makes it pandas; polars and altair read it as it is.
        """
        return self.to_table().to_frame()

    def __str__(self) -> str:
        low, high = self.interval()
        interval = "" if np.isnan(low) else f" (95% interval {low:.4g} to {high:.4g})"
        counts = f"{self.positives:.6g} positives, {self.negatives:.6g} negatives"
        return f"ROC curve: AUC {self.area:.4g}{interval}, {counts}, {len(self.tp) - 1} different scores"

    __repr__ = __str__

    def _blocks(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """tp and fp in blocks; the last point of a block is the first of the next."""
        for start in range(0, len(self.tp) - 1, BLOCK):
            yield self.tp[start : start + BLOCK + 1], self.fp[start : start + BLOCK + 1]


def _descending_from(first: float, ascending: FloatArray) -> FloatArray:
    result = np.empty(len(ascending) + 1)
    result[0], result[1:] = first, ascending[::-1]
    return result


def _running_sums(ascending: NDArray[Any]) -> FloatArray:
    """0 and the running sums, from the largest score down."""
    result = np.zeros(len(ascending) + 1)
    np.cumsum(ascending[::-1], out=result[1:])
    return result


def _at_or_above(at_or_below: NDArray[np.int64]) -> FloatArray:
    """The same from running counts n(≤ s) of ascending scores: n − n(< s)."""
    result = np.zeros(len(at_or_below) + 1)
    result[1:] = at_or_below[-1:]
    result[1:-1] -= at_or_below[-2::-1]
    return result


def _shares(part: FloatArray, whole: float) -> FloatArray:
    return part / whole if whole else np.full(len(part), np.nan)


def _positive_rows(y: Any, pos_label: Level) -> NDArray[np.bool_]:
    """(n) which rows are positive."""
    encoded = encode_labels(y)
    position = _position(encoded.classes, None if pos_label is None else level_of(pos_label))
    return np.equal(encoded.codes, position)


def _position(classes: Levels, pos_label: Level) -> int:
    """The position of the positive class; −1 if no row has it."""
    listed = ", ".join(map(repr, classes))
    if pos_label is None:
        if len(classes) == 1 and classes[0] in SIGNS:
            return SIGNS[classes[0]] - 1
        if len(classes) not in (0, 2):
            raise DecibanError(f"which of {listed} is positive? Pass pos_label=, one of the labels")
        return len(classes) - 1
    if pos_label not in classes and len(classes) > 1:
        raise DecibanError(f"no row is labelled {pos_label!r}: pos_label must be one of {listed}")
    return classes.index(pos_label) if pos_label in classes else -1


def _scores(scores: Any, rows: int) -> NDArray[Any]:
    x = np.asarray(scores)
    if x.dtype.kind not in "fiubO":
        raise DecibanError(f"scores must be numbers; they are of type {x.dtype}")
    if x.dtype != np.float32:
        x = x.astype(np.float64, copy=False)
    if x.shape != (rows,):
        raise DecibanError(f"scores must be one number for each of the {rows} labels; their shape is {x.shape}")
    if np.isnan(x.max(initial=-np.inf)):  # a maximum is NaN where any is
        raise DecibanError(f"scores, row {int(np.argmax(np.isnan(x)))}: the score is NaN: drop the row, or score it")
    return x
