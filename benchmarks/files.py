"""Fitting from files beside reading them with pyarrow; predicting to a file beside a pipeline in chunks."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import deciban
from benchmarks import data, sizes
from benchmarks.harness import Bench, gap, job
from benchmarks.sizes import HEAD, SEED, Size
from benchmarks.tables import ImputeEncodeNB
from deciban.cli import app

CHUNK = 100_000  # rows that the pipeline predicts at a time
PEAK_MB, GROWTH_MB = 600.0, 60.0
# The peak is Linux's VmHWM: ru_maxrss starts from the peak of the process that launched this one
FIT = """
import sys
import deciban
deciban.NaiveBayes().fit(deciban.scan(sys.argv[1]), "label")
status = open("/proc/self/status", encoding="ascii").read()
print(status.partition("VmHWM:")[2].split()[0])
"""


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="deciban-bench-") as folder:
        yield Path(folder)


def _table(rng: np.random.Generator, size: Size) -> Any:
    """Six numbers with missing values, two whole numbers, three columns of text, and a label of text."""
    y = data.labels(rng, size)
    columns: dict[str, Any] = {}
    for j in range(6):
        x = np.round(rng.normal(0.3 * y, 1.0), 4)
        columns[f"x{j}"] = pa.array(x, mask=rng.random(size.rows) < sizes.MISSING)
    for name, high in (("age", 90), ("hours", 100)):
        columns[name] = pa.array(rng.integers(0, high, size.rows))
    for j, values in enumerate((5, 30, 300)):
        codes = (rng.integers(0, values, size.rows) + y) % values
        columns[f"c{j}"] = pa.array([f"value {i}" for i in range(values)]).take(pa.array(codes))
    columns["label"] = pa.array(["no", "perhaps", "yes"]).take(pa.array(y))
    return pa.table(columns)


def _gap_to_memory(model: deciban.NaiveBayes, table: Any) -> float:
    """The gap between the predictions of a model fitted from a file and of one fitted in memory."""
    head = table.slice(0, HEAD)
    return gap(model.predict_proba(head), deciban.NaiveBayes().fit(table, "label").predict_proba(head))


@job("files")
def files(bench: Bench) -> None:
    """pyarrow reads with all its threads, and keeps only the last table."""
    size = bench.size(sizes.FILES)
    table = _table(bench.rng(), size)
    with _folder() as folder:
        csv, parquet = folder / "table.csv", folder / "table.parquet"
        pacsv.write_csv(table, csv)
        pq.write_table(table, parquet, row_group_size=1 << 18)
        bench.compare(
            f"fit from csv, {size}, mixed",
            "pyarrow reading it",
            ours=lambda: deciban.NaiveBayes().fit(deciban.scan(csv), "label"),
            peer=lambda: pacsv.read_csv(csv),
            target=1 / 1.5,
            agreement=lambda ours, _: _gap_to_memory(ours, table),
            note="the ratio is the fraction of its speed",
        )
        bench.compare(
            f"fit from parquet, {size}, mixed",
            "pyarrow scanning it",
            ours=lambda: deciban.NaiveBayes().fit(deciban.scan(parquet), "label"),
            peer=lambda: sum(batch.num_rows for batch in ds.dataset(parquet).to_batches()),
            target=1 / 2,
            agreement=lambda ours, _: _gap_to_memory(ours, table),
            note="the ratio is the fraction of its speed",
        )


@job("predict-file")
def predict_file(bench: Bench) -> None:
    """From parquet to parquet, with the probabilities of all classes; without missing values, which peers impute."""
    size = bench.size(sizes.PREDICTED)
    table = _complete(_table(bench.rng(), size))
    ours = deciban.NaiveBayes().fit(table, "label")
    peer = ImputeEncodeNB().fit(table.to_pandas(), "label")
    with _folder() as folder:
        rows, model = folder / "rows.parquet", folder / "model.deciban"
        out, other = folder / "ours.parquet", folder / "peer.parquet"
        pq.write_table(table, rows, row_group_size=1 << 18)
        ours.save(model)
        bench.compare(
            f"predict to parquet, {size}, mixed",
            "scikit-learn pipeline in chunks",
            ours=lambda: app(["predict", str(model), str(rows), "-o", str(out)], standalone_mode=False),
            peer=lambda: _predict_in_chunks(peer, rows, other),
            target=10,
            agreement=lambda *_: gap(_probabilities(out), _probabilities(other)),
        )


def _complete(table: Any) -> Any:
    """The table without missing values, and with integers as floats, which the peer treats as numbers."""
    columns = {name: table.column(name) for name in table.column_names}
    for name, column in columns.items():
        if not pa.types.is_string(column.type):
            columns[name] = pc.fill_null(column.cast(pa.float64()), 0.5)
    return pa.table(columns)


def _predict_in_chunks(model: ImputeEncodeNB, rows: Path, out: Path) -> None:
    classes = model.gaussian.classes_
    schema = pa.schema([("prediction", pa.string()), *((f"proba_{label}", pa.float64()) for label in classes)])
    with pq.ParquetWriter(out, schema) as writer:
        for batch in pq.ParquetFile(rows).iter_batches(CHUNK):
            p = model.predict_proba(batch.to_pandas())
            columns = [pa.array(classes[p.argmax(axis=1)].astype(str)), *(pa.array(column) for column in p.T)]
            writer.write_table(pa.table(columns, schema=schema))


def _probabilities(path: Path) -> data.Floats:
    table = pq.read_table(path).slice(0, HEAD)
    return np.stack([table.column(name).to_numpy() for name in table.column_names if name.startswith("proba_")])


@job("memory-csv")
def memory_csv(bench: Bench) -> None:
    """The peak memory of a process that only fits, for a file and for one twice as long."""
    if not Path("/proc/self/status").exists():
        print("  skipped: needs Linux")
        return
    size = bench.size(sizes.LONG_CSV)
    rng, rows = np.random.default_rng(SEED), size.rows // 20
    chunk = _table(rng, Size(rows, size.columns, size.classes))
    with _folder() as folder:
        peaks = []
        for times in (20, 40):
            path = folder / f"{times}.csv"
            with pacsv.CSVWriter(path, chunk.schema) as writer:
                for _ in range(times):
                    writer.write_table(chunk)
            done = subprocess.run([sys.executable, "-c", FIT, str(path)], check=True, stdout=subprocess.PIPE, text=True)
            peaks.append(float(done.stdout) * 1024 / 1e6)
            path.unlink()
    bench.limit(f"peak memory, fit of a csv of {size}", peaks[0], PEAK_MB, "MB")
    bench.limit("growth of the peak with twice the rows", max(0.0, peaks[1] - peaks[0]), GROWTH_MB, "MB")
