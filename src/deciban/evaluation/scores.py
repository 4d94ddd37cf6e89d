"""ScoredRows and ScoreSums: predictions and true classes, as rows or as sums that add."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.errors import NegativeEvidence
from deciban.evaluation.score_counts import sort_by_class
from deciban.statistics.histogram import Histogram, keys_of, level_within
from deciban.statistics.moments import Moments
from deciban.statistics.statistic import Arrays, drop_zero_weights, require_not_negative
from deciban.statistics.sums import Sum
from deciban.types import FloatArray, Index, Labels

CAP = 1 << 22  # rows kept as they are, and distinct scores that are counted exactly
EPS = float(np.finfo(np.float64).eps)  # probabilities are clipped to [EPS, 1 − EPS] in the log-loss
SUMS = ("confusion", "loss", "squares", "known")  # fields of ScoreSums


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Predicted rows, which are summed when a metric needs it, as exactly as in `ScoreSums`.

    >>> import numpy as np
    >>> rows = ScoredRows.of(np.array([0, 1], np.int32), np.array([[0.75, 0.25], [0.5, 0.5]]), None)
    >>> rows.confusion.value
    array([[1., 0.],
           [1., 0.]])
    """

    codes: Labels  # (n) the true classes
    proba: FloatArray  # (n, K)
    weights: FloatArray | None  # (n), none of them 0
    known: Sum  # (2, K) Σ w of rows whose model knew class k: of other classes, and of class k
    cap: int

    @classmethod
    def of(
        cls,
        codes: Labels,
        proba: FloatArray,
        weights: FloatArray | None,
        known: NDArray[np.bool_] | None = None,
        cap: int = CAP,
    ) -> ScoredRows:
        """`known`: (K) the classes that the model knows; by default all."""
        proba, codes, weights = drop_zero_weights(proba, codes, weights)
        return cls(codes, proba, weights, _known(codes, weights, proba.shape[1], known), cap)

    @classmethod
    def joined(cls, parts: Sequence[ScoredRows]) -> ScoredRows:
        """Parts with the same classes, one after the other."""
        if len(parts) == 1:
            return parts[0]
        weights = None
        if any(part.weights is not None for part in parts):
            weights = np.concatenate([np.ones(len(p)) if p.weights is None else p.weights for p in parts])
        known = sum((part.known for part in parts[1:]), parts[0].known)
        codes, proba = np.concatenate([p.codes for p in parts]), np.concatenate([p.proba for p in parts])
        return cls(codes, proba, weights, known, min(p.cap for p in parts))

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def classes(self) -> int:
        return int(self.proba.shape[1])

    def reindex_classes(self, index: Index, classes: int) -> ScoredRows:
        """Class i becomes class index[i] of `classes`; the others have probability 0."""
        positions = np.asarray(index, dtype=np.intp)
        proba = np.zeros((len(self), classes))
        proba[:, positions] = self.proba
        codes = positions.astype(np.int32)[self.codes]
        return ScoredRows(codes, proba, self.weights, self.known.scatter(positions, classes, axis=1), self.cap)

    @cached_property
    def predicted(self) -> Labels:
        """(n) the most probable class; the first of several."""
        if not len(self):
            return self.codes
        if self.classes == 2:  # several times as fast as argmax along so short an axis
            return np.asarray(self.proba[:, 1] > self.proba[:, 0], np.int32)
        return np.asarray(self.proba.argmax(axis=1), np.int32)

    @cached_property
    def confusion(self) -> Sum:
        """(K, K) Σ w by true and predicted class."""
        return _tally(self.predicted, self.classes, self.codes, self.classes, self.weights)

    @cached_property
    def _losses(self) -> Sum:
        """(K, 2) Σ w·−log p_true and Σ w·Σₖ (pₖ − yₖ)², by true class."""
        of_true = np.take_along_axis(self.proba, self.codes[:, np.newaxis], axis=1)[:, 0]
        both = np.zeros((len(self), 2))
        both[:, 0] = -np.log(np.clip(of_true, EPS, 1 - EPS))
        for k, p in enumerate(self.proba.T):  # one by one, so that a class of probability 0 does not change the sum
            both[:, 1] += (p - (self.codes == k)) ** 2
        return Moments.of(both, self.codes, self.weights, self.classes).sum_x

    @cached_property
    def loss(self) -> Sum:
        """(K) Σ w·−log p_true by true class."""
        return _column(self._losses, 0)

    @cached_property
    def squares(self) -> Sum:
        """(K) Σ w·Σₖ (pₖ − yₖ)² by true class."""
        return _column(self._losses, 1)

    def column(self, k: int) -> Histogram:
        """The probabilities of class k, among other classes and among class k."""
        return score_histogram(self.proba[:, k], self.codes == k, self.weights, self.cap)

    @cached_property
    def confidence(self) -> Histogram:
        """The largest probabilities, among rows classified wrongly and rightly."""
        largest = self.proba.max(axis=1, initial=0.0)
        return score_histogram(largest, self.predicted == self.codes, self.weights, self.cap)

    def folded(self) -> ScoreSums:
        """The sums over these rows."""
        columns = Histogram.concat_columns([self.column(k) for k in range(self.classes)])
        return ScoreSums(self.confusion, self.loss, self.squares, self.known, columns, self.confidence)


