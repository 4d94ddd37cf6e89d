"""Natural parameters: the entries of T(x), their names and their origins, for all families."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import ceil, floor, log10
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban.errors import TOO_LARGE, DecibanError, forbid, forbid_infinite
from deciban.families.family import Context, Family, Natural
from deciban.lazy import lazy
from deciban.types import BoolArray, FloatArray

sp = lazy("scipy.sparse")

FAR = 30.0  # 0 is replaced if the means are this many times as many standard deviations from it as from another origin
FEW = 100  # indicators; T(x) of a block with more is sparse
LARGEST = 2.0**500  # numbers whose squares can be added


@dataclass(frozen=True)
class Term:
    """One entry of T(x) for each column."""

    names: list[str]  # (d)
    eta: FloatArray  # (K, d)
    presence: bool = False


def by_column(informative: BoolArray, terms: Sequence[Term], constant: FloatArray | None = None) -> Natural:
    """Natural parameters of univariate densities: all terms of the first informative column, then of the next."""
    kept = np.flatnonzero(informative)
    names = tuple(term.names[j] for j in kept for term in terms)
    columns = tuple(np.repeat(kept, len(terms)).tolist())
    eta = side_by_side(*(term.eta[:, kept] for term in terms))
    presence = np.tile(np.array([term.presence for term in terms], dtype=np.bool_), len(kept))
    return Natural(names, columns, eta, presence, np.zeros(len(eta)) if constant is None else constant)


def side_by_side(*parts: NDArray[Any]) -> FloatArray:
    """(n, d) arrays interleaved to (n, d·parts): the first columns of all of them, then the second.

    >>> side_by_side(np.array([[1, 2]]), np.array([[10, 20]]))
    array([[ 1., 10.,  2., 20.]])
    """
    n, d = parts[0].shape
    return np.stack(parts, axis=2).astype(np.float64).reshape(n, d * len(parts))


def squarable(values: NDArray[Any]) -> FloatArray:
    """Values as doubles; forbids those that are infinite or whose squares may overflow."""
    x = np.asarray(values, dtype=np.float64)
    forbid_infinite(x)
    forbid(np.abs(x) > LARGEST, TOO_LARGE)
    return x


def powers(values: NDArray[Any], degree: int, origin: FloatArray | float = 0.0) -> FloatArray:
    """(n, d·(1 + degree)) 1, x − o, (x − o)², … of each column; zeros where the value is missing.

    >>> powers(np.array([[3.0, np.nan]]), 2)
    array([[1., 3., 9., 0., 0., 0.]])
    """
    missing = np.isnan(values)
    x = np.where(missing, 0.0, values.astype(np.float64) - origin)
    return side_by_side(~missing, *(x**k for k in range(1, degree + 1)))


def by_value(
    log_p: Sequence[FloatArray],
    names: Sequence[Sequence[str]],
    silent: Sequence[int],
    context: Context,
    family: Family[Any, Any],
) -> Natural:
    """Tables of log p (K, V), one for each column: an entry for each value of the columns that are not silent."""
    kept = [j for j in range(len(log_p)) if j not in set(silent)]
    columns = [j for j in kept for _ in names[j]]
    eta = np.hstack([np.zeros((len(context.classes), 0)), *(log_p[j] for j in kept)])
    require_finite(eta, columns, context, family)
    entries = tuple(name for j in kept for name in names[j])
    return Natural(entries, tuple(columns), eta, np.zeros(len(columns), np.bool_), np.zeros(len(eta)))


def indicators(codes: NDArray[np.int32], log_p: Sequence[FloatArray], silent: Sequence[int]) -> Any:
    """(n, m) whether x = v, for the entries of `by_value`; 0 for a code outside its table."""
    sizes = np.array([table.shape[1] for table in log_p], dtype=np.int64)
    sizes[list(silent)] = 0
    first = np.cumsum(sizes) - sizes
    known = (codes >= 0) & (codes < sizes)
    ends = np.concatenate([[0], np.cumsum(known.sum(axis=1))])
    shape = (len(codes), int(sizes.sum()))
    sparse = sp.csr_array((np.ones(int(ends[-1])), (codes + first)[known], ends), shape=shape)
    return sparse.toarray() if shape[1] <= FEW else sparse


def tables_of(weights: FloatArray, log_p: Sequence[FloatArray], silent: Sequence[int]) -> tuple[FloatArray, ...]:
    """Weights (K, m) of the entries of `by_value`, as tables (K, V) of the columns; 0 for silent ones."""
    silent_columns, tables, first = set(silent), [], 0
    for j, table in enumerate(log_p):
        size = 0 if j in silent_columns else table.shape[1]
        tables.append(weights[:, first : first + size] if size else np.zeros((len(weights), table.shape[1])))
        first += size
    return tuple(tables)


def require_finite(log_p: FloatArray, columns: Sequence[int] | NDArray[Any], context: Context, family: Any) -> None:
    """Raises DecibanError, which names the column, if a log p (K, m) of the entries of `columns` is −inf."""
    bad = np.isneginf(log_p).any(axis=0)
    if bad.any():
        name = context.columns[columns[int(np.argmax(bad))]]
        raise DecibanError(
            f"column {name!r} ({type(family).__name__}): a probability is 0, which has no finite natural parameter: "
            "set smoothing above 0, in the model or in the family's prior"
        )


def origins(mean: FloatArray, narrowness: FloatArray, middle: FloatArray) -> FloatArray:
    """(d) o for (x − o)²: 0, or the middle of the class means in few digits if that saves many.

    The leading digits of the terms of (x − μ)²/σ², as large as (μ − o)²/σ², cancel. So o should be few standard
    deviations from the means; narrowness (K or 1, d) is 1/σ.

    >>> origins(np.array([[1213.0, 3.0], [1198.0, 5.0]]), np.array([[0.1, 1.0]]), np.array([1205.5, 4.0]))
    array([1200.,    0.])
    """
    sd = 1.0 / np.sqrt((narrowness**2).mean(axis=0))
    rounded = np.array([_in_few_digits(*pair) for pair in zip(middle.tolist(), sd.tolist(), strict=True)])
    worst = [(np.abs(mean - o) * narrowness).max(axis=0) for o in (0.0, rounded)]
    return np.where(worst[0] > FAR * np.maximum(1.0, worst[1]), rounded, 0.0)


def _in_few_digits(x: float, sd: float) -> float:
    """x as a short decimal number, at most five standard deviations away.

    >>> _in_few_digits(1234567.3, 1.0), _in_few_digits(-0.0301, 1e-4)
    (1234570.0, -0.03)
    """
    if x == 0:
        return 0.0
    digits = ceil(floor(log10(abs(x))) - log10(sd))
    return float(f"{x:.{min(max(digits, 1), 17)}g}")


def names(context: Context) -> list[str]:
    """The names of the columns."""
    return [str(column) for column in context.columns]


def presence(context: Context) -> list[str]:
    """The names of entries that are 1 unless the value is missing."""
    return [f"{column} is there" for column in context.columns]


def absence(context: Context) -> list[str]:
    """The names of entries that are 1 if the value is missing."""
    return [f"{column} is missing" for column in context.columns]


def shifted(names: Sequence[str], origin: FloatArray) -> list[str]:
    """x − o.

    >>> shifted(["a", "b", "c"], np.array([0.0, 1200.0, -0.5]))
    ['a', 'b − 1200', 'c + 0.5']
    """
    return [
        f"{name} {'−' if o > 0 else '+'} {number(abs(o))}" if o else name
        for name, o in zip(names, origin.tolist(), strict=True)
    ]


def squared(names: Sequence[str], origin: FloatArray) -> list[str]:
    """(x − o)².

    >>> squared(["a", "b"], np.array([0.0, 1200.0]))
    ['a²', '(b − 1200)²']
    """
    return [f"{factor}²" for factor in _factors(names, origin)]


def products(names: Sequence[str], origin: FloatArray) -> list[str]:
    """(x − o)(y − p) of each column with itself and those after it.

    >>> products(["a", "b"], np.array([0.0, 1200.0]))
    ['a²', 'a·(b − 1200)', '(b − 1200)²']
    """
    factors = _factors(names, origin)
    pairs = combinations_with_replacement(range(len(factors)), 2)
    return [f"{factors[i]}²" if i == j else f"{factors[i]}·{factors[j]}" for i, j in pairs]


def _factors(names: Sequence[str], origin: FloatArray) -> list[str]:
    return [f"({name})" if o else name for name, o in zip(shifted(names, origin), origin.tolist(), strict=True)]


def number(x: float) -> str:
    """The shortest text that reads back as x.

    >>> number(1e6), number(0.3)
    ('1000000', '0.3')
    """
    return repr(float(x)).removesuffix(".0")
