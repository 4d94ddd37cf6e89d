"""An example of each response: all tests here and in tests/linear run for all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import stats

from deciban.linear import responses
from deciban.linear.responses import Bernoulli, Exponential, Gaussian, Multinomial, Poisson, Response
from tests.laws import members


@dataclass(frozen=True)
class Example:
    """A response, values of y and η, and reference results from another source."""

    response: Response
    y: np.ndarray  # (n) values all over the domain, including its edge
    eta: np.ndarray  # (r, m) natural parameters all over their domain
    log_density: Callable[[np.ndarray, np.ndarray], np.ndarray]  # of y (n) and η (n, m), by scipy
    best: Callable[[np.ndarray], np.ndarray]  # (n, m) the η that maximises the density of y, or one far enough out
    support: np.ndarray | None  # all values of y that matter for any η above; None: y is continuous, from `least` up
    least: float = -np.inf
    inside: Callable[[np.ndarray], np.ndarray] = lambda eta: np.full(len(eta), True)  # (n) is η of the domain
    bad: dict[str, tuple[Any, int, str]] = field(default_factory=dict)  # y, the bad row, the message
    draw: Callable[[np.random.Generator, int], np.ndarray] = lambda rng, n: np.zeros(n)  # n values of y
    centre: float = 0.0  # an η that is well inside the domain
    room: float = np.inf  # the domain includes centre ± room

    @property
    def m(self) -> int:
        return self.eta.shape[1]

    def __str__(self) -> str:
        return f"{self.response.name} {self.m}"


def column(*values: float) -> np.ndarray:
    return np.array(values)[:, np.newaxis]


MISSING = {
    "missing": (np.array([1.0, 0.0, np.nan, np.nan]), 2, "nan is missing or infinite: remove the row"),
    "infinite": (np.array([1.0, np.inf]), 1, "inf is missing or infinite: remove the row"),
}
FAR = 800.0  # e^-800 is 0


def gaussian() -> Example:
    return Example(
        Gaussian(),
        y=np.array([-1e6, -3.0, 0.0, 0.25, 2.0, 1e6]),
        eta=column(-30.0, -1.5, 0.0, 0.1, 2.0, 40.0),
        log_density=lambda y, eta: stats.norm.logpdf(y, eta[:, 0]),
        best=lambda y: y[:, np.newaxis],
        support=None,
        bad=MISSING,
        draw=lambda rng, n: rng.normal(1.0, 2.0, n),
    )


def bernoulli() -> Example:
    return Example(
        Bernoulli(),
        y=np.array([0.0, 1.0]),
        eta=column(-30.0, -2.0, 0.0, 0.5, 3.0, 15.0),
        log_density=lambda y, eta: stats.logistic.logcdf(np.where(y == 1, eta[:, 0], -eta[:, 0])),
        best=lambda y: np.where(y == 1, FAR, -FAR)[:, np.newaxis],
        support=np.array([0.0, 1.0]),
        bad=MISSING,
        draw=lambda rng, n: rng.integers(0, 2, n).astype(float),
    )


def multinomial(classes: int) -> Example:
    rng = np.random.default_rng(classes)

    def log_density(y: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """By the definition, relative to the largest."""
        scores = np.hstack([np.zeros((len(eta), 1)), eta])
        scores -= scores.max(axis=1, keepdims=True)
        return scores[np.arange(len(y)), y.astype(int)] - np.log(np.exp(scores).sum(axis=1))

    def best(y: np.ndarray) -> np.ndarray:
        return np.where(y[:, np.newaxis] == np.arange(1, classes), FAR, -FAR)

    return Example(
        Multinomial(classes),
        y=np.arange(float(classes)),
        eta=np.vstack([np.zeros(classes - 1), rng.normal(size=(6, classes - 1)) * [[0.1], [1], [1], [3], [5], [8]]]),
        log_density=log_density,
        best=best,
        support=np.arange(float(classes)),
        bad=MISSING,
        draw=lambda rng, n: rng.integers(0, classes, n).astype(float),
    )


def poisson() -> Example:
    return Example(
        Poisson(),
        y=np.array([0.0, 1.0, 2.0, 7.0, 300.0, 1e6]),
        eta=column(-20.0, -1.0, 0.0, 0.5, 2.0, 5.0),
        log_density=lambda y, eta: stats.poisson.logpmf(y, np.exp(eta[:, 0])),
        best=lambda y: np.where(y > 0, np.log(np.maximum(y, 1.0)), -FAR)[:, np.newaxis],
        support=np.arange(600.0),  # the mean is 148 at most
        bad=MISSING | {"negative": (np.array([0.0, 3.0, -1.0]), 2, "-1 is not a count: it must be 0 or more")},
        draw=lambda rng, n: rng.poisson(2.0, n).astype(float),
    )


def exponential() -> Example:
    return Example(
        Exponential(),
        y=np.array([1e-8, 0.1, 1.0, 5.0, 1e6]),
        eta=column(-20.0, -3.0, -1.0, -0.5, -0.04),
        log_density=lambda y, eta: stats.expon.logpdf(y, scale=-1.0 / eta[:, 0]),
        best=lambda y: -1.0 / y[:, np.newaxis],
        support=None,
        least=0.0,
        inside=lambda eta: eta[:, 0] < 0,
        bad=MISSING
        | {
            "zero": (np.array([0.5, 0.0]), 1, "0 must be above 0, as a waiting time is"),
            "negative": (np.array([-2.0, 1.0]), 0, "-2 must be above 0, as a waiting time is"),
        },
        draw=lambda rng, n: rng.exponential(0.5, n) + 1e-3,
        centre=-2.0,
        room=1.0,
    )


EXAMPLES = [gaussian(), bernoulli(), multinomial(2), multinomial(3), multinomial(5), poisson(), exponential()]
ALL = list(members(responses, Response))  # all classes in the files, so that none is forgotten here
