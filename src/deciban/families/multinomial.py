"""Multinomial: a block of columns that count words (or anything) in a document."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from deciban import _kernels
from deciban.errors import forbid, forbid_stored
from deciban.families.family import Context, Fitted, Natural, Reads, Shaped, SmoothedFamily, formulas, padded_table
from deciban.families.labelled_values import LabelledValues
from deciban.families.loo.tally import Tally
from deciban.families.natural import Term, by_column, names, require_finite
from deciban.families.priors import DiscretePrior, log_frequencies
from deciban.lazy import issparse, lazy
from deciban.statistics.totals import NOT_A_COUNT, Totals
from deciban.table import Table
from deciban.types import BoolArray, FloatArray, IntArray, Labels

if TYPE_CHECKING:
    from deciban.export.formulas import Formula

sp = lazy("scipy.sparse")

FEW = 4  # log-counts without 1, 2, … of a word are tabulated up to here


@dataclass(frozen=True)
class MultinomialParams:
    log_p: FloatArray  # (K, V)


@dataclass(frozen=True)
class Multinomial(SmoothedFamily[Totals, MultinomialParams]):
    """A block of columns that count words, or anything, with a share of each in each class.

    log p(x|c) = Σ_v x_v log θ_v, with θ_v = (k_v + α) / (all words of class c + αV)

    The event model: a document is a sequence of words drawn from the class's vocabulary, of any length. The multinomial
    coefficient, which is common to all classes, is left out. Values are counts, or sparse rows of them; fractions
    (tf-idf) are allowed, negative counts are not.

    Parameters
    ----------
    prior : prior of deciban.priors or None, default None
        Pseudo-counts: Laplace, Beta, Dirichlet or Virtual. None: Laplace, with the smoothing of the model.

    Attributes
    ----------
    follows : float or None
        How many pseudo-counts follow the counts of all classes; None if the prior does not say, which makes
        leave-one-out slow.

    See Also
    --------
    deciban.families.Text : Counts the words of documents itself.
    deciban.families.Bernoulli : Whether a word occurs, not how often.

    Examples
    --------
    >>> import numpy as np
    >>> from deciban.families import Context, Multinomial
    >>> family = Multinomial()
    >>> evidence = family.collect(np.array([[2.0, 0.0], [1.0, 1.0]]), np.zeros(2, np.int32), None, 1)
    >>> np.exp(family.estimate(evidence, Context(("all",), ("a", "b"))).log_p).round(12)
    array([[0.66666667, 0.33333333]])
    """

    phrase: ClassVar[str] = "counts, one share of all in each class"
    prior: DiscretePrior | None = None
    reads: ClassVar[Reads] = "counts"
    joint: ClassVar[bool] = True

    def collect(self, values: Any, labels: Labels, weights: FloatArray | None, classes: int) -> Totals:
        return Totals.of(values, labels, weights, classes)

    def estimate(self, statistic: Totals, context: Context) -> MultinomialParams:
        return MultinomialParams(log_frequencies(statistic.sum_x.value, self._pseudo(statistic, context)))

    def _pseudo(self, statistic: Totals, context: Context) -> FloatArray:
        return self.prior_in(context).pseudo_counts(statistic.sum_x.value, context.columns, context.classes)

    def add_log_density(self, params: MultinomialParams, values: Any, out: FloatArray) -> None:
        self.check(values)
        if issparse(values):
            table = padded_table(params.log_p)
            _kernels.add_sparse(values.data, values.indices, values.indptr, table, len(params.log_p), out)
        else:
            log_p = np.ascontiguousarray(params.log_p)
            _kernels.add_linear(values, log_p, np.zeros_like(log_p), out)

    def leave_one_out(self, fitted: Fitted[Totals, MultinomialParams], rows: LabelledValues, out: FloatArray) -> None:
        """Σ_v x_v log(k_v − w·x_v + a_v) − Σx log(n − w·Σx + Σa) in the row's own class; others do not change.

        If the prior follows the counts, they do. Parameters are estimated without a row that has nearly all words of
        its class, since n − w·Σx would keep few digits.
        """
        statistic, values, labels = fitted.statistic, rows.values, rows.labels
        pseudo = self._pseudo(statistic, fitted.context)
        tally = Tally.of(statistic.sum_x, pseudo, self.follows or 0.0)
        if self.follows is None or (pseudo < 0).any() or (tally.present.value + tally.all_pseudo <= 0).any():
            super().leave_one_out(fitted, rows, out)
            return
        before = out.copy()
        self.check(values)
        if not tally.follows:
            self.add_log_density(fitted.params, values, out)
        table = None if rows.weights is not None or tally.follows else _own_table(tally, values)
        for portion in _portions(values):
            words = _Words.of(rows.take(portion), table)
            if tally.follows:
                words.add_followed(tally, out[portion])
            else:
                own = np.arange(portion.start, portion.stop), labels[portion]
                out[own] = before[own] + words.in_own_class(tally)
            nearly_all = portion.start + words.nearly_all(tally)
            out[nearly_all] = before[nearly_all]
            self.estimate_without(fitted, rows, nearly_all, out)

    def recall(self, statistic: Totals) -> LabelledValues:
        """Every word as a document, since counts do not say which words were in the same one."""
        counts = statistic.sum_x.value
        labels, words = np.nonzero(counts)
        ones = (np.ones(len(words)), words.astype(np.int32), np.arange(len(words) + 1, dtype=np.int32))
        values = sp.csr_array(ones, shape=(len(words), counts.shape[1]))
        return LabelledValues(values, labels.astype(np.int32), counts[labels, words])

    def natural(self, params: MultinomialParams, context: Context) -> Natural:
        """log θ_v for T = x_v."""
        require_finite(params.log_p, range(params.log_p.shape[1]), context, self)
        return by_column(np.ones(params.log_p.shape[1], np.bool_), [Term(names(context), params.log_p)])

    def sufficient(self, params: MultinomialParams, values: Any) -> Any:
        self.check(values)
        if issparse(values):
            counts = np.nan_to_num(values.data.astype(np.float64), nan=0.0)
            return sp.csr_array((counts, values.indices, values.indptr), shape=values.shape)
        return np.nan_to_num(np.asarray(values, dtype=np.float64), nan=0.0)

    def check(self, values: Any) -> None:
        if issparse(values):
            forbid_stored(values, (values.data < 0) | np.isinf(values.data), NOT_A_COUNT)
        else:
            forbid((values < 0) | np.isinf(values), NOT_A_COUNT)

    def parts(self, params: MultinomialParams, values: Any, classes: int) -> list[FloatArray]:
        dense = values.toarray() if issparse(values) else values
        counts = np.where(np.isnan(dense), 0.0, dense).T[:, :, np.newaxis]
        with np.errstate(invalid="ignore"):
            return [np.where(x == 0, 0.0, x * log_p) for x, log_p in zip(counts, params.log_p.T, strict=True)]

    def param_shapes(self, params: MultinomialParams, classes: int, columns: int) -> dict[str, Shaped]:
        return {"log_p": (params.log_p, (classes, columns))}

    def n_parameters(self, params: MultinomialParams) -> int:
        return len(params.log_p) * (int(params.log_p.shape[1]) - 1)

    def formula(self, params: MultinomialParams) -> list[Formula]:
        """x_v log θ_v, a line for each word."""
        return self.linear_formula(params, params.log_p)

    def linear_formula(self, params: MultinomialParams, weights: FloatArray) -> list[Formula]:
        return [formulas.Curve(tuple(range(weights.shape[1])), slope=weights.T, domains=("amount",))]

    def describe(self, params: MultinomialParams, context: Context) -> list[Table]:
        rows = tuple((name, *np.exp(params.log_p[:, j]).tolist()) for j, name in enumerate(context.columns))
        return [Table("Multinomial", ("word", *map(str, context.classes)), rows)]


@dataclass(frozen=True)
class _Words:
    """The words of n rows that are left out one at a time: m cells, and a sum over those that are looked up."""

    rows: IntArray  # (m)
    columns: IntArray  # (m)
    x: FloatArray  # (m)
    weight: FloatArray  # (m) w·x
    rest: FloatArray  # (m) the rounding error of w·x
    looked_up: FloatArray  # (n) Σ x log(k − x + a) over the other cells, from a table
    length: FloatArray  # (n) Σx
    weights: FloatArray  # (n)
    labels: Labels  # (n)

    @classmethod
    def of(cls, cells: LabelledValues, table: FloatArray | None) -> _Words:
        stored, labels, weights = sp.csr_array(cells.values, dtype=np.float64), cells.labels, cells.weights
        if not stored.has_canonical_format:
            stored = stored.copy()
            stored.sum_duplicates()
        x, n = np.where(stored.data > 0, stored.data, 0.0), len(labels)  # 0 where NaN
        rows = np.repeat(np.arange(n), np.diff(stored.indptr))
        length = np.bincount(rows, x, minlength=n).astype(np.float64)
        looked_up, small = (np.zeros(n), x == 0) if table is None else _look_up(stored, x, labels, table)
        rare = np.flatnonzero(~small & (x > 0))
        rows, x, w = rows[rare], x[rare], np.ones(n) if weights is None else weights
        weight, rest = (x, np.zeros(1)) if weights is None else exact_product(w[rows], x)
        return cls(rows, stored.indices[rare], x, weight, rest, looked_up, length, w, labels)

    def nearly_all(self, tally: Tally) -> IntArray:
        """The rows without which less than a thousandth of the words, and virtual words, remain."""
        removed, c = self.weights * self.length, self.labels
        if tally.follows:
            left, total = tally.present.total().subtract(removed, 0), tally.present.total().value
        else:
            virtual = tally.all_pseudo[c, 0]
            left, total = tally.present.subtract(removed, c, 0) + virtual, tally.present.value[c, 0] + virtual
        return np.flatnonzero((removed > 0) & (left < 1e-3 * total))

    def in_own_class(self, tally: Tally) -> FloatArray:
        """(n) log p(x_i) in the class of row i, without row i."""
        c = self.labels[self.rows]
        k = tally.counts.subtract(self.weight, c, self.columns) - self.rest + tally.pseudo[c, self.columns]
        total = tally.present.subtract(self.weights * self.length, self.labels, 0) + tally.all_pseudo[self.labels, 0]
        return self._log_density(k, total)

    def add_followed(self, tally: Tally, out: FloatArray) -> None:
        """out (n, K) += log p(x_i|c) without row i, with pseudo-counts that follow the remaining words."""
        removed, per_class = self.weights * self.length, tally.follows / len(out.T)
        everything = tally.present.total().subtract(removed, 0)
        left = tally.counts.total().subtract(self.weight, self.columns) - self.rest
        with np.errstate(divide="ignore", invalid="ignore"):
            a = per_class * left / everything[self.rows]
        for c in range(out.shape[1]):
            own = self.labels == c
            weight, rest = (np.where(own[self.rows], part, 0.0) for part in (self.weight, self.rest))
            k = tally.counts.subtract(weight, c, self.columns) - rest
            total = tally.present.subtract(np.where(own, removed, 0.0), c, 0)
            out[:, c] += self._log_density(k + a, total + per_class)

    def _log_density(self, k: FloatArray, total: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            words = np.bincount(self.rows, self.x * np.log(k), minlength=len(self.length))
            result: FloatArray = self.looked_up + words - np.where(self.length > 0, self.length * np.log(total), 0.0)
        return result


def _own_table(tally: Tally, values: Any) -> FloatArray | None:
    """(V·FEW, K padded) log(k − x + a) for x = 1 … FEW of each word; None if it costs more than the rows."""
    classes, words = tally.counts.shape
    if FEW * classes * words > (values.nnz if issparse(values) else values.size):
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = [np.log(tally.counts.subtract(x) + tally.pseudo) for x in range(1, FEW + 1)]
    return padded_table(np.stack(logs, axis=2).reshape(classes, words * FEW))


def _look_up(stored: Any, x: FloatArray, labels: Labels, table: FloatArray) -> tuple[FloatArray, BoolArray]:
    """(n) Σ x log(k − x + a) in the row's own class over the cells that the table covers, and which cells these are."""
    step = np.minimum(x, FEW + 1).astype(stored.indices.dtype)
    small = (step == x) & (step > 0) & (step <= FEW)
    entries = np.where(small, stored.indices * FEW + step - 1, 0).astype(stored.indices.dtype)
    classes = table.shape[1]
    log_p = np.zeros((len(labels), classes))
    _kernels.add_sparse(np.where(small, x, 0.0), entries, stored.indptr, table, classes, log_p)
    return log_p[np.arange(len(labels)), labels], small


def _portions(values: Any) -> Iterator[slice]:
    """Slices of rows whose stored cells stay in the cache."""
    n, cells = values.shape[0], values.nnz if issparse(values) else values.size
    step = max(1, n * (1 << 18) // max(1, cells))
    return (slice(start, min(n, start + step)) for start in range(0, n, step))


def exact_product(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """a·b rounded, and the rounding error (Dekker 1971).

    >>> exact_product(np.array([0.1]), np.array([3.0]))  # the double 0.1 is 0.1 + 5.55e-18
    (array([0.3]), array([-2.77555756e-17]))
    """

    def halves(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        far = (2.0**27 + 1.0) * x
        high = far - (far - x)
        return high, x - high

    product = a * b
    (a0, a1), (b0, b1) = halves(a), halves(b)
    return product, ((a0 * b0 - product) + a0 * b1 + a1 * b0) + a1 * b1
