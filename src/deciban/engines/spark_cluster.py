"""Files that Spark reads, and a Spark session to read them: for `deciban fit --engine spark`."""

from __future__ import annotations

import os
import re
import shutil
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from typing import Any

from deciban.data.files.dialect import CsvOptions
from deciban.data.files.source_paths import require_unique_paths
from deciban.engines.cluster_session import ClusterSession, deferred_interrupts
from deciban.engines.engine_files import EngineFiles, table_files
from deciban.engines.spark import SparkRows, arrow_schema, rows  # raises if PySpark is not installed
from deciban.engines.text_partitions import TextBlock, require_line_breaks, text_files
from deciban.errors import DecibanError

try:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession
except ImportError as error:
    raise ImportError(f"a Spark session needs PySpark: pip install deciban[spark] ({error})") from error

SAMPLED_LINES = 5000  # from which dialect and types are inferred


def read_files(paths: Sequence[str], format: str, csv: CsvOptions, encoding: str = "utf-8") -> EngineFiles:
    """Files of csv, JSON lines or parquet, on any file system that Spark knows."""
    require_unique_paths(paths)
    read = SparkSession.builder.getOrCreate().read
    if format == "parquet":
        frame = read.parquet(*paths)
        return table_files(
            arrow_schema(frame.schema),
            lambda names, label, weight: rows(frame.select(*map(_quoted, names)), label, weight),
        )
    require_line_breaks(encoding)
    # each line as bytes, with its block: a header is the first line of the block at offset 0
    lines = read.text(list(paths)).selectExpr(
        "cast(value as binary) as line", "_metadata.file_block_start as start", "xxhash64(_metadata.file_path) as file"
    )
    first = lines.where("start = 0").limit(SAMPLED_LINES).collect()
    head = [bytes(row["line"]) for row in first if row["file"] == first[0]["file"]]
    sample = TextBlock(paths[0], encoding, data=b"\n".join(head))
    split = partial(_blocks, encoding)
    return text_files(sample, format, csv, lambda columns, read: SparkRows(columns, read, lines), split)


def _quoted(name: str) -> str:
    """The name in backticks, without which a dot would select a field of a struct."""
    return f"`{name.replace('`', '``')}`"


def _blocks(encoding: str, number: int, batches: Iterable[Any]) -> Iterator[TextBlock]:
    """The lines of a partition, in runs of the same block of a file."""
    lines_before, last = 0, None
    for batch in batches:
        lines = batch.column(0).to_pylist()
        blocks = list(zip(batch.column(1).to_pylist(), batch.column(2).to_pylist(), strict=True))
        for block, members in groupby(range(len(lines)), key=blocks.__getitem__):
            run = [lines[i] for i in members]
            starts_file = block[0] == 0 and block != last
            data, name = b"\n".join(run), f"partition {number}"
            yield TextBlock(name, encoding, data=data, starts_file=starts_file, lines_before=lines_before)
            lines_before, last = lines_before + len(run), block


# A cluster -----------------------------------------------------------------------------------------------------------

NO_JAVA = "spark needs Java 17 or newer: install it, or set JAVA_HOME"


def _progress(spark: Any) -> tuple[str, int, int] | None:
    tracker = spark.sparkContext.statusTracker()
    for stage in sorted(tracker.getActiveStageIds()):
        info = tracker.getStageInfo(stage)
        if info is not None and info.numTasks:
            return str(stage), info.numCompletedTasks, info.numTasks
    return None


@contextmanager
def session(*, dashboard: bool = False) -> Iterator[ClusterSession]:
    """The session of spark-submit, SPARK_REMOTE or Spark's settings, or a local one; a new one is stopped at the end.

    Failures of files and of the cluster raise a DecibanError with a message of one line.
    """
    failures = PySparkException, Py4JError
    existing = SparkSession.getActiveSession() is not None
    remote = "SPARK_REMOTE" in os.environ or "PYSPARK_GATEWAY_PORT" in os.environ
    if not (existing or remote) and not _has_java():
        raise DecibanError(NO_JAVA)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        with deferred_interrupts(), _silence(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spark = SparkSession.builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    except failures as error:
        gateway = "JAVA_GATEWAY_EXITED" in str(error)
        raise DecibanError(NO_JAVA if gateway else f"spark: {_one_line(error)}") from error
    try:
        connected = "SPARK_REMOTE" in os.environ
        if not connected:
            spark.sparkContext.setLogLevel("OFF")  # errors are reported in one line
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="pyspark")  # about the version of pandas
            url = spark.sparkContext.uiWebUrl if dashboard and not connected else None
            yield ClusterSession(url, partial(_progress, spark))
    except failures as error:
        raise DecibanError(f"spark: {_one_line(error)}") from error
    finally:
        if not existing:
            spark.stop()


def _has_java() -> bool:
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java" if not home else os.path.join(home, "bin", "java")) is not None


@contextmanager
def _silence() -> Iterator[None]:
    """Discards stderr, to which Java logs while it starts."""
    sys.stderr.flush()
    stderr, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 2)
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(null)


def _one_line(error: Exception) -> str:
    """The last line of a traceback, or the first line of a message, without Spark's error codes."""
    java_error = getattr(error, "java_exception", None)
    text = str(error if java_error is None else java_error.getMessage())
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [type(error).__name__]
    raised = [line for line in lines if re.match(r"[\w.]*(Error|Exception): ", line)]
    return re.sub(r"^\[[A-Z_.]+\] | SQLSTATE: \w+$", "", (raised or lines)[-1 if raised else 0])
