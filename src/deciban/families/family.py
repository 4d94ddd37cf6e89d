"""The interface of families: their statistic, how parameters are estimated from it, and the log-density."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from deciban.contributions import TermLine
from deciban.errors import DecibanError, capture_warnings, forbid_infinite, require
from deciban.families.labelled_values import LabelledValues, columns_of, contents
from deciban.families.priors import DiscretePrior, Laplace
from deciban.lazy import lazy
from deciban.statistics.statistic import Statistic, require_numbers
from deciban.table import Table as Table
from deciban.types import BoolArray, FloatArray, Index, Labels, Level

if TYPE_CHECKING:
    from deciban.export.formulas import Formula

S = TypeVar("S", bound=Statistic)
Reads = Literal["numbers", "counts", "codes", "texts", "mixed"]
P = TypeVar("P")
Shaped = tuple[NDArray[Any], tuple[int, ...]]  # an array, and the shape that it should have

formulas = lazy("deciban.export.formulas")  # only reports need them

FLOOR = 1e-9  # of a column's pooled variance, mean or range: no class is narrower than this


@dataclass(frozen=True)
class Context:
    """What an estimate depends on, apart from the statistic."""

    classes: tuple[Level, ...]
    columns: tuple[Level, ...]
    smoothing: float = 1.0
    reserve: bool = False  # reserve a probability for unseen values
    shrinkage: float = 0.0  # of a family with shrinkage="auto"


@dataclass(frozen=True)
class Fitted(Generic[S, P]):
    """What a family has learned from a block: a statistic, and the parameters estimated from it."""

    statistic: S
    params: P
    context: Context

    def columns(self, index: Index) -> Fitted[S, P]:
        """Only the columns of `index`, in that order; itself, if there is one column only."""
        if len(self.context.columns) == 1:
            return self
        names = tuple(self.context.columns[j] for j in index)
        context = replace(self.context, columns=names)
        return Fitted(self.statistic.columns(index), columns_of(self.params, index), context)


@dataclass(frozen=True)
class Natural:
    """log p(x|c) = h(x) + Σ_m η_cm T_m(x) + b_c: a density in its natural parameters.

    h(x) is common to all classes and is left out, so the scores of the classes are linear in T(x), which
    `Family.sufficient` computes.

    >>> from deciban.families import Poisson
    >>> family = Poisson()
    >>> evidence = family.collect(np.array([[1.0], [5.0]]), np.zeros(2, np.int32), None, 1)
    >>> context = Context(("all",), ("calls",))
    >>> natural = family.natural(family.estimate(evidence, context), context)  # −λ and log λ, with λ = 3
    >>> natural.names, natural.eta.round(4)
    (('calls is there', 'calls'), array([[-3.    ,  1.0986]]))
    """

    names: tuple[str, ...]  # (m) of the entries of T(x)
    columns: tuple[int, ...]  # (m) the column of each entry, in the block; a product of two belongs to the first
    eta: FloatArray  # (K, m)
    presence: BoolArray  # (m) entries that are 1 unless the value is missing, and so part of an intercept
    constant: FloatArray  # (K) b
    absence: BoolArray | None = None  # (m) entries that are 1 if the value is missing

    def check_fields(self) -> None:
        """Raises DecibanError unless the fields have matching shapes; for models from a file."""
        m = len(self.names)
        require_numbers("constant", self.constant, (self.constant.size,))
        require_numbers("eta", self.eta, (len(self.constant), m))
        owned = len(self.columns) == m and min(self.columns, default=0) >= 0
        require(owned, f"{len(self.columns)} owners of {m} entries")
        require(self.presence.shape == (m,), f"presence has shape {self.presence.shape} instead of {(m,)}")
        require(self.absence is None or self.absence.shape == (m,), f"absence is not of shape {(m,)}")


class Family(ABC, Generic[S, P]):
    """A density p(x | class) over one block of columns.

    A family is a frozen dataclass of hyper-parameters. A univariate family over d columns is d independent densities;
    a joint one is a single density over all of them. `reads` is the form of its values: "numbers" (a float matrix, NaN
    missing), "counts" (the same, or sparse rows), "codes" (Coded), "texts" (documents), or "mixed" (as its own
    `reading` encodes numbers and categories).
    """

    reads: ClassVar[Reads] = "numbers"
    joint: ClassVar[bool] = False
    independent_classes: ClassVar[bool] = True  # rows of one class do not change the statistic of another
    reads_numbers: ClassVar[bool] = True  # whether columns of text files are parsed as numbers; else types are inferred
    phrase: ClassVar[str] = ""  # what the density is, for reports

    @abstractmethod
    def collect(self, values: Any, labels: Labels, weights: FloatArray | None, classes: int) -> S:
        """The statistic of some rows; a value outside the family's domain raises BadCell."""

    def check(self, values: Any) -> None:
        """Raises BadCell for a value outside the family's domain: by default, for an infinite one."""
        if isinstance(values, np.ndarray):
            forbid_infinite(values)

    def allowed(self, values: Any) -> Any:
        """The values, NaN where a number is outside the family's domain; infinite ones stay, as they are errors."""
        return values

    @abstractmethod
    def estimate(self, statistic: S, context: Context) -> P:
        """Parameters from a statistic. Smoothing, priors and floors enter only here."""

    @abstractmethod
    def add_log_density(self, params: P, values: Any, out: FloatArray) -> None:
        """out (n, K) += log p(x | class); a missing value adds nothing."""

    def leave_one_out(self, fitted: Fitted[S, P], rows: LabelledValues, out: FloatArray) -> None:
        """out (n, K) += log p(x_i | class), estimated from all training rows except row i, for every row i.

        The rows are training rows, with their training weights, of classes that have other rows too. Exact. This
        default, for families without a closed form, estimates once for each distinct row.
        """
        if self.joint or rows.values.shape[1] == 1:
            self.estimate_without(fitted, rows, range(len(rows)), out)
            return
        for j in range(rows.values.shape[1]):
            self.leave_one_out(fitted.columns([j]), rows.columns([j]), out)

    def estimate_without(self, fitted: Fitted[S, P], rows: LabelledValues, index: Index, out: FloatArray) -> None:
        """out[i] += log p(x_i | class) for each i of `index`, from parameters that are estimated without row i."""
        context, scores = fitted.context, dict[object, FloatArray]()
        for i in index:
            row = rows.take(slice(i, i + 1))
            key = (row.labels.item(), None if row.weights is None else row.weights.item(), contents(row.values))
            if key not in scores:
                removed = self.collect(row.values, row.labels, row.weights, len(context.classes))
                rest = fitted.statistic.subtract_row(removed)
                with capture_warnings():  # the estimate from all rows has already warned
                    params = self.estimate(rest, context)
                scores[key] = self.log_density(params, self.coded_for(rest, row.values), len(context.classes))
            out[i] += scores[key][0]

    def width(self, columns: int) -> int:
        """The number of columns that the statistic of this many features has."""
        return columns

    @property
    def smoothed(self) -> bool:
        """Whether estimates depend on the model's smoothing."""
        return False

    def recall(self, statistic: S) -> LabelledValues | None:
        """The distinct training rows with their weights, if the statistic of one column (or a joint one) has them all.

        Leave-one-out then needs no data. For a Multinomial each word is a row.
        """
        return None

    def coded_for(self, statistic: S, values: Any) -> Any:
        """Coded values with the codes of a statistic, which may have fewer levels; other values unchanged."""
        return values

    def natural(self, params: P, context: Context) -> Natural:
        """The density in its natural parameters; an error for a family that is not exponential."""
        raise DecibanError(
            f"{named(context.columns)} ({type(self).__name__}): this is not an exponential family, so the model has "
            "no linear form; use another family for these columns"
        )

    def sufficient(self, params: P, values: Any) -> Any:
        """(n, m) T(x), float64 or CSR: log p(x|c) = h(x) + Σ_m η_cm T_m(x) + b_c, with η and b of `natural`.

        Entries of a missing or unseen value are 0, except Bernoulli's "is missing", which keeps sparse rows sparse.
        """
        raise DecibanError(f"{type(self).__name__} is not an exponential family: it has no T(x)")

    def parts(self, params: P, values: Any, classes: int) -> list[FloatArray]:
        """(n, K) arrays that sum to the log-density: one for each column, or one for all if it cannot be split."""
        if self.joint:
            return [self.log_density(params, values, classes)]
        columns = range(values.shape[1])
        return [self.log_density(columns_of(params, [j]), columns_of(values, [j]), classes) for j in columns]

    def lines(self, params: P, values: Any, classes: int) -> Iterable[TermLine] | None:
        """The log-density of documents, term by term; None for a family that has no terms."""
        return None

    def silent(self, params: P) -> Sequence[int]:
        """Columns without evidence: constant, or always missing."""
        return np.flatnonzero(~np.asarray(getattr(params, "informative", True))).tolist()

    def param_shapes(self, params: P, classes: int, columns: int) -> dict[str, Shaped]:
        """Arrays among the parameters, with the shapes that they must have in a model file."""
        return {}

    @abstractmethod
    def n_parameters(self, params: P) -> int:
        """The number of free parameters."""

    @abstractmethod
    def describe(self, params: P, context: Context) -> list[Table]:
        """The parameters as tables of a summary."""

    def _tables(self, context: Context, header: Sequence[str], *values: FloatArray) -> list[Table]:
        """A table for each column: values (K, d) by class."""
        columns = enumerate(context.columns)
        return [self._table(context, name, header, [array[:, j] for array in values]) for j, name in columns]

    def _table(self, context: Context, column: Level, header: Sequence[str], values: Sequence[FloatArray]) -> Table:
        return Table(f"{column} ({type(self).__name__})", ("class", *header), class_rows(context, values))

    def describe_column(self, params: P, column: int) -> str:
        """What the density of a column is, for reports."""
        return self.phrase or f"{type(self).__name__} in each class"

    def formula(self, params: P) -> list[Formula]:
        """The log-density as formulas that need no library; their owners are the columns of `parts`."""
        raise DecibanError(f"{type(self).__name__} has no formula: rows can be scored in Python only")

    def linear_formula(self, params: P, weights: FloatArray) -> list[Formula]:
        """Σ_m weights (K, m) · T_m(x) as formulas, with T(x) of `sufficient`, owned by the columns of `natural`."""
        raise DecibanError(f"{type(self).__name__} has no linear formula: rows can be scored in Python only")

    def log_density(self, params: P, values: Any, classes: int) -> FloatArray:
        """(n, K) log p(x | class)."""
        out = np.zeros((values.shape[0], classes))
        self.add_log_density(params, values, out)
        return out


