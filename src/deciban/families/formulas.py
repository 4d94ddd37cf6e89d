"""Formulas: what a block adds to the scores of the classes, in a form that is applied without this library.

There are few kinds. Each says by plain arrays what a cell, or a few of them, adds; K is the number of classes. Columns
are numbered as the block has them. An owner is the columns that a part of an explanation belongs to; () is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from deciban.batch import MISSING, UNSEEN
from deciban.families.whitening import Whitening
from deciban.statistics.tokens import Cut, Terms
from deciban.types import Domain, FloatArray, IntArray, Levels

Owner = tuple[int, ...]


@dataclass(frozen=True)
class Code:
    """A cell as a small number: first + how many cuts are at or below it, or the place of its value in a list."""

    column: int
    size: int  # how many codes there are
    cuts: FloatArray | None = None  # ascending; none at all: any cell that is there has the first code
    levels: Levels | None = None
    places: IntArray | None = None  # (levels) the code of each; None: their order
    first: int = 0
    missing: int = MISSING  # the code of a missing cell; MISSING adds nothing, UNSEEN is as a value in no list
    unseen: int = MISSING  # the code of a value in no list
    refused: bool = False  # whether a value in no list is an error
    domains: tuple[Domain, ...] = ()
    lenient: bool = False  # a number outside of the domain is missing, and no error

    def present(self) -> Code:
        """1 where a cell is missing, 0 where it is there."""
        return replace(self, cuts=np.zeros(0), missing=1, domains=())

    def counting_missing(self) -> Code:
        """A missing cell is the value None; where that was never met, it is one never seen."""
        if self.levels is None:
            return self
        places = np.arange(len(self.levels)) if self.places is None else self.places
        return replace(self, missing=int(places[self.levels.index(None)]) if None in self.levels else UNSEEN)


@dataclass(frozen=True)
class Lookup:
    """table[code]; of two codes, table[a·(size of b) + b], and where one of them is unknown what the other says."""

    owner: Owner
    codes: tuple[Code, ...]
    table: FloatArray  # (V, K)
    alone: tuple[FloatArray, ...] = ()  # (size, K) for each of two codes, where the other is unknown


@dataclass(frozen=True)
class Curve:
    """constant + slope·t + square·t², t = x − middle, for each of d columns, which own what they add.

    x is held between low and high. With `most`, the mean over the classes is taken off, and no more than `most` nats
    either way are left.
    """

    columns: tuple[int, ...]
    middle: FloatArray | None = None  # (d, K); None is 0, as it is of all of these
    constant: FloatArray | None = None
    slope: FloatArray | None = None
    square: FloatArray | None = None
    missing: FloatArray | None = None  # what a missing cell adds
    low: FloatArray | None = None  # (d)
    high: FloatArray | None = None
    most: float | None = None
    factorial: NDArray[np.bool_] | None = None  # (d) whether −log x! is added
    domains: tuple[Domain, ...] = ()
    lenient: bool = False


@dataclass(frozen=True)
class Whitened:
    """What takes a joint normal apart by entries: see families.whitening."""

    root: FloatArray  # (c, d(d + 1)/2) rows of the lower triangles of R^(−½)
    scale: FloatArray  # (c, d) 1/σ
    logs: FloatArray  # (c, d)

    @classmethod
    def of(cls, whitening: Whitening) -> Whitened:
        return cls(rows_of_triangle(whitening.root), whitening.scale, whitening.logs)


@dataclass(frozen=True)
class Joint:
    """logs_j − ½z_j² for each column of a whole row; where cells are missing, for the others, by their part of Σ."""

    columns: tuple[int, ...]
    mean: FloatArray  # (K, d)
    whitened: Whitened
    covariance: FloatArray  # (K or 1, d(d + 1)/2) rows of the lower triangle of Σ


@dataclass(frozen=True)
class Scaled:
    """(x − middle)/spread as an entry of a vector: x between low and high, the entry between −farthest and farthest."""

    column: int
    entry: int
    middle: float
    spread: float
    low: float
    high: float
    farthest: float


@dataclass(frozen=True)
class Listed:
    """1 as the entry of a vector that the cell's value has, 0 as others; a value before the first has none.

    Entries of a missing cell, or of a value in no list, are unknown.
    """

    code: Code
    entry: int  # that of the first value; one less, where that is the baseline
    width: int  # how many entries there are


@dataclass(frozen=True)
class Mixed:
    """A joint normal of a vector, with one covariance or with one for each class; see weighing.densities.Jointly.

    It is that of the entries that are known: centred, within `most` nats, and taken apart by columns.
    """

    columns: tuple[int, ...]
    entries: tuple[Scaled | Listed, ...]
    owner: IntArray  # (m) the column of each entry
    mean: FloatArray  # (K, m)
    whitened: Whitened
    most: float


@dataclass(frozen=True)
class Trees:
    """The mean over trees of log (N_c(leaf) + sπ_c) − log π_c, centred; each step belongs to its column.

    Where a node asks for a cell that is unknown, both sides are counted; see weighing.forest_leaves.
    """

    columns: tuple[int, ...]
    codes: tuple[Code, ...]
    ordered: NDArray[np.bool_]  # (d) whether codes up to that of a node go left, or this one alone
    trees: int
    asked: IntArray  # (nodes) 1 + the column that each asks for, 0 of a leaf; in the order of Forest.by_level
    code: IntArray  # (nodes) what goes left
    counts: FloatArray  # (leaves, K) in the same order
    prior: FloatArray  # (K) π
    virtual: float  # s


@dataclass(frozen=True)
class Bag:
    """absent + Σ over the terms of texts, in all columns together; `once`: however often a term is there.

    What terms add are lines of an explanation, each by its name, unless all have an owner.
    """

    columns: tuple[int, ...]  # (): all of the block
    terms: Terms
    cut: Cut
    once: bool
    table: FloatArray  # (V, K)
    absent: FloatArray | None = None  # (K) of any document that is there
    certain: NDArray[np.bool_] | None = None  # (V, K) terms without which a class is impossible
    owner: Owner | None = None
    title: str = ""  # what stands before the name of a line


@dataclass(frozen=True)
class Products:
    """Σ over i ≤ j of table[ij]·(x_i − o_i)(x_j − o_j), which the first of both columns owns; all cells are there."""

    columns: tuple[int, ...]
    origin: FloatArray  # (d)
    table: FloatArray  # (d(d + 1)/2, K) rows of the upper triangle


@dataclass(frozen=True)
class Always:
    """The same for all rows."""

    owner: Owner
    nats: FloatArray  # (K)


@dataclass(frozen=True)
class Weighted:
    """What a formula adds, times weights that depend on which columns are unknown in a row."""

    formula: Formula
    weights: FloatArray  # (K)
    changes: FloatArray  # (C, K) for each column that may be unknown; weights never fall below 0
    column: int  # which of these the formula is about, and nothing else: then it says nothing; or −1


Formula = Lookup | Curve | Joint | Mixed | Trees | Bag | Products | Always | Weighted
F = TypeVar("F", bound=Any)


def placed(formula: F, columns: Sequence[int]) -> F:
    """The same, its columns numbered as `columns` says.

    >>> placed(Always((1,), np.zeros(2)), (7, 9)).owner
    (9,)
    """
    if isinstance(formula, Weighted):
        return replace(formula, formula=placed(formula.formula, columns))
    moved: dict[str, Any] = {}
    if getattr(formula, "owner", None) is not None and not isinstance(formula, Mixed):
        moved["owner"] = tuple(columns[j] for j in formula.owner)
    if hasattr(formula, "columns"):
        own = range(len(columns)) if isinstance(formula, Bag) else formula.columns
        moved["columns"] = tuple(columns[j] for j in own)
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
    """The parts of an explanation that it has something to say of; lines have none."""
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
