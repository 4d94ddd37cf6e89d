"""The cost of summing statistics of 10¹² rows, estimated from measurements: bytes on the network, seconds of ``+``.

``python -m benchmarks.scale_sim [--quick]``. Reading rows costs the same on any cluster; what grows with a cluster is
the sum of the partitions' statistics. So no rows are made: statistics of the plan's shape are made, pickled (as they
travel) and added, at sizes that fit one machine, and a line is fitted::

    y = a + b·places + c·classes·places

where a place is a column, a key of a histogram, a value of a column, or a term; the line is then raised until no
measurement lies above it (large tables do not fit the cache, so that their places take longer). Seconds are CPU time,
which depends little on other load. A vocabulary of 10⁹ terms is cut into shards by a hash of the term, which are added
independently: one whole shard is measured, in a tree of partitions whose terms are Zipf-distributed. The rest is
arithmetic, which is printed.
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
CELLS = 2 * 10**7  # limit of classes × places of a measured statistic
LEAF = 20_000  # rows of a statistic of numbers
DOUBLINGS = 26  # times that it is added to itself, for sums as large as those of 10¹² rows
CAP = 2048  # keys of a histogram
DIGITS = 9  # bytes of a term, about as long as a word
NETWORK = 1.25e9  # bytes per second that a worker receives: 10 Gbit/s
WORKERS = (100, 1_000)
FAN_IN = 8  # statistics that one task adds, as on Dask
GROUPS = (1024, 32, 1)  # sums after each shuffle, as on Spark
FOR, RUNS = 0.2, 3  # minimum seconds and runs of each timing
AMPLE = 12e9  # bytes of memory that the largest vocabulary needs

Make = Callable[[np.random.Generator, int, int], Statistic]


# Statistics of a shape -----------------------------------------------------------------------------------------------


def moments(rng: np.random.Generator, classes: int, columns: int) -> Moments:
    """Moments whose exact sums have as many words as those of 10¹² rows."""
    labels = rng.integers(0, classes, LEAF // columns + 2 * classes).astype(np.int32)
    some, more = (Moments.of(rng.normal(size=(len(labels), columns)), labels, None, classes) for _ in range(2))
    for _ in range(DOUBLINGS):
        some = some + some
    return some + more


def histogram(rng: np.random.Generator, classes: int, keys: int) -> Histogram:
    """Histograms of columns that each have CAP keys."""
    columns = max(1, keys // CAP)
    labels = rng.integers(0, classes, 4 * CAP).astype(np.int32)
    return Histogram.of(rng.normal(size=(len(labels), columns)), labels, None, classes, cap=CAP)


def counts(rng: np.random.Generator, classes: int, values: int) -> Counts:
    """Counts of one column of text, with half of the 2·values values that occur in all partitions."""
    seen = np.sort(rng.choice(2 * values, values, replace=False))
    return Counts((tuple(f"value {i:09d}" for i in seen.tolist()),), _random_counts(rng, classes, values))


def tokens(rng: np.random.Generator, classes: int, terms: int) -> Tokens:
    """Counts of half of the 2·terms terms that occur in all partitions."""
    seen = np.flatnonzero(rng.random(2 * terms) < 0.5)
    return Tokens(_terms(seen), _random_counts(rng, classes, len(seen)), Sum.of(np.ones(classes)))


def _random_counts(rng: np.random.Generator, classes: int, places: int) -> Sum:
    return Sum.of(rng.integers(1, 1000, (classes, places)))


def _terms(numbers: NDArray[np.int64]) -> Terms:
    """Ascending numbers as terms of DIGITS digits."""
    digits = np.empty((len(numbers), DIGITS), np.uint8)
    rest = numbers.copy()
    for place in reversed(range(DIGITS)):
        rest, digits[:, place] = np.divmod(rest, 10)
    return Terms((digits + np.uint8(ord("0"))).ravel(), DIGITS * np.arange(1, len(numbers) + 1))


@dataclass(frozen=True)
class Kind:
    """The statistic of a family, and the sizes to measure."""

    name: str
    place: str  # what a size counts
    make: Make
    sizes: tuple[int, ...]


KINDS = (
    Kind("Gaussian, Bernoulli: Moments", "column", moments, (60, 120, 240, 480)),
    Kind("Binned: Histogram", "key", histogram, tuple(CAP * columns for columns in (4, 16, 64))),
    Kind("Categorical: Counts", "value", counts, (10, 1_000, 10**5, 10**6)),
    Kind("Text: Tokens", "term", tokens, (10**4, 10**5, 10**6, 10**7)),
)
MORE_TERMS = 3 * 10**7  # if there is memory for them


# Measurements --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """The cost of one statistic, and of the sum of two."""

    classes: int
    places: int
    bytes: float  # as pickled
    travel: float  # seconds to pickle and unpickle it
    merge: float  # seconds of +


def measure(kind: Kind, classes: int, size: int) -> Measured:
    a, b = (kind.make(np.random.default_rng([SEED, i]), classes, size) for i in range(2))
    pickled = pickle.dumps(a, protocol=5)
    travel = _fastest(lambda: pickle.loads(pickle.dumps(a, protocol=5)))
    return Measured(classes, _places(a), len(pickled), travel, _fastest(lambda: a + b))


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
    """CPU seconds: the minimum over at least RUNS runs and FOR seconds."""
    times: list[float] = []
    until = time.perf_counter() + FOR
    while len(times) < RUNS or time.perf_counter() < until:
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


@dataclass(frozen=True)
class Line:
    """y = a + b·places + c·classes·places, raised so that no measurement lies above it."""

    a: float
    b: float
    c: float
    off: float  # the largest distance of a measurement below the line, relative to the measurement

    @classmethod
    def fitted(cls, measured: Sequence[Measured], quantity: str) -> Line:
        """Least squares of relative errors, with coefficients ≥ 0."""
        y = np.array([getattr(m, quantity) for m in measured])
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
        return cls(*(Line.fitted(measured, quantity) for quantity in ("bytes", "travel", "merge")))


def lines_of(quick: bool) -> dict[str, Lines]:
    """Measures every family, and prints the measurements and their lines."""
    cells = CELLS // 100 if quick else CELLS
    rows, lines = [], {}
    for kind in KINDS:
        sizes = kind.sizes
        if kind.make is tokens and not quick and _memory() > AMPLE:
            sizes = (*sizes, MORE_TERMS)
        limits = {classes: (3 * cells if classes == CLASSES[0] else cells) for classes in CLASSES}
        shapes = [(k, n) for k in CLASSES for n in sizes if k * n <= limits[k]]
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
        for quantity, unit, scale in (("bytes", "bytes", 1.0), ("travel", "travel, ns", 1e9), ("merge", "+, ns", 1e9)):
            line = getattr(lines[kind.name], quantity)
            cells = [f"{value * scale:,.1f}" for value in (line.a, line.b, line.c)]
            rows.append([f"{kind.name}, a {kind.place}", unit, *cells, f"{line.off:.0%}"])
    return rows


def _memory() -> float:
    """Bytes of available memory; 0 if unknown."""
    info = Path("/proc/meminfo")
    words = info.read_text(encoding="ascii").partition("MemAvailable:")[2].split() if info.exists() else []
    return float(words[0]) * 1024 if words else 0.0


# A shard of the vocabulary -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Level:
    """One level of the tree: the number of sums, and the mean size of each."""

    sums: int
    terms: float
    bytes: float
    merge: float  # seconds per +


def shard(terms: int, leaves: int, draws: int, classes: int) -> list[Level]:
    """Adds leaves of Zipf-distributed terms in a binary tree, whose root is a whole shard."""
    rng = np.random.default_rng(SEED)
    ranks = np.arange(1, terms + 1)
    cumulative = np.cumsum(1.0 / ranks)
    places = rng.permutation(terms)  # frequent terms are anywhere in the alphabet
    layer = []
    for _ in range(leaves):
        drawn = places[np.searchsorted(cumulative, rng.random(draws) * cumulative[-1])]
        seen, times = np.unique(drawn, return_counts=True)
        by_class = rng.binomial(times, 1 / classes, (classes, len(seen)))
        by_class[rng.integers(0, classes, len(seen)), np.arange(len(seen))] += 1
        layer.append(Tokens(_terms(seen), Sum.of(by_class), Sum.of(np.ones(classes))))
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
    """Rows in partitions, and the number of places of each family."""

    rows: float
    partition: float  # rows per partition
    places: dict[str, float]  # by the name of the statistic

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
    """The cost of the statistics of all families."""

    bytes: float
    travel: float
    merge: float

    @classmethod
    def of(cls, lines: dict[str, Lines], classes: int, places: dict[str, float]) -> Cost:
        def total(quantity: str) -> float:
            return sum(float(getattr(lines[name], quantity).at(classes, n)) for name, n in places.items())

        return cls(total("bytes"), total("travel"), total("merge"))

    @property
    def each(self) -> float:
        """Seconds per statistic: to receive, unpickle and add it."""
        return self.bytes / NETWORK + self.travel + self.merge


def tree(cost: Cost, partitions: float, workers: int, fan_in: int = FAN_IN) -> tuple[float, float, list[float]]:
    """Bytes over the network, seconds, and seconds by level, if every sum is as large as the last."""
    moved, levels, left = 0.0, [], partitions
    while left > 1:
        tasks = np.ceil(left / fan_in)
        rounds = np.ceil(tasks / workers)
        levels.append(float(rounds * min(fan_in, left) * cost.each))
        moved += left * cost.bytes
        left = tasks
    return moved, sum(levels), levels


def shuffles(cost: Cost, partitions: float, workers: int) -> tuple[float, float]:
    """Bytes and seconds of shuffles that each add statistics to fewer sums."""
    left, moved, seconds = partitions, 0.0, 0.0
    for groups in GROUPS:
        seconds += np.ceil(groups / workers) * left / groups * cost.each
        moved, left = moved + left * cost.bytes, groups
    return moved, seconds


def at_the_worker(cost: Cost, partitions: float, workers: int) -> tuple[float, float]:
    """Bytes and seconds if each worker adds its own partitions first, without the network, and then a tree."""
    moved, seconds, _ = tree(cost, workers, workers)
    return moved, seconds + partitions / workers * cost.merge


def show_plan(lines: dict[str, Lines]) -> None:
    """Prints the cost of 10¹² rows of 200 columns."""
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
    """A vocabulary in shards, each as costly as the measured one."""

    levels: list[Level]
    travel: float  # seconds per byte to pickle and unpickle

    @property
    def whole(self) -> Level:
        return self.levels[-1]

    @property
    def bytes(self) -> float:
        """The bytes of the whole vocabulary."""
        return self.whole.bytes / self.whole.terms * VOCABULARY

    def merging(self, partitions: float) -> float:
        """Seconds to add all shards of the partitions: in trees like the measured one, whose roots are then added."""
        trees = partitions / self.levels[0].sums
        per_tree = sum(level.sums * level.merge for level in self.levels[1:])
        shards = VOCABULARY / self.whole.terms
        return shards * (trees * per_tree + max(trees - 1, 0.0) * self.whole.merge)

    def by_shard(self, partitions: float, workers: int) -> tuple[float, float, float]:
        """Every partition sends each shard to its worker: bytes over the network, seconds, bytes per worker."""
        moved = partitions * self.levels[0].bytes / self.whole.terms * VOCABULARY
        seconds = (self.merging(partitions) + moved * (1 / NETWORK + self.travel)) / workers
        return moved, seconds, self.bytes / workers

    def at_the_worker(self, partitions: float, workers: int) -> tuple[float, float, float]:
        """The same, if every worker adds its own partitions first, and then sends each shard to its worker."""
        moved = workers * self.bytes
        last = VOCABULARY / self.whole.terms * self.whole.merge  # + of two whole vocabularies
        seconds = self.merging(partitions / workers) + self.bytes * (1 / NETWORK + self.travel) + last
        return moved, seconds, self.bytes


def show_vocabulary(lines: dict[str, Lines], quick: bool) -> None:
    """Prints the cost of 10⁹ terms in shards, and of hashed terms."""
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
        ways = {"each shard to its worker": shards.by_shard, "each worker first": shards.at_the_worker}
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


# Formatting ----------------------------------------------------------------------------------------------------------


def _short(size: float) -> str:
    """Bytes with a unit.

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
