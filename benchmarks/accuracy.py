"""EvidenceClassifier beside peers on real tables: log-loss, AUC, calibration and time.

    python -m benchmarks.accuracy --tables car,iris --models evidence,logistic
    python -m benchmarks.accuracy --quick --cache peers.json

The tables are the csv files in $DECIBAN_DATA/tables, with the label in the last column. Every model takes them as they
are, with text and missing values; the preprocessing of a peer (imputing, scaling, encoding) is part of its fit, and
timed. All have the same folds, and are evaluated by the probabilities of held-out rows:

    log-loss    −mean log p(true class), p at least 1e-15
    AUC         for two classes that of the second; for more, the mean over classes, each against all others
    ECE         Σ rows·|accuracy − mean p| / Σ rows over 15 equally wide bins of p, the largest probability of a row
    seconds     for fitting and predicting all folds
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
MIN_CLASS_ROWS = 5  # smaller classes are dropped: each fold needs a row
CLIP = 1e-15
BINS = 15
MAX_TIME_RATIO = {"CatBoost": 0.05, "LogisticRegression": 2.0}  # our seconds / the peer's
QUICK_ROWS = 5_000  # --quick skips larger tables
SLOW = frozenset({("catboost", "letter"), ("ebm", "letter")})  # not in the job: boosting 26 classes takes very long


@job("accuracy")
def accuracy(bench: Bench) -> None:
    """All installed models on all tables. Limits: the loss of each peer, 5 % of CatBoost's time, twice logistic's."""
    if not os.environ.get("DECIBAN_DATA"):
        print("  skipped: set DECIBAN_DATA to the folder that holds tables/*.csv")
        return
    tables = [read(name) for name in names_of_tables()]
    comparison = Comparison(installed(MODELS), [table for table in tables if not bench.quick or table.is_small])
    comparison.run(Cache(None), leave_out=SLOW)
    print("\n" + comparison.text(), flush=True)
    n = len(comparison.common)
    for title, ratio in comparison.ratios("log_loss").items():
        bench.limit(f"log-loss of EvidenceClassifier, {n} tables, beside {title}", 100 * ratio, 100, "%")
    for title, ratio in comparison.ratios("seconds").items():
        if title in MAX_TIME_RATIO:
            limit = 100 * MAX_TIME_RATIO[title]
            bench.limit(f"seconds of EvidenceClassifier, {n} tables, beside {title}", 100 * ratio, limit, "%")
    if comparison.failures:
        raise RuntimeError("; ".join(comparison.failures))


# The tables ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """The features of a table, unprocessed, and labels that occur at least MIN_CLASS_ROWS times each."""

    name: str
    rows: pd.DataFrame
    labels: NDArray[Any]

    @property
    def is_small(self) -> bool:
        return len(self.labels) < QUICK_ROWS

    def shuffled(self) -> Table:
        order = np.random.default_rng(0).permutation(len(self.labels))
        return Table(self.name, self.rows.iloc[order].reset_index(drop=True), self.labels[order])

    @property
    def cost(self) -> int:
        """Rows × classes, to which the time of boosting is proportional."""
        return len(self.labels) * len(np.unique(self.labels))


def names_of_tables() -> list[str]:
    """The names of all tables; the two files of adult are one table."""
    return sorted({path.stem.removesuffix("-train").removesuffix("-test") for path in _folder().glob("*.csv")})


def read(name: str) -> Table:
    """Reads a table. An empty cell is missing; adult has no header, and "?" for missing values."""
    if name == "adult":
        frame = pd.concat([_read_adult("train"), _read_adult("test")], ignore_index=True)
    else:
        frame = pd.read_csv(_folder() / f"{name}.csv", keep_default_na=False, na_values=[""])
    labels = frame.iloc[:, -1]
    kept = labels.map(labels.value_counts()) >= MIN_CLASS_ROWS
    return Table(name, frame.loc[kept].iloc[:, :-1].reset_index(drop=True), labels[kept].to_numpy())


def _read_adult(split: str) -> pd.DataFrame:
    path = _folder() / f"adult-{split}.csv"
    frame = pd.read_csv(path, header=None, skipinitialspace=True, keep_default_na=False, na_values=["?"])
    frame.columns = [f"column {j}" for j in range(frame.shape[1])]
    return frame.assign(**{frame.columns[-1]: frame.iloc[:, -1].str.removesuffix(".")})


def _folder() -> Path:
    return Path(os.environ["DECIBAN_DATA"]) / "tables"


# The models ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Model:
    name: str  # for --models
    title: str  # the heading of its column
    package: str  # needed; its version is the key of cached results
    make: Callable[[], Any]  # an unfitted estimator; imports happen here, and are not timed

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


class _Categories:
    """Text as pandas categories, and without columns that have only missing values, which boosting cannot fit."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, rows: pd.DataFrame, labels: NDArray[Any]) -> _Categories:
        self.columns = rows.columns[rows.notna().any()]
        self.model.fit(self._encode(rows), labels)
        self.classes_ = self.model.classes_
        return self

    def predict_proba(self, rows: pd.DataFrame) -> Floats:
        return np.asarray(self.model.predict_proba(self._encode(rows)))

    def _encode(self, rows: pd.DataFrame) -> pd.DataFrame:
        encoded = rows[self.columns].astype(dict.fromkeys(_text_columns(rows[self.columns]), "category"))
        return encoded.set_axis([f"column {j}" for j in range(encoded.shape[1])], axis=1)  # LightGBM refuses some names


