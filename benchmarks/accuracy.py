"""EvidenceClassifier beside peers on real tables: log-loss, AUC, calibration and time.

    python -m benchmarks.accuracy --tables car,iris --models evidence,logistic
    python -m benchmarks.accuracy --quick --cache peers.json

The tables are the csv files in $DECIBAN_DATA/tables, the label in the last column. Every model takes them as they are,
text and missing values included; what a peer needs first (imputing, scaling, encoding) is part of its fit, and timed.
All have the same folds, and are evaluated by the probabilities of held-out rows:

    log-loss    −mean log p(true class), p at least 1e-15
    AUC         of the second of two classes; of more, the mean over classes, each against all others
    ECE         Σ rows·|right − p| / Σ rows over 15 equally wide bins of p, the largest probability of a row
    seconds     of the fits and predictions of all folds
"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import deciban
from benchmarks import report
from benchmarks.data import Floats, Ints
from benchmarks.harness import Bench, job, timed

FOLDS = 5
FEWEST = 5  # rows of a class that is kept: one for each fold
CLIP = 1e-15
BINS = 15
MOST_TIME = {"CatBoost": 0.05, "LogisticRegression": 2.0}  # of a peer's
QUICK_ROWS = 5_000  # --quick takes the tables with fewer
SLOW = frozenset({("catboost", "letter"), ("ebm", "letter")})  # not in the job: boosting of 26 classes, very long


@job("accuracy")
def accuracy(bench: Bench) -> None:
    """All installed models, on all tables: a lower loss than each, in 5 % of CatBoost's time, twice logistic's."""
    if not os.environ.get("DECIBAN_DATA"):
        print("  skipped: DECIBAN_DATA does not say where the tables are")
        return
    tables = [read(name) for name in names_of_tables()]
    comparison = Comparison(installed(MODELS), [table for table in tables if not bench.quick or table.is_small])
    comparison.run(Cache(None), leave_out=SLOW)
    print("\n" + comparison.text(), flush=True)
    n = len(comparison.common)
    for title, part in comparison.compared("log_loss").items():
        bench.limit(f"log-loss of EvidenceClassifier, {n} tables, beside {title}", 100 * part, 100, "%")
    for title, part in comparison.compared("seconds").items():
        if title in MOST_TIME:
            most = 100 * MOST_TIME[title]
            bench.limit(f"seconds of EvidenceClassifier, {n} tables, beside {title}", 100 * part, most, "%")
    if comparison.failures:
        raise RuntimeError("; ".join(comparison.failures))


# The tables ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """Rows as a user has them, and their labels, of which each occurs FEWEST times or more."""

    name: str
    rows: pd.DataFrame
    labels: NDArray[Any]

    @property
    def is_small(self) -> bool:
        return len(self.labels) < QUICK_ROWS

    @property
    def cost(self) -> int:
        """Small ones come first; many classes take boosting as long as many rows."""
        return len(self.labels) * len(np.unique(self.labels))


def names_of_tables() -> list[str]:
    """adult is published in two files, and is one table here."""
    return sorted({path.stem.removesuffix("-train").removesuffix("-test") for path in _folder().glob("*.csv")})


def read(name: str) -> Table:
    """An empty cell is missing, except in adult, which has no header and writes "?"."""
    if name == "adult":
        frame = pd.concat([_read_adult("train"), _read_adult("test")], ignore_index=True)
    else:
        frame = pd.read_csv(_folder() / f"{name}.csv", keep_default_na=False, na_values=[""])
    labels = frame.iloc[:, -1]
    kept = labels.map(labels.value_counts()) >= FEWEST
    return Table(name, frame.loc[kept].iloc[:, :-1].reset_index(drop=True), labels[kept].to_numpy())


def _read_adult(part: str) -> pd.DataFrame:
    path = _folder() / f"adult-{part}.csv"
    frame = pd.read_csv(path, header=None, skipinitialspace=True, keep_default_na=False, na_values=["?"])
    frame.columns = [f"column {j}" for j in range(frame.shape[1])]
    return frame.assign(**{frame.columns[-1]: frame.iloc[:, -1].str.removesuffix(".")})


def _folder() -> Path:
    return Path(os.environ["DECIBAN_DATA"]) / "tables"


# The models ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Model:
    name: str  # for --models
    title: str  # of its column
    package: str  # that it needs, and whose version a kept result is of
    make: Callable[[], Any]  # a model that is not fitted; imports happen here, before the clock runs

    @property
    def ours(self) -> bool:
        return self.package == "deciban"


def _logistic() -> Any:
    numbers = make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler())
    text = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    parts = [
        ("numbers", numbers, make_column_selector(dtype_include="number")),
        ("text", text, make_column_selector(dtype_exclude="number")),
    ]
    return make_pipeline(ColumnTransformer(parts), LogisticRegression(max_iter=1000))


class _HistGradientBoosting:
    """It codes columns that pandas calls categories. Missing values are fine, a column of nothing else is an error."""

    def __init__(self) -> None:
        self.model = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)

    def fit(self, rows: pd.DataFrame, labels: NDArray[Any]) -> _HistGradientBoosting:
        self.columns = rows.columns[rows.notna().any()]
        self.model.fit(self._coded(rows), labels)
        self.classes_ = self.model.classes_
        return self

    def predict_proba(self, rows: pd.DataFrame) -> Floats:
        return np.asarray(self.model.predict_proba(self._coded(rows)))

    def _coded(self, rows: pd.DataFrame) -> pd.DataFrame:
        return rows[self.columns].astype(dict.fromkeys(_text(rows[self.columns]), "category"))


class _CatBoost:
    """It needs the names of text columns, and text in each of their cells."""

    def __init__(self) -> None:
        self.model = importlib.import_module("catboost").CatBoostClassifier(verbose=0, allow_writing_files=False)

    def fit(self, rows: pd.DataFrame, labels: NDArray[Any]) -> _CatBoost:
        self.model.fit(self._filled(rows), labels, cat_features=_text(rows))
        self.classes_ = self.model.classes_
        return self

    def predict_proba(self, rows: pd.DataFrame) -> Floats:
        return np.asarray(self.model.predict_proba(self._filled(rows)))

    def _filled(self, rows: pd.DataFrame) -> pd.DataFrame:
        return rows.assign(**{name: rows[name].astype(object).fillna("missing") for name in _text(rows)})


def _khiops() -> Any:
    """Its programs are looked for on the PATH, where those of a virtual environment need not be."""
    if shutil.which("khiops_env") is None:
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return importlib.import_module("khiops.sklearn").KhiopsClassifier()


def _text(rows: pd.DataFrame) -> list[str]:
    return list(rows.select_dtypes(exclude="number"))


CATBOOST = "CatBoost"
LOGISTIC = "LogisticRegression"
MODELS = (
    Model("evidence", "EvidenceClassifier", "deciban", lambda: deciban.EvidenceClassifier()),
    Model("naive-bayes", "NaiveBayes", "deciban", lambda: deciban.NaiveBayes()),
    Model("logistic", LOGISTIC, "scikit-learn", _logistic),
    Model("boosting", "HistGradientBoosting", "scikit-learn", _HistGradientBoosting),
    Model("catboost", CATBOOST, "catboost", _CatBoost),
    Model("khiops", "Khiops", "khiops", _khiops),
    Model("ebm", "EBM", "interpret-core", lambda: _glassbox().ExplainableBoostingClassifier()),
)


def _glassbox() -> Any:
    return importlib.import_module("interpret.glassbox")


def installed(models: Iterable[Model]) -> list[Model]:
    """Says which are left out, and why."""
    installed_models = []
    for model in models:
        if report.version(model.package) is None:
            print(f"  {model.title} is left out: pip install {model.package}")
        elif model.name == "evidence" and getattr(deciban, "EvidenceClassifier", None) is None:
            print(f"  {model.title} is left out: this deciban has none")
        else:
            installed_models.append(model)
    return installed_models


# Evaluation ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Result:
    """Of one model on one table."""

    accuracy: float
    log_loss: float
    auc: float
    ece: float
    seconds: float


def evaluate_model(model: Model, table: Table) -> Result:
    """Probabilities of rows that were left out, held against the labels."""
    classes, codes = np.unique(table.labels, return_inverse=True)
    proba, seconds = np.empty((len(codes), len(classes))), 0.0
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(codes, codes):
        estimator = model.make()
        seen, labels, unseen = table.rows.iloc[train], table.labels[train], table.rows.iloc[test]
        took, predicted = timed(partial(_fit_and_predict, estimator, seen, labels, unseen))
        seconds += took
        place = {str(level): k for k, level in enumerate(estimator.classes_)}
        proba[test] = predicted[:, [place[str(level)] for level in classes]]
    return measure(codes, proba, seconds)


def _fit_and_predict(estimator: Any, seen: pd.DataFrame, labels: NDArray[Any], unseen: pd.DataFrame) -> Floats:
    return np.asarray(estimator.fit(seen, labels).predict_proba(unseen))


def measure(codes: Ints, proba: Floats, seconds: float) -> Result:
    """Of codes (n), places of the true classes, and probabilities (n, K)."""
    if not np.isfinite(proba).all():
        raise ValueError("a probability is not a number")
    right = proba.argmax(axis=1) == codes
    of_truth = proba[np.arange(len(codes)), codes].clip(CLIP, 1)
    places = [1] if proba.shape[1] == 2 else range(proba.shape[1])
    areas = [roc_auc_score(codes == k, proba[:, k]) for k in places]
    sure = deciban.Evaluation.of(right, proba.max(axis=1).clip(0, 1), classes=[False, True])
    log_loss = float(np.log(1 / of_truth).mean())
    return Result(float(right.mean()), log_loss, float(np.mean(areas)), sure.ece(bins=BINS), seconds)


class Cache:
    """Results of peers in a JSON file: {package and version: {model: {table: result}}}. Ours are never kept."""

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def get(self, model: Model, table: Table) -> Result | None:
        kept = self._read().get(_release(model), {}).get(model.name, {}).get(table.name)
        return None if kept is None or model.ours else Result(**kept)

    def put(self, model: Model, table: Table, result: Result) -> None:
        if self.path is None or model.ours:
            return
        content = self._read()
        content.setdefault(_release(model), {}).setdefault(model.name, {})[table.name] = asdict(result)
        draft = self.path.with_suffix(".draft")
        draft.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        draft.replace(self.path)  # so that a run that is stopped leaves a whole file

    def _read(self) -> dict[str, Any]:
        if self.path is None or not self.path.exists():
            return {}
        content: dict[str, Any] = json.loads(self.path.read_text(encoding="utf-8"))
        return content


def _release(model: Model) -> str:
    return f"{model.package} {report.version(model.package)}"


class Comparison:
    """Models on tables, from small ones to large ones."""

    def __init__(self, models: Sequence[Model], tables: Sequence[Table]) -> None:
        self.models, self.tables = list(models), sorted(tables, key=lambda table: table.cost)
        self.results: dict[tuple[str, str], Result] = {}  # of a model and a table, by their names
        self.reused: set[str] = set()  # titles of models with results of an earlier run
        self.failures: list[str] = []

    def run(self, cache: Cache, leave_out: Iterable[tuple[str, str]] = ()) -> None:
        """One that fails is named, and the others go on."""
        left_out = set(leave_out)
        for table in self.tables:
            for model in self.models:
                if (model.name, table.name) in left_out:
                    print(f"  {table.name}, {model.title}: left out, too slow", flush=True)
                    continue
                try:
                    self._run_one(model, table, cache)
                except Exception as error:
                    logging.exception("%s failed on %s", model.title, table.name)
                    self.failures.append(f"{model.title} on {table.name}: {type(error).__name__}: {error}")

    def _run_one(self, model: Model, table: Table, cache: Cache) -> None:
        result = cache.get(model, table)
        if result is None:
            result = evaluate_model(model, table)
            cache.put(model, table, result)
        else:
            self.reused.add(model.title)
        self.results[model.name, table.name] = result
        values = f"log-loss {result.log_loss:.4f}, accuracy {result.accuracy:.4f}, {result.seconds:.1f} s"
        print(f"  {table.name}, {model.title}: {values}", flush=True)

    # What came out ---------------------------------------------------------------------------------------------------

    @property
    def shown(self) -> list[Model]:
        """Without models that ran on no table."""
        ran = {name for name, _ in self.results}
        return [model for model in self.models if model.name in ran]

    @property
    def common(self) -> list[str]:
        """Tables that all shown models ran on."""
        return [t.name for t in self.tables if all((model.name, t.name) in self.results for model in self.shown)]

    def values(self, measure: str) -> Floats:
        """(common tables, shown models)."""
        values = [[getattr(self.results[m.name, name], measure) for m in self.shown] for name in self.common]
        return np.array(values, np.float64).reshape(len(self.common), len(self.shown))

    def compared(self, measure: str) -> dict[str, float]:
        """Our total over the common tables / the peer's, for each peer; empty without ours."""
        total = {model.name: value for model, value in zip(self.shown, self.values(measure).sum(axis=0), strict=True)}
        if "evidence" not in total or not self.common:
            return {}
        return {model.title: total["evidence"] / total[model.name] for model in self.shown if not model.ours}

    def text(self) -> str:
        """A table for each measure, the ratios of time, and what failed."""
        parts = [self._table(*column) for column in COLUMNS]
        compared = self.compared("seconds")
        if CATBOOST in compared:
            parts.append(f"{CATBOOST}'s time / EvidenceClassifier's: {1 / compared[CATBOOST]:.2f}")
        if LOGISTIC in compared:
            parts.append(f"EvidenceClassifier's time / {LOGISTIC}'s: {compared[LOGISTIC]:.2f}")
        if self.reused:
            parts.append(f"Of an earlier run, with its seconds: {', '.join(sorted(self.reused))}")
        parts.extend(f"FAILED {failure}" for failure in self.failures)
        return "\n\n".join(parts)

    def _table(self, title: str, measure: str, digits: int, sign: int) -> str:
        """Means and mean ranks over the common tables, for seconds their total; of equal values the mean rank."""
        cell = f"{{:.{digits}f}}".format
        rows = [
            [table.name, *(self._cell(model, table, measure, cell) for model in self.shown)] for table in self.tables
        ]
        values, n = self.values(measure), len(self.common)
        if n and measure == "seconds":
            rows.append([f"total of {n}", *map(cell, values.sum(axis=0))])
        elif n:
            ranks = rankdata(sign * values, axis=1).mean(axis=0)
            rows += [[f"mean of {n}", *map(cell, values.mean(axis=0))], ["mean rank", *map("{:.2f}".format, ranks)]]
        return report.table([title, *(model.title for model in self.shown)], rows)

    def _cell(self, model: Model, table: Table, measure: str, cell: Callable[[float], str]) -> str:
        result = self.results.get((model.name, table.name))
        return "–" if result is None else cell(getattr(result, measure))


