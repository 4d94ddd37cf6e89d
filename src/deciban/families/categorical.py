"""Categorical: each column one of a set of values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deciban import _kernels
from deciban.data.batch import MISSING, UNSEEN, Coded
from deciban.families.family import Context, Fitted, Natural, Reads, Shaped, SmoothedFamily, formulas, padded_table
from deciban.families.labelled_values import LabelledValues, rows_of
from deciban.families.loo.tally import Tally, add_with_own, equal_weights
from deciban.families.natural import by_value, indicators, tables_of
from deciban.families.priors import DiscretePrior, log_frequencies
from deciban.plots.figures import counted
from deciban.statistics.counts import Counts
from deciban.table import Table
from deciban.types import FloatArray, Labels, Levels

if TYPE_CHECKING:
    from deciban.export.formulas import Formula


@dataclass(frozen=True)
class CategoricalParams:
    levels: tuple[Levels, ...]
    log_p: tuple[FloatArray, ...]  # (K, V) of each column; (K, V + 1) with an entry for unseen values
    reserve: bool


@dataclass(frozen=True)
class Categorical(SmoothedFamily[Counts, CategoricalParams]):
    """Features with a set of values, with a probability of each value in each class.

    p(x = v|c) = (k_v + α) / (n + αV): k_v of the n values of class c are v; missing ones are not counted

    Values are strings or numbers, as in the table. V is the number of values seen in any class, and one more
    with unseen="reserve".

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
    deciban.families.Bernoulli : Two values.

    Examples
    --------
    >>> import numpy as np
    >>> from deciban.data.batch import Coded
    >>> from deciban.families import Categorical, Context
    >>> family = Categorical()
    >>> rows = Coded(np.array([[0], [1], [1]], np.int32), (("no", "yes"),))
    >>> evidence = family.collect(rows, np.zeros(3, np.int32), None, 1)
    >>> np.exp(family.estimate(evidence, Context(("all",), ("x",))).log_p[0]).round(12)
    array([[0.4, 0.6]])
    """

    prior: DiscretePrior | None = None
    reads: ClassVar[Reads] = "codes"
    reads_numbers: ClassVar[bool] = False

    def collect(self, values: Coded, labels: Labels, weights: FloatArray | None, classes: int) -> Counts:
        return Counts.of(values.codes, values.levels, labels, weights, classes)

    def estimate(self, statistic: Counts, context: Context) -> CategoricalParams:
        columns = range(len(statistic.levels))
        tables = tuple(log_frequencies(*self._counts(statistic, j, context)) for j in columns)
        return CategoricalParams(statistic.levels, tables, context.reserve)

    def _counts(self, statistic: Counts, j: int, context: Context) -> tuple[FloatArray, FloatArray]:
        """(K, V) counts and pseudo-counts of a column, with the reserved entry if there is one."""
        counts = statistic.table.value[:, statistic.offsets[j] : statistic.offsets[j + 1]]
        levels = statistic.levels[j]
        if context.reserve:
            counts, levels = np.hstack([counts, np.zeros((len(counts), 1))]), (*levels, _Unseen())
        return counts, self.prior_in(context).pseudo_counts(counts, levels, context.classes)

    def add_log_density(self, params: CategoricalParams, values: Coded, out: FloatArray) -> None:
        ends = np.cumsum([0, *(table.shape[1] for table in params.log_p)], dtype=np.int64)
        table = padded_table(np.hstack(params.log_p))
        _kernels.add_table(self._codes(params, values), ends, table, out.shape[1], out)

    def leave_one_out(self, fitted: Fitted[Counts, CategoricalParams], rows: LabelledValues, out: FloatArray) -> None:
        """Without row i, k_v and n of its class are smaller by w: a table for the row's own class, one for the others.

        A value that only row i has is unseen when the row is left out.
        """
        values, params = rows.values, fitted.params
        tallies = [self._tally(fitted.statistic, j, fitted.context) for j in range(values.shape[1])]
        known = [tally for tally in tallies if tally is not None]
        if len(known) < len(tallies):
            super().leave_one_out(fitted, rows, out)
            return
        few = values.codes.size // max(1, fitted.statistic.table.shape[1])  # tables that cost less than the rows
        for weight, index in equal_weights(rows.weights, few, step=max(1, (1 << 18) // out.shape[1])):
            part, coded, labels = out[index], rows_of(values, index), rows.labels[index]
            if isinstance(weight, float):
                tables = [_tables(tally, log_p, weight) for tally, log_p in zip(known, params.log_p, strict=True)]
                others, own = (replace(params, log_p=log_p) for log_p in zip(*tables, strict=True))
                add_with_own(self, others, own, coded, labels, part)
            else:
                for tally, column in zip(known, coded.codes.T, strict=True):
                    present = np.flatnonzero(column >= 0)
                    log_p = tally.at(column[present]).of_rows(labels[present], weight[present])
                    part[present] += np.where(np.isnan(log_p), 0.0, log_p)
                self.add_log_density(params, Coded(np.minimum(coded.codes, MISSING), values.levels), part)  # unseen
            if rows.weights is not None:
                out[index] = part

    def _tally(self, statistic: Counts, j: int, context: Context) -> Tally | None:
        """A column from which rows can be left out; None if the prior has no `follows`."""
        _, pseudo = self._counts(statistic, j, context)
        if self.follows is None or (pseudo < 0).any():
            return None
        values = len(statistic.levels[j])
        column = Tally.of(statistic.columns([j]).table, pseudo[:, :values], self.follows)
        if not context.reserve:
            return column
        all_pseudo = pseudo.sum(axis=1, keepdims=True)
        return replace(column, all_pseudo=all_pseudo, values=values + 1, reserved=pseudo[:, values:])

    def recall(self, statistic: Counts) -> LabelledValues:
        labels, codes = np.nonzero(statistic.table.value)
        values = Coded(codes.astype(np.int32)[:, np.newaxis], statistic.levels)
        return LabelledValues(values, labels.astype(np.int32), statistic.table.value[labels, codes])

    def coded_for(self, statistic: Counts, values: Coded) -> Coded:
        code_of = [{level: i for i, level in enumerate(levels)} for levels in statistic.levels]
        codes = values.codes.copy()
        for j, levels in enumerate(values.levels):
            known = np.array([code_of[j].get(level, UNSEEN) for level in levels] + [UNSEEN, MISSING], dtype=np.int32)
            codes[:, j] = known[values.codes[:, j]]  # −1 and −2 are the last two
        return Coded(codes, statistic.levels)

    def natural(self, params: CategoricalParams, context: Context) -> Natural:
        """log p(v|c) for T = 1 if x = v, for every value v."""
        names = []
        for column, levels in zip(context.columns, params.levels, strict=True):
            seen = [f"{column} is missing" if v is None else f"{column} = {v}" for v in levels]
            names.append(seen + [f"{column} = (unseen)"] * params.reserve)
        return by_value(params.log_p, names, self.silent(params), context, self)

    def sufficient(self, params: CategoricalParams, values: Coded) -> Any:
        return indicators(self._codes(params, values), params.log_p, self.silent(params))

    def _codes(self, params: CategoricalParams, values: Coded) -> NDArray[np.int32]:
        """Entries of the tables; unseen values have the last, if one is reserved for them."""
        codes = values.codes
        if params.reserve and (codes == UNSEEN).any():
            codes = np.where(codes == UNSEEN, [len(levels) for levels in params.levels], codes).astype(np.int32)
        return codes

    def silent(self, params: CategoricalParams) -> Sequence[int]:
        return [j for j, levels in enumerate(params.levels) if len(levels) + params.reserve < 2]

    def param_shapes(self, params: CategoricalParams, classes: int, columns: int) -> dict[str, Shaped]:
        sizes = [len(levels) + params.reserve for levels in params.levels]
        return {f"log_p {j}": (table, (classes, sizes[j])) for j, table in enumerate(params.log_p)}

    def n_parameters(self, params: CategoricalParams) -> int:
        return sum(len(table) * max(0, table.shape[1] - 1) for table in params.log_p)

    def formula(self, params: CategoricalParams) -> list[Formula]:
        """A table for each column; an unseen value has the last entry, if one is reserved for it."""
        tables: list[Formula] = []
        for j, (levels, log_p) in enumerate(zip(params.levels, params.log_p, strict=True)):
            unseen = len(levels) if params.reserve else MISSING
            code = formulas.Code(j, log_p.shape[1], levels=levels, unseen=unseen)
            tables.append(formulas.Lookup((j,), (code,), log_p.T))
        return tables

    def linear_formula(self, params: CategoricalParams, weights: FloatArray) -> list[Formula]:
        return self.formula(replace(params, log_p=tables_of(weights, params.log_p, self.silent(params))))

    def describe_column(self, params: CategoricalParams, column: int) -> str:
        return f"a probability for each of {counted(len(params.levels[column]), 'value')}, in each class"

    def describe(self, params: CategoricalParams, context: Context) -> list[Table]:
        tables = []
        for name, levels, log_p in zip(context.columns, params.levels, params.log_p, strict=True):
            names = [("missing" if v is None else str(v)) for v in levels] + ["(unseen)"] * params.reserve
            tables.append(self._table(context, name, names, list(np.exp(log_p).T)))
        return tables


def _tables(tally: Tally, log_p: FloatArray, weight: float) -> list[FloatArray]:
    """The column's two tables (see Tally.leave_out), with the reserved entry; 0 for unseen values: no evidence."""
    reserve = log_p[:, tally.counts.shape[1] :]
    return [np.hstack([np.where(np.isnan(table), 0.0, table), reserve]) for table in tally.leave_out(weight)]


class _Unseen:
    """Stands for all unseen values."""

    def __repr__(self) -> str:
        return "an unseen value, for which unseen='reserve' reserves an entry"
