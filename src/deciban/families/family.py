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
    """What an estimate depends on, apart from the statistic.

    Parameters
    ----------
    classes : tuple
        The classes (K).
    columns : tuple
        The names of the columns (d).
    smoothing : float, default 1.0
        The smoothing of the model.
    reserve : bool, default False
        Whether a probability is reserved for unseen values.
    shrinkage : float, default 0.0
        That of a family with shrinkage="auto".

    See Also
    --------
    deciban.families.Family.estimate : Takes it.

    Examples
    --------
    >>> Context(("no", "yes"), ("age",), smoothing=0.5).smoothing
    0.5
    """

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
    """A density in its natural parameters, from which the equal linear model is made.

    log p(x|c) = h(x) + Σ_m η_cm T_m(x) + b_c

    h(x) is common to all classes and is left out, so the scores of the classes are linear in T(x), which
    `Family.sufficient` computes.

    Parameters
    ----------
    names : tuple of str
        The names of the m entries of T(x).
    columns : tuple of int
        The column of each entry, in the block; a product of two belongs to the first.
    eta : array of shape (K, m)
        The natural parameters.
    presence : array of shape (m,)
        Entries that are 1 unless the value is missing, and so part of an intercept.
    constant : array of shape (K,)
        b.
    absence : array of shape (m,) or None, default None
        Entries that are 1 if the value is missing.

    See Also
    --------
    deciban.families.Family.natural : Returns it.

    Examples
    --------
    >>> import numpy as np
    >>> from deciban.families import Context, Poisson
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
        """Check that the fields have matching shapes; for models from a file.

        Raises
        ------
        DecibanError
            If they do not.
        """
        m = len(self.names)
        require_numbers("constant", self.constant, (self.constant.size,))
        require_numbers("eta", self.eta, (len(self.constant), m))
        owned = len(self.columns) == m and min(self.columns, default=0) >= 0
        require(owned, f"{len(self.columns)} owners of {m} entries")
        require(self.presence.shape == (m,), f"presence has shape {self.presence.shape} instead of {(m,)}")
        require(self.absence is None or self.absence.shape == (m,), f"absence is not of shape {(m,)}")


class Family(ABC, Generic[S, P]):
    """A density p(x | class) over one block of columns: what all families do.

    A family is a frozen dataclass of hyper-parameters. A univariate family over d columns is d independent densities; a
    joint one is a single density over all of them. Pass one to `NaiveBayes(families=...)`; the methods are what models
    call. To write a new one, define `collect`, `estimate`, `add_log_density`, `n_parameters` and `describe`.

    Attributes
    ----------
    reads : str
        The form of its values: "numbers" (a float matrix, NaN missing), "counts" (the same, or sparse rows), "codes"
        (Coded), "texts" (documents), or "mixed" (as its own `reading` encodes numbers and categories).
    joint : bool
        Whether it is one density over all columns.
    independent_classes : bool
        Whether rows of one class leave the statistics of the others as they are.
    reads_numbers : bool
        Whether columns of text files are parsed as numbers; else types are inferred.
    phrase : str
        What the density is, for reports.
    smoothed : bool
        Whether estimates depend on the model's smoothing.

    See Also
    --------
    deciban.NaiveBayes : Takes families by column.

    Examples
    --------
    >>> import deciban as db
    >>> X, y = [[0.2, 3], [1.5, 0], [0.1, 5], [2.5, 1]], ["a", "b", "a", "b"]
    >>> families = {0: db.families.Exponential(), 1: db.families.Poisson()}
    >>> db.NaiveBayes(families).fit(X, y).predict([[0.3, 4]])
    array(['a'], dtype='<U1')
    """

    reads: ClassVar[Reads] = "numbers"
    joint: ClassVar[bool] = False
    independent_classes: ClassVar[bool] = True  # rows of one class do not change the statistic of another
    reads_numbers: ClassVar[bool] = True  # whether columns of text files are parsed as numbers; else types are inferred
    phrase: ClassVar[str] = ""  # what the density is, for reports

    @abstractmethod
    def collect(self, values: Any, labels: Labels, weights: FloatArray | None, classes: int) -> S:
        """The statistic of some rows.

        Parameters
        ----------
        values : array, sparse rows, Coded or Texts
            (n, d) values in the form that the family reads.
        labels : array of shape (n,)
            The position of each row's class.
        weights : array of shape (n,) or None
            The weight of each row; None: 1.
        classes : int
            K, the number of classes.

        Returns
        -------
        Statistic
            Raw evidence, which adds and subtracts.

        Raises
        ------
        BadCell
            For a value outside the family's domain.
        """

    def check(self, values: Any) -> None:
        """Check that values are in the family's domain: by default, that none is infinite.

        Parameters
        ----------
        values : array, sparse rows, Coded or Texts
            (n, d) values in the form that the family reads.

        Raises
        ------
        BadCell
            For a value outside the domain.
        """
        if isinstance(values, np.ndarray):
            forbid_infinite(values)

    def allowed(self, values: Any) -> Any:
        """The values, NaN where a number is outside the family's domain; infinite ones stay, as they are errors.

        Parameters
        ----------
        values : array, sparse rows, Coded or Texts
            (n, d) values in the form that the family reads.

        Returns
        -------
        array
            The same shape.
        """
        return values

    @abstractmethod
    def estimate(self, statistic: S, context: Context) -> P:
        """Estimate parameters from a statistic. Smoothing, priors and floors enter only here.

        Parameters
        ----------
        statistic : Statistic
            The sum of what `collect` returned.
        context : Context
            Classes, columns and smoothing.

        Returns
        -------
        parameters
            A frozen dataclass of arrays.
        """

    @abstractmethod
    def add_log_density(self, params: P, values: Any, out: FloatArray) -> None:
        """Add log p(x | class) to scores; a missing value adds nothing.

        Parameters
        ----------
        params : parameters
            What `estimate` returned.
        values : array, sparse rows, Coded or Texts
            (n, d) values in the form that the family reads.
        out : array of shape (n, K)
            What is added to.
        """

    def leave_one_out(self, fitted: Fitted[S, P], rows: LabelledValues, out: FloatArray) -> None:
        """Add log p(x_i | class), estimated from all training rows except row i, to the scores of every row i.

        Exact. This default, for families without a closed form, estimates once for each distinct row.

        Parameters
        ----------
        fitted : Fitted
            The statistic of all training rows, and the parameters from it.
        rows : LabelledValues
            Training rows, with their training weights, of classes that have other rows too.
        out : array of shape (n, K)
            What is added to.
        """
        if self.joint or rows.values.shape[1] == 1:
            self.estimate_without(fitted, rows, range(len(rows)), out)
            return
        for j in range(rows.values.shape[1]):
            self.leave_one_out(fitted.columns([j]), rows.columns([j]), out)

    def estimate_without(self, fitted: Fitted[S, P], rows: LabelledValues, index: Index, out: FloatArray) -> None:
        """Add log p(x_i | class), from parameters that are estimated without row i, to the scores of some rows.

        Parameters
        ----------
        fitted : Fitted
            The statistic of all training rows, and the parameters from it.
        rows : LabelledValues
            Training rows.
        index : sequence of int
            Which of them.
        out : array of shape (n, K)
            What is added to.
        """
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
        """The number of columns of the statistic.

        Parameters
        ----------
        columns : int
            The number of features.

        Returns
        -------
        int
            By default as many.
        """
        return columns

    @property
    def smoothed(self) -> bool:
        """Whether estimates depend on the model's smoothing."""
        return False

    def recall(self, statistic: S) -> LabelledValues | None:
        """The distinct training rows with their weights, if the statistic of one column (or a joint one) has them all.

        Leave-one-out then needs no data. For a Multinomial each word is a row.

        Parameters
        ----------
        statistic : Statistic
            Of all training rows.

        Returns
        -------
        LabelledValues or None
            None if rows cannot be recalled.
        """
        return None

    def coded_for(self, statistic: S, values: Any) -> Any:
        """Coded values with the codes of a statistic, which may have fewer levels.

        Parameters
        ----------
        statistic : Statistic
            Whose levels count.
        values : array, sparse rows, Coded or Texts
            (n, d) values in the form that the family reads.

        Returns
        -------
        values
            Others than coded ones are unchanged.
        """
        return values

    def natural(self, params: P, context: Context) -> Natural:
        """The density in its natural parameters.

        Parameters
        ----------
        params : parameters
            What `estimate` returned.
        context : Context
            Classes and columns.

        Returns
        -------
        Natural
            η and b of each class.

        Raises
        ------
        DecibanError
            If the family is not exponential, or a probability is 0.
        """
        raise DecibanError(
            f"{named(context.columns)} ({type(self).__name__}): this is not an exponential family, so the model has "
            "no linear form; use another family for these columns"
        )

    def sufficient(self, params: P, values: Any) -> Any:
        """The sufficient statistics T(x) of each row.

        log p(x|c) = h(x) + Σ_m η_cm T_m(x) + b_c, with η and b of `natural`

        Entries of a missing or unseen value are 0, except Bernoulli's "is missing", which keeps sparse rows sparse.

        Parameters
        ----------
        params : parameters
            What `estimate` returned.
        values : array, sparse rows, Coded or Texts
            (n, d) values in the form that the family reads.

        Returns
        -------
        array of shape (n, m)
            float64, or compressed sparse rows.

        Raises
        ------
        DecibanError
            If the family is not exponential.
        """
        raise DecibanError(f"{type(self).__name__} is not an exponential family: it has no T(x)")

    def parts(self, params: P, values: Any, classes: int) -> list[FloatArray]:
        """The log-density by column.

        Parameters
        ----------
        params : parameters
            What `estimate` returned.
        values : array, sparse rows, Coded or Texts
            (n, d) values in the form that the family reads.
        classes : int
            K, the number of classes.

        Returns
        -------
        list of array of shape (n, K)
            They sum to the log-density: one for each column, or one for all if it cannot be split.
        """
        if self.joint:
            return [self.log_density(params, values, classes)]
        columns = range(values.shape[1])
        return [self.log_density(columns_of(params, [j]), columns_of(values, [j]), classes) for j in columns]

    def lines(self, params: P, values: Any, classes: int) -> Iterable[TermLine] | None:
        """The log-density of documents, term by term.

        Parameters
        ----------
        params : parameters
            What `estimate` returned.
        values : array, sparse rows, Coded or Texts
            (n, d) values in the form that the family reads.
        classes : int
            K, the number of classes.

        Returns
        -------
        iterable of TermLine, or None
            None for a family that has no terms.
        """
        return None

    def silent(self, params: P) -> Sequence[int]:
        """Columns without evidence: constant, or always missing.

        Parameters
        ----------
        params : parameters
            What `estimate` returned.

        Returns
        -------
        sequence of int
            Their positions.
        """
        return np.flatnonzero(~np.asarray(getattr(params, "informative", True))).tolist()

    def param_shapes(self, params: P, classes: int, columns: int) -> dict[str, Shaped]:
        """Arrays among the parameters, with the shapes that they must have in a model file.

        Parameters
        ----------
        params : parameters
            What `estimate` returned.
        classes : int
            K, the number of classes.
        columns : int
            d, the number of columns.

        Returns
        -------
        dict of str to tuple
            An array and a shape by name.
        """
        return {}

    @abstractmethod
    def n_parameters(self, params: P) -> int:
        """The number of free parameters.

        Parameters
        ----------
        params : parameters
            What `estimate` returned.

        Returns
        -------
        int
            Of all classes together.
        """

    @abstractmethod
    def describe(self, params: P, context: Context) -> list[Table]:
        """The parameters as tables of a summary.

        Parameters
        ----------
        params : parameters
            What `estimate` returned.
        context : Context
            Classes and columns.

        Returns
        -------
        list of Table
            One for each column, or one for all.
        """

    def _tables(self, context: Context, header: Sequence[str], *values: FloatArray) -> list[Table]:
        """A table for each column: values (K, d) by class."""
        columns = enumerate(context.columns)
        return [self._table(context, name, header, [array[:, j] for array in values]) for j, name in columns]

    def _table(self, context: Context, column: Level, header: Sequence[str], values: Sequence[FloatArray]) -> Table:
        return Table(f"{column} ({type(self).__name__})", ("class", *header), class_rows(context, values))

    def describe_column(self, params: P, column: int) -> str:
        """What the density of a column is, for reports.

        Parameters
        ----------
        params : parameters
            What `estimate` returned.
        column : int
            The position of the column.

        Returns
        -------
        str
            A phrase.
        """
        return self.phrase or f"{type(self).__name__} in each class"

    def formula(self, params: P) -> list[Formula]:
        """The log-density as formulas that need no library.

        Parameters
        ----------
        params : parameters
            What `estimate` returned.

        Returns
        -------
        list of Formula
            Their owners are the columns of `parts`.

        Raises
        ------
        DecibanError
            If the family has no formula.
        """
        raise DecibanError(f"{type(self).__name__} has no formula: rows can be scored in Python only")

    def linear_formula(self, params: P, weights: FloatArray) -> list[Formula]:
        """Σ_m weights · T_m(x) as formulas, with T(x) of `sufficient`.

        Parameters
        ----------
        params : parameters
            What `estimate` returned.
        weights : array of shape (K, m)
            The coefficients of T(x).

        Returns
        -------
        list of Formula
            Owned by the columns of `natural`.

        Raises
        ------
        DecibanError
            If the family has no linear formula.
        """
        raise DecibanError(f"{type(self).__name__} has no linear formula: rows can be scored in Python only")

    def log_density(self, params: P, values: Any, classes: int) -> FloatArray:
        """log p(x | class) of each row.

        Parameters
        ----------
        params : parameters
            What `estimate` returned.
        values : array, sparse rows, Coded or Texts
            (n, d) values in the form that the family reads.
        classes : int
            K, the number of classes.

        Returns
        -------
        array of shape (n, K)
            In nats.
        """
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
        """The prior of the family, or Laplace with the smoothing of the model.

        Parameters
        ----------
        context : Context
            With the smoothing.

        Returns
        -------
        DiscretePrior
            What gives pseudo-counts.
        """
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