class SmoothedFamily(Family[S, P]):
    """A family of counts: pseudo-counts are added by its prior or, if it has none, by the model's smoothing."""

    prior: DiscretePrior | None

    @property
    def smoothed(self) -> bool:
        return self.prior is None

    def prior_in(self, context: Context) -> DiscretePrior:
        """The prior of the family, or Laplace(smoothing of the model)."""
        return self.prior or Laplace(context.smoothing)

    @property
    def follows(self) -> float | None:
        """How many pseudo-counts follow the counts (see DiscretePrior); None if the prior does not define it."""
        return getattr(self.prior or Laplace(), "follows", None)


def named(columns: Sequence[Level]) -> str:
    """Columns as a message names them.

    >>> named(("age",)), named(("age", "size"))
    ("column 'age'", "columns 'age', 'size'")
    """
    shown = ", ".join(map(repr, columns[:10])) + ", …" * (len(columns) > 10)
    return f"column {shown}" if len(columns) == 1 else f"columns {shown}"


def class_rows(context: Context, values: Sequence[FloatArray]) -> tuple[tuple[Any, ...], ...]:
    """One row for each class: its label, then its numbers."""
    return tuple((label, *(float(column[c]) for column in values)) for c, label in enumerate(context.classes))


def padded_table(log_p: FloatArray) -> FloatArray:
    """(K, V) in the layout of the kernels: (V, K), rows padded to multiples of four."""
    classes, values = log_p.shape
    table = np.zeros((values, -(-classes // 4) * 4))
    table[:, :classes] = log_p.T
    return table
