"""What a plan for 10¹² rows would cost, from statistics measured here: bytes that travel, and seconds of ``+``.

``python -m benchmarks.scale_sim [--quick]``. Rows cost what they cost anywhere; what grows with a cluster is the sum
of what its partitions come to. So no rows are made: statistics of the shape that the plan has are made, pickled (as
they travel) and added, at sizes that fit one machine, and a line is fitted::

    y = a + b·places + c·classes·places

where a place is a column, a key of a histogram, a value of a column, or a term; the line is then raised until nothing
measured lies above it (large tables leave the cache, so that a place of theirs takes longer). Seconds are a
processor's, so that a busy machine matters little. A vocabulary of 10⁹ terms is cut into shards by a hash of the term,
which are added independently: one whole shard is measured, in a tree of partitions whose terms are Zipf-distributed.
The rest is arithmetic, which is printed.
"""

from __future__ import annotations

import argparse
import pickle
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from benchmarks.report import table
from benchmarks.sizes import SEED
from deciban.data.terms import Terms
from deciban.statistics import Counts, Histogram, Moments, Statistic, Sum, Tokens

CLASSES = (2, 10, 100)
CELLS = 2 * 10**7  # classes × places of a statistic that is made here, at most
LEAF = 20_000  # rows that a statistic of numbers is made of
DOUBLINGS = 26  # times that such a one is added to itself: 10¹² rows have sums that are so much larger
CAP = 2048  # keys of a histogram
DIGITS = 9  # bytes of a term, about as many as words have
NETWORK = 1.25e9  # bytes a second that a worker receives: 10 Gbit/s
WORKERS = (100, 1_000)
FAN_IN = 8  # statistics that one task adds up, as on Dask
GROUPS = (1024, 32, 1)  # sums that partitions are added up to, one after the other, as on Spark
FOR, RUNS = 0.2, 3  # a + is tried for so many seconds, and so many times
AMPLE = 12e9  # bytes of memory that the largest vocabulary needs

Make = Callable[[np.random.Generator, int, int], Statistic]


# Statistics of a shape -----------------------------------------------------------------------------------------------


