"""Evaluation: predictions against true labels, as sums that add."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deciban.data.class_index import ClassIndex
from deciban.display.summary import Summary
from deciban.errors import DecibanError, NegativeEvidence
from deciban.evaluation import chart_figures
from deciban.evaluation import evaluation_tables as tables
from deciban.evaluation.calibration import calibration_error, calibration_table
from deciban.evaluation.predictions import read_predictions
from deciban.evaluation.roc import Roc
from deciban.evaluation.score_counts import ScoreCounts
from deciban.evaluation.scores import CAP, ScoredRows, ScoreSums
from deciban.evaluation.threshold_rates import Rates, share
from deciban.plots import quality_charts
from deciban.statistics.statistic import Arrays
from deciban.statistics.sums import Sum
from deciban.table import Table
from deciban.types import FloatArray, Labels, Level, Levels, level_of, sorted_levels


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Accuracy, losses, ROC curves and calibration of predicted probabilities, from sums that add.

    a + b is the evaluation of the rows of both, to the last bit, so batches and machines can be evaluated one by one;
    a − b removes rows. Up to `cap` rows are kept as they are; more are folded into sums and counts of scores, which are
    exact while a class has no more than `cap` distinct scores (`auc_error` bounds the error beyond).

    `pos_label`, the positive class, is by default the second of two classes.

    >>> import deciban as db
    >>> morning = db.Evaluation.of(["ham", "spam", "ham"], [0.1, 0.8, 0.6])
    >>> evening = db.Evaluation.of(["spam", "ham"], [0.9, 0.3])
    >>> day = morning + evening
    >>> day.accuracy, day.auc(), day.log_loss == db.Evaluation.of(["ham", "spam", "ham"] + ["spam", "ham"],
    ...                                                           [0.1, 0.8, 0.6] + [0.9, 0.3]).log_loss
    (0.8, 1.0, True)
    >>> day.confusion
    array([[2., 1.],
           [0., 2.]])
    """

    classes: Levels  # sorted: of the labels and of the probabilities together
    pieces: tuple[ScoredRows, ...] = ()  # rows not folded yet, no more than cap
    folded: ScoreSums | None = None
    cap: int = CAP
    parts: tuple[Evaluation, ...] = field(default=(), compare=False)  # the folds of a cross-validation

    @classmethod
    def of(
        cls,
        y: ArrayLike | Sequence[Any],
        proba: ArrayLike,
        *,
        classes: ArrayLike | Sequence[Any] | None = None,
        sample_weight: ArrayLike | None = None,
        cap: int = CAP,
    ) -> Evaluation:
        """Evaluate the probabilities of any library.

        - `y`: the true labels: text, integers or booleans.
        - `proba`: (n, K), a column for each class, or (n), the probability of the second of two classes.
        - `classes`: the class of each column, such as `model.classes_`; by default the labels that occur, sorted. A
          label that is not among them is a class that the model does not know: its probability is 0.
        - `sample_weight`: a row of weight 2 counts as two rows; rows of weight 0 are ignored.
        """
        p = read_predictions(y, proba, classes, sample_weight)
        return cls.scored(p.classes, p.codes, p.proba, p.weights, known=p.known, cap=cap)

    @classmethod
    def scored(
        cls,
        classes: Levels,
        codes: Labels,
        proba: FloatArray,
        weights: FloatArray | None,
        *,
        known: NDArray[np.bool_] | None = None,
        cap: int = CAP,
    ) -> Evaluation:
        """Evaluate codes (n), positions in the sorted `classes`, and probabilities (n, K), which are not checked.

        `known` (K) says which classes the model knows, by default all; the others have probability 0. The arrays are
        kept, not copied.
        """
        if cap < 1:
            raise DecibanError(f"cap is {cap}: it must be 1 or more rows")
        levels = tuple(map(level_of, classes))
        return cls(levels, (ScoredRows.of(codes, proba, weights, known, cap),), cap=cap)._within_cap()

    def __add__(self, other: Evaluation) -> Evaluation:
        if not isinstance(other, Evaluation):
            return NotImplemented
        classes = sorted_levels({*self.classes, *other.classes})
        a, b, cap = self._reindex_classes(classes), other._reindex_classes(classes), min(self.cap, other.cap)
        folded = a.folded + b.folded if a.folded and b.folded else a.folded or b.folded
        return Evaluation(classes, a.pieces + b.pieces, folded, cap)._within_cap()

    def __radd__(self, other: object) -> Evaluation:
        """0 + evaluation, so that sum() works."""
        return self if other == 0 and isinstance(other, int) else NotImplemented

    def __sub__(self, other: Evaluation) -> Evaluation:
        """The evaluation without the rows of `other`; a class without rows is dropped."""
        if not isinstance(other, Evaluation):
            return NotImplemented
        classes = sorted_levels({*self.classes, *other.classes})
        try:
            rest = self._reindex_classes(classes)._scores - other._reindex_classes(classes)._scores
        except NegativeEvidence:
            raise NegativeEvidence("these rows are not in the evaluation: it is unchanged") from None
        present = np.flatnonzero(rest.known.value.any(axis=0) | rest.confusion.value.any(axis=1))
        return Evaluation(tuple(classes[i] for i in present), (), rest.take(present), self.cap)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Evaluation):
            return NotImplemented
        a, b = self.to_arrays(), other.to_arrays()
        return a.keys() == b.keys() and all(np.array_equal(a[key], b[key]) for key in a)

    __hash__ = None  # type: ignore[assignment]

    def _reindex_classes(self, classes: Levels) -> Evaluation:
        """The same rows, with these classes, which contain its own."""
        if classes == self.classes:
            return self
        index = ClassIndex(classes).positions(self.classes)
        pieces = tuple(rows.reindex_classes(index, len(classes)) for rows in self.pieces)
        folded = None if self.folded is None else self.folded.reindex_classes(index, len(classes))
        return Evaluation(classes, pieces, folded, self.cap)

    def _within_cap(self) -> Evaluation:
        """The same, with rows folded into sums if there are more than `cap`."""
        if sum(map(len, self.pieces)) <= self.cap:
            return self
        return Evaluation(self.classes, (), self._scores, self.cap, self.parts)

    @cached_property
    def _evidence(self) -> ScoredRows | ScoreSums:
        """All rows, folded only where some already are."""
        if self.folded is None:
            return ScoredRows.joined(self.pieces)
        return self.folded + ScoredRows.joined(self.pieces).folded() if self.pieces else self.folded

    @cached_property
    def _scores(self) -> ScoreSums:
        return self._evidence.folded() if isinstance(self._evidence, ScoredRows) else self._evidence

    @property
    def confusion(self) -> FloatArray:
        """(K, K) Σ w: rows are true classes, columns the most probable ones, the first if there are several."""
        return self._evidence.confusion.value.copy()

    @property
    def count(self) -> FloatArray:
        """(K) Σ w of each true class."""
        return self._count.value.copy()

    @property
    def rows(self) -> float:
        """Σ w."""
        return _total(self._count)

    @property
    def accuracy(self) -> float:
        """Σ w over rows classified correctly / Σ w."""
        return share(np.trace(self.confusion), self.rows)

    @property
    def error(self) -> float:
        """1 − accuracy."""
        return share(self.rows - np.trace(self.confusion), self.rows)

    @property
    def log_loss(self) -> float:
        """−mean log p(true class), in nats, with p clipped to [ε, 1 − ε], ε = 2⁻⁵², as scikit-learn does.

        So a row whose true class has probability 0 costs 36 nats.
        """
        return share(_total(self._evidence.loss), self.rows)

    @property
    def brier(self) -> float:
        """Mean Σₖ (pₖ − yₖ)², halved for two classes, where it is the mean (p − y)²: scikit-learn's scaling."""
        return share(_total(self._evidence.squares), self.rows) / (2 if len(self.classes) <= 2 else 1)

    def at(self, threshold: float | None = None, pos_label: Level = None) -> Rates:
        """The rates where class `pos_label` is predicted at probabilities of `threshold` (0.5) or more."""
        return self.roc(pos_label).at(0.5 if threshold is None else threshold)

    def roc(self, pos_label: Level = None) -> Roc:
        """The ROC curve of class `pos_label` against all others."""
        k = self._class_position(pos_label)
        if k not in self._rocs:
            if sum(len(curve.tp) for curve in self._rocs.values()) > self.cap:
                self._rocs.clear()  # the curves of many classes are larger than the rows
            self._rocs[k] = Roc.from_counts(self._score_counts(k))
        return self._rocs[k]

    def auc(self, pos_label: Level = None) -> float:
        """The area under the ROC curve; NaN, with a warning, where all rows are of one class."""
        return self.roc(pos_label).auc

    def auc_interval(self, pos_label: Level = None, level: float = 0.95) -> tuple[float, float]:
        """DeLong's interval of the AUC, within [0, 1]."""
        return self.roc(pos_label).interval(level)

    def auc_error(self, pos_label: Level = None) -> float:
        """½ Σ P(s)·N(s) / PN, summed over rounded scores: the AUC is no farther from that of exact scores.

        0 up to `cap` distinct scores.
        """
        k = self._class_position(pos_label)
        if isinstance(self._evidence, ScoredRows) or not self._evidence.scores.levels[k]:
            return 0.0
        negative, positive = self._evidence.column(k).table(0).value
        return share(float((negative * positive).sum()), 2 * float(negative.sum() * positive.sum()))

    @property
    def widest(self) -> float:
        """The largest difference between scores that are counted as one; 0 up to `cap` distinct scores."""
        counts = [self._score_counts(k) for k in range(len(self.classes))]
        return max((float((c.upper - c.values).max()) for c in counts if c.upper is not None), default=0.0)

    def precision_recall(self, pos_label: Level = None) -> Table:
        """Precision and recall of class `pos_label` at each threshold."""
        return self.roc(pos_label).precision_recall()

    def average_precision(self, pos_label: Level = None) -> float:
        """Σ (recallᵢ − recallᵢ₋₁)·precisionᵢ; NaN, with a warning, where no row is of the class."""
        return self.roc(pos_label).average_precision

    def calibration(
        self, pos_label: Level = None, bins: int = 10, strategy: Literal["uniform", "quantile"] = "uniform"
    ) -> Table:
        """Mean predicted probability, observed share of class `pos_label`, and rows, by bins of the probability.

        For more than two classes and without `pos_label`: the largest probability and the accuracy (Guo et al. 2017).
        Bins are equally wide ("uniform"), or hold equally many rows ("quantile").
        """
        if pos_label is None and len(self.classes) > 2:
            return calibration_table(ScoreCounts.from_histogram(self._evidence.confidence), bins, strategy)
        return calibration_table(self._score_counts(self._class_position(pos_label)), bins, strategy)

    def ece(self, pos_label: Level = None, bins: int = 10) -> float:
        """The expected calibration error Σ rows·|observed − predicted| / Σ rows, over equally wide bins."""
        return calibration_error(self.calibration(pos_label, bins))

    @cached_property
    def _count(self) -> Sum:
        by_prediction = np.ascontiguousarray(self._evidence.confusion.words.swapaxes(1, 2))
        return Sum(by_prediction).total() if self.classes else Sum.zeros((0,))

    @cached_property
    def areas(self) -> tuple[float, ...]:
        """(K) the AUC of each class against all others; NaN, without a warning, where there is none."""
        return tuple(self.roc(level).area for level in self.classes)

    @cached_property
    def _rocs(self) -> dict[int, Roc]:
        return {}

    def _score_counts(self, k: int) -> ScoreCounts:
        return ScoreCounts.from_histogram(self._evidence.column(k))

    def _class_position(self, pos_label: Level) -> int:
        listed = ", ".join(map(repr, self.classes)) or "none: no rows"
        if pos_label is None:
            if len(self.classes) != 2:
                raise DecibanError(f"which class is the positive one? Pass pos_label=, one of {listed}")
            return 1
        if level_of(pos_label) not in self.classes:
            raise DecibanError(f"{pos_label!r} is not a class of this evaluation: pass one of {listed}")
        return self.classes.index(level_of(pos_label))

    @property
    def unknown(self) -> float:
        """Σ w of rows of a class that the model does not know."""
        return _total(self._count - self._evidence.known.take([1]).total())

    def by_class(self) -> Table:
        """Rates and AUC of each class against all others; NaN where there is none."""
        return tables.by_class(self)

    def to_frame(self) -> Any:
        """The metrics as a pyarrow.Table of two columns, metric and value."""
        return tables.metrics(self).to_frame()

    def summary(self) -> Summary:
        """Metrics, confusion matrix, classes and folds as tables."""
        return tables.summary(self)

    def __str__(self) -> str:
        return str(self.summary())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    def plot_roc(self, pos_label: Level = None) -> Any:
        """The ROC curve as an altair chart; without `pos_label`, one line for each of three classes or more."""
        return quality_charts.roc(**chart_figures.roc_figures(self, pos_label))

    def plot_precision_recall(self, pos_label: Level = None) -> Any:
        """Precision against recall as a chart; without `pos_label`, a line for each of three classes or more."""
        return quality_charts.precision_recall(**chart_figures.precision_recall_figures(self, pos_label))

    def plot_calibration(self, pos_label: Level = None, bins: int = 10) -> Any:
        """The reliability diagram as an altair chart."""
        return quality_charts.calibration(**chart_figures.calibration_figures(self, pos_label, bins))

    def plot_confusion(self) -> Any:
        """The confusion matrix as an altair chart."""
        return quality_charts.confusion(**chart_figures.confusion_figures(self))

    def to_arrays(self) -> Arrays:
        """The sums, as named arrays; `classes` is JSON. The folds (`parts`) are left out."""
        return {"classes": np.array(json.dumps(self.classes)), **self._scores.to_arrays()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> Self:
        """The evaluation that `to_arrays` made these from."""
        scores = ScoreSums.from_arrays({key: array for key, array in arrays.items() if key != "classes"})
        return cls(tuple(json.loads(str(arrays["classes"]))), (), scores, scores.cap)


def _total(by_class: Sum) -> float:
    return float(by_class.total().value) if by_class.shape[0] else 0.0
