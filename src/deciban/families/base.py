"""What every family is: which statistic it needs, how it is estimated from it, its log-density."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from deciban.batch import Coded
from deciban.contributions import Line, line_title
from deciban.errors import DecibanError, forbid_infinite, hearing
from deciban.late import issparse
from deciban.statistics.base import Statistic
from deciban.table import Table as Table
from deciban.types import FloatArray, IntArray, Labels, Level, Names

if TYPE_CHECKING:
    from deciban.families.formulas import Formula

S = TypeVar("S", bound=Statistic)
Reads = Literal["numbers", "counts", "codes", "texts", "mixed"]
P = TypeVar("P")

FLOOR = 1e-9  # of a column's pooled variance, mean or range: no class is taken to be narrower than this


@dataclass(frozen=True)
class Context:
    """What an estimate may need beside the evidence."""

    classes: tuple[Level, ...]
    columns: tuple[Level, ...]
    smoothing: float = 1.0
    reserve: bool = False  # keep a place for values never seen
    shrinkage: float = 0.0  # of a family that leaves it to be chosen


@dataclass(frozen=True)
class Recalled:
    """Rows that a statistic remembers: what they hold, their classes, and how often each was there."""

    values: Any
    labels: Labels
    times: FloatArray  # (m) Σ w


@dataclass(frozen=True)
class Natural:
    """log p(x|c) = h(x) + Σ_m η_cm T_m(x) + b_c: a density in its natural parameters.

    h(x) is common to all classes and is left out; so the scores of the classes are linear in T(x), which
    `Family.sufficient` gives.

    >>> from deciban.families import Poisson
    >>> family = Poisson()
    >>> evidence = family.collect(np.array([[1.0], [5.0]]), np.zeros(2, np.int32), None, 1)
    >>> context = Context(("all",), ("calls",))
    >>> natural = family.natural(family.estimate(evidence, context), context)  # −λ and log λ, with λ = 3
    >>> natural.names, natural.eta.round(4)
    (('calls is there', 'calls'), array([[-3.    ,  1.0986]]))
    """

    names: tuple[str, ...]  # (m) what each entry of T(x) is called
    columns: tuple[int, ...]  # (m) the block's column that it belongs to; a product of two belongs to the first
    eta: FloatArray  # (K, m)
    presence: NDArray[np.bool_]  # (m) 1 wherever the cell is there: part of the intercept when nothing is missing
    constant: FloatArray  # (K) b: what does not depend on x at all
    absence: NDArray[np.bool_] | None = None  # (m) entries that are 1 wherever the cell is missing, if there are such


@dataclass(frozen=True)
class TermLine:
    """What a term of documents adds, or (times is None) what all terms that a document does not have add together."""

    name: str
    nats: FloatArray  # (n, K)
    times: IntArray | None = None  # (n) how often each document has the term

    def line(self, columns: tuple[int, ...], names: Names) -> Line:
        return Line(line_title(columns, names, self.name), columns, self.times, last=self.times is None)


class Family(ABC, Generic[S, P]):
    """A density p(x | class) over one block of columns.

    A family is a frozen dataclass of hyper-parameters. A univariate family over d columns is d independent densities;
    a joint one is a single density over all of them. `reads` says what it is given: "numbers" (a float matrix, NaN
    missing), "counts" (the same, or sparse rows), "codes" (a Coded block), "texts" (documents), or "mixed"
    (what its own `reading` makes of numbers and categories side by side).
    """

    reads: ClassVar[Reads] = "numbers"
    joint: ClassVar[bool] = False
    apart: ClassVar[bool] = True  # rows of other classes leave no trace in what is collected of a class

    @abstractmethod
    def collect(self, values: Any, labels: Labels, weights: FloatArray | None, classes: int) -> S:
        """The evidence of some rows. Raises BadCell where a cell is outside the family's domain."""

    def check(self, values: Any) -> None:
        """Raises BadCell where a cell is outside the family's domain: where it is infinite, if nothing else is said."""
        if isinstance(values, np.ndarray):
            forbid_infinite(values)

    def allowed(self, values: Any) -> Any:
        """The values, NaN where a number is outside the family's domain (but for infinite ones, which are errors)."""
        return values

    @abstractmethod
    def estimate(self, statistic: S, context: Context) -> P:
        """Parameters from evidence: here, and only here, enter smoothing, priors and floors."""

    @abstractmethod
    def add_log_density(self, params: P, values: Any, out: FloatArray) -> None:
        """out (n, K) += log p(x | class); a missing cell adds nothing."""

    def leave_one_out(
        self,
        statistic: S,
        params: P,
        context: Context,
        values: Any,
        labels: Labels,
        weights: FloatArray | None,
        out: FloatArray,
    ) -> None:
        """out (n, K) += log p(x_i | class), estimated from all rows but row i, for every row i.

        The rows are among those that were learned; row i is of class labels[i] (which has other rows too) and weight
        weights[i]; `params` are estimated from all of them. Exact. This is for a family that has no closed form: it
        estimates anew for each row that differs, from the statistic alone.
        """
        if self.joint or values.shape[1] == 1:
            self.estimate_without(statistic, context, values, labels, weights, range(len(labels)), out)
            return
        for j in range(values.shape[1]):
            one = replace(context, columns=(context.columns[j],))
            self.leave_one_out(
                statistic.columns([j]), column_of(params, j), one, column_of(values, j), labels, weights, out
            )

    def estimate_without(
        self,
        statistic: S,
        context: Context,
        values: Any,
        labels: Labels,
        weights: FloatArray | None,
        rows: Iterable[int],
        out: FloatArray,
    ) -> None:
        """out[i] += log p(x_i | class) for some rows, each from parameters that are estimated anew without it."""
        known: dict[object, FloatArray] = {}
        for i in rows:
            row = rows_of(values, slice(i, i + 1))
            label, weight = labels[i : i + 1], None if weights is None else weights[i : i + 1]
            key = (label.item(), None if weight is None else weight.item(), content(row))
            if key not in known:
                rest = statistic.without(self.collect(row, label, weight, len(context.classes)))
                with hearing():  # what all rows together deserve was said already
                    params = self.estimate(rest, context)
                known[key] = self.log_density(params, self.coded_for(rest, row), len(context.classes))
            out[i] += known[key][0]

    def width(self, columns: int) -> int:
        """How many columns its statistic has, over so many columns of a table."""
        return columns

    @property
    def smoothed(self) -> bool:
        """Whether the model's smoothing is part of the estimate: for counts, unless a prior takes its place."""
        return False

    def recall(self, statistic: S) -> Recalled | None:
        """The rows of a statistic of one column (or of a joint family) that remembers them all; most do not.

        With them leave-one-out needs no data. Words, in the counts of a Multinomial, are rows of their own.
        """
        return None

    def coded_for(self, statistic: S, values: Any) -> Any:
        """Values in the codes of a statistic that may have lost some of its levels. Only coded columns change."""
        return values

    def natural(self, params: P, context: Context) -> Natural:
        """The density in its natural parameters, which make the model linear. Not every family has them."""
        raise DecibanError(
            f"{named(context.columns)} ({type(self).__name__}): this is not an exponential family, so the model has "
            "no twin; read the columns with another family"
        )

    def sufficient(self, params: P, values: Any) -> Any:
        """(n, m) T(x), float64 or CSR: log p(x|c) = h(x) + Σ_m η_cm T_m(x) + b_c, the rest being in natural().

        A missing cell, and a value never seen, has zeros in all of its entries. (But for Bernoulli's "is missing",
        which lets sparse rows stay sparse.)
        """
        raise DecibanError(f"{type(self).__name__} is not an exponential family: it has no T(x)")

    def parts(self, params: P, values: Any, classes: int) -> list[FloatArray]:
        """The log-density, one (n, K) array for each column (or one for all, if it is not split); they sum to it."""
        if self.joint:
            return [self.log_density(params, values, classes)]
        columns = range(values.shape[1])
        return [self.log_density(column_of(params, j), column_of(values, j), classes) for j in columns]

    def lines(self, params: P, values: Any, classes: int) -> Iterable[TermLine] | None:
        """The log-density of documents, term by term; None for a family that has no terms."""
        return None

    def silent(self, params: P) -> Sequence[int]:
        """Columns that carry no evidence: constant, or never present. Most families note them as not informative."""
        return np.flatnonzero(~np.asarray(getattr(params, "informative", True))).tolist()

    @abstractmethod
    def n_parameters(self, params: P) -> int:
        """How many free parameters were estimated."""

    @abstractmethod
    def describe(self, params: P, context: Context) -> list[Table]:
        """The conditional tables, for people."""

    def formula(self, params: P) -> list[Formula]:
        """The log-density as formulas that need no library; their owners are the columns that `parts` are of."""
        raise DecibanError(f"{type(self).__name__} has no formula: rows are scored in Python alone")

    def linear_formula(self, params: P, weights: FloatArray) -> list[Formula]:
        """Σ_m weights (K, m) · T_m(x), T(x) being `sufficient`, as formulas; a column owns what `natural` says it does.

        A missing cell adds nothing (but for Bernoulli's "is missing").
        """
        raise DecibanError(f"{type(self).__name__} has no linear formula: rows are scored in Python alone")

    def log_density(self, params: P, values: Any, classes: int) -> FloatArray:
        """(n, K) log p(x | class)."""
        out = np.zeros((values.shape[0], classes))
        self.add_log_density(params, values, out)
        return out


