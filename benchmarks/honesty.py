"""Is EvidenceClassifier calibrated with few rows, many columns, and unseen values?

    python -m benchmarks.honesty noise --seeds 20 --jobs 2 --cache noise.jsonl
    python -m benchmarks.honesty wide --pima pima.csv --cache wide.jsonl
    python -m benchmarks.honesty small --draws 20 --jobs 2 --cache small.jsonl
    python -m benchmarks.honesty blank --tables heart_c --columns age,thal --seeds 3

    noise    only uninformative features: the model must not be worse than the class prior
    wide     one informative feature, or a real table, among a thousand or more uninformative ones
    small    20 to 400 training rows of real tables, beside NaiveBayes and SoftmaxRegression
    blank    a feature is missing when predicting: as good as a model that was fitted without the feature?

All are scored by log-loss, in nats, on held-out rows: −mean log p(true class), p at least 1e-15. The tables are those
of `benchmarks.accuracy`; of adult, `small` uses the training file. --cache keeps every finished cell in a file of JSON
lines, so that an interrupted run can continue. Use a new file after a change to deciban: a note is printed if cells
were measured with different sources.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import sys
import time
import traceback
import warnings
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

import deciban
from benchmarks import accuracy, report
from benchmarks.accuracy import CLIP, FOLDS, Table
from benchmarks.data import Floats, Ints
from benchmarks.harness import Bench, job
from deciban import _kernels

HELD_OUT = 2_000  # rows of synthetic data
NOISE_ROWS, NOISE_FEATURES, NOISE_SEEDS = (50, 200, 1_000), (5, 50, 500, 2_000), 20
WIDE_ROWS, WIDE_FEATURES, WIDE_SEEDS = 500, 2_000, 5
PIMA_NOISE = 1_000  # columns
SMALL_ROWS, SMALL_DRAWS, SMALL_HELD_OUT = (20, 60, 150, 400), 20, 1_500
BLANK_TABLES = ("adult", "credit_g", "heart_c", "hypothyroid")  # with numbers and categories
ADULT_TRAIN = 32_561  # rows of adult-train.csv, which come first in the table; those of adult-test.csv follow
ADULT_SAMPLE = 8_000  # rows of each of the two files

MAX_MEAN_RATIO, MAX_RATIO, MAX_GAP = 1.02, 1.06, 0.03  # noise
MAX_ABOVE_LOGISTIC, MAX_ABOVE_PIMA = 0.05, 0.02  # wide
MAX_TO_BETTER, MAX_TO_MEAN = 1.03, 1.0  # small
MAX_BLANK = 1.01

Result = dict[str, float]
Labels = NDArray[Any]


@job("honesty")
def honesty(bench: Bench) -> None:
    """A few minutes of each measurement, on small sizes; --quick runs a few cells of each."""
    groups: dict[str, list[Cell]] = {}
    if bench.quick:
        groups["noise"] = noise_cells((50,), (5,), 2)
    else:
        groups["noise"] = noise_cells((50, 200), (5, 50), 5)
        groups["wide"] = wide_cells(1, find_pima(None))
    if not os.environ.get("DECIBAN_DATA"):
        print("  small and blank are skipped: set DECIBAN_DATA to the folder that holds tables/*.csv")
    elif bench.quick:
        groups["small"] = small_cells(("heart_c",), (20,), 2)
        groups["blank"] = blank_cells(("heart_c",), ("age", "thal"))
    else:
        tables = [name for name in accuracy.names_of_tables() if _table(name).is_small]
        groups["small"] = small_cells(tables, (20, 60), 5)
        groups["blank"] = blank_cells(("credit_g", "heart_c"))
    failures = []
    for name, cells in groups.items():
        run = Run(cells, progress=False)
        summary = SUMMARIES[name](run.finished)
        print("\n" + report.table(summary.head, summary.rows) + "\n", flush=True)
        for check in summary.checks:
            bench.limit(check.title, check.scale * check.measured, check.scale * check.at_most, check.unit)
        failures += run.failures
    if failures:
        raise RuntimeError("; ".join(failures))


# Results -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Check:
    """A figure that must not exceed a limit; a ratio of log-losses, or a difference of two."""

    title: str
    measured: float
    at_most: float
    difference: bool = False

    @property
    def met(self) -> bool:
        return self.measured <= self.at_most  # False for NaN too

    @property
    def scale(self) -> float:
        return 1_000.0 if self.difference else 100.0

    @property
    def unit(self) -> str:
        """The unit of the figure times scale, for tables with one decimal."""
        return "mnat" if self.difference else "%"

    def __str__(self) -> str:
        unit = " nats" if self.difference else ""
        met = "met" if self.met else "NOT met"
        return f"{met}: {self.title}: {self.measured:.4f}{unit}, limit {self.at_most:g}{unit}"


@dataclass(frozen=True)
class Summary:
    """The figures of a measurement, and its limits."""

    head: list[str]
    rows: list[list[str]]
    checks: list[Check]

    def __str__(self) -> str:
        return "\n".join([report.table(self.head, self.rows), "", *(f"- {check}" for check in self.checks)])


def _worst(values: Mapping[str, float]) -> tuple[str, float]:
    """The largest value and its name; the first NaN, if there is one."""
    return max(values.items(), key=lambda item: (np.isnan(item[1]), item[1]))


# Cells ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell(ABC):
    """The unit of work of a measurement. Its repr is its key in the cache."""

    @abstractmethod
    def measure(self) -> Result:
        """Fit and evaluate, in this process."""


C = TypeVar("C", bound=Cell)
Results = Mapping[Cell, Result]


def _of(results: Results, kind: type[C]) -> Iterator[tuple[C, Result]]:
    return ((cell, result) for cell, result in results.items() if isinstance(cell, kind))


def _grouped(items: Iterable[tuple[Hashable, Result]]) -> dict[Any, pd.DataFrame]:
    """A frame of results for each name, in the order of first occurrence."""
    groups: dict[Hashable, list[Result]] = defaultdict(list)
    for name, result in items:
        groups[name].append(result)
    return {name: pd.DataFrame(results) for name, results in groups.items()}


def losses(model: Any, X: Any, y: Labels) -> Floats:
    """−log p(true class) of each row."""
    proba = np.asarray(model.predict_proba(X))
    if not np.isfinite(proba).all():
        raise ValueError("a probability is not a number")
    index = {str(level): k for k, level in enumerate(model.classes_)}
    codes = np.array([index[str(label)] for label in y])
    return np.asarray(-np.log(proba[np.arange(len(codes)), codes].clip(CLIP, 1)))


def log_loss(model: Any, X: Any, y: Labels) -> float:
    return float(losses(model, X, y).mean())


@lru_cache(maxsize=2)
def _table(name: str) -> Table:
    return accuracy.read(name)


# noise ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Noise(Cell):
    """Normal features and a fair coin for a label.

    The result holds the held-out log-loss divided by that of the class shares of the training rows (ratio), and the
    distance between `leave_one_out` of the training rows and the held-out log-loss (gap).
    """

    rows: int
    features: int
    seed: int

    def measure(self) -> Result:
        n, rng = self.rows, np.random.default_rng(self.seed)
        X = rng.normal(size=(n + HELD_OUT, self.features))
        y = rng.random(n + HELD_OUT) < 0.5
        model = deciban.EvidenceClassifier().fit(X[:n], y[:n])
        held_out = log_loss(model, X[n:], y[n:])
        share = y[:n].mean()
        prior = -float(np.log(np.where(y[n:], share, 1 - share).clip(CLIP, 1)).mean())
        left_out = model.leave_one_out(X[:n], y[:n]).log_loss
        return {"log_loss": held_out, "prior": prior, "ratio": held_out / prior, "gap": abs(left_out - held_out)}


def noise_cells(rows: Iterable[int], features: Iterable[int], seeds: int) -> list[Cell]:
    features = list(features)
    return [Noise(n, d, seed) for n in rows for d in features for seed in range(seeds)]


def summarise_noise(results: Results) -> Summary:
    """A row for each number of rows and features, with mean and worst over seeds. Limits apply to each row."""
    groups = _grouped(((cell.rows, cell.features), result) for cell, result in _of(results, Noise))
    rows = []
    means, worsts, gaps = {}, {}, {}
    for (n, d), frame in groups.items():
        name = f"{n:,} × {d:,}"
        means[name], worsts[name] = float(frame["ratio"].mean()), float(frame["ratio"].max())
        gaps[name] = float(frame["gap"].mean())
        figures = [f"{value:.4f}" for value in (means[name], worsts[name], gaps[name])]
        rows.append([f"{n:,}", f"{d:,}", str(len(frame)), *figures])
    head = ["rows", "features", "seeds", "mean ratio", "worst ratio", "mean gap of leave_one_out"]
    checks = []
    for title, values, limit in (
        ("mean log-loss / class prior's", means, MAX_MEAN_RATIO),
        ("worst log-loss / class prior's", worsts, MAX_RATIO),
        ("mean distance of leave_one_out from the held-out log-loss", gaps, MAX_GAP),
    ):
        if values:
            name, value = _worst(values)
            checks.append(Check(f"noise, {title}, largest at {name}", value, limit, difference=values is gaps))
    return Summary(head, rows, checks)


# wide ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OneFeature(Cell):
    """y ~ Bernoulli(sigmoid(2·x0)) among normal features, beside scikit-learn's LogisticRegression on x0 alone."""

    seed: int
    rows: int = WIDE_ROWS
    features: int = WIDE_FEATURES

    def measure(self) -> Result:
        n, rng = self.rows, np.random.default_rng(self.seed)
        X = rng.normal(size=(n + HELD_OUT, self.features))
        y = rng.random(n + HELD_OUT) < 1 / (1 + np.exp(-2 * X[:, 0]))
        model = deciban.EvidenceClassifier().fit(X[:n], y[:n])
        alone = LogisticRegression().fit(X[:n, :1], y[:n])
        return {"log_loss": log_loss(model, X[n:], y[n:]), "reference": log_loss(alone, X[n:, :1], y[n:])}


