"""Calibration maps: temperature scaling and isotonic regression, fitted to out-of-fold predictions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from scipy.integrate import simpson
from scipy.interpolate import PchipInterpolator
from scipy.optimize import brentq
from scipy.special import expit, logit, logsumexp
from sklearn.isotonic import IsotonicRegression

from deciban.data.class_index import ClassIndex, require_classes
from deciban.statistics.histogram import Histogram, keys_of
from deciban.statistics.moments import Moments
from deciban.statistics.sums import Sum
from deciban.table import Table
from deciban.types import FloatArray, Labels, Levels, sorted_levels

LEAST = float(np.log(np.finfo(np.float64).eps))  # lower bound of log-probabilities
BETAS = 2.0 ** (np.arange(-24, 17) / 4)  # from 1/64 to 16
MOST_ODDS = 1e4  # log-odds are clipped to ± this
VIRTUAL = 4.0  # rows that shrink a block towards the temperature
CAP = 4096  # distinct scores that an isotonic map keeps; beyond that they are rounded
CELLS = 1 << 21  # rows × β × classes at a time


class CalibrationMap(ABC):
    """A calibration map, which adds like all evidence: + is that of the rows of both."""

    name: ClassVar[str]

    @classmethod
    @abstractmethod
    def of(cls, log_p: FloatArray, codes: Labels, classes: Levels, weights: FloatArray | None) -> Self:
        """Fitted to out-of-fold log-probabilities (n, K) of rows of these classes."""

    @abstractmethod
    def __add__(self, other: Self) -> Self: ...

    @abstractmethod
    def corrected(self, log_p: FloatArray, classes: Levels) -> FloatArray:
        """(n, K) calibrated log-probabilities."""

    @abstractmethod
    def formula(self, classes: Levels) -> dict[str, Any]:
        """The correction of log-probabilities of these classes, as plain numbers and arrays."""

    @abstractmethod
    def tables(self) -> list[Table]:
        """The correction, to display."""


@dataclass(frozen=True)
class Temperature(CalibrationMap):
    """p'(c|x) ∝ p(c|x)^β, β = 1/T: below 1, all evidence counts for less.

    The log-loss is convex in β; its slope is Σw(E[log p] − log p_true), the expectation under p'. Slopes add, so those
    at 41 fixed β are the evidence, and β is where their interpolation is 0. A virtual row with slope log β, and
    shrinkage by the standard error, keep β at 1 until there is evidence.

    >>> overconfident = np.log([[0.9, 0.1]] * 300)
    >>> evidence = Temperature.of(overconfident, np.array([0, 0, 1] * 100, np.int32), ("no", "yes"), None)
    >>> round((evidence + evidence).beta, 2)  # predicted 0.9, observed 2/3: 9^0.32 is about 2
    0.32
    """

    name: ClassVar[str] = "temperature"
    slopes: Sum  # (β)

    def check_fields(self) -> None:
        self.slopes.check("slopes", BETAS.shape)

    @classmethod
    def of(cls, log_p: FloatArray, codes: Labels, classes: Levels, weights: FloatArray | None) -> Self:
        total = Sum.zeros(BETAS.shape)
        step = max(1, CELLS // (len(BETAS) * max(1, log_p.shape[1])))
        for first in range(0, len(log_p), step):
            rows = slice(first, first + step)
            z = np.maximum(log_p[rows], LEAST)
            scaled = z[:, np.newaxis, :] * BETAS[:, np.newaxis]  # (n, β, K)
            share = np.exp(scaled - logsumexp(scaled, axis=2, keepdims=True))
            slope = (share * z[:, np.newaxis, :]).sum(axis=2) - z[np.arange(len(z)), codes[rows], np.newaxis]
            one = np.zeros(len(z), dtype=np.int32)
            total = total + Moments.of(slope, one, None if weights is None else weights[rows], 1).sum_x.total()
        return cls(total)

    def __add__(self, other: Self) -> Self:
        return type(self)(self.slopes + other.slopes)

    @cached_property
    def beta(self) -> float:
        """1/T, shrunk towards 1 as James and Stein do: the less it lowers the loss, the more."""
        grid = np.log(BETAS)
        slope = self.slopes.value + grid
        smooth = PchipInterpolator(grid, slope)
        if slope[0] >= 0 or slope[-1] <= 0:  # the minimum is outside the grid
            best = float(grid[0] if slope[0] >= 0 else grid[-1])
        else:
            best = float(brentq(smooth, grid[0], grid[-1], xtol=1e-12))
        between = np.linspace(best, 0.0, 1 + 2 * 64)
        squared = 2.0 * float(simpson(smooth(between) * np.exp(between), x=between))  # twice the fall of the loss
        return float(np.exp(best * max(0.0, 1.0 - 1.0 / squared))) if squared > 1.0 else 1.0

    def corrected(self, log_p: FloatArray, classes: Levels) -> FloatArray:
        with np.errstate(invalid="ignore"):
            scaled = self.beta * log_p
        result: FloatArray = scaled - logsumexp(scaled, axis=1, keepdims=True)
        return result

    def formula(self, classes: Levels) -> dict[str, Any]:
        return {"beta": self.beta}

    def tables(self) -> list[Table]:
        rows = ((self.beta, 1.0 / self.beta),)
        return [Table("correction: all decibans are multiplied by beta", ("beta", "temperature"), rows)]


@dataclass(frozen=True)
class Isotonic(CalibrationMap):
    """p'(c|x) = an increasing function of the log-odds of c, for each class, then normalised.

    Isotonic regression on the log-odds gives blocks. A block of n rows, k of them of the class, has the probability
    (k + 4t)/(n + 4), where t is its mean after temperature scaling: 4 virtual rows keep small blocks from certainty. A
    curve of B blocks that gains G nats over the temperature on its own rows has the weight 1 − B/G, since about B nats
    are no gain on other rows; the temperature has the rest.

    >>> z = np.array([-3.0, -1.0, 1.0, 3.0])
    >>> log_p = -np.log1p(np.exp(np.column_stack([z, -z])))
    >>> evidence = Isotonic.of(log_p, np.array([0, 1, 0, 1], np.int32), ("no", "yes"), None)
    >>> p = np.exp(evidence.corrected(log_p, ("no", "yes"))[:, 1])
    >>> bool((np.diff(p) >= 0).all() and abs(p[1] + p[2] - 1) < 1e-9)
    True
    """

    name: ClassVar[str] = "isotonic"
    classes: Levels
    temperature: Temperature
    odds: Histogram  # (K true classes) × K columns, log p(c|x) / (1 − p(c|x)); rounded beyond CAP distinct ones

    def check_fields(self) -> None:
        require_classes(self.classes)
        self.odds.check(len(self.classes), len(self.classes))

    @classmethod
    def of(cls, log_p: FloatArray, codes: Labels, classes: Levels, weights: FloatArray | None) -> Self:
        odds = Histogram.of(log_odds(log_p), codes, weights, len(classes), cap=CAP)
        return cls(classes, Temperature.of(log_p, codes, classes, weights), odds)

    def __add__(self, other: Self) -> Self:
        classes = sorted_levels({*self.classes, *other.classes})
        odds = self._with_classes(classes).odds + other._with_classes(classes).odds
        return type(self)(classes, self.temperature + other.temperature, odds)

    def _with_classes(self, classes: Levels) -> Self:
        """With more classes, which had probability 0 so far."""
        if classes == self.classes:
            return self
        place = ClassIndex(classes).positions(self.classes)
        rows = self.odds.table(0).group(np.zeros(len(self.odds.keys[0]), np.intp), 1)  # (K, 1) of each class
        never = Histogram(CAP, np.zeros(1, np.int64), (keys_of(np.array([-MOST_ODDS])),), (rows,))
        columns = [self.odds.columns([self.classes.index(c)]) if c in self.classes else never for c in classes]
        odds = Histogram.concat_columns(columns).reindex_classes(place, len(classes))
        return type(self)(classes, self.temperature, odds)

    @cached_property
    def curves(self) -> dict[int, Curve]:
        """One for each class; for two classes, that of the second."""
        count = len(self.classes)
        return {k: self._curve(k) for k in range(1 if count == 2 else 0, count)}

    def _curve(self, k: int) -> Curve:
        z, counts = self.odds.lower(k), self.odds.table(k).value
        rows, held = counts.sum(axis=0), counts[k]
        before = self.temperature.beta * z
        fitted = IsotonicRegression().fit_transform(z, held / rows, sample_weight=rows)
        block = np.concatenate([[0], np.cumsum(np.diff(fitted) > 1e-12)])  # differences by rounding make no block
        n, inside, predicted = (np.bincount(block, weights) for weights in (rows, held, rows * expit(before)))
        level = np.maximum.accumulate((inside + VIRTUAL * predicted / n) / (n + VIRTUAL))
        become = np.clip(logit(level), -MOST_ODDS, MOST_ODDS)
        gain = float((held * (become[block] - before) + rows * (log1pexp(before) - log1pexp(become[block]))).sum())
        ends = np.append(np.flatnonzero(np.diff(block)), len(z) - 1)
        starts = np.append(0, ends[:-1] + 1)
        at = np.stack([z[starts], z[ends]], axis=1).ravel()
        return Curve(at, np.repeat(become, 2), max(0.0, 1.0 - len(n) / gain) if gain > 0 else 0.0)

    def corrected(self, log_p: FloatArray, classes: Levels) -> FloatArray:
        z = log_odds(log_p)
        p = expit(self.temperature.beta * z)
        for k, curve in self.curves.items():
            if self.classes[k] in classes:
                j = classes.index(self.classes[k])
                p[:, j] = expit(curve.corrected(z[:, j], self.temperature.beta))
        if len(self.classes) == 2 == len(classes):
            p[:, 0] = 1.0 - p[:, 1]
        p = np.maximum(p, np.finfo(np.float64).tiny)
        result: FloatArray = np.log(p) - np.log(p.sum(axis=1, keepdims=True))
        return result

    def formula(self, classes: Levels) -> dict[str, Any]:
        """β, the curve of each class that has one, and whether the first of two classes is 1 minus the second."""
        curves = [
            {"place": classes.index(self.classes[k]), "odds": curve.odds, "become": curve.become, "trust": curve.trust}
            for k, curve in self.curves.items()
            if self.classes[k] in classes
        ]
        return {"beta": self.temperature.beta, "curves": curves, "two": len(self.classes) == 2 == len(classes)}

    def tables(self) -> list[Table]:
        header = ("log-odds", "p of the curve")
        return [
            Table(
                f"correction of {self.classes[k]}",
                header,
                tuple(zip(curve.odds.tolist(), expit(curve.become).tolist(), strict=True)),
                f"weight {curve.trust:.2f}; the rest is temperature scaling, with beta {self.temperature.beta:.4g}",
            )
            for k, curve in self.curves.items()
        ]


@dataclass(frozen=True)
class Curve:
    """A piecewise linear map of log-odds: constant within a block, linear between blocks."""

    odds: FloatArray  # (m) ascending
    become: FloatArray  # (m) log-odds too
    trust: float  # its weight, from 0 to 1

    def corrected(self, z: FloatArray, beta: float) -> FloatArray:
        """The weighted mean of the curve and temperature scaling."""
        curve = np.interp(z, self.odds, self.become) if len(self.odds) else z
        result: FloatArray = self.trust * curve + (1.0 - self.trust) * beta * z
        return result


def log1pexp(z: FloatArray) -> FloatArray:
    """log(1 + e^z) for any z."""
    result: FloatArray = np.logaddexp(0.0, z)
    return result


def log_odds(log_p: FloatArray) -> FloatArray:
    """(n, K) log p/(1 − p) of each class, computed from logs: it distinguishes 1 − 1e-20 from 1 − 1e-30."""
    others = np.empty_like(log_p)
    for j in range(log_p.shape[1]):
        others[:, j] = logsumexp(np.delete(log_p, j, axis=1), axis=1) if log_p.shape[1] > 1 else -np.inf
    with np.errstate(invalid="ignore"):
        odds = log_p - others
    return np.clip(np.nan_to_num(odds, nan=0.0), -MOST_ODDS, MOST_ODDS)