COLUMNS = (  # title, measure, digits, and the sign that makes the best the smallest
    ("accuracy", "accuracy", 4, -1),
    ("log-loss", "log_loss", 4, 1),
    ("AUC", "auc", 4, -1),
    ("ECE", "ece", 4, 1),
    ("seconds", "seconds", 2, 1),
)


# From the shell ------------------------------------------------------------------------------------------------------


def main() -> int:
    """1 when a model failed on a table."""
    options = _parse()
    tables = [read(name) for name in options.tables]
    comparison = Comparison(installed(options.models), [t for t in tables if not options.quick or t.is_small])
    comparison.run(Cache(options.cache))
    print("\n" + comparison.text())
    return int(bool(comparison.failures))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=str(__doc__).partition("\n")[0])
    tables = names_of_tables() if os.environ.get("DECIBAN_DATA") else []
    models = {model.name: model for model in MODELS}
    parser.add_argument("--tables", metavar="A,B", default=",".join(tables), help="all, or some of: %(default)s")
    parser.add_argument("--models", metavar="A,B", default=",".join(models), help="all, or some of: %(default)s")
    parser.add_argument("--quick", action="store_true", help=f"only tables of fewer than {QUICK_ROWS} rows")
    parser.add_argument("--cache", type=Path, metavar="FILE.json", help="keep the results of peers, and reuse them")
    options = parser.parse_args()
    if not tables:
        parser.error("there are no tables: set DECIBAN_DATA to the folder that holds tables/*.csv")
    options.tables, options.models = options.tables.split(","), options.models.split(",")
    for asked, known in ((options.tables, tables), (options.models, list(models))):
        if unknown := [name for name in asked if name not in known]:
            parser.error(f"{', '.join(unknown)}: not one of {', '.join(known)}")
    options.models = [models[name] for name in options.models]
    return options


if __name__ == "__main__":
    sys.exit(main())
