"""Contributions: what each feature, pair of features or term adds to the scores of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from deciban.errors import require
from deciban.types import FloatArray, IntArray, Labels, Names

By = Literal["column", "pair"]

DECIBANS = 10.0 / np.log(10.0)  # in one nat


@dataclass(frozen=True)
class Line:
    """One line of an explanation: its name, and the columns (positions in the schema) that it belongs to."""

    name: str
    columns: tuple[int, ...] = ()  # () for the prior and others that belong to no column
    times: IntArray | None = None  # (n) for a term, how often each row has it
    last: bool = False  # whether it is listed after all others, however strong it is


@dataclass(frozen=True)
class Contributions:
    """The scores of rows as a sum; the first line is the prior, or its equivalent."""

    lines: tuple[Line, ...]
    nats: FloatArray  # (n, lines, K)


@dataclass(frozen=True)
class ColumnEvidence:
    """What each column contributes to training rows: decibans for the true class against the mean of the others.

    Sums, so that batches and models add up.
    """

    absolute: FloatArray  # (d) Σ w |decibans|
    signed: FloatArray  # (d) Σ w decibans
    weight: float  # Σ w

    def check_fields(self) -> None:
        absolute, signed = self.absolute, self.signed
        require(absolute.ndim == 1 and absolute.shape == signed.shape, "evidence of different columns")
        require(not (np.isnan(absolute).any() or np.isnan(signed).any()), "evidence of a column is not a number")
        require((absolute >= np.abs(signed) * (1 - 1e-9)).all(), "evidence of a column is below its mean")
        require(0 < self.weight < np.inf, f"evidence from rows of weight {self.weight}")

    @classmethod
    def of(cls, shares: FloatArray, labels: Labels, weights: FloatArray | None) -> ColumnEvidence:
        """From what each column adds (n, d, K) to rows with labels (n).

        >>> nats = np.log([[[1.0, 10.0]], [[10.0, 1.0]], [[10.0, 1.0]]])
        >>> evidence = ColumnEvidence.of(nats, np.array([1, 0, 1]), None)
        >>> evidence.mean_absolute.round(12), evidence.mean.round(12)
        (array([10.]), array([3.33333333]))
        """
        decibans = against_others(shares)[np.arange(len(labels)), :, labels]  # (n, d)
        w = np.ones(len(labels)) if weights is None else weights
        with np.errstate(invalid="ignore"):
            signed = np.nan_to_num(w @ decibans, nan=0.0, posinf=np.inf, neginf=-np.inf)
            return cls(w @ np.abs(decibans), signed, float(w.sum()))

    def __add__(self, other: Self) -> ColumnEvidence:
        with np.errstate(invalid="ignore"):
            signed = np.nan_to_num(self.signed + other.signed, nan=0.0, posinf=np.inf, neginf=-np.inf)
        return ColumnEvidence(self.absolute + other.absolute, signed, self.weight + other.weight)

    @property
    def mean_absolute(self) -> FloatArray:
        """(d) mean |decibans|: the importance of each column."""
        return self.absolute / max(self.weight, 1e-300)

    @property
    def mean(self) -> FloatArray:
        """(d) mean decibans for the true class."""
        return self.signed / max(self.weight, 1e-300)


def against_others(nats: FloatArray) -> FloatArray:
    """(…, K) decibans for each class: 10 log₁₀ e · (its nats − the mean over the other classes).

    A value that is impossible under several classes is no evidence between them; K = 1 stays as it is.

    >>> against_others(np.log([[1.0, 10.0]])).round(12)
    array([[-10.,  10.]])
    """
    classes = nats.shape[-1]
    if classes == 1:
        return nats
    with np.errstate(invalid="ignore"):
        others = (nats.sum(axis=-1, keepdims=True) - nats) / (classes - 1)
        decibans: FloatArray = (nats - others) * DECIBANS
    if np.isfinite(decibans).all():
        return decibans
    impossible = np.isneginf(nats)
    elsewhere = impossible.sum(axis=-1, keepdims=True) - impossible
    decibans = np.where(elsewhere > 0, np.inf, np.nan_to_num(decibans, nan=0.0, neginf=-np.inf, posinf=np.inf))
    return np.where(impossible, np.where(elsewhere > 0, 0.0, -np.inf), decibans)


def title(columns: Sequence[int], names: Names) -> str:
    """One name for several columns."""
    if len(columns) > 3:
        return f"{names[columns[0]]} … {names[columns[-1]]} ({len(columns)} columns)"
    return " + ".join(str(names[j]) for j in columns)


def line_title(columns: Sequence[int], names: Names, line: str) -> str:
    """The name of a term in an explanation; documents without a column name add none."""
    return line if isinstance(names, range) and len(names) == 1 else f"{title(columns, names)}: {line}"


@dataclass(frozen=True)
class TermLine:
    """What a term of documents adds; or, if times is None, what all terms that a document lacks add together."""

    name: str
    nats: FloatArray  # (n, K)
    times: IntArray | None = None  # (n) how often each document has the term

    def line(self, columns: tuple[int, ...], names: Names) -> Line:
        return Line(line_title(columns, names, self.name), columns, self.times, last=self.times is None)