def moments(rng: np.random.Generator, classes: int, columns: int) -> Moments:
    """With as many words in its sums as those of 10¹² rows have."""
    labels = rng.integers(0, classes, LEAF // columns + 2 * classes).astype(np.int32)
    some, more = (Moments.of(rng.normal(size=(len(labels), columns)), labels, None, classes) for _ in range(2))
    for _ in range(DOUBLINGS):
        some = some + some
    return some + more


def histogram(rng: np.random.Generator, classes: int, keys: int) -> Histogram:
    """Of columns that each have as many keys as a histogram may."""
    columns = max(1, keys // CAP)
    labels = rng.integers(0, classes, 4 * CAP).astype(np.int32)
    return Histogram.of(rng.normal(size=(len(labels), columns)), labels, None, classes, cap=CAP)


def counts(rng: np.random.Generator, classes: int, values: int) -> Counts:
    """One column of text; of twice as many values this partition has half."""
    seen = np.sort(rng.choice(2 * values, values, replace=False))
    return Counts((tuple(f"value {i:09d}" for i in seen.tolist()),), _some(rng, classes, values))


def tokens(rng: np.random.Generator, classes: int, terms: int) -> Tokens:
    """Half of twice as many terms."""
    seen = np.flatnonzero(rng.random(2 * terms) < 0.5)
    return Tokens(_terms(seen), _some(rng, classes, len(seen)), Sum.of(np.ones(classes)))


def _some(rng: np.random.Generator, classes: int, places: int) -> Sum:
    return Sum.of(rng.integers(1, 1000, (classes, places)))


def _terms(numbers: NDArray[np.int64]) -> Terms:
    """Numbers, which ascend, as terms."""
    digits = np.empty((len(numbers), DIGITS), np.uint8)
    rest = numbers.copy()
    for place in reversed(range(DIGITS)):
        rest, digits[:, place] = np.divmod(rest, 10)
    return Terms((digits + np.uint8(ord("0"))).ravel(), DIGITS * np.arange(1, len(numbers) + 1))


@dataclass(frozen=True)
class Kind:
    """A family's statistic, at growing sizes."""

    name: str
    place: str  # what there are more and more of
    make: Make
    sizes: tuple[int, ...]


KINDS = (
    Kind("Gaussian, Bernoulli: Moments", "column", moments, (60, 120, 240, 480)),
    Kind("Binned: Histogram", "key", histogram, tuple(CAP * columns for columns in (4, 16, 64))),
    Kind("Categorical: Counts", "value", counts, (10, 1_000, 10**5, 10**6)),
    Kind("Text: Tokens", "term", tokens, (10**4, 10**5, 10**6, 10**7)),
)
MORE_TERMS = 3 * 10**7  # if there is memory for them


# What they measure ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """One statistic, and the sum of two like it."""

    classes: int
    places: int
    bytes: float  # as pickled
    travel: float  # seconds, to pickle and to unpickle it
    merge: float  # seconds of +


def measure(kind: Kind, classes: int, size: int) -> Measured:
    a, b = (kind.make(np.random.default_rng([SEED, i]), classes, size) for i in range(2))
    sent = pickle.dumps(a, protocol=5)
    travel = _fastest(lambda: pickle.loads(pickle.dumps(a, protocol=5)))
    return Measured(classes, _places(a), len(sent), travel, _fastest(lambda: a + b))


def _places(statistic: Statistic) -> int:
    match statistic:
        case Moments():
            return statistic.count.shape[1]
        case Histogram():
            return sum(map(len, statistic.keys))
        case Counts():
            return statistic.table.shape[1]
        case Tokens():
            return len(statistic.terms)
    raise TypeError(type(statistic).__name__)


def _fastest(work: Callable[[], object]) -> float:
    """Seconds of a processor, the least of as many runs as there is time for."""
    taken: list[float] = []
    until = time.perf_counter() + FOR
    while len(taken) < RUNS or time.perf_counter() < until:
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


@dataclass(frozen=True)
class Line:
    """y = a + b·places + c·classes·places, raised so that nothing that was measured lies above it."""

    a: float
    b: float
    c: float
    off: float  # how far a measured value is below the line, relative to itself, at most

    @classmethod
    def fitted(cls, measured: Sequence[Measured], what: str) -> Line:
        """Least relative squares, no coefficient below 0."""
        y = np.array([getattr(m, what) for m in measured])
        x = np.array([[1.0, m.places, m.classes * m.places] for m in measured])
        scale = np.abs(x).max(axis=0)
        solution, _ = nnls(x / scale / y[:, np.newaxis], np.ones(len(y)))
        solution /= scale
        solution *= (y / (x @ solution)).max()
        a, b, c = solution.tolist()
        return cls(a, b, c, float((x @ solution / y).max() - 1))

    def at(self, classes: int, places: float) -> float:
        return self.a + self.b * places + self.c * classes * places


@dataclass(frozen=True)
class Lines:
    bytes: Line
    travel: Line
    merge: Line

    @classmethod
    def fitted(cls, measured: Sequence[Measured]) -> Lines:
        return cls(*(Line.fitted(measured, what) for what in ("bytes", "travel", "merge")))


def lines_of(quick: bool) -> dict[str, Lines]:
    """Measures every family, and prints what it finds."""
    cells = CELLS // 100 if quick else CELLS
    rows, lines = [], {}
    for kind in KINDS:
        sizes = kind.sizes
        if kind.make is tokens and not quick and _memory() > AMPLE:
            sizes = (*sizes, MORE_TERMS)
        most = {classes: (3 * cells if classes == CLASSES[0] else cells) for classes in CLASSES}
        shapes = [(k, n) for k in CLASSES for n in sizes if k * n <= most[k]]
        measured = [measure(kind, *shape) for shape in shapes]
        for m in measured:
            each = m.bytes / m.places / m.classes
            rows.append([kind.name, str(m.classes), f"{m.places:,}", f"{m.bytes:,.0f}", f"{each:.1f}", *_seconds(m)])
        lines[kind.name] = Lines.fitted(measured)
    head = ["statistic", "classes", "places", "bytes", "per cell", "travel s", "+ s"]
    print(table(head, rows), end="\n\n")
    print(
        table(["statistic", "y", "a", "b, per place", "c, per class and place", "above by at most"], _line_rows(lines))
    )
    return lines


def _seconds(m: Measured) -> list[str]:
    return [f"{m.travel:.5f}", f"{m.merge:.5f}"]


def _line_rows(lines: dict[str, Lines]) -> list[list[str]]:
    rows = []
    for kind in KINDS:
        own = lines[kind.name]
        for what, unit, by in (("bytes", "bytes", 1.0), ("travel", "travel, ns", 1e9), ("merge", "+, ns", 1e9)):
            line = getattr(own, what)
            cells = [f"{value * by:,.1f}" for value in (line.a, line.b, line.c)]
            rows.append([f"{kind.name}, a {kind.place}", unit, *cells, f"{line.off:.0%}"])
    return rows


def _memory() -> float:
    """Bytes that are free; 0 if nobody knows."""
    info = Path("/proc/meminfo")
    words = info.read_text(encoding="ascii").partition("MemAvailable:")[2].split() if info.exists() else []
    return float(words[0]) * 1024 if words else 0.0


# A shard of the vocabulary -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Level:
    """One level of the tree: what each sum comes to."""

    sums: int
    terms: float
    bytes: float
    merge: float  # seconds, for each +


def shard(terms: int, leaves: int, draws: int, classes: int) -> list[Level]:
    """Leaves of Zipf-distributed terms, added two by two up to one, which is a whole shard."""
    rng = np.random.default_rng(SEED)
    ranks = np.arange(1, terms + 1)
    chances = np.cumsum(1.0 / ranks)
    places = rng.permutation(terms)  # a frequent term may be anywhere in the order
    layer = []
    for _ in range(leaves):
        drawn = places[np.searchsorted(chances, rng.random(draws) * chances[-1])]
        seen, often = np.unique(drawn, return_counts=True)
        spread = rng.binomial(often, 1 / classes, (classes, len(seen)))
        spread[rng.integers(0, classes, len(seen)), np.arange(len(seen))] += 1
        layer.append(Tokens(_terms(seen), Sum.of(spread), Sum.of(np.ones(classes))))
    levels = [_level(layer, 0.0)]
    while len(layer) > 1:
        start = time.process_time()
        layer = [a + b for a, b in zip(layer[::2], layer[1::2], strict=True)]
        levels.append(_level(layer, (time.process_time() - start) / len(layer)))
    return levels


def _level(layer: Sequence[Tokens], merge: float) -> Level:
    terms, size = (np.mean([f(t) for t in layer]) for f in (lambda t: len(t.terms), _pickled))
    return Level(len(layer), float(terms), float(size), merge)


def _pickled(statistic: Statistic) -> int:
    return len(pickle.dumps(statistic, protocol=5))


# The plan ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """Rows in partitions, and how many places each family has."""

    rows: float
    partition: float  # rows of one
    places: dict[str, float]  # by the statistic's name

    @property
    def partitions(self) -> float:
        return self.rows / self.partition


NUMBERS, BINNED, CATEGORIES, TEXT = (kind.name for kind in KINDS)
PLAN = Plan(
    rows=1e12,
    partition=1e6,
    places={
        NUMBERS: 60 + 10,  # numbers, and booleans
        BINNED: 60 * CAP,
        CATEGORIES: 40 * 10 + 25 * 1_000 + 5 * 1e6,  # 70 columns
    },
)
VOCABULARY, SHARDS = 1e9, 1024
HASH_BITS = 24


@dataclass(frozen=True)
class Cost:
    """Of one statistic, all families together."""

    bytes: float
    travel: float
    merge: float

    @classmethod
    def of(cls, lines: dict[str, Lines], classes: int, places: dict[str, float]) -> Cost:
        sizes = [(lines[name], n) for name, n in places.items()]
        at = (sum(getattr(own, what).at(classes, n) for own, n in sizes) for what in ("bytes", "travel", "merge"))
        return cls(*at)

    @property
    def each(self) -> float:
        """Seconds for one more statistic: it is received, unpickled and added."""
        return self.bytes / NETWORK + self.travel + self.merge


def tree(cost: Cost, partitions: float, workers: int, fan_in: int = FAN_IN) -> tuple[float, float, list[float]]:
    """Bytes over the network and seconds, in all and by level; every sum is taken to be as large as the last."""
    moved, levels, left = 0.0, [], partitions
    while left > 1:
        tasks = np.ceil(left / fan_in)
        in_turn = np.ceil(tasks / workers)
        levels.append(float(in_turn * min(fan_in, left) * cost.each))
        moved += left * cost.bytes
        left = tasks
    return moved, sum(levels), levels


def shuffles(cost: Cost, partitions: float, workers: int) -> tuple[float, float]:
    """Bytes and seconds when partitions are added up to so many sums, these to fewer, and so on."""
    left, moved, seconds = partitions, 0.0, 0.0
    for groups in GROUPS:
        seconds += np.ceil(groups / workers) * left / groups * cost.each
        moved, left = moved + left * cost.bytes, groups
    return moved, seconds


def at_the_worker(cost: Cost, partitions: float, workers: int) -> tuple[float, float]:
    """Bytes and seconds when each worker adds its own partitions first, which needs no network, then a tree."""
    moved, seconds, _ = tree(cost, workers, workers)
    return moved, seconds + partitions / workers * cost.merge


def show_plan(lines: dict[str, Lines]) -> None:
    """The table: 10¹² rows, 200 columns."""
    rows = []
    for classes in CLASSES:
        for title, places in _shapes().items():
            cost = Cost.of(lines, classes, places)
            for workers in WORKERS:
                ways = {
                    f"tree, {FAN_IN} at a time": tree(cost, PLAN.partitions, workers)[:2],
                    f"shuffles, to {', '.join(map(str, GROUPS))}": shuffles(cost, PLAN.partitions, workers),
                    "each worker first, then a tree": at_the_worker(cost, PLAN.partitions, workers),
                }
                for way, (moved, seconds) in ways.items():
                    shape = [title, str(classes), f"{workers:,}", way]
                    rows.append([*shape, _short(cost.bytes), _short(moved), _long(seconds)])
    print(f"\n{PLAN.rows:.0e} rows in {PLAN.partitions:.0e} partitions, 200 columns:\n")
    print(table(["columns", "classes", "workers", "how", "a statistic", "over the network", "adding up"], rows))
    cost = Cost.of(lines, 2, _shapes()["without 5 of 10⁶ values"])
    _, _, levels = tree(cost, PLAN.partitions, WORKERS[-1])
    print(f"\nlevels of the tree, 2 classes, {WORKERS[-1]:,} workers: " + ", ".join(map(_long, levels)))
    print(f"one step: {_short(cost.bytes)} at 10 Gbit/s {_long(cost.bytes / NETWORK)}, ", end="")
    print(f"pickled and unpickled {_long(cost.travel)}, added {_long(cost.merge)}")


def _shapes() -> dict[str, dict[str, float]]:
    narrow = {**PLAN.places, CATEGORIES: PLAN.places[CATEGORIES] - 5 * 1e6}
    return {"without 5 of 10⁶ values": narrow, "all": PLAN.places}


@dataclass(frozen=True)
class Shards:
    """A vocabulary in shards, each added up as the one that was measured."""

    levels: list[Level]
    travel: float  # seconds a byte, to pickle and unpickle

    @property
    def whole(self) -> Level:
        return self.levels[-1]

    @property
    def bytes(self) -> float:
        """The bytes of the whole vocabulary."""
        return self.whole.bytes / self.whole.terms * VOCABULARY

    def merging(self, partitions: float) -> float:
        """Seconds to add up so many partitions, all shards: in trees as deep as the measured one, then whole ones."""
        trees = partitions / self.levels[0].sums
        by_tree = sum(level.sums * level.merge for level in self.levels[1:])
        of_vocabulary = VOCABULARY / self.whole.terms
        return of_vocabulary * (trees * by_tree + max(trees - 1, 0.0) * self.whole.merge)

    def by_shard(self, partitions: float, workers: int) -> tuple[float, float, float]:
        """Every partition sends each shard to its owner: bytes over the network, seconds, bytes that a worker holds."""
        moved = partitions * self.levels[0].bytes / self.whole.terms * VOCABULARY
        seconds = (self.merging(partitions) + moved * (1 / NETWORK + self.travel)) / workers
        return moved, seconds, self.bytes / workers

    def at_the_worker(self, partitions: float, workers: int) -> tuple[float, float, float]:
        """Every worker adds up its own partitions, then sends each shard to its owner, who adds a whole one of each."""
        moved = workers * self.bytes
        last = VOCABULARY / self.whole.terms * self.whole.merge  # of two whole vocabularies
        seconds = self.merging(partitions / workers) + self.bytes * (1 / NETWORK + self.travel) + last
        return moved, seconds, self.bytes


def show_vocabulary(lines: dict[str, Lines], quick: bool) -> None:
    """10⁹ terms in shards, and the bounded alternative."""
    whole = int(VOCABULARY / SHARDS)
    terms, leaves = (whole // 50, 16) if quick else (whole, 64)
    levels = shard(terms, leaves, draws=terms // 2, classes=2)
    print(f"\none shard, {terms:,} terms, {leaves} partitions of {terms // 2:,} words of it, 2 classes:\n")
    cells = [[str(v.sums), f"{v.terms:,.0f}", _short(v.bytes), f"{v.merge:.4f}"] for v in levels]
    print(table(["sums", "terms of each", "bytes of each", "+ s"], cells))
    text = lines[TEXT]
    shards = Shards(levels, text.travel.at(2, VOCABULARY) / text.bytes.at(2, VOCABULARY))
    rows = []
    for workers in WORKERS:
        ways = {"each shard to its owner": shards.by_shard, "each worker first": shards.at_the_worker}
        for way, cost in ways.items():
            moved, seconds, held = cost(PLAN.partitions, workers)
            rows.append([way, f"{workers:,}", _short(held), _short(moved), _long(seconds)])
    print(f"\n{VOCABULARY:.0e} terms in {SHARDS} shards, {PLAN.partitions:.0e} partitions, 2 classes:\n")
    print(table(["how", "workers", "a worker holds", "over the network", "adding up"], rows), end="\n\n")
    vocabularies = {
        f"{VOCABULARY:.0e} terms": VOCABULARY,
        f"a shard of {SHARDS}": VOCABULARY / SHARDS,
        f"hash_bits={HASH_BITS}, at most": 2.0**HASH_BITS,
    }
    rows = [
        [title, str(classes), _short(text.bytes.at(classes, n)), _long(text.merge.at(classes, n))]
        for title, n in vocabularies.items()
        for classes in CLASSES
    ]
    print(table(["vocabulary", "classes", "a statistic", "one +"], rows))


# In words ------------------------------------------------------------------------------------------------------------


def _short(size: float) -> str:
    """Bytes.

    >>> _short(2.5e9)
    '2.5 GB'
    """
    for unit, by in (("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= by:
            return f"{size / by:.3g} {unit}"
    return f"{size:.0f} B"


def _long(seconds: float) -> str:
    for unit, by in (("days", 86_400.0), ("h", 3_600.0), ("min", 60.0), ("s", 1.0), ("ms", 1e-3)):
        if seconds >= by:
            return f"{seconds / by:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale_sim", description=str(__doc__).partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes: does everything work?")
    options = parser.parse_args(arguments)
    lines = lines_of(options.quick)
    show_plan(lines)
    show_vocabulary(lines, options.quick)
    return 0


if __name__ == "__main__":
    sys.exit(main())