def column_of(whole: Any, j: int) -> Any:
    """One column of parameters or values: arrays have columns on their second axis (or their only one)."""
    if issparse(whole):
        return whole[:, [j]].toarray()
    if isinstance(whole, np.ndarray):
        return whole[[j]] if whole.ndim == 1 else whole[:, [j]]
    if isinstance(whole, tuple):
        return (whole[j],)
    if is_dataclass(whole) and not isinstance(whole, type):
        return replace(whole, **{f.name: column_of(getattr(whole, f.name), j) for f in fields(whole)})
    return whole


def rows_of(values: Any, chosen: Any) -> Any:
    """Some rows of a matrix, of sparse rows or of coded columns."""
    return Coded(values.codes[chosen], values.levels) if isinstance(values, Coded) else values[chosen]


def content(values: Any) -> object:
    """What tells one row from another."""
    if issparse(values):
        return values.indices.tobytes(), values.data.tobytes()
    return (values.codes if isinstance(values, Coded) else values).tobytes()


def named(columns: Sequence[Level]) -> str:
    """Columns in a message.

    >>> named(("age",)), named(("age", "size"))
    ("column 'age'", "columns 'age', 'size'")
    """
    shown = ", ".join(map(repr, columns[:10])) + ", …" * (len(columns) > 10)
    return f"column {shown}" if len(columns) == 1 else f"columns {shown}"


def class_rows(context: Context, values: Sequence[FloatArray]) -> tuple[tuple[Any, ...], ...]:
    """One row for each class: its label, then its numbers."""
    return tuple((label, *(float(column[c]) for column in values)) for c, label in enumerate(context.classes))


def padded_table(log_p: FloatArray) -> FloatArray:
    """(K, V) as the kernels want it: (V, K), rows padded to whole vectors of four."""
    classes, values = log_p.shape
    table = np.zeros((values, -(-classes // 4) * 4))
    table[:, :classes] = log_p.T
    return table
