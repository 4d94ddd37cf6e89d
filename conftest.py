"""Doctests of what needs PySpark are collected where it is installed: `make test-all`."""

import os
from importlib.util import find_spec

OF_SPARK = ("spark_transfer", "spark", "spark_cluster")
collect_ignore = [] if find_spec("pyspark") else [f"src/deciban/engines/{name}.py" for name in OF_SPARK]
collect_ignore += ["examples"]  # scripts, which write files where they run: see tests/test_examples.py


def pytest_xdist_auto_num_workers() -> int:
    """One more worker than processors: some tests wait for browsers, clusters and other processes."""
    return (os.cpu_count() or 1) + 1
