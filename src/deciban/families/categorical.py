"""Categorical: each column one of a set of values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.batch import MISSING, UNSEEN, Coded
from deciban.families.base import Context, Family, Natural, Table, class_rows, padded_table
from deciban.families.natural import by_value, indicators
from deciban.families.priors import DiscretePrior, Laplace, log_frequencies
from deciban.statistics.counts import Counts
from deciban.types import FloatArray, Labels, Levels


@dataclass(frozen=True)
class CategoricalParams:
    levels: tuple[Levels, ...]
    log_p: tuple[FloatArray, ...]  # (K, V) of each column; (K, V + 1) with a place for values never seen
    reserve: bool


@dataclass(frozen=True)
class Categorical(Family[Counts, CategoricalParams]):
    """p(x = v|c) = (k_v + α) / (n + αV): of the n cells of class c present in the column, k_v hold v.

    Values are strings or numbers as they stand in the table. V is the number of values seen in any class; where the
    model has unseen="reserve", one more. α is the model's smoothing, or `prior` says otherwise.

    >>> import numpy as np
    >>> family = Categorical()
    >>> rows = Coded(np.array([[0], [1], [1]], np.int32), (("no", "yes"),))
    >>> evidence = family.collect(rows, np.zeros(3, np.int32), None, 1)
    >>> np.exp(family.estimate(evidence, Context(("all",), ("x",))).log_p[0]).round(12)
    array([[0.4, 0.6]])
    """

    prior: DiscretePrior | None = None
    reads: ClassVar[Literal["numbers", "counts", "codes"]] = "codes"

    def collect(self, values: Coded, labels: Labels, weights: FloatArray | None, classes: int) -> Counts:
        return Counts.of(values.codes, values.levels, labels, weights, classes)

    def estimate(self, statistic: Counts, context: Context) -> CategoricalParams:
        prior = self.prior or Laplace(context.smoothing)
        tables = []
        for j, levels in enumerate(statistic.levels):
            counts = statistic.table.value[:, statistic.offsets[j] : statistic.offsets[j + 1]]
            if context.reserve:
                counts, levels = np.hstack([counts, np.zeros((len(counts), 1))]), (*levels, _Never())
            tables.append(log_frequencies(counts, prior.pseudo_counts(counts, levels, context.classes)))
        return CategoricalParams(statistic.levels, tuple(tables), context.reserve)

    def add_log_density(self, params: CategoricalParams, values: Coded, out: FloatArray) -> None:
        ends = np.cumsum([0, *(table.shape[1] for table in params.log_p)], dtype=np.int64)
        table = padded_table(np.hstack(params.log_p))
        _kernels.add_table(self._codes(params, values), ends, table, out.shape[1], out)

    def coded_for(self, statistic: Counts, values: Coded) -> Coded:
        place = [{level: i for i, level in enumerate(levels)} for levels in statistic.levels]
        codes = values.codes.copy()
        for j, levels in enumerate(values.levels):
            known = np.array([place[j].get(level, UNSEEN) for level in levels] + [UNSEEN, MISSING], dtype=np.int32)
            codes[:, j] = known[values.codes[:, j]]  # −1 and −2 are the last two
        return Coded(codes, statistic.levels)

    def natural(self, params: CategoricalParams, context: Context) -> Natural:
        """log p(v|c): of whether x = v, for every value v."""
        names = []
        for column, levels in zip(context.columns, params.levels, strict=True):
            seen = [f"{column} is missing" if v is None else f"{column} = {v}" for v in levels]
            names.append(seen + [f"{column} = (unseen)"] * params.reserve)
        return by_value(params.log_p, names, self.silent(params), context, self)

    def sufficient(self, params: CategoricalParams, values: Coded) -> Any:
        return indicators(self._codes(params, values), params.log_p, self.silent(params))

    def _codes(self, params: CategoricalParams, values: Coded) -> NDArray[np.int32]:
        """Places in the tables; values never seen have the last, if one is kept for them."""
        codes = values.codes
        if params.reserve and (codes == UNSEEN).any():
            codes = np.where(codes == UNSEEN, [len(levels) for levels in params.levels], codes).astype(np.int32)
        return codes

    def silent(self, params: CategoricalParams) -> Sequence[int]:
        return [j for j, levels in enumerate(params.levels) if len(levels) + params.reserve < 2]

    def n_parameters(self, params: CategoricalParams) -> int:
        return sum(len(table) * max(0, table.shape[1] - 1) for table in params.log_p)

    def describe(self, params: CategoricalParams, context: Context) -> list[Table]:
        tables = []
        for name, levels, log_p in zip(context.columns, params.levels, params.log_p, strict=True):
            names = [("missing" if v is None else str(v)) for v in levels] + ["(unseen)"] * params.reserve
            columns: list[Any] = list(np.exp(log_p).T)
            tables.append(Table(f"{name} (Categorical)", ("class", *names), class_rows(context, columns)))
        return tables


class _Never:
    """The value that stands for all that were never seen."""

    def __repr__(self) -> str:
        return "a value never seen, which unseen='reserve' keeps a place for"
