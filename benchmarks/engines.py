"""Fits on Spark and Dask beside Spark's MLlib, dask-ml and scikit-learn; and the memory of the driver.

``python -m benchmarks.engines [--only NAME ...] [--quick] [--runs N] [--json PATH]``. Spark needs Java 17. Both sides
have the same rows, from the same cached DataFrame or from the same files, and take turns, after a warm-up, since Java
and Python workers are slow at first. Memory is measured in separate processes.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.naive_bayes import GaussianNB

import deciban
from benchmarks import data, harness, report
from benchmarks.harness import AGREEMENT, Bench, Comparison, gap, timed
from benchmarks.memory import CLEAR, STATUS
from benchmarks.sizes import HEAD, QUICK, SEED, Size

Ours = TypeVar("Ours")
Peer = TypeVar("Peer")

NUMBERS = Size(5_000_000, 30, 2)
LINEAR = Size(500_000, 30, 2)
SOFTMAX = Size(500_000, 30, 5)
FILES = 8  # of rows
WARM = 3  # fits of one small file for warm-up
WORKERS = 2
JAVA_MEMORY = "6g"
PARTITIONS = (10, 100, 1_000)
EACH, TOTAL = 5_000, 1_000_000  # rows per partition, or in all, when memory is measured
DRIVER_MB, GROWTH_MB = 200.0, 50.0  # limits: memory of a fit in the driver; growth of it with more partitions


def installed(*modules: str) -> bool:
    """Whether the modules are installed; prints those that are not."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        print(f"  skipped: not installed: {', '.join(missing)}")
    return not missing


