"""Files that Spark reads, and a session to read them in: what `deciban fit --engine spark` needs."""

from __future__ import annotations

import os
import re
import shutil
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

from deciban.engines.files import Files, Piece, require_lines, require_once, table_files, text_files, uninterrupted
from deciban.engines.spark import Partitions, arrow_schema, rows  # which says what is missing, if it is
from deciban.errors import DecibanError
from deciban.sources.dialect import Asked

try:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession
except ImportError as error:
    raise ImportError(f"a session of Spark needs PySpark: pip install deciban[spark] ({error})") from error

FIRST = 5000  # lines that dialect and types are guessed from, at most


def reading(paths: Sequence[str], format: str, asked: Asked, encoding: str = "utf-8") -> Files:
    """Files of csv, JSON lines or parquet, wherever Spark finds them; its `rows` are what a model learns from."""
    require_once(paths)
    read = SparkSession.builder.getOrCreate().read
    if format == "parquet":
        frame = read.parquet(*paths)
        return table_files(
            arrow_schema(frame.schema),
            lambda names, label, weight: rows(frame.select(*map(_quoted, names)), label, weight),
        )
    require_lines(encoding)
    # a line as bytes, and where it is: the header is the first line of the block that begins a file
    lines = read.text(list(paths)).selectExpr(
        "cast(value as binary) as line", "_metadata.file_block_start as start", "xxhash64(_metadata.file_path) as file"
    )
    first = lines.where("start = 0").limit(FIRST).collect()
    head = [bytes(row["line"]) for row in first if row["file"] == first[0]["file"]]
    sample = Piece(paths[0], encoding, data=b"\n".join(head))
    pieces = partial(_pieces, encoding)
    return text_files(sample, format, asked, lambda columns, reader: Partitions(columns, reader, lines), pieces)


def _quoted(name: str) -> str:
    """A dot in a name is no field of a structure."""
    return f"`{name.replace('`', '``')}`"


def _pieces(encoding: str, number: int, batches: Iterable[Any]) -> Iterator[Piece]:
    """The lines of a partition, in runs of one block of a file each."""
    before, last = 0, None
    for batch in batches:
        lines = batch.column(0).to_pylist()
        blocks = list(zip(batch.column(1).to_pylist(), batch.column(2).to_pylist(), strict=True))
        for block, members in groupby(range(len(lines)), key=blocks.__getitem__):
            run = [lines[i] for i in members]
            begins = block[0] == 0 and block != last
            title = f"partition {number}"
            yield Piece(title, encoding, data=b"\n".join(run), begins=begins, before=before)
            before, last = before + len(run), block


# A cluster -----------------------------------------------------------------------------------------------------------

NO_JAVA = "spark needs Java 17 or newer: install it, or say where it is by JAVA_HOME"


@dataclass(frozen=True)
class Session:
    """A session of Spark that works for this process."""

    spark: Any
    dashboard: str | None = None

    def progress(self) -> tuple[str, int, int] | None:
        """The stage that is going on, how many tasks are done in it, and of how many; None between stages."""
        tracker = self.spark.sparkContext.statusTracker()
        for stage in sorted(tracker.getActiveStageIds()):
            found = tracker.getStageInfo(stage)
            if found is not None and found.numTasks:
                return str(stage), found.numCompletedTasks, found.numTasks
        return None


@contextmanager
def session(*, shown: bool = False) -> Iterator[Session]:
    """The session that spark-submit, SPARK_REMOTE or Spark's settings ask for, or a local one.

    - `shown`: whether somebody looks at its address.

    One that is made here is stopped in the end.

    What goes wrong with files or the cluster is an error in one line.
    """
    failures = PySparkException, Py4JError
    there = SparkSession.getActiveSession() is not None
    elsewhere = "SPARK_REMOTE" in os.environ or "PYSPARK_GATEWAY_PORT" in os.environ
    if not (there or elsewhere) and not _has_java():
        raise DecibanError(NO_JAVA)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        with uninterrupted(), _silence(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spark = SparkSession.builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    except failures as error:
        gateway = "JAVA_GATEWAY_EXITED" in str(error)
        raise DecibanError(NO_JAVA if gateway else f"spark: {_one_line(error)}") from error
    try:
        connected = "SPARK_REMOTE" in os.environ
        if not connected:
            spark.sparkContext.setLogLevel("OFF")  # errors are told in one line
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="pyspark")  # which pandas it would rather have
            yield Session(spark, spark.sparkContext.uiWebUrl if shown and not connected else None)
    except failures as error:
        raise DecibanError(f"spark: {_one_line(error)}") from error
    finally:
        if not there:
            spark.stop()


def _has_java() -> bool:
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java" if not home else os.path.join(home, "bin", "java")) is not None


@contextmanager
def _silence() -> Iterator[None]:
    """A Java that is started now tells nobody what it does: it writes to stderr from its first moment on."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _one_line(error: Exception) -> str:
    """What went wrong: of a traceback its last line, without Spark's codes."""
    thrown = getattr(error, "java_exception", None)
    text = str(error if thrown is None else thrown.getMessage())
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [type(error).__name__]
    raised = [line for line in lines if re.match(r"[\w.]*(Error|Exception): ", line)]
    return re.sub(r"^\[[A-Z_.]+\] | SQLSTATE: \w+$", "", (raised or lines)[-1 if raised else 0])