@dataclass(frozen=True)
class Pima(Cell):
    """A fold of the table with and without noise columns; sums of losses, to be pooled over folds."""

    fold: int
    noise: int = PIMA_NOISE
    path: str = field(default="", repr=False)

    def measure(self) -> Result:
        frame = pd.read_csv(self.path)
        rows, y = frame.iloc[:, :-1], frame.iloc[:, -1].to_numpy()
        noise = np.random.default_rng(0).normal(size=(len(y), self.noise))
        wide = pd.concat([rows, pd.DataFrame(noise, columns=[f"noise {j}" for j in range(self.noise)])], axis=1)
        train, test = _fold(y, self.fold)
        sums = []
        for X in (wide, rows):
            model = deciban.EvidenceClassifier().fit(X.iloc[train], y[train])
            sums.append(float(losses(model, X.iloc[test], y[test]).sum()))
        return {"log_loss": sums[0], "reference": sums[1], "held_out": len(test)}


def _fold(y: Labels, fold: int) -> tuple[Ints, Ints]:
    """Training rows and held-out rows of a stratified fold."""
    codes = np.unique(y, return_inverse=True)[1]
    train, test = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(codes, codes))[fold]
    return train, test


def find_pima(path: Path | None) -> Path | None:
    """The given file, or $DECIBAN_DATA/tables/pima.csv; None, with a note, if it does not exist."""
    if path is None:
        path = Path(os.environ.get("DECIBAN_DATA", ".")) / "tables" / "pima.csv"
    if path.exists():
        return path
    print(f"  pima with noise columns is skipped: there is no {path}; use --pima FILE\n", flush=True)
    return None


