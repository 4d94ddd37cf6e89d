"""Spark: the laws of engines, also where tasks fail or are run twice; files that tasks read themselves; Connect."""

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import deciban as db
from tests.engines.data import ALL, PLAIN, assert_same_bits, cut, evidence, in_memory, of, selected
from tests.engines.laws import ROOT, EngineLaws, run

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install deciban[spark]")
from pyspark import TaskContext
from pyspark.sql.pandas.types import from_arrow_schema

from deciban.engines import spark as engine
from deciban.engines.partitions import PartitionResult
from deciban.engines.spark_transfer import scanned_row_groups


def _java():
    """The version of Java that Spark would find, or 0."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    if java is None:
        return 0
    output = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    number = output.partition('version "')[2].partition('"')[0].partition(".")[0]
    return int(number) if number.isdigit() else 0


pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(_java() < 17, reason="Spark needs Java 17"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),  # py4j's sockets to the JVM
]


def frame_of(spark, parts, on_read=None):
    """A partition for each table, as it is; `on_read` is called with the number of the partition and of the attempt."""

    def tables(batches):
        for _ in batches:
            pass
        task = TaskContext.get()
        if on_read is not None:
            on_read(task.partitionId(), task.attemptNumber())
        yield from parts[task.partitionId()].to_batches(max_chunksize=50)

    schema = from_arrow_schema(parts[0].schema)
    return spark.range(0, len(parts), 1, len(parts)).mapInArrow(tables, schema)


class TestSpark(EngineLaws):
    engine, library = engine, "Spark"

    @pytest.fixture(autouse=True)
    def session(self, spark):
        self.spark = spark

    def frame(self, tables, on_read=None):
        return frame_of(self.spark, tables, on_read)

    def computed(self, frame):
        return frame.toArrow()


def test_more_partitions_than_groups(spark, monkeypatch):
    table = of(("height", "city"))
    expected = db.NaiveBayes().fit(table, "class", sample_weight="weight")
    for groups in ((1,), (7, 3, 1)):
        monkeypatch.setattr(engine, "GROUPS", groups)
        frame = frame_of(spark, cut(table, (*range(0, 340, 20), 340)))
        assert evidence(engine.fit(db.NaiveBayes(), frame, "class", "weight")) == evidence(expected)


def test_a_large_result_is_sent_in_pieces(monkeypatch):
    monkeypatch.setattr(engine, "CELL", 100)
    sent = [*engine._pickled(7, PartitionResult(np.arange(99.0))), *engine._pickled(9, PartitionResult(np.ones(99)))]
    assert len(sent) > 10
    grouped = [batch.append_column("group", pa.array([0])) for batch in sent]
    pieces = [batch.column(batch.schema.get_field_index("result"))[0].as_py() for batch in engine._sums(grouped)]
    assert pickle.loads(b"".join(pieces)).value.tolist() == (np.arange(99.0) + 1).tolist()
    assert [*engine._pickled(3, PartitionResult())] == []


# How rows come to Python ---------------------------------------------------------------------------------------------


def written(table, folder, groups=37):
    """A file for each part of the table, of several row groups."""
    for number, part in enumerate(cut(table, (0, 100, 101, 340))):
        pq.write_table(part, folder / f"part {number}.parquet", row_group_size=groups)
    return str(folder)


def is_read_by_tasks(frame):
    return bool(scanned_row_groups(frame, engine.arrow_schema(frame.schema)))


def test_tasks_read_plain_parquet_by_themselves(spark, tmp_path):
    make, table, weight = selected("each column another")
    frame = spark.read.parquet(written(table, tmp_path))
    assert is_read_by_tasks(frame)
    assert_same_bits(engine.fit(make(), frame, "class", weight), in_memory("each column another"), table)


def test_columns_may_be_chosen_and_the_rest_is_for_spark(spark, tmp_path):
    table = of(ALL)
    frame = spark.read.parquet(written(table, tmp_path))
    some = frame.select("city", "class", "height")
    assert is_read_by_tasks(some)
    expected = db.NaiveBayes().fit(table.select(["city", "class", "height"]), "class")
    assert evidence(engine.fit(db.NaiveBayes(), some, "class")) == evidence(expected)
    others = {
        "fewer rows": frame.where("height > 0"),
        "some rows": frame.limit(7),
        "a sample": frame.sample(0.5, seed=1),
        "twice": frame.union(frame),
        "other cells": frame.withColumn("height", -frame["height"]),
        "other names": frame.withColumnRenamed("height", "size"),
        "a value": frame.selectExpr("class", "1.5 as height"),
        "in order": frame.orderBy("height"),
        "made": spark.range(3),
        "no files": frame_of(spark, cut(table)),
    }
    assert {name for name, other in others.items() if is_read_by_tasks(other)} == set()
    fewer = others["fewer rows"]
    expected = db.NaiveBayes().fit(table.filter(pc.greater(table["height"], 0.0)), "class", sample_weight="weight")
    assert evidence(engine.fit(db.NaiveBayes(), fewer, "class", "weight")) == evidence(expected)


def test_what_is_cached_is_what_counts(spark, tmp_path):
    frame = spark.read.parquet(written(of(ALL), tmp_path)).cache()
    rows = frame.count()
    for path in tmp_path.iterdir():
        path.unlink()
    assert not is_read_by_tasks(frame)
    model = engine.fit(db.NaiveBayes(), frame.drop("weight"), "class")
    frame.unpersist()
    assert model.class_count_.sum() == rows


def test_folders_that_are_a_column_and_files_that_differ_are_for_spark(spark, tmp_path):
    for day in (1, 2):
        (tmp_path / "days" / f"day={day}").mkdir(parents=True)
        table = pa.table({"x": [1.0 * day, 2.0], "y": ["a", "b"]})
        pq.write_table(table, tmp_path / "days" / f"day={day}" / "0.parquet")
    days = spark.read.parquet(str(tmp_path / "days"))
    assert not is_read_by_tasks(days)
    model = engine.fit(db.NaiveBayes(), days, "y")
    assert model.feature_names_in_.tolist() == ["x", "day"]
    (tmp_path / "files").mkdir()
    pq.write_table(pa.table({"x": [1.0, 2.0], "y": ["a", "b"]}), tmp_path / "files" / "0.parquet")
    pq.write_table(pa.table({"y": ["a", "b"]}), tmp_path / "files" / "1.parquet")
    differ = spark.read.schema("x double, y string").parquet(str(tmp_path / "files"))
    assert not is_read_by_tasks(differ)
    assert engine.fit(db.NaiveBayes(), differ, "y").class_count_.tolist() == [2.0, 2.0]


def test_a_bad_cell_of_a_file_is_named(spark, tmp_path):
    table = pa.table({"x": [1.0, 2.0, np.inf], "y": ["a", "b", "a"]})
    pq.write_table(table, tmp_path / "0.parquet")
    with pytest.raises(db.DecibanError, match=r"partition 0, .*0.parquet, row 2: column 'x': inf is infinite"):
        engine.fit(db.NaiveBayes(), spark.read.parquet(str(tmp_path)), "y")


def test_a_file_that_is_read_twice_counts_twice(spark, tmp_path):
    pq.write_table(pa.table({"x": [1.0, 2.0], "y": ["a", "b"]}), tmp_path / "0.parquet")
    path = str(tmp_path / "0.parquet")
    for frame in (spark.read.parquet(path, path), spark.read.schema("x double, y string").parquet(str(tmp_path), path)):
        assert frame.count() == 4
        assert not is_read_by_tasks(frame)
        assert engine.fit(db.NaiveBayes(), frame, "y").class_count_.tolist() == [2.0, 2.0]


def test_files_that_are_gone_or_changed(spark, tmp_path):
    for name in ("0", "1"):
        pq.write_table(pa.table({"x": [1.0, 2.0], "y": ["a", "b"]}), tmp_path / f"{name}.parquet")
    frame = spark.read.option("ignoreMissingFiles", "true").parquet(str(tmp_path))
    rows = engine.rows(frame, "y")
    (tmp_path / "1.parquet").unlink()
    assert not is_read_by_tasks(frame)
    assert engine.fit(db.NaiveBayes(), frame, "y").class_count_.tolist() == [1.0, 1.0]
    pq.write_table(pa.table({"x": [1.0, 2.0, 3.0], "y": ["a", "b", "b"]}), tmp_path / "1.parquet")
    with pytest.raises(db.DecibanError, match=r"partition 1: .*1\.parquet has changed"):
        db.NaiveBayes().fit(rows)


def test_files_of_large_strings_and_dictionaries_are_read_too(spark, tmp_path):
    table = pa.table({"x": [1.0, 2.0], "c": pa.array(["u", "v"]).dictionary_encode(), "y": ["a", "b"]})
    pq.write_table(table.set_column(2, "y", table["y"].cast(pa.large_string())), tmp_path / "0.parquet")
    frame = spark.read.parquet(str(tmp_path)).select("c", "x", "y").select("y", "c", "x")
    assert is_read_by_tasks(frame)
    expected = db.NaiveBayes().fit(table.select(["y", "c", "x"]), "y")
    assert evidence(engine.fit(db.NaiveBayes(), frame, "y")) == evidence(expected)


def test_names_that_differ_in_case_and_columns_of_time(spark):
    """Spark takes a for A where a name is given; times are learned, lists refused by name, and predict keeps both."""
    frame = spark.createDataFrame([(1.0, 2.0, "u"), (2.0, 1.0, "v")], ["a", "A", "y"])
    assert engine.fit(db.NaiveBayes(), frame, "y").feature_names_in_.tolist() == ["a", "A"]
    timed = spark.createDataFrame([(1.0, "u"), (2.0, "v")], ["a", "y"]).selectExpr(
        "a", "y", "timestamp'2020-01-01' as t", "array(a) as l", "'x' as Prediction"
    )
    with pytest.raises(db.DecibanError, match="column 'l' is of type list"):
        engine.fit(db.NaiveBayes(), timed, "y")
    assert engine.fit(db.NaiveBayes(), timed.select("a", "t", "y"), "y").generative_.schema.kinds == ("number", "date")
    model = engine.fit(db.NaiveBayes(), timed.select("a", "y"), "y")
    predictions = engine.predict(model, timed)
    assert predictions.columns == ["a", "y", "t", "l", "Prediction", "prediction 2", "proba_u", "proba_v"]
    assert [row["prediction 2"] for row in predictions.orderBy("a").collect()] == ["u", "v"]


def test_numbers_are_sent_as_arrays_with_missing_values_and_any_names(spark):
    """Of each type, also where names hold dots and quotes; an integer stays one."""
    rng = np.random.default_rng(0)
    absent = rng.random((60, 3)) < 0.2
    whole = rng.integers(0, 4, (60, 2))
    table = pa.table(
        {
            "a.b": pa.array(rng.normal(size=60), mask=absent[:, 0]),
            "`c`": pa.array(np.where(absent[:, 1], np.nan, rng.normal(size=60))),
            "n": pa.array(whole[:, 0], mask=absent[:, 2]),
            "m": pa.array(whole[:, 1] + 2**40),
            "short": pa.array(whole[:, 0].astype(np.int8)),
            "numbers of double": pa.array(rng.choice(["x", "y"], 60)),
            "class": pa.array(rng.choice(["yes", "no"], 60)),
        }
    )
    families = {name: db.families.Categorical() for name in ("n", "m", "short")}
    for given in (None, families):
        model = engine.fit(db.NaiveBayes(given), frame_of(spark, cut(table, (0, 7, 7, 60))), "class")
        assert evidence(model) == evidence(db.NaiveBayes(given).fit(table, "class"))


# Tasks that fail, and tasks that are run twice -----------------------------------------------------------------------


def test_tasks_that_fail_and_workers_that_die_are_counted_once(spark, tmp_path):
    attempts, marker = str(tmp_path / "attempts"), str(tmp_path / "died")

    def fail(number, attempt):
        with open(attempts, "a") as file:
            file.write(f"{number}.{attempt} ")
        if number == 4 and attempt == 0:
            raise OSError("a disk went away")
        if number == 2 and not os.path.exists(marker):
            with open(marker, "w"):
                pass
            os.kill(os.getpid(), 9)

    model = engine.fit(db.NaiveBayes(), frame_of(spark, cut(of(ALL)), fail), "class", "weight")
    assert evidence(model) == evidence(in_memory(PLAIN))
    assert {"4.0", "4.1", "2.0", "2.1"} <= set(Path(attempts).read_text().split())


SPECULATION = """
import os, socket, subprocess, sys, time, warnings
warnings.filterwarnings("ignore")
sys.path.insert(0, {root!r})
os.environ["PYSPARK_PYTHON"] = sys.executable
import pyspark
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
import deciban as db
from deciban.engines import spark as engine
from deciban.engines.spark_transfer import scanned_row_groups
from tests.engines.data import cut, evidence, of