@dataclass(frozen=True, eq=False)
class ScoreSums:
    """Everything that metrics need, as exact sums: confusion, losses, and how often each score occurred.

    a + b is the sum over all rows together, to the last bit, and (a + b) − b is a. Scores are counted exactly
    while a column has no more than `cap` distinct ones; beyond, their lowest bits are dropped (see Histogram).

    >>> import numpy as np
    >>> codes, proba = np.array([0, 1], np.int32), np.array([[0.75, 0.25], [0.5, 0.5]])
    >>> once = ScoredRows.of(codes, proba, None).folded()
    >>> (once + once).loss.value / once.loss.value
    array([2., 2.])
    """

    confusion: Sum  # (K, K) Σ w by true and predicted class
    loss: Sum  # (K) Σ w·−log p_true by true class
    squares: Sum  # (K) Σ w·Σₖ (pₖ − yₖ)² by true class
    known: Sum  # (2, K) Σ w of rows whose model knew class k: of other classes, and of class k
    scores: Histogram  # classes (another, this), a column for each class's probability
    confidence: Histogram  # classes (wrong, right), one column: the largest probability

    @property
    def classes(self) -> int:
        return self.confusion.shape[0]

    @property
    def cap(self) -> int:
        return self.scores.cap

    def column(self, k: int) -> Histogram:
        return self.scores.columns([k])

    def __add__(self, other: Self) -> Self:
        cap = min(self.cap, other.cap)
        a, b = self._capped(cap), other._capped(cap)
        return type(self)(*map(operator.add, a._fields(), b._fields()))

    def __sub__(self, other: Self) -> Self:
        rest = type(self)(*map(operator.sub, self._fields(), other._fields()))
        require_not_negative(rest.confusion, rest.known, rest.loss, rest.squares)
        empty = ~rest.confusion.value.any(axis=1)
        if rest.loss.value[empty].any() or rest.squares.value[empty].any():
            raise NegativeEvidence("these rows were never scored: no rows have the sums that would remain")
        return rest

    def _fields(self) -> tuple[Any, ...]:
        return tuple(getattr(self, field.name) for field in fields(self))

    def _capped(self, cap: int) -> Self:
        scores, confidence = (replace(h, cap=cap) for h in (self.scores, self.confidence))
        return replace(self, scores=scores, confidence=confidence)

    def reindex_classes(self, index: Index, classes: int) -> Self:
        """Class i becomes class index[i] of `classes`; the others had probability 0 in every row."""
        source = {int(position): i for i, position in enumerate(index)}
        columns = [self.column(source[k]) if k in source else self._all_at_zero() for k in range(classes)]
        return replace(
            self,
            confusion=self.confusion.scatter(index, classes).scatter(index, classes, axis=1),
            loss=self.loss.scatter(index, classes),
            squares=self.squares.scatter(index, classes),
            known=self.known.scatter(index, classes, axis=1),
            scores=Histogram.concat_columns(columns),
        )

    def take(self, index: Index) -> Self:
        """Only the classes of `index`; no row may be of another."""
        sums = self.confusion.take(index).take(index, axis=1), self.loss.take(index), self.squares.take(index)
        return type(self)(*sums, self.known.take(index, axis=1), self.scores.columns(index), self.confidence)

    def _all_at_zero(self) -> Histogram:
        """The scores of a class that has no rows and probability 0 in all of them."""
        if not self.confusion.value.any():
            return Histogram.zero(2, 1, self.cap)
        total = self.confusion.total().total()
        zeros = np.zeros_like(total.words)
        counts = Sum(np.stack([total.words, zeros], axis=1)[:, :, np.newaxis])
        return Histogram(self.cap, np.zeros(1, np.int64), (keys_of(np.zeros(1)),), (counts,))

    def to_arrays(self) -> Arrays:
        arrays: Arrays = {name: getattr(self, name).words for name in SUMS}
        for name, histogram in (("scores", self.scores), ("confidence", self.confidence)):
            arrays |= {f"{name}.{key}": array for key, array in histogram.to_arrays().items()}
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> Self:
        def histogram(name: str) -> Histogram:
            start = f"{name}."
            return Histogram.from_arrays({k.removeprefix(start): a for k, a in arrays.items() if k.startswith(start)})

        parts: dict[str, Any] = {name: Sum(np.asarray(arrays[name], np.float64)) for name in SUMS}
        return cls(**parts, scores=histogram("scores"), confidence=histogram("confidence"))