def wide_cells(seeds: int, pima: Path | None) -> list[Cell]:
    cells: list[Cell] = [OneFeature(seed) for seed in range(seeds)]
    if pima is not None:
        cells += [Pima(fold, path=str(pima)) for fold in range(FOLDS)]
    return cells


def summarise_wide(results: Results) -> Summary:
    """One informative feature: a row for each seed, and the mean, which has a limit. Pima: pooled over folds."""
    rows, checks = [], []

    def add(name: str, ours: float, reference: float) -> float:
        rows.append([name, f"{ours:.4f}", f"{reference:.4f}", f"{ours - reference:+.4f}"])
        return ours - reference

    name = f"one of {WIDE_FEATURES:,} features, {WIDE_ROWS:,} rows"
    one = {cell.seed: result for cell, result in _of(results, OneFeature)}
    for seed, result in one.items():
        add(f"{name}, seed {seed}", result["log_loss"], result["reference"])
    if one:
        frame = pd.DataFrame(one.values())
        above = add(f"{name}, mean", *(float(frame[key].mean()) for key in ("log_loss", "reference")))
        title = "wide, log-loss − that of LogisticRegression on the informative feature, mean over seeds"
        checks.append(Check(title, above, MAX_ABOVE_LOGISTIC, difference=True))
    folds = [result for _, result in _of(results, Pima)]
    if folds:
        total = pd.DataFrame(folds).sum()
        name = f"pima + {PIMA_NOISE:,} noise columns" + ("" if len(folds) == FOLDS else f", {len(folds)} folds only")
        above = add(name, *(float(total[key] / total["held_out"]) for key in ("log_loss", "reference")))
        checks.append(Check(f"wide, {name}, log-loss − without them", above, MAX_ABOVE_PIMA, difference=True))
    return Summary(["data", "EvidenceClassifier", "reference", "difference"], rows, checks)


