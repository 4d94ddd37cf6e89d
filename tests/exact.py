"""Exact arithmetic with fractions: what sums are compared with."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import isnan

import numpy as np

Table = list[list[Fraction]]  # (class, column)


def exact(words: Iterable[float]) -> Fraction:
    return sum((Fraction(float(w)) for w in words), Fraction(0))


def words_of(total: Fraction) -> list[float]:
    """The doubles w₀ = round(S), w₁ = round(S − w₀), … until nothing is left. (float(Fraction) rounds correctly.)"""
    words = []
    while total:
        words.append(float(total))
        total -= Fraction(words[-1])
    return words


def as_words(table: Table) -> np.ndarray:
    """(words, class, column), as many words as the longest sum needs."""
    words = [[words_of(cell) for cell in row] for row in table]
    longest = max([1, *(len(w) for row in words for w in row)])
    shape = (longest, len(table), len(table[0]) if table else 0)
    result = np.zeros(shape)
    for c, row in enumerate(words):
        for j, w in enumerate(row):
            result[: len(w), c, j] = w
    return result


def moments(x: np.ndarray, labels: np.ndarray, weights: np.ndarray | None, classes: int) -> tuple[Table, Table, Table]:
    """Σw, Σwx and Σwx² of the cells present."""
    tables: tuple[Table, ...] = tuple([[Fraction(0)] * x.shape[1] for _ in range(classes)] for _ in range(3))
    for i, row in enumerate(x.tolist()):
        weight = Fraction(1 if weights is None else float(weights[i]))
        for j, cell in enumerate(row):
            if not isnan(cell):
                value = Fraction(cell)
                for table, power in zip(tables, (1, value, value * value), strict=True):
                    table[labels[i]][j] += weight * power
    count, sum_x, sum_xx = tables
    return count, sum_x, sum_xx


def mean_and_squares(values: Iterable[float], weights: Iterable[float] | None = None) -> tuple[Fraction, Fraction]:
    """Σwx/Σw and Σw(x − mean)²."""
    x = [Fraction(float(v)) for v in values]
    w = [Fraction(1)] * len(x) if weights is None else [Fraction(float(v)) for v in weights]
    mean = sum(a * b for a, b in zip(w, x, strict=True)) / sum(w)
    return mean, sum((a * (b - mean) ** 2 for a, b in zip(w, x, strict=True)), Fraction(0))


def relative_error(actual: float, expected: Fraction) -> float:
    if expected == 0:
        return 0.0 if actual == 0 else float("inf")
    return float(abs(Fraction(float(actual)) - expected) / abs(expected))