home = os.path.dirname(pyspark.__file__)
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = str(free.getsockname()[1])
environment = {{**os.environ, "SPARK_HOME": home, "SPARK_WORKER_DIR": {folder!r}, "SPARK_DAEMON_MEMORY": "256m"}}

def start(name, *given):
    command = [home + "/bin/spark-class", "org.apache.spark.deploy." + name, *given]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

started = [start("master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", "0")]
for host in ("127.0.0.2", "127.0.0.3"):
    given = ("--host", host, "--cores", "1", "--memory", "600m", "--webui-port", "0", "spark://127.0.0.1:" + port)
    started.append(start("worker.Worker", *given))
try:
    settings = {{
        "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.sql.shuffle.partitions": "2",
        "spark.speculation": "true", "spark.speculation.interval": "50ms", "spark.speculation.multiplier": "1.1",
        "spark.speculation.quantile": "0.3", "spark.speculation.minTaskRuntime": "50ms",
        "spark.executor.memory": "500m", "spark.executorEnv.PYTHONPATH": {root!r},
        "spark.executor.extraJavaOptions": os.environ.get("SPARK_DAEMON_JAVA_OPTS", ""),
        "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0", "spark.cores.max": "2",
    }}
    builder = SparkSession.builder.master("spark://127.0.0.1:" + port)
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    parts = cut(of(("height", "city")), (0, 70, 95, 200, 340))
    folder = {folder!r}

    def tables(batches):
        for _ in batches:
            pass
        task = TaskContext.get()
        number, attempt = task.partitionId(), task.attemptNumber()
        open(f"{{folder}}/{{number}}.{{attempt}}", "w").close()
        if (number, attempt) == (2, 0):  # a slow machine: another is asked meanwhile
            for _ in range(600):
                if os.path.exists(folder + "/2.1"):
                    break
                time.sleep(0.1)
        yield from parts[number].to_batches()

    frame = session.range(0, len(parts), 1, len(parts)).mapInArrow(tables, from_arrow_schema(parts[0].schema))
    model = engine.fit(db.NaiveBayes(), frame, "class", "weight")
    expected = db.NaiveBayes().fit(of(("height", "city")), "class", sample_weight="weight")
    print("EQUAL", evidence(model) == evidence(expected))
    session.stop()
