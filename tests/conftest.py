"""Settings for all tests. Hypothesis tries the same examples on every run, so a failure can be run again."""

import os
import signal
import sys
import tempfile
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Before NumPy is imported: matrices are small here, and workers share the processors, so that threads of linear
# algebra would mostly wait for each other (on two busy cores, 12 ms for a 3×3 triangular solve).
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

# Spark's tests are short: a better compiler and a parallel collector cost a third of their time, and gain none.
SHORT_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
os.environ |= dict.fromkeys(("SPARK_LAUNCHER_OPTS", "SPARK_SUBMIT_OPTS", "SPARK_DAEMON_JAVA_OPTS"), SHORT_JAVA)

# Tests leave nothing in the user's cache
CACHE = tempfile.TemporaryDirectory(prefix="deciban-cache-")
os.environ["XDG_CACHE_HOME"] = CACHE.name

settings.register_profile(
    "deciban",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
settings.load_profile("deciban")


def pytest_configure() -> None:
    """Programs that tests start and interrupt get the default signals, also from `nohup make test` in the background.

    There signals are ignored, and programs inherit that; a handler is not inherited, and this one ignores them too.
    """
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


def pytest_unconfigure() -> None:
    CACHE.cleanup()


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A session of Spark: two tasks at a time, each of which may fail three times."""
    from pyspark.sql import SparkSession

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


SHARED = {"cli", "report"}  # folders whose tests share models, pages and one browser
SPREAD = {"test_docs.py", "test_notebooks.py"}  # long documents that share nothing


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share fixtures run in one worker, which makes these once; and there is one Spark at a time."""
    for item in items:
        folder, name = item.path.parent.name, item.path.name
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))
        elif folder in SHARED:
            item.add_marker(pytest.mark.xdist_group(folder))
        elif name not in SPREAD:
            item.add_marker(pytest.mark.xdist_group(f"{folder}/{name}"))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Long tests give way to those of Spark, which run one after another and end last."""
    waits = item.get_closest_marker("slow") and not item.get_closest_marker("spark")
    if waits and hasattr(os, "nice") and not os.nice(0):
        os.nice(5)