def _hist_gradient_boosting() -> Any:
    return _Categories(HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0))


def _lightgbm() -> Any:
    return _Categories(importlib.import_module("lightgbm").LGBMClassifier(verbose=-1))


class _CatBoost:
    """Needs the names of text columns, and text instead of missing values in them."""

    def __init__(self) -> None:
        self.model = importlib.import_module("catboost").CatBoostClassifier(verbose=0, allow_writing_files=False)

    def fit(self, rows: pd.DataFrame, labels: NDArray[Any]) -> _CatBoost:
        self.model.fit(self._impute(rows), labels, cat_features=_text_columns(rows))
        self.classes_ = self.model.classes_
        return self

    def predict_proba(self, rows: pd.DataFrame) -> Floats:
        return np.asarray(self.model.predict_proba(self._impute(rows)))

    def _impute(self, rows: pd.DataFrame) -> pd.DataFrame:
        return rows.assign(**{name: rows[name].astype(object).fillna("missing") for name in _text_columns(rows)})


def _khiops() -> Any:
    """Needs its programs on the PATH, which may lack those of a virtual environment."""
    if shutil.which("khiops_env") is None:
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return importlib.import_module("khiops.sklearn").KhiopsClassifier()


def _text_columns(rows: pd.DataFrame) -> list[str]:
    return list(rows.select_dtypes(exclude="number"))


CATBOOST = "CatBoost"
LOGISTIC = "LogisticRegression"
MODELS = (
    Model("evidence", "EvidenceClassifier", "deciban", lambda: deciban.EvidenceClassifier()),
    Model("naive-bayes", "NaiveBayes", "deciban", lambda: deciban.NaiveBayes()),
    Model("logistic", LOGISTIC, "scikit-learn", _logistic),
    Model("boosting", "HistGradientBoosting", "scikit-learn", _hist_gradient_boosting),
    Model("lightgbm", "LightGBM", "lightgbm", _lightgbm),
    Model("catboost", CATBOOST, "catboost", _CatBoost),
    Model("khiops", "Khiops", "khiops", _khiops),
    Model("ebm", "EBM", "interpret-core", lambda: _glassbox().ExplainableBoostingClassifier()),
)


def _glassbox() -> Any:
    return importlib.import_module("interpret.glassbox")


def installed(models: Iterable[Model]) -> list[Model]:
    """The models whose package is installed; prints which are left out."""
    installed_models = []
    for model in models:
        if report.version(model.package) is None:
            print(f"  {model.title} is left out: pip install {model.package}")
        elif model.name == "evidence" and getattr(deciban, "EvidenceClassifier", None) is None:
            print(f"  {model.title} is left out: this version of deciban does not have it")
        else:
            installed_models.append(model)
    return installed_models


# Evaluation ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Result:
    """The metrics of one model on one table."""

    accuracy: float
    log_loss: float
    auc: float
    ece: float
    seconds: float


def evaluate_model(model: Model, table: Table) -> Result:
    """Metrics of out-of-fold probabilities."""
    classes, codes = np.unique(table.labels, return_inverse=True)
    proba, seconds = np.empty((len(codes), len(classes))), 0.0
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(codes, codes):
        estimator = model.make()
        X_train, y_train, X_test = table.rows.iloc[train], table.labels[train], table.rows.iloc[test]
        elapsed, predicted = timed(partial(_fit_and_predict, estimator, X_train, y_train, X_test))
        seconds += elapsed
        index = {str(level).strip(): k for k, level in enumerate(estimator.classes_)}  # Khiops strips spaces
        proba[test] = predicted[:, [index[str(level).strip()] for level in classes]]
    return measure(codes, proba, seconds)


def _fit_and_predict(estimator: Any, X_train: pd.DataFrame, y_train: NDArray[Any], X_test: pd.DataFrame) -> Floats:
    return np.asarray(estimator.fit(X_train, y_train).predict_proba(X_test))