def turns(
    bench: Bench,
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
    """As ``Bench.compare``, but a slow peer runs as often as ours does: clusters are noisier than arrays."""
    times: tuple[list[float], list[float]] = [], []
    for _ in range(bench.runs):
        seconds, mine = timed(ours)
        times[0].append(seconds)
        seconds, theirs = timed(peer)
        times[1].append(seconds)
    distance = float(agreement(mine, theirs))
    row = Comparison(bench.job, title, against, tuple(times[0]), tuple(times[1]), target, distance, note, within)
    bench.comparisons.append(row)
    print(f"  {title} / {against}: {row.ratio:.3f}, answers within {distance:.1e}", flush=True)
    return mine, theirs


# Rows ----------------------------------------------------------------------------------------------------------------


def names_of(size: Size) -> list[str]:
    return [f"x{j}" for j in range(size.columns)]


def write_rows(folder: Path, size: Size) -> None:
    """Writes normal features and a label as FILES parquet files."""
    rng = np.random.default_rng(SEED)
    y = data.labels(rng, size)
    X = data.gaussian(rng, size, y)
    folder.mkdir()
    for i, rows in enumerate(data.blocks(size.rows, -(-size.rows // FILES))):
        columns = {name: np.ascontiguousarray(X[rows, j]) for j, name in enumerate(names_of(size))}
        pq.write_table(pa.table({**columns, "label": y[rows]}), folder / f"{i}.parquet")


def head_of(folder: Path) -> Any:
    """The first rows, as an Arrow table without the label."""
    return pq.read_table(folder / "0.parquet").slice(0, HEAD).drop_columns(["label"])


@contextmanager
def _rows(*sizes: Size) -> Iterator[list[Path]]:
    with tempfile.TemporaryDirectory(prefix="deciban-bench-") as folder:
        paths = [Path(folder) / str(i) for i in range(len(sizes))]
        for path, size in zip(paths, sizes, strict=True):
            write_rows(path, size)
        yield paths


# Spark ---------------------------------------------------------------------------------------------------------------


@contextmanager
def _spark() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
    builder = SparkSession.builder.master(f"local[{WORKERS}]").config("spark.driver.memory", JAVA_MEMORY)
    for name, value in quiet.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


class Mllib:
    """An estimator of MLlib, fitted to columns of numbers, and its probabilities."""

    def __init__(self, estimator: Any, size: Size) -> None:
        from pyspark.ml.feature import VectorAssembler

        self.estimator = estimator.setFeaturesCol("features").setLabelCol("label")
        self.assembler = VectorAssembler(inputCols=names_of(size), outputCol="features")

    def fit(self, frame: Any) -> Any:
        return self.estimator.fit(self.assembler.transform(frame))

    def probabilities(self, session: Any, model: Any, head: Any) -> data.Floats:
        rows = list(zip(*(column.to_pylist() for column in head.columns), strict=True))
        frame = session.createDataFrame(rows, ", ".join(f"{name} double" for name in head.column_names))
        rows = model.transform(self.assembler.transform(frame.coalesce(1))).select("probability").collect()
        return np.array([row["probability"].toArray() for row in rows])


def spark(bench: Bench) -> None:
    """From files and from a cached DataFrame. Files come first, because Spark would read them from the cache too."""
    if not installed("pyspark"):
        return
    import pyspark.ml.classification as mllib

    sizes = bench.size(NUMBERS), bench.size(LINEAR), bench.size(SOFTMAX)
    with _rows(*sizes) as folders, _spark() as session:
        frames = [session.read.parquet(str(folder)) for folder in folders]
        heads = [head_of(folder) for folder in folders]
        bayes = Mllib(mllib.NaiveBayes(modelType="gaussian"), sizes[0])
        _warm(session, folders[0], bayes)
        _naive_bayes(bench, session, frames[0], bayes, heads[0], f"{sizes[0]}, parquet")
        cached = frames[0].cache()
        cached.count()
        _naive_bayes(bench, session, cached, bayes, heads[0], f"{sizes[0]}, cached")
        cached.unpersist(blocking=True)
        _ten_rows(bench, session)
        for kind, size, frame, head in zip(("logistic", "softmax"), sizes[1:], frames[1:], heads[1:], strict=True):
            linear = Mllib(mllib.LogisticRegression(regParam=0.0, tol=1e-9, maxIter=200), size)
            _linear(bench, session, kind, frame.cache(), linear, head, f"{size}, K={size.classes}, cached")
            frame.unpersist(blocking=True)


def _fit(model: Any, frame: Any) -> Any:
    from deciban.engines import spark as engine

    return engine.fit(model, frame, "label")


def _warm(session: Any, folder: Path, bayes: Mllib) -> None:
    one = session.read.parquet(str(folder / "0.parquet"))
    for _ in range(WARM):
        _fit(deciban.NaiveBayes(), one)
        bayes.fit(one)
        _read(one)


def _read(frame: Any) -> int:
    """Sends the rows to Python workers, which only count them."""
    return int(sum(row["rows"] for row in frame.mapInArrow(_count_rows, "rows long").collect()))


def _count_rows(batches: Any) -> Iterator[Any]:
    rows = sum(batch.num_rows for batch in batches)
    yield pa.RecordBatch.from_arrays([pa.array([rows])], names=["rows"])


def _naive_bayes(bench: Bench, session: Any, frame: Any, bayes: Mllib, head: Any, title: str) -> None:
    def ours() -> Any:
        return _fit(deciban.NaiveBayes(), frame)

    turns(
        bench,
        f"NB fit on Spark, {title}",
        "MLlib NaiveBayes, gaussian",
        ours=ours,
        peer=lambda: bayes.fit(frame),
        target=5,
        agreement=lambda a, b: gap(a.predict_proba(head), bayes.probabilities(session, b, head)),
    )
    turns(
        bench,
        f"NB fit on Spark, {title}",
        "rows sent to Python and counted",
        ours=ours,
        peer=lambda: _read(frame),
        target=0.5,
        agreement=lambda a, rows: float(abs(a.class_count_.sum() - rows)),
        note="the ratio is the fraction of its speed",
    )


def _ten_rows(bench: Bench, session: Any) -> None:
    """The fixed cost of a fit."""
    size = Size(10, 1, 2)
    rows = [(float(i), i % 2) for i in range(size.rows)]
    frame = session.createDataFrame(rows, "x0 double, label long").coalesce(WORKERS).cache()
    import pyspark.ml.classification as mllib

    bayes = Mllib(mllib.NaiveBayes(modelType="gaussian"), size)
    head = pa.table({"x0": [0.5, 5.0]})
    turns(
        bench,
        "NB fit on Spark, 10 rows",
        "MLlib NaiveBayes, gaussian",
        ours=lambda: _fit(deciban.NaiveBayes(), frame),
        peer=lambda: bayes.fit(frame),
        target=0,
        agreement=lambda a, b: gap(a.predict_proba(head), bayes.probabilities(session, b, head)),
        note="the least that a pass takes: plans, tasks, three shuffles",
    )


def _linear(bench: Bench, session: Any, kind: str, frame: Any, peer: Mllib, head: Any, title: str) -> None:
    make = deciban.LogisticRegression if kind == "logistic" else deciban.SoftmaxRegression
    frame.count()
    turns(
        bench,
        f"{kind} fit on Spark, {title}",
        "MLlib LogisticRegression",
        ours=lambda: _fit(make(), frame),
        peer=lambda: peer.fit(frame),
        target=0,
        agreement=lambda a, b: gap(a.predict_proba(head), peer.probabilities(session, b, head)),
        within=1e-4,
        note="no penalty on either side, the peer's tol 1e-9; no target",
    )


# Dask ----------------------------------------------------------------------------------------------------------------


def dask(bench: Bench) -> None:
    """Arrays in memory with threads; arrays and a DataFrame in the memory of two processes."""
    if not installed("dask", "distributed"):
        return
    size = bench.size(NUMBERS)
    with _rows(size) as (folder,):
        _with_threads(bench, folder, size)
        _with_processes(bench, folder, size)


def _with_threads(bench: Bench, folder: Path, size: Size) -> None:
    import dask.array as da

    rows = -(-size.rows // FILES)
    X, y = _arrays(folder, size)
    blocks = da.from_array(X, chunks=(rows, size.columns)), da.from_array(y, chunks=rows)
    _dask_rows(bench, f"{size}, threads", lambda: _dask_fit(*blocks), *blocks)
    few = da.from_array(X[:10], chunks=(5, size.columns)), da.from_array(np.arange(10) % 2, chunks=5)
    _dask_rows(bench, "10 rows, threads", lambda: _dask_fit(*few), *few, target=0)


def _with_processes(bench: Bench, folder: Path, size: Size) -> None:
    import dask.dataframe as dd
    from dask.distributed import Client, LocalCluster

    with LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        frame = dd.read_parquet(str(folder)).persist()
        X = frame[names_of(size)].to_dask_array(lengths=True).persist()
        y = frame["label"].to_dask_array(lengths=True).persist()
        title = f"{size}, {WORKERS} processes"
        _dask_rows(bench, title, lambda: _dask_fit(X, y), X, y)
        _dask_rows(bench, f"{title}, ours a DataFrame", lambda: _dask_fit(frame, "label"), X, y)


def _arrays(folder: Path, size: Size) -> tuple[data.Floats, data.Ints]:
    table = pq.read_table(folder)
    X = np.empty((size.rows, size.columns))
    for j, name in enumerate(names_of(size)):
        X[:, j] = table.column(name).to_numpy()
    return X, table.column("label").to_numpy()


def _dask_fit(collection: Any, label: Any) -> Any:
    from deciban.engines import dask as engine

    return engine.fit(deciban.NaiveBayes(), collection, label)


def _dask_rows(bench: Bench, title: str, ours: Callable[[], Any], X: Any, y: Any, target: float = 5) -> None:
    """Compares a fit with the peers, whose arrays are already in memory."""
    head = X[:HEAD].compute()

    def our_proba(model: Any) -> data.Floats:
        named = hasattr(model, "feature_names_in_")
        rows = pa.table(dict(zip(model.feature_names_in_, head.T, strict=True))) if named else head
        return np.asarray(model.predict_proba(rows))

    turns(
        bench,
        f"NB fit on Dask, {title}",
        "GaussianNB.partial_fit, chunk by chunk",
        ours=ours,
        peer=lambda: _partial_fits(X, y),
        target=target,
        agreement=lambda a, b: gap(our_proba(a), b.predict_proba(head)),
    )
    if not installed("dask_ml"):
        return
    turns(
        bench,
        f"NB fit on Dask, {title}",
        "dask-ml GaussianNB",
        ours=ours,
        peer=lambda: _dask_ml(X, y),
        target=target,
        agreement=lambda a, b: gap(our_proba(a), b.predict_proba(head)),
    )


def _partial_fits(X: Any, y: Any) -> GaussianNB:
    """partial_fit on one chunk after the other, where it is: the model moves."""
    from dask import delayed

    model = delayed(GaussianNB)(var_smoothing=0)
    for x, labels in zip(X.to_delayed().ravel(), y.to_delayed().ravel(), strict=True):
        model = delayed(_partial_fit)(model, x, labels)
    fitted: GaussianNB = model.compute()
    return fitted


def _partial_fit(model: GaussianNB, x: data.Floats, y: data.Ints) -> GaussianNB:
    return model.partial_fit(x, y, classes=[0, 1])


def _dask_ml(X: Any, y: Any) -> GaussianNB:
    """Its lazy parameters, computed together, in a model of scikit-learn."""
    import dask

    lazy = importlib.import_module("dask_ml.naive_bayes").GaussianNB(classes=[0, 1]).fit(X, y)
    model = GaussianNB()
    model.theta_, model.var_, model.class_prior_ = map(
        np.asarray, dask.compute(lazy.theta_, lazy.sigma_, lazy.class_prior_)
    )
    model.classes_, model.n_features_in_ = np.array([0, 1]), X.shape[1]
    return model


# Memory --------------------------------------------------------------------------------------------------------------


def memory(bench: Bench) -> None:
    """Growth of the peak memory of the driver's Python during a fit, and Java's heap after it."""
    if not STATUS.exists():
        print("  skipped: needs Linux")
        return
    each, total = (EACH // QUICK, TOTAL // QUICK) if bench.quick else (EACH, TOTAL)
    for engine, modules in (("spark", ("pyspark",)), ("dask", ("dask", "distributed"))):
        if not installed(*modules):
            continue
        for fixed in ("rows per partition", "rows in all"):
            first = None
            for parts in PARTITIONS[: 2 if bench.quick else None]:
                rows = each * parts if fixed == "rows per partition" else total
                peaks = _measured(engine, parts, rows)
                title = f"{engine}'s driver, {parts:,} partitions, {rows:,} rows"
                first = peaks if first is None else first
                limits = [DRIVER_MB if peaks is first else mb + GROWTH_MB for mb in first]
                for name, value, limit in zip(("Python", "Java's heap"), peaks, limits, strict=False):
                    bench.limit(f"{title}, {name}", value, limit, "MB")


def _measured(engine: str, parts: int, rows: int) -> list[float]:
    command = [sys.executable, "-m", "benchmarks.engines", "--peak", engine, str(parts), str(rows)]
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
    return [float(value) for value in done.stdout.split()]


def peak(engine: str, parts: int, rows: int) -> list[float]:
    """MB: the growth of this process during a fit; for Spark also Java's heap after garbage collection."""
    return _spark_peak(parts, rows) if engine == "spark" else _dask_peak(parts, rows)


def _growth(fit: Callable[[], object]) -> float:
    CLEAR.write_text("5", encoding="ascii")  # resets the peak to the current memory
    before = _mb("VmRSS")
    fit()
    return _mb("VmHWM") - before


def _mb(name: str) -> float:
    return int(STATUS.read_text(encoding="ascii").partition(f"{name}:")[2].split()[0]) * 1024 / 1e6


def _spark_peak(parts: int, rows: int) -> list[float]:
    from pyspark.sql import functions

    def frame(rows: int, parts: int) -> Any:
        numbers = [functions.randn(SEED + j).alias(name) for j, name in enumerate(names_of(NUMBERS))]
        return session.range(0, rows, 1, parts).select(*numbers, (functions.col("id") % 2).alias("label"))

    with _spark() as session:
        _fit(deciban.NaiveBayes(), frame(10, 1))  # imports happen once
        growth = _growth(lambda: _fit(deciban.NaiveBayes(), frame(rows, parts)))
        java = session.sparkContext._jvm.java.lang
        java.System.gc()
        runtime = java.Runtime.getRuntime()
        return [growth, (runtime.totalMemory() - runtime.freeMemory()) / 1e6]


def _dask_peak(parts: int, rows: int) -> list[float]:
    import dask.array as da
    from dask.distributed import Client, LocalCluster

    def arrays(rows: int, parts: int) -> tuple[Any, Any]:
        rng, each = da.random.default_rng(SEED), -(-rows // parts)
        X = rng.standard_normal((rows, NUMBERS.columns), chunks=(each, NUMBERS.columns))
        return X, da.arange(rows, chunks=each) % 2

    with LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        _dask_fit(*arrays(10, 1))
        return [_growth(lambda: _dask_fit(*arrays(rows, parts)))]


# Command line --------------------------------------------------------------------------------------------------------

ENGINES: dict[str, harness.Job] = {"spark": spark, "dask": dask, "driver-memory": memory}


def main() -> int:
    """Run the jobs; 1 if one failed or disagrees with its peer (a missed target is only reported)."""
    options = _parse()
    if options.peak:
        engine, parts, rows = options.peak
        print(*peak(engine, int(parts), int(rows)))
        return 0
    harness.JOBS.update(ENGINES)  # not in `python -m benchmarks`: they need Java and minutes
    bench = Bench(runs=options.runs, quick=options.quick)
    bench.run(options.only or ENGINES)
    print("\n" + report.text(bench))
    packages = ("deciban", "pyspark", "dask", "distributed", "dask-ml", "scikit-learn", "pyarrow")
    versions = [f"{name} {report.version(name) or '–'}" for name in packages]
    print(f"\n{report.cpu_model()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {', '.join(versions)}")
    if options.json:
        report.write_json(bench, options.json)
    return int(bool(bench.failures) or not all(row.valid for row in bench.comparisons))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engines", description=str(__doc__).partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=list(ENGINES), metavar="NAME", help=", ".join(ENGINES))
    parser.add_argument("--quick", action="store_true", help=f"1/{QUICK} of the rows: does everything work?")
    parser.add_argument("--runs", type=int, default=3, help="runs of both sides; the minimum counts")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write all timings to this file")
    parser.add_argument("--peak", nargs=3, metavar=("ENGINE", "PARTS", "ROWS"), help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
