"""Reader: what a block says of rows, as pieces of evidence that can each be given a weight."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from deciban.families.base import rows_of
from deciban.types import FloatArray, Labels

if TYPE_CHECKING:
    from deciban.families.formulas import Formula

Adder = Callable[[Any, FloatArray], None]
Share = tuple[tuple[int, ...], FloatArray]  # columns, and (n, K) what they contribute; no columns: what none does


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
    half: NDArray[np.bool_] | None = None  # (n) of two halves: what was chosen by one half of the rows judges the other

    def some(self, rows: slice) -> Rows:
        parts: Any = (None if part is None else part[rows] for part in (self.labels, self.weights, self.half))
        return Rows(rows_of(self.values, rows), *parts)


class Reader(ABC):
    """Evidence is log p(x|c), less its mean over the classes: what does not tell them apart is no evidence."""

    pieces: tuple[Piece, ...]
    by_lines: bool = False

    def prepared(self, rows: Rows) -> Self:
        """A reader for rows that are to be left out, after a look at all of them, with their full weights."""
        return self

    @abstractmethod
    def evidence(self, rows: Rows) -> FloatArray:
        """(n, pieces, K)."""

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

    @abstractmethod
    def formula(self, weights: FloatArray) -> list[Formula]:
        """What is added, as formulas that need no library; their owners are the columns that `split` gives shares to.

        Columns are numbered as the block has them.
        """

    def lines(self, values: Any, weights: FloatArray) -> Iterator[tuple[str, FloatArray]]:
        """What is added, by parts with names of their own, where it has such: `by_lines`; they sum to it."""
        raise NotImplementedError

    def split(self, values: Any, weights: FloatArray) -> Iterator[Share]:
        """What is added, as shares of columns; they sum to it. A piece of one column, or of a pair, is its own."""
        found = self.evidence(Rows(values)) * weights
        for p, piece in enumerate(self.pieces):
            yield piece.columns, found[:, p]


def centred(evidence: FloatArray) -> FloatArray:
    """Less the mean over the classes, which stand last."""
    result: FloatArray = evidence - evidence.mean(axis=-1, keepdims=True)
    return result


def bounded(evidence: FloatArray, most: float) -> FloatArray:
    """Centred, and no more than so many nats either way."""
    return np.clip(centred(evidence), -most, most)
