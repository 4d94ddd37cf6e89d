"""Bernoulli: each column true or false."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from deciban import _kernels
from deciban.errors import INFINITE, DecibanError, forbid, forbid_infinite, forbid_stored
from deciban.families.family import Context, Fitted, Natural, Reads, Shaped, SmoothedFamily, formulas, padded_table
from deciban.families.labelled_values import LabelledValues
from deciban.families.loo.tally import Tally, add_with_own, equal_weights
from deciban.families.natural import Term, absence, by_column, names, number, require_finite, side_by_side
from deciban.families.priors import DiscretePrior, log_frequencies
from deciban.lazy import issparse, lazy
from deciban.statistics.moments import Moments
from deciban.statistics.sums import Sum
from deciban.statistics.totals import Totals
from deciban.table import Table
from deciban.types import BoolArray, Domain, FloatArray, Labels

if TYPE_CHECKING:
    from deciban.export.formulas import Code, Formula

sp = lazy("scipy.sparse")

NOT_BINARY = "is neither 0 nor 1: give Bernoulli a threshold"


@dataclass(frozen=True)
class BernoulliParams:
    log_p: FloatArray  # (K, d, 2) of false and true; 0 where not informative
    informative: BoolArray  # (d) False where the column is constant or always missing


@dataclass(frozen=True)
class Bernoulli(SmoothedFamily[Moments, BernoulliParams]):
    """Features that are true or false, with a probability of true in each class.

    p(x|c) = φ if x else 1 − φ, with φ = (k + α) / (n + 2α): k of the n known values are true

    Both outcomes count: an absent word multiplies by 1 − φ. Values must be 0, 1 or bool. In sparse rows, values that
    are not stored are false.

    Parameters
    ----------
    prior : prior of deciban.priors or None, default None
        Pseudo-counts: Laplace, Beta, Dirichlet or Virtual. None: Laplace, with the smoothing of the model.
    threshold : float or None, default None
        With it, any number is a value, and true if it is above.

    Attributes
    ----------
    follows : float or None
        How many pseudo-counts follow the counts of all classes; None if the prior does not say, which makes
        leave-one-out slow.

    See Also
    --------
    deciban.families.Categorical : More than two values.
    deciban.families.Multinomial : How often, not whether.

    Examples
    --------
    >>> import numpy as np
    >>> from deciban.families import Bernoulli, Context
    >>> family = Bernoulli()
    >>> evidence = family.collect(np.array([[1.0], [1.0], [0.0]]), np.zeros(3, np.int32), None, 1)
    >>> np.exp(family.estimate(evidence, Context(("all",), ("x",))).log_p).round(12)
    array([[[0.4, 0.6]]])
    """

    phrase: ClassVar[str] = "probability of true in each class"
    prior: DiscretePrior | None = None
    threshold: float | None = None
    reads: ClassVar[Reads] = "counts"
    reads_numbers: ClassVar[bool] = False

    def collect(self, values: Any, labels: Labels, weights: FloatArray | None, classes: int) -> Moments:
        truth = self._truth(values)
        if not issparse(truth):
            return Moments.of(truth, labels, weights, classes)
        total = Totals.of(truth, labels, weights, classes).sum_x
        rows = Moments.of(np.zeros((len(labels), 1)), labels, weights, classes).count
        return Moments(Sum(np.repeat(rows.words, truth.shape[1], axis=2)), total, total)

    def estimate(self, statistic: Moments, context: Context) -> BernoulliParams:
        counts, pseudo = self._counts(statistic, context)
        log_p = log_frequencies(counts, pseudo)
        seen = counts.max(axis=1)
        both = (seen[:, 0] > 0) & (seen[:, 1] > 0)  # (d) false and true
        log_p = np.where(both[:, np.newaxis], log_p.transpose(1, 0, 2), 0.0)
        return BernoulliParams(log_p, both)

    def _counts(self, statistic: Moments, context: Context) -> tuple[FloatArray, FloatArray]:
        """(d, K, 2) counts and pseudo-counts of false and true."""
        true, total = statistic.sum_x.value, statistic.count.value
        counts = np.stack([(total - true).T, true.T], axis=2)
        return counts, self.prior_in(context).pseudo_counts(counts, (False, True), context.classes)

    def add_log_density(self, params: BernoulliParams, values: Any, out: FloatArray) -> None:
        truth = self._truth(values)
        if issparse(truth):
            self._add_sparse(params, truth, out)
        else:
            self._add_dense(params, truth, out)

    def _add_dense(self, params: BernoulliParams, truth: FloatArray, out: FloatArray) -> None:
        codes = np.where(np.isnan(truth), -1.0, truth).astype(np.int32)
        d = truth.shape[1]
        table = padded_table(params.log_p.reshape(-1, 2 * d))
        _kernels.add_table(codes, np.arange(0, 2 * d + 1, 2, dtype=np.int64), table, out.shape[1], out)

    def _add_sparse(self, params: BernoulliParams, truth: Any, out: FloatArray) -> None:
        """Σ log(1 − φ) over all columns, and log φ − log(1 − φ) for each true one."""
        false, true = params.log_p[:, :, 0], params.log_p[:, :, 1]
        if not np.isfinite(params.log_p).all():  # an impossible outcome: −inf − −inf is NaN
            step = max(1, (1 << 22) // truth.shape[1])
            for start in range(0, truth.shape[0], step):
                self._add_dense(params, truth[start : start + step].toarray(), out[start : start + step])
            return
        out += false.sum(axis=1)
        _kernels.add_sparse(truth.data, truth.indices, truth.indptr, padded_table(true - false), len(false), out)

    def leave_one_out(self, fitted: Fitted[Moments, BernoulliParams], rows: LabelledValues, out: FloatArray) -> None:
        """Without row i, n of its class is smaller by w, and k where it is true: a table for its class, one for others.

        A column is no evidence for the only row in which it is true, or false. With many distinct weights there are no
        such tables, and rows are made dense, some at a time.
        """
        tally = self._tally(fitted.statistic, fitted.context)
        if tally is None:
            super().leave_one_out(fitted, rows, out)
            return
        params, truth = fitted.params, self._truth(rows.values)
        n, d = truth.shape
        for weight, index in equal_weights(rows.weights, n // 2, step=max(1, (1 << 18) // (d * out.shape[1]))):
            part, cells, labels = out[index], truth[index], rows.labels[index]
            if isinstance(weight, float):
                others, own = (self._silenced(params, log_p) for log_p in tally.leave_out(weight))
                add_with_own(replace(self, threshold=None), others, own, cells, labels, part)
            else:
                cells = cells.toarray() if issparse(cells) else cells
                i, j = np.nonzero(~np.isnan(cells) & params.informative)
                log_p = np.zeros((*cells.shape, out.shape[1]))
                log_p[i, j] = tally.at(2 * j + cells[i, j].astype(np.intp)).of_rows(labels[i], weight[i])
                part += np.where(np.isnan(log_p), 0.0, log_p).sum(axis=1)
            if rows.weights is not None:
                out[index] = part

    def _tally(self, statistic: Moments, context: Context) -> Tally | None:
        """False and true of each column; None if the prior has no `follows`."""
        _, pseudo = self._counts(statistic, context)
        if self.follows is None or (pseudo < 0).any():
            return None
        d = len(pseudo)
        false, true = statistic.count - statistic.sum_x, statistic.sum_x
        index = np.arange(d) * 2
        counts = false.scatter(index, 2 * d, axis=1) + true.scatter(index + 1, 2 * d, axis=1)
        present = Sum(np.repeat(statistic.count.words, 2, axis=2))
        a = pseudo.transpose(1, 0, 2).reshape(-1, 2 * d)
        all_pseudo = np.repeat(pseudo.sum(axis=2).T, 2, axis=1)
        return Tally(counts, present, a, all_pseudo, 2, self.follows)

    def _silenced(self, params: BernoulliParams, log_p: FloatArray) -> BernoulliParams:
        """Parameters with log p = 0 where a column is not informative: constant, or missing in all other rows."""
        log_p = log_p.reshape(params.log_p.shape)
        return replace(params, log_p=np.where(params.informative[:, np.newaxis] & ~np.isnan(log_p), log_p, 0.0))

    def recall(self, statistic: Moments) -> LabelledValues:
        counts = np.hstack([(statistic.count - statistic.sum_x).value, statistic.sum_x.value])  # (K, 2) false and true
        labels, truth = np.nonzero(counts)
        false, true = (0.0, 1.0) if self.threshold is None else (self.threshold, np.nextafter(self.threshold, np.inf))
        values = np.where(truth, true, false)[:, np.newaxis]
        return LabelledValues(values, labels.astype(np.int32), counts[labels, truth])

    def natural(self, params: BernoulliParams, context: Context) -> Natural:
        """log φ − log(1 − φ) for T = x, and b = Σ log(1 − φ), which is subtracted again where a value is missing.

        False has no entry of its own, so T(x) of sparse rows is sparse.
        """
        kept = params.informative
        d = len(kept)
        require_finite(params.log_p.reshape(len(params.log_p), 2 * d), np.repeat(np.arange(d), 2), context, self)
        false, true = params.log_p[:, :, 0], params.log_p[:, :, 1]
        above = "" if self.threshold is None else f" > {number(self.threshold)}"
        terms = [Term([name + above for name in names(context)], true - false), Term(absence(context), -false)]
        natural = by_column(kept, terms, false[:, kept].sum(axis=1))
        return replace(natural, absence=np.arange(len(natural.names)) % 2 == 1)

    def sufficient(self, params: BernoulliParams, values: Any) -> Any:
        kept = np.flatnonzero(params.informative)
        truth = self._truth(values)[:, kept]
        if issparse(truth):
            shape = (truth.shape[0], 2 * len(kept))
            return sp.csr_array((truth.data.astype(np.float64), 2 * truth.indices, truth.indptr), shape=shape)
        missing = np.isnan(truth)
        return side_by_side(np.where(missing, 0.0, truth), missing)

    def check(self, values: Any) -> None:
        self._truth(values)

    def allowed(self, values: Any) -> Any:
        if issparse(values) or self.threshold is not None:
            return values
        return np.where((values == 0) | (values == 1) | np.isinf(values), values, np.nan)

    def _truth(self, values: Any) -> Any:
        """Zeros and ones; NaN stays."""
        if issparse(values):
            return self._stored_truth(values)
        if self.threshold is not None:
            forbid_infinite(values)
            return np.where(np.isnan(values), np.nan, values > self.threshold)
        forbid((values != 0) & (values != 1) & ~np.isnan(values), NOT_BINARY)
        return values

    def _stored_truth(self, values: Any) -> Any:
        forbid_stored(values, np.isnan(values.data), "is missing, which Bernoulli cannot tell from 0 in sparse rows")
        if self.threshold is None:
            forbid_stored(values, (values.data != 0) & (values.data != 1), NOT_BINARY)
            return values
        if self.threshold < 0:
            raise DecibanError("a threshold below 0 makes values that sparse rows do not store true: use dense rows")
        forbid_stored(values, np.isinf(values.data), INFINITE)
        truth = (values.data > self.threshold).astype(np.float64)
        return sp.csr_array((truth, values.indices, values.indptr), shape=values.shape)

    def param_shapes(self, params: BernoulliParams, classes: int, columns: int) -> dict[str, Shaped]:
        return {"log_p": (params.log_p, (classes, columns, 2)), "informative": (params.informative, (columns,))}

    def n_parameters(self, params: BernoulliParams) -> int:
        return int(params.informative.size) * len(params.log_p)

    def formula(self, params: BernoulliParams) -> list[Formula]:
        return [formulas.Lookup((j,), (self._code(j),), params.log_p[:, j].T) for j in range(len(params.informative))]

    def linear_formula(self, params: BernoulliParams, weights: FloatArray) -> list[Formula]:
        """A table of false, true and missing."""
        tables: list[Formula] = []
        for i, j in enumerate(np.flatnonzero(params.informative).tolist()):
            true, missing = weights[:, 2 * i], weights[:, 2 * i + 1]
            code = replace(self._code(j), size=3, missing=2)
            tables.append(formulas.Lookup((j,), (code,), np.stack([np.zeros_like(true), true, missing])))
        return tables

    def _code(self, column: int) -> Code:
        """0 if false, 1 if true, which is any number above the threshold."""
        above = 0.5 if self.threshold is None else np.nextafter(self.threshold, np.inf)
        domains: tuple[Domain, ...] = ("binary",) if self.threshold is None else ()
        code: Code = formulas.Code(column, 2, cuts=np.array([above]), domains=domains)
        return code

    def describe(self, params: BernoulliParams, context: Context) -> list[Table]:
        false, true = np.moveaxis(np.exp(params.log_p), 2, 0)
        return self._tables(context, ("false", "true"), false, true)