def measure(codes: Ints, proba: Floats, seconds: float) -> Result:
    """Metrics of probabilities (n, K), for the indices of the true classes (n)."""
    if not np.isfinite(proba).all():
        raise ValueError("a probability is not a number")
    correct = proba.argmax(axis=1) == codes
    p_true = proba[np.arange(len(codes)), codes].clip(CLIP, 1)
    positive = [1] if proba.shape[1] == 2 else range(proba.shape[1])
    auc = [roc_auc_score(codes == k, proba[:, k]) for k in positive]
    confidence = deciban.Evaluation.of(correct, proba.max(axis=1).clip(0, 1), classes=[False, True])
    log_loss = float(np.log(1 / p_true).mean())
    return Result(float(correct.mean()), log_loss, float(np.mean(auc)), confidence.ece(bins=BINS), seconds)


class Cache:
    """Results of peers in a JSON file: {package and version: {model: {table: result}}}. Ours are never cached."""

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def get(self, model: Model, table: Table) -> Result | None:
        cached = self._read().get(_release(model), {}).get(model.name, {}).get(table.name)
        return None if cached is None or model.ours else Result(**cached)

    def put(self, model: Model, table: Table, result: Result) -> None:
        if self.path is None or model.ours:
            return
        content = self._read()
        content.setdefault(_release(model), {}).setdefault(model.name, {})[table.name] = asdict(result)
        draft = self.path.with_suffix(".draft")
        draft.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        draft.replace(self.path)  # an interrupted run leaves a complete file

    def _read(self) -> dict[str, Any]:
        if self.path is None or not self.path.exists():
            return {}
        content: dict[str, Any] = json.loads(self.path.read_text(encoding="utf-8"))
        return content


def _release(model: Model) -> str:
    return f"{model.package} {report.version(model.package)}"


class Comparison:
    """The results of models on tables, the small tables first."""

    def __init__(self, models: Sequence[Model], tables: Sequence[Table]) -> None:
        self.models, self.tables = list(models), sorted(tables, key=lambda table: table.cost)
        self.results: dict[tuple[str, str], Result] = {}  # by the names of model and table
        self.reused: set[str] = set()  # titles of models with results of an earlier run
        self.failures: list[str] = []

    def run(self, cache: Cache, leave_out: Iterable[tuple[str, str]] = ()) -> None:
        """Evaluates every model on every table; a failure is recorded, and the others continue."""
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

    # Results ---------------------------------------------------------------------------------------------------------

    @property
    def shown(self) -> list[Model]:
        """The models that ran on at least one table."""
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

    def ratios(self, measure: str) -> dict[str, float]:
        """EvidenceClassifier's total over the common tables / each peer's; empty if it did not run."""
        total = {model.name: value for model, value in zip(self.shown, self.values(measure).sum(axis=0), strict=True)}
        if "evidence" not in total or not self.common:
            return {}
        return {model.title: total["evidence"] / total[model.name] for model in self.shown if not model.ours}

    def text(self) -> str:
        """A table for each measure, the ratios of times, and the failures."""
        parts = [self._table(*column) for column in COLUMNS]
        ratios = self.ratios("seconds")
        if CATBOOST in ratios:
            parts.append(f"{CATBOOST}'s time / EvidenceClassifier's: {1 / ratios[CATBOOST]:.2f}")
        if LOGISTIC in ratios:
            parts.append(f"EvidenceClassifier's time / {LOGISTIC}'s: {ratios[LOGISTIC]:.2f}")
        if self.reused:
            parts.append(f"From the cache, seconds included: {', '.join(sorted(self.reused))}")
        parts.extend(f"FAILED {failure}" for failure in self.failures)
        return "\n\n".join(parts)

    def _table(self, title: str, measure: str, digits: int, sign: int) -> str:
        """A row per table, then the mean and the mean rank over the common tables; for seconds, the total."""
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


COLUMNS = (  # title, measure, digits, and 1 if smaller is better, else −1
    ("accuracy", "accuracy", 4, -1),
    ("log-loss", "log_loss", 4, 1),
    ("AUC", "auc", 4, -1),
    ("ECE", "ece", 4, 1),
    ("seconds", "seconds", 2, 1),
)


# Command line --------------------------------------------------------------------------------------------------------


def main() -> int:
    """Runs the comparison; 1 if a model failed on a table."""
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
    for names, known in ((options.tables, tables), (options.models, list(models))):
        if unknown := [name for name in names if name not in known]:
            parser.error(f"{', '.join(unknown)}: not one of {', '.join(known)}")
    options.models = [models[name] for name in options.models]
    return options


if __name__ == "__main__":
    sys.exit(main())
