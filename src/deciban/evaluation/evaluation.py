"""Evaluation: predictions held against the truth, as evidence that adds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from deciban.errors import DecibanError, NegativeEvidence
from deciban.evaluation import report
from deciban.evaluation.calibration import calibration_error, calibration_table
from deciban.evaluation.cells import Cells
from deciban.evaluation.predictions import read_predictions
from deciban.evaluation.rates import Rates, share
from deciban.evaluation.roc import Roc
from deciban.evaluation.scores import CAP, Scored, Scores
from deciban.statistics.base import Arrays
from deciban.statistics.sums import Sum
from deciban.summary import Summary
from deciban.table import Table
from deciban.types import FloatArray, Labels, Level, Levels, level_of, sorted_levels


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Accuracy, losses, ROC curves and calibration of probabilities, from evidence that adds: a + b judges both.

    So an evaluation of many batches, or on many machines, is the sum of theirs, to the last bit, and a − b forgets.
    Rows are kept as they are, and summed when a metric asks; beyond `cap` rows they are folded into sums and counts of
    scores, exact while no more than `cap` scores of a class differ (`auc_error` bounds what is lost beyond).

    Where `pos_label`, the positive class, may be left out, it is the second of two classes.

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

    classes: Levels  # sorted; of labels and of score columns together
    pieces: tuple[Scored, ...] = ()  # rows not folded yet, no more than cap
    folded: Scores | None = None
    cap: int = CAP
    parts: tuple[Evaluation, ...] = field(default=(), compare=False)  # the folds of a cross-validation

    @classmethod
    def of(cls, y: Any, proba: Any, *, classes: Any = None, sample_weight: Any = None, cap: int = CAP) -> Evaluation:
        """Of any library's probabilities.

        - `y`: the true labels: text, integers or booleans.
        - `proba`: (n, K), a column for each class, or (n), the probability of the second of two classes.
        - `classes`: the class of each column, such as `model.classes_`; by default the labels that occur, sorted. A
          label that is not among them is a class that the model does not know, of probability 0.
        - `sample_weight`: a row of weight 2 is a row twice, and one of weight 0 is as if absent.
        """
        found = read_predictions(y, proba, classes, sample_weight)
        return cls.scored(found.classes, found.codes, found.proba, found.weights, known=found.known, cap=cap)

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
        """Of codes (n), places in `classes`, which are sorted, and of probabilities (n, K), which are not checked.

        `known` (K) says which classes the model knows, by default all; the others have probability 0. The arrays are
        kept, not copied.
        """
        if cap < 1:
            raise DecibanError(f"cap is {cap}: it must be 1 or more rows")
        levels = tuple(map(level_of, classes))
        return cls(levels, (Scored.of(codes, proba, weights, known, cap),), cap=cap)._within_cap()

    # Adding ----------------------------------------------------------------------------------------------------------

    def __add__(self, other: Evaluation) -> Evaluation:
        if not isinstance(other, Evaluation):
            return NotImplemented
        classes = sorted_levels({*self.classes, *other.classes})
        a, b, cap = self._aligned(classes), other._aligned(classes), min(self.cap, other.cap)
        folded = a.folded + b.folded if a.folded and b.folded else a.folded or b.folded
        return Evaluation(classes, a.pieces + b.pieces, folded, cap)._within_cap()

    def __radd__(self, other: object) -> Evaluation:
        """0 + evaluation, so that sum() works."""
        return self if other == 0 and isinstance(other, int) else NotImplemented

    def __sub__(self, other: Evaluation) -> Evaluation:
        """What is left when the rows of `other` are forgotten; a class that no row speaks of any more is dropped."""
        if not isinstance(other, Evaluation):
            return NotImplemented
        classes = sorted_levels({*self.classes, *other.classes})
        try:
            rest = self._aligned(classes)._scores - other._aligned(classes)._scores
        except NegativeEvidence:
            raise NegativeEvidence("these rows are not in the evaluation; it is unchanged") from None
        left = np.flatnonzero(rest.known.value.any(axis=0) | rest.confusion.value.any(axis=1))
        return Evaluation(tuple(classes[i] for i in left), (), rest.take(left), self.cap)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Evaluation):
            return NotImplemented
        mine, theirs = self.to_arrays(), other.to_arrays()
        return mine.keys() == theirs.keys() and all(np.array_equal(mine[key], theirs[key]) for key in mine)

    __hash__ = None  # type: ignore[assignment]

    def _aligned(self, classes: Levels) -> Evaluation:
        if classes == self.classes:
            return self
        index = [classes.index(level) for level in self.classes]
        pieces = tuple(piece.aligned(index, len(classes)) for piece in self.pieces)
        folded = None if self.folded is None else self.folded.aligned(index, len(classes))
        return Evaluation(classes, pieces, folded, self.cap)

    def _within_cap(self) -> Evaluation:
        """Folded for good if there are more rows than may be kept."""
        if sum(map(len, self.pieces)) <= self.cap:
            return self
        return Evaluation(self.classes, (), self._scores, self.cap, self.parts)

    @cached_property
    def _evidence(self) -> Scored | Scores:
        """All of it; rows stay rows as long as they may."""
        if self.folded is None:
            return Scored.joined(self.pieces)
        return self.folded + Scored.joined(self.pieces).folded() if self.pieces else self.folded

    @cached_property
    def _scores(self) -> Scores:
        return self._evidence.folded() if isinstance(self._evidence, Scored) else self._evidence

    # Metrics ---------------------------------------------------------------------------------------------------------

    @property
    def confusion(self) -> FloatArray:
        """(K, K) Σ w: rows are true classes, columns the most probable ones, of equals the first."""
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
        """Σ w over rows classed rightly / Σ w."""
        return share(np.trace(self.confusion), self.rows)

    @property
    def error(self) -> float:
        """1 − accuracy."""
        return share(self.rows - np.trace(self.confusion), self.rows)

    @property
    def log_loss(self) -> float:
        """−mean log p(true class), in nats, with p clipped to [ε, 1 − ε], ε = 2⁻⁵², as scikit-learn does.

        So a row of a class that was given 0 costs 36 nats.
        """
        return share(_total(self._evidence.loss), self.rows)

    @property
    def brier(self) -> float:
        """Mean Σₖ (pₖ − yₖ)², halved for two classes, where it is the mean (p − y)²: scikit-learn's scaling."""
        return share(_total(self._evidence.squares), self.rows) / (2 if len(self.classes) <= 2 else 1)

    def at(self, threshold: float | None = None, pos_label: Level = None) -> Rates:
        """The rates where class `pos_label` is called at probabilities of `threshold` (0.5) or more."""
        return self.roc(pos_label).at(0.5 if threshold is None else threshold)

    def roc(self, pos_label: Level = None) -> Roc:
        """The ROC curve of class `pos_label` against all others."""
        place = self._place(pos_label)
        if place not in self._rocs:
            if sum(len(curve.tp) for curve in self._rocs.values()) > self.cap:
                self._rocs.clear()  # curves of many classes are larger than the rows
            self._rocs[place] = Roc.from_cells(self._cells(place))
        return self._rocs[place]

    def auc(self, pos_label: Level = None) -> float:
        """The area under the ROC curve; NaN, with a warning, where all rows are of one class."""
        return self.roc(pos_label).auc

    def auc_interval(self, pos_label: Level = None, level: float = 0.95) -> tuple[float, float]:
        """DeLong's interval of the AUC, within [0, 1]."""
        return self.roc(pos_label).interval(level)

    def auc_error(self, pos_label: Level = None) -> float:
        """½ Σ P(s)·N(s) / PN, summed where scores share a cell: the AUC is no further from that of all bits.

        0 while no more than `cap` scores differ.
        """
        place = self._place(pos_label)
        if isinstance(self._evidence, Scored) or not self._evidence.scores.levels[place]:
            return 0.0
        column = self._evidence.column(place)
        negative, positive = column.table(0).value
        return share(float((negative * positive).sum()), 2 * float(negative.sum() * positive.sum()))

    @property
    def widest(self) -> float:
        """The largest difference between scores that are counted as one; 0 up to `cap` different scores."""
        cells = [self._cells(k) for k in range(len(self.classes))]
        return max((float((c.upper - c.values).max()) for c in cells if c.upper is not None), default=0.0)

    def precision_recall(self, pos_label: Level = None) -> Table:
        """Precision and recall of class `pos_label` at each threshold."""
        return self.roc(pos_label).precision_recall()

    def average_precision(self, pos_label: Level = None) -> float:
        """Σ (recallᵢ − recallᵢ₋₁)·precisionᵢ; NaN, with a warning, where no row is of the class."""
        return self.roc(pos_label).average_precision

    def calibration(
        self, pos_label: Level = None, bins: int = 10, strategy: Literal["uniform", "quantile"] = "uniform"
    ) -> Table:
        """Mean probability, share of rows that are of class `pos_label`, and rows, by bins of the probability.

        For more than two classes and without `pos_label`: the largest probability, against whether it was right (Guo et
        al. 2017). Bins are equally wide, or hold equally many rows.
        """
        if pos_label is None and len(self.classes) > 2:
            return calibration_table(Cells.from_histogram(self._evidence.confidence), bins, strategy)
        return calibration_table(self._cells(self._place(pos_label)), bins, strategy)

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

    def _cells(self, place: int) -> Cells:
        return Cells.from_histogram(self._evidence.column(place))

    def _place(self, pos_label: Level) -> int:
        """Of the positive class."""
        listed = ", ".join(map(repr, self.classes))
        if pos_label is None:
            if len(self.classes) != 2:
                raise DecibanError(
                    f"which class is the positive one? Pass pos_label=, one of {listed or 'none: no rows'}"
                )
            return 1
        if level_of(pos_label) not in self.classes:
            raise DecibanError(
                f"{pos_label!r} is not a class of this evaluation: pass one of {listed or 'none: no rows'}"
            )
        return self.classes.index(level_of(pos_label))

    # For people ------------------------------------------------------------------------------------------------------

    @property
    def unknown(self) -> float:
        """Σ w of rows of a class that their model did not know."""
        return _total(self._count - self._evidence.known.take([1]).total())

    def by_class(self) -> Table:
        """Each class against all others, from the confusion matrix; and its AUC, NaN where there is none."""
        return report.by_class(self)

    def to_frame(self) -> Any:
        """The metrics as a pyarrow.Table of two columns, metric and value."""
        return report.metrics(self).to_frame()

    def summary(self) -> Summary:
        """Metrics, confusion matrix, classes and folds as tables."""
        return report.summary(self)

    def __str__(self) -> str:
        return str(self.summary())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    def plot_roc(self, pos_label: Level = None) -> Any:
        """The ROC curve as an altair chart; without `pos_label`, one line for each of three classes or more."""
        from deciban.evaluation import plots

        return plots.roc(self, pos_label=pos_label)

    def plot_precision_recall(self, pos_label: Level = None) -> Any:
        """Precision against recall as a chart; without `pos_label`, a line for each of three classes or more."""
        from deciban.evaluation import plots

        return plots.precision_recall(self, pos_label=pos_label)

    def plot_calibration(self, pos_label: Level = None, bins: int = 10) -> Any:
        """The reliability diagram as an altair chart."""
        from deciban.evaluation import plots

        return plots.calibration(self, pos_label=pos_label, bins=bins)

    def plot_confusion(self) -> Any:
        """The confusion matrix as an altair chart."""
        from deciban.evaluation import plots

        return plots.confusion(self)

    # Storage ---------------------------------------------------------------------------------------------------------

    def to_arrays(self) -> Arrays:
        """The folded evidence; `classes` is JSON. The folds (`parts`) are not among it."""
        return {"classes": np.array(json.dumps(self.classes)), **self._scores.to_arrays()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> Self:
        """The evaluation that `to_arrays` made these from."""
        scores = Scores.from_arrays({key: array for key, array in arrays.items() if key != "classes"})
        return cls(tuple(json.loads(str(arrays["classes"]))), (), scores, scores.cap)


def _total(by_class: Sum) -> float:
    return float(by_class.total().value) if by_class.shape[0] else 0.0
