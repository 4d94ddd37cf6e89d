"""Multinomial: a block of columns that count words (or anything) in a document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp

from deciban import _kernels
from deciban.errors import forbid, forbid_stored
from deciban.families.base import Context, Family, Natural, Table, padded_table
from deciban.families.natural import Term, by_column, plain, require_finite
from deciban.families.priors import DiscretePrior, Laplace, log_frequencies
from deciban.statistics.totals import NOT_A_COUNT, Totals
from deciban.types import FloatArray, Labels


@dataclass(frozen=True)
class MultinomialParams:
    log_p: FloatArray  # (K, V)


@dataclass(frozen=True)
class Multinomial(Family[Totals, MultinomialParams]):
    """log p(x|c) = Σ_v x_v log θ_v, with θ_v = (k_v + α) / (all words of class c + αV).

    The event model: a document is a sequence of words drawn from the class's vocabulary, so its length may vary.
    The number of orders in which the words could have come is the same for every class and is left out.
    Takes a block of count columns, or sparse rows; fractions (tf-idf) are allowed, negative counts are not.

    >>> import numpy as np
    >>> family = Multinomial()
    >>> evidence = family.collect(np.array([[2.0, 0.0], [1.0, 1.0]]), np.zeros(2, np.int32), None, 1)
    >>> np.exp(family.estimate(evidence, Context(("all",), ("a", "b"))).log_p).round(12)
    array([[0.66666667, 0.33333333]])
    """

    prior: DiscretePrior | None = None
    reads: ClassVar[Literal["numbers", "counts", "codes"]] = "counts"
    joint: ClassVar[bool] = True

    def collect(self, values: Any, labels: Labels, weights: FloatArray | None, classes: int) -> Totals:
        return Totals.of(values, labels, weights, classes)

    def estimate(self, statistic: Totals, context: Context) -> MultinomialParams:
        counts = statistic.sum_x.value
        prior = self.prior or Laplace(context.smoothing)
        return MultinomialParams(log_frequencies(counts, prior.pseudo_counts(counts, context.columns, context.classes)))

    def add_log_density(self, params: MultinomialParams, values: Any, out: FloatArray) -> None:
        self._check(values)
        if sp.issparse(values):
            _kernels.add_sparse(
                values.data, values.indices, values.indptr, padded_table(params.log_p), len(params.log_p), out
            )
        else:
            log_p = np.ascontiguousarray(params.log_p)
            _kernels.add_linear(values, log_p, np.zeros_like(log_p), out)

    def natural(self, params: MultinomialParams, context: Context) -> Natural:
        """log θ_v: of x_v."""
        require_finite(params.log_p, range(params.log_p.shape[1]), context, self)
        return by_column(np.ones(params.log_p.shape[1], np.bool_), [Term(plain(context), params.log_p)])

    def sufficient(self, params: MultinomialParams, values: Any) -> Any:
        self._check(values)
        if sp.issparse(values):
            counts = np.nan_to_num(values.data.astype(np.float64), nan=0.0)
            return sp.csr_array((counts, values.indices, values.indptr), shape=values.shape)
        return np.nan_to_num(np.asarray(values, dtype=np.float64), nan=0.0)

    def _check(self, values: Any) -> None:
        if sp.issparse(values):
            forbid_stored(values, (values.data < 0) | np.isinf(values.data), NOT_A_COUNT)
        else:
            forbid((values < 0) | np.isinf(values), NOT_A_COUNT)

    def parts(self, params: MultinomialParams, values: Any, classes: int) -> list[FloatArray]:
        dense = values.toarray() if sp.issparse(values) else values
        present = np.where(np.isnan(dense), 0.0, dense)
        with np.errstate(invalid="ignore"):
            return [
                np.where(present[:, [j]] == 0, 0.0, present[:, [j]] * params.log_p[:, j]) for j in range(dense.shape[1])
            ]

    def n_parameters(self, params: MultinomialParams) -> int:
        return len(params.log_p) * (int(params.log_p.shape[1]) - 1)

    def describe(self, params: MultinomialParams, context: Context) -> list[Table]:
        rows = tuple((name, *np.exp(params.log_p[:, j]).tolist()) for j, name in enumerate(context.columns))
        return [Table("Multinomial", ("word", *map(str, context.classes)), rows)]