def _tally(positions: Labels, size: int, codes: Labels, classes: int, weights: FloatArray | None) -> Sum:
    """(classes, size) Σ w by code and position."""
    ends = np.array([0, size], dtype=np.int64)
    return Sum(_kernels.count_codes(positions[:, np.newaxis], ends, codes, weights, classes))


def _known(codes: Labels, weights: FloatArray | None, classes: int, known: NDArray[np.bool_] | None) -> Sum:
    """(2, K) Σ w of rows of other classes and of class k, for classes that the model knows."""
    zeros = np.zeros(len(codes), np.int32)
    by_class = _tally(codes, classes, zeros, 1, weights)  # (1, K)
    total = Sum(np.repeat(_tally(zeros, 1, zeros, 1, weights).words, classes, axis=2))
    both = (total - by_class).scatter([0], 2) + by_class.scatter([1], 2)
    if known is None:
        return both
    index = np.flatnonzero(known)
    return both.take(index, axis=1).scatter(index, classes, axis=1)


def _column(sums: Sum, j: int) -> Sum:
    return Sum(sums.take([j], axis=1).words[:, :, 0])


def score_histogram(x: FloatArray, is_positive: NDArray[np.bool_], weights: FloatArray | None, cap: int) -> Histogram:
    """`Histogram.of` one column and the classes (negative, positive); without weights by sorting, which is faster."""
    if weights is not None:
        return Histogram.of(x[:, np.newaxis], is_positive.astype(np.int32), weights, 2, cap)
    values, *running = _kernels.merge_sorted(*sort_by_class(x, is_positive))
    keys = keys_of(values)
    level = level_within(keys, cap)
    if level:
        keys >>= level
        last = np.flatnonzero(np.diff(keys, append=-1))  # position of each key; keys are not below 0
        keys, running = keys[last], [at_or_below[last] for at_or_below in running]
    counts = np.array([np.diff(at_or_below, prepend=0) for at_or_below in running], dtype=np.float64)
    return Histogram(cap, np.array([level], np.int64), (keys,), (Sum(counts[np.newaxis]),))
