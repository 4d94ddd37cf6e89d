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
from deciban.errors import DecibanError, NegativeEvidence, did_you_mean
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
    """The quality of predicted probabilities: accuracy, losses, ROC curves and calibration, from sums that add.

    a + b is the evaluation of the rows of both, to the last bit, so batches and machines can be evaluated one by one;
    a − b removes rows. Up to `cap` rows are kept as they are; more are folded into sums and counts of scores, which are
    exact while a class has no more than `cap` distinct scores (`auc_error` bounds the error beyond).

    `deciban.evaluate`, `deciban.cross_validate` and `model.leave_one_out` return one; `Evaluation.of` makes one from
    the probabilities of any library. Printed, it is a summary.

    Attributes
    ----------
    classes : tuple
        The classes, sorted: of the labels and of the probabilities together.
    rows : float
        Σ w: the number of rows, if they have no weights.
    count : array of shape (K,)
        Σ w of each true class.
    unknown : float
        Σ w of rows of a class that the model does not know: its probability is 0, so they count as errors.
    confusion : array of shape (K, K)
        Σ w: rows are true classes, columns the most probable ones.
    accuracy : float
        The share of rows whose most probable class is the true one.
    error : float
        1 − accuracy.
    log_loss : float
        −mean log p(true class), in nats. The figure to compare models by if probabilities matter.
    brier : float
        The mean squared error of the probabilities, scaled as by scikit-learn.
    areas : tuple of float
        The AUC of each class against all others; NaN where there is none.
    parts : tuple of Evaluation
        The folds of a cross-validation; empty otherwise. Their spread shows how certain a figure is.
    cap : int
        How many rows are kept as they are.
    widest : float
        The largest difference between scores that are counted as one; 0 up to `cap` distinct scores.
    pieces : tuple of ScoredRows
        The rows that are kept as they are.
    folded : ScoreSums or None
        The sums of those that are not.

    See Also
    --------
    deciban.evaluate : Of a fitted model on other rows.
    deciban.cross_validate : Of a model on the rows that it is fitted to.

    Examples
    --------
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

        Parameters
        ----------
        y : array-like of shape (n,)
            The true labels: text, integers or booleans.
        proba : array-like of shape (n, K), or (n,)
            A column for each class, or the probability of the second of two classes.
        classes : array-like of shape (K,) or None, default None
            The class of each column, such as `model.classes_`; by default the labels that occur, sorted. A label that
            is not among them is a class that the model does not know: its probability is 0.
        sample_weight : array-like of shape (n,) or None, default None
            A row of weight 2 counts as two rows; rows of weight 0 are ignored.
        cap : int, default 4_194_304
            How many rows are kept as they are.

        Returns
        -------
        Evaluation
            Add others to it with `+`.

        Raises
        ------
        DecibanError
            If probabilities do not sum to 1, or are not as many as labels; the message names the row.
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
        """Evaluate encoded labels and probabilities, which are neither checked nor copied.

        Parameters
        ----------
        classes : tuple
            The classes, sorted.
        codes : array of shape (n,)
            The position of each row's class in `classes`.
        proba : array of shape (n, K)
            Probabilities.
        weights : array of shape (n,) or None
            Weights of the rows.
        known : array of shape (K,) or None, default None
            Which classes the model knows, by default all; the others have probability 0.
        cap : int, default 4_194_304
            How many rows are kept as they are.

        Returns
        -------
        Evaluation
            As by `of`.
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
        """The rates where the positive class is predicted at probabilities of `threshold` or more.

        Parameters
        ----------
        threshold : float or None, default None
            None is 0.5.
        pos_label : str, int, float or bool, default None
            The positive class. By default the second of two; with more classes it has to be given.

        Returns
        -------
        Rates
            Sensitivity, specificity, precision, F1 and the counts they are made of.
        """
        return self.roc(pos_label).at(0.5 if threshold is None else threshold)

    def roc(self, pos_label: Level = None) -> Roc:
        """The ROC curve of a class against all others.

        Parameters
        ----------
        pos_label : str, int, float or bool, default None
            The positive class. By default the second of two; with more classes it has to be given.

        Returns
        -------
        Roc
            All points of the curve.
        """
        k = self._class_position(pos_label)
        if k not in self._rocs:
            if sum(len(curve.tp) for curve in self._rocs.values()) > self.cap:
                self._rocs.clear()  # the curves of many classes are larger than the rows
            self._rocs[k] = Roc.from_counts(self._score_counts(k))
        return self._rocs[k]

    def auc(self, pos_label: Level = None) -> float:
        """The area under the ROC curve.

        Parameters
        ----------
        pos_label : str, int, float or bool, default None
            The positive class. By default the second of two; with more classes it has to be given.

        Returns
        -------
        float
            0.5 for chance, 1 for perfect ranking; NaN, with a warning, where all rows are of one class.
        """
        return self.roc(pos_label).auc

    def auc_interval(self, pos_label: Level = None, level: float = 0.95) -> tuple[float, float]:
        """DeLong's interval of the AUC, within [0, 1].

        Parameters
        ----------
        pos_label : str, int, float or bool, default None
            The positive class. By default the second of two; with more classes it has to be given.
        level : float, default 0.95
            The probability of the interval.

        Returns
        -------
        tuple of float
            Its ends.
        """
        return self.roc(pos_label).interval(level)

    def auc_error(self, pos_label: Level = None) -> float:
        """How far the AUC may be from that of exact scores, because scores are rounded beyond `cap` distinct ones.

        ½ Σ P(s)·N(s) / PN, summed over rounded scores

        Parameters
        ----------
        pos_label : str, int, float or bool, default None
            The positive class. By default the second of two; with more classes it has to be given.

        Returns
        -------
        float
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
        """Precision and recall of a class at each threshold.

        Parameters
        ----------
        pos_label : str, int, float or bool, default None
            The positive class. By default the second of two; with more classes it has to be given.

        Returns
        -------
        Table
            A row for each threshold, ascending.
        """
        return self.roc(pos_label).precision_recall()

    def average_precision(self, pos_label: Level = None) -> float:
        """The area under the precision-recall curve, Σ (recallᵢ − recallᵢ₋₁)·precisionᵢ.

        Parameters
        ----------
        pos_label : str, int, float or bool, default None
            The positive class. By default the second of two; with more classes it has to be given.

        Returns
        -------
        float
            NaN, with a warning, where no row is of the class.
        """
        return self.roc(pos_label).average_precision

    def calibration(
        self, pos_label: Level = None, bins: int = 10, strategy: Literal["uniform", "quantile"] = "uniform"
    ) -> Table:
        """Whether probabilities are what they say: predicted and observed shares, by bins of the probability.

        For more than two classes and without `pos_label`: the largest probability and the accuracy (Guo et al. 2017).

        Parameters
        ----------
        pos_label : str, int, float or bool, default None
            The positive class. By default the second of two.
        bins : int, default 10
            The number of bins.
        strategy : "uniform" or "quantile", default "uniform"
            Bins are equally wide, or hold equally many rows.

        Returns
        -------
        Table
            Mean predicted probability, observed share of the class, and rows, for each bin.
        """
        if pos_label is None and len(self.classes) > 2:
            return calibration_table(ScoreCounts.from_histogram(self._evidence.confidence), bins, strategy)
        return calibration_table(self._score_counts(self._class_position(pos_label)), bins, strategy)

    def ece(self, pos_label: Level = None, bins: int = 10) -> float:
        """The expected calibration error, Σ rows·|observed − predicted| / Σ rows, over equally wide bins.

        Parameters
        ----------
        pos_label : str, int, float or bool, default None
            The positive class. By default the second of two; with more, the largest probability and the accuracy.
        bins : int, default 10
            The number of bins.

        Returns
        -------
        float
            From 0, perfectly calibrated, to 1.
        """
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
            near = did_you_mean(pos_label, among=self.classes)
            raise DecibanError(f"{pos_label!r} is not a class of this evaluation{near}: pass one of {listed}")
        return self.classes.index(level_of(pos_label))

    @property
    def unknown(self) -> float:
        """Σ w of rows of a class that the model does not know."""
        return _total(self._count - self._evidence.known.take([1]).total())

    @property
    def _known_classes(self) -> NDArray[np.bool_]:
        """(K) whether the model knows each class, or the models of some rows do."""
        return np.asarray(self._evidence.known.value.any(axis=0), np.bool_)

    def by_class(self) -> Table:
        """Rates and AUC of each class against all others.

        Returns
        -------
        Table
            A row for each class; NaN where a figure is not defined.
        """
        return tables.by_class(self)

    def to_frame(self) -> Any:
        """The metrics as a table of two columns, metric and value.

        Returns
        -------
        pyarrow.Table
            `.to_pandas()` makes it pandas; polars and altair read it as it is.
        """
        return tables.metrics(self).to_frame()

    def summary(self) -> Summary:
        """Metrics, confusion matrix, classes and folds as tables.

        Returns
        -------
        Summary
            What printing shows.
        """
        return tables.summary(self)

    def __str__(self) -> str:
        return str(self.summary())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    def plot_roc(self, pos_label: Level = None) -> Any:
        """Draw the ROC curve.

        Parameters
        ----------
        pos_label : str, int, float or bool, default None
            The positive class. By default the second of two; with more, there is one line for each.

        Returns
        -------
        altair.Chart
            Needs `pip install 'deciban[plot]'`.
        """
        return quality_charts.roc(**chart_figures.roc_figures(self, pos_label))

    def plot_precision_recall(self, pos_label: Level = None) -> Any:
        """Draw precision against recall.

        Parameters
        ----------
        pos_label : str, int, float or bool, default None
            The positive class. By default the second of two; with more, there is one line for each.

        Returns
        -------
        altair.Chart
            Needs `pip install 'deciban[plot]'`.
        """
        return quality_charts.precision_recall(**chart_figures.precision_recall_figures(self, pos_label))

    def plot_calibration(self, pos_label: Level = None, bins: int = 10) -> Any:
        """Draw the reliability diagram: observed against predicted probabilities.

        Parameters
        ----------
        pos_label : str, int, float or bool, default None
            The positive class. By default the second of two; with more, the largest probability and the accuracy.
        bins : int, default 10
            The number of bins.

        Returns
        -------
        altair.Chart
            Needs `pip install 'deciban[plot]'`.
        """
        return quality_charts.calibration(**chart_figures.calibration_figures(self, pos_label, bins))

    def plot_confusion(self) -> Any:
        """Draw the confusion matrix.

        Returns
        -------
        altair.Chart
            Needs `pip install 'deciban[plot]'`.
        """
        return quality_charts.confusion(**chart_figures.confusion_figures(self))

    def to_arrays(self) -> Arrays:
        """The sums as named arrays, to be stored or sent; `from_arrays` reads them.

        Returns
        -------
        dict of str to array
            `classes` is JSON. The folds (`parts`) are left out.
        """
        return {"classes": np.array(json.dumps(self.classes)), **self._scores.to_arrays()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> Self:
        """The evaluation that `to_arrays` made these from.

        Parameters
        ----------
        arrays : dict of str to array
            What `to_arrays` returned.

        Returns
        -------
        Evaluation
            Equal to the former.
        """
        scores = ScoreSums.from_arrays({key: array for key, array in arrays.items() if key != "classes"})
        return cls(tuple(json.loads(str(arrays["classes"]))), (), scores, scores.cap)


def _total(by_class: Sum) -> float:
    return float(by_class.total().value) if by_class.shape[0] else 0.0
