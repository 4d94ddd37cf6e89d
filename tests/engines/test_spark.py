"""Spark: the same model as of all rows in memory, also where tasks fail or are run twice; lazy predictions; Connect."""

import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import deciban as db
from tests.engines.data import (
    CELLS,
    JOINT,
    NUMBERS,
    SEVERAL,
    TABLE,
    close_scatters,
    cut,
    evidence,
    of,
    rounding,
    same_probabilities,
    spoiled,
)

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install deciban[spark]")
from pyspark import TaskContext
from pyspark.sql import SparkSession
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
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    number = told.partition('version "')[2].partition('"')[0].partition(".")[0]
    return int(number) if number.isdigit() else 0


pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(_java() < 17, reason="Spark needs Java 17"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),  # py4j's sockets to the JVM
]

f = db.families
ALL = (*NUMBERS, *CELLS)
ROOT = str(Path(__file__).parents[2])
ENDS = (0, 1, 41, 70, 70, 95, 110, 250, 340)  # uneven; the fourth is empty, the class "rare" in the third only


@pytest.fixture(scope="session")
def spark():
    """Two tasks at a time, each of which may fail three times."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "3",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.log.level": "OFF",
    }
    builder = SparkSession.builder.master("local[2,4]").appName("deciban's tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = builder.getOrCreate()
    yield session
    session.stop()


def frame_of(spark, parts, before=None):
    """A partition for each table, as it is; `before` is called with the number of the partition and of the attempt."""

    def tables(batches):
        for _ in batches:
            pass
        task = TaskContext.get()
        if before is not None:
            before(task.partitionId(), task.attemptNumber())
        yield from parts[task.partitionId()].to_batches(max_chunksize=50)

    schema = from_arrow_schema(parts[0].schema)
    return spark.range(0, len(parts), 1, len(parts)).mapInArrow(tables, schema)


# Learning ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SEVERAL)
def test_partitions_learn_what_one_process_does_to_the_last_bit(kind, spark):
    make, columns = SEVERAL[kind]
    table = of(columns)
    expected = make().fit(table, "class", sample_weight="weight")
    model = engine.fit(make(), frame_of(spark, cut(table, ENDS)), "class", sample_weight="weight")
    assert evidence(model) == evidence(expected)
    assert model.predict_proba(table).tobytes() == expected.predict_proba(table).tobytes()
    assert model.classes_.dtype == expected.classes_.dtype


@pytest.mark.parametrize("kind", ["per-class", "shrinkage by the data"])
def test_covariances_agree_to_rounding(kind, spark):
    make, columns = JOINT[kind]
    table = of(columns)
    expected = make().fit(table, "class", sample_weight="weight")
    model = engine.fit(make(), frame_of(spark, cut(table, ENDS)), "class", "weight")
    close_scatters(model, expected)
    same_probabilities(model.predict_proba(table), expected.predict_proba(table), rounding(kind))
    assert model.predict(table).tolist() == expected.predict(table).tolist()


@pytest.mark.parametrize("most", [100, 1000])
def test_an_evidence_classifier(most, spark):
    table = of((*ALL, "note"))
    expected = db.EvidenceClassifier(trees=8, max_weight_rows=most).fit(table, "class", sample_weight="weight")
    frame = frame_of(spark, cut(table, ENDS))
    model = engine.fit(db.EvidenceClassifier(trees=8, max_weight_rows=most), frame, "class", "weight")
    assert evidence(model, exact=True) == evidence(expected, exact=True)
    close_scatters(model, expected)
    same_probabilities(model.predict_proba(table), expected.predict_proba(table), 1e-8)


@pytest.mark.parametrize("kind", [db.LogisticRegression, db.SoftmaxRegression])
def test_linear_models(kind, spark):
    table = of(("height", "city"))
    expected = kind(l2=1.0).fit(table, "class", sample_weight="weight")
    frame = frame_of(spark, cut(table, (0, 100, 100, 340))).cache()
    model = engine.fit(kind(l2=1.0), frame, "class", "weight")
    same_probabilities(model.predict_proba(table), expected.predict_proba(table), 1e-8)


@pytest.mark.parametrize("groups", [(1,), (7, 1), (16, 5, 1)], ids=str)
def test_more_partitions_than_groups(groups, spark, monkeypatch):
    monkeypatch.setattr(engine, "GROUPS", groups)
    table = of(("height", "city"))
    parts = cut(table, (*range(0, 340, 10), 340))
    expected = db.NaiveBayes().fit(table, "class", sample_weight="weight")
    model = engine.fit(db.NaiveBayes(), frame_of(spark, parts), "class", "weight")
    assert evidence(model) == evidence(expected)


def test_an_outcome_travels_in_pieces(monkeypatch):
    monkeypatch.setattr(engine, "CELL", 100)
    sent = [*engine._pickled(7, PartitionResult(np.arange(99.0))), *engine._pickled(9, PartitionResult(np.ones(99)))]
    assert len(sent) > 10
    grouped = [batch.append_column("group", pa.array([0])) for batch in sent]
    found = [*engine._sums(grouped)]
    pieces = [batch.column(batch.schema.get_field_index("result"))[0].as_py() for batch in found]
    assert engine._unpickled(pieces).value.tolist() == (np.arange(99.0) + 1).tolist()
    assert [*engine._pickled(3, PartitionResult())] == []


def test_labels_keep_their_type(spark):
    for labels in ([3, 7] * 10, [False, True] * 10):
        table = pa.table({"x": [float(i) for i in range(20)], "class": labels})
        frame = frame_of(spark, cut(table, (0, 7, 7, 20)))
        model = engine.fit(db.NaiveBayes(), frame, "class")
        expected = db.NaiveBayes().fit(table, "class")
        assert model.classes_.dtype == expected.classes_.dtype
        said = [row["prediction"] for row in engine.predict(model, frame).collect()]
        assert said == expected.predict(table).tolist()
        assert type(said[0]) is type(labels[0])


# How rows come to Python ---------------------------------------------------------------------------------------------


def written(table, folder, groups=37):
    """A file for each part of the table, of several row groups."""
    for number, part in enumerate(cut(table, (0, 100, 101, 340))):
        pq.write_table(part, folder / f"part {number}.parquet", row_group_size=groups)
    return str(folder)


def is_read_by_tasks(frame):
    return bool(scanned_row_groups(frame, engine.arrow_schema(frame.schema)))


@pytest.mark.parametrize("kind", SEVERAL)
def test_tasks_read_plain_parquet_by_themselves(kind, spark, tmp_path):
    make, columns = SEVERAL[kind]
    table = of(columns)
    frame = spark.read.parquet(written(table, tmp_path))
    assert is_read_by_tasks(frame)
    model = engine.fit(make(), frame, "class", "weight")
    assert evidence(model) == evidence(make().fit(table, "class", sample_weight="weight"))


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
        "no files": frame_of(spark, cut(table, ENDS)),
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
    found = engine.predict(model, timed)
    assert found.columns == ["a", "y", "t", "l", "Prediction", "prediction 2", "proba_u", "proba_v"]
    assert [row["prediction 2"] for row in found.orderBy("a").collect()] == ["u", "v"]


def test_a_bad_cell_met_by_predict_is_named(spark):
    model = db.NaiveBayes().fit(pa.table({"x": [1.0, 2.0], "y": ["a", "b"]}), "y")
    parts = cut(pa.table({"x": [1.0] * 120 + [np.inf]}), (0, 1, 121))
    with pytest.raises(Exception, match="partition 1, row 119: column 'x'"):
        engine.predict(model, frame_of(spark, parts)).collect()


def test_numbers_go_as_arrays_with_holes_and_any_names(spark):
    """Of each type, also where names hold dots and quotes; a hole is a hole, and a whole number stays one."""
    rng = np.random.default_rng(0)
    holes = rng.random((60, 3)) < 0.2
    whole = rng.integers(0, 4, (60, 2))
    table = pa.table(
        {
            "a.b": pa.array(rng.normal(size=60), mask=holes[:, 0]),
            "`c`": pa.array(np.where(holes[:, 1], np.nan, rng.normal(size=60))),
            "n": pa.array(whole[:, 0], mask=holes[:, 2]),
            "m": pa.array(whole[:, 1] + 2**40),
            "short": pa.array(whole[:, 0].astype(np.int8)),
            "numbers of double": pa.array(rng.choice(["x", "y"], 60)),
            "class": pa.array(rng.choice(["yes", "no"], 60)),
        }
    )
    families = {name: f.Categorical() for name in ("n", "m", "short")}
    for given in (None, families):
        model = engine.fit(db.NaiveBayes(given), frame_of(spark, cut(table, (0, 7, 7, 60))), "class")
        assert evidence(model) == evidence(db.NaiveBayes(given).fit(table, "class"))


# Tasks that fail, and tasks that are run twice -----------------------------------------------------------------------


def test_a_task_that_fails_and_is_tried_again_is_counted_once(spark, tmp_path):
    table = of(ALL)
    attempts = str(tmp_path / "attempts")

    def fails(number, attempt):
        with open(attempts, "a") as file:
            file.write(f"{number}.{attempt} ")
        if number == 4 and attempt == 0:
            raise OSError("a disk went away")

    model = engine.fit(db.NaiveBayes(), frame_of(spark, cut(table, ENDS), fails), "class", "weight")
    assert evidence(model) == evidence(db.NaiveBayes().fit(table, "class", sample_weight="weight"))
    assert {"4.0", "4.1"} <= set(Path(attempts).read_text().split())


def test_a_worker_that_dies_is_replaced(spark, tmp_path):
    table = of(ALL)
    marker = str(tmp_path / "died")

    def dies(number, attempt):
        if number == 2 and not os.path.exists(marker):
            with open(marker, "w"):
                pass
            os.kill(os.getpid(), 9)

    model = engine.fit(db.NaiveBayes(), frame_of(spark, cut(table, ENDS), dies), "class", "weight")
    assert os.path.exists(marker)
    assert evidence(model) == evidence(db.NaiveBayes().fit(table, "class", sample_weight="weight"))


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


def run(code, timeout):
    """In a process of its own; PySpark has one session in each."""
    environment = {**os.environ, "PYTHONWARNINGS": "ignore", "PYSPARK_PYTHON": sys.executable}
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        timeout=timeout,
        env=environment,
    )


def test_a_task_that_is_run_twice_at_once_is_counted_once(tmp_path):
    """On two workers with addresses of their own: a host is never asked twice, and `local-cluster` is one host."""
    if sys.platform != "linux":
        pytest.skip("only Linux has more than one address of its own without being set up for it")
    done = run(SPECULATION.format(root=ROOT, folder=str(tmp_path)), timeout=240)
    assert "EQUAL True" in done.stdout, done.stderr[-2000:]
    assert (tmp_path / "2.1").exists()


# Bad rows ------------------------------------------------------------------------------------------------------------

BAD = {
    "infinite": ("height", np.inf, {}, "partition 4, row 3: column 'height': inf is infinite"),
    "no label": ("class", None, {}, "partition 4, row 3: .*the label is missing"),
    "negative weight": ("weight", -1.0, {}, "partition 4, row 3: sample_weight: -1 is not a weight"),
    "no waiting time": ("wait", 0.0, {"wait": f.Exponential()}, "partition 4, row 3: column 'wait': 0.0 is not above"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_rows_are_named_and_not_tried_again(kind, spark, tmp_path):
    """With a bad row in a later partition too, the first is told."""
    column, value, families, said = BAD[kind]
    attempts = str(tmp_path / "attempts")

    def noted(number, attempt):
        with open(attempts, "a") as file:
            file.write(f"{number}.{attempt} ")

    parts = spoiled(spoiled(cut(of(ALL), ENDS), 7, column, 1, value), 4, column, 3, value)
    with pytest.raises(db.DecibanError, match=said):
        engine.fit(db.NaiveBayes(families), frame_of(spark, parts, noted), "class", "weight")
    tried = Path(attempts).read_text().split()
    assert "4.0" in tried
    assert not [name for name in tried if not name.endswith(".0")]
    assert len(tried) == len(set(tried)) == len(parts)


def test_columns_that_are_not_there(spark):
    frame = frame_of(spark, cut(of(("height",)), (0, 340)))
    with pytest.raises(db.DecibanError, match="no column 'nope' to use as label"):
        engine.fit(db.NaiveBayes(), frame, "nope")
    with pytest.raises(db.DecibanError, match="no column 'nope' to use as weight"):
        engine.fit(db.NaiveBayes(), frame, "class", "nope")
    with pytest.raises(db.DecibanError, match="pass a Spark DataFrame"):
        engine.fit(db.NaiveBayes(), TABLE, "class")
    model = db.NaiveBayes().fit(of(("height", "age")), "class", sample_weight="weight")
    with pytest.raises(db.DecibanError, match=r"lacks.*'age'"):
        model.partial_fit(engine.rows(frame, "class", "weight"))


def test_all_partitions_are_empty(spark):
    with pytest.raises(db.DecibanError, match="no rows"):
        engine.fit(db.NaiveBayes(), frame_of(spark, [of(ALL).slice(0, 0)] * 2), "class", "weight")


def test_warnings_of_partitions_arrive_once(spark):
    table = pa.table({"x": [float(i % 10) for i in range(60)], "class": ["a", "b"] * 30})
    model = db.NaiveBayes(f.Uniform()).fit(table, "class")
    far = table.set_column(0, "x", pa.array([50.0 if i in (12, 25, 47) else float(i % 10) for i in range(60)]))
    with pytest.warns(db.DecibanWarning) as caught:
        engine.evaluate(model, frame_of(spark, cut(far, (0, 10, 20, 30, 40, 60))), "class")
    (told,) = [str(w.message) for w in caught if w.category is db.DecibanWarning]
    assert told.startswith("3 rows are impossible under every class")


# Predicting and judging ----------------------------------------------------------------------------------------------


def test_predictions_are_lazy_and_can_be_asked_further(spark, tmp_path):
    table = of(ALL).append_column("prediction", pa.array(range(340)))
    model = db.NaiveBayes().fit(of(ALL), "class", sample_weight="weight")
    marker = str(tmp_path / "computed")

    def noted(number, attempt):
        with open(marker, "a") as file:
            file.write("x")

    answered = engine.predict(model, frame_of(spark, cut(table, ENDS), noted))
    assert not os.path.exists(marker)
    added = [name for name in answered.columns if name not in table.column_names]
    assert answered.columns == [*table.column_names, *added]
    assert added[0].startswith("prediction")
    assert added[1:] == [f"proba_{name}" for name in model.classes_]
    found = answered.toArrow()
    assert found[added[0]].to_pylist() == model.predict(table).tolist()
    for k, name in enumerate(added[1:]):
        assert found[name].to_pylist() == model.predict_proba(table)[:, k].tolist()
    assert found.select(table.column_names).to_pylist() == table.to_pylist()
    answered.createOrReplaceTempView("answered")
    counted = spark.sql(f"select `{added[0]}` as said, count(*) as n from answered group by 1").collect()
    names, counts = np.unique(model.predict(table), return_counts=True)
    assert {row["said"]: row["n"] for row in counted} == dict(zip(names.tolist(), counts.tolist(), strict=True))
    alone = engine.predict(model, frame_of(spark, cut(table, ENDS)), probabilities=False)
    assert alone.columns == [*table.column_names, added[0]]


def test_evaluate_and_folds_are_those_of_all_rows(spark):
    table = of(ALL, TABLE, "fold")
    frame = frame_of(spark, cut(table, ENDS))
    model = db.NaiveBayes().fit(of(ALL), "class", sample_weight="weight")
    assert engine.evaluate(model, frame, "class", "weight") == db.evaluate(model, table, "class", "weight")
    found = engine.cross_validate(db.NaiveBayes(), frame, "class", "fold", sample_weight="weight")
    fold, weight = table["fold"].to_numpy(), table["weight"].to_numpy()
    plain = table.drop(["fold", "weight"])
    expected = db.cross_validate(db.NaiveBayes(), plain, "class", fold, sample_weight=weight)
    assert found == expected
    assert list(found.parts) == list(expected.parts)


def test_folds_do_not_depend_on_the_partitions(spark):
    table = of(ALL)
    found = [
        engine.cross_validate(
            db.NaiveBayes(), frame_of(spark, cut(table, ends)), "class", 5, random_state=1, sample_weight="weight"
        )
        for ends in (ENDS, (0, 340))
    ]
    assert found[0] == found[1]
    assert found[0].rows == pytest.approx(sum(table["weight"].to_pylist()))
    assert len(found[0].parts) == 5


def test_rows_are_learned_forgotten_and_left_out(spark):
    table = of(ALL)
    parts = cut(table, ENDS)
    first, second = (engine.rows(frame_of(spark, some), "class", "weight") for some in (parts[:4], parts[4:]))
    expected = db.NaiveBayes().fit(table, "class", sample_weight="weight")
    model = db.NaiveBayes().fit(first)
    alone = evidence(model)
    assert evidence(model.partial_fit(second)) == evidence(expected)
    whole = engine.rows(frame_of(spark, parts), "class", "weight")
    assert model.leave_one_out(whole) == expected.leave_one_out(table, "class", sample_weight="weight")
    assert evidence(model.forget(second)) == alone


# Spark Connect, and no Spark -----------------------------------------------------------------------------------------

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
print("EQUAL", evidence(model) == evidence(expected))
print("JUDGED", engine.evaluate(model, frame, "class", "weight").confusion.tolist()
      == db.evaluate(expected, table, "class", "weight").confusion.tolist())
said = engine.predict(model, frame).groupBy("prediction").count().toArrow().to_pylist()
names = expected.predict(table).tolist()
print("SAID", {{row["prediction"]: row["count"] for row in said}} == {{n: names.count(n) for n in set(names)}})
session.stop()
"""


def test_spark_connect():
    pytest.importorskip("grpc", reason="Spark Connect needs pip install pyspark[connect]")
    done = run(CONNECT.format(root=ROOT), timeout=180)
    told = [line for line in done.stdout.splitlines() if line.split(" ")[0] in ("REMOTE", "EQUAL", "JUDGED", "SAID")]
    assert told == ["REMOTE True", "EQUAL True", "JUDGED True", "SAID True"], done.stderr[-2000:]


def test_without_spark_the_way_to_it_is_told():
    code = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pyspark":
            raise ModuleNotFoundError(f"No module named {name!r}")
sys.meta_path.insert(0, Hidden())
import deciban
deciban.NaiveBayes().fit([[0.0], [1.0]], ["a", "b"])
try:
    import deciban.engines.spark
except ImportError as error:
    print(error)
"""
    done = run(code, timeout=60)
    assert "pip install deciban[spark]" in done.stdout
