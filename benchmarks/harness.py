"""Time deciban beside a peer, in the same process.

A job is a function that makes its data and adds one row per ``compare`` (or ``limit``); the data is freed when it
returns. Every module of this package is imported at start, so a new file with jobs needs no registration::

    @job("gaussian")
    def gaussian(bench: Bench) -> None:
        size = bench.size(sizes.GAUSSIAN)
        ...
        bench.compare(
            f"Gaussian fit, {size}",
            "GaussianNB",
            ours=lambda: deciban.NaiveBayes().fit(X, y),
            peer=lambda: GaussianNB(var_smoothing=0).fit(X, y),
            target=25,
            agreement=lambda ours, peer: gap(ours.predict_proba(X[:1000]), peer.predict_proba(X[:1000])),
        )
"""

from __future__ import annotations

import gc
import importlib
import logging
import math
import pkgutil
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

import benchmarks
from benchmarks.sizes import QUICK, SEED, Size

Ours = TypeVar("Ours")
Peer = TypeVar("Peer")
Result = TypeVar("Result")

AGREEMENT = 1e-6  # a row whose answers differ by more is invalid, unless it names another limit
SLOW, MEDIUM = 5.0, 1.0  # seconds: a peer above SLOW runs once, above MEDIUM at most twice
REST = 0.3  # seconds before every run


@dataclass(frozen=True)
class Comparison:
    """One row: our time and the peer's for the same work."""

    job: str
    title: str
    against: str
    ours: tuple[float, ...]  # seconds, each run
    peer: tuple[float, ...]  # seconds, each run, scaled to all rows
    target: float  # the ratio must be at least this
    gap: float  # largest difference between our answer and the peer's
    note: str
    within: float = AGREEMENT  # the largest gap at which the row is valid

    @property
    def ratio(self) -> float:
        """Peer time / our time: how many times faster we are."""
        return min(self.peer) / min(self.ours)

    @property
    def valid(self) -> bool:
        return self.gap <= self.within  # False for NaN too

    @property
    def met(self) -> bool:
        return self.valid and self.ratio >= self.target


@dataclass(frozen=True)
class Limit:
    """One row: a measured quantity that must stay below a limit."""

    job: str
    title: str
    measured: float
    at_most: float
    unit: str

    @property
    def met(self) -> bool:
        return self.measured < self.at_most


@dataclass
class Bench:
    """The argument of a job: sizes, a seeded generator, and two methods that add a row."""

    runs: int = 3
    quick: bool = False
    job: str = ""
    comparisons: list[Comparison] = field(default_factory=list)
    limits: list[Limit] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)  # job: error

    def size(self, full: Size) -> Size:
        return full.shrunk(QUICK) if self.quick else full

    def rng(self) -> np.random.Generator:
        return np.random.default_rng(SEED)

    def compare(
        self,
        title: str,
        against: str,
        *,
        ours: Callable[[], Ours],
        peer: Callable[[], Peer],
        target: float,
        agreement: Callable[[Ours, Peer], float],
        note: str = "",
        within: float = AGREEMENT,
    ) -> tuple[Ours, Peer]:
        """Time both, interleaved, check that they agree, add the row, return the last results."""
        our_times, peer_times, our_result, peer_result = interleave(ours, peer, self.runs)
        distance = float(agreement(our_result, peer_result))
        times = tuple(our_times), tuple(peer_times)
        row = Comparison(self.job, title, against, *times, target, distance, note, within)
        self.comparisons.append(row)
        print(f"  {title} / {against}: {row.ratio:.3f}, answers within {distance:.1e}", flush=True)
        return our_result, peer_result

    def limit(self, title: str, measured: float, at_most: float, unit: str) -> None:
        """Add a row for a quantity that must be below ``at_most``."""
        self.limits.append(Limit(self.job, title, measured, at_most, unit))
        print(f"  {title}: {measured:.1f} {unit}", flush=True)

    def run(self, names: Iterable[str]) -> None:
        """Run the named jobs; a failure is recorded, and the others continue."""
        for self.job in names:
            print(self.job, flush=True)
            try:
                JOBS[self.job](self)
            except Exception as error:
                logging.exception("job %s failed", self.job)
                self.failures[self.job] = f"{type(error).__name__}: {error}"
            gc.collect()


Job = Callable[[Bench], None]
JOBS: dict[str, Job] = {}


def job(name: str) -> Callable[[Job], Job]:
    """Register a job under ``name``, for ``--only``."""

    def register(function: Job) -> Job:
        JOBS[name] = function
        return function

    return register


def discover() -> None:
    """Import every module of the package, so that its jobs register."""
    for module in pkgutil.iter_modules(benchmarks.__path__):
        if module.name != "__main__":
            importlib.import_module(f"{benchmarks.__name__}.{module.name}")


def gap(a: ArrayLike, b: ArrayLike) -> float:
    """The largest absolute difference; NaN when either holds a NaN."""
    first, second = np.asarray(a), np.asarray(b)
    if first.shape != second.shape:
        raise ValueError(f"answers of different shapes: {first.shape} and {second.shape}")
    return float(np.abs(first - second).max())


def interleave(
    ours: Callable[[], Ours], peer: Callable[[], Peer], runs: int
) -> tuple[list[float], list[float], Ours, Peer]:
    """Run both in turn, ours ``runs`` times and a slow peer less often; returns times and the last results."""
    our_times, peer_times = [], []
    seconds, our_result = timed(ours)
    our_times.append(seconds)
    seconds, peer_result = timed(peer)
    peer_times.append(seconds)
    for turn in range(1, runs):
        seconds, our_result = timed(ours)
        our_times.append(seconds)
        if turn < _peer_runs(peer_times, runs):
            seconds, peer_result = timed(peer)
            peer_times.append(seconds)
    return our_times, peer_times, our_result, peer_result


def timed(function: Callable[[], Result]) -> tuple[float, Result]:
    """Seconds of wall time, and the result.

    Spins for REST seconds first: the BLAS threads of the previous call fall asleep, and the processor does not.
    """
    until = time.perf_counter() + REST
    while time.perf_counter() < until:
        pass
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def _peer_runs(times: list[float], runs: int) -> float:
    fastest = min(times)
    if fastest >= SLOW:
        return 1
    return 2 if fastest >= MEDIUM else math.inf
