"""Formulas: what a block adds to the scores of the classes, as plain arrays that any language can apply.

K is the number of classes. Columns are numbered as in the block. An owner is the tuple of columns that a line of an
explanation belongs to; () is none. Compilers dispatch on the `kind` of a formula.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from deciban.data.batch import MISSING, UNSEEN
from deciban.data.terms import Cut, Terms
from deciban.types import Domain, FloatArray, IntArray, Levels

Owner = tuple[int, ...]


@dataclass(frozen=True)
class Code:
    """A value as a small integer: first + the number of cuts at or below it, or its position among the levels."""

    column: int
    size: int  # the number of codes
    cuts: FloatArray | None = None  # ascending; with none, every value that is not missing has the first code
    levels: Levels | None = None
    places: IntArray | None = None  # (levels) the code of each level; None: their order
    first: int = 0
    missing: int = MISSING  # the code of a missing value; MISSING adds nothing, UNSEEN is an unseen level
    unseen: int = MISSING  # the code of an unseen level
    refused: bool = False  # whether an unseen level is an error
    domains: tuple[Domain, ...] = ()
    lenient: bool = False  # whether a number outside the domain counts as missing, instead of raising

    def present(self) -> Code:
        """The code of whether a value is missing: 1, or 0 for any value."""
        return replace(self, cuts=np.zeros(0), missing=1, domains=())

    def counting_missing(self) -> Code:
        """The code in which a missing value is the level None or, if training rows had none, an unseen level."""
        if self.levels is None:
            return self
        places = np.arange(len(self.levels)) if self.places is None else self.places
        return replace(self, missing=int(places[self.levels.index(None)]) if None in self.levels else UNSEEN)


@dataclass(frozen=True)
class Lookup:
    """table[code]; for two codes table[a·(size of b) + b], or `alone` of one of them if the other is unknown."""

    kind: ClassVar[str] = "lookup"
    owner: Owner
    codes: tuple[Code, ...]
    table: FloatArray  # (V, K)
    alone: tuple[FloatArray, ...] = ()  # (size, K) for each of two codes, where the other is unknown


@dataclass(frozen=True)
class Combinations:
    """table[i], of each column, where a·(size of b) + b, or the like of three codes, is keys[i]; else nothing."""

    kind: ClassVar[str] = "combinations"
    columns: tuple[int, ...]  # which own equal shares
    codes: tuple[Code, ...]
    keys: IntArray  # (V) ascending
    table: FloatArray  # (V, K)


@dataclass(frozen=True)
class Curve:
    """constant + slope·t + square·t², t = x − middle, for each of d columns, each of which owns what it adds.

    x is clipped to [low, high]. With `most`, the result is centred over the classes and clipped to ±most nats.
    """

    kind: ClassVar[str] = "curve"
    columns: tuple[int, ...]
    middle: FloatArray | None = None  # (d, K); None is 0, here and below
    constant: FloatArray | None = None
    slope: FloatArray | None = None
    square: FloatArray | None = None
    missing: FloatArray | None = None  # what a missing value adds
    low: FloatArray | None = None  # (d)
    high: FloatArray | None = None
    most: float | None = None  # nats
    factorial: NDArray[np.bool_] | None = None  # (d) whether to add −log x!
    domains: tuple[Domain, ...] = ()
    lenient: bool = False


@dataclass(frozen=True)
class Whitened:
    """The log-density of a joint normal, split by entries: see families.whitening."""

    root: FloatArray  # (c, d(d + 1)/2) rows of the lower triangles of R^(−½)
    scale: FloatArray  # (c, d) 1/σ
    logs: FloatArray  # (c, d)


@dataclass(frozen=True)
class Joint:
    """logs_j − ½z_j² for each column; if some are missing, for the others by their block of Σ."""

    kind: ClassVar[str] = "joint"
    columns: tuple[int, ...]
    mean: FloatArray  # (K, d)
    whitened: Whitened
    covariance: FloatArray  # (K or 1, d(d + 1)/2) rows of the lower triangle of Σ


@dataclass(frozen=True)
class Scaled:
    """(x − middle)/spread as an entry of a vector: x is clipped to [low, high], the entry to ±farthest."""

    column: int
    entry: int
    middle: float
    spread: float
    low: float
    high: float
    farthest: float


@dataclass(frozen=True)
class Listed:
    """One-hot entries of a vector; the baseline, a level before the first, has none.

    The entries of a missing value or an unseen level are unknown.
    """

    code: Code
    entry: int  # that of the first level; one less if that is the baseline
    width: int  # the number of entries


@dataclass(frozen=True)
class Mixed:
    """A joint normal of a vector, with one covariance or one for each class; see evidence.densities.JointGaussian.

    It is the density of the known entries, centred over the classes, clipped to ±most nats, and split by columns.
    """

    kind: ClassVar[str] = "mixed"
    columns: tuple[int, ...]
    entries: tuple[Scaled | Listed, ...]
    owner: IntArray  # (m) the column of each entry
    mean: FloatArray  # (K, m)
    whitened: Whitened
    most: float


@dataclass(frozen=True)
class Trees:
    """The mean over trees of log (N_c(leaf) + sπ_c) − log π_c, centred; each step belongs to its column.

    Where a node splits on an unknown value, both sides are counted; see evidence.forest_leaves.
    """

    kind: ClassVar[str] = "trees"
    columns: tuple[int, ...]
    codes: tuple[Code, ...]
    ordered: NDArray[np.bool_]  # (d) whether codes up to a node's go left, or its code alone
    trees: int
    asked: IntArray  # (nodes) 1 + the column that each splits on, 0 for a leaf; in the order of Forest.by_level
    code: IntArray  # (nodes) the code that goes left
    counts: FloatArray  # (leaves, K) in the same order
    prior: FloatArray  # (K) π
    virtual: float  # s


@dataclass(frozen=True)
class Symmetric:
    """The sum over trees of the value of a row's leaf, centred; each split belongs to its column.

    A row goes right, where its bit of the leaf is 1, beyond the code of the split, or unless it has that code. Where a
    split reads an unknown value, a row has the mean of both sides by their rows; see evidence.boosting.
    """

    kind: ClassVar[str] = "symmetric"
    columns: tuple[int, ...]
    codes: tuple[Code, ...]
    ordered: NDArray[np.bool_]  # (d) whether codes up to a split's go left, or its code alone
    asked: IntArray  # (trees, depth) 1 + the column that each level splits on, 0 for none
    code: IntArray  # (trees, depth) the code of the split
    value: NDArray[np.float32]  # (trees · leaves · outputs)
    rows: NDArray[np.float32]  # (trees · leaves)
    output: IntArray  # (K) 1 + the output of each class, 0 for none; a single output is halved, − for the first class
    factor: float  # by which values are multiplied


@dataclass(frozen=True)
class Bag:
    """absent + Σ over the terms of the texts of all columns; `once`: each distinct term counts once.

    Each term is a line of an explanation, unless the formula has an owner.
    """

    kind: ClassVar[str] = "bag"
    columns: tuple[int, ...]  # (): all of the block's
    terms: Terms
    cut: Cut
    once: bool
    table: FloatArray  # (V, K)
    absent: FloatArray | None = None  # (K) what every document adds, unless it is missing
    certain: NDArray[np.bool_] | None = None  # (V, K) terms without which a class is impossible
    owner: Owner | None = None
    title: str = ""  # the prefix of a line's name


@dataclass(frozen=True)
class Products:
    """Σ over i ≤ j of table[ij]·(x_i − o_i)(x_j − o_j), which the first column owns; no value is missing."""

    kind: ClassVar[str] = "products"
    columns: tuple[int, ...]
    origin: FloatArray  # (d)
    table: FloatArray  # (d(d + 1)/2, K) rows of the upper triangle


@dataclass(frozen=True)
class Always:
    """The same for all rows."""

    kind: ClassVar[str] = "always"
    owner: Owner
    nats: FloatArray  # (K)


@dataclass(frozen=True)
class Weighted:
    """What a formula adds, times weights that depend on which columns are unknown in a row."""

    kind: ClassVar[str] = "weighted"
    formula: Formula
    weights: FloatArray  # (K)
    changes: FloatArray  # (C, K) for each column that may be unknown; weights stay at 0 or above
    column: int  # the only one of these that the formula reads, which then adds nothing if it is unknown; else −1


Formula = Lookup | Combinations | Curve | Joint | Mixed | Trees | Symmetric | Bag | Products | Always | Weighted
F = TypeVar("F", bound=Any)


def placed(formula: F, columns: Sequence[int]) -> F:
    """The formula with its columns renumbered: j becomes columns[j].

    >>> placed(Always((1,), np.zeros(2)), (7, 9)).owner
    (9,)
    """
    if isinstance(formula, Weighted):
        return replace(formula, formula=placed(formula.formula, columns))
    moved: dict[str, Any] = {}
    if getattr(formula, "owner", None) is not None and not isinstance(formula, Mixed):
        moved["owner"] = tuple(columns[j] for j in formula.owner)
    if hasattr(formula, "columns"):
        read = range(len(columns)) if isinstance(formula, Bag) else formula.columns
        moved["columns"] = tuple(columns[j] for j in read)
    if hasattr(formula, "codes"):
        moved["codes"] = tuple(placed_code(code, columns) for code in formula.codes)
    if hasattr(formula, "entries"):
        moved["entries"] = tuple(
            replace(entry, column=columns[entry.column])
            if isinstance(entry, Scaled)
            else replace(entry, code=placed_code(entry.code, columns))
            for entry in formula.entries
        )
    return replace(formula, **moved)


def placed_code(code: Code, columns: Sequence[int]) -> Code:
    return replace(code, column=columns[code.column])


def owners_of(formula: Formula) -> list[Owner]:
    """The owners of the lines of an explanation that a formula adds to; terms have none."""
    if isinstance(formula, Weighted):
        return owners_of(formula.formula)
    if isinstance(formula, (Lookup, Always)):
        return [formula.owner]
    if isinstance(formula, Bag):
        return [] if formula.owner is None else [formula.owner]
    return [(j,) for j in formula.columns]


def rows_of_triangle(matrices: FloatArray) -> FloatArray:
    """(…, d(d + 1)/2) the lower triangles of (…, d, d), row by row.

    >>> rows_of_triangle(np.array([[1.0, 0.0], [2.0, 3.0]]))
    array([1., 2., 3.])
    """
    i, j = np.tril_indices(matrices.shape[-1])
    return np.ascontiguousarray(matrices[..., i, j])