# small ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Small(Cell):
    """A few random rows of a table to train on, and at most SMALL_HELD_OUT of the others to predict.

    A draw with only one class is repeated. Rows of classes without training rows are not predicted, by any model. All
    models take the table as it is: SoftmaxRegression one-hot encodes categories, and imputes a missing number by the
    mean of its column, with an indicator that it is missing.
    """

    table: str
    rows: int
    draw: int

    def measure(self) -> Result:
        table = _table(self.table)
        X, y = table.rows, table.labels
        if self.table == "adult":
            X, y = X.iloc[:ADULT_TRAIN], y[:ADULT_TRAIN]
        rng = np.random.default_rng(self.draw)
        while True:
            train, test = np.split(rng.permutation(len(y)), [self.rows])
            classes = np.unique(y[train])
            if len(classes) > 1:
                break
        test = test[np.isin(y[test], classes)][:SMALL_HELD_OUT]
        models = {
            "evidence": deciban.EvidenceClassifier(),
            "naive_bayes": deciban.NaiveBayes(),
            "softmax": deciban.SoftmaxRegression(l2=1.0),
        }
        return {
            name: log_loss(model.fit(X.iloc[train], y[train]), X.iloc[test], y[test]) for name, model in models.items()
        }


def small_cells(tables: Iterable[str], rows: Iterable[int], draws: int) -> list[Cell]:
    """A cell for each table, number of rows and draw, where the table has more rows than are trained on."""
    sizes, cells = list(rows), list[Cell]()
    for name in tables:
        available = ADULT_TRAIN if name == "adult" else len(_table(name).labels)
        cells += [Small(name, n, draw) for n in sizes if n < available for draw in range(draws)]
    return cells


def summarise_small(results: Results) -> Summary:
    """A row for each table and number of training rows: means over draws."""
    groups = _grouped(((cell.table, cell.rows), result) for cell, result in _of(results, Small))
    rows, ratios, means = [], {}, []
    for (table, n), frame in groups.items():
        mean = frame[["evidence", "naive_bayes", "softmax"]].mean()
        ours, *others = map(float, mean)
        ratios[f"{table}, {n} rows"] = ratio = ours / min(others)
        means.append(mean)
        rows.append([table, str(n), str(len(frame)), *(f"{value:.4f}" for value in (ours, *others, ratio))])
    head = ["table", "rows", "draws", "EvidenceClassifier", "NaiveBayes", "SoftmaxRegression", "ours / better one"]
    if not means:
        return Summary(head, rows, [])
    ours, naive, softmax = map(float, pd.DataFrame(means).mean())
    rows.append(["mean", "", "", *(f"{value:.4f}" for value in (ours, naive, softmax, ours / min(naive, softmax)))])
    name, value = _worst(ratios)
    above = sum(not ratio <= MAX_TO_BETTER for ratio in ratios.values())
    where = f"largest at {name}, {above} of {len(ratios)} above"
    return Summary(
        head,
        rows,
        [
            Check(f"small, log-loss / the better of NaiveBayes and SoftmaxRegression, {where}", value, MAX_TO_BETTER),
            Check("small, mean log-loss / NaiveBayes's", ours / naive, MAX_TO_MEAN),
            Check("small, mean log-loss / SoftmaxRegression's", ours / softmax, MAX_TO_MEAN),
        ],
    )


