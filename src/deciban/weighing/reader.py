"""Reader: what a block says of rows, as pieces of evidence that can each be given a weight."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from deciban.families.base import TermLine, rows_of
from deciban.types import FloatArray, IntArray, Labels

if TYPE_CHECKING:
    from deciban.families.formulas import Formula

Adder = Callable[[Any, FloatArray], None]
ShareAdder = Callable[[Any, FloatArray, FloatArray], None]
Share = tuple[tuple[int, ...], FloatArray]  # columns, and (n, K) what they contribute


@dataclass(frozen=True)
class Piece:
    """Evidence with a weight of its own: what it is made of, and the columns (places in the table) that it is about."""

    kind: str
    columns: tuple[int, ...]


@dataclass(frozen=True)
class Rows:
    """Rows of a block. Where labels are given, they were learned, and each is left out when it is judged itself."""

    values: Any
    labels: Labels | None = None
    weights: FloatArray | None = None  # (n) how much of each row is left out; None is 1
    hidden: frozenset[int] = frozenset()  # columns (of the table) that are taken for unknown

    def hides(self, columns: Any) -> NDArray[np.bool_]:
        """Which of some columns of the table are hidden."""
        return np.isin(columns, list(self.hidden))

    def some(self, rows: slice) -> Rows:
        return self._of(rows_of(self.values, rows), rows)

    def take(self, rows: IntArray) -> Rows:
        """Rows at some places, of values that are one array; itself, if these are all."""
        if len(rows) == len(self.values):
            return self
        return self._of(self.values[rows], rows)

    def _of(self, values: Any, rows: slice | IntArray) -> Rows:
        labels, weights = (None if part is None else part[rows] for part in (self.labels, self.weights))
        return Rows(values, labels, weights, self.hidden)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Unknown:
    """Cells of which nothing is known."""

    columns: tuple[int, ...]  # (m) of the table
    missing: NDArray[np.bool_]  # (n, m)
    unseen: NDArray[np.bool_]  # (n, m) values that were never seen


class Reader(ABC):
    """Evidence is log p(x|c), less its mean over the classes: what does not tell them apart is no evidence."""

    pieces: tuple[Piece, ...]
    by_lines: bool = False  # whether terms are explained one by one
    has_pairs: bool = False  # whether pieces are of two columns, which share what they add
    chosen: bool = False  # whether labels had a part in the choice of its pieces

    @abstractmethod
    def evidence(self, rows: Rows) -> FloatArray:
        """(n, pieces, K)."""

    def admitted(self, rows: Rows) -> NDArray[np.bool_]:
        """(pieces) which of them some rows, with their labels and full weights, would choose; if pieces are chosen."""
        return np.ones(len(self.pieces), np.bool_)

    def without(self, rows: Rows, kept: IntArray) -> Self | None:
        """The reader as if some rows had never been learned, of the classes that are left; None if that takes more
        than a subtraction of counts."""
        return None

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """How many free parameters it has."""

    def adder(self, weights: FloatArray) -> Adder:
        """What adds Σ weights (pieces, K) · evidence of new rows to out (n, K)."""

        def add(values: Any, out: FloatArray) -> None:
            out += np.einsum("npk,pk->nk", self.evidence(Rows(values)), weights)

        return add

    @property
    def width(self) -> int:
        """How many numbers it makes of a row on the way, about."""
        return 1 + 4 * len(self.pieces)

    def unknown(self, values: Any) -> Unknown | None:
        """The cells that are unknown, where this is the reader that tells so of its columns."""
        return None

    @abstractmethod
    def formulas(self) -> list[tuple[int, Formula]]:
        """The evidence of each piece (its place), as formulas that need no library.

        Their owners are the columns that have shares of it. Columns are numbered as the block has them.
        """

    def lines(self, values: Any, weights: FloatArray) -> Iterator[TermLine]:
        """What is added, term by term, where it has such: `by_lines`; they sum to it."""
        raise NotImplementedError

    def share_adder(self) -> ShareAdder:
        """What adds the shares of columns to out (n, columns of the table, K); they sum to what `adder` adds.

        It takes values, weights (pieces, K) or (n, pieces, K), and out. A piece of one column is its own.
        """

        def add(values: Any, weights: FloatArray, out: FloatArray) -> None:
            weighted = self.evidence(Rows(values)) * weights
            for p, piece in enumerate(self.pieces):
                out[:, piece.columns[0]] += weighted[:, p]

        return add

    def pairs(self, values: Any, weights: FloatArray) -> Iterator[Share]:
        """What is added, pair by pair, where the pieces are pairs of columns: `has_pairs`."""
        raise NotImplementedError


def centred(evidence: FloatArray) -> FloatArray:
    """Less the mean over the classes, which stand last."""
    result: FloatArray = evidence - evidence.mean(axis=-1, keepdims=True)
    return result


def bounded(evidence: FloatArray, most: float) -> FloatArray:
    """Centred, and no more than so many nats either way."""
    return np.clip(centred(evidence), -most, most)
