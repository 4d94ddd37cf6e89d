"""One model in many threads, in forked processes, and at the end of the interpreter."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

import deciban as db


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_eight_threads_share_a_model() -> None:
    """The first of them estimate the parameters, all at once; every result equals that of one thread."""
    rng = np.random.default_rng(8)
    x = rng.normal(size=(3000, 30))
    x[rng.random(x.shape) < 0.05] = np.nan
    y = rng.integers(0, 4, len(x))
    texts = [f"word{i % 17} word{i % 5} {'spam' if i % 3 else 'ham'}" for i in range(500)]
    cases = [
        (db.NaiveBayes, x, y),
        (db.GaussianDiscriminant, np.nan_to_num(x), y),
        (db.NaiveBayes, texts, y[: len(texts)]),
    ]
    for estimator, rows, labels in cases:
        expected, model = estimator().fit(rows, labels), estimator().fit(rows, labels)
        start = Barrier(8)

        def use(_: int, model=model, rows=rows, start=start) -> tuple[bytes, str]:
            start.wait()
            return model.predict_proba(rows).tobytes(), str(model.explain(rows[:3]))

        with ThreadPoolExecutor(8) as threads:
            results = set(threads.map(use, range(8)))
        assert results == {(expected.predict_proba(rows).tobytes(), str(expected.explain(rows[:3])))}


FORK = """
import os, threading, warnings
import numpy as np
import deciban as db
from deciban import _kernels

warnings.simplefilter("ignore")  # of a fork in a process with threads, which is the subject here
_kernels.set_threads(4)
rng = np.random.default_rng(0)
x, y = rng.normal(size=(50_000, 8)), rng.integers(0, 3, 50_000)

def work():
    return db.NaiveBayes().fit(x, y).predict_proba(x).tobytes()

expected, stop = work(), threading.Event()

def busy():
    while not stop.is_set():
        _kernels.rows_with_nan(x)

threads = [threading.Thread(target=busy) for _ in range(3)]
for thread in threads:
    thread.start()
for _ in range(5):
    child = os.fork()
    if not child:
        os._exit(0 if work() == expected else 1)
    status = os.waitpid(child, 0)[1]
    if status:
        print("child ended with", status)
stop.set()
for thread in threads:
    thread.join()
print("parent", work() == expected)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forks_while_threads_run() -> None:
    done = run(FORK)
    assert (done.returncode, done.stdout, done.stderr) == (0, "parent True\n", "")


ALIVE_AT_EXIT = """
import ctypes
import numpy as np
import deciban as db
from deciban import _kernels

model = db.NaiveBayes().fit(["good news", "bad news"], ["ham", "spam"])
model.predict(["good"])
vocabulary = _kernels.Vocabulary(np.frombuffer(b"ab", np.uint8), np.array([1, 2]))
ctypes.pythonapi.Py_IncRef(ctypes.py_object(vocabulary))  # never freed
print(len(vocabulary))
"""


def test_exit_prints_nothing_about_objects_that_are_alive() -> None:
    done = run(ALIVE_AT_EXIT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "2\n", "")