# blank ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Split:
    """Training rows and held-out rows of a table."""

    X: pd.DataFrame
    y: Labels
    held_out: pd.DataFrame
    labels: Labels


@lru_cache(maxsize=1)
def _split(name: str, fold: int) -> Split:
    """A stratified fold; for adult, random rows of its training file and of its test file."""
    table = _table(name)
    if name == "adult":
        rng = np.random.default_rng(fold)
        train = rng.choice(ADULT_TRAIN, ADULT_SAMPLE, replace=False)
        test = ADULT_TRAIN + rng.choice(len(table.labels) - ADULT_TRAIN, ADULT_SAMPLE, replace=False)
    else:
        train, test = _fold(table.labels, fold)
    X, y = table.rows, table.labels
    return Split(X.iloc[train], y[train], X.iloc[test], y[test])


@lru_cache(maxsize=1)
def _fitted(name: str, fold: int, seed: int) -> deciban.EvidenceClassifier:
    """The model of all columns, shared by all columns of a split."""
    split = _split(name, fold)
    return deciban.EvidenceClassifier(random_state=seed).fit(split.X, split.y)


@dataclass(frozen=True)
class Blank(Cell):
    """A column is set to missing in the held-out rows, beside a model that was fitted without the column.

    A refit grows another forest, which may be better or worse by chance: several seeds of both models show how much.
    The result holds sums of losses, to be pooled over folds and seeds.
    """

    table: str
    fold: int
    column: str
    seed: int = 0

    def measure(self) -> Result:
        split, model = _split(self.table, self.fold), _fitted(self.table, self.fold, self.seed)
        blanked = split.held_out.copy()
        blanked[self.column] = blanked[self.column].where(np.zeros(len(blanked), bool))
        refitted = deciban.EvidenceClassifier(random_state=self.seed).fit(split.X.drop(columns=self.column), split.y)
        return {
            "complete": float(losses(model, split.held_out, split.labels).sum()),
            "blank": float(losses(model, blanked, split.labels).sum()),
            "without": float(losses(refitted, split.held_out.drop(columns=self.column), split.labels).sum()),
            "missing": int(split.X[self.column].isna().sum()),
            "trained": len(split.y),
            "held_out": len(split.labels),
        }


def blank_cells(tables: Iterable[str], columns: Sequence[str] | None = None, seeds: int = 1) -> list[Cell]:
    """A cell for every column, or the named ones; the columns of a split are adjacent, since they share a model."""
    return [
        Blank(name, fold, str(column), seed)
        for name in tables
        for fold in range(1 if name == "adult" else FOLDS)
        for seed in range(seeds)
        for column in _table(name).rows.columns
        if columns is None or column in columns
    ]


def summarise_blank(results: Results) -> Summary:
    """A row for each column, pooled over folds and seeds, the worst of each table first; each table has a limit."""
    groups = _grouped(((cell.table, cell.column), result) for cell, result in _of(results, Blank))
    ratios: dict[str, dict[str, float]] = defaultdict(dict)
    lines: dict[str, list[tuple[float, list[str]]]] = defaultdict(list)
    for (table, column), frame in groups.items():
        total = frame.sum()
        ratios[table][column] = ratio = float(total["blank"] / total["without"])
        figures = [f"{total[key] / total['held_out']:.4f}" for key in ("complete", "blank", "without")]
        share = total["missing"] / total["trained"]
        missing = f"yes, {100 * share:.1f} %" if share else "no"
        lines[table].append((ratio, [table, column, missing, str(len(frame)), *figures, f"{ratio:.4f}"]))
    head = ["table", "column", "missing in training", "fits", "complete", "blank", "fitted without", "ratio"]
    rows = [row for of_table in lines.values() for _, row in sorted(of_table, key=lambda line: -line[0])]
    checks = []
    for table, values in ratios.items():
        column, value = _worst(values)
        title = f"blank, {table}, log-loss of a missing column / of a fit without it, largest at {column}"
        checks.append(Check(title, value, MAX_BLANK))
    return Summary(head, rows, checks)