finally:
    for process in started[::-1]:
        process.terminate()
        process.wait(30)
"""


def test_a_task_that_is_run_twice_at_once_is_counted_once(tmp_path):
    """On two workers with addresses of their own: a host is never asked twice, and `local-cluster` is one host."""
    if sys.platform != "linux":
        pytest.skip("only Linux has more than one address of its own without being set up for it")
    done = run(SPECULATION.format(root=ROOT, folder=str(tmp_path)), timeout=240)
    assert "EQUAL True" in done.stdout, done.stderr[-2000:]
    assert (tmp_path / "2.1").exists()


# Predictions and Connect ---------------------------------------------------------------------------------------------


def test_predictions_can_be_queried(spark):
    table, model = of(ALL), in_memory(PLAIN)
    engine.predict(model, frame_of(spark, cut(table))).createOrReplaceTempView("predictions")
    counted = spark.sql("select prediction, count(*) as n from predictions group by 1").collect()
    names, counts = np.unique(model.predict(table), return_counts=True)
    assert {row["prediction"]: row["n"] for row in counted} == dict(zip(names.tolist(), counts.tolist(), strict=True))


CONNECT = """
import warnings
warnings.filterwarnings("ignore")
import sys
sys.path.insert(0, {root!r})
from pyspark.sql import SparkSession
import deciban as db
from deciban.engines import spark as engine
from deciban.engines.spark_transfer import scanned_row_groups
from tests.engines.data import evidence, of

session = SparkSession.builder.remote("local[2]").getOrCreate()
table = of(("height", "age", "smoker", "city"))
frame = session.createDataFrame(table).repartition(3)
print("REMOTE", "connect" in type(frame).__module__)
model = engine.fit(db.NaiveBayes(), frame, "class", "weight")
expected = db.NaiveBayes().fit(table, "class", sample_weight="weight")
print("FITTED", evidence(model) == evidence(expected))
print("EVALUATED", engine.evaluate(model, frame, "class", "weight").confusion.tolist()
      == db.evaluate(expected, table, "class", "weight").confusion.tolist())
predicted = engine.predict(model, frame).groupBy("prediction").count().toArrow().to_pylist()
names = expected.predict(table).tolist()
counts = {{n: names.count(n) for n in set(names)}}
print("PREDICTED", {{row["prediction"]: row["count"] for row in predicted}} == counts)
session.stop()
"""


def test_spark_connect():
    pytest.importorskip("grpc", reason="Spark Connect needs pip install pyspark[connect]")
    done = run(CONNECT.format(root=ROOT), timeout=180)
    for name in ("REMOTE", "FITTED", "EVALUATED", "PREDICTED"):
        assert f"{name} True" in done.stdout, done.stderr[-2000:]