SUMMARIES = {
    "noise": summarise_noise,
    "wide": summarise_wide,
    "small": summarise_small,
    "blank": summarise_blank,
}


# Running -------------------------------------------------------------------------------------------------------------


class Cache:
    """Results of finished cells as JSON lines: key, result, and a hash of the sources of deciban."""

    def __init__(self, path: Path | None) -> None:
        self.path, self.sources = path, _sources()
        self.entries: dict[str, tuple[Result, str]] = {}
        if path is None or not path.exists():
            return
        content = path.read_text(encoding="utf-8")
        for line in content.splitlines():
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
                continue  # cut off when a run was interrupted
            self.entries[entry["key"]] = entry["result"], entry["sources"]
        if content and not content.endswith("\n"):
            with path.open("a", encoding="utf-8") as file:
                file.write("\n")

    def get(self, cell: Cell) -> Result | None:
        entry = self.entries.get(repr(cell))
        return None if entry is None else entry[0]

    def put(self, cell: Cell, result: Result) -> None:
        self.entries[repr(cell)] = result, self.sources
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"key": repr(cell), "result": result, "sources": self.sources}) + "\n")

    def sources_of(self, cells: Iterable[Cell]) -> set[str]:
        return {self.entries[key][1] for key in map(repr, cells) if key in self.entries}


def _sources() -> str:
    """A short hash of deciban's Python files and its kernels."""
    paths = sorted(Path(deciban.__file__).parent.rglob("*.py"))
    digest = hashlib.sha256()
    for path in [*paths, Path(_kernels.__file__)]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


class Run:
    """Measures the cells that are not in the cache; a failure is recorded, and the others continue."""

    def __init__(self, cells: Sequence[Cell], path: Path | None = None, jobs: int = 1, progress: bool = True) -> None:
        self.cells, self.cache, self.progress = cells, Cache(path), progress
        self.results: dict[Cell, Result] = {}
        self.failures: list[str] = []
        todo = []
        for cell in cells:
            cached = self.cache.get(cell)
            if cached is None:
                todo.append(cell)
            else:
                self.results[cell] = cached
        if len(todo) < len(cells):
            self._say(f"{len(cells) - len(todo)} of {len(cells)} cells are in {path}")
        for done, (cell, answer, seconds) in enumerate(_measure_all(todo, jobs), 1):
            progress_text = f"[{done}/{len(todo)}] {cell!r}"
            if isinstance(answer, str):
                self.failures.append(f"{cell!r}: {answer.strip().splitlines()[-1]}")
                print(f"{progress_text} FAILED\n{answer}", file=sys.stderr, flush=True)
                continue
            self.results[cell] = answer
            self.cache.put(cell, answer)
            values = ", ".join(f"{name} {value:.4f}" for name, value in answer.items())
            self._say(f"{progress_text}: {values}; {seconds:.1f} s")

    @property
    def finished(self) -> dict[Cell, Result]:
        """Results, in the order of cells."""
        return {cell: self.results[cell] for cell in self.cells if cell in self.results}

    def _say(self, text: str) -> None:
        if self.progress:
            print(text, file=sys.stderr, flush=True)


Answer = tuple[Cell, Result | str, float]


def _measure_all(cells: Sequence[Cell], jobs: int) -> Iterator[Answer]:
    """Measures cells; yields them as they finish."""
    if jobs == 1 or len(cells) < 2:
        with threadpool_limits(limits=1):
            yield from map(_measure, cells)
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_one_thread)
    try:
        futures = [pool.submit(_measure, cell) for cell in cells]
        for future in as_completed(futures):
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _one_thread() -> None:
    """Limits thread pools for the rest of this process."""
    threadpool_limits(limits=1)


def _measure(cell: Cell) -> Answer:
    """The cell, its result or traceback, and seconds."""
    start = time.perf_counter()
    answer: Result | str
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = cell.measure()
    except Exception:
        answer = traceback.format_exc()
    return cell, answer, time.perf_counter() - start


# Command line --------------------------------------------------------------------------------------------------------


def main() -> int:
    """Measures and prints; 1 if a cell failed (a missed limit is only reported)."""
    options = _parse()
    cells = _cells(options)
    if not cells:
        print("There is nothing to measure: do the tables have such columns, and more rows than are trained on?")
        return 1
    run = Run(cells, options.cache, options.jobs)
    print(SUMMARIES[options.measurement](run.finished))
    if len(run.cache.sources_of(run.cells)) > 1:
        print("\nThese cells were measured with different sources of deciban: use a new --cache file.")
    for failure in run.failures:
        print(f"\nFAILED {failure}")
    return int(bool(run.failures))


def _cells(options: argparse.Namespace) -> list[Cell]:
    if options.measurement == "noise":
        return noise_cells(options.rows, options.features, options.seeds)
    if options.measurement == "wide":
        return wide_cells(options.seeds, find_pima(options.pima))
    if options.measurement == "small":
        return small_cells(options.tables, options.rows, options.draws)
    return blank_cells(options.tables, options.columns, options.seeds)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.honesty", description=str(__doc__).partition("\n")[0])
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--jobs", type=int, default=1, metavar="N", help="processes, of one thread each")
    common.add_argument("--cache", type=Path, metavar="FILE.jsonl", help="keep finished cells, and do not repeat them")
    common.add_argument("--quick", action="store_true", help="few cells, unless options ask for more: does it work?")
    parts = parser.add_subparsers(dest="measurement", required=True)

    noise = parts.add_parser("noise", parents=[common], help="only uninformative features")
    noise.add_argument("--rows", type=_numbers, metavar="A,B")
    noise.add_argument("--features", type=_numbers, metavar="A,B")
    noise.add_argument("--seeds", type=int)

    wide = parts.add_parser("wide", parents=[common], help="informative features among many others")
    wide.add_argument("--seeds", type=int)
    wide.add_argument("--pima", type=Path, metavar="FILE.csv", help="with a header, and the label in the last column")

    known = accuracy.names_of_tables() if os.environ.get("DECIBAN_DATA") else []
    small = parts.add_parser("small", parents=[common], help="few training rows")
    small.add_argument("--tables", type=_names, metavar="A,B", help=f"all, or some of: {','.join(known)}")
    small.add_argument("--rows", type=_numbers, metavar="A,B")
    small.add_argument("--draws", type=int)

    blank = parts.add_parser("blank", parents=[common], help="a feature is missing when predicting")
    blank.add_argument("--tables", type=_names, metavar="A,B", help=f"default: {','.join(BLANK_TABLES)}")
    blank.add_argument("--columns", type=_names, metavar="A,B", help="names; default: all")
    blank.add_argument("--seeds", type=int, default=1, help="of the forests; default: 1")

    options = parser.parse_args()
    for name, value in _defaults(options.measurement, options.quick, known).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    if options.measurement in ("small", "blank"):
        if not known:
            parser.error("there are no tables: set DECIBAN_DATA to the folder that holds tables/*.csv")
        if unknown := [name for name in options.tables if name not in known]:
            parser.error(f"{', '.join(unknown)}: not one of {', '.join(known)}")
    return options


def _defaults(measurement: str, quick: bool, known: list[str]) -> dict[str, Any]:
    """Defaults of options; the quick ones take seconds."""
    full: dict[str, dict[str, Any]] = {
        "noise": {"rows": NOISE_ROWS, "features": NOISE_FEATURES, "seeds": NOISE_SEEDS},
        "wide": {"seeds": WIDE_SEEDS},
        "small": {"tables": known, "rows": SMALL_ROWS, "draws": SMALL_DRAWS},
        "blank": {"tables": BLANK_TABLES},
    }
    small: dict[str, dict[str, Any]] = {
        "noise": {"rows": (50,), "features": (5,), "seeds": 2},
        "wide": {"seeds": 1},
        "small": {"tables": ["heart_c"], "rows": (20,), "draws": 2},
        "blank": {"tables": ["heart_c"], "columns": ["age", "thal"]},
    }
    return (small if quick else full)[measurement]


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


def _names(text: str) -> list[str]:
    return text.split(",")


if __name__ == "__main__":
    sys.exit(main())
